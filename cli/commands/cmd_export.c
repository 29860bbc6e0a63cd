/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof export: a trace in another tool's format.
 */
#include "cli/command.h"
#include "cli/json_out.h"
#include "cli/term.h"
#include "cli/trace_file.h"
#include "cli/units.h"

#include <mtprof/export.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Formats that the library does not have: rows, not events; and a data set, which is written by a
 * program of its own (main.c). */
static const char averages_name[] = "averages", parquet_name[] = "parquet";
enum {
    FORMAT_AVERAGES = MTPROF_EXPORT_COUNT
};

static const char *const flavors[] = {"torch", "mindtorch", "lean", NULL};

typedef struct export_settings {
    cli_common common;
    const char *output, *device, *metric;
    int flavor;
    uint64_t split_bytes;
    int64_t gzip_level;
} export_settings;

#define AT(member) offsetof(export_settings, member)

static const char *const metrics[] = {"self_cpu_time_total", "self_device_time_total", NULL};

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .type = CLI_FILE,
     .value = "FILE",
     .help = "file to write, compressed if it ends in .gz; - is standard output (default: beside "
             "the trace, if nothing is there)",
     .offset = AT(output)},
    {.name = "flavor",
     .type = CLI_CHOICE,
     .value = "FLAVOR",
     .choices = flavors,
     .help = "chrome: torch (default), mindtorch, or lean: torch's args alone",
     .offset = AT(flavor)},
    {.name = "split",
     .type = CLI_SIZE,
     .value = "SIZE",
     .help = "chrome: begin another file (x.1.json …) past this size, for viewers with limits",
     .offset = AT(split_bytes)},
    {.name = "device",
     .type = CLI_TEXT,
     .value = "DEVICE",
     .help = "memory: cpu, npu:0 … (default: the first accelerator, else cpu)",
     .offset = AT(device)},
    {.name = "metric",
     .type = CLI_TEXT,
     .value = "KEY",
     .choices = metrics,
     .help = "stacks, folded, speedscope: self_cpu_time_total (default) or "
             "self_device_time_total",
     .offset = AT(metric)},
    {.name = "gzip-level",
     .type = CLI_NUMBER,
     .value = "N",
     .least = 1,
     .most = 3,
     .help = "1 (fast) to 3 (small)",
     .offset = AT(gzip_level)},
};

static const char *const *format_names(void)
{
    static const char *names[MTPROF_EXPORT_COUNT + 3];
    size_t n = 0;
    for (int i = 0; i < MTPROF_EXPORT_COUNT; i++) {
        const char *name = mtprof_export_name((enum mtprof_export_format)i);
        if (name != NULL) {
            names[n++] = name;
        }
    }
    names[n++] = averages_name;
    names[n++] = parquet_name;
    names[n] = NULL;
    return names;
}

/* ---- what to write, and where ---------------------------------------------------------------- */

typedef struct job {
    const char *trace;
    const char *path;
    int format;
    char made[PATH_MAX]; /* where the path was made here */
} job;

static int unknown_format(const char *word)
{
    const char *const *names = format_names();
    size_t n = 0;
    while (names[n] != NULL) {
        n++;
    }
    const char *near = cli_nearest(word, names, n);
    cli_error("export: unknown format '%s'", word);
    if (near != NULL) {
        cli_hint("did you mean '%s'?", near);
        return CLI_MISUSE;
    }
    fputs("  hint: there are", stderr);
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(stderr, "%s %s", i == 0 ? "" : ",", names[i]);
    }
    fputc('\n', stderr);
    return CLI_MISUSE;
}

/* Only a name, not a path with an ending: "chrome", not "x.json". */
static bool find_format(const char *word, int *format)
{
    const char *const *names = format_names();
    enum mtprof_export_format parsed;
    if (strcmp(word, averages_name) == 0) {
        *format = FORMAT_AVERAGES;
        return true;
    }
    for (size_t i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], word) == 0 && mtprof_export_parse(word, &parsed) == MTPROF_OK) {
            *format = (int)parsed;
            return true;
        }
    }
    return false;
}

