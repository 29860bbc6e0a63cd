/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: events.
 */
#include "conformance/conform.h"

#include <mindtorch/status.h>

#include <sched.h>

enum {
    NUMBERS = 64
};

static const size_t block_bytes = NUMBERS * sizeof(int64_t);

static mt_backend_event *new_event(uint32_t flags)
{
    mt_backend_event *event = NULL;
    CF_OK(cf.backend->event_new(cf.backend->context, 0, flags, &event));
    if (event == NULL) {
        cf_stop("event_new gave NULL");
    }
    return event;
}

static void free_event(mt_backend_event *event)
{
    cf.backend->event_free(cf.backend->context, event);
}

static bool is_done(mt_backend_event *event)
{
    bool done = false;
    CF_OK(cf.backend->event_query(cf.backend->context, event, &done));
    return done;
}

static void record(mt_backend_event *event, cf_stream stream)
{
    CF_OK(cf.backend->event_record(cf.backend->context, 0, stream.at, event));
}

static void check_never_recorded(void)
{
    cf_need_streams();
    cf_stream stream = cf_stream_new(0);
    mt_backend_event *event = new_event(0);
    CF_CHECK(is_done(event), "event_query says false");
    CF_OK(cf.backend->event_synchronize(cf.backend->context, event));
    CF_OK(cf.backend->stream_wait(cf.backend->context, 0, stream.at, event));
    CF_OK(cf.backend->stream_synchronize(cf.backend->context, 0, stream.at));
    free_event(event);
    cf_stream_free(&stream);
}

static void check_synchronize(void)
{
    cf_need_streams();
    cf_stream streams[] = {cf_default_stream(0), cf_stream_new(0)};
    for (size_t i = 0; i < 2; i++) {
        int64_t numbers[NUMBERS];
        mt_backend_event *event = new_event(0);
        void *block = cf_take(0, block_bytes);
        CF_OK(cf_set(streams[i], block, block_bytes, 0, 0));
        for (int add = 0; add < 40; add++) {
            CF_OK(cf_add(streams[i], block, NUMBERS, add, 0));
        }
        record(event, streams[i]);
        CF_OK(cf.backend->event_synchronize(cf.backend->context, event));
        CF_CHECK(is_done(event), "event_query says false after event_synchronize");
        cf_read(0, numbers, block, sizeof numbers);
        CF_CHECK(numbers[NUMBERS - 1] == 780, "the number is %lld, expected 780",
                 (long long)numbers[NUMBERS - 1]);
        free_event(event);
        cf_give(0, block, block_bytes);
    }
    cf_stream_free(&streams[1]);
}

/* Without waiting, repeated queries must succeed in the end. The program finds a check that does
 * not end. */
static void check_asking(void)
{
    cf_need_streams();
    cf_stream stream = cf_stream_new(0);
    mt_backend_event *event = new_event(0);
    void *block = cf_take(0, block_bytes);
    bool done = false;
    CF_OK(cf_set(stream, block, block_bytes, 0, 0));
    for (int add = 0; add < 40; add++) {
        CF_OK(cf_add(stream, block, NUMBERS, add, 0));
    }
    record(event, stream);
    while (!is_done(event)) {
        (void)sched_yield();
    }
    while (!done) {
        CF_OK(cf.backend->stream_query(cf.backend->context, 0, stream.at, &done));
        (void)sched_yield();
    }
    free_event(event);
    cf_stream_free(&stream);
    cf_give(0, block, block_bytes);
}

static void check_pending(void)
{
    cf_need_streams();
    cf_need_sim();
    cf_stream stream = cf_stream_new(0);
    mt_backend_event *before = new_event(0);
    mt_backend_event *later = new_event(0);
    record(before, stream);
    CF_OK(cf.backend->stream_synchronize(cf.backend->context, 0, stream.at));
    cf_hold(stream);
    record(later, stream);
    CF_CHECK(is_done(before), "an event before the held work is not done");
    CF_CHECK(!is_done(later), "an event after held work is done");
    cf_unhold(stream);
    CF_OK(cf.backend->event_synchronize(cf.backend->context, later));
    CF_CHECK(is_done(later), "the event is not done after all");
    free_event(before);
    free_event(later);
    cf_stream_free(&stream);
}

/* The event is freed before the stream reaches it; the stream continues past it. */
static void check_freed(void)
{
    cf_need_streams();
    int64_t number = 0;
    cf_stream stream = cf_stream_new(0);
    mt_backend_event *event = new_event(0);
    void *block = cf_take(0, block_bytes);
    cf_hold(stream);
    CF_OK(cf_set(stream, block, block_bytes, 0, 0));
    record(event, stream);
    free_event(event);
    CF_OK(cf_add(stream, block, NUMBERS, 8, 0));
    cf_unhold(stream);
    CF_OK(cf_copy(stream, &(cf_copy_of){.kind = MT_COPY_TO_HOST,
                                        .to = &number,
                                        .from = block,
                                        .bytes = sizeof number}));
    CF_CHECK(number == 8, "the number is %lld, expected 8", (long long)number);
    cf_stream_free(&stream);
    cf_give(0, block, block_bytes);
}

