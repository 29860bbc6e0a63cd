/* SPDX-License-Identifier: Apache-2.0
 *
 * See op_linalg.h.
 */
#include "base/alloc.h"
#include "mindtorch/ops/linalg/op_linalg.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- checks ---------------------------------------------------------------------------------- */

int mt__need_matrix(const char *op, const char *argument, const mt_tensor *tensor)
{
    if (tensor->n_dims >= 2) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME, "%s: The input tensor %s must have at least 2 dimensions.", op,
                    argument);
}

int mt__need_square(const char *op, const char *argument, const mt_tensor *tensor)
{
    MT_TRY(mt__need_matrix(op, argument, tensor));
    if (mt__rows(tensor) == mt__columns(tensor)) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME,
                    "%s: %s must be batches of square matrices, but they are %" PRId64
                    " by %" PRId64 " matrices",
                    op, argument, mt__rows(tensor), mt__columns(tensor));
}

int mt__need_floating(const char *op, const mt_tensor *tensor)
{
    if (mt__tensor_category(tensor) == MT_CATEGORY_REAL) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME, "%s: Expected a floating point or complex tensor as input. Got %s",
                    op, mt__type_title((mt_dtype)tensor->dtype));
}

static bool is_single_or_double(const mt_tensor *tensor)
{
    return tensor->dtype == MT_DTYPE_F32 || tensor->dtype == MT_DTYPE_F64;
}

int mt__need_precision(const char *op, const mt_tensor *tensor)
{
    MT_TRY(mt__need_floating(op, tensor));
    if (is_single_or_double(tensor)) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME, "%s: Low precision dtypes not supported. Got %s", op,
                    mt__type_title((mt_dtype)tensor->dtype));
}

int mt__need_single_or_double(const char *kernel, const mt_tensor *tensor)
{
    bool nothing = tensor->numel == 0 && mt__tensor_category(tensor) == MT_CATEGORY_REAL;
    return nothing || is_single_or_double(tensor)
               ? MT_OK
               : mt__refuse_type(kernel, (mt_dtype)tensor->dtype);
}

int mt__need_same_type(const char *op, const char *names[2], const mt_tensor *a, const mt_tensor *b)
{
    if (a->dtype == b->dtype) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME,
                    "%s: Expected %s and %s to have the same dtype, but found %s of type %s and %s "
                    "of type %s instead",
                    op, names[0], names[1], names[0], mt__type_title((mt_dtype)a->dtype), names[1],
                    mt__type_title((mt_dtype)b->dtype));
}

/* ---- tensors --------------------------------------------------------------------------------- */

mt__shape mt__batch_and(const mt_tensor *matrix, uint32_t n, int64_t first, int64_t second)
{
    mt__shape shape = mt__tensor_shape(matrix);
    shape.n_dims = matrix->n_dims - 2 + n;
    if (n > 0) {
        shape.sizes[matrix->n_dims - 2] = first;
    }
    if (n > 1) {
        shape.sizes[matrix->n_dims - 1] = second;
    }
    return shape;
}

int mt__plain_new(mt__call *call, int result, mt_dtype dtype, const mt__shape *shape,
                  mt_tensor **out)
{
    return result == MT_TEMPORARY ? mt__temp_new(call, dtype, shape, out)
                                  : mt__result_new(call, (uint32_t)result, dtype, shape, out);
}

/* The strides of matrices one after the other, each column-major. */
static void column_strides(const mt__shape *shape, int64_t *strides)
{
    mt__shape turned = *shape;
    uint32_t n = shape->n_dims;
    turned.sizes[n - 2] = shape->sizes[n - 1];
    turned.sizes[n - 1] = shape->sizes[n - 2];
    mt__shape_strides(turned.sizes, n, strides);
    int64_t kept = strides[n - 2];
    strides[n - 2] = strides[n - 1];
    strides[n - 1] = kept;
}

int mt__column_new(mt__call *call, int result, mt_dtype dtype, const mt__shape *shape,
                   mt_tensor **out)
{
    mt_tensor *made = NULL;
    MT_TRY(mt__plain_new(call, result, dtype, shape, &made));
    column_strides(shape, made->strides); /* nobody else has seen it */
    made->contiguous = mt__shape_is_contiguous(made->sizes, made->strides, made->n_dims);
    *out = made;
    return MT_OK;
}

int mt__column_copy(mt__call *call, int result, mt_dtype dtype, const mt__shape *shape,
                    mt_tensor *from, mt_tensor **out)
{
    MT_TRY(mt__column_new(call, result, dtype, shape, out));
    return (*out)->numel == 0 ? MT_OK : mt__copy_elements(*out, from);
}

int mt__column_of(mt__call *call, const mt__shape *shape, mt_tensor *from, mt_tensor **out)
{
    mt__shape own = mt__tensor_shape(from);
    int64_t strides[MT_MAX_DIMS];
    bool fits = mt__shape_equal(&own, shape);
    column_strides(shape, strides);
    for (uint32_t i = 0; fits && i < shape->n_dims; i++) {
        fits = from->strides[i] == strides[i];
    }
    *out = from;
    return fits ? MT_OK
                : mt__column_copy(call, MT_TEMPORARY, (mt_dtype)from->dtype, shape, from, out);
}

int mt__fill_identity(mt__call *call, mt_tensor *matrix)
{
    if (matrix->numel == 0) {
        return MT_OK;
    }
    mt_tensor **diagonal = mt__temp(call);
    MT_TRY(mt_fill_scalar_(matrix, mt_int(0)));
    MT_TRY(mt_diagonal(matrix, 0, -2, -1, diagonal));
    return mt_fill_scalar_(*diagonal, mt_int(1));
}

