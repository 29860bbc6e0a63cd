/* SPDX-License-Identifier: Apache-2.0
 *
 * Events that carry more than a name and a time: ops with payloads, dynamic names, explicit
 * parents, metadata, allocations.
 *
 * An event and its payloads are put together on the stack of the caller and published at once, so a
 * reader never sees a begin whose payloads are missing.
 */
#include "base/pages.h"
#include "mtprof/record/recording.h"

#include <string.h>

enum {
    BATCH_WORDS = 440 /* fits into a slot's first chunk */
};

/* An event in the making. */
typedef struct batch {
    uint64_t words[BATCH_WORDS];
    uint32_t count;
    bool cut; /* something did not fit */
} batch;

static uint64_t *batch_take(batch *b, uint32_t words)
{
    if (b->count + words > BATCH_WORDS) {
        b->cut = true;
        return NULL;
    }
    uint64_t *at = b->words + b->count;
    b->count += words;
    return at;
}

static void batch_text(uint64_t *at, const char *text, size_t length)
{
    if (length != 0) {
        at[mtprof__text_words(length) - 1] = 0;
        memcpy(at, text, length);
    }
}

/*
 * Stores a batch whose second word is to be the time. Begins take an ordinal unless they bring a
 * key; returns the token (0 when there is no room). The writer is entered.
 */
static mtprof_token batch_store(mtprof__writer *w, batch *b, bool is_begin)
{
    if (b->cut) {
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, 1);
    }
    uint64_t *at = mtprof__reserve(w, b->count, 1, false);
    if (at == NULL) {
        return 0;
    }
    mtprof__put(at, b->words[0]);
    for (uint32_t i = 2; i < b->count; i++) {
        mtprof__put(at + i, b->words[i]);
    }
    mtprof_token token = 0;
    if (is_begin) {
        token = w->next_token;
        MTPROF__SET(w->next_token, token + 1);
        MTPROF__SET(w->depth, w->depth + 1);
        MTPROF__SET(w->launches, w->launches + (b->words[0] >> 20 & 1)); /* FLAG_LAUNCH in aux */
    } else {
        MTPROF__SET(w->others, w->others + 1);
    }
    w->latest_token = token;
    w->payload_at = at + b->count;
    uint64_t ticks = mtprof__ticks();
    w->time_ref = ticks;
    mtprof__put(at + 1, ticks);
    mtprof__publish(w, at + b->count);
    return token;
}

static bool parent_is_known(mtprof_token parent, uint64_t state)
{
    return parent != 0 && parent >> 56 == mtprof__epoch_byte((uint32_t)(state >> 32));
}

/* BEGIN, or BEGIN_X where a parent is named. */
static void batch_begin(batch *b, uint32_t flags, uint32_t name, bool has_parent,
                        mtprof_token parent, uint64_t state)
{
    if (!has_parent) {
        uint64_t *at = batch_take(b, 2);
        at[0] = mtprof__word0(MTPROF_REC_BEGIN, 2, flags, name);
        return;
    }
    uint64_t *at = batch_take(b, 4);
    at[0] = mtprof__word0(MTPROF_REC_BEGIN_X, 4, flags, name);
    at[2] = 0; /* takes the next ordinal */
    at[3] = parent_is_known(parent, state) ? parent & MTPROF__KEY_MASK : 0;
}

/* Enters this thread's writer and brings it into the epoch. NULL: nothing to be done. */
static mtprof__writer *enter_attached(uint64_t *state)
{
    mtprof__writer *w = mtprof__writer_mine();
    if (w == NULL) {
        return NULL;
    }
    if (!mtprof__enter(w)) {
        if (mtprof__load_state() != 0) {
            mtprof__lose(MTPROF_LOST_NESTED, 1);
        }
        return NULL;
    }
    *state = mtprof__load_state();
    if (*state == 0 || mtprof__reserve(w, 0, 1, false) == NULL) {
        mtprof__leave(w);
        return NULL;
    }
    return w;
}

