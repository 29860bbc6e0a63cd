/* SPDX-License-Identifier: Apache-2.0
 *
 * Step summaries of a flight recorder (mtprof_steps of mtprof/flight.h) as dicts, for
 * mtprof.flight.read_steps().
 */
#include "common/py_common.h"
#include "profiler/profiler_state.h"

#include <mtprof/flight.h>

static const char capsule_name[] = "mtprof_steps";

static void close_steps(PyObject *capsule)
{
    mtprof_steps_close(PyCapsule_GetPointer(capsule, capsule_name));
}

static PyObject *steps_open(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *path = NULL;
    if (!PyArg_ParseTuple(args, "O&:steps_open", PyUnicode_FSConverter, &path)) {
        return NULL;
    }
    mtprof_steps *steps = NULL;
    mtprof_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_steps_open(PyBytes_AS_STRING(path), &steps);
    Py_END_ALLOW_THREADS;
    PyObject *capsule = NULL;
    if (status == MTPROF_OK) {
        capsule = PyCapsule_New(steps, capsule_name, close_steps);
    } else {
        profiler_raise(status, PyBytes_AS_STRING(path));
    }
    if (status == MTPROF_OK && capsule == NULL) {
        mtprof_steps_close(steps);
    }
    Py_DECREF(path);
    return capsule;
}

static PyObject *op_dict(const mtprof_step_op *op)
{
    PyObject *name = PyUnicode_DecodeUTF8(op->name.bytes, (Py_ssize_t)op->name.length, "replace");
    return name == NULL ? NULL
                        : Py_BuildValue("{sNsdsdsdsIsIsO}", "name", name, "self_ns", op->self_ns,
                                        "total_ns", op->total_ns, "calls", op->calls, "device",
                                        op->device, "kind", (unsigned int)op->kind, "name_cut",
                                        op->name_cut ? Py_True : Py_False);
}

static PyObject *device_dict(const mtprof_step_device *d)
{
    PyObject *type = PyUnicode_DecodeUTF8(d->type.bytes, (Py_ssize_t)d->type.length, "replace");
    return type == NULL
               ? NULL
               : Py_BuildValue("{sNsKsdsLsL}", "type", type, "index", (unsigned long long)d->index,
                               "busy_ns", d->busy_ns, "allocated", (long long)d->allocated,
                               "reserved", (long long)d->reserved_memory);
}

/* Adds an item that it takes; NULL: it failed, and the list is gone. */
static PyObject *add_item(PyObject *list, PyObject *item)
{
    bool added = item != NULL && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    if (!added) {
        Py_CLEAR(list);
    }
    return list;
}

static PyObject *op_list(const mtprof_step_summary *s)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < s->n_ops; i++) {
        list = add_item(list, op_dict(&s->ops[i]));
    }
    return list;
}

static PyObject *device_list(const mtprof_step_summary *s)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < s->n_devices; i++) {
        list = add_item(list, device_dict(&s->devices[i]));
    }
    return list;
}

static PyObject *summary_dict(const mtprof_step_summary *s)
{
    PyObject *ops = op_list(s);
    PyObject *devices = device_list(s);
    if (ops == NULL || devices == NULL) {
        Py_XDECREF(ops);
        Py_XDECREF(devices);
        return NULL;
    }
    return Py_BuildValue(
        "{sIsKsKsLsLsKsdsdsKsKsLsLsLsdsIsIsNsN}", "run", s->run, "step",
        (unsigned long long)s->first, "steps", (unsigned long long)s->steps, "start_ns",
        (long long)s->start_ns, "start_unix_ns", (long long)s->start_real_ns, "duration_ns",
        (unsigned long long)s->duration_ns, "events", s->events, "read_share", s->read_share,
        "lost", (unsigned long long)s->lost, "chunks_missed", (unsigned long long)s->missed,
        "rss_bytes", (long long)s->rss_bytes, "allocated_bytes", (long long)s->allocated,
        "allocated_most_bytes", (long long)s->allocated_most, "self_ns", s->self_ns, "rows_all",
        s->ops_all, "devices_all", s->devices_all, "rows", ops, "devices", devices);
}

static PyObject *steps_next(PyObject *module, PyObject *capsule)
{
    (void)module;
    mtprof_steps *steps = PyCapsule_GetPointer(capsule, capsule_name);
    if (steps == NULL) {
        return NULL;
    }
    mtprof_step_summary summary = {.struct_size = sizeof summary};
    mtprof_status status = mtprof_steps_next(steps, &summary); /* with the GIL: one at a time */
    if (status == MTPROF_EEND) {
        Py_RETURN_NONE;
    }
    return status == MTPROF_OK ? summary_dict(&summary) : profiler_raise(status, NULL);
}

static PyMethodDef functions[] = {
    {"steps_open", steps_open, METH_VARARGS, "steps_open(path): see mtprof_steps_open()."},
    {"steps_next", steps_next, METH_O, "The next summary as a dict; None: there is none yet."},
    {NULL, NULL, 0, NULL},
};

py_part steps_part;
int steps_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
