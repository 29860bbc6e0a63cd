/* SPDX-License-Identifier: Apache-2.0
 *
 * See step_summaries.h.
 */
#include "mtprof/flight/step_summaries.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/control/process_watch.h"
#include "mtprof/control/session_impl.h"
#include "mtprof/flight/flight_impl.h"
#include "mtprof/steps/steps_file.h"

#include <mtprof/live.h>

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS ((uint64_t)1000 * 1000 * 1000)

enum {
    PACE_NS = 100 * 1000 * 1000, /* SUM1 */
    SHORTEST_NS = 1000 * 1000,   /* a shorter step shares its summary */
    COST_SHARE = 100,            /* SUM2 */
    BYTES_A_SECOND = 16 << 20,   /* of records */
    RING_PARTS = 4               /* of the ring may go by between two looks */
};

struct mtprof__summaries {
    mtprof_flight *flight; /* not touched once `detached` is set (SUM3) */
    mtprof_live *live;
    mtprof__steps_file file;
    pthread_t thread;
    sem_t wake;
    uint32_t asleep;  /* atomic: a step has to wake the thread */
    uint32_t stepped; /* atomic: a step has ended since the last look */
    bool leave;       /* atomic; partner: follow() */
    bool detached;    /* by a stop on the thread itself, which then frees this */

    uint64_t ring_bytes;
    uint64_t look_ns;     /* between looks while a step runs (SUM1) */
    uint64_t shortest_ns; /* SUM2 */
    uint64_t next_step;   /* the one that the next summary begins with */
    uint64_t told_lost, told_missed;
    uint64_t rss_ns; /* when it was read; 0: not yet */
    int64_t rss_bytes;
    uint64_t gathered;      /* steps in the file's memory */
    uint64_t written, lost; /* steps of this look */
    mtprof_status failed;   /* why the last summary was not written */
    bool warned;
};

/* Once a second: opening the file costs as much as reading 500 events. */
static void look_at_rss(mtprof__summaries *s)
{
    uint64_t now = mtprof__flight_clock_ns(CLOCK_MONOTONIC);
    if (s->rss_ns != 0 && now - s->rss_ns < SECOND_NS) {
        return;
    }
    int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    s->rss_bytes = mtprof__resident_bytes(statm);
    s->rss_ns = now;
    if (statm >= 0) {
        close(statm);
    }
}

/* ---- a summary ------------------------------------------------------------------------------- */

typedef struct step_arrays {
    mtprof_step_op ops[MTPROF_STEPS_OPS];
    mtprof_step_device devices[MTPROF_STEPS_DEVICES];
} step_arrays;

static mtprof_status add_ops(mtprof__summaries *s, mtprof_step_summary *out, step_arrays *arrays)
{
    const mtprof_live_row *rows = NULL;
    uint32_t n = 0;
    const mtprof_live_query query = {.struct_size = sizeof query, .ordered = MTPROF_STEPS_OPS};
    MT_TRY(mtprof_live_get_rows(s->live, &query, &rows, &n));
    for (uint32_t i = 0; i < n; i++) {
        const mtprof_live_row *row = &rows[i];
        out->self_ns += row->device == 0 ? row->self_ns : 0;
        if (i < MTPROF_STEPS_OPS) {
            arrays->ops[i] = (mtprof_step_op){.name = row->name,
                                              .self_ns = row->self_ns,
                                              .total_ns = row->total_ns,
                                              .calls = row->calls,
                                              .device = row->device,
                                              .kind = (uint16_t)row->kind};
        }
    }
    out->ops_all = n;
    out->n_ops = n < MTPROF_STEPS_OPS ? n : MTPROF_STEPS_OPS;
    out->ops = arrays->ops;
    return MTPROF_OK;
}

static void add_devices(const mtprof__summaries *s, uint32_t n, mtprof_step_summary *out,
                        step_arrays *arrays)
{
    out->devices_all = n;
    out->n_devices = n < MTPROF_STEPS_DEVICES ? n : MTPROF_STEPS_DEVICES;
    out->devices = arrays->devices;
    for (uint32_t i = 0; i < out->n_devices; i++) {
        mtprof_live_device device = {.struct_size = sizeof device};
        (void)mtprof_live_get_device(s->live, i, &device);
        arrays->devices[i] = (mtprof_step_device){.type = device.type,
                                                  .index = device.index,
                                                  .busy_ns = device.busy_ns,
                                                  .allocated = device.allocated,
                                                  .reserved_memory = device.reserved_memory};
    }
}

