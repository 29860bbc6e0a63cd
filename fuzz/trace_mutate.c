/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutations of traces that know what a record is: lengths stay right, checksums are set when the
 * input becomes a trace (trace_input.c), so what changes is what records say. Inputs of the other
 * modes are first brought into the small form where they can be.
 *
 *     input ─► pieces of records ─► a few changes ─► input
 *
 * One change in eight is left to libFuzzer, which knows nothing.
 */
#include "fuzz_random.h"
#include "mtprof/format/layout.h"
#include "trace_input.h"

#include <stdlib.h>
#include <string.h>

enum {
    WORDS_MAX = 400, /* of a piece */
    RECORD_MAX = 40, /* words of a record that is made here */
    CHANGES_MAX = 4
};

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *other,
                                 size_t other_size, uint8_t *out, size_t max_size, unsigned seed);

typedef struct piece {
    trace_form_piece head;
    uint64_t words[WORDS_MAX];
} piece;

typedef struct form {
    trace_form_head head;
    size_t n;
    piece pieces[TRACE_FORM_PIECES];
} form;

/* ---- random numbers -------------------------------------------------------------------------- */

/* Numbers at which something changes: small ones, powers of two, the edges of signed times. */
static uint64_t edge_number(void)
{
    uint64_t bit = (uint64_t)1 << below(64);
    switch (below(10)) {
    case 0: return below(4);
    case 1: return below(300);
    case 2: return bit;
    case 3: return bit - 1;
    case 4: return ~bit + below(3);
    case 5: return INT64_MAX - below(3);
    case 6: return (uint64_t)INT64_MIN + below(3);
    case 7: return UINT64_MAX - below(3);
    case 8: return below(20) * 1000; /* a usual time */
    default: return next_random();
    }
}

/* Ids that are likely to be defined. */
static uint32_t small_id(void)
{
    return below(12) == 0 ? (uint32_t)edge_number() : (uint32_t)below(10);
}

static uint64_t some_key(void)
{
    uint64_t ordinal = below(8) == 0 ? edge_number() & 0xFFFFFFFFFF : below(12);
    uint64_t explicit_bit = below(8) == 0 ? (uint64_t)1 << 39 : 0;
    return (below(4) << MTPROF_ORDINAL_BITS) | ordinal | explicit_bit;
}

static uint64_t some_time(void)
{
    return below(4) == 0 ? edge_number() : below(40) * 500;
}

/* ---- making records -------------------------------------------------------------------------- */

static const uint8_t thread_kinds[] = {
    MTPROF_REC_BEGIN,     MTPROF_REC_BEGIN,   MTPROF_REC_BEGIN,        MTPROF_REC_END,
    MTPROF_REC_END,       MTPROF_REC_END,     MTPROF_REC_BEGIN_X,      MTPROF_REC_END_X,
    MTPROF_REC_INSTANT,   MTPROF_REC_COUNTER, MTPROF_REC_FLOW,         MTPROF_REC_LAUNCH,
    MTPROF_REC_ALLOC,     MTPROF_REC_TIME,    MTPROF_REC_EPOCH,        MTPROF_REC_THREAD,
    MTPROF_REC_RESERVED,  MTPROF_REC_LOST,    MTPROF_REC_META,         MTPROF_REC_NAME,
    MTPROF_REC_SCALARS,   MTPROF_REC_TENSORS, MTPROF_REC_OPINFO,       MTPROF_REC_INPUTS_INLINE,
    MTPROF_REC_ATTACH,    MTPROF_REC_INPUTS,  MTPROF_REC_STACK,        MTPROF_REC_MEM_BEFORE,
    MTPROF_REC_MEM_AFTER, MTPROF_REC_ALLOC,   MTPROF_REC_OUT_OF_MEMORY};
static const uint8_t source_kinds[] = {
    MTPROF_REC_ACTIVITY, MTPROF_REC_ACTIVITY, MTPROF_REC_CLOCK_PAIR, MTPROF_REC_LOST,
    MTPROF_REC_COUNTER,  MTPROF_REC_INSTANT,  MTPROF_REC_META,       MTPROF_REC_NAME};
