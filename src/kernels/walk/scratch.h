/* SPDX-License-Identifier: Apache-2.0
 *
 * Working memory of kernels. A thread keeps a few blocks for its next calls, because memory fresh
 * from the system costs more to touch than most kernels take.
 */
#ifndef KERNELS_WALK_SCRATCH_H
#define KERNELS_WALK_SCRATCH_H

#include <stddef.h>

/* `count` objects of `size` bytes, aligned to 64, not initialised. NULL: refused, or too many. */
void *mt__scratch_take(size_t count, size_t size);

/* On the thread that took it. Accepts NULL. */
void mt__scratch_give(void *block);

#endif /* KERNELS_WALK_SCRATCH_H */
