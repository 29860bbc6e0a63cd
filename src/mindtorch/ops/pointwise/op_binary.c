/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of two operands.
 *
 * Each op has a fast path for small tensors: two contiguous tensors of one shape and type, or one
 * and a number that does not change the type, go straight to the kernel. Everything else uses the
 * plan (pointwise_plan.h).
 */
#include "base/fail.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <string.h>

static const mt_scalar plain_scalars[2] = {{.kind = MT_KIND_INT, .of.integer = 0},
                                           {.kind = MT_KIND_INT, .of.integer = 1}};

MT_INLINE bool is_plain_pair(const mt_tensor *a, const mt_tensor *b)
{
    if (!a->contiguous || !b->contiguous || a->dtype != b->dtype || a->n_dims != b->n_dims ||
        a->device != b->device) {
        return false;
    }
    for (uint32_t i = 0; i < a->n_dims; i++) {
        if (a->sizes[i] != b->sizes[i]) {
            return false;
        }
    }
    return true;
}

/* A number whose category the tensor's type has already. */
MT_INLINE bool is_plain_number(const mt_tensor *a, const mt_value *b)
{
    static const uint8_t category[MT_KIND_COUNT] = {
        [MT_KIND_BOOL] = MT_CATEGORY_BOOL,
        [MT_KIND_INT] = MT_CATEGORY_INT,
        [MT_KIND_REAL] = MT_CATEGORY_REAL,
    };
    return b->kind != MT_KIND_NONE && a->contiguous && category[b->kind] <= mt__tensor_category(a);
}

/* The fast path, for tensors of the types in `types`. False: it does not apply. */
MT_INLINE bool run_plain(mt__call *call, mt_binary code, uint32_t types, mt_dtype result,
                         int *status)
{
    mt_tensor *a = call->args[0].of.tensor;
    const mt_value *other = &call->args[1];
    mt_tensor *b = other->of.tensor;
    bool pair = other->kind == MT_KIND_TENSOR;
    if ((types >> a->dtype & 1) == 0 ||
        (pair ? !is_plain_pair(a, b) : !is_plain_number(a, other))) {
        return false;
    }
    mt_tensor *out = a;
    if (!mt__is_in_place(call)) {
        *status =
            mt__tensor_new_like(a, result == MT_DTYPE_NONE ? (mt_dtype)a->dtype : result, &out);
        if (MT_UNLIKELY(*status != MT_OK)) {
            return true;
        }
        mt__give(call, 0, out);
    } else if (pair && mt__overlaps_badly(a, b)) {
        return false;
    } else {
        mt__result_same(call, 0, a);
    }
    mt_tensor *const tensors[] = {out, a, b};
    if (MT_LIKELY(pair)) {
        *status = mt__pointwise_flat(call, MT_KERNEL_BINARY, (uint16_t)code, 3, tensors, 0,
                                     plain_scalars);
        return true;
    }
    const mt_scalar scalars[] = {mt__number_as(other, (mt_dtype)a->dtype), plain_scalars[1]};
    *status = mt__pointwise_flat(call, MT_KERNEL_BINARY, (uint16_t)code, 2, tensors, 1, scalars);
    return true;
}

/* The general path for operands 0 and 1. result NONE: the compute type. */
static int run_planned(mt__call *call, mt_binary code, mt_dtype compute, mt_dtype result,
                       const mt_scalar *alpha)
{
    mt__pointwise what = {
        .kernel = MT_KERNEL_BINARY,
        .code = (uint16_t)code,
        .n_operands = 2,
        .compute = compute,
        .result = result == MT_DTYPE_NONE ? compute : result,
        .operands = {&call->args[0], &call->args[1]},
    };
    if (alpha != NULL) {
        what.n_scalars = 1;
        what.scalars[0] = *alpha;
    }
    return mt__pointwise_run(call, &what);
}

/* ---- add, sub, mul --------------------------------------------------------------------------- */

static int check_alpha(const mt_scalar *alpha, mt_dtype dtype)
{
    if (mt_dtype_category(dtype) == MT_CATEGORY_INT && alpha->kind == MT_KIND_INT) {
        MT_TRY(mt__number_fits(alpha, dtype));
    }
    if (alpha->kind == MT_KIND_BOOL && dtype != MT_DTYPE_BOOL) {
        return mtb_fail(MT_ERUNTIME, "Boolean alpha only supported for Boolean results.");
    }
    if (alpha->kind == MT_KIND_REAL && mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME, "For integral input tensors, argument alpha must not be a "
                                     "floating point number.");
    }
    return MT_OK;
}

