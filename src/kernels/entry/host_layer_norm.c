/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels LAYER_NORM and LAYER_NORM_BACKWARD: rows of a matrix, each with its own mean and
 * deviation. The derivative goes over a few rows at a time, so that the second pass (gradients of
 * weight and bias) finds them in the cache. Pieces have sums of their own, added in their order.
 */
#include "base/fail.h"
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/rows/norm_loops.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/scratch.h"

#include <string.h>

enum {
    GRAIN = 32 * 1024, /* elements */
    PIECES = 32        /* most pieces whose sums are kept */
};

static int find_loops(const char *name, uint32_t dtype, const mt__norm_loops **loops)
{
    *loops = &MT_ISA_PICK(mt__norms)[dtype];
    if ((*loops)->layer == NULL) {
        return mtb_fail(MT_ENOTSUP, "%s: not implemented for %s", name,
                        mt_dtype_name((mt_dtype)dtype));
    }
    return MT_OK;
}

/* ---- forward ---- */

typedef struct forward {
    mt__layer_norm norm;
    const mt__norm_loops *loops;
} forward;

static void run_forward(void *context, int64_t begin, int64_t end)
{
    const forward *job = context;
    job->loops->layer(&job->norm, begin, end);
}

MT_HOST_KERNEL_WIDENED(LAYER_NORM, 0x7, 0)
{
    const mt_array *in = &call->tensors[3];
    int64_t rows = in->sizes[0];
    forward job = {.norm = {.out = mt__arg_data(call, 0),
                            .mean = mt__arg_data(call, 1),
                            .rstd = mt__arg_data(call, 2),
                            .in = in->data,
                            .weight = mt__arg_data(call, 4),
                            .bias = mt__arg_data(call, 5),
                            .width = in->sizes[1],
                            .eps = mt__arg_real(call, 0)}};
    MT_TRY(find_loops("layer_norm", in->dtype, &job.loops));
    mt__parallel_for(rows, 1 + GRAIN / (job.norm.width + 1), run_forward, &job);
    return MT_OK;
}

/* ---- backward ---- */

typedef struct backward {
    mt__layer_norm_backward norm;
    const mt__norm_loops *loops;
    double *sums; /* of each piece: weight's, then bias' */
    char *rests;  /* of each piece: `width` elements */
    size_t element_bytes;
    int64_t grain; /* rows of a piece */
} backward;

static void run_backward(void *context, int64_t begin, int64_t end)
{
    const backward *job = context;
    int64_t width = job->norm.width;
    int64_t piece = begin / job->grain;
    double *sums = job->sums == NULL ? NULL : job->sums + piece * 2 * width;
    for (int64_t row = begin; row < end; row += MT_NORM_ROWS) {
        int64_t stop = end - row < MT_NORM_ROWS ? end : row + MT_NORM_ROWS;
        if (job->norm.grad_in != NULL) {
            job->loops->layer_backward(&job->norm, row, stop);
        }
        if (sums != NULL) {
            job->loops->layer_params(&job->norm, row, stop, sums, sums + width,
                                     job->rests + (size_t)(piece * width) * job->element_bytes);
        }
    }
}

static void store_sums(const backward *job, int64_t pieces, uint32_t which, const mt_array *out)
{
    int64_t width = job->norm.width;
    for (int64_t i = 0; i < width; i++) {
        double sum = 0;
        for (int64_t piece = 0; piece < pieces; piece++) {
            sum += job->sums[(piece * 2 + which) * width + i];
        }
        if (out->dtype == MT_DTYPE_F32) {
            ((float *)out->data)[i] = (float)sum;
        } else {
            ((double *)out->data)[i] = sum;
        }
    }
}

/* Sums for each piece, zeroed. */
static int take_sums(backward *job, int64_t pieces)
{
    size_t count = (size_t)(pieces * job->norm.width);
    job->sums = mt__scratch_take(count, 2 * sizeof(double));
    job->rests = mt__scratch_take(count, job->element_bytes);
    if (job->sums == NULL || job->rests == NULL) {
        return mtb_fail(MT_ENOMEM, "layer_norm_backward: sums of %lld elements",
                        (long long)job->norm.width);
    }
    memset(job->sums, 0, count * 2 * sizeof(double));
    return MT_OK;
}

MT_HOST_KERNEL_WIDENED(LAYER_NORM_BACKWARD, 0x7, 0)
{
    const mt_array *in = &call->tensors[4];
    int64_t rows = in->sizes[0];
    int64_t width = in->sizes[1];
    backward job = {.norm = {.grad_in = mt__arg_data(call, 0),
                             .grad = mt__arg_data(call, 3),
                             .in = in->data,
                             .mean = mt__arg_data(call, 5),
                             .rstd = mt__arg_data(call, 6),
                             .weight = mt__arg_data(call, 7),
                             .width = width,
                             .wants_weight = call->tensors[1].n_dims >= 0,
                             .wants_bias = call->tensors[2].n_dims >= 0},
                    .element_bytes = (size_t)mt__element_bytes(in->dtype)};
    MT_TRY(find_loops("layer_norm_backward", in->dtype, &job.loops));
    if (width == 0) {
        return MT_OK;
    }
    int64_t grain = 1 + GRAIN / width;
    grain = grain < rows / PIECES + 1 ? rows / PIECES + 1 : grain;
    job.grain = grain;
    int64_t pieces = rows / grain + 1; /* 1 at least, so that sums of no rows are written */
    int status = MT_OK;
    if (job.norm.wants_weight || job.norm.wants_bias) {
        status = take_sums(&job, pieces);
    }
    if (status == MT_OK) {
        mt__parallel_for(rows, grain, run_backward, &job);
        for (uint32_t i = 0; i < 2; i++) {
            if (call->tensors[1 + i].n_dims >= 0) {
                store_sums(&job, pieces, i, &call->tensors[1 + i]);
            }
        }
    }
    mt__scratch_give(job.rests);
    mt__scratch_give(job.sums);
    return status;
}
