/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions, softmax, norms and optimizer steps as kernels, without tensors and dispatch: what a
 * call costs (microseconds, one thread) on sizes that training has. The best of many runs.
 */
#include "bench_harness.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct view {
    int64_t sizes[3], strides[3];
} view;

/* Float buffers that main() fills; the last one has small integers. */
static float *buffers[6];
static int64_t *indices;

static void measure(const char *name, mt_kernel_fn *run, mt_kernel_call call)
{
    if (!bench_wants(name)) {
        return;
    }
    call.struct_size = sizeof call;
    uint64_t loops = 1;
    double best = 1e18;
    double end = bench_now_ns() + (double)bench_pick(250, 20) * 1e6;
    while (bench_now_ns() < end) {
        double begin = bench_now_ns();
        for (uint64_t i = 0; i < loops; i++) {
            if (run(NULL, NULL, &call) != 0) {
                fprintf(stderr, "%s failed\n", name);
                exit(1);
            }
        }
        double each = (bench_now_ns() - begin) / (double)loops;
        best = each < best ? each : best;
        loops = each < 20000 ? (uint64_t)(20000 / each) + 1 : 1;
    }
    bench_emit(&(bench_figure){.name = name, .unit = "us", .value = best / 1000});
}

/* Row-major strides; reduced dimensions (bits) get stride 0. */
static mt_array array_of(view *v, void *data, uint32_t dtype, const int64_t *sizes, int32_t n,
                         uint32_t reduced)
{
    int64_t next = 1;
    for (int32_t i = n; i-- > 0;) {
        v->sizes[i] = sizes[i];
        v->strides[i] = (reduced >> i & 1) != 0 ? 0 : next;
        next *= (reduced >> i & 1) != 0 ? 1 : sizes[i];
    }
    return (mt_array){
        .data = data, .sizes = v->sizes, .strides = v->strides, .n_dims = n, .dtype = dtype};
}

static void reduce(const char *name, uint16_t code, int64_t rows, int64_t width, uint32_t mask)
{
    view out, in;
    const int64_t sizes[2] = {rows, width};
    mt_array tensors[2] = {array_of(&out, buffers[1], MT_DTYPE_F32, sizes, 2, mask),
                           array_of(&in, buffers[0], MT_DTYPE_F32, sizes, 2, 0)};
    mt_scalar p = {.kind = MT_KIND_REAL, .of.real = 2};
    measure(name, mt__host_REDUCE,
            (mt_kernel_call){.code = code, .n_tensors = 2, .tensors = tensors, .scalars = &p});
}

static void reduce_typed(const char *name, uint16_t code, uint32_t dtype, uint32_t out_dtype)
{
    view out, in;
    const int64_t size = 1 << 20;
    mt_array tensors[2] = {array_of(&out, buffers[1], out_dtype, &size, 1, 1),
                           array_of(&in, buffers[5], dtype, &size, 1, 0)};
    measure(name, mt__host_REDUCE,
            (mt_kernel_call){.code = code, .n_tensors = 2, .tensors = tensors});
}

static void variance(const char *name, int64_t rows, int64_t width, uint32_t mask)
{
    view out, in;
    const int64_t sizes[2] = {rows, width};
    mt_array tensors[3] = {array_of(&out, buffers[1], MT_DTYPE_F32, sizes, 2, mask),
                           {.n_dims = -1},
                           array_of(&in, buffers[0], MT_DTYPE_F32, sizes, 2, 0)};
    mt_scalar one = {.kind = MT_KIND_INT, .of.integer = 1};
    measure(name, mt__host_VAR_MEAN,
            (mt_kernel_call){.n_tensors = 3, .tensors = tensors, .scalars = &one});
}

static void places(const char *name, int64_t rows, int64_t width, int64_t dim)
{
    view out, in;
    const int64_t sizes[2] = {rows, width};
    const int64_t small[2] = {dim == 0 ? 1 : rows, dim == 1 ? 1 : width};
    mt_array tensors[3] = {{.n_dims = -1},
                           array_of(&out, indices, MT_DTYPE_I64, small, 2, 0),
                           array_of(&in, buffers[0], MT_DTYPE_F32, sizes, 2, 0)};
    measure(name, mt__host_REDUCE_INDEX,
            (mt_kernel_call){.n_tensors = 3, .tensors = tensors, .ints = &dim});
}

/* out, in (and another input) of the same sizes. */
static void along(const char *name, mt_kernel_fn *run, uint16_t code, uint32_t count, int64_t rows,
                  int64_t width, int64_t dim)
{
    view v;
    const int64_t sizes[2] = {rows, width};
    mt_array tensors[3] = {array_of(&v, buffers[1], MT_DTYPE_F32, sizes, 2, 0),
                           array_of(&v, buffers[0], MT_DTYPE_F32, sizes, 2, 0),
                           array_of(&v, buffers[2], MT_DTYPE_F32, sizes, 2, 0)};
    measure(name, run,
            (mt_kernel_call){.code = code, .n_tensors = count, .tensors = tensors, .ints = &dim});
}

