/* SPDX-License-Identifier: Apache-2.0
 *
 * Writers from inside and side by side: events recorded from within the recorder (signal handlers,
 * allocator hooks), many threads at one new place, slots that change hands, a clock that goes back.
 * Cites the invariants of src/mtprof/record/hot/writer.h.
 */
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "mtprof/record/hot/writer.h"
#include "support/traces/trace_view.h"

#include <mtprof/op.h>
#include <mtprof/trace.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static mtprof_site scope = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);
static mtprof_site inner = MTPROF_SITE_INIT("inner", MTPROF_KIND_SCOPE);
static mtprof_site mark = MTPROF_SITE_INIT("mark", MTPROF_KIND_SCOPE);

/* ---- nested events (WR1) --------------------------------------------------------------------- */

/* As if the thread had been interrupted in the middle of a record. */
static void be_inside(void)
{
    REQUIRE(mtprof__mine != NULL && mtprof__enter(mtprof__mine));
}

static void be_outside(void)
{
    mtprof__leave(mtprof__mine);
}

TEST(an_event_from_inside_the_recorder_is_kept_until_there_is_room)
{
    mtprof_session *s = tv_start(0);
    mtprof_end(mtprof_begin(&inner));
    mtprof_instant(&mark);
    mtprof_token outer = mtprof_begin(&scope);
    be_inside();
    mtprof_token nested = mtprof_begin(&inner);
    mtprof_instant(&mark);
    mtprof_counter(&mark, 7);
    mtprof_end(nested);
    be_outside();
    CHECK(nested != 0);
    mtprof_end(outer);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(h.truncated, 0);
    CHECK_EQ_U64(h.begins, 3);
    CHECK_EQ_U64(h.others, 3);
    const tv_span *span = tv_span_key(v, mtprof_launch_key(nested));
    REQUIRE(span != NULL);
    CHECK_EQ_STR(span->name, "inner");
    CHECK_EQ_STR(tv_parent_name(v, span), "scope");
    CHECK_EQ_U64(span->begin->r.kind, MTPROF_REC_BEGIN_X);
    CHECK(span->end != NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INSTANT), 2);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_COUNTER), 1);
    tv_free(v);
}

TEST(nested_events_that_nobody_follows_are_in_the_trace_too)
{
    mtprof_session *s = tv_start(0);
    mtprof_end(mtprof_begin(&inner));
    be_inside();
    mtprof_token nested = mtprof_begin(&inner);
    mtprof_end(nested);
    be_outside();
    mtprof_health h;
    trace_view *v = tv_finish(s, &h); /* the stop drains them (WR3) */
    CHECK_EQ_U64(h.begins, 2);
    CHECK_EQ_U64(h.lost, 0);
    CHECK(tv_span_key(v, mtprof_launch_key(nested)) != NULL);
    tv_free(v);
}

TEST(more_nested_events_than_fit_are_counted_one_by_one)
{
    enum {
        NESTED = 200
    };
    mtprof_session *s = tv_start(0);
    mtprof_instant(&mark);
    be_inside();
    for (int i = 0; i < NESTED; i++) {
        mtprof_instant(&mark);
    }
    be_outside();
    mtprof_instant(&mark);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK(h.lost_by[MTPROF_LOST_NESTED] > 0);
    CHECK_EQ_U64(h.others + h.lost_by[MTPROF_LOST_NESTED], NESTED + 2);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INSTANT), h.others);
    tv_free(v);
}

TEST(what_a_nested_event_cannot_do_is_counted_as_lost)
{
    static mtprof_site fresh = MTPROF_SITE_INIT("fresh", MTPROF_KIND_SCOPE);
    mtprof_session *s = tv_start(MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS);
    mtprof_token open = mtprof_begin(&scope);
    be_inside();
    CHECK_EQ_U64(mtprof_begin(&fresh), 0); /* a new place needs a name */
    CHECK_EQ_U64(mtprof_begin_named("x", 1, 0), 0);
    CHECK_EQ_U64(mtprof_launch(NULL, 0, 0), 0);
    mtprof_alloc(0, 1, 1, 1, 1);
    be_outside();
    mtprof_end(open);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.lost_by[MTPROF_LOST_NESTED], 4);
    CHECK_EQ_U64(v->n_spans, 1);
    tv_free(v);
}

