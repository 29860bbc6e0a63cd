/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_GEMM against plain loops: every type, layout and library, threads, refused memory.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/isa.h"
#include "kernels/matrix/onednn.h"
#include "kernels/matrix/product.h"
#include "kernels/walk/parallel.h"
#include "support/strided_array.h"

#include <mindtorch/status.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct sizes {
    int64_t batch, m, n, k;
} sizes;

static mt_scalar real(double value)
{
    return (mt_scalar){.kind = MT_KIND_REAL, .of.real = value};
}

static int run_gemm(const mt_array *c, const mt_array *a, const mt_array *b, double alpha,
                    double beta)
{
    mt_array tensors[3] = {*c, *a, *b};
    mt_scalar scalars[2] = {real(alpha), real(beta)};
    mt_kernel_call call = {.struct_size = sizeof call,
                           .kernel = MT_KERNEL_GEMM,
                           .n_tensors = 3,
                           .n_scalars = 2,
                           .tensors = tensors,
                           .scalars = scalars};
    return mt__host_GEMM(NULL, NULL, &call);
}

/* The sum in double, or in wrapping integers. */
static double reference(const mt_array *a, const mt_array *b, sizes s, int64_t i)
{
    int64_t column = i % s.n;
    int64_t row = i / s.n % s.m;
    int64_t batch = i / s.n / s.m;
    double sum = 0;
    for (int64_t k = 0; k < s.k; k++) {
        sum += strided_get(a, (batch * s.m + row) * s.k + k) *
               strided_get(b, (batch * s.k + k) * s.n + column);
    }
    return sum;
}

static void check_product(mt_dtype dtype, sizes s, const strided_layout layouts[3], double alpha,
                          double beta, uint64_t *seed)
{
    strided_array a;
    strided_array b;
    strided_array c;
    strided_array_init(&a, dtype, (int64_t[]){s.batch, s.m, s.k}, 3, layouts[0]);
    strided_array_init(&b, dtype, (int64_t[]){s.batch, s.k, s.n}, 3, layouts[1]);
    strided_array_init(&c, dtype, (int64_t[]){s.batch, s.m, s.n}, 3, layouts[2]);
    strided_fill(&a.array, seed);
    strided_fill(&b.array, seed);
    strided_fill(&c.array, seed);
    int64_t count = s.batch * s.m * s.n;
    double *want = calloc((size_t)count + 1, sizeof *want);
    for (int64_t i = 0; i < count; i++) {
        want[i] = alpha * reference(&a.array, &b.array, s, i) +
                  (beta == 0 ? 0 : beta * strided_get(&c.array, i));
        if (beta == 0 && (dtype == MT_DTYPE_F32 || dtype == MT_DTYPE_F64)) {
            strided_set(&c.array, i, NAN); /* must not matter */
        }
        if (dtype == MT_DTYPE_U8) {
            want[i] = (double)((int64_t)want[i] & 255);
        }
    }
    REQUIRE_OK(run_gemm(&c.array, &a.array, &b.array, alpha, beta));
    double bound = dtype == MT_DTYPE_F32 ? 1e-6 * (double)(s.k + 4) : 1e-14 * (double)(s.k + 4);
    for (int64_t i = 0; i < count; i++) {
        double got = strided_get(&c.array, i);
        if (!(fabs(got - want[i]) <= bound * (4 + fabs(want[i])))) {
            FAIL("%s %lldx%lldx%lld layouts %d %d %d: element %lld is %.9g, not %.9g",
                 mt_dtype_name(dtype), (long long)s.m, (long long)s.n, (long long)s.k, layouts[0],
                 layouts[1], layouts[2], (long long)i, got, want[i]);
            break;
        }
    }
    free(want);
    strided_array_fini(&a);
    strided_array_fini(&b);
    strided_array_fini(&c);
}

