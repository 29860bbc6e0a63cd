/* SPDX-License-Identifier: Apache-2.0
 *
 * The collector of NVTX, called through tables as those that NVTX has in a program. Programs that
 * were compiled with NVIDIA's headers are tried in tests/cli/test_run_program.py.
 */
#include "harness/mt_test.h"
#include "sources/collect/collect.h"
#include "sources/nvtx/nvtx_abi.h"
#include "support/traces/trace_view.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int InitializeInjectionNvtx2(nvtx_get_table *get_table);

enum {
    MOST = 16
};

/* What NVTX has in a program: places for functions, and tables of pointers to them. */
static nvtx_function core_places[MOST], core2_places[MOST], name_places[MOST];
static nvtx_function *core[MOST], *core2[MOST], *cudart[MOST];
static unsigned core_size;

static int get_module(int module, nvtx_function ***table, unsigned *size)
{
    *table = module == NVTX_MODULE_CORE     ? core
             : module == NVTX_MODULE_CORE2  ? core2
             : module == NVTX_MODULE_CUDART ? cudart
                                            : NULL;
    *size = module == NVTX_MODULE_CORE    ? core_size
            : module == NVTX_MODULE_CORE2 ? NVTX_CORE2_COUNT
                                          : NVTX_CUDART_COUNT;
    return *table != NULL;
}

static nvtx_callbacks callbacks = {sizeof callbacks, get_module};

static const void *get_table(uint32_t table)
{
    return table == NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

static const void *get_nothing(uint32_t table)
{
    (void)table;
    return NULL;
}

static void attach(unsigned size_of_core)
{
    core_size = size_of_core;
    for (unsigned i = 1; i < MOST; i++) {
        core[i] = &core_places[i];
        core2[i] = &core2_places[i];
        cudart[i] = i == 2 ? NULL : &name_places[i]; /* a place that a program left out */
    }
    CHECK_EQ_I64(InitializeInjectionNvtx2(get_table), 1);
    CHECK_EQ_I64(InitializeInjectionNvtx2(get_table), 1); /* NX1 */
}

#define CORE(number, type)  ((type)core_places[number])
#define CORE2(number, type) ((type)core2_places[number])

static int push(const char *text)
{
    return CORE(NVTX_CORE_RANGE_PUSH_A, int (*)(const char *))(text);
}

static int pop(void)
{
    return CORE(NVTX_CORE_RANGE_POP, int (*)(void))();
}

static void *domain(const char *name)
{
    return CORE2(NVTX_CORE2_DOMAIN_CREATE_A, void *(*)(const char *))(name);
}

static int push_in(void *in, const nvtx_event *event)
{
    return CORE2(NVTX_CORE2_RANGE_PUSH_EX, int (*)(void *, const nvtx_event *))(in, event);
}

static int pop_in(void *in)
{
    return CORE2(NVTX_CORE2_RANGE_POP, int (*)(void *))(in);
}

static uint64_t start(const char *text)
{
    return CORE(NVTX_CORE_RANGE_START_A, uint64_t(*)(const char *))(text);
}

static void end(uint64_t id)
{
    CORE(NVTX_CORE_RANGE_END, void (*)(uint64_t))(id);
}

static nvtx_event event_of(const char *text)
{
    return (nvtx_event){.version = 3,
                        .size = sizeof(nvtx_event),
                        .message_type = NVTX_TEXT_ASCII,
                        .message.ascii = text};
}

TEST(pushes_are_scopes_and_levels_are_counted_per_domain)
{
    attach(NVTX_CORE_COUNT);
    void *mine = domain("mine");
    nvtx_event inner = event_of("inner");
    CHECK(mine != NULL && domain("mine") == mine && domain("other") != mine);
    CHECK_EQ_I64(pop(), NVTX_NO_TRACKING);
    CHECK_EQ_I64(push("before"), 0); /* nothing records yet */
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES | MTPROF_WANT_MARKS);
    CHECK_EQ_I64(push("outer"), 1);
    CHECK_EQ_I64(push_in(mine, &inner), 0);
    CHECK_EQ_I64(push_in(mine, NULL), 1);
    CHECK_EQ_I64(pop(), 1); /* "outer", out of order: domains do not nest in each other */
    CHECK_EQ_I64(pop_in(mine), 1);
    CHECK_EQ_I64(pop_in(mine), 0);
    CHECK_EQ_I64(pop_in(mine), NVTX_NO_TRACKING);
    CHECK_EQ_I64(pop(), 0);
    CHECK_EQ_I64(pop(), NVTX_NO_TRACKING);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, 3);
    CHECK_EQ_U64(h.truncated, 0);
    const tv_span *span = tv_span_named(v, "inner");
    REQUIRE(span != NULL && tv_span_named(v, "outer") != NULL);
    CHECK(tv_span_named(v, "outer")->stop < span->stop);
    CHECK_EQ_STR(tv_parent_name(v, span), "outer");
    const tv_record *meta = tv_payload(v, span->begin, MTPROF_REC_META, 0);
    REQUIRE(meta != NULL);
    CHECK(tv_payload(v, tv_span_named(v, "outer")->begin, MTPROF_REC_META, 0) == NULL);
    tv_free(v);
}

