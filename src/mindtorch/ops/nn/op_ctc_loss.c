/* SPDX-License-Identifier: Apache-2.0
 *
 * Connectionist temporal classification: how likely a network's classes, step by step, spell a
 * sequence of labels. Targets are [N, S], padded, or the labels of all samples one after the other.
 * Lengths are lists or tensors; kernels get them as a table with a row for each sample.
 */
#include "base/alloc.h"
#include "mindtorch/ops/nn/op_nn_support.h"
#include "mindtorch/ops/type_names.h"

#include <math.h>

/* Positions in ctc_loss and _ctc_loss, and one further in the derivative. */
enum {
    LOG_PROBS,
    TARGETS,
    INPUT_LENGTHS,
    TARGET_LENGTHS,
    BLANK,
    REDUCTION, /* zero_infinity in _ctc_loss, after two more tensors in the derivative */
    ZERO_INFINITY
};

enum {
    FACTS = 3 /* of a sample: its steps, its labels, the place of the first label */
};

#define CHECKED "(while checking arguments for ctc_loss_allocate_outputs)"

/* ---- lengths --------------------------------------------------------------------------------- */

/* A tensor of integers as a list that the call holds. */
static int read_lengths(mt__call *call, uint32_t arg, const int64_t **list, int64_t *count)
{
    static const int64_t none = 0;
    mt_tensor *tensor = mt__arg_tensor(call, arg);
    mt_tensor *dense = NULL;
    if (mt_dtype_category((mt_dtype)tensor->dtype) != MT_CATEGORY_INT) {
        return mtb_fail(MT_ERUNTIME, "%s must be integral", call->row->params[arg].name);
    }
    mt_tensor **home = mt__temp(call);
    MT_TRY(mt_to_with(tensor, MT_DTYPE_I64, MT_CPU, false, false, home));
    MT_TRY(mt__contiguous(call, *home, &dense));
    *list = dense->numel == 0 ? &none : mt_tensor_data(dense);
    *count = dense->numel;
    return MT_OK;
}

/* Sizes of a call, checked. */
typedef struct ctc_sizes {
    int64_t steps, batch, classes, most_labels;
    const int64_t *inputs, *labels;
    bool is_padded;
} ctc_sizes;

static int check_length(const char *name, int64_t length, int64_t most)
{
    if (length < 0) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected %s to have value at least 0, but got value %lld " CHECKED, name,
                        (long long)length);
    }
    if (length > most) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected %s to have value at most %lld, but got value %lld " CHECKED, name,
                        (long long)most, (long long)length);
    }
    return MT_OK;
}

static int check_count(const mt_value *list, const char *name, int64_t batch)
{
    return (int64_t)list->count == batch
               ? MT_OK
               : mtb_fail(MT_ERUNTIME, "%s must be of size batch_size", name);
}

static int check_targets(const mt_tensor *targets, const ctc_sizes *c, int64_t total)
{
    if (targets->n_dims < 1 || targets->n_dims > 2) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected 1 to 2 dimensions, but got %u-dimensional tensor for argument #2 "
                        "'targets' " CHECKED,
                        (unsigned)targets->n_dims);
    }
    int64_t first = c->is_padded ? c->batch : total;
    if (targets->sizes[0] != first) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected tensor to have size %lld at dimension 0, but got size %lld for "
                        "argument #2 'targets' " CHECKED,
                        (long long)first, (long long)targets->sizes[0]);
    }
    if (c->is_padded && targets->sizes[1] < c->most_labels) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected tensor to have size at least %lld at dimension 1, but got size "
                        "%lld for argument #2 'targets' " CHECKED,
                        (long long)c->most_labels, (long long)targets->sizes[1]);
    }
    return MT_OK;
}

/* `first` is log_probs' position. */
static int check_arguments(const mt__call *call, uint32_t first, ctc_sizes *c)
{
    const mt_tensor *log_probs = mt__arg_tensor(call, first + LOG_PROBS);
    const mt_tensor *targets = mt__arg_tensor(call, first + TARGETS);
    const mt_value *inputs = &call->args[first + INPUT_LENGTHS];
    const mt_value *labels = &call->args[first + TARGET_LENGTHS];
    int64_t total = 0;
    if (log_probs->numel == 0) {
        return mtb_fail(MT_ERUNTIME, "log_probs tensor must not be empty");
    }
    if (log_probs->dtype != MT_DTYPE_F32 && log_probs->dtype != MT_DTYPE_F64) {
        return mt__refuse_type("ctc_loss_cpu", (mt_dtype)log_probs->dtype);
    }
    if (log_probs->n_dims != 3) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected 3-dimensional tensor, but got %u-dimensional tensor for argument "
                        "#1 'log_probs' " CHECKED,
                        (unsigned)log_probs->n_dims);
    }
    *c = (ctc_sizes){.steps = log_probs->sizes[0],
                     .batch = log_probs->sizes[1],
                     .classes = log_probs->sizes[2],
                     .inputs = inputs->of.ints,
                     .labels = labels->of.ints,
                     .is_padded = targets->n_dims != 1};
    int64_t blank = mt__arg_int(call, first == 0 ? BLANK : first + BLANK + 2);
    if (blank < 0 || blank >= c->classes) {
        return mtb_fail(MT_ERUNTIME, "blank must be in label range");
    }
    MT_TRY(check_count(inputs, "input_lengths", c->batch));
    MT_TRY(check_count(labels, "target_lengths", c->batch));
    for (int64_t i = 0; i < c->batch; i++) {
        MT_TRY(check_length("input_lengths", c->inputs[i], c->steps));
        MT_TRY(check_length("target_lengths", c->labels[i], INT32_MAX));
        total += c->labels[i];
        c->most_labels = c->labels[i] > c->most_labels ? c->labels[i] : c->most_labels;
    }
    return check_targets(targets, c, total);
}

