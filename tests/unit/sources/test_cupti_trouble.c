/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes wrong with NVIDIA's GPUs: the recording goes on, says so, counts what is missing, and
 * never waits without a limit. On a libcupti of our own (fake_cupti.h).
 */
#include "base/compiler.h"
#include "support/cupti_case.h"

#include <mtprof/session.h>

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__

static char warned[512];

static void keep_warning(void *user, mtprof_status status, const char *message)
{
    (void)user;
    (void)status;
    snprintf(warned, sizeof warned, "%s", message);
}

static mtprof_session *start_warned(uint64_t wait_ns)
{
    mtprof_session *s = NULL;
    warned[0] = '\0';
    REQUIRE_OK(mtprof_session_start(&(mtprof_config){.struct_size = sizeof(mtprof_config),
                                                     .on_warning = keep_warning,
                                                     .device_wait_ns = wait_ns},
                                    &s));
    return s;
}

TEST(whatever_fails_the_recording_goes_on_and_cupti_is_let_go)
{
    static const struct {
        const char *function;
        uint32_t after;
        int result;
        const char *text;
    } cases[] = {
        {"cuptiSubscribe", 0, CP_MULTIPLE_SUBSCRIBERS,
         "another profiler (torch.profiler, Nsight) uses CUPTI in this process"},
        {"cuptiActivityRegisterTimestampCallback", 0, 999, "TimestampCallback failed with CUPTI"},
        {"cuptiActivityRegisterCallbacks", 0, 999, "RegisterCallbacks failed with CUPTI"},
        {"cuptiActivityEnable", 0, CP_INSUFFICIENT_PRIVILEGES, "administrators alone"},
        {"cuptiActivityEnable", 2, 999, "cuptiActivityEnable failed with CUPTI_ERROR_UNKNOWN"},
        {"cuptiEnableCallback", 3, 999, "cuptiEnableCallback failed with CUPTI_ERROR_UNKNOWN"},
    };
    attach();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake->settings->failing = cases[i].function;
        fake->settings->fails_after = cases[i].after;
        fake->settings->result = cases[i].result;
        mtprof_session *s = start_warned(0);
        launch("unseen", now(), 1);
        CHECK(strstr(warned, "source cupti does not take part: cupti: ") != NULL);
        CHECK(strstr(warned, cases[i].text) != NULL);
        CHECK(strstr(get_info().missing, cases[i].text) != NULL);
        trace_view *v = tv_finish(s, NULL);
        CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 0);
        tv_free(v);
        fake->settings->failing = NULL;
        check_let_go();
    }
    mtprof_session *s = start_warned(0);
    launch("seen", now(), 1);
    trace_view *v = tv_finish(s, NULL);
    CHECK(activity(v, "seen") != NULL);
    CHECK_EQ_STR(warned, "");
    tv_free(v);
}

/* As torch.profiler does with TEARDOWN_CUPTI=1: from the exit of a later call of CUDA. */
TEST(a_profiler_that_lets_cupti_go_is_waited_for)
{
    attach();
    fake->settings->taken = 5;
    mtprof_session *s = start_warned(0);
    CHECK_EQ_STR(warned, "");
    launch("seen", now(), 1);
    trace_view *v = tv_finish(s, NULL);
    CHECK(activity(v, "seen") != NULL);
    tv_free(v);
    check_let_go();

    fake->settings->taken = 1000; /* it keeps CUPTI */
    s = start_warned(0);
    CHECK(strstr(warned, "another profiler") != NULL);
    uint32_t left = fake->settings->taken;
    CHECK(left < 1000);
    tv_free(tv_finish(s, NULL));
    s = start_warned(0); /* nobody waits a second time */
    CHECK(strstr(warned, "another profiler") != NULL);
    CHECK_EQ_U64(fake->settings->taken, left);
    tv_free(tv_finish(s, NULL));
    fake->settings->taken = 0;
    s = start_warned(0);
    CHECK_EQ_STR(warned, "");
    tv_free(tv_finish(s, NULL));
    check_let_go();
}

