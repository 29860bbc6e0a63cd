/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes wrong on the simulated accelerator (backend.h B5, B6): kernels that fail, a device that
 * is lost, a process that forks or ends.
 */
#include "harness/mt_test.h"
#include "support/devices/sim_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char range_tail[] =
    " (kernel index_select_f32 on npu:0, reported when the device was waited for; "
    "MINDTORCH_NPU_LAUNCH_BLOCKING=1 reports it at the call)";

static float *vector;
static float *index_place;

static void open_with_memory(void)
{
    open_npu();
    vector = npu_take(0, 4096);
    index_place = npu_take(0, 4096);
}

static int bad_select(mt_backend_stream *stream, uint64_t correlation)
{
    return npu_select(stream, vector + 16, vector, index_place, 5, correlation);
}

/* What follows the kernel's own message in the last failure. */
static bool ends_in(const char *text)
{
    const char *message = mt_last_error()->message;
    size_t length = strlen(message);
    bool ends = length >= strlen(text) && strcmp(message + length - strlen(text), text) == 0;
    if (!ends) {
        FAIL("%s", message);
    }
    return ends;
}

/* ---- kernels that fail ---- */

TEST(a_failure_is_reported_once_by_who_waits)
{
    open_with_memory();
    REQUIRE_OK(npu_fill(NULL, vector, 5, 1.0F, 0));
    REQUIRE_OK(bad_select(NULL, 0));
    REQUIRE_OK(npu_fill(NULL, vector, 1, 7.0F, 0)); /* later work is done */
    CHECK_EQ_I64(npu->synchronize(npu->context, 0), MT_EINDEX);
    CHECK(ends_in(range_tail));
    CHECK_OK(npu->synchronize(npu->context, 0));
    CHECK_EQ_F64((double)npu_read(NULL, vector), 7.0);
}

TEST(every_function_that_waits_reports)
{
    float host = 0.0F;
    open_with_memory();
    mt_backend_event *event = NULL;
    REQUIRE_OK(npu->event_new(npu->context, 0, 0, &event));
    REQUIRE_OK(bad_select(NULL, 0));
    CHECK_EQ_I64(npu->stream_synchronize(npu->context, 0, NULL), MT_EINDEX);
    REQUIRE_OK(bad_select(NULL, 0));
    REQUIRE_OK(npu->event_record(npu->context, 0, NULL, event));
    CHECK_EQ_I64(npu->event_synchronize(npu->context, event), MT_EINDEX);
    REQUIRE_OK(bad_select(NULL, 0));
    CHECK_EQ_I64(npu_copy(NULL, MT_COPY_TO_HOST, &host, vector, 4, 0), MT_EINDEX);
    CHECK_OK(npu->synchronize(npu->context, 0));
    /* Those that do not wait leave it to the next one; so does the end of a recording. */
    REQUIRE_OK(bad_select(NULL, 9));
    CHECK_OK(npu->activity_flush(npu->context, UINT64_MAX));
    bool done = false;
    CHECK_OK(npu->stream_query(npu->context, 0, NULL, &done));
    CHECK(done);
    CHECK_EQ_I64(npu->synchronize(npu->context, 0), MT_EINDEX);
    npu->event_free(npu->context, event);
}

TEST(later_failures_are_counted)
{
    open_with_memory();
    for (int i = 0; i < 4; i++) {
        REQUIRE_OK(bad_select(NULL, 0));
    }
    CHECK_EQ_I64(npu->synchronize(npu->context, 0), MT_EINDEX);
    CHECK(ends_in("reports it at the call, 3 later failures)"));
    REQUIRE_OK(bad_select(NULL, 0));
    REQUIRE_OK(bad_select(NULL, 0));
    CHECK_EQ_I64(npu->synchronize(npu->context, 0), MT_EINDEX);
    CHECK(ends_in("reports it at the call, 1 later failure)"));
    CHECK_OK(npu->synchronize(npu->context, 0));
}

TEST(a_large_copy_waits_and_keeps_the_failure)
{
    char *host = calloc(2, 1 << 20);
    REQUIRE(host != NULL);
    open_with_memory();
    void *large = npu_take(0, 2 << 20);
    REQUIRE_OK(bad_select(NULL, 0));
    CHECK_OK(npu_copy(NULL, MT_COPY_TO_DEVICE, large, host, 2 << 20, 0));
    CHECK_EQ_I64(npu->synchronize(npu->context, 0), MT_EINDEX);
    free(host);
}

