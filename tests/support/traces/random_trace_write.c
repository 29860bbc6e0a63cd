/* SPDX-License-Identifier: Apache-2.0
 *
 * Random traces as bytes, by docs/format.md.
 */
#include "harness/mt_test.h"
#include "support/traces/random_trace.h"

#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 4096,
    HEAD = 64,
    RECORD_MOST = 512, /* bytes of one action with its payloads */
    FRAMES = 4,
    STRING_FILE = RT_NAMES + 1,
    STRING_TYPE = RT_NAMES + 2,
    STRING_KEY = RT_NAMES + 3,
    STRING_SOURCE = RT_NAMES + 4,
    STRING_DEVICE = RT_NAMES + 5,
    STRING_THREAD = RT_NAMES + 6
};

#define W(...)                                                  \
    (sizeof((uint64_t[]){__VA_ARGS__}) / 8), (const uint64_t[]) \
    {                                                           \
        __VA_ARGS__                                             \
    }

static uint64_t pair(uint64_t low, uint64_t high)
{
    return low | high << 32;
}

/* ---- definitions ----------------------------------------------------------------------------- */

size_t rt_input_words(uint32_t i, uint64_t words[16], uint32_t *n_scalars)
{
    const uint64_t type = (uint64_t)STRING_TYPE << 32;
    size_t n = 0;
    *n_scalars = 0;
    words[n++] = 1 | 2 << 8 | type; /* a tensor [i, 3] */
    words[n++] = i;
    words[n++] = 3;
    if (i % 2 == 0) {
        words[n++] = 1 | 1 << 8 | 1 << 16 | type; /* a tensor with strides */
        words[n++] = 7;
        words[n++] = 1;
        words[n++] = 3; /* an integer */
        ++*n_scalars;
    }
    if (i % 3 == 0) {
        words[n++] = pair(2, 2); /* a list of a tensor and a double */
        words[n++] = 1 | 1 << 8 | type;
        words[n++] = 2;
        words[n++] = 4;
        ++*n_scalars;
    }
    if (i == 5) {
        words[n++] = 0;
        words[n++] = 5; /* a bool */
        ++*n_scalars;
    }
    return n;
}

static void write_string(trace_builder *b, uint32_t id, const char *text, size_t length)
{
    uint64_t words[16] = {length};
    memcpy(words + 1, text, length);
    tb_record(b, MTPROF_REC_DEF_STRING, 0, id, 1 + (length + 7) / 8, words);
}

static void write_definitions(rt_trace *trace, trace_builder *b)
{
    static const char *const further[] = {"model.py", "float", "note", "sim", "NPU", "worker"};
    b->chunk_bytes = 4 * PAGE;
    tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
    for (uint32_t i = 1; i <= RT_NAMES; i++) {
        write_string(b, i, trace->names[i], trace->name_lengths[i]);
    }
    for (uint32_t i = 0; i < 6; i++) {
        write_string(b, STRING_FILE + i, further[i], strlen(further[i]));
    }
    for (uint32_t i = 1; i <= RT_INPUTS; i++) {
        uint64_t words[16];
        uint32_t n_scalars = 0;
        size_t n = rt_input_words(i, words, &n_scalars);
        tb_record(b, MTPROF_REC_DEF_INPUTS, 0, i, n, words);
    }
    for (uint32_t i = 1; i <= FRAMES; i++) {
        tb_record(b, MTPROF_REC_DEF_FRAME, 0, i, W(pair(3 + i, STRING_FILE), 10 * i, 0));
    }
    for (uint32_t i = 1; i <= RT_STACKS; i++) {
        tb_record(b, MTPROF_REC_DEF_STACK, 0, i, W(pair(i / 2, 1 + i % FRAMES)));
    }
    uint32_t threads = 0;
    for (size_t i = 0; i < trace->n_actions; i++) {
        threads = trace->actions[i].thread > threads ? trace->actions[i].thread : threads;
    }
    tb_record(b, MTPROF_REC_DEF_SOURCE, 0, 1, W(pair(STRING_SOURCE, STRING_DEVICE)));
    b->chunk_bytes = (uint32_t)((threads * 32u / PAGE + 1) * PAGE + PAGE);
    tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
    for (uint32_t i = 1; i <= threads; i++) {
        tb_record(b, MTPROF_REC_DEF_THREAD, 0, i,
                  W(5000 + i, 0x7F00 + i, i % 2 == 0 ? STRING_THREAD : 0));
    }
}

/* ---- control --------------------------------------------------------------------------------- */

