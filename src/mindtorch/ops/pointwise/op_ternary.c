/* SPDX-License-Identifier: Apache-2.0
 *
 * Three operands: choice, interpolation, fused products, bounds that are tensors.
 */
#include "base/fail.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

/* Operands are the first three arguments; `value` may be NULL. */
static int run_ternary(mt__call *call, mt_ternary code, mt_dtype dtype, const mt_scalar *value)
{
    mt__pointwise what = {
        .kernel = MT_KERNEL_TERNARY,
        .code = (uint16_t)code,
        .n_operands = 3,
        .compute = dtype,
        .result = dtype,
        .operands = {&call->args[0], &call->args[1], &call->args[2]},
    };
    if (value != NULL) {
        what.n_scalars = 1;
        what.scalars[0] = mt__number_as(value, dtype);
    }
    return mt__pointwise_run(call, &what);
}

int mt__run_where(mt__call *call)
{
    const mt_tensor *condition = call->args[0].of.tensor;
    if (condition->dtype != MT_DTYPE_BOOL && condition->dtype != MT_DTYPE_U8) {
        return mtb_fail(MT_ERUNTIME,
                        "where expected condition to be a boolean tensor, but got a tensor with "
                        "dtype %s",
                        mt__type_title((mt_dtype)condition->dtype));
    }
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(&call->args[1], 2, &dtype));
    for (uint32_t i = 1; i <= 2; i++) {
        if (mt__is_number(&call->args[i])) {
            MT_TRY(mt__number_fits(&call->args[i], dtype));
        }
    }
    mt__pointwise what = {
        .kernel = MT_KERNEL_TERNARY,
        .code = MT_TERNARY_WHERE,
        .n_operands = 3,
        .has_condition = true,
        .compute = dtype,
        .result = dtype,
        .operands = {&call->args[0], &call->args[1], &call->args[2]},
    };
    return mt__pointwise_run(call, &what);
}

int mt__run_masked_fill(mt__call *call)
{
    const mt_tensor *self = call->args[0].of.tensor;
    const mt_tensor *mask = call->args[1].of.tensor;
    const mt_value *value = &call->args[2];
    if (mask->dtype != MT_DTYPE_BOOL) {
        return mtb_fail(MT_ERUNTIME,
                        "masked_fill_ only supports boolean masks, but got mask with dtype %s",
                        mt__type_in_c((mt_dtype)mask->dtype));
    }
    if (mask->device != self->device) {
        return mtb_fail(MT_ERUNTIME,
                        "expected self and mask to be on the same device, but got mask on %s and "
                        "self on %s",
                        mt_device_name(mask->device), mt_device_name(self->device));
    }
    mt_dtype dtype = (mt_dtype)self->dtype;
    if (mt__is_number(value)) {
        MT_TRY(mt__number_fits(value, dtype));
    } else if (value->of.tensor->n_dims > 0) {
        return mtb_fail(MT_ERUNTIME,
                        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor "
                        "with %u dimension(s).",
                        value->of.tensor->n_dims);
    }
    mt__pointwise what = {
        .kernel = MT_KERNEL_TERNARY,
        .code = MT_TERNARY_WHERE,
        .n_operands = 3,
        .leader = 2,
        .has_condition = true,
        .compute = dtype,
        .result = dtype,
        .operands = {&call->args[1], value, &call->args[0]},
    };
    return mt__pointwise_run(call, &what);
}

static int check_lerp_type(mt_dtype self, const mt_value *value, const char *name)
{
    if (mt__is_number(value) || value->of.tensor->dtype == self) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME, "expected dtype %s for `%s` but got dtype %s", mt__type_in_c(self),
                    name, mt__type_in_c((mt_dtype)value->of.tensor->dtype));
}

int mt__run_lerp(mt__call *call)
{
    mt_dtype dtype = (mt_dtype)call->args[0].of.tensor->dtype;
    MT_TRY(check_lerp_type(dtype, &call->args[1], "end"));
    MT_TRY(check_lerp_type(dtype, &call->args[2], "weight"));
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mt__refuse_type(
            mt__is_number(&call->args[2]) ? "lerp_kernel_scalar" : "lerp_kernel_tensor", dtype);
    }
    return run_ternary(call, MT_TERNARY_LERP, dtype, NULL);
}

int mt__run_addcmul(mt__call *call)
{
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 3, &dtype));
    if (dtype == MT_DTYPE_BOOL) {
        return mt__refuse_type("addcmul_cpu_out", dtype);
    }
    MT_TRY(mt__number_fits(&call->args[3], dtype));
    return run_ternary(call, MT_TERNARY_ADDCMUL, dtype, &call->args[3]);
}

int mt__run_addcdiv(mt__call *call)
{
    if (mt__tensor_category(call->args[1].of.tensor) != MT_CATEGORY_REAL &&
        mt__tensor_category(call->args[2].of.tensor) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME,
                        "Integer division with addcdiv is no longer supported, and in a future  "
                        "release addcdiv will perform a true division of tensor1 and tensor2");
    }
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 3, &dtype));
    return run_ternary(call, MT_TERNARY_ADDCDIV, dtype, &call->args[3]);
}

/* One bound, argument `arg`. */
static int run_bound(mt__call *call, mt_dtype dtype, mt_binary code, uint32_t arg)
{
    mt__pointwise what = {
        .kernel = MT_KERNEL_BINARY,
        .code = (uint16_t)code,
        .n_operands = 2,
        .compute = dtype,
        .result = dtype,
        .operands = {&call->args[0], &call->args[arg]},
    };
    return mt__pointwise_run(call, &what);
}

