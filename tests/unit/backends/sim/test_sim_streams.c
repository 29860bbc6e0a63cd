/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events of the simulated accelerator (sim_impl.h S1 to S4). Holds prove what waits for
 * what; time decides nothing.
 */
#include "harness/mt_test.h"
#include "support/devices/sim_table.h"

#include <pthread.h>
#include <stdatomic.h>

static mt_backend_stream *new_stream(uint32_t number)
{
    mt_backend_stream *stream = NULL;
    REQUIRE_OK(npu->stream_new(npu->context, 0, number, 0, &stream));
    return stream;
}

static mt_backend_event *new_event(void)
{
    mt_backend_event *event = NULL;
    REQUIRE_OK(npu->event_new(npu->context, 0, MT_EVENT_TIMING, &event));
    return event;
}

static uint32_t gave_up(uint32_t stream)
{
    mt_sim_counts counts = {.struct_size = sizeof counts};
    CHECK_OK(npu_controls->counts(0, stream, &counts));
    return counts.gave_up;
}

static bool is_idle(mt_backend_stream *stream)
{
    bool done = false;
    CHECK_OK(npu->stream_query(npu->context, 0, stream, &done));
    return done;
}

static bool is_done(mt_backend_event *event)
{
    bool done = false;
    CHECK_OK(npu->event_query(npu->context, event, &done));
    return done;
}

/* ---- streams ---- */

TEST(streams_do_not_wait_for_each_other)
{
    open_npu();
    mt_backend_stream *first = new_stream(1);
    mt_backend_stream *second = new_stream(2);
    float *a = npu_take(0, 4096);
    REQUIRE_OK(npu_controls->hold(0, 1, 100, 0));
    REQUIRE_OK(npu_fill(first, a, 1, 1.0F, 0));
    REQUIRE_OK(npu_fill(second, a + 8, 1, 2.0F, 0));
    REQUIRE_OK(npu_fill(NULL, a + 16, 1, 3.0F, 0));
    REQUIRE_OK(npu->stream_synchronize(npu->context, 0, second));
    CHECK_EQ_F64((double)npu_read(second, a + 8), 2.0);
    CHECK_EQ_F64((double)npu_read(NULL, a + 16), 3.0);
    CHECK(!is_idle(first));
    CHECK(is_idle(second));
    CHECK_EQ_U64(gave_up(1), 0);
    REQUIRE_OK(npu_controls->release(0, 1));
    REQUIRE_OK(npu->synchronize(npu->context, 0));
    CHECK(is_idle(first));
    CHECK_EQ_F64((double)npu_read(second, a), 1.0);
    CHECK_EQ_U64(gave_up(1), 0);
}

TEST(a_hold_gives_up_for_who_waits)
{
    open_npu();
    mt_backend_stream *stream = new_stream(1);
    REQUIRE_OK(npu_controls->hold(0, 1, 5, 0));
    REQUIRE_OK(npu->stream_synchronize(npu->context, 0, stream));
    CHECK_EQ_U64(gave_up(1), 1);
    REQUIRE_OK(npu_controls->hold(0, 1, 5, 0));
    REQUIRE_OK(npu->synchronize(npu->context, 0));
    CHECK_EQ_U64(gave_up(1), 2);
    REQUIRE_OK(npu_controls->hold(0, 1, 5, 7));
    REQUIRE_OK(npu->activity_flush(npu->context, UINT64_MAX));
    CHECK_EQ_U64(gave_up(1), 3);
    REQUIRE_OK(npu_controls->hold(0, 1, 0, 0)); /* nothing to wait for */
    REQUIRE_OK(npu->synchronize(npu->context, 0));
    CHECK_EQ_U64(gave_up(1), 3);
}

/* A release lets those go that are there, not those that come later. */
TEST(a_release_is_for_what_is_there)
{
    open_npu();
    mt_backend_stream *stream = new_stream(1);
    REQUIRE_OK(npu_controls->hold(0, 1, 5, 0));
    REQUIRE_OK(npu_controls->release(0, 1));
    REQUIRE_OK(npu->stream_synchronize(npu->context, 0, stream));
    CHECK_EQ_U64(gave_up(1), 0);
    REQUIRE_OK(npu_controls->hold(0, 1, 5, 0));
    CHECK(!is_idle(stream));
    REQUIRE_OK(npu->stream_synchronize(npu->context, 0, stream));
    CHECK_EQ_U64(gave_up(1), 1);
}

