/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated accelerator: a backend in a shared object (mt_backend_open), its settings, its
 * table of functions, and its handlers for fork() and exit(). sim_impl.h describes how it works.
 *
 *   SE1  At exit() workers finish the command that they are running and stop; queued commands are
 *        not run. So no worker is in a kernel while libraries are unloaded.
 */
#include "backends/sim/sim_impl.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/struct_size.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

sim_all sim = {.lock = PTHREAD_MUTEX_INITIALIZER, .parked_more = PTHREAD_COND_INITIALIZER};

uint64_t sim_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int sim_fail(int status, const char *format, ...)
{
    char message[SIM_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    (void)sim.host.fail(status, message);
    return status; /* not what host->fail returned */
}

/* ---- devices ---- */

static MT_COLD int fail_state(const sim_device *device, uint32_t state)
{
    switch (state) {
    case SIM_FORKED:
        return sim_fail(MT_EDEVICE, "npu: a forked process cannot use the device; start it anew "
                                    "(multiprocessing 'spawn')");
    case SIM_ENDED: return sim_fail(MT_EDEVICE, "npu:%u: the process ends", device->index);
    default: return sim_fail(MT_EDEVICE, "npu:%u: the device is lost", device->index);
    }
}

int sim_check(const sim_device *device)
{
    /* Relaxed, because the worker checks the state again; partners: lose(), after_fork(),
     * at_end(). */
    uint32_t state = atomic_load_explicit(&device->state, memory_order_relaxed);
    return MT_LIKELY(state == SIM_READY) ? MT_OK : fail_state(device, state);
}

int sim_find_device(const char *what, uint32_t index, sim_device **out)
{
    *out = &sim.devices[index < sim.n_devices ? index : 0];
    if (MT_UNLIKELY(index >= sim.n_devices)) {
        return sim_fail(MT_ERUNTIME, "%s: there is no npu:%u, there are %u", what, index,
                        sim.n_devices);
    }
    return sim_check(*out);
}

int sim_check_process(void)
{
    uint32_t state = atomic_load(&sim.devices[0].state);
    return state == SIM_FORKED || state == SIM_ENDED ? fail_state(&sim.devices[0], state) : MT_OK;
}

static uint32_t device_count(void *context)
{
    (void)context;
    return sim.n_devices;
}

static int device_info(void *context, uint32_t device, mt_device_info *info)
{
    (void)context;
    sim_device *found;
    if (info == NULL || info->struct_size < sizeof(uint32_t)) {
        return sim_fail(MT_EVALUE, "device_info: struct_size is not set");
    }
    MT_TRY(sim_find_device("device_info", device, &found));
    mt_device_info all = {.name = "Simulated NPU",
                          .total_bytes = found->pool.bytes,
                          .free_bytes = found->pool.bytes - sim_pool_used(&found->pool)};
    mtb_write_struct(info, &all);
    return MT_OK;
}

/* ---- memory ---- */

static int allocate(void *context, uint32_t device, size_t bytes, void **out)
{
    (void)context;
    sim_device *found;
    *out = NULL;
    MT_TRY(sim_find_device("allocate", device, &found));
    *out = sim_pool_take(&found->pool, bytes);
    if (*out == NULL) {
        return sim_fail(MT_ENOMEM, "npu:%u: %zu bytes were refused: %llu of %llu are in use",
                        device, bytes, (unsigned long long)sim_pool_used(&found->pool),
                        (unsigned long long)found->pool.bytes);
    }
    return MT_OK;
}

static void release(void *context, uint32_t device, void *memory, size_t bytes)
{
    (void)context;
    (void)bytes;
    if (memory != NULL && device < sim.n_devices &&
        atomic_load(&sim.devices[device].state) != SIM_FORKED) { /* S6: it is the parent's */
        sim_pool_give(&sim.devices[device].pool, memory);
    }
}

static int host_allocate(void *context, size_t bytes, void **out)
{
    (void)context;
    *out = NULL;
    MT_TRY(sim_check_process());
    *out = mtb_aligned_take(bytes);
    return *out != NULL ? MT_OK
                        : sim_fail(MT_ENOMEM, "npu: %zu bytes of host memory were refused", bytes);
}

static void host_release(void *context, void *memory, size_t bytes)
{
    (void)context;
    (void)bytes;
    mtb_free(memory);
}

/* ---- records ---- */

static int activity_start(void *context, const mt_activity_sink *sink)
{
    (void)context;
    if (sink == NULL || sink->struct_size < sizeof *sink || sink->push == NULL) {
        return sim_fail(MT_EVALUE, "activity_start: the sink is not complete");
    }
    MT_TRY(sim_check_process());
    atomic_store_explicit(&sim.sink, sink, memory_order_release); /* partner: tell() */
    return MT_OK;
}

/* Work that is already queued is still reported to the sink. */
static void activity_stop(void *context)
{
    (void)context;
}

static int activity_flush(void *context, uint64_t timeout_ns)
{
    (void)context;
    bool all = true;
    MT_TRY(sim_check_process());
    uint64_t now_ns = sim_now_ns();
    uint64_t deadline_ns = timeout_ns < INT64_MAX - now_ns ? now_ns + timeout_ns : INT64_MAX;
    for (uint32_t i = 0; i < sim.n_devices; i++) {
        all = sim_await_device(&sim.devices[i], true, deadline_ns) && all;
    }
    return all ? MT_OK
               : sim_fail(MT_ERUNTIME, "activity_flush: work was not done within %llu ns",
                          (unsigned long long)timeout_ns);
}

static uint64_t read_clock(void *context)
{
    (void)context;
    return sim_now_ns();
}

static const void *extension(void *context, const char *name)
{
    (void)context;
    return name != NULL && strcmp(name, "sim") == 0 ? &sim_controls : NULL;
}

/* ---- fork and exit ---- */

static void after_fork(void)
{
    for (uint32_t i = 0; i < sim.n_devices; i++) {
        atomic_store(&sim.devices[i].state, SIM_FORKED);
        sim_pool_forget(&sim.devices[i].pool);
    }
}

static void at_end(void)
{
    struct timespec until;
    if (sim.n_devices == 0 || atomic_load(&sim.devices[0].state) == SIM_FORKED) {
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2; /* do not wait longer than that for a command */
    (void)pthread_mutex_lock(&sim.lock);
    atomic_store(&sim.ending, true);
    for (uint32_t i = 0; i < sim.n_devices; i++) {
        atomic_store(&sim.devices[i].state, SIM_ENDED);
        sim_wake_all(&sim.devices[i]);
    }
    int error = 0;
    while (sim.n_parked < sim.n_workers && error == 0) {
        error = pthread_cond_timedwait(&sim.parked_more, &sim.lock, &until);
    }
    (void)pthread_mutex_unlock(&sim.lock);
}

/* ---- settings ---- */

static int not_understood(const char *name, const char *text, const char *expected)
{
    return sim_fail(MT_EVALUE, "sim: MINDTORCH_NPU_%s=%.60s: expected %s", name, text, expected);
}

/* Digits, optionally followed by one of `units`; the value is between `least` and `most`. */
static bool parse_number(const char *text, const char *units, uint64_t least, uint64_t most,
                         uint64_t *out)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value)) {
            return false;
        }
    }
    const char *unit = *at != '\0' ? strchr(units, *at) : NULL;
    if (unit != NULL) {
        uint64_t scale = (uint64_t)1 << (10 * (unit - units + 1));
        if (at == text || __builtin_mul_overflow(value, scale, &value)) {
            return false;
        }
        at++;
    }
    *out = value;
    return at != text && *at == '\0' && value >= least && value <= most;
}