static void layer_norm(int64_t rows, int64_t width)
{
    view v, row, line;
    const int64_t sizes[2] = {rows, width};
    mt_array big = array_of(&v, NULL, MT_DTYPE_F32, sizes, 2, 0);
    mt_array per_row = array_of(&row, NULL, MT_DTYPE_F32, &rows, 1, 0);
    mt_array per_column = array_of(&line, NULL, MT_DTYPE_F32, &width, 1, 0);
    mt_array t[8] = {big, per_row, per_row, big, per_column, per_column};
    mt_scalar eps = {.kind = MT_KIND_REAL, .of.real = 1e-5};
    t[0].data = buffers[1];
    t[1].data = buffers[3];
    t[2].data = buffers[3] + rows;
    t[3].data = buffers[0];
    t[4].data = buffers[4];
    t[5].data = buffers[4] + width;
    measure("layer_norm", mt__host_LAYER_NORM,
            (mt_kernel_call){.n_tensors = 6, .tensors = t, .scalars = &eps});
    mt_array b[8] = {big, per_column, per_column, big, big, per_row, per_row, per_column};
    b[0].data = buffers[1];
    b[1].data = buffers[4] + 2 * width;
    b[2].data = buffers[4] + 3 * width;
    b[3].data = buffers[2];
    b[4].data = buffers[0];
    b[5].data = buffers[3];
    b[6].data = buffers[3] + rows;
    b[7].data = buffers[4];
    measure("layer_norm_backward", mt__host_LAYER_NORM_BACKWARD,
            (mt_kernel_call){.n_tensors = 8, .tensors = b});
}

static void batch_norm(int64_t n, int64_t c, int64_t l)
{
    view v, channel;
    const int64_t sizes[3] = {n, c, l};
    mt_array big = array_of(&v, NULL, MT_DTYPE_F32, sizes, 3, 0);
    mt_array small = array_of(&channel, NULL, MT_DTYPE_F32, &c, 1, 0);
    mt_array t[8] = {big, small, small, big, small, small, small, small};
    mt_scalar numbers[2] = {{.kind = MT_KIND_REAL, .of.real = 0.1},
                            {.kind = MT_KIND_REAL, .of.real = 1e-5}};
    int64_t training = 1;
    for (int i = 0; i < 8; i++) {
        t[i].data = buffers[4] + i * c;
    }
    t[0].data = buffers[1];
    t[3].data = buffers[0];
    measure("batch_norm", mt__host_BATCH_NORM,
            (mt_kernel_call){.n_tensors = 8, .tensors = t, .ints = &training, .scalars = numbers});
    mt_array b[10] = {big, small, small, big, big, small, small, small, small, small};
    for (int i = 0; i < 10; i++) {
        b[i].data = buffers[4] + i * c;
    }
    b[0].data = buffers[1];
    b[3].data = buffers[2];
    b[4].data = buffers[0];
    measure(
        "batch_norm_backward", mt__host_BATCH_NORM_BACKWARD,
        (mt_kernel_call){.n_tensors = 10, .tensors = b, .ints = &training, .scalars = numbers + 1});
}

static void steps(void)
{
    view v;
    const int64_t size = 1 << 20;
    mt_array t[4];
    for (int i = 0; i < 4; i++) {
        t[i] = array_of(&v, buffers[i], MT_DTYPE_F32, &size, 1, 0);
    }
    const mt_scalar adam[5] = {{.kind = MT_KIND_REAL, .of.real = 1e-3},
                               {.kind = MT_KIND_REAL, .of.real = 0.9},
                               {.kind = MT_KIND_REAL, .of.real = 0.999},
                               {.kind = MT_KIND_REAL, .of.real = 1e-8},
                               {.kind = MT_KIND_REAL, .of.real = 0}};
    const int64_t first[3] = {10, 0, 0};
    measure("adam", mt__host_ADAM,
            (mt_kernel_call){.n_tensors = 4, .tensors = t, .ints = first, .scalars = adam});
    const int64_t plain[3] = {0, 0, 0};
    measure("sgd", mt__host_SGD,
            (mt_kernel_call){.n_tensors = 3, .tensors = t, .ints = plain, .scalars = adam});
}

