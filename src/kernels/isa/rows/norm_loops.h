/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of layer_norm and batch_norm, made for each instruction set by norm_loops.c.
 * Untyped pointers are to elements of the table's type.
 */
#ifndef KERNELS_ISA_ROWS_NORM_LOOPS_H
#define KERNELS_ISA_ROWS_NORM_LOOPS_H

#include "kernels/isa/isa.h"

#include <mindtorch/dtype.h>

#include <stdbool.h>
#include <stdint.h>

enum {
    MT_NORM_ROWS = 32,  /* most rows whose gradients are added before they go to double */
    MT_NORM_WIDTH = 512 /* most channels of a call over columns */
};

typedef struct mt__layer_norm {
    void *out, *mean, *rstd;
    const void *in, *weight, *bias; /* the last two may be NULL */
    int64_t width;
    double eps;
} mt__layer_norm;

typedef struct mt__layer_norm_backward {
    void *grad_in;                                /* NULL: not wanted */
    const void *grad, *in, *mean, *rstd, *weight; /* weight may be NULL */
    int64_t width;
    bool wants_weight, wants_bias;
} mt__layer_norm_backward;

/* Numbers of one channel, or arrays of them: y = (x - mean) scale + shift. */
typedef struct mt__channel {
    const void *mean, *scale, *shift;
} mt__channel;

typedef struct mt__norm_loops {
    /* Rows begin .. end - 1. */
    void (*layer)(const mt__layer_norm *norm, int64_t begin, int64_t end);
    void (*layer_backward)(const mt__layer_norm_backward *norm, int64_t begin, int64_t end);
    /* Adds the gradients of weight and bias of at most MT_NORM_ROWS rows to sums of `width`;
     * `rest` is for `width` elements of ours. */
    void (*layer_params)(const mt__layer_norm_backward *norm, int64_t begin, int64_t end,
                         double *weight_sums, double *bias_sums, void *rest);

    /* One channel, n elements side by side: to = (x - mean) scale + shift. */
    void (*affine)(void *to, const void *x, int64_t n, const mt__channel *channel);
    /* n channels, one element each. */
    void (*affine_columns)(void *to, const void *x, int64_t n, const mt__channel *channels);
    /* sums[0] += sum of g, sums[1] += sum of g (x - mean). */
    void (*dots)(const void *g, const void *x, int64_t n, const void *mean, double sums[2]);
    /* The same for `width` channels of `rows` rows row_stride apart: sums, then products. */
    void (*dots_columns)(const void *g, const void *x, int64_t rows, int64_t row_stride,
                         int64_t width, const void *means, double *sums, double *products);
    /* to = g scale + (x - mean) slope + shift; */
    void (*grads)(void *to, const void *g, const void *x, int64_t n, const mt__channel *channel,
                  const void *slope);
    void (*grads_columns)(void *to, const void *g, const void *x, int64_t n,
                          const mt__channel *channels, const void *slopes);
} mt__norm_loops;

/* Arrays by type; all NULL where there is nothing for it. */
extern const mt__norm_loops mt__norms_base[MT_DTYPE_COUNT];
extern const mt__norm_loops mt__norms_v3[MT_DTYPE_COUNT];
extern const mt__norm_loops mt__norms_v4[MT_DTYPE_COUNT];

#endif /* KERNELS_ISA_ROWS_NORM_LOOPS_H */
