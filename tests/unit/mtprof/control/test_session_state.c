/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions over time: every call in every state, windows and epochs as docs/format.md 3.5 says
 * them, clearing, and the child of a fork.
 */
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "support/traces/trace_view.h"

#include <mtprof/clock.h>
#include <mtprof/session.h>
#include <mtprof/trace.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static mtprof_site scope = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);

static mtprof_session *start_paused(void)
{
    mtprof_config c = {.struct_size = sizeof c, .paused = 1};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&c, &s));
    return s;
}

static void work(const char *name)
{
    mtprof_end(mtprof_begin_named(name, strlen(name), 0));
}

/* ---- every call in every state --------------------------------------------------------------- */

enum state {
    PAUSED_BEFORE, /* started paused, no window yet */
    OPEN,          /* recording */
    OPEN_PAUSED,   /* a window is open and paused */
    BETWEEN,       /* the window is closed */
    STOPPED,
    STATES
};

static mtprof_session *in_state(enum state state)
{
    mtprof_session *s = start_paused();
    if (state >= OPEN) {
        REQUIRE_OK(mtprof_session_window_open(s, 0, 0));
    }
    if (state == OPEN_PAUSED) {
        REQUIRE_OK(mtprof_session_pause(s));
    } else if (state == BETWEEN) {
        REQUIRE_OK(mtprof_session_window_close(s, true));
    } else if (state == STOPPED) {
        REQUIRE_OK(mtprof_session_stop(s));
    }
    return s;
}

static mtprof_status call(mtprof_session *s, int which)
{
    mtprof_health h = {.struct_size = sizeof h};
    mtprof_bytes b = {.struct_size = sizeof b};
    char path[512];
    mtprof_status status;
    switch (which) {
    case 0: return mtprof_session_stop(s);
    case 1: return mtprof_session_pause(s);
    case 2: return mtprof_session_resume(s, 0);
    case 3: return mtprof_session_window_open(s, 0, 0);
    case 4: return mtprof_session_window_close(s, true);
    case 5: return mtprof_session_step(s, 1, 0);
    case 6: return mtprof_session_clear(s);
    case 7: return mtprof_session_add_metadata(s, "k", 1, "v", 1, false);
    case 8: return mtprof_session_get_health(s, &h);
    case 9:
        status = mtprof_session_get_bytes(s, &b);
        if (status == MTPROF_OK) {
            b.close(b.context);
        }
        return status;
    default:
        snprintf(path, sizeof path, "%s/x.mtt", mt_test_tmpdir());
        return mtprof_session_save(s, path);
    }
}

TEST(every_call_in_every_state)
{
    static const char *const names[] = {"stop",         "pause", "resume", "window_open",
                                        "window_close", "step",  "clear",  "metadata",
                                        "health",       "bytes", "save"};
    /* 1: allowed. Columns: started paused, open, open and paused, between windows, stopped. */
    static const char allowed[][STATES + 1] = {"11111", "11110", "11110", "10010", "01100", "11110",
                                               "10010", "11111", "11111", "11111", "00001"};
    for (int which = 0; which < 11; which++) {
        for (enum state state = 0; state < STATES; state++) {
            mtprof_session *s = in_state(state);
            mtprof_status status = call(s, which);
            mtprof_status expected = allowed[which][state] == '1' ? MTPROF_OK : MTPROF_ESTATE;
            if (status != expected) {
                FAIL("%s in state %d: %s", names[which], (int)state, mtprof_status_name(status));
            }
            if (status != MTPROF_OK && strstr(mtprof_last_error()->message, names[which]) == NULL) {
                FAIL("\"%s\" does not name %s", mtprof_last_error()->message, names[which]);
            }
            CHECK_OK(mtprof_session_close(s)); /* allowed in every state */
        }
    }
}

