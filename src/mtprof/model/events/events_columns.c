/* SPDX-License-Identifier: Apache-2.0
 *
 * The event stream of a foreign model: its columns in order of start, with an end put between them
 * where one is due, and its points.
 *
 *   columns  A ──────────── B ─────────────── C        (by start)
 *   ends            (heap of open events)  B)   A)
 *   points              p            q
 *   stream   A(  p  B(  q  B)  C(  C)  A)
 *
 *   EC1  An end comes before a beginning at the same time, a point before an end and after a
 *        beginning: an allocation at the last moment of an op is inside it.
 *   EC2  On a thread the open events are a stack; what would outlive the one below ends with it
 *        (event.h EVT1). So ends come off the heap in the order of the stack: of equal ends the
 *        latest beginning first.
 *   EC3  Functions of a language give way to everything else: one that is left by a scope that
 *        began in it (record_function's __enter__) ends where that begins, so the scope keeps its
 *        length.
 *
 * Memory: the open events, and a table of runtime calls where there is device work.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "mtprof/format/texts.h"
#include "mtprof/model/events/events_impl.h"
#include "mtprof/model/model_impl.h"

#include <string.h>

/* An event that has begun. */
typedef struct open_event {
    int64_t shown_end_ns;
    uint64_t order; /* of beginning */
    uint32_t event;
    uint32_t below; /* the one below it, plus 1: its place in `opens` */
    uint32_t place; /* in the heap */
} open_event;

typedef struct column_events {
    mtprof__events head;
    mtprof_model *model;
    const mtprof__columns *columns;
    const uint64_t *ids;   /* CORRELATION, or NULL */
    const uint32_t *links; /* LINK, or NULL */
    uint32_t next;         /* in the columns */
    uint32_t annotation;   /* likewise, once all else is done */
    size_t point;
    uint64_t begun;

    open_event *opens; /* slots; `free_slot` and `below` chain those that are free */
    size_t n_opens, opens_capacity;
    uint32_t free_slot; /* + 1 */
    uint32_t *heap;     /* slots, the earliest end first */
    size_t n_heap, heap_capacity;
    uint32_t *tops;      /* by track: slot + 1 of the innermost open event */
    int64_t *queue_ends; /* by track: where the latest span of a queue ends */
    mtb_idmap calls;     /* runtime calls by correlation: event + 1 */

    mtprof__event event;
    mtprof__payload payload;
} column_events;

/* ---- open events ----------------------------------------------------------------------------- */

static bool ends_before(const column_events *c, uint32_t a, uint32_t b)
{
    const open_event *left = &c->opens[a];
    const open_event *right = &c->opens[b];
    return left->shown_end_ns != right->shown_end_ns ? left->shown_end_ns < right->shown_end_ns
                                                     : left->order > right->order;
}

static void heap_put(column_events *c, size_t at, uint32_t slot)
{
    c->heap[at] = slot;
    c->opens[slot].place = (uint32_t)at;
}

/* Puts a slot where it belongs between `at`, which is free, and the top. */
static void heap_rise(column_events *c, size_t at, uint32_t slot)
{
    for (; at > 0 && ends_before(c, slot, c->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        heap_put(c, at, c->heap[(at - 1) / 2]);
    }
    heap_put(c, at, slot);
}

static void heap_add(column_events *c, uint32_t slot)
{
    heap_rise(c, c->n_heap++, slot);
}

static uint32_t heap_take(column_events *c)
{
    uint32_t first = c->heap[0];
    uint32_t last = c->heap[--c->n_heap];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= c->n_heap) {
            break;
        }
        if (child + 1 < c->n_heap && ends_before(c, c->heap[child + 1], c->heap[child])) {
            child++;
        }
        if (!ends_before(c, c->heap[child], last)) {
            break;
        }
        heap_put(c, at, c->heap[child]);
        at = child;
    }
    heap_put(c, at, last);
    return first;
}

