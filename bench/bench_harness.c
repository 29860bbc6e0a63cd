/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_harness.h"

#include <mtprof/trace.h>

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CASES_MAX = 8,
    ROUNDS_MAX = 512
};

static struct {
    bool quick;
    char path[1024];
    char **figures;
    int n_figures;
} options;

static void usage(const char *program)
{
    fprintf(stderr, "usage: %s [--quick] [--dir FOLDER] [FIGURE...]\n", program);
    exit(2);
}

void bench_init(int argc, char **argv)
{
    const char *folder = ".";
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            options.quick = true;
        } else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc) {
            folder = argv[++i];
        } else {
            usage(argv[0]);
        }
    }
    options.figures = argv + i;
    options.n_figures = argc - i;
    const char *base = strrchr(argv[0], '/');
    int length = snprintf(options.path, sizeof options.path, "%s/%s.mtt", folder,
                          base != NULL ? base + 1 : argv[0]);
    if (length < 0 || (size_t)length >= sizeof options.path) {
        fprintf(stderr, "%s: the folder's name is too long\n", argv[0]);
        exit(2);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
}

static bool is_asked_for(const char *name)
{
    bool asked = options.n_figures == 0;
    for (int i = 0; i < options.n_figures && !asked; i++) {
        asked = strstr(name, options.figures[i]) != NULL;
    }
    return asked;
}

bool bench_wants(const char *names)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%s", names);
    bool wanted = false;
    char *rest = copy;
    for (char *name = strtok_r(rest, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest)) {
        wanted = wanted || is_asked_for(name);
    }
    return wanted;
}

bool bench_is_quick(void)
{
    return options.quick;
}

uint64_t bench_pick(uint64_t full, uint64_t quick)
{
    return options.quick ? quick : full;
}

const char *bench_path(void)
{
    return options.path;
}

/* ---- time ---- */

double bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Measured here, not asked from the library: it is one of the things under test. */
double bench_ns_per_tick(void)
{
    static double known;
    if (known == 0) {
        double ns = bench_now_ns();
        uint64_t ticks = bench_ticks();
        usleep(20 * 1000);
        double ns_after = bench_now_ns();
        known = (ns_after - ns) / (double)(bench_ticks() - ticks);
    }
    return known;
}

/* ---- A/B ---- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof values[0], compare_doubles);
    return values[count / 2];
}

void bench_compare(bench_case *cases, int count, uint64_t n, int rounds)
{
    static double taken[CASES_MAX][ROUNDS_MAX];
    if (count > CASES_MAX || rounds > ROUNDS_MAX || rounds < 1) {
        fprintf(stderr, "bench_compare: %d cases, %d rounds\n", count, rounds);
        exit(2);
    }
    for (int i = 0; i < count; i++) {
        cases[i].run(cases[i].context, n / 8 + 1); /* caches, branch predictors, page tables */
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) {
            int at = (round + i) % count;
            double before = bench_now_ns();
            cases[at].run(cases[at].context, n);
            taken[at][round] = (bench_now_ns() - before) / (double)n;
        }
    }
    for (int i = 0; i < count; i++) {
        cases[i].median_ns = median_of(taken[i], rounds);
        cases[i].best_ns = taken[i][0]; /* sorted by now */
    }
}

void bench_floor(void *context, uint64_t n)
{
    (void)context;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t begin = bench_ticks();
        BENCH_HIDE(begin);
        uint64_t end = bench_ticks();
        BENCH_HIDE(end);
    }
}

void bench_add(bench_series *series, double value)
{
    if (series->count < (int)(sizeof series->values / sizeof series->values[0])) {
        series->values[series->count++] = value;
    }
}

double bench_best(const bench_series *series)
{
    double best = series->count > 0 ? series->values[0] : 0;
    for (int i = 0; i < series->count; i++) {
        best = series->values[i] < best ? series->values[i] : best;
    }
    return best;
}

double bench_median(const bench_series *series)
{
    bench_series copy = *series;
    return copy.count == 0 ? 0 : median_of(copy.values, copy.count);
}

