/* SPDX-License-Identifier: Apache-2.0
 *
 * A million op events, two levels, 24 names, on one core: from the records to rows.
 *
 *   key_averages_ns       per event, cold: a model of a stopped session, its columns, the grouping
 *   key_averages_file_ns  the same of a file that is in the page cache
 *   regroup_ns            per event, the columns are there: the default grouping
 *   regroup_shapes_ns     by input shapes, regroup_step_ns by step: a hash an event
 *   quantiles_ns          per event: p50 and p99 of every row, with the index they need
 *   averages_table_us     torch's table of these rows
 *   explain_ns            per event, the columns are there: an explanation
 */
#include "bench_harness.h"

#include <mtprof/averages.h>
#include <mtprof/explain.h>
#include <mtprof/op.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    NAMES = 24,
    SHAPES = 40,
    ROUNDS = 9
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
    int64_t sizes[2] = {64 + (int64_t)(i % SHAPES) * 8, 1024};
    const mtprof_value input = {.kind = MTPROF_INPUT_TENSOR, .n_dims = 2, .of.sizes = sizes};
    const mtprof_op op = {.struct_size = sizeof op, .inputs = &input, .n_inputs = shapes ? 1 : 0};
    return mtprof_op_begin(&sites[i % NAMES], &op);
}

static mtprof_session *record(const char *path, uint64_t events, bool shapes)
{
    mtprof_config config = {
        .struct_size = sizeof config, .path = path, .buffer_bytes = (uint64_t)1 << 30};
    config.wants = MTPROF_WANT_OPS | (shapes ? MTPROF_WANT_INPUTS : 0);
    mtprof_session *session = bench_start(&config);
    for (uint64_t i = 0; i < events / 2; i++) {
        mtprof_token outer = begin_op(i, shapes);
        mtprof_end(begin_op(i * 7 + 3, shapes));
        mtprof_end(outer);
    }
    bench_must(mtprof_session_stop(session), "session_stop");
    bench_check_lost(session);
    return session;
}

static mtprof_model *open_model(mtprof_session *session, const char *path)
{
    const mtprof_model_options options = {.struct_size = sizeof options, .workers = 1};
    mtprof_model *model = NULL;
    if (session != NULL) {
        bench_must(mtprof_model_from_session(session, &options, &model), "model_of_session");
    } else {
        bench_must(mtprof_model_open(path, &options, &model), "model_open");
    }
    return model;
}

/* What every row has must add up to what was recorded, or the time means nothing. */
static void check_count(mtprof_averages *averages, uint64_t events)
{
    mtprof_row total = {.struct_size = sizeof total};
    bench_must(mtprof_averages_get_total(averages, &total), "averages_total");
    if (total.count != events) {
        fprintf(stderr, "%llu events in the rows, %llu recorded\n", (unsigned long long)total.count,
                (unsigned long long)events);
        exit(1);
    }
}

static double time_grouping(mtprof_model *model, uint32_t group, uint64_t events)
{
    const mtprof_averages_options options = {.struct_size = sizeof options, .group = group};
    mtprof_averages *averages = NULL;
    double before = bench_now_ns();
    bench_must(mtprof_averages_new(model, &options, &averages), "averages_new");
    double ns = bench_now_ns() - before;
    check_count(averages, events);
    mtprof_averages_free(averages);
    return ns / (double)events;
}

static void emit(const char *name, const bench_series *series, double limit)
{
    bench_emit(&(bench_figure){.name = name,
                               .unit = "ns",
                               .value = bench_best(series),
                               .median = bench_median(series),
                               .limit = limit});
}

static void measure_cold(const char *name, const char *path, uint64_t events, double limit)
{
    bench_series series = {.count = 0};
    mtprof_session *session = record(path, events, false);
    if (path != NULL) {
        bench_must(mtprof_session_close(session), "session_close");
        session = NULL;
    }
    bench_pin(0);
    for (int i = 0; i < ROUNDS; i++) {
        double before = bench_now_ns();
        mtprof_model *model = open_model(session, path);
        double opening = (bench_now_ns() - before) / (double)events;
        bench_add(&series, opening + time_grouping(model, 0, events));
        mtprof_model_free(model);
    }
    emit(name, &series, limit);
    if (path != NULL) {
        unlink(path);
    } else {
        bench_must(mtprof_session_close(session), "session_close");
    }
}

