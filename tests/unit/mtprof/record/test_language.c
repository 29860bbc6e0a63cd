/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's language: who is asked for stacks and module paths, when, and when not.
 */
#include "harness/mt_test.h"
#include "support/traces/trace_view.h"

#include <mtprof/language.h>
#include <mtprof/op.h>

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static mtprof_site op_site = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
static mtprof_site scope_site = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);

/* What the language of these tests says, and how often it was asked. */
static struct {
    uint32_t stacks, modules;                 /* atomic */
    uint32_t waiting_stacks, waiting_modules; /* those that may wait */
    uint32_t frame;                           /* 0: unknown */
    bool none;                                /* there is no stack */
    uint32_t module;
    bool begins;   /* it breaks its promise and begins a scope itself */
    bool signals;  /* a signal comes while it is asked */
    int hold[2];   /* a pipe: says that it is inside, then waits */
    bool has_hold; /* atomic */
} said;

static uint32_t tell_stack(void *context)
{
    CHECK(context == &said);
    __atomic_fetch_add(&said.stacks, 1, __ATOMIC_RELAXED);
    uint32_t node = said.frame != 0 ? mtprof_stack_push(0, said.frame) : 0;
    if (said.begins) {
        mtprof_end(mtprof_begin(&scope_site));
    }
    if (said.signals) {
        raise(SIGUSR1);
    }
    if (__atomic_load_n(&said.has_hold, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&said.has_hold, false, __ATOMIC_RELEASE);
        char byte;
        CHECK_EQ_I64(read(said.hold[0], &byte, 1), 1);
    }
    return said.none ? MTPROF_STACK_NONE : node;
}

static uint32_t tell_module(void *context)
{
    CHECK(context == &said);
    __atomic_fetch_add(&said.modules, 1, __ATOMIC_RELAXED);
    return said.module;
}

static uint32_t tell_stack_waiting(void *context)
{
    said.waiting_stacks++;
    return tell_stack(context);
}

static uint32_t tell_module_waiting(void *context)
{
    said.waiting_modules++;
    return tell_module(context);
}

static const mtprof_language LANGUAGE = {
    .struct_size = sizeof LANGUAGE,
    .context = &said,
    .stack = tell_stack,
    .module_path = tell_module,
};

static uint32_t frame(const char *function)
{
    return mtprof_define_frame(function, strlen(function), "a.py", 4, 7);
}

static mtprof_session *start_with(uint32_t wants)
{
    memset(&said, 0, sizeof said);
    said.frame = frame("told");
    said.module = mtprof_intern("top.linear", 10);
    REQUIRE_OK(mtprof_set_language(&LANGUAGE));
    return tv_start(wants);
}

static trace_view *finish(mtprof_session *s, mtprof_health *health)
{
    trace_view *v = tv_finish(s, health);
    CHECK_OK(mtprof_set_language(NULL));
    return v;
}

/* The innermost function of a begin's stack; "" without one. */
static const char *function_of(const trace_view *v, const tv_record *begin)
{
    const tv_record *p = tv_payload(v, begin, MTPROF_REC_STACK, 0);
    uint32_t parent, id;
    mtprof_frame found;
    if (p == NULL) {
        return "";
    }
    REQUIRE(mtprof_reader_stack(v->reader, p->r.arg, &parent, &id));
    REQUIRE(mtprof_reader_frame(v->reader, id, &found));
    return found.function.bytes;
}

static const uint32_t ALL =
    MTPROF_WANT_OPS | MTPROF_WANT_SCOPES | MTPROF_WANT_STACKS | MTPROF_WANT_MODULES;

/* ---- who is asked ---------------------------------------------------------------------------- */

