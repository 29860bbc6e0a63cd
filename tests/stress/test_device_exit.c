/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that end while the simulated accelerator has work: whichever way they end, and whatever
 * their handlers and threads still do, they neither hang nor crash. Each program is a child that is
 * forked before anything was opened; an alarm ends one that hangs.
 */
#include "mindtorch/core/thread/thread_cache.h"
#include "support/devices/sim_device.h"

#include <mindtorch/stream.h>
#include <mtprof/mtprof.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TIMES = 2, /* each program */
    TIMES_LONG = 50,
    HANG_S = 100,
    STATUS = 42,
    THREADS = 4
};

static const mt_sim *sim;
static mt_tensor *kept;         /* what handlers use */
static mtprof_session *session; /* never stopped */

/* ---- what the programs do ---- */

/* No case is left by these: in a child only the exit status counts. */
static void need(int status)
{
    if (status != MT_OK) {
        (void)fprintf(stderr, "status %d: %s\n", status, mt_last_error()->message);
        _exit(1);
    }
}

static void launch(int count)
{
    for (int i = 0; i < count; i++) {
        mt_tensor *sum;
        if (mt_add(kept, kept, &sum) != MT_OK) {
            return; /* the process ends */
        }
        mt_tensor_release(sum);
    }
}

/* A profile that runs, work that waits, and after a hold work that will never be done. */
static void begin_work(void)
{
    const int64_t size = 1000;
    (void)setenv("MINDTORCH_NPU_SIM_DEVICES", "2", 1);
    (void)setenv("MINDTORCH_NPU_SIM_MEMORY", "64M", 1);
    need(mt_backend_load(MT_SIM_FILE));
    sim = mt_backend_extension(MT_DEVICE_TYPE_NPU, "sim");
    need(mt_full_with(&size, 1, mt_real(1), MT_DTYPE_F32, MT_NPU, &kept));
    mtprof_config config = {.struct_size = sizeof config};
    need(mtprof_session_start(&config, &session));
    launch(50);
    need(sim->hold(0, 0, 1 << 20, 0));
    launch(50);
}

static void *launch_for_ever(void *argument)
{
    atomic_uint *started = argument;
    mt_stream *stream;
    need(mt_stream_new(MT_NPU, 0, &stream));
    need(mt_stream_set_current(stream));
    atomic_fetch_add(started, 1);
    for (int i = 0;; i++) {
        launch(10);
        (void)(i % 3 == 0 ? mt_stream_synchronize(stream) : mt_device_empty_cache(MT_NPU));
    }
    return NULL;
}

static void start_threads(void)
{
    static atomic_uint started;
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        need(pthread_create(&thread, NULL, launch_for_ever, &started));
        need(pthread_detach(thread));
    }
    while (atomic_load(&started) < THREADS) {
        (void)sched_yield();
    }
}

/* ---- programs ---- */

static void simply_exit(void)
{
    begin_work();
}

static void leave_at_once(void)
{
    begin_work();
    _exit(STATUS);
}

static void exit_with_threads(void)
{
    begin_work();
    start_threads();
}

static void *exit_here(void *argument)
{
    (void)argument;
    exit(STATUS);
    return NULL;
}

static void exit_on_another_thread(void)
{
    pthread_t thread;
    begin_work();
    start_threads();
    need(pthread_create(&thread, NULL, exit_here, NULL));
    need(pthread_detach(thread));
    for (;;) {
        launch(10);
        (void)mt_device_synchronize(MT_NPU);
    }
}

/* After the device's own handler: everything is refused, freeing works. */
static void use_late(void)
{
    const int64_t size = 10;
    mt_tensor *made;
    if (mt_full_with(&size, 1, mt_real(1), MT_DTYPE_F32, MT_NPU, &made) == MT_OK) {
        mt_tensor_release(made); /* of a block that was there; its set is refused or not done */
    }
    if (mt_device_synchronize(MT_NPU) != MT_EDEVICE || mt_device_empty_cache(MT_NPU) == MT_OK) {
        _exit(2);
    }
    mt_tensor_release(kept);
}

/* Before it: as ever. */
static void use_early(void)
{
    launch(10);
    need(mt_device_synchronize(MT_NPU));
    need(mtprof_session_stop(session));
}

static void handlers_use_the_device(void)
{
    (void)atexit(use_late);
    begin_work();
    (void)atexit(use_early);
}

static void *empty_cache(void *argument)
{
    (void)argument;
    (void)mt_device_empty_cache(MT_NPU); /* holds the lock of its memory while it waits */
    return NULL;
}

static void a_handler_needs_a_lock_of_a_thread_that_waits(void)
{
    pthread_t thread;
    (void)setenv("MINDTORCH_NPU_SIM_LATENCY_NS", "1000000000", 1);
    (void)atexit(use_late);
    begin_work();
    need(pthread_create(&thread, NULL, empty_cache, NULL));
    need(pthread_detach(thread));
    while (pthread_mutex_trylock(&mt__device_memory_lock.mutex) == 0) {
        (void)pthread_mutex_unlock(&mt__device_memory_lock.mutex);
        (void)sched_yield();
    }
}

static void the_device_is_lost(void)
{
    begin_work();
    start_threads();
    need(sim->lose(0, true));
}

/* ---- running them ---- */

static void check_program(void (*program)(void))
{
    int times = mt_test_long() ? TIMES_LONG : TIMES;
    for (int i = 0; i < times; i++) {
        (void)fflush(NULL);
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            (void)alarm(HANG_S);
            program();
            exit(STATUS);
        }
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK_EQ_I64(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), STATUS);
    }
}

#define PROGRAM(name)        \
    TEST(ends_##name)        \
    {                        \
        check_program(name); \
    }

PROGRAM(simply_exit)
PROGRAM(leave_at_once)
PROGRAM(exit_with_threads)
PROGRAM(exit_on_another_thread)
PROGRAM(handlers_use_the_device)
PROGRAM(a_handler_needs_a_lock_of_a_thread_that_waits)
PROGRAM(the_device_is_lost)
