/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues of the broken backend, see broken_backend.c: commands stay here until a thread waits
 * for them, which then runs them.
 */
#include "conformance/broken_queue.h"

#include <mindtorch/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bq_state bq = {.defaults = {{.next = &bq.defaults[1]}, {.device = 1}}, .streams = bq.defaults};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t n_reported;

static struct {
    int status;
    char message[496];
    uint32_t reports; /* left to make */
} failure[DEVICES];

/* ---- small things ---- */

bool bq_breaks(promise which)
{
    return bq.broken == which;
}

uint64_t bq_now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

void bq_lock(void)
{
    (void)pthread_mutex_lock(&mutex);
}

int bq_unlock(int status)
{
    (void)pthread_mutex_unlock(&mutex);
    return status;
}

int bq_check_device(uint32_t device)
{
    if (bq.owner != getpid() && !bq_breaks(PROMISE_forked_silent)) {
        return bq.host->fail(bq_breaks(PROMISE_forked_other) ? MT_ERUNTIME : MT_EDEVICE,
                             "broken: a forked process cannot use the device");
    }
    if (bq.lost[device] && !bq_breaks(PROMISE_loses_nothing)) {
        return bq.host->fail(MT_EDEVICE, "broken: the device is lost");
    }
    return MT_OK;
}

mt_backend_stream *bq_stream_of(uint32_t device, mt_backend_stream *stream)
{
    bool one = bq_breaks(PROMISE_one_queue);
    return stream == NULL || one ? &bq.defaults[device % DEVICES] : stream;
}

void bq_drop(recording *which)
{
    if (which != NULL && --which->references == 0) {
        free(which);
    }
}

/* ---- doing the work ---- */

void bq_tell(const command *c, const mt_backend_stream *stream, uint64_t start, int status)
{
    static const char *const names[] = {"kernel", "copy", "set"};
    uint64_t correlation = c->kind == COMMAND_KERNEL ? c->kernel.correlation
                           : c->kind == COMMAND_COPY ? c->copy.correlation
                                                     : c->set.correlation;
    mt_activity activity = {.struct_size = sizeof activity,
                            .kind = (uint32_t)c->kind,
                            .name = bq_breaks(PROMISE_no_name) ? "" : names[c->kind],
                            .start = start,
                            .end = bq_now(),
                            .correlation = correlation,
                            .device = stream->device,
                            .stream = stream->number};
    activity.bytes = c->kind == COMMAND_COPY ? c->copy.bytes : c->set.bytes;
    activity.bytes += bq_breaks(PROMISE_wrong_bytes);
    activity.stream += bq_breaks(PROMISE_wrong_stream);
    activity.kind ^= bq_breaks(PROMISE_wrong_kind);
    if (bq_breaks(PROMISE_other_clock)) {
        activity.start += 3600000000000U;
        activity.end += 3600000000000U;
    } else if (bq_breaks(PROMISE_end_first)) {
        activity.end = activity.start - 1;
    }
    if (!c->reported || (correlation == 0 && !bq_breaks(PROMISE_reports_all)) ||
        (status != MT_OK && bq_breaks(PROMISE_forgets_failed)) ||
        (!bq.recording_now && bq_breaks(PROMISE_stops_at_once))) {
        return;
    }
    n_reported++;
    const mt_activity_sink *to = bq.sink;
    if (to == NULL || (n_reported % 10 == 0 && bq_breaks(PROMISE_drops_records))) {
        return;
    }
    to->push(to->context, &activity);
    if (n_reported % 10 == 0 && bq_breaks(PROMISE_reports_twice)) {
        to->push(to->context, &activity);
    }
}

static void note_failure(uint32_t device, int status)
{
    if (failure[device].reports == 0 && !bq_breaks(PROMISE_fails_never)) {
        failure[device].status = bq_breaks(PROMISE_other_status) ? MT_ERUNTIME : status;
        failure[device].reports = bq_breaks(PROMISE_fails_twice) ? 2 : 1;
        (void)snprintf(failure[device].message, sizeof failure[device].message, "%s",
                       bq.host->last_error()->message);
    }
}

static int run_kernel(command *c, uint32_t device)
{
    bool dead = bq_breaks(PROMISE_fails_stop) && failure[device].reports > 0;
    int64_t *strides = (int64_t *)(uintptr_t)c->kernel.tensors[0].strides;
    if (bq_breaks(PROMISE_no_broadcast) && c->kernel.n_tensors > 1 &&
        c->kernel.tensors[c->kernel.n_tensors - 1].n_dims > 1) {
        strides = (int64_t *)(uintptr_t)c->kernel.tensors[c->kernel.n_tensors - 1].strides;
        strides[0] = strides[0] == 0 ? 1 : strides[0];
    } else if (bq_breaks(PROMISE_contiguous_only) && c->kernel.kernel == MT_KERNEL_COPY) {
        int64_t stride = 1;
        for (int32_t dim = c->kernel.tensors[0].n_dims - 1; dim >= 0; dim--) {
            strides[dim] = stride;
            stride *= c->kernel.tensors[0].sizes[dim];
        }
    }
    int status =
        dead ? MT_OK
             : bq.host->cpu->kernels[c->kernel.kernel](bq.host->cpu->context, NULL, &c->kernel);
    if (status != MT_OK) {
        note_failure(device, status);
    }
    return status;
}