/* ---- dynamic names and explicit parents ---- */

/* The name as an id, or in full behind the event. */
static void batch_named(mtprof__writer *w, batch *b, uint32_t kind, uint32_t flags,
                        const char *name, size_t length)
{
    uint32_t id = mtprof__dynamic_name(w, name, length);
    uint64_t *at = batch_take(b, 2);
    at[0] = mtprof__word0(kind, 2, id != 0 ? flags : flags | MTPROF_FLAG_PAYLOAD, id);
    if (id == 0) {
        if (length > MTPROF__INLINE_MAX) {
            length = MTPROF__INLINE_MAX;
            b->cut = true;
        }
        uint32_t words = 2 + (uint32_t)mtprof__text_words(length);
        uint64_t *full = batch_take(b, words);
        full[0] = mtprof__word0(MTPROF_REC_NAME, words, 0, 0);
        full[1] = length;
        batch_text(full + 2, name, length);
    }
}

mtprof_token mtprof_begin_named(const char *name, size_t length, uint32_t begin_flags)
{
    uint64_t state;
    if (!mtprof_wants(mtprof__wants_of(begin_flags)) || name == NULL) {
        return 0;
    }
    mtprof__writer *w = enter_attached(&state);
    if (w == NULL) {
        return 0;
    }
    batch b = {.count = 0};
    batch_named(w, &b, MTPROF_REC_BEGIN, begin_flags & 0xFF, name, length);
    mtprof_token token = batch_store(w, &b, true);
    mtprof__leave(w);
    return token;
}

void mtprof_instant_named(const char *name, size_t length, uint32_t begin_flags)
{
    uint64_t state;
    mtprof__writer *w =
        mtprof_wants(MTPROF_WANT_MARKS) && name != NULL ? enter_attached(&state) : NULL;
    if (w == NULL) {
        return;
    }
    batch b = {.count = 0};
    batch_named(w, &b, MTPROF_REC_INSTANT, begin_flags & 0xFF, name, length);
    batch_store(w, &b, false);
    mtprof__leave(w);
}

mtprof_token mtprof_begin_under(mtprof_site *site, mtprof_token parent)
{
    mtprof_op op = {.struct_size = sizeof op, .fields = MTPROF_OP_PARENT, .parent = parent};
    return mtprof_op_begin(site, &op);
}

/* ---- ops ---- */

/* Puts an encoded list and its scalars into the batch. */
static void batch_encoded(mtprof__writer *w, batch *b, uint32_t site, const uint64_t *words,
                          uint32_t n_words, const uint64_t *scalars, uint32_t n_scalars)
{
    uint32_t id = mtprof__inputs_id(w, site, words, n_words);
    uint64_t *at = NULL;
    if (id != 0 && (at = batch_take(b, 1)) != NULL) {
        at[0] = mtprof__id_word(MTPROF_REC_INPUTS, id);
    } else if (id == 0 && n_words < MTPROF__RECORD_MAX &&
               (at = batch_take(b, 1 + n_words)) != NULL) {
        at[0] = mtprof__word0(MTPROF_REC_INPUTS_INLINE, 1 + n_words, 0, 0);
        memcpy(at + 1, words, n_words * sizeof words[0]);
    }
    bool shown = at != NULL;
    b->cut = b->cut || !shown;
    if (!shown || n_scalars == 0) {
        return;
    }
    at = n_scalars < MTPROF__RECORD_MAX ? batch_take(b, 1 + n_scalars) : NULL;
    b->cut = b->cut || at == NULL;
    if (at != NULL) {
        at[0] = mtprof__word0(MTPROF_REC_SCALARS, 1 + n_scalars, n_scalars, 0);
        memcpy(at + 1, scalars, n_scalars * sizeof scalars[0]);
    }
}

