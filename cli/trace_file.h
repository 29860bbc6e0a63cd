/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening the traces that commands look at.
 */
#ifndef CLI_TRACE_FILE_H
#define CLI_TRACE_FILE_H

#include "cli/command.h"

#include <mtprof/model.h>

#include <stdbool.h>

/* A model of the file, with --window, --discarded and progress. On failure it has printed why and
 * returns NULL. */
mtprof_model *cli_open_trace(const cli_call *call, const char *path);
/* The same with every event of the file, also those that tables fold into their parents. */
mtprof_model *cli_open_trace_whole(const cli_call *call, const char *path);

/* Frees the model. If its trace is damaged, says so and turns a code of success into
 * CLI_DAMAGED. Returns the exit code. */
int cli_close_trace(mtprof_model *model, const char *path, int code);

/* Opens the trace that is the first operand, looks at it and closes it. Returns the exit code. */
typedef int cli_look(const cli_call *call, mtprof_model *model, const char *path);
int cli_look_at_trace(const cli_call *call, cli_look *look);

/* NULL where the column was not recorded, and on failure. */
const void *cli_column(mtprof_model *model, enum mtprof_column_id id, uint64_t *count);

/* Columns that are always there. False: a failure, which is printed. */
typedef struct cli_columns {
    uint64_t count;
    const int64_t *self_ns;
    const uint32_t *track;
    const int32_t *step;
    const uint8_t *kind, *device;
} cli_columns;
bool cli_load_columns(mtprof_model *model, const char *path, cli_columns *out);

/* The file that a command writes: the given one, or by default trace<suffix> for trace.mtt, made in
 * `room`. NULL: it is the trace itself, or the default is too long or exists already; the error was
 * printed. */
const char *cli_choose_output(const char *command, const char *trace, const char *given,
                              const char *suffix, char *room, size_t size);

/* Many of a kind: "ops", "kernels". */
const char *cli_kinds_name(unsigned kind);
enum {
    CLI_KINDS = 18
};

/* What a bit of enum mtprof_want records, in words; NULL for a bit that has none. */
const char *cli_want_name(unsigned bit);

#endif /* CLI_TRACE_FILE_H */
