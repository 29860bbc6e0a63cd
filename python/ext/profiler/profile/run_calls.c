/* SPDX-License-Identifier: Apache-2.0
 *
 * What `mtprof run` (python/mtprof/run) needs of C: a wrapper that no traceback shows, calls in the
 * main thread, and the format that a file's ending means.
 */
#include "common/py_common.h"
#include "profiler/profiler_state.h"

#include <mtprof/export.h>
#include <mtprof/status.h>

/* Of self: (function, before, after). */
enum {
    FUNCTION,
    BEFORE,
    AFTER,
    N_PARTS
};

static bool call_part(PyObject *self, int part)
{
    PyObject *callback = PyTuple_GET_ITEM(self, part);
    PyObject *said = callback != Py_None ? PyObject_CallNoArgs(callback) : Py_NewRef(Py_None);
    Py_XDECREF(said);
    return said != NULL;
}

/* Python code here would be a frame in the tracebacks of what the function raises; a built-in
 * function is none. */
static PyObject *call_parts(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    if (!call_part(self, BEFORE)) {
        return NULL;
    }
    PyObject *result = PyObject_Call(PyTuple_GET_ITEM(self, FUNCTION), arguments, keywords);
    if (result != NULL && !call_part(self, AFTER)) {
        Py_CLEAR(result);
    }
    return result;
}

static PyMethodDef parts = {"call_parts", (PyCFunction)(void (*)(void))call_parts,
                            METH_VARARGS | METH_KEYWORDS, "See wrap_call()."};

static PyObject *wrap_call(PyObject *module, PyObject *arguments)
{
    (void)module;
    if (PyTuple_GET_SIZE(arguments) != N_PARTS) {
        PyErr_SetString(PyExc_TypeError, "wrap_call: (function, before, after) are needed");
        return NULL;
    }
    return PyCFunction_New(&parts, arguments);
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
    {"wrap_call", wrap_call, METH_VARARGS,
     "wrap_call(function, before, after): a function that calls all three, the callbacks (or None) without "
     "arguments, and the last one unless the function raises. It is in no traceback."},
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
