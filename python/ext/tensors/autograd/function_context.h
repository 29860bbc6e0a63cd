/* SPDX-License-Identifier: Apache-2.0
 *
 * ctx: what a call of an autograd.Function remembers from forward to backward.
 *
 *     node ──► mt_function_call ──► ctx (late_object) ──► attributes the user set
 *                  └──► saved tensors, in C
 *
 *   FC1  Tensors given to save_for_backward() are held by the call, not by ctx, so an output that
 *        is saved makes no cycle; they go when the graph does.
 *   FC2  `call` is followed only while backward runs (`running`), which holds the node and so the
 *        call.
 */
#ifndef PYTHON_EXT_TENSORS_AUTOGRAD_FUNCTION_CONTEXT_H
#define PYTHON_EXT_TENSORS_AUTOGRAD_FUNCTION_CONTEXT_H

#include "tensors/module/tensors_state.h"

/* An output of forward, for gradients that were not computed. */
typedef struct function_output {
    bool is_tensor;
    uint8_t dtype;
    int32_t slot; /* among the differentiable ones, -1: it is none */
    mt_device device;
    uint32_t n_dims;
    int64_t sizes[MT_MAX_DIMS];
} function_output;

typedef struct tensor_keeper tensor_keeper;

typedef struct function_context {
    PyObject_HEAD PyObject *dict;
    PyObject *weak;
    PyObject *to_save;            /* a tuple, while forward runs; NULL: nothing */
    PyObject *non_differentiable; /* the same */
    PyObject *dirty;              /* the same: inputs that forward has changed */
    PyObject *needs_input_grad;   /* a tuple of bools */
    mt_function_call *call;       /* FC2 */
    uint32_t running;             /* backwards that run now */
    bool materialize;             /* gradients that were not computed are zeros, not None */
    bool *input_is_tensor;        /* of n_inputs arguments */
    Py_ssize_t n_inputs;
    function_output *outputs; /* n_outputs of forward */
    Py_ssize_t n_outputs;
    Py_ssize_t n_saved;
    bool *saved_is_none; /* of n_saved; a None that was saved comes back as one */
    mt_tensor **made;    /* while apply() runs: the differentiable outputs, borrowed */
    size_t n_made;
    tensor_keeper **keepers; /* of n_outputs, not held; NULL: there are none (function_keeper.h) */
    _Atomic(mt_node *) node; /* while it is there; not held */
} function_context;

/* The type of _C._FunctionBase, from function_context_part(). */
extern PyTypeObject *function_context_type;

#endif /* PYTHON_EXT_TENSORS_AUTOGRAD_FUNCTION_CONTEXT_H */
