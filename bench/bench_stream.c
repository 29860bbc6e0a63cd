/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports of a large trace into a sink that only counts: their memory does not grow with it.
 *
 *   export_memory_mib   the most anonymous memory while the trace is exported as Chrome JSON, with
 *                       the trace's size, the bytes written and the time per event
 *   export_pftrace_memory_mib  the same as Perfetto's protobuf
 *
 * Ten million events by default; with MT_LONG=1 the hundred million that the limit is about (a
 * trace file of 2.4 GB in the folder for trace files, some 20 seconds an export).
 */
#include "bench_harness.h"
#include "bench_traces.h"

#include <mtprof/export.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count(void *context, const void *bytes, size_t length)
{
    (void)bytes;
    *(uint64_t *)context += length;
    return 0;
}

static void measure(const char *name, enum mtprof_export_format format, const char *path,
                    uint64_t events)
{
    const mtprof_model_options options = {.struct_size = sizeof options, .workers = 1};
    mtprof_export_report report = {.struct_size = sizeof report};
    const mtprof_export_options export_options = {.struct_size = sizeof export_options,
                                                  .report = &report};
    uint64_t bytes = 0;
    const mtprof_output output = {.struct_size = sizeof output, .context = &bytes, .write = count};
    mtprof_model *model = NULL;
    char extra[160];
    if (!bench_wants(name)) {
        return;
    }
    bench_anonymous_watch();
    double before = bench_now_ns();
    bench_must(mtprof_model_open(path, &options, &model), "model_open");
    bench_must(mtprof_export_to(model, format, &output, &export_options), "export");
    double ns = bench_now_ns() - before;
    uint64_t peak = bench_anonymous_peak();
    mtprof_model_free(model);
    if (report.events != events) {
        fprintf(stderr, "%s: %" PRIu64 " events exported, %" PRIu64 " recorded\n", name,
                report.events, events);
        exit(1);
    }
    snprintf(extra, sizeof extra,
             "\"events\": %" PRIu64 ", \"written_bytes\": %" PRIu64 ", \"event_ns\": %.1f", events,
             bytes, ns / (double)events);
    bench_emit(&(bench_figure){.name = name,
                               .unit = "MiB",
                               .value = (double)peak / (1 << 20),
                               .limit = 1024,
                               .extra = extra});
}

int main(int argc, char **argv)
{
    bench_init(argc, argv);
    const char *wish = getenv("MT_LONG");
    bool full = wish != NULL && strcmp(wish, "1") == 0;
    uint64_t events = full ? 100000000 : bench_pick(10000000, 1000000);
    if (bench_wants("export_memory_mib export_pftrace_memory_mib")) {
        bench_trace_make(&(bench_trace){.events = events}, bench_path());
        measure("export_memory_mib", MTPROF_EXPORT_CHROME, bench_path(), events);
        measure("export_pftrace_memory_mib", MTPROF_EXPORT_PERFETTO, bench_path(), events);
        unlink(bench_path());
    }
    return 0;
}
