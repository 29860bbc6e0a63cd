/* SPDX-License-Identifier: Apache-2.0
 *
 * What many derivatives share: see formula.h.
 */
#include "mindtorch/autograd/formulas/formula.h"

#include "mindtorch/autograd/graph/node.h"
#include "mindtorch/dispatch/call.h"
#include "mindtorch/dispatch/dispatch.h"

/* The formula of UNDERIVED ops. */
int mt__refuse_backward(mt__backward *b)
{
    return mtb_fail(MT_ENOTSUP, "the derivative for '%s' is not implemented", b->node->row->name);
}

int mt__bw_zeros_for(mt__backward *b, uint32_t arg, mt_tensor **out)
{
    const mt__meta *meta = mt__input_meta(b, mt__input_of(b, arg));
    mt_tensor **place = MT_STEP(b);
    MT_TRY(mt_zeros_with(meta->shape.sizes, meta->shape.n_dims, (mt_dtype)meta->dtype, meta->device,
                         place));
    *out = *place;
    return MT_OK;
}

int mt__bw_moved_to(mt__backward *b, uint32_t arg, mt_tensor **out)
{
    const mt__meta *meta = mt__input_meta(b, mt__input_of(b, arg));
    mt_tensor **place = MT_STEP(b);
    MT_TRY(mt_to_with(mt__bw_grad(b), (mt_dtype)meta->dtype, meta->device, false, false, place));
    *out = *place;
    return MT_OK;
}

int mt__bw_give_zeros(mt__backward *b, uint32_t arg)
{
    mt_tensor *zeros = NULL;
    if (mt__wants(b, arg)) {
        MT_TRY(mt__bw_zeros_for(b, arg, &zeros));
        mt__bw_give(b, arg, zeros);
    }
    return MT_OK;
}

int mt__bw_call(mt__backward *b, uint32_t op, const mt_value *args, mt_tensor **out)
{
    mt_tensor **place = MT_STEP(b);
    MT_TRY(mt__dispatch_tensor(&mt__op_rows[op], args, place));
    *out = *place;
    return MT_OK;
}

int mt__bw_scaled(mt__backward *b, const mt_value *args, mt_tensor **out)
{
    *out = args[0].of.tensor;
    return mt__scalar_real(&args[1]) == 1 ? MT_OK : mt__bw_call(b, MT__OP_MUL, args, out);
}

int mt__bw_zeros_of(mt__backward *b, const mt_value *args, mt_tensor **out)
{
    const mt_tensor *grad = mt__bw_grad(b);
    mt_tensor **place = MT_STEP(b);
    MT_TRY(
        mt_zeros_with(args[0].of.ints, args[0].count, (mt_dtype)grad->dtype, grad->device, place));
    *out = *place;
    return MT_OK;
}
