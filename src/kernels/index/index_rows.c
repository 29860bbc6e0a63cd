/* SPDX-License-Identifier: Apache-2.0
 *
 * From indices to places in memory.
 */
#include "kernels/index/index_rows.h"

#include "base/fail.h"

#include <inttypes.h>

static bool is_picked(const mt__index_rows *rows, int32_t dim)
{
    for (int32_t i = 0; i < rows->n_index; i++) {
        if (rows->dims[i] == dim) {
            return true;
        }
    }
    return false;
}

void mt__index_rows_init(mt__index_rows *rows, const mt_array *indexed, const mt_array *dense,
                         const mt_array *index, int32_t n_index, const int64_t *ints)
{
    int64_t bytes = mt__element_bytes(indexed->dtype);
    int64_t first = ints[0];
    rows->indexed = indexed->data;
    rows->dense = dense->data;
    rows->element_bytes = bytes;
    rows->n_indices = mt__array_numel(&index[0]);
    rows->n_index = n_index;
    rows->n_index_dims = index[0].n_dims;
    rows->wraps = true;
    rows->status = MT_EINDEX;
    rows->text = NULL;
    rows->index = index;
    for (int32_t i = 0; i < n_index; i++) {
        rows->dims[i] = ints[1 + i];
        rows->limits[i] = indexed->sizes[ints[1 + i]];
        rows->strides[i] = indexed->strides[ints[1 + i]] * bytes;
    }
    for (int32_t d = 0; d < rows->n_index_dims; d++) {
        rows->dense_strides[d] = dense->strides[first + d] * bytes;
    }
    mt__walk_init(&rows->outer);
    mt__walk_init(&rows->inner);
    int64_t at = 0; /* dimension of the dense tensor */
    for (int32_t d = 0; d < indexed->n_dims; d++) {
        if (is_picked(rows, d)) {
            continue;
        }
        int64_t there = at < first ? at : at + rows->n_index_dims;
        mt__walk_add(at < first ? &rows->outer : &rows->inner, indexed->sizes[d],
                     (const int64_t[MT_WALK_VIEWS]){indexed->strides[d] * bytes,
                                                    dense->strides[there] * bytes, 0});
        at++;
    }
}

static MT_COLD int refuse(const mt__index_rows *rows, int32_t i, int64_t value)
{
    if (rows->text != NULL) {
        return mtb_fail(rows->status, "%s", rows->text);
    }
    if (rows->limits[i] == 0) {
        return mtb_fail(rows->status, "index is out of bounds for dimension with size 0");
    }
    return mtb_fail(rows->status,
                    "index %" PRId64 " is out of bounds for dimension %" PRId64
                    " with size %" PRId64,
                    value, rows->dims[i], rows->limits[i]);
}

/* look_up_one() for an index tensor whose elements have one stride. */
static int look_up_row(const mt__index_rows *rows, int32_t i, const int64_t *data, int64_t step,
                       mt__index_chunk *chunk)
{
    const int64_t count = chunk->count;
    const int64_t limit = rows->limits[i];
    const int64_t stride = rows->strides[i];
    const int64_t wrapped = rows->wraps ? limit : 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t value = data[k * step];
        int64_t place = value < 0 ? value + wrapped : value;
        if (MT_UNLIKELY((uint64_t)place >= (uint64_t)limit)) {
            return refuse(rows, i, value);
        }
        chunk->indexed[k] += place * stride;
    }
    return 0;
}

/* Adds what one index tensor contributes to the chunk's places. */
static int look_up_one(const mt__index_rows *rows, int32_t i, int64_t begin, mt__index_chunk *chunk)
{
    const mt_array *index = &rows->index[i];
    int64_t at[MT_MAX_DIMS];
    int64_t offset = 0;
    int64_t rest = begin;
    if (index->n_dims <= 1 || mt__array_is_dense(index)) {
        int64_t step = index->n_dims == 1 ? index->strides[0] : 1;
        return look_up_row(rows, i, (const int64_t *)index->data + begin * step, step, chunk);
    }
    for (int32_t d = index->n_dims - 1; d >= 0; d--) {
        at[d] = rest % index->sizes[d];
        rest /= index->sizes[d];
        offset += at[d] * index->strides[d];
    }
    const int64_t *data = index->data;
    int64_t limit = rows->limits[i];
    for (int64_t k = 0; k < chunk->count; k++) {
        int64_t value = data[offset];
        int64_t place = value < 0 && rows->wraps ? value + limit : value;
        if (MT_UNLIKELY(place < 0 || place >= limit)) {
            return refuse(rows, i, value);
        }
        chunk->indexed[k] += place * rows->strides[i];
        for (int32_t d = index->n_dims - 1; d >= 0; d--) {
            offset += index->strides[d];
            if (++at[d] < index->sizes[d]) {
                break;
            }
            offset -= index->sizes[d] * index->strides[d];
            at[d] = 0;
        }
    }
    return 0;
}

/* Where the dense tensor has the chunk's indices. */
static void place_dense(const mt__index_rows *rows, int64_t begin, mt__index_chunk *chunk)
{
    const int64_t *sizes = rows->index[0].sizes;
    const int64_t count = chunk->count;
    if (rows->n_index_dims <= 1) {
        const int64_t step = rows->n_index_dims == 0 ? 0 : rows->dense_strides[0];
        for (int64_t k = 0; k < count; k++) {
            chunk->dense[k] = (begin + k) * step;
            chunk->indexed[k] = 0;
        }
        return;
    }
    for (int64_t k = 0; k < count; k++) {
        int64_t rest = begin + k;
        int64_t offset = 0;
        for (int32_t d = rows->n_index_dims - 1; d > 0; d--) {
            offset += rest % sizes[d] * rows->dense_strides[d];
            rest /= sizes[d];
        }
        chunk->dense[k] = offset + rest * rows->dense_strides[0];
        chunk->indexed[k] = 0;
    }
}

int mt__index_rows_look_up(const mt__index_rows *rows, int64_t begin, mt__index_chunk *chunk)
{
    int64_t left = rows->n_indices - begin;
    chunk->count = left < MT_INDEX_CHUNK ? left : MT_INDEX_CHUNK;
    place_dense(rows, begin, chunk);
    for (int32_t i = 0; i < rows->n_index; i++) {
        MT_TRY(look_up_one(rows, i, begin, chunk));
    }
    return 0;
}
