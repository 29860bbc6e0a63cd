/* SPDX-License-Identifier: Apache-2.0
 *
 * See product.h. OpenBLAS is opened at run time, so that our packages do not depend on it; the
 * signatures of BLAS have been stable for decades.
 *
 *     mt__product ──► c turned if its rows are not contiguous ──► a, b with a unit stride, copied
 *     where they have none ──► oneDNN or OpenBLAS;  integers, and without libraries: own loop
 *
 * OpenBLAS must not start threads inside one of our pieces, so its number of threads, which is the
 * whole process's, is set to 1 before the first product that is large enough for it to use threads.
 */
#include "kernels/matrix/product.h"

#include "base/compiler.h"
#include "base/fail.h"
#include "base/shared_object.h"
#include "kernels/isa/isa.h"
#include "kernels/isa/product_loops.h"
#include "kernels/matrix/onednn.h"
#include "kernels/walk/scratch.h"

#include <mindtorch/status.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum {
    TINY_WORK = 27,
    ROW_MAJOR = 101, /* CBLAS */
    PLAIN = 111,
    TURNED = 112,
    ONEDNN_WORK = 96 * 96 * 96,         /* m n k from which oneDNN wins, */
    ONEDNN_SIDE = 16,                   /* if no side is shorter */
    OPENBLAS_ONE_THREAD = 64 * 64 * 64, /* OpenBLAS uses threads from here on: m n k, */
    OPENBLAS_ONE_THREAD_VECTOR = 9000   /* elements of a matrix times a vector */
};

typedef void sgemm_fn(int, int, int, int, int, int, float, const float *, int, const float *, int,
                      float, float *, int);
typedef void dgemm_fn(int, int, int, int, int, int, double, const double *, int, const double *,
                      int, double, double *, int);

typedef void sgemv_fn(int, int, int, int, float, const float *, int, const float *, int, float,
                      float *, int);
typedef void dgemv_fn(int, int, int, int, double, const double *, int, const double *, int, double,
                      double *, int);
typedef float sdot_fn(int, const float *, int, const float *, int);
typedef double ddot_fn(int, const double *, int, const double *, int);

static struct blas {
    sgemm_fn *sgemm;
    dgemm_fn *dgemm;
    sgemv_fn *sgemv;
    dgemv_fn *dgemv;
    sdot_fn *sdot;
    ddot_fn *ddot;
    int (*get_threads)(void);
    void (*set_threads)(int);
    void *handle;
    bool here;
} blas;

static pthread_once_t blas_once = PTHREAD_ONCE_INIT;
static _Atomic(bool) blas_refused;

static void open_blas(void)
{
    void *handle = mtb_open_shared("libopenblas.so.0");
    blas.handle = handle;
    blas.here = handle != NULL && mtb_find_symbol(handle, "cblas_sgemm", &blas.sgemm) &&
                mtb_find_symbol(handle, "cblas_dgemm", &blas.dgemm) &&
                mtb_find_symbol(handle, "cblas_sgemv", &blas.sgemv) &&
                mtb_find_symbol(handle, "cblas_dgemv", &blas.dgemv) &&
                mtb_find_symbol(handle, "cblas_sdot", &blas.sdot) &&
                mtb_find_symbol(handle, "cblas_ddot", &blas.ddot) &&
                mtb_find_symbol(handle, "openblas_get_num_threads", &blas.get_threads) &&
                mtb_find_symbol(handle, "openblas_set_num_threads", &blas.set_threads);
}

bool mt__openblas_here(void)
{
    (void)pthread_once(&blas_once, open_blas);
    return blas.here && !atomic_load_explicit(&blas_refused, memory_order_relaxed);
}

void mt__openblas_allow(bool allowed)
{
    atomic_store_explicit(&blas_refused, !allowed, memory_order_relaxed);
}

bool mt__openblas_find(const char *name, void *slot)
{
    return mt__openblas_here() && mtb_find_symbol(blas.handle, name, slot);
}

void mt__openblas_one_thread(void)
{
    if (blas.get_threads() != 1) {
        blas.set_threads(1);
    }
}

/* ---- matrices in the form of BLAS ------------------------------------------------------------ */

