/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: copies and sets.
 */
#include "conformance/conform.h"

#include <stdlib.h>
#include <string.h>

enum {
    MARGIN = 64, /* bytes around what is copied, which must stay as they are */
    AROUND = 0xB7
};

static const size_t most = (size_t)3 << 20;
static const size_t sizes[] = {0, 1, 3, 4097, (size_t)3 << 20};
static const size_t offsets[] = {0, 1, 7};

enum {
    SIZES = sizeof sizes / sizeof sizes[0],
    OFFSETS = sizeof offsets / sizeof offsets[0]
};

/* Bytes that show where they come from. */
static void fill(unsigned char *bytes, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (unsigned char)((i * 131 + i / 251 + seed) % 255);
    }
}

/* The block on the device holds `want` at the offset, and AROUND before and after. */
static void check_block(uint32_t device, const void *block, size_t offset,
                        const unsigned char *want, size_t bytes)
{
    unsigned char *read = cf_host(most + 2 * MARGIN);
    size_t around = 0;
    cf_read(device, read, block, offset + bytes + MARGIN);
    for (size_t i = 0; i < offset + MARGIN; i++) {
        size_t at = i < offset ? i : bytes + i;
        around += read[at] != AROUND;
    }
    CF_CHECK(memcmp(read + offset, want, bytes) == 0, "%zu bytes at offset %zu are wrong", bytes,
             offset);
    CF_CHECK(around == 0, "%zu bytes at offset %zu: %zu bytes around were changed", bytes, offset,
             around);
    free(read);
}

static void *marked(uint32_t device)
{
    void *block = cf_take(device, most + 2 * MARGIN);
    CF_OK(cf_set(cf_default_stream(device), block, most + 2 * MARGIN, AROUND, 0));
    return block;
}

typedef void copy_case(uint32_t device, size_t bytes, size_t to, size_t from);

static void each_size(copy_case *run)
{
    for (uint32_t device = 0; device < cf.devices; device++) {
        for (size_t size = 0; size < SIZES; size++) {
            for (size_t i = 0; i < OFFSETS; i++) {
                run(device, sizes[size], offsets[i], offsets[(i + size) % OFFSETS]);
            }
        }
    }
}

/* ---- each kind ---- */

static void there_and_back(uint32_t device, size_t bytes, size_t to, size_t from)
{
    unsigned char *host = cf_host(most + 2 * MARGIN);
    unsigned char *back = cf_host(most + 2 * MARGIN);
    char *block = marked(device);
    cf_stream stream = cf_default_stream(device);
    fill(host, bytes + from, 5);
    CF_OK(cf_copy(stream, &(cf_copy_of){.kind = MT_COPY_TO_DEVICE,
                                        .to_device = device,
                                        .to = block + to,
                                        .from = host + from,
                                        .bytes = bytes}));
    check_block(device, block, to, host + from, bytes);
    memset(back, AROUND, bytes + 2 * MARGIN);
    CF_OK(cf_copy(stream, &(cf_copy_of){.kind = MT_COPY_TO_HOST,
                                        .to = back + from,
                                        .from = block + to,
                                        .bytes = bytes}));
    CF_CHECK(memcmp(back + from, host + from, bytes) == 0, "%zu bytes come back wrong", bytes);
    CF_CHECK(back[from + bytes] == AROUND, "%zu bytes: one more came back", bytes);
    cf_give(device, block, most + 2 * MARGIN);
    free(back);
    free(host);
}

static void check_host_and_device(void)
{
    each_size(there_and_back);
}

static void within(uint32_t device, size_t bytes, size_t to, size_t from)
{
    unsigned char *host = cf_host(most + MARGIN);
    char *source = cf_take(device, most + MARGIN);
    char *target = marked(device);
    cf_stream stream = cf_default_stream(device);
    fill(host, bytes + from, 9);
    cf_write(device, source, host, bytes + from);
    CF_OK(cf_copy(stream, &(cf_copy_of){.kind = MT_COPY_WITHIN,
                                        .to_device = device,
                                        .to = target + to,
                                        .from = source + from,
                                        .bytes = bytes}));
    CF_OK(cf_copy(stream, &(cf_copy_of){.kind = MT_COPY_WITHIN, /* equal places */
                                        .to_device = device,
                                        .to = target + to,
                                        .from = target + to,
                                        .bytes = bytes}));
    check_block(device, target, to, host + from, bytes);
    cf_give(device, source, most + MARGIN);
    cf_give(device, target, most + 2 * MARGIN);
    free(host);
}

static void check_within(void)
{
    each_size(within);
}

static void peer(uint32_t device, size_t bytes, size_t to, size_t from)
{
    uint32_t other = (device + 1) % cf.devices;
    unsigned char *host = cf_host(most + MARGIN);
    char *source = cf_take(device, most + MARGIN);
    char *target = marked(other);
    fill(host, bytes + from, 3);
    cf_write(device, source, host, bytes + from);
    CF_OK(cf.backend->synchronize(cf.backend->context, other));
    CF_OK(cf_copy(cf_default_stream(device), &(cf_copy_of){.kind = MT_COPY_PEER,
                                                           .to_device = other,
                                                           .to = target + to,
                                                           .from = source + from,
                                                           .bytes = bytes}));
    CF_OK(cf.backend->synchronize(cf.backend->context, device)); /* its stream did it */
    check_block(other, target, to, host + from, bytes);
    cf_give(device, source, most + MARGIN);
    cf_give(other, target, most + 2 * MARGIN);
    free(host);
}

static void check_peer(void)
{
    if (cf.devices < 2) {
        cf_skip("there is one device");
    }
    each_size(peer);
}

