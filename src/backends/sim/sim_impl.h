/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of the simulated accelerator: devices, streams and their commands.
 *
 *   host threads                    stream                       its worker
 *   launch, copy, set  ──push──►  [at][..][..][tail-1]  ──────►  runs command `at`, reports it,
 *   (deep copies)                  4,096 slots, in order         done = at + 1, wakes waiters
 *
 *   S1  Slot n % SIM_SLOTS belongs to the pusher while done > n - SIM_SLOTS and tail == n, to the
 *       worker while done == n < tail. Pushers of a stream exclude each other (push_lock).
 *   S2  Threads sleep and wake each other only under one lock (sim.lock). Launching and running
 *       commands do not take it while no thread sleeps.
 *   S3  A sleeper writes what it waits for (asleep, hold_until, wake_at), then checks again, then
 *       sleeps; the thread that makes it true writes that (tail, done), then reads what is waited
 *       for. All of these are sequentially consistent, so one of the two sees the other's write.
 *   S4  A recording waits only for commands pushed before it, so streams that wait for each other
 *       never form a cycle.
 *   S5  Locks: push_lock first, then sim.lock or a pool's lock, and nothing under those.
 *   S6  In a child of fork() no function takes a lock: the state of devices is SIM_FORKED, and
 *       freeing only frees memory.
 */
#ifndef BACKENDS_SIM_SIM_IMPL_H
#define BACKENDS_SIM_SIM_IMPL_H

#include "backends/sim/sim_pool.h"
#include "base/compiler.h"

#include <mindtorch/backend.h>
#include <mindtorch/sim.h>

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

enum {
    SIM_DEVICES = 16,
    SIM_SLOTS = 4096, /* commands queued on a stream */
#if defined(MT_HOSTILE) && MT_HOSTILE
    SIM_PAYLOAD_BYTES = 32,
#else
    SIM_PAYLOAD_BYTES = 512, /* of a command in its slot; more is on the heap */
#endif
    SIM_STAGE_BYTES = 1 << 20,  /* copies from pageable memory up to this size do not wait */
    SIM_STAGED_BYTES = 1 << 26, /* of all copies queued on a stream */
    SIM_MESSAGE_BYTES = 496,    /* as much as mt_fail() keeps */
    SIM_NAME_BYTES = 64
};

typedef enum sim_state {
    SIM_READY,
    SIM_LOST,   /* mt_sim.lose */
    SIM_FORKED, /* this process is a forked child; the parent has the device */
    SIM_ENDED   /* the process ends */
} sim_state;

/* How a command fails. Either a test asked for the failure, or a caller waits for the command and
 * reads the outcome: MT_OK if it did not fail. */
typedef struct sim_outcome {
    int status;
    char message[SIM_MESSAGE_BYTES];
} sim_outcome;

/* The place on a stream that an event marks; one for each time it is recorded. */
typedef struct sim_recording {
    _Atomic uint32_t refs;      /* the event, the mark's command, commands that wait for it */
    _Atomic bool passed;        /* S3: set before n_blocked is read */
    _Atomic uint32_t n_blocked; /* streams that sleep until then; raised under the lock */
    uint64_t target;            /* the stream's `done` when it is passed; set when pushed */
    uint64_t time_ns;           /* when it was passed; written before `passed` */
    mt_backend_stream *stream;  /* holds a reference */
} sim_recording;

typedef enum sim_kind {
    SIM_KERNEL,
    SIM_COPY,
    SIM_SET,
    SIM_HOLD,
    SIM_MARK, /* an event's recording */
    SIM_WAIT  /* for an event's recording */
} sim_kind;

typedef struct sim_move {
    void *to; /* addresses that the worker can access */
    const void *from;
    uint64_t bytes;
    const char *name;
    uint32_t value; /* of a set */
    uint32_t staged;
} sim_move;

typedef struct sim_command {
    uint32_t kind; /* sim_kind */
    uint32_t reserved;
    uint64_t correlation;
    uint64_t pushed_ns;   /* if launches have a latency */
    sim_outcome *fault;   /* owned; NULL: none was asked for */
    sim_outcome *outcome; /* of a caller that waits; NULL: a failure is kept by the device */
    void *extra;          /* owned; a payload that does not fit into the slot */
    union {
        mt_kernel_call kernel; /* its arrays are in the payload */
        sim_move move;
        uint64_t hold_until; /* launches of the stream */
        sim_recording *recording;
    } of;
    alignas(16) char payload[SIM_PAYLOAD_BYTES];
} sim_command;

