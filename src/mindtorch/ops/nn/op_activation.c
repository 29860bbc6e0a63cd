/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations that call other rows. They are leaves (except relu6): each has its own node, and an
 * in-place form computes into a temporary and copies it back.
 */
#include "mindtorch/ops/nn/selu_constants.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

/* One of the functions below: reads `self` and the call's numbers. */
typedef int activation(mt__call *call, mt_tensor *self, mt_tensor **out);

static int run_activation(mt__call *call, activation *f)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    if (mt__is_in_place(call)) {
        mt_tensor **beside = mt__temp(call);
        MT_TRY(f(call, self, beside));
        MT_TRY(mt_copy_(self, *beside, false));
        mt__result_same(call, 0, self);
        return MT_OK;
    }
    return f(call, self, mt__result_place(call, 0));
}

/* MT_ENOTSUP "\"mish_cpu\" not implemented for 'Long'" unless it is floating point. */
static int need_floating(const mt_tensor *self, const char *kernel)
{
    mt_dtype dtype = (mt_dtype)self->dtype;
    if (mt__tensor_category(self) == MT_CATEGORY_REAL) {
        return MT_OK;
    }
    return mtb_fail(MT_ENOTSUP, "\"%s\" not implemented for '%s'", kernel, mt__type_title(dtype));
}

int mt__run_relu6(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    if (mt__is_in_place(call)) {
        MT_TRY(mt_hardtanh_(self, mt_int(0), mt_int(6)));
        mt__result_same(call, 0, self);
        return MT_OK;
    }
    return mt_hardtanh(self, mt_int(0), mt_int(6), mt__result_place(call, 0));
}

/* x tanh(softplus(x)) */
static int mish(mt__call *call, mt_tensor *self, mt_tensor **out)
{
    mt_tensor **soft = mt__temp(call);
    mt_tensor **bent = mt__temp(call);
    MT_TRY(need_floating(self, "mish_cpu"));
    MT_TRY(mt_softplus(self, mt_int(1), mt_int(20), soft));
    MT_TRY(mt_tanh(*soft, bent));
    return mt_mul(self, *bent, out);
}

MT_RUN(mish, run_activation, mish)

/* min(max(x + 3, 0), 6), which belongs to the call. */
static int hard_step(mt__call *call, mt_tensor *self, mt_tensor ***out)
{
    mt_tensor **moved = mt__temp(call);
    *out = mt__temp(call);
    MT_TRY(mt_add_scalar(self, mt_int(3), moved));
    return mt_hardtanh(*moved, mt_int(0), mt_int(6), *out);
}

static int hardsigmoid(mt__call *call, mt_tensor *self, mt_tensor **out)
{
    mt_tensor **step = NULL;
    MT_TRY(need_floating(self, "hardsigmoid_cpu"));
    MT_TRY(hard_step(call, self, &step));
    return mt_div_scalar(*step, mt_int(6), out);
}

MT_RUN(hardsigmoid, run_activation, hardsigmoid)

static int hardswish(mt__call *call, mt_tensor *self, mt_tensor **out)
{
    mt_tensor **step = NULL;
    MT_TRY(need_floating(self, "hardswish_cpu"));
    MT_TRY(hard_step(call, self, &step));
    mt_tensor **product = mt__temp(call);
    MT_TRY(mt_mul(self, *step, product));
    return mt_div_scalar(*product, mt_int(6), out);
}

MT_RUN(hardswish, run_activation, hardswish)

static int selu(mt__call *call, mt_tensor *self, mt_tensor **out)
{
    mt_tensor **bent = mt__temp(call);
    MT_TRY(mt_elu(self, mt_real(MT_SELU_ALPHA), bent));
    return mt_mul_scalar(*bent, mt_real(MT_SELU_SCALE), out);
}

MT_RUN(selu, run_activation, selu)

