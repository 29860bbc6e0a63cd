/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything at once on two simulated devices: threads launch, change streams, record events that
 * they share, copy through pinned memory, allocate, free and empty caches while profiles begin and
 * end, and while the process forks. At the end every sum is right. MT_SEED repeats a run's choices;
 * MT_LONG=1 makes it long.
 */
#include "base/compiler.h"
#include "support/devices/sim_device.h"

#include <mindtorch/stream.h>
#include <mtprof/mtprof.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THREADS = 16,
    DEVICES = 2,
    STREAMS = 4, /* of a device, shared by all threads */
    EVENTS = 6,  /* of a device, shared by all threads */
    COUNT = 64,  /* elements of a sum */
    ROUNDS = 250,
    ROUNDS_LONG = 3000
};

static mt_stream *streams[DEVICES][STREAMS];
static mt_event *events[DEVICES][EVENTS];
static _Atomic uint64_t rounds_done;
static _Atomic uint32_t threads_left;

typedef struct worker {
    pthread_t thread;
    uint64_t random;
    int rounds;
    mt_tensor *sums[DEVICES]; /* each add is one more in every element */
    mt_tensor *one[DEVICES];
    uint32_t adds[DEVICES];
    mt_stream *stream[DEVICES]; /* where the thread works now */
} worker;

static uint32_t draw(worker *w, uint32_t below)
{
    return (uint32_t)(mt_test_random(&w->random) % below);
}

/* ---- what a thread does in a round ---- */

/* A thread of its own cannot leave the case: it ends itself. */
static void need(int status)
{
    CHECK_OK(status);
    if (status != MT_OK) {
        atomic_fetch_sub(&threads_left, 1);
        pthread_exit(NULL);
    }
}

static void add_one(worker *w, uint32_t d)
{
    CHECK_OK(mt_add_(w->sums[d], w->one[d]));
    w->adds[d]++;
}

static void change_stream(worker *w, uint32_t d)
{
    mt_stream *next = streams[d][draw(w, STREAMS)];
    CHECK_OK(mt_stream_wait_stream(next, w->stream[d]));
    CHECK_OK(mt_stream_set_current(next));
    CHECK_OK(mt_tensor_record_stream(w->sums[d], next));
    CHECK_OK(mt_tensor_record_stream(w->one[d], next));
    w->stream[d] = next;
}

static void use_events(worker *w, uint32_t d)
{
    mt_event *event = events[d][draw(w, EVENTS)];
    bool done;
    CHECK_OK(mt_event_record(event, w->stream[d]));
    CHECK_OK(mt_stream_wait_event(streams[1 - d][draw(w, STREAMS)], event));
    CHECK_OK(mt_event_query(event, &done));
    if (draw(w, 4) == 0) {
        CHECK_OK(mt_event_synchronize(event));
    }
    mt_event *own;
    need(mt_event_new(0, &own));
    CHECK_OK(mt_event_record(own, w->stream[d]));
    CHECK_OK(mt_stream_wait_event(w->stream[1 - d], own));
    mt_event_free(own); /* while it is waited for */
}

/* Memory that is given back while another stream still reads it. */
static void use_memory(worker *w, uint32_t d)
{
    const int64_t size = 1 + (int64_t)draw(w, 40000);
    mt_tensor *made;
    need(mt_full_with(&size, 1, mt_real(3), MT_DTYPE_F32, MT_NPU + (mt_device)d, &made));
    mt_stream *other = streams[d][draw(w, STREAMS)];
    CHECK_OK(mt_stream_wait_stream(other, w->stream[d]));
    CHECK_OK(mt_stream_set_current(other));
    mt_tensor *sum;
    need(mt_add(made, made, &sum));
    CHECK_OK(mt_tensor_record_stream(made, other));
    mt_tensor_release(made);
    mt_tensor_release(sum);
    CHECK_OK(mt_stream_set_current(w->stream[d]));
}

static void use_pinned(worker *w, uint32_t d)
{
    const int64_t size = 1000;
    mt_tensor *plain;
    mt_tensor *pinned;
    mt_tensor *on_npu;
    need(mt_full_with(&size, 1, mt_real(5), MT_DTYPE_F32, MT_CPU, &plain));
    need(mt_tensor_pin(plain, &pinned));
    need(mt_full_with(&size, 1, mt_real(0), MT_DTYPE_F32, MT_NPU + (mt_device)d, &on_npu));
    CHECK_OK(mt_copy_(on_npu, pinned, true));
    mt_tensor_release(pinned); /* while it is being copied */
    if (draw(w, 3) == 0) {
        float values[1000];
        CHECK_OK(mt_tensor_read(on_npu, values, sizeof values));
        CHECK(values[0] == 5 && values[999] == 5);
    }
    mt_tensor_release(on_npu);
    mt_tensor_release(plain);
}

