/* SPDX-License-Identifier: Apache-2.0
 *
 * See held_backend.h. Device memory is the host's.
 */
#include "support/devices/held_backend.h"

#include "base/compiler.h"
#include "harness/mt_test.h"

#include <mindtorch/backend.h>

#include <stdlib.h>
#include <string.h>

struct mt_backend_stream {
    _Atomic uint64_t queued, done;
};

struct mt_backend_event {
    mt_backend_stream *stream;
    uint64_t at; /* what was queued when it was recorded */
};

enum {
    DEVICES = 2,
    STREAMS = 65
};

held_device held = {.limit = SIZE_MAX, .pinned_limit = SIZE_MAX};
static mt_backend_stream streams[DEVICES][STREAMS]; /* [0]: the default one */
static _Atomic uint32_t let_go;

static int here(void)
{
    return held.lost ? mt_fail(MT_EDEVICE, "held: lost") : MT_OK;
}

static mt_backend_stream *stream_at(uint32_t device, mt_backend_stream *stream)
{
    return stream != NULL ? stream : &streams[device][0];
}

static void finish(mt_backend_stream *stream)
{
    atomic_store(&stream->done, atomic_load(&stream->queued));
}

static void queue_work(mt_backend_stream *stream)
{
    atomic_fetch_add(&stream->queued, 1);
    if (atomic_load(&let_go) != 0) {
        finish(stream);
    }
}

/* What every function that waits returns. */
static int waited(void)
{
    atomic_fetch_add(&held.waits, 1);
    const char *failure = atomic_exchange(&held.failure, NULL);
    return failure != NULL ? mt_fail(MT_ERUNTIME, failure) : MT_OK;
}

/* ---- devices and memory ---- */

static uint32_t device_count(void *context)
{
    (void)context;
    return DEVICES;
}

static int device_info(void *context, uint32_t device, mt_device_info *info)
{
    (void)context;
    (void)device;
    if (held.no_info) {
        return mt_fail(MT_ERUNTIME, "held: no info");
    }
    *info = (mt_device_info){.struct_size = info->struct_size,
                             .name = "held",
                             .total_bytes = held.limit,
                             .free_bytes = held.limit - held.given};
    return MT_OK;
}

static int synchronize(void *context, uint32_t device)
{
    (void)context;
    if (here() != MT_OK) {
        return MT_EDEVICE;
    }
    for (size_t i = 0; i < STREAMS; i++) {
        finish(&streams[device][i]);
    }
    return waited();
}

static int allocate_from(_Atomic size_t *given, size_t limit, size_t bytes, void **out)
{
    if (here() != MT_OK) {
        return MT_EDEVICE;
    }
    size_t before = atomic_fetch_add(given, bytes);
    *out = bytes <= limit && before <= limit - bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64)
                                                     : NULL;
    if (*out == NULL) {
        atomic_fetch_sub(given, bytes);
        return mt_fail(MT_ENOMEM, "held: full");
    }
    return MT_OK;
}

static int allocate(void *context, uint32_t device, size_t bytes, void **out)
{
    (void)context;
    (void)device;
    return allocate_from(&held.given, held.limit, bytes, out);
}

static void release(void *context, uint32_t device, void *memory, size_t bytes)
{
    (void)context;
    for (size_t i = 0; i < STREAMS; i++) {
        mt_backend_stream *stream = &streams[device][i];
        if (atomic_load(&let_go) == 0 &&
            atomic_load(&stream->done) != atomic_load(&stream->queued)) {
            atomic_fetch_add(&held.released_early, 1);
        }
    }
    atomic_fetch_sub(&held.given, bytes);
    free(memory);
}

static int host_allocate(void *context, size_t bytes, void **out)
{
    (void)context;
    return allocate_from(&held.pinned, held.pinned_limit, bytes, out);
}

static void host_release(void *context, void *memory, size_t bytes)
{
    (void)context;
    atomic_fetch_sub(&held.pinned, bytes);
    free(memory);
}

/* ---- work ---- */

static int copy(void *context, mt_backend_stream *stream, const mt_copy_call *call)
{
    (void)context;
    bool pinned = (call->flags & MT_COPY_PINNED) != 0;
    if (here() != MT_OK) {
        return MT_EDEVICE;
    }
    memmove(call->to, call->from, call->bytes);
    atomic_fetch_add(&held.copies[pinned], 1);
    queue_work(stream_at(call->device, stream));
    if (call->kind != MT_COPY_TO_HOST || pinned) {
        return MT_OK;
    }
    finish(stream_at(call->device, stream));
    return waited();
}

