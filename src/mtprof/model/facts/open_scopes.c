/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/facts/open_scopes.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"

#include <string.h>

mtprof__open_scope *mtprof__open_scopes_top(const mtprof__open_scopes *open, uint32_t track)
{
    if (track >= open->n || open->tracks[track].n == 0) {
        return NULL;
    }
    return &open->tracks[track].scopes[open->tracks[track].n - 1];
}

int mtprof__open_scopes_begin(mtprof__open_scopes *open, const mtprof__event *event, uint32_t note)
{
    uint32_t track = event->track;
    if (track >= open->n) {
        if (!mtb_grow((void **)&open->tracks, &open->capacity, (size_t)track + 1,
                      sizeof *open->tracks)) {
            return mtb_fail(MTPROF_ENOMEM, "export: no memory for track %u", track);
        }
        memset(open->tracks + open->n, 0, (track + 1 - open->n) * sizeof *open->tracks);
        open->n = (size_t)track + 1;
    }
    mtprof__open_track *at = &open->tracks[track];
    if (!mtb_grow((void **)&at->scopes, &at->capacity, at->n + 1, sizeof *at->scopes)) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for %zu open scopes", at->n + 1);
    }
    at->scopes[at->n++] = (mtprof__open_scope){.note = note};
    return 0;
}

/* O1, whatever the times say. */
static int64_t bounded(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

bool mtprof__open_scopes_end(mtprof__open_scopes *open, const mtprof__event *event,
                             int64_t *self_ns, uint32_t *note)
{
    mtprof__open_scope *top = mtprof__open_scopes_top(open, event->track);
    *self_ns = 0;
    *note = 0;
    if (top == NULL) {
        return false;
    }
    mtprof__open_scope ended = *top;
    open->tracks[event->track].n--;
    mtprof__open_scope *around = mtprof__open_scopes_top(open, event->track);
    bool function = event->kind == MTPROF_EVENT_KIND_FUNCTION;
    bool nests = (event->flags & (MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_OVERLAP)) == 0;
    int64_t duration = bounded(mtb_sub_sat(event->end_ns, event->start_ns), INT64_MAX);
    int64_t taken = function ? ended.inside_ns : ended.ops_ns;
    if (nests) {
        *self_ns = bounded(mtb_sub_sat(duration, taken), duration);
    }
    *note = ended.note;
    if (around != NULL) {
        int64_t ops = nests && !function ? duration : ended.ops_ns;
        int64_t inside = nests ? duration : ended.inside_ns;
        around->ops_ns = mtb_add_sat(around->ops_ns, ops);
        around->inside_ns = mtb_add_sat(around->inside_ns, inside);
    }
    return true;
}

void mtprof__open_scopes_fini(mtprof__open_scopes *open)
{
    for (size_t i = 0; i < open->n; i++) {
        mtb_free(open->tracks[i].scopes);
    }
    mtb_free(open->tracks);
    *open = (mtprof__open_scopes){0};
}
