/* SPDX-License-Identifier: Apache-2.0
 *
 * What each thread keeps for stacks, the list of these threads, and the lock (python_stacks.h).
 *
 *   STH1  A thread's part is made at its first event with a stack and freed when the thread ends,
 *         which needs no GIL: the list is the lock's.
 *   STH2  A forked child has one thread. What the others kept is left out of its list, and not
 *         freed: they may have been in the middle of changing it.
 */
#include "profiler/stacks/python_stacks.h"

#include <pthread.h>

__thread stacks_thread *stacks_mine __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static stacks_thread *threads; /* the lock's */
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_made;

/* ---- the lock ---- */

void stacks_lock(void)
{
    if (stacks_mine != NULL) {
        stacks_mine->busy++; /* a signal handler that comes now must not wait for the lock */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
    pthread_mutex_lock(&lock);
}

void stacks_unlock(void)
{
    pthread_mutex_unlock(&lock);
    if (stacks_mine != NULL) {
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        stacks_mine->busy--;
    }
}

stacks_thread *stacks_thread_first(void)
{
    return threads;
}

/* ---- threads ---- */

static void thread_ends(void *memory)
{
    stacks_thread *thread = memory;
    stacks_mine = NULL;
    stacks_lock();
    *(thread->previous != NULL ? &thread->previous->next : &threads) = thread->next;
    if (thread->next != NULL) {
        thread->next->previous = thread->previous;
    }
    stacks_unlock();
    stack_walk_free(thread->walk);
    module_steps_free(thread->steps);
    traced_calls_free(thread->calls);
    PyMem_RawFree(thread->levels); /* open calls' modules are leaked: this has no GIL */
    PyMem_RawFree(thread);
}

static void before_fork(void)
{
    stacks_lock();
}

static void after_fork(void)
{
    stacks_unlock();
}

static void in_the_child(void) /* STH2 */
{
    threads = stacks_mine;
    if (threads != NULL) {
        threads->next = threads->previous = NULL;
    }
    stacks_unlock();
}

static void make_key(void)
{
    key_made = pthread_atfork(before_fork, after_fork, in_the_child) == 0 &&
               pthread_key_create(&key, thread_ends) == 0;
}

stacks_thread *stacks_thread_new(void)
{
    pthread_once(&key_once, make_key);
    stacks_thread *fresh = key_made ? PyMem_RawCalloc(1, sizeof *fresh) : NULL;
    if (fresh != NULL && pthread_setspecific(key, fresh) != 0) {
        PyMem_RawFree(fresh);
        fresh = NULL;
    }
    if (fresh != NULL) {
        stacks_lock();
        fresh->next = threads;
        if (threads != NULL) {
            threads->previous = fresh;
        }
        threads = fresh;
        stacks_unlock();
        stacks_mine = fresh;
    }
    return fresh;
}
