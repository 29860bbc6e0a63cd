/* SPDX-License-Identifier: Apache-2.0
 *
 * Conformance: many threads at once, and a process that forks (B6).
 */
#include "conformance/conform.h"

#include <mindtorch/status.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THREADS = 4,
    STREAMS = 3,
    ADDS = 200,
    NUMBERS = 64,
    MOST_REPORTED = THREADS * STREAMS * ADDS
};

static const size_t block_bytes = NUMBERS * sizeof(int64_t);

/* ---- threads ---- */

static _Atomic uint32_t
    times_reported[MOST_REPORTED + 1]; /* by correlation; read when all is done */

typedef struct worker {
    cf_stream streams[STREAMS];
    void *blocks[STREAMS];
    void *shared; /* all threads add to it, on the default stream; NULL: there are no streams */
    uint64_t correlation;
    uint64_t reported; /* of those, how many have a correlation */
    int status;
    char message[496];
} worker;

static void count_report(void *context, const mt_activity *activity)
{
    (void)context;
    if (activity->correlation <= MOST_REPORTED) {
        atomic_fetch_add(&times_reported[activity->correlation], 1);
    }
}

static void ignore_lost(void *context, uint64_t count)
{
    (void)context;
    (void)count;
}

static const mt_activity_sink sink = {
    .struct_size = sizeof sink, .push = count_report, .lost = ignore_lost};

static void *work(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < ADDS && w->status == MT_OK; i++) {
        for (size_t s = 0; s < STREAMS && w->status == MT_OK; s++) {
            uint64_t correlation = w->reported > 0 ? w->correlation++ : 0;
            w->status = cf_add(w->streams[s], w->blocks[s], NUMBERS, 1, correlation);
        }
        if (w->shared != NULL && w->status == MT_OK) {
            w->status = cf_add((cf_stream){.device = 0}, w->shared, NUMBERS, 1, 0);
        }
        if (i % 50 == 0 && w->status == MT_OK) {
            w->status = cf.backend->synchronize(cf.backend->context, 0);
        }
    }
    if (w->status != MT_OK) {
        (void)snprintf(w->message, sizeof w->message, "%s", mt_last_error()->message);
    }
    return NULL;
}

static void expect(const void *block, int64_t want, const char *what)
{
    int64_t numbers[NUMBERS];
    cf_read(0, numbers, block, sizeof numbers);
    CF_CHECK(numbers[0] == want && numbers[NUMBERS - 1] == want, "%s: %lld, expected %lld", what,
             (long long)numbers[0], (long long)want);
}

static void *zeros(void)
{
    void *block = cf_take(0, block_bytes);
    CF_OK(cf_set(cf_default_stream(0), block, block_bytes, 0, 0));
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    return block;
}

static void run_threads(worker *workers)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) {
            cf_stop("the test cannot make a thread");
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < THREADS; i++) {
        CF_CHECK(workers[i].status == MT_OK, "thread %zu: %s, %s", i,
                 mt_status_name(workers[i].status), workers[i].message);
    }
}

static void check_threads(void)
{
    static worker workers[THREADS];
    bool streams = cf.backend->stream_new != NULL;
    bool records = cf.backend->activity_start != NULL;
    void *shared = zeros();
    memset(workers, 0, sizeof workers);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].shared = streams ? shared : NULL;
        workers[i].correlation = 1 + i * STREAMS * ADDS;
        workers[i].reported = records;
        for (size_t s = 0; s < STREAMS; s++) {
            workers[i].streams[s] = streams ? cf_stream_new(0) : cf_default_stream(0);
            workers[i].blocks[s] = zeros();
        }
    }
    for (size_t i = 0; i <= MOST_REPORTED; i++) {
        atomic_store(&times_reported[i], 0);
    }
    if (records) {
        CF_OK(cf.backend->activity_start(cf.backend->context, &sink));
    }
    run_threads(workers);
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    if (records) {
        cf.backend->activity_stop(cf.backend->context);
        CF_OK(cf.backend->activity_flush(cf.backend->context, 20000000000U));
        for (size_t i = 1; i <= MOST_REPORTED; i++) {
            CF_CHECK(atomic_load(&times_reported[i]) == 1, "correlation %zu was reported %u times",
                     i, atomic_load(&times_reported[i]));
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        for (size_t s = 0; s < STREAMS; s++) {
            expect(workers[i].blocks[s], ADDS, "a stream of one thread");
            if (streams) {
                cf_stream_free(&workers[i].streams[s]);
            }
            cf_give(0, workers[i].blocks[s], block_bytes);
        }
    }
    if (streams) {
        expect(shared, (int64_t)THREADS * ADDS, "the default stream of all threads");
    }
    cf_give(0, shared, block_bytes);
}

