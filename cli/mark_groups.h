/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program recorded besides scopes, in groups by name: counters, instants, flows, metadata.
 */
#ifndef CLI_MARK_GROUPS_H
#define CLI_MARK_GROUPS_H

#include <mtprof/model.h>

#include <stdbool.h>
#include <stddef.h>

/* Prints a section for each kind that occurs, at most `width` columns wide, and at most `most`
 * lines each. False: reading failed, and the error was printed. */
bool cli_print_marks(mtprof_model *model, const char *path, size_t width, size_t most);

/* How many there are, by kind. */
typedef struct cli_mark_counts {
    uint64_t instants, counters, flows;
} cli_mark_counts;
mtprof_status cli_count_marks(mtprof_model *model, cli_mark_counts *counts);

#endif /* CLI_MARK_GROUPS_H */
