/* SPDX-License-Identifier: Apache-2.0
 *
 * Random traces. Well-formed ones against a plain reading of the rules (model.h MDL1 to MDL3,
 * torch-contract 3.3), spoilt ones against the promise that nothing worse than an error comes of
 * them; and every allocation that can be refused. The event stream of each is held to
 * event.h EVT1, EVT2 and EVT5.
 */
#include "base/alloc.h"
#include "json_model.h"
#include "mtprof/model/events/event.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    EVENTS_MAX = 60,
    TEXT_MAX = 64 * 1024,
    TRACKS = 3
};

typedef struct span {
    int64_t start, end;
    int track, index;
    bool async, function;
    int parent; /* as the rules have it */
    int64_t self;
    bool overlap, top;
} span;

typedef struct trace {
    span spans[EVENTS_MAX];
    int n;
    char text[TEXT_MAX];
    size_t length;
} trace;

__attribute__((format(printf, 2, 3))) static void put(trace *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->text + t->length, TEXT_MAX - t->length, format, args);
    va_end(args);
    REQUIRE(n >= 0 && (size_t)n < TEXT_MAX - t->length);
    t->length += (size_t)n;
}

static uint32_t pick(uint64_t *state, uint32_t below)
{
    return (uint32_t)(mt_test_random(state) % below);
}

/* ---- the rules, plainly ---------------------------------------------------------------------- */

static bool is_before(const span *a, const span *b)
{
    if (a->start != b->start) {
        return a->start < b->start;
    }
    return a->end != b->end ? a->end > b->end : a->index < b->index;
}

/* The innermost span of the same tree that is open when `of` begins: among those that nest, began
 * before it in order and end after its start, the last to begin. */
static int innermost(const trace *t, int of)
{
    int found = -1;
    for (int i = 0; i < t->n; i++) {
        const span *s = &t->spans[i];
        if (i != of && s->track == t->spans[of].track && s->function == t->spans[of].function &&
            !s->async && !s->overlap && is_before(s, &t->spans[of]) &&
            s->end > t->spans[of].start && (found < 0 || is_before(&t->spans[found], s))) {
            found = i;
        }
    }
    return found;
}

/* Functions lose what is inside them, by a stack of everything that nests. */
static void subtract_inside(trace *t, const int *order)
{
    int stack[EVENTS_MAX];
    for (int track = 0; track < TRACKS; track++) {
        int depth = 0;
        for (int i = 0; i < t->n; i++) {
            const span *s = &t->spans[order[i]];
            while (depth > 0 && t->spans[stack[depth - 1]].end <= s->start) {
                depth -= s->track == track;
                if (s->track != track) {
                    break;
                }
            }
            if (s->track != track || s->async || s->overlap ||
                (depth > 0 && s->end > t->spans[stack[depth - 1]].end)) {
                continue;
            }
            if (depth > 0 && t->spans[stack[depth - 1]].function) {
                t->spans[stack[depth - 1]].self -= s->end - s->start;
            }
            stack[depth++] = order[i];
        }
    }
}

/* Whether a span outlives every tree of its track so far: then it starts one. */
static bool starts_tree(const trace *t, const span *of)
{
    for (int i = 0; i < t->n; i++) {
        const span *s = &t->spans[i];
        if (s->top && s->track == of->track && is_before(s, of) && s->end >= of->end) {
            return false;
        }
    }
    return !of->async && !of->function;
}

static void apply_rules(trace *t)
{
    int order[EVENTS_MAX];
    for (int i = 0; i < t->n; i++) {
        order[i] = i;
        for (int k = i; k > 0 && is_before(&t->spans[order[k]], &t->spans[order[k - 1]]); k--) {
            int swap = order[k];
            order[k] = order[k - 1];
            order[k - 1] = swap;
        }
    }
    for (int i = 0; i < t->n; i++) {
        span *s = &t->spans[order[i]];
        s->parent = starts_tree(t, s) ? -1 : innermost(t, order[i]);
        s->overlap = !s->async && s->parent >= 0 && s->end > t->spans[s->parent].end;
        bool nests = !s->async && !s->overlap;
        s->self = nests ? s->end - s->start : 0;
        s->top = nests && s->parent < 0 && !s->function;
        if (nests && s->parent >= 0 && !s->function) {
            t->spans[s->parent].self -= s->end - s->start;
        }
    }
    subtract_inside(t, order);
}

