/* SPDX-License-Identifier: Apache-2.0
 *
 * Three inputs.
 */
#include "kernels/isa/pointwise/loop_body.h"
#include "kernels/number/vector_math.h"

/* ---- a ? b : c, by the bytes of an element ---- */

#define CHOOSE(T) MT_LOOP3(where_##T, T, uint8_t, T, integer, x != 0 ? y : z)
CHOOSE(uint8_t)
CHOOSE(uint16_t)
CHOOSE(uint32_t)
CHOOSE(uint64_t)

mt__loop_fn *const MT_ISA(mt__where_loops)[4] = {where_uint8_t, where_uint16_t, where_uint32_t,
                                                 where_uint64_t};

/* ---- arithmetic ---- */

/* & and not &&: no branch in the loops. */
#define NEAR_ZERO(T, weight) (((weight) > (T)-0.5) & ((weight) < (T)0.5))

/* X(code, type, expression). lerp: from the end that the weight's absolute value is nearer to, so
 * that weights 0 and 1 are exact and infinite ends become NaN where they do in torch. */
#define REAL(X, T)                                                           \
    X(LERP, T, NEAR_ZERO(T, z) ? x + (y - x) * z : y - (y - x) * ((T)1 - z)) \
    X(ADDCMUL, T, x + s0 * y * z)                                            \
    X(ADDCDIV, T, x + s0 * y / z)                                            \
    X(CLAMP, T, smaller_##T(larger_##T(x, y), z))                            \
    X(SOFTPLUS_BACKWARD, T, s0 *y > z ? x : x * sigmoid_##T(s0 * y))         \
    X(HARDTANH_BACKWARD, T, y <= s0 || y >= z ? (T)0 : x)                    \
    X(ELU_BACKWARD, T, y <= (T)0 ? x * (s0 * z * exp_##T(y * z)) : x)        \
    X(SHRINK_BACKWARD, T, (y >= s0) & (y <= z) ? (T)0 : x)                   \
    X(LOG_SIGMOID_BACKWARD, T, x *((y < (T)0 ? (T)1 : z) / ((T)1 + z)))

#define sigmoid_float  mt__sigmoid_f32
#define sigmoid_double mt__sigmoid_f64
#define exp_float      mt__exp_f32
#define exp_double     mt__exp_f64

#define INTEGER(X, T, W)                      \
    X(ADDCMUL, T, (W)x + (W)s0 * (W)y * (W)z) \
    X(CLAMP, T, (x < y ? y : x) > z ? z : (x < y ? y : x))

/* NaN wins. */
#define EXTREMES(T)                     \
    MT_INLINE T larger_##T(T a, T b)    \
    {                                   \
        return a > b || a != a ? a : b; \
    }                                   \
    MT_INLINE T smaller_##T(T a, T b)   \
    {                                   \
        return a < b || a != a ? a : b; \
    }
EXTREMES(float)
EXTREMES(double)

#define REAL_LOOP(code, T, expression) MT_LOOP3(ternary_##T##_##code, T, T, T, real, expression)
#define INT_LOOP(code, T, expression)  MT_LOOP3(ternary_##T##_##code, T, T, T, integer, expression)
#define ENTRY(code, T, expression)     [MT_TERNARY_##code] = ternary_##T##_##code,

REAL(REAL_LOOP, float)
REAL(REAL_LOOP, double)
INTEGER(INT_LOOP, uint8_t, uint32_t)
INTEGER(INT_LOOP, int32_t, uint32_t)
INTEGER(INT_LOOP, int64_t, uint64_t)

mt__loop_fn *const MT_ISA(mt__ternary_f32)[MT_TERNARY_COUNT] = {REAL(ENTRY, float)};
mt__loop_fn *const MT_ISA(mt__ternary_f64)[MT_TERNARY_COUNT] = {REAL(ENTRY, double)};
mt__loop_fn *const MT_ISA(mt__ternary_u8)[MT_TERNARY_COUNT] = {INTEGER(ENTRY, uint8_t, uint32_t)};
mt__loop_fn *const MT_ISA(mt__ternary_i32)[MT_TERNARY_COUNT] = {INTEGER(ENTRY, int32_t, uint32_t)};
mt__loop_fn *const MT_ISA(mt__ternary_i64)[MT_TERNARY_COUNT] = {INTEGER(ENTRY, int64_t, uint64_t)};