TEST(every_way_to_begin_asks)
{
    mtprof_session *s = start_with(ALL);
    mtprof_op op = {.struct_size = sizeof op};
    for (int turn = 0; turn < 2; turn++) { /* the long way, then the short one */
        mtprof_end(mtprof_begin(&scope_site));
        mtprof_end(mtprof_begin(&op_site));
        mtprof_end(mtprof_op_begin(&op_site, &op));
        mtprof_end(mtprof_begin_under(&scope_site, 0));
        mtprof_end(mtprof_begin_named("named", 5, MTPROF_KIND_SCOPE));
    }
    CHECK_EQ_U64(said.stacks, 10);
    CHECK_EQ_U64(said.modules, 4); /* the ops' */
    mtprof_health h;
    trace_view *v = finish(s, &h);
    CHECK_EQ_U64(h.stacks_missed, 0);
    REQUIRE_EQ_U64(v->n_spans, 10);
    for (uint32_t i = 0; i < 10; i++) {
        CHECK_EQ_STR(function_of(v, v->spans[i].begin), "told");
        const tv_record *info = tv_payload(v, v->spans[i].begin, MTPROF_REC_OPINFO, 0);
        CHECK_EQ_I64(info != NULL, i % 5 == 1 || i % 5 == 2);
    }
    tv_free(v);
}

TEST(what_is_brought_is_not_asked_for)
{
    mtprof_session *s = start_with(ALL);
    uint32_t own = mtprof_stack_push(0, frame("own"));
    mtprof_op op = {.struct_size = sizeof op,
                    .fields = MTPROF_OP_MODULE,
                    .module = mtprof_intern("mine", 4),
                    .stack = own};
    mtprof_end(mtprof_op_begin(&op_site, &op));
    mtprof_end(mtprof_op_begin(&op_site, &op));
    CHECK_EQ_U64(said.stacks, 0);
    CHECK_EQ_U64(said.modules, 0);
    op.fields = 0;
    mtprof_end(mtprof_op_begin(&op_site, &op));
    CHECK_EQ_U64(said.stacks, 0);
    CHECK_EQ_U64(said.modules, 1);
    trace_view *v = finish(s, NULL);
    REQUIRE_EQ_U64(v->n_spans, 3);
    CHECK_EQ_STR(function_of(v, v->spans[1].begin), "own");
    tv_free(v);
}

TEST(nobody_is_asked_for_what_nobody_wants)
{
    static const struct {
        uint32_t wants, stacks, modules;
    } cases[] = {
        {MTPROF_WANT_OPS | MTPROF_WANT_SCOPES, 0, 0},
        {MTPROF_WANT_OPS | MTPROF_WANT_SCOPES | MTPROF_WANT_STACKS, 2, 0},
        {MTPROF_WANT_OPS | MTPROF_WANT_SCOPES | MTPROF_WANT_MODULES, 0, 1},
        {MTPROF_WANT_OPS | MTPROF_WANT_STACKS, 1, 0},    /* scopes are not recorded */
        {MTPROF_WANT_SCOPES | MTPROF_WANT_STACKS, 1, 0}, /* ops are not */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mtprof_session *s = start_with(cases[i].wants);
        mtprof_end(mtprof_begin(&scope_site));
        mtprof_end(mtprof_begin(&op_site));
        CHECK_EQ_U64(said.stacks, cases[i].stacks);
        CHECK_EQ_U64(said.modules, cases[i].modules);
        tv_free(finish(s, NULL));
    }
}

TEST(calls_of_the_language_itself_are_not_asked_about)
{
    static mtprof_site call = MTPROF_SITE_INIT("f", MTPROF_KIND_FUNCTION);
    mtprof_session *s = start_with(ALL);
    mtprof_end(mtprof_begin(&call));
    mtprof_end(mtprof_begin_named("g", 1, MTPROF_KIND_FUNCTION));
    CHECK_EQ_U64(said.stacks, 0);
    mtprof_health h;
    trace_view *v = finish(s, &h);
    CHECK_EQ_U64(v->n_spans, 2);
    CHECK_EQ_U64(h.stacks_missed, 0);
    tv_free(v);
}

static uint32_t tell_after_calls(void *context)
{
    static mtprof_site call = MTPROF_SITE_INIT("frame", MTPROF_KIND_FUNCTION);
    (void)context;
    (void)mtprof_begin(&call); /* stays open: a frame around the thread's first event */
    return mtprof_stack_push(0, said.frame);
}

