/* SPDX-License-Identifier: Apache-2.0
 *
 * Collections of Python's garbage collector as scopes "Python GC" of kind FUNCTION, by
 * gc.callbacks. A collection begins and ends on one thread, one at a time, under the GIL.
 */
#include "profiler/profiler_state.h"

#include <string.h>

static PyObject *callback; /* in gc.callbacks while spans are on */
static bool running;
static mtprof_token open_span; /* 0: none */

static PyObject *collection(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    static mtprof_site site = MTPROF_SITE_INIT("Python GC", MTPROF_KIND_FUNCTION);
    (void)self;
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

/* Calls gc.callbacks.append or .remove with ours. */
static int change_callbacks(const char *method)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *list = gc != NULL ? PyObject_GetAttrString(gc, "callbacks") : NULL;
    PyObject *done = list != NULL ? PyObject_CallMethod(list, method, "O", callback) : NULL;
    Py_XDECREF(gc);
    Py_XDECREF(list);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
}

static PyObject *start_gc_spans(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    if (!running && change_callbacks("append") != 0) {
        return NULL;
    }
    running = true;
    Py_RETURN_NONE;
}

static PyObject *stop_gc_spans(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    if (running) {
        running = false;
        mtprof_end(open_span); /* stopped by something that a collection ran */
        open_span = 0;
        if (change_callbacks("remove") != 0) {
            if (!PyErr_ExceptionMatches(PyExc_ValueError)) {
                return NULL;
            }
            PyErr_Clear(); /* somebody has emptied the list */
        }
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"start_gc_spans", start_gc_spans, METH_NOARGS,
     "start_gc_spans(): records collections as \"Python GC\"."},
    {"stop_gc_spans", stop_gc_spans, METH_NOARGS, "stop_gc_spans(): ends that."},
    {"gc_collection", (PyCFunction)(void (*)(void))collection, METH_FASTCALL, "For gc.callbacks."},
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
