/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of convolutions and pools: pairs of numbers for height and width.
 */
#ifndef MINDTORCH_OPS_IMAGE_OP_IMAGE_H
#define MINDTORCH_OPS_IMAGE_OP_IMAGE_H

#include "mindtorch/ops/op_support.h"

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

#endif /* MINDTORCH_OPS_IMAGE_OP_IMAGE_H */
