/* SPDX-License-Identifier: Apache-2.0
 *
 * The runner tests itself: every hidden case below misbehaves in one way, and the visible cases run
 * this program again with one of them and look at what it said.
 */
#include "harness/mt_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the misbehaving cases ------------------------------------------------------------------- */

TEST_HIDDEN(hidden_pass)
{
    CHECK(1 + 1 == 2);
}

TEST_HIDDEN(hidden_checks)
{
    int one = 1;
    const char *left = "left\n";
    CHECK(one == 2);
    CHECK_EQ_I64(-one, 7);
    CHECK_EQ_U64(0xffU, 254U);
    CHECK_EQ_STR(left, "right");
    CHECK_EQ_STR(NULL, "text");
    CHECK_EQ_MEM("abcd", "abXd", 4);
    CHECK_NEAR_F64(1.0, 1.5, 0.25);
    CHECK_OK(-3);
    FAIL("own words %d", 42);
}

TEST_HIDDEN(hidden_require)
{
    REQUIRE(false);
    printf("not reached\n");
}

static void *check_on_thread(void *arg)
{
    (void)arg;
    CHECK(false);
    return NULL;
}

TEST_HIDDEN(hidden_thread)
{
    pthread_t thread;
    REQUIRE_EQ_I64(pthread_create(&thread, NULL, check_on_thread, NULL), 0);
    pthread_join(thread, NULL);
}

