/* SPDX-License-Identifier: Apache-2.0
 *
 * A device with its own clock, late and out of order: the synthetic one.
 */
#include "harness/mt_test.h"
#include "support/devices/synthetic_device.h"
#include "support/traces/trace_view.h"

#include <mtprof/clock.h>
#include <mtprof/profile.h>
#include <mtprof/trace.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static mtprof_site launch_call =
    MTPROF_SITE_INIT("launch call", MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH);
static mtprof_site note = MTPROF_SITE_INIT("note", MTPROF_KIND_RUNTIME);

static void sleep_ms(long ms)
{
    struct timespec rest = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&rest, NULL);
}

/* A launch with a scope around it. */
static uint64_t launch(synthetic_device *d, const char *name)
{
    mtprof_token token = mtprof_begin(&launch_call);
    sd_launch(d, name, mtprof_launch_key(token), 3);
    mtprof_end(token);
    return mtprof_launch_key(token);
}

static const tv_record *activity_of(const trace_view *v, uint64_t correlation)
{
    for (size_t i = 0; i < v->count; i++) {
        if (v->records[i].r.kind == MTPROF_REC_ACTIVITY &&
            v->records[i].r.words[4] == correlation) {
            return &v->records[i];
        }
    }
    return NULL;
}

/* ---- matching and order ---------------------------------------------------------------------- */

TEST(device_work_finds_the_scope_that_launched_it)
{
    enum {
        LAUNCHES = 200
    };
    synthetic_device *d = sd_new(NULL);
    mtprof_session *s = tv_start(0);
    uint64_t keys[LAUNCHES];
    sd_hold(d, true);
    for (int i = 0; i < LAUNCHES; i++) {
        char name[16];
        snprintf(name, sizeof name, "kernel %d", i % 7);
        keys[i] = launch(d, name);
    }
    sd_drain(d); /* done, and reported in any order from here on */
    sd_hold(d, false);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.launches, LAUNCHES);
    CHECK_EQ_U64(h.activities, LAUNCHES); /* stop waits for the device */
    CHECK_EQ_U64(h.unmatched, 0);
    CHECK_EQ_U64(h.lost, 0);
    uint64_t out_of_order = 0, last = 0;
    for (uint64_t i = 0; i < LAUNCHES; i++) {
        const tv_record *p = activity_of(v, i + 1);
        REQUIRE(p != NULL);
        char name[16];
        snprintf(name, sizeof name, "kernel %d", (int)i % 7);
        CHECK_EQ_STR(tv_name(v, p), name);
        CHECK_EQ_U64(p->r.words[2], keys[i]);
        CHECK_EQ_U64(p->r.words[3], 1 | (uint64_t)3 << 32);
        CHECK_EQ_U64(p->stream, MTPROF_STREAM_SOURCE);
        CHECK(tv_span_key(v, keys[i]) != NULL);
        out_of_order += p->r.offset < last;
        last = p->r.offset;
    }
    CHECK(out_of_order > 10); /* arrival is not launch order */
    mtprof_text name, type;
    REQUIRE(mtprof_reader_source(v->reader, activity_of(v, 1)->slot, &name, &type));
    CHECK_EQ_STR(name.bytes, "synthetic");
    CHECK_EQ_STR(type.bytes, "SYN");
    tv_free(v);
    sd_free(d);
}

