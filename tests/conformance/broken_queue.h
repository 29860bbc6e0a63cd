/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues of the broken backend: the order of work (broken_queue.c), for its functions
 * (broken_backend.c).
 */
#ifndef TESTS_CONFORMANCE_BROKEN_QUEUE_H
#define TESTS_CONFORMANCE_BROKEN_QUEUE_H

#include <mindtorch/backend.h>

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

enum {
    DEVICES = 2
};

typedef enum promise {
    PROMISE_NONE,
#define X(name, check) PROMISE_##name,
#include "conformance/broken_rows.def"
#undef X
    PROMISE_COUNT
} promise;

typedef enum command_kind {
    COMMAND_KERNEL,
    COMMAND_COPY,
    COMMAND_SET,
    COMMAND_RECORD,
    COMMAND_WAIT,
    COMMAND_HOLD
} command_kind;

/* What an event was recorded for. */
typedef struct recording {
    uint32_t references;
    bool passed;
    uint64_t time;
    mt_backend_stream *stream; /* valid until it is passed */
} recording;

typedef struct command {
    struct command *next;
    command_kind kind;
    mt_kernel_call kernel; /* tensors, ints, scalars: stored after the command */
    mt_copy_call copy;
    mt_set_call set;
    void *staged;
    recording *recording;
    uint32_t launches; /* HOLD: still to come */
    bool released;
    bool reported; /* was queued while records were wanted: report it */
} command;

struct mt_backend_stream {
    mt_backend_stream *next;
    uint32_t device, number;
    command *first, *last;
    uint32_t gave_up;
    uint32_t waiting; /* commands */
    uint32_t holds;   /* of these */
    bool stopped;     /* by a broken promise: takes nothing more */
};

struct mt_backend_event {
    recording *now; /* NULL: never recorded */
};

/* All of it but what is set when it is opened: under the lock. */
typedef struct bq_state {
    const mt_backend_host *host;
    promise broken;
    pid_t owner;
    pthread_t opener;
    mt_backend_stream defaults[DEVICES];
    mt_backend_stream *streams;
    size_t used[DEVICES];
    bool lost[DEVICES];
    const mt_activity_sink *sink; /* the last one: work queued before a stop is reported after it */
    bool recording_now;
} bq_state;

extern bq_state bq;

bool bq_breaks(promise which);
uint64_t bq_now(void);
void bq_lock(void);
/* Gives the status. */
int bq_unlock(int status);
/* Whether the device can be used at all. */
int bq_check_device(uint32_t device);
/* The stream, or the default one for NULL. */
mt_backend_stream *bq_stream_of(uint32_t device, mt_backend_stream *stream);

int bq_new_command(command_kind kind, size_t more, command **out);
void bq_free_command(command *c);
void bq_push(mt_backend_stream *stream, command *c);
/* The next command, out of the queue: the oldest, where that promise is kept. */
command *bq_take(mt_backend_stream *stream);
void bq_drop(recording *which);
/* Reports work that was done, failed or dropped to the sink. */
void bq_tell(const command *c, const mt_backend_stream *stream, uint64_t start, int status);

/* Does what is on the stream, up to `until` or all of it. gives_up: holds do not stop it. False: it
 * was stopped. */
bool bq_run(mt_backend_stream *stream, const recording *until, bool gives_up);
void bq_run_device(uint32_t device);
/* What a function that waits returns. */
int bq_report(uint32_t device);

#endif /* TESTS_CONFORMANCE_BROKEN_QUEUE_H */
