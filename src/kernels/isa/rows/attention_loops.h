/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of attention on a tile of scores between its products; see attention_loops.c.
 */
#ifndef KERNELS_ISA_ROWS_ATTENTION_LOOPS_H
#define KERNELS_ISA_ROWS_ATTENTION_LOOPS_H

#include <stdint.h>

/* A tile [rows, columns] of scores. Arrays have the kernel's type. */
typedef struct mt__attention_tile {
    void *scores; /* replaced by probabilities, or by gradients of scores */
    int64_t line; /* elements from a row to the next */
    int64_t rows, columns;
    int64_t seen;     /* columns that row 0 sees; row r sees r more. Large: all */
    const void *mask; /* added; NULL: none */
    int64_t mask_row, mask_col;
    /* forward, one of each per row: largest score so far, sum of exponentials so far, and the
     * factor by which the sum and the output so far must be multiplied */
    void *most, *total, *factor;
    /* backward */
    const void *lse, *delta;
    const void *grad; /* [rows, columns] with `line`: gradients of probabilities */
    double scale;
} mt__attention_tile;

typedef void mt__attention_fn(const mt__attention_tile *tile);

typedef struct mt__attention_loops {
    mt__attention_fn *softmax; /* forward: scores become exponentials */
    mt__attention_fn *repeat;  /* backward: scores become the forward's probabilities */
    mt__attention_fn *grade;   /* backward: probabilities become gradients of scores */
} mt__attention_loops;

extern const mt__attention_loops mt__attention_f32_base, mt__attention_f64_base;
extern const mt__attention_loops mt__attention_f32_v3, mt__attention_f64_v3;
extern const mt__attention_loops mt__attention_f32_v4, mt__attention_f64_v4;

#endif /* KERNELS_ISA_ROWS_ATTENTION_LOOPS_H */
