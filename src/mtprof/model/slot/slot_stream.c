/* SPDX-License-Identifier: Apache-2.0
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/model/model_impl.h"
#include "mtprof/model/slot/slot_stack.h"
#include "mtprof/read/reader_impl.h"

#include <string.h>

/* Hostile builds go the long way always, so that all tests are also tests of it. */
#if defined(MT_HOSTILE) && MT_HOSTILE
static const bool slow_only = true;
#else
static const bool slow_only = false;
#endif

void mtprof__slot_init_on(mtprof__slot *slot, const mtprof_reader *reader,
                          mtprof__read_stream *stream, const mtprof__coverage *coverage)
{
    memset(slot, 0, sizeof *slot);
    slot->reader = reader;
    slot->timebase.map = &reader->clock;
    slot->coverage = *coverage;
    slot->nest_top = MTPROF__NO_SCOPE;
    slot->block = MTPROF__NO_SCOPE;
    slot->last_ns = INT64_MIN;
    mtprof__cursor_source source = {&reader->bytes, &reader->index, &reader->info};
    mtprof__cursor_init(&slot->cursor, &source, stream);
    slot->key_base = mtprof__slot_bits(slot->cursor.stream->slot);
}

int mtprof__slot_init(mtprof__slot *slot, const mtprof_reader *reader, uint32_t stream,
                      const mtprof__coverage *coverage)
{
    mtprof__slot_init_on(slot, reader, &reader->index.streams[stream], coverage);
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

/* ---- records --------------------------------------------------------------------------------- */

/* Whether the stream goes on after a failure; what the failure was is counted. */
static bool goes_on(mtprof__slot *slot, int status)
{
    if (status == MTPROF_ENOMEM || status == MTPROF_EEND) {
        return false;
    }
    if (!slot->cursor.told) {
        int64_t offset = mtb_last_failure()->offset;
        mtprof__damage_add(&slot->counts.damage, offset < 0 ? 0 : (uint64_t)offset,
                           slot->cursor.lost_bytes);
    }
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
 * take_record() reports it). */
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
 * Gathers the payloads that follow. The cursor skips a payload that belongs to nothing and returns
 * the record after it: that one waits for the next fetch.
 */
static int gather(mtprof__slot *slot, mtprof__payload_store *store)
{
    for (;;) {
        mtprof_record record;
        bool follows = is_payload(peek(slot));
        enum mtprof__owner owner =
            slot->cursor.owner; /* of the chunk that peek() may have loaded */
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

/* Whether the next record may be a payload: for most events the only test. */
MT_INLINE bool payload_follows(mtprof__slot *slot)
{
    uint8_t kind = mtprof__cursor_peek(&slot->cursor);
    return kind != MTPROF_REC_BEGIN && kind != MTPROF_REC_END;
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static bool is_earlier(const void *block, uint64_t epoch)
{
    return ((const mtprof__epoch_block *)block)->epoch < epoch;
}

/* The block of an epoch, or MTPROF__NO_SCOPE where it is not covered. */
static uint32_t find_block(const mtprof__coverage *coverage, uint32_t epoch)
{
    uint32_t known = coverage->n_blocks - (coverage->strays ? 1 : 0);
    uint32_t low =
        (uint32_t)mtb_search(coverage->blocks, known, sizeof *coverage->blocks, is_earlier, epoch);
    if (low < known && coverage->blocks[low].epoch == epoch) {
        return low;
    }
    return coverage->strays ? known : MTPROF__NO_SCOPE;
}

static void enter_epoch(mtprof__slot *slot, uint32_t epoch)
{
    slot->epoch = epoch;
    slot->block = find_block(&slot->coverage, epoch);
    if (slot->coverage.strays && slot->block + 1 == slot->coverage.n_blocks &&
        mtprof__control_find_epoch(&slot->reader->control, epoch) != NULL) {
        slot->block = MTPROF__NO_SCOPE; /* known, and left out on purpose */
    }
}

/* ---- payloads of scopes ---------------------------------------------------------------------- */

/* The payload store of a place on the stack, emptied for its scope where it has none yet. */
static int open_payload(mtprof__slot *slot, uint32_t at, mtprof__payload_store **store)
{
    if (!mtb_reach((void **)&slot->payloads, &slot->n_payloads, at, sizeof *slot->payloads)) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for the payload of an event");
    }
    *store = &slot->payloads[at];
    if (!slot->scopes[at].has_payload) {
        mtprof__payload_reset(*store);
        slot->scopes[at].has_payload = 1;
    }
    return MTPROF_OK;
}

/*
 * The usual case of a begin or end: its payloads are in the current chunk, and another begin or end
 * follows. False: there is more to gather, or *status failed.
 */
MT_INLINE bool gather_usual(mtprof__slot *slot, uint32_t at, int *status)
{
    mtprof_cursor *cursor = &slot->cursor;
    bool of_begin = cursor->owner == MTPROF__OWNER_BEGIN;
    if (MT_UNLIKELY(cursor->at == cursor->n_words || at >= slot->n_payloads ||
                    (!of_begin && cursor->owner != MTPROF__OWNER_END))) {
        return false;
    }
    mtprof__payload_store *store = &slot->payloads[at];
    size_t taken = 0;
    if (!slot->scopes[at].has_payload) {
        mtprof__payload_reset(store);
    }
    *status = mtprof__payload_take(store, slot->reader, mtprof__cursor_words(cursor),
                                   cursor->n_words - cursor->at, of_begin, &taken);
    cursor->at += taken;
    slot->scopes[at].has_payload |= taken > 0;
    uint8_t next = mtprof__cursor_peek(cursor); /* 0: the chunk is used up */
    return *status == MTPROF_OK && (next == MTPROF_REC_BEGIN || next == MTPROF_REC_END);
}

/* Whether an ATTACH for the scope comes next: its payloads did not fit into the chunk before. */
static bool continues(mtprof__slot *slot, uint32_t at)
{
    const mtprof_cursor *cursor = &slot->cursor;
    return !slot->has_waiting && peek(slot) == MTPROF_REC_ATTACH &&
           cursor->n_words - cursor->at >= 2 &&
           mtprof__cursor_words(cursor)[1] == slot->scopes[at].key;
}

static int gather_scope(mtprof__slot *slot, uint32_t at)
{
    mtprof__payload_store *store = NULL;
    int status = MTPROF_OK;
    bool of_begin = slot->cursor.owner == MTPROF__OWNER_BEGIN;
    if (gather_usual(slot, at, &status) || status != MTPROF_OK) {
        return status;
    }
    if (is_payload(peek(slot))) {
        MT_TRY(open_payload(slot, at, &store));
        MT_TRY(gather(slot, store));
    }
    while (of_begin && continues(slot, at)) {
        mtprof_record attach;
        status = take_record(slot, &attach);
        if (status != MTPROF_OK || attach.kind != MTPROF_REC_ATTACH) {
            slot->waiting = attach; /* the record there was damaged */
            slot->has_waiting = status == MTPROF_OK;
            return status == MTPROF_EEND ? MTPROF_OK : status;
        }
        MT_TRY(open_payload(slot, at, &store));
        MT_TRY(gather(slot, store));
    }
    return MTPROF_OK;
}

/* ---- fetch ----------------------------------------------------------------------------------- */

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

/* Before an epoch's records, a hole (SL5) or the end: what is still open comes first, when it was
 * cut off. */
static void order_before_flush(mtprof__slot *slot)
{
    const mtprof__scope *top = &slot->scopes[slot->n - 1];
    slot->order_block = top->block;
    slot->order_ns = mtprof__slot_close_ns(slot, top->block);
}

/* SL5: whether records are missing before the current one, and something is open. */
static bool at_hole(mtprof__slot *slot)
{
    if (MT_LIKELY(slot->holes == slot->cursor.holes)) {
        return false;
    }
    if (slot->n > 0) {
        return true;
    }
    slot->holes = slot->cursor.holes;
    return false;
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
                return slot->cursor.follow ? status : fetch_end(slot); /* SL6 */
            }
            MT_TRY(status);
        }
        if (slot->record.kind == MTPROF_REC_LOST && slot->record.aux != MTPROF_LOST_DAMAGE) {
            slot->fetched = false; /* it reports no hole, so scopes ignore it */
            continue;
        }
        slot->fetched = true;
        if (at_hole(slot) || epoch_changes(slot)) {
            order_before_flush(slot);
            return MTPROF_OK;
        }
        if (slot->record.epoch != slot->epoch || slot->block == MTPROF__NO_SCOPE) {
            enter_epoch(slot, slot->record.epoch);
        }
        if (slot->record.thread != slot->thread) {
            slot->thread = slot->record.thread;
            slot->floor = slot->n; /* SL3 */
            slot->nest_top = MTPROF__NO_SCOPE;
        }
        if (slot->block != MTPROF__NO_SCOPE) {
            break;
        }
        slot->fetched = false;
    }
    if (mtprof__kind_is_timed(slot->record.kind)) {
        set_time(slot);
    } else {
        slot->order_ns = slot->ns = slot->last_ns;
        slot->order_block = slot->block;
    }
    return MTPROF_OK;
}

