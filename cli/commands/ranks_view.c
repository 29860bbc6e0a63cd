/* SPDX-License-Identifier: Apache-2.0
 *
 * What commands say of several ranks, see ranks_view.h.
 */
#include "cli/commands/ranks_view.h"

#include "cli/json_out.h"
#include "cli/term.h"
#include "cli/units.h"

#include <math.h>
#include <stdio.h>

enum {
    RANK_ROWS = 16 /* shown; the rest is counted */
};

mtprof_ranks *cli_open_ranks(const cli_call *call, mtprof_ranks_facts *facts)
{
    mtprof_ranks *ranks = NULL;
    mtprof_ranks_options options = {.struct_size = sizeof options, .progress = cli_progress_step};
    cli_progress_start(call->command->name, call->common->quiet);
    mtprof_status status = mtprof_ranks_open(call->operands, call->n_operands, &options, &ranks);
    cli_progress_end();
    *facts = (mtprof_ranks_facts){.struct_size = sizeof *facts};
    if (!cli_ok(call->operands[0], status)) {
        return NULL;
    }
    if (!cli_ok(call->operands[0], mtprof_ranks_get_facts(ranks, facts))) {
        mtprof_ranks_free(ranks);
        return NULL;
    }
    return ranks;
}

int cli_ranks_code(const mtprof_ranks_facts *facts, int code)
{
    return code == CLI_OK && facts->left_out > 0 ? CLI_DAMAGED : code;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_absent(const mtprof_ranks *ranks, const mtprof_ranks_facts *facts)
{
    const char *path = NULL, *why = NULL;
    uint32_t rank = 0;
    for (uint32_t i = 0; mtprof_ranks_left_out(ranks, i, &path, &why); i++) {
        printf("left out     %s:\n             %s\n", path, why);
    }
    if (facts->missing > 0) {
        printf("missing      %u of %u ranks have no trace here: ", facts->missing,
               facts->world_size);
        for (uint32_t i = 0; i < 8 && mtprof_ranks_missing(ranks, i, &rank); i++) {
            printf("%s%u", i > 0 ? ", " : "", rank);
        }
        puts(facts->missing > 8 ? " ..." : "");
    }
}

static void print_clock(const mtprof_ranks *ranks, const mtprof_ranks_facts *facts)
{
    mtprof_rank reference = {.struct_size = sizeof reference};
    (void)mtprof_ranks_get_rank(ranks, facts->reference, &reference);
    if (facts->method == MTPROF_CLOCK_COLLECTIVES) {
        printf("clock        of rank %u, by the ends of %u collectives\n", reference.rank,
               facts->shared);
        printf("             residual %s (95 %% of the ends), bound %s\n",
               cli_duration(facts->residual_ns).text, cli_duration(facts->bound_ns).text);
        if (facts->contradiction_ns > 1000) {
            printf("             the clocks are no straight lines: up to %s, part of the bound\n",
                   cli_duration(facts->contradiction_ns).text);
        }
    } else if (facts->method == MTPROF_CLOCK_WALL) {
        printf("clock        the machines' wall clocks as they are, no bound is known:\n"
               "             the ranks share %u usable collectives\n",
               facts->shared);
    }
}

void cli_print_classes(const mtprof_ranks_facts *facts)
{
    bool any = false;
    for (uint32_t i = 0; i < MTPROF_WAIT_COUNT; i++) {
        if (facts->classes[i] > 0) {
            printf("%s%u %s", any ? ", " : "", facts->classes[i], mtprof_wait_class_name(i));
            any = true;
        }
    }
}

void cli_print_ranks(const mtprof_ranks *ranks, const mtprof_ranks_facts *facts)
{
    mtprof_rank rank = {.struct_size = sizeof rank};
    print_absent(ranks, facts);
    print_clock(ranks, facts);
    printf("collectives  %u matched (%s)", facts->collectives, mtprof_layer_name(facts->layer));
    printf(facts->collectives > 0 ? ": " : "\n");
    if (facts->collectives > 0) {
        cli_print_classes(facts);
        puts("");
    }
    if (facts->unmatched + facts->dropped > 0) {
        printf("             %llu calls without a counterpart, %llu beyond the bound of memory\n",
               (unsigned long long)facts->unmatched, (unsigned long long)facts->dropped);
    }
    printf("\n%s%6s  %10s  %9s  %9s  %9s  %9s  %5s  %7s%s\n", cli_style(CLI_BOLD), "rank",
           "wall clock", "drift ppm", "bound", "wait", "transfer", "last", "missing",
           cli_style(CLI_PLAIN));
    for (uint32_t i = 0; i < facts->ranks && i < RANK_ROWS; i++) {
        (void)mtprof_ranks_get_rank(ranks, i, &rank);
        cli_quantity off = cli_duration(fabs(rank.wall_error_ns));
        bool known = !isnan(rank.wall_error_ns);
        printf("%6u  %s%9s  %+9.3f  %9s  %9s  %9s  %5.0f  %7llu\n", rank.rank,
               known && rank.wall_error_ns < 0 ? "-" : " ", known ? off.text : "-",
               rank.drift * 1e6, isnan(rank.bound_ns) ? "-" : cli_duration(rank.bound_ns).text,
               cli_duration(rank.wait_ns).text, cli_duration(rank.transfer_ns).text, rank.last,
               (unsigned long long)rank.missing);
    }
    if (facts->ranks > RANK_ROWS) {
        printf("  ... and %u more ranks (--json has all)\n", facts->ranks - RANK_ROWS);
    }
}

mtprof_text cli_collective_title(const mtprof_collective *collective, char *room, size_t size)
{
    int n =
        collective->elements > 0
            ? snprintf(room, size, "%.*s [%llu]", (int)collective->name.length,
                       collective->name.bytes, (unsigned long long)collective->elements)
            : snprintf(room, size, "%.*s", (int)collective->name.length, collective->name.bytes);
    return (mtprof_text){room, n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1};
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_rank(const mtprof_rank *rank)
{
    cli_json_object(NULL);
    cli_json_uint("rank", rank->rank);
    cli_json_string("path", rank->path);
    cli_json_int("start_ns", rank->start_ns);
    cli_json_int("end_ns", rank->end_ns);
    cli_json_real("offset_ns", rank->offset_ns);
    cli_json_real("drift_ppm", rank->drift * 1e6);
    cli_json_real("residual_ns", rank->residual_ns);
    cli_json_real("bound_ns", rank->bound_ns);
    cli_json_real("wall_clock_error_ns", rank->wall_error_ns);
    cli_json_uint("collectives", rank->calls);
    cli_json_uint("missing_collectives", rank->missing);
    cli_json_uint("lost_events", rank->lost);
    cli_json_real("wait_ns", rank->wait_ns);
    cli_json_real("transfer_ns", rank->transfer_ns);
    cli_json_real("last", rank->last);
    cli_json_end_object();
}

static void json_absent(const mtprof_ranks *ranks)
{
    const char *path = NULL, *why = NULL;
    uint32_t rank = 0;
    cli_json_array("left_out");
    for (uint32_t i = 0; mtprof_ranks_left_out(ranks, i, &path, &why); i++) {
        cli_json_object(NULL);
        cli_json_string("path", path);
        cli_json_string("why", why);
        cli_json_end_object();
    }
    cli_json_end_array();
    cli_json_array("missing_ranks");
    for (uint32_t i = 0; mtprof_ranks_missing(ranks, i, &rank); i++) {
        cli_json_uint(NULL, rank);
    }
    cli_json_end_array();
}

void cli_json_ranks(const mtprof_ranks *ranks, const mtprof_ranks_facts *facts)
{
    mtprof_rank rank = {.struct_size = sizeof rank};
    json_absent(ranks);
    cli_json_uint("world_size", facts->world_size);
    cli_json_object("clock");
    cli_json_string("method", mtprof_clock_method_name(facts->method));
    (void)mtprof_ranks_get_rank(ranks, facts->reference, &rank);
    cli_json_uint("reference_rank", rank.rank);
    cli_json_uint("shared_collectives", facts->shared);
    cli_json_real("residual_ns", facts->residual_ns);
    cli_json_real("bound_ns", facts->bound_ns);
    cli_json_real("contradiction_ns", facts->contradiction_ns);
    cli_json_string("refusal", facts->refusal);
    cli_json_end_object();
    cli_json_string("layer", mtprof_layer_name(facts->layer));
    cli_json_uint("unmatched_calls", facts->unmatched);
    cli_json_uint("dropped_collectives", facts->dropped);
    cli_json_object("classes");
    for (uint32_t i = 0; i < MTPROF_WAIT_COUNT; i++) {
        cli_json_uint(mtprof_wait_class_name(i), facts->classes[i]);
    }
    cli_json_end_object();
    cli_json_array("ranks");
    for (uint32_t i = 0; i < facts->ranks; i++) {
        (void)mtprof_ranks_get_rank(ranks, i, &rank);
        json_rank(&rank);
    }
    cli_json_end_array();
}
