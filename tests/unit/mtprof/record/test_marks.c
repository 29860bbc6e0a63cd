/* SPDX-License-Identifier: Apache-2.0
 *
 * Instants, counters, flows, metadata of events, names of threads: recorded, then read back.
 */
#include "harness/mt_test.h"
#include "support/traces/trace_view.h"

#include <mtprof/clock.h>
#include <mtprof/export.h>
#include <mtprof/model.h>
#include <mtprof/trace.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static mtprof_site scope = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);
static mtprof_site point = MTPROF_SITE_INIT("point", MTPROF_KIND_SCOPE);
static mtprof_site count = MTPROF_SITE_INIT("count", MTPROF_KIND_SCOPE);
static mtprof_site arrow = MTPROF_SITE_INIT("arrow", MTPROF_KIND_SCOPE);

static uint32_t key(const char *text)
{
    return mtprof_intern(text, strlen(text));
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- instants, counters, flows --------------------------------------------------------------- */

TEST(instants_are_points_in_time)
{
    mtprof_session *s = tv_start(0);
    uint64_t before = mtprof_ticks();
    mtprof_instant(&point);
    mtprof_instant_named("odd\0name", 8, MTPROF_KIND_STEP);
    uint64_t after = mtprof_ticks();
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    const tv_record *a = tv_event(v, MTPROF_REC_INSTANT, "point", 0);
    const tv_record *b = tv_nth(v, MTPROF_REC_INSTANT, 1);
    mtprof_text text;
    REQUIRE(a != NULL && b != NULL);
    CHECK(before <= a->r.ticks && a->r.ticks <= b->r.ticks && b->r.ticks <= after);
    REQUIRE(mtprof_reader_string(v->reader, b->r.arg, &text));
    CHECK_EQ_U64(text.length, 8);
    CHECK_EQ_MEM(text.bytes, "odd\0name", 8);
    CHECK_EQ_U64(b->r.aux, MTPROF_KIND_STEP);
    CHECK_EQ_U64(h.others, 2);
    CHECK_EQ_U64(h.begins, 0);
    tv_free(v);
}

/* An instant has no key, so what belongs to it must follow it, also at the end of a chunk. */
TEST(metadata_of_instants_survives_the_ends_of_chunks)
{
    enum {
        ROUNDS = 4000
    };
    static char text[1024];
    memset(text, 't', sizeof text);
    mtprof_session *s = tv_start(0);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2 == 0) {
            mtprof_instant(&point);
        } else {
            mtprof_instant_named("named point", 11, MTPROF_KIND_SCOPE);
        }
        mtprof_meta_int(MTPROF_LATEST_INSTANT, key("i"), i);
        mtprof_meta_text(MTPROF_LATEST_INSTANT, key("text"), text, (size_t)(i * 37 % 1024));
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.others, ROUNDS);
    CHECK_EQ_U64(h.texts_cut, 0);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_META), 2 * ROUNDS);
    tv_free(v);
}

TEST(counters_keep_every_bit_of_their_values)
{
    static const int64_t integers[] = {0, -1, 1, INT64_MIN, INT64_MAX};
    const double reals[] = {0.0, -0.0, 1e300, -1e-310, INFINITY, NAN};
    mtprof_session *s = tv_start(0);
    for (size_t i = 0; i < 5; i++) {
        mtprof_counter(&count, integers[i]);
    }
    for (size_t i = 0; i < 6; i++) {
        mtprof_counter_real(&count, reals[i]);
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.others, 11);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_COUNTER), 11);
    for (size_t i = 0; i < 11; i++) {
        const tv_record *p = tv_event(v, MTPROF_REC_COUNTER, "count", i);
        REQUIRE(p != NULL);
        CHECK_EQ_U64(p->r.aux, i < 5 ? 0 : 1);
        CHECK_EQ_U64(p->r.words[1], i < 5 ? (uint64_t)integers[i] : bits_of(reals[i - 5]));
    }
    tv_free(v);
}

int macro_values_c(void);
int macro_values_cxx(void);

