/* SPDX-License-Identifier: Apache-2.0
 *
 * Two inputs, float and double: arithmetic, and the derivatives of activations (x is the incoming
 * gradient, y the forward's result or input). Comparisons come from compare_loops.h.
 */
#include "kernels/isa/pointwise/compare_loops.h"
#include "kernels/isa/pointwise/loop_body.h"
#include "kernels/number/special.h"
#include "kernels/number/vector_math.h"

/* X(code, type, expression). C(number) is the number in the type. */
#define CHEAP(X, T, C)                                                          \
    X(ADD, T, x + s1 * y)                                                       \
    X(SUB, T, x - s1 * y)                                                       \
    X(MUL, T, x *y)                                                             \
    X(DIV, T, x / y)                                                            \
    X(MAXIMUM, T, x > y || x != x ? x : y)                                      \
    X(MINIMUM, T, x < y || x != x ? x : y)                                      \
    X(FMAX, T, x >= y || y != y ? x : y)                                        \
    X(FMIN, T, x <= y || y != y ? x : y)                                        \
    X(HEAVISIDE, T, x == C(0.0) ? y : (x > C(0.0) ? C(1.0) : C(0.0)))           \
    X(SIGMOID_BACKWARD, T, x *(C(1.0) - y) * y)                                 \
    X(TANH_BACKWARD, T, x *(C(1.0) - y * y))                                    \
    X(THRESHOLD_BACKWARD, T, y <= s1 ? C(0.0) : x)                              \
    X(LEAKY_RELU_BACKWARD, T, y > C(0.0) ? x : x * s1)                          \
    X(HARDSIGMOID_BACKWARD, T, y > C(-3.0) && y < C(3.0) ? x / C(6.0) : C(0.0)) \
    X(HARDSWISH_BACKWARD, T, y <= C(-3.0) ? C(0.0) : (y < C(3.0) ? x * (y / C(3.0) + C(0.5)) : x))

