/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs with exact times, see timed_trace.h. Everything is kept until tt_model() and then
 * written stream by stream.
 */
#include "support/traces/timed_trace.h"

#include "harness/mt_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    START = 100000, /* ticks */
    AT_PAIR_COST = 104
};

/* Room for so many records of at most `words` words in the next chunk. */
static void set_room(timed_trace *t, size_t records, size_t words)
{
    size_t bytes = MTPROF_CHUNK_HEADER + (records + 8) * words * 8;
    t->b.chunk_bytes =
        (uint32_t)((bytes + MTPROF_CHUNK_ALIGN - 1) / MTPROF_CHUNK_ALIGN) * MTPROF_CHUNK_ALIGN;
}

#define WORDS(...)                                              \
    (sizeof((uint64_t[]){__VA_ARGS__}) / 8), (const uint64_t[]) \
    {                                                           \
        __VA_ARGS__                                             \
    }

static uint64_t pair(uint64_t low, uint64_t high)
{
    return low | high << 32;
}

static uint32_t name_of(timed_trace *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_names; i++) {
        if (strcmp(t->names[i], name) == 0) {
            return i + 1;
        }
    }
    REQUIRE(t->n_names < TT_NAMES);
    t->names[t->n_names] = strdup(name);
    REQUIRE(t->names[t->n_names] != NULL);
    return ++t->n_names;
}

static tt_record *add(tt_record **records, size_t *n, size_t *capacity)
{
    if (*n == *capacity) {
        *capacity = 2 * *capacity + 64;
        *records = realloc(*records, *capacity * sizeof **records);
        REQUIRE(*records != NULL);
    }
    tt_record *record = &(*records)[(*n)++];
    *record = (tt_record){.ticks = 0};
    return record;
}

static tt_record *add_record(timed_trace *t, int thread, uint8_t kind)
{
    tt_record *record = add(&t->records, &t->n_records, &t->capacity);
    record->ticks = t->now[thread];
    record->thread = (uint8_t)thread;
    record->kind = kind;
    return record;
}

void tt_init(timed_trace *t)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < TT_THREADS; i++) {
        t->now[i] = START;
    }
}

void tt_fini(timed_trace *t)
{
    for (uint32_t i = 0; i < t->n_names; i++) {
        free((char *)(uintptr_t)t->names[i]);
    }
    free(t->records);
    free(t->works);
    free(t->steps);
    tb_fini(&t->b);
}

void tt_pass(timed_trace *t, int thread, uint64_t ns)
{
    t->now[thread] += ns;
}

uint64_t tt_begin(timed_trace *t, int thread, uint16_t kind, const char *name)
{
    tt_record *record = add_record(t, thread, MTPROF_REC_BEGIN);
    record->name = name_of(t, name);
    record->flags = kind;
    uint64_t ordinal = t->begins[thread]++;
    REQUIRE(t->depth[thread] < TT_DEEP);
    t->open[thread][t->depth[thread]++] = ordinal;
    return (uint64_t)thread << 40 | ordinal;
}

void tt_end(timed_trace *t, int thread)
{
    REQUIRE(t->depth[thread] > 0);
    tt_record *record = add_record(t, thread, MTPROF_REC_END);
    record->words[0] = t->begins[thread] - t->open[thread][--t->depth[thread]];
}

void tt_span(timed_trace *t, int thread, uint16_t kind, const char *name, uint64_t ns)
{
    tt_begin(t, thread, kind, name);
    tt_pass(t, thread, ns);
    tt_end(t, thread);
}

uint64_t tt_launch(timed_trace *t, int thread, const char *name, uint64_t ns)
{
    tt_begin(t, thread, MTPROF_KIND_OP | MTPROF_FLAG_DEVICE, name);
    uint64_t key = tt_begin(t, thread, MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH, "npuLaunchKernel");
    tt_pass(t, thread, ns);
    tt_end(t, thread);
    tt_end(t, thread);
    t->launches++;
    return key;
}

