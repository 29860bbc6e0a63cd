/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening traces, see trace_file.h.
 */
#include "cli/trace_file.h"

#include "cli/term.h"
#include "cli/units.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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
    return cli_ok(path, mtprof_model_open(path, &options, &model)) ? model : NULL;
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

int cli_look_at_trace(const cli_call *call, cli_look *look)
{
    const char *path = call->operands[0];
    mtprof_model *model = cli_open_trace(call, path);
    return model != NULL ? cli_close_trace(model, path, look(call, model, path)) : CLI_FAILED;
}

const void *cli_column(mtprof_model *model, enum mtprof_column_id id, uint64_t *count)
{
    mtprof_column column;
    bool there = mtprof_model_get_column(model, id, &column) == MTPROF_OK;
    *count = there ? column.count : 0;
    return there ? column.data : NULL;
}

bool cli_load_columns(mtprof_model *model, const char *path, cli_columns *out)
{
    const struct {
        enum mtprof_column_id id;
        const void **to;
    } wanted[] = {
        {MTPROF_COLUMN_SELF_NS, (const void **)&out->self_ns},
        {MTPROF_COLUMN_TRACK, (const void **)&out->track},
        {MTPROF_COLUMN_STEP, (const void **)&out->step},
        {MTPROF_COLUMN_KIND, (const void **)&out->kind},
        {MTPROF_COLUMN_DEVICE, (const void **)&out->device},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        mtprof_column column;
        if (!cli_ok(path, mtprof_model_get_column(model, wanted[i].id, &column))) {
            return false;
        }
        *wanted[i].to = column.data;
        out->count = column.count;
    }
    return true;
}

static bool same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino && S_ISREG(first.st_mode);
}

const char *cli_choose_output(const char *command, const char *trace, const char *given,
                              const char *suffix, char *room, size_t size)
{
    static const char *const endings[] = {".mtt", ".json.gz", ".json", ".gz"};
    struct stat there;
    size_t length = strlen(trace);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]);
        if (length > n && strcmp(trace + length - n, endings[i]) == 0 &&
            trace[length - n - 1] != '/') {
            length -= n;
            break;
        }
    }
    int n = snprintf(room, size, "%.*s%s", (int)length, trace, suffix);
    const char *path = given != NULL ? given : room;
    if (given == NULL && (n < 0 || (size_t)n >= size)) {
        cli_error("%s: %s: the path is too long", command, trace);
        return NULL;
    }
    if (same_file(trace, path)) {
        cli_error("%s: %s: it is the trace that is read", command, path);
        cli_hint("name another output with -o FILE");
        return NULL;
    }
    if (given == NULL && stat(path, &there) == 0) {
        cli_error("%s: %s: it exists already", command, path);
        cli_hint("name the output with -o FILE; -o %s replaces it", path);
        return NULL;
    }
    return path;
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
