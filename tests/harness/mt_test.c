/* SPDX-License-Identifier: Apache-2.0
 *
 * The test runner, see mt_test.h.
 *
 *      parent ── fork ──► child: own process group, runs one case, exit()
 *        │                  │
 *        └── waits, kills the group on timeout; reads `shared`, removes the temporary folder
 *
 * Invariants
 *   HAR1  A case passes only if it ran to its end, no check failed in any of its threads or
 *         processes, and its process exited with 0. A case that calls exit(0) has failed.
 *   HAR2  No process of a case outlives it: its process group is killed when its first process
 *         has ended.
 *   HAR3  The child leaves through exit(), so that leak checkers and coverage counters run.
 *   HAR4  Under AddressSanitizer a fork waits until the other threads sleep. Its heap, unlike
 *         libc's, stays locked in the child if another thread was in it, and every new thread is.
 */
#include "harness/mt_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    FORK_WAITS_MS = 50, /* HAR4, at most: a case may fork while its threads are busy */
    TIMEOUT_DEFAULT_S = 120,
    NFTW_FDS = 16
};

enum outcome {
    OUTCOME_PASSED,
    OUTCOME_FAILED,
    OUTCOME_SKIPPED,
    OUTCOME_COUNT
};

/* The child's report to the parent; a shared mapping, so that it survives any crash. */
struct shared {
    int failures; /* atomic: threads and grandchildren add to it */
    int finished; /* HAR1 */
    int skipped;
    int seed_used;
    char reason[256];
    char tmpdir[512];
};

struct options {
    const char *filter;
    const char *only;
    long timeout_s;
    bool list;
    bool no_fork;
    bool verbose;
};

static mt_test_case *first_case;
static mt_test_case **last_case = &first_case;
static struct shared *shared;
static sigjmp_buf leave_point;
static pthread_t case_thread;

void mt_test_register(mt_test_case *test)
{
    *last_case = test;
    last_case = &test->next;
}

__attribute__((weak)) const char *mt_test_error_text(void)
{
    return NULL;
}

/* ---- checks ---------------------------------------------------------------------------------- */

bool mt_test_fail(mt_test_place place, const char *format, ...)
{
    va_list args;
    __atomic_add_fetch(&shared->failures, 1, __ATOMIC_RELAXED);
    va_start(args, format);
    flockfile(stdout);
    printf("%s:%d: ", place.file, place.line);
    vprintf(format, args);
    putchar('\n');
    fflush(stdout);
    funlockfile(stdout);
    va_end(args);
    return false;
}

bool mt_test_check(mt_test_place place, const char *text, bool held)
{
    return held || mt_test_fail(place, "CHECK(%s)", text);
}

bool mt_test_eq_i64(mt_test_place place, const char *a_text, const char *b_text, int64_t a,
                    int64_t b)
{
    return a == b || mt_test_fail(place, "%s == %s\n    left  %" PRId64 "\n    right %" PRId64,
                                  a_text, b_text, a, b);
}

bool mt_test_eq_u64(mt_test_place place, const char *a_text, const char *b_text, uint64_t a,
                    uint64_t b)
{
    return a == b || mt_test_fail(place,
                                  "%s == %s\n    left  %" PRIu64 " (0x%" PRIx64
                                  ")\n    right %" PRIu64 " (0x%" PRIx64 ")",
                                  a_text, b_text, a, a, b, b);
}

bool mt_test_near_f64(mt_test_place place, const char *a_text, const char *b_text, double a,
                      double b, double tolerance)
{
    double distance = a < b ? b - a : a - b;
    bool equal = (a <= b && a >= b) || (isnan(a) && isnan(b)); /* infinities have no distance */
    return equal || distance <= tolerance ||
           mt_test_fail(place, "%s == %s (within %g)\n    left  %.17g\n    right %.17g", a_text,
                        b_text, tolerance, a, b);
}

bool mt_test_eq_ptr(mt_test_place place, const char *a_text, const char *b_text, const void *a,
                    const void *b)
{
    return a == b ||
           mt_test_fail(place, "%s == %s\n    left  %p\n    right %p", a_text, b_text, a, b);
}

