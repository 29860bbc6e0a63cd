/* SPDX-License-Identifier: Apache-2.0
 *
 * Every single request for memory fails once, or from there on always: a call says so, or events
 * are counted as lost; nothing crashes, nothing leaks (LeakSanitizer looks at the end), and the
 * next session is a normal one.
 */
#include "base/alloc.h"
#include "fault/fault.h"

#include <stdlib.h>
#include <sys/wait.h>

enum {
    REQUESTS_MAX = 4000, /* far more than a session makes */
    THREADS = 2
};

typedef struct script {
    const char *path;
    const char *save;
    uint32_t policy;
    uint64_t bytes;
} script;

/* What was tried, by kind; events are compared with what health says. */
typedef struct attempt {
    bool started;
    uint64_t begins, marks;
} attempt;

static void record_all_kinds(uint64_t *begins, uint64_t *marks, uint64_t number)
{
    static mtprof_site op = MTPROF_SITE_INIT("op", MTPROF_KIND_OP);
    char name[32];
    int n = snprintf(name, sizeof name, "name %llu", (unsigned long long)number);
    int64_t shape[] = {(int64_t)number, 3};
    mtprof_value input = {.kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .of.sizes = shape};
    mtprof_op details = {.struct_size = sizeof details, .inputs = &input, .n_inputs = 1};
    uint32_t frame = mtprof_define_frame(name, (size_t)n, "file", 4, 7);
    details.stack = mtprof_stack(&frame, 1);
    mtprof_token a = mtprof_op_begin(&op, &details);
    mtprof_token b = mtprof_begin_named(name, (size_t)n, 0);
    mtprof_meta_int(b, mtprof_intern("number", 6), (int64_t)number);
    MTPROF_INSTANT("instant");
    mtprof_alloc(0, 1, 2, 3, 4);
    mtprof_end(b);
    mtprof_op_end(a, 0, 1);
    mtprof_end(mtprof_begin_named("native", 6, 0));
    stress_add(begins, 3);
    stress_add(marks, 2);
}

static void *record_in_thread(void *argument)
{
    attempt *a = argument;
    mtprof_name_thread("a thread");
    for (uint64_t i = 0; i < 20; i++) {
        record_all_kinds(&a->begins, &a->marks, i);
    }
    mtprof_name_thread(NULL);
    return NULL;
}

static void one_session(const script *s, attempt *a)
{
    mtprof_config config = {.struct_size = sizeof config,
                            .path = s->path,
                            .policy = s->policy,
                            .buffer_bytes = s->bytes,
                            .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS | MTPROF_WANT_ALLOCS |
                                     MTPROF_WANT_STACKS | MTPROF_WANT_NATIVE_STACKS |
                                     MTPROF_WANT_MEMORY};
    mtprof_session *session = (mtprof_session *)a;
    mtprof_status status = mtprof_session_start(&config, &session);
    if (status != MTPROF_OK) {
        CHECK_EQ_I64(status, MTPROF_ENOMEM);
        CHECK_EQ_PTR(session, NULL);
        CHECK_EQ_U64(mtprof_i_gate, 0);
        return;
    }
    a->started = true;
    status = mtprof_session_add_metadata(session, "key", 3, "value", 5, false);
    CHECK(status == MTPROF_OK || status == MTPROF_ENOMEM || status == MTPROF_ENOSPC);
    record_all_kinds(&a->begins, &a->marks, 100);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(stress_thread(record_in_thread, a), NULL);
    }
    CHECK_OK(mtprof_session_pause(session));
    CHECK_OK(mtprof_session_resume(session, 0));
    record_all_kinds(&a->begins, &a->marks, 101);
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK_EQ_U64(h.begins + h.others + h.lost, a->begins + a->marks);
    CHECK_EQ_U64(h.lost, h.lost_by[MTPROF_LOST_MEMORY]);
    mtprof_bytes bytes = {.struct_size = sizeof bytes};
    status = mtprof_session_get_bytes(session, &bytes);
    CHECK(status == MTPROF_OK || status == MTPROF_ENOMEM);
    if (status == MTPROF_OK) {
        mtprof_reader *reader = NULL;
        status = mtprof_reader_open_bytes(&bytes, &reader);
        CHECK(status == MTPROF_OK || status == MTPROF_ENOMEM);
        mtprof_reader_close(reader);
    }
    status = mtprof_session_save(session, s->save);
    CHECK(status == MTPROF_OK || status == MTPROF_ENOMEM);
    CHECK_EQ_I64(access(s->save, F_OK) == 0, status == MTPROF_OK);
    status = mtprof_session_close(session);
    CHECK_EQ_I64(status, MTPROF_OK);
}

