/* SPDX-License-Identifier: Apache-2.0
 *
 * Linear algebra (kernels.def, LINALG): batches of factorisations and solutions by LAPACK, a matrix
 * at a time on one thread, the batch divided among threads. Without OpenBLAS, or with one that has
 * no LAPACK, all of it fails and says so: our own loops would be a second implementation of
 * everything, and much slower, for machines that need one package.
 *
 *   LA1  LAPACK is not called with NaN or infinities where it might not end: EIGEN, EIGEN_GENERAL,
 *        SINGULAR and LEAST_SQUARES report such a matrix by info.
 *   LA2  Sizes are checked to fit LAPACK's 32-bit integers before anything is called.
 */
#include "base/fail.h"
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/matrix/lapack.h"
#include "kernels/matrix/matrix_exp.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/scratch.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum {
    PIECE_WORK = 1 << 19, /* multiplications that are worth another thread */
    NOT_FINITE = -4       /* info of gesdd for a matrix with NaN: its fourth argument */
};

typedef struct job {
    const mt__lapack *f;
    const mt_kernel_call *call;
    int (*run)(const struct job *job, int64_t i); /* one matrix */
    bool twice;                                   /* float64, or complex128 */
    bool is_complex;                              /* the matrices of EIGEN_GENERAL */
    _Atomic(int) *wrong;                          /* a pivot that is not a row; 1 to n are right */
    _Atomic(int) status;
} job;

enum {
    NOTHING_WRONG = INT32_MAX
};

/* ---- arguments ------------------------------------------------------------------------------- */

static void *at(const job *j, uint32_t t, int64_t i)
{
    const mt_array *array = &j->call->tensors[t];
    int64_t bytes = (int64_t)mt_dtype_size((mt_dtype)array->dtype);
    return (char *)array->data + i * array->strides[0] * bytes;
}

static bool is_absent(const job *j, uint32_t t)
{
    return j->call->tensors[t].n_dims < 0;
}

static int rows(const job *j, uint32_t t)
{
    return (int)j->call->tensors[t].sizes[1];
}

static int columns(const job *j, uint32_t t)
{
    return (int)j->call->tensors[t].sizes[2];
}

/* The distance of columns; LAPACK refuses 0 for empty ones. */
static int lead(const job *j, uint32_t t)
{
    const mt_array *array = &j->call->tensors[t];
    int64_t least = array->sizes[1] > 1 ? array->sizes[1] : 1;
    return (int)(array->sizes[2] > 1 && array->strides[2] > least ? array->strides[2] : least);
}

static int less(int a, int b)
{
    return a < b ? a : b;
}

static int more(int a, int b)
{
    return a > b ? a : b;
}

static void put_info(const job *j, uint32_t t, int64_t i, int info)
{
    int32_t *place = at(j, t, i);
    *place = info;
}

static const char *triangle(bool upper)
{
    return upper ? "U" : "L";
}

static bool is_set(const job *j, uint32_t i)
{
    return j->call->ints[i] != 0;
}

static double element(const job *j, const void *column, int64_t i)
{
    return j->twice ? ((const double *)column)[i] : (double)((const float *)column)[i];
}

static void *column_of(const job *j, void *matrix, int ld, int64_t c)
{
    return (char *)matrix + (size_t)(c * ld) * (j->twice ? sizeof(double) : sizeof(float));
}

/* A number as the routine's precision has it. */
typedef union number {
    float f;
    double d;
} number;

static number number_of(const job *j, double value)
{
    number n = {.d = value};
    if (!j->twice) {
        n.f = (float)value;
    }
    return n;
}

/* Elements of working memory, from a routine's answer. Large numbers are not exact in float32. */
static int work_size(const job *j, const number *answer)
{
    double size = j->twice ? answer->d : (double)nextafterf(answer->f, INFINITY);
    return size < 1 ? 1 : size < INT32_MAX ? (int)ceil(size) : INT32_MAX;
}