static void set_bytes(uint32_t device, size_t bytes, size_t to, size_t from)
{
    static const uint8_t values[] = {0, 255, 171};
    unsigned char *want = cf_host(bytes);
    char *block = marked(device);
    uint8_t value = values[from % 3];
    memset(want, value, bytes);
    CF_OK(cf_set(cf_default_stream(device), block + to, bytes, value, 0));
    check_block(device, block, to, want, bytes);
    cf_give(device, block, most + 2 * MARGIN);
    free(want);
}

static void check_set(void)
{
    each_size(set_bytes);
}

/* ---- who owns the host's memory when ---- */

/* The source is overwritten as soon as the call returns, while the stream is still busy. */
static void check_reused_source(void)
{
    cf_stream stream = cf_default_stream(0);
    unsigned char *want = cf_host(most);
    unsigned char *host = cf_host(most);
    char *block = marked(0);
    for (size_t i = 1; i < SIZES; i++) {
        /* A copy too large to be staged may wait for the stream: not possible after a hold. */
        bool held = sizes[i] <= 4097;
        fill(want, sizes[i], (uint32_t)i);
        memcpy(host, want, sizes[i]);
        CF_OK(cf_set(stream, block, most + 2 * MARGIN, AROUND, 0));
        if (held) {
            cf_hold(stream);
        }
        CF_OK(cf_copy(stream, &(cf_copy_of){.kind = MT_COPY_TO_DEVICE,
                                            .to = block + 1,
                                            .from = host,
                                            .bytes = sizes[i]}));
        memset(host, 0xD1, most);
        if (held) {
            cf_unhold(stream);
        }
        CF_OK(cf.backend->synchronize(cf.backend->context, 0));
        check_block(0, block, 1, want, sizes[i]);
    }
    cf_give(0, block, most + 2 * MARGIN);
    free(host);
    free(want);
}

/* After long work, on every stream, the bytes are there when the call returns. */
static void check_host_complete(void)
{
    cf_stream streams[] = {cf_default_stream(0), cf_default_stream(0)};
    bool has_streams = cf.backend->stream_new != NULL;
    int64_t numbers[64];
    int64_t *block = cf_take(0, sizeof numbers);
    if (has_streams) {
        streams[1] = cf_stream_new(0);
    }
    for (size_t i = 0; i < 2; i++) {
        memset(numbers, 0, sizeof numbers);
        cf_write(0, block, numbers, sizeof numbers);
        for (int64_t add = 1; add <= 50; add++) {
            CF_OK(cf_add(streams[i], block, 64, add, 0));
        }
        CF_OK(cf_copy(streams[i], &(cf_copy_of){.kind = MT_COPY_TO_HOST,
                                                .to = numbers,
                                                .from = block,
                                                .bytes = sizeof numbers}));
        for (size_t at = 0; at < 64; at++) {
            CF_CHECK(numbers[at] == 1275, "number %zu is %lld on return, expected 1275", at,
                     (long long)numbers[at]);
        }
    }
    if (has_streams) {
        cf_stream_free(&streams[1]);
    }
    cf_give(0, block, sizeof numbers);
}

static void check_pinned(void)
{
    void *pinned = NULL;
    unsigned char *want = cf_host(most);
    if (cf.backend->host_allocate == NULL) {
        free(want);
        cf_skip("the backend has no host memory of its own");
    }
    CF_OK(cf.backend->host_allocate(cf.backend->context, most, &pinned));
    char *block = marked(0);
    cf_stream stream = cf_default_stream(0);
    for (size_t i = 0; i < SIZES; i++) {
        uint32_t gave_up = cf.sim != NULL ? cf_gave_up(stream) : 0;
        fill(want, sizes[i], (uint32_t)i);
        memcpy(pinned, want, sizes[i]);
        CF_OK(cf_set(stream, block, most + 2 * MARGIN, AROUND, 0));
        cf_hold(stream);
        CF_OK(cf_copy(stream, &(cf_copy_of){.kind = MT_COPY_TO_DEVICE,
                                            .flags = MT_COPY_PINNED,
                                            .to = block + 1,
                                            .from = pinned,
                                            .bytes = sizes[i]}));
        CF_OK(cf_set(stream, block, 1, 0x11, 0));
        CF_OK(cf_copy(stream, &(cf_copy_of){.kind = MT_COPY_TO_HOST,
                                            .flags = MT_COPY_PINNED,
                                            .to = pinned,
                                            .from = block,
                                            .bytes = sizes[i]}));
        CF_CHECK(cf.sim == NULL || cf_gave_up(stream) == gave_up, "a pinned copy waits");
        cf_unhold(stream);
        CF_OK(cf.backend->synchronize(cf.backend->context, 0));
        CF_CHECK(sizes[i] == 0 || ((unsigned char *)pinned)[0] == 0x11,
                 "%zu bytes: the first is %d", sizes[i], ((unsigned char *)pinned)[0]);
        CF_CHECK(sizes[i] < 2 || memcmp((char *)pinned + 1, want, sizes[i] - 1) == 0,
                 "%zu bytes come back wrong", sizes[i]);
    }
    cf_give(0, block, most + 2 * MARGIN);
    cf.backend->host_release(cf.backend->context, pinned, most);
    free(want);
}

const cf_check cf_copy_checks[] = {
    {"TO_DEVICE and TO_HOST, sizes and odd places", check_host_and_device},
    {"WITHIN", check_within},
    {"PEER", check_peer},
    {"set", check_set},
    {"the source may be reused when TO_DEVICE returns", check_reused_source},
    {"TO_HOST is complete on return", check_host_complete},
    {"pinned copies do not wait", check_pinned},
    {NULL, NULL},
};
