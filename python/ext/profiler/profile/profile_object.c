/* SPDX-License-Identifier: Apache-2.0
 *
 * _mtprof.Profile: an mtprof_profile as the base class of mtprof's profilers. What C calls back is
 * a method of the object itself, so nothing here holds a Python reference and there is no cycle:
 *
 *      profile (Python) ──is a──► Profile ──owns──► mtprof_profile
 *            ▲                                          │ _schedule_action(step) -> int
 *            └────────────── with the GIL ──────────────┘ _trace_ready(), _observe(event),
 *                                                         _custom_trace_id() -> str
 *
 *   PO1  The library is called without the GIL. The caller holds a reference to the object, so it
 *        is not freed during a call. `calls` counts the calls under way, for close(), which holds
 *        no reference.
 *   PO2  The first exception of a callback is raised by the start, step or stop that called it.
 *   PO3  Warnings may come from the recorder's helper thread: they are queued under a lock of their
 *        own and handed to _warn() by the next call that returns to Python.
 */
#include "profiler/profile/profile_object.h"

#include "profiler/stacks/python_stacks.h"

#include <unistd.h>

static profile_object *all_open;

static void open_link(profile_object *self)
{
    self->before_open = NULL;
    self->next_open = all_open;
    if (all_open != NULL) {
        all_open->before_open = self;
    }
    all_open = self;
}

static void open_unlink(profile_object *self)
{
    if (self->before_open != NULL) {
        self->before_open->next_open = self->next_open;
    } else if (all_open == self) {
        all_open = self->next_open;
    }
    if (self->next_open != NULL) {
        self->next_open->before_open = self->before_open;
    }
    self->next_open = self->before_open = NULL;
}

/* No call of the profile is under way, and none may follow (PO1). */
void profile_close(profile_object *self)
{
    mtprof_profile *profile = self->profile;
    if (profile == NULL || self->calls != 0) {
        return;
    }
    self->profile = NULL;
    open_unlink(self);
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    PyErr_Fetch(&type, &value, &trace); /* a destructor may run while an exception is set */
    if (profile_tracers_stop(self) != 0) {
        PyErr_WriteUnraisable((PyObject *)Py_TYPE(self)); /* not self, which may be being freed */
    }
    Py_BEGIN_ALLOW_THREADS;
    (void)mtprof_profile_free(profile);
    Py_END_ALLOW_THREADS;
    if (self->with_stack) {
        stacks_release_code();
    }
    PyErr_Restore(type, value, trace);
}

/* A second _open() replaces the first profile, unless that is used. A schedule that is asked by the
 * first must not begin a second one. */
static int close_earlier(profile_object *self)
{
    if (self->calls != 0 || (self->profile != NULL && mtprof_profile_is_running(self->profile))) {
        PyErr_SetString(PyExc_RuntimeError, "__init__: the profiler is running");
        return -1;
    }
    profile_close(self);
    return 0;
}

int profile_schedule_from(PyObject *tuple, mtprof_schedule *schedule)
{
    long long v[6] = {0};
    if (!PyArg_ParseTuple(tuple, "LLLLLL:schedule", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5])) {
        return -1;
    }
    *schedule = (mtprof_schedule){
        .struct_size = sizeof *schedule,
        .wait = v[0],
        .warmup = v[1],
        .active = v[2],
        .repeat = v[3],
        .skip_first = v[4],
        .skip_first_wait = v[5],
    };
    return 0;
}

/* Texts of the configuration; owned until the profile is made. */
typedef struct open_texts {
    PyObject *path, *spill_directory;
} open_texts;

