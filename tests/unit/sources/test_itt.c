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
    void (*begin_function)(const itt_domain *domain, itt_id task, itt_id parent, void *function);
    void *(*counter)(const char *name, const char *domain);
    void *(*counter_typed)(const char *name, const char *domain, int type);
    void (*add)(void *counter, uint64_t delta);
    void (*decrement)(void *counter);
    void (*set)(void *counter, const void *value);
    void (*add_v3)(const itt_domain *domain, const itt_string_handle *name, uint64_t delta);
    void (*destroy)(void *counter);
    void (*frame_begin)(const itt_domain *domain, const itt_id *id);
    void (*frame_end)(const itt_domain *domain, const itt_id *id);
    void (*frame_submit)(const itt_domain *domain, const itt_id *id, uint64_t from, uint64_t to);
    uint64_t (*timestamp)(void);
    void (*begin_overlapped)(const itt_domain *domain, itt_id task, itt_id parent,
                             const itt_string_handle *name);
    void (*end_overlapped)(const itt_domain *domain, itt_id task);
    int (*event)(const char *name, int length);
    int (*event_start)(int event);
    int (*event_end)(int event);
    void (*metadata)(const itt_domain *domain, itt_id id, const itt_string_handle *key, int type,
                     size_t count, const void *data);
    void (*metadata_text)(const itt_domain *domain, itt_id id, const itt_string_handle *key,
                          const char *text, size_t length);
    void (*pause)(void);
    void (*resume)(void);
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
        {"__itt_sync_create", (void **)&itt.unknown, NULL, null_function, 0},
        {"__itt_task_begin_fn", (void **)&itt.begin_function, NULL, null_function, 0},
        {"__itt_counter_create", (void **)&itt.counter, NULL, null_function, 0},
        {"__itt_counter_create_typed", (void **)&itt.counter_typed, NULL, null_function, 0},
        {"__itt_counter_inc_delta", (void **)&itt.add, NULL, null_function, 0},
        {"__itt_counter_dec", (void **)&itt.decrement, NULL, null_function, 0},
        {"__itt_counter_set_value", (void **)&itt.set, NULL, null_function, 0},
        {"__itt_counter_inc_delta_v3", (void **)&itt.add_v3, NULL, null_function, 0},
        {"__itt_counter_destroy", (void **)&itt.destroy, NULL, null_function, 0},
        {"__itt_frame_begin_v3", (void **)&itt.frame_begin, NULL, null_function, 0},
        {"__itt_frame_end_v3", (void **)&itt.frame_end, NULL, null_function, 0},
        {"__itt_frame_submit_v3", (void **)&itt.frame_submit, NULL, null_function, 0},
        {"__itt_get_timestamp", (void **)&itt.timestamp, NULL, null_function, 0},
        {"__itt_task_begin_overlapped", (void **)&itt.begin_overlapped, NULL, null_function, 0},
        {"__itt_task_end_overlapped", (void **)&itt.end_overlapped, NULL, null_function, 0},
        {"__itt_event_create", (void **)&itt.event, NULL, null_function, 0},
        {"__itt_event_start", (void **)&itt.event_start, NULL, null_function, 0},
        {"__itt_event_end", (void **)&itt.event_end, NULL, null_function, 0},
        {"__itt_metadata_add", (void **)&itt.metadata, NULL, null_function, 0},
        {"__itt_metadata_str_add", (void **)&itt.metadata_text, NULL, null_function, 0},
        {"__itt_pause", (void **)&itt.pause, NULL, null_function, 0},
        {"__itt_resume", (void **)&itt.resume, NULL, null_function, 0},
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

/* JT4: what the part of ITT in the program has made itself. */
TEST(handles_and_domains_of_the_program_are_known)
{
    attach();
    itt_domain torch = {.flags = 1, .name = "PyTorch"};
    itt_domain mine = {.flags = 1, .name = "mine"};
    itt_string_handle add = {.text = "aten::add"}, nothing_said = {0};
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_SCOPES);
    for (int i = 0; i < 2; i++) {
        itt.begin(&torch, none, none, &add);
        itt.end(&torch);
        itt.begin(&mine, none, none, &add);
        itt.end(&mine);
    }
    itt.begin(&mine, none, none, &nothing_said);
    itt.end(&mine);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 5);
    CHECK(add.extra2 != NULL && itt.string("aten::add")->extra2 == add.extra2);
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ_U64(tv_span_nth(v, "aten::add", i)->begin->r.aux & MTPROF_KIND_MASK,
                     i % 2 == 0 ? MTPROF_KIND_OP : MTPROF_KIND_SCOPE);
    }
    CHECK(tv_span_named(v, "task") != NULL);
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

