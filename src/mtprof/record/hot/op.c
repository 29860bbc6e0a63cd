/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops with payloads. Two ways: where everything is known already (the same place with the same
 * shapes as last time) the words go straight into the chunk; everything else goes through a batch.
 */
#include "base/pages.h"
#include "base/struct_size.h"
#include "mtprof/record/define/ask_language.h"
#include "mtprof/record/hot/batch.h"
#include "mtprof/record/hot/inputs_cache.h"
#include "mtprof/record/hot/sample.h"

/* BEGIN, or BEGIN_X where a parent is named. */
static void batch_begin(mtprof__batch *b, uint32_t flags, uint32_t name, bool has_parent,
                        mtprof_token parent, uint64_t state)
{
    if (!has_parent) {
        uint64_t *at = mtprof__batch_start(b, 2);
        at[0] = mtprof__word0(MTPROF_REC_BEGIN, 2, flags, name);
        return;
    }
    uint64_t *at = mtprof__batch_start(b, 4);
    at[0] = mtprof__word0(MTPROF_REC_BEGIN_X, 4, flags, name);
    at[2] = 0; /* takes the next ordinal */
    at[3] = mtprof__token_in(parent, state) ? parent & MTPROF__KEY_MASK : 0;
}

/* ---- records: written at `at`, which has room; they return where they end ---- */

enum {
    PIECE_TENSORS = (MTPROF__RECORD_MAX - 1) / 4, /* of one record; more take several */
    TEXT_DEPTH = 16                               /* of lists; what is deeper is not shown */
};

MT_INLINE uint64_t *put_scalars(uint64_t *at, const uint64_t *scalars, uint32_t count)
{
    mtprof__put(at++, mtprof__word0(MTPROF_REC_SCALARS, 1 + count, count, 0));
    for (uint32_t i = 0; i < count; i++) {
        mtprof__put(at++, scalars[i]);
    }
    return at;
}

/* One of a reference's four words, as the trace has them: a copy of all four would be written to
 * the stack and wait there to be read again. */
MT_INLINE uint64_t ref_word(const mtprof_tensor_ref *ref, size_t i)
{
    uint64_t word;
    memcpy(&word, (const char *)ref + i * sizeof word, sizeof word);
    return word;
}

