/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps that view ops are made of.
 */
#include "mindtorch/ops/view/view_geometry.h"

#include <inttypes.h>

void mt__geometry_remove(mt__view_geometry *g, uint32_t dim)
{
    for (uint32_t i = dim; i + 1 < g->n_dims; i++) {
        g->sizes[i] = g->sizes[i + 1];
        g->strides[i] = g->strides[i + 1];
    }
    g->n_dims--;
}

void mt__geometry_insert(mt__view_geometry *g, uint32_t dim, int64_t size, int64_t stride)
{
    MT_ASSERT(g->n_dims < MT_MAX_DIMS);
    for (uint32_t i = g->n_dims; i > dim; i--) {
        g->sizes[i] = g->sizes[i - 1];
        g->strides[i] = g->strides[i - 1];
    }
    g->sizes[dim] = size;
    g->strides[dim] = stride;
    g->n_dims++;
}

int mt__geometry_select(mt__view_geometry *g, int64_t dim, int64_t index)
{
    uint32_t d;
    if (g->n_dims == 0) {
        return mtb_fail(MT_EINDEX, "select() cannot be applied to a 0-dim tensor");
    }
    MT_TRY(mt__wrap_dim(dim, g->n_dims, &d));
    int64_t size = g->sizes[d];
    if (index < -size || index >= size) {
        char text[MT_SHAPE_TEXT];
        return mtb_fail(MT_EINDEX,
                        "select(): index %" PRId64
                        " out of range for tensor of size %s at dimension %u",
                        index, mt__shape_text(g->sizes, g->n_dims, text), d);
    }
    g->offset += (index < 0 ? index + size : index) * g->strides[d];
    mt__geometry_remove(g, d);
    return 0;
}

/* Where a slice's bound lies between 0 and the size; negative ones count from the end. */
static int64_t clamp_bound(int64_t bound, int64_t size)
{
    bound = bound < 0 ? bound + size : bound;
    return bound < 0 ? 0 : bound > size ? size : bound;
}

int mt__geometry_slice(mt__view_geometry *g, int64_t dim, int64_t start, int64_t end, int64_t step)
{
    uint32_t d;
    if (g->n_dims == 0) {
        return mtb_fail(MT_EINDEX, "slice() cannot be applied to a 0-dim tensor");
    }
    MT_TRY(mt__wrap_dim(dim, g->n_dims, &d));
    if (step <= 0) {
        return mtb_fail(MT_ERUNTIME, "slice step must be positive");
    }
    int64_t size = g->sizes[d];
    start = clamp_bound(start, size);
    end = clamp_bound(end, size);
    int64_t length = end > start ? end - start : 0;
    g->offset += start * g->strides[d];
    g->sizes[d] = length / step + (length % step != 0);
    /* It can only wrap where the size is 0 or 1 and the stride does not matter. */
    g->strides[d] = (int64_t)((uint64_t)g->strides[d] * (uint64_t)step);
    return 0;
}

int mt__geometry_diagonal(mt__view_geometry *g, int64_t offset, int64_t dim1, int64_t dim2)
{
    uint32_t a;
    uint32_t b;
    MT_TRY(mt__wrap_dim(dim1, g->n_dims, &a));
    MT_TRY(mt__wrap_dim(dim2, g->n_dims, &b));
    if (a == b) {
        return mtb_fail(MT_ERUNTIME,
                        "diagonal dimensions cannot be identical %" PRId64 ", %" PRId64, dim1,
                        dim2);
    }
    int64_t size;
    if (offset >= 0) {
        int64_t columns = offset < g->sizes[b] ? g->sizes[b] - offset : 0;
        size = g->sizes[a] < columns ? g->sizes[a] : columns;
    } else {
        int64_t rows = offset > -g->sizes[a] ? g->sizes[a] + offset : 0;
        size = rows < g->sizes[b] ? rows : g->sizes[b];
    }
    if (size > 0) {
        g->offset += offset >= 0 ? offset * g->strides[b] : -offset * g->strides[a];
    }
    int64_t stride = g->strides[a] + g->strides[b];
    mt__geometry_remove(g, a > b ? a : b);
    mt__geometry_remove(g, a > b ? b : a);
    mt__geometry_insert(g, g->n_dims, size, stride);
    return 0;
}

int mt__geometry_unfold(mt__view_geometry *g, int64_t dim, int64_t size, int64_t step)
{
    uint32_t d;
    MT_TRY(mt__wrap_dim(dim, g->n_dims, &d));
    int64_t have = g->n_dims == 0 ? 1 : g->sizes[d];
    if (size < 0) {
        return mtb_fail(MT_ERUNTIME, "size is %" PRId64 " but must be >= 0", size);
    }
    if (size > have) {
        return mtb_fail(MT_ERUNTIME,
                        "maximum size for tensor at dimension %u is %" PRId64
                        " but size is %" PRId64,
                        d, have, size);
    }
    if (step <= 0) {
        return mtb_fail(MT_ERUNTIME, "step is %" PRId64 " but must be > 0", step);
    }
    if (g->n_dims == MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "unfold: the result would have %d dimensions, at most %d",
                        MT_MAX_DIMS + 1, MT_MAX_DIMS);
    }
    if (g->n_dims == 0) {
        mt__geometry_insert(g, 0, size, 1);
        return 0;
    }
    int64_t stride = g->strides[d];
    g->sizes[d] = (have - size) / step + 1;
    g->strides[d] = (int64_t)((uint64_t)stride * (uint64_t)step);
    mt__geometry_insert(g, g->n_dims, size, stride);
    return 0;
}

bool mt__geometry_is_apart(const int64_t *sizes, const int64_t *strides, uint32_t n_dims)
{
    uint32_t order[MT_MAX_DIMS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_dims; i++) {
        if (sizes[i] == 0) {
            return true;
        }
        if (sizes[i] == 1) {
            continue;
        }
        uint32_t at = n++;
        for (; at > 0 && strides[order[at - 1]] > strides[i]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    /* Each stride goes beyond what the smaller ones reach. */
    int64_t reach = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t stride = strides[order[i]];
        int64_t span;
        if (stride <= reach || __builtin_mul_overflow(sizes[order[i]] - 1, stride, &span) ||
            __builtin_add_overflow(reach, span, &reach)) {
            return false;
        }
    }
    return true;
}

int mt__geometry_check_numel(const char *op, const mt__view_geometry *g)
{
    mt__shape shape;
    int64_t numel;
    MT_TRY(mt__shape_make(op, g->sizes, g->n_dims, &shape));
    return mt__shape_numel(op, &shape, 1, &numel);
}

int mt__geometry_reach(const char *op, const mt__view_geometry *g, int64_t *reach)
{
    int64_t last = g->offset;
    for (uint32_t i = 0; i < g->n_dims; i++) {
        if (g->sizes[i] == 0) {
            *reach = 0;
            return 0;
        }
    }
    for (uint32_t i = 0; i < g->n_dims; i++) {
        int64_t span;
        if (__builtin_mul_overflow(g->sizes[i] - 1, g->strides[i], &span) ||
            __builtin_add_overflow(last, span, &last)) {
            last = INT64_MAX;
            break;
        }
    }
    if (last == INT64_MAX) {
        char sizes[MT_SHAPE_TEXT];
        char strides[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "%s: Storage size calculation overflowed with sizes=%s and strides=%s", op,
                        mt__shape_text(g->sizes, g->n_dims, sizes),
                        mt__shape_text(g->strides, g->n_dims, strides));
    }
    *reach = last + 1;
    return 0;
}
