/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof memory: peaks, and which rows allocated.
 */
#include "cli/command.h"
#include "cli/commands/memory_facts.h"
#include "cli/json_out.h"
#include "cli/term.h"
#include "cli/trace_file.h"
#include "cli/units.h"

#include <mtprof/export.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_ROWS = 30,
    LEAST_NAME = 20,
    NUMBER_WIDTH = 10
};

typedef struct memory_settings {
    cli_common common;
    const char *device, *timeline;
    int64_t limit;
} memory_settings;

#define AT(member) offsetof(memory_settings, member)

static const cli_option options[] = {
    {.name = "device",
     .type = CLI_TEXT,
     .value = "DEVICE",
     .help = "of the timeline: cpu, npu:0 … (default: the first accelerator, else cpu)",
     .offset = AT(device)},
    {.name = "timeline",
     .type = CLI_FILE,
     .value = "FILE",
     .help = "also write memory by category over time: .html (a chart), .raw.json (every "
             "allocation) or .json, each also with .gz",
     .offset = AT(timeline)},
    {.name = "limit",
     .letter = 'n',
     .type = CLI_LIMIT,
     .value = "N",
     .help = "at most N rows, or all (default 30; JSON: all)",
     .offset = AT(limit)},
};

/* ---- the timeline's file --------------------------------------------------------------------- */

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t n = strlen(end);
    return length >= n && strncmp(text + length - n, end, n) == 0;
}

static bool timeline_format(const char *path, enum mtprof_export_format *format)
{
    size_t length = strlen(path);
    length -= ends_with(path, length, ".gz") ? 3 : 0;
    if (ends_with(path, length, ".html")) {
        *format = MTPROF_EXPORT_MEMORY_HTML;
    } else if (ends_with(path, length, "raw.json")) {
        *format = MTPROF_EXPORT_MEMORY_RAW;
    } else {
        *format = MTPROF_EXPORT_MEMORY;
        return ends_with(path, length, ".json");
    }
    return true;
}

static int write_timeline(const memory_settings *s, mtprof_model *model, const char *trace)
{
    enum mtprof_export_format format;
    mtprof_export_options o = {
        .struct_size = sizeof o, .device = s->device, .progress = cli_progress_step};
    (void)timeline_format(s->timeline, &format); /* it was looked at before */
    mtprof_status status = mtprof_export(model, format, s->timeline, &o);
    cli_progress_end();
    if (status == MTPROF_OK) {
        return CLI_OK;
    }
    bool writing = status == MTPROF_EIO || status == MTPROF_ENOSPC;
    return cli_library_error(writing ? s->timeline : trace, status);
}

/* ---- for people ------------------------------------------------------------------------------ */

static mtprof_text event_name(mtprof_model *model, uint32_t event)
{
    uint64_t count;
    const uint32_t *names = cli_column(model, MTPROF_COLUMN_NAME, &count);
    return event < count ? mtprof_model_name(model, names[event]) : cli_text("");
}

/* Only where something is known: "unknown" alone says what the peak said already. */
static void print_categories(const cli_peak *p)
{
    double known = 0;
    const char *joint = " ";
    size_t column = 0, width = cli_term_width();
    for (size_t i = 0; i + 1 < CLI_CATEGORIES; i++) {
        known += (double)p->categories[i];
    }
    for (size_t i = 0; known > 0 && i < CLI_CATEGORIES; i++) {
        if (p->categories[i] > 0) {
            cli_quantity bytes = cli_bytes((double)p->categories[i]);
            size_t length = 3 + strlen(cli_category_name(i)) + strlen(bytes.text);
            bool breaks = column + length + 1 > width; /* the joint of the next one has room, too */
            column = breaks ? length : column + length;
            printf("%s%s%s %s", joint, breaks ? "\n  " : " ", cli_category_name(i), bytes.text);
            joint = ",";
        }
    }
    fputs(known > 0 ? "\n" : "", stdout);
    if (p->unseen_bytes > 0) {
        printf("  in addition %s that nothing used while it was recorded\n",
               cli_bytes((double)p->unseen_bytes).text);
    }
}