static void batch_inputs(mtprof__writer *w, batch *b, uint32_t site, const mtprof_op *op)
{
    uint64_t words[MTPROF__RECORD_MAX], scalars[MTPROF__RECORD_MAX];
    uint32_t n_words, n_scalars;
    bool strides = (w->wants & MTPROF_WANT_STRIDES) != 0;
    if (MT_LIKELY(mtprof__encode_inputs(op->inputs, op->n_inputs, strides, MTPROF__RECORD_MAX - 1,
                                        words, &n_words, scalars, &n_scalars))) {
        batch_encoded(w, b, site, words, n_words, scalars, n_scalars);
        return;
    }
    /* Rare: a long list of tensors. It is worth a detour, not a large frame for every op. */
    uint64_t *large = mtb_pages_take(2 * MTPROF__INPUTS_MAX * sizeof *large);
    if (large != NULL &&
        mtprof__encode_inputs(op->inputs, op->n_inputs, strides, MTPROF__INPUTS_MAX, large,
                              &n_words, large + MTPROF__INPUTS_MAX, &n_scalars)) {
        batch_encoded(w, b, site, large, n_words, large + MTPROF__INPUTS_MAX, n_scalars);
    } else {
        b->cut = true;
    }
    mtb_pages_give(large, 2 * MTPROF__INPUTS_MAX * sizeof *large);
}

static void batch_tensors(batch *b, uint32_t outputs, const mtprof_tensor_ref *tensors,
                          uint32_t count)
{
    uint32_t most = (MTPROF__RECORD_MAX - 1) / 4;
    if (count > most) {
        count = most;
        b->cut = true;
    }
    uint64_t *at = batch_take(b, 1 + 4 * count);
    if (at != NULL) {
        at[0] = mtprof__word0(MTPROF_REC_TENSORS, 1 + 4 * count, outputs, 0);
        memcpy(at + 1, tensors, count * sizeof *tensors);
    }
}

/* Which of the op's details are both there and wanted: the mask of OPINFO. */
static uint32_t details(const mtprof_op *op, uint32_t wants)
{
    uint32_t mask = 0;
    if ((wants & MTPROF_WANT_DETAILS) != 0) {
        mask |= MTPROF_OP_SEQUENCE | MTPROF_OP_FORWARD_THREAD | MTPROF_OP_OVERLOAD |
                MTPROF_OP_RECORD_SCOPE | MTPROF_OP_CORRELATION;
    }
    if ((wants & MTPROF_WANT_FLOPS) != 0) {
        mask |= MTPROF_OP_FLOPS;
    }
    if ((wants & MTPROF_WANT_MODULES) != 0) {
        mask |= MTPROF_OP_MODULE;
    }
    return mask & op->fields;
}

static void batch_details(batch *b, const mtprof_op *op, uint32_t mask)
{
    const uint64_t values[] = {op->sequence, op->forward_thread, op->overload,   op->record_scope,
                               op->flops,    op->module,         op->correlation};
    uint32_t n = (uint32_t)__builtin_popcount(mask);
    uint64_t *at = batch_take(b, 1 + n);
    if (at == NULL) {
        return;
    }
    *at++ = mtprof__word0(MTPROF_REC_OPINFO, 1 + n, mask, 0);
    for (uint32_t bit = 0; bit < MT_COUNT(values); bit++) {
        if ((mask >> bit & 1) != 0) {
            *at++ = values[bit];
        }
    }
}

