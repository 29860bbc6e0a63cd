/* SPDX-License-Identifier: Apache-2.0
 *
 * Events that carry more than a name and a time: dynamic names, and metadata that comes later.
 */
#include "mtprof/record/define/ask_language.h"
#include "mtprof/record/hot/batch.h"
#include "mtprof/record/hot/sample.h"

mtprof_token mtprof__batch_store(mtprof__writer *w, mtprof__batch *b, bool is_begin)
{
    if (b->cut) {
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, 1);
    }
    uint64_t *at =
        is_begin ? mtprof__reserve(w, b->count, 1, false) : mtprof__reserve_instant(w, b->count);
    if (at == NULL) {
        return 0;
    }
    uint64_t *end = at + b->count;
    for (uint32_t i = 2; i < b->count; i++) {
        mtprof__put(at + i, b->words[i]);
    }
    if (is_begin) {
        return mtprof__finish_begin(w, at, end, b->words[0], false);
    }
    w->time_ref = mtprof__ticks();
    mtprof__put(at, b->words[0]);
    mtprof__put(at + 1, w->time_ref);
    MTPROF__SET(w->others, w->others + 1);
    w->payload_of = MTPROF_LATEST_INSTANT;
    w->payload_at = end;
    mtprof__publish(w, end);
    return 0;
}

mtprof__writer *mtprof__enter_attached(uint64_t *state, uint32_t events)
{
    mtprof__writer *w = mtprof__writer_mine(events);
    if (w == NULL) {
        return NULL;
    }
    if (!mtprof__enter(w)) {
        if (mtprof__load_state() != 0) {
            mtprof__lose(MTPROF_LOST_NESTED, events);
        }
        return NULL;
    }
    *state = mtprof__load_state();
    if (*state == 0 || mtprof__reserve(w, 0, events, false) == NULL) {
        mtprof__leave(w);
        return NULL;
    }
    return w;
}

void mtprof_count_cut(uint32_t count)
{
    if (mtprof__load_state() != 0) {
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, count);
    }
}

/* ---- dynamic names ---- */

/* The name as an id, or in full after the event. */
static void batch_named(mtprof__writer *w, mtprof__batch *b, uint32_t kind, uint32_t flags,
                        const char *name, size_t length)
{
    uint32_t id = mtprof__dynamic_name(w, name, length);
    uint64_t *at = mtprof__batch_start(b, 2);
    at[0] = mtprof__word0(kind, 2, id != 0 ? flags : flags | MTPROF_FLAG_PAYLOAD, id);
    if (id == 0) {
        b->cut = length > MTPROF__INLINE_MAX;
        length = b->cut ? MTPROF__INLINE_MAX : length;
        uint64_t *full = mtprof__batch_take(b, 2 + (uint32_t)mtprof__text_words(length));
        if (full != NULL) {
            mtprof__put_text_record(full, MTPROF_REC_NAME, 0, 0, name, length);
        }
    }
}

bool mtprof__sample_keeps_name(uint64_t state, uint32_t begin_flags, const char *name,
                               size_t length)
{
    uint64_t now;
    mtprof__writer *w = (state & MTPROF__SAMPLING) != 0 ? mtprof__enter_attached(&now, 0) : NULL;
    if (w == NULL) {
        return true;
    }
    uint32_t id = mtprof__dynamic_name(w, name, length);
    bool keeps = mtprof__sample_keeps(w, state, mtprof__begin_flags(begin_flags), id);
    mtprof__leave(w);
    return keeps;
}

/* A step is recorded even where the limit of the overhead has shut the gate. */
static MT_COLD bool is_wanted_step(uint32_t begin_flags)
{
    return (begin_flags & MTPROF_KIND_MASK) == MTPROF_KIND_STEP &&
           (mtprof__load_state() & MTPROF__STEPS_ONLY) != 0;
}

/* What the language says of a scope that begins now. False: the scope is not recorded. */
static MT_COLD bool ask_first(uint64_t state, uint32_t begin_flags, const char *name, size_t length,
                              uint32_t *stack, uint32_t *epoch)
{
    mtprof_op asked = {.fields = MTPROF_OP_MODULE}; /* there is no place for one */
    if (!mtprof__sample_keeps_name(state, begin_flags, name, length)) {
        return false;
    }
    mtprof__writer *w = mtprof__writer_mine(0);
    if (w != NULL) {
        *epoch = mtprof__ask(w, state, begin_flags, &asked);
        *stack = asked.stack;
    }
    return true;
}

