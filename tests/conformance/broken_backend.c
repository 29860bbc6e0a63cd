/* SPDX-License-Identifier: Apache-2.0
 *
 * A small backend that keeps every promise of backend.h, or all but one: MINDTORCH_NPU_BREAK names
 * the one (broken_rows.def). It proves that the conformance test can fail.
 *
 * Work is queued, and done by the thread that waits for it: late, and the same in every run.
 *
 *     launch ──► queue of the stream ──────────► done by synchronize, query, TO_HOST, flush
 *                  wait: first the other stream, up to the recording
 *                  hold: until it is released, its launches came, or a thread waits
 *
 * One lock around everything. Memory is the host's. With MINDTORCH_NPU_NO_HOLD set it says that it
 * cannot hold streams back, as most backends cannot.
 */
#include "conformance/broken_queue.h"

#include <mindtorch/sim.h>
#include <mindtorch/status.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const size_t limit = (size_t)256 << 20; /* bytes of each device */

static const char *const promise_names[] = {
    "none",
#define X(name, check) #name,
#include "conformance/broken_rows.def"
#undef X
};

static size_t bytes_of_call(const mt_kernel_call *call)
{
    size_t bytes = call->n_tensors * sizeof(mt_array) + call->n_ints * sizeof(int64_t) +
                   call->n_scalars * sizeof(mt_scalar);
    for (uint32_t i = 0; i < call->n_tensors; i++) {
        int32_t n_dims = call->tensors[i].n_dims;
        bytes += n_dims > 0 ? (size_t)n_dims * 2 * sizeof(int64_t) : 0;
    }
    return bytes;
}

static void *append(char **at, const void *from, size_t bytes)
{
    void *place = *at;
    if (bytes > 0) {
        memcpy(place, from, bytes);
    }
    *at += bytes;
    return place;
}

static void keep_call(command *c, const mt_kernel_call *call)
{
    char *at = (char *)(c + 1);
    c->kernel = *call;
    mt_array *tensors = append(&at, call->tensors, call->n_tensors * sizeof(mt_array));
    c->kernel.tensors = tensors;
    c->kernel.ints = append(&at, call->ints, call->n_ints * sizeof(int64_t));
    c->kernel.scalars = append(&at, call->scalars, call->n_scalars * sizeof(mt_scalar));
    for (uint32_t i = 0; i < call->n_tensors && !bq_breaks(PROMISE_keeps_sizes); i++) {
        int32_t n_dims = tensors[i].n_dims;
        size_t bytes = n_dims > 0 ? (size_t)n_dims * sizeof(int64_t) : 0;
        tensors[i].sizes = append(&at, tensors[i].sizes, bytes);
        tensors[i].strides = append(&at, tensors[i].strides, bytes);
    }
}

static int launch(void *context, mt_backend_stream *stream, const mt_kernel_call *call)
{
    command *c;
    (void)context;
    bq_lock();
    int status = bq_check_device(call->device);
    if (status == MT_OK) {
        status = bq_new_command(COMMAND_KERNEL, bytes_of_call(call), &c);
    }
    if (status == MT_OK && call->kernel == MT_KERNEL_EYE && bq_breaks(PROMISE_crashes)) {
        (void)raise(SIGSEGV);
    }
    if (status == MT_OK) {
        keep_call(c, call);
        bq_push(bq_stream_of(call->device, stream), c);
    }
    return bq_unlock(status);
}