TEST(a_launch_without_a_scope_takes_a_key_of_its_own)
{
    synthetic_device *d = sd_new(NULL);
    mtprof_session *s = tv_start(0);
    mtprof_token token = mtprof_begin(&note);
    uint64_t a = mtprof_launch(&launch_call, 2, 9);
    uint64_t b = mtprof_launch(NULL, 0, UINT32_MAX);
    mtprof_end(token);
    CHECK(a != 0 && b != 0 && a != b);
    CHECK(a != mtprof_launch_key(token));
    sd_launch(d, "a", a, 0);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.begins, 3);
    CHECK_EQ_U64(h.launches, 2);
    CHECK_EQ_U64(h.activities, 1);
    CHECK_EQ_U64(h.unmatched, 1);
    const tv_record *x = tv_nth(v, MTPROF_REC_LAUNCH, 0), *y = tv_nth(v, MTPROF_REC_LAUNCH, 1);
    REQUIRE(x != NULL && y != NULL);
    CHECK_EQ_U64(x->r.key, a);
    CHECK_EQ_STR(tv_name(v, x), "launch call");
    CHECK_EQ_U64(x->r.aux, MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH);
    CHECK_EQ_U64(x->r.words[1], 2 | (uint64_t)9 << 32);
    CHECK_EQ_U64(y->r.key, b);
    CHECK_EQ_U64(y->r.arg, 0);
    CHECK_EQ_U64(y->r.words[1], (uint64_t)UINT32_MAX << 32);
    const tv_span *span = tv_span_named(v, "note");
    REQUIRE(span != NULL && span->end != NULL); /* a launch opens no scope */
    CHECK(span->start <= x->r.ticks && x->r.ticks <= y->r.ticks && y->r.ticks <= span->stop);
    tv_free(v);
    sd_free(d);
}

TEST(launches_without_device_work_are_counted)
{
    synthetic_device *d = sd_new(NULL);
    mtprof_session *s = tv_start(0);
    for (int i = 0; i < 10; i++) {
        mtprof_token token = mtprof_begin(&launch_call);
        if (i % 2 == 0) {
            sd_launch(d, "k", mtprof_launch_key(token), 0);
        }
        mtprof_end(token);
    }
    sd_launch(d, "of nobody", 0, 0);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.launches, 10);
    CHECK_EQ_U64(h.activities, 5);
    CHECK_EQ_U64(h.unmatched, 5);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 6);
    tv_free(v);
    sd_free(d);
}

/* ---- the clock ------------------------------------------------------------------------------- */

static void check_clock(double rate, uint64_t offset, long spread_ms)
{
    enum {
        LAUNCHES = 60
    };
    synthetic_device *d = sd_new(&(sd_config){.rate = rate, .offset = offset, .work_ns = 20000});
    mtprof_session *s = tv_start(0);
    for (int i = 0; i < LAUNCHES; i++) {
        launch(d, "k");
        sleep_ms(i % 10 == 0 ? spread_ms / 6 : 0);
    }
    sd_drain(d);
    trace_view *v = tv_finish(s, NULL);
    CHECK(tv_count(v, MTPROF_REC_CLOCK_PAIR) >= 2);
    /* A pair is as good as two readings around a third; a busy machine can come between. */
    int64_t tolerance_ns = 2000 * 1000;
    size_t near = 0;
    for (uint64_t i = 1; i <= LAUNCHES; i++) {
        const tv_record *p = activity_of(v, i);
        uint64_t before, after, start, end;
        REQUIRE(p != NULL);
        sd_bracket(d, i, &before, &after);
        REQUIRE(mtprof_reader_source_ticks(v->reader, p->slot, p->r.words[0], &start));
        REQUIRE(mtprof_reader_source_ticks(v->reader, p->slot, p->r.words[1], &end));
        int64_t early = mtprof_reader_ns(v->reader, before) - mtprof_reader_ns(v->reader, start);
        int64_t late = mtprof_reader_ns(v->reader, end) - mtprof_reader_ns(v->reader, after);
        if (early > tolerance_ns || late > tolerance_ns || start > end) {
            FAIL("rate %g: work %llu is mapped %lld ns before its start, %lld ns past its end",
                 rate, (unsigned long long)i, (long long)early, (long long)late);
        }
        near += early < 20000 && late < 20000;
    }
    CHECK(near > LAUNCHES / 2);
    tv_free(v);
    sd_free(d);
}

TEST(device_times_map_between_the_host_times_around_them)
{
    check_clock(0.7, 0, 60);
    check_clock(1.0, (uint64_t)1 << 62, 60);
    check_clock(27.0, 12345, 60);
    check_clock(0.001, 5, 60); /* a microsecond clock */
}

