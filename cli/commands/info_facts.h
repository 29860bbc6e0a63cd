/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mtprof info` shows, gathered before anything is printed.
 */
#ifndef CLI_COMMANDS_INFO_FACTS_H
#define CLI_COMMANDS_INFO_FACTS_H

#include "cli/mark_groups.h"
#include "cli/trace_file.h"

#include <mtprof/model.h>
#include <mtprof/reader.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_window {
    uint32_t number, step;
    uint32_t parts;   /* epochs: 1, and one more for each pause */
    int64_t open_ns;  /* time in which it recorded */
    const char *fate; /* "kept", "discarded", "not ended" */
} cli_window;

typedef struct cli_track {
    mtprof_track track;
    uint64_t events;
} cli_track;

/* A name of which a limit of the overhead left out events. */
typedef struct cli_sampled {
    mtprof_text name;
    uint64_t left_out, kept;
} cli_sampled;

enum {
    CLI_SAMPLED = 5 /* of them are shown: those with the most */
};

typedef struct cli_facts {
    const char *path;
    const char *format;
    mtprof_model *model;
    mtprof_reader *reader; /* NULL: not a .mtt file */
    mtprof_model_info info;
    mtprof_trace_info trace; /* .mtt */
    mtprof_model_findings findings;
    mtprof_health health;
    uint64_t file_bytes;
    uint64_t n_problems;
    uint64_t kinds[CLI_KINDS];
    cli_mark_counts marks;
    int32_t first_step, last_step; /* -1: none */
    uint64_t n_steps;
    cli_window *windows;
    size_t n_windows;
    cli_track *tracks;
    uint32_t n_tracks;
    cli_sampled sampled[CLI_SAMPLED];
    size_t n_sampled;
    char when[40], uuid[40];
} cli_facts;

/* False with a message where something could not be read; free either way. */
bool cli_gather_facts(mtprof_model *model, const char *path, cli_facts *out);
void cli_free_facts(cli_facts *facts);

/* A metadatum's value as text; `room` is for one that is no text itself. */
typedef struct cli_metadatum {
    char text[40];
} cli_metadatum;
mtprof_text cli_metadatum_text(const mtprof_metadatum *m, cli_metadatum *room);

#endif /* CLI_COMMANDS_INFO_FACTS_H */
