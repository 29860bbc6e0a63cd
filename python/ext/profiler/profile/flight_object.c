/* SPDX-License-Identifier: Apache-2.0
 *
 * _mtprof.Flight: an mtprof_flight as the base class of mtprof.flight_recorder.
 *
 *   PFR1  The library is called without the GIL; the caller holds a reference to the object.
 *   PFR2  Callbacks come on any thread. They take the GIL and call _dumped(info), _warned(message)
 *        and _triggered(kind, reason); what these raise is printed, since nobody waits for it. The
 *        object outlives them: its dealloc stops the recorder first, and they do nothing then.
 *   PFR3  on_dump and on_trigger are set only where there is a callable: a program that hangs with
 *        the GIL would hold up the thread that dumps.
 */
#include "profiler/profiler_state.h"
#include "profiler/stacks/all_stacks.h"

#include <mtprof/flight.h>

#include <string.h>

typedef struct flight_object {
    PyObject_HEAD mtprof_flight *flight; /* NULL: not started yet */
    bool dying;                          /* no callback may use it any more; under the GIL */
} flight_object;

static flight_object *flight_of(PyObject *object)
{
    return (flight_object *)object;
}

static PyObject *info_dict(const mtprof_flight_dump_info *info)
{
    PyObject *path = PyUnicode_DecodeFSDefault(info->path);
    if (path == NULL) {
        return NULL;
    }
    return Py_BuildValue("{sNsssIsLsLsKsKsKsK}", "path", path, "reason",
                         info->reason != NULL ? info->reason : "", "sequence", info->sequence,
                         "from_ns", (long long)info->from_ns, "to_ns", (long long)info->to_ns,
                         "bytes", (unsigned long long)info->bytes, "chunks_missed",
                         (unsigned long long)info->chunks_missed, "took_ns",
                         (unsigned long long)info->took_ns, "step", (unsigned long long)info->step);
}

/* PFR2 */
static void tell(PyObject *self, const char *method, PyObject *argument)
{
    PyObject *said = NULL;
    if (argument != NULL && !flight_of(self)->dying) {
        PyObject *bound = PyObject_GetAttrString(self, method);
        said = bound == NULL             ? NULL
               : PyTuple_Check(argument) ? PyObject_CallObject(bound, argument)
                                         : PyObject_CallOneArg(bound, argument);
        Py_XDECREF(bound);
    }
    if (said == NULL && PyErr_Occurred()) {
        PyErr_WriteUnraisable(flight_of(self)->dying ? (PyObject *)Py_TYPE(self) : self);
    }
    Py_XDECREF(said);
    Py_XDECREF(argument);
}

static void on_dump(void *user, const mtprof_flight_dump_info *info)
{
    PyGILState_STATE state = PyGILState_Ensure();
    tell(user, "_dumped", info_dict(info));
    PyGILState_Release(state);
}

static void on_trigger(void *user, const mtprof_flight_trigger_info *trigger)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *reason =
        PyUnicode_DecodeUTF8(trigger->reason, (Py_ssize_t)strlen(trigger->reason), "replace");
    tell(user, "_triggered",
         reason != NULL ? Py_BuildValue("(sN)", mtprof_flight_trigger_name(trigger->kind), reason)
                        : NULL);
    PyGILState_Release(state);
}

/* Whether a callable was given. */
static bool has_callable(PyObject *self, const char *name)
{
    PyObject *value = PyObject_GetAttrString(self, name);
    PyErr_Clear();
    bool given = value != NULL && value != Py_None;
    Py_XDECREF(value);
    return given;
}