static int copy(void *context, mt_backend_stream *stream, const mt_copy_call *call)
{
    command *c;
    bool pinned = (call->flags & MT_COPY_PINNED) != 0;
    (void)context;
    bq_lock();
    int status = bq_check_device(call->device);
    if (status == MT_OK) {
        status = bq_new_command(COMMAND_COPY, 0, &c);
    }
    if (status != MT_OK) {
        return bq_unlock(status);
    }
    mt_backend_stream *queue = bq_stream_of(call->device, stream);
    c->copy = *call;
    if (call->kind == MT_COPY_TO_DEVICE && !pinned && !bq_breaks(PROMISE_not_staged)) {
        c->staged = malloc(call->bytes > 0 ? (size_t)call->bytes : 1);
        if (c->staged == NULL) {
            free(c);
            return bq_unlock(bq.host->fail(MT_ENOMEM, "broken: no memory to stage a copy"));
        }
        memcpy(c->staged, call->from, (size_t)call->bytes);
    }
    if (call->kind == MT_COPY_TO_HOST && queue->first != NULL && bq_breaks(PROMISE_early_host)) {
        bq_free_command(c); /* as if it came too late */
        return bq_unlock(MT_OK);
    }
    bq_push(queue, c);
    if ((call->kind == MT_COPY_TO_HOST && !pinned) || (pinned && bq_breaks(PROMISE_pinned_waits))) {
        (void)bq_run(queue, NULL, true);
        status = bq_report(call->device);
    }
    return bq_unlock(status);
}

static int set(void *context, mt_backend_stream *stream, const mt_set_call *call)
{
    command *c;
    (void)context;
    bq_lock();
    int status = bq_check_device(call->device);
    if (status == MT_OK) {
        status = bq_new_command(COMMAND_SET, 0, &c);
    }
    if (status == MT_OK) {
        c->set = *call;
        bq_push(bq_stream_of(call->device, stream), c);
    }
    return bq_unlock(status);
}

/* ---- memory ---- */

static char arena[4 << 20]; /* where all pieces lie in each other */

static int allocate(void *context, uint32_t device, size_t bytes, void **out)
{
    void *memory = NULL;
    (void)context;
    bq_lock();
    int status = bq_check_device(device);
    if (status != MT_OK) {
        return bq_unlock(status);
    }
    if (bytes > limit - bq.used[device] && bq_breaks(PROMISE_no_message)) {
        return bq_unlock(MT_ENOMEM);
    }
    /* 64 more, so that a broken promise does not break the test. */
    if (bytes > limit - bq.used[device] || posix_memalign(&memory, 64, bytes + 64) != 0) {
        status = bq_breaks(PROMISE_other_refusal) ? MT_ERUNTIME : MT_ENOMEM;
        return bq_unlock(bq.host->fail(status, "broken: the device's memory is used up"));
    }
    bq.used[device] += bytes;
    if (bq_breaks(PROMISE_overlapping)) {
        free(memory);
        memory = arena;
    }
    *out = (char *)memory + (bq_breaks(PROMISE_unaligned) ? 8 : 0);
    return bq_unlock(MT_OK);
}

static void release(void *context, uint32_t device, void *memory, size_t bytes)
{
    (void)context;
    bq_lock();
    bq.used[device] -= bq_breaks(PROMISE_leaking) ? 0 : bytes;
    if (!bq_breaks(PROMISE_overlapping)) {
        free((char *)memory - (bq_breaks(PROMISE_unaligned) ? 8 : 0));
    }
    (void)bq_unlock(MT_OK);
}

static int host_allocate(void *context, size_t bytes, void **out)
{
    (void)context;
    *out = NULL;
    return bytes > limit || posix_memalign(out, 64, bytes + 1) != 0
               ? bq.host->fail(MT_ENOMEM, "broken: no host memory")
               : MT_OK;
}

static void host_release(void *context, void *memory, size_t bytes)
{
    (void)context;
    (void)bytes;
    free(memory);
}

/* ---- devices ---- */

static uint32_t device_count(void *context)
{
    (void)context;
    return DEVICES;
}

static int device_info(void *context, uint32_t device, mt_device_info *info)
{
    (void)context;
    mt_device_info all = {.struct_size = info->struct_size, .name = "broken", .total_bytes = limit};
    size_t bytes = info->struct_size < sizeof all ? info->struct_size : sizeof all;
    bq_lock();
    all.free_bytes = limit - bq.used[device];
    (void)bq_unlock(MT_OK);
    memcpy(info, &all, bq_breaks(PROMISE_info_overrun) ? sizeof all : bytes);
    return MT_OK;
}

