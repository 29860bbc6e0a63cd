/* SPDX-License-Identifier: Apache-2.0
 *
 * Scopes and ops: what begin and end promise (include/mtprof/trace.h), read back.
 */
#include "harness/mt_test.h"
#include "support/traces/trace_view.h"

#include <mtprof/clock.h>
#include <mtprof/op.h>
#include <mtprof/trace.h>

#include <pthread.h>
#include <string.h>

static mtprof_site outer = MTPROF_SITE_INIT("outer", MTPROF_KIND_SCOPE);
static mtprof_site inner = MTPROF_SITE_INIT("inner", MTPROF_KIND_SCOPE);
static mtprof_site leaf = MTPROF_SITE_INIT("leaf", MTPROF_KIND_SCOPE);
static mtprof_site op_site = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
static mtprof_site device_op = MTPROF_SITE_INIT("device op", MTPROF_KIND_OP | MTPROF_FLAG_DEVICE);
static mtprof_site runtime_call = MTPROF_SITE_INIT("runtime", MTPROF_KIND_RUNTIME);
static mtprof_site launching =
    MTPROF_SITE_INIT("launching", MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH);

static void check_parent(const trace_view *v, const char *name, const char *parent)
{
    const tv_span *span = tv_span_named(v, name);
    REQUIRE(span != NULL);
    CHECK_EQ_STR(tv_parent_name(v, span), parent);
}

/* ---- one thread ------------------------------------------------------------------------------ */

TEST(a_scope_lies_between_the_times_around_it)
{
    mtprof_session *s = tv_start(0);
    uint64_t before = mtprof_ticks();
    mtprof_token token = mtprof_begin(&outer);
    uint64_t inside = mtprof_ticks();
    mtprof_end(token);
    uint64_t after = mtprof_ticks();
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 1);
    const tv_span *span = tv_span_named(v, "outer");
    REQUIRE(span != NULL && span->end != NULL);
    CHECK(before <= span->start && span->start <= inside);
    CHECK(inside <= span->stop && span->stop <= after);
    CHECK_EQ_U64(span->key, mtprof_launch_key(token));
    CHECK_EQ_U64(span->begin->r.aux, MTPROF_KIND_SCOPE);
    tv_free(v);
}

TEST(a_static_place_carries_its_file_and_line)
{
    mtprof_session *s = tv_start(0);
    mtprof_end(mtprof_begin(&inner));
    trace_view *v = tv_finish(s, NULL);
    mtprof_text file = {0};
    uint32_t line = 0;
    const tv_span *span = tv_span_named(v, "inner");
    REQUIRE(span != NULL);
    REQUIRE(mtprof_reader_location(v->reader, span->begin->r.arg, &file, &line));
    CHECK_EQ_STR(file.bytes, __FILE__);
    CHECK_EQ_U64(line, inner.line);
    tv_free(v);
}

/* As one of a program would be that was compiled before sites had a size. */
TEST(a_site_without_a_size_is_lost_and_counted)
{
    static mtprof_site unsized = {.name = "unsized"};
    mtprof_session *s = tv_start(0);
    CHECK_EQ_U64(mtprof_begin(&unsized), 0);
    mtprof_instant(&unsized);
    mtprof_end(mtprof_begin(&inner));
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.lost_by[MTPROF_LOST_TOO_LARGE], 2);
    CHECK_EQ_U64(v->n_spans, 1);
    CHECK(tv_span_named(v, "unsized") == NULL);
    tv_free(v);
}

TEST(nesting_gives_parents)
{
    mtprof_session *s = tv_start(0);
    mtprof_token a = mtprof_begin(&outer);
    mtprof_token b = mtprof_begin(&inner);
    mtprof_end(mtprof_begin(&leaf));
    mtprof_end(b);
    mtprof_token c = mtprof_begin_named("second", 6, MTPROF_KIND_SCOPE);
    mtprof_end(c);
    mtprof_end(a);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    check_parent(v, "outer", "");
    check_parent(v, "inner", "outer");
    check_parent(v, "leaf", "inner");
    check_parent(v, "second", "outer");
    CHECK_EQ_U64(h.begins, 4);
    CHECK_EQ_U64(h.truncated, 0);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(h.threads, 1);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_END), 4);
    tv_free(v);
}