static void on_warning(void *user, mtprof_status status, const char *message)
{
    (void)status;
    PyGILState_STATE state = PyGILState_Ensure();
    tell(user, "_warned", PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace"));
    PyGILState_Release(state);
}

static void drop(flight_object *self)
{
    mtprof_flight *flight = self->flight;
    self->flight = NULL;
    if (flight != NULL) {
        Py_BEGIN_ALLOW_THREADS;
        (void)mtprof_flight_stop(flight);
        mtprof_flight_release(flight);
        Py_END_ALLOW_THREADS;
    }
}

static PyObject *flight_start(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"folder",
                                        "name",
                                        "flags",
                                        "wants",
                                        "buffer_bytes",
                                        "keep_ns",
                                        "keep_steps",
                                        "keep_bytes",
                                        "dumps_max",
                                        "dumps_bytes_max",
                                        "distance",
                                        "dump_signal",
                                        "slow_step",
                                        "hang_ns",
                                        "dump_at_stop",
                                        "overhead_ppm",
                                        "steps_bytes_max",
                                        "counters_hz",
                                        NULL};
    flight_object *self = flight_of(object);
    PyObject *folder = NULL;
    unsigned long long wants = 0, buffer = 0, ns = 0, steps = 0, bytes = 0, most = 0, room = 0,
                       distance = 0;
    unsigned long long hang = 0, steps_most = 0;
    double slow_step = 0;
    int dump_signal = 0;
    unsigned int flags = 0, at_stop = 0, overhead_ppm = 0, counters_hz = 0;
    const char *name = NULL;
    if (self->flight != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the flight recorder has been started");
        return NULL;
    }
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O&|zIKKKKKKKKidKIIKI:_start", PY_NAMES(names), PyUnicode_FSConverter,
            &folder, &name, &flags, &wants, &buffer, &ns, &steps, &bytes, &most, &room, &distance,
            &dump_signal, &slow_step, &hang, &at_stop, &overhead_ppm, &steps_most, &counters_hz)) {
        return NULL;
    }
    mtprof_flight_config config = {
        .struct_size = sizeof config,
        .flags = flags,
        .folder = PyBytes_AS_STRING(folder),
        .name = name,
        .wants = wants,
        .buffer_bytes = buffer,
        .keep_ns = ns,
        .keep_steps = steps,
        .keep_bytes = bytes,
        .dumps_max = most,
        .dumps_bytes_max = room,
        .dumps_distance_ns = distance,
        .on_dump = has_callable(object, "_on_dump") ? on_dump : NULL,
        .on_warning = on_warning,
        .user = self,
        .dump_signal = dump_signal,
        .slow_step = slow_step,
        .hang_ns = hang,
        .dump_at_stop = at_stop,
        .on_trigger = has_callable(object, "_on_trigger") ? on_trigger : NULL,
        .write_stacks = all_stacks_write,
        .overhead_ppm = overhead_ppm,
        .steps_bytes_max = steps_most,
        .counters_hz = counters_hz,
    };
    mtprof_status status;
    mtprof_flight *flight = NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_flight_start(&config, &flight);
    Py_END_ALLOW_THREADS;
    self->flight = flight;
    if (status != MTPROF_OK) {
        profiler_raise(status, config.folder);
    }
    Py_DECREF(folder);
    return status == MTPROF_OK ? Py_NewRef(Py_None) : NULL;
}

/* NULL: an exception is set. */
static mtprof_flight *running(PyObject *object)
{
    mtprof_flight *flight = flight_of(object)->flight;
    if (flight == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the flight recorder has not been started");
    }
    return flight;
}

static PyObject *flight_step(PyObject *object, PyObject *Py_UNUSED(none))
{
    mtprof_flight *flight = running(object);
    if (flight == NULL) {
        return NULL;
    }
    mtprof_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_flight_step(flight);
    Py_END_ALLOW_THREADS;
    return status == MTPROF_OK ? Py_NewRef(Py_None) : profiler_raise(status, NULL);
}

static PyObject *flight_dump(PyObject *object, PyObject *args)
{
    const char *reason = NULL;
    mtprof_flight *flight = running(object);
    if (flight == NULL || !PyArg_ParseTuple(args, "|z:_dump", &reason)) {
        return NULL;
    }
    mtprof_flight_dump_info info = {.struct_size = sizeof info};
    mtprof_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_flight_dump(flight, reason, &info);
    Py_END_ALLOW_THREADS;
    return status == MTPROF_OK ? info_dict(&info) : profiler_raise(status, NULL);
}