static void check_macro_values(int (*record)(void))
{
    static const int64_t integers[] = {7, -3, 1, INT64_MIN};
    static const double reals[] = {0x1p64, 0.5, 0.25, -1.5}; /* 2^64 - 1 is no int64_t */
    mtprof_session *s = tv_start(0);
    CHECK_EQ_I64(record(), 1); /* a value is evaluated once */
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.begins, 3);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INSTANT), 2);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_COUNTER), 8);
    for (size_t i = 0; i < 8; i++) {
        const tv_record *p = tv_event(v, MTPROF_REC_COUNTER, "value", i);
        REQUIRE(p != NULL);
        CHECK_EQ_U64(p->r.aux, i < 4 ? 0 : 1);
        CHECK_EQ_U64(p->r.words[1], i < 4 ? (uint64_t)integers[i] : bits_of(reals[i - 4]));
    }
    tv_free(v);
}

TEST(the_macros_take_every_number_and_several_fit_on_a_line)
{
    check_macro_values(macro_values_c);
#ifdef MT_HAVE_CXX
    check_macro_values(macro_values_cxx);
#endif
}

TEST(flows_bind_to_the_scope_that_is_open)
{
    mtprof_session *s = tv_start(0);
    mtprof_token a = mtprof_begin(&scope);
    mtprof_flow(&arrow, MTPROF_FLOW_START, UINT64_MAX);
    mtprof_end(a);
    mtprof_token b = mtprof_begin(&scope);
    mtprof_flow(&arrow, MTPROF_FLOW_STEP, UINT64_MAX);
    mtprof_flow(&arrow, MTPROF_FLOW_END, UINT64_MAX);
    mtprof_end(b);
    trace_view *v = tv_finish(s, NULL);
    for (size_t i = 0; i < 3; i++) {
        const tv_record *p = tv_event(v, MTPROF_REC_FLOW, "arrow", i);
        const tv_span *span = tv_span_nth(v, "scope", i == 0 ? 0 : 1);
        REQUIRE(p != NULL && span != NULL);
        CHECK_EQ_U64(p->r.aux, i);
        CHECK_EQ_U64(p->r.words[1], UINT64_MAX);
        CHECK(span->start <= p->r.ticks && p->r.ticks <= span->stop);
        CHECK(span->begin->r.offset < p->r.offset && p->r.offset < span->end->r.offset);
    }
    tv_free(v);
}

TEST(marks_are_absent_when_they_are_not_wanted)
{
    mtprof_session *s = tv_start(MTPROF_WANT_SCOPES);
    mtprof_token a = mtprof_begin(&scope);
    mtprof_instant(&point);
    mtprof_instant_named("x", 1, 0);
    mtprof_counter(&count, 1);
    mtprof_counter_real(&count, 1.0);
    mtprof_flow(&arrow, MTPROF_FLOW_START, 1);
    mtprof_meta_int(MTPROF_LATEST_INSTANT, key("k"), 1); /* there is none */
    mtprof_end(a);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.others, 0);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_INSTANT) + tv_count(v, MTPROF_REC_COUNTER) +
                     tv_count(v, MTPROF_REC_FLOW) + tv_count(v, MTPROF_REC_META),
                 0);
    tv_free(v);
}

/* ---- metadata of events ---------------------------------------------------------------------- */

static void put_all_types(mtprof_token token)
{
    mtprof_meta_int(token, key("int"), INT64_MIN);
    mtprof_meta_real(token, key("real"), -0.0);
    mtprof_meta_bool(token, key("yes"), true);
    mtprof_meta_bool(token, key("no"), false);
    mtprof_meta_text(token, key("text"), "t\0\xFF", 3);
    mtprof_meta_text(token, key("empty"), "", 0);
}

/* The value of a key of an event, as its record. */
static const tv_record *value_of(const trace_view *v, const tv_record *event, const char *name)
{
    const tv_record *p;
    for (size_t i = 0; (p = tv_payload(v, event, MTPROF_REC_META, i)) != NULL; i++) {
        if (strcmp(tv_string(v, p->r.arg), name) == 0) {
            return p;
        }
    }
    return NULL;
}

