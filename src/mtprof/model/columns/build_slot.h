/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread slot's stream to runs of columns: what building does in parallel.
 */
#ifndef MTPROF_MODEL_COLUMNS_BUILD_SLOT_H
#define MTPROF_MODEL_COLUMNS_BUILD_SLOT_H

#include "mtprof/model/model_impl.h"
#include "mtprof/model/slot/slot_stream.h"
#include "mtprof/model/step_clock.h"

/* A block's events in a run; blocks rise along a run. */
typedef struct mtprof__run_block {
    uint32_t block;
    uint32_t first, count;
} mtprof__run_block;

/* From this row on keys rise by one with each row. */
typedef struct mtprof__key_anchor {
    uint64_t key;
    uint32_t row;
} mtprof__key_anchor;

typedef struct mtprof__slot_task {
    mtprof_model *model;
    uint32_t stream;
    const mtprof__foreign_end *foreign; /* ends of its scopes that other slots recorded */
    size_t n_foreign;
    uint64_t *done_bytes; /* atomic: of all tasks, for progress */
    bool reports;         /* this task runs where progress may be called */
    const int *failed;    /* atomic; not 0: another task has failed, or was given up */

    mtprof__run events;          /* begins and launches in the order of the stream */
    mtprof__run memory;          /* allocations outside every scope */
    mtprof__run_block *segments; /* of `events` */
    size_t n_segments, segments_capacity;
    mtprof__key_anchor *anchors; /* of `events` */
    size_t n_anchors, anchors_capacity;
    uint64_t next_key;
    mtprof__foreign_end *ends; /* of scopes of other slots */
    size_t n_ends, ends_capacity;
    uint32_t points; /* kinds of marks and allocations that it has: a mask (event_kinds.h) */
    mtprof__slot_counts counts;
} mtprof__slot_task;

/* Fills the task. Fails with ENOMEM, EIO, ECALLBACK, ENOTSUP (too many events). */
int mtprof__slot_task_run(mtprof__slot_task *task);

/* Forgets what was read, so that the task can run again. */
void mtprof__slot_task_reset(mtprof__slot_task *task);

/* The row of a key, or MTPROF_NO_EVENT. */
uint32_t mtprof__slot_task_row(const mtprof__slot_task *task, uint64_t key);

/* Puts payloads into extra columns of an event. Fails with ENOMEM. */
int mtprof__payload_to_columns(mtprof_model *model, mtprof__payload_store *store,
                               mtprof__inputs_cache *cache, mtprof__columns *columns,
                               uint32_t event);

#endif /* MTPROF_MODEL_COLUMNS_BUILD_SLOT_H */
