/* SPDX-License-Identifier: Apache-2.0
 *
 * What a begin and an end of a static place cost while recording: on warm memory, to a file, in the
 * tail, on the first pass over fresh memory, around real work, and with two threads.
 */
#include "bench_harness.h"

#include <mtprof/trace.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BATCH = 50000,            /* scopes a box: about a millisecond */
    HISTOGRAM_TICKS = 1 << 20 /* longer pairs count as this long, apart from the maximum */
};

/* ---- warm memory ---- */

static double measure_on(const char *name, const char *path, bool tell_floor)
{
    mtprof_session *session = bench_start_warm(path, 0);
    bench_case cases[] = {{.name = "floor", .run = bench_floor},
                          {.name = name, .run = bench_scopes}};
    bench_compare(cases, 2, BATCH, (int)bench_pick(150, 60));
    bench_close(session);
    if (tell_floor) {
        bench_emit(&(bench_figure){.name = "floor_ns",
                                   .unit = "ns",
                                   .value = cases[0].best_ns,
                                   .median = cases[0].median_ns});
    }
    bench_emit(&(bench_figure){.name = name,
                               .unit = "ns",
                               .value = cases[1].best_ns,
                               .median = cases[1].median_ns,
                               .floor = cases[0].best_ns,
                               .limit = cases[0].best_ns + 2});
    return cases[0].best_ns;
}

/* ---- tail ---- */

typedef struct tail {
    double p50, p9999, max;
} tail;

static tail measure_tail(uint32_t *histogram, uint64_t pairs)
{
    memset(histogram, 0, (HISTOGRAM_TICKS + 1) * sizeof histogram[0]);
    uint64_t longest = 0;
    for (uint64_t i = 0; i < pairs; i++) {
        uint64_t before = bench_ticks();
        {
            MTPROF_SCOPE("tail");
            BENCH_FENCE();
        }
        uint64_t ticks = bench_ticks() - before;
        longest = ticks > longest ? ticks : longest;
        histogram[ticks < HISTOGRAM_TICKS ? ticks : HISTOGRAM_TICKS]++;
    }
    double period = bench_ns_per_tick();
    tail result = {.max = (double)longest * period};
    uint64_t seen = 0;
    for (uint32_t ticks = 0; ticks <= HISTOGRAM_TICKS; ticks++) {
        seen += histogram[ticks];
        if (result.p50 == 0 && seen * 2 >= pairs) {
            result.p50 = ticks * period;
        }
        if (seen * 10000 >= pairs * 9999) {
            result.p9999 = ticks * period;
            break;
        }
    }
    return result;
}

static void bench_tail(void)
{
    uint32_t *histogram = calloc(HISTOGRAM_TICKS + 1, sizeof histogram[0]);
    if (histogram == NULL) {
        exit(1);
    }
    mtprof_session *session = bench_start_warm(NULL, 0);
    bench_series p9999 = {.count = 0}, longest = {.count = 0}, p50 = {.count = 0};
    for (uint64_t i = 0; i < bench_pick(9, 4); i++) {
        tail one = measure_tail(histogram, 2000000);
        bench_add(&p9999, one.p9999);
        bench_add(&longest, one.max);
        bench_add(&p50, one.p50);
    }
    bench_close(session);
    free(histogram);
    char extra[96];
    snprintf(extra, sizeof extra, "\"p50\": %.2f, \"max\": %.0f", bench_best(&p50),
             bench_best(&longest));
    bench_emit(&(bench_figure){.name = "scope_p9999_ns",
                               .unit = "ns",
                               .value = bench_best(&p9999),
                               .median = bench_median(&p9999),
                               .limit = 1000,
                               .extra = extra});
}

