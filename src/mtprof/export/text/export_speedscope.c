/* SPDX-License-Identifier: Apache-2.0
 *
 * speedscope's JSON: an evented profile for each thread, or for each queue when the metric is the
 * device's time.
 *
 *     {"$schema": …, "exporter": …, "profiles": [ {… "events": [{"type":"O","frame":0,"at":0}, …]}
 * ], "shared": {"frames": [{"name": …}, …]}}
 *
 * A profile is written in one piece, but the stream mixes the tracks. So the stream is read several
 * times: once to count, then once for each group of tracks whose edges fit into BUFFER_EDGES
 * together; a track that is longer has a reading of its own and is written as it comes. Readings
 * are at most two for every BUFFER_EDGES edges, and memory is bounded. (Temporary files would save
 * readings, but need a disk that may be full, and clearing up after a crash.)
 *
 *   SPS1  In a profile `at` does not decrease, and a C closes the frame of the latest O.
 *   SPS2  Numbers are nanoseconds since the trace's start: exact in JavaScript for 104 days.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/idmap.h"
#include "base/saturate.h"
#include "mtprof/export/text/export_text.h"
#include "mtprof/format/texts.h"

#include <mtprof/version.h>

#include <stdlib.h>

enum {
#if defined(MT_HOSTILE) && MT_HOSTILE
    BUFFER_EDGES = 4,
#else
    BUFFER_EDGES = 4 << 20, /* 64 MiB */
#endif
    INLINE_NAMES_MAX = 1 << 20,
    FRAME_NONE = 0,
    EDGE_CLOSE = 0 /* as a frame */
};

typedef struct edge {
    int64_t at;
    uint32_t frame; /* index + 1 of what opens; EDGE_CLOSE */
} edge;

typedef struct profile {
    uint64_t n_edges; /* as counted */
    edge *edges;      /* where its group is buffered */
    uint64_t n_kept, capacity;
    int64_t last_at;
    uint32_t *open; /* frames + 1 */
    size_t n_open, open_capacity;
    bool begun; /* its head is written */
    bool comma;
} profile;

typedef struct speedscope {
    mtprof__export_job *job;
    mtb_writer *writer;
    bool device;
    uint32_t first, last; /* tracks of this reading */
    profile *profiles;    /* by track */
    size_t n_profiles, profiles_capacity;
    bool comma; /* a profile was written before */
    uint64_t clamped;
    /* frames: name, or text of a name without a number */
    mtprof_text *frames;
    size_t n_frames, frames_capacity;
    uint32_t *name_frames; /* by name: frame + 1 */
    size_t n_names;
    mtb_arena arena;
    mtb_idmap inline_map;
    uint32_t n_inline;
} speedscope;

/* ---- frames ---------------------------------------------------------------------------------- */

static bool same_frame(const void *context, uint32_t id, const void *key)
{
    return mtprof__text_same(((const mtprof_text *)context)[id - 1], *(const mtprof_text *)key);
}

/* Names without a number are kept here, but not without end. */
static int find_inline(speedscope *x, mtprof_text text, uint32_t *frame)
{
    static const mtprof_text others = {"(more names)", sizeof "(more names)" - 1};
    if (x->n_inline >= INLINE_NAMES_MAX) {
        text = others;
    }
    uint64_t hash = mtb_hash_bytes(text.bytes, text.length);
    *frame = mtb_idmap_find(&x->inline_map, hash, same_frame, x->frames, &text);
    if (*frame != FRAME_NONE) {
        return 0;
    }
    mtprof_text copy = {mtb_arena_copy_text(&x->arena, text.bytes, text.length), text.length};
    if (copy.bytes == NULL || !mtb_idmap_append(&x->inline_map, hash, x->frames, x->n_frames,
                                                x->frames_capacity, &copy)) {
        return mtb_fail(MTPROF_ENOMEM, "export speedscope: no memory for a name");
    }
    *frame = (uint32_t)x->n_frames;
    x->n_inline++;
    return 0;
}

static int find_frame(speedscope *x, const mtprof__event *event, uint32_t *frame)
{
    uint32_t name = event->name;
    if (name == MTPROF__NAME_INLINE) {
        return find_inline(x, event->name_text, frame);
    }
    if (!mtb_reach((void **)&x->name_frames, &x->n_names, name, sizeof *x->name_frames)) {
        return mtb_fail(MTPROF_ENOMEM, "export speedscope: no memory for names");
    }
    if (x->name_frames[name] == FRAME_NONE) {
        /* The model's own text lives longer than the event. */
        mtprof_text text = mtprof_model_name(x->job->model, name);
        if (!mtb_append(x->frames, x->n_frames, x->frames_capacity, &text)) {
            return mtb_fail(MTPROF_ENOMEM, "export speedscope: no memory for frames");
        }
        x->name_frames[name] = (uint32_t)x->n_frames;
    }
    *frame = x->name_frames[name];
    return 0;
}

