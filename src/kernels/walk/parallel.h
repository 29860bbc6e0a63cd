/* SPDX-License-Identifier: Apache-2.0
 *
 * Host threads for large work: a pool that starts when it is first needed. Work below `grain` runs
 * on the caller. Inside a parallel piece everything runs on the caller.
 *
 *   PAR1  Pieces depend on the range and the grain alone, never on the number of threads: a kernel
 *         that sums piece by piece gives the same result with any number of threads.
 *   PAR2  After fork() the child starts a pool of its own.
 *   PAR3  If threads cannot be started, the caller does the work.
 */
#ifndef KERNELS_WALK_PARALLEL_H
#define KERNELS_WALK_PARALLEL_H

#include <stdint.h>

/* One piece of [begin, end): number begin / grain. */
typedef void mt__piece_fn(void *context, int64_t begin, int64_t end);

/* Cuts [0, count) into pieces of `grain` (the last one shorter) and runs them. */
void mt__parallel_for(int64_t count, int64_t grain, mt__piece_fn *run, void *context);

uint32_t mt__parallel_threads(void);
void mt__parallel_set_threads(uint32_t count);

#endif /* KERNELS_WALK_PARALLEL_H */
