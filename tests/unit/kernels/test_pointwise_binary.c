/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_BINARY against plain references: every code and type, tensors and numbers on either
 * side, every layout, at every instruction set.
 */
#include "base/fail.h"
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"
#include "support/pointwise_values.h"

#include <math.h>
#include <string.h>

static const double alpha_real = -1.5;
static const int64_t alpha_whole = 3;

/* ---- which there are ---- */

static bool is_comparison(uint16_t code)
{
    return code >= MT_BINARY_EQ && code <= MT_BINARY_LOGICAL_XOR;
}

static bool is_integer_division(uint16_t code)
{
    return code >= MT_BINARY_FLOOR_DIV && code <= MT_BINARY_FMOD;
}

static bool has_type(uint16_t code, mt_dtype dtype)
{
    if (dtype == MT_DTYPE_F16 || dtype == MT_DTYPE_BF16) {
        return false;
    }
    bool is_real = pointwise_is_real(dtype);
    if (pointwise_is_unsigned(dtype)) {
        return code == MT_BINARY_ADD || code == MT_BINARY_SUB || code == MT_BINARY_MUL ||
               code == MT_BINARY_BITWISE_AND || code == MT_BINARY_BITWISE_OR ||
               code == MT_BINARY_BITWISE_XOR || code == MT_BINARY_EQ || code == MT_BINARY_NE;
    }
    if (is_comparison(code)) {
        return true;
    }
    switch (code) {
    case MT_BINARY_ADD:
    case MT_BINARY_MUL:
    case MT_BINARY_MAXIMUM:
    case MT_BINARY_MINIMUM:
    case MT_BINARY_FMAX:
    case MT_BINARY_FMIN:
    case MT_BINARY_HEAVISIDE: return true;
    case MT_BINARY_GCD:
    case MT_BINARY_LCM:
    case MT_BINARY_LEFT_SHIFT:
    case MT_BINARY_RIGHT_SHIFT: return !is_real && dtype != MT_DTYPE_BOOL;
    case MT_BINARY_BITWISE_AND:
    case MT_BINARY_BITWISE_OR:
    case MT_BINARY_BITWISE_XOR: return !is_real;
    case MT_BINARY_SUB:
    case MT_BINARY_FLOOR_DIV:
    case MT_BINARY_TRUNC_DIV:
    case MT_BINARY_REMAINDER:
    case MT_BINARY_FMOD:
    case MT_BINARY_POW: return dtype != MT_DTYPE_BOOL;
    default: return is_real;
    }
}

/* ---- references ---- */

static bool expected_truth(uint16_t code, long double x, long double y)
{
    switch (code) {
    case MT_BINARY_EQ: return x == y;
    case MT_BINARY_NE: return x != y;
    case MT_BINARY_LT: return x < y;
    case MT_BINARY_LE: return x <= y;
    case MT_BINARY_GT: return x > y;
    case MT_BINARY_GE: return x >= y;
    case MT_BINARY_LOGICAL_AND: return x != 0 && y != 0;
    case MT_BINARY_LOGICAL_OR: return x != 0 || y != 0;
    default: return (x != 0) != (y != 0);
    }
}

static int64_t floor_div(int64_t x, int64_t y)
{
    __int128 q = (__int128)x / y;
    return (int64_t)(q - ((__int128)x % y != 0 && (x < 0) != (y < 0)));
}

static int64_t power(int64_t x, int64_t y)
{
    if (y < 0) {
        return x == 1 ? 1 : x == -1 ? (y % 2 != 0 ? -1 : 1) : 0;
    }
    uint64_t result = 1;
    uint64_t base = (uint64_t)x;
    for (uint64_t e = (uint64_t)y; e != 0; e /= 2, base *= base) {
        result *= e % 2 != 0 ? base : 1;
    }
    return (int64_t)result;
}

