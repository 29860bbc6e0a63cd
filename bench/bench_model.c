/* SPDX-License-Identifier: Apache-2.0
 *
 * A million op events, two levels, from a file in the page cache to columns and to an event stream.
 * What comes of them (rows, tables) is bench_averages.c.
 *
 *   columns_ns          per event: open the file, make the columns; one worker
 *   columns_shapes_ns   the same with input lists
 *   columns_threads_ns  four threads recorded; one worker (as "two_workers": with two)
 *   columns_again_ns    asking for a derived column (DEPTH), which is made on the first request
 *   result_bytes        anonymous memory that the model and its averages hold, per event
 *   stream_ns           per event: the event stream that exports read, nothing done with it
 */
#include "bench_harness.h"
#include "bench_traces.h"
#include "mtprof/model/events/event.h"

#include <mtprof/averages.h>
#include <mtprof/model.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ROUNDS = 9
};

static mtprof_model *open_model(const char *path, uint32_t workers)
{
    const mtprof_model_options options = {.struct_size = sizeof options, .workers = workers};
    mtprof_model *model = NULL;
    bench_must(mtprof_model_open(path, &options, &model), "model_open");
    return model;
}

static void check_count(uint64_t got, uint64_t events)
{
    if (got != events) {
        fprintf(stderr, "bench_model: %llu events, %llu recorded\n", (unsigned long long)got,
                (unsigned long long)events);
        exit(1);
    }
}

static double time_columns(const char *path, uint32_t workers, uint64_t events)
{
    mtprof_column column;
    double before = bench_now_ns();
    mtprof_model *model = open_model(path, workers);
    bench_must(mtprof_model_get_column(model, MTPROF_COLUMN_SELF_NS, &column), "model_column");
    double ns = (bench_now_ns() - before) / (double)events;
    check_count(column.count, events);
    mtprof_model_free(model);
    return ns;
}

static void measure_columns(const char *name, const bench_trace *trace)
{
    const char *path = bench_path();
    bench_series one = {.count = 0};
    bench_series two = {.count = 0};
    char extra[64] = "";
    if (!bench_wants(name)) {
        return;
    }
    bench_trace_make(trace, path);
    for (int i = 0; i < ROUNDS; i++) {
        bench_add(&one, time_columns(path, 1, trace->events));
        if (trace->threads > 1) {
            bench_add(&two, time_columns(path, 2, trace->events));
        }
    }
    if (trace->threads > 1) {
        snprintf(extra, sizeof extra, "\"two_workers\": %.2f", bench_best(&two));
    }
    bench_emit(&(bench_figure){.name = name,
                               .unit = "ns",
                               .value = bench_best(&one),
                               .median = bench_median(&one),
                               .extra = extra[0] != 0 ? extra : NULL});
    unlink(path);
}

/* ---- what is held ---- */

static void measure_result(uint64_t events)
{
    const char *path = bench_path();
    const bench_trace trace = {.events = events};
    mtprof_column column;
    mtprof_averages *averages = NULL;
    char extra[64];
    if (!bench_wants("result_bytes")) {
        return;
    }
    bench_trace_make(&trace, path);
    time_columns(path, 1, events); /* warm up: memory that the first run keeps is not the model's */
    malloc_trim(0);
    uint64_t before = bench_anonymous_bytes();
    size_t heap_before = mallinfo2().uordblks;
    mtprof_model *model = open_model(path, 1);
    bench_must(mtprof_model_get_column(model, MTPROF_COLUMN_SELF_NS, &column), "model_column");
    bench_must(mtprof_averages_new(model, NULL, &averages), "averages_new");
    malloc_trim(0);
    uint64_t held = bench_anonymous_bytes() - before;
    snprintf(extra, sizeof extra, "\"small_heap\": %.2f",
             (double)(mallinfo2().uordblks - heap_before) / (double)events);
    bench_emit(&(bench_figure){.name = "result_bytes",
                               .unit = "bytes",
                               .value = (double)held / (double)events,
                               .limit = 64,
                               .extra = extra});
    mtprof_averages_free(averages);
    mtprof_model_free(model);
    unlink(path);
}

static void measure_derived(uint64_t events)
{
    const char *path = bench_path();
    const bench_trace trace = {.events = events};
    bench_series series = {.count = 0};
    mtprof_column column;
    if (!bench_wants("columns_again_ns")) {
        return;
    }
    bench_trace_make(&trace, path);
    for (int i = 0; i < ROUNDS; i++) {
        mtprof_model *model = open_model(path, 1);
        bench_must(mtprof_model_get_column(model, MTPROF_COLUMN_SELF_NS, &column), "model_column");
        double before = bench_now_ns();
        bench_must(mtprof_model_get_column(model, MTPROF_COLUMN_DEPTH, &column), "model_column");
        bench_add(&series, (bench_now_ns() - before) / (double)events);
        mtprof_model_free(model);
    }
    bench_emit(&(bench_figure){.name = "columns_again_ns",
                               .unit = "ns",
                               .value = bench_best(&series),
                               .median = bench_median(&series)});
    unlink(path);
}

/* ---- the stream ---- */

static double time_stream(const char *path, uint64_t events)
{
    const mtprof__event *event = NULL;
    mtprof__events *stream = NULL;
    uint64_t ends = 0;
    double before = bench_now_ns();
    mtprof_model *model = open_model(path, 1);
    bench_must((mtprof_status)mtprof__events_open(model, &stream), "events_open");
    while (mtprof__events_next(stream, &event) == MTPROF_OK) {
        ends += event->edge == MTPROF__EDGE_END;
    }
    double ns = (bench_now_ns() - before) / (double)events;
    check_count(ends, events);
    mtprof__events_close(stream);
    mtprof_model_free(model);
    return ns;
}

static void measure_stream(const char *name, const bench_trace *trace)
{
    const char *path = bench_path();
    bench_series series = {.count = 0};
    if (!bench_wants(name)) {
        return;
    }
    bench_trace_make(trace, path);
    for (int i = 0; i < ROUNDS; i++) {
        bench_add(&series, time_stream(path, trace->events));
    }
    bench_emit(&(bench_figure){
        .name = name, .unit = "ns", .value = bench_best(&series), .median = bench_median(&series)});
    unlink(path);
}

int main(int argc, char **argv)
{
    bench_init(argc, argv);
    uint64_t events = bench_pick(1000000, 200000);
    measure_columns("columns_ns", &(bench_trace){.events = events});
    measure_columns("columns_shapes_ns", &(bench_trace){.events = events, .shapes = true});
    measure_columns("columns_threads_ns", &(bench_trace){.events = events, .threads = 4});
    measure_derived(events);
    measure_result(events);
    measure_stream("stream_ns", &(bench_trace){.events = events});
    measure_stream("stream_shapes_ns", &(bench_trace){.events = events, .shapes = true});
    measure_stream("stream_threads_ns", &(bench_trace){.events = events, .threads = 4});
    return 0;
}