/* x where it is positive, alpha (exp(x / alpha) - 1) elsewhere, for a negative alpha. */
static int celu_negative(mt__call *call, mt_tensor *self, mt_scalar alpha, mt_tensor **out)
{
    mt_tensor **positive = mt__temp(call);
    mt_tensor **scaled = mt__temp(call);
    mt_tensor **grown = mt__temp(call);
    mt_tensor **bent = mt__temp(call);
    MT_TRY(mt_gt_scalar(self, mt_int(0), positive));
    MT_TRY(mt_div_scalar(self, alpha, scaled));
    MT_TRY(mt_expm1(*scaled, grown));
    MT_TRY(mt_mul_scalar(*grown, alpha, bent));
    return mt_where(*positive, self, *bent, out);
}

/* alpha elu(x / alpha) */
static int celu(mt__call *call, mt_tensor *self, mt_tensor **out)
{
    mt_scalar alpha = mt_real(mt__arg_real(call, 1));
    if (alpha.of.real == 0.0) {
        return mtb_fail(MT_ERUNTIME, "ZeroDivisionError: alpha cannot be 0 for CELU");
    }
    MT_TRY(need_floating(self, "elu_cpu"));
    if (alpha.of.real < 0.0) {
        return celu_negative(call, self, alpha, out);
    }
    mt_tensor **scaled = mt__temp(call);
    mt_tensor **bent = mt__temp(call);
    MT_TRY(mt_div_scalar(self, alpha, scaled));
    MT_TRY(mt_elu(*scaled, mt_int(1), bent));
    return mt_mul_scalar(*bent, alpha, out);
}

MT_RUN(celu, run_activation, celu)

/* `value` for elements that are not above the threshold; NaN is kept. */
int mt__run_threshold(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_dtype dtype = (mt_dtype)self->dtype;
    mt_tensor **mask = mt__temp(call);
    if (dtype == MT_DTYPE_BOOL) {
        return mtb_fail(MT_ENOTSUP, "\"threshold_cpu\" not implemented for 'Bool'");
    }
    MT_TRY(mt_le_scalar(self, mt__number_as(&call->args[1], dtype), mask));
    mt_scalar value = mt__number_as(&call->args[2], dtype);
    if (mt__is_in_place(call)) {
        MT_TRY(mt_masked_fill_scalar_(self, *mask, value));
        mt__result_same(call, 0, self);
        return MT_OK;
    }
    return mt_masked_fill_scalar(self, *mask, value, mt__result_place(call, 0));
}

/* The halves of a tensor along `dim`, the second one as a gate. */
static int glu_halves(mt__call *call, mt_tensor *self, int64_t given_dim, mt_tensor **first,
                      mt_tensor **gate)
{
    uint32_t dim = 0;
    if (self->n_dims == 0) {
        return mtb_fail(MT_ERUNTIME, "glu does not support 0-dimensional tensors");
    }
    MT_TRY(mt__wrap_dim(given_dim, self->n_dims, &dim));
    int64_t size = self->sizes[dim];
    if (size % 2 != 0) {
        return mtb_fail(MT_ERUNTIME,
                        "Halving dimension must be even, but dimension %u is size %lld", dim,
                        (long long)size);
    }
    MT_TRY(need_floating(self, "glu_cpu"));
    mt_tensor **front = mt__temp(call);
    mt_tensor **back = mt__temp(call);
    mt_tensor **opened = mt__temp(call);
    MT_TRY(mt_narrow(self, dim, 0, size / 2, front));
    MT_TRY(mt_narrow(self, dim, size / 2, size / 2, back));
    MT_TRY(mt_sigmoid(*back, opened));
    *first = *front;
    *gate = *opened;
    return MT_OK;
}

int mt__run_glu(mt__call *call)
{
    mt_tensor *first = NULL;
    mt_tensor *gate = NULL;
    MT_TRY(glu_halves(call, mt__arg_tensor(call, 0), mt__arg_int(call, 1), &first, &gate));
    return mt_mul(first, gate, mt__result_place(call, 0));
}

