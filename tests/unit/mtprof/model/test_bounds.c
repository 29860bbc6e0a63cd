/* SPDX-License-Identifier: Apache-2.0
 *
 * Bounds (docs/bounds.md): what does not fit is left out, and counted where a user looks.
 */
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "unit/mtprof/export/text_sink.h"

#include <mtprof/export.h>
#include <mtprof/mtprof.h>
#include <mtprof/op.h>

#include <stdlib.h>
#include <string.h>

static mtprof_site site = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);

static mtprof_session *start(uint32_t wants)
{
    mtprof_config config = {.struct_size = sizeof config, .wants = MTPROF_WANT_OPS | wants};
    mtprof_session *session = NULL;
    REQUIRE_EQ_I64(mtprof_session_start(&config, &session), MTPROF_OK);
    return session;
}

static mtprof_model *stop(mtprof_session *session)
{
    mtprof_model *model = NULL;
    REQUIRE_EQ_I64(mtprof_session_stop(session), MTPROF_OK);
    REQUIRE_EQ_I64(mtprof_model_from_session(session, NULL, &model), MTPROF_OK);
    return model;
}

static uint64_t cut_of(mtprof_session *session)
{
    mtprof_health health = {.struct_size = sizeof health};
    REQUIRE_EQ_I64(mtprof_session_get_health(session, &health), MTPROF_OK);
    return health.texts_cut;
}

static uint64_t left_out_of(mtprof_model *model)
{
    mtprof_model_findings findings = {.struct_size = sizeof findings};
    REQUIRE_EQ_I64(mtprof_model_get_findings(model, &findings), MTPROF_OK);
    return findings.left_out;
}

/* What an export says that it left out. */
static uint64_t exported(mtprof_model *model, enum mtprof_export_format format)
{
    text_sink sink = {0};
    mtprof_output output = {
        .struct_size = sizeof output, .context = &sink, .write = text_sink_write};
    mtprof_export_report report = {.struct_size = sizeof report};
    mtprof_export_options options = {.struct_size = sizeof options, .report = &report};
    REQUIRE_EQ_I64(mtprof_export_to(model, format, &output, &options), MTPROF_OK);
    free(sink.text);
    return report.left_out + report.folded;
}

/* ---- recording ------------------------------------------------------------------------------- */

TEST(a_host_counts_what_it_cut)
{
    mtprof_count_cut(5); /* nothing records */
    mtprof_session *session = start(0);
    mtprof_count_cut(2);
    mtprof_model *model = stop(session);
    CHECK_EQ_U64(cut_of(session), 2);
    mtprof_health health = {.struct_size = sizeof health};
    REQUIRE_EQ_I64(mtprof_model_get_health(model, &health), MTPROF_OK);
    CHECK_EQ_U64(health.texts_cut, 2);
    mtprof_model_free(model);
    mtprof_session_close(session);
}

TEST(lists_nested_too_deep_are_counted)
{
    enum {
        DEPTH = 20
    };
    mtprof_value lists[DEPTH] = {{0}};
    for (size_t i = 0; i < DEPTH; i++) {
        lists[i].kind = MTPROF_INPUT_LIST;
        lists[i].type = i + 1 < DEPTH;
        lists[i].of.items = &lists[i + 1 < DEPTH ? i + 1 : i];
    }
    mtprof_op op = {.struct_size = sizeof op, .inputs = lists, .n_inputs = 1};
    mtprof_session *session = start(MTPROF_WANT_INPUTS);
    mtprof_end(mtprof_op_begin(&site, &op));
    mtprof_session_stop(session);
    CHECK_EQ_U64(cut_of(session), 1);
    mtprof_session_close(session);
}

/* A million nodes (256 in the hostile build) and no more. */
TEST(stack_nodes_beyond_the_bound_are_counted)
{
    mtprof_session *session = start(MTPROF_WANT_STACKS);
    uint32_t frame = mtprof_define_frame("f", 1, "f.py", 4, 1);
    uint32_t node = 0;
    uint32_t n = 0;
    for (uint32_t next; (next = mtprof_stack_push(node, frame)) != 0; n++) {
        node = next;
        REQUIRE(n <= 1 << 20);
    }
    CHECK(n == 1 << 20 || n == 256);
    CHECK_EQ_U64(cut_of(session), 1);
    const uint32_t list[2] = {frame, mtprof_define_frame("g", 1, "g.py", 4, 1)};
    CHECK(mtprof_stack(list, 2) != 0); /* the outer part */
    CHECK_EQ_U64(cut_of(session), 2);
    mtprof_session_stop(session);
    mtprof_session_close(session);
}