static void check_value(const trace_view *v, const tv_record *event, const char *name,
                        uint16_t type, uint64_t value)
{
    const tv_record *p = value_of(v, event, name);
    if (p == NULL) {
        FAIL("no value for %s", name);
        return;
    }
    CHECK_EQ_U64(p->r.aux, type);
    CHECK_EQ_U64(p->r.words[0], value);
}

static void check_all_types(const trace_view *v, const tv_record *event)
{
    check_value(v, event, "int", MTPROF_META_INT, (uint64_t)INT64_MIN);
    check_value(v, event, "real", MTPROF_META_REAL, bits_of(-0.0));
    check_value(v, event, "yes", MTPROF_META_BOOL, 1);
    check_value(v, event, "no", MTPROF_META_BOOL, 0);
    check_value(v, event, "text", MTPROF_META_TEXT, 3);
    check_value(v, event, "empty", MTPROF_META_TEXT, 0);
    const tv_record *text = value_of(v, event, "text");
    REQUIRE(text != NULL);
    CHECK_EQ_MEM(text->r.words + 1, "t\0\xFF\0\0\0\0\0", 8);
    CHECK(tv_payload(v, event, MTPROF_REC_META, 6) == NULL);
}

TEST(metadata_of_every_type_right_behind_its_begin)
{
    mtprof_session *s = tv_start(0);
    mtprof_token a = mtprof_begin(&scope);
    put_all_types(a);
    mtprof_end(a);
    trace_view *v = tv_finish(s, NULL);
    const tv_span *span = tv_span_named(v, "scope");
    REQUIRE(span != NULL);
    check_all_types(v, span->begin);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ATTACH), 0);
    tv_free(v);
}

TEST(metadata_that_comes_late_finds_its_scope)
{
    mtprof_session *s = tv_start(0);
    mtprof_token a = mtprof_begin(&scope);
    mtprof_token b = mtprof_begin_named("inner", 5, 0);
    mtprof_end(b);
    put_all_types(a);
    mtprof_meta_int(b, key("after the end"), 5);
    mtprof_end(a);
    trace_view *v = tv_finish(s, NULL);
    const tv_span *outer = tv_span_named(v, "scope"), *inner = tv_span_named(v, "inner");
    REQUIRE(outer != NULL && inner != NULL);
    check_all_types(v, outer->begin);
    check_value(v, inner->begin, "after the end", MTPROF_META_INT, 5);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ATTACH), 2); /* one for each run of payloads */
    tv_free(v);
}

static void *put_elsewhere(void *token)
{
    put_all_types((mtprof_token)(uintptr_t)token);
    return NULL;
}

TEST(metadata_from_another_thread_finds_its_scope)
{
    mtprof_session *s = tv_start(0);
    mtprof_token a = mtprof_begin(&scope);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, put_elsewhere, (void *)(uintptr_t)a) == 0);
    pthread_join(thread, NULL);
    mtprof_end(a);
    trace_view *v = tv_finish(s, NULL);
    const tv_span *span = tv_span_named(v, "scope");
    REQUIRE(span != NULL);
    check_all_types(v, span->begin);
    tv_free(v);
}

TEST(metadata_of_the_latest_instant)
{
    mtprof_session *s = tv_start(0);
    mtprof_instant(&point);
    put_all_types(MTPROF_LATEST_INSTANT);
    mtprof_instant(&point); /* without any */
    mtprof_counter(&count, 1);
    mtprof_meta_int(MTPROF_LATEST_INSTANT, key("too late"), 1);
    trace_view *v = tv_finish(s, NULL);
    const tv_record *first = tv_event(v, MTPROF_REC_INSTANT, "point", 0);
    const tv_record *second = tv_event(v, MTPROF_REC_INSTANT, "point", 1);
    REQUIRE(first != NULL && second != NULL);
    check_all_types(v, first);
    CHECK(tv_payload(v, second, MTPROF_REC_META, 0) == NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_META), 6);
    tv_free(v);
}

