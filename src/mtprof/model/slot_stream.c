/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/slot_stream.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/model/model_impl.h"
#include "mtprof/read/cursor_fast.h"
#include "mtprof/read/reader_impl.h"

#include <string.h>

static const int64_t early_ns = 1000000;
/* Hostile builds go the long way always, so that all tests are also tests of it. */
#if defined(MT_HOSTILE) && MT_HOSTILE
static const bool slow_only = true;
#else
static const bool slow_only = false;
#endif

int mtprof__slot_init(mtprof__slot *slot, const mtprof_reader *reader, uint32_t stream,
                      const mtprof__coverage *coverage)
{
    memset(slot, 0, sizeof *slot);
    slot->reader = reader;
    slot->timebase.map = &reader->clock;
    slot->coverage = *coverage;
    slot->nest_top = MTPROF__NO_SCOPE;
    slot->block = MTPROF__NO_SCOPE;
    slot->last_ns = INT64_MIN;
    mtprof__cursor_source source = {&reader->bytes, &reader->index, &reader->info};
    mtprof__cursor_init(&slot->cursor, &source, &reader->index.streams[stream]);
    slot->key_base = (uint64_t)slot->cursor.stream->slot << MTPROF_ORDINAL_BITS;
    return MTPROF_OK;
}

void mtprof__slot_fini(mtprof__slot *slot)
{
    mtprof__cursor_fini(&slot->cursor);
    mtb_free(slot->scopes);
    mtb_free(slot->early);
    for (size_t i = 0; i < slot->n_payloads; i++) {
        mtprof__payload_fini(&slot->payloads[i]);
    }
    mtb_free(slot->payloads);
    mtprof__payload_fini(&slot->point);
    mtprof__payload_fini(&slot->scrap);
}

/* ---- records ------------------------------------------------------------------------------------
 */

/* Whether the stream goes on behind a failure; what the failure was is counted. */
static bool goes_on(mtprof__slot *slot, int status)
{
    if (status == MTPROF_ENOMEM || status == MTPROF_EEND) {
        return false;
    }
    slot->counts.problems++;
    return true;
}

/* The next record, as the cursor has it. */
static int take_record(mtprof__slot *slot, mtprof_record *record)
{
    for (;;) {
        int status = mtprof__cursor_next(&slot->cursor, record);
        if (status == MTPROF_OK || !goes_on(slot, status)) {
            return status;
        }
    }
}

static bool is_payload(uint8_t kind)
{
    return (mtprof__kind_traits(kind) & MTPROF__PAYLOAD) != 0;
}

/* Kind of the record that comes next; 0 at the end, or where there is no memory (the next call of
 * take_record() tells). */
static uint8_t peek(mtprof__slot *slot)
{
    while (slot->cursor.at == slot->cursor.n_words) {
        int status = mtprof__cursor_load(&slot->cursor);
        if (status != MTPROF_OK && !goes_on(slot, status)) {
            return 0;
        }
    }
    return mtprof__cursor_peek(&slot->cursor);
}

/*
 * Gathers the payloads that follow. A payload that belongs to nothing is passed over by the cursor,
 * which then gives what comes behind it: that record waits for the next fetch.
 */
static int gather(mtprof__slot *slot, mtprof__payload_store *store)
{
    for (;;) {
        mtprof_record record;
        bool follows = is_payload(peek(slot));
        enum mtprof__owner owner = slot->cursor.owner; /* of the chunk that peek() may have loaded */
        if (!follows || owner == MTPROF__OWNER_NONE || owner == MTPROF__OWNER_UNKNOWN) {
            return MTPROF_OK;
        }
        int status = take_record(slot, &record);
        if (status == MTPROF_EEND) {
            return MTPROF_OK;
        }
        MT_TRY(status);
        if (!is_payload(record.kind)) {
            slot->waiting = record;
            slot->has_waiting = true;
            return MTPROF_OK;
        }
        MT_TRY(mtprof__payload_add(store, slot->reader, &record));
    }
}

