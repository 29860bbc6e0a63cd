/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of one operand. A table says what each takes and gives:
 *
 *     FLOATING   computes in floating point; integers are converted to the default type
 *     REAL       floating point only
 *     SAME       the type stays
 *     TRUTH      gives bool
 *
 *   UN1  The kernel is called only for types that it supports: floor() of integers is a copy,
 *        isnan() of integers is false, and so on.
 */
#include "base/fail.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <math.h>
#include <string.h>

typedef enum manner {
    FLOATING,
    REAL,
    SAME,
    TRUTH
} manner;

/* One function: its kernel code and torch's name for the kernel, for types that it refuses. */
typedef struct unary {
    mt_unary code;
    manner manner;
    uint32_t types; /* SAME: those it takes */
    const char *kernel;
} unary;

/* The fast path: one contiguous tensor that keeps its type. */
static int run_plain(mt__call *call, mt_unary code, mt_tensor *self)
{
    mt_tensor *out = self;
    if (mt__is_in_place(call)) {
        mt__result_same(call, 0, self);
    } else {
        MT_TRY(mt__tensor_new_like(self, (mt_dtype)self->dtype, &out));
        mt__give(call, 0, out);
    }
    mt_tensor *const tensors[] = {out, self};
    return mt__pointwise_flat(call, MT_KERNEL_UNARY, (uint16_t)code, 2, tensors, 0, NULL);
}

static int run_planned(mt__call *call, mt_unary code, mt_dtype compute, mt_dtype result,
                       uint32_t n_scalars, const mt_scalar *scalars)
{
    mt__pointwise what = {
        .kernel = MT_KERNEL_UNARY,
        .code = (uint16_t)code,
        .n_operands = 1,
        .compute = compute,
        .result = result,
        .n_scalars = n_scalars,
        .operands = {&call->args[0]},
    };
    for (uint32_t i = 0; i < n_scalars; i++) {
        what.scalars[i] = scalars[i];
    }
    return mt__pointwise_run(call, &what);
}

static int run_unary(mt__call *call, const unary *u)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = (mt_dtype)self->dtype;
    bool real = mt_dtype_category(dtype) == MT_CATEGORY_REAL;
    if (MT_LIKELY(real && self->contiguous && u->manner != TRUTH)) {
        return run_plain(call, u->code, self);
    }
    switch (u->manner) {
    case REAL:
        if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
            return mt__refuse_type(u->kernel, dtype);
        }
        break;
    case SAME:
        if (mt_dtype_category(dtype) != MT_CATEGORY_REAL && (u->types >> dtype & 1) == 0) {
            return mt__refuse_type(u->kernel, dtype);
        }
        break;
    case FLOATING: dtype = mt__to_floating(dtype); break;
    case TRUTH: return run_planned(call, u->code, dtype, MT_DTYPE_BOOL, 0, NULL);
    }
    return run_planned(call, u->code, dtype, dtype, 0, NULL);
}

