/* SPDX-License-Identifier: Apache-2.0
 *
 * Kept failures, see device_failure.h.
 */
#include "mindtorch/core/device/device_failure.h"

#include "base/fail.h"
#include "mindtorch/core/thread/thread_cache.h"

#include <mindtorch/status.h>

#include <stdio.h>
#include <string.h>

typedef struct kept_failure {
    int status; /* MT_OK: none */
    char message[MTB_MESSAGE_BYTES];
} kept_failure;

_Atomic uint32_t mt__failures;
static kept_failure kept[MT_DEVICES]; /* under the lock */
mtb_lock mt__failures_lock = MTB_LOCK_INIT(MTB_RANK_FAILURES);

static_assert(MT_DEVICES <= 32, "a bit for each device");

/* Under the lock. */
static void keep(mt_device device, int status)
{
    uint32_t index = mt__device_index(device);
    if (status == MT_OK || status == MT_EDEVICE || kept[index].status != MT_OK) {
        return;
    }
    kept[index].status = status;
    (void)snprintf(kept[index].message, sizeof kept[index].message, "%s", mt_last_error()->message);
    /* Relaxed, because it is only a hint that the lock is worth taking. A thread that waited for
     * the device sees it: the lock of the memory, or program order, orders the two. */
    atomic_fetch_or_explicit(&mt__failures, 1u << index, memory_order_relaxed);
}

void mt__failure_keep(mt_device device, int status)
{
    if (status != MT_OK && device != MT_CPU) {
        mtb_lock_acquire(&mt__failures_lock);
        keep(device, status);
        mtb_lock_release(&mt__failures_lock);
    }
}

int mt__failure_pop(mt_device device, int status)
{
    uint32_t index = mt__device_index(device);
    if (device == MT_CPU) {
        return status;
    }
    mtb_lock_acquire(&mt__failures_lock);
    kept_failure first = kept[index];
    if (first.status != MT_OK) {
        kept[index].status = MT_OK;
        atomic_fetch_and_explicit(&mt__failures, ~(1u << index), memory_order_relaxed);
        keep(device, status);
    }
    mtb_lock_release(&mt__failures_lock);
    return first.status != MT_OK ? mt_fail(first.status, first.message) : status;
}
