/* SPDX-License-Identifier: Apache-2.0
 *
 * fork: the child has no session, harms nothing of the parent's, and may record on its own; the
 * parent does not notice.
 */
#include "mtprof/record/sys.h"
#include "stress/stress.h"

#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum {
    FORKS = 40,
    CHILD_MARKS = 100,
    RECORDERS = 2,
    FORKERS = 4
};

static uint64_t leave_now, arrived;

typedef struct recorder {
    uint64_t marks, begins, ends;
} recorder;

static void *record_until_told(void *argument)
{
    recorder *r = argument;
    static mtprof_site site = MTPROF_SITE_INIT("parent scope", MTPROF_KIND_SCOPE);
    stress_add(&arrived, 1);
    while (stress_get(&leave_now) == 0) {
        mtprof_token token = mtprof_begin(&site);
        MTPROF_INSTANT("parent mark");
        mtprof_end(token);
        r->marks++;
        r->begins += token != 0;
        if (r->marks % 64 == 0) {
            stress_rest_us(20); /* keeps the trace small */
        }
    }
    return NULL;
}

/* ---- what a child does ---- */

static void child_handles(mtprof_session *inherited)
{
    mtprof_health health = {.struct_size = sizeof health};
    mtprof_bytes bytes = {.struct_size = sizeof bytes};
    MTPROF_INSTANT("child mark into nothing");
    CHECK_EQ_U64(mtprof_i_gate, 0);
    CHECK_EQ_I64(mtprof_session_stop(inherited), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_session_pause(inherited), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_session_resume(inherited, 0), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_session_window_open(inherited, 0, 0), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_session_window_close(inherited, true), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_session_step(inherited, 1, 0), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_session_clear(inherited), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_session_add_metadata(inherited, "k", 1, "v", 1, false), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_session_get_health(inherited, &health), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_session_get_bytes(inherited, &bytes), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_session_save(inherited, "/tmp/never.mtt"), MTPROF_ESTATE);
    CHECK_OK(mtprof_session_close(inherited));
}

/* A session of the child's own: what it records is there, and nothing of the parent's is. */
static void child_session(const char *path)
{
    mtprof_session *own = stress_start(path, MTPROF_POLICY_SPILL, 0);
    if (own == NULL) {
        return;
    }
    for (int i = 0; i < CHILD_MARKS; i++) {
        MTPROF_SCOPE("child scope");
        MTPROF_INSTANT("child mark");
    }
    CHECK_OK(mtprof_session_stop(own));
    mtprof_health h = stress_health(own);
    CHECK_EQ_U64(h.begins, CHILD_MARKS);
    CHECK_EQ_U64(h.others, CHILD_MARKS);
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(h.threads, 1);
    rb_trace t;
    if (rb_open_session(&t, own, NULL, NULL)) {
        rb_check_clean(&t, "child");
        CHECK_EQ_U64(t.n_spans, CHILD_MARKS);
        CHECK_EQ_U64(t.open_spans, 0);
        CHECK_EQ_U64(t.kinds[MTPROF_REC_INSTANT], CHILD_MARKS);
        CHECK_EQ_U64(t.info.pid, (uint64_t)getpid());
        rb_close(&t);
    }
    CHECK_OK(mtprof_session_close(own));
    if (path != NULL) {
        rb_check_file(path, false);
    }
}

static void wait_child(pid_t child)
{
    int status = -1;
    CHECK_EQ_I64(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        FAIL("child %ld: status 0x%x", (long)child, (unsigned)status);
    }
}

/*
 * TSan does not let the child of a threaded process start threads. ASan's allocator does not
 * survive a fork while another thread is in it, so there no thread may allocate at a fork.
 */
static bool others_allocate;

static bool children_may_record(void)
{
    return !STRESS_TSAN && !(STRESS_SANITIZED && others_allocate);
}

/* Threads that are about to begin allocate: wait until they are there. */
static void wait_for_arrivals(uint64_t count)
{
    while (stress_get(&arrived) < count) {
        stress_rest_us(100);
    }
}

static void fork_once(mtprof_session *session, int number)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        char path[STRESS_PATH];
        snprintf(path, sizeof path, "%s/child-%d-%d.mtt", mt_test_tmpdir(), getpid(), number);
        if (session != NULL) {
            child_handles(session);
        }
        if (children_may_record()) {
            child_session(number % 2 == 0 ? NULL : path);
            child_session(number % 2 == 0 ? path : NULL);
        }
        fflush(stdout);
        _exit(0);
    }
    if (CHECK(child > 0)) {
        wait_child(child);
    }
}

/* ---- what the parent finds ---- */

static void no_child_event(void *context, const rb_trace *trace, const mtprof_stream_info *stream,
                           const mtprof_record *r)
{
    bool named = stream->kind == MTPROF_STREAM_THREAD &&
                 (r->kind == MTPROF_REC_BEGIN || r->kind == MTPROF_REC_INSTANT);
    if (named && strncmp(rb_name(trace, r->arg), "parent", 6) != 0) {
        ++*(uint64_t *)context;
    }
}

static void check_parent(mtprof_session *session, const char *path, const recorder *all)
{
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_OK(mtprof_session_close(session));
    CHECK_EQ_U64(h.lost, 0);
    CHECK_EQ_U64(h.others, all->marks);
    CHECK_EQ_U64(h.begins, all->begins);
    rb_trace t;
    uint64_t foreign = 0;
    if (rb_open(&t, path, no_child_event, &foreign)) {
        rb_check_clean(&t, "parent");
        CHECK_EQ_U64(foreign, 0);
        CHECK_EQ_U64(t.others, all->marks);
        CHECK_EQ_U64(t.begins, all->begins);
        CHECK_EQ_U64(t.open_spans, 0);
        CHECK_EQ_U64(t.info.pid, (uint64_t)getpid());
        rb_close(&t);
    }
    rb_check_file(path, false);
}

