/* SPDX-License-Identifier: Apache-2.0
 *
 * One step of a recurrent network, made of other ops: lstm_cell, gru_cell, rnn_tanh_cell,
 * rnn_relu_cell.
 */
#include "mindtorch/ops/rnn/op_rnn.h"

enum {
    MAX_MADE = 24
};

/* What a step makes on its way. */
typedef struct step {
    mt_tensor *made[MAX_MADE];
    uint32_t n_made;
} step;

static mt_tensor **next_place(step *s)
{
    MT_ASSERT(s->n_made < MAX_MADE);
    s->made[s->n_made] = NULL;
    return &s->made[s->n_made++];
}

/* Part i of `count` parts of the last dimension. */
static int part_of(step *s, mt_tensor *whole, int64_t i, int64_t count, mt_tensor **out)
{
    mt_tensor **place = next_place(s);
    int64_t width = whole->sizes[whole->n_dims - 1] / count;
    MT_TRY(mt_narrow(whole, -1, i * width, width, place));
    *out = *place;
    return MT_OK;
}

/* f(part i) */
static int bent_part(step *s, mt_tensor *whole, int64_t i, int64_t count,
                     mt_status (*f)(mt_tensor *, mt_tensor **), mt_tensor **out)
{
    mt_tensor *part = NULL;
    MT_TRY(part_of(s, whole, i, count, &part));
    mt_tensor **place = next_place(s);
    MT_TRY(f(part, place));
    *out = *place;
    return MT_OK;
}

static int lstm_step(step *s, mt_tensor *const sums[2], mt_tensor *c, mt_tensor **const *places)
{
    mt_tensor **gates = next_place(s);
    mt_tensor *gate[4];
    MT_TRY(mt_add(sums[0], sums[1], gates));
    for (int64_t i = 0; i < 4; i++) {
        MT_TRY(bent_part(s, *gates, i, 4, i == 2 ? mt_tanh : mt_sigmoid, &gate[i]));
    }
    mt_tensor **kept = next_place(s);
    mt_tensor **fresh = next_place(s);
    mt_tensor **bent = next_place(s);
    MT_TRY(mt_mul(gate[1], c, kept));
    MT_TRY(mt_mul(gate[0], gate[2], fresh));
    MT_TRY(mt_add(*kept, *fresh, places[1]));
    MT_TRY(mt_tanh(*places[1], bent));
    return mt_mul(gate[3], *bent, places[0]);
}

static int gru_step(step *s, mt_tensor *const sums[2], mt_tensor *h, mt_tensor **const *places)
{
    mt_tensor *gate[2];
    mt_tensor *last[2];
    for (int64_t i = 0; i < 2; i++) { /* r and z */
        mt_tensor *parts[2];
        mt_tensor **sum = next_place(s);
        mt_tensor **bent = next_place(s);
        MT_TRY(part_of(s, sums[0], i, 3, &parts[0]));
        MT_TRY(part_of(s, sums[1], i, 3, &parts[1]));
        MT_TRY(mt_add(parts[0], parts[1], sum));
        MT_TRY(mt_sigmoid(*sum, bent));
        gate[i] = *bent;
    }
    MT_TRY(part_of(s, sums[0], 2, 3, &last[0]));
    MT_TRY(part_of(s, sums[1], 2, 3, &last[1]));
    mt_tensor **let = next_place(s);
    mt_tensor **sum = next_place(s);
    mt_tensor **fresh = next_place(s);
    mt_tensor **change = next_place(s);
    mt_tensor **kept = next_place(s);
    MT_TRY(mt_mul(gate[0], last[1], let));
    MT_TRY(mt_add(last[0], *let, sum));
    MT_TRY(mt_tanh(*sum, fresh));
    MT_TRY(mt_sub(h, *fresh, change));
    MT_TRY(mt_mul(gate[1], *change, kept));
    return mt_add(*fresh, *kept, places[0]);
}

