/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread that is caught in the middle of a record when recording ends, as a debugger would: the
 * stop does not wait for it, and whenever it wakes up it harms nothing.
 */
#include "fault/fault.h"
#include "mtprof/record/recording.h"
#include "stress/hold_helper.h"

#include <semaphore.h>
#include <sys/mman.h>

enum {
    AFTER = 2000
};

enum wakes {
    BEFORE_STOP_ENDS, /* never really stuck */
    BEFORE_CLOSE,
    AFTER_CLOSE,
    IN_NEXT_SESSION
};

/* ---- a thread that is stuck in a system call of its own slow path ---- */

static sem_t inside, go_on;
static uint64_t stop_next_map;
static __thread bool may_stop;

static void *blocking_map(size_t bytes, int fd, off_t offset)
{
    if (may_stop && __atomic_exchange_n(&stop_next_map, 0, __ATOMIC_ACQ_REL) == 1) {
        sem_post(&inside);
        while (sem_wait(&go_on) != 0) {
        }
    }
    return mtprof__system_default.map(bytes, fd, offset);
}

typedef struct stuck_thread {
    sem_t wake, done;
    uint64_t leave;
} stuck_thread;

static void record_some(int count)
{
    for (int i = 0; i < count; i++) {
        MTPROF_SCOPE("stuck thread's scope");
        MTPROF_COUNTER("stuck thread's counter", i);
    }
}

/* ---- a thread whose record is half done ---- */

/* What store_begin does up to a point, then a long sleep, then the rest. */
static void half_a_record(stuck_thread *t)
{
    mtprof__writer *w = mtprof__mine;
    REQUIRE(w != NULL);
    CHECK(mtprof__enter(w));
    uint64_t *at = mtprof__reserve(w, 2, 1, false);
    REQUIRE(at != NULL);
    mtprof__put(at, mtprof__word0(MTPROF_REC_TIME, 2, 0, 0));
    sem_post(&t->done);
    while (sem_wait(&t->wake) != 0) {
    }
    mtprof__put(at + 1, mtprof__ticks());
    mtprof__publish(w, at + 2);
    mtprof__leave(w);
    sem_post(&t->done);
}

static void *half_way(void *argument)
{
    stuck_thread *t = argument;
    record_some(1000);
    half_a_record(t);
    /* Then it records what it is asked to, until it may end. */
    for (;;) {
        while (sem_wait(&t->wake) != 0) {
        }
        if (t->leave != 0) {
            return NULL;
        }
        record_some(AFTER);
        sem_post(&t->done);
    }
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0) {
    }
}

static void wake(stuck_thread *t)
{
    sem_post(&t->wake);
    wait_for(&t->done);
}

/* A session in which the thread records normally. */
static void check_next_session(stuck_thread *t, const char *path, bool wakes_inside)
{
    mtprof_session *session = stress_start(path, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    MTPROF_INSTANT("next session");
    if (wakes_inside) {
        wake(t);
    }
    wake(t);
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.busy_at_stop, 0);
    CHECK_EQ_U64(h.begins, AFTER);
    CHECK_EQ_U64(h.others, AFTER + 1);
    CHECK_EQ_U64(h.truncated, 0);
    rb_trace trace;
    if (rb_open_session(&trace, session, NULL, NULL)) {
        rb_check_clean(&trace, "session after a stuck thread");
        CHECK_EQ_U64(trace.begins, AFTER);
        CHECK_EQ_U64(trace.others, AFTER + 1);
        CHECK_EQ_U64(trace.kinds[MTPROF_REC_TIME], 0);
        rb_close(&trace);
    }
    CHECK_OK(mtprof_session_close(session));
    if (path != NULL) {
        rb_check_file(path, false);
    }
}

