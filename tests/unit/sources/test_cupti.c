/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA's GPUs without one: libmtprof_cupti on a libcupti of our own (fake_cupti.h). A real one is
 * compared with torch.profiler in tests/gpu.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "sources/cupti/cupti_impl.h"
#include "support/cupti_case.h"
#include "support/traces/trace_view.h"

#include <mtprof/session.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__

/* ---- attaching ---- */

TEST(without_a_library_it_says_so)
{
    mtprof_cupti_info info = {.struct_size = sizeof info};
    setenv("CUPTI_LIBRARY", "/nowhere/libcupti.so", 1);
    CHECK_EQ_I64(mtprof_cupti_attach(&info), MTPROF_ENOTSUP);
    CHECK(strstr(info.missing, "CUPTI_LIBRARY=/nowhere/libcupti.so cannot be opened") != NULL);
    CHECK_EQ_U64(info.version, 0);
    CHECK_EQ_STR(info.library, "");
    CHECK_EQ_I64(mtprof_cupti_attach(&(mtprof_cupti_info){0}), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_cupti_attach(NULL), MTPROF_ENOTSUP);
    mtprof_cupti_detach();
}

TEST(a_library_that_lacks_a_function_is_refused)
{
    load(FAKE_CUPTI_OLD);
    mtprof_cupti_info info = {.struct_size = sizeof info};
    CHECK_EQ_I64(mtprof_cupti_attach(&info), MTPROF_ENOTSUP);
    CHECK(strstr(info.missing, "has no cuptiGetGraphNodeId") != NULL);
}

TEST(known_versions_are_taken_and_others_refused)
{
    static const struct {
        uint32_t version;
        bool known;
    } cases[] = {{0, false}, {17, false}, {29, false},    {129999, false}, {130500, false},
                 {18, true}, {28, true},  {130000, true}, {130499, true}};
    load(FAKE_CUPTI);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[32];
        mtprof_cupti_info info = {.struct_size = sizeof info};
        fake->settings->version = cases[i].version;
        int status = mtprof_cupti_attach(&info);
        if (cases[i].known) {
            CHECK_OK(status);
            CHECK_EQ_U64(info.version, cases[i].version);
            return; /* once attached it stays so */
        }
        snprintf(text, sizeof text, "of version %u;", cases[i].version);
        CHECK_EQ_I64(status, MTPROF_ENOTSUP);
        CHECK(strstr(info.missing, text) != NULL);
    }
}

TEST(attaching_needs_memory_and_can_be_tried_again)
{
    load(FAKE_CUPTI);
    int failures = 0;
    for (uint64_t n = 1; n < 20; n++) {
        mtb_fail_nth(n, false);
        int status = mtprof_cupti_attach(NULL);
        mtb_fail_nth(0, false);
        if (status == MTPROF_OK) {
            break;
        }
        CHECK_EQ_I64(status, MTPROF_ENOMEM);
        failures++;
    }
    CHECK(failures > 0);
    CHECK_OK(mtprof_cupti_attach(NULL));
}

/* ---- joining ---- */

TEST(a_kernel_belongs_to_the_call_that_launched_it)
{
    attach();
    CHECK(mtprof_has_device_source());
    mtprof_session *s = tv_start(0);
    uint64_t start = now();
    uint32_t first = launch("first", start, 7);
    fake->call(&(fake_call){.name = "cudaGetDevice_v3020"});
    uint32_t second = launch("second", start + 5000, 7);
    mtprof_health health = {.struct_size = sizeof health};
    trace_view *v = tv_finish(s, &health);
    const tv_record *record = activity(v, "second");
    REQUIRE(activity(v, "first") != NULL && record != NULL);
    const tv_span *scope = tv_span_nth(v, "cudaLaunchKernel", 1);
    REQUIRE(scope != NULL);
    CHECK(scope->end != NULL);
    CHECK_EQ_U64(v->n_spans, 2);
    CHECK_EQ_U64(record->r.words[0], start + 5000);
    CHECK_EQ_U64(record->r.words[1], start + 6000);
    CHECK_EQ_U64(record->r.words[2], scope->key);
    CHECK_EQ_U64(record->r.words[3], (uint64_t)7 << 32);
    CHECK_EQ_U64(record->r.words[4], second);
    CHECK(first != second);
    CHECK_EQ_U64(health.launches, 2);
    CHECK_EQ_U64(health.unmatched, 0);
    CHECK_EQ_U64(health.lost, 0);
    CHECK_EQ_U64(get_info().records, 2);
    CHECK_EQ_U64(get_info().unjoined, 0);
    CHECK_EQ_U64(meta(v, record, "registers per thread"), 32);
    CHECK_EQ_STR(tv_string(v, meta(v, record, "grid")), "[132, 8, 1]");
    CHECK_EQ_STR(tv_string(v, meta(v, record, "block")), "[256, 1, 1]");
    CHECK_EQ_U64(meta(v, record, "est. achieved occupancy %"), 100);
    CHECK_EQ_U64(meta(v, record, "graph node id"), UINT64_MAX);
    tv_free(v);
    check_let_go();
}

