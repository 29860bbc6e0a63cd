/* SPDX-License-Identifier: Apache-2.0
 *
 * Ticks to nanoseconds for streams of records: the same numbers as mtprof__clock_map_ns(), with the
 * stretch of clock that the last tick was in kept ready, and a multiplication instead of the
 * division.
 *
 * A quotient d * num / den is guessed as the high half of d * floor(num * 2^64 / den), which is at
 * most one too small for any 64-bit d, and put right by the remainder. That is below 2 * den, so
 * its low half is all of it while den is below 2^63.
 */
#ifndef MTPROF_READ_TIMEBASE_H
#define MTPROF_READ_TIMEBASE_H

#include "base/compiler.h"
#include "mtprof/read/clock_map.h"

#include <mtprof/format.h>

#include <stdint.h>

typedef struct mtprof__timebase {
    const mtprof__clock_map *map;
    uint64_t low, high; /* ticks that the stretch covers: low <= ticks < high; none: 0, 0 */
    int64_t base_ns;
    uint64_t num, den;   /* nanoseconds per ticks; den 0: num is a fixed-point period */
    uint64_t reciprocal; /* floor(num * 2^64 / den) */
} mtprof__timebase;

/* Finds the stretch of a tick; the slow way in. */
int64_t mtprof__timebase_seek(mtprof__timebase *base, uint64_t ticks);

MT_INLINE int64_t mtprof__timebase_ns(mtprof__timebase *base, uint64_t ticks)
{
    if (MT_UNLIKELY(ticks < base->low || ticks >= base->high)) {
        return mtprof__timebase_seek(base, ticks);
    }
    uint64_t distance = ticks - base->low;
    if (base->den == 0) {
        return base->base_ns +
               (int64_t)(uint64_t)((unsigned __int128)distance * base->num >> MTPROF_PERIOD_SHIFT);
    }
    uint64_t guess = (uint64_t)((unsigned __int128)distance * base->reciprocal >> 64);
    uint64_t rest = distance * base->num - guess * base->den;
    return base->base_ns + (int64_t)(guess + (rest >= base->den));
}

#endif /* MTPROF_READ_TIMEBASE_H */
