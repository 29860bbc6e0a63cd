/* SPDX-License-Identifier: Apache-2.0
 *
 * Signal handlers that record, at any moment, also in the middle of a record: every event is in
 * the trace or counted, the trace is sound, nothing waits for itself.
 */
#include "stress/stress.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>

#ifndef sigev_notify_thread_id
#    define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
    THREADS = 3,
    ROUNDS = STRESS_TSAN ? 1500 : STRESS_SANITIZED ? 8000 : 30000,
    PERIOD_NS = 30000,
    SHORT_THREADS = STRESS_TSAN ? 40 : 300
};

/* What a thread and its handler emitted. The two parts are apart: a handler interrupts an
 * increment. */
typedef struct emitted {
    uint64_t marks;
    uint64_t begins;
    uint64_t tokens; /* begins that gave a token: each is ended */
} emitted;

static __thread emitted *main_part, *handler_part;
static __thread volatile int handler_on;
static uint64_t signals_seen;

static mtprof_site handler_scope = MTPROF_SITE_INIT("handler scope", MTPROF_KIND_SCOPE);
static mtprof_site handler_op = MTPROF_SITE_INIT("handler op", MTPROF_KIND_OP);
static mtprof_site handler_mark = MTPROF_SITE_INIT("handler mark", MTPROF_KIND_SCOPE);
static mtprof_site handler_count = MTPROF_SITE_INIT("handler counter", MTPROF_KIND_SCOPE);

static void end_counted(emitted *e, mtprof_token token)
{
    e->tokens += token != 0;
    mtprof_end(token);
}

static void record_in_handler(int number)
{
    (void)number;
    emitted *e = handler_part;
    if (e == NULL || !handler_on) {
        return;
    }
    static __thread uint32_t turn;
    mtprof_token outer = mtprof_begin(&handler_scope);
    mtprof_instant(&handler_mark);
    mtprof_counter(&handler_count, ++turn);
    e->begins++;
    e->marks += 2;
    if (turn % 4 == 0) {
        char name[] = "handler name 0";
        name[sizeof name - 2] = (char)('0' + turn / 4 % 10);
        mtprof_token named = mtprof_begin_named(name, sizeof name - 1, MTPROF_KIND_SCOPE);
        end_counted(e, named);
        e->begins++;
    } else if (turn % 4 == 1) {
        mtprof_alloc(1, turn, 64, turn, 4096);
        e->marks++;
    } else if (turn % 4 == 2) {
        mtprof_token op = mtprof_begin(&handler_op);
        end_counted(e, op);
        e->begins++;
    } else {
        mtprof_instant_named("handler instant", 15, 0);
        e->marks++;
    }
    end_counted(e, outer);
    stress_add(&signals_seen, 1);
}

static void install(void)
{
    struct sigaction action = {.sa_handler = record_in_handler, .sa_flags = SA_RESTART};
    REQUIRE_EQ_I64(sigaction(SIGUSR1, &action, NULL), 0);
}

static timer_t storm_begins(long period_ns)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    timer_t timer;
    CHECK_EQ_I64(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    struct itimerspec often = {{0, period_ns}, {0, period_ns}};
    CHECK_EQ_I64(timer_settime(timer, 0, &often, NULL), 0);
    return timer;
}

static void storm_ends(timer_t timer)
{
    timer_delete(timer);
    handler_on = 0;
}

static mtprof_session *start_storm(uint64_t wants)
{
    mtprof_config config = {.struct_size = sizeof config, .wants = wants};
    mtprof_session *session = NULL;
    CHECK_OK(mtprof_session_start(&config, &session));
    return session;
}

typedef struct storm_thread {
    emitted main, handler;
    bool waits; /* until everybody is done: others send it signals */
    int rounds;
} storm_thread;

static uint64_t threads_done, leave_now;