static int synchronize(void *context, uint32_t device)
{
    (void)context;
    bq_lock();
    int status = bq_check_device(device);
    if (status == MT_OK) {
        bq_run_device(bq_breaks(PROMISE_any_device) ? 0 : device);
        status = bq_report(device);
    }
    return bq_unlock(status);
}

/* ---- streams ---- */

static int stream_new(void *context, uint32_t device, uint32_t number, int32_t priority,
                      mt_backend_stream **out)
{
    (void)context;
    (void)priority;
    bq_lock();
    int status = bq_check_device(device);
    mt_backend_stream *stream = status == MT_OK ? calloc(1, sizeof *stream) : NULL;
    if (stream != NULL) {
        stream->device = device;
        stream->number = number;
        stream->next = bq.defaults[1].next;
        bq.defaults[1].next = stream;
        *out = stream;
    } else if (status == MT_OK) {
        status = bq.host->fail(MT_ENOMEM, "broken: no memory for a stream");
    }
    return bq_unlock(status);
}

static void stream_free(void *context, mt_backend_stream *stream)
{
    (void)context;
    bq_lock();
    (void)bq_run(stream, NULL, true);
    for (mt_backend_stream *at = bq.streams; at != NULL; at = at->next) {
        if (at->next == stream) {
            at->next = stream->next;
        }
    }
    free(stream);
    (void)bq_unlock(MT_OK);
}

static int stream_query(void *context, uint32_t device, mt_backend_stream *stream, bool *done)
{
    (void)context;
    bq_lock();
    int status = bq_check_device(device);
    if (status == MT_OK) {
        *done = bq_run(bq_stream_of(device, stream), NULL, false) || bq_breaks(PROMISE_always_done);
        status = bq_breaks(PROMISE_query_reports) ? bq_report(device) : MT_OK;
    }
    return bq_unlock(status);
}

static int stream_synchronize(void *context, uint32_t device, mt_backend_stream *stream)
{
    (void)context;
    bq_lock();
    int status = bq_check_device(device);
    if (status == MT_OK) {
        (void)bq_run(bq_stream_of(device, stream), NULL, true);
        status = bq_report(device);
    }
    return bq_unlock(status);
}

static int stream_wait(void *context, uint32_t device, mt_backend_stream *stream,
                       mt_backend_event *event)
{
    command *c;
    (void)context;
    bq_lock();
    int status = bq_check_device(device);
    if (status != MT_OK || event->now == NULL || bq_breaks(PROMISE_no_wait) ||
        (bq_breaks(PROMISE_no_far_wait) && event->now->stream->device != device)) {
        return bq_unlock(status);
    }
    status = bq_new_command(COMMAND_WAIT, 0, &c);
    if (status == MT_OK) {
        c->recording = event->now;
        c->recording->references++;
        bq_push(bq_stream_of(device, stream), c);
    }
    return bq_unlock(status);
}

/* ---- events ---- */

static int event_new(void *context, uint32_t device, uint32_t flags, mt_backend_event **out)
{
    (void)context;
    (void)flags;
    bq_lock();
    int status = bq_check_device(device);
    if (status == MT_OK) {
        *out = calloc(1, sizeof **out);
        status = *out != NULL ? MT_OK : bq.host->fail(MT_ENOMEM, "broken: no memory for an event");
    }
    return bq_unlock(status);
}

static void event_free(void *context, mt_backend_event *event)
{
    (void)context;
    bq_lock();
    if (bq_breaks(PROMISE_freed_stops) && event->now != NULL && !event->now->passed) {
        event->now->stream->stopped = true;
    }
    bq_drop(event->now);
    free(event);
    (void)bq_unlock(MT_OK);
}

