/* SPDX-License-Identifier: Apache-2.0
 *
 * A million op events as kineto's JSON: two levels, inputs with shapes, strides, types and values,
 * sequence numbers; into a sink that counts. For comparison: reading the stream alone, and copying
 * as many bytes, which no exporter can beat.
 *
 *   chrome_json_ns      per event, one core; the extra members say what the parts cost
 *   chrome_json_gz_ns   the same compressed
 */
#include "base/gzip.h"
#include "bench_harness.h"
#include "mtprof/model/events/event.h"

#include <mtprof/export.h>
#include <mtprof/op.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NAMES = 24,
    SHAPES = 40,
    ROUNDS = 7
};

static mtprof_site sites[NAMES];
static char names[NAMES][32];

static void make_sites(void)
{
    static const char *const stems[] = {
        "aten::add",     "aten::linear", "aten::addmm", "aten::copy_", "aten::native_layer_norm",
        "aten::_softmax"};
    for (int i = 0; i < NAMES; i++) {
        snprintf(names[i], sizeof names[i], "%s%d", stems[i % 6], i / 6);
        sites[i] = (mtprof_site)MTPROF_SITE_INIT(names[i], MTPROF_KIND_OP);
    }
}

/* One op with three inputs: two matrices and a scalar. */
static mtprof_token begin_op(uint64_t i, uint32_t type, uint64_t sequence)
{
    int64_t sizes[2] = {64 + (int64_t)(i % SHAPES) * 8, 1024};
    int64_t strides[2] = {1024, 1};
    const mtprof_value inputs[] = {{.kind = MTPROF_INPUT_TENSOR,
                                    .n_dims = 2,
                                    .type = type,
                                    .of.sizes = sizes,
                                    .strides = strides},
                                   {.kind = MTPROF_INPUT_TENSOR,
                                    .n_dims = 2,
                                    .type = type,
                                    .of.sizes = sizes,
                                    .strides = strides},
                                   {.kind = MTPROF_INPUT_INT, .of.integer = 1}};
    const mtprof_op op = {.struct_size = sizeof op,
                          .fields = MTPROF_OP_SEQUENCE,
                          .inputs = inputs,
                          .n_inputs = 3,
                          .sequence = sequence};
    return mtprof_op_begin(&sites[i % NAMES], &op);
}

static void record(const char *path, uint64_t events)
{
    mtprof_config config = {.struct_size = sizeof config, .path = path};
    config.wants = MTPROF_WANT_OPS | MTPROF_WANT_INPUTS | MTPROF_WANT_STRIDES | MTPROF_WANT_DETAILS;
    uint32_t type = mtprof_intern("float", 5);
    mtprof_session *session = bench_start(&config);
    for (uint64_t i = 0; i < events / 2; i++) {
        mtprof_token outer = begin_op(i, type, i);
        mtprof_end(begin_op(i + 7, type, i));
        mtprof_end(outer);
    }
    bench_close(session);
}

static int count_bytes(void *context, const void *bytes, size_t length)
{
    (void)bytes;
    *(uint64_t *)context += length;
    return 0;
}

static mtprof_model *open_model(const char *path)
{
    mtprof_reader *reader = NULL;
    mtprof_model *model = NULL;
    bench_must(mtprof_reader_open(path, &reader), "reader_open");
    bench_must(mtprof_model_take_reader(reader, NULL, &model), "model_take_reader");
    return model;
}

static double time_export(const char *path, mtprof_export_report *report)
{
    uint64_t bytes = 0;
    mtprof_model *model = open_model(path);
    const mtprof_output output = {
        .struct_size = sizeof output, .context = &bytes, .write = count_bytes};
    const mtprof_export_options options = {.struct_size = sizeof options, .report = report};
    double before = bench_now_ns();
    bench_must(mtprof_export_to(model, MTPROF_EXPORT_CHROME, &output, &options), "export_to");
    double ns = bench_now_ns() - before;
    mtprof_model_free(model);
    return ns;
}