static PyObject *flight_trigger(PyObject *object, PyObject *args)
{
    const char *name = NULL, *reason = NULL;
    mtprof_flight *flight = running(object);
    if (flight == NULL || !PyArg_ParseTuple(args, "sz:_trigger", &name, &reason)) {
        return NULL;
    }
    uint32_t kind = 0;
    while (kind < MTPROF_TRIGGER_COUNT && strcmp(mtprof_flight_trigger_name(kind), name) != 0) {
        kind++;
    }
    if (kind == MTPROF_TRIGGER_COUNT) {
        PyErr_Format(PyExc_ValueError, "there is no kind of trigger \"%s\"", name);
        return NULL;
    }
    mtprof_flight_dump_info info = {.struct_size = sizeof info};
    mtprof_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_flight_trigger(flight, kind, reason, &info);
    Py_END_ALLOW_THREADS;
    return status == MTPROF_OK ? info_dict(&info) : profiler_raise(status, NULL);
}

static PyObject *flight_counts(PyObject *object, PyObject *Py_UNUSED(none))
{
    mtprof_flight *flight = running(object);
    mtprof_flight_counts counts = {.struct_size = sizeof counts};
    if (flight == NULL) {
        return NULL;
    }
    mtprof_status status = mtprof_flight_get_counts(flight, &counts);
    if (status != MTPROF_OK) {
        return profiler_raise(status, NULL);
    }
    return Py_BuildValue(
        "{sKsKsKsKsKsKsKsK}", "steps", (unsigned long long)counts.steps, "dumps",
        (unsigned long long)counts.dumps, "refused", (unsigned long long)counts.refused, "failed",
        (unsigned long long)counts.failed, "deleted", (unsigned long long)counts.deleted,
        "chunks_missed", (unsigned long long)counts.chunks_missed, "summaries",
        (unsigned long long)counts.summaries, "summaries_lost",
        (unsigned long long)counts.summaries_lost);
}

static PyObject *flight_add_metadata(PyObject *object, PyObject *args)
{
    const char *key = NULL, *value = NULL;
    Py_ssize_t key_length = 0, value_length = 0;
    int is_json = 0;
    mtprof_flight *flight = running(object);
    if (flight == NULL || !PyArg_ParseTuple(args, "s#s#p:_add_metadata", &key, &key_length, &value,
                                            &value_length, &is_json)) {
        return NULL;
    }
    mtprof_session *session = mtprof_flight_session(flight);
    if (session == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the flight recorder has stopped");
        return NULL;
    }
    mtprof_status status = mtprof_session_add_metadata(session, key, (size_t)key_length, value,
                                                       (size_t)value_length, is_json != 0);
    return status == MTPROF_OK ? Py_NewRef(Py_None) : profiler_raise(status, NULL);
}

static PyObject *flight_stop(PyObject *object, PyObject *Py_UNUSED(none))
{
    mtprof_flight *flight = flight_of(object)->flight;
    mtprof_status status = MTPROF_OK;
    if (flight != NULL) {
        Py_BEGIN_ALLOW_THREADS;
        status = mtprof_flight_stop(flight);
        Py_END_ALLOW_THREADS;
    }
    return status == MTPROF_OK ? Py_NewRef(Py_None) : profiler_raise(status, NULL);
}

static void flight_dealloc(PyObject *object)
{
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    PyErr_Fetch(&type, &value, &trace); /* it may run while an exception is set */
    flight_of(object)->dying = true;
    drop(flight_of(object));
    PyErr_Restore(type, value, trace);
    py_free(object);
}

static PyMethodDef methods[] = {
    {"_start", PY_CALL(flight_start), METH_VARARGS | METH_KEYWORDS, "mtprof_flight_start()."},
    {"_step", flight_step, METH_NOARGS, "mtprof_flight_step()."},
    {"_dump", flight_dump, METH_VARARGS, "mtprof_flight_dump(); a dict of what it says."},
    {"_trigger", flight_trigger, METH_VARARGS, "mtprof_flight_trigger(kind, reason)."},
    {"_counts", flight_counts, METH_NOARGS, "mtprof_flight_get_counts() as a dict."},
    {"_add_metadata", flight_add_metadata, METH_VARARGS, "(key, value, is_json)"},
    {"_stop", flight_stop, METH_NOARGS, "mtprof_flight_stop()."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "A flight recorder; the base of mtprof.flight_recorder."},
    {Py_tp_dealloc, (void *)flight_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "mtprof._mtprof.Flight",
    .basicsize = sizeof(flight_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

py_part flight_part;
int flight_part(PyObject *module)
{
    return py_add_type(module, &spec, NULL, "Flight", &profiler.flight_type);
}
