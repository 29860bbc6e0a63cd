/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers and optional tensors of a kernel's call.
 */
#ifndef KERNELS_SCALAR_H
#define KERNELS_SCALAR_H

#include <mindtorch/backend.h>

static inline double mt__scalar_real(const mt_kernel_call *call, uint32_t i)
{
    const mt_scalar *scalar = &call->scalars[i];
    return scalar->kind == MT_KIND_REAL ? scalar->of.real : (double)scalar->of.integer;
}

/* The elements of a contiguous tensor; NULL where it is absent. */
static inline void *mt__array_data(const mt_kernel_call *call, uint32_t i)
{
    return call->tensors[i].n_dims < 0 ? NULL : call->tensors[i].data;
}

static inline int64_t mt__array_numel(const mt_array *array)
{
    int64_t numel = 1;
    for (int32_t i = 0; i < array->n_dims; i++) {
        numel *= array->sizes[i];
    }
    return numel;
}

#endif /* KERNELS_SCALAR_H */
