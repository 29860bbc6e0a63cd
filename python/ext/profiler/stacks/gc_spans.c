/* SPDX-License-Identifier: Apache-2.0
 *
 * Collections of Python's garbage collector as scopes "Python GC" of kind FUNCTION, by
 * gc.callbacks. A collection begins and ends on one thread, one at a time, under the GIL.
 */
#include "profiler/profiler_state.h"
#include "profiler/stacks/tracers.h"

#include <string.h>

static PyObject *callback; /* in gc.callbacks while spans are on */
static bool running;
static mtprof_token open_span; /* 0: none */

static PyObject *collection(PyObject *Py_UNUSED(self), PyObject *const *arguments, Py_ssize_t count)
{
    static mtprof_site site = MTPROF_SITE_INIT("Python GC", MTPROF_KIND_FUNCTION);
    const char *phase =
        count > 0 && PyUnicode_Check(arguments[0]) ? PyUnicode_AsUTF8(arguments[0]) : NULL;
    if (phase == NULL) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    if (strcmp(phase, "start") == 0) {
        mtprof_end(open_span);
        open_span = running ? mtprof_begin(&site) : 0;
    } else {
        mtprof_end(open_span);
        open_span = 0;
    }
    Py_RETURN_NONE;
}

/* gc.callbacks; NULL with an exception. Nothing of this runs Python code. */
static PyObject *callbacks(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *list = gc != NULL ? PyObject_GetAttrString(gc, "callbacks") : NULL;
    Py_XDECREF(gc);
    if (list != NULL && !PyList_Check(list)) {
        PyErr_Format(PyExc_TypeError, "gc.callbacks must be a list, not %R", list);
        Py_CLEAR(list);
    }
    return list;
}

/* The index of our callback, found by identity: __eq__ of others may run any code. -1: none. */
static Py_ssize_t find_callback(PyObject *list)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        if (PyList_GET_ITEM(list, i) == callback) {
            return i;
        }
    }
    return -1;
}

int gc_spans_start(void)
{
    PyObject *list = callbacks();
    if (list == NULL) {
        return -1;
    }
    int status = find_callback(list) < 0 ? PyList_Append(list, callback) : 0;
    Py_DECREF(list);
    running = running || status == 0;
    return status;
}

int gc_spans_stop(void)
{
    if (!running) {
        return 0;
    }
    running = false;
    mtprof_end(open_span); /* stopped by something that a collection ran */
    open_span = 0;
    PyObject *list = callbacks();
    if (list == NULL) {
        return -1;
    }
    Py_ssize_t at = find_callback(list); /* the program may have emptied the list */
    int status = at >= 0 ? PyList_SetSlice(list, at, at + 1, NULL) : 0;
    Py_DECREF(list);
    return status;
}

static PyObject *start_gc_spans(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    return gc_spans_start() == 0 ? Py_NewRef(Py_None) : NULL;
}

static PyObject *stop_gc_spans(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    return gc_spans_stop() == 0 ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef functions[] = {
    {"start_gc_spans", start_gc_spans, METH_NOARGS,
     "start_gc_spans(): records collections as \"Python GC\"."},
    {"stop_gc_spans", stop_gc_spans, METH_NOARGS, "stop_gc_spans(): ends that."},
    {"gc_collection", PY_CALL(collection), METH_FASTCALL, "For gc.callbacks."},
    {NULL, NULL, 0, NULL},
};

py_part gc_spans_part;
int gc_spans_part(PyObject *module)
{
    if (PyModule_AddFunctions(module, functions) != 0) {
        return -1;
    }
    callback = PyObject_GetAttrString(module, "gc_collection");
    return callback != NULL ? 0 : -1;
}
