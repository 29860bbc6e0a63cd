/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution traces, recorded live and exported. tests/export/execution_check.py reads whole files
 * with another JSON reader; here are the values, byte by byte, and what goes wrong.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "text_sink.h"

#include <mtprof/export.h>
#include <mtprof/mtprof.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WANTS = MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS | MTPROF_WANT_TENSORS | MTPROF_WANT_STRIDES |
            MTPROF_WANT_DETAILS
};

static mtprof_session *start(uint64_t wants)
{
    mtprof_config config = {.struct_size = sizeof config, .wants = wants};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    return session;
}

static mtprof_model *finish(mtprof_session *session)
{
    mtprof_model *model = NULL;
    REQUIRE_OK(mtprof_session_stop(session));
    REQUIRE_OK(mtprof_model_from_session(session, NULL, &model));
    CHECK_OK(mtprof_session_close(session));
    return model;
}

static char *export_text(mtprof_model *model)
{
    mtprof_status status;
    char *text = text_export(model, MTPROF_EXPORT_EXECUTION, NULL, &status);
    REQUIRE_OK(status);
    return text;
}

/* The node with this name, up to and with the end of its attributes. */
static char *node_named(const char *text, const char *name)
{
    char wanted[128];
    snprintf(wanted, sizeof wanted, "\"name\":\"%s\",\"ctrl_deps\"", name);
    const char *at = strstr(text, wanted);
    REQUIRE(at != NULL);
    const char *end = strstr(at, "}]\n");
    REQUIRE(end != NULL);
    while (*at != '{') {
        at--;
    }
    char *node = strndup(at, (size_t)(end + 2 - at));
    REQUIRE(node != NULL);
    return node;
}

static long long number_behind(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    long long value = -1;
    REQUIRE(at != NULL);
    CHECK(sscanf(at + strlen(key), "%lld", &value) == 1);
    return value;
}

static long long attr(const char *node, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"name\":\"%s\",\"type\":\"%s\",\"value\":", name,
             strcmp(name, "seq_id") == 0 ? "int64" : "uint64");
    return number_behind(node, key);
}

static mtprof_site add_site = MTPROF_SITE_INIT("aten::add", MTPROF_KIND_OP);

/* The op of torch's own example (torch-contract 6.4.3): two tensors and a number. */
static void record_add(void)
{
    const int64_t sizes[2] = {4, 4};
    const int64_t strides[2] = {4, 1};
    mtprof_value tensor = {.kind = MTPROF_INPUT_TENSOR,
                           .n_dims = 2,
                           .type = mtprof_intern("float", 5),
                           .of.sizes = sizes,
                           .strides = strides};
    mtprof_value inputs[] = {tensor, tensor, {.kind = MTPROF_INPUT_INT, .of.integer = 1}};
    mtprof_tensor_ref ins[] = {{.tensor = 5, .storage = 6}, {.tensor = 5, .storage = 6}};
    mtprof_tensor_ref out = {.tensor = 7, .storage = 8, .offset = 3};
    mtprof_op op = {.struct_size = sizeof op,
                    .fields = MTPROF_OP_SEQUENCE | MTPROF_OP_OVERLOAD | MTPROF_OP_RECORD_SCOPE,
                    .inputs = inputs,
                    .n_inputs = 3,
                    .tensors = ins,
                    .n_tensors = 2,
                    .sequence = 6,
                    .overload = mtprof_intern("Tensor", 6)};
    mtprof_token token = mtprof_op_begin(&add_site, &op);
    mtprof_op_outputs(token, &out, 1);
    mtprof_end(token);
}