#define UNARY(name, ...)                                 \
    int mt__run_##name(mt__call *call)                   \
    {                                                    \
        static const unary u = {MT_UNARY_##__VA_ARGS__}; \
        return run_unary(call, &u);                      \
    }

UNARY(reciprocal, RECIPROCAL, FLOATING, 0, "")
UNARY(sqrt, SQRT, FLOATING, 0, "")
UNARY(rsqrt, RSQRT, FLOATING, 0, "")
UNARY(exp, EXP, FLOATING, 0, "")
UNARY(expm1, EXPM1, FLOATING, 0, "")
UNARY(log, LOG, FLOATING, 0, "")
UNARY(log1p, LOG1P, FLOATING, 0, "")
UNARY(log2, LOG2, FLOATING, 0, "")
UNARY(log10, LOG10, FLOATING, 0, "")
UNARY(sin, SIN, FLOATING, 0, "")
UNARY(cos, COS, FLOATING, 0, "")
UNARY(tan, TAN, FLOATING, 0, "")
UNARY(tanh, TANH, FLOATING, 0, "")
UNARY(sigmoid, SIGMOID, FLOATING, 0, "")
UNARY(erf, ERF, FLOATING, 0, "")
UNARY(erfc, ERFC, FLOATING, 0, "")
UNARY(sinh, SINH, FLOATING, 0, "")
UNARY(cosh, COSH, FLOATING, 0, "")
UNARY(asin, ASIN, FLOATING, 0, "")
UNARY(acos, ACOS, FLOATING, 0, "")
UNARY(atan, ATAN, FLOATING, 0, "")
UNARY(asinh, ASINH, FLOATING, 0, "")
UNARY(acosh, ACOSH, FLOATING, 0, "")
UNARY(atanh, ATANH, FLOATING, 0, "")
UNARY(exp2, EXP2, FLOATING, 0, "")
UNARY(sinc, SINC, FLOATING, 0, "")
UNARY(frac, FRAC, REAL, 0, "frac_cpu")
UNARY(lgamma, LGAMMA, FLOATING, 0, "")
UNARY(digamma, DIGAMMA, FLOATING, 0, "")
UNARY(erfinv, ERFINV, FLOATING, 0, "")
UNARY(i0, I0, FLOATING, 0, "")
UNARY(i0e, I0E, FLOATING, 0, "")
UNARY(i1, I1, FLOATING, 0, "")
UNARY(i1e, I1E, FLOATING, 0, "")
UNARY(erfcx, ERFCX, FLOATING, 0, "")
UNARY(log_ndtr, LOG_NDTR, FLOATING, 0, "")
UNARY(ndtri, NDTRI, FLOATING, 0, "")
UNARY(entr, ENTR, FLOATING, 0, "")
UNARY(bessel_j0, J0, FLOATING, 0, "")
UNARY(bessel_j1, J1, FLOATING, 0, "")
UNARY(bessel_y0, Y0, FLOATING, 0, "")
UNARY(bessel_y1, Y1, FLOATING, 0, "")
UNARY(bessel_k0, K0, FLOATING, 0, "")
UNARY(bessel_k1, K1, FLOATING, 0, "")
UNARY(bessel_k0e, K0E, FLOATING, 0, "")
UNARY(bessel_k1e, K1E, FLOATING, 0, "")
UNARY(spherical_bessel_j0, SPHERICAL_J0, FLOATING, 0, "")
UNARY(silu, SILU, REAL, 0, "silu_cpu")
UNARY(abs, ABS, SAME, MT_TYPES_INT, "abs_cpu")
UNARY(logical_not, LOGICAL_NOT, TRUTH, 0, "")

int mt__run_log_sigmoid(mt__call *call)
{
    return mt_log_sigmoid_forward(call->args[0].of.tensor, mt__result_place(call, 0),
                                  mt__temp(call));
}

/* The logarithm, and exp(-|x|) for its derivative. */
int mt__run_log_sigmoid_forward(mt__call *call)
{
    static const mt_unary codes[] = {MT_UNARY_LOG_SIGMOID, MT_UNARY_EXP_DECAY};
    mt_tensor *self = call->args[0].of.tensor;
    mt_dtype dtype = (mt_dtype)self->dtype;
    if (mt__tensor_category(self) != MT_CATEGORY_REAL) {
        return mt__refuse_type("log_sigmoid_cpu", dtype);
    }
    for (uint32_t i = 0; i < MT_COUNT(codes); i++) {
        mt_tensor *out = NULL;
        MT_TRY(mt__tensor_new_like(self, dtype, &out));
        mt__give(call, i, out);
        mt__kernel_args args = {
            .kernel = MT_KERNEL_UNARY,
            .code = (uint16_t)codes[i],
            MT_TENSORS(out, self),
        };
        MT_TRY(mt__kernel(call, &args));
    }
    return MT_OK;
}

/* ---- types that need a word of their own ----------------------------------------------------- */

static bool is_bool(const mt__call *call)
{
    return call->args[0].of.tensor->dtype == MT_DTYPE_BOOL;
}

int mt__run_neg(mt__call *call)
{
    static const unary u = {MT_UNARY_NEG, SAME, MT_TYPES_INT, "neg_cpu"};
    if (is_bool(call)) {
        return mtb_fail(
            MT_ERUNTIME,
            "Negation, the `-` operator, on a bool tensor is not supported. If you are "
            "trying to invert a mask, use the `~` or `logical_not()` operator instead.");
    }
    return run_unary(call, &u);
}

int mt__run_relu(mt__call *call)
{
    static const unary u = {MT_UNARY_RELU, SAME, MT_TYPES_INT, "relu_cpu"};
    if (is_bool(call)) {
        return mtb_fail(MT_ERUNTIME, "Boolean inputs not supported for relu");
    }
    return run_unary(call, &u);
}

int mt__run_bitwise_not(mt__call *call)
{
    mt_dtype dtype = (mt_dtype)call->args[0].of.tensor->dtype;
    if (mt_dtype_category(dtype) == MT_CATEGORY_REAL) {
        return mt__refuse_type("bitwise_not_cpu", dtype);
    }
    return run_planned(call, MT_UNARY_BITWISE_NOT, dtype, dtype, 0, NULL);
}

/* The result is a copy of self (UN1). */
static int run_copy(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    if (mt__is_in_place(call)) {
        mt__result_same(call, 0, self);
        return MT_OK;
    }
    return mt__result_copy(call, self, (mt_dtype)self->dtype);
}

int mt__run_sign(mt__call *call)
{
    static const unary u = {MT_UNARY_SIGN, SAME, MT_TYPES_INT, "sign_cpu"};
    return is_bool(call) ? run_copy(call) : run_unary(call, &u);
}

int mt__run_sgn(mt__call *call)
{
    return mt__run_sign(call); /* it differs for complex numbers only */
}

/* Integers are not changed by rounding. */
static int run_rounding(mt__call *call, mt_unary code, const char *kernel)
{
    const unary u = {code, REAL, 0, kernel};
    mt_category category = mt__tensor_category(call->args[0].of.tensor);
    return category == MT_CATEGORY_INT ? run_copy(call) : run_unary(call, &u);
}

MT_RUN(floor, run_rounding, MT_UNARY_FLOOR, "floor_vml_cpu")
MT_RUN(ceil, run_rounding, MT_UNARY_CEIL, "ceil_vml_cpu")
MT_RUN(round, run_rounding, MT_UNARY_ROUND, "round_vml_cpu")
MT_RUN(trunc, run_rounding, MT_UNARY_TRUNC, "trunc_vml_cpu")

/* All integers are finite. */
static int run_classify(mt__call *call, mt_unary code, bool of_integers)
{
    mt_tensor *self = call->args[0].of.tensor;
    if (mt__tensor_category(self) == MT_CATEGORY_REAL) {
        return run_planned(call, code, (mt_dtype)self->dtype, MT_DTYPE_BOOL, 0, NULL);
    }
    mt__shape shape = mt__tensor_shape(self);
    MT_TRY(mt__result_laid_out(call, 0, MT_DTYPE_BOOL, &shape, self));
    const mt_scalar value = mt_bool(of_integers);
    return mt__fill(call->results[0].of.tensor, &value);
}

int mt__run_signbit(mt__call *call)
{
    mt_dtype dtype = (mt_dtype)call->args[0].of.tensor->dtype;
    bool unsigned_only = dtype == MT_DTYPE_U16 || dtype == MT_DTYPE_U32 || dtype == MT_DTYPE_U64;
    return dtype == MT_DTYPE_BOOL || unsigned_only
               ? run_classify(call, MT_UNARY_SIGNBIT, false)
               : run_planned(call, MT_UNARY_SIGNBIT, dtype, MT_DTYPE_BOOL, 0, NULL);
}

MT_RUN(isnan, run_classify, MT_UNARY_ISNAN, false)
MT_RUN(isinf, run_classify, MT_UNARY_ISINF, false)
MT_RUN(isfinite, run_classify, MT_UNARY_ISFINITE, true)

int mt__run_square(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    if (mt__is_in_place(call)) {
        mt__result_same(call, 0, self);
        return mt_pow_scalar_(self, mt_int(2));
    }
    return mt_pow_tensor_scalar(self, mt_int(2), mt__result_place(call, 0));
}

/* ---- activations with parameters ------------------------------------------------------------- */

int mt__run_gelu(mt__call *call)
{
    static const unary exact = {MT_UNARY_GELU, REAL, 0, "GeluKernelImpl"};
    static const unary by_tanh = {MT_UNARY_GELU_TANH, REAL, 0, "GeluKernelImpl"};
    const char *way = call->args[1].of.text;
    if (strcmp(way, "none") == 0) {
        return run_unary(call, &exact);
    }
    if (strcmp(way, "tanh") == 0) {
        return run_unary(call, &by_tanh);
    }
    return mtb_fail(MT_ERUNTIME, "approximate argument must be either none or tanh.");
}

/* Parameters 1 to n_scalars are the kernel's. */
static int run_activation(mt__call *call, mt_unary code, uint32_t n_scalars, const char *kernel)
{
    mt_dtype dtype = (mt_dtype)call->args[0].of.tensor->dtype;
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mt__refuse_type(kernel, dtype);
    }
    return run_planned(call, code, dtype, dtype, n_scalars, &call->args[1]);
}

