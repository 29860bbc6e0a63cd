/* SPDX-License-Identifier: Apache-2.0
 *
 * Edges of threads.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/model/events_records.h"
#include "mtprof/model/prepare.h"

#include <string.h>

static int no_memory(void)
{
    return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for open scopes");
}

/* ---- numbers and names --------------------------------------------------------------------------
 */

/* The next event of a block gets the next index and id. */
MT_INLINE void number(mtprof__record_events *r, uint32_t block, mtprof__event *event)
{
    if (MT_UNLIKELY(block != r->block)) {
        const mtprof__epoch_block *epoch = &r->model->epochs[block];
        r->block = block;
        r->block_first = r->next_index;
        r->block_id = epoch->id_known ? epoch->first_id : r->free_id;
    }
    event->index = r->next_index++;
    event->correlation = r->block_id + (event->index - r->block_first);
    if (MT_UNLIKELY(event->correlation >= r->free_id)) {
        r->free_id = event->correlation + 1; /* only blocks without reserved ids get here */
    }
}

MT_INLINE void set_name(mtprof__record_events *r, mtprof__slot_context *c, uint32_t string,
                        const mtprof__payload_store *store, mtprof__event *event)
{
    uint32_t at = string % MTPROF__TEXT_CACHE;
    if (MT_UNLIKELY(string == 0)) {
        event->name = MTPROF__NAME_INLINE;
        if (store == NULL || !mtprof__payload_name(store, &event->name_text)) {
            event->name = 0;
            event->name_text = (mtprof_text){"", 0};
        }
        return;
    }
    if (MT_UNLIKELY(c->names[at].string != string)) {
        c->names[at].string = string;
        c->names[at].name = mtprof__dictionary_string_name(&r->model->dictionary, string);
        c->names[at].text = mtprof_model_name(r->model, c->names[at].name);
    }
    event->name = c->names[at].name;
    event->name_text = c->names[at].text;
}

static int set_track(mtprof__record_events *r, mtprof__slot_context *c, uint32_t thread,
                     uint32_t *track)
{
    if (MT_UNLIKELY(thread != c->thread)) {
        MT_TRY(mtprof__model_thread_track(r->model, thread, &c->track));
        c->thread = thread;
    }
    *track = c->track;
    return MTPROF_OK;
}

/* ---- payloads -----------------------------------------------------------------------------------
 */

/* Tensors name devices as the recorder does; what was translated once is left alone. */
static int translate_tensors(mtprof__record_events *r, mtprof__payload_store *store, size_t at,
                             uint32_t n, bool *done)
{
    mtprof__tensor *tensors = (void *)(store->words + at);
    if (*done) {
        return MTPROF_OK;
    }
    for (uint32_t i = 0; i < n; i++) {
        MT_TRY(mtprof__model_device(r->model, tensors[i].device, &tensors[i].device));
    }
    *done = true;
    return MTPROF_OK;
}

static int set_payload(mtprof__record_events *r, mtprof__payload_store *store,
                       mtprof__event *event)
{
    event->payload = NULL;
    if (store == NULL) {
        return MTPROF_OK;
    }
    mtprof__payload *p = mtprof__payload_get(store, r->model->reader);
    if (p == NULL) {
        return MTPROF_OK;
    }
    if ((p->fields & MTPROF__HAS_INPUTS) != 0 && store->inputs_id != 0) {
        p->inputs = mtprof__dictionary_reader_inputs(&r->model->dictionary, store->inputs_id);
    }
    if ((p->fields & (MTPROF__HAS_MEMORY_BEFORE | MTPROF__HAS_MEMORY_AFTER)) != 0) {
        MT_TRY(mtprof__model_device(r->model, store->memory_device, &p->memory_device));
    }
    if ((p->fields & MTPROF__HAS_TENSORS_IN) != 0) {
        MT_TRY(translate_tensors(r, store, store->tensors_in_at, p->n_tensors_in,
                                 &store->translated_in));
    }
    if ((p->fields & MTPROF__HAS_TENSORS_OUT) != 0) {
        MT_TRY(translate_tensors(r, store, store->tensors_out_at, p->n_tensors_out,
                                 &store->translated_out));
    }
    event->payload = p;
    return MTPROF_OK;
}

/* ---- launches -----------------------------------------------------------------------------------
 */

static bool is_annotation(uint8_t kind)
{
    return kind == MTPROF_EVENT_SCOPE || kind == MTPROF_EVENT_STEP;
}

/* The annotation of the innermost user scope at or above a place, with those around it; NULL where
 * there is none. */
