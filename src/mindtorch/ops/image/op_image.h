/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of convolutions and pools: pairs of numbers for height and width.
 */
#ifndef MINDTORCH_OPS_IMAGE_OP_IMAGE_H
#define MINDTORCH_OPS_IMAGE_OP_IMAGE_H

#include "mindtorch/ops/op_support.h"
#include "mindtorch/ops/type_names.h"

/* A list of `wanted` numbers (1 or 2), or of one that is used for all, as height and width; with
 * wanted 1 the height is `height`. False: the list has another length. */
MT_INLINE bool mt__image_pair(const mt_value *list, uint32_t wanted, int64_t height,
                              int64_t pair[2])
{
    if (list->count != 1 && list->count != wanted) {
        return false;
    }
    pair[0] = wanted == 1 ? height : list->of.ints[0];
    pair[1] = list->of.ints[list->count - 1];
    return true;
}

/* MT_ERUNTIME for numbers with which sizes could overflow. */
MT_INLINE int mt__image_limit(const mt__call *call, const int64_t *numbers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (numbers[i] > INT32_MAX || numbers[i] < INT32_MIN) {
            return mtb_fail(MT_ERUNTIME, "%s(): %lld is out of range", mt__op_name(call),
                            (long long)numbers[i]);
        }
    }
    return MT_OK;
}

/* The sizes of a pool's result: self's, with planes of other sizes. */
MT_INLINE mt__shape mt__pooled_shape(const mt_tensor *self, const int64_t out[2])
{
    mt__shape shape = mt__tensor_shape(self);
    shape.sizes[shape.n_dims - 2] = out[0];
    shape.sizes[shape.n_dims - 1] = out[1];
    return shape;
}

/* MT_ENOTSUP with torch's name of the kernel unless it is floating point. */
MT_INLINE int mt__need_pooled_type(const mt_tensor *self, const char *kernel)
{
    bool computed = mt__tensor_category(self) == MT_CATEGORY_REAL;
    return computed ? MT_OK : mt__refuse_type(kernel, (mt_dtype)self->dtype);
}

/* All have the input's type, which is none of bool; `bias` may be NULL. */
int mt__conv_types(const mt_tensor *input, const mt_tensor *weight, const mt_tensor *bias);

/* convolution and convolution_backward of volumes [N, C, D, H, W]. */
int mt__run_convolution3d(mt__call *call);
int mt__run_convolution3d_backward(mt__call *call);

#endif /* MINDTORCH_OPS_IMAGE_OP_IMAGE_H */
