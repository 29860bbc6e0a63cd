/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks at a ring of several segments: the unused ends of segments are crossed once and then known
 * (live_look.c, LLK4), nothing behind them is missed, and the ring's own memory reads as its file
 * does. And tables of which the first rows alone are in order.
 */
#include "mtprof/control/session_impl.h"
#include "stress/stress.h"

#include <mtprof/live.h>

enum {
    NAME_BYTES =
        200000, /* of a definition: a chunk of its own, which no segment's end has room for */
    PER_POLL = 4000,
    POLLS = 40
};

static mtprof_site scope = MTPROF_SITE_INIT("ring scope", MTPROF_KIND_SCOPE);

static const mtprof_live_options from_start = {
    .struct_size = sizeof from_start, .from_start = 1, .window_ns = INT64_MAX};

static double calls_of(mtprof_live *live)
{
    const mtprof_live_row *rows = NULL;
    uint32_t n = 0;
    CHECK_OK(mtprof_live_get_rows(live, NULL, &rows, &n));
    for (uint32_t i = 0; i < n; i++) {
        if (rows[i].name.length == 10 && memcmp(rows[i].name.bytes, "ring scope", 10) == 0) {
            return rows[i].calls_all;
        }
    }
    return 0;
}

static uint64_t missed_of(const mtprof_live *live)
{
    mtprof_live_info info = {.struct_size = sizeof info};
    CHECK_OK(mtprof_live_get_info(live, &info));
    CHECK_EQ_U64(info.damaged, 0);
    return info.missed;
}

/* Scopes, and now and then a long name that makes the recorder leave the rest of a segment. */
static void record(uint32_t poll)
{
    static char name[NAME_BYTES];
    memset(name, 'a' + (int)(poll % 26), sizeof name);
    for (uint32_t i = 0; i < PER_POLL; i++) {
        mtprof_end(mtprof_begin(&scope));
    }
    mtprof_intern_here(name, sizeof name);
}

static void follow_ring(const char *path, bool in_memory)
{
    mtprof_live *live = NULL;
    mtprof_bytes bytes = {.struct_size = sizeof bytes};
    mtprof_session *session = stress_start(path, MTPROF_POLICY_RING, 4 << 20);
    REQUIRE(session != NULL);
    if (in_memory) {
        REQUIRE_OK(mtprof__session_memory(session, &bytes));
        REQUIRE_OK(mtprof_live_open_bytes(&bytes, &from_start, &live));
    } else {
        REQUIRE_OK(mtprof_live_open(path, &from_start, &live));
    }
    for (uint32_t poll = 0; poll < POLLS; poll++) {
        record(poll);
        REQUIRE_OK(mtprof_live_poll(live, 0));
        CHECK_EQ_F64(calls_of(live), (double)PER_POLL * (poll + 1));
    }
    CHECK_EQ_U64(missed_of(live), 0);
    mtprof_live_close(live);
    CHECK_OK(mtprof_session_close(session));
}

TEST(every_poll_of_a_ring_finds_all_of_it)
{
    char path[STRESS_PATH];
    follow_ring(stress_path(path, "ring.mtt"), false);
}

TEST(a_rings_memory_reads_as_its_file)
{
    char path[STRESS_PATH];
    follow_ring(stress_path(path, "ring.mtt"), true);
}

TEST(a_ring_in_memory_is_read)
{
    follow_ring(NULL, true);
}

/* The first rows of a table are those of the same table in whole, for any number of them. */
TEST(the_first_rows_are_in_order)
{
    char path[STRESS_PATH];
    char name[32];
    const mtprof_live_row *rows = NULL;
    uint32_t n = 0;
    mtprof_text all[64];
    mtprof_live *live = NULL;
    mtprof_session *session =
        stress_start(stress_path(path, "ring.mtt"), MTPROF_POLICY_RING, 1 << 20);
    REQUIRE(session != NULL);
    for (uint32_t i = 0; i < MT_COUNT(all); i++) {
        int length = snprintf(name, sizeof name, "name %u", i);
        for (uint32_t k = 0; k <= i * 37 % 17; k++) {
            mtprof_end(mtprof_begin_named(name, (size_t)length, 0));
        }
    }
    REQUIRE_OK(mtprof_live_open(path, &from_start, &live));
    REQUIRE_OK(mtprof_live_poll(live, 0));
    mtprof_live_query query = {.struct_size = sizeof query, .sort = MTPROF_LIVE_SORT_CALLS};
    REQUIRE_OK(mtprof_live_get_rows(live, &query, &rows, &n));
    REQUIRE(n == MT_COUNT(all));
    for (uint32_t i = 0; i < n; i++) {
        all[i] = rows[i].name; /* names stay: only the rows are made anew */
    }
    for (query.ordered = 1; query.ordered <= n + 1; query.ordered++) {
        uint32_t again = 0;
        double calls = 0;
        REQUIRE_OK(mtprof_live_get_rows(live, &query, &rows, &again));
        CHECK_EQ_U64(again, n);
        for (uint32_t i = 0; i < again; i++) {
            calls += rows[i].calls;
            if (i < query.ordered) {
                CHECK(rows[i].name.length == all[i].length &&
                      memcmp(rows[i].name.bytes, all[i].bytes, all[i].length) == 0);
            }
        }
        CHECK(calls > n); /* the others are there, too */
    }
    mtprof_live_close(live);
    CHECK_OK(mtprof_session_close(session));
}