static void record_round(emitted *e, int round)
{
    static mtprof_site scope = MTPROF_SITE_INIT("scope", MTPROF_KIND_SCOPE);
    static mtprof_site op = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
    char name[32];
    mtprof_token a = mtprof_begin(&scope);
    mtprof_op details = {.struct_size = sizeof details,
                         .fields = MTPROF_OP_MEMORY | MTPROF_OP_PARENT,
                         .memory_before = 1,
                         .parent = a};
    mtprof_token b = mtprof_op_begin(&op, &details);
    MTPROF_INSTANT("mark");
    MTPROF_COUNTER("counter", round);
    int n = snprintf(name, sizeof name, "name %d", round % 500);
    mtprof_token c = mtprof_begin_named(name, (size_t)n, 0);
    mtprof_alloc(0, (uint64_t)round, 16, 16, 4096);
    end_counted(e, c);
    e->tokens += b != 0;
    mtprof_op_end(b, 0, 2);
    end_counted(e, a);
    e->begins += 3;
    e->marks += 3;
}

static void *storm_run(void *argument)
{
    storm_thread *t = argument;
    main_part = &t->main;
    handler_part = &t->handler;
    handler_on = 1;
    timer_t timer = storm_begins(PERIOD_NS);
    for (int i = 0; i < t->rounds; i++) {
        record_round(main_part, i);
    }
    storm_ends(timer);
    stress_add(&threads_done, 1);
    while (t->waits && stress_get(&leave_now) == 0) {
        stress_rest_us(100);
    }
    return NULL;
}

static void sum(emitted *all, const emitted *part)
{
    all->marks += part->marks;
    all->begins += part->begins;
    all->tokens += part->tokens;
}

static void check_storm(mtprof_session *session, const emitted *e)
{
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    rb_trace t;
    if (rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "signals");
        CHECK_EQ_U64(t.begins + t.others + h.lost, e->begins + e->marks);
        CHECK_EQ_U64(t.n_spans, e->tokens);
        CHECK_EQ_U64(t.open_spans, 0); /* every begin that was kept has been ended */
        CHECK_EQ_U64(h.begins, t.begins);
        CHECK_EQ_U64(h.others, t.others);
        CHECK_EQ_U64(h.truncated, t.open_spans);
        CHECK_EQ_U64(h.lost, h.lost_by[MTPROF_LOST_NESTED]);
        CHECK_EQ_U64(t.ignored_ends, 0);
        printf("%llu signals, %llu events, %llu lost inside the recorder, %llu nested, time went "
               "back %llu times\n",
               (unsigned long long)stress_get(&signals_seen),
               (unsigned long long)(h.begins + h.others), (unsigned long long)h.lost,
               (unsigned long long)(t.kinds[MTPROF_REC_BEGIN_X]), (unsigned long long)t.back);
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
}

static void storm(bool memory)
{
    install();
    mtprof_session *session =
        start_storm(MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS | (memory ? MTPROF_WANT_MEMORY : 0));
    REQUIRE(session != NULL);
    storm_thread threads[THREADS];
    memset(threads, 0, sizeof threads);
    pthread_t ids[THREADS];
    for (int i = 0; i < THREADS; i++) {
        threads[i].waits = true;
        threads[i].rounds = mt_test_long() ? 20 * ROUNDS : ROUNDS;
        ids[i] = stress_thread(storm_run, &threads[i]);
    }
    /* Timers come a few thousand times a second; this comes as often as the machine can. */
    while (stress_get(&threads_done) < THREADS) {
        for (int i = 0; i < THREADS; i++) {
            pthread_kill(ids[i], SIGUSR1);
        }
    }
    stress_add(&leave_now, 1);
    emitted all = {0};
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        sum(&all, &threads[i].main);
        sum(&all, &threads[i].handler);
    }
    CHECK(stress_get(&signals_seen) > 100);
    check_storm(session, &all);
}

TEST(storm_over_all_kinds)
{
    storm(false);
}

TEST(storm_over_ops_with_memory)
{
    storm(true);
}

/* ---- the first event of a thread ---- */

static void *first_in_handler(void *argument)
{
    storm_thread *t = argument;
    handler_part = &t->handler;
    handler_on = 1;
    pthread_kill(pthread_self(), SIGUSR1);
    record_round(&t->main, 1);
    return NULL;
}

