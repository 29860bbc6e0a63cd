/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrows between the work of a replayed CUDA graph. Metadata of the work of a node tells the node's
 * number and those it depends on; one replay launches a node once at most:
 *
 *     kernel a   "graph node id": 4   "graph dependencies": []       launched by call 17
 *     kernel b   "graph node id": 7   "graph dependencies": [4]      launched by call 17
 *
 * so there is an arrow from a to b.
 *
 *   RG1  A graph is not replayed again before its last replay has ended, so the latest work of a
 *        node is the one, if its call is the same.
 *   RG2  The table is one of forward.h (FW3): beyond its largest size later nodes take the place of
 *        others, and arrows that miss theirs are counted (left_out).
 */
#ifndef MTPROF_MODEL_FACTS_REPLAY_H
#define MTPROF_MODEL_FACTS_REPLAY_H

#include "mtprof/model/facts/forward.h"

/* The category and name of the arrows. */
#define MTPROF__REPLAY_ARROW "graph_dependency"

/* Work of a node, an entry of the table. */
typedef struct mtprof__replayed {
    mtprof__forward forward; /* note: its track */
    int64_t start_ns;        /* shown */
    uint64_t correlation;    /* of the replay */
    uint32_t used;           /* the user's; 0 at first */
} mtprof__replayed;

/* The dependencies of an event, one after the other. */
typedef struct mtprof__replay_walk {
    const char *at, *end;
    uint64_t correlation, node;
} mtprof__replay_walk;

/* Begins a walk over the dependencies of an event, after it was noted in the table, made with
 * entries of type mtprof__replayed. False: it is no work of a node whose dependencies are known. */
bool mtprof__replay_begin(mtprof__forwards *table, const mtprof__event *event,
                          mtprof__replay_walk *walk);
/* The next one whose work is known; its node's number. NULL: no more. */
mtprof__replayed *mtprof__replay_next(mtprof__forwards *table, mtprof__replay_walk *walk,
                                      uint64_t *node);

#endif /* MTPROF_MODEL_FACTS_REPLAY_H */
