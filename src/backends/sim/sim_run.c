/* SPDX-License-Identifier: Apache-2.0
 *
 * How a stream's worker runs a command: the work, its failure, its record.
 */
#include "backends/sim/sim_impl.h"
#include "base/alloc.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    SPIN_NS = 5000,        /* shorter waits are not worth a sleep */
    KERNEL_SPIN_NS = 50000 /* a sleep is late by about as much, and a kernel is to be exact */
};

/* ---- failures ---- */

static const char *name_of(const sim_command *command, char room[SIM_NAME_BYTES])
{
    switch (command->kind) {
    case SIM_KERNEL: sim_kernel_name(&command->of.kernel, room); return room;
    case SIM_HOLD: return "sim_hold";
    default: return command->of.move.name;
    }
}

static void keep_failure(sim_device *device, const sim_command *command, int status,
                         const char *message)
{
    char room[SIM_NAME_BYTES];
    if (command->outcome != NULL) {
        command->outcome->status = status;
        (void)snprintf(command->outcome->message, sizeof command->outcome->message, "%s", message);
        return;
    }
    (void)pthread_mutex_lock(&sim.lock);
    if (atomic_load_explicit(&device->failed, memory_order_relaxed)) {
        device->failures_later++;
    } else {
        device->failure_status = status;
        device->failures_later = 0;
        (void)snprintf(device->failure_name, sizeof device->failure_name, "%s%s",
                       command->kind == SIM_KERNEL ? "kernel " : "", name_of(command, room));
        (void)snprintf(device->failure_message, sizeof device->failure_message, "%s", message);
        atomic_store_explicit(&device->failed, true, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&sim.lock);
}

int sim_report(sim_device *device, uint32_t losses)
{
    int status = sim_check(device);
    if (status == MT_OK && atomic_load(&device->losses) != losses) {
        status = sim_fail(MT_EDEVICE, "npu:%u: the device was lost", device->index);
    }
    /* Relaxed: a thread that waited has seen `done`, which was written after it (keep_failure). */
    if (status != MT_OK ||
        MT_LIKELY(!atomic_load_explicit(&device->failed, memory_order_relaxed))) {
        return status;
    }
    char later[32] = "";
    char text[SIM_MESSAGE_BYTES];
    (void)pthread_mutex_lock(&sim.lock);
    bool mine = atomic_load_explicit(&device->failed, memory_order_relaxed);
    if (mine) {
        if (device->failures_later != 0) {
            (void)snprintf(later, sizeof later, ", %u later failure%s", device->failures_later,
                           device->failures_later == 1 ? "" : "s");
        }
        (void)snprintf(text, sizeof text,
                       "%.240s (%s on npu:%u, reported when the device was waited for; "
                       "MINDTORCH_NPU_LAUNCH_BLOCKING=1 reports it at the call%s)",
                       device->failure_message, device->failure_name, device->index, later);
        status = device->failure_status;
        atomic_store_explicit(&device->failed, false, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&sim.lock);
    return mine ? sim.host.fail(status, text) : MT_OK;
}

/* ---- the work ---- */

/* Waits until a time, or until the device is lost; without a sleep for up to spin_ns. */
static void wait_until(mt_backend_stream *stream, uint64_t ns, uint64_t spin_ns)
{
    uint64_t now_ns = sim_now_ns();
    if (now_ns + spin_ns < ns) {
        struct timespec until = {.tv_sec = (time_t)(ns / 1000000000),
                                 .tv_nsec = (long)(ns % 1000000000)};
        (void)pthread_mutex_lock(&sim.lock);
        while (sim_is_usable(stream->device) && sim_now_ns() < ns) {
            (void)pthread_cond_timedwait(&stream->work, &sim.lock, &until);
        }
        (void)pthread_mutex_unlock(&sim.lock);
    }
    while (sim_now_ns() < ns && sim_is_usable(stream->device)) {
    }
}

/* Waits for further launches. Gives up if a thread waits for the hold or for a command after it:
 * then the launches would never come. */
static void hold(mt_backend_stream *stream, uint64_t until, uint64_t at)
{
    (void)pthread_mutex_lock(&sim.lock);
    atomic_store(&stream->hold_until, until); /* S3; partner: sim_commit() */
    for (;;) {
        (void)atomic_load(&stream->tail); /* `launched` is written before it */
        if (atomic_load_explicit(&stream->launched, memory_order_relaxed) >= until ||
            stream->released_to > at || !sim_is_usable(stream->device)) {
            break;
        }
        if (stream->wanted > at) {
            atomic_fetch_add_explicit(&stream->gave_up, 1, memory_order_relaxed);
            break;
        }
        (void)pthread_cond_wait(&stream->work, &sim.lock);
    }
    atomic_store(&stream->hold_until, UINT64_MAX);
    (void)pthread_mutex_unlock(&sim.lock);
}

static int run_kernel(const mt_kernel_call *call)
{
    const mt_backend *cpu = sim.host.cpu;
    return cpu->kernels[call->kernel](cpu->context, NULL, call);
}

static void do_work(mt_backend_stream *stream, sim_command *command, uint64_t at)
{
    const sim_move *move = &command->of.move;
    int status = MT_OK;
    if (MT_UNLIKELY(command->fault != NULL)) {
        keep_failure(stream->device, command, command->fault->status, command->fault->message);
        return;
    }
    switch (command->kind) {
    case SIM_KERNEL:
        status = run_kernel(&command->of.kernel);
        if (MT_UNLIKELY(status != MT_OK)) {
            keep_failure(stream->device, command, status, sim.host.last_error()->message);
        }
        break;
    case SIM_COPY: memmove(move->to, move->from, move->bytes); break;
    case SIM_SET: memset(move->to, (int)move->value, move->bytes); break;
    default: hold(stream, command->of.hold_until, at); break;
    }
}

/* ---- records ---- */

static void tell(const mt_backend_stream *stream, const sim_command *command, uint64_t start_ns,
                 uint64_t end_ns)
{
    static const uint32_t kinds[] = {[SIM_KERNEL] = MT_ACTIVITY_KERNEL,
                                     [SIM_COPY] = MT_ACTIVITY_COPY,
                                     [SIM_SET] = MT_ACTIVITY_SET,
                                     [SIM_HOLD] = MT_ACTIVITY_KERNEL};
    char room[SIM_NAME_BYTES];
    /* Partner: activity_start(). */
    const mt_activity_sink *sink = atomic_load_explicit(&sim.sink, memory_order_acquire);
    if (sink == NULL) {
        return;
    }
    bool moves = command->kind == SIM_COPY || command->kind == SIM_SET;
    mt_activity activity = {
        .struct_size = sizeof activity,
        .kind = kinds[command->kind],
        .name = name_of(command, room),
        .start = start_ns,
        .end = end_ns,
        .correlation = command->correlation,
        .device = stream->device->index,
        .stream = stream->number,
        .bytes = moves ? command->of.move.bytes : 0,
    };
    sink->push(sink->context, &activity);
}

static void execute_launch(mt_backend_stream *stream, sim_command *command, uint64_t at)
{
    if (MT_UNLIKELY(sim.latency_ns != 0)) {
        wait_until(stream, command->pushed_ns + sim.latency_ns,
                   SPIN_NS); /* its way to the device */
    }
    bool told = command->correlation != 0;
    bool is_timed = sim.kernel_ns != 0 && command->kind == SIM_KERNEL;
    uint64_t start_ns = told || is_timed ? sim_now_ns() : 0;
    uint64_t end_ns = start_ns;
    if (MT_LIKELY(sim_is_usable(stream->device))) {
        do_work(stream, command, at);
        if (MT_UNLIKELY(is_timed)) {
            wait_until(stream, start_ns + sim.kernel_ns, KERNEL_SPIN_NS);
        }
        end_ns = told ? sim_now_ns() : 0;
    } else if (command->outcome != NULL) {
        command->outcome->status = MT_EDEVICE;
        (void)snprintf(command->outcome->message, sizeof command->outcome->message,
                       "npu:%u: the device is lost", stream->device->index);
    }
    if (told) {
        tell(stream, command, start_ns, end_ns);
    }
    if ((command->kind == SIM_COPY) && command->of.move.staged != 0) {
        atomic_fetch_sub_explicit(&stream->staged, command->of.move.staged, memory_order_relaxed);
    }
    mtb_free(command->fault);
    mtb_free(command->extra);
    atomic_store_explicit(&stream->finished,
                          atomic_load_explicit(&stream->finished, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

void sim_execute(mt_backend_stream *stream, sim_command *command, uint64_t at)
{
    switch (command->kind) {
    case SIM_MARK: sim_pass_mark(command->of.recording); break;
    case SIM_WAIT: sim_wait_mark(stream, command->of.recording, at); break;
    default: execute_launch(stream, command, at); break;
    }
}
