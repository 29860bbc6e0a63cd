/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof check: whether a file follows the rules of its format.
 */
#include "cli/command.h"
#include "cli/json_out.h"
#include "cli/term.h"
#include "cli/units.h"

#include <mtprof/check.h>

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char *const severities[] = {"note", "warning", "error"};

typedef struct check_settings {
    cli_common common;
    int64_t most_per_rule;
    bool strict;
} check_settings;

#define AT(member) offsetof(check_settings, member)

static const cli_option options[] = {
    {.name = "most",
     .letter = 'n',
     .type = CLI_LIMIT,
     .value = "N",
     .help = "findings of one rule that are listed, or all (default 20); the rest is counted",
     .offset = AT(most_per_rule)},
    {.name = "strict",
     .type = CLI_FLAG,
     .help = "warnings are problems as well, for the exit code",
     .offset = AT(strict)},
};

/* One file while it is checked. */
typedef struct checked {
    const cli_call *call;
    const char *path;
} checked;

static const char *severity_name(uint32_t severity)
{
    return severity < sizeof severities / sizeof *severities ? severities[severity] : "error";
}

static void json_finding(const mtprof_finding *f)
{
    cli_json_object(NULL);
    cli_json_string("severity", severity_name(f->severity));
    cli_json_string("rule", f->rule);
    cli_json_uint("offset", f->offset);
    if (f->line > 0) {
        cli_json_uint("line", f->line);
        cli_json_uint("column", f->column);
    }
    cli_json_string("message", f->message);
    cli_json_string("remedy", f->remedy);
    cli_json_end_object();
}

/* "FILE:12:7: error: what (rule) at byte N" and what to do. */
static void print_finding(const checked *c, const mtprof_finding *f)
{
    static const enum cli_style styles[] = {CLI_DIM, CLI_YELLOW, CLI_RED};
    enum cli_style style = f->severity <= MTPROF_CHECK_ERROR ? styles[f->severity] : CLI_RED;
    cli_print_text(stdout, cli_text(c->path), 0);
    if (f->line > 0) {
        printf(":%" PRIu64 ":%" PRIu64, f->line, f->column);
    }
    printf(": %s%s%s: ", cli_style(style), severity_name(f->severity), cli_style(CLI_PLAIN));
    cli_print_text(stdout, cli_text(f->message), 0);
    if (f->offset > 0 || f->line > 0) { /* otherwise it is about the file as a whole */
        printf(" (at byte %" PRIu64 ")", f->offset);
    }
    printf(" [%s]\n", f->rule);
    if (f->remedy != NULL) {
        fputs("  ", stdout);
        cli_print_text(stdout, cli_text(f->remedy), 0);
        putchar('\n');
    }
}

static int on_finding(void *user, const mtprof_finding *finding)
{
    const checked *c = user;
    if (c->call->common->json) {
        json_finding(finding);
    } else if (!c->call->common->quiet || finding->severity == MTPROF_CHECK_ERROR) {
        cli_progress_end();
        print_finding(c, finding);
    }
    return 0;
}

static const char *format_name(uint32_t format)
{
    return format == MTPROF_CHECK_MTT      ? "mtt"
           : format == MTPROF_CHECK_CHROME ? "chrome"
                                           : "unknown";
}

static void json_summary(const mtprof_check_summary *s)
{
    cli_json_string("format", format_name(s->format));
    cli_json_uint("errors", s->errors);
    cli_json_uint("warnings", s->warnings);
    cli_json_uint("notes", s->notes);
    cli_json_uint("events", s->events);
    cli_json_uint("spans", s->spans);
    cli_json_uint("tracks", s->tracks);
    cli_json_uint("file_bytes", s->file_bytes);
    if (s->format == MTPROF_CHECK_CHROME) {
        cli_json_uint("text_bytes", s->text_bytes);
        cli_json_bool("gzipped", s->gzipped != 0);
    } else if (s->format == MTPROF_CHECK_MTT) {
        cli_json_bool("closed", s->closed != 0);
    }
}

static void print_summary(const char *path, const mtprof_check_summary *s)
{
    cli_print_text(stdout, cli_text(path), 0);
    if (s->errors + s->warnings == 0) {
        printf(": %sok%s", cli_style(CLI_GREEN), cli_style(CLI_PLAIN));
    } else {
        printf(": %s%s error%s%s, %s warning%s", cli_style(s->errors > 0 ? CLI_RED : CLI_YELLOW),
               cli_count(s->errors).text, cli_plural(s->errors), cli_style(CLI_PLAIN),
               cli_count(s->warnings).text, cli_plural(s->warnings));
    }
    if (s->format != MTPROF_CHECK_UNKNOWN) {
        bool mtt = s->format == MTPROF_CHECK_MTT;
        printf("; %s, %s %s%s, %s span%s, %s %s%s", mtt ? ".mtt trace" : "Chrome JSON",
               cli_count(s->events).text, mtt ? "record" : "event", cli_plural(s->events),
               cli_count(s->spans).text, cli_plural(s->spans), cli_count(s->tracks).text,
               mtt ? "stream" : "track", cli_plural(s->tracks));
    }
    putchar('\n');
}

static int check_file(const cli_call *call, const char *path)
{
    const check_settings *s = call->settings;
    checked c = {.call = call, .path = path};
    mtprof_check_options o = {
        .struct_size = sizeof o,
        .most_per_rule = s->most_per_rule < 0 || s->most_per_rule > UINT_MAX
                             ? UINT_MAX
                             : (uint32_t)s->most_per_rule,
        .report = on_finding,
        .progress = cli_progress_step,
        .user = &c,
    };
    mtprof_check_summary summary = {.struct_size = sizeof summary};
    if (s->common.json) {
        cli_json_object(NULL);
        cli_json_string("file", path);
        cli_json_array("findings");
    }
    cli_progress_start(path, s->common.quiet);
    mtprof_status status = mtprof_check(path, &o, &summary);
    cli_progress_end();
    if (s->common.json) {
        cli_json_end_array();
        json_summary(&summary);
        cli_json_string("failure", status == MTPROF_OK ? NULL : mtprof_status_name(status));
        cli_json_end_object();
    }
    if (status != MTPROF_OK) {
        return cli_library_error(path, status);
    }
    if (!s->common.json && !s->common.quiet) {
        print_summary(path, &summary);
    }
    return summary.errors > 0 || (s->strict && summary.warnings > 0) ? CLI_FOUND : CLI_OK;
}

static int run(const cli_call *call)
{
    int code = CLI_OK;
    if (call->common->json) {
        cli_json_object(NULL);
        cli_json_array("files");
    }
    for (size_t i = 0; i < call->n_operands; i++) {
        int one = check_file(call, call->operands[i]);
        code = one == CLI_FAILED || code == CLI_OK ? one : code; /* a failure outweighs a finding */
    }
    if (call->common->json) {
        cli_json_end_array();
        cli_json_end_object();
    }
    return code;
}

const cli_command cli_cmd_check = {
    .name = "check",
    .summary = "Whether files keep the rules of the tools that read them",
    .operands = "FILE...",
    .details = "Reads .mtt traces against the format, and Chrome JSON traces (.json, .json.gz) "
               "against JSON, the trace viewers, and the tools that join events by their "
               "arguments. Each finding says where it is and what to do.\n"
               "\n"
               "Exit code 3: there are errors (with --strict: or warnings).",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 1,
    .most_operands = SIZE_MAX,
    .settings_bytes = sizeof(check_settings),
    .run = run,
};
