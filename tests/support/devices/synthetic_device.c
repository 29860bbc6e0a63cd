/* SPDX-License-Identifier: Apache-2.0
 *
 * See synthetic_device.h.
 */
#include "support/devices/synthetic_device.h"

#include "harness/mt_test.h"

#include <mtprof/clock.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WORK_MAX = 20000
};

typedef struct work {
    char name[32];
    uint64_t launch_key, correlation;
    uint64_t start, end;                /* device time */
    uint64_t ticks_before, ticks_after; /* recorder's */
    uint32_t queue;
} work;

struct synthetic_device {
    sd_config config;
    mtprof_source *source;
    pthread_t worker;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    work *all; /* by correlation - 1 */
    uint64_t n_done, n_reported;
    uint32_t order[WORK_MAX]; /* done and not reported yet */
    uint32_t n_kept;
    uint64_t random;
    sd_facts facts;
    bool held, flushing, leave, telling;
};

static uint64_t mono_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t sd_now(const synthetic_device *device)
{
    return device->config.offset + (uint64_t)((double)mono_ns() * device->config.rate);
}

static void run_work(synthetic_device *d, work *w)
{
    w->ticks_before = mtprof_ticks();
    w->start = sd_now(d);
    uint64_t until = mono_ns() + d->config.work_ns;
    while (mono_ns() < until) {
    }
    w->end = sd_now(d);
    w->ticks_after = mtprof_ticks();
}

static void tell_one(synthetic_device *d, const work *w)
{
    mtprof_activity a = {
        .struct_size = sizeof a,
        .kind = MTPROF_ACTIVITY_KERNEL,
        .name = w->name,
        .name_length = strlen(w->name),
        .start = w->start,
        .end = w->end,
        .launch_key = w->launch_key,
        .device = 1,
        .queue = w->queue,
        .correlation = w->correlation,
    };
    mtprof_push_activity(d->source, &a);
}

/* Reports what is kept, in an order of its own. The lock is held, and given back meanwhile. */
static void tell_kept(synthetic_device *d)
{
    d->telling = true;
    while (d->n_kept > 0) {
        uint32_t pick = (uint32_t)(mt_test_random(&d->random) % d->n_kept);
        uint32_t index = d->order[pick];
        d->order[pick] = d->order[--d->n_kept];
        uint64_t number = ++d->n_reported;
        bool drop = d->config.drop_every != 0 && number % d->config.drop_every == 0;
        d->facts.dropped += drop;
        d->facts.reported += !drop;
        work w = d->all[index];
        pthread_mutex_unlock(&d->lock);
        if (drop) {
            mtprof_push_lost(d->source, 1);
        } else {
            tell_one(d, &w);
        }
        pthread_mutex_lock(&d->lock);
    }
    d->telling = false;
    pthread_cond_broadcast(&d->changed);
}

