/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of ops that read and write elements by index.
 */
#include "mindtorch/ops/index/op_index_support.h"

#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

int mt__index_arg(mt__call *call, mt_tensor *index, mt_tensor **out)
{
    if (index->dtype != MT_DTYPE_I64 && index->dtype != MT_DTYPE_I32) {
        return mtb_fail(MT_ERUNTIME, "%s(): Expected dtype int32/int64 for index but got: %s",
                        mt__op_name(call), mt__type_title((mt_dtype)index->dtype));
    }
    return mt__converted(call, index, MT_DTYPE_I64, out);
}

int mt__at_least_1d(mt__call *call, mt_tensor *tensor, mt_tensor **out)
{
    if (tensor->n_dims > 0) {
        *out = tensor;
        return 0;
    }
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt__tensor_view(tensor, (const int64_t[]){1}, (const int64_t[]){1}, 1, tensor->offset,
                           false, place));
    *out = *place;
    return 0;
}

int mt__flat(mt__call *call, mt_tensor *tensor, mt_tensor **out)
{
    mt_tensor *dense = NULL;
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt__contiguous(call, tensor, &dense));
    MT_TRY(mt__tensor_view(dense, &dense->numel, (const int64_t[]){1}, 1, dense->offset, false,
                           place));
    *out = *place;
    return 0;
}

int mt__written_result(mt__call *call, mt_tensor **out)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    if (mt__is_in_place(call)) {
        MT_TRY(mt__check_writable(self));
        mt__result_same(call, 0, self);
        *out = self;
        return 0;
    }
    mt__shape shape = mt__tensor_shape(self);
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, out));
    return mt__copy_elements(*out, self);
}

int mt__apart_from(mt__call *call, mt_tensor *written, mt_tensor *tensor, mt_tensor **out)
{
    *out = tensor;
    if (!mt__storage_same(tensor->storage, written->storage)) {
        return 0;
    }
    mt__shape shape = mt__tensor_shape(tensor);
    MT_TRY(mt__temp_new(call, (mt_dtype)tensor->dtype, &shape, out));
    return mt__copy_elements(*out, tensor);
}

int mt__filled(mt__call *call, mt_dtype dtype, const mt_scalar *number, const mt__shape *shape,
               mt_tensor **out)
{
    const int64_t strides[MT_MAX_DIMS] = {0};
    mt_tensor *single = NULL;
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt__temp_new(call, dtype, &(mt__shape){.n_dims = 0}, &single));
    const mt__kernel_args fill = {
        .kernel = MT_KERNEL_FILL,
        MT_TENSORS(single),
        MT_SCALARS(mt__number_as(number, dtype)),
    };
    MT_TRY(mt__kernel(call, &fill));
    MT_TRY(mt__tensor_view(single, shape->sizes, strides, shape->n_dims, 0, false, place));
    *out = *place;
    return 0;
}

int mt__count_nonzero(mt__call *call, mt_tensor *tensor, int64_t *count)
{
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_count_nonzero(tensor, NULL, 0, place));
    return mt_tensor_read(*place, count, sizeof(*count));
}