static int take_slot(column_events *c, uint32_t *slot)
{
    if (!mtb_grow((void **)&c->heap, &c->heap_capacity, c->n_heap + 1, sizeof *c->heap)) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for an event stream");
    }
    if (c->free_slot != 0) {
        *slot = c->free_slot - 1;
        c->free_slot = c->opens[*slot].below;
        return MTPROF_OK;
    }
    if (!mtb_grow((void **)&c->opens, &c->opens_capacity, c->n_opens + 1, sizeof *c->opens)) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for an event stream");
    }
    *slot = (uint32_t)c->n_opens++;
    return MTPROF_OK;
}

static void give_slot(column_events *c, uint32_t slot)
{
    c->opens[slot].below = c->free_slot;
    c->free_slot = slot + 1;
}

/* ---- payloads -------------------------------------------------------------------------------- */

static uint32_t u32_at(const column_events *c, uint32_t column, uint32_t i)
{
    const uint32_t *values = c->columns->extra[column];
    return values != NULL ? values[i] : 0;
}

static int64_t i64_at(const column_events *c, uint32_t column, uint32_t i, int64_t none)
{
    const int64_t *values = c->columns->extra[column];
    return values != NULL ? values[i] : none;
}

static void add_metadata(column_events *c, uint32_t list)
{
    const mtprof__dictionary *dictionary = &c->model->dictionary;
    mtprof_metadatum first;
    if (list != 0 && mtprof_model_event_metadata(c->model, list, 0, &first)) {
        /* The items follow the head of their list, which has their number. */
        c->payload.fields |= MTPROF__HAS_METADATA;
        c->payload.metadata = &dictionary->metadata[list];
        c->payload.n_metadata = (uint32_t)dictionary->metadata[list - 1].value;
    }
}

static void add_inputs(column_events *c, uint32_t i)
{
    mtprof__payload *payload = &c->payload;
    uint32_t inputs = u32_at(c, MTPROF_COLUMN_INPUTS, i);
    if (inputs != 0 &&
        mtprof_model_inputs(c->model, inputs, &payload->input_words, &payload->n_input_words)) {
        payload->fields |= MTPROF__HAS_INPUTS;
        payload->inputs = inputs;
    }
    uint32_t scalars = u32_at(c, MTPROF_COLUMN_SCALARS, i);
    if (scalars != 0 &&
        mtprof_model_scalars(c->model, scalars, &payload->scalars, &payload->n_scalars)) {
        payload->fields |= MTPROF__HAS_SCALARS;
    }
}

static void add_texts(column_events *c, uint32_t i)
{
    mtprof__payload *payload = &c->payload;
    uint32_t name = u32_at(c, MTPROF_COLUMN_OVERLOAD, i);
    if (name != 0) {
        payload->overload = mtprof_model_name(c->model, name - 1);
        payload->fields |= MTPROF__HAS_OVERLOAD;
    }
    name = u32_at(c, MTPROF_COLUMN_MODULE, i);
    if (name != 0) {
        payload->module = mtprof_model_name(c->model, name - 1);
        payload->fields |= MTPROF__HAS_MODULE;
    }
}

static void add_memory(column_events *c, uint32_t i)
{
    mtprof__payload *payload = &c->payload;
    const uint8_t *devices = c->columns->extra[MTPROF_COLUMN_MEMORY_DEVICE];
    payload->memory_before = i64_at(c, MTPROF_COLUMN_MEMORY_BEFORE, i, -1);
    payload->memory_after = i64_at(c, MTPROF_COLUMN_MEMORY_AFTER, i, -1);
    payload->memory_device = devices != NULL ? devices[i] : 0;
    payload->fields |= payload->memory_before >= 0 ? MTPROF__HAS_MEMORY_BEFORE : 0;
    payload->fields |= payload->memory_after >= 0 ? MTPROF__HAS_MEMORY_AFTER : 0;
}

