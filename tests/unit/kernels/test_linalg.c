/* SPDX-License-Identifier: Apache-2.0
 *
 * LINALG against what defines it: factors multiplied together, solutions put into their equations.
 * Numbers that LAPACK must not see (LA1), pivots that are not rows, a machine without LAPACK.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/matrix/lapack.h"
#include "kernels/matrix/matrix_exp.h"
#include "kernels/matrix/product.h"
#include "kernels/walk/parallel.h"

#include <mindtorch/status.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST = 40
};

/* A batch of column-major matrices, vectors or numbers, in memory of its own. */
typedef struct held {
    mt_array array;
    int64_t sizes[3], strides[3];
} held;

static void make(held *h, mt_dtype dtype, int32_t n_dims, int64_t batch, int64_t m, int64_t n)
{
    int64_t sizes[] = {batch, m, n};
    int64_t strides[] = {n_dims == 3 ? m * n : n_dims == 2 ? m : 1, 1, m};
    memcpy(h->sizes, sizes, sizeof sizes);
    memcpy(h->strides, strides, sizeof strides);
    h->array = (mt_array){.data = mtb_calloc((size_t)(batch * m * n) + 1, 8),
                          .sizes = h->sizes,
                          .strides = h->strides,
                          .n_dims = n_dims,
                          .dtype = dtype};
    CHECK(h->array.data != NULL);
}

static double get(const held *h, int64_t i)
{
    return h->array.dtype == MT_DTYPE_F64 ? ((const double *)h->array.data)[i]
                                          : (double)((const float *)h->array.data)[i];
}

static void put(const held *h, int64_t i, double value)
{
    if (h->array.dtype == MT_DTYPE_F64) {
        ((double *)h->array.data)[i] = value;
    } else {
        ((float *)h->array.data)[i] = (float)value;
    }
}

static void fill(const held *h, uint64_t *seed, double diagonal)
{
    for (int64_t b = 0; b < h->sizes[0]; b++) {
        for (int64_t i = 0; i < h->sizes[1] * h->sizes[2]; i++) {
            bool on = i % h->sizes[1] == i / h->sizes[1];
            double value = (double)(mt_test_random(seed) >> 11) / 0x1p53 - 0.5;
            put(h, b * h->sizes[1] * h->sizes[2] + i, value + (on ? diagonal : 0));
        }
    }
}

static int run(mt_linalg code, uint32_t n, const held *const *t, const int64_t ints[4],
               double number)
{
    mt_array arrays[6];
    mt_scalar scalar = {.kind = MT_KIND_REAL, .of.real = number};
    for (uint32_t i = 0; i < n; i++) {
        arrays[i] = t[i] != NULL ? t[i]->array : (mt_array){.n_dims = -1};
    }
    const mt_kernel_call call = {.kernel = MT_KERNEL_LINALG,
                                 .code = (uint16_t)code,
                                 .n_tensors = n,
                                 .n_ints = 4,
                                 .n_scalars = 1,
                                 .tensors = arrays,
                                 .ints = ints,
                                 .scalars = &scalar};
    return mt__host_LINALG(NULL, NULL, &call);
}

static const int64_t none[4] = {0, 0, 0, 0};

static void drop(held *const *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        mtb_free(t[i]->array.data);
    }
}

static void need_lapack(void)
{
    if (mt__lapack_of(MT_DTYPE_F64) == NULL) {
        MT_SKIP("OpenBLAS with LAPACK is not installed");
    }
}