static double time_stream(const char *path)
{
    mtprof_model *model = open_model(path);
    mtprof__events *events = NULL;
    const mtprof__event *event = NULL;
    double before = bench_now_ns();
    bench_must(mtprof__events_open(model, &events), "events_open");
    int status;
    while ((status = mtprof__events_next(events, &event)) == MTPROF_OK) {
        BENCH_HIDE(event);
    }
    mtprof__events_close(events);
    double ns = bench_now_ns() - before;
    bench_must(status == MTPROF_EEND ? MTPROF_OK : status, "events_next");
    mtprof_model_free(model);
    return ns;
}

/* As many bytes, in blocks of the writer's size, from memory that is not in the cache. */
static double time_copy(uint64_t bytes)
{
    enum {
        BLOCK = 256 * 1024
    };
    static char block[BLOCK];
    char *to = block;
    size_t size = (size_t)64 << 20;
    char *from = malloc(size);
    if (from == NULL) {
        return 0;
    }
    memset(from, 'x', size);
    BENCH_HIDE(to);
    double before = bench_now_ns();
    for (uint64_t at = 0; at < bytes; at += BLOCK) {
        memcpy(to, from + at % size, BLOCK);
        BENCH_FENCE();
    }
    double ns = bench_now_ns() - before;
    free(from);
    return ns;
}

static double time_gzip(const char *path, const char *out, mtprof_export_report *report)
{
    mtprof_model *model = open_model(path);
    const mtprof_export_options options = {.struct_size = sizeof options, .report = report};
    double before = bench_now_ns();
    bench_must(mtprof_export(model, MTPROF_EXPORT_CHROME, out, &options), "export");
    double ns = bench_now_ns() - before;
    mtprof_model_free(model);
    return ns;
}

static void measure_plain(const char *path, uint64_t events, int rounds)
{
    bench_series json = {.count = 0}, stream = {.count = 0}, copy = {.count = 0};
    mtprof_export_report report = {.struct_size = sizeof report};
    for (int i = 0; i < rounds; i++) {
        bench_add(&json, time_export(path, &report) / (double)events);
        bench_add(&stream, time_stream(path) / (double)events);
        bench_add(&copy, time_copy(report.bytes) / (double)events);
    }
    char extra[200];
    snprintf(extra, sizeof extra,
             "\"events\": %llu, \"bytes_per_event\": %.0f, \"stream_ns\": %.1f, \"memcpy_ns\": "
             "%.1f, \"times_memcpy\": %.1f",
             (unsigned long long)report.events, (double)report.bytes / (double)events,
             bench_best(&stream), bench_best(&copy), bench_best(&json) / bench_best(&copy));
    bench_emit(&(bench_figure){.name = "chrome_json_ns",
                               .unit = "ns",
                               .value = bench_best(&json),
                               .median = bench_median(&json),
                               .limit = 120,
                               .extra = extra});
}

static void measure_gzip(const char *path, uint64_t events, int rounds)
{
    char out[600];
    snprintf(out, sizeof out, "%s.json.gz", path);
    bench_series series = {.count = 0};
    mtprof_export_report report = {.struct_size = sizeof report};
    for (int i = 0; i < rounds; i++) {
        bench_add(&series, time_gzip(path, out, &report) / (double)events);
    }
    unlink(out);
    char extra[200];
    snprintf(extra, sizeof extra, "\"library\": \"%s\", \"level\": %d, \"ratio\": %.1f",
             mtb_gzip_library(), mtb_gzip_level(0),
             (double)report.bytes / (double)report.bytes_written);
    bench_emit(&(bench_figure){.name = "chrome_json_gz_ns",
                               .unit = "ns",
                               .value = bench_best(&series),
                               .median = bench_median(&series),
                               .extra = extra});
}

int main(int argc, char **argv)
{
    bench_init(argc, argv);
    if (!bench_wants("chrome_json_ns chrome_json_gz_ns")) {
        return 0;
    }
    uint64_t events = bench_pick(1000000, 200000);
    int rounds = (int)bench_pick(ROUNDS, 3);
    const char *path = bench_path();
    make_sites();
    record(path, events);
    (void)bench_pin(0);
    if (bench_wants("chrome_json_ns")) {
        measure_plain(path, events, rounds);
    }
    if (bench_wants("chrome_json_gz_ns")) {
        measure_gzip(path, events, rounds < 3 ? rounds : 3);
    }
    unlink(path);
    return 0;
}
