/* SPDX-License-Identifier: Apache-2.0
 *
 * The caching allocator, one for each device: sizes are rounded to classes, blocks that come back
 * wait in lists for the next request of their class, and the backend is asked only when a list is
 * empty. Small host blocks pass through a list of the thread first.
 *
 * M1 The counters of mt_device_memory_stats() are exact after every call, threads' lists included:
 *    what a list holds is reserved, not allocated.
 * M2 Every block handed out or given back is told to the profiler with the counters after it.
 * M3 When the backend refuses, all caches are emptied and it is asked once more.
 * M4 A thread that ends gives its lists back.
 */
#ifndef MINDTORCH_CORE_MEMORY_H
#define MINDTORCH_CORE_MEMORY_H

#include <mindtorch/device.h>

#include <stddef.h>

/* bytes > 0. Aligned to 64. MT_ENOMEM names device and bytes. */
int mt__memory_take(mt_device device, uint64_t bytes, void **out, uint32_t *block_class);
void mt__memory_give(mt_device device, void *memory, uint64_t bytes, uint32_t block_class);

/* Allocated now, for the profiler's ops. */
uint64_t mt__memory_allocated(mt_device device);

#endif /* MINDTORCH_CORE_MEMORY_H */