TEST(first_event_in_a_handler)
{
    install();
    mtprof_session *session = start_storm(MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS);
    REQUIRE(session != NULL);
    storm_thread t;
    memset(&t, 0, sizeof t);
    for (int i = 0; i < 100; i++) {
        pthread_join(stress_thread(first_in_handler, &t), NULL);
    }
    emitted all = t.main;
    sum(&all, &t.handler);
    CHECK_EQ_U64(stress_get(&signals_seen), 100);
    CHECK_EQ_U64(stress_health(session).threads, 100);
    check_storm(session, &all);
}

/* Many threads that only just begin, under fire: a handler may come between taking a slot and
 * knowing it. */
TEST(short_threads_in_a_storm)
{
    install();
    mtprof_session *session = start_storm(MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS);
    REQUIRE(session != NULL);
    emitted all = {0};
    for (int i = 0; i < SHORT_THREADS; i += 4) {
        storm_thread threads[4];
        memset(threads, 0, sizeof threads);
        pthread_t ids[4];
        for (int j = 0; j < 4; j++) {
            threads[j].rounds = 20;
            ids[j] = stress_thread(storm_run, &threads[j]);
        }
        for (int j = 0; j < 4; j++) {
            pthread_join(ids[j], NULL);
            sum(&all, &threads[j].main);
            sum(&all, &threads[j].handler);
        }
    }
    check_storm(session, &all);
}

/* ---- a handler that comes in the middle of malloc ---- */

static void *allocate_run(void *argument)
{
    storm_thread *t = argument;
    handler_part = &t->handler;
    handler_on = 1;
    timer_t timer = storm_begins(PERIOD_NS);
    void *blocks[64] = {NULL};
    for (int i = 0; i < t->rounds * 20; i++) {
        free(blocks[i % 64]);
        blocks[i % 64] = malloc((size_t)(i * 37 % 3000) + 1);
    }
    storm_ends(timer);
    for (int i = 0; i < 64; i++) {
        free(blocks[i]);
    }
    return NULL;
}

TEST(handler_inside_malloc)
{
    install();
    mtprof_session *session = start_storm(MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS);
    REQUIRE(session != NULL);
    storm_thread threads[THREADS];
    memset(threads, 0, sizeof threads);
    pthread_t ids[THREADS];
    emitted all = {0};
    for (int i = 0; i < THREADS; i++) {
        threads[i].rounds = ROUNDS;
        ids[i] = stress_thread(allocate_run, &threads[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        sum(&all, &threads[i].handler);
    }
    check_storm(session, &all);
}

/* ---- a handler while the thread controls a session ---- */

TEST(handler_while_sessions_come_and_go)
{
    install();
    static emitted sink;
    handler_part = &sink;
    handler_on = 1;
    timer_t timer = storm_begins(PERIOD_NS * 5); /* leaves time for something else */
    for (int i = 0; i < 60; i++) {
        mtprof_session *session = start_storm(MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS);
        if (session == NULL) {
            break;
        }
        for (int j = 0; j < 50; j++) {
            MTPROF_SCOPE("between");
        }
        CHECK_OK(mtprof_session_pause(session));
        CHECK_OK(mtprof_session_resume(session, 0));
        CHECK_OK(mtprof_session_add_metadata(session, "k", 1, "v", 1, false));
        CHECK_OK(mtprof_session_stop(session));
        rb_trace t;
        if (rb_open_session(&t, session, NULL, NULL)) {
            rb_check_clean(&t, "session under signals");
            mtprof_health h = stress_health(session);
            CHECK_EQ_U64(h.begins, t.begins);
            CHECK_EQ_U64(h.others, t.others);
            CHECK_EQ_U64(h.busy_at_stop, 0);
            rb_close(&t);
        }
        CHECK_OK(mtprof_session_close(session));
    }
    storm_ends(timer);
    CHECK(stress_get(&signals_seen) > 20);
}