typedef struct sim_device sim_device;

struct mt_backend_stream {
    /* written by pushers, or never changed */
    alignas(64) pthread_mutex_t push_lock;
    bool started;              /* push_lock; the worker runs */
    uint32_t most;             /* push_lock */
    uint64_t launched_before;  /* push_lock; at the last reset_counts, here and below */
    uint64_t finished_before;  /* push_lock */
    uint64_t stalled;          /* push_lock */
    _Atomic uint64_t tail;     /* S3; slots before it are filled */
    _Atomic uint64_t launched; /* kernels, copies, sets and holds so far; written before tail */
    _Atomic uint64_t told_to;  /* tail after the last command with a correlation */
    _Atomic uint64_t staged;   /* bytes of queued copies; lowered by the worker */
    sim_device *device;
    sim_command *slots;
    uint32_t number;
    uint32_t refs; /* sim.lock; the handle, the worker, recordings, who waits */

    /* written by the worker, or rarely written */
    alignas(64) _Atomic uint64_t done; /* S3; slots before it are free again */
    _Atomic uint64_t finished;         /* of `launched` */
    mt_backend_stream *next;           /* sim.lock; on the device */
    uint64_t wanted;                   /* sim.lock; the largest `done` that any thread waited for */
    sim_recording *blocked;            /* sim.lock; what the worker waits for */
    uint64_t blocked_at;               /* sim.lock; its command */
    uint64_t released_to;              /* sim.lock; holds before this are over */
    _Atomic uint32_t gave_up;          /* holds; raised by the worker */
    bool closed;                       /* sim.lock; ends when it is empty */
    bool parked;                       /* sim.lock; the process is exiting, the worker is stopped */

    /* what sleeping threads wait for */
    alignas(64) _Atomic bool asleep; /* S3; the worker, until tail moves */
    _Atomic uint64_t hold_until;     /* S3; the worker, until `launched` is this */
    _Atomic uint64_t wake_at;        /* S3; host threads, until `done` is this */
    pthread_cond_t work;             /* sim.lock; for the worker */
    pthread_cond_t moved;            /* sim.lock; for host threads */
};

struct sim_device {
    uint32_t index;
    _Atomic uint32_t state;  /* sim_state */
    _Atomic uint32_t losses; /* times it was lost; a wait during which this changes fails */
    sim_pool pool;
    mt_backend_stream *streams;                  /* sim.lock */
    _Atomic(mt_backend_stream *) default_stream; /* set under sim.lock, stays */
    _Atomic bool armed;                          /* `fault` is set */
    sim_outcome *fault;                          /* sim.lock */
    uint32_t fault_after;                        /* sim.lock; launches before it */
    _Atomic bool failed;                         /* there is a failure to report */
    int failure_status;                          /* sim.lock, here and below */
    uint32_t failures_later;
    char failure_name[SIM_NAME_BYTES + 8]; /* "kernel fill_f32", "Memset (Device)" */
    char failure_message[SIM_MESSAGE_BYTES];
};

typedef struct sim_all {
    mt_backend_host host;
    uint32_t n_devices;
    uint64_t memory_bytes; /* of each */
    uint64_t latency_ns;
    uint64_t kernel_ns; /* a kernel takes at least this long */
    bool blocking;      /* calls wait for their work */
    sim_device devices[SIM_DEVICES];
    pthread_mutex_t lock; /* S2 */
    pthread_cond_t parked_more;
    uint32_t n_workers, n_parked;           /* lock */
    _Atomic bool ending;                    /* workers park */
    _Atomic(const mt_activity_sink *) sink; /* NULL: not started yet */
} sim_all;

extern sim_all sim;

/* For workers: whether queued commands are to be run. Partners: lose() and the end of the process,
 * both under sim.lock. */
static inline bool sim_is_usable(const sim_device *device)
{
    return atomic_load(&device->state) == SIM_READY && !atomic_load(&sim.ending);
}

/* ---- sim_backend.c ---- */