TEST(blocking_launches_report_their_own)
{
    set_npu("LAUNCH_BLOCKING", "1");
    open_with_memory();
    CHECK_EQ_I64(bad_select(NULL, 0), MT_EINDEX);
    CHECK(strstr(mt_last_error()->message, "reported when") == NULL);
    CHECK(strlen(mt_last_error()->message) > 0);
    CHECK_OK(npu->synchronize(npu->context, 0));
    CHECK_OK(npu_fill(NULL, vector, 1, 1.0F, 0));
}

TEST(ordered_failures)
{
    float host = 0.0F;
    open_with_memory();
    REQUIRE_OK(npu_controls->fail(0, 2, MT_ERUNTIME, "the moon is full"));
    REQUIRE_OK(npu_fill(NULL, vector, 2, 1.0F, 0));
    REQUIRE_OK(npu_fill(NULL, vector, 2, 2.0F, 0));
    REQUIRE_OK(npu->synchronize(npu->context, 0));
    REQUIRE_OK(npu_fill(NULL, vector, 2, 3.0F, 0)); /* this one; it is not done */
    REQUIRE_OK(npu_fill(NULL, vector + 1, 1, 4.0F, 0));
    CHECK_EQ_I64(npu->synchronize(npu->context, 0), MT_ERUNTIME);
    CHECK_EQ_STR(mt_last_error()->message,
                 "the moon is full (kernel fill_f32 on npu:0, reported when the device was waited "
                 "for; MINDTORCH_NPU_LAUNCH_BLOCKING=1 reports it at the call)");
    CHECK_EQ_F64((double)npu_read(NULL, vector), 2.0);
    CHECK_EQ_F64((double)npu_read(NULL, vector + 1), 4.0);
    /* Copies and sets too; a new order replaces the last. */
    REQUIRE_OK(npu_controls->fail(0, 0, MT_EIO, "never"));
    REQUIRE_OK(npu_controls->fail(0, 0, MT_ENOMEM, "no cable"));
    CHECK_EQ_I64(npu_copy(NULL, MT_COPY_TO_HOST, &host, vector, 4, 0), MT_ENOMEM);
    CHECK(strstr(mt_last_error()->message, "no cable (Memcpy DtoH (Device -> Pageable) on npu:0") !=
          NULL);
    REQUIRE_OK(npu_controls->fail(0, 1, MT_EIO, "nobody launches"));
}

/* ---- a lost device ---- */

TEST(a_lost_device_fails_every_call)
{
    static const char lost[] = "npu:1: the device is lost";
    set_npu("SIM_DEVICES", "2");
    open_npu();
    void *memory = npu_take(1, 4096);
    mt_backend_stream *stream = NULL;
    mt_backend_event *event = NULL;
    REQUIRE_OK(npu->stream_new(npu->context, 1, 1, 0, &stream));
    REQUIRE_OK(npu->event_new(npu->context, 1, MT_EVENT_TIMING, &event));
    REQUIRE_OK(npu->event_record(npu->context, 1, stream, event));
    REQUIRE_OK(npu_controls->lose(1, true));
    bool done;
    double ns;
    void *more;
    mt_backend_stream *another;
    mt_backend_event *other_event;
    mt_device_info info = {.struct_size = sizeof info};
    mt_set_call set = {.struct_size = sizeof set, .device = 1, .to = memory, .bytes = 8};
    CHECK_EQ_I64(npu->synchronize(npu->context, 1), MT_EDEVICE);
    CHECK_EQ_STR(mt_last_error()->message, lost);
    CHECK_EQ_I64(npu->device_info(npu->context, 1, &info), MT_EDEVICE);
    CHECK_EQ_I64(npu->allocate(npu->context, 1, 8, &more), MT_EDEVICE);
    CHECK_EQ_I64(npu->set(npu->context, NULL, &set), MT_EDEVICE);
    CHECK_EQ_I64(npu->set(npu->context, stream, &set), MT_EDEVICE);
    CHECK_EQ_I64(npu_fill(stream, memory, 1, 1.0F, 0), MT_EDEVICE);
    CHECK_EQ_I64(npu_copy(stream, MT_COPY_WITHIN, memory, memory, 1, 0), MT_EDEVICE);
    CHECK_EQ_I64(npu->stream_new(npu->context, 1, 2, 0, &another), MT_EDEVICE);
    CHECK_EQ_I64(npu->stream_query(npu->context, 1, stream, &done), MT_EDEVICE);
    CHECK_EQ_I64(npu->stream_synchronize(npu->context, 1, stream), MT_EDEVICE);
    CHECK_EQ_I64(npu->event_new(npu->context, 1, 0, &other_event), MT_EDEVICE);
    CHECK_EQ_I64(npu->event_record(npu->context, 1, stream, event), MT_EDEVICE);
    CHECK_EQ_I64(npu->event_query(npu->context, event, &done), MT_EDEVICE);
    CHECK_EQ_I64(npu->event_synchronize(npu->context, event), MT_EDEVICE);
    CHECK_EQ_I64(npu->event_elapsed(npu->context, event, event, &ns), MT_EDEVICE);
    CHECK_EQ_I64(npu->stream_wait(npu->context, 1, stream, event), MT_EDEVICE);
    CHECK_EQ_STR(mt_last_error()->message, lost);
    CHECK_OK(npu->synchronize(npu->context, 0)); /* the other one is not */
    npu->event_free(npu->context, event);
    npu->release(npu->context, 1, memory, 4096);
    REQUIRE_OK(npu_controls->lose(1, false));
    REQUIRE_OK(npu_controls->lose(1, false));
    CHECK_OK(npu->synchronize(npu->context, 1));
    CHECK(npu_take(1, 4096) == memory);
    npu->stream_free(npu->context, stream);
}

