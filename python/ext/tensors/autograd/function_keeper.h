/* SPDX-License-Identifier: Apache-2.0
 *
 * What lets the garbage collector see through a node: `ctx.out = output` in an autograd.Function.
 *
 *     output's object ──dict──► keeper ──► ctx ──► attributes ──(any way)──► output's object
 *          └──► mt_tensor ──► node ──late_object──► ctx
 *
 *   FK1  The node's reference to ctx is no outside reference if the node belongs to outputs alone
 *        that belong to their Python objects alone. One of their keepers then visits ctx once more,
 *        for it. Each keeper visits ctx for its own reference, so ctx is alive as long as any
 *        output is.
 *   FK2  ctx knows its node until that is freed, and its keepers without holding them. So the
 *        keepers never visit for a node that is gone.
 *   FK3  Only a ctx that has attributes gets keepers: another one is part of no cycle.
 */
#ifndef PYTHON_EXT_TENSORS_AUTOGRAD_FUNCTION_KEEPER_H
#define PYTHON_EXT_TENSORS_AUTOGRAD_FUNCTION_KEEPER_H

#include "tensors/autograd/function_context.h"

/* Gives keepers to the outputs of a call, a tuple. -1: an exception. */
int function_keep(function_context *ctx, PyObject *outputs);

/* A keeper of another sort is being made for the tensor: how many of this sort there are. Those
 * keepers are notified. */
uint32_t function_keeper_joins(PyObject *tensor);

/* Whether a tensor belongs to its Python object, to a keeper and to `others` alone. */
bool keepers_own(const mt_tensor *tensor, uint32_t others);

#endif /* PYTHON_EXT_TENSORS_AUTOGRAD_FUNCTION_KEEPER_H */
