/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementary functions without branches and without calls, so that a plain loop over them becomes
 * vector code. For the files in src/kernels/isa, whose flags they need: -fno-math-errno
 * -fno-trapping-math -ffp-contract=fast. Elsewhere they are right too, one number at a time.
 *
 *   VM1  Special numbers are C's: NaN stays NaN, infinities, signed zeros and subnormals are kept,
 *        as input and as output. The code neither needs nor survives -ffast-math.
 *   VM2  Bounds on the error, in units in the last place; test_vector_math.c checks them against
 *        long double libm for every instruction set:
 *            float    exp 1.1  expm1 2  log 1  log1p 2  log2 2  log10 2  tanh 3  sigmoid 2.5  erf 2
 *                     sin cos 2 and tan 4 up to |x| = MT_TRIG_LIMIT  pow 1
 *            double   exp 1.1  expm1 2.1  log 1  tanh 3  sigmoid 2.5
 *        sigmoid is 1 / (1 + exp(-x)), as in torch: 0 where exp(-x) is infinite (x < -88.7). gelu
 *        and its slope are right to 1e-7 of max(1, |x|). With and without fused multiplication the
 *        last bit may differ.
 *   VM3  No conversion from floating point to integer: adding 1.5 * 2^23 (2^52) leaves the rounded
 *        number in the low bits, whatever the number was. So no input is undefined behaviour.
 *
 * The polynomials are our own (Remez exchange on the intervals that the comments name).
 */
#ifndef KERNELS_NUMBER_VECTOR_MATH_H
#define KERNELS_NUMBER_VECTOR_MATH_H

#include "base/compiler.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MT_TRIG_LIMIT 1.0e7F /* beyond it mt__sin_f32() and its kin are not meant to be called */

/* ---- bits ---- */

MT_INLINE uint32_t mt__bits_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

MT_INLINE float mt__float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

MT_INLINE uint64_t mt__bits_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

MT_INLINE double mt__double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n for n in the range of normal numbers, n in two's complement. */
MT_INLINE float mt__power2_f32(uint32_t n)
{
    return mt__float_of((n + 127U) << 23);
}

MT_INLINE double mt__power2_f64(uint64_t n)
{
    return mt__double_of((n + 1023U) << 52);
}

/* ---- float: exponentials ---- */

/* x = n ln 2 + r, |r| <= ln 2 / 2. Returns e^r - 1; n in two's complement. */
MT_INLINE float mt__exp_reduced_f32(float x, uint32_t *n)
{
    float shifted = x * 1.44269504F + 12582912.0F;
    *n = mt__bits_f32(shifted) - 0x4b400000U;
    float whole = shifted - 12582912.0F;
    float r = x - whole * 0.693145752F; /* 15 bits of ln 2: the product is exact */
    r = r - whole * 1.42860677e-6F;
    float q = 0.00139517174F;
    q = q * r + 0.00836959854F;
    q = q * r + 0.0416661873F;
    q = q * r + 0.166665122F;
    q = q * r + 0.5F;
    return r * r * q + r;
}

MT_INLINE float mt__exp_f32(float x)
{
    float y = x > 89.0F ? 89.0F : x;
    y = y < -104.0F ? -104.0F : y;
    uint32_t n;
    float p = mt__exp_reduced_f32(y, &n) + 1.0F;
    /* In two steps: 2^128 and 2^-149 are not normal numbers. */
    uint32_t half = (uint32_t)((int32_t)n >> 1);
    return p * mt__power2_f32(half) * mt__power2_f32(n - half);
}

/* The same for -87 <= x <= 88, a little faster. */
MT_INLINE float mt__exp_near_f32(float x)
{
    uint32_t n;
    float p = mt__exp_reduced_f32(x, &n) + 1.0F;
    return p * mt__power2_f32(n);
}

MT_INLINE float mt__expm1_f32(float x)
{
    float y = x > 89.0F ? 89.0F : x;
    y = y < -20.0F ? -20.0F : y;
    uint32_t n;
    float p = mt__exp_reduced_f32(y, &n);
    uint32_t half = (uint32_t)((int32_t)n >> 1);
    uint32_t rest = n - half;
    float scale = mt__power2_f32(half);
    float result = (scale * p + (scale - mt__power2_f32(0U - rest))) * mt__power2_f32(rest);
    return copysignf(result, x); /* -0 */
}

