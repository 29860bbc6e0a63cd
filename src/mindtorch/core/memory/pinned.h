/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned host memory: what accelerators copy from and to by themselves (backend.h, host_allocate).
 * Blocks are powers of two, and wait for the next use in lists of their size. A backend without
 * such memory gets the host's; then copies wait as always.
 *
 *   PIN1  A copy that does not wait is marked by an event behind it. A block is handed out again
 *         when all its events have passed, so a tensor may be released while it is being copied.
 */
#ifndef MINDTORCH_CORE_MEMORY_PINNED_H
#define MINDTORCH_CORE_MEMORY_PINNED_H

#include "mindtorch/core/tensor/storage.h"

typedef struct mt__pinned mt__pinned;

/* Aligned to 64. MT_ENOMEM names the bytes; other failures are the backend's. */
int mt__pinned_take(uint64_t bytes, mt__pinned **out);
void *mt__pinned_memory(const mt__pinned *block);

/* mt_free_fn of pinned storages; `block` is the mt__pinned. */
void mt__pinned_free(void *block, void *memory);

/* The block of a storage; NULL: it is not pinned. */
mt__pinned *mt__pinned_of(const mt__storage *storage);

/* Whether a copy between it and a device need not wait. */
bool mt__pinned_copies_alone(mt_device device);

/* A copy that uses the block was put on the stream. */
void mt__pinned_used(mt__pinned *block, mt_stream *stream);

#endif /* MINDTORCH_CORE_MEMORY_PINNED_H */
