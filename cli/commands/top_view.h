/* SPDX-License-Identifier: Apache-2.0
 *
 * The picture that `mtprof top` shows: a few lines of facts and the table.
 */
#ifndef CLI_COMMANDS_TOP_VIEW_H
#define CLI_COMMANDS_TOP_VIEW_H

#include <mtprof/live.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    CLI_TOP_FILTER = 64, /* room for a filter */
    CLI_TOP_GROUPS = 4
};

/* What is shown, and how. */
typedef struct cli_top {
    mtprof_live *live;
    const char *path;
    uint32_t sort;  /* enum mtprof_live_sort */
    uint32_t group; /* index into cli_top_groups */
    char filter[CLI_TOP_FILTER];
    bool functions, paused, quiet;
    bool known_process; /* info.pid is the process that records */
    size_t first;       /* row that is shown first */

    /* of the last poll */
    mtprof_live_info info;
    const mtprof_live_row *rows;
    uint32_t n_rows;
    double self_sum_ns[2]; /* of all rows: host, devices */
} cli_top;

extern const char *const cli_top_sorts[];
extern const char *const cli_top_groups[];

/* Asks for the rows again. False: a failure, not printed. */
mtprof_status cli_top_ask(cli_top *top);

/* Prints facts and table, `height` lines at most (0: all rows), `width` columns wide. */
void cli_top_print(const cli_top *top, FILE *out, uint32_t width, uint32_t height);
/* How many rows a picture of that height has. */
size_t cli_top_page(const cli_top *top, uint32_t height);
/* As a JSON object on standard output; at most `limit` rows. */
void cli_top_json(const cli_top *top, size_t limit);

#endif /* CLI_COMMANDS_TOP_VIEW_H */