MT_RUN(leaky_relu, run_activation, MT_UNARY_LEAKY_RELU, 1, "leaky_relu_cpu")
MT_RUN(elu, run_activation, MT_UNARY_ELU, 1, "elu_cpu")
MT_RUN(softplus, run_activation, MT_UNARY_SOFTPLUS, 2, "softplus_cpu")

/* The tensor is parameter 1. */
int mt__run_polygamma(mt__call *call)
{
    int64_t n = mt__arg_int(call, 0);
    if (n < 0) {
        return mtb_fail(MT_ERUNTIME, "polygamma(n, x) does not support negative n.");
    }
    mt_dtype dtype = mt__to_floating((mt_dtype)call->args[1].of.tensor->dtype);
    mt__pointwise what = {.kernel = MT_KERNEL_UNARY,
                          .code = MT_UNARY_POLYGAMMA,
                          .n_operands = 1,
                          .compute = dtype,
                          .result = dtype,
                          .n_scalars = 1,
                          .scalars = {mt_real((double)n)},
                          .operands = {&call->args[1]}};
    return mt__pointwise_run(call, &what);
}

int mt__run_hardtanh(mt__call *call)
{
    mt_dtype dtype = (mt_dtype)call->args[0].of.tensor->dtype;
    if (dtype == MT_DTYPE_BOOL) {
        return mtb_fail(MT_ERUNTIME, "Bool inputs not supported for hardtanh");
    }
    if (mt__arg_real(call, 1) > mt__arg_real(call, 2)) {
        return mtb_fail(MT_EVALUE, "min_val cannot be greater than max_val");
    }
    if (dtype == MT_DTYPE_U8 && (mt__arg_real(call, 1) < 0 || mt__arg_real(call, 2) < 0)) {
        return mtb_fail(MT_ERUNTIME, "cannot do hardtanh on an unsigned type with negative limits");
    }
    MT_TRY(mt__number_fits(&call->args[1], dtype));
    MT_TRY(mt__number_fits(&call->args[2], dtype));
    const mt_scalar bounds[] = {mt__number_as(&call->args[1], dtype),
                                mt__number_as(&call->args[2], dtype)};
    return run_planned(call, MT_UNARY_CLAMP, dtype, dtype, 2, bounds);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static bool is_nan(const mt_scalar *bound)
{
    return bound->kind == MT_KIND_REAL && isnan(bound->of.real);
}

/* A bound that is not a number makes every element so. */
static int fill_nan(mt__call *call, mt_dtype dtype)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt__shape shape = mt__tensor_shape(self);
    if (mt__is_in_place(call)) {
        MT_TRY(mt__check_castable(dtype, (mt_dtype)self->dtype));
        MT_TRY(mt__check_writable(self));
        mt__result_same(call, 0, self);
    } else {
        MT_TRY(mt__result_laid_out(call, 0, dtype, &shape, self));
    }
    const mt_scalar nan_value = mt_real(NAN);
    return mt__fill(call->results[0].of.tensor, &nan_value);
}

