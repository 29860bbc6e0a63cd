/* SPDX-License-Identifier: Apache-2.0
 *
 * The actions of a memory timeline added up: what is there at a moment, and the peak. Every form of
 * the timeline (JSON, page, the command's summary) takes its numbers from here, so that they agree.
 *
 *     now ◄── action, action …        peak: the `now` with the largest total, the first of equals
 */
#ifndef MTPROF_EXPORT_MEMORY_MEMORY_PEAK_H
#define MTPROF_EXPORT_MEMORY_MEMORY_PEAK_H

#include "mtprof/export/memory/memory_timeline.h"

/* What was allocated at a moment. */
typedef struct mtprof__memory_state {
    int64_t time_ns; /* Unix time */
    int64_t total;
    int64_t sizes[MTPROF__MEMORY_CATEGORY_COUNT];
    int64_t allocated; /* as the allocator reported; -1: it had not reported yet */
    uint64_t owner;    /* id of the op or scope that allocated, 0: none */
} mtprof__memory_state;

typedef struct mtprof__memory_sum {
    mtprof__memory_state now, peak;
    mtprof__memory_state peaks[MTPROF__MEMORY_CATEGORY_COUNT]; /* when each category was largest */
    int64_t first_ns; /* the time given to PREEXISTING memory */
    bool begun;       /* past what is PREEXISTING */
    uint64_t n_allocations, n_releases;
} mtprof__memory_sum;

void mtprof__memory_sum_init(mtprof__memory_sum *sum, const mtprof__memory_timeline *timeline);

/* What was there before is complete: `now` is the first state. To be called before the first action
 * that is not PREEXISTING, and at the end where there was none. */
void mtprof__memory_sum_begin(mtprof__memory_sum *sum);

/* Takes an action. False: `now` is no state to show (what is PREEXISTING comes together; between
 * the halves of a change the block is nowhere). */
bool mtprof__memory_sum_add(mtprof__memory_sum *sum, const mtprof__memory_action *action);

#endif /* MTPROF_EXPORT_MEMORY_MEMORY_PEAK_H */
