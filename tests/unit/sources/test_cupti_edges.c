/* SPDX-License-Identifier: Apache-2.0
 *
 * Dependencies between the nodes of CUDA graphs without a GPU: lists in the metadata of a replay's
 * work, and arrows in what is exported.
 */
#include "base/alloc.h"
#include "support/cupti_case.h"

#include <mtprof/export.h>
#include <mtprof/model.h>
#include <mtprof/reader.h>

#include <pthread.h>
#include <stdio.h>

#ifdef __x86_64__

enum {
    HOST_NODE = 3,
    EMPTY_NODE = 5
};

static const uint64_t diamond[][2] = {{1, 2}, {1, 3}, {2, 4}, {3, 4}};

static void use_edges(const uint64_t (*edges)[2], size_t n)
{
    fake->settings->edges = edges;
    fake->settings->n_edges = n;
}

/* Nodes 1 to n of a graph become nodes base + 1 to base + n. */
static void instantiate_as(const char *name, uint64_t base, uint64_t n, int32_t result)
{
    static char graph;
    void *const arguments[3] = {NULL, &graph, NULL};
    const fake_call call = {.name = name, .arguments = arguments, .result = result};
    uint64_t kept = 0;
    uint32_t id = fake->enter(&call, &kept);
    for (uint64_t i = 1; i <= n; i++) {
        fake->node(CP_RESOURCE_NODE_CLONED, base + i, i);
    }
    fake->leave(&call, id, &kept);
}

static void instantiate(uint64_t base, uint64_t n)
{
    instantiate_as("cudaGraphInstantiate_v12000", base, n, 0);
}

/* A replay: the work of each of these nodes, named after it, a microsecond each. */
static void replay(uint64_t base, uint64_t n)
{
    static uint64_t last;
    uint64_t at = now() > last ? now() : last; /* a replay begins after the last one */
    last = at + (n + 2) * 1000;
    const fake_call call = {.name = "cudaGraphLaunch_v10000"};
    uint64_t kept = 0;
    uint32_t id = fake->enter(&call, &kept);
    static char names[64][16]; /* read later */
    for (uint64_t i = 1; i <= n && i < 64; i++) {
        (void)snprintf(names[i], sizeof names[i], "node %d", (int)i);
        fake_work work = kernel(names[i], at + i * 1000, 1 + (uint32_t)(i % 3));
        work.graph_node = base + i;
        fake->record(&work, id);
    }
    fake->leave(&call, id, &kept);
}

static void check_list(const trace_view *v, const char *work, const char *expected)
{
    const tv_record *record = activity(v, work);
    REQUIRE(record != NULL);
    uint64_t id = meta(v, record, "graph dependencies");
    CHECK_EQ_STR(id != UINT64_MAX ? tv_string(v, id) : "(none)", expected);
}

static mtprof_session *start(uint32_t options)
{
    mtprof_cupti_set_options(options);
    return tv_start(MTPROF_WANT_DEFAULT);
}

static size_t count_text(const char *text, size_t length, const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i + strlen(part) <= length; i++) {
        count += memcmp(text + i, part, strlen(part)) == 0;
    }
    return count;
}

TEST(nodes_tell_what_they_depend_on_where_that_is_asked_for)
{
    attach();
    use_edges(diamond, 4);
    mtprof_session *s = start(0);
    instantiate(10, 4);
    replay(10, 4);
    trace_view *v = tv_finish(s, NULL);
    check_list(v, "node 4", "(none)");
    tv_free(v);
    s = start(MTPROF_CUPTI_DEPENDENCIES);
    instantiate(20, 4);
    instantiate_as("cuGraphInstantiateWithFlags", 30, 4, 0); /* the same graph again */
    replay(20, 4);
    v = tv_finish(s, NULL);
    check_list(v, "node 1", "[]");
    check_list(v, "node 2", "[21]");
    check_list(v, "node 3", "[21]");
    check_list(v, "node 4", "[22, 23]");
    tv_free(v);
    s = start(0); /* what is known stays so */
    replay(30, 4);
    v = tv_finish(s, NULL);
    check_list(v, "node 4", "[32, 33]");
    tv_free(v);
    CHECK_EQ_U64(get_info().dependencies_lost, 0);
}

