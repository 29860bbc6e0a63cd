/* SPDX-License-Identifier: Apache-2.0
 *
 * The recorder's clock: the CPU's time stamp counter where it is invariant, otherwise
 * CLOCK_MONOTONIC. Its unit is the tick.
 */
#ifndef MTPROF_CLOCK_H
#define MTPROF_CLOCK_H

#include <mtprof/api.h>

#include <stdint.h>

MTPROF_BEGIN_DECLS

/** The clock now. */
MTPROF_API uint64_t mtprof_ticks(void);

/** Nanoseconds of CLOCK_MONOTONIC at a tick, by this process's calibration. */
MTPROF_API int64_t mtprof_ticks_to_ns(uint64_t ticks);

/** Nanoseconds per tick, a fixed-point number with 56 fraction bits. */
MTPROF_API uint64_t mtprof_tick_period(void);

/** 0: time stamp counter, 1: CLOCK_MONOTONIC. */
MTPROF_API uint32_t mtprof_clock_kind(void);

MTPROF_END_DECLS

#endif /* MTPROF_CLOCK_H */
