/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces for benchmarks, see bench_traces.h.
 */
#include "bench_traces.h"

#include "bench_harness.h"

#include <mtprof/op.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAMES = 24,
    SHAPES = 40,
    THREADS_MOST = 16
};

static mtprof_site sites[NAMES];
static char names[NAMES][32];

static void make_sites(void)
{
    for (int i = 0; i < NAMES; i++) {
        snprintf(names[i], sizeof names[i], "aten::op_%d", i);
        sites[i] = (mtprof_site)MTPROF_SITE_INIT(names[i], MTPROF_KIND_OP);
    }
}

static mtprof_token begin_op(uint64_t i, bool shapes)
{
    if (!shapes) {
        return mtprof_begin(&sites[i % NAMES]);
    }
    int64_t left[2] = {64 + (int64_t)(i % SHAPES) * 8, 1024};
    int64_t right[2] = {1024, 256};
    const mtprof_value inputs[2] = {{.kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .of.sizes = left},
                                    {.kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .of.sizes = right}};
    const mtprof_op op = {.struct_size = sizeof op, .inputs = inputs, .n_inputs = 2};
    return mtprof_op_begin(&sites[i % NAMES], &op);
}

typedef struct recorder {
    uint64_t pairs;
    bool shapes;
} recorder;

static void *record(void *context)
{
    const recorder *r = context;
    for (uint64_t i = 0; i < r->pairs; i++) {
        mtprof_token outer = begin_op(i, r->shapes);
        mtprof_end(begin_op(i * 7 + 3, r->shapes));
        mtprof_end(outer);
    }
    return NULL;
}

static void record_threads(const bench_trace *trace)
{
    pthread_t threads[THREADS_MOST];
    uint32_t n = trace->threads < THREADS_MOST ? trace->threads : THREADS_MOST;
    recorder r = {.pairs = trace->events / 2 / (n > 0 ? n : 1), .shapes = trace->shapes};
    if (n == 0) {
        record(&r);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (pthread_create(&threads[i], NULL, record, &r) != 0) {
            fprintf(stderr, "bench: no thread %u\n", i);
            exit(1);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
    }
}

void bench_trace_make(const bench_trace *trace, const char *path)
{
    mtprof_config config = {.struct_size = sizeof config, .path = path};
    config.wants = MTPROF_WANT_OPS | (trace->shapes ? MTPROF_WANT_INPUTS : 0);
    make_sites();
    mtprof_session *session = bench_start(&config);
    record_threads(trace);
    bench_must(mtprof_session_stop(session), "session_stop");
    bench_close(session);
}

/* ---- memory ---- */

uint64_t bench_anonymous_bytes(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "RssAnon:", 8) == 0) {
            kib = strtoull(line + 8, NULL, 10);
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib * 1024;
}

static pthread_t watcher;
static atomic_bool watching;
static atomic_ullong peak;

static void *watch(void *context)
{
    const struct timespec rest = {0, 1000000};
    (void)context;
    while (atomic_load(&watching)) {
        unsigned long long now = bench_anonymous_bytes();
        if (now > atomic_load(&peak)) {
            atomic_store(&peak, now);
        }
        nanosleep(&rest, NULL);
    }
    return NULL;
}

void bench_anonymous_watch(void)
{
    atomic_store(&peak, bench_anonymous_bytes());
    atomic_store(&watching, true);
    if (pthread_create(&watcher, NULL, watch, NULL) != 0) {
        fprintf(stderr, "bench: no thread to watch memory\n");
        exit(1);
    }
}

uint64_t bench_anonymous_peak(void)
{
    unsigned long long last = bench_anonymous_bytes();
    atomic_store(&watching, false);
    pthread_join(watcher, NULL);
    return atomic_load(&peak) > last ? atomic_load(&peak) : last;
}
