/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: the order of work, on one stream and between streams (B2, B4).
 *
 * Proofs are data: chains of operations whose result depends on their order. Where the backend can
 * hold a stream back, the moment is chosen too; elsewhere long work makes a wrong order likely to
 * show, and a right one always passes.
 */
#include "conformance/conform.h"

#include <stdlib.h>
#include <string.h>

enum {
    NUMBERS = 256,
    STEPS = 60,
    ROUNDS = 10,
    MANY = 500,
    VERY_MANY = 10000, /* more than a queue needs to hold */
    STREAMS = 32       /* the runtime makes so many of a device */
};

static const size_t block_bytes = NUMBERS * sizeof(int64_t);

/* x = 3 x + step: another order gives another number. */
static void chain(cf_stream stream, void *block, int steps)
{
    for (int i = 0; i < steps; i++) {
        CF_OK(cf_multiply(stream, block, NUMBERS, 3));
        CF_OK(cf_add(stream, block, NUMBERS, i, 0));
    }
}

static int64_t chained(int64_t from, int steps)
{
    uint64_t value = (uint64_t)from;
    for (int i = 0; i < steps; i++) {
        value = value * 3 + (uint64_t)i;
    }
    return (int64_t)value;
}

static void expect(uint32_t device, const void *block, int64_t want, const char *what)
{
    int64_t numbers[NUMBERS];
    cf_read(device, numbers, block, sizeof numbers);
    for (size_t i = 0; i < NUMBERS; i++) {
        if (numbers[i] != want) {
            cf_failed("%s: number %zu is %lld, expected %lld", what, i, (long long)numbers[i],
                      (long long)want);
            return;
        }
    }
}

static void *zeros(uint32_t device)
{
    void *block = cf_take(device, block_bytes);
    CF_OK(cf_set(cf_default_stream(device), block, block_bytes, 0, 0));
    CF_OK(cf.backend->synchronize(cf.backend->context, device));
    return block;
}

static void check_default(void)
{
    for (uint32_t device = 0; device < cf.devices; device++) {
        void *block = zeros(device);
        chain(cf_default_stream(device), block, STEPS);
        CF_OK(cf.backend->synchronize(cf.backend->context, device));
        expect(device, block, chained(0, STEPS), "default stream");
        cf_give(device, block, block_bytes);
    }
}

/* Kernels, copies and sets in one queue. */
static void check_mixed(void)
{
    cf_stream stream = cf_default_stream(0);
    char *first = zeros(0);
    char *second = zeros(0);
    cf_hold(stream);
    for (int i = 0; i < ROUNDS; i++) {
        CF_OK(cf_set(stream, first, block_bytes, 0, 0));
        chain(stream, first, i);
        CF_OK(cf_add(stream, first, NUMBERS, 5, 0));
        CF_OK(cf_copy(stream, &(cf_copy_of){.kind = MT_COPY_WITHIN,
                                            .to = second,
                                            .from = first,
                                            .bytes = block_bytes}));
        CF_OK(cf_set(stream, first, block_bytes, 255, 0));
    }
    cf_unhold(stream);
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    expect(0, second, chained(0, ROUNDS - 1) + 5, "kernels, copies and sets");
    expect(0, first, -1, "the last set");
    cf_give(0, first, block_bytes);
    cf_give(0, second, block_bytes);
}

/* cf_launch() overwrites what a call points to when it returns; here the work comes much later. */
static void check_arguments(void)
{
    cf_stream stream = cf_default_stream(0);
    void *block = zeros(0);
    uint32_t gave_up = cf.sim != NULL ? cf_gave_up(stream) : 0;
    cf_hold(stream);
    chain(stream, block, STEPS);
    CF_CHECK(cf.sim == NULL || cf_gave_up(stream) == gave_up, "a launch waits for its work");
    cf_unhold(stream);
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    expect(0, block, chained(0, STEPS), "arguments overwritten after the call");
    cf_give(0, block, block_bytes);
}

static void check_queue(void)
{
    cf_need_sim();
    cf_stream stream = cf_default_stream(0);
    void *block = zeros(0);
    uint32_t gave_up = cf_gave_up(stream);
    cf_hold(stream);
    for (int i = 0; i < MANY; i++) {
        CF_OK(cf_add(stream, block, NUMBERS, 1, 0));
    }
    CF_CHECK(cf_gave_up(stream) == gave_up, "%d launches do not fit into the queue", MANY);
    cf_unhold(stream);
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    expect(0, block, MANY, "many launches");
    cf_give(0, block, block_bytes);
}