static void check_all(uint64_t seed, bool large)
{
    static const mt_dtype types[] = {MT_DTYPE_F32, MT_DTYPE_F64, MT_DTYPE_I32, MT_DTYPE_I64,
                                     MT_DTYPE_U8};
    static const sizes shapes[] = {{1, 1, 1, 1}, {1, 3, 5, 7},   {2, 4, 4, 4},   {3, 1, 6, 9},
                                   {2, 6, 1, 9}, {1, 33, 17, 5}, {2, 5, 40, 33}, {1, 7, 9, 300},
                                   {1, 0, 3, 2}, {0, 2, 3, 4},   {2, 3, 4, 0},   {1, 130, 100, 99}};
    static const double factors[][2] = {{1, 0}, {1, 1}, {2, 3}, {-1, 0}};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
            if (!large && shapes[i].m > 100) {
                continue;
            }
            for (int l = 0; l < LAYOUT_COUNT * LAYOUT_COUNT; l++) {
                strided_layout layouts[3] = {(strided_layout)(l % LAYOUT_COUNT),
                                             (strided_layout)(l / LAYOUT_COUNT),
                                             (strided_layout)((l + (int)i) % LAYOUT_REPEATED)};
                const double *f = factors[(size_t)l % 4];
                if (shapes[i].m > 100 && l % 7 != 0) {
                    continue;
                }
                check_product(types[t], shapes[i], layouts, f[0],
                              types[t] == MT_DTYPE_U8 && f[0] < 0 ? 0 : f[1], &seed);
            }
        }
    }
}

TEST(every_type_layout_and_library)
{
    uint64_t seed = mt_test_seed();
    check_all(seed, true);
    mt__onednn_allow(false);
    check_all(seed, true);
}

TEST(our_own_loops_at_every_level)
{
    uint64_t seed = mt_test_seed();
    mt__isa best = mt__isa_level();
    mt__openblas_allow(false);
    check_all(seed, true); /* oneDNN for what is large, loops for the rest */
    mt__onednn_allow(false);
    for (int level = MT_ISA_BASE; level <= (int)best; level++) {
        mt__isa_limit((mt__isa)level);
        check_all(seed, level == (int)best);
    }
}

TEST(integers_wrap)
{
    int64_t sizes3[3] = {1, 1, 1};
    int64_t strides[3] = {1, 1, 1};
    int32_t a = INT32_MAX;
    int32_t b = 3;
    int32_t c = 5;
    mt_array arrays[3] = {{&c, sizes3, strides, 3, MT_DTYPE_I32},
                          {&a, sizes3, strides, 3, MT_DTYPE_I32},
                          {&b, sizes3, strides, 3, MT_DTYPE_I32}};
    REQUIRE_OK(run_gemm(&arrays[0], &arrays[1], &arrays[2], 1, 1));
    CHECK_EQ_I64(c, (int32_t)((uint32_t)INT32_MAX * 3U + 5U));
    /* alpha and beta as torch takes them: cut to integers. */
    c = 7;
    a = 2;
    REQUIRE_OK(run_gemm(&arrays[0], &arrays[1], &arrays[2], 1.9, 2.9));
    CHECK_EQ_I64(c, 2 * 7 + 1 * 6);
}

/* GE1: the same bits with any number of threads. */
static void check_threads(mt_dtype dtype, sizes s, strided_layout layout)
{
    uint64_t seed = mt_test_seed();
    strided_array a;
    strided_array b;
    strided_array c[3];
    strided_array_init(&a, dtype, (int64_t[]){s.batch, s.m, s.k}, 3, layout);
    strided_array_init(&b, dtype, (int64_t[]){s.batch, s.k, s.n}, 3, layout);
    strided_fill(&a.array, &seed);
    strided_fill(&b.array, &seed);
    for (uint32_t i = 0; i < 3; i++) {
        strided_array_init(&c[i], dtype, (int64_t[]){s.batch, s.m, s.n}, 3, LAYOUT_CONTIGUOUS);
        mt__parallel_set_threads(i == 0 ? 1 : i + 1);
        REQUIRE_OK(run_gemm(&c[i].array, &a.array, &b.array, 1, 0));
        CHECK_EQ_MEM(c[i].array.data, c[0].array.data,
                     (size_t)(s.batch * s.m * s.n) * mt_dtype_size(dtype));
    }
    for (uint32_t i = 0; i < 3; i++) {
        strided_array_fini(&c[i]);
    }
    strided_array_fini(&a);
    strided_array_fini(&b);
}

