/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranked locks: rising order is checked in debug builds, and a thread knows that it holds one.
 */
#include "base/lock.h"
#include "harness/mt_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static mtb_lock low = MTB_LOCK_INIT(MTB_RANK_SOURCES);
static mtb_lock high = MTB_LOCK_INIT(MTB_RANK_STORE);

TEST(a_thread_knows_that_it_holds_a_lock)
{
    CHECK(!mtb_locks_held());
    mtb_lock_acquire(&low);
    CHECK(mtb_locks_held());
    mtb_lock_acquire(&high);
    mtb_lock_release(&high);
    CHECK(mtb_locks_held());
    mtb_lock_release(&low);
    CHECK(!mtb_locks_held());
}

TEST(locks_may_be_given_back_in_any_order)
{
    mtb_lock_acquire(&low);
    mtb_lock_acquire(&high);
    mtb_lock_release(&low);
    CHECK(mtb_locks_held());
    mtb_lock_release(&high);
    CHECK(!mtb_locks_held());
}

static void *ask(void *answer)
{
    *(bool *)answer = mtb_locks_held();
    return NULL;
}

TEST(another_threads_locks_are_not_ours)
{
    bool held = true;
    pthread_t thread;
    mtb_lock_acquire(&low);
    REQUIRE(pthread_create(&thread, NULL, ask, &held) == 0);
    pthread_join(thread, NULL);
    mtb_lock_release(&low);
    CHECK(!held);
}

static uint64_t total;

static void *add(void *lock)
{
    for (int i = 0; i < 20000; i++) {
        mtb_lock_acquire(lock);
        total++;
        mtb_lock_release(lock);
    }
    return NULL;
}

TEST(one_thread_at_a_time)
{
    mtb_lock lock;
    pthread_t threads[4];
    mtb_lock_init(&lock, MTB_RANK_NAMES);
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, add, &lock) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ_U64(total, 80000);
    mtb_lock_fini(&lock);
}

/* Runs in a child; whether an assertion ended it. */
static bool asserts(void (*act)(void))
{
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        close(2);
        act();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void take_falling(void)
{
    mtb_lock_acquire(&high);
    mtb_lock_acquire(&low);
}

static void take_twice(void)
{
    mtb_lock_acquire(&high);
    mtb_lock_acquire(&high);
}

static void take_rising(void)
{
    mtb_lock_acquire(&low);
    mtb_lock_acquire(&high);
}

TEST(falling_rank_is_an_assertion)
{
#if defined(MT_DEBUG) && MT_DEBUG
    CHECK(asserts(take_falling));
    CHECK(asserts(take_twice));
    CHECK(!asserts(take_rising));
#else
    (void)asserts;
    (void)take_falling;
    (void)take_twice;
    (void)take_rising;
    MT_SKIP("this build has no assertions");
#endif
}

TEST(after_fork_a_lock_can_be_made_free)
{
    mtb_lock_acquire(&low);
    pid_t child = fork();
    if (child == 0) {
        mtb_locks_forget();
        mtb_lock_reset(&low);
        bool free_again = !mtb_locks_held();
        mtb_lock_acquire(&low);
        mtb_lock_release(&low);
        _exit(free_again ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    CHECK_EQ_I64(status, 0);
    mtb_lock_release(&low);
}
