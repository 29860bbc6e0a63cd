/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses of a difference: mse_loss, l1_loss, smooth_l1_loss, and their derivatives. Operands are
 * broadcast and promoted; a mean divides by the broadcast number of elements, in the derivative
 * too.
 */
#include "mindtorch/ops/nn/op_nn_support.h"

/* self - target, over their common type and shape. */
typedef struct difference {
    mt_dtype dtype;
    mt__shape shape;
    mt_tensor *self;
    mt_tensor *target;
} difference;

/* Arguments `first` and `first + 1`. */
static int make_difference(mt__call *call, uint32_t first, difference *d)
{
    mt_tensor *self = mt__arg_tensor(call, first);
    mt_tensor *target = mt__arg_tensor(call, first + 1);
    d->shape = mt__tensor_shape(self);
    MT_TRY(mt__shape_broadcast(&d->shape, target->sizes, target->n_dims));
    MT_TRY(mt__promote_values(&call->args[first], 2, &d->dtype));
    MT_TRY(mt__need_real(call, d->dtype));
    MT_TRY(mt__nn_operand(call, self, d->dtype, &d->shape, &d->self));
    return mt__nn_operand(call, target, d->dtype, &d->shape, &d->target);
}

/* Whether torch has the loss for the types: integers alone have none. */
static int begin_loss(mt__call *call, int64_t reduction, difference *d, mt_tensor **elements)
{
    MT_TRY(mt__need_reduction(reduction));
    MT_TRY(make_difference(call, 0, d));
    MT_TRY(mt__loss_elements(call, reduction, d->dtype, &d->shape, elements));
    return mt__nn_binary(call, MT_BINARY_SUB, *elements, d->self, d->target, 1.0);
}

int mt__run_mse_loss(mt__call *call)
{
    int64_t reduction = mt__arg_int(call, 2);
    difference d = {.self = NULL};
    mt_tensor *elements = NULL;
    MT_TRY(begin_loss(call, reduction, &d, &elements));
    MT_TRY(mt__nn_unary(call, MT_UNARY_SQUARE, elements, elements));
    return mt__loss_reduce(call, reduction, elements);
}

int mt__run_l1_loss(mt__call *call)
{
    int64_t reduction = mt__arg_int(call, 2);
    MT_TRY(mt__need_reduction(reduction));
    mt_tensor **distance = mt__temp(call);
    mt_tensor **size = mt__temp(call);
    MT_TRY(mt_sub(mt__arg_tensor(call, 0), mt__arg_tensor(call, 1), distance));
    MT_TRY(mt_abs(*distance, size));
    return mt__loss_mean_or_sum(call, *size, reduction);
}

static int check_beta(double beta)
{
    if (beta >= 0.0) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME, "smooth_l1_loss does not support negative values for beta.");
}

/* With d = self - target and c = d held between -beta and beta, both pieces are c (d - c / 2) /
 * beta. The division is left to the end, where a reduced loss is a single number. */
int mt__run_smooth_l1_loss(mt__call *call)
{
    int64_t reduction = mt__arg_int(call, 2);
    double beta = mt__arg_real(call, 3);
    MT_TRY(check_beta(beta));
    difference d = {.self = NULL};
    mt_tensor *elements = NULL;
    MT_TRY(begin_loss(call, reduction, &d, &elements));
    if (beta == 0.0) {
        MT_TRY(mt__nn_unary(call, MT_UNARY_ABS, elements, elements));
        return mt__loss_reduce(call, reduction, elements);
    }
    double lower = -beta;
    mt_tensor *held = NULL;
    MT_TRY(mt__temp_new(call, d.dtype, &d.shape, &held));
    MT_TRY(mt__nn_clamp(call, held, elements, &lower, &beta));
    MT_TRY(mt__nn_binary(call, MT_BINARY_SUB, elements, elements, held, 0.5));
    MT_TRY(mt__nn_binary(call, MT_BINARY_MUL, elements, elements, held, 1.0));
    MT_TRY(mt__loss_reduce(call, reduction, elements));
    mt_tensor *out = call->results[0].of.tensor;
    return beta == 1.0 ? MT_OK : mt__nn_binary_scalar(call, MT_BINARY_DIV, out, out, beta);
}

/* Derivatives: arguments grad_output, self, target, reduction. Result 0 becomes grad * slope, where
 * the slope's elements are in `slope` (which is written). */
static int finish_backward(mt__call *call, const difference *d, mt_tensor *slope, double scale)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    mt_tensor *self = mt__arg_tensor(call, 1);
    mt__shape shape = d->shape;
    MT_TRY(mt__shape_broadcast(&shape, grad->sizes, grad->n_dims));
    if (!mt__shape_equal(&shape, &d->shape)) {
        char text[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "%s(): grad_output of size %s does not broadcast to the loss",
                        mt__op_name(call), mt__shape_text(grad->sizes, grad->n_dims, text));
    }
    mt_tensor *small = NULL;
    mt__shape grad_shape = mt__tensor_shape(grad);
    MT_TRY(mt__converted(call, grad, d->dtype, &small));
    if (scale != 1.0) { /* the gradient is the smaller one, often a single number */
        mt_tensor *scaled = NULL;
        MT_TRY(mt__temp_new(call, d->dtype, &grad_shape, &scaled));
        MT_TRY(mt__nn_binary_scalar(call, MT_BINARY_MUL, scaled, small, scale));
        small = scaled;
    }
    mt_tensor *wide = NULL;
    MT_TRY(mt__nn_operand(call, small, d->dtype, &shape, &wide));
    if (self->dtype == (uint8_t)d->dtype) {
        mt_tensor *out = NULL;
        MT_TRY(mt__result_new(call, 0, d->dtype, &shape, &out));
        return mt__nn_binary(call, MT_BINARY_MUL, out, slope, wide, 1.0);
    }
    mt_tensor *out = NULL;
    MT_TRY(mt__nn_binary(call, MT_BINARY_MUL, slope, slope, wide, 1.0));
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &out));
    return mt__copy_elements(out, slope);
}

static int begin_backward(mt__call *call, difference *d, mt_tensor **slope)
{
    MT_TRY(mt__need_reduction(mt__arg_int(call, 3)));
    MT_TRY(mt__need_real(call, (mt_dtype)mt__arg_tensor(call, 1)->dtype));
    MT_TRY(make_difference(call, 1, d));
    MT_TRY(mt__temp_new(call, d->dtype, &d->shape, slope));
    return mt__nn_binary(call, MT_BINARY_SUB, *slope, d->self, d->target, 1.0);
}

int mt__run_mse_loss_backward(mt__call *call)
{
    difference d = {.self = NULL};
    mt_tensor *slope = NULL;
    MT_TRY(begin_backward(call, &d, &slope));
    return finish_backward(call, &d, slope,
                           2.0 / mt__loss_divisor(mt__arg_int(call, 3), slope->numel));
}

int mt__run_smooth_l1_loss_backward(mt__call *call)
{
    double beta = mt__arg_real(call, 4);
    MT_TRY(check_beta(beta));
    difference d = {.self = NULL};
    mt_tensor *slope = NULL;
    MT_TRY(begin_backward(call, &d, &slope));
    if (beta > 0.0) {
        double lower = -beta;
        MT_TRY(mt__nn_clamp(call, slope, slope, &lower, &beta));
    } else {
        MT_TRY(mt__nn_unary(call, MT_UNARY_SIGN, slope, slope));
    }
    double divisor = mt__loss_divisor(mt__arg_int(call, 3), slope->numel);
    return finish_backward(call, &d, slope, 1.0 / (beta > 0.0 ? beta * divisor : divisor));
}
