/* SPDX-License-Identifier: Apache-2.0
 *
 * What a Fourier transform of a length needs: its stages with their factors, how a long line is
 * divided, and Bluestein's convolution for lengths with a prime factor above 13. Factors are
 * computed in extended precision and rounded once.
 *
 *   FP1  Plans are kept for later calls, up to KEPT_BYTES and KEPT_COUNT (fft_plan.c). A call takes
 *        its plan away and gives it back, so a plan has one user and the places need no lock;
 *        two calls at once for one length have a plan each.
 */
#ifndef KERNELS_SIGNAL_FFT_PLAN_H
#define KERNELS_SIGNAL_FFT_PLAN_H

#include "kernels/isa/signal/fft_loops.h"

#include <stddef.h>

typedef struct mt__fft_plan mt__fft_plan;

struct mt__fft_plan {
    int64_t n;
    bool is_double;
    size_t bytes;        /* without the plans below */
    size_t bytes_in_all; /* of what mt__fft_plan_take() returns */

    mt__fft_stages stages; /* count 0 where n is 1, or too long for lanes, or convolved */
    void *factors[MT_FFT_STAGES];

    /* n = rows columns, for one line at a time; rows 0: n is too short. */
    int64_t rows, columns;
    mt__fft_plan *row_plan, *column_plan; /* of length `columns`, `rows` */
    void *turns; /* w^(k column): [columns / lanes][rows][re, im][lanes]; NULL where that is long */
    double *ladder;     /* else w^(k lane): [rows][re, im][lanes] */
    double *low, *high; /* w^i, w^(i low_count) */
    int64_t low_count;

    /* Bluestein: a convolution of `longer->n` elements; NULL where n has small factors only. */
    mt__fft_plan *longer;
    void *chirp;  /* exp(-i pi k^2 / n), complex, n of them */
    void *kernel; /* the transform of its conjugate / longer->n */

    /* Of real lines: */
    mt__fft_plan *half; /* of n / 2; NULL where n is odd */
    void *half_factors; /* w^k, k <= n / 4 */
};

enum {
    MT_FFT_LONGEST_TABLE = 1 << 16, /* elements of a line whose factors are all kept */
    MT_FFT_LANE_ROWS = 4096 /* longest transform in lanes: both buffers stay in the second cache */
};

/* NULL: no memory. real: of real lines. */
mt__fft_plan *mt__fft_plan_take(int64_t n, bool is_double, bool real);

/* Accepts NULL. */
void mt__fft_plan_give(mt__fft_plan *plan);

#endif /* KERNELS_SIGNAL_FFT_PLAN_H */
