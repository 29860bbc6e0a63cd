/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams: their slots, their workers, and waiting for them. See sim_impl.h for the rules.
 */
#include "backends/sim/sim_impl.h"
#include "base/alloc.h"
#include "base/fail.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    SPINS = 100,           /* a few microseconds before a thread sleeps */
    ROOM = SIM_SLOTS / 16, /* a full stream accepts launches again when this many slots are free */
};

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* ---- the worker ---- */

/* At exit: a worker stays here for good, so that it touches nothing that is being torn down. Holds
 * the lock for the last time. */
static void park(mt_backend_stream *stream)
{
    sim.n_parked++;
    stream->parked = true;
    (void)pthread_cond_broadcast(&stream->moved);
    (void)pthread_cond_broadcast(&sim.parked_more);
    for (;;) {
        static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
        (void)pthread_cond_wait(&never, &sim.lock);
    }
}

/* True: command `at` is there. False: the stream is closed and empty. */
static bool next_command(mt_backend_stream *stream, uint64_t at)
{
    for (int i = 0; i < SPINS; i++) {
        /* Partner: sim_commit(). */
        if (atomic_load_explicit(&stream->tail, memory_order_acquire) > at) {
            break;
        }
        relax();
    }
    if (MT_LIKELY(atomic_load_explicit(&stream->tail, memory_order_acquire) > at &&
                  !atomic_load_explicit(&sim.ending, memory_order_relaxed))) {
        return true;
    }
    (void)pthread_mutex_lock(&sim.lock);
    atomic_store(&stream->asleep, true); /* S3 */
    while (atomic_load(&stream->tail) == at && !stream->closed && !atomic_load(&sim.ending)) {
        (void)pthread_cond_wait(&stream->work, &sim.lock);
    }
    atomic_store(&stream->asleep, false);
    if (atomic_load(&sim.ending)) {
        park(stream);
    }
    bool there = atomic_load(&stream->tail) > at;
    (void)pthread_mutex_unlock(&sim.lock);
    return there;
}

static MT_NOINLINE void wake_hosts(mt_backend_stream *stream)
{
    (void)pthread_mutex_lock(&sim.lock);
    atomic_store(&stream->wake_at, UINT64_MAX); /* threads that still wait set it again */
    (void)pthread_cond_broadcast(&stream->moved);
    (void)pthread_mutex_unlock(&sim.lock);
}

static void *work(void *argument)
{
    mt_backend_stream *stream = argument;
    char name[16];
    (void)snprintf(name, sizeof name, "sim:%u.%u", stream->device->index, stream->number);
    (void)pthread_setname_np(pthread_self(), name);
    for (uint64_t at = 0; next_command(stream, at); at++) {
        sim_execute(stream, &stream->slots[at % SIM_SLOTS], at);
        atomic_store(&stream->done, at + 1); /* S3; partner: sim_await(), sim_begin() */
        if (MT_UNLIKELY(atomic_load(&stream->wake_at) <= at + 1)) {
            wake_hosts(stream);
        }
    }
    (void)pthread_mutex_lock(&sim.lock);
    sim.n_workers--;
    sim_stream_release(stream);
    (void)pthread_mutex_unlock(&sim.lock);
    return NULL;
}

/* Signals are left to the program's own threads. Those for faults (SIGSEGV and so on) are not
 * blocked, so that crash reporters work. */
static int start_thread(mt_backend_stream *stream)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0) {
        return error;
    }
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    for (size_t i = 0; i < MT_COUNT(faults); i++) {
        (void)sigdelset(&all, faults[i]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attributes, work, stream);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return error;
}

/* Under push_lock. */
static int start_worker(mt_backend_stream *stream)
{
    stream->slots = mtb_calloc(SIM_SLOTS, sizeof *stream->slots);
    if (stream->slots == NULL) {
        return sim_fail(MT_ENOMEM, "npu:%u: no memory for stream %u", stream->device->index,
                        stream->number);
    }
    (void)pthread_mutex_lock(&sim.lock);
    stream->refs++;
    sim.n_workers++;
    int error = start_thread(stream);
    if (error != 0) {
        stream->refs--;
        sim.n_workers--;
    }
    (void)pthread_mutex_unlock(&sim.lock);
    if (error != 0) {
        mtb_free(stream->slots);
        stream->slots = NULL;
        char text[64];
        return sim_fail(MT_ERUNTIME, "npu:%u: no thread for stream %u: %s", stream->device->index,
                        stream->number, strerror_r(error, text, sizeof text));
    }
    stream->started = true;
    return MT_OK;
}

