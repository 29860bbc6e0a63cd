/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned host memory, which accelerators access directly (backend.h, host_allocate). Sizes of
 * blocks are powers of two; free blocks are kept in a list for each size. With a backend that has
 * no pinned memory, ordinary host memory is used, and copies wait.
 *
 *   PIN1  A copy that does not wait is followed by an event. A block is handed out again when all
 *         its events have passed, so a tensor may be released while it is being copied.
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

/* Whether copies between pinned memory and the device need not wait. */
bool mt__pinned_copies_alone(mt_device device);

/* Call it after a copy that uses the block was put on the stream. */
void mt__pinned_used(mt__pinned *block, mt_stream *stream);

#endif /* MINDTORCH_CORE_MEMORY_PINNED_H */