/* CE2 */
TEST(what_does_no_work_is_passed_through)
{
    static const uint64_t edges[][2] = {{1, 3}, {2, 3}, {3, 4}, {4, 5}, {1, 5}, {4, 6}};
    static char graph;
    void *const arguments[3] = {NULL, &graph, NULL};
    const fake_call call = {.name = "cudaGraphInstantiate_v12000", .arguments = arguments};
    attach();
    use_edges(edges, 6);
    mtprof_session *s = start(MTPROF_CUPTI_DEPENDENCIES);
    uint64_t kept = 0;
    uint32_t id = fake->enter(&call, &kept);
    for (uint64_t i = 1; i <= 6; i++) {
        fake->settings->node_type = i == 3 ? EMPTY_NODE : i == 4 ? HOST_NODE : CP_NODE_COPY;
        fake->node(CP_RESOURCE_NODE_CLONED, 10 + i, i);
    }
    fake->leave(&call, id, &kept);
    replay(10, 6);
    trace_view *v = tv_finish(s, NULL);
    check_list(v, "node 2", "[]");
    check_list(v, "node 3", "(none)"); /* nothing was said of it: it does no work */
    check_list(v, "node 6", "[11, 12]");
    const tv_record *record = activity(v, "node 5");
    REQUIRE(record != NULL);
    CHECK_EQ_STR(tv_string(v, meta(v, record, "graph dependencies")), "[11, 12]");
    tv_free(v);
    CHECK_EQ_U64(get_info().dependencies_lost, 0);
}

/* CE1 */
TEST(edges_are_those_at_the_instantiation)
{
    attach();
    use_edges(diamond, 4);
    mtprof_session *s = start(MTPROF_CUPTI_DEPENDENCIES);
    instantiate(10, 4);
    use_edges(diamond, 3); /* 3 to 4 is removed; the first one keeps it */
    instantiate(20, 4);
    replay(10, 4);
    trace_view *v = tv_finish(s, NULL);
    check_list(v, "node 4", "[12, 13]");
    tv_free(v);
    s = start(MTPROF_CUPTI_DEPENDENCIES);
    replay(20, 4);
    for (uint64_t i = 1; i <= 4; i++) { /* known until the recording ends */
        fake->node(CP_RESOURCE_NODE_DESTROY_STARTING, 20 + i, 0);
        fake->node(CP_RESOURCE_NODE_DESTROY_STARTING, 10 + i, 0);
    }
    v = tv_finish(s, NULL);
    check_list(v, "node 4", "[22]");
    tv_free(v);
    s = start(MTPROF_CUPTI_DEPENDENCIES);
    fake->node(CP_RESOURCE_NODE_CREATED, 12, 0); /* the number again, of another node */
    replay(10, 4);
    v = tv_finish(s, NULL);
    check_list(v, "node 4", "(none)");
    check_list(v, "node 2", "(none)");
    tv_free(v);
}

static char text[1 << 18];

static size_t exported(mtprof_model *model, uint32_t format, const char *part)
{
    memory_text written = {text, 0, sizeof text - 1};
    mtprof_output output = {.struct_size = sizeof output, .context = &written, .write = keep_text};
    REQUIRE_OK(mtprof_export_to(model, format, &output, NULL));
    return part != NULL ? count_text(text, written.used, part) : written.used;
}

/* Flows of a .pftrace that end (field 48 of a TrackEvent) and begin (47), by their ids. */
static size_t count_flows(mtprof_model *model)
{
    size_t length = exported(model, MTPROF_EXPORT_PERFETTO, NULL);
    size_t count = 0;
    for (size_t i = 0; i + 10 <= length; i++) {
        char begin[10] = "\xF9\x02";
        memcpy(begin + 2, text + i + 2, 8);
        count += memcmp(text + i, "\x81\x03", 2) == 0 &&
                 memmem(text, length, begin, sizeof begin) != NULL;
    }
    return count;
}

/* Replays of one graph and of another one; arrows stay within a replay. */
TEST(replays_have_arrows)
{
    enum {
        REPLAYS = 3
    };
    attach();
    use_edges(diamond, 4);
    mtprof_session *s = start(MTPROF_CUPTI_DEPENDENCIES);
    instantiate((uint64_t)5 << 32, 4);
    instantiate((uint64_t)6 << 32, 4);
    for (int i = 0; i < REPLAYS; i++) {
        replay((uint64_t)5 << 32, 4);
        replay((uint64_t)6 << 32, i == 0 ? 4 : 3); /* the last node did not run, or was dropped */
    }
    REQUIRE_OK(mtprof_session_stop(s));
    mtprof_model *model = NULL;
    REQUIRE_OK(mtprof_model_from_session(s, NULL, &model));
    size_t arrows = REPLAYS * 4 + 4 + (REPLAYS - 1) * 2;
    CHECK_EQ_U64(exported(model, MTPROF_EXPORT_CHROME, "\"cat\":\"graph_dependency\""), 2 * arrows);
    CHECK_EQ_U64(exported(model, MTPROF_EXPORT_CHROME, "\"graph dependencies\":[25769803778, "), 1);
    CHECK_EQ_U64(count_flows(model), arrows);
    mtprof_model_free(model);
    mtprof_session_close(s);
}