TEST(cupti_is_detached_from_the_exit_of_a_call)
{
    attach();
    fake->settings->keeps = true;        /* CB3 */
    for (uint32_t i = 1; i <= 80; i++) { /* more than there are buffers */
        mtprof_session *s = tv_start(0);
        CHECK(get_info().running);
        launch("kernel", now(), 1);
        trace_view *v = tv_finish(s, NULL);
        CHECK_EQ_U64(tv_count(v, MTPROF_REC_ACTIVITY), 1);
        tv_free(v);
        CHECK_EQ_U64(fake->facts().finalized_at_exit, i);
        check_let_go();
    }
    fake->settings->mute = true; /* no callback comes: it is detached all the same */
    tv_free(tv_finish(tv_start(0), NULL));
    CHECK_EQ_U64(fake->facts().finalized, 81);
    CHECK_EQ_U64(fake->facts().finalized_at_exit, 80);
    check_let_go();
}

TEST(a_detach_that_fails_is_said)
{
    attach();
    mtprof_session *s = tv_start(0);
    fake->settings->failing = "cuptiFinalize";
    fake->settings->result = 999;
    tv_free(tv_finish(s, NULL));
    CHECK(strstr(get_info().missing, "cuptiFinalize failed") != NULL);
}

TEST(a_gpu_that_hangs_does_not_hang_the_end)
{
    attach();
    mtprof_session *s = start_warned(30000000);
    launch("endless", now(), 1);
    fake->settings->hangs = true;
    mtprof_health health = {.struct_size = sizeof health};
    trace_view *v = tv_finish(s, &health);
    CHECK(strstr(warned, "source cupti reported nothing for 0.0 s") != NULL);
    CHECK(get_info().running);
    CHECK(get_info().waits_failed > 0);
    CHECK(strstr(get_info().missing, "not done in time") != NULL);
    tv_free(v);
    __atomic_store_n(&fake->settings->hangs, false, __ATOMIC_RELAXED);
    s = start_warned(0);
    launch("after", now(), 1);
    v = tv_finish(s, NULL);
    CHECK(activity(v, "after") != NULL);
    tv_free(v);
    check_let_go();
}

TEST(a_context_that_is_gone_is_not_waited_for)
{
    attach();
    mtprof_session *s = tv_start(0);
    launch("kernel", now(), 1);
    fake->destroy_context((void *)(uintptr_t)17);
    tv_free(tv_finish(s, NULL));
    CHECK_EQ_U64(fake->facts().waits, 0);
    s = tv_start(0);
    launch("kernel", now(), 1);
    tv_free(tv_finish(s, NULL));
    CHECK_EQ_U64(fake->facts().waits, 1);
}

/* cudaDeviceReset(): the context goes with what was not reported yet, and a new one is made. */
TEST(a_device_that_is_reset_loses_its_work_and_no_more)
{
    attach();
    mtprof_session *s = tv_start(0);
    launch("before", now(), 1);
    fake->give_back();
    launch("lost", now(), 1);
    launch("lost", now(), 1);
    fake->lose_records();
    fake->destroy_context((void *)(uintptr_t)17);
    fake_work later = kernel("after", now(), 1);
    later.context = 2;
    fake->call(&(fake_call){.name = "cudaLaunchKernel_v7000", .work = later});
    mtprof_health health = {.struct_size = sizeof health};
    trace_view *v = tv_finish(s, &health);
    CHECK(activity(v, "before") != NULL && activity(v, "after") != NULL);
    CHECK(activity(v, "lost") == NULL);
    CHECK_EQ_U64(health.launches, 4);
    CHECK_EQ_U64(health.unmatched, 2);
    CHECK_EQ_U64(fake->facts().waits, 1); /* for the new one */
    CHECK_EQ_STR(strstr(get_info().missing, "fail") != NULL ? get_info().missing : "", "");
    tv_free(v);
    check_let_go();
}

/* The context goes between the question which there are and the wait. */
TEST(a_context_that_cannot_be_entered_is_not_waited_for)
{
    attach();
    mtprof_session *s = tv_start(0);
    launch("kernel", now(), 1);
    fake->settings->contexts_gone = true;
    trace_view *v = tv_finish(s, NULL);
    CHECK(activity(v, "kernel") != NULL);
    CHECK_EQ_U64(fake->facts().waits, 0);
    tv_free(v);
    check_let_go();
}