TEST(scopes_of_calls_may_begin_while_it_is_asked)
{
    mtprof_language tracer = LANGUAGE;
    tracer.stack = tell_after_calls;
    memset(&said, 0, sizeof said);
    said.frame = frame("told");
    REQUIRE_OK(mtprof_set_language(&tracer));
    mtprof_session *s = tv_start(ALL);
    mtprof_end(mtprof_begin(&op_site));
    mtprof_health h;
    trace_view *v = finish(s, &h);
    REQUIRE_EQ_U64(v->n_spans, 2);
    CHECK_EQ_U64(h.stacks_missed, 0);
    CHECK_EQ_U64(h.begins, 2);
    CHECK_EQ_STR(function_of(v, v->spans[1].begin), "told"); /* it comes after the frame */
    tv_free(v);
}

TEST(a_language_may_know_only_one_of_the_two)
{
    mtprof_language half = LANGUAGE;
    half.stack = NULL;
    memset(&said, 0, sizeof said);
    said.module = mtprof_intern("top", 3);
    REQUIRE_OK(mtprof_set_language(&half));
    mtprof_session *s = tv_start(ALL);
    mtprof_end(mtprof_begin(&op_site));
    mtprof_health h;
    trace_view *v = finish(s, &h);
    CHECK_EQ_U64(said.stacks, 0);
    CHECK_EQ_U64(said.modules, 1);
    CHECK_EQ_U64(h.stacks_missed, 0); /* no language has said that it has stacks */
    tv_free(v);
}

TEST(a_shorter_struct_is_taken_as_far_as_it_goes)
{
    mtprof_language old = LANGUAGE;
    old.struct_size = offsetof(mtprof_language, module_path);
    memset(&said, 0, sizeof said);
    said.frame = frame("told");
    REQUIRE_OK(mtprof_set_language(&old));
    mtprof_session *s = tv_start(ALL);
    mtprof_end(mtprof_begin(&op_site));
    CHECK_EQ_U64(said.stacks, 1);
    CHECK_EQ_U64(said.modules, 0);
    tv_free(finish(s, NULL));
}

TEST(what_may_wait_is_asked_of_those_that_wait)
{
    static mtprof_site patient =
        MTPROF_SITE_INIT("patient", MTPROF_KIND_OP | MTPROF_BEGIN_MAY_WAIT);
    mtprof_language language = LANGUAGE;
    language.stack_waiting = tell_stack_waiting;
    language.module_path_waiting = tell_module_waiting;
    memset(&said, 0, sizeof said);
    said.frame = frame("told");
    REQUIRE_OK(mtprof_set_language(&language));
    mtprof_session *s = tv_start(ALL);
    mtprof_op op = {.struct_size = sizeof op};
    uint32_t scope = MTPROF_KIND_SCOPE | MTPROF_BEGIN_MAY_WAIT;
    for (int turn = 0; turn < 2; turn++) {
        mtprof_end(mtprof_begin(&op_site));
        mtprof_end(mtprof_begin_named("named", 5, MTPROF_KIND_SCOPE));
        CHECK_EQ_U64(said.waiting_stacks, turn * 4u);
        mtprof_end(mtprof_begin(&patient));
        mtprof_end(mtprof_op_begin(&patient, &op));
        mtprof_end(mtprof_begin_named("patient", 7, scope));
        mtprof_end(mtprof_op_begin_named("patient", 7, scope, &op));
        CHECK_EQ_U64(said.waiting_stacks, turn * 4u + 4);
    }
    CHECK_EQ_U64(said.stacks, 12);
    CHECK_EQ_U64(said.modules, 6);
    CHECK_EQ_U64(said.waiting_modules, 4); /* of ops */
    trace_view *v = finish(s, NULL);
    REQUIRE_EQ_U64(v->n_spans, 12);
    for (size_t i = 0; i < v->n_spans; i++) {
        CHECK_EQ_STR(function_of(v, v->spans[i].begin), "told");
        CHECK_EQ_U64(v->spans[i].begin->r.aux & ~(uint32_t)(MTPROF_KIND_MASK | MTPROF_FLAG_PAYLOAD),
                     0);
    }
    tv_free(v);
}