/* Prints at most `size` bytes as a C string, so that control bytes and differences are visible. */
static void print_quoted(const char *label, const char *text, size_t size)
{
    printf("    %s ", label);
    if (text == NULL) {
        puts("NULL");
        return;
    }
    putchar('"');
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\n') {
            fputs("\\n", stdout);
        } else if (c == '"' || c == '\\') {
            printf("\\%c", c);
        } else if (c < 0x20 || c == 0x7f) {
            printf("\\x%02x", c);
        } else {
            putchar(c);
        }
    }
    puts("\"");
}

bool mt_test_eq_str(mt_test_place place, const char *a_text, const char *b_text, const char *a,
                    const char *b)
{
    if (a == b || (a != NULL && b != NULL && strcmp(a, b) == 0)) {
        return true;
    }
    flockfile(stdout);
    mt_test_fail(place, "%s == %s", a_text, b_text);
    print_quoted("left ", a, a == NULL ? 0 : strlen(a));
    print_quoted("right", b, b == NULL ? 0 : strlen(b));
    fflush(stdout);
    funlockfile(stdout);
    return false;
}

static void print_bytes(const char *label, const unsigned char *bytes, size_t from, size_t to)
{
    printf("    %s", label);
    for (size_t i = from; i < to; i++) {
        printf(" %02x", bytes[i]);
    }
    putchar('\n');
}

bool mt_test_eq_mem(mt_test_place place, const char *a_text, const char *b_text, const void *a,
                    const void *b, size_t size_bytes)
{
    const unsigned char *left = a;
    const unsigned char *right = b;
    size_t i = 0;
    while (i < size_bytes && left[i] == right[i]) {
        i++;
    }
    if (i == size_bytes) {
        return true;
    }
    size_t from = i < 8 ? 0 : i - 8;
    size_t to = size_bytes - i < 16 ? size_bytes : i + 16;
    flockfile(stdout);
    mt_test_fail(place, "%s == %s (%zu bytes), first difference at byte %zu, shown from byte %zu",
                 a_text, b_text, size_bytes, i, from);
    print_bytes("left ", left, from, to);
    print_bytes("right", right, from, to);
    fflush(stdout);
    funlockfile(stdout);
    return false;
}

bool mt_test_ok(mt_test_place place, const char *text, int status)
{
    if (status == 0) {
        return true;
    }
    const char *detail = mt_test_error_text();
    return mt_test_fail(place, "%s\n    status %d%s%s", text, status, detail == NULL ? "" : ": ",
                        detail == NULL ? "" : detail);
}

void mt_test_leave(void)
{
    if (pthread_equal(pthread_self(), case_thread)) {
        siglongjmp(leave_point, 1);
    }
    /* Another thread cannot unwind the case's own stack. */
    printf("a requirement failed on a second thread: the case ends here\n");
    fflush(stdout);
    _exit(1);
}

void mt_test_skip(const char *reason)
{
    snprintf(shared->reason, sizeof shared->reason, "%s", reason);
    shared->skipped = 1;
    mt_test_leave();
}

/* ---- helpers --------------------------------------------------------------------------------- */

const char *mt_test_tmpdir(void)
{
    if (shared->tmpdir[0] == '\0') {
        const char *base = getenv("TMPDIR");
        char path[sizeof shared->tmpdir];
        snprintf(path, sizeof path, "%s/mt_test.XXXXXX", base != NULL ? base : "/tmp");
        if (mkdtemp(path) == NULL) {
            FAIL("mt_test_tmpdir: %s: %s", path, strerror(errno));
            mt_test_leave();
        }
        memcpy(shared->tmpdir, path, sizeof path);
    }
    return shared->tmpdir;
}

static uint64_t seed_value(void)
{
    const char *text = getenv("MT_SEED");
    return text != NULL ? strtoull(text, NULL, 0) : 0x6d74707266ULL;
}

uint64_t mt_test_seed(void)
{
    shared->seed_used = 1;
    return seed_value();
}

bool mt_test_long(void)
{
    const char *text = getenv("MT_LONG");
    return text != NULL && strcmp(text, "1") == 0;
}