static void *run(void *argument)
{
    synthetic_device *d = argument;
    pthread_mutex_lock(&d->lock);
    while (!d->leave) {
        if (d->n_done < d->facts.launched) {
            uint32_t index = (uint32_t)d->n_done;
            work w = d->all[index];
            pthread_mutex_unlock(&d->lock);
            run_work(d, &w);
            pthread_mutex_lock(&d->lock);
            d->all[index] = w;
            d->n_done++;
            d->order[d->n_kept++] = index;
            pthread_cond_broadcast(&d->changed);
        }
        bool idle = d->n_done == d->facts.launched;
        if (!d->held && d->n_kept > 0 && (d->n_kept >= d->config.batch || idle || d->flushing)) {
            tell_kept(d);
        } else if (idle) {
            pthread_cond_wait(&d->changed, &d->lock);
        }
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static mtprof_status on_start(void *context, mtprof_source *source, uint64_t wants)
{
    synthetic_device *d = context;
    pthread_mutex_lock(&d->lock);
    d->facts.starts++;
    d->facts.wants = wants;
    d->source = source; /* the same that register gives, but earlier */
    mtprof_status status = d->config.start_status;
    pthread_mutex_unlock(&d->lock);
    return status;
}

static void on_stop(void *context)
{
    synthetic_device *d = context;
    pthread_mutex_lock(&d->lock);
    d->facts.stops++;
    pthread_mutex_unlock(&d->lock);
}

static bool is_idle(const synthetic_device *d)
{
    return d->n_done == d->facts.launched && !d->telling && (d->held || d->n_kept == 0);
}

static void on_flush(void *context, uint64_t timeout_ns)
{
    synthetic_device *d = context;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t at = (uint64_t)until.tv_nsec + timeout_ns;
    until.tv_sec += (time_t)(at / 1000000000u);
    until.tv_nsec = (long)(at % 1000000000u);
    pthread_mutex_lock(&d->lock);
    d->facts.flushes++;
    d->facts.last_timeout_ns = timeout_ns;
    d->flushing = true;
    pthread_cond_broadcast(&d->changed);
    int error = 0;
    while (!is_idle(d) && error == 0) {
        error = pthread_cond_timedwait(&d->changed, &d->lock, &until);
    }
    d->flushing = false;
    pthread_mutex_unlock(&d->lock);
}

static uint64_t on_clock(void *context)
{
    synthetic_device *d = context;
    pthread_mutex_lock(&d->lock);
    d->facts.clocks++;
    pthread_mutex_unlock(&d->lock);
    return sd_now(d);
}

/* ---- the face -------------------------------------------------------------------------------- */

synthetic_device *sd_new(const sd_config *config)
{
    synthetic_device *d = calloc(1, sizeof *d);
    REQUIRE(d != NULL);
    d->config = config != NULL ? *config : (sd_config){0};
    d->config.rate = d->config.rate != 0 ? d->config.rate : 0.7;
    d->config.work_ns = d->config.work_ns != 0 ? d->config.work_ns : 1000;
    d->config.batch = d->config.batch != 0 ? d->config.batch : 16;
    d->random = mt_test_seed();
    d->all = calloc(WORK_MAX, sizeof *d->all);
    REQUIRE(d->all != NULL);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    mtprof_source_ops ops = {
        .struct_size = sizeof ops,
        .abi = MTPROF_SOURCE_ABI,
        .name = d->config.name != NULL ? d->config.name : "synthetic",
        .device_type = d->config.device_type != NULL ? d->config.device_type : "SYN",
        .context = d,
        .needs = d->config.needs,
        .start = on_start,
        .stop = on_stop,
        .flush = on_flush,
        .clock = on_clock,
    };
    mtprof_source *source = NULL;
    REQUIRE_OK(mtprof_source_register(&ops, &source));
    pthread_mutex_lock(&d->lock);
    d->source = source;
    pthread_mutex_unlock(&d->lock);
    REQUIRE(pthread_create(&d->worker, NULL, run, d) == 0);
    return d;
}

void sd_free(synthetic_device *device)
{
    if (device == NULL) {
        return;
    }
    mtprof_source_unregister(device->source);
    pthread_mutex_lock(&device->lock);
    device->leave = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    pthread_join(device->worker, NULL);
    pthread_cond_destroy(&device->changed);
    pthread_mutex_destroy(&device->lock);
    free(device->all);
    free(device);
}

void sd_launch(synthetic_device *device, const char *name, uint64_t launch_key, uint32_t queue)
{
    pthread_mutex_lock(&device->lock);
    if (device->facts.launched < WORK_MAX) {
        work *w = &device->all[device->facts.launched++];
        snprintf(w->name, sizeof w->name, "%s", name);
        w->launch_key = launch_key;
        w->queue = queue;
        w->correlation = device->facts.launched;
        pthread_cond_broadcast(&device->changed);
    } else {
        FAIL("more than %d launches", WORK_MAX);
    }
    pthread_mutex_unlock(&device->lock);
}

void sd_hold(synthetic_device *device, bool on)
{
    pthread_mutex_lock(&device->lock);
    device->held = on;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
}

void sd_drain(synthetic_device *device)
{
    pthread_mutex_lock(&device->lock);
    while (!is_idle(device)) {
        pthread_cond_wait(&device->changed, &device->lock);
    }
    pthread_mutex_unlock(&device->lock);
}

sd_facts sd_get_facts(synthetic_device *device)
{
    pthread_mutex_lock(&device->lock);
    sd_facts facts = device->facts;
    pthread_mutex_unlock(&device->lock);
    return facts;
}

void sd_bracket(synthetic_device *device, uint64_t correlation, uint64_t *before, uint64_t *after)
{
    pthread_mutex_lock(&device->lock);
    REQUIRE(correlation >= 1 && correlation <= device->n_done);
    *before = device->all[correlation - 1].ticks_before;
    *after = device->all[correlation - 1].ticks_after;
    pthread_mutex_unlock(&device->lock);
}

mtprof_source *sd_source(synthetic_device *device)
{
    return device->source;
}
