/* SPDX-License-Identifier: Apache-2.0
 *
 * The native stacks of all threads, see thread_stacks.h.
 */
#include "mtprof/flight/thread_stacks.h"

#include "base/fail.h"
#include "base/pages.h"
#include "mtprof/flight/code_names.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    SLOTS = 64, /* threads asked at once */
    FRAMES_MOST = 96,
    LINE_BYTES = 512,
    PROC_BYTES = 4096,
    LOOK_NS = 20 * 1000 * 1000,
    LOOK_AGAIN = 20
};

enum slot_state {
    SLOT_FREE,
    SLOT_ASKED,
    SLOT_WRITING,
    SLOT_DONE
};

typedef struct slot {
    uint32_t word; /* atomic: number << 2 | state */
    int n_frames;
    uintptr_t thread; /* pthread_self() */
    uintptr_t at;     /* where the signal interrupted it; 0: not known here */
    void *frames[FRAMES_MOST];
} slot;

/* Static: a handler may come at any time, even when nobody waits for it any more. */
static slot slots[SLOTS];
static sem_t answered;
static int taken_signal; /* atomic; 0: none */
static struct sigaction previous;

/* ---- the text -------------------------------------------------------------------------------- */

bool mtprof__stacks_put(mtprof__stacks_text *text, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0) {
        return false;
    }
    size_t n = (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
    if (text->used + n + 1 > STACKS_TEXT_MOST ||
        !mtb_pages_grow((void **)&text->bytes, &text->capacity, text->used + n + 1, 1)) {
        return false;
    }
    memcpy(text->bytes + text->used, line, n + 1);
    text->used += n;
    return true;
}

void mtprof__stacks_fini(mtprof__stacks_text *text)
{
    mtb_pages_give(text->bytes, text->capacity);
    memset(text, 0, sizeof *text);
}

/* ---- the handler ----------------------------------------------------------------------------- */

