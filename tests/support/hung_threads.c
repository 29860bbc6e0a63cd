/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that hang, see hung_threads.h.
 */
#include "support/hung_threads.h"

#include "harness/mt_test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void hung_arrive(hung *h)
{
    __atomic_store_n(&h->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

/* Waits for a state of a thread that says that it is where it hangs. */
void hung_wait_for_state(hung *h, char wanted)
{
    pid_t tid;
    while ((tid = __atomic_load_n(&h->tid, __ATOMIC_ACQUIRE)) == 0) {
        sched_yield();
    }
    char path[64], text[512];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    for (;;) {
        int fd = open(path, O_RDONLY);
        REQUIRE(fd >= 0);
        ssize_t got = read(fd, text, sizeof text - 1);
        close(fd);
        REQUIRE(got > 0);
        text[got] = '\0';
        const char *state = strrchr(text, ')');
        REQUIRE(state != NULL);
        if (state[2] == wanted) {
            return;
        }
        sched_yield();
    }
}

/* Functions that are not inlined, so that a stack has them. */
#define KEPT __attribute__((noinline, used))

KEPT static void take_second_lock(hung *h)
{
    hung_arrive(h);
    pthread_mutex_lock(h->second);
    pthread_mutex_unlock(h->second);
}

KEPT static void *deadlock(void *argument)
{
    hung *h = argument;
    pthread_mutex_lock(h->first);
    while (__atomic_load_n(&h->leave, __ATOMIC_ACQUIRE) == 0) {
        sched_yield(); /* until both have their first lock */
    }
    take_second_lock(h);
    pthread_mutex_unlock(h->first);
    return NULL;
}

KEPT static void loop_for_ever(hung *h)
{
    hung_arrive(h);
    while (__atomic_load_n(&h->leave, __ATOMIC_RELAXED) == 0) {
    }
    __asm__ volatile("" ::: "memory");
}

KEPT static void *loop(void *argument)
{
    loop_for_ever(argument);
    __asm__ volatile("");
    return NULL;
}

KEPT static ssize_t read_nothing(hung *h)
{
    char byte;
    hung_arrive(h);
    ssize_t got = read(h->pipe[0], &byte, 1);
    return got + 1;
}

KEPT void *hung_blocked_read(void *argument)
{
    ssize_t got = read_nothing(argument);
    return got == 2 ? NULL : argument;
}

static void *deaf(void *argument)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    return hung_blocked_read(argument);
}

void hung_start(hung *h, void *(*run)(void *))
{
    REQUIRE(pthread_create(&h->thread, NULL, run, h) == 0);
}

/* The part of the text that is of one thread; at most `bytes` of it. */
static void part_of(const char *text, const hung *h, char *part, size_t bytes)
{
    char head[32];
    (void)snprintf(head, sizeof head, "thread %d ", (int)h->tid);
    const char *from = text != NULL ? strstr(text, head) : NULL;
    if (from == NULL) {
        FAIL("no %s in\n%s", head, text != NULL ? text : "");
        part[0] = '\0';
        return;
    }
    const char *to = strstr(from + 1, "\nthread ");
    size_t n = to != NULL ? (size_t)(to - from) : strlen(from);
    (void)snprintf(part, bytes, "%.*s", (int)n, from);
}

void hung_check(const char *text, const hung *h, const char *wanted)
{
    char part[16384];
    part_of(text, h, part, sizeof part);
    if (strstr(part, wanted) == NULL) {
        FAIL("no %s in\n%s", wanted, part);
    }
}

void hung_begin(hung_set *set)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    memset(set, 0, sizeof *set);
    for (size_t i = 0; i < 2; i++) {
        set->locks[i] = set->held[i] = fresh;
        pthread_mutex_lock(&set->held[i]);
    }
    /* The second locks are held here, so that a test can end: to the threads it is a deadlock. */
    set->a.first = &set->locks[0], set->b.first = &set->locks[1];
    set->a.second = &set->held[0], set->b.second = &set->held[1];
    set->a.leave = set->b.leave = 1;
    REQUIRE(pipe(set->reader.pipe) == 0 && pipe(set->blocker.pipe) == 0);
    hung_start(&set->a, deadlock);
    hung_start(&set->b, deadlock);
    hung_start(&set->spin, loop);
    hung_start(&set->reader, hung_blocked_read);
    hung_start(&set->blocker, deaf);
    hung_wait_for_state(&set->a, 'S');
    hung_wait_for_state(&set->b, 'S');
    hung_wait_for_state(&set->spin, 'R');
    hung_wait_for_state(&set->reader, 'S');
    hung_wait_for_state(&set->blocker, 'S');
}

void hung_check_all(const hung_set *set, const char *text)
{
    hung_check(text, &set->a, "take_second_lock+0x");
    hung_check(text, &set->a, "deadlock+0x");
    hung_check(text, &set->b, "take_second_lock+0x");
    hung_check(text, &set->a, " in futex (");
    hung_check(text, &set->reader, "read_nothing+0x");
    hung_check(text, &set->reader, "sleeping in read (");
    hung_check(text, &set->blocker, "no stack, it blocks the signal");
#if defined(__SANITIZE_ADDRESS__)
    hung_check(text, &set->spin, "loop_for_ever+0x");
#else
    hung_check(text, &set->spin, "  #0  loop_for_ever+0x");
#endif
    hung_check(text, &set->spin, "running");
    CHECK(text == NULL || strstr(text, "take_stack") == NULL); /* the handler is not on them */
}

void hung_end(hung_set *set)
{
    for (size_t i = 0; i < 2; i++) {
        pthread_mutex_unlock(&set->held[i]);
    }
    CHECK(write(set->reader.pipe[1], "x", 1) == 1 && write(set->blocker.pipe[1], "x", 1) == 1);
    __atomic_store_n(&set->spin.leave, 1, __ATOMIC_RELEASE);
    hung *all[] = {&set->a, &set->b, &set->spin, &set->reader, &set->blocker};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        void *result;
        pthread_join(all[i]->thread, &result);
        CHECK(result == NULL); /* the reads went on: SA_RESTART */
    }
    for (size_t i = 0; i < 2; i++) {
        close(set->reader.pipe[i]);
        close(set->blocker.pipe[i]);
    }
}

void hung_skip_with_tsan(void)
{
#if defined(__SANITIZE_THREAD__)
    MT_SKIP("ThreadSanitizer holds signals back until the thread makes a call that it knows");
#endif
}
