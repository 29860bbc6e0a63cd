/* SPDX-License-Identifier: Apache-2.0
 *
 * The caching allocator, one for each device: sizes are rounded up to classes, free blocks are kept
 * in lists for the next request of their class, and the backend is asked only when a list is empty.
 * Small host blocks go through a list of the thread first.
 *
 *   MEM1  The counters of mt_device_get_memory_stats() are exact after every call, threads' lists
 *         included: what a list holds is reserved, not allocated.
 *   MEM2  Every block handed out or given back is reported to the profiler, with the counters after
 *         it.
 *   MEM3  When the backend refuses, all caches of the device are emptied and it is asked once more.
 *   MEM4  A thread that ends gives its lists back.
 *   MEM5  A block of an accelerator is handed out again on the stream on which it was taken,
 *         without waiting; on which stream it is given back does not matter. Its uses on other
 *         streams must be over by then, or be passed to mt__memory_give_used.
 *   MEM6  The child of a fork() may give back what it has; whether it can take memory of an
 *         accelerator is up to the backend.
 */
#ifndef MINDTORCH_CORE_MEMORY_MEMORY_H
#define MINDTORCH_CORE_MEMORY_MEMORY_H

#include "mindtorch/core/memory/stream_uses.h"

#include <mindtorch/device.h>

#include <stddef.h>

/* bytes > 0. Aligned to 64. `key` identifies the list to which the block is given back. MT_ENOMEM
 * (the host) and MT_EOOM name device and bytes; other failures are the backend's. */
int mt__memory_take(mt_device device, uint64_t bytes, void **out, uint32_t *key);
void mt__memory_give(mt_device device, void *memory, uint64_t bytes, uint32_t key);

/* The same for a block of an accelerator that these streams used too: it is not handed out before
 * they have passed what is on them now. Takes `uses`. */
void mt__memory_give_used(mt_device device, void *memory, uint64_t bytes, uint32_t key,
                          mt__uses *uses);

/* Whether the block belongs to the stream. */
bool mt__memory_is_of(mt_device device, uint32_t key, const mt_stream *stream);

/* Allocated now, for the profiler's ops. */
uint64_t mt__memory_allocated(mt_device device);

#endif /* MINDTORCH_CORE_MEMORY_MEMORY_H */