static void batch_op(mtprof__writer *w, batch *b, uint32_t site, const mtprof_op *op,
                     uintptr_t frame)
{
    uint32_t wants = w->wants;
    uint64_t *at;
    if ((wants & MTPROF_WANT_INPUTS) != 0 && op->n_inputs != 0 && op->inputs != NULL) {
        batch_inputs(w, b, site, op);
    }
    if ((wants & MTPROF_WANT_TENSORS) != 0 && op->n_tensors != 0 && op->tensors != NULL) {
        batch_tensors(b, 0, op->tensors, op->n_tensors);
    }
    uint32_t mask = details(op, wants);
    if (mask != 0) {
        batch_details(b, op, mask);
    }
    uint32_t stack = (wants & MTPROF_WANT_STACKS) != 0 ? op->stack : 0;
    if (stack == 0 && (wants & MTPROF_WANT_NATIVE_STACKS) != 0) {
        stack = mtprof__stack_of(w, frame, 0);
    }
    if (stack != 0 && (at = batch_take(b, 1)) != NULL) {
        at[0] = mtprof__id_word(MTPROF_REC_STACK, stack);
    }
    if ((wants & MTPROF_WANT_MEMORY) != 0 && (op->fields & MTPROF_OP_MEMORY) != 0 &&
        (at = batch_take(b, 1)) != NULL) {
        at[0] = mtprof__memory_word(MTPROF_REC_MEM_BEFORE, op->memory_device, op->memory_before);
    }
}

mtprof_token mtprof_i_op_begin(mtprof_site *site, const mtprof_op *op)
{
    uint64_t state;
    mtprof__writer *w = enter_attached(&state);
    if (w == NULL) {
        return 0;
    }
    mtprof_token token = 0;
    if (mtprof__site_register(site) && (state & MTPROF__GET(site->reserved)) != 0) {
        /* A struct of an older program is shorter: what it lacks is zero. */
        mtprof_op padded;
        if (op != NULL && op->struct_size < sizeof *op) {
            memset(&padded, 0, sizeof padded);
            memcpy(&padded, op, op->struct_size);
            op = &padded;
        }
        batch b;
        b.count = 0;
        b.cut = false;
        uint32_t id = __atomic_load_n(&site->id, __ATOMIC_RELAXED);
        batch_begin(&b, site->flags, id, op != NULL && (op->fields & MTPROF_OP_PARENT) != 0,
                    op != NULL ? op->parent : 0, state);
        uint32_t bare = b.count;
        if (op != NULL) {
            batch_op(w, &b, id, op, (uintptr_t)__builtin_frame_address(0));
        }
        b.words[0] |= (uint64_t)(b.count > bare ? MTPROF_FLAG_PAYLOAD : 0) << 16;
        token = batch_store(w, &b, true);
    }
    mtprof__leave(w);
    return token;
}

/* ---- payloads that come later ---- */

/* Stores a payload for a token: right behind its event where possible, else with its key in front.
 */
static void attach_payload(mtprof_token token, const uint64_t *payload, uint32_t count)
{
    uint64_t state;
    mtprof__writer *w = enter_attached(&state);
    if (w == NULL) {
        return;
    }
    bool of_instant = token == MTPROF_LATEST_INSTANT;
    token = of_instant ? 0 : token; /* how an instant is remembered */
    bool current = of_instant || token >> 56 == mtprof__epoch_byte((uint32_t)(state >> 32));
    bool direct = w->payload_at != NULL && w->payload_at == w->cursor && w->latest_token == token;
    if (current && (direct || token != 0)) {
        uint32_t before = direct ? 0 : 2;
        uint64_t *at = mtprof__reserve(w, before + count, 1, false);
        /* A new chunk may have come between: a payload never starts one. */
        if (at != NULL && direct && at != w->payload_at) {
            direct = false;
            before = token != 0 ? 2 : 0;
            at = token != 0 ? mtprof__reserve(w, before + count, 1, false) : NULL;
        }
        if (at != NULL) {
            if (before != 0) {
                mtprof__put(at, mtprof__word0(MTPROF_REC_ATTACH, 2, 0, 0));
                mtprof__put(at + 1, token & MTPROF__KEY_MASK);
            }
            for (uint32_t i = 0; i < count; i++) {
                mtprof__put(at + before + i, payload[i]);
            }
            w->latest_token = token;
            w->payload_at = at + before + count;
            mtprof__publish(w, at + before + count);
        }
    }
    mtprof__leave(w);
}

