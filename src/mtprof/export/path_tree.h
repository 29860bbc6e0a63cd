/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the time of a trace was spent, as a tree of paths, for flame graphs and pprof.
 *
 *     path of an event = its call stack, outermost first, then its name
 *                        without a call stack: the path of the scope around it, then its name
 *
 * All threads go into one tree. The host's values come from the event stream; the device's time is
 * known to the model's columns only, since kernels are found after the op that launched them has
 * ended.
 *
 *   PT1  Memory follows the number of distinct paths, at most PATH_NODES; paths have at most
 *        PATH_DEPTH parts. What is beyond either counts for the deepest part that is there, and is
 *        reported (report.folded).
 *   PT2  The values of a node are what was spent there and not deeper.
 */
#ifndef MTPROF_EXPORT_PATH_TREE_H
#define MTPROF_EXPORT_PATH_TREE_H

#include "base/arena.h"
#include "base/idmap.h"
#include "mtprof/export/export_impl.h"

enum {
    MTPROF__PATH_NODES = 4 << 20,
    MTPROF__PATH_DEPTH = 4096
};

enum mtprof__path_value {
    MTPROF__PATH_COUNT,     /* host events */
    MTPROF__PATH_HOST_NS,   /* self time */
    MTPROF__PATH_DEVICE_NS, /* time of the work that it launched */
    MTPROF__PATH_ALLOCATED, /* bytes, on any device; what is freed is not taken off */
    MTPROF__PATH_VALUES
};

/* A part of a path: a frame, or the name of an event. */
typedef struct mtprof__path_part {
    mtprof_text text;   /* "file(3): function", or the name */
    mtprof_frame frame; /* the model's; zeros: a name */
} mtprof__path_part;

typedef struct mtprof__path_node {
    uint32_t parent, part;
    uint32_t first, next; /* child, sibling; 0: none */
    uint32_t depth;
    int64_t values[MTPROF__PATH_VALUES];
} mtprof__path_node;

typedef struct mtprof__path_tree {
    mtprof__export_job *job;
    mtprof__path_part *parts; /* id - 1 */
    size_t n_parts, parts_capacity;
    mtprof__path_node *nodes; /* 0: the root */
    size_t n_nodes, nodes_capacity;

    /* path_tree.c's own */
    mtb_arena arena;
    size_t text_bytes;
    mtb_idmap part_map;
    uint32_t *name_parts; /* by name: part, 0 = not known yet */
    size_t n_names;
    mtb_idmap node_map;
    struct mtprof__path_stack *known; /* stacks whose node is known; ids of stacks may be any */
    size_t n_known, known_capacity;
    mtb_idmap known_map;
    struct mtprof__path_track *tracks;
    size_t n_tracks;
    mtprof_frame *frames;
    uint32_t *stacks; /* the stack of each frame */
    char *scratch;
    size_t scratch_capacity;
    bool cut; /* the path that was looked up last is not whole (PT1) */
} mtprof__path_tree;

/* An empty tree. Fails with ENOMEM; fini also then. */
int mtprof__path_tree_init(mtprof__path_tree *tree, mtprof__export_job *job);
void mtprof__path_tree_fini(mtprof__path_tree *tree);
/* Adds the host's values; report.events counts the events. Fails as mtprof__export_events(). */
int mtprof__path_tree_add_host(mtprof__path_tree *tree);
/* Adds the device's time; *events (may be NULL): how many events have some. Fails with ENOMEM, EIO,
 * ECALLBACK and as mtprof_model_get_column(). */
int mtprof__path_tree_add_device(mtprof__path_tree *tree, uint64_t *events);

#endif /* MTPROF_EXPORT_PATH_TREE_H */