TEST(torchs_example)
{
    mtprof_session *session = start(WANTS);
    mtprof_token step = mtprof_begin_named("ProfilerStep#1", 14, MTPROF_KIND_STEP);
    record_add();
    mtprof_end(step);
    mtprof_model *model = finish(session);
    char *text = export_text(model);
    CHECK(strncmp(text, "{\n  \"schema\":\"1.1.1-chakra.0.0.4\",\"pid\":", 40) == 0);
    /* Thread, op, step, process, in this order, numbered as they began. */
    char *add = node_named(text, "aten::add");
    char *annotation = node_named(text, "ProfilerStep#1");
    char *thread = node_named(text, "[pytorch|profiler|execution_trace|thread]");
    char *process = node_named(text, "[pytorch|profiler|execution_trace|process]");
    const char *const nodes[] = {process, thread, annotation, add};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ_I64(number_behind(nodes[i], "\"id\":"), i + 1);
        CHECK_EQ_I64(number_behind(nodes[i], "\"ctrl_deps\":"), i == 0 ? 1 : i);
        CHECK_EQ_I64(attr(nodes[i], "scope"), i == 3 ? 0 : 7);
        CHECK_EQ_I64(attr(nodes[i], "seq_id"), i == 3 ? 6 : -1);
        CHECK_EQ_I64(attr(nodes[i], "tid"), i == 0 ? 0 : 1);
    }
    CHECK_EQ_I64(attr(thread, "rf_id"), 0);
    CHECK(attr(annotation, "rf_id") > 0);
    CHECK_EQ_I64(attr(add, "rf_id"), attr(annotation, "rf_id") + 1);
    CHECK(strstr(add, "\"inputs\":{\"values\":[[5,6,0,16,4,\"cpu\"],[5,6,0,16,4,\"cpu\"],1],"
                      "\"shapes\":[[4,4],[4,4],[]],"
                      "\"types\":[\"Tensor(float)\",\"Tensor(float)\",\"Int\"],"
                      "\"strides\":[[4,1],[4,1],[]]},\n") != NULL);
    CHECK(strstr(add, "\"outputs\":{\"values\":[[7,8,3,0,0,\"cpu\"]],\"shapes\":[[]],"
                      "\"types\":[\"Tensor\"],\"strides\":[[]]},\n") != NULL);
    CHECK(strstr(add, "\"op_schema\",\"type\":\"string\",\"value\":\"aten::add.Tensor\"") != NULL);
    CHECK(strstr(annotation, "\"inputs\":{\"values\":[],\"shapes\":[],\"types\":[],"
                             "\"strides\":[]},\n") != NULL);
    CHECK(strstr(text, "\n  ],\n  \"finish_ts\":") != NULL);
    CHECK_EQ_STR(text + strlen(text) - 2, "\n}");
    free(add);
    free(annotation);
    free(thread);
    free(process);
    free(text);
    mtprof_model_free(model);
}

TEST(every_kind_of_value)
{
    mtprof_session *session = start(WANTS);
    const int64_t sizes[1] = {3};
    mtprof_value half = {.kind = MTPROF_INPUT_TENSOR,
                         .n_dims = 1,
                         .type = mtprof_intern("c10::Half", 9),
                         .of.sizes = sizes};
    mtprof_value pair[] = {half, half};
    mtprof_value numbers[] = {{.kind = MTPROF_INPUT_INT, .of.integer = -2},
                              {.kind = MTPROF_INPUT_REAL, .of.real = 0.5}};
    mtprof_value inputs[] = {
        {.kind = MTPROF_INPUT_LIST, .type = 2, .of.items = pair},
        {.kind = MTPROF_INPUT_LIST, .type = 2, .of.items = numbers},
        {.kind = MTPROF_INPUT_LIST, .type = 0, .of.items = numbers},
        {.kind = MTPROF_INPUT_NONE},
        {.kind = MTPROF_INPUT_BOOL, .of.integer = 1},
        {.kind = MTPROF_INPUT_STRING, .of.text = mtprof_intern("a\"<", 3)},
        {.kind = MTPROF_INPUT_REAL, .of.real = __builtin_nan("")},
        {.kind = MTPROF_INPUT_REAL, .of.real = -__builtin_inf()},
        {.kind = MTPROF_INPUT_KEYWORD, .type = mtprof_intern("alpha", 5)},
        {.kind = MTPROF_INPUT_INT, .of.integer = 9},
    };
    mtprof_op op = {
        .struct_size = sizeof op, .inputs = inputs, .n_inputs = sizeof inputs / sizeof inputs[0]};
    mtprof_end(mtprof_op_begin(&add_site, &op));
    mtprof_model *model = finish(session);
    char *text = export_text(model);
    char *add = node_named(text, "aten::add");
    CHECK(strstr(add,
                 "\"values\":[[[0,0,0,3,2,\"cpu\"],[0,0,0,3,2,\"cpu\"]],[-2,0.5],[],\"<None>\","
                 "true,\"a\\\"<\",\"nan\",\"-inf\",9],"
                 "\"shapes\":[[[3],[3]],[[],[]],[],[],[],[],[],[],[]],"
                 "\"types\":[\"GenericList[Tensor(c10::Half),Tensor(c10::Half)]\","
                 "\"GenericList[Int,Double]\",\"GenericList[]\",\"None\",\"Bool\",\"String\","
                 "\"Double\",\"Double\",\"Int\"],"
                 "\"strides\":[[[],[]],[[],[]],[],[],[],[],[],[],[]]}") != NULL);
    free(add);
    free(text);
    mtprof_model_free(model);
}

