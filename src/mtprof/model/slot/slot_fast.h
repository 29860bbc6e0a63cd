/* SPDX-License-Identifier: Apache-2.0
 *
 * The two steps that nearly all of a trace consists of, in one piece each: a scope begins inside
 * another of its thread, or ends as the innermost one. Everything else is slot_stream.c's.
 *
 * What these do to the stack is what begin_scope() and end_scope() do; tests compare the two.
 */
#ifndef MTPROF_MODEL_SLOT_SLOT_FAST_H
#define MTPROF_MODEL_SLOT_SLOT_FAST_H

#include "mtprof/model/slot/slot_stream.h"
#include "mtprof/read/cursor_fast.h"

enum mtprof__fast {
    MTPROF__FAST_NONE = 0,
    MTPROF__FAST_BEGIN, /* scope slot->at */
    MTPROF__FAST_END
};

/* Whether a record of this first word cannot belong to the one before. */
MT_INLINE bool mtprof__fast_follows(uint64_t word)
{
    uint8_t kind = (uint8_t)word;
    return kind == MTPROF_REC_BEGIN || kind == MTPROF_REC_END;
}

/* The record's time (K1); false: it is not before the limit, and nothing has changed. */
MT_INLINE bool mtprof__fast_time(mtprof__slot *slot, uint64_t ticks, int64_t limit_ns)
{
    int64_t ns = mtprof__timebase_ns(&slot->timebase, ticks);
    if (MT_UNLIKELY(ns < slot->last_ns || ns >= limit_ns)) {
        return false; /* a clock that went back is counted on the slow path */
    }
    slot->last_ns = ns;
    return true;
}

MT_INLINE bool mtprof__fast_begin(mtprof__slot *slot, const uint64_t *words, int64_t limit_ns)
{
    mtprof_cursor *cursor = &slot->cursor;
    uint64_t word = words[0];
    uint16_t aux = (uint16_t)(word >> 16);
    uint32_t at = slot->n;
    uint8_t kind = (uint8_t)(aux & MTPROF_KIND_MASK);
    if (MT_UNLIKELY((word & 0xFFFF) != (MTPROF_REC_BEGIN | 2 << 8) ||
                    cursor->n_words - cursor->at < 2 || at == slot->capacity ||
                    kind > MTPROF_KIND_STEP || kind == MTPROF_KIND_FUNCTION ||
                    (aux & ~(MTPROF_KIND_MASK | MTPROF_FLAG_DEVICE | MTPROF_FLAG_PAYLOAD)) != 0 ||
                    cursor->next_ordinal >> MTPROF__FAST_ORDINAL_BITS != 0)) {
        return false;
    }
    uint32_t around = at > slot->floor ? at - 1 : MTPROF__NO_SCOPE;
    mtprof__scope *scope = &slot->scopes[at];
    if (MT_UNLIKELY((around != MTPROF__NO_SCOPE && scope[-1].kind == MTPROF_EVENT_KIND_FUNCTION) ||
                    !mtprof__fast_time(slot, words[1], limit_ns))) {
        return false;
    }
    scope->key = slot->key_base | cursor->next_ordinal;
    scope->parent_key = 0;
    scope->start_ns = slot->last_ns;
    scope->child_ns = 0;
    scope->foreign_ns = INT64_MAX;
    scope->name = (uint32_t)(word >> 32);
    scope->parent = scope->outer = around;
    scope->base = slot->nest_top;
    scope->thread = slot->thread;
    scope->block = slot->block;
    scope->flags = (uint16_t)(((aux & MTPROF_FLAG_DEVICE) != 0 ? MTPROF_EVENT_FLAG_DISPATCHED : 0) |
                              (slot->nest_top == MTPROF__NO_SCOPE ? MTPROF_EVENT_FLAG_TOP : 0));
    scope->kind = kind;
    scope->nests = 1;
    scope->ended = 0;
    scope->has_payload = 0;
    scope->in_function = 0;
    scope->shown = scope->made = scope->apart = 0;
    slot->nest_top = at;
    slot->n = at + 1;
    slot->at = at;
    cursor->next_ordinal++;
    cursor->reference = words[1];
    cursor->at += 2;
    if (MT_UNLIKELY(cursor->at == cursor->n_words || !mtprof__fast_follows(words[2]))) {
        cursor->owner = MTPROF__OWNER_BEGIN;
        cursor->owner_arg = scope->name;
        mtprof__slot_gather(slot, at);
    }
    return true;
}

MT_INLINE bool mtprof__fast_end(mtprof__slot *slot, const uint64_t *words, int64_t limit_ns)
{
    const uint64_t short_mask = ((uint64_t)1 << MTPROF_SHORT_TIME) - 1;
    mtprof_cursor *cursor = &slot->cursor;
    uint64_t word = words[0];
    uint64_t distance = word >> 8 & 0xFFFF;
    uint32_t at = slot->n - 1;
    if (MT_UNLIKELY(slot->n <= slot->floor || slot->nest_top != at)) {
        return false;
    }
    mtprof__scope *scope = &slot->scopes[at];
    /* A distance of 0, or past the first begin, is damage: without the check it could name another
     * slot's key, which a BEGIN_X may have put on the stack. */
    if (MT_UNLIKELY(scope->key != slot->key_base + cursor->next_ordinal - distance ||
                    distance - 1 >= cursor->next_ordinal || scope->in_function)) {
        return false;
    }
    uint64_t ticks = cursor->reference + (((word >> 24) - cursor->reference) & short_mask);
    if (MT_UNLIKELY(!mtprof__fast_time(slot, ticks, limit_ns))) {
        return false;
    }
    int64_t duration = slot->last_ns - scope->start_ns; /* it fits: MTB_TIME_MOST */
    scope->end_ns = slot->last_ns;
    scope->self_ns = duration - scope->child_ns;
    scope->ended = 1;
    slot->nest_top = scope->base;
    if (scope->base != MTPROF__NO_SCOPE) {
        slot->scopes[scope->base].child_ns += duration;
    }
    slot->n = at;
    slot->at = at;
    cursor->at += 1;
    if (MT_UNLIKELY(cursor->at == cursor->n_words || !mtprof__fast_follows(words[1]))) {
        cursor->owner = MTPROF__OWNER_END;
        cursor->owner_arg = 0;
        mtprof__slot_gather(slot, at);
        scope = &slot->scopes[at];
    }
    if (MT_UNLIKELY(at > 0 && scope[-1].ended)) {
        mtprof__slot_pop_ended(slot);
    }
    return true;
}

/* The next step, if it is one of the two and before the limit. */
MT_INLINE enum mtprof__fast mtprof__slot_fast(mtprof__slot *slot, int64_t limit_ns)
{
    if (MT_UNLIKELY(!slot->plain || slot->cursor.at == slot->cursor.n_words)) {
        return MTPROF__FAST_NONE;
    }
    const uint64_t *words = mtprof__cursor_words(&slot->cursor);
    if ((uint8_t)words[0] == MTPROF_REC_END) {
        return mtprof__fast_end(slot, words, limit_ns) ? MTPROF__FAST_END : MTPROF__FAST_NONE;
    }
    return mtprof__fast_begin(slot, words, limit_ns) ? MTPROF__FAST_BEGIN : MTPROF__FAST_NONE;
}

#endif /* MTPROF_MODEL_SLOT_SLOT_FAST_H */
