/* SPDX-License-Identifier: Apache-2.0
 *
 * libmindtorch on one thread: nanoseconds of single ops and of training steps. Against torch, in
 * one run: ./dev peers speed, which calls this program with --one NAME MILLISECONDS.
 */
#include "bench_harness.h"
#include "runtime_workloads.h"

#include <mindtorch/mindtorch.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Iterations that take about `ms`, by doubling. */
static uint64_t calibrate(workload *w, double ms)
{
    uint64_t n = 1;
    for (;;) {
        double start = bench_now_ns();
        workload_run(w, n);
        if (bench_now_ns() - start > ms * 1e6 || n > UINT64_C(1) << 30) {
            return n;
        }
        n *= 2;
    }
}

/* The best of boxes of about a millisecond, for about `ms` in all. */
static double measure(size_t index, double ms)
{
    workload *w = workload_open(index);
    workload_run(w, 2);
    uint64_t n = calibrate(w, 1);
    double best = 1e300;
    double end = bench_now_ns() + ms * 1e6;
    do {
        double start = bench_now_ns();
        workload_run(w, n);
        double each = (bench_now_ns() - start) / (double)n;
        best = each < best ? each : best;
    } while (bench_now_ns() < end);
    workload_close(w);
    return best;
}

/* What recording adds to a 2x2 add: the same loop with a session and without. */
static void measure_recording(void)
{
    static const struct {
        const char *name;
        uint64_t wants;
        double limit;
    } figures[] = {
        {"op_recorded_ns", MTPROF_WANT_DEFAULT, 35},
        {"op_recorded_shapes_ns", MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS, 45},
        {"op_recorded_memory_ns", MTPROF_WANT_DEFAULT | MTPROF_WANT_MEMORY | MTPROF_WANT_ALLOCS,
         60},
        {"op_recorded_all_ns",
         MTPROF_WANT_DEFAULT | MTPROF_WANT_INPUTS | MTPROF_WANT_TENSORS | MTPROF_WANT_MEMORY |
             MTPROF_WANT_ALLOCS | MTPROF_WANT_FLOPS | MTPROF_WANT_DETAILS,
         100},
    };
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (!bench_wants(figures[i].name)) {
            continue;
        }
        bench_series off = {.count = 0}, on = {.count = 0};
        for (int round = 0; round < 8; round++) { /* in turn, for equal conditions */
            bench_add(&off, measure(0, (double)bench_pick(50, 10)));
            mtprof_session *session = bench_start_warm(NULL, figures[i].wants);
            bench_add(&on, measure(0, (double)bench_pick(50, 10)));
            bench_close(session);
        }
        double best = bench_best(&on) - bench_best(&off);
        bench_emit(&(bench_figure){
            .name = figures[i].name, .unit = "ns", .value = best, .limit = figures[i].limit});
    }
}

int main(int argc, char **argv)
{
    mt_set_num_threads(1);
    if (argc == 4 && strcmp(argv[1], "--one") == 0) {
        for (size_t i = 0; workload_name(i) != NULL; i++) {
            if (strcmp(workload_name(i), argv[2]) == 0) {
                printf("%.2f\n", measure(i, strtod(argv[3], NULL)));
                return 0;
            }
        }
        fprintf(stderr, "bench_runtime: no workload %s\n", argv[2]);
        return 1;
    }
    bench_init(argc, argv);
    measure_recording();
    for (size_t i = 0; workload_name(i) != NULL; i++) {
        const char *name = workload_name(i);
        if (bench_wants(name)) {
            bench_emit(&(bench_figure){
                .name = name,
                .unit = "ns",
                .value = measure(i, (double)bench_pick(300, 30)),
                .limit = strcmp(name, "add_2x2") == 0 ? 80 : 0,
            });
        }
    }
    return 0;
}
