/* SPDX-License-Identifier: Apache-2.0
 *
 * Strings of the process and of a recording: who keeps what, where, and how much of it (RC2 to RC5
 * of recording.h, ST6 of store.h).
 */
#include "harness/mt_test.h"
#include "mtprof/record/recording.h"
#include "support/traces/trace_view.h"

#include <mtprof/op.h>
#include <mtprof/trace.h>

#include <stdio.h>
#include <string.h>

static mtprof_site scope = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);

static mtprof_session *start(uint32_t policy, uint64_t bytes)
{
    mtprof_config config = {.struct_size = sizeof config, .policy = policy, .buffer_bytes = bytes};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    return session;
}

static size_t print_text(char *text, size_t size, const char *stem, uint64_t number)
{
    return (size_t)snprintf(text, size, "%s %llu", stem, (unsigned long long)number);
}

/* Whether the trace defines a string that begins so. */
static bool defines(const trace_view *v, const char *stem)
{
    for (size_t i = 0; tv_nth(v, MTPROF_REC_DEF_STRING, i) != NULL; i++) {
        const char *text = tv_string(v, tv_nth(v, MTPROF_REC_DEF_STRING, i)->r.arg);
        if (strncmp(text, stem, strlen(stem)) == 0) {
            return true;
        }
    }
    return false;
}

TEST(a_recording_s_strings_end_with_it)
{
    CHECK_EQ_U64(mtprof_intern_here("key", 3), 0); /* nothing records */
    mtprof_session *s = tv_start(0);
    uint32_t key = mtprof_intern_here("passing key", 11);
    CHECK(key != 0);
    CHECK_EQ_U64(mtprof_intern_here("passing key", 11), key);
    CHECK(mtprof_intern_here("passing ke", 10) != key);
    CHECK_EQ_U64(mtprof_intern_here(NULL, 3), 0);
    mtprof_token token = mtprof_begin(&scope);
    mtprof_meta_int(token, key, 7);
    mtprof_meta_text(token, key, "text", 4);
    mtprof_end(token);
    trace_view *v = tv_finish(s, NULL);
    const tv_span *span = tv_span_named(v, "scope");
    REQUIRE(span != NULL);
    const tv_record *meta = tv_payload(v, span->begin, MTPROF_REC_META, 0);
    REQUIRE(meta != NULL);
    CHECK_EQ_STR(tv_string(v, meta->r.arg), "passing key");
    CHECK(tv_payload(v, span->begin, MTPROF_REC_META, 1) != NULL);
    tv_free(v);

    s = tv_start(0);
    token = mtprof_begin(&scope);
    uint32_t other = mtprof_intern_here("another key", 11); /* has the number of the first */
    CHECK(other != 0 && other != key);
    mtprof_meta_int(token, key, 8); /* of the recording before: names nothing (RC5) */
    mtprof_meta_text(token, key, "text", 4);
    mtprof_meta_int(token, other, 9);
    mtprof_end(token);
    v = tv_finish(s, NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_META), 1);
    CHECK(defines(v, "another key"));
    CHECK(!defines(v, "passing key"));
    tv_free(v);
}

TEST(what_does_not_fit_is_counted)
{
    char text[64];
    mtprof_health h;
    mtprof_session *s = tv_start(0);
    for (uint64_t i = 0; i < MTPROF__BOUND; i++) {
        CHECK(mtprof_intern_here(text, print_text(text, sizeof text, "bounded", i)) != 0);
    }
    CHECK_EQ_U64(mtprof_intern_here("one more", 8), 0);
    mtprof_counter_named("one more", 8, 1);
    mtprof_end(mtprof_begin_named("a name has a bound of its own", 29, 0));
    CHECK(mtprof_intern_here("bounded 0", 9) != 0);
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.texts_cut, 1);
    CHECK_EQ_U64(h.lost, 1);
    CHECK_EQ_U64(h.others, 0);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_NAME), 0);
    tv_free(v);
}

TEST(marks_have_names_of_the_recording)
{
    mtprof_health h;
    mtprof_counter_named("nobody", 6, 1);
    mtprof_session *s = tv_start(0);
    mtprof_counter_named("whole", 5, -3);
    mtprof_counter_real_named("part", 4, 0.5);
    mtprof_flow_named("arrow", 5, MTPROF_FLOW_END, 9);
    mtprof_meta_int(MTPROF_LATEST_INSTANT, mtprof_intern("k", 1), 1); /* these have none */
    mtprof_counter_named(NULL, 0, 1);
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.others, 3);
    const tv_record *whole = tv_event(v, MTPROF_REC_COUNTER, "whole", 0);
    const tv_record *part = tv_event(v, MTPROF_REC_COUNTER, "part", 0);
    const tv_record *arrow = tv_event(v, MTPROF_REC_FLOW, "arrow", 0);
    REQUIRE(whole != NULL && part != NULL && arrow != NULL);
    CHECK_EQ_U64(whole->r.words[1], (uint64_t)-3);
    CHECK_EQ_U64(part->r.aux, 1);
    CHECK_EQ_U64(arrow->r.aux, MTPROF_FLOW_END);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_META), 0);
    tv_free(v);
}

