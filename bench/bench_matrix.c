/* SPDX-License-Identifier: Apache-2.0
 *
 * Products, convolutions and attention as kernels on one thread: who is fastest at which size. The
 * choices in src/kernels/matrix/product.c and conv.c rest on these figures (GFLOP/s, the best of
 * many
 * runs). Against torch: bench_runtime in ./dev peers speed.
 */
#include "bench_harness.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/matrix/onednn.h"
#include "kernels/matrix/product.h"
#include "kernels/walk/parallel.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    N_BUFFERS = 10,
    BUFFER_FLOATS = 8 << 20
};

static float *buffers[N_BUFFERS];

typedef int run_fn(const void *context);

static void measure(const char *name, run_fn *run, const void *context, double flop)
{
    if (!bench_wants(name)) {
        return;
    }
    uint64_t loops = 1;
    double best = 1e18;
    (void)run(context); /* opens libraries, compiles kernels */
    double end = bench_now_ns() + (double)bench_pick(200, 15) * 1e6;
    do {
        double begin = bench_now_ns();
        for (uint64_t i = 0; i < loops; i++) {
            if (run(context) != 0) {
                fprintf(stderr, "%s failed\n", name);
                exit(1);
            }
        }
        double each = (bench_now_ns() - begin) / (double)loops;
        best = each < best ? each : best;
        loops = each < 50000 ? (uint64_t)(50000 / each) + 1 : 1;
    } while (bench_now_ns() < end);
    bench_emit(&(bench_figure){.name = name, .unit = "GFLOP/s", .value = flop / best});
}

/* ---- products: oneDNN, OpenBLAS, our loops --------------------------------------------------- */

static int run_product(const void *context)
{
    return mt__multiply(MT_DTYPE_F32, context);
}

static void products(void)
{
    static const int64_t shapes[][3] = {{4, 4, 4},       {16, 16, 16},       {32, 32, 32},
                                        {64, 64, 64},    {128, 128, 128},    {256, 256, 256},
                                        {512, 512, 512}, {1024, 1024, 1024}, {32, 256, 784},
                                        {1, 768, 768},   {64, 512, 64},      {1024, 768, 768}};
    static const char *const libraries[3] = {"onednn", "openblas", "loops"};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        mt__product p = {.m = shapes[i][0],
                         .n = shapes[i][1],
                         .k = shapes[i][2],
                         .a = buffers[0],
                         .a_row = shapes[i][2],
                         .a_col = 1,
                         .b = buffers[1],
                         .b_row = shapes[i][1],
                         .b_col = 1,
                         .c = buffers[2],
                         .c_row = shapes[i][1],
                         .c_col = 1,
                         .alpha = 1};
        for (int library = 0; library < 3; library++) {
            char name[64];
            (void)snprintf(name, sizeof name, "product_%lldx%lldx%lld_%s", (long long)p.m,
                           (long long)p.n, (long long)p.k, libraries[library]);
            mt__onednn_allow(library == 0); /* where it is the choice; else OpenBLAS again */
            mt__openblas_allow(library < 2);
            measure(name, run_product, &p, 2.0 * (double)(p.m * p.n * p.k));
        }
    }
    mt__onednn_allow(true);
    mt__openblas_allow(true);
}

/* ---- kernels --------------------------------------------------------------------------------- */

typedef struct kernel_run {
    mt_kernel_fn *run;
    mt_kernel_call call;
} kernel_run;

static int run_kernel(const void *context)
{
    const kernel_run *k = context;
    return k->run(NULL, NULL, &k->call);
}

typedef struct image_case {
    const char *name;
    int64_t c, o, side, k, stride, pad;
} image_case;

