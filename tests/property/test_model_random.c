/* SPDX-License-Identifier: Apache-2.0
 *
 * Models of random well-formed traces, against the oracle: every event and every column.
 */
#include "harness/mt_test.h"
#include "support/traces/model_view.h"
#include "support/traces/trace_oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TRACES = 250,
    TRACES_LONG = 10000,
    STEPS = 240
};

/* ---- one event ------------------------------------------------------------------------------- */

typedef struct comparison {
    const oracle *o;
    const model_view *v;
    uint64_t seed;
    bool failed;
} comparison;

static void differ(comparison *c, const oracle_event *e, const char *what, int64_t expected,
                   int64_t got)
{
    if (!c->failed) {
        FAIL("trace seed %llu: event %u \"%.*s\" kind %u start %lld: %s is %lld, expected %lld",
             (unsigned long long)c->seed, e->index, (int)e->name_length, e->name, e->kind,
             (long long)e->start_ns, what, (long long)got, (long long)expected);
    }
    c->failed = true;
}

#define SAME(what, expected, got)                                    \
    do {                                                             \
        if ((int64_t)(expected) != (int64_t)(got)) {                 \
            differ(c, e, what, (int64_t)(expected), (int64_t)(got)); \
            return;                                                  \
        }                                                            \
    } while (0)

/* Events are named by INDEX on both sides; only host events are parents. */
static int64_t index_of(const model_view *v, uint32_t event)
{
    return event == MTPROF_NO_EVENT ? -1 : (int64_t)v->index[event];
}

static void compare_place(comparison *c, const oracle_event *e, size_t i)
{
    const model_view *v = c->v;
    mtprof_track track = {.device = 0};
    mtprof_device device = {.index = 0};
    SAME("track is known", true, mtprof_model_track(v->model, v->track[i], &track));
    if (e->thread != 0) {
        SAME("thread", e->thread, track.number);
        SAME("tid", 5000 + e->thread, track.tid);
        SAME("device", 0, v->device[i]);
        return;
    }
    if (e->kind == MTPROF_EVENT_KIND_CALL || e->kind == MTPROF_EVENT_KIND_OVERHEAD) {
        SAME("device", 0, v->device[i]);
        return;
    }
    SAME("device is known", true, mtprof_model_device(v->model, v->device[i], &device));
    SAME("device number", e->device, device.index);
    SAME("queue", e->queue, track.number);
    SAME("device type", 0, memcmp(device.type.bytes, "NPU", 4));
}

static void compare_memory(comparison *c, const oracle_event *e, size_t i)
{
    const model_view *v = c->v;
    SAME("self memory of the host", e->memory_self[0],
         view_i64(v, MTPROF_COLUMN_ALLOCATED_SELF_CPU, i));
    SAME("self memory of devices", e->memory_self[1],
         view_i64(v, MTPROF_COLUMN_ALLOCATED_SELF_DEVICE, i));
    if (v->columns[MTPROF_COLUMN_ALLOCATED_CPU] != NULL) {
        SAME("memory of the host", e->memory[0], view_i64(v, MTPROF_COLUMN_ALLOCATED_CPU, i));
    }
    if (v->columns[MTPROF_COLUMN_ALLOCATED_DEVICE] != NULL) {
        SAME("memory of devices", e->memory[1], view_i64(v, MTPROF_COLUMN_ALLOCATED_DEVICE, i));
    }
    SAME("bytes", e->bytes, view_i64(v, MTPROF_COLUMN_BYTES, i));
}

static void compare_text(comparison *c, const oracle_event *e, uint32_t name, uint32_t expected,
                         const char *what)
{
    mtprof_text text = mtprof_model_name(c->v->model, name - 1);
    const rt_trace *trace = c->o->trace;
    SAME(what, trace->name_lengths[expected], text.length);
    SAME(what, 0, memcmp(text.bytes, trace->names[expected], text.length));
}

static void compare_inputs(comparison *c, const oracle_event *e, size_t i)
{
    uint64_t expected[16];
    uint32_t n_scalars = 0;
    const uint64_t *words = NULL;
    uint32_t n = 0;
    uint32_t inputs = view_u32(c->v, MTPROF_COLUMN_INPUTS, i);
    size_t n_expected = rt_input_words(e->payload->inputs, expected, &n_scalars);
    SAME("inputs are known", true, mtprof_model_inputs(c->v->model, inputs, &words, &n));
    SAME("words of inputs", n_expected, n);
    SAME("inputs", 0, memcmp(words, expected, n * sizeof *words));
    if (n_scalars > 0) {
        uint32_t scalars = view_u32(c->v, MTPROF_COLUMN_SCALARS, i);
        SAME("scalars are known", true, mtprof_model_scalars(c->v->model, scalars, &words, &n));
        SAME("scalars", n_scalars, n);
    }
}