static bool is_one(const mt_scalar *alpha)
{
    return alpha->kind == MT_KIND_INT && alpha->of.integer == 1;
}

static bool is_bool(const mt_value *value)
{
    return value->kind == MT_KIND_BOOL ||
           (value->kind == MT_KIND_TENSOR && value->of.tensor->dtype == MT_DTYPE_BOOL);
}

static int check_no_bool(const mt__call *call)
{
    if (is_bool(&call->args[0]) && is_bool(&call->args[1])) {
        return mtb_fail(
            MT_ERUNTIME,
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use "
            "the `^` or `logical_xor()` operator instead.");
    }
    if (is_bool(&call->args[0]) || is_bool(&call->args[1])) {
        return mtb_fail(
            MT_ERUNTIME,
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you "
            "are trying to invert a mask, use the `~` or `logical_not()` operator "
            "instead.");
    }
    return MT_OK;
}

int mt__run_add(mt__call *call)
{
    int status = MT_OK;
    const mt_scalar *alpha = &call->args[2];
    if (is_one(alpha) && run_plain(call, MT_BINARY_ADD, MT_TYPES_ALL, MT_DTYPE_NONE, &status)) {
        return status;
    }
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    MT_TRY(check_alpha(alpha, dtype));
    return run_planned(call, MT_BINARY_ADD, dtype, MT_DTYPE_NONE, alpha);
}

int mt__run_sub(mt__call *call)
{
    int status = MT_OK;
    const mt_scalar *alpha = &call->args[2];
    if (is_one(alpha) && !is_bool(&call->args[1]) &&
        run_plain(call, MT_BINARY_SUB, MT_TYPES_NUMBER, MT_DTYPE_NONE, &status)) {
        return status;
    }
    MT_TRY(check_no_bool(call));
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    MT_TRY(check_alpha(alpha, dtype));
    return run_planned(call, MT_BINARY_SUB, dtype, MT_DTYPE_NONE, alpha);
}

int mt__run_rsub(mt__call *call)
{
    MT_TRY(check_no_bool(call));
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    MT_TRY(check_alpha(&call->args[2], dtype));
    mt__pointwise what = {
        .kernel = MT_KERNEL_BINARY,
        .code = MT_BINARY_SUB,
        .n_operands = 2,
        .compute = dtype,
        .result = dtype,
        MT_SCALARS(call->args[2]),
        .operands = {&call->args[1], &call->args[0]},
    };
    return mt__pointwise_run(call, &what);
}

int mt__run_mul(mt__call *call)
{
    int status = MT_OK;
    if (run_plain(call, MT_BINARY_MUL, MT_TYPES_ALL, MT_DTYPE_NONE, &status)) {
        return status;
    }
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    return run_planned(call, MT_BINARY_MUL, dtype, MT_DTYPE_NONE, NULL);
}

/* ---- division -------------------------------------------------------------------------------- */

/* Ops that take numbers of any category but bool. */
static int run_number(mt__call *call, mt_binary code, const char *kernel)
{
    int status = MT_OK;
    if (run_plain(call, code, MT_TYPES_NUMBER, MT_DTYPE_NONE, &status)) {
        return status;
    }
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    if (dtype == MT_DTYPE_BOOL) {
        return mt__refuse_type(kernel, dtype);
    }
    return run_planned(call, code, dtype, MT_DTYPE_NONE, NULL);
}

/* Ops that compute in floating point. */
static int run_floating(mt__call *call, mt_binary code)
{
    int status = MT_OK;
    if (run_plain(call, code, MT_TYPES_REAL, MT_DTYPE_NONE, &status)) {
        return status;
    }
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    return run_planned(call, code, mt__to_floating(dtype), MT_DTYPE_NONE, NULL);
}