static uintptr_t interrupted_at(const void *context)
{
#if defined(__x86_64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

static void take_stack(int number, siginfo_t *info, void *context)
{
    (void)number;
    int error = errno;
    uint64_t value = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
    slot *s = &slots[value % SLOTS];
    uint32_t asked = (uint32_t)(value / SLOTS) << 2 | SLOT_ASKED;
    /* A signal from elsewhere, or too late: the number differs (TST3). */
    if (info->si_code == SI_QUEUE && info->si_pid == getpid() &&
        __atomic_compare_exchange_n(&s->word, &asked, asked - SLOT_ASKED + SLOT_WRITING, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        s->thread = (uintptr_t)pthread_self();
        s->at = interrupted_at(context);
        s->n_frames = backtrace(s->frames, FRAMES_MOST);
        /* read by collect_answers() */
        __atomic_store_n(&s->word, asked - SLOT_ASKED + SLOT_DONE, __ATOMIC_RELEASE);
        sem_post(&answered);
    }
    errno = error;
}

static bool has_handler(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 ||
           (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
}

mtprof_status mtprof__stacks_take_signal(int number)
{
    int chosen = number;
    for (int i = SIGRTMAX - 3; chosen == 0 && i > SIGRTMIN; i--) {
        chosen = has_handler(i) ? 0 : i;
    }
    if (chosen < 0 || chosen > SIGRTMAX || chosen == SIGKILL || chosen == SIGSTOP) {
        return mtb_fail(MTPROF_EINVAL, "flight_start: %d is no signal that can be handled", number);
    }
    if (chosen == 0 || has_handler(chosen)) { /* TST1 */
        return mtb_fail(MTPROF_EBUSY, "flight_start: signal %d for stacks has a handler already",
                        number);
    }
    int none = 0;
    if (!__atomic_compare_exchange_n(&taken_signal, &none, chosen, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
        return mtb_fail(MTPROF_EBUSY, "flight_start: stacks are taken with signal %d already",
                        none);
    }
    static bool prepared; /* under taken_signal */
    if (!prepared) {
        sem_init(&answered, 0, 0);
        void *frames[4];
        (void)backtrace(frames, 4); /* loads the unwinder (TST2) */
        prepared = true;
    }
    /* Nothing is blocked in the handler: a blocked signal means that the thread cannot be asked. */
    struct sigaction action = {.sa_sigaction = take_stack,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    if (sigaction(chosen, &action, &previous) != 0) {
        __atomic_store_n(&taken_signal, 0, __ATOMIC_RELEASE);
        return mtb_fail_errno(MTPROF_EINVAL, errno, "flight_start: signal %d", number);
    }
    return MTPROF_OK;
}

void mtprof__stacks_give_signal(void)
{
    int number = __atomic_load_n(&taken_signal, __ATOMIC_ACQUIRE);
    struct sigaction now;
    if (number == 0) {
        return;
    }
    if (sigaction(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
        now.sa_sigaction == take_stack) {
        /* A signal that is still under way to a thread must not end the process. */
        struct sigaction ignore = {.sa_handler = SIG_IGN};
        sigaction(number, &ignore, NULL); /* drops those that are pending */
        sigaction(number, &previous, NULL);
    }
    __atomic_store_n(&taken_signal, 0, __ATOMIC_RELEASE);
}

/* ---- what the kernel says of a thread -------------------------------------------------------- */

typedef struct thread_facts {
    pid_t tid;
    char name[32];
    char state;
    bool blocks; /* the signal */
    long call;   /* the system call it is in; -1: none, or not known */
    int slot;    /* -1: it was not asked */
} thread_facts;

/* What is in a small file of /proc/self/task/TID; "" where it cannot be read. */
static void read_task(pid_t tid, const char *what, char *text, size_t bytes)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)tid, what);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, bytes - 1) : 0;
    if (fd >= 0) {
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
}

static bool read_status(thread_facts *t, int signal)
{
    char text[PROC_BYTES];
    read_task(t->tid, "status", text, sizeof text);
    const char *name = strstr(text, "Name:\t"), *state = strstr(text, "State:\t");
    const char *blocked = strstr(text, "SigBlk:\t");
    if (name == NULL || state == NULL || blocked == NULL) {
        return false; /* it has ended */
    }
    size_t length = strcspn(name + 6, "\n");
    (void)snprintf(t->name, sizeof t->name, "%.*s", (int)length, name + 6);
    t->state = state[7];
    t->blocks = (strtoull(blocked + 8, NULL, 16) >> (signal - 1) & 1) != 0;
    t->slot = -1;
    return true;
}

/* False: it has ended. */
static bool read_facts(thread_facts *t, int signal)
{
    char text[PROC_BYTES];
    if (!read_status(t, signal)) {
        return false;
    }
    /* A thread that begins or ends blocks signals for a moment. */
    for (unsigned i = 0; t->blocks && t->state == 'R' && i < LOOK_AGAIN; i++) {
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = 1000 * 1000}, NULL);
        if (!read_status(t, signal)) {
            return false;
        }
    }
    read_task(t->tid, "syscall", text, sizeof text);
    char *end;
    t->call = strtol(text, &end, 10);
    t->call = end == text ? -1 : t->call;
    return true;
}

static const char *state_text(char state)
{
    switch (state) {
    case 'R': return "running";
    case 'S': return "sleeping";
    case 'D': return "in an uninterruptible wait";
    case 'T':
    case 't': return "stopped";
    case 'Z':
    case 'X': return "ended";
    default: return "in an unknown state";
    }
}

static void put_call(mtprof__stacks_text *text, const thread_facts *t)
{
    static const struct {
        long number;
        const char *name;
    } calls[] = {
        {SYS_read, "read"},
        {SYS_write, "write"},
        {SYS_futex, "futex"},
        {SYS_ppoll, "ppoll"},
        {SYS_pselect6, "pselect6"},
        {SYS_epoll_pwait, "epoll_pwait"},
        {SYS_nanosleep, "nanosleep"},
        {SYS_clock_nanosleep, "clock_nanosleep"},
        {SYS_recvfrom, "recvfrom"},
        {SYS_recvmsg, "recvmsg"},
        {SYS_sendto, "sendto"},
        {SYS_sendmsg, "sendmsg"},
        {SYS_connect, "connect"},
        {SYS_accept4, "accept4"},
        {SYS_wait4, "wait4"},
        {SYS_waitid, "waitid"},
        {SYS_ioctl, "ioctl"},
        {SYS_fsync, "fsync"},
        {SYS_flock, "flock"},
        {SYS_openat, "openat"},
        {SYS_pread64, "pread64"},
        {SYS_pwrite64, "pwrite64"},
        {SYS_munmap, "munmap"},
        {SYS_madvise, "madvise"},
        {SYS_rt_sigtimedwait, "rt_sigtimedwait"},
        {SYS_rt_sigsuspend, "rt_sigsuspend"},
#ifdef SYS_poll
        {SYS_poll, "poll"},
        {SYS_select, "select"},
        {SYS_epoll_wait, "epoll_wait"},
        {SYS_pause, "pause"},
#endif
    };
    if (t->call < 0) {
        return;
    }
    for (size_t i = 0; i < MT_COUNT(calls); i++) {
        if (calls[i].number == t->call) {
            mtprof__stacks_put(text, " in %s", calls[i].name);
            return;
        }
    }
    mtprof__stacks_put(text, " in system call %ld", t->call);
}

/* ---- asking threads -------------------------------------------------------------------------- */

/* Asks a thread; false: it has ended. */
static bool ask(thread_facts *t, int signal)
{
    static uint32_t number; /* of the last question; one thread asks */
    int i = 0;
    while (i < SLOTS && (__atomic_load_n(&slots[i].word, __ATOMIC_ACQUIRE) & 3) != SLOT_FREE) {
        i++;
    }
    if (i == SLOTS) {
        return true; /* all are held by handlers that hang */
    }
    number = (number + 1) & 0x3FFFFFFF;
    __atomic_store_n(&slots[i].word, number << 2 | SLOT_ASKED, __ATOMIC_RELEASE);
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = signal;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)(uintptr_t)((uint64_t)number * SLOTS + (uint64_t)i);
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), t->tid, signal, &info) != 0) {
        bool ended = errno == ESRCH;
        __atomic_store_n(&slots[i].word, SLOT_FREE, __ATOMIC_RELEASE);
        return !ended;
    }
    t->slot = i;
    return true;
}

