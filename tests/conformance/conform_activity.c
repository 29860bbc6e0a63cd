/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: records of what the device did (B7).
 *
 *     clock ── launch ──┬── start ── end ──┬── push ── synchronize, flush ── clock
 *       before          └─── on the device ┘                                 after
 */
#include "conformance/conform.h"

#include <mindtorch/status.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEPT = 8192,
    MANY = 1000,
    NUMBERS = 32
};

static const uint64_t patience_ns = 20000000000U;
static const size_t block_bytes = NUMBERS * sizeof(int64_t);

typedef struct reported {
    mt_activity activity;
    bool named;
} reported;

/* What the sink got, under its lock. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static reported records[KEPT];
static size_t count;
static uint64_t lost_records;
static uint64_t next_correlation = 1;

static void push(void *context, const mt_activity *activity)
{
    (void)context;
    (void)pthread_mutex_lock(&mutex);
    if (count < KEPT) {
        records[count].activity = *activity;
        records[count].named = activity->name != NULL && activity->name[0] != '\0';
        records[count].activity.name = NULL;
        count++;
    }
    (void)pthread_mutex_unlock(&mutex);
}

static void lose(void *context, uint64_t number)
{
    (void)context;
    (void)pthread_mutex_lock(&mutex);
    lost_records += number;
    (void)pthread_mutex_unlock(&mutex);
}

static const mt_activity_sink sink = {.struct_size = sizeof sink, .push = push, .lost = lose};

static void start(void)
{
    count = 0;
    lost_records = 0;
    CF_OK(cf.backend->activity_start(cf.backend->context, &sink));
}

static void stop(void)
{
    cf.backend->activity_stop(cf.backend->context);
    CF_OK(cf.backend->activity_flush(cf.backend->context, patience_ns));
}

static uint64_t now(void)
{
    return cf.backend->clock(cf.backend->context);
}

/* The one record with that correlation. */
static mt_activity find(uint64_t correlation)
{
    mt_activity found = {0};
    uint32_t times = 0;
    (void)pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < count; i++) {
        if (records[i].activity.correlation == correlation) {
            found = records[i].activity;
            times++;
        }
    }
    (void)pthread_mutex_unlock(&mutex);
    if (times != 1) {
        cf_stop("correlation %llu was reported %u times", (unsigned long long)correlation, times);
    }
    return found;
}

/* What must be true of every record. */
static void check_records(size_t want, uint64_t before, uint64_t after)
{
    (void)pthread_mutex_lock(&mutex);
    size_t got = count;
    for (size_t i = 0; i < got; i++) {
        const mt_activity *a = &records[i].activity;
        CF_CHECK(a->correlation != 0, "work without a correlation was reported");
        CF_CHECK(records[i].named, "record %zu has no name", i);
        CF_CHECK(a->struct_size >= sizeof *a, "record %zu: struct_size is %u", i, a->struct_size);
        CF_CHECK(a->start <= a->end, "record %zu ends before it starts", i);
        CF_CHECK(a->start >= before && a->end <= after,
                 "record %zu is outside of launch and wait: %llu to %llu in %llu to %llu", i,
                 (unsigned long long)a->start, (unsigned long long)a->end,
                 (unsigned long long)before, (unsigned long long)after);
    }
    (void)pthread_mutex_unlock(&mutex);
    CF_CHECK(got == want, "%zu records, expected %zu (%llu lost)", got, want,
             (unsigned long long)lost_records);
}

static void *zeros(uint32_t device)
{
    void *block = cf_take(device, block_bytes);
    CF_OK(cf_set(cf_default_stream(device), block, block_bytes, 0, 0));
    return block;
}

static void check_clock(void)
{
    cf_need_records();
    uint64_t last = now();
    for (int i = 0; i < 1000; i++) {
        uint64_t next = now();
        CF_CHECK(next >= last, "the clock went back");
        last = next;
    }
}

