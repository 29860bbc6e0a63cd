/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans of queues: device work in order of its start, tied to launches by key, and the annotations
 * that it counts for.
 *
 * Clocks of devices are never exact, so work may seem to start before its launch. It waits then
 * (early_work.h) until the launch is seen.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/model/events/events_records.h"

#include <string.h>

/* ---- tracks ---------------------------------------------------------------------------------- */

/* NULL: no memory. */
static struct mtprof__queue_state *queue_state(mtprof__record_events *r, uint32_t track)
{
    if (track >= r->n_queues) {
        size_t capacity = r->n_queues;
        if (!mtb_grow((void **)&r->queues, &capacity, (size_t)track + 1, sizeof *r->queues)) {
            return NULL;
        }
        for (size_t i = r->n_queues; i < capacity; i++) {
            r->queues[i].end_ns = INT64_MIN;
            r->queues[i].n = 0;
        }
        r->n_queues = capacity;
    }
    return &r->queues[track];
}

/* Work of a queue runs one after the other; where clocks say otherwise it is shown so. */
static int show_work(mtprof__record_events *r, mtprof__event *event)
{
    struct mtprof__queue_state *queue = queue_state(r, event->track);
    if (queue == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for device work");
    }
    event->shown_start_ns = event->start_ns;
    event->shown_end_ns = event->end_ns;
    if (event->start_ns < queue->end_ns) {
        event->shown_start_ns = queue->end_ns;
        event->shown_end_ns = event->end_ns > queue->end_ns ? event->end_ns : queue->end_ns;
        r->head.totals.clamped++;
    }
    queue->end_ns = event->shown_end_ns;
    return MTPROF_OK;
}

/* ---- work ------------------------------------------------------------------------------------ */

static void fill_event(mtprof__record_events *r, const mtprof__work *work,
                       mtprof__payload_store *payload)
{
    mtprof__event *event = &r->event;
    *event = mtprof__event_at(MTPROF__EDGE_SPAN, work->kind, work->start_ns, work->end_ns);
    event->queue = work->queue;
    event->step = mtprof__step_at(&r->steps, work->start_ns);
    event->source_id = work->source_id;
    event->bytes = (int64_t)work->bytes;
    if (work->string == 0 && mtprof__payload_name(payload, &event->name_text)) {
        event->name = MTPROF__NAME_INLINE;
    } else {
        event->name = mtprof__dictionary_string_name(&r->model->dictionary, work->string);
        event->name_text = mtprof_model_name(r->model, event->name);
    }
    event->payload = mtprof__payload_get(payload, &r->model->dictionary, &r->sources[0].inputs);
    if (work->record == MTPROF_REC_COUNTER) {
        event->edge = MTPROF__EDGE_POINT;
        event->kind = MTPROF_EVENT_KIND_COUNTER;
        event->phase = (uint8_t)work->aux;
        event->value = work->value;
    } else if (work->record == MTPROF_REC_INSTANT) {
        event->edge = MTPROF__EDGE_POINT;
        event->kind = MTPROF_EVENT_KIND_INSTANT;
    }
}

/* Ties the current event to its launch. */
static int tie(mtprof__record_events *r, const mtprof__work *work, mtprof__launch *launch)
{
    mtprof__event *event = &r->event;
    event->correlation = launch->correlation;
    event->owner = launch->owner;
    event->launch_ns = launch->shown_ns;
    event->launch_track = launch->track + 1;
    event->step = launch->step; /* whenever it ran */
    event->flags |= MTPROF_EVENT_FLAG_MATCHED;
    if (!mtprof__kind_in(work->kind, MTPROF__KINDS_WORK)) {
        return MTPROF_OK;
    }
    mtprof__queue_span span = {.device = event->device,
                               .track = event->track,
                               .queue = event->queue,
                               .start_ns = event->start_ns,
                               .end_ns = event->end_ns,
                               .shown_start_ns = event->shown_start_ns,
                               .shown_end_ns = event->shown_end_ns};
    MT_TRY(mtprof__annotation_count(&r->launches.annotations, launch->annotation, &span));
    return mtprof__launch_answer(&r->launches, launch);
}

