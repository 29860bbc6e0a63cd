/* SPDX-License-Identifier: Apache-2.0
 *
 * One input, float. Functions are vector_math.h's; sine, cosine, tangent and Bessel functions
 * (vector_bessel.h) of numbers beyond their range come from libm, a block at a time.
 */
#include "kernels/isa/pointwise/loop_body.h"
#include "kernels/number/bessel.h"
#include "kernels/number/special.h"
#include "kernels/number/vector_bessel.h"
#include "kernels/number/vector_math.h"
#include "kernels/number/vector_special.h"

/* X(code, expression): float to float */
#define TO_FLOAT(X)                                                                              \
    X(NEG, -x)                                                                                   \
    X(ABS, fabsf(x))                                                                             \
    X(SIGN, x > 0.0F ? 1.0F : (x < 0.0F ? -1.0F : 0.0F))                                         \
    X(SQUARE, x *x)                                                                              \
    X(RECIPROCAL, 1.0F / x)                                                                      \
    X(SQRT, sqrtf(x))                                                                            \
    X(RSQRT, 1.0F / sqrtf(x))                                                                    \
    X(EXP, mt__exp_f32(x))                                                                       \
    X(EXPM1, mt__expm1_f32(x))                                                                   \
    X(LOG, mt__log_f32(x))                                                                       \
    X(LOG1P, mt__log1p_f32(x))                                                                   \
    X(LOG2, mt__log2_f32(x))                                                                     \
    X(LOG10, mt__log10_f32(x))                                                                   \
    X(TANH, mt__tanh_f32(x))                                                                     \
    X(SIGMOID, mt__sigmoid_f32(x))                                                               \
    X(ERF, mt__erf_f32(x))                                                                       \
    X(GELU, mt__gelu_f32(x))                                                                     \
    X(GELU_TANH, 0.5F * x * (1.0F + mt__tanh_f32(0.797884561F * (x + 0.044715F * (x * x * x))))) \
    X(SILU, x / (1.0F + mt__exp_f32(-x)))                                                        \
    X(RELU, x < 0.0F ? 0.0F : x)                                                                 \
    X(FLOOR, floorf(x))                                                                          \
    X(CEIL, ceilf(x))                                                                            \
    X(ROUND, rintf(x))                                                                           \
    X(TRUNC, truncf(x))                                                                          \
    X(CLAMP, clamp_to(x, s0, s1))                                                                \
    X(HARDTANH, clamp_to(x, s0, s1))                                                             \
    X(LEAKY_RELU, x > 0.0F ? x : x * s0)                                                         \
    X(SOFTPLUS, softplus_to(x, s0, s1))                                                          \
    X(ELU, x < 0.0F ? s0 * mt__expm1_f32(x) : x)                                                 \
    X(ERFC, (float)mt__erfc_wide((double)x))                                                     \
    X(SINH, (float)mt__sinh_wide((double)x))                                                     \
    X(COSH, (float)mt__cosh_wide((double)x))                                                     \
    X(ASIN, (float)mt__asin_wide((double)x))                                                     \
    X(ACOS, (float)mt__acos_wide((double)x))                                                     \
    X(ATAN, (float)mt__atan_wide((double)x))                                                     \
    X(ASINH, (float)mt__asinh_wide((double)x))                                                   \
    X(ACOSH, (float)mt__acosh_wide((double)x))                                                   \
    X(ATANH, (float)mt__atanh_wide((double)x))                                                   \
    X(EXP2, mt__pow_f32(2.0F, x))                                                                \
    X(FRAC, x - truncf(x))                                                                       \
    X(SINC, sinc_of(x))                                                                          \
    X(LGAMMA, (float)mt__lgamma_wide((double)x))                                                 \
    X(DIGAMMA, (float)mt__digamma_wide((double)x))                                               \
    X(POLYGAMMA, (float)mt__polygamma((double)s0, (double)x))                                    \
    X(ERFINV, (float)mt__erfinv_wide((double)x))                                                 \
    X(ERFCX, (float)mt__erfcx((double)x))                                                        \
    X(LOG_NDTR, (float)mt__log_ndtr((double)x))                                                  \
    X(NDTRI, (float)mt__ndtri((double)x))                                                        \
    X(ENTR, entr_of(x))                                                                          \
    X(I0, (float)mt__i0_wide((double)x))                                                         \
    X(I0E, (float)mt__i0e_wide((double)x))                                                       \
    X(I1, (float)mt__i1_wide((double)x))                                                         \
    X(I1E, (float)mt__i1e_wide((double)x))                                                       \
    X(K0, (float)mt__k_plain((double)x, mt__k0_parts((double)x)))                                \
    X(K0E, (float)mt__k_scaled((double)x, mt__k0_parts((double)x)))                              \
    X(K1, (float)mt__k_plain((double)x, mt__k1_parts((double)x)))                                \
    X(K1E, (float)mt__k_scaled((double)x, mt__k1_parts((double)x)))                              \
    X(MANTISSA, (float)mt__mantissa((double)x))                                                  \
    X(EXPONENT, (float)mt__exponent((double)x))                                                  \
    X(EXP_DECAY, mt__exp_f32(-fabsf(x)))                                                         \
    X(LOGIT, logit_of(x, s0))                                                                    \
    X(LOG_SIGMOID, (x < 0.0F ? x : 0.0F) - mt__log1p_unit_f32(mt__exp_f32(-fabsf(x))))

