/* SPDX-License-Identifier: Apache-2.0
 *
 * Views as values: sizes, strides and offset that a view op changes, before there is a tensor. The
 * derivatives of views use the same steps on a tensor of zeros.
 */
#ifndef MINDTORCH_OPS_VIEW_VIEW_GEOMETRY_H
#define MINDTORCH_OPS_VIEW_VIEW_GEOMETRY_H

#include "mindtorch/dispatch/call.h"

typedef struct mt__view_geometry {
    uint32_t n_dims;
    int64_t offset; /* in elements */
    int64_t sizes[MT_MAX_DIMS];
    int64_t strides[MT_MAX_DIMS];
} mt__view_geometry;

MT_INLINE void mt__geometry_of(const mt_tensor *tensor, mt__view_geometry *g)
{
    g->n_dims = tensor->n_dims;
    g->offset = tensor->offset;
    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        g->sizes[i] = tensor->sizes[i];
        g->strides[i] = tensor->strides[i];
    }
}

/* Takes dimension `dim` out, puts one in before `dim`. There must be room for it. */
void mt__geometry_remove(mt__view_geometry *g, uint32_t dim);
void mt__geometry_insert(mt__view_geometry *g, uint32_t dim, int64_t size, int64_t stride);

/* Each checks its arguments with torch's words; `dim` may be negative. */
int mt__geometry_select(mt__view_geometry *g, int64_t dim, int64_t index);
int mt__geometry_slice(mt__view_geometry *g, int64_t dim, int64_t start, int64_t end, int64_t step);
int mt__geometry_diagonal(mt__view_geometry *g, int64_t offset, int64_t dim1, int64_t dim2);
int mt__geometry_unfold(mt__view_geometry *g, int64_t dim, int64_t size, int64_t step);

/* Whether no two elements have the same place; false also if that is not easy to determine. */
bool mt__geometry_is_apart(const int64_t *sizes, const int64_t *strides, uint32_t n_dims);

/* MT_ERUNTIME when there are more elements than an int64 counts: views that repeat can be large. */
int mt__geometry_check_numel(const char *op, const mt__view_geometry *g);

/* One past the last element that is reached, from the start of the storage; 0 without elements.
 * MT_ERUNTIME when that does not fit. Strides are not negative. */
int mt__geometry_reach(const char *op, const mt__view_geometry *g, int64_t *reach);

/* Makes the tensor. `track` as in mt__tensor_view. */
MT_INLINE int mt__geometry_view(mt_tensor *base, const mt__view_geometry *g, bool track,
                                mt_tensor **out)
{
    return mt__tensor_view(base, g->sizes, g->strides, g->n_dims, g->offset, track, out);
}

/* Gives the view of the call's first argument as its first result. */
MT_INLINE int mt__give_view(mt__call *call, mt_tensor *base, const mt__view_geometry *g)
{
    return mt__geometry_view(base, g, true, mt__result_place(call, 0));
}

#endif /* MINDTORCH_OPS_VIEW_VIEW_GEOMETRY_H */
