/* SPDX-License-Identifier: Apache-2.0
 *
 * torch.Event (also npu.Event and cuda.Event): a mark on a stream, to wait for and to measure
 * between.
 */
#include "tensors/device/device_parts.h"

#include <string.h>

typedef struct stream_mark {
    PyObject_HEAD mt_event *event;
    mt_device device; /* that the constructor named; MT_DEVICE_NONE: none */
} stream_mark;

static mt_event *event_of(PyObject *object)
{
    return ((stream_mark *)object)->event;
}

mt_event *event_from_object(PyObject *object, const char *function)
{
    if (!PyObject_TypeCheck(object, tensors.event_type)) {
        PyErr_Format(PyExc_TypeError, "%s(): argument 'event' must be torch.Event, not %s",
                     function, Py_TYPE(object)->tp_name);
        return NULL;
    }
    return event_of(object);
}

static PyObject *event_make(PyTypeObject *type, uint32_t flags, mt_device device)
{
    PyObject *self = type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    ((stream_mark *)self)->device = device;
    int status = mt_event_new(flags, &((stream_mark *)self)->event);
    if (status != MT_OK) {
        Py_DECREF(self);
        return tensors_raise(status);
    }
    return self;
}

PyObject *event_recorded(mt_stream *stream)
{
    PyObject *self = event_make(tensors.event_type, 0, MT_DEVICE_NONE);
    if (self == NULL) {
        return NULL;
    }
    int status = MT_OK;
    WITHOUT_GIL(status, mt_event_record(event_of(self), stream));
    if (status != MT_OK) {
        Py_DECREF(self);
        return tensors_raise(status);
    }
    return self;
}

/* npu.Event(enable_timing=False, ...) and torch.Event(device=None, *, enable_timing=False, ...):
 * a bool in the first place is the former's. */
static PyObject *event_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"device",        "blocking", "interprocess",
                                        "enable_timing", "external", NULL};
    PyObject *first = Py_None;
    int blocking = 0, interprocess = 0, timing = 0, external = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Opp$pp:Event", PY_NAMES(names), &first,
                                     &blocking, &interprocess, &timing, &external)) {
        return NULL;
    }
    mt_device device = MT_DEVICE_NONE;
    if (PyBool_Check(first)) {
        timing = timing || first == Py_True;
    } else if (first != Py_None && accelerator_from_object(first, &device) != 0) {
        return NULL;
    }
    if (interprocess || external) {
        PyErr_Format(PyExc_NotImplementedError, "Event(): %s=True is not implemented",
                     interprocess ? "interprocess" : "external");
        return NULL;
    }
    return event_make(type, timing ? MT_EVENT_TIMING : 0, device);
}

static void event_dealloc(PyObject *self)
{
    mt_event_free(event_of(self));
    py_free(self);
}

static mt_device device_of(PyObject *self)
{
    mt_device device = mt_event_device(event_of(self));
    return device == MT_DEVICE_NONE ? ((stream_mark *)self)->device : device;
}

static PyObject *event_repr(PyObject *self)
{
    if (mt_event_device(event_of(self)) == MT_DEVICE_NONE) {
        return PyUnicode_FromString("<torch.npu.Event uninitialized>");
    }
    return PyUnicode_FromFormat("<torch.npu.Event %p>", (void *)event_of(self));
}

/* None: this thread's current stream on the event's device. */
static int stream_for(PyObject *self, PyObject *object, const char *function, mt_stream **stream)
{
    mt_device device = device_of(self);
    if (object != Py_None || device == MT_DEVICE_NONE) {
        return stream_from_object(object, function, stream);
    }
    return zero_or_raise(mt_stream_get_current(device, stream));
}

/* The one argument of record() and wait(); `format` has the name. */
static int stream_argument(PyObject *self, PyObject *args, PyObject *kwargs, const char *format,
                           mt_stream **stream)
{
    PyObject *object = py_one_argument(args, kwargs, format, "stream");
    return object == NULL ? -1 : stream_for(self, object, strchr(format, ':') + 1, stream);
}

