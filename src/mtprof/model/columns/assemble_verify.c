/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether columns keep what model.h promises. Debug builds ask after every assembly; nothing here
 * is for input to fail: what a trace may say wrongly has been dealt with before.
 */
#include "base/alloc.h"
#include "mtprof/model/columns/assemble_impl.h"

/* Wide enough for every sum of durations, also of impossible times. */
typedef __int128 wide;

static wide duration(const mtprof__columns *columns, size_t i)
{
    return (wide)columns->end_ns[i] - columns->start_ns[i];
}

static bool in_order(const mtprof__columns *columns, size_t i)
{
    if (i == 0 || columns->start_ns[i - 1] < columns->start_ns[i]) {
        return true;
    }
    if (columns->start_ns[i - 1] != columns->start_ns[i]) {
        return false;
    }
    if (columns->end_ns[i - 1] != columns->end_ns[i]) {
        return columns->end_ns[i - 1] > columns->end_ns[i];
    }
    return columns->index[i - 1] <= columns->index[i];
}

/* MDL1, and that numbers are in range. */
static bool event_holds(const mtprof_model *model, size_t i)
{
    const mtprof__columns *columns = &model->columns;
    bool loose = (columns->flags[i] & MTPROF__LOOSE) != 0;
    bool device = mtprof__kind_in(columns->kind[i], MTPROF__KINDS_DEVICE);
    return in_order(columns, i) && columns->end_ns[i] >= columns->start_ns[i] &&
           columns->self_ns[i] >= 0 && columns->self_ns[i] <= duration(columns, i) &&
           (columns->self_ns[i] == 0 || (!loose && !device)) &&
           (columns->parent[i] < columns->n || columns->parent[i] == MTPROF_NO_EVENT) &&
           columns->parent[i] != i && columns->name[i] < model->dictionary.n_names &&
           columns->track[i] < model->dictionary.n_tracks &&
           columns->device[i] < model->dictionary.n_devices;
}

/* MDL2. Without memory to check, nothing is known to be wrong. */
static bool sums_hold(const mtprof_model *model)
{
    const mtprof__columns *columns = &model->columns;
    wide *rest = mtb_calloc(model->dictionary.n_tracks + 1, sizeof *rest);
    if (rest == NULL) {
        return true;
    }
    for (size_t i = 0; i < columns->n; i++) {
        if (columns->kind[i] == MTPROF_EVENT_KIND_FUNCTION) {
            continue; /* not part of the sums */
        }
        rest[columns->track[i]] += columns->self_ns[i];
        if ((columns->flags[i] & MTPROF_EVENT_FLAG_TOP) != 0) {
            rest[columns->track[i]] -= duration(columns, i);
        }
    }
    bool hold = true;
    for (size_t i = 0; i < model->dictionary.n_tracks; i++) {
        hold &= rest[i] == 0;
    }
    mtb_free(rest);
    return hold;
}

/* What is tied to an event, is tied to one of the host's. */
static bool links_hold(const mtprof_model *model)
{
    const mtprof__columns *columns = &model->columns;
    const uint32_t *link = columns->extra[MTPROF_COLUMN_LINK];
    for (size_t i = 0; link != NULL && i < columns->n; i++) {
        if (link[i] != MTPROF_NO_EVENT &&
            (link[i] >= columns->n ||
             mtprof__kind_in(columns->kind[link[i]], MTPROF__KINDS_DEVICE))) {
            return false;
        }
    }
    return true;
}

bool mtprof__model_verify(const mtprof_model *model)
{
    for (size_t i = 0; i < model->columns.n; i++) {
        if (!event_holds(model, i)) {
            return false;
        }
    }
    return sums_hold(model) && links_hold(model);
}