static int find_annotation(mtprof__slot_context *c, uint32_t at, mtprof__annotation **out)
{
    mtprof__annotation *inner = NULL;
    *out = NULL;
    for (; at != MTPROF__NO_SCOPE; at = c->slot.scopes[at].outer) {
        mtprof__live *live = &c->live[at];
        if (!is_annotation(c->slot.scopes[at].kind)) {
            continue;
        }
        bool known = live->annotation != NULL;
        if (!known) {
            const mtprof__event *event = &live->event;
            live->annotation = mtprof__annotation_new(NULL, event->name_text,
                                                      event->name == MTPROF__NAME_INLINE);
            if (live->annotation == NULL) {
                return no_memory();
            }
            live->annotation->name = event->name;
            live->annotation->step = event->step;
            live->annotation->correlation = event->correlation;
        }
        if (inner != NULL) {
            inner->around = live->annotation;
            live->annotation->refs++;
        }
        inner = live->annotation;
        *out = *out == NULL ? inner : *out;
        if (known) {
            break; /* and so are those around it */
        }
    }
    return MTPROF_OK;
}

static int note_launch(mtprof__record_events *r, mtprof__slot_context *c, uint64_t key,
                       uint32_t around, const mtprof__event *event)
{
    mtprof__launch launch = {.key = key,
                             .correlation = event->correlation,
                             .owner = event->owner,
                             .shown_ns = event->shown_start_ns,
                             .track = event->track,
                             .step = event->step};
    MT_TRY(find_annotation(c, around, &launch.annotation));
    if (launch.annotation != NULL) {
        launch.annotation->refs++;
    }
    r->launched = r->n_early > 0 ? key : 0;
    return mtprof__launch_add(&r->launches, &launch);
}

/* ---- begins and ends ----------------------------------------------------------------------------
 */

static MT_COLD int grow_live(mtprof__slot_context *c)
{
    size_t capacity = c->slot.capacity;
    mtprof__live *live = mtb_resize(c->live, capacity, sizeof *live);
    if (live == NULL) {
        return no_memory();
    }
    memset(live + c->n_live, 0, (capacity - c->n_live) * sizeof *live);
    c->live = live;
    c->n_live = capacity;
    return MTPROF_OK;
}

/* A parent on another slot can be named only while it is open there. */
static void find_foreign_parent(mtprof__record_events *r, uint64_t key, mtprof__event *event)
{
    for (size_t i = 0; i < r->n_slots; i++) {
        mtprof__slot_context *c = &r->slots[i];
        if (c->slot.cursor.stream->slot == key >> MTPROF_ORDINAL_BITS) {
            uint32_t at = mtprof__slot_find(&c->slot, key);
            if (at != MTPROF__NO_SCOPE && at < c->n_live) {
                event->parent = c->live[at].event.correlation;
                event->flags |= MTPROF_EVENT_FOREIGN_PARENT;
            }
        }
    }
}

/* Whom device work of a scope counts for: itself, or the op or scope around a runtime call. */
static uint64_t owner_of(const mtprof__slot_context *c, uint32_t at)
{
    while (at != MTPROF__NO_SCOPE && c->slot.scopes[at].kind == MTPROF_EVENT_RUNTIME) {
        at = c->slot.scopes[at].outer;
    }
    return at != MTPROF__NO_SCOPE ? c->live[at].event.correlation : 0;
}

static int begin(mtprof__record_events *r, mtprof__slot_context *c, const mtprof__event **out)
{
    mtprof__slot *slot = &c->slot;
    uint32_t at = slot->at;
    if (MT_UNLIKELY(at >= c->n_live)) {
        MT_TRY(grow_live(c));
    }
    const mtprof__scope *scope = &slot->scopes[at];
    mtprof__live *live = &c->live[at];
    mtprof__event *event = &live->event;
    mtprof__payload_store *store = mtprof__slot_payload(slot, at);
    live->annotation = NULL;
    live->shown = false;
    event->edge = MTPROF__EDGE_BEGIN;
    event->kind = scope->kind;
    event->flags = scope->flags;
    event->start_ns = event->end_ns = scope->start_ns;
    event->shown_start_ns = event->shown_end_ns = scope->start_ns;
    event->step = mtprof__step_at(&c->steps, scope->start_ns);
    number(r, scope->block, event);
    event->owner = event->correlation;
    uint32_t parent = scope->kind == MTPROF_EVENT_FUNCTION ? scope->parent : scope->outer;
    event->parent = parent != MTPROF__NO_SCOPE ? c->live[parent].event.correlation : 0;
    MT_TRY(set_track(r, c, scope->thread, &event->track));
    set_name(r, c, scope->name, store, event);
    event->payload = NULL;
    if (MT_UNLIKELY(store != NULL)) {
        MT_TRY(set_payload(r, store, event));
    }
    if (MT_UNLIKELY(scope->parent_key != 0)) {
        find_foreign_parent(r, scope->parent_key, event);
    }
    if (MT_UNLIKELY(scope->kind == MTPROF_EVENT_RUNTIME)) {
        event->owner = owner_of(c, scope->outer);
    }
    if (MT_UNLIKELY((scope->flags & MTPROF_EVENT_LAUNCHES) != 0)) {
        MT_TRY(note_launch(r, c, scope->key, at, event));
    }
    if (MT_UNLIKELY((scope->flags & MTPROF_EVENT_ASYNC) != 0)) {
        return MTPROF_EEND; /* shown when it has ended */
    }
    if (MT_UNLIKELY(c->n_shown == c->shown_capacity) &&
        !mtb_grow((void **)&c->shown, &c->shown_capacity, c->n_shown + 1, sizeof *c->shown)) {
        return no_memory();
    }
    c->shown[c->n_shown++] = at;
    live->shown = true;
    *out = event;
    return MTPROF_OK;
}

