/* SPDX-License-Identifier: Apache-2.0
 *
 * mtprof stragglers: which rank is late, at what, and since when.
 */
#include "cli/commands/ranks_view.h"
#include "cli/json_out.h"
#include "cli/term.h"
#include "cli/units.h"

#include <stdio.h>

static void print_straggler(const mtprof_ranks *ranks, uint32_t index, const mtprof_straggler *s)
{
    mtprof_rank rank = {.struct_size = sizeof rank};
    mtprof_straggler_cause cause = {.struct_size = sizeof cause};
    (void)mtprof_ranks_get_rank(ranks, s->index, &rank);
    printf("\n%srank %u is late since step %d%s: %s a step", cli_style(CLI_BOLD), rank.rank,
           s->since_step, cli_style(CLI_PLAIN), cli_duration(s->late_ns).text);
    if (s->step_ns > 0) {
        printf(", %.1f %% of it", 100 * s->late_ns / s->step_ns);
    }
    printf("\n  %u late step%s; noise explains %s; chance of that below %g\n", s->steps,
           cli_plural(s->steps), cli_duration(s->noise_ns).text, s->chance);
    for (uint32_t i = 0; i < s->n_causes; i++) {
        (void)mtprof_ranks_get_cause(ranks, index, i, &cause);
        printf("  %s more: ", cli_duration(cause.more_ns).text);
        if (cause.outside != 0) {
            printf("host time outside every op");
        } else {
            cli_print_text(stdout, cause.name, 0);
        }
        printf("%s (%s elsewhere, noise %s)\n", cause.on_device != 0 ? " on the device" : "",
               cli_duration(cause.usual_ns).text, cli_duration(cause.noise_ns).text);
    }
    if (s->n_causes == 0) {
        puts("  nothing that was recorded takes longer there, beyond the noise");
    }
}

static void json_straggler(const mtprof_ranks *ranks, uint32_t index, const mtprof_straggler *s)
{
    mtprof_rank rank = {.struct_size = sizeof rank};
    mtprof_straggler_cause cause = {.struct_size = sizeof cause};
    (void)mtprof_ranks_get_rank(ranks, s->index, &rank);
    cli_json_object(NULL);
    cli_json_uint("rank", rank.rank);
    cli_json_int("since_step", s->since_step);
    cli_json_uint("late_steps", s->steps);
    cli_json_real("late_ns", s->late_ns);
    cli_json_real("noise_ns", s->noise_ns);
    cli_json_real("chance_below", s->chance);
    cli_json_real("step_ns", s->step_ns);
    cli_json_uint("compared_ranks", s->compared);
    cli_json_array("causes");
    for (uint32_t i = 0; i < s->n_causes; i++) {
        (void)mtprof_ranks_get_cause(ranks, index, i, &cause);
        cli_json_object(NULL);
        cli_json_text("name", cause.name);
        cli_json_bool("on_device", cause.on_device != 0);
        cli_json_bool("outside_ops", cause.outside != 0);
        cli_json_real("more_ns", cause.more_ns);
        cli_json_real("usual_ns", cause.usual_ns);
        cli_json_real("noise_ns", cause.noise_ns);
        cli_json_end_object();
    }
    cli_json_end_array();
    cli_json_end_object();
}

static uint32_t show(const cli_call *call, const mtprof_ranks *ranks,
                     const mtprof_ranks_facts *facts)
{
    mtprof_straggler s = {.struct_size = sizeof s};
    uint32_t n = 0;
    bool json = call->common->json;
    if (json) {
        cli_json_object(NULL);
        cli_json_ranks(ranks, facts);
        cli_json_array("stragglers");
    } else {
        cli_print_ranks(ranks, facts);
    }
    for (; mtprof_ranks_get_straggler(ranks, n, &s) == MTPROF_OK; n++) {
        if (json) {
            json_straggler(ranks, n, &s);
        } else {
            print_straggler(ranks, n, &s);
        }
    }
    if (json) {
        cli_json_end_array();
        cli_json_end_object();
    } else if (n == 0) {
        puts("\nno rank is late beyond the noise");
    }
    return n;
}

static int run(const cli_call *call)
{
    mtprof_ranks_facts facts;
    mtprof_ranks *ranks = cli_open_ranks(call, &facts);
    if (ranks == NULL) {
        return CLI_FAILED;
    }
    mtprof_status status = mtprof_ranks_find_stragglers(ranks);
    int code = status != MTPROF_OK             ? cli_library_error(call->operands[0], status)
               : show(call, ranks, &facts) > 0 ? CLI_FOUND
                                               : CLI_OK;
    mtprof_ranks_free(ranks);
    return cli_ranks_code(&facts, code);
}

const cli_command cli_cmd_stragglers = {
    .name = "stragglers",
    .summary = "Which rank of a job is late, at what, and since when",
    .operands = "TRACE...",
    .details =
        "A rank is late when it comes to the collectives after the middle one of the others, by "
        "more than noise explains and 2 % of a step. Late ranks are compared op by op with others, "
        "as mtprof diff does; what is slower in every comparison is named.\n"
        "\n"
        "The exit code is 3 if a rank is late, 4 if traces were left out. docs/ranks.md explains "
        "the method and the output.",
    .least_operands = 2,
    .most_operands = SIZE_MAX,
    .settings_bytes = sizeof(cli_common),
    .run = run,
};
