/* SPDX-License-Identifier: Apache-2.0
 *
 * Determinants and inverses.
 */
#include "mindtorch/ops/linalg/op_linalg.h"

static const int64_t last = -1;

/* ---- determinants ---------------------------------------------------------------------------- */

/* -1 or 1: whether the number of exchanges of rows is odd. */
static int parity(mt__call *call, mt_tensor *pivots, mt_dtype dtype, mt_tensor **out)
{
    int64_t n = pivots->sizes[pivots->n_dims - 1];
    mt_tensor **order = mt__temp(call);
    mt_tensor **moved = mt__temp(call);
    mt_tensor **count = mt__temp(call);
    mt_tensor **odd = mt__temp(call);
    mt_tensor **sign = mt__temp(call);
    MT_TRY(mt_arange_with(mt_int(1), mt_int(n + 1), mt_int(1), MT_DTYPE_I32, call->device, order));
    MT_TRY(mt_ne(pivots, *order, moved));
    MT_TRY(mt_sum(*moved, &last, 1, false, count));
    MT_TRY(mt_remainder_scalar(*count, mt_int(2), odd));
    MT_TRY(mt__to_copy_with(*odd, dtype, MT_DEVICE_NONE, false, sign));
    MT_TRY(mt_mul_scalar_(*sign, mt_int(-2)));
    MT_TRY(mt_add_scalar_(*sign, mt_int(1)));
    *out = *sign;
    return MT_OK;
}

/* The factors as result `first` and the pivots as the next one; *diagonal: that of U. */
static int factor(mt__call *call, uint32_t first, mt_tensor *a, mt_tensor **diagonal,
                  mt_tensor **sign)
{
    mt_tensor **place = mt__temp(call);
    mt_tensor **info = mt__temp(call);
    MT_TRY(mt_linalg_lu_factor_ex(a, mt__result_place(call, first),
                                  mt__result_place(call, first + 1), info));
    MT_TRY(mt_diagonal(call->results[first].of.tensor, 0, -2, -1, place));
    *diagonal = *place;
    return parity(call, call->results[first + 1].of.tensor, (mt_dtype)a->dtype, sign);
}

int mt__run__linalg_det(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *diagonal = NULL;
    mt_tensor *sign = NULL;
    mt_tensor **product = mt__temp(call);
    MT_TRY(mt__need_square("linalg.det", "A", a));
    MT_TRY(mt__need_floating("linalg.det", a));
    MT_TRY(factor(call, 1, a, &diagonal, &sign));
    MT_TRY(mt_prod_dim_int(diagonal, -1, false, product));
    return mt_mul(*product, sign, mt__result_place(call, 0));
}

int mt__run_linalg_det(mt__call *call)
{
    mt_tensor **factors = mt__temp(call);
    mt_tensor **pivots = mt__temp(call);
    return mt__linalg_det(mt__arg_tensor(call, 0), mt__result_place(call, 0), factors, pivots);
}

int mt__run__linalg_slogdet(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *diagonal = NULL;
    mt_tensor *parity_sign = NULL;
    mt_tensor **signs = mt__temp(call);
    mt_tensor **sign = mt__temp(call);
    mt_tensor **sizes = mt__temp(call);
    mt_tensor **logs = mt__temp(call);
    MT_TRY(mt__need_square("linalg.slogdet", "A", a));
    MT_TRY(mt__need_precision("linalg.slogdet", a));
    MT_TRY(factor(call, 2, a, &diagonal, &parity_sign));
    MT_TRY(mt_sign(diagonal, signs));
    MT_TRY(mt_prod_dim_int(*signs, -1, false, sign));
    MT_TRY(mt_mul(*sign, parity_sign, mt__result_place(call, 0)));
    MT_TRY(mt_abs(diagonal, sizes));
    MT_TRY(mt_log(*sizes, logs));
    return mt_sum(*logs, &last, 1, false, mt__result_place(call, 1));
}

int mt__run_linalg_slogdet(mt__call *call)
{
    mt_tensor **factors = mt__temp(call);
    mt_tensor **pivots = mt__temp(call);
    return mt__linalg_slogdet(mt__arg_tensor(call, 0), mt__result_place(call, 0),
                              mt__result_place(call, 1), factors, pivots);
}

int mt__run_slogdet(mt__call *call)
{
    return mt_linalg_slogdet(mt__arg_tensor(call, 0), mt__result_place(call, 0),
                             mt__result_place(call, 1));
}

int mt__run_logdet(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor **sign = mt__temp(call);
    mt_tensor **logarithm = mt__temp(call);
    mt_tensor **negative = mt__temp(call);
    MT_TRY(mt__need_square("logdet", "A", a));
    MT_TRY(mt__need_precision("logdet", a));
    MT_TRY(mt_linalg_slogdet(a, sign, logarithm));
    MT_TRY(mt_eq_scalar(*sign, mt_int(-1), negative));
    return mt_where_scalar_tensor(*negative, mt_real(__builtin_nan("")), *logarithm,
                                  mt__result_place(call, 0));
}

/* ---- inverses -------------------------------------------------------------------------------- */

int mt__run_linalg_inv_ex(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *out = NULL;
    mt_tensor **factors = mt__temp(call);
    mt_tensor **pivots = mt__temp(call);
    mt__shape shape = mt__tensor_shape(a);
    MT_TRY(mt__need_square("linalg.inv", "A", a));
    MT_TRY(mt__need_precision("linalg.inv", a));
    MT_TRY(mt__column_new(call, 0, (mt_dtype)a->dtype, &shape, &out));
    MT_TRY(mt__fill_identity(call, out));
    MT_TRY(mt_linalg_lu_factor_ex(a, factors, pivots, mt__result_place(call, 1)));
    MT_TRY(mt__linalg(call, &(mt__linalg_args){.code = MT_LINALG_LU_SOLVE,
                                               .kinds = "mmv",
                                               .tensors = {out, *factors, *pivots}}));
    return mt__arg_bool(call, 1)
               ? mt__linalg_check("linalg.inv_ex", call->results[1].of.tensor, MT_FAILED_INVERSE)
               : MT_OK;
}