static mtprof_token shared_parent;

static void *worker(void *argument)
{
    static mtprof_site site = MTPROF_SITE_INIT("worker", MTPROF_KIND_SCOPE);
    (void)argument;
    mtprof_token outer = mtprof_begin_under(&site, shared_parent);
    mtprof_op op = {.struct_size = sizeof op,
                    .fields =
                        MTPROF_OP_SEQUENCE | MTPROF_OP_FORWARD_THREAD | MTPROF_OP_RECORD_SCOPE,
                    .sequence = 4,
                    .forward_thread = 1,
                    .record_scope = 1};
    static mtprof_site backward = MTPROF_SITE_INIT("AddBackward0", MTPROF_KIND_OP);
    mtprof_end(mtprof_op_begin(&backward, &op));
    mtprof_end(outer);
    return NULL;
}

/* Runtime calls are no nodes; a parent on another thread is; the forward thread's open node too. */
TEST(parents_are_found_where_they_are)
{
    mtprof_session *session = start(WANTS);
    shared_parent = mtprof_begin_named("outer", 5, MTPROF_KIND_SCOPE);
    {
        MTPROF_SCOPE_FLAGS("cudaLaunchKernel", MTPROF_KIND_RUNTIME);
        MTPROF_SCOPE_FLAGS("python", MTPROF_KIND_FUNCTION);
        MTPROF_OP("inside");
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, worker, NULL) == 0);
        pthread_join(thread, NULL);
    }
    mtprof_end(shared_parent);
    mtprof_model *model = finish(session);
    char *text = export_text(model);
    char *outer = node_named(text, "outer");
    char *inside = node_named(text, "inside");
    char *work = node_named(text, "worker");
    char *backward = node_named(text, "AddBackward0");
    long long id = number_behind(outer, "\"id\":");
    CHECK_EQ_I64(number_behind(inside, "\"ctrl_deps\":"), id);
    CHECK_EQ_I64(number_behind(work, "\"ctrl_deps\":"), id);
    CHECK_EQ_I64(number_behind(backward, "\"ctrl_deps\":"), number_behind(work, "\"id\":"));
    CHECK_EQ_I64(attr(backward, "tid"), 2);
    CHECK_EQ_I64(attr(backward, "fw_tid"), 1);
    CHECK_EQ_I64(attr(backward, "scope"), 1);
    CHECK_EQ_I64(attr(backward, "fw_parent"), number_behind(inside, "\"id\":"));
    CHECK_EQ_I64(attr(inside, "fw_parent"), 0);
    CHECK(strstr(text, "cudaLaunchKernel") == NULL);
    CHECK(strstr(text, "python") == NULL);
    free(outer);
    free(inside);
    free(work);
    free(backward);
    free(text);
    mtprof_model_free(model);
}

TEST(an_empty_trace_has_its_process)
{
    mtprof_model *model = finish(start(WANTS));
    char *text = export_text(model);
    char *process = node_named(text, "[pytorch|profiler|execution_trace|process]");
    CHECK_EQ_I64(number_behind(process, "\"id\":"), 1);
    free(process);
    free(text);
    mtprof_model_free(model);
}

TEST(every_refused_request_is_told)
{
    mtprof_session *session = start(WANTS);
    for (int i = 0; i < 3; i++) {
        MTPROF_SCOPE("outer");
        record_add();
    }
    mtprof_model *model = finish(session);
    free(export_text(model));
    mtprof_status status = MTPROF_ENOMEM;
    uint64_t refused = 0;
    for (uint64_t nth = 1; status != MTPROF_OK; nth++) {
        mtb_fail_nth(nth, false);
        free(text_export(model, MTPROF_EXPORT_EXECUTION, NULL, &status));
        mtb_fail_nth(0, false);
        CHECK(status == MTPROF_OK || status == MTPROF_ENOMEM);
        refused += status != MTPROF_OK;
    }
    CHECK(refused > 2);
    mtprof_model_free(model);
}
