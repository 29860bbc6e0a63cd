/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranked mutexes, see lock.h.
 */
#include "base/lock.h"

#include "base/compiler.h"

/* Bit per rank. A bit is set before the mutex is locked and cleared after it is unlocked, so that a
 * signal handler in between sees it too. No thread holds two locks of one rank. */
static __thread volatile uint32_t held __attribute__((tls_model("initial-exec")));

void mtb_lock_init(mtb_lock *lock, enum mtb_lock_rank rank)
{
    pthread_mutex_init(&lock->mutex, NULL);
    lock->rank = (uint32_t)rank;
}

void mtb_lock_fini(mtb_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

void mtb_lock_acquire(mtb_lock *lock)
{
    MT_ASSERT((held >> lock->rank) == 0); /* rising rank, and never twice */
    held = held | 1u << lock->rank;
    MT_COMPILER_BARRIER();
    pthread_mutex_lock(&lock->mutex);
}

void mtb_lock_release(mtb_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
    MT_COMPILER_BARRIER();
    held = held & ~(1u << lock->rank);
}

bool mtb_locks_held(void)
{
    return held != 0;
}

void mtb_lock_reset(mtb_lock *lock)
{
    pthread_mutex_init(&lock->mutex, NULL);
}

void mtb_locks_forget(void)
{
    held = 0;
}