typedef struct crowd {
    pthread_t threads[RECORDERS];
    recorder recorders[RECORDERS];
} crowd;

static void crowd_start(crowd *c)
{
    memset(c, 0, sizeof *c);
    for (int i = 0; i < RECORDERS; i++) {
        c->threads[i] = stress_thread(record_until_told, &c->recorders[i]);
    }
    wait_for_arrivals(RECORDERS);
}

static recorder crowd_end(crowd *c)
{
    recorder all = {0};
    stress_add(&leave_now, 1);
    for (int i = 0; i < RECORDERS; i++) {
        pthread_join(c->threads[i], NULL);
        all.marks += c->recorders[i].marks;
        all.begins += c->recorders[i].begins;
    }
    return all;
}

TEST(fork_while_threads_record)
{
    char path[STRESS_PATH];
    mtprof_session *session = stress_start(stress_path(path, "t.mtt"), MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    MTPROF_INSTANT("parent mark"); /* the forking thread has a slot, too */
    crowd c;
    crowd_start(&c);
    for (int i = 0; i < FORKS; i++) {
        fork_once(session, i);
    }
    MTPROF_INSTANT("parent mark");
    recorder all = crowd_end(&c);
    all.marks += 2;
    check_parent(session, path, &all);
}

typedef struct forker {
    mtprof_session *session;
    int number;
} forker;

static void *fork_some(void *argument)
{
    const forker *f = argument;
    stress_add(&arrived, 1);
    wait_for_arrivals(RECORDERS + FORKERS);
    for (int i = 0; i < FORKS / FORKERS; i++) {
        fork_once(f->session, f->number + i);
    }
    return NULL;
}

TEST(several_threads_fork)
{
    char path[STRESS_PATH];
    mt_test_tmpdir();
    mtprof_session *session = stress_start(stress_path(path, "t.mtt"), MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    crowd c;
    crowd_start(&c);
    pthread_t threads[FORKERS];
    forker forkers[FORKERS];
    for (int i = 0; i < FORKERS; i++) {
        forkers[i] = (forker){session, i * 1000};
        threads[i] = stress_thread(fork_some, &forkers[i]);
    }
    for (int i = 0; i < FORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    recorder all = crowd_end(&c);
    check_parent(session, path, &all);
}

/* ---- fork while a session is being started, paused, resumed, stopped ---- */

static void *change_until_told(void *argument)
{
    (void)argument;
    char path[STRESS_PATH];
    stress_path(path, "changing.mtt");
    for (int i = 0; stress_get(&leave_now) == 0; i++) {
        mtprof_session *s = stress_start(i % 2 == 0 ? path : NULL, MTPROF_POLICY_SPILL, 0);
        if (s == NULL) {
            break;
        }
        MTPROF_INSTANT("parent mark");
        CHECK_OK(mtprof_session_pause(s));
        CHECK_OK(mtprof_session_resume(s, 0));
        CHECK_OK(mtprof_session_add_metadata(s, "key", 3, "value", 5, false));
        if (i % 3 == 0) {
            CHECK_OK(mtprof_session_stop(s));
        }
        CHECK_OK(mtprof_session_close(s));
    }
    return NULL;
}

TEST(fork_while_a_session_changes)
{
    mt_test_tmpdir();
    others_allocate = true;
    crowd c;
    crowd_start(&c);
    pthread_t changer = stress_thread(change_until_told, NULL);
    for (int i = 0; i < FORKS; i++) {
        fork_once(NULL, i);
    }
    crowd_end(&c);
    pthread_join(changer, NULL);
}

/* ---- other ways to make a process ---- */

static void spawn_true(int i)
{
    char *arguments[] = {(char[]){"true"}, NULL};
    char *environment[] = {NULL};
    pid_t child = -1;
    if (i % 2 == 0) {
        CHECK_EQ_I64(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environment), 0);
    } else {
        child = vfork();
        if (child == 0) {
            execve("/bin/true", arguments, environment);
            _exit(127);
        }
    }
    if (CHECK(child > 0)) {
        wait_child(child);
    }
}

TEST(spawn_and_vfork_while_recording)
{
    char path[STRESS_PATH];
    mtprof_session *session = stress_start(stress_path(path, "t.mtt"), MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    crowd c;
    crowd_start(&c);
    for (int i = 0; i < 2 * FORKS; i++) {
        spawn_true(i);
    }
    recorder all = crowd_end(&c);
    check_parent(session, path, &all);
}

/* Bytes that the parent asked for are no use to the child, and no danger. */
TEST(bytes_in_the_child)
{
    mtprof_session *session = stress_start(NULL, MTPROF_POLICY_SPILL, 0);
    REQUIRE(session != NULL);
    MTPROF_INSTANT("parent mark");
    mtprof_bytes bytes = {.struct_size = sizeof bytes};
    REQUIRE_OK(mtprof_session_get_bytes(session, &bytes));
    pid_t child = fork();
    if (child == 0) {
        char page[4096];
        CHECK(bytes.read(bytes.context, 0, page, sizeof page) < 0);
        bytes.close(bytes.context);
        CHECK_OK(mtprof_session_close(session));
        _exit(0);
    }
    wait_child(child);
    char page[4096];
    CHECK_EQ_I64(bytes.read(bytes.context, 0, page, sizeof page), sizeof page);
    bytes.close(bytes.context);
    CHECK_OK(mtprof_session_close(session));
}
