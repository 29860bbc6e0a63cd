/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof report: the events of a trace in groups, as a table.
 */
#include "cli/command.h"
#include "cli/groups.h"
#include "cli/mark_groups.h"
#include "cli/term.h"
#include "cli/trace_file.h"
#include "cli/units.h"

#include <mtprof/averages.h>
#include <mtprof/export.h>

#include <stdio.h>
#include <string.h>

enum {
    TABLE_ROWS = 30 /* of the table that is made for terminals, unless --limit says otherwise */
};

/* In the order of `formats`; table is the default. */
enum form {
    FORM_TABLE = 0,
    FORM_TORCH,
    FORM_CSV,
    FORM_JSON,
    FORM_MARKDOWN
};
static const char *const formats[] = {"table", "torch", "csv", "json", "markdown", NULL};
static const char *const time_units[] = {"auto", "s", "ms", "us", NULL};

typedef struct report_settings {
    cli_common common;
    const char *sort;
    cli_groups groups;
    bool top_level, events, functions, quantiles, wide;
    const char *name, *module, *thread;
    cli_range steps;
    int64_t min_ns;
    int64_t limit; /* 0: the form's default */
    int format, time_unit;
    int64_t width;
    const char *html, *baseline;
} report_settings;

#define AT(member) offsetof(report_settings, member)

static const cli_option options[] = {
    {.name = "sort",
     .letter = 's',
     .type = CLI_TEXT,
     .value = "KEY",
     .choices = cli_sort_keys,
     .help = "largest first by this (default self_cpu_time_total); none: in order of appearance",
     .offset = AT(sort)},
    {.name = "group",
     .letter = 'g',
     .type = CLI_CUSTOM,
     .value = "LIST",
     .choices = cli_group_names,
     .parse = cli_parse_groups,
     .help = "also tell rows apart by these, separated by commas: shapes, stack:N, overload, "
             "module, step, thread; capture: work of CUDA graphs by the op that captured it",
     .offset = AT(groups)},
    {.name = "top-level",
     .letter = 't',
     .type = CLI_FLAG,
     .help = "only events that are in no other",
     .offset = AT(top_level)},
    {.name = "name",
     .type = CLI_TEXT,
     .value = "GLOB",
     .help = "only events whose name matches (* ? [a-z])",
     .offset = AT(name)},
    {.name = "module",
     .type = CLI_TEXT,
     .value = "GLOB",
     .help = "only events of modules that match",
     .offset = AT(module)},
    {.name = "step",
     .type = CLI_SPAN,
     .value = "A-B",
     .help = "only events that began in these steps",
     .offset = AT(steps)},
    {.name = "thread",
     .type = CLI_TEXT,
     .value = "X",
     .help = "only this thread: OS thread id, #N for the N-th, or a pattern for its name",
     .offset = AT(thread)},
    {.name = "min-duration",
     .type = CLI_DURATION,
     .value = "TIME",
     .help = "only events at least this long (10us, 1.5ms)",
     .offset = AT(min_ns)},
    {.name = "events",
     .type = CLI_FLAG,
     .help = "every event a row of its own",
     .offset = AT(events)},
    {.name = "functions",
     .type = CLI_FLAG,
     .help = "functions of the host's language beside ops, too",
     .offset = AT(functions)},
    {.name = "limit",
     .letter = 'n',
     .type = CLI_LIMIT,
     .value = "N",
     .help = "at most N rows, or all (default 30 for table, 100 for torch, all otherwise)",
     .offset = AT(limit)},
    {.name = "format",
     .letter = 'f',
     .type = CLI_CHOICE,
     .value = "FORM",
     .choices = formats,
     .help = "table (fits the terminal), torch (as torch lays it out), csv, json or markdown",
     .offset = AT(format)},
    {.name = "quantiles",
     .type = CLI_FLAG,
     .help = "further columns: min, p50, p99, max",
     .offset = AT(quantiles)},
    {.name = "time-unit",
     .type = CLI_CHOICE,
     .value = "UNIT",
     .choices = time_units,
     .help = "s, ms or us for all times (default auto: each its own)",
     .offset = AT(time_unit)},
    {.name = "width",
     .type = CLI_NUMBER,
     .value = "N",
     .least = 40,
     .most = 1000,
     .help = "columns that the table may take (default: the terminal's, else 80)",
     .offset = AT(width)},
    {.name = "wide",
     .letter = 'w',
     .type = CLI_FLAG,
     .help = "all columns, names in full",
     .offset = AT(wide)},
    {.name = "html",
     .type = CLI_FILE,
     .value = "FILE",
     .help =
         "write a page that tells where the time went and why, with charts, instead of a table; "
         "it is about the whole trace",
     .offset = AT(html)},
    {.name = "baseline",
     .type = CLI_FILE,
     .value = "TRACE",
     .help = "with --html: what changed since this older trace, as mtprof diff judges it",
     .offset = AT(baseline)},
};

