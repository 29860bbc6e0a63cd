/* SPDX-License-Identifier: Apache-2.0
 *
 * The collector of ITT, called as the part of ITT in a program calls it. torch's own is tried in
 * tests/peers/host/torch_host_tiers.py.
 */
#include "harness/mt_test.h"
#include "sources/itt/itt_abi.h"
#include "support/traces/trace_view.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

void __itt_api_init(itt_global *global, int groups);

typedef struct program {
    itt_string_handle *(*string)(const char *text);
    itt_domain *(*domain)(const char *name);
    void (*begin)(const itt_domain *domain, itt_id task, itt_id parent, itt_string_handle *name);
    void (*end)(const itt_domain *domain);
    void (*mark)(const itt_domain *domain, itt_id id, const itt_string_handle *name, int scope);
    void (*name_thread)(const char *name);
    void (*unknown)(void);
} program;

static const itt_id none = {0, 0, 0};
static program itt;

static void nothing(void)
{
}

static void attach(void)
{
    void *null_function;
    void (*pointer)(void) = nothing;
    memcpy(&null_function, &pointer, sizeof null_function);
    itt_api_info functions[] = {
        {"__itt_string_handle_create", (void **)&itt.string, NULL, null_function, 0},
        {"__itt_domain_create", (void **)&itt.domain, NULL, null_function, 0},
        {"__itt_task_begin", (void **)&itt.begin, NULL, null_function, 0},
        {"__itt_task_end", (void **)&itt.end, NULL, null_function, 0},
        {"__itt_marker", (void **)&itt.mark, NULL, null_function, 0},
        {"__itt_thread_set_name", (void **)&itt.name_thread, NULL, null_function, 0},
        {"__itt_frame_begin_v3", (void **)&itt.unknown, NULL, null_function, 0},
        {NULL, NULL, NULL, NULL, 0}};
    itt_global global = {.functions = functions};
    __itt_api_init(&global, 0);
    __itt_api_init(&global, 0); /* JT1 */
    CHECK(itt.unknown == nothing);
    __itt_api_init(&(itt_global){.functions = NULL}, 0);
}

TEST(tasks_are_scopes_and_those_of_torch_are_ops)
{
    attach();
    itt_domain *mine = itt.domain("mine");
    itt_domain *torch = itt.domain("PyTorch");
    itt_string_handle *outer = itt.string("outer");
    itt_string_handle *add = itt.string("aten::add");
    CHECK(mine->flags != 0 && itt.domain("mine") == mine && mine != torch);
    CHECK(itt.string("outer") == outer && outer != add);
    CHECK_EQ_STR(add->text, "aten::add");
    itt.begin(mine, none, none, outer); /* nothing records yet */
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_SCOPES | MTPROF_WANT_MARKS);
    itt.begin(mine, none, none, outer);
    itt.begin(torch, none, none, add);
    itt.mark(mine, none, itt.string("here"), 1);
    itt.end(torch);
    itt.end(mine);
    itt.end(mine); /* of the first one */
    itt.end(mine); /* of none */
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 2);
    const tv_span *scope = tv_span_named(v, "outer");
    const tv_span *op = tv_span_named(v, "aten::add");
    REQUIRE(scope != NULL && op != NULL && scope->end != NULL && op->end != NULL);
    CHECK_EQ_STR(tv_parent_name(v, op), "outer");
    CHECK_EQ_U64(scope->begin->r.aux & MTPROF_KIND_MASK, MTPROF_KIND_SCOPE);
    CHECK_EQ_U64(op->begin->r.aux & MTPROF_KIND_MASK, MTPROF_KIND_OP);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INSTANT), 1);
    tv_free(v);
}

/* JT3, and names that another part of ITT made. */
TEST(odd_programs_keep_their_nesting)
{
    attach();
    itt_string_handle foreign = {.text = "foreign"};
    itt_string_handle *deep = itt.string("deep");
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES);
    itt.begin(NULL, none, none, &foreign);
    for (int i = 0; i < 3000; i++) {
        itt.begin(NULL, none, none, i < 2000 ? deep : NULL);
    }
    for (int i = 0; i < 3000; i++) {
        itt.end(NULL);
    }
    itt.end(NULL);
    itt.begin(NULL, none, none, NULL);
    itt.end(NULL);
    itt.mark(NULL, none, NULL, 0);
    itt.name_thread(NULL);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, 1024 + 1);
    CHECK_EQ_U64(h.texts_cut, 3000 + 1 - 1024);
    REQUIRE(tv_span_named(v, "foreign") != NULL && tv_span_named(v, "task") != NULL);
    CHECK(tv_span_named(v, "foreign")->end != NULL);
    tv_free(v);
}

enum {
    THREADS = 4,
    TASKS = 500
};

static void *many_tasks(void *number)
{
    char text[32];
    itt.name_thread("worker of ITT");
    for (int i = 0; i < TASKS; i++) {
        snprintf(text, sizeof text, "task %d", i % 50 + (int)(uintptr_t)number % 2);
        itt.begin(NULL, none, none, itt.string(text));
        itt.end(NULL);
    }
    return NULL;
}

TEST(threads_have_tasks_of_their_own)
{
    attach();
    pthread_t threads[THREADS];
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES);
    for (uintptr_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, many_tasks, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, THREADS * TASKS);
    CHECK_EQ_U64(h.lost, 0);
    tv_free(v);
}
