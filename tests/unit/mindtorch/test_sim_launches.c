/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches and their records, end to end on the simulated accelerator: the host runs ahead of the
 * device with the profiler as without it, every launch finds its record, streams are tracks, and a
 * device that fails leaves the profile of the host whole.
 */
#include "mindtorch/trace/device_trace.h"
#include "support/devices/sim_device.h"
#include "support/traces/model_events.h"

#include <mtprof/mtprof.h>

#include <pthread.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#    define SANITIZED 1
#else
#    define SANITIZED 0
#endif

enum {
    AHEAD = 2000, /* launches that the host makes while the device is held */
    THREADS = 4,
    STREAMS = 3,
    LAUNCHES = SANITIZED ? 4000 : 100000 /* of each thread on each stream */
};

/* ---- what a recording says ---- */

static mtprof_session *start(uint64_t wants)
{
    mtprof_config config = {.struct_size = sizeof(config), .wants = wants};
    mtprof_session *session = NULL;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    return session;
}

/* Stops, reads, closes. */
static model_events finish(mtprof_session *session)
{
    mtprof_model *model;
    REQUIRE_OK(mtprof_session_stop(session));
    REQUIRE_OK(mtprof_model_from_session(session, NULL, &model));
    REQUIRE_OK(mtprof_session_close(session));
    return model_events_of(model);
}

/* ---- the host runs ahead ---- */

/* Holds the default stream until `AHEAD` adds are queued after it, and queues them. */
static void run_ahead(const mt_sim *sim, mt_tensor *x)
{
    uint64_t correlation;
    mtprof_token token = mt__trace_launch_begin(MT_RUNTIME_LAUNCH_KERNEL, &correlation);
    sim_hold_now(sim, 0, AHEAD, correlation);
    mt__trace_end(token);
    for (int i = 0; i < AHEAD; i++) {
        mt_tensor *sum;
        REQUIRE_OK(mt_add(x, x, &sum));
        mt_tensor_release(sum);
    }
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
}

TEST(a_launch_bound_loop_is_as_asynchronous_with_the_profiler_as_without)
{
    const mt_sim *sim = sim_open("1", "64M");
    mt_tensor *x = sim_ones(MT_NPU, 16);
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    for (int profiled = 0; profiled < 2; profiled++) {
        mtprof_session *session = profiled ? start(MTPROF_WANT_DEFAULT) : NULL;
        REQUIRE_OK(sim->reset_counts(0, 0));
        run_ahead(sim, x);
        mt_sim_counts counts = sim_counts(sim, 0, 0);
        CHECK_EQ_U64(counts.gave_up, 0); /* no wait before all were queued */
        CHECK_EQ_U64(counts.most, AHEAD + 1);
        CHECK_EQ_U64(counts.launches, AHEAD + 1);
        CHECK_EQ_U64(counts.done, AHEAD + 1);
        if (profiled) {
            model_events r = finish(session);
            CHECK_EQ_U64(r.health.launches, AHEAD + 1);
            CHECK_EQ_U64(r.health.unmatched, 0);
            mtprof_model_free(r.model);
        }
    }
    mt_tensor_release(x);
}

TEST(host_and_device_overlap_in_the_trace)
{
    const mt_sim *sim = sim_open("1", "64M");
    mt_tensor *x = sim_ones(MT_NPU, 16);
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    mtprof_session *session = start(MTPROF_WANT_DEFAULT);
    run_ahead(sim, x);
    model_events r = finish(session);
    uint64_t hold = find_event(&r, MTPROF_EVENT_KIND_KERNEL, "sim_hold");
    uint64_t inside = 0;
    uint64_t later = 0;
    int64_t end = r.end[hold];
    for (uint64_t i = 0; i < r.count; i++) {
        bool launch = event_is_named(&r, i, "npuLaunchKernel");
        bool kernel = r.kind[i] == MTPROF_EVENT_KIND_KERNEL && i != hold;
        inside += launch && r.start[i] >= r.start[hold] && r.start[i] <= end;
        later += kernel && r.start[i] >= end;
    }
    CHECK_EQ_U64(inside, AHEAD); /* the last of them is what ended the hold */
    CHECK_EQ_U64(later, AHEAD);  /* and every add ran when the host had long gone on */
    mtprof_model_free(r.model);
    mt_tensor_release(x);
}