static void meta(mtprof_token token, uint32_t key, uint32_t type, uint64_t value)
{
    uint64_t payload[2] = {mtprof__word0(MTPROF_REC_META, 2, type, key), value};
    if (key != 0 && token != 0 && mtprof__load_state() != 0) {
        attach_payload(token, payload, 2);
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
    meta(token, key, MTPROF_META_DOUBLE, bits);
}

void mtprof_meta_bool(mtprof_token token, uint32_t key, bool value)
{
    meta(token, key, MTPROF_META_BOOL, value);
}

void mtprof_meta_text(mtprof_token token, uint32_t key, const char *text, size_t length)
{
    if (key == 0 || token == 0 || text == NULL || mtprof__load_state() == 0) {
        return;
    }
    if (length > MTPROF__INLINE_MAX) {
        length = MTPROF__INLINE_MAX;
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, 1);
    }
    uint64_t payload[2 + MTPROF__INLINE_MAX / 8];
    uint32_t count = 2 + (uint32_t)mtprof__text_words(length);
    payload[0] = mtprof__word0(MTPROF_REC_META, count, MTPROF_META_TEXT, key);
    payload[1] = length;
    batch_text(payload + 2, text, length);
    attach_payload(token, payload, count);
}

void mtprof_op_outputs(mtprof_token token, const mtprof_tensor_ref *outputs, uint32_t count)
{
    if (token == 0 || outputs == NULL || count == 0 || !mtprof_wants(MTPROF_WANT_TENSORS)) {
        return;
    }
    batch b = {.count = 0};
    batch_tensors(&b, 1, outputs, count);
    if (b.cut) {
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, 1);
    }
    attach_payload(token, b.words, b.count);
}

/* ---- allocations ---- */

/* RESERVED is told only when it changes; the first two devices are remembered. */
static void tell_reserved(mtprof__writer *w, uint32_t device, uint64_t bytes)
{
    if (device < 2 && w->reserved_seen[device] == bytes) {
        return;
    }
    uint64_t *at = mtprof__reserve(w, 2, 0, false);
    if (at != NULL) {
        mtprof__put(at, mtprof__word0(MTPROF_REC_RESERVED, 2, device, 0));
        mtprof__put(at + 1, bytes);
        mtprof__publish(w, at + 2);
        if (device < 2) {
            w->reserved_seen[device] = bytes;
        }
    }
}

void mtprof_i_alloc(uint32_t device, uint64_t address, int64_t bytes, uint64_t allocated,
                    uint64_t reserved_bytes)
{
    uint64_t state;
    mtprof__writer *w = enter_attached(&state);
    if (w == NULL) {
        return;
    }
    device = device < 256 ? device : 255;
    tell_reserved(w, device, reserved_bytes);
    /* Room for a full time in front, should the short one not reach. */
    uint64_t *at = mtprof__reserve(w, 6, 1, false);
    if (at != NULL) {
        bool inside = w->depth > (int64_t)__atomic_load_n(&w->foreign_ends, __ATOMIC_RELAXED);
        uint64_t last = w->end_ticks > w->time_ref ? w->end_ticks : w->time_ref;
        uint64_t elapsed = (inside ? last : mtprof__ticks()) - w->time_ref;
        if (elapsed > UINT32_MAX) {
            w->time_ref += elapsed;
            mtprof__put(at, mtprof__word0(MTPROF_REC_TIME, 2, 0, 0));
            mtprof__put(at + 1, w->time_ref);
            at += 2;
            elapsed = 0;
        }
        mtprof__put(at, mtprof__word0(MTPROF_REC_ALLOC, 4, device | (uint32_t)inside << 8,
                                      (uint32_t)elapsed));
        mtprof__put(at + 1, address);
        mtprof__put(at + 2, (uint64_t)bytes);
        mtprof__put(at + 3, allocated);
        MTPROF__SET(w->others, w->others + 1);
        w->payload_at = NULL;
        mtprof__publish(w, at + 4);
    }
    mtprof__leave(w);
}