/* A session without trouble: everything is there again. */
static void check_normal(const script *s)
{
    attempt a = {0};
    unlink(s->save);
    one_session(s, &a);
    CHECK(a.started);
    rb_trace t;
    if (rb_open(&t, s->save, NULL, NULL)) {
        rb_check_clean(&t, "session after a failure");
        CHECK_EQ_U64(t.begins, a.begins);
        CHECK_EQ_U64(t.others, a.marks);
        CHECK_EQ_U64(t.info.health[MTPROF_LOST_MEMORY], 0);
        rb_close(&t);
    }
    unlink(s->save);
}

enum {
    GOES_ON = 0,
    NOTHING_FAILED = 42
};

static const char old_text[] = "an earlier trace";

/* In a process of its own: what is made once per process is made, and may fail, in each. */
static int one_attempt(const script *s, uint64_t n, bool for_ever)
{
    int fds = stress_entries("/proc/self/fd");
    attempt a = {0};
    mtb_fail_nth(n, for_ever);
    one_session(s, &a);
    uint64_t made = mtb_fail_nth(0, false);
    if (s->path != NULL && a.started) {
        rb_check_file(s->path, false);
    } else if (s->path != NULL && !fault_holds(s->path, old_text)) {
        FAIL("request %llu: the start failed and the file at the path is gone",
             (unsigned long long)n);
    }
    if (access(s->save, F_OK) == 0) {
        rb_check_file(s->save, false);
        unlink(s->save);
    }
    if (stress_entries("/proc/self/fd") != fds) {
        FAIL("request %llu: a file descriptor was left open", (unsigned long long)n);
    }
    check_normal(s);
    return made < n && a.started ? NOTHING_FAILED : GOES_ON;
}

static void every_request(const script *s, bool for_ever)
{
    uint64_t n = 0;
    int status = GOES_ON;
    while (status == GOES_ON && ++n < REQUESTS_MAX) {
        if (s->path != NULL) {
            fault_write_file(s->path, old_text);
        }
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            int result = one_attempt(s, n, for_ever);
            exit(result); /* leak checkers run */
        }
        REQUIRE_EQ_I64(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 42)) {
            FAIL("request %llu of %s: the process ended with status 0x%x", (unsigned long long)n,
                 s->path != NULL ? "a file session" : "a memory session", (unsigned)status);
        }
        status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    printf("%llu requests failed in turn%s\n", (unsigned long long)n - 1,
           for_ever ? " and all after each" : "");
    CHECK(n > 10);
    CHECK_EQ_I64(status, NOTHING_FAILED);
    CHECK_EQ_I64(stress_entries(mt_test_tmpdir()), s->path != NULL);
}

static void run_script(bool file, bool for_ever, uint32_t policy, uint64_t bytes)
{
    char path[STRESS_PATH], save[STRESS_PATH];
    stress_path(path, "t.mtt");
    stress_path(save, "saved.mtt");
    script s = {file ? path : NULL, save, policy, bytes};
    every_request(&s, for_ever);
}

TEST(memory_session_once)
{
    run_script(false, false, MTPROF_POLICY_SPILL, 0);
}

TEST(memory_session_for_ever)
{
    run_script(false, true, MTPROF_POLICY_SPILL, 0);
}

TEST(file_session_once)
{
    run_script(true, false, MTPROF_POLICY_SPILL, 0);
}

TEST(file_session_for_ever)
{
    run_script(true, true, MTPROF_POLICY_SPILL, 0);
}

TEST(ring_session_once)
{
    run_script(false, false, MTPROF_POLICY_RING, 8 << 20);
}

TEST(ring_session_for_ever)
{
    run_script(true, true, MTPROF_POLICY_RING, 8 << 20);
}