TEST(messages_may_have_any_form)
{
    attach(NVTX_CORE_COUNT);
    static wchar_t wide_long[300];
    for (size_t i = 0; i < 299; i++) {
        wide_long[i] = 0x20AC; /* three bytes each: more than fits on the stack's buffer */
    }
    nvtx_event wide = event_of(NULL), registered = event_of(NULL), none = event_of(NULL);
    wide.message_type = NVTX_TEXT_UNICODE;
    wide.message.unicode = L"h\u00e9 \U0001F600";
    registered.message_type = NVTX_TEXT_REGISTERED;
    registered.message.registered = CORE2(NVTX_CORE2_REGISTER_STRING_W,
                                          const void *(*)(void *, const wchar_t *))(NULL, L"kept");
    CHECK(registered.message.registered ==
          CORE2(NVTX_CORE2_REGISTER_STRING_A, const void *(*)(void *, const char *))(NULL, "kept"));
    none.message_type = 77;
    nvtx_event small = event_of("not read");
    small.size = 24; /* of a program whose struct ends before the payload */
    small.payload_type = NVTX_VALUE_S64;
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES | MTPROF_WANT_MARKS);
    const nvtx_event *events[] = {&wide, &registered, &none, &small};
    for (size_t i = 0; i < 4; i++) {
        push_in(NULL, events[i]);
        pop_in(NULL);
    }
    CORE(NVTX_CORE_RANGE_PUSH_W, int (*)(const wchar_t *))(wide_long);
    pop();
    CORE(NVTX_CORE_RANGE_PUSH_W, int (*)(const wchar_t *))(L"\xD800");
    pop();
    push(NULL);
    pop();
    CORE(NVTX_CORE_MARK_W, void (*)(const wchar_t *))(L"mark");
    CORE(NVTX_CORE_MARK_EX, void (*)(const nvtx_event *))(&registered);
    CORE(NVTX_CORE_MARK_A, void (*)(const char *))("plain");
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 7);
    CHECK(tv_span_named(v, "h\u00e9 \U0001F600") != NULL);
    CHECK(tv_span_named(v, "kept") != NULL && tv_span_named(v, "\uFFFD") != NULL);
    REQUIRE(v->n_spans == 7);
    CHECK_EQ_U64(strlen(v->spans[4].name), 897);
    CHECK(tv_span_nth(v, "", 2) != NULL);
    CHECK(tv_event(v, MTPROF_REC_INSTANT, "mark", 0) != NULL);
    CHECK(tv_event(v, MTPROF_REC_INSTANT, "kept", 0) != NULL);
    CHECK(tv_event(v, MTPROF_REC_INSTANT, "plain", 0) != NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_META), 0);
    tv_free(v);
}

