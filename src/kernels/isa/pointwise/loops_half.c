/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of float16 and bfloat16 that is bound by memory: converted, computed in float and
 * rounded in registers. What is not here goes through tiles of floats (narrow.c), with the same
 * results; where the processor does not convert float16, nothing is.
 */
#include "kernels/isa/pointwise/half_vectors.h"
#include "kernels/isa/pointwise/loops.h"
#include "kernels/number/half.h"

#include <string.h>

#ifdef MT_HALF_WIDTH

/* X(code, expression): x and y are registers, s1 the call's second number. */
#    define BINARY(X, T) \
        X(ADD, T, x + s1 * y) X(SUB, T, x - s1 * y) X(MUL, T, x *y) X(DIV, T, x / y)
#    define UNARY(X, T) X(NEG, T, -x) X(SQUARE, T, x *x) X(RELU, T, mt__floats_relu(x))

/* The element of an input that is one for all; bit k of `wide`: it is a float. */
#    define ONE(T, k)                                   \
        ((params->wide >> (k)&1) != 0                   \
             ? mt__floats_of(*(const float *)arrays[k]) \
             : mt__floats_of(mt__##T##_to_f32(*(const uint16_t *)arrays[k])))

/* Registers from `i` on, while a whole one is left; the rest through buffers. */
#    define EACH2(T, first, second, expression)              \
        for (; i + MT_HALF_WIDTH <= n; i += MT_HALF_WIDTH) { \
            mt__floats x = first;                            \
            mt__floats y = second;                           \
            mt__store_##T(out + i, expression);              \
        }

#    define LOOP2(code, T, expression)                                         \
        static uint32_t binary_##T##_##code(void *const *arrays, int64_t n,    \
                                            const mt__loop_params *params)     \
        {                                                                      \
            const mt__floats s1 = mt__floats_of((float)params->real[1]);       \
            uint16_t *out = arrays[0];                                         \
            const uint16_t *a = arrays[1];                                     \
            const uint16_t *b = arrays[2];                                     \
            const bool one_a = params->repeats == MT_LOOP_REPEATS_FIRST;       \
            const bool one_b = params->repeats == MT_LOOP_REPEATS_SECOND;      \
            const mt__floats a0 = one_a ? ONE(T, 1) : s1;                      \
            const mt__floats b0 = one_b ? ONE(T, 2) : s1;                      \
            int64_t i = 0;                                                     \
            (void)s1;                                                          \
            if (one_a) {                                                       \
                EACH2(T, a0, mt__load_##T(b + i), expression)                  \
            } else if (one_b) {                                                \
                EACH2(T, mt__load_##T(a + i), b0, expression)                  \
            } else {                                                           \
                EACH2(T, mt__load_##T(a + i), mt__load_##T(b + i), expression) \
            }                                                                  \
            if (i < n) {                                                       \
                uint16_t rest[3][MT_HALF_WIDTH] = {0};                         \
                size_t bytes = (size_t)(n - i) * sizeof(uint16_t);             \
                memcpy(rest[1], one_a ? out : a + i, one_a ? 0 : bytes);       \
                memcpy(rest[2], one_b ? out : b + i, one_b ? 0 : bytes);       \
                mt__floats x = one_a ? a0 : mt__load_##T(rest[1]);             \
                mt__floats y = one_b ? b0 : mt__load_##T(rest[2]);             \
                mt__store_##T(rest[0], expression);                            \
                memcpy(out + i, rest[0], bytes);                               \
            }                                                                  \
            return 0;                                                          \
        }

#    define LOOP1(code, T, expression)                                     \
        static uint32_t unary_##T##_##code(void *const *arrays, int64_t n, \
                                           const mt__loop_params *params)  \
        {                                                                  \
            uint16_t *out = arrays[0];                                     \
            const uint16_t *a = arrays[1];                                 \
            int64_t i = 0;                                                 \
            (void)params;                                                  \
            for (; i + MT_HALF_WIDTH <= n; i += MT_HALF_WIDTH) {           \
                mt__floats x = mt__load_##T(a + i);                        \
                mt__store_##T(out + i, expression);                        \
            }                                                              \
            if (i < n) {                                                   \
                uint16_t rest[MT_HALF_WIDTH] = {0};                        \
                size_t bytes = (size_t)(n - i) * sizeof(uint16_t);         \
                memcpy(rest, a + i, bytes);                                \
                mt__floats x = mt__load_##T(rest);                         \
                mt__store_##T(rest, expression);                           \
                memcpy(out + i, rest, bytes);                              \
            }                                                              \
            return 0;                                                      \
        }

BINARY(LOOP2, f16)
BINARY(LOOP2, bf16)
UNARY(LOOP1, f16)
UNARY(LOOP1, bf16)

#    define ENTRY2(code, T, expression) [MT_BINARY_##code] = binary_##T##_##code,
#    define ENTRY1(code, T, expression) [MT_UNARY_##code] = unary_##T##_##code,
#else
#    define BINARY(X, T) NULL
#    define UNARY(X, T)  NULL
#endif

mt__loop_fn *const MT_ISA(mt__binary_f16)[MT_BINARY_COUNT] = {BINARY(ENTRY2, f16)};
mt__loop_fn *const MT_ISA(mt__binary_bf16)[MT_BINARY_COUNT] = {BINARY(ENTRY2, bf16)};
mt__loop_fn *const MT_ISA(mt__unary_f16)[MT_UNARY_COUNT] = {UNARY(ENTRY1, f16)};
mt__loop_fn *const MT_ISA(mt__unary_bf16)[MT_UNARY_COUNT] = {UNARY(ENTRY1, bf16)};