/* Takes a BEGIN or END that needs no second look off the chunk; false: the cursor has to. */
MT_INLINE bool take_edge(mtprof__slot *slot)
{
    const uint32_t flags =
        MTPROF_FLAG_LAUNCH | MTPROF_FLAG_DEVICE | MTPROF_FLAG_PAYLOAD | MTPROF_FLAG_ASYNC;
    mtprof_cursor *cursor = &slot->cursor;
    mtprof_record *record = &slot->record;
    size_t left = cursor->n_words - cursor->at;
    if (left == 0) {
        return false;
    }
    const uint64_t *words = mtprof__cursor_words(cursor);
    uint64_t distance = mtprof__end_distance(words[0]);
    if (mtprof__is_end(words[0]) && distance - 1 < cursor->next_ordinal) {
        record->aux = 0;
        record->arg = 0;
        record->ticks = mtprof__end_ticks(words[0], cursor->reference);
        record->key = slot->key_base | (cursor->next_ordinal - distance);
        cursor->owner = MTPROF__OWNER_END;
        cursor->at += 1;
    } else if (mtprof__is_begin(words[0], flags) && left >= 2 &&
               mtprof__is_counted(cursor->next_ordinal)) {
        record->aux = (uint16_t)(words[0] >> 16);
        record->arg = (uint32_t)(words[0] >> 32);
        record->ticks = cursor->reference = words[1];
        record->key = slot->key_base | cursor->next_ordinal++;
        cursor->owner = MTPROF__OWNER_BEGIN;
        cursor->at += 2;
    } else {
        return false;
    }
    record->kind = (uint8_t)words[0];
    record->epoch = cursor->epoch;
    record->thread = cursor->thread;
    cursor->owner_arg = record->arg;
    return true;
}

