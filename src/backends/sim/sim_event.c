/* SPDX-License-Identifier: Apache-2.0
 *
 * Events. Each record creates a new recording, which lives as long as anything waits for it:
 * recording the event again, or freeing it, does not affect those who wait for the earlier
 * recording.
 */
#include "backends/sim/sim_impl.h"
#include "base/alloc.h"
#include "base/fail.h"

struct mt_backend_event {
    sim_device *device;
    uint32_t flags;
    sim_recording *recording; /* sim.lock; NULL: never recorded */
};

/* ---- recordings ---- */

static void give_recording(sim_recording *recording)
{
    /* acq_rel: the thread that frees it sees what the others did with it; its partner is itself. */
    if (recording == NULL ||
        atomic_fetch_sub_explicit(&recording->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (atomic_load(&recording->stream->device->state) != SIM_FORKED) { /* S6 */
        (void)pthread_mutex_lock(&sim.lock);
        sim_stream_release(recording->stream);
        (void)pthread_mutex_unlock(&sim.lock);
    }
    mtb_free(recording);
}

/* The event's current recording, with a reference; NULL: none. */
static sim_recording *take_recording(mt_backend_event *event)
{
    (void)pthread_mutex_lock(&sim.lock);
    sim_recording *recording = event->recording;
    if (recording != NULL) {
        atomic_fetch_add_explicit(&recording->refs, 1, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&sim.lock);
    return recording;
}

static bool is_passed(sim_recording *recording)
{
    return atomic_load(&recording->passed); /* S3; partner: sim_pass_mark() */
}

void sim_pass_mark(sim_recording *recording)
{
    recording->time_ns = sim_now_ns();
    atomic_store(&recording->passed, true);
    if (atomic_load(&recording->n_blocked) != 0) {
        (void)pthread_mutex_lock(&sim.lock);
        for (uint32_t i = 0; i < sim.n_devices; i++) {
            for (mt_backend_stream *s = sim.devices[i].streams; s != NULL; s = s->next) {
                if (s->blocked == recording) {
                    (void)pthread_cond_signal(&s->work);
                }
            }
        }
        (void)pthread_mutex_unlock(&sim.lock);
    }
    give_recording(recording);
}

void sim_wait_mark(mt_backend_stream *stream, sim_recording *recording, uint64_t at)
{
    if (!is_passed(recording)) {
        (void)pthread_mutex_lock(&sim.lock);
        stream->blocked = recording;
        stream->blocked_at = at;
        atomic_fetch_add(&recording->n_blocked, 1);
        if (stream->wanted > at) {
            sim_want(recording->stream, recording->target);
        }
        while (!is_passed(recording) && sim_is_usable(stream->device)) {
            (void)pthread_cond_wait(&stream->work, &sim.lock);
        }
        stream->blocked = NULL;
        (void)pthread_mutex_unlock(&sim.lock);
    }
    give_recording(recording);
}

/* ---- events ---- */

int sim_event_new(void *context, uint32_t device, uint32_t flags, mt_backend_event **out)
{
    (void)context;
    sim_device *found;
    *out = NULL;
    MT_TRY(sim_find_device("event_new", device, &found));
    *out = mtb_calloc(1, sizeof **out);
    if (*out == NULL) {
        return sim_fail(MT_ENOMEM, "npu:%u: no memory for an event", device);
    }
    (*out)->device = found;
    (*out)->flags = flags;
    return MT_OK;
}

void sim_event_free(void *context, mt_backend_event *event)
{
    (void)context;
    if (event != NULL) {
        give_recording(event->recording);
        mtb_free(event);
    }
}

static sim_recording *make_recording(mt_backend_stream *stream)
{
    sim_recording *made = mtb_calloc(1, sizeof *made);
    if (made != NULL) {
        atomic_store_explicit(&made->refs, 2, memory_order_relaxed); /* event, command */
        made->stream = stream;
        (void)pthread_mutex_lock(&sim.lock);
        stream->refs++;
        (void)pthread_mutex_unlock(&sim.lock);
    }
    return made;
}

int sim_event_record(void *context, uint32_t device, mt_backend_stream *stream,
                     mt_backend_event *event)
{
    (void)context;
    void *payload;
    sim_command *command;
    if (event == NULL) {
        return sim_fail(MT_EVALUE, "event_record: the event is NULL");
    }
    MT_TRY(sim_find_stream("event_record", device, stream, &stream));
    if (stream->device != event->device) {
        return sim_fail(MT_EVALUE, "event_record: an event of npu:%u on a stream of npu:%u",
                        event->device->index, stream->device->index);
    }
    sim_recording *made = make_recording(stream);
    if (made == NULL) {
        return sim_fail(MT_ENOMEM, "npu:%u: no memory for an event", stream->device->index);
    }
    int status = sim_begin(stream, SIM_MARK, 0, &payload, &command);
    if (status != MT_OK) {
        give_recording(made);
        give_recording(made);
        return status;
    }
    command->of.recording = made;
    (void)sim_commit(stream, command);
    (void)pthread_mutex_lock(&sim.lock);
    sim_recording *before = event->recording;
    event->recording = made;
    (void)pthread_mutex_unlock(&sim.lock);
    give_recording(before);
    return MT_OK;
}

int sim_event_query(void *context, mt_backend_event *event, bool *done)
{
    (void)context;
    *done = false;
    if (event == NULL) {
        return sim_fail(MT_EVALUE, "event_query: the event is NULL");
    }
    MT_TRY(sim_check(event->device));
    sim_recording *recording = take_recording(event);
    *done = recording == NULL || is_passed(recording);
    give_recording(recording);
    return MT_OK;
}

int sim_event_synchronize(void *context, mt_backend_event *event)
{
    (void)context;
    if (event == NULL) {
        return sim_fail(MT_EVALUE, "event_synchronize: the event is NULL");
    }
    MT_TRY(sim_check_process());
    uint32_t losses = atomic_load(&event->device->losses);
    sim_recording *recording = take_recording(event);
    if (recording != NULL) {
        (void)sim_await(recording->stream, recording->target, 0);
        give_recording(recording);
    }
    return sim_report(event->device, losses);
}

int sim_event_elapsed(void *context, mt_backend_event *from, mt_backend_event *to, double *ns)
{
    (void)context;
    *ns = 0.0;
    if (from == NULL || to == NULL || (from->flags & to->flags & MT_EVENT_TIMING) == 0) {
        return sim_fail(MT_EVALUE, "event_elapsed: both events must be made with MT_EVENT_TIMING");
    }
    MT_TRY(sim_check(from->device));
    MT_TRY(sim_check(to->device));
    sim_recording *first = take_recording(from);
    sim_recording *last = take_recording(to);
    int status = MT_OK;
    if (first == NULL || last == NULL) {
        status = sim_fail(MT_EVALUE, "event_elapsed: both events must be recorded");
    } else if (!is_passed(first) || !is_passed(last)) {
        status = sim_fail(MT_ERUNTIME, "event_elapsed: both events must be done");
    } else {
        *ns = (double)(int64_t)(last->time_ns - first->time_ns);
    }
    give_recording(first);
    give_recording(last);
    return status;
}

int sim_stream_wait(void *context, uint32_t device, mt_backend_stream *stream,
                    mt_backend_event *event)
{
    (void)context;
    void *payload;
    sim_command *command;
    if (event == NULL) {
        return sim_fail(MT_EVALUE, "stream_wait: the event is NULL");
    }
    MT_TRY(sim_find_stream("stream_wait", device, stream, &stream));
    sim_recording *recording = take_recording(event);
    if (recording == NULL || recording->stream == stream || is_passed(recording)) {
        give_recording(recording);
        return MT_OK;
    }
    int status = sim_begin(stream, SIM_WAIT, 0, &payload, &command);
    if (status != MT_OK) {
        give_recording(recording);
        return status;
    }
    command->of.recording = recording; /* with its reference */
    (void)sim_commit(stream, command);
    return MT_OK;
}