#define DEAR(X, T, C, F)                                                      \
    X(TRUNC_DIV, T, F(trunc)(x / y))                                          \
    X(FLOOR_DIV, T, floor_div_##T(x, y))                                      \
    X(REMAINDER, T, remainder_##T(x, y))                                      \
    X(FMOD, T, F(fmod)(x, y))                                                 \
    X(POW, T, pow_##T(x, y))                                                  \
    X(ATAN2, T, atan2_##T(x, y))                                              \
    X(GELU_BACKWARD, T, x *gelu_slope_##T(y))                                 \
    X(GELU_TANH_BACKWARD, T, x *gelu_tanh_slope_##T(y))                       \
    X(SILU_BACKWARD, T, x *silu_slope_##T(y))                                 \
    X(MISH_BACKWARD, T, x *mish_slope_##T(y))                                 \
    X(HYPOT, T, hypot_##T(x, y))                                              \
    X(COPYSIGN, T, F(copysign)(x, y))                                         \
    X(LOGADDEXP, T, logaddexp_##T(x, y))                                      \
    X(LOGADDEXP2, T, logaddexp2_##T(x, y))                                    \
    X(NEXTAFTER, T, F(nextafter)(x, y))                                       \
    X(XLOGY, T, x == C(0.0) && y == y ? C(0.0) : x * F(log)(y))               \
    X(GAMMA_SAMPLE_SLOPE, T, (T)mt__gamma_sample_slope((double)x, (double)y)) \
    X(GAMMAINC, T, (T)mt__gamma_share((double)x, (double)y, false))           \
    X(GAMMAINCC, T, (T)mt__gamma_share((double)x, (double)y, true))           \
    X(ZETA, T, (T)mt__hurwitz_zeta((double)x, (double)y))                     \
    X(XLOG1PY, T, x == C(0.0) && y == y ? C(0.0) : x * F(log1p)(y))

#define pow_float         mt__pow_f32
#define pow_double        pow
#define gelu_slope_float  mt__gelu_slope_f32
#define atan2_double      atan2
#define atan2_float(y, x) (float)mt__atan2_wide((double)(y), (double)(x))

#define C_float(number)  number##F
#define C_double(number) number
#define F_float(name)    name##f
#define F_double(name)   name

/* Python's floor division and remainder, which torch's are: the remainder has y's sign, and the
 * quotient is that of x less the remainder, rounded to the nearest whole number. */
#define DIVISION(T, C, F)                                                           \
    MT_INLINE T remainder_##T(T x, T y)                                             \
    {                                                                               \
        T rest = F(fmod)(x, y);                                                     \
        return rest != C(0.0) && (y < C(0.0)) != (rest < C(0.0)) ? rest + y : rest; \
    }                                                                               \
    MT_INLINE T floor_div_##T(T x, T y)                                             \
    {                                                                               \
        T ratio = x / y;                                                            \
        if (y == C(0.0)) {                                                          \
            return ratio; /* infinite, or NaN for 0 / 0 */                          \
        }                                                                           \
        T rest = F(fmod)(x, y);                                                     \
        T whole = (x - rest) / y;                                                   \
        if (rest != C(0.0) && (y < C(0.0)) != (rest < C(0.0))) {                    \
            whole -= C(1.0);                                                        \
        }                                                                           \
        if (whole == C(0.0)) {                                                      \
            return F(copysign)(C(0.0), ratio);                                      \
        }                                                                           \
        T floored = F(floor)(whole);                                                \
        return whole - floored > C(0.5) ? floored + C(1.0) : floored;               \
    }

DIVISION(float, C_float, F_float)
DIVISION(double, C_double, F_double)

/* (1 + erf(y / sqrt 2)) / 2 + y e^(-y^2 / 2) / sqrt(2 pi) */
MT_INLINE double gelu_slope_double(double y)
{
    double below = 0.5 * (1.0 + erf(y * 0.70710678118654752));
    return below + y * (0.39894228040143268 * mt__exp_f64(-0.5 * y * y));
}

#define SLOPES(T, C, TANH, SIGMOID)                                             \
    MT_INLINE T gelu_tanh_slope_##T(T y)                                        \
    {                                                                           \
        T t = TANH(C(0.79788456080286536) * (y + C(0.044715) * (y * y * y)));   \
        T inner = C(0.79788456080286536) * (C(1.0) + C(0.134145) * (y * y));    \
        return C(0.5) * (C(1.0) + t) + C(0.5) * y * ((C(1.0) - t * t) * inner); \
    }                                                                           \
    MT_INLINE T silu_slope_##T(T y)                                             \
    {                                                                           \
        T s = SIGMOID(y);                                                       \
        return s * (C(1.0) + y * (C(1.0) - s));                                 \
    }

SLOPES(float, C_float, mt__tanh_f32, mt__sigmoid_f32)
SLOPES(double, C_double, mt__tanh_f64, mt__sigmoid_f64)

/* t + y s (1 - t^2), t = tanh(softplus(y)), s = sigmoid(y) */
#define MISH_SLOPE(T, C, F, EXP, LOG1P, TANH, SIGMOID)                   \
    MT_INLINE T mish_slope_##T(T y)                                      \
    {                                                                    \
        T t = TANH((y > C(0.0) ? y : C(0.0)) + LOG1P(EXP(-F(fabs)(y)))); \
        return t + y * SIGMOID(y) * (C(1.0) - t * t);                    \
    }

MISH_SLOPE(float, C_float, F_float, mt__exp_f32, mt__log1p_unit_f32, mt__tanh_f32, mt__sigmoid_f32)
MISH_SLOPE(double, C_double, F_double, mt__exp_f64, mt__log1p_unit_f64, mt__tanh_f64,
           mt__sigmoid_f64)

/* Squares of floats fit into double. */
MT_INLINE float hypot_float(float x, float y)
{
    double a = (double)x, b = (double)y;
    float length = (float)sqrt(a * a + b * b);
    return isinf(x) || isinf(y) ? (float)INFINITY : length;
}

#define hypot_double hypot

/* Equal infinities have no distance. The logarithm of a sum with 1 is divided by ln(base). */
#define LOGADDEXP_OF(name, T, F, EXP, LOG1P, PER_E)         \
    MT_INLINE T name##_##T(T x, T y)                        \
    {                                                       \
        T larger = x > y || x != x ? x : y;                 \
        T sum = larger + LOG1P(EXP(-F(fabs)(x - y))) PER_E; \
        return x == y && isinf(x) ? x : sum;                \
    }

#define exp2_of_float(x) mt__pow_f32(2.0F, x)
LOGADDEXP_OF(logaddexp, float, F_float, mt__exp_f32, mt__log1p_unit_f32, )
LOGADDEXP_OF(logaddexp, double, F_double, mt__exp_f64, mt__log1p_unit_f64, )
LOGADDEXP_OF(logaddexp2, float, F_float, exp2_of_float, mt__log1p_unit_f32, *1.44269504088896341F)
LOGADDEXP_OF(logaddexp2, double, F_double, exp2, mt__log1p_unit_f64, *1.44269504088896341)

#define CHEAP_LOOP(code, T, expression) MT_LOOP2_CHEAP(binary_##T##_##code, T, T, real, expression)
#define LOOP(code, T, expression)       MT_LOOP2(binary_##T##_##code, T, T, real, expression)
#define COMPARISON(code, T, expression) \
    MT_LOOP2_CHEAP(binary_##T##_##code, uint8_t, T, integer, expression)
#define ENTRY(code, T, expression) [MT_BINARY_##code] = binary_##T##_##code,

CHEAP(CHEAP_LOOP, float, C_float)
CHEAP(CHEAP_LOOP, double, C_double)
DEAR(LOOP, float, C_float, F_float)
DEAR(LOOP, double, C_double, F_double)
MT_COMPARISONS(COMPARISON, float)
MT_COMPARISONS(COMPARISON, double)

mt__loop_fn *const MT_ISA(mt__binary_f32)[MT_BINARY_COUNT] = {
    CHEAP(ENTRY, float, C_float) DEAR(ENTRY, float, C_float, F_float) MT_COMPARISONS(ENTRY, float)};

mt__loop_fn *const MT_ISA(mt__binary_f64)[MT_BINARY_COUNT] = {
    CHEAP(ENTRY, double, C_double) DEAR(ENTRY, double, C_double, F_double)
        MT_COMPARISONS(ENTRY, double)};