static void compare_details(comparison *c, const oracle_event *e, size_t i)
{
    const model_view *v = c->v;
    const rt_payload *p = e->payload;
    if ((p->fields & RT_HAS_SEQUENCE) != 0) {
        SAME("sequence", p->sequence, view_i64(v, MTPROF_COLUMN_SEQUENCE, i));
    } else if (v->columns[MTPROF_COLUMN_SEQUENCE] != NULL) {
        SAME("sequence", -1, view_i64(v, MTPROF_COLUMN_SEQUENCE, i));
    }
    SAME("forward thread", (p->fields & RT_HAS_FORWARD) != 0 ? p->forward_thread : 0,
         view_u32(v, MTPROF_COLUMN_FORWARD_THREAD, i));
    SAME("record scope", (p->fields & RT_HAS_RECORD_SCOPE) != 0 ? p->record_scope : 0,
         view_u32(v, MTPROF_COLUMN_RECORD_SCOPE, i));
    SAME("flops", (p->fields & RT_HAS_FLOPS) != 0 ? p->flops : 0,
         view_i64(v, MTPROF_COLUMN_FLOPS, i));
    SAME("foreign id", (p->fields & RT_HAS_FOREIGN_ID) != 0 ? p->foreign_id : 0,
         view_i64(v, MTPROF_COLUMN_FOREIGN_ID, i));
    SAME("overload is there", (p->fields & RT_HAS_OVERLOAD) != 0,
         view_u32(v, MTPROF_COLUMN_OVERLOAD, i) != 0);
    SAME("module is there", e->module != 0, view_u32(v, MTPROF_COLUMN_MODULE, i) != 0);
    if ((p->fields & RT_HAS_OVERLOAD) != 0) {
        compare_text(c, e, view_u32(v, MTPROF_COLUMN_OVERLOAD, i), p->overload, "overload");
    }
    if (e->module != 0) {
        compare_text(c, e, view_u32(v, MTPROF_COLUMN_MODULE, i), e->module, "module");
    }
}

static void compare_payload(comparison *c, const oracle_event *e, size_t i)
{
    const model_view *v = c->v;
    const rt_payload *p = e->payload;
    mtprof_metadatum item;
    SAME("inputs are there", (p->fields & RT_HAS_INPUTS) != 0,
         view_u32(v, MTPROF_COLUMN_INPUTS, i) != 0);
    if ((p->fields & RT_HAS_INPUTS) != 0) {
        compare_inputs(c, e, i);
    }
    SAME("stack", e->stack, view_u32(v, MTPROF_COLUMN_STACK, i));
    if ((p->fields & RT_HAS_MEMORY) != 0) {
        /* Payloads after an end exist only if the slot itself ended it. */
        SAME("memory before", p->memory_before, view_i64(v, MTPROF_COLUMN_MEMORY_BEFORE, i));
        SAME("memory after", e->end_at != SIZE_MAX ? (int64_t)p->memory_after : -1,
             v->columns[MTPROF_COLUMN_MEMORY_AFTER] != NULL
                 ? view_i64(v, MTPROF_COLUMN_MEMORY_AFTER, i)
                 : -1);
    }
    uint32_t metadata = view_u32(v, MTPROF_COLUMN_METADATA, i);
    SAME("metadata is there", (p->fields & RT_HAS_METADATA) != 0, metadata != 0);
    if (metadata != 0) {
        SAME("metadata", true, mtprof_model_event_metadata(v->model, metadata, 0, &item));
        SAME("metadata", p->metadata, item.value);
        SAME("metadata key", 0, memcmp(item.key.bytes, "note", 5));
        SAME("metadata", false, mtprof_model_event_metadata(v->model, metadata, 1, &item));
    }
    compare_details(c, e, i);
}

