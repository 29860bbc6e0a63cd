/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: memory of devices, and host memory for copies.
 */
#include "conformance/conform.h"

#include <mindtorch/status.h>

#include <stdlib.h>
#include <string.h>

enum {
    PIECES = 48,
    MOST_PIECES = 4096
};

static const size_t mebibyte = (size_t)1 << 20;

static uint64_t free_bytes(uint32_t device)
{
    mt_device_info info = {.struct_size = sizeof info};
    CF_OK(cf.backend->device_info(cf.backend->context, device, &info));
    return info.free_bytes;
}

static size_t size_of(size_t piece)
{
    static const size_t sizes[] = {64, 4096, 100, 2 << 20, 1, 65536, 3000000, 777};
    return sizes[piece % (sizeof sizes / sizeof sizes[0])] + 64 * piece;
}

/* Each piece gets a value of its own, then all are read: none may lie in another. */
static void check_pieces(void)
{
    void *pieces[PIECES];
    unsigned char *read = cf_host(4 * mebibyte);
    for (uint32_t device = 0; device < cf.devices; device++) {
        for (size_t i = 0; i < PIECES; i++) {
            pieces[i] = cf_take(device, size_of(i));
            CF_CHECK((uintptr_t)pieces[i] % 64 == 0, "%p is not aligned to 64", pieces[i]);
            CF_OK(cf_set(cf_default_stream(device), pieces[i], size_of(i), (uint8_t)(i + 1), 0));
        }
        for (size_t i = 0; i < PIECES; i++) {
            size_t wrong = 0;
            cf_read(device, read, pieces[i], size_of(i));
            for (size_t at = 0; at < size_of(i); at++) {
                wrong += read[at] != i + 1;
            }
            CF_CHECK(wrong == 0, "device %u: piece %zu lies in another (%zu bytes changed)", device,
                     i, wrong);
        }
        for (size_t i = 0; i < PIECES; i++) {
            cf_give(device, pieces[i], size_of(i));
        }
    }
    free(read);
}

static void refuse(size_t bytes)
{
    void *memory = NULL;
    (void)mt_fail(MT_EVALUE, "before");
    int status = cf.backend->allocate(cf.backend->context, 0, bytes, &memory);
    CF_CHECK(status == MT_ENOMEM, "%zu bytes: %s, expected ENOMEM", bytes, mt_status_name(status));
    if (status == MT_OK) {
        cf.backend->release(cf.backend->context, 0, memory, bytes);
        return;
    }
    CF_CHECK(mt_last_error()->message[0] != '\0' && strcmp(mt_last_error()->message, "before") != 0,
             "%zu bytes are refused without a message", bytes);
}

static void check_too_much(void)
{
    mt_device_info info = {.struct_size = sizeof info};
    CF_OK(cf.backend->device_info(cf.backend->context, 0, &info));
    refuse(SIZE_MAX - 10); /* rounded up it would be small */
    refuse(SIZE_MAX / 2);
    if (!cf.shared) {
        refuse((size_t)info.total_bytes + 1);
    }
    cf_give(0, cf_take(0, 4096), 4096);
}

static void check_reuse(void)
{
    void *pieces[16];
    for (int round = 0; round < 8; round++) {
        for (size_t i = 0; i < 16; i++) {
            pieces[i] = cf_take(0, (i % 3 + 1) * mebibyte);
        }
        for (size_t i = 0; i < 16; i++) { /* every second one first */
            size_t piece = i < 8 ? 2 * i : 2 * i - 15;
            cf_give(0, pieces[piece], (piece % 3 + 1) * mebibyte);
        }
    }
}

/* Takes pieces until there are no more, twice: the second time there are as many. */
static size_t take_all(void **pieces, size_t bytes)
{
    size_t count = 0;
    int status = MT_OK;
    while (count < MOST_PIECES && status == MT_OK) {
        status = cf.backend->allocate(cf.backend->context, 0, bytes, &pieces[count]);
        count += status == MT_OK;
    }
    CF_CHECK(status == MT_ENOMEM, "no piece is left: %s, expected ENOMEM", mt_status_name(status));
    for (size_t i = 0; i < count; i++) {
        cf.backend->release(cf.backend->context, 0, pieces[i], bytes);
    }
    return count;
}

static void check_exhausted(void)
{
    static void *pieces[MOST_PIECES];
    mt_device_info info = {.struct_size = sizeof info};
    CF_OK(cf.backend->device_info(cf.backend->context, 0, &info));
    if (cf.shared || info.total_bytes > (uint64_t)1 << 30) {
        cf_skip("the device has more than 1 GiB, or others use its memory");
    }
    size_t bytes = (size_t)(info.total_bytes / 64) & ~(size_t)4095;
    size_t first = take_all(pieces, bytes);
    size_t second = take_all(pieces, bytes);
    CF_CHECK(first >= 32, "%zu pieces of 1/64 of the memory were there", first);
    CF_CHECK(first == second, "%zu pieces, then %zu", first, second);
}

static void check_balance(void)
{
    void *pieces[PIECES];
    if (cf.shared) {
        cf_skip("others use the device's memory");
    }
    for (uint32_t device = 0; device < cf.devices; device++) {
        uint64_t before = free_bytes(device);
        uint64_t taken = 0;
        for (size_t i = 0; i < PIECES; i++) {
            pieces[i] = cf_take(device, size_of(i));
            taken += size_of(i);
        }
        uint64_t during = free_bytes(device);
        CF_CHECK(during <= before - taken, "%llu bytes were taken, %llu became used",
                 (unsigned long long)taken, (unsigned long long)(before - during));
        for (size_t i = 0; i < PIECES; i++) {
            cf_give(device, pieces[i], size_of(i));
        }
        CF_CHECK(free_bytes(device) == before, "%llu bytes did not come back",
                 (unsigned long long)(before - free_bytes(device)));
    }
}

static void check_host(void)
{
    static const size_t sizes[] = {1, 4096, 100001, 3 << 20};
    void *pieces[4] = {NULL};
    if (cf.backend->host_allocate == NULL) {
        cf_skip("the backend has no host memory of its own");
    }
    for (size_t i = 0; i < 4; i++) {
        CF_OK(cf.backend->host_allocate(cf.backend->context, sizes[i], &pieces[i]));
        CF_CHECK((uintptr_t)pieces[i] % 64 == 0, "%p is not aligned to 64", pieces[i]);
        memset(pieces[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < 4; i++) {
        const unsigned char *bytes = pieces[i];
        CF_CHECK(bytes[0] == i + 1 && bytes[sizes[i] - 1] == i + 1, "pieces lie in each other");
        cf.backend->host_release(cf.backend->context, pieces[i], sizes[i]);
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their malloc aborts */
    void *memory = NULL;
    int status = cf.backend->host_allocate(cf.backend->context, SIZE_MAX / 2, &memory);
    CF_CHECK(status == MT_ENOMEM, "too much host memory: %s, expected ENOMEM",
             mt_status_name(status));
#endif
}

const cf_check cf_memory_checks[] = {
    {"pieces are aligned and distinct", check_pieces},
    {"too much is refused with ENOMEM and a message", check_too_much},
    {"what is released can be had again", check_reuse},
    {"all of it, twice", check_exhausted},
    {"free_bytes comes back", check_balance},
    {"host_allocate", check_host},
    {NULL, NULL},
};
