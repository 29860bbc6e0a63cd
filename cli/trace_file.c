/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening traces, see trace_file.h.
 */
#include "cli/trace_file.h"

#include "cli/term.h"
#include "cli/units.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

static mtprof_model *open_trace(const cli_call *call, const char *path, bool whole)
{
    const cli_common *common = call->common;
    mtprof_model_options options = {
        .struct_size = sizeof options,
        .discarded = common->discarded,
        .keep_duplicates = whole,
        .progress = cli_progress_step,
    };
    if (common->windows.given) {
        options.first_window = (uint32_t)common->windows.first;
        options.last_window = (uint32_t)common->windows.last;
    }
    mtprof_model *model = NULL;
    cli_progress_start(path, common->quiet);
    mtprof_status status = mtprof_model_open(path, &options, &model);
    if (status != MTPROF_OK) {
        cli_library_error(path, status);
        return NULL;
    }
    return model;
}

mtprof_model *cli_open_trace(const cli_call *call, const char *path)
{
    return open_trace(call, path, false);
}

mtprof_model *cli_open_trace_whole(const cli_call *call, const char *path)
{
    return open_trace(call, path, true);
}

/* Always on standard error: readers must know that the numbers are incomplete. */
static void tell_damage(const char *path, const mtprof_damage *damage, bool foreign)
{
    if (foreign) {
        cli_error("%s: damaged at byte %" PRIu64 ": what stood there or behind it is missing", path,
                  damage->offset);
    } else {
        cli_error("%s: damaged in %s place%s, %s byte%s unreadable, the first at byte %" PRIu64
                  ": events are missing",
                  path, cli_count(damage->problems).text, cli_plural(damage->problems),
                  cli_count(damage->bytes).text, cli_plural(damage->bytes), damage->offset);
    }
    cli_hint("'mtprof check %s' tells more", path);
}

int cli_close_trace(mtprof_model *model, const char *path, int code)
{
    mtprof_damage damage = {.struct_size = sizeof damage};
    mtprof_model_info info = {.struct_size = sizeof info};
    if (model == NULL || code == CLI_FAILED || code == CLI_MISUSE) {
        mtprof_model_free(model);
        return code;
    }
    mtprof_status status = mtprof_model_get_damage(model, &damage);
    (void)mtprof_model_get_info(model, &info);
    if (status != MTPROF_OK) {
        code = cli_library_error(path, status);
    } else if (damage.problems > 0) {
        tell_damage(path, &damage, info.foreign != 0);
        code = code == CLI_OK ? CLI_DAMAGED : code;
    }
    mtprof_model_free(model);
    return code;
}

static bool load(mtprof_model *model, const char *path, enum mtprof_column_id id, const void **data,
                 uint64_t *count)
{
    mtprof_column column;
    mtprof_status status = mtprof_model_get_column(model, id, &column);
    if (status != MTPROF_OK) {
        cli_library_error(path, status);
        return false;
    }
    *data = column.data;
    *count = column.count;
    return true;
}

bool cli_load_columns(mtprof_model *model, const char *path, cli_columns *out)
{
    const void *data[8];
    static const enum mtprof_column_id ids[] = {
        MTPROF_COLUMN_START_NS, MTPROF_COLUMN_END_NS, MTPROF_COLUMN_SELF_NS, MTPROF_COLUMN_NAME,
        MTPROF_COLUMN_TRACK,    MTPROF_COLUMN_STEP,   MTPROF_COLUMN_KIND,    MTPROF_COLUMN_DEVICE,
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        if (!load(model, path, ids[i], &data[i], &out->count)) {
            return false;
        }
    }
    out->start_ns = data[0];
    out->end_ns = data[1];
    out->self_ns = data[2];
    out->name = data[3];
    out->track = data[4];
    out->step = data[5];
    out->kind = data[6];
    out->device = data[7];
    return true;
}

const char *cli_kinds_name(unsigned kind)
{
    static const char *const names[] = {
        "scopes",
        "ops",
        "runtime calls",
        "functions",
        "steps",
        "launches",
        NULL,
        NULL,
        "kernels",
        "copies",
        "sets",
        "calls",
        "syncs",
        "device annotations",
        "others",
        "overheads",
        "memory",
        "out of memory",
    };
    static_assert(sizeof names / sizeof *names == CLI_KINDS, "a name for each kind");
    return kind < CLI_KINDS && names[kind] != NULL ? names[kind] : "unknown";
}

const char *cli_want_name(unsigned bit)
{
    static const char *const names[] = {
        "ops",     "scopes",     "runtime calls", "marks",       "shapes",
        "tensors", "stacks",     "memory",        "allocations", "FLOPs",
        "modules", "op details", "device work",   "strides",     "native stacks",
    };
    return bit < sizeof names / sizeof *names ? names[bit] : NULL;
}