int mt__run_glu_backward(mt__call *call)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    mt_tensor *self = mt__arg_tensor(call, 1);
    mt_tensor *first = NULL;
    mt_tensor *gate = NULL;
    mt_tensor **by_first = mt__temp(call);
    mt_tensor **slope = mt__temp(call);
    mt_tensor **by_second = mt__temp(call);
    MT_TRY(glu_halves(call, self, mt__arg_int(call, 2), &first, &gate));
    if (grad->dtype != self->dtype) {
        return mtb_fail(MT_ERUNTIME, "Found dtype %s but expected %s",
                        mt__type_title((mt_dtype)grad->dtype),
                        mt__type_title((mt_dtype)self->dtype));
    }
    MT_TRY(mt_mul(gate, grad, by_first));
    MT_TRY(mt_sigmoid_backward(grad, gate, slope));
    MT_TRY(mt_mul(first, *slope, by_second));
    return mt_cat((mt_tensor *[]){*by_first, *by_second}, 2, mt__arg_int(call, 2),
                  mt__result_place(call, 0));
}

/* One slope, or one a channel, below zero. */
int mt__run_prelu(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *weight = mt__arg_tensor(call, 1);
    int64_t channels = self->n_dims > 1 ? self->sizes[1] : 1;
    if (weight->n_dims > 1) {
        return mtb_fail(MT_ERUNTIME,
                        "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = %u",
                        (unsigned)weight->n_dims);
    }
    if (weight->numel != 1 && weight->numel != channels) {
        return mtb_fail(MT_ERUNTIME,
                        "Mismatch of parameter numbers and input channel size. Found parameter "
                        "numbers = %lld and channel size = %lld.",
                        (long long)weight->numel, (long long)channels);
    }
    if (weight->dtype != self->dtype) {
        return mtb_fail(MT_ERUNTIME, "prelu: Type promoting not supported. Got %s and %s",
                        mt__type_title((mt_dtype)self->dtype),
                        mt__type_title((mt_dtype)weight->dtype));
    }
    MT_TRY(need_floating(self, "prelu_cpu"));
    mt__shape shape = {.n_dims = self->n_dims};
    for (uint32_t i = 0; i < shape.n_dims; i++) {
        shape.sizes[i] = i == 1 ? weight->numel : 1;
    }
    if (weight->n_dims != self->n_dims) {
        mt_tensor **slope = mt__temp(call);
        MT_TRY(mt_reshape(weight, shape.sizes, shape.n_dims, slope));
        weight = *slope;
    }
    return mt__prelu_kernel(self, weight, mt__result_place(call, 0));
}

int mt__run__prelu_kernel(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *weight = mt__arg_tensor(call, 1);
    mt_tensor **positive = mt__temp(call);
    mt_tensor **below = mt__temp(call);
    if (weight->dtype != self->dtype) {
        return mtb_fail(MT_ERUNTIME, "Found dtype %s but expected %s",
                        mt__type_title((mt_dtype)weight->dtype),
                        mt__type_title((mt_dtype)self->dtype));
    }
    MT_TRY(need_floating(self, "prelu_cpu"));
    MT_TRY(mt_gt_scalar(self, mt_int(0), positive));
    MT_TRY(mt_mul(self, weight, below));
    return mt_where(*positive, self, *below, mt__result_place(call, 0));
}

/* By the input, and by the slope before it is summed to the slope's sizes. */
int mt__run__prelu_kernel_backward(mt__call *call)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    mt_tensor *self = mt__arg_tensor(call, 1);
    mt_tensor **positive = mt__temp(call);
    mt_tensor **below = mt__temp(call);
    mt_tensor **share = mt__temp(call);
    MT_TRY(need_floating(self, "prelu_backward_cpu"));
    MT_TRY(mt_gt_scalar(self, mt_int(0), positive));
    MT_TRY(mt_mul(grad, mt__arg_tensor(call, 2), below));
    MT_TRY(mt_where(*positive, grad, *below, mt__result_place(call, 0)));
    MT_TRY(mt_mul(grad, self, share));
    return mt_masked_fill_scalar(*share, *positive, mt_int(0), mt__result_place(call, 1));
}
