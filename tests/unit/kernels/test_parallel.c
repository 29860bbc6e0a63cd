/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool of threads: PAR1 pieces, PAR2 fork, PAR3 no threads; concurrent callers, nested calls.
 */
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "kernels/walk/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    COUNT = 10007
};

typedef struct job {
    _Atomic int touched[COUNT];
    int64_t grain, count;
    _Atomic int64_t pieces;
    _Atomic bool wrong;
} job;

static void touch(void *context, int64_t begin, int64_t end)
{
    job *work = context;
    int64_t length = work->count - begin < work->grain ? work->count - begin : work->grain;
    if (begin % work->grain != 0 || end != begin + length) {
        atomic_store(&work->wrong, true);
    }
    atomic_fetch_add(&work->pieces, 1);
    for (int64_t i = begin; i < end; i++) {
        atomic_fetch_add_explicit(&work->touched[i], 1, memory_order_relaxed);
    }
}

static void check_for(int64_t count, int64_t grain)
{
    static _Thread_local job work;
    memset(&work, 0, sizeof work);
    work.grain = grain;
    work.count = count;
    mt__parallel_for(count, grain, touch, &work);
    bool once = true;
    for (int64_t i = 0; i < COUNT; i++) {
        once = once && work.touched[i] == (i < count);
    }
    CHECK(once);
    CHECK(!work.wrong);
    CHECK_EQ_I64(work.pieces, (count + grain - 1) / grain);
}

/* PAR1: the same pieces whatever the number of threads. */
TEST(pieces_depend_on_grain_alone)
{
    static const uint32_t threads[] = {1, 2, 3, 8};
    for (int k = 0; k < 4; k++) {
        mt__parallel_set_threads(threads[k]);
        for (int round = 0; round < 50; round++) {
            check_for(COUNT, 100);
            check_for(COUNT, 1000);
            check_for(COUNT, COUNT);
            check_for(1, 5);
            check_for(0, 5);
            check_for(37, 1);
        }
    }
}

static void nest(void *context, int64_t begin, int64_t end)
{
    (void)context;
    (void)begin;
    (void)end;
    check_for(500, 10);
}

TEST(pieces_inside_pieces)
{
    mt__parallel_set_threads(4);
    for (int i = 0; i < 20; i++) {
        mt__parallel_for(8, 1, nest, NULL);
    }
}

static void *call_often(void *argument)
{
    (void)argument;
    for (int i = 0; i < 200; i++) {
        check_for(COUNT, 500);
    }
    return NULL;
}

TEST(callers_at_once)
{
    mt__parallel_set_threads(3);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, call_often, NULL) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* Workers fall asleep between jobs and are woken. */
TEST(jobs_after_a_pause)
{
    mt__parallel_set_threads(4);
    for (int i = 0; i < 20; i++) {
        check_for(COUNT, 100);
        usleep(2000);
    }
}

/* PAR2 */
TEST(child_has_its_own_pool)
{
    if (MT_TSAN) {
        MT_SKIP("ThreadSanitizer starts no threads after a fork");
    }
    mt__parallel_set_threads(4);
    check_for(COUNT, 100);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 20; i++) {
            check_for(COUNT, 100);
        }
        _exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_EQ_I64(status, 0);
    check_for(COUNT, 100);
}

/* PAR3: no memory for the stacks of threads. */
TEST(threads_that_cannot_be_had)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    MT_SKIP("sanitizers need the address space that this case takes away");
#else
    struct rlimit none = {1, 1};
    REQUIRE(setrlimit(RLIMIT_AS, &none) == 0);
    mt__parallel_set_threads(64);
    check_for(COUNT, 100);
    check_for(COUNT, 10);
#endif
}

TEST(number_of_threads)
{
    CHECK(mt__parallel_threads() >= 1);
    mt__parallel_set_threads(3);
    CHECK_EQ_U64(mt__parallel_threads(), 3);
    mt__parallel_set_threads(100000);
    CHECK(mt__parallel_threads() <= 256);
    mt__parallel_set_threads(0);
    CHECK(mt__parallel_threads() >= 1);
}