TEST(the_macros_end_with_their_block_however_it_is_left)
{
    mtprof_session *s = tv_start(0);
    for (int i = 0; i < 3; i++) {
        MTPROF_SCOPE("turn");
        if (i == 1) {
            continue;
        }
        MTPROF_OP("turned op");
        if (i == 2) {
            break;
        }
    }
    MTPROF_INSTANT("mark");
    MTPROF_COUNTER("depth", 3);
    MTPROF_FLOW("arrow", MTPROF_FLOW_START, 9);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.begins, 5);
    CHECK_EQ_U64(h.others, 3);
    CHECK_EQ_U64(h.truncated, 0);
    for (size_t i = 0; i < 3; i++) {
        const tv_span *turn = tv_span_nth(v, "turn", i);
        REQUIRE(turn != NULL && turn->end != NULL);
        CHECK_EQ_U64(turn->parent, 0);
    }
    check_parent(v, "turned op", "turn");
    REQUIRE(tv_span_named(v, "turned op") != NULL);
    CHECK_EQ_U64(tv_span_named(v, "turned op")->begin->r.aux, MTPROF_KIND_OP);
    tv_free(v);
}

TEST(a_dynamic_name_is_any_bytes_and_stored_once)
{
    static const char odd[] = "a\0b\xFF\n\"";
    mtprof_session *s = tv_start(0);
    for (int i = 0; i < 10; i++) {
        mtprof_end(mtprof_begin_named(odd, sizeof odd - 1, MTPROF_KIND_SCOPE));
        mtprof_end(mtprof_begin_named("", 0, MTPROF_KIND_SCOPE));
    }
    CHECK_EQ_U64(mtprof_begin_named(NULL, 0, MTPROF_KIND_SCOPE), 0);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 20);
    const tv_record *first = tv_nth(v, MTPROF_REC_BEGIN, 0);
    mtprof_text text;
    REQUIRE(first != NULL && mtprof_reader_string(v->reader, first->r.arg, &text));
    CHECK_EQ_U64(text.length, sizeof odd - 1);
    CHECK_EQ_MEM(text.bytes, odd, sizeof odd);
    size_t defined = 0;
    for (size_t i = 0; i < v->count; i++) {
        const mtprof_record *r = &v->records[i].r;
        defined += r->kind == MTPROF_REC_DEF_STRING && r->arg == first->r.arg;
        if (r->kind == MTPROF_REC_BEGIN && r->arg != first->r.arg) {
            REQUIRE(mtprof_reader_string(v->reader, r->arg, &text));
            CHECK_EQ_U64(text.length, 0);
        }
    }
    CHECK_EQ_U64(defined, 1);
    tv_free(v);
}

TEST(names_past_their_bound_are_stored_in_full_with_the_event)
{
    enum {
        NAMES = 65536 + 50
    };
    mtprof_session *s = tv_start(0);
    for (uint32_t i = 0; i < NAMES; i++) {
        char name[16];
        memcpy(name, "name ", 5);
        memcpy(name + 5, &i, 4);
        mtprof_end(mtprof_begin_named(name, 9, MTPROF_KIND_SCOPE));
    }
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.begins, NAMES);
    CHECK_EQ_U64(h.lost, 0);
    size_t in_full = tv_count(v, MTPROF_REC_NAME);
    CHECK(in_full >= 50);
    size_t checked = 0;
    for (size_t i = 0; i < v->count; i++) {
        const tv_record *p = &v->records[i];
        if (p->r.kind != MTPROF_REC_NAME) {
            continue;
        }
        CHECK_EQ_U64(p->r.words[0], 9);
        CHECK_EQ_MEM(p->r.words + 1, "name ", 5);
        REQUIRE(p->owner != NULL);
        CHECK_EQ_U64(p->owner->r.arg, 0);
        CHECK_EQ_U64(p->owner->r.aux, MTPROF_KIND_SCOPE | MTPROF_FLAG_PAYLOAD);
        checked++;
    }
    CHECK_EQ_U64(checked, in_full);
    tv_free(v);
}