static int any_step(step *s, mt__rnn_mode mode, mt_tensor *input, mt_tensor *const *before,
                    mt_tensor *const weights[2], mt_tensor *const biases[2],
                    mt_tensor **const *places)
{
    mt_tensor **sums[2] = {next_place(s), next_place(s)};
    MT_TRY(mt_linear(input, weights[0], biases[0], sums[0]));
    MT_TRY(mt_linear(before[0], weights[1], biases[1], sums[1]));
    mt_tensor *const both[2] = {*sums[0], *sums[1]};
    if (mode == MT_RNN_LSTM) {
        return lstm_step(s, both, before[1], places);
    }
    if (mode == MT_RNN_GRU) {
        return gru_step(s, both, before[0], places);
    }
    mt_tensor **sum = next_place(s);
    MT_TRY(mt_add(both[0], both[1], sum));
    return mode == MT_RNN_TANH ? mt_tanh(*sum, places[0]) : mt_relu(*sum, places[0]);
}

int mt__rnn_step(mt__rnn_mode mode, mt_tensor *input, mt_tensor *const *before,
                 mt_tensor *const weights[2], mt_tensor *const biases[2], mt_tensor **const *places)
{
    step s = {.n_made = 0};
    int status = any_step(&s, mode, input, before, weights, biases, places);
    for (uint32_t i = 0; i < s.n_made; i++) {
        mt_tensor_release(s.made[i]);
    }
    return status;
}

/* ---- ops ------------------------------------------------------------------------------------- */

static int check_cell(const mt__call *call, mt__rnn_mode mode, const mt_tensor *h)
{
    const mt_tensor *input = mt__arg_tensor(call, 0);
    const mt_tensor *weights[2] = {call->args[2].of.tensor, call->args[3].of.tensor};
    int64_t gates = mt__rnn_gates(mode);
    char text[MT_SHAPE_TEXT];
    for (uint32_t i = 0; i < 2; i++) {
        if (weights[i]->n_dims != 2 || weights[i]->sizes[0] != gates * weights[1]->sizes[1]) {
            return mtb_fail(MT_ERUNTIME, "%s(): %lld gates do not fit %s of size %s",
                            mt__op_name(call), (long long)gates, i == 0 ? "w_ih" : "w_hh",
                            mt__shape_text(weights[i]->sizes, weights[i]->n_dims, text));
        }
    }
    if (input->n_dims == 0 || input->sizes[input->n_dims - 1] != weights[0]->sizes[1]) {
        return mtb_fail(MT_ERUNTIME, "input has inconsistent input_size: got %lld expected %lld",
                        (long long)(input->n_dims == 0 ? 0 : input->sizes[input->n_dims - 1]),
                        (long long)weights[0]->sizes[1]);
    }
    if (h->n_dims == 0 || h->sizes[h->n_dims - 1] != weights[1]->sizes[1]) {
        return mtb_fail(MT_ERUNTIME,
                        "hidden0 has inconsistent hidden_size: got %lld, expected %lld",
                        (long long)(h->n_dims == 0 ? 0 : h->sizes[h->n_dims - 1]),
                        (long long)weights[1]->sizes[1]);
    }
    return MT_OK;
}

static int run_cell(mt__call *call, mt__rnn_mode mode, mt_tensor *const *before)
{
    MT_TRY(check_cell(call, mode, before[0]));
    mt_tensor *const weights[2] = {mt__arg_tensor(call, 2), mt__arg_tensor(call, 3)};
    mt_tensor *const biases[2] = {mt__arg_tensor(call, 4), mt__arg_tensor(call, 5)};
    mt_tensor **const places[2] = {mt__result_place(call, 0),
                                   mode == MT_RNN_LSTM ? mt__result_place(call, 1) : NULL};
    return mt__rnn_step(mode, mt__arg_tensor(call, 0), before, weights, biases, places);
}

int mt__run_lstm_cell(mt__call *call)
{
    const mt_value *states = &call->args[1];
    if (states->count != 2) {
        return mtb_fail(MT_ERUNTIME, "lstm_cell expects two hidden states");
    }
    return run_cell(call, MT_RNN_LSTM, states->of.tensors);
}

static int run_plain_cell(mt__call *call, mt__rnn_mode mode)
{
    return run_cell(call, mode, &call->args[1].of.tensor);
}

MT_RUN(gru_cell, run_plain_cell, MT_RNN_GRU)
MT_RUN(rnn_tanh_cell, run_plain_cell, MT_RNN_TANH)
MT_RUN(rnn_relu_cell, run_plain_cell, MT_RNN_RELU)