/* ---- fresh memory ---- */

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The helper needs a core of its own to stay ahead: cpu_ns and stalls show whether it had one. */
static void bench_first_pass(const char *name, const char *path)
{
    uint64_t scopes = bench_pick(8000000, 4000000);
    mtprof_config config = {
        .struct_size = sizeof config, .path = path, .buffer_bytes = (uint64_t)512 << 20};
    bench_series pairs = {.count = 0}, floors = {.count = 0};
    bench_series stalls = {.count = 0}, cpu = {.count = 0};
    for (uint64_t i = 0; i < bench_pick(11, 5); i++) {
        mtprof_session *session = bench_start(&config);
        double before = bench_now_ns(), cpu_before = cpu_ns();
        bench_scopes(NULL, scopes);
        bench_add(&cpu, (cpu_ns() - cpu_before) / (double)scopes);
        bench_add(&pairs, (bench_now_ns() - before) / (double)scopes);
        bench_add(&stalls, (double)bench_health(session).stalls);
        bench_close(session);
        if (path != NULL) {
            unlink(path);
        }
        bench_case floor = {.name = "floor", .run = bench_floor};
        bench_compare(&floor, 1, BATCH, 20);
        bench_add(&floors, floor.best_ns);
    }
    char extra[128];
    snprintf(extra, sizeof extra, "\"cpu\": %.2f, \"stalls\": %.0f, \"scopes\": %llu",
             bench_best(&cpu), bench_best(&stalls), (unsigned long long)scopes);
    bench_emit(&(bench_figure){.name = name,
                               .unit = "ns",
                               .value = bench_best(&pairs),
                               .median = bench_median(&pairs),
                               .floor = bench_best(&floors),
                               .limit = bench_best(&floors) + 4,
                               .extra = extra});
}

/* ---- around work ---- */

/* Each multiplication waits for the one before: time without throughput, as most code is. */
static inline uint64_t chain(uint64_t links, uint64_t value)
{
    for (uint64_t i = 0; i < links; i++) {
        value *= 6364136223846793005u;
        BENCH_HIDE(value);
        value *= 1442695040888963407u;
        BENCH_HIDE(value);
        value *= 3935559000370003845u;
        BENCH_HIDE(value);
        value *= 2691343689449507681u;
        BENCH_HIDE(value);
    }
    return value;
}

static BENCH_NOINLINE void work_alone(void *context, uint64_t n)
{
    const uint64_t *links = context;
    uint64_t value = 1;
    for (uint64_t i = 0; i < n; i++) {
        value = chain(*links, value);
        BENCH_HIDE(value);
    }
}

static BENCH_NOINLINE void work_in_scope(void *context, uint64_t n)
{
    const uint64_t *links = context;
    uint64_t value = 1;
    for (uint64_t i = 0; i < n; i++) {
        MTPROF_SCOPE("work");
        value = chain(*links, value);
        BENCH_HIDE(value);
    }
}

static BENCH_NOINLINE void work_between_readings(void *context, uint64_t n)
{
    const uint64_t *links = context;
    uint64_t value = 1;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t begin = bench_ticks();
        BENCH_HIDE(begin);
        value = chain(*links, value);
        BENCH_HIDE(value);
        uint64_t end = bench_ticks();
        BENCH_HIDE(end);
    }
}

static void bench_around_work(void)
{
    uint64_t links = 12; /* of four multiplications each */
    bench_case trial = {.name = "trial", .run = work_alone, .context = &links};
    bench_compare(&trial, 1, BATCH / 2, 30);
    links = (uint64_t)(12 * 50 / trial.best_ns + 0.5);
    mtprof_session *session = bench_start_warm(NULL, 0);
    bench_case cases[] = {{.name = "alone", .run = work_alone, .context = &links},
                          {.name = "readings", .run = work_between_readings, .context = &links},
                          {.name = "scope", .run = work_in_scope, .context = &links}};
    bench_compare(cases, 3, BATCH / 2, (int)bench_pick(150, 60));
    bench_close(session);
    char extra[64];
    snprintf(extra, sizeof extra, "\"work_ns\": %.2f", cases[0].best_ns);
    bench_emit(&(bench_figure){.name = "scope_around_50ns_work_ns",
                               .unit = "ns",
                               .value = cases[2].best_ns - cases[0].best_ns,
                               .median = cases[2].median_ns - cases[0].median_ns,
                               .floor = cases[1].best_ns - cases[0].best_ns,
                               .extra = extra});
}

/* ---- two threads ---- */

typedef struct recorder {
    pthread_t thread;
    int core;
    uint64_t scopes;
    int rounds;
    pthread_barrier_t *barrier;
    double taken_ns[256];
} recorder;

static void *record(void *context)
{
    recorder *r = context;
    bench_pin(r->core);
    bench_scopes(NULL, 1000);
    for (int i = 0; i < r->rounds; i++) {
        pthread_barrier_wait(r->barrier);
        double before = bench_now_ns();
        bench_scopes(NULL, r->scopes);
        r->taken_ns[i] = bench_now_ns() - before;
    }
    return NULL;
}

