/* SPDX-License-Identifier: Apache-2.0
 *
 * What each step of a trace took.
 */
#ifndef CLI_STEPS_H
#define CLI_STEPS_H

#include "cli/trace_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_step {
    int32_t step;
    uint64_t events; /* host events that began in it, functions left out */
    double self_ns;  /* their self time */
} cli_step;

typedef struct cli_steps {
    cli_step *steps; /* in order, each once; the caller frees it */
    size_t n;
} cli_steps;

/* Only steps from first to last. False: no memory, and *out is zero. */
bool cli_sum_steps(const cli_columns *columns, int32_t first, int32_t last, cli_steps *out);

#endif /* CLI_STEPS_H */