/* What the columns know of an event beyond its place; NULL: nothing. */
static const mtprof__payload *find_payload(column_events *c, uint32_t i)
{
    mtprof__payload *payload = &c->payload;
    memset(payload, 0, sizeof *payload);
    add_inputs(c, i);
    add_texts(c, i);
    add_memory(c, i);
    add_metadata(c, u32_at(c, MTPROF_COLUMN_METADATA, i));
    payload->stack = u32_at(c, MTPROF_COLUMN_STACK, i);
    payload->fields |= payload->stack != 0 ? MTPROF__HAS_STACK : 0;
    payload->sequence = i64_at(c, MTPROF_COLUMN_SEQUENCE, i, -1);
    payload->fields |= payload->sequence >= 0 ? MTPROF__HAS_SEQUENCE : 0;
    payload->forward_thread = u32_at(c, MTPROF_COLUMN_FORWARD_THREAD, i);
    payload->fields |= payload->forward_thread != 0 ? MTPROF__HAS_FORWARD_THREAD : 0;
    payload->record_scope = u32_at(c, MTPROF_COLUMN_RECORD_SCOPE, i);
    payload->fields |= payload->record_scope != 0 ? MTPROF__HAS_RECORD_SCOPE : 0;
    payload->flops = (uint64_t)i64_at(c, MTPROF_COLUMN_FLOPS, i, 0);
    payload->fields |= payload->flops != 0 ? MTPROF__HAS_FLOPS : 0;
    return payload->fields != 0 ? payload : NULL;
}

/* ---- edges ----------------------------------------------------------------------------------- */

static uint64_t id_of(const column_events *c, uint32_t i)
{
    return c->ids != NULL && i < c->columns->n ? c->ids[i] : 0;
}

static void fill_event(column_events *c, uint32_t i, uint8_t edge)
{
    const mtprof__columns *columns = c->columns;
    mtprof__event *event = &c->event;
    uint32_t link = c->links != NULL ? c->links[i] : MTPROF_NO_EVENT;
    bool belongs = columns->device[i] != 0 || columns->kind[i] == MTPROF_EVENT_KIND_RUNTIME;
    *event = (mtprof__event){
        .edge = edge,
        .kind = columns->kind[i],
        .device = columns->device[i],
        .flags = columns->flags[i],
        .track = columns->track[i],
        .name = columns->name[i],
        .step = columns->step[i],
        .name_text = mtprof_model_name(c->model, columns->name[i]),
        .start_ns = columns->start_ns[i],
        .end_ns = columns->end_ns[i],
        .shown_start_ns = columns->start_ns[i],
        .shown_end_ns = columns->end_ns[i],
        .self_ns = columns->self_ns[i],
        .index = columns->index[i] != MTPROF_NO_EVENT ? columns->index[i] : UINT64_MAX,
        .correlation = id_of(c, i),
        .owner = belongs ? id_of(c, link) : id_of(c, i),
        .parent = id_of(c, columns->parent[i]),
        .bytes = i64_at(c, MTPROF_COLUMN_BYTES, i, 0),
        .reserved_bytes = -1,
        .payload = find_payload(c, i),
    };
}

/* Whether it is shown complete, at its end: what is asynchronous, and scopes of tasks. */
static bool is_apart(const column_events *c, uint32_t i)
{
    mtprof_metadatum item;
    if ((c->columns->flags[i] & MTPROF_EVENT_FLAG_ASYNC) != 0) {
        return true;
    }
    uint32_t list = c->head.split_tasks && c->columns->kind[i] == MTPROF_EVENT_KIND_SCOPE
                        ? u32_at(c, MTPROF_COLUMN_METADATA, i)
                        : 0;
    for (uint32_t k = 0; list != 0 && mtprof_model_event_metadata(c->model, list, k, &item); k++) {
        if (mtprof__text_is(item.key, MTPROF__TASK_KEY) && item.text.length > 0) {
            return true;
        }
    }
    return false;
}