/* ---- a table on its way to the terminal ------------------------------------------------------ */

static bool is_rule(const char *line, size_t length)
{
    return length > 0 && strspn(line, "- ") == length && memchr(line, '-', length) != NULL;
}

/* Rules dim, the header bold. context: whether the header, the first line that is no rule, has been
 * seen. */
static void paint_line(void *context, char *line, size_t length)
{
    bool *headed = context;
    enum cli_style style = is_rule(line, length) ? CLI_DIM : *headed ? CLI_PLAIN : CLI_BOLD;
    *headed = *headed || style == CLI_BOLD;
    if (style == CLI_PLAIN) {
        printf("%s\n", line);
    } else {
        printf("%s%s%s\n", cli_style(style), line, cli_style(CLI_PLAIN));
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static mtprof_status make_rows(const report_settings *s, mtprof_model *model, mtprof_averages **out)
{
    mtprof_averages_options o = cli_averages_options(&s->groups, s->name, &s->steps);
    o.functions = s->functions ? MTPROF_FUNCTIONS_ALL : MTPROF_FUNCTIONS_WITHOUT_OPS;
    o.module_name = s->module;
    o.thread = s->thread;
    o.top_level = s->top_level;
    o.min_ns = s->min_ns;
    return s->events ? mtprof_averages_from_events(model, &o, out)
                     : mtprof_averages_new(model, &o, out);
}

static int64_t row_limit(const report_settings *s, enum form form)
{
    if (s->limit != 0) {
        return s->limit;
    }
    return form == FORM_TABLE ? TABLE_ROWS : form == FORM_TORCH ? 0 : -1;
}

static mtprof_status write_rows(const report_settings *s, mtprof_averages *rows, enum form form)
{
    static const uint32_t table_formats[] = {MTPROF_TABLE_FIT, MTPROF_TABLE_TORCH, MTPROF_TABLE_CSV,
                                             MTPROF_TABLE_JSON, MTPROF_TABLE_MARKDOWN};
    bool wide = form == FORM_TABLE && s->wide;
    mtprof_table_options o = {
        .struct_size = sizeof o,
        .format = wide ? MTPROF_TABLE_TORCH : table_formats[form],
        .row_limit = row_limit(s, form),
        .time_unit = s->time_unit != 0 ? time_units[s->time_unit] : NULL,
        .width = s->width != 0 ? (uint32_t)s->width : cli_term_width(),
        .quantiles = s->quantiles,
    };
    if (s->wide) {
        o.max_src_column_width = o.max_name_column_width = o.max_shapes_column_width = -1;
    }
    if (form != FORM_TABLE) {
        return mtprof_averages_table(rows, &o, &cli_stdout);
    }
    bool headed = false;
    cli_lines lines = {.line = paint_line, .context = &headed};
    mtprof_output output = {
        .struct_size = sizeof output, .context = &lines, .write = cli_lines_write};
    mtprof_status status = mtprof_averages_table(rows, &o, &output);
    cli_lines_end(&lines, status == MTPROF_OK);
    return status;
}

/* Calls of functions that were recorded and that the table leaves out. */
static uint64_t hidden_functions(const report_settings *s, mtprof_model *model)
{
    uint64_t n = 0, count;
    const uint8_t *kinds = cli_column(model, MTPROF_COLUMN_KIND, &count);
    bool has_ops = false;
    for (uint64_t i = 0; !s->functions && i < count; i++) {
        n += kinds[i] == MTPROF_EVENT_KIND_FUNCTION;
        has_ops = has_ops || kinds[i] == MTPROF_EVENT_KIND_OP;
    }
    return has_ops ? n : 0;
}

/* What a reader of the table would not see. */
static void print_notes(const report_settings *s, const mtprof_averages *rows, mtprof_model *model)
{
    uint32_t count = mtprof_averages_count(rows);
    int64_t limit = row_limit(s, FORM_TABLE);
    if (s->common.quiet) {
        return;
    }
    if (count == 0) {
        fputs("No events match.\n", stdout);
    } else if (limit > 0 && count > limit) {
        cli_print_more((size_t)(count - limit), "row");
    }
    uint64_t hidden = hidden_functions(s, model);
    if (hidden > 0) {
        printf("%s%s call%s of functions; --functions shows them%s\n", cli_style(CLI_DIM),
               cli_count(hidden).text, cli_plural(hidden), cli_style(CLI_PLAIN));
    }
}

/* Marks belong to the whole trace: they are left out where events were chosen. */
static bool is_filtered(const report_settings *s)
{
    return s->name != NULL || s->module != NULL || s->thread != NULL || s->steps.given ||
           s->top_level || s->min_ns > 0;
}

static bool print_marks(const report_settings *s, mtprof_model *model, const char *path)
{
    if (s->common.quiet || is_filtered(s)) {
        return true;
    }
    int64_t limit = row_limit(s, FORM_TABLE);
    return cli_print_marks(model, path, s->width != 0 ? (size_t)s->width : cli_term_width(),
                           limit < 0 ? SIZE_MAX : (size_t)limit);
}

static int report(const cli_call *call, mtprof_model *model, const char *path)
{
    const report_settings *s = call->settings;
    enum form form = s->common.json ? FORM_JSON : (enum form)s->format;
    mtprof_averages *rows = NULL;
    int code = CLI_OK;
    mtprof_status status = make_rows(s, model, &rows);
    const char *sort = s->sort != NULL ? s->sort : "self_cpu_time_total";
    cli_progress_end();
    if (status != MTPROF_OK) {
        return cli_library_error(path, status);
    }
    if (strcmp(sort, "none") != 0) {
        status = mtprof_averages_sort(rows, sort);
    }
    if (status == MTPROF_EINVAL) {
        code = cli_bad_sort_key("report", sort);
    } else if (status == MTPROF_OK) {
        status = write_rows(s, rows, form);
    }
    if (status == MTPROF_OK && form == FORM_TABLE) {
        print_notes(s, rows, model);
        code = print_marks(s, model, path) ? CLI_OK : CLI_FAILED;
    }
    mtprof_averages_free(rows);
    return status == MTPROF_OK || code != CLI_OK ? code : cli_library_error(path, status);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static int write_page_with(const report_settings *s, mtprof_model *model, const char *path,
                           mtprof_model *baseline)
{
    mtprof_export_report made = {.struct_size = sizeof made};
    const mtprof_export_options o = {
        .struct_size = sizeof o,
        .progress = cli_progress_step,
        .report = &made,
        .baseline = baseline,
        .baseline_name = s->baseline != NULL ? file_name(s->baseline) : NULL,
    };
    mtprof_status status = mtprof_export(model, MTPROF_EXPORT_REPORT, s->html, &o);
    cli_progress_end();
    if (status != MTPROF_OK) {
        bool reading = status == MTPROF_EFORMAT || status == MTPROF_ENOTSUP;
        return cli_library_error(reading ? path : s->html, status);
    }
    if (!s->common.quiet) {
        printf("%s: %s event%s, %s; open it in a browser\n", s->html, cli_count(made.events).text,
               cli_plural(made.events), cli_bytes((double)made.bytes_written).text);
    }
    return CLI_OK;
}

static int write_page(const cli_call *call, mtprof_model *model, const char *path)
{
    const report_settings *s = call->settings;
    if (s->baseline == NULL) {
        return write_page_with(s, model, path, NULL);
    }
    mtprof_model *baseline = cli_open_trace(call, s->baseline);
    if (baseline == NULL) {
        return CLI_FAILED;
    }
    return cli_close_trace(baseline, s->baseline, write_page_with(s, model, path, baseline));
}

static int run(const cli_call *call)
{
    const report_settings *s = call->settings;
    if (s->html != NULL && is_filtered(s)) {
        cli_error("report: --html is about the whole trace: filters do not apply");
        return CLI_MISUSE;
    }
    if (s->baseline != NULL && s->html == NULL) {
        cli_error("report: --baseline needs --html");
        cli_hint("'mtprof diff %s TRACE' compares in the terminal", s->baseline);
        return CLI_MISUSE;
    }
    return cli_look_at_trace(call, s->html != NULL ? write_page : report);
}

const cli_command cli_cmd_report = {
    .name = "report",
    .summary = "A table of what took the time",
    .operands = "TRACE",
    .details =
        "Times of a row: \"self\" is time in which nothing else ran inside; \"total\" has what ran "
        "inside as well. Filters choose events and do not change their times.\n"
        "\n"
        "Below the table of a whole trace: counters, instants, flows and metadata that the program "
        "recorded, by name.\n"
        "\n"
        "Sort keys are torch's attribute names and their aliases: cpu_time_total, "
        "self_cpu_time_total, device_time_total, self_device_time_total, cpu_memory_usage, count, "
        "flops, key …; and min, p50, p99, max.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 1,
    .most_operands = 1,
    .settings_bytes = sizeof(report_settings),
    .reads_trace = true,
    .run = run,
};