static const uint8_t control_kinds[] = {MTPROF_REC_ANCHOR,       MTPROF_REC_WINDOW_OPEN,
                                        MTPROF_REC_WINDOW_CLOSE, MTPROF_REC_STEP,
                                        MTPROF_REC_TRACE_META,   MTPROF_REC_WARNING};
static const uint8_t definition_kinds[] = {
    MTPROF_REC_DEF_STRING, MTPROF_REC_DEF_INPUTS, MTPROF_REC_DEF_FRAME, MTPROF_REC_DEF_STACK,
    MTPROF_REC_DEF_THREAD, MTPROF_REC_DEF_SOURCE, MTPROF_REC_DEF_MODULE};

#define PICK(kinds) ((kinds)[below(sizeof(kinds))])

static uint8_t some_kind(uint8_t stream)
{
    switch (below(60) == 0 ? below(6) : stream) {
    case MTPROF_STREAM_DEFINITIONS: return PICK(definition_kinds);
    case MTPROF_STREAM_CONTROL: return PICK(control_kinds);
    case MTPROF_STREAM_THREAD: return PICK(thread_kinds);
    case MTPROF_STREAM_SOURCE: return PICK(source_kinds);
    default: return (uint8_t)below(256);
    }
}

static uint64_t pair(uint64_t low, uint64_t high)
{
    return (low & UINT32_MAX) | high << 32;
}

/* A length and a text; the words it took. Some are names that exporters look at. */
static uint32_t put_text(uint64_t *at)
{
    static const char *const texts[] = {"",
                                        "a",
                                        "aten::add",
                                        "Optimizer.step#SGD.step",
                                        "[memory]",
                                        "float",
                                        "process_name",
                                        "ProfilerStep#7",
                                        "nn.Module",
                                        "backward",
                                        "x.py(7): f",
                                        "AccumulateGrad",
                                        "aten::add_",
                                        "\xFF\xFE;",
                                        "with_stack",
                                        "autograd::engine::evaluate_function: AddBackward0"};
    const char *text = texts[below(sizeof texts / sizeof texts[0])];
    size_t length = strlen(text);
    at[0] = length;
    mtprof__put_text(at + 1, text, length);
    return 1 + (uint32_t)mtprof__text_words(length);
}

/* An input list that is nearly always well-formed. */
static uint32_t put_inputs(uint64_t *at, uint32_t room)
{
    uint32_t n = 0;
    uint32_t values = 1 + (uint32_t)below(4);
    for (uint32_t i = 0; i < values && n + 6 < room; i++) {
        uint64_t kind = below(8);
        uint64_t dims = kind == MTPROF_INPUT_TENSOR ? below(3) : 0;
        uint64_t strided = kind == MTPROF_INPUT_TENSOR ? below(2) : 0;
        uint64_t high = kind == MTPROF_INPUT_LIST ? below(3) : small_id();
        at[n++] = kind | dims << 8 | strided << 16 | high << 32;
        for (uint64_t d = 0; d < dims << strided; d++) {
            at[n++] = below(6) == 0 ? edge_number() : below(9);
        }
        values += kind == MTPROF_INPUT_LIST ? (uint32_t)high : kind == MTPROF_INPUT_KEYWORD;
    }
    return n;
}