TEST(a_scope_with_a_name_of_the_recording_has_payloads)
{
    mtprof_value values[] = {{.kind = MTPROF_INPUT_INT, .of.integer = 5}};
    mtprof_op op = {.struct_size = sizeof op, .inputs = values, .n_inputs = 1};
    mtprof_health h;
    CHECK_EQ_U64(mtprof_op_begin_named("nobody", 6, MTPROF_KIND_SCOPE, &op), 0);
    mtprof_session *s = tv_start(MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS);
    mtprof_end(mtprof_op_begin_named("with inputs", 11, MTPROF_KIND_SCOPE, &op));
    mtprof_end(mtprof_op_begin_named("without", 7, MTPROF_KIND_SCOPE, NULL));
    CHECK_EQ_U64(mtprof_op_begin_named(NULL, 0, MTPROF_KIND_SCOPE, &op), 0);
    op.struct_size = offsetof(mtprof_op, inputs); /* of an older program */
    mtprof_end(mtprof_op_begin_named("shorter", 7, MTPROF_KIND_SCOPE, &op));
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.begins, 3);
    const tv_span *span = tv_span_named(v, "with inputs");
    REQUIRE(span != NULL && tv_span_named(v, "without") != NULL);
    const tv_record *scalars = tv_payload(v, span->begin, MTPROF_REC_SCALARS, 0);
    REQUIRE(scalars != NULL);
    CHECK_EQ_U64(scalars->r.words[0], 5);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_SCALARS), 1);
    tv_free(v);
}

TEST(names_of_threads_are_the_recordings)
{
    char longer[400];
    mtprof_health h;
    memset(longer, 'n', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    mtprof_name_thread("a name that goes");
    mtprof_session *s = tv_start(0);
    mtprof_end(mtprof_begin(&scope));
    trace_view *v = tv_finish(s, &h);
    CHECK(defines(v, "a name that goes"));
    tv_free(v);
    mtprof_name_thread(NULL);
    s = tv_start(0);
    mtprof_end(mtprof_begin(&scope));
    mtprof_name_thread(longer);
    v = tv_finish(s, &h);
    CHECK(!defines(v, "a name that goes"));
    CHECK(defines(v, "nnnnnnnn"));
    CHECK_EQ_U64(h.texts_cut, 1);
    mtprof_name_thread(NULL);
    tv_free(v);
}

/* Far more strings of the process than the buffer has bytes, and one that no chunk of it holds. */
TEST(a_small_buffer_starts_whatever_was_named_before)
{
    enum {
        STRINGS = 20000,
        SMALL = 64 << 10,
        ROUNDS = 500 /* policy stop: the chunk after that is larger than what is left */
    };
    static char large[40000];
    char text[64];
    memset(large, 'l', sizeof large);
    for (uint64_t i = 0; i < STRINGS; i++) {
        REQUIRE(mtprof_intern(text, print_text(text, sizeof text, "of the process", i)) != 0);
    }
    REQUIRE(mtprof_intern(large, sizeof large) != 0);
    static const uint32_t policies[] = {MTPROF_POLICY_RING, MTPROF_POLICY_STOP};
    for (int i = 0; i < 2; i++) {
        mtprof_session *s = start(policies[i], SMALL);
        for (int j = 0; j < ROUNDS; j++) {
            mtprof_end(mtprof_begin(&scope));
        }
        mtprof_health h;
        trace_view *v = tv_finish(s, &h);
        CHECK_EQ_U64(h.lost, 0);
        CHECK_EQ_U64(h.begins, ROUNDS);
        CHECK_EQ_U64(h.evicted, 0); /* the events have all of the buffer */
        CHECK_EQ_U64(v->n_spans, ROUNDS);
        CHECK(defines(v, "of the process 19999"));
        tv_free(v);
    }
}

/* Names that are all different: they must not crowd out the events (RC4). */
TEST(names_leave_room_in_a_ring)
{
    enum {
        SMALL = 64 << 10,
        ROUNDS = 20000
    };
    char text[64];
    mtprof_session *s = start(MTPROF_POLICY_RING, SMALL);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        mtprof_end(mtprof_begin_named(text, print_text(text, sizeof text, "different", i), 0));
        mtprof_counter_named(text, strlen(text), 1);
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.begins, ROUNDS);
    CHECK_EQ_U64(h.lost_by[MTPROF_LOST_BUDGET], 0);
    CHECK(h.bytes <= 4 * SMALL);
    CHECK(v->n_spans > 100);
    CHECK_EQ_U64(v->n_spans + h.evicted, ROUNDS);
    print_text(text, sizeof text, "different", ROUNDS - 1);
    CHECK(tv_span_named(v, text) != NULL); /* the newest */
    tv_free(v);
}
