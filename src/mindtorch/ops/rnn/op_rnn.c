/* SPDX-License-Identifier: Apache-2.0
 *
 * lstm, gru, rnn_tanh and rnn_relu: layers above each other, each in one or two directions, with
 * dropout between them. The work is done by mkldnn_rnn_layer; an LSTM with projections
 * (weight_hr) is done step by step.
 *
 *     input ─► layer 0 forward ─┬─ cat ─► dropout ─► layer 1 ... ─► output
 *          └─► layer 0 reverse ─┘         last states of all, stacked: hn, cn
 */
#include "mindtorch/ops/rnn/op_rnn.h"

#include "base/alloc.h"

typedef struct network {
    mt__call *call;
    mt__rnn_mode mode;
    mt_tensor *const *params;
    uint32_t per_direction; /* parameters of each direction of each layer */
    bool has_biases;
    bool projected;
    int64_t n_layers;
    int64_t n_directions;
    double dropout;
    bool train;
    const int64_t *batch_sizes; /* packed sequences; else NULL */
    uint32_t n_batch_sizes;
    mt_tensor *states[2]; /* given: h, c, [layers * directions, B, H] */
    mt_tensor **last[2];  /* made: one for each direction of each layer */
} network;

static bool is_lstm(const network *n)
{
    return n->mode == MT_RNN_LSTM;
}

/* The parameters of direction `d` (counted through all layers). */
static mt_tensor *const *params_of(const network *n, int64_t d)
{
    return n->params + d * n->per_direction;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_params(network *n, const mt_value *params)
{
    int64_t directions = n->n_layers * n->n_directions;
    uint32_t least = n->has_biases ? 4 : 2;
    n->params = params->of.tensors;
    if (n->n_layers <= 0) {
        return mtb_fail(MT_ERUNTIME, "%s(): num_layers must be at least 1, got %lld",
                        mt__op_name(n->call), (long long)n->n_layers);
    }
    n->per_direction = (uint32_t)(params->count / directions);
    n->projected = is_lstm(n) && n->per_direction == least + 1;
    if (params->count % directions != 0 || (n->per_direction != least && !n->projected)) {
        return mtb_fail(MT_ERUNTIME,
                        "%s(): %u parameters do not make %lld directions of %u parameters each",
                        mt__op_name(n->call), params->count, (long long)directions, least);
    }
    return MT_OK;
}

static int check_states(network *n)
{
    int64_t directions = n->n_layers * n->n_directions;
    char text[MT_SHAPE_TEXT];
    for (uint32_t i = 0; i < (is_lstm(n) ? 2 : 1); i++) {
        const mt_tensor *state = n->states[i];
        if (state->n_dims != 3 || state->sizes[0] != directions) {
            return mtb_fail(MT_ERUNTIME,
                            "%s(): expected a state of %lld layers and directions in 3 dimensions, "
                            "but got %s",
                            mt__op_name(n->call), (long long)directions,
                            mt__shape_text(state->sizes, state->n_dims, text));
        }
    }
    return MT_OK;
}

/* ---- a direction step by step ---------------------------------------------------------------- */

/* Rows [0, count) of h and c; the tensors themselves if these are all. */
static int first_rows(mt_tensor *const *whole, int64_t count, mt_tensor **out)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (whole[i]->sizes[0] == count) {
            out[i] = mt_tensor_retain(whole[i]);
        } else {
            MT_TRY(mt_narrow(whole[i], 0, 0, count, &out[i]));
        }
    }
    return MT_OK;
}

/* Puts new first rows into a state, which is replaced. */
static int put_rows(mt_tensor **state, mt_tensor *rows)
{
    mt_tensor *next = NULL;
    if (rows->sizes[0] == (*state)->sizes[0]) {
        next = mt_tensor_retain(rows);
    } else {
        mt_tensor *others = NULL;
        int64_t count = rows->sizes[0];
        MT_TRY(mt_narrow(*state, 0, count, (*state)->sizes[0] - count, &others));
        int status = mt_cat((mt_tensor *const[]){rows, others}, 2, 0, &next);
        mt_tensor_release(others);
        MT_TRY(status);
    }
    mt_tensor_release(*state);
    *state = next;
    return MT_OK;
}

static int project_step(const network *n, int64_t d, mt_tensor *input, mt_tensor **states,
                        mt_tensor **out)
{
    mt_tensor *const *params = params_of(n, d);
    mt_tensor *const biases[2] = {n->has_biases ? params[2] : NULL,
                                  n->has_biases ? params[3] : NULL};
    mt_tensor *before[2] = {NULL};
    mt_tensor *h = NULL;
    mt_tensor *c = NULL;
    mt_tensor **const places[2] = {&h, &c};
    int status = first_rows(states, input->sizes[0], before);
    if (status == MT_OK) {
        status = mt__rnn_step(n->mode, input, before, params, biases, places);
    }
    if (status == MT_OK) {
        status = mt_linear(h, params[n->per_direction - 1], NULL, out);
    }
    if (status == MT_OK) {
        status = put_rows(&states[0], *out);
    }
    if (status == MT_OK) {
        status = put_rows(&states[1], c);
    }
    mt_tensor_release(before[0]);
    mt_tensor_release(before[1]);
    mt_tensor_release(h);
    mt_tensor_release(c);
    return status;
}