MT_INLINE float mt__tanh_f32(float x)
{
    float a = fabsf(x);
    a = a > 10.0F ? 10.0F : a; /* 1 - 2^-27 */
    uint32_t n;
    float p = mt__exp_reduced_f32(a + a, &n);
    float scale = mt__power2_f32(n);
    float e = scale * p + (scale - 1.0F); /* e^2a - 1 */
    return copysignf(e / (e + 2.0F), x);
}

MT_INLINE float mt__sigmoid_f32(float x)
{
    return 1.0F / (1.0F + mt__exp_f32(-x));
}

/* ---- float: logarithms ---- */

/* x = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)). Returns log(1 + f) - f. For x > 0. */
MT_INLINE float mt__log_reduced_f32(float x, float *f, float *e)
{
    uint32_t is_small = x < FLT_MIN;
    float scaled = is_small ? x * 8388608.0F : x;
    uint32_t bits = mt__bits_f32(scaled) + (0x3f800000U - 0x3f3504f3U);
    *e = (float)(int32_t)((bits >> 23) - 127U - (is_small ? 23U : 0U));
    float g = mt__float_of((bits & 0x7fffffU) + 0x3f3504f3U) - 1.0F;
    float q = 0.0692764148F;
    q = q * g - 0.118083239F;
    q = q * g + 0.118773088F;
    q = q * g - 0.123816811F;
    q = q * g + 0.14217791F;
    q = q * g - 0.166693673F;
    q = q * g + 0.200022697F;
    q = q * g - 0.249999851F;
    q = q * g + 0.333333105F;
    *f = g;
    return g * g * (g * q - 0.5F);
}

/* What a logarithm is outside of the positive finite numbers. */
MT_INLINE float mt__log_edges_f32(float x, float inside)
{
    float result = x > 0.0F ? inside : (float)NAN;
    result = x == 0.0F ? -(float)INFINITY : result;
    return x > FLT_MAX ? x : result;
}

MT_INLINE float mt__log_f32(float x)
{
    float f, e;
    float tail = mt__log_reduced_f32(x, &f, &e);
    tail = e * -2.12194440e-4F + tail;
    return mt__log_edges_f32(x, e * 0.693359375F + (f + tail));
}

MT_INLINE float mt__log2_f32(float x)
{
    float f, e;
    float tail = mt__log_reduced_f32(x, &f, &e);
    /* log2(e) in two pieces; powers of two come out exact. */
    float small = tail * 1.44269504F + f * 1.92596299e-8F;
    return mt__log_edges_f32(x, e + (f * 1.44269502F + small));
}

MT_INLINE float mt__log10_f32(float x)
{
    float f, e;
    float tail = mt__log_reduced_f32(x, &f, &e);
    float small = e * 4.60503907e-6F + tail * 0.434294492F; /* log10(2) in two pieces */
    return mt__log_edges_f32(x, e * 0.301025391F + (f * 0.434294492F + small));
}

MT_INLINE float mt__log1p_f32(float x)
{
    float u = 1.0F + x;
    float lost = x - (u - 1.0F); /* what the sum rounded away */
    float correction = u > 0.0F && x < 1.0e8F ? lost / u : 0.0F;
    return copysignf(mt__log_f32(u) + correction, x); /* -0 */
}

/* log(1 + t) for 0 <= t <= 1, and NaN: without tests for the ends of the range, which the compiler
 * would turn into branches. */
MT_INLINE float mt__log1p_unit_f32(float t)
{
    float u = 1.0F + t;
    float f, e;
    float tail = mt__log_reduced_f32(u, &f, &e);
    tail = e * -2.12194440e-4F + tail + (t - (u - 1.0F)) / u;
    return e * 0.693359375F + (f + tail);
}

/* log(1 + e^x) */
MT_INLINE float mt__softplus_f32(float x)
{
    return (x > 0.0F ? x : 0.0F) + mt__log1p_unit_f32(mt__exp_f32(-fabsf(x)));
}

/* ---- float: error function ---- */