int mt__run_div(mt__call *call)
{
    const mt_value *mode = &call->args[2];
    if (MT_LIKELY(mode->kind == MT_KIND_NONE)) {
        return run_floating(call, MT_BINARY_DIV);
    }
    if (strcmp(mode->of.text, "floor") == 0) {
        return run_number(call, MT_BINARY_FLOOR_DIV, "div_floor_cpu");
    }
    if (strcmp(mode->of.text, "trunc") == 0) {
        return run_number(call, MT_BINARY_TRUNC_DIV, "div_trunc_cpu");
    }
    return mtb_fail(MT_ERUNTIME,
                    "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
                    "'%s'",
                    mode->of.text);
}

MT_RUN(floor_divide, run_number, MT_BINARY_FLOOR_DIV, "div_floor_cpu")
MT_RUN(remainder, run_number, MT_BINARY_REMAINDER, "remainder_cpu")
MT_RUN(fmod, run_number, MT_BINARY_FMOD, "fmod_cpu")

MT_RUN(atan2, run_floating, MT_BINARY_ATAN2)

/* Ops whose operands promote to floating point, or are refused. */
static int run_real(mt__call *call, mt_binary code, const char *kernel)
{
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mt__refuse_type(kernel, dtype);
    }
    return run_floating(call, code);
}

MT_RUN(hypot, run_real, MT_BINARY_HYPOT, "hypot_cpu")

MT_RUN(copysign, run_floating, MT_BINARY_COPYSIGN)

MT_RUN(xlogy, run_floating, MT_BINARY_XLOGY)

MT_RUN(zeta, run_floating, MT_BINARY_ZETA)
MT_RUN(xlog1py, run_floating, MT_BINARY_XLOG1PY)
MT_RUN(igamma, run_real, MT_BINARY_GAMMAINC, "igamma_cpu")
MT_RUN(igammac, run_real, MT_BINARY_GAMMAINCC, "igammac_cpu")

MT_RUN(_standard_gamma_grad, run_real, MT_BINARY_GAMMA_SAMPLE_SLOPE, "_standard_gamma_grad_cpu")

MT_RUN(logaddexp, run_real, MT_BINARY_LOGADDEXP, "logaddexp_cpu")
MT_RUN(logaddexp2, run_real, MT_BINARY_LOGADDEXP2, "logaddexp2_cpu")
MT_RUN(nextafter, run_real, MT_BINARY_NEXTAFTER, "nextafter_cpu")

/* ---- power ----------------------------------------------------------------------------------- */

/* bool to the power of a bool number: x or true is x or not exponent. */
static int pow_of_bool(mt__call *call)
{
    const mt_scalar always = mt_bool(call->args[1].of.integer == 0);
    mt__pointwise what = {
        .kernel = MT_KERNEL_BINARY,
        .code = MT_BINARY_BITWISE_OR,
        .n_operands = 2,
        .compute = MT_DTYPE_BOOL,
        .result = MT_DTYPE_BOOL,
        .operands = {&call->args[0], &always},
    };
    return mt__pointwise_run(call, &what);
}

int mt__run_pow(mt__call *call)
{
    const mt_value *base = &call->args[0];
    const mt_value *exponent = &call->args[1];
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    if (dtype == MT_DTYPE_BOOL && mt__is_number(exponent) && !mt__is_number(base)) {
        return pow_of_bool(call);
    }
    if (dtype == MT_DTYPE_BOOL) {
        return mt__refuse_type("pow", dtype);
    }
    if (mt_dtype_category(dtype) == MT_CATEGORY_INT && mt__is_number(exponent)) {
        if (exponent->of.integer < 0) {
            return mtb_fail(MT_ERUNTIME, "Integers to negative integer powers are not allowed.");
        }
        MT_TRY(mt__number_fits(exponent, dtype));
    }
    int status = MT_OK;
    if (!mt__is_number(base) &&
        run_plain(call, MT_BINARY_POW, MT_TYPES_NUMBER, MT_DTYPE_NONE, &status)) {
        return status;
    }
    return run_planned(call, MT_BINARY_POW, dtype, MT_DTYPE_NONE, NULL);
}

