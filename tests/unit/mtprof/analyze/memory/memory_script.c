/* SPDX-License-Identifier: Apache-2.0
 */
#include "memory_script.h"

#include "harness/mt_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void feed(memory_script *s, mtprof__event *event)
{
    s->now_ns += 1000;
    event->track = s->track;
    if (event->edge == MTPROF__EDGE_END) {
        event->end_ns = s->now_ns;
    } else {
        event->start_ns = s->now_ns;
    }
    int status = s->classifier != NULL ? mtprof__classifier_feed(s->classifier, event)
                                       : mtprof__replay_feed(s->replay, event);
    s->status = s->status != 0 ? s->status : status;
}

static mtprof__event edge_of(const ms_open *open, uint8_t edge)
{
    return (mtprof__event){.edge = edge,
                           .kind = open->kind,
                           .flags = open->flags,
                           .name = MTPROF__NAME_INLINE,
                           .name_text = {open->name, strlen(open->name)},
                           .correlation = open->id,
                           .owner = open->id,
                           .payload = &open->payload};
}

static void begin(memory_script *s, ms_open open, uint64_t parent)
{
    REQUIRE(s->depth[s->track] < MS_DEPTH);
    ms_open *at = &s->open[s->track][s->depth[s->track]++];
    *at = open;
    at->id = ++s->next_id;
    if (at->ins.n > 0) {
        at->payload.fields |= MTPROF__HAS_TENSORS_IN;
        at->payload.tensors_in = at->ins.items;
        at->payload.n_tensors_in = at->ins.n;
    }
    mtprof__event event = edge_of(at, MTPROF__EDGE_BEGIN);
    event.parent = parent;
    feed(s, &event);
}

void ms_begin(memory_script *s, const char *name, ms_tensors ins)
{
    begin(s, (ms_open){.name = name, .kind = MTPROF_EVENT_KIND_OP, .ins = ins}, 0);
}

void ms_begin_numbered(memory_script *s, const char *name, int64_t sequence, ms_tensors ins)
{
    begin(s,
          (ms_open){.name = name,
                    .kind = MTPROF_EVENT_KIND_OP,
                    .ins = ins,
                    .payload = {.fields = MTPROF__HAS_SEQUENCE, .sequence = sequence}},
          0);
}

void ms_begin_words(memory_script *s, const char *name, ms_tensors ins, const uint64_t *words,
                    uint32_t n_words)
{
    begin(s,
          (ms_open){.name = name,
                    .kind = MTPROF_EVENT_KIND_OP,
                    .ins = ins,
                    .payload = {.fields = MTPROF__HAS_INPUTS,
                                .input_words = words,
                                .n_input_words = n_words}},
          0);
}

void ms_scope(memory_script *s, const char *name, ms_tensors ins)
{
    begin(s, (ms_open){.name = name, .kind = MTPROF_EVENT_KIND_SCOPE, .ins = ins}, 0);
}

void ms_scope_under_other(memory_script *s, const char *name)
{
    uint32_t other = 1 - s->track;
    REQUIRE(s->depth[other] > 0);
    begin(s,
          (ms_open){.name = name,
                    .kind = MTPROF_EVENT_KIND_SCOPE,
                    .flags = MTPROF_EVENT_FLAG_FOREIGN_PARENT},
          s->open[other][s->depth[other] - 1].id);
}

void ms_backward(memory_script *s, const char *name, int64_t sequence, ms_tensors ins)
{
    /* The script's tracks are threads 1 and 2; forward ops run on the first. */
    mtprof__payload payload = {.fields = MTPROF__HAS_RECORD_SCOPE, .record_scope = 1};
    if (sequence >= 0) {
        payload.fields |= MTPROF__HAS_SEQUENCE | MTPROF__HAS_FORWARD_THREAD;
        payload.sequence = sequence;
        payload.forward_thread = 1;
    }
    begin(s, (ms_open){.name = name, .kind = MTPROF_EVENT_KIND_OP, .ins = ins, .payload = payload},
          0);
}