MT_INLINE float mt__erf_f32(float x)
{
    float a = fabsf(x);
    float t = a > 4.05F ? 4.05F : a;
    float z = a * a;
    /* |x| <= 0.95: x + x P(x^2) */
    float p = 8.21543072e-5F;
    p = p * z - 0.000810596743F;
    p = p * z + 0.00519779744F;
    p = p * z - 0.0268581044F;
    p = p * z + 0.112836726F;
    p = p * z - 0.376126319F;
    p = p * z + 0.128379166F;
    float near = x * p + x;
    /* beyond: 1 - exp(-t + Q(t)) */
    float q = -1.15227185e-5F;
    q = q * t + 0.000325656816F;
    q = q * t - 0.00365378009F;
    q = q * t + 0.0237853788F;
    q = q * t - 0.106263183F;
    q = q * t - 0.635135889F;
    q = q * t - 0.12865217F;
    float far = copysignf(1.0F - mt__exp_near_f32(q * t - t), x);
    return a > 0.935F ? far : near;
}

/* The normal distribution's density (times sqrt(2 pi)) and what lies beyond |x|: one exponential
 * for both. The second is right to 1e-7 absolutely, which is what 1 - tail can show. */
MT_INLINE float mt__normal_tail_f32(float x, float *density)
{
    float a = fabsf(x);
    float t = a > 4.8F ? 4.8F : a;
    float q = 1.69787006e-06F;
    q = q * t - 3.63453728e-05F;
    q = q * t + 0.000347956578F;
    q = q * t - 0.00200718502F;
    q = q * t + 0.00801681168F;
    q = q * t - 0.0244276375F;
    q = q * t + 0.0612571612F;
    q = q * t - 0.132567748F;
    q = q * t + 0.249932021F;
    q = q * t - 0.398938417F;
    q = q * t + 0.5F;
    *density = mt__exp_f32(-0.5F * x * x);
    return q * *density;
}

/* x times the part of the distribution below x: the part beyond |x| is exp(Q(|x|)) / 2, right to
 * 4e-8 absolutely; past 5.6 it is lost next to 1. */
MT_INLINE float mt__gelu_f32(float x)
{
    float a = fabsf(x);
    float q = 6.13981547e-6F;
    q = q * a - 3.99892488e-5F;
    q = q * a - 0.000282108347F;
    q = q * a + 0.00510374736F;
    q = q * a - 0.0365057215F;
    q = q * a - 0.318268448F;
    q = q * a - 0.797887862F;
    uint32_t n;
    float p = mt__exp_reduced_f32(q * a, &n) + 1.0F;
    float tail = p * mt__power2_f32(n - 1U);
    tail = a > 5.6F ? 0.0F : tail;
    return x * (x < 0.0F ? tail : 1.0F - tail);
}

MT_INLINE float mt__gelu_slope_f32(float x)
{
    float density;
    float tail = mt__normal_tail_f32(x, &density);
    return (x < 0.0F ? tail : 1.0F - tail) + x * (0.398942280F * density);
}

/* ---- float: sine and cosine, |x| <= MT_TRIG_LIMIT ---- */

/* x = n pi/2 + r; the difference in double, so that r is right where x is near a multiple. */
MT_INLINE float mt__trig_reduced_f32(float x, uint32_t *n)
{
    double wide = (double)x;
    double shifted = wide * 0.63661977236758134 + 6755399441055744.0;
    double whole = shifted - 6755399441055744.0;
    *n = (uint32_t)mt__bits_f64(shifted);
    double r = wide - whole * 1.570796325802803; /* 29 bits of pi/2: the product is exact */
    return (float)(r - whole * 9.9209357968054043e-10);
}

MT_INLINE float mt__sin_poly_f32(float r)
{
    float z = r * r;
    float s = 2.71756448e-6F;
    s = s * z - 0.000198392561F;
    s = s * z + 0.00833332911F;
    s = s * z - 0.166666672F;
    return r * z * s + r;
}

MT_INLINE float mt__cos_poly_f32(float r)
{
    float z = r * r;
    float c = -2.72033049e-7F;
    c = c * z + 2.47994358e-5F;
    c = c * z - 0.00138888834F;
    c = c * z + 0.0416666679F;
    return 1.0F - (0.5F * z - z * z * c);
}

