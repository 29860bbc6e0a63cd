/* SPDX-License-Identifier: Apache-2.0
 *
 * The program that random traces describe, see random_trace.h.
 */
#include "support/traces/random_trace.h"

#include "harness/mt_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STACK_MOST = 12,
    OPEN_MOST = 64,
    EXPLICIT_BIT = 39
};

typedef struct open_scope {
    uint64_t key;
    bool async;
    bool foreign_end; /* another slot will end it */
    bool function;
} open_scope;

typedef struct sim_slot {
    uint32_t epoch, thread; /* as last written */
    uint64_t next_ordinal, next_explicit;
    open_scope open[OPEN_MOST];
    size_t n_open;
} sim_slot;

typedef struct sim {
    rt_trace *trace;
    uint64_t seed;
    uint64_t now;
    sim_slot slots[RT_SLOTS];
    uint32_t n_threads;
    uint32_t epoch; /* 0: the gate is shut */
    uint32_t next_epoch, window, step;
    uint64_t next_id, n_begins;
    uint64_t queue_free[RT_DEVICES][RT_QUEUES];
    int64_t allocated;
    uint64_t last_key; /* of some begin, for hostile things */
    bool device;
} sim;

static uint64_t roll(sim *s, uint64_t n)
{
    return n == 0 ? 0 : mt_test_random(&s->seed) % n;
}

static bool chance(sim *s, uint32_t percent)
{
    return roll(s, 100) < percent;
}

static void *grow(void *array, size_t *capacity, size_t needed, size_t item)
{
    if (needed <= *capacity) {
        return array;
    }
    *capacity = needed * 2 + 64;
    array = realloc(array, *capacity * item);
    if (array == NULL) {
        fprintf(stderr, "random_trace: no memory\n");
        abort();
    }
    return array;
}