static void compare_event(comparison *c, const oracle_event *e, size_t i)
{
    const model_view *v = c->v;
    const oracle *o = c->o;
    mtprof_text name = mtprof_model_name(v->model, v->name[i]);
    SAME("kind", e->kind, v->kind[i]);
    SAME("length of name", e->name_length, name.length);
    SAME("name", 0, memcmp(name.bytes, e->name, name.length));
    SAME("start", e->start_ns, v->start[i]);
    SAME("end", e->end_ns, v->end[i]);
    SAME("flags", e->flags, v->flags[i]);
    SAME("self", e->self_ns, v->self[i]);
    SAME("step", e->step, v->step[i]);
    SAME("parent", e->parent < 0 ? -1 : (int64_t)o->events[e->parent].index,
         index_of(v, v->parent[i]));
    uint32_t link = v->columns[MTPROF_COLUMN_LINK] != NULL ? view_u32(v, MTPROF_COLUMN_LINK, i)
                                                           : MTPROF_NO_EVENT;
    SAME("link", e->link < 0 ? -1 : (int64_t)o->events[e->link].index, index_of(v, link));
    SAME("correlation", e->correlation, view_i64(v, MTPROF_COLUMN_CORRELATION, i));
    SAME("device time", e->device_ns, view_i64(v, MTPROF_COLUMN_DEVICE_NS, i));
    SAME("self device time", e->self_device_ns, view_i64(v, MTPROF_COLUMN_SELF_DEVICE_NS, i));
    compare_place(c, e, i);
    compare_memory(c, e, i);
    if (e->payload != NULL && !c->failed) {
        compare_payload(c, e, i);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Host events by INDEX; the rest by what they are, so that equal ones are neighbours. */
static int compare_expected(const void *a, const void *b)
{
    const oracle_event *left = *(const oracle_event *const *)a;
    const oracle_event *right = *(const oracle_event *const *)b;
#define ORDER(x, y)                \
    if ((x) != (y)) {              \
        return (x) < (y) ? -1 : 1; \
    }
    ORDER(left->index, right->index)
    ORDER(left->start_ns, right->start_ns)
    ORDER(left->end_ns, right->end_ns)
    ORDER(left->kind, right->kind)
    ORDER(left->thread, right->thread)
    ORDER(left->device, right->device)
    ORDER(left->queue, right->queue)
    ORDER(left->bytes, right->bytes)
    ORDER(left->correlation, right->correlation)
    ORDER(left->link, right->link)
    return strcmp(left->name, right->name);
#undef ORDER
}

/* A model event that has not been taken, at the same place and of the same kind and name. */
static size_t find_other(const comparison *c, const oracle_event *e, const bool *taken)
{
    const model_view *v = c->v;
    for (size_t i = 0; i < v->n; i++) {
        mtprof_track track;
        mtprof_device device = {.index = 0};
        if (taken[i] || v->index[i] != MTPROF_NO_EVENT || v->kind[i] != e->kind ||
            v->start[i] != e->start_ns || v->end[i] != e->end_ns ||
            !mtprof_model_track(v->model, v->track[i], &track)) {
            continue;
        }
        bool host = e->kind == MTPROF_EVENT_KIND_CALL || e->kind == MTPROF_EVENT_KIND_OVERHEAD;
        mtprof_model_device(v->model, v->device[i], &device);
        bool here = e->thread != 0 ? track.number == e->thread
                    : host         ? (uint64_t)track.tid == e->queue
                                   : track.number == e->queue && device.index == (int32_t)e->device;
        int64_t link = v->columns[MTPROF_COLUMN_LINK] == NULL
                           ? -1
                           : index_of(v, view_u32(v, MTPROF_COLUMN_LINK, i));
        int64_t expected = e->link < 0 ? -1 : (int64_t)c->o->events[e->link].index;
        mtprof_text name = mtprof_model_name(v->model, v->name[i]);
        if (here && link == expected && name.length == e->name_length &&
            memcmp(name.bytes, e->name, name.length) == 0 &&
            (uint64_t)view_i64(v, MTPROF_COLUMN_CORRELATION, i) == e->correlation &&
            (uint64_t)view_i64(v, MTPROF_COLUMN_BYTES, i) == e->bytes) {
            return i;
        }
    }
    return SIZE_MAX;
}

static size_t find_host(const model_view *v, uint32_t index)
{
    for (size_t i = 0; i < v->n; i++) {
        if (v->index[i] == index) {
            return i;
        }
    }
    return SIZE_MAX;
}

static void compare_all(comparison *c)
{
    const oracle *o = c->o;
    size_t n = 0;
    const oracle_event **sorted = calloc(o->n + 1, sizeof(oracle_event *));
    bool *taken = calloc(c->v->n + 1, sizeof *taken);
    REQUIRE(sorted != NULL && taken != NULL);
    for (size_t i = 0; i < o->n; i++) {
        if (!o->events[i].gone) {
            sorted[n++] = &o->events[i];
        }
    }
    qsort(sorted, n, sizeof *sorted, compare_expected);
    for (size_t i = 0; i < n && !c->failed; i++) {
        const oracle_event *e = sorted[i];
        size_t at =
            e->index != MTPROF_NO_EVENT ? find_host(c->v, e->index) : find_other(c, e, taken);
        if (at == SIZE_MAX) {
            differ(c, e, "whether it is there", 1, 0);
            break;
        }
        taken[at] = true;
        compare_event(c, e, at);
    }
    if (!c->failed && n != c->v->n) {
        c->failed = true;
        for (size_t i = 0; i < c->v->n; i++) {
            if (!taken[i]) {
                FAIL(
                    "trace seed %llu: %zu events, expected %zu; one too many is of kind %u at %lld",
                    (unsigned long long)c->seed, c->v->n, n, c->v->kind[i],
                    (long long)c->v->start[i]);
                break;
            }
        }
    }
    free(sorted);
    free(taken);
}

/* The end of a trace without a close, as a reader has it. */
static int64_t reader_end(const rt_trace *trace)
{
    tb_memory memory = {.bytes = trace->bytes, .size = trace->size};
    mtprof_bytes bytes = tb_bytes(&memory);
    mtprof_reader *reader = NULL;
    mtprof_trace_info info = {.struct_size = sizeof info};
    mtprof_problem problem;
    REQUIRE_OK(mtprof_reader_open_bytes(&bytes, &reader));
    if (mtprof_reader_problem(reader, 0, &problem)) {
        FAIL("the generator is wrong: %s", problem.message);
    }
    mtprof_reader_get_info(reader, &info);
    mtprof_reader_close(reader);
    return oracle_ns(trace, info.end_ticks);
}

static bool compare_trace(uint64_t seed, bool fold)
{
    rt_options options = {.seed = seed, .steps = STEPS, .any_bytes = seed % 2 == 0};
    rt_trace trace;
    oracle o;
    model_view v;
    rt_make(&trace, &options);
    oracle_make(&o, &trace, reader_end(&trace), fold);
    mtprof_model_options model_options = {
        .struct_size = sizeof model_options, .keep_duplicates = !fold, .workers = 1};
    mtprof_model *model = model_of_bytes(trace.bytes, trace.size, &model_options);
    REQUIRE(model != NULL);
    comparison c = {.o = &o, .v = &v, .seed = seed};
    c.failed = !model_view_make(&v, model);
    if (!c.failed) {
        compare_all(&c);
    }
    if (!c.failed && !model_view_check(&v)) {
        FAIL("trace seed %llu", (unsigned long long)seed);
        c.failed = true;
    }
    mtprof_model_findings findings = {.struct_size = sizeof findings};
    CHECK_OK(mtprof_model_get_findings(model, &findings));
    bool counted = CHECK_EQ_U64(findings.unmatched, o.unmatched) &
                   CHECK_EQ_U64(findings.orphans, o.orphans) &
                   CHECK_EQ_U64(findings.truncated, o.truncated) &
                   CHECK_EQ_U64(findings.overlaps, o.overlaps) &
                   CHECK_EQ_U64(findings.collapsed, o.collapsed) &
                   CHECK_EQ_U64(findings.ends_without_begin, 0) &
                   CHECK_EQ_U64(findings.clock_back, 0) & CHECK_EQ_U64(findings.problems, 0);
    if (!counted) {
        FAIL("trace seed %llu: findings", (unsigned long long)seed);
    }
    mtprof_model_free(model);
    oracle_free(&o);
    rt_free(&trace);
    return !c.failed && counted;
}

static void compare_many(bool fold)
{
    uint64_t seed = mt_test_seed();
    int n = mt_test_long() ? TRACES_LONG : TRACES;
    for (int i = 0; i < n; i++) {
        if (!compare_trace(mt_test_random(&seed), fold)) {
            break;
        }
    }
}

TEST(model_equals_oracle)
{
    compare_many(false);
}

TEST(model_equals_oracle_folded)
{
    compare_many(true);
}
