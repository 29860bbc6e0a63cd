/* SPDX-License-Identifier: Apache-2.0
 *
 * FLOPs: integer arithmetic on sizes, as torch.profiler does it (broadcasting and the addition of a
 * bias do not count).
 */
#include "mindtorch/trace/flops.h"

#include "base/compiler.h"

#include <mindtorch/tensor.h>

static const mt_tensor *tensor_at(const mt_value *args, uint32_t n_args, uint32_t i)
{
    return i < n_args && args[i].kind == MT_KIND_TENSOR ? args[i].of.tensor : NULL;
}

/* 2 B M K N for the matrices at arguments `first` and `first + 1`. */
static uint64_t product_flops(const mt_value *args, uint32_t n_args, uint32_t first)
{
    const mt_tensor *a = tensor_at(args, n_args, first);
    const mt_tensor *b = tensor_at(args, n_args, first + 1);
    if (a == NULL || b == NULL || mt_tensor_n_dims(a) < 2 || mt_tensor_n_dims(b) < 2) {
        return 0;
    }
    int64_t columns = mt_tensor_sizes(b)[mt_tensor_n_dims(b) - 1];
    return 2 * (uint64_t)mt_tensor_numel(a) * (uint64_t)columns;
}

static uint64_t conv2d_flops(const mt_value *args, uint32_t n_args)
{
    const mt_tensor *in = tensor_at(args, n_args, 0);
    const mt_tensor *weight = tensor_at(args, n_args, 1);
    if (in == NULL || weight == NULL || mt_tensor_n_dims(in) != 4 || n_args < 7 ||
        mt_tensor_n_dims(weight) != 4) {
        return 0;
    }
    const int64_t *size = mt_tensor_sizes(in);
    const int64_t *kernel = mt_tensor_sizes(weight);
    uint64_t positions = 1;
    for (uint32_t d = 0; d < 2; d++) {
        const mt_value *stride = &args[3];
        const mt_value *padding = &args[4];
        const mt_value *dilation = &args[5];
        if (stride->count <= d || padding->count <= d || dilation->count <= d ||
            stride->of.ints[d] <= 0) {
            return 0;
        }
        int64_t reach = dilation->of.ints[d] * (kernel[2 + d] - 1) + 1;
        int64_t out = (size[2 + d] + 2 * padding->of.ints[d] - reach) / stride->of.ints[d] + 1;
        positions *= out > 0 ? (uint64_t)out : 0;
    }
    /* weight is [out, in / groups, kh, kw]: its size has the division by groups in it. */
    return 2 * (uint64_t)size[0] * positions * (uint64_t)mt_tensor_numel(weight);
}

uint64_t mt__flops_of(uint32_t rule, const mt_value *args, uint32_t n_args)
{
    switch (rule) {
    case MT_FLOPS_ADD:
    case MT_FLOPS_MUL: {
        const mt_tensor *self = tensor_at(args, n_args, 0);
        return self == NULL ? 0 : (uint64_t)mt_tensor_numel(self);
    }
    case MT_FLOPS_MM:
    case MT_FLOPS_BMM: return product_flops(args, n_args, 0);
    case MT_FLOPS_ADDMM:
    case MT_FLOPS_BADDBMM: return product_flops(args, n_args, 1);
    case MT_FLOPS_CONV2D: return conv2d_flops(args, n_args);
    default: return 0;
    }
}
