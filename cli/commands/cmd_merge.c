/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof merge: the ranks of a job in one file, on one clock.
 */
#include "cli/commands/ranks_view.h"
#include "cli/json_out.h"
#include "cli/term.h"
#include "cli/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct merge_settings {
    cli_common common;
    const char *output;
    int64_t limit; /* 0: the default, -1: all */
} merge_settings;

#define AT(member) offsetof(merge_settings, member)

enum {
    ROWS = 10
};

static const cli_option options[] = {
    {.name = "output",
     .letter = 'o',
     .type = CLI_FILE,
     .value = "FILE",
     .help = "the file to write: .pftrace or .json, with .gz compressed",
     .offset = AT(output)},
    {.name = "limit",
     .letter = 'n',
     .type = CLI_LIMIT,
     .value = "N",
     .help = "show the N collectives with the longest waits (default 10; all)",
     .offset = AT(limit)},
};

/* ---- the table of collectives ---------------------------------------------------------------- */

typedef struct place {
    uint32_t index;
    double wait;
} place;

static int compare_waits(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return x->wait != y->wait ? (x->wait < y->wait) - (x->wait > y->wait)
                              : (x->index > y->index) - (x->index < y->index);
}

static void print_collective(const mtprof_ranks *ranks, uint32_t index)
{
    char title[64];
    mtprof_collective c = {.struct_size = sizeof c};
    mtprof_rank last = {.struct_size = sizeof last};
    (void)mtprof_ranks_get_collective(ranks, index, &c);
    (void)mtprof_ranks_get_rank(ranks, c.last, &last);
    printf("%6d  ", c.step);
    cli_print_text(stdout, cli_collective_title(&c, title, sizeof title), 24);
    printf("  %-12s  %5u  %9s  %9s\n", mtprof_wait_class_name(c.wait_class), last.rank,
           cli_duration(c.wait_ns).text, cli_duration(c.transfer_ns).text);
}

static bool print_collectives(const mtprof_ranks *ranks, const mtprof_ranks_facts *facts,
                              int64_t limit)
{
    uint32_t n = facts->collectives;
    place *order = calloc((size_t)n + 1, sizeof *order);
    if (order == NULL) {
        return cli_no_memory("the collectives");
    }
    for (uint32_t i = 0; i < n; i++) {
        mtprof_collective c = {.struct_size = sizeof c};
        (void)mtprof_ranks_get_collective(ranks, i, &c);
        order[i] = (place){i, c.wait_ns};
    }
    qsort(order, n, sizeof *order, compare_waits);
    uint32_t shown = limit < 0 || limit > n ? n : (uint32_t)(limit > 0 ? limit : ROWS);
    shown = shown < n ? shown : n;
    if (n > 0) {
        printf("\n%s%6s  %-24s  %-12s  %5s  %9s  %9s%s\n", cli_style(CLI_BOLD), "step",
               "collective [elements]", "class", "last", "mean wait", "transfer",
               cli_style(CLI_PLAIN));
    }
    for (uint32_t i = 0; i < shown; i++) {
        print_collective(ranks, order[i].index);
    }
    if (shown < n) {
        printf("  ... and %u more with shorter waits (-n all)\n", n - shown);
    }
    free(order);
    return true;
}