MT_INLINE float mt__sin_f32(float x)
{
    uint32_t n;
    float r = mt__trig_reduced_f32(x, &n);
    float s = mt__sin_poly_f32(r);
    float c = mt__cos_poly_f32(r);
    float y = (n & 1U) != 0 ? c : s;
    y = mt__float_of(mt__bits_f32(y) ^ ((n & 2U) << 30));
    return x == 0.0F ? x : y; /* -0 */
}

MT_INLINE float mt__cos_f32(float x)
{
    uint32_t n;
    float r = mt__trig_reduced_f32(x, &n);
    float s = mt__sin_poly_f32(r);
    float c = mt__cos_poly_f32(r);
    float y = (n & 1U) != 0 ? s : c;
    return mt__float_of(mt__bits_f32(y) ^ (((n + 1U) & 2U) << 30));
}

MT_INLINE float mt__tan_f32(float x)
{
    uint32_t n;
    float r = mt__trig_reduced_f32(x, &n);
    float s = mt__sin_poly_f32(r);
    float c = mt__cos_poly_f32(r);
    float y = (n & 1U) != 0 ? -c / s : s / c;
    return x == 0.0F ? x : y; /* -0 */
}

/* ---- double ---- */

MT_INLINE double mt__exp_reduced_f64(double x, uint64_t *n)
{
    double shifted = x * 1.4426950408889634 + 6755399441055744.0;
    *n = mt__bits_f64(shifted) - 0x4338000000000000U;
    double whole = shifted - 6755399441055744.0;
    double r = x - whole * 0.69314718055989033; /* 42 bits of ln 2 */
    r = r - whole * 5.4979230187083712e-14;
    double q = 1.6095853285924207e-10;
    q = q * r + 2.09253471107908e-09;
    q = q * r + 2.5052037695502436e-08;
    q = q * r + 2.7557238820615395e-07;
    q = q * r + 2.7557319292672463e-06;
    q = q * r + 2.4801587366999817e-05;
    q = q * r + 0.00019841269841234708;
    q = q * r + 0.0013888888888862001;
    q = q * r + 0.0083333333333333419;
    q = q * r + 0.04166666666666672;
    q = q * r + 0.16666666666666666;
    q = q * r + 0.5;
    return r * r * q + r;
}

/* n / 2 rounded down, n in two's complement and small. There is no arithmetic shift of 64 bits
 * before AVX-512, so the sign goes through a bias. */
MT_INLINE uint64_t mt__half_of(uint64_t n)
{
    return ((n + 4096U) >> 1) - 2048U;
}

MT_INLINE double mt__exp_f64(double x)
{
    double y = x > 710.0 ? 710.0 : x;
    y = y < -746.0 ? -746.0 : y;
    uint64_t n;
    double p = mt__exp_reduced_f64(y, &n) + 1.0;
    uint64_t half = mt__half_of(n);
    return p * mt__power2_f64(half) * mt__power2_f64(n - half);
}

MT_INLINE double mt__expm1_f64(double x)
{
    double y = x > 710.0 ? 710.0 : x;
    y = y < -40.0 ? -40.0 : y;
    uint64_t n;
    double p = mt__exp_reduced_f64(y, &n);
    uint64_t half = mt__half_of(n);
    uint64_t rest = n - half;
    double scale = mt__power2_f64(half);
    double result = (scale * p + (scale - mt__power2_f64(0U - rest))) * mt__power2_f64(rest);
    return copysign(result, x);
}

MT_INLINE double mt__tanh_f64(double x)
{
    double a = fabs(x);
    a = a > 20.0 ? 20.0 : a;
    uint64_t n;
    double p = mt__exp_reduced_f64(a + a, &n);
    double scale = mt__power2_f64(n);
    double e = scale * p + (scale - 1.0);
    return copysign(e / (e + 2.0), x);
}

MT_INLINE double mt__sigmoid_f64(double x)
{
    return 1.0 / (1.0 + mt__exp_f64(-x));
}

