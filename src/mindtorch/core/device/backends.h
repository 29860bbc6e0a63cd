/* SPDX-License-Identifier: Apache-2.0
 *
 * Which backend serves which device. The host's is known at build time; the accelerator's is
 * registered by the program, or opened on the first query (backend_load.c).
 */
#ifndef MINDTORCH_CORE_DEVICE_BACKENDS_H
#define MINDTORCH_CORE_DEVICE_BACKENDS_H

#include <mindtorch/backend.h>

enum {
    MT_DEVICES = 16 /* accelerators, at most: what a thread remembers a current stream for */
};

/* NULL where nothing serves the type. */
const mt_backend *mt__backend_of(mt_device device);

/* MT_ERUNTIME names a device that is not there. */
int mt__device_check(const char *op, mt_device device);

/* The src/backends/cpu table. */
const mt_backend *mt__cpu_backend(void);

/* Opens what MINDTORCH_NPU names, once in a process. */
void mt__backend_look(void);

/* Why MINDTORCH_NPU gave nothing; "" where it is not set or did. */
const char *mt__backend_trouble(void);

static inline mt_device_type mt__device_type(mt_device device)
{
    return (mt_device_type)(device >> 8);
}

static inline uint32_t mt__device_index(mt_device device)
{
    return (uint32_t)device & 255U;
}

#endif /* MINDTORCH_CORE_DEVICE_BACKENDS_H */
