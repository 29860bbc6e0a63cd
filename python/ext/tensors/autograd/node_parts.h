/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of the graph as Python sees them (grad_fn).
 */
#ifndef PYTHON_EXT_TENSORS_AUTOGRAD_NODE_PARTS_H
#define PYTHON_EXT_TENSORS_AUTOGRAD_NODE_PARTS_H

#include "tensors/module/tensors_state.h"

/* The object of a node (borrowed); the same one as long as it lives. NULL gives None. */
PyObject *node_wrap(mt_node *node);

/* The node of an object of that type, borrowed. */
mt_node *node_of(PyObject *object);

/* Visits what the hooks of a node hold, for the garbage collector (autograd_hooks.c). */
int hooks_visit_node(const mt_node *node, visitproc visit, void *arg);

#endif /* PYTHON_EXT_TENSORS_AUTOGRAD_NODE_PARTS_H */