/* Whether the next record may be a payload: the test that most events need no more than. */
MT_INLINE bool payload_follows(mtprof__slot *slot)
{
    uint8_t kind = mtprof__cursor_peek(&slot->cursor);
    return kind != MTPROF_REC_BEGIN && kind != MTPROF_REC_END;
}

/* ---- epochs -------------------------------------------------------------------------------------
 */

/* The block of an epoch, or MTPROF__NO_SCOPE where it is not covered. */
static uint32_t find_block(const mtprof__coverage *coverage, uint32_t epoch)
{
    uint32_t known = coverage->n_blocks - (coverage->strays ? 1 : 0);
    uint32_t low = 0;
    uint32_t high = known;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (coverage->blocks[middle].epoch < epoch) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < known && coverage->blocks[low].epoch == epoch) {
        return low;
    }
    return coverage->strays ? known : MTPROF__NO_SCOPE;
}

static bool epoch_exists(const mtprof_reader *reader, uint32_t epoch)
{
    const mtprof__control_read *control = &reader->control;
    size_t low = 0;
    size_t high = control->n_epochs;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (control->epochs[middle].epoch < epoch) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < control->n_epochs && control->epochs[low].epoch == epoch;
}

static void enter_epoch(mtprof__slot *slot, uint32_t epoch)
{
    slot->epoch = epoch;
    slot->block = find_block(&slot->coverage, epoch);
    if (slot->coverage.strays && slot->block + 1 == slot->coverage.n_blocks &&
        epoch_exists(slot->reader, epoch)) {
        slot->block = MTPROF__NO_SCOPE; /* known, and left out on purpose */
    }
}

/* ---- the stack ----------------------------------------------------------------------------------
 */

void mtprof__slot_pop_ended(mtprof__slot *slot)
{
    while (slot->n > 0 && slot->scopes[slot->n - 1].ended) {
        slot->n--;
    }
    if (slot->floor > slot->n) {
        slot->floor = slot->n;
    }
}

/* A nesting scope that must stop to, because `outer` around it ends now: its children's time is
 * outer's from here on (K2). */
static void stop_nesting(mtprof__slot *slot, mtprof__scope *scope, mtprof__scope *outer)
{
    outer->child_ns += scope->child_ns;
    scope->child_ns = 0;
    scope->nests = 0;
    scope->flags |= MTPROF_EVENT_OVERLAP;
    slot->counts.overlaps++;
}

/* Takes a nesting scope out of its chain. */
static void leave_chain(mtprof__slot *slot, uint32_t at)
{
    mtprof__scope *scope = &slot->scopes[at];
    if (at >= slot->floor) {
        uint32_t inner = slot->nest_top;
        while (inner != at) { /* K2: at is on the chain */
            uint32_t next = slot->scopes[inner].base;
            stop_nesting(slot, &slot->scopes[inner], scope);
            inner = next;
        }
        slot->nest_top = scope->base;
        return;
    }
    for (uint32_t i = at + 1; i < slot->floor; i++) { /* of a thread that is gone: rare */
        mtprof__scope *inner = &slot->scopes[i];
        if (!inner->ended && inner->nests && inner->thread == scope->thread) {
            stop_nesting(slot, inner, scope);
        }
    }
}

