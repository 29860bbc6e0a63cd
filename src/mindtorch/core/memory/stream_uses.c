/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses of memory by streams, see stream_uses.h.
 */
#include "mindtorch/core/memory/stream_uses.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "mindtorch/core/device/device_failure.h"
#include "mindtorch/core/device/streams.h"
#include "mindtorch/trace/device_trace.h"

#include <mindtorch/status.h>

#include <string.h>

static mt__use *find(mt__uses *uses, const mt_stream *stream)
{
    for (uint32_t i = 0; uses != NULL && i < uses->count; i++) {
        if (uses->at[i].stream == stream) {
            return &uses->at[i];
        }
    }
    return NULL;
}

int mt__uses_add(mt__uses **uses, mt_stream *stream)
{
    if (find(*uses, stream) != NULL) {
        return MT_OK;
    }
    uint32_t count = *uses != NULL ? (*uses)->count : 0;
    if (*uses == NULL || count == (*uses)->capacity) {
        uint32_t capacity = count == 0 ? 2 : count * 2;
        mt__uses *grown = mtb_calloc(1, sizeof *grown + capacity * sizeof(mt__use));
        if (grown == NULL) {
            return mtb_fail(MT_ENOMEM, "record_stream: no memory for %u streams", capacity);
        }
        if (count != 0) {
            memcpy(grown, *uses, sizeof *grown + count * sizeof(mt__use));
        }
        grown->capacity = capacity;
        mtb_free(*uses);
        *uses = grown;
    }
    (*uses)->at[(*uses)->count++] = (mt__use){.stream = stream};
    return MT_OK;
}

static void drop_event(mt__use *use)
{
    if (use->event != NULL) {
        const mt_backend *backend = mt__backend_of(use->stream->device);
        backend->event_free(backend->context, use->event);
        use->event = NULL;
    }
}

static void wait_for(const mt_stream *stream)
{
    mt__failure_keep(stream->device, mt__stream_wait(stream));
}

static void mark(mt__use *use)
{
    const mt_stream *stream = use->stream;
    const mt_backend *backend = mt__backend_of(stream->device);
    uint32_t device = mt__device_index(stream->device);
    int status = MT_ENOTSUP;
    if (backend->event_new != NULL) {
        status = use->event != NULL ? MT_OK
                                    : backend->event_new(backend->context, device, 0, &use->event);
        if (status == MT_OK) {
            status = backend->event_record(backend->context, device, stream->backend, use->event);
        } else {
            use->event = NULL;
        }
    }
    if (status != MT_OK) { /* SU1 */
        wait_for(stream);
        drop_event(use);
    }
}

void mt__uses_note(mt__uses **uses, mt_stream *stream)
{
    if (mt__uses_add(uses, stream) == MT_OK) {
        mark(find(*uses, stream));
    } else {
        wait_for(stream);
    }
}

void mt__uses_mark_all(mt__uses *uses, mt_device device, uint32_t number)
{
    for (uint32_t i = 0; i < uses->count; i++) {
        const mt_stream *stream = uses->at[i].stream;
        if (stream->device != device || stream->number != number) {
            mt__trace_token token = mt__trace_runtime_begin(MT_RUNTIME_EVENT_RECORD);
            mark(&uses->at[i]);
            mt__trace_end(token);
        }
    }
}

bool mt__uses_done(mt__uses *uses)
{
    bool all = true;
    for (uint32_t i = 0; uses != NULL && i < uses->count; i++) {
        mt__use *use = &uses->at[i];
        if (use->event == NULL) {
            continue;
        }
        const mt_backend *backend = mt__backend_of(use->stream->device);
        bool done = false;
        if (backend->event_query(backend->context, use->event, &done) == MT_OK && done) {
            drop_event(use);
        } else {
            all = false;
        }
    }
    return all;
}

void mt__uses_wait(mt__uses *uses)
{
    for (uint32_t i = 0; uses != NULL && i < uses->count; i++) {
        mt__use *use = &uses->at[i];
        if (use->event != NULL) {
            const mt_backend *backend = mt__backend_of(use->stream->device);
            mt__failure_keep(use->stream->device,
                             backend->event_synchronize(backend->context, use->event));
            drop_event(use);
        }
    }
}

void mt__uses_free(mt__uses *uses)
{
    for (uint32_t i = 0; uses != NULL && i < uses->count; i++) {
        drop_event(&uses->at[i]);
    }
    mtb_free(uses);
}
