/* SPDX-License-Identifier: Apache-2.0
 *
 * What many derivatives share: see formula.h.
 */
#include "mindtorch/autograd/formulas/formula.h"

#include "mindtorch/autograd/graph/node.h"

/* The formula of UNDERIVED ops. */
int mt__refuse_backward(mt__backward *b)
{
    return mtb_fail(MT_ENOTSUP, "the derivative for '%s' is not implemented", b->node->row->name);
}

int mt__bw_give_zeros(mt__backward *b, uint32_t arg)
{
    if (!mt__wants(b, arg)) {
        return MT_OK;
    }
    const mt__meta *meta = mt__input_meta(b, mt__input_of(b, arg));
    MT_TRY(mt_zeros_with(meta->shape.sizes, meta->shape.n_dims, (mt_dtype)meta->dtype, meta->device,
                         MT_STEP(b)));
    mt__bw_give(b, arg, mt__bw_last(b));
    return MT_OK;
}

int mt__bw_times(mt__backward *b, mt_tensor *x, const mt_value *operand)
{
    return operand->kind == MT_KIND_TENSOR ? mt_mul(x, operand->of.tensor, MT_STEP(b))
                                           : mt_mul_scalar(x, *operand, MT_STEP(b));
}

int mt__bw_over(mt__backward *b, mt_tensor *x, const mt_value *operand)
{
    return operand->kind == MT_KIND_TENSOR ? mt_div(x, operand->of.tensor, MT_STEP(b))
                                           : mt_div_scalar(x, *operand, MT_STEP(b));
}

int mt__bw_scaled(mt__backward *b, mt_tensor *x, const mt_scalar *factor)
{
    bool one = factor->kind == MT_KIND_REAL ? factor->of.real == 1 : factor->of.integer == 1;
    if (one) {
        *MT_STEP(b) = mt_tensor_retain(x);
        return MT_OK;
    }
    return mt_mul_scalar(x, *factor, MT_STEP(b));
}
