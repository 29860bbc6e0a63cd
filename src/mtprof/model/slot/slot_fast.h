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

enum mtprof__fast {
    MTPROF__FAST_NONE = 0,
    MTPROF__FAST_BEGIN, /* scope slot->at */
    MTPROF__FAST_END
};

/* A begin that nests, is not a function, and launches nothing. */
MT_INLINE bool mtprof__is_fast_begin(uint64_t word)
{
    return mtprof__is_begin(word, MTPROF_FLAG_DEVICE | MTPROF_FLAG_PAYLOAD) &&
           mtprof__begin_kind(word) != MTPROF_KIND_FUNCTION;
}

/* enum mtprof_event_flag of it. */
MT_INLINE uint16_t mtprof__fast_flags(uint64_t word)
{
    return (word & (uint64_t)MTPROF_FLAG_DEVICE << 16) != 0 ? MTPROF_EVENT_FLAG_DISPATCHED : 0;
}

/* The record's time (SL1); false: it is not before the limit, and nothing has changed. */
MT_INLINE bool mtprof__fast_time(mtprof__slot *slot, uint64_t ticks, int64_t limit_ns)
{
    int64_t ns = mtprof__timebase_ns(&slot->timebase, ticks);
    if (MT_UNLIKELY(ns < slot->last_ns || ns >= limit_ns)) {
        return false; /* a clock that went back is counted on the slow path */
    }
    slot->last_ns = ns;
    return true;
}

/* Sets the fields of a nesting scope that has just begun, except key, time, name, kind and
 * flags. */
MT_INLINE void mtprof__fast_open(const mtprof__slot *slot, mtprof__scope *scope, uint32_t around,
                                 uint32_t base)
{
    scope->parent_key = 0;
    scope->child_ns = 0;
    scope->foreign_ns = INT64_MAX;
    scope->parent = scope->outer = around;
    scope->base = base;
    scope->thread = slot->thread;
    scope->block = slot->block;
    scope->flags |= base == MTPROF__NO_SCOPE ? MTPROF_EVENT_FLAG_TOP : 0;
    scope->nests = 1;
    scope->ended = 0;
    scope->has_payload = 0;
    scope->in_function = 0;
    scope->shown = scope->made = scope->apart = 0;
}

MT_INLINE bool mtprof__fast_begin(mtprof__slot *slot, const uint64_t *words, int64_t limit_ns)
{
    mtprof_cursor *cursor = &slot->cursor;
    uint64_t word = words[0];
    uint32_t at = slot->n;
    if (MT_UNLIKELY(!mtprof__is_fast_begin(word) || cursor->n_words - cursor->at < 2 ||
                    at == slot->capacity || !mtprof__is_counted(cursor->next_ordinal))) {
        return false;
    }
    uint32_t around = at > slot->floor ? at - 1 : MTPROF__NO_SCOPE;
    mtprof__scope *scope = &slot->scopes[at];
    if (MT_UNLIKELY((around != MTPROF__NO_SCOPE && scope[-1].kind == MTPROF_EVENT_KIND_FUNCTION) ||
                    !mtprof__fast_time(slot, words[1], limit_ns))) {
        return false;
    }
    scope->key = slot->key_base | cursor->next_ordinal;
    scope->start_ns = slot->last_ns;
    scope->name = (uint32_t)(word >> 32);
    scope->flags = mtprof__fast_flags(word);
    scope->kind = mtprof__begin_kind(word);
    mtprof__fast_open(slot, scope, around, slot->nest_top);
    slot->nest_top = at;
    slot->n = at + 1;
    slot->at = at;
    cursor->next_ordinal++;
    cursor->reference = words[1];
    cursor->at += 2;
    if (MT_UNLIKELY(cursor->at == cursor->n_words || !mtprof__is_edge(words[2]))) {
        cursor->owner = MTPROF__OWNER_BEGIN;
        cursor->owner_arg = scope->name;
        mtprof__slot_gather(slot, at);
    }
    return true;
}

MT_INLINE bool mtprof__fast_end(mtprof__slot *slot, const uint64_t *words, int64_t limit_ns)
{
    mtprof_cursor *cursor = &slot->cursor;
    uint64_t word = words[0];
    uint32_t at = slot->n - 1;
    if (MT_UNLIKELY(slot->n <= slot->floor || slot->nest_top != at)) {
        return false;
    }
    mtprof__scope *scope = &slot->scopes[at];
    if (MT_UNLIKELY(
            !mtprof__ends_key(word, cursor->next_ordinal, slot->key_base, scope->key) ||
            scope->in_function ||
            !mtprof__fast_time(slot, mtprof__end_ticks(word, cursor->reference), limit_ns))) {
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
    if (MT_UNLIKELY(cursor->at == cursor->n_words || !mtprof__is_edge(words[1]))) {
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
    if (mtprof__is_end(words[0])) {
        return mtprof__fast_end(slot, words, limit_ns) ? MTPROF__FAST_END : MTPROF__FAST_NONE;
    }
    return mtprof__fast_begin(slot, words, limit_ns) ? MTPROF__FAST_BEGIN : MTPROF__FAST_NONE;
}

#endif /* MTPROF_MODEL_SLOT_SLOT_FAST_H */
