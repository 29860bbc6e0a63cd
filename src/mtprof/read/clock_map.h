/* SPDX-License-Identifier: Apache-2.0
 *
 * From ticks to nanoseconds (docs/format.md 3.1) and from a source's clock to ticks (3.4).
 *
 * All arithmetic is exact in 128 bits and rounds down; ticks that do not fit are the nearest that
 * do, and nanoseconds are within MTB_TIME_MOST of 0 (base/saturate.h).
 */
#ifndef MTPROF_READ_CLOCK_MAP_H
#define MTPROF_READ_CLOCK_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mtprof__clock_point {
    uint64_t ticks, mono_ns, real_ns;
} mtprof__clock_point;

typedef struct mtprof__clock_map {
    mtprof__clock_point *anchors;
    size_t n, capacity;
    uint64_t tick_period;
} mtprof__clock_map;

/* Anchors may be added in any order; mtprof__clock_map_finish() sorts and thins them. False: no
 * memory.
 */
bool mtprof__clock_map_add(mtprof__clock_map *map, mtprof__clock_point anchor);
void mtprof__clock_map_finish(mtprof__clock_map *map);
int64_t mtprof__clock_map_ns(const mtprof__clock_map *map, uint64_t ticks);
int64_t mtprof__clock_map_real_offset(const mtprof__clock_map *map);
void mtprof__clock_map_fini(mtprof__clock_map *map);

/* To another clock: to_ns + (1 + drift) * (ns - from_ns). */
typedef struct mtprof__clock_move {
    int64_t from_ns, to_ns;
    double drift;
    int64_t real_offset_ns; /* of the other clock */
} mtprof__clock_move;

/* The time on the other clock, within MTB_TIME_MOST of 0. */
int64_t mtprof__clock_move_ns(const mtprof__clock_move *move, int64_t ns);
/* Ticks become times on the other clock; for a map that is finished and that nobody reads yet. */
void mtprof__clock_map_move(mtprof__clock_map *map, const mtprof__clock_move *move);

typedef struct mtprof__clock_pair {
    uint64_t time, ticks;
} mtprof__clock_pair;

typedef struct mtprof__source_clock {
    mtprof__clock_pair *pairs;
    size_t n, capacity;
    uint16_t source;
} mtprof__source_clock;

/* Adds a pair in order of arrival; one that does not grow in both columns is left out. False: no
 * memory. */
bool mtprof__source_clock_add(mtprof__source_clock *clock, mtprof__clock_pair pair);
/* False if the clock has no pair. */
bool mtprof__source_clock_ticks(const mtprof__source_clock *clock, uint64_t tick_period,
                                uint64_t time, uint64_t *ticks);
void mtprof__source_clock_fini(mtprof__source_clock *clock);

#endif /* MTPROF_READ_CLOCK_MAP_H */