TEST(clock_pairs_come_every_second)
{
    synthetic_device *d = sd_new(NULL);
    mtprof_session *s = tv_start(0);
    sleep_ms(2300);
    enum {
        TRIES = 5 /* for each pair, of which the best is kept */
    };
    uint32_t asked = sd_get_facts(d).clocks;         /* at the start, and twice */
    CHECK(asked >= 2 * TRIES && asked <= 3 * TRIES); /* a busy machine may be late */
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(TRIES * tv_count(v, MTPROF_REC_CLOCK_PAIR), sd_get_facts(d).clocks);
    CHECK(sd_get_facts(d).clocks > asked); /* and at the stop */
    tv_free(v);
    sd_free(d);
}

/* ---- losses and lateness --------------------------------------------------------------------- */

TEST(what_a_device_loses_is_counted_and_in_the_trace)
{
    synthetic_device *d = sd_new(&(sd_config){.drop_every = 4});
    mtprof_session *s = tv_start(0);
    for (int i = 0; i < 100; i++) {
        launch(d, "k");
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.lost_by[MTPROF_LOST_SOURCE], 25);
    CHECK_EQ_U64(h.lost, 25);
    CHECK_EQ_U64(h.activities, 75);
    CHECK_EQ_U64(h.unmatched, 25);
    uint64_t counted = 0;
    for (size_t i = 0; i < tv_count(v, MTPROF_REC_LOST); i++) {
        const tv_record *p = tv_nth(v, MTPROF_REC_LOST, i);
        CHECK_EQ_U64(p->r.aux, MTPROF_LOST_SOURCE);
        CHECK_EQ_U64(p->stream, MTPROF_STREAM_SOURCE);
        counted += p->r.words[0];
    }
    CHECK_EQ_U64(counted, 25);
    tv_free(v);
    sd_free(d);
}

TEST(what_arrives_after_the_stop_and_before_the_close_is_kept)
{
    char path[512];
    snprintf(path, sizeof path, "%s/late.mtt", mt_test_tmpdir());
    synthetic_device *d = sd_new(NULL);
    mtprof_session *s = tv_start(0);
    sd_hold(d, true);
    for (int i = 0; i < 20; i++) {
        launch(d, "k");
    }
    sd_drain(d);
    REQUIRE_OK(mtprof_session_stop(s));
    mtprof_health h = {.struct_size = sizeof h};
    REQUIRE_OK(mtprof_session_get_health(s, &h));
    CHECK_EQ_U64(h.unmatched, 20);
    sd_hold(d, false);
    sd_drain(d);
    REQUIRE_OK(mtprof_session_get_health(s, &h));
    CHECK_EQ_U64(h.activities, 20);
    CHECK_EQ_U64(h.unmatched, 0);
    CHECK_EQ_U64(h.lost, 0);
    REQUIRE_OK(mtprof_session_save(s, path));
    trace_view *v = tv_path(path);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 20);
    tv_free(v);
    v = tv_finish(s, NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 20);
    tv_free(v);
    sd_free(d);
}

TEST(what_arrives_after_the_close_harms_nothing_and_is_in_no_other_trace)
{
    synthetic_device *d = sd_new(NULL);
    mtprof_session *s = tv_start(0);
    sd_hold(d, true);
    for (int i = 0; i < 20; i++) {
        launch(d, "old");
    }
    sd_drain(d);
    REQUIRE_OK(mtprof_session_close(s));
    sd_hold(d, false);
    sd_drain(d);
    s = tv_start(0);
    launch(d, "new");
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 1);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(h.unmatched, 0);
    tv_free(v);
    sd_free(d);
}