static void batch_stack(mtprof__batch *b, uint32_t stack)
{
    uint64_t *at = stack != 0 ? mtprof__batch_take(b, 1) : NULL;
    if (at != NULL) {
        at[0] = mtprof__id_word(MTPROF_REC_STACK, stack);
        b->words[0] |= (uint64_t)MTPROF_FLAG_PAYLOAD << 16;
    } else {
        mtprof__count(MTPROF_HEALTH_STACKS_MISSED, 1);
    }
}

mtprof_token mtprof_begin_named(const char *name, size_t length, uint32_t begin_flags)
{
    uint64_t state;
    if (name == NULL ||
        (!mtprof_wants(mtprof__wants_of(begin_flags)) && !is_wanted_step(begin_flags))) {
        return 0;
    }
    uint32_t stack = 0, epoch = 0;
    state = mtprof__load_state();
    if (MT_UNLIKELY(mtprof__language_asks(state) != 0) &&
        !ask_first(state, begin_flags, name, length, &stack, &epoch)) {
        return 0;
    }
    mtprof__writer *w = mtprof__enter_attached(&state, 1);
    if (w == NULL) {
        return 0;
    }
    mtprof__batch b;
    batch_named(w, &b, MTPROF_REC_BEGIN, mtprof__begin_flags(begin_flags), name, length);
    if (MT_UNLIKELY(stack != 0)) {
        batch_stack(&b, (uint32_t)(state >> 32) == epoch ? stack : 0);
    }
    mtprof_token token = mtprof__batch_store(w, &b, true);
    mtprof__leave(w);
    return token;
}

void mtprof_instant_named(const char *name, size_t length, uint32_t begin_flags)
{
    uint64_t state;
    mtprof__writer *w =
        mtprof_wants(MTPROF_WANT_MARKS) && name != NULL ? mtprof__enter_attached(&state, 1) : NULL;
    if (w == NULL) {
        return;
    }
    mtprof__batch b;
    batch_named(w, &b, MTPROF_REC_INSTANT, mtprof__begin_flags(begin_flags), name, length);
    mtprof__batch_store(w, &b, false);
    mtprof__leave(w);
}

/* A mark of three words. If there is no room for its name, the mark is lost, and counted. */
static void mark_named(const char *name, size_t length, uint32_t kind, uint32_t aux, uint64_t value)
{
    uint64_t state;
    mtprof__writer *w =
        mtprof_wants(MTPROF_WANT_MARKS) && name != NULL ? mtprof__enter_attached(&state, 1) : NULL;
    if (w == NULL) {
        return;
    }
    mtprof__batch b;
    uint64_t *at = mtprof__batch_start(&b, 3);
    uint32_t id = mtprof__dynamic_text(w, name, length);
    at[0] = mtprof__word0(kind, 3, aux, id);
    at[2] = value;
    if (id != 0) {
        mtprof__batch_store(w, &b, false);
        w->payload_at = NULL; /* these have no payload */
    } else {
        mtprof__lose(MTPROF_LOST_TOO_LARGE, 1);
    }
    mtprof__leave(w);
}

void mtprof_counter_named(const char *name, size_t length, int64_t value)
{
    mark_named(name, length, MTPROF_REC_COUNTER, 0, (uint64_t)value);
}

void mtprof_counter_real_named(const char *name, size_t length, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    mark_named(name, length, MTPROF_REC_COUNTER, 1, bits);
}

void mtprof_flow_named(const char *name, size_t length, enum mtprof_flow_phase phase,
                       uint64_t flow_id)
{
    mark_named(name, length, MTPROF_REC_FLOW,
               (uint32_t)phase <= MTPROF_FLOW_END ? (uint32_t)phase : MTPROF_FLOW_STEP, flow_id);
}

/* ---- payloads that come later ---- */