TEST(a_language_that_never_waits_is_asked_all_the_same)
{
    mtprof_session *s = start_with(ALL);
    mtprof_end(mtprof_begin_named("patient", 7, MTPROF_KIND_OP | MTPROF_BEGIN_MAY_WAIT));
    mtprof_end(mtprof_op_begin_named("patient", 7, MTPROF_KIND_OP | MTPROF_BEGIN_MAY_WAIT,
                                     &(mtprof_op){.struct_size = sizeof(mtprof_op)}));
    CHECK_EQ_U64(said.stacks, 2);
    CHECK_EQ_U64(said.modules, 1);
    tv_free(finish(s, NULL));
}

/* ---- unknown stacks -------------------------------------------------------------------------- */

TEST(stacks_that_cannot_be_told_are_counted)
{
    mtprof_session *s = start_with(ALL);
    said.frame = 0;
    said.module = 0;
    mtprof_end(mtprof_begin(&scope_site));
    mtprof_end(mtprof_begin(&op_site));
    mtprof_end(mtprof_begin_named("named", 5, MTPROF_KIND_SCOPE));
    mtprof_health h;
    trace_view *v = finish(s, &h);
    CHECK_EQ_U64(h.stacks_missed, 3);
    mtprof_trace_info info = {.struct_size = sizeof info};
    REQUIRE_OK(mtprof_reader_get_info(v->reader, &info));
    CHECK_EQ_U64(info.health[MTPROF_HEALTH_STACKS_MISSED], 3);
    REQUIRE_EQ_U64(v->n_spans, 3);
    CHECK(tv_payload(v, v->spans[1].begin, MTPROF_REC_OPINFO, 0) == NULL);
    tv_free(v);
}

TEST(where_there_is_no_stack_none_is_missed)
{
    mtprof_session *s = start_with(ALL);
    said.none = true;
    mtprof_end(mtprof_begin(&scope_site));
    mtprof_end(mtprof_begin(&op_site));
    mtprof_end(mtprof_begin_named("named", 5, MTPROF_KIND_SCOPE));
    CHECK_EQ_U64(said.stacks, 3);
    CHECK_EQ_U64(said.modules, 1);
    mtprof_health h;
    trace_view *v = finish(s, &h);
    CHECK_EQ_U64(h.stacks_missed, 0);
    REQUIRE_EQ_U64(v->n_spans, 3);
    CHECK_EQ_STR(function_of(v, v->spans[1].begin), "");
    tv_free(v);
}

static void record_in_handler(int number)
{
    (void)number;
    mtprof_end(mtprof_begin(&scope_site));
}

TEST(the_language_is_not_asked_while_it_is_asked)
{
    struct sigaction action = {.sa_handler = record_in_handler}, before;
    REQUIRE(sigaction(SIGUSR1, &action, &before) == 0);
    mtprof_session *s = start_with(ALL);
    said.begins = said.signals = true;
    mtprof_end(mtprof_begin(&op_site));
    CHECK_EQ_U64(said.stacks, 1);
    mtprof_health h;
    trace_view *v = finish(s, &h);
    CHECK_EQ_U64(h.stacks_missed, 2); /* the scope begun there, and the handler's */
    REQUIRE_EQ_U64(v->n_spans, 3);
    CHECK_EQ_STR(function_of(v, v->spans[2].begin), "told");
    tv_free(v);
    sigaction(SIGUSR1, &before, NULL);
}

/* ---- changing it ----------------------------------------------------------------------------- */

TEST(it_cannot_change_while_a_recording_is_under_way)
{
    mtprof_session *s = start_with(ALL);
    CHECK_EQ_I64(mtprof_set_language(NULL), MTPROF_EBUSY);
    CHECK_EQ_I64(mtprof_set_language(&LANGUAGE), MTPROF_EBUSY);
    mtprof_end(mtprof_begin(&op_site));
    CHECK_EQ_U64(said.stacks, 1); /* the one it had */
    tv_free(finish(s, NULL));
    mtprof_language empty = {0};
    CHECK_EQ_I64(mtprof_set_language(&empty), MTPROF_EINVAL);
}

