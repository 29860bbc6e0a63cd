/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of inverses, determinants and solutions of linear equations. With x = a^-1 b:
 *
 *     d b = a^-T d x        d a = - d b x^T
 *
 * Factors that the forward pass made are used again, unless the gradient is to be differentiated
 * itself: then a is factorised anew, which records how the factors depend on it.
 */
#include "mindtorch/autograd/formulas/derive_linalg.h"

#include <float.h>

/* ---- inverses -------------------------------------------------------------------------------- */

int mt__inv_backward(mt__backward *b)
{
    mt_tensor *step = NULL;
    mt_tensor *grad = b->grads[0];
    if (grad == NULL) {
        return mt__bw_give_zeros(b, 0);
    }
    MT_TRY(mt__bw_turned_times(b, mt__bw_result(b, 0), grad, &step));
    MT_TRY(mt__bw_times_turned(b, step, mt__bw_result(b, 0), &step));
    MT_TRY(mt_neg(step, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* With p the pseudoinverse of a: d a = - p^T d p p^T + (1 - a p) d p^T p p^T
 *                                      + p^T p d p^T (1 - p a). */
static int pinv_gradient(mt__backward *b, mt_tensor *a, mt_tensor *p, mt_tensor *grad,
                         mt_tensor **out)
{
    mt_tensor *first = NULL;
    mt_tensor *second = NULL;
    mt_tensor *third = NULL;
    mt_tensor *step = NULL;
    mt_tensor *turned = NULL;
    MT_TRY(mt__bw_turn(b, grad, &turned));
    MT_TRY(mt__bw_turned_times(b, p, grad, &step));
    MT_TRY(mt__bw_times_turned(b, step, p, &first));
    /* d p^T p p^T, less its part in the space of a */
    MT_TRY(mt__bw_times(b, turned, p, &step));
    MT_TRY(mt__bw_times_turned(b, step, p, &second));
    MT_TRY(mt__bw_times(b, p, second, &step));
    MT_TRY(mt__bw_times(b, a, step, &step));
    MT_INTO(b, &second, mt_sub(second, step, b->place));
    /* p^T p d p^T, less the same on the other side */
    MT_TRY(mt__bw_times(b, p, turned, &step));
    MT_TRY(mt__bw_turned_times(b, p, step, &third));
    MT_TRY(mt__bw_times(b, third, p, &step));
    MT_TRY(mt__bw_times(b, step, a, &step));
    MT_INTO(b, &third, mt_sub(third, step, b->place));
    MT_INTO(b, &step, mt_add(second, third, b->place));
    MT_INTO(b, out, mt_sub(step, first, b->place));
    return MT_OK;
}

int mt__pinv_backward(mt__backward *b)
{
    mt_tensor *out = NULL;
    MT_TRY(pinv_gradient(b, mt__bw_arg(b, 0), mt__bw_result(b, 0), mt__bw_grad(b), &out));
    mt__bw_give(b, 0, out);
    return MT_OK;
}

/* ---- determinants ---------------------------------------------------------------------------- */

/* a^-T d, with the factors or, for a gradient that is differentiated itself, from a. */
static int solve_turned(mt__backward *b, mt_tensor *a, mt_tensor *factors, mt_tensor *pivots,
                        mt_tensor *d, mt_tensor **out)
{
    if (!mt_grad_enabled()) {
        MT_INTO(b, out, mt_linalg_lu_solve_with(factors, pivots, d, true, true, b->place));
        return MT_OK;
    }
    mt_tensor *turned = NULL;
    mt_tensor **info = MT_STEP(b);
    MT_TRY(mt__bw_turn(b, a, &turned));
    MT_INTO(b, out, mt_linalg_solve_ex_with(turned, d, true, false, b->place, info));
    return MT_OK;
}

/* The determinant with small numbers in place of zeros on U's diagonal, and its factors: d det is
 * then right for matrices of rank n - 1, too. */
static int without_zeros(mt__backward *b, mt_tensor **factors, mt_tensor **det)
{
    static const int64_t last = -1;
    mt_tensor *diagonal = NULL;
    mt_tensor *zero = NULL;
    mt_tensor *step = NULL;
    mt_tensor *signs = NULL;
    mt_tensor *pivots = mt__bw_result(b, 2);
    double small = (*factors)->dtype == MT_DTYPE_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    MT_INTO(b, &diagonal, mt_diagonal(*factors, 0, -2, -1, b->place));
    MT_INTO(b, &zero, mt_eq_scalar(diagonal, mt_int(0), b->place));
    MT_INTO(b, &step, mt_zeros_like(diagonal, b->place));
    MT_INTO(b, &step, mt_masked_fill_scalar(step, zero, mt_real(small), b->place));
    MT_INTO(b, &diagonal, mt_add(diagonal, step, b->place));
    MT_TRY(mt__bw_diagonal(b, step, &step));
    MT_INTO(b, factors, mt_add(*factors, step, b->place));
    int64_t n = pivots->sizes[pivots->n_dims - 1];
    MT_INTO(b, &signs,
            mt_arange_with(mt_int(1), mt_int(n + 1), mt_int(1), MT_DTYPE_I32, pivots->device,
                           b->place));
    MT_INTO(b, &signs, mt_ne(pivots, signs, b->place)); /* rows that moved: a factor -1 each */
    MT_INTO(b, &step, mt_neg(diagonal, b->place));
    MT_INTO(b, &step, mt_where(signs, step, diagonal, b->place));
    MT_INTO(b, det, mt_prod_dim_int(step, last, false, b->place));
    return MT_OK;
}

int mt__det_backward(mt__backward *b)
{
    mt_tensor *factors = mt__bw_result(b, 1);
    mt_tensor *det = mt__bw_result(b, 0);
    mt_tensor *step = NULL;
    const mt__shape *shape = mt__bw_shape(b, 0);
    if (b->grads[0] == NULL) {
        return mt__bw_give_zeros(b, 0);
    }
    if (!mt_grad_enabled()) {
        MT_TRY(without_zeros(b, &factors, &det));
    }
    MT_INTO(b, &step, mt_mul(b->grads[0], det, b->place));
    MT_INTO(b, &step, mt_unsqueeze(step, -1, b->place));
    MT_INTO(b, &step, mt_expand(step, shape->sizes, shape->n_dims - 1, b->place));
    MT_TRY(mt__bw_diagonal(b, step, &step));
    MT_TRY(solve_turned(b, mt__bw_arg(b, 0), factors, mt__bw_result(b, 2), step, &step));
    mt__bw_give(b, 0, step);
    return MT_OK;
}

/* The sign is constant: only the logarithm's gradient counts. */
int mt__slogdet_backward(mt__backward *b)
{
    mt_tensor *step = NULL;
    const mt__shape *shape = mt__bw_shape(b, 0);
    if (b->grads[1] == NULL) {
        return mt__bw_give_zeros(b, 0);
    }
    MT_INTO(b, &step, mt_unsqueeze(b->grads[1], -1, b->place));
    MT_INTO(b, &step, mt_expand(step, shape->sizes, shape->n_dims - 1, b->place));
    MT_TRY(mt__bw_diagonal(b, step, &step));
    MT_TRY(
        solve_turned(b, mt__bw_arg(b, 0), mt__bw_result(b, 2), mt__bw_result(b, 3), step, &step));
    mt__bw_give(b, 0, step);
    return MT_OK;
}

/* ---- equations ------------------------------------------------------------------------------- */

/* Whether the second argument is a batch of vectors; as op_solve.c has it. */
static bool has_vector(const mt__backward *b)
{
    const mt__shape *a = mt__bw_shape(b, 0);
    const mt__shape *x = mt__bw_shape(b, 1);
    bool same = x->n_dims + 1 == a->n_dims;
    for (uint32_t i = 0; same && i < x->n_dims; i++) {
        same = x->sizes[i] == a->sizes[i];
    }
    return x->n_dims == 1 || same;
}

/* - d b x^T, or - x^T d b for x a = b. */
static int matrix_gradient(mt__backward *b, mt_tensor *grad, mt_tensor *x, bool left,
                           mt_tensor **out)
{
    MT_TRY(left ? mt__bw_times_turned(b, grad, x, out) : mt__bw_turned_times(b, x, grad, out));
    MT_INTO(b, out, mt_neg(*out, b->place));
    return MT_OK;
}

int mt__solve_backward(mt__backward *b)
{
    mt_tensor *a = mt__bw_arg(b, 0);
    mt_tensor *x = mt__bw_result(b, 0);
    mt_tensor *grad = b->grads[0];
    bool left = mt__bw_int(b, 2) != 0;
    bool vector = has_vector(b);
    mt_tensor *step = NULL;
    if (grad == NULL) {
        MT_TRY(mt__bw_give_zeros(b, 0));
        return mt__bw_give_zeros(b, 1);
    }
    if (vector) {
        MT_INTO(b, &grad, mt_unsqueeze(grad, -1, b->place));
        MT_INTO(b, &x, mt_unsqueeze(x, -1, b->place));
    }
    if (mt_grad_enabled()) {
        mt_tensor **info = MT_STEP(b);
        MT_TRY(mt__bw_turn(b, a, &a));
        MT_INTO(b, &grad, mt_linalg_solve_ex_with(a, grad, left, false, b->place, info));
    } else {
        MT_INTO(b, &grad,
                mt_linalg_lu_solve_with(mt__bw_result(b, 1), mt__bw_result(b, 2), grad, left, true,
                                        b->place));
    }
    if (mt__wants(b, 0)) {
        MT_TRY(matrix_gradient(b, grad, x, left, &step));
        mt__bw_give(b, 0, step);
    }
    if (mt__wants(b, 1)) {
        if (vector) {
            MT_INTO(b, &grad, mt_squeeze_dim(grad, -1, b->place));
        }
        mt__bw_give(b, 1, grad);
    }
    return MT_OK;
}

int mt__solve_triangular_backward(mt__backward *b)
{
    mt_tensor *turned = NULL;
    mt_tensor *grad = NULL;
    mt_tensor *step = NULL;
    bool upper = mt__bw_int(b, 2) != 0;
    bool left = mt__bw_int(b, 3) != 0;
    bool unit = mt__bw_int(b, 4) != 0;
    MT_TRY(mt__bw_turn(b, mt__bw_arg(b, 0), &turned));
    MT_TRY(mt__bw_triangle(b, turned, mt__bw_grad(b), !upper, left, unit, &grad));
    if (mt__wants(b, 1)) {
        mt__bw_give(b, 1, grad);
    }
    if (mt__wants(b, 0)) {
        MT_TRY(matrix_gradient(b, grad, mt__bw_result(b, 0), left, &step));
        MT_TRY(upper ? mt_triu(step, unit ? 1 : 0, MT_STEP(b))
                     : mt_tril(step, unit ? -1 : 0, MT_STEP(b)));
        return mt__bw_give_last(b, 0);
    }
    return MT_OK;
}

/* The same with the transpose by request, and a copy of a as the second result. */
int mt__triangular_solve_backward(mt__backward *b)
{
    mt_tensor *a = mt__bw_arg(b, 1);
    bool upper = mt__bw_int(b, 2) != 0;
    bool transposed = mt__bw_int(b, 3) != 0;
    bool unit = mt__bw_int(b, 4) != 0;
    mt_tensor *other = a;
    mt_tensor *grad = NULL;
    mt_tensor *whole = b->grads[1];
    mt_tensor *step = NULL;
    if (b->grads[0] != NULL) {
        if (!transposed) {
            MT_TRY(mt__bw_turn(b, a, &other));
        }
        MT_TRY(mt__bw_triangle(b, other, b->grads[0], upper == transposed, true, unit, &grad));
        MT_TRY(matrix_gradient(b, grad, mt__bw_result(b, 0), true, &step));
        if (transposed) {
            MT_TRY(mt__bw_turn(b, step, &step));
        }
        MT_INTO(b, &step,
                upper ? mt_triu(step, unit ? 1 : 0, b->place)
                      : mt_tril(step, unit ? -1 : 0, b->place));
        MT_TRY(mt__bw_accumulate(b, &whole, step));
    }
    if (grad == NULL) {
        MT_TRY(mt__bw_give_zeros(b, 0));
    } else if (mt__wants(b, 0)) {
        mt__bw_give(b, 0, grad);
    }
    if (whole == NULL) {
        return mt__bw_give_zeros(b, 1);
    }
    if (mt__wants(b, 1)) {
        mt__bw_give(b, 1, whole);
    }
    return MT_OK;
}

/* The parts of factors, as differentiable tensors. */
static int unpack(mt__backward *b, mt_tensor *factors, mt_tensor *pivots, mt_tensor *parts[3])
{
    mt_tensor **places[3] = {MT_STEP(b), MT_STEP(b), MT_STEP(b)};
    MT_TRY(mt_lu_unpack(factors, pivots, true, true, places[0], places[1], places[2]));
    for (uint32_t i = 0; i < 3; i++) {
        parts[i] = *places[i];
    }
    return MT_OK;
}

/* a = P L U is solved with, or its transpose; the gradient of a goes to L and U. */
int mt__lu_solve_backward(mt__backward *b)
{
    mt_tensor *factors = mt__bw_arg(b, 0);
    mt_tensor *pivots = mt__bw_arg(b, 1);
    mt_tensor *x = mt__bw_result(b, 0);
    bool left = mt__bw_int(b, 3) != 0;
    bool adjoint = mt__bw_int(b, 4) != 0;
    mt_tensor *grad = NULL;
    mt_tensor *whole = NULL;
    mt_tensor *lower = NULL;
    mt_tensor *upper = NULL;
    mt_tensor *parts[3];
    MT_INTO(b, &grad,
            mt_linalg_lu_solve_with(factors, pivots, mt__bw_grad(b), left, !adjoint, b->place));
    if (mt__wants(b, 2)) {
        mt__bw_give(b, 2, grad);
    }
    if (!mt__wants(b, 0)) {
        return MT_OK;
    }
    MT_TRY(matrix_gradient(b, grad, x, left, &whole));
    if (adjoint) {
        MT_TRY(mt__bw_turn(b, whole, &whole));
    }
    MT_TRY(unpack(b, factors, pivots, parts));
    MT_TRY(mt__bw_turned_times(b, parts[0], whole, &whole));
    MT_TRY(mt__bw_times_turned(b, whole, parts[2], &lower));
    MT_TRY(mt__bw_turned_times(b, parts[1], whole, &upper));
    MT_INTO(b, &lower, mt_tril(lower, -1, b->place));
    MT_INTO(b, &upper, mt_triu(upper, 0, b->place));
    MT_TRY(mt_add(lower, upper, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

/* x + x^T */
static int with_turned(mt__backward *b, mt_tensor *x, mt_tensor **out)
{
    mt_tensor *turned = NULL;
    MT_TRY(mt__bw_turn(b, x, &turned));
    MT_INTO(b, out, mt_add(x, turned, b->place));
    return MT_OK;
}

int mt__cholesky_solve_backward(mt__backward *b)
{
    mt_tensor *factor = mt__bw_arg(b, 1);
    bool upper = mt__bw_int(b, 2) != 0;
    mt_tensor *grad = NULL;
    mt_tensor *step = NULL;
    MT_INTO(b, &grad, mt_cholesky_solve(mt__bw_grad(b), factor, upper, b->place));
    if (mt__wants(b, 0)) {
        mt__bw_give(b, 0, grad);
    }
    if (mt__wants(b, 1)) {
        MT_TRY(matrix_gradient(b, grad, mt__bw_result(b, 0), true, &step));
        MT_TRY(with_turned(b, step, &step));
        MT_TRY(upper ? mt__bw_times(b, factor, step, &step) : mt__bw_times(b, step, factor, &step));
        mt__bw_give(b, 1, step);
    }
    return MT_OK;
}

int mt__cholesky_inverse_backward(mt__backward *b)
{
    mt_tensor *factor = mt__bw_arg(b, 0);
    mt_tensor *inverse = mt__bw_result(b, 0);
    mt_tensor *step = NULL;
    MT_TRY(with_turned(b, mt__bw_grad(b), &step));
    MT_TRY(mt__bw_times(b, inverse, step, &step));
    MT_TRY(mt__bw_times(b, step, inverse, &step));
    MT_TRY(mt__bw_int(b, 1) != 0 ? mt__bw_times(b, factor, step, &step)
                                 : mt__bw_times(b, step, factor, &step));
    MT_TRY(mt_neg(step, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* ---- least squares --------------------------------------------------------------------------- */

/* x = p b with p the pseudoinverse of a; residuals |a x - b|^2, whose derivative in x is 0. */
int mt__lstsq_backward(mt__backward *b)
{
    static const double *const usual = NULL;
    mt_tensor *a = mt__bw_arg(b, 0);
    mt_tensor *right = mt__bw_arg(b, 1);
    mt_tensor *x = mt__bw_result(b, 0);
    mt_tensor *grad = b->grads[0];
    bool vector = mt__bw_shape(b, 1)->n_dims + 1 == mt__bw_shape(b, 0)->n_dims;
    mt_tensor *of_a = NULL;
    mt_tensor *of_b = NULL;
    mt_tensor *p = NULL;
    mt_tensor *step = NULL;
    if (b->grads[3] != NULL && b->grads[3]->numel > 0) {
        return mtb_fail(MT_ENOTSUP,
                        "the derivative for the singular values of 'linalg_lstsq' is not "
                        "implemented; linalg.svdvals() has one");
    }
    if (vector) {
        MT_INTO(b, &right, mt_unsqueeze(right, -1, b->place));
        MT_INTO(b, &x, mt_unsqueeze(x, -1, b->place));
    }
    if (grad != NULL) {
        if (vector) {
            MT_INTO(b, &grad, mt_unsqueeze(grad, -1, b->place));
        }
        MT_INTO(b, &p, mt_linalg_pinv_atol_rtol_float_with(a, usual, usual, false, b->place));
        MT_TRY(mt__bw_turned_times(b, p, grad, &of_b));
        MT_TRY(mt__bw_times_turned(b, grad, right, &step));
        MT_TRY(pinv_gradient(b, a, p, step, &of_a));
    }
    if (b->grads[1] != NULL && b->grads[1]->numel > 0) {
        MT_TRY(mt__bw_times(b, a, x, &step));
        MT_INTO(b, &step, mt_sub(step, right, b->place));
        MT_INTO(b, &grad, mt_unsqueeze(b->grads[1], -2, b->place));
        MT_INTO(b, &step, mt_mul(step, grad, b->place));
        MT_INTO(b, &step, mt_mul_scalar(step, mt_int(2), b->place));
        MT_TRY(mt__bw_times_turned(b, step, x, &grad));
        MT_TRY(mt__bw_accumulate(b, &of_a, grad));
        MT_INTO(b, &step, mt_neg(step, b->place));
        MT_TRY(mt__bw_accumulate(b, &of_b, step));
    }
    if (of_a == NULL || of_b == NULL) {
        MT_TRY(mt__bw_give_zeros(b, 0));
        return mt__bw_give_zeros(b, 1);
    }
    if (vector) {
        MT_INTO(b, &of_b, mt_squeeze_dim(of_b, -1, b->place));
    }
    if (mt__wants(b, 0)) {
        mt__bw_give(b, 0, of_a);
    }
    if (mt__wants(b, 1)) {
        mt__bw_give(b, 1, of_b);
    }
    return MT_OK;
}
