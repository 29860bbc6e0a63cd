/* SPDX-License-Identifier: Apache-2.0
 *
 * Event streams: opening, and slots merged by time.
 */
#include "mtprof/model/events/events_records.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/format/texts.h"
#include "mtprof/model/prepare.h"
#include "mtprof/model/slot/slot_fast.h"
#include "mtprof/read/reader_impl.h"

#include <string.h>

/* ---- the heap -------------------------------------------------------------------------------- */

static bool comes_first(const mtprof__record_events *r, uint32_t a, uint32_t b)
{
    const mtprof__slot *left = &r->slots[a].slot;
    const mtprof__slot *right = &r->slots[b].slot;
    if (left->order_block != right->order_block) {
        return left->order_block < right->order_block;
    }
    return left->order_ns != right->order_ns ? left->order_ns < right->order_ns : a < b;
}

static void sift(mtprof__record_events *r, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < r->n_heap; child++) {
            least = comes_first(r, r->heap[child], r->heap[least]) ? child : least;
        }
        if (least == at) {
            return;
        }
        uint32_t moved = r->heap[at];
        r->heap[at] = r->heap[least];
        r->heap[least] = moved;
        at = least;
    }
}

/* Fetches the slot on top of the heap, and puts it where it belongs now. */
static int advance_top(mtprof__record_events *r)
{
    int status = mtprof__slot_fetch(&r->slots[r->heap[0]].slot);
    if (status == MTPROF_EEND) {
        r->heap[0] = r->heap[--r->n_heap];
        status = MTPROF_OK;
    }
    if (r->n_heap > 1) {
        sift(r, 0);
    }
    return status;
}

/* ---- the stream ------------------------------------------------------------------------------ */

/* Releases annotations that only places on stacks hold. */
static void release_live(mtprof__record_events *r)
{
    for (size_t i = 0; i < r->n_slots && !r->released; i++) {
        mtprof__slot_context *c = &r->slots[i];
        for (size_t k = 0; k < c->n_live; k++) {
            mtprof__live_release(r, &c->live[k]);
        }
    }
    r->released = true;
}

/* All of the trace has been read. */
static void tell_damage(mtprof__record_events *r)
{
    mtprof__damage damage = mtprof__problems_damage(&r->model->reader->problems);
    for (size_t i = 0; i < r->n_slots; i++) {
        mtprof__damage_merge(&damage, &r->slots[i].slot.counts.damage);
    }
    mtprof__model_note_damage(r->model, &damage);
}

/* What is left when all slots are at their end. */
static int next_rest(mtprof__record_events *r, const mtprof__event **event)
{
    int status = mtprof__device_work(r, INT64_MAX, event);
    if (status != MTPROF_EEND) {
        return status;
    }
    release_live(r);
    status = mtprof__device_rest(r, event);
    if (status == MTPROF_EEND) {
        tell_damage(r);
    }
    return status;
}

/* What goes before the next record of a thread: ends forced by the last one, device work up to its
 * time, annotations that are done. EEND: nothing. */
static int next_before(mtprof__record_events *r, const mtprof__event **event)
{
    int status = MTPROF_EEND;
    if (r->closing != NULL) {
        status = mtprof__host_close(r, event);
    }
    if (status == MTPROF_EEND && r->launched != 0) {
        status = mtprof__device_launched(r, event);
    }
    if (status == MTPROF_EEND && (r->annotation != NULL || r->launches.annotations.done != NULL)) {
        status = mtprof__device_annotations(r, event);
    }
    return status;
}

/* Up to when the slot on top may go on without looking at the others. */
static int64_t limit_of_top(const mtprof__record_events *r)
{
    int64_t limit = INT64_MAX;
    uint32_t block = r->slots[r->heap[0]].slot.block;
    for (size_t i = 1; i <= 2 && i < r->n_heap; i++) {
        const mtprof__slot *slot = &r->slots[r->heap[i]].slot;
        if (slot->order_block < block) {
            return INT64_MIN;
        }
        if (slot->order_block == block && slot->order_ns < limit) {
            limit = slot->order_ns;
        }
    }
    for (size_t i = 0; i < r->n_sources; i++) {
        if (r->refill == i) {
            return INT64_MIN; /* its next piece is not known yet */
        }
        if (r->source_ready[i] && r->sources[i].work.start_ns < limit) {
            limit = r->sources[i].work.start_ns;
        }
    }
    return limit;
}

static size_t plain_edges(mtprof__events *events, mtprof__plain_step *steps, size_t room,
                          uint32_t *track)
{
    mtprof__record_events *r = (mtprof__record_events *)events;
    if (!r->advance || r->n_heap == 0 || r->closing != NULL || r->launched != 0 ||
        r->annotation != NULL || r->launches.annotations.done != NULL) {
        return 0;
    }
    mtprof__slot_context *top = &r->slots[r->heap[0]];
    *track = top->track; /* of the thread in force: an edge of it was seen before */
    if (top->thread != top->slot.thread) {
        return 0;
    }
    return mtprof__host_plain(r, top, limit_of_top(r), steps, room);
}

