/* SPDX-License-Identifier: Apache-2.0
 *
 * The helper thread of a recording: keeps memory ready ahead of the writers, checksums what they
 * have filled, publishes a clock anchor every second, keeps the overhead within its limit, and
 * warns the user.
 */
#ifndef MTPROF_RECORD_STORE_HELPER_H
#define MTPROF_RECORD_STORE_HELPER_H

#include "mtprof/record/limit/limiter.h"

#include <pthread.h>
#include <semaphore.h>

typedef struct mtprof__helper {
    pthread_t thread;
    sem_t wake;
    uint32_t leave; /* atomic */
    bool running;
    mtprof__recording *recording;
    mtprof__limiter limiter; /* outlives the thread: a session's recordings share it */
    void (*on_warning)(void *user, mtprof_status status, const char *message);
    void *user;
} mtprof__helper;

/* Starts the thread. Fails with ENOMEM. */
mtprof_status mtprof__helper_start(mtprof__helper *helper, mtprof__recording *recording);
/* Waits for the thread to end; what is sealed by then is checksummed. */
void mtprof__helper_stop(mtprof__helper *helper);
/* Writes a WARNING into the recording's control stream. */
void mtprof__put_warning(mtprof__recording *recording, const char *message);
/* Writes an ANCHOR into the recording's control stream. */
void mtprof__anchor_now(mtprof__recording *recording);

#endif /* MTPROF_RECORD_STORE_HELPER_H */