/* ---- making ---------------------------------------------------------------------------------- */

static void make_spans(trace *t, uint64_t *state)
{
    t->n = (int)pick(state, EVENTS_MAX) + 1;
    for (int i = 0; i < t->n; i++) {
        int64_t start = pick(state, 40);
        t->spans[i] = (span){
            .start = start,
            .end = start + pick(state, pick(state, 4) == 0 ? 40 : 8),
            .track = (int)pick(state, TRACKS),
            .index = i,
            .async = pick(state, 12) == 0,
            .function = pick(state, 5) == 0,
        };
    }
}

static void write_trace(trace *t, uint64_t *state)
{
    int order[EVENTS_MAX] = {0};
    for (int i = 0; i < t->n; i++) {
        uint32_t at = pick(state, (uint32_t)i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    t->length = 0;
    put(t, pick(state, 2) == 0 ? "{\"traceEvents\": [\n" : "{\"x\": [1, \"]\"], \"traceEvents\":[");
    for (int i = 0; i < t->n; i++) {
        const span *s = &t->spans[order[i]];
        put(t,
            "%s{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"e%d\", \"pid\": 9, \"tid\": %d, "
            "\"ts\": 0.%03d, \"dur\": %.3f, \"args\": {\"Ev Idx\": %d, \"External id\": %d%s}}",
            i > 0 ? ",\n" : "", s->function ? "python_function" : "cpu_op", s->index, s->track,
            (int)s->start, (double)(s->end - s->start) / 1e3, s->index, s->index + 1,
            s->async ? ", \"async\": 1" : "");
    }
    put(t, "]}");
}

/* ---- checking -------------------------------------------------------------------------------- */

static int number_of(mtprof_model *model, uint32_t event)
{
    if (event == MTPROF_NO_EVENT) {
        return -1;
    }
    return (int)strtol(mtprof_model_name(model, model->columns.name[event]).bytes + 1, NULL, 10);
}

static void check_tree(const trace *t, mtprof_model *model)
{
    const mtprof__columns *columns = &model->columns;
    CHECK_EQ_U64(columns->n, (uint64_t)t->n);
    for (uint32_t i = 0; i < columns->n; i++) {
        const span *s = &t->spans[number_of(model, i)];
        bool same = columns->start_ns[i] == s->start && columns->end_ns[i] == s->end &&
                    columns->self_ns[i] == s->self &&
                    number_of(model, columns->parent[i]) == s->parent &&
                    ((columns->flags[i] & MTPROF_EVENT_FLAG_OVERLAP) != 0) == s->overlap &&
                    ((columns->flags[i] & MTPROF_EVENT_FLAG_TOP) != 0) == s->top;
        if (!same) {
            FAIL("e%d [%lld, %lld] on %d: parent e%d, self %lld, flags %x; expected e%d, %lld\n%s",
                 s->index, (long long)s->start, (long long)s->end, s->track,
                 number_of(model, columns->parent[i]), (long long)columns->self_ns[i],
                 columns->flags[i], s->parent, (long long)s->self, t->text);
            mt_test_leave();
        }
    }
}

typedef struct edge_stack {
    uint64_t ids[EVENTS_MAX * 4];
    int64_t ends[EVENTS_MAX * 4];
    bool functions[EVENTS_MAX * 4];
    int n;
    int64_t last;
} edge_stack;

/* EC3 of events_columns.c: only what is no function cuts what is none either. */
static void check_cut(const edge_stack *stack, const mtprof__event *event)
{
    bool excused =
        event->kind == MTPROF_EVENT_KIND_FUNCTION || event->shown_end_ns == event->end_ns;
    for (int i = 0; i < stack->n && !excused; i++) {
        excused = !stack->functions[i] && stack->ends[i] == event->shown_end_ns;
    }
    CHECK(excused);
}

/* EVT1: an END belongs to the latest BEGIN; EVT2: shown times of a track do not go back. A function
 * may have to end before the time that its BEGIN reported. */
static void check_edge(edge_stack *stack, const mtprof__event *event)
{
    int64_t at = event->edge == MTPROF__EDGE_END ? event->shown_end_ns : event->shown_start_ns;
    CHECK(at >= stack->last);
    stack->last = at;
    CHECK(event->shown_start_ns <= event->shown_end_ns);
    if (event->edge == MTPROF__EDGE_BEGIN) {
        CHECK(stack->n == 0 || event->shown_end_ns <= stack->ends[stack->n - 1]);
        REQUIRE(stack->n < EVENTS_MAX * 4);
        check_cut(stack, event);
        stack->functions[stack->n] = event->kind == MTPROF_EVENT_KIND_FUNCTION;
        stack->ids[stack->n] = event->index;
        stack->ends[stack->n++] = event->shown_end_ns;
    } else {
        REQUIRE(stack->n > 0);
        stack->n--;
        CHECK_EQ_U64(stack->ids[stack->n], event->index);
        CHECK(event->shown_end_ns == stack->ends[stack->n] ||
              (stack->functions[stack->n] && event->shown_end_ns < stack->ends[stack->n]));
    }
}

static void check_stream(mtprof_model *model)
{
    mtprof__events *events = NULL;
    const mtprof__event *event = NULL;
    size_t tracks = model->dictionary.n_tracks;
    edge_stack *stacks = calloc(tracks + 1, sizeof *stacks);
    REQUIRE(stacks != NULL);
    for (size_t i = 0; i < tracks; i++) {
        stacks[i].last = INT64_MIN;
    }
    uint64_t spans = 0;
    size_t points = 0;
    int status;
    REQUIRE_OK(mtprof__events_open(model, &events));
    while ((status = mtprof__events_next(events, &event)) == MTPROF_OK) {
        REQUIRE(event->track < tracks);
        if (event->edge == MTPROF__EDGE_BEGIN || event->edge == MTPROF__EDGE_END) {
            check_edge(&stacks[event->track], event);
        }
        spans += event->edge == MTPROF__EDGE_BEGIN || event->edge == MTPROF__EDGE_SPAN;
        points += event->edge == MTPROF__EDGE_POINT;
    }
    CHECK_EQ_I64(status, MTPROF_EEND);
    CHECK_EQ_U64(points, model->n_points);
    CHECK_EQ_U64(mtprof__events_totals_get(events)->events, spans);
    uint64_t shown = 0;
    for (size_t i = 0; i < model->columns.n; i++) {
        uint8_t kind = model->columns.kind[i];
        shown += kind != MTPROF_EVENT_KIND_MEMORY && kind != MTPROF_EVENT_KIND_OUT_OF_MEMORY;
    }
    CHECK_EQ_U64(spans, shown);
    for (size_t i = 0; i < tracks; i++) {
        CHECK_EQ_I64(stacks[i].n, 0);
    }
    mtprof__events_close(events);
    free(stacks);
}

TEST(trees_follow_the_rules)
{
    uint64_t state = mt_test_seed();
    trace *t = calloc(1, sizeof *t);
    REQUIRE(t != NULL);
    for (int round = 0; round < (mt_test_long() ? 20000 : 1000); round++) {
        make_spans(t, &state);
        apply_rules(t);
        write_trace(t, &state);
        mtprof_model *model = import_text(t->text);
        check_tree(t, model);
        check_stream(model);
        mtprof_model_free(model);
    }
    free(t);
}

/* ---- spoilt traces --------------------------------------------------------------------------- */

/* Entries of every kind, from a table with places for numbers. */
static void write_mixture(trace *t, uint64_t *state)
{
    static const char *const entries[] = {
        "{\"ph\":\"B\",\"name\":\"b%u\",\"ts\":%u,\"pid\":1,\"tid\":%u}",
        "{\"ph\":\"E\",\"name\":\"b%u\",\"ts\":%u,\"pid\":1,\"tid\":%u}",
        "{\"ph\":\"b\",\"cat\":\"a\",\"id\":%u,\"name\":\"async\",\"ts\":%u,\"pid\":1,\"tid\":%u}",
        "{\"ph\":\"e\",\"cat\":\"a\",\"id\":%u,\"name\":\"async\",\"ts\":%u,\"pid\":1,\"tid\":%u}",
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"x%u\",\"ts\":%u,\"dur\":9.5,\"pid\":1,\"tid\":%u,"
        "\"args\":{\"External id\":3,\"Input Dims\":[[4]],\"Call stack\":\"a(1): b;c\",\"odd\":\"\\u00ff\"}}",
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%u\",\"ts\":%u,\"dur\":3,\"pid\":0,\"tid\":%u,"
        "\"args\":{\"External id\":3,\"grid\":[1,2,3]}}",
        "{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"o%u\",\"ts\":%u,\"dur\":2,\"pid\":-1,\"tid\":%u}",
        "{\"ph\":\"i\",\"name\":\"[memory]\",\"id\":%u,\"ts\":%u,\"pid\":1,\"tid\":%u,\"args\":{\"Bytes\":8}}",
        "{\"ph\":\"C\",\"name\":\"c%u\",\"ts\":%u,\"pid\":1,\"tid\":%u,\"args\":{\"v\":1,\"w\":2.5}}",
        "{\"ph\":\"s\",\"cat\":\"f\",\"name\":\"f\",\"id\":%u,\"ts\":%u,\"pid\":1,\"tid\":%u}",
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%u\",\"ts\":%u,\"dur\":20,"
        "\"pid\":1,\"tid\":%u,\"args\":{\"correlation_id\":3,\"parent_id\":3}}",
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"id\":%u,\"ts\":%u,\"pid\":1,\"tid\":%u,"
        "\"args\":{\"name\":\"t\"}}",
        "{\"ph\":\"I\",\"name\":\"i%u\",\"ts\":%u,\"pid\":\"p\",\"tid\":%u,\"args\":{\"k\":[{}]}}",
    };
    t->length = 0;
    put(t, "{\"meta\":{\"a\":1},\"traceEvents\":[");
    int n = (int)pick(state, 50) + 1;
    for (int i = 0; i < n; i++) {
        const char *entry = entries[pick(state, sizeof entries / sizeof entries[0])];
        char line[512];
        snprintf(line, sizeof line, entry, pick(state, 4), pick(state, 60), pick(state, 3));
        put(t, "%s%s", i > 0 ? "," : "", line);
    }
    put(t, "]}");
}

TEST(mixtures_keep_the_promises)
{
    uint64_t state = mt_test_seed();
    trace *t = calloc(1, sizeof *t);
    REQUIRE(t != NULL);
    for (int round = 0; round < 400; round++) {
        write_mixture(t, &state);
        mtprof_model *model = import_text(t->text);
        CHECK(mtprof__model_verify(model));
        check_stream(model);
        mtprof_model_free(model);
    }
    free(t);
}

TEST(spoilt_texts_do_no_harm)
{
    static const char marks[] = "{}[]\",:\\0 -e\xFF";
    uint64_t state = mt_test_seed();
    trace *t = calloc(1, sizeof *t);
    REQUIRE(t != NULL);
    int read = 0;
    for (int round = 0; round < 800; round++) {
        write_mixture(t, &state);
        for (uint32_t i = pick(&state, 4); i > 0; i--) {
            t->text[pick(&state, (uint32_t)t->length)] = marks[pick(&state, sizeof marks)];
        }
        size_t length = pick(&state, 3) == 0 ? pick(&state, (uint32_t)t->length + 1) : t->length;
        mtprof_model *model = NULL;
        int status = import_bytes(t->text, length, &model);
        CHECK((status == MTPROF_OK) == (model != NULL));
        CHECK(status == MTPROF_OK || status == MTPROF_EFORMAT);
        if (model != NULL) {
            read++;
            if (!CHECK(mtprof__model_verify(model))) {
                FAIL("of %.*s", (int)length, t->text);
            }
            check_stream(model);
            mtprof_model_free(model);
        }
    }
    CHECK(read > 50 && read < 800);
    free(t);
}

/* Every allocation refused in turn: an error, nothing lost, nothing broken. */
TEST(no_memory_at_any_moment)
{
    uint64_t state = mt_test_seed();
    trace *t = calloc(1, sizeof *t);
    REQUIRE(t != NULL);
    for (int round = 0; round < 4; round++) {
        write_mixture(t, &state);
        mtprof_model *model = NULL;
        mtb_fail_nth(0, false);
        REQUIRE_OK(import_bytes(t->text, t->length, &model));
        uint64_t needed = mtb_fail_nth(0, false);
        mtprof_model_free(model);
        CHECK(needed > 20);
        for (uint64_t nth = 1; nth <= needed; nth++) {
            mtb_fail_nth(nth, false);
            int status = import_bytes(t->text, t->length, &model);
            mtb_fail_nth(0, false);
            /* A cache that gets no memory does without. */
            CHECK(status == MTPROF_ENOMEM || status == MTPROF_OK);
            CHECK((status == MTPROF_OK) == (model != NULL));
            mtprof_model_free(model);
        }
    }
    free(t);
}
