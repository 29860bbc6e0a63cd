/* SPDX-License-Identifier: Apache-2.0
 *
 * Clock arithmetic: anchors to nanoseconds, clock pairs to ticks, at the edges of 64 bits.
 */
#include "base/saturate.h"
#include "harness/mt_test.h"
#include "mtprof/read/clock_map.h"
#include "support/traces/trace_builder.h"

static const uint64_t one_ns = (uint64_t)1 << 56;

static mtprof__clock_map map_of(uint64_t period, size_t n, const mtprof__clock_point *points)
{
    mtprof__clock_map map = {.tick_period = period};
    for (size_t i = 0; i < n; i++) {
        REQUIRE(mtprof__clock_map_add(&map, points[i]));
    }
    mtprof__clock_map_finish(&map);
    return map;
}

TEST(one_anchor)
{
    const mtprof__clock_point point = {1000, 5000, 9000};
    mtprof__clock_map map = map_of(one_ns / 3, 1, &point); /* a third of a nanosecond, cut */
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 1000), 5000);
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 1001), 5000);
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 1003), 5000); /* 3 * cut third < 1 */
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 1004), 5001);
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 999), 4999); /* floor, not towards zero */
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 997), 4999);
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 996), 4998);
    CHECK_EQ_I64(mtprof__clock_map_real_offset(&map), 4000);
    mtprof__clock_map_fini(&map);
}

TEST(between_anchors)
{
    const uint64_t ms = 1000000;
    const mtprof__clock_point points[] = {
        {300 * ms, 301 * ms + 2, 0},
        {0, 7, 3},
        {100 * ms, 100 * ms + 7 + 1, 0}, /* one nanosecond more than the period says */
    };
    mtprof__clock_map map = map_of(one_ns, 3, points);
    CHECK_EQ_U64(map.n, 3);
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 0), 7);
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 100 * ms - 1), (int64_t)(100 * ms + 7 - 1));
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 100 * ms), (int64_t)(100 * ms + 8));
    /* 200 ms of ticks are 201 ms - 6 ns of time. */
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 200 * ms),
                 (int64_t)(100 * ms + 8 + 100 * ms + ms / 2 - 3));
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 300 * ms), (int64_t)(301 * ms + 2));
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 300 * ms + 11), (int64_t)(301 * ms + 13));
    CHECK_EQ_I64(mtprof__clock_map_real_offset(&map), -4); /* of the first by ticks */
    mtprof__clock_map_fini(&map);
}

TEST(anchors_left_out)
{
    const uint64_t ms = 1000000;
    const mtprof__clock_point points[] = {
        {0, 1000, 0},
        {100 * ms - 1, 500 * ms, 0},    /* too near */
        {100 * ms, 1000, 0},            /* time does not grow */
        {150 * ms, 150 * ms + 1000, 0}, /* kept */
        {240 * ms, 900 * ms, 0},        /* too near to the one kept */
        {250 * ms, 250 * ms + 1000, 0}, /* just far enough */
        {250 * ms, 300 * ms + 1000, 0}, /* the same tick */
    };
    mtprof__clock_map map = map_of(one_ns, 7, points);
    REQUIRE_EQ_U64(map.n, 3);
    CHECK_EQ_U64(map.anchors[1].ticks, 150 * ms);
    CHECK_EQ_U64(map.anchors[2].ticks, 250 * ms);
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 249 * ms), (int64_t)(249 * ms + 1000));
    mtprof__clock_map_fini(&map);

    /* Two ticks a nanosecond: the distance is one of time, not of ticks. */
    const mtprof__clock_point fast[] = {{0, 0, 0}, {200 * ms - 1, ms, 0}, {200 * ms, 100 * ms, 0}};
    map = map_of(one_ns / 2, 3, fast);
    REQUIRE_EQ_U64(map.n, 2);
    CHECK_EQ_U64(map.anchors[1].ticks, 200 * ms);
    mtprof__clock_map_fini(&map);
}

TEST(nanoseconds_at_the_edges)
{
    const mtprof__clock_point low = {0, 0, UINT64_MAX};
    mtprof__clock_map map = map_of(UINT64_MAX, 1, &low);
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, UINT64_MAX), MTB_TIME_MOST);
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 1), 255);
    CHECK_EQ_I64(mtprof__clock_map_real_offset(&map), MTB_TIME_MOST);
    mtprof__clock_map_fini(&map);

    const mtprof__clock_point high = {UINT64_MAX, UINT64_MAX, 0};
    map = map_of(UINT64_MAX, 1, &high);
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, 0), -MTB_TIME_MOST);
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, UINT64_MAX), MTB_TIME_MOST);
    CHECK_EQ_I64(mtprof__clock_map_real_offset(&map), -MTB_TIME_MOST);
    mtprof__clock_map_fini(&map);

    const mtprof__clock_point wide[] = {{0, 0, 0}, {UINT64_MAX, MTB_TIME_MOST, 0}};
    map = map_of(one_ns, 2, wide);
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, UINT64_MAX - 1), MTB_TIME_MOST - 1);
    CHECK_EQ_I64(mtprof__clock_map_ns(&map, UINT64_MAX / 2), MTB_TIME_MOST / 2);
    mtprof__clock_map_fini(&map);

    mtprof__clock_map none = {.tick_period = one_ns};
    CHECK_EQ_I64(mtprof__clock_map_ns(&none, 5), 0);
    CHECK_EQ_I64(mtprof__clock_map_real_offset(&none), 0);
}