uint64_t tt_work(timed_trace *t, uint32_t kind, uint64_t key, int queue, const char *name,
                 uint64_t ns, uint64_t bytes)
{
    uint64_t launched = t->now[key >> 40] + t->latency;
    tt_record *record = add(&t->works, &t->n_works, &t->works_capacity);
    uint64_t free_at = t->free_at[queue] + (t->free_at[queue] > 0 ? t->pause : 0);
    record->ticks = free_at > launched ? free_at : launched;
    record->words[0] = record->ticks + ns;
    record->words[1] = key;
    record->words[2] = bytes;
    record->name = name_of(t, name);
    record->flags = (uint16_t)kind;
    record->thread = (uint8_t)queue;
    t->free_at[queue] = record->ticks + ns;
    return t->free_at[queue];
}

uint64_t tt_kernel(timed_trace *t, uint64_t key, int queue, const char *name, uint64_t ns)
{
    return tt_work(t, MTPROF_ACTIVITY_KERNEL, key, queue, name, ns, 0);
}

void tt_read(timed_trace *t, int queue, const char *op, uint64_t more)
{
    tt_begin(t, 0, MTPROF_KIND_OP | MTPROF_FLAG_DEVICE, op);
    tt_begin(t, 0, MTPROF_KIND_RUNTIME, "npuStreamSynchronize");
    t->now[0] = t->now[0] > t->free_at[queue] ? t->now[0] : t->free_at[queue];
    tt_pass(t, 0, more);
    tt_end(t, 0);
    tt_end(t, 0);
}

void tt_alloc(timed_trace *t, uint64_t address, int64_t bytes)
{
    tt_record *record = add_record(t, 0, MTPROF_REC_ALLOC);
    t->allocated += bytes;
    record->words[0] = address;
    record->words[1] = (uint64_t)bytes;
    record->words[2] = (uint64_t)t->allocated;
}

void tt_refuse(timed_trace *t, uint64_t bytes)
{
    tt_record *record = add_record(t, 0, MTPROF_REC_OUT_OF_MEMORY);
    record->words[0] = bytes;
    record->words[1] = (uint64_t)t->allocated;
}

