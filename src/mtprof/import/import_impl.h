/* SPDX-License-Identifier: Apache-2.0
 *
 * The making of a model from another tool's trace.
 *
 *   import_source.c   file, plain or gzipped ─► window of text
 *   import_document.c window ─► entries of traceEvents, metadata of the trace
 *   import_event.c    entry ─► slices
 *   import_add.c      slices ─► event on its track (import_track.c), point, name of a thread;
 *                     import_payload.c its arguments, import_inputs.c its inputs and stack
 *   import_nest.c     track ─► sorted, with parents, self times, steps
 *   import_memory.c   allocations ─► the events they belong to (import_refs.c: by their ids)
 *   import_finish.c   tracks ─► runs ─► model
 *
 *   IM1  Events are added in the order of the file; a track's columns are sorted once, at the end.
 *        What names an event by its place in them before (links, open begins) is renumbered then.
 *   IM2  Times are what the file says, in nanoseconds, without rounding through a double.
 *   IM3  Nothing but columns, points and distinct texts grows with the file.
 */
#ifndef MTPROF_IMPORT_IMPORT_IMPL_H
#define MTPROF_IMPORT_IMPORT_IMPL_H

#include "base/idmap.h"
#include "mtprof/import/import_cache.h"
#include "mtprof/import/import_event.h"
#include "mtprof/import/import_source.h"
#include "mtprof/model/events/event.h"
#include "mtprof/model/model_impl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a track is; tracks are identified by this, pid and tid. */
enum mtprof__track_space {
    MTPROF__TRACK_HOST = 0,
    MTPROF__TRACK_OVERHEAD = 1, /* its events go to the threads that were running (import_nest.c) */
    MTPROF__TRACK_QUEUE = 2,    /* pid is the device's number, tid the queue's */
    MTPROF__TRACK_ANNOTATION = 3 /* the same queue: annotations come before work of equal times */
};

/* INDEX of host events that came without one, until all are in order: after those that did, before
 * device work. */
#define MTPROF__NO_INDEX (MTPROF_NO_EVENT - 1)

/* A flag while reading, set with ASYNC: our export says that the span outlived the one around it.
 * It does not nest either, but ends up as OVERLAP. */
#define MTPROF__SAID_OVERLAP ((uint16_t)(1 << 15))

/* Pids and tids given as texts: this plus the number of a name. Above those of any system. */
#define MTPROF__STRANGE_ID ((int64_t)1 << 40)

typedef struct mtprof__import_track {
    int64_t pid, tid;
    uint8_t space;                  /* enum mtprof__track_space */
    bool unsorted;                  /* an event began before the one in front of it */
    bool nested;                    /* parents and self times are there */
    uint32_t track;                 /* in the dictionary; set by import_finish.c */
    mtprof_text name, process_name; /* bytes NULL: not known */
    mtprof__run run;
    uint32_t *open; /* begins without an end, innermost last */
    size_t n_open, open_capacity;
} mtprof__import_track;

MT_INLINE bool mtprof__import_is_queue(const mtprof__import_track *track)
{
    return track->space >= MTPROF__TRACK_QUEUE;
}

/* A step: "ProfilerStep#7". */
typedef struct mtprof__step_span {
    int64_t start_ns, end_ns;
    int64_t pid;
    int32_t step;
} mtprof__step_span;

/* An asynchronous span that has begun. */
typedef struct mtprof__async_open {
    uint32_t track, place;
    uint32_t below; /* the one that began before it under the same key, plus 1 */
} mtprof__async_open;

typedef struct mtprof__process_name {
    int64_t pid;
    mtprof_text name;
} mtprof__process_name;