static void is_piece(uint64_t correlation, mt_activity_kind kind, cf_stream stream, uint64_t bytes)
{
    mt_activity a = find(correlation);
    CF_CHECK(a.kind == (uint32_t)kind, "kind %u, expected %d", a.kind, kind);
    CF_CHECK(a.device == stream.device, "device %u, expected %u", a.device, stream.device);
    CF_CHECK(a.stream == stream.number, "stream %u, expected %u", a.stream, stream.number);
    CF_CHECK(kind == MT_ACTIVITY_KERNEL || a.bytes == bytes, "%llu bytes, expected %llu",
             (unsigned long long)a.bytes, (unsigned long long)bytes);
}

/* A kernel, a set and three copies on one stream. */
static void tell_all(cf_stream stream, uint64_t first)
{
    unsigned char host[128] = {0};
    char *block = zeros(stream.device);
    CF_OK(cf.backend->synchronize(cf.backend->context, stream.device));
    uint64_t before = now();
    start();
    CF_OK(cf_add(stream, block, NUMBERS, 1, first));
    CF_OK(cf_set(stream, block, 100, 0, first + 1));
    cf_copy_of copy = {.kind = MT_COPY_TO_DEVICE,
                       .to_device = stream.device,
                       .to = block,
                       .from = host,
                       .bytes = 96,
                       .correlation = first + 2};
    CF_OK(cf_copy(stream, &copy));
    copy = (cf_copy_of){.kind = MT_COPY_WITHIN,
                        .to_device = stream.device,
                        .to = block + 128,
                        .from = block,
                        .bytes = 64,
                        .correlation = first + 3};
    CF_OK(cf_copy(stream, &copy));
    copy = (cf_copy_of){
        .kind = MT_COPY_TO_HOST, .to = host, .from = block, .bytes = 80, .correlation = first + 4};
    CF_OK(cf_copy(stream, &copy));
    CF_OK(cf_add(stream, block, NUMBERS, 1, 0)); /* no record wanted */
    CF_OK(cf.backend->synchronize(cf.backend->context, stream.device));
    stop();
    check_records(5, before, now());
    is_piece(first, MT_ACTIVITY_KERNEL, stream, 0);
    is_piece(first + 1, MT_ACTIVITY_SET, stream, 100);
    is_piece(first + 2, MT_ACTIVITY_COPY, stream, 96);
    is_piece(first + 3, MT_ACTIVITY_COPY, stream, 64);
    is_piece(first + 4, MT_ACTIVITY_COPY, stream, 80);
    uint64_t end = 0;
    for (uint64_t i = 0; i < 5; i++) { /* one after the other, as they were put there */
        mt_activity a = find(first + i);
        CF_CHECK(a.start >= end, "piece %llu starts before the one before it ends",
                 (unsigned long long)i);
        end = a.end;
    }
    cf_give(stream.device, block, block_bytes);
}

static void check_pieces(void)
{
    cf_need_records();
    for (uint32_t device = 0; device < cf.devices; device++) {
        tell_all(cf_default_stream(device), next_correlation);
        next_correlation += 5;
        if (cf.backend->stream_new != NULL) {
            cf_stream stream = cf_stream_new(device);
            tell_all(stream, next_correlation);
            next_correlation += 5;
            cf_stream_free(&stream);
        }
    }
}

static void check_many(void)
{
    cf_need_records();
    void *block = zeros(0);
    cf_stream stream = cf_default_stream(0);
    uint64_t first = next_correlation;
    uint64_t before = now();
    start();
    for (int i = 0; i < MANY; i++) {
        CF_OK(cf_add(stream, block, NUMBERS, 1, next_correlation++));
    }
    CF_OK(cf.backend->activity_flush(cf.backend->context, patience_ns)); /* waits by itself */
    check_records(MANY, before, now());
    for (uint64_t i = 0; i < MANY; i++) {
        (void)find(first + i);
    }
    stop();
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    check_records(MANY, before, now());
    cf_give(0, block, block_bytes);
}