/* Writes the words of a record after its first; returns how many. Sets *aux and *arg to match. */
static uint32_t put_body(uint8_t kind, uint64_t *at, uint32_t *aux, uint32_t *arg)
{
    uint32_t n = 0;
    switch (kind) {
    case MTPROF_REC_BEGIN:
    case MTPROF_REC_INSTANT:
    case MTPROF_REC_LAUNCH:
    case MTPROF_REC_BEGIN_X:
        *aux = (uint32_t)(below(5) | (below(3) == 0 ? below(16) << 4 : 0));
        *arg = below(8) == 0 ? 0 : small_id();
        at[n++] = some_time();
        if (kind == MTPROF_REC_LAUNCH) {
            at[n++] = pair(below(3), below(3));
        } else if (kind == MTPROF_REC_BEGIN_X) {
            at[n++] = below(2) == 0 ? 0 : some_key() | (uint64_t)1 << 39;
            at[n++] = below(2) == 0 ? MTPROF_KEY_STRUCTURE : some_key();
        }
        return n;
    case MTPROF_REC_END_X:
        at[n++] = some_time();
        at[n++] = some_key();
        return n;
    case MTPROF_REC_COUNTER:
    case MTPROF_REC_FLOW:
        *aux = (uint32_t)below(kind == MTPROF_REC_FLOW ? 3 : 2);
        at[n++] = some_time();
        at[n++] = edge_number();
        return n;
    case MTPROF_REC_ALLOC:
    case MTPROF_REC_OUT_OF_MEMORY:
        *aux = (uint32_t)(below(3) | below(2) << 8);
        at[n++] = kind == MTPROF_REC_ALLOC ? below(6) * 512 : some_time();
        at[n++] = below(3) == 0 ? edge_number() : below(2) == 0 ? 512 : (uint64_t)-512;
        at[n++] = below(3) == 0 ? edge_number() : below(9) * 512;
        return n;
    case MTPROF_REC_META:
        *aux = (uint32_t)below(6);
        if (*aux == MTPROF_META_TEXT) {
            return put_text(at);
        }
        at[n++] = *aux == MTPROF_META_BOOL ? below(2) : edge_number();
        return n;
    case MTPROF_REC_NAME: *arg = 0; return put_text(at);
    case MTPROF_REC_INPUTS_INLINE:
    case MTPROF_REC_DEF_INPUTS: return put_inputs(at, RECORD_MAX - 2);
    case MTPROF_REC_SCALARS:
        *aux = (uint32_t)below(5);
        for (; n < *aux; n++) {
            at[n] = edge_number();
        }
        return n;
    case MTPROF_REC_TENSORS:
        *aux = (uint32_t)below(2);
        for (uint64_t i = below(3); i > 0; i--) {
            at[n++] = below(6);
            at[n++] = below(6) * 512;
            at[n++] = below(4) == 0 ? edge_number() : 0;
            at[n++] = pair(below(3), below(3));
        }
        return n;
    case MTPROF_REC_OPINFO:
        *aux = (uint32_t)below(128);
        for (uint32_t mask = *aux; mask != 0; mask &= mask - 1) {
            at[n++] = below(3) == 0 ? edge_number() : below(8);
        }
        return n;
    case MTPROF_REC_LOST:
        *aux = (uint32_t)below(16);
        at[n++] = edge_number();
        return n;
    case MTPROF_REC_ACTIVITY:
        *aux = (uint32_t)below(8);
        at[n++] = some_time();
        at[n++] = some_time();
        at[n++] = some_key();
        at[n++] = pair(below(3), below(3));
        at[n++] = edge_number();
        at[n++] = edge_number();
        return n;
    case MTPROF_REC_DEF_STRING: {
        n = put_text(at);
        if (below(4) == 0) { /* with a place */
            *aux = 1;
            memmove(at + 2, at + 1, (n - 1) * sizeof *at);
            at[1] = pair(small_id(), below(99));
            n++;
        }
        return n;
    }
    case MTPROF_REC_TRACE_META: {
        n = put_text(at);
        uint64_t key = at[0];
        uint32_t more = put_text(at + n);
        uint64_t value = at[n];
        memmove(at + n, at + n + 1, (more - 1) * sizeof *at);
        at[0] = pair(key, value);
        return n + more - 1;
    }
    case MTPROF_REC_WARNING: at[0] = some_time(); return 1 + put_text(at + 1);
    case MTPROF_REC_WINDOW_CLOSE: *aux = (uint32_t)below(3); break;
    case MTPROF_REC_STEP: *aux = (uint32_t)below(4); break;
    case MTPROF_REC_DEF_STACK: at[n++] = pair(below(*arg + 1), 1 + below(6)); return n;
    case MTPROF_REC_DEF_FRAME: at[n++] = pair(small_id(), small_id()); break;
    default: break;
    }
    /* Times, ids and numbers of those that have no better rule. */
    uint32_t words = 1 + (uint32_t)below(4);
    for (; n < words; n++) {
        at[n] = n == 0 ? some_time() : below(2) == 0 ? edge_number() : pair(below(9), below(9));
    }
    return n;
}