TEST(ends_may_come_in_any_order)
{
    mtprof_session *s = tv_start(0);
    mtprof_token a = mtprof_begin(&outer);
    mtprof_token b = mtprof_begin(&inner);
    mtprof_token c = mtprof_begin(&leaf);
    mtprof_end(a);
    mtprof_token d = mtprof_begin_named("late", 4, MTPROF_KIND_SCOPE);
    mtprof_end(c);
    mtprof_end(b);
    mtprof_end(d);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.truncated, 0);
    for (size_t i = 0; i < v->n_spans; i++) {
        CHECK(v->spans[i].end != NULL);
    }
    check_parent(v, "late", "leaf"); /* the innermost that is still open */
    const tv_span *o = tv_span_named(v, "outer"), *l = tv_span_named(v, "leaf");
    REQUIRE(o != NULL && l != NULL);
    CHECK(o->stop <= l->stop);
    tv_free(v);
}

TEST(an_end_that_is_far_from_its_begin_finds_it)
{
    enum {
        BETWEEN = 70000 /* more than the short form's distance */
    };
    mtprof_session *s = tv_start(0);
    mtprof_token a = mtprof_begin(&outer);
    for (int i = 0; i < BETWEEN; i++) {
        mtprof_end(mtprof_begin(&inner));
    }
    mtprof_end(a);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.begins, BETWEEN + 1);
    CHECK_EQ_U64(h.truncated, 0);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_END_X), 1);
    const tv_span *span = tv_span_named(v, "outer");
    REQUIRE(span != NULL && span->end != NULL);
    CHECK_EQ_U64(span->end->r.kind, MTPROF_REC_END_X);
    tv_free(v);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

TEST(nothing_records_without_a_session)
{
    CHECK_EQ_U64(mtprof_begin(&outer), 0);
    CHECK_EQ_U64(mtprof_begin_named("x", 1, 0), 0);
    CHECK_EQ_U64(mtprof_begin_under(&outer, 0), 0);
    CHECK_EQ_U64(mtprof_launch(NULL, 0, 0), 0);
    CHECK_EQ_U64(mtprof_launch_key(0), 0);
    CHECK(!mtprof_wants(UINT32_MAX));
    mtprof_end(0);
    mtprof_end(12345); /* a number that is no token */
    mtprof_session *s = tv_start(0);
    mtprof_end(0);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.begins, 0);
    CHECK_EQ_U64(v->n_spans, 0);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_END) + tv_count(v, MTPROF_REC_END_X), 0);
    tv_free(v);
}

TEST(a_token_of_an_earlier_recording_is_ignored)
{
    mtprof_session *s = tv_start(0);
    mtprof_token old = mtprof_begin(&outer);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.truncated, 1);
    tv_free(v);
    s = tv_start(0);
    mtprof_token fresh = mtprof_begin(&inner);
    CHECK(fresh != old);
    mtprof_end(old);
    mtprof_meta_int(old, mtprof_intern("k", 1), 1);
    mtprof_token under = mtprof_begin_under(&leaf, old);
    mtprof_end(under);
    mtprof_end(fresh);
    v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, 2);
    CHECK_EQ_U64(h.truncated, 0);
    CHECK_EQ_U64(v->ignored_ends, 0);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_META), 0);
    check_parent(v, "leaf", ""); /* its parent is no part of this recording: a root */
    tv_free(v);
}

TEST(a_scope_that_is_open_at_the_stop_ends_there)
{
    mtprof_session *s = tv_start(0);
    mtprof_token a = mtprof_begin(&outer);
    mtprof_end(mtprof_begin(&inner));
    REQUIRE_OK(mtprof_session_stop(s));
    mtprof_end(a); /* harmless */
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    const tv_span *span = tv_span_named(v, "outer");
    mtprof_epoch_info epoch;
    REQUIRE(span != NULL);
    CHECK(span->end == NULL);
    REQUIRE(tv_epoch(v, span->begin->r.epoch, &epoch));
    CHECK_EQ_U64(span->stop, epoch.close_ticks);
    CHECK_EQ_U64(h.truncated, 1);
    CHECK_EQ_U64(h.begins, 2);
    tv_free(v);
}

