/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_UNARY against plain references: every code and type, in every layout, at every
 * instruction set, with special numbers among the elements.
 */
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"
#include "support/pointwise_values.h"

#include <math.h>

static const double scalars[2] = {-0.75, 1.25}; /* CLAMP, HARDTANH, LEAKY_RELU ... for reals */
static const int64_t whole[2] = {-5, 6};        /* for integers */

/* ---- references ---- */

static long double sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}

static long double clamp(long double x, long double lower, long double upper)
{
    return isnan(x) ? x : fminl(fmaxl(x, lower), upper);
}

/* Beyond `edge` softplus is its argument; log(1 + exp) inside. */
static long double softplus(long double x, long double beta, long double edge)
{
    return x * beta > edge ? x : log1pl(expl(x * beta)) / beta;
}

static long double expected_function(uint16_t code, long double x)
{
    switch (code) {
    case MT_UNARY_EXP: return expl(x);
    case MT_UNARY_EXPM1: return expm1l(x);
    case MT_UNARY_LOG: return logl(x);
    case MT_UNARY_LOG1P: return log1pl(x);
    case MT_UNARY_LOG2: return log2l(x);
    case MT_UNARY_LOG10: return log10l(x);
    case MT_UNARY_SIN: return sinl(x);
    case MT_UNARY_COS: return cosl(x);
    case MT_UNARY_TAN: return tanl(x);
    case MT_UNARY_TANH: return tanhl(x);
    case MT_UNARY_SIGMOID: return sigmoid(x);
    case MT_UNARY_ERF: return erfl(x);
    case MT_UNARY_ERFC: return erfcl(x);
    case MT_UNARY_SINH: return sinhl(x);
    case MT_UNARY_COSH: return coshl(x);
    case MT_UNARY_ASIN: return asinl(x);
    case MT_UNARY_ACOS: return acosl(x);
    case MT_UNARY_ATAN: return atanl(x);
    case MT_UNARY_ASINH: return asinhl(x);
    case MT_UNARY_ACOSH: return acoshl(x);
    case MT_UNARY_ATANH: return atanhl(x);
    case MT_UNARY_EXP2: return exp2l(x);
    case MT_UNARY_EXP_DECAY: return expl(-fabsl(x));
    case MT_UNARY_SINC: return x == 0 ? 1 : sinl(M_PIl * x) / (M_PIl * x);
    case MT_UNARY_LGAMMA: return lgammal(x);
    case MT_UNARY_GELU: return 0.5L * x * erfcl(-x * M_SQRT1_2);
    case MT_UNARY_GELU_TANH:
        return 0.5L * x * (1 + tanhl(0.797884560802865355879892L * (x + 0.044715L * x * x * x)));
    case MT_UNARY_SILU: return x * sigmoid(x);
    case MT_UNARY_SOFTPLUS: return softplus(x, 1.5L, 20);
    case MT_UNARY_ELU: return x > 0 ? x : 0.75L * expm1l(x);
    case MT_UNARY_ENTR:
        return x > 0 || isnan(x) ? -x * logl(x) : x == 0 ? 0 : -(long double)INFINITY;
    case MT_UNARY_LOGIT: return logl(x / (1 - x));             /* without bounds: s[0] is below 0 */
    default: return (x < 0 ? x : 0) - log1pl(expl(-fabsl(x))); /* LOG_SIGMOID */
    }
}

