/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes and strides, see shape.h.
 */
#include "mindtorch/core/tensor/shape.h"

#include "base/compiler.h"
#include "base/fail.h"

#include <stdio.h>
#include <string.h>

const char *mt__shape_text(const int64_t *sizes, size_t n_dims, char text[MT_SHAPE_TEXT])
{
    enum {
        NUMBER = 24 /* ", ", a number and what may close the list */
    };
    size_t used = 0;
    text[used++] = '[';
    for (size_t i = 0; i < n_dims; i++) {
        if (used + NUMBER + sizeof "...]" > MT_SHAPE_TEXT) {
            memcpy(text + used, "...", 3);
            used += 3;
            break;
        }
        used += (size_t)snprintf(text + used, NUMBER, "%s%lld", i == 0 ? "" : ", ",
                                 (long long)sizes[i]);
    }
    text[used++] = ']';
    text[used] = '\0';
    return text;
}

int mt__shape_make(const char *op, const int64_t *sizes, size_t n_dims, mt__shape *shape)
{
    char text[MT_SHAPE_TEXT];
    shape->n_dims = 0;
    if (n_dims > MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "%s: %zu dimensions, at most %d are supported", op, n_dims,
                        MT_MAX_DIMS);
    }
    for (size_t i = 0; i < n_dims; i++) {
        if (sizes[i] < 0) {
            return mtb_fail(MT_ERUNTIME,
                            "%s: Trying to create tensor with negative dimension %lld: %s", op,
                            (long long)sizes[i], mt__shape_text(sizes, n_dims, text));
        }
        shape->sizes[i] = sizes[i];
    }
    shape->n_dims = (uint32_t)n_dims;
    return MT_OK;
}

/* A size of 0 counts as 1 here, so that strides do not overflow either. */
int mt__shape_numel(const char *op, const mt__shape *shape, size_t element_bytes, int64_t *numel)
{
    int64_t product = 1;
    int64_t extent = (int64_t)element_bytes;
    bool overflow = false;
    for (uint32_t i = 0; i < shape->n_dims; i++) {
        int64_t size = shape->sizes[i];
        overflow |= __builtin_mul_overflow(extent, size != 0 ? size : 1, &extent);
        product = overflow ? 0 : product * size;
    }
    *numel = product;
    if (MT_UNLIKELY(overflow)) {
        char text[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "%s: Storage size calculation overflowed with sizes=%s", op,
                        mt__shape_text(shape->sizes, shape->n_dims, text));
    }
    return MT_OK;
}

void mt__shape_strides(const int64_t *sizes, uint32_t n_dims, int64_t *strides)
{
    int64_t stride = 1;
    for (uint32_t i = n_dims; i-- > 0;) {
        strides[i] = stride;
        stride *= sizes[i] != 0 ? sizes[i] : 1;
    }
}

bool mt__shape_is_contiguous(const int64_t *sizes, const int64_t *strides, uint32_t n_dims)
{
    int64_t expected = 1;
    bool fits = true;
    for (uint32_t i = n_dims; i-- > 0;) {
        if (sizes[i] == 0) {
            return true; /* no elements: nothing is out of order */
        }
        fits &= sizes[i] == 1 || strides[i] == expected;
        expected *= sizes[i];
    }
    return fits;
}

bool mt__shape_equal(const mt__shape *a, const mt__shape *b)
{
    if (a->n_dims != b->n_dims) {
        return false;
    }
    for (uint32_t i = 0; i < a->n_dims; i++) {
        if (a->sizes[i] != b->sizes[i]) {
            return false;
        }
    }
    return true;
}

int mt__shape_broadcast(mt__shape *shape, const int64_t *sizes, uint32_t n_dims)
{
    uint32_t n = shape->n_dims > n_dims ? shape->n_dims : n_dims;
    uint32_t skip_a = n - shape->n_dims;
    uint32_t skip_b = n - n_dims;
    for (uint32_t i = n; i-- > 0;) { /* from the end: shape is written in place */
        int64_t a = i >= skip_a ? shape->sizes[i - skip_a] : 1;
        int64_t b = i >= skip_b ? sizes[i - skip_b] : 1;
        if (MT_UNLIKELY(a != b && a != 1 && b != 1)) {
            return mtb_fail(MT_ERUNTIME,
                            "The size of tensor a (%lld) must match the size of tensor b (%lld) "
                            "at non-singleton dimension %u",
                            (long long)a, (long long)b, i);
        }
        shape->sizes[i] = a == 1 ? b : a;
    }
    shape->n_dims = n;
    return MT_OK;
}

void mt__shape_expand_strides(const int64_t *from, const int64_t *strides, uint32_t n_from,
                              const mt__shape *to, int64_t *expanded)
{
    uint32_t skip = to->n_dims - n_from;
    for (uint32_t i = 0; i < skip; i++) {
        expanded[i] = 0;
    }
    for (uint32_t i = 0; i < n_from; i++) {
        expanded[skip + i] = from[i] == 1 && to->sizes[skip + i] != 1 ? 0 : strides[i];
    }
}

