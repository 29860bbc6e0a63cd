/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events, see stream.h. Streams are made when they are first handed out and live as
 * long as the process, so that numbers, blocks of memory and nodes can refer to one without a
 * reference count.
 */
#include "mindtorch/core/device/streams.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/lock.h"
#include "mindtorch/core/device/device_failure.h"
#include "mindtorch/core/thread/thread_cache.h"
#include "mindtorch/trace/device_trace.h"

#include <stdatomic.h>

typedef struct device_streams {
    _Atomic(mt_stream *) at[MT_STREAMS]; /* by number; set under the lock, stay */
    uint32_t handed_out[2];              /* by priority: normal, high; under the lock */
} device_streams;

struct mt_event {
    _Atomic(mt_backend_event *) backend; /* NULL until recorded, or where the backend has none */
    _Atomic(mt_device) device;           /* MT_DEVICE_NONE until then; set once, before `backend` */
    uint32_t flags;
};

static_assert(sizeof mt__thread.streams == MT_DEVICES, "a current stream for each device");
static_assert(MT_STREAMS <= UINT8_MAX, "a number is a byte");

static device_streams devices[MT_DEVICES];
mtb_lock mt__streams_lock = MTB_LOCK_INIT(MTB_RANK_STREAMS); /* held across fork() */

/* Any thread may record an event first: the partner is the exchange in made_event(). */
static mt_backend_event *event_of(const mt_event *event)
{
    return atomic_load_explicit(&event->backend, memory_order_acquire);
}

/* ---- the current device ---- */

mt_device mt_current_device(void)
{
    return MT_NPU + mt__thread.device;
}

mt_status mt_set_current_device(mt_device device)
{
    if (device == MT_CPU) {
        return mtb_fail(MT_EVALUE, "set_device: expected an accelerator, got cpu");
    }
    MT_TRY(mt__device_check("set_device", device));
    mt__thread.device = (uint8_t)mt__device_index(device);
    return MT_OK;
}

/* ---- streams ---- */

/* For the public functions: an error that names what is missing. */
static int check_given(const char *op, const char *what, const void *given)
{
    return MT_LIKELY(given != NULL) ? MT_OK : mtb_fail(MT_EVALUE, "%s: the %s is NULL", op, what);
}

static int check_accelerator(const char *op, mt_device device)
{
    return device == MT_CPU ? mtb_fail(MT_EVALUE, "%s: cpu has no streams", op)
                            : mt__device_check(op, device);
}

static int make_stream(const mt_backend *backend, mt_device device, uint32_t number,
                       int32_t priority, mt_stream **out)
{
    mt_stream *made = mtb_calloc(1, sizeof *made);
    if (made == NULL) {
        return mtb_fail(MT_ENOMEM, "stream: no memory for its record");
    }
    *made = (mt_stream){.device = device, .number = number, .priority = priority};
    if (number != 0) {
        int status = backend->stream_new(backend->context, mt__device_index(device), number,
                                         priority, &made->backend);
        if (status != MT_OK) {
            mtb_free(made);
            return status;
        }
    }
    *out = made;
    return MT_OK;
}

/* Under the lock. */
static int find_or_make(mt_device device, uint32_t number, int32_t priority, mt_stream **out)
{
    _Atomic(mt_stream *) *place = &devices[mt__device_index(device)].at[number];
    *out = atomic_load_explicit(place, memory_order_relaxed);
    if (*out == NULL) {
        MT_TRY(make_stream(mt__backend_of(device), device, number, priority, out));
        atomic_store_explicit(place, *out, memory_order_release); /* partner: mt__stream_numbered */
    }
    return MT_OK;
}

mt_stream *mt__stream_numbered(mt_device device, uint32_t number)
{
    return atomic_load_explicit(&devices[mt__device_index(device)].at[number],
                                memory_order_acquire);
}

mt_status mt_stream_new(mt_device device, int32_t priority, mt_stream **out)
{
    *out = NULL;
    MT_TRY(check_accelerator("stream", device));
    const mt_backend *backend = mt__backend_of(device);
    if (backend->stream_new == NULL) {
        return mtb_fail(MT_ERUNTIME, "stream: backend %s has no streams", backend->name);
    }
    uint32_t high = priority < 0;
    mtb_lock_acquire(&mt__streams_lock);
    uint32_t turn = devices[mt__device_index(device)].handed_out[high]++;
    uint32_t number = 1 + high * MT_STREAMS_OF_PRIORITY + turn % MT_STREAMS_OF_PRIORITY;
    int status = find_or_make(device, number, high ? -1 : 0, out);
    mtb_lock_release(&mt__streams_lock);
    return status;
}