/* Identity of up to PIECE_TENSORS tensors. */
MT_INLINE uint64_t *put_tensors(uint64_t *at, uint32_t outputs, const mtprof_tensor_ref *tensors,
                                uint32_t count)
{
    mtprof__put(at++, mtprof__word0(MTPROF_REC_TENSORS, 1 + 4 * count, outputs, 0));
    for (const mtprof_tensor_ref *ref = tensors; ref < tensors + count; ref++, at += 4) {
        mtprof__put(at, ref_word(ref, 0));
        mtprof__put(at + 1, ref_word(ref, 1));
        mtprof__put(at + 2, ref_word(ref, 2));
        mtprof__put(at + 3, ref_word(ref, 3));
    }
    return at;
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

/* OPINFO. Straight on: most ops have one or two of them. */
MT_INLINE uint64_t *put_details(uint64_t *at, const mtprof_op *op, uint32_t mask)
{
    uint64_t *next = at + 1;
#define PUT(bit, value)                  \
    if ((mask & (uint32_t)(bit)) != 0) { \
        mtprof__put(next++, (value));    \
    }
    PUT(MTPROF_OP_SEQUENCE, op->sequence)
    if (MT_UNLIKELY((mask & ~(uint32_t)MTPROF_OP_SEQUENCE) != 0)) {
        PUT(MTPROF_OP_FORWARD_THREAD, op->forward_thread)
        PUT(MTPROF_OP_OVERLOAD, op->overload)
        PUT(MTPROF_OP_RECORD_SCOPE, op->record_scope)
        PUT(MTPROF_OP_FLOPS, op->flops)
        PUT(MTPROF_OP_MODULE, op->module)
        PUT(MTPROF_OP_CORRELATION, op->correlation)
    }
#undef PUT
    mtprof__put(at, mtprof__word0(MTPROF_REC_OPINFO, (uint32_t)(next - at), mask, 0));
    return next;
}

/* What follows inputs and tensors: at most MTPROF__OP_TAIL words. native: the stack of an op that
 * has none of its own. */
MT_INLINE uint64_t *put_tail(uint64_t *at, const mtprof_op *op, uint32_t wants, uint32_t native)
{
    uint32_t mask = details(op, wants);
    if (mask != 0) {
        at = put_details(at, op, mask);
    }
    if ((wants & MTPROF_WANT_STACKS) != 0 && op->stack != 0) {
        mtprof__put(at++, mtprof__id_word(MTPROF_REC_STACK, op->stack));
    } else if (native != 0) {
        mtprof__put(at++, mtprof__id_word(MTPROF_REC_STACK, native));
    }
    if ((wants & MTPROF_WANT_MEMORY) != 0 && (op->fields & MTPROF_OP_MEMORY) != 0) {
        mtprof__put(
            at++, mtprof__memory_word(MTPROF_REC_MEM_BEFORE, op->memory_device, op->memory_before));
    }
    return at;
}

/* ---- batches ---- */

/* As many as the batch has room for; the others follow when it is stored. */
static void batch_tensors(mtprof__batch *b, const mtprof_tensor_ref *tensors, uint32_t count)
{
    uint32_t used = b->count + 1;
    uint32_t most = used < MTPROF__BATCH_WORDS ? (MTPROF__BATCH_WORDS - used) / 4 : 0;
    uint32_t n = count;
    n = n < most ? n : most;
    n = n < PIECE_TENSORS ? n : PIECE_TENSORS;
    if (n > 0) {
        b->count = (uint32_t)(put_tensors(b->words + b->count, 0, tensors, n) - b->words);
    }
    b->tensors = tensors + n;
    b->n_tensors = count - n;
}

/* Long lists of tensors (fused optimizers). The writer is entered. */
static MT_COLD void attach_inputs(mtprof__writer *w, uint64_t state, mtprof_token token,
                                  const mtprof_tensor_ref *tensors, uint32_t count)
{
    uint64_t words[MTPROF__RECORD_MAX];
    while (count > 0) {
        uint32_t n = count < PIECE_TENSORS ? count : PIECE_TENSORS;
        uint64_t *end = put_tensors(words, 0, tensors, n);
        mtprof__attach_entered(w, state, token, words, (uint32_t)(end - words));
        tensors += n;
        count -= n;
    }
}

static void batch_scalars(mtprof__batch *b, const uint64_t *scalars, uint32_t count)
{
    if (count == 0) {
        return;
    }
    uint64_t *at = count < MTPROF__RECORD_MAX ? mtprof__batch_take(b, 1 + count) : NULL;
    b->cut = b->cut || at == NULL;
    if (at != NULL) {
        put_scalars(at, scalars, count);
    }
}

/* A list that the recording knows, with its scalars. */
static void batch_known(mtprof__batch *b, uint32_t id, const uint64_t *scalars, uint32_t count)
{
    uint64_t *at = mtprof__batch_take(b, 1);
    if (at == NULL) {
        return;
    }
    at[0] = mtprof__id_word(MTPROF_REC_INPUTS, id);
    batch_scalars(b, scalars, count);
}

/* Puts an encoded list and its scalars into the batch. */
static void batch_encoded(mtprof__writer *w, mtprof__batch *b, uint32_t site, const uint64_t *words,
                          uint32_t n_words, const uint64_t *scalars, uint32_t n_scalars)
{
    uint32_t id = mtprof__inputs_id(w, site, words, n_words);
    if (id != 0) {
        batch_known(b, id, scalars, n_scalars);
        return;
    }
    uint64_t *at = n_words < MTPROF__RECORD_MAX ? mtprof__batch_take(b, 1 + n_words) : NULL;
    b->cut = b->cut || at == NULL;
    if (at != NULL) {
        at[0] = mtprof__word0(MTPROF_REC_INPUTS_INLINE, 1 + n_words, 0, 0);
        memcpy(at + 1, words, n_words * sizeof words[0]);
        batch_scalars(b, scalars, n_scalars);
    }
}

static void batch_inputs(mtprof__writer *w, uint32_t wants, mtprof__batch *b, uint32_t site,
                         const mtprof_op *op)
{
    uint64_t words[MTPROF__RECORD_MAX], scalars[MTPROF__RECORD_MAX];
    uint32_t n_words, n_scalars;
    bool strides = (wants & MTPROF_WANT_STRIDES) != 0;
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

static void batch_op(mtprof__writer *w, uint32_t wants, mtprof__batch *b, uint32_t site,
                     const mtprof_op *op, uintptr_t frame)
{
    if ((wants & MTPROF_WANT_INPUTS) != 0 && op->known.id != 0) {
        if (op->known.epoch == w->epoch) {
            batch_known(b, op->known.id, op->scalars, op->n_scalars);
        } else {
            b->cut = true;
        }
    } else if ((wants & MTPROF_WANT_INPUTS) != 0 && op->n_inputs != 0) {
        if (op->inputs != NULL) {
            batch_inputs(w, wants, b, site, op);
        } else {
            b->cut = true;
        }
    }
    if ((wants & MTPROF_WANT_TENSORS) != 0 && op->n_tensors != 0) {
        if (op->tensors != NULL) {
            batch_tensors(b, op->tensors, op->n_tensors);
        } else {
            b->cut = true;
        }
    }
    bool stacked = (wants & MTPROF_WANT_STACKS) != 0 && op->stack != 0;
    bool native = !stacked && frame != 0 && (wants & MTPROF_WANT_NATIVE_STACKS) != 0;
    uint32_t stack = native ? mtprof__stack_of(w, frame, 0) : 0;
    b->count = (uint32_t)(put_tail(b->words + b->count, op, wants, stack) - b->words);
}

/* ---- the short way ---- */

enum {
    FAST_SCALARS = 16,
    FAST_TENSORS = 8,
    FAST_WORDS = 2 + 1 + 1 + FAST_SCALARS + 1 + 4 * FAST_TENSORS + MTPROF__OP_TAIL /* the most */
};

/* A known list and its scalars; NULL: take the long way. */
MT_INLINE uint64_t *fast_known(const mtprof_op *op, uint32_t epoch, uint64_t *at)
{
    uint32_t n = op->n_scalars;
    if (MT_UNLIKELY(op->known.epoch != epoch || n > FAST_SCALARS)) {
        return NULL;
    }
    mtprof__put(at++, mtprof__id_word(MTPROF_REC_INPUTS, op->known.id));
    return n != 0 ? put_scalars(at, op->scalars, n) : at;
}

/* A list that the place had last time; NULL: it is another one. */
MT_INLINE uint64_t *fast_inputs(mtprof__writer *w, uint32_t wants, uint32_t site,
                                const mtprof_op *op, uint64_t *at)
{
    const mtprof__cached_inputs *list = mtprof__inputs_of_site(w, site);
    bool strides = (wants & MTPROF_WANT_STRIDES) != 0;
    int scalars = -1;
    if (MT_UNLIKELY(list == NULL || op->inputs == NULL)) {
        return NULL;
    }
    if (MT_LIKELY(list->n_tensors == op->n_inputs && !strides)) {
        scalars = mtprof__inputs_match_tensors(list->words, op->inputs, op->n_inputs) ? 0 : -1;
    } else if (list->id != 0) {
        scalars =
            mtprof__inputs_match(list, op->inputs, op->n_inputs, strides, at + 2, FAST_SCALARS);
    }
    if (MT_UNLIKELY(scalars < 0)) {
        return NULL;
    }
    mtprof__put(at++, mtprof__id_word(MTPROF_REC_INPUTS, list->id));
    if (scalars > 0) {
        mtprof__put(at,
                    mtprof__word0(MTPROF_REC_SCALARS, 1 + (uint32_t)scalars, (uint32_t)scalars, 0));
        at += 1 + scalars;
    }
    return at;
}

/* Writes the payloads from `at` on; NULL: something is not defined yet, or is rare (slow path). */
MT_INLINE uint64_t *fast_payloads(mtprof__writer *w, uint64_t state, uint32_t site,
                                  const mtprof_op *op, uint64_t *at)
{
    uint32_t wants = (uint32_t)state;
    if ((wants & MTPROF_WANT_INPUTS) != 0) {
        if (MT_LIKELY(op->known.id != 0)) {
            at = fast_known(op, (uint32_t)(state >> 32), at);
        } else if (op->n_inputs != 0) {
            at = fast_inputs(w, wants, site, op, at);
        }
        if (MT_UNLIKELY(at == NULL)) {
            return NULL;
        }
    }
    if (MT_UNLIKELY((wants & MTPROF_WANT_TENSORS) != 0 && op->n_tensors != 0)) {
        if (op->n_tensors > FAST_TENSORS || op->tensors == NULL) {
            return NULL;
        }
        at = put_tensors(at, 0, op->tensors, op->n_tensors);
    }
    return put_tail(at, op, wants, 0);
}

/* False: take the long way; nothing has been published. The writer is entered, and ready for so
 * many words. */
MT_INLINE bool op_fast(mtprof__writer *w, uint64_t state, bool ready, mtprof_site *site,
                       const mtprof_op *op, mtprof_token *token)
{
    uint64_t word = mtprof__site_word(site);
    uint32_t id = (uint32_t)(word >> 32);
    uint32_t wants = (uint32_t)state;
    bool rare = op->struct_size < sizeof *op || (op->fields & MTPROF_OP_PARENT) != 0 ||
                (wants & MTPROF_WANT_NATIVE_STACKS) != 0;
    if (MT_UNLIKELY(!ready || id == 0 || rare)) {
        return false;
    }
    *token = 0;
    if (MT_UNLIKELY((wants & MTPROF__GET(site->wants)) == 0)) {
        return true;
    }
    uint64_t *begin = w->cursor;
    uint64_t *end = fast_payloads(w, state, id, op, begin + 2);
    if (MT_UNLIKELY(end == NULL)) {
        return false;
    }
    word |= end != begin + 2 ? MTPROF_FLAG_PAYLOAD << 16 : 0;
    *token = mtprof__finish_begin(w, begin, end, word, true);
    return true;
}

/* ---- the long way ---- */

/* A struct of an older program is shorter: what it lacks is zero. NULL: everything is. */
static void pad_op(const mtprof_op *op, mtprof_op *own)
{
    if (MT_LIKELY(op != NULL && op->struct_size == sizeof *own)) {
        *own = *op;
        return;
    }
    memset(own, 0, sizeof *own);
    if (op != NULL) {
        memcpy(own, op, op->struct_size < sizeof *own ? op->struct_size : sizeof *own);
    }
    own->struct_size = sizeof *own;
}

/* epoch: the one that the op's stack belongs to, where that is known. The writer is attached. */
static mtprof_token store_op(mtprof__writer *w, uint64_t state, uint32_t flags, uint32_t id,
                             const mtprof_op *op, uint32_t epoch, uintptr_t frame)
{
    mtprof_op own;
    if (op->struct_size < sizeof own || (epoch != 0 && epoch != (uint32_t)(state >> 32))) {
        pad_op(op, &own);
        if (epoch != 0 && epoch != (uint32_t)(state >> 32)) {
            own.stack = 0; /* a node of a recording that is over */
            mtprof__count(MTPROF_HEALTH_STACKS_MISSED, 1);
        }
        op = &own;
    }
    mtprof__batch b;
    batch_begin(&b, flags, id, (op->fields & MTPROF_OP_PARENT) != 0, op->parent, state);
    uint32_t bare = b.count;
    batch_op(w, (uint32_t)state, &b, id, op, frame);
    b.words[0] |= (uint64_t)(b.count > bare ? MTPROF_FLAG_PAYLOAD : 0) << 16;
    mtprof_token token = mtprof__batch_store(w, &b, true);
    if (MT_UNLIKELY(b.n_tensors > 0 && token != 0)) {
        attach_inputs(w, state, token, b.tensors, b.n_tensors);
    }
    return token;
}

static MT_COLD mtprof_token op_slow(mtprof_site *site, const mtprof_op *op, uint32_t epoch,
                                    uintptr_t frame)
{
    uint64_t state;
    mtprof__writer *w = mtprof__enter_attached(&state, 1);
    if (w == NULL) {
        return 0;
    }
    mtprof_token token = 0;
    if (mtprof__site_register(site) && (state & MTPROF__GET(site->wants)) != 0) {
        token =
            store_op(w, state, mtprof__site_flags(site), mtprof__site_name(site), op, epoch, frame);
    }
    mtprof__leave(w);
    return token;
}

mtprof_token mtprof_op_begin_named(const char *name, size_t length, uint32_t begin_flags,
                                   const mtprof_op *op)
{
    uint64_t state = mtprof__load_state();
    if (op == NULL || name == NULL || !mtprof_wants(mtprof__wants_of(begin_flags))) {
        return mtprof_begin_named(name, length, begin_flags);
    }
    mtprof_op own;
    uint32_t epoch = 0;
    pad_op(op, &own);
    if (mtprof__language_asks(state) != 0) {
        if (!mtprof__sample_keeps_name(state, begin_flags, name, length)) {
            return 0;
        }
        mtprof__writer *mine = mtprof__writer_mine(1);
        epoch = mine != NULL ? mtprof__ask(mine, state, begin_flags, &own) : 0;
    }
    mtprof__writer *w = mtprof__enter_attached(&state, 1);
    if (w == NULL) {
        return 0;
    }
    mtprof_token token = 0;
    uint32_t id = mtprof__dynamic_name(w, name, length);
    if (id == 0) {
        id = mtprof__dynamic_text(w, name, length); /* a full name leaves no room for the rest */
    }
    if (id != 0) {
        token = store_op(w, state, mtprof__begin_flags(begin_flags), id, &own, epoch,
                         (uintptr_t)__builtin_frame_address(0));
    }
    mtprof__leave(w);
    if (id == 0) {
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, 1);
        token = mtprof_begin_named(name, length, begin_flags);
    }
    return token;
}

mtprof_token mtprof__begin_asked(mtprof_site *site, const mtprof_op *op, uintptr_t frame)
{
    mtprof_op own;
    mtprof__writer *w = mtprof__mine != NULL ? mtprof__mine : mtprof__writer_mine(1);
    uint64_t state = mtprof__load_state();
    uint32_t wants = MTPROF__GET(site->wants); /* 0 before it has first recorded */
    wants = MT_LIKELY(wants != 0) ? wants : mtprof__wants_of(site->flags);
    if (w == NULL || (state & wants) == 0) {
        return 0;
    }
    pad_op(op, &own);
    uint32_t epoch = mtprof__ask(w, state, site->flags, &own);
    if (MT_LIKELY(mtprof__enter_fast(w))) {
        mtprof_token token = 0;
        uint64_t now = mtprof__load_state();
        bool ready = mtprof__ready(w, now, FAST_WORDS) && (epoch == 0 || now == state);
        bool done = op_fast(w, now, ready, site, &own, &token);
        mtprof__leave(w);
        if (MT_LIKELY(done)) {
            return token;
        }
    }
    return op_slow(site, &own, epoch, frame);
}

/* An op that sampling may leave out, or that the language is asked about. */
static MT_COLD mtprof_token op_asked(mtprof_site *site, const mtprof_op *op, uintptr_t frame)
{
    uint64_t state = mtprof__load_state();
    mtprof__writer *w = mtprof__mine;
    uint32_t wants = MTPROF__GET(site->wants);
    if ((state & MTPROF__SAMPLING) != 0 && w != NULL && wants != 0 &&
        ((state & wants) == 0 || !mtprof__sample_keeps_site(w, state, site))) {
        return 0;
    }
    return mtprof__begin_asked(site, op, frame);
}

mtprof_token mtprof_i_op_begin(mtprof_site *site, const mtprof_op *op)
{
    if (op == NULL) {
        return mtprof_i_begin(site);
    }
    mtprof__writer *w = mtprof__mine;
    if (MT_LIKELY(w != NULL && mtprof__enter_fast(w))) {
        mtprof_token token = 0;
        uint64_t state = mtprof__load_state();
        bool ready = mtprof__ready_to_begin(w, state, FAST_WORDS);
        bool done = op_fast(w, state, ready, site, op, &token);
        mtprof__leave(w);
        if (MT_LIKELY(done)) {
            return token;
        }
    }
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    return mtprof__language_asks(mtprof__load_state()) != 0 ? op_asked(site, op, frame)
                                                            : op_slow(site, op, 0, frame);
}

mtprof_token mtprof_begin_under(mtprof_site *site, mtprof_token parent)
{
    mtprof_op op = {.struct_size = sizeof op, .fields = MTPROF_OP_PARENT, .parent = parent};
    return mtprof_op_begin(site, &op);
}

void mtprof_op_outputs(mtprof_token token, const mtprof_tensor_ref *outputs, uint32_t count)
{
    if (token == 0 || count == 0 || !mtprof_wants(MTPROF_WANT_TENSORS)) {
        return;
    }
    if (outputs == NULL) {
        mtprof__count(MTPROF_HEALTH_TEXTS_CUT, 1);
        return;
    }
    uint64_t words[MTPROF__RECORD_MAX];
    for (;; outputs += PIECE_TENSORS, count -= PIECE_TENSORS) {
        uint32_t n = MT_LIKELY(count <= PIECE_TENSORS) ? count : PIECE_TENSORS;
        uint64_t *end = put_tensors(words, 1, outputs, n);
        mtprof__attach_payload(token, words, (uint32_t)(end - words));
        if (MT_LIKELY(n == count)) {
            return;
        }
    }
}

void mtprof_op_details(mtprof_token token, const mtprof_op *op)
{
    uint64_t words[MTPROF__OP_TAIL];
    mtprof_op known = {0};
    if (token == 0 || op == NULL || op->struct_size == 0 || mtprof__load_state() == 0) {
        return;
    }
    mtb_read_struct(&known, op);
    uint32_t mask = details(&known, __atomic_load_n(&mtprof_i_gate, __ATOMIC_RELAXED));
    if (mask != 0) {
        uint64_t *end = put_details(words, &known, mask);
        mtprof__attach_payload(token, words, (uint32_t)(end - words));
    }
}

static bool holds_text(const mtprof_value *values, uint32_t count, int depth)
{
    for (uint32_t i = 0; i < count; i++) {
        bool list = values[i].kind == MTPROF_INPUT_LIST && values[i].of.items != NULL && depth > 0;
        if (values[i].kind == MTPROF_INPUT_STRING ||
            (list && holds_text(values[i].of.items, values[i].type, depth - 1))) {
            return true;
        }
    }
    return false;
}

mtprof_inputs mtprof_know_inputs(const mtprof_value *inputs, uint32_t count)
{
    mtprof_inputs known = {0, 0};
    uint64_t words[MTPROF__RECORD_MAX], scalars[MTPROF__RECORD_MAX];
    uint32_t n_words, n_scalars;
    uint64_t state;
    bool wanted = inputs != NULL && count != 0 && mtprof_wants(MTPROF_WANT_INPUTS) &&
                  !holds_text(inputs, count, TEXT_DEPTH);
    mtprof__writer *w = wanted ? mtprof__enter_attached(&state, 0) : NULL;
    if (w == NULL) {
        return known;
    }
    bool strides = (state & MTPROF_WANT_STRIDES) != 0;
    if (mtprof__encode_inputs(inputs, count, strides, MTPROF__RECORD_MAX, words, &n_words, scalars,
                              &n_scalars)) {
        known.id = mtprof__inputs_id(w, 0, words, n_words);
        known.epoch = (uint32_t)(state >> 32);
    }
    mtprof__leave(w);
    return known;
}
