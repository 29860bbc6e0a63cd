/* SPDX-License-Identifier: Apache-2.0
 *
 * The error function's family and the incomplete gamma functions, one number at a time, in double.
 *
 *     erfcx      exp(x x) erfc(x) with x x in two parts; far out the asymptotic series
 *     ndtri      a rational approximation (Abramowitz and Stegun 26.2.22), then Halley's method
 *     gammainc   the power series below the mean, the continued fraction above it; for large shapes
 *                Temme's uniform expansion
 */
#ifndef KERNELS_NUMBER_SPECIAL_H
#define KERNELS_NUMBER_SPECIAL_H

#include "kernels/number/gamma.h"

#include <stdbool.h>

/* ---- the error function's family ---- */

static inline double mt__erfcx(double x)
{
    if (x > 10.0) {
        double square = 1.0 / (x * x);
        double sum = 1.0;
        double term = 1.0;
        for (int k = 1; k < 18; k++) {
            term *= -(2 * k - 1) * 0.5 * square;
            sum += term;
        }
        return sum / x * 0.56418958354775628695; /* 1 / sqrt(pi) */
    }
    if (x < -27.0) {
        return (double)INFINITY;
    }
    double square = x * x;
    return exp(square) * erfc(x) * (1.0 + fma(x, x, -square));
}

static inline double mt__ndtr(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752440);
}

static inline double mt__log_ndtr(double x)
{
    double turned = x * 0.70710678118654752440;
    return x < -1.0 ? log(0.5 * mt__erfcx(-turned)) - turned * turned : log1p(-0.5 * erfc(turned));
}

/* The number below which a share p of the normal distribution lies. */
static inline double mt__ndtri(double p)
{
    if (!(p > 0.0 && p < 1.0)) {
        return p == 0.0 ? -(double)INFINITY : p == 1.0 ? (double)INFINITY : (double)NAN;
    }
    if (p == 0.5) {
        return 0.0;
    }
    double tail = p < 0.5 ? p : 1.0 - p;
    double t = sqrt(-2.0 * log(tail));
    double x = (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t)) - t; /* of the tail */
    for (int i = 0; i < 3; i++) {
        /* (ndtr(x) - tail) / density, from erfcx(): neither underflows */
        double ratio = 1.2533141373155003 * mt__erfcx(-x * 0.70710678118654752440);
        double step = ratio - tail * 2.5066282746310002 * exp(0.5 * x * x);
        x -= step / (1.0 + 0.5 * x * step);
    }
    return p < 0.5 ? x : -x;
}

static inline double mt__mantissa(double x)
{
    int exponent = 0;
    return isfinite(x) ? frexp(x, &exponent) : x;
}

static inline double mt__exponent(double x)
{
    int exponent = 0;
    if (isfinite(x)) {
        (void)frexp(x, &exponent);
    }
    return exponent;
}

/* ---- incomplete gamma functions ---- */

/* log(1 + m) - m */
static inline double mt__log1p_less(double m)
{
    if (fabs(m) > 0.3) {
        return log1p(m) - m;
    }
    double sum = 0.0;
    double power = m;
    for (int k = 2; k < 40; k++) {
        power *= -m;
        sum += power / k;
    }
    return sum;
}

/* x^a e^-x / gamma(a + 1). For large a by Stirling's series: the plain logarithms cancel. */
static inline double mt__gamma_factor(double a, double x)
{
    if (a < 20.0) {
        return exp(a * log(x) - x - mt__lgamma(a + 1.0));
    }
    double square = 1.0 / (a * a);
    double rest =
        (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square * (1.0 / 1680)))) / a;
    return exp(a * mt__log1p_less((x - a) / a) - rest) * 0.39894228040143267794 / sqrt(a);
}

/* The sum over n of x^n / ((a + 1) ... (a + n)). */
static inline double mt__gamma_series(double a, double x)
{
    double term = 1.0;
    double sum = 1.0;
    for (int n = 1; n < 20000 && term > 1e-17 * sum; n++) {
        term *= x / (a + n);
        sum += term;
    }
    return sum;
}

/* 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)), by Lentz's method. */
static inline double mt__gamma_fraction(double a, double x)
{
    double b = x + 1.0 - a;
    double c = 1e300;
    double d = 1.0 / b;
    double value = d;
    for (int n = 1; n < 20000; n++) {
        double top = -n * (n - a);
        b += 2.0;
        d = top * d + b;
        d = 1.0 / (fabs(d) < 1e-300 ? 1e-300 : d);
        c = b + top / c;
        c = fabs(c) < 1e-300 ? 1e-300 : c;
        double step = c * d;
        value *= step;
        if (fabs(step - 1.0) < 1e-16) {
            break;
        }
    }
    return value;
}

/* 1 - P of a small shape near 0, where the difference would have no digits: P is x^a / gamma(a + 1)
 * times 1 + the sum of a (-x)^n / ((a + n) n!). */