typedef struct records {
    pthread_mutex_t lock;
    int count;
    uint64_t sum;
    bool instant; /* start == end in all of them */
} records;

static void note_record(void *context, const mt_activity *activity)
{
    records *all = context;
    (void)pthread_mutex_lock(&all->lock);
    all->count++;
    all->sum += activity->correlation;
    all->instant = all->instant && activity->start == activity->end;
    (void)pthread_mutex_unlock(&all->lock);
}

static void *wait_for_device(void *status)
{
    *(int *)status = npu->synchronize(npu->context, 0);
    return NULL;
}

/* Waiting threads wake with the error; queued work is reported, so every launch has its record. */
TEST(losing_drops_what_waits)
{
    static records all = {.lock = PTHREAD_MUTEX_INITIALIZER, .instant = true};
    static mt_activity_sink sink = {
        .struct_size = sizeof sink, .context = &all, .push = note_record};
    open_with_memory();
    mt_backend_event *event = NULL;
    mt_backend_stream *other = NULL;
    REQUIRE_OK(npu->event_new(npu->context, 0, 0, &event));
    REQUIRE_OK(npu->stream_new(npu->context, 0, 1, 0, &other));
    REQUIRE_OK(npu->activity_start(npu->context, &sink));
    REQUIRE_OK(npu_fill(NULL, vector, 1, 1.0F, 0));
    REQUIRE_OK(npu->synchronize(npu->context, 0));
    /* One stream waits for the other, which is held, and a thread waits for both. */
    REQUIRE_OK(npu_controls->hold(0, 0, 100, 0));
    for (uint64_t i = 1; i <= 10; i++) {
        REQUIRE_OK(npu_fill(NULL, vector, 1, 2.0F, i));
    }
    REQUIRE_OK(npu->event_record(npu->context, 0, NULL, event));
    REQUIRE_OK(npu->stream_wait(npu->context, 0, other, event));
    REQUIRE_OK(npu_fill(other, vector + 8, 1, 2.0F, 11));
    REQUIRE_OK(npu_controls->lose(0, true));
    CHECK_EQ_I64(npu->synchronize(npu->context, 0), MT_EDEVICE);
    CHECK_OK(npu->activity_flush(npu->context, UINT64_MAX));
    (void)pthread_mutex_lock(&all.lock);
    CHECK_EQ_I64(all.count, 11);
    CHECK_EQ_U64(all.sum, 66);
    CHECK(all.instant);
    (void)pthread_mutex_unlock(&all.lock);
    REQUIRE_OK(npu_controls->lose(0, false));
    CHECK_EQ_F64((double)npu_read(NULL, vector), 1.0); /* memory keeps its bytes */
    npu->event_free(npu->context, event);
}

