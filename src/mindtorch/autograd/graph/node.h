/* SPDX-License-Identifier: Apache-2.0
 *
 * A node of the graph: everything that backward needs about one call. It is one block of memory,
 * from the pool if it is small:
 *
 *     mt_node │ edges │ args │ results │ versions │ first │ metas (packed) │ ints, texts, lists
 *
 *   ND1  Edges point from results to inputs and hold a reference to what they point to. Only saved
 *        results point back; they are kept as aliases without a graph, so there are no cycles.
 *   ND2  Saved arguments are aliases too: whatever is done to the tensor later, the node keeps
 *        elements, version and edge of the call. Leaves that require a gradient are not aliased:
 *        the edge already holds a reference to them.
 *   ND3  A node is released without recursion, however long the chain of nodes after it
 *        (mt_node_release).
 *   ND4  Backward may release the saved tensors; `lock` guards them. Everything else is written
 *        before the node is published and never changes. Hooks are guarded by hooks.c.
 *   ND5  The node that accumulates a leaf's gradient is part of the leaf's mt__autograd. A
 *        reference to the node is a reference to the leaf.
 *   ND6  `stream` is the number of the stream that was current, when the node was made, on the
 *        device of its first output that is on an accelerator (mt__node_device); 0 for the default
 *        stream, for nodes of the host, and for leaves.
 */
#ifndef MINDTORCH_AUTOGRAD_GRAPH_NODE_H
#define MINDTORCH_AUTOGRAD_GRAPH_NODE_H

#include "mindtorch/autograd/formulas/backward.h"
#include "mindtorch/core/thread/thread_state.h"

#include <mindtorch/autograd.h>

#include <stdatomic.h>

typedef enum mt__node_kind {
    MT_NODE_OP,       /* ours or a user's: args and results as the row says */
    MT_NODE_FUNCTION, /* mt_function_apply() */
    MT_NODE_SLICES,   /* an op that wrote a view, seen from the view's base */
    MT_NODE_LEAF      /* ND5 */
} mt__node_kind;

typedef struct mt__edge {
    mt_node *node; /* retained; NULL: nothing to do there */
    uint32_t output;
} mt__edge;

/* Sizes of a forward tensor, without unused dimensions. */
typedef struct mt__packed_meta {
    uint8_t n_dims;
    uint8_t dtype;
    bool turned;
    mt_device device;
    int64_t sizes[];
} mt__packed_meta;

/* Where a view lies in its base. */
typedef struct mt__slices {
    mt_node *inner; /* of the op itself, over the view; retained */
    uint32_t base_dims, view_dims;
    int64_t base_offset, view_offset;
    int64_t *base_sizes, *base_strides; /* in the node's block */
    int64_t *view_sizes, *view_strides;
} mt__slices;

typedef struct mt__tap mt__tap;

struct mt_node {
    _Atomic uint32_t refs;
    uint8_t kind; /* mt__node_kind */
    bool pooled;
    bool released; /* saved tensors are gone; under lock */
    _Atomic bool lock;
    uint32_t n_inputs;
    uint32_t n_outputs;
    uint32_t n_saved; /* tensors, those of lists included */
    uint32_t forward_thread;
    union {
        uint64_t sequence; /* UINT64_MAX for leaves: they go first */
        mt_node *next;     /* in the list of nodes to be freed, which need no sequence any more */
    };
    const mt__op_row *row;
    mt__edge *edges;
    const char *metas; /* n_inputs + n_outputs mt__packed_meta, one after the other */
    mt__tap *taps;     /* hooks.c */
    uint8_t stream;    /* ND6 */
    union {
        struct {
            mt_value *args;     /* BF3 of backward.h */
            mt_value *results;  /* likewise */
            uint32_t *versions; /* of saved args, then of saved results */
            uint32_t *first;    /* number of each argument's first input, and of one past the end */
            mt__geometry *geometry; /* VIEW rows */
            mt_node *outer;         /* MT_NODE_SLICES around this one; not retained */
        } op;
        mt__slices *slices;
        mt_function_call *call;
        mt_tensor *leaf; /* not retained */
    } of;
};

/* ---- making one ---- */

/* What must be known before the block is allocated. */
typedef struct mt__node_plan {
    uint8_t kind;
    uint32_t n_inputs;
    uint32_t n_outputs;
    size_t meta_bytes; /* of all inputs and outputs, from mt__packed_bytes() */
    size_t extra_bytes;
} mt__node_plan;

MT_INLINE size_t mt__packed_bytes(uint32_t n_dims)
{
    return sizeof(mt__packed_meta) + n_dims * sizeof(int64_t);
}

/* Takes a block; *extra is where extra_bytes begin, aligned to 8. Edges are NULL, counts and kind
 * set, a sequence number taken. The metas are the caller's to write (mt__pack_meta). */
int mt__node_new(const mt__node_plan *plan, mt_node **out, char **extra);

/* Writes one meta and moves the place on. NULL: an input that is not there. */
MT_INLINE void mt__pack_meta(char **place, const mt_tensor *tensor)
{
    mt__packed_meta *meta = (mt__packed_meta *)(void *)*place;
    uint32_t n_dims = tensor == NULL ? 0 : tensor->n_dims;
    meta->n_dims = (uint8_t)n_dims;
    meta->dtype = tensor == NULL ? MT_DTYPE_NONE : tensor->dtype;
    meta->device = tensor == NULL ? MT_DEVICE_NONE : tensor->device;
    meta->turned =
        n_dims >= 2 && tensor->strides[n_dims - 2] == 1 && tensor->strides[n_dims - 1] > 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        meta->sizes[i] = tensor->sizes[i];
    }
    *place += mt__packed_bytes(n_dims);
}

MT_INLINE const mt__packed_meta *mt__packed_next(const mt__packed_meta *meta)
{
    return (const mt__packed_meta *)(const void *)((const char *)meta +
                                                   mt__packed_bytes(meta->n_dims));
}

/* The device of the first output that is on an accelerator; MT_CPU: none is. */
mt_device mt__node_device(const mt_node *node);

void mt__node_note_stream(mt_node *node);

/* ND6, when the metas have been written. */
MT_INLINE void mt__node_set_stream(mt_node *node)
{
    if (MT_UNLIKELY(mt__off_default_streams())) {
        mt__node_note_stream(node);
    }
}

/* Whether `tensor` is the leaf to which the edge leads; then the edge holds it. */
MT_INLINE bool mt__edge_holds(const mt__edge *edge, const mt_tensor *tensor)
{
    return edge->node != NULL && edge->node->kind == MT_NODE_LEAF && edge->node->of.leaf == tensor;
}

/* ---- the lock of what backward may take away, held for a few instructions ---- */
void mt__node_lock(mt_node *node);
void mt__node_unlock(mt_node *node);

/* Releases the saved tensors. */
void mt__node_release_saved(mt_node *node);

/* "Add" of "AddBackward0", for messages. */
const char *mt__node_short_name(const mt_node *node, char text[MT_MAX_DERIVATIVE_NAME]);

#endif /* MINDTORCH_AUTOGRAD_GRAPH_NODE_H */
