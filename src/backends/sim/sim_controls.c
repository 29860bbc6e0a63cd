/* SPDX-License-Identifier: Apache-2.0
 *
 * Controls for tests, see mindtorch/sim.h.
 */
#include "backends/sim/sim_impl.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/struct_size.h"

#include <stdio.h>
#include <string.h>

/* A stream by its number, with a reference that drop_stream() gives back. */
static int find_numbered(const char *what, uint32_t device, uint32_t number,
                         mt_backend_stream **out)
{
    sim_device *found;
    MT_TRY(sim_find_device(what, device, &found));
    if (number == 0) {
        MT_TRY(sim_find_stream(what, device, NULL, out)); /* creates it if necessary */
    }
    (void)pthread_mutex_lock(&sim.lock);
    mt_backend_stream *stream = found->streams;
    while (stream != NULL && (stream->number != number || stream->closed)) {
        stream = stream->next;
    }
    if (stream != NULL) {
        stream->refs++;
    }
    (void)pthread_mutex_unlock(&sim.lock);
    *out = stream;
    return stream != NULL
               ? MT_OK
               : sim_fail(MT_EVALUE, "%s: npu:%u has no stream %u", what, device, number);
}

static void drop_stream(mt_backend_stream *stream)
{
    (void)pthread_mutex_lock(&sim.lock);
    sim_stream_release(stream);
    (void)pthread_mutex_unlock(&sim.lock);
}

static int hold(uint32_t device, uint32_t number, uint32_t launches, uint64_t correlation)
{
    void *payload;
    sim_command *command;
    mt_backend_stream *stream;
    MT_TRY(find_numbered("hold", device, number, &stream));
    int status = sim_begin(stream, SIM_HOLD, 0, &payload, &command);
    if (status == MT_OK) {
        command->correlation = correlation;
        /* The hold itself counts as a launch. */
        command->of.hold_until =
            atomic_load_explicit(&stream->launched, memory_order_relaxed) + 1 + launches;
        (void)sim_commit(stream, command);
    }
    drop_stream(stream);
    return status;
}

static int release(uint32_t device, uint32_t number)
{
    mt_backend_stream *stream;
    MT_TRY(find_numbered("release", device, number, &stream));
    (void)pthread_mutex_lock(&sim.lock);
    stream->released_to = atomic_load(&stream->tail);
    (void)pthread_cond_signal(&stream->work);
    (void)pthread_mutex_unlock(&sim.lock);
    drop_stream(stream);
    return MT_OK;
}

static int read_counts(uint32_t device, uint32_t number, mt_sim_counts *counts)
{
    mt_backend_stream *stream;
    if (counts == NULL || counts->struct_size < sizeof(uint32_t)) {
        return sim_fail(MT_EVALUE, "counts: struct_size is not set");
    }
    MT_TRY(find_numbered("counts", device, number, &stream));
    (void)pthread_mutex_lock(&stream->push_lock);
    uint64_t finished = atomic_load_explicit(&stream->finished, memory_order_relaxed);
    uint64_t launched = atomic_load_explicit(&stream->launched, memory_order_relaxed);
    mt_sim_counts all = {
        .waiting = (uint32_t)(launched - finished),
        .most = stream->most,
        .gave_up = atomic_load_explicit(&stream->gave_up, memory_order_relaxed),
        .launches = launched - stream->launched_before,
        .done = finished - stream->finished_before,
        .stalled = stream->stalled,
        .holding = atomic_load_explicit(&stream->hold_until, memory_order_relaxed) != UINT64_MAX,
    };
    (void)pthread_mutex_unlock(&stream->push_lock);
    mtb_write_struct(counts, &all);
    drop_stream(stream);
    return MT_OK;
}

static int reset_counts(uint32_t device, uint32_t number)
{
    mt_backend_stream *stream;
    MT_TRY(find_numbered("reset_counts", device, number, &stream));
    (void)pthread_mutex_lock(&stream->push_lock);
    stream->finished_before = atomic_load_explicit(&stream->finished, memory_order_relaxed);
    stream->launched_before = atomic_load_explicit(&stream->launched, memory_order_relaxed);
    stream->most = (uint32_t)(stream->launched_before - stream->finished_before);
    stream->stalled = 0;
    atomic_store_explicit(&stream->gave_up, 0, memory_order_relaxed);
    (void)pthread_mutex_unlock(&stream->push_lock);
    drop_stream(stream);
    return MT_OK;
}

static int fail(uint32_t device, uint32_t after, int status, const char *message)
{
    sim_device *found;
    MT_TRY(sim_find_device("fail", device, &found));
    if (status >= 0 || message == NULL) {
        return sim_fail(MT_EVALUE, "fail: status %d is no failure, or there is no message", status);
    }
    sim_outcome *fault = mtb_calloc(1, sizeof *fault);
    if (fault == NULL) {
        return sim_fail(MT_ENOMEM, "fail: no memory for the order");
    }
    fault->status = status;
    (void)snprintf(fault->message, sizeof fault->message, "%s", message);
    (void)pthread_mutex_lock(&sim.lock);
    sim_outcome *before = found->fault; /* a new fault replaces it */
    found->fault = fault;
    found->fault_after = after;
    atomic_store_explicit(&found->armed, true, memory_order_relaxed);
    (void)pthread_mutex_unlock(&sim.lock);
    mtb_free(before);
    return MT_OK;
}

static int lose(uint32_t device, bool lost)
{
    sim_device *found = &sim.devices[device < sim.n_devices ? device : 0];
    uint32_t state = atomic_load(&found->state);
    if (device >= sim.n_devices || (state != SIM_READY && state != SIM_LOST)) {
        return sim_find_device("lose", device, &found); /* says why */
    }
    (void)pthread_mutex_lock(&sim.lock);
    if (atomic_load(&found->state) == (lost ? SIM_READY : SIM_LOST)) {
        atomic_fetch_add(&found->losses, lost ? 1 : 0);
        atomic_store_explicit(&found->failed, false, memory_order_relaxed);
        atomic_store(&found->state, lost ? SIM_LOST : SIM_READY); /* S3; partner: workers */
        sim_wake_all(found);
    }
    (void)pthread_mutex_unlock(&sim.lock);
    return MT_OK;
}

const mt_sim sim_controls = {
    .struct_size = sizeof(mt_sim),
    .hold = hold,
    .release = release,
    .counts = read_counts,
    .reset_counts = reset_counts,
    .fail = fail,
    .lose = lose,
};