/* ---- figures ---- */

/* What is printed is what is compared, or a table could say "24.00, limit 24.00, missed". */
static double as_printed(double value)
{
    return round(value * 100) / 100 + 0.0; /* no "-0.00" */
}

void bench_emit(const bench_figure *figure)
{
    if (!is_asked_for(figure->name)) {
        return;
    }
    double value = as_printed(figure->value);
    printf("{\"bench\": \"%s\", \"value\": %.2f, \"unit\": \"%s\"", figure->name, value,
           figure->unit);
    if (figure->median != 0) {
        printf(", \"median\": %.2f", figure->median);
    }
    if (figure->floor != 0) {
        printf(", \"floor\": %.2f", figure->floor);
    }
    if (figure->floor >= 1) {
        printf(", \"ratio\": %.3f", figure->value / figure->floor);
    }
    if (figure->limit != 0) {
        double limit = as_printed(figure->limit);
        bool ok = figure->at_least ? value >= limit : value <= limit;
        printf(", \"%s\": %.2f, \"ok\": %s", figure->at_least ? "at_least" : "limit", limit,
               ok ? "true" : "false");
    }
    if (figure->extra != NULL && figure->extra[0] != '\0') {
        printf(", %s", figure->extra);
    }
    printf("}\n");
}

/* ---- sessions ---- */

void bench_must(mtprof_status status, const char *what)
{
    if (status != MTPROF_OK) {
        fprintf(stderr, "%s: %s\n", what, mtprof_last_error()->message);
        exit(1);
    }
}

mtprof_session *bench_start(const mtprof_config *config)
{
    mtprof_session *session = NULL;
    bench_must(mtprof_session_start(config, &session), "session_start");
    return session;
}

mtprof_session *bench_start_warm(const char *path, uint64_t wants)
{
    return bench_start_only(path, wants | MTPROF_WANT_DEFAULT);
}

mtprof_session *bench_start_only(const char *path, uint64_t wants)
{
    mtprof_config config = {.struct_size = sizeof config,
                            .policy = MTPROF_POLICY_RING,
                            .path = path,
                            .wants = wants | MTPROF_WANT_SCOPES};
    mtprof_session *session = bench_start(&config);
    while (bench_health(session).evicted == 0) {
        bench_scopes(NULL, BENCH_RING_SCOPES / 2);
    }
    return session;
}

/* A recorder that drops events is fast: such a figure must not get out. */
void bench_check_lost(mtprof_session *session)
{
    mtprof_health health = bench_health(session);
    if (health.lost != 0 || health.begins + health.others == 0) {
        fprintf(stderr, "%llu events recorded, %llu lost: this measures nothing\n",
                (unsigned long long)(health.begins + health.others),
                (unsigned long long)health.lost);
        exit(1);
    }
}

void bench_close(mtprof_session *session)
{
    bench_must(mtprof_session_stop(session), "session_stop");
    bench_check_lost(session);
    bench_must(mtprof_session_close(session), "session_close");
}

mtprof_health bench_health(mtprof_session *session)
{
    mtprof_health health = {.struct_size = sizeof health};
    bench_must(mtprof_session_get_health(session, &health), "session_health");
    return health;
}

BENCH_NOINLINE void bench_scopes(void *context, uint64_t n)
{
    (void)context;
    for (uint64_t i = 0; i < n; i++) {
        MTPROF_SCOPE("bench");
        BENCH_FENCE();
    }
}

/* ---- cores ---- */

/* The cores this process may use, as it was started. */
static const cpu_set_t *allowed(void)
{
    static cpu_set_t set;
    static bool known;
    if (!known) {
        CPU_ZERO(&set);
        sched_getaffinity(getpid(), sizeof set, &set);
        known = true;
    }
    return &set;
}

int bench_cores(void)
{
    return CPU_COUNT(allowed());
}

bool bench_pin(int core)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, allowed()) && core-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            return sched_setaffinity(0, sizeof one, &one) == 0;
        }
    }
    return false;
}