/* A GPU that fell off the bus, or a kernel that broke its context: all calls fail from then on. */
TEST(a_lost_gpu_is_said_and_its_work_counted)
{
    attach();
    mtprof_session *s = start_warned(0);
    launch("in time", now(), 1);
    fake->give_back();
    for (uint32_t i = 0; i < 10; i++) {
        launch("lost", now(), 1);
    }
    fake->lose_records();
    fake->settings->failure = 46; /* CUDA_ERROR_DEVICE_UNAVAILABLE */
    for (uint32_t i = 0; i < 5; i++) {
        fake->call(&(fake_call){.name = "cudaLaunchKernel_v7000", .result = 46});
    }
    mtprof_health health = {.struct_size = sizeof health};
    trace_view *v = tv_finish(s, &health);
    CHECK(activity(v, "in time") != NULL);
    CHECK_EQ_U64(health.unmatched, 15);
    CHECK(strstr(get_info().missing, "a GPU failed (cuCtxSynchronize returned 46)") != NULL);
    CHECK_EQ_U64(get_info().waits_failed, 0);
    tv_free(v);
    check_let_go();
    s = start_warned(0); /* again, and nothing works */
    fake->settings->failing = "cuptiFinalize";
    tv_free(tv_finish(s, NULL));
    fake->settings->failing = NULL;
    CHECK(strstr(get_info().missing, "cuptiFinalize failed") != NULL);
}

/* CU3 */
TEST(cupti_that_hangs_does_not_hang_the_end)
{
    attach();
    for (int i = 0; i < 2; i++) { /* the second time its thread is still in there, at first */
        mtprof_session *s = start_warned(30000000);
        launch("kept back", now(), 1);
        __atomic_store_n(&fake->settings->flush_hangs, true, __ATOMIC_RELAXED);
        tv_free(tv_finish(s, NULL));
        CHECK(get_info().running);
        CHECK(get_info().waits_failed > 0);
        CHECK(strstr(get_info().missing, "cuptiActivityFlushAll did not return") != NULL);
    }
    mtprof_session *s = start_warned(0);
    __atomic_store_n(&fake->settings->flush_hangs, false, __ATOMIC_RELAXED);
    launch("after", now(), 1);
    trace_view *v = tv_finish(s, NULL);
    CHECK(activity(v, "after") != NULL);
    tv_free(v);
    check_let_go();
    s = start_warned(0);
    launch("again", now(), 1);
    v = tv_finish(s, NULL);
    CHECK(activity(v, "again") != NULL);
    tv_free(v);
    check_let_go();
}

TEST(after_detach_recordings_are_without_gpus)
{
    attach();
    mtprof_session *s = tv_start(0);
    launch("kernel", now(), 1);
    mtprof_cupti_detach();
    CHECK_EQ_U64(fake->facts().subscribed, 0);
    CHECK_EQ_U64(fake->facts().finalized, 1);
    trace_view *v = tv_finish(s, NULL);
    CHECK(activity(v, "kernel") != NULL);
    tv_free(v);
    mtprof_cupti_detach();
    CHECK(!mtprof_has_device_source());
    s = tv_start(0);
    CHECK_EQ_U64(fake->facts().subscribed, 0);
    tv_free(tv_finish(s, NULL));
}

TEST(a_recording_that_wants_no_device_leaves_cupti_alone)
{
    attach();
    mtprof_session *s = tv_start(MTPROF_WANT_OPS | MTPROF_WANT_SCOPES);
    CHECK_EQ_U64(fake->facts().subscribed, 0);
    tv_free(tv_finish(s, NULL));
}

TEST(a_child_of_a_program_that_used_the_gpu_does_without)
{
    attach();
    mtprof_session *s = tv_start(0);
    launch("kernel", now(), 1);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        if (!MT_TSAN) { /* it starts no thread in the child of a process with threads */
            mtprof_session *own = start_warned(0);
            CHECK(strstr(warned, "its child cannot") != NULL);
            launch("kernel", now(), 1);
            mtprof_session_close(own);
        }
        _exit(0);
    }
    int status = 0;
    CHECK_EQ_I64(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    trace_view *v = tv_finish(s, NULL);
    CHECK(activity(v, "kernel") != NULL);
    tv_free(v);
}

#else

TEST(trouble)
{
    MT_SKIP("libcupti of our own is for x86-64");
}

#endif
