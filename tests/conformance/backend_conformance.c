/* SPDX-License-Identifier: Apache-2.0
 *
 * backend_conformance [--strict] [--only TEXT] [--seconds N] NAME|FILE|cpu
 *
 * Whether a backend keeps the promises of include/mindtorch/backend.h: one line a check, then the
 * counts; exit status 0 if none failed. docs/backends.md says how to use it.
 *
 * A check that crashes or does not end is named before the program ends: after it the backend
 * cannot be trusted.
 */
#include "backends/cpu/cpu_backend.h"
#include "conformance/conform.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static jmp_buf end_of_check;
static char current[128]; /* name of the check that runs */
static char trouble[1024];
static char skip_reason[256];
static uint32_t troubles;
static uint32_t passed, failed, skipped;
static unsigned check_seconds = 100; /* a check that takes longer does not end */

/* ---- what a check says ---- */

static void note(const char *format, va_list arguments)
{
    if (troubles++ == 0) {
        (void)vsnprintf(trouble, sizeof trouble, format, arguments);
    }
}

void cf_failed(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note(format, arguments);
    va_end(arguments);
}

void cf_stop(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note(format, arguments);
    va_end(arguments);
    longjmp(end_of_check, 1);
}

void cf_skip(const char *reason)
{
    (void)snprintf(skip_reason, sizeof skip_reason, "%s", reason);
    longjmp(end_of_check, 1);
}

void cf_ok(int status, const char *what)
{
    if (status != MT_OK) {
        cf_stop("%.160s: %s, %.400s", what, mt_status_name(status), mt_last_error()->message);
    }
}

/* ---- running checks ---- */

static struct {
    char reason[sizeof skip_reason], first[sizeof current];
    uint32_t count;
} skips; /* not shown yet */

static void show_skips(void)
{
    if (skips.count > 0) {
        skipped++;
        printf("skip  %s: %s", skips.first, skips.reason);
        printf(skips.count > 1 ? " (%u more checks)\n" : "\n", skips.count - 1);
    }
    skips.count = 0;
    skips.reason[0] = '\0';
}

static void say(const char *text)
{
    (void)!write(STDOUT_FILENO, text, strlen(text));
}

/* Only what may be called in a handler. */
static void end_badly(int number)
{
    say("FAIL  ");
    say(current);
    say(number == SIGALRM ? ": does not end\n" : ": crashes\n");
    say("the program stops here\n");
    _exit(1);
}

static void watch(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    static const int numbers[] = {SIGALRM}; /* the sanitizer says more of a crash than we could */
#else
    static const int numbers[] = {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
#endif
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        (void)signal(numbers[i], end_badly);
    }
}

/* Checks of a group that are skipped for one reason count as one: what is absent is said once. */
static void note_skip(void)
{
    if (strcmp(skip_reason, skips.reason) != 0) {
        show_skips();
        (void)snprintf(skips.reason, sizeof skips.reason, "%s", skip_reason);
        (void)snprintf(skips.first, sizeof skips.first, "%s", current);
    }
    skips.count++;
}

static void run_check(void (*run)(void), mt_kernel kernel)
{
    troubles = 0;
    skip_reason[0] = '\0';
    (void)alarm(check_seconds);
    if (setjmp(end_of_check) == 0) {
        if (run != NULL) {
            run();
        } else {
            cf_check_kernel(kernel);
        }
    }
    (void)alarm(0);
    if (troubles > 0) {
        failed++;
        printf("FAIL  %s: %s", current, trouble);
        printf(troubles > 1 ? " (and %u more)\n" : "\n", troubles - 1);
    } else if (skip_reason[0] != '\0') {
        note_skip();
    } else {
        passed++;
        printf("pass  %s\n", current);
    }
    (void)fflush(stdout);
}

static void run_list(const char *group, const cf_check *checks, const char *only)
{
    for (; checks->name != NULL; checks++) {
        (void)snprintf(current, sizeof current, "%s: %s", group, checks->name);
        if (only == NULL || strstr(current, only) != NULL) {
            run_check(checks->run, MT_KERNEL_COUNT);
        }
    }
    show_skips();
}

