/* SPDX-License-Identifier: Apache-2.0
 *
 * Binary cross entropy, from probabilities and from logits.
 *
 *   BCE1  Logarithms of probabilities are clamped to at least -100, so that a loss is never
 *         infinite.
 */
#include "mindtorch/ops/nn/op_nn_support.h"
#include "mindtorch/ops/type_names.h"

#include <math.h>

static const double lowest_log = -100.0;

/* Operands of one type and size. */
typedef struct operands {
    mt_dtype dtype;
    mt__shape shape;
    mt_tensor *self;
    mt_tensor *target;
    mt_tensor *weight; /* or NULL */
} operands;

/* An optional factor, widened to the loss's shape. */
static int widened_factor(mt__call *call, uint32_t arg, const operands *o, mt_tensor **out)
{
    mt_tensor *factor = mt__arg_tensor(call, arg);
    *out = NULL;
    if (factor == NULL) {
        return MT_OK;
    }
    mt__shape wide = o->shape;
    MT_TRY(mt__shape_broadcast(&wide, factor->sizes, factor->n_dims));
    if (!mt__shape_equal(&wide, &o->shape)) {
        char a[MT_SHAPE_TEXT];
        char b[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "output with shape %s doesn't match the broadcast shape %s",
                        mt__shape_text(o->shape.sizes, o->shape.n_dims, a),
                        mt__shape_text(wide.sizes, wide.n_dims, b));
    }
    return mt__nn_operand(call, factor, o->dtype, &o->shape, out);
}

/* Arguments `first` (self), then target and weight?. */
static int make_operands(mt__call *call, uint32_t first, operands *o)
{
    mt_tensor *self = mt__arg_tensor(call, first);
    mt_tensor *target = mt__arg_tensor(call, first + 1);
    o->dtype = (mt_dtype)self->dtype;
    MT_TRY(mt__need_real(call, o->dtype));
    if (target->dtype != self->dtype) {
        return mtb_fail(MT_ERUNTIME, "Found dtype %s but expected %s",
                        mt__type_title((mt_dtype)target->dtype), mt__type_title(o->dtype));
    }
    o->shape = mt__tensor_shape(self);
    MT_TRY(mt__shape_broadcast(&o->shape, target->sizes, target->n_dims));
    MT_TRY(mt__nn_operand(call, self, o->dtype, &o->shape, &o->self));
    MT_TRY(mt__nn_operand(call, target, o->dtype, &o->shape, &o->target));
    return widened_factor(call, first + 2, o, &o->weight);
}

/* Reads the smallest and the largest element to the host, NaN if there is one. Waits once. */
static int extremes(mt__call *call, mt_tensor *tensor, double values[2])
{
    static const uint16_t codes[2] = {MT_REDUCE_MIN, MT_REDUCE_MAX};
    const mt__shape two = {.n_dims = 1, .sizes = {2}};
    const int64_t strides[MT_MAX_DIMS] = {0};
    mt_tensor *out = NULL;
    MT_TRY(mt__temp_new(call, (mt_dtype)tensor->dtype, &two, &out));
    for (uint32_t i = 0; i < 2; i++) {
        mt_tensor **wide = mt__temp(call);
        MT_TRY(mt__tensor_view(out, tensor->sizes, strides, tensor->n_dims, out->offset + i, false,
                               wide));
        mt__kernel_args args = {
            .kernel = MT_KERNEL_REDUCE,
            .code = codes[i],
            MT_TENSORS(*wide, tensor),
        };
        MT_TRY(mt__kernel(call, &args));
    }
    MT_TRY(mt__converted(call, out, MT_DTYPE_F64, &out));
    return mt_tensor_read(out, values, 2 * sizeof(double));
}

/* As torch: a probability outside [0, 1] is an error, NaN too. It has to read the data. */
static int check_range(mt__call *call, uint32_t arg, const char *name)
{
    mt_tensor *tensor = mt__arg_tensor(call, arg);
    if (tensor->numel == 0 || tensor->device == MT_META) {
        return MT_OK;
    }
    double values[2] = {0.0, 0.0};
    MT_TRY(extremes(call, tensor, values));
    if (values[0] >= 0.0 && values[1] <= 1.0) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME, "all elements of %s should be between 0 and 1", name);
}