uint64_t sim_now_ns(void);
int sim_fail(int status, const char *format, ...) MT_PRINTF(2, 3);
/* Fails if there is no such device, or it cannot be used. */
int sim_find_device(const char *what, uint32_t index, sim_device **out);
/* Fails if it cannot be used. */
int sim_check(const sim_device *device);
/* Fails if this process has no device at all; a lost device does not affect the others. */
int sim_check_process(void);

/* ---- sim_queue.c ---- */

/* The stream itself, or the default one of the device. Fails if the device cannot be used. */
int sim_find_stream(const char *what, uint32_t device, mt_backend_stream *stream,
                    mt_backend_stream **out);

/* A slot to fill in, with a payload of that many bytes; then call sim_commit or sim_cancel. */
int sim_begin(mt_backend_stream *stream, sim_kind kind, size_t payload_bytes, void **payload,
              sim_command **out);
/* Gives it to the worker. Returns what `done` will be when it is done. */
uint64_t sim_commit(mt_backend_stream *stream, sim_command *command);
void sim_cancel(mt_backend_stream *stream, sim_command *command);

/* Waits until `done` is at least `target`, or until the clock says `deadline_ns` (0: for ever).
 * False: it is not. While the process is exiting it waits only as long as the worker still runs:
 * the waiting thread may hold locks that an atexit handler needs. */
bool sim_await(mt_backend_stream *stream, uint64_t target, uint64_t deadline_ns);

/* Waits for all work of the device, or only for work that is recorded. */
bool sim_await_device(sim_device *device, bool recorded_alone, uint64_t deadline_ns);

/* Under sim.lock: notes that a thread waits for `target`, so that holds before it give up. */
void sim_want(mt_backend_stream *stream, uint64_t target);

/* Under sim.lock. */
void sim_stream_release(mt_backend_stream *stream);
void sim_wake_all(sim_device *device);

int sim_stream_new(void *context, uint32_t device, uint32_t number, int32_t priority,
                   mt_backend_stream **out);
void sim_stream_free(void *context, mt_backend_stream *stream);
int sim_stream_query(void *context, uint32_t device, mt_backend_stream *stream, bool *done);
int sim_stream_synchronize(void *context, uint32_t device, mt_backend_stream *stream);
int sim_synchronize(void *context, uint32_t device);

/* ---- sim_run.c: on the worker ---- */

void sim_execute(mt_backend_stream *stream, sim_command *command, uint64_t at);

/* The result of a function that waited: the device's kept failure, once (B5). `losses` is the count
 * before the wait. */
int sim_report(sim_device *device, uint32_t losses);

/* ---- sim_names.c ---- */

/* "binary_add_f32" */
void sim_kernel_name(const mt_kernel_call *call, char name[SIM_NAME_BYTES]);
/* Bytes of an element; 0: no such type. */
size_t sim_dtype_bytes(uint32_t dtype);

/* ---- sim_launch.c ---- */

int sim_launch(void *context, mt_backend_stream *stream, const mt_kernel_call *call);
int sim_copy(void *context, mt_backend_stream *stream, const mt_copy_call *call);
int sim_set(void *context, mt_backend_stream *stream, const mt_set_call *call);

/* ---- sim_event.c ---- */

int sim_event_new(void *context, uint32_t device, uint32_t flags, mt_backend_event **out);
void sim_event_free(void *context, mt_backend_event *event);
int sim_event_record(void *context, uint32_t device, mt_backend_stream *stream,
                     mt_backend_event *event);
int sim_event_query(void *context, mt_backend_event *event, bool *done);
int sim_event_synchronize(void *context, mt_backend_event *event);
int sim_event_elapsed(void *context, mt_backend_event *from, mt_backend_event *to, double *ns);
int sim_stream_wait(void *context, uint32_t device, mt_backend_stream *stream,
                    mt_backend_event *event);

/* On the worker: passes a mark; waits for one. Both drop the command's reference. */
void sim_pass_mark(sim_recording *recording);
void sim_wait_mark(mt_backend_stream *stream, sim_recording *recording, uint64_t at);

/* ---- sim_controls.c ---- */

extern const mt_sim sim_controls;

#endif /* BACKENDS_SIM_SIM_IMPL_H */
