/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program told beside its scopes, in groups by name: counters, instants, flows, metadata.
 */
#ifndef CLI_MARK_GROUPS_H
#define CLI_MARK_GROUPS_H

#include <mtprof/model.h>

#include <stdbool.h>
#include <stddef.h>

/* Prints a section for each kind that there is, at most `width` columns wide, and at most `most`
 * lines each. False where reading failed; the failure is told. */
bool cli_print_marks(mtprof_model *model, const char *path, size_t width, size_t most);

/* How many there are, by kind. */
typedef struct cli_mark_counts {
    uint64_t instants, counters, flows;
} cli_mark_counts;
mtprof_status cli_count_marks(mtprof_model *model, cli_mark_counts *counts);

#endif /* CLI_MARK_GROUPS_H */