/* One node, and twelve that wait for it: a .pftrace has arrows to eight of them. */
TEST(arrows_that_are_too_many_for_a_format_are_counted)
{
    uint64_t edges[12][2];
    attach();
    for (uint64_t i = 0; i < 12; i++) {
        edges[i][0] = 1;
        edges[i][1] = i + 2;
    }
    use_edges((const uint64_t(*)[2])edges, 12);
    mtprof_session *s = start(MTPROF_CUPTI_DEPENDENCIES);
    instantiate(10, 13);
    replay(10, 13);
    REQUIRE_OK(mtprof_session_stop(s));
    mtprof_model *model = NULL;
    REQUIRE_OK(mtprof_model_from_session(s, NULL, &model));
    CHECK_EQ_U64(exported(model, MTPROF_EXPORT_CHROME, "\"cat\":\"graph_dependency\""), 2 * 12);
    CHECK_EQ_U64(count_flows(model), 8);
    mtprof_export_report report = {.struct_size = sizeof report};
    memory_text written = {text, 0, sizeof text - 1};
    mtprof_output output = {.struct_size = sizeof output, .context = &written, .write = keep_text};
    mtprof_export_options options = {.struct_size = sizeof options, .report = &report};
    REQUIRE_OK(mtprof_export_to(model, MTPROF_EXPORT_PERFETTO, &output, &options));
    CHECK_EQ_U64(report.left_out, 4);
    mtprof_model_free(model);
    mtprof_session_close(s);
}

TEST(what_is_not_known_is_counted)
{
    static const uint64_t unseen[][2] = {{1, 2}, {9, 2}, {2, 8}, {2, 3}};
    attach();
    use_edges(unseen, 4);
    mtprof_session *s = start(MTPROF_CUPTI_DEPENDENCIES);
    instantiate(10, 3);
    replay(10, 3);
    instantiate_as("cudaGraphInstantiate_v12000", 20, 3, 1); /* it failed: there is none */
    mtprof_health h = {.struct_size = sizeof h};
    trace_view *v = tv_finish(s, &h);
    check_list(v, "node 2", "[11]");
    check_list(v, "node 3", "[12]");
    CHECK_EQ_U64(get_info().dependencies_lost, 2); /* node 2, and the edge to 8 */
    CHECK_EQ_U64(h.texts_cut, 2);
    tv_free(v);
    s = start(MTPROF_CUPTI_DEPENDENCIES);
    fake->settings->edges_result = 400;
    instantiate(30, 3);
    fake->settings->edges_result = 0;
    CHECK_EQ_U64(get_info().dependencies_lost, 5);
    instantiate_as("cudaGraphInstantiate_v12000", 40, 0, 0); /* no clone was told */
    CHECK_EQ_U64(get_info().dependencies_lost, 9);
    replay(30, 3);
    v = tv_finish(s, NULL);
    check_list(v, "node 2", "(none)");
    tv_free(v);
}

TEST(older_drivers_tell_edges_without_data)
{
    attach();
    use_edges(diamond, 4);
    cp__cuda.graph_edges_2 = NULL;
    mtprof_session *s = start(MTPROF_CUPTI_DEPENDENCIES);
    instantiate(10, 4);
    cp__cuda.graph_edges = NULL;
    instantiate(20, 4);
    replay(10, 4);
    trace_view *v = tv_finish(s, NULL);
    check_list(v, "node 4", "[12, 13]");
    tv_free(v);
    CHECK_EQ_U64(get_info().dependencies_lost, 4);
}

