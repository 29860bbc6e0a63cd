/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: failures of the work itself (B5), and a device that is lost.
 */
#include "conformance/conform.h"

#include <mindtorch/status.h>

#include <sched.h>
#include <string.h>

enum {
    NUMBERS = 10
};

static const size_t block_bytes = NUMBERS * sizeof(int64_t);

typedef struct scene {
    int64_t *numbers, *index, *picked, *after; /* on the device */
} scene;

static scene open_scene(void)
{
    int64_t numbers[NUMBERS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    int64_t far_away = 77;
    scene s = {cf_take(0, block_bytes), cf_take(0, 64), cf_take(0, 64), cf_take(0, block_bytes)};
    cf_write(0, s.numbers, numbers, sizeof numbers);
    cf_write(0, s.index, &far_away, sizeof far_away);
    CF_OK(cf_set(cf_default_stream(0), s.picked, 64, 0, 0));
    CF_OK(cf_set(cf_default_stream(0), s.after, block_bytes, 0, 0));
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    return s;
}

static void close_scene(scene *s)
{
    cf_give(0, s->numbers, block_bytes);
    cf_give(0, s->index, 64);
    cf_give(0, s->picked, 64);
    cf_give(0, s->after, block_bytes);
}

typedef int waiting(cf_stream stream, scene *s);

static int wait_device(cf_stream stream, scene *s)
{
    (void)s;
    return cf.backend->synchronize(cf.backend->context, stream.device);
}

static int wait_stream(cf_stream stream, scene *s)
{
    (void)s;
    return cf.backend->stream_synchronize(cf.backend->context, stream.device, stream.at);
}

static int wait_event(cf_stream stream, scene *s)
{
    mt_backend_event *event = NULL;
    (void)s;
    CF_OK(cf.backend->event_new(cf.backend->context, stream.device, 0, &event));
    CF_OK(cf.backend->event_record(cf.backend->context, stream.device, stream.at, event));
    int status = cf.backend->event_synchronize(cf.backend->context, event);
    cf.backend->event_free(cf.backend->context, event);
    return status;
}

static int wait_copy(cf_stream stream, scene *s)
{
    int64_t number;
    return cf_copy(stream, &(cf_copy_of){.kind = MT_COPY_TO_HOST,
                                         .to = &number,
                                         .from = s->after,
                                         .bytes = sizeof number});
}

/* A kernel fails, good work follows: one report, by the call itself or by the next that waits. */
static void fail_and_wait(cf_stream stream, waiting *wait)
{
    scene s = open_scene();
    int64_t numbers[NUMBERS];
    uint32_t reports = 0;
    (void)mt_fail(MT_EVALUE, "before");
    int status = cf_pick(stream, s.picked, s.numbers, s.index, 0);
    int first = status;
    reports += status != MT_OK;
    CF_OK(cf_add(stream, s.after, NUMBERS, 4, 0));
    status = wait(stream, &s);
    first = first != MT_OK ? first : status;
    reports += status != MT_OK;
    CF_CHECK(first == MT_EINDEX, "an index out of range gives %s, expected EINDEX",
             mt_status_name(first));
    CF_CHECK(mt_last_error()->message[0] != '\0' && strcmp(mt_last_error()->message, "before") != 0,
             "the failure has no message");
    for (int i = 0; i < 3; i++) {
        reports += wait(stream, &s) != MT_OK;
    }
    CF_CHECK(reports == 1, "the failure is reported %u times", reports);
    cf_read(0, numbers, s.after, sizeof numbers);
    CF_CHECK(numbers[0] == 4 && numbers[NUMBERS - 1] == 4,
             "work after the failure was not done: %lld, expected 4", (long long)numbers[0]);
    close_scene(&s);
}

static void check_device(void)
{
    fail_and_wait(cf_default_stream(0), wait_device);
}

static void check_copy(void)
{
    fail_and_wait(cf_default_stream(0), wait_copy);
}

static void check_stream(void)
{
    cf_need_streams();
    cf_stream stream = cf_stream_new(0);
    fail_and_wait(stream, wait_stream);
    fail_and_wait(stream, wait_device);
    cf_stream_free(&stream);
}

static void check_event(void)
{
    cf_need_streams();
    cf_stream stream = cf_stream_new(0);
    fail_and_wait(stream, wait_event);
    cf_stream_free(&stream);
}

/* The right index works: it is the data that failed. */
static void check_afterwards(void)
{
    scene s = open_scene();
    int64_t number = 3;
    cf_write(0, s.index, &number, sizeof number);
    CF_OK(cf_pick(cf_default_stream(0), s.picked, s.numbers, s.index, 0));
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    number = 0;
    cf_read(0, &number, s.picked, sizeof number);
    CF_CHECK(number == 3, "picked %lld, expected 3", (long long)number);
    close_scene(&s);
}

/* Queries do not wait, so they leave the failure to a call that does. */
static void check_query(void)
{
    cf_need_streams();
    cf_stream stream = cf_stream_new(0);
    scene s = open_scene();
    bool done = false;
    int status = cf_pick(stream, s.picked, s.numbers, s.index, 0);
    while (!done) {
        CF_OK(cf.backend->stream_query(cf.backend->context, 0, stream.at, &done));
        (void)sched_yield();
    }
    if (status == MT_OK) {
        status = cf.backend->stream_synchronize(cf.backend->context, 0, stream.at);
    }
    CF_CHECK(status == MT_EINDEX, "the failure gives %s, expected EINDEX", mt_status_name(status));
    cf_stream_free(&stream);
    close_scene(&s);
}

/* It belongs to its device: waiting for another one says nothing of it. */
static void check_other_device(void)
{
    if (cf.devices < 2) {
        cf_skip("there is one device");
    }
    scene s = open_scene();
    int status = cf_pick(cf_default_stream(0), s.picked, s.numbers, s.index, 0);
    CF_OK(cf.backend->synchronize(cf.backend->context, 1));
    if (status == MT_OK) {
        status = cf.backend->synchronize(cf.backend->context, 0);
    }
    CF_CHECK(status == MT_EINDEX, "the failure gives %s, expected EINDEX", mt_status_name(status));
    close_scene(&s);
}

static void lost(int status, const char *what)
{
    CF_CHECK(status == MT_EDEVICE, "%s gives %s, expected EDEVICE", what, mt_status_name(status));
}

static void check_lost(void)
{
    cf_need_sim();
    scene s = open_scene();
    cf_stream stream = cf_default_stream(0);
    void *memory = NULL;
    int64_t number = 0;
    CF_OK(cf.sim->lose(0, true));
    lost(cf.backend->synchronize(cf.backend->context, 0), "synchronize");
    lost(cf_add(stream, s.after, NUMBERS, 1, 0), "a kernel");
    lost(cf_set(stream, s.after, 8, 0, 0), "set");
    lost(cf_copy(
             stream,
             &(cf_copy_of){.kind = MT_COPY_TO_DEVICE, .to = s.after, .from = &number, .bytes = 8}),
         "TO_DEVICE");
    lost(wait_copy(stream, &s), "TO_HOST");
    lost(cf.backend->allocate(cf.backend->context, 0, 4096, &memory), "allocate");
    CF_OK(cf.sim->lose(0, false));
    CF_OK(cf_set(stream, s.after, block_bytes, 0, 0));
    CF_OK(cf_add(stream, s.after, NUMBERS, 6, 0));
    cf_read(0, &number, s.after, sizeof number);
    CF_CHECK(number == 6, "back again, the number is %lld, expected 6", (long long)number);
    close_scene(&s);
}

const cf_check cf_failure_checks[] = {
    {"of a kernel, reported once by synchronize", check_device},
    {"of a kernel, reported once by TO_HOST", check_copy},
    {"of a kernel, reported once by stream_synchronize", check_stream},
    {"of a kernel, reported once by event_synchronize", check_event},
    {"of a kernel, not reported by queries", check_query},
    {"of a kernel, not reported by another device", check_other_device},
    {"leaves nothing behind", check_afterwards},
    {"a lost device says EDEVICE until it is back", check_lost},
    {NULL, NULL},
};
