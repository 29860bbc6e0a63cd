/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack of a slot: what is open, what nests in what, and self times (slot_stream.h, SL1 to
 * SL4).
 */
#include "mtprof/model/slot/slot_stack.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/model/model_impl.h"
#include "mtprof/read/reader_impl.h"

static const int64_t early_ns = 1000000;

/* ---- ends ------------------------------------------------------------------------------------ */

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
 * outer's from here on (SL2). */
static void stop_nesting(mtprof__slot *slot, mtprof__scope *scope, mtprof__scope *outer)
{
    outer->child_ns = mtb_add_sat(outer->child_ns, scope->child_ns);
    scope->child_ns = 0;
    scope->nests = 0;
    scope->flags |= MTPROF_EVENT_FLAG_OVERLAP;
    slot->counts.overlaps++;
}

/* Takes a nesting scope out of its chain. */
static void leave_chain(mtprof__slot *slot, uint32_t at)
{
    mtprof__scope *scope = &slot->scopes[at];
    if (at >= slot->floor) {
        uint32_t inner = slot->nest_top;
        while (inner != at) { /* SL2: at is on the chain */
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
void mtprof__slot_end_scope(mtprof__slot *slot, uint32_t at, int64_t ns)
{
    mtprof__scope *scope = &slot->scopes[at];
    scope->end_ns = ns;
    scope->ended = 1;
    int64_t duration = mtb_sub_sat(ns, scope->start_ns);
    if (MT_LIKELY(scope->nests)) {
        if (MT_LIKELY(slot->nest_top == at)) {
            slot->nest_top = scope->base;
        } else {
            leave_chain(slot, at);
        }
        /* That another slot ends it may be known only now: then it does not nest after all. */
        bool late = (scope->flags & MTPROF_EVENT_FLAG_ASYNC) != 0;
        scope->self_ns = late ? 0 : mtb_sub_sat(duration, scope->child_ns);
        if (scope->base != MTPROF__NO_SCOPE) {
            mtprof__scope *base = &slot->scopes[scope->base];
            base->child_ns = mtb_add_sat(base->child_ns, late ? scope->child_ns : duration);
        }
    } else {
        bool counts = scope->kind == MTPROF_EVENT_KIND_FUNCTION &&
                      (scope->flags & MTPROF_EVENT_FLAG_ASYNC) == 0 && scope->inner_ns < duration;
        scope->self_ns = counts ? duration - scope->inner_ns : 0;
    }
    if (scope->in_function) {
        mtprof__scope *parent = &slot->scopes[scope->parent];
        parent->inner_ns = mtb_add_sat(parent->inner_ns, duration);
    }
    slot->at = at;
    if (MT_LIKELY(at + 1 == slot->n)) {
        slot->n--;
        if (MT_UNLIKELY(slot->n > 0 && slot->scopes[slot->n - 1].ended) || slot->floor > slot->n) {
            mtprof__slot_pop_ended(slot);
        }
    }
}

/* Whether another slot has ended the scope by a time. */
static bool ended_by(const mtprof__scope *scope, int64_t ns)
{
    return scope->foreign_ns < ns || (scope->foreign_ns == ns && !scope->foreign_later);
}

/* SL5. After the last chunk there is a hole if later chunks may be missing. */
static bool before_hole(const mtprof__slot *slot)
{
    return slot->holes != slot->cursor.holes || (slot->at_end && slot->reader->index.tails_unknown);
}

int64_t mtprof__slot_close_ns(const mtprof__slot *slot, uint32_t block)
{
    if (before_hole(slot)) {
        return slot->last_ns;
    }
    int64_t close = slot->coverage.blocks[block].close_ns;
    return close > slot->last_ns ? close : slot->last_ns;
}

void mtprof__slot_truncate_top(mtprof__slot *slot)
{
    mtprof__scope *scope = &slot->scopes[slot->n - 1];
    bool gap = before_hole(slot);
    if (scope->foreign_ns != INT64_MAX && scope->foreign_ns >= scope->start_ns &&
        (!gap || ended_by(scope, slot->last_ns))) {
        mtprof__slot_end_scope(slot, slot->n - 1, scope->foreign_ns);
        return;
    }
    scope->flags |= MTPROF_EVENT_FLAG_TRUNCATED;
    slot->counts.truncated++;
    slot->counts.truncated_in_gaps += gap;
    slot->last_ns = mtprof__slot_close_ns(slot, scope->block); /* SL1: the rest is not earlier */
    mtprof__slot_end_scope(slot, slot->n - 1, slot->last_ns);
}

/* Keys of a slot rise along the stack, but for explicit ones (nested records), which have a bit of
 * their own and are few. */
uint32_t mtprof__slot_find(const mtprof__slot *slot, uint64_t key)
{
    if (slot->n > 0 && slot->scopes[slot->n - 1].key == key) {
        return slot->n - 1;
    }
    if ((key & MTPROF__EXPLICIT_BIT) == 0) {
        uint32_t low = 0;
        uint32_t high = slot->n;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            uint32_t plain = middle; /* the nearest at or below with a counted key */
            while (plain > low && (slot->scopes[plain].key & MTPROF__EXPLICIT_BIT) != 0) {
                plain--;
            }
            if ((slot->scopes[plain].key & MTPROF__EXPLICIT_BIT) == 0 &&
                slot->scopes[plain].key == key) {
                return slot->scopes[plain].ended ? MTPROF__NO_SCOPE : plain;
            }
            if ((slot->scopes[plain].key & MTPROF__EXPLICIT_BIT) != 0 ||
                slot->scopes[plain].key < key) {
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

static bool has_lower_key(const void *end, uint64_t key)
{
    return ((const mtprof__foreign_end *)end)->key < key;
}

static const mtprof__foreign_end *find_foreign(const mtprof__slot *slot, uint64_t key)
{
    size_t at =
        mtb_search(slot->foreign, slot->n_foreign, sizeof *slot->foreign, has_lower_key, key);
    return at < slot->n_foreign && slot->foreign[at].key == key ? &slot->foreign[at] : NULL;
}

/* Whether another slot has ended the scope by the time of the current record (second pass). */
bool mtprof__slot_ended_elsewhere(const mtprof__slot *slot, const mtprof__scope *scope)
{
    return ended_by(scope, slot->ns);
}

/* What a function remembers is nearly always still open; if not, the stack below it is searched. */
uint32_t mtprof__slot_outside(const mtprof__slot *slot, uint32_t at)
{
    if (at == MTPROF__NO_SCOPE || slot->scopes[at].kind != MTPROF_EVENT_KIND_FUNCTION) {
        return at;
    }
    at = slot->scopes[at].outer;
    while (at != MTPROF__NO_SCOPE &&
           (slot->scopes[at].kind == MTPROF_EVENT_KIND_FUNCTION || slot->scopes[at].ended ||
            mtprof__slot_ended_elsewhere(slot, &slot->scopes[at]))) {
        at = at > slot->floor ? at - 1 : MTPROF__NO_SCOPE;
    }
    return at;
}

/* What is around a scope that begins now. `named` is the parent's key, all ones: none given. */
static void find_parents(mtprof__slot *slot, mtprof__scope *scope, uint64_t named)
{
    scope->parent = slot->n > slot->floor ? slot->n - 1 : MTPROF__NO_SCOPE;
    if (MT_UNLIKELY(named != MTPROF_KEY_STRUCTURE)) {
        scope->parent = named != 0 ? mtprof__slot_find(slot, named) : MTPROF__NO_SCOPE;
        bool elsewhere = named != 0 && scope->parent == MTPROF__NO_SCOPE;
        /* SL5: one of this slot that is not open may have been cut off at a hole. */
        bool cut = slot->counts.truncated_in_gaps > 0 &&
                   named >> MTPROF_ORDINAL_BITS == slot->key_base >> MTPROF_ORDINAL_BITS;
        scope->parent_key = elsewhere && !cut ? named : 0;
    }
    scope->outer = mtprof__slot_outside(slot, scope->parent);
    scope->in_function = scope->parent != MTPROF__NO_SCOPE &&
                         slot->scopes[scope->parent].kind == MTPROF_EVENT_KIND_FUNCTION;
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
        scope->flags |= MTPROF_EVENT_FLAG_ASYNC;
    }
}

int mtprof__slot_begin_scope(mtprof__slot *slot, uint64_t named)
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
    uint8_t kind = (uint8_t)(record->aux & MTPROF_KIND_MASK);
    scope->kind = kind <= MTPROF_KIND_STEP ? kind : MTPROF_EVENT_KIND_SCOPE; /* of a later minor */
    scope->flags =
        (uint16_t)(((record->aux & MTPROF_FLAG_ASYNC) != 0 ? MTPROF_EVENT_FLAG_ASYNC : 0) |
                   ((record->aux & MTPROF_FLAG_DEVICE) != 0 ? MTPROF_EVENT_FLAG_DISPATCHED : 0) |
                   ((record->aux & MTPROF_FLAG_LAUNCH) != 0 ? MTPROF_EVENT_FLAG_LAUNCHES : 0));
    scope->ended = 0;
    scope->has_payload = 0;
    scope->shown = scope->made = scope->apart = 0;
    find_parents(slot, scope, named);
    if (MT_UNLIKELY(slot->n_foreign + slot->n_early > 0)) {
        expect_end(slot, scope);
    }
    scope->nests =
        (scope->flags & MTPROF_EVENT_FLAG_ASYNC) == 0 && scope->kind != MTPROF_EVENT_KIND_FUNCTION;
    scope->base = slot->nest_top;
    if (scope->nests) {
        slot->nest_top = at;
        scope->flags |= scope->base == MTPROF__NO_SCOPE ? MTPROF_EVENT_FLAG_TOP : 0;
    }
    slot->n++;
    slot->at = at;
    return MTPROF_OK;
}

uint32_t mtprof__slot_owner(const mtprof__slot *slot)
{
    return mtprof__slot_outside(slot, slot->n > slot->floor ? slot->n - 1 : MTPROF__NO_SCOPE);
}

/* ---- ends of other slots --------------------------------------------------------------------- */

int mtprof__slot_expect_end(mtprof__slot *slot, const mtprof__foreign_end *end)
{
    if (!mtb_append(slot->early, slot->n_early, slot->early_capacity, end)) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for ends of other threads");
    }
    slot->plain = false;
    return MTPROF_OK;
}

/* Ends that have waited for long enough. Those of scopes that are open stay: they are due later. */
void mtprof__slot_forget_early(mtprof__slot *slot)
{
    size_t kept = 0;
    for (size_t i = 0; i < slot->n_early; i++) {
        bool open = mtprof__slot_find(slot, slot->early[i].key) != MTPROF__NO_SCOPE;
        if (open || slot->early[i].ns >= mtb_sub_sat(slot->last_ns, early_ns)) {
            slot->early[kept++] = slot->early[i];
        }
    }
    slot->n_early = kept;
}

bool mtprof__slot_end_foreign(mtprof__slot *slot, uint64_t key, int64_t ns, uint32_t *at)
{
    *at = mtprof__slot_find(slot, key);
    if (*at == MTPROF__NO_SCOPE || slot->scopes[*at].ended) {
        return false;
    }
    mtprof__scope *scope = &slot->scopes[*at];
    scope->flags |= MTPROF_EVENT_FLAG_ASYNC;
    mtprof__slot_end_scope(slot, *at, ns > scope->start_ns ? ns : scope->start_ns);
    return true;
}