static void stuck(const char *first, const char *second, enum wakes wakes)
{
    stuck_thread t = {.leave = 0};
    sem_init(&t.wake, 0, 0);
    sem_init(&t.done, 0, 0);
    mtprof_session *session = stress_start(first, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    pthread_t thread = stress_thread(half_way, &t);
    wait_for(&t.done); /* it is in the middle now */
    if (wakes == BEFORE_STOP_ENDS) {
        wake(&t);
    }
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.busy_at_stop, wakes != BEFORE_STOP_ENDS);
    CHECK_EQ_U64(h.begins, 1000);
    CHECK_EQ_U64(h.others, 1000);
    if (wakes == BEFORE_CLOSE) {
        wake(&t);
    }
    rb_trace trace;
    if (rb_open_session(&trace, session, NULL, NULL)) {
        rb_check_clean(&trace, "stopped around a stuck thread");
        CHECK_EQ_U64(trace.begins, 1000);
        rb_close(&trace);
    }
    CHECK_OK(mtprof_session_close(session));
    if (first != NULL) {
        rb_check_file(first, false);
    }
    if (wakes == AFTER_CLOSE) {
        wake(&t);
        if (first != NULL) {
            rb_check_file(first, false);
        }
    }
    /* Many, so that memory of the first is used again. */
    check_next_session(&t, second, wakes == IN_NEXT_SESSION);
    for (int i = 0; i < 10; i++) {
        check_next_session(&t, second, false);
    }
    if (first != NULL && second == NULL) {
        rb_check_file(first, false);
    }
    t.leave = 1;
    sem_post(&t.wake);
    pthread_join(thread, NULL);
}

static void stuck_everywhere(enum wakes wakes)
{
    char a[STRESS_PATH], b[STRESS_PATH];
    stress_path(a, "a.mtt");
    stress_path(b, "b.mtt");
    stuck(NULL, NULL, wakes);
    stuck(a, NULL, wakes);
    stuck(a, b, wakes);
    stuck(NULL, b, wakes);
}

TEST(not_stuck_at_all)
{
    stuck_everywhere(BEFORE_STOP_ENDS);
}

TEST(wakes_before_close)
{
    stuck_everywhere(BEFORE_CLOSE);
}

TEST(wakes_after_close)
{
    stuck_everywhere(AFTER_CLOSE);
}

TEST(wakes_in_the_next_session)
{
    stuck_everywhere(IN_NEXT_SESSION);
}

/* A pause does not wait for the thread either, and it continues in the next epoch. */
TEST(stuck_at_a_pause)
{
    stuck_thread t = {.leave = 0};
    sem_init(&t.wake, 0, 0);
    sem_init(&t.done, 0, 0);
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    pthread_t thread = stress_thread(half_way, &t);
    wait_for(&t.done);
    CHECK_OK(mtprof_session_pause(session));
    CHECK_EQ_U64(stress_health(session).busy_at_stop, 1);
    CHECK_OK(mtprof_session_resume(session, 0));
    wake(&t); /* ends its record in the new epoch */
    wake(&t);
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.begins, 1000 + AFTER);
    rb_trace trace;
    if (rb_open_session(&trace, session, NULL, NULL)) {
        rb_check_clean(&trace, "paused around a stuck thread");
        CHECK_EQ_U64(trace.begins, h.begins);
        CHECK_EQ_U64(trace.others, h.others);
        CHECK_EQ_U64(trace.open_spans, 0);
        rb_close(&trace);
    }
    CHECK_OK(mtprof_session_close(session));
    t.leave = 1;
    sem_post(&t.wake);
    pthread_join(thread, NULL);
}

/* ---- in a system call ---- */

static void *stuck_in_map(void *argument)
{
    uint64_t *events = argument;
    may_stop = true;
    for (uint64_t i = 0; i < 400000; i++) {
        MTPROF_INSTANT("mark");
        stress_add(events, 1);
    }
    return NULL;
}

/* The helper is held, so the thread has to map its own memory, and stays in there. */
TEST(stuck_in_a_system_call)
{
    sem_init(&inside, 0, 0);
    sem_init(&go_on, 0, 0);
    mtprof__system.map = blocking_map;
    hold_prepare();
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    hold_begin();
    uint64_t events = 0;
    __atomic_store_n(&stop_next_map, 1, __ATOMIC_RELEASE);
    pthread_t thread = stress_thread(stuck_in_map, &events);
    wait_for(&inside);
    hold_end();
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.busy_at_stop, 1);
    CHECK_EQ_U64(h.others, stress_get(&events)); /* the one under way is not there */
    rb_trace trace;
    if (rb_open_session(&trace, session, NULL, NULL)) {
        rb_check_clean(&trace, "stopped around a stuck thread");
        CHECK_EQ_U64(trace.others, h.others);
        rb_close(&trace);
    }
    sem_post(&go_on);
    pthread_join(thread, NULL);
    CHECK_OK(mtprof_session_close(session));
    hold_forget();
    session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    MTPROF_INSTANT("mark");
    CHECK_EQ_U64(stress_health(session).others, 1);
    CHECK_OK(mtprof_session_close(session));
}
