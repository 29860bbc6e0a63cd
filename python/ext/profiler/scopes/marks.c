/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that record without an object: begin and end, instants, counters, flows, names of
 * threads. While nothing records they look at their arguments' types and return.
 */
#include "profiler/scopes/scope_sites.h"

#include <string.h>

static int check_name(const char *function, PyObject *name)
{
    if (PyUnicode_Check(name)) {
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "%s: the name must be a str, not %R", function, name);
    return -1;
}

/* Keywords after n positional arguments, as a dict; *out NULL: there are none. */
static int take_keywords(PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **out)
{
    *out = NULL;
    Py_ssize_t count = kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0;
    if (count == 0) {
        return 0;
    }
    PyObject *dict = PyDict_New();
    for (Py_ssize_t i = 0; dict != NULL && i < count; i++) {
        PyObject *key = PyTuple_GET_ITEM(kwnames, i);
        if (scope_metadata_check(key, args[n + i]) != 0 ||
            PyDict_SetItem(dict, key, args[n + i]) != 0) {
            Py_CLEAR(dict);
        }
    }
    *out = dict;
    return dict != NULL ? 0 : -1;
}

static int check_count(const char *function, Py_ssize_t n, Py_ssize_t expected)
{
    if (n == expected) {
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "%s() takes %zd positional argument%s but %zd %s given", function,
                 expected, expected == 1 ? "" : "s", n, n == 1 ? "was" : "were");
    return -1;
}

/* Says what was expected, with the exception that Python chose for the value. Returns NULL. */
static PyObject *bad_number(const char *expected, PyObject *object)
{
    PyObject *type = PyErr_ExceptionMatches(PyExc_OverflowError) ? PyExc_OverflowError
                     : PyErr_ExceptionMatches(PyExc_TypeError)   ? PyExc_TypeError
                                                                 : NULL;
    if (type != NULL) {
        PyErr_Format(type, "%s, not %R", expected, object);
    }
    return NULL;
}

static PyObject *begin(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n,
                       PyObject *kwnames)
{
    PyObject *metadata = NULL;
    if (check_count("begin", n, 1) != 0 || check_name("begin", args[0]) != 0 ||
        take_keywords(args, n, kwnames, &metadata) != 0) {
        return NULL;
    }
    mtprof_token token = mtprof_wants(SCOPE_WANTS) ? scope_begin(args[0]) : 0;
    if (metadata != NULL) {
        scope_metadata(token, metadata);
        Py_DECREF(metadata);
    }
    return PyLong_FromUnsignedLongLong(token);
}

static PyObject *end(PyObject *Py_UNUSED(module), PyObject *token)
{
    unsigned long long number = PyLong_AsUnsignedLongLong(token);
    if (number == (unsigned long long)-1 && PyErr_Occurred() != NULL) {
        return bad_number("end: the token must be what begin() returned", token);
    }
    mtprof_end(number);
    Py_RETURN_NONE;
}

static PyObject *instant(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n,
                         PyObject *kwnames)
{
    PyObject *metadata = NULL;
    if (check_count("instant", n, 1) != 0 || check_name("instant", args[0]) != 0 ||
        take_keywords(args, n, kwnames, &metadata) != 0) {
        return NULL;
    }
    if (mtprof_wants(MTPROF_WANT_MARKS)) {
        const char *text = NULL;
        size_t length = 0;
        PyObject *owner = NULL;
        if (scope_text(args[0], &text, &length, &owner)) {
            mtprof_instant_named(text, length, MTPROF_KIND_SCOPE);
            if (metadata != NULL) {
                scope_metadata(MTPROF_LATEST_INSTANT, metadata);
            }
        }
        Py_XDECREF(owner);
    }
    Py_XDECREF(metadata);
    Py_RETURN_NONE;
}

/* The value of a counter or a flow, under a name. */
typedef struct mark {
    bool is_flow, is_real;
    int64_t integer;
    double real;
    enum mtprof_flow_phase phase;
    uint64_t flow;
} mark;

/* Names that come back have a site (scope_sites.c, SS1); others are of the recording. */
static void put_mark(PyObject *name, const mark *m)
{
    const char *text = NULL;
    size_t length = 0;
    PyObject *owner = NULL;
    mtprof_site *site = scope_site_again(name);
    if (site != NULL) {
        if (m->is_flow) {
            mtprof_flow(site, m->phase, m->flow);
        } else if (m->is_real) {
            mtprof_counter_real(site, m->real);
        } else {
            mtprof_counter(site, m->integer);
        }
        return;
    }
    if (scope_text(name, &text, &length, &owner)) {
        if (m->is_flow) {
            mtprof_flow_named(text, length, m->phase, m->flow);
        } else if (m->is_real) {
            mtprof_counter_real_named(text, length, m->real);
        } else {
            mtprof_counter_named(text, length, m->integer);
        }
    }
    Py_XDECREF(owner);
}

