/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions: one piece of the work on one thread. conv.c cuts the pieces, conv_onednn.c and
 * conv_columns.c do them.
 */
#ifndef KERNELS_IMAGE_CONV_H
#define KERNELS_IMAGE_CONV_H

#include <mindtorch/dtype.h>

#include <stdbool.h>
#include <stdint.h>

typedef enum mt__conv_kind {
    MT_CONV_FORWARD,
    MT_CONV_BACKWARD_INPUT,
    MT_CONV_BACKWARD_WEIGHT
} mt__conv_kind;

/* All 64-bit numbers, so that it can be compared as bytes. */
typedef struct mt__conv_shape {
    int64_t n, c, h, w; /* in [n, c, h, w] */
    int64_t o, oh, ow;  /* out [n, o, oh, ow] */
    int64_t kh, kw;     /* weight [o, c / groups, kh, kw] */
    int64_t stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups;
    int64_t out_step; /* elements from an image of out to the next: more than o oh ow in a piece */
} mt__conv_shape;

/* Contiguous but for out_step. Which are read and which written depends on the kind; bias is
 * optional, in BACKWARD_WEIGHT each of weight and bias is. */
typedef struct mt__conv {
    mt__conv_kind kind;
    mt_dtype dtype; /* float32, float64; forward also integers, and bfloat16 for oneDNN alone */
    mt__conv_shape shape;
    void *out, *in, *weight, *bias;
} mt__conv;

/* False: oneDNN is not installed or does not support this; outputs may have been written, and are
 * to be computed again. */
bool mt__conv_onednn(const mt__conv *conv);

/* By products with the columns under the kernel (im2col). MT_ENOMEM. */
int mt__conv_columns(const mt__conv *conv);

/* Whether in itself serves as columns: 1 x 1, no stride, no padding. */
static inline bool mt__conv_is_product(const mt__conv_shape *s)
{
    return s->kh == 1 && s->kw == 1 && s->stride_h == 1 && s->stride_w == 1 && s->pad_h == 0 &&
           s->pad_w == 0;
}

/* Sums of out's planes into bias. */
void mt__conv_bias_gradient(const mt__conv *conv);

#endif /* KERNELS_IMAGE_CONV_H */