static void print_peaks(mtprof_model *model, const cli_memory_facts *f,
                        const mtprof_model_info *info)
{
    for (size_t i = 0; i < f->n_peaks; i++) {
        const cli_peak *p = &f->peaks[i];
        printf("%speak%s on ", cli_style(CLI_BOLD), cli_style(CLI_PLAIN));
        cli_print_text(stdout, cli_text(p->name), 0);
        printf(": %s, %s after the start", cli_bytes((double)p->bytes).text,
               cli_duration((double)(p->at_ns - info->start_ns)).text);
        if (p->event != MTPROF_NO_EVENT) {
            fputs(", in ", stdout);
            cli_print_text(stdout, event_name(model, p->event), 0);
        }
        putchar('\n');
        if (p->exact) {
            printf("  %s allocation%s of %s, %s freed; %s at the end\n",
                   cli_count(p->allocations).text, cli_plural(p->allocations),
                   cli_bytes((double)p->allocated_bytes).text,
                   cli_bytes((double)p->freed_bytes).text, cli_bytes((double)p->end_bytes).text);
        } else {
            fputs("  as ops saw it when they began and ended\n", stdout);
        }
        if (p->has_categories) {
            print_categories(p);
        }
    }
}

static void print_rows(const memory_settings *s, const cli_memory_facts *f, const char *device)
{
    size_t most = s->limit < 0 ? SIZE_MAX : s->limit > 0 ? (size_t)s->limit : DEFAULT_ROWS;
    size_t name = 0, fixed = (device != NULL ? 4 : 2) * (NUMBER_WIDTH + 1) + 11;
    for (size_t i = 0; i < f->n_rows && i < most; i++) {
        size_t w = cli_text_width(f->rows[i].key);
        name = w > name ? w : name;
    }
    name = cli_fit_column(name, LEAST_NAME, fixed, cli_term_width());
    printf("%s%s%-*s %*s %*s", f->n_peaks > 0 ? "\n" : "", cli_style(CLI_BOLD), (int)name, "Name",
           NUMBER_WIDTH, "Self CPU", NUMBER_WIDTH, "CPU total");
    if (device != NULL) {
        char self[32], total[32];
        (void)snprintf(self, sizeof self, "Self %.5s", device);
        (void)snprintf(total, sizeof total, "%.4s total", device);
        printf(" %*s %*s", NUMBER_WIDTH, self, NUMBER_WIDTH, total);
    }
    printf(" %10s%s\n", "Calls", cli_style(CLI_PLAIN));
    for (size_t i = 0; i < f->n_rows && i < most; i++) {
        const mtprof_row *row = &f->rows[i];
        cli_print_text(stdout, row->key, name);
        printf(" %*s %*s", NUMBER_WIDTH, cli_bytes((double)row->self_cpu_memory).text, NUMBER_WIDTH,
               cli_bytes((double)row->cpu_memory).text);
        if (device != NULL) {
            printf(" %*s %*s", NUMBER_WIDTH, cli_bytes((double)row->self_device_memory).text,
                   NUMBER_WIDTH, cli_bytes((double)row->device_memory).text);
        }
        printf(" %10s\n", cli_count(row->count).text);
    }
    cli_print_more(f->n_rows > most ? f->n_rows - most : 0, "row");
}