static void check_values(const trace_view *v, const char *name, const int64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const tv_record *record = tv_event(v, MTPROF_REC_COUNTER, name, i);
        REQUIRE(record != NULL);
        CHECK_EQ_I64((int64_t)record->r.words[record->r.n_words - 1], values[i]);
    }
    CHECK(tv_event(v, MTPROF_REC_COUNTER, name, n) == NULL);
}

TEST(counters_keep_their_sums)
{
    attach();
    void *queue = itt.counter("queue", "mine");
    void *level = itt.counter_typed("level", "mine", ITT_DOUBLE);
    void *small = itt.counter_typed("small", NULL, ITT_S16);
    void *odd = itt.counter_typed(NULL, NULL, 77);
    CHECK(queue != NULL && level != NULL && small != NULL && odd != NULL);
    CHECK(itt.counter("queue", "mine") == queue && itt.counter("queue", "other") != queue);
    itt.add(queue, 10); /* nothing records yet: it counts all the same */
    mtprof_session *s = tv_start(MTPROF_WANT_MARKS);
    itt.add(queue, 5);
    itt.decrement(queue);
    itt.set(queue, &(uint64_t){3});
    itt.add(queue, 1);
    itt.set(level, &(double){0.5});
    itt.set(small, &(int16_t){-7});
    itt.set(small, NULL);
    itt.set(NULL, &(double){0.5});
    itt.add(NULL, 1);
    itt.add_v3(itt.domain("mine"), itt.string("queue"), 2);
    itt.destroy(queue);
    trace_view *v = tv_finish(s, NULL);
    check_values(v, "queue", (int64_t[]){15, 14, 3, 4, 6}, 5);
    check_values(v, "small", (int64_t[]){-7}, 1);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_COUNTER), 7);
    tv_free(v);
}

static void *end_frames(void *domain)
{
    itt.frame_end(domain, &(itt_id){1, 2, 3});
    itt.frame_end(domain, NULL);
    return NULL;
}

TEST(frames_and_overlapped_tasks_are_asynchronous)
{
    attach();
    itt_domain *frames = itt.domain("frames");
    itt_domain *mine = itt.domain("mine");
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES | MTPROF_WANT_MARKS);
    itt.frame_begin(frames, NULL);
    itt.frame_begin(frames, &(itt_id){1, 2, 3});
    itt.begin_overlapped(mine, (itt_id){1, 2, 3}, none, itt.string("load"));
    itt.begin_overlapped(mine, (itt_id){4, 0, 0}, none, itt.string("save"));
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, end_frames, frames) == 0);
    pthread_join(thread, NULL);
    itt.frame_end(frames, NULL); /* of none */
    itt.end_overlapped(mine, (itt_id){1, 2, 3});
    itt.begin_overlapped(mine, (itt_id){4, 0, 0}, none, itt.string("save")); /* ends the first */
    itt.end_overlapped(mine, (itt_id){4, 0, 0});
    itt.end_overlapped(NULL, none);
    uint64_t now = itt.timestamp();
    itt.frame_submit(frames, NULL, now - 1000, now);
    itt.frame_submit(NULL, NULL, now, ITT_NO_TIMESTAMP);
    itt.frame_submit(NULL, NULL, now, now - 1);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, 5);
    CHECK_EQ_U64(h.truncated, 0);
    for (size_t i = 0; i < v->n_spans; i++) {
        CHECK(v->spans[i].end != NULL);
        CHECK_EQ_U64(v->spans[i].begin->r.aux & MTPROF_FLAG_ASYNC, MTPROF_FLAG_ASYNC);
    }
    CHECK(tv_span_nth(v, "frames", 1) != NULL && tv_span_nth(v, "save", 1) != NULL);
    const tv_record *frame = tv_event(v, MTPROF_REC_INSTANT, "frames", 0);
    REQUIRE(frame != NULL && tv_payload(v, frame, MTPROF_REC_META, 0) != NULL);
    CHECK_EQ_U64(tv_payload(v, frame, MTPROF_REC_META, 0)->r.words[0], 1000);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INSTANT), 3);
    tv_free(v);
}

