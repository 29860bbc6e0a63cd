/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of copies, and of ops whose results do not depend on what they overwrite.
 */
#include "mindtorch/autograd/formulas/formula.h"

/* Nothing depends on the tensors: zeros for all of them. */
int mt__zero_backward(mt__backward *b)
{
    return mt__bw_give_zeros(b, 0);
}

int mt__fill_backward(mt__backward *b)
{
    MT_TRY(mt__bw_give_zeros(b, 0));
    if (mt__wants(b, 1)) {
        MT_TRY(mt_sum(mt__bw_grad(b), NULL, 0, false, MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 1));
    }
    return MT_OK;
}

/* Converts the gradient to the input's type and device. */
static int give_home(mt__backward *b, uint32_t arg)
{
    const mt__meta *meta = mt__input_meta(b, mt__input_of(b, arg));
    MT_TRY(
        mt_to_with(mt__bw_grad(b), (mt_dtype)meta->dtype, meta->device, false, false, MT_STEP(b)));
    return mt__bw_give_last(b, arg);
}

int mt__copy_backward(mt__backward *b)
{
    MT_TRY(mt__bw_give_zeros(b, 0));
    return mt__wants(b, 1) ? give_home(b, 1) : MT_OK;
}

int mt__clone_backward(mt__backward *b)
{
    mt__bw_give(b, 0, mt__bw_grad(b));
    return MT_OK;
}

int mt__to_copy_backward(mt__backward *b)
{
    return give_home(b, 0);
}
