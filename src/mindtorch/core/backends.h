/* SPDX-License-Identifier: Apache-2.0
 *
 * Which backend serves which device, and the call of a kernel. The CPU's is registered when it is
 * first needed.
 */
#ifndef MINDTORCH_CORE_BACKENDS_H
#define MINDTORCH_CORE_BACKENDS_H

#include <mindtorch/backend.h>

/* NULL where nothing serves the type. */
const mt_backend *mt__backend_of(mt_device device);

/* MT_ERUNTIME names a device that is not there. */
int mt__device_check(const char *op, mt_device device);

/* The stream on which this thread's work for the device runs; NULL = the default one. */
mt_stream *mt__current_stream(mt_device device);

/* Fills in struct_size and calls the kernel of the device's backend. MT_ENOTSUP: it has none. */
int mt__launch(mt_device device, mt_kernel_call *call);

/* The src/backends/cpu table. */
const mt_backend *mt__cpu_backend(void);

static inline mt_device_type mt__device_type(mt_device device)
{
    return (mt_device_type)(device >> 8);
}

static inline uint32_t mt__device_index(mt_device device)
{
    return (uint32_t)device & 255U;
}

#endif /* MINDTORCH_CORE_BACKENDS_H */