/* The place in c->shown of the next scope to close: the topmost of the same thread above the one
 * that ends, or that one. */
static size_t next_to_close(const mtprof__slot_context *c, uint32_t at)
{
    uint32_t thread = c->slot.scopes[at].thread;
    size_t i = c->n_shown;
    while (i-- > 0) {
        if (c->shown[i] == at || c->slot.scopes[c->shown[i]].thread == thread) {
            return i;
        }
    }
    return SIZE_MAX;
}

static void finish_event(mtprof__record_events *r, const mtprof__scope *scope,
                         mtprof__event *event)
{
    event->flags |= scope->flags;
    event->end_ns = scope->end_ns;
    event->shown_end_ns = scope->end_ns;
    r->head.totals.events++;
    r->head.totals.truncated += (scope->flags & MTPROF_EVENT_TRUNCATED) != 0;
}

int mtprof__host_close(mtprof__record_events *r, const mtprof__event **out)
{
    mtprof__slot_context *c = r->closing;
    size_t i = next_to_close(c, r->closing_at);
    if (i == SIZE_MAX) {
        r->closing = NULL;
        return MTPROF_EEND;
    }
    uint32_t at = c->shown[i];
    mtprof__live *live = &c->live[at];
    mtprof__event *event = &live->event;
    if (i + 1 < c->n_shown) {
        memmove(c->shown + i, c->shown + i + 1, (c->n_shown - i - 1) * sizeof *c->shown);
    }
    c->n_shown--;
    live->shown = false;
    event->edge = MTPROF__EDGE_END;
    MT_TRY(set_payload(r, mtprof__slot_payload(&c->slot, at), event));
    *out = event;
    if (at == r->closing_at) {
        finish_event(r, &c->slot.scopes[at], event);
        r->closing = NULL;
        return MTPROF_OK;
    }
    event->flags |= MTPROF_EVENT_OVERLAP;
    event->end_ns = event->shown_end_ns = r->closing_ns;
    r->head.totals.events++;
    r->head.totals.clamped++;
    return MTPROF_OK;
}

static int end(mtprof__record_events *r, mtprof__slot_context *c, uint32_t at,
               const mtprof__event **out)
{
    mtprof__live *live = &c->live[at];
    const mtprof__scope *scope = &c->slot.scopes[at];
    if (MT_UNLIKELY(live->annotation != NULL)) {
        mtprof__annotation_drop(&r->launches, live->annotation);
        live->annotation = NULL;
    }
    if (MT_LIKELY(live->shown && c->shown[c->n_shown - 1] == at)) {
        mtprof__event *event = &live->event;
        c->n_shown--;
        live->shown = false;
        event->edge = MTPROF__EDGE_END;
        finish_event(r, scope, event);
        *out = event;
        return scope->has_payload ? set_payload(r, mtprof__slot_payload(&c->slot, at), event)
                                  : MTPROF_OK;
    }
    if (live->shown) {
        r->closing = c;
        r->closing_at = at;
        r->closing_ns = scope->end_ns;
        return mtprof__host_close(r, out);
    }
    if ((scope->flags & MTPROF_EVENT_ASYNC) == 0 ||
        (live->event.flags & MTPROF_EVENT_OVERLAP) != 0) {
        return MTPROF_EEND; /* it was shown to end with the one around it */
    }
    live->event.edge = MTPROF__EDGE_SPAN;
    finish_event(r, scope, &live->event);
    *out = &live->event;
    return set_payload(r, mtprof__slot_payload(&c->slot, at), &live->event);
}

/* ---- points -------------------------------------------------------------------------------------
 */

static int begin_point(mtprof__record_events *r, mtprof__slot_context *c, uint8_t kind)
{
    mtprof__event *event = &r->event;
    const mtprof__slot *slot = &c->slot;
    memset(event, 0, sizeof *event);
    event->edge = MTPROF__EDGE_POINT;
    event->kind = kind;
    event->start_ns = event->end_ns = slot->ns;
    event->shown_start_ns = event->shown_end_ns = slot->ns;
    event->step = mtprof__step_at(&c->steps, slot->ns);
    event->index = UINT64_MAX;
    event->reserved_bytes = -1;
    if (slot->at != MTPROF__NO_SCOPE) {
        event->parent = c->live[slot->at].event.correlation;
    }
    return set_track(r, c, slot->thread, &event->track);
}