int mt__run_linalg_inv(mt__call *call)
{
    mt_tensor **info = mt__temp(call);
    MT_TRY(mt_linalg_inv_ex(mt__arg_tensor(call, 0), mt__result_place(call, 0), info));
    return mt__linalg_check("linalg.inv", *info, MT_FAILED_INVERSE);
}

/* ---- pseudoinverses -------------------------------------------------------------------------- */

static int check_pinv(const mt_tensor *a)
{
    char shape[MT_SHAPE_TEXT];
    if (a->n_dims >= 2 && (a->dtype == MT_DTYPE_F32 || a->dtype == MT_DTYPE_F64)) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME,
                    "linalg.pinv(%s{%s}): expected a tensor with 2 or more dimensions of float, "
                    "double, cfloat or cdouble types",
                    mt__type_title((mt_dtype)a->dtype), mt__shape_text(a->sizes, a->n_dims, shape));
}

/* 1 / values where |values| is above the limit, else 0. */
static int invert(mt__call *call, mt_tensor *values, mt_tensor *like, bool hermitian,
                  mt_tensor **out)
{
    mt_tensor *sizes = values;
    mt_tensor *limit = NULL;
    mt_tensor **above = mt__temp(call);
    mt_tensor **inverses = mt__temp(call);
    mt_tensor **kept = mt__temp(call);
    if (hermitian) {
        mt_tensor **absolute = mt__temp(call);
        MT_TRY(mt_abs(values, absolute));
        sizes = *absolute;
    }
    MT_TRY(mt__linalg_limit(call, sizes, like, &call->args[1], &call->args[2], &limit));
    MT_TRY(mt_gt(sizes, limit, above));
    MT_TRY(mt_reciprocal(values, inverses));
    MT_TRY(mt_where_tensor_scalar(*above, *inverses, mt_real(0), kept));
    *out = *kept;
    return MT_OK;
}

int mt__run_linalg_pinv(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    bool hermitian = mt__arg_bool(call, 3);
    MT_TRY(check_pinv(a));
    if (hermitian) {
        MT_TRY(mt__need_square("linalg.pinv", "A", a));
    }
    if (a->numel == 0) {
        mt__shape shape = mt__batch_and(a, 2, mt__rows(a), mt__rows(a));
        mt_tensor **nothing = mt__temp(call);
        mt_tensor **other = mt__temp(call);
        MT_TRY(mt_zeros_with(shape.sizes, shape.n_dims, (mt_dtype)a->dtype, call->device, nothing));
        MT_TRY(mt_transpose(a, -2, -1, other));
        return mt_matmul(*other, *nothing, mt__result_place(call, 0)); /* autocast knows matmul */
    }
    mt_tensor **left = mt__temp(call);
    mt_tensor **values = mt__temp(call);
    mt_tensor **right = mt__temp(call);
    if (hermitian) {
        MT_TRY(mt_linalg_eigh(a, "L", values, left));
        MT_TRY(mt_transpose(*left, -2, -1, right));
    } else {
        MT_TRY(mt_linalg_svd(a, false, left, values, right));
    }
    mt_tensor *inverses = NULL;
    mt_tensor **row = mt__temp(call);
    mt_tensor **turned = mt__temp(call);
    mt_tensor **scaled = mt__temp(call);
    mt_tensor **other = mt__temp(call);
    MT_TRY(invert(call, *values, a, hermitian, &inverses));
    MT_TRY(mt_unsqueeze(inverses, -2, row));
    MT_TRY(mt_transpose(*right, -2, -1, turned));
    MT_TRY(mt_mul(*turned, *row, scaled));
    MT_TRY(mt_transpose(*left, -2, -1, other));
    return mt_matmul(*scaled, *other, mt__result_place(call, 0));
}

/* A tolerance as a 0-d tensor; NULL: not given. */
static int tolerance(mt__call *call, const mt_value *number, mt_tensor **out)
{
    *out = NULL;
    if (number->kind == MT_KIND_NONE) {
        return MT_OK;
    }
    mt_tensor **made = mt__temp(call);
    MT_TRY(mt_full_with(NULL, 0, *number, (mt_dtype)mt__arg_tensor(call, 0)->dtype, call->device,
                        made));
    *out = *made;
    return MT_OK;
}

static int pinv(mt__call *call, const mt_value *atol, const mt_value *rtol, bool hermitian)
{
    mt_tensor *absolute = NULL;
    mt_tensor *relative = NULL;
    MT_TRY(check_pinv(mt__arg_tensor(call, 0)));
    MT_TRY(tolerance(call, atol, &absolute));
    MT_TRY(tolerance(call, rtol, &relative));
    return mt_linalg_pinv_atol_rtol_tensor_with(mt__arg_tensor(call, 0), absolute, relative,
                                                hermitian, mt__result_place(call, 0));
}

int mt__run_linalg_pinv_numbers(mt__call *call)
{
    return pinv(call, &call->args[1], &call->args[2], mt__arg_bool(call, 3));
}

int mt__run_linalg_pinv_rcond(mt__call *call)
{
    const mt_value none = {.kind = MT_KIND_NONE};
    return pinv(call, &none, &call->args[1], mt__arg_bool(call, 2));
}

int mt__run_pinverse(mt__call *call)
{
    return mt_linalg_pinv(mt__arg_tensor(call, 0), mt__arg_real(call, 1), false,
                          mt__result_place(call, 0));
}