static long double expected_real(uint16_t code, long double x)
{
    switch (code) {
    case MT_UNARY_NEG: return -x;
    case MT_UNARY_ABS: return fabsl(x);
    case MT_UNARY_SIGN: return (x > 0) - (x < 0);
    case MT_UNARY_SQUARE: return x * x;
    case MT_UNARY_RECIPROCAL: return 1 / x;
    case MT_UNARY_SQRT: return sqrtl(x);
    case MT_UNARY_RSQRT: return 1 / sqrtl(x);
    case MT_UNARY_RELU: return x < 0 ? 0 : x;
    case MT_UNARY_FLOOR: return floorl(x);
    case MT_UNARY_CEIL: return ceill(x);
    case MT_UNARY_ROUND: return rintl(x);
    case MT_UNARY_TRUNC: return truncl(x);
    case MT_UNARY_FRAC: return x - truncl(x);
    case MT_UNARY_CLAMP:
    case MT_UNARY_HARDTANH: return clamp(x, scalars[0], scalars[1]);
    case MT_UNARY_LEAKY_RELU: return x > 0 ? x : x * (long double)scalars[0];
    default: return expected_function(code, x);
    }
}

static int64_t expected_integer(uint16_t code, int64_t x)
{
    switch (code) {
    case MT_UNARY_NEG: return (int64_t)(0 - (uint64_t)x);
    case MT_UNARY_ABS: return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
    case MT_UNARY_SIGN: return (x > 0) - (x < 0);
    case MT_UNARY_SQUARE: return (int64_t)((uint64_t)x * (uint64_t)x);
    case MT_UNARY_RELU: return x < 0 ? 0 : x;
    case MT_UNARY_CLAMP:
    case MT_UNARY_HARDTANH: return x < whole[0] ? whole[0] : x > whole[1] ? whole[1] : x;
    case MT_UNARY_BITWISE_NOT: return ~x;
    default: return x;
    }
}

static bool expected_truth(uint16_t code, long double x)
{
    switch (code) {
    case MT_UNARY_LOGICAL_NOT: return x == 0;
    case MT_UNARY_ISNAN: return isnan(x);
    case MT_UNARY_SIGNBIT: return signbit(x);
    case MT_UNARY_ISINF: return isinf(x);
    default: return isfinite(x);
    }
}

/* ---- which codes there are ---- */

static bool is_truth(uint16_t code)
{
    return code == MT_UNARY_LOGICAL_NOT || code == MT_UNARY_SIGNBIT ||
           (code >= MT_UNARY_ISNAN && code <= MT_UNARY_ISFINITE);
}

static bool has_type(uint16_t code, mt_dtype dtype)
{
    if (pointwise_is_unsigned(dtype)) {
        return false;
    }
    if (is_truth(code)) {
        return dtype != MT_DTYPE_F16 && dtype != MT_DTYPE_BF16;
    }
    switch (code) {
    case MT_UNARY_NEG:
    case MT_UNARY_ABS:
    case MT_UNARY_SQUARE:
    case MT_UNARY_RELU:
    case MT_UNARY_FLOOR:
    case MT_UNARY_CEIL:
    case MT_UNARY_ROUND:
    case MT_UNARY_TRUNC:
    case MT_UNARY_CLAMP:
    case MT_UNARY_HARDTANH:
        return dtype != MT_DTYPE_BOOL && dtype != MT_DTYPE_F16 && dtype != MT_DTYPE_BF16;
    case MT_UNARY_SIGN: return dtype != MT_DTYPE_F16 && dtype != MT_DTYPE_BF16;
    case MT_UNARY_BITWISE_NOT: return !pointwise_is_real(dtype);
    default: return dtype == MT_DTYPE_F32 || dtype == MT_DTYPE_F64;
    }
}

/* Units in the last place that a code may be off. */
static double tolerance(uint16_t code, uint32_t dtype)
{
    switch (code) {
    case MT_UNARY_NEG:
    case MT_UNARY_ABS:
    case MT_UNARY_SIGN:
    case MT_UNARY_RELU:
    case MT_UNARY_FLOOR:
    case MT_UNARY_CEIL:
    case MT_UNARY_ROUND:
    case MT_UNARY_TRUNC:
    case MT_UNARY_FRAC:
    case MT_UNARY_CLAMP:
    case MT_UNARY_HARDTANH: return 0;
    case MT_UNARY_SQUARE:
    case MT_UNARY_RECIPROCAL:
    case MT_UNARY_SQRT:
    case MT_UNARY_LEAKY_RELU: return 0.500001;
    case MT_UNARY_RSQRT: return 1.5;
    case MT_UNARY_EXP: return 1.1;
    case MT_UNARY_LOG: return 1;
    case MT_UNARY_SILU:
    case MT_UNARY_SIGMOID:
    case MT_UNARY_SOFTPLUS:
    case MT_UNARY_ELU:
    case MT_UNARY_TAN: return 4;
    case MT_UNARY_LOG_SIGMOID: return 6;
    default: return dtype == MT_DTYPE_F32 ? 3 : 4;
    }
}

