/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA graphs without a GPU: work of a replay tells the op and the module that captured its node.
 */
#include "base/alloc.h"
#include "support/cupti_case.h"

#include <mtprof/averages.h>
#include <mtprof/export.h>
#include <mtprof/model.h>
#include <mtprof/op.h>

#ifdef __x86_64__

static mtprof_site add_site = MTPROF_SITE_INIT("aten::add", MTPROF_KIND_OP);
static mtprof_site mul_site = MTPROF_SITE_INIT("aten::mul", MTPROF_KIND_OP);

enum {
    WANTS = MTPROF_WANT_DEFAULT | MTPROF_WANT_MODULES
};

/* An op of a module launches a kernel on a stream that captures: it becomes a node. */
static void capture(mtprof_site *site, const char *module, uint64_t number)
{
    static const uint64_t no_stream[8];
    const fake_call call = {.name = "cudaLaunchKernel_v7000", .arguments = no_stream};
    mtprof_op op = {.struct_size = sizeof op,
                    .fields = module != NULL ? MTPROF_OP_MODULE : 0,
                    .module = module != NULL ? mtprof_intern(module, strlen(module)) : 0};
    mtprof_token token = mtprof_op_begin(site, &op);
    uint64_t kept = 0;
    uint32_t id = fake->enter(&call, &kept);
    fake->node(CP_RESOURCE_NODE_CREATED, number, 0);
    fake->leave(&call, id, &kept);
    mtprof_end(token);
}

static void begin_capture(void)
{
    fake->call(&(fake_call){.name = "cudaStreamBeginCapture_v10000"});
    fake->settings->captures = true;
}

static void end_capture(void)
{
    fake->settings->captures = false;
    fake->call(&(fake_call){.name = "cudaStreamEndCapture_v10000"});
}

static void replay(const char *kernel_name, uint64_t number)
{
    fake_work work = kernel(kernel_name, now(), 3);
    work.graph_node = number;
    fake->call(&(fake_call){.name = "cudaGraphLaunch_v10000", .work = work});
}

static const char *text_of(const trace_view *v, const char *work, const char *key)
{
    const tv_record *record = activity(v, work);
    REQUIRE(record != NULL);
    uint64_t id = meta(v, record, key);
    return id != UINT64_MAX ? tv_string(v, id) : NULL;
}

static void check_captured(const trace_view *v, const char *work, const char *op,
                           const char *module)
{
    const char *found = text_of(v, work, "captured op");
    CHECK_EQ_STR(found != NULL ? found : "(none)", op != NULL ? op : "(none)");
    found = text_of(v, work, "captured module");
    CHECK_EQ_STR(found != NULL ? found : "(none)", module != NULL ? module : "(none)");
}

TEST(replayed_work_tells_who_captured_it)
{
    attach();
    mtprof_session *s = tv_start(WANTS);
    begin_capture();
    capture(&add_site, "net.first", 10);
    capture(&mul_site, NULL, 11);
    end_capture();
    fake->node(CP_RESOURCE_NODE_CLONED, 20, 10); /* the graph is instantiated */
    fake->node(CP_RESOURCE_NODE_CLONED, 21, 11);
    fake->node(CP_RESOURCE_NODE_CLONED, 30, 20);    /* and cloned once more */
    fake->node(CP_RESOURCE_NODE_CLONED, 22, 999);   /* of a node that nobody saw */
    mtprof_token outside = mtprof_begin(&mul_site); /* what is open at the replay does not count */
    replay("first", 20);
    replay("second", 21);
    replay("third", 30);
    replay("unknown", 22);
    mtprof_end(outside);
    mtprof_health h = {.struct_size = sizeof h};
    trace_view *v = tv_finish(s, &h);
    check_captured(v, "first", "aten::add", "net.first");
    check_captured(v, "second", "aten::mul", NULL);
    check_captured(v, "third", "aten::add", "net.first");
    check_captured(v, "unknown", NULL, NULL);
    CHECK_EQ_U64(meta(v, activity(v, "first"), "graph node id"), 20);
    CHECK_EQ_U64(activity(v, "first")->r.words[2], tv_span_named(v, "cudaGraphLaunch")->key);
    CHECK_EQ_U64(h.unmatched, 0); /* captured launches are none */
    CHECK_EQ_U64(h.texts_cut, 0);
    CHECK_EQ_U64(get_info().replayed, 4);
    CHECK_EQ_U64(get_info().replayed_unknown, 1);
    tv_free(v);
}

