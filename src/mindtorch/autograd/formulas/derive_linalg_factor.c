/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of factorisations: LU, Cholesky, QR, eigenvectors, singular values; and of the
 * exponential.
 */
#include "base/alloc.h"
#include "mindtorch/autograd/formulas/derive_linalg.h"

#include <math.h>
#include <string.h>

/* ---- LU -------------------------------------------------------------------------------------- */

/* What is left of columns (dim -1) or rows (-2) from `from` on; NULL: nothing. */
static int rest(mt__backward *b, mt_tensor *x, int64_t dim, int64_t from, mt_tensor **out)
{
    int64_t size = dim == -1 ? mt__bw_columns(x) : mt__bw_rows(x);
    *out = NULL;
    if (size > from) {
        MT_INTO(b, out, mt_narrow(x, dim, from, size - from, b->place));
    }
    return MT_OK;
}

/* a = P [L1; L2] [U1, U2], L1 and U1 of k rows; L2 or U2 is not there. With D = P^T d a and
 * M = L1^-1 D1 U1^-1:
 *     d L1 = L1 tril(M, -1)        d L2 = D2 U1^-1 - L2 triu(M)
 *     d U1 = triu(M) U1            d U2 = L1^-1 D2 - tril(M, -1) U2 */
typedef struct lu_terms {
    mt_tensor *lower, *upper;           /* L, U */
    mt_tensor *grad_lower, *grad_upper; /* NULL: zero */
} lu_terms;

/* The gradient of M. */
static int middle(mt__backward *b, const lu_terms *t, int64_t k, mt_tensor **out)
{
    mt_tensor *low = NULL;
    mt_tensor *high = NULL;
    mt_tensor *step = NULL;
    mt_tensor *part = NULL;
    mt_tensor *other = NULL;
    *out = NULL;
    if (t->grad_lower != NULL) {
        MT_INTO(b, &part, mt_narrow(t->lower, -2, 0, k, b->place));
        MT_INTO(b, &step, mt_narrow(t->grad_lower, -2, 0, k, b->place));
        MT_TRY(mt__bw_turned_times(b, part, step, &low));
        MT_TRY(rest(b, t->lower, -2, k, &part));
        if (part != NULL) {
            MT_TRY(rest(b, t->grad_lower, -2, k, &other));
            MT_TRY(mt__bw_turned_times(b, part, other, &step));
            MT_INTO(b, &high, mt_neg(step, b->place));
        }
    }
    if (t->grad_upper != NULL) {
        MT_INTO(b, &part, mt_narrow(t->upper, -1, 0, k, b->place));
        MT_INTO(b, &step, mt_narrow(t->grad_upper, -1, 0, k, b->place));
        MT_TRY(mt__bw_times_turned(b, step, part, &step));
        MT_TRY(mt__bw_accumulate(b, &high, step));
        MT_TRY(rest(b, t->upper, -1, k, &part));
        if (part != NULL) {
            MT_TRY(rest(b, t->grad_upper, -1, k, &other));
            MT_TRY(mt__bw_times_turned(b, other, part, &step));
            MT_INTO(b, &step, mt_neg(step, b->place));
            MT_TRY(mt__bw_accumulate(b, &low, step));
        }
    }
    if (low != NULL) {
        MT_INTO(b, out, mt_tril(low, -1, b->place));
    }
    if (high != NULL) {
        MT_INTO(b, &high, mt_triu(high, 0, b->place));
        MT_TRY(mt__bw_accumulate(b, out, high));
    }
    return MT_OK;
}

