/* SPDX-License-Identifier: Apache-2.0
 *
 * x[key], x[key] = value and iteration, for the Tensor type's slots.
 *
 *     key ──parse──► views (select, slice, unsqueeze) ──► index / index_put_ where tensors pick
 *
 * The rows that are called, their order and nesting are torch's, since a profile shows them.
 */
#ifndef PYTHON_EXT_TENSORS_TENSOR_INDEX_PARTS_H
#define PYTHON_EXT_TENSORS_TENSOR_INDEX_PARTS_H

#include "tensors/module/tensors_state.h"

PyObject *tensor_getitem(PyObject *self, PyObject *key);
int tensor_setitem(PyObject *self, PyObject *key, PyObject *value);
PyObject *tensor_iter(PyObject *self);

/* A key as it was understood: views were taken, tensors that pick are left. */
typedef struct index_walk {
    mt_tensor *tensor;             /* after all views; one reference */
    uint32_t n_picks;              /* 0: views only */
    bool viewed;                   /* whether any view was taken */
    mt_tensor *picks[MT_MAX_DIMS]; /* by dimension of `tensor`, NULL: all of it; references */
} index_walk;

/* `assigning`: the key of an assignment, where a slice over everything is left out. -1: exception,
 * nothing is held. */
int index_walk_init(index_walk *walk, mt_tensor *tensor, PyObject *key, bool assigning);
void index_walk_clear(index_walk *walk);

#endif /* PYTHON_EXT_TENSORS_TENSOR_INDEX_PARTS_H */