/* For x > 0 and finite. */
MT_INLINE double mt__log_inside_f64(double x)
{
    uint64_t is_small = x < DBL_MIN;
    double scaled = is_small ? x * 18014398509481984.0 : x; /* 2^54 */
    uint64_t bits = mt__bits_f64(scaled) + (0x3ff0000000000000U - 0x3fe6a09e667f3bcdU);
    /* The exponent's bits as a number: there is no conversion of 64 bits before AVX-512. */
    double e = mt__double_of((bits >> 52) | 0x4330000000000000U) - 4503599627370496.0;
    e = e - (is_small ? 1077.0 : 1023.0);
    double f = mt__double_of((bits & 0xfffffffffffffU) + 0x3fe6a09e667f3bcdU) - 1.0;
    double s = f / (2.0 + f);
    double z = s * s;
    double t = 0.14811533099249871;
    t = t * z + 0.15312570495758887;
    t = t * z + 0.18183618968428017;
    t = t * z + 0.22222197587631082;
    t = t * z + 0.28571428751301148;
    t = t * z + 0.39999999999377983;
    t = t * z + 0.66666666666667396;
    /* log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + z t)) */
    double half = 0.5 * f * f;
    double tail = half - (s * (half + z * t) + e * 1.90821492927058770e-10);
    return e * 0.69314718036912382 + (f - tail); /* 32 bits of ln 2 */
}

MT_INLINE double mt__log_f64(double x)
{
    double result = x > 0.0 ? mt__log_inside_f64(x) : (double)NAN;
    result = x == 0.0 ? -(double)INFINITY : result;
    return x > DBL_MAX ? x : result;
}

MT_INLINE double mt__log1p_unit_f64(double t)
{
    double u = 1.0 + t;
    return mt__log_inside_f64(u) + (t - (u - 1.0)) / u;
}

MT_INLINE double mt__softplus_f64(double x)
{
    return (x > 0.0 ? x : 0.0) + mt__log1p_unit_f64(mt__exp_f64(-fabs(x)));
}

/* ---- float results in double: hyperbolic functions, arc tangents, erfc ---- */

MT_INLINE double mt__sinh_wide(double x)
{
    double a = fabs(x);
    double e = mt__exp_f64(a);
    double large = 0.5 * (e - 1.0 / e);
    double small = a + a * a * a * (1.0 / 6.0); /* where the difference has few digits */
    return copysign(a < 1e-3 ? small : large, x);
}

MT_INLINE double mt__cosh_wide(double x)
{
    double e = mt__exp_f64(fabs(x));
    return 0.5 * (e + 1.0 / e);
}

/* atan(t) / t, t t = (u + 1) / 2 */
MT_INLINE double mt__atan_series(double u)
{
    double p = -3.3227406550401331e-7;
    p = p * u + 1.0590749509563522e-6;
    p = p * u - 2.4919126176239462e-6;
    p = p * u + 8.4228762891061795e-6;
    p = p * u - 2.9725795976266733e-5;
    p = p * u + 0.0001024487701458854;
    p = p * u - 0.00036095954738048411;
    p = p * u + 0.001315544831970529;
    p = p * u - 0.0050308665156089404;
    p = p * u + 0.020851854775655089;
    p = p * u - 0.10187654224725719;
    p = p * u + 0.87041975131709443;
    return p;
}

/* The angle of (x, y), as atan2() has it for zeros and infinities. */
MT_INLINE double mt__atan2_wide(double y, double x)
{
    double a = fabs(x), b = fabs(y);
    double top = b > a ? a : b;
    double bottom = b > a ? b : a;
    double t = top / bottom;
    t = bottom == 0.0 ? 0.0 : t;
    t = top > DBL_MAX ? 1.0 : t; /* both are infinite */
    double angle = t * mt__atan_series(2.0 * t * t - 1.0);
    angle = b > a ? 1.5707963267948966 - angle : angle;
    angle = (mt__bits_f64(x) >> 63) != 0 ? 3.1415926535897931 - angle : angle;
    angle = x != x || y != y ? (double)NAN : angle;
    return copysign(angle, y);
}

MT_INLINE double mt__atan_wide(double x)
{
    double a = fabs(x);
    double t = a > 1.0 ? 1.0 / a : a;
    double angle = t * mt__atan_series(2.0 * t * t - 1.0);
    return copysign(a > 1.0 ? 1.5707963267948966 - angle : angle, x);
}

