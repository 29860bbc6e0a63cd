/* SPDX-License-Identifier: Apache-2.0
 *
 * One direction of one recurrent layer over all steps, and its derivative.
 *
 *     forward    gates = x W_ih' + biases                   all steps at once
 *                for each step: gates += h W_hh', RNN_CELL  which updates h (and c)
 *     backward   for each step, last one first: RNN_CELL_BACKWARD, grad_h += grad_gates W_hh
 *                grad_x, grad_W_ih, grad_W_hh, grad_b       all steps at once
 *
 *   RLA1  A step has the first n of the batch's rows; of packed sequences n does not grow from a
 *         step to the next. Rows that a step does not have keep their state: in the end it is what
 *         their sequence ended with, in either direction.
 *   RLA2  GRU's gate n needs the part of its sum that h gives, so that this part of all gates is
 *         computed apart (hidden), and has its own gradient.
 */
#include "mindtorch/ops/nn/op_nn_support.h"
#include "mindtorch/ops/rnn/op_rnn.h"

/* ---- sizes ----------------------------------------------------------------------------------- */

typedef struct layer {
    mt__call *call;
    int64_t mode;
    int64_t n_gates;
    int64_t width; /* H */
    int64_t in_width;
    int64_t batch;
    int64_t n_steps;
    int64_t n_rows;       /* of all steps */
    const int64_t *sizes; /* rows of each step; NULL: `batch` */
    bool reverse;
} layer;

/* A step: its number of rows and the first one. */
typedef struct step {
    int64_t at;
    int64_t first;
    int64_t rows;
} step;

static int64_t rows_of(const layer *l, int64_t at)
{
    return l->sizes == NULL ? l->batch : l->sizes[at];
}

/* The first step in a direction: the last one if `last`. */
static step first_step(const layer *l, bool last)
{
    int64_t at = last ? l->n_steps - 1 : 0;
    int64_t rows = l->n_steps == 0 ? 0 : rows_of(l, at);
    return (step){.at = at, .first = last ? l->n_rows - rows : 0, .rows = rows};
}

/* The next one; false: there is none. */
static bool next_step(const layer *l, bool last, step *s)
{
    if (last ? s->at == 0 : s->at + 1 == l->n_steps) {
        return false;
    }
    if (last) {
        s->at--;
        s->rows = rows_of(l, s->at);
        s->first -= s->rows;
    } else {
        s->first += s->rows;
        s->at++;
        s->rows = rows_of(l, s->at);
    }
    return true;
}

static int check_batch_sizes(layer *l, const mt_tensor *input, const mt_value *sizes)
{
    l->n_rows = 0;
    for (uint32_t i = 0; i < sizes->count; i++) {
        int64_t size = sizes->of.ints[i];
        if (size <= 0 || (i > 0 && size > sizes->of.ints[i - 1])) {
            return mtb_fail(MT_ERUNTIME,
                            "%s(): batch_sizes must be positive and not grow, got %lld at %u",
                            mt__op_name(l->call), (long long)size, i);
        }
        l->n_rows += size;
    }
    if (input->n_dims != 2 || input->sizes[0] != l->n_rows) {
        return mtb_fail(MT_ERUNTIME,
                        "%s(): packed sequences of %lld rows need an input of as many, got %u "
                        "dimensions of which the first is %lld",
                        mt__op_name(l->call), (long long)l->n_rows, (unsigned)input->n_dims,
                        (long long)(input->n_dims == 0 ? 0 : input->sizes[0]));
    }
    l->n_steps = sizes->count;
    l->sizes = sizes->of.ints;
    l->batch = sizes->of.ints[0];
    return MT_OK;
}

static int check_matrix(const layer *l, const mt_tensor *matrix, const char *name, int64_t rows,
                        int64_t columns)
{
    char text[MT_SHAPE_TEXT];
    if (matrix->n_dims == 2 && matrix->sizes[0] == rows && matrix->sizes[1] == columns) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME, "%s(): expected %s of size [%lld, %lld], but got %s",
                    mt__op_name(l->call), name, (long long)rows, (long long)columns,
                    mt__shape_text(matrix->sizes, matrix->n_dims, text));
}