static uint64_t magnitude(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

/* By subtraction of multiples of two: another way than the kernel's. */
static uint64_t gcd(int64_t x, int64_t y)
{
    uint64_t a = magnitude(x);
    uint64_t b = magnitude(y);
    if (a == 0 || b == 0) {
        return a | b;
    }
    int twos = __builtin_ctzll(a | b);
    a >>= __builtin_ctzll(a);
    while (b != 0) {
        b >>= __builtin_ctzll(b);
        uint64_t less = a < b ? a : b;
        b = a < b ? b - a : a - b;
        a = less;
    }
    return a << twos;
}

/* Shifts depend on how many bits the type has. */
static int64_t expected_shift(uint16_t code, uint32_t dtype, int64_t x, int64_t y)
{
    int64_t bits = 8 * (int64_t)mt_dtype_size((mt_dtype)dtype);
    bool inside = y >= 0 && y < bits;
    if (code == MT_BINARY_LEFT_SHIFT) {
        return inside ? (int64_t)((uint64_t)x << y) : 0;
    }
    return inside ? x >> y : (x < 0 ? -1 : 0);
}

static int64_t expected_integer(uint16_t code, uint32_t dtype, int64_t x, int64_t y)
{
    uint64_t a = (uint64_t)x;
    uint64_t b = (uint64_t)y;
    switch (code) {
    case MT_BINARY_ADD: return (int64_t)(a + (uint64_t)alpha_whole * b);
    case MT_BINARY_SUB: return (int64_t)(a - (uint64_t)alpha_whole * b);
    case MT_BINARY_MUL: return (int64_t)(a * b);
    case MT_BINARY_FLOOR_DIV: return floor_div(x, y);
    case MT_BINARY_TRUNC_DIV: return (int64_t)((__int128)x / y);
    case MT_BINARY_REMAINDER:
        return (int64_t)((__int128)x - (__int128)y * ((__int128)x / y) +
                         ((__int128)x % y != 0 && (x < 0) != (y < 0) ? y : 0));
    case MT_BINARY_FMOD: return (int64_t)((__int128)x % y);
    case MT_BINARY_POW: return power(x, y);
    case MT_BINARY_FMAX:
    case MT_BINARY_MAXIMUM: return x > y ? x : y;
    case MT_BINARY_FMIN:
    case MT_BINARY_MINIMUM: return x < y ? x : y;
    case MT_BINARY_HEAVISIDE: return x == 0 ? y : x > 0;
    case MT_BINARY_GCD: return (int64_t)gcd(x, y);
    case MT_BINARY_LCM: {
        uint64_t common = gcd(x, y);
        return common == 0 ? 0 : (int64_t)(magnitude(x) / common * magnitude(y));
    }
    case MT_BINARY_LEFT_SHIFT:
    case MT_BINARY_RIGHT_SHIFT: return expected_shift(code, dtype, x, y);
    case MT_BINARY_BITWISE_AND: return x & y;
    case MT_BINARY_BITWISE_OR: return x | y;
    default: return x ^ y;
    }
}

static int64_t expected_bool(uint16_t code, int64_t x, int64_t y)
{
    switch (code) {
    case MT_BINARY_ADD:
    case MT_BINARY_MAXIMUM:
    case MT_BINARY_FMAX:
    case MT_BINARY_HEAVISIDE:
    case MT_BINARY_BITWISE_OR: return x | y;
    case MT_BINARY_BITWISE_XOR: return x ^ y;
    default: return x & y;
    }
}

/* Python's, in the type's own precision: the rounding of its steps belongs to the definition. */
static long double floor_div_real(double x, double y, bool is_float)
{
    if (y == 0) {
        return x / y;
    }
    double mod = fmod(x, y);
    double div = is_float ? (double)((float)((float)x - (float)mod) / (float)y) : (x - mod) / y;
    if (mod != 0 && (y < 0) != (mod < 0)) {
        div = is_float ? (double)((float)div - 1.0F) : div - 1;
    }
    if (div == 0) {
        return copysign(0.0, x / y);
    }
    double whole = floor(div);
    return div - whole > 0.5 ? whole + 1 : whole;
}

static long double slope(uint16_t code, long double y)
{
    long double s = 1 / (1 + expl(-y));
    switch (code) {
    case MT_BINARY_SILU_BACKWARD: return s * (1 + y * (1 - s));
    case MT_BINARY_MISH_BACKWARD: {
        long double t = tanhl(y > 0 ? y + log1pl(expl(-y)) : log1pl(expl(y)));
        return t + y * s * (1 - t * t);
    }
    case MT_BINARY_GELU_BACKWARD:
        return 0.5L * erfcl(-y * M_SQRT1_2) + y * expl(-y * y / 2) * 0.398942280401432678L;
    default: {
        long double k = 0.797884560802865355879892L;
        long double t = tanhl(k * (y + 0.044715L * y * y * y));
        return 0.5L * (1 + t) + 0.5L * y * (1 - t * t) * k * (1 + 3 * 0.044715L * y * y);
    }
    }
}

static long double expected_real(uint16_t code, long double x, long double y, bool is_float)
{
    switch (code) {
    case MT_BINARY_ADD: return x + (long double)alpha_real * y;
    case MT_BINARY_SUB: return x - (long double)alpha_real * y;
    case MT_BINARY_MUL: return x * y;
    case MT_BINARY_DIV: return x / y;
    case MT_BINARY_FLOOR_DIV: return floor_div_real((double)x, (double)y, is_float);
    case MT_BINARY_TRUNC_DIV:
        return is_float ? (long double)truncf((float)x / (float)y)
                        : (long double)trunc((double)x / (double)y);
    case MT_BINARY_REMAINDER: {
        long double mod = fmodl(x, y);
        return mod != 0 && (y < 0) != (mod < 0) ? mod + y : mod;
    }
    case MT_BINARY_FMOD: return fmodl(x, y);
    case MT_BINARY_POW: return powl(x, y);
    case MT_BINARY_ATAN2: return atan2l(x, y);
    case MT_BINARY_MAXIMUM: return isnan(x) || isnan(y) ? (long double)NAN : x > y ? x : y;
    case MT_BINARY_MINIMUM: return isnan(x) || isnan(y) ? (long double)NAN : x < y ? x : y;
    case MT_BINARY_SIGMOID_BACKWARD: return x * (y * (1 - y));
    case MT_BINARY_TANH_BACKWARD: return x * (1 - y * y);
    case MT_BINARY_THRESHOLD_BACKWARD: return y <= (long double)alpha_real ? 0 : x;
    case MT_BINARY_LEAKY_RELU_BACKWARD: return y > 0 ? x : x * (long double)alpha_real;
    case MT_BINARY_HARDSIGMOID_BACKWARD: return y > -3 && y < 3 ? x / 6 : 0;
    case MT_BINARY_HARDSWISH_BACKWARD: return y <= -3 ? 0 : y < 3 ? x * (y / 3 + 0.5L) : x;
    case MT_BINARY_FMAX: return fmaxl(x, y);
    case MT_BINARY_FMIN: return fminl(x, y);
    case MT_BINARY_HEAVISIDE: return x == 0 ? y : x > 0;
    case MT_BINARY_NEXTAFTER:
        return is_float ? (long double)nextafterf((float)x, (float)y)
                        : (long double)nextafter((double)x, (double)y);
    case MT_BINARY_LOGADDEXP2: {
        long double larger = x > y || isnan(x) ? x : y;
        return x == y && isinf(x) ? x : larger + log1pl(exp2l(-fabsl(x - y))) / M_LN2l;
    }
    case MT_BINARY_HYPOT: return hypotl(x, y);
    case MT_BINARY_COPYSIGN: return copysignl(x, y);
    case MT_BINARY_XLOGY: return x == 0 && !isnan(y) ? 0 : x * logl(y);
    case MT_BINARY_LOGADDEXP: {
        long double larger = x > y || isnan(x) ? x : y;
        return x == y && isinf(x) ? x : larger + log1pl(expl(-fabsl(x - y)));
    }
    default: return x * slope(code, y);
    }
}

/* Units for what is one rounding or a function, and a bound on sums that may cancel. */
static bool is_close(uint16_t code, const mt_array *out, int64_t i, long double x, long double y)
{
    bool is_float = out->dtype == MT_DTYPE_F32;
    long double got = pointwise_real(out, i);
    long double want = expected_real(code, x, y, is_float);
    double off = pointwise_ulps(out, i, want);
    long double epsilon = is_float ? 0x1p-23L : 0x1p-52L;
    switch (code) {
    case MT_BINARY_ADD:
    case MT_BINARY_SUB: /* fused or not */
        return off <= 1 || fabsl(got - want) <= epsilon * fabsl(y) * 2 ||
               (!isfinite(got) && fabsl(y) > 1e38L);
    case MT_BINARY_MUL:
    case MT_BINARY_DIV: return off <= 0.500001;
    case MT_BINARY_POW: return off <= 1;
    case MT_BINARY_ATAN2: return off <= 1.5;
    case MT_BINARY_HYPOT: return off <= 1;
    case MT_BINARY_XLOGY: return off <= 2 || (isnan(got) && isnan(want));
    case MT_BINARY_GAMMA_SAMPLE_SLOPE: return true; /* test_gamma.c */
    case MT_BINARY_GAMMAINC:
    case MT_BINARY_GAMMAINCC:
    case MT_BINARY_ZETA: return true; /* test_special.c */
    case MT_BINARY_XLOG1PY: {
        long double product = x == 0 && !isnan(y) ? 0 : x * log1pl(y);
        return pointwise_ulps(out, i, product) <= 2 || (isnan(got) && isnan(product));
    }
    case MT_BINARY_LOGADDEXP:
    case MT_BINARY_LOGADDEXP2:
        return off <= 2 || fabsl(got - want) <= 2 * epsilon * fmaxl(1, fmaxl(fabsl(x), fabsl(y)));
    case MT_BINARY_SIGMOID_BACKWARD: /* of nothing below 0 */
        if (y < 0) {
            return true;
        }
        __attribute__((fallthrough));
    case MT_BINARY_TANH_BACKWARD: /* y * y of anything: only |y| <= 1 happens */
        return fabsl(y) > 1 || isnan(y) || off <= 3 || fabsl(got - want) <= 2 * epsilon * fabsl(x);
    case MT_BINARY_GELU_BACKWARD:
    case MT_BINARY_GELU_TANH_BACKWARD:
    case MT_BINARY_MISH_BACKWARD:
    case MT_BINARY_SILU_BACKWARD: /* infinite numbers have no slope, or a limit */
        return isinf(y) || fabsl(y) > 1e12L || isinf(x) || (isnan(want) && isnan(got)) ||
               fabsl(got - want) <= 4 * epsilon * fabsl(x) * fmaxl(1, fabsl(y)) || off <= 1 ||
               fabsl(x) > 1e38L;
    case MT_BINARY_LEAKY_RELU_BACKWARD:
    case MT_BINARY_HARDSIGMOID_BACKWARD: return off <= 0.500001 || (isnan(got) && isnan(want));
    case MT_BINARY_HARDSWISH_BACKWARD: /* near -1.5 the sum cancels */
        return off <= 2 || fabsl(got - want) <= 2 * epsilon * fabsl(x) ||
               (isnan(got) && isnan(want));
    case MT_BINARY_REMAINDER: return off <= 0.500001; /* mod + y is rounded */
    default: return off == 0 || (got == 0 && want == 0 && code >= MT_BINARY_MAXIMUM);
    }
}

/* ---- the check ---- */

typedef struct operands {
    const mt_array *x, *y;
} operands;

static void check_element(uint16_t code, const mt_array *out, operands in, int64_t i)
{
    uint32_t dtype = in.x->dtype;
    bool is_real = pointwise_is_real(dtype);
    long double x = is_real ? pointwise_real(in.x, i) : (long double)pointwise_integer(in.x, i);
    long double y = is_real ? pointwise_real(in.y, i) : (long double)pointwise_integer(in.y, i);
    bool good;
    if (is_comparison(code)) {
        good = pointwise_integer(out, i) == expected_truth(code, x, y);
    } else if (is_real) {
        good = is_close(code, out, i, x, y);
    } else {
        int64_t a = pointwise_integer(in.x, i);
        int64_t b = pointwise_integer(in.y, i);
        int64_t want = dtype == MT_DTYPE_BOOL
                           ? expected_bool(code, a, b)
                           : pointwise_wrap(dtype, expected_integer(code, dtype, a, b));
        good = pointwise_integer(out, i) == want;
    }
    if (!good) {
        FAIL("code %u dtype %u: %.17Lg, %.17Lg gives %.17Lg, not %.17Lg", code, dtype, x, y,
             pointwise_is_real(out->dtype) ? pointwise_real(out, i)
                                           : (long double)pointwise_integer(out, i),
             is_real ? expected_real(code, x, y, dtype == MT_DTYPE_F32) : 0);
    }
}

static void avoid_zeros(const mt_array *array)
{
    for (int64_t i = 0, n = strided_numel(array); i < n; i++) {
        if (pointwise_integer(array, i) == 0) {
            strided_set(array, i, 5);
        }
    }
}

static mt_scalar scalar_of(const mt_array *array)
{
    if (pointwise_is_real(array->dtype)) {
        return (mt_scalar){.kind = MT_KIND_REAL, .of.real = strided_get(array, 0)};
    }
    return (mt_scalar){.kind = MT_KIND_INT, .of.integer = pointwise_integer(array, 0)};
}

/* form as the kernel's: 0 tensors, 1 the second a number, 2 the first one. */
static void check_call(uint16_t code, mt_dtype dtype, const pointwise_shape *shape, int form,
                       const strided_layout layouts[3], uint64_t *seed)
{
    strided_array out, a, b;
    strided_array_init(&out, is_comparison(code) ? MT_DTYPE_BOOL : dtype, shape->sizes,
                       shape->n_dims, layouts[0]);
    strided_array_init(&a, dtype, shape->sizes, shape->n_dims, layouts[1]);
    strided_array_init(&b, dtype, shape->sizes, shape->n_dims, layouts[2]);
    pointwise_fill(&a.array, seed);
    pointwise_fill(&b.array, seed);
    if (is_integer_division(code) && !pointwise_is_real(dtype)) {
        avoid_zeros(&b.array);
    }
    if (code == MT_BINARY_POW && form == 1 && pointwise_is_real(dtype) &&
        strided_numel(&b.array) > 0 && fabs(strided_get(&b.array, 0)) == 0.5) {
        strided_set(&b.array, 0, 3); /* a square root: not the power of -0 and -infinity */
    }
    mt_array number = form == 1 ? b.array : a.array; /* its first element everywhere */
    int64_t no_strides[4] = {0};
    number.strides = no_strides;
    int64_t which = form;
    bool is_real = pointwise_is_real(dtype);
    mt_scalar s[2] = {{.kind = MT_KIND_INT}, {.kind = MT_KIND_INT, .of.integer = alpha_whole}};
    if (is_real) {
        s[1] = (mt_scalar){.kind = MT_KIND_REAL, .of.real = alpha_real};
    }
    mt_array arrays[3] = {out.array, a.array, b.array};
    if (form != 0 && strided_numel(&a.array) > 0) {
        s[0] = scalar_of(&number);
        arrays[1] = form == 1 ? a.array : b.array;
    }
    mt_kernel_call call = {.struct_size = sizeof call,
                           .code = code,
                           .n_tensors = form == 0 ? 3 : 2,
                           .n_ints = 1,
                           .n_scalars = 2,
                           .tensors = arrays,
                           .ints = &which,
                           .scalars = s};
    CHECK_OK(mt__host_BINARY(NULL, NULL, &call));
    operands in = {form == 2 ? &number : &a.array, form == 1 ? &number : &b.array};
    for (int64_t i = 0, count = strided_numel(&out.array); i < count; i++) {
        check_element(code, &out.array, in, i);
    }
    strided_array_fini(&out);
    strided_array_fini(&a);
    strided_array_fini(&b);
}

static void check_code(uint16_t code, mt_dtype dtype, uint64_t *seed)
{
    static const strided_layout straight[3] = {LAYOUT_CONTIGUOUS, LAYOUT_CONTIGUOUS,
                                               LAYOUT_CONTIGUOUS};
    for (int shape = 0; shape < pointwise_shape_count; shape++) {
        for (int form = 0; form < 3; form++) {
            strided_layout layouts[3] = {
                (strided_layout)(mt_test_random(seed) % LAYOUT_REPEATED),
                (strided_layout)(mt_test_random(seed) % LAYOUT_COUNT),
                (strided_layout)(mt_test_random(seed) % LAYOUT_COUNT),
            };
            check_call(code, dtype, &pointwise_shapes[shape], form, straight, seed);
            check_call(code, dtype, &pointwise_shapes[shape], form, layouts, seed);
        }
    }
}

static void check_all(void)
{
    uint64_t seed = mt_test_seed();
    for (unsigned number = 0; number < MT_BINARY_COUNT; number++) {
        uint16_t code = (uint16_t)number;
        for (int type = 0; type < MT_DTYPE_C64; type++) {
            if (has_type(code, (mt_dtype)type)) {
                check_code(code, (mt_dtype)type, &seed);
            }
        }
    }
}

TEST(binary_as_reference)
{
    pointwise_each_isa(check_all);
}

/* Enough elements for squares of turned operands and for several threads. */
TEST(binary_of_large_layouts)
{
    static const pointwise_shape large = {3, {3, 90, 131}};
    static const pointwise_shape threads = {2, {400, 401}};
    uint64_t seed = mt_test_seed();
    mt__parallel_set_threads(3);
    for (int i = 0; i < LAYOUT_COUNT * LAYOUT_COUNT; i++) {
        strided_layout layouts[3] = {(strided_layout)(mt_test_random(&seed) % LAYOUT_REPEATED),
                                     (strided_layout)(i / LAYOUT_COUNT),
                                     (strided_layout)(i % LAYOUT_COUNT)};
        check_call(MT_BINARY_ADD, MT_DTYPE_F32, &large, 0, layouts, &seed);
        check_call(MT_BINARY_LT, MT_DTYPE_F64, &large, i % 3, layouts, &seed);
        check_call(MT_BINARY_FLOOR_DIV, MT_DTYPE_I32, &large, 0, layouts, &seed);
        check_call(MT_BINARY_MUL, MT_DTYPE_F32, &threads, i % 3, layouts, &seed);
    }
}

/* ---- errors ---- */

static int divide_i32(uint16_t code, int32_t *out, const int32_t *a, const int32_t *b, int64_t n)
{
    const int64_t stride = 1;
    mt_array arrays[3] = {{out, &n, &stride, 1, MT_DTYPE_I32},
                          {(void *)(uintptr_t)a, &n, &stride, 1, MT_DTYPE_I32},
                          {(void *)(uintptr_t)b, &n, &stride, 1, MT_DTYPE_I32}};
    mt_kernel_call call = {
        .struct_size = sizeof call, .code = code, .n_tensors = 3, .tensors = arrays};
    return mt__host_BINARY(NULL, NULL, &call);
}

TEST(division_by_zero_is_an_error)
{
    int32_t out[3];
    const int32_t a[3] = {7, -7, 1};
    const int32_t b[3] = {2, 0, 1};
    for (unsigned number = MT_BINARY_FLOOR_DIV; number <= MT_BINARY_FMOD; number++) {
        uint16_t code = (uint16_t)number;
        CHECK_EQ_I64(divide_i32(code, out, a, b, 3), MT_ERUNTIME);
        CHECK_EQ_STR(mtb_last_failure()->message, "ZeroDivisionError");
    }
}

TEST(smallest_by_minus_one_wraps)
{
    int32_t out[1];
    const int32_t a[1] = {INT32_MIN};
    const int32_t b[1] = {-1};
    CHECK_OK(divide_i32(MT_BINARY_TRUNC_DIV, out, a, b, 1));
    CHECK_EQ_I64(out[0], INT32_MIN);
    CHECK_OK(divide_i32(MT_BINARY_FLOOR_DIV, out, a, b, 1));
    CHECK_EQ_I64(out[0], INT32_MIN);
    CHECK_OK(divide_i32(MT_BINARY_REMAINDER, out, a, b, 1));
    CHECK_EQ_I64(out[0], 0);
}

TEST(binary_refuses_other_types)
{
    for (unsigned number = 0; number < MT_BINARY_COUNT; number++) {
        uint16_t code = (uint16_t)number;
        for (int type = 0; type < MT_DTYPE_C64; type++) {
            if (has_type(code, (mt_dtype)mt__wide_type((uint32_t)type))) {
                continue;
            }
            uint64_t element = 0;
            const int64_t none[1] = {0};
            mt_array array = {&element, none, none, 0, (uint32_t)type};
            mt_array arrays[3] = {array, array, array};
            mt_kernel_call call = {
                .struct_size = sizeof call, .code = code, .n_tensors = 3, .tensors = arrays};
            CHECK_EQ_I64(mt__host_BINARY(NULL, NULL, &call), MT_ENOTSUP);
        }
    }
}
