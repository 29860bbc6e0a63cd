/* SPDX-License-Identifier: Apache-2.0
 *
 * The inner loops of reductions, made for each instruction set by reduce_loops.c. A loop adds a
 * block of elements to a partial result; host_reduce.c cuts tensors into blocks, and finishes.
 *
 *      row       x x x x x x x x        one partial
 *      columns   x x x x                a partial for each column
 *                x x x x
 *
 *   RL1  Blocks are bounded (MT_FOLD_BLOCK, MT_FOLD_ROWS). In a block, float elements are added as
 *        a tree over many lanes; blocks are added in double. So the error of a sum grows with the
 *        logarithm of a block, not with the number of elements.
 *   RL2  The order depends on the sizes alone: the same input gives the same bits, with any number
 *        of threads. Instruction sets differ only in fused multiplication, and where there are
 *        loops for float16 and bfloat16: without them a block of columns is cut to what fits the
 *        first cache when it is converted.
 */
#ifndef KERNELS_ISA_REDUCE_REDUCE_LOOPS_H
#define KERNELS_ISA_REDUCE_REDUCE_LOOPS_H

#include "kernels/isa/isa.h"

#include <mindtorch/dtype.h>

#include <stdint.h>

enum {
    MT_FOLD_BLOCK = 4096, /* most elements of one call of `row` */
    MT_FOLD_ROWS = 128,   /* most rows of one call of `columns` */
    MT_FOLD_WIDTH = 512   /* most columns */
};

typedef union mt__cell {
    double real;
    int64_t integer;
} mt__cell;

/* The partial result of the elements so far. Floating-point elements use `real`, others `integer`;
 * ALL, ANY and COUNT always `integer`. `b` is the second number of MOMENTS (sum of squared
 * distances from the mean, which is `a`) and of LOGSUMEXP (sum of e^(x - a), a = the largest x). */
typedef struct mt__partial {
    mt__cell a, b;
} mt__partial;

typedef enum mt__fold {
    MT_FOLD_SUM,
    MT_FOLD_PROD,
    MT_FOLD_MAX, /* NaN wins, here and in the next three */
    MT_FOLD_MIN,
    MT_FOLD_MAX_ABS,
    MT_FOLD_MIN_ABS,
    MT_FOLD_ALL,
    MT_FOLD_ANY,
    MT_FOLD_COUNT, /* of elements other than 0 */
    MT_FOLD_SUM_ABS,
    MT_FOLD_SUM_SQUARES,
    MT_FOLD_SUM_POWERS, /* |x|^p */
    MT_FOLD_LOGSUMEXP,
    MT_FOLD_MOMENTS,
    MT_FOLD_KINDS
} mt__fold;

typedef struct mt__fold_loops {
    /* Adds n elements (1 to MT_FOLD_BLOCK) side by side to a partial that has `before` of them. */
    void (*row)(const void *in, int64_t n, double p, mt__partial *partial, int64_t before);
    /* Adds `rows` elements to each of `width` partials. */
    void (*columns)(const void *in, int64_t rows, int64_t row_stride, int64_t width, double p,
                    mt__partial *partials, int64_t before);
} mt__fold_loops;

/* Both NULL where a kind has nothing for a type; float16 and bfloat16 are then converted. */
typedef struct mt__fold_table {
    mt__fold_loops of[MT_FOLD_KINDS][MT_DTYPE_COUNT];
} mt__fold_table;

/* Arrays of one, so that MT_ISA_PICK() gives a pointer. */
extern const mt__fold_table mt__folds_base[1];
extern const mt__fold_table mt__folds_v3[1];
extern const mt__fold_table mt__folds_v4[1];

/* The partial of no elements. */
mt__partial mt__fold_nothing(mt__fold fold, mt_dtype dtype);

/* Adds `more`, made of more_count elements, to a partial of `count`. */
void mt__fold_join(mt__fold fold, mt_dtype dtype, mt__partial *partial, int64_t count,
                   const mt__partial *more, int64_t more_count);

/* Joins of the two kinds that keep two numbers. */
void mt__join_moments(mt__partial *partial, int64_t count, double mean, double squares,
                      int64_t more_count);
void mt__join_logsumexp(mt__partial *partial, double largest, double sum);

#endif /* KERNELS_ISA_REDUCE_REDUCE_LOOPS_H */
