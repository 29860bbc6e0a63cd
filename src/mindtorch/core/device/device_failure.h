/* SPDX-License-Identifier: Apache-2.0
 *
 * Failures of earlier work (backend.h, B5) that were noticed by a function that does not report
 * them: the allocator waits for a device and may succeed although a kernel had failed. The first
 * one of each device is kept until a function that waits for that device returns it to its caller.
 */
#ifndef MINDTORCH_CORE_DEVICE_DEVICE_FAILURE_H
#define MINDTORCH_CORE_DEVICE_DEVICE_FAILURE_H

#include "base/compiler.h"
#include "mindtorch/core/device/backends.h"

#include <stdatomic.h>

/* Devices with a kept failure, by bit. Partners: mt__failure_keep(), mt__failure_pop(). */
extern _Atomic uint32_t mt__failures;

/* Keeps the status that a call on an accelerator has just returned, with its message. MT_OK and
 * MT_EDEVICE are not kept: after MT_EDEVICE every call fails again. */
void mt__failure_keep(mt_device device, int status);

/* The slow half of mt__failure_take(). */
int mt__failure_pop(mt_device device, int status);

/* The result of a function that waited: the kept failure, if there is one (`status` is then kept in
 * its place), else `status`. */
MT_INLINE int mt__failure_take(mt_device device, int status)
{
    return MT_LIKELY(atomic_load_explicit(&mt__failures, memory_order_relaxed) == 0)
               ? status
               : mt__failure_pop(device, status);
}

#endif /* MINDTORCH_CORE_DEVICE_DEVICE_FAILURE_H */