static void run_copy(const command *c)
{
    const mt_copy_call *call = &c->copy;
    const void *from = c->staged != NULL ? c->staged : call->from;
    size_t bytes = (size_t)call->bytes;
    if (bq_breaks(PROMISE_whole_words)) {
        bytes &= ~(size_t)3;
    }
    if (bytes > 0 && !(call->kind == MT_COPY_PEER && bq_breaks(PROMISE_no_peer))) {
        memmove(call->to, from, bytes);
    }
}

static void run_one(command *c, mt_backend_stream *stream)
{
    uint64_t start = bq_now();
    int status = MT_OK;
    switch (c->kind) {
    case COMMAND_KERNEL: status = run_kernel(c, stream->device); break;
    case COMMAND_COPY: run_copy(c); break;
    case COMMAND_SET:
        memset(c->set.to, (int)c->set.value,
               (size_t)c->set.bytes + (bq_breaks(PROMISE_one_more) ? 1 : 0));
        break;
    case COMMAND_RECORD:
        c->recording->passed = true;
        c->recording->time = start;
        break;
    default: break;
    }
    if (c->kind <= COMMAND_SET) {
        bq_tell(c, stream, start, status);
    }
}

command *bq_take(mt_backend_stream *stream)
{
    command *c = stream->first;
    stream->waiting--;
    stream->holds -= c->kind == COMMAND_HOLD;
    stream->first = c->next;
    if (stream->first == NULL) {
        stream->last = NULL;
    } else if (bq_breaks(PROMISE_backwards) && c->kind == COMMAND_KERNEL &&
               stream->first->kind == COMMAND_KERNEL) {
        command *second = stream->first;
        stream->first = c;
        c->next = second->next;
        stream->last = second->next == NULL ? c : stream->last;
        return second;
    }
    return c;
}

void bq_free_command(command *c)
{
    bq_drop(c->recording);
    free(c->staged);
    free(c);
}

bool bq_run(mt_backend_stream *stream, const recording *until, bool gives_up)
{
    while (stream->first != NULL && (until == NULL || !until->passed)) {
        command *c = stream->first;
        if (c->kind == COMMAND_HOLD && !c->released && c->launches > 0) {
            if (!gives_up) {
                return false;
            }
            stream->gave_up++;
        }
        if (c->kind == COMMAND_WAIT && !c->recording->passed &&
            !bq_run(c->recording->stream, c->recording, gives_up)) {
            return false;
        }
        c = bq_take(stream);
        run_one(c, stream);
        bq_free_command(c);
    }
    return true;
}

void bq_run_device(uint32_t device)
{
    for (mt_backend_stream *stream = bq.streams; stream != NULL; stream = stream->next) {
        if ((stream->device == device || bq_breaks(PROMISE_all_devices)) &&
            (stream->number == 0 || !bq_breaks(PROMISE_default_only))) {
            (void)bq_run(stream, NULL, true);
        }
    }
}

int bq_report(uint32_t device)
{
    device = bq_breaks(PROMISE_any_device) ? 0 : device;
    if (failure[device].reports == 0) {
        return MT_OK;
    }
    failure[device].reports--;
    return bq.host->fail(failure[device].status, failure[device].message);
}

/* ---- queueing ---- */

void bq_push(mt_backend_stream *stream, command *c)
{
    for (command *other = stream->first; stream->holds > 0 && other != NULL; other = other->next) {
        other->launches -= other->kind == COMMAND_HOLD && other->launches > 0;
    }
    c->reported = bq.recording_now;
    c->next = NULL;
    if ((bq_breaks(PROMISE_main_thread) && !pthread_equal(pthread_self(), bq.opener)) ||
        bq.owner != getpid() || stream->stopped ||
        (bq_breaks(PROMISE_small_queue) && stream->waiting >= 4096)) {
        bq_free_command(c);
        return;
    }
    if (stream->last != NULL) {
        stream->last->next = c;
    } else {
        stream->first = c;
    }
    stream->last = c;
    stream->waiting++;
    stream->holds += c->kind == COMMAND_HOLD;
    if (bq_breaks(PROMISE_launch_waits) && c->kind == COMMAND_KERNEL) {
        (void)bq_run(stream, NULL, true);
    }
}

int bq_new_command(command_kind kind, size_t more, command **out)
{
    *out = calloc(1, sizeof **out + more);
    if (*out == NULL) {
        return bq.host->fail(MT_ENOMEM, "broken: no memory for a command");
    }
    (*out)->kind = kind;
    return MT_OK;
}