TEST_HIDDEN(hidden_grandchild)
{
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(false);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

TEST_HIDDEN(hidden_crash)
{
    signal(SIGSEGV, SIG_DFL); /* sanitizers turn it into an exit status */
    raise(SIGSEGV);
}

TEST_HIDDEN(hidden_hang)
{
    if (fork() == 0) {
        pause(); /* belongs to the group: must die with it */
    }
    printf("hanging %d\n", (int)getpgrp());
    fflush(stdout);
    for (;;) {
        pause();
    }
}

TEST_HIDDEN(hidden_exit)
{
    exit(0);
}

TEST_HIDDEN(hidden_skip)
{
    MT_SKIP("no such device");
}

TEST_HIDDEN(hidden_tmpdir)
{
    char path[600];
    snprintf(path, sizeof path, "%s/sub", mt_test_tmpdir());
    CHECK_EQ_I64(mkdir(path, 0700), 0);
    printf("tmpdir %s\n", mt_test_tmpdir());
}

TEST_HIDDEN(hidden_seed)
{
    uint64_t state = mt_test_seed();
    CHECK_EQ_U64(mt_test_random(&state), 0);
}

/* ---- running them ---------------------------------------------------------------------------- */

struct result {
    char text[8192];
    int exit_status;
};

/* This program with one case; `more` is appended to the command, `before` set in its environment.
 */
static struct result run_self(const char *before, const char *name, const char *more)
{
    static struct result result;
    char command[5000];
    snprintf(command, sizeof command, "%s '%s' --case %s %s 2>&1", before, mt_test_self(), name,
             more);
    FILE *pipe = popen(command, "r");
    REQUIRE(pipe != NULL);
    size_t n = fread(result.text, 1, sizeof result.text - 1, pipe);
    result.text[n] = '\0';
    int status = pclose(pipe);
    result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return result;
}

static void check_says(const struct result *result, const char *text)
{
    if (strstr(result->text, text) == NULL) {
        FAIL("expected \"%s\" in:\n%s", text, result->text);
    }
}

TEST(passing_case_passes)
{
    struct result result = run_self("", "hidden_pass", "");
    CHECK_EQ_I64(result.exit_status, 0);
    CHECK_EQ_STR(result.text, "1 passed, 0 failed, 0 skipped\n");
}

TEST(failing_checks_print_both_values)
{
    struct result result = run_self("", "hidden_checks", "");
    CHECK_EQ_I64(result.exit_status, 1);
    check_says(&result, "test_harness.c:");
    check_says(&result, "CHECK(one == 2)");
    check_says(&result, "-one == 7\n    left  -1\n    right 7\n");
    check_says(&result, "left  255 (0xff)\n    right 254 (0xfe)\n");
    check_says(&result, "left == \"right\"\n    left  \"left\\n\"\n    right \"right\"\n");
    check_says(&result, "left  NULL\n");
    check_says(&result, "first difference at byte 2");
    check_says(&result, "left  61 62 63 64\n    right 61 62 58 64\n");
    check_says(&result, "left  1\n    right 1.5\n");
    check_says(&result, "status -3");
    check_says(&result, "own words 42\n");
    check_says(&result, "FAIL hidden_checks: 9 failed checks\n");
    check_says(&result, "\n0 passed, 1 failed, 0 skipped\n");
}

TEST(require_leaves_the_case)
{
    struct result result = run_self("", "hidden_require", "");
    CHECK_EQ_I64(result.exit_status, 1);
    check_says(&result, "REQUIRE(false)");
    CHECK(strstr(result.text, "not reached") == NULL);
    result = run_self("", "hidden_require", "--no-fork");
    CHECK_EQ_I64(result.exit_status, 1);
    CHECK(strstr(result.text, "not reached") == NULL);
}

TEST(failures_of_threads_and_children_count)
{
    CHECK_EQ_I64(run_self("", "hidden_thread", "").exit_status, 1);
    CHECK_EQ_I64(run_self("", "hidden_grandchild", "").exit_status, 1);
}

TEST(crash_is_a_failure_naming_the_signal)
{
    struct result result = run_self("", "hidden_crash", "");
    CHECK_EQ_I64(result.exit_status, 1);
    check_says(&result, "FAIL hidden_crash: killed by signal 11 (SIGSEGV");
}

TEST(timeout_kills_the_whole_group)
{
    struct result result = run_self("", "hidden_hang", "--timeout 1");
    CHECK_EQ_I64(result.exit_status, 1);
    check_says(&result, "FAIL hidden_hang: timeout after 1 s");
    const char *group = strstr(result.text, "hanging ");
    REQUIRE(group != NULL);
    int pgid = atoi(group + strlen("hanging "));
    REQUIRE(pgid > 1);
    for (int tries = 0; tries < 500 && kill(-pgid, 0) == 0; tries++) {
        usleep(10000); /* until init has reaped them */
    }
    CHECK(kill(-pgid, 0) != 0);
}

TEST(early_exit_is_a_failure)
{
    struct result result = run_self("", "hidden_exit", "");
    CHECK_EQ_I64(result.exit_status, 1);
    check_says(&result, "exit before the end");
}

TEST(skip_prints_its_reason)
{
    struct result result = run_self("", "hidden_skip", "");
    CHECK_EQ_I64(result.exit_status, 0);
    CHECK_EQ_STR(result.text, "skip hidden_skip: no such device\n0 passed, 0 failed, 1 skipped\n");
}

TEST(tmpdir_is_removed)
{
    struct result result = run_self("", "hidden_tmpdir", "");
    CHECK_EQ_I64(result.exit_status, 0);
    char *path = strstr(result.text, "tmpdir ");
    REQUIRE(path != NULL);
    path += strlen("tmpdir ");
    path[strcspn(path, "\n")] = '\0';
    REQUIRE(path[0] == '/');
    struct stat info;
    CHECK(stat(path, &info) != 0);
}

TEST(seed_is_printed_on_failure)
{
    struct result result = run_self("MT_SEED=0x1234", "hidden_seed", "");
    CHECK_EQ_I64(result.exit_status, 1);
    check_says(&result, "repeat with MT_SEED=0x1234");
}

TEST(list_leaves_hidden_cases_out)
{
    struct result result = run_self("", "x", "--list");
    CHECK_EQ_STR(result.text, "");
    char command[5000];
    snprintf(command, sizeof command, "'%s' --list", mt_test_self());
    FILE *pipe = popen(command, "r");
    REQUIRE(pipe != NULL);
    char line[256];
    int n = 0;
    while (fgets(line, sizeof line, pipe) != NULL) {
        CHECK(strncmp(line, "hidden_", 7) != 0);
        n++;
    }
    pclose(pipe);
    CHECK(n > 5);
}

TEST(unknown_option_is_refused)
{
    struct result result = run_self("", "x", "--colour");
    CHECK_EQ_I64(result.exit_status, 2);
    check_says(&result, "usage:");
}

TEST(long_runs_only_when_asked)
{
    unsetenv("MT_LONG");
    CHECK(!mt_test_long());
    setenv("MT_LONG", "1", 1);
    CHECK(mt_test_long());
}