static int open_config(profile_object *self, PyObject *args, PyObject *kwargs,
                       mtprof_profile_config *config, mtprof_schedule *schedule, open_texts *texts)
{
    static const char *const names[] = {
        "activities",   "flags",       "policy",          "path",        "schedule",
        "buffer_bytes", "ring_ns",     "spill_directory", "trace_id",    "tracers",
        "muted",        "path_shared", "overhead_ppm",    "counters_hz", NULL};
    PyObject *when = Py_None, *path = Py_None, *spill = Py_None;
    unsigned int activities = 0, flags = 0, policy = 0, overhead_ppm = 0, counters_hz = 0;
    unsigned long long buffer_bytes = 0, ring_ns = 0;
    int trace_id = 0, path_shared = 0;
    self->tracers = self->muted = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "II|IOOKKOpIIpII:_open", PY_NAMES(names),
                                     &activities, &flags, &policy, &path, &when, &buffer_bytes,
                                     &ring_ns, &spill, &trace_id, &self->tracers, &self->muted,
                                     &path_shared, &overhead_ppm, &counters_hz) ||
        (path != Py_None && !PyUnicode_FSConverter(path, (void *)&texts->path)) ||
        (spill != Py_None && !PyUnicode_FSConverter(spill, (void *)&texts->spill_directory)) ||
        (PyTuple_Check(when) && profile_schedule_from(when, schedule) != 0)) {
        return -1;
    }
    *config = (mtprof_profile_config){
        .struct_size = sizeof *config,
        .activities = activities,
        .flags = flags,
        .policy = policy,
        .path = texts->path != NULL ? PyBytes_AS_STRING(texts->path) : NULL,
        .spill_directory =
            texts->spill_directory != NULL ? PyBytes_AS_STRING(texts->spill_directory) : NULL,
        .buffer_bytes = buffer_bytes,
        .ring_ns = ring_ns,
        .schedule = PyTuple_Check(when) ? schedule : NULL,
        .user = self,
        .path_shared = path_shared != 0,
        .overhead_ppm = overhead_ppm,
        .counters_hz = counters_hz,
    };
    profile_callbacks_set(config, when != Py_None && !PyTuple_Check(when), trace_id != 0);
    return 0;
}

/* schedule: None, a tuple of mtprof_schedule's six numbers, or anything else for
 * _schedule_action().
 */
PyObject *profile_open(PyObject *object, PyObject *args, PyObject *kwargs)
{
    profile_object *self = profile_of(object);
    mtprof_profile_config config;
    mtprof_schedule schedule;
    open_texts texts = {NULL, NULL};
    PyObject *result = NULL;
    if (close_earlier(self) == 0 &&
        open_config(self, args, kwargs, &config, &schedule, &texts) == 0) {
        mtprof_profile *profile = NULL;
        mtprof_status status;
        self->calls++;
        Py_BEGIN_ALLOW_THREADS;
        status = mtprof_profile_new(&config, &profile);
        Py_END_ALLOW_THREADS;
        if (profile != NULL) {
            self->profile = profile;
            self->with_stack = (config.flags & MTPROF_PROFILE_WITH_STACK) != 0;
            open_link(self);
        }
        result = profile_call_end(self, status);
    }
    Py_XDECREF(texts.path);
    Py_XDECREF(texts.spill_directory);
    return result;
}

static PyObject *profile_new(PyTypeObject *type, PyObject *Py_UNUSED(args),
                             PyObject *Py_UNUSED(kwargs))
{
    profile_object *self = (profile_object *)type->tp_alloc(type, 0);
    if (self != NULL && pthread_mutex_init(&self->lock, NULL) != 0) {
        Py_DECREF(type);
        type->tp_free(self);
        return PyErr_NoMemory();
    }
    if (self != NULL) {
        self->pid = getpid();
    }
    return (PyObject *)self;
}

static void profile_dealloc(PyObject *object)
{
    profile_object *self = profile_of(object);
    profile_close(self);
    profile_warnings_drop(self);
    pthread_mutex_destroy(&self->lock);
    py_free(object);
}

/* In the child of a fork, which records nothing: the parent's tracers end here. They would look at
 * each call of the child, and at last at an interpreter that is being taken apart. */
