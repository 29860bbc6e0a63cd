/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: the struct itself, and what it says of its devices.
 */
#include "conformance/conform.h"

#include <string.h>

typedef struct member {
    const char *name;
    size_t offset;
    uint32_t group; /* 0: always there; others: all of a group or none */
} member;

#define MEMBER(name, group)                        \
    {                                              \
#        name, offsetof(mt_backend, name), (group) \
    }

static const member members[] = {
    MEMBER(name, 0),
    MEMBER(device_count, 0),
    MEMBER(device_info, 0),
    MEMBER(synchronize, 0),
    MEMBER(allocate, 0),
    MEMBER(release, 0),
    MEMBER(copy, 0),
    MEMBER(set, 0),
    MEMBER(kernels, 0),
    MEMBER(host_allocate, 1),
    MEMBER(host_release, 1),
    MEMBER(stream_new, 2),
    MEMBER(stream_free, 2),
    MEMBER(stream_query, 2),
    MEMBER(stream_synchronize, 2),
    MEMBER(event_new, 2),
    MEMBER(event_free, 2),
    MEMBER(event_record, 2),
    MEMBER(event_query, 2),
    MEMBER(event_synchronize, 2),
    MEMBER(event_elapsed, 2),
    MEMBER(stream_wait, 2),
    MEMBER(activity_start, 3),
    MEMBER(activity_stop, 3),
    MEMBER(activity_flush, 3),
    MEMBER(clock, 3),
};

enum {
    MEMBERS = sizeof members / sizeof members[0]
};

static bool is_there(const member *which)
{
    static const char nothing[sizeof(void *)];
    return memcmp((const char *)cf.backend + which->offset, nothing, sizeof nothing) != 0;
}

static void check_size(void)
{
    CF_CHECK(cf.backend->struct_size >= sizeof(mt_backend), "struct_size is %u, version %d has %zu",
             cf.backend->struct_size, MT_BACKEND_VERSION, sizeof(mt_backend));
    CF_CHECK(cf.backend->version == MT_BACKEND_VERSION, "version is %u, expected %d",
             cf.backend->version, MT_BACKEND_VERSION);
}

static void check_functions(void)
{
    uint32_t groups = 1;
    if (cf.backend->struct_size < sizeof(mt_backend)) {
        cf_stop("struct_size is too small to look");
    }
    for (size_t i = 0; i < MEMBERS; i++) {
        groups |= is_there(&members[i]) ? 1U << members[i].group : 0;
    }
    for (size_t i = 0; i < MEMBERS; i++) {
        CF_CHECK((groups >> members[i].group & 1) == 0 || is_there(&members[i]), "%s is missing",
                 members[i].name);
    }
    CF_CHECK(cf.backend->name == NULL || cf.backend->name[0] != '\0', "the name is empty");
}

static uint32_t count(void)
{
    return cf.backend->device_count(cf.backend->context);
}

static void check_count(void)
{
    uint32_t first = count();
    CF_CHECK(first > 0, "there is no device");
    CF_CHECK(first == count(), "device_count says two things");
    if (cf.backend->extension != NULL) {
        CF_CHECK(cf.backend->extension(cf.backend->context, "no such extension") == NULL,
                 "an unknown extension is there");
    }
}

static void check_info(void)
{
    for (uint32_t device = 0; device < count(); device++) {
        mt_device_info info = {.struct_size = sizeof info};
        memset(info.name, 'x', sizeof info.name);
        CF_OK(cf.backend->device_info(cf.backend->context, device, &info));
        CF_CHECK(info.name[0] != '\0' && memchr(info.name, '\0', sizeof info.name) != NULL,
                 "device %u: the name is empty or does not end", device);
        CF_CHECK(info.total_bytes > 0, "device %u has no memory", device);
        CF_CHECK(info.free_bytes <= info.total_bytes, "device %u: %llu bytes are free of %llu",
                 device, (unsigned long long)info.free_bytes, (unsigned long long)info.total_bytes);
    }
}

/* An older runtime's struct is shorter: nothing after it may be written. A newer one's is longer.
 */
static void check_info_sizes(void)
{
    static const size_t sizes[] = {offsetof(mt_device_info, name),
                                   offsetof(mt_device_info, total_bytes),
                                   offsetof(mt_device_info, free_bytes), sizeof(mt_device_info)};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char bytes[sizeof(mt_device_info) + 32];
        mt_device_info info = {.struct_size = (uint32_t)sizes[i]};
        memset(bytes, 0xC7, sizeof bytes);
        memcpy(bytes, &info, sizeof info.struct_size);
        /* Not a struct of its own, so that we can look at the bytes after struct_size. */
        mt_device_info *short_one = (mt_device_info *)(void *)bytes;
        CF_OK(cf.backend->device_info(cf.backend->context, 0, short_one));
        for (size_t at = sizes[i]; at < sizeof bytes; at++) {
            CF_CHECK(bytes[at] == 0xC7, "byte %zu was written, struct_size is %zu", at, sizes[i]);
        }
    }
    struct {
        mt_device_info info;
        uint64_t appended[4];
    } larger = {.info.struct_size = sizeof larger};
    CF_OK(cf.backend->device_info(cf.backend->context, 0, &larger.info));
    CF_CHECK(larger.info.total_bytes > 0, "a longer struct is not filled in");
}

static void check_idle(void)
{
    for (uint32_t device = 0; device < count(); device++) {
        CF_OK(cf.backend->synchronize(cf.backend->context, device));
    }
}

const cf_check cf_device_checks[] = {
    {"struct_size and version", check_size},
    {"functions are there, groups complete or absent", check_functions},
    {"device_count and extension", check_count},
    {"device_info", check_info},
    {"device_info of shorter and longer structs", check_info_sizes},
    {"synchronize with nothing to wait for", check_idle},
    {NULL, NULL},
};