/* a x = b with LU, the largest difference of a x and b. */
static void solve_and_compare(mt_dtype dtype, int64_t batch, int64_t n, uint64_t *seed)
{
    held a, kept, b, x, pivots, info;
    make(&a, dtype, 3, batch, n, n);
    make(&kept, dtype, 3, batch, n, n);
    make(&b, dtype, 3, batch, n, 2);
    make(&x, dtype, 3, batch, n, 2);
    make(&pivots, MT_DTYPE_I32, 2, batch, n, 1);
    make(&info, MT_DTYPE_I32, 1, batch, 1, 1);
    fill(&a, seed, 3);
    fill(&b, seed, 0);
    size_t element = mt_dtype_size(dtype);
    memcpy(kept.array.data, a.array.data, (size_t)(batch * n * n) * element);
    memcpy(x.array.data, b.array.data, (size_t)(batch * n * 2) * element);
    CHECK_OK(run(MT_LINALG_LU, 3, (const held *[]){&a, &pivots, &info}, none, 0));
    CHECK_OK(run(MT_LINALG_LU_SOLVE, 3, (const held *[]){&x, &a, &pivots}, none, 0));
    double worst = 0;
    for (int64_t i = 0; i < batch; i++) {
        CHECK_EQ_I64(((const int32_t *)info.array.data)[i], 0);
        for (int64_t r = 0; r < n; r++) {
            for (int64_t c = 0; c < 2; c++) {
                double sum = 0;
                for (int64_t k = 0; k < n; k++) {
                    sum += get(&kept, i * n * n + k * n + r) * get(&x, i * n * 2 + c * n + k);
                }
                worst = fmax(worst, fabs(sum - get(&b, i * n * 2 + c * n + r)));
            }
        }
    }
    CHECK(worst < (dtype == MT_DTYPE_F64 ? 1e-11 : 1e-3));
    drop((held *[]){&a, &kept, &b, &x, &pivots, &info}, 6);
}

TEST(solutions_fit_their_equations)
{
    uint64_t seed = mt_test_seed();
    need_lapack();
    for (int64_t n = 1; n < MOST; n += 3) {
        solve_and_compare(MT_DTYPE_F64, 1, n, &seed);
        solve_and_compare(MT_DTYPE_F32, 3, n, &seed);
    }
    uint32_t threads = mt__parallel_threads();
    mt__parallel_set_threads(4);
    solve_and_compare(MT_DTYPE_F64, 300, 17, &seed);
    mt__parallel_set_threads(threads);
}

TEST(numbers_that_are_not_finite_are_reported)
{
    need_lapack();
    const double wrong[] = {NAN, INFINITY};
    for (uint32_t k = 0; k < 2; k++) {
        held a, values, info;
        make(&a, MT_DTYPE_F64, 3, 2, 3, 3);
        make(&values, MT_DTYPE_F64, 2, 2, 3, 1);
        make(&info, MT_DTYPE_I32, 1, 2, 1, 1);
        for (int64_t i = 0; i < 6; i++) {
            put(&a, i % 3 * 4 + i / 3 * 9, 1);
        }
        put(&a, 9 + 5, wrong[k]); /* of the second */
        CHECK_OK(
            run(MT_LINALG_SINGULAR, 5, (const held *[]){NULL, &values, NULL, &a, &info}, none, 0));
        CHECK_EQ_I64(((const int32_t *)info.array.data)[0], 0);
        CHECK_EQ_I64(((const int32_t *)info.array.data)[1], -4);
        put(&a, 9 + 5, wrong[k]);
        CHECK_OK(run(MT_LINALG_EIGEN, 3, (const held *[]){&a, &values, &info}, none, 0));
        CHECK(((const int32_t *)info.array.data)[1] > 0);
        drop((held *[]){&a, &values, &info}, 3);
    }
}

TEST(a_cholesky_factor_is_not_nan)
{
    need_lapack();
    held a, info;
    make(&a, MT_DTYPE_F64, 3, 3, 2, 2);
    make(&info, MT_DTYPE_I32, 1, 3, 1, 1);
    const double given[] = {4, 2, 2, 5, 1, 0, 0, NAN, -1, 0, 0, 1};
    for (int64_t i = 0; i < 12; i++) {
        put(&a, i, given[i]);
    }
    CHECK_OK(run(MT_LINALG_CHOLESKY, 2, (const held *[]){&a, &info}, none, 0));
    const double wanted[] = {2, 1, 0, 2};
    for (int64_t i = 0; i < 4; i++) {
        CHECK(fabs(get(&a, i) - wanted[i]) < 1e-14);
    }
    const int32_t *numbers = info.array.data;
    CHECK_EQ_I64(numbers[0], 0);
    CHECK_EQ_I64(numbers[1], 2);
    CHECK_EQ_I64(numbers[2], 1);
    drop((held *[]){&a, &info}, 2);
}

