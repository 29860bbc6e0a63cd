/* SPDX-License-Identifier: Apache-2.0
 *
 * See process_watch.h.
 */
#include "mtprof/control/process_watch.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "mtprof/record/hot/ticks.h"

#include <mtprof/trace.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS ((uint64_t)1000 * 1000 * 1000)

enum {
    THREADS_MOST = 64, /* that hardware counters are opened for; those that begin later inherit */
    N_HARDWARE = 4
};

/* Rates are per second of wall time since the value before. */
static mtprof_site cpu_site = MTPROF_SITE_INIT("process: CPU cores in use", MTPROF_KIND_SCOPE);
static mtprof_site rss_site = MTPROF_SITE_INIT("process: resident bytes", MTPROF_KIND_SCOPE);
static mtprof_site rate_sites[] = {
    MTPROF_SITE_INIT("process: voluntary context switches/s", MTPROF_KIND_SCOPE),
    MTPROF_SITE_INIT("process: involuntary context switches/s", MTPROF_KIND_SCOPE),
    MTPROF_SITE_INIT("process: minor page faults/s", MTPROF_KIND_SCOPE),
    MTPROF_SITE_INIT("process: major page faults/s", MTPROF_KIND_SCOPE),
};
static mtprof_site hardware_sites[N_HARDWARE] = {
    MTPROF_SITE_INIT("process: instructions/s", MTPROF_KIND_SCOPE),
    MTPROF_SITE_INIT("process: CPU cycles/s", MTPROF_KIND_SCOPE),
    MTPROF_SITE_INIT("process: cache misses/s", MTPROF_KIND_SCOPE),
    MTPROF_SITE_INIT("process: branch misses/s", MTPROF_KIND_SCOPE),
};
static const uint64_t hardware_events[N_HARDWARE] = {
    PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_CACHE_MISSES,
    PERF_COUNT_HW_BRANCH_MISSES};

typedef struct readings {
    uint64_t at_ns;
    double cpu_s;
    double rates[MT_COUNT(rate_sites)];
    double hardware[N_HARDWARE];
} readings;

struct mtprof__watch {
    mtprof_session *session;
    uint64_t every_ns;
    pthread_t thread;
    sem_t wake;
    bool leave; /* atomic; partner: watch() */
    int statm;  /* /proc/self/statm; -1: not there */
    int hardware[N_HARDWARE][THREADS_MOST];
    uint32_t n_hardware; /* threads; 0: not read */
    uint64_t failed;     /* PWA2 */
    readings before;
};

/* ---- hardware counters ----------------------------------------------------------------------- */

static void close_hardware(mtprof__watch *w)
{
    for (uint32_t i = 0; i < N_HARDWARE * w->n_hardware; i++) {
        close(w->hardware[i % N_HARDWARE][i / N_HARDWARE]);
    }
    w->n_hardware = 0;
}

/* One thread, and those that it will start. 0 or an errno value. */
static int open_thread(mtprof__watch *w, pid_t thread)
{
    for (uint32_t i = 0; i < N_HARDWARE; i++) {
        struct perf_event_attr attr = {
            .type = PERF_TYPE_HARDWARE,
            .size = sizeof attr,
            .config = hardware_events[i],
            .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
            .inherit = 1,
            .exclude_kernel = 1,
            .exclude_hv = 1,
        };
        int fd = (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0) {
            int error = errno;
            while (i > 0) {
                close(w->hardware[--i][w->n_hardware]);
            }
            return error;
        }
        w->hardware[i][w->n_hardware] = fd;
    }
    w->n_hardware++;
    return 0;
}