static mtprof_status gather_summary(mtprof__summaries *s, const mtprof_live_step *step)
{
    step_arrays arrays;
    mtprof_live_info info = {.struct_size = sizeof info};
    MT_TRY(mtprof_live_get_info(s->live, &info));
    mtprof_step_summary out = {
        .first = step->first,
        .steps = step->steps,
        .start_ns = step->start_ns,
        .duration_ns = (uint64_t)(step->end_ns - step->start_ns),
        .events = info.events_all,
        .read_share = info.bytes_new > 0 ? (double)info.bytes_read / (double)info.bytes_new : 1.0,
        .lost = info.lost - s->told_lost,
        .missed = info.missed - s->told_missed,
        .rss_bytes = s->rss_bytes,
        .allocated = info.allocated,
        .allocated_most = step->allocated_most,
    };
    MT_TRY(add_ops(s, &out, &arrays));
    add_devices(s, info.devices, &out, &arrays);
    mtprof__steps_file_add(&s->file, &out);
    s->told_lost = info.lost;
    s->told_missed = info.missed;
    return MTPROF_OK;
}

static void write_gathered(mtprof__summaries *s)
{
    mtprof_status status = mtprof__steps_file_write(&s->file);
    *(status == MTPROF_OK ? &s->written : &s->lost) += s->gathered;
    s->failed = status != MTPROF_OK ? status : s->failed;
    s->gathered = 0;
}

