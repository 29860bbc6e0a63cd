/* SPDX-License-Identifier: Apache-2.0
 *
 * Exceptions on their way through C code, and a module's start.
 */
#include "common/py_common.h"

/* The exception a callback of this thread left behind; NULL: none. */
static _Thread_local PyObject *kept;

void py_error_keep(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (type == NULL) {
        return;
    }
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != NULL) {
        PyException_SetTraceback(value, trace);
    }
    Py_XDECREF(type);
    Py_XDECREF(trace);
    Py_XSETREF(kept, value);
}

PyObject *py_error_take(void)
{
    PyObject *value = kept;
    kept = NULL;
    return value;
}

void py_error_give(PyObject *value)
{
    Py_XSETREF(kept, value);
}

bool py_error_restore(void)
{
    if (kept == NULL) {
        return false;
    }
    PyObject *value = kept;
    kept = NULL;
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(value)), value, PyException_GetTraceback(value));
    return true;
}

int py_add_type(PyObject *module, PyType_Spec *spec, PyObject *base, const char *name,
                PyTypeObject **place)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, base);
    if (type == NULL) {
        return -1;
    }
    *place = (PyTypeObject *)type;
    return name == NULL ? 0 : PyModule_AddObjectRef(module, name, type);
}

PyObject *py_one_argument(PyObject *args, PyObject *kwargs, const char *format, const char *name)
{
    const char *const names[] = {name, NULL};
    PyObject *given = Py_None;
    return PyArg_ParseTupleAndKeywords(args, kwargs, format, PY_NAMES(names), &given) ? given
                                                                                      : NULL;
}

int py_start(PyObject *module, const char *package, py_part *const *parts)
{
    static bool started; /* each extension has this file, so each has its own */
    if (started) {
        PyErr_Format(PyExc_ImportError, "%s: one interpreter of a process may load it", package);
        return -1;
    }
    started = true;
    for (; *parts != NULL; parts++) {
        if ((*parts)(module) != 0) {
            return -1;
        }
    }
    return 0;
}