static void *take_and_give(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < ADDS && w->status == MT_OK; i++) {
        void *memory = NULL;
        size_t bytes = (size_t)4096 << (i % 6);
        w->status = cf.backend->allocate(cf.backend->context, 0, bytes, &memory);
        if (w->status == MT_OK) {
            w->status = cf_set((cf_stream){.device = 0}, memory, bytes, (uint8_t)i, 0);
            (void)cf.backend->synchronize(cf.backend->context, 0);
            cf.backend->release(cf.backend->context, 0, memory, bytes);
        }
    }
    return NULL;
}

static void check_threads_memory(void)
{
    static worker workers[THREADS];
    pthread_t threads[THREADS];
    memset(workers, 0, sizeof workers);
    for (size_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, take_and_give, &workers[i]) != 0) {
            cf_stop("the test cannot make a thread");
        }
    }
    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        CF_CHECK(workers[i].status == MT_OK, "thread %zu: %s", i,
                 mt_status_name(workers[i].status));
    }
}

/* ---- fork ---- */

enum child_says {
    CHILD_REFUSED = 10, /* everything fails with EDEVICE */
    CHILD_WORKS,        /* everything works */
    CHILD_WRONG,        /* some of both, another status, or wrong results: the message says which */
};

typedef struct fork_scene {
    cf_stream stream; /* NULL where there are no streams */
    mt_backend_event *event;
    void *block;
    uint32_t refused, worked;
    char wrong[200];
} fork_scene;

static void look_at(fork_scene *scene, int status, const char *what)
{
    scene->refused += status == MT_EDEVICE;
    scene->worked += status == MT_OK;
    if (status != MT_OK && (status != MT_EDEVICE || mt_last_error()->message[0] == '\0') &&
        scene->wrong[0] == '\0') {
        (void)snprintf(scene->wrong, sizeof scene->wrong, "%s gives %s", what,
                       mt_status_name(status));
    }
}

static void try_streams(fork_scene *scene)
{
    const mt_backend *b = cf.backend;
    bool done = false;
    double ns = 0.0;
    mt_backend_stream *stream = NULL;
    mt_backend_event *event = NULL;
    look_at(scene, b->stream_new(b->context, 0, 9999, 0, &stream), "stream_new");
    look_at(scene, b->event_new(b->context, 0, MT_EVENT_TIMING, &event), "event_new");
    look_at(scene, b->stream_query(b->context, 0, scene->stream.at, &done), "stream_query");
    look_at(scene, b->stream_synchronize(b->context, 0, scene->stream.at), "stream_synchronize");
    look_at(scene, b->event_record(b->context, 0, scene->stream.at, scene->event), "event_record");
    look_at(scene, b->event_query(b->context, scene->event, &done), "event_query");
    look_at(scene, b->stream_wait(b->context, 0, scene->stream.at, scene->event), "stream_wait");
    look_at(scene, b->event_synchronize(b->context, scene->event), "event_synchronize");
    look_at(scene, b->event_elapsed(b->context, scene->event, scene->event, &ns), "event_elapsed");
    if (event != NULL) {
        b->event_free(b->context, event);
    }
    if (stream != NULL) {
        b->stream_free(b->context, stream);
    }
}