/* A matrix with a unit stride: `turned` = the columns are the contiguous ones. */
typedef struct blas_matrix {
    const void *data;
    int64_t lead;
    bool turned;
    void *copy; /* scratch to give back */
} blas_matrix;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* False where neither direction is contiguous or lines overlap. */
static bool has_unit_stride(const int64_t size[2], const int64_t stride[2], blas_matrix *out)
{
    int64_t row = size[0] == 1 ? larger(1, size[1]) : stride[0];
    int64_t col = size[1] == 1 ? larger(1, size[0]) : stride[1];
    if ((col == 1 || size[1] == 1) && row >= size[1] && row <= INT32_MAX) {
        out->lead = larger(row, 1);
        out->turned = false;
        return true;
    }
    if ((row == 1 || size[0] == 1) && col >= size[0] && col <= INT32_MAX) {
        out->lead = larger(col, 1);
        out->turned = true;
        return true;
    }
    return false;
}

/* Copies a matrix that has no unit stride, along its smaller stride. */
static int pack(size_t element, const int64_t size[2], const int64_t stride[2], blas_matrix *out)
{
    char *copy = mt__scratch_take((size_t)(size[0] * size[1]), element);
    if (copy == NULL) {
        return mtb_fail(MT_ENOMEM, "matrix product: no memory for a copy of %lld x %lld elements",
                        (long long)size[0], (long long)size[1]);
    }
    const char *from = out->data;
    for (int64_t i = 0; i < size[0]; i++) {
        for (int64_t j = 0; j < size[1]; j++) {
            memcpy(copy + (size_t)(i * size[1] + j) * element,
                   from + (i * stride[0] + j * stride[1]) * (int64_t)element, element);
        }
    }
    *out = (blas_matrix){.data = copy, .lead = larger(size[1], 1), .copy = copy};
    return 0;
}

static int prepare(size_t element, const void *data, const int64_t size[2], const int64_t stride[2],
                   blas_matrix *out)
{
    *out = (blas_matrix){.data = data};
    return has_unit_stride(size, stride, out) ? 0 : pack(element, size, stride, out);
}

/* ---- choosing the library -------------------------------------------------------------------- */

static bool onednn_wins(const mt__product *p)
{
    return p->m >= ONEDNN_SIDE && p->n >= ONEDNN_SIDE && p->k >= ONEDNN_SIDE &&
           p->m * p->n >= ONEDNN_WORK / p->k;
}

static bool run_onednn(const mt__product *p, const blas_matrix *a, const blas_matrix *b)
{
#if MT_HAVE_ONEDNN
    const mt__onednn_table *dnn = mt__onednn();
    if (dnn == NULL) {
        return false;
    }
    int threads = mt__onednn_enter();
    dnnl_status_t status = dnn->dnnl_sgemm(a->turned ? 'T' : 'N', b->turned ? 'T' : 'N', p->m, p->n,
                                           p->k, (float)p->alpha, a->data, a->lead, b->data,
                                           b->lead, (float)p->beta, p->c, p->c_row);
    mt__onednn_leave(threads);
    return status == dnnl_success;
#else
    (void)p, (void)a, (void)b;
    return false;
#endif
}

static void want_one_thread(int64_t work, int64_t limit)
{
    if (work > limit) {
        mt__openblas_one_thread();
    }
}

static void dot(mt_dtype dtype, const mt__product *p, const blas_matrix *a, const blas_matrix *b)
{
    int k = (int)p->k;
    int a_step = a->turned ? (int)a->lead : 1;
    int b_step = (int)b->lead;
    want_one_thread(p->k, OPENBLAS_ONE_THREAD_VECTOR);
    if (dtype == MT_DTYPE_F32) {
        float *c = p->c;
        float sum = (float)p->alpha * blas.sdot(k, a->data, a_step, b->data, b_step);
        *c = p->beta == 0 ? sum : sum + (float)p->beta * *c;
    } else {
        double *c = p->c;
        double sum = p->alpha * blas.ddot(k, a->data, a_step, b->data, b_step);
        *c = p->beta == 0 ? sum : sum + p->beta * *c;
    }
}

/* A matrix times a vector; the result has `m` rows, `step` elements apart. beta 0 was handled
 * before. */