TEST(bounds_of_lists_and_of_their_number)
{
    enum {
        MANY = (1 << 18) + 11
    };
    uint64_t(*edges)[2] = calloc(MANY, sizeof *edges);
    REQUIRE(edges != NULL);
    attach();
    for (uint64_t i = 0; i < 40; i++) { /* all to one */
        edges[i][0] = i + 1;
        edges[i][1] = 41;
    }
    use_edges((const uint64_t(*)[2])edges, 40);
    mtprof_session *s = start(MTPROF_CUPTI_DEPENDENCIES);
    instantiate(100, 41);
    CHECK_EQ_U64(get_info().dependencies_lost, 1);
    replay(100, 41);
    for (uint64_t i = 0; i < MANY - 1; i++) { /* a chain */
        edges[i][0] = i + 1;
        edges[i][1] = i + 2;
    }
    use_edges((const uint64_t(*)[2])edges, MANY - 1);
    instantiate(1000, MANY);
    CHECK_EQ_U64(get_info().dependencies_lost, 1 + MANY - 1 - ((1 << 18) - 1));
    trace_view *v = tv_finish(s, NULL);
    const tv_record *last = activity(v, "node 41");
    REQUIRE(last != NULL);
    const char *list = tv_string(v, meta(v, last, "graph dependencies"));
    CHECK_EQ_U64(count_text(list, strlen(list), ","), 31);
    tv_free(v);
    free(edges);
}

TEST(without_memory_dependencies_are_counted)
{
    attach();
    use_edges(diamond, 4);
    mtprof_session *s = start(MTPROF_CUPTI_DEPENDENCIES);
    uint64_t failures = 0;
    for (uint64_t n = 1; n < 12; n++) {
        uint64_t before = get_info().dependencies_lost;
        mtb_fail_nth(n, false);
        instantiate(100 * n, 4);
        mtb_fail_nth(0, false);
        failures += get_info().dependencies_lost > before;
    }
    CHECK(failures >= 3 && failures < 11);
    instantiate(5000, 4);
    replay(5000, 4);
    trace_view *v = tv_finish(s, NULL);
    check_list(v, "node 4", "[5002, 5003]");
    tv_free(v);
}

static void *instantiate_many(void *argument)
{
    uint64_t base = *(const uint64_t *)argument;
    for (uint64_t i = 0; i < 200; i++) {
        instantiate(base + 10 * i, 4);
    }
    return NULL;
}

TEST(threads_make_graphs_at_once)
{
    attach();
    use_edges(diamond, 4);
    mtprof_session *s = start(MTPROF_CUPTI_DEPENDENCIES);
    uint64_t bases[3] = {100000, 200000, 300000};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, instantiate_many, &bases[i]) == 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    replay(200000 + 10 * 199, 4);
    trace_view *v = tv_finish(s, NULL);
    check_list(v, "node 4", "[201992, 201993]");
    tv_free(v);
    CHECK_EQ_U64(get_info().dependencies_lost, 0);
}

TEST(a_graph_whose_making_does_not_end_is_forgotten)
{
    attach();
    use_edges(diamond, 4);
    mtprof_session *s = start(MTPROF_CUPTI_DEPENDENCIES);
    const fake_call call = {.name = "cudaGraphInstantiate_v12000"};
    uint64_t kept = 0;
    (void)fake->enter(&call, &kept);
    fake->node(CP_RESOURCE_NODE_CLONED, 11, 1);
    tv_free(tv_finish(s, NULL));
    s = start(MTPROF_CUPTI_DEPENDENCIES);
    instantiate(20, 4);
    replay(20, 4);
    trace_view *v = tv_finish(s, NULL);
    check_list(v, "node 2", "[21]");
    tv_free(v);
}

TEST(whoever_starts_a_program_can_ask)
{
    load(FAKE_CUPTI);
    mtprof_cupti_info info = {.struct_size = sizeof info};
    setenv("MTPROF_CUPTI", "waits,flows", 1);
    CHECK_EQ_I64(mtprof_cupti_attach(&info), MTPROF_EINVAL);
    CHECK(strstr(info.missing, "MTPROF_CUPTI: 'flows' is neither waits nor dependencies") != NULL);
    setenv("MTPROF_CUPTI", "waits,dependencies", 1);
    REQUIRE_OK(mtprof_cupti_attach(&info));
    use_edges(diamond, 4);
    mtprof_session *s = start(0);
    CHECK_EQ_U64(fake->facts().kinds >> CP_KIND_SYNCHRONIZATION & 1, 1);
    instantiate(10, 4);
    replay(10, 4);
    trace_view *v = tv_finish(s, NULL);
    check_list(v, "node 4", "[12, 13]");
    tv_free(v);
}

#else

TEST(edges)
{
    MT_SKIP("libcupti of our own is for x86-64");
}

#endif
