/* SPDX-License-Identifier: Apache-2.0
 *
 * What torch's own tables say of a trace and its JSON does not, and what comes back of an export of
 * ours: overloads, spans that overlap, functions, stacks of the backward pass.
 */
#include "base/alloc.h"
#include "json_model.h"
#include "mtprof/model/events/event.h"

#include <mtprof/averages.h>
#include <mtprof/export.h>
#include <mtprof/output.h>

#include <stdio.h>
#include <stdlib.h>

/* One span of a thread; `more` are further members, with a comma before them. */
#define SPAN(cat, name, ts, dur, more)                                                       \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" ts \
    ",\"dur\":" dur more "}"

typedef struct text {
    char *bytes;
    size_t n;
} text;

static int take_text(void *context, const void *data, size_t size)
{
    text *t = context;
    t->bytes = realloc(t->bytes, t->n + size + 1);
    REQUIRE(t->bytes != NULL);
    memcpy(t->bytes + t->n, data, size);
    t->n += size;
    t->bytes[t->n] = 0;
    return 0;
}

/* What an export of the model says, as a model. */
static mtprof_model *export_and_import(mtprof_model *model)
{
    text json = {NULL, 0};
    const mtprof_output output = {
        .struct_size = sizeof output, .write = take_text, .context = &json};
    REQUIRE_OK(mtprof_export_to(model, MTPROF_EXPORT_CHROME, &output, NULL));
    mtprof_model *back = import_text(json.bytes);
    free(json.bytes);
    return back;
}

static bool is_name(const mtprof_model *model, uint32_t name, const char *wanted)
{
    mtprof_text is = mtprof_model_name(model, name);
    return is.length == strlen(wanted) && memcmp(is.bytes, wanted, is.length) == 0;
}

/* The overload of an event; "" for none. */
static bool has_overload(const mtprof_model *model, uint32_t i, const char *wanted)
{
    const uint32_t *overloads = model->columns.extra[MTPROF_COLUMN_OVERLOAD];
    uint32_t name = overloads != NULL ? overloads[i] : 0;
    return name == 0 ? wanted[0] == 0 : is_name(model, name - 1, wanted);
}

/* ---- overloads ------------------------------------------------------------------------------- */