static void write_control(const rt_trace *trace, trace_builder *b)
{
    b->chunk_bytes = 2 * PAGE;
    tb_chunk(b, MTPROF_STREAM_CONTROL, 0);
    size_t at = 0;
    for (size_t i = 0; i < trace->n_epochs; i++) {
        const rt_epoch *epoch = &trace->epochs[i];
        for (; at < trace->n_steps && trace->step_marks[at].ticks < epoch->open_ticks; at++) {
            const rt_step *step = &trace->step_marks[at];
            tb_record(b, MTPROF_REC_STEP, 2, 0, W(step->ticks, step->step));
        }
        tb_record(b, MTPROF_REC_WINDOW_OPEN, 0, epoch->epoch,
                  W(epoch->open_ticks, 0x7FFF, pair(epoch->window, epoch->step)));
        bool last = i + 1 == trace->n_epochs;
        for (; at < trace->n_steps && (last || trace->step_marks[at].ticks < epoch->close_ticks);
             at++) {
            const rt_step *step = &trace->step_marks[at];
            tb_record(b, MTPROF_REC_STEP, 2, 0, W(step->ticks, step->step));
        }
        if (epoch->close_kind != 3) {
            tb_record(b, MTPROF_REC_WINDOW_CLOSE, (uint16_t)epoch->close_kind, epoch->epoch,
                      W(epoch->close_ticks, epoch->first_id, epoch->n_ids));
        }
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct slot_writer {
    rt_trace *trace;
    trace_builder *b;
    uint16_t slot;
    uint64_t next_ordinal;
    uint64_t reference; /* ticks */
    uint32_t epoch, thread;
    bool in_chunk;
    uint64_t *seed;
} slot_writer;

/* Room for one more action. */
static void make_room(slot_writer *w)
{
    trace_builder *b = w->b;
    if (w->in_chunk &&
        tb_get64(b, b->chunk + TB_CHUNK_COMMITTED) + HEAD + RECORD_MOST <= b->chunk_bytes) {
        return;
    }
    b->chunk_bytes = PAGE;
    b->next_ordinal = w->next_ordinal;
    uint64_t at = tb_chunk(b, MTPROF_STREAM_THREAD, w->slot);
    tb_set64(b, at + TB_CHUNK_BASE_TICKS, w->reference);
    tb_set32(b, at + TB_CHUNK_EPOCH, w->epoch);
    tb_set32(b, at + TB_CHUNK_THREAD, w->thread);
    w->in_chunk = true;
}

static void write_opinfo(const rt_trace *trace, trace_builder *b, const rt_payload *p)
{
    static const struct {
        uint32_t field, bit;
    } bits[] = {{RT_HAS_SEQUENCE, MTPROF_OPINFO_SEQUENCE},
                {RT_HAS_FORWARD, MTPROF_OPINFO_FORWARD_THREAD},
                {RT_HAS_OVERLOAD, MTPROF_OPINFO_OVERLOAD},
                {RT_HAS_RECORD_SCOPE, MTPROF_OPINFO_RECORD_SCOPE},
                {RT_HAS_FLOPS, MTPROF_OPINFO_FLOPS},
                {RT_HAS_MODULE, MTPROF_OPINFO_MODULE},
                {RT_HAS_FOREIGN_ID, MTPROF_OPINFO_CORRELATION}};
    const uint64_t values[] = {(uint64_t)p->sequence, p->forward_thread, p->overload,
                               p->record_scope,       p->flops,          p->module,
                               p->foreign_id};
    uint64_t words[8];
    uint16_t mask = 0;
    size_t n = 0;
    (void)trace;
    for (size_t i = 0; i < 7; i++) {
        if ((p->fields & bits[i].field) != 0) {
            mask |= (uint16_t)(1u << bits[i].bit);
            words[n++] = values[i];
        }
    }
    if (n > 0) {
        tb_record(b, MTPROF_REC_OPINFO, mask, 0, n, words);
    }
}

static void write_inputs(trace_builder *b, const rt_payload *p)
{
    uint64_t words[16];
    uint32_t n_scalars = 0;
    size_t n = rt_input_words(p->inputs, words, &n_scalars);
    if (p->inputs_inline) {
        tb_record(b, MTPROF_REC_INPUTS_INLINE, 0, 0, n, words);
    } else {
        tb_single(b, MTPROF_REC_INPUTS, (uint64_t)p->inputs << 24);
    }
    if (n_scalars > 0) {
        /* An integer first where there is one, then a double. */
        double half = 0.5;
        uint64_t values[2] = {42, 1};
        memcpy(&values[p->inputs % 2 == 0 ? 1 : 0], &half, sizeof half);
        if (p->inputs == 5) {
            values[0] = 1;
        }
        tb_record(b, MTPROF_REC_SCALARS, (uint16_t)n_scalars, 0, n_scalars, values);
    }
}

static void write_payload(const rt_trace *trace, trace_builder *b, const rt_action *action)
{
    const rt_payload *p = &action->payload;
    if ((p->fields & RT_HAS_FULL_NAME) != 0) {
        char text[64] = "";
        uint64_t words[10] = {rt_full_name(trace, action->name, text)};
        memcpy(words + 1, text, words[0]);
        tb_record(b, MTPROF_REC_NAME, 0, 0, 1 + (words[0] + 7) / 8, words);
    }
    if ((p->fields & RT_HAS_METADATA) != 0) {
        tb_record(b, MTPROF_REC_META, MTPROF_META_INT, STRING_KEY, W((uint64_t)p->metadata));
    }
    if ((p->fields & RT_HAS_INPUTS) != 0) {
        write_inputs(b, p);
    }
    if ((p->fields & RT_HAS_STACK) != 0) {
        tb_single(b, MTPROF_REC_STACK, (uint64_t)p->stack << 24);
    }
    write_opinfo(trace, b, p);
    if ((p->fields & RT_HAS_MEMORY) != 0) {
        tb_single(b, MTPROF_REC_MEM_BEFORE, p->memory_device | p->memory_before << 8);
    }
}

static void write_begin(slot_writer *w, const rt_action *action)
{
    trace_builder *b = w->b;
    const rt_payload *p = &action->payload;
    uint32_t name = (p->fields & RT_HAS_FULL_NAME) != 0 ? 0 : action->name;
    uint16_t flags = (uint16_t)(action->flags | (p->fields != 0 ? MTPROF_FLAG_PAYLOAD : 0));
    if (action->act == RT_LAUNCH) {
        tb_record(b, MTPROF_REC_LAUNCH, flags, name,
                  W(action->ticks, pair(action->device, action->queue)));
    } else if (action->explicit_key || action->parent != MTPROF_KEY_STRUCTURE) {
        tb_record(b, MTPROF_REC_BEGIN_X, flags, name,
                  W(action->ticks, action->explicit_key ? action->key : 0, action->parent));
    } else {
        tb_record(b, MTPROF_REC_BEGIN, flags, name, W(action->ticks));
    }
    w->next_ordinal += !action->explicit_key;
    w->reference = action->ticks;
    write_payload(w->trace, b, action);
}

/* The begin that ends here: part of its payload comes after the end. */
static const rt_action *find_begin(const rt_trace *trace, uint64_t key)
{
    for (size_t i = 0; i < trace->n_actions; i++) {
        if (trace->actions[i].act == RT_BEGIN && trace->actions[i].key == key) {
            return &trace->actions[i];
        }
    }
    return NULL;
}

static void write_end(slot_writer *w, const rt_action *action)
{
    uint64_t ordinal = action->key & (((uint64_t)1 << 40) - 1);
    bool own = action->key >> 40 == w->slot && ordinal < w->next_ordinal &&
               w->next_ordinal - ordinal < 0xFFFF;
    /* A time before the reference needs the long form: the short one would be a wrap ahead. */
    if (own && action->ticks >= w->reference && mt_test_random(w->seed) % 10 != 0) {
        tb_end(w->b, (uint16_t)(w->next_ordinal - ordinal), action->ticks);
    } else {
        tb_record(w->b, MTPROF_REC_END_X, 0, 0, W(action->ticks, action->key));
        w->reference = action->ticks;
    }
    const rt_action *begin = find_begin(w->trace, action->key);
    if (begin != NULL && begin->slot == w->slot && (begin->payload.fields & RT_HAS_MEMORY) != 0) {
        tb_single(w->b, MTPROF_REC_MEM_AFTER,
                  begin->payload.memory_device | begin->payload.memory_after << 8);
    }
}

static void write_alloc(slot_writer *w, const rt_action *action)
{
    if (action->ticks < w->reference || action->ticks - w->reference > UINT32_MAX) {
        tb_record(w->b, MTPROF_REC_TIME, 0, 0, W(action->ticks));
        w->reference = action->ticks;
    }
    tb_record(w->b, MTPROF_REC_ALLOC, (uint16_t)action->device,
              (uint32_t)(action->ticks - w->reference),
              W(0x1000 + (uint64_t)(action->ticks % 64), (uint64_t)action->bytes, 1 << 20));
}

static void write_point(slot_writer *w, const rt_action *action)
{
    uint8_t kind = (uint8_t)action->point;
    if (kind == MTPROF_REC_INSTANT) {
        tb_record(w->b, kind, 0, action->name, W(action->ticks));
    } else if (kind == MTPROF_REC_COUNTER) {
        tb_record(w->b, kind, 0, action->name, W(action->ticks, (uint64_t)action->bytes));
    } else {
        tb_record(w->b, kind, (uint16_t)(action->bytes % 3), action->name,
                  W(action->ticks, (uint64_t)action->bytes % 7));
    }
    w->reference = action->ticks;
}

static void write_action(slot_writer *w, const rt_action *action)
{
    make_room(w);
    switch (action->act) {
    case RT_BEGIN:
    case RT_LAUNCH: write_begin(w, action); break;
    case RT_END: write_end(w, action); break;
    case RT_ALLOC: write_alloc(w, action); break;
    case RT_POINT: write_point(w, action); break;
    case RT_TIME:
        tb_record(w->b, (uint8_t)action->point, 0,
                  action->point == MTPROF_REC_EPOCH ? action->epoch : action->thread,
                  W(action->ticks));
        w->reference = action->ticks;
        break;
    }
    w->epoch = action->epoch;
    w->thread = action->thread;
}

static void write_slot(rt_trace *trace, trace_builder *b, uint16_t slot, uint64_t *seed)
{
    slot_writer w = {
        .trace = trace, .b = b, .slot = slot, .reference = TB_START_TICKS, .seed = seed};
    for (size_t i = 0; i < trace->n_actions; i++) {
        const rt_action *action = &trace->actions[i];
        bool counts = action->slot == slot && !action->explicit_key &&
                      (action->act == RT_BEGIN || action->act == RT_LAUNCH);
        if (counts) {
            w.next_ordinal = action->key & (((uint64_t)1 << 40) - 1);
            break;
        }
    }
    for (size_t i = 0; i < trace->n_actions; i++) {
        if (trace->actions[i].slot == slot) {
            write_action(&w, &trace->actions[i]);
        }
    }
}

/* ---- the device ------------------------------------------------------------------------------ */

/* Records arrive in any order: swaps of neighbours, and the second clock pair somewhere. */
static void write_source(rt_trace *trace, trace_builder *b, uint64_t *seed)
{
    if (trace->n_works == 0) {
        return;
    }
    for (size_t i = 0; i + 1 < trace->n_works; i++) {
        if (mt_test_random(seed) % 4 == 0) {
            rt_work work = trace->works[i];
            trace->works[i] = trace->works[i + 1];
            trace->works[i + 1] = work;
        }
    }
    b->chunk_bytes = (uint32_t)((trace->n_works * 64 / PAGE + 2) * PAGE);
    tb_chunk(b, MTPROF_STREAM_SOURCE, 1);
    tb_record(b, MTPROF_REC_CLOCK_PAIR, 0, 0, W(trace->pairs[0][0], trace->pairs[0][1]));
    size_t second = mt_test_random(seed) % trace->n_works;
    for (size_t i = 0; i < trace->n_works; i++) {
        const rt_work *work = &trace->works[i];
        tb_record(b, MTPROF_REC_ACTIVITY, (uint16_t)work->kind, work->name,
                  W(work->start, work->end, work->key, pair(work->device, work->queue),
                    work->source_id, work->bytes));
        if (i == second) {
            tb_record(b, MTPROF_REC_CLOCK_PAIR, 0, 0, W(trace->pairs[1][0], trace->pairs[1][1]));
        }
    }
}

void rt_write(rt_trace *trace, uint64_t *seed)
{
    trace_builder b;
    tb_init(&b);
    tb_set64(&b, TB_AT_PERIOD, trace->period);
    tb_set64(&b, TB_AT_START + 16, 1790857026000000000u + 5000); /* a real time */
    write_definitions(trace, &b);
    write_control(trace, &b);
    for (uint32_t slot = 1; slot <= trace->n_slots; slot++) {
        write_slot(trace, &b, (uint16_t)slot, seed);
    }
    write_source(trace, &b, seed);
    tb_set64(&b, TB_AT_END_TICKS, trace->end_ticks);
    tb_finish(&b, trace->closed);
    trace->bytes = b.bytes;
    trace->size = b.size;
}