/* One that was not written is lost; its number is missing in the file, so readers notice. */
static void take_step(mtprof__summaries *s, const mtprof_live_step *step)
{
    s->lost += step->first > s->next_step ? step->first - s->next_step : 0;
    s->next_step = step->first + step->steps;
    if (mtprof__steps_file_is_full(&s->file)) {
        write_gathered(s);
    }
    mtprof_status status = gather_summary(s, step);
    if (status == MTPROF_OK) {
        s->gathered += step->steps;
    } else {
        s->lost += step->steps;
        s->failed = status;
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* SUM1, SUM2: from what this look has taken and found. */
static void set_pace(mtprof__summaries *s, uint64_t passed_ns, uint64_t cpu_ns, uint64_t summaries,
                     uint64_t bytes)
{
    if (summaries > 0) {
        uint64_t shortest = cpu_ns / summaries * COST_SHARE;
        s->shortest_ns = shortest > SHORTEST_NS ? shortest : SHORTEST_NS;
    }
    uint64_t look = SECOND_NS;
    if (bytes > 0 && passed_ns > 0) {
        double full_ns = (double)s->ring_bytes / (double)bytes * (double)passed_ns;
        look = full_ns / RING_PARTS < (double)SECOND_NS ? (uint64_t)(full_ns / RING_PARTS) : look;
    }
    s->look_ns = look > PACE_NS ? look : PACE_NS;
}

/* What has ended since the last look; last: there will be no other. */
static void look(mtprof__summaries *s, uint64_t passed_ns, bool last)
{
    mtprof_live_step step = {.struct_size = sizeof step, .last = last};
    mtprof_live_info info = {.struct_size = sizeof info};
    uint64_t cpu = mtprof__flight_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t summaries = 0;
    uint64_t bytes = 0;
    look_at_rss(s);
    mtprof_status status;
    while ((status = mtprof_live_poll_step(s->live, 0, s->shortest_ns, &step)) == MTPROF_OK) {
        take_step(s, &step);
        if (mtprof_live_get_info(s->live, &info) == MTPROF_OK) {
            bytes += info.bytes_new;
        }
        summaries++;
    }
    write_gathered(s);
    s->failed = status != MTPROF_EEND ? status : s->failed;
    set_pace(s, passed_ns, mtprof__flight_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu, summaries,
             bytes);
}

/* Tells the recorder's counts and, once, the user. After the callback it may be gone (SUM3). */
static void report(mtprof__summaries *s)
{
    mtprof_flight *flight = s->flight;
    pthread_mutex_lock(&flight->lock);
    flight->counts.summaries += s->written;
    flight->counts.summaries_lost += s->lost;
    pthread_mutex_unlock(&flight->lock);
    s->written = s->lost = 0;
    if (s->failed != MTPROF_OK && !s->warned) {
        s->warned = true;
        mtprof__flight_warn(flight, s->failed);
    }
    s->failed = MTPROF_OK;
}

static void wait_until(mtprof__summaries *s, uint64_t until_ns)
{
    const struct timespec end = {.tv_sec = (time_t)(until_ns / SECOND_NS),
                                 .tv_nsec = (long)(until_ns % SECOND_NS)};
    (void)sem_clockwait(&s->wake, CLOCK_MONOTONIC, &end);
}

static bool leaves(mtprof__summaries *s)
{
    return __atomic_load_n(&s->leave, __ATOMIC_ACQUIRE);
}

/* SUM1. While the pace alone decides no step has to wake the thread. */
static void wait_for_look(mtprof__summaries *s, uint64_t looked)
{
    while (!leaves(s) && mtprof__flight_clock_ns(CLOCK_MONOTONIC) - looked < PACE_NS) {
        wait_until(s, looked + PACE_NS);
    }
    __atomic_store_n(&s->asleep, 1, __ATOMIC_SEQ_CST); /* partner: mtprof__summaries_step() */
    if (!leaves(s) && __atomic_load_n(&s->stepped, __ATOMIC_SEQ_CST) == 0) {
        wait_until(s, looked + s->look_ns);
    }
    __atomic_store_n(&s->asleep, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&s->stepped, 0, __ATOMIC_SEQ_CST);
}

static void free_summaries(mtprof__summaries *s)
{
    mtprof_live_close(s->live);
    mtprof__steps_file_close(&s->file);
    sem_destroy(&s->wake);
    mtb_free(s);
}

static void *follow(void *argument)
{
    mtprof__summaries *s = argument;
    uint64_t looked = mtprof__flight_clock_ns(CLOCK_MONOTONIC);
    bool last = false;
    while (!last) {
        wait_for_look(s, looked);
        uint64_t now = mtprof__flight_clock_ns(CLOCK_MONOTONIC);
        last = leaves(s);
        look(s, now - looked, last);
        looked = now;
        report(s);
        last = last || s->detached;
    }
    if (s->detached) { /* written by this thread, in a callback */
        free_summaries(s);
    }
    return NULL;
}

/* ---- start, steps, stop ---------------------------------------------------------------------- */

static mtprof_status open_live(mtprof__summaries *s)
{
    mtprof_bytes bytes = {.struct_size = sizeof bytes};
    const mtprof_live_options options = {.struct_size = sizeof options,
                                         .from_start = 1,
                                         .window_ns = 1,
                                         .most_bytes = BYTES_A_SECOND / (SECOND_NS / PACE_NS)};
    /* With the lock: the recorder is current, and another thread may stop it. */
    pthread_mutex_lock(&s->flight->lock);
    mtprof_status status = mtprof__session_memory(s->flight->session, &bytes);
    pthread_mutex_unlock(&s->flight->lock);
    MT_TRY(status);
    return mtprof_live_open_bytes(&bytes, &options, &s->live);
}

static mtprof_status start_thread(mtprof__summaries *s)
{
    sigset_t all, mine;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mine); /* no signal of the user's is handled here */
    int error = pthread_create(&s->thread, NULL, follow, s);
    pthread_sigmask(SIG_SETMASK, &mine, NULL);
    if (error != 0) {
        return mtb_fail_errno(MTPROF_ENOMEM, error, "flight_start: cannot start a thread");
    }
    pthread_setname_np(s->thread, "mtprof steps");
    return MTPROF_OK;
}

mtprof_status mtprof__summaries_start(mtprof_flight *flight, mtprof__summaries **out)
{
    char path[MTPROF_FLIGHT_PATH_BYTES];
    *out = NULL;
    if ((flight->config.flags & MTPROF_FLIGHT_NO_STEPS) != 0) {
        return MTPROF_OK;
    }
    mtprof__summaries *s = mtb_calloc(1, sizeof *s);
    if (s == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "flight_start: no memory");
    }
    s->flight = flight;
    s->ring_bytes = flight->config.buffer_bytes;
    s->look_ns = PACE_NS;
    s->shortest_ns = SHORTEST_NS;
    s->file.fd = -1;
    sem_init(&s->wake, 0, 0);
    mtprof__flight_path(flight, "steps", path);
    mtprof_status status = mtprof__steps_file_open(&s->file, path, flight->config.steps_bytes_max);
    if (status == MTPROF_OK) {
        status = open_live(s);
    }
    if (status == MTPROF_OK) {
        status = start_thread(s);
    }
    if (status != MTPROF_OK) {
        free_summaries(s);
        return status;
    }
    *out = s;
    return MTPROF_OK;
}

void mtprof__summaries_step(mtprof__summaries *s)
{
    if (s == NULL) {
        return;
    }
    __atomic_store_n(&s->stepped, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&s->asleep, __ATOMIC_SEQ_CST) != 0 &&
        __atomic_exchange_n(&s->asleep, 0, __ATOMIC_SEQ_CST) != 0) {
        sem_post(&s->wake);
    }
}

void mtprof__summaries_stop(mtprof__summaries *s)
{
    if (s == NULL) {
        return;
    }
    if (pthread_equal(pthread_self(), s->thread)) { /* in a callback (SUM3) */
        pthread_detach(s->thread);
        s->detached = true;
        return;
    }
    __atomic_store_n(&s->leave, true, __ATOMIC_RELEASE);
    sem_post(&s->wake);
    pthread_join(s->thread, NULL);
    free_summaries(s);
}
