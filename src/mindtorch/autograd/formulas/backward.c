/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions for formulas: numbers and shapes of inputs, setting gradients. See backward.h.
 */
#include "mindtorch/autograd/engine/evaluate.h"

static const mt__frame *frame_of(const mt__backward *b)
{
    return (const mt__frame *)b;
}

uint32_t mt__input_of(const mt__backward *b, uint32_t arg)
{
    return b->node->of.op.first[arg];
}

const mt__meta *mt__input_meta(const mt__backward *b, uint32_t input)
{
    return &frame_of(b)->metas[input];
}

const mt__meta *mt__result_meta(const mt__backward *b, uint32_t result)
{
    return &frame_of(b)->metas[b->n_inputs + result];
}

const mt__geometry *mt__self_geometry(const mt__backward *b)
{
    return frame_of(b)->geometry;
}

bool mt__wants(const mt__backward *b, uint32_t arg)
{
    const uint32_t *first = b->node->of.op.first;
    return first[arg] != first[arg + 1] && b->wanted[first[arg]];
}

void mt__bw_give(mt__backward *b, uint32_t arg, mt_tensor *grad)
{
    const uint32_t *first = b->node->of.op.first;
    if (first[arg] != first[arg + 1]) {
        mt_tensor **place = &b->grads_in[first[arg]];
        mt_tensor_release(*place);
        *place = mt_tensor_retain(grad);
    }
}

static int sum_to(mt_tensor *grad, const mt__shape *shape, mt_tensor **out)
{
    int64_t dims[MT_MAX_DIMS];
    size_t n = 0;
    if (shape->n_dims == 0) {
        return mt_sum(grad, NULL, 0, false, out);
    }
    uint32_t lead = grad->n_dims - shape->n_dims;
    for (uint32_t i = 0; i < grad->n_dims; i++) {
        if (i < lead || (shape->sizes[i - lead] == 1 && grad->sizes[i] != 1)) {
            dims[n++] = i;
        }
    }
    mt_tensor *sum = NULL;
    MT_TRY(mt_sum(grad, dims, n, true, &sum));
    if (lead == 0) {
        *out = sum;
        return MT_OK;
    }
    int status = mt_view(sum, shape->sizes, shape->n_dims, out);
    mt_tensor_release(sum);
    return status;
}

int mt__reduce_to(mt_tensor *grad, const mt__shape *shape, mt_dtype dtype, mt_tensor **out)
{
    mt__shape have = mt__tensor_shape(grad);
    mt_tensor *sum = NULL;
    *out = NULL;
    if (mt__shape_equal(&have, shape)) {
        sum = mt_tensor_retain(grad);
    } else {
        MT_TRY(sum_to(grad, shape, &sum));
    }
    if (sum->dtype == dtype) {
        *out = sum;
        return MT_OK;
    }
    int status = mt_to_with(sum, dtype, MT_DEVICE_NONE, false, false, out);
    mt_tensor_release(sum);
    return status;
}