TEST(controls_name_what_is_not_there)
{
    mt_sim_counts counts = {.struct_size = 0};
    open_npu();
    CHECK_EQ_I64(npu_controls->hold(0, 5, 1, 0), MT_EVALUE);
    CHECK_EQ_STR(mt_last_error()->message, "hold: npu:0 has no stream 5");
    CHECK_EQ_I64(npu_controls->release(3, 0), MT_ERUNTIME);
    CHECK_EQ_I64(npu_controls->counts(0, 0, &counts), MT_EVALUE);
    CHECK_EQ_I64(npu_controls->counts(0, 0, NULL), MT_EVALUE);
    CHECK_EQ_I64(npu_controls->reset_counts(0, 9), MT_EVALUE);
    CHECK_EQ_I64(npu_controls->fail(0, 0, 0, "no failure"), MT_EVALUE);
    CHECK_EQ_I64(npu_controls->fail(0, 0, -1, NULL), MT_EVALUE);
    CHECK_EQ_I64(npu_controls->lose(4, true), MT_ERUNTIME);
    mt_backend_stream *stream;
    CHECK_EQ_I64(npu->stream_new(npu->context, 0, 0, 0, &stream), MT_EVALUE);
    CHECK_EQ_I64(npu->stream_new(npu->context, 2, 1, 0, &stream), MT_ERUNTIME);
}

/* Queued work is done, though the stream was freed. */
TEST(a_freed_stream_finishes_its_work)
{
    open_npu();
    float *a = npu_take(0, 4096);
    for (uint32_t i = 1; i <= 20; i++) {
        mt_backend_stream *stream = new_stream(i);
        mt_backend_event *event = new_event();
        REQUIRE_OK(npu_fill(stream, a, 1, (float)i, 0));
        REQUIRE_OK(npu->event_record(npu->context, 0, stream, event));
        npu->stream_free(npu->context, stream);
        REQUIRE_OK(npu->event_synchronize(npu->context, event));
        CHECK_EQ_F64((double)npu_read(NULL, a), (double)i);
        npu->event_free(npu->context, event);
    }
    mt_backend_stream *unused = new_stream(30);
    npu->stream_free(npu->context, unused);
    npu->stream_free(npu->context, NULL);
    REQUIRE_OK(npu->synchronize(npu->context, 0));
}

/* ---- events ---- */

TEST(an_event_is_a_place_on_a_stream)
{
    open_npu();
    mt_backend_stream *stream = new_stream(1);
    mt_backend_event *event = new_event();
    CHECK(is_done(event)); /* never recorded */
    CHECK_OK(npu->event_synchronize(npu->context, event));
    REQUIRE_OK(npu_controls->hold(0, 1, 100, 0));
    REQUIRE_OK(npu->event_record(npu->context, 0, stream, event));
    CHECK(!is_done(event));
    REQUIRE_OK(npu_controls->release(0, 1));
    REQUIRE_OK(npu->event_synchronize(npu->context, event));
    CHECK(is_done(event));
    CHECK_EQ_U64(gave_up(1), 0);
    /* Recorded before a hold it is done during the hold, and waiting for it does not end it. */
    REQUIRE_OK(npu->event_record(npu->context, 0, stream, event));
    REQUIRE_OK(npu_controls->hold(0, 1, 100, 0));
    REQUIRE_OK(npu->event_synchronize(npu->context, event));
    CHECK(is_done(event));
    CHECK(!is_idle(stream));
    CHECK_EQ_U64(gave_up(1), 0);
    REQUIRE_OK(npu->event_record(npu->context, 0, stream, event));
    CHECK(!is_done(event)); /* it is recorded for other work now */
    REQUIRE_OK(npu->event_synchronize(npu->context, event));
    CHECK_EQ_U64(gave_up(1), 1);
    npu->event_free(npu->context, event);
    npu->event_free(npu->context, NULL);
}