/* One device is lost before the recording starts: the other one's work is reported. */
TEST(a_lost_device_does_not_stop_records)
{
    static records all = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static mt_activity_sink sink = {
        .struct_size = sizeof sink, .context = &all, .push = note_record};
    set_npu("SIM_DEVICES", "2");
    open_npu();
    void *pinned = NULL;
    float *far_away = npu_take(1, 4096);
    REQUIRE_OK(npu_controls->lose(0, true));
    REQUIRE_OK(npu->activity_start(npu->context, &sink));
    mt_set_call set = {
        .struct_size = sizeof set, .device = 1, .to = far_away, .bytes = 8, .correlation = 5};
    REQUIRE_OK(npu->set(npu->context, NULL, &set));
    REQUIRE_OK(npu->activity_flush(npu->context, UINT64_MAX));
    CHECK_EQ_U64(all.sum, 5);
    REQUIRE_OK(npu->host_allocate(npu->context, 8, &pinned));
    npu->host_release(npu->context, pinned, 8);
}

/* The device is lost under a thread that waits: with a latency, work takes its time. */
TEST(a_wait_over_a_loss_fails)
{
    set_npu("SIM_LATENCY_NS", "1000000000");
    open_with_memory();
    int status = MT_OK;
    pthread_t thread;
    REQUIRE_OK(npu_fill(NULL, vector, 1, 1.0F, 0));
    REQUIRE_EQ_I64(pthread_create(&thread, NULL, wait_for_device, &status), 0);
    REQUIRE_OK(npu_controls->lose(0, true)); /* before or while the thread waits */
    CHECK_EQ_I64(pthread_join(thread, NULL), 0);
    CHECK_EQ_I64(status, MT_EDEVICE);
    REQUIRE_OK(npu_controls->lose(0, false));
    CHECK_OK(npu->synchronize(npu->context, 0));
}

/* ---- processes ---- */

static int wait_child(pid_t child)
{
    int status = -1;
    CHECK_EQ_I64(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(a_forked_child_may_free_and_nothing_else)
{
    open_with_memory();
    mt_backend_stream *stream = NULL;
    mt_backend_event *event = NULL;
    void *pinned = NULL;
    REQUIRE_OK(npu->stream_new(npu->context, 0, 1, 0, &stream));
    REQUIRE_OK(npu->event_new(npu->context, 0, 0, &event));
    REQUIRE_OK(npu->host_allocate(npu->context, 100, &pinned));
    REQUIRE_OK(npu_fill(stream, vector, 1, 3.0F, 0));
    REQUIRE_OK(npu->event_record(npu->context, 0, stream, event));
    pid_t child = fork();
    if (child == 0) {
        bool done;
        void *more;
        mt_device_info info = {.struct_size = sizeof info};
        CHECK_EQ_I64(npu->synchronize(npu->context, 0), MT_EDEVICE);
        CHECK_EQ_STR(mt_last_error()->message,
                     "npu: a forked process cannot use the device; start it "
                     "anew (multiprocessing 'spawn')");
        CHECK_EQ_I64(npu->device_info(npu->context, 0, &info), MT_EDEVICE);
        CHECK_EQ_I64(npu->allocate(npu->context, 0, 8, &more), MT_EDEVICE);
        CHECK_EQ_I64(npu->host_allocate(npu->context, 8, &more), MT_EDEVICE);
        CHECK_EQ_I64(npu_fill(stream, vector, 1, 1.0F, 0), MT_EDEVICE);
        CHECK_EQ_I64(npu->stream_query(npu->context, 0, stream, &done), MT_EDEVICE);
        CHECK_EQ_I64(npu->event_synchronize(npu->context, event), MT_EDEVICE);
        CHECK_EQ_I64(npu->activity_flush(npu->context, 1000), MT_EDEVICE);
        CHECK_EQ_I64(npu_controls->hold(0, 0, 1, 0), MT_EDEVICE);
        CHECK_EQ_I64(npu_controls->lose(0, true), MT_EDEVICE);
        npu->event_free(npu->context, event);
        npu->stream_free(npu->context, stream);
        npu->release(npu->context, 0, vector, 4096);
        npu->host_release(npu->context, pinned, 100);
        _exit(0);
    }
    CHECK_EQ_I64(wait_child(child), 0);
    /* The parent's memory is as it was. */
    CHECK_EQ_F64((double)npu_read(stream, vector), 3.0);
    npu->event_free(npu->context, event);
    npu->host_release(npu->context, pinned, 100);
}

static _Atomic bool stop_launching;

static void *launch_on(void *unused)
{
    (void)unused;
    while (!stop_launching) {
        mt_backend_event *event = NULL;
        CHECK_OK(npu->event_new(npu->context, 0, 0, &event));
        CHECK_OK(npu_fill(NULL, vector, 1, 1.0F, 0));
        CHECK_OK(npu->event_record(npu->context, 0, NULL, event));
        npu->event_free(npu->context, event);
        CHECK_OK(npu->synchronize(npu->context, 0));
    }
    return NULL;
}

/* Locks may be held by threads that the child does not have: it takes none. */
TEST(fork_while_others_launch)
{
    pthread_t threads[2];
    open_with_memory();
    for (int i = 0; i < 2; i++) {
        REQUIRE_EQ_I64(pthread_create(&threads[i], NULL, launch_on, NULL), 0);
    }
    for (int i = 0; i < 20; i++) {
        mt_backend_event *event = NULL;
        REQUIRE_OK(npu->event_new(npu->context, 0, 0, &event));
        REQUIRE_OK(npu->event_record(npu->context, 0, NULL, event));
        pid_t child = fork();
        if (child == 0) {
            npu->event_free(npu->context, event);
            npu->release(npu->context, 0, vector, 4096);
            _exit(npu->synchronize(npu->context, 0) == MT_EDEVICE ? 0 : 1);
        }
        CHECK_EQ_I64(wait_child(child), 0);
        npu->event_free(npu->context, event);
    }
    stop_launching = true;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ_I64(pthread_join(threads[i], NULL), 0);
    }
}

/* Opens it in a process of its own, which then ends in the given way. */
static int run_and_exit(void (*prepare)(void))
{
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(60);
        prepare();
        exit(0);
    }
    return wait_child(child);
}

