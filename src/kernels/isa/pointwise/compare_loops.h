/* SPDX-License-Identifier: Apache-2.0
 *
 * X(code, type, expression): the comparisons of a type; results are bool.
 */
#ifndef KERNELS_ISA_POINTWISE_COMPARE_LOOPS_H
#define KERNELS_ISA_POINTWISE_COMPARE_LOOPS_H

#include "kernels/isa/pointwise/loop_body.h"

#define MT_COMPARISONS(X, T)               \
    X(EQ, T, x == y)                       \
    X(NE, T, x != y)                       \
    X(LT, T, x < y)                        \
    X(LE, T, x <= y)                       \
    X(GT, T, x > y)                        \
    X(GE, T, x >= y)                       \
    X(LOGICAL_AND, T, (x != 0) & (y != 0)) \
    X(LOGICAL_OR, T, (x != 0) | (y != 0))  \
    X(LOGICAL_XOR, T, (x != 0) ^ (y != 0))

#endif /* KERNELS_ISA_POINTWISE_COMPARE_LOOPS_H */
