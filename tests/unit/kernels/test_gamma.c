/* SPDX-License-Identifier: Apache-2.0
 *
 * gamma.h and the samples of host_sample.c: known values, identities, and moments of samples.
 */
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/number/gamma.h"
#include "support/strided_array.h"

#include <math.h>

static const double euler = 0.57721566490153286;

TEST(digamma_has_known_values)
{
    CHECK_NEAR_F64(mt__digamma(1.0), -euler, 1e-15);
    CHECK_NEAR_F64(mt__digamma(0.5), -euler - 2 * M_LN2, 4e-15);
    CHECK_NEAR_F64(mt__digamma(-0.5), -euler - 2 * M_LN2 + 2, 1e-14);
    CHECK_NEAR_F64(mt__digamma(1e8), log(1e8) - 0.5e-8, 1e-14);
    CHECK(isinf(mt__digamma(0.0)) && mt__digamma(0.0) < 0);
    CHECK(isinf(mt__digamma(-0.0)) && mt__digamma(-0.0) > 0);
    CHECK(isnan(mt__digamma(-3.0)) && isnan(mt__digamma((double)NAN)));
    for (double x = 0.1; x < 30; x += 0.7) { /* the recurrence */
        CHECK_NEAR_F64(mt__digamma(x + 1) - 1 / x, mt__digamma(x), 1e-13);
    }
}

TEST(polygamma_has_known_values)
{
    CHECK_NEAR_F64(mt__polygamma(1, 1.0), M_PI * M_PI / 6, 1e-15);
    CHECK_NEAR_F64(mt__polygamma(1, 0.5), M_PI * M_PI / 2, 1e-14);
    CHECK_NEAR_F64(mt__polygamma(1, -0.5), M_PI * M_PI / 2 + 4, 1e-13);
    CHECK_NEAR_F64(mt__polygamma(2, 1.0), -2.4041138063191886, 1e-14); /* -2 zeta(3) */
    CHECK_NEAR_F64(mt__polygamma(3, 1.0), 6.4939394022668291, 1e-13);  /* pi^4 / 15 */
    CHECK(isinf(mt__polygamma(2, -1.0)));
    for (double x = 0.3; x < 20; x += 0.9) {
        CHECK_NEAR_F64(mt__polygamma(2, x), mt__polygamma(2, x + 1) - 2 / (x * x * x), 1e-10);
    }
    CHECK(isfinite(mt__polygamma(2, -1e15 + 0.5))); /* and it ends */
}

TEST(erfinv_is_the_inverse)
{
    for (double x = -0.999; x < 1; x += 0.0371) {
        CHECK_NEAR_F64(erf(mt__erfinv(x)), x, 3e-16);
    }
    CHECK_NEAR_F64(mt__erfinv(1e-12), 0.88622692545275801e-12, 1e-27);
    CHECK_NEAR_F64(erfc(mt__erfinv(1 - 0x1p-40)) * 0x1p40, 1, 1e-13);
    CHECK(isinf(mt__erfinv(1.0)) && isinf(mt__erfinv(-1.0)) && mt__erfinv(-1.0) < 0);
    CHECK(isnan(mt__erfinv(1.5)) && isnan(mt__erfinv((double)NAN)));
}

/* The distribution of a gamma sample, as a plain sum. */
static long double distribution(long double a, long double x)
{
    long double term = expl(a * logl(x) - x - lgammal(a + 1));
    long double sum = 0;
    for (int n = 0; n < 3000; n++) {
        sum += term;
        term *= x / (a + n + 1);
    }
    return sum;
}

