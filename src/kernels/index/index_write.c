/* SPDX-License-Identifier: Apache-2.0
 *
 * INDEX_PUT, INDEX_ADD and EMBEDDING_BACKWARD: rows written to, or added to, the places that
 * indices give. See index_rows.h; sums are added in the order of the indices (IR2).
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/index/index_rows.h"
#include "kernels/walk/parallel.h"

#include <inttypes.h>
#include <string.h>

/* How rows are written. */
typedef struct write_job {
    const mt__index_rows *rows;
    uint32_t dtype;
    const mt_scalar *alpha; /* added with this factor; NULL: set */
} write_job;

static void write_row(const write_job *job, char *to, int64_t to_stride, const char *from,
                      int64_t from_stride, int64_t n)
{
    if (job->alpha == NULL) {
        mt__move_elements(to, to_stride, from, from_stride, n, job->rows->element_bytes);
    } else {
        mt__add_elements(to, to_stride, from, from_stride, n, job->dtype, job->alpha);
    }
}

static void write_rows(const write_job *job, const mt__index_chunk *chunk, char *to,
                       const char *from)
{
    mt__walk inner = job->rows->inner;
    int64_t n_rows = mt__walk_rows(&inner);
    int64_t length = mt__walk_length(&inner);
    if (n_rows == 1 && length == 1) { /* no dimensions after the indices: single elements */
        if (job->alpha == NULL) {
            mt__move_at(to, chunk->indexed, from, chunk->dense, chunk->count,
                        job->rows->element_bytes);
        } else {
            mt__add_at(to, chunk->indexed, from, chunk->dense, chunk->count, job->dtype,
                       job->alpha);
        }
        return;
    }
    for (int64_t k = 0; k < chunk->count; k++) {
        for (int64_t row = 0; row < n_rows; row++) {
            write_row(job, to + chunk->indexed[k] + inner.offsets[0], mt__walk_stride(&inner, 0),
                      from + chunk->dense[k] + inner.offsets[1], mt__walk_stride(&inner, 1),
                      length);
            mt__walk_next(&inner);
        }
    }
}

static int write_all(const write_job *job, int64_t numel)
{
    const mt__index_rows *rows = job->rows;
    mt__walk outer = rows->outer;
    int64_t n_rows = mt__walk_rows(&outer);
    int64_t length = mt__walk_length(&outer);
    mt__index_chunk chunk;
    for (int64_t begin = 0; numel > 0 && begin < rows->n_indices; begin += MT_INDEX_CHUNK) {
        MT_TRY(mt__index_rows_look_up(rows, begin, &chunk));
        for (int64_t row = 0; row < n_rows; row++) {
            for (int64_t i = 0; i < length; i++) {
                write_rows(job, &chunk,
                           rows->indexed + outer.offsets[0] + i * mt__walk_stride(&outer, 0),
                           rows->dense + outer.offsets[1] + i * mt__walk_stride(&outer, 1));
            }
            mt__walk_next(&outer);
        }
    }
    return 0;
}

static int need_addable(const char *kernel, uint32_t dtype)
{
    if (!mt__can_add(dtype)) {
        return mtb_fail(MT_ENOTSUP, "%s: not implemented for %s", kernel,
                        mt_dtype_name((mt_dtype)dtype));
    }
    return 0;
}

static int run_INDEX_PUT(const mt_kernel_call *call)
{
    const mt_array *t = call->tensors;
    const mt_scalar one = {.kind = MT_KIND_INT, .of.integer = 1};
    mt__index_rows rows;
    write_job job = {&rows, t[0].dtype, call->code == 1 ? &one : NULL};
    if (call->code == 1) {
        MT_TRY(need_addable("INDEX_PUT", t[0].dtype));
    }
    mt__index_rows_init(&rows, &t[0], &t[1], &t[2], (int32_t)call->n_tensors - 2, call->ints);
    return write_all(&job, mt__array_numel(&t[1]));
}