TEST(a_call_of_the_driver_inside_one_of_the_runtime_is_no_scope_of_its_own)
{
    attach();
    mtprof_session *s = tv_start(0);
    fake->call(&(fake_call){.name = "cudaLaunchKernel_ptsz_v7000",
                            .inner = "cuLaunchKernelEx",
                            .inner_has_own_id = true,
                            .work_of_inner = true,
                            .work = kernel("inside", now(), 1)});
    fake->call(&(fake_call){.name = "cuLaunchKernel", .work = kernel("alone", now(), 1)});
    fake->call(&(fake_call){.name = "__cudaLaunchKernel_v13000", .work = kernel("new", now(), 1)});
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(v->n_spans, 3);
    REQUIRE(activity(v, "inside") != NULL && activity(v, "alone") != NULL);
    const tv_span *outer = tv_span_named(v, "cudaLaunchKernel");
    const tv_span *driver = tv_span_named(v, "cuLaunchKernel");
    REQUIRE(outer != NULL && driver != NULL);
    CHECK_EQ_U64(activity(v, "inside")->r.words[2], outer->key);
    CHECK_EQ_U64(activity(v, "alone")->r.words[2], driver->key);
    CHECK(tv_span_nth(v, "cudaLaunchKernel", 1) != NULL);
    tv_free(v);
}

TEST(a_graph_has_many_kernels_and_one_launch)
{
    attach();
    mtprof_session *s = tv_start(0);
    fake_work work = kernel("node", now(), 3);
    work.graph_node = 77;
    fake->call(&(fake_call){.name = "cudaGraphLaunch_v10000", .repeats = 5, .work = work});
    mtprof_health health = {.struct_size = sizeof health};
    trace_view *v = tv_finish(s, &health);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 5);
    CHECK_EQ_U64(activity(v, "node")->r.words[2], tv_span_named(v, "cudaGraphLaunch")->key);
    CHECK_EQ_U64(meta(v, activity(v, "node"), "graph node id"), 77);
    CHECK_EQ_U64(health.unmatched, 0);
    tv_free(v);
}

TEST(a_call_that_gives_the_gpu_nothing_is_no_launch)
{
    attach();
    mtprof_session *s = tv_start(0);
    uint64_t words[8] = {0}; /* no bytes, no stream */
    fake->call(&(fake_call){.name = "cudaMemcpyAsync_v3020", .arguments = words});
    fake->call(&(fake_call){.name = "cudaStreamBeginCapture_v10000"});
    fake->settings->captures = true;
    fake->call(&(fake_call){.name = "cudaLaunchKernel_v7000", .arguments = words});
    const void *configuration[8] = {words};
    fake->call(&(fake_call){.name = "cudaLaunchKernelExC_v11060", .arguments = configuration});
    fake->settings->captures = false;
    fake->call(&(fake_call){.name = "cudaStreamEndCapture_v10000"});
    fake->settings->captures = true; /* nobody asks any more */
    words[2] = 8;
    fake->call(&(fake_call){.name = "cudaMemcpyAsync_v3020",
                            .arguments = words,
                            .work = {.kind = CP_KIND_MEMCPY, .start = now(), .end = now()}});
    mtprof_health health = {.struct_size = sizeof health};
    trace_view *v = tv_finish(s, &health);
    CHECK_EQ_U64(v->n_spans, 6);
    CHECK_EQ_U64(health.launches, 1);
    CHECK_EQ_U64(health.unmatched, 0);
    tv_free(v);
}

TEST(a_call_that_does_not_return_is_forgotten_with_its_recording)
{
    attach();
    uint64_t kept = 0;
    const fake_call hanging = {.name = "cudaDeviceSynchronize_v3020"};
    mtprof_session *s = tv_start(0);
    (void)fake->enter(&hanging, &kept);
    tv_free(tv_finish(s, NULL));
    s = tv_start(0);
    launch("later", now(), 1);
    trace_view *v = tv_finish(s, NULL);
    CHECK(tv_span_named(v, "cudaLaunchKernel") != NULL); /* it is the outermost */
    tv_free(v);
}