static void *take_work(const job *j, int count)
{
    void *work = mt__scratch_take((size_t)count, j->twice ? sizeof(double) : sizeof(float));
    if (work == NULL) {
        (void)mtb_fail(MT_ENOMEM, "linalg: no working memory for %d elements", count);
    }
    return work;
}

static int *take_integers(int count)
{
    int *work = mt__scratch_take((size_t)more(count, 1), sizeof(int));
    if (work == NULL) {
        (void)mtb_fail(MT_ENOMEM, "linalg: no working memory for %d integers", count);
    }
    return work;
}

static bool is_finite(const job *j, uint32_t t, int64_t i)
{
    int parts = j->is_complex ? 2 : 1;
    int ld = parts * lead(j, t);
    for (int64_t c = 0; c < columns(j, t); c++) {
        const void *column = column_of(j, at(j, t, i), ld, c);
        for (int64_t r = 0; r < parts * rows(j, t); r++) {
            if (!isfinite(element(j, column, r))) {
                return false;
            }
        }
    }
    return true;
}

/* ---- LU -------------------------------------------------------------------------------------- */

static int run_lu(const job *j, int64_t i)
{
    int m = rows(j, 0);
    int n = columns(j, 0);
    int ld = lead(j, 0);
    int info = 0;
    if (m > 0 && n > 0) {
        j->f->getrf(&m, &n, at(j, 0, i), &ld, at(j, 1, i), &info);
    }
    put_info(j, 2, i, info);
    return 0;
}

/* Pivots may be a user's: LAPACK would follow them out of the matrix. */
static bool are_pivots(const job *j, uint32_t t, int64_t i, int n)
{
    const int32_t *pivots = at(j, t, i);
    for (int64_t r = 0; r < j->call->tensors[t].sizes[1]; r++) {
        if (pivots[r] < 1 || pivots[r] > n) {
            atomic_store_explicit(j->wrong, pivots[r], memory_order_relaxed);
            return false;
        }
    }
    return true;
}

static int run_lu_solve(const job *j, int64_t i)
{
    int n = rows(j, 0);
    int k = columns(j, 0);
    int ldx = lead(j, 0);
    int ld = lead(j, 1);
    int info = 0;
    if (n > 0 && k > 0 && are_pivots(j, 2, i, n)) {
        j->f->getrs(is_set(j, 0) ? "T" : "N", &n, &k, at(j, 1, i), &ld, at(j, 2, i), at(j, 0, i),
                    &ldx, &info, 1);
    }
    return 0;
}

static void put_element(const job *j, void *matrix, const int64_t strides[3], int64_t r, int64_t c,
                        double value)
{
    int64_t place = r * strides[1] + c * strides[2];
    if (j->twice) {
        ((double *)matrix)[place] = value;
    } else {
        ((float *)matrix)[place] = (float)value;
    }
}