/* Gives argument 0 its gradient: P [L1^-T M U1^-T, ...]. */
static int lu_gradient(mt__backward *b, mt_tensor *pivots, const lu_terms *t)
{
    int64_t m = mt__bw_rows(t->lower);
    int64_t n = mt__bw_columns(t->upper);
    int64_t k = m < n ? m : n;
    mt_tensor *first = NULL;
    mt_tensor *left = NULL;
    mt_tensor *right = NULL;
    mt_tensor *second = NULL;
    mt_tensor *part = NULL;
    if (t->grad_lower == NULL && t->grad_upper == NULL) {
        return mt__bw_give_zeros(b, 0);
    }
    MT_TRY(middle(b, t, k, &first));
    MT_INTO(b, &left, mt_narrow(t->lower, -2, 0, k, b->place));
    MT_TRY(mt__bw_turn(b, left, &left));
    MT_INTO(b, &right, mt_narrow(t->upper, -1, 0, k, b->place));
    MT_TRY(mt__bw_turn(b, right, &right));
    MT_TRY(mt__bw_triangle(b, left, first, true, true, true, &first));
    MT_TRY(mt__bw_triangle(b, right, first, false, false, false, &first));
    if (m != n) {
        mt_tensor *grad = m < n ? t->grad_upper : t->grad_lower;
        mt_tensor *whole = m < n ? t->upper : t->lower;
        int64_t dim = m < n ? -1 : -2;
        MT_TRY(rest(b, grad != NULL ? grad : whole, dim, k, &part));
        if (grad == NULL) {
            MT_INTO(b, &part, mt_zeros_like(part, b->place));
        }
        MT_TRY(m < n ? mt__bw_triangle(b, left, part, true, true, true, &second)
                     : mt__bw_triangle(b, right, part, false, false, false, &second));
        mt_tensor *const parts[] = {first, second};
        MT_INTO(b, &first, mt_cat(parts, 2, dim, b->place));
    }
    MT_INTO(b, &part, mt__lu_permutation(pivots, m, (mt_dtype)first->dtype, b->place));
    MT_TRY(mt__bw_times(b, part, first, &first));
    mt__bw_give(b, 0, first);
    return MT_OK;
}

int mt__lu_parts_backward(mt__backward *b)
{
    const lu_terms terms = {.lower = mt__bw_result(b, 0),
                            .upper = mt__bw_result(b, 1),
                            .grad_lower = b->grads[0],
                            .grad_upper = b->grads[1]};
    return lu_gradient(b, mt__bw_result(b, 2), &terms);
}

int mt__lu_factor_ex_backward(mt__backward *b)
{
    mt_tensor *factors = mt__bw_result(b, 0);
    mt_tensor *grad = b->grads[0];
    mt_tensor **lower = MT_STEP(b);
    mt_tensor **upper = MT_STEP(b);
    lu_terms terms;
    if (grad == NULL) {
        return mt__bw_give_zeros(b, 0);
    }
    int64_t k = mt__bw_rows(factors) < mt__bw_columns(factors) ? mt__bw_rows(factors)
                                                               : mt__bw_columns(factors);
    MT_TRY(mt__lu_unpack_data(factors, lower, upper));
    terms.lower = *lower;
    terms.upper = *upper;
    MT_INTO(b, &terms.grad_lower, mt_narrow(grad, -1, 0, k, b->place));
    MT_INTO(b, &terms.grad_upper, mt_narrow(grad, -2, 0, k, b->place));
    MT_INTO(b, &terms.grad_upper, mt_triu(terms.grad_upper, 0, b->place));
    return lu_gradient(b, mt__bw_result(b, 1), &terms);
}

