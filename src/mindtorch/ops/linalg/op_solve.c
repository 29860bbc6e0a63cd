/* SPDX-License-Identifier: Apache-2.0
 *
 * Systems of linear equations: with LU and Cholesky factors, with triangles, least squares.
 */
#include "mindtorch/ops/linalg/op_linalg.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Whether b is a batch of vectors, as torch decides it: one dimension, or a's sizes without the
 * last. */
static bool is_vector(const mt_tensor *a, const mt_tensor *b)
{
    bool same = b->n_dims + 1 == a->n_dims;
    for (uint32_t i = 0; same && i < b->n_dims; i++) {
        same = b->sizes[i] == a->sizes[i];
    }
    return b->n_dims == 1 || same;
}

/* "linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 4x2)" */
static int check_sides(const char *op, const mt_tensor *a, const mt_tensor *b, bool left)
{
    if (mt__rows(a) == (left ? mt__rows(b) : mt__columns(b))) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME,
                    "%s: Incompatible shapes of A and B for the equation %s = B (%" PRId64
                    "x%" PRId64 " and %" PRId64 "x%" PRId64 ")",
                    op, left ? "AX" : "XA", mt__rows(a), mt__columns(a), mt__rows(b),
                    mt__columns(b));
}

/* The batch of a and b together, followed by the matrices of each. */
static int broadcast(const mt_tensor *a, const mt_tensor *b, mt__shape *whole_a, mt__shape *whole_b)
{
    mt__shape batch = mt__batch_and(b, 0, 0, 0);
    MT_TRY(mt__shape_broadcast(&batch, a->sizes, a->n_dims - 2U));
    *whole_a = batch;
    *whole_b = batch;
    whole_a->n_dims = whole_b->n_dims = batch.n_dims + 2;
    whole_a->sizes[batch.n_dims] = mt__rows(a);
    whole_a->sizes[batch.n_dims + 1] = mt__columns(a);
    whole_b->sizes[batch.n_dims] = mt__rows(b);
    whole_b->sizes[batch.n_dims + 1] = mt__columns(b);
    return MT_OK;
}

/* Pivots [batch, n] of a batch, contiguous. */
static int spread_pivots(mt__call *call, const mt__shape *whole, mt_tensor *pivots, mt_tensor **out)
{
    mt__shape shape = *whole;
    shape.n_dims--;
    mt_tensor **spread = mt__temp(call);
    MT_TRY(mt_expand(pivots, shape.sizes, shape.n_dims, spread));
    return mt__contiguous(call, *spread, out);
}

/* ---- LU -------------------------------------------------------------------------------------- */

/* x of a x = b or x a = b, or with a's transpose, as result 0. For x a = b the kernel solves
 * a^T x^T = b^T, and x is row-major. */
static int solve_lu(mt__call *call, mt_tensor *factors, mt_tensor *pivots, mt_tensor *b, bool left,
                    bool transposed)
{
    mt__shape whole_a;
    mt__shape whole_b;
    mt_tensor *x = NULL;
    MT_TRY(broadcast(factors, b, &whole_a, &whole_b));
    MT_TRY(mt__column_of(call, &whole_a, factors, &factors));
    MT_TRY(spread_pivots(call, &whole_a, pivots, &pivots));
    if (left) {
        MT_TRY(mt__column_copy(call, 0, (mt_dtype)factors->dtype, &whole_b, b, &x));
    } else {
        MT_TRY(mt__result_new(call, 0, (mt_dtype)factors->dtype, &whole_b, &x));
        MT_TRY(x->numel == 0 ? MT_OK : mt__copy_elements(x, b));
    }
    return mt__linalg(call, &(mt__linalg_args){.code = MT_LINALG_LU_SOLVE,
                                               .kinds = left ? "mmv" : "tmv",
                                               .tensors = {x, factors, pivots},
                                               .ints = {transposed == left}});
}

