/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/read/timebase.h"

static const uint64_t far_ticks = (uint64_t)1 << 60; /* an extrapolation stays exact within it */
static const uint64_t far_ns = (uint64_t)1 << 61;

/* The last anchor at or before a tick; map->n: there is none. */
static size_t find_anchor(const mtprof__clock_map *map, uint64_t ticks)
{
    size_t low = 0;
    size_t high = map->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->anchors[middle].ticks <= ticks) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? map->n : low - 1;
}

int64_t mtprof__timebase_seek(mtprof__timebase *base, uint64_t ticks)
{
    const mtprof__clock_map *map = base->map;
    size_t at = find_anchor(map, ticks);
    base->low = base->high = 0;
    if (at == map->n || map->anchors[at].mono_ns >= far_ns) {
        return mtprof__clock_map_ns(map, ticks); /* rare: before the first anchor */
    }
    const mtprof__clock_point *anchor = &map->anchors[at];
    uint64_t reach =
        anchor->ticks < UINT64_MAX - far_ticks ? anchor->ticks + far_ticks : UINT64_MAX;
    if (at + 1 == map->n) {
        base->num = map->tick_period;
        base->den = 0;
        if (base->num >> (MTPROF_PERIOD_SHIFT + 1) != 0) { /* ticks of 2 ns or more: may overflow */
            return mtprof__clock_map_ns(map, ticks);
        }
    } else {
        base->num = anchor[1].mono_ns - anchor->mono_ns;
        base->den = anchor[1].ticks - anchor->ticks;
        reach = anchor[1].ticks;
        if (base->num >= base->den || base->den > (uint64_t)INT64_MAX ||
            anchor[1].mono_ns >= far_ns) {
            return mtprof__clock_map_ns(map, ticks);
        }
        base->reciprocal = (uint64_t)(((unsigned __int128)base->num << 64) / base->den);
    }
    base->low = anchor->ticks;
    base->base_ns = (int64_t)anchor->mono_ns;
    if (ticks >= reach) {
        return mtprof__clock_map_ns(map, ticks);
    }
    base->high = reach;
    return mtprof__timebase_ns(base, ticks);
}