TEST(a_gamma_sample_moves_along_its_quantile)
{
    static const double shapes[] = {0.05, 0.3, 1, 2.5, 10, 80, 300};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (double share = 0.3; share < 2; share += 0.35) {
            long double a = shapes[i], x = (long double)(shapes[i] * share);
            if (x > a + 5 * sqrtl(a)) {
                continue; /* there the differences below have no digits left */
            }
            long double h = 1e-5L * fminl(a, 1);
            long double by_shape = (distribution(a + h, x) - distribution(a - h, x)) / (2 * h);
            long double density = expl((a - 1) * logl(x) - x - lgammal(a));
            double want = (double)(-by_shape / density);
            CHECK_NEAR_F64(mt__gamma_sample_slope((double)a, (double)x), want,
                           2e-7 * fmax(1, fabs(want)));
        }
    }
    /* Both formulas agree where one takes over. */
    CHECK_NEAR_F64(mt__gamma_sample_slope(19999, 20100), mt__gamma_sample_slope(20001, 20102),
                   1e-5);
    static const double joints[] = {0.1, 1, 5, 100, 5000};
    for (size_t i = 0; i < sizeof joints / sizeof joints[0]; i++) {
        double x = joints[i] + 6 + 3 * sqrt(joints[i]);
        double below = mt__gamma_sum_slope(joints[i], x);
        CHECK_NEAR_F64(mt__gamma_tail_slope(joints[i], x), below, 1e-9 * below);
    }
    CHECK(isfinite(mt__gamma_sample_slope(1.0, 1e30)));
    CHECK(isnan(mt__gamma_sample_slope(-1, 1)));
}

enum {
    SAMPLES = 40000
};

/* Mean and variance of samples with the same parameters. */
static void sample_moments(uint16_t code, double first, double second, double *mean,
                           double *variance)
{
    const int64_t size = SAMPLES;
    strided_array arrays[3];
    mt_array tensors[3];
    for (uint32_t i = 0; i < 3; i++) {
        strided_array_init(&arrays[i], MT_DTYPE_F64, &size, 1, LAYOUT_CONTIGUOUS);
        tensors[i] = arrays[i].array;
        for (int64_t k = 0; k < size; k++) {
            strided_set(&tensors[i], k, i == 1 ? first : second);
        }
    }
    mt_kernel_call call = {.struct_size = sizeof call,
                           .kernel = MT_KERNEL_SAMPLE,
                           .code = code,
                           .n_tensors = code == 2 ? 3 : 2,
                           .n_ints = 2,
                           .tensors = tensors,
                           .ints = (const int64_t[]){11, 5}};
    CHECK_OK(mt__host_SAMPLE(NULL, NULL, &call));
    *mean = 0;
    *variance = 0;
    for (int64_t k = 0; k < size; k++) {
        *mean += strided_get(&tensors[0], k) / SAMPLES;
    }
    for (int64_t k = 0; k < size; k++) {
        double off = strided_get(&tensors[0], k) - *mean;
        *variance += off * off / SAMPLES;
    }
    for (uint32_t i = 0; i < 3; i++) {
        strided_array_fini(&arrays[i]);
    }
}

/* Every parameter has an answer, also one that no number can be drawn for. */
TEST(samples_of_extreme_parameters)
{
    static const double parameters[] = {NAN, INFINITY, -INFINITY, -1, 0, 1e-300, 1e300, 1.5};
    for (uint16_t code = 0; code < 3; code++) {
        for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
            double p = parameters[i];
            double mean = 0;
            double variance = 0;
            sample_moments(code, p, 0.5, &mean, &variance);
            if (isnan(p) || p < 0) {
                CHECK(isnan(mean));
            } else if (isinf(p)) {
                CHECK(isinf(mean));
            } else {
                CHECK(mean >= 0 && mean <= p + 1); /* 1: a few samples of a small parameter */
            }
        }
    }
}

TEST(samples_have_their_moments)
{
    static const struct {
        uint16_t code;
        double first, second, mean, variance;
    } rows[] = {
        {0, 0.3, 0, 0.3, 0.3},    {0, 1, 0, 1, 1},    {0, 7.5, 0, 7.5, 7.5}, {1, 0.4, 0, 0.4, 0.4},
        {1, 9, 0, 9, 9},          {1, 40, 0, 40, 40}, {1, 0, 0, 0, 0},       {2, 5, 0.3, 1.5, 1.05},
        {2, 200, 0.25, 50, 37.5}, {2, 30, 1, 30, 0},  {2, 0, 0.5, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double mean = 0;
        double variance = 0;
        sample_moments(rows[i].code, rows[i].first, rows[i].second, &mean, &variance);
        /* Six standard errors; the fourth moment of these is below 20 variances squared. */
        CHECK_NEAR_F64(mean, rows[i].mean, 6 * sqrt(rows[i].variance / SAMPLES) + 1e-9);
        CHECK_NEAR_F64(variance, rows[i].variance,
                       6 * rows[i].variance * sqrt(20.0 / SAMPLES) + 1e-9);
    }
}