/* (target - 1) max(log(1 - self), -100) - target max(log(self), -100), times weight */
int mt__run_binary_cross_entropy(mt__call *call)
{
    int64_t reduction = mt__arg_int(call, 3);
    operands o = {.weight = NULL};
    MT_TRY(mt__need_reduction(reduction));
    MT_TRY(mt__need_constant(call, 2));
    MT_TRY(make_operands(call, 0, &o));
    MT_TRY(check_range(call, 0, "input"));
    MT_TRY(check_range(call, 1, "target"));
    mt_tensor *elements = NULL;
    mt_tensor *logs = NULL;
    MT_TRY(mt__loss_elements(call, reduction, o.dtype, &o.shape, &elements));
    MT_TRY(mt__temp_new(call, o.dtype, &o.shape, &logs));
    MT_TRY(mt__nn_unary(call, MT_UNARY_NEG, elements, o.self));
    MT_TRY(mt__nn_unary(call, MT_UNARY_LOG1P, elements, elements));
    MT_TRY(mt__nn_clamp(call, elements, elements, &lowest_log, NULL));
    MT_TRY(mt__nn_binary_scalar(call, MT_BINARY_SUB, logs, o.target, 1.0));
    MT_TRY(mt__nn_binary(call, MT_BINARY_MUL, elements, elements, logs, 1.0));
    MT_TRY(mt__nn_unary(call, MT_UNARY_LOG, logs, o.self));
    MT_TRY(mt__nn_clamp(call, logs, logs, &lowest_log, NULL));
    MT_TRY(mt__nn_binary(call, MT_BINARY_MUL, logs, logs, o.target, 1.0));
    MT_TRY(mt__nn_binary(call, MT_BINARY_SUB, elements, elements, logs, 1.0));
    if (o.weight != NULL) {
        MT_TRY(mt__nn_binary(call, MT_BINARY_MUL, elements, elements, o.weight, 1.0));
    }
    return mt__loss_reduce(call, reduction, elements);
}

/* grad (self - target) / max((1 - self) self, 1e-12), times weight */
int mt__run_binary_cross_entropy_backward(mt__call *call)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    int64_t reduction = mt__arg_int(call, 4);
    const double smallest = 1e-12;
    operands o = {.weight = NULL};
    MT_TRY(mt__need_reduction(reduction));
    MT_TRY(make_operands(call, 1, &o));
    MT_TRY(mt__need_type(grad, o.dtype));
    mt__shape shape = o.shape;
    MT_TRY(mt__shape_broadcast(&shape, grad->sizes, grad->n_dims));
    if (!mt__shape_equal(&shape, &o.shape)) {
        return mtb_fail(MT_ERUNTIME, "binary_cross_entropy_backward(): grad_output does not "
                                     "broadcast to the loss");
    }
    mt_tensor *wide = NULL;
    mt_tensor *out = NULL;
    mt_tensor *below = NULL;
    MT_TRY(mt__nn_operand(call, grad, o.dtype, &shape, &wide));
    MT_TRY(mt__result_new(call, 0, o.dtype, &shape, &out));
    MT_TRY(mt__temp_new(call, o.dtype, &shape, &below));
    MT_TRY(mt__nn_unary(call, MT_UNARY_SQUARE, below, o.self));
    MT_TRY(mt__nn_binary(call, MT_BINARY_SUB, below, o.self, below, 1.0));
    MT_TRY(mt__nn_clamp(call, below, below, &smallest, NULL));
    MT_TRY(mt__nn_binary(call, MT_BINARY_SUB, out, o.self, o.target, 1.0));
    MT_TRY(mt__nn_binary(call, MT_BINARY_DIV, out, out, below, 1.0));
    MT_TRY(mt__nn_binary(call, MT_BINARY_MUL, out, out, wide, 1.0));
    if (o.weight != NULL) {
        MT_TRY(mt__nn_binary(call, MT_BINARY_MUL, out, out, o.weight, 1.0));
    }
    double divisor = mt__loss_divisor(reduction, out->numel);
    return divisor == 1.0 ? MT_OK : mt__nn_binary_scalar(call, MT_BINARY_DIV, out, out, divisor);
}