static PyObject *counter(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    if (check_count("counter", n, 2) != 0 || check_name("counter", args[0]) != 0) {
        return NULL;
    }
    if (PyLong_Check(args[1])) {
        int overflow = 0;
        long long value = PyLong_AsLongLongAndOverflow(args[1], &overflow);
        if (overflow == 0) {
            if (mtprof_wants(MTPROF_WANT_MARKS)) {
                put_mark(args[0], &(mark){.integer = value});
            }
            Py_RETURN_NONE;
        }
    }
    double value = PyFloat_AsDouble(args[1]);
    if (value == -1.0 && PyErr_Occurred() != NULL) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Format(PyExc_TypeError, "counter: the value must be a number, not %R", args[1]);
        }
        return NULL;
    }
    if (mtprof_wants(MTPROF_WANT_MARKS)) {
        put_mark(args[0], &(mark){.is_real = true, .real = value});
    }
    Py_RETURN_NONE;
}

static int flow_phase(PyObject *object, enum mtprof_flow_phase *phase)
{
    static const char *const names[] = {"start", "step", "end"};
    for (int i = 0; PyUnicode_Check(object) && i < 3; i++) {
        if (PyUnicode_CompareWithASCIIString(object, names[i]) == 0) {
            *phase = (enum mtprof_flow_phase)i;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "flow: the phase must be 'start', 'step' or 'end', not %R",
                 object);
    return -1;
}

static PyObject *flow(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n)
{
    enum mtprof_flow_phase phase = MTPROF_FLOW_START;
    if (check_count("flow", n, 3) != 0 || check_name("flow", args[0]) != 0 ||
        flow_phase(args[1], &phase) != 0) {
        return NULL;
    }
    unsigned long long id = PyLong_AsUnsignedLongLong(args[2]);
    if (id == (unsigned long long)-1 && PyErr_Occurred() != NULL) {
        return bad_number("flow: the id must be an int from 0 to 2**64 - 1", args[2]);
    }
    if (mtprof_wants(MTPROF_WANT_MARKS)) {
        put_mark(args[0], &(mark){.is_flow = true, .phase = phase, .flow = id});
    }
    Py_RETURN_NONE;
}

static PyObject *name_thread(PyObject *Py_UNUSED(module), PyObject *name)
{
    const char *text = NULL;
    if (name != Py_None) {
        if (check_name("name_thread", name) != 0 || (text = PyUnicode_AsUTF8(name)) == NULL) {
            return NULL;
        }
    }
    mtprof_name_thread(text);
    Py_RETURN_NONE;
}

/* begin_inputs(name, inputs, metadata or None) -> token */
static PyObject *begin_inputs(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *name = NULL, *inputs = NULL, *metadata = NULL;
    if (!PyArg_ParseTuple(args, "UO!O:begin_inputs", &name, &PyTuple_Type, &inputs, &metadata)) {
        return NULL;
    }
    mtprof_token token = 0;
    if (mtprof_wants(SCOPE_WANTS)) {
        Py_ssize_t n = PyTuple_GET_SIZE(inputs);
        token = n != 0 ? scope_begin_inputs(name, ((PyTupleObject *)inputs)->ob_item, n)
                       : scope_begin(name);
        if (PyDict_Check(metadata)) {
            /* A copy: converting values may run user code that changes the dict. */
            PyObject *own = PyDict_Copy(metadata);
            if (own == NULL) {
                mtprof_end(token);
                return NULL;
            }
            scope_metadata(token, own);
            Py_DECREF(own);
        }
    }
    return PyLong_FromUnsignedLongLong(token);
}

static PyMethodDef functions[] = {
    {"begin", PY_CALL(begin), METH_FASTCALL | METH_KEYWORDS,
     "begin(name, /, **metadata)\n--\n\nBegins a scope and returns its token, for end(); 0 while "
     "nothing records."},
    {"end", end, METH_O,
     "end(token, /)\n--\n\nEnds what begin() returned, on any thread, in any order."},
    {"instant", PY_CALL(instant), METH_FASTCALL | METH_KEYWORDS,
     "instant(name, /, **metadata)\n--\n\nMarks a point in time."},
    {"counter", PY_CALL(counter), METH_FASTCALL,
     "counter(name, value, /)\n--\n\nRecords a value that changes over time."},
    {"flow", PY_CALL(flow), METH_FASTCALL,
     "flow(name, phase, id, /)\n--\n\nBinds an arrow to the open scope; phase is 'start', 'step' "
     "or 'end', arrows of one id are connected."},
    {"name_thread", name_thread, METH_O,
     "name_thread(name, /)\n--\n\nNames the calling thread in traces; None takes the name away."},
    {"begin_inputs", begin_inputs, METH_VARARGS, "begin_inputs(name, inputs, metadata) -> token"},
    {NULL, NULL, 0, NULL},
};

int marks_part(PyObject *module);

int marks_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
