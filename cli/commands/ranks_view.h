/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mtprof merge` and `mtprof stragglers` share: opening the ranks, and what is said of their
 * clocks and of traces that were left out.
 */
#ifndef CLI_COMMANDS_RANKS_VIEW_H
#define CLI_COMMANDS_RANKS_VIEW_H

#include "cli/command.h"

#include <mtprof/jobs/ranks.h>

/* The operands as ranks. NULL: the error was printed. */
mtprof_ranks *cli_open_ranks(const cli_call *call, mtprof_ranks_facts *facts);

/* The exit code: `code`, or CLI_DAMAGED where traces were left out and `code` is success. */
int cli_ranks_code(const mtprof_ranks_facts *facts, int code);

/* Who is left out or missing, what the clocks rest on, and a row a rank; as text. */
void cli_print_ranks(const mtprof_ranks *ranks, const mtprof_ranks_facts *facts);
/* "12 transfer, 3 mixed", on the line of the collectives. */
void cli_print_classes(const mtprof_ranks_facts *facts);
/* Members "ranks", "left_out", "missing", "clock" and "classes" of an object that is open. */
void cli_json_ranks(const mtprof_ranks *ranks, const mtprof_ranks_facts *facts);

/* "gloo:all_reduce [19210]" in `room`. */
mtprof_text cli_collective_title(const mtprof_collective *collective, char *room, size_t size);

#endif /* CLI_COMMANDS_RANKS_VIEW_H */
