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

typedef struct keeper_sort {
    const char *attribute; /* of the tensor's object, which has the keeper */
    /* References to `held` that belong to the tensor's object alone, besides the keeper's own. */
    uint32_t (*hidden)(const tensor_keeper *keeper);
    void (*end)(tensor_keeper *keeper); /* before `held` is released; NULL: nothing to do */
} keeper_sort;

/* An attribute of a tensor's object that visits `held` for references the collector cannot see. */
struct tensor_keeper {
    PyObject_HEAD const keeper_sort *sort;
    PyObject *held;
    mt_tensor *tensor; /* one reference */
    uint32_t others;   /* keepers of the tensor of another sort */
};

/* The tensor's keeper of that sort, a new reference; NULL without an exception: it has none. */
tensor_keeper *keeper_find(PyObject *tensor, const keeper_sort *sort);

/* A new one, with a reference to `held`. NULL: an exception. */
tensor_keeper *keeper_new(PyObject *tensor, const keeper_sort *sort, PyObject *held);

/* A keeper of another sort is being made for the tensor: how many of this sort there are. Those
 * keepers are notified. */
uint32_t function_keeper_joins(PyObject *tensor);

/* Whether a tensor belongs to its Python object, and to its keepers, alone. */
bool keeper_owns(const tensor_keeper *keeper);

#endif /* PYTHON_EXT_TENSORS_AUTOGRAD_FUNCTION_KEEPER_H */