TEST(a_wait_orders_streams)
{
    open_npu();
    mt_backend_stream *first = new_stream(1);
    mt_backend_stream *second = new_stream(2);
    mt_backend_event *event = new_event();
    float *a = npu_take(0, 4096);
    REQUIRE_OK(npu_fill(first, a, 2, 1.0F, 0));
    REQUIRE_OK(npu_controls->hold(0, 1, 100, 0));
    REQUIRE_OK(npu_fill(first, a, 1, 5.0F, 0));
    REQUIRE_OK(npu->event_record(npu->context, 0, first, event));
    REQUIRE_OK(npu->stream_wait(npu->context, 0, second, event));
    /* Recorded again elsewhere and freed: the wait remains. */
    REQUIRE_OK(npu->event_record(npu->context, 0, NULL, event));
    npu->event_free(npu->context, event);
    REQUIRE_OK(npu_add(second, a + 4, a, a, 1, 0));
    CHECK(!is_idle(second));
    REQUIRE_OK(npu_controls->release(0, 1));
    CHECK_EQ_F64((double)npu_read(second, a + 4), 10.0);
    CHECK_EQ_U64(gave_up(1), 0);
}

/* Who waits for a stream that waits for another one that is held: the hold gives up. */
TEST(waiting_reaches_through_streams)
{
    open_npu();
    mt_backend_stream *chain[5];
    float *a = npu_take(0, 4096);
    mt_backend_event *event = new_event();
    for (uint32_t i = 0; i < 5; i++) {
        chain[i] = new_stream(i + 1);
    }
    REQUIRE_OK(npu_controls->hold(0, 1, 100, 0));
    REQUIRE_OK(npu_fill(chain[0], a, 1, 1.0F, 0));
    for (int i = 1; i < 5; i++) {
        REQUIRE_OK(npu->event_record(npu->context, 0, chain[i - 1], event));
        REQUIRE_OK(npu->stream_wait(npu->context, 0, chain[i], event));
        REQUIRE_OK(npu_add(chain[i], a, a, a, 1, 0));
    }
    CHECK_EQ_F64((double)npu_read(chain[4], a), 16.0);
    CHECK_EQ_U64(gave_up(1), 1);
    npu->event_free(npu->context, event);
}

TEST(waits_that_order_nothing)
{
    open_npu();
    mt_backend_stream *stream = new_stream(1);
    mt_backend_event *event = new_event();
    REQUIRE_OK(npu->stream_wait(npu->context, 0, stream, event)); /* never recorded */
    REQUIRE_OK(npu_controls->hold(0, 1, 3, 0));
    REQUIRE_OK(npu->event_record(npu->context, 0, stream, event));
    REQUIRE_OK(npu->stream_wait(npu->context, 0, stream, event)); /* for itself */
    REQUIRE_OK(npu->stream_synchronize(npu->context, 0, stream));
    CHECK_EQ_I64(npu->stream_wait(npu->context, 0, stream, NULL), MT_EVALUE);
    CHECK_EQ_I64(npu->event_record(npu->context, 0, stream, NULL), MT_EVALUE);
    CHECK_EQ_I64(npu->event_synchronize(npu->context, NULL), MT_EVALUE);
    npu->event_free(npu->context, event);
}

TEST(elapsed_time)
{
    double ns = -1.0;
    open_npu();
    mt_backend_event *from = new_event();
    mt_backend_event *to = new_event();
    CHECK_EQ_I64(npu->event_elapsed(npu->context, from, to, &ns), MT_EVALUE);
    REQUIRE_OK(npu->event_record(npu->context, 0, NULL, from));
    REQUIRE_OK(npu_controls->hold(0, 0, 100, 0));
    REQUIRE_OK(npu->event_record(npu->context, 0, NULL, to));
    CHECK_EQ_I64(npu->event_elapsed(npu->context, from, to, &ns), MT_ERUNTIME);
    REQUIRE_OK(npu->event_synchronize(npu->context, to));
    CHECK_OK(npu->event_elapsed(npu->context, from, to, &ns));
    CHECK(ns > 0.0);
    double back = 0.0;
    CHECK_OK(npu->event_elapsed(npu->context, to, from, &back));
    CHECK_EQ_F64(back, -ns);
    mt_backend_event *plain = NULL;
    REQUIRE_OK(npu->event_new(npu->context, 0, 0, &plain));
    CHECK_EQ_I64(npu->event_elapsed(npu->context, from, plain, &ns), MT_EVALUE);
    npu->event_free(npu->context, from);
    npu->event_free(npu->context, to);
    npu->event_free(npu->context, plain);
}

