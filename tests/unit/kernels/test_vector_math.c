/* SPDX-License-Identifier: Apache-2.0
 *
 * How exact the functions of vector_math.h are (VM2): many numbers through the unary and binary
 * loops, at every instruction set, against double libm (float) and long double libm (double).
 */
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "support/pointwise_values.h"

#include <math.h>
#include <string.h>

enum {
    COUNT = 4096
};

typedef struct function {
    const char *name;
    uint16_t code;
    long double (*reference)(long double);
    double lowest, highest; /* of the numbers spread evenly; the others are of all magnitudes */
    double limit;           /* no number beyond it */
    double units;
} function;

static long double sigmoid_l(long double x)
{
    return 1 / (1 + expl(-x));
}

static long double log_sigmoid_l(long double x)
{
    return (x < 0 ? x : 0) - log1pl(expl(-fabsl(x)));
}

static long double lgamma_l(long double x)
{
    int sign;
    return lgammal_r(x, &sign);
}

/* By the definition's recurrence and series, and by reflection; see gamma.h. */
static long double digamma_l(long double x)
{
    static const long double pi = 3.14159265358979323846264338327950288L;
    if (x < 0) {
        long double part = x - rintl(x);
        return part == 0 ? (long double)NAN : digamma_l(1 - x) - pi / tanl(pi * part);
    }
    if (x == 0 || isinf(x)) {
        return x == 0 ? copysignl(INFINITY, -x) : x;
    }
    long double sum = 0;
    for (; x < 30; x++) {
        sum -= 1 / x;
    }
    long double s = 1 / (x * x);
    return sum + logl(x) - 1 / (2 * x) -
           s * (1.0L / 12 -
                s * (1.0L / 120 - s * (1.0L / 252 - s * (1.0L / 240 - s * (1.0L / 132)))));
}

/* Bisection of erf or erfc: slow and without a formula of its own. */
static long double erfinv_l(long double x)
{
    long double a = fabsl(x), low = 0, high = 6;
    if (!(a < 1)) {
        return a == 1 ? copysignl(INFINITY, x) : (long double)NAN;
    }
    if (a < 1e-6L) {
        return x * 0.886226925452758013649083741670572591L;
    }
    for (int i = 0; i < 60; i++) {
        long double middle = (low + high) / 2;
        bool above = a < 0.5L ? erfl(middle) > a : erfcl(middle) < 1 - a;
        *(above ? &high : &low) = middle;
    }
    return copysignl(low, x);
}

static const function floats[] = {
    {"exp", MT_UNARY_EXP, expl, -105, 90, 1e38, 1.1},
    {"expm1", MT_UNARY_EXPM1, expm1l, -20, 90, 1e38, 2},
    {"log", MT_UNARY_LOG, logl, 0, 4, 1e38, 1},
    {"log1p", MT_UNARY_LOG1P, log1pl, -1, 4, 1e38, 2},
    {"log2", MT_UNARY_LOG2, log2l, 0, 4, 1e38, 2},
    {"log10", MT_UNARY_LOG10, log10l, 0, 4, 1e38, 2},
    {"tanh", MT_UNARY_TANH, tanhl, -10, 10, 1e38, 3},
    {"sigmoid", MT_UNARY_SIGMOID, sigmoid_l, -80, 80, 88, 2.5},
    {"erf", MT_UNARY_ERF, erfl, -4.5, 4.5, 1e38, 2},
    {"erfc", MT_UNARY_ERFC, erfcl, -5, 10, 1e38, 1},
    {"sinh", MT_UNARY_SINH, sinhl, -90, 90, 1e38, 2.5},
    {"cosh", MT_UNARY_COSH, coshl, -90, 90, 1e38, 2.5},
    {"sin", MT_UNARY_SIN, sinl, -100, 100, 1e38, 2},
    {"cos", MT_UNARY_COS, cosl, -100, 100, 1e38, 2},
    {"tan", MT_UNARY_TAN, tanl, -100, 100, 1e38, 4},
    {"log_sigmoid", MT_UNARY_LOG_SIGMOID, log_sigmoid_l, -20, 20, 1e38, 3},
    {"asin", MT_UNARY_ASIN, asinl, -1, 1, 1e38, 1},
    {"acos", MT_UNARY_ACOS, acosl, -1, 1, 1e38, 1},
    {"asinh", MT_UNARY_ASINH, asinhl, -10, 10, 1e38, 1},
    {"acosh", MT_UNARY_ACOSH, acoshl, 1, 10, 1e38, 1},
    {"atanh", MT_UNARY_ATANH, atanhl, -1, 1, 1e38, 1},
    {"lgamma", MT_UNARY_LGAMMA, lgamma_l, 0, 30, 1e36, 1},
    {"lgamma below 0", MT_UNARY_LGAMMA, lgamma_l, -20, 0, 1e36, 2},
    {"digamma", MT_UNARY_DIGAMMA, digamma_l, 0, 30, 1e38, 1},
    {"digamma below 0", MT_UNARY_DIGAMMA, digamma_l, -20, 0, 1e6, 2},
    {"erfinv", MT_UNARY_ERFINV, erfinv_l, -1, 1, 1e38, 1},
};

