/* SPDX-License-Identifier: Apache-2.0
 *
 * Two traces row by row: what changed, and whether chance can explain it.
 *
 *   DR1  With steps in both traces, times are means per step (over the steps in which the row
 *        occurs), and the noise of a row is Welch's bound over its steps.
 *   DR2  The probability of an error is shared among the rows that are judged, so that alpha bounds
 *        the chance of one false verdict in the whole comparison.
 *   DR3  Without steps, times and memory are means per call, so that the traces may differ in
 *        length; the noise is unknown, and only the threshold counts. The total is then what A's
 *        calls take with A's means and with B's; calls that A does not have are added.
 *   DR4  With steps, a row whose noise is unknown (it occurs in fewer than two steps of a trace) is
 *        not judged.
 *   DR5  Rows that are in one trace only are new or gone, not slower; the total judges them.
 */
#ifndef CLI_COMMANDS_DIFF_ROWS_H
#define CLI_COMMANDS_DIFF_ROWS_H

#include "cli/groups.h"

#include <mtprof/averages.h>
#include <mtprof/model.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cli_verdict {
    CLI_SAME = 0,
    CLI_SLOWER,
    CLI_FASTER,
    CLI_NEW,
    CLI_GONE,
    CLI_UNKNOWN, /* DR4 */
    CLI_VERDICT_COUNT
} cli_verdict;

const char *cli_verdict_name(cli_verdict verdict);

/* One side of a row; times in nanoseconds, per step or per call (DR1, DR3). */
typedef struct cli_side {
    bool there;
    uint32_t steps;
    double ns, deviation_ns, calls, memory; /* calls: per step, or in all */
    double whole_ns;                        /* per step, or in all */
} cli_side;

typedef struct cli_diff_row {
    char *text;         /* of key and detail */
    const char *key;    /* what rows are matched by */
    mtprof_text name;   /* of trace A where it has it */
    const char *detail; /* groups beyond the name, "" where there are none */
    bool on_device;     /* its time is device time */
    cli_side a, b;
    double noise_ns; /* NaN: unknown */
    cli_verdict verdict;
} cli_diff_row;

typedef struct cli_diff_options {
    cli_groups groups;
    const char *name;
    cli_range steps;
    double alpha;
    double threshold; /* 0.05: five percent */
    double min_ns;    /* rows below this on both sides are not judged */
} cli_diff_options;

typedef struct cli_diff {
    cli_diff_row *rows;
    size_t n_rows;
    cli_diff_row total; /* key NULL: there is none (events were filtered by name) */
    bool per_step;
    size_t judged;
    uint32_t steps_a, steps_b;                /* of the traces */
    size_t counts[CLI_VERDICT_COUNT];         /* of rows, without the total */
    mtprof_averages *averages_a, *averages_b; /* rows borrow their texts */
    cli_diff_row *rows_a, *rows_b;            /* of each trace, as side a; they own the keys */
    size_t n_rows_a, n_rows_b;
} cli_diff;

/* path_a and path_b are for messages. False where it failed; free either way. */
bool cli_diff_make(mtprof_model *a, const char *path_a, mtprof_model *b, const char *path_b,
                   const cli_diff_options *options, cli_diff *out);
/* Is a row slower, or the whole? */
bool cli_diff_slower(const cli_diff *diff);
void cli_diff_free(cli_diff *diff);

#endif /* CLI_COMMANDS_DIFF_ROWS_H */