/* Ends a scope; it is read by the consumer before the next fetch, also if it is popped here. */
static void end_scope(mtprof__slot *slot, uint32_t at, int64_t ns)
{
    mtprof__scope *scope = &slot->scopes[at];
    scope->end_ns = ns;
    scope->ended = 1;
    int64_t duration = ns - scope->start_ns;
    if (MT_LIKELY(scope->nests)) {
        if (MT_LIKELY(slot->nest_top == at)) {
            slot->nest_top = scope->base;
        } else {
            leave_chain(slot, at);
        }
        scope->self_ns = duration - scope->child_ns;
        if (scope->base != MTPROF__NO_SCOPE) {
            slot->scopes[scope->base].child_ns += duration;
        }
    } else {
        bool counts = scope->kind == MTPROF_EVENT_FUNCTION &&
                      (scope->flags & MTPROF_EVENT_ASYNC) == 0 && scope->inner_ns < duration;
        scope->self_ns = counts ? duration - scope->inner_ns : 0;
    }
    if (scope->in_function) {
        slot->scopes[scope->parent].inner_ns += duration;
    }
    slot->at = at;
    if (MT_LIKELY(at + 1 == slot->n)) {
        slot->n--;
        if (MT_UNLIKELY(slot->n > 0 && slot->scopes[slot->n - 1].ended) || slot->floor > slot->n) {
            mtprof__slot_pop_ended(slot);
        }
    }
}

static int64_t close_ns(const mtprof__slot *slot, uint32_t block)
{
    int64_t close = slot->coverage.blocks[block].close_ns;
    return close > slot->last_ns ? close : slot->last_ns;
}

/* Ends the topmost open scope where its epoch ends. */
static void truncate_top(mtprof__slot *slot)
{
    mtprof__scope *scope = &slot->scopes[slot->n - 1];
    if (scope->foreign_ns != INT64_MAX && scope->foreign_ns >= scope->start_ns) {
        end_scope(slot, slot->n - 1, scope->foreign_ns);
        return;
    }
    scope->flags |= MTPROF_EVENT_TRUNCATED;
    slot->counts.truncated++;
    end_scope(slot, slot->n - 1, close_ns(slot, scope->block));
}

/* Keys of a slot rise along the stack, but for explicit ones (nested records), which have a bit of
 * their own and are few. */
static uint32_t find_scope(const mtprof__slot *slot, uint64_t key)
{
    const uint64_t explicit_bit = (uint64_t)1 << (MTPROF_ORDINAL_BITS - 1);
    if (slot->n > 0 && slot->scopes[slot->n - 1].key == key) {
        return slot->n - 1;
    }
    if ((key & explicit_bit) == 0) {
        uint32_t low = 0;
        uint32_t high = slot->n;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            uint32_t plain = middle; /* the nearest at or below with a counted key */
            while (plain > low && (slot->scopes[plain].key & explicit_bit) != 0) {
                plain--;
            }
            if ((slot->scopes[plain].key & explicit_bit) == 0 && slot->scopes[plain].key == key) {
                return slot->scopes[plain].ended ? MTPROF__NO_SCOPE : plain;
            }
            if ((slot->scopes[plain].key & explicit_bit) != 0 || slot->scopes[plain].key < key) {
                low = middle + 1;
            } else {
                high = plain;
            }
        }
        return MTPROF__NO_SCOPE;
    }
    for (uint32_t at = slot->n; at-- > 0;) {
        if (slot->scopes[at].key == key && !slot->scopes[at].ended) {
            return at;
        }
    }
    return MTPROF__NO_SCOPE;
}

static MT_COLD int grow_stack(mtprof__slot *slot)
{
    size_t capacity = slot->capacity;
    if (slot->n == MTPROF__NO_SCOPE - 1 ||
        !mtb_grow((void **)&slot->scopes, &capacity, (size_t)slot->n + 1, sizeof *slot->scopes)) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for %u open scopes", slot->n + 1);
    }
    slot->capacity = capacity;
    return MTPROF_OK;
}

