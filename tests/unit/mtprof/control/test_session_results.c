/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session gives: metadata, health, bytes live and later, a saved file. All of them tell the
 * same story.
 */
#include "harness/mt_test.h"
#include "mtprof/record/sys.h"
#include "support/traces/trace_view.h"

#include <mtprof/clock.h>
#include <mtprof/op.h>
#include <mtprof/session.h>
#include <mtprof/version.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static mtprof_site scope = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);
static mtprof_site point = MTPROF_SITE_INIT("point", MTPROF_KIND_SCOPE);

static const char *in_tmp(const char *name)
{
    static char path[4][512];
    static int turn;
    char *at = path[turn++ % 4];
    snprintf(at, sizeof path[0], "%s/%s", mt_test_tmpdir(), name);
    return at;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static bool find_meta(const trace_view *v, const char *key, size_t length, mtprof_text *value,
                      bool *is_json)
{
    mtprof_text k;
    for (uint32_t i = 0; mtprof_reader_metadata(v->reader, i, &k, value, is_json); i++) {
        if (k.length == length && memcmp(k.bytes, key, length) == 0) {
            return true;
        }
    }
    return false;
}

TEST(metadata_is_any_bytes_and_the_last_value_counts)
{
    static const char odd_key[] = "k\0\xFF", odd_value[] = "\0\0v\n";
    static char large[100000];
    memset(large, 'L', sizeof large);
    mtprof_session *s = tv_start(0);
    CHECK_OK(mtprof_session_add_metadata(s, odd_key, 3, odd_value, 4, false));
    CHECK_OK(mtprof_session_add_metadata(s, "j", 1, "{\"a\":1}", 7, true));
    CHECK_OK(mtprof_session_add_metadata(s, "twice", 5, "first", 5, true));
    CHECK_OK(mtprof_session_add_metadata(s, "empty", 5, NULL, 0, false));
    CHECK_OK(mtprof_session_add_metadata(s, "large", 5, large, sizeof large, false));
    REQUIRE_OK(mtprof_session_stop(s));
    CHECK_OK(mtprof_session_add_metadata(s, "twice", 5, "second", 6, false)); /* until close */
    trace_view *v = tv_finish(s, NULL);
    mtprof_text value;
    bool is_json;
    REQUIRE(find_meta(v, odd_key, 3, &value, &is_json));
    CHECK_EQ_U64(value.length, 4);
    CHECK_EQ_MEM(value.bytes, odd_value, 4);
    CHECK(!is_json);
    REQUIRE(find_meta(v, "j", 1, &value, &is_json));
    CHECK_EQ_STR(value.bytes, "{\"a\":1}");
    CHECK(is_json);
    REQUIRE(find_meta(v, "twice", 5, &value, &is_json));
    CHECK_EQ_STR(value.bytes, "second");
    CHECK(!is_json);
    REQUIRE(find_meta(v, "empty", 5, &value, &is_json));
    CHECK_EQ_U64(value.length, 0);
    REQUIRE(find_meta(v, "large", 5, &value, &is_json));
    CHECK_EQ_U64(value.length, sizeof large);
    CHECK_EQ_MEM(value.bytes, large, sizeof large);
    CHECK_EQ_STR(tv_metadata(v, "mtprof_version"), mtprof_version_string());
    CHECK(tv_metadata(v, "process_name") != NULL);
    tv_free(v);
}

TEST(metadata_of_16_mib_fits_and_of_more_does_not)
{
#if defined(MT_HOSTILE) && MT_HOSTILE
    MT_SKIP("the segments of this build are smaller");
#endif
    char *large = calloc(1, (16 << 20) + 1);
    REQUIRE(large != NULL);
    mtprof_session *s = tv_start(0);
    CHECK_OK(mtprof_session_add_metadata(s, "k", 1, large, 16 << 20, false));
    CHECK_EQ_I64(mtprof_session_add_metadata(s, "k", 1, large, (16 << 20) + 1, false),
                 MTPROF_EINVAL);
    trace_view *v = tv_finish(s, NULL);
    mtprof_text value;
    bool is_json;
    REQUIRE(find_meta(v, "k", 1, &value, &is_json));
    CHECK_EQ_U64(value.length, 16 << 20);
    tv_free(v);
    free(large);
}

TEST(metadata_without_room_is_told)
{
    static char large[200000];
    mtprof_config c = {
        .struct_size = sizeof c, .policy = MTPROF_POLICY_STOP, .buffer_bytes = 64 << 10};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&c, &s));
    CHECK_EQ_I64(mtprof_session_add_metadata(s, "k", 1, large, sizeof large, false), MTPROF_ENOSPC);
    CHECK_OK(mtprof_session_add_metadata(s, "small", 5, "v", 1, false));
    tv_free(tv_finish(s, NULL));
}