/* As a user sees it: in the model's metadata, and in a Chrome trace. */
TEST(results_show_who_captured)
{
    attach();
    mtprof_session *s = tv_start(WANTS);
    begin_capture();
    capture(&add_site, "net.first", 10);
    end_capture();
    replay("node", 10);
    REQUIRE_OK(mtprof_session_stop(s));
    mtprof_model *model = NULL;
    REQUIRE_OK(mtprof_model_from_session(s, NULL, &model));
    mtprof_column metadata, names;
    REQUIRE_OK(mtprof_model_get_column(model, MTPROF_COLUMN_METADATA, &metadata));
    REQUIRE_OK(mtprof_model_get_column(model, MTPROF_COLUMN_NAME, &names));
    bool op = false, module = false;
    for (uint64_t i = 0; i < names.count; i++) {
        mtprof_metadatum item;
        uint32_t of = ((const uint32_t *)metadata.data)[i];
        for (uint32_t m = 0; of != 0 && mtprof_model_event_metadata(model, of, m, &item); m++) {
            op = op || (strcmp(item.key.bytes, "captured op") == 0 &&
                        strcmp(item.text.bytes, "aten::add") == 0);
            module = module || (strcmp(item.key.bytes, "captured module") == 0 &&
                                strcmp(item.text.bytes, "net.first") == 0);
        }
    }
    CHECK(op && module);
    static char text[1 << 16];
    memory_text written = {text, 0, sizeof text - 1};
    mtprof_output output = {.struct_size = sizeof output, .context = &written, .write = keep_text};
    REQUIRE_OK(mtprof_export_to(model, MTPROF_EXPORT_CHROME, &output, NULL));
    CHECK(strstr(text, "\"captured op\":\"aten::add\"") != NULL);
    CHECK(strstr(text, "\"captured module\":\"net.first\"") != NULL);
    for (int captured = 0; captured < 2; captured++) {
        mtprof_averages_options options = {.struct_size = sizeof options,
                                           .group = captured ? MTPROF_GROUP_CAPTURE : 0};
        mtprof_averages *rows = NULL;
        REQUIRE_OK(mtprof_averages_new(model, &options, &rows));
        uint64_t by_kernel = 0, by_op = 0;
        for (uint32_t i = 0; i < mtprof_averages_count(rows); i++) {
            mtprof_row row = {.struct_size = sizeof row};
            REQUIRE_OK(mtprof_averages_get_row(rows, i, &row));
            by_kernel += strcmp(row.key.bytes, "node") == 0 ? row.count : 0;
            by_op += row.device != 0 && strcmp(row.key.bytes, "aten::add") == 0 ? row.count : 0;
        }
        CHECK_EQ_U64(by_kernel, captured ? 0 : 1);
        CHECK_EQ_U64(by_op, captured ? 1 : 0);
        mtprof_averages_free(rows);
    }
    mtprof_model_free(model);
    mtprof_session_close(s);
}

TEST(copies_and_sets_of_graphs_are_told_as_well)
{
    attach();
    mtprof_session *s = tv_start(WANTS);
    begin_capture();
    capture(&add_site, "net", 10);
    end_capture();
    fake_work copy = {.kind = CP_KIND_MEMCPY, .start = now(), .context = 1, .graph_node = 10};
    fake_work set = {.kind = CP_KIND_MEMSET, .start = now(), .context = 1, .graph_node = 10};
    copy.end = copy.start + 100;
    set.end = set.start + 100;
    fake->call(&(fake_call){.name = "cudaGraphLaunch_v10000", .work = copy});
    fake->call(&(fake_call){.name = "cudaGraphLaunch_v10000", .work = set});
    trace_view *v = tv_finish(s, NULL);
    check_captured(v, "Memcpy Unknown (Unknown -> Unknown)", "aten::add", "net");
    check_captured(v, "Memset (Unknown)", "aten::add", "net");
    tv_free(v);
}

TEST(a_graph_lives_on_in_the_next_recording)
{
    attach();
    mtprof_session *s = tv_start(WANTS);
    begin_capture();
    mtprof_token scope = mtprof_begin_named("made at run time", 16, MTPROF_KIND_SCOPE);
    uint64_t kept = 0;
    const fake_call call = {.name = "cudaLaunchKernel_v7000"};
    uint32_t id = fake->enter(&call, &kept); /* no op: the scope counts */
    fake->node(CP_RESOURCE_NODE_CREATED, 12, 0);
    fake->leave(&call, id, &kept);
    mtprof_end(scope);
    capture(&add_site, "net", 10);
    end_capture();
    tv_free(tv_finish(s, NULL));
    fake->node(CP_RESOURCE_NODE_CREATED, 11, 0); /* nothing records: nobody is told */
    for (int i = 0; i < 3; i++) {
        s = tv_start(WANTS);
        replay("known", 10);
        replay("unknown", 11);
        replay("scope", 12);
        trace_view *v = tv_finish(s, NULL);
        check_captured(v, "known", "aten::add", "net");
        check_captured(v, "unknown", NULL, NULL);
        check_captured(v, "scope", "made at run time", NULL);
        tv_free(v);
    }
}

