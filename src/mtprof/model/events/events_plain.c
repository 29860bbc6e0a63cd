/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain steps: begins and ends of one thread that are no more than a name and a time, as fast as
 * they can be read.
 *
 * The loop keeps the slot's state in registers and writes of a scope only what its own end needs;
 * most scopes end before the loop does. Those still open when it ends get the rest then (settle()).
 * Self times are not kept: event streams have none.
 *
 *   EP1  The loop ends scopes that it began itself, no others.
 *   EP2  It begins a scope only inside one that nests, or at the bottom of the thread's stack, so
 *        the nest chain of what it began is the stack itself.
 */
#include "base/alloc.h"
#include "mtprof/model/events/events_records.h"
#include "mtprof/model/slot/slot_fast.h"

typedef struct loop {
    const uint64_t *words, *behind; /* of the chunk's records */
    uint64_t next_ordinal, reference;
    int64_t last_ns;
    uint32_t n;     /* scopes on the stack */
    uint32_t first; /* of them: the first that the loop began */
} loop;

/* Whether the loop may begin: see EP2; and shown[] must have room for a full stack. */
static bool can_begin(mtprof__slot_context *c)
{
    const mtprof__slot *slot = &c->slot;
    bool bottom = slot->n == slot->floor;
    if (!slot->plain || slot->cursor.at == slot->cursor.n_words) {
        return false;
    }
    if (bottom ? slot->nest_top != MTPROF__NO_SCOPE : slot->nest_top != slot->n - 1) {
        return false;
    }
    return mtb_grow((void **)&c->shown, &c->shown_capacity, c->n_shown + slot->capacity + 1,
                    sizeof *c->shown);
}

/* Scopes that are still open get what the rest of the stream needs to know of them. */
static void settle(mtprof__slot_context *c, const loop *l)
{
    mtprof__slot *slot = &c->slot;
    for (uint32_t at = l->first; at < l->n; at++) {
        mtprof__scope *scope = &slot->scopes[at];
        uint32_t around = at > slot->floor ? at - 1 : MTPROF__NO_SCOPE;
        mtprof__fast_open(slot, scope, around, around); /* EP2 */
        scope->shown = 1;
        c->shown[c->n_shown++] = at;
    }
    slot->n = l->n;
    slot->nest_top = l->n > slot->floor ? l->n - 1 : MTPROF__NO_SCOPE;
    slot->last_ns = l->last_ns;
    slot->cursor.next_ordinal = l->next_ordinal;
    slot->cursor.reference = l->reference;
    slot->cursor.at = slot->cursor.n_words - (size_t)(l->behind - l->words);
}

/* A begin of two words, of a kind that nests, with no payload after it. */
MT_INLINE bool is_plain_begin(const loop *l, uint64_t word)
{
    return l->behind - l->words > 2 && mtprof__is_edge(l->words[2]) && mtprof__is_fast_begin(word);
}

size_t mtprof__host_plain(mtprof__record_events *r, mtprof__slot_context *c, int64_t limit_ns,
                          mtprof__plain_step *steps, size_t room)
{
    mtprof__slot *slot = &c->slot;
    mtprof_cursor *cursor = &slot->cursor;
    if (!can_begin(c) || slot->block != r->block) {
        return 0;
    }
    mtprof__scope *scopes = slot->scopes;
    const uint64_t key_base = slot->key_base;
    loop l = {.words = mtprof__cursor_words(cursor),
              .next_ordinal = cursor->next_ordinal,
              .reference = cursor->reference,
              .last_ns = slot->last_ns,
              .n = slot->n,
              .first = slot->n};
    l.behind = l.words + (cursor->n_words - cursor->at);
    uint64_t index = r->next_index;
    size_t done = 0;
    size_t ends = 0;
    while (done < room && l.behind - l.words > 1) {
        uint64_t word = l.words[0];
        mtprof__plain_step *step = &steps[done];
        if (mtprof__is_end(word)) {
            if (MT_UNLIKELY(
                    l.n == l.first || !mtprof__is_edge(l.words[1]) ||
                    !mtprof__ends_key(word, l.next_ordinal, key_base, scopes[l.n - 1].key))) {
                break;
            }
            int64_t ns = mtprof__timebase_ns(&slot->timebase, mtprof__end_ticks(word, l.reference));
            if (MT_UNLIKELY(ns < l.last_ns || ns >= limit_ns)) {
                break;
            }
            l.last_ns = step->ns = ns;
            step->edge = MTPROF__EDGE_END;
            l.n--;
            l.words++;
            ends++;
        } else {
            if (MT_UNLIKELY(!is_plain_begin(&l, word) || l.n == slot->capacity ||
                            !mtprof__is_counted(l.next_ordinal))) {
                break;
            }
            int64_t ns = mtprof__timebase_ns(&slot->timebase, l.words[1]);
            if (MT_UNLIKELY(ns < l.last_ns || ns >= limit_ns)) {
                break;
            }
            uint32_t string = (uint32_t)(word >> 32);
            uint32_t place = string % MTPROF__TEXT_CACHE;
            mtprof__scope *scope = &scopes[l.n++];
            scope->key = key_base | l.next_ordinal++;
            scope->start_ns = l.last_ns = step->ns = ns;
            scope->user = index++;
            scope->name = string;
            scope->kind = step->kind = mtprof__begin_kind(word);
            scope->flags = step->flags = mtprof__fast_flags(word);
            step->edge = MTPROF__EDGE_BEGIN;
            step->name = MT_LIKELY(c->names[place].string == string && string != 0)
                             ? c->names[place].name
                             : mtprof__host_look_up_name(r, c, string);
            l.reference = l.words[1];
            l.words += 2;
        }
        done++;
    }
    const mtprof__block_ids *ids = &r->blocks[slot->block];
    uint64_t behind_ids = ids->first_id + (index - ids->first_index);
    r->free_id = behind_ids > r->free_id ? behind_ids : r->free_id;
    r->head.plain_id = ids->first_id + (r->next_index - ids->first_index);
    r->next_index = index;
    r->head.totals.events += ends;
    settle(c, &l);
    return done;
}