/* [FORMAT] TRACE */
static int choose(const cli_call *call, job *j)
{
    const export_settings *s = call->settings;
    enum mtprof_export_format parsed;
    j->trace = call->operands[call->n_operands - 1];
    if (call->n_operands == 2 && strcmp(call->operands[0], parquet_name) == 0) {
        cli_error("export: 'parquet' stands before all options");
        cli_hint("'mtprof export parquet %s -o FOLDER'", j->trace);
        return CLI_MISUSE;
    }
    if (call->n_operands == 2) {
        if (!find_format(call->operands[0], &j->format)) {
            return unknown_format(call->operands[0]);
        }
    } else if (s->output == NULL) {
        cli_error("export: neither a format nor an output was named");
        cli_hint("'mtprof export chrome %s', or 'mtprof export -o out.json %s'", j->trace,
                 j->trace);
        return CLI_MISUSE;
    } else if (mtprof_export_parse(s->output, &parsed) != MTPROF_OK) {
        cli_error("export: %s: its ending does not tell a format", s->output);
        cli_hint("name the format: 'mtprof export chrome -o %s %s'", s->output, j->trace);
        return CLI_MISUSE;
    } else {
        j->format = (int)parsed;
    }
    const char *suffix = j->format == FORMAT_AVERAGES
                             ? ".averages.json"
                             : mtprof_export_suffix((enum mtprof_export_format)j->format);
    j->path = cli_choose_output("export", j->trace, s->output, suffix, j->made, sizeof j->made);
    return j->path != NULL ? CLI_OK : CLI_MISUSE;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool writes_to_stdout(const export_settings *s)
{
    return s->output != NULL && strcmp(s->output, "-") == 0;
}

static mtprof_status write_averages(mtprof_model *model, const char *path,
                                    const mtprof_export_options *o)
{
    mtprof_averages *rows = NULL;
    mtprof_status status = mtprof_averages_new(model, NULL, &rows);
    if (status == MTPROF_OK) {
        status = mtprof_averages_export_chrome(rows, path, o);
    }
    mtprof_averages_free(rows);
    return status;
}

static mtprof_status write_file(const export_settings *s, mtprof_model *model, const job *j,
                                mtprof_export_report *report)
{
    bool to_stdout = writes_to_stdout(s);
    mtprof_export_options o = {
        .struct_size = sizeof o,
        .flavor = (uint32_t)s->flavor,
        .gzip_level = (uint32_t)s->gzip_level,
        .split_bytes = s->split_bytes,
        .metric = s->metric,
        .device = s->device,
        .progress = cli_progress_step,
        .report = report,
    };
    if (j->format == FORMAT_AVERAGES) {
        return write_averages(model, to_stdout ? "/dev/stdout" : j->path, &o);
    }
    enum mtprof_export_format format = (enum mtprof_export_format)j->format;
    return to_stdout ? mtprof_export_to(model, format, &cli_stdout, &o)
                     : mtprof_export(model, format, j->path, &o);
}

static const char *format_name(int format)
{
    return format == FORMAT_AVERAGES ? averages_name
                                     : mtprof_export_name((enum mtprof_export_format)format);
}

static void print_json(const job *j, const mtprof_export_report *r)
{
    cli_json_object(NULL);
    cli_json_string("trace", j->trace);
    cli_json_string("format", format_name(j->format));
    cli_json_string("output", j->path);
    cli_json_uint("files", r->files);
    cli_json_uint("events", r->events);
    cli_json_uint("clamped", r->clamped);
    cli_json_uint("replaced", r->replaced);
    cli_json_uint("bytes", r->bytes);
    cli_json_uint("bytes_written", r->bytes_written);
    cli_json_uint("problems", r->problems);
    cli_json_uint("left_out", r->left_out);
    cli_json_uint("unordered", r->unordered);
    cli_json_uint("folded", r->folded);
    cli_json_end_object();
}

static void print_summary(const job *j, const mtprof_export_report *r)
{
    printf("%s: %s, %s event%s, %s", j->path, format_name(j->format), cli_count(r->events).text,
           cli_plural(r->events), cli_bytes((double)r->bytes_written).text);
    if (r->bytes_written != r->bytes && r->bytes_written > 0) {
        printf(" (%s before compression)", cli_bytes((double)r->bytes).text);
    }
    if (r->files > 1) {
        printf(", %u files", r->files);
    }
    putchar('\n');
    cli_print_count(r->clamped, "event", "shortened so that tracks nest");
    cli_print_count(r->unordered, "event", "of equal times may be drawn inside out: too many");
    cli_print_count(r->folded, "event",
                    "counted for a caller: their paths are too deep or too many");
    cli_print_count(r->left_out, "detail", "left out: more than the format's exporter keeps");
    cli_print_count(r->replaced, "byte", "of names and values replaced: no UTF-8");
}

static int run(const cli_call *call)
{
    const export_settings *s = call->settings;
    job j = {.format = 0};
    int code = choose(call, &j);
    if (code != CLI_OK) {
        return code;
    }
    /* torch's stacks are those of its event list, which is folded; a report has its rows. */
    bool folded = j.format == MTPROF_EXPORT_STACKS || j.format == MTPROF_EXPORT_REPORT;
    mtprof_model *model =
        folded ? cli_open_trace(call, j.trace) : cli_open_trace_whole(call, j.trace);
    if (model == NULL) {
        return CLI_FAILED;
    }
    bool to_stdout = writes_to_stdout(s);
    mtprof_export_report report = {.struct_size = sizeof report};
    mtprof_status status = write_file(s, model, &j, &report);
    cli_progress_end();
    if (status != MTPROF_OK) {
        bool reading = status == MTPROF_EFORMAT || status == MTPROF_ENOTSUP;
        code = cli_library_error(reading ? j.trace : j.path, status);
    } else if (s->common.json && !to_stdout) {
        print_json(&j, &report);
    } else if (!s->common.quiet && !to_stdout) {
        print_summary(&j, &report);
    }
    return cli_close_trace(model, j.trace, code);
}

bool cli_is_parquet(int n_words, char **words)
{
    return n_words > 1 && strcmp(words[0], cli_cmd_export.name) == 0 &&
           strcmp(words[1], parquet_name) == 0;
}

const cli_command cli_cmd_export = {
    .name = "export",
    .summary = "The trace in another tool's format",
    .operands = "[FORMAT] TRACE",
    .details =
        "Formats: chrome (kineto's JSON: chrome://tracing, Perfetto, TensorBoard), perfetto "
        "(.pftrace), stacks (torch's export_stacks), folded (flame graphs), speedscope, memory, "
        "memory_raw and memory_html (memory by category over time), csv (a line per event), "
        "execution (Chakra execution trace), pprof (Go's pprof, speedscope, Pyroscope), report (one page: where the time went and why), averages (the rows of the report as a Chrome "
        "trace), parquet (a data set of many traces for SQL: 'mtprof export parquet --help').\n"
        "\n"
        "Without FORMAT the ending of the output tells it. The file appears when it is complete: "
        "a failure leaves what was there.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 1,
    .most_operands = 2,
    .settings_bytes = sizeof(export_settings),
    .first_operand = format_names,
    .reads_trace = true,
    .run = run,
};