static int make_layer(mt__call *call, const mt_tensor *weights[2], uint32_t reverse_arg, layer *l)
{
    const mt_tensor *input = mt__arg_tensor(call, 0);
    const mt_value *sizes = &call->args[reverse_arg + 1];
    l->call = call;
    l->reverse = mt__arg_bool(call, reverse_arg);
    l->mode = mt__arg_int(call, reverse_arg + 2);
    if (l->mode < 0 || l->mode >= MT_RNN_MODES) {
        return mtb_fail(MT_EVALUE, "%s(): mode %lld is none of 0 to %d", mt__op_name(call),
                        (long long)l->mode, MT_RNN_MODES - 1);
    }
    l->n_gates = mt__rnn_gates((mt__rnn_mode)l->mode);
    MT_TRY(mt__need_real(call, (mt_dtype)input->dtype));
    if (sizes->count != 0) {
        MT_TRY(check_batch_sizes(l, input, sizes));
    } else if (input->n_dims != 3) {
        return mtb_fail(MT_ERUNTIME, "%s(): Expected 3-D input, got %u-D", mt__op_name(call),
                        (unsigned)input->n_dims);
    } else {
        l->n_steps = input->sizes[0];
        l->batch = input->sizes[1];
        l->n_rows = l->n_steps * l->batch;
    }
    l->in_width = input->sizes[input->n_dims - 1];
    l->width = weights[1]->n_dims == 2 ? weights[1]->sizes[1] : 0;
    MT_TRY(check_matrix(l, weights[0], "weight_ih", l->n_gates * l->width, l->in_width));
    MT_TRY(check_matrix(l, weights[1], "weight_hh", l->n_gates * l->width, l->width));
    MT_TRY(mt__need_type(weights[0], (mt_dtype)input->dtype));
    return mt__need_type(weights[1], (mt_dtype)input->dtype);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Rows of a contiguous tensor, for a kernel. */
typedef struct rows {
    mt_tensor *tensor; /* NULL: absent */
    int64_t first;
    int64_t count;
    int64_t width;
} rows;

typedef struct rows_view {
    int64_t sizes[3];
    int64_t strides[3];
    mt_array array;
} rows_view;

static char *row_data(const rows *r)
{
    char *data = mt__array(r->tensor).data;
    size_t bytes = mt_dtype_size((mt_dtype)r->tensor->dtype);
    return data == NULL ? NULL : data + (size_t)(r->first * r->width) * bytes;
}

static void view_rows(const rows *r, rows_view *view)
{
    if (r->tensor == NULL) {
        view->array = mt__no_array();
        return;
    }
    view->sizes[0] = r->count;
    view->sizes[1] = r->width;
    view->strides[0] = r->width;
    view->strides[1] = 1;
    view->array = (mt_array){.data = row_data(r),
                             .sizes = view->sizes,
                             .strides = view->strides,
                             .n_dims = 2,
                             .dtype = r->tensor->dtype};
}

static int launch_cell(const layer *l, mt_kernel kernel, const rows *parts, uint32_t n_parts)
{
    rows_view views[9];
    mt_array arrays[9];
    for (uint32_t i = 0; i < n_parts; i++) {
        view_rows(&parts[i], &views[i]);
        arrays[i] = views[i].array;
    }
    mt_kernel_call launched = {.kernel = (uint16_t)kernel,
                               .code = (uint16_t)l->mode,
                               .n_tensors = n_parts,
                               .tensors = arrays};
    return mt__launch(l->call->device, &launched);
}

/* The matrix as [1, rows, columns], or transposed. */
static void view_matrix(const rows *r, bool turned, rows_view *view)
{
    view_rows(r, view);
    int64_t count = r->count;
    int64_t width = r->width;
    view->sizes[0] = 1;
    view->strides[0] = 0;
    view->sizes[1] = turned ? width : count;
    view->sizes[2] = turned ? count : width;
    view->strides[1] = turned ? 1 : width;
    view->strides[2] = turned ? width : 1;
    view->array.n_dims = 3;
}

/* c = a b + beta c, of a or b the transpose. */
static int multiply(const layer *l, rows c, rows a, bool turn_a, rows b, bool turn_b, double beta)
{
    rows_view views[3];
    view_matrix(&c, false, &views[0]);
    view_matrix(&a, turn_a, &views[1]);
    view_matrix(&b, turn_b, &views[2]);
    const mt_array arrays[3] = {views[0].array, views[1].array, views[2].array};
    const mt_scalar scalars[2] = {mt_real(1.0), mt_real(beta)};
    mt_kernel_call launched = {.kernel = MT_KERNEL_GEMM,
                               .n_tensors = 3,
                               .n_scalars = 2,
                               .tensors = arrays,
                               .scalars = scalars};
    return mt__launch(l->call->device, &launched);
}

static rows part(mt_tensor *tensor, int64_t first, int64_t count, int64_t width)
{
    return (rows){.tensor = tensor, .first = first, .count = count, .width = width};
}

/* ---- forward --------------------------------------------------------------------------------- */

/* mkldnn_rnn_layer's arguments and results. */
enum {
    INPUT,
    WEIGHT_IH,
    WEIGHT_HH,
    BIAS_IH,
    BIAS_HH,
    HX,
    CX,
    REVERSE
};

enum {
    OUTPUT,
    HY,
    CY,
    GATES,
    STATES,
    REST,
    N_RESULTS
};

/* The first state of the rows in a tensor that becomes the last one. */
static int begin_state(layer *l, uint32_t arg, uint32_t result, mt_tensor **out)
{
    mt_tensor *given = mt__arg_tensor(l->call, arg);
    mt__shape shape = {.n_dims = 2, .sizes = {l->batch, l->width}};
    char text[MT_SHAPE_TEXT];
    if (given == NULL) {
        return mtb_fail(MT_ERUNTIME, "%s(): an LSTM needs cx", mt__op_name(l->call));
    }
    if (given->n_dims != 2 || given->sizes[0] != l->batch || given->sizes[1] != l->width) {
        return mtb_fail(MT_ERUNTIME, "%s(): Expected hidden size [%lld, %lld], got %s",
                        mt__op_name(l->call), (long long)l->batch, (long long)l->width,
                        mt__shape_text(given->sizes, given->n_dims, text));
    }
    MT_TRY(mt__need_type(given, (mt_dtype)mt__arg_tensor(l->call, INPUT)->dtype));
    MT_TRY(mt__result_new(l->call, result, (mt_dtype)given->dtype, &shape, out));
    return mt__copy_elements(*out, given);
}

static int check_bias(const layer *l, const mt_tensor *bias)
{
    if (bias == NULL) {
        return MT_OK;
    }
    int64_t width = l->n_gates * l->width;
    if (bias->n_dims != 1 || bias->sizes[0] != width) {
        char text[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "%s(): expected a bias of size [%lld], but got %s",
                        mt__op_name(l->call), (long long)width,
                        mt__shape_text(bias->sizes, bias->n_dims, text));
    }
    return mt__need_type(bias, (mt_dtype)mt__arg_tensor(l->call, INPUT)->dtype);
}

/* x W_ih' and the biases that all gates have in common (RLA2). */
static int begin_gates(layer *l, mt_tensor *input, mt_tensor *weight, mt_tensor *gates)
{
    mt_tensor *bias = mt__arg_tensor(l->call, BIAS_IH);
    mt_tensor *other = mt__arg_tensor(l->call, BIAS_HH);
    MT_TRY(check_bias(l, bias));
    MT_TRY(check_bias(l, other));
    if (bias != NULL && other != NULL && l->mode != MT_RNN_GRU) {
        mt_tensor **sum = mt__temp(l->call);
        MT_TRY(mt_add(bias, other, sum));
        bias = *sum;
    }
    if (bias != NULL) {
        MT_TRY(mt__copy_elements(gates, bias));
    }
    int64_t width = l->n_gates * l->width;
    return multiply(l, part(gates, 0, l->n_rows, width), part(input, 0, l->n_rows, l->in_width),
                    false, part(weight, 0, width, l->in_width), true, bias == NULL ? 0.0 : 1.0);
}

/* The part of a step's gates that h gives: added to them, or in `hidden`. */
static int add_hidden(const layer *l, const step *s, mt_tensor *const *results, mt_tensor *weight,
                      mt_tensor *hidden)
{
    int64_t width = l->n_gates * l->width;
    rows to = hidden != NULL ? part(hidden, 0, s->rows, width)
                             : part(results[GATES], s->first, s->rows, width);
    double beta = 1.0;
    if (hidden != NULL) {
        mt_tensor *bias = mt__arg_tensor(l->call, BIAS_HH);
        beta = bias == NULL ? 0.0 : 1.0;
        if (bias != NULL) {
            MT_TRY(mt__copy_elements(hidden, bias));
        }
    }
    return multiply(l, to, part(results[HY], 0, s->rows, l->width), false,
                    part(weight, 0, width, l->width), true, beta);
}

static int run_steps(layer *l, mt_tensor *const *results, mt_tensor *weight)
{
    mt_tensor *hidden = NULL;
    int64_t rest = mt__rnn_rest((mt__rnn_mode)l->mode) * l->width;
    if (l->mode == MT_RNN_GRU) {
        mt__shape shape = {.n_dims = 2, .sizes = {l->batch, l->n_gates * l->width}};
        MT_TRY(mt__temp_new(l->call, (mt_dtype)results[OUTPUT]->dtype, &shape, &hidden));
    }
    step s = first_step(l, l->reverse);
    bool more = l->n_steps > 0;
    while (more) {
        MT_TRY(add_hidden(l, &s, results, weight, hidden));
        const rows parts[7] = {
            part(results[OUTPUT], s.first, s.rows, l->width),
            part(results[HY], 0, s.rows, l->width),
            part(results[CY], 0, s.rows, l->width),
            part(results[GATES], s.first, s.rows, l->n_gates * l->width),
            part(hidden, 0, s.rows, l->n_gates * l->width),
            part(results[STATES], s.first, s.rows, l->width),
            part(results[REST], s.first, s.rows, rest),
        };
        MT_TRY(launch_cell(l, MT_KERNEL_RNN_CELL, parts, 7));
        more = next_step(l, l->reverse, &s);
    }
    return MT_OK;
}

int mt__run_mkldnn_rnn_layer(mt__call *call)
{
    mt_tensor *input = call->args[INPUT].of.tensor;
    const mt_tensor *weights[2] = {call->args[WEIGHT_IH].of.tensor,
                                   call->args[WEIGHT_HH].of.tensor};
    mt_tensor *dense[3];
    mt_tensor *results[N_RESULTS] = {NULL};
    layer l = {.batch = 0};
    MT_TRY(make_layer(call, weights, REVERSE, &l));
    mt_dtype dtype = (mt_dtype)input->dtype;
    for (uint32_t i = 0; i < 3; i++) {
        MT_TRY(mt__contiguous(call, call->args[i].of.tensor, &dense[i]));
    }
    MT_TRY(begin_state(&l, HX, HY, &results[HY]));
    if (l.mode == MT_RNN_LSTM) {
        MT_TRY(begin_state(&l, CX, CY, &results[CY]));
    }
    mt__shape shape = mt__tensor_shape(input);
    shape.sizes[shape.n_dims - 1] = l.width;
    MT_TRY(mt__result_new(call, OUTPUT, dtype, &shape, &results[OUTPUT]));
    const int64_t widths[] = {l.n_gates, 1, mt__rnn_rest((mt__rnn_mode)l.mode)};
    for (uint32_t i = 0; i < MT_COUNT(widths); i++) {
        mt__shape kept = {.n_dims = 2, .sizes = {l.n_rows, widths[i] * l.width}};
        if (widths[i] != 0) {
            MT_TRY(mt__result_new(call, GATES + i, dtype, &kept, &results[GATES + i]));
        }
    }
    MT_TRY(begin_gates(&l, dense[0], dense[1], results[GATES]));
    return run_steps(&l, results, dense[2]);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* mkldnn_rnn_layer_backward's arguments and results. */
enum {
    BW_INPUT,
    BW_WEIGHT_IH,
    BW_WEIGHT_HH,
    BW_OUTPUT,
    BW_GATES,
    BW_STATES,
    BW_REST,
    BW_GRAD_OUTPUT,
    BW_GRAD_HY,
    BW_GRAD_CY,
    BW_REVERSE
};

enum {
    GRAD_INPUT,
    GRAD_WEIGHT_IH,
    GRAD_WEIGHT_HH,
    GRAD_BIAS_IH,
    GRAD_BIAS_HH,
    GRAD_HX,
    GRAD_CX
};

/* A state's gradient before the last step; it becomes that of the first state. */
static int begin_grad(layer *l, uint32_t arg, uint32_t result, mt_dtype dtype, mt_tensor **out)
{
    mt_tensor *given = mt__arg_tensor(l->call, arg);
    mt__shape shape = {.n_dims = 2, .sizes = {l->batch, l->width}};
    MT_TRY(mt__result_new(l->call, result, dtype, &shape, out));
    return given == NULL ? mt_zero_(*out) : mt__copy_elements(*out, given);
}

/* All arguments 0 to BW_GRAD_OUTPUT, contiguous. */
static int dense_arguments(mt__call *call, mt_tensor **dense)
{
    for (uint32_t i = 0; i <= BW_GRAD_OUTPUT; i++) {
        dense[i] = mt__arg_tensor(call, i);
        if (dense[i] != NULL) {
            MT_TRY(mt__contiguous(call, dense[i], &dense[i]));
        }
    }
    return MT_OK;
}

/* Gradients of gates (hidden: of the part that h gives) and of the first states. */
static int run_steps_back(layer *l, mt_tensor *const *dense, mt_tensor *grad_gates,
                          mt_tensor *grad_hidden, mt_tensor *const grad_states[2])
{
    int64_t width = l->n_gates * l->width;
    int64_t rest = mt__rnn_rest((mt__rnn_mode)l->mode) * l->width;
    bool gru = l->mode == MT_RNN_GRU;
    step s = first_step(l, !l->reverse);
    bool more = l->n_steps > 0;
    while (more) {
        const rows parts[9] = {
            part(grad_gates, s.first, s.rows, width),
            part(gru ? grad_hidden : NULL, s.first, s.rows, width),
            part(grad_states[0], 0, s.rows, l->width),
            part(grad_states[1], 0, s.rows, l->width),
            part(dense[BW_GRAD_OUTPUT], s.first, s.rows, l->width),
            part(dense[BW_OUTPUT], s.first, s.rows, l->width),
            part(dense[BW_GATES], s.first, s.rows, width),
            part(dense[BW_STATES], s.first, s.rows, l->width),
            part(dense[BW_REST], s.first, s.rows, rest),
        };
        MT_TRY(launch_cell(l, MT_KERNEL_RNN_CELL_BACKWARD, parts, 9));
        MT_TRY(multiply(l, parts[2], part(grad_hidden, s.first, s.rows, width), false,
                        part(dense[BW_WEIGHT_HH], 0, width, l->width), false, gru ? 1.0 : 0.0));
        more = next_step(l, !l->reverse, &s);
    }
    return MT_OK;
}

/* grad_gates' given, in two tensors that may be changed. */
static int give_biases(layer *l, mt_tensor *grad_gates, mt_tensor *grad_hidden)
{
    static const int64_t by_row = 0;
    MT_TRY(mt_sum(grad_gates, &by_row, 1, false, mt__result_place(l->call, GRAD_BIAS_IH)));
    if (grad_hidden != grad_gates) {
        return mt_sum(grad_hidden, &by_row, 1, false, mt__result_place(l->call, GRAD_BIAS_HH));
    }
    return mt_clone(l->call->results[GRAD_BIAS_IH].of.tensor,
                    mt__result_place(l->call, GRAD_BIAS_HH));
}

int mt__run_mkldnn_rnn_layer_backward(mt__call *call)
{
    const mt_tensor *weights[2] = {call->args[BW_WEIGHT_IH].of.tensor,
                                   call->args[BW_WEIGHT_HH].of.tensor};
    layer l = {.batch = 0};
    mt_tensor *dense[BW_GRAD_OUTPUT + 1];
    mt_tensor *states[2] = {NULL};
    mt_tensor *made[3];
    MT_TRY(make_layer(call, weights, BW_REVERSE, &l));
    MT_TRY(dense_arguments(call, dense));
    mt_dtype dtype = (mt_dtype)dense[BW_INPUT]->dtype;
    int64_t width = l.n_gates * l.width;
    MT_TRY(check_matrix(&l, dense[BW_GATES], "gates", l.n_rows, width));
    MT_TRY(check_matrix(&l, dense[BW_STATES], "states", l.n_rows, l.width));
    MT_TRY(begin_grad(&l, BW_GRAD_HY, GRAD_HX, dtype, &states[0]));
    if (l.mode == MT_RNN_LSTM) {
        MT_TRY(begin_grad(&l, BW_GRAD_CY, GRAD_CX, dtype, &states[1]));
    }
    mt_tensor *grad_gates = NULL;
    mt__shape shape = {.n_dims = 2, .sizes = {l.n_rows, width}};
    MT_TRY(mt__temp_new(call, dtype, &shape, &grad_gates));
    mt_tensor *grad_hidden = grad_gates;
    if (l.mode == MT_RNN_GRU) {
        MT_TRY(mt__temp_new(call, dtype, &shape, &grad_hidden));
    }
    MT_TRY(run_steps_back(&l, dense, grad_gates, grad_hidden, states));
    for (uint32_t i = 0; i < 3; i++) { /* of input and weights: their sizes */
        mt__shape like = mt__tensor_shape(dense[i]);
        MT_TRY(mt__result_new(call, i, dtype, &like, &made[i]));
    }
    rows gates = part(grad_gates, 0, l.n_rows, width);
    rows input = part(dense[BW_INPUT], 0, l.n_rows, l.in_width);
    MT_TRY(multiply(&l, part(made[0], 0, l.n_rows, l.in_width), gates, false,
                    part(dense[BW_WEIGHT_IH], 0, width, l.in_width), false, 0.0));
    MT_TRY(multiply(&l, part(made[1], 0, width, l.in_width), gates, true, input, false, 0.0));
    MT_TRY(multiply(&l, part(made[2], 0, width, l.width), part(grad_hidden, 0, l.n_rows, width),
                    true, part(dense[BW_STATES], 0, l.n_rows, l.width), false, 0.0));
    return give_biases(&l, grad_gates, grad_hidden);
}