/* Breaks a promise: waiters for the old recording wait for the new one. */
static void wait_for_later(const recording *before, recording *later)
{
    for (mt_backend_stream *stream = bq.streams; stream != NULL; stream = stream->next) {
        for (command *c = stream->first; c != NULL; c = c->next) {
            if (c->kind == COMMAND_WAIT && c->recording == before) {
                later->references++;
                bq_drop(c->recording);
                c->recording = later;
            }
        }
    }
}

static int event_record(void *context, uint32_t device, mt_backend_stream *stream,
                        mt_backend_event *event)
{
    command *c;
    (void)context;
    bq_lock();
    int status = bq_check_device(device);
    if (status != MT_OK || (event->now != NULL && bq_breaks(PROMISE_first_record))) {
        return bq_unlock(status);
    }
    recording *next = calloc(1, sizeof *next);
    status = next != NULL ? bq_new_command(COMMAND_RECORD, 0, &c)
                          : bq.host->fail(MT_ENOMEM, "broken: no memory for a recording");
    if (status != MT_OK) {
        free(next);
        return bq_unlock(status);
    }
    next->references = 2; /* the event's and the command's */
    next->stream = bq_stream_of(device, stream);
    c->recording = next;
    if (bq_breaks(PROMISE_late_record)) {
        wait_for_later(event->now, next);
    }
    bq_drop(event->now);
    event->now = next;
    bq_push(next->stream, c);
    return bq_unlock(MT_OK);
}

static int event_query(void *context, mt_backend_event *event, bool *done)
{
    (void)context;
    bq_lock();
    int status = bq_check_device(0);
    if (status == MT_OK && event->now != NULL && !event->now->passed) {
        (void)bq_run(event->now->stream, event->now, false);
    }
    *done = event->now != NULL ? event->now->passed && !bq_breaks(PROMISE_query_stuck)
                               : !bq_breaks(PROMISE_never_done);
    return bq_unlock(status);
}

static int event_synchronize(void *context, mt_backend_event *event)
{
    (void)context;
    bq_lock();
    int status = bq_check_device(0);
    if (status == MT_OK && event->now != NULL && !event->now->passed) {
        uint32_t device = event->now->stream->device;
        (void)bq_run(event->now->stream, event->now, true);
        status = bq_report(device);
    }
    return bq_unlock(status);
}

static int event_elapsed(void *context, mt_backend_event *from, mt_backend_event *to, double *ns)
{
    (void)context;
    bq_lock();
    int status = bq_check_device(0);
    if (status == MT_OK && from->now != NULL && to->now != NULL) {
        *ns = (double)to->now->time - (double)from->now->time;
        *ns = bq_breaks(PROMISE_elapsed_back) ? -*ns : *ns;
    }
    return bq_unlock(status);
}

/* ---- records ---- */

static int activity_start(void *context, const mt_activity_sink *to)
{
    (void)context;
    bq_lock();
    bq.sink = to;
    bq.recording_now = true;
    return bq_unlock(MT_OK);
}

static void activity_stop(void *context)
{
    (void)context;
    bq_lock();
    bq.recording_now = false;
    (void)bq_unlock(MT_OK);
}

/* The waiting thread does the work, so a timeout has no meaning: it is done, or held. */
static int activity_flush(void *context, uint64_t timeout_ns)
{
    bool all = true;
    (void)context;
    (void)timeout_ns;
    bq_lock();
    for (mt_backend_stream *stream = bq.streams; stream != NULL; stream = stream->next) {
        all &= bq_breaks(PROMISE_flush_at_once) || bq_run(stream, NULL, false);
    }
    return bq_unlock(all ? MT_OK : bq.host->fail(MT_ERUNTIME, "broken: a stream is held"));
}

static uint64_t read_clock(void *context)
{
    (void)context;
    return bq_now();
}