TEST(a_scope_that_is_open_at_a_pause_ends_there_and_stays_ended)
{
    mtprof_session *s = tv_start(0);
    mtprof_token a = mtprof_begin(&outer);
    REQUIRE_OK(mtprof_session_pause(s));
    uint64_t paused = mtprof_ticks();
    CHECK_EQ_U64(mtprof_begin(&inner), 0);
    REQUIRE_OK(mtprof_session_resume(s, 0));
    mtprof_token b = mtprof_begin(&leaf);
    mtprof_end(a);
    mtprof_end(b);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    const tv_span *span = tv_span_named(v, "outer");
    REQUIRE(span != NULL);
    CHECK(span->end == NULL);
    CHECK(span->stop <= paused);
    check_parent(v, "leaf", "");
    CHECK(tv_span_named(v, "inner") == NULL);
    CHECK_EQ_U64(h.truncated, 1);
    CHECK_EQ_U64(v->ignored_ends, 0);
    tv_free(v);
}

/* ---- coroutines and threads ------------------------------------------------------------------ */

TEST(interleaved_scopes_of_coroutines_keep_their_own_parents)
{
    mtprof_session *s = tv_start(0);
    mtprof_token root = mtprof_begin(&outer);
    mtprof_token task[2], step[2];
    task[0] = mtprof_begin_under(&inner, root);
    task[1] = mtprof_begin_under(&inner, root);
    step[0] = mtprof_begin_under(&leaf, task[0]);
    step[1] = mtprof_begin_under(&leaf, task[1]);
    mtprof_end(step[0]);
    mtprof_end(task[0]);
    mtprof_end(step[1]);
    mtprof_end(task[1]);
    mtprof_end(root);
    mtprof_token alone = mtprof_begin_under(&op_site, 0);
    mtprof_end(alone);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.truncated, 0);
    for (size_t i = 0; i < 2; i++) {
        const tv_span *t = tv_span_key(v, mtprof_launch_key(task[i]));
        const tv_span *l = tv_span_key(v, mtprof_launch_key(step[i]));
        REQUIRE(t != NULL && l != NULL && t->end != NULL && l->end != NULL);
        CHECK_EQ_U64(t->parent, mtprof_launch_key(root));
        CHECK_EQ_U64(l->parent, mtprof_launch_key(task[i]));
    }
    check_parent(v, "op", "");
    tv_free(v);
}

typedef struct handover {
    mtprof_token given, made;
} handover;

static void *end_here(void *argument)
{
    handover *h = argument;
    mtprof_end(h->given);
    h->made = mtprof_begin_under(&inner, h->given);
    return NULL;
}

TEST(work_handed_to_another_thread_ends_there_and_goes_on_there)
{
    mtprof_session *s = tv_start(0);
    handover h = {.given = mtprof_begin(&outer)};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, end_here, &h) == 0);
    pthread_join(thread, NULL);
    uint64_t between = mtprof_ticks();
    mtprof_end(mtprof_begin(&leaf)); /* the handed scope is over: a root */
    mtprof_end(h.made);              /* and back again */
    mtprof_health health;
    trace_view *v = tv_finish(s, &health);
    CHECK_EQ_U64(health.threads, 2);
    CHECK_EQ_U64(health.truncated, 0);
    const tv_span *o = tv_span_named(v, "outer"), *i = tv_span_named(v, "inner");
    REQUIRE(o != NULL && i != NULL && o->end != NULL && i->end != NULL);
    CHECK(o->stop <= between);
    CHECK(i->stop >= between);
    CHECK(o->begin->r.thread != i->begin->r.thread);
    CHECK_EQ_U64(i->parent, o->key);
    check_parent(v, "leaf", "");
    tv_free(v);
}

static void *leave_open(void *unused)
{
    (void)unused;
    return (void *)(uintptr_t)mtprof_begin(&inner);
}

TEST(a_scope_outlives_the_thread_that_began_it)
{
    mtprof_session *s = tv_start(0);
    pthread_t thread;
    void *token = NULL;
    REQUIRE(pthread_create(&thread, NULL, leave_open, NULL) == 0);
    pthread_join(thread, &token);
    /* The next thread takes over the slot: what the first left open is not its parent. */
    REQUIRE(pthread_create(&thread, NULL, leave_open, NULL) == 0);
    pthread_join(thread, NULL);
    uint64_t before = mtprof_ticks();
    mtprof_end((mtprof_token)(uintptr_t)token);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    const tv_span *first = tv_span_nth(v, "inner", 0), *second = tv_span_nth(v, "inner", 1);
    REQUIRE(first != NULL && second != NULL && first->end != NULL);
    CHECK(first->stop >= before);
    CHECK(second->end == NULL);
    CHECK_EQ_U64(second->parent, 0);
    CHECK(first->begin->r.thread != second->begin->r.thread);
    CHECK_EQ_U64(h.truncated, 1);
    CHECK_EQ_U64(h.threads, 3);
    tv_free(v);
}

