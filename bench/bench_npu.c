/* SPDX-License-Identifier: Apache-2.0
 *
 * What launches cost the host, on the simulated accelerator. Its stream is held back while the host
 * launches, so that the device's own work, which shares the cores here, is not in the figure:
 *
 *     stream:  [ sim_hold ............................ ][add][add][add] ...
 *     host:               launch launch launch launch │ released, waited for: not measured
 *
 * The program opens the backend that is next to the library; MINDTORCH_BACKENDS says where else.
 */
#include "bench_harness.h"

#include <mindtorch/mindtorch.h>
#include <mindtorch/sim.h>

#include <stdio.h>
#include <stdlib.h>

enum {
    LAUNCHES = 1000 /* well below what a stream holds before the host must wait */
};

static const mt_sim *sim;
static mt_tensor *x;

static void must(int status, const char *what)
{
    if (status != MT_OK) {
        fprintf(stderr, "bench_npu: %s: %s\n", what, mt_last_error()->message);
        exit(1);
    }
}

/* Nanoseconds of one add, on the host. */
static double launch_held(void)
{
    static mt_tensor *results[LAUNCHES];
    must(sim->hold(0, 0, LAUNCHES + 1, 0), "hold");
    double start = bench_now_ns();
    for (int i = 0; i < LAUNCHES; i++) {
        must(mt_add(x, x, &results[i]), "add");
    }
    double each = (bench_now_ns() - start) / LAUNCHES;
    must(sim->release(0, 0), "release");
    must(mt_device_synchronize(MT_NPU), "synchronize");
    for (int i = 0; i < LAUNCHES; i++) {
        mt_tensor_release(results[i]);
    }
    return each;
}

/* While the device works, and with results dropped at once, as in a program. */
static double launch_freely(void)
{
    double start = bench_now_ns();
    for (int i = 0; i < LAUNCHES; i++) {
        mt_tensor *result;
        must(mt_add(x, x, &result), "add");
        mt_tensor_release(result);
    }
    double each = (bench_now_ns() - start) / LAUNCHES;
    must(mt_device_synchronize(MT_NPU), "synchronize");
    return each;
}

static double best_of_four(double (*measure)(void))
{
    bench_series series = {.count = 0};
    for (int i = 0; i < 4; i++) {
        bench_add(&series, measure());
    }
    return bench_best(&series);
}

/* The best of many, off and on in turn. */
static void compare(double (*measure)(void), uint64_t wants, double *off, double *on)
{
    bench_series without = {.count = 0}, with = {.count = 0};
    for (uint64_t round = 0; round < bench_pick(30, 6); round++) {
        bench_add(&without, best_of_four(measure));
        mtprof_session *session = bench_start_only(NULL, wants);
        bench_add(&with, best_of_four(measure));
        if ((bench_health(session).launches != 0) != ((wants & MTPROF_WANT_DEVICE) != 0)) {
            fprintf(stderr, "bench_npu: launches were not recorded as asked\n");
            exit(1);
        }
        bench_close(session);
    }
    *off = bench_best(&without);
    *on = bench_best(&with);
}

int main(int argc, char **argv)
{
    static const float values[4] = {1, 2, 3, 4};
    double off, on, host_on;
    bench_init(argc, argv);
    if (mt_device_count(MT_DEVICE_TYPE_NPU) == 0) {
        must(mt_backend_load("sim"), "backend_load");
    }
    sim = mt_backend_extension(MT_DEVICE_TYPE_NPU, "sim");
    if (sim == NULL) {
        fprintf(stderr, "bench_npu: skipped, the accelerator is not the simulated one\n");
        return 0;
    }
    must(mt_tensor_from_data(values, MT_DTYPE_F32, (const int64_t[]){2, 2}, 2, MT_NPU, &x), "x");
    launch_held();
    if (bench_wants("npu_launch_ns npu_launch_record_ns npu_op_recorded_ns")) {
        compare(launch_held, MTPROF_WANT_DEFAULT, &off, &on);
        compare(launch_held, MTPROF_WANT_OPS, &off, &host_on); /* the op without its launch */
        bench_emit(&(bench_figure){.name = "npu_launch_ns", .unit = "ns", .value = off});
        bench_emit(&(bench_figure){
            .name = "npu_launch_record_ns", .unit = "ns", .value = on - host_on, .limit = 150});
        bench_emit(&(bench_figure){
            .name = "npu_op_recorded_ns", .unit = "ns", .value = on - off, .limit = 150});
    }
    if (bench_wants("npu_launch_free_ns npu_launch_free_recorded_ns")) {
        compare(launch_freely, MTPROF_WANT_DEFAULT, &off, &on);
        bench_emit(&(bench_figure){.name = "npu_launch_free_ns", .unit = "ns", .value = off});
        bench_emit(
            &(bench_figure){.name = "npu_launch_free_recorded_ns", .unit = "ns", .value = on});
    }
    mt_tensor_release(x);
    return 0;
}
