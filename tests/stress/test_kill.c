/* SPDX-License-Identifier: Apache-2.0
 *
 * kill -9 at random moments: what a thread had finished recording is in the file, in order, and
 * nothing else is.
 *
 * Four threads of a child number their events and publish, in memory shared with the parent, the
 * last number they were done with. The file must hold 1 … k of each thread with k at least that
 * number, and at most one more (the one that was under way).
 */
#include "stress/stress.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
    THREADS = 4,
    RUNS = 200,
    RUNS_SHORT = 40,
    PYTHON_RUNS = 4,
    PYTHON_MAX_RECORDS = 20000,
    TAG_SHIFT = 40
};

/* Shared with the child. */
typedef struct board {
    uint64_t recording; /* threads that have recorded something */
    uint64_t done[THREADS];
} board;

typedef struct kill_thread {
    board *shared;
    uint64_t tag;
    uint32_t key;
    uint32_t variant;
} kill_thread;

enum {
    PLAIN,
    NAMED,  /* every scope has a name of its own */
    COMINGS /* threads end and others take over */
};

static void record_one(const kill_thread *t, uint64_t number)
{
    static mtprof_site scope = MTPROF_SITE_INIT("kill scope", MTPROF_KIND_SCOPE);
    static mtprof_site counter = MTPROF_SITE_INIT("kill counter", MTPROF_KIND_SCOPE);
    uint64_t value = t->tag << TAG_SHIFT | number;
    mtprof_token token;
    if (t->variant == NAMED) {
        char name[48];
        int length = snprintf(name, sizeof name, "n%llu", (unsigned long long)value);
        token = mtprof_begin_named(name, (size_t)length, MTPROF_KIND_SCOPE);
    } else {
        token = mtprof_begin(&scope);
    }
    mtprof_meta_int(token, t->key, (int64_t)value);
    mtprof_counter(&counter, (int64_t)value);
    mtprof_end(token);
}

static void *record_some(void *argument)
{
    const kill_thread *t = argument;
    uint64_t from = __atomic_load_n(&t->shared->done[t->tag], __ATOMIC_RELAXED);
    uint64_t last = t->variant == COMINGS ? from + 300 : UINT64_MAX;
    for (uint64_t n = from + 1; n <= last; n++) {
        record_one(t, n);
        __atomic_store_n(&t->shared->done[t->tag], n, __ATOMIC_RELEASE);
        if (n == 1) {
            stress_add(&t->shared->recording, 1);
        }
    }
    return NULL;
}

static void *record_for_ever(void *argument)
{
    const kill_thread *t = argument;
    while (t->variant == COMINGS) {
        pthread_join(stress_thread(record_some, argument), NULL);
    }
    return record_some(argument);
}

static _Noreturn void be_killed(const char *path, board *shared, uint32_t variant)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    kill_thread threads[THREADS];
    uint32_t key = mtprof_intern("number", 6);
    if (stress_start(path, MTPROF_POLICY_SPILL, 0) == NULL) {
        _exit(1);
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        threads[i] = (kill_thread){shared, i, key, variant};
        stress_thread(record_for_ever, &threads[i]);
    }
    for (;;) {
        pause();
    }
}

/* What the file says of each thread. */
typedef struct found {
    uint64_t counters[THREADS], metas[THREADS], named[THREADS];
    uint64_t wrong;
} found;

static void expect_next(found *f, uint64_t *last, uint64_t value)
{
    uint64_t tag = value >> TAG_SHIFT;
    uint64_t number = value & (((uint64_t)1 << TAG_SHIFT) - 1);
    if (tag >= THREADS || number != last[tag] + 1) {
        f->wrong++;
    } else {
        last[tag] = number;
    }
}

static void look(void *context, const rb_trace *trace, const mtprof_stream_info *stream,
                 const mtprof_record *r)
{
    found *f = context;
    unsigned long long value;
    if (stream->kind != MTPROF_STREAM_THREAD) {
        return;
    }
    if (r->kind == MTPROF_REC_COUNTER) {
        expect_next(f, f->counters, r->words[1]);
    } else if (r->kind == MTPROF_REC_META) {
        expect_next(f, f->metas, r->words[0]);
    } else if (r->kind == MTPROF_REC_BEGIN && r->arg != 0 &&
               sscanf(rb_name(trace, r->arg), "n%llu", &value) == 1) {
        expect_next(f, f->named, value);
    } else if (r->kind == MTPROF_REC_NAME &&
               sscanf((const char *)(r->words + 1), "n%llu", &value) == 1) {
        expect_next(f, f->named, value);
    }
}