TEST(metadata_of_nothing_has_no_effect)
{
    mtprof_session *s = tv_start(0);
    mtprof_instant(&point);
    mtprof_meta_int(0, key("k"), 1); /* a begin that was not recorded */
    mtprof_meta_text(0, key("k"), "x", 1);
    mtprof_token a = mtprof_begin(&scope);
    mtprof_meta_int(a, 0, 1); /* no key */
    mtprof_meta_text(a, key("k"), NULL, 0);
    mtprof_end(a);
    REQUIRE_OK(mtprof_session_pause(s));
    mtprof_meta_int(a, key("k"), 1); /* over */
    REQUIRE_OK(mtprof_session_resume(s, 0));
    mtprof_meta_int(a, key("k"), 1);
    mtprof_meta_int(MTPROF_LATEST_INSTANT, key("k"), 1);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_META), 0);
    tv_free(v);
}

TEST(metadata_survives_the_change_of_chunks)
{
    char text[1024];
    memset(text, 'm', sizeof text);
    mtprof_session *s = tv_start(0);
    for (int i = 0; i < 2000; i++) { /* every position of a chunk's end is met */
        mtprof_token a = mtprof_begin(&scope);
        mtprof_meta_text(a, key("text"), text, (size_t)(i * 37 % 1024));
        mtprof_meta_int(a, key("turn"), i);
        mtprof_end(a);
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(v->n_spans, 2000);
    size_t found = 0;
    for (size_t i = 0; i < v->count; i++) {
        const tv_record *p = &v->records[i];
        if (p->r.kind == MTPROF_REC_META && p->r.aux == MTPROF_META_INT) {
            const tv_span *span = &v->spans[found];
            CHECK_EQ_U64(p->owner_key, span->key);
            CHECK_EQ_U64(p->r.words[0], found);
            found++;
        }
    }
    CHECK_EQ_U64(found, 2000);
    tv_free(v);
}

TEST(a_long_text_is_cut_and_counted)
{
    char text[3000];
    memset(text, 'x', sizeof text);
    mtprof_session *s = tv_start(0);
    mtprof_token a = mtprof_begin(&scope);
    mtprof_meta_text(a, key("long"), text, sizeof text);
    mtprof_meta_text(a, key("just fits"), text, 1024);
    mtprof_end(a);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.texts_cut, 1);
    const tv_span *span = tv_span_named(v, "scope");
    REQUIRE(span != NULL);
    check_value(v, span->begin, "long", MTPROF_META_TEXT, 1024);
    check_value(v, span->begin, "just fits", MTPROF_META_TEXT, 1024);
    tv_free(v);
}

/* ---- strings --------------------------------------------------------------------------------- */

TEST(interned_strings_have_one_id_for_the_whole_process)
{
    uint32_t before = mtprof_intern("once", 4);
    CHECK(before != 0);
    CHECK_EQ_U64(mtprof_intern("once", 4), before);
    CHECK(mtprof_intern("once", 3) != before);
    CHECK(mtprof_intern("o\0ce", 4) != before);
    CHECK_EQ_U64(mtprof_intern(NULL, 3), 0);
    uint32_t empty = mtprof_intern("", 0);
    for (int turn = 0; turn < 2; turn++) { /* also in a second recording, and between them */
        mtprof_session *s = tv_start(0);
        CHECK_EQ_U64(mtprof_intern("once", 4), before);
        trace_view *v = tv_finish(s, NULL);
        CHECK_EQ_STR(tv_string(v, before), "once");
        mtprof_text text;
        CHECK(empty != 0 && mtprof_reader_string(v->reader, empty, &text) && text.length == 0);
        tv_free(v);
    }
}