int mt__run_linalg_lu_solve(mt__call *call)
{
    mt_tensor *factors = mt__arg_tensor(call, 0);
    mt_tensor *pivots = mt__arg_tensor(call, 1);
    mt_tensor *b = mt__arg_tensor(call, 2);
    bool left = mt__arg_bool(call, 3);
    const char *op = "linalg.lu_solve";
    MT_TRY(mt__need_floating(op, factors));
    MT_TRY(mt__need_same_type(op, (const char *[]){"LU", "B"}, factors, b));
    if (pivots->dtype != MT_DTYPE_I32) {
        return mtb_fail(MT_ERUNTIME, "%s: pivots should be a Tensor of scalar type torch.int32",
                        op);
    }
    MT_TRY(mt__need_square(op, "A", factors));
    MT_TRY(mt__need_matrix(op, "B", b));
    MT_TRY(check_sides(op, factors, b, left));
    bool fits = pivots->n_dims + 1 == factors->n_dims;
    for (uint32_t i = 0; fits && i < pivots->n_dims; i++) {
        fits = pivots->sizes[i] == factors->sizes[i];
    }
    if (!fits) {
        return mtb_fail(MT_ERUNTIME,
                        "%s: Number of pivots per batch should be same as the dimension of the "
                        "matrix",
                        op);
    }
    MT_TRY(mt__need_single_or_double("linalg.lu_solve_cpu", factors));
    return solve_lu(call, factors, pivots, b, left, mt__arg_bool(call, 4));
}

int mt__run_lu_solve(mt__call *call)
{
    return mt_linalg_lu_solve(mt__arg_tensor(call, 1), mt__arg_tensor(call, 2),
                              mt__arg_tensor(call, 0), mt__result_place(call, 0));
}

int mt__run__linalg_solve_ex(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *b = mt__arg_tensor(call, 1);
    bool left = mt__arg_bool(call, 2);
    const char *op = "linalg.solve";
    MT_TRY(mt__need_floating(op, a));
    MT_TRY(mt__need_same_type(op, (const char *[]){"A", "B"}, a, b));
    MT_TRY(mt__need_square(op, "A", a));
    bool vector = is_vector(a, b);
    if (vector) {
        mt_tensor **column = mt__temp(call);
        MT_TRY(mt_unsqueeze(b, -1, column));
        b = *column;
    }
    MT_TRY(mt__need_matrix(op, "B", b));
    MT_TRY(check_sides(op, a, b, left));
    MT_TRY(mt_linalg_lu_factor_ex(a, mt__result_place(call, 1), mt__result_place(call, 2),
                                  mt__result_place(call, 3)));
    MT_TRY(solve_lu(call, call->results[1].of.tensor, call->results[2].of.tensor, b, left, false));
    if (vector) { /* the same memory without the last dimension */
        mt_tensor *x = call->results[0].of.tensor;
        mt_tensor *line = NULL;
        MT_TRY(mt__tensor_view(x, x->sizes, x->strides, x->n_dims - 1U, x->offset, false, &line));
        mt_tensor_release(x);
        mt__give(call, 0, line);
    }
    return mt__arg_bool(call, 3) ? mt__linalg_check("torch.linalg.solve_ex",
                                                    call->results[3].of.tensor, MT_FAILED_SOLVE)
                                 : MT_OK;
}

int mt__run_linalg_solve_ex(mt__call *call)
{
    mt_tensor **factors = mt__temp(call);
    mt_tensor **pivots = mt__temp(call);
    return mt__linalg_solve_ex_with(mt__arg_tensor(call, 0), mt__arg_tensor(call, 1),
                                    mt__arg_bool(call, 2), mt__arg_bool(call, 3),
                                    mt__result_place(call, 0), factors, pivots,
                                    mt__result_place(call, 1));
}

int mt__run_linalg_solve(mt__call *call)
{
    mt_tensor **info = mt__temp(call);
    MT_TRY(mt_linalg_solve_ex_with(mt__arg_tensor(call, 0), mt__arg_tensor(call, 1),
                                   mt__arg_bool(call, 2), false, mt__result_place(call, 0), info));
    return mt__linalg_check("torch.linalg.solve", *info, MT_FAILED_SOLVE);
}

/* ---- triangles ------------------------------------------------------------------------------- */

/* A matrix as the kernel can take it without a copy: row-major ones count as transposed. */
static int triangle_of(mt__call *call, const mt__shape *whole, mt_tensor **a, bool *transposed)
{
    mt__shape own = mt__tensor_shape(*a);
    *transposed = (*a)->contiguous && mt__shape_equal(&own, whole);
    return *transposed ? MT_OK : mt__column_of(call, whole, *a, a);
}