/* Which shape and type the loss of logits has. torch writes into 1 - target, so target decides. */
static int logits_operands(mt__call *call, operands *o)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *target = mt__arg_tensor(call, 1);
    MT_TRY(mt__need_real(call, (mt_dtype)self->dtype));
    if (mt__tensor_category(target) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME, "result type %s can't be cast to the desired output type %s",
                        mt__type_title((mt_dtype)self->dtype),
                        mt__type_title((mt_dtype)target->dtype));
    }
    MT_TRY(mt__promote_values(call->args, 2, &o->dtype));
    MT_TRY(mt__need_real(call, o->dtype));
    o->shape = mt__tensor_shape(target);
    mt__shape shape = o->shape;
    MT_TRY(mt__shape_broadcast(&shape, self->sizes, self->n_dims));
    if (!mt__shape_equal(&shape, &o->shape)) {
        char a[MT_SHAPE_TEXT];
        char b[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "output with shape %s doesn't match the broadcast shape %s",
                        mt__shape_text(o->shape.sizes, o->shape.n_dims, a),
                        mt__shape_text(shape.sizes, shape.n_dims, b));
    }
    MT_TRY(mt__nn_operand(call, self, o->dtype, &o->shape, &o->self));
    return mt__nn_operand(call, target, o->dtype, &o->shape, &o->target);
}

/* (1 - target) self - (1 + (pos_weight - 1) target) log_sigmoid(self), times weight */
int mt__run_binary_cross_entropy_with_logits(mt__call *call)
{
    int64_t reduction = mt__arg_int(call, 4);
    operands o = {.weight = NULL};
    mt_tensor *positive = NULL;
    MT_TRY(mt__need_reduction(reduction));
    MT_TRY(mt__need_constant(call, 2));
    MT_TRY(mt__need_constant(call, 3));
    MT_TRY(logits_operands(call, &o));
    MT_TRY(widened_factor(call, 2, &o, &o.weight));
    MT_TRY(widened_factor(call, 3, &o, &positive));
    mt_tensor *elements = NULL;
    mt_tensor *logs = NULL;
    MT_TRY(mt__loss_elements(call, reduction, o.dtype, &o.shape, &elements));
    MT_TRY(mt__temp_new(call, o.dtype, &o.shape, &logs));
    MT_TRY(mt__nn_unary(call, MT_UNARY_LOG_SIGMOID, logs, o.self));
    if (positive != NULL) {
        MT_TRY(mt__nn_binary_scalar(call, MT_BINARY_SUB, elements, positive, 1.0));
        MT_TRY(mt__nn_binary(call, MT_BINARY_MUL, elements, elements, o.target, 1.0));
        MT_TRY(mt__nn_binary_scalar(call, MT_BINARY_ADD, elements, elements, 1.0));
        MT_TRY(mt__nn_binary(call, MT_BINARY_MUL, logs, logs, elements, 1.0));
    }
    MT_TRY(mt__nn_binary_scalar(call, MT_BINARY_MUL, elements, o.target, -1.0));
    MT_TRY(mt__nn_binary_scalar(call, MT_BINARY_ADD, elements, elements, 1.0));
    MT_TRY(mt__nn_binary(call, MT_BINARY_MUL, elements, elements, o.self, 1.0));
    MT_TRY(mt__nn_binary(call, MT_BINARY_SUB, elements, elements, logs, 1.0));
    if (o.weight != NULL) {
        MT_TRY(mt__nn_binary(call, MT_BINARY_MUL, elements, elements, o.weight, 1.0));
    }
    return mt__loss_reduce(call, reduction, elements);
}
