/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels in host memory, one function for each row of kernels.def, shared by the backends whose
 * memory the host can read:
 *
 *     MT_HOST_KERNEL(FILL) { ... call->tensors[0] ... }      mt__host_FILL(context, stream, call)
 *
 * Each is what mt_kernel_fn asks for; context and stream are not used.
 */
#ifndef KERNELS_ENTRY_HOST_KERNELS_H
#define KERNELS_ENTRY_HOST_KERNELS_H

#include <mindtorch/backend.h>

#define MT_HOST_KERNEL(name)                                               \
    int mt__host_##name(__attribute__((unused)) void *context,             \
                        __attribute__((unused)) mt_backend_stream *stream, \
                        const mt_kernel_call *call)

#define X(name) MT_HOST_KERNEL(name);
#include <mindtorch/kernels.def>
#undef X

#endif /* KERNELS_ENTRY_HOST_KERNELS_H */