static void print_facts(const memory_settings *s, mtprof_model *model, const cli_memory_facts *f)
{
    mtprof_model_info info = {.struct_size = sizeof info};
    (void)mtprof_model_get_info(model, &info);
    print_peaks(model, f, &info);
    if (f->n_rows > 0) {
        print_rows(s, f, info.device_type);
        if (!s->common.quiet) {
            fputs("\nBytes allocated, less those freed, while it ran; self: not in what it "
                  "called.\n",
                  stdout);
        }
    }
    if (s->timeline != NULL && !s->common.quiet) {
        printf("Timeline: %s\n", s->timeline);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_categories(const cli_peak *p)
{
    if (!p->has_categories) {
        cli_json_null("categories");
        return;
    }
    cli_json_int("unseen_bytes", p->unseen_bytes);
    cli_json_object("categories");
    for (size_t i = 0; i < CLI_CATEGORIES; i++) {
        cli_json_int(cli_category_name(i), p->categories[i]);
    }
    cli_json_end_object();
}

static void json_peaks(mtprof_model *model, const cli_memory_facts *f)
{
    cli_json_array("peaks");
    for (size_t i = 0; i < f->n_peaks; i++) {
        const cli_peak *p = &f->peaks[i];
        cli_json_object(NULL);
        cli_json_device(model, p->device);
        cli_json_int("bytes", p->bytes);
        cli_json_int("at_ns", p->at_ns);
        cli_json_bool("exact", p->exact);
        if (p->event != MTPROF_NO_EVENT) {
            cli_json_text("event", event_name(model, p->event));
        } else {
            cli_json_null("event");
        }
        if (p->exact) {
            cli_json_uint("allocations", p->allocations);
            cli_json_uint("frees", p->frees);
            cli_json_int("allocated_bytes", p->allocated_bytes);
            cli_json_int("freed_bytes", p->freed_bytes);
            cli_json_int("end_bytes", p->end_bytes);
        }
        json_categories(p);
        cli_json_end_object();
    }
    cli_json_end_array();
}

static void print_json(const memory_settings *s, mtprof_model *model, const cli_memory_facts *f,
                       const char *path)
{
    cli_json_object(NULL);
    cli_json_string("trace", path);
    json_peaks(model, f);
    cli_json_array("rows");
    for (size_t i = 0; i < f->n_rows && (s->limit <= 0 || i < (size_t)s->limit); i++) {
        const mtprof_row *row = &f->rows[i];
        cli_json_object(NULL);
        cli_json_text("name", row->key);
        cli_json_uint("count", row->count);
        cli_json_int("self_cpu_memory", row->self_cpu_memory);
        cli_json_int("cpu_memory", row->cpu_memory);
        cli_json_int("self_device_memory", row->self_device_memory);
        cli_json_int("device_memory", row->device_memory);
        cli_json_end_object();
    }
    cli_json_end_array();
    cli_json_string("timeline", s->timeline);
    cli_json_end_object();
}

/* ---- the command ----------------------------------------------------------------------------- */

static int look(const cli_call *call, mtprof_model *model, const char *path)
{
    const memory_settings *s = call->settings;
    cli_memory_facts f;
    int code = CLI_FAILED;
    if (!cli_gather_memory(model, path, &f)) {
        cli_free_memory(&f);
        return CLI_FAILED;
    }
    cli_progress_end();
    if (f.n_rows == 0 && f.n_peaks == 0) {
        cli_error("%s: it holds nothing about memory", path);
        cli_hint("record with profile_memory=True (C: MTPROF_WANT_MEMORY | MTPROF_WANT_ALLOCS)");
    } else {
        code = s->timeline != NULL ? write_timeline(s, model, path) : CLI_OK;
        if (code == CLI_OK && s->common.json) {
            print_json(s, model, &f, path);
        } else if (code == CLI_OK) {
            print_facts(s, model, &f);
        }
    }
    cli_free_memory(&f);
    return code;
}

static int run(const cli_call *call)
{
    const memory_settings *s = call->settings;
    enum mtprof_export_format format;
    if (s->timeline != NULL && !timeline_format(s->timeline, &format)) {
        cli_error("memory: option '--timeline': '%s': expected a name that ends in .html, "
                  ".raw.json or .json (or these with .gz)",
                  s->timeline);
        return CLI_MISUSE;
    }
    return cli_look_at_trace(call, look);
}

const cli_command cli_cmd_memory = {
    .name = "memory",
    .summary = "Who allocated memory, and the peak",
    .operands = "TRACE",
    .details = "The timeline tells parameters, optimizer state, inputs, temporaries, activations, "
               "gradients and autograd's own apart; for that the trace must have shapes, stacks "
               "and allocations.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 1,
    .most_operands = 1,
    .settings_bytes = sizeof(memory_settings),
    .reads_trace = true,
    .run = run,
};