static void leave_held_work(void)
{
    open_with_memory();
    (void)npu_controls->hold(0, 0, 1000, 0);
    for (int i = 0; i < 500; i++) {
        (void)npu_fill(NULL, vector, 1, 1.0F, 0);
    }
}

static void leave_running_work(void)
{
    open_with_memory();
    float *large = npu_take(0, 32 << 20);
    for (int i = 0; i < 200; i++) {
        (void)npu_fill(NULL, large, 8 << 20, (float)i, 0);
    }
}

static void *launch_for_ever(void *unused)
{
    (void)unused;
    for (;;) {
        (void)npu_fill(NULL, vector, 1, 1.0F, 0);
    }
    return NULL;
}

static void leave_launching_thread(void)
{
    pthread_t thread;
    open_with_memory();
    (void)npu_fill(NULL, vector, 1, 1.0F, 0);
    if (pthread_create(&thread, NULL, launch_for_ever, NULL) == 0) {
        (void)pthread_detach(thread);
    }
    (void)npu->stream_synchronize(npu->context, 0, NULL);
}

TEST(a_process_ends_with_work_that_waits)
{
    CHECK_EQ_I64(run_and_exit(leave_held_work), 0);
    CHECK_EQ_I64(run_and_exit(leave_running_work), 0);
    CHECK_EQ_I64(run_and_exit(leave_launching_thread), 0);
}

static void use_late(void)
{
    if (npu->synchronize(npu->context, 0) != MT_EDEVICE ||
        strcmp(mt_last_error()->message, "npu:0: the process ends") != 0 ||
        npu->activity_flush(npu->context, UINT64_MAX) != MT_EDEVICE) {
        _exit(3);
    }
    npu->release(npu->context, 0, vector, 4096);
}

static void leave_a_late_user(void)
{
    (void)atexit(use_late); /* runs after the device's own handler */
    leave_held_work();
}

TEST(handlers_of_exit_find_an_ended_device)
{
    CHECK_EQ_I64(run_and_exit(leave_a_late_user), 0);
}

/* No thread can be had: an error that says so, and it works when there is one. */
TEST(no_thread_for_a_stream)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    MT_SKIP("sanitizers do not survive a thread that is refused");
#endif
    open_with_memory();
    struct rlimit before;
    REQUIRE_EQ_I64(getrlimit(RLIMIT_AS, &before), 0);
    struct rlimit tight = before;
    tight.rlim_cur = 1 << 20; /* no addresses for a stack */
    REQUIRE_EQ_I64(setrlimit(RLIMIT_AS, &tight), 0);
    int status = npu_fill(NULL, vector, 1, 1.0F, 0);
    bool spoken = strstr(mt_last_error()->message, "stream 0") != NULL;
    REQUIRE_EQ_I64(setrlimit(RLIMIT_AS, &before), 0);
    CHECK(status == MT_ERUNTIME || status == MT_ENOMEM);
    CHECK(spoken);
    CHECK_OK(npu_fill(NULL, vector, 1, 4.0F, 0));
    CHECK_EQ_F64((double)npu_read(NULL, vector), 4.0);
}