/* The event of a piece of work whose launch is known, or that names none. */
static int show(mtprof__record_events *r, const mtprof__work *work, mtprof__payload_store *payload,
                uint32_t device, uint32_t track)
{
    fill_event(r, work, payload);
    r->event.device = (uint8_t)device;
    r->event.track = track;
    if (r->event.edge == MTPROF__EDGE_SPAN) {
        MT_TRY(show_work(r, &r->event));
        r->head.totals.events++;
    }
    return MTPROF_OK;
}

/* Puts the work of a source aside until its launch is seen. */
static int put_aside(mtprof__record_events *r, mtprof__source_stream *stream, uint32_t device,
                     uint32_t track)
{
    if (!mtprof__early_put(&r->early, &(mtprof__early){.work = stream->work,
                                                       .payload = stream->payload,
                                                       .device = device,
                                                       .track = track})) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for device work");
    }
    memset(&stream->payload, 0, sizeof stream->payload); /* it changed hands */
    return MTPROF_OK;
}

/* Makes a source's next piece ready. */
static int refill(mtprof__record_events *r, size_t i)
{
    int status = mtprof__source_stream_next(&r->sources[i]);
    r->source_ready[i] = status == MTPROF_OK;
    return status == MTPROF_EEND ? MTPROF_OK : status;
}

/* The source whose piece starts first and not after until_ns; r->n_sources: none. */
static size_t first_source(const mtprof__record_events *r, int64_t until_ns)
{
    size_t first = r->n_sources;
    for (size_t i = 0; i < r->n_sources; i++) {
        if (r->source_ready[i] && r->sources[i].work.start_ns <= until_ns &&
            (first == r->n_sources ||
             r->sources[i].work.start_ns < r->sources[first].work.start_ns)) {
            first = i;
        }
    }
    return first;
}

int mtprof__device_work(mtprof__record_events *r, int64_t until_ns, const mtprof__event **event)
{
    if (r->refill < r->n_sources) { /* the piece shown last lives until now */
        size_t i = r->refill;
        r->refill = r->n_sources;
        MT_TRY(refill(r, i));
    }
    for (;;) {
        size_t i = first_source(r, until_ns);
        if (i == r->n_sources) {
            return MTPROF_EEND;
        }
        mtprof__source_stream *stream = &r->sources[i];
        uint32_t device = 0;
        uint32_t track = 0;
        MT_TRY(mtprof__source_stream_place(stream, &device, &track));
        mtprof__launch *launch = mtprof__launch_find(&r->launches, stream->work.key);
        if (launch == NULL && stream->work.key != 0) {
            MT_TRY(put_aside(r, stream, device, track));
            MT_TRY(refill(r, i));
            continue;
        }
        r->refill = i;
        *event = &r->event;
        MT_TRY(show(r, &stream->work, &stream->payload, device, track));
        return launch != NULL ? tie(r, &stream->work, launch) : MTPROF_OK;
    }
}

/* ---- early work ------------------------------------------------------------------------------ */

/* Shows the early piece that has been taken out. */
static int show_early(mtprof__record_events *r, const mtprof__early *e, mtprof__launch *launch)
{
    mtprof__payload_fini(&r->at_hand.payload);
    r->at_hand = *e;
    MT_TRY(show(r, &r->at_hand.work, &r->at_hand.payload, e->device, e->track));
    if (launch != NULL) {
        return tie(r, &e->work, launch);
    }
    r->head.totals.orphans += mtprof__kind_in(e->work.kind, MTPROF__KINDS_WORK);
    return MTPROF_OK;
}

/* One piece at a time: r->launched stays until no early piece has that key. */
int mtprof__device_launched(mtprof__record_events *r, const mtprof__event **event)
{
    mtprof__early e;
    mtprof__launch *launch = mtprof__launch_find(&r->launches, r->launched);
    if (launch != NULL && mtprof__early_take(&r->early, r->launched, &e)) {
        *event = &r->event;
        return show_early(r, &e, launch);
    }
    r->launched = 0;
    return MTPROF_EEND;
}

