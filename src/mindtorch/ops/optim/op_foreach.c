/* SPDX-License-Identifier: Apache-2.0
 *
 * One op after the other for a list of tensors. Those that write are OPTIMIZER rows for the
 * dispatcher (their lists change); each tensor's own row records the graph.
 */
#include "mindtorch/ops/op_support.h"

static int need_tensors(const mt__call *call)
{
    if (call->args[0].count > 0) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME, "Tensor list must have at least one tensor.");
}

static int norm_of(mt_tensor *given, const void *order, mt_tensor **out)
{
    return mt_linalg_vector_norm(given, *(const mt_value *)order, NULL, 0, false, out);
}

int mt__run__foreach_norm(mt__call *call)
{
    MT_TRY(need_tensors(call));
    return mt__result_each(call, norm_of, &call->args[1]);
}

int mt__run__foreach_mul_(mt__call *call)
{
    MT_TRY(need_tensors(call));
    for (uint32_t i = 0; i < call->args[0].count; i++) {
        mt_tensor *self = call->args[0].of.tensors[i];
        mt_tensor *other = mt__arg_tensor(call, 1);
        MT_TRY(other != NULL ? mt_mul_(self, other) : mt_mul_scalar_(self, call->args[1]));
    }
    return MT_OK;
}

static int clamp_each(mt__call *call, mt_status (*clamp)(mt_tensor *self, mt_scalar bound))
{
    MT_TRY(need_tensors(call));
    for (uint32_t i = 0; i < call->args[0].count; i++) {
        MT_TRY(clamp(call->args[0].of.tensors[i], call->args[1]));
    }
    return MT_OK;
}

MT_RUN(_foreach_clamp_min_, clamp_each, mt_clamp_min_)
MT_RUN(_foreach_clamp_max_, clamp_each, mt_clamp_max_)
