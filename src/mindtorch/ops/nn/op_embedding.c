/* SPDX-License-Identifier: Apache-2.0
 *
 * embedding: rows of a matrix by number, and the sum of gradients back into the matrix.
 */
#include "mindtorch/ops/nn/op_nn_support.h"
#include "mindtorch/ops/type_names.h"

static int check_indices(const mt_tensor *indices, uint32_t position, const char *op)
{
    mt_dtype dtype = (mt_dtype)indices->dtype;
    if (dtype == MT_DTYPE_I64 || dtype == MT_DTYPE_I32) {
        return MT_OK;
    }
    return mtb_fail(
        MT_ERUNTIME,
        "Expected tensor for argument #%u 'indices' to have one of the following scalar "
        "types: Long, Int; but got torch.%sTensor instead (while checking arguments for "
        "%s)",
        position, mt__type_title(dtype), op);
}

/* One dimension, int64. */
static int flat_indices(mt__call *call, mt_tensor *indices, mt_tensor **out)
{
    mt_tensor *wide = NULL;
    mt_tensor *dense = NULL;
    MT_TRY(mt__converted(call, indices, MT_DTYPE_I64, &wide));
    MT_TRY(mt__contiguous(call, wide, &dense));
    return mt__nn_view(call, dense, &dense->numel, 1, out);
}

int mt__run_embedding(mt__call *call)
{
    mt_tensor *weight = mt__arg_tensor(call, 0);
    mt_tensor *indices = mt__arg_tensor(call, 1);
    if (weight->n_dims != 2) {
        return mtb_fail(MT_ERUNTIME, "'weight' must be 2-D");
    }
    MT_TRY(check_indices(indices, 1, mt__op_name(call)));
    mt__shape shape = mt__tensor_shape(indices);
    if (shape.n_dims == MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "embedding(): indices have %u dimensions, at most %u fit",
                        shape.n_dims, MT_MAX_DIMS - 1);
    }
    shape.sizes[shape.n_dims++] = weight->sizes[1];
    mt_tensor *out = NULL;
    MT_TRY(mt__result_new(call, 0, (mt_dtype)weight->dtype, &shape, &out));
    if (indices->numel == 0) {
        return MT_OK;
    }
    mt__kernel_args args = {
        .kernel = MT_KERNEL_INDEX_SELECT,
        MT_TENSORS(NULL, weight, NULL),
        MT_INTS(0),
    };
    MT_TRY(mt__nn_view(call, out, (const int64_t[]){indices->numel, weight->sizes[1]}, 2,
                       &args.tensors[0]));
    MT_TRY(flat_indices(call, indices, &args.tensors[2]));
    return mt__kernel(call, &args);
}

int mt__run_embedding_dense_backward(mt__call *call)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    mt_tensor *indices = mt__arg_tensor(call, 1);
    int64_t num_weights = mt__arg_int(call, 2);
    MT_TRY(check_indices(indices, 2, mt__op_name(call)));
    MT_TRY(mt__need_real(call, (mt_dtype)grad->dtype));
    int64_t width = grad->n_dims == 0 ? 1 : grad->sizes[grad->n_dims - 1];
    /* Compared dimension by dimension, because width 0 would hide a mismatch from a product. */
    bool fits = grad->n_dims == indices->n_dims + 1U;
    for (uint32_t i = 0; fits && i < indices->n_dims; i++) {
        fits = grad->sizes[i] == indices->sizes[i];
    }
    if (!fits) {
        char a[MT_SHAPE_TEXT];
        char b[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "embedding_dense_backward(): grad_output of size %s does not belong to "
                        "indices of size %s",
                        mt__shape_text(grad->sizes, grad->n_dims, a),
                        mt__shape_text(indices->sizes, indices->n_dims, b));
    }
    mt__shape shape;
    MT_TRY(mt__shape_make(mt__op_name(call), (const int64_t[]){num_weights, width}, 2, &shape));
    mt_tensor *out = NULL;
    MT_TRY(mt__result_new(call, 0, (mt_dtype)grad->dtype, &shape, &out));
    mt_tensor *dense = NULL;
    mt__kernel_args args = {
        .kernel = MT_KERNEL_EMBEDDING_BACKWARD,
        MT_TENSORS(out, NULL, NULL),
        MT_INTS(mt__arg_int(call, 3)),
    };
    MT_TRY(mt__contiguous(call, grad, &dense));
    MT_TRY(mt__nn_view(call, dense, (const int64_t[]){indices->numel, width}, 2, &args.tensors[1]));
    MT_TRY(flat_indices(call, indices, &args.tensors[2]));
    return mt__kernel(call, &args);
}

int mt__run_embedding_backward(mt__call *call)
{
    if (mt__arg_bool(call, 4) || mt__arg_bool(call, 5)) {
        return mtb_fail(MT_ENOTSUP, "embedding_backward(): %s is not supported",
                        mt__arg_bool(call, 4) ? "scale_grad_by_freq" : "sparse");
    }
    return mt_embedding_dense_backward(mt__arg_tensor(call, 0), mt__arg_tensor(call, 1),
                                       mt__arg_int(call, 2), mt__arg_int(call, 3),
                                       mt__result_place(call, 0));
}
