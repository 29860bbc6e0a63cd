/* SPDX-License-Identifier: Apache-2.0
 *
 * The records of a thread slot on their way to rows. A begin counts a call, an end its self time
 * and duration; what is open at the end of a poll gets the self time that it took so far, and its
 * end later the rest (LIVE2).
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/live/live_impl.h"
#include "mtprof/model/slot/slot_fast.h"

/* ---- rows ------------------------------------------------------------------------------------ */

static int find_row(mtprof_live *live, mtprof__live_slot *s, const mtprof__scope *scope,
                    const mtprof__payload_store *store, uint32_t *row)
{
    mtprof_text text = {"", 0};
    mtprof__live_key key = {.thread = scope->thread, .kind = scope->kind};
    if (scope->name != 0) {
        (void)mtprof_reader_string(&live->reader, scope->name, &text);
    } else if (store != NULL) {
        (void)mtprof__payload_name(store, &text);
    }
    MT_TRY(mtprof__live_name(live, text, &key.name));
    if (store != NULL && (store->payload.fields & MTPROF__HAS_MODULE) != 0) {
        MT_TRY(mtprof__live_name(live, store->payload.module, &key.module));
    }
    key.inputs = store != NULL ? store->inputs_id : 0;
    MT_TRY(mtprof__live_row_get(live, &key, row));
    if (key.module == 0 && key.inputs == 0 && scope->name != 0) {
        uint32_t at = scope->name % MTPROF__LIVE_ROW_CACHE;
        s->cache[at].string = scope->name;
        s->cache[at].kind = scope->kind;
        s->cache[at].row = *row + 1;
    }
    return MTPROF_OK;
}

static MT_COLD void enter_thread(mtprof__live_slot *s, uint32_t thread)
{
    for (size_t i = 0; i < MTPROF__LIVE_ROW_CACHE; i++) {
        s->cache[i].row = 0;
    }
    s->thread = thread;
}

/* The row of the scope at a place, from the cache where it is of a name alone. */
MT_INLINE int row_of(mtprof_live *live, mtprof__live_slot *s, uint32_t place, uint32_t *row)
{
    const mtprof__scope *scope = &s->slot.scopes[place];
    const mtprof__payload_store *store = scope->has_payload ? &s->slot.payloads[place] : NULL;
    if (MT_UNLIKELY(scope->thread != s->thread)) {
        enter_thread(s, scope->thread);
    }
    uint32_t at = scope->name % MTPROF__LIVE_ROW_CACHE;
    bool plain = store == NULL ||
                 (store->inputs_id == 0 && (store->payload.fields & MTPROF__HAS_MODULE) == 0);
    if (MT_LIKELY(plain && s->cache[at].string == scope->name && s->cache[at].row != 0 &&
                  s->cache[at].kind == scope->kind && scope->name != 0)) {
        *row = s->cache[at].row - 1;
        return MTPROF_OK;
    }
    return find_row(live, s, scope, store, row);
}

/* ---- edges ----------------------------------------------------------------------------------- */

/* Where the scope's credit is, or NULL. */
MT_INLINE mtprof__live_credit *credit_of(mtprof__live_slot *s, uint32_t at, uint64_t key)
{
    return at < s->n_credits && s->credits[at].key == key ? &s->credits[at] : NULL;
}

/* The row of a scope for which there was no memory: the scope is open, and its end will come. */
#define NO_ROW UINT64_MAX

MT_INLINE int begin(mtprof_live *live, mtprof__live_stream *stream)
{
    mtprof__live_slot *s = stream->thread;
    uint32_t at = s->slot.at;
    uint32_t row = 0;
    s->slot.scopes[at].user = NO_ROW;
    MT_TRY(row_of(live, s, at, &row));
    mtprof__scope *scope = &s->slot.scopes[at];
    scope->user = row;
    live->now.events++;
    live->now.events_all += stream->scale;
    if (MT_UNLIKELY(scope->start_ns < live->floor_ns)) {
        return MTPROF_OK;
    }
    if (MT_UNLIKELY(scope->kind == MTPROF_EVENT_KIND_STEP && !live->steps_told)) {
        live->now.steps += stream->scale;
    }
    live->rows[row].now.calls += stream->scale;
    return mtprof__live_touch(live, &live->rows[row]);
}

