/* SPDX-License-Identifier: Apache-2.0
 *
 * The helper thread, see helper.h. It sleeps until a writer finds the store low, or a second is
 * over.
 */
#include "mtprof/record/store/helper.h"

#include "base/fail.h"
#include "mtprof/record/source/source_registry.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void mtprof__anchor_now(mtprof__recording *recording)
{
    mtprof__anchor now = mtprof__clock_anchor();
    uint64_t record[4] = {mtprof__word0(MTPROF_REC_ANCHOR, 4, 0, 0), now.ticks, now.mono_ns,
                          now.real_ns};
    mtprof__control_append(recording, record, 4, now.ticks);
}

void mtprof__put_warning(mtprof__recording *recording, const char *message)
{
    size_t length = strlen(message);
    uint64_t record[3 + 64];
    uint32_t words = 3 + (uint32_t)mtprof__text_words(length);
    memset(record, 0, sizeof record);
    record[0] = mtprof__word0(MTPROF_REC_WARNING, words, 0, 0);
    record[1] = mtprof__ticks();
    record[2] = length;
    memcpy(record + 3, message, length);
    mtprof__control_append(recording, record, words, record[1]);
}

/* Warns, once per cause, that the store refuses events. In ring mode a used-up budget is normal. */
static void tell_trouble(mtprof__helper *helper)
{
    mtprof__store *store = helper->recording->store;
    uint32_t refused = __atomic_load_n(&store->refused, __ATOMIC_ACQUIRE);
    if (refused == 0) {
        return;
    }
    uint32_t cause = refused - 1;
    bool retry = cause == MTPROF_LOST_DISK || cause == MTPROF_LOST_MEMORY;
    bool losing = mtprof__store_counted(store, cause) != 0;
    if (losing && (store->warned & 1u << cause) == 0) {
        store->warned |= 1u << cause;
        char message[400];
        int error = __atomic_load_n(&store->refused_errno, __ATOMIC_RELAXED);
        char text[96];
        snprintf(message, sizeof message,
                 "recording to %.200s goes on without room: events are being lost (%s%s%s)",
                 store->path != NULL ? store->path : "memory", mtprof_lost_cause(cause),
                 error != 0 ? ": " : "", error != 0 ? strerror_r(error, text, sizeof text) : "");
        mtprof__put_warning(helper->recording, message);
        if (helper->on_warning != NULL) {
            helper->on_warning(
                helper->user, cause == MTPROF_LOST_MEMORY ? MTPROF_ENOMEM : MTPROF_ENOSPC, message);
        }
    }
    if (retry) {
        __atomic_store_n(&store->refused, 0, __ATOMIC_RELEASE); /* room may have come back */
    }
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* Sleeps until a writer finds the store low, the second is over, or the limiter's turn is due. */
static void sleep_until(mtprof__helper *helper, const struct timespec *next, uint64_t turn_ns)
{
    struct timespec turn = *next;
    if (turn_ns != UINT64_MAX) {
        turn.tv_sec = (time_t)(turn_ns / 1000000000);
        turn.tv_nsec = (long)(turn_ns % 1000000000);
    }
    sem_clockwait(&helper->wake, CLOCK_MONOTONIC, is_before(&turn, next) ? &turn : next);
}

static void *run(void *argument)
{
    mtprof__helper *helper = argument;
    mtprof__store *store = helper->recording->store;
    struct timespec next;
    mtprof__limiter_helper(&helper->limiter);
    clock_gettime(CLOCK_MONOTONIC, &next);
    next.tv_sec++;
    while (__atomic_load_n(&helper->leave, __ATOMIC_ACQUIRE) == 0) {
        __atomic_store_n(&store->helper_kicked, 0, __ATOMIC_RELEASE);
        bool worked = mtprof__store_populate(store);
        worked = mtprof__store_check_sealed(store) || worked;
        uint64_t turn_ns = mtprof__limiter_turn(&helper->limiter, helper->recording);
        if (worked) {
            continue; /* until there is nothing left to do */
        }
        sleep_until(helper, &next, turn_ns);
        struct timespec now; /* asked, not concluded: writers may wake us all the time */
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (is_before(&now, &next)) {
            continue;
        }
        next.tv_sec = now.tv_sec + 1;
        if (MTPROF__GET(helper->recording->retired) == 0) {
            mtprof__count_collect(helper->recording);
        }
        tell_trouble(helper);
        if (MTPROF__GET(helper->recording->retired) == 0) {
            mtprof__anchor_now(helper->recording);
            mtprof__sources_sync();
        }
    }
    tell_trouble(helper);
    mtprof__store_check_sealed(store);
    return NULL;
}

mtprof_status mtprof__helper_start(mtprof__helper *helper, mtprof__recording *recording)
{
    helper->recording = recording;
    helper->leave = 0;
    sem_init(&helper->wake, 0, 0);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* no signal of the user's is handled here */
    int error = pthread_create(&helper->thread, NULL, run, helper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        sem_destroy(&helper->wake);
        return mtb_fail_errno(MTPROF_ENOMEM, error,
                              "session_start: cannot start the helper thread");
    }
    pthread_setname_np(helper->thread, "mtprof");
    helper->running = true;
    __atomic_store_n(&recording->store->helper, &helper->wake, __ATOMIC_RELEASE);
    return MTPROF_OK;
}

void mtprof__helper_stop(mtprof__helper *helper)
{
    if (!helper->running) {
        return;
    }
    __atomic_store_n(&helper->leave, 1, __ATOMIC_RELEASE);
    sem_post(&helper->wake);
    pthread_join(helper->thread, NULL);
    helper->running = false;
    __atomic_store_n(&helper->recording->store->helper, NULL, __ATOMIC_RELEASE);
    sem_destroy(&helper->wake);
}
