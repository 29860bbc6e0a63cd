/* SPDX-License-Identifier: Apache-2.0
 *
 * What the smaller exporters cost: a million ops in two levels on one thread, no flags, read from a
 * finished file, written into a sink that counts. Opening the model is part of it.
 */
#include "bench_harness.h"

#include <mtprof/export.h>
#include <mtprof/model.h>
#include <mtprof/op.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INNER = 3, /* ops in each outer one */
    EXTRA_BYTES = 160
};

static mtprof_site sites[] = {MTPROF_SITE_INIT("aten::linear", MTPROF_KIND_OP),
                              MTPROF_SITE_INIT("aten::t", MTPROF_KIND_OP),
                              MTPROF_SITE_INIT("aten::addmm", MTPROF_KIND_OP),
                              MTPROF_SITE_INIT("aten::view", MTPROF_KIND_OP)};

static void record(const char *path, uint64_t events)
{
    mtprof_config config = {.struct_size = sizeof config, .path = path};
    mtprof_session *session = bench_start(&config);
    for (uint64_t i = 0; i < events / (INNER + 1); i++) {
        mtprof_token outer = mtprof_begin(&sites[0]);
        for (int k = 1; k <= INNER; k++) {
            mtprof_token inner = mtprof_begin(&sites[k]);
            BENCH_FENCE();
            mtprof_end(inner);
        }
        mtprof_end(outer);
    }
    bench_must(mtprof_session_stop(session), "session_stop");
    bench_close(session);
}

static int count_bytes(void *context, const void *bytes, size_t length)
{
    (void)bytes;
    *(uint64_t *)context += length;
    return 0;
}

/* What a bare copy of as many bytes takes, through a buffer of the exporters' size. */
static double copy_ns(uint64_t bytes)
{
    enum {
        BLOCK = 256 * 1024
    };
    static char blocks[2][BLOCK];
    char *from = blocks[0];
    char *to = blocks[1];
    BENCH_HIDE(from);
    BENCH_HIDE(to);
    memset(from, 1, BLOCK);
    memset(to, 1, BLOCK);
    double before = bench_now_ns();
    for (uint64_t done = 0; done < bytes; done += BLOCK) {
        memcpy(to, from, BLOCK);
        BENCH_FENCE();
    }
    return bench_now_ns() - before;
}

static void measure(const char *path, const char *name, enum mtprof_export_format format,
                    double limit)
{
    bench_series series = {.count = 0};
    uint64_t bytes = 0;
    mtprof_export_report report = {.struct_size = sizeof report};
    if (!bench_wants(name)) {
        return;
    }
    for (uint64_t i = 0; i < bench_pick(15, 5); i++) {
        mtprof_model *model = NULL;
        mtprof_model_options how = {.struct_size = sizeof how, .workers = 1};
        mtprof_output output = {
            .struct_size = sizeof output, .context = &bytes, .write = count_bytes};
        mtprof_export_options options = {.struct_size = sizeof options, .report = &report};
        bytes = 0;
        double before = bench_now_ns();
        mtprof_reader *reader = NULL;
        bench_must(mtprof_reader_open(path, &reader), "reader_open");
        bench_must(mtprof_model_take_reader(reader, &how, &model), "model_take_reader");
        bench_must(mtprof_export_to(model, format, &output, &options), "export_to");
        bench_add(&series, (bench_now_ns() - before) / (double)report.events);
        mtprof_model_free(model);
    }
    char extra[EXTRA_BYTES];
    double events = (double)report.events;
    (void)snprintf(extra, sizeof extra,
                   "\"events\": %" PRIu64 ", \"bytes_per_event\": %.1f, \"copy_ns\": %.2f",
                   report.events, (double)bytes / events, copy_ns(bytes) / events);
    bench_emit(&(bench_figure){.name = name,
                               .unit = "ns",
                               .value = bench_best(&series),
                               .median = bench_median(&series),
                               .limit = limit,
                               .extra = extra});
}

int main(int argc, char **argv)
{
    bench_init(argc, argv);
    const char *path = bench_path();
    if (!bench_wants("pftrace_ns speedscope_ns csv_ns folded_ns")) {
        return 0;
    }
    record(path, bench_pick(1000000, 200000));
    measure(path, "pftrace_ns", MTPROF_EXPORT_PERFETTO, 25);
    measure(path, "speedscope_ns", MTPROF_EXPORT_SPEEDSCOPE, 0);
    measure(path, "csv_ns", MTPROF_EXPORT_CSV, 0);
    measure(path, "folded_ns", MTPROF_EXPORT_FOLDED, 0);
    unlink(path);
    return 0;
}