/* ---- pushing ---- */

static int find_slot(mt_backend_stream *stream, sim_command **out)
{
    if (MT_UNLIKELY(!stream->started)) {
        MT_TRY(start_worker(stream));
    }
    uint64_t tail = atomic_load_explicit(&stream->tail, memory_order_relaxed);
    /* Partner: work(); the slot is ours when its last command is done (S1). */
    if (MT_UNLIKELY(tail - atomic_load_explicit(&stream->done, memory_order_acquire) ==
                    SIM_SLOTS)) {
        stream->stalled++;
        (void)sim_await(stream, tail - SIM_SLOTS + ROOM, 0);
        MT_TRY(sim_check(stream->device));
    }
    *out = &stream->slots[tail % SIM_SLOTS];
    return MT_OK;
}

int sim_begin(mt_backend_stream *stream, sim_kind kind, size_t payload_bytes, void **payload,
              sim_command **out)
{
    sim_command *command;
    (void)pthread_mutex_lock(&stream->push_lock);
    int status = find_slot(stream, &command);
    if (status != MT_OK) {
        (void)pthread_mutex_unlock(&stream->push_lock);
        return status;
    }
    command->kind = (uint32_t)kind;
    command->correlation = 0;
    command->fault = NULL;
    command->outcome = NULL;
    command->extra = NULL;
    *payload = command->payload;
    if (MT_UNLIKELY(payload_bytes > SIM_PAYLOAD_BYTES)) {
        *payload = command->extra = mtb_aligned_take(payload_bytes);
        if (command->extra == NULL) {
            (void)pthread_mutex_unlock(&stream->push_lock);
            return sim_fail(MT_ENOMEM, "npu:%u: no memory for a launch of %zu bytes",
                            stream->device->index, payload_bytes);
        }
    }
    *out = command;
    return MT_OK;
}

void sim_cancel(mt_backend_stream *stream, sim_command *command)
{
    mtb_free(command->extra);
    (void)pthread_mutex_unlock(&stream->push_lock);
}

/* The failure that a test asked for, if this is the launch that is to fail. */
static MT_NOINLINE sim_outcome *take_fault(sim_device *device)
{
    sim_outcome *taken = NULL;
    (void)pthread_mutex_lock(&sim.lock);
    if (device->fault != NULL && device->fault_after-- == 0) {
        taken = device->fault;
        device->fault = NULL;
        atomic_store_explicit(&device->armed, false, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&sim.lock);
    return taken;
}

static void count_launch(mt_backend_stream *stream, sim_command *command)
{
    uint64_t launched = atomic_load_explicit(&stream->launched, memory_order_relaxed) + 1;
    uint64_t waiting = launched - atomic_load_explicit(&stream->finished, memory_order_relaxed);
    atomic_store_explicit(&stream->launched, launched, memory_order_relaxed);
    stream->most = waiting > stream->most ? (uint32_t)waiting : stream->most;
    if (MT_UNLIKELY(sim.latency_ns != 0)) {
        command->pushed_ns = sim_now_ns();
    }
    if (MT_UNLIKELY(atomic_load_explicit(&stream->device->armed, memory_order_relaxed))) {
        command->fault = take_fault(stream->device);
    }
}

static MT_NOINLINE void wake_worker(mt_backend_stream *stream)
{
    (void)pthread_mutex_lock(&sim.lock);
    (void)pthread_cond_signal(&stream->work);
    (void)pthread_mutex_unlock(&sim.lock);
}

uint64_t sim_commit(mt_backend_stream *stream, sim_command *command)
{
    uint64_t target = atomic_load_explicit(&stream->tail, memory_order_relaxed) + 1;
    if (command->kind < SIM_MARK) {
        count_launch(stream, command);
    } else if (command->kind == SIM_MARK) {
        command->of.recording->target = target;
    }
    if (command->correlation != 0) {
        /* Read by sim_await_device(), whose caller has ended the recording: no order is needed. */
        atomic_store_explicit(&stream->told_to, target, memory_order_relaxed);
    }
    atomic_store(&stream->tail, target); /* S3; partner: next_command(), sim_hold in sim_run.c */
    bool wake = atomic_load(&stream->asleep) ||
                atomic_load(&stream->hold_until) <=
                    atomic_load_explicit(&stream->launched, memory_order_relaxed);
    (void)pthread_mutex_unlock(&stream->push_lock);
    if (wake) {
        wake_worker(stream);
    }
    return target;
}

/* ---- waiting ---- */

void sim_want(mt_backend_stream *stream, uint64_t target)
{
    while (target > stream->wanted) {
        stream->wanted = target;
        (void)pthread_cond_signal(&stream->work);
        if (stream->blocked == NULL || target <= stream->blocked_at) {
            return;
        }
        target = stream->blocked->target;
        stream = stream->blocked->stream;
    }
}

/* On `condition`, under the lock. False: the deadline has passed. Cancellation is deferred to the
 * end of the call: a thread cancelled here would leave this lock and its caller's locks locked. */
static bool sleep_on(pthread_cond_t *condition, uint64_t deadline_ns)
{
    int before;
    int error = 0;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    if (deadline_ns == 0) {
        (void)pthread_cond_wait(condition, &sim.lock);
    } else {
        struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                                 .tv_nsec = (long)(deadline_ns % 1000000000)};
        error = pthread_cond_timedwait(condition, &sim.lock, &until);
    }
    (void)pthread_setcancelstate(before, &before);
    return error != ETIMEDOUT;
}