typedef struct mtprof__import {
    mtprof_model *model;
    mtprof__source *source;

    mtprof__import_track *tracks;
    size_t n_tracks, tracks_capacity;
    mtb_idmap track_map; /* index + 1 */
    uint32_t last_track; /* the one that was found last */

    mtprof__cache names, inputs, stacks, metadata;
    char *scratch; /* decoded texts, keys of caches, words of input lists */
    size_t scratch_bytes;

    mtprof__event *points; /* `track` is an index of tracks; `device` 1 + number, 0: host */
    size_t n_points, points_capacity;
    size_t n_allocs;
    bool allocs_name_owner; /* some do, in `correlation` */

    mtprof__async_open *asyncs;
    uint32_t *async_heads; /* by id of async_map: index + 1 */
    size_t n_asyncs, asyncs_capacity, n_heads, heads_capacity;
    uint64_t *head_checks; /* a second hash of each key */
    size_t head_checks_capacity;
    mtb_idmap async_map;

    mtprof__step_span *steps; /* by start; there once the trees are */
    size_t n_steps, steps_capacity;

    mtprof__process_name *processes; /* by pid */
    size_t n_processes, processes_capacity;

    int64_t first_ns, last_ns; /* of spans and points */
    int64_t base_ns;           /* "baseTimeNanoseconds" */
    uint64_t wants;
    const char *device_type; /* from categories; NULL: none */
    mtprof_text device_name; /* from arguments; bytes NULL: none */
    bool is_ours; /* written by our exporter: ids are unique over all kinds of events, but for */
    bool two_id_families; /* a trace that was not ours before ("mtprof_ids") */
    bool has_begins;      /* spans in two halves */

    uint64_t entries, events; /* of traceEvents, and those that became something */
    mtprof_model_findings found;
    mtprof__raw_event raw;
} mtprof__import;

/* import_document.c: reads the whole text. Fails with EFORMAT, ECALLBACK and as its parts do. */
int mtprof__import_document(mtprof__import *import);

/* import_add.c: takes import->raw in. Fails with ENOMEM. */
int mtprof__import_add(mtprof__import *import);

/* import_track.c ----------------------------------------------------------------------------------
 */
int mtprof__import_track_of(mtprof__import *import, uint8_t space, int64_t pid, int64_t tid,
                            uint32_t *track);
/* pid or tid of an entry: a number, or a number made for a text. */
int mtprof__import_id(mtprof__import *import, const mtb_slice *slice, int64_t *out);
/* Appends an event with its base columns; `name` is the model's. *place is where. */
typedef struct mtprof__new_span {
    int64_t start_ns, end_ns;
    uint32_t name, index;
    uint32_t overload; /* name + 1, 0: none; not one of the base columns */
    int32_t step;
    uint8_t kind;
    uint16_t flags;
} mtprof__new_span;
int mtprof__import_append(mtprof__import *import, uint32_t track, const mtprof__new_span *span,
                          uint32_t *place);
/* Adds a point; *out is zeroed but for edge, kind, track, step and times. */
int mtprof__import_point(mtprof__import *import, uint8_t kind, uint32_t track, int64_t at_ns,
                         mtprof__event **out);
void mtprof__import_seen(mtprof__import *import, int64_t start_ns, int64_t end_ns);

/* import_text.c -----------------------------------------------------------------------------------
 */
/* At least so many bytes of scratch; NULL: no memory (the failure is noted). What was in it is
 * lost. */
char *mtprof__import_scratch(mtprof__import *import, size_t bytes);
/* The text of a string, decoded into scratch where it has escapes; other values unchanged. */
int mtprof__import_text(mtprof__import *import, const mtb_slice *slice, mtprof_text *out);
/* The model's name for a text. */
int mtprof__import_name(mtprof__import *import, const mtb_slice *slice, uint32_t *name);
/* A copy that lives as long as the model. */
int mtprof__import_keep(mtprof__import *import, const mtb_slice *slice, mtprof_text *out);
/* One value as metadata; a string is decoded to `room`, which has value->length bytes. */
void mtprof__import_metadatum(const mtb_slice *value, char *room, mtprof_metadatum *out);
/* The entry's arguments, but for those in `understood` (bits per enum mtprof__arg), as a list of
 * metadata; 0: none. */