int mtprof__device_rest(mtprof__record_events *r, const mtprof__event **event)
{
    mtprof__launch launch;
    mtprof__early e;
    if (mtprof__early_take_first(&r->early, &e)) {
        *event = &r->event;
        return show_early(r, &e, NULL);
    }
    while (mtprof__launch_take_any(&r->launches, &launch)) {
        r->head.totals.unmatched += !launch.answered;
        mtprof__annotation_drop(&r->launches.annotations, launch.annotation);
    }
    return mtprof__device_annotations(r, event);
}

/* ---- annotations ----------------------------------------------------------------------------- */

/* Moves a span so that it is inside, around or outside another one; true: it had to be moved. */
static bool fit(int64_t *start, int64_t *end, int64_t other_start, int64_t other_end)
{
    if (*start > other_start && *start<other_end && * end> other_end) {
        *start = other_end;
        return true;
    }
    if (*end > other_start && *end < other_end && *start < other_start) {
        *end = other_start;
        return true;
    }
    return false;
}

/* Annotations of a queue nest or follow each other; one that does neither is shortened. Moving it
 * away from one may bring it across another, but only shortens it further, so this ends. */
static int show_annotation(mtprof__record_events *r, mtprof__event *event)
{
    struct mtprof__queue_state *queue = queue_state(r, event->track);
    if (queue == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for device work");
    }
    size_t known = queue->n < MTPROF__ANNOTATIONS_KEPT ? queue->n : MTPROF__ANNOTATIONS_KEPT;
    bool moved = false;
    for (size_t i = 0; i < known; i++) {
        if (fit(&event->shown_start_ns, &event->shown_end_ns, queue->annotations[i].start_ns,
                queue->annotations[i].end_ns)) {
            moved = true;
            i = SIZE_MAX; /* all of them once more */
        }
    }
    size_t place = queue->n++ % MTPROF__ANNOTATIONS_KEPT;
    queue->annotations[place].start_ns = event->shown_start_ns;
    queue->annotations[place].end_ns = event->shown_end_ns;
    r->head.totals.clamped += moved;
    return MTPROF_OK;
}

int mtprof__device_annotations(mtprof__record_events *r, const mtprof__event **event)
{
    while (r->annotation == NULL || r->annotation_span == r->annotation->n_spans) {
        mtprof__annotation_free(&r->launches.annotations, r->annotation);
        r->annotation = mtprof__annotation_take(&r->launches.annotations);
        r->annotation_span = 0;
        if (r->annotation == NULL) {
            r->head.totals.left_out = r->launches.annotations.left_out;
            return MTPROF_EEND;
        }
    }
    const mtprof__annotation *annotation = r->annotation;
    const mtprof__queue_span *span = &annotation->spans[r->annotation_span++];
    mtprof__event *shown = &r->event;
    *shown = mtprof__event_at(MTPROF__EDGE_SPAN, MTPROF_EVENT_KIND_ANNOTATION, span->start_ns,
                              span->end_ns);
    shown->device = (uint8_t)span->device;
    shown->track = span->track;
    shown->queue = span->queue;
    shown->name = annotation->name;
    shown->name_text = annotation->text;
    shown->step = annotation->step;
    shown->shown_start_ns = span->shown_start_ns;
    shown->shown_end_ns = span->shown_end_ns;
    shown->correlation = shown->owner = annotation->correlation;
    r->head.totals.events++;
    *event = shown;
    return show_annotation(r, shown);
}

void mtprof__device_fini(mtprof__record_events *r)
{
    mtprof__annotation_free(&r->launches.annotations, r->annotation);
    mtprof__launch_table_fini(&r->launches);
    mtprof__early_fini(&r->early);
    mtprof__payload_fini(&r->at_hand.payload);
    for (size_t i = 0; i < r->n_sources; i++) {
        mtprof__source_stream_fini(&r->sources[i]);
    }
    mtb_free(r->sources);
    mtb_free(r->source_ready);
    mtb_free(r->queues);
}