static bool is_done(mt_backend_stream *stream, uint64_t target)
{
    return atomic_load(&stream->done) >= target; /* S3; partner: work() */
}

bool sim_await(mt_backend_stream *stream, uint64_t target, uint64_t deadline_ns)
{
    for (int i = 0; i < SPINS && !is_done(stream, target); i++) {
        relax();
    }
    if (is_done(stream, target)) {
        return true;
    }
    bool in_time = true;
    (void)pthread_mutex_lock(&sim.lock);
    sim_want(stream, target);
    for (;;) {
        if (atomic_load_explicit(&stream->wake_at, memory_order_relaxed) > target) {
            atomic_store(&stream->wake_at, target); /* S3 */
        }
        if (is_done(stream, target) || stream->parked || !in_time) {
            break;
        }
        in_time = sleep_on(&stream->moved, deadline_ns);
    }
    bool done = is_done(stream, target);
    (void)pthread_mutex_unlock(&sim.lock);
    return done;
}

bool sim_await_device(sim_device *device, bool recorded_alone, uint64_t deadline_ns)
{
    bool done = true;
    (void)pthread_mutex_lock(&sim.lock);
    for (mt_backend_stream *stream = device->streams; stream != NULL;) {
        uint64_t target = atomic_load(recorded_alone ? &stream->told_to : &stream->tail);
        stream->refs++; /* so that it stays on the list */
        (void)pthread_mutex_unlock(&sim.lock);
        done = sim_await(stream, target, deadline_ns) && done;
        (void)pthread_mutex_lock(&sim.lock);
        mt_backend_stream *next = stream->next;
        sim_stream_release(stream);
        stream = next;
    }
    (void)pthread_mutex_unlock(&sim.lock);
    return done;
}

void sim_wake_all(sim_device *device)
{
    for (mt_backend_stream *stream = device->streams; stream != NULL; stream = stream->next) {
        (void)pthread_cond_signal(&stream->work);
        (void)pthread_cond_broadcast(&stream->moved);
    }
}

/* ---- streams ---- */

