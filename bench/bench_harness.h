/* SPDX-License-Identifier: Apache-2.0
 *
 * What benchmarks share: A/B timing inside one process, sessions to measure in, and one JSON line a
 * figure on stdout.
 *
 *      round 1   A  B  C      each box: `n` iterations, about a millisecond
 *      round 2   B  C  A      so every case runs under the same conditions, and the best of many
 *      round 3   C  A  B      short boxes is one in which nothing else used the core
 *
 * Arguments of every benchmark: [--quick] [--dir FOLDER] [FIGURE...]. FOLDER is where trace files
 * go; FIGURE chooses figures whose name holds one of these texts. docs/measuring.md has the method.
 */
#ifndef BENCH_BENCH_HARNESS_H
#define BENCH_BENCH_HARNESS_H

#include <mtprof/session.h>

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define BENCH_NOINLINE __attribute__((noinline, noclone))
/* Keeps the compiler from knowing a value, at no cost. */
#define BENCH_HIDE(value) __asm__ volatile("" : "+r"(value))
/* Keeps it from moving memory accesses or merging iterations. */
#define BENCH_FENCE() __asm__ volatile("" ::: "memory")

void bench_init(int argc, char **argv);
/* Whether one of these figures is asked for: names separated by blanks. */
bool bench_wants(const char *names);
bool bench_is_quick(void);
/* `full`, or `quick` under --quick. */
uint64_t bench_pick(uint64_t full, uint64_t quick);
/* A path in the folder for trace files; the same one each time. */
const char *bench_path(void);

/* ---- time ---- */

/* The recorder's clock, read as bare as it gets. */
static inline uint64_t bench_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

double bench_now_ns(void);
double bench_ns_per_tick(void);

/* ---- A/B ---- */

typedef struct bench_case {
    const char *name;
    void (*run)(void *context, uint64_t n);
    void *context;
    double best_ns, median_ns; /* of one iteration; bench_compare() sets them */
} bench_case;

void bench_compare(bench_case *cases, int count, uint64_t n, int rounds);

/* Two bare clock readings, the physical limit of a begin and an end. */
void bench_floor(void *context, uint64_t n);

/* Several measurements of one figure. */
typedef struct bench_series {
    double values[64];
    int count;
} bench_series;

void bench_add(bench_series *series, double value);
double bench_best(const bench_series *series); /* the smallest */
double bench_median(const bench_series *series);

/* ---- figures ---- */

/* Names and units are plain words. Zero means "unknown". */
typedef struct bench_figure {
    const char *name, *unit;
    double value, median, floor;
    double limit;
    bool at_least;     /* the limit is a lower one */
    const char *extra; /* further members: "\"stalls\": 3" */
} bench_figure;

/* Prints the figure, if it is asked for. It is judged as printed, with two decimals. */
void bench_emit(const bench_figure *figure);

/* ---- sessions ---- */

/* Ends the program with the library's message unless status is OK. */
void bench_must(mtprof_status status, const char *what);
mtprof_session *bench_start(const mtprof_config *config);
/* A ring that has gone round at least once, so that all of its memory has been touched. */
mtprof_session *bench_start_warm(const char *path, uint64_t wants);
/* The same with these wants and scopes alone. */
mtprof_session *bench_start_only(const char *path, uint64_t wants);
/* Ends the program if the session lost events or recorded none. */
void bench_check_lost(mtprof_session *session);
/* Checks that, and closes. */
void bench_close(mtprof_session *session);
mtprof_health bench_health(mtprof_session *session);

/* Scopes of a static place, nothing inside. */
void bench_scopes(void *context, uint64_t n);
/* Enough of them to go round a ring of the default size. */
#define BENCH_RING_SCOPES ((uint64_t)3 << 20)

/* Binds the calling thread to one of its cores, counted from 0; false where it cannot. Only after
 * the session has started: its helper thread inherits the binding. */
bool bench_pin(int core);
int bench_cores(void);

#endif /* BENCH_BENCH_HARNESS_H */