TEST(device_time_adds_up_and_streams_are_tracks)
{
    (void)sim_open("1", "64M");
    mt_tensor *x = sim_ones(MT_NPU, 4096);
    mt_stream *side;
    mt_stream *before;
    REQUIRE_OK(mt_stream_get_current(MT_NPU, &before));
    REQUIRE_OK(mt_stream_new(MT_NPU, 0, &side));
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    mtprof_session *session = start(MTPROF_WANT_DEFAULT);
    for (int i = 0; i < 20; i++) {
        mt_tensor *sum;
        REQUIRE_OK(mt_stream_set_current(i % 2 == 0 ? before : side));
        REQUIRE_OK(mt_add(x, x, &sum));
        mt_tensor_release(sum);
    }
    REQUIRE_OK(mt_stream_set_current(before));
    model_events r = finish(session); /* stop waits for the device */
    uint64_t n;
    const int64_t *self = model_column(r.model, MTPROF_COLUMN_SELF_DEVICE_NS, &n);
    int64_t of_ops = 0;
    int64_t of_kernels = 0;
    uint32_t by_stream[2] = {0, 0};
    for (uint64_t i = 0; i < r.count; i++) {
        bool device_work = r.kind[i] == MTPROF_EVENT_KIND_KERNEL;
        of_kernels += device_work ? r.end[i] - r.start[i] : 0;
        of_ops += device_work ? 0 : self[i];
        mtprof_track track;
        if (device_work && mtprof_model_track(r.model, r.track[i], &track)) {
            CHECK_EQ_I64(track.pid, 0);
            by_stream[track.number == mt_stream_number(side)]++;
        }
    }
    CHECK(of_kernels > 0);
    CHECK_EQ_I64(of_ops, of_kernels);
    CHECK_EQ_U64(by_stream[0], 10);
    CHECK_EQ_U64(by_stream[1], 10);
    CHECK_EQ_U64(r.health.unmatched, 0);
    mtprof_model_free(r.model);
    mt_tensor_release(x);
}

/* ---- many of them ---- */

static void *launch_many(void *argument)
{
    mt_stream **streams = argument;
    mt_tensor *x = sim_ones(MT_NPU, 2);
    mt_tensor *sums[STREAMS];
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    for (int s = 0; s < STREAMS; s++) {
        REQUIRE_OK(mt_stream_set_current(streams[s]));
        REQUIRE_OK(mt_zeros_like(x, &sums[s]));
    }
    for (int i = 0; i < LAUNCHES; i++) {
        for (int s = 0; s < STREAMS; s++) {
            REQUIRE_OK(mt_stream_set_current(streams[s]));
            REQUIRE_OK(mt_add_(sums[s], x));
        }
    }
    for (int s = 0; s < STREAMS; s++) {
        float values[2] = {0, 0};
        REQUIRE_OK(mt_stream_set_current(streams[s]));
        REQUIRE_OK(mt_tensor_read(sums[s], values, sizeof values));
        CHECK_EQ_F64((double)values[1], (double)LAUNCHES);
        mt_tensor_release(sums[s]);
    }
    mt_tensor_release(x);
    return NULL;
}