static void begin_event(column_events *c, uint32_t i, uint32_t slot)
{
    const mtprof__columns *columns = c->columns;
    uint32_t *top = &c->tops[columns->track[i]];
    bool async = is_apart(c, i);
    open_event *open = &c->opens[slot];
    *open = (open_event){columns->end_ns[i], c->begun++, i, async ? 0 : *top, 0};
    if (!async) {
        if (*top != 0 && c->opens[*top - 1].shown_end_ns < open->shown_end_ns) {
            open->shown_end_ns = c->opens[*top - 1].shown_end_ns;
            c->head.totals.clamped++;
        }
        *top = slot + 1;
    }
    heap_add(c, slot);
    c->head.totals.events++;
    c->head.totals.truncated += (columns->flags[i] & MTPROF_EVENT_FLAG_TRUNCATED) != 0;
}

static bool is_function(const column_events *c, uint32_t slot)
{
    return c->columns->kind[c->opens[slot].event] == MTPROF_EVENT_KIND_FUNCTION;
}

/* EC3: ends the functions that an event would outlive, now that it begins. Whether there are some:
 * their ends come first. */
static bool make_way(column_events *c, uint32_t i)
{
    const mtprof__columns *columns = c->columns;
    if (columns->device[i] != 0 || is_apart(c, i) ||
        columns->kind[i] == MTPROF_EVENT_KIND_FUNCTION ||
        columns->kind[i] == MTPROF_EVENT_KIND_OVERHEAD) {
        return false;
    }
    uint32_t slot = c->tops[columns->track[i]];
    uint32_t other = slot; /* the innermost that stays */
    int64_t end = columns->end_ns[i];
    while (other != 0 && is_function(c, other - 1) && c->opens[other - 1].shown_end_ns < end) {
        other = c->opens[other - 1].below;
    }
    if (other != 0 && c->opens[other - 1].shown_end_ns < end) {
        end = c->opens[other - 1].shown_end_ns; /* EC2: the event ends with it */
    }
    bool any = false;
    for (; slot != other && c->opens[slot - 1].shown_end_ns < end;
         slot = c->opens[slot - 1].below) {
        open_event *open = &c->opens[slot - 1];
        c->head.totals.clamped += open->shown_end_ns == columns->end_ns[open->event];
        open->shown_end_ns = columns->start_ns[i];
        heap_rise(c, open->place, slot - 1);
        any = true;
    }
    return any;
}

/* BEGIN, or nothing yet for what is shown when it ends. */
static int host_edge(column_events *c, uint32_t i, bool *shown)
{
    uint32_t slot = 0;
    MT_TRY(take_slot(c, &slot));
    begin_event(c, i, slot);
    *shown = !is_apart(c, i);
    if (*shown) {
        fill_event(c, i, MTPROF__EDGE_BEGIN);
        c->event.order = c->opens[slot].order;
        c->event.shown_end_ns = c->opens[slot].shown_end_ns;
    }
    return MTPROF_OK;
}

static void end_edge(column_events *c)
{
    uint32_t slot = heap_take(c);
    open_event open = c->opens[slot];
    bool async = is_apart(c, open.event);
    if (!async) {
        MT_ASSERT(c->tops[c->columns->track[open.event]] == slot + 1); /* EC2 */
        c->tops[c->columns->track[open.event]] = open.below;
    }
    give_slot(c, slot);
    fill_event(c, open.event, async ? MTPROF__EDGE_SPAN : MTPROF__EDGE_END);
    c->event.order = open.order;
    c->event.tied = !async && open.below != 0 &&
                    c->columns->start_ns[c->opens[open.below - 1].event] == c->event.shown_start_ns;
    c->event.shown_end_ns = open.shown_end_ns;
}

static bool same_call(const void *context, uint32_t id, const void *key)
{
    const column_events *c = context;
    return c->ids[id - 1] == *(const uint64_t *)key;
}