static void check_full_queue(void)
{
    cf_stream stream = cf_default_stream(0);
    void *block = zeros(0);
    for (int i = 0; i < VERY_MANY; i++) {
        CF_OK(cf_add(stream, block, NUMBERS, 1, 0));
    }
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    expect(0, block, VERY_MANY, "very many launches");
    cf_give(0, block, block_bytes);
}

static void check_own_stream(void)
{
    cf_need_streams();
    for (uint32_t device = 0; device < cf.devices; device++) {
        bool done = false;
        cf_stream stream = cf_stream_new(device);
        void *block = zeros(device);
        chain(stream, block, STEPS);
        CF_OK(cf.backend->stream_synchronize(cf.backend->context, device, stream.at));
        CF_OK(cf.backend->stream_query(cf.backend->context, device, stream.at, &done));
        CF_CHECK(done, "stream_query says false after stream_synchronize");
        CF_OK(cf.backend->stream_query(cf.backend->context, device, NULL, &done));
        CF_CHECK(done, "stream_query of the idle default stream says false");
        expect(device, block, chained(0, STEPS), "a stream of its own");
        cf_stream_free(&stream);
        cf_give(device, block, block_bytes);
    }
}

static void check_device_waits(void)
{
    cf_stream streams[STREAMS];
    void *blocks[STREAMS];
    cf_need_streams();
    for (size_t i = 0; i < STREAMS; i++) {
        streams[i] = cf_stream_new(0);
        blocks[i] = zeros(0);
        chain(streams[i], blocks[i], STEPS + (int)i);
    }
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    for (size_t i = 0; i < STREAMS; i++) {
        bool done = false;
        expect(0, blocks[i], chained(0, STEPS + (int)i), "each of 32 streams");
        CF_OK(cf.backend->stream_query(cf.backend->context, 0, streams[i].at, &done));
        CF_CHECK(done, "stream %zu is not done after synchronize", i);
        cf_stream_free(&streams[i]);
        cf_give(0, blocks[i], block_bytes);
    }
}

/* One is held; the others and the default stream go on. */
static void check_beside(void)
{
    bool done = true;
    cf_need_streams();
    cf_need_sim();
    cf_stream held = cf_stream_new(0);
    cf_stream free_one = cf_stream_new(0);
    void *blocks[] = {zeros(0), zeros(0)};
    uint32_t gave_up = cf_gave_up(held);
    cf_hold(held);
    chain(held, blocks[0], 3);
    chain(free_one, blocks[1], STEPS);
    CF_OK(cf.backend->stream_synchronize(cf.backend->context, 0, free_one.at));
    chain(cf_default_stream(0), blocks[1], 2);
    expect(0, blocks[1], chained(chained(0, STEPS), 2), "streams other than a held one");
    CF_OK(cf.backend->stream_query(cf.backend->context, 0, held.at, &done));
    CF_CHECK(!done, "stream_query says that a held stream is done");
    CF_CHECK(cf_gave_up(held) == gave_up, "waiting for one stream waits for another");
    cf_unhold(held);
    CF_OK(cf.backend->stream_synchronize(cf.backend->context, 0, held.at));
    expect(0, blocks[0], chained(0, 3), "the held stream");
    cf_stream_free(&held);
    cf_stream_free(&free_one);
    cf_give(0, blocks[0], block_bytes);
    cf_give(0, blocks[1], block_bytes);
}

static void check_devices_beside(void)
{
    cf_need_sim();
    if (cf.devices < 2) {
        cf_skip("there is one device");
    }
    cf_stream held = cf_default_stream(0);
    cf_stream other = cf_default_stream(1);
    void *blocks[] = {zeros(0), zeros(1)};
    uint32_t gave_up = cf_gave_up(held);
    cf_hold(held);
    chain(held, blocks[0], 3);
    chain(other, blocks[1], STEPS);
    CF_OK(cf.backend->synchronize(cf.backend->context, 1));
    expect(1, blocks[1], chained(0, STEPS), "a device other than a held one");
    CF_CHECK(cf_gave_up(held) == gave_up, "waiting for one device waits for another");
    cf_unhold(held);
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    expect(0, blocks[0], chained(0, 3), "the held device");
    cf_give(0, blocks[0], block_bytes);
    cf_give(1, blocks[1], block_bytes);
}

