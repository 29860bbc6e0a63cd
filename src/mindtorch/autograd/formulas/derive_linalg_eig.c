/* SPDX-License-Identifier: Apache-2.0
 *
 * The derivative of eigenvalues and eigenvectors of any square matrix A = V diag(L) V^-1. With g
 * for the values and G for the vectors, whose columns have length 1,
 *
 *      V^-H (diag(g) + (V^H G - V^H V diag(Re diag(V^H G))) / E) V^H,   E[i,j] = conj(L[j] - L[i])
 *
 * where the quotient's diagonal is left out. A vector may be turned by any e^(i phi), which shows
 * in the imaginary part of diag(V^H G): a loss that depends on it has no gradient.
 */
#include "mindtorch/autograd/formulas/derive_linalg.h"

#include <math.h>

static int adjoint(mt__backward *b, mt_tensor *x, mt_tensor **out)
{
    MT_TRY(mt__bw_turn(b, x, out));
    MT_INTO(b, out, mt_conj(*out, b->place));
    return MT_OK;
}

static int parts_of(mt__backward *b, mt_tensor *x, mt_tensor *parts[2])
{
    MT_INTO(b, &parts[0], mt_real_part(x, b->place));
    MT_INTO(b, &parts[1], mt_imag(x, b->place));
    return MT_OK;
}

static int joined(mt__backward *b, mt_tensor *first, mt_tensor *second, int64_t dim,
                  mt_tensor **out)
{
    MT_INTO(b, out, mt_cat((mt_tensor *[]){first, second}, 2, dim, b->place));
    return MT_OK;
}

/* a^-1 x of complex matrices, by the equations of their parts:
 *
 *      | Re a  -Im a |  | Re y |     | Re x |
 *      | Im a   Re a |  | Im y |  =  | Im x |
 */
static int solve_complex(mt__backward *b, mt_tensor *a, mt_tensor *x, mt_tensor **out)
{
    mt_tensor *of_a[2];
    mt_tensor *of_x[2];
    mt_tensor *turned = NULL;
    mt_tensor *upper = NULL;
    mt_tensor *lower = NULL;
    int64_t n = mt__bw_rows(a);
    MT_TRY(parts_of(b, a, of_a));
    MT_TRY(parts_of(b, x, of_x));
    MT_INTO(b, &turned, mt_neg(of_a[1], b->place));
    MT_TRY(joined(b, of_a[0], turned, -1, &upper));
    MT_TRY(joined(b, of_a[1], of_a[0], -1, &lower));
    MT_TRY(joined(b, upper, lower, -2, &upper));
    MT_TRY(joined(b, of_x[0], of_x[1], -2, &lower));
    MT_INTO(b, &upper, mt_linalg_solve(upper, lower, b->place));
    MT_INTO(b, &of_x[0], mt_narrow(upper, -2, 0, n, b->place));
    MT_INTO(b, &of_x[1], mt_narrow(upper, -2, n, n, b->place));
    MT_INTO(b, out, mt_complex(of_x[0], of_x[1], b->place));
    return MT_OK;
}

/* Fails where a number of the diagonal is not real. */
static int check_phases(mt__backward *b, mt_tensor *diagonal)
{
    mt_tensor *step = NULL;
    double largest = 0;
    if (diagonal->numel == 0 || diagonal->device == MT_META) {
        return MT_OK;
    }
    MT_INTO(b, &step, mt_imag(diagonal, b->place));
    MT_INTO(b, &step, mt_abs(step, b->place));
    MT_INTO(b, &step, mt_amax(step, NULL, 0, false, b->place));
    MT_INTO(b, &step, mt_to_with(step, MT_DTYPE_F64, MT_CPU, false, false, b->place));
    MT_TRY(mt_tensor_read(step, &largest, sizeof largest));
    return largest <= 1e-2 || isnan(largest)
               ? MT_OK
               : mtb_fail(MT_ERUNTIME,
                          "linalg_eig_backward: The eigenvectors in the complex case are specified "
                          "up to multiplication by e^{i phi}. The specified loss function depends "
                          "on this quantity, so it is ill-defined.");
}

/* What the vectors add, still between V^-H and V^H. */
static int vectors_part(mt__backward *b, mt_tensor *turned, mt_tensor **out)
{
    mt_tensor *values = mt__bw_result(b, 0);
    mt_tensor *vectors = mt__bw_result(b, 1);
    mt_tensor *product = NULL;
    mt_tensor *diagonal = NULL;
    mt_tensor *step = NULL;
    mt_tensor *row = NULL;
    mt_tensor *column = NULL;
    mt_tensor *eye = NULL;
    mt_dtype part = values->dtype == MT_DTYPE_C64 ? MT_DTYPE_F32 : MT_DTYPE_F64;
    MT_TRY(mt__bw_times(b, turned, b->grads[1], &product));
    MT_INTO(b, &diagonal, mt_diagonal(product, 0, -2, -1, b->place));
    MT_TRY(check_phases(b, diagonal));
    MT_INTO(b, &diagonal, mt_real_part(diagonal, b->place));
    MT_INTO(b, &diagonal, mt_unsqueeze(diagonal, -2, b->place));
    MT_TRY(mt__bw_times(b, turned, vectors, &step));
    MT_INTO(b, &step, mt_mul(step, diagonal, b->place));
    MT_INTO(b, &product, mt_sub(product, step, b->place));
    MT_INTO(b, &step, mt_conj(values, b->place));
    MT_INTO(b, &row, mt_unsqueeze(step, -2, b->place));
    MT_INTO(b, &column, mt_unsqueeze(step, -1, b->place));
    MT_INTO(b, &step, mt_sub(row, column, b->place));
    MT_INTO(b, &eye, mt_eye_with(mt__bw_columns(vectors), NULL, part, values->device, b->place));
    MT_INTO(b, &step, mt_add(step, eye, b->place)); /* no division by 0 */
    MT_INTO(b, &product, mt_div(product, step, b->place));
    MT_INTO(b, &eye, mt_rsub_scalar(eye, mt_int(1), b->place));
    MT_INTO(b, out, mt_mul(product, eye, b->place));
    return MT_OK;
}

int mt__eig_backward(mt__backward *b)
{
    mt_tensor *sum = NULL;
    mt_tensor *turned = NULL;
    mt_tensor *step = NULL;
    if (b->grads[0] == NULL && b->grads[1] == NULL) {
        return mt__bw_give_zeros(b, 0);
    }
    MT_TRY(adjoint(b, mt__bw_result(b, 1), &turned));
    if (b->grads[1] != NULL) {
        MT_TRY(vectors_part(b, turned, &sum));
    }
    if (b->grads[0] != NULL) {
        MT_TRY(mt__bw_diagonal(b, b->grads[0], &step));
        MT_TRY(mt__bw_accumulate(b, &sum, step));
    }
    MT_TRY(mt__bw_times(b, sum, turned, &sum));
    MT_TRY(solve_complex(b, turned, sum, &sum));
    mt__bw_give(b, 0, sum);
    return MT_OK;
}
