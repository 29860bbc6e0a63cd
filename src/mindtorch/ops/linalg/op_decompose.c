/* SPDX-License-Identifier: Apache-2.0
 *
 * Eigenvalues of symmetric and other matrices, singular values, and the ranks that follow from
 * them.
 */
#include "mindtorch/ops/linalg/op_linalg.h"

#include <mindtorch/autograd.h>

#include <float.h>

static const mt__shape nothing = {.n_dims = 1, .sizes = {0}};

/* ---- symmetric matrices ---------------------------------------------------------------------- */

int mt__run__linalg_eigh(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    const char *half = call->args[1].of.text;
    bool vectors = mt__arg_bool(call, 2);
    bool upper = half[0] == 'U' || half[0] == 'u';
    mt__shape whole = mt__tensor_shape(a);
    mt_tensor *out[3];
    MT_TRY(mt__need_square("linalg.eigh", "A", a));
    if (half[0] == '\0' || half[1] != '\0' || (!upper && half[0] != 'L' && half[0] != 'l')) {
        return mtb_fail(MT_ERUNTIME, "Expected UPLO argument to be 'L' or 'U', but got %.32s",
                        half);
    }
    MT_TRY(mt__need_single_or_double("linalg_eigh_cpu", a));
    mt__shape line = mt__batch_and(a, 1, mt__rows(a), 0);
    mt__shape numbers = mt__batch_and(a, 0, 0, 0);
    MT_TRY(mt__plain_new(call, 0, (mt_dtype)a->dtype, &line, &out[1]));
    MT_TRY(
        mt__column_copy(call, vectors ? 1 : MT_TEMPORARY, (mt_dtype)a->dtype, &whole, a, &out[0]));
    MT_TRY(mt__temp_new(call, MT_DTYPE_I32, &numbers, &out[2]));
    if (!vectors) {
        mt_tensor *none = NULL;
        MT_TRY(mt__result_new(call, 1, (mt_dtype)a->dtype, &nothing, &none));
    }
    MT_TRY(mt__linalg(call, &(mt__linalg_args){.code = MT_LINALG_EIGEN,
                                               .kinds = "mvn",
                                               .tensors = {out[0], out[1], out[2]},
                                               .ints = {vectors, upper}}));
    return mt__linalg_check("linalg.eigh", out[2], MT_FAILED_EIGH);
}

int mt__run_linalg_eigh(mt__call *call)
{
    return mt__linalg_eigh(mt__arg_tensor(call, 0), call->args[1].of.text, true,
                           mt__result_place(call, 0), mt__result_place(call, 1));
}

/* Whether a gradient will be asked for, for which vectors are needed. */
static bool needs_vectors(const mt_tensor *a)
{
    return mt_grad_enabled() && a->requires_grad;
}

int mt__run_linalg_eigvalsh(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    return mt__linalg_eigh(a, call->args[1].of.text, needs_vectors(a), mt__result_place(call, 0),
                           mt__temp(call));
}

/* ---- any square matrix ----------------------------------------------------------------------- */

/* Result 0 has the values, result 1 the vectors if they are asked for. */
static int run_eig(mt__call *call, const char *name, bool vectors)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_dtype dtype = (mt_dtype)a->dtype;
    mt_tensor *out[4] = {NULL};
    MT_TRY(mt__need_square(name, "A", a));
    if (mt_dtype_category(dtype) < MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME, "Unknown Complex ScalarType for %s", mt__type_title(dtype));
    }
    if (mt_dtype_category(dtype) != MT_CATEGORY_COMPLEX) {
        MT_TRY(mt__need_single_or_double("linalg_eig_out_cpu", a));
    }
    bool twice = dtype == MT_DTYPE_F64 || dtype == MT_DTYPE_C128;
    mt_dtype found = twice ? MT_DTYPE_C128 : MT_DTYPE_C64;
    mt__shape whole = mt__tensor_shape(a);
    mt__shape line = mt__batch_and(a, 1, mt__rows(a), 0);
    mt__shape numbers = mt__batch_and(a, 0, 0, 0);
    MT_TRY(mt__plain_new(call, 0, found, &line, &out[0]));
    if (vectors) {
        MT_TRY(mt__column_new(call, 1, found, &whole, &out[1]));
    }
    MT_TRY(mt__column_copy(call, MT_TEMPORARY, dtype, &whole, a, &out[2]));
    MT_TRY(mt__temp_new(call, MT_DTYPE_I32, &numbers, &out[3]));
    MT_TRY(mt__linalg(call, &(mt__linalg_args){.code = MT_LINALG_EIGEN_GENERAL,
                                               .kinds = vectors ? "vmmn" : "v-mn",
                                               .tensors = {out[0], out[1], out[2], out[3]}}));
    return mt__linalg_check(name, out[3], MT_FAILED_EIG);
}

MT_RUN(linalg_eig, run_eig, "linalg.eig", true)
MT_RUN(_linalg_eigvals, run_eig, "linalg.eigvals", false)

