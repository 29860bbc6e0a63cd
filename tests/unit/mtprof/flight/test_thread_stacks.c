/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks of threads that hang in several ways. Time decides nothing here: a thread is asked once
 * the kernel says that it is where it should be.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/flight/code_names.h"
#include "mtprof/flight/thread_stacks.h"
#include "support/hung_threads.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAIT_NS ((uint64_t)20 * 1000 * 1000 * 1000) /* only for threads that never answer */

/* Functions that are not inlined, so that a stack has them. */
#define KEPT __attribute__((noinline, used))

static void hang_and_look(void)
{
    hung_set set;
    mtprof__stacks_text text = {0};
    hung_begin(&set);
    REQUIRE_OK(mtprof__stacks_take_signal(0));
    mtprof__stacks_collect(&text, WAIT_NS);
    hung_check_all(&set, text.bytes);
    mtprof__stacks_give_signal();
    mtprof__stacks_fini(&text);
    hung_end(&set);
}

TEST(threads_that_hang_are_seen_where_they_hang)
{
    hung_skip_with_tsan();
    for (unsigned i = 0; i < (mt_test_long() ? 50 : 5); i++) {
        hang_and_look();
    }
}

KEPT static void work(hung *h)
{
    hung_arrive(h);
    while (__atomic_load_n(&h->leave, __ATOMIC_ACQUIRE) == 0) {
        usleep(100);
    }
}

KEPT static void *worker(void *argument)
{
    work(argument);
    __asm__ volatile("");
    return NULL;
}

static void *short_lived(void *argument)
{
    return argument;
}

/* Threads that run, begin and end meanwhile. */
TEST(threads_that_work_are_seen)
{
    hung workers[4] = {0};
    for (size_t i = 0; i < 4; i++) {
        hung_start(&workers[i], worker);
    }
    for (size_t i = 0; i < 4; i++) {
        while (__atomic_load_n(&workers[i].tid, __ATOMIC_ACQUIRE) == 0) {
            sched_yield();
        }
    }
    REQUIRE_OK(mtprof__stacks_take_signal(0));
    for (unsigned round = 0; round < 20; round++) {
        hung passing = {0};
        mtprof__stacks_text text = {0};
        hung_start(&passing, short_lived);
        mtprof__stacks_collect(&text, WAIT_NS);
        for (size_t i = 0; i < 4; i++) {
            hung_check(text.bytes, &workers[i], "work+0x");
            hung_check(text.bytes, &workers[i], "worker+0x");
        }
        mtprof__stacks_fini(&text);
        pthread_join(passing.thread, NULL);
    }
    mtprof__stacks_give_signal();
    for (size_t i = 0; i < 4; i++) {
        __atomic_store_n(&workers[i].leave, 1, __ATOMIC_RELEASE);
        pthread_join(workers[i].thread, NULL);
    }
}

TEST(many_threads_take_several_rounds)
{
    hung_skip_with_tsan();
    enum {
        N = 150
    };
    static hung all[N];
    for (unsigned i = 0; i < N; i++) {
        REQUIRE(pipe(all[i].pipe) == 0);
        hung_start(&all[i], hung_blocked_read);
    }
    for (unsigned i = 0; i < N; i++) {
        hung_wait_for_state(&all[i], 'S');
    }
    mtprof__stacks_text text = {0};
    REQUIRE_OK(mtprof__stacks_take_signal(0));
    mtprof__stacks_collect(&text, WAIT_NS);
    for (unsigned i = 0; i < N; i++) {
        hung_check(text.bytes, &all[i], "read_nothing+0x");
    }
    CHECK_EQ_U64(text.left_out, 0);
    mtprof__stacks_give_signal();
    mtprof__stacks_fini(&text);
    for (unsigned i = 0; i < N; i++) {
        CHECK(write(all[i].pipe[1], "x", 1) == 1);
        pthread_join(all[i].thread, NULL);
        close(all[i].pipe[0]), close(all[i].pipe[1]);
    }
}

static int handled; /* atomic */

