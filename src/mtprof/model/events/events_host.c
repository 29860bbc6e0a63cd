/* SPDX-License-Identifier: Apache-2.0
 *
 * Edges of threads.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/model/events/events_records.h"
#include "mtprof/model/prepare.h"

#include <string.h>

enum {
    ALLOC_WORDS = 4 /* docs/format.md */
};

/* ---- numbers and names ----------------------------------------------------------------------- */

MT_COLD void mtprof__host_enter_block(mtprof__record_events *r, uint32_t block)
{
    const mtprof__epoch_block *epoch = &r->model->epochs[block];
    r->block = block;
    r->blocks[block] =
        (mtprof__block_ids){r->next_index, epoch->id_known ? epoch->first_id : r->free_id};
}

static uint64_t id_of(const mtprof__record_events *r, uint32_t block, uint64_t index)
{
    return r->blocks[block].first_id + (index - r->blocks[block].first_index);
}

/* Correlation id of an open scope; 0 for none. */
static uint64_t scope_id(const mtprof__record_events *r, const mtprof__slot_context *c, uint32_t at)
{
    if (at == MTPROF__NO_SCOPE) {
        return 0;
    }
    return id_of(r, c->slot.scopes[at].block, c->slot.scopes[at].user);
}

MT_COLD uint32_t mtprof__host_look_up_name(const mtprof__record_events *r, mtprof__slot_context *c,
                                           uint32_t string)
{
    uint32_t at = string % MTPROF__TEXT_CACHE;
    c->names[at].string = string;
    c->names[at].name = mtprof__dictionary_string_name(&r->model->dictionary, string);
    c->names[at].text = mtprof_model_name(r->model, c->names[at].name);
    return c->names[at].name;
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
        mtprof__host_look_up_name(r, c, string);
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

/* ---- payloads -------------------------------------------------------------------------------- */

/* Tensors name devices as the recorder does; what was translated once is left alone. */
static int translate_tensors(mtprof__record_events *r, mtprof__payload_part *part, uint32_t *done)
{
    mtprof__tensor *tensors = (void *)part->words;
    for (uint32_t n = (uint32_t)(part->n_words / 4); *done < n; ++*done) {
        uint32_t device = 0;
        MT_TRY(mtprof__model_device(r->model, tensors[*done].device, &device));
        tensors[*done].device = (uint16_t)device;
    }
    return MTPROF_OK;
}

enum {
    NAMES_DEVICES = MTPROF__HAS_MEMORY_BEFORE | MTPROF__HAS_MEMORY_AFTER | MTPROF__HAS_TENSORS_IN |
                    MTPROF__HAS_TENSORS_OUT
};

static MT_NOINLINE int translate_devices(mtprof__record_events *r, mtprof__payload_store *store,
                                         mtprof__payload *p)
{
    if ((p->fields & (MTPROF__HAS_MEMORY_BEFORE | MTPROF__HAS_MEMORY_AFTER)) != 0) {
        MT_TRY(mtprof__model_device(r->model, store->memory_device, &p->memory_device));
    }
    MT_TRY(translate_tensors(r, &store->tensors_in, &store->translated_in));
    return translate_tensors(r, &store->tensors_out, &store->translated_out);
}

MT_INLINE int set_payload(mtprof__record_events *r, mtprof__slot_context *c,
                          mtprof__payload_store *store, mtprof__event *event)
{
    event->payload = NULL;
    if (store == NULL) {
        return MTPROF_OK;
    }
    mtprof__payload *p = mtprof__payload_get(store, &r->model->dictionary, &c->slot.inputs);
    if (p == NULL) {
        return MTPROF_OK;
    }
    event->payload = p;
    return MT_LIKELY((p->fields & NAMES_DEVICES) == 0) ? MTPROF_OK : translate_devices(r, store, p);
}

/* ---- events ---------------------------------------------------------------------------------- */

static MT_COLD int grow_live(mtprof__slot_context *c)
{
    size_t capacity = c->slot.capacity;
    mtprof__live *live = mtb_resize(c->live, capacity, sizeof *live);
    if (live == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for open scopes");
    }
    memset(live + c->n_live, 0, (capacity - c->n_live) * sizeof *live);
    c->live = live;
    c->n_live = capacity;
    return MTPROF_OK;
}

static int find_annotation(mtprof__record_events *r, mtprof__slot_context *c, uint32_t at,
                           mtprof__annotation **out);

/* A parent on another slot can be named only while it is open there. Its annotation is looked up
 * now: it may have ended when something is launched. On the own slot nothing of that key was open
 * when the scope began; what has it now is the scope itself. */
static int find_foreign_parent(mtprof__record_events *r, const mtprof__slot_context *own,
                               uint64_t key, mtprof__live *live)
{
    for (size_t i = 0; i < r->n_slots; i++) {
        mtprof__slot_context *c = &r->slots[i];
        if (c == own || c->slot.key_base != key >> MTPROF_ORDINAL_BITS << MTPROF_ORDINAL_BITS) {
            continue;
        }
        uint32_t at = mtprof__slot_find(&c->slot, key);
        if (at != MTPROF__NO_SCOPE) {
            live->event.parent = scope_id(r, c, at);
            live->event.flags |= MTPROF_EVENT_FLAG_FOREIGN_PARENT;
            MT_TRY(find_annotation(r, c, at, &live->foreign));
        }
        if (live->foreign != NULL) {
            live->foreign->refs++;
        }
        return MTPROF_OK;
    }
    return MTPROF_OK;
}

/* The event that device work of a scope counts for: itself, or what is around a runtime call. */
static uint64_t owner_of(const mtprof__record_events *r, const mtprof__slot_context *c, uint32_t at)
{
    uint32_t last = at;
    while (at != MTPROF__NO_SCOPE &&
           !mtprof__kind_in(c->slot.scopes[at].kind, MTPROF__KINDS_OWNER)) {
        last = at;
        at = c->slot.scopes[at].outer;
    }
    if (at == MTPROF__NO_SCOPE && last != at && c->slot.scopes[last].made) {
        return c->live[last].event.parent; /* on another slot, or 0 */
    }
    return scope_id(r, c, at);
}

/* The event of a scope as it is at its beginning. */
MT_INLINE int fill_event(mtprof__record_events *r, mtprof__slot_context *c, uint32_t at)
{
    mtprof__slot *slot = &c->slot;
    mtprof__scope *scope = &slot->scopes[at];
    mtprof__live *live = &c->live[at];
    mtprof__event *event = &live->event;
    mtprof__payload_store *store = mtprof__slot_payload(slot, at);
    scope->made = 1;
    if (MT_UNLIKELY(live->annotation != NULL || live->foreign != NULL)) {
        mtprof__live_release(r, live); /* of a scope that had this place before */
    }
    event->edge = MTPROF__EDGE_BEGIN;
    event->kind = scope->kind;
    event->flags = scope->flags;
    event->start_ns = event->end_ns = scope->start_ns;
    event->shown_start_ns = event->shown_end_ns = scope->start_ns;
    event->step = mtprof__step_at(&c->steps, scope->start_ns);
    event->index = event->order = scope->user;
    event->correlation = event->owner = id_of(r, scope->block, scope->user);
    event->parent =
        scope_id(r, c, scope->kind == MTPROF_EVENT_KIND_FUNCTION ? scope->parent : scope->outer);
    event->payload = NULL;
    set_name(r, c, scope->name, store, event);
    if (MT_UNLIKELY(scope->parent_key != 0)) {
        MT_TRY(find_foreign_parent(r, c, scope->parent_key, live));
    }
    if (MT_UNLIKELY(scope->kind == MTPROF_EVENT_KIND_RUNTIME)) {
        event->owner = owner_of(r, c, at);
    }
    MT_TRY(set_track(r, c, scope->thread, &event->track));
    return MT_UNLIKELY(store != NULL) ? set_payload(r, c, store, event) : MTPROF_OK;
}

/*
 * Makes the event of a scope where it has none yet. What an event points to in its payload store
 * moves when more payloads arrive (payload_store.h): code that uses the event of an open scope must
 * call this, and set_payload() where it shows the payload.
 */
MT_INLINE int make_event(mtprof__record_events *r, mtprof__slot_context *c, uint32_t at)
{
    if (c->slot.scopes[at].made) {
        mtprof__event *event = &c->live[at].event;
        if (MT_UNLIKELY(event->name == MTPROF__NAME_INLINE)) {
            mtprof__payload_name(&c->slot.payloads[at], &event->name_text);
        }
        return MTPROF_OK;
    }
    if (MT_UNLIKELY(at >= c->n_live)) {
        MT_TRY(grow_live(c));
    }
    return fill_event(r, c, at);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* The annotation of an open user scope, made where there is none. */
static int make_annotation(mtprof__record_events *r, mtprof__slot_context *c, uint32_t at)
{
    MT_TRY(make_event(r, c, at));
    mtprof__live *live = &c->live[at];
    const mtprof__event *event = &live->event;
    if (live->annotation != NULL) {
        return MTPROF_OK;
    }
    live->annotation = mtprof__annotation_new(event->name_text, event->name == MTPROF__NAME_INLINE);
    if (live->annotation == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for open scopes");
    }
    live->annotation->name = event->name;
    live->annotation->step = event->step;
    live->annotation->correlation = event->correlation;
    return MTPROF_OK;
}

/* The annotation of the innermost user scope at or above a place, with those around it; NULL where
 * there is none. */
static int find_annotation(mtprof__record_events *r, mtprof__slot_context *c, uint32_t at,
                           mtprof__annotation **out)
{
    mtprof__annotation_chain chain = {NULL, NULL};
    uint32_t last = MTPROF__NO_SCOPE;
    bool known = false; /* and so are those around it */
    *out = NULL;
    for (; at != MTPROF__NO_SCOPE && !known; at = c->slot.scopes[at].outer) {
        last = at;
        if (mtprof__kind_in(c->slot.scopes[at].kind, MTPROF__KINDS_SCOPE)) {
            known = c->slot.scopes[at].made && c->live[at].annotation != NULL;
            MT_TRY(make_annotation(r, c, at));
            mtprof__annotation_chain_add(&chain, c->live[at].annotation);
        }
    }
    if (!known && last != MTPROF__NO_SCOPE && c->slot.scopes[last].made) {
        mtprof__annotation_chain_add(&chain, c->live[last].foreign);
    }
    *out = chain.innermost;
    return MTPROF_OK;
}

void mtprof__live_release(mtprof__record_events *r, mtprof__live *live)
{
    mtprof__annotation_drop(&r->launches.annotations, live->annotation);
    mtprof__annotation_drop(&r->launches.annotations, live->foreign);
    live->annotation = NULL;
    live->foreign = NULL;
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
    if (key == 0) {
        return MTPROF_OK; /* no slot is 0: nothing can answer it */
    }
    MT_TRY(find_annotation(r, c, around, &launch.annotation));
    if (launch.annotation != NULL) {
        launch.annotation->refs++;
    }
    r->launched = r->early.waiting > 0 ? key : 0;
    int status = mtprof__launch_add(&r->launches, &launch);
    if (status != MTPROF_OK) {
        mtprof__annotation_drop(&r->launches.annotations, launch.annotation);
    }
    return status;
}

/* ---- begins and ends ------------------------------------------------------------------------- */

bool mtprof__host_in_task(mtprof__record_events *r, mtprof__slot_context *c, uint32_t at)
{
    mtprof__payload_store *store = mtprof__slot_payload(&c->slot, at);
    mtprof__event event = {.kind = c->slot.scopes[at].kind};
    event.payload =
        store != NULL ? mtprof__payload_get(store, &r->model->dictionary, &c->slot.inputs) : NULL;
    return mtprof__event_task(&event) != NULL;
}

MT_COLD int mtprof__host_grow_shown(mtprof__slot_context *c)
{
    if (!mtb_grow((void **)&c->shown, &c->shown_capacity, c->n_shown + 1, sizeof *c->shown)) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for open scopes");
    }
    return MTPROF_OK;
}

static int begin(mtprof__record_events *r, mtprof__slot_context *c, const mtprof__event **out)
{
    uint32_t at = c->slot.at;
    mtprof__scope *scope = &c->slot.scopes[at];
    MT_TRY(mtprof__host_begin_shown(r, c));
    bool unseen = r->head.skip_begins && scope->kind != MTPROF_EVENT_KIND_FUNCTION &&
                  scope->parent_key == 0 && (scope->flags & MTPROF_EVENT_FLAG_LAUNCHES) == 0;
    if (unseen) {
        return MTPROF_EEND; /* its event is made when it ends */
    }
    MT_TRY(make_event(r, c, at));
    *out = &c->live[at].event;
    if (MT_UNLIKELY((scope->flags & MTPROF_EVENT_FLAG_LAUNCHES) != 0)) {
        MT_TRY(note_launch(r, c, scope->key, at, *out));
    }
    return MT_LIKELY(scope->shown) ? MTPROF_OK : MTPROF_EEND; /* async: shown when it has ended */
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

/* Whether what is shown around the scope, which is no longer in c->shown, began with it. */
MT_INLINE uint16_t is_tied(const mtprof__slot_context *c, const mtprof__scope *scope)
{
    return c->n_shown > 0 && c->slot.scopes[c->shown[c->n_shown - 1]].start_ns == scope->start_ns;
}

/* Time of the next begin or end of the slot, after records that are neither; INT64_MIN: it is
 * not in the buffer. */
static int64_t peek_edge_ns(mtprof__slot_context *c)
{
    mtprof__slot *slot = &c->slot;
    const mtprof_cursor *cursor = &slot->cursor;
    if (slot->has_waiting) {
        bool edge = slot->waiting.kind == MTPROF_REC_BEGIN || slot->waiting.kind == MTPROF_REC_END;
        return edge ? mtprof__timebase_ns(&slot->timebase, slot->waiting.ticks) : INT64_MIN;
    }
    if (cursor->at == cursor->n_words) {
        return INT64_MIN;
    }
    const uint64_t *words = mtprof__cursor_words(cursor);
    for (size_t at = 0, left = cursor->n_words - cursor->at; at < left;) {
        uint64_t word = words[at];
        uint8_t kind = (uint8_t)word;
        if (mtprof__is_end(word)) {
            return mtprof__timebase_ns(&slot->timebase, mtprof__end_ticks(word, cursor->reference));
        }
        if (kind == MTPROF_REC_BEGIN && left - at >= 2) {
            return mtprof__timebase_ns(&slot->timebase, words[at + 1]);
        }
        if (kind != MTPROF_REC_ALLOC) {
            return INT64_MIN;
        }
        at += ALLOC_WORDS;
    }
    return INT64_MIN;
}

/* mtprof__events_part_ends() */
MT_INLINE void part_end(const mtprof__record_events *r, mtprof__slot_context *c,
                        mtprof__event *event)
{
    if (MT_UNLIKELY(event->end_ns == c->ended_ns && r->head.part_ends &&
                    event->end_ns > event->start_ns && event->end_ns < INT64_MAX) &&
        peek_edge_ns(c) > event->end_ns) {
        event->shown_end_ns++;
    }
    c->ended_ns = event->end_ns;
}

static void finish_event(mtprof__record_events *r, const mtprof__scope *scope, mtprof__event *event)
{
    event->flags |= scope->flags;
    event->end_ns = scope->end_ns;
    event->shown_end_ns = scope->end_ns;
    event->self_ns = scope->self_ns;
    r->head.totals.events++;
    r->head.totals.truncated += (scope->flags & MTPROF_EVENT_FLAG_TRUNCATED) != 0;
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
    MT_TRY(make_event(r, c, at));
    mtprof__event *event = &c->live[at].event;
    if (i + 1 < c->n_shown) {
        memmove(c->shown + i, c->shown + i + 1, (c->n_shown - i - 1) * sizeof *c->shown);
    }
    c->n_shown--;
    c->slot.scopes[at].shown = 0;
    event->edge = MTPROF__EDGE_END;
    event->tied = 1; /* it may be one of several that end here */
    MT_TRY(set_payload(r, c, mtprof__slot_payload(&c->slot, at), event));
    *out = event;
    if (at == r->closing_at) {
        finish_event(r, &c->slot.scopes[at], event);
        r->closing = NULL;
        return MTPROF_OK;
    }
    event->flags |= MTPROF_EVENT_FLAG_OVERLAP;
    event->end_ns = event->shown_end_ns = r->closing_ns;
    event->self_ns = 0;
    r->head.totals.events++;
    r->head.totals.clamped++;
    return MTPROF_OK;
}

MT_INLINE int end(mtprof__record_events *r, mtprof__slot_context *c, uint32_t at,
                  const mtprof__event **out)
{
    mtprof__scope *scope = &c->slot.scopes[at];
    bool grown = scope->has_payload && scope->made; /* made now, it has everything already */
    MT_TRY(make_event(r, c, at));
    mtprof__live *live = &c->live[at];
    mtprof__event *event = &live->event;
    if (MT_UNLIKELY((live->annotation != NULL || live->foreign != NULL) && at >= c->slot.n)) {
        mtprof__live_release(r, live); /* else scopes inside are open, and may still launch */
    }
    *out = event;
    if (MT_LIKELY(scope->shown && c->shown[c->n_shown - 1] == at)) {
        c->n_shown--;
        scope->shown = 0;
        event->edge = MTPROF__EDGE_END;
        event->tied = is_tied(c, scope);
        finish_event(r, scope, event);
        part_end(r, c, event);
        return grown ? set_payload(r, c, mtprof__slot_payload(&c->slot, at), event) : MTPROF_OK;
    }
    if (scope->shown) {
        r->closing = c;
        r->closing_at = at;
        r->closing_ns = scope->end_ns;
        return mtprof__host_close(r, out);
    }
    if (!scope->apart && ((scope->flags & MTPROF_EVENT_FLAG_ASYNC) == 0 ||
                          (event->flags & MTPROF_EVENT_FLAG_OVERLAP) != 0)) {
        return MTPROF_EEND; /* it was shown to end with the one around it */
    }
    event->edge = MTPROF__EDGE_SPAN;
    finish_event(r, scope, event);
    return set_payload(r, c, mtprof__slot_payload(&c->slot, at), event);
}

int mtprof__host_end(mtprof__record_events *r, mtprof__slot_context *c, const mtprof__event **event)
{
    return end(r, c, c->slot.at, event);
}

/* ---- points ---------------------------------------------------------------------------------- */

static int begin_point(mtprof__record_events *r, mtprof__slot_context *c, uint8_t kind)
{
    mtprof__event *event = &r->event;
    const mtprof__slot *slot = &c->slot;
    *event = mtprof__event_at(MTPROF__EDGE_POINT, kind, slot->ns, slot->ns);
    event->step = mtprof__step_at(&c->steps, slot->ns);
    if (slot->at != MTPROF__NO_SCOPE) {
        event->parent = scope_id(r, c, slot->at);
    }
    return set_track(r, c, slot->thread, &event->track);
}

static int point_launch(mtprof__record_events *r, mtprof__slot_context *c)
{
    const mtprof__slot *slot = &c->slot;
    mtprof__event *event = &r->event;
    uint32_t around = mtprof__slot_outside(slot, slot->at);
    event->parent = scope_id(r, c, around);
    event->flags = MTPROF_EVENT_FLAG_LAUNCHES;
    event->queue = (uint32_t)(slot->point_words[1] >> 32);
    event->index = mtprof__host_next_index(r, slot->block);
    event->correlation = id_of(r, slot->block, event->index);
    event->owner = owner_of(r, c, around);
    set_name(r, c, slot->record.arg, &c->slot.point, event);
    MT_TRY(note_launch(r, c, slot->record.key, around, event));
    r->head.totals.events++;
    return set_payload(r, c, &c->slot.point, event);
}

/* An allocation, or (OUT_OF_MEMORY) one that was refused. */
static int point_memory(mtprof__record_events *r, mtprof__slot_context *c)
{
    const mtprof__slot *slot = &c->slot;
    const bool refused = slot->record.kind == MTPROF_REC_OUT_OF_MEMORY;
    const char *text = refused ? "[OutOfMemory]" : "[memory]";
    mtprof__event *event = &r->event;
    uint32_t device = 0;
    MT_TRY(mtprof__model_device(r->model, slot->record.aux & 0xFF, &device));
    event->device = (uint8_t)device;
    event->name = MTPROF__NAME_INLINE;
    event->name_text = (mtprof_text){text, strlen(text)};
    event->bytes = (int64_t)slot->point_words[1];
    event->allocated = (int64_t)slot->point_words[2];
    event->reserved_bytes = r->reserved[slot->record.aux & 0xFF];
    if (!refused) {
        event->owner = scope_id(r, c, mtprof__slot_owner(slot));
        event->phase = (uint8_t)(slot->record.aux >> 8 & 1);
        event->value = slot->point_words[0];
    }
    return MTPROF_OK;
}

static int point(mtprof__record_events *r, mtprof__slot_context *c, const mtprof__event **out)
{
    const mtprof__slot *slot = &c->slot;
    *out = &r->event;
    switch (slot->record.kind) {
    case MTPROF_REC_LAUNCH:
        MT_TRY(begin_point(r, c, MTPROF_EVENT_KIND_LAUNCH));
        return point_launch(r, c);
    case MTPROF_REC_ALLOC:
        MT_TRY(begin_point(r, c, MTPROF_EVENT_KIND_ALLOC));
        return point_memory(r, c);
    case MTPROF_REC_OUT_OF_MEMORY:
        MT_TRY(begin_point(r, c, MTPROF_EVENT_KIND_OUT_OF_MEMORY));
        return point_memory(r, c);
    case MTPROF_REC_INSTANT:
        MT_TRY(begin_point(r, c, MTPROF_EVENT_KIND_INSTANT));
        set_name(r, c, slot->record.arg, &c->slot.point, &r->event);
        return set_payload(r, c, &c->slot.point, &r->event);
    case MTPROF_REC_COUNTER:
    case MTPROF_REC_FLOW:
        MT_TRY(begin_point(r, c,
                           slot->record.kind == MTPROF_REC_FLOW ? MTPROF_EVENT_KIND_FLOW
                                                                : MTPROF_EVENT_KIND_COUNTER));
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
    mtprof__foreign_end foreign = {by->slot.record.key, by->slot.ns, by->slot.cursor.stream->slot};
    for (size_t i = 0; i < r->n_slots; i++) {
        mtprof__slot_context *c = &r->slots[i];
        uint32_t at = 0;
        if (c->slot.cursor.stream->slot != foreign.key >> MTPROF_ORDINAL_BITS) {
            continue;
        }
        if (mtprof__slot_end_foreign(&c->slot, foreign.key, foreign.ns, &at)) {
            return end(r, c, at, out);
        }
        MT_TRY(mtprof__slot_expect_end(&c->slot, &foreign));
    }
    return MTPROF_EEND;
}

int mtprof__host_edge(mtprof__record_events *r, mtprof__slot_context *c,
                      enum mtprof__slot_edge edge, const mtprof__event **event)
{
    switch (edge) {
    case MTPROF__SLOT_BEGIN: return begin(r, c, event);
    case MTPROF__SLOT_END: return mtprof__host_end(r, c, event);
    case MTPROF__SLOT_POINT: return point(r, c, event);
    default: return foreign_end(r, c, event);
    }
}
