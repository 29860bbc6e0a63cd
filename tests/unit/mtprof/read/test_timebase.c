/* SPDX-License-Identifier: Apache-2.0
 *
 * Ticks to nanoseconds by multiplication: the same numbers as by division, everywhere.
 */
#include "harness/mt_test.h"
#include "mtprof/read/timebase.h"

#include <mtprof/format.h>

enum {
    MAPS = 400,
    ANCHORS = 12,
    TICKS = 200
};

static uint64_t next(uint64_t *state)
{
    *state += 0x9E3779B97F4A7C15u;
    uint64_t x = *state;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* Of any size: as many bits as the generator says. */
static uint64_t any_size(uint64_t *state)
{
    return next(state) >> (next(state) % 64);
}

static void compare(mtprof__timebase *base, uint64_t ticks)
{
    int64_t expected = mtprof__clock_map_ns(base->map, ticks);
    int64_t got = mtprof__timebase_ns(base, ticks);
    if (got != expected) {
        FAIL("ticks %llu: %lld ns, expected %lld", (unsigned long long)ticks, (long long)got,
             (long long)expected);
    }
}

/* Around every anchor, between them, before, after, and at the ends of what ticks can be. */
static void compare_map(const mtprof__clock_map *map, uint64_t *state)
{
    mtprof__timebase base = {.map = map};
    for (size_t i = 0; i < map->n; i++) {
        for (int64_t d = -2; d <= 2; d++) {
            compare(&base, map->anchors[i].ticks + (uint64_t)d);
        }
    }
    for (int i = 0; i < TICKS; i++) {
        uint64_t from = map->n > 0 ? map->anchors[next(state) % map->n].ticks : 0;
        compare(&base, from + any_size(state));
        compare(&base, any_size(state));
    }
    compare(&base, 0);
    compare(&base, UINT64_MAX);
}

/* A clock as machines have it: near its nominal rate, an anchor a second. */
TEST(real_clocks)
{
    uint64_t state = mt_test_seed();
    for (int i = 0; i < MAPS; i++) {
        uint64_t hz = 800000000u + next(&state) % 4000000000u;
        mtprof__clock_map map = {
            .tick_period =
                (uint64_t)(((unsigned __int128)1000000000u << MTPROF_PERIOD_SHIFT) / hz)};
        mtprof__clock_point at = {next(&state) >> 8, next(&state) >> 20, 0};
        for (int k = 0; k < ANCHORS; k++) {
            REQUIRE(mtprof__clock_map_add(&map, at));
            at.ticks += hz + next(&state) % 1000;
            at.mono_ns += 1000000000u + next(&state) % 1000;
        }
        mtprof__clock_map_finish(&map);
        compare_map(&map, &state);
        mtprof__clock_map_fini(&map);
    }
}

/* Whatever a damaged or hostile trace may say. */
TEST(any_clock)
{
    uint64_t state = mt_test_seed() + 1;
    for (int i = 0; i < MAPS; i++) {
        mtprof__clock_map map = {.tick_period = any_size(&state)};
        for (uint64_t k = next(&state) % ANCHORS; k > 0; k--) {
            mtprof__clock_point at = {any_size(&state), any_size(&state), 0};
            REQUIRE(mtprof__clock_map_add(&map, at));
        }
        mtprof__clock_map_finish(&map);
        compare_map(&map, &state);
        mtprof__clock_map_fini(&map);
    }
}

/* Ticks that are nanoseconds: CLOCK_MONOTONIC. */
TEST(nanosecond_ticks)
{
    uint64_t state = mt_test_seed() + 2;
    mtprof__clock_map map = {.tick_period = (uint64_t)1 << MTPROF_PERIOD_SHIFT};
    for (uint64_t k = 1; k <= ANCHORS; k++) {
        mtprof__clock_point at = {k * 1000000000u, k * 1000000000u, 0};
        REQUIRE(mtprof__clock_map_add(&map, at));
    }
    mtprof__clock_map_finish(&map);
    compare_map(&map, &state);
    mtprof__timebase base = {.map = &map};
    CHECK_EQ_I64(mtprof__timebase_ns(&base, 3141592653u), 3141592653);
    mtprof__clock_map_fini(&map);
}
