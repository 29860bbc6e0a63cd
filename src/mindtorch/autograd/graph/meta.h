/* SPDX-License-Identifier: Apache-2.0
 *
 * Autograd's part of a tensor: gradient, place in the graph, hooks. Most tensors have none.
 *
 *     leaf      requires_grad, grad_fn NULL; `leaf` is the node that accumulates
 *     result    requires_grad, grad_fn and which of its outputs
 *     view      as a result, but grad_fn is stale when the storage's version is not view_version:
 *               then the base was written, and grad_fn is rebuilt from it (views.c)
 */
#ifndef MINDTORCH_AUTOGRAD_GRAPH_META_H
#define MINDTORCH_AUTOGRAD_GRAPH_META_H

#include "mindtorch/autograd/graph/node.h"
#include "mindtorch/trace/op_trace.h"

typedef struct mt__hook mt__hook;

struct mt__autograd {
    mt_tensor *grad;
    mt_node *grad_fn; /* retained */
    uint32_t output;
    bool retains_grad;
    mt__tap *tap;         /* hooks on the gradient, shared with grad_fn; retained */
    mt__tap *older_taps;  /* of nodes that the tensor had before it was written; retained */
    mt__hook *leaf_hooks; /* run after accumulation */
    mt__tap *node_taps;   /* hooks of the leaf's node; owned */
    mt_node leaf;         /* set up while the tensor is a leaf that requires a gradient */
};

/* The tensor's part, created if necessary. NULL: no memory (the error is set). */
mt__autograd *mt__meta_need(mt_tensor *tensor);

/* Whether a gradient is wanted for it: its own flag, or a view's base. */
MT_INLINE bool mt__tensor_needs(const mt_tensor *tensor)
{
    return tensor->requires_grad || (tensor->base != NULL && tensor->base->requires_grad);
}

/* The same for views, whose node may be stale. */
int mt__view_edge_of(mt_tensor *view, mt__edge *edge);

/* Where the tensor's gradient goes: one reference to the node. The node is NULL if nowhere. */
MT_INLINE int mt__edge_of(mt_tensor *tensor, mt__edge *edge)
{
    if (MT_UNLIKELY(tensor->base != NULL)) {
        return mt__view_edge_of(tensor, edge);
    }
    *edge = (mt__edge){NULL, 0};
    if (tensor->requires_grad) {
        mt__autograd *meta = tensor->autograd;
        bool leaf = meta->grad_fn == NULL;
        atomic_fetch_add_explicit(leaf ? &tensor->refs : &meta->grad_fn->refs, 1,
                                  memory_order_relaxed);
        *edge = leaf ? (mt__edge){&meta->leaf, 0} : (mt__edge){meta->grad_fn, meta->output};
    }
    return MT_OK;
}

/* Ties a tensor that is not a leaf (any more) to its node, which is taken. Hooks on the old node
 * stay with it; a retained gradient follows through `tap`, which is taken and may be NULL. */
void mt__meta_tie(mt_tensor *tensor, mt_node *take, uint32_t output, mt__tap *tap);

/* An alias of the tensor with no graph. */
int mt__alias(mt_tensor *tensor, mt_tensor **out);

/* "Inference tensors cannot be saved for backward..." */
int mt__refuse_inference(void);

/* An alias that has `edge` as its place in the graph: for saved tensors while a graph is created.
 */
int mt__alias_with(mt_tensor *tensor, const mt__edge *edge, mt_tensor **out);

/* ---- accumulate.c ---- */

/* Adds a gradient, which is taken in any case, to the leaf's. */
int mt__accumulate(mt_tensor *leaf, mt_tensor *take_grad);

/* Whether only the caller, who has one reference, can access the tensor's elements. */
bool mt__is_exclusive(const mt_tensor *tensor);

/* Guards the gradient of a tensor that several backwards may reach at once. Ops may run under it;
 * callbacks must not. */
void mt__grad_lock(const mt_tensor *tensor);
/* Sets the tensor's gradient (may be NULL) and returns the old one. */
mt_tensor *mt__grad_swap(mt_tensor *tensor, mt_tensor *take_grad);
/* Reports a leaf's new gradient to the profiler, as an output of the op of the token. */
void mt__tell_gradient(mt__trace_token token, const mt_tensor *leaf);
void mt__grad_unlock(const mt_tensor *tensor);

/* ---- views.c ---- */

/* Rebuilds the stale grad_fn of a view. */
int mt__view_refresh(mt_tensor *view);

/* Whether grad mode allows the tensor to be written. `row` names the op. */
int mt__inplace_check(const mt__op_row *row, mt_tensor *self);

/* Wraps the node of an op that is about to write `view`, which is taken in any case. */
int mt__slices_new(mt_tensor *view, mt_node *take_inner, mt_node **out);

/* A node that reads as as_strided(base) with the view's geometry; `edge` (retained here) is where
 * the base's gradient goes. */
int mt__strided_node(mt_tensor *base, const mt_tensor *view, const mt__edge *edge, mt_node **out);

/* ---- recording.c ---- */

/* The node of a call, with arguments saved and edges set; results are the caller's to tie.
 * `outputs` are flat. `kept_self` is saved in place of argument 0 (NULL: itself). */
int mt__node_for_call(const mt__op_row *row, const mt_value *args, mt_tensor *const *outputs,
                      uint32_t n_outputs, mt_tensor *kept_self, mt_node **out);

#endif /* MINDTORCH_AUTOGRAD_GRAPH_META_H */