/* The power in double, whatever the operands are. */
int mt__run_float_power(mt__call *call)
{
    if (mt__is_in_place(call) && call->args[0].of.tensor->dtype != MT_DTYPE_F64) {
        return mtb_fail(MT_ERUNTIME,
                        "the base given to float_power_ has dtype %s but the operation's result "
                        "requires dtype Double",
                        mt__type_title((mt_dtype)call->args[0].of.tensor->dtype));
    }
    mt_tensor *wide[2] = {NULL, NULL}; /* NULL: a number */
    for (uint32_t i = 0; i < 2; i++) {
        if (!mt__is_number(&call->args[i])) {
            mt_tensor **place = mt__temp(call);
            MT_TRY(mt_to_with(call->args[i].of.tensor, MT_DTYPE_F64, MT_DEVICE_NONE, false, false,
                              place));
            wide[i] = *place;
        }
    }
    const mt_scalar base = mt__number_as(&call->args[0], MT_DTYPE_F64);
    const mt_scalar exponent = mt__number_as(&call->args[1], MT_DTYPE_F64);
    if (mt__is_in_place(call)) {
        mt__result_same(call, 0, wide[0]); /* it was double already */
        return wide[1] != NULL ? mt_pow_(wide[0], wide[1]) : mt_pow_scalar_(wide[0], exponent);
    }
    mt_tensor **out = mt__result_place(call, 0);
    if (wide[0] != NULL && wide[1] != NULL) {
        return mt_pow(wide[0], wide[1], out);
    }
    return wide[0] != NULL ? mt_pow_tensor_scalar(wide[0], exponent, out)
                           : mt_pow_scalar_tensor(base, wide[1], out);
}

/* self times 2 to the power of other */
int mt__run_ldexp(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor **scale = mt__temp(call);
    MT_TRY(mt_pow_scalar_tensor(mt_real(2.0), call->args[1].of.tensor, scale));
    if (mt__is_in_place(call)) {
        MT_TRY(mt_mul_(self, *scale));
        mt__result_same(call, 0, self);
        return MT_OK;
    }
    return mt_mul(self, *scale, mt__result_place(call, 0));
}

/* ---- larger, smaller, bits ------------------------------------------------------------------- */

static int run_any(mt__call *call, mt_binary code, uint32_t types, mt_dtype result)
{
    int status = MT_OK;
    if (run_plain(call, code, types, result, &status)) {
        return status;
    }
    mt_dtype compute = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &compute));
    return run_planned(call, code, compute, result, NULL);
}

static int run_bits(mt__call *call, mt_binary code, const char *kernel)
{
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    if (mt__is_in_place(call)) {
        MT_TRY(mt__check_castable(dtype, (mt_dtype)call->args[0].of.tensor->dtype));
    }
    if (mt_dtype_category(dtype) == MT_CATEGORY_REAL) {
        return mt__refuse_type(kernel, dtype);
    }
    return run_any(call, code, MT_TYPES_BOOL | MT_TYPES_INT, MT_DTYPE_NONE);
}

MT_RUN(maximum, run_any, MT_BINARY_MAXIMUM, MT_TYPES_ALL, MT_DTYPE_NONE)
MT_RUN(minimum, run_any, MT_BINARY_MINIMUM, MT_TYPES_ALL, MT_DTYPE_NONE)

MT_RUN(fmax, run_any, MT_BINARY_FMAX, MT_TYPES_ALL, MT_DTYPE_NONE)
MT_RUN(fmin, run_any, MT_BINARY_FMIN, MT_TYPES_ALL, MT_DTYPE_NONE)

int mt__run_heaviside(mt__call *call)
{
    if (call->args[0].of.tensor->dtype != call->args[1].of.tensor->dtype) {
        return mtb_fail(MT_ERUNTIME,
                        "heaviside is not yet implemented for tensors with different dtypes.");
    }
    return run_any(call, MT_BINARY_HEAVISIDE, MT_TYPES_ALL, MT_DTYPE_NONE);
}

/* Integers other than bool. */
static int run_integer(mt__call *call, mt_binary code, const char *kernel)
{
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    if (mt_dtype_category(dtype) != MT_CATEGORY_INT) {
        return mt__refuse_type(kernel, dtype);
    }
    return mt__is_number(&call->args[0]) ? run_planned(call, code, dtype, MT_DTYPE_NONE, NULL)
                                         : run_any(call, code, MT_TYPES_INT, MT_DTYPE_NONE);
}

