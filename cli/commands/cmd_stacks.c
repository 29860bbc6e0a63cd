/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof stacks: call stacks with their times, for flame graphs.
 */
#include "cli/command.h"
#include "cli/json_out.h"
#include "cli/term.h"
#include "cli/trace_file.h"
#include "cli/units.h"

#include <mtprof/export.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {"folded", "torch", NULL};
static const char *const metrics[] = {"self_cpu_time_total", "self_device_time_total", NULL};

typedef struct stacks_settings {
    cli_common common;
    int format;
    const char *metric, *output;
} stacks_settings;

#define AT(member) offsetof(stacks_settings, member)

static const cli_option options[] = {
    {.name = "format",
     .letter = 'f',
     .type = CLI_CHOICE,
     .value = "FORM",
     .choices = formats,
     .help = "folded (equal stacks merged, op names as leaves; default) or torch (a line per "
             "event, as export_stacks)",
     .offset = AT(format)},
    {.name = "metric",
     .letter = 'm',
     .type = CLI_TEXT,
     .value = "KEY",
     .choices = metrics,
     .help = "self_cpu_time_total (default) or self_device_time_total",
     .offset = AT(metric)},
    {.name = "output",
     .letter = 'o',
     .type = CLI_FILE,
     .value = "FILE",
     .help = "file to write, compressed if it ends in .gz (default: standard output)",
     .offset = AT(output)},
};

/* Lines "frame;frame value" on their way to JSON. */
typedef struct splitter {
    const char *path, *metric;
    bool begun; /* nothing is printed before the first line: a failure leaves no half an object */
} splitter;

static void json_head(splitter *s)
{
    if (!s->begun) {
        cli_json_object(NULL);
        cli_json_string("trace", s->path);
        cli_json_string("metric", s->metric);
        cli_json_array("stacks");
        s->begun = true;
    }
}

static void json_line(void *context, char *line, size_t line_length)
{
    (void)line_length;
    char *blank = strrchr(line, ' ');
    if (blank != NULL) {
        json_head(context);
        cli_json_object(NULL);
        cli_json_array("stack");
        for (char *at = line; at < blank;) {
            size_t length = strcspn(at, ";");
            size_t left = (size_t)(blank - at);
            length = length < left ? length : left;
            cli_json_text(NULL, (mtprof_text){at, length});
            at += length + 1;
        }
        cli_json_end_array();
        cli_json_int("value", strtoll(blank + 1, NULL, 10));
        cli_json_end_object();
    }
}

static mtprof_status write_json(mtprof_model *model, enum mtprof_export_format format,
                                const mtprof_export_options *o, const char *path)
{
    splitter s = {.path = path, .metric = o->metric != NULL ? o->metric : metrics[0]};
    cli_lines lines = {.line = json_line, .context = &s};
    mtprof_output output = {
        .struct_size = sizeof output, .context = &lines, .write = cli_lines_write};
    mtprof_status status = mtprof_export_to(model, format, &output, o);
    cli_lines_end(&lines, status == MTPROF_OK);
    if (status == MTPROF_OK) {
        json_head(&s);
    }
    if (s.begun) {
        cli_json_end_array();
        cli_json_end_object();
    }
    return status;
}

static int write_stacks(const cli_call *call, mtprof_model *model, const char *path)
{
    const stacks_settings *s = call->settings;
    enum mtprof_export_format format = s->format == 0 ? MTPROF_EXPORT_FOLDED : MTPROF_EXPORT_STACKS;
    mtprof_export_report report = {.struct_size = sizeof report};
    mtprof_export_options o = {
        .struct_size = sizeof o,
        .metric = s->metric,
        .progress = cli_progress_step,
        .report = &report,
    };
    mtprof_status status;
    if (s->output != NULL) {
        status = mtprof_export(model, format, s->output, &o);
    } else if (s->common.json) {
        status = write_json(model, format, &o, path);
    } else {
        status = mtprof_export_to(model, format, &cli_stdout, &o);
    }
    cli_progress_end();
    int code = CLI_OK;
    if (status != MTPROF_OK) {
        bool writing = s->output != NULL && (status == MTPROF_EIO || status == MTPROF_ENOSPC);
        code = cli_library_error(writing ? s->output : path, status);
    } else if (s->output != NULL && s->common.json) {
        cli_json_object(NULL);
        cli_json_string("trace", path);
        cli_json_string("output", s->output);
        cli_json_uint("bytes_written", report.bytes_written);
        cli_json_end_object();
    } else if (s->output != NULL && !s->common.quiet) {
        printf("%s: %s\n", s->output, cli_bytes((double)report.bytes_written).text);
    }
    return code;
}

static int run(const cli_call *call)
{
    return cli_look_at_trace(call, write_stacks);
}

const cli_command cli_cmd_stacks = {
    .name = "stacks",
    .summary = "Call stacks with their times, for flame graphs",
    .operands = "TRACE",
    .details = "One line a stack: its frames from the outermost on, separated by semicolons, a "
               "blank, and the time (folded: nanoseconds, torch: microseconds). Where no stacks "
               "were recorded, folded shows the events that an event is in instead. "
               "'mtprof export speedscope' writes the same for speedscope.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 1,
    .most_operands = 1,
    .settings_bytes = sizeof(stacks_settings),
    .reads_trace = true,
    .run = run,
};