const char *mt_test_self(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n < 0 ? 0 : n] = '\0';
    return path;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static void tmpdir_remove(void)
{
    if (shared->tmpdir[0] == '\0') {
        return;
    }
    if (getenv("MT_KEEP") != NULL) {
        printf("kept %s\n", shared->tmpdir);
    } else if (nftw(shared->tmpdir, remove_entry, NFTW_FDS, FTW_DEPTH | FTW_PHYS) != 0) {
        printf("cannot remove %s: %s\n", shared->tmpdir, strerror(errno));
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void case_run(const mt_test_case *test)
{
    case_thread = pthread_self();
    if (sigsetjmp(leave_point, 1) == 0) {
        test->run();
    }
    shared->finished = 1;
}

static _Noreturn void child_main(const mt_test_case *test, pid_t parent, const sigset_t *mask)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
    case_run(test);
    exit(0); /* HAR3 */
}

/* Waits for the child. Returns false if the time ran out; a signal to stop is passed on. */
static bool child_wait(pid_t pid, double timeout_s, const sigset_t *set, int *status)
{
    double end_s = now_s() + timeout_s;
    for (;;) {
        if (waitpid(pid, status, WNOHANG) == pid) {
            return true;
        }
        double left_s = end_s - now_s();
        if (left_s <= 0) {
            return false;
        }
        struct timespec slice = {(time_t)left_s, (long)((left_s - (double)(time_t)left_s) * 1e9)};
        int got = sigtimedwait(set, NULL, &slice);
        if (got > 0 && got != SIGCHLD) {
            kill(-pid, SIGKILL);
            waitpid(pid, status, 0);
            tmpdir_remove();
            signal(got, SIG_DFL);
            sigprocmask(SIG_UNBLOCK, set, NULL);
            raise(got);
        }
    }
}

/* Runs the case in a child. On failure `why` says how it died, or stays empty if checks failed. */
static void case_fork(const mt_test_case *test, const struct options *options, char *why,
                      size_t why_size)
{
    sigset_t set;
    sigset_t old;
    int status = 0;
    pid_t parent = getpid();
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &old);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        child_main(test, parent, &old);
    }
    if (pid < 0) {
        snprintf(why, why_size, "fork: %s", strerror(errno));
    } else {
        setpgid(pid, pid); /* parent and child both do it, so that the order does not matter */
        bool in_time = child_wait(pid, (double)options->timeout_s, &set, &status);
        kill(-pid, SIGKILL); /* HAR2 */
        if (!in_time) {
            waitpid(pid, &status, 0);
            snprintf(why, why_size, "timeout after %ld s", options->timeout_s);
        } else if (WIFSIGNALED(status)) {
            snprintf(why, why_size, "killed by signal %d (SIG%s, %s)", WTERMSIG(status),
                     sigabbrev_np(WTERMSIG(status)), strsignal(WTERMSIG(status)));
        } else if (WEXITSTATUS(status) != 0) {
            snprintf(why, why_size, "exit status %d", WEXITSTATUS(status));
        } else if (!shared->finished) {
            snprintf(why, why_size, "exit before the end of the case");
        }
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
}

static enum outcome case_report(const mt_test_case *test, const struct options *options,
                                const char *why, double took_s)
{
    int failures = __atomic_load_n(&shared->failures, __ATOMIC_RELAXED);
    if (failures == 0 && why[0] == '\0') {
        if (shared->skipped) {
            printf("skip %s: %s\n", test->name, shared->reason);
            return OUTCOME_SKIPPED;
        }
        if (options->verbose) {
            printf("ok   %s (%.3f s)\n", test->name, took_s);
        }
        return OUTCOME_PASSED;
    }
    printf("FAIL %s: ", test->name);
    if (why[0] != '\0') {
        printf("%s%s", why, failures > 0 ? ", " : "");
    }
    if (failures > 0) {
        printf("%d failed check%s", failures, failures == 1 ? "" : "s");
    }
    if (shared->seed_used) {
        printf(" (repeat with MT_SEED=0x%" PRIx64 ")", seed_value());
    }
    putchar('\n');
    return OUTCOME_FAILED;
}

static enum outcome case_execute(const mt_test_case *test, const struct options *options)
{
    char why[160] = "";
    double start_s = now_s();
    memset(shared, 0, sizeof *shared);
    if (options->no_fork) {
        case_run(test);
    } else {
        case_fork(test, options, why, sizeof why);
    }
    enum outcome outcome = case_report(test, options, why, now_s() - start_s);
    tmpdir_remove();
    fflush(stdout);
    return outcome;
}