int mt__stream_find(mt_device device, uint32_t number, mt_stream **out)
{
    if (number != 0) {
        *out = mt__stream_numbered(device, number);
        return MT_OK;
    }
    mtb_lock_acquire(&mt__streams_lock);
    int status = find_or_make(device, 0, 0, out);
    mtb_lock_release(&mt__streams_lock);
    return status;
}

mt_status mt_stream_get_default(mt_device device, mt_stream **out)
{
    *out = NULL;
    MT_TRY(check_accelerator("stream", device));
    return mt__stream_find(device, 0, out);
}

mt_status mt_stream_get_current(mt_device device, mt_stream **out)
{
    *out = NULL;
    MT_TRY(check_accelerator("stream", device));
    return mt__stream_find(device, mt__stream_number(device), out);
}

mt_status mt_stream_set_current(mt_stream *stream)
{
    MT_TRY(check_given("set_stream", "stream", stream));
    mt__thread.streams[mt__device_index(stream->device)] = (uint8_t)stream->number;
    return MT_OK;
}

mt_device mt_stream_device(const mt_stream *stream)
{
    return stream->device;
}

uint32_t mt_stream_number(const mt_stream *stream)
{
    return stream->number;
}

int32_t mt_stream_priority(const mt_stream *stream)
{
    return stream->priority;
}

mt_status mt_stream_query(mt_stream *stream, bool *done)
{
    *done = true;
    MT_TRY(check_given("stream_query", "stream", stream));
    const mt_backend *backend = mt__backend_of(stream->device);
    return backend->stream_query == NULL
               ? MT_OK
               : backend->stream_query(backend->context, mt__device_index(stream->device),
                                       stream->backend, done);
}

int mt__stream_wait(const mt_stream *stream)
{
    const mt_backend *backend = mt__backend_of(stream->device);
    uint32_t device = mt__device_index(stream->device);
    return backend->stream_synchronize == NULL
               ? backend->synchronize(backend->context, device)
               : backend->stream_synchronize(backend->context, device, stream->backend);
}

mt_status mt_stream_synchronize(mt_stream *stream)
{
    MT_TRY(check_given("stream_synchronize", "stream", stream));
    mt__trace_token token = mt__trace_runtime_begin(MT_RUNTIME_STREAM_SYNCHRONIZE);
    int status = mt__stream_wait(stream);
    mt__trace_end(token);
    return mt__failure_take(stream->device, status);
}

mt_status mt_stream_wait_event(mt_stream *stream, mt_event *event)
{
    MT_TRY(check_given("wait_event", "stream", stream));
    MT_TRY(check_given("wait_event", "event", event));
    const mt_backend *backend = mt__backend_of(stream->device);
    mt_backend_event *mark = event_of(event);
    if (mark == NULL) {
        return MT_OK; /* never recorded, or done when it was recorded */
    }
    mt__trace_token token = mt__trace_runtime_begin(MT_RUNTIME_STREAM_WAIT_EVENT);
    int status = backend->stream_wait(backend->context, mt__device_index(stream->device),
                                      stream->backend, mark);
    mt__trace_end(token);
    return status;
}

mt_status mt_stream_wait_stream(mt_stream *stream, mt_stream *other)
{
    MT_TRY(check_given("wait_stream", "stream", stream));
    MT_TRY(check_given("wait_stream", "other stream", other));
    if (stream == other) {
        return MT_OK;
    }
    mt_event *event;
    MT_TRY(mt_event_new(0, &event));
    int status = mt_event_record(event, other);
    if (status == MT_OK) {
        status = mt_stream_wait_event(stream, event);
    }
    mt_event_free(event);
    return status;
}

/* ---- events ---- */

mt_status mt_event_new(uint32_t flags, mt_event **out)
{
    *out = mtb_calloc(1, sizeof **out);
    if (*out == NULL) {
        return mtb_fail(MT_ENOMEM, "event: no memory for its record");
    }
    (*out)->flags = flags;
    atomic_init(&(*out)->backend, NULL);
    atomic_init(&(*out)->device, MT_DEVICE_NONE);
    return MT_OK;
}

