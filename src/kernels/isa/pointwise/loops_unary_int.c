/* SPDX-License-Identifier: Apache-2.0
 *
 * One input, integers and bool. What overflows wraps: sums and products are taken without sign.
 */
#include "kernels/isa/pointwise/loop_body.h"

/* X(code, expression): integer to the same; W is the type without sign */
#define TO_SAME(X, T, W)                       \
    X(NEG, T, (W)0 - (W)x)                     \
    X(ABS, T, x < 0 ? (W)((W)0 - (W)x) : (W)x) \
    X(SIGN, T, (x > 0) - (x < 0))              \
    X(SQUARE, T, (W)x *(W)x)                   \
    X(RELU, T, x < 0 ? 0 : x)                  \
    X(FLOOR, T, x)                             \
    X(CEIL, T, x)                              \
    X(ROUND, T, x)                             \
    X(TRUNC, T, x)                             \
    X(CLAMP, T, CLAMP_TO(x, s0, s1))           \
    X(HARDTANH, T, CLAMP_TO(x, s0, s1))        \
    X(BITWISE_NOT, T, ~(W)x)

/* X(code, expression): integer to bool */
#define TO_BOOL(X, T)                 \
    X(LOGICAL_NOT, T, x == 0)         \
    X(SIGNBIT, T, IS_NEGATIVE_##T(x)) \
    X(ISNAN, T, 0)                    \
    X(ISINF, T, 0)                    \
    X(ISFINITE, T, 1)

/* x < 0 gives a warning for unsigned types */
#define IS_NEGATIVE_int32_t(x) ((x) < 0)
#define IS_NEGATIVE_int64_t(x) ((x) < 0)
#define IS_NEGATIVE_uint8_t(x) ((void)(x), 0)

#define CLAMP_TO(x, lower, upper) \
    (((x) < (lower) ? (lower) : (x)) > (upper) ? (upper) : ((x) < (lower) ? (lower) : (x)))

#define SAME(code, T, expression)  MT_LOOP1(unary_##T##_##code, T, T, integer, expression)
#define TRUTH(code, T, expression) MT_LOOP1(unary_##T##_##code, uint8_t, T, integer, expression)
#define ENTRY(code, T, expression) [MT_UNARY_##code] = unary_##T##_##code,

TO_SAME(SAME, int32_t, uint32_t)
TO_BOOL(TRUTH, int32_t)
TO_SAME(SAME, int64_t, uint64_t)
TO_BOOL(TRUTH, int64_t)
TO_BOOL(TRUTH, uint8_t)

/* x < 0 gives a warning for unsigned types, so these are separate. */
#define TO_SAME_U8(X)                         \
    X(NEG, uint8_t, 0 - x)                    \
    X(ABS, uint8_t, x)                        \
    X(SIGN, uint8_t, x > 0)                   \
    X(SQUARE, uint8_t, x *x)                  \
    X(RELU, uint8_t, x)                       \
    X(FLOOR, uint8_t, x)                      \
    X(CEIL, uint8_t, x)                       \
    X(ROUND, uint8_t, x)                      \
    X(TRUNC, uint8_t, x)                      \
    X(CLAMP, uint8_t, CLAMP_TO(x, s0, s1))    \
    X(HARDTANH, uint8_t, CLAMP_TO(x, s0, s1)) \
    X(BITWISE_NOT, uint8_t, ~x)
TO_SAME_U8(SAME)

MT_LOOP1(unary_bool_same, uint8_t, uint8_t, integer, x != 0)

mt__loop_fn *const MT_ISA(mt__unary_i32)[MT_UNARY_COUNT] = {TO_SAME(ENTRY, int32_t, uint32_t)
                                                                TO_BOOL(ENTRY, int32_t)};

mt__loop_fn *const MT_ISA(mt__unary_i64)[MT_UNARY_COUNT] = {TO_SAME(ENTRY, int64_t, uint64_t)
                                                                TO_BOOL(ENTRY, int64_t)};

mt__loop_fn *const MT_ISA(mt__unary_u8)[MT_UNARY_COUNT] = {TO_SAME_U8(ENTRY)
                                                               TO_BOOL(ENTRY, uint8_t)};

mt__loop_fn *const MT_ISA(mt__unary_bool)[MT_UNARY_COUNT] = {
    TO_BOOL(ENTRY, uint8_t)[MT_UNARY_SIGN] = unary_bool_same,
    [MT_UNARY_BITWISE_NOT] = unary_uint8_t_LOGICAL_NOT,
};
