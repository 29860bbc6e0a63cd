/* SPDX-License-Identifier: Apache-2.0
 *
 * The options for grouping and sorting rows.
 */
#ifndef CLI_GROUPS_H
#define CLI_GROUPS_H

#include "cli/options.h"

#include <mtprof/averages.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_groups {
    uint32_t group; /* enum mtprof_group */
    uint32_t stack_n;
} cli_groups;

/* "shapes,stack:5"; for CLI_CUSTOM options. */
bool cli_parse_groups(void *value, const char *text, cli_refusal *why);
extern const char *const cli_group_names[];

/* Rows by these groups, of events whose name matches (NULL: all), in these steps. */
mtprof_averages_options cli_averages_options(const cli_groups *groups, const char *name,
                                             const cli_range *steps);

/* Sort keys to propose; the library knows more. */
extern const char *const cli_sort_keys[];
/* Says that the library does not know this key, and which one may be meant; the exit code. */
int cli_bad_sort_key(const char *command, const char *key);

#endif /* CLI_GROUPS_H */