TEST(every_launch_of_four_threads_on_three_streams_each_is_matched)
{
    (void)sim_open("1", "64M");
    mt_stream *streams[THREADS][STREAMS];
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        for (int s = 0; s < STREAMS; s++) {
            REQUIRE_OK(mt_stream_new(MT_NPU, 0, &streams[t][s]));
        }
    }
    mtprof_session *session = start(MTPROF_WANT_DEVICE | MTPROF_WANT_RUNTIME);
    for (int t = 0; t < THREADS; t++) {
        REQUIRE(pthread_create(&threads[t], NULL, launch_many, streams[t]) == 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    model_events r = finish(session);
    CHECK(r.health.launches >= (uint64_t)THREADS * STREAMS * LAUNCHES);
    CHECK_EQ_U64(r.health.activities, r.health.launches);
    CHECK_EQ_U64(r.health.unmatched, 0);
    CHECK_EQ_U64(r.health.lost, 0);
    mtprof_model_findings findings = {.struct_size = sizeof findings};
    REQUIRE_OK(mtprof_model_get_findings(r.model, &findings));
    CHECK_EQ_U64(findings.orphans, 0);
    CHECK_EQ_U64(count_kind(&r, MTPROF_EVENT_KIND_KERNEL) + count_kind(&r, MTPROF_EVENT_KIND_COPY) +
                     count_kind(&r, MTPROF_EVENT_KIND_SET),
                 r.health.launches);
    mtprof_model_free(r.model);
}

/* ---- failures ---- */

/* Adds, of which the third kernel fails; returns what the wait says. */
static int fail_third(const mt_sim *sim, mt_tensor *x)
{
    REQUIRE_OK(sim->fail(0, 2, MT_ERUNTIME, "the third one broke"));
    for (int i = 0; i < 5; i++) {
        mt_tensor *sum;
        REQUIRE_OK(mt_add(x, x, &sum));
        mt_tensor_release(sum);
    }
    return mt_device_synchronize(MT_NPU);
}

TEST(a_kernel_that_fails_is_one_error_and_loses_no_event)
{
    const mt_sim *sim = sim_open("1", "64M");
    mt_tensor *x = sim_ones(MT_NPU, 16);
    REQUIRE_OK(mt_device_synchronize(MT_NPU));
    for (int round = 0; round < 2; round++) { /* the profiler is as good the second time */
        mtprof_session *session = start(MTPROF_WANT_DEFAULT);
        CHECK_EQ_I64(fail_third(sim, x), MT_ERUNTIME);
        CHECK(strstr(mt_last_error()->message, "the third one broke") != NULL);
        CHECK_OK(mt_device_synchronize(MT_NPU)); /* reported once */
        model_events r = finish(session);
        CHECK_EQ_U64(count_named(&r, "aten::add"), 5);
        CHECK_EQ_U64(count_named(&r, "npuLaunchKernel"), 5);
        CHECK_EQ_U64(count_kind(&r, MTPROF_EVENT_KIND_KERNEL), 5);
        CHECK_EQ_U64(r.health.unmatched, 0);
        mtprof_model_free(r.model);
    }
    mt_tensor_release(x);
}

TEST(a_device_that_is_full_is_one_error_and_loses_no_event)
{
    (void)sim_open("1", "16M");
    mtprof_session *session = start(MTPROF_WANT_DEFAULT | MTPROF_WANT_ALLOCS);
    mt_tensor *x = sim_ones(MT_NPU, 1 << 18);
    mt_tensor *large = NULL;
    int64_t count = 1 << 24;
    CHECK_EQ_I64(mt_ones_with(&count, 1, MT_DTYPE_F32, MT_NPU, &large), MT_EOOM);
    CHECK(large == NULL);
    CHECK(strstr(mt_last_error()->message, "NPU out of memory. Tried to allocate 64.00 MiB.") !=
          NULL);
    mt_tensor *sum;
    REQUIRE_OK(mt_add(x, x, &sum)); /* what is there still works */
    mt_tensor_release(sum);
    mt_tensor_release(x);
    model_events r = finish(session);
    CHECK_EQ_U64(count_named(&r, "aten::add"), 1);
    CHECK_EQ_U64(r.health.unmatched, 0);
    mtprof_model_free(r.model);
}

TEST(a_device_that_disappears_is_an_error_and_loses_no_event)
{
    const mt_sim *sim = sim_open("2", "64M");
    mt_tensor *x = sim_ones(MT_NPU, 16);
    mt_tensor *other = sim_ones(MT_NPU + 1, 16);
    mt_tensor *sum = NULL;
    mtprof_session *session = start(MTPROF_WANT_DEFAULT);
    REQUIRE_OK(mt_add(x, x, &sum));
    mt_tensor_release(sum);
    REQUIRE_OK(sim->lose(0, true));
    CHECK_EQ_I64(mt_add(x, x, &sum), MT_EDEVICE);
    CHECK(strstr(mt_last_error()->message, "npu:0") != NULL);
    CHECK_EQ_I64(mt_device_synchronize(MT_NPU), MT_EDEVICE);
    REQUIRE_OK(mt_add(other, other, &sum)); /* the other one is well */
    mt_tensor_release(sum);
    CHECK_OK(mt_device_synchronize(MT_NPU + 1));
    model_events r = finish(session); /* comes back */
    CHECK_EQ_U64(count_named(&r, "aten::add"), 3);
    mtprof_model_free(r.model);
    session = start(MTPROF_WANT_DEFAULT);
    REQUIRE_OK(mt_add(other, other, &sum));
    mt_tensor_release(sum);
    r = finish(session);
    CHECK_EQ_U64(count_named(&r, "aten::add"), 1);
    CHECK_EQ_U64(r.health.unmatched, 0);
    mtprof_model_free(r.model);
    mt_tensor_release(x);
    mt_tensor_release(other);
}