TEST(what_is_done_twice_is_done_once)
{
    mtprof_session *s = tv_start(0);
    work("a");
    CHECK_OK(mtprof_session_resume(s, 0));
    CHECK_OK(mtprof_session_pause(s));
    CHECK_OK(mtprof_session_pause(s));
    work("unseen");
    CHECK_OK(mtprof_session_resume(s, 0));
    CHECK_OK(mtprof_session_resume(s, 0));
    work("b");
    CHECK_OK(mtprof_session_stop(s));
    CHECK_OK(mtprof_session_stop(s));
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 2);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_WINDOW_OPEN), 2);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_WINDOW_CLOSE), 2);
    tv_free(v);
}

/* ---- windows and epochs ---------------------------------------------------------------------- */

static void check_epoch(const trace_view *v, uint32_t index, uint32_t window, uint32_t step,
                        uint64_t gate, uint32_t close_kind)
{
    mtprof_epoch_info e, before;
    REQUIRE(mtprof_reader_epoch(v->reader, index, &e));
    CHECK(e.epoch != 0);
    CHECK_EQ_U64(e.window, window);
    CHECK_EQ_U64(e.step, step);
    CHECK_EQ_U64(e.gate, gate);
    CHECK_EQ_U64(e.close_kind, close_kind);
    CHECK(e.open_ticks <= e.close_ticks);
    if (index > 0 && mtprof_reader_epoch(v->reader, index - 1, &before)) {
        CHECK(before.epoch < e.epoch);
        CHECK(before.close_ticks <= e.open_ticks);
    }
}

static uint32_t epochs_of(const trace_view *v)
{
    uint32_t n = 0;
    mtprof_epoch_info e;
    while (mtprof_reader_epoch(v->reader, n, &e)) {
        n++;
    }
    return n;
}

TEST(windows_pauses_and_steps_are_in_the_trace)
{
    const uint64_t all = MTPROF_WANT_DEFAULT, ops = MTPROF_WANT_OPS;
    mtprof_session *s = start_paused();
    CHECK_OK(mtprof_session_step(s, 0, 0));
    CHECK_OK(mtprof_session_step(s, 1, 1));
    CHECK_OK(mtprof_session_window_open(s, 0, 2)); /* epoch 0: window 1 */
    CHECK_OK(mtprof_session_step(s, 2, 2));
    work("first");
    CHECK_OK(mtprof_session_pause(s));
    CHECK_OK(mtprof_session_resume(s, 0)); /* epoch 1: still window 1 */
    work("second");
    CHECK_OK(mtprof_session_step(s, UINT64_MAX, 3));
    CHECK_OK(mtprof_session_window_close(s, true));
    CHECK_OK(mtprof_session_window_open(s, ops, 7)); /* epoch 2: window 2, only ops */
    work("not an op");
    CHECK_OK(mtprof_session_window_close(s, false));
    CHECK_OK(mtprof_session_window_open(s, 0, 9)); /* epoch 3: window 3, as configured */
    work("third");
    CHECK_OK(mtprof_session_pause(s));
    CHECK_OK(mtprof_session_resume(s, ops)); /* epoch 4 */
    CHECK_OK(mtprof_session_stop(s));
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(epochs_of(v), 5);
    check_epoch(v, 0, 1, 2, all, 2);
    check_epoch(v, 1, 1, 2, all, 0);
    check_epoch(v, 2, 2, 7, ops, 1);
    check_epoch(v, 3, 3, 9, all, 2);
    check_epoch(v, 4, 3, 9, ops, 0);
    static const struct {
        uint64_t step;
        uint16_t action;
    } steps[] = {{0, 0}, {1, 1}, {2, 2}, {UINT64_MAX, 3}};
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_STEP), 4);
    for (size_t i = 0; i < 4; i++) {
        const tv_record *p = tv_nth(v, MTPROF_REC_STEP, i);
        REQUIRE(p != NULL);
        CHECK_EQ_U64(p->r.words[1], steps[i].step);
        CHECK_EQ_U64(p->r.aux, steps[i].action);
    }
    CHECK_EQ_U64(v->n_spans, 3);
    for (size_t i = 0; i < v->n_spans; i++) { /* events lie in the epoch that they name */
        mtprof_epoch_info e;
        REQUIRE(tv_epoch(v, v->spans[i].begin->r.epoch, &e));
        CHECK(e.open_ticks <= v->spans[i].start && v->spans[i].stop <= e.close_ticks);
    }
    tv_free(v);
}

