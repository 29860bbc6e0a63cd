/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds the recorder's helper thread up, in the clock callback of a source, so that recording
 * threads have to do everything themselves: map memory, take segments.
 */
#ifndef TESTS_STRESS_HOLD_HELPER_H
#define TESTS_STRESS_HOLD_HELPER_H

#include "stress/stress.h"

#include <semaphore.h>

static sem_t hold_held, hold_release;
static int hold_wanted; /* 1: the next call of the clock stays */
static mtprof_source *hold_source;

static inline uint64_t hold_clock(void *context)
{
    (void)context;
    int wanted = 1;
    if (__atomic_compare_exchange_n(&hold_wanted, &wanted, 0, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
        sem_post(&hold_held);
        while (sem_wait(&hold_release) != 0) {
        }
    }
    return mtprof_ticks();
}

static inline mtprof_status hold_start(void *context, mtprof_source *source, uint64_t wants)
{
    (void)context;
    (void)source;
    (void)wants;
    return MTPROF_OK;
}

static inline void hold_stop(void *context)
{
    (void)context;
}

/* Before the session is started. */
static inline void hold_prepare(void)
{
    mtprof_source_ops ops = {.struct_size = sizeof ops,
                             .abi = MTPROF_SOURCE_ABI,
                             .name = "holds the helper",
                             .start = hold_start,
                             .stop = hold_stop,
                             .clock = hold_clock};
    sem_init(&hold_held, 0, 0);
    sem_init(&hold_release, 0, 0);
    if (!CHECK_OK(mtprof_source_register(&ops, &hold_source))) {
        mt_test_leave();
    }
}

/* While it records; returns once the helper is held (it comes by once a second). */
static inline void hold_begin(void)
{
    __atomic_store_n(&hold_wanted, 1, __ATOMIC_RELEASE);
    while (sem_wait(&hold_held) != 0) {
    }
}

static inline void hold_end(void)
{
    sem_post(&hold_release);
}

/* After the session is closed. */
static inline void hold_forget(void)
{
    mtprof_source_unregister(hold_source);
}

#endif /* TESTS_STRESS_HOLD_HELPER_H */