TEST(a_string_of_more_than_64_kib_is_cut_and_counted)
{
    static char text[(64 << 10) + 10];
    memset(text, 'y', sizeof text);
    mtprof_session *s = tv_start(0);
    uint32_t whole = mtprof_intern(text, 64 << 10);
    CHECK_EQ_U64(mtprof_intern(text, sizeof text), whole);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    mtprof_text found;
    REQUIRE(mtprof_reader_string(v->reader, whole, &found));
    CHECK_EQ_U64(found.length, 64 << 10);
    CHECK_EQ_U64(h.texts_cut, 1);
    tv_free(v);
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct thread_facts {
    const char *name;
    uint64_t os_id, pthread_id;
} thread_facts;

static void *record_named(void *argument)
{
    thread_facts *facts = argument;
    facts->os_id = (uint64_t)syscall(SYS_gettid);
    facts->pthread_id = (uint64_t)pthread_self();
    if (facts->name != NULL) {
        mtprof_name_thread(facts->name);
    }
    mtprof_end(mtprof_begin(&scope));
    return NULL;
}

static const tv_span *span_of_thread(const trace_view *v, uint32_t number)
{
    for (size_t i = 0; i < v->n_spans; i++) {
        if (v->spans[i].begin->r.thread == number) {
            return &v->spans[i];
        }
    }
    return NULL;
}

TEST(a_trace_knows_who_its_threads_are)
{
    thread_facts facts[3] = {{.name = "first worker"}, {.name = NULL}, {.name = "third"}};
    mtprof_session *s = tv_start(0);
    for (size_t i = 0; i < 3; i++) { /* one after the other: they share a slot */
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, record_named, &facts[i]) == 0);
        pthread_join(thread, NULL);
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.threads, 3);
    CHECK_EQ_U64(mtprof_reader_thread_count(v->reader), 3);
    for (uint32_t i = 0; i < 3; i++) {
        mtprof_thread_info info;
        REQUIRE(mtprof_reader_thread(v->reader, i + 1, &info)); /* numbered as they came */
        CHECK_EQ_U64(info.os_id, facts[i].os_id);
        CHECK_EQ_U64(info.pthread_id, facts[i].pthread_id);
        CHECK_EQ_STR(info.name.bytes, facts[i].name != NULL ? facts[i].name : "");
        CHECK(span_of_thread(v, i + 1) != NULL);
    }
    tv_free(v);
}

TEST(a_thread_may_change_its_name_before_during_and_between_recordings)
{
    mtprof_thread_info info;
    mtprof_name_thread("before");
    mtprof_session *s = tv_start(0);
    mtprof_end(mtprof_begin(&scope));
    trace_view *v = tv_session(s);
    REQUIRE(mtprof_reader_thread(v->reader, 1, &info));
    CHECK_EQ_STR(info.name.bytes, "before");
    tv_free(v);
    mtprof_name_thread("during");
    v = tv_finish(s, NULL);
    REQUIRE(mtprof_reader_thread(v->reader, 1, &info));
    CHECK_EQ_STR(info.name.bytes, "during");
    tv_free(v);
    s = tv_start(0);
    mtprof_end(mtprof_begin(&scope));
    mtprof_name_thread(NULL);
    v = tv_finish(s, NULL);
    REQUIRE(mtprof_reader_thread(v->reader, 1, &info));
    CHECK_EQ_U64(info.name.length, 0);
    tv_free(v);
}

/* ---- read through a model -------------------------------------------------------------------- */

/* What the visitor saw, a line a mark. */
typedef struct seen {
    char text[1024];
    int left; /* marks until it gives up; negative: never */
    int64_t last_ns;
} seen;

static int see(void *user, const mtprof_mark *mark)
{
    seen *s = user;
    char *at = s->text + strlen(s->text);
    size_t room = sizeof s->text - (size_t)(at - s->text);
    double real = 0;
    memcpy(&real, &mark->value, sizeof real);
    CHECK_EQ_U64(mark->struct_size, sizeof *mark);
    CHECK(mark->time_ns >= s->last_ns);
    s->last_ns = mark->time_ns;
    if (mark->kind == MTPROF_EVENT_KIND_COUNTER && mark->phase == 1) {
        (void)snprintf(at, room, "%s %g\n", mark->name.bytes, real);
    } else if (mark->kind == MTPROF_EVENT_KIND_INSTANT) {
        (void)snprintf(at, room, "%s %u %s\n", mark->name.bytes, mark->n_metadata,
                       mark->n_metadata > 0 ? mark->metadata[0].key.bytes : "");
    } else {
        (void)snprintf(at, room, "%s %u %lld %s\n", mark->name.bytes, mark->phase,
                       (long long)mark->value, mark->parent != 0 ? "inside" : "outside");
    }
    return s->left-- == 0;
}