static PyObject *record(PyObject *self, PyObject *args, PyObject *kwargs)
{
    mt_stream *stream = NULL;
    if (stream_argument(self, args, kwargs, "|O:record", &stream) != 0) {
        return NULL;
    }
    int status = MT_OK;
    WITHOUT_GIL(status, mt_event_record(event_of(self), stream));
    return none_or_raise(status);
}

static PyObject *wait(PyObject *self, PyObject *args, PyObject *kwargs)
{
    mt_stream *stream = NULL;
    if (stream_argument(self, args, kwargs, "|O:wait", &stream) != 0) {
        return NULL;
    }
    int status = MT_OK;
    WITHOUT_GIL(status, mt_stream_wait_event(stream, event_of(self)));
    return none_or_raise(status);
}

static PyObject *query(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    bool done = false;
    return zero_or_raise(mt_event_query(event_of(self), &done)) != 0 ? NULL : PyBool_FromLong(done);
}

static PyObject *synchronize(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    int status = MT_OK;
    WITHOUT_GIL(status, mt_event_synchronize(event_of(self)));
    return none_or_raise(status);
}

/* In milliseconds. */
static PyObject *elapsed_time(PyObject *self, PyObject *object)
{
    mt_event *to = event_from_object(object, "elapsed_time");
    double ns = 0.0;
    if (to == NULL) {
        return NULL;
    }
    return zero_or_raise(mt_event_elapsed_ns(event_of(self), to, &ns)) != 0
               ? NULL
               : PyFloat_FromDouble(ns / 1e6);
}

static PyObject *get_device(PyObject *self, void *Py_UNUSED(context))
{
    mt_device device = device_of(self);
    return device == MT_DEVICE_NONE ? Py_NewRef(Py_None) : device_to_object(device);
}

/* A number to compare; 0 before the first record. */
static PyObject *get_id(PyObject *self, void *Py_UNUSED(context))
{
    return mt_event_device(event_of(self)) == MT_DEVICE_NONE ? PyLong_FromLong(0)
                                                             : PyLong_FromVoidPtr(event_of(self));
}

static PyGetSetDef properties[] = {
    {"device", get_device, NULL, "The accelerator it is on; None before it is recorded.", NULL},
    {"event_id", get_id, NULL, "A number that tells it from others.", NULL},
    {"npu_event", get_id, NULL, "The same as event_id.", NULL},
    {"cuda_event", get_id, NULL, "The same as event_id.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"record", PY_CALL(record), METH_VARARGS | METH_KEYWORDS,
     "record($self, /, stream=None)\n--\n\nIt stands for what is on the stream so far."},
    {"wait", PY_CALL(wait), METH_VARARGS | METH_KEYWORDS,
     "wait($self, /, stream=None)\n--\n\nWhat comes on the stream later waits for the event."},
    {"query", query, METH_NOARGS, "query($self, /)\n--\n\nWhether what it stands for is done."},
    {"synchronize", synchronize, METH_NOARGS,
     "synchronize($self, /)\n--\n\nWaits for what it stands for."},
    {"elapsed_time", elapsed_time, METH_O,
     "elapsed_time($self, end_event, /)\n--\n\nMilliseconds from this event to the other."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, event_new},
    {Py_tp_dealloc, event_dealloc},
    {Py_tp_repr, event_repr},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_doc,
     (char[]){
         "Event(device=None, *, enable_timing=False, blocking=False, interprocess=False)\n--\n\n"
         "A place in a stream, to wait for and to measure from."}},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "mindtorch_v2.Event",
    .basicsize = sizeof(stream_mark),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

py_part stream_event_part;
int stream_event_part(PyObject *module)
{
    return py_add_type(module, &spec, NULL, "Event", &tensors.event_type);
}
