/* SPDX-License-Identifier: Apache-2.0
 *
 * GATHER and SCATTER: an index for each element, along one dimension.
 *
 *     out[i][j][k] = in[i][index[i][j][k]][k]      GATHER, dim 1
 *     out[i][index[i][j][k]][k] = source[i][j][k]  SCATTER, dim 1
 *
 * Scattering runs on one thread, in row-major order of the index: the last of equal ones wins, and
 * sums come out the same every time. An index out of range ends it: what was written before stays.
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/index/index_walk.h"
#include "kernels/walk/parallel.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum {
    GATHER_GRAIN = 1 << 14 /* elements of a piece */
};

/* The tensor that is indexed, and the one that has the index's sizes. */
typedef struct gather_job {
    char *indexed;
    char *dense;
    const char *index;
    int64_t limit;  /* of the dimension */
    int64_t stride; /* of the dimension in the indexed tensor, in bytes */
    int64_t bytes;
    int64_t dim;
    mt__walk walk; /* views: indexed (0 along the dimension), dense, index */
    atomic_int status;
    atomic_llong bad; /* an index out of range */
} gather_job;

/* The first of the arrays may be 0-d where the others are 1-d, and the other way round: a dimension
 * that is not there has size 1. */
static int64_t stride_at(const mt_array *array, int32_t d)
{
    return d < array->n_dims ? array->strides[d] : 0;
}

static void job_init(gather_job *job, const mt_array *indexed, const mt_array *dense,
                     const mt_array *index, int64_t dim)
{
    job->indexed = indexed->data;
    job->dense = dense->data;
    job->index = index->data;
    job->bytes = mt__element_bytes(indexed->dtype);
    job->dim = dim;
    job->limit = indexed->n_dims == 0 ? 1 : indexed->sizes[dim];
    job->stride = indexed->n_dims == 0 ? 0 : indexed->strides[dim] * job->bytes;
    atomic_init(&job->status, 0);
    atomic_init(&job->bad, 0);
    mt__walk_init(&job->walk);
    for (int32_t d = 0; d < index->n_dims; d++) {
        int64_t strides[MT_WALK_VIEWS] = {
            d == dim ? 0 : stride_at(indexed, d) * job->bytes,
            stride_at(dense, d) * job->bytes,
            index->strides[d] * (int64_t)sizeof(int64_t),
        };
        mt__walk_add(&job->walk, index->sizes[d], strides);
    }
}

static int refuse(const gather_job *job, int64_t value)
{
    return mtb_fail(MT_ERUNTIME,
                    "index %" PRId64 " is out of bounds for dimension %" PRId64
                    " with size %" PRId64,
                    value, job->dim, job->limit);
}

#define GATHER_ROW(type)                                                    \
    for (int64_t i = 0; i < n; i++) {                                       \
        int64_t at;                                                         \
        type value;                                                         \
        memcpy(&at, index + i * index_stride, sizeof(at));                  \
        if (MT_UNLIKELY((uint64_t)at >= limit)) {                           \
            *bad = at;                                                      \
            return false;                                                   \
        }                                                                   \
        memcpy(&value, from + i * from_stride + at * stride, sizeof(type)); \
        memcpy(to + i * to_stride, &value, sizeof(type));                   \
    }

static bool gather_row(const gather_job *job, const mt__walk *w, int64_t *bad)
{
    int64_t n = mt__walk_length(w);
    const char *from = job->indexed + w->offsets[0];
    char *to = job->dense + w->offsets[1];
    const char *index = job->index + w->offsets[2];
    int64_t from_stride = mt__walk_stride(w, 0);
    int64_t to_stride = mt__walk_stride(w, 1);
    int64_t index_stride = mt__walk_stride(w, 2);
    const int64_t stride = job->stride;
    const uint64_t limit = (uint64_t)job->limit;
    switch (job->bytes) {
    case 1: GATHER_ROW(uint8_t) break;
    case 2: GATHER_ROW(uint16_t) break;
    case 4: GATHER_ROW(uint32_t) break;
    default: GATHER_ROW(uint64_t) break;
    }
    return true;
}

static void gather_piece(void *context, int64_t begin, int64_t end)
{
    gather_job *job = context;
    mt__walk walk = job->walk;
    int64_t bad = 0;
    mt__walk_seek(&walk, begin);
    for (int64_t row = begin; row < end; row++) {
        if (!gather_row(job, &walk, &bad)) {
            atomic_store_explicit(&job->bad, bad, memory_order_relaxed);
            atomic_store_explicit(&job->status, MT_ERUNTIME, memory_order_relaxed);
            return;
        }
        mt__walk_next(&walk);
    }
}

MT_HOST_KERNEL(GATHER)
{
    const mt_array *t = call->tensors;
    gather_job job;
    if (mt__array_numel(&t[2]) == 0) {
        return 0;
    }
    job_init(&job, &t[1], &t[0], &t[2], call->ints[0]);
    int64_t grain = GATHER_GRAIN / mt__walk_length(&job.walk) + 1;
    mt__parallel_for(mt__walk_rows(&job.walk), grain, gather_piece, &job);
    if (atomic_load_explicit(&job.status, memory_order_relaxed) != 0) {
        return refuse(&job, atomic_load_explicit(&job.bad, memory_order_relaxed));
    }
    return 0;
}