/* ---- kinds ---- */

static fake_work moving(uint32_t kind, uint64_t start, uint64_t bytes, uint8_t copy_kind,
                        uint8_t from_kind, uint8_t to_kind)
{
    return (fake_work){.kind = kind,
                       .start = start,
                       .end = start + 9,
                       .bytes = bytes,
                       .copy_kind = copy_kind,
                       .from_kind = from_kind,
                       .to_kind = to_kind,
                       .device = kind == CP_KIND_MEMCPY_PEER,
                       .stream = 7,
                       .context = 2};
}

TEST(copies_and_sets_have_torchs_names)
{
    attach();
    mtprof_session *s = tv_start(0);
    uint64_t at = now();
    const fake_work works[] = {
        moving(CP_KIND_MEMCPY, at, 64, 1, 1, 3),
        moving(CP_KIND_MEMCPY, at + 10, 65, 2, 3, 2),
        moving(CP_KIND_MEMCPY, at + 20, 0, 99, 99, 5),
        moving(CP_KIND_MEMCPY_PEER, at + 30, 66, 10, 3, 3),
        moving(CP_KIND_MEMSET, at + 40, 67, 0, 0, 3),
    };
    static const char *const names[] = {
        "Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pinned)",
        "Memcpy Unknown (Unknown -> Managed)", "Memcpy PtoP (Device -> Device)", "Memset (Device)"};
    for (size_t i = 0; i < 5; i++) {
        fake->call(&(fake_call){.name = i == 4 ? "cudaMemsetAsync_v3020" : "cudaMemcpyAsync_v3020",
                                .work = works[i]});
    }
    trace_view *v = tv_finish(s, NULL);
    for (size_t i = 0; i < 5; i++) {
        const tv_record *record = activity(v, names[i]);
        if (CHECK(record != NULL)) {
            CHECK_EQ_U64(record->r.aux, i == 4 ? MTPROF_ACTIVITY_SET : MTPROF_ACTIVITY_COPY);
            CHECK_EQ_U64(record->r.words[5], works[i].bytes);
            CHECK_EQ_U64(record->r.words[0], works[i].start);
            CHECK_EQ_U64((uint32_t)record->r.words[3], works[i].device);
            CHECK_EQ_U64(meta(v, record, "context"), works[i].context);
        }
    }
    tv_free(v);
}

static size_t count_waits(uint32_t options)
{
    mtprof_cupti_set_options(options);
    mtprof_session *s = tv_start(0);
    uint64_t at = now();
    fake_work work = {.kind = CP_KIND_SYNCHRONIZATION, .start = at, .end = at + 9, .stream = 7};
    for (uint32_t type = 0; type <= CP_SYNC_CONTEXT; type++) {
        work.wait_type = type;
        work.stream = type == CP_SYNC_CONTEXT ? UINT32_MAX : 7;
        fake->call(&(fake_call){.name = "cudaStreamWaitEvent_v3020", .work = work});
    }
    trace_view *v = tv_finish(s, NULL);
    size_t count = tv_count(v, MTPROF_REC_ACTIVITY);
    CHECK_EQ_U64(activity(v, "Stream Wait Event") != NULL, options != 0);
    CHECK_EQ_U64(v->n_spans, 5);
    tv_free(v);
    return count;
}

TEST(waits_come_on_request)
{
    attach();
    CHECK_EQ_U64(count_waits(0), 0);
    CHECK_EQ_U64(count_waits(MTPROF_CUPTI_WAITS), 3);
    CHECK_EQ_U64(count_waits(0), 0);
    check_let_go();
}

TEST(records_of_later_versions_are_longer)
{
    attach();
    fake->settings->extra_bytes = 88;
    mtprof_session *s = tv_start(0);
    for (uint32_t i = 0; i < 100; i++) {
        launch("kernel", now(), 1);
    }
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 100);
    CHECK_EQ_U64(get_info().unreadable, 0);
    tv_free(v);
}