TEST(a_language_taken_away_is_not_asked)
{
    tv_free(finish(start_with(ALL), NULL));
    mtprof_session *s = tv_start(ALL);
    mtprof_end(mtprof_begin(&op_site));
    mtprof_health h;
    trace_view *v = tv_finish(s, &h);
    CHECK_EQ_U64(said.stacks, 0);
    CHECK_EQ_U64(h.stacks_missed, 0);
    tv_free(v);
}

static void *begin_once(void *unused)
{
    (void)unused;
    mtprof_end(mtprof_begin(&op_site));
    return NULL;
}

static void *take_away(void *done)
{
    CHECK_OK(mtprof_set_language(NULL));
    __atomic_store_n((bool *)done, true, __ATOMIC_RELEASE);
    return NULL;
}

TEST(taking_it_away_waits_for_who_is_inside)
{
    mtprof_session *s = start_with(ALL);
    REQUIRE(pipe(said.hold) == 0);
    __atomic_store_n(&said.has_hold, true, __ATOMIC_RELEASE);
    pthread_t inside, changer;
    bool done = false;
    REQUIRE(pthread_create(&inside, NULL, begin_once, NULL) == 0);
    while (__atomic_load_n(&said.has_hold, __ATOMIC_ACQUIRE)) {
        usleep(100);
    }
    trace_view *v = tv_finish(s, NULL); /* does not wait: it is not in the recorder */
    REQUIRE(pthread_create(&changer, NULL, take_away, &done) == 0);
    usleep(20 * 1000);
    CHECK(!__atomic_load_n(&done, __ATOMIC_ACQUIRE));
    REQUIRE(write(said.hold[1], "x", 1) == 1);
    pthread_join(inside, NULL);
    pthread_join(changer, NULL);
    CHECK(done);
    CHECK_EQ_U64(v->n_spans, 0); /* it began after the end */
    close(said.hold[0]);
    close(said.hold[1]);
    tv_free(v);
}

TEST(a_node_of_an_earlier_recording_is_not_used)
{
    mtprof_session *first = start_with(ALL);
    REQUIRE(pipe(said.hold) == 0);
    __atomic_store_n(&said.has_hold, true, __ATOMIC_RELEASE);
    pthread_t inside;
    REQUIRE(pthread_create(&inside, NULL, begin_once, NULL) == 0);
    while (__atomic_load_n(&said.has_hold, __ATOMIC_ACQUIRE)) {
        usleep(100);
    }
    tv_free(tv_finish(first, NULL));
    mtprof_session *second = tv_start(ALL);
    REQUIRE(write(said.hold[1], "x", 1) == 1);
    pthread_join(inside, NULL);
    mtprof_health h;
    trace_view *v = finish(second, &h);
    REQUIRE_EQ_U64(v->n_spans, 1); /* it is of the second, without a stack */
    CHECK_EQ_STR(function_of(v, v->spans[0].begin), "");
    CHECK_EQ_U64(h.stacks_missed, 1);
    close(said.hold[0]);
    close(said.hold[1]);
    tv_free(v);
}

TEST(a_child_keeps_the_language)
{
#if defined(__SANITIZE_THREAD__)
    MT_SKIP("ThreadSanitizer starts no threads after a fork");
#endif
    mtprof_session *s = start_with(ALL);
    mtprof_end(mtprof_begin(&op_site));
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        said.stacks = 0;
        mtprof_config config = {.struct_size = sizeof config, .wants = ALL};
        mtprof_session *own = NULL;
        int ok = mtprof_session_start(&config, &own) == MTPROF_OK;
        mtprof_end(mtprof_begin(&op_site));
        ok = ok && said.stacks == 1 && mtprof_session_close(own) == MTPROF_OK &&
             mtprof_set_language(NULL) == MTPROF_OK;
        _exit(ok ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK_EQ_I64(status, 0);
    tv_free(finish(s, NULL));
}