int mt__run_clamp_tensor(mt__call *call)
{
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 3, &dtype));
    bool lower = mt__arg_given(call, 1);
    bool upper = mt__arg_given(call, 2);
    if (!lower && !upper) {
        return mtb_fail(MT_ERUNTIME,
                        "torch.clamp: At least one of 'min' or 'max' must not be None");
    }
    if (lower && upper) {
        return dtype == MT_DTYPE_BOOL ? mt__refuse_type("clamp_cpu", dtype)
                                      : run_ternary(call, MT_TERNARY_CLAMP, dtype, NULL);
    }
    return run_bound(call, dtype, lower ? MT_BINARY_MAXIMUM : MT_BINARY_MINIMUM, lower ? 1 : 2);
}

/* ---- derivatives: gradient, input, and two numbers ------------------------------------------ */

/* Of the gradient and `self`, with the numbers c and s[0] of kernel_codes.def. `name` is for
 * errors. */
static int run_slope(mt__call *call, mt_ternary code, const char *name, const mt_value *grad,
                     const mt_value *self, const mt_scalar numbers[2])
{
    const mt_value pair[] = {*grad, *self};
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(pair, 2, &dtype));
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mt__refuse_type(name, dtype);
    }
    const mt_value last = mt__number_as(&numbers[0], dtype);
    mt__pointwise what = {
        .kernel = MT_KERNEL_TERNARY,
        .code = (uint16_t)code,
        .n_operands = 3,
        .compute = dtype,
        .result = dtype,
        MT_SCALARS(mt__number_as(&numbers[1], dtype)),
        .operands = {grad, self, &last},
    };
    return mt__pointwise_run(call, &what);
}

int mt__run_softplus_backward(mt__call *call)
{
    const mt_scalar numbers[] = {call->args[3], call->args[2]};
    return run_slope(call, MT_TERNARY_SOFTPLUS_BACKWARD, mt__op_name(call), &call->args[0],
                     &call->args[1], numbers);
}

int mt__run_hardtanh_backward(mt__call *call)
{
    const mt_scalar numbers[] = {call->args[3], call->args[2]};
    return run_slope(call, MT_TERNARY_HARDTANH_BACKWARD, mt__op_name(call), &call->args[0],
                     &call->args[1], numbers);
}

/* Of hardshrink and softshrink, which are 0 between -lambd and lambd. */
int mt__run_shrink_backward(mt__call *call)
{
    double lambd = mt__arg_real(call, 2);
    const mt_scalar numbers[] = {mt_real(lambd), mt_real(-lambd)};
    return run_slope(call, MT_TERNARY_SHRINK_BACKWARD, "shrink_backward_cpu", &call->args[0],
                     &call->args[1], numbers);
}

int mt__run_log_sigmoid_backward(mt__call *call)
{
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 3, &dtype));
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mt__refuse_type("log_sigmoid_backward_cpu", dtype);
    }
    return run_ternary(call, MT_TERNARY_LOG_SIGMOID_BACKWARD, dtype, NULL);
}

/* From the result y: (y + alpha scale) input_scale where it is not above 0, scale elsewhere. */
static int elu_backward_of_result(mt__call *call)
{
    double alpha = mt__arg_real(call, 1);
    double scale = mt__arg_real(call, 2);
    if (!(alpha >= 0.0)) {
        return mtb_fail(
            MT_ERUNTIME,
            "In-place elu backward calculation is triggered with a negative slope which "
            "is not supported. This is caused by calling in-place forward function with "
            "a negative slope, please call out-of-place version instead.");
    }
    mt_tensor *grad = mt__arg_tensor(call, 0);
    mt_tensor *y = mt__arg_tensor(call, 5);
    mt_tensor **moved = mt__temp(call);
    mt_tensor **slope = mt__temp(call);
    mt_tensor **below = mt__temp(call);
    mt_tensor **above = mt__temp(call);
    mt_tensor **negative = mt__temp(call);
    MT_TRY(mt_add_scalar(y, mt_real(alpha * scale), moved));
    MT_TRY(mt_mul_scalar(*moved, call->args[3], slope));
    MT_TRY(mt_mul(grad, *slope, below));
    MT_TRY(mt_mul_scalar(grad, mt_real(scale), above));
    MT_TRY(mt_le_scalar(y, mt_int(0), negative));
    return mt_where(*negative, *below, *above, mt__result_place(call, 0));
}

int mt__run_elu_backward(mt__call *call)
{
    if (mt__arg_bool(call, 4)) {
        return elu_backward_of_result(call);
    }
    mt_value grad = call->args[0];
    if (mt__arg_real(call, 2) != 1.0) {
        mt_tensor **scaled = mt__temp(call);
        MT_TRY(mt_mul_scalar(grad.of.tensor, call->args[2], scaled));
        grad.of.tensor = *scaled;
    }
    const mt_scalar numbers[] = {call->args[3], call->args[1]};
    return run_slope(call, MT_TERNARY_ELU_BACKWARD, mt__op_name(call), &grad, &call->args[5],
                     numbers);
}

static int run_one_bound(mt__call *call, mt_binary code)
{
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    return run_bound(call, dtype, code, 1);
}

MT_RUN(clamp_min_tensor, run_one_bound, MT_BINARY_MAXIMUM)
MT_RUN(clamp_max_tensor, run_one_bound, MT_BINARY_MINIMUM)
