/* SPDX-License-Identifier: Apache-2.0
 *
 * The comparisons of a type, for its table of binary loops: results are bool.
 */
#ifndef KERNELS_ISA_COMPARE_LOOPS_H
#define KERNELS_ISA_COMPARE_LOOPS_H

#include "kernels/isa/loop_body.h"

#define MT_I_COMPARISON_LIST(X, T)               \
    X(EQ, T, x == y)                             \
    X(NE, T, x != y)                             \
    X(LT, T, x < y)                              \
    X(LE, T, x <= y)                             \
    X(GT, T, x > y)                              \
    X(GE, T, x >= y)                             \
    X(LOGICAL_AND, T, (x != 0) & (y != 0))       \
    X(LOGICAL_OR, T, (x != 0) | (y != 0))        \
    X(LOGICAL_XOR, T, (x != 0) ^ (y != 0))

#define MT_I_COMPARISON(code, T, expression) \
    MT_LOOP2(compare_##T##_##code, uint8_t, T, integer, expression)
#define MT_I_COMPARISON_ENTRY(code, T, expression) [MT_BINARY_##code] = compare_##T##_##code,

#define MT_COMPARISONS(T)        MT_I_COMPARISON_LIST(MT_I_COMPARISON, T)
#define MT_COMPARISON_ENTRIES(T) MT_I_COMPARISON_LIST(MT_I_COMPARISON_ENTRY, T)

#endif /* KERNELS_ISA_COMPARE_LOOPS_H */