static int init_conditions(mt_backend_stream *stream)
{
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    if (error == 0) {
        (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        error = pthread_cond_init(&stream->work, &attributes);
        error = error == 0 ? pthread_cond_init(&stream->moved, &attributes) : error;
        (void)pthread_condattr_destroy(&attributes);
    }
    return error;
}

/* Under the lock. */
static int make_stream(sim_device *device, uint32_t number, mt_backend_stream **out)
{
    mt_backend_stream *made = mtb_aligned_take(sizeof *made);
    if (made != NULL) {
        memset(made, 0, sizeof *made);
    }
    if (made == NULL || init_conditions(made) != 0) {
        mtb_free(made);
        return sim_fail(MT_ENOMEM, "npu:%u: no memory for stream %u", device->index, number);
    }
    made->device = device;
    made->number = number;
    made->refs = 1;
    (void)pthread_mutex_init(&made->push_lock, NULL);
    atomic_store_explicit(&made->hold_until, UINT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&made->wake_at, UINT64_MAX, memory_order_relaxed);
    made->next = device->streams;
    device->streams = made;
    *out = made;
    return MT_OK;
}

void sim_stream_release(mt_backend_stream *stream)
{
    if (--stream->refs != 0) {
        return;
    }
    mt_backend_stream **link = &stream->device->streams;
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    (void)pthread_cond_destroy(&stream->work);
    (void)pthread_cond_destroy(&stream->moved);
    (void)pthread_mutex_destroy(&stream->push_lock);
    mtb_free(stream->slots);
    mtb_free(stream);
}

static MT_NOINLINE int make_default_stream(sim_device *device, mt_backend_stream **out)
{
    int status = MT_OK;
    (void)pthread_mutex_lock(&sim.lock);
    *out = atomic_load_explicit(&device->default_stream, memory_order_relaxed);
    if (*out == NULL) {
        status = make_stream(device, 0, out);
        /* Partner: sim_find_stream(). */
        atomic_store_explicit(&device->default_stream, *out, memory_order_release);
    }
    (void)pthread_mutex_unlock(&sim.lock);
    return status;
}

int sim_find_stream(const char *what, uint32_t device, mt_backend_stream *stream,
                    mt_backend_stream **out)
{
    sim_device *found;
    *out = stream;
    if (stream != NULL) {
        return sim_check(stream->device);
    }
    MT_TRY(sim_find_device(what, device, &found));
    /* Partner: make_default_stream(). */
    *out = atomic_load_explicit(&found->default_stream, memory_order_acquire);
    return MT_LIKELY(*out != NULL) ? MT_OK : make_default_stream(found, out);
}

int sim_stream_new(void *context, uint32_t device, uint32_t number, int32_t priority,
                   mt_backend_stream **out)
{
    (void)context;
    (void)priority; /* an unprivileged process cannot raise a thread's priority */
    sim_device *found;
    *out = NULL;
    MT_TRY(sim_find_device("stream_new", device, &found));
    if (number == 0) {
        return sim_fail(MT_EVALUE, "stream_new: number 0 is the default stream's");
    }
    (void)pthread_mutex_lock(&sim.lock);
    int status = make_stream(found, number, out);
    (void)pthread_mutex_unlock(&sim.lock);
    return status;
}

void sim_stream_free(void *context, mt_backend_stream *stream)
{
    (void)context;
    if (stream == NULL || atomic_load(&stream->device->state) == SIM_FORKED) {
        return; /* S6: its lock may be locked for ever */
    }
    (void)pthread_mutex_lock(&sim.lock);
    stream->closed = true;
    (void)pthread_cond_signal(&stream->work);
    sim_stream_release(stream);
    (void)pthread_mutex_unlock(&sim.lock);
}

int sim_stream_query(void *context, uint32_t device, mt_backend_stream *stream, bool *done)
{
    (void)context;
    *done = false;
    MT_TRY(sim_find_stream("stream_query", device, stream, &stream));
    *done = is_done(stream, atomic_load(&stream->tail));
    return MT_OK;
}

int sim_stream_synchronize(void *context, uint32_t device, mt_backend_stream *stream)
{
    (void)context;
    MT_TRY(sim_check_process());
    if (stream == NULL && device < sim.n_devices) {
        stream = atomic_load_explicit(&sim.devices[device].default_stream, memory_order_acquire);
    }
    if (stream == NULL) {
        return sim_find_stream("stream_synchronize", device, NULL, &stream); /* nothing is on it */
    }
    /* Wait for a lost device too: after that its workers no longer use the memory. */
    uint32_t losses = atomic_load(&stream->device->losses);
    (void)sim_await(stream, atomic_load(&stream->tail), 0);
    return sim_report(stream->device, losses);
}

int sim_synchronize(void *context, uint32_t device)
{
    (void)context;
    sim_device *found = &sim.devices[device < sim.n_devices ? device : 0];
    MT_TRY(sim_check_process());
    if (device >= sim.n_devices) {
        return sim_find_device("synchronize", device, &found); /* says so */
    }
    uint32_t losses = atomic_load(&found->losses);
    (void)sim_await_device(found, false, 0);
    return sim_report(found, losses);
}
