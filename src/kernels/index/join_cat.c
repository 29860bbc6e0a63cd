/* SPDX-License-Identifier: Apache-2.0
 *
 * CAT: tensors side by side along one dimension. Rows without gaps are moved as bytes, everything
 * else goes through COPY.
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/index/index_walk.h"
#include "kernels/walk/parallel.h"

#include <string.h>

enum {
    CAT_GRAIN_BYTES = 1 << 18
};

/* One input that is dense, like the output: `rows` pieces of `bytes` bytes each. */
typedef struct cat_job {
    char *to;
    const char *from;
    int64_t bytes;
    int64_t step; /* from piece to piece of the output */
} cat_job;

static void cat_rows(void *context, int64_t begin, int64_t end)
{
    const cat_job *job = context;
    if (job->bytes <= 8 && (job->bytes & (job->bytes - 1)) == 0) {
        /* stack() along the last dimension: an element, or two, a row */
        mt__move_elements(job->to + begin * job->step, job->step, job->from + begin * job->bytes,
                          job->bytes, end - begin, job->bytes);
        return;
    }
    for (int64_t row = begin; row < end; row++) {
        memcpy(job->to + row * job->step, job->from + row * job->bytes, (size_t)job->bytes);
    }
}

/* Copies into the part of the output that begins at `start`. */
static int cat_strided(const mt_array *out, const mt_array *in, int64_t dim, int64_t start)
{
    mt_array pair[2] = {*in, *in};
    pair[0].data = (char *)out->data + start * out->strides[dim] * mt__element_bytes(out->dtype);
    pair[0].strides = out->strides;
    const mt_kernel_call copy = {
        .struct_size = sizeof(copy),
        .kernel = MT_KERNEL_COPY,
        .n_tensors = 2,
        .tensors = pair,
    };
    return mt__host_COPY(NULL, NULL, &copy);
}

MT_HOST_KERNEL(CAT)
{
    const mt_array *out = &call->tensors[0];
    int64_t dim = call->ints[0];
    int64_t element = mt__element_bytes(out->dtype);
    int64_t start = 0;
    int64_t rows = 1;
    int64_t inner = element;
    for (int64_t d = 0; d < out->n_dims; d++) {
        rows *= d < dim ? out->sizes[d] : 1;
        inner *= d > dim ? out->sizes[d] : 1;
    }
    bool dense = mt__array_is_dense(out);
    for (uint32_t i = 1; i < call->n_tensors; i++) {
        const mt_array *in = &call->tensors[i];
        int64_t size = in->sizes[dim];
        if (size == 0 || rows == 0 || inner == 0) {
            continue;
        }
        if (dense && mt__array_is_dense(in)) {
            cat_job job = {(char *)out->data + start * inner, in->data, size * inner,
                           out->sizes[dim] * inner};
            int64_t grain = CAT_GRAIN_BYTES / job.bytes + 1;
            mt__parallel_for(rows, grain, cat_rows, &job);
        } else {
            MT_TRY(cat_strided(out, in, dim, start));
        }
        start += size;
    }
    return 0;
}