/* What the kernels need besides log_probs: flat targets and the table, on the call's device. */
static int take_operands(mt__call *call, uint32_t first, const ctc_sizes *c, mt_tensor **flat,
                         mt_tensor **table)
{
    mt_tensor *targets = mt__arg_tensor(call, first + TARGETS);
    mt_tensor *wide = NULL;
    mt_tensor *dense = NULL;
    int64_t *facts = mtb_calloc((size_t)(c->batch * FACTS), sizeof(int64_t));
    mt_tensor **place = mt__temp(call);
    if (facts == NULL) {
        return mtb_fail(MT_ENOMEM, "%s(): no memory for %lld samples", mt__op_name(call),
                        (long long)c->batch);
    }
    int64_t label = 0;
    for (int64_t i = 0; i < c->batch; i++) {
        facts[i * FACTS] = c->inputs[i];
        facts[i * FACTS + 1] = c->labels[i];
        facts[i * FACTS + 2] = label;
        label += c->is_padded ? targets->sizes[1] : c->labels[i];
    }
    int status = mt_tensor_from_data(facts, MT_DTYPE_I64, (const int64_t[]){c->batch, FACTS}, 2,
                                     call->device, place);
    mtb_free(facts);
    MT_TRY(status);
    *table = *place;
    MT_TRY(mt__converted(call, targets, MT_DTYPE_I64, &wide));
    MT_TRY(mt__contiguous(call, wide, &dense));
    return mt__nn_view(call, dense, &dense->numel, 1, flat);
}

/* ---- leaves ---------------------------------------------------------------------------------- */

int mt__run__ctc_loss(mt__call *call)
{
    mt_tensor *log_probs = mt__arg_tensor(call, LOG_PROBS);
    ctc_sizes c = {0};
    MT_TRY(check_arguments(call, 0, &c));
    mt__shape losses = {.n_dims = 1, .sizes = {c.batch}};
    mt__shape alphas = {.n_dims = 3, .sizes = {c.batch, c.steps, 2 * c.most_labels + 1}};
    mt__kernel_args args = {
        .kernel = MT_KERNEL_CTC_LOSS,
        MT_TENSORS(NULL, NULL, log_probs, NULL, NULL),
        MT_INTS(mt__arg_int(call, BLANK)),
    };
    MT_TRY(mt__result_new(call, 0, (mt_dtype)log_probs->dtype, &losses, &args.tensors[0]));
    MT_TRY(mt__result_new(call, 1, (mt_dtype)log_probs->dtype, &alphas, &args.tensors[1]));
    MT_TRY(take_operands(call, 0, &c, &args.tensors[3], &args.tensors[4]));
    return mt__kernel(call, &args);
}

int mt__run__ctc_loss_backward(mt__call *call)
{
    enum {
        FIRST = 1,
        LOSS = FIRST + BLANK,
        LOG_ALPHA
    };
    mt_tensor *grad = mt__arg_tensor(call, 0);
    mt_tensor *log_probs = mt__arg_tensor(call, FIRST + LOG_PROBS);
    mt_tensor *loss = mt__arg_tensor(call, LOSS);
    mt_tensor *log_alpha = mt__arg_tensor(call, LOG_ALPHA);
    ctc_sizes c = {0};
    MT_TRY(check_arguments(call, FIRST, &c));
    const int64_t alphas[3] = {c.batch, c.steps, 2 * c.most_labels + 1};
    bool fits = grad->n_dims == 1 && grad->sizes[0] == c.batch && loss->n_dims == 1 &&
                loss->sizes[0] == c.batch && log_alpha->n_dims == 3;
    for (uint32_t i = 0; fits && i < 3; i++) {
        fits = log_alpha->sizes[i] == alphas[i];
    }
    if (!fits) {
        char text[3][MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "_ctc_loss_backward(): grad of size %s, losses of size %s and log_alpha of "
                        "size %s do not belong to %lld samples of %lld steps and %lld labels",
                        mt__shape_text(grad->sizes, grad->n_dims, text[0]),
                        mt__shape_text(loss->sizes, loss->n_dims, text[1]),
                        mt__shape_text(log_alpha->sizes, log_alpha->n_dims, text[2]),
                        (long long)c.batch, (long long)c.steps, (long long)c.most_labels);
    }
    MT_TRY(mt__need_type(grad, (mt_dtype)log_probs->dtype));
    MT_TRY(mt__need_type(loss, (mt_dtype)log_probs->dtype));
    MT_TRY(mt__need_type(log_alpha, (mt_dtype)log_probs->dtype));
    mt__shape shape = mt__tensor_shape(log_probs);
    mt__kernel_args args = {
        .kernel = MT_KERNEL_CTC_LOSS_BACKWARD,
        MT_TENSORS(NULL, grad, log_probs, NULL, NULL, loss, NULL),
        MT_INTS(mt__arg_int(call, LOG_ALPHA + 1), mt__arg_bool(call, LOG_ALPHA + 2)),
    };
    MT_TRY(mt__result_new(call, 0, (mt_dtype)log_probs->dtype, &shape, &args.tensors[0]));
    MT_TRY(take_operands(call, FIRST, &c, &args.tensors[3], &args.tensors[4]));
    MT_TRY(mt__contiguous(call, log_alpha, &args.tensors[6]));
    return mt__kernel(call, &args);
}