static int read_number(const char *name, const char *units, uint64_t least, uint64_t most,
                       const char *expected, uint64_t *value)
{
    const char *text = sim.host.setting(name);
    if (text == NULL || text[0] == '\0') {
        return MT_OK; /* the default stays */
    }
    return parse_number(text, units, least, most, value) ? MT_OK
                                                         : not_understood(name, text, expected);
}

static int read_settings(void)
{
    uint64_t devices = 1;
    uint64_t latency_ns = 0;
    uint64_t kernel_ns = 0;
    uint64_t blocking = 0;
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4;
    MT_TRY(read_number("SIM_DEVICES", "", 1, SIM_DEVICES, "a number from 1 to 16", &devices));
    MT_TRY(read_number("SIM_MEMORY", "KMG", 4096, (uint64_t)1 << 44,
                       "bytes, or a number with K, M or G behind, 4K at least", &bytes));
    MT_TRY(read_number("SIM_LATENCY_NS", "", 0, 1000000000, "nanoseconds up to a second",
                       &latency_ns));
    MT_TRY(
        read_number("SIM_KERNEL_NS", "", 0, 1000000000, "nanoseconds up to a second", &kernel_ns));
    MT_TRY(read_number("LAUNCH_BLOCKING", "", 0, 1, "0 or 1", &blocking));
    sim.n_devices = (uint32_t)devices;
    sim.memory_bytes = bytes;
    sim.latency_ns = latency_ns;
    sim.kernel_ns = kernel_ns;
    sim.blocking = blocking != 0;
    return MT_OK;
}