/* What is written on one stream and read on another, back and forth. */
static void check_wait(void)
{
    cf_need_streams();
    cf_stream streams[] = {cf_stream_new(0), cf_stream_new(0)};
    void *block = zeros(0);
    for (int round = 0; round < ROUNDS; round++) {
        mt_backend_event *event = NULL;
        cf_stream from = streams[round % 2];
        cf_stream to = streams[(round + 1) % 2];
        CF_OK(cf.backend->event_new(cf.backend->context, 0, 0, &event));
        if (round % 3 == 0) {
            cf_hold(from);
        }
        chain(from, block, STEPS);
        CF_OK(cf.backend->event_record(cf.backend->context, 0, from.at, event));
        CF_OK(cf.backend->stream_wait(cf.backend->context, 0, to.at, event));
        CF_OK(cf.backend->stream_wait(cf.backend->context, 0, from.at, event)); /* its own */
        chain(to, block, 1);
        cf.backend->event_free(cf.backend->context, event); /* waiting streams keep waiting */
        if (round % 3 == 0) {
            cf_unhold(from);
        }
        /* `to` is next round's `from`. */
    }
    int64_t want = 0;
    for (int round = 0; round < ROUNDS; round++) {
        want = chained(chained(want, STEPS), 1);
    }
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    expect(0, block, want, "work handed from stream to stream");
    cf_stream_free(&streams[0]);
    cf_stream_free(&streams[1]);
    cf_give(0, block, block_bytes);
}

/* Waiting on one stream also waits for what that stream waits for. */
static void check_wait_chain(void)
{
    cf_stream streams[4];
    cf_need_streams();
    void *block = zeros(0);
    mt_backend_event *event = NULL;
    CF_OK(cf.backend->event_new(cf.backend->context, 0, 0, &event));
    for (size_t i = 0; i < 4; i++) {
        streams[i] = cf_stream_new(0);
    }
    int64_t want = 0;
    for (size_t i = 0; i < 4; i++) {
        chain(streams[i], block, 10);
        want = chained(want, 10);
        CF_OK(cf.backend->event_record(cf.backend->context, 0, streams[i].at, event));
        if (i < 3) {
            CF_OK(cf.backend->stream_wait(cf.backend->context, 0, streams[i + 1].at, event));
        }
    }
    CF_OK(cf.backend->event_synchronize(cf.backend->context, event));
    expect(0, block, want, "four streams, one after the other");
    cf.backend->event_free(cf.backend->context, event);
    for (size_t i = 0; i < 4; i++) {
        cf_stream_free(&streams[i]);
    }
    cf_give(0, block, block_bytes);
}

/* To another device and back: copies go on the stream of the device they come from. */
static void check_wait_devices(void)
{
    cf_need_streams();
    if (cf.devices < 2) {
        cf_skip("there is one device");
    }
    cf_stream streams[] = {cf_stream_new(0), cf_stream_new(1)};
    void *blocks[] = {zeros(0), zeros(1)};
    mt_backend_event *events[2] = {NULL, NULL};
    int64_t want = 0;
    for (uint32_t i = 0; i < 2; i++) {
        CF_OK(cf.backend->event_new(cf.backend->context, i, 0, &events[i]));
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t from = round % 2;
        uint32_t to = 1 - from;
        if (round % 4 == 0) {
            cf_hold(streams[from]);
        }
        chain(streams[from], blocks[from], 5);
        want = chained(want, 5);
        CF_OK(cf_copy(streams[from], &(cf_copy_of){.kind = MT_COPY_PEER,
                                                   .to_device = to,
                                                   .to = blocks[to],
                                                   .from = blocks[from],
                                                   .bytes = block_bytes}));
        CF_OK(cf.backend->event_record(cf.backend->context, from, streams[from].at, events[from]));
        CF_OK(cf.backend->stream_wait(cf.backend->context, to, streams[to].at, events[from]));
        if (round % 4 == 0) {
            cf_unhold(streams[from]);
        }
    }
    CF_OK(cf.backend->stream_synchronize(cf.backend->context, ROUNDS % 2, streams[ROUNDS % 2].at));
    expect(ROUNDS % 2, blocks[ROUNDS % 2], want, "work handed from device to device");
    CF_OK(cf.backend->synchronize(cf.backend->context, 0)); /* where the order is wrong, too */
    CF_OK(cf.backend->synchronize(cf.backend->context, 1));
    for (uint32_t i = 0; i < 2; i++) {
        cf.backend->event_free(cf.backend->context, events[i]);
        cf_stream_free(&streams[i]);
        cf_give(i, blocks[i], block_bytes);
    }
}

const cf_check cf_stream_checks[] = {
    {"work on the default stream is done in order", check_default},
    {"kernels, copies and sets in one order", check_mixed},
    {"arguments are the caller's again on return", check_arguments},
    {"many launches queue without waiting", check_queue},
    {"more launches than a queue holds", check_full_queue},
    {"work on a stream of its own", check_own_stream},
    {"synchronize waits for all streams", check_device_waits},
    {"streams do not wait for each other", check_beside},
    {"devices do not wait for each other", check_devices_beside},
    {"stream_wait orders two streams", check_wait},
    {"stream_wait along four streams", check_wait_chain},
    {"stream_wait between devices", check_wait_devices},
    {NULL, NULL},
};