MT_RUN(gcd, run_integer, MT_BINARY_GCD, "gcd_cpu")
MT_RUN(lcm, run_integer, MT_BINARY_LCM, "lcm_cpu")
MT_RUN(bitwise_left_shift, run_integer, MT_BINARY_LEFT_SHIFT, "lshift_cpu")
MT_RUN(bitwise_right_shift, run_integer, MT_BINARY_RIGHT_SHIFT, "rshift_cpu")

MT_RUN(bitwise_and, run_bits, MT_BINARY_BITWISE_AND, "bitwise_and_cpu")
MT_RUN(bitwise_or, run_bits, MT_BINARY_BITWISE_OR, "bitwise_or_cpu")
MT_RUN(bitwise_xor, run_bits, MT_BINARY_BITWISE_XOR, "bitwise_xor_cpu")

/* ---- comparisons, logic: results are bool ---------------------------------------------------- */

#define COMPARE(name, code)                                                  \
    int mt__run_##name(mt__call *call)                                       \
    {                                                                        \
        return run_any(call, MT_BINARY_##code, MT_TYPES_ALL, MT_DTYPE_BOOL); \
    }

COMPARE(eq, EQ)
COMPARE(ne, NE)
COMPARE(lt, LT)
COMPARE(le, LE)
COMPARE(gt, GT)
COMPARE(ge, GE)
COMPARE(logical_and, LOGICAL_AND)
COMPARE(logical_or, LOGICAL_OR)
COMPARE(logical_xor, LOGICAL_XOR)

/* ---- derivatives: the incoming gradient and one tensor of the forward pass ------------------- */

#define GRADIENT(name, code)                         \
    int mt__run_##name(mt__call *call)               \
    {                                                \
        return run_floating(call, MT_BINARY_##code); \
    }

GRADIENT(sigmoid_backward, SIGMOID_BACKWARD)
GRADIENT(tanh_backward, TANH_BACKWARD)
GRADIENT(silu_backward, SILU_BACKWARD)
GRADIENT(mish_backward, MISH_BACKWARD)
GRADIENT(hardsigmoid_backward, HARDSIGMOID_BACKWARD)
GRADIENT(hardswish_backward, HARDSWISH_BACKWARD)

int mt__run_leaky_relu_backward(mt__call *call)
{
    if (mt__arg_bool(call, 3) && mt__arg_real(call, 2) < 0.0) {
        return mtb_fail(
            MT_ERUNTIME,
            "In-place leakyReLu backward calculation is triggered with a negative slope "
            "which is not supported. This is caused by calling in-place forward function "
            "with a negative slope, please call out-of-place version instead. File an "
            "issue at https://github.com/pytorch/pytorch if you do require supporting "
            "in-place leakRelu backward calculation with negative slope");
    }
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mt__refuse_type("leaky_relu_backward_cpu", dtype);
    }
    mt_scalar slope = mt__number_as(&call->args[2], dtype);
    return run_planned(call, MT_BINARY_LEAKY_RELU_BACKWARD, dtype, MT_DTYPE_NONE, &slope);
}

int mt__run_gelu_backward(mt__call *call)
{
    const char *way = call->args[2].of.text;
    if (strcmp(way, "none") != 0 && strcmp(way, "tanh") != 0) {
        return mtb_fail(MT_ERUNTIME, "approximate argument must be either none or tanh.");
    }
    return run_floating(call,
                        way[0] == 't' ? MT_BINARY_GELU_TANH_BACKWARD : MT_BINARY_GELU_BACKWARD);
}

int mt__run_threshold_backward(mt__call *call)
{
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    if (dtype == MT_DTYPE_BOOL) {
        return mt__refuse_type("threshold_cpu", dtype);
    }
    MT_TRY(mt__number_fits(&call->args[2], dtype));
    if (mt_dtype_category(dtype) == MT_CATEGORY_INT) { /* the kernel is for gradients */
        mt_tensor **above = mt__temp(call);
        MT_TRY(mt_gt_scalar(call->args[1].of.tensor, call->args[2], above));
        return mt_where_tensor_scalar(*above, call->args[0].of.tensor, mt_int(0),
                                      mt__result_place(call, 0));
    }
    mt_scalar threshold = mt__number_as(&call->args[2], dtype);
    return run_planned(call, MT_BINARY_THRESHOLD_BACKWARD, dtype, MT_DTYPE_NONE, &threshold);
}