TEST(threads_change_nothing)
{
    static const sizes shapes[] = {{1, 400, 70, 100},
                                   {1, 70, 500, 130},
                                   {1, 300, 300, 64},
                                   {9, 60, 50, 40},
                                   {2, 300, 200, 90}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        check_threads(MT_DTYPE_F32, shapes[i], LAYOUT_CONTIGUOUS);
        check_threads(MT_DTYPE_F32, shapes[i], LAYOUT_TRANSPOSED);
        check_threads(MT_DTYPE_F64, shapes[i], LAYOUT_CONTIGUOUS);
    }
}

TEST(refused_memory)
{
    static const sizes s = {1, 5, 6, 7};
    uint64_t seed = mt_test_seed();
    strided_array a;
    strided_array b;
    strided_array c;
    strided_array_init(&a, MT_DTYPE_F32, (int64_t[]){s.batch, s.m, s.k}, 3, LAYOUT_SLICED);
    strided_array_init(&b, MT_DTYPE_F32, (int64_t[]){s.batch, s.k, s.n}, 3, LAYOUT_SLICED);
    strided_array_init(&c, MT_DTYPE_F32, (int64_t[]){s.batch, s.m, s.n}, 3, LAYOUT_CONTIGUOUS);
    strided_fill(&a.array, &seed);
    strided_fill(&b.array, &seed);
    for (uint64_t n = 1;; n++) {
        (void)mtb_fail_nth(n, false);
        int status = run_gemm(&c.array, &a.array, &b.array, 1, 0);
        uint64_t requests = mtb_fail_nth(0, false);
        if (status == 0) {
            CHECK(requests < n);
            CHECK(n > 1); /* sliced operands are copied */
            break;
        }
        CHECK_EQ_I64(status, MT_ENOMEM);
    }
    for (int64_t i = 0; i < s.m * s.n; i++) {
        CHECK_NEAR_F64(strided_get(&c.array, i), reference(&a.array, &b.array, s, i), 1e-4);
    }
    strided_array_fini(&a);
    strided_array_fini(&b);
    strided_array_fini(&c);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static _Atomic bool computed;

static void *compute(void *unused)
{
    (void)unused;
    static _Thread_local float a[128 * 128];
    static _Thread_local float c[128 * 128];
    mt__product p = {.m = 128,
                     .n = 128,
                     .k = 128,
                     .a = a,
                     .b = a,
                     .c = c,
                     .a_row = 128,
                     .a_col = 1,
                     .b_row = 128,
                     .b_col = 1,
                     .c_row = 128,
                     .c_col = 1,
                     .alpha = 1};
    CHECK_EQ_I64(mt__multiply(MT_DTYPE_F32, &p), 0);
    atomic_store(&computed, true);
    return NULL;
}

/* Forks all the time until the first product of the process, on another thread, is done. */
static void fork_beside_first_product(void)
{
    pid_t children[30];
    size_t n = 0;
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, compute, NULL) == 0);
    while (n < sizeof children / sizeof children[0] && !atomic_load(&computed)) {
        children[n] = fork();
        REQUIRE(children[n] >= 0);
        if (children[n] == 0) {
            alarm(30);
            (void)compute(NULL);
            _exit(0);
        }
        n++;
    }
    (void)pthread_join(thread, NULL);
    for (size_t i = 0; i < n; i++) {
        int status = -1;
        REQUIRE(waitpid(children[i], &status, 0) == children[i]);
        CHECK_EQ_I64(status, 0);
    }
}

TEST(a_child_of_fork_computes)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    MT_SKIP("a fork while a thread is busy leaves the sanitizers' locks held");
#endif
    for (int i = 0; i < 4; i++) {
        pid_t process = fork(); /* one that has not opened a library yet */
        REQUIRE(process >= 0);
        if (process == 0) {
            fork_beside_first_product();
            _exit(0);
        }
        int status = -1;
        REQUIRE(waitpid(process, &status, 0) == process);
        CHECK_EQ_I64(status, 0);
    }
}