TEST(categories_and_payloads_are_metadata)
{
    attach(NVTX_CORE_COUNT);
    void *mine = domain("shop");
    CORE2(NVTX_CORE2_NAME_CATEGORY_A, void (*)(void *, uint32_t, const char *))(mine, 5, "first");
    CORE2(NVTX_CORE2_NAME_CATEGORY_W, void (*)(void *, uint32_t, const wchar_t *))
    (mine, 5, L"second");
    nvtx_event event = event_of("event");
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES);
    static const struct {
        int32_t type;
        nvtx_value value;
    } payloads[] = {{NVTX_VALUE_U64, {.u64 = 7}},         {NVTX_VALUE_U64, {.u64 = UINT64_MAX}},
                    {NVTX_VALUE_S64, {.s64 = -7}},        {NVTX_VALUE_U32, {.u32 = UINT32_MAX}},
                    {NVTX_VALUE_S32, {.s32 = -3}},        {NVTX_VALUE_DOUBLE, {.real64 = 0.5}},
                    {NVTX_VALUE_FLOAT, {.real32 = 0.25f}}};
    size_t n = sizeof payloads / sizeof *payloads;
    for (size_t i = 0; i < n; i++) {
        event.payload_type = payloads[i].type;
        event.payload = payloads[i].value;
        push_in(NULL, &event);
        pop_in(NULL);
    }
    event.payload_type = NVTX_VALUE_NONE;
    event.category = 5;
    push_in(mine, &event);
    pop_in(mine);
    event.category = 6;
    push_in(NULL, &event);
    pop_in(NULL);
    event.payload_type = 0xDFBD0009; /* of an extension */
    push_in(NULL, &event);
    pop_in(NULL);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, n + 3);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_META), n + 2 + 1 + 1);
    CHECK_EQ_U64(h.texts_cut, 1);
    bool has_second = false;
    for (size_t i = 0; i < v->count; i++) { /* the newest name of the category counts */
        const mtprof_record *r = &v->records[i].r;
        for (uint32_t w = 0; r->kind == MTPROF_REC_META && w < r->n_words; w++) {
            has_second = has_second || memcmp(&r->words[w], "second", 6) == 0;
        }
    }
    CHECK(has_second);
    tv_free(v);
}

static void *end_them(void *ids)
{
    end(((uint64_t *)ids)[1]);
    end(((uint64_t *)ids)[0]);
    return NULL;
}

TEST(ranges_end_on_any_thread_in_any_order)
{
    attach(NVTX_CORE_COUNT);
    CHECK_EQ_U64(start("before"), 0);
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES);
    uint64_t ids[] = {start("first"), start("second")};
    void *mine = domain("mine");
    nvtx_event event = event_of("third");
    uint64_t third =
        CORE2(NVTX_CORE2_RANGE_START_EX, uint64_t(*)(void *, const nvtx_event *))(mine, &event);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, end_them, ids) == 0);
    pthread_join(thread, NULL);
    CORE2(NVTX_CORE2_RANGE_END, void (*)(void *, uint64_t))(mine, third);
    end(0);
    end(12345); /* of none */
    end(UINT64_MAX);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, 3);
    for (size_t i = 0; i < v->n_spans; i++) {
        CHECK(v->spans[i].end != NULL);
        CHECK_EQ_U64(v->spans[i].begin->r.aux & MTPROF_FLAG_ASYNC, MTPROF_FLAG_ASYNC);
    }
    CHECK_EQ_U64(h.truncated, 0);
    tv_free(v);
}

static pthread_barrier_t named;

static void *report_something(void *id)
{
    *(uint32_t *)id = (uint32_t)gettid();
    pthread_barrier_wait(&named);
    pthread_barrier_wait(&named);
    push("named");
    pop();
    return NULL;
}