/* ---- controls, as sim.h has them ---- */

static mt_backend_stream *find_stream(uint32_t device, uint32_t number)
{
    mt_backend_stream *stream = bq.streams;
    while (stream != NULL && (stream->device != device || stream->number != number)) {
        stream = stream->next;
    }
    return bq_stream_of(device, stream);
}

static int hold(uint32_t device, uint32_t number, uint32_t launches, uint64_t correlation)
{
    command *c;
    (void)correlation;
    bq_lock();
    int status = bq_new_command(COMMAND_HOLD, 0, &c);
    if (status == MT_OK) {
        c->launches = launches;
        bq_push(find_stream(device, number), c);
    }
    return bq_unlock(status);
}

static int release_hold(uint32_t device, uint32_t number)
{
    bq_lock();
    for (command *c = find_stream(device, number)->first; c != NULL; c = c->next) {
        c->released = true;
    }
    return bq_unlock(MT_OK);
}

static int counts(uint32_t device, uint32_t number, mt_sim_counts *out)
{
    bq_lock();
    out->gave_up = find_stream(device, number)->gave_up;
    return bq_unlock(MT_OK);
}

static int lose(uint32_t device, bool is_lost)
{
    bq_lock();
    for (mt_backend_stream *stream = bq.streams; stream != NULL; stream = stream->next) {
        while (is_lost && stream->device == device && stream->first != NULL) {
            command *c = bq_take(stream);
            if (c->kind == COMMAND_RECORD) {
                c->recording->passed = true;
            } else if (c->kind <= COMMAND_SET && !bq_breaks(PROMISE_loses_records)) {
                bq_tell(c, stream, bq_now(), MT_EDEVICE);
            }
            bq_free_command(c);
        }
    }
    bq.lost[device] = is_lost;
    return bq_unlock(MT_OK);
}

static const void *extension(void *context, const char *name)
{
    static const mt_sim controls = {.struct_size = sizeof controls,
                                    .hold = hold,
                                    .release = release_hold,
                                    .counts = counts,
                                    .lose = lose};
    (void)context;
    return strcmp(name, "sim") == 0 && bq.host->setting("NO_HOLD") == NULL ? &controls : NULL;
}

/* ---- opening ---- */

static mt_kernel_fn *kernels[MT_KERNEL_COUNT];

static mt_backend backend = {
    .struct_size = sizeof(mt_backend),
    .version = MT_BACKEND_VERSION,
    .name = "broken",
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
    .n_kernels = MT_KERNEL_COUNT,
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
    .activity_start = activity_start,
    .activity_stop = activity_stop,
    .activity_flush = activity_flush,
    .clock = read_clock,
    .extension = extension,
};

__attribute__((visibility("default"))) mt_backend_open_fn mt_backend_open;

int mt_backend_open(const mt_backend_host *with, const mt_backend **out)
{
    const char *name = with->setting("BREAK");
    bq.host = with;
    bq.owner = getpid();
    bq.opener = pthread_self();
    for (size_t i = 0; i < MT_KERNEL_COUNT; i++) {
        kernels[i] = bq.host->cpu->kernels[i] != NULL ? launch : NULL;
    }
    while (name != NULL && bq.broken < PROMISE_COUNT &&
           strcmp(promise_names[bq.broken], name) != 0) {
        bq.broken++;
    }
    if (bq.broken == PROMISE_COUNT) {
        return bq.host->fail(MT_EVALUE, "broken: MINDTORCH_NPU_BREAK names no promise");
    }
    if (bq_breaks(PROMISE_struct_size)) {
        backend.struct_size = 8;
    } else if (bq_breaks(PROMISE_half_a_group)) {
        backend.event_free = NULL;
    } else if (bq_breaks(PROMISE_kernel_missing)) {
        kernels[MT_KERNEL_RANDPERM] = NULL;
    }
    *out = &backend;
    return MT_OK;
}
