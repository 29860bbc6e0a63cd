/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks that record from inside the recorder: an interposed mmap or posix_fallocate with scopes of
 * its own is called where the recorder is in the middle of something. What it records is kept or
 * counted; nothing waits for itself.
 */
#include "fault/fault.h"
#include "stress/hold_helper.h"

#include <sys/mman.h>

enum {
    THREADS = 3,
    MARKS = 150000
};

static uint64_t hook_begins, hook_tokens, hook_marks, hook_calls;

static void record_in_hook(void)
{
    static mtprof_site scope = MTPROF_SITE_INIT("hook scope", MTPROF_KIND_SCOPE);
    static mtprof_site mark = MTPROF_SITE_INIT("hook mark", MTPROF_KIND_SCOPE);
    if (mtprof_i_gate == 0) {
        return; /* while a session is being made */
    }
    mtprof_token token = mtprof_begin(&scope);
    mtprof_instant(&mark);
    mtprof_counter(&mark, 1);
    mtprof_token named = mtprof_begin_named("hook name", 9, 0);
    mtprof_alloc(0, 1, 2, 3, 4);
    mtprof_end(named);
    mtprof_end(token);
    stress_add(&hook_calls, 1);
    stress_add(&hook_begins, 2);
    stress_add(&hook_tokens, (token != 0) + (named != 0));
    stress_add(&hook_marks, 3);
}

static void *recording_map(size_t bytes, int fd, off_t offset)
{
    record_in_hook();
    void *base = mtprof__system_default.map(bytes, fd, offset);
    record_in_hook();
    return base;
}

static int recording_allocate(int fd, off_t offset, off_t bytes)
{
    record_in_hook();
    int error = mtprof__system_default.allocate(fd, offset, bytes);
    record_in_hook();
    return error;
}

static void *record_many(void *argument)
{
    (void)argument;
    for (int i = 0; i < MARKS; i++) {
        MTPROF_SCOPE("scope");
        MTPROF_INSTANT("mark");
    }
    return NULL;
}

static void hooks_record(const char *path, uint32_t policy, uint64_t bytes)
{
    mtprof__system.map = recording_map;
    mtprof__system.allocate = recording_allocate;
    mtprof_config config = {.struct_size = sizeof config,
                            .path = path,
                            .policy = policy,
                            .buffer_bytes = bytes,
                            .wants = MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS};
    mtprof_session *session = NULL;
    hold_prepare();
    REQUIRE_OK(mtprof_session_start(&config, &session));
    record_in_hook(); /* a place that is new cannot be made known from inside */
    hold_begin();     /* so that the hooks are called by the recording threads */
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        threads[i] = stress_thread(record_many, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    hold_end();
    CHECK_OK(mtprof_session_stop(session));
    mtprof_health h = stress_health(session);
    CHECK(hook_calls > 0);
    CHECK(hook_tokens > 0);
    CHECK_EQ_U64(h.begins + h.others + h.lost,
                 (uint64_t)THREADS * MARKS * 2 + hook_begins + hook_marks);
    rb_trace t;
    if (rb_open_session(&t, session, NULL, NULL)) {
        rb_check_clean(&t, "hooks");
        CHECK_EQ_U64(t.begins, h.begins);
        CHECK_EQ_U64(t.others, h.others);
        CHECK_EQ_U64(t.open_spans, h.truncated);
        rb_close(&t);
    }
    printf("%llu calls of hooks that record, %llu of their scopes kept, %llu lost\n",
           (unsigned long long)hook_calls, (unsigned long long)hook_tokens,
           (unsigned long long)h.lost);
    CHECK_EQ_U64(h.lost, h.lost_by[MTPROF_LOST_NESTED] + h.lost_by[MTPROF_LOST_BUDGET]);
    CHECK_OK(mtprof_session_close(session));
    hold_forget();
    if (path != NULL) {
        rb_check_file(path, false);
    }
}

TEST(hooks_record_in_memory)
{
    hooks_record(NULL, MTPROF_POLICY_SPILL, 0);
}

TEST(hooks_record_in_a_file)
{
    char path[STRESS_PATH];
    hooks_record(stress_path(path, "t.mtt"), MTPROF_POLICY_SPILL, 0);
}

TEST(hooks_record_when_spilling)
{
    hooks_record(NULL, MTPROF_POLICY_SPILL, 1 << 20);
}

TEST(hooks_record_until_the_budget)
{
    hooks_record(NULL, MTPROF_POLICY_STOP, 4 << 20);
}