TEST(records_that_make_no_sense_are_counted_and_left_out)
{
    attach();
    mtprof_session *s = tv_start(0);
    uint64_t at = now();
    fake_work backwards = kernel("backwards", at, 1);
    backwards.end = at - 1;
    fake_work untimed = kernel("untimed", 0, 1);
    untimed.end = 0;
    fake_work elsewhere = kernel("elsewhere", at, 1);
    elsewhere.device = 5000;
    const fake_work unknown = {.kind = 1000};
    const fake_work works[] = {backwards, untimed, elsewhere, unknown};
    for (size_t i = 0; i < 4; i++) {
        fake->call(&(fake_call){.name = "cudaLaunchKernel_v7000", .work = works[i]});
    }
    fake_work nameless = kernel(NULL, at, 1);
    fake->call(&(fake_call){.name = "cudaLaunchKernel_v7000", .work = nameless});
    mtprof_health health = {.struct_size = sizeof health};
    trace_view *v = tv_finish(s, &health);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 1);
    CHECK(activity(v, "unknown kernel") != NULL);
    CHECK_EQ_U64(get_info().unreadable, 4);
    CHECK_EQ_U64(health.unmatched, 4);
    tv_free(v);
}

TEST(a_record_of_an_unseen_call_is_shown_without_one)
{
    attach();
    mtprof_session *s = tv_start(0);
    fake->call(&(fake_call){.name = "cudaGetDevice_v3020", .work = kernel("stray", now(), 1)});
    /* Launched by other threads before the beginning, and after the end. */
    fake_work early = kernel("early", 1000, 1);
    fake->call(&(fake_call){.name = "cudaGetDevice_v3020", .work = early});
    fake_work late = kernel("late", now() + (uint64_t)3600 * 1000000000, 1);
    fake->call(&(fake_call){.name = "cudaGetDevice_v3020", .work = late});
    trace_view *v = tv_finish(s, NULL);
    REQUIRE(activity(v, "stray") != NULL);
    CHECK(activity(v, "early") == NULL && activity(v, "late") == NULL);
    CHECK_EQ_U64(activity(v, "stray")->r.words[2], 0);
    CHECK_EQ_U64(get_info().unjoined, 1);
    tv_free(v);
}

/* ---- names and devices ---- */

TEST(names_are_those_of_the_source_where_a_cxx_runtime_is_loaded)
{
    attach();
    void *runtime = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL);
    mtprof_session *s = tv_start(0);
    launch("_Z4axpyfPfS_", now(), 1);
    launch("plain", now(), 1);
    trace_view *v = tv_finish(s, NULL);
    CHECK(activity(v, runtime != NULL ? "axpy(float, float*, float*)" : "_Z4axpyfPfS_") != NULL);
    CHECK(activity(v, "plain") != NULL);
    CHECK_EQ_U64(strstr(get_info().missing, "mangled") != NULL, runtime == NULL);
    tv_free(v);
}

TEST(occupancy_follows_threads_registers_and_shared_memory)
{
    static const struct {
        int32_t blocks, threads;
        uint16_t registers;
        int32_t shared;
        double percent;
    } cases[] = {
        {132 * 8, 256, 32, 0, 100}, {132 * 100, 256, 64, 0, 50}, {132 * 8, 256, 32, 102400, 25},
        {132, 256, 32, 0, 12.5},    {132 * 64, 32, 16, 0, 50},   {132, 1024, 255, 0, 0},
        {0, 256, 32, 0, 0},         {132, 4096, 32, 0, 0},
    };
    attach();
    const cp__device *device = cp__device_of(0);
    REQUIRE(device != NULL);
    CHECK(cp__device_of(1) == NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const cp__kernel k = {.grid = {cases[i].blocks, 1, 1},
                              .block = {cases[i].threads, 1, 1},
                              .registers = cases[i].registers,
                              .dynamic_shared = cases[i].shared};
        CHECK_NEAR_F64(cp__occupancy(device, &k), cases[i].percent, 1e-9);
    }
}

TEST(devices_are_described_in_torchs_words)
{
    attach();
    fake->settings->devices = 2;
    mtprof_session *s = tv_start(0);
    trace_view *v = tv_finish(s, NULL);
    const char *text = tv_metadata(v, "deviceProperties");
    REQUIRE(text != NULL);
    CHECK(strstr(text, "{\"id\": 0, \"name\": \"Fake ?GPU? 0\", \"totalGlobalMem\": 1073741824, "
                       "\"computeMajor\": 9, ") != NULL);
    CHECK(strstr(text, "\"numSms\": 132") != NULL);
    CHECK(strstr(text, "{\"id\": 1, ") != NULL);
    char small[8];
    CHECK(cp__describe(small, sizeof small) > 100);
    tv_free(v);
}

/* ---- order, threads, buffers ---- */

typedef struct launching {
    pthread_t thread;
    uint32_t number, count;
    uint64_t from, step;
} launching;