static void measure_warm(const char *name, uint32_t group, bool shapes, uint64_t events,
                         double limit)
{
    bench_series series = {.count = 0};
    mtprof_session *session = record(NULL, events, shapes);
    bench_pin(0);
    mtprof_model *model = open_model(session, NULL);
    time_grouping(model, group, events);
    for (int i = 0; i < ROUNDS; i++) {
        bench_add(&series, time_grouping(model, group, events));
    }
    emit(name, &series, limit);
    mtprof_model_free(model);
    bench_must(mtprof_session_close(session), "session_close");
}

static void measure_explain(uint64_t events)
{
    bench_series series = {.count = 0};
    mtprof_session *session = record(NULL, events, false);
    bench_pin(0);
    mtprof_model *model = open_model(session, NULL);
    time_grouping(model, 0, events); /* makes the columns */
    for (int i = 0; i < ROUNDS; i++) {
        mtprof_explain *explain = NULL;
        double before = bench_now_ns();
        bench_must(mtprof_explain_new(model, NULL, &explain), "explain_new");
        bench_add(&series, (bench_now_ns() - before) / (double)events);
        mtprof_explain_free(explain);
    }
    emit("explain_ns", &series, 1000);
    mtprof_model_free(model);
    bench_must(mtprof_session_close(session), "session_close");
}

static int drop_bytes(void *context, const void *bytes, size_t length)
{
    (void)bytes;
    *(uint64_t *)context += length;
    return 0;
}

static void measure_rows(uint64_t events)
{
    bench_series quantiles = {.count = 0};
    bench_series tables = {.count = 0};
    mtprof_session *session = record(NULL, events, false);
    uint64_t bytes = 0;
    const mtprof_output output = {
        .struct_size = sizeof output, .context = &bytes, .write = drop_bytes};
    bench_pin(0);
    mtprof_model *model = open_model(session, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        mtprof_averages *averages = NULL;
        bench_must(mtprof_averages_new(model, NULL, &averages), "averages_new");
        double before = bench_now_ns();
        for (uint32_t row = 0; row < mtprof_averages_count(averages); row++) {
            int64_t ns;
            bench_must(mtprof_averages_get_quantile(averages, row, 0.5, &ns), "averages_quantile");
            bench_must(mtprof_averages_get_quantile(averages, row, 0.99, &ns), "averages_quantile");
        }
        bench_add(&quantiles, (bench_now_ns() - before) / (double)events);
        before = bench_now_ns();
        bench_must(mtprof_averages_table(averages, NULL, &output), "averages_table");
        bench_add(&tables, (bench_now_ns() - before) / 1e3);
        mtprof_averages_free(averages);
    }
    emit("quantiles_ns", &quantiles, 0);
    bench_emit(&(bench_figure){.name = "averages_table_us",
                               .unit = "us",
                               .value = bench_best(&tables),
                               .median = bench_median(&tables)});
    mtprof_model_free(model);
    bench_must(mtprof_session_close(session), "session_close");
}

int main(int argc, char **argv)
{
    bench_init(argc, argv);
    make_sites();
    uint64_t events = bench_pick(1000000, 100000);
    if (bench_wants("key_averages_ns")) {
        measure_cold("key_averages_ns", NULL, events, 60);
    }
    if (bench_wants("key_averages_file_ns")) {
        measure_cold("key_averages_file_ns", bench_path(), events, 0);
    }
    if (bench_wants("regroup_ns")) {
        measure_warm("regroup_ns", 0, false, events, 20);
    }
    if (bench_wants("regroup_shapes_ns")) {
        measure_warm("regroup_shapes_ns", MTPROF_GROUP_SHAPES, true, events, 0);
    }
    if (bench_wants("regroup_step_ns")) {
        measure_warm("regroup_step_ns", MTPROF_GROUP_STEP, false, events, 0);
    }
    if (bench_wants("quantiles_ns averages_table_us")) {
        measure_rows(events);
    }
    if (bench_wants("explain_ns")) {
        measure_explain(events);
    }
    return 0;
}