/* A failing kernel has a record like others; flush does not return its error. */
static void check_failed(void)
{
    cf_need_records();
    int64_t index = 99;
    void *numbers = cf_take(0, block_bytes);
    void *at = cf_take(0, 64);
    void *out = cf_take(0, 64);
    cf_write(0, at, &index, sizeof index);
    uint64_t before = now();
    start();
    int status = cf_pick(cf_default_stream(0), out, numbers, at, next_correlation);
    CF_OK(cf.backend->activity_flush(cf.backend->context, patience_ns));
    check_records(1, before, now());
    (void)find(next_correlation++);
    if (status == MT_OK) {
        status = cf.backend->synchronize(cf.backend->context, 0);
    }
    CF_CHECK(status == MT_EINDEX, "the failure gives %s, expected EINDEX", mt_status_name(status));
    stop();
    cf_give(0, numbers, block_bytes);
    cf_give(0, at, 64);
    cf_give(0, out, 64);
}

/* Work queued before activity_stop is reported after it. */
static void check_stop(void)
{
    cf_need_records();
    cf_stream stream = cf_default_stream(0);
    void *block = zeros(0);
    uint64_t before = now();
    start();
    cf_hold(stream);
    for (int i = 0; i < 20; i++) {
        CF_OK(cf_add(stream, block, NUMBERS, 1, next_correlation++));
    }
    cf.backend->activity_stop(cf.backend->context);
    cf_unhold(stream);
    CF_OK(cf.backend->activity_flush(cf.backend->context, patience_ns));
    check_records(20, before, now());
    cf_give(0, block, block_bytes);
}

/* A new sink gets what comes from then on; empty flushes are done at once. */
static void check_again(void)
{
    cf_need_records();
    CF_OK(cf.backend->activity_flush(cf.backend->context, 0));
    void *block = zeros(0);
    for (int i = 0; i < 3; i++) {
        uint64_t before = now();
        start();
        CF_OK(cf_add(cf_default_stream(0), block, NUMBERS, 1, next_correlation++));
        stop();
        check_records(1, before, now());
    }
    cf_give(0, block, block_bytes);
}

static void check_flush_ends(void)
{
    cf_need_records();
    cf_need_streams();
    cf_need_sim();
    cf_stream held = cf_stream_new(0);
    void *block = zeros(0);
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    uint64_t before = now();
    start();
    cf_hold(held);
    CF_OK(cf_add(held, block, NUMBERS, 1, next_correlation++));
    int status = cf.backend->activity_flush(cf.backend->context, 1000000);
    CF_CHECK(status == MT_ERUNTIME || (status == MT_OK && count == 1),
             "flush gives %s with %zu of 1 records reported", mt_status_name(status), count);
    cf_unhold(held);
    stop();
    check_records(1, before, now());
    cf_stream_free(&held);
    cf_give(0, block, block_bytes);
}

/* Work that a lost device drops was launched all the same. */
static void check_lost(void)
{
    cf_need_records();
    cf_need_sim();
    cf_stream stream = cf_default_stream(0);
    void *block = zeros(0);
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    uint64_t before = now();
    start();
    cf_hold(stream);
    for (int i = 0; i < 5; i++) {
        CF_OK(cf_add(stream, block, NUMBERS, 1, next_correlation++));
    }
    CF_OK(cf.sim->lose(0, true));
    CF_OK(cf.backend->activity_flush(cf.backend->context, patience_ns));
    CF_OK(cf.sim->lose(0, false));
    stop();
    check_records(5, before, now());
    (void)cf.backend->synchronize(cf.backend->context, 0);
    cf_give(0, block, block_bytes);
}

const cf_check cf_activity_checks[] = {
    {"the clock does not go back", check_clock},
    {"each piece of work, with its place and times", check_pieces},
    {"a thousand kernels, each reported once", check_many},
    {"work that failed is reported too", check_failed},
    {"what was queued before activity_stop is reported", check_stop},
    {"one sink after another", check_again},
    {"flush says what it waited for", check_flush_ends},
    {"what a lost device dropped is reported", check_lost},
    {NULL, NULL},
};