static void *launch_many(void *argument)
{
    static const char *const names[] = {"kernel 0", "kernel 1", "kernel 2", "kernel 3"};
    const launching *l = argument;
    for (uint32_t i = 0; i < l->count; i++) {
        launch(names[l->number % 4], l->from + i * l->step, i % 3);
        if (l->number == 0 && i % 500 == 499) {
            fake->give_back();
        }
    }
    return NULL;
}

TEST(work_of_two_threads_on_one_stream_is_reported_in_order)
{
    attach();
    mtprof_session *s = tv_start(0);
    launching two[2] = {{.number = 1, .count = 60, .from = now(), .step = 20},
                        {.number = 2, .count = 60, .from = now() + 10, .step = 20}};
    two[1].from = two[0].from + 10;
    for (size_t i = 0; i < 2; i++) { /* one after the other: buffers are those of threads */
        REQUIRE(pthread_create(&two[i].thread, NULL, launch_many, &two[i]) == 0);
        pthread_join(two[i].thread, NULL);
    }
    trace_view *v = tv_finish(s, NULL);
    uint64_t last = 0;
    for (size_t i = 0; i < 120; i++) {
        const tv_record *record = tv_nth(v, MTPROF_REC_ACTIVITY, i);
        REQUIRE(record != NULL);
        CHECK(record->r.words[0] > last);
        last = record->r.words[0];
    }
    tv_free(v);
}

TEST(many_threads_lose_nothing)
{
    enum {
        THREADS = 4
    };
    attach();
    launching all[THREADS];
    mtprof_session *s = tv_start(0);
    for (uint32_t i = 0; i < THREADS; i++) {
        all[i] = (launching){.number = i, .count = 2000, .from = now(), .step = 1};
        REQUIRE(pthread_create(&all[i].thread, NULL, launch_many, &all[i]) == 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(all[i].thread, NULL);
    }
    mtprof_health health = {.struct_size = sizeof health};
    trace_view *v = tv_finish(s, &health);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), THREADS * 2000);
    CHECK_EQ_U64(health.launches, THREADS * 2000);
    CHECK_EQ_U64(health.unmatched, 0);
    CHECK_EQ_U64(health.lost, 0);
    CHECK_EQ_U64(get_info().unjoined, 0);
    tv_free(v);
    check_let_go();
}

TEST(dropped_records_are_counted)
{
    attach();
    mtprof_session *s = tv_start(0);
    launch("kept", now(), 1);
    fake->settings->dropped = 12;
    mtprof_health health = {.struct_size = sizeof health};
    trace_view *v = tv_finish(s, &health);
    CHECK_EQ_U64(health.lost, 12);
    CHECK_EQ_U64(get_info().dropped, 12);
    CHECK(activity(v, "kept") != NULL);
    tv_free(v);
}

TEST(without_memory_for_buffers_records_are_dropped_and_counted)
{
    attach();
    mtprof_session *s = tv_start(0);
    launch("first", now(), 1); /* what names need is there */
    fake->give_back();
    cp__buffers_read();
    cp__buffers_trim();
    mtb_fail_nth(1, true);
    launch("second", now(), 1);
    mtb_fail_nth(0, false);
    CHECK_EQ_U64(fake->facts().buffers_refused, 1);
    launch("third", now(), 1);
    mtprof_health health = {.struct_size = sizeof health};
    trace_view *v = tv_finish(s, &health);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 2);
    CHECK_EQ_U64(health.lost, 1);
    CHECK_EQ_U64(health.unmatched, 1);
    tv_free(v);
}

TEST(buffers_that_come_after_the_end_harm_nothing)
{
    attach();
    mtprof_session *s = tv_start(0);
    launch("in time", now(), 1);
    trace_view *v = tv_finish(s, NULL);
    CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 1);
    tv_free(v);
    /* Our functions were unregistered with the rest, but a thread of CUPTI may still be in one. */
    uint8_t *buffer = NULL;
    size_t bytes = 0;
    size_t most = 0;
    cp__on_buffer_wanted(&buffer, &bytes, &most);
    REQUIRE(buffer != NULL);
    cp__kernel record = {.kind = CP_KIND_KERNEL, .start = 5, .end = 6, .correlation = 1};
    memcpy(buffer, &record, sizeof record);
    cp__on_buffer_done(NULL, 0, buffer, bytes, sizeof record);
    s = tv_start(0);
    launch("next", now(), 1);
    v = tv_finish(s, NULL);
    CHECK(activity(v, "next") != NULL);
    tv_free(v);
}

#else

TEST(other_processors_are_refused)
{
    CHECK_EQ_I64(mtprof_cupti_attach(NULL), MTPROF_ENOTSUP);
}

#endif