static int be_child(fork_scene *scene)
{
    const mt_backend *b = cf.backend;
    int64_t numbers[NUMBERS] = {0};
    void *memory = NULL;
    look_at(scene, b->allocate(b->context, 0, 4096, &memory), "allocate");
    look_at(scene, cf_set(scene->stream, scene->block, block_bytes, 0, 0), "set");
    look_at(scene, cf_add(scene->stream, scene->block, NUMBERS, 5, 0), "a kernel");
    int read = cf_copy(scene->stream, &(cf_copy_of){.kind = MT_COPY_TO_HOST,
                                                    .to = numbers,
                                                    .from = scene->block,
                                                    .bytes = block_bytes});
    look_at(scene, read, "TO_HOST");
    look_at(scene, b->synchronize(b->context, 0), "synchronize");
    if (scene->event != NULL) {
        try_streams(scene);
        b->event_free(b->context, scene->event);
        b->stream_free(b->context, scene->stream.at);
    }
    if (memory != NULL) {
        b->release(b->context, 0, memory, 4096);
    }
    b->release(b->context, 0, scene->block, block_bytes);
    if (scene->wrong[0] == '\0' && scene->refused > 0 && scene->worked > 0) {
        (void)snprintf(scene->wrong, sizeof scene->wrong, "%u calls work, %u say EDEVICE",
                       scene->worked, scene->refused);
    } else if (scene->wrong[0] == '\0' && read == MT_OK && numbers[NUMBERS - 1] != 5) {
        (void)snprintf(scene->wrong, sizeof scene->wrong, "calls succeed and do nothing");
    }
    return scene->wrong[0] != '\0' ? CHILD_WRONG
                                   : (scene->refused > 0 ? CHILD_REFUSED : CHILD_WORKS);
}

/* Asks a child; what it found wrong comes through a pipe. */
static int ask_child(fork_scene *scene, char *wrong, size_t room)
{
    int ends[2];
    int status = 0;
    if (pipe(ends) != 0) {
        cf_stop("the test has no pipe");
    }
    (void)fflush(stdout);
    pid_t child = fork();
    if (child < 0) {
        cf_stop("the test cannot fork");
    }
    if (child == 0) {
        (void)alarm(60); /* alarms do not survive a fork */
        int said = be_child(scene);
        (void)!write(ends[1], scene->wrong, strlen(scene->wrong));
        _exit(said);
    }
    (void)close(ends[1]);
    ssize_t length = read(ends[0], wrong, room - 1);
    wrong[length > 0 ? length : 0] = '\0';
    (void)close(ends[0]);
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_fork(void)
{
    char wrong[200];
    fork_scene scene = {.block = zeros()};
    if (cf.backend->stream_new != NULL) {
        scene.stream = cf_stream_new(0);
        CF_OK(cf.backend->event_new(cf.backend->context, 0, MT_EVENT_TIMING, &scene.event));
        CF_OK(cf_add(scene.stream, scene.block, NUMBERS, 3, 0));
        CF_OK(cf.backend->event_record(cf.backend->context, 0, scene.stream.at, scene.event));
    } else {
        CF_OK(cf_add(scene.stream, scene.block, NUMBERS, 3, 0));
    }
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    int said = ask_child(&scene, wrong, sizeof wrong);
    CF_CHECK(said == CHILD_REFUSED || said == CHILD_WORKS, "in the child: %s",
             said == CHILD_WRONG ? wrong : "it crashes or does not end");
    CF_OK(cf_add(scene.stream, scene.block, NUMBERS, 4, 0)); /* the parent continues */
    CF_OK(cf.backend->synchronize(cf.backend->context, 0));
    /* The child of a backend in plain memory has a copy of its own. */
    expect(scene.block, 7, "the parent after a fork");
    if (scene.event != NULL) {
        cf.backend->event_free(cf.backend->context, scene.event);
        cf_stream_free(&scene.stream);
    }
    cf_give(0, scene.block, block_bytes);
    if (said == CHILD_WORKS) {
        cf_skip("the child can use the device: the backend has no threads to lose");
    }
}

const cf_check cf_process_checks[] = {
    {"four threads, three streams each", check_threads},
    {"four threads take and give memory", check_threads_memory},
    {"a forked child gets EDEVICE and may free", check_fork},
    {NULL, NULL},
};