static struct timespec later(uint64_t wait_ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t ns = (uint64_t)t.tv_nsec + wait_ns;
    t.tv_sec += (time_t)(ns / 1000000000u);
    t.tv_nsec = (long)(ns % 1000000000u);
    return t;
}

/* Whether an answer may still come. */
static bool is_expected(const thread_facts *t)
{
    return t->slot >= 0 &&
           (__atomic_load_n(&slots[t->slot].word, __ATOMIC_ACQUIRE) & 3) != SLOT_DONE &&
           syscall(SYS_tgkill, getpid(), t->tid, 0) == 0; /* it may have ended meanwhile */
}

/* Waits until all that were asked have answered, or the time is over. */
static void wait_for_answers(const thread_facts *threads, size_t n, uint64_t wait_ns)
{
    struct timespec end = later(wait_ns);
    for (bool over = false; !over;) {
        size_t i = 0;
        while (i < n && !is_expected(&threads[i])) {
            i++;
        }
        if (i == n) {
            return;
        }
        struct timespec next = later(LOOK_NS); /* threads that end do not wake us */
        over =
            next.tv_sec > end.tv_sec || (next.tv_sec == end.tv_sec && next.tv_nsec >= end.tv_nsec);
        while (sem_clockwait(&answered, CLOCK_MONOTONIC, over ? &end : &next) != 0 &&
               errno == EINTR) {
        }
    }
}

/* Whether there is an answer. A question without one is taken back, so that its slot is free again;
 * one that a handler is answering right now keeps its slot until the next time (TST3). */
static bool has_answer(const thread_facts *t)
{
    if (t->slot < 0) {
        return false;
    }
    uint32_t word = __atomic_load_n(&slots[t->slot].word, __ATOMIC_ACQUIRE);
    if ((word & 3) == SLOT_ASKED &&
        __atomic_compare_exchange_n(&slots[t->slot].word, &word, SLOT_FREE, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        return false;
    }
    return (word & 3) == SLOT_DONE;
}

/* The first frame that is the thread's own: those before it are the handler's. */
static int first_frame(const slot *s)
{
    for (int i = 0; i < s->n_frames; i++) {
        if ((uintptr_t)s->frames[i] == s->at) {
            return i;
        }
    }
    return 0;
}

/* A return address is behind the call, perhaps in the next function already. */
static uint64_t looked_up(const slot *s, int i)
{
    return (uint64_t)(uintptr_t)s->frames[i] - (i > first_frame(s) ? 1 : 0);
}

static void put_frame(mtprof__stacks_text *text, const mtprof__code_names *names, const slot *s,
                      int i)
{
    uint64_t address = looked_up(s, i);
    uint64_t back = (uint64_t)(uintptr_t)s->frames[i] - address;
    const mtprof__code_name *name = mtprof__code_names_find(names, address);
    mtprof__stacks_put(text, "  #%-2d ", i - first_frame(s));
    if (name == NULL || name->file[0] == '\0') {
        mtprof__stacks_put(text, "0x%" PRIx64 "\n", (uint64_t)(uintptr_t)s->frames[i]);
    } else if (name->name[0] != '\0') {
        mtprof__stacks_put(text, "%s+0x%" PRIx64 " (%s)\n", name->name,
                           name->in_file - name->symbol + back, name->file);
    } else {
        mtprof__stacks_put(text, "%s+0x%" PRIx64 "\n", name->file, name->in_file + back);
    }
}

/* The files in which functions have no names, so that others can look them up. */
static void put_build_ids(mtprof__stacks_text *text, const mtprof__code_names *names)
{
    const mtprof__code_name *last = NULL;
    for (size_t i = 0; i < names->count; i++) {
        const mtprof__code_name *name = &names->at[i];
        if (name->name[0] != '\0' || name->build_bytes == 0 ||
            (last != NULL && strcmp(last->file, name->file) == 0)) {
            continue;
        }
        mtprof__stacks_put(text, "build id of %s: ", name->file);
        for (unsigned k = 0; k < name->build_bytes; k++) {
            mtprof__stacks_put(text, "%02x", name->build[k]);
        }
        mtprof__stacks_put(text, "\n");
        last = name;
    }
}

static void put_thread(mtprof__stacks_text *text, const mtprof__code_names *names,
                       const thread_facts *t, bool answered_it)
{
    mtprof__stacks_put(text, "thread %d \"%s\", %s", (int)t->tid, t->name, state_text(t->state));
    put_call(text, t);
    if (!answered_it) {
        mtprof__stacks_put(text, ": no stack, %s\n",
                           t->blocks     ? "it blocks the signal"
                           : t->slot < 0 ? "it could not be asked"
                                         : "it did not answer");
        return;
    }
    const slot *s = &slots[t->slot];
    mtprof__stacks_put(text, " (0x%" PRIxPTR ")\n", s->thread);
    for (int i = first_frame(s); i < s->n_frames; i++) {
        put_frame(text, names, s, i);
    }
    if (s->n_frames == FRAMES_MOST) {
        mtprof__stacks_put(text, "  ... only the innermost %d frames are kept\n", FRAMES_MOST);
    }
}

/* Slots of answers that came after their time, or were used. */
static void free_slots(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        uint32_t word = __atomic_load_n(&slots[i].word, __ATOMIC_ACQUIRE);
        if ((word & 3) == SLOT_DONE) {
            __atomic_store_n(&slots[i].word, SLOT_FREE, __ATOMIC_RELEASE);
        }
    }
}

