/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof recover: turns what a killed process left into a complete trace.
 */
#include "cli/command.h"
#include "cli/json_out.h"
#include "cli/term.h"
#include "cli/trace_file.h"
#include "cli/units.h"

#include <mtprof/check.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct recover_settings {
    cli_common common;
    const char *output;
    bool in_place;
} recover_settings;

#define AT(member) offsetof(recover_settings, member)

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .type = CLI_FILE,
     .value = "FILE",
     .help = "file to write (default: NAME.recovered.mtt beside the trace, if nothing is there)",
     .offset = AT(output)},
    {.name = "in-place",
     .type = CLI_FLAG,
     .help = "replace the file itself; only once the new one is complete",
     .offset = AT(in_place)},
};

static void print_json(const char *in, const char *out, const mtprof_recover_summary *s)
{
    cli_json_object(NULL);
    cli_json_string("file", in);
    cli_json_string("output", out);
    cli_json_bool("was_closed", s->was_closed != 0);
    cli_json_uint("records", s->records);
    cli_json_uint("begins", s->begins);
    cli_json_uint("begins_lost", s->begins_lost);
    cli_json_uint("open_scopes", s->open_scopes);
    cli_json_uint("problems", s->problems);
    cli_json_uint("chunks_kept", s->chunks_kept);
    cli_json_uint("chunks_cut", s->chunks_cut);
    cli_json_uint("chunks_lost", s->chunks_lost);
    cli_json_uint("bytes_read", s->bytes_read);
    cli_json_uint("bytes_written", s->bytes_written);
    cli_json_int("duration_ns", s->end_ns - s->start_ns);
    cli_json_end_object();
}

static void print_summary(const char *out, const mtprof_recover_summary *s)
{
    cli_print_text(stdout, cli_text(out), 0);
    printf(": %s, %s event%s over %s\n", cli_bytes((double)s->bytes_written).text,
           cli_count(s->begins).text, cli_plural(s->begins),
           cli_duration((double)(s->end_ns - s->start_ns)).text);
    if (s->was_closed != 0 && s->problems == 0) {
        fputs("  the trace was closed and sound already; this is a copy\n", stdout);
    }
    cli_print_count(s->open_scopes, "event",
                    "had begun and not ended: cut off where the trace ends");
    if (s->problems > 0) {
        printf("  %s damaged place%s: %s chunk%s left out, %s cut\n", cli_count(s->problems).text,
               cli_plural(s->problems), cli_count(s->chunks_lost).text, cli_plural(s->chunks_lost),
               cli_count(s->chunks_cut).text);
    }
    if (s->begins_lost > 0) {
        printf("  %s%s event%s lost%s\n", cli_style(CLI_YELLOW), cli_count(s->begins_lost).text,
               cli_plural(s->begins_lost), cli_style(CLI_PLAIN));
    }
}

static int run(const cli_call *call)
{
    const recover_settings *s = call->settings;
    const char *in = call->operands[0], *out = s->output;
    char made[PATH_MAX];
    mtprof_recover_summary summary = {.struct_size = sizeof summary};
    if (s->in_place && s->output != NULL) {
        cli_error("recover: --in-place and --output exclude each other");
        return CLI_MISUSE;
    }
    if (s->output == NULL && !s->in_place) {
        out = cli_choose_output("recover", in, NULL, ".recovered.mtt", made, sizeof made);
        if (out == NULL) {
            return CLI_MISUSE;
        }
    }
    mtprof_status status = mtprof_recover(in, out, &summary);
    if (status != MTPROF_OK) {
        bool writing = out != NULL && strstr(mtprof_last_error()->message, out) != NULL;
        return cli_library_error(writing ? out : in, status);
    }
    if (s->common.json) {
        print_json(in, out != NULL ? out : in, &summary);
    } else if (!s->common.quiet) {
        print_summary(out != NULL ? out : in, &summary);
    }
    return CLI_OK;
}

const cli_command cli_cmd_recover = {
    .name = "recover",
    .summary = "A clean trace from what a killed process left",
    .operands = "FILE",
    .details = "Every command reads such a file as it is; a recovered one is closed, smaller, has "
               "all its checksums, and holds only what passed every check. The file that is read "
               "stays as it is, unless --in-place is given.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 1,
    .most_operands = 1,
    .settings_bytes = sizeof(recover_settings),
    .run = run,
};