static rt_action *add_action(sim *s, enum rt_act act, uint16_t slot)
{
    rt_trace *trace = s->trace;
    sim_slot *state = &s->slots[slot - 1];
    trace->actions =
        grow(trace->actions, &trace->action_capacity, trace->n_actions + 1, sizeof *trace->actions);
    rt_action *action = &trace->actions[trace->n_actions++];
    memset(action, 0, sizeof *action);
    action->act = act;
    action->slot = slot;
    action->epoch = state->epoch;
    action->thread = state->thread;
    action->ticks = s->now;
    action->parent = MTPROF_KEY_STRUCTURE;
    if (s->trace->options.hostile && chance(s, 3)) {
        action->ticks -= roll(s, 200); /* the clock goes back */
    }
    return action;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void make_names(sim *s)
{
    static const char *const known[] = {
        "aten::add",
        "aten::mm",
        "aten::copy_",
        "forward",
        "a \"quoted\" op",
        "back\\slash",
        "tab\tline\nbreak",
        "\xc3\xa9t\xc3\xa9 \xe2\x82\xac",
        "ProfilerStep#3",
        "ProfilerStep#4",
        "cudaLaunchKernel",
        "x",
        "autograd::engine",
        "Optimizer.step#S.step",
        "[memory]x",
        "\xf0\x9f\x98\x80",
        "kernel_a<float>",
        "kernel_b",
        "Memcpy HtoD",
        "Memset (Device)",
        "",
        "default",
        "model.layer.0",
        "model.layer.1",
    };
    /* What each would do, were it not text, is to set `stolen`. */
    static const char *const evil[] = {
        "</script><script>stolen=1</script>",
        "<img src=x onerror=stolen=1>",
        "\"];stolen=1;[\"",
        "`${stolen=1}`",
        "<!--<script>",
        "</noscript><svg onload=stolen=1>",
        "\xe2\x80\xae right to left \xe2\x80\xa9",
        "__proto__",
        "constructor",
        "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
        "\x01\x02\x1b[31m\x7f",
        "&lt;b&gt; &#x3c;script>",
        "' onmouseover='stolen=1",
        "javascript:stolen=1//",
        "a\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81",
        "toString",
    };
    rt_trace *trace = s->trace;
    for (uint32_t i = 1; i <= RT_NAMES; i++) {
        bool is_evil = trace->options.evil && i <= sizeof evil / sizeof *evil && roll(s, 2) == 0;
        const char *text = is_evil ? evil[i - 1] : known[i - 1];
        size_t n = strlen(text);
        memcpy(trace->names[i], text, n + 1);
        if (trace->options.any_bytes && n > 0 && i % 3 == 0 && !is_evil) {
            trace->names[i][roll(s, n)] = (char)(0x80 + roll(s, 0x80));
        }
        trace->name_lengths[i] = strlen(trace->names[i]);
    }
}

size_t rt_full_name(const rt_trace *trace, uint32_t name, char out[64])
{
    size_t n = trace->name_lengths[name];
    memcpy(out, trace->names[name], n);
    memcpy(out + n, "+full", 6);
    return n + 5;
}

static uint32_t any_name(sim *s)
{
    return 1 + (uint32_t)roll(s, chance(s, 60) ? 6 : 16);
}

/* ---- payloads -------------------------------------------------------------------------------- */

static void fill_payload(sim *s, rt_payload *p, bool op)
{
    uint64_t dice = mt_test_random(&s->seed);
    uint32_t mask = op ? UINT32_MAX
                       : RT_HAS_STACK | RT_HAS_METADATA | RT_HAS_FULL_NAME | RT_HAS_RECORD_SCOPE |
                             RT_HAS_MEMORY;
    p->fields = (uint32_t)(dice & dice >> 12) & 0xFFF & mask;
    p->inputs = 1 + (uint32_t)roll(s, RT_INPUTS);
    p->inputs_inline = chance(s, 20);
    p->stack = 1 + (uint32_t)roll(s, RT_STACKS);
    p->sequence = (int64_t)roll(s, chance(s, 70) ? 4 : 1000); /* few: backward finds forward */
    p->forward_thread = (uint32_t)roll(s, 3);
    p->overload = RT_NAMES - RT_MODULES + 1;
    p->record_scope = (uint32_t)roll(s, 9);
    p->flops = roll(s, 1 << 20);
    p->module = RT_NAMES - (uint32_t)roll(s, 2);
    p->foreign_id = roll(s, 1 << 30);
    p->memory_device = (uint32_t)roll(s, 2);
    p->memory_before = roll(s, 1 << 20);
    p->memory_after = roll(s, 1 << 20);
    p->metadata = (int64_t)roll(s, 2000) - 1000;
    if (op && chance(s, 20)) { /* a pair of forward and backward, if they meet */
        bool node = chance(s, 50);
        p->fields |= RT_HAS_SEQUENCE |
                     (node ? RT_HAS_FORWARD | RT_HAS_RECORD_SCOPE : RT_HAS_MODULE | RT_HAS_STACK);
        p->record_scope = node ? 1 : p->record_scope;
    }
    if (s->trace->options.plain) {
        /* A forward thread without a sequence number has no place in kineto's args. */
        if ((p->fields & RT_HAS_SEQUENCE) == 0) {
            p->fields &= ~(uint32_t)RT_HAS_FORWARD;
        }
        p->fields &= ~(uint32_t)(RT_HAS_FOREIGN_ID | RT_HAS_RECORD_SCOPE);
    }
}

/* ---- device work ----------------------------------------------------------------------------- */

static rt_work *add_work(sim *s)
{
    rt_trace *trace = s->trace;
    trace->works =
        grow(trace->works, &trace->work_capacity, trace->n_works + 1, sizeof *trace->works);
    rt_work *work = &trace->works[trace->n_works++];
    memset(work, 0, sizeof *work);
    return work;
}

/* What a launch leads to: work on a queue, one piece after another, some of it late. */
static void launch_work(sim *s, uint64_t key)
{
    if (!s->device || chance(s, 12)) {
        return; /* never answered */
    }
    rt_work *work = add_work(s);
    work->kind = (uint32_t)roll(s, 3);
    work->name = 17 + work->kind + (work->kind == 0 ? (uint32_t)roll(s, 2) : 1);
    work->device = (uint32_t)roll(s, RT_DEVICES);
    work->queue = (uint32_t)roll(s, RT_QUEUES);
    if (s->trace->options.plain) { /* each slot its own queue: annotations on it nest */
        work->device = (uint32_t)(key >> 40) / RT_QUEUES;
        work->queue = (uint32_t)(key >> 40) % RT_QUEUES;
    }
    work->key = key;
    uint64_t *free_at = &s->queue_free[work->device][work->queue];
    uint64_t start = s->now + roll(s, 300);
    start = start > *free_at ? start : *free_at;
    if (s->trace->options.hostile && chance(s, 20)) {
        start = s->now - roll(s, 500);
    }
    work->start = start;
    work->end = start + roll(s, 200);
    *free_at = work->end;
    work->bytes = work->kind == 0 ? 0 : roll(s, 1 << 16);
    work->source_id = roll(s, 1 << 20);
}

/* Work without a launch, or records that are no work. */
static void stray_work(sim *s)
{
    rt_work *work = add_work(s);
    bool hostile = s->trace->options.hostile;
    work->kind = chance(s, 50) ? (uint32_t)roll(s, 3) : 3 + (uint32_t)roll(s, 5);
    if (s->trace->options.plain) {
        work->kind = (uint32_t)roll(s, 3);
    }
    work->name = 17 + (uint32_t)roll(s, 4);
    work->device = (uint32_t)roll(s, RT_DEVICES);
    work->queue = (uint32_t)roll(s, RT_QUEUES);
    uint64_t *free_at = &s->queue_free[work->device][work->queue];
    work->start = s->now > *free_at ? s->now : *free_at;
    work->end = work->start + roll(s, 50);
    *free_at = work->end;
    if (work->kind <= 2 && chance(s, 40)) {
        work->key = (uint64_t)9 << 40 | roll(s, 100); /* orphaned: slot 9 is not there */
    }
    if (hostile) {
        work->end = work->start - roll(s, 20);
        work->key = chance(s, 50) ? s->last_key : (uint64_t)(1 + roll(s, 6)) << 40 | roll(s, 50);
    }
}

/* ---- what threads do ------------------------------------------------------------------------- */

/* Before a slot does something: its epoch and thread are as they should be. */
static void enter(sim *s, uint16_t slot)
{
    sim_slot *state = &s->slots[slot - 1];
    if (state->epoch != s->epoch) {
        state->epoch = s->epoch;
        state->n_open = 0; /* truncated */
        add_action(s, RT_TIME, slot)->point = MTPROF_REC_EPOCH;
    }
    bool hostile = s->trace->options.hostile;
    if (state->thread == 0 || (state->n_open == 0 && chance(s, 2)) || (hostile && chance(s, 2))) {
        state->thread = ++s->n_threads;
        state->n_open = 0;
        add_action(s, RT_TIME, slot)->point = MTPROF_REC_THREAD;
    }
}

static uint16_t random_kind(sim *s)
{
    uint64_t dice = roll(s, 100);
    if (dice < 55) {
        return MTPROF_KIND_OP;
    }
    if (dice < 75) {
        return MTPROF_KIND_SCOPE;
    }
    if (dice < 85) {
        return MTPROF_KIND_RUNTIME;
    }
    return dice < 93 || s->trace->options.plain ? MTPROF_KIND_STEP : MTPROF_KIND_FUNCTION;
}

/* A parent by name: any scope that is open somewhere, or none at all. */
static uint64_t named_parent(sim *s)
{
    const sim_slot *other = &s->slots[roll(s, s->trace->n_slots)];
    if (other->n_open == 0 || chance(s, 20) || other->epoch != s->epoch) {
        return 0;
    }
    const open_scope *scope = &other->open[roll(s, other->n_open)];
    return scope->function ? 0 : scope->key;
}

/* The name of the innermost scope of a slot, 0 where that is not its latest begin. */
static uint32_t innermost_name(const sim *s, uint16_t slot)
{
    const sim_slot *state = &s->slots[slot - 1];
    for (size_t i = s->trace->n_actions; i-- > 0;) {
        const rt_action *action = &s->trace->actions[i];
        if (action->act == RT_BEGIN && action->key == state->open[state->n_open - 1].key) {
            return (action->payload.fields & RT_HAS_FULL_NAME) == 0 ? action->name : 0;
        }
    }
    return 0;
}

static bool in_function(const sim_slot *state)
{
    bool found = false;
    for (size_t i = 0; i < state->n_open; i++) {
        found = found || state->open[i].function;
    }
    return found;
}

static void begin(sim *s, uint16_t slot)
{
    sim_slot *state = &s->slots[slot - 1];
    const rt_options *options = &s->trace->options;
    if (state->n_open >= STACK_MOST) {
        return;
    }
    uint32_t same = state->n_open > 0 && chance(s, 15) ? innermost_name(s, slot) : 0;
    rt_action *action = add_action(s, RT_BEGIN, slot);
    uint16_t kind = random_kind(s);
    action->flags = kind;
    action->name = any_name(s);
    if (kind == MTPROF_KIND_STEP) {
        action->name = 9 + (uint32_t)roll(s, 2);
    } else if (same != 0) {
        action->name = same; /* a child of its parent's name */
    }
    bool function = kind == MTPROF_KIND_FUNCTION;
    /* The self time of a function with asynchronous scopes in it is not defined. */
    bool nests = options->plain || function || in_function(state);
    bool async = !nests && chance(s, 5);
    bool foreign_end = !nests && s->trace->n_slots > 1 && chance(s, 3);
    bool launches = kind == MTPROF_KIND_RUNTIME ? chance(s, 50) : !function && chance(s, 5);
    action->flags |= async ? MTPROF_FLAG_ASYNC : 0;
    action->flags |= launches && s->device ? MTPROF_FLAG_LAUNCH : 0;
    action->flags |= chance(s, 10) ? MTPROF_FLAG_DEVICE : 0;
    action->explicit_key = !options->plain && chance(s, 3);
    if (!options->plain && !function && chance(s, 4)) {
        action->parent = named_parent(s);
    }
    uint64_t ordinal = action->explicit_key ? (uint64_t)1 << EXPLICIT_BIT | state->next_explicit++
                                            : state->next_ordinal++;
    action->key = (uint64_t)slot << 40 | ordinal;
    if (chance(s, 50)) {
        fill_payload(s, &action->payload, kind == MTPROF_KIND_OP);
    }
    s->n_begins++;
    s->last_key = action->key;
    state->open[state->n_open++] =
        (open_scope){action->key, async || foreign_end, foreign_end, function};
    if ((action->flags & MTPROF_FLAG_LAUNCH) != 0) {
        launch_work(s, action->key);
    }
}

static void end_at(sim *s, uint16_t from, uint16_t slot, size_t at)
{
    sim_slot *state = &s->slots[slot - 1];
    rt_action *action = add_action(s, RT_END, from);
    action->key = state->open[at].key;
    memmove(&state->open[at], &state->open[at + 1],
            (state->n_open - at - 1) * sizeof state->open[0]);
    state->n_open--;
}

/* Ends a scope of another slot that is to be ended elsewhere; false: there is none. */
static bool end_abroad(sim *s, uint16_t slot)
{
    uint16_t other = (uint16_t)(1 + roll(s, s->trace->n_slots));
    const sim_slot *state = &s->slots[other - 1];
    if (other == slot || state->epoch != s->epoch) {
        return false;
    }
    for (size_t i = 0; i < state->n_open; i++) {
        if (state->open[i].foreign_end) {
            end_at(s, slot, other, i);
            return true;
        }
    }
    return false;
}

static void end(sim *s, uint16_t slot)
{
    sim_slot *state = &s->slots[slot - 1];
    if (chance(s, 20) && end_abroad(s, slot)) {
        return;
    }
    if (s->trace->options.hostile && chance(s, 8)) {
        rt_action *action = add_action(s, RT_END, slot);
        action->key =
            chance(s, 50) ? s->last_key : (uint64_t)(1 + roll(s, RT_SLOTS)) << 40 | roll(s, 100);
        return;
    }
    /* Innermost first; asynchronous ones at any time; others out of order now and then. */
    for (size_t i = state->n_open; i-- > 0;) {
        bool skip =
            state->open[i].foreign_end ||
            (state->open[i].async ? chance(s, 70) : !s->trace->options.plain && chance(s, 4));
        if (!skip) {
            if (state->open[i].function && i + 1 < state->n_open) {
                return; /* functions end in order */
            }
            end_at(s, slot, slot, i);
            return;
        }
        if (state->open[i].function) {
            return;
        }
    }
}

static void launch(sim *s, uint16_t slot)
{
    if (!s->device) {
        return;
    }
    sim_slot *state = &s->slots[slot - 1];
    rt_action *action = add_action(s, RT_LAUNCH, slot);
    action->name = 11;
    action->flags = MTPROF_KIND_RUNTIME;
    action->device = 0;
    action->queue = (uint32_t)roll(s, RT_QUEUES);
    action->key = (uint64_t)slot << 40 | state->next_ordinal++;
    s->n_begins++;
    launch_work(s, action->key);
}

static void allocate(sim *s, uint16_t slot)
{
    rt_action *action = add_action(s, RT_ALLOC, slot);
    action->device = s->device ? (uint32_t)roll(s, 2) : 0;
    action->bytes = (int64_t)roll(s, 4096) - (chance(s, 40) ? 4096 : 0);
    s->allocated += action->bytes;
}

static void point(sim *s, uint16_t slot)
{
    static const uint32_t kinds[] = {MTPROF_REC_INSTANT, MTPROF_REC_COUNTER, MTPROF_REC_FLOW};
    rt_action *action = add_action(s, RT_POINT, slot);
    action->point = kinds[roll(s, s->trace->options.plain ? 2 : 3)];
    action->name = any_name(s);
    action->bytes = (int64_t)roll(s, 100);
}

/* ---- windows --------------------------------------------------------------------------------- */

static void open_gate(sim *s, bool same_window)
{
    rt_trace *trace = s->trace;
    rt_epoch *epoch = &trace->epochs[trace->n_epochs++];
    if (!same_window) {
        s->window++;
    }
    s->epoch = s->next_epoch;
    s->next_epoch += 1 + (uint32_t)roll(s, 3);
    s->n_begins = 0;
    *epoch = (rt_epoch){.epoch = s->epoch,
                        .window = s->window,
                        .step = s->step,
                        .close_kind = 3,
                        .open_ticks = s->now};
    s->now += 1 + roll(s, 20);
}

static void close_gate(sim *s, uint32_t kind)
{
    rt_trace *trace = s->trace;
    rt_epoch *epoch = &trace->epochs[trace->n_epochs - 1];
    s->now += 1 + roll(s, 20);
    epoch->close_ticks = s->now;
    epoch->close_kind = kind;
    epoch->first_id = s->next_id;
    epoch->n_ids = s->n_begins;
    s->next_id += s->n_begins + roll(s, 10);
    s->epoch = 0;
    s->now += 1 + roll(s, 100);
}

static void next_step(sim *s)
{
    rt_trace *trace = s->trace;
    if (trace->n_steps >= sizeof trace->step_marks / sizeof trace->step_marks[0]) {
        return;
    }
    s->now += 1; /* so that it is plain which step an event is in */
    trace->step_marks[trace->n_steps++] = (rt_step){s->now, ++s->step};
    s->now += 1;
}

/* Before a gate shuts: most scopes end, some are cut off. */
static void wind_down(sim *s)
{
    for (uint32_t slot = 1; slot <= s->trace->n_slots; slot++) {
        sim_slot *state = &s->slots[slot - 1];
        while (state->epoch == s->epoch && state->n_open > 0 && chance(s, 90)) {
            s->now += roll(s, 5);
            end_at(s, (uint16_t)slot, (uint16_t)slot, state->n_open - 1);
        }
    }
}

static void change_gate(sim *s)
{
    if (s->trace->n_epochs + 1 >= sizeof s->trace->epochs / sizeof s->trace->epochs[0]) {
        return;
    }
    bool pause = chance(s, 40);
    wind_down(s);
    close_gate(s, pause ? 2 : (uint32_t)chance(s, 20));
    open_gate(s, pause);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void one_thing(sim *s)
{
    uint16_t slot = (uint16_t)(1 + roll(s, s->trace->n_slots));
    uint64_t dice = roll(s, 1000);
    s->now += chance(s, 30) ? 0 : roll(s, 40);
    if (dice < 4) {
        change_gate(s);
        return;
    }
    if (dice < 12) {
        next_step(s);
        return;
    }
    if (dice < 20 && s->device) {
        stray_work(s);
        return;
    }
    enter(s, slot);
    if (dice < 450) {
        begin(s, slot);
    } else if (dice < 860) {
        end(s, slot);
    } else if (dice < 890) {
        launch(s, slot);
    } else if (dice < 950) {
        allocate(s, slot);
    } else {
        point(s, slot);
    }
}

void rt_make(rt_trace *trace, const rt_options *options)
{
    static const uint64_t periods[] = {(uint64_t)1 << 56, ((uint64_t)1 << 56) / 3,
                                       ((uint64_t)5 << 56) / 2, ((uint64_t)1 << 55) + 12345};
    memset(trace, 0, sizeof *trace);
    trace->options = *options;
    sim s = {.trace = trace, .seed = options->seed, .now = TB_START_TICKS + 100};
    trace->n_slots = 1 + (uint32_t)roll(&s, RT_SLOTS);
    trace->period = periods[roll(&s, 4)];
    s.device = chance(&s, 70);
    s.next_epoch = 1 + (uint32_t)roll(&s, 3);
    s.next_id = 1 + roll(&s, 1000);
    s.step = (uint32_t)roll(&s, 5);
    trace->pairs[0][0] = trace->pairs[0][1] = TB_START_TICKS;
    trace->pairs[1][0] = trace->pairs[1][1] = TB_START_TICKS + 100000;
    make_names(&s);
    for (size_t i = 0; i < RT_SLOTS; i++) {
        s.slots[i].next_ordinal = roll(&s, 1000);
    }
    open_gate(&s, false);
    for (size_t i = 0; i < options->steps; i++) {
        one_thing(&s);
    }
    wind_down(&s);
    trace->closed = chance(&s, 90);
    if (trace->closed) {
        close_gate(&s, 0);
    }
    trace->end_ticks = s.now;
    rt_write(trace, &s.seed);
}

void rt_free(rt_trace *trace)
{
    free(trace->actions);
    free(trace->works);
    free(trace->bytes);
    memset(trace, 0, sizeof *trace);
}

bool rt_save(const rt_trace *trace, const char *path)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        return false;
    }
    bool written = fwrite(trace->bytes, 1, trace->size, file) == trace->size;
    return fclose(file) == 0 && written;
}