static void matrix_vector(mt_dtype dtype, const mt__product *p, const blas_matrix *matrix,
                          const int64_t sizes[2], const void *vector, const int64_t steps[2])
{
    int turn = matrix->turned ? TURNED : PLAIN;
    int rows = (int)(matrix->turned ? sizes[1] : sizes[0]); /* as they are stored */
    int columns = (int)(matrix->turned ? sizes[0] : sizes[1]);
    want_one_thread(sizes[0] * sizes[1], OPENBLAS_ONE_THREAD_VECTOR);
    if (dtype == MT_DTYPE_F32) {
        blas.sgemv(ROW_MAJOR, turn, rows, columns, (float)p->alpha, matrix->data, (int)matrix->lead,
                   vector, (int)steps[0], p->beta == 0 ? 1 : (float)p->beta, p->c, (int)steps[1]);
    } else {
        blas.dgemv(ROW_MAJOR, turn, rows, columns, p->alpha, matrix->data, (int)matrix->lead,
                   vector, (int)steps[0], p->beta == 0 ? 1 : p->beta, p->c, (int)steps[1]);
    }
}

/* m or n is 1. With beta 0 the contents of c must not matter, but gemv multiplies them: c is
 * cleared first. */
static void run_vector(mt_dtype dtype, const mt__product *p, const blas_matrix *a,
                       const blas_matrix *b)
{
    if (p->m == 1 && p->n == 1) {
        dot(dtype, p, a, b);
        return;
    }
    bool is_column = p->n == 1;
    size_t element = mt_dtype_size(dtype);
    int64_t count = is_column ? p->m : p->n;
    int64_t step = is_column ? p->c_row : 1;
    if (p->beta == 0 && step == 1) {
        memset(p->c, 0, (size_t)count * element);
    } else if (p->beta == 0) {
        for (int64_t i = 0; i < count; i++) {
            memset((char *)p->c + (size_t)(i * step) * element, 0, element);
        }
    }
    if (is_column) {
        matrix_vector(dtype, p, a, (int64_t[]){p->m, p->k}, b->data, (int64_t[]){b->lead, step});
    } else {
        blas_matrix turned = *b;
        turned.turned = !b->turned;
        matrix_vector(dtype, p, &turned, (int64_t[]){p->n, p->k}, a->data,
                      (int64_t[]){a->turned ? a->lead : 1, step});
    }
}

static void run_openblas(mt_dtype dtype, const mt__product *p, const blas_matrix *a,
                         const blas_matrix *b)
{
    if (p->m == 1 || p->n == 1) {
        run_vector(dtype, p, a, b);
        return;
    }
    want_one_thread(p->m * p->n, OPENBLAS_ONE_THREAD / larger(p->k, 1));
    int turn_a = a->turned ? TURNED : PLAIN;
    int turn_b = b->turned ? TURNED : PLAIN;
    int m = (int)p->m;
    int n = (int)p->n;
    int k = (int)p->k;
    if (dtype == MT_DTYPE_F32) {
        blas.sgemm(ROW_MAJOR, turn_a, turn_b, m, n, k, (float)p->alpha, a->data, (int)a->lead,
                   b->data, (int)b->lead, (float)p->beta, p->c, (int)p->c_row);
    } else {
        blas.dgemm(ROW_MAJOR, turn_a, turn_b, m, n, k, p->alpha, a->data, (int)a->lead, b->data,
                   (int)b->lead, p->beta, p->c, (int)p->c_row);
    }
}

static int run_loops(mt_dtype dtype, const mt__product *p)
{
    mt__product_loops loops = MT_ISA_PICK(mt__product_loops);
    switch (dtype) {
    case MT_DTYPE_U8: loops.u8(p); return 0;
    case MT_DTYPE_I32: loops.i32(p); return 0;
    case MT_DTYPE_I64: loops.i64(p); return 0;
    case MT_DTYPE_F32: loops.f32(p); return 0;
    case MT_DTYPE_F64: loops.f64(p); return 0;
    default: return mtb_fail(MT_ENOTSUP, "matrix product: not for %s", mt_dtype_name(dtype));
    }
}