TEST(overloads_stand_behind_a_dot)
{
    static const struct {
        const char *written, *name, *overload;
    } cases[] = {
        {"aten::add.Tensor", "aten::add", "Tensor"},
        {"aten::_foreach_add_.Scalar_out", "aten::_foreach_add_", "Scalar_out"},
        {"a::b::c.d", "a::b::c", "d"},
        {"aten::add", "aten::add", ""},
        {"a.b", "a.b", ""},
        {"a.b::c", "a.b::c", ""},
        {"aten::add.", "aten::add.", ""},
        {"aten::.Tensor", "aten::.Tensor", ""},
        {"::add.Tensor", "::add.Tensor", ""},
        {"aten::add.a.b", "aten::add.a.b", ""},
        {"aten::add.a b", "aten::add.a b", ""},
        {"aten::add(x).Tensor", "aten::add(x).Tensor", ""},
        {"aten:add.Tensor", "aten:add.Tensor", ""},
        {"", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[512];
        snprintf(json, sizeof json, "[" SPAN("cpu_op", "%s", "1", "2", "") "]", cases[i].written);
        mtprof_model *model = import_text(json);
        if (!is_name(model, model->columns.name[0], cases[i].name) ||
            !has_overload(model, 0, cases[i].overload)) {
            FAIL("'%s' is not '%s' and '%s'", cases[i].written, cases[i].name, cases[i].overload);
        }
        mtprof_model_free(model);
    }
}

TEST(overloads_are_ops_and_others_only)
{
    mtprof_model *model =
        import_text("[" SPAN("user_annotation", "my::scope.one", "1", "2", "") "," SPAN(
            "cpu_op", "my::op.two", "5", "2", ",\"args\":{\"overload_name\":\"three\"}") "]");
    CHECK(has_overload(model, event_of(model, "my::scope.one"), ""));
    CHECK(has_overload(model, event_of(model, "my::op.two"), "three"));
    mtprof_model_free(model);
    /* Ours has an argument for it, so a name is a name. */
    model = import_text("{\"mtprof_version\":\"0.1.0\",\"traceEvents\":[" SPAN(
        "cpu_op", "my::op.two", "1", "2", "") "]}");
    CHECK(has_overload(model, event_of(model, "my::op.two"), ""));
    mtprof_model_free(model);
}

TEST(overloads_come_back)
{
    mtprof_model *model = import_text("[" SPAN("cpu_op", "aten::add.Tensor", "1", "2", "") "," SPAN(
        "cpu_op", "aten::add.Scalar", "5", "2", "") "]");
    mtprof_model *back = export_and_import(model);
    for (int i = 0; i < 2; i++) {
        mtprof_model *m = i == 0 ? model : back;
        mtprof_averages *averages = NULL;
        REQUIRE_OK(mtprof_averages_new(m, NULL, &averages));
        CHECK_EQ_U64(mtprof_averages_count(averages), 1);
        mtprof_averages_free(averages);
        CHECK(has_overload(m, 0, "Tensor"));
        CHECK(has_overload(m, 1, "Scalar"));
    }
    mtprof_model_free(back);
    mtprof_model_free(model);
}

/* ---- spans as they were recorded ------------------------------------------------------------- */

#define RECORDED ",\"args\":{\"recorded_ts\":10.236,\"recorded_dur\":435.315}"

TEST(host_spans_of_ours_have_their_recorded_times)
{
    mtprof_model *model = import_text("{\"mtprof_version\":\"0.1.0\",\"traceEvents\":[" SPAN(
        "user_annotation", "outer", "10.300", "22.223", RECORDED) "]}");
    CHECK_EQ_I64(model->columns.start_ns[0], 10236);
    CHECK_EQ_I64(model->columns.end_ns[0], 10236 + 435315);
    mtprof_model_free(model);
    /* Another tool may mean anything by it. */
    model = import_text("[" SPAN("user_annotation", "outer", "10.300", "22.223", RECORDED) "]");
    CHECK_EQ_I64(model->columns.start_ns[0], 10300);
    CHECK_EQ_I64(model->columns.end_ns[0], 10300 + 22223);
    mtprof_model_free(model);
}

/* clang-format off */

/* torch-contract 2.10, 3.3.2 */
#define COROUTINES                                    \
    "[" SPAN("user_annotation", "A", "0", "100", "")  \
    "," SPAN("user_annotation", "B", "60", "100", "") \
    "," SPAN("cpu_op", "op", "70", "10", "")          \
    "," SPAN("cpu_op", "late", "120", "5", "") "]"

/* clang-format on */

static void check_coroutines(mtprof_model *model)
{
    const mtprof__columns *columns = &model->columns;
    uint32_t a = event_of(model, "A");
    uint32_t b = event_of(model, "B");
    CHECK_EQ_I64(columns->end_ns[b] - columns->start_ns[b], 100000);
    CHECK_EQ_I64(columns->self_ns[a], 100000);
    CHECK_EQ_I64(columns->self_ns[b], 85000);
    CHECK_EQ_U64(columns->parent[a], MTPROF_NO_EVENT);
    CHECK_EQ_U64(columns->parent[b], MTPROF_NO_EVENT);
    CHECK_EQ_U64(columns->parent[event_of(model, "op")], b);
    CHECK_EQ_U64(columns->parent[event_of(model, "late")], b);
    for (uint32_t i = 0; i < columns->n; i++) {
        CHECK_EQ_U64((columns->flags[i] & MTPROF_EVENT_FLAG_TOP) != 0, i == a || i == b);
        CHECK_EQ_U64(columns->flags[i] & (MTPROF_EVENT_FLAG_OVERLAP | MTPROF_EVENT_FLAG_ASYNC), 0);
    }
    CHECK_EQ_U64(import_findings(model).overlaps, 0);
    CHECK(mtprof__model_verify(model));
}

TEST(a_span_that_outlives_all_starts_a_tree)
{
    mtprof_model *model = import_text(COROUTINES);
    check_coroutines(model);
    mtprof_model *back = export_and_import(model);
    check_coroutines(back);
    mtprof_model_free(back);
    mtprof_model_free(model);
}

/* With something around both, MDL2 holds as always, and an export brings it back as it was. */
TEST(overlap_inside_a_scope_comes_back)
{
    mtprof_model *model =
        import_text("[" SPAN("user_annotation", "around", "0", "130", "") "," SPAN(
            "user_annotation", "A", "10", "90", "") "," SPAN("user_annotation", "B", "60", "60",
                                                             "") "," SPAN("cpu_op", "op", "70",
                                                                          "10", "") "]");
    mtprof_model *back = export_and_import(model);
    for (int i = 0; i < 2; i++) {
        mtprof_model *m = i == 0 ? model : back;
        const mtprof__columns *columns = &m->columns;
        uint32_t b = event_of(m, "B");
        CHECK_EQ_U64(columns->flags[b], MTPROF_EVENT_FLAG_OVERLAP);
        CHECK_EQ_I64(columns->end_ns[b] - columns->start_ns[b], 60000);
        CHECK_EQ_I64(columns->self_ns[b], 0);
        CHECK_EQ_I64(columns->self_ns[event_of(m, "A")], 80000);
        CHECK_EQ_I64(columns->self_ns[event_of(m, "around")], 40000);
        CHECK_EQ_U64(columns->parent[event_of(m, "op")], event_of(m, "A"));
        CHECK_EQ_U64(import_findings(m).overlaps, 1);
        CHECK(mtprof__model_verify(m));
    }
    mtprof_model_free(back);
    mtprof_model_free(model);
}

/* ---- functions ------------------------------------------------------------------------------- */

/* run() with a scope whose __enter__ and __exit__ it crosses, and an inner function of each. */
/* clang-format off */
#define ENTER_EXIT                                          \
    "[" SPAN("python_function", "run", "0", "200", "")      \
    "," SPAN("python_function", "__enter__", "10", "20", "") \
    "," SPAN("python_function", "enter", "15", "10", "")    \
    "," SPAN("user_annotation", "scope", "20", "100", "")   \
    "," SPAN("cpu_op", "op", "40", "50", "")                \
    "," SPAN("python_function", "__exit__", "110", "20", "") "]"
/* clang-format on */

typedef struct shown {
    int64_t start, end;
    uint64_t begun, ended; /* edges are counted: when it came */
} shown;

static mtprof__events_totals read_shown(mtprof_model *model, shown *out, size_t most)
{
    mtprof__events *events = NULL;
    const mtprof__event *event = NULL;
    uint64_t edges = 0;
    REQUIRE_OK(mtprof__events_open(model, &events));
    while (mtprof__events_next(events, &event) == MTPROF_OK) {
        REQUIRE(event->index < most);
        shown *s = &out[event->index];
        *(event->edge == MTPROF__EDGE_BEGIN ? &s->begun : &s->ended) = ++edges;
        s->start = event->shown_start_ns;
        s->end = event->shown_end_ns;
    }
    mtprof__events_totals totals = *mtprof__events_totals_get(events);
    mtprof__events_close(events);
    return totals;
}

TEST(functions_give_way_in_streams)
{
    mtprof_model *model = import_text(ENTER_EXIT);
    shown all[6] = {{0, 0, 0, 0}};
    mtprof__events_totals totals = read_shown(model, all, 6);
    const uint32_t *index = model->columns.index;
    const shown *enter = &all[index[event_of(model, "__enter__")]];
    const shown *inner = &all[index[event_of(model, "enter")]];
    const shown *scope = &all[index[event_of(model, "scope")]];
    const shown *leave = &all[index[event_of(model, "__exit__")]];
    const shown *run = &all[index[event_of(model, "run")]];
    CHECK_EQ_I64(scope->start, 20000);
    CHECK_EQ_I64(scope->end, 120000); /* whole */
    CHECK_EQ_I64(enter->end, 20000);
    CHECK_EQ_I64(inner->end, 20000);
    CHECK(inner->ended < enter->ended && enter->ended < scope->begun);
    CHECK_EQ_I64(leave->start, 110000);
    CHECK_EQ_I64(leave->end, 120000);
    CHECK(leave->ended < scope->ended);
    CHECK_EQ_I64(run->end, 200000);
    CHECK_EQ_U64(totals.clamped, 3);
    CHECK_EQ_U64(totals.events, 6);
    /* What was cut comes back whole. */
    mtprof_model *back = export_and_import(model);
    REQUIRE(back->columns.n == model->columns.n);
    for (uint32_t i = 0; i < model->columns.n; i++) {
        CHECK_EQ_I64(back->columns.start_ns[i], model->columns.start_ns[i]);
        CHECK_EQ_I64(back->columns.end_ns[i], model->columns.end_ns[i]);
        CHECK_EQ_I64(back->columns.self_ns[i], model->columns.self_ns[i]);
        CHECK_EQ_U64(back->columns.flags[i], model->columns.flags[i]);
        CHECK_EQ_U64(back->columns.parent[i], model->columns.parent[i]);
    }
    mtprof_model_free(back);
    mtprof_model_free(model);
}

/* Of two scopes the later one is still cut, and the function between them only so far as it must.
 */
TEST(scopes_are_cut_by_scopes_alone)
{
    mtprof_model *model = import_text("[" SPAN("user_annotation", "A", "0", "100", "") "," SPAN(
        "python_function", "f", "10", "90", "") "," SPAN("python_function", "g", "20", "50",
                                                         "") "," SPAN("user_annotation", "B", "60",
                                                                      "100", "") "]");
    shown all[4] = {{0, 0, 0, 0}};
    mtprof__events_totals totals = read_shown(model, all, 4);
    const uint32_t *index = model->columns.index;
    CHECK_EQ_I64(all[index[event_of(model, "A")]].end, 100000);
    CHECK_EQ_I64(all[index[event_of(model, "f")]].end, 100000); /* holds what is shown of B */
    CHECK_EQ_I64(all[index[event_of(model, "g")]].end, 60000);
    CHECK_EQ_I64(all[index[event_of(model, "B")]].end, 100000);
    CHECK_EQ_U64(totals.clamped, 2);
    mtprof_model_free(model);
}

TEST(functions_do_not_count_twice)
{
    mtprof_model *model = import_text("[" SPAN("python_function", "f", "0", "100", "") "," SPAN(
        "python_function", "g", "10", "50", "") "," SPAN("cpu_op", "op", "20", "40", "") "]");
    const mtprof_averages_options options = {.struct_size = sizeof options, .functions = 1};
    const mtprof_table_options table = {.struct_size = sizeof table};
    mtprof_averages *averages = NULL;
    mtprof_row row = {.struct_size = sizeof row};
    text out = {NULL, 0};
    const mtprof_output output = {
        .struct_size = sizeof output, .write = take_text, .context = &out};
    REQUIRE_OK(mtprof_averages_new(model, &options, &averages));
    CHECK_EQ_U64(mtprof_averages_count(averages), 3);
    REQUIRE_OK(mtprof_averages_get_total(averages, &row));
    CHECK_EQ_I64(row.self_cpu_ns, 40000);
    REQUIRE_OK(mtprof_averages_table(averages, &table, &output));
    CHECK(strstr(out.bytes, "Self CPU time total: 40.000us") != NULL);
    CHECK(strstr(out.bytes, "125.00%      50.000us") !=
          NULL); /* self time of f, as a share of it */
    mtprof_averages_free(averages);
    /* Functions alone: the sum is theirs. */
    mtprof_averages_options only = options;
    only.name = "f";
    REQUIRE_OK(mtprof_averages_new(model, &only, &averages));
    REQUIRE_OK(mtprof_averages_get_total(averages, &row));
    CHECK_EQ_I64(row.self_cpu_ns, 50000);
    mtprof_averages_free(averages);
    free(out.bytes);
    mtprof_model_free(model);
}

/* ---- stacks of the backward pass ------------------------------------------------------------- */

/* Function names of an event's stack, innermost first, each with a blank after it. */
static bool has_stack(const mtprof_model *model, uint32_t i, const char *wanted)
{
    const uint32_t *stacks = model->columns.extra[MTPROF_COLUMN_STACK];
    char found[256] = "";
    uint32_t node = stacks != NULL ? stacks[i] : 0;
    mtprof_frame frame;
    for (uint32_t parent; node != 0 && mtprof_model_stack(model, node, &parent, &frame);
         node = parent) {
        size_t n = strlen(found);
        snprintf(found + n, sizeof found - n, "%.*s ", (int)frame.function.length,
                 frame.function.bytes);
    }
    return CHECK_EQ_STR(found, wanted);
}

#define STACK_OF(stack) ",\"args\":{\"Call stack\":\"" stack "\"}"
#define FORWARD(sequence, stack) \
    ",\"args\":{\"Call stack\":\"" stack "\",\"Sequence number\":" sequence ",\"Fwd thread id\":0}"
#define NODE(sequence, stack) \
    ",\"args\":{\"Call stack\":\"" stack "\",\"Sequence number\":" sequence ",\"Fwd thread id\":1}"
#define ENGINE \
    "graph.py(9): run;torch/autograd/__init__.py(255): backward;_tensor.py(5): backward;a.py(3): main"
#define WRAPPER "autograd::engine::evaluate_function: "

/* clang-format off */
static const char backward_entries[] =
    SPAN("cpu_op", "aten::mm", "0", "10", FORWARD("3", "a.py(1): f;a.py(3): main"))
    "," SPAN("cpu_op", "aten::t", "12", "2", FORWARD("3", "a.py(2): g;a.py(3): main"))
    "," SPAN("cpu_op", "aten::ones_like", "15", "2",
             STACK_OF("torch/autograd/__init__.py(99): _make_grads;" ENGINE))
    "," SPAN("cpu_op", WRAPPER "MmBackward0", "20", "30", NODE("3", ENGINE))
    "," SPAN("cpu_op", "MmBackward0", "21", "28", NODE("3", ENGINE))
    "," SPAN("cpu_op", "inside", "22", "5", STACK_OF(ENGINE))
    "," SPAN("cpu_op", "forward_inside", "28", "5", FORWARD("8", ENGINE))
    "," SPAN("cpu_op", WRAPPER "LateBackward0", "60", "10", NODE("7", ENGINE))
    "," SPAN("cpu_op", "LateBackward0", "61", "5", NODE("7", "x.py(1): own"))
    "," SPAN("cpu_op", "InnerBackward0", "80", "5", NODE("8", ENGINE))
    "," SPAN("cpu_op", "torch::autograd::AccumulateGrad", "90", "5", STACK_OF(ENGINE))
    "," SPAN("cpu_op", "aten::detach", "91", "2", STACK_OF(ENGINE));
/* clang-format on */

/* torch-contract 3.5.3, as seen in torch 2.13. */
TEST(backward_has_the_stack_of_forward)
{
    char json[8192];
    snprintf(json, sizeof json, "[%s]", backward_entries);
    mtprof_model *model = import_text(json);
    mtprof_model *back = export_and_import(model);
    for (int i = 0; i < 2; i++) {
        mtprof_model *m = i == 0 ? model : back;
        has_stack(m, event_of(m, "aten::mm"), "f main ");
        has_stack(m, event_of(m, "aten::ones_like"), "run backward main "); /* _tensor.py's */
        has_stack(m, event_of(m, WRAPPER "MmBackward0"), "run backward main ");
        has_stack(m, event_of(m, "MmBackward0"), "f main "); /* the first of its number */
        has_stack(m, event_of(m, "inside"), "f main ");
        has_stack(m, event_of(m, "forward_inside"), "f main ");
        has_stack(m, event_of(m, "LateBackward0"), "run backward main "); /* of its wrapper */
        has_stack(m, event_of(m, "InnerBackward0"), ""); /* what is inside a node gives none */
        has_stack(m, event_of(m, "torch::autograd::AccumulateGrad"), "");
        has_stack(m, event_of(m, "aten::detach"), "");
    }
    mtprof_model_free(back);
    mtprof_model_free(model);
}

/* A span of another thread. */
#define OTHER(name, tid, ts, more)                                                                 \
    ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid ",\"ts\":" ts \
    ",\"dur\":2" more "}"
#define BARE_NODE(thread) ",\"args\":{\"Sequence number\":3,\"Fwd thread id\":" thread "}"

TEST(backward_on_another_thread)
{
    /* clang-format off */
    static const char json[] =
        "[" SPAN("cpu_op", "aten::mm", "0", "10", FORWARD("3", "a.py(1): f"))
        OTHER("other", "2", "5", FORWARD("3", "b.py(1): g"))
        OTHER("MmBackward0", "3", "20", BARE_NODE("1"))
        OTHER("OtherBackward0", "3", "30", BARE_NODE("2"))
        OTHER("NobodyBackward0", "3", "40", BARE_NODE("9")) "]";
    /* clang-format on */
    mtprof_model *model = import_text(json);
    has_stack(model, event_of(model, "MmBackward0"), "f ");
    has_stack(model, event_of(model, "OtherBackward0"), "g ");
    has_stack(model, event_of(model, "NobodyBackward0"), "");
    mtprof_model_free(model);
}

/* Ours says what is a node; where it does not, nothing is, whatever its name. */
TEST(backward_in_traces_of_ours)
{
    /* clang-format off */
    static const char *const nodes[2] = {
        NODE("3", "a.py(9): own"),
        ",\"args\":{\"Call stack\":\"a.py(9): own\",\"Sequence number\":3,\"Fwd thread id\":1,"
        "\"record_scope\":1}"};
    static const char *const stacks[2] = {"own ", "f "};
    /* clang-format on */
    for (int i = 0; i < 2; i++) {
        char json[1024];
        snprintf(json, sizeof json,
                 "{\"mtprof_version\":\"0.1.0\",\"traceEvents\":[%s," SPAN("cpu_op", "MmBackward0",
                                                                           "20", "5", "%s") "]}",
                 SPAN("cpu_op", "aten::mm", "0", "10", FORWARD("3", "a.py(1): f")), nodes[i]);
        mtprof_model *model = import_text(json);
        has_stack(model, event_of(model, "MmBackward0"), stacks[i]);
        const uint32_t *scopes = model->columns.extra[MTPROF_COLUMN_RECORD_SCOPE];
        REQUIRE(scopes != NULL);
        CHECK_EQ_U64(scopes[event_of(model, "MmBackward0")], (uint64_t)i);
        mtprof_model_free(model);
    }
}

/* Every allocation refused in turn. */
TEST(backward_without_memory)
{
    char json[8192];
    mtprof_model *model = NULL;
    snprintf(json, sizeof json, "[%s]", backward_entries);
    mtb_fail_nth(0, false);
    REQUIRE_OK(import_bytes(json, strlen(json), &model));
    uint64_t needed = mtb_fail_nth(0, false);
    mtprof_model_free(model);
    for (uint64_t nth = 1; nth <= needed; nth++) {
        mtb_fail_nth(nth, false);
        int status = import_bytes(json, strlen(json), &model);
        mtb_fail_nth(0, false);
        CHECK(status == MTPROF_ENOMEM || status == MTPROF_OK); /* caches do without */
        CHECK((status == MTPROF_OK) == (model != NULL));
        mtprof_model_free(model);
    }
}

/* How many slices of a .pftrace carry this flow's end: field 47 of TrackEvent, eight bytes. */
static size_t count_flows(const text *image, const char *id)
{
    size_t n = 0;
    for (size_t i = 0; i + 10 <= image->n; i++) {
        n += memcmp(image->bytes + i, "\xF9\x02", 2) == 0 &&
             memcmp(image->bytes + i + 2, id, 8) == 0;
    }
    return n;
}

/* Other tools say with an id alone which call launched what: an arrow needs both ends. */
TEST(launches_of_other_tools_have_arrows_in_pftrace)
{
    mtprof_model *model = import_text("{\"traceEvents\":[" SPAN(
        "cuda_runtime", "cudaLaunchKernel", "10.0", "5.0",
        ",\"args\":{\"correlation\":7}") ","
                                         "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":20.0,"
                                         "\"dur\":5.0,\"args\":{\"correlation\":7,\"device\":0,\"stream\":7}}]}");
    text image = {NULL, 0};
    const mtprof_output output = {
        .struct_size = sizeof output, .write = take_text, .context = &image};
    REQUIRE_OK(mtprof_export_to(model, MTPROF_EXPORT_PERFETTO, &output, NULL));
    size_t pairs = 0;
    for (size_t i = 0; i + 10 <= image.n; i++) {
        if (memcmp(image.bytes + i, "\xF9\x02", 2) == 0) {
            pairs += count_flows(&image, image.bytes + i + 2) == 2;
        }
    }
    CHECK_EQ_U64(pairs, 2); /* the one arrow, from either end */
    free(image.bytes);
    mtprof_model_free(model);
}