static bool frexp_is_right(uint16_t code, long double got, long double x)
{
    int exponent = 0;
    if (!isfinite(x)) {
        return code == MT_UNARY_EXPONENT ? got == 0 : isnan(x) ? isnan(got) : got == x;
    }
    long double mantissa = frexpl(x, &exponent);
    return got == (code == MT_UNARY_EXPONENT ? (long double)exponent : mantissa);
}

/* Where a function is the small rest of large numbers, or a formula overflows early (as torch's
 * does), the error that is allowed is measured on something else than the result. */
static bool is_close_enough(uint16_t code, const mt_array *out, int64_t i, long double x)
{
    long double got = pointwise_real(out, i);
    long double want = expected_real(code, x);
    long double epsilon = out->dtype == MT_DTYPE_F32 ? 0x1p-23L : 0x1p-52L;
    if (code == MT_UNARY_ENTR || code == MT_UNARY_LOGIT) { /* near 1 and 1/2 digits are lost */
        return (isinf(got) && isinf(want)) ||
               fabsl(got - want) <= 8 * epsilon * fmaxl(1, fabsl(want));
    }
    if (code >= MT_UNARY_ERFCX && code <= MT_UNARY_SPHERICAL_J0) {
        return true; /* test_special.c */
    }
    switch (code) {
    case MT_UNARY_GELU:
    case MT_UNARY_GELU_TANH:
        if (isinf(x)) {
            return x > 0 ? isinf(got) : isnan(got) || got == 0;
        }
        return fabsl(got - want) <= 2 * epsilon * fmaxl(fabsl(x), fabsl(want)) || fabsl(x) > 1e30L;
    case MT_UNARY_SIGMOID:
    case MT_UNARY_SILU: /* 1 / (1 + inf) */
        return (x < -80 && fabsl(got) <= -x * 1e-34L) || (isinf(x) && isnan(got));
    case MT_UNARY_SINC: /* the angle pi x is rounded */
        return fabsl(got - want) <= 2 * epsilon || (isnan(got) && isinf((float)(M_PIl * x)));
    case MT_UNARY_LGAMMA: /* between two poles it has zeros, near which digits are lost */
        return fabsl(got - want) <= 16 * epsilon * fmaxl(1, fabsl(want)) ||
               (isinf(got) && isinf(want));
    case MT_UNARY_DIGAMMA:
    case MT_UNARY_POLYGAMMA:
    case MT_UNARY_ERFINV: return true; /* test_gamma.c */
    case MT_UNARY_MANTISSA:
    case MT_UNARY_EXPONENT: return frexp_is_right(code, got, x);
    case MT_UNARY_SOFTPLUS: /* the product x * beta is rounded */
        return fabsl(got - want) <= epsilon * (2 + fabsl(1.5L * x)) * fabsl(want);
    default: return false;
    }
}

/* ---- the check ---- */