static const mtprof__foreign_end *find_foreign(const mtprof__slot *slot, uint64_t key)
{
    size_t low = 0;
    size_t high = slot->n_foreign;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slot->foreign[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < slot->n_foreign && slot->foreign[low].key == key ? &slot->foreign[low] : NULL;
}

/* Whether another slot has ended the scope by the time of the record at hand (second pass). */
static bool ended_elsewhere(const mtprof__slot *slot, const mtprof__scope *scope)
{
    return scope->foreign_ns < slot->ns ||
           (scope->foreign_ns == slot->ns && !scope->foreign_later);
}

/* What a function remembers is nearly always still open; if not, the stack below it is searched. */
uint32_t mtprof__slot_outside(const mtprof__slot *slot, uint32_t at)
{
    if (at == MTPROF__NO_SCOPE || slot->scopes[at].kind != MTPROF_EVENT_FUNCTION) {
        return at;
    }
    at = slot->scopes[at].outer;
    while (at != MTPROF__NO_SCOPE && (slot->scopes[at].kind == MTPROF_EVENT_FUNCTION ||
                                      slot->scopes[at].ended ||
                                      ended_elsewhere(slot, &slot->scopes[at]))) {
        at = at > slot->floor ? at - 1 : MTPROF__NO_SCOPE;
    }
    return at;
}

/* Who is around a scope that begins now. `named` is the parent's key, all ones: nobody is named. */
static void find_parents(mtprof__slot *slot, mtprof__scope *scope, uint64_t named)
{
    scope->parent = slot->n > slot->floor ? slot->n - 1 : MTPROF__NO_SCOPE;
    if (MT_UNLIKELY(named != MTPROF_KEY_STRUCTURE)) {
        scope->parent = named != 0 ? find_scope(slot, named) : MTPROF__NO_SCOPE;
        scope->parent_key = named != 0 && scope->parent == MTPROF__NO_SCOPE ? named : 0;
    }
    scope->outer = mtprof__slot_outside(slot, scope->parent);
    scope->in_function = scope->parent != MTPROF__NO_SCOPE &&
                         slot->scopes[scope->parent].kind == MTPROF_EVENT_FUNCTION;
}

/* A scope that begins, and of which it is known that another slot ends it. */
static void expect_end(const mtprof__slot *slot, mtprof__scope *scope)
{
    const mtprof__foreign_end *end = find_foreign(slot, scope->key);
    for (size_t i = 0; end == NULL && i < slot->n_early; i++) {
        end = slot->early[i].key == scope->key ? &slot->early[i] : NULL;
    }
    if (end != NULL) {
        scope->foreign_ns = end->ns > scope->start_ns ? end->ns : scope->start_ns;
        scope->foreign_later = end->slot > slot->cursor.stream->slot;
        scope->flags |= MTPROF_EVENT_ASYNC;
    }
}

static int begin_scope(mtprof__slot *slot, uint64_t named)
{
    const mtprof_record *record = &slot->record;
    if (MT_UNLIKELY(slot->n == slot->capacity)) {
        MT_TRY(grow_stack(slot));
    }
    uint32_t at = slot->n;
    mtprof__scope *scope = &slot->scopes[at];
    scope->key = record->key;
    scope->parent_key = 0;
    scope->start_ns = slot->ns;
    scope->end_ns = slot->ns;
    scope->self_ns = 0;
    scope->child_ns = 0;
    scope->inner_ns = 0;
    scope->foreign_ns = INT64_MAX;
    scope->foreign_later = 0;
    scope->name = record->arg;
    scope->thread = slot->thread;
    scope->block = slot->block;
    scope->kind = (uint8_t)(record->aux & MTPROF_KIND_MASK);
    scope->flags =
        (uint16_t)(((record->aux & MTPROF_FLAG_ASYNC) != 0 ? MTPROF_EVENT_ASYNC : 0) |
                   ((record->aux & MTPROF_FLAG_DEVICE) != 0 ? MTPROF_EVENT_DISPATCHED : 0) |
                   ((record->aux & MTPROF_FLAG_LAUNCH) != 0 ? MTPROF_EVENT_LAUNCHES : 0));
    scope->ended = 0;
    scope->has_payload = 0;
    scope->shown = scope->made = 0;
    find_parents(slot, scope, named);
    if (MT_UNLIKELY(slot->n_foreign + slot->n_early > 0)) {
        expect_end(slot, scope);
    }
    scope->nests =
        (scope->flags & MTPROF_EVENT_ASYNC) == 0 && scope->kind != MTPROF_EVENT_FUNCTION;
    scope->base = slot->nest_top;
    if (scope->nests) {
        slot->nest_top = at;
        scope->flags |= scope->base == MTPROF__NO_SCOPE ? MTPROF_EVENT_TOP : 0;
    }
    slot->n++;
    slot->at = at;
    return MTPROF_OK;
}

/* ---- payloads of scopes -------------------------------------------------------------------------
 */

/* The payload store of a place on the stack, emptied for its scope where it has none yet. */
static int open_payload(mtprof__slot *slot, uint32_t at, mtprof__payload_store **store)
{
    if (at >= slot->n_payloads) {
        size_t capacity = slot->payloads_capacity;
        if (!mtb_grow((void **)&slot->payloads, &capacity, (size_t)at + 1,
                      sizeof *slot->payloads)) {
            return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for the payload of an event");
        }
        slot->payloads_capacity = capacity;
        memset(slot->payloads + slot->n_payloads, 0,
               (capacity - slot->n_payloads) * sizeof *slot->payloads);
        slot->n_payloads = capacity;
    }
    *store = &slot->payloads[at];
    if (!slot->scopes[at].has_payload) {
        mtprof__payload_reset(*store);
        slot->scopes[at].has_payload = 1;
    }
    return MTPROF_OK;
}

/* Takes apart the record at the cursor if it is one of the common payloads of a begin or end, with
 * the checks that mtprof__cursor_next() makes of it; its length, 0: it is something else. */
static size_t split_payload(const mtprof_cursor *cursor, mtprof_record *record)
{
    const uint64_t *words = mtprof__cursor_words(cursor);
    bool of_begin = cursor->owner == MTPROF__OWNER_BEGIN;
    record->word = words[0];
    record->kind = (uint8_t)words[0];
    record->aux = (uint16_t)(words[0] >> 16);
    switch (record->kind) {
    case MTPROF_REC_INPUTS:
    case MTPROF_REC_STACK:
    case MTPROF_REC_MEM_BEFORE: return of_begin ? 1 : 0;
    case MTPROF_REC_MEM_AFTER: return of_begin ? 0 : 1;
    case MTPROF_REC_SCALARS:
    case MTPROF_REC_OPINFO: break;
    default: return 0;
    }
    size_t length = words[0] >> 8 & 0xFF;
    size_t needed = record->kind == MTPROF_REC_SCALARS
                        ? record->aux
                        : (size_t)__builtin_popcount(record->aux);
    if (!of_begin || length == 0xFF || needed + 1 > length ||
        length > cursor->n_words - cursor->at) {
        return 0;
    }
    record->words = words + 1;
    record->n_words = (uint32_t)length - 1;
    return length;
}

static int gather_fast(mtprof__slot *slot, mtprof__payload_store *store)
{
    mtprof_cursor *cursor = &slot->cursor;
    while (cursor->at < cursor->n_words) {
        mtprof_record record;
        size_t length = split_payload(cursor, &record);
        if (length == 0) {
            return MTPROF_OK;
        }
        MT_TRY(mtprof__payload_add(store, slot->reader, &record));
        cursor->at += length;
    }
    return MTPROF_OK;
}

static int gather_scope(mtprof__slot *slot, uint32_t at)
{
    mtprof__payload_store *store = NULL;
    if (!is_payload(peek(slot))) {
        return MTPROF_OK;
    }
    MT_TRY(open_payload(slot, at, &store));
    enum mtprof__owner owner = slot->cursor.owner;
    if (MT_LIKELY(owner == MTPROF__OWNER_BEGIN || owner == MTPROF__OWNER_END)) {
        MT_TRY(gather_fast(slot, store));
        if (MT_LIKELY(slot->cursor.at < slot->cursor.n_words &&
                      !is_payload(mtprof__cursor_peek(&slot->cursor)))) {
            return MTPROF_OK;
        }
    }
    return gather(slot, store);
}

mtprof__payload_store *mtprof__slot_payload(mtprof__slot *slot, uint32_t at)
{
    return slot->scopes[at].has_payload ? &slot->payloads[at] : NULL;
}

uint32_t mtprof__slot_owner(const mtprof__slot *slot)
{
    return mtprof__slot_outside(slot, slot->n > slot->floor ? slot->n - 1 : MTPROF__NO_SCOPE);
}

/* ---- fetch --------------------------------------------------------------------------------------
 */

/* Sets the time of the fetched record, and what its edge is sorted by. */
MT_INLINE void set_time(mtprof__slot *slot)
{
    int64_t ns = mtprof__timebase_ns(&slot->timebase, slot->record.ticks);
    if (MT_UNLIKELY(ns < slot->last_ns)) {
        slot->counts.clock_back++;
        ns = slot->last_ns;
    }
    slot->ns = slot->last_ns = ns;
    slot->order_ns = ns;
    slot->order_block = slot->block;
}

/* Before an epoch's records, or the end: what is still open comes first, at its epoch's close. */
static void order_before_flush(mtprof__slot *slot)
{
    const mtprof__scope *top = &slot->scopes[slot->n - 1];
    slot->order_block = top->block;
    slot->order_ns = close_ns(slot, top->block);
}

static int fetch_end(mtprof__slot *slot)
{
    slot->at_end = true;
    if (slot->n == 0) {
        return MTPROF_EEND;
    }
    order_before_flush(slot);
    slot->fetched = true;
    return MTPROF_OK;
}

static bool is_timed(uint8_t kind)
{
    return (mtprof__kind_traits(kind) & MTPROF__TICKS) != 0 || kind == MTPROF_REC_END ||
           kind == MTPROF_REC_ALLOC;
}

/* A chunk whose predecessor is missing may be of another epoch or thread. */
static bool epoch_changes(const mtprof__slot *slot)
{
    return slot->record.epoch != slot->epoch && slot->n > 0;
}

static int fetch_slow(mtprof__slot *slot)
{
    for (;;) {
        if (slot->has_waiting) {
            slot->record = slot->waiting;
            slot->has_waiting = false;
        } else if (!slot->fetched) {
            int status = take_record(slot, &slot->record);
            if (status == MTPROF_EEND) {
                return fetch_end(slot);
            }
            MT_TRY(status);
        }
        slot->fetched = true;
        if (epoch_changes(slot)) {
            order_before_flush(slot);
            return MTPROF_OK;
        }
        if (slot->record.epoch != slot->epoch || slot->block == MTPROF__NO_SCOPE) {
            enter_epoch(slot, slot->record.epoch);
        }
        if (slot->record.thread != slot->thread) {
            slot->thread = slot->record.thread;
            slot->floor = slot->n; /* K3 */
            slot->nest_top = MTPROF__NO_SCOPE;
        }
        if (slot->block != MTPROF__NO_SCOPE) {
            break;
        }
        slot->fetched = false;
    }
    if (is_timed(slot->record.kind)) {
        set_time(slot);
    } else {
        slot->order_ns = slot->ns = slot->last_ns;
        slot->order_block = slot->block;
    }
    return MTPROF_OK;
}

int mtprof__slot_fetch(mtprof__slot *slot)
{
    slot->plain = false;
    MT_TRY(slot->status);
    if (MT_UNLIKELY(slot->fetched || slot->at_end || slot->has_waiting)) {
        return slot->at_end ? fetch_end(slot) : fetch_slow(slot);
    }
    /* Only in the epoch and thread at hand: others are the slow path's. */
    if (MT_LIKELY(slot->cursor.epoch == slot->epoch && slot->cursor.thread == slot->thread &&
                  slot->block != MTPROF__NO_SCOPE) &&
        (mtprof__cursor_take_end(&slot->cursor, &slot->record) ||
         mtprof__cursor_take_begin(&slot->cursor, &slot->record))) {
        slot->fetched = true;
        set_time(slot);
        return MTPROF_OK;
    }
    return fetch_slow(slot);
}

/* ---- apply --------------------------------------------------------------------------------------
 */

static int apply_begin(mtprof__slot *slot, uint64_t named, enum mtprof__slot_edge *edge)
{
    slot->fetched = false;
    MT_TRY(begin_scope(slot, named));
    if (MT_UNLIKELY(payload_follows(slot))) {
        uint32_t at = slot->at;
        MT_TRY(gather_scope(slot, at));
        slot->at = at;
    }
    *edge = MTPROF__SLOT_BEGIN;
    return MTPROF_OK;
}

/* An end that names nothing open here. */
static int apply_stray_end(mtprof__slot *slot, enum mtprof__slot_edge *edge)
{
    bool foreign = slot->record.kind == MTPROF_REC_END_X &&
                   slot->record.key >> MTPROF_ORDINAL_BITS != slot->cursor.stream->slot;
    slot->counts.ends_without_begin += !foreign;
    mtprof__payload_reset(&slot->scrap);
    MT_TRY(gather(slot, &slot->scrap));
    *edge = MTPROF__SLOT_FOREIGN_END;
    return foreign ? MTPROF_OK : MTPROF_EEND;
}

static int apply_end(mtprof__slot *slot, enum mtprof__slot_edge *edge)
{
    uint32_t at = find_scope(slot, slot->record.key);
    int64_t ns = slot->ns;
    slot->fetched = false;
    if (MT_UNLIKELY(at == MTPROF__NO_SCOPE || slot->scopes[at].ended)) {
        return apply_stray_end(slot, edge);
    }
    if (MT_UNLIKELY(payload_follows(slot))) {
        MT_TRY(gather_scope(slot, at));
    }
    end_scope(slot, at, ns);
    *edge = MTPROF__SLOT_END;
    return MTPROF_OK;
}

static int apply_attach(mtprof__slot *slot)
{
    uint32_t at = find_scope(slot, slot->record.words[0]);
    slot->fetched = false;
    if (at != MTPROF__NO_SCOPE && !slot->scopes[at].ended) {
        MT_TRY(gather_scope(slot, at));
        return MTPROF_EEND;
    }
    mtprof__payload_reset(&slot->scrap);
    MT_TRY(gather(slot, &slot->scrap));
    return MTPROF_EEND;
}

/* The record's words live in the chunk, and gathering may bring another one in. */
static int apply_point(mtprof__slot *slot, enum mtprof__slot_edge *edge)
{
    const mtprof_record *record = &slot->record;
    for (uint32_t i = 0; i < MT_COUNT(slot->point_words); i++) {
        slot->point_words[i] = i < record->n_words ? record->words[i] : 0;
    }
    slot->record.words = slot->point_words;
    slot->fetched = false;
    mtprof__payload_reset(&slot->point);
    if ((mtprof__kind_traits(record->kind) & MTPROF__BEGIN_OWNER) != 0) {
        MT_TRY(gather(slot, &slot->point));
    }
    slot->at = slot->n > slot->floor ? slot->n - 1 : MTPROF__NO_SCOPE;
    *edge = MTPROF__SLOT_POINT;
    return MTPROF_OK;
}

static int apply_other(mtprof__slot *slot, enum mtprof__slot_edge *edge)
{
    switch (slot->record.kind) {
    case MTPROF_REC_BEGIN: return apply_begin(slot, MTPROF_KEY_STRUCTURE, edge);
    case MTPROF_REC_BEGIN_X: return apply_begin(slot, slot->record.words[2], edge);
    case MTPROF_REC_END:
    case MTPROF_REC_END_X: return apply_end(slot, edge);
    case MTPROF_REC_ATTACH: return apply_attach(slot);
    case MTPROF_REC_INSTANT:
    case MTPROF_REC_COUNTER:
    case MTPROF_REC_FLOW:
    case MTPROF_REC_LAUNCH:
    case MTPROF_REC_ALLOC:
    case MTPROF_REC_RESERVED: return apply_point(slot, edge);
    default: slot->fetched = false; return MTPROF_EEND;
    }
}

static int apply(mtprof__slot *slot, enum mtprof__slot_edge *edge)
{
    if (MT_UNLIKELY(slot->at_end || slot->record.epoch != slot->epoch)) {
        if (slot->n == 0) {
            return MTPROF_EEND; /* another slot has ended what was open meanwhile */
        }
        truncate_top(slot);
        *edge = MTPROF__SLOT_END;
        return MTPROF_OK;
    }
    if (MT_UNLIKELY(slot->n_foreign + slot->n_early > 0) && slot->n > slot->floor &&
        ended_elsewhere(slot, &slot->scopes[slot->n - 1])) {
        end_scope(slot, slot->n - 1, slot->scopes[slot->n - 1].foreign_ns);
        *edge = MTPROF__SLOT_END;
        return MTPROF_OK;
    }
    if (MT_LIKELY(slot->record.kind == MTPROF_REC_END)) {
        return apply_end(slot, edge);
    }
    return apply_other(slot, edge);
}

int mtprof__slot_expect_end(mtprof__slot *slot, const mtprof__foreign_end *end)
{
    if (!mtb_grow((void **)&slot->early, &slot->early_capacity, slot->n_early + 1,
                  sizeof *slot->early)) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for ends of other threads");
    }
    slot->early[slot->n_early++] = *end;
    slot->plain = false;
    return MTPROF_OK;
}