static void collect_some(mtprof__stacks_text *text, thread_facts *threads, size_t n, int signal,
                         uint64_t wait_ns)
{
    bool answers[SLOTS];
    mtprof__code_names names = {0};
    free_slots();
    size_t asked = 0;
    for (size_t i = 0; i < n; i++) {
        if (threads[i].blocks || threads[i].state == 'Z' || ask(&threads[i], signal)) {
            threads[asked++] = threads[i];
        }
    }
    wait_for_answers(threads, asked, wait_ns);
    for (size_t i = 0; i < asked; i++) {
        answers[i] = has_answer(&threads[i]);
        const slot *s = answers[i] ? &slots[threads[i].slot] : NULL;
        for (int k = s != NULL ? first_frame(s) : 0; s != NULL && k < s->n_frames; k++) {
            (void)mtprof__code_names_add(&names, looked_up(s, k));
        }
    }
    mtprof__code_names_resolve(&names);
    for (size_t i = 0; i < asked; i++) {
        /* room for the longest stack that can be, and the last line */
        if (text->used + FRAMES_MOST * (CODE_NAME_BYTES + CODE_FILE_BYTES + 64) >
            STACKS_TEXT_MOST) {
            text->left_out++;
        } else {
            put_thread(text, &names, &threads[i], answers[i]);
        }
    }
    put_build_ids(text, &names);
    mtprof__code_names_fini(&names);
    free_slots();
}

/* ---- which threads there are ----------------------------------------------------------------- */

/* Their numbers, without opendir(), which allocates (TST2). */
static size_t list_threads(pid_t *tids, size_t most, uint32_t *left_out)
{
    size_t n = 0;
    int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _Alignas(struct dirent64) char entries[PROC_BYTES];
    long got;
    while (fd >= 0 && (got = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
        for (long at = 0; at < got;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
            at += entry->d_reclen;
            if (tid > 0 && n < most) {
                tids[n++] = tid;
            } else if (tid > 0) {
                (*left_out)++;
            }
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return n;
}

void mtprof__stacks_collect(mtprof__stacks_text *text, uint64_t wait_ns)
{
    int signal = __atomic_load_n(&taken_signal, __ATOMIC_ACQUIRE);
    size_t bytes = STACKS_THREADS_MOST * sizeof(pid_t);
    pid_t *tids = mtb_pages_take(bytes);
    if (tids == NULL || signal == 0) {
        mtprof__stacks_put(text, "no native stacks: %s\n",
                           signal == 0 ? "no signal was taken" : "out of memory");
        mtb_pages_give(tids, bytes);
        return;
    }
    size_t n = list_threads(tids, STACKS_THREADS_MOST, &text->left_out);
    pid_t self = (pid_t)syscall(SYS_gettid);
    thread_facts some[SLOTS];
    size_t n_some = 0;
    for (size_t i = 0; i < n; i++) {
        some[n_some].tid = tids[i];
        n_some += tids[i] != self && read_facts(&some[n_some], signal);
        if (n_some == SLOTS || (i + 1 == n && n_some > 0)) {
            collect_some(text, some, n_some, signal, wait_ns);
            n_some = 0;
        }
    }
    mtb_pages_give(tids, bytes);
    if (text->left_out > 0) {
        mtprof__stacks_put(text, "%" PRIu32 " more threads are left out\n", text->left_out);
    }
}