/* P with A = P L U: the exchanges of rows, applied to the identity backwards. */
static int run_permutation(const job *j, int64_t i)
{
    const mt_array *out = &j->call->tensors[0];
    const int32_t *pivots = at(j, 1, i);
    int m = rows(j, 0);
    int64_t count = j->call->tensors[1].sizes[1];
    if (!are_pivots(j, 1, i, m)) {
        return 0;
    }
    int *place = take_integers(m);
    if (place == NULL) {
        return MT_ENOMEM;
    }
    for (int r = 0; r < m; r++) {
        place[r] = r;
    }
    for (int64_t r = 0; r < count; r++) {
        int other = pivots[r] - 1;
        int kept = place[r];
        place[r] = place[other];
        place[other] = kept;
    }
    for (int r = 0; r < m; r++) {
        for (int c = 0; c < m; c++) {
            put_element(j, at(j, 0, i), out->strides, place[c], r, 0);
        }
    }
    for (int c = 0; c < m; c++) {
        put_element(j, at(j, 0, i), out->strides, place[c], c, 1);
    }
    mt__scratch_give(place);
    return 0;
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

static void clear_triangle(const job *j, void *matrix, int n, int ld, bool upper)
{
    size_t bytes = j->twice ? sizeof(double) : sizeof(float);
    for (int c = 0; c < n; c++) {
        char *column = column_of(j, matrix, ld, c);
        int first = upper ? 0 : c + 1;
        int count = upper ? c : n - c - 1;
        memset(column + (size_t)first * bytes, 0, (size_t)count * bytes);
    }
}

static int run_cholesky(const job *j, int64_t i)
{
    int n = rows(j, 0);
    int ld = lead(j, 0);
    int info = 0;
    bool upper = is_set(j, 0);
    if (n > 0) {
        j->f->potrf(triangle(upper), &n, at(j, 0, i), &ld, &info, 1);
        for (int c = 0; c < n && info == 0; c++) { /* OpenBLAS lets NaN pass */
            info = isnan(element(j, column_of(j, at(j, 0, i), ld, c), c)) ? c + 1 : 0;
        }
        clear_triangle(j, at(j, 0, i), n, ld, !upper);
    }
    put_info(j, 1, i, info);
    return 0;
}

static int run_cholesky_solve(const job *j, int64_t i)
{
    int n = rows(j, 0);
    int k = columns(j, 0);
    int ldx = lead(j, 0);
    int ld = lead(j, 1);
    int info = 0;
    if (n > 0 && k > 0) {
        j->f->potrs(triangle(is_set(j, 0)), &n, &k, at(j, 1, i), &ld, at(j, 0, i), &ldx, &info, 1);
    }
    return 0;
}

static int run_cholesky_inverse(const job *j, int64_t i)
{
    int n = rows(j, 0);
    int ld = lead(j, 0);
    int info = 0;
    bool upper = is_set(j, 0);
    if (n > 0) {
        j->f->potri(triangle(upper), &n, at(j, 0, i), &ld, &info, 1);
    }
    const int64_t strides[3] = {0, 1, ld};
    for (int c = 0; c < n; c++) { /* the other half */
        const void *column = column_of(j, at(j, 0, i), ld, c);
        for (int r = upper ? 0 : c + 1; r < (upper ? c : n); r++) {
            put_element(j, at(j, 0, i), strides, c, r, element(j, column, r));
        }
    }
    put_info(j, 1, i, info);
    return 0;
}

/* ---- triangles and reflectors ---------------------------------------------------------------- */

static int run_triangular(const job *j, int64_t i)
{
    int m = rows(j, 0);
    int n = columns(j, 0);
    int ldx = lead(j, 0);
    int ld = lead(j, 1);
    number one = number_of(j, 1);
    if (m > 0 && n > 0) {
        j->f->trsm(is_set(j, 1) ? "L" : "R", triangle(is_set(j, 0)), is_set(j, 2) ? "T" : "N",
                   is_set(j, 3) ? "U" : "N", &m, &n, &one, at(j, 1, i), &ld, at(j, 0, i), &ldx, 1,
                   1, 1, 1);
    }
    return 0;
}

static int run_reflectors(const job *j, int64_t i)
{
    int m = rows(j, 0);
    int n = columns(j, 0);
    int ld = lead(j, 0);
    int info = 0;
    int size = -1;
    number answer;
    if (m == 0 || n == 0) {
        return 0;
    }
    j->f->geqrf(&m, &n, at(j, 0, i), &ld, at(j, 1, i), &answer, &size, &info);
    size = work_size(j, &answer);
    void *work = take_work(j, size);
    if (work == NULL) {
        return MT_ENOMEM;
    }
    j->f->geqrf(&m, &n, at(j, 0, i), &ld, at(j, 1, i), work, &size, &info);
    mt__scratch_give(work);
    return 0;
}

static int run_reflected(const job *j, int64_t i)
{
    int m = rows(j, 0);
    int n = columns(j, 0);
    int k = (int)j->call->tensors[1].sizes[1];
    int ld = lead(j, 0);
    int info = 0;
    int size = -1;
    number answer;
    if (m == 0 || n == 0) {
        return 0;
    }
    j->f->orgqr(&m, &n, &k, at(j, 0, i), &ld, at(j, 1, i), &answer, &size, &info);
    size = work_size(j, &answer);
    void *work = take_work(j, size);
    if (work == NULL) {
        return MT_ENOMEM;
    }
    j->f->orgqr(&m, &n, &k, at(j, 0, i), &ld, at(j, 1, i), work, &size, &info);
    mt__scratch_give(work);
    return 0;
}

/* ---- eigenvalues ----------------------------------------------------------------------------- */

static int run_eigen(const job *j, int64_t i)
{
    int n = rows(j, 0);
    int ld = lead(j, 0);
    int info = 0;
    int size = -1;
    int count = -1;
    number answer;
    int integers = 0;
    const char *what = is_set(j, 0) ? "V" : "N";
    const char *uplo = triangle(is_set(j, 1));
    if (n == 0 || !is_finite(j, 0, i)) { /* LA1 */
        put_info(j, 2, i, n == 0 ? 0 : 1);
        return 0;
    }
    j->f->syevd(what, uplo, &n, at(j, 0, i), &ld, at(j, 1, i), &answer, &size, &integers, &count,
                &info, 1, 1);
    size = work_size(j, &answer);
    count = more(integers, 1);
    void *work = take_work(j, size);
    int *more_work = take_integers(count);
    bool taken = work != NULL && more_work != NULL;
    if (taken) {
        j->f->syevd(what, uplo, &n, at(j, 0, i), &ld, at(j, 1, i), work, &size, more_work, &count,
                    &info, 1, 1);
        put_info(j, 2, i, info);
    }
    mt__scratch_give(more_work);
    mt__scratch_give(work);
    return taken ? 0 : MT_ENOMEM;
}

/* ---- eigenvalues of any square matrix -------------------------------------------------------- */

/* Element i of complex numbers. */
static void put_complex(const job *j, void *line, int64_t i, double real, double imaginary)
{
    if (j->twice) {
        ((double *)line)[2 * i] = real;
        ((double *)line)[2 * i + 1] = imaginary;
    } else {
        ((float *)line)[2 * i] = (float)real;
        ((float *)line)[2 * i + 1] = (float)imaginary;
    }
}

/* Vectors of a real matrix: a column for a real value, two (parts) for a pair of conjugates. */
static void put_pairs(const job *j, int64_t i, const void *imaginary, void *packed, int n)
{
    int ld = lead(j, 1);
    for (int c = 0; c < n; c++) {
        double sign = element(j, imaginary, c);
        int first = sign < 0 ? c - 1 : c;
        const void *real = column_of(j, packed, n, first);
        const void *rest = column_of(j, packed, n, sign == 0 ? first : first + 1);
        void *column = column_of(j, at(j, 1, i), 2 * ld, c);
        for (int r = 0; r < n; r++) {
            double part = element(j, rest, r);
            put_complex(j, column, r, element(j, real, r), sign == 0 ? 0 : sign < 0 ? -part : part);
        }
    }
}

static int run_real_general(const job *j, int64_t i)
{
    int n = rows(j, 2);
    int ld = lead(j, 2);
    int info = 0;
    int size = -1;
    bool vectors = !is_absent(j, 1);
    const char *what = vectors ? "V" : "N";
    number answer;
    number none;
    j->f->geev("N", what, &n, at(j, 2, i), &ld, &none, &none, &none, &n, &none, &n, &answer, &size,
               &info, 1, 1);
    size = work_size(j, &answer);
    void *work = take_work(j, size);
    void *real = take_work(j, n);
    void *imaginary = take_work(j, n);
    void *packed = take_work(j, vectors ? n * n : 1);
    bool taken = work != NULL && real != NULL && imaginary != NULL && packed != NULL;
    if (taken) {
        j->f->geev("N", what, &n, at(j, 2, i), &ld, real, imaginary, &none, &n, packed, &n, work,
                   &size, &info, 1, 1);
        put_info(j, 3, i, info);
        for (int k = 0; k < n; k++) {
            put_complex(j, at(j, 0, i), k, element(j, real, k), element(j, imaginary, k));
        }
        if (vectors) {
            put_pairs(j, i, imaginary, packed, n);
        }
    }
    mt__scratch_give(packed);
    mt__scratch_give(imaginary);
    mt__scratch_give(real);
    mt__scratch_give(work);
    return taken ? 0 : MT_ENOMEM;
}

static int run_complex_general(const job *j, int64_t i)
{
    int n = rows(j, 2);
    int ld = lead(j, 2);
    int info = 0;
    int size = -1;
    bool vectors = !is_absent(j, 1);
    const char *what = vectors ? "V" : "N";
    int ldv = vectors ? lead(j, 1) : n;
    number answer[2];
    number none[2];
    void *v = vectors ? at(j, 1, i) : none;
    void *reals = take_work(j, 2 * n);
    if (reals == NULL) {
        return MT_ENOMEM;
    }
    j->f->complex_geev("N", what, &n, at(j, 2, i), &ld, at(j, 0, i), none, &n, v, &ldv, answer,
                       &size, reals, &info, 1, 1);
    size = work_size(j, answer);
    void *work = take_work(j, 2 * size);
    if (work != NULL) {
        j->f->complex_geev("N", what, &n, at(j, 2, i), &ld, at(j, 0, i), none, &n, v, &ldv, work,
                           &size, reals, &info, 1, 1);
        put_info(j, 3, i, info);
    }
    mt__scratch_give(work);
    mt__scratch_give(reals);
    return work != NULL ? 0 : MT_ENOMEM;
}

static int run_general(const job *j, int64_t i)
{
    if (rows(j, 2) == 0 || !is_finite(j, 2, i)) { /* LA1 */
        put_info(j, 3, i, rows(j, 2) == 0 ? 0 : NOT_FINITE);
        return 0;
    }
    return j->is_complex ? run_complex_general(j, i) : run_real_general(j, i);
}

/* ---- singular values ------------------------------------------------------------------------- */

static int run_singular(const job *j, int64_t i)
{
    int m = rows(j, 3);
    int n = columns(j, 3);
    int ld = lead(j, 3);
    bool vectors = !is_absent(j, 0);
    int ldu = vectors ? lead(j, 0) : 1;
    int ldv = vectors ? lead(j, 2) : 1;
    number none;
    void *u = vectors ? at(j, 0, i) : &none;
    void *v = vectors ? at(j, 2, i) : &none;
    const char *what = !vectors ? "N" : is_set(j, 0) ? "A" : "S";
    int info = 0;
    int size = -1;
    number answer;
    if (m == 0 || n == 0 || !is_finite(j, 3, i)) { /* LA1 */
        put_info(j, 4, i, m == 0 || n == 0 ? 0 : NOT_FINITE);
        return 0;
    }
    int *integers = take_integers(8 * less(m, n));
    if (integers == NULL) {
        return MT_ENOMEM;
    }
    j->f->gesdd(what, &m, &n, at(j, 3, i), &ld, at(j, 1, i), u, &ldu, v, &ldv, &answer, &size,
                integers, &info, 1);
    size = work_size(j, &answer);
    void *work = take_work(j, size);
    if (work != NULL) {
        j->f->gesdd(what, &m, &n, at(j, 3, i), &ld, at(j, 1, i), u, &ldu, v, &ldv, work, &size,
                    integers, &info, 1);
        put_info(j, 4, i, info);
    }
    mt__scratch_give(work);
    mt__scratch_give(integers);
    return work != NULL ? 0 : MT_ENOMEM;
}

/* ---- least squares --------------------------------------------------------------------------- */

/* What the four routines get. */
typedef struct least_squares {
    int m, n, k, lda, ldb, size, rank, info;
    void *a, *b, *values, *work;
    int *integers;
    number rcond;
} least_squares;

static void call_least_squares(const job *j, least_squares *s)
{
    switch (j->call->ints[0]) {
    case 0:
        j->f->gels("N", &s->m, &s->n, &s->k, s->a, &s->lda, s->b, &s->ldb, s->work, &s->size,
                   &s->info, 1);
        break;
    case 1:
        j->f->gelsy(&s->m, &s->n, &s->k, s->a, &s->lda, s->b, &s->ldb, s->integers, &s->rcond,
                    &s->rank, s->work, &s->size, &s->info);
        break;
    case 2:
        j->f->gelsd(&s->m, &s->n, &s->k, s->a, &s->lda, s->b, &s->ldb, s->values, &s->rcond,
                    &s->rank, s->work, &s->size, s->integers, &s->info);
        break;
    default:
        j->f->gelss(&s->m, &s->n, &s->k, s->a, &s->lda, s->b, &s->ldb, s->values, &s->rcond,
                    &s->rank, s->work, &s->size, &s->info);
        break;
    }
}

static int run_least_squares(const job *j, int64_t i)
{
    number answer = number_of(j, 0);
    int first = 0;
    least_squares s = {.m = rows(j, 1),
                       .n = columns(j, 1),
                       .k = columns(j, 0),
                       .lda = lead(j, 1),
                       .ldb = lead(j, 0),
                       .size = -1,
                       .a = at(j, 1, i),
                       .b = at(j, 0, i),
                       .values = is_absent(j, 3) ? NULL : at(j, 3, i),
                       .work = &answer,
                       .integers = &first,
                       .rcond = number_of(j, mt__arg_real(j->call, 0))};
    bool empty = s.m == 0 || s.n == 0 || s.k == 0;
    if (empty || !is_finite(j, 1, i)) { /* LA1 */
        put_info(j, 4, i, empty ? 0 : NOT_FINITE);
        return 0;
    }
    call_least_squares(j, &s);
    s.size = work_size(j, &answer);
    /* gelsd says how many integers it needs; gelsy needs n, all of them 0: any column may move. */
    int count = more(first, s.n);
    s.work = take_work(j, s.size);
    s.integers = take_integers(count);
    bool taken = s.work != NULL && s.integers != NULL;
    if (taken) {
        memset(s.integers, 0, (size_t)count * sizeof(int));
        call_least_squares(j, &s);
        put_info(j, 4, i, s.info);
        if (!is_absent(j, 2)) {
            int64_t rank = s.rank;
            memcpy(at(j, 2, i), &rank, sizeof rank);
        }
    }
    mt__scratch_give(s.integers);
    mt__scratch_give(s.work);
    return taken ? 0 : MT_ENOMEM;
}

/* ---- the exponential ------------------------------------------------------------------------- */

static int run_exponential(const job *j, int64_t i)
{
    int n = rows(j, 0);
    double *whole = mt__scratch_take(2 * (size_t)n * (size_t)more(n, 1), sizeof(double));
    if (whole == NULL) {
        return mtb_fail(MT_ENOMEM, "linalg: no working memory for two matrices of %d rows", n);
    }
    double *result = whole + (size_t)n * (size_t)n;
    for (int c = 0; c < n; c++) {
        const void *column = column_of(j, at(j, 1, i), lead(j, 1), c);
        for (int r = 0; r < n; r++) {
            whole[(size_t)c * (size_t)n + (size_t)r] = element(j, column, r);
        }
    }
    int status = mt__matrix_exp(whole, n, result);
    const int64_t strides[3] = {0, 1, lead(j, 0)};
    for (int c = 0; c < n && status == 0; c++) {
        for (int r = 0; r < n; r++) {
            put_element(j, at(j, 0, i), strides, r, c, result[(size_t)c * (size_t)n + (size_t)r]);
        }
    }
    mt__scratch_give(whole);
    return status;
}

/* ---- a batch --------------------------------------------------------------------------------- */

static int (*const routines[MT_LINALG_COUNT])(const job *, int64_t) = {
    [MT_LINALG_LU] = run_lu,
    [MT_LINALG_LU_SOLVE] = run_lu_solve,
    [MT_LINALG_PERMUTATION] = run_permutation,
    [MT_LINALG_CHOLESKY] = run_cholesky,
    [MT_LINALG_CHOLESKY_SOLVE] = run_cholesky_solve,
    [MT_LINALG_CHOLESKY_INVERSE] = run_cholesky_inverse,
    [MT_LINALG_TRIANGULAR_SOLVE] = run_triangular,
    [MT_LINALG_REFLECTORS] = run_reflectors,
    [MT_LINALG_REFLECTED] = run_reflected,
    [MT_LINALG_EIGEN] = run_eigen,
    [MT_LINALG_SINGULAR] = run_singular,
    [MT_LINALG_LEAST_SQUARES] = run_least_squares,
    [MT_LINALG_EXPONENTIAL] = run_exponential,
    [MT_LINALG_EIGEN_GENERAL] = run_general,
};

static void run_piece(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    for (int64_t i = begin; i < end; i++) {
        int status = j->run(j, i);
        if (status != 0) {
            atomic_store_explicit(&j->status, status, memory_order_relaxed);
        }
    }
}

static int check_sizes(const mt_kernel_call *call) /* LA2 */
{
    for (uint32_t t = 0; t < call->n_tensors; t++) {
        const mt_array *array = &call->tensors[t];
        for (int32_t d = 1; d < array->n_dims; d++) {
            if (array->sizes[d] > INT32_MAX / 8 || array->strides[d] > INT32_MAX) {
                return mtb_fail(MT_ERUNTIME, "linalg: a matrix with a side of %lld is too large",
                                (long long)array->sizes[d]);
            }
        }
    }
    return 0;
}

MT_HOST_KERNEL_WIDENED(LINALG, 0x1, 0)
{
    bool general = call->code == MT_LINALG_EIGEN_GENERAL;
    const mt_array *first = &call->tensors[call->code == MT_LINALG_SINGULAR ? 3 : general ? 2 : 0];
    mt_dtype dtype = (mt_dtype)first->dtype;
    bool is_complex = general && mt_dtype_category(dtype) == MT_CATEGORY_COMPLEX;
    if (is_complex) {
        dtype = dtype == MT_DTYPE_C64 ? MT_DTYPE_F32 : MT_DTYPE_F64;
    }
    int64_t batch = first->sizes[0];
    if (call->code >= MT_LINALG_COUNT || (dtype != MT_DTYPE_F32 && dtype != MT_DTYPE_F64)) {
        return mtb_fail(MT_ENOTSUP, "LINALG: code %u is not implemented for %s",
                        (unsigned)call->code, mt_dtype_name(dtype));
    }
    MT_TRY(check_sizes(call));
    _Atomic(int) wrong;
    atomic_init(&wrong, NOTHING_WRONG);
    job j = {.f = mt__lapack_of(dtype),
             .call = call,
             .wrong = &wrong,
             .run = routines[call->code],
             .twice = dtype == MT_DTYPE_F64,
             .is_complex = is_complex};
    if (j.f == NULL) {
        return mtb_fail(MT_ENOTSUP, "linear algebra needs OpenBLAS with LAPACK (libopenblas.so.0), "
                                    "which was not found");
    }
    atomic_init(&j.status, 0);
    int64_t side = first->sizes[1];
    int64_t area = side * first->sizes[2];
    int64_t work = area > 0 && side < PIECE_WORK / area ? side * area : PIECE_WORK;
    mt__parallel_for(batch, area > 0 ? PIECE_WORK / work : batch, run_piece, &j);
    int pivot = atomic_load_explicit(&wrong, memory_order_relaxed);
    if (pivot != NOTHING_WRONG) {
        return mtb_fail(MT_ERUNTIME, "pivots: %d is not a row of the matrix (they count from 1)",
                        pivot);
    }
    int status = atomic_load_explicit(&j.status, memory_order_relaxed);
    return status == MT_ENOMEM ? mtb_fail(MT_ENOMEM, "linalg: no working memory") : status;
}