void ms_end(memory_script *s, ms_tensors outs)
{
    REQUIRE(s->depth[s->track] > 0);
    ms_open *at = &s->open[s->track][--s->depth[s->track]];
    if (outs.n > 0) {
        at->payload.fields |= MTPROF__HAS_TENSORS_OUT;
        at->payload.tensors_out = outs.items;
        at->payload.n_tensors_out = outs.n;
    }
    mtprof__event event = edge_of(at, MTPROF__EDGE_END);
    feed(s, &event);
}

void ms_late(memory_script *s, mtprof__tensor tensor)
{
    ms_open *at = &s->open[s->track][s->depth[s->track] - 1];
    at->ins.items[at->ins.n++] = tensor;
    at->payload.fields |= MTPROF__HAS_TENSORS_IN;
    at->payload.tensors_in = at->ins.items;
    at->payload.n_tensors_in = at->ins.n;
}

void ms_op(memory_script *s, const char *name, ms_tensors ins, ms_tensors outs)
{
    ms_begin(s, name, ins);
    ms_end(s, outs);
}

static void point(memory_script *s, uint64_t address, int64_t bytes)
{
    mtprof__event event = {.edge = MTPROF__EDGE_POINT,
                           .kind = MTPROF_EVENT_KIND_ALLOC,
                           .device = s->device,
                           .name_text = {"[memory]", 8},
                           .value = address,
                           .bytes = bytes};
    feed(s, &event);
}

void ms_alloc(memory_script *s, uint64_t address, int64_t bytes)
{
    point(s, address, bytes);
}

void ms_free(memory_script *s, uint64_t address, int64_t bytes)
{
    point(s, address, -bytes);
}

/* ---- what comes out -------------------------------------------------------------------------- */

typedef struct listing {
    FILE *text;
    int64_t sizes[MTPROF__MEMORY_CATEGORY_COUNT];
    int64_t last_ns;
} listing;

static int list_action(void *context, const mtprof__memory_action *action)
{
    static const char *const verbs[] = {"?", "PRE", "CREATE", "INCREMENT", "DESTROY"};
    static const char *const categories[] = {"PARAMETER",       "OPTIMIZER_STATE", "INPUT",
                                             "TEMPORARY",       "ACTIVATION",      "GRADIENT",
                                             "AUTOGRAD_DETAIL", "UNKNOWN"};
    listing *l = context;
    fprintf(l->text, "%s %lld %s\n", verbs[action->verb], (long long)action->bytes,
            categories[action->category]);
    l->sizes[action->category] += action->bytes;
    CHECK(l->sizes[action->category] >= 0);                                             /* TL1 */
    CHECK(action->time_ns >= l->last_ns || action->verb == MTPROF__MEMORY_PREEXISTING); /* TL2 */
    CHECK(action->verb != MTPROF__MEMORY_PREEXISTING || l->last_ns == INT64_MIN);
    l->last_ns = action->verb == MTPROF__MEMORY_PREEXISTING ? l->last_ns : action->time_ns;
    return 0;
}

uint64_t ms_left_out;

char *ms_run(ms_program *program, uint8_t device)
{
    memory_script first = {0};
    memory_script second = {0};
    mtprof__memory_plan plan = {0};
    REQUIRE_OK(mtprof__classifier_new(NULL, &first.classifier));
    program(&first);
    CHECK_OK(first.status);
    mtprof__classifier_finish(first.classifier, &plan);
    ms_left_out = mtprof__classifier_left_out(first.classifier);
    mtprof__classifier_free(first.classifier);

    char *text = NULL;
    size_t size = 0;
    listing l = {.text = open_memstream(&text, &size), .last_ns = INT64_MIN};
    REQUIRE(l.text != NULL);
    mtprof__memory_replay replay = {
        .plan = &plan, .device = device, .sink = list_action, .context = &l};
    second.replay = &replay;
    CHECK_OK(mtprof__replay_start(&replay));
    program(&second);
    CHECK_OK(second.status);
    mtprof__replay_fini(&replay);
    mtprof__memory_plan_fini(&plan);
    fclose(l.text);
    return text;
}

void ms_expect(ms_program *program, uint8_t device, const char *text)
{
    char *got = ms_run(program, device);
    CHECK_EQ_STR(got, text);
    free(got);
}
