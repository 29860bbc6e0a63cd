/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the recorder's clock. On the hot path this is one RDTSC: unfenced, because a fence costs
 * as much as the reading itself and the jitter it removes (about 20 ns) is below what begin and end
 * can resolve anyway.
 */
#ifndef MTPROF_RECORD_HOT_TICKS_H
#define MTPROF_RECORD_HOT_TICKS_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

/* A moment on all three clocks. */
typedef struct mtprof__anchor {
    uint64_t ticks, mono_ns, real_ns;
} mtprof__anchor;

/*
 * What keeps a process off the shortest paths: no usable time stamp counter, or no membarrier()
 * (see writer.h). The short paths test this word once and then assume the usual machine.
 */
enum {
    MTPROF__ODD_CLOCK = 1,
    MTPROF__ODD_BARRIER = 2
};
extern uint32_t mtprof__odd;

uint64_t mtprof__ticks_slow(void);

MT_INLINE uint64_t mtprof__ticks(void)
{
#if defined(__x86_64__)
    if (MT_LIKELY((__atomic_load_n(&mtprof__odd, __ATOMIC_RELAXED) & MTPROF__ODD_CLOCK) == 0)) {
        return __builtin_ia32_rdtsc();
    }
#endif
    return mtprof__ticks_slow();
}

/* For where mtprof__odd has been tested. */
MT_INLINE uint64_t mtprof__ticks_fast(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return mtprof__ticks_slow();
#endif
}

/* CLOCK_MONOTONIC, for deadlines: no event has this time. */
uint64_t mtprof__mono_ns(void);

/* Chooses the clock and measures its period; cheap after the first call. */
void mtprof__clock_prepare(void);

/* The best of a few readings of all clocks. */
mtprof__anchor mtprof__clock_anchor(void);

/* How many ticks a time of nanoseconds is. */
uint64_t mtprof__ns_to_ticks(uint64_t ns);

/* Test hook: adds this to every slow reading, and makes every reading slow. 0, false: off. */
void mtprof__clock_disturb(int64_t offset, bool on);

#endif /* MTPROF_RECORD_HOT_TICKS_H */
