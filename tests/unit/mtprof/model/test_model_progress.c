/* SPDX-License-Identifier: Apache-2.0
 *
 * Making a model's columns while another thread asks for progress: giving up, trying again, asking
 * from inside, asking from another thread. The columns are made by several threads here.
 */
#include "harness/mt_test.h"

#include <mtprof/mtprof.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    THREADS = 4,
    SCOPES = 40000,
    LEAST_CALLS = 3 /* while it is sorted; how many while it is read is the scheduler's */
};

static pthread_barrier_t together;

static void *record(void *unused)
{
    (void)unused;
    (void)pthread_barrier_wait(&together); /* a slot each: none ends before all have begun */
    for (int i = 0; i < SCOPES; i++) {
        MTPROF_SCOPE("scope");
    }
    (void)pthread_barrier_wait(&together);
    return NULL;
}

/* A stopped session of several slots. */
static mtprof_session *recorded(void)
{
    mtprof_config config = {.struct_size = sizeof config};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    REQUIRE_EQ_I64(pthread_barrier_init(&together, NULL, THREADS), 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        REQUIRE_EQ_I64(pthread_create(&threads[i], NULL, record, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        REQUIRE_EQ_I64(pthread_join(threads[i], NULL), 0);
    }
    (void)pthread_barrier_destroy(&together);
    CHECK_OK(mtprof_session_stop(session));
    return session;
}

/* A second thread, started while the first makes the columns. */
typedef struct other {
    mtprof_model *model;
    pthread_t thread;
    bool makes_it;
    uint64_t events;
} other;

typedef struct asking {
    mtprof_model *model;
    int calls;
    _Atomic(int) give_up_at; /* 0: never */
    mtprof_status inside;    /* what the model said from inside */
    pthread_t thread;        /* who asks */
    other *other;            /* to be started at the first call; NULL: none */
} asking;

static void *ask_too(void *context)
{
    other *o = context;
    mtprof_model_findings findings = {.struct_size = sizeof findings};
    CHECK_OK(mtprof_model_get_findings(o->model, &findings));
    o->events = findings.events;
    return NULL;
}

static int ask(void *user, const char *what, uint64_t done, uint64_t total)
{
    asking *a = user;
    CHECK(what != NULL && (total == 0 || done <= total));
    bool own = pthread_equal(a->thread, pthread_self()) != 0; /* model.h: the thread that asked */
    CHECK(own || (a->other != NULL && a->other->makes_it));
    if (!own) {
        return 0;
    }
    a->calls++;
    if (a->other != NULL && a->calls == 1) {
        REQUIRE_EQ_I64(pthread_create(&a->other->thread, NULL, ask_too, a->other), 0);
    }
    mtprof_model_findings findings = {.struct_size = sizeof findings};
    a->inside = mtprof_model_get_findings(a->model, &findings);
    return a->give_up_at != 0 && a->calls >= a->give_up_at;
}

static mtprof_model *model_of(mtprof_session *session, asking *a)
{
    mtprof_model_options options = {
        .struct_size = sizeof options, .workers = THREADS, .progress = ask, .user = a};
    *a = (asking){.thread = pthread_self()};
    REQUIRE_OK(mtprof_model_from_session(session, &options, &a->model));
    return a->model;
}

static uint64_t count(mtprof_model *model, mtprof_status expected)
{
    mtprof_model_findings findings = {.struct_size = sizeof findings};
    CHECK_EQ_I64(mtprof_model_get_findings(model, &findings), expected);
    return findings.events;
}

TEST(giving_up_and_trying_again)
{
    mtprof_session *session = recorded();
    asking a;
    mtprof_model *whole = model_of(session, &a);
    CHECK_EQ_U64(count(whole, MTPROF_OK), THREADS * SCOPES);
    CHECK(a.calls >= LEAST_CALLS);
    mtprof_model_free(whole);
    for (int at = 1; at <= LEAST_CALLS; at++) {
        mtprof_model *model = model_of(session, &a);
        a.give_up_at = at;
        (void)count(model, MTPROF_ECALLBACK);
        CHECK(a.calls >= at);
        a.give_up_at = 0;
        CHECK_EQ_U64(count(model, MTPROF_OK), THREADS * SCOPES);
        mtprof_model_free(model);
    }
    CHECK_OK(mtprof_session_close(session));
}

TEST(the_model_in_the_making_is_busy)
{
    mtprof_session *session = recorded();
    asking a;
    mtprof_model *model = model_of(session, &a);
    CHECK_EQ_U64(count(model, MTPROF_OK), THREADS * SCOPES);
    CHECK_EQ_I64(a.inside, MTPROF_EBUSY); /* and not a thread that waits for itself */
    mtprof_model_free(model);
    CHECK_OK(mtprof_session_close(session));
}

TEST(others_wait_for_who_makes_it)
{
    mtprof_session *session = recorded();
    for (int give_up = 0; give_up < 2; give_up++) {
        asking a;
        other o = {.events = 0};
        mtprof_model *model = model_of(session, &a);
        o.model = model;
        a.other = &o;
        a.give_up_at = give_up; /* the waiting thread then makes it itself */
        o.makes_it = give_up != 0;
        (void)count(model, give_up != 0 ? MTPROF_ECALLBACK : MTPROF_OK);
        REQUIRE_EQ_I64(pthread_join(o.thread, NULL), 0);
        CHECK_EQ_U64(o.events, THREADS * SCOPES);
        mtprof_model_free(model);
    }
    CHECK_OK(mtprof_session_close(session));
}
