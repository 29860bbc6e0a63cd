/* SPDX-License-Identifier: Apache-2.0
 *
 * INDEX and INDEX_SELECT: rows picked from a tensor. See index_rows.h.
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/index/index_rows.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/strided.h"

#include <stdatomic.h>
#include <string.h>

enum {
    READ_GRAIN_BYTES = 1 << 17 /* moved by a piece; below that one thread is faster */
};

typedef struct read_job {
    const mt__index_rows *rows;
    int64_t per_piece; /* chunks */
    atomic_int status;
} read_job;

static void read_rows(const mt__index_rows *rows, const mt__index_chunk *chunk, char *to,
                      const char *from)
{
    mt__walk inner = rows->inner;
    int64_t n_rows = mt__walk_rows(&inner);
    int64_t length = mt__walk_length(&inner);
    int64_t from_stride = mt__walk_stride(&inner, 0);
    int64_t to_stride = mt__walk_stride(&inner, 1);
    bool dense = from_stride == rows->element_bytes && to_stride == rows->element_bytes;
    size_t bytes = (size_t)(length * rows->element_bytes);
    for (int64_t k = 0; k < chunk->count; k++) {
        for (int64_t row = 0; row < n_rows; row++) {
            char *target = to + chunk->dense[k] + inner.offsets[1];
            const char *source = from + chunk->indexed[k] + inner.offsets[0];
            if (dense) {
                memcpy(target, source, bytes);
            } else {
                mt__move_elements(target, to_stride, source, from_stride, length,
                                  rows->element_bytes);
            }
            mt__walk_next(&inner);
        }
    }
}

/* Whether offsets are at one distance from each other, as those of flip() are. */
static bool is_even(const int64_t *offsets, int64_t count, int64_t *step)
{
    *step = count > 1 ? offsets[1] - offsets[0] : 0;
    int64_t off = 0;
    for (int64_t i = 1; i < count; i++) {
        off |= (offsets[i] - offsets[i - 1]) ^ *step;
    }
    return off == 0;
}

/* Everything that the chunk's indices give. */
static void read_chunk(const mt__index_rows *rows, const mt__index_chunk *chunk)
{
    mt__walk outer = rows->outer;
    int64_t n_rows = mt__walk_rows(&outer);
    int64_t length = mt__walk_length(&outer);
    bool single = mt__walk_rows(&rows->inner) == 1 && mt__walk_length(&rows->inner) == 1;
    int64_t to_step = 0, from_step = 0;
    bool even = single && rows->element_bytes <= 8 && n_rows * length > 1 &&
                is_even(chunk->dense, chunk->count, &to_step) &&
                is_even(chunk->indexed, chunk->count, &from_step);
    for (int64_t row = 0; row < n_rows; row++) {
        for (int64_t i = 0; i < length; i++) {
            const char *from = rows->indexed + outer.offsets[0] + i * mt__walk_stride(&outer, 0);
            char *to = rows->dense + outer.offsets[1] + i * mt__walk_stride(&outer, 1);
            if (even) {
                mt__move_strided(to + chunk->dense[0], to_step, from + chunk->indexed[0], from_step,
                                 chunk->count, rows->element_bytes);
            } else if (single) {
                mt__move_at(to, chunk->dense, from, chunk->indexed, chunk->count,
                            rows->element_bytes);
            } else {
                read_rows(rows, chunk, to, from);
            }
        }
        mt__walk_next(&outer);
    }
}

static void read_piece(void *context, int64_t begin, int64_t end)
{
    read_job *job = context;
    mt__index_chunk chunk;
    for (int64_t i = begin; i < end; i++) {
        int status = mt__index_rows_look_up(job->rows, i * MT_INDEX_CHUNK, &chunk);
        if (status != 0) {
            atomic_store_explicit(&job->status, status, memory_order_relaxed);
            return;
        }
        read_chunk(job->rows, &chunk);
    }
}

/* The message of a failure belongs to the thread that found it, so the caller checks again to set
 * its own. */
static int find_failure(const mt__index_rows *rows)
{
    mt__index_chunk chunk;
    for (int64_t begin = 0; begin < rows->n_indices; begin += MT_INDEX_CHUNK) {
        MT_TRY(mt__index_rows_look_up(rows, begin, &chunk));
    }
    return 0;
}

static int read_all(const mt__index_rows *rows, int64_t numel)
{
    if (numel == 0) {
        return 0;
    }
    int64_t n_chunks = (rows->n_indices + MT_INDEX_CHUNK - 1) / MT_INDEX_CHUNK;
    int64_t chunk_bytes = numel * rows->element_bytes / n_chunks;
    int64_t grain = chunk_bytes < READ_GRAIN_BYTES ? READ_GRAIN_BYTES / (chunk_bytes + 1) + 1 : 1;
    read_job job = {.rows = rows};
    atomic_init(&job.status, 0);
    mt__parallel_for(n_chunks, grain, read_piece, &job);
    if (atomic_load_explicit(&job.status, memory_order_relaxed) != 0) {
        return find_failure(rows);
    }
    return 0;
}

MT_HOST_KERNEL(INDEX)
{
    const mt_array *t = call->tensors;
    mt__index_rows rows;
    mt__index_rows_init(&rows, &t[1], &t[0], &t[2], (int32_t)call->n_tensors - 2, call->ints);
    return read_all(&rows, mt__array_numel(&t[0]));
}

MT_HOST_KERNEL(INDEX_SELECT)
{
    const mt_array *t = call->tensors;
    const int64_t ints[] = {call->ints[0], call->ints[0]};
    mt__index_rows rows;
    mt__index_rows_init(&rows, &t[1], &t[0], &t[2], 1, ints);
    rows.wraps = false;
    rows.text = "index out of range in self";
    int64_t numel = mt__array_numel(&t[0]);
    return numel == 0 ? find_failure(&rows) : read_all(&rows, numel);
}