int mtprof__slot_fetch(mtprof__slot *slot)
{
    slot->plain = false;
    if (MT_UNLIKELY(slot->status != MTPROF_OK)) {
        int status = slot->status;
        slot->status = slot->cursor.follow ? MTPROF_OK : status; /* SL6: the next fetch goes on */
        return status;
    }
    if (MT_UNLIKELY(slot->fetched || slot->at_end || slot->has_waiting)) {
        return slot->at_end ? fetch_end(slot) : fetch_slow(slot);
    }
    /* Only in the current epoch and thread: others take the slow path. */
    if (MT_LIKELY(slot->cursor.epoch == slot->epoch && slot->cursor.thread == slot->thread &&
                  slot->block != MTPROF__NO_SCOPE && slot->cursor.holes == slot->holes) &&
        take_edge(slot)) {
        slot->fetched = true;
        set_time(slot);
        return MTPROF_OK;
    }
    return fetch_slow(slot);
}

/* ---- apply ----------------------------------------------------------------------------------- */

static int apply_begin(mtprof__slot *slot, uint64_t named, enum mtprof__slot_edge *edge)
{
    slot->fetched = false;
    MT_TRY(mtprof__slot_begin_scope(slot, named));
    if (MT_UNLIKELY(payload_follows(slot))) {
        uint32_t at = slot->at;
        MT_TRY(gather_scope(slot, at));
        slot->at = at;
    }
    *edge = MTPROF__SLOT_BEGIN;
    return MTPROF_OK;
}

/*
 * Whether the scope was begun by an earlier thread of the same slot. Its end is handled, and
 * reported, like an end by another slot; in the second pass the end is known from the start.
 */
static bool is_of_gone_thread(const mtprof__slot *slot, const mtprof__scope *scope)
{
    return scope->thread != slot->thread && scope->foreign_ns == INT64_MAX &&
           (scope->flags & MTPROF_EVENT_FLAG_ASYNC) == 0;
}

/* An end that names nothing open here, or (foreign) not this thread's. */
static int apply_stray_end(mtprof__slot *slot, bool foreign, enum mtprof__slot_edge *edge)
{
    slot->counts.ends_without_begin += !foreign;
    mtprof__payload_reset(&slot->scrap);
    MT_TRY(gather(slot, &slot->scrap));
    *edge = MTPROF__SLOT_FOREIGN_END;
    return foreign ? MTPROF_OK : MTPROF_EEND;
}

static int apply_end(mtprof__slot *slot, enum mtprof__slot_edge *edge)
{
    uint32_t at = mtprof__slot_find(slot, slot->record.key);
    int64_t ns = slot->ns;
    slot->fetched = false;
    if (MT_UNLIKELY(at == MTPROF__NO_SCOPE || slot->scopes[at].ended)) {
        return apply_stray_end(slot,
                               slot->record.kind == MTPROF_REC_END_X &&
                                   slot->record.key >> MTPROF_ORDINAL_BITS !=
                                       slot->cursor.stream->slot,
                               edge);
    }
    if (MT_UNLIKELY(at < slot->floor && is_of_gone_thread(slot, &slot->scopes[at]))) {
        return apply_stray_end(slot, true, edge);
    }
    if (MT_UNLIKELY(payload_follows(slot))) {
        MT_TRY(gather_scope(slot, at));
    }
    mtprof__slot_end_scope(slot, at, ns);
    *edge = MTPROF__SLOT_END;
    return MTPROF_OK;
}