static void check_element(uint16_t code, const mt_array *out, const mt_array *in, int64_t i)
{
    if (is_truth(code)) {
        bool want = expected_truth(code, pointwise_is_real(in->dtype)
                                             ? pointwise_real(in, i)
                                             : (long double)pointwise_integer(in, i));
        if (pointwise_integer(out, i) != want) {
            FAIL("code %u dtype %u element %lld: %lld", code, in->dtype, (long long)i,
                 (long long)pointwise_integer(out, i));
        }
        return;
    }
    if (!pointwise_is_real(in->dtype)) {
        int64_t x = pointwise_integer(in, i);
        int64_t want = in->dtype == MT_DTYPE_BOOL && code == MT_UNARY_BITWISE_NOT
                           ? !x
                           : pointwise_wrap(in->dtype, expected_integer(code, x));
        if (in->dtype == MT_DTYPE_U8 && (code == MT_UNARY_CLAMP || code == MT_UNARY_HARDTANH)) {
            want = 6; /* the lower bound, -5, wraps to 251 and the upper one wins, as in torch */
        }
        if (pointwise_integer(out, i) != want) {
            FAIL("code %u dtype %u of %lld: %lld, not %lld", code, in->dtype, (long long)x,
                 (long long)pointwise_integer(out, i), (long long)want);
        }
        return;
    }
    long double x = pointwise_real(in, i);
    double off = pointwise_ulps(out, i, expected_real(code, x));
    if (!(off <= tolerance(code, in->dtype)) && !is_close_enough(code, out, i, x)) {
        FAIL("code %u dtype %u of %.17Lg: %.17Lg, not %.17Lg (%g units)", code, in->dtype, x,
             pointwise_real(out, i), expected_real(code, x), off);
    }
}

static mt_scalar number(mt_dtype dtype, int i, uint16_t code)
{
    if (!pointwise_is_real(dtype)) {
        return (mt_scalar){.kind = MT_KIND_INT, .of.integer = whole[i]};
    }
    double value = scalars[i];
    if (code == MT_UNARY_SOFTPLUS) {
        value = i == 0 ? 1.5 : 20;
    } else if (code == MT_UNARY_ELU) {
        value = 0.75;
    }
    return (mt_scalar){.kind = MT_KIND_REAL, .of.real = value};
}

static void check_call(uint16_t code, mt_dtype dtype, const pointwise_shape *shape,
                       strided_layout out_layout, strided_layout in_layout, uint64_t *seed)
{
    strided_array out, in;
    strided_array_init(&out, is_truth(code) ? MT_DTYPE_BOOL : dtype, shape->sizes, shape->n_dims,
                       out_layout);
    strided_array_init(&in, dtype, shape->sizes, shape->n_dims, in_layout);
    pointwise_fill(&in.array, seed);
    mt_scalar s[2] = {number(dtype, 0, code), number(dtype, 1, code)};
    mt_array arrays[2] = {out.array, in.array};
    mt_kernel_call call = {.struct_size = sizeof call,
                           .kernel = MT_KERNEL_UNARY,
                           .code = code,
                           .n_tensors = 2,
                           .n_scalars = 2,
                           .tensors = arrays,
                           .scalars = s};
    CHECK_OK(mt__host_UNARY(NULL, NULL, &call));
    for (int64_t i = 0, count = strided_numel(&in.array); i < count; i++) {
        check_element(code, &out.array, &in.array, i);
    }
    strided_array_fini(&out);
    strided_array_fini(&in);
}

static void check_all(void)
{
    uint64_t seed = mt_test_seed();
    for (unsigned number = 0; number < MT_UNARY_COUNT; number++) {
        uint16_t code = (uint16_t)number;
        for (int type = 0; type < MT_DTYPE_C64; type++) {
            if (!has_type(code, (mt_dtype)type)) {
                continue;
            }
            for (int shape = 0; shape < pointwise_shape_count; shape++) {
                strided_layout out = (strided_layout)(mt_test_random(&seed) % LAYOUT_REPEATED);
                strided_layout in = (strided_layout)(mt_test_random(&seed) % LAYOUT_COUNT);
                check_call(code, (mt_dtype)type, &pointwise_shapes[shape], LAYOUT_CONTIGUOUS,
                           LAYOUT_CONTIGUOUS, &seed);
                check_call(code, (mt_dtype)type, &pointwise_shapes[shape], out, in, &seed);
            }
        }
    }
}

TEST(unary_as_reference)
{
    pointwise_each_isa(check_all);
}