int mt__wrap_dim(int64_t dim, uint32_t n_dims, uint32_t *wrapped)
{
    int64_t n = n_dims != 0 ? n_dims : 1;
    *wrapped = 0;
    if (MT_UNLIKELY(dim < -n || dim >= n)) {
        return mtb_fail(MT_EINDEX,
                        "Dimension out of range (expected to be in range of [%lld, %lld], but got "
                        "%lld)",
                        (long long)-n, (long long)n - 1, (long long)dim);
    }
    *wrapped = (uint32_t)(dim < 0 ? dim + n : dim);
    return MT_OK;
}

int mt__dim_mask(const int64_t *dims, size_t count, uint32_t n_dims, uint32_t *mask)
{
    uint32_t all = (1U << n_dims) - 1;
    *mask = 0;
    if (count == 0) {
        *mask = all;
        return MT_OK;
    }
    uint32_t seen = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t dim;
        MT_TRY(mt__wrap_dim(dims[i], n_dims, &dim));
        if ((seen >> dim & 1U) != 0) {
            return mtb_fail(MT_ERUNTIME, "dim %u appears multiple times in the list of dims", dim);
        }
        seen |= 1U << dim;
    }
    *mask = seen & all;
    return MT_OK;
}

int mt__shape_infer(const int64_t *sizes, size_t n_dims, int64_t numel, mt__shape *shape)
{
    char text[MT_SHAPE_TEXT];
    size_t inferred = n_dims; /* which one is -1; n_dims: none */
    int64_t product = 1;
    bool overflow = false;
    shape->n_dims = 0;
    if (n_dims > MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "%zu dimensions, at most %d are supported", n_dims,
                        MT_MAX_DIMS);
    }
    for (size_t i = 0; i < n_dims; i++) {
        shape->sizes[i] = sizes[i];
        if (sizes[i] >= 0) {
            overflow |= __builtin_mul_overflow(product, sizes[i], &product);
        } else if (sizes[i] != -1) {
            return mtb_fail(MT_ERUNTIME, "invalid shape dimension %lld at index %zu of shape %s",
                            (long long)sizes[i], i, mt__shape_text(sizes, n_dims, text));
        } else if (inferred != n_dims) {
            return mtb_fail(MT_ERUNTIME, "only one dimension can be inferred");
        } else {
            inferred = i;
        }
    }
    shape->n_dims = (uint32_t)n_dims;
    if (!overflow && inferred == n_dims && product == numel) {
        return MT_OK;
    }
    if (!overflow && inferred != n_dims && product != 0 && numel % product == 0) {
        shape->sizes[inferred] = numel / product;
        return MT_OK;
    }
    shape->n_dims = 0;
    if (!overflow && inferred != n_dims && product == 0 && numel == 0) {
        return mtb_fail(MT_ERUNTIME,
                        "cannot reshape tensor of 0 elements into shape %s because the "
                        "unspecified dimension size -1 can be any value and is ambiguous",
                        mt__shape_text(sizes, n_dims, text));
    }
    return mtb_fail(MT_ERUNTIME, "shape '%s' is invalid for input of size %lld",
                    mt__shape_text(sizes, n_dims, text), (long long)numel);
}

/* Dimensions that step evenly through memory, taken as one. */
typedef struct run {
    int64_t size;
    int64_t stride;
} run;

/* The old dimensions as few runs, the innermost first. Sizes are > 0. */
static uint32_t collect_runs(const int64_t *sizes, const int64_t *strides, uint32_t n_dims,
                             run runs[MT_MAX_DIMS])
{
    uint32_t n = 0;
    for (uint32_t i = n_dims; i-- > 0;) {
        if (sizes[i] == 1) {
            continue; /* its stride is irrelevant */
        }
        if (n != 0 && strides[i] == runs[n - 1].size * runs[n - 1].stride) {
            runs[n - 1].size *= sizes[i];
        } else {
            runs[n++] = (run){sizes[i], strides[i]};
        }
    }
    return n;
}

bool mt__shape_view_strides(const int64_t *old_sizes, const int64_t *old_strides, uint32_t old_n,
                            const mt__shape *shape, int64_t *strides)
{
    bool same = old_n == shape->n_dims;
    for (uint32_t i = 0; same && i < old_n; i++) {
        same = old_sizes[i] == shape->sizes[i];
        strides[i] = old_strides[i];
    }
    if (same) {
        return true;
    }
    for (uint32_t i = 0; i < shape->n_dims; i++) {
        if (shape->sizes[i] == 0) { /* then the old sizes have a 0 too: any strides are right */
            mt__shape_strides(shape->sizes, shape->n_dims, strides);
            return true;
        }
    }
    run runs[MT_MAX_DIMS];
    uint32_t n_runs = collect_runs(old_sizes, old_strides, old_n, runs);
    run here = n_runs != 0 ? runs[0] : old_n != 0 ? (run){1, old_strides[old_n - 1]} : (run){1, 1};
    int64_t used = 1; /* elements of this run that new dimensions already take */
    uint32_t next = 1;
    for (uint32_t i = shape->n_dims; i-- > 0;) {
        if (shape->sizes[i] != 1 && used == here.size) {
            if (next >= n_runs) {
                return false; /* not the same number of elements */
            }
            here = runs[next++];
            used = 1;
        }
        strides[i] = used * here.stride;
        used *= shape->sizes[i];
        if (here.size % used != 0) {
            return false; /* a new dimension would reach over the end of a run */
        }
    }
    return used == here.size && next >= n_runs;
}
