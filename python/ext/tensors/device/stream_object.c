/* SPDX-License-Identifier: Apache-2.0
 *
 * torch.Stream (also npu.Stream and cuda.Stream): a queue of an accelerator. Streams belong to the
 * process, so an object is only a name for one: objects of the same stream are equal.
 */
#include "tensors/device/device_parts.h"

static mt_stream *stream_of(PyObject *object)
{
    return ((stream_object *)object)->stream;
}

static PyObject *stream_wrap(PyTypeObject *type, mt_stream *stream)
{
    PyObject *self = type->tp_alloc(type, 0);
    if (self != NULL) {
        ((stream_object *)self)->stream = stream;
    }
    return self;
}

PyObject *stream_to_object(mt_stream *stream)
{
    return stream_wrap(tensors.stream_type, stream);
}

int stream_given(PyObject *object, const char *function, mt_stream **stream)
{
    if (!PyObject_TypeCheck(object, tensors.stream_type)) {
        PyErr_Format(
            PyExc_RuntimeError,
            "%s(): expected stream to be a torch.Stream or torch.npu.Stream object, not %s",
            function, Py_TYPE(object)->tp_name);
        return -1;
    }
    *stream = stream_of(object);
    return 0;
}

int stream_from_object(PyObject *object, const char *function, mt_stream **stream)
{
    if (object != Py_None) {
        return stream_given(object, function, stream);
    }
    return zero_or_raise(mt_stream_get_current(mt_current_device(), stream));
}

int stream_make_current(mt_stream *stream)
{
    int status = mt_set_current_device(mt_stream_device(stream));
    if (status == MT_OK) {
        status = mt_stream_set_current(stream);
    }
    return zero_or_raise(status);
}

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"device", "priority", NULL};
    PyObject *which = Py_None;
    int priority = 0;
    mt_device device = MT_NPU;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Oi:Stream", PY_NAMES(names), &which,
                                     &priority) ||
        accelerator_from_object(which, &device) != 0) {
        return NULL;
    }
    mt_stream *stream = NULL;
    return zero_or_raise(mt_stream_new(device, priority, &stream)) != 0 ? NULL
                                                                        : stream_wrap(type, stream);
}

static void stream_dealloc(PyObject *self)
{
    py_free(self);
}

static PyObject *stream_repr(PyObject *self)
{
    const mt_stream *stream = stream_of(self);
    return PyUnicode_FromFormat("<torch.npu.Stream device=%s npu_stream=0x%x>",
                                mt_device_name(mt_stream_device(stream)), mt_stream_number(stream));
}

static Py_hash_t stream_hash(PyObject *self)
{
    const mt_stream *stream = stream_of(self);
    return (Py_hash_t)mt_stream_device(stream) * 256 + mt_stream_number(stream);
}

static PyObject *stream_compare(PyObject *a, PyObject *b, int operation)
{
    if (!PyObject_TypeCheck(b, tensors.stream_type) || (operation != Py_EQ && operation != Py_NE)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return PyBool_FromLong((stream_of(a) == stream_of(b)) == (operation == Py_EQ));
}

/* ---- waiting ---- */

static PyObject *query(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    bool done = false;
    return zero_or_raise(mt_stream_query(stream_of(self), &done)) != 0 ? NULL
                                                                       : PyBool_FromLong(done);
}

static PyObject *synchronize(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    int status = MT_OK;
    WITHOUT_GIL(status, mt_stream_synchronize(stream_of(self)));
    return none_or_raise(status);
}

static PyObject *wait_event(PyObject *self, PyObject *object)
{
    mt_event *event = event_from_object(object, "wait_event");
    if (event == NULL) {
        return NULL;
    }
    int status = MT_OK;
    WITHOUT_GIL(status, mt_stream_wait_event(stream_of(self), event));
    return none_or_raise(status);
}

static PyObject *wait_stream(PyObject *self, PyObject *object)
{
    mt_stream *other = NULL;
    if (stream_given(object, "wait_stream", &other) != 0) {
        return NULL;
    }
    int status = MT_OK;
    WITHOUT_GIL(status, mt_stream_wait_stream(stream_of(self), other));
    return none_or_raise(status);
}

static PyObject *record_event(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *object = py_one_argument(args, kwargs, "|O:record_event", "event");
    if (object == NULL) {
        return NULL;
    }
    if (object == Py_None) {
        return event_recorded(stream_of(self));
    }
    mt_event *event = event_from_object(object, "record_event");
    if (event == NULL) {
        return NULL;
    }
    int status = MT_OK;
    WITHOUT_GIL(status, mt_event_record(event, stream_of(self)));
    return status != MT_OK ? tensors_raise(status) : Py_NewRef(object);
}

/* ---- with ---- */

static PyObject *with_streams; /* name of the thread's stack */

/* Remembers this thread's device, its stream there, and its stream on our device. */
static PyObject *stream_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    mt_stream *here = NULL;
    mt_stream *there = NULL;
    int status = mt_stream_get_current(mt_current_device(), &here);
    if (status == MT_OK) {
        status = mt_stream_get_current(mt_stream_device(stream_of(self)), &there);
    }
    if (status != MT_OK) {
        return tensors_raise(status);
    }
    PyObject *first = stream_to_object(here);
    PyObject *second = first == NULL ? NULL : stream_to_object(there);
    PyObject *before = second == NULL ? NULL : PyTuple_Pack(2, first, second);
    Py_XDECREF(first);
    Py_XDECREF(second);
    int pushed = before == NULL ? -1 : thread_stack_push(with_streams, before);
    Py_XDECREF(before);
    if (pushed != 0) {
        return NULL;
    }
    if (stream_make_current(stream_of(self)) != 0) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        Py_XDECREF(thread_stack_pop(with_streams));
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    return Py_NewRef(self);
}