static void convolution(const image_case *image, int64_t n)
{
    static const int64_t no_strides[4] = {0}; /* contiguous: not looked at */
    int64_t side = (image->side + 2 * image->pad - image->k) / image->stride + 1;
    int64_t in[4] = {n, image->c, image->side, image->side};
    int64_t weight[4] = {image->o, image->c, image->k, image->k};
    int64_t out[4] = {n, image->o, side, side};
    int64_t ints[7] = {image->stride, image->stride, image->pad, image->pad, 1, 1, 1};
    mt_array a_in = {buffers[0], in, no_strides, 4, MT_DTYPE_F32};
    mt_array a_weight = {buffers[1], weight, no_strides, 4, MT_DTYPE_F32};
    mt_array a_out = {buffers[2], out, no_strides, 4, MT_DTYPE_F32};
    mt_array none = {.n_dims = -1};
    mt_array tensors[3][4] = {{a_out, a_in, a_weight, none},
                              {a_in, a_out, a_weight, none},
                              {a_weight, none, a_out, a_in}};
    mt_kernel_fn *const kernels[3] = {mt__host_CONV, mt__host_CONV_BACKWARD_INPUT,
                                      mt__host_CONV_BACKWARD_WEIGHT};
    static const char *const names[3] = {"forward", "d_input", "d_weight"};
    double flop = 2.0 * (double)(n * image->o * side * side) * (double)(image->c * image->k) *
                  (double)image->k;
    for (int library = 0; library < 2; library++) {
        mt__onednn_allow(library == 0);
        for (int i = 0; i < 3; i++) {
            char name[96];
            (void)snprintf(name, sizeof name, "conv_%s_n%lld_%s_%s", image->name, (long long)n,
                           names[i], library == 0 ? "onednn" : "columns");
            kernel_run k = {kernels[i],
                            {.struct_size = sizeof k.call,
                             .n_tensors = i == 1 ? 3 : 4,
                             .n_ints = 7,
                             .tensors = tensors[i],
                             .ints = ints}};
            measure(name, run_kernel, &k, flop);
        }
    }
    mt__onednn_allow(true);
}

static void attention(int64_t batch, bool causal)
{
    enum {
        HEADS = 12,
        LENGTH = 1024,
        DEPTH = 64
    };
    int64_t sizes[4] = {batch, HEADS, LENGTH, DEPTH};
    int64_t strides[4] = {LENGTH * HEADS * DEPTH, DEPTH, HEADS * DEPTH, 1};
    int64_t row_strides[3] = {HEADS * LENGTH, LENGTH, 1};
    mt_array a[9];
    for (int i = 0; i < 9; i++) {
        a[i] = (mt_array){buffers[i], sizes, strides, 4, MT_DTYPE_F32};
    }
    mt_array lse = {buffers[9], sizes, row_strides, 3, MT_DTYPE_F32};
    mt_array none = {.n_dims = -1};
    mt_array forward[6] = {a[0], lse, a[1], a[2], a[3], none};
    mt_array backward[10] = {a[4], a[5], a[6], a[7], a[1], a[2], a[3], a[0], lse, none};
    int64_t ints[1] = {causal ? 1 : 0};
    mt_scalar scale = {.kind = MT_KIND_REAL, .of.real = 0.125};
    double flop = 4.0 * (double)(batch * HEADS) * LENGTH * LENGTH * DEPTH * (causal ? 0.5 : 1);
    for (int i = 0; i < 2; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "attention_b%lld_%s_%s", (long long)batch,
                       causal ? "causal" : "full", i == 0 ? "forward" : "backward");
        kernel_run k = {i == 0 ? mt__host_ATTENTION : mt__host_ATTENTION_BACKWARD,
                        {.struct_size = sizeof k.call,
                         .n_tensors = i == 0 ? 6 : 10,
                         .n_ints = 1,
                         .n_scalars = 1,
                         .tensors = i == 0 ? forward : backward,
                         .ints = ints,
                         .scalars = &scale}};
        measure(name, run_kernel, &k, i == 0 ? flop : 2.5 * flop);
    }
}

int main(int argc, char **argv)
{
    static const image_case images[] = {
        {"3x3_64", 64, 64, 56, 3, 1, 1},      {"3x3_128", 128, 128, 28, 3, 1, 1},
        {"3x3_256", 256, 256, 14, 3, 1, 1},   {"3x3_512", 512, 512, 7, 3, 1, 1},
        {"1x1_256_64", 256, 64, 56, 1, 1, 0}, {"7x7_3_64", 3, 64, 224, 7, 2, 3},
    };
    bench_init(argc, argv);
    mt__parallel_set_threads(1);
    for (int i = 0; i < N_BUFFERS; i++) {
        buffers[i] = malloc(BUFFER_FLOATS * sizeof(float));
        for (int64_t e = 0; buffers[i] != NULL && e < BUFFER_FLOATS; e++) {
            buffers[i][e] = (float)(e * 37 % 101 - 50) / 64;
        }
        if (buffers[i] == NULL) {
            return 1;
        }
    }
    products();
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        convolution(&images[i], 1);
        convolution(&images[i], 8);
    }
    attention(1, true);
    attention(4, true);
    attention(1, false);
    for (int i = 0; i < N_BUFFERS; i++) {
        free(buffers[i]);
    }
    return 0;
}
