/* SPDX-License-Identifier: Apache-2.0
 *
 * The gamma function's family and the inverse of erf, one number at a time, in double.
 *
 *     digamma, polygamma   the recurrence up to large arguments, then the asymptotic series; below
 *                          0 the reflection formulas
 *     erfinv               Giles' approximation (2010), then four steps of Halley's method
 *     gamma_sample_slope   how a sample of the gamma distribution moves with its shape, by the
 *                          implicit function theorem: -(dP/da) / (dP/dx), P its distribution
 */
#ifndef KERNELS_NUMBER_GAMMA_H
#define KERNELS_NUMBER_GAMMA_H

#include "base/compiler.h"

#include <math.h>

static inline double mt__lgamma(double x)
{
    int sign = 0; /* lgamma() itself writes a global */
    return isinf(x) ? (double)INFINITY : lgamma_r(x, &sign);
}

static inline double mt__digamma(double x)
{
    if (x == 0.0) {
        return copysign((double)INFINITY, -x);
    }
    if (isinf(x)) {
        return x > 0.0 ? x : (double)NAN;
    }
    double below = 0.0;
    if (x < 0.0) {
        double part = x - rint(x); /* exact: what is near 0 keeps its digits */
        if (part == 0.0) {
            return (double)NAN;
        }
        below = -M_PI / tan(M_PI * part);
        x = 1.0 - x;
    }
    double sum = 0.0;
    while (x < 10.0) {
        sum -= 1.0 / x;
        x += 1.0;
    }
    double square = 1.0 / (x * x);
    /* Bernoulli numbers B(2k) / 2k */
    double series =
        square *
        (1.0 / 12 -
         square *
             (1.0 / 120 -
              square * (1.0 / 252 -
                        square * (1.0 / 240 -
                                  square * (1.0 / 132 - square * (691.0 / 32760 - square / 12))))));
    return below + sum + log(x) - 0.5 / x - series;
}

/* Hurwitz' zeta function by Euler and Maclaurin, s > 1. Whole numbers q <= 0 are poles. */
static inline double mt__zeta(double s, double q)
{
    static const double numbers[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                     5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};
    if (q <= 0.0 && q == floor(q)) {
        return (double)INFINITY;
    }
    if (q < -1e5) {
        q = q - floor(q) - 1e5; /* what is farther below adds less than 1e-10 of the sum */
    }
    double sum = 0.0;
    while (q < 12.0) {
        sum += pow(q, -s);
        q += 1.0;
    }
    double power = pow(q, -s);
    sum += q * power / (s - 1.0) + 0.5 * power;
    double factor = s * power / q; /* s (s + 1) ... / (2k)!, times q to the power -s - 2k + 1 */
    for (int k = 0; k < (int)MT_COUNT(numbers); k++) {
        factor *= k == 0 ? 0.5 : 1.0 / ((2 * k + 1) * (2 * k + 2));
        sum += numbers[k] * factor;
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (q * q);
    }
    return sum;
}

/* The n-th derivative of digamma. */
static inline double mt__polygamma(double n, double x)
{
    if (n == 0.0) {
        return mt__digamma(x);
    }
    if (n == 1.0 && x < 0.5) { /* also where x is far below 0 */
        double sine = sin(M_PI * (x - floor(x)));
        return M_PI * M_PI / (sine * sine) - mt__zeta(2.0, 1.0 - x);
    }
    double sign = fmod(n, 2.0) == 0.0 ? -1.0 : 1.0;
    return sign * exp(mt__lgamma(n + 1.0)) * mt__zeta(n + 1.0, x);
}

static inline double mt__erfinv(double x)
{
    static const double middle[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                    -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                    -0.00417768164,  0.246640727,    1.50140941};
    static const double outside[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                     -0.00367342844,  0.00573950773,  -0.0076224613,
                                     0.00943887047,   1.00167406,     2.83297682};
    if (!(x > -1.0 && x < 1.0)) {
        return x == 1.0 ? (double)INFINITY : x == -1.0 ? -(double)INFINITY : (double)NAN;
    }
    double w = -log((1.0 - x) * (1.0 + x));
    const double *factors = w < 5.0 ? middle : outside;
    w = w < 5.0 ? w - 2.5 : sqrt(w) - 3.0;
    double y = factors[0];
    for (int i = 1; i < 9; i++) {
        y = y * w + factors[i];
    }
    y *= x;
    for (int i = 0; i < 4; i++) { /* far out erfc() still has all its digits */
        double off = fabs(x) < 0.5 ? erf(y) - x
                     : x > 0.0     ? (1.0 - x) - erfc(y)
                                   : erfc(-y) - (1.0 + x);
        double step = off / (1.1283791670955126 * exp(-y * y));
        y -= step / (1.0 + y * step);
    }
    return y;
}

/* The upper tail, 1 - P, is a continued fraction; d is its denominator, from the end, and `slope`
 * the derivative of d by a. */
static inline double mt__gamma_tail_slope(double a, double x)
{
    enum {
        DEPTH = 200
    };
    double d = x + 2 * DEPTH + 1 - a;
    double slope = -1.0;
    for (int k = DEPTH; k > 0; k--) {
        double top = k * (k - a);
        slope = -1.0 + k / d + top * slope / (d * d);
        d = x + 2 * k - 1 - a - top / d;
    }
    return x / d * (log(x) - mt__digamma(a) - slope / d);
}

/* P = sum of x^(a + n) e^-x / gamma(a + n + 1), each term differentiated by a. Terms are relative
 * to the density x^(a - 1) e^-x / gamma(a), by which the slope is divided. */
static inline double mt__gamma_sum_slope(double a, double x)
{
    double term = x / a; /* n = 0 */
    double psi = mt__digamma(a + 1.0);
    double slope = 0.0;
    double logarithm = log(x);
    for (int n = 0; n < 100000; n++) {
        slope += term * (logarithm - psi);
        psi += 1.0 / (a + n + 1.0);
        term *= x / (a + n + 1.0);
        if (a + n > x && term * fabs(logarithm - psi) < 1e-17 * fabs(slope)) {
            break;
        }
    }
    return -slope;
}

/* d sample / d shape of a sample x of the gamma distribution with shape a. */
static inline double mt__gamma_sample_slope(double a, double x)
{
    if (!(a > 0.0) || !(x >= 0.0)) {
        return (double)NAN;
    }
    if (x == 0.0) {
        return 0.0;
    }
    if (a > 2e4) { /* Wilson and Hilferty: the cube root of x / a is nearly normal */
        double root = cbrt(x / a);
        double z = (root - 1.0 + 1.0 / (9.0 * a)) * 3.0 * sqrt(a);
        return root * root * (root + 3.0 * a * (1.0 / (9.0 * a * a) - z / (6.0 * a * sqrt(a))));
    }
    return x > a + 6.0 + 3.0 * sqrt(a) ? mt__gamma_tail_slope(a, x) : mt__gamma_sum_slope(a, x);
}

#endif /* KERNELS_NUMBER_GAMMA_H */