TEST(what_arrives_in_the_next_recording_is_not_of_it)
{
    synthetic_device *d = sd_new(NULL);
    mtprof_session *s = tv_start(0);
    sd_hold(d, true);
    for (int i = 0; i < 20; i++) {
        launch(d, "old");
    }
    sd_drain(d);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.unmatched, 20); /* and that is where they are counted */
    tv_free(v);
    for (int again = 0; again < 2; again++) { /* before this thread is in it, and after */
        s = tv_start(0);
        uint64_t key = again != 0 ? launch(d, "new") : 0;
        sd_hold(d, false);
        sd_drain(d);
        if (key == 0) {
            launch(d, "new");
        }
        v = tv_finish(s, &h);
        CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 1);
        CHECK_EQ_U64(h.lost, 0);
        CHECK_EQ_U64(h.unmatched, 0);
        tv_free(v);
        if (again == 0) {
            s = tv_start(0);
            sd_hold(d, true);
            launch(d, "old");
            sd_drain(d);
            REQUIRE_OK(mtprof_session_close(s));
        }
    }
    sd_free(d);
}

/* A device whose flush takes all its time `turns` times, each time with one more piece of work
 * done, and never answers after that; negative: it has nothing to do. */
typedef struct slow_device {
    mtprof_source *source;
    uint64_t keys[8];
    int turns, flushes;
    uint64_t asked_ns;
    char warning[256];
    int warnings;
} slow_device;

static mtprof_status slow_start(void *context, mtprof_source *source, uint64_t wants)
{
    slow_device *d = context;
    (void)wants;
    d->source = source;
    return MTPROF_OK;
}

static void slow_stop(void *context)
{
    (void)context;
}

static void slow_flush(void *context, uint64_t timeout_ns)
{
    slow_device *d = context;
    d->asked_ns = timeout_ns;
    if (d->turns >= 0 && d->flushes < d->turns) {
        mtprof_activity a = {.struct_size = sizeof a,
                             .name = "slow",
                             .name_length = 4,
                             .launch_key = d->keys[d->flushes]};
        mtprof_push_activity(d->source, &a);
    }
    d->flushes++;
    struct timespec whole = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    if (d->turns >= 0) {
        nanosleep(&whole, NULL);
    }
}

static void slow_warning(void *user, mtprof_status status, const char *message)
{
    slow_device *d = user;
    CHECK_EQ_I64(status, MTPROF_EIO);
    snprintf(d->warning, sizeof d->warning, "%s", message);
    d->warnings++;
}

static mtprof_source *add_slow(slow_device *d)
{
    mtprof_source_ops ops = {.struct_size = sizeof ops,
                             .abi = MTPROF_SOURCE_ABI,
                             .name = "slow one",
                             .device_type = "NPU",
                             .context = d,
                             .start = slow_start,
                             .stop = slow_stop,
                             .flush = slow_flush};
    mtprof_source *source = NULL;
    REQUIRE_OK(mtprof_source_register(&ops, &source));
    return source;
}

/* Records `launches` and stops. */
static mtprof_health run_slow(slow_device *d, uint64_t wait_ns, int launches)
{
    mtprof_source *source = add_slow(d);
    mtprof_config config = {.struct_size = sizeof config,
                            .device_wait_ns = wait_ns,
                            .on_warning = slow_warning,
                            .user = d};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &s));
    for (int i = 0; i < launches; i++) {
        mtprof_token token = mtprof_begin(&launch_call);
        d->keys[i] = mtprof_launch_key(token);
        mtprof_end(token);
    }
    REQUIRE_OK(mtprof_session_stop(s));
    mtprof_health h = {.struct_size = sizeof h};
    REQUIRE_OK(mtprof_session_get_health(s, &h));
    REQUIRE_OK(mtprof_session_close(s));
    mtprof_source_unregister(source);
    return h;
}

TEST(a_stop_waits_as_long_as_a_device_tells_something)
{
    slow_device d = {.turns = 5};
    mtprof_health h = run_slow(&d, 10 * 1000 * 1000, 5);
    CHECK_EQ_I64(d.flushes, 6); /* the last one brought nothing */
    CHECK_EQ_U64(h.activities, 5);
    CHECK_EQ_U64(h.unmatched, 0);
    CHECK_EQ_U64(h.lost, 0);
}

