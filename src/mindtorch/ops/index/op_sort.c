/* SPDX-License-Identifier: Apache-2.0
 *
 * Ordering: sort, argsort, topk. All of them are stable; NaN is the largest.
 */
#include "mindtorch/ops/op_support.h"

static int order(mt__call *call, mt_kernel kernel, const mt__shape *shape, uint32_t dim,
                 const int64_t more[3])
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *values = NULL;
    mt_tensor *indices = NULL;
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, shape, &values));
    MT_TRY(mt__result_new(call, 1, MT_DTYPE_I64, shape, &indices));
    if (values->numel == 0) {
        return 0;
    }
    const mt__kernel_args args = {
        .kernel = kernel,
        MT_TENSORS(values, indices, self),
        MT_INTS(dim, more[0], more[1], more[2]),
    };
    return mt__kernel(call, &args);
}

int mt__run_sort(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt__shape shape = mt__tensor_shape(self);
    uint32_t dim;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &dim));
    return order(call, MT_KERNEL_SORT, &shape, dim, (const int64_t[]){mt__arg_bool(call, 2), 0, 0});
}

int mt__run_argsort(mt__call *call)
{
    return mt_sort(mt__arg_tensor(call, 0), mt__arg_int(call, 1), mt__arg_bool(call, 2), NULL,
                   mt__result_place(call, 0));
}

int mt__run_topk(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt__shape shape = mt__tensor_shape(self);
    int64_t k = mt__arg_int(call, 1);
    uint32_t dim;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 2), self->n_dims, &dim));
    int64_t size = self->n_dims == 0 ? 1 : self->sizes[dim];
    if (k < 0 || k > size) {
        return mtb_fail(MT_ERUNTIME, "topk: selected index k out of range");
    }
    if (self->dtype == MT_DTYPE_BOOL) {
        return mtb_fail(MT_ERUNTIME, "topk does not support bool dtypes on CPU");
    }
    if (self->n_dims == 0) {
        k = 1; /* a 0-d tensor counts as one element */
    } else {
        shape.sizes[dim] = k;
    }
    return order(call, MT_KERNEL_TOPK, &shape, dim,
                 (const int64_t[]){k, mt__arg_bool(call, 3), mt__arg_bool(call, 4)});
}
