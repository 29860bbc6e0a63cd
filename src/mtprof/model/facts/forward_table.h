/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward ops that wait for their backward op, for arrows between the two (kineto's "fwdbwd").
 *
 * Ops with a sequence number come in order of their end. One without a forward thread is a forward
 * op: it is remembered under (thread, number), and of several the one that began last stays, which
 * is the innermost. One with a forward thread is backward: if its forward op is remembered, both
 * get an arrow and the entry goes. So wrappers of the backward op, which end later, get none.
 *
 * A forward op has one place in the table, given by its number; neighbours in time are neighbours
 * in memory. Where two that are pending want one place the table grows, up to a limit; from there
 * on the later one has it, and the other loses its arrow, which is counted.
 */
#ifndef MTPROF_MODEL_FACTS_FORWARD_TABLE_H
#define MTPROF_MODEL_FACTS_FORWARD_TABLE_H

#include "mtprof/model/events/event.h"

#include <stddef.h>

typedef struct mtprof__forward {
    int64_t sequence; /* -1: free */
    int64_t start_ns;
    uint32_t thread, track;
} mtprof__forward;

typedef struct mtprof__forwards {
    mtprof__forward *entries;
    size_t capacity;   /* a power of two, or 0 */
    bool full;         /* it could not grow, and something lost its place */
    uint64_t left_out; /* arrows that are missing because of it */
} mtprof__forwards;

/* Whether an event takes part: an op with a sequence number. */
bool mtprof__forward_has(const mtprof__event *event);
/* Whether it is a backward op. */
bool mtprof__forward_is_backward(const mtprof__event *event);
/* A forward op of a thread that has ended. Where memory is refused it is an arrow less. */
void mtprof__forward_remember(mtprof__forwards *table, uint32_t thread, const mtprof__event *event);
/* Takes out the forward op of a backward op that has ended; false: there is none. */
bool mtprof__forward_take(mtprof__forwards *table, const mtprof__event *event,
                          mtprof__forward *out);
void mtprof__forwards_fini(mtprof__forwards *table);

#endif /* MTPROF_MODEL_FACTS_FORWARD_TABLE_H */
