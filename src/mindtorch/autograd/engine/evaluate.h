/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one node. Whether a graph is created is the thread's grad mode.
 */
#ifndef MINDTORCH_AUTOGRAD_ENGINE_EVALUATE_H
#define MINDTORCH_AUTOGRAD_ENGINE_EVALUATE_H

#include "mindtorch/autograd/graph/node.h"
#include "mindtorch/trace/op_trace.h"

enum {
    MT_STACK_METAS = 6
};

/* Contains the mt__backward of a running formula. */
typedef struct mt__frame {
    mt__backward b;  /* first: formulas hand it back to us */
    mt__meta *metas; /* of inputs, then of outputs */
    const mt__geometry *geometry;
    uint32_t n_args;
    uint32_t n_results;
    mt_value args[MT_MAX_PARAMS];
    mt_value results[MT_MAX_RESULTS];
    mt__meta stack_metas[MT_STACK_METAS];
} mt__frame;

/* Runs a node inside the profiler's scope of it ("MulBackward0"), then converts its gradients to
 * the inputs' shapes and types. grads: n_outputs, NULL = zero. wanted, grads_in: n_inputs; grads_in
 * is NULL at entry; on failure it may be partly filled. Saved tensors stay. */
int mt__node_run(mt_node *node, mt_tensor *const *grads, const bool *wanted, mt_tensor **grads_in);

/* The scopes of a node: around everything that is done for it, and around its formula. 0 while
 * nothing is recorded. grads: the incoming gradients, n_outputs. */
mt__trace_token mt__node_scope_outer(const mt_node *node);
mt__trace_token mt__node_scope_inner(const mt_node *node, mt_tensor *const *grads);

int mt__slices_run(mt_node *node, mt_tensor *const *grads, const bool *wanted,
                   mt_tensor **grads_in);

/* "Trying to backward through the graph a second time..." */
int mt__refuse_twice(void);

/* "one of the variables needed for gradient computation has been modified..." `from` made it. */
int mt__refuse_version(const mt_tensor *saved, uint32_t expected, const mt__edge *from);

/* Sums a gradient over broadcast dimensions and converts it to `dtype`. One reference in *out, to
 * the gradient itself if there is nothing to do. The sizes must broadcast to the gradient's. */
int mt__reduce_to(mt_tensor *grad, const mt__shape *shape, mt_dtype dtype, mt_tensor **out);

#endif /* MINDTORCH_AUTOGRAD_ENGINE_EVALUATE_H */
