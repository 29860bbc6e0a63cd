/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model is made of, and the two ways to fill one: from records (build.c), and from runs that
 * an importer has made.
 *
 *   MI1  `columns` and `findings` are written once, by the one thread that is `builder`, and only
 *        read after `built` is set (release; readers acquire).
 *   MI2  Derived columns likewise, each with its own pointer.
 */
#ifndef MTPROF_MODEL_MODEL_IMPL_H
#define MTPROF_MODEL_MODEL_IMPL_H

#include "base/lock.h"
#include "mtprof/model/columns/columns.h"
#include "mtprof/model/dictionary.h"
#include "mtprof/read/problems.h"

#include <mtprof/model.h>

/* A time in which the gate was open, with the ids reserved for it. */
typedef struct mtprof__epoch_block {
    uint32_t epoch, window;
    uint32_t first_index, count; /* of host events in INDEX; set by building */
    uint64_t first_id;           /* correlation id of the first */
    int64_t open_ns, close_ns;
    int32_t first_step;
    uint32_t closed;   /* 0: cut short; close_ns is the last time seen */
    uint32_t id_known; /* 0: provisional, after the last block known */
} mtprof__epoch_block;

/* From start_ns on it is this step. */
typedef struct mtprof__unrecorded {
    uint32_t name; /* under which events are grouped */
    uint64_t count;
} mtprof__unrecorded;

typedef struct mtprof__step_mark {
    int64_t start_ns;
    int64_t step;
} mtprof__step_mark;

/* A piece of device work and the host event that launched it. */
typedef struct mtprof__tie {
    uint32_t work, host;
} mtprof__tie;

/* What another part of the library made from a model and keeps with it. */
typedef struct mtprof__kept {
    void (*free)(struct mtprof__kept *kept);
} mtprof__kept;

struct mtprof_model {
    mtprof_reader *reader; /* NULL: foreign */
    mtprof_model_options options;
    mtprof_model_info info;
    mtprof__dictionary dictionary;
    mtb_lock lock;         /* of the next three, and of derived columns */
    pthread_cond_t change; /* of `building` */
    bool building;         /* by `builder`, which owns columns and findings meanwhile */
    pthread_t builder;

    int built;        /* atomic */
    int build_status; /* of a build that failed for good */
    mtprof__columns columns;
    mtprof_model_findings findings;
    /* Native: what an event stream or a check of all chunks has found, under the lock
     * (damage.c). */
    mtprof__damage damage;
    bool damage_known;
    /* Native, once the columns are made: marks and allocations of other kinds than these, a mask
     * (event_kinds.h), are not in the trace. */
    uint32_t points_seen;
    void *derived[MTPROF_COLUMN_COUNT]; /* atomic */
    mtprof__kept *arrow; /* atomic: the table of all events (arrow_events.c); NULL: none yet */

    /* Foreign: instants, counters, flows and allocations in order of time, for event streams. In an
     * ALLOC `owner` is the event whose self memory it is in, plus 1; until the model is assembled
     * its place in the concatenation of all runs, plus 1. Texts live in the dictionary. */
    struct mtprof__event *points;
    size_t n_points;
    bool two_id_families; /* foreign: ids of runtime calls may be the same as those of ops */

    mtprof_text process_name; /* native; length 0: not known */
    /* Native: one entry per covered epoch, in order; INDEX counts through all of them. */
    mtprof__epoch_block *epochs;
    uint32_t n_epochs;
    bool strays; /* the last block is for epochs that the control stream does not know */
    mtprof__step_mark *steps; /* in order of time */
    size_t n_steps;
    mtprof__unrecorded *unrecorded; /* what a limit of the overhead left out, by name */
    size_t n_unrecorded;
    mtprof__tie *launches; /* device work whose launch is in the columns (CORRELATION) */
    size_t n_launches;
};

/* Asks the caller's progress function whether to go on. Fails with ECALLBACK. */
int mtprof__model_ask(const mtprof_model *model, const char *what);

/* A foreign model without events. The importer fills dictionary and info, then assembles. */
int mtprof__model_new_foreign(const mtprof_model_options *options, mtprof_model **out);

/*
 * Sorts runs into the model's columns: events by (start, longest first, INDEX), then by run and
 * place in it; folds only children of their parent's name away; ties device work to its host event
 * (LINK) through the keys; sets MATCHED. Runs are emptied.
 *
 * A run comes with all base columns set: start, end, self, parent (in the run), name, track, step,
 * index, kind, device, flags. CORRELATION of a foreign model is an extra column its runs bring.
 * Fails with ENOMEM, ENOTSUP (too many events).
 */
int mtprof__model_assemble(mtprof_model *model, mtprof__run *runs, size_t n_runs);

/* Whether the columns keep what model.h promises (MDL1, MDL2, order, tree); for debug builds. */
bool mtprof__model_verify(const mtprof_model *model);

/*
 * A column from DEPTH on, made on the first call; the columns must be there. NULL: what it is made
 * from was not recorded. Takes the lock. Fails with ENOMEM.
 */
int mtprof__model_derive(mtprof_model *model, uint32_t id, const void **out);

/* Frees derived columns, and what only they are made from; before the columns themselves. */
void mtprof__model_derived_fini(mtprof_model *model);

/* The logical number of a thread's track; 0: there is no such track. */
uint32_t mtprof__model_thread_number(const mtprof_model *model, uint32_t track);

/* Gives events of the backward pass what their forward ops have (backward_stacks.c); called
 * once, when the columns are there. Fails with ENOMEM. */
int mtprof__model_backward_stacks(mtprof_model *model);

/* An event stream has been through the trace, and this is all that is damaged. */
void mtprof__model_note_damage(mtprof_model *model, const mtprof__damage *damage);

/* Whether there may be marks or allocations of these kinds, a mask (event_kinds.h): false saves a
 * pass over the trace. Known once the columns are made, and of foreign models. */
bool mtprof__model_may_have(const mtprof_model *model, uint32_t kinds);

/* Makes the columns of a native model; does nothing where they are. */
int mtprof__model_build(mtprof_model *model);

/* A column that someone wants, and where its data are to go; NULL: it was not recorded. */
typedef struct mtprof__wanted_column {
    enum mtprof_column_id id;
    const void **place;
} mtprof__wanted_column;

/* Several columns at once; *n: events in the first of them. Fails as mtprof_model_get_column(). */
int mtprof__model_get_columns(mtprof_model *model, const mtprof__wanted_column *wanted,
                              size_t n_wanted, uint64_t *n);

#endif /* MTPROF_MODEL_MODEL_IMPL_H */