static void wait_somehow(worker *w, uint32_t d)
{
    bool done;
    switch (draw(w, 4)) {
    case 0: CHECK_OK(mt_device_synchronize(MT_NPU + (mt_device)d)); break;
    case 1: CHECK_OK(mt_stream_synchronize(w->stream[d])); break;
    case 2: CHECK_OK(mt_device_empty_cache(MT_NPU + (mt_device)d)); break;
    default: CHECK_OK(mt_stream_query(w->stream[d], &done)); break;
    }
}

static void *run(void *argument)
{
    worker *w = argument;
    for (uint32_t d = 0; d < DEVICES; d++) {
        w->stream[d] = streams[d][draw(w, STREAMS)];
        need(mt_stream_set_current(w->stream[d]));
        const int64_t size = COUNT;
        mt_device device = MT_NPU + (mt_device)d;
        need(mt_full_with(&size, 1, mt_real(0), MT_DTYPE_F32, device, &w->sums[d]));
        need(mt_full_with(&size, 1, mt_real(1), MT_DTYPE_F32, device, &w->one[d]));
    }
    for (int i = 0; i < w->rounds; i++) {
        uint32_t d = draw(w, DEVICES);
        switch (draw(w, 12)) {
        case 0: change_stream(w, d); break;
        case 1: use_events(w, d); break;
        case 2: use_memory(w, d); break;
        case 3: use_pinned(w, d); break;
        case 4: wait_somehow(w, d); break;
        default: add_one(w, d); break;
        }
        atomic_fetch_add(&rounds_done, 1);
    }
    for (uint32_t d = 0; d < DEVICES; d++) {
        float values[COUNT];
        CHECK_OK(mt_tensor_read(w->sums[d], values, sizeof values));
        for (int i = 0; i < COUNT; i++) {
            CHECK(values[i] == (float)w->adds[d]);
        }
        mt_tensor_release(w->sums[d]);
        mt_tensor_release(w->one[d]);
    }
    atomic_fetch_sub(&threads_left, 1);
    return NULL; /* with a current stream of its own */
}

/* ---- the others ---- */

/* Until so many rounds were done, or no thread is left. */
static void let_them_work(uint64_t rounds)
{
    uint64_t until = atomic_load(&rounds_done) + rounds;
    while (atomic_load(&rounds_done) < until && atomic_load(&threads_left) != 0) {
        (void)sched_yield();
    }
}

static void record_windows(void)
{
    uint32_t windows = 0;
    while (atomic_load(&threads_left) != 0) {
        mtprof_config config = {.struct_size = sizeof config};
        mtprof_health health = {.struct_size = sizeof health};
        mtprof_session *session;
        REQUIRE_OK(mtprof_session_start(&config, &session));
        let_them_work(200);
        REQUIRE_OK(mtprof_session_stop(session));
        CHECK_OK(mtprof_session_get_health(session, &health));
        /* A launch that had begun when the window ended, of each thread. */
        CHECK(health.unmatched <= THREADS);
        CHECK_OK(mtprof_session_close(session));
        let_them_work(20);
        windows++;
    }
    CHECK(windows > 0);
}

/* The child frees what it has, is refused more, and can use the host. */
static bool works_in_child(mt_tensor *tensor)
{
    const int64_t size = 16;
    mt_tensor *made;
    bool right = mt_full_with(&size, 1, mt_real(0), MT_DTYPE_F32, MT_NPU, &made) == MT_EDEVICE &&
                 mt_device_synchronize(MT_NPU) == MT_EDEVICE &&
                 mt_device_empty_cache(MT_NPU) == MT_EDEVICE;
    mt_stream *stream;
    (void)mt_stream_new(MT_NPU, 0, &stream); /* one that was made, or MT_EDEVICE */
    mt_tensor_release(tensor);
    right = right && mt_full_with(&size, 1, mt_real(0), MT_DTYPE_F32, MT_CPU, &made) == MT_OK;
    mt_tensor_release(made);
    return right;
}

/* A file that the child opens stays open in its own child, whatever sim closes there. */
static bool keeps_files_in_grandchild(void)
{
    int file = dup(STDOUT_FILENO);
    pid_t child = fork();
    if (child == 0) {
        _exit(fcntl(file, F_GETFD) < 0);
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void fork_once(mt_tensor *tensor)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        _exit(works_in_child(tensor) && keeps_files_in_grandchild() ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_EQ_I64(status, 0);
}

static void begin(worker workers[THREADS])
{
    (void)sim_open("2", "512M");
    for (uint32_t d = 0; d < DEVICES; d++) {
        for (int i = 0; i < STREAMS; i++) {
            REQUIRE_OK(mt_stream_new(MT_NPU + (mt_device)d, i % 2 == 0 ? 0 : -1, &streams[d][i]));
        }
        for (int i = 0; i < EVENTS; i++) {
            REQUIRE_OK(mt_event_new(0, &events[d][i]));
        }
    }
    atomic_store(&threads_left, THREADS);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] =
            (worker){.random = mt_test_seed() + i, .rounds = mt_test_long() ? ROUNDS_LONG : ROUNDS};
        REQUIRE(pthread_create(&workers[i].thread, NULL, run, &workers[i]) == 0);
    }
}

