/* SPDX-License-Identifier: Apache-2.0
 *
 * A child that outlives the process it was forked from does not keep the trace's path locked,
 * whenever it was forked.
 */
#include "mtprof/record/sys.h"
#include "stress/stress.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum when {
    RECORDING, /* the usual case */
    STOPPED,   /* the session has stopped but is not closed */
    STARTING,  /* another thread is making the file */
    FAILING    /* the same, and the start fails */
};

/* Shared by the three processes. */
typedef struct board {
    pid_t survivor;
    uint64_t ready;
} board;

static board *shared;
static bool fork_in_allocate, fail_allocate;

static void survive(void)
{
    pid_t child = fork();
    if (child == 0) {
        /* Out of the case's way, but in its process group: the runner ends it in any case. */
        for (;;) {
            pause();
        }
    }
    shared->survivor = child;
}

static int allocate_and_fork(int fd, off_t offset, off_t bytes)
{
    if (fork_in_allocate) {
        fork_in_allocate = false;
        survive();
    }
    return fail_allocate ? ENOSPC : mtprof__system_default.allocate(fd, offset, bytes);
}

static void be_forked_from(const char *path, enum when when)
{
    fork_in_allocate = when == STARTING || when == FAILING;
    fail_allocate = when == FAILING;
    mtprof__system.allocate = allocate_and_fork;
    mtprof_config config = {.struct_size = sizeof config, .path = path};
    mtprof_session *session = NULL;
    mtprof_status status = mtprof_session_start(&config, &session);
    CHECK_EQ_I64(status, when == FAILING ? MTPROF_ENOSPC : MTPROF_OK);
    MTPROF_INSTANT("mark");
    if (when == STOPPED) {
        CHECK_OK(mtprof_session_stop(session));
    }
    if (when == STOPPED || when == RECORDING) {
        survive();
    }
    __atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
    for (;;) {
        pause();
    }
}

static void path_is_free(enum when when)
{
    char path[STRESS_PATH];
    stress_path(path, "t.mtt");
    FILE *file = fopen(path, "w"); /* something is there already */
    REQUIRE(file != NULL && fputs("old", file) >= 0 && fclose(file) == 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        be_forked_from(path, when);
    }
    REQUIRE(child > 0);
    for (int i = 0; i < 20000 && __atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) == 0; i++) {
        stress_rest_us(1000);
    }
    REQUIRE_EQ_U64(shared->ready, 1);
    mtprof_config config = {.struct_size = sizeof config, .path = path};
    mtprof_session *session = NULL;
    if (when == RECORDING || when == STARTING) {
        CHECK_EQ_I64(mtprof_session_start(&config, &session), MTPROF_EBUSY);
    }
    kill(child, SIGKILL);
    REQUIRE_EQ_I64(waitpid(child, NULL, 0), child);
    CHECK_EQ_I64(kill(shared->survivor, 0), 0);
    if (CHECK_OK(mtprof_session_start(&config, &session))) {
        MTPROF_INSTANT("mark");
        CHECK_OK(mtprof_session_close(session));
        rb_check_file(path, false);
    }
    kill(shared->survivor, SIGKILL);
    munmap(shared, sizeof *shared);
}

TEST(forked_while_recording)
{
    path_is_free(RECORDING);
}

TEST(forked_after_the_stop)
{
    path_is_free(STOPPED);
}

TEST(forked_during_the_start)
{
    path_is_free(STARTING);
}

TEST(forked_during_a_start_that_fails)
{
    path_is_free(FAILING);
}