/* Enough elements for squares of turned operands and for several threads. */
TEST(unary_of_large_layouts)
{
    static const pointwise_shape large = {3, {3, 90, 131}};
    static const pointwise_shape threads = {2, {400, 401}};
    uint64_t seed = mt_test_seed();
    mt__parallel_set_threads(3);
    for (int i = 0; i < LAYOUT_REPEATED * LAYOUT_COUNT; i++) {
        strided_layout out = (strided_layout)(i / LAYOUT_COUNT);
        strided_layout in = (strided_layout)(i % LAYOUT_COUNT);
        check_call(MT_UNARY_NEG, MT_DTYPE_F32, &large, out, in, &seed);
        check_call(MT_UNARY_ABS, MT_DTYPE_I64, &large, out, in, &seed);
        check_call(MT_UNARY_ISNAN, MT_DTYPE_F64, &large, out, in, &seed);
        check_call(MT_UNARY_NEG, MT_DTYPE_U8, &threads, out, in, &seed);
    }
}

TEST(unary_refuses_other_types)
{
    for (unsigned number = 0; number < MT_UNARY_COUNT; number++) {
        uint16_t code = (uint16_t)number;
        for (int type = 0; type < MT_DTYPE_C64; type++) {
            if (has_type(code, (mt_dtype)mt__wide_type((uint32_t)type))) {
                continue;
            }
            uint64_t element = 0;
            const int64_t none[1] = {0};
            mt_array arrays[2];
            arrays[0] = arrays[1] = (mt_array){&element, none, none, 0, (uint32_t)type};
            mt_kernel_call call = {
                .struct_size = sizeof call, .code = code, .n_tensors = 2, .tensors = arrays};
            CHECK_EQ_I64(mt__host_UNARY(NULL, NULL, &call), MT_ENOTSUP);
        }
    }
}

/* ---- in place, and bounds that are absent or NaN ---- */

static void run_f32(uint16_t code, float *data, int64_t n, const mt_scalar *s)
{
    const int64_t one = 1;
    mt_array array = {data, &n, &one, 1, MT_DTYPE_F32};
    mt_array arrays[2] = {array, array};
    mt_kernel_call call = {.struct_size = sizeof call,
                           .code = code,
                           .n_tensors = 2,
                           .n_scalars = 2,
                           .tensors = arrays,
                           .scalars = s};
    CHECK_OK(mt__host_UNARY(NULL, NULL, &call));
}

TEST(unary_in_place)
{
    float data[1000];
    for (int i = 0; i < 1000; i++) {
        data[i] = (float)i;
    }
    const mt_scalar none[2] = {{.kind = MT_KIND_NONE}, {.kind = MT_KIND_NONE}};
    run_f32(MT_UNARY_SQUARE, data, 1000, none);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ_F64(data[i], (double)i * i);
    }
}

TEST(clamp_bounds)
{
    const mt_scalar none = {.kind = MT_KIND_NONE};
    const mt_scalar two = {.kind = MT_KIND_REAL, .of.real = 2};
    const mt_scalar nan = {.kind = MT_KIND_REAL, .of.real = NAN};
    float lower[3] = {-1, 5, NAN};
    run_f32(MT_UNARY_CLAMP, lower, 3, (mt_scalar[2]){two, none});
    CHECK_EQ_F64(lower[0], 2);
    CHECK_EQ_F64(lower[1], 5);
    CHECK(isnan(lower[2]));
    float upper[3] = {-1, 5, -INFINITY};
    run_f32(MT_UNARY_CLAMP, upper, 3, (mt_scalar[2]){none, two});
    CHECK_EQ_F64(upper[0], -1);
    CHECK_EQ_F64(upper[1], 2);
    CHECK(isinf(upper[2]));
    float any[2] = {-1, 5};
    run_f32(MT_UNARY_CLAMP, any, 2, (mt_scalar[2]){nan, two});
    CHECK(isnan(any[0]) && isnan(any[1]));
}