static inline double mt__gamma_small_tail(double a, double x)
{
    double log_gamma =
        a < 1e-5 ? a * (0.82246703342411322 * a - 0.57721566490153286) : mt__lgamma(a + 1.0);
    double power = a * log(x) - log_gamma;
    double term = 1.0;
    double sum = 0.0;
    for (int n = 1; n < 25; n++) {
        term *= -x / n;
        sum += a * term / (a + n);
    }
    return -expm1(power) - exp(power) * sum;
}

/* Temme's expansion (DLMF 8.12); `upper`: the tail above x. */
static inline double mt__gamma_uniform(double a, double x, bool upper)
{
    static const double c0[] = {
        -0.33333333333333331,    0.083333333333333329,    -0.014814814814814815,
        0.0011574074074074073,   0.00035273368606701942,  -0.0001787551440329218,
        3.9192631785224377e-05,  -2.185448510679992e-06,  -1.85406221071516e-06,
        8.2967113409530865e-07,  -1.7665952736826078e-07, 6.7078535434014984e-09,
        1.0261809784240309e-08,  -4.3820360184533529e-09, 9.1476995822367902e-10,
        -2.5514193994946248e-11, -5.8307721325504256e-11, 2.4361948020667415e-11,
        -5.0276692801141755e-12, 1.1004392031956135e-13,  3.3717632624009851e-13,
        -1.3923887224181621e-13};
    static const double c1[] = {
        -0.0018518518518518519,  -0.003472222222222222,  0.0026455026455026454,
        -0.00099022633744855963, 0.00020576131687242798, -4.018775720164609e-07,
        -1.8098550334489977e-05, 7.6491609160811098e-06, -1.6120900894563446e-06,
        4.647127802807434e-09,   1.3786334469157209e-07, -5.7525456035177047e-08,
        1.1951628599778148e-08,  -1.7543241719747647e-11};
    static const double c2[] = {0.0041335978835978834,   -0.0026813271604938273,
                                0.0007716049382716049,   2.0093878600823047e-06,
                                -0.0001073665322636516,  5.2923448829120125e-05,
                                -1.2760635188618728e-05, 3.4235787340961378e-08,
                                1.3721957309062934e-06,  -6.2989921383800548e-07};
    double log_part = mt__log1p_less((x - a) / a);
    double eta = copysign(sqrt(-2.0 * log_part), x - a);
    double sums[3] = {0.0, 0.0, 0.0};
    for (int k = (int)MT_COUNT(c0) - 1; k >= 0; k--) {
        sums[0] = sums[0] * eta + c0[k];
        sums[1] = sums[1] * eta + (k < (int)MT_COUNT(c1) ? c1[k] : 0.0);
        sums[2] = sums[2] * eta + (k < (int)MT_COUNT(c2) ? c2[k] : 0.0);
    }
    double rest = exp(a * log_part) * 0.39894228040143267794 / sqrt(a) *
                  (sums[0] + (sums[1] + sums[2] / a) / a);
    double turned = eta * sqrt(0.5 * a);
    return upper ? 0.5 * erfc(turned) + rest : 0.5 * erfc(-turned) - rest;
}

/* The share of the gamma distribution of shape a below x, or above it. */
static inline double mt__gamma_share(double a, double x, bool upper)
{
    if (!(a >= 0.0) || !(x >= 0.0) || (a == 0.0 && x == 0.0) || (isinf(a) && isinf(x))) {
        return (double)NAN;
    }
    if (a == 0.0 || isinf(x)) {
        return upper ? 0.0 : 1.0;
    }
    if (x == 0.0 || isinf(a)) {
        return upper ? 1.0 : 0.0;
    }
    if (a > 5000.0 && fabs(x - a) < 0.4 * a) {
        return mt__gamma_uniform(a, x, upper);
    }
    if (upper && a <= 1.0 && x <= 1.1) {
        return mt__gamma_small_tail(a, x);
    }
    double factor = mt__gamma_factor(a, x);
    if (x < a + 1.0) {
        double below = factor * mt__gamma_series(a, x);
        return upper ? 1.0 - below : below;
    }
    double above = factor * a * mt__gamma_fraction(a, x);
    return upper ? above : 1.0 - above;
}

/* Hurwitz' zeta function as torch has it. */
static inline double mt__hurwitz_zeta(double s, double q)
{
    if (isnan(s) || isnan(q) || s < 1.0) {
        return (double)NAN;
    }
    if (s == 1.0) {
        return (double)INFINITY;
    }
    if (q <= 0.0) {
        return q == floor(q) ? (double)INFINITY : s == floor(s) ? mt__zeta(s, q) : (double)NAN;
    }
    return q > 1e8 ? (1.0 / (s - 1.0) + 0.5 / q) * pow(q, 1.0 - s) : mt__zeta(s, q);
}

#endif /* KERNELS_NUMBER_SPECIAL_H */