/* Step `at` of the input; `first`: its first row if the input is packed. */
static int input_of_step(const network *n, mt_tensor *input, int64_t at, int64_t first,
                         mt_tensor **out)
{
    return n->batch_sizes == NULL ? mt_select(input, 0, at, out)
                                  : mt_narrow(input, 0, first, n->batch_sizes[at], out);
}

static int project_steps(const network *n, int64_t d, bool reverse, mt_tensor *input,
                         mt_tensor **states, mt_tensor **outs)
{
    int64_t n_steps = n->batch_sizes == NULL ? input->sizes[0] : n->n_batch_sizes;
    int64_t first = reverse ? input->sizes[0] : 0;
    for (int64_t i = 0; i < n_steps; i++) {
        int64_t at = reverse ? n_steps - 1 - i : i;
        int64_t rows = n->batch_sizes == NULL ? 0 : n->batch_sizes[at];
        mt_tensor *part = NULL;
        first -= reverse ? rows : 0;
        MT_TRY(input_of_step(n, input, at, first, &part));
        int status = project_step(n, d, part, states, &outs[at]);
        mt_tensor_release(part);
        MT_TRY(status);
        first += reverse ? 0 : rows;
    }
    return MT_OK;
}

/* An LSTM whose h is projected by weight_hr. states: given, then the last ones. */
static int run_projected(const network *n, int64_t d, bool reverse, mt_tensor *input,
                         mt_tensor **states, mt_tensor **out)
{
    size_t n_steps = n->batch_sizes == NULL ? (size_t)input->sizes[0] : n->n_batch_sizes;
    mt_tensor **outs = mtb_calloc(n_steps + 1, sizeof(mt_tensor *));
    if (outs == NULL) {
        return mtb_fail(MT_ENOMEM, "%s(): no memory for %zu steps", mt__op_name(n->call), n_steps);
    }
    int status = project_steps(n, d, reverse, input, states, outs);
    if (status == MT_OK) {
        status = n->batch_sizes == NULL ? mt_stack(outs, n_steps, 0, out)
                                        : mt_cat(outs, n_steps, 0, out);
    }
    for (size_t i = 0; i < n_steps; i++) {
        mt_tensor_release(outs[i]);
    }
    mtb_free(outs);
    return status;
}

/* ---- layers ---------------------------------------------------------------------------------- */

static int run_whole(const network *n, int64_t d, bool reverse, mt_tensor *input,
                     mt_tensor **states, mt_tensor **out)
{
    mt_tensor *const *params = params_of(n, d);
    mt_tensor *h = NULL;
    mt_tensor *c = NULL;
    MT_TRY(mt_mkldnn_rnn_layer(input, params[0], params[1], n->has_biases ? params[2] : NULL,
                               n->has_biases ? params[3] : NULL, states[0], states[1], reverse,
                               n->batch_sizes, n->n_batch_sizes, (int64_t)n->mode, out, &h,
                               is_lstm(n) ? &c : NULL, NULL, NULL, NULL));
    mt_tensor_release(states[0]);
    mt_tensor_release(states[1]);
    states[0] = h;
    states[1] = c;
    return MT_OK;
}

/* The last states are kept in n->last. */
static int run_direction(const network *n, int64_t d, bool reverse, mt_tensor *input,
                         mt_tensor **out)
{
    uint32_t count = is_lstm(n) ? 2 : 1;
    mt_tensor *states[2] = {NULL};
    int status = MT_OK;
    for (uint32_t i = 0; i < count && status == MT_OK; i++) {
        status = mt_select(n->states[i], 0, d, &states[i]);
    }
    if (status == MT_OK) {
        status = n->projected ? run_projected(n, d, reverse, input, states, out)
                              : run_whole(n, d, reverse, input, states, out);
    }
    for (uint32_t i = 0; i < count; i++) {
        n->last[i][d] = states[i];
    }
    return status;
}

static int run_layer(const network *n, int64_t layer, mt_tensor *input, mt_tensor **out)
{
    mt_tensor *sides[2] = {NULL};
    int status = MT_OK;
    for (int64_t side = 0; side < n->n_directions && status == MT_OK; side++) {
        status = run_direction(n, layer * n->n_directions + side, side == 1, input, &sides[side]);
    }
    if (status == MT_OK && n->n_directions == 2) {
        status = mt_cat(sides, 2, -1, out);
    } else if (status == MT_OK) {
        *out = mt_tensor_retain(sides[0]);
    }
    mt_tensor_release(sides[0]);
    mt_tensor_release(sides[1]);
    return status;
}

