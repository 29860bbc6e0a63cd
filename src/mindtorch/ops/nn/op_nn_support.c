/* SPDX-License-Identifier: Apache-2.0
 *
 * Support for layers and losses: see op_nn_support.h.
 */
#include "mindtorch/ops/nn/op_nn_support.h"

#include "mindtorch/core/thread/thread_state.h"
#include "mindtorch/ops/type_names.h"

#include <math.h>

int mt__need_real(const mt__call *call, mt_dtype dtype)
{
    if (mt_dtype_category(dtype) == MT_CATEGORY_REAL) {
        return MT_OK;
    }
    return mtb_fail(MT_ENOTSUP, "\"%s\" not implemented for '%s'", mt__op_name(call),
                    mt__type_title(dtype));
}

int mt__norm_type(const mt_tensor *input, mt_tensor *const *parameters, uint32_t count,
                  mt_dtype *compute)
{
    bool half = input->dtype == MT_DTYPE_F16 || input->dtype == MT_DTYPE_BF16;
    *compute = (mt_dtype)input->dtype;
    for (uint32_t i = 0; i < count && half; i++) {
        if (parameters[i] != NULL && parameters[i]->dtype == MT_DTYPE_F32) {
            *compute = MT_DTYPE_F32;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (parameters[i] != NULL && parameters[i]->dtype != (uint8_t)*compute) {
            return mtb_fail(MT_ERUNTIME,
                            "mixed dtype (CPU): expect parameter to have scalar type of %s",
                            mt__type_title(*compute));
        }
    }
    return MT_OK;
}

int mt__need_type(const mt_tensor *tensor, mt_dtype dtype)
{
    if (tensor->dtype == (uint8_t)dtype) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME, "expected scalar type %s but found %s", mt__type_title(dtype),
                    mt__type_title((mt_dtype)tensor->dtype));
}

int mt__need_constant(const mt__call *call, uint32_t arg)
{
    const mt_tensor *tensor = mt__arg_tensor(call, arg);
    /* The leaf itself is one level below autograd; deeper means that another leaf called it. */
    if (tensor == NULL || !tensor->requires_grad || mt__thread.grad_disabled ||
        mt__thread.below_autograd > 1) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME,
                    "The function '%s' is not differentiable with respect to argument '%s'. This "
                    "input cannot have requires_grad True.",
                    mt__op_name(call), call->row->params[arg].name);
}

int mt__need_probability(double p)
{
    if (p >= 0.0 && p <= 1.0) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME, "dropout probability has to be between 0 and 1, but got %g", p);
}

int mt__need_reduction(int64_t reduction)
{
    if (reduction >= MT_REDUCTION_NONE && reduction <= MT_REDUCTION_SUM) {
        return MT_OK;
    }
    return mtb_fail(MT_EVALUE, "%lld is not a valid value for reduction", (long long)reduction);
}

int mt__nn_view(mt__call *call, mt_tensor *tensor, const int64_t *sizes, uint32_t n_dims,
                mt_tensor **out)
{
    MT_ASSERT(tensor->contiguous);
    int64_t strides[MT_MAX_DIMS];
    mt__shape_strides(sizes, n_dims, strides);
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt__tensor_view(tensor, sizes, strides, n_dims, tensor->offset, false, place));
    *out = *place;
    return MT_OK;
}

int mt__nn_operand(mt__call *call, mt_tensor *tensor, mt_dtype dtype, const mt__shape *shape,
                   mt_tensor **out)
{
    mt_tensor *converted = NULL;
    MT_TRY(mt__converted(call, tensor, dtype, &converted));
    mt__shape own = mt__tensor_shape(converted);
    if (mt__shape_equal(&own, shape)) {
        *out = converted;
        return MT_OK;
    }
    int64_t strides[MT_MAX_DIMS];
    mt__shape_expand_strides(converted->sizes, converted->strides, converted->n_dims, shape,
                             strides);
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt__tensor_view(converted, shape->sizes, strides, shape->n_dims, converted->offset,
                           false, place));
    *out = *place;
    return MT_OK;
}

