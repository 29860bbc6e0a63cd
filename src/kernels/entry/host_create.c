/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_ARANGE, MT_KERNEL_EYE and MT_KERNEL_TRIANGLE.
 */
#include "kernels/entry/host_kernels.h"
#include "kernels/number/half.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/strided.h"

#include <string.h>

enum {
    GRAIN = 65536 /* elements a thread is woken for */
};

/* ---- arange ---- */

typedef struct range_job {
    mt_array out;
    double start, step;
    int64_t first, stride; /* the same as integers, which wrap */
} range_job;

static void write_range(void *context, int64_t begin, int64_t end)
{
    const range_job *work = context;
    uint32_t dtype = work->out.dtype;
    int64_t bytes = mt__element_bytes(dtype) * work->out.strides[0];
    bool is_integer = mt_dtype_category((mt_dtype)dtype) != MT_CATEGORY_REAL;
    for (int64_t i = begin; i < end; i++) {
        mt_scalar number = {.kind = is_integer ? MT_KIND_INT : MT_KIND_REAL};
        if (is_integer) {
            number.of.integer =
                (int64_t)((uint64_t)work->first + (uint64_t)i * (uint64_t)work->stride);
        } else {
            number.of.real = work->start + (double)i * work->step;
        }
        mt__scalar_store(&number, (mt_dtype)dtype, (char *)work->out.data + i * bytes);
    }
}

MT_HOST_KERNEL(ARANGE)
{
    range_job work = {.out = call->tensors[0],
                      .start = mt__scalar_real(&call->scalars[0]),
                      .step = mt__scalar_real(&call->scalars[1]),
                      .first = mt__scalar_integer(&call->scalars[0]),
                      .stride = mt__scalar_integer(&call->scalars[1])};
    mt__parallel_for(work.out.sizes[0], GRAIN, write_range, &work);
    return MT_OK;
}

/* ---- eye ---- */

MT_HOST_KERNEL(EYE)
{
    const mt_array *out = &call->tensors[0];
    const mt_scalar zero = {.kind = MT_KIND_INT};
    mt_kernel_call fill = {.struct_size = sizeof fill,
                           .kernel = MT_KERNEL_FILL,
                           .n_tensors = 1,
                           .n_scalars = 1,
                           .tensors = out,
                           .scalars = &zero};
    int status = mt__host_FILL(context, stream, &fill);
    if (status != MT_OK) {
        return status;
    }
    const mt_scalar one = {.kind = MT_KIND_INT, .of.integer = 1};
    int64_t side = out->sizes[0] < out->sizes[1] ? out->sizes[0] : out->sizes[1];
    int64_t step = (out->strides[0] + out->strides[1]) * mt__element_bytes(out->dtype);
    for (int64_t i = 0; i < side; i++) {
        mt__scalar_store(&one, (mt_dtype)out->dtype, (char *)out->data + i * step);
    }
    return MT_OK;
}

/* ---- triangle ---- */

typedef struct triangle_job {
    mt_array out, in;
    int64_t diagonal;
    bool upper;
    int64_t bytes;
} triangle_job;

static void clear_strided(char *to, int64_t stride, int64_t n, int64_t bytes)
{
    if (n > 0) {
        static const uint64_t zero = 0;
        mt__move_strided(to, stride, (const char *)&zero, 0, n, bytes);
    }
}

/* Rows begin .. end - 1 of all matrices. */
static void write_triangle(void *context, int64_t begin, int64_t end)
{
    const triangle_job *work = context;
    int32_t last = work->out.n_dims - 1;
    int64_t bytes = work->bytes;
    int64_t columns = work->out.sizes[last];
    int64_t out_stride = work->out.strides[last] * bytes;
    int64_t in_stride = work->in.strides[last] * bytes;
    for (int64_t number = begin; number < end; number++) {
        char *out = work->out.data;
        const char *in = work->in.data;
        int64_t rest = number;
        for (int32_t d = last - 1; d >= 0; d--) {
            int64_t index = rest % work->out.sizes[d];
            rest /= work->out.sizes[d];
            out += index * work->out.strides[d] * bytes;
            in += index * work->in.strides[d] * bytes;
        }
        /* Column of the first element right of the triangle's edge, kept inside the row. */
        int64_t row = number % work->out.sizes[last - 1];
        int64_t edge = work->upper ? row + work->diagonal : row + work->diagonal + 1;
        edge = edge < 0 ? 0 : (edge > columns ? columns : edge);
        int64_t keep_begin = work->upper ? edge : 0;
        int64_t keep_end = work->upper ? columns : edge;
        clear_strided(out, out_stride, keep_begin, bytes);
        if (out != in && keep_end > keep_begin) {
            mt__move_strided(out + keep_begin * out_stride, out_stride, in + keep_begin * in_stride,
                             in_stride, keep_end - keep_begin, bytes);
        }
        clear_strided(out + keep_end * out_stride, out_stride, columns - keep_end, bytes);
    }
}

MT_HOST_KERNEL(TRIANGLE)
{
    triangle_job work = {.out = call->tensors[0],
                         .in = call->tensors[1],
                         .upper = call->code == 1,
                         .bytes = mt__element_bytes(call->tensors[0].dtype)};
    int32_t last = work.out.n_dims - 1;
    int64_t rows = 1;
    for (int32_t d = 0; d < last; d++) {
        rows *= work.out.sizes[d];
    }
    int64_t columns = work.out.sizes[last];
    if (columns == 0 || rows == 0) {
        return MT_OK;
    }
    /* A diagonal beyond the matrix is moved to its corner, so that sums with it do not overflow. */
    int64_t height = work.out.sizes[last - 1];
    int64_t diagonal = call->ints[0];
    diagonal = diagonal < -height - 1 ? -height - 1 : diagonal;
    work.diagonal = diagonal > columns + 1 ? columns + 1 : diagonal;
    int64_t grain = GRAIN / columns;
    mt__parallel_for(rows, grain < 1 ? 1 : grain, write_triangle, &work);
    return MT_OK;
}