/* Takes over `input`. */
static int run_layers(const network *n, mt_tensor *input, mt_tensor **out)
{
    for (int64_t layer = 0; layer < n->n_layers; layer++) {
        mt_tensor *next = NULL;
        int status = run_layer(n, layer, input, &next);
        mt_tensor_release(input);
        MT_TRY(status);
        input = next;
        if (n->dropout != 0.0 && n->train && layer + 1 < n->n_layers) {
            status = mt_dropout(input, n->dropout, true, &next);
            mt_tensor_release(input);
            MT_TRY(status);
            input = next;
        }
    }
    *out = input;
    return MT_OK;
}

static int give_states(const network *n)
{
    size_t directions = (size_t)(n->n_layers * n->n_directions);
    MT_TRY(mt_stack(n->last[0], directions, 0, mt__result_place(n->call, 1)));
    return is_lstm(n) ? mt_stack(n->last[1], directions, 0, mt__result_place(n->call, 2)) : MT_OK;
}

static int run_network(network *n, mt_tensor *input, bool batch_first)
{
    mt_tensor *output = NULL;
    mt_tensor *turned = NULL;
    if (batch_first) {
        MT_TRY(mt_transpose(input, 0, 1, &turned));
    } else {
        turned = mt_tensor_retain(input);
    }
    MT_TRY(run_layers(n, turned, &output));
    MT_TRY(give_states(n));
    if (!batch_first) {
        mt__give(n->call, 0, output);
        return MT_OK;
    }
    int status = mt_transpose(output, 0, 1, mt__result_place(n->call, 0));
    mt_tensor_release(output);
    return status;
}

/* ---- ops ------------------------------------------------------------------------------------- */

/* rest: has_biases, num_layers, dropout, train, bidirectional (, batch_first) */
static int run_any(mt__call *call, mt__rnn_mode mode, const mt_value *states,
                   const mt_value *params, const mt_value *rest, network *n)
{
    n->call = call;
    n->mode = mode;
    n->has_biases = rest[0].of.integer != 0;
    n->n_layers = rest[1].of.integer;
    n->dropout = mt__scalar_real(&rest[2]);
    n->train = rest[3].of.integer != 0;
    n->n_directions = rest[4].of.integer != 0 ? 2 : 1;
    if (is_lstm(n) && states->count != 2) {
        return mtb_fail(MT_ERUNTIME, "lstm expects two hidden states");
    }
    n->states[0] = is_lstm(n) ? states->of.tensors[0] : states->of.tensor;
    n->states[1] = is_lstm(n) ? states->of.tensors[1] : NULL;
    MT_TRY(check_params(n, params));
    MT_TRY(check_states(n));
    size_t directions = (size_t)(n->n_layers * n->n_directions);
    mt_tensor **last = mtb_calloc(2 * directions, sizeof(mt_tensor *));
    if (last == NULL) {
        return mtb_fail(MT_ENOMEM, "%s(): no memory for %zu states", mt__op_name(call), directions);
    }
    n->last[0] = last;
    n->last[1] = last + directions;
    bool batch_first = n->batch_sizes == NULL && rest[5].of.integer != 0;
    int status = run_network(n, call->args[0].of.tensor, batch_first);
    for (size_t i = 0; i < 2 * directions; i++) {
        mt_tensor_release(last[i]);
    }
    mtb_free(last);
    return status;
}

static int run_rnn(mt__call *call, mt__rnn_mode mode)
{
    const mt_value *a = call->args;
    network n = {.batch_sizes = NULL};
    char text[MT_SHAPE_TEXT];
    if (a[0].of.tensor->n_dims != 3) {
        return mtb_fail(MT_ERUNTIME, "%s(): Expected 3-D input, got %s", mt__op_name(call),
                        mt__shape_text(a[0].of.tensor->sizes, a[0].of.tensor->n_dims, text));
    }
    return run_any(call, mode, &a[1], &a[2], &a[3], &n);
}

MT_RUN(lstm, run_rnn, MT_RNN_LSTM)
MT_RUN(gru, run_rnn, MT_RNN_GRU)
MT_RUN(rnn_tanh, run_rnn, MT_RNN_TANH)
MT_RUN(rnn_relu, run_rnn, MT_RNN_RELU)

static int run_packed(mt__call *call, mt__rnn_mode mode)
{
    const mt_value *a = call->args;
    const int64_t *sizes = NULL;
    int64_t count = 0;
    call->device = a[0].of.tensor->device;
    MT_TRY(mt__rnn_sizes(call, 1, &sizes, &count));
    network n = {.batch_sizes = sizes, .n_batch_sizes = (uint32_t)count};
    return run_any(call, mode, &a[2], &a[3], &a[4], &n);
}

MT_RUN(lstm_data, run_packed, MT_RNN_LSTM)
MT_RUN(gru_data, run_packed, MT_RNN_GRU)
MT_RUN(rnn_tanh_data, run_packed, MT_RNN_TANH)
MT_RUN(rnn_relu_data, run_packed, MT_RNN_RELU)
