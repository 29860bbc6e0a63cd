/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks: callbacks on a gradient before it is used, and on a leaf after it was accumulated.
 *
 *     tensor ─► mt__autograd ─┐
 *                             ├─► mt__tap (one output of a node) ─► hooks in the order they came
 *     node ─► list of taps ───┘
 *
 *   GH1  A tap lives as long as its node or its tensor: hooks run even if the tensor is gone.
 *   GH2  One lock guards all taps and lists of hooks. No callback runs under it: a hook may add or
 *        remove hooks, or run backward.
 *   GH3  A hook that is removed while it runs keeps its context until it returns.
 *        Hooks of a node itself are in taps of numbers that no output has.
 *   GH4  A retained gradient is set after all hooks. The tap has a weak reference to its tensor.
 */
#ifndef MINDTORCH_AUTOGRAD_GRAPH_HOOKS_H
#define MINDTORCH_AUTOGRAD_GRAPH_HOOKS_H

#include "mindtorch/autograd/graph/meta.h"

struct mt__tap {
    _Atomic uint32_t refs;
    uint32_t output;
    mt__tap *next;  /* of the node */
    mt__tap *older; /* of the tensor: hooks that stayed with a node it had before */
    mt__hook *hooks;
    mt_tensor *keeper; /* whose gradient is retained (GH4), or NULL */
};

/* Numbers of outputs that stand for the node itself, in taps of its list. */
enum {
    MT_TAP_BEFORE = UINT32_MAX,
    MT_TAP_AFTER = UINT32_MAX - 1,
    MT_TAP_NOTE = UINT32_MAX - 2
};

/* The list that has a node's own taps. */
MT_INLINE mt__tap **mt__taps_of(mt_node *node)
{
    return node->kind == MT_NODE_LEAF ? &node->of.leaf->autograd->node_taps : &node->taps;
}

/* Hooks of the node itself, before and after it runs. */
int mt__node_hooks_before(mt_node *node, mt_tensor **grads);
int mt__node_hooks_after(mt_node *node, mt_tensor **grads_in, mt_tensor *const *grads);

/* A new tap, in the list of the node if there is one; one reference for the caller. */
int mt__tap_new(mt_node *node, uint32_t output, mt__tap **out);
void mt__tap_release(mt__tap *tap);
void mt__tap_set_keeper(mt__tap *tap, mt_tensor *keeper);
void mt__hooks_free(mt__hook *list);

/* Runs the hooks of output `output` on *grad, which they may replace. */
int mt__hooks_run(mt__tap *taps, uint32_t output, mt_tensor **grad);

/* The leaf's hooks, run after accumulation. */
int mt__leaf_hooks_run(mt_tensor *leaf);

#endif /* MINDTORCH_AUTOGRAD_GRAPH_HOOKS_H */