TEST(a_window_that_is_closed_while_paused_ended_at_the_pause)
{
    mtprof_session *s = start_paused();
    REQUIRE_OK(mtprof_session_window_open(s, 0, 1));
    mtprof_token open = mtprof_begin(&scope);
    REQUIRE_OK(mtprof_session_pause(s));
    uint64_t paused = mtprof_ticks();
    REQUIRE_OK(mtprof_session_window_close(s, false));
    mtprof_end(open);
    trace_view *v = tv_finish(s, NULL);
    mtprof_epoch_info e;
    CHECK_EQ_U64(epochs_of(v), 1);
    REQUIRE(mtprof_reader_epoch(v->reader, 0, &e));
    CHECK_EQ_U64(e.close_kind, 1);
    CHECK(e.close_ticks <= paused);
    REQUIRE_EQ_U64(v->n_spans, 1);
    CHECK_EQ_U64(v->spans[0].stop, e.close_ticks);
    tv_free(v);
}

TEST(a_window_that_is_open_at_the_stop_is_saved)
{
    mtprof_session *s = start_paused();
    REQUIRE_OK(mtprof_session_window_open(s, 0, 1));
    REQUIRE_OK(mtprof_session_pause(s));
    trace_view *v = tv_finish(s, NULL);
    check_epoch(v, 0, 1, 1, MTPROF_WANT_DEFAULT, 0);
    tv_free(v);
    s = tv_start(MTPROF_WANT_OPS);
    v = tv_finish(s, NULL);
    check_epoch(v, 0, 1, 0, MTPROF_WANT_OPS, 0);
    tv_free(v);
}

TEST(a_session_that_never_opened_its_gate_is_an_empty_trace)
{
    mtprof_session *s = start_paused();
    work("unseen");
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(epochs_of(v), 0);
    CHECK_EQ_U64(v->n_spans, 0);
    CHECK_EQ_U64(h.begins, 0);
    CHECK_EQ_U64(h.threads, 0);
    CHECK_EQ_U64(h.lost, 0);
    tv_free(v);
}

TEST(epoch_bytes_of_tokens_wrap_without_confusion)
{
    mtprof_session *s = tv_start(0);
    mtprof_token old = mtprof_begin(&scope);
    for (int i = 0; i < 256; i++) { /* the byte of a token has seen every value */
        REQUIRE_OK(mtprof_session_pause(s));
        REQUIRE_OK(mtprof_session_resume(s, 0));
        mtprof_token fresh = mtprof_begin(&scope);
        mtprof_end(fresh);
    }
    mtprof_end(old);
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(v->n_spans, 257);
    CHECK_EQ_U64(h.truncated, 1);
    CHECK(tv_span_nth(v, "scope", 0)->end == NULL);
    tv_free(v);
}

/* ---- clear ----------------------------------------------------------------------------------- */

TEST(clear_lets_go_of_events_and_keeps_metadata_and_numbers)
{
    mtprof_session *s = start_paused();
    REQUIRE_OK(mtprof_session_add_metadata(s, "key", 3, "value", 5, false));
    REQUIRE_OK(mtprof_session_window_open(s, 0, 1));
    work("old");
    REQUIRE_OK(mtprof_session_window_close(s, true));
    mtprof_bytes before = {.struct_size = sizeof before};
    REQUIRE_OK(mtprof_session_get_bytes(s, &before)); /* readers keep what they have */
    REQUIRE_OK(mtprof_session_clear(s));
    REQUIRE_OK(mtprof_session_clear(s));
    REQUIRE_OK(mtprof_session_window_open(s, 0, 2));
    work("new");
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(h.begins, 1);
    CHECK(tv_span_named(v, "old") == NULL);
    CHECK(tv_span_named(v, "new") != NULL);
    CHECK_EQ_STR(tv_metadata(v, "key"), "value");
    CHECK(tv_metadata(v, "mtprof_version") != NULL);
    check_epoch(v, 0, 2, 2, MTPROF_WANT_DEFAULT, 0);
    tv_free(v);
    mtprof_reader *reader = NULL;
    REQUIRE_OK(mtprof_reader_open_bytes(&before, &reader));
    v = tv_reader(reader);
    CHECK(tv_span_named(v, "old") != NULL);
    tv_free(v);
}

