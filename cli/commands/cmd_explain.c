/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof explain: why the program is slow, as findings.
 */
#include "cli/command.h"
#include "cli/term.h"
#include "cli/trace_file.h"
#include "cli/units.h"

#include <mtprof/explain.h>

#include <stdio.h>
#include <string.h>

typedef struct explain_settings {
    cli_common common;
    bool markdown;
    int64_t step; /* its number + 1; 0: all */
    int64_t limit;
} explain_settings;

static bool parse_step(void *value, const char *text, cli_refusal *why);

#define AT(member) offsetof(explain_settings, member)

static const cli_option options[] = {
    {.name = "markdown",
     .type = CLI_FLAG,
     .help = "Markdown, for issues and notebooks",
     .offset = AT(markdown)},
    {.name = "step",
     .type = CLI_CUSTOM,
     .value = "N",
     .parse = parse_step,
     .help = "only this step",
     .offset = AT(step)},
    {.name = "limit",
     .letter = 'n',
     .type = CLI_LIMIT,
     .value = "N",
     .help = "at most N findings; all: everything (default: what fits into 4 kB)",
     .offset = AT(limit)},
};

static bool parse_step(void *value, const char *text, cli_refusal *why)
{
    int64_t step;
    if (!cli_parse_int(text, &step) || step < 0 || step > INT32_MAX) {
        (void)snprintf(why->text, sizeof why->text, "is not the number of a step");
        return false;
    }
    *(int64_t *)value = step + 1;
    return true;
}

/* Titles of findings begin in the first column with their number. */
static void paint_line(void *context, char *line, size_t length)
{
    (void)context, (void)length;
    size_t digits = strspn(line, "0123456789");
    bool is_title = digits > 0 && strncmp(line + digits, ". ", 2) == 0;
    printf("%s%s%s\n", is_title ? cli_style(CLI_BOLD) : "", line,
           is_title ? cli_style(CLI_PLAIN) : "");
}

static mtprof_status write_findings(const explain_settings *s, const mtprof_explain *findings)
{
    mtprof_explain_write_options o = {
        .struct_size = sizeof o,
        .format = s->common.json ? MTPROF_EXPLAIN_JSON
                  : s->markdown  ? MTPROF_EXPLAIN_MARKDOWN
                                 : MTPROF_EXPLAIN_TEXT,
        .findings = s->limit > 0 && s->limit <= UINT32_MAX ? (uint32_t)s->limit : 0,
        .max_bytes = s->limit < 0 ? UINT64_MAX : 0,
    };
    if (o.format != MTPROF_EXPLAIN_TEXT) {
        return mtprof_explain_write(findings, &o, &cli_stdout);
    }
    cli_lines lines = {.line = paint_line};
    mtprof_output output = {
        .struct_size = sizeof output, .context = &lines, .write = cli_lines_write};
    mtprof_status status = mtprof_explain_write(findings, &o, &output);
    cli_lines_end(&lines, status == MTPROF_OK);
    return status;
}

static int explain(const cli_call *call, mtprof_model *model, const char *path)
{
    const explain_settings *s = call->settings;
    mtprof_explain_options o = {
        .struct_size = sizeof o, .step_given = s->step > 0, .step = (int32_t)(s->step - 1)};
    mtprof_explain *findings = NULL;
    mtprof_status status = mtprof_explain_new(model, &o, &findings);
    cli_progress_end();
    if (status == MTPROF_OK) {
        status = write_findings(s, findings);
    }
    mtprof_explain_free(findings);
    return status == MTPROF_OK ? CLI_OK : cli_library_error(path, status);
}

static int run(const cli_call *call)
{
    const explain_settings *s = call->settings;
    if (s->markdown && s->common.json) {
        cli_error("explain: --json and --markdown exclude each other");
        return CLI_MISUSE;
    }
    return cli_look_at_trace(call, explain);
}

const cli_command cli_cmd_explain = {
    .name = "explain",
    .summary = "Why the program is slow, and what to do about it",
    .operands = "TRACE",
    .details = "Findings come with the time they cost, evidence and advice, the most expensive "
               "first. No finding is a guess: what does not pass its threshold is not said, and "
               "\"clean\" is an answer. The ids in brackets are explained in docs/explain.md.\n"
               "\n"
               "The exit code is 0 with findings and without. Traces with steps "
               "(profile(schedule=...), prof.step()) say more: what compares steps needs five.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 1,
    .most_operands = 1,
    .settings_bytes = sizeof(explain_settings),
    .reads_trace = true,
    .run = run,
};