/* ---- health ---------------------------------------------------------------------------------- */

TEST(health_is_exact_after_the_stop_and_close_before)
{
    mtprof_session *s = tv_start(MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS);
    mtprof_health live = {.struct_size = sizeof live};
    for (uint64_t i = 0; i < 1000; i++) {
        mtprof_token token = mtprof_begin(&scope);
        mtprof_instant(&point);
        mtprof_counter(&point, 1);
        mtprof_flow(&point, MTPROF_FLOW_START, 1);
        mtprof_alloc(0, 1, 1, 1, 0);
        mtprof_launch(NULL, 0, 0);
        mtprof_end(token);
    }
    mtprof_token open = mtprof_begin(&scope);
    REQUIRE_OK(mtprof_session_get_health(s, &live));
    CHECK_EQ_U64(live.begins, 2001); /* the only writer is at rest */
    CHECK_EQ_U64(live.others, 4000);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    mtprof_end(open);
    CHECK_EQ_U64(h.struct_size, sizeof h);
    CHECK_EQ_U64(h.threads, 1);
    CHECK_EQ_U64(h.begins, 2001);
    CHECK_EQ_U64(h.others, 4000);
    CHECK_EQ_U64(h.launches, 1000);
    CHECK_EQ_U64(h.truncated, 1);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(h.evicted, 0);
    CHECK_EQ_U64(h.busy_at_stop, 0);
    CHECK_EQ_U64(h.texts_cut, 0);
    CHECK_EQ_U64(h.clock_back, 0);
    CHECK_EQ_U64(h.written_behind, 0);
    CHECK(h.pair_cost_ps > 1000 && h.pair_cost_ps < 100 * 1000 * 1000);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_BEGIN) + tv_count(v, MTPROF_REC_LAUNCH), h.begins);
    mtprof_trace_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_reader_get_info(v->reader, &info));
    CHECK_EQ_U64(info.file_bytes, h.bytes);
    CHECK_EQ_U64(info.health[MTPROF_HEALTH_BEGINS], h.begins); /* and it is in the trace */
    CHECK_EQ_U64(info.health[MTPROF_HEALTH_OTHERS], h.others);
    CHECK_EQ_U64(info.health[MTPROF_HEALTH_LAUNCHES], h.launches);
    CHECK_EQ_U64(info.health[MTPROF_HEALTH_TRUNCATED], h.truncated);
    CHECK(info.begin_cost_ticks > 0);
    tv_free(v);
}

TEST(events_past_the_budget_are_counted_one_by_one)
{
    enum {
        EVENTS = 20000
    };
    mtprof_config c = {
        .struct_size = sizeof c, .policy = MTPROF_POLICY_STOP, .buffer_bytes = 64 << 10};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&c, &s));
    for (int i = 0; i < EVENTS; i++) {
        mtprof_instant(&point);
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK(h.others > 0);
    CHECK(h.lost_by[MTPROF_LOST_BUDGET] > 0);
    CHECK_EQ_U64(h.lost, h.lost_by[MTPROF_LOST_BUDGET]);
    CHECK_EQ_U64(h.others + h.lost, EVENTS);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INSTANT), h.others);
    CHECK(h.bytes <= 64 << 10);
    tv_free(v);
}

TEST(a_ring_keeps_the_newest_and_counts_what_it_let_go)
{
    enum {
        SCOPES = 50000
    };
    mtprof_config c = {
        .struct_size = sizeof c, .policy = MTPROF_POLICY_RING, .buffer_bytes = 256 << 10};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&c, &s));
    for (int i = 0; i < SCOPES; i++) {
        mtprof_end(mtprof_begin(&scope));
    }
    mtprof_token last = mtprof_begin(&point);
    mtprof_end(last);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.begins, SCOPES + 1);
    CHECK(h.evicted > 0);
    CHECK_EQ_U64(h.evicted + tv_count(v, MTPROF_REC_BEGIN), SCOPES + 1);
    CHECK(tv_span_key(v, mtprof_launch_key(last)) != NULL);
    CHECK(h.bytes <= (256 << 10) + (8 << 10)); /* definitions come on top: one or two chunks here */
    CHECK_EQ_U64(h.lost, 0);
    tv_free(v);
}