int mt__run_linalg_solve_triangular(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *b = mt__arg_tensor(call, 1);
    bool upper = mt__arg_bool(call, 2);
    bool left = mt__arg_bool(call, 3);
    bool transposed = false;
    const char *op = "linalg.solve_triangular";
    mt__shape whole_a;
    mt__shape whole_b;
    mt_tensor *x = NULL;
    MT_TRY(mt__need_square(op, "A", a));
    MT_TRY(mt__need_matrix(op, "B", b));
    MT_TRY(check_sides(op, a, b, left));
    MT_TRY(mt__need_single_or_double("triangular_solve_cpu", a));
    MT_TRY(broadcast(a, b, &whole_a, &whole_b));
    MT_TRY(triangle_of(call, &whole_a, &a, &transposed));
    MT_TRY(mt__column_copy(call, 0, (mt_dtype)a->dtype, &whole_b, b, &x));
    return mt__linalg(call, &(mt__linalg_args){.code = MT_LINALG_TRIANGULAR_SOLVE,
                                               .kinds = transposed ? "mt" : "mm",
                                               .tensors = {x, a},
                                               .ints = {upper != transposed, left, transposed,
                                                        mt__arg_bool(call, 4)}});
}

int mt__run_triangular_solve(mt__call *call)
{
    mt_tensor *b = mt__arg_tensor(call, 0);
    mt_tensor *a = mt__arg_tensor(call, 1);
    bool upper = mt__arg_bool(call, 2);
    mt_tensor *turned = a;
    if (a->n_dims < 2 || b->n_dims < 2) {
        const mt_tensor *wrong = b->n_dims < 2 ? b : a;
        return mtb_fail(MT_ERUNTIME,
                        "torch.triangular_solve: Expected %s to have at least 2 dimensions, but it "
                        "has %u dimensions instead",
                        wrong == b ? "b" : "A", (unsigned)wrong->n_dims);
    }
    if (mt__rows(a) != mt__columns(a)) {
        return mtb_fail(MT_ERUNTIME,
                        "A must be batches of square matrices, but they are %" PRId64 " by %" PRId64
                        " matrices",
                        mt__rows(a), mt__columns(a));
    }
    if (mt__rows(a) != mt__rows(b)) {
        return mtb_fail(MT_ERUNTIME,
                        "Incompatible matrix sizes for triangular_solve: each A matrix is %" PRId64
                        " by %" PRId64 " but each b matrix is %" PRId64 " by %" PRId64,
                        mt__rows(a), mt__columns(a), mt__rows(b), mt__columns(b));
    }
    if (mt__arg_bool(call, 3)) {
        mt_tensor **other = mt__temp(call);
        MT_TRY(mt_transpose(a, -2, -1, other));
        turned = *other;
        upper = !upper;
    }
    MT_TRY(mt_linalg_solve_triangular_with(turned, b, upper, true, mt__arg_bool(call, 4),
                                           mt__result_place(call, 0)));
    mt__shape whole = mt__tensor_shape(call->results[0].of.tensor);
    whole.sizes[whole.n_dims - 1] = mt__columns(a);
    return mt__column_copy(call, 1, (mt_dtype)a->dtype, &whole, a, &turned);
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

int mt__run_cholesky_solve(mt__call *call)
{
    mt_tensor *b = mt__arg_tensor(call, 0);
    mt_tensor *a = mt__arg_tensor(call, 1);
    mt__shape whole_a;
    mt__shape whole_b;
    mt_tensor *x = NULL;
    if (b->n_dims < 2 || a->n_dims < 2) {
        return mtb_fail(
            MT_ERUNTIME, "%s should have at least 2 dimensions, but has %u dimensions instead",
            b->n_dims < 2 ? "b" : "u", (unsigned)(b->n_dims < 2 ? b->n_dims : a->n_dims));
    }
    if (a->dtype != b->dtype) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected b and A to have the same dtype, but found b of type %s and A of "
                        "type %s instead.",
                        mt__type_title((mt_dtype)b->dtype), mt__type_title((mt_dtype)a->dtype));
    }
    if (mt__rows(a) != mt__columns(a)) {
        return mtb_fail(MT_ERUNTIME,
                        "A must be batches of square matrices, but they are %" PRId64 " by %" PRId64
                        " matrices",
                        mt__rows(a), mt__columns(a));
    }
    if (mt__rows(a) != mt__rows(b)) {
        return mtb_fail(MT_ERUNTIME,
                        "Incompatible matrix sizes for cholesky_solve: each A matrix is %" PRId64
                        " by %" PRId64 " but each b matrix is %" PRId64 " by %" PRId64,
                        mt__rows(a), mt__columns(a), mt__rows(b), mt__columns(b));
    }
    MT_TRY(mt__need_single_or_double("cholesky_solve_cpu", a));
    MT_TRY(broadcast(a, b, &whole_a, &whole_b));
    MT_TRY(mt__column_of(call, &whole_a, a, &a));
    MT_TRY(mt__column_copy(call, 0, (mt_dtype)a->dtype, &whole_b, b, &x));
    return mt__linalg(call, &(mt__linalg_args){.code = MT_LINALG_CHOLESKY_SOLVE,
                                               .kinds = "mm",
                                               .tensors = {x, a},
                                               .ints = {mt__arg_bool(call, 2)}});
}