int mt__run_linalg_eigvals(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    if (needs_vectors(a)) {
        return mt_linalg_eig(a, mt__result_place(call, 0), mt__temp(call));
    }
    return mt__linalg_eigvals(a, mt__result_place(call, 0));
}

/* ---- singular values ------------------------------------------------------------------------- */

/* The results of matrices without elements: vectors are the identity's. */
static int give_identities(mt__call *call, mt_tensor *const out[3])
{
    MT_TRY(mt__fill_identity(call, out[0]));
    return mt__fill_identity(call, out[2]);
}

int mt__run__linalg_svd(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_dtype dtype = (mt_dtype)a->dtype;
    bool whole = mt__arg_bool(call, 1);
    bool vectors = mt__arg_bool(call, 2);
    mt_tensor *out[5];
    MT_TRY(mt__need_matrix("linalg.svd", "A", a));
    MT_TRY(mt__need_floating("linalg.svd", a));
    MT_TRY(mt__need_single_or_double("linalg_svd_cpu", a));
    if (mt__arg_given(call, 3)) {
        return mtb_fail(MT_ERUNTIME,
                        "torch.linalg.svd: keyword argument `driver=` is only supported "
                        "on CUDA inputs with cuSOLVER backend.");
    }
    int64_t m = mt__rows(a);
    int64_t n = mt__columns(a);
    int64_t k = mt__less(m, n);
    mt__shape left = mt__batch_and(a, 2, m, whole ? m : k);
    mt__shape values = mt__batch_and(a, 1, k, 0);
    mt__shape right = mt__batch_and(a, 2, whole ? n : k, n);
    mt__shape numbers = mt__batch_and(a, 0, 0, 0);
    mt__shape shape = mt__tensor_shape(a);
    if (vectors) {
        MT_TRY(mt__column_new(call, 0, dtype, &left, &out[0]));
        MT_TRY(mt__column_new(call, 2, dtype, &right, &out[2]));
    } else {
        MT_TRY(mt__result_new(call, 0, dtype, &nothing, &out[0]));
        MT_TRY(mt__result_new(call, 2, dtype, &nothing, &out[2]));
    }
    MT_TRY(mt__result_new(call, 1, dtype, &values, &out[1]));
    if (k == 0) {
        return vectors ? give_identities(call, out) : MT_OK;
    }
    MT_TRY(mt__column_copy(call, MT_TEMPORARY, dtype, &shape, a, &out[3]));
    MT_TRY(mt__temp_new(call, MT_DTYPE_I32, &numbers, &out[4]));
    MT_TRY(mt__linalg(call, &(mt__linalg_args){.code = MT_LINALG_SINGULAR,
                                               .kinds = vectors ? "mvmmn" : "-v-mn",
                                               .tensors = {out[0], out[1], out[2], out[3], out[4]},
                                               .ints = {whole}}));
    return mt__linalg_check("linalg.svd", out[4], MT_FAILED_SVD);
}

static const char *driver_of(const mt__call *call, uint32_t i)
{
    return mt__arg_given(call, i) ? call->args[i].of.text : NULL;
}

int mt__run_linalg_svd(mt__call *call)
{
    return mt__linalg_svd_with(mt__arg_tensor(call, 0), mt__arg_bool(call, 1), true,
                               driver_of(call, 2), mt__result_place(call, 0),
                               mt__result_place(call, 1), mt__result_place(call, 2));
}

int mt__run_linalg_svdvals(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor **left = mt__temp(call);
    mt_tensor **right = mt__temp(call);
    return mt__linalg_svd_with(a, false, needs_vectors(a), driver_of(call, 1), left,
                               mt__result_place(call, 0), right);
}

