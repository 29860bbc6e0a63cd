/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods that `with` calls. See scope_method.c.
 */
#ifndef PYTHON_EXT_PROFILER_SCOPES_SCOPE_METHOD_H
#define PYTHON_EXT_PROFILER_SCOPES_SCOPE_METHOD_H

#include "profiler/profiler_state.h"

typedef PyObject *scope_function(PyObject *self, PyObject *const *args, Py_ssize_t n);

/* Adds a method to a type whose instances cannot be part of a cycle; its subclasses' may. Texts are
 * borrowed for good. -1: an exception. */
int scope_method_add(PyObject *module, PyTypeObject *type, const char *name, const char *doc,
                     scope_function *function);

#endif /* PYTHON_EXT_PROFILER_SCOPES_SCOPE_METHOD_H */