static PyObject *leave_tracers(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    for (profile_object *self = all_open; self != NULL;) {
        if (self->tracing == 0 || Py_REFCNT(self) == 0) {
            self = self->next_open;
            continue;
        }
        Py_INCREF(self);
        if (profile_tracers_stop(self) != 0) { /* may run Python code: the list may change */
            PyErr_WriteUnraisable((PyObject *)self);
        }
        Py_DECREF(self);
        self = all_open;
    }
    Py_RETURN_NONE;
}

/* At the interpreter's end: a session that still runs is ended and its file finished, without a
 * callback. */
static PyObject *close_all(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    for (profile_object *self = all_open; self != NULL;) {
        profile_object *next = self->next_open;
        /* One whose count is 0 is being freed, and closes itself. */
        if (Py_REFCNT(self) > 0 && mtprof_profile_is_running(self->profile) && self->calls == 0) {
            Py_INCREF(self);     /* its warnings come here until it is closed */
            profile_close(self); /* releases the GIL: others may have come or gone */
            Py_DECREF(self);
            next = all_open;
        }
        self = next;
    }
    Py_RETURN_NONE;
}

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "A profile of libmtprof; the base of mtprof.profile."},
    {Py_tp_new, profile_new},
    {Py_tp_dealloc, profile_dealloc},
    {Py_tp_methods, profile_methods},
    {Py_tp_getset, profile_getset},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "mtprof._mtprof.Profile",
    .basicsize = sizeof(profile_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

/* ---- functions ------------------------------------------------------------------------------- */

static PyObject *schedule_action(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *tuple = NULL;
    long long step = 0;
    mtprof_schedule schedule;
    enum mtprof_action action = MTPROF_ACTION_NONE;
    if (!PyArg_ParseTuple(args, "O!L:schedule_action", &PyTuple_Type, &tuple, &step) ||
        profile_schedule_from(tuple, &schedule) != 0) {
        return NULL;
    }
    mtprof_status status = mtprof_schedule_get_action(&schedule, step, &action);
    return status == MTPROF_OK ? PyLong_FromLong((long)action) : profiler_raise(status, NULL);
}

/* The warning a valid schedule deserves, or None. */
static PyObject *schedule_check(PyObject *Py_UNUSED(module), PyObject *tuple)
{
    mtprof_schedule schedule;
    const char *warning = NULL;
    if (!PyTuple_Check(tuple)) {
        return PyErr_Format(PyExc_TypeError, "schedule_check: expected a tuple, not %R", tuple);
    }
    if (profile_schedule_from(tuple, &schedule) != 0) {
        return NULL;
    }
    mtprof_status status = mtprof_schedule_check(&schedule, &warning);
    if (status != MTPROF_OK) {
        return profiler_raise(status, NULL);
    }
    if (warning == NULL) {
        Py_RETURN_NONE;
    }
    return PyUnicode_FromString(warning);
}

static PyObject *device_sources(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(mtprof_has_device_source());
}

static PyObject *wanted(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromUnsignedLong(__atomic_load_n(&mtprof_i_gate, __ATOMIC_RELAXED));
}

static PyMethodDef functions[] = {
    {"close_all", close_all, METH_NOARGS, "Ends what still runs; at the interpreter's end."},
    {"leave_tracers", leave_tracers, METH_NOARGS, "Ends the parent's tracers in a forked child."},
    {"schedule_action", schedule_action, METH_VARARGS, "schedule_action(six numbers, step) -> int"},
    {"schedule_check", schedule_check, METH_O, "schedule_check(six numbers) -> warning or None"},
    {"device_sources", device_sources, METH_NOARGS, "Is there an accelerator to profile?"},
    {"wanted", wanted, METH_NOARGS, "What is recorded right now (enum mtprof_want); 0: nothing."},
    {NULL, NULL, 0, NULL},
};

int profile_part(PyObject *module);

int profile_part(PyObject *module)
{
    if (py_add_type(module, &spec, NULL, "Profile", &profiler.profile_type) != 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
