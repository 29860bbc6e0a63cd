/* SPDX-License-Identifier: Apache-2.0
 *
 * What ops of linear algebra share: checks in torch's words, column-major tensors, calls of the
 * kernel LINALG, errors from `info`.
 */
#ifndef MINDTORCH_OPS_LINALG_OP_LINALG_H
#define MINDTORCH_OPS_LINALG_OP_LINALG_H

#include "mindtorch/ops/op_support.h"
#include "mindtorch/ops/type_names.h"

MT_INLINE int64_t mt__rows(const mt_tensor *matrix)
{
    return matrix->sizes[matrix->n_dims - 2];
}

MT_INLINE int64_t mt__columns(const mt_tensor *matrix)
{
    return matrix->sizes[matrix->n_dims - 1];
}

MT_INLINE int64_t mt__less(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The latest temporary of the call. */
MT_INLINE mt_tensor *mt__last(const mt__call *call)
{
    uint32_t i = call->n_temps;
    while (i > 1 && call->temps[i - 1] == NULL) {
        i--;
    }
    return call->temps[i - 1];
}

/* The sizes before a matrix, followed by `n` more. */
mt__shape mt__batch_and(const mt_tensor *matrix, uint32_t n, int64_t first, int64_t second);

/* "linalg.inv: The input tensor A must have at least 2 dimensions." */
int mt__need_matrix(const char *op, const char *argument, const mt_tensor *tensor);

/* The same, and "linalg.inv: A must be batches of square matrices, but they are 3 by 4 matrices" */
int mt__need_square(const char *op, const char *argument, const mt_tensor *tensor);

/* "linalg.inv: Expected a floating point or complex tensor as input. Got Long". */
int mt__need_floating(const char *op, const mt_tensor *tensor);

/* The same, and "linalg.inv: Low precision dtypes not supported. Got Half". */
int mt__need_precision(const char *op, const mt_tensor *tensor);

/* MT_ENOTSUP in the words of mt__refuse_type() for what is neither float32 nor float64. Empty
 * tensors of other floating types are taken, as in torch. */
int mt__need_single_or_double(const char *kernel, const mt_tensor *tensor);

/* "...: Expected A and B to have the same dtype, but found A of type Double and B of type Float
 * instead" */
int mt__need_same_type(const char *op, const char *names[2], const mt_tensor *a,
                       const mt_tensor *b);

enum {
    MT_TEMPORARY = -1 /* instead of a result's number */
};

/* A new tensor whose matrices are column-major: result `result`, or MT_TEMPORARY. */
int mt__column_new(mt__call *call, int result, mt_dtype dtype, const mt__shape *shape,
                   mt_tensor **out);

/* The same with the elements of `from`, which is broadcast to `shape` and converted. */
int mt__column_copy(mt__call *call, int result, mt_dtype dtype, const mt__shape *shape,
                    mt_tensor *from, mt_tensor **out);

/* `from` itself if it is column-major, contiguous otherwise and of these sizes; or a copy. */
int mt__column_of(mt__call *call, const mt__shape *shape, mt_tensor *from, mt_tensor **out);

/* The identity, in a column-major tensor. */
int mt__fill_identity(mt__call *call, mt_tensor *matrix);

/* A result or, with MT_TEMPORARY, a temporary, contiguous. */
int mt__plain_new(mt__call *call, int result, mt_dtype dtype, const mt__shape *shape,
                  mt_tensor **out);

/* A call of LINALG. `kinds` has a letter for each tensor: m matrix, t matrix that the kernel sees
 * transposed, v vector, n number, - absent. All have the same batch. */
typedef struct mt__linalg_args {
    mt_linalg code;
    const char *kinds;
    mt_tensor *tensors[6];
    int64_t ints[4];
    double number;
} mt__linalg_args;
int mt__linalg(mt__call *call, const mt__linalg_args *args);

/* What a number other than 0 in `info` means. */
typedef enum mt__linalg_failure {
    MT_FAILED_INVERSE,
    MT_FAILED_SOLVE,
    MT_FAILED_CHOLESKY,
    MT_FAILED_SVD,
    MT_FAILED_EIGH,
    MT_FAILED_EIG,
    MT_FAILED_LU,
    MT_FAILED_LSTSQ
} mt__linalg_failure;

/* Waits for the numbers; MT_ELINALG, or a RuntimeError as torch has it, names the first matrix that
 * failed. */
int mt__linalg_check(const char *op, mt_tensor *info, mt__linalg_failure failure);

/* max(atol, rtol * the largest of the last dimension), [..., 1]: a value up to it counts as 0.
 * Numbers, tensors or nothing; rtol is eps * max(m, n) of `like` where atol is not given or 0. */
int mt__linalg_limit(mt__call *call, mt_tensor *values, mt_tensor *like, const mt_value *atol,
                     const mt_value *rtol, mt_tensor **out);

#endif /* MINDTORCH_OPS_LINALG_OP_LINALG_H */