int mt__nn_unary(mt__call *call, mt_unary code, mt_tensor *out, mt_tensor *in)
{
    mt__kernel_args args = {
        .kernel = MT_KERNEL_UNARY,
        .code = (uint16_t)code,
        MT_TENSORS(out, in),
    };
    return mt__kernel(call, &args);
}

int mt__nn_clamp(mt__call *call, mt_tensor *out, mt_tensor *in, const double *lower,
                 const double *upper)
{
    mt__kernel_args args = {
        .kernel = MT_KERNEL_UNARY,
        .code = MT_UNARY_CLAMP,
        MT_TENSORS(out, in),
        MT_SCALARS(lower == NULL ? (mt_scalar){.kind = MT_KIND_NONE} : mt_real(*lower),
                   upper == NULL ? (mt_scalar){.kind = MT_KIND_NONE} : mt_real(*upper)),
    };
    return mt__kernel(call, &args);
}

int mt__nn_binary(mt__call *call, mt_binary code, mt_tensor *out, mt_tensor *a, mt_tensor *b,
                  double alpha)
{
    mt__kernel_args args = {
        .kernel = MT_KERNEL_BINARY,
        .code = (uint16_t)code,
        MT_TENSORS(out, a, b),
        MT_INTS(0),
        MT_SCALARS(mt_real(0.0), mt_real(alpha)),
    };
    return mt__kernel(call, &args);
}

int mt__nn_binary_scalar(mt__call *call, mt_binary code, mt_tensor *out, mt_tensor *a, double b)
{
    mt__kernel_args args = {
        .kernel = MT_KERNEL_BINARY,
        .code = (uint16_t)code,
        MT_TENSORS(out, a),
        MT_INTS(1),
        MT_SCALARS(mt_real(b), mt_real(1.0)),
    };
    return mt__kernel(call, &args);
}

int mt__loss_elements(mt__call *call, int64_t reduction, mt_dtype dtype, const mt__shape *shape,
                      mt_tensor **out)
{
    return reduction == MT_REDUCTION_NONE ? mt__result_new(call, 0, dtype, shape, out)
                                          : mt__temp_new(call, dtype, shape, out);
}

int mt__loss_reduce(mt__call *call, int64_t reduction, mt_tensor *elements)
{
    if (reduction == MT_REDUCTION_NONE) {
        return MT_OK; /* mt__loss_elements() gave them as the result */
    }
    mt__shape shape = {.n_dims = 0};
    mt_tensor *out = NULL;
    MT_TRY(mt__result_new(call, 0, (mt_dtype)elements->dtype, &shape, &out));
    bool mean = reduction == MT_REDUCTION_MEAN;
    if (elements->numel == 0) {
        mt__kernel_args fill = {
            .kernel = MT_KERNEL_FILL,
            MT_TENSORS(out),
            MT_SCALARS(mt_real(mean ? (double)NAN : 0.0)),
        };
        return mt__kernel(call, &fill);
    }
    mt_tensor *flat = NULL;
    MT_TRY(mt__nn_view(call, elements, &elements->numel, 1, &flat));
    mt_tensor **wide = mt__temp(call);
    const int64_t no_stride = 0;
    MT_TRY(mt__tensor_view(out, &elements->numel, &no_stride, 1, out->offset, false, wide));
    mt__kernel_args args = {
        .kernel = MT_KERNEL_REDUCE,
        .code = mean ? MT_REDUCE_MEAN : MT_REDUCE_SUM,
        MT_TENSORS(*wide, flat),
    };
    return mt__kernel(call, &args);
}

int mt__loss_mean_or_sum(mt__call *call, mt_tensor *elements, int64_t reduction)
{
    if (reduction == MT_REDUCTION_NONE) {
        mt__result_same(call, 0, elements);
        return MT_OK;
    }
    return reduction == MT_REDUCTION_MEAN
               ? mt_mean(elements, NULL, 0, false, mt__result_place(call, 0))
               : mt_sum(elements, NULL, 0, false, mt__result_place(call, 0));
}