/* Against the same sum done in 128 bits by division from below. */
TEST(nanoseconds_at_random)
{
    uint64_t seed = mt_test_seed();
    for (int i = 0; i < 20000; i++) {
        uint64_t period = one_ns / 8 + mt_test_random(&seed) % one_ns;
        uint64_t at = mt_test_random(&seed) >> (mt_test_random(&seed) % 40 + 8);
        uint64_t mono = mt_test_random(&seed) >> 8;
        uint64_t ticks = mt_test_random(&seed) >> (mt_test_random(&seed) % 40 + 8);
        const mtprof__clock_point point = {at, mono, 0};
        mtprof__clock_map map = {
            .anchors = (mtprof__clock_point[]){point}, .n = 1, .tick_period = period};
        __int128 product = ((__int128)ticks - (__int128)at) * (__int128)period;
        __int128 quotient = product / (__int128)one_ns;
        if (product % (__int128)one_ns < 0) {
            quotient -= 1;
        }
        __int128 expected = (__int128)mono + quotient;
        int64_t got = mtprof__clock_map_ns(&map, ticks);
        if (expected >= -MTB_TIME_MOST && expected <= MTB_TIME_MOST && got != (int64_t)expected) {
            FAIL("ticks %llu: %lld, expected %lld", (unsigned long long)ticks, (long long)got,
                 (long long)expected);
            return;
        }
    }
}

TEST(source_pairs)
{
    mtprof__source_clock clock = {0};
    uint64_t ticks = 42;
    CHECK(!mtprof__source_clock_ticks(&clock, one_ns, 5, &ticks));
    CHECK_EQ_U64(ticks, 42);

    REQUIRE(mtprof__source_clock_add(&clock, (mtprof__clock_pair){1000, 7000}));
    CHECK(mtprof__source_clock_ticks(&clock, one_ns / 4, 1010, &ticks)); /* 4 ticks per ns */
    CHECK_EQ_U64(ticks, 7040);
    CHECK(mtprof__source_clock_ticks(&clock, one_ns * 3, 1010, &ticks)); /* 3 ns per tick */
    CHECK_EQ_U64(ticks, 7003);
    CHECK(mtprof__source_clock_ticks(&clock, one_ns * 3, 990, &ticks)); /* floor(-10 / 3) */
    CHECK_EQ_U64(ticks, 6996);
    CHECK(mtprof__source_clock_ticks(&clock, one_ns / 8, 0, &ticks));
    CHECK_EQ_U64(ticks, 0); /* nothing is before tick 0 */
    CHECK(mtprof__source_clock_ticks(&clock, 1, UINT64_MAX, &ticks));
    CHECK_EQ_U64(ticks, UINT64_MAX);

    REQUIRE(mtprof__source_clock_add(&clock, (mtprof__clock_pair){1000, 9000})); /* left out */
    REQUIRE(mtprof__source_clock_add(&clock, (mtprof__clock_pair){1003, 7000})); /* left out */
    REQUIRE(mtprof__source_clock_add(&clock, (mtprof__clock_pair){1003, 7010}));
    REQUIRE(mtprof__source_clock_add(&clock, (mtprof__clock_pair){2003, 9010}));
    REQUIRE_EQ_U64(clock.n, 3);
    CHECK(mtprof__source_clock_ticks(&clock, one_ns, 1001, &ticks)); /* 3 + 1/3 a unit */
    CHECK_EQ_U64(ticks, 7003);
    CHECK(mtprof__source_clock_ticks(&clock, one_ns, 1003, &ticks));
    CHECK_EQ_U64(ticks, 7010);
    CHECK(mtprof__source_clock_ticks(&clock, one_ns, 1503, &ticks)); /* 2 a unit */
    CHECK_EQ_U64(ticks, 8010);
    CHECK(mtprof__source_clock_ticks(&clock, one_ns, 2013, &ticks)); /* beyond: the last two */
    CHECK_EQ_U64(ticks, 9030);
    CHECK(mtprof__source_clock_ticks(&clock, one_ns, 999, &ticks)); /* before: the first two */
    CHECK_EQ_U64(ticks, 6996);
    mtprof__source_clock_fini(&clock);
}

TEST(through_a_reader)
{
    trace_builder b;
    tb_sample(&b, false);
    tb_chunk(&b, MTPROF_STREAM_SOURCE, 3); /* without a pair */
    tb_finish(&b, true);
    tb_memory memory = {.bytes = b.bytes, .size = b.size};
    mtprof_bytes bytes = tb_bytes(&memory);
    mtprof_reader *reader = NULL;
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    uint64_t ticks = 0;
    CHECK(mtprof_reader_source_ticks(reader, 0, 51000, &ticks));
    CHECK_EQ_U64(ticks, 3000); /* pairs 50000 -> 1000 and 52000 -> 5000 */
    CHECK(!mtprof_reader_source_ticks(reader, 3, 51000, &ticks));
    CHECK(!mtprof_reader_source_ticks(reader, 1, 51000, &ticks));
    CHECK(!mtprof_reader_source_ticks(reader, 65535, 51000, &ticks));
    /* Anchors 1000 -> 5000 and 200001000 -> 200006000: one nanosecond a tick, and one more. */
    CHECK_EQ_I64(mtprof_reader_ns(reader, 1000), 5000);
    CHECK_EQ_I64(mtprof_reader_ns(reader, 200001000), 200006000);
    CHECK_EQ_I64(mtprof_reader_real_offset(reader), 900000);
    mtprof_reader_close(reader);
    tb_fini(&b);
}
