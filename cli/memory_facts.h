/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mtprof memory` tells: peaks of devices, and rows by what they allocated.
 */
#ifndef CLI_MEMORY_FACTS_H
#define CLI_MEMORY_FACTS_H

#include <mtprof/averages.h>
#include <mtprof/model.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CLI_CATEGORIES = 8 /* torch's: parameter … unknown */
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
} cli_peak;

/* The most of the timeline of one device, by category. */
typedef struct cli_timeline {
    bool there;
    const char *device; /* as it was asked for; NULL: the library's choice */
    int64_t at_us;      /* Unix time */
    double bytes;
    double categories[CLI_CATEGORIES];
    uint64_t points;
} cli_timeline;

typedef struct cli_memory_row {
    mtprof_row row;
} cli_memory_row;

typedef struct cli_memory_facts {
    cli_peak *peaks;
    size_t n_peaks;
    cli_timeline timeline;
    mtprof_averages *averages;
    cli_memory_row *rows; /* those with memory, largest first */
    size_t n_rows;
} cli_memory_facts;

/* device NULL: as the library chooses. False with a message; free either way. */
bool cli_gather_memory(mtprof_model *model, const char *path, const char *device,
                       cli_memory_facts *out);
void cli_free_memory(cli_memory_facts *facts);

#endif /* CLI_MEMORY_FACTS_H */