TEST(every_cause_of_a_loss_has_a_name)
{
    static const char *const names[] = {"memory",    "disk",   "budget", "nested", "threads",
                                        "too large", "source", "late",   "damage"};
    for (uint32_t i = 0; i < 9; i++) {
        CHECK_EQ_STR(mtprof_lost_cause(i), names[i]);
    }
    CHECK_EQ_STR(mtprof_lost_cause(9), "unknown");
    CHECK_EQ_STR(mtprof_lost_cause(UINT32_MAX), "unknown");
}

/* ---- bytes and files ------------------------------------------------------------------------- */

/* Everything that readers see of a trace, as one number: records without their offsets. Anchors are
 * left out: there is one more for each second that a test is slow. */
static uint64_t digest(const trace_view *v)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < v->count; i++) {
        const mtprof_record *r = &v->records[i].r;
        if (r->kind == MTPROF_REC_ANCHOR) {
            continue;
        }
        uint64_t parts[] = {r->word,           r->ticks,  r->key,
                            r->epoch,          r->thread, v->records[i].stream,
                            v->records[i].slot};
        for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
            sum = (sum ^ parts[k]) * 0x9E3779B97F4A7C15u + 1;
        }
        for (uint32_t k = 0; k < r->n_words; k++) {
            sum = (sum ^ r->words[k]) * 0x9E3779B97F4A7C15u + 1;
        }
    }
    return sum;
}

static void record_things(void)
{
    for (int i = 0; i < 20000; i++) {
        char name[24];
        int n = snprintf(name, sizeof name, "name %d", i % 500);
        mtprof_token token = mtprof_begin_named(name, (size_t)n, 0);
        mtprof_meta_int(token, mtprof_intern("i", 1), i);
        mtprof_instant(&point);
        mtprof_end(token);
    }
}

TEST(what_is_saved_is_what_the_live_bytes_give)
{
    mtprof_session *s = tv_start(0);
    record_things();
    REQUIRE_OK(mtprof_session_stop(s));
    const char *path = in_tmp("saved.mtt"), *again = in_tmp("again.mtt");
    REQUIRE_OK(mtprof_session_save(s, path));
    REQUIRE_OK(mtprof_session_save(s, again));
    trace_view *live = tv_session(s), *saved = tv_path(path), *twice = tv_path(again);
    CHECK(live->count > 60000);
    CHECK_EQ_U64(tv_count(saved, MTPROF_REC_BEGIN), tv_count(live, MTPROF_REC_BEGIN));
    CHECK_EQ_U64(digest(saved), digest(live));
    CHECK_EQ_U64(digest(twice), digest(live));
    mtprof_trace_info a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
    REQUIRE_OK(mtprof_reader_get_info(live->reader, &a));
    REQUIRE_OK(mtprof_reader_get_info(saved->reader, &b));
    CHECK(!a.closed);
    CHECK(b.closed);
    CHECK_EQ_U64(b.chunks_unchecked, 0);
    CHECK_EQ_MEM(a.uuid, b.uuid, 16);
    CHECK_EQ_U64(b.health[MTPROF_HEALTH_CHUNKS], b.chunks); /* only a closed file says */
    b.health[MTPROF_HEALTH_CHUNKS] = 0;
    CHECK_EQ_MEM(a.health, b.health, sizeof a.health);
    tv_free(saved);
    tv_free(twice);
    CHECK_OK(mtprof_session_close(s));
    uint64_t before = digest(live); /* the bytes outlive the session */
    tv_free(live);
    saved = tv_path(path);
    CHECK_EQ_U64(digest(saved), before);
    tv_free(saved);
}

TEST(a_file_is_a_trace_at_every_moment)
{
    const char *path = in_tmp("trace.mtt"), *copy = in_tmp("copy.mtt");
    mtprof_config c = {.struct_size = sizeof c, .path = path};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&c, &s));
    mtprof_end(mtprof_begin(&scope));
    trace_view *v = tv_path(path); /* while it is being recorded */
    CHECK_EQ_U64(v->n_spans, 1);
    tv_free(v);
    record_things();
    REQUIRE_OK(mtprof_session_stop(s));
    REQUIRE_OK(mtprof_session_save(s, copy));
    v = tv_session(s);
    uint64_t live = digest(v);
    tv_free(v);
    REQUIRE_OK(mtprof_session_close(s));
    v = tv_path(path);
    CHECK_EQ_U64(v->n_spans, 20001);
    CHECK_EQ_U64(digest(v), live);
    mtprof_trace_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_reader_get_info(v->reader, &info));
    CHECK(info.closed);
    CHECK_EQ_U64(info.chunks_unchecked, 0);
    tv_free(v);
    v = tv_path(copy);
    CHECK_EQ_U64(digest(v), live);
    tv_free(v);
}

