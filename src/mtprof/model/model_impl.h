/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model is made of, and the two ways to fill one: from records (build.c), and from runs that
 * an importer has made.
 *
 *   M1  `columns` and `findings` are written once, under the lock, and only read after `built` is
 *       set (release; readers acquire).
 *   M2  Derived columns likewise, each behind its own pointer.
 */
#ifndef MTPROF_MODEL_MODEL_IMPL_H
#define MTPROF_MODEL_MODEL_IMPL_H

#include "base/lock.h"
#include "mtprof/model/columns.h"
#include "mtprof/model/dictionary.h"

#include <mtprof/model.h>

#include <stdatomic.h>

struct mtprof_model {
    mtprof_reader *reader; /* NULL: foreign */
    mtprof_model_options options;
    mtprof_model_info info;
    mtprof__dictionary dictionary;
    mtb_lock lock; /* building */

    atomic_int built;
    int build_status; /* of a build that failed for good */
    mtprof__columns columns;
    mtprof_model_findings findings;
    _Atomic(void *) derived[MTPROF_COLUMN_COUNT];

    /* Foreign: instants, counters, flows and allocations in order of time, for event streams. In an
     * ALLOC `owner` is the event whose self memory it is in, plus 1. Texts live in the dictionary. */
    struct mtprof__event *points;
    size_t n_points;

    /* Native: one entry per covered epoch, in order; INDEX counts through all of them. */
    struct mtprof__epoch_block *epochs;
    uint32_t n_epochs;
};

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

/* Makes the columns of a native model; does nothing where they are. */
int mtprof__model_build(mtprof_model *model);

#endif /* MTPROF_MODEL_MODEL_IMPL_H */
