/* SPDX-License-Identifier: Apache-2.0
 *
 * The accelerator in the profile, see device_trace.h.
 */
#include "mindtorch/trace/device_trace.h"

#include <mtprof/source.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define LAUNCHES (MTPROF_KIND_RUNTIME | MTPROF_FLAG_DEVICE | MTPROF_FLAG_LAUNCH)
#define CALLS    (MTPROF_KIND_RUNTIME | MTPROF_FLAG_DEVICE)

mtprof_site mt__runtime_sites[MT_RUNTIME_CALLS] = {
    [MT_RUNTIME_LAUNCH_KERNEL] = MTPROF_SITE_INIT("npuLaunchKernel", LAUNCHES),
    [MT_RUNTIME_MEMCPY] = MTPROF_SITE_INIT("npuMemcpy", LAUNCHES),
    [MT_RUNTIME_MEMCPY_ASYNC] = MTPROF_SITE_INIT("npuMemcpyAsync", LAUNCHES),
    [MT_RUNTIME_MEMSET] = MTPROF_SITE_INIT("npuMemsetAsync", LAUNCHES),
    [MT_RUNTIME_DEVICE_SYNCHRONIZE] = MTPROF_SITE_INIT("npuDeviceSynchronize", CALLS),
    [MT_RUNTIME_STREAM_SYNCHRONIZE] = MTPROF_SITE_INIT("npuStreamSynchronize", CALLS),
    [MT_RUNTIME_STREAM_WAIT_EVENT] = MTPROF_SITE_INIT("npuStreamWaitEvent", CALLS),
    [MT_RUNTIME_EVENT_RECORD] = MTPROF_SITE_INIT("npuEventRecord", CALLS),
    [MT_RUNTIME_EVENT_SYNCHRONIZE] = MTPROF_SITE_INIT("npuEventSynchronize", CALLS),
};

/* One accelerator serves a process, so there is one source. Set by start(), and by every further
 * one to the same; partner: the loads of push() and lost(), on the backend's threads. */
static _Atomic(mtprof_source *) source;

static mtprof_source *own_source(void)
{
    return atomic_load_explicit(&source, memory_order_acquire);
}

static void push(void *context, const mt_activity *activity)
{
    (void)context;
    mtprof_activity record = {
        .struct_size = sizeof record,
        .kind = activity->kind,
        .name = activity->name,
        .name_length = strlen(activity->name),
        .start = activity->start,
        .end = activity->end,
        .launch_key = activity->correlation,
        .device = activity->device,
        .queue = activity->stream,
        .correlation = activity->correlation,
        .bytes = activity->bytes,
    };
    mtprof_push_activity(own_source(), &record);
}

static void lost(void *context, uint64_t count)
{
    (void)context;
    mtprof_push_lost(own_source(), count);
}

static const mt_activity_sink sink = {.struct_size = sizeof sink, .push = push, .lost = lost};

static mtprof_status start(void *context, mtprof_source *self, uint64_t wants)
{
    (void)wants;
    const mt_backend *backend = context;
    /* Registering calls this before it returns, where a recording is under way. */
    atomic_store_explicit(&source, self, memory_order_release);
    return backend->activity_start(backend->context, &sink) == MT_OK ? MTPROF_OK : MTPROF_ENOTSUP;
}

static void stop(void *context)
{
    const mt_backend *backend = context;
    backend->activity_stop(backend->context);
}

static void flush(void *context, uint64_t timeout_ns)
{
    const mt_backend *backend = context;
    (void)backend->activity_flush(backend->context, timeout_ns);
}

static uint64_t read_clock(void *context)
{
    const mt_backend *backend = context;
    return backend->clock(backend->context);
}

/* ---- description of the devices ---- */

/* A name for people, as JSON: what would need care in it becomes a question mark. */
static void copy_name(char *to, const char *from, size_t size)
{
    size_t length = strnlen(from, size - 1);
    for (size_t i = 0; i < length; i++) {
        bool plain = from[i] >= ' ' && from[i] <= '~' && from[i] != '"' && from[i] != '\\';
        to[i] = plain ? from[i] : '?';
    }
    to[length] = '\0';
}

/* Devices that cannot be queried now (lost ones) are left out. */
static size_t describe(void *context, char *json, size_t room)
{
    const mt_backend *backend = context;
    size_t length = 0;
    uint32_t count = backend->device_count(backend->context);
    for (uint32_t i = 0; i < count; i++) {
        mt_device_info info = {.struct_size = sizeof info};
        char name[sizeof info.name];
        if (backend->device_info(backend->context, i, &info) != MT_OK) {
            continue;
        }
        copy_name(name, info.name, sizeof info.name);
        int more = snprintf(length < room ? json + length : NULL, length < room ? room - length : 0,
                            "%s{\"id\": %u, \"name\": \"%s\", \"totalGlobalMem\": %llu}",
                            length != 0 ? ", " : "", i, name, (unsigned long long)info.total_bytes);
        length += more > 0 ? (size_t)more : 0;
    }
    return length;
}

void mt__device_trace_attach(const mt_backend *backend)
{
    if (backend->activity_start == NULL) {
        return;
    }
    mtprof_source_ops ops = {
        .struct_size = sizeof ops,
        .abi = MTPROF_SOURCE_ABI,
        .name = backend->name,
        .device_type = "NPU",
        .context = (void *)(uintptr_t)backend, /* not written through */
        .needs = MTPROF_WANT_DEVICE,
        .start = start,
        .stop = stop,
        .flush = flush,
        .clock = read_clock,
        .describe = describe,
    };
    mtprof_source *made = NULL;
    (void)mtprof_source_register(&ops, &made); /* without it: profiles of the host alone */
}
