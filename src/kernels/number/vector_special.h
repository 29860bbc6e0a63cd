/* SPDX-License-Identifier: Apache-2.0
 *
 * Float results in double without branches and calls, as in vector_math.h: inverse circular and
 * hyperbolic functions, the gamma function's logarithm and its derivative, the inverse of erf.
 *
 *   VS1  Special numbers are C's, as VM1 has it. Bounds on the error, in units in the last place of
 *        a float (test_vector_math.c): 1, lgamma and digamma 1 and 1e-13 (which shows next to their
 *        zeros below 0).
 *
 * The polynomials are our own (interpolation at Chebyshev's points of the intervals named).
 */
#ifndef KERNELS_NUMBER_VECTOR_SPECIAL_H
#define KERNELS_NUMBER_VECTOR_SPECIAL_H

#include "kernels/number/vector_math.h"

/* ---- inverse circular and hyperbolic functions ---- */

MT_INLINE double mt__asin_wide(double x)
{
    return mt__atan2_wide(x, sqrt((1.0 - x) * (1.0 + x)));
}

MT_INLINE double mt__acos_wide(double x)
{
    return mt__atan2_wide(sqrt((1.0 - x) * (1.0 + x)), x);
}

/* Where the logarithm's argument is nearly 1 it has too few digits. */
MT_INLINE double mt__asinh_wide(double x)
{
    double a = fabs(x);
    double large = mt__log_f64(a + sqrt(a * a + 1.0));
    double small = a - a * a * a * (1.0 / 6.0);
    return copysign(a < 1e-4 ? small : large, x);
}

MT_INLINE double mt__acosh_wide(double x)
{
    double inside = mt__log_f64(x + sqrt((x - 1.0) * (x + 1.0)));
    return x >= 1.0 ? inside : (double)NAN;
}

MT_INLINE double mt__atanh_wide(double x)
{
    double a = fabs(x);
    double large = 0.5 * mt__log_f64((1.0 + a) / (1.0 - a));
    double small = a + a * a * a * (1.0 / 3.0);
    double result = a < 1e-4 ? small : large;
    return copysign(a <= 1.0 ? result : (double)NAN, x);
}

/* ---- the gamma function ---- */

/* sin(pi r), |r| <= 1/2 */
MT_INLINE double mt__sin_turn(double r)
{
    double v = 8.0 * r * r - 1.0;
    double p = -1.0077298809076771e-11;
    p = p * v + 1.7070583033420237e-09;
    p = p * v - 2.1447169604956223e-07;
    p = p * v + 1.895682913513203e-05;
    p = p * v - 0.0010924320054892167;
    p = p * v + 0.03645310559710492;
    p = p * v - 0.5697036803076341;
    p = p * v + 2.534324262661598;
    return r * p;
}

/* What is between x and the nearest whole number. */
MT_INLINE double mt__from_whole(double x)
{
    double near = (x + 6755399441055744.0) - 6755399441055744.0;
    double whole = fabs(x) < 4503599627370496.0 ? near : x;
    return x - whole;
}

/* lgamma / ((x - 1) (x - 2)), 1 <= x <= 3 */
MT_INLINE double mt__lgamma_series(double x)
{
    double v = x - 2.0;
    double p = -1.0720306768374289e-08;
    p = p * v + 2.2205818811586364e-08;
    p = p * v + 1.826501857734655e-08;
    p = p * v - 3.757408128677482e-08;
    p = p * v - 9.149733061118459e-08;
    p = p * v + 1.904119884592213e-07;
    p = p * v - 1.4236105253537717e-07;
    p = p * v + 3.018395891270956e-07;
    p = p * v - 8.855951686326325e-07;
    p = p * v + 1.8755509317635744e-06;
    p = p * v - 3.833116287646882e-06;
    p = p * v + 8.192828765584198e-06;
    p = p * v - 1.7665709404383975e-05;
    p = p * v + 3.817722380545098e-05;
    p = p * v - 8.309440541585384e-05;
    p = p * v + 0.00018255114930835727;
    p = p * v - 0.0004057074731484343;
    p = p * v + 0.0009153770785665488;
    p = p * v - 0.002108130829872506;
    p = p * v + 0.004998641156259031;
    p = p * v - 0.012384192193457294;
    p = p * v + 0.03296500062133358;
    p = p * v - 0.10031730167435363;
    p = p * v + 0.4227843350984665;
    return p;
}