/* CG2 */
TEST(destroyed_nodes_are_forgotten_with_the_next_recording)
{
    attach();
    mtprof_session *s = tv_start(WANTS);
    begin_capture();
    capture(&add_site, "net", 10);
    capture(&mul_site, "net", 11);
    end_capture();
    replay("late", 10);
    fake->node(CP_RESOURCE_NODE_DESTROY_STARTING, 10, 0); /* before its record is read */
    fake->node(CP_RESOURCE_NODE_DESTROY_STARTING, 999, 0);
    fake->node(CP_RESOURCE_NODE_CREATED, 11, 0); /* the number again, for nobody's node */
    replay("other", 11);
    fake->node(CP_RESOURCE_NODE_CREATED, 0, 0);
    trace_view *v = tv_finish(s, NULL);
    check_captured(v, "late", "aten::add", "net");
    check_captured(v, "other", NULL, NULL);
    tv_free(v);
    s = tv_start(WANTS);
    replay("gone", 10);
    v = tv_finish(s, NULL);
    check_captured(v, "gone", NULL, NULL);
    tv_free(v);
}

/* CG2: the table grows while records of destroyed nodes are still to be read. */
TEST(destroyed_nodes_stay_while_the_table_grows)
{
    enum {
        GRAPHS = 30,
        NODES = 100
    };
    attach();
    mtprof_session *s = tv_start(WANTS);
    for (uint64_t g = 1; g <= GRAPHS; g++) {
        begin_capture();
        for (uint64_t i = 1; i <= NODES; i++) {
            capture(&add_site, "net", g * NODES + i);
        }
        end_capture();
        replay("node", g * NODES + 1);
        for (uint64_t i = 1; i <= NODES; i++) {
            fake->node(CP_RESOURCE_NODE_DESTROY_STARTING, g * NODES + i, 0);
        }
    }
    mtprof_health h = {.struct_size = sizeof h};
    tv_free(tv_finish(s, &h));
    CHECK_EQ_U64(get_info().replayed, GRAPHS);
    CHECK_EQ_U64(get_info().replayed_unknown, 0);
    CHECK_EQ_U64(h.texts_cut, 0);
}

/* CG2: without room the destroyed ones go first. */
TEST(destroyed_nodes_make_room)
{
    enum {
        MANY = 1 << 20
    };
    attach();
    mtprof_session *s = tv_start(WANTS);
    begin_capture();
    capture(&add_site, "net", 1);
    for (uint64_t i = 2; i <= MANY; i++) {
        fake->node(CP_RESOURCE_NODE_CLONED, i, 1);
    }
    for (uint64_t i = 3; i <= MANY; i++) {
        fake->node(CP_RESOURCE_NODE_DESTROY_STARTING, i, 0);
    }
    fake->node(CP_RESOURCE_NODE_CLONED, MANY + 1, 1);
    end_capture();
    replay("kept", 2);
    replay("given up", 3);
    replay("new", MANY + 1);
    trace_view *v = tv_finish(s, NULL);
    check_captured(v, "kept", "aten::add", "net");
    check_captured(v, "given up", NULL, NULL);
    check_captured(v, "new", "aten::add", "net");
    CHECK_EQ_U64(get_info().nodes_lost, 0);
    tv_free(v);
}

TEST(many_nodes_and_what_is_beyond_the_bound)
{
    enum {
        MANY = (1 << 20) + 10
    };
    attach();
    mtprof_session *s = tv_start(WANTS);
    begin_capture();
    capture(&add_site, "net", 1);
    for (uint64_t i = 2; i <= MANY; i++) {
        fake->node(CP_RESOURCE_NODE_CLONED, i, 1);
    }
    fake->node(CP_RESOURCE_NODE_CLONED, 5, 1); /* known already: needs no room */
    end_capture();
    replay("first", 2);
    replay("last", 1 << 20);
    replay("beyond", MANY);
    mtprof_health h = {.struct_size = sizeof h};
    trace_view *v = tv_finish(s, &h);
    check_captured(v, "first", "aten::add", "net");
    check_captured(v, "last", "aten::add", "net");
    check_captured(v, "beyond", NULL, NULL);
    CHECK_EQ_U64(get_info().nodes_lost, 10);
    CHECK_EQ_U64(h.texts_cut, 10);
    tv_free(v);
}

TEST(without_memory_nodes_are_counted)
{
    attach();
    mtprof_session *s = tv_start(WANTS);
    capture(&add_site, "net", 7);
    for (uint64_t i = 100; i < 100 + 600; i++) {
        mtb_fail_nth(i < 600 ? 0 : 1, true);
        fake->node(CP_RESOURCE_NODE_CLONED, i, 7);
    }
    mtb_fail_nth(0, false);
    replay("known", 599);
    trace_view *v = tv_finish(s, NULL);
    check_captured(v, "known", "aten::add", "net");
    CHECK(get_info().nodes_lost > 0);
    tv_free(v);
}

#else

TEST(graphs)
{
    MT_SKIP("libcupti of our own is for x86-64");
}

#endif