static void users_handler(int number)
{
    (void)number;
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

TEST(the_signal_is_the_users_choice)
{
    CHECK_EQ_I64(mtprof__stacks_take_signal(SIGKILL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof__stacks_take_signal(-1), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof__stacks_take_signal(1000), MTPROF_EINVAL);
    signal(SIGUSR1, users_handler);
    CHECK_EQ_I64(mtprof__stacks_take_signal(SIGUSR1), MTPROF_EBUSY);
    CHECK_OK(mtprof__stacks_take_signal(SIGUSR2));
    CHECK_EQ_I64(mtprof__stacks_take_signal(SIGHUP), MTPROF_EBUSY);
    raise(SIGUSR2); /* a stranger's: nothing happens */
    mtprof__stacks_give_signal();
    mtprof__stacks_give_signal();
    struct sigaction now;
    sigaction(SIGUSR2, NULL, &now);
    CHECK(now.sa_handler == SIG_DFL);

    /* Replaced by the user meanwhile: that one stays. */
    CHECK_OK(mtprof__stacks_take_signal(SIGUSR2));
    signal(SIGUSR2, users_handler);
    mtprof__stacks_give_signal();
    raise(SIGUSR2);
    CHECK_EQ_I64(__atomic_load_n(&handled, __ATOMIC_RELAXED), 1);
    mtprof__stacks_text text = {0};
    mtprof__stacks_collect(&text, 0);
    CHECK_EQ_STR(text.bytes, "no native stacks: no signal was taken\n");
    mtprof__stacks_fini(&text);
}

TEST(a_text_that_is_too_long_ends)
{
    mtprof__stacks_text text = {0};
    unsigned lines = 0;
    while (lines < 1000 * 1000 && mtprof__stacks_put(&text, "line %u\n", lines)) {
        lines++;
    }
    CHECK(lines > 1000 && lines < 1000 * 1000);
    CHECK(text.used < STACKS_TEXT_MOST);
    CHECK_EQ_U64(strlen(text.bytes), text.used);
    mtprof__stacks_fini(&text);
}

/* ---- names of code --------------------------------------------------------------------------- */

KEPT static int function_of_this_file(int x)
{
    return x * 3;
}

TEST(functions_have_names_without_the_loader)
{
    mtprof__code_names names = {0};
    void *in_libc = dlsym(RTLD_DEFAULT, "strtoull");
    int on_the_stack = function_of_this_file(1);
    uint64_t addresses[] = {(uint64_t)(uintptr_t)&on_the_stack, 12345,
                            (uint64_t)(uintptr_t)in_libc + 1,
                            (uint64_t)(uintptr_t)function_of_this_file + 1};
    for (size_t i = 0; i < 8; i++) { /* twice: known ones are added once */
        REQUIRE(mtprof__code_names_add(&names, addresses[i % 4]));
    }
    mtprof__code_names_resolve(&names);
    CHECK_EQ_U64(names.count, 4);
    const mtprof__code_name *ours = mtprof__code_names_find(&names, addresses[3]);
    REQUIRE(ours != NULL);
    CHECK_EQ_STR(ours->name, "function_of_this_file");
    CHECK_EQ_U64(ours->in_file - ours->symbol, 1);
    CHECK_EQ_STR(ours->file, "test_thread_stacks");
    const mtprof__code_name *libc = mtprof__code_names_find(&names, addresses[2]);
    REQUIRE(libc != NULL);
    CHECK(libc->name[0] != '\0');
    const mtprof__code_name *nowhere = mtprof__code_names_find(&names, 12345);
    REQUIRE(nowhere != NULL);
    CHECK_EQ_STR(nowhere->file, "");
    CHECK(mtprof__code_names_find(&names, 777) == NULL);
    mtprof__code_names_fini(&names);
}

TEST(no_memory_is_no_crash)
{
    for (uint64_t n = 1; n < 12; n++) {
        mtprof__stacks_text text = {0};
        REQUIRE_OK(mtprof__stacks_take_signal(0));
        mtb_fail_nth(n, true);
        mtprof__stacks_collect(&text, WAIT_NS);
        mtb_fail_nth(0, false);
        mtprof__stacks_give_signal();
        mtprof__stacks_fini(&text);
    }
}
