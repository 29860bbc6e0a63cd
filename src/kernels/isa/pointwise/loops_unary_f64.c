/* SPDX-License-Identifier: Apache-2.0
 *
 * One input, double. Where vector_math.h has no function, libm is called for each element.
 */
#include "kernels/isa/pointwise/loop_body.h"
#include "kernels/number/bessel.h"
#include "kernels/number/special.h"
#include "kernels/number/vector_math.h"

/* X(code, expression): double to double */
#define TO_DOUBLE(X)                                                                      \
    X(NEG, -x)                                                                            \
    X(ABS, fabs(x))                                                                       \
    X(SIGN, x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : 0.0))                                       \
    X(SQUARE, x *x)                                                                       \
    X(RECIPROCAL, 1.0 / x)                                                                \
    X(SQRT, sqrt(x))                                                                      \
    X(RSQRT, 1.0 / sqrt(x))                                                               \
    X(EXP, mt__exp_f64(x))                                                                \
    X(EXPM1, mt__expm1_f64(x))                                                            \
    X(LOG, mt__log_f64(x))                                                                \
    X(LOG1P, log1p(x))                                                                    \
    X(LOG2, log2(x))                                                                      \
    X(LOG10, log10(x))                                                                    \
    X(SIN, sin(x))                                                                        \
    X(COS, cos(x))                                                                        \
    X(TAN, tan(x))                                                                        \
    X(TANH, mt__tanh_f64(x))                                                              \
    X(SIGMOID, mt__sigmoid_f64(x))                                                        \
    X(ERF, erf(x))                                                                        \
    X(GELU, 0.5 * x * (1.0 + erf(x * 0.70710678118654752)))                               \
    X(GELU_TANH,                                                                          \
      0.5 * x * (1.0 + mt__tanh_f64(0.79788456080286536 * (x + 0.044715 * (x * x * x))))) \
    X(SILU, x / (1.0 + mt__exp_f64(-x)))                                                  \
    X(RELU, x < 0.0 ? 0.0 : x)                                                            \
    X(FLOOR, floor(x))                                                                    \
    X(CEIL, ceil(x))                                                                      \
    X(ROUND, rint(x))                                                                     \
    X(TRUNC, trunc(x))                                                                    \
    X(CLAMP, clamp_to(x, s0, s1))                                                         \
    X(HARDTANH, clamp_to(x, s0, s1))                                                      \
    X(LEAKY_RELU, x > 0.0 ? x : x * s0)                                                   \
    X(SOFTPLUS, softplus_to(x, s0, s1))                                                   \
    X(ELU, x < 0.0 ? s0 * mt__expm1_f64(x) : x)                                           \
    X(ERFC, erfc(x))                                                                      \
    X(SINH, sinh(x))                                                                      \
    X(COSH, cosh(x))                                                                      \
    X(ASIN, asin(x))                                                                      \
    X(ACOS, acos(x))                                                                      \
    X(ATAN, atan(x))                                                                      \
    X(ASINH, asinh(x))                                                                    \
    X(ACOSH, acosh(x))                                                                    \
    X(ATANH, atanh(x))                                                                    \
    X(EXP2, exp2(x))                                                                      \
    X(FRAC, x - trunc(x))                                                                 \
    X(SINC, sinc_of(x))                                                                   \
    X(LGAMMA, mt__lgamma(x))                                                              \
    X(DIGAMMA, mt__digamma(x))                                                            \
    X(POLYGAMMA, mt__polygamma(s0, x))                                                    \
    X(ERFINV, mt__erfinv(x))                                                              \
    X(ERFCX, mt__erfcx(x))                                                                \
    X(LOG_NDTR, mt__log_ndtr(x))                                                          \
    X(NDTRI, mt__ndtri(x))                                                                \
    X(ENTR, entr_of(x))                                                                   \
    X(I0, mt__i0(x))                                                                      \
    X(I0E, mt__i0e(x))                                                                    \
    X(I1, mt__i1(x))                                                                      \
    X(I1E, mt__i1e(x))                                                                    \
    X(K0, mt__k0(x))                                                                      \
    X(K0E, mt__k0e(x))                                                                    \
    X(K1, mt__k1(x))                                                                      \
    X(K1E, mt__k1e(x))                                                                    \
    X(J0, j0(x))                                                                          \
    X(J1, j1(x))                                                                          \
    X(Y0, mt__y0(x))                                                                      \
    X(Y1, mt__y1(x))                                                                      \
    X(SPHERICAL_J0, mt__spherical_j0(x))                                                  \
    X(MANTISSA, mt__mantissa(x))                                                          \
    X(EXPONENT, mt__exponent(x))                                                          \
    X(EXP_DECAY, mt__exp_f64(-fabs(x)))                                                   \
    X(LOGIT, logit_of(x, s0))                                                             \
    X(LOG_SIGMOID, (x < 0.0 ? x : 0.0) - mt__log1p_unit_f64(mt__exp_f64(-fabs(x))))

/* X(code, expression): double to bool */
#define TO_BOOL(X)                                                           \
    X(LOGICAL_NOT, x == 0.0)                                                 \
    X(SIGNBIT, (mt__bits_f64(x) >> 63) != 0)                                 \
    X(ISNAN, x != x)                                                         \
    X(ISINF, (mt__bits_f64(x) & 0x7fffffffffffffffU) == 0x7ff0000000000000U) \
    X(ISFINITE, (mt__bits_f64(x) & 0x7fffffffffffffffU) < 0x7ff0000000000000U)

/* Beyond the threshold the function is its argument. */
MT_INLINE double softplus_to(double x, double beta, double threshold)
{
    double inside = mt__softplus_f64(x * beta) / beta;
    return x * beta > threshold ? x : inside;
}

MT_INLINE double logit_of(double x, double eps)
{
    double low = x < eps ? eps : x;
    double inside = low > 1.0 - eps ? 1.0 - eps : low;
    double y = eps >= 0.0 ? inside : x;
    return mt__log_f64(y / (1.0 - y));
}

/* -x log(x), 0 at 0, -inf below. */
MT_INLINE double entr_of(double x)
{
    double value = -x * mt__log_f64(x);
    return x > 0.0 || x != x ? value : (x == 0.0 ? 0.0 : -(double)INFINITY);
}

MT_INLINE double sinc_of(double x)
{
    double turn = 3.14159265358979324 * x;
    return x == 0.0 ? 1.0 : sin(turn) / turn;
}

/* NaN stays, also that of a bound; the upper bound wins. */
MT_INLINE double clamp_to(double x, double lower, double upper)
{
    double y = x < lower ? lower : x;
    y = y > upper ? upper : y;
    return lower != lower || upper != upper ? (double)NAN : y;
}

#define X(code, expression) MT_LOOP1(unary_##code, double, double, real, expression)
TO_DOUBLE(X)
#undef X
#define X(code, expression) MT_LOOP1(unary_##code, uint8_t, double, real, expression)
TO_BOOL(X)
#undef X

mt__loop_fn *const MT_ISA(mt__unary_f64)[MT_UNARY_COUNT] = {
#define X(code, expression) [MT_UNARY_##code] = unary_##code,
    TO_DOUBLE(X) TO_BOOL(X)
#undef X
};

MT_LOOP1(cube_f32, float, float, real, x *x *x)
MT_LOOP1(cube_f64, double, double, real, x *x *x)

mt__loop_fn *const MT_ISA(mt__cube_loops)[2] = {cube_f32, cube_f64};