/* What launched a piece of work: the runtime call of its id, or the op that has it itself. */
static void find_launch(column_events *c, uint32_t i)
{
    uint64_t id = id_of(c, i);
    if (id == 0) {
        return;
    }
    uint32_t found = mtb_idmap_find(&c->calls, mtb_mix(id, 0), same_call, c, &id);
    if (found == 0 && c->links != NULL && id_of(c, c->links[i]) == id) {
        found = c->links[i] + 1;
    }
    if (found != 0) {
        c->event.launch_ns = c->columns->start_ns[found - 1];
        c->event.launch_track = c->columns->track[found - 1] + 1;
    }
}

/* Device work: one span after the other on its queue. */
static void device_edge(column_events *c, uint32_t i)
{
    int64_t *last = &c->queue_ends[c->columns->track[i]];
    mtprof__event *event = &c->event;
    mtprof_track queue = {0};
    fill_event(c, i, MTPROF__EDGE_SPAN);
    mtprof_model_track(c->model, event->track, &queue);
    event->queue = queue.number;
    event->source_id = event->correlation;
    if (event->kind != MTPROF_EVENT_KIND_ANNOTATION && event->start_ns < *last) {
        event->shown_start_ns = *last;
        event->shown_end_ns = event->end_ns > *last ? event->end_ns : *last;
        c->head.totals.clamped++;
    }
    if (event->kind != MTPROF_EVENT_KIND_ANNOTATION) {
        *last = event->shown_end_ns;
        find_launch(c, i);
        c->head.totals.orphans += c->links == NULL || c->links[i] == MTPROF_NO_EVENT;
    }
    c->head.totals.events++;
}

/* Overheads are shown whole, inside what is around them. */
static void overhead_edge(column_events *c, uint32_t i)
{
    uint32_t top = c->tops[c->columns->track[i]];
    fill_event(c, i, MTPROF__EDGE_SPAN);
    if (top != 0 && c->opens[top - 1].shown_end_ns < c->event.shown_end_ns) {
        c->event.shown_end_ns = c->opens[top - 1].shown_end_ns;
        c->head.totals.clamped++;
    }
    c->head.totals.events++;
}

static void point_edge(column_events *c)
{
    mtprof__event *event = &c->event;
    *event = c->model->points[c->point++];
    if (event->kind == MTPROF_EVENT_KIND_ALLOC && event->owner != 0) {
        event->owner = id_of(c, (uint32_t)(event->owner - 1));
    }
    if (event->kind == MTPROF_EVENT_KIND_INSTANT) {
        memset(&c->payload, 0, sizeof c->payload);
        add_metadata(c, (uint32_t)event->value);
        event->value = 0;
        event->payload = c->payload.fields != 0 ? &c->payload : NULL;
    }
}

/* ---- the stream ------------------------------------------------------------------------------ */

/* Events that come as points, or at the end. */
static bool is_later(const column_events *c, uint32_t i)
{
    uint8_t kind = c->columns->kind[i];
    return kind == MTPROF_EVENT_KIND_MEMORY || kind == MTPROF_EVENT_KIND_OUT_OF_MEMORY ||
           kind == MTPROF_EVENT_KIND_ANNOTATION;
}

/* The next event of the columns. Nothing is shown where ends have come to be due before it, or
 * where it is shown when it ends. */
static int column_edge(column_events *c, bool *shown)
{
    uint32_t i = c->next;
    *shown = !make_way(c, i);
    if (!*shown) {
        return MTPROF_OK;
    }
    c->next++;
    if (c->columns->device[i] != 0) {
        device_edge(c, i);
        return MTPROF_OK;
    }
    if (c->columns->kind[i] == MTPROF_EVENT_KIND_OVERHEAD) {
        overhead_edge(c, i);
        return MTPROF_OK;
    }
    return host_edge(c, i, shown);
}