void mt_event_free(mt_event *event)
{
    mt_backend_event *mark = event != NULL ? event_of(event) : NULL;
    if (mark != NULL) {
        const mt_backend *backend = mt__backend_of(mt_event_device(event));
        backend->event_free(backend->context, mark);
    }
    mtb_free(event);
}

/* The backend's event, created by the first thread that needs it. */
static int made_event(mt_event *event, const mt_backend *backend, uint32_t device,
                      mt_backend_event **out)
{
    *out = event_of(event);
    if (*out != NULL) {
        return MT_OK;
    }
    mt_backend_event *made = NULL;
    MT_TRY(backend->event_new(backend->context, device, event->flags, &made));
    /* Partner: event_of(). */
    if (atomic_compare_exchange_strong_explicit(&event->backend, out, made, memory_order_acq_rel,
                                                memory_order_acquire)) {
        *out = made;
    } else {
        backend->event_free(backend->context, made); /* *out is the event of another thread */
    }
    return MT_OK;
}

mt_status mt_event_record(mt_event *event, mt_stream *stream)
{
    MT_TRY(check_given("event_record", "event", event));
    MT_TRY(check_given("event_record", "stream", stream));
    const mt_backend *backend = mt__backend_of(stream->device);
    uint32_t device = mt__device_index(stream->device);
    mt_device before = MT_DEVICE_NONE;
    /* Relaxed: a thread that needs more than the number reads `backend` first. */
    if (!atomic_compare_exchange_strong_explicit(&event->device, &before, stream->device,
                                                 memory_order_relaxed, memory_order_relaxed) &&
        before != stream->device) {
        return mtb_fail(MT_ERUNTIME,
                        "Event device %s does not match recording stream's device npu:%u",
                        mt_device_name(before), device);
    }
    if (backend->event_new == NULL) {
        return MT_OK; /* without streams, work is done when a call returns */
    }
    mt_backend_event *mark;
    MT_TRY(made_event(event, backend, device, &mark));
    mt__trace_token token = mt__trace_runtime_begin(MT_RUNTIME_EVENT_RECORD);
    int status = backend->event_record(backend->context, device, stream->backend, mark);
    mt__trace_end(token);
    return status;
}

mt_status mt_event_query(mt_event *event, bool *done)
{
    *done = true;
    MT_TRY(check_given("event_query", "event", event));
    mt_backend_event *mark = event_of(event);
    if (mark == NULL) {
        return MT_OK;
    }
    const mt_backend *backend = mt__backend_of(mt_event_device(event));
    return backend->event_query(backend->context, mark, done);
}

mt_status mt_event_synchronize(mt_event *event)
{
    MT_TRY(check_given("event_synchronize", "event", event));
    mt_backend_event *mark = event_of(event);
    if (mark == NULL) {
        return MT_OK;
    }
    const mt_backend *backend = mt__backend_of(mt_event_device(event));
    mt__trace_token token = mt__trace_runtime_begin(MT_RUNTIME_EVENT_SYNCHRONIZE);
    int status = backend->event_synchronize(backend->context, mark);
    mt__trace_end(token);
    return mt__failure_take(mt_event_device(event), status);
}

mt_status mt_event_elapsed_ns(mt_event *from, mt_event *to, double *ns)
{
    *ns = 0.0;
    MT_TRY(check_given("elapsed_time", "first event", from));
    MT_TRY(check_given("elapsed_time", "second event", to));
    if ((from->flags & to->flags & MT_EVENT_TIMING) == 0) {
        return mtb_fail(MT_EVALUE,
                        "Both events must be created with argument 'enable_timing=True'.");
    }
    mt_backend_event *begin = event_of(from);
    mt_backend_event *end = event_of(to);
    if (begin == NULL || end == NULL) {
        return mtb_fail(MT_EVALUE, "Both events must be recorded before calculating elapsed time.");
    }
    mt_device device = mt_event_device(from);
    if (device != mt_event_device(to)) {
        return mtb_fail(MT_EVALUE, "elapsed_time: events of %s and npu:%u", mt_device_name(device),
                        mt__device_index(mt_event_device(to)));
    }
    const mt_backend *backend = mt__backend_of(device);
    return backend->event_elapsed(backend->context, begin, end, ns);
}

mt_device mt_event_device(const mt_event *event)
{
    return atomic_load_explicit(&event->device, memory_order_relaxed);
}