/* ---- a profile ------------------------------------------------------------------------------- */

static void write_head(speedscope *x, uint32_t number, int64_t first_at)
{
    mtb_writer *w = x->writer;
    mtprof_track track;
    mtb_write_text(w, x->comma ? ",\n" : "\n");
    x->comma = true;
    mtb_write_literal(w, "{\"type\":\"evented\",\"name\":\"");
    if (!mtprof_model_track(x->job->model, number, &track)) {
        mtb_write_format(w, "track %u", number);
    } else if (track.name.length > 0) {
        mtb_write_json_inner(w, track.name.bytes, track.name.length);
        mtb_write_format(w, " (%lld)", (long long)track.tid);
    } else {
        mtb_write_format(w, "%s %lld", track.device == 0 ? "thread" : "queue",
                         (long long)track.tid);
    }
    mtb_write_format(w, "\",\"unit\":\"nanoseconds\",\"startValue\":%lld,\"events\":[",
                     (long long)(first_at < 0 ? first_at : 0));
}

static void write_edge(speedscope *x, profile *p, const char *type, uint32_t frame, int64_t at)
{
    mtb_writer *w = x->writer;
    mtb_write_text(w, p->comma ? ",\n" : "\n");
    p->comma = true;
    mtb_write_literal(w, "{\"type\":\"");
    mtb_write(w, type, 1);
    mtb_write_literal(w, "\",\"frame\":");
    mtb_write_u64(w, frame - 1);
    mtb_write_literal(w, ",\"at\":");
    mtb_write_i64(w, at);
    mtb_write_literal(w, "}");
}

/* Writes an edge of a profile; SPS1 whatever comes. Fails with ENOMEM. */
static int put_edge(speedscope *x, uint32_t number, edge e)
{
    profile *p = &x->profiles[number];
    if (!p->begun) {
        p->begun = true;
        p->last_at = e.at;
        write_head(x, number, e.at);
    }
    if (e.at >= p->last_at) {
        p->last_at = e.at;
    } else {
        x->clamped += e.frame != EDGE_CLOSE;
    }
    if (e.frame != EDGE_CLOSE) {
        if (!mtb_append(p->open, p->n_open, p->open_capacity, &e.frame)) {
            return mtb_fail(MTPROF_ENOMEM, "export speedscope: no memory for open scopes");
        }
        write_edge(x, p, "O", e.frame, p->last_at);
    } else if (p->n_open > 0) {
        write_edge(x, p, "C", p->open[--p->n_open], p->last_at);
    }
    return 0;
}

static void end_profile(speedscope *x, profile *p)
{
    if (p->begun) {
        while (p->n_open > 0) {
            write_edge(x, p, "C", p->open[--p->n_open], p->last_at);
        }
        mtb_write_format(x->writer, "],\"endValue\":%lld}", (long long)p->last_at);
    }
    mtb_free(p->open);
    mtb_free(p->edges);
    *p = (profile){.n_edges = 0};
}

/* ---- readings -------------------------------------------------------------------------------- */

/* Which edges a profile gets from an event: none, one, or both. */
static bool is_shown(const speedscope *x, const mtprof__event *event)
{
    return x->device ? event->edge == MTPROF__EDGE_SPAN && event->device != 0 &&
                           event->kind != MTPROF_EVENT_KIND_ANNOTATION
                     : event->edge <= MTPROF__EDGE_END;
}

static int count_event(speedscope *x, const mtprof__event *event)
{
    if (event->track >= x->n_profiles) {
        if (!mtb_grow((void **)&x->profiles, &x->profiles_capacity, (size_t)event->track + 1,
                      sizeof *x->profiles)) {
            return mtb_fail(MTPROF_ENOMEM, "export speedscope: no memory for tracks");
        }
        memset(x->profiles + x->n_profiles, 0,
               (event->track + 1 - x->n_profiles) * sizeof *x->profiles);
        x->n_profiles = (size_t)event->track + 1;
    }
    x->profiles[event->track].n_edges += event->edge == MTPROF__EDGE_SPAN ? 2 : 1;
    x->job->report.events += event->edge != MTPROF__EDGE_BEGIN;
    return 0;
}

static int take_edge(speedscope *x, uint32_t number, int64_t at_ns, uint32_t frame)
{
    profile *p = &x->profiles[number];
    edge e = {mtb_sub_sat(at_ns, x->job->info.start_ns), frame};
    if (p->capacity == 0) {
        return put_edge(x, number, e);
    }
    if (p->n_kept < p->capacity) { /* as many as were counted, unless the trace is growing */
        p->edges[p->n_kept++] = e;
    }
    return 0;
}