int mt__run_svd(mt__call *call)
{
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor **right = mt__temp(call);
    if (a->n_dims < 2) {
        return mtb_fail(
            MT_ERUNTIME,
            "linalg.svd: input should have at least 2 dimensions, but has %u dimensions instead",
            (unsigned)a->n_dims);
    }
    if (!mt__arg_bool(call, 2)) { /* vectors are zeros */
        mt__shape left = mt__batch_and(a, 2, mt__rows(a), mt__rows(a));
        mt__shape turned = mt__batch_and(a, 2, mt__columns(a), mt__columns(a));
        MT_TRY(mt_linalg_svdvals(a, mt__result_place(call, 1)));
        MT_TRY(mt_zeros_with(left.sizes, left.n_dims, (mt_dtype)a->dtype, call->device,
                             mt__result_place(call, 0)));
        return mt_zeros_with(turned.sizes, turned.n_dims, (mt_dtype)a->dtype, call->device,
                             mt__result_place(call, 2));
    }
    MT_TRY(mt_linalg_svd(a, !mt__arg_bool(call, 1), mt__result_place(call, 0),
                         mt__result_place(call, 1), right));
    return mt_transpose(*right, -2, -1, mt__result_place(call, 2));
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* mt__linalg_limit() of numbers; NULL: not given. */
static int limit_of(mt__call *call, mt_tensor *values, const double *atol, const double *rtol,
                    double usual, mt_tensor **out)
{
    static const int64_t last = -1;
    double relative = rtol != NULL ? *rtol : atol != NULL && *atol > 0 ? 0 : usual;
    mt_tensor **largest = mt__temp(call);
    mt_tensor **scaled = mt__temp(call);
    mt_tensor **limit = mt__temp(call);
    MT_TRY(mt_amax(values, &last, 1, true, largest));
    MT_TRY(mt_mul_scalar(*largest, mt_real(relative), scaled));
    MT_TRY(mt_clamp_min(*scaled, mt_real(atol != NULL ? *atol : 0), limit));
    *out = *limit;
    return MT_OK;
}

/* The same with tensors. */
static int limit_of_tensors(mt__call *call, mt_tensor *values, mt_tensor *atol, mt_tensor *rtol,
                            double usual, mt_tensor **out)
{
    static const int64_t last = -1;
    mt_tensor **largest = mt__temp(call);
    mt_tensor **scaled = mt__temp(call);
    mt_tensor **limit = mt__temp(call);
    mt_tensor **wide = mt__temp(call);
    MT_TRY(mt_amax(values, &last, 1, false, largest));
    if (rtol != NULL) {
        MT_TRY(mt_mul(*largest, rtol, scaled));
    } else {
        MT_TRY(mt_mul_scalar(*largest, mt_real(usual), scaled));
    }
    if (atol != NULL && rtol == NULL) { /* rtol is 0 where atol is above it */
        mt_tensor **given = mt__temp(call);
        mt_tensor **kept = mt__temp(call);
        MT_TRY(mt_gt_scalar(atol, mt_int(0), given));
        MT_TRY(mt_where_scalar_tensor(*given, mt_real(0), *scaled, kept));
        scaled = kept;
    }
    if (atol != NULL) {
        MT_TRY(mt_maximum(atol, *scaled, limit));
    } else {
        limit = scaled;
    }
    MT_TRY(mt_unsqueeze(*limit, -1, wide));
    *out = *wide;
    return MT_OK;
}

int mt__linalg_limit(mt__call *call, mt_tensor *values, mt_tensor *like, const mt_value *atol,
                     const mt_value *rtol, mt_tensor **out)
{
    double eps = like->dtype == MT_DTYPE_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    int64_t side = mt__rows(like) > mt__columns(like) ? mt__rows(like) : mt__columns(like);
    double usual = eps * (double)side;
    if (atol->kind == MT_KIND_TENSOR || rtol->kind == MT_KIND_TENSOR) {
        return limit_of_tensors(call, values, atol->kind == MT_KIND_TENSOR ? atol->of.tensor : NULL,
                                rtol->kind == MT_KIND_TENSOR ? rtol->of.tensor : NULL, usual, out);
    }
    double a = atol->kind == MT_KIND_NONE ? 0 : mt__scalar_real(atol);
    double r = rtol->kind == MT_KIND_NONE ? 0 : mt__scalar_real(rtol);
    return limit_of(call, values, atol->kind == MT_KIND_NONE ? NULL : &a,
                    rtol->kind == MT_KIND_NONE ? NULL : &r, usual, out);
}

static int rank(mt__call *call, const mt_value *atol, const mt_value *rtol, bool hermitian)
{
    static const int64_t last = -1;
    mt_tensor *a = mt__arg_tensor(call, 0);
    mt_tensor *limit = NULL;
    mt_tensor **values = mt__temp(call);
    mt_tensor **above = mt__temp(call);
    if (a->n_dims < 2) {
        return mt__need_matrix("torch.linalg.matrix_rank", "input", a);
    }
    bool usual = rtol->kind == MT_KIND_NONE; /* eps is asked for */
    if (usual && a->dtype != MT_DTYPE_F32 && a->dtype != MT_DTYPE_F64) {
        return mtb_fail(MT_ERUNTIME,
                        "This function doesn't handle types other than float and double");
    }
    if (a->numel == 0) {
        mt__shape numbers = mt__batch_and(a, 0, 0, 0);
        return mt_zeros_with(numbers.sizes, numbers.n_dims, MT_DTYPE_I64, call->device,
                             mt__result_place(call, 0));
    }
    if (hermitian) {
        mt_tensor **plain = mt__temp(call);
        MT_TRY(mt_linalg_eigvalsh(a, "L", plain));
        MT_TRY(mt_abs(*plain, values));
    } else {
        MT_TRY(mt_linalg_svdvals(a, values));
    }
    MT_TRY(mt__linalg_limit(call, *values, a, atol, rtol, &limit));
    MT_TRY(mt_gt(*values, limit, above));
    return mt_sum(*above, &last, 1, false, mt__result_place(call, 0));
}

int mt__run_linalg_matrix_rank(mt__call *call)
{
    return rank(call, &call->args[1], &call->args[2], mt__arg_bool(call, 3));
}

int mt__run_linalg_matrix_rank_tol(mt__call *call)
{
    const mt_value none = mt_real(0);
    return rank(call, &call->args[1], &none, mt__arg_bool(call, 2));
}
