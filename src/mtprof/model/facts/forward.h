/* SPDX-License-Identifier: Apache-2.0
 *
 * Which forward op a backward op belongs to. Both have one sequence number, and the backward op
 * names the thread of the forward op.
 *
 *     thread 1   aten::linear                          sequence 3                     (FW1)
 *                  aten::addmm                         sequence 3                     (FW2)
 *     thread 2   evaluate_function: AddmmBackward0     sequence 3, forward thread 1
 *                  AddmmBackward0                      the same, record scope 1: the node
 *
 * Several forward ops may have one number: an op and the ops it calls, and ops that make no node.
 * torch has a rule for each of two questions; columns, streams and exports follow them:
 *
 *   FW1  Stacks and modules of a node, and of what is inside it, are those of the forward op that
 *        began first. Whatever is not inside a node counts as forward. All nodes of a number find
 *        the same op.
 *   FW2  An arrow ("fwdbwd", column FORWARD) begins at the forward op that began last of those
 *        that have ended before the backward op does; of two that began together, the one that
 *        ended last. An op without a forward thread is a forward op. The first backward op to
 *        end gets the arrow, which is the node and not its wrapper; then the forward op is
 *        forgotten.
 *
 * The table is used in two ways:
 *
 *   FW3  Streams: its size is limited. An op has one place, given by its number, so that
 *        neighbours in time are neighbours in memory. Where two want one place the table grows; at
 *        its largest size the later op takes the place, and the backward op that misses the other
 *        one is counted (left_out).
 *   FW4  Columns: it is made for a known number of ops, and no op is replaced. An op whose place is
 *        taken gets another one, found by steps that depend on its number and thread.
 */
#ifndef MTPROF_MODEL_FACTS_FORWARD_H
#define MTPROF_MODEL_FACTS_FORWARD_H

#include "base/compiler.h"
#include "mtprof/model/events/event.h"

#include <stddef.h>

enum {
    MTPROF__FORWARDS_MOST = 1 << 18, /* places of a table (FW3) */
};

/* What every entry begins with. What the user of the table adds after it is zero at first. */
typedef struct mtprof__forward {
    uint64_t number; /* sequence number + 1; 0: free */
    uint32_t thread;
    uint32_t note; /* the user's */
} mtprof__forward;

/* A forward op that waits for its backward op (FW2). */
typedef struct mtprof__waiting {
    mtprof__forward forward;
    int64_t start_ns; /* INT64_MIN: its arrow is drawn */
} mtprof__waiting;

/* FW3: set entry_bytes and limit, the rest is zero. */
typedef struct mtprof__forwards {
    void *entries;
    size_t entry_bytes;
    size_t capacity;   /* a power of two, or 0 */
    size_t limit;      /* of the capacity, a power of two; 0: FW4 */
    bool full;         /* an op has given way */
    uint64_t left_out; /* backward ops that found another op in the place of theirs */
} mtprof__forwards;

/* FW4, for at most n ops. False: memory is refused. */
bool mtprof__forwards_init(mtprof__forwards *table, size_t entry_bytes, size_t n);
void mtprof__forwards_fini(mtprof__forwards *table);

/* The entry of a number >= 0 on a thread, which is added where it is not there. It is valid until
 * the next one is added. NULL: memory is refused (FW3). */
void *mtprof__forward_add(mtprof__forwards *table, uint32_t thread, int64_t sequence, bool *added);
/* NULL: it is not there. */
void *mtprof__forward_find(mtprof__forwards *table, uint32_t thread, int64_t sequence);

/* FW2, to be called in order of ends, with entries of type mtprof__waiting. Where memory is refused
 * there is an arrow less. */
void mtprof__forward_wait(mtprof__forwards *table, uint32_t thread, int64_t sequence,
                          int64_t start_ns, uint32_t note);
/* The forward op of a backward op; false: there is none. */
bool mtprof__forward_take(mtprof__forwards *table, uint32_t thread, int64_t sequence,
                          mtprof__waiting *out);

/* Whether an event is an op with a sequence number. */
MT_INLINE bool mtprof__is_numbered(const mtprof__event *event)
{
    return event->kind == MTPROF_EVENT_KIND_OP && event->payload != NULL &&
           (event->payload->fields & MTPROF__HAS_SEQUENCE) != 0 && event->payload->sequence >= 0;
}

/* The thread of the forward op that an event with a payload names; 0: it is not a backward op. */
MT_INLINE uint32_t mtprof__forward_thread(const mtprof__payload *payload)
{
    return (payload->fields & MTPROF__HAS_FORWARD_THREAD) != 0 ? payload->forward_thread : 0;
}

#endif /* MTPROF_MODEL_FACTS_FORWARD_H */