/* The next edge of the slot on top, if it is a plain step. EEND: it is not. */
MT_INLINE int next_fast(mtprof__record_events *r, const mtprof__event **event)
{
    mtprof__slot_context *top = &r->slots[r->heap[0]];
    int64_t limit = r->n_heap + r->n_sources > 1 ? limit_of_top(r) : INT64_MAX;
    enum mtprof__fast step = mtprof__slot_fast(&top->slot, limit);
    while (r->head.skip_begins && step == MTPROF__FAST_BEGIN) {
        MT_TRY(mtprof__host_begin_shown(r, top));
        step = mtprof__slot_fast(&top->slot, limit);
    }
    if (MT_UNLIKELY(step == MTPROF__FAST_NONE)) {
        return MTPROF_EEND;
    }
    return MT_LIKELY(step == MTPROF__FAST_END)
               ? mtprof__host_end(r, top, event)
               : mtprof__host_edge(r, top, MTPROF__SLOT_BEGIN, event);
}

static int next_edge(mtprof__events *events, const mtprof__event **event)
{
    mtprof__record_events *r = (mtprof__record_events *)events;
    for (;;) {
        if (MT_UNLIKELY(r->closing != NULL || r->launched != 0 || r->annotation != NULL ||
                        r->launches.annotations.done != NULL)) {
            int status = next_before(r, event);
            if (status != MTPROF_EEND) {
                return status;
            }
        }
        if (MT_LIKELY(r->advance && r->n_heap > 0)) {
            int status = next_fast(r, event);
            if (MT_LIKELY(status != MTPROF_EEND)) {
                return status;
            }
        }
        if (MT_LIKELY(r->advance)) {
            r->advance = false;
            MT_TRY(advance_top(r));
        }
        if (MT_UNLIKELY(r->n_heap == 0)) {
            return next_rest(r, event);
        }
        mtprof__slot_context *c = &r->slots[r->heap[0]];
        if (MT_UNLIKELY(r->n_sources > 0)) {
            int status = mtprof__device_work(r, c->slot.order_ns, event);
            if (status != MTPROF_EEND) {
                return status;
            }
        }
        enum mtprof__slot_edge edge;
        r->advance = true;
        int status = mtprof__slot_apply(&c->slot, &edge);
        if (MT_LIKELY(status == MTPROF_OK)) {
            status = mtprof__host_edge(r, c, edge, event);
        }
        if (MT_LIKELY(status != MTPROF_EEND)) {
            return status;
        }
    }
}

static void report_progress(const mtprof__events *events, uint64_t *done, uint64_t *total)
{
    const mtprof__record_events *r = (const mtprof__record_events *)events;
    *done = *total = 0;
    for (size_t i = 0; i < r->n_slots; i++) {
        const mtprof_cursor *cursor = &r->slots[i].slot.cursor;
        const mtprof__read_stream *stream = cursor->stream;
        *total += stream->bytes;
        *done += stream->n_chunks > 0 ? stream->bytes / stream->n_chunks * cursor->next_chunk : 0;
    }
}