/* Ends that have waited for long enough. Those of scopes that are open stay: they are due later. */
static void forget_early(mtprof__slot *slot)
{
    size_t kept = 0;
    for (size_t i = 0; i < slot->n_early; i++) {
        bool open = find_scope(slot, slot->early[i].key) != MTPROF__NO_SCOPE;
        if (open || slot->early[i].ns >= slot->last_ns - early_ns) {
            slot->early[kept++] = slot->early[i];
        }
    }
    slot->n_early = kept;
}

static void set_plain(mtprof__slot *slot)
{
    if (MT_UNLIKELY(slot->n_early > 0)) {
        forget_early(slot);
    }
    slot->plain = !slot->fetched && !slot->has_waiting && !slot->at_end && slot->n_foreign == 0 &&
                  slot->n_early == 0 &&
                  slot->status == MTPROF_OK && slot->block != MTPROF__NO_SCOPE &&
                  slot->cursor.epoch == slot->epoch && slot->cursor.thread == slot->thread &&
                  !slow_only;
}

int mtprof__slot_apply(mtprof__slot *slot, enum mtprof__slot_edge *edge)
{
    int status = apply(slot, edge);
    set_plain(slot);
    return status;
}

void mtprof__slot_gather(mtprof__slot *slot, uint32_t at)
{
    slot->status = gather_scope(slot, at);
    set_plain(slot);
}

uint32_t mtprof__slot_find(const mtprof__slot *slot, uint64_t key)
{
    return find_scope(slot, key);
}

bool mtprof__slot_end_foreign(mtprof__slot *slot, uint64_t key, int64_t ns, uint32_t *at)
{
    *at = find_scope(slot, key);
    if (*at == MTPROF__NO_SCOPE || slot->scopes[*at].ended) {
        return false;
    }
    mtprof__scope *scope = &slot->scopes[*at];
    scope->flags |= MTPROF_EVENT_ASYNC;
    end_scope(slot, *at, ns > scope->start_ns ? ns : scope->start_ns);
    return true;
}