/* A scope has ended, by a record or where it was cut off. */
MT_INLINE int end(mtprof_live *live, mtprof__live_stream *stream, uint32_t at)
{
    mtprof__live_slot *s = stream->thread;
    const mtprof__scope *scope = &s->slot.scopes[at];
    mtprof__live_credit *credit = credit_of(s, at, scope->key);
    int64_t counted = credit != NULL ? credit->ns : 0;
    int64_t self = scope->self_ns;
    if (credit != NULL) {
        credit->key = 0;
    }
    if (MT_UNLIKELY(scope->end_ns < live->floor_ns || scope->user == NO_ROW)) {
        return MTPROF_OK;
    }
    mtprof__live_row *row = &live->rows[scope->user];
    if (MT_UNLIKELY(scope->start_ns < live->floor_ns) &&
        self > mtb_sub_sat(scope->end_ns, live->floor_ns)) {
        self = mtb_sub_sat(scope->end_ns, live->floor_ns); /* the rest was before the window */
    }
    row->now.ended += stream->scale;
    row->now.total_ns += stream->scale * (double)mtb_sub_sat(scope->end_ns, scope->start_ns);
    row->now.self_ns += stream->scale * (double)self - (double)counted;
    return mtprof__live_touch(live, row);
}

/* SL6: the scope belongs to another row than it seemed. */
static int late(mtprof_live *live, mtprof__live_stream *stream)
{
    mtprof__live_slot *s = stream->thread;
    uint32_t at = s->slot.at;
    uint32_t row = 0;
    MT_TRY(row_of(live, s, at, &row));
    mtprof__scope *scope = &s->slot.scopes[at];
    if (scope->user == row || scope->user == NO_ROW) {
        return MTPROF_OK;
    }
    uint32_t before = (uint32_t)scope->user;
    const mtprof__live_credit *credit = credit_of(s, at, scope->key);
    double counted = credit != NULL ? (double)credit->ns : 0;
    double calls = scope->start_ns >= live->floor_ns ? 1 : 0;
    live->rows[before].now.calls -= calls;
    live->rows[before].now.self_ns -= counted;
    live->rows[row].now.calls += calls;
    live->rows[row].now.self_ns += counted;
    scope->user = row;
    MT_TRY(mtprof__live_touch(live, &live->rows[before]));
    return mtprof__live_touch(live, &live->rows[row]);
}

/* Bytes allocated on a device: the recorder's number, 0 is the host. */
static int point(mtprof_live *live, mtprof__live_stream *stream)
{
    const mtprof__slot *slot = &stream->thread->slot;
    bool alloc = slot->record.kind == MTPROF_REC_ALLOC;
    live->now.events++;
    live->now.events_all += stream->scale;
    if (!alloc && slot->record.kind != MTPROF_REC_RESERVED) {
        return MTPROF_OK;
    }
    uint32_t number = slot->record.aux & 0xFF;
    int64_t bytes = (int64_t)slot->point_words[alloc ? 2 : 0];
    if (number == 0) {
        live->allocated = alloc ? bytes : live->allocated;
        live->allocated_most =
            live->allocated > live->allocated_most ? live->allocated : live->allocated_most;
        return MTPROF_OK;
    }
    uint32_t place = 0;
    MT_TRY(mtprof__live_device_get(live, mtprof__live_device_type(live), number - 1, &place));
    *(alloc ? &live->devices[place].allocated : &live->devices[place].reserved) = bytes;
    return MTPROF_OK;
}

static int foreign_end(mtprof_live *live, const mtprof__slot *slot)
{
    return mtb_append(live->ends, live->n_ends, live->ends_capacity,
                      &(mtprof__foreign_end){slot->record.key, slot->ns, slot->cursor.stream->slot})
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "follow trace: no memory for ends of other threads");
}

/* ---- the pass -------------------------------------------------------------------------------- */

static int pass_fast(mtprof_live *live, mtprof__live_stream *stream, int64_t limit_ns)
{
    mtprof__slot *slot = &stream->thread->slot;
    for (;;) {
        enum mtprof__fast step = mtprof__slot_fast(slot, limit_ns);
        if (MT_UNLIKELY(step == MTPROF__FAST_NONE)) {
            return MTPROF_OK;
        }
        MT_TRY(step == MTPROF__FAST_BEGIN ? begin(live, stream) : end(live, stream, slot->at));
    }
}

static int take_edge(mtprof_live *live, mtprof__live_stream *stream, enum mtprof__slot_edge edge)
{
    mtprof__slot *slot = &stream->thread->slot;
    switch (edge) {
    case MTPROF__SLOT_BEGIN: return begin(live, stream);
    case MTPROF__SLOT_END: return end(live, stream, slot->at);
    case MTPROF__SLOT_POINT: return point(live, stream);
    case MTPROF__SLOT_FOREIGN_END: return foreign_end(live, slot);
    case MTPROF__SLOT_LATE: return late(live, stream);
    default: return MTPROF_OK;
    }
}

