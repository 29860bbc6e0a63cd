/* SPDX-License-Identifier: Apache-2.0
 *
 * Two inputs, integers and bool. What overflows wraps. Division by zero gives 0 and
 * MT_LOOP_ZERO_DIVISION; the smallest number divided by -1 wraps to itself.
 */
#include "kernels/isa/pointwise/compare_loops.h"
#include "kernels/isa/pointwise/loop_body.h"

/* X(code, type, expression); W is the type without sign in which sums do not overflow. */
#define ARITHMETIC(X, T, W)                                                     \
    X(ADD, T, s1 == 1 ? (W)x + (W)y : (W)x + (W)s1 * (W)y)                      \
    X(SUB, T, s1 == 1 ? (W)x - (W)y : (W)x - (W)s1 * (W)y)                      \
    X(MUL, T, (W)x *(W)y)                                                       \
    X(FLOOR_DIV, T, floor_div_##T(x, y, &flags))                                \
    X(TRUNC_DIV, T, trunc_div_##T(x, y, &flags))                                \
    X(REMAINDER, T, remainder_##T(x, y, &flags))                                \
    X(FMOD, T, fmod_##T(x, y, &flags))                                          \
    X(POW, T, power_##T(x, y))                                                  \
    X(MAXIMUM, T, x > y ? x : y)                                                \
    X(MINIMUM, T, x < y ? x : y)                                                \
    X(FMAX, T, x > y ? x : y)                                                   \
    X(FMIN, T, x < y ? x : y)                                                   \
    X(HEAVISIDE, T, x == 0 ? y : (x > 0 ? 1 : 0))                               \
    X(GCD, T, gcd_##T(x, y))                                                    \
    X(LCM, T, lcm_##T(x, y))                                                    \
    X(LEFT_SHIFT, T, SHIFTABLE(T, y) ? (W)x << y : 0)                           \
    X(RIGHT_SHIFT, T, SHIFTABLE(T, y) ? x >> y : x >> (8 * sizeof(T) - 1) >> 1) \
    X(BITWISE_AND, T, x &y)                                                     \
    X(BITWISE_OR, T, x | y)                                                     \
    X(BITWISE_XOR, T, x ^ y)

/* The power of a base without sign, which wraps as torch's does. */
static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;
    for (; exponent != 0; exponent >>= 1) {
        result *= (exponent & 1U) != 0 ? base : 1;
        base *= base;
    }
    return result;
}

#define SHIFTABLE(T, by) ((uint64_t)(by) < 8 * sizeof(T))

/* Of the absolute values; the smallest number has none, and its magnitude wraps to itself. */
static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#define DIVISORS(T, MAGNITUDE)                                              \
    MT_INLINE T gcd_##T(T x, T y)                                           \
    {                                                                       \
        return (T)gcd(MAGNITUDE(x), MAGNITUDE(y));                          \
    }                                                                       \
    MT_INLINE T lcm_##T(T x, T y)                                           \
    {                                                                       \
        uint64_t common = gcd(MAGNITUDE(x), MAGNITUDE(y));                  \
        return (T)(common == 0 ? 0 : MAGNITUDE(x) / common * MAGNITUDE(y)); \
    }

#define SIGNED_MAGNITUDE(x) ((x) < 0 ? (uint64_t)0 - (uint64_t)(x) : (uint64_t)(x))
DIVISORS(uint8_t, (uint64_t))
DIVISORS(int32_t, SIGNED_MAGNITUDE)
DIVISORS(int64_t, SIGNED_MAGNITUDE)

#define DIVISION(T, W)                                                    \
    MT_INLINE T trunc_div_##T(T x, T y, uint32_t *flags)                  \
    {                                                                     \
        if (y == 0) {                                                     \
            *flags |= MT_LOOP_ZERO_DIVISION;                              \
            return 0;                                                     \
        }                                                                 \
        return y == -1 ? (T)((W)0 - (W)x) : (T)(x / y);                   \
    }                                                                     \
    MT_INLINE T fmod_##T(T x, T y, uint32_t *flags)                       \
    {                                                                     \
        if (y == 0) {                                                     \
            *flags |= MT_LOOP_ZERO_DIVISION;                              \
            return 0;                                                     \
        }                                                                 \
        return y == -1 ? (T)0 : (T)(x % y);                               \
    }                                                                     \
    MT_INLINE T floor_div_##T(T x, T y, uint32_t *flags)                  \
    {                                                                     \
        T quotient = trunc_div_##T(x, y, flags);                          \
        T rest = fmod_##T(x, y, flags);                                   \
        return (T)(quotient - (rest != 0 && (rest < 0) != (y < 0)));      \
    }                                                                     \
    MT_INLINE T remainder_##T(T x, T y, uint32_t *flags)                  \
    {                                                                     \
        T rest = fmod_##T(x, y, flags);                                   \
        return (T)(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest); \
    }                                                                     \
    MT_INLINE T power_##T(T x, T y)                                       \
    {                                                                     \
        if (y >= 0) {                                                     \
            return (T)power((uint64_t)(int64_t)x, (uint64_t)y);           \
        }                                                                 \
        /* 1 / x^-y, towards zero */                                      \
        return (T)(x == 1 ? 1 : (x != -1 ? 0 : ((y & 1) != 0 ? -1 : 1))); \
    }

DIVISION(int32_t, uint32_t)
DIVISION(int64_t, uint64_t)

MT_INLINE uint8_t trunc_div_uint8_t(uint8_t x, uint8_t y, uint32_t *flags)
{
    *flags |= y == 0 ? MT_LOOP_ZERO_DIVISION : 0;
    return (uint8_t)(y == 0 ? 0 : x / y);
}

MT_INLINE uint8_t fmod_uint8_t(uint8_t x, uint8_t y, uint32_t *flags)
{
    *flags |= y == 0 ? MT_LOOP_ZERO_DIVISION : 0;
    return (uint8_t)(y == 0 ? 0 : x % y);
}

#define floor_div_uint8_t trunc_div_uint8_t
#define remainder_uint8_t fmod_uint8_t
#define power_uint8_t     power

#define LOOP(code, T, expression) MT_LOOP2(binary_##T##_##code, T, T, integer, expression)
#define COMPARISON(code, T, expression) \
    MT_LOOP2(binary_##T##_##code, uint8_t, T, integer, expression)
#define ENTRY(code, T, expression) [MT_BINARY_##code] = binary_##T##_##code,

ARITHMETIC(LOOP, uint8_t, uint32_t)
ARITHMETIC(LOOP, int32_t, uint32_t)
ARITHMETIC(LOOP, int64_t, uint64_t)
MT_COMPARISONS(COMPARISON, uint8_t)
MT_COMPARISONS(COMPARISON, int32_t)
MT_COMPARISONS(COMPARISON, int64_t)

MT_LOOP2(binary_bool_ADD, uint8_t, uint8_t, integer, (x != 0) | ((y != 0) & (s1 != 0)))

mt__loop_fn *const MT_ISA(mt__binary_u8)[MT_BINARY_COUNT] = {ARITHMETIC(ENTRY, uint8_t, uint32_t)
                                                                 MT_COMPARISONS(ENTRY, uint8_t)};

mt__loop_fn *const MT_ISA(mt__binary_i32)[MT_BINARY_COUNT] = {ARITHMETIC(ENTRY, int32_t, uint32_t)
                                                                  MT_COMPARISONS(ENTRY, int32_t)};

mt__loop_fn *const MT_ISA(mt__binary_i64)[MT_BINARY_COUNT] = {ARITHMETIC(ENTRY, int64_t, uint64_t)
                                                                  MT_COMPARISONS(ENTRY, int64_t)};

/* bool is 0 or 1 in a byte */
mt__loop_fn *const MT_ISA(mt__binary_bool)[MT_BINARY_COUNT] = {
    MT_COMPARISONS(ENTRY, uint8_t)[MT_BINARY_ADD] = binary_bool_ADD,
    [MT_BINARY_MUL] = binary_uint8_t_LOGICAL_AND,
    [MT_BINARY_MAXIMUM] = binary_uint8_t_LOGICAL_OR,
    [MT_BINARY_MINIMUM] = binary_uint8_t_LOGICAL_AND,
    [MT_BINARY_FMAX] = binary_uint8_t_LOGICAL_OR,
    [MT_BINARY_FMIN] = binary_uint8_t_LOGICAL_AND,
    [MT_BINARY_HEAVISIDE] = binary_uint8_t_LOGICAL_OR, /* not x: y; x: 1 */
    [MT_BINARY_BITWISE_AND] = binary_uint8_t_LOGICAL_AND,
    [MT_BINARY_BITWISE_OR] = binary_uint8_t_LOGICAL_OR,
    [MT_BINARY_BITWISE_XOR] = binary_uint8_t_LOGICAL_XOR,
};
