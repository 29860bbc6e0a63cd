/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels in host memory, one function for each row of kernels.def, shared by the backends whose
 * memory the host can read:
 *
 *     MT_HOST_KERNEL(FILL) { ... call->tensors[0] ... }      mt__host_FILL(context, stream, call)
 *
 * Each is what mt_kernel_fn asks for; context and stream are not used. MT_HOST_KERNEL_WIDENED(NAME,
 * written, kept) is for kernels that know nothing of narrow types (narrow.h): they get copies in
 * wide types, and those of `written` (bit i: tensor i) are copied back. `kept` ones are read too.
 */
#ifndef KERNELS_ENTRY_HOST_KERNELS_H
#define KERNELS_ENTRY_HOST_KERNELS_H

#include "base/compiler.h"
#include "kernels/walk/narrow.h"

#include <mindtorch/backend.h>

#define MT_HOST_KERNEL(name)                                               \
    int mt__host_##name(__attribute__((unused)) void *context,             \
                        __attribute__((unused)) mt_backend_stream *stream, \
                        const mt_kernel_call *call)

#define MT_HOST_KERNEL_WIDENED(name, written, kept)                        \
    static int run_##name(const mt_kernel_call *call);                     \
    MT_HOST_KERNEL(name)                                                   \
    {                                                                      \
        return MT_LIKELY(!mt__has_narrow(call))                            \
                   ? run_##name(call)                                      \
                   : mt__run_widened(call, run_##name, (written), (kept)); \
    }                                                                      \
    static int run_##name(const mt_kernel_call *call)

#define X(name) MT_HOST_KERNEL(name);
#include <mindtorch/kernels.def>
#undef X

#endif /* KERNELS_ENTRY_HOST_KERNELS_H */