/* False: nothing was done, take the long way. The writer is entered. */
MT_INLINE bool attach_fast(mtprof__writer *w, uint64_t state, mtprof_token token,
                           const uint64_t *payload, uint32_t count)
{
    if (MT_UNLIKELY(!mtprof__ready(w, state, 2 + count) || token == MTPROF_LATEST_INSTANT)) {
        return false;
    }
    if (MT_UNLIKELY(!mtprof__token_in(token, state))) {
        return true;
    }
    uint64_t *at = w->cursor;
    mtprof_token owner = w->payload_of != 0 ? w->payload_of : w->next_token - 1;
    if (w->payload_at != at || owner != token) {
        mtprof__put(at++, mtprof__word0(MTPROF_REC_ATTACH, 2, 0, 0));
        mtprof__put(at++, token & MTPROF__KEY_MASK);
    }
    for (uint32_t i = 0; i < count; i++) {
        mtprof__put(at++, payload[i]);
    }
    w->payload_of = token;
    w->payload_at = at;
    mtprof__publish(w, at);
    return true;
}

void mtprof__attach_entered(mtprof__writer *w, uint64_t state, mtprof_token token,
                            const uint64_t *payload, uint32_t count)
{
    bool of_instant = token == MTPROF_LATEST_INSTANT;
    bool current = of_instant || mtprof__token_in(token, state);
    /* 0 means the last begin, so that the hot path need not store its token. */
    mtprof_token owner = w->payload_of != 0 ? w->payload_of : w->next_token - 1;
    bool direct = w->payload_at != NULL && w->payload_at == w->cursor && owner == token;
    if (!current || (!direct && of_instant)) {
        return;
    }
    uint32_t before = direct ? 0 : 2;
    uint64_t *at = mtprof__reserve(w, before + count, 0, false);
    /* A new chunk may have come between: a payload never starts one. */
    if (at != NULL && direct && at != w->payload_at) {
        before = of_instant ? 0 : 2;
        at = !of_instant ? mtprof__reserve(w, before + count, 0, false) : NULL;
    }
    if (at == NULL) {
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, mtprof__load_state() != 0);
        return;
    }
    if (before != 0) {
        mtprof__put(at, mtprof__word0(MTPROF_REC_ATTACH, 2, 0, 0));
        mtprof__put(at + 1, token & MTPROF__KEY_MASK);
    }
    for (uint32_t i = 0; i < count; i++) {
        mtprof__put(at + before + i, payload[i]);
    }
    w->payload_of = token;
    w->payload_at = at + before + count;
    mtprof__publish(w, at + before + count);
}

void mtprof__attach_payload(mtprof_token token, const uint64_t *payload, uint32_t count)
{
    uint64_t state;
    mtprof__writer *w = mtprof__mine;
    if (MT_LIKELY(w != NULL && mtprof__enter_fast(w))) {
        bool done = attach_fast(w, mtprof__load_state(), token, payload, count);
        mtprof__leave(w);
        if (MT_LIKELY(done)) {
            return;
        }
    }
    w = mtprof__enter_attached(&state, 0);
    if (w != NULL) {
        mtprof__attach_entered(w, state, token, payload, count);
        mtprof__leave(w);
    }
}

static void meta(mtprof_token token, uint32_t key, uint32_t type, uint64_t value)
{
    key = mtprof__string_here(key);
    uint64_t payload[2] = {mtprof__word0(MTPROF_REC_META, 2, type, key), value};
    if (key != 0 && token != 0 && mtprof__load_state() != 0) {
        mtprof__attach_payload(token, payload, 2);
    }
}

void mtprof_meta_int(mtprof_token token, uint32_t key, int64_t value)
{
    meta(token, key, MTPROF_META_INT, (uint64_t)value);
}

void mtprof_meta_real(mtprof_token token, uint32_t key, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    meta(token, key, MTPROF_META_REAL, bits);
}

void mtprof_meta_bool(mtprof_token token, uint32_t key, bool value)
{
    meta(token, key, MTPROF_META_BOOL, value);
}

void mtprof_meta_text(mtprof_token token, uint32_t key, const char *text, size_t length)
{
    key = mtprof__string_here(key);
    if (key == 0 || token == 0 || text == NULL || mtprof__load_state() == 0) {
        return;
    }
    if (length > MTPROF__INLINE_MAX) {
        length = MTPROF__INLINE_MAX;
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, 1);
    }
    uint64_t payload[2 + MTPROF__INLINE_MAX / 8];
    uint32_t count =
        mtprof__put_text_record(payload, MTPROF_REC_META, MTPROF_META_TEXT, key, text, length);
    mtprof__attach_payload(token, payload, count);
}