/* lgamma of x >= 3 (of x >= 1 to fewer digits): x moved beyond 8, then Stirling's series. */
MT_INLINE double mt__lgamma_far(double x)
{
    double product = x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0);
    double moved = x < 8.0 ? product : 1.0;
    double z = x < 8.0 ? x + 5.0 : x;
    double i = 1.0 / z;
    double s = i * i;
    double rest = -0.029550653594771242;
    rest = rest * s + 0.0064102564102564103;
    rest = rest * s - 0.0019175269175269176;
    rest = rest * s + 0.00084175084175084175;
    rest = rest * s - 0.00059523809523809524;
    rest = rest * s + 0.00079365079365079365;
    rest = rest * s - 0.0027777777777777778;
    rest = rest * s + 0.083333333333333333;
    double log_z = mt__log_f64(z);
    return z * (log_z - 1.0) - 0.5 * log_z + (0.91893853320467274 + rest * i) - mt__log_f64(moved);
}

/* Below 0: gamma(x) gamma(-x) = -pi / (x sin(pi x)). */
MT_INLINE double mt__lgamma_wide(double x)
{
    double a = fabs(x);
    double t = a < 1.0 ? a + 1.0 : a;
    double near = (t - 1.0) * (t - 2.0) * mt__lgamma_series(t);
    double far = mt__lgamma_far(t);
    double value = t < 3.0 ? near : far;
    double least = a < 1.0 ? a : 1.0;
    double sine = fabs(mt__sin_turn(mt__from_whole(x)));
    double ratio = (x < 0.0 ? 3.1415926535897932 * least : 1.0) / (x < 0.0 ? sine * a : least);
    double turned = mt__log_f64(ratio);
    double result = x < 0.0 ? turned - value : turned + value;
    result = a > DBL_MAX ? (double)INFINITY : result;
    return x != x ? x : result;
}

/* The recurrence in one fraction up to 10, then the series; below 0 that of 1 - x, less
 * pi / tan(pi x). */
MT_INLINE double mt__digamma_wide(double x)
{
    double b = x < 0.0 ? 1.0 - x : x;
    double top = 0.0, bottom = 1.0;
    for (int k = 0; k < 10; k++) { /* the sum of 1 / (b + k) */
        top = top * (b + k) + bottom;
        bottom = bottom * (b + k);
    }
    double z = b < 10.0 ? b + 10.0 : b;
    double less = b < 10.0 ? top / bottom : 0.0;
    double s = 1.0 / (z * z);
    double series = 1.0 / 12;
    series = series * s - 691.0 / 32760;
    series = series * s + 1.0 / 132;
    series = series * s - 1.0 / 240;
    series = series * s + 1.0 / 252;
    series = series * s - 1.0 / 120;
    series = series * s + 1.0 / 12;
    double value = mt__log_f64(z) - 0.5 / z - s * series - less;
    double r = mt__from_whole(x);
    double turned = 3.1415926535897932 * mt__sin_turn(0.5 - fabs(r)) / mt__sin_turn(r);
    turned = r == 0.0 ? (double)NAN : turned;
    double result = x < 0.0 ? value - turned : value;
    return x == 0.0 ? copysign((double)INFINITY, -x) : result;
}

/* ---- the inverse of erf ---- */

/* erfinv(x) / x as a polynomial of sqrt(1 - log(1 - x x)), which is smooth from 0 to the last float
 * below 1; right to 2e-9 of it. */
MT_INLINE double mt__erfinv_wide(double x)
{
    double u = sqrt(1.0 - mt__log_f64((1.0 - x) * (1.0 + x)));
    double v = (u - 2.6) * 0.625;
    double p = -2.9107351183327082e-05;
    p = p * v - 0.0017299992773571959;
    p = p * v + 0.0016903476901231301;
    p = p * v + 0.010008459274016859;
    p = p * v - 0.01121735396266811;
    p = p * v - 0.024083974641813843;
    p = p * v + 0.03588507341754595;
    p = p * v + 0.026480505195033557;
    p = p * v - 0.0698063628258068;
    p = p * v + 0.005694719416709676;
    p = p * v + 0.0850200928273917;
    p = p * v - 0.07085886722344699;
    p = p * v - 0.04493064728883283;
    p = p * v + 0.12483520759155158;
    p = p * v - 0.062130503182595685;
    p = p * v - 0.08904643380148129;
    p = p * v + 0.18328320814550955;
    p = p * v - 0.15318667802607905;
    p = p * v + 0.0471251334379512;
    p = p * v + 1.6886530519964575;
    p = p * v + 2.2381030361967054;
    double result = fabs(x) < 1.0 ? x * p : x * (double)INFINITY;
    return fabs(x) <= 1.0 ? result : (double)NAN;
}

#endif /* KERNELS_NUMBER_VECTOR_SPECIAL_H */