int mt__run_cholesky_inverse(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *out = NULL;
    mt_tensor *info = NULL;
    mt__shape whole = mt__tensor_shape(a);
    MT_TRY(mt__need_square("cholesky_inverse", "A", a));
    MT_TRY(mt__need_single_or_double("cholesky_inverse_out_cpu", a));
    mt__shape numbers = mt__batch_and(a, 0, 0, 0);
    MT_TRY(mt__column_copy(call, 0, (mt_dtype)a->dtype, &whole, a, &out));
    MT_TRY(mt__temp_new(call, MT_DTYPE_I32, &numbers, &info));
    MT_TRY(mt__linalg(call, &(mt__linalg_args){.code = MT_LINALG_CHOLESKY_INVERSE,
                                               .kinds = "mn",
                                               .tensors = {out, info},
                                               .ints = {mt__arg_bool(call, 1)}}));
    return mt__linalg_check("cholesky_inverse", info, MT_FAILED_INVERSE);
}

/* ---- least squares --------------------------------------------------------------------------- */

enum {
    GELS,
    GELSY,
    GELSD,
    GELSS,
    N_DRIVERS
};

static int find_driver(const mt_value *given, int *driver)
{
    static const char *const names[N_DRIVERS] = {"gels", "gelsy", "gelsd", "gelss"};
    *driver = GELSY;
    if (given->kind == MT_KIND_NONE) {
        return MT_OK;
    }
    for (int i = 0; i < N_DRIVERS; i++) {
        if (strcmp(given->of.text, names[i]) == 0) {
            *driver = i;
            return MT_OK;
        }
    }
    return mtb_fail(MT_ERUNTIME, "torch.linalg.lstsq: parameter `driver` should be one of (gels, "
                                 "gelsy, gelsd, gelss)");
}

static int check_lstsq(const mt_tensor *a, const mt_tensor *b)
{
    const char *op = "torch.linalg.lstsq";
    if (a->n_dims < 2) {
        return mtb_fail(MT_ERUNTIME, "%s: input must have at least 2 dimensions.", op);
    }
    if (b->n_dims < 1) {
        return mtb_fail(MT_ERUNTIME, "%s: other must have at least 1 dimension.", op);
    }
    if (a->dtype != b->dtype) {
        return mtb_fail(
            MT_ERUNTIME,
            "%s: Expected input and other to have the same dtype, but got input's dtype "
            "%s and other's dtype %s",
            op, mt__type_title((mt_dtype)a->dtype), mt__type_title((mt_dtype)b->dtype));
    }
    if (a->dtype != MT_DTYPE_F32 && a->dtype != MT_DTYPE_F64) {
        return mtb_fail(MT_ERUNTIME,
                        "This function doesn't handle types other than float and double");
    }
    return MT_OK;
}

/* Squares of what the equations lack, summed: the rows of x below the solution. Only where every
 * matrix has full rank, which gels assumes. */
static int give_residuals(mt__call *call, mt_tensor *x, mt_tensor *rank, int64_t n, int64_t m)
{
    static const int64_t rows = -2;
    const mt__shape nothing = {.n_dims = 1, .sizes = {0}};
    mt_tensor *none = NULL;
    bool whole = m > n;
    if (whole && rank != NULL) {
        mt_scalar answer;
        mt_tensor **full = mt__temp(call);
        mt_tensor **all = mt__temp(call);
        MT_TRY(mt_eq_scalar(rank, mt_int(n), full));
        MT_TRY(mt_all(*full, NULL, 0, false, all));
        MT_TRY(mt_item(*all, &answer));
        whole = answer.of.integer != 0;
    }
    if (!whole) {
        return mt__result_new(call, 1, (mt_dtype)x->dtype, &nothing, &none);
    }
    mt_tensor **rest = mt__temp(call);
    mt_tensor **squares = mt__temp(call);
    MT_TRY(mt_narrow(x, -2, n, m - n, rest));
    MT_TRY(mt_pow_tensor_scalar(*rest, mt_int(2), squares));
    return mt_sum(*squares, &rows, 1, false, mt__result_place(call, 1));
}