TEST(clear_does_nothing_to_a_session_with_a_path)
{
    char path[512];
    snprintf(path, sizeof path, "%s/x.mtt", mt_test_tmpdir());
    mtprof_config c = {.struct_size = sizeof c, .paused = 1, .path = path};
    mtprof_session *s = NULL;
    REQUIRE_OK(mtprof_session_start(&c, &s));
    REQUIRE_OK(mtprof_session_window_open(s, 0, 1));
    work("old");
    REQUIRE_OK(mtprof_session_window_close(s, true));
    REQUIRE_OK(mtprof_session_clear(s));
    REQUIRE_OK(mtprof_session_close(s));
    trace_view *v = tv_path(path);
    CHECK(tv_span_named(v, "old") != NULL);
    tv_free(v);
}

typedef struct asker {
    mtprof_session *session;
    uint32_t leave; /* atomic */
} asker;

static void *ask_forever(void *argument)
{
    asker *a = argument;
    for (uint64_t i = 0; __atomic_load_n(&a->leave, __ATOMIC_ACQUIRE) == 0; i++) {
        mtprof_health h = {.struct_size = sizeof h};
        mtprof_bytes b = {.struct_size = sizeof b};
        CHECK_OK(mtprof_session_get_health(a->session, &h));
        CHECK_OK(
            mtprof_session_add_metadata(a->session, "k", 1, (const char *)&i, sizeof i, false));
        CHECK_OK(mtprof_session_step(a->session, i, 0));
        CHECK_OK(mtprof_session_get_bytes(a->session, &b));
        uint64_t word;
        CHECK_EQ_I64(b.read(b.context, 0, &word, 8), 8);
        CHECK_EQ_U64(word, MTPROF_FILE_MAGIC);
        b.close(b.context);
        work("asker");
    }
    return NULL;
}

TEST(a_session_may_be_asked_while_it_is_cleared)
{
    asker a = {.session = start_paused()};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, ask_forever, &a) == 0);
    for (int i = 0; i < 200; i++) {
        REQUIRE_OK(mtprof_session_window_open(a.session, 0, 0));
        work("window");
        REQUIRE_OK(mtprof_session_window_close(a.session, true));
        REQUIRE_OK(mtprof_session_clear(a.session));
    }
    __atomic_store_n(&a.leave, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    tv_free(tv_finish(a.session, NULL));
}

/* ---- fork ------------------------------------------------------------------------------------ */

TEST(the_child_of_a_fork_has_no_session)
{
    mtprof_session *s = tv_start(0);
    work("parent");
    pid_t child = fork();
    if (child == 0) {
        bool fine = !mtprof_wants(UINT32_MAX) && mtprof_begin(&scope) == 0;
        for (int which = 0; which < 11; which++) {
            fine = fine && call(s, which) == MTPROF_ESTATE;
        }
        fine = fine && mtprof_session_close(s) == MTPROF_OK;
#if !MT_TSAN /* which knows no threads in such a child */
        mtprof_config c = {.struct_size = sizeof c};
        mtprof_session *own = NULL; /* it may start one of its own */
        fine = fine && mtprof_session_start(&c, &own) == MTPROF_OK;
        work("child");
        fine = fine && mtprof_session_close(own) == MTPROF_OK;
#endif
        _exit(fine ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    CHECK_EQ_I64(status, 0);
    work("parent again");
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 2);
    tv_free(v);
}