/* Elements are set in any type; narrow ones are added in their wide type. */
MT_HOST_KERNEL(INDEX_PUT)
{
    bool widened = call->code == 1 && mt__has_narrow(call);
    return widened ? mt__run_widened(call, run_INDEX_PUT, 0x1, 0x1) : run_INDEX_PUT(call);
}

MT_HOST_KERNEL_WIDENED(INDEX_ADD, 0x1, 0x1)
{
    const mt_array *t = call->tensors;
    const int64_t ints[] = {call->ints[0], call->ints[0]};
    mt__index_rows rows;
    write_job job = {&rows, t[0].dtype, &call->scalars[0]};
    MT_TRY(need_addable("INDEX_ADD", t[0].dtype));
    mt__index_rows_init(&rows, &t[0], &t[2], &t[1], 1, ints);
    rows.wraps = false;
    if (t[0].n_dims > 1) {
        rows.status = MT_ERUNTIME; /* as torch has it */
    } else {
        rows.text = "index out of range in self";
    }
    return write_all(&job, mt__array_numel(&t[2]));
}

/* ---- embedding: zeros first, then each piece adds some columns of all rows ------------------- */

enum {
    ZERO_GRAIN = 1 << 16, /* elements */
    COLUMN_GRAIN = 256
};

typedef struct embedding_job {
    const mt_array *out;
    const mt_array *grad;
    const mt_array *index;
    int64_t padding;
} embedding_job;

static void zero_rows(void *context, int64_t begin, int64_t end)
{
    const mt_array *out = ((const embedding_job *)context)->out;
    int64_t bytes = mt__element_bytes(out->dtype);
    int64_t width = out->sizes[1];
    for (int64_t row = begin; row < end; row++) {
        char *to = (char *)out->data + row * out->strides[0] * bytes;
        if (out->strides[1] == 1) {
            memset(to, 0, (size_t)(width * bytes));
            continue;
        }
        for (int64_t i = 0; i < width; i++) {
            memset(to + i * out->strides[1] * bytes, 0, (size_t)bytes);
        }
    }
}

static void add_columns(void *context, int64_t begin, int64_t end)
{
    const embedding_job *job = context;
    const mt_scalar one = {.kind = MT_KIND_INT, .of.integer = 1};
    const int64_t *index = job->index->data;
    int64_t bytes = mt__element_bytes(job->out->dtype);
    char *out = (char *)job->out->data + begin * job->out->strides[1] * bytes;
    const char *grad = (const char *)job->grad->data + begin * job->grad->strides[1] * bytes;
    for (int64_t i = 0; i < job->index->sizes[0]; i++) {
        int64_t row = index[i * job->index->strides[0]];
        if (row != job->padding) {
            mt__add_elements(out + row * job->out->strides[0] * bytes, job->out->strides[1] * bytes,
                             grad + i * job->grad->strides[0] * bytes,
                             job->grad->strides[1] * bytes, end - begin, job->out->dtype, &one);
        }
    }
}

MT_HOST_KERNEL_WIDENED(EMBEDDING_BACKWARD, 0x1, 0)
{
    const mt_array *t = call->tensors;
    embedding_job job = {&t[0], &t[1], &t[2], call->ints[0]};
    const int64_t *index = t[2].data;
    int64_t width = t[0].sizes[1];
    int64_t n = t[2].sizes[0];
    MT_TRY(need_addable("EMBEDDING_BACKWARD", t[0].dtype));
    for (int64_t i = 0; i < n; i++) {
        int64_t row = index[i * t[2].strides[0]];
        if (row < 0 || row >= t[0].sizes[0]) {
            return mtb_fail(MT_EINDEX,
                            "index %" PRId64 " is out of bounds for dimension 0 with size %" PRId64,
                            row, t[0].sizes[0]);
        }
    }
    if (width > 0) {
        mt__parallel_for(t[0].sizes[0], ZERO_GRAIN / width + 1, zero_rows, &job);
        bool small = n * width < ZERO_GRAIN;
        mt__parallel_for(width, small ? width : COLUMN_GRAIN, add_columns, &job);
    }
    return 0;
}