static int take_event(speedscope *x, const mtprof__event *event)
{
    uint32_t frame = EDGE_CLOSE;
    if (event->edge == MTPROF__EDGE_END) {
        return take_edge(x, event->track, event->shown_end_ns, EDGE_CLOSE);
    }
    MT_TRY(find_frame(x, event, &frame));
    MT_TRY(take_edge(x, event->track, event->shown_start_ns, frame));
    return event->edge == MTPROF__EDGE_BEGIN
               ? 0
               : take_edge(x, event->track, event->shown_end_ns, EDGE_CLOSE);
}

static int read_event(void *context, const mtprof__event *event)
{
    speedscope *x = context;
    if (!is_shown(x, event)) {
        return 0;
    }
    if (x->first > x->last) {
        return count_event(x, event);
    }
    return event->track >= x->first && event->track <= x->last ? take_event(x, event) : 0;
}

/* One reading of the stream: all tracks are counted (first > last), or those from first to last are
 * taken. */
static int read_stream(speedscope *x, uint32_t first, uint32_t last)
{
    x->first = first;
    x->last = last;
    return mtprof__export_events(x->job, read_event, x, &x->job->report.clamped);
}

/* Spans of a queue come when their launch is known, not in order of time. */
static int compare_spans(const void *a, const void *b)
{
    const edge *x = a;
    const edge *y = b;
    int order = mtb_order(x->at, y->at);
    return order != 0 ? order : mtb_order(y[1].at, x[1].at);
}

/* Writes the buffered profiles of a group. */
static int write_group(speedscope *x, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i <= last; i++) {
        profile *p = &x->profiles[i];
        if (x->device && p->n_kept > 1) { /* pairs: O and C */
            qsort(p->edges, (size_t)p->n_kept / 2, 2 * sizeof *p->edges, compare_spans);
        }
        for (uint64_t k = 0; k < p->n_kept; k++) {
            MT_TRY(put_edge(x, i, p->edges[k]));
        }
        end_profile(x, p);
    }
    return 0;
}

/* The tracks from `first` on that one reading can take; the last of them. */
static int plan_group(speedscope *x, uint32_t first, uint32_t *last)
{
    uint64_t edges = 0;
    *last = first;
    for (uint32_t i = first; i < x->n_profiles; i++) {
        profile *p = &x->profiles[i];
        edges += p->n_edges;
        if (edges > BUFFER_EDGES) {
            break; /* alone it is not buffered: it is written as it comes */
        }
        if (p->n_edges > 0) {
            p->edges = mtb_calloc((size_t)p->n_edges, sizeof *p->edges);
            if (p->edges == NULL) {
                return mtb_fail(MTPROF_ENOMEM, "export speedscope: no memory for a thread");
            }
            p->capacity = p->n_edges;
        }
        *last = i;
    }
    return 0;
}

static int write_profiles(speedscope *x)
{
    MT_TRY(read_stream(x, 1, 0));
    for (uint32_t first = 0; first < x->n_profiles;) {
        uint32_t last = first;
        MT_TRY(plan_group(x, first, &last));
        MT_TRY(read_stream(x, first, last));
        MT_TRY(write_group(x, first, last));
        first = last + 1;
    }
    return 0;
}

static int write_file(speedscope *x)
{
    mtb_writer *w = x->writer;
    mtb_write_format(w,
                     "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
                     "\"exporter\":\"mtprof %s\",\n\"name\":",
                     mtprof_version_string());
    const char *name = x->job->path != NULL ? x->job->path : "trace";
    mtb_write_json(w, name, strlen(name));
    mtb_write_literal(w, ",\n\"activeProfileIndex\":0,\n\"profiles\":[");
    MT_TRY(write_profiles(x));
    mtb_write_literal(w, "],\n\"shared\":{\"frames\":[");
    for (size_t i = 0; i < x->n_frames; i++) {
        mtb_write_text(w, i > 0 ? ",\n{\"name\":" : "\n{\"name\":");
        mtb_write_json(w, x->frames[i].bytes, x->frames[i].length);
        mtb_write_literal(w, "}");
    }
    mtb_write_literal(w, "]}");
    MT_TRY(mtprof__export_damage(x->job));
    mtprof__export_write_damage(x->job);
    mtb_write_literal(w, "}\n");
    return 0;
}

int mtprof__export_speedscope(mtprof__export_job *job)
{
    speedscope x = {.job = job, .writer = job->writer};
    MT_TRY(mtprof__export_metric(job, &x.device));
    int status = write_file(&x);
    job->report.clamped += x.clamped;
    for (size_t i = 0; i < x.n_profiles; i++) {
        mtb_free(x.profiles[i].open);
        mtb_free(x.profiles[i].edges);
    }
    mtb_free(x.profiles);
    mtb_free(x.frames);
    mtb_free(x.name_frames);
    mtb_arena_reset(&x.arena);
    mtb_idmap_reset(&x.inline_map);
    return status;
}