TEST(names_of_threads_are_kept_and_those_of_resources_counted)
{
    attach(NVTX_CORE_COUNT);
    void (*name)(uint32_t, const char *) =
        CORE(NVTX_CORE_NAME_OS_THREAD_A, void (*)(uint32_t, const char *));
    CHECK(name_places[2] == NULL && name_places[1] != NULL && name_places[7] == NULL);
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES);
    name((uint32_t)gettid(), "main of NVTX");
    CORE(NVTX_CORE_NAME_OS_THREAD_W, void (*)(uint32_t, const wchar_t *))(7, L"seven");
    name(0, NULL);
    ((void (*)(void *, const char *))name_places[3])(NULL, "a stream");
    CHECK(CORE2(NVTX_CORE2_RESOURCE_CREATE, void *(*)(void *, const void *))(NULL, NULL) == NULL);
    CORE2(NVTX_CORE2_RESOURCE_DESTROY, void (*)(void *))(NULL);
    CORE2(NVTX_CORE2_DOMAIN_DESTROY, void (*)(void *))(domain("mine"));
    CORE2(NVTX_CORE2_INITIALIZE, void (*)(const void *))(NULL);
    uint32_t id;
    pthread_t thread;
    REQUIRE(pthread_barrier_init(&named, NULL, 2) == 0);
    REQUIRE(pthread_create(&thread, NULL, report_something, &id) == 0);
    pthread_barrier_wait(&named);
    name(id, "an old name");
    name(id, "named by another");
    pthread_barrier_wait(&named);
    pthread_join(thread, NULL);
    for (uint32_t i = 0; i < 300; i++) { /* of threads that never come */
        name(0x40000000u + i, "nobody");
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.texts_cut, 2 + 300 - 255);
    const tv_span *span = tv_span_named(v, "named");
    REQUIRE(span != NULL);
    mtprof_thread_info info;
    REQUIRE(mtprof_reader_thread(v->reader, span->begin->r.thread, &info));
    CHECK_EQ_STR(info.name.bytes, "named by another");
    tv_free(v);
}

TEST(deep_nesting_is_cut_and_stays_paired)
{
    attach(NVTX_CORE_COUNT);
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES);
    for (int i = 0; i < 3000; i++) {
        push("deep");
    }
    for (int i = 0; i < 3000; i++) {
        CHECK(pop() >= 0);
    }
    CHECK_EQ_I64(pop(), NVTX_NO_TRACKING);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, COLLECT_MOST_DEPTH);
    CHECK_EQ_U64(h.texts_cut, 3000 - COLLECT_MOST_DEPTH);
    CHECK_EQ_U64(h.truncated, 0);
    tv_free(v);
}

TEST(odd_programs_are_refused_or_served_in_part)
{
    CHECK_EQ_I64(InitializeInjectionNvtx2(NULL), 0);
    CHECK_EQ_I64(InitializeInjectionNvtx2(get_nothing), 0);
    callbacks.struct_size = 8;
    CHECK_EQ_I64(InitializeInjectionNvtx2(get_table), 0);
    callbacks.struct_size = sizeof callbacks;
    memset(core_places, 0, sizeof core_places);
    attach(NVTX_CORE_RANGE_POP); /* an older program's table is shorter */
    CHECK(core_places[NVTX_CORE_RANGE_PUSH_A] != NULL && core_places[NVTX_CORE_RANGE_POP] == NULL);
}

enum {
    THREADS = 4,
    RANGES = 500
};

static void *many_ranges(void *unused)
{
    (void)unused;
    char text[32];
    void *mine = domain("threads");
    for (int i = 0; i < RANGES; i++) {
        snprintf(text, sizeof text, "range %d", i % 50);
        nvtx_event event = event_of(text);
        event.category = (uint32_t)i % 7 + 1;
        CORE2(NVTX_CORE2_NAME_CATEGORY_A, void (*)(void *, uint32_t, const char *))
        (mine, event.category, text);
        push_in(mine, &event);
        end(start(text));
        pop_in(mine);
    }
    return NULL;
}

TEST(threads_report_at_once)
{
    attach(NVTX_CORE_COUNT);
    pthread_t threads[THREADS];
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES);
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, many_ranges, NULL) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, THREADS * RANGES * 2);
    CHECK_EQ_U64(h.lost, 0);
    tv_free(v);
}