/* (x + 2) exp(x x) erfc(x), u = (x - 2) / (x + 2) */
MT_INLINE double mt__erfcx_series(double u)
{
    double p = -5.1995101416348149e-6;
    p = p * u - 1.7017739800638252e-5;
    p = p * u + 1.9553198995665533e-5;
    p = p * u + 0.00013537561379469037;
    p = p * u + 4.4780068589979217e-5;
    p = p * u - 0.00065620029597028306;
    p = p * u - 0.00084136649555426498;
    p = p * u + 0.0030880953661785012;
    p = p * u + 0.0064800132639936899;
    p = p * u - 0.02151023230550928;
    p = p * u - 0.036442306425671548;
    p = p * u + 0.27947206532377313;
    p = p * u - 0.68716068244254425;
    p = p * u + 1.0215827055224472;
    return p;
}

MT_INLINE double mt__erfc_wide(double x)
{
    double a = fabs(x);
    a = a > 30.0 ? 30.0 : a;
    double u = (a - 2.0) / (a + 2.0);
    double tail = mt__erfcx_series(u) / (a + 2.0) * mt__exp_f64(-a * a);
    return x < 0.0 ? 2.0 - tail : tail;
}

/* ---- power: in double, so that the float is right to its last place ---- */

/* e^x for a float, right to 2^-32 of it. */
MT_INLINE double mt__exp_wide(double x)
{
    double y = x > 90.0 ? 90.0 : x;
    y = y < -110.0 ? -110.0 : y;
    double shifted = y * 1.4426950408889634 + 6755399441055744.0;
    double r = y - (shifted - 6755399441055744.0) * 0.69314718055994531;
    double q = 0.00019890980869750327;
    q = q * r + 0.0013933641031986701;
    q = q * r + 0.008333310934448869;
    q = q * r + 0.04166646500604005;
    q = q * r + 0.16666666681614256;
    q = q * r + 0.5000000013457727;
    return (r * r * q + r + 1.0) * mt__power2_f64(mt__bits_f64(shifted) - 0x4338000000000000U);
}

/* The logarithm of a float that is not negative, right to 1e-10 of it. */
MT_INLINE double mt__log_wide(double x)
{
    uint64_t bits = mt__bits_f64(x) + (0x3ff0000000000000U - 0x3fe6a09e667f3bcdU);
    double e = mt__double_of((bits >> 52) | 0x4330000000000000U) - 4503599627371519.0;
    double f = mt__double_of((bits & 0xfffffffffffffU) + 0x3fe6a09e667f3bcdU) - 1.0;
    double v = f * 2.8284271247461903 - 0.17157287525380990;
    double p = -5.400989680612687e-07;
    p = p * v + 1.7385188743203206e-06;
    p = p * v - 4.006162694254578e-06;
    p = p * v + 1.3109149055298312e-05;
    p = p * v - 4.5073555184201794e-05;
    p = p * v + 0.00014999005181107663;
    p = p * v - 0.000504226164994491;
    p = p * v + 0.0017245305677134836;
    p = p * v - 0.006017073707511558;
    p = p * v + 0.021570737744639492;
    p = p * v - 0.08041789634641422;
    p = p * v + 0.318868857012522;
    double inside = e * 0.69314718055994531 + (f - f * f * (0.5 - f * p));
    double result = x == 0.0 ? -(double)INFINITY : inside;
    return x <= DBL_MAX ? result : x; /* NaN too */
}

MT_INLINE float mt__pow_f32(float x, float y)
{
    float a = fabsf(x);
    double power = mt__exp_wide((double)y * mt__log_wide((double)a));
    float m = (float)power;
    m = a == 1.0F && y == y ? 1.0F : m;
    m = x == 1.0F || y == 0.0F ? 1.0F : m;
    /* Tests for integers and odd integers without a conversion: adding 2^23 rounds numbers below
     * it. */
    float b = fabsf(y);
    float half = 0.5F * b;
    uint32_t is_whole = b >= 8388608.0F || (b + 8388608.0F) - 8388608.0F == b;
    uint32_t is_even = half >= 8388608.0F || (half + 8388608.0F) - 8388608.0F == half;
    uint32_t is_negative = mt__bits_f32(x) >> 31;
    m = is_negative != 0 && is_whole != 0 && is_even == 0 ? -m : m;
    uint32_t is_undefined = x < 0.0F && x >= -FLT_MAX && is_whole == 0 && y == y;
    return is_undefined != 0 ? (float)NAN : m;
}

#endif /* KERNELS_NUMBER_VECTOR_MATH_H */