static void json_collectives(const mtprof_ranks *ranks, const mtprof_ranks_facts *facts)
{
    cli_json_array("collectives");
    for (uint32_t i = 0; i < facts->collectives; i++) {
        mtprof_collective c = {.struct_size = sizeof c};
        mtprof_rank rank = {.struct_size = sizeof rank};
        mtprof_collective_part part;
        (void)mtprof_ranks_get_collective(ranks, i, &c);
        (void)mtprof_ranks_get_rank(ranks, c.last, &rank);
        cli_json_object(NULL);
        cli_json_text("name", c.name);
        cli_json_uint("elements", c.elements);
        cli_json_int("step", c.step);
        cli_json_uint("ordinal", c.ordinal);
        cli_json_string("class", mtprof_wait_class_name(c.wait_class));
        cli_json_uint("last_rank", rank.rank);
        cli_json_int("last_arrival_ns", c.arrival_ns);
        cli_json_real("wait_ns", c.wait_ns);
        cli_json_real("transfer_ns", c.transfer_ns);
        cli_json_real("skew_ns", c.skew_ns);
        cli_json_array("ranks");
        for (uint32_t k = 0; k < facts->ranks; k++) {
            if (mtprof_ranks_part(ranks, i, k, &part)) {
                (void)mtprof_ranks_get_rank(ranks, k, &rank);
                cli_json_object(NULL);
                cli_json_uint("rank", rank.rank);
                cli_json_int("start_ns", part.start_ns);
                cli_json_int("end_ns", part.end_ns);
                cli_json_real("wait_ns", part.wait_ns);
                cli_json_real("transfer_ns", part.transfer_ns);
                cli_json_end_object();
            }
        }
        cli_json_end_array();
        cli_json_end_object();
    }
    cli_json_end_array();
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool show(const merge_settings *s, const mtprof_ranks *ranks,
                 const mtprof_ranks_facts *facts, const mtprof_merge_report *report)
{
    if (s->common.json) {
        cli_json_object(NULL);
        cli_json_string("output", s->output);
        cli_json_uint("events", report->events);
        cli_json_uint("bytes", report->bytes_written);
        cli_json_uint("clamped", report->clamped);
        cli_json_uint("left_out_details", report->left_out);
        cli_json_ranks(ranks, facts);
        json_collectives(ranks, facts);
        cli_json_end_object();
        return true;
    }
    if (s->common.quiet) {
        return true;
    }
    printf("%s: %u rank%s, %s events, %s\n", s->output, facts->ranks, cli_plural(facts->ranks),
           cli_count(report->events).text, cli_bytes((double)report->bytes_written).text);
    cli_print_ranks(ranks, facts);
    return print_collectives(ranks, facts, s->limit);
}

static int run(const cli_call *call)
{
    const merge_settings *s = call->settings;
    mtprof_ranks_facts facts;
    mtprof_merge_report report = {.struct_size = sizeof report};
    if (s->output == NULL) {
        cli_error("merge: -o FILE is missing: .pftrace or .json");
        return CLI_MISUSE;
    }
    for (size_t i = 0; i < call->n_operands; i++) {
        if (strcmp(call->operands[i], s->output) == 0) {
            cli_error("merge: %s is one of the ranks", s->output);
            return CLI_MISUSE;
        }
    }
    mtprof_ranks *ranks = cli_open_ranks(call, &facts);
    if (ranks == NULL) {
        return CLI_FAILED;
    }
    cli_progress_start(s->output, s->common.quiet);
    mtprof_status status = mtprof_ranks_export(ranks, s->output, &report);
    cli_progress_end();
    int code = CLI_OK;
    if (status != MTPROF_OK) {
        code = cli_library_error(s->output, status);
    } else if (!show(s, ranks, &facts, &report)) {
        code = CLI_FAILED;
    }
    mtprof_ranks_free(ranks);
    return cli_ranks_code(&facts, code);
}

const cli_command cli_cmd_merge = {
    .name = "merge",
    .summary = "Ranks of a job in one file, on one clock",
    .operands = "RANK...",
    .details =
        "Clocks are put on that of the first rank by the ends of the collectives that all ranks "
        "share: an offset and a drift each, with a bound that holds however long messages take. "
        "Where there are too few, the wall clocks count and no bound is known; where there are no "
        "wall clocks either, the command refuses.\n"
        "\n"
        "Traces that are damaged, missing or of another job are named and left out, and the exit "
        "code is 4. docs/ranks.md explains the method and the output.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .least_operands = 1,
    .most_operands = SIZE_MAX,
    .settings_bytes = sizeof(merge_settings),
    .run = run,
};