static __attribute__((noinline)) mtprof_token recurse(uint32_t depth)
{
    mtprof_op op = {.struct_size = sizeof op};
    mtprof_token token = depth == 0 ? mtprof_op_begin(&site, &op) : recurse(depth - 1);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return token;
}

TEST(native_stacks_beyond_the_bound_are_counted)
{
    mtprof_session *session = start(MTPROF_WANT_STACKS | MTPROF_WANT_NATIVE_STACKS);
    mtprof_end(recurse(10));
    CHECK_EQ_U64(cut_of(session), 0);
    mtprof_end(recurse(300));
    CHECK_EQ_U64(cut_of(session), 1);
    mtprof_session_stop(session);
    mtprof_session_close(session);
}

/* ---- stacks that are read -------------------------------------------------------------------- */

static void record_deep(uint32_t depth)
{
    uint32_t node = 0;
    uint32_t frame = mtprof_define_frame("f", 1, "f.py", 4, 1);
    for (uint32_t i = 0; i < depth; i++) {
        node = mtprof_stack_push(node, frame);
    }
    mtprof_op op = {.struct_size = sizeof op, .stack = node};
    mtprof_token token = mtprof_op_begin(&site, &op);
    for (volatile int i = 0; i < 20000; i++) { /* only events with a duration have stacks */
    }
    mtprof_end(token);
}

TEST(frames_beyond_1024_are_counted)
{
    static const enum mtprof_export_format formats[] = {MTPROF_EXPORT_STACKS, MTPROF_EXPORT_FOLDED,
                                                        MTPROF_EXPORT_CSV, MTPROF_EXPORT_CHROME,
                                                        MTPROF_EXPORT_PERFETTO};
    for (uint32_t depth = 1024; depth <= 1025; depth++) {
        mtprof_session *session = start(MTPROF_WANT_STACKS);
        record_deep(depth);
        if (cut_of(session) > 0) { /* the hostile build has fewer nodes */
            mtprof_session_close(session);
            return;
        }
        mtprof_model *model = stop(session);
        CHECK_EQ_U64(left_out_of(model), depth - 1024);
        for (size_t i = 0; i < MT_COUNT(formats); i++) {
            if (!CHECK_EQ_U64(exported(model, formats[i]), depth - 1024)) {
                FAIL("%s", mtprof_export_name(formats[i]));
            }
        }
        mtprof_model_free(model);
        mtprof_session_close(session);
    }
}

/* ---- tables of exports ----------------------------------------------------------------------- */

static void record_op(uint64_t sequence, uint32_t forward_thread, uint32_t module)
{
    mtprof_op op = {.struct_size = sizeof op,
                    .fields = MTPROF_OP_SEQUENCE | MTPROF_OP_MODULE,
                    .sequence = sequence,
                    .module = module};
    if (forward_thread != 0) {
        op.fields |= MTPROF_OP_FORWARD_THREAD | MTPROF_OP_RECORD_SCOPE;
        op.forward_thread = forward_thread;
        op.record_scope = 1;
    }
    mtprof_end(mtprof_op_begin(&site, &op));
}

/* Numbers so far apart that no table of the largest size has a place for each. */
TEST(forward_ops_that_gave_way_are_counted)
{
    const uint64_t far = 1 << 18;
    uint32_t module = mtprof_intern("M", 1);
    for (uint64_t between = 1; between <= far; between *= far) {
        mtprof_session *session = start(MTPROF_WANT_MODULES | MTPROF_WANT_DETAILS);
        record_op(5, 0, module);
        uint32_t thread = mtprof_thread_number(); /* it has one since its first event */
        record_op(5 + between, 0, module);
        record_op(5 + between, thread, 0);
        record_op(5 + between + 1, 0, module);
        record_op(5 + far, 0, module);
        record_op(5, thread, 0);
        mtprof_model *model = stop(session);
        /* An arrow and a module, both of the one that gave way. */
        CHECK_EQ_U64(exported(model, MTPROF_EXPORT_CHROME), 2);
        mtprof_model_free(model);
        mtprof_session_close(session);
    }
}

TEST(paths_of_flame_graphs_that_did_not_fit_are_counted)
{
    enum {
        LENGTH = 1000,
        NAMES = (256 << 20) / LENGTH + 500
    };
    char name[LENGTH];
    mtprof_session *session = start(MTPROF_WANT_SCOPES);
    memset(name, 'x', sizeof name);
    for (uint32_t i = 0; i < (mt_test_long() ? NAMES : 10); i++) {
        memcpy(name, &i, sizeof i);
        mtprof_end(mtprof_begin_named(name, sizeof name, MTPROF_KIND_SCOPE));
    }
    mtprof_model *model = stop(session);
    CHECK((exported(model, MTPROF_EXPORT_FOLDED) > 0) == mt_test_long());
    mtprof_model_free(model);
    mtprof_session_close(session);
}