/* ---- the kernel ------------------------------------------------------------------------------ */

typedef struct flat_view {
    int64_t sizes[3];
    int64_t strides[3];
} flat_view;

/* [B, ...] of a tensor whose batch lies without gaps. */
static mt_array flatten(mt_tensor *tensor, char kind, flat_view *view)
{
    uint32_t n = tensor->n_dims;
    uint32_t last = kind == 'n' ? 0 : kind == 'v' ? 1 : 2;
    int64_t batch = 1;
    int64_t each = 1;
    for (uint32_t i = 0; i < n; i++) {
        *(i < n - last ? &batch : &each) *= tensor->sizes[i];
    }
    view->sizes[0] = batch;
    view->strides[0] = each;
    for (uint32_t i = 0; i < last; i++) {
        uint32_t from = kind == 't' ? n - 1 - i : n - last + i;
        view->sizes[1 + i] = tensor->sizes[from];
        view->strides[1 + i] = tensor->strides[from];
    }
    mt_array array = mt__array(tensor);
    array.sizes = view->sizes;
    array.strides = view->strides;
    array.n_dims = (int32_t)last + 1;
    return array;
}

int mt__linalg(mt__call *call, const mt__linalg_args *args)
{
    enum {
        MOST = sizeof args->tensors / sizeof args->tensors[0]
    };
    flat_view views[MOST];
    mt_array arrays[MOST];
    mt_scalar number = mt_real(args->number);
    uint32_t n = 0;
    int64_t batch = 0;
    for (; n < MOST && args->kinds[n] != '\0'; n++) {
        char kind = args->kinds[n];
        arrays[n] = kind == '-' ? mt__no_array() : flatten(args->tensors[n], kind, &views[n]);
        batch = kind == '-' ? batch : arrays[n].sizes[0];
    }
    mt_kernel_call kernel = {.kernel = MT_KERNEL_LINALG,
                             .code = (uint16_t)args->code,
                             .n_tensors = n,
                             .n_ints = sizeof args->ints / sizeof args->ints[0],
                             .n_scalars = 1,
                             .tensors = arrays,
                             .ints = args->ints,
                             .scalars = &number};
    return batch == 0 ? MT_OK : mt__launch(call->device, &kernel);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static int refuse(const char *op, const char *where, int info, mt__linalg_failure failure)
{
    switch (failure) {
    case MT_FAILED_INVERSE:
        return mtb_fail(MT_ELINALG,
                        "%s: %sThe diagonal element %d is zero, the inversion could not be "
                        "completed because the input matrix is singular.",
                        op, where, info);
    case MT_FAILED_SOLVE:
        return mtb_fail(MT_ELINALG, "%s: %sThe solver failed because the input matrix is singular.",
                        op, where);
    case MT_FAILED_CHOLESKY:
        return mtb_fail(MT_ELINALG,
                        "%s: %sThe factorization could not be completed because the input is not "
                        "positive-definite (the leading minor of order %d is not "
                        "positive-definite).",
                        op, where, info);
    case MT_FAILED_EIG:
        if (info < 0) {
            return mtb_fail(MT_ERUNTIME, "torch.linalg.eig: input tensor should not contain infs "
                                         "or NaNs.");
        }
        return mtb_fail(MT_ELINALG,
                        "%s: %sThe algorithm failed to converge because the input matrix is "
                        "ill-conditioned or has too many repeated eigenvalues (error code: %d).",
                        op, where, info);
    case MT_FAILED_SVD:
    case MT_FAILED_EIGH:
        if (info < 0) {
            return mtb_fail(MT_ELINALG,
                            "%s: %sThe algorithm failed to converge because the input matrix "
                            "contained non-finite values.",
                            op, where);
        }
        return mtb_fail(MT_ELINALG,
                        "%s: %sThe algorithm failed to converge because the input matrix is "
                        "ill-conditioned or has too many repeated %s (error code: %d).",
                        op, where, failure == MT_FAILED_SVD ? "singular values" : "eigenvalues",
                        info);
    case MT_FAILED_LU:
        return mtb_fail(
            MT_ERUNTIME,
            "%s: %sU[%d,%d] is zero and using it on lu_solve would result in a division "
            "by zero. If you still want to perform the factorization, consider calling "
            "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
            op, where, info, info);
    case MT_FAILED_LSTSQ:
    default:
        if (info < 0) {
            return mtb_fail(MT_ERUNTIME, "%s: %sthe input matrix contained non-finite values", op,
                            where);
        }
        return mtb_fail(MT_ELINALG,
                        "%s: %sThe least squares solution could not be computed because the input "
                        "matrix does not have full rank (error code: %d).",
                        op, where, info);
    }
}

int mt__linalg_check(const char *op, mt_tensor *info, mt__linalg_failure failure)
{
    if (info->numel == 0 || info->device == MT_META) { /* nothing to read */
        return MT_OK;
    }
    size_t bytes = (size_t)info->numel * sizeof(int32_t);
    int32_t *numbers = mtb_calloc((size_t)info->numel, sizeof(int32_t));
    if (numbers == NULL) {
        return mtb_fail(MT_ENOMEM, "%s: no memory for the states of %" PRId64 " matrices", op,
                        info->numel);
    }
    int status = mt_tensor_read(info, numbers, bytes);
    for (int64_t i = 0; i < info->numel && status == MT_OK; i++) {
        char where[48] = "";
        if (numbers[i] != 0) {
            if (info->n_dims > 0) {
                (void)snprintf(where, sizeof where, "(Batch element %" PRId64 "): ", i);
            }
            status = refuse(op, where, numbers[i], failure);
        }
    }
    mtb_free(numbers);
    return status;
}
