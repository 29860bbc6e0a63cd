/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers and optional tensors of a kernel's call.
 */
#ifndef KERNELS_ENTRY_CALL_ARGS_H
#define KERNELS_ENTRY_CALL_ARGS_H

#include "kernels/isa/pointwise/loops.h"

static inline double mt__arg_real(const mt_kernel_call *call, uint32_t i)
{
    return mt__scalar_real(&call->scalars[i]);
}

/* The first element of tensor i; NULL where it is absent. */
static inline void *mt__arg_data(const mt_kernel_call *call, uint32_t i)
{
    return call->tensors[i].n_dims < 0 ? NULL : call->tensors[i].data;
}

static inline int64_t mt__arg_numel(const mt_kernel_call *call, uint32_t i)
{
    return mt__array_numel(&call->tensors[i]);
}

#endif /* KERNELS_ENTRY_CALL_ARGS_H */