static bool case_chosen(const mt_test_case *test, const struct options *options)
{
    if (options->only != NULL) {
        return strcmp(test->name, options->only) == 0;
    }
    return !test->hidden &&
           (options->filter == NULL || strstr(test->name, options->filter) != NULL);
}

static _Noreturn void usage(const char *program, const char *problem)
{
    fprintf(stderr, "%s: %s\n", program, problem);
    fprintf(stderr,
            "usage: %s [--list] [--filter SUBSTRING] [--case NAME] [--no-fork] "
            "[--timeout SECONDS] [-v]\n",
            program);
    exit(2);
}

static const char *option_value(char **argv, int *i)
{
    if (argv[*i + 1] == NULL) {
        usage(argv[0], "an option lacks its value");
    }
    *i += 1;
    return argv[*i];
}

static struct options options_parse(char **argv)
{
    struct options options = {.timeout_s = TIMEOUT_DEFAULT_S};
    for (int i = 1; argv[i] != NULL; i++) {
        if (strcmp(argv[i], "--list") == 0) {
            options.list = true;
        } else if (strcmp(argv[i], "--no-fork") == 0) {
            options.no_fork = true;
        } else if (strcmp(argv[i], "-v") == 0) {
            options.verbose = true;
        } else if (strcmp(argv[i], "--filter") == 0) {
            options.filter = option_value(argv, &i);
        } else if (strcmp(argv[i], "--case") == 0) {
            options.only = option_value(argv, &i);
        } else if (strcmp(argv[i], "--timeout") == 0) {
            char *end = NULL;
            options.timeout_s = strtol(option_value(argv, &i), &end, 10);
            if (*end != '\0' || options.timeout_s <= 0) {
                usage(argv[0], "--timeout takes whole seconds, at least 1");
            }
        } else {
            usage(argv[0], "unknown option");
        }
    }
    return options;
}

#ifdef __SANITIZE_ADDRESS__
/* The state letter follows the name, which is in brackets and may hold any character. */
static bool thread_sleeps(int tasks, long thread)
{
    char path[64];
    char text[256];
    snprintf(path, sizeof path, "%ld/stat", thread);
    int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (n <= 0) {
        return true; /* the thread has ended */
    }
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && end[1] == ' ' && end[2] == 'S';
}

static bool others_sleep(void)
{
    long self = gettid();
    int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tasks < 0) {
        return true;
    }
    bool sleep = true;
    _Alignas(struct dirent64) char entries[2048];
    ssize_t n = 0;
    while (sleep && (n = getdents64(tasks, entries, sizeof entries)) > 0) {
        for (ssize_t at = 0; at < n && sleep;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(entries + at);
            at += entry->d_reclen;
            long thread = strtol(entry->d_name, NULL, 10); /* 0: "." and ".." */
            if (thread > 0 && thread != self) {
                sleep = thread_sleeps(tasks, thread);
            }
        }
    }
    close(tasks);
    return sleep;
}

static void before_fork(void) /* HAR4; allocates nothing, as cases count allocations */
{
    int error = errno;
    for (int ms = 0; ms < FORK_WAITS_MS && !others_sleep(); ms++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    errno = error;
}
#endif

int main(int argc, char **argv)
{
    (void)argc;
    struct options options = options_parse(argv);
    int counts[OUTCOME_COUNT] = {0};

#ifdef __SANITIZE_ADDRESS__
    pthread_atfork(before_fork, NULL, NULL);
#endif

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("mt_test: mmap");
        return 1;
    }
    for (const mt_test_case *test = first_case; test != NULL; test = test->next) {
        if (!case_chosen(test, &options)) {
            continue;
        }
        if (options.list) {
            puts(test->name);
        } else {
            counts[case_execute(test, &options)]++;
        }
    }
    if (options.list) {
        return 0;
    }
    printf("%d passed, %d failed, %d skipped\n", counts[OUTCOME_PASSED], counts[OUTCOME_FAILED],
           counts[OUTCOME_SKIPPED]);
    return counts[OUTCOME_FAILED] > 0 ? 1 : 0;
}