static const function doubles[] = {
    {"exp", MT_UNARY_EXP, expl, -745, 710, 1e300, 1.1},
    {"expm1", MT_UNARY_EXPM1, expm1l, -40, 710, 1e300, 2.1},
    {"log", MT_UNARY_LOG, logl, 0, 4, 1e300, 1},
    {"erfc", MT_UNARY_ERFC, erfcl, -6, 27, 1e300, 5},
    {"sinh", MT_UNARY_SINH, sinhl, -712, 712, 1e300, 3},
    {"cosh", MT_UNARY_COSH, coshl, -712, 712, 1e300, 3},
    {"tanh", MT_UNARY_TANH, tanhl, -20, 20, 1e300, 3},
    {"sigmoid", MT_UNARY_SIGMOID, sigmoid_l, -700, 700, 700, 2.5},
    {"log_sigmoid", MT_UNARY_LOG_SIGMOID, log_sigmoid_l, -20, 20, 1e300, 3},
};

/* Half of them spread evenly over the interval, half with random bits. */
static double pick(const function *f, bool is_float, uint64_t *seed)
{
    uint64_t bits = mt_test_random(seed);
    double even = f->lowest + (f->highest - f->lowest) * (double)(bits >> 11) * 0x1p-53;
    if ((bits & 1U) != 0) {
        return even;
    }
    double x;
    if (is_float) {
        uint32_t low = (uint32_t)(bits >> 1);
        float narrow;
        memcpy(&narrow, &low, sizeof narrow);
        x = (double)narrow;
    } else {
        uint64_t all = mt_test_random(seed);
        memcpy(&x, &all, sizeof x);
    }
    return fabs(x) <= f->limit ? x : even;
}

static void check_function(const function *f, bool is_float, uint64_t *seed)
{
    static double memory[2][COUNT];
    const int64_t size = COUNT;
    const int64_t stride = 1;
    uint32_t dtype = is_float ? MT_DTYPE_F32 : MT_DTYPE_F64;
    mt_array arrays[2] = {{memory[0], &size, &stride, 1, dtype},
                          {memory[1], &size, &stride, 1, dtype}};
    mt_kernel_call call = {
        .struct_size = sizeof call, .code = f->code, .n_tensors = 2, .tensors = arrays};
    double worst = 0;
    double where = 0;
    for (int round = 0; round < (mt_test_long() ? 2000 : 30); round++) {
        for (int64_t i = 0; i < COUNT; i++) {
            strided_set(&arrays[1], i, pick(f, is_float, seed));
        }
        CHECK_OK(mt__host_UNARY(NULL, NULL, &call));
        for (int64_t i = 0; i < COUNT; i++) {
            double x = strided_get(&arrays[1], i);
            double off = pointwise_ulps(&arrays[0], i, f->reference((long double)x));
            if (!(off <= worst)) {
                worst = off;
                where = x;
            }
        }
    }
    if (!(worst <= f->units)) {
        FAIL("%s of %s: %g units off at %.17g", f->name, is_float ? "float" : "double", worst,
             where);
    }
}

static void check_functions(void)
{
    uint64_t seed = mt_test_seed();
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        check_function(&floats[i], true, &seed);
    }
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) {
        check_function(&doubles[i], false, &seed);
    }
}

TEST(functions_are_exact_enough)
{
    pointwise_each_isa(check_functions);
}

/* ---- powers of two come out exact ---- */

static void check_log2(void)
{
    float in[200], out[200];
    for (int i = 0; i < 200; i++) {
        in[i] = ldexpf(1.0F, i - 100);
    }
    const int64_t size = 200;
    const int64_t stride = 1;
    mt_array arrays[2] = {{out, &size, &stride, 1, MT_DTYPE_F32},
                          {in, &size, &stride, 1, MT_DTYPE_F32}};
    mt_kernel_call call = {
        .struct_size = sizeof call, .code = MT_UNARY_LOG2, .n_tensors = 2, .tensors = arrays};
    CHECK_OK(mt__host_UNARY(NULL, NULL, &call));
    for (int i = 0; i < 200; i++) {
        CHECK_EQ_F64(out[i], i - 100);
    }
}

TEST(log2_of_powers_of_two)
{
    pointwise_each_isa(check_log2);
}
