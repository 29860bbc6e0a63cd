/* SPDX-License-Identifier: Apache-2.0
 *
 * A source of your own: a "device" with its own clock reports to the profiler what it did and when.
 * The work is tied to the host scope that launched it by a key, never by time.
 *
 *     host   ├─ submit ─┤ key                        the trace
 *     device              ├──── blur ────┤ key  ──►  joins both by the key
 */
#include <mtprof/mtprof.h>

#include <stdio.h>
#include <time.h>

enum {
    LAUNCHES = 5
};

/* The device's clock: microseconds since it was switched on. */
static uint64_t device_clock(void *context)
{
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

/* A recording begins, and ends. A real device would switch its own tracing on and off here. */
static mtprof_status device_start(void *context, mtprof_source *source, uint64_t wants)
{
    (void)context;
    (void)source;
    (void)wants;
    return MTPROF_OK;
}

static void device_stop(void *context)
{
    (void)context;
}

/* What a driver does when the device says that a piece of work is done; any thread may call it. */
static void work_done(mtprof_source *source, uint64_t start, uint64_t key)
{
    mtprof_activity activity = {.struct_size = sizeof activity,
                                .kind = MTPROF_ACTIVITY_KERNEL,
                                .name = "blur",
                                .name_length = 4,
                                .start = start,
                                .end = device_clock(NULL),
                                .launch_key = key};
    mtprof_push_activity(source, &activity);
}

static void submit(mtprof_source *source)
{
    static mtprof_site site = MTPROF_SITE_INIT("submit", MTPROF_KIND_RUNTIME | MTPROF_FLAG_LAUNCH);
    mtprof_token token = mtprof_begin(&site);
    mtprof_end(token);
    uint64_t start = device_clock(NULL);
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); /* the device works */
    work_done(source, start, mtprof_launch_key(token));
}

int main(void)
{
    mtprof_source_ops ops = {.struct_size = sizeof ops,
                             .abi = MTPROF_SOURCE_ABI,
                             .name = "blurring device",
                             .device_type = "NPU",
                             .start = device_start,
                             .stop = device_stop,
                             .clock = device_clock};
    mtprof_config config = {.struct_size = sizeof config, .path = "custom_source.mtt"};
    mtprof_source *source;
    mtprof_session *session = NULL;
    if (mtprof_source_register(&ops, &source) != MTPROF_OK ||
        mtprof_session_start(&config, &session) != MTPROF_OK) {
        fprintf(stderr, "%s\n", mtprof_last_error()->message);
        return 1;
    }
    for (int i = 0; i < LAUNCHES; i++) {
        submit(source);
    }
    mtprof_session_stop(session);
    mtprof_health health = {.struct_size = sizeof health};
    mtprof_session_get_health(session, &health);
    printf("%d launches, %llu of them without a record of the device: see mtprof report "
           "custom_source.mtt\n",
           LAUNCHES, (unsigned long long)health.unmatched);
    int wrong = health.unmatched != 0;
    wrong |= mtprof_session_close(session) != MTPROF_OK;
    mtprof_source_unregister(source);
    return wrong;
}