TEST(events_are_of_their_thread)
{
    attach();
    int load = itt.event("load and more", 4);
    CHECK(load >= 0 && itt.event("load", 4) == load && itt.event(NULL, 0) != load);
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES);
    CHECK_EQ_I64(itt.event_start(load), 0);
    CHECK_EQ_I64(itt.event_start(load), 0);
    itt.event_end(load);
    itt.event_end(load);
    CHECK_EQ_I64(itt.event_start(-1), -1);
    CHECK_EQ_I64(itt.event_start(1000), -1);
    itt.event_end(-1);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, 2);
    CHECK_EQ_U64(h.truncated, 0);
    CHECK(tv_span_nth(v, "load", 1) != NULL);
    tv_free(v);
}

TEST(metadata_and_domains_are_noted)
{
    attach();
    itt_domain *mine = itt.domain("mine");
    itt_string_handle *key = itt.string("key");
    itt_id id = {9, 9, 9};
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES);
    itt.metadata(mine, none, key, ITT_S32, 1, &(int32_t){1}); /* of nothing */
    itt.begin(mine, none, none, itt.string("task"));
    itt.metadata(mine, none, key, ITT_S32, 1, &(int32_t){-5});
    itt.metadata(mine, none, key, ITT_FLOAT, 3, (float[]){1, 2.5f, 3});
    itt.metadata(mine, none, key, 77, 1, &(int32_t){1});
    itt.metadata(mine, none, key, ITT_S32, 0, NULL);
    itt.metadata(mine, none, key, ITT_U16, 1000, (uint16_t[1000]){65535});
    itt.metadata_text(mine, none, key, "text and more", 4);
    itt.metadata_text(mine, none, NULL, "all of it", 0);
    itt.metadata_text(mine, none, key, NULL, 5);
    itt.begin_overlapped(mine, id, none, itt.string("other"));
    itt.metadata(mine, id, key, ITT_U64, 1, &(uint64_t){UINT64_MAX});
    itt.end_overlapped(mine, id);
    itt.end(mine);
    itt.begin_function(mine, none, none, NULL);
    itt.end(mine);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.texts_cut, 3);
    const tv_span *task = tv_span_named(v, "task");
    const tv_span *other = tv_span_named(v, "other");
    REQUIRE(task != NULL && other != NULL);
    const tv_record *domain = tv_payload(v, task->begin, MTPROF_REC_META, 0);
    const tv_record *number = tv_payload(v, task->begin, MTPROF_REC_META, 1);
    REQUIRE(domain != NULL && number != NULL);
    CHECK_EQ_STR(tv_string(v, domain->r.arg), "domain");
    CHECK_EQ_I64((int64_t)number->r.words[0], -5);
    CHECK(tv_payload(v, task->begin, MTPROF_REC_META, 5) != NULL);
    CHECK(tv_payload(v, task->begin, MTPROF_REC_META, 6) == NULL);
    CHECK(tv_payload(v, other->begin, MTPROF_REC_META, 1) != NULL);
    CHECK_EQ_U64(v->n_spans, 3);
    tv_free(v);
}

TEST(a_pause_leaves_out_and_keeps_the_nesting)
{
    attach();
    itt_domain *mine = itt.domain("mine");
    void *counter = itt.counter("counter", "mine");
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES | MTPROF_WANT_MARKS);
    itt.begin(mine, none, none, itt.string("outer"));
    itt.begin(mine, none, none, itt.string("inner"));
    itt.pause();
    itt.end(mine); /* "inner" */
    itt.begin(mine, none, none, itt.string("left out"));
    itt.mark(mine, none, itt.string("left out"), 0);
    itt.frame_begin(mine, NULL);
    itt.add(counter, 1);
    itt.resume();
    itt.end(mine); /* "left out" */
    itt.frame_end(mine, NULL);
    itt.add(counter, 1);
    itt.end(mine); /* "outer" */
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, 2);
    CHECK_EQ_U64(h.truncated, 0);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INSTANT), 0);
    check_values(v, "counter", (int64_t[]){2}, 1);
    REQUIRE(tv_span_named(v, "outer") != NULL && tv_span_named(v, "inner") != NULL);
    CHECK(tv_span_named(v, "inner")->stop < tv_span_named(v, "outer")->stop);
    tv_free(v);
}