static int point_launch(mtprof__record_events *r, mtprof__slot_context *c)
{
    const mtprof__slot *slot = &c->slot;
    mtprof__event *event = &r->event;
    uint32_t around = slot->at;
    if (around != MTPROF__NO_SCOPE && slot->scopes[around].kind == MTPROF_EVENT_FUNCTION) {
        around = slot->scopes[around].outer;
    }
    event->parent = around != MTPROF__NO_SCOPE ? c->live[around].event.correlation : 0;
    event->flags = MTPROF_EVENT_LAUNCHES;
    event->queue = (uint32_t)(slot->point_words[1] >> 32);
    number(r, slot->block, event);
    event->owner = owner_of(c, around);
    set_name(r, c, slot->record.arg, &c->slot.point, event);
    MT_TRY(note_launch(r, c, slot->record.key, around, event));
    r->head.totals.events++;
    return set_payload(r, &c->slot.point, event);
}

static int point_alloc(mtprof__record_events *r, mtprof__slot_context *c)
{
    static const char text[] = "[memory]";
    const mtprof__slot *slot = &c->slot;
    mtprof__event *event = &r->event;
    uint32_t device = 0;
    uint32_t owner = mtprof__slot_owner(slot);
    MT_TRY(mtprof__model_device(r->model, slot->record.aux & 0xFF, &device));
    event->device = (uint8_t)device;
    event->name = MTPROF__NAME_INLINE;
    event->name_text = (mtprof_text){text, sizeof text - 1};
    event->owner = owner != MTPROF__NO_SCOPE ? c->live[owner].event.correlation : 0;
    event->value = slot->point_words[0];
    event->bytes = (int64_t)slot->point_words[1];
    event->allocated = (int64_t)slot->point_words[2];
    event->reserved_bytes = r->reserved[slot->record.aux & 0xFF];
    return MTPROF_OK;
}

static int point(mtprof__record_events *r, mtprof__slot_context *c, const mtprof__event **out)
{
    const mtprof__slot *slot = &c->slot;
    *out = &r->event;
    switch (slot->record.kind) {
    case MTPROF_REC_LAUNCH:
        MT_TRY(begin_point(r, c, MTPROF_EVENT_LAUNCH));
        return point_launch(r, c);
    case MTPROF_REC_ALLOC:
        MT_TRY(begin_point(r, c, MTPROF_EVENT_ALLOC));
        return point_alloc(r, c);
    case MTPROF_REC_INSTANT:
        MT_TRY(begin_point(r, c, MTPROF_EVENT_INSTANT));
        set_name(r, c, slot->record.arg, &c->slot.point, &r->event);
        return set_payload(r, &c->slot.point, &r->event);
    case MTPROF_REC_COUNTER:
    case MTPROF_REC_FLOW:
        MT_TRY(begin_point(r, c,
                           slot->record.kind == MTPROF_REC_FLOW ? MTPROF_EVENT_FLOW
                                                                : MTPROF_EVENT_COUNTER));
        set_name(r, c, slot->record.arg, NULL, &r->event);
        r->event.phase = (uint8_t)slot->record.aux;
        r->event.value = slot->point_words[1];
        return MTPROF_OK;
    case MTPROF_REC_RESERVED:
        r->reserved[slot->record.aux & 0xFF] = (int64_t)slot->point_words[0];
        return MTPROF_EEND;
    default: return MTPROF_EEND;
    }
}

static int foreign_end(mtprof__record_events *r, const mtprof__slot_context *by,
                       const mtprof__event **out)
{
    uint64_t key = by->slot.record.key;
    for (size_t i = 0; i < r->n_slots; i++) {
        mtprof__slot_context *c = &r->slots[i];
        uint32_t at = 0;
        if (c->slot.cursor.stream->slot == key >> MTPROF_ORDINAL_BITS &&
            mtprof__slot_end_foreign(&c->slot, key, by->slot.ns, &at)) {
            return end(r, c, at, out);
        }
    }
    return MTPROF_EEND;
}

int mtprof__host_edge(mtprof__record_events *r, mtprof__slot_context *c,
                      enum mtprof__slot_edge edge, const mtprof__event **event)
{
    switch (edge) {
    case MTPROF__SLOT_BEGIN: return begin(r, c, event);
    case MTPROF__SLOT_END: return end(r, c, c->slot.at, event);
    case MTPROF__SLOT_POINT: return point(r, c, event);
    default: return foreign_end(r, c, event);
    }
}