/* Triangles with zeros around them. */
int mt__lu_unpack_backward(mt__backward *b)
{
    const mt__shape *shape = mt__bw_shape(b, 0);
    int64_t m = shape->sizes[shape->n_dims - 2];
    int64_t n = shape->sizes[shape->n_dims - 1];
    mt_tensor *step = NULL;
    mt_tensor *sum = NULL;
    if (b->grads[0] != NULL) {
        MT_INTO(b, &step, mt_tril(b->grads[0], -1, b->place));
        if (n > m) {
            const int64_t wider[] = {0, n - m};
            MT_INTO(b, &step, mt_constant_pad_nd(step, wider, 2, mt_int(0), b->place));
        }
        sum = step;
    }
    if (b->grads[1] != NULL) {
        MT_INTO(b, &step, mt_triu(b->grads[1], 0, b->place));
        if (m > n) {
            const int64_t longer[] = {0, 0, 0, m - n};
            MT_INTO(b, &step, mt_constant_pad_nd(step, longer, 4, mt_int(0), b->place));
        }
        MT_TRY(mt__bw_accumulate(b, &sum, step));
    }
    if (sum == NULL) {
        return mt__bw_give_zeros(b, 0);
    }
    mt__bw_give(b, 0, sum);
    return MT_OK;
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

/* a = l l^T: d a = l^-T s l^-1, s half of tril(l^T d l) and its transpose, the diagonal once. */
int mt__cholesky_backward(mt__backward *b)
{
    mt_tensor *factor = mt__bw_result(b, 0);
    mt_tensor *grad = b->grads[0];
    mt_tensor *low = NULL;
    mt_tensor *step = NULL;
    mt_tensor *turned = NULL;
    if (grad == NULL) {
        return mt__bw_give_zeros(b, 0);
    }
    if (mt__bw_int(b, 1) != 0) { /* upper */
        MT_TRY(mt__bw_turn(b, factor, &factor));
        MT_TRY(mt__bw_turn(b, grad, &grad));
    }
    MT_TRY(mt__bw_turned_times(b, factor, grad, &step));
    MT_INTO(b, &low, mt_tril(step, 0, b->place));
    MT_INTO(b, &step, mt_tril(step, -1, b->place));
    MT_TRY(mt__bw_turn(b, step, &step));
    MT_INTO(b, &step, mt_add(low, step, b->place));
    MT_INTO(b, &step, mt_mul_scalar(step, mt_real(0.5), b->place));
    MT_TRY(mt__bw_turn(b, factor, &turned));
    MT_TRY(mt__bw_triangle(b, turned, step, true, true, false, &step));
    MT_TRY(mt__bw_triangle(b, factor, step, false, false, false, &step));
    mt__bw_give(b, 0, step);
    return MT_OK;
}

/* ---- QR -------------------------------------------------------------------------------------- */

static int check_qr(const mt__backward *b)
{
    const char *mode = b->args[1].of.text;
    const mt__shape *shape = mt__bw_shape(b, 0);
    if (strcmp(mode, "r") == 0) {
        return mtb_fail(MT_ERUNTIME,
                        "The derivative of linalg.qr depends on Q, which is not computed when "
                        "mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to "
                        "differentiate through linalg.qr.");
    }
    if (strcmp(mode, "complete") == 0 &&
        shape->sizes[shape->n_dims - 2] > shape->sizes[shape->n_dims - 1]) {
        return mtb_fail(MT_ERUNTIME,
                        "The QR decomposition is not differentiable when mode='complete' and nrows "
                        "> ncols.");
    }
    return MT_OK;
}

/* x + x^T without the diagonal twice. */
static int mirrored(mt__backward *b, mt_tensor *x, mt_tensor **out)
{
    mt_tensor *above = NULL;
    MT_INTO(b, &above, mt_triu(x, 1, b->place));
    MT_TRY(mt__bw_turn(b, above, &above));
    MT_INTO(b, out, mt_add(x, above, b->place));
    return MT_OK;
}

/* Of a square r: (d q + q mirrored(triu(d r r^T - q^T d q))) r^-T. A wider one: r = [r1, r2],
 * a = [a1, a2], and r2 = q^T a2, which gives d a2 = q d r2 and adds a2 d r2^T to d q. */
int mt__qr_backward(mt__backward *b)
{
    mt_tensor *q = mt__bw_result(b, 0);
    mt_tensor *r = mt__bw_result(b, 1);
    mt_tensor *of_q = b->grads[0];
    mt_tensor *of_r = b->grads[1];
    mt_tensor *step = NULL;
    mt_tensor *second = NULL;
    mt_tensor *middle_part = NULL;
    MT_TRY(check_qr(b));
    if (of_q == NULL && of_r == NULL) {
        return mt__bw_give_zeros(b, 0);
    }
    int64_t k = mt__bw_columns(q);
    bool wide = mt__bw_columns(r) > k;
    if (wide) {
        mt_tensor *r2 = NULL;
        mt_tensor *of_r2 = NULL;
        MT_TRY(rest(b, r, -1, k, &r2));
        MT_INTO(b, &r, mt_narrow(r, -1, 0, k, b->place));
        if (of_r != NULL) {
            MT_TRY(rest(b, of_r, -1, k, &of_r2));
            MT_INTO(b, &of_r, mt_narrow(of_r, -1, 0, k, b->place));
            MT_TRY(mt__bw_times(b, q, of_r2, &second));
            MT_TRY(mt__bw_times(b, q, r2, &step)); /* a2 */
            MT_TRY(mt__bw_times_turned(b, step, of_r2, &step));
            MT_TRY(mt__bw_accumulate(b, &of_q, step));
        } else {
            MT_TRY(mt__bw_times(b, q, r2, &step));
            MT_INTO(b, &second, mt_zeros_like(step, b->place));
        }
    }
    if (of_r != NULL) {
        MT_TRY(mt__bw_times_turned(b, of_r, r, &middle_part));
    }
    if (of_q != NULL) {
        MT_TRY(mt__bw_turned_times(b, q, of_q, &step));
        MT_INTO(b, &step, mt_neg(step, b->place));
        MT_TRY(mt__bw_accumulate(b, &middle_part, step));
    }
    MT_INTO(b, &step, mt_triu(middle_part, 0, b->place));
    MT_TRY(mirrored(b, step, &step));
    MT_TRY(mt__bw_times(b, q, step, &step));
    if (of_q != NULL) {
        MT_INTO(b, &step, mt_add(of_q, step, b->place));
    }
    MT_TRY(mt__bw_turn(b, r, &r));
    MT_TRY(mt__bw_triangle(b, r, step, false, false, false, &step));
    if (wide) {
        mt_tensor *const parts[] = {step, second};
        MT_INTO(b, &step, mt_cat(parts, 2, -1, b->place));
    }
    mt__bw_give(b, 0, step);
    return MT_OK;
}

/* ---- eigenvectors and singular vectors ------------------------------------------------------- */

/* x * line as columns' factors. */
static int scale_columns(mt__backward *b, mt_tensor *x, mt_tensor *line, mt_tensor **out)
{
    mt_tensor *row = NULL;
    MT_INTO(b, &row, mt_unsqueeze(line, -2, b->place));
    MT_INTO(b, out, mt_mul(x, row, b->place));
    return MT_OK;
}

/* line[j] - line[i] at i, j, and `value` on the diagonal. */
static int differences(mt__backward *b, mt_tensor *line, double value, mt_tensor **out)
{
    mt_tensor *row = NULL;
    mt_tensor *column = NULL;
    mt_tensor *mask = NULL;
    int64_t n = mt__bw_columns(line);
    MT_INTO(b, &row, mt_unsqueeze(line, -2, b->place));
    MT_INTO(b, &column, mt_unsqueeze(line, -1, b->place));
    MT_INTO(b, &row, mt_sub(row, column, b->place));
    MT_INTO(b, &mask, mt_eye_with(n, NULL, MT_DTYPE_BOOL, line->device, b->place));
    MT_INTO(b, out, mt_masked_fill_scalar(row, mask, mt_real(value), b->place));
    return MT_OK;
}

int mt__eigh_backward(mt__backward *b)
{
    mt_tensor *values = mt__bw_result(b, 0);
    mt_tensor *vectors = mt__bw_result(b, 1);
    mt_tensor *of_values = b->grads[0];
    mt_tensor *of_vectors = b->grads[1];
    mt_tensor *step = NULL;
    mt_tensor *apart = NULL;
    if (of_values == NULL && of_vectors == NULL) {
        return mt__bw_give_zeros(b, 0);
    }
    if (of_vectors == NULL) {
        MT_TRY(scale_columns(b, vectors, of_values, &step));
    } else {
        MT_TRY(mt__bw_turned_times(b, vectors, of_vectors, &step));
        MT_TRY(differences(b, values, INFINITY, &apart));
        MT_INTO(b, &step, mt_div(step, apart, b->place));
        if (of_values != NULL) {
            MT_TRY(mt__bw_diagonal(b, of_values, &apart));
            MT_INTO(b, &step, mt_add(step, apart, b->place));
        }
        MT_TRY(mt__bw_times(b, vectors, step, &step));
    }
    MT_TRY(mt__bw_times_turned(b, step, vectors, &step));
    mt__bw_give(b, 0, step);
    return MT_OK;
}

/* (x^T g - g^T x) / (s[j]^2 - s[i]^2) */
static int skew(mt__backward *b, mt_tensor *x, mt_tensor *grad, mt_tensor *apart, mt_tensor **out)
{
    mt_tensor *product = NULL;
    mt_tensor *turned = NULL;
    MT_TRY(mt__bw_turned_times(b, x, grad, &product));
    MT_TRY(mt__bw_turn(b, product, &turned));
    MT_INTO(b, &product, mt_sub(product, turned, b->place));
    MT_INTO(b, out, mt_div(product, apart, b->place));
    return MT_OK;
}

/* u's part: (u skew + what of d u lies outside of u's space / s) s, still without v^T. */
typedef struct singular {
    mt_tensor *u, *s, *v;          /* v: transposed vh */
    mt_tensor *of_u, *of_s, *of_v; /* NULL: zero */
} singular;

static int inner_part(mt__backward *b, const singular *t, mt_tensor **out)
{
    mt_tensor *squares = NULL;
    mt_tensor *apart = NULL;
    mt_tensor *step = NULL;
    mt_tensor *column = NULL;
    *out = NULL;
    if (t->of_u != NULL || t->of_v != NULL) {
        MT_INTO(b, &squares, mt_mul(t->s, t->s, b->place));
        MT_TRY(differences(b, squares, 1, &apart));
    }
    if (t->of_u != NULL) {
        MT_TRY(skew(b, t->u, t->of_u, apart, &step));
        MT_TRY(scale_columns(b, step, t->s, out));
    }
    if (t->of_v != NULL) {
        MT_TRY(skew(b, t->v, t->of_v, apart, &step));
        MT_INTO(b, &column, mt_unsqueeze(t->s, -1, b->place));
        MT_INTO(b, &step, mt_mul(column, step, b->place));
        MT_TRY(mt__bw_accumulate(b, out, step));
    }
    if (t->of_s != NULL) {
        MT_TRY(mt__bw_diagonal(b, t->of_s, &step));
        MT_TRY(mt__bw_accumulate(b, out, step));
    }
    return MT_OK;
}

/* (1 - x x^T) g / s */
static int outside(mt__backward *b, mt_tensor *x, mt_tensor *grad, mt_tensor *s, mt_tensor **out)
{
    mt_tensor *step = NULL;
    mt_tensor *row = NULL;
    MT_TRY(mt__bw_turned_times(b, x, grad, &step));
    MT_TRY(mt__bw_times(b, x, step, &step));
    MT_INTO(b, &step, mt_sub(grad, step, b->place));
    MT_INTO(b, &row, mt_unsqueeze(s, -2, b->place));
    MT_INTO(b, out, mt_div(step, row, b->place));
    return MT_OK;
}

int mt__svd_backward(mt__backward *b)
{
    const mt__shape *shape = mt__bw_shape(b, 0);
    int64_t m = shape->sizes[shape->n_dims - 2];
    int64_t n = shape->sizes[shape->n_dims - 1];
    int64_t k = m < n ? m : n;
    singular t = {.u = mt__bw_result(b, 0),
                  .s = mt__bw_result(b, 1),
                  .v = mt__bw_result(b, 2),
                  .of_u = b->grads[0],
                  .of_s = b->grads[1],
                  .of_v = b->grads[2]};
    mt_tensor *inner = NULL;
    mt_tensor *more = NULL;
    mt_tensor *sum = NULL;
    if (t.of_u == NULL && t.of_s == NULL && t.of_v == NULL) {
        return mt__bw_give_zeros(b, 0);
    }
    /* The further vectors of full_matrices are any that fit: torch drops their gradient, too. */
    if (mt__bw_columns(t.u) > k) {
        MT_INTO(b, &t.u, mt_narrow(t.u, -1, 0, k, b->place));
        if (t.of_u != NULL) {
            MT_INTO(b, &t.of_u, mt_narrow(t.of_u, -1, 0, k, b->place));
        }
    }
    if (mt__bw_rows(t.v) > k) {
        MT_INTO(b, &t.v, mt_narrow(t.v, -2, 0, k, b->place));
        if (t.of_v != NULL) {
            MT_INTO(b, &t.of_v, mt_narrow(t.of_v, -2, 0, k, b->place));
        }
    }
    MT_TRY(mt__bw_turn(b, t.v, &t.v));
    if (t.of_v != NULL) {
        MT_TRY(mt__bw_turn(b, t.of_v, &t.of_v));
    }
    if (t.of_u == NULL && t.of_v == NULL) {
        MT_TRY(scale_columns(b, t.u, t.of_s, &sum));
    } else {
        MT_TRY(inner_part(b, &t, &inner));
        MT_TRY(mt__bw_times(b, t.u, inner, &sum));
    }
    if (t.of_u != NULL && m > k) {
        MT_TRY(outside(b, t.u, t.of_u, t.s, &more));
        MT_INTO(b, &sum, mt_add(sum, more, b->place));
    }
    MT_TRY(mt__bw_times_turned(b, sum, t.v, &sum));
    if (t.of_v != NULL && n > k) {
        MT_TRY(outside(b, t.v, t.of_v, t.s, &more));
        MT_TRY(mt__bw_times_turned(b, t.u, more, &more));
        MT_INTO(b, &sum, mt_add(sum, more, b->place));
    }
    mt__bw_give(b, 0, sum);
    return MT_OK;
}

/* ---- the exponential ------------------------------------------------------------------------- */

/* exp([[a^T, d], [0, a^T]]) has the derivative in its upper right corner. */
int mt__matrix_exp_backward(mt__backward *b)
{
    mt_tensor *turned = NULL;
    mt_tensor *zero = NULL;
    mt_tensor *top = NULL;
    mt_tensor *bottom = NULL;
    mt_tensor *whole = NULL;
    MT_TRY(mt__bw_turn(b, mt__bw_arg(b, 0), &turned));
    int64_t n = mt__bw_rows(turned);
    MT_INTO(b, &zero, mt_zeros_like(turned, b->place));
    mt_tensor *const upper[] = {turned, mt__bw_grad(b)};
    mt_tensor *const lower[] = {zero, turned};
    MT_INTO(b, &top, mt_cat(upper, 2, -1, b->place));
    MT_INTO(b, &bottom, mt_cat(lower, 2, -1, b->place));
    mt_tensor *const both[] = {top, bottom};
    MT_INTO(b, &whole, mt_cat(both, 2, -2, b->place));
    MT_INTO(b, &whole, mt_linalg_matrix_exp(whole, b->place));
    MT_INTO(b, &whole, mt_narrow(whole, -2, 0, n, b->place));
    MT_TRY(mt_narrow(whole, -1, n, n, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* ---- products of reflectors ------------------------------------------------------------------ */

/* One reflector, h = 1 - tau v v^T, of the product; x and grad are [m, n]. */
typedef struct reflector {
    mt_tensor *v;   /* [..., m, 1] */
    mt_tensor *tau; /* [..., 1, 1] */
} reflector;

enum {
    REFLECT_STEPS = 12
};

static void release_all(mt_tensor **steps)
{
    for (uint32_t i = 0; i < REFLECT_STEPS; i++) {
        mt_tensor_release(steps[i]);
    }
}

/* x - factor v (v^T x) */
static int apply(const reflector *h, mt_tensor *factor, mt_tensor *x, mt_tensor **out)
{
    mt_tensor *s[REFLECT_STEPS] = {NULL};
    int status = mt_transpose(h->v, -2, -1, &s[0]);
    status = status == MT_OK ? mt_matmul(s[0], x, &s[1]) : status;
    status = status == MT_OK ? mt_mul(s[1], factor, &s[2]) : status;
    status = status == MT_OK ? mt_matmul(h->v, s[2], &s[3]) : status;
    status = status == MT_OK ? mt_sub(x, s[3], out) : status;
    release_all(s);
    return status;
}

/* The vector of column i: zeros, then 1, then what lies below the diagonal. */
static int take_reflector(mt_tensor *a, mt_tensor *tau, int64_t i, reflector *h)
{
    mt_tensor *s[REFLECT_STEPS] = {NULL};
    int status = mt_narrow(a, -1, i, 1, &s[0]);
    status = status == MT_OK ? mt_tril(s[0], -i - 1, &s[1]) : status;
    status = status == MT_OK ? mt_zeros_like(s[1], &s[2]) : status;
    status = status == MT_OK ? mt_narrow(s[2], -2, i, 1, &s[3]) : status;
    status = status == MT_OK ? mt_fill_scalar_(s[3], mt_int(1)) : status;
    status = status == MT_OK ? mt_add(s[1], s[2], &h->v) : status;
    status = status == MT_OK ? mt_narrow(tau, -1, i, 1, &s[4]) : status;
    status = status == MT_OK ? mt_unsqueeze(s[4], -1, &h->tau) : status;
    release_all(s);
    return status;
}

/* h^-1 = 1 - tau / (tau v^T v - 1) v v^T */
static int inverse_factor(const reflector *h, mt_tensor **out)
{
    mt_tensor *s[REFLECT_STEPS] = {NULL};
    int status = mt_transpose(h->v, -2, -1, &s[0]);
    status = status == MT_OK ? mt_matmul(s[0], h->v, &s[1]) : status;
    status = status == MT_OK ? mt_mul(s[1], h->tau, &s[2]) : status;
    status = status == MT_OK ? mt_sub_scalar(s[2], mt_int(1), &s[3]) : status;
    status = status == MT_OK ? mt_div(h->tau, s[3], out) : status;
    release_all(s);
    return status;
}

/* d tau = - v^T g x^T v, d v = - tau (g (x^T v) + x (g^T v)) below the diagonal: x is what the
 * reflector is applied to, g the gradient of the result. */
static int reflector_gradient(const reflector *h, mt_tensor *x, mt_tensor *g, int64_t i,
                              mt_tensor *grads[2])
{
    mt_tensor *s[REFLECT_STEPS] = {NULL};
    int status = mt_transpose(x, -2, -1, &s[0]);
    status = status == MT_OK ? mt_matmul(s[0], h->v, &s[1]) : status; /* x^T v */
    status = status == MT_OK ? mt_matmul(g, s[1], &s[2]) : status;
    status = status == MT_OK ? mt_transpose(h->v, -2, -1, &s[3]) : status;
    status = status == MT_OK ? mt_matmul(s[3], s[2], &s[4]) : status; /* v^T g x^T v */
    status = status == MT_OK ? mt_transpose(g, -2, -1, &s[5]) : status;
    status = status == MT_OK ? mt_matmul(s[5], h->v, &s[6]) : status;
    status = status == MT_OK ? mt_matmul(x, s[6], &s[7]) : status;
    status = status == MT_OK ? mt_add(s[2], s[7], &s[8]) : status;
    status = status == MT_OK ? mt_mul(s[8], h->tau, &s[9]) : status;
    status = status == MT_OK ? mt_neg(s[9], &s[10]) : status;
    status = status == MT_OK ? mt_tril(s[10], -i - 1, &grads[0]) : status;
    status = status == MT_OK ? mt_squeeze_dim(s[4], -1, &s[11]) : status;
    status = status == MT_OK ? mt_neg(s[11], &grads[1]) : status;
    release_all(s);
    return status;
}

/* One after the other: x loses the reflector i by its inverse, g takes it. */
static int take_gradients(mt_tensor *a, mt_tensor *tau, mt_tensor *x, mt_tensor *g,
                          mt_tensor **columns, mt_tensor **numbers)
{
    int64_t k = tau->sizes[tau->n_dims - 1];
    int status = MT_OK;
    mt_tensor_retain(x);
    mt_tensor_retain(g);
    for (int64_t i = 0; i < k && status == MT_OK; i++) {
        reflector h = {NULL, NULL};
        mt_tensor *factor = NULL;
        mt_tensor *next = NULL;
        mt_tensor *pair[2] = {NULL, NULL};
        status = take_reflector(a, tau, i, &h);
        status = status == MT_OK ? inverse_factor(&h, &factor) : status;
        status = status == MT_OK ? apply(&h, factor, x, &next) : status;
        if (status == MT_OK) {
            mt_tensor_release(x);
            x = next;
            next = NULL;
            status = reflector_gradient(&h, x, g, i, pair);
        }
        status = status == MT_OK ? apply(&h, h.tau, g, &next) : status;
        if (status == MT_OK) {
            mt_tensor_release(g);
            g = next;
        }
        columns[i] = pair[0];
        numbers[i] = pair[1];
        mt_tensor_release(h.v);
        mt_tensor_release(h.tau);
        mt_tensor_release(factor);
    }
    mt_tensor_release(x);
    mt_tensor_release(g);
    return status;
}

int mt__householder_product_backward(mt__backward *b)
{
    mt_tensor *a = mt__bw_arg(b, 0);
    mt_tensor *tau = mt__bw_arg(b, 1);
    int64_t k = tau->sizes[tau->n_dims - 1];
    int64_t n = mt__bw_columns(a);
    if (k == 0) {
        MT_TRY(mt__bw_give_zeros(b, 0));
        return mt__bw_give_zeros(b, 1);
    }
    mt_tensor **parts = mtb_calloc(2 * (size_t)k, sizeof(mt_tensor *));
    if (parts == NULL) {
        return mtb_fail(MT_ENOMEM, "householder_product: no memory for %lld gradients",
                        (long long)k);
    }
    int status = take_gradients(a, tau, mt__bw_result(b, 0), mt__bw_grad(b), parts, parts + k);
    mt_tensor **of_a = MT_STEP(b);
    mt_tensor **of_tau = MT_STEP(b);
    status = status == MT_OK ? mt_cat(parts, (size_t)k, -1, of_a) : status;
    status = status == MT_OK ? mt_cat(parts + k, (size_t)k, -1, of_tau) : status;
    for (int64_t i = 0; i < 2 * k; i++) {
        mt_tensor_release(parts[i]);
    }
    mtb_free(parts);
    MT_TRY(status);
    mt_tensor *whole = *of_a;
    if (n > k) {
        const int64_t wider[] = {0, n - k};
        MT_INTO(b, &whole, mt_constant_pad_nd(whole, wider, 2, mt_int(0), b->place));
    }
    if (mt__wants(b, 0)) {
        mt__bw_give(b, 0, whole);
    }
    if (mt__wants(b, 1)) {
        mt__bw_give(b, 1, *of_tau);
    }
    return MT_OK;
}