TEST(a_device_that_tells_nothing_is_given_up_once_and_named)
{
    slow_device d = {.turns = 0};
    mtprof_health h = run_slow(&d, 10 * 1000 * 1000, 3);
    CHECK_EQ_I64(d.flushes, 1);
    CHECK_EQ_U64(d.asked_ns, 10 * 1000 * 1000);
    CHECK_EQ_U64(h.unmatched, 3);
    CHECK_EQ_I64(d.warnings, 1);
    CHECK(strstr(d.warning, "slow one") != NULL);
}

TEST(a_device_that_is_done_is_asked_once_and_has_half_a_minute_by_default)
{
    slow_device d = {.turns = -1};
    mtprof_health h = run_slow(&d, 0, 0);
    CHECK_EQ_I64(d.flushes, 1);
    CHECK_EQ_I64(d.warnings, 0);
    CHECK_EQ_U64(d.asked_ns, 30000000000u);
    CHECK_EQ_U64(h.unmatched, 0);
}

TEST(a_profile_is_as_patient_as_it_is_told_to_be)
{
    slow_device d = {.turns = 0};
    mtprof_source *source = add_slow(&d);
    mtprof_profile_config config = {.struct_size = sizeof config,
                                    .activities = MTPROF_WATCH_ALL,
                                    .on_warning = slow_warning,
                                    .user = &d,
                                    .device_wait_ns = 5 * 1000 * 1000};
    mtprof_profile *profile = NULL;
    REQUIRE_OK(mtprof_profile_new(&config, &profile));
    REQUIRE_OK(mtprof_profile_start(profile));
    mtprof_end(mtprof_begin(&launch_call));
    REQUIRE_OK(mtprof_profile_stop(profile));
    CHECK_EQ_U64(d.asked_ns, 5 * 1000 * 1000);
    CHECK_EQ_I64(d.warnings, 1);
    REQUIRE_OK(mtprof_profile_free(profile));
    mtprof_source_unregister(source);
}

/* ---- at the same time ------------------------------------------------------------------------ */

typedef struct pusher {
    mtprof_source *source;
    uint32_t leave; /* atomic */
    uint64_t pushed;
} pusher;

/* Pushes without end, each activity with a new name. */
static void *push_forever(void *argument)
{
    pusher *p = argument;
    while (__atomic_load_n(&p->leave, __ATOMIC_ACQUIRE) == 0) {
        char name[32];
        int n = snprintf(name, sizeof name, "name %llu", (unsigned long long)p->pushed++);
        mtprof_activity a = {.struct_size = sizeof a, .name = name, .name_length = (size_t)n};
        mtprof_push_activity(p->source, &a);
        mtprof_push_counter(p->source, 0, p->pushed, 1.0);
    }
    return NULL;
}

TEST(pushing_during_start_stop_save_and_close_harms_nothing)
{
    char path[512], saved[512];
    snprintf(path, sizeof path, "%s/a.mtt", mt_test_tmpdir());
    snprintf(saved, sizeof saved, "%s/b.mtt", mt_test_tmpdir());
    synthetic_device *d = sd_new(NULL);
    pusher p = {.source = sd_source(d)};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, push_forever, &p) == 0);
    for (int i = 0; i < (mt_test_long() ? 300 : 30); i++) {
        mtprof_config config = {.struct_size = sizeof config, .path = i % 2 == 0 ? path : NULL};
        mtprof_session *s = NULL;
        REQUIRE_OK(mtprof_session_start(&config, &s));
        sleep_ms(2);
        REQUIRE_OK(mtprof_session_stop(s));
        REQUIRE_OK(mtprof_session_save(s, saved));
        REQUIRE_OK(mtprof_session_close(s));
        tv_free(tv_path(saved)); /* no problem in it */
        if (i % 2 == 0) {
            tv_free(tv_path(path));
        }
    }
    __atomic_store_n(&p.leave, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    sd_free(d);
}