/* Recorded again, it is for the later work. */
static void check_again(void)
{
    cf_need_streams();
    int64_t numbers[NUMBERS];
    cf_stream stream = cf_stream_new(0);
    mt_backend_event *event = new_event(0);
    void *block = cf_take(0, block_bytes);
    CF_OK(cf_set(stream, block, block_bytes, 0, 0));
    record(event, stream);
    CF_OK(cf.backend->event_synchronize(cf.backend->context, event));
    for (int i = 0; i < 5; i++) {
        bool held = cf.sim != NULL;
        cf_hold(stream);
        CF_OK(cf_add(stream, block, NUMBERS, 1, 0));
        record(event, stream);
        CF_CHECK(!held || !is_done(event), "recorded again after held work, the event is done");
        cf_unhold(stream);
        CF_OK(cf.backend->event_synchronize(cf.backend->context, event));
        cf_stream other = cf_stream_new(0); /* so that nothing but the event is waited for */
        CF_OK(cf_copy(other, &(cf_copy_of){.kind = MT_COPY_TO_HOST,
                                           .to = numbers,
                                           .from = block,
                                           .bytes = sizeof numbers}));
        CF_CHECK(numbers[0] == i + 1, "after %d recordings the number is %lld", i + 2,
                 (long long)numbers[0]);
        cf_stream_free(&other);
    }
    free_event(event);
    cf_stream_free(&stream);
    cf_give(0, block, block_bytes);
}

/* stream_wait means the recording of that moment, not a later one. */
static void check_moment(void)
{
    cf_need_streams();
    cf_need_sim();
    cf_stream source = cf_stream_new(0);
    cf_stream waits = cf_stream_new(0);
    mt_backend_event *event = new_event(0);
    uint32_t gave_up = cf_gave_up(source);
    record(event, source);
    CF_OK(cf.backend->stream_wait(cf.backend->context, 0, waits.at, event));
    cf_hold(source);
    record(event, source);
    CF_OK(cf.backend->stream_synchronize(cf.backend->context, 0, waits.at));
    CF_CHECK(cf_gave_up(source) == gave_up, "the stream waited for a later recording");
    cf_unhold(source);
    CF_OK(cf.backend->event_synchronize(cf.backend->context, event));
    free_event(event);
    cf_stream_free(&source);
    cf_stream_free(&waits);
}

static void check_elapsed(void)
{
    double short_ns = -1.0;
    double long_ns = -1.0;
    double none_ns = -1.0;
    cf_need_streams();
    cf_stream stream = cf_stream_new(0);
    mt_backend_event *events[3];
    void *block = cf_take(0, block_bytes);
    CF_OK(cf_set(stream, block, block_bytes, 0, 0));
    for (size_t i = 0; i < 3; i++) {
        events[i] = new_event(MT_EVENT_TIMING);
        record(events[i], stream);
        for (int add = 0; add < 40; add++) {
            CF_OK(cf_add(stream, block, NUMBERS, add, 0));
        }
    }
    CF_OK(cf.backend->stream_synchronize(cf.backend->context, 0, stream.at));
    CF_OK(cf.backend->event_elapsed(cf.backend->context, events[0], events[1], &short_ns));
    CF_OK(cf.backend->event_elapsed(cf.backend->context, events[0], events[2], &long_ns));
    CF_OK(cf.backend->event_elapsed(cf.backend->context, events[0], events[0], &none_ns));
    CF_CHECK(short_ns >= 0.0, "%f ns from an event to a later one", short_ns);
    CF_CHECK(long_ns >= short_ns, "%f ns to the second event, %f ns to the third", short_ns,
             long_ns);
    CF_CHECK(none_ns == 0.0, "%f ns from an event to itself", none_ns);
    for (size_t i = 0; i < 3; i++) {
        free_event(events[i]);
    }
    cf_stream_free(&stream);
    cf_give(0, block, block_bytes);
}

const cf_check cf_event_checks[] = {
    {"one that was never recorded is done", check_never_recorded},
    {"event_synchronize waits for what came before", check_synchronize},
    {"queries come true by themselves", check_asking},
    {"event_query before and after", check_pending},
    {"freed before the stream has passed it", check_freed},
    {"recorded again", check_again},
    {"stream_wait means the recording of its moment", check_moment},
    {"event_elapsed", check_elapsed},
    {NULL, NULL},
};