static void on_signal(int number)
{
    (void)number;
    mtprof_token token = mtprof_begin(&inner);
    mtprof_instant(&mark);
    mtprof_end(token);
}

TEST(signal_handlers_may_record_at_any_moment)
{
    mtprof_session *s = tv_start(0);
    mtprof_end(mtprof_begin(&inner)); /* the places are known */
    mtprof_instant(&mark);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGPROF, &action, NULL);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    long every_ns =
        MT_TSAN ? 500000 : 20000; /* TSan's handlers are slow: leave time for the rest */
    struct itimerspec often = {{0, every_ns}, {0, every_ns}};
    REQUIRE(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    timer_settime(timer, 0, &often, NULL);
    for (int i = 0; i < 300000; i++) {
        mtprof_end(mtprof_begin(&scope));
    }
    timer_delete(timer);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.lost, h.lost_by[MTPROF_LOST_NESTED]);
    CHECK_EQ_U64(h.truncated, 0);
    CHECK_EQ_U64(v->n_spans, h.begins);
    CHECK_EQ_U64(v->ignored_ends, 0);
    size_t ended = 0, scopes = 0;
    for (size_t i = 0; i < v->n_spans; i++) {
        ended += v->spans[i].end != NULL;
        scopes += strcmp(v->spans[i].name, "scope") == 0;
    }
    CHECK_EQ_U64(ended, v->n_spans);
    CHECK_EQ_U64(scopes, 300000);
    tv_free(v);
}

/* ---- threads --------------------------------------------------------------------------------- */

static pthread_barrier_t barrier;
static mtprof_site met[4][50];

/* All threads meet each new place at once, in all the ways one can. */
static void *meet(void *argument)
{
    uint64_t *begins = argument;
    for (int i = 0; i < 50; i++) {
        pthread_barrier_wait(&barrier);
        mtprof_token token = mtprof_begin(&met[0][i]);
        mtprof_instant(&met[1][i]);
        mtprof_launch(&met[2][i], 0, 0);
        mtprof_op op = {.struct_size = sizeof op};
        mtprof_end(mtprof_op_begin(&met[3][i], &op));
        mtprof_end(token);
        *begins += 3;
    }
    return NULL;
}

TEST(threads_that_meet_at_a_new_place_all_record_it)
{
    enum {
        THREADS = 4
    };
    static char names[4][50][32];
    pthread_t threads[THREADS];
    uint64_t begins[THREADS] = {0};
    for (int kind = 0; kind < 4; kind++) {
        for (int i = 0; i < 50; i++) {
            snprintf(names[kind][i], sizeof names[0][0], "place %d %d", kind, i);
            met[kind][i] = (mtprof_site)MTPROF_SITE_INIT(names[kind][i], MTPROF_KIND_OP);
        }
    }
    pthread_barrier_init(&barrier, NULL, THREADS);
    mtprof_session *s = tv_start(0);
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, meet, &begins[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.threads, THREADS);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(h.begins, begins[0] + begins[1] + begins[2] + begins[3]);
    CHECK_EQ_U64(h.others, 50 * THREADS);
    for (int i = 0; i < 50; i++) {
        CHECK(tv_span_nth(v, names[0][i], THREADS - 1) != NULL);
        CHECK(tv_span_nth(v, names[0][i], THREADS) == NULL);
        CHECK(tv_event(v, MTPROF_REC_INSTANT, names[1][i], THREADS - 1) != NULL);
        CHECK(tv_event(v, MTPROF_REC_LAUNCH, names[2][i], THREADS - 1) != NULL);
    }
    tv_free(v);
}

static void *record_a_little(void *unused)
{
    (void)unused;
    mtprof_token token = mtprof_begin(&scope);
    mtprof_end(mtprof_begin(&inner));
    mtprof_end(token);
    return NULL;
}

