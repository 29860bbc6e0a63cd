/* SPDX-License-Identifier: Apache-2.0
 *
 * Working memory of kernels. A thread keeps a few blocks for its next calls, because the first
 * touch of memory from the system takes longer than most kernels.
 */
#ifndef KERNELS_WALK_SCRATCH_H
#define KERNELS_WALK_SCRATCH_H

#include <stddef.h>

/* `count` objects of `size` bytes, aligned to 64, not initialised. NULL: out of memory, or too
 * many. */
void *mt__scratch_take(size_t count, size_t size);

/* On the thread that took it. Accepts NULL. */
void mt__scratch_give(void *block);

#endif /* KERNELS_WALK_SCRATCH_H */
