/* SPDX-License-Identifier: Apache-2.0
 *
 * One session after another, with the same threads and places: nothing of one shows up in the
 * next, and nothing is leaked.
 */
#include "stress/stress.h"

#include <semaphore.h>

enum {
    THREADS = 3,
    CYCLES = 300,
    MARKS = 50
};

typedef struct worker {
    sem_t go, done;
    uint64_t leave;
} worker;

static void record_some(void)
{
    for (int i = 0; i < MARKS; i++) {
        MTPROF_SCOPE("cycle scope");
        MTPROF_COUNTER("cycle counter", i);
        mtprof_end(mtprof_begin_named("cycle name", 10, 0));
    }
}

static void *work(void *argument)
{
    worker *w = argument;
    for (;;) {
        while (sem_wait(&w->go) != 0) {
        }
        if (w->leave != 0) {
            return NULL;
        }
        record_some();
        sem_post(&w->done);
    }
}

static void all_work(worker *workers)
{
    for (int i = 0; i < THREADS; i++) {
        sem_post(&workers[i].go);
    }
    for (int i = 0; i < THREADS; i++) {
        while (sem_wait(&workers[i].done) != 0) {
        }
    }
}

static int count_maps(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    int lines = 0;
    int c;
    while (file != NULL && (c = fgetc(file)) != EOF) {
        lines += c == '\n';
    }
    if (file != NULL) {
        fclose(file);
    }
    return lines;
}

static void one_cycle(worker *workers, const char *path, uint32_t policy, bool look)
{
    mtprof_session *session =
        stress_start(path, policy, policy == MTPROF_POLICY_SPILL ? 0 : 1 << 20);
    REQUIRE(session != NULL);
    all_work(workers);
    CHECK_OK(mtprof_session_pause(session));
    all_work(workers); /* not recorded */
    CHECK_OK(mtprof_session_resume(session, 0));
    all_work(workers);
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.threads, THREADS);
    CHECK_EQ_U64(h.begins, 2ul * 2 * MARKS * THREADS);
    CHECK_EQ_U64(h.others, 2ul * MARKS * THREADS);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(h.truncated, 0);
    rb_trace t;
    if (look && rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "cycle");
        CHECK_EQ_U64(t.begins, h.begins);
        CHECK_EQ_U64(t.others, h.others);
        CHECK_EQ_U64(t.open_spans, 0);
        CHECK_EQ_U64(mtprof_reader_thread_count(t.reader), THREADS);
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
}

static void workers_begin(worker *workers, pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++) {
        memset(&workers[i], 0, sizeof workers[i]);
        sem_init(&workers[i].go, 0, 0);
        sem_init(&workers[i].done, 0, 0);
        threads[i] = stress_thread(work, &workers[i]);
    }
}

static void workers_end(worker *workers, const pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++) {
        workers[i].leave = 1;
        sem_post(&workers[i].go);
        pthread_join(threads[i], NULL);
    }
}

TEST(three_hundred_sessions)
{
    char path[STRESS_PATH];
    stress_path(path, "cycle.mtt");
    worker workers[THREADS];
    pthread_t threads[THREADS];
    workers_begin(workers, threads);
    int fds = 0, maps = 0;
    for (int i = 0; i < CYCLES; i++) {
        if (i == 30) { /* what is made once has been made */
            fds = stress_entries("/proc/self/fd");
            maps = count_maps();
        }
        one_cycle(workers, i % 2 == 0 ? NULL : path, (uint32_t)(i / 2) % 3, i % 10 < 2);
    }
    CHECK_EQ_I64(stress_entries("/proc/self/fd"), fds);
    if (!STRESS_SANITIZED) { /* they map as they please */
        int now = count_maps();
        printf("%d mappings after 30 sessions, %d after %d\n", maps, now, CYCLES);
        CHECK(now <= maps + 4);
    }
    rb_check_file(path, true);
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), 1);
    workers_end(workers, threads);
}

/* More epochs than a token's epoch byte can distinguish. */
TEST(a_thousand_pauses)
{
    static mtprof_site site = MTPROF_SITE_INIT("paused over", MTPROF_KIND_SCOPE);
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    mtprof_token old[1000];
    for (int i = 0; i < 1000; i++) {
        old[i] = mtprof_begin(&site);
        CHECK(old[i] != 0);
        if (i >= 1) {
            mtprof_end(old[i - 1]); /* of the epoch before: over */
        }
        if (i >= 255) {
            mtprof_end(old[i - 255]); /* looks like one of this epoch */
        }
        CHECK_OK(mtprof_session_pause(session));
        CHECK_OK(mtprof_session_resume(session, 0));
    }
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.begins, 1000);
    rb_trace t;
    if (rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "pauses");
        CHECK_EQ_U64(t.n_spans, 1000);
        CHECK_EQ_U64(t.open_spans, 1000);
        CHECK_EQ_U64(h.truncated, t.open_spans);
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(session));
}
