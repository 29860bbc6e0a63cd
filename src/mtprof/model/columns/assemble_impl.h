/* SPDX-License-Identifier: Apache-2.0
 *
 * Assembling: runs of events become the model's columns. The stages, one file each:
 *
 *     runs ─► scan ─► ties ─► annotations ─► fold ─► order ─► move ─► columns
 *             |       |       |              |       |        └ every column, through `rank`
 *             |       |       |              |       └ where each event goes: a merge of the parts
 *             |       |       |              └ only children of their parent's name go
 *             |       |       └ of scopes, on device queues: one more part
 *             |       └ parents in other runs, device work to host events: through keys
 *             └ is each run sorted, is there anything to fold
 *
 * All stages before the last leave events where they are and refer to them by *number*: the
 * position in the concatenation of all parts.
 *
 *   AS1  From the scan on, PARENT holds numbers.
 *   AS2  From the ties on, walking up PARENT ends: there are no cycles.
 *   AS3  What is folded away is no event's parent, and nothing is tied to it.
 */
#ifndef MTPROF_MODEL_COLUMNS_ASSEMBLE_IMPL_H
#define MTPROF_MODEL_COLUMNS_ASSEMBLE_IMPL_H

#include "base/compiler.h"
#include "mtprof/model/facts/event_kinds.h"
#include "mtprof/model/model_impl.h"

enum {
    /* Not in the tree of the thread. FOREIGN_PARENT is in one, but not in its parent's. */
    MTPROF__LOOSE = MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_OVERLAP,
    MTPROF__NO_CHILD = MTPROF__LOOSE | MTPROF_EVENT_FLAG_FOREIGN_PARENT
};

/* A run while it is being assembled. */
typedef struct mtprof__part {
    mtprof__run *run;
    uint32_t base; /* number of its first event */
    uint32_t n;
    int64_t order;     /* ties between parts */
    uint32_t kinds;    /* that occur in it, as a mask */
    uint32_t flags;    /* that occur in it */
    bool sorted;       /* already in order */
    uint32_t *sorting; /* otherwise: places in order */
} mtprof__part;

/* Two events, by their numbers. */
typedef struct mtprof__pairs {
    mtprof__tie *items;
    size_t n, capacity;
} mtprof__pairs;

typedef struct mtprof__assembly {
    mtprof_model *model;
    mtprof__part *parts; /* in order of base; room for one more */
    size_t n_parts;
    uint32_t n; /* events in all parts */
    bool native;
    bool odd_parents;       /* not every parent is known to come before its child */
    bool candidates;        /* some event has its parent's name */
    mtprof__pairs links;    /* device work and runtime calls: host event */
    mtprof__pairs launches; /* native device work: its launch */
    uint32_t *folds;        /* NULL: none. Number + 1 of the event that replaces one, 0: itself */
    uint32_t n_folds;       /* events in it */
    uint32_t *rank;         /* place in the columns, MTPROF_NO_EVENT: none. NULL: their number */
    uint32_t kept;          /* events in the columns */
    mtprof__run annotations;
} mtprof__assembly;

/* The part of a number; hint is tried first. */
const mtprof__part *mtprof__part_find(const mtprof__assembly *assembly, uint32_t number);
MT_INLINE const mtprof__part *mtprof__part_of(const mtprof__assembly *assembly,
                                              const mtprof__part *hint, uint32_t number)
{
    return number - hint->base < hint->n ? hint : mtprof__part_find(assembly, number);
}

int mtprof__pairs_add(mtprof__pairs *pairs, uint32_t work, uint32_t host);

/*
 * The nearest event of the kinds, from `number` (which may be MTPROF_NO_EVENT) upwards;
 * MTPROF_NO_EVENT where there is none. memo has a word per event, zeros at first, and belongs to
 * one mask: so all walks together take linear time.
 */
uint32_t mtprof__nearest(const mtprof__assembly *assembly, uint32_t number, uint32_t kinds,
                         uint32_t *memo);

/* The stages. All fail with ENOMEM only. */
void mtprof__assemble_scan(mtprof__assembly *assembly);
int mtprof__assemble_ties(mtprof__assembly *assembly);
int mtprof__assemble_fold(mtprof__assembly *assembly);
int mtprof__assemble_annotations(mtprof__assembly *assembly);
int mtprof__assemble_order(mtprof__assembly *assembly);

/* Which of two events comes first: by start, longest first, INDEX; those that have none by kind and
 * name. 0: neither. */
int mtprof__order_of(const mtprof_model *model, const mtprof__columns *a, uint32_t left,
                     const mtprof__columns *b, uint32_t right);
int mtprof__assemble_move(mtprof__assembly *assembly);

#endif /* MTPROF_MODEL_COLUMNS_ASSEMBLE_IMPL_H */
