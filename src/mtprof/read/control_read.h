/* SPDX-License-Identifier: Apache-2.0
 *
 * The content of the control stream (docs/format.md 3.5): anchors, epochs, metadata of the
 * trace, and what a limit of the overhead left out.
 */
#ifndef MTPROF_READ_CONTROL_READ_H
#define MTPROF_READ_CONTROL_READ_H

#include "base/arena.h"
#include "mtprof/read/clock_map.h"
#include "mtprof/read/problems.h"

#include <mtprof/reader.h>

typedef struct mtprof__meta_item {
    mtprof_text key, value;
    uint64_t order; /* of first appearance, once mtprof__control_read_finish() was called */
    bool is_json;
} mtprof__meta_item;

typedef struct mtprof__control_read {
    mtprof_epoch_info *epochs; /* by number, without repetition */
    size_t n_epochs, epoch_capacity;
    mtprof__meta_item *metadata;
    size_t n_metadata, metadata_capacity;
    mtprof_limit_info *limits;
    size_t n_limits, limit_capacity;
    mtprof_unrecorded_info *unrecorded; /* by name and kind, once it is finished */
    size_t n_unrecorded, unrecorded_capacity;
    uint64_t last_ticks;
    mtb_arena arena;
} mtprof__control_read;

/* Takes a record of the control stream that passed its checks. Fails with ENOMEM. */
int mtprof__control_read_add(mtprof__control_read *control, mtprof__clock_map *clock,
                             const mtprof_record *record, mtprof__problems *problems);

/* An epoch that has no end gets end_ticks; metadata is put together by key. */
void mtprof__control_read_finish(mtprof__control_read *control, uint64_t end_ticks);

/* The epoch of a number, or NULL. */
mtprof_epoch_info *mtprof__control_find_epoch(const mtprof__control_read *control, uint32_t epoch);

void mtprof__control_read_fini(mtprof__control_read *control);

#endif /* MTPROF_READ_CONTROL_READ_H */