/* X(code, expression): float to bool */
#define TO_BOOL(X)                                           \
    X(LOGICAL_NOT, x == 0.0F)                                \
    X(SIGNBIT, (mt__bits_f32(x) >> 31) != 0)                 \
    X(ISNAN, x != x)                                         \
    X(ISINF, (mt__bits_f32(x) & 0x7fffffffU) == 0x7f800000U) \
    X(ISFINITE, (mt__bits_f32(x) & 0x7fffffffU) < 0x7f800000U)

/* Beyond the threshold the function is its argument. */
MT_INLINE float softplus_to(float x, float beta, float threshold)
{
    float inside = mt__softplus_f32(x * beta) / beta;
    return x * beta > threshold ? x : inside;
}

MT_INLINE float logit_of(float x, float eps)
{
    float low = x < eps ? eps : x;
    float inside = low > 1.0F - eps ? 1.0F - eps : low;
    float y = eps >= 0.0F ? inside : x;
    return mt__log_f32(y / (1.0F - y));
}

/* -x log(x), 0 at 0, -inf below. */
MT_INLINE float entr_of(float x)
{
    float value = -x * mt__log_f32(x);
    return x > 0.0F || x != x ? value : (x == 0.0F ? 0.0F : -(float)INFINITY);
}

MT_INLINE float sinc_of(float x)
{
    float turn = 3.14159265358979324F * x;
    return x == 0.0F ? 1.0F : sinf(turn) / turn;
}

/* NaN stays, also that of a bound; the upper bound wins. */
MT_INLINE float clamp_to(float x, float lower, float upper)
{
    float y = x < lower ? lower : x;
    y = y > upper ? upper : y;
    return lower != lower || upper != upper ? (float)NAN : y;
}

#define X(code, expression) MT_LOOP1(unary_##code, float, float, real, expression)
TO_FLOAT(X)
#undef X
#define X(code, expression) MT_LOOP1(unary_##code, uint8_t, float, real, expression)
TO_BOOL(X)
#undef X

/* ---- trigonometry: in blocks, so that one large number does not slow down the others ---- */

enum {
    TRIG_BLOCK = 256
};

static bool all_near(const float *in, int64_t n)
{
    uint32_t far = 0;
    for (int64_t i = 0; i < n; i++) {
        far |= !(fabsf(in[i]) <= MT_TRIG_LIMIT);
    }
    return far == 0;
}

