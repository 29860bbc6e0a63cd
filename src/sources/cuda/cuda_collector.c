/* SPDX-License-Identifier: Apache-2.0
 *
 * libmtprof_cuda: what a program does with NVIDIA's GPUs, without a change to the program. CUDA's
 * driver opens the library that CUDA_INJECTION64_PATH names when the program begins to use CUDA,
 * and calls InitializeInjection() there.
 *
 *   CUI1  Work that the GPU has at the program's exit is waited for in an exit handler. It is
 *        registered with the first use of CUDA, so that it runs before those of CUDA's runtime,
 *        which take the GPU's contexts away, and after those of the program's own objects.
 */
#include "base/shared_object.h"
#include "sources/collect/collect.h"

#include <mtprof/cupti.h>

#include <stdlib.h>

#define CALLED_BY_CUDA __attribute__((visibility("default")))

CALLED_BY_CUDA int InitializeInjection(void);

/* CUI1 */
static void finish(void)
{
    mtprof_cupti_detach();
}

/* Returns 1, as CUDA's own examples do: what we miss is no reason for a program to fail. */
int InitializeInjection(void)
{
    if (__atomic_load_n(&collect_forked, __ATOMIC_RELAXED)) {
        collect_start_again();
    } else {
        collect_start();
    }
    (void)mtb_open_shared("libstdc++.so.6"); /* names of kernels are C++'s, the program may be C */
    mtprof_cupti_info info = {.struct_size = sizeof info};
    if (mtprof_cupti_attach(&info) != MTPROF_OK) {
        collect_say("GPUs", info.missing);
        return 1;
    }
    (void)atexit(finish);
    return 1;
}
