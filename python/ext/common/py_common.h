/* SPDX-License-Identifier: Apache-2.0
 *
 * What both extensions start from: Python.h, and the few things CPython's minor versions disagree
 * about. One interpreter per process may load them: libmtprof and libmindtorch are process-wide.
 */
#ifndef PYTHON_EXT_COMMON_PY_COMMON_H
#define PYTHON_EXT_COMMON_PY_COMMON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if PY_VERSION_HEX < 0x030B0000
#    error "Python 3.11 or newer is needed"
#endif

/* A type from its spec, kept in *place and, with a name, added to the module. -1: an exception. */
int py_add_type(PyObject *module, PyType_Spec *spec, PyObject *base, const char *name,
                PyTypeObject **place);

/* Names for PyArg_ParseTupleAndKeywords(), which never writes them. */
#define PY_NAMES(names) ((char **)(uintptr_t)(names))

/* A function of any of the signatures that a PyMethodDef's flags choose from. */
#define PY_CALL(function) ((PyCFunction)(void (*)(void))(function))

/* Frees an object's memory at the end of its dealloc, and lets go of its type. */
static inline void py_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* The one argument of a method, which may be left out (Py_None) or given by its name. `format` is
 * PyArg_ParseTupleAndKeywords()'s, with the method's name. NULL: an exception; borrowed. */
PyObject *py_one_argument(PyObject *args, PyObject *kwargs, const char *format, const char *name);

/*
 * An exception that travels through C: a callback keeps what was raised (py_error_keep), the C
 * library fails with ECALLBACK, and the caller of the library raises it again (py_error_restore,
 * true if there was one). Kept per thread; needs the GIL.
 */
void py_error_keep(void);
bool py_error_restore(void);

/* What this thread has kept, given to the caller (NULL: nothing); and from another thread. */
PyObject *py_error_take(void);
void py_error_give(PyObject *value);

/* Steps of a module's start, each adding its types and functions; listed in a parts.def. */
typedef int py_part(PyObject *module);

/* Runs the parts (NULL ends them), for the first interpreter that asks. -1: an exception. */
int py_start(PyObject *module, const char *package, py_part *const *parts);

#endif /* PYTHON_EXT_COMMON_PY_COMMON_H */