#define TRIG(code, near, libm)                                                                  \
    static uint32_t unary_##code(void *const *arrays, int64_t n, const mt__loop_params *params) \
    {                                                                                           \
        (void)params;                                                                           \
        float *out = arrays[0];                                                                 \
        const float *in = arrays[1];                                                            \
        for (int64_t begin = 0; begin < n; begin += TRIG_BLOCK) {                               \
            int64_t end = n - begin < TRIG_BLOCK ? n : begin + TRIG_BLOCK;                      \
            if (all_near(in + begin, end - begin)) {                                            \
                MT_I_VECTOR_LOOP                                                                \
                for (int64_t i = begin; i < end; i++) {                                         \
                    out[i] = near(in[i]);                                                       \
                }                                                                               \
                continue;                                                                       \
            }                                                                                   \
            for (int64_t i = begin; i < end; i++) {                                             \
                out[i] = libm(in[i]);                                                           \
            }                                                                                   \
        }                                                                                       \
        return 0;                                                                               \
    }

TRIG(SIN, mt__sin_f32, sinf)
TRIG(COS, mt__cos_f32, cosf)
TRIG(TAN, mt__tan_f32, tanf)

/* ---- J and Y, in blocks too: all near, all within the limit, or any ---- */

/* Numbers of a block outside of (low, high]; NaN is. */
static int64_t count_beyond(const float *in, int64_t n, float low, float high)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        count += !(in[i] > low && in[i] <= high);
    }
    return count;
}

#define BESSEL_LOOP(expression)             \
    MT_I_VECTOR_LOOP                        \
    for (int64_t i = begin; i < end; i++) { \
        double x = (double)in[i];           \
        double a = fabs(x);                 \
        (void)a;                            \
        out[i] = (float)(expression);       \
    }

/* `low`: below it only `scalar` is right. */
#define BESSEL(code, low, near, far, scalar)                                                    \
    static uint32_t unary_##code(void *const *arrays, int64_t n, const mt__loop_params *params) \
    {                                                                                           \
        (void)params;                                                                           \
        float *out = arrays[0];                                                                 \
        const float *in = arrays[1];                                                            \
        for (int64_t begin = 0; begin < n; begin += TRIG_BLOCK) {                               \
            int64_t end = n - begin < TRIG_BLOCK ? n : begin + TRIG_BLOCK;                      \
            int64_t count = end - begin;                                                        \
            if (count_beyond(in + begin, count, low, MT_BESSEL_NEAR) == 0) {                    \
                BESSEL_LOOP(near)                                                               \
            } else if (count_beyond(in + begin, count, low, MT_BESSEL_LIMIT) == 0) {            \
                BESSEL_LOOP(a <= (double)MT_BESSEL_NEAR ? near : far)                           \
            } else {                                                                            \
                for (int64_t i = begin; i < end; i++) {                                         \
                    out[i] = (float)scalar((double)in[i]);                                      \
                }                                                                               \
            }                                                                                   \
        }                                                                                       \
        return 0;                                                                               \
    }

BESSEL(J0, -MT_BESSEL_NEAR, mt__j0_near(x), mt__j0_far(a), j0)
BESSEL(J1, -MT_BESSEL_NEAR, mt__j1_near(x), mt__j1_far(a), j1)
BESSEL(Y0, 0.0F, mt__y0_near(x), mt__y0_far(a), mt__y0)
BESSEL(Y1, 0.0F, mt__y1_near(x), mt__y1_far(a), mt__y1)
BESSEL(SPHERICAL_J0, -MT_BESSEL_LIMIT, mt__spherical_j0_wide(x), mt__spherical_j0_wide(a),
       mt__spherical_j0)

mt__loop_fn *const MT_ISA(mt__unary_f32)[MT_UNARY_COUNT] = {
#define X(code, expression) [MT_UNARY_##code] = unary_##code,
    TO_FLOAT(X) TO_BOOL(X)
#undef X
        [MT_UNARY_SIN] = unary_SIN,
    [MT_UNARY_COS] = unary_COS,
    [MT_UNARY_TAN] = unary_TAN,
    [MT_UNARY_J0] = unary_J0,
    [MT_UNARY_J1] = unary_J1,
    [MT_UNARY_Y0] = unary_Y0,
    [MT_UNARY_Y1] = unary_Y1,
    [MT_UNARY_SPHERICAL_J0] = unary_SPHERICAL_J0,
};