TEST(short_threads_share_slots_and_keep_their_numbers)
{
    enum {
        THREADS = 300
    };
    mtprof_session *s = tv_start(0);
    for (int i = 0; i < THREADS; i += 2) {
        pthread_t pair[2];
        for (int k = 0; k < 2; k++) {
            REQUIRE(pthread_create(&pair[k], NULL, record_a_little, NULL) == 0);
        }
        for (int k = 0; k < 2; k++) {
            pthread_join(pair[k], NULL);
        }
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.threads, THREADS);
    CHECK_EQ_U64(h.begins, 2 * THREADS);
    CHECK_EQ_U64(mtprof_reader_thread_count(v->reader), THREADS);
    uint8_t seen[THREADS + 1] = {0};
    uint16_t highest_slot = 0;
    for (size_t i = 0; i < v->n_spans; i++) {
        const tv_span *span = &v->spans[i];
        REQUIRE(span->begin->r.thread >= 1 && span->begin->r.thread <= THREADS);
        seen[span->begin->r.thread]++;
        highest_slot = span->begin->slot > highest_slot ? span->begin->slot : highest_slot;
        CHECK_EQ_STR(tv_parent_name(v, span), strcmp(span->name, "inner") == 0 ? "scope" : "");
    }
    for (int i = 1; i <= THREADS; i++) {
        CHECK_EQ_U64(seen[i], 2);
    }
    CHECK(highest_slot <= 4);
    tv_free(v);
}

enum {
    BOX = 256
};
static mtprof_token box[BOX]; /* atomic: tokens to be ended by any thread */

static void *exchange(void *seed)
{
    uint64_t state = *(uint64_t *)seed;
    for (int i = 0; i < 20000; i++) {
        mtprof_token mine = mtprof_begin(i % 2 == 0 ? &scope : &inner);
        mtprof_token *place = &box[mt_test_random(&state) % BOX];
        mtprof_end(__atomic_exchange_n(place, mine, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

TEST(tokens_that_wander_between_threads_are_ended_exactly_once)
{
    pthread_t threads[3];
    uint64_t seeds[3] = {1, 2, 3};
    mtprof_session *s = tv_start(0);
    for (int i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, exchange, &seeds[i]) == 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    size_t left = 0;
    for (int i = 0; i < BOX; i++) {
        left += box[i] != 0;
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.begins, 60000);
    CHECK_EQ_U64(h.truncated, left);
    CHECK_EQ_U64(v->ignored_ends, 0);
    size_t open = 0;
    for (size_t i = 0; i < v->n_spans; i++) {
        open += v->spans[i].end == NULL;
    }
    CHECK_EQ_U64(open, left);
    tv_free(v);
}

/* ---- the clock ------------------------------------------------------------------------------- */

TEST(a_clock_that_goes_back_is_counted_and_breaks_nothing)
{
    mtprof_session *s = tv_start(0);
    mtprof_token a = mtprof_begin(&scope);
    mtprof__clock_disturb(-1000000, true);
    mtprof_end(a);
    mtprof_token b = mtprof_begin(&inner);
    mtprof_end(b);
    mtprof__clock_disturb(0, false);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK(h.clock_back >= 1);
    CHECK_EQ_U64(h.truncated, 0);
    const tv_span *span = tv_span_named(v, "scope");
    REQUIRE(span != NULL && span->end != NULL);
    CHECK_EQ_U64(span->end->r.kind, MTPROF_REC_END_X);
    CHECK(span->stop < span->start); /* reported as it was seen */
    CHECK(tv_span_named(v, "inner")->end != NULL);
    tv_free(v);
}

TEST(an_end_more_than_40_bits_after_its_begin_has_its_right_time)
{
    mtprof_session *s = tv_start(0);
    mtprof_token a = mtprof_begin(&scope);
    mtprof__clock_disturb((int64_t)1 << 41, true);
    mtprof_end(a);
    mtprof__clock_disturb(0, false);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    const tv_span *span = tv_span_named(v, "scope");
    REQUIRE(span != NULL && span->end != NULL);
    CHECK(span->stop - span->start >= (uint64_t)1 << 41);
    tv_free(v);
}
