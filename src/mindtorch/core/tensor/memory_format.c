/* SPDX-License-Identifier: Apache-2.0 */
#include "mindtorch/core/tensor/memory_format.h"

#include "base/fail.h"

void mt__channels_last_order(uint32_t n_dims, uint32_t *order)
{
    order[0] = 0;
    for (uint32_t i = 1; i + 1 < n_dims; i++) {
        order[i] = i + 1;
    }
    order[n_dims - 1] = 1;
}

int mt__need_format(int64_t format, uint32_t n_dims)
{
    if (format < 0 || format >= MT_FORMAT_COUNT) {
        return mtb_fail(MT_ERUNTIME, "memory_format %lld is none of 0 to %d", (long long)format,
                        MT_FORMAT_COUNT - 1);
    }
    uint32_t wanted = format == MT_FORMAT_CHANNELS_LAST ? 4 : 5;
    if (format >= MT_FORMAT_CHANNELS_LAST && n_dims != wanted) {
        return mtb_fail(MT_ERUNTIME, "required rank %u tensor to use channels_last%s format",
                        wanted, wanted == 5 ? "_3d" : "");
    }
    return MT_OK;
}

/* `strict`: the strides of dimensions of size 1 count. */
static bool fits(const mt_tensor *tensor, mt_memory_format format, bool strict)
{
    uint32_t order[MT_MAX_DIMS];
    int64_t step = 1;
    if (format >= MT_FORMAT_CHANNELS_LAST) {
        if (mt__need_format((int64_t)format, tensor->n_dims) != MT_OK) {
            return false;
        }
        mt__channels_last_order(tensor->n_dims, order);
    } else {
        for (uint32_t i = 0; i < tensor->n_dims; i++) {
            order[i] = i;
        }
    }
    for (uint32_t i = tensor->n_dims; i-- > 0;) {
        int64_t size = tensor->sizes[order[i]];
        if ((strict || size != 1) && tensor->strides[order[i]] != step) {
            return false;
        }
        step *= size > 1 ? size : 1;
    }
    return true;
}

bool mt_tensor_has_format(const mt_tensor *tensor, mt_memory_format format)
{
    return format < MT_FORMAT_CHANNELS_LAST ? tensor->contiguous : fits(tensor, format, false);
}

bool mt_tensor_has_strides(const mt_tensor *tensor, mt_memory_format format)
{
    return fits(tensor, format, true);
}

bool mt__is_channels_last(const mt_tensor *tensor)
{
    if ((tensor->n_dims != 4 && tensor->n_dims != 5) || tensor->strides[1] == 0) {
        return false;
    }
    uint32_t order[MT_MAX_DIMS];
    int64_t least = 0;
    mt__channels_last_order(tensor->n_dims, order);
    for (uint32_t i = tensor->n_dims; i-- > 0;) {
        int64_t size = tensor->sizes[order[i]];
        int64_t stride = tensor->strides[order[i]];
        if (size == 0 || stride < least || (i == 0 && least == tensor->strides[1])) {
            return false;
        }
        least = size > 1 ? stride * size : stride;
    }
    return true;
}