/* All threads that there are. NULL, or why there are no hardware counters. */
static const char *open_hardware(mtprof__watch *w)
{
    DIR *tasks = opendir("/proc/self/task");
    int error = tasks == NULL ? ENOENT : 0;
    bool many = false;
    for (const struct dirent *e; error == 0 && !many && (e = readdir(tasks)) != NULL;) {
        long thread = strtol(e->d_name, NULL, 10);
        many = w->n_hardware == THREADS_MOST;
        if (thread > 0 && !many) {
            error = open_thread(w, (pid_t)thread);
            error = error == ESRCH ? 0 : error; /* it has ended */
        }
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    if (error == 0 && !many) {
        return NULL;
    }
    close_hardware(w);
    return many ? "not recorded: the program has more than 64 threads"
           : error == EACCES || error == EPERM ? "not allowed by the kernel (perf_event_paranoid)"
           : error == EMFILE                   ? "not recorded: too many open files"
                                               : "not there on this machine";
}

/* The sum over threads, made up for the time in which the processor counted something else. */
static bool read_hardware(mtprof__watch *w, uint32_t which, double *sum)
{
    *sum = 0;
    for (uint32_t i = 0; i < w->n_hardware; i++) {
        uint64_t value[3];
        if (read(w->hardware[which][i], value, sizeof value) != sizeof value) {
            w->failed++;
            return false;
        }
        *sum += value[2] > 0 ? (double)value[0] * ((double)value[1] / (double)value[2]) : 0;
    }
    return w->n_hardware > 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

int64_t mtprof__resident_bytes(int statm)
{
    char text[128];
    ssize_t n = statm >= 0 ? pread(statm, text, sizeof text - 1, 0) : -1;
    text[n > 0 ? n : 0] = '\0';
    char *resident = NULL; /* the second number; the first is the address space */
    char *end = NULL;
    (void)strtoull(text, &resident, 10);
    unsigned long long pages = strtoull(resident, &end, 10);
    return end != resident ? (int64_t)(pages * (unsigned long long)sysconf(_SC_PAGESIZE)) : -1;
}

static bool read_rss(mtprof__watch *w, int64_t *bytes)
{
    *bytes = mtprof__resident_bytes(w->statm);
    w->failed += *bytes < 0;
    return *bytes >= 0;
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static bool read_usage(mtprof__watch *w, readings *now)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) {
        w->failed++;
        return false;
    }
    now->cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    now->rates[0] = (double)usage.ru_nvcsw;
    now->rates[1] = (double)usage.ru_nivcsw;
    now->rates[2] = (double)usage.ru_minflt;
    now->rates[3] = (double)usage.ru_majflt;
    return true;
}

/* The first time there is nothing to compare with but resident memory. */
static void record_counters(mtprof__watch *w)
{
    readings now = {.at_ns = mtprof__mono_ns()};
    double passed = (double)(now.at_ns - w->before.at_ns) * 1e-9;
    bool rates = w->before.at_ns != 0 && passed > 0;
    int64_t rss = 0;
    if (read_rss(w, &rss)) {
        mtprof_counter(&rss_site, rss);
    }
    bool usage = read_usage(w, &now);
    if (usage && rates) {
        mtprof_counter_real(&cpu_site, (now.cpu_s - w->before.cpu_s) / passed);
    }
    for (uint32_t i = 0; usage && rates && i < MT_COUNT(rate_sites); i++) {
        mtprof_counter_real(&rate_sites[i], (now.rates[i] - w->before.rates[i]) / passed);
    }
    for (uint32_t i = 0; i < N_HARDWARE; i++) {
        if (read_hardware(w, i, &now.hardware[i]) && rates) {
            mtprof_counter_real(&hardware_sites[i],
                                (now.hardware[i] - w->before.hardware[i]) / passed);
        }
    }
    w->before = now;
}

static void *watch(void *argument)
{
    mtprof__watch *w = argument;
    uint64_t next = mtprof__mono_ns();
    bool last = false;
    while (!last) {
        last = __atomic_load_n(&w->leave, __ATOMIC_ACQUIRE);
        record_counters(w);
        uint64_t now = mtprof__mono_ns();
        next = next + w->every_ns > now ? next + w->every_ns : now + w->every_ns;
        const struct timespec end = {.tv_sec = (time_t)(next / SECOND_NS),
                                     .tv_nsec = (long)(next % SECOND_NS)};
        while (!last && sem_clockwait(&w->wake, CLOCK_MONOTONIC, &end) != 0 && errno == EINTR) {
        }
    }
    return NULL;
}

/* ---- start, stop ----------------------------------------------------------------------------- */

/* PWA2 */
static void tell(mtprof__watch *w, const char *hardware)
{
    static const char key[] = "process_counters";
    char text[256];
    int length =
        snprintf(text, sizeof text, "{\"hz\": %.6g, \"hardware\": \"%s\", \"failed_reads\": %llu}",
                 (double)SECOND_NS / (double)w->every_ns, hardware, (unsigned long long)w->failed);
    (void)mtprof_session_add_metadata(w->session, key, sizeof key - 1, text, (size_t)length, true);
}

static void free_watch(mtprof__watch *w)
{
    close_hardware(w);
    if (w->statm >= 0) {
        close(w->statm);
    }
    mtb_free(w);
}

mtprof_status mtprof__watch_start(mtprof_session *session, uint32_t hz, mtprof__watch **out)
{
    *out = NULL;
    if (hz == 0) {
        return MTPROF_OK;
    }
    mtprof__watch *w = mtb_calloc(1, sizeof *w);
    if (w == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "session_start: no memory for counters of the process");
    }
    w->session = session;
    w->every_ns = SECOND_NS / hz;
    w->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    const char *missing = open_hardware(w);
    tell(w, missing != NULL ? missing : "recorded");
    sem_init(&w->wake, 0, 0);
    sigset_t all, mine;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mine); /* no signal of the user's is handled there */
    int error = pthread_create(&w->thread, NULL, watch, w);
    pthread_sigmask(SIG_SETMASK, &mine, NULL);
    if (error != 0) {
        free_watch(w);
        return mtb_fail_errno(MTPROF_ENOMEM, error, "session_start: cannot start a thread");
    }
    pthread_setname_np(w->thread, "mtprof counters");
    *out = w;
    return MTPROF_OK;
}

void mtprof__watch_stop(mtprof__watch *w)
{
    if (w == NULL) {
        return;
    }
    __atomic_store_n(&w->leave, true, __ATOMIC_RELEASE);
    sem_post(&w->wake);
    pthread_join(w->thread, NULL);
    sem_destroy(&w->wake);
    if (w->failed > 0) {
        tell(w, w->n_hardware > 0 ? "recorded" : "not recorded");
    }
    free_watch(w);
}

void mtprof__watch_forget(mtprof__watch *w)
{
    if (w != NULL) {
        free_watch(w);
    }
}