static int set(void *context, mt_backend_stream *stream, const mt_set_call *call)
{
    (void)context;
    memset(call->to, (int)call->value, call->bytes);
    queue_work(stream_at(call->device, stream));
    return here();
}

static int run_copy(void *context, mt_backend_stream *stream, const mt_kernel_call *call)
{
    (void)context;
    (void)stream;
    (void)call;
    return here();
}

static mt_kernel_fn *const kernels[] = {[MT_KERNEL_COPY] = run_copy};

/* ---- streams and events ---- */

static int stream_new(void *context, uint32_t device, uint32_t number, int32_t priority,
                      mt_backend_stream **out)
{
    (void)context;
    (void)priority;
    *out = &streams[device][number];
    return here();
}

static void stream_free(void *context, mt_backend_stream *stream)
{
    (void)context;
    (void)stream;
}

static int stream_query(void *context, uint32_t device, mt_backend_stream *stream, bool *done)
{
    (void)context;
    stream = stream_at(device, stream);
    *done = atomic_load(&stream->done) == atomic_load(&stream->queued);
    return here();
}

static int stream_synchronize(void *context, uint32_t device, mt_backend_stream *stream)
{
    (void)context;
    finish(stream_at(device, stream));
    return here() != MT_OK ? MT_EDEVICE : waited();
}

static int event_new(void *context, uint32_t device, uint32_t flags, mt_backend_event **out)
{
    (void)context;
    (void)device;
    (void)flags;
    if (held.lost || held.refuse_events) {
        return held.lost ? here() : mt_fail(MT_ERUNTIME, "held: no events");
    }
    *out = calloc(1, sizeof **out);
    atomic_fetch_add(&held.events, 1);
    return MT_OK;
}

static void event_free(void *context, mt_backend_event *event)
{
    (void)context;
    atomic_fetch_sub(&held.events, 1);
    free(event);
}

static int event_record(void *context, uint32_t device, mt_backend_stream *stream,
                        mt_backend_event *event)
{
    (void)context;
    if (held.refuse_records) {
        return mt_fail(MT_ERUNTIME, "held: not recorded");
    }
    event->stream = stream_at(device, stream);
    event->at = atomic_load(&event->stream->queued);
    return here();
}

static int event_query(void *context, mt_backend_event *event, bool *done)
{
    (void)context;
    *done = event->stream == NULL || atomic_load(&event->stream->done) >= event->at;
    return here();
}

static int event_synchronize(void *context, mt_backend_event *event)
{
    (void)context;
    if (event->stream != NULL) {
        finish(event->stream);
    }
    return here() != MT_OK ? MT_EDEVICE : waited();
}

static int event_elapsed(void *context, mt_backend_event *from, mt_backend_event *to, double *ns)
{
    (void)context;
    (void)from;
    (void)to;
    *ns = 0;
    return here();
}

static int stream_wait(void *context, uint32_t device, mt_backend_stream *stream,
                       mt_backend_event *event)
{
    (void)context;
    (void)device;
    (void)stream;
    (void)event;
    return here();
}

static const mt_backend backend = {
    .struct_size = sizeof(mt_backend),
    .version = MT_BACKEND_VERSION,
    .name = "held",
    .device_count = device_count,
    .device_info = device_info,
    .synchronize = synchronize,
    .allocate = allocate,
    .release = release,
    .host_allocate = host_allocate,
    .host_release = host_release,
    .copy = copy,
    .set = set,
    .kernels = kernels,
    .n_kernels = MT_COUNT(kernels),
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_elapsed = event_elapsed,
    .stream_wait = stream_wait,
};

void held_open(void)
{
    REQUIRE_OK(mt_backend_register(MT_DEVICE_TYPE_NPU, &backend));
}

static mt_backend_stream *place_of(mt_stream *stream)
{
    return &streams[mt_stream_device(stream) - MT_NPU][mt_stream_number(stream)];
}

void held_work(mt_stream *stream)
{
    queue_work(place_of(stream));
}

void held_finish(mt_stream *stream)
{
    finish(place_of(stream));
}

void held_let_go(void)
{
    atomic_store(&let_go, 1);
}