static PyObject *stream_exit(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(args),
                             Py_ssize_t Py_UNUSED(n_args))
{
    PyObject *before = thread_stack_pop(with_streams);
    if (before == NULL) {
        return NULL;
    }
    mt_stream *here = stream_of(PyTuple_GET_ITEM(before, 0));
    mt_stream *there = stream_of(PyTuple_GET_ITEM(before, 1));
    Py_DECREF(before);
    if (zero_or_raise(mt_stream_set_current(there)) != 0) {
        return NULL;
    }
    return stream_make_current(here) != 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- attributes ---- */

static PyObject *get_device(PyObject *self, void *Py_UNUSED(context))
{
    return device_to_object(mt_stream_device(stream_of(self)));
}

static PyObject *get_device_index(PyObject *self, void *Py_UNUSED(context))
{
    return PyLong_FromLong(mt_stream_device(stream_of(self)) & 0xFF);
}

static PyObject *get_number(PyObject *self, void *Py_UNUSED(context))
{
    return PyLong_FromUnsignedLong(mt_stream_number(stream_of(self)));
}

static PyObject *get_priority(PyObject *self, void *Py_UNUSED(context))
{
    return PyLong_FromLong(mt_stream_priority(stream_of(self)));
}

/* torch's number of the type of device: PrivateUse1. */
static PyObject *get_device_type(PyObject *Py_UNUSED(self), void *Py_UNUSED(context))
{
    return PyLong_FromLong(20);
}

static PyObject *priority_range(PyObject *Py_UNUSED(type), PyObject *Py_UNUSED(ignored))
{
    return Py_BuildValue("ii", 0, -1);
}

static PyGetSetDef properties[] = {
    {"device", get_device, NULL, "The accelerator it is of.", NULL},
    {"device_index", get_device_index, NULL, "That accelerator's number.", NULL},
    {"device_type", get_device_type, NULL, "torch's number for the kind of device.", NULL},
    {"stream_id", get_number, NULL, "0: the device's default stream", NULL},
    {"npu_stream", get_number, NULL, "the same as stream_id", NULL},
    {"cuda_stream", get_number, NULL, "the same as stream_id", NULL},
    {"priority", get_priority, NULL, "below 0: before others", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"query", query, METH_NOARGS, "query($self, /)\n--\n\nWhether all its work is done."},
    {"synchronize", synchronize, METH_NOARGS,
     "synchronize($self, /)\n--\n\nWaits for all its work."},
    {"wait_event", wait_event, METH_O,
     "wait_event($self, event, /)\n--\n\nWhat comes later waits for the event."},
    {"wait_stream", wait_stream, METH_O,
     "wait_stream($self, stream, /)\n--\n\nWhat comes later waits for what is on the other stream now."},
    {"record_event", PY_CALL(record_event), METH_VARARGS | METH_KEYWORDS,
     "record_event($self, /, event=None)\n--\n\nAn event that stands for what is on the stream so far."},
    {"priority_range", priority_range, METH_NOARGS | METH_STATIC,
     "priority_range()\n--\n\n(lowest, highest) priority."},
    {"__enter__", stream_enter, METH_NOARGS, NULL},
    {"__exit__", PY_CALL(stream_exit), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, stream_new},
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_repr, stream_repr},
    {Py_tp_hash, stream_hash},
    {Py_tp_richcompare, stream_compare},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_doc,
     (char[]){"Stream(device=None, priority=0)\n--\n\nA queue of work of an accelerator."}},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "mindtorch_v2.Stream",
    .basicsize = sizeof(stream_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

/* ---- functions ---- */

static PyObject *stream_by(int (*get)(mt_device, mt_stream **), PyObject *object)
{
    mt_device device = MT_NPU;
    mt_stream *stream = NULL;
    return accelerator_from_object(object, &device) != 0 || zero_or_raise(get(device, &stream)) != 0
               ? NULL
               : stream_to_object(stream);
}

static PyObject *current_stream(PyObject *Py_UNUSED(module), PyObject *object)
{
    return stream_by(mt_stream_get_current, object);
}

static PyObject *default_stream(PyObject *Py_UNUSED(module), PyObject *object)
{
    return stream_by(mt_stream_get_default, object);
}

static PyObject *set_stream(PyObject *Py_UNUSED(module), PyObject *object)
{
    mt_stream *stream = NULL;
    if (object == Py_None) {
        Py_RETURN_NONE;
    }
    if (stream_from_object(object, "set_stream", &stream) != 0) {
        return NULL;
    }
    return stream_make_current(stream) != 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"_current_stream", current_stream, METH_O, NULL},
    {"_default_stream", default_stream, METH_O, NULL},
    {"_set_stream", set_stream, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

py_part stream_part;
int stream_part(PyObject *module)
{
    with_streams = PyUnicode_InternFromString("mindtorch_v2.with_stream");
    if (with_streams == NULL ||
        py_add_type(module, &spec, NULL, "Stream", &tensors.stream_type) != 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