static void run_reductions(void)
{
    enum {
        M = 1024
    };
    reduce("sum_all", MT_REDUCE_SUM, M, M, 3);
    reduce("mean_all", MT_REDUCE_MEAN, M, M, 3);
    reduce("prod_all", MT_REDUCE_PROD, M, M, 3);
    reduce("max_all", MT_REDUCE_MAX, M, M, 3);
    places("argmax_all", 1, M * M, 1);
    variance("var_all", M, M, 3);
    reduce("norm_all", MT_REDUCE_NORM, M, M, 3);
    reduce("lse_all", MT_REDUCE_LOGSUMEXP, M, M, 3);
    reduce("count_nonzero", MT_REDUCE_COUNT_NONZERO, M, M, 3);
    for (int64_t dim = 1; dim >= 0; dim--) {
        static const char *const names[2][8] = {
            {"sum_0", "mean_0", "amax_0", "argmax_0", "var_0", "lse_0", "cumsum_0", "all_0"},
            {"sum_1", "mean_1", "amax_1", "argmax_1", "var_1", "lse_1", "cumsum_1", "all_1"}};
        const char *const *name = names[dim];
        uint32_t mask = 1U << dim;
        reduce(name[0], MT_REDUCE_SUM, M, M, mask);
        reduce(name[1], MT_REDUCE_MEAN, M, M, mask);
        reduce(name[2], MT_REDUCE_MAX, M, M, mask);
        places(name[3], M, M, dim);
        variance(name[4], M, M, mask);
        reduce(name[5], MT_REDUCE_LOGSUMEXP, M, M, mask);
        along(name[6], mt__host_CUMSUM, 0, 2, M, M, dim);
        reduce(name[7], MT_REDUCE_ALL, M, M, mask);
    }
    reduce_typed("sum_i64", MT_REDUCE_SUM, MT_DTYPE_I64, MT_DTYPE_I64);
    reduce_typed("sum_i32", MT_REDUCE_SUM, MT_DTYPE_I32, MT_DTYPE_I64);
    reduce_typed("sum_u8", MT_REDUCE_SUM, MT_DTYPE_U8, MT_DTYPE_I64);
    reduce_typed("sum_bool", MT_REDUCE_SUM, MT_DTYPE_BOOL, MT_DTYPE_I64);
    reduce_typed("any_bool", MT_REDUCE_ANY, MT_DTYPE_BOOL, MT_DTYPE_BOOL);
    reduce_typed("max_i64", MT_REDUCE_MAX, MT_DTYPE_I64, MT_DTYPE_I64);
}

static void run_rows(void)
{
    along("softmax1m_1", mt__host_SOFTMAX, 0, 2, 1024, 1024, 1);
    along("softmax1m_0", mt__host_SOFTMAX, 0, 2, 1024, 1024, 0);
    along("softmax_gpt", mt__host_SOFTMAX, 0, 2, 12 * 1024, 1024, 1);
    along("log_softmax_gpt", mt__host_SOFTMAX, 1, 2, 12 * 1024, 1024, 1);
    along("softmax_bwd", mt__host_SOFTMAX_BACKWARD, 0, 3, 12 * 1024, 1024, 1);
    along("log_softmax_vocab", mt__host_SOFTMAX, 1, 2, 256, 50257, 1);
    along("log_softmax_vocab_bwd", mt__host_SOFTMAX_BACKWARD, 1, 3, 256, 50257, 1);
    layer_norm(1024, 768);
    batch_norm(32, 64, 56 * 56);
    steps();
}

static void run_small(void)
{
    reduce("small_sum", MT_REDUCE_SUM, 32, 10, 3);
    reduce("small_sum1", MT_REDUCE_SUM, 32, 10, 2);
    reduce("small_sum0", MT_REDUCE_SUM, 32, 10, 1);
    reduce("tiny_sum", MT_REDUCE_SUM, 2, 2, 3);
    along("small_softmax", mt__host_SOFTMAX, 0, 2, 32, 10, 1);
    along("small_lsm", mt__host_SOFTMAX, 1, 2, 32, 10, 1);
    places("small_argmax", 32, 10, 1);
}

int main(int argc, char **argv)
{
    enum {
        COUNT = 13 * 1024 * 1024
    };
    bench_init(argc, argv);
    mt__parallel_set_threads(1);
    for (int i = 0; i < 6; i++) {
        buffers[i] = aligned_alloc(64, COUNT * sizeof(float)); /* as tensors are */
        if (buffers[i] == NULL) {
            return 1;
        }
        for (int64_t k = 0; k < COUNT; k++) {
            buffers[i][k] = (float)((k * 7919 + i) % 4001) / 2000 - 0.99F;
        }
    }
    for (int64_t k = 0; k < 2 * 1024 * 1024; k++) {
        ((uint32_t *)buffers[5])[k] = 0x01000101U * (uint32_t)(k & 1);
    }
    indices = malloc(1 << 20);
    run_reductions();
    run_rows();
    run_small();
    for (int i = 0; i < 6; i++) {
        free(buffers[i]);
    }
    free(indices);
    return 0;
}