/* A record for a stream; its words. */
static uint32_t make_record(uint8_t stream, uint64_t words[RECORD_MAX])
{
    uint8_t kind = some_kind(stream);
    uint32_t aux = 0;
    uint32_t arg = small_id();
    if (kind == MTPROF_REC_END) {
        words[0] = mtprof__end_word(1 + below(below(8) == 0 ? 70000 : 3), some_time());
        return 1;
    }
    if ((kind & 0x80) != 0) {
        words[0] = kind == MTPROF_REC_MEM_BEFORE || kind == MTPROF_REC_MEM_AFTER
                       ? mtprof__memory_word(kind, (uint32_t)below(3), edge_number())
                       : mtprof__id_word(kind, small_id());
        return 1;
    }
    uint32_t n = 1 + put_body(kind, words + 1, &aux, &arg);
    words[0] = mtprof__word0(kind, n, aux, arg);
    return n;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Words of the record at `at`; 0: there is none that fits. */
static uint32_t record_words(const piece *p, uint32_t at)
{
    uint64_t word = p->words[at];
    uint64_t length = (word & 0x80) != 0 ? 1 : word >> 8 & 0xFF;
    if (length == 0xFF) {
        length = at + 1 < p->head.n_words ? p->words[at + 1] : 0;
    }
    return length > 0 && length <= p->head.n_words - at ? (uint32_t)length : 0;
}

/* Some record of a piece: where it begins, or the end. */
static uint32_t some_record(const piece *p)
{
    uint32_t places[WORDS_MAX];
    uint32_t n = 0;
    for (uint32_t at = 0; at < p->head.n_words;) {
        places[n++] = at;
        uint32_t words = record_words(p, at);
        at += words > 0 ? words : p->head.n_words;
    }
    return n > 0 ? places[below(n)] : 0;
}

static void insert(piece *p, uint32_t at, const uint64_t *words, uint32_t n)
{
    if (p->head.n_words + n > WORDS_MAX) {
        return;
    }
    memmove(p->words + at + n, p->words + at, (p->head.n_words - at) * sizeof *words);
    memcpy(p->words + at, words, n * sizeof *words);
    p->head.n_words = (uint16_t)(p->head.n_words + n);
}

static void cut(piece *p, uint32_t at, uint32_t n)
{
    memmove(p->words + at, p->words + at + n, (p->head.n_words - at - n) * sizeof *p->words);
    p->head.n_words = (uint16_t)(p->head.n_words - n);
}

static void insert_new(piece *p)
{
    uint64_t words[RECORD_MAX];
    uint32_t at = below(3) == 0 ? p->head.n_words : some_record(p);
    uint32_t many = 1 + (uint32_t)below(3);
    for (uint32_t i = 0; i < many; i++) {
        uint32_t n = make_record(p->head.stream, words);
        insert(p, at, words, n);
        at += at + n <= p->head.n_words ? n : 0;
    }
}

static void change_record(piece *p)
{
    uint32_t at = some_record(p);
    uint32_t n = p->head.n_words > 0 ? record_words(p, at) : 0;
    if (n == 0) {
        insert_new(p);
        return;
    }
    uint64_t *words = p->words + at;
    uint64_t copy[WORDS_MAX];
    switch (below(8)) {
    case 0: cut(p, at, n); break;
    case 1: /* once more, here or elsewhere */
        memcpy(copy, words, n * sizeof *copy);
        insert(p, below(2) == 0 ? at : some_record(p), copy, n);
        break;
    case 2: words[0] ^= (uint64_t)1 << (16 + below(16)); break;
    case 3: words[0] = (words[0] & UINT32_MAX) | (uint64_t)small_id() << 32; break;
    case 4:
        words[0] = (words[0] & ~(uint64_t)0xFF) |
                   (below(2) == 0 ? some_kind(p->head.stream) : (words[0] & 0xFF) ^ 1);
        break;
    case 5: words[0] ^= (uint64_t)1 << below(64); break;
    default: /* one of its words: mostly a time, an id or a size */
        if (n > 1) {
            uint64_t *word = words + 1 + below(n - 1);
            uint64_t old = *word;
            switch (below(5)) {
            case 0: *word = edge_number(); break;
            case 1: *word = old + below(5) - 2; break;
            case 2: *word = old ^ (uint64_t)1 << below(64); break;
            case 3: *word = some_key(); break;
            default: *word = some_time(); break;
            }
        } else {
            words[0] = (words[0] & 0xFFFF) | edge_number() << 16;
        }
    }
}

static void change_head(piece *p)
{
    switch (below(8)) {
    case 0: p->head.base_ticks = some_time(); break;
    case 1: p->head.first_ordinal = below(3) == 0 ? edge_number() : below(20); break;
    case 2: p->head.epoch = small_id(); break;
    case 3: p->head.thread = small_id(); break;
    case 4: p->head.stream = (uint8_t)(below(20) == 0 ? below(256) : 1 + below(4)); break;
    case 5: p->head.flags ^= (uint8_t)(1u << (1 + below(3))); break;
    default: p->head.flags ^= (uint8_t)(below(4) == 0); break;
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* A chunk of its own, with what a trace usually has in such a stream. */
static void add_piece(form *f)
{
    static const uint8_t streams[] = {MTPROF_STREAM_THREAD,  MTPROF_STREAM_THREAD,
                                      MTPROF_STREAM_THREAD,  MTPROF_STREAM_DEFINITIONS,
                                      MTPROF_STREAM_CONTROL, MTPROF_STREAM_SOURCE};
    if (f->n == TRACE_FORM_PIECES) {
        return;
    }
    piece *p = &f->pieces[f->n++];
    *p = (piece){.head = {.stream = PICK(streams), .flags = 1, .epoch = 1, .thread = 1}};
    bool slots = p->head.stream == MTPROF_STREAM_THREAD || p->head.stream == MTPROF_STREAM_SOURCE;
    p->head.flags |= slots ? (uint8_t)((1 + below(3)) << 1) : 0;
    for (uint64_t i = below(6); i > 0; i--) {
        insert_new(p);
    }
}

static void change_trace(form *f)
{
    trace_form_head *head = &f->head;
    switch (below(9)) {
    case 0: head->tick_period = below(2) == 0 ? edge_number() : (uint64_t)1 << below(58); break;
    case 1: head->start_ticks = some_time(); break;
    case 2: head->start_mono_ns = some_time(); break;
    case 3: head->start_real_ns = edge_number(); break;
    case 4: head->end_ticks = some_time(); break;
    case 5: head->flags ^= (uint8_t)(1u << below(4)); break;
    default: head->which = (uint8_t)next_random(); break;
    }
}

static void change(form *f)
{
    uint64_t dice = below(32);
    piece *p = f->n > 0 ? &f->pieces[below(f->n)] : NULL;
    if (p == NULL || dice == 0) {
        add_piece(f);
    } else if (dice < 3) {
        change_trace(f);
    } else if (dice < 5) {
        change_head(p);
    } else if (dice == 5 && f->n > 1) {
        *p = f->pieces[--f->n];
    } else if (dice == 6 && f->n < TRACE_FORM_PIECES) {
        f->pieces[f->n++] = *p;
    } else if (dice < 17) {
        insert_new(p);
    } else {
        change_record(p);
    }
}

/* ---- input to form and back ------------------------------------------------------------------ */

static void take_piece(form *f, const trace_form_piece *head, const uint8_t *records, size_t bytes)
{
    if (f->n == TRACE_FORM_PIECES) {
        return;
    }
    piece *p = &f->pieces[f->n++];
    p->head = *head;
    size_t words = head->n_words < bytes / 8 ? head->n_words : bytes / 8;
    p->head.n_words = (uint16_t)(words < WORDS_MAX ? words : WORDS_MAX);
    memcpy(p->words, records, (size_t)p->head.n_words * 8);
}

/* Takes a trace as it is: its chunks become pieces. */
static void take_file(form *f, const uint8_t *bytes, size_t size)
{
    mtprof__file_header header;
    memset(&header, 0, sizeof header);
    memcpy(&header, bytes, size < sizeof header ? size : sizeof header);
    f->head = (trace_form_head){.mode = TRACE_FORM,
                                .which = (uint8_t)next_random(),
                                .flags = (uint8_t)((header.closed != 0) | (header.policy & 3) << 1),
                                .tick_period = header.tick_period,
                                .start_ticks = header.start_ticks,
                                .start_mono_ns = header.start_mono_ns,
                                .start_real_ns = header.start_real_ns,
                                .end_ticks = header.end_ticks};
    for (size_t at = MTPROF_HEADER_BYTES; at + MTPROF_CHUNK_HEADER < size;
         at += MTPROF_CHUNK_ALIGN) {
        mtprof__chunk_header chunk;
        memcpy(&chunk, bytes + at, sizeof chunk);
        if (chunk.magic == MTPROF_CHUNK_MAGIC) {
            uint64_t words = chunk.committed / 8;
            trace_form_piece head = {.stream = chunk.stream,
                                     .flags = (uint8_t)((chunk.state == 2) | (chunk.slot & 3) << 1),
                                     .n_words = (uint16_t)(words < WORDS_MAX ? words : WORDS_MAX),
                                     .epoch = chunk.epoch,
                                     .thread = chunk.thread,
                                     .base_ticks = chunk.base_ticks,
                                     .first_ordinal = chunk.first_ordinal};
            take_piece(f, &head, bytes + at + sizeof chunk, size - at - sizeof chunk);
        }
    }
}

static void take_form(form *f, const uint8_t *data, size_t size)
{
    size_t at = sizeof f->head;
    memcpy(&f->head, data, size < at ? size : at);
    while (at < size && size - at >= sizeof(trace_form_piece) && f->n < TRACE_FORM_PIECES) {
        trace_form_piece head;
        memcpy(&head, data + at, sizeof head);
        at += sizeof head;
        take_piece(f, &head, data + at, size - at);
        size_t bytes = (size_t)head.n_words * 8;
        at += bytes < size - at ? bytes : size - at;
    }
}

static void take(form *f, const uint8_t *data, size_t size)
{
    f->n = 0;
    memset(&f->head, 0, sizeof f->head);
    if (size > 0 && data[0] == TRACE_FORM) {
        take_form(f, data, size);
    } else if (size > MTPROF_HEADER_BYTES && data[0] % 3 != 2) {
        take_file(f, data + 1, size - 1);
    } else {
        f->head = (trace_form_head){.which = (uint8_t)next_random(),
                                    .tick_period = (uint64_t)1 << MTPROF_PERIOD_SHIFT};
    }
    f->head.mode = TRACE_FORM;
}

static size_t give(const form *f, uint8_t *out, size_t max_size)
{
    size_t at = sizeof f->head;
    if (max_size < at) {
        return 0;
    }
    memcpy(out, &f->head, at);
    for (size_t i = 0; i < f->n; i++) {
        size_t bytes = (size_t)f->pieces[i].head.n_words * 8;
        if (max_size - at < sizeof f->pieces[i].head + bytes) {
            break;
        }
        memcpy(out + at, &f->pieces[i].head, sizeof f->pieces[i].head);
        at += sizeof f->pieces[i].head;
        memcpy(out + at, f->pieces[i].words, bytes);
        at += bytes;
    }
    return at;
}

static form at_hand;
static form second;

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    fuzz_random_state = seed;
    if (below(8) == 0) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    take(&at_hand, data, size);
    for (uint64_t n = 1 + below(CHANGES_MAX); n > 0; n--) {
        change(&at_hand);
    }
    size_t made = give(&at_hand, data, max_size);
    return made > 0 ? made : LLVMFuzzerMutate(data, size, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *other,
                                 size_t other_size, uint8_t *out, size_t max_size, unsigned seed)
{
    fuzz_random_state = seed;
    take(&at_hand, one, one_size);
    take(&second, other, other_size);
    for (size_t i = 0; i < second.n; i++) {
        const piece *from = &second.pieces[i];
        if (below(2) == 0 && at_hand.n > 0) { /* after the records of a piece of its kind */
            piece *to = &at_hand.pieces[below(at_hand.n)];
            if (to->head.stream == from->head.stream) {
                insert(to, to->head.n_words, from->words, from->head.n_words);
            }
        } else if (at_hand.n < TRACE_FORM_PIECES) {
            at_hand.pieces[at_hand.n++] = *from;
        }
    }
    return give(&at_hand, out, max_size);
}