void tt_step(timed_trace *t)
{
    char name[32];
    if (t->no_steps) {
        return;
    }
    if (t->n_steps > 0) {
        tt_end(t, 0);
    }
    tt_record *step = add(&t->steps, &t->n_steps, &t->steps_capacity);
    step->ticks = t->now[0];
    (void)snprintf(name, sizeof name, "ProfilerStep#%zu", t->n_steps - 1);
    tt_begin(t, 0, MTPROF_KIND_STEP, name);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_definitions(timed_trace *t)
{
    set_room(t, TT_NAMES + TT_THREADS, 32);
    tb_chunk(&t->b, MTPROF_STREAM_DEFINITIONS, 0);
    for (uint32_t i = 0; i < t->n_names; i++) {
        tb_string(&t->b, i + 1, t->names[i]);
    }
    tb_string(&t->b, TT_NAMES + 1, "NPU");
    for (uint32_t i = 0; i < TT_THREADS; i++) {
        tb_record(&t->b, MTPROF_REC_DEF_THREAD, 0, i + 1, WORDS(4242 + i, 0x7F00 + i, 0));
    }
    tb_record(&t->b, MTPROF_REC_DEF_SOURCE, 0, 1, WORDS(pair(TT_NAMES + 1, TT_NAMES + 1)));
}

static uint64_t last_tick(const timed_trace *t)
{
    uint64_t last = START;
    for (int i = 0; i < TT_THREADS; i++) {
        last = t->now[i] > last ? t->now[i] : last;
    }
    for (int i = 0; i < TT_QUEUES; i++) {
        last = t->free_at[i] > last ? t->free_at[i] : last;
    }
    return last + 1000;
}

static void write_control(timed_trace *t, uint64_t end)
{
    uint64_t begins = 0;
    for (int i = 0; i < TT_THREADS; i++) {
        begins += t->begins[i];
    }
    set_room(t, t->n_steps, 4);
    tb_chunk(&t->b, MTPROF_STREAM_CONTROL, 0);
    tb_record(&t->b, MTPROF_REC_WINDOW_OPEN, 0, 1, WORDS(START, 0x7FFF, pair(0, 0)));
    for (size_t i = 0; i < t->n_steps; i++) {
        tb_record(&t->b, MTPROF_REC_STEP, 2, 0, WORDS(t->steps[i].ticks, i));
    }
    tb_record(&t->b, MTPROF_REC_WINDOW_CLOSE, 0, 1, WORDS(end, 1, begins));
}

/* Times of allocations are distances from the latest time that a record has in full. */
static void write_thread(timed_trace *t, uint8_t thread)
{
    uint64_t reference = START;
    t->b.next_ordinal = 0;
    set_room(t, t->n_records, 4);
    tb_chunk(&t->b, MTPROF_STREAM_THREAD, thread);
    tb_set64(&t->b, t->b.chunk + TB_CHUNK_BASE_TICKS, START);
    tb_set32(&t->b, t->b.chunk + TB_CHUNK_EPOCH, 1);
    tb_set32(&t->b, t->b.chunk + TB_CHUNK_THREAD, (uint32_t)thread + 1);
    for (size_t i = 0; i < t->n_records; i++) {
        const tt_record *r = &t->records[i];
        if (r->thread != thread) {
            continue;
        }
        if (r->kind == MTPROF_REC_BEGIN) {
            tb_record(&t->b, MTPROF_REC_BEGIN, r->flags, r->name, WORDS(r->ticks));
            t->b.next_ordinal++;
            reference = r->ticks;
        } else if (r->kind == MTPROF_REC_END) {
            tb_end(&t->b, (uint16_t)r->words[0], r->ticks);
        } else if (r->kind == MTPROF_REC_ALLOC) {
            tb_record(&t->b, MTPROF_REC_ALLOC, 0, (uint32_t)(r->ticks - reference),
                      WORDS(r->words[0], r->words[1], r->words[2]));
        } else {
            tb_record(&t->b, r->kind, 0, 0, WORDS(r->ticks, r->words[0], r->words[1]));
            reference = r->ticks;
        }
    }
}

static void write_works(timed_trace *t, uint64_t end)
{
    set_room(t, t->n_works, 8);
    tb_chunk(&t->b, MTPROF_STREAM_SOURCE, 1);
    tb_record(&t->b, MTPROF_REC_CLOCK_PAIR, 0, 0, WORDS(START, START));
    for (size_t i = 0; i < t->n_works; i++) {
        const tt_record *w = &t->works[i];
        tb_record(
            &t->b, MTPROF_REC_ACTIVITY, w->flags, w->name,
            WORDS(w->ticks, w->words[0], w->words[1], pair(0, w->thread), i + 1, w->words[2]));
    }
    tb_record(&t->b, MTPROF_REC_CLOCK_PAIR, 0, 0, WORDS(end, end));
}

mtprof_model *tt_model(timed_trace *t)
{
    mtprof_reader *reader = NULL;
    mtprof_model *model = NULL;
    mtprof_problem problem;
    if (t->n_steps > 0) {
        tt_end(t, 0);
    }
    uint64_t end = last_tick(t);
    tb_init(&t->b);
    tb_set64(&t->b, 40, 4242); /* pid */
    tb_set32(&t->b, AT_PAIR_COST, t->pair_cost_ns * 256);
    write_definitions(t);
    write_control(t, end);
    for (uint8_t i = 0; i < TT_THREADS; i++) {
        if (t->begins[i] > 0) {
            write_thread(t, i);
        }
    }
    write_works(t, end);
    tb_set64(&t->b, TB_AT_END_TICKS, end);
    tb_set64(&t->b, TB_AT_HEALTH + 8 * MTPROF_LOST_BUDGET, t->lost);
    tb_set64(&t->b, TB_AT_HEALTH + 8 * MTPROF_HEALTH_LAUNCHES, t->launches);
    tb_finish(&t->b, true);
    t->memory = (tb_memory){.bytes = t->b.bytes, .size = t->b.size};
    mtprof_bytes bytes = tb_bytes(&t->memory);
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    if (mtprof_reader_problem(reader, 0, &problem)) {
        FAIL("the trace is damaged at %llu: %s", (unsigned long long)problem.offset,
             problem.message);
    }
    REQUIRE_OK(mtprof_model_take_reader(reader, NULL, &model));
    return model;
}
