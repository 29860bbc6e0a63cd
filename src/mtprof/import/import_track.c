/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracks while a trace is read: threads and queues, and the appending of events to them.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/import/import_impl.h"

#include <string.h>

enum {
    FIRST_EVENTS = 16
};

/* ---- tracks ---------------------------------------------------------------------------------- */

typedef struct track_key {
    int64_t pid, tid;
    uint8_t space;
} track_key;

static bool is_track(const mtprof__import_track *track, const track_key *key)
{
    return track->tid == key->tid && track->pid == key->pid && track->space == key->space;
}

static bool same_track(const void *context, uint32_t id, const void *key)
{
    const mtprof__import *import = context;
    return is_track(&import->tracks[id - 1], key);
}

int mtprof__import_track_of(mtprof__import *import, uint8_t space, int64_t pid, int64_t tid,
                            uint32_t *track)
{
    const track_key key = {pid, tid, space};
    if (MT_LIKELY(import->last_track < import->n_tracks &&
                  is_track(&import->tracks[import->last_track], &key))) {
        *track = import->last_track;
        return MTPROF_OK;
    }
    uint64_t hash = mtb_mix(mtb_mix((uint64_t)pid, (uint64_t)tid), space);
    uint32_t found = mtb_idmap_find(&import->track_map, hash, same_track, import, &key);
    if (found == 0) {
        const mtprof__import_track made = {.pid = pid, .tid = tid, .space = space};
        if (!mtb_idmap_append(&import->track_map, hash, import->tracks, import->n_tracks,
                              import->tracks_capacity, &made)) {
            return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for %zu tracks",
                            import->n_tracks + 1);
        }
        found = (uint32_t)import->n_tracks;
    }
    *track = import->last_track = found - 1;
    return MTPROF_OK;
}

/* A process that is given as a text gets a number, the same for the same text, and the text as its
 * name. */
static int strange_id(mtprof__import *import, const mtb_slice *slice, int64_t *out)
{
    uint32_t name;
    MT_TRY(mtprof__import_name(import, slice, &name));
    *out = MTPROF__STRANGE_ID + name;
    return MTPROF_OK;
}

int mtprof__import_id(mtprof__import *import, const mtb_slice *slice, int64_t *out)
{
    *out = 0;
    if (MT_LIKELY(slice->type == MTB_SLICE_INT)) {
        *out = slice->integer;
        return MTPROF_OK;
    }
    if (slice->type == MTB_SLICE_NONE || slice->type == MTB_SLICE_NULL ||
        mtb_slice_integer(slice, out)) {
        return MTPROF_OK;
    }
    return strange_id(import, slice, out);
}

/* ---- events ---------------------------------------------------------------------------------- */

void mtprof__import_seen(mtprof__import *import, int64_t start_ns, int64_t end_ns)
{
    import->first_ns = start_ns < import->first_ns ? start_ns : import->first_ns;
    import->last_ns = end_ns > import->last_ns ? end_ns : import->last_ns;
}

static bool begins_before(const mtprof__columns *columns, uint32_t place)
{
    int64_t start = columns->start_ns[place];
    int64_t before = columns->start_ns[place - 1];
    if (start != before) {
        return start < before;
    }
    int64_t end = columns->end_ns[place];
    int64_t end_before = columns->end_ns[place - 1];
    return end != end_before ? end > end_before : columns->index[place] < columns->index[place - 1];
}

int mtprof__import_append(mtprof__import *import, uint32_t track, const mtprof__new_span *span,
                          uint32_t *place)
{
    mtprof__import_track *to = &import->tracks[track];
    mtprof__columns *columns = &to->run.columns;
    size_t n = columns->n;
    if (MT_UNLIKELY(n == columns->capacity)) {
        if (n >= MTPROF_NO_EVENT) {
            return mtb_fail(MTPROF_ENOTSUP, "open trace: more than %u events on a track",
                            MTPROF_NO_EVENT);
        }
        MT_TRY(mtprof__columns_reserve(columns, n == 0 ? FIRST_EVENTS : n * 2));
    }
    columns->start_ns[n] = span->start_ns;
    columns->end_ns[n] = span->end_ns;
    columns->self_ns[n] = 0;
    columns->parent[n] = MTPROF_NO_EVENT;
    columns->name[n] = span->name;
    columns->track[n] = 0;
    columns->step[n] = span->step;
    columns->index[n] = span->index;
    columns->kind[n] = span->kind;
    columns->device[n] = 0;
    columns->flags[n] = span->flags;
    columns->n = n + 1;
    *place = (uint32_t)n;
    if (n > 0 && begins_before(columns, (uint32_t)n)) {
        to->unsorted = true;
    }
    mtprof__import_seen(import, span->start_ns, span->end_ns);
    return MTPROF_OK;
}

int mtprof__import_point(mtprof__import *import, uint8_t kind, uint32_t track, int64_t at_ns,
                         mtprof__event **out)
{
    *out = NULL;
    mtprof__event point = mtprof__event_at(MTPROF__EDGE_POINT, kind, at_ns, at_ns);
    point.track = track;
    if (!mtb_append(import->points, import->n_points, import->points_capacity, &point)) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for %zu points",
                        import->n_points + 1);
    }
    mtprof__import_seen(import, at_ns, at_ns);
    *out = &import->points[import->n_points - 1];
    return MTPROF_OK;
}