TEST(pivots_that_are_not_rows_are_refused)
{
    need_lapack();
    const int32_t wrong[] = {0, 4, -1000000, INT32_MAX - 1};
    for (uint32_t k = 0; k < 4; k++) {
        held a, x, pivots, p;
        char words[64];
        make(&a, MT_DTYPE_F32, 3, 1, 3, 3);
        make(&p, MT_DTYPE_F32, 3, 1, 3, 3);
        make(&x, MT_DTYPE_F32, 3, 1, 3, 1);
        make(&pivots, MT_DTYPE_I32, 2, 1, 3, 1);
        for (int64_t i = 0; i < 3; i++) {
            put(&a, i * 4, 1);
            ((int32_t *)pivots.array.data)[i] = i == 1 ? wrong[k] : 3;
        }
        (void)snprintf(words, sizeof words, "%d is not a row", (int)wrong[k]);
        CHECK_EQ_I64(run(MT_LINALG_LU_SOLVE, 3, (const held *[]){&x, &a, &pivots}, none, 0),
                     MT_ERUNTIME);
        CHECK(strstr(mt_last_error()->message, words) != NULL);
        CHECK_EQ_I64(run(MT_LINALG_PERMUTATION, 2, (const held *[]){&p, &pivots}, none, 0),
                     MT_ERUNTIME);
        CHECK(strstr(mt_last_error()->message, words) != NULL);
        drop((held *[]){&a, &p, &x, &pivots}, 4);
    }
}

TEST(without_lapack_it_says_so)
{
    held a, pivots, info;
    make(&a, MT_DTYPE_F64, 3, 1, 2, 2);
    make(&pivots, MT_DTYPE_I32, 2, 1, 2, 1);
    make(&info, MT_DTYPE_I32, 1, 1, 1, 1);
    mt__openblas_allow(false);
    CHECK_EQ_I64(run(MT_LINALG_LU, 3, (const held *[]){&a, &pivots, &info}, none, 0), MT_ENOTSUP);
    CHECK(strstr(mt_last_error()->message, "libopenblas.so.0") != NULL);
    mt__openblas_allow(true);
    drop((held *[]){&a, &pivots, &info}, 3);
}

TEST(a_side_that_lapack_cannot_count_is_refused)
{
    need_lapack();
    held a, info;
    make(&a, MT_DTYPE_F64, 3, 1, 1, 1);
    make(&info, MT_DTYPE_I32, 1, 1, 1, 1);
    a.sizes[1] = a.sizes[2] = INT64_C(1) << 31; /* nothing is read */
    CHECK_EQ_I64(run(MT_LINALG_CHOLESKY, 2, (const held *[]){&a, &info}, none, 0), MT_ERUNTIME);
    CHECK(strstr(mt_last_error()->message, "2147483648") != NULL);
    drop((held *[]){&a, &info}, 2);
}

TEST(exponentials)
{
    /* A turn by t, and a triangle whose exponential is known; norms from 0 to 700. */
    const double angles[] = {0, 1e-9, 0.5, 3, 40, 350};
    for (uint32_t k = 0; k < 6; k++) {
        double t = angles[k];
        const double turn[] = {0, t, -t, 0};
        const double step[] = {t, 0, 1, t};
        double out[4];
        CHECK_OK(mt__matrix_exp(turn, 2, out));
        double near = 1e-14 * (1 + t * t);
        CHECK(fabs(out[0] - cos(t)) < near && fabs(out[1] - sin(t)) < near);
        CHECK(fabs(out[2] + sin(t)) < near && fabs(out[3] - cos(t)) < near);
        CHECK_OK(mt__matrix_exp(step, 2, out));
        near = 1e-12 * exp(t);
        CHECK(fabs(out[0] - exp(t)) < near && out[1] == 0 && fabs(out[2] - exp(t)) < near);
    }
    const double nan[] = {NAN, 0, 0, 0};
    const double large[] = {1e300, 0, 0, 1e300};
    double out[4];
    CHECK_OK(mt__matrix_exp(nan, 2, out));
    CHECK(isnan(out[3]));
    CHECK_OK(mt__matrix_exp(large, 2, out));
    CHECK(!isfinite(out[0]));
}