/* lower and upper are the indices of the parameters, 0 = there is none. */
static int run_clamp(mt__call *call, uint32_t lower, uint32_t upper, const char *kernel)
{
    mt_value taking_part[3] = {call->args[0], {.kind = MT_KIND_NONE}, {.kind = MT_KIND_NONE}};
    taking_part[1] = lower != 0 ? call->args[lower] : taking_part[1];
    taking_part[2] = upper != 0 ? call->args[upper] : taking_part[2];
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(taking_part, 3, &dtype));
    if (dtype == MT_DTYPE_BOOL) {
        return mt__refuse_type(kernel, dtype);
    }
    mt_dtype own = (mt_dtype)call->args[0].of.tensor->dtype;
    if (mt__is_in_place(call) && mt_dtype_category(dtype) > mt_dtype_category(own)) {
        return mtb_fail(MT_ERUNTIME, "result type %s can't be cast to the desired output type %s",
                        mt__type_title(dtype), mt__type_in_c(own));
    }
    mt_scalar *bounds = &taking_part[1];
    if (is_nan(&bounds[0]) || is_nan(&bounds[1])) {
        return fill_nan(call, dtype);
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (bounds[i].kind != MT_KIND_NONE) {
            MT_TRY(mt__number_fits(&bounds[i], dtype));
            bounds[i] = mt__number_as(&bounds[i], dtype);
        }
    }
    return run_planned(call, MT_UNARY_CLAMP, dtype, dtype, 2, bounds);
}

int mt__run_clamp(mt__call *call)
{
    if (!mt__arg_given(call, 1) && !mt__arg_given(call, 2)) {
        return mtb_fail(MT_ERUNTIME,
                        "torch.clamp: At least one of 'min' or 'max' must not be None");
    }
    return run_clamp(call, 1, 2,
                     !mt__arg_given(call, 2)   ? "clamp_min_scalar_cpu"
                     : !mt__arg_given(call, 1) ? "clamp_max_scalar_cpu"
                                               : "clamp_scalar_cpu");
}

MT_RUN(clamp_min, run_clamp, 1, 0, "clamp_min_scalar_cpu")
MT_RUN(clamp_max, run_clamp, 0, 1, "clamp_max_scalar_cpu")