int mtprof__live_read_slot(mtprof_live *live, mtprof__live_stream *stream, int64_t limit_ns)
{
    mtprof__live_slot *s = stream->thread;
    mtprof__slot *slot = &s->slot;
    int status = MTPROF_OK;
    while (status == MTPROF_OK) {
        enum mtprof__slot_edge edge;
        MT_TRY(pass_fast(live, stream, limit_ns));
        /* A record that was fetched before has set last_ns already. */
        s->done_ns = slot->fetched ? s->done_ns : slot->last_ns;
        status = mtprof__slot_fetch(slot);
        if (status == MTPROF_OK && slot->order_ns >= limit_ns) {
            break; /* it stays fetched */
        }
        if (status == MTPROF_OK) {
            status = mtprof__slot_apply(slot, &edge);
            if (status == MTPROF_EEND) {
                status = MTPROF_OK;
                continue;
            }
        }
        if (status == MTPROF_OK) {
            status = take_edge(live, stream, edge);
        }
    }
    if (s->done_ns > live->last_ns) {
        live->last_ns = s->done_ns;
    }
    live->damaged += slot->counts.damage.problems - s->told_damage;
    s->told_damage = slot->counts.damage.problems;
    return status == MTPROF_EEND ? MTPROF_OK : status;
}

int mtprof__live_foreign_ends(mtprof_live *live)
{
    int status = MTPROF_OK;
    for (size_t i = 0; status == MTPROF_OK && i < live->n_ends; i++) {
        const mtprof__foreign_end *e = &live->ends[i];
        uint32_t at = 0;
        for (size_t k = 0; k < live->n_streams; k++) {
            mtprof__live_stream *s = live->streams[k];
            if (s->thread != NULL && s->stream.slot == e->key >> MTPROF_ORDINAL_BITS &&
                mtprof__slot_end_foreign(&s->thread->slot, e->key, e->ns, &at)) {
                status = end(live, s, at);
                s->thread->slot.plain = false;
            }
        }
    }
    live->n_ends = 0;
    return status;
}

/* ---- what is open ---------------------------------------------------------------------------- */

/* Up to when a scope of a block counts: now, or when its epoch ended; and not before what the slot
 * has recorded. */
static int64_t limit_of(const mtprof_live *live, const mtprof__live_slot *s, uint32_t block)
{
    int64_t limit = live->now_ns;
    if (block < live->n_blocks && live->blocks[block].closed &&
        live->blocks[block].close_ns < limit) {
        limit = live->blocks[block].close_ns;
    }
    return limit > s->done_ns ? limit : s->done_ns;
}

int mtprof__live_credit_open(mtprof_live *live, mtprof__live_stream *stream)
{
    mtprof__live_slot *s = stream->thread;
    mtprof__slot *slot = &s->slot;
    int64_t inner_ns = 0; /* the open scope inside took so much up to the limit */
    /* After a hole that has no record behind it yet it is not known what is open. */
    bool known = slot->holes == slot->cursor.holes;
    for (uint32_t at = known ? slot->nest_top : MTPROF__NO_SCOPE; at != MTPROF__NO_SCOPE;
         at = slot->scopes[at].base) {
        const mtprof__scope *scope = &slot->scopes[at];
        int64_t limit = limit_of(live, s, scope->block);
        int64_t duration = mtb_sub_sat(limit, scope->start_ns);
        int64_t self = mtb_sub_sat(mtb_sub_sat(duration, scope->child_ns), inner_ns);
        inner_ns = duration;
        if (scope->user == NO_ROW) {
            continue;
        }
        if (!mtb_reach((void **)&s->credits, &s->n_credits, at, sizeof *s->credits)) {
            return mtb_fail(MTPROF_ENOMEM, "follow trace: no memory for %u open scopes", at);
        }
        mtprof__live_credit *credit = &s->credits[at];
        int64_t before = credit->key == scope->key ? credit->ns : 0;
        int64_t most = mtb_sub_sat(limit, live->floor_ns);
        self = self < most ? self : most;
        *credit = (mtprof__live_credit){scope->key, self};
        mtprof__live_row *row = &live->rows[scope->user];
        row->now.self_ns += (double)mtb_sub_sat(self, before);
        MT_TRY(mtprof__live_touch(live, row));
    }
    return MTPROF_OK;
}