static int run_library(mt_dtype dtype, const mt__product *p)
{
    size_t element = mt_dtype_size(dtype);
    blas_matrix a;
    blas_matrix b;
    MT_TRY(prepare(element, p->a, (int64_t[]){p->m, p->k}, (int64_t[]){p->a_row, p->a_col}, &a));
    int status =
        prepare(element, p->b, (int64_t[]){p->k, p->n}, (int64_t[]){p->b_row, p->b_col}, &b);
    if (status == 0) {
        bool done = dtype == MT_DTYPE_F32 && onednn_wins(p) && run_onednn(p, &a, &b);
        if (!done && mt__openblas_here()) {
            run_openblas(dtype, p, &a, &b);
        } else if (!done) {
            status = run_loops(dtype, p);
        }
        mt__scratch_give(b.copy);
    }
    mt__scratch_give(a.copy);
    return status;
}

/* c^T = b^T a^T, for a c whose columns are contiguous. */
static mt__product turned(const mt__product *p)
{
    mt__product t = *p;
    t.m = p->n;
    t.n = p->m;
    t.a = p->b;
    t.a_row = p->b_col;
    t.a_col = p->b_row;
    t.b = p->a;
    t.b_row = p->a_col;
    t.b_col = p->a_row;
    t.c_row = p->c_col;
    t.c_col = p->c_row;
    return t;
}

#define MT_I_DEFINE_TINY(T, suffix)                                       \
    static void tiny_##suffix(const mt__product *p)                       \
    {                                                                     \
        for (int64_t i = 0; i < p->m * p->n; i++) {                       \
            const T *a = (const T *)p->a + i / p->n * p->a_row;           \
            const T *b = (const T *)p->b + i % p->n * p->b_col;           \
            T *c = (T *)p->c + i / p->n * p->c_row + i % p->n * p->c_col; \
            T sum = 0;                                                    \
            for (int64_t k = 0; k < p->k; k++) {                          \
                sum += a[k * p->a_col] * b[k * p->b_row];                 \
            }                                                             \
            sum *= (T)p->alpha;                                           \
            *c = p->beta == 0 ? sum : sum + (T)p->beta * *c;              \
        }                                                                 \
    }

MT_I_DEFINE_TINY(float, f32)
MT_I_DEFINE_TINY(double, f64)

/* Below the cost of a library's call: up to 3 x 3 x 3. */
static bool is_tiny(mt_dtype dtype, const mt__product *p)
{
    return (dtype == MT_DTYPE_F32 || dtype == MT_DTYPE_F64) && p->m <= 4 && p->n <= 4 &&
           p->k <= 8 && p->m * p->n * p->k <= TINY_WORK;
}

/* Whether a library is installed that can compute it. */
static bool for_library(mt_dtype dtype, const mt__product *p)
{
    bool floating = dtype == MT_DTYPE_F32 || dtype == MT_DTYPE_F64;
    if (!floating || p->k <= 0 || p->m > INT32_MAX || p->n > INT32_MAX || p->k > INT32_MAX) {
        return false;
    }
    return mt__openblas_here() || (dtype == MT_DTYPE_F32 && onednn_wins(p) && mt__onednn_here());
}

int mt__multiply(mt_dtype dtype, const mt__product *product)
{
    if (product->m <= 0 || product->n <= 0) {
        return 0;
    }
    if (is_tiny(dtype, product)) {
        if (dtype == MT_DTYPE_F32) {
            tiny_f32(product);
        } else {
            tiny_f64(product);
        }
        return 0;
    }
    if (dtype == MT_DTYPE_BF16) {
        return mt__bf16_multiply(product) ? 0 : MT_ENOTSUP; /* the caller has another way */
    }
    mt__product p = *product;
    blas_matrix c = {.data = p.c};
    if (!has_unit_stride((int64_t[]){p.m, p.n}, (int64_t[]){p.c_row, p.c_col}, &c)) {
        return run_loops(dtype, &p);
    }
    if (c.turned) {
        p = turned(&p);
    }
    p.c_row = c.lead;
    p.c_col = 1;
    return for_library(dtype, &p) ? run_library(dtype, &p) : run_loops(dtype, &p);
}