/* ---- what is wanted -------------------------------------------------------------------------- */

typedef struct filter_case {
    const char *what;
    uint64_t wants;
    bool scope, op, device_op, runtime, launching;
} filter_case;

TEST(only_what_is_wanted_is_recorded)
{
    static const filter_case cases[] = {
        {"ops", MTPROF_WANT_OPS, false, true, true, false, false},
        {"scopes", MTPROF_WANT_SCOPES, true, false, false, false, false},
        {"runtime", MTPROF_WANT_RUNTIME, false, false, false, true, true},
        {"device", MTPROF_WANT_DEVICE, false, false, true, false, true},
        {"marks", MTPROF_WANT_MARKS, false, false, false, false, false},
        {"default", MTPROF_WANT_DEFAULT, true, true, true, true, true},
    };
    mtprof_site *sites[] = {&outer, &op_site, &device_op, &runtime_call, &launching};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const filter_case *c = &cases[i];
        const bool expected[] = {c->scope, c->op, c->device_op, c->runtime, c->launching};
        mtprof_session *s = tv_start(c->wants);
        uint64_t begins = 0;
        for (size_t k = 0; k < 5; k++) {
            mtprof_op op = {.struct_size = sizeof op};
            mtprof_token plain = mtprof_begin(sites[k]);
            mtprof_token with_op = mtprof_op_begin(sites[k], &op);
            mtprof_token named =
                mtprof_begin_named(sites[k]->name, strlen(sites[k]->name), sites[k]->flags);
            if ((plain != 0) != expected[k] || (with_op != 0) != expected[k] ||
                (named != 0) != expected[k]) {
                FAIL("%s wanted: %s gives %d %d %d", c->what, sites[k]->name, plain != 0,
                     with_op != 0, named != 0);
            }
            begins += 3 * (uint64_t)expected[k];
            mtprof_end(named);
            mtprof_end(with_op);
            mtprof_end(plain);
        }
        mtprof_health h;
        trace_view *v = tv_finish(s, &h);
        CHECK_EQ_U64(h.begins, begins);
        CHECK_EQ_U64(v->n_spans, begins);
        tv_free(v);
    }
}

/* A reader refuses undefined flags and kinds, so none are recorded. */
TEST(flags_that_are_not_defined_are_left_out)
{
    static mtprof_site odd_bits = MTPROF_SITE_INIT("odd bits", 0x8101);
    static mtprof_site odd_kind = MTPROF_SITE_INIT("odd kind", 0xFF7F & ~0x50);
    static mtprof_site odd_instant = MTPROF_SITE_INIT("odd instant", 0xF00F);
    static mtprof_site odd_launch = MTPROF_SITE_INIT("odd launch", 0xFF0E);
    const mtprof_op op = {.struct_size = sizeof op};
    mtprof_session *s = tv_start(MTPROF_WANT_DEFAULT | MTPROF_WANT_MARKS | MTPROF_WANT_DEVICE);
    mtprof_end(mtprof_begin(&odd_bits));
    mtprof_end(mtprof_begin_under(&odd_kind, 0));
    mtprof_end(mtprof_op_begin(&odd_kind, &op));
    mtprof_instant(&odd_instant);
    mtprof_launch(&odd_launch, 0, 0);
    mtprof_end(mtprof_begin_named("odd name", 8, 0xFFFFFF05));
    mtprof_instant_named("odd instant", 11, 0x10000000);
    mtprof_end(mtprof_begin(&outer));
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 5); /* and the last is there */
    CHECK_EQ_U64(tv_span_named(v, "odd bits")->begin->r.aux, MTPROF_KIND_OP);
    CHECK_EQ_U64(tv_span_named(v, "odd kind")->begin->r.aux & ~MTPROF_FLAG_PAYLOAD,
                 MTPROF_FLAG_DEVICE);
    CHECK_EQ_U64(tv_span_named(v, "odd name")->begin->r.aux, MTPROF_KIND_SCOPE);
    tv_free(v);
}
