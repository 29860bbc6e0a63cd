/* SPDX-License-Identifier: Apache-2.0
 *
 * One op after the other for a list of tensors. Those that write are OPTIMIZER rows for the
 * dispatcher (their lists change); each tensor's own row records the graph.
 */
#include "base/alloc.h"
#include "mindtorch/ops/op_support.h"

int mt__run__foreach_norm(mt__call *call)
{
    mt_tensor *const *given = call->args[0].of.tensors;
    uint32_t count = call->args[0].count;
    mt_tensor **norms = mtb_calloc(count == 0 ? 1 : count, sizeof(mt_tensor *));
    if (norms == NULL) {
        return mtb_fail(MT_ENOMEM, "_foreach_norm: no memory for %u tensors", count);
    }
    int status = MT_OK;
    uint32_t done = 0;
    while (done < count && status == MT_OK) {
        status = mt_linalg_vector_norm(given[done], call->args[1], NULL, 0, false, &norms[done]);
        done += status == MT_OK;
    }
    if (status == MT_OK) {
        status = mt__give_list(call, 0, norms, count); /* takes them in any case */
    } else {
        for (uint32_t i = 0; i < done; i++) {
            mt_tensor_release(norms[i]);
        }
    }
    mtb_free(norms);
    return status;
}

int mt__run__foreach_mul_(mt__call *call)
{
    for (uint32_t i = 0; i < call->args[0].count; i++) {
        mt_tensor *self = call->args[0].of.tensors[i];
        mt_tensor *other = mt__arg_tensor(call, 1);
        MT_TRY(other != NULL ? mt_mul_(self, other) : mt_mul_scalar_(self, call->args[1]));
    }
    return MT_OK;
}

int mt__run__foreach_clamp_min_(mt__call *call)
{
    for (uint32_t i = 0; i < call->args[0].count; i++) {
        MT_TRY(mt_clamp_min_(call->args[0].of.tensors[i], call->args[1]));
    }
    return MT_OK;
}

int mt__run__foreach_clamp_max_(mt__call *call)
{
    for (uint32_t i = 0; i < call->args[0].count; i++) {
        MT_TRY(mt_clamp_max_(call->args[0].of.tensors[i], call->args[1]));
    }
    return MT_OK;
}
