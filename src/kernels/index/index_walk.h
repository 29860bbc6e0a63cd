/* SPDX-License-Identifier: Apache-2.0
 *
 * Walking over several strided views at once, in row-major order of common sizes. Offsets are in
 * bytes, so that one walk serves all element types.
 *
 *     mt__walk w;
 *     mt__walk_init(&w);
 *     for each dimension, outermost first: mt__walk_add(&w, size, strides of the views in bytes)
 *     mt__walk_rows(&w) rows, each of mt__walk_length(&w) elements; mt__walk_seek, mt__walk_next
 *
 *   IW1  Dimensions that all views traverse with one stride are merged, those of size 1 are left
 *        out.
 *   IW2  There is always a last dimension: a walk over one element has a row of length 1.
 */
#ifndef KERNELS_INDEX_INDEX_WALK_H
#define KERNELS_INDEX_INDEX_WALK_H

#include "base/compiler.h"
#include "kernels/isa/pointwise/loops.h"

#include <mindtorch/backend.h>
#include <mindtorch/tensor.h>

enum {
    MT_WALK_VIEWS = 3
};

typedef struct mt__walk {
    int32_t n_dims; /* at least 1 */
    int64_t sizes[MT_MAX_DIMS];
    int64_t strides[MT_MAX_DIMS][MT_WALK_VIEWS];
    int64_t at[MT_MAX_DIMS];        /* of the row; the last one is not used */
    int64_t offsets[MT_WALK_VIEWS]; /* of the row's first element */
} mt__walk;

MT_INLINE void mt__walk_init(mt__walk *w)
{
    w->n_dims = 1;
    w->sizes[0] = 1;
    w->at[0] = 0;
    for (int v = 0; v < MT_WALK_VIEWS; v++) {
        w->strides[0][v] = 0;
        w->offsets[v] = 0;
    }
}

/* One more dimension, inside those that are there. */
void mt__walk_add(mt__walk *w, int64_t size, const int64_t strides[MT_WALK_VIEWS]);

/* Elements of a row. */
MT_INLINE int64_t mt__walk_length(const mt__walk *w)
{
    return w->sizes[w->n_dims - 1];
}

/* Bytes between elements of a row in view v. */
MT_INLINE int64_t mt__walk_stride(const mt__walk *w, int v)
{
    return w->strides[w->n_dims - 1][v];
}

int64_t mt__walk_rows(const mt__walk *w);

/* Goes to a row. */
void mt__walk_seek(mt__walk *w, int64_t row);

/* Moves to the next row; after the last one, to the first again. */
MT_INLINE void mt__walk_next(mt__walk *w)
{
    for (int32_t d = w->n_dims - 2; d >= 0; d--) {
        for (int v = 0; v < MT_WALK_VIEWS; v++) {
            w->offsets[v] += w->strides[d][v];
        }
        if (++w->at[d] < w->sizes[d]) {
            return;
        }
        for (int v = 0; v < MT_WALK_VIEWS; v++) {
            w->offsets[v] -= w->sizes[d] * w->strides[d][v];
        }
        w->at[d] = 0;
    }
}

MT_INLINE bool mt__array_is_dense(const mt_array *array)
{
    int64_t expected = 1;
    for (int32_t d = array->n_dims - 1; d >= 0; d--) {
        if (array->sizes[d] != 1) {
            if (array->strides[d] != expected) {
                return false;
            }
            expected *= array->sizes[d];
        }
    }
    return true;
}

/* Moves n elements of 1, 2, 4 or 8 bytes; strides in bytes. */
void mt__move_elements(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                       int64_t n, int64_t element_bytes);

/* Moves n elements from and to places given in bytes. */
void mt__move_at(char *to, const int64_t *to_at, const char *from, const int64_t *from_at,
                 int64_t n, int64_t element_bytes);

/* to[i] += alpha from[i], as the type adds: integers wrap, bool is or. False: a type that is not
 * computed with. */
bool mt__can_add(uint32_t dtype);
void mt__add_elements(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                      uint32_t dtype, const mt_scalar *alpha);

/* The same for places given in bytes, in their order: equal ones add up. */
void mt__add_at(char *to, const int64_t *to_at, const char *from, const int64_t *from_at, int64_t n,
                uint32_t dtype, const mt_scalar *alpha);

#endif /* KERNELS_INDEX_INDEX_WALK_H */