/* ---- opening ---- */

static mt_kernel_fn *kernels[MT_KERNEL_COUNT]; /* sim_launch where the host has one */

static mt_backend backend = {
    .struct_size = sizeof(mt_backend),
    .version = MT_BACKEND_VERSION,
    .name = "sim",
    .device_count = device_count,
    .device_info = device_info,
    .synchronize = sim_synchronize,
    .allocate = allocate,
    .release = release,
    .host_allocate = host_allocate,
    .host_release = host_release,
    .copy = sim_copy,
    .set = sim_set,
    .kernels = kernels,
    .n_kernels = MT_KERNEL_COUNT,
    .stream_new = sim_stream_new,
    .stream_free = sim_stream_free,
    .stream_query = sim_stream_query,
    .stream_synchronize = sim_stream_synchronize,
    .event_new = sim_event_new,
    .event_free = sim_event_free,
    .event_record = sim_event_record,
    .event_query = sim_event_query,
    .event_synchronize = sim_event_synchronize,
    .event_elapsed = sim_event_elapsed,
    .stream_wait = sim_stream_wait,
    .activity_start = activity_start,
    .activity_stop = activity_stop,
    .activity_flush = activity_flush,
    .clock = read_clock,
    .extension = extension,
};

static void close_devices(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sim_pool_fini(&sim.devices[i].pool);
    }
}

static int open_devices(void)
{
    for (uint32_t i = 0; i < sim.n_devices; i++) {
        sim.devices[i].index = i;
        int error = sim_pool_init(&sim.devices[i].pool, sim.memory_bytes);
        if (error != 0) {
            char text[64];
            close_devices(i);
            return sim_fail(MT_ENOMEM, "sim: no memory of %llu bytes for npu:%u: %s",
                            (unsigned long long)sim.memory_bytes, i,
                            strerror_r(-error, text, sizeof text));
        }
    }
    return MT_OK;
}

/* The one symbol of the shared object. */
MT_API mt_backend_open_fn mt_backend_open;

int mt_backend_open(const mt_backend_host *host, const mt_backend **out)
{
    *out = NULL;
    if (host->struct_size < sizeof *host || host->version != MT_BACKEND_VERSION) {
        return host->fail(MT_EVALUE, "sim: the runtime has another version of the backend ABI");
    }
    if (sim.n_devices != 0) {
        return host->fail(MT_ERUNTIME, "sim: it is open already");
    }
    sim.host = *host;
    int status = read_settings();
    status = status == MT_OK ? open_devices() : status;
    if (status == MT_OK && (atexit(at_end) != 0 || pthread_atfork(NULL, NULL, after_fork) != 0)) {
        close_devices(sim.n_devices);
        status = sim_fail(MT_ENOMEM, "sim: no memory for the handlers of fork and exit");
    }
    if (status != MT_OK) {
        sim.n_devices = 0; /* so that the handlers do nothing */
        return status;
    }
    for (uint32_t i = 0; i < MT_KERNEL_COUNT && i < host->cpu->n_kernels; i++) {
        kernels[i] = host->cpu->kernels[i] != NULL ? sim_launch : NULL;
    }
    *out = &backend;
    return MT_OK;
}