static void end(worker workers[THREADS])
{
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(workers[i].thread, NULL) == 0);
    }
    for (uint32_t d = 0; d < DEVICES; d++) {
        for (int i = 0; i < EVENTS; i++) {
            mt_event_free(events[d][i]);
        }
        mt_memory_stats stats = {.struct_size = sizeof stats};
        CHECK_OK(mt_device_empty_cache(MT_NPU + (mt_device)d));
        CHECK_OK(mt_device_get_memory_stats(MT_NPU + (mt_device)d, &stats));
        CHECK_EQ_U64(stats.allocated_bytes, 0);
        CHECK_EQ_U64(stats.reserved_bytes, 0);
    }
}

TEST(threads_on_two_devices_while_windows_open_and_close)
{
    static worker workers[THREADS];
    begin(workers);
    record_windows();
    end(workers);
}

TEST(forks_while_threads_work_and_a_profile_records)
{
#ifdef __SANITIZE_ADDRESS__
    MT_SKIP("AddressSanitizer's heap is locked in the child when another thread was in it");
#endif
    static worker workers[THREADS];
    begin(workers);
    mt_tensor *tensor = sim_ones(MT_NPU, 100);
    CHECK_OK(mt_tensor_record_stream(tensor, streams[0][0]));
    mtprof_config config = {.struct_size = sizeof config};
    mtprof_session *session;
    REQUIRE_OK(mtprof_session_start(&config, &session));
    while (atomic_load(&threads_left) != 0) {
        fork_once(tensor);
        let_them_work(100);
    }
    CHECK_OK(mtprof_session_stop(session));
    CHECK_OK(mtprof_session_close(session));
    mt_tensor_release(tensor);
    end(workers);
}

/* ---- a thread that is cancelled ---- */

static pthread_barrier_t together;
static atomic_bool went_on;

static void *wait_cancelled(void *argument)
{
    int before;
    mt_tensor *tensor = argument;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    (void)pthread_barrier_wait(&together);
    (void)pthread_barrier_wait(&together);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
    mt_tensor_release(tensor);
    CHECK_OK(mt_device_empty_cache(MT_NPU)); /* with locks held it waits, and gives pages back */
    atomic_store(&went_on, true);
    pthread_testcancel();
    return NULL;
}

TEST(a_cancelled_thread_leaves_no_lock_behind)
{
    pthread_t thread;
    void *result = NULL;
    REQUIRE(setenv("MINDTORCH_NPU_SIM_LATENCY_NS", "20000000", 1) == 0);
    (void)sim_open("1", "64M");
    mt_tensor *tensor = sim_ones(MT_NPU, 1 << 20);
    REQUIRE(pthread_barrier_init(&together, NULL, 2) == 0);
    REQUIRE(pthread_create(&thread, NULL, wait_cancelled, tensor) == 0);
    (void)pthread_barrier_wait(&together);
    for (int i = 0; i < 5; i++) {
        mt_tensor_release(sim_ones(MT_NPU, 16)); /* what it waits for */
    }
    REQUIRE(pthread_cancel(thread) == 0);
    (void)pthread_barrier_wait(&together);
    REQUIRE(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
    CHECK(atomic_load(&went_on));
    CHECK_OK(mt_device_synchronize(MT_NPU));
    mt_tensor_release(sim_ones(MT_NPU, 1 << 20));
}

/* ---- opening ---- */

static void *open_device(void *argument)
{
    bool loads = argument != NULL;
    (void)pthread_barrier_wait(&together);
    if (loads) {
        int status = mt_backend_load(MT_SIM_FILE); /* one of all is the first */
        CHECK(status == MT_OK || status == MT_ERUNTIME);
    }
    CHECK_EQ_U64(mt_device_count(MT_DEVICE_TYPE_NPU), DEVICES);
    return NULL;
}

TEST(threads_open_the_device_at_once)
{
    pthread_t threads[THREADS];
    REQUIRE(setenv("MINDTORCH_NPU", MT_SIM_FILE, 1) == 0);
    REQUIRE(setenv("MINDTORCH_NPU_SIM_DEVICES", "2", 1) == 0);
    REQUIRE(setenv("MINDTORCH_NPU_SIM_MEMORY", "64M", 1) == 0);
    REQUIRE(pthread_barrier_init(&together, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *loads = i % 2 == 0 ? &together : NULL;
        REQUIRE(pthread_create(&threads[i], NULL, open_device, loads) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    mt_tensor_release(sim_ones(MT_NPU + 1, 10));
}
