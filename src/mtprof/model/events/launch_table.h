/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches in flight, for event streams: what is known of a launch until its device work comes, and
 * the annotations that work counts for (annotation.h).
 *
 * A launch that was answered stays for a while: a graph of kernels answers one launch many times,
 * and a runtime call may be reported after the work it launched.
 */
#ifndef MTPROF_MODEL_EVENTS_LAUNCH_TABLE_H
#define MTPROF_MODEL_EVENTS_LAUNCH_TABLE_H

#include "mtprof/model/facts/annotation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mtprof__launch {
    uint64_t key; /* 0: free */
    uint64_t correlation, owner;
    int64_t shown_ns;
    uint32_t track;
    int32_t step;
    bool answered;
    mtprof__annotation *annotation; /* held; NULL: none */
} mtprof__launch;

enum {
    MTPROF__ANSWERED_KEPT = 16384
};

typedef struct mtprof__launch_table {
    mtprof__launch *items; /* open addressing */
    size_t capacity, n;
    uint64_t *answered; /* keys of launches answered lately, the oldest at `oldest`; 0: free */
    size_t oldest;
    size_t swept; /* mtprof__launch_take_any(): nothing is left before it */
    mtprof__annotations annotations;
} mtprof__launch_table;

/* Fails with ENOMEM. A key that is there already is replaced. */
int mtprof__launch_add(mtprof__launch_table *table, const mtprof__launch *launch);
/* A launch, or NULL; valid until the next call that changes the table. */
mtprof__launch *mtprof__launch_find(const mtprof__launch_table *table, uint64_t key);
/* A launch is answered; another that was answered long ago goes. Fails with ENOMEM. */
int mtprof__launch_answer(mtprof__launch_table *table, mtprof__launch *launch);
/* Takes out any launch, at the end: nothing may be added any more. False: none is left. */
bool mtprof__launch_take_any(mtprof__launch_table *table, mtprof__launch *launch);

/* Limits of a stream; everything else is zero. */
void mtprof__launch_table_init(mtprof__launch_table *table);
void mtprof__launch_table_fini(mtprof__launch_table *table);

#endif /* MTPROF_MODEL_EVENTS_LAUNCH_TABLE_H */