static mtprof_model *marked_model(void)
{
    mtprof_session *session = tv_start(0);
    mtprof_model *model = NULL;
    mtprof_counter(&count, -3);
    mtprof_counter_real(&count, 0.5);
    mtprof_token token = mtprof_begin(&scope);
    mtprof_flow(&arrow, MTPROF_FLOW_START, 7);
    mtprof_instant(&point);
    mtprof_meta_int(MTPROF_LATEST_INSTANT, key("rows"), 8);
    mtprof_end(token);
    mtprof_flow(&arrow, MTPROF_FLOW_END, 7);
    REQUIRE_OK(mtprof_session_stop(session));
    REQUIRE_OK(mtprof_model_from_session(session, NULL, &model));
    mtprof_session_close(session);
    return model;
}

TEST(a_model_tells_marks_in_order)
{
    mtprof_model *model = marked_model();
    seen s = {.left = -1};
    REQUIRE_OK(mtprof_model_visit_marks(model, see, &s));
    CHECK_EQ_STR(s.text, "count 0 -3 outside\ncount 0.5\narrow 0 7 inside\npoint 1 rows\n"
                         "arrow 2 7 outside\n");
    seen two = {.left = 1};
    CHECK_EQ_I64(mtprof_model_visit_marks(model, see, &two), MTPROF_ECALLBACK);
    CHECK_EQ_STR(two.text, "count 0 -3 outside\ncount 0.5\n");
    mtprof_model_free(model);
}

static int give_up(void *user, const char *what, uint64_t done, uint64_t total)
{
    (void)what;
    (void)done;
    (void)total;
    return *(int *)user;
}

TEST(reading_marks_can_be_interrupted)
{
    mtprof_session *session = tv_start(0);
    int stop = 0;
    mtprof_model *model = NULL;
    mtprof_model_options options = {
        .struct_size = sizeof options, .progress = give_up, .user = &stop};
    for (int i = 0; i < 100000; i++) {
        mtprof_counter(&count, i);
    }
    REQUIRE_OK(mtprof_session_stop(session));
    REQUIRE_OK(mtprof_model_from_session(session, &options, &model));
    mtprof_session_close(session);
    seen s = {.left = -1};
    REQUIRE_OK(mtprof_model_visit_marks(model, see, &s));
    stop = 1;
    seen again = {.left = -1};
    CHECK_EQ_I64(mtprof_model_visit_marks(model, see, &again), MTPROF_ECALLBACK);
    mtprof_model_free(model);
}

typedef struct csv_text {
    char text[4096];
    size_t length;
} csv_text;

static int keep_csv(void *context, const void *bytes, size_t length)
{
    csv_text *csv = context;
    REQUIRE(csv->length + length < sizeof csv->text);
    memcpy(csv->text + csv->length, bytes, length);
    csv->length += length;
    csv->text[csv->length] = '\0';
    return 0;
}

TEST(csv_has_marks_and_metadata)
{
    mtprof_model *model = marked_model();
    csv_text csv = {.length = 0};
    mtprof_output output = {.struct_size = sizeof output, .context = &csv, .write = keep_csv};
    mtprof_export_report report = {.struct_size = sizeof report};
    mtprof_export_options options = {.struct_size = sizeof options, .report = &report};
    REQUIRE_OK(mtprof_export_to(model, MTPROF_EXPORT_CSV, &output, &options));
    CHECK(strstr(csv.text, ",value,phase,metadata\r\n") != NULL);
    CHECK(strstr(csv.text, ",count,counter,CPU,") != NULL);
    CHECK(strstr(csv.text, ",-3,,\r\n") != NULL);
    CHECK(strstr(csv.text, ",0.5,,\r\n") != NULL);
    CHECK(strstr(csv.text, ",7,start,\r\n") != NULL);
    CHECK(strstr(csv.text, ",7,end,\r\n") != NULL);
    CHECK(strstr(csv.text, ",,,\"{\"\"rows\"\": 8}\"\r\n") != NULL);
    CHECK_EQ_U64(report.events, 1);
    mtprof_model_free(model);
}