/* The first n rows of x; of a vector without the last dimension. */
static int give_solution(mt__call *call, mt_tensor *x, int64_t n, bool vector)
{
    mt__shape shape = mt__tensor_shape(x);
    mt_tensor *out = NULL;
    shape.sizes[shape.n_dims - 2] = n;
    MT_TRY(mt__tensor_view(x, shape.sizes, x->strides, shape.n_dims - (vector ? 1U : 0U), x->offset,
                           false, &out));
    mt__give(call, 0, out);
    return MT_OK;
}

int mt__run_linalg_lstsq(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *b = mt__arg_tensor(call, 1);
    mt_dtype dtype = (mt_dtype)a->dtype;
    int driver = GELSY;
    MT_TRY(check_lstsq(a, b));
    MT_TRY(find_driver(&call->args[3], &driver));
    bool vector = b->n_dims + 1 == a->n_dims;
    if (vector) {
        mt_tensor **column = mt__temp(call);
        MT_TRY(mt_unsqueeze(b, -1, column));
        b = *column;
    }
    int64_t m = mt__rows(a);
    int64_t n = mt__columns(a);
    if (b->n_dims < 2 || mt__rows(b) != m) {
        return mtb_fail(MT_ERUNTIME,
                        "torch.linalg.lstsq: input.size(-2) should match other.size(-2)");
    }
    mt__shape whole_a;
    mt__shape whole_b;
    MT_TRY(broadcast(a, b, &whole_a, &whole_b));
    mt__shape numbers = whole_a;
    numbers.n_dims -= 2;
    mt__shape values = numbers;
    values.sizes[values.n_dims++] = mt__less(m, n);
    const mt__shape nothing = {.n_dims = 1, .sizes = {0}};
    whole_b.sizes[whole_b.n_dims - 2] = m > n ? m : n;
    bool with_values = driver == GELSD || driver == GELSS;
    mt_tensor *t[5];
    MT_TRY(mt__column_new(call, MT_TEMPORARY, dtype, &whole_b, &t[0]));
    MT_TRY(mt__column_copy(call, MT_TEMPORARY, dtype, &whole_a, a, &t[1]));
    MT_TRY(mt__plain_new(call, 2, MT_DTYPE_I64, driver == GELS ? &nothing : &numbers, &t[2]));
    MT_TRY(mt__plain_new(call, 3, dtype, with_values ? &values : &nothing, &t[3]));
    MT_TRY(mt__temp_new(call, MT_DTYPE_I32, &numbers, &t[4]));
    if (t[0]->numel > 0) {
        mt_tensor **top = mt__temp(call);
        MT_TRY(mt_fill_scalar_(t[0], mt_int(0)));
        MT_TRY(mt_narrow(t[0], -2, 0, m, top));
        MT_TRY((*top)->numel == 0 ? MT_OK : mt__copy_elements(*top, b));
    }
    if (t[1]->numel == 0 && t[2]->numel > 0) {
        MT_TRY(mt_fill_scalar_(t[2], mt_int(0)));
    }
    double eps = dtype == MT_DTYPE_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    mt__linalg_args args = {.code = MT_LINALG_LEAST_SQUARES,
                            .kinds = driver == GELS ? "mm--n"
                                     : with_values  ? "mmnvn"
                                                    : "mmn-n",
                            .tensors = {t[0], t[1], t[2], t[3], t[4]},
                            .ints = {driver},
                            .number = mt__arg_given(call, 2) ? mt__arg_real(call, 2)
                                                             : eps * (double)(m > n ? m : n)};
    MT_TRY(mt__linalg(call, &args));
    MT_TRY(mt__linalg_check("torch.linalg.lstsq", t[4], MT_FAILED_LSTSQ));
    MT_TRY(give_solution(call, t[0], n, vector));
    return give_residuals(call, t[0], driver == GELS ? NULL : t[2], n, driver == GELSY ? 0 : m);
}
