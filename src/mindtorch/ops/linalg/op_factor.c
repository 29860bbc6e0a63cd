/* SPDX-License-Identifier: Apache-2.0
 *
 * Factorisations: LU, Cholesky, QR.
 */
#include "mindtorch/ops/linalg/op_linalg.h"

#include <string.h>

/* ---- LU -------------------------------------------------------------------------------------- */

static int check_lu(const char *op, const mt_tensor *a, bool pivot)
{
    char shape[MT_SHAPE_TEXT];
    if (a->n_dims < 2) {
        return mtb_fail(MT_ERUNTIME,
                        "%s: Expected tensor with 2 or more dimensions. Got size: %s instead", op,
                        mt__shape_text(a->sizes, a->n_dims, shape));
    }
    MT_TRY(mt__need_single_or_double("lu_cpu", a));
    if (!pivot) {
        return mtb_fail(MT_ERUNTIME,
                        "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
    }
    return MT_OK;
}

/* Results or temporaries: [factors, pivots, info]. */
static int factor(mt__call *call, mt_tensor *a, const int results[3], mt_tensor *out[3])
{
    mt__shape whole = mt__tensor_shape(a);
    mt__shape ranks = mt__batch_and(a, 1, mt__less(mt__rows(a), mt__columns(a)), 0);
    mt__shape numbers = mt__batch_and(a, 0, 0, 0);
    MT_TRY(mt__column_copy(call, results[0], (mt_dtype)a->dtype, &whole, a, &out[0]));
    MT_TRY(mt__plain_new(call, results[1], MT_DTYPE_I32, &ranks, &out[1]));
    MT_TRY(mt__plain_new(call, results[2], MT_DTYPE_I32, &numbers, &out[2]));
    return mt__linalg(call, &(mt__linalg_args){.code = MT_LINALG_LU,
                                               .kinds = "mvn",
                                               .tensors = {out[0], out[1], out[2]}});
}

int mt__run_linalg_lu_factor_ex(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *out[3];
    MT_TRY(check_lu("torch.lu_factor", a, mt__arg_bool(call, 1)));
    MT_TRY(factor(call, a, (const int[]){0, 1, 2}, out));
    return mt__arg_bool(call, 2)
               ? mt__linalg_check("torch.linalg.lu_factor_ex", out[2], MT_FAILED_LU)
               : MT_OK;
}

int mt__run_linalg_lu_factor(mt__call *call)
{
    mt_tensor **info = mt__temp(call);
    MT_TRY(mt_linalg_lu_factor_ex_with(mt__arg_tensor(call, 0), mt__arg_bool(call, 1), false,
                                       mt__result_place(call, 0), mt__result_place(call, 1), info));
    return mt__linalg_check("torch.linalg.lu_factor", *info, MT_FAILED_LU);
}

int mt__run__lu_with_info(mt__call *call)
{
    return mt_linalg_lu_factor_ex_with(mt__arg_tensor(call, 0), mt__arg_bool(call, 1),
                                       mt__arg_bool(call, 2), mt__result_place(call, 0),
                                       mt__result_place(call, 1), mt__result_place(call, 2));
}

/* L [m, k] with ones on its diagonal and U [k, n], k the smaller side, as results 0 and 1. */
static int give_parts(mt__call *call, mt_tensor *factors)
{
    int64_t k = mt__less(mt__rows(factors), mt__columns(factors));
    mt_tensor **left = mt__temp(call);
    mt_tensor **upper = mt__temp(call);
    mt_tensor **diagonal = mt__temp(call);
    mt_tensor *lower = NULL;
    MT_TRY(mt_narrow(factors, -1, 0, k, left));
    MT_TRY(mt_tril(*left, -1, &lower));
    mt__give(call, 0, lower);
    MT_TRY(mt_diagonal(lower, 0, -2, -1, diagonal));
    MT_TRY(mt_fill_scalar_(*diagonal, mt_int(1)));
    MT_TRY(mt_narrow(factors, -2, 0, k, upper));
    return mt_triu(*upper, 0, mt__result_place(call, 1));
}

int mt__run__linalg_lu_parts(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *out[3];
    MT_TRY(check_lu("linalg.lu", a, mt__arg_bool(call, 1)));
    MT_TRY(factor(call, a, (const int[]){MT_TEMPORARY, 2, MT_TEMPORARY}, out));
    return give_parts(call, out[0]);
}

int mt__run_linalg_lu(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor **pivots = mt__temp(call);
    MT_TRY(mt__linalg_lu_parts(a, mt__arg_bool(call, 1), mt__result_place(call, 1),
                               mt__result_place(call, 2), pivots));
    return mt__lu_permutation(*pivots, mt__rows(a), (mt_dtype)a->dtype, mt__result_place(call, 0));
}

int mt__run__lu_permutation(mt__call *call)
{
    mt_tensor *pivots = mt__arg_tensor(call, 0);
    mt__shape shape = mt__tensor_shape(pivots);
    mt_tensor *packed = NULL;
    mt_tensor *out = NULL;
    if (pivots->n_dims == 0 || pivots->n_dims >= MT_MAX_DIMS || pivots->dtype != MT_DTYPE_I32) {
        return mtb_fail(MT_ERUNTIME,
                        "pivots must be int32, with at least 1 dimension; got %s and %u",
                        mt_dtype_name((mt_dtype)pivots->dtype), (unsigned)pivots->n_dims);
    }
    if (mt__arg_int(call, 1) < pivots->sizes[pivots->n_dims - 1]) {
        return mtb_fail(MT_ERUNTIME, "%lld pivots for a matrix with %lld rows",
                        (long long)pivots->sizes[pivots->n_dims - 1],
                        (long long)mt__arg_int(call, 1));
    }
    shape.sizes[shape.n_dims - 1] = mt__arg_int(call, 1);
    shape.sizes[shape.n_dims++] = mt__arg_int(call, 1);
    MT_TRY(mt__contiguous(call, pivots, &packed));
    MT_TRY(mt__result_new(call, 0, mt__arg_dtype(call, 2), &shape, &out));
    return mt__linalg(
        call,
        &(mt__linalg_args){.code = MT_LINALG_PERMUTATION, .kinds = "mv", .tensors = {out, packed}});
}

int mt__run__lu_unpack_data(mt__call *call)
{
    mt_tensor *factors = mt__arg_tensor(call, 0);
    MT_TRY(mt__need_matrix("torch.lu_unpack", "LU_data", factors));
    return give_parts(call, factors);
}

/* An empty tensor of the type of `like`, as result i. */
static int give_empty(mt__call *call, uint32_t i, const mt_tensor *like)
{
    const mt__shape nothing = {.n_dims = 1, .sizes = {0}};
    mt_tensor *out = NULL;
    return mt__result_new(call, i, (mt_dtype)like->dtype, &nothing, &out);
}

int mt__run_lu_unpack(mt__call *call)
{
    mt_tensor *factors = mt__arg_tensor(call, 0);
    mt_tensor *pivots = mt__arg_tensor(call, 1);
    MT_TRY(mt__need_matrix("torch.lu_unpack", "LU_data", factors));
    if (mt__arg_bool(call, 3) && pivots->dtype != MT_DTYPE_I32) {
        return mtb_fail(MT_ERUNTIME,
                        "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of "
                        "torch.int32 dtype.\nNote: this function is intended to be used with the "
                        "output produced by torch.linalg.lu_factor");
    }
    MT_TRY(mt__arg_bool(call, 3)
               ? mt__lu_permutation(pivots, mt__rows(factors), (mt_dtype)factors->dtype,
                                    mt__result_place(call, 0))
               : give_empty(call, 0, factors));
    if (mt__arg_bool(call, 2)) {
        return mt__lu_unpack_data(factors, mt__result_place(call, 1), mt__result_place(call, 2));
    }
    MT_TRY(give_empty(call, 1, factors));
    return give_empty(call, 2, factors);
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

/* The factor as result 0; *info is result `place`, or a temporary. */
static int cholesky(mt__call *call, bool upper, int place, mt_tensor **info)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt__shape whole = mt__tensor_shape(a);
    mt__shape numbers = mt__batch_and(a, 0, 0, 0);
    mt_tensor *out = NULL;
    MT_TRY(mt__column_copy(call, 0, (mt_dtype)a->dtype, &whole, a, &out));
    MT_TRY(mt__plain_new(call, place, MT_DTYPE_I32, &numbers, info));
    return mt__linalg(call, &(mt__linalg_args){.code = MT_LINALG_CHOLESKY,
                                               .kinds = "mn",
                                               .tensors = {out, *info},
                                               .ints = {upper}});
}

int mt__run_linalg_cholesky_ex(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *info = NULL;
    MT_TRY(mt__need_square("linalg.cholesky", "A", a));
    MT_TRY(mt__need_floating("linalg.cholesky", a));
    MT_TRY(mt__need_single_or_double("cholesky_cpu", a));
    MT_TRY(cholesky(call, mt__arg_bool(call, 1), 1, &info));
    return mt__arg_bool(call, 2) ? mt__linalg_check("linalg.cholesky_ex", info, MT_FAILED_CHOLESKY)
                                 : MT_OK;
}

int mt__run_linalg_cholesky(mt__call *call)
{
    mt_tensor **info = mt__temp(call);
    MT_TRY(mt_linalg_cholesky_ex_with(mt__arg_tensor(call, 0), mt__arg_bool(call, 1), false,
                                      mt__result_place(call, 0), info));
    return mt__linalg_check("linalg.cholesky", *info, MT_FAILED_CHOLESKY);
}

int mt__run_cholesky(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *info = NULL;
    MT_TRY(mt__need_square("cholesky", "A", a));
    MT_TRY(mt__need_single_or_double("cholesky_cpu", a));
    MT_TRY(cholesky(call, mt__arg_bool(call, 1), MT_TEMPORARY, &info));
    return mt__linalg_check("cholesky", info, MT_FAILED_CHOLESKY);
}

/* ---- QR -------------------------------------------------------------------------------------- */

/* R and Householder vectors of `a`, and their factors. */
static int reflect(mt__call *call, mt_tensor *a, const int results[2], mt_tensor *out[2])
{
    mt__shape whole = mt__tensor_shape(a);
    mt__shape ranks = mt__batch_and(a, 1, mt__less(mt__rows(a), mt__columns(a)), 0);
    MT_TRY(mt__column_copy(call, results[0], (mt_dtype)a->dtype, &whole, a, &out[0]));
    MT_TRY(mt__plain_new(call, results[1], (mt_dtype)a->dtype, &ranks, &out[1]));
    return mt__linalg(call, &(mt__linalg_args){.code = MT_LINALG_REFLECTORS,
                                               .kinds = "mv",
                                               .tensors = {out[0], out[1]}});
}

static int give_q(mt__call *call, mt_tensor *const parts[2], int64_t width)
{
    mt_tensor *vectors = parts[0];
    int64_t n = mt__columns(vectors);
    mt_tensor *q = vectors;
    if (mt__rows(vectors) == 0 || n == 0) { /* no vectors: the identity */
        mt__shape shape = mt__batch_and(vectors, 2, mt__rows(vectors), width);
        MT_TRY(mt__column_new(call, 0, (mt_dtype)vectors->dtype, &shape, &q));
        return mt__fill_identity(call, q);
    }
    if (width == n) {
        mt__result_same(call, 0, vectors);
    } else {
        mt__shape shape = mt__batch_and(vectors, 2, mt__rows(vectors), width);
        mt_tensor **from = mt__temp(call);
        mt_tensor **to = mt__temp(call);
        MT_TRY(mt__column_new(call, 0, (mt_dtype)vectors->dtype, &shape, &q));
        MT_TRY(mt_narrow(vectors, -1, 0, mt__less(width, n), from));
        MT_TRY(mt_narrow(q, -1, 0, mt__less(width, n), to));
        MT_TRY(mt__copy_elements(*to, *from));
    }
    return mt__linalg(
        call,
        &(mt__linalg_args){.code = MT_LINALG_REFLECTED, .kinds = "mv", .tensors = {q, parts[1]}});
}

int mt__run_linalg_qr(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    const char *mode = call->args[1].of.text;
    bool complete = strcmp(mode, "complete") == 0;
    bool only_r = strcmp(mode, "r") == 0;
    mt_tensor *parts[2];
    MT_TRY(mt__need_matrix("linalg.qr", "A", a));
    MT_TRY(mt__need_floating("linalg.qr", a));
    if (!complete && !only_r && strcmp(mode, "reduced") != 0) {
        return mtb_fail(MT_ERUNTIME,
                        "qr received unrecognized mode '%.32s' but expected one of 'reduced' "
                        "(default), 'r', or 'complete'",
                        mode);
    }
    MT_TRY(mt__need_single_or_double("geqrf_cpu", a));
    MT_TRY(reflect(call, a, (const int[]){MT_TEMPORARY, MT_TEMPORARY}, parts));
    int64_t rows = complete ? mt__rows(a) : mt__less(mt__rows(a), mt__columns(a));
    mt__shape shape = mt__batch_and(a, 2, rows, mt__columns(a));
    mt_tensor **top = mt__temp(call);
    mt_tensor **r = mt__temp(call);
    mt_tensor *out = NULL;
    MT_TRY(mt_narrow(parts[0], -2, 0, rows, top));
    MT_TRY(mt_triu(*top, 0, r));
    MT_TRY(mt__column_copy(call, 1, (mt_dtype)a->dtype, &shape, *r, &out));
    return only_r ? give_empty(call, 0, a) : give_q(call, parts, rows);
}

int mt__run_qr(mt__call *call)
{
    return mt_linalg_qr(mt__arg_tensor(call, 0), mt__arg_bool(call, 1) ? "reduced" : "complete",
                        mt__result_place(call, 0), mt__result_place(call, 1));
}

int mt__run_geqrf(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *parts[2];
    if (a->n_dims < 2) {
        return mtb_fail(MT_ERUNTIME, "torch.geqrf: input must have at least 2 dimensions.");
    }
    MT_TRY(mt__need_single_or_double("geqrf_cpu", a));
    return reflect(call, a, (const int[]){0, 1}, parts);
}

static int check_product(const mt_tensor *a, const mt_tensor *tau)
{
    const char *op = "torch.linalg.householder_product";
    if (a->n_dims < 2) {
        return mtb_fail(MT_ERUNTIME, "%s: input must have at least 2 dimensions.", op);
    }
    if (mt__rows(a) < mt__columns(a)) {
        return mtb_fail(MT_ERUNTIME,
                        "%s: input.shape[-2] must be greater than or equal to input.shape[-1]", op);
    }
    if (tau->n_dims + 1 != a->n_dims) {
        return mtb_fail(MT_ERUNTIME,
                        "%s: Expected tau to have one dimension less than input, but got tau.ndim "
                        "equal to %u and input.ndim is equal to %u",
                        op, (unsigned)tau->n_dims, (unsigned)a->n_dims);
    }
    if (mt__columns(a) < tau->sizes[tau->n_dims - 1]) {
        return mtb_fail(MT_ERUNTIME,
                        "%s: input.shape[-1] must be greater than or equal to tau.shape[-1]", op);
    }
    for (uint32_t i = 0; i + 2 < a->n_dims; i++) {
        char want[MT_SHAPE_TEXT];
        char have[MT_SHAPE_TEXT];
        if (a->sizes[i] != tau->sizes[i]) {
            return mtb_fail(MT_ERUNTIME,
                            "%s: Expected batch dimensions of tau to be equal to "
                            "input.shape[:-2], but got %s and %s",
                            op, mt__shape_text(tau->sizes, tau->n_dims - 1U, have),
                            mt__shape_text(a->sizes, a->n_dims - 2U, want));
        }
    }
    if (a->dtype != tau->dtype) {
        return mtb_fail(MT_ERUNTIME, "%s: tau dtype %s does not match input dtype %s", op,
                        mt__type_title((mt_dtype)tau->dtype), mt__type_title((mt_dtype)a->dtype));
    }
    return MT_OK;
}

int mt__run_linalg_householder_product(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *tau = mt__arg_tensor(call, 1);
    mt_tensor *out = NULL;
    mt__shape shape = mt__tensor_shape(a);
    MT_TRY(check_product(a, tau));
    MT_TRY(mt__need_single_or_double("orgqr_cpu", a));
    MT_TRY(mt__contiguous(call, tau, &tau));
    MT_TRY(mt__column_copy(call, 0, (mt_dtype)a->dtype, &shape, a, &out));
    return mt__linalg(call, &(mt__linalg_args){
                                .code = MT_LINALG_REFLECTED, .kinds = "mv", .tensors = {out, tau}});
}