static void *no_file_map(size_t bytes, int fd, off_t offset)
{
    if (fd >= 0) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return mtprof__system_default.map(bytes, fd, offset);
}

TEST(a_file_system_without_mmap_is_written_behind)
{
    const char *path = in_tmp("trace.mtt");
    mtprof_config c = {.struct_size = sizeof c, .path = path};
    mtprof_session *s = NULL;
    mtprof__system.map = no_file_map;
    REQUIRE_OK(mtprof_session_start(&c, &s));
    record_things();
    REQUIRE_OK(mtprof_session_stop(s));
    mtprof_health h = {.struct_size = sizeof h};
    REQUIRE_OK(mtprof_session_get_health(s, &h));
    CHECK_EQ_U64(h.written_behind, 1);
    trace_view *v = tv_session(s);
    uint64_t live = digest(v);
    tv_free(v);
    REQUIRE_OK(mtprof_session_close(s));
    mtprof__system = mtprof__system_default;
    v = tv_path(path);
    CHECK_EQ_U64(digest(v), live);
    CHECK_EQ_U64(v->n_spans, 20000);
    tv_free(v);
}

typedef struct writer_thread {
    uint32_t leave; /* atomic */
    uint64_t done;
} writer_thread;

static void *write_forever(void *argument)
{
    writer_thread *w = argument;
    while (__atomic_load_n(&w->leave, __ATOMIC_ACQUIRE) == 0 && w->done < 200000) {
        mtprof_token token = mtprof_begin(&scope);
        mtprof_counter(&point, (int64_t)w->done++);
        mtprof_end(token);
    }
    return NULL;
}

TEST(a_snapshot_of_a_live_session_is_a_trace_without_a_fault)
{
    writer_thread w = {0};
    pthread_t thread;
    mtprof_session *s = tv_start(0);
    REQUIRE(pthread_create(&thread, NULL, write_forever, &w) == 0);
    size_t last = 0;
    for (int i = 0; i < 20; i++) {
        trace_view *v = tv_session(s);
        int64_t expected = 0;
        for (size_t k = 0; k < v->count; k++) {
            if (v->records[k].r.kind == MTPROF_REC_COUNTER) {
                CHECK_EQ_I64((int64_t)v->records[k].r.words[1], expected++);
            }
        }
        CHECK(v->count >= last); /* it only grows */
        last = v->count;
        mtprof_epoch_info epoch;
        REQUIRE(mtprof_reader_epoch(v->reader, 0, &epoch));
        CHECK_EQ_U64(epoch.close_kind, 3);
        tv_free(v);
    }
    __atomic_store_n(&w.leave, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_COUNTER), w.done);
    tv_free(v);
}

TEST(definitions_come_before_their_first_use_in_every_snapshot)
{
    mtprof_session *s = tv_start(0);
    for (int i = 0; i < 300; i++) {
        char name[24];
        int n = snprintf(name, sizeof name, "fresh %d", i);
        mtprof_token token = mtprof_begin_named(name, (size_t)n, 0);
        trace_view *v = tv_session(s);
        const tv_span *span = tv_span_key(v, mtprof_launch_key(token));
        REQUIRE(span != NULL);
        CHECK_EQ_STR(span->name, name);
        mtprof_thread_info thread;
        CHECK(mtprof_reader_thread(v->reader, span->begin->r.thread, &thread));
        tv_free(v);
        mtprof_end(token);
    }
    tv_free(tv_finish(s, NULL));
}

TEST(times_of_a_trace_are_those_of_the_clock)
{
    struct timespec a, b;
    mtprof_session *s = tv_start(0);
    clock_gettime(CLOCK_MONOTONIC, &a);
    mtprof_token token = mtprof_begin(&scope);
    clock_gettime(CLOCK_MONOTONIC, &b);
    mtprof_end(token);
    trace_view *v = tv_finish(s, NULL);
    const tv_span *span = tv_span_named(v, "scope");
    REQUIRE(span != NULL);
    int64_t before = (int64_t)a.tv_sec * 1000000000 + a.tv_nsec;
    int64_t after = (int64_t)b.tv_sec * 1000000000 + b.tv_nsec;
    int64_t at = mtprof_reader_ns(v->reader, span->start);
    CHECK(at >= before - 20000 && at <= after + 20000); /* an anchor is a reading, too */
    int64_t now = mtprof_ticks_to_ns(mtprof_ticks());
    clock_gettime(CLOCK_MONOTONIC, &b);
    CHECK(llabs(now - ((int64_t)b.tv_sec * 1000000000 + b.tv_nsec)) < 5000000);
    tv_free(v);
}