static void run_kernels(const char *only)
{
    for (uint32_t kernel = 0; kernel < MT_KERNEL_COUNT; kernel++) {
        (void)snprintf(current, sizeof current, "kernel: %s", mt_kernel_name((mt_kernel)kernel));
        if (only == NULL || strstr(current, only) != NULL) {
            run_check(NULL, (mt_kernel)kernel);
        }
    }
    show_skips();
}

static void run_all(const char *only)
{
    run_list("device", cf_device_checks, only);
    if (failed > 0 || cf.backend->struct_size < sizeof(mt_backend)) {
        printf("the struct itself is wrong: nothing else is tried\n");
        return;
    }
    cf.devices = cf.backend->device_count(cf.backend->context);
    cf.sim =
        cf.backend->extension != NULL ? cf.backend->extension(cf.backend->context, "sim") : NULL;
    run_list("memory", cf_memory_checks, only);
    run_list("copy", cf_copy_checks, only);
    run_kernels(only);
    run_list("stream", cf_stream_checks, only);
    run_list("event", cf_event_checks, only);
    run_list("failure", cf_failure_checks, only);
    run_list("records", cf_activity_checks, only);
    run_list("process", cf_process_checks, only);
}

/* ---- finding the backend ---- */

static const char *setting(const char *name)
{
    char variable[128];
    (void)snprintf(variable, sizeof variable, "MINDTORCH_NPU_%s", name);
    return getenv(variable);
}

/* The shared object of that name: where MINDTORCH_BACKENDS says, next to this program, one folder
 * up, where the loader looks. */
static void *open_by_name(const char *name)
{
    char here[1024];
    char path[2048];
    ssize_t length = readlink("/proc/self/exe", here, sizeof here - 1);
    here[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(here, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    const char *named = getenv("MINDTORCH_BACKENDS");
    const char *const folders[] = {named != NULL ? named : here, here, here};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        (void)snprintf(path, sizeof path, "%.1000s/%slibmindtorch_%.100s.so", folders[i],
                       i == 2 ? "../" : "", name);
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (handle != NULL) {
            return handle;
        }
    }
    (void)snprintf(path, sizeof path, "libmindtorch_%.100s.so", name);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static const mt_backend *open_backend(const char *name)
{
    static mt_backend_host host = {.struct_size = sizeof host,
                                   .version = MT_BACKEND_VERSION,
                                   .fail = mt_fail,
                                   .last_error = mt_last_error,
                                   .setting = setting};
    const mt_backend *backend = NULL;
    mt_backend_open_fn *open = NULL;
    host.cpu = mt__cpu_backend();
    if (strcmp(name, "cpu") == 0) {
        return host.cpu;
    }
    void *handle =
        strchr(name, '/') != NULL ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : open_by_name(name);
    void *symbol = handle != NULL ? dlsym(handle, "mt_backend_open") : NULL;
    if (symbol == NULL) {
        printf("%s cannot be opened: %s\n", name, dlerror());
        return NULL;
    }
    memcpy(&open, &symbol, sizeof open);
    int status = open(&host, &backend);
    if (status != MT_OK || backend == NULL) {
        printf("mt_backend_open gave %s: %s\n", mt_status_name(status),
               status != MT_OK ? mt_last_error()->message : "no backend");
        return NULL;
    }
    return backend;
}

static int usage(void)
{
    printf("usage: backend_conformance [--strict] [--only TEXT] [--seconds N] NAME|FILE|cpu\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *name = NULL;
    const char *only = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--strict") == 0) {
            cf.strict = true;
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            check_seconds = (unsigned)strtoul(argv[++i], NULL, 10);
        } else if (argv[i][0] == '-' || name != NULL) {
            return usage();
        } else {
            name = argv[i];
        }
    }
    if (name == NULL) {
        return usage();
    }
    watch();
    cf.cpu = mt__cpu_backend();
    cf.backend = open_backend(name);
    cf.shared = cf.backend == cf.cpu;
    if (cf.backend == NULL) {
        return 1;
    }
    run_all(only);
    printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
    return failed > 0 || passed == 0 ? 1 : 0;
}
