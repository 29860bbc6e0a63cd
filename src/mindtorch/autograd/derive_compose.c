/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of the leaves of ops_compose.def.
 */
#include "mindtorch/autograd/formula.h"

/* What was added is cut off again, and what was cut off gets zeros. */
int mt__constant_pad_nd_backward(mt__backward *b)
{
    const mt_value *pad = &b->args[1];
    int64_t undone[2 * MT_MAX_DIMS];
    for (uint32_t i = 0; i < pad->count; i++) {
        undone[i] = -pad->of.ints[i];
    }
    MT_TRY(mt_constant_pad_nd(mt__bw_grad(b), undone, pad->count, mt_int(0), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}