/* ---- the loss -------------------------------------------------------------------------------- */

/* Each loss by its number of labels, at least 1; the mean of that. */
static int mean_by_labels(mt__call *call, mt_tensor *losses, const int64_t *labels, int64_t count)
{
    double *divisors = mtb_calloc((size_t)count + 1, sizeof(double));
    mt_tensor **wide = mt__temp(call);
    mt_tensor **typed = mt__temp(call);
    mt_tensor **each = mt__temp(call);
    if (divisors == NULL) {
        return mtb_fail(MT_ENOMEM, "%s(): no memory for %lld samples", mt__op_name(call),
                        (long long)count);
    }
    for (int64_t i = 0; i < count; i++) {
        divisors[i] = labels[i] > 1 ? (double)labels[i] : 1;
    }
    int status = mt_tensor_from_data(divisors, MT_DTYPE_F64, &count, 1, losses->device, wide);
    mtb_free(divisors);
    MT_TRY(status);
    MT_TRY(mt_to_with(*wide, (mt_dtype)losses->dtype, losses->device, false, false, typed));
    MT_TRY(mt_div(losses, *typed, each));
    return mt_mean(*each, NULL, 0, false, mt__result_place(call, 0));
}

int mt__run_ctc_loss(mt__call *call)
{
    mt_tensor *log_probs = mt__arg_tensor(call, LOG_PROBS);
    mt_tensor *targets = mt__arg_tensor(call, TARGETS);
    int64_t reduction = mt__arg_int(call, REDUCTION);
    bool is_batch = log_probs->n_dims == 3;
    const int64_t *lists[2] = {call->args[INPUT_LENGTHS].of.ints,
                               call->args[TARGET_LENGTHS].of.ints};
    int64_t counts[2] = {call->args[INPUT_LENGTHS].count, call->args[TARGET_LENGTHS].count};
    call->device = log_probs->device;
    MT_TRY(mt__need_reduction(reduction));
    for (uint32_t i = 0; i < 2 && call->args[INPUT_LENGTHS].kind == MT_KIND_TENSOR; i++) {
        MT_TRY(read_lengths(call, INPUT_LENGTHS + i, &lists[i], &counts[i]));
    }
    if (targets->device != log_probs->device || targets->dtype != MT_DTYPE_I64) {
        mt_tensor **moved = mt__temp(call);
        MT_TRY(mt_to_with(targets, MT_DTYPE_I64, log_probs->device, false, false, moved));
        targets = *moved;
    }
    if (!is_batch) {
        mt_tensor **batch = mt__temp(call);
        MT_TRY(mt_unsqueeze(log_probs, 1, batch));
        log_probs = *batch;
    }
    mt_tensor **losses = mt__temp(call);
    mt_tensor **alphas = mt__temp(call);
    MT_TRY(mt__ctc_loss(log_probs, targets, lists[0], (size_t)counts[0], lists[1],
                        (size_t)counts[1], mt__arg_int(call, BLANK),
                        mt__arg_bool(call, ZERO_INFINITY), losses, alphas));
    mt_tensor *found = *losses;
    if (mt__arg_bool(call, ZERO_INFINITY)) {
        mt_tensor **infinite = mt__temp(call);
        mt_tensor **kept = mt__temp(call);
        MT_TRY(mt_eq_scalar(found, mt_real(HUGE_VAL), infinite));
        MT_TRY(mt_where_scalar_tensor(*infinite, mt_int(0), found, kept));
        found = *kept;
    }
    if (reduction == MT_REDUCTION_MEAN) {
        return mean_by_labels(call, found, lists[1], counts[1]);
    }
    if (reduction == MT_REDUCTION_NONE && !is_batch) {
        return mt_squeeze_dim(found, 0, mt__result_place(call, 0));
    }
    return mt__loss_mean_or_sum(call, found, reduction);
}