/* In COMINGS the events of a number's thread lie in several slots: only totals can be compared. */
static void look_unordered(void *context, const rb_trace *trace, const mtprof_stream_info *stream,
                           const mtprof_record *r)
{
    (void)trace;
    found *f = context;
    if (stream->kind == MTPROF_STREAM_THREAD && r->kind == MTPROF_REC_COUNTER) {
        f->counters[r->words[1] >> TAG_SHIFT & (THREADS - 1)]++;
    } else if (stream->kind == MTPROF_STREAM_THREAD && r->kind == MTPROF_REC_META) {
        f->metas[r->words[0] >> TAG_SHIFT & (THREADS - 1)]++;
    }
}

static void check_thread(const board *shared, const found *f, uint32_t variant, int i)
{
    uint64_t done = shared->done[i];
    CHECK(f->counters[i] >= done && f->counters[i] <= done + 1);
    CHECK(f->metas[i] >= done && f->metas[i] <= done + 1);
    CHECK(f->metas[i] >= f->counters[i]); /* it was recorded before the counter */
    if (variant == NAMED) {
        CHECK(f->named[i] >= done && f->named[i] <= done + 1);
    }
}

static uint64_t events_seen, python_seen;

static bool check_file(const char *path, const board *shared, uint32_t variant)
{
    rb_trace t;
    found f = {.wrong = 0};
    if (!rb_open(&t, path, variant == COMINGS ? look_unordered : look, &f)) {
        return false;
    }
    bool clean = rb_check_clean(&t, "killed") && CHECK(!t.info.closed) &&
                 CHECK_EQ_U64(f.wrong, 0) && CHECK_EQ_U64(t.ignored_ends, 0);
    uint64_t done = 0;
    for (int i = 0; i < THREADS; i++) {
        check_thread(shared, &f, variant, i);
        done += shared->done[i];
    }
    CHECK(t.n_spans >= done && t.n_spans <= done + THREADS);
    CHECK(t.n_spans - t.open_spans >= done);
    uint64_t records, problems;
    if (python_seen < PYTHON_RUNS && t.records < PYTHON_MAX_RECORDS) {
        if (CHECK(rb_python(path, &records, &problems))) {
            python_seen++;
            CHECK_EQ_U64(records, t.records);
            CHECK_EQ_U64(problems, 0);
        }
    }
    events_seen += t.records;
    rb_close(&t);
    return clean;
}

static bool one_run(const char *path, board *shared, uint32_t variant, long wait_us)
{
    memset(shared, 0, sizeof *shared);
    pid_t child = fork();
    if (child == 0) {
        be_killed(path, shared, variant);
    }
    REQUIRE(child > 0);
    int status;
    while (__atomic_load_n(&shared->recording, __ATOMIC_ACQUIRE) == 0) {
        REQUIRE_EQ_I64(waitpid(child, &status, WNOHANG), 0);
        stress_rest_us(50);
    }
    stress_rest_us(wait_us);
    kill(child, SIGKILL);
    REQUIRE_EQ_I64(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return check_file(path, shared, variant);
}

TEST(killed_at_random_moments)
{
    uint64_t seed = mt_test_seed();
    int runs = mt_test_long() || !STRESS_SANITIZED ? RUNS : RUNS_SHORT;
    char path[STRESS_PATH];
    stress_path(path, "killed.mtt");
    board *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    printf("%d of %d moments, seed %llu\n", runs, RUNS, (unsigned long long)seed);
    for (int run = 0; run < runs; run++) {
        long range = run % 8 == 7 ? 30000 : run < PYTHON_RUNS ? 1 : 4000;
        long wait_us = (long)(mt_test_random(&seed) % (uint64_t)range);
        if (!one_run(path, shared, (uint32_t)run % 3, wait_us)) {
            FAIL("run %d, variant %d, killed after %ld us", run, run % 3, wait_us);
            break;
        }
    }
    printf("%llu records read back, %llu files also by the second reader\n",
           (unsigned long long)events_seen, (unsigned long long)python_seen);
    CHECK(python_seen > 0);
    munmap(shared, sizeof *shared);
}

/* The file of a killed process does not keep others from the path. */
TEST(path_is_free_after_a_kill)
{
    char path[STRESS_PATH];
    stress_path(path, "again.mtt");
    board *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    one_run(path, shared, PLAIN, 100);
    mtprof_session *session = stress_start(path, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    MTPROF_INSTANT("after");
    CHECK_OK(mtprof_session_close(session));
    rb_check_file(path, true);
    munmap(shared, sizeof *shared);
}