typedef int scatter_fn(const gather_job *job, const mt__walk *w);

/* All in local variables: the compiler must assume that a write may change any other memory. */
#define SCATTER(name, type, expression)                                 \
    static int scatter_##name(const gather_job *job, const mt__walk *w) \
    {                                                                   \
        const int64_t n = mt__walk_length(w);                           \
        const char *index = job->index + w->offsets[2];                 \
        const char *from = job->dense + w->offsets[1];                  \
        char *to = job->indexed + w->offsets[0];                        \
        const int64_t index_stride = mt__walk_stride(w, 2);             \
        const int64_t from_stride = mt__walk_stride(w, 1);              \
        const int64_t to_stride = mt__walk_stride(w, 0);                \
        const int64_t stride = job->stride;                             \
        const uint64_t limit = (uint64_t)job->limit;                    \
        for (int64_t i = 0; i < n; i++) {                               \
            int64_t at;                                                 \
            type a;                                                     \
            type b;                                                     \
            memcpy(&at, index + i * index_stride, sizeof(at));          \
            if (MT_UNLIKELY((uint64_t)at >= limit)) {                   \
                return refuse(job, at);                                 \
            }                                                           \
            memcpy(&a, to + i * to_stride + at * stride, sizeof(type)); \
            memcpy(&b, from + i * from_stride, sizeof(type));           \
            a = (type)(expression);                                     \
            memcpy(to + i * to_stride + at * stride, &a, sizeof(type)); \
        }                                                               \
        return 0;                                                       \
    }

SCATTER(set_1, uint8_t, b)
SCATTER(set_2, uint16_t, b)
SCATTER(set_4, uint32_t, b)
SCATTER(set_8, uint64_t, b)

/* X(name, DTYPE, type, type without sign in which sums wrap) */
#define SCATTER_INTEGERS(X)        \
    X(u8, U8, uint8_t, uint8_t)    \
    X(i32, I32, int32_t, uint32_t) \
    X(i64, I64, int64_t, uint64_t)

#define SCATTER_REALS(X) \
    X(f32, F32, float)   \
    X(f64, F64, double)

SCATTER(add_bool, uint8_t, a | b)
SCATTER(multiply_bool, uint8_t, a &b)

#define X(name, code, type, wide)                            \
    SCATTER(add_##name, type, (wide)a + (wide)b)             \
    SCATTER(multiply_##name, type, (uint64_t)a *(uint64_t)b) \
    SCATTER(larger_##name, type, a > b ? a : b)              \
    SCATTER(smaller_##name, type, a < b ? a : b)
SCATTER_INTEGERS(X)
#undef X

#define X(name, code, type)                               \
    SCATTER(add_##name, type, a + b)                      \
    SCATTER(multiply_##name, type, a *b)                  \
    SCATTER(larger_##name, type, a > b || a != a ? a : b) \
    SCATTER(smaller_##name, type, a < b || a != a ? a : b)
SCATTER_REALS(X)
#undef X

static scatter_fn *scatter_of(mt_scatter_mode code, uint32_t dtype, int64_t bytes)
{
    static scatter_fn *const setters[] = {
        [1] = scatter_set_1,
        [2] = scatter_set_2,
        [4] = scatter_set_4,
        [8] = scatter_set_8,
    };
#define X(name, code, ...)                                                                         \
    [MT_DTYPE_##code] = {NULL, scatter_add_##name, scatter_multiply_##name, scatter_larger_##name, \
                         scatter_smaller_##name},
    static scatter_fn *const others[MT_DTYPE_COUNT][MT_SCATTER_COUNT] = {
        [MT_DTYPE_BOOL] = {NULL, scatter_add_bool, scatter_multiply_bool, scatter_add_bool,
                           scatter_multiply_bool},
        SCATTER_INTEGERS(X) SCATTER_REALS(X)};
#undef X
    return code == MT_SCATTER_SET ? setters[bytes] : others[dtype][code];
}

static int run_SCATTER(const mt_kernel_call *call)
{
    const mt_array *t = call->tensors;
    gather_job job;
    scatter_fn *run =
        scatter_of((mt_scatter_mode)call->code, t[0].dtype, mt__element_bytes(t[0].dtype));
    if (run == NULL) {
        return mtb_fail(MT_ENOTSUP, "SCATTER: not implemented for %s",
                        mt_dtype_name((mt_dtype)t[0].dtype));
    }
    if (mt__array_numel(&t[1]) == 0) {
        return 0;
    }
    job_init(&job, &t[0], &t[2], &t[1], call->ints[0]);
    int64_t rows = mt__walk_rows(&job.walk);
    for (int64_t row = 0; row < rows; row++) {
        MT_TRY(run(&job, &job.walk));
        mt__walk_next(&job.walk);
    }
    return 0;
}

/* Elements are set in any type; narrow ones are computed with in their wide type. */
MT_HOST_KERNEL(SCATTER)
{
    bool widened = call->code != MT_SCATTER_SET && mt__has_narrow(call);
    return widened ? mt__run_widened(call, run_SCATTER, 0x1, 0x1) : run_SCATTER(call);
}