static void close_stream(mtprof__events *events)
{
    mtprof__record_events *r = (mtprof__record_events *)events;
    release_live(r);
    for (size_t i = 0; i < r->n_slots; i++) {
        mtprof__slot_context *c = &r->slots[i];
        mtprof__slot_fini(&c->slot);
        mtb_free(c->live);
        mtb_free(c->shown);
    }
    mtprof__device_fini(r);
    mtb_free(r->blocks);
    mtb_free(r->slots);
    mtb_free(r->heap);
    mtb_free(r);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_streams(mtprof__record_events *r)
{
    const mtprof__chunk_index *index = &r->model->reader->index;
    mtprof__coverage coverage = {r->model->epochs, r->model->n_epochs, r->model->strays};
    size_t n = (size_t)index->n_streams + 1;
    r->slots = mtb_calloc(n, sizeof *r->slots);
    r->heap = mtb_calloc(n, sizeof *r->heap);
    r->sources = mtb_calloc(n, sizeof *r->sources);
    r->source_ready = mtb_calloc(n, sizeof *r->source_ready);
    if (r->blocks == NULL || r->slots == NULL || r->heap == NULL || r->sources == NULL ||
        r->source_ready == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for %zu streams", n - 1);
    }
    for (uint32_t i = 0; i < index->n_streams; i++) {
        if (index->streams[i].kind == MTPROF_STREAM_THREAD) {
            mtprof__slot_context *c = &r->slots[r->n_slots++];
            c->thread = UINT64_MAX;
            mtprof__step_clock_init(&c->steps, r->model);
            MT_TRY(mtprof__slot_init(&c->slot, r->model->reader, i, &coverage));
        } else if (index->streams[i].kind == MTPROF_STREAM_SOURCE) {
            mtprof__source_stream *stream = &r->sources[r->n_sources++];
            MT_TRY(mtprof__source_stream_init(stream, r->model, i));
        }
    }
    return MTPROF_OK;
}

/* The first record of every slot, and the first piece of every source. */
static int prime(mtprof__record_events *r)
{
    for (uint32_t i = 0; i < r->n_slots; i++) {
        int status = mtprof__slot_fetch(&r->slots[i].slot);
        if (status == MTPROF_OK) {
            r->heap[r->n_heap++] = i;
        } else if (status != MTPROF_EEND) {
            return status;
        }
    }
    for (size_t i = r->n_heap; i-- > 0;) {
        sift(r, i);
    }
    for (size_t i = 0; i < r->n_sources; i++) {
        int status = mtprof__source_stream_next(&r->sources[i]);
        r->source_ready[i] = status == MTPROF_OK;
        if (status != MTPROF_OK && status != MTPROF_EEND) {
            return status;
        }
    }
    r->refill = r->n_sources;
    return MTPROF_OK;
}

int mtprof__events_open_records(mtprof_model *model, mtprof__events **out)
{
    *out = NULL;
    mtprof__record_events *r = mtb_calloc(1, sizeof *r);
    if (r == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for an event stream");
    }
    r->head.next = next_edge;
    r->head.plain = plain_edges;
    r->head.progress = report_progress;
    r->head.close = close_stream;
    r->model = model;
    r->block = UINT32_MAX;
    r->blocks = mtb_calloc((size_t)model->n_epochs + 1, sizeof *r->blocks);
    r->free_id = mtprof__model_free_id(model);
    mtprof__launch_table_init(&r->launches);
    mtprof__step_clock_init(&r->steps, model);
    for (size_t i = 0; i < MTPROF__MEMORY_DEVICES; i++) {
        r->reserved[i] = -1;
    }
    int status = open_streams(r);
    if (status == MTPROF_OK) {
        status = prime(r);
    }
    if (status != MTPROF_OK) {
        close_stream(&r->head);
        return status;
    }
    *out = &r->head;
    return MTPROF_OK;
}

/* ---- both kinds ------------------------------------------------------------------------------ */

int mtprof__events_open(mtprof_model *model, mtprof__events **out)
{
    return model->reader != NULL ? mtprof__events_open_records(model, out)
                                 : mtprof__events_open_columns(model, out);
}

int mtprof__events_next(mtprof__events *events, const mtprof__event **event)
{
    return events->next(events, event);
}

void mtprof__events_skip_begins(mtprof__events *events)
{
    events->skip_begins = true;
}

void mtprof__events_part_ends(mtprof__events *events)
{
    events->part_ends = true;
}

bool mtprof__model_may_have_tasks(const mtprof_model *model)
{
    if (model->reader == NULL) {
        return true;
    }
    const mtprof__definition_table *strings =
        &model->reader->definitions.tables[MTPROF__DEF_STRING];
    for (size_t i = 0; i < strings->n; i++) {
        mtprof_text text = {strings->items[i].data, strings->items[i].length};
        if (mtprof__text_is(text, MTPROF__TASK_KEY)) {
            return true;
        }
    }
    return false;
}

void mtprof__events_split_tasks(mtprof__events *events)
{
    events->split_tasks = true;
}

const mtprof_metadatum *mtprof__event_find(const mtprof__event *event, const char *key)
{
    const mtprof__payload *payload = event->payload;
    if (payload == NULL || (payload->fields & MTPROF__HAS_METADATA) == 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < payload->n_metadata; i++) {
        if (mtprof__text_is(payload->metadata[i].key, key)) {
            return &payload->metadata[i];
        }
    }
    return NULL;
}

const mtprof_text *mtprof__event_task(const mtprof__event *event)
{
    const mtprof_metadatum *item =
        event->kind == MTPROF_EVENT_KIND_SCOPE ? mtprof__event_find(event, MTPROF__TASK_KEY) : NULL;
    return item != NULL && item->text.length > 0 ? &item->text : NULL;
}

size_t mtprof__events_plain(mtprof__events *events, mtprof__plain_step *steps, size_t room,
                            uint32_t *track)
{
    return events->plain != NULL ? events->plain(events, steps, room, track) : 0;
}

uint64_t mtprof__events_plain_id(const mtprof__events *events)
{
    return events->plain_id;
}

void mtprof__events_progress(const mtprof__events *events, uint64_t *done, uint64_t *total)
{
    events->progress(events, done, total);
}

const mtprof__events_totals *mtprof__events_totals_get(const mtprof__events *events)
{
    return &events->totals;
}

void mtprof__events_close(mtprof__events *events)
{
    if (events != NULL) {
        events->close(events);
    }
}