int mtprof__import_metadata(mtprof__import *import, uint64_t understood, uint32_t *metadata);

/* import_payload.c: arguments of a span into its extra columns. */
int mtprof__import_host_args(mtprof__import *import, uint32_t track, uint32_t place);
int mtprof__import_device_args(mtprof__import *import, uint32_t track, uint32_t place);

/* import_inputs.c: what the entry says of its inputs; 0: nothing. */
int mtprof__import_inputs(mtprof__import *import, uint32_t *inputs, uint32_t *scalars);
/* import_stack.c: and of its stack. */
int mtprof__import_stack(mtprof__import *import, uint32_t *stack);

/* import_sort.c -----------------------------------------------------------------------------------
 */
typedef struct mtprof__sort_key {
    int64_t start_ns, end_ns;
    uint32_t index, place;
} mtprof__sort_key;
/* Sorts by start, longest first, index, place. Fails with ENOMEM. */
int mtprof__import_sort_keys(mtprof__sort_key *keys, size_t n);
/* Sorts an array so, by the keys of its items (their place is set); *items is another block then.
 * Fails with ENOMEM. */
int mtprof__import_sort_items(void **items, size_t n, size_t item_bytes,
                              void (*key_of)(const void *item, mtprof__sort_key *key));
/* Sorts a track so and renumbers what names its events. */
int mtprof__import_sort(mtprof__import_track *track);

/* import_nest.c -----------------------------------------------------------------------------------
 */
/* Parents, self times, and the flags TOP and OVERLAP of a sorted track. */
int mtprof__import_nest(mtprof__import_track *track);
/* For times in ascending order, the innermost event of a sorted and nested track that takes part in
 * its tree and is open then, its end included; MTPROF_NO_EVENT: none. */
void mtprof__import_innermost(const mtprof__import_track *track, const mtprof__sort_key *times,
                              size_t n, uint32_t *out);
/* Sorts and nests all threads, overheads among them, and sets the steps of events. */
int mtprof__import_trees(mtprof__import *import);
/* The steps of a sorted track's events, where they have none. */
void mtprof__import_tell_steps(const mtprof__import *import, const mtprof__import_track *track);

/* import_refs.c: host events by id. The items are the caller's to free, also after a failure. */
typedef struct mtprof__id_ref {
    uint64_t id;
    uint32_t track, place;
} mtprof__id_ref;
typedef struct mtprof__id_refs {
    mtprof__id_ref *items; /* by id */
    size_t n;
} mtprof__id_refs;
int mtprof__import_refs_make(const mtprof__import *import, mtprof__id_refs *refs);
/* NULL: none has it. */
const mtprof__id_ref *mtprof__import_refs_find(const mtprof__id_refs *refs, uint64_t id);

/* import_memory.c: allocations into the self memory of the events they are in, and those outside
 * all events into events of their own, appended to `strays`. Their `owner` becomes what
 * mtprof__model_assemble() wants; bases[t] is the number of the first event of track t. */
int mtprof__import_memory(mtprof__import *import, const uint32_t *bases, mtprof__run *strays);

/* import_finish.c: everything that was added into the model. */
int mtprof__import_finish(mtprof__import *import);

/* model_open.c: a model of a text that is open. For tests and fuzzing, too. */
int mtprof__import_source(mtprof__source *source, const mtprof_model_options *options,
                          mtprof_model **out);

/* Where a process is among import->processes, or would be: they are sorted by pid. */
size_t mtprof__import_find_process(const mtprof__import *import, int64_t pid);

/* Numbers that torch has for types of devices: whether one is the host's memory, and what another
 * is called (NULL: not known). */
bool mtprof__import_is_host_memory(int64_t type);
const char *mtprof__import_device_of_memory(int64_t type);

#endif /* MTPROF_IMPORT_IMPORT_IMPL_H */