TEST(events_belong_to_a_device)
{
    set_npu("SIM_DEVICES", "2");
    open_npu();
    mt_backend_event *event = new_event();
    CHECK_EQ_I64(npu->event_record(npu->context, 1, NULL, event), MT_EVALUE);
    CHECK_EQ_STR(mt_last_error()->message, "event_record: an event of npu:0 on a stream of npu:1");
    mt_backend_event *none = NULL;
    CHECK_EQ_I64(npu->event_new(npu->context, 2, 0, &none), MT_ERUNTIME);
    /* A stream of another device may wait for it. */
    REQUIRE_OK(npu_controls->hold(0, 0, 100, 0));
    REQUIRE_OK(npu->event_record(npu->context, 0, NULL, event));
    REQUIRE_OK(npu->stream_wait(npu->context, 1, NULL, event));
    REQUIRE_OK(npu->synchronize(npu->context, 1));
    CHECK_EQ_U64(gave_up(0), 1);
    npu->event_free(npu->context, event);
}

/* ---- many threads ---- */

enum {
    THREADS = 4,
    STREAMS = 3,
    ROUNDS = 2000
};

static mt_backend_stream *shared_streams[STREAMS];
static float *shared_sums; /* one of each thread and stream, 64 bytes apart; [0] is always 1 */
static mt_backend_event *shared_event;

static void *launch_many(void *argument)
{
    int thread = (int)(intptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        for (int s = 0; s < STREAMS; s++) {
            float *mine = shared_sums + 16 * (1 + thread * STREAMS + s);
            CHECK_OK(npu_add(shared_streams[s], mine, mine, shared_sums, 1, 0));
        }
        if (round % 64 == thread) {
            mt_backend_stream *stream = shared_streams[round % STREAMS];
            CHECK_OK(npu->event_record(npu->context, 0, stream, shared_event));
            CHECK_OK(npu->stream_wait(npu->context, 0, shared_streams[(round + 1) % STREAMS],
                                      shared_event));
            CHECK_OK(npu->event_synchronize(npu->context, shared_event));
        }
        if (round % 500 == thread) {
            CHECK_OK(npu->synchronize(npu->context, 0));
        }
    }
    return NULL;
}

TEST(many_threads_on_many_streams)
{
    pthread_t threads[THREADS];
    open_npu();
    shared_sums = npu_take(0, 4096);
    shared_event = new_event();
    for (uint32_t s = 0; s < STREAMS; s++) {
        shared_streams[s] = s == 0 ? NULL : new_stream(s);
    }
    REQUIRE_OK(npu_fill(NULL, shared_sums, 1024, 0.0F, 0));
    REQUIRE_OK(npu_fill(NULL, shared_sums, 1, 1.0F, 0));
    REQUIRE_OK(npu->synchronize(npu->context, 0));
    for (intptr_t i = 0; i < THREADS; i++) {
        REQUIRE_EQ_I64(pthread_create(&threads[i], NULL, launch_many, (void *)i), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ_I64(pthread_join(threads[i], NULL), 0);
    }
    REQUIRE_OK(npu->synchronize(npu->context, 0));
    for (int i = 0; i < THREADS * STREAMS; i++) {
        CHECK_EQ_F64((double)npu_read(NULL, shared_sums + 16 * (1 + i)), (double)ROUNDS);
    }
    npu->event_free(npu->context, shared_event);
}

/* Streams come and go while others wait for the whole device. */
static void *churn(void *argument)
{
    uint32_t number = 10 + (uint32_t)(uintptr_t)argument * 100;
    float *mine = shared_sums + number;
    for (uint32_t i = 0; i < 60; i++) {
        mt_backend_stream *stream = NULL;
        CHECK_OK(npu->stream_new(npu->context, 0, number + i, 0, &stream));
        CHECK_OK(npu_fill(stream, mine, 1, (float)i, 0));
        if (i % 3 == 0) {
            CHECK_OK(npu->stream_synchronize(npu->context, 0, stream));
        }
        npu->stream_free(npu->context, stream);
        CHECK_OK(npu->synchronize(npu->context, 0));
    }
    return NULL;
}

TEST(streams_come_and_go)
{
    pthread_t threads[3];
    open_npu();
    shared_sums = npu_take(0, 8192);
    for (intptr_t i = 0; i < 3; i++) {
        REQUIRE_EQ_I64(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_I64(pthread_join(threads[i], NULL), 0);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ_F64((double)npu_read(NULL, shared_sums + 10 + i * 100), 59.0);
    }
}