static int apply_attach(mtprof__slot *slot)
{
    uint32_t at = mtprof__slot_find(slot, slot->record.words[0]);
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
    if (record->kind == MTPROF_REC_INSTANT) {
        slot->instant_at = slot->cursor.next_ordinal;
    }
    mtprof__payload_reset(&slot->point);
    if ((mtprof__kind_traits(record->kind) & MTPROF__BEGIN_OWNER) != 0) {
        MT_TRY(gather(slot, &slot->point));
    }
    slot->at = slot->n > slot->floor ? slot->n - 1 : MTPROF__NO_SCOPE;
    *edge = MTPROF__SLOT_POINT;
    return MTPROF_OK;
}

/* SL6: a payload whose begin was the last record when the stream was read before. That begin is the
 * innermost scope, and has the last ordinal. */
static int apply_late(mtprof__slot *slot, enum mtprof__slot_edge *edge)
{
    uint32_t at = slot->n - 1;
    mtprof__payload_store *store = NULL;
    slot->fetched = false;
    if (!slot->cursor.follow || slot->cursor.owner != MTPROF__OWNER_BEGIN ||
        slot->n <= slot->floor ||
        slot->scopes[at].key != (slot->key_base | (slot->cursor.next_ordinal - 1)) ||
        slot->instant_at == slot->cursor.next_ordinal) {
        return MTPROF_EEND;
    }
    MT_TRY(open_payload(slot, at, &store));
    MT_TRY(mtprof__payload_add(store, slot->reader, &slot->record));
    MT_TRY(gather_scope(slot, at));
    slot->at = at;
    *edge = MTPROF__SLOT_LATE;
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
    case MTPROF_REC_OUT_OF_MEMORY:
    case MTPROF_REC_RESERVED: return apply_point(slot, edge);
    default:
        if (is_payload(slot->record.kind)) {
            return apply_late(slot, edge);
        }
        slot->fetched = false;
        return MTPROF_EEND;
    }
}

static int apply(mtprof__slot *slot, enum mtprof__slot_edge *edge)
{
    if (MT_UNLIKELY(slot->at_end || slot->record.epoch != slot->epoch ||
                    slot->holes != slot->cursor.holes)) {
        if (slot->n == 0) {
            return MTPROF_EEND; /* another slot has ended what was open meanwhile */
        }
        mtprof__slot_truncate_top(slot);
        *edge = MTPROF__SLOT_END;
        return MTPROF_OK;
    }
    if (MT_UNLIKELY(slot->n_foreign + slot->n_early > 0) && slot->n > slot->floor &&
        mtprof__slot_ended_elsewhere(slot, &slot->scopes[slot->n - 1])) {
        mtprof__slot_end_scope(slot, slot->n - 1, slot->scopes[slot->n - 1].foreign_ns);
        *edge = MTPROF__SLOT_END;
        return MTPROF_OK;
    }
    if (MT_LIKELY(slot->record.kind == MTPROF_REC_END)) {
        return apply_end(slot, edge);
    }
    return apply_other(slot, edge);
}

static void set_plain(mtprof__slot *slot)
{
    if (MT_UNLIKELY(slot->n_early > 0)) {
        mtprof__slot_forget_early(slot);
    }
    slot->plain = !slot->fetched && !slot->has_waiting && !slot->at_end && slot->n_foreign == 0 &&
                  slot->n_early == 0 && slot->status == MTPROF_OK &&
                  slot->block != MTPROF__NO_SCOPE && slot->cursor.epoch == slot->epoch &&
                  slot->cursor.thread == slot->thread && slot->holes == slot->cursor.holes &&
                  !slow_only;
}

int mtprof__slot_apply(mtprof__slot *slot, enum mtprof__slot_edge *edge)
{
    int status = apply(slot, edge);
    set_plain(slot);
    return status;
}

/* Where that was all, nothing else of the slot has changed. */
void mtprof__slot_gather(mtprof__slot *slot, uint32_t at)
{
    if (MT_LIKELY(gather_usual(slot, at, &slot->status))) {
        return;
    }
    if (slot->status == MTPROF_OK) {
        slot->status = gather_scope(slot, at);
    }
    set_plain(slot);
}