static void record_on(recorder *recorders, int count)
{
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        recorders[i].barrier = &barrier;
        if (pthread_create(&recorders[i].thread, NULL, record, &recorders[i]) != 0) {
            fprintf(stderr, "cannot start a thread\n");
            exit(1);
        }
    }
    for (int i = 0; i < count; i++) {
        pthread_join(recorders[i].thread, NULL);
    }
    pthread_barrier_destroy(&barrier);
}

/* Scopes per ns in the best round. */
static double rate_of(const recorder *recorders, int count)
{
    double best = 0;
    for (int i = 0; i < recorders[0].rounds; i++) {
        double rate = 0;
        for (int t = 0; t < count; t++) {
            rate += (double)recorders[t].scopes / recorders[t].taken_ns[i];
        }
        best = rate > best ? rate : best;
    }
    return best;
}

static void bench_scaling(void)
{
    if (bench_cores() < 2) {
        return;
    }
    int rounds = (int)bench_pick(60, 25);
    mtprof_session *session = bench_start_warm(NULL, 0);
    bench_series ratios = {.count = 0};
    double one_ns = 0, two_ns = 0;
    for (uint64_t i = 0; i < bench_pick(5, 3); i++) {
        recorder one[] = {{.core = (int)(i % 2), .scopes = 200000, .rounds = rounds}};
        recorder two[] = {{.core = 0, .scopes = 200000, .rounds = rounds},
                          {.core = 1, .scopes = 200000, .rounds = rounds}};
        record_on(one, 1);
        record_on(two, 2);
        double single = rate_of(one, 1), both = rate_of(two, 2);
        bench_add(&ratios, -both / single); /* the best is the smallest */
        one_ns = one_ns == 0 || 1 / single < one_ns ? 1 / single : one_ns;
        two_ns = two_ns == 0 || 2 / both < two_ns ? 2 / both : two_ns;
    }
    bench_close(session);
    char extra[96];
    snprintf(extra, sizeof extra, "\"one_thread_ns\": %.2f, \"two_threads_ns\": %.2f", one_ns,
             two_ns);
    bench_emit(&(bench_figure){.name = "threads_scaling",
                               .unit = "x",
                               .value = -bench_best(&ratios),
                               .median = -bench_median(&ratios),
                               .limit = 1.9,
                               .at_least = true,
                               .extra = extra});
}

static void bench_two_writers_fresh(void)
{
    bench_series pairs = {.count = 0}, stalls = {.count = 0};
    for (uint64_t i = 0; i < bench_pick(5, 3) && bench_cores() >= 2; i++) {
        mtprof_config config = {.struct_size = sizeof config, .buffer_bytes = (uint64_t)512 << 20};
        mtprof_session *session = bench_start(&config);
        recorder two[] = {{.core = 0, .scopes = bench_pick(4000000, 2000000), .rounds = 1},
                          {.core = 1, .scopes = bench_pick(4000000, 2000000), .rounds = 1}};
        record_on(two, 2);
        bench_add(&pairs, 2 / rate_of(two, 2));
        bench_add(&stalls, (double)bench_health(session).stalls);
        bench_close(session);
    }
    char extra[64];
    snprintf(extra, sizeof extra, "\"stalls\": %.0f", bench_median(&stalls));
    bench_emit(&(bench_figure){.name = "scope_two_writers_fresh_ns",
                               .unit = "ns",
                               .value = bench_best(&pairs),
                               .median = bench_median(&pairs),
                               .extra = extra});
}

int main(int argc, char **argv)
{
    bench_init(argc, argv);
    if (bench_wants("floor_ns scope_on_ns")) {
        measure_on("scope_on_ns", NULL, true);
    }
    if (bench_wants("scope_on_file_ns")) {
        measure_on("scope_on_file_ns", bench_path(), false);
        unlink(bench_path());
    }
    if (bench_wants("scope_p9999_ns")) {
        bench_tail();
    }
    if (bench_wants("scope_first_pass_anon_ns")) {
        bench_first_pass("scope_first_pass_anon_ns", NULL);
    }
    if (bench_wants("scope_first_pass_file_ns")) {
        bench_first_pass("scope_first_pass_file_ns", bench_path());
    }
    if (bench_wants("scope_two_writers_fresh_ns")) {
        bench_two_writers_fresh();
    }
    if (bench_wants("scope_around_50ns_work_ns")) {
        bench_around_work();
    }
    if (bench_wants("threads_scaling")) {
        bench_scaling();
    }
    return 0;
}
