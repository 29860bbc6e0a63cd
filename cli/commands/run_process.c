/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes of mtprof run, see run_process.h.
 */
#include "cli/commands/run_process.h"

#include "cli/term.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MTPROF_LIBDIR
#    define MTPROF_LIBDIR "lib"
#endif

const struct run_collector run_collector_list[RUN_COLLECTORS] = {
    {"NVTX", "NVTX_INJECTION64_PATH", "libmtprof_nvtx.so"},
    {"ITT", "INTEL_LIBITTNOTIFY64", "libmtprof_itt.so"},
    {"CUDA", "CUDA_INJECTION64_PATH", "libmtprof_cuda.so"},
};

/* ---- finding the collectors ------------------------------------------------------------------ */

/* Where they are, seen from the folder of the command. */
static const char *const folders[] = {
    "..",                                        /* a build tree */
    "../" MTPROF_LIBDIR,                         /* a prefix */
    "../lib/python3*/site-packages/mtprof",      /* a wheel */
    "../local/lib/python3*/dist-packages/mtprof" /* a wheel on Debian, as root */
};

static bool find_in(const char *folder, const char *file, char *path, size_t size)
{
    char pattern[PATH_MAX];
    char resolved[PATH_MAX];
    glob_t found = {0};
    int length = snprintf(pattern, sizeof pattern, "%s/%s", folder, file);
    bool there = length > 0 && (size_t)length < sizeof pattern &&
                 glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0 &&
                 realpath(found.gl_pathv[0], resolved) != NULL;
    if (there) {
        there = (size_t)snprintf(path, size, "%s", resolved) < size;
    }
    globfree(&found);
    return there;
}

bool run_find_collectors(run_collectors *out, const char **missing)
{
    char own[PATH_MAX / 2];
    char folder[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = 0;
    char *slash = strrchr(own, '/');
    if (slash != NULL) {
        *slash = 0;
    }
    for (size_t i = 0; i < RUN_COLLECTORS; i++) {
        bool found = false;
        *missing = run_collector_list[i].file;
        for (size_t f = 0; !found && f < sizeof folders / sizeof *folders; f++) {
            (void)snprintf(folder, sizeof folder, "%s/%s", own, folders[f]);
            found = find_in(folder, *missing, out->paths[i], sizeof out->paths[i]);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

/* ---- signals --------------------------------------------------------------------------------- */

static volatile sig_atomic_t child; /* 0: none */

/* What a terminal sends goes to the program as well; what a process sends goes to us alone. */
static void pass_on(int number, siginfo_t *about, void *unused)
{
    (void)unused;
    int before = errno;
    if (child > 0 && about->si_code <= 0) { /* SI_USER, SI_QUEUE, SI_TKILL */
        (void)kill((pid_t)child, number);
    }
    errno = before;
}

static const int passed_on[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
enum {
    PASSED_ON = sizeof passed_on / sizeof *passed_on
};

/* From here until the program has ended, this process outlives what ends it. Signals that it was
 * started with as ignored stay so: nohup. */
static void begin_passing(struct sigaction before[PASSED_ON + 1])
{
    struct sigaction usual = {.sa_handler = SIG_DFL}; /* where it is ignored no status is told */
    (void)sigaction(SIGCHLD, &usual, &before[PASSED_ON]);
    for (size_t i = 0; i < PASSED_ON; i++) {
        struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
        (void)sigemptyset(&action.sa_mask);
        (void)sigaction(passed_on[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) {
            (void)sigaction(passed_on[i], &action, NULL);
        }
    }
}

static void end_passing(const struct sigaction before[PASSED_ON + 1])
{
    (void)sigaction(SIGCHLD, &before[PASSED_ON], NULL);
    for (size_t i = 0; i < PASSED_ON; i++) {
        (void)sigaction(passed_on[i], &before[i], NULL);
    }
}

/* ---- running --------------------------------------------------------------------------------- */

/* In the new process. Returns only where there is no program. */
static int become(const run_program *p)
{
    char path[PATH_MAX];
    char setting[PATH_MAX + 64];
    if (!p->choose_path(p->context, getpid(), path, sizeof path)) {
        return ENAMETOOLONG;
    }
    (void)snprintf(setting, sizeof setting, "%ld:%llu:%s", (long)getpid(),
                   (unsigned long long)p->ring_bytes, path);
    if (setenv("MTPROF_COLLECT", setting, 1) != 0) {
        return errno;
    }
    for (size_t i = 0; i < RUN_COLLECTORS; i++) {
        if (setenv(run_collector_list[i].variable, p->collectors->paths[i], 1) != 0) {
            return errno;
        }
    }
    cli_term_give_up();
    (void)execvp(p->words[0], p->words);
    return errno;
}

int run_and_wait(const run_program *program, pid_t *pid, int *status)
{
    struct sigaction before[PASSED_ON + 1];
    sigset_t all, mask;
    int told[2], error = 0;
    if (pipe2(told, O_CLOEXEC) != 0) {
        return errno;
    }
    (void)fflush(NULL);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &mask);
    begin_passing(before);
    pid_t made = fork();
    if (made == 0) {
        end_passing(before);
        (void)sigprocmask(SIG_SETMASK, &mask, NULL);
        error = become(program);
        ssize_t ignored = write(told[1], &error, sizeof error);
        (void)ignored;
        _exit(127);
    }
    error = made < 0 ? errno : 0;
    child = made;
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    (void)close(told[1]);
    if (made > 0) {
        ssize_t got;
        while ((got = read(told[0], &error, sizeof error)) < 0 && errno == EINTR) {
        }
        error = got == (ssize_t)sizeof error ? error : 0;
        while (waitpid(made, status, 0) < 0 && errno == EINTR) {
        }
    }
    child = 0;
    (void)close(told[0]);
    end_passing(before);
    *pid = made;
    return error;
}

int run_refusal(int error)
{
    return error == ENOENT || error == ENOTDIR ? 127 : 126;
}

void run_end_like(int status)
{
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        struct rlimit none = {0, 0};
        sigset_t mask;
        (void)setrlimit(RLIMIT_CORE, &none); /* the program has left its own */
        (void)signal(number, SIG_DFL);
        (void)sigemptyset(&mask);
        (void)sigaddset(&mask, number);
        (void)sigprocmask(SIG_UNBLOCK, &mask, NULL);
        (void)raise(number);
        exit(128 + number);
    }
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
