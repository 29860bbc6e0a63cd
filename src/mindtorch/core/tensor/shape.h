/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes and strides as values. All products are checked: a shape whose bytes do not fit in 63 bits
 * is refused before anything is allocated.
 */
#ifndef MINDTORCH_CORE_TENSOR_SHAPE_H
#define MINDTORCH_CORE_TENSOR_SHAPE_H

#include <mindtorch/tensor.h>

typedef struct mt__shape {
    uint32_t n_dims;
    int64_t sizes[MT_MAX_DIMS];
} mt__shape;

/* Copies sizes; MT_ERUNTIME names a negative size or too many dimensions. `op` begins messages. */
int mt__shape_make(const char *op, const int64_t *sizes, size_t n_dims, mt__shape *shape);

/* Elements; MT_ERUNTIME when elements times element_bytes overflow. */
int mt__shape_numel(const char *op, const mt__shape *shape, size_t element_bytes, int64_t *numel);

/* Strides of row-major elements without gaps. A dimension of size 0 counts as 1, as in torch. */
void mt__shape_strides(const int64_t *sizes, uint32_t n_dims, int64_t *strides);

bool mt__shape_is_contiguous(const int64_t *sizes, const int64_t *strides, uint32_t n_dims);
bool mt__shape_equal(const mt__shape *a, const mt__shape *b);

/* Broadcasts *shape with `sizes`. MT_ERUNTIME with torch's words ("The size of tensor a (2) must
 * match the size of tensor b (3) at non-singleton dimension 0"). */
int mt__shape_broadcast(mt__shape *shape, const int64_t *sizes, uint32_t n_dims);

/* Strides with which a view of `from` sizes and strides is expanded to `to`: 0 in repeated
 * dimensions. The sizes must broadcast (checked by mt__shape_broadcast). */
void mt__shape_expand_strides(const int64_t *from, const int64_t *strides, uint32_t n_from,
                              const mt__shape *to, int64_t *expanded);

/* -n..n-1 to 0..n-1; a 0-d tensor counts as 1-d. MT_EINDEX: "Dimension out of range (expected to be
 * in range of [-2, 1], but got 2)". */
int mt__wrap_dim(int64_t dim, uint32_t n_dims, uint32_t *wrapped);

/* A bit for each dimension of a list, none given = all of them. MT_ERUNTIME: one appears twice. */
int mt__dim_mask(const int64_t *dims, size_t count, uint32_t n_dims, uint32_t *mask);

/* Fills in a -1. MT_ERUNTIME: "shape '[3, -1]' is invalid for input of size 4". */
int mt__shape_infer(const int64_t *sizes, size_t n_dims, int64_t numel, mt__shape *shape);

/* Strides with which the elements can be viewed as `sizes` without a copy; false if there are
 * none. */
bool mt__shape_view_strides(const int64_t *old_sizes, const int64_t *old_strides, uint32_t old_n,
                            const mt__shape *shape, int64_t *strides);

/* "[2, 3]" for messages, cut with "..." where it is long. */
enum {
    MT_SHAPE_TEXT = 128
};
const char *mt__shape_text(const int64_t *sizes, size_t n_dims, char text[MT_SHAPE_TEXT]);

#endif /* MINDTORCH_CORE_TENSOR_SHAPE_H */