static bool next_annotation(column_events *c)
{
    for (; c->annotation < c->columns->n; c->annotation++) {
        if (c->columns->kind[c->annotation] == MTPROF_EVENT_KIND_ANNOTATION) {
            device_edge(c, c->annotation++);
            return true;
        }
    }
    return false;
}

static int next_edge(mtprof__events *events, const mtprof__event **event)
{
    column_events *c = (column_events *)events;
    const mtprof__columns *columns = c->columns;
    bool shown = false;
    *event = NULL;
    while (!shown) {
        while (c->next < columns->n && is_later(c, c->next)) {
            c->next++;
        }
        bool more = c->next < columns->n;
        bool pointed = c->point < c->model->n_points;
        int64_t start = more ? columns->start_ns[c->next] : INT64_MAX;
        int64_t end = c->n_heap > 0 ? c->opens[c->heap[0]].shown_end_ns : INT64_MAX;
        int64_t at = pointed ? c->model->points[c->point].start_ns : INT64_MAX;
        if (pointed && (!more || at < start) && (c->n_heap == 0 || at <= end)) {
            point_edge(c);
            shown = true;
        } else if (c->n_heap > 0 && (!more || end <= start)) {
            end_edge(c);
            shown = true;
        } else if (more) {
            MT_TRY(column_edge(c, &shown));
        } else if (next_annotation(c)) {
            shown = true;
        } else {
            return MTPROF_EEND;
        }
    }
    *event = &c->event;
    return MTPROF_OK;
}

static void report_progress(const mtprof__events *events, uint64_t *done, uint64_t *total)
{
    const column_events *c = (const column_events *)events;
    *done = (uint64_t)c->next + c->point;
    *total = (uint64_t)c->columns->n + c->model->n_points;
}

static void close_stream(mtprof__events *events)
{
    column_events *c = (column_events *)events;
    mtb_free(c->opens);
    mtb_free(c->heap);
    mtb_free(c->tops);
    mtb_free(c->queue_ends);
    mtb_idmap_reset(&c->calls);
    mtb_free(c);
}

/* Runtime calls by id, where something may ask for them. Of equal ids the first counts. */
static int list_calls(column_events *c)
{
    const mtprof__columns *columns = c->columns;
    bool asked = c->model->dictionary.n_devices > 1;
    for (uint32_t i = 0; asked && c->ids != NULL && i < columns->n; i++) {
        if (columns->kind[i] != MTPROF_EVENT_KIND_RUNTIME || c->ids[i] == 0) {
            continue;
        }
        uint64_t hash = mtb_mix(c->ids[i], 0);
        if (mtb_idmap_find(&c->calls, hash, same_call, c, &c->ids[i]) == 0 &&
            !mtb_idmap_add(&c->calls, hash, i + 1)) {
            return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for an event stream");
        }
    }
    return MTPROF_OK;
}

static int open_stream(column_events *c)
{
    size_t tracks = c->model->dictionary.n_tracks + 1;
    c->tops = mtb_calloc(tracks, sizeof *c->tops);
    c->queue_ends = mtb_resize(NULL, tracks, sizeof *c->queue_ends);
    if (c->tops == NULL || c->queue_ends == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for an event stream");
    }
    for (size_t i = 0; i < tracks; i++) {
        c->queue_ends[i] = INT64_MIN;
    }
    return list_calls(c);
}

int mtprof__events_open_columns(mtprof_model *model, mtprof__events **out)
{
    *out = NULL;
    column_events *c = mtb_calloc(1, sizeof *c);
    if (c == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for an event stream");
    }
    c->head.next = next_edge;
    c->head.progress = report_progress;
    c->head.close = close_stream;
    c->model = model;
    c->columns = &model->columns;
    c->ids = model->columns.extra[MTPROF_COLUMN_CORRELATION];
    c->links = model->columns.extra[MTPROF_COLUMN_LINK];
    int status = open_stream(c);
    if (status != MTPROF_OK) {
        close_stream(&c->head);
        return status;
    }
    *out = &c->head;
    return MTPROF_OK;
}
