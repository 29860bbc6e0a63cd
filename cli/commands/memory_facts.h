/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mtprof memory` shows: peaks of devices, and rows by what they allocated.
 */
#ifndef CLI_COMMANDS_MEMORY_FACTS_H
#define CLI_COMMANDS_MEMORY_FACTS_H

#include <mtprof/averages.h>
#include <mtprof/export.h>
#include <mtprof/model.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CLI_CATEGORIES = MTPROF_MEMORY_CATEGORIES
};
const char *cli_category_name(size_t index);

/* The most that was allocated on a device at one time. */
typedef struct cli_peak {
    uint32_t device; /* of the model */
    int64_t bytes, at_ns;
    uint32_t event; /* in which it was so; MTPROF_NO_EVENT: in none */
    bool exact; /* from every allocation; otherwise from what ops saw when they began and ended */
    uint64_t allocations, frees;
    int64_t allocated_bytes, freed_bytes, end_bytes;
    char name[64];        /* "CPU", "NPU:0" */
    bool has_categories;  /* the trace has a timeline: the peak is the timeline's */
    int64_t unseen_bytes; /* held by the allocator in addition, without a use in the trace */
    int64_t categories[CLI_CATEGORIES];
} cli_peak;

typedef struct cli_memory_facts {
    cli_peak *peaks;
    size_t n_peaks;
    mtprof_averages *averages;
    mtprof_row *rows; /* those with memory, largest first */
    size_t n_rows;
} cli_memory_facts;

/* False with a message; free either way. */
bool cli_gather_memory(mtprof_model *model, const char *path, cli_memory_facts *out);
void cli_free_memory(cli_memory_facts *facts);

#endif /* CLI_COMMANDS_MEMORY_FACTS_H */
