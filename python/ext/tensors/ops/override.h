/* SPDX-License-Identifier: Apache-2.0
 *
 * __torch_function__: arguments that want to answer a call themselves.
 *
 *     torch.add(x, y) ──► override_asked()? ── no (a load and a branch) ──► the row
 *                            └─ yes ──► override_call() ──► __torch_function__ of x's class,
 *                                                           given torch.add, types, arguments
 *
 *   OV1  Nothing is looked for until an object of a subclass of Tensor that overrides exists, or a
 *        mode is entered: tensors.overriding. Then every call of a row, an operator, a method and a
 *        property looks at its arguments.
 *   OV2  Objects that are no tensors are found where they fit no row, and by overridable functions
 *        (override_objects.c) in any case.
 *   OV3  While a handler of a subclass runs under DisableTorchFunctionSubclass nobody is asked on
 *        that thread; while a mode's handler runs, that mode is not.
 */
#ifndef PYTHON_EXT_TENSORS_OPS_OVERRIDE_H
#define PYTHON_EXT_TENSORS_OPS_OVERRIDE_H

#include "tensors/module/tensors_state.h"

static inline bool override_asked(void)
{
    return tensors.overriding;
}

/* The arguments of a vectorcall, and what handlers are told was called. */
typedef struct override_given {
    PyObject *function;
    PyObject *const *args;
    Py_ssize_t n_args;
    PyObject *kwnames; /* or NULL */
    bool with_tensors; /* plain tensors are among the types, as torch has it for Python functions */
} override_given;

/* Asks who overrides. False: nobody does, and nothing was done. True: *result is the answer, or
 * NULL and an exception. */
bool override_call(const override_given *given, PyObject **result);

/* The same for an attribute of Tensor, which is called with objects: Python's operators and the
 * like. An operator's answer is NotImplemented where all handlers refuse. */
bool override_method(const char *name, PyObject *const *args, Py_ssize_t n_args, PyObject **result);
bool override_operator(const char *name, PyObject *a, PyObject *b, PyObject **result);

/* Whether an object may override: no tensor, number, text, list or other plain argument. */
bool override_is_stranger(PyObject *object);

/* An object of a subclass is made: where it overrides, calls are looked at from now on. -1: an
 * exception. */
int override_note_type(PyTypeObject *type);

/* Calls are looked at from now on. */
int override_begin(void);

#endif /* PYTHON_EXT_TENSORS_OPS_OVERRIDE_H */
