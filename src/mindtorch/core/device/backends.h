/* SPDX-License-Identifier: Apache-2.0
 *
 * Which backend serves which device. The host's is known at build time; the accelerator's is
 * registered by the program, or opened on the first query (backend_load.c).
 */
#ifndef MINDTORCH_CORE_DEVICE_BACKENDS_H
#define MINDTORCH_CORE_DEVICE_BACKENDS_H

#include "base/compiler.h"

#include <mindtorch/backend.h>

enum {
    MT_DEVICES = 16 /* maximum number of accelerators: each thread has a current stream for each */
};

/* NULL if no backend serves the type. */
const mt_backend *mt__backend_of(mt_device device);

/* MT_ERUNTIME: there is no such device; the message names it. */
int mt__device_check(const char *op, mt_device device);

/* The same for a place where tensors can be made: MT_META too, which no backend serves. */
MT_INLINE int mt__place_check(const char *op, mt_device device)
{
    return device == MT_META ? MT_OK : mt__device_check(op, device);
}

/* The src/backends/cpu table. */
const mt_backend *mt__cpu_backend(void);

/* Opens the backend that MINDTORCH_NPU names, once per process. */
void mt__backend_look(void);

/* Why the backend in MINDTORCH_NPU could not be opened; "" if it was, or if the variable is not
 * set. */
const char *mt__backend_trouble(void);

static inline mt_device_type mt__device_type(mt_device device)
{
    return (mt_device_type)(device >> 8);
}

static inline bool mt__is_accelerator(mt_device device)
{
    return mt__device_type(device) == MT_DEVICE_TYPE_NPU;
}

static inline uint32_t mt__device_index(mt_device device)
{
    return (uint32_t)device & 255U;
}

#endif /* MINDTORCH_CORE_DEVICE_BACKENDS_H */
