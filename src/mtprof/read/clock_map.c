/* SPDX-License-Identifier: Apache-2.0
 *
 * Clock arithmetic. Products of two 64-bit numbers need all of 128 unsigned bits, so differences
 * are kept as magnitude and sign, and rounding down of a negative one is rounding up of its
 * magnitude.
 */
#include "mtprof/read/clock_map.h"

#include "base/alloc.h"
#include "base/saturate.h"

#include <mtprof/format.h>

#include <math.h>
#include <stdlib.h>

typedef unsigned __int128 u128;

static const uint64_t anchor_distance_ns = 100000000;

/* ---- exact steps ----------------------------------------------------------------------------- */

static u128 divide(u128 product, u128 divisor, bool round_up)
{
    u128 quotient = product / divisor;
    return quotient + (round_up && product % divisor != 0);
}

/* base + floor((to - from) * factor / divisor), where the difference is signed; 0 to 2^64 - 1. */
static uint64_t step_u64(uint64_t base, uint64_t from, uint64_t to, u128 factor, u128 divisor)
{
    bool back = to < from;
    u128 magnitude = divide((u128)(back ? from - to : to - from) * factor, divisor, back);
    if (back) {
        return magnitude > base ? 0 : base - (uint64_t)magnitude;
    }
    return magnitude > UINT64_MAX - base ? UINT64_MAX : base + (uint64_t)magnitude;
}

static int64_t bound(__int128 ns)
{
    return ns > MTB_TIME_MOST ? MTB_TIME_MOST : ns < -MTB_TIME_MOST ? -MTB_TIME_MOST : (int64_t)ns;
}

/* The same for a signed result; base is what a writer had in an unsigned field. */
static int64_t step_i64(uint64_t base, uint64_t from, uint64_t to, u128 factor, u128 divisor)
{
    bool back = to < from;
    u128 magnitude = divide((u128)(back ? from - to : to - from) * factor, divisor, back);
    const u128 most = (u128)1 << 100; /* past int64_t, no overflow of __int128 */
    __int128 difference = (__int128)(magnitude > most ? most : magnitude);
    __int128 result = (__int128)base + (back ? -difference : difference);
    return bound(result);
}

/* ---- another clock --------------------------------------------------------------------------- */

int64_t mtprof__clock_move_ns(const mtprof__clock_move *move, int64_t ns)
{
    __int128 since = (__int128)ns - move->from_ns;
    double more = move->drift * (double)since;
    more = more > 4e18 ? 4e18 : more < -4e18 ? -4e18 : more;
    return bound(move->to_ns + since + (__int128)llround(more));
}

void mtprof__clock_map_move(mtprof__clock_map *map, const mtprof__clock_move *move)
{
    for (size_t i = 0; i < map->n; i++) {
        mtprof__clock_point *anchor = &map->anchors[i];
        int64_t mono =
            anchor->mono_ns > (uint64_t)MTB_TIME_MOST ? MTB_TIME_MOST : (int64_t)anchor->mono_ns;
        int64_t moved = mtprof__clock_move_ns(move, mono);
        anchor->mono_ns = moved > 0 ? (uint64_t)moved : 0;
        anchor->real_ns = anchor->mono_ns + (uint64_t)move->real_offset_ns;
    }
    double period = (double)map->tick_period * move->drift;
    map->tick_period += (uint64_t)(int64_t)llround(period);
}

/* ---- ticks to nanoseconds -------------------------------------------------------------------- */

bool mtprof__clock_map_add(mtprof__clock_map *map, mtprof__clock_point anchor)
{
    return mtb_append(map->anchors, map->n, map->capacity, &anchor);
}

static int compare(const void *a, const void *b)
{
    const mtprof__clock_point *left = a;
    const mtprof__clock_point *right = b;
    int order = mtb_order(left->ticks, right->ticks);
    return order != 0 ? order : mtb_order(left->mono_ns, right->mono_ns);
}

void mtprof__clock_map_finish(mtprof__clock_map *map)
{
    size_t kept = 0;
    if (map->n > 1) {
        qsort(map->anchors, map->n, sizeof *map->anchors, compare);
    }
    for (size_t i = 0; i < map->n; i++) {
        mtprof__clock_point anchor = map->anchors[i];
        if (kept > 0) {
            const mtprof__clock_point *before = &map->anchors[kept - 1];
            u128 distance = (u128)(anchor.ticks - before->ticks) * map->tick_period;
            if (distance < (u128)anchor_distance_ns << MTPROF_PERIOD_SHIFT ||
                anchor.mono_ns <= before->mono_ns) {
                continue;
            }
        }
        map->anchors[kept++] = anchor;
    }
    map->n = kept;
}

static bool is_by(const void *anchor, uint64_t ticks)
{
    return ((const mtprof__clock_point *)anchor)->ticks <= ticks;
}

int64_t mtprof__clock_map_ns(const mtprof__clock_map *map, uint64_t ticks)
{
    if (map->n == 0) {
        return 0;
    }
    /* low: the last anchor at or before the tick, or the first of all. */
    size_t low = mtb_search(map->anchors, map->n, sizeof *map->anchors, is_by, ticks);
    low -= low > 0;
    const mtprof__clock_point *a = &map->anchors[low];
    if (ticks < a->ticks || low + 1 == map->n) {
        return step_i64(a->mono_ns, a->ticks, ticks, map->tick_period,
                        (u128)1 << MTPROF_PERIOD_SHIFT);
    }
    return step_i64(a->mono_ns, a->ticks, ticks, a[1].mono_ns - a->mono_ns, a[1].ticks - a->ticks);
}

int64_t mtprof__clock_map_real_offset(const mtprof__clock_map *map)
{
    if (map->n == 0) {
        return 0;
    }
    return bound((__int128)map->anchors[0].real_ns - (__int128)map->anchors[0].mono_ns);
}

void mtprof__clock_map_fini(mtprof__clock_map *map)
{
    mtb_free(map->anchors);
    map->anchors = NULL;
    map->n = map->capacity = 0;
}

/* ---- a source's clock to ticks --------------------------------------------------------------- */

bool mtprof__source_clock_add(mtprof__source_clock *clock, mtprof__clock_pair pair)
{
    if (clock->n > 0) {
        const mtprof__clock_pair *before = &clock->pairs[clock->n - 1];
        if (pair.time <= before->time || pair.ticks <= before->ticks) {
            return true;
        }
    }
    return mtb_append(clock->pairs, clock->n, clock->capacity, &pair);
}

bool mtprof__source_clock_ticks(const mtprof__source_clock *clock, uint64_t tick_period,
                                uint64_t time, uint64_t *ticks)
{
    const mtprof__clock_pair *a = clock->pairs;
    if (clock->n == 0) {
        return false;
    }
    if (clock->n == 1) {
        *ticks =
            step_u64(a->ticks, a->time, time, (u128)1 << MTPROF_PERIOD_SHIFT, (u128)tick_period);
        return true;
    }
    /* The two pairs around the time, or the nearest two. */
    size_t low = 0;
    size_t high = clock->n - 1;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (a[middle].time <= time) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *ticks = step_u64(a[low].ticks, a[low].time, time, a[low + 1].ticks - a[low].ticks,
                      a[low + 1].time - a[low].time);
    return true;
}

void mtprof__source_clock_fini(mtprof__source_clock *clock)
{
    mtb_free(clock->pairs);
    clock->pairs = NULL;
    clock->n = clock->capacity = 0;
}
