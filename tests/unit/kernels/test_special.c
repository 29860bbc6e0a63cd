/* SPDX-License-Identifier: Apache-2.0
 *
 * special.h, bessel.h and vector_bessel.h: power series and integrals in long double, identities,
 * the ends; the vector forms next to the others.
 */
#include "harness/mt_test.h"
#include "kernels/number/bessel.h"
#include "kernels/number/special.h"
#include "kernels/number/vector_bessel.h"

#include <math.h>

/* The sum of (x / 2)^(2 k + order) / (k! (k + order)!) */
static long double power_series(int order, long double x)
{
    long double term = powl(x / 2, order);
    long double sum = 0;
    for (int k = 0; k < 400; k++) {
        sum += term;
        term *= x * x / 4 / (k + 1) / (k + 1 + order);
    }
    return sum;
}

/* The integral of exp(-x (cosh t - 1)) cosh(order t): the trapezoidal rule, which is exact here. */
static long double scaled_k(int order, long double x)
{
    long double sum = 0.5L;
    for (int i = 1; i < 1200; i++) {
        long double t = i * 0.01L;
        sum += expl(-x * (coshl(t) - 1)) * coshl(order * t);
    }
    return sum * 0.01L;
}

TEST(modified_bessel_functions_are_their_series)
{
    for (double x = 0.05; x < 60; x *= 1.37) {
        double small = exp(-x);
        CHECK_NEAR_F64(mt__i0e(x), (double)(power_series(0, x) * expl(-x)), 1e-15);
        CHECK_NEAR_F64(mt__i1e(-x), -(double)(power_series(1, x) * expl(-x)), 1e-15);
        CHECK_NEAR_F64(mt__i0(x) * small, mt__i0e(x), 4e-15);
        CHECK_NEAR_F64(mt__k0e(x) / (double)scaled_k(0, x), 1, 1e-13);
        CHECK_NEAR_F64(mt__k1e(x) / (double)scaled_k(1, x), 1, 1e-13);
        /* Wronski: I0 K1 + I1 K0 = 1 / x */
        CHECK_NEAR_F64(x * (mt__i0e(x) * mt__k1e(x) + mt__i1e(x) * mt__k0e(x)), 1, 1e-14);
    }
    CHECK(mt__i0(0.0) == 1 && mt__i1(0.0) == 0 && isinf(mt__i0(800.0)) && isfinite(mt__i0(712.0)));
    CHECK(isinf(mt__k0(0.0)) && isnan(mt__k1(-1.0)) && mt__k0((double)INFINITY) == 0);
    CHECK(isnan(mt__i0((double)NAN)) && isnan(mt__k0e((double)NAN)));
    CHECK(mt__spherical_j0(0.0) == 1 && mt__spherical_j0((double)INFINITY) == 0);
    CHECK(isinf(mt__y0(0.0)) && isnan(mt__y1(-1.0)));
}

/* Relative to |expected| + floor, which is 0 for functions without zeros. */
static double error_of(double value, double expected, double floor)
{
    return fabs(value - expected) / (fabs(expected) + floor);
}

TEST(vector_forms_have_the_digits_of_a_float)
{
    for (double x = 1e-6; x < 600; x *= 1.0137) {
        CHECK(error_of(mt__i0e_wide(-x), mt__i0e(x), 0) < 1e-9);
        CHECK(error_of(mt__i1e_wide(-x), mt__i1e(-x), 0) < 1e-9);
        CHECK(error_of(mt__i0_wide(x), mt__i0(x), 0) < 1e-9);
        CHECK(error_of(mt__i1_wide(x), mt__i1(x), 0) < 1e-9);
        CHECK(error_of(mt__k_scaled(x, mt__k0_parts(x)), mt__k0e(x), 0) < 1e-9);
        CHECK(error_of(mt__k_scaled(x, mt__k1_parts(x)), mt__k1e(x), 0) < 1e-9);
        CHECK(error_of(mt__k_plain(x, mt__k0_parts(x)), mt__k0(x), 0) < 1e-9);
        CHECK(error_of(mt__k_plain(x, mt__k1_parts(x)), mt__k1(x), 0) < 1e-9);
        CHECK(error_of(mt__spherical_j0_wide(x), mt__spherical_j0(x), 1e-9) < 1e-7);
    }
    CHECK(isinf(mt__i0_wide((double)INFINITY)) && mt__i1e_wide(-(double)INFINITY) == 0);
    CHECK(mt__i1_wide(-1e30) == -(double)INFINITY && (float)mt__i0_wide(0) == 1);
    CHECK(isinf(mt__k1_parts(0.0)) && isnan(mt__k_plain(-1.0, mt__k0_parts(-1.0))));
    CHECK(isnan(mt__i0_wide((double)NAN)) && isnan(mt__k_scaled(NAN, mt__k1_parts(NAN))));
}

