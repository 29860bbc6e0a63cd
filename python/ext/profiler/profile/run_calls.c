/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mtprof run` (python/mtprof/run) needs of C: a wrapper that no traceback shows, calls in the
 * main thread, and the format that a file's ending means.
 */
#include "common/py_common.h"
#include "profiler/profiler_state.h"

#include <mtprof/export.h>
#include <mtprof/status.h>

/* self: (function, callback). Python code here would be a frame in the tracebacks of what the
 * function raises; a built-in function is none. */
static PyObject *call_both(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    PyObject *result = PyObject_Call(PyTuple_GET_ITEM(self, 0), arguments, keywords);
    PyObject *said = result != NULL ? PyObject_CallNoArgs(PyTuple_GET_ITEM(self, 1)) : NULL;
    if (said == NULL) {
        Py_CLEAR(result);
    }
    Py_XDECREF(said);
    return result;
}

static PyMethodDef both = {"call_both", (PyCFunction)(void (*)(void))call_both,
                           METH_VARARGS | METH_KEYWORDS,
                           "Calls a function and, unless it raises, a callback."};

static PyObject *followed_by(PyObject *module, PyObject *arguments)
{
    (void)module;
    if (PyTuple_GET_SIZE(arguments) != 2) {
        PyErr_SetString(PyExc_TypeError, "followed_by: (function, callback) are needed");
        return NULL;
    }
    return PyCFunction_New(&both, arguments);
}

static int call_pending(void *callback)
{
    PyObject *said = PyObject_CallNoArgs(callback);
    if (said == NULL) {
        PyErr_WriteUnraisable(callback); /* not into the code that it came between */
    }
    Py_XDECREF(said);
    Py_DECREF((PyObject *)callback);
    return 0;
}

static PyObject *call_in_main(PyObject *module, PyObject *callback)
{
    (void)module;
    if (Py_AddPendingCall(call_pending, Py_NewRef(callback)) != 0) {
        Py_DECREF(callback);
        Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}

static PyObject *export_format(PyObject *module, PyObject *given)
{
    (void)module;
    PyObject *path = NULL;
    if (!PyUnicode_FSConverter(given, &path)) {
        return NULL;
    }
    enum mtprof_export_format format = MTPROF_EXPORT_CHROME;
    mtprof_status status = mtprof_export_parse(PyBytes_AS_STRING(path), &format);
    Py_DECREF(path);
    if (status != MTPROF_OK) {
        PyErr_SetString(PyExc_ValueError, mtprof_last_error()->message);
        return NULL;
    }
    return PyUnicode_FromString(mtprof_export_name(format));
}

static PyMethodDef functions[] = {
    {"followed_by", followed_by, METH_VARARGS,
     "followed_by(function, callback): a function that calls both, the callback without arguments and unless "
     "the first raises. It is in no traceback."},
    {"call_in_main", call_in_main, METH_O,
     "call_in_main(callback): the main thread calls it when it next runs Python code. False: not "
     "now, too many wait."},
    {"export_format", export_format, METH_O,
     "export_format(path): the format that the path's ending, or a name, means; ValueError where it is none."},
    {NULL, NULL, 0, NULL},
};

py_part run_calls_part;
int run_calls_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