/* A float next to a zero has a value of 1e-8 or more: an absolute error of 1e-15 leaves digits. */
TEST(vector_forms_of_j_and_y_are_right_next_to_zeros)
{
    for (double x = 1e-4; x <= (double)MT_BESSEL_NEAR; x += 0.00137) {
        CHECK_NEAR_F64(mt__j0_near(x), j0(x), 2e-15);
        CHECK_NEAR_F64(mt__j1_near(-x), j1(-x), 2e-15);
        CHECK(error_of(mt__y0_near(x), y0(x), 1) < 2e-15);
        CHECK(error_of(mt__y1_near(x), y1(x), 1) < 2e-15);
    }
    for (double x = 8.0001; x <= (double)MT_BESSEL_LIMIT; x *= 1.00317) {
        CHECK_NEAR_F64(mt__j0_far(x), j0(x), 2e-14);
        CHECK_NEAR_F64(mt__j1_far(x), j1(x), 2e-14);
        CHECK_NEAR_F64(mt__y0_far(x), y0(x), 2e-14);
        CHECK_NEAR_F64(mt__y1_far(x), y1(x), 2e-14);
    }
}

TEST(the_normal_distribution_and_its_inverse)
{
    for (double x = -5; x < 5; x += 0.37) {
        CHECK_NEAR_F64(mt__erfcx(x) / (double)(expl((long double)x * x) * erfcl(x)), 1, 1e-15);
        CHECK_NEAR_F64(mt__log_ndtr(x), (double)logl(erfcl(-x / M_SQRT2l) / 2), 4e-15);
        CHECK_NEAR_F64(mt__ndtri(mt__ndtr(x)), x, 1e-11 * exp(x > 0 ? x * x / 2 : 0));
    }
    CHECK_NEAR_F64(mt__erfcx(1e8) * 1e8, 0.56418958354775629, 1e-15);
    CHECK_NEAR_F64(mt__log_ndtr(-40) / -804.60844201, 1, 1e-9);
    CHECK_NEAR_F64(mt__ndtri(1e-300), -37.0471, 1e-4);
    CHECK(mt__ndtri(0.0) == -(double)INFINITY && isnan(mt__ndtri(1.5)) && isinf(mt__erfcx(-30)));
}

/* The density's integral from 0 on by Simpson's rule. */
static double share_by_steps(double a, double x)
{
    enum {
        STEPS = 20000
    };
    long double sum = 0;
    for (int i = 1; i <= STEPS; i++) { /* t = x u^4 takes away the pole at 0 */
        long double u = (long double)i / STEPS;
        long double t = x * u * u * u * u;
        long double f = expl((a - 1) * logl(t) - t - lgammal(a)) * 4 * x * u * u * u;
        sum += f * (i == STEPS ? 1 : i % 2 == 1 ? 4 : 2);
    }
    return (double)(sum / 3 / STEPS);
}

TEST(shares_of_the_gamma_distribution)
{
    static const double shapes[] = {0.5, 1, 3.5, 19.9, 20.1, 300};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (double times = 0.4; times < 2; times += 0.21) {
            double a = shapes[i], x = a * times;
            CHECK_NEAR_F64(mt__gamma_share(a, x, false), share_by_steps(a, x), 1e-10);
            CHECK_NEAR_F64(mt__gamma_share(a, x, false) + mt__gamma_share(a, x, true), 1, 1e-14);
        }
    }
    /* One way meets the other. */
    CHECK_NEAR_F64(mt__gamma_share(4999.999, 5050, false),
                   mt__gamma_share(5000.001, 5050.002, false), 1e-7);
    CHECK_NEAR_F64(mt__gamma_share(1e12, 1e12, false), 0.5, 1e-6);
    CHECK_NEAR_F64(mt__hurwitz_zeta(2, 1), M_PI * M_PI / 6, 1e-15);
    CHECK(isinf(mt__hurwitz_zeta(1, 2)) && isnan(mt__hurwitz_zeta(0.5, 2)));
    CHECK(isnan(mt__gamma_share(-1, 1, false)) && mt__gamma_share(2, (double)INFINITY, true) == 0);
    CHECK(isfinite(mt__gamma_share(1e300, 1e300, true)) &&
          isfinite(mt__gamma_share(1e-300, 1e-300, true)));
}
