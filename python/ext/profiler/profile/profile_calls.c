/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods of _mtprof.Profile: calls of libmtprof without the GIL, and what they raise. PO1 of
 * profile_object.c.
 */
#include "profiler/profile/profile_object.h"

#include <string.h>

mtprof_profile *profile_call_begin(profile_object *self)
{
    if (self->profile == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the profiler was not set up: __init__ was not called, "
                                            "or the interpreter is at its end");
        return NULL;
    }
    self->calls++;
    return self->profile;
}

static void raise_status(profile_object *self, mtprof_status status)
{
    static const char not_initialized[] = "Profiler must be initialized";
    const char *message = mtprof_last_error()->message;
    if (status == MTPROF_ECALLBACK) {
        self->failed = false;
    }
    if (status == MTPROF_ESTATE &&
        strncmp(message, not_initialized, sizeof not_initialized - 1) == 0) {
        PyErr_SetString(PyExc_AssertionError, message);
        return;
    }
    profiler_raise(status, NULL);
}

PyObject *profile_call_end(profile_object *self, mtprof_status status)
{
    self->calls--;
    if (status != MTPROF_OK) {
        raise_status(self, status);
    }
    if (self->failed) {
        /* A callback failed while the library dealt with something else. */
        PyObject *type = NULL, *value = NULL, *trace = NULL;
        PyErr_Fetch(&type, &value, &trace);
        self->failed = false;
        if (py_error_restore()) {
            PyErr_WriteUnraisable((PyObject *)self);
        }
        PyErr_Restore(type, value, trace);
    }
    int emitted = profile_warnings_emit(self);
    if (status != MTPROF_OK || emitted != 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Switches off, in a window that has opened, what the profile does not want. */
static mtprof_status mute(profile_object *self, mtprof_profile *profile)
{
    mtprof_window w = {.struct_size = sizeof w};
    mtprof_status status = mtprof_profile_get_window(profile, &w);
    return status == MTPROF_OK && w.results == MTPROF_RESULTS_RECORDING
               ? mtprof_profile_toggle(profile, false, self->muted)
               : status;
}

/*
 * A call that may replace the session of the results; refused while save() reads it elsewhere.
 *
 * begins: a step's annotation may begin in the call. It gets a stack only if the GIL is kept, so
 * with stacks we make an exception from PO1: such calls take microseconds. We do so only if no
 * other call is under way, since a thread that holds the GIL must not wait for one that may need
 * it.
 */
static PyObject *change(PyObject *object, mtprof_status (*function)(mtprof_profile *), bool begins)
{
    profile_object *self = profile_of(object);
    if (self->savers != 0) {
        PyErr_SetString(PyExc_RuntimeError, "save() of this profiler is running in another thread");
        return NULL;
    }
    mtprof_profile *profile = profile_call_begin(self);
    if (profile == NULL) {
        return NULL;
    }
    self->changes++;
    bool keep = begins && self->with_stack && self->calls == 1;
    PyThreadState *released = keep ? NULL : PyEval_SaveThread();
    mtprof_status status = function(profile);
    if (status == MTPROF_OK && begins && self->muted != 0) {
        status = mute(self, profile);
    }
    if (released != NULL) {
        PyEval_RestoreThread(released);
    }
    self->changes--;
    return profile_call_end(self, status);
}

static PyObject *profile_start(PyObject *self, PyObject *Py_UNUSED(none))
{
    return change(self, mtprof_profile_start, true);
}

static PyObject *profile_step(PyObject *self, PyObject *Py_UNUSED(none))
{
    return change(self, mtprof_profile_step, true);
}

static PyObject *profile_stop(PyObject *self, PyObject *Py_UNUSED(none))
{
    return change(self, mtprof_profile_stop, false);
}

static PyObject *profile_prepare_trace(PyObject *self, PyObject *Py_UNUSED(none))
{
    return change(self, mtprof_profile_prepare_trace, false);
}

static PyObject *profile_start_trace(PyObject *self, PyObject *Py_UNUSED(none))
{
    return change(self, mtprof_profile_start_trace, true);
}

static PyObject *profile_stop_trace(PyObject *self, PyObject *Py_UNUSED(none))
{
    return change(self, mtprof_profile_stop_trace, false);
}

/*
 * start() and stop() for a with statement, which leaves the profiler off whatever happens: an
 * interrupt may come before the first line of a Python method, and nothing else would stop the
 * profiler then.
 */
static bool is_running(const profile_object *self)
{
    return self->profile != NULL && mtprof_profile_is_running(self->profile);
}

static void stop_after_failure(PyObject *object)
{
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *stopped = profile_stop(object, NULL);
    if (stopped == NULL) {
        PyErr_WriteUnraisable(object);
    }
    Py_XDECREF(stopped);
    PyErr_Restore(type, value, trace);
}

static PyObject *profile_enter(PyObject *object, PyObject *Py_UNUSED(none))
{
    const profile_object *self = profile_of(object);
    bool before = is_running(self);
    PyObject *started = PyObject_CallMethod(object, "start", NULL);
    if (started == NULL) {
        if (!before && is_running(self)) {
            stop_after_failure(object);
        }
        return NULL;
    }
    Py_DECREF(started);
    return Py_NewRef(object);
}

static PyObject *profile_exit(PyObject *object, PyObject *args)
{
    const profile_object *self = profile_of(object);
    PyObject *method = PyObject_GetAttrString(object, "_exit");
    PyObject *result = method != NULL ? PyObject_CallObject(method, args) : NULL;
    Py_XDECREF(method);
    if (result == NULL && is_running(self) && self->in_callback == NULL) {
        stop_after_failure(object);
    }
    return result;
}

static PyObject *profile_toggle(PyObject *object, PyObject *args)
{
    profile_object *self = profile_of(object);
    int enable = 0;
    unsigned int activities = 0;
    if (!PyArg_ParseTuple(args, "pI:_toggle", &enable, &activities)) {
        return NULL;
    }
    mtprof_profile *profile = profile_call_begin(self);
    if (profile == NULL) {
        return NULL;
    }
    mtprof_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_profile_toggle(profile, enable != 0, activities);
    Py_END_ALLOW_THREADS;
    return profile_call_end(self, status);
}

static PyObject *profile_metadata(PyObject *object, PyObject *args)
{
    enum {
        ADD_TEXT = 0,
        ADD_JSON = 1,
        PRESET_JSON = 2
    };
    profile_object *self = profile_of(object);
    int kind = 0;
    const char *key = NULL, *value = NULL;
    Py_ssize_t key_length = 0, value_length = 0;
    if (!PyArg_ParseTuple(args, "is#s#:_metadata", &kind, &key, &key_length, &value,
                          &value_length)) {
        return NULL;
    }
    if (kind < ADD_TEXT || kind > PRESET_JSON) {
        return PyErr_Format(PyExc_ValueError, "_metadata: no kind %d", kind);
    }
    mtprof_profile *profile = profile_call_begin(self);
    if (profile == NULL) {
        return NULL;
    }
    mtprof_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = (kind == PRESET_JSON ? mtprof_profile_preset_metadata : mtprof_profile_add_metadata)(
        profile, key, (size_t)key_length, value, (size_t)value_length, kind != ADD_TEXT);
    Py_END_ALLOW_THREADS;
    return profile_call_end(self, status);
}

static PyObject *profile_use_custom_trace_id(PyObject *object, PyObject *on)
{
    profile_object *self = profile_of(object);
    int use = PyObject_IsTrue(on);
    mtprof_profile *profile = use < 0 ? NULL : profile_call_begin(self);
    if (profile == NULL) {
        return NULL;
    }
    return profile_call_end(self, mtprof_profile_set_trace_id_callback(
                                      profile, use ? profile_trace_id_callback : NULL, self));
}

/* ---- looking --------------------------------------------------------------------------------- */

static PyObject *profile_trace_id(PyObject *object, PyObject *Py_UNUSED(none))
{
    char text[MTPROF_TRACE_ID_BYTES] = "";
    profile_object *self = profile_of(object);
    mtprof_profile *profile = profile_call_begin(self);
    if (profile == NULL) {
        return NULL;
    }
    mtprof_status status = mtprof_profile_get_trace_id(profile, text, sizeof text);
    PyObject *said = profile_call_end(self, status);
    Py_XDECREF(said);
    if (said == NULL || text[0] != '\0') {
        return said == NULL ? NULL
                            : PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    }
    Py_RETURN_NONE;
}

static PyObject *profile_explain(PyObject *object, PyObject *Py_UNUSED(none))
{
    char text[512] = "";
    profile_object *self = profile_of(object);
    mtprof_profile *profile = profile_call_begin(self);
    if (profile == NULL) {
        return NULL;
    }
    mtprof_status status = mtprof_profile_explain_empty(profile, text, sizeof text);
    PyObject *said = profile_call_end(self, status);
    Py_XDECREF(said);
    return said == NULL ? NULL : PyUnicode_FromString(text);
}

static PyObject *profile_window(PyObject *object, PyObject *Py_UNUSED(none))
{
    profile_object *self = profile_of(object);
    mtprof_profile *profile = profile_call_begin(self);
    if (profile == NULL) {
        return NULL;
    }
    mtprof_window w = {.struct_size = sizeof w};
    PyObject *said = profile_call_end(self, mtprof_profile_get_window(profile, &w));
    Py_XDECREF(said);
    if (said == NULL) {
        return NULL;
    }
    return Py_BuildValue("IIIIILLII", w.results, w.window, w.first_window, w.saved, w.delivered,
                         (long long)w.first_step, (long long)w.steps, w.collecting, w.sessions);
}

static PyObject *profile_model(PyObject *object, PyObject *args)
{
    profile_object *self = profile_of(object);
    long long session = 0;
    long long window = 0;
    if (!PyArg_ParseTuple(args, "L|L:_model", &session, &window)) {
        return NULL;
    }
    if (session < 0 || session > UINT32_MAX || window < 0 || window > UINT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "_model(): no session %lld, window %lld", session,
                     window);
        return NULL;
    }
    mtprof_profile *profile = profile_call_begin(self);
    if (profile == NULL) {
        return NULL;
    }
    mtprof_model_options options = {.struct_size = sizeof options,
                                    .session = (uint32_t)session,
                                    .first_window = (uint32_t)window,
                                    .last_window = (uint32_t)window,
                                    .progress = model_progress};
    mtprof_model *model = NULL;
    mtprof_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_model_from_profile(profile, &options, &model);
    Py_END_ALLOW_THREADS;
    PyObject *said = profile_call_end(self, status);
    Py_XDECREF(said);
    if (said == NULL) {
        mtprof_model_free(model);
        return NULL;
    }
    return model_object_new(model);
}

static PyObject *profile_save(PyObject *object, PyObject *path)
{
    profile_object *self = profile_of(object);
    PyObject *bytes = NULL;
    /* While a callback runs no other thread can change the profile, so its save() is safe. */
    if (self->changes != 0 && self->in_callback != PyThreadState_Get()) {
        PyErr_SetString(PyExc_RuntimeError,
                        "save: the profiler is being started or stopped in another thread");
        return NULL;
    }
    if (!PyUnicode_FSConverter(path, (void *)&bytes)) {
        return NULL;
    }
    mtprof_profile *profile = profile_call_begin(self);
    if (profile == NULL) {
        Py_DECREF(bytes);
        return NULL;
    }
    mtprof_window w = {.struct_size = sizeof w};
    mtprof_status status = mtprof_profile_get_window(profile, &w);
    mtprof_session *session = NULL;
    if (status == MTPROF_OK && w.results != MTPROF_RESULTS_NONE) {
        session = mtprof_profile_session(profile, w.sessions != 0 ? w.sessions - 1 : 0);
    }
    PyObject *result = NULL;
    if (status == MTPROF_OK && session == NULL) {
        PyErr_SetString(PyExc_AssertionError, "Profiler must be initialized before saving a trace");
        self->calls--;
    } else {
        self->savers++;
        if (status == MTPROF_OK) {
            Py_BEGIN_ALLOW_THREADS;
            status =
                mtprof_session_save_with(session, PyBytes_AS_STRING(bytes), model_progress, NULL);
            Py_END_ALLOW_THREADS;
        }
        self->savers--;
        if (status == MTPROF_EIO || status == MTPROF_ENOSPC) {
            profiler_raise(status, PyBytes_AS_STRING(bytes));
            self->calls--;
        } else {
            result = profile_call_end(self, status);
        }
    }
    Py_DECREF(bytes);
    return result;
}

/* How much work for devices the latest session has: launches, and what came without one. */
static PyObject *profile_device_work(PyObject *object, PyObject *Py_UNUSED(none))
{
    profile_object *self = profile_of(object);
    mtprof_profile *profile = profile_call_begin(self);
    if (profile == NULL) {
        return NULL;
    }
    mtprof_health health = {.struct_size = sizeof health};
    mtprof_status status = mtprof_profile_get_health(profile, &health);
    PyObject *said = profile_call_end(self, status == MTPROF_ESTATE ? MTPROF_OK : status);
    Py_XDECREF(said);
    return said != NULL ? PyLong_FromUnsignedLongLong(health.launches + health.activities) : NULL;
}

static PyObject *get_step_num(PyObject *object, void *Py_UNUSED(closure))
{
    mtprof_profile *profile = profile_of(object)->profile;
    return PyLong_FromLongLong(profile != NULL ? mtprof_profile_step_num(profile) : 0);
}

static PyObject *get_action(PyObject *object, void *Py_UNUSED(closure))
{
    mtprof_profile *profile = profile_of(object)->profile;
    return PyLong_FromLong(profile != NULL ? (long)mtprof_profile_current_action(profile) : 0);
}

static PyObject *get_running(PyObject *object, void *Py_UNUSED(closure))
{
    mtprof_profile *profile = profile_of(object)->profile;
    return PyBool_FromLong(profile != NULL && mtprof_profile_is_running(profile));
}

static PyObject *get_activity_bits(PyObject *object, void *Py_UNUSED(closure))
{
    mtprof_profile *profile = profile_of(object)->profile;
    return PyLong_FromUnsignedLong(profile != NULL ? mtprof_profile_activities(profile) : 0);
}

PyMethodDef profile_methods[] = {
    {"_open", PY_CALL(profile_open), METH_VARARGS | METH_KEYWORDS,
     "Makes the profile; see mtprof_profile_config."},
    {"_start", profile_start, METH_NOARGS, NULL},
    {"_step", profile_step, METH_NOARGS, NULL},
    {"_stop", profile_stop, METH_NOARGS, NULL},
    {"_prepare_trace", profile_prepare_trace, METH_NOARGS, NULL},
    {"_start_trace", profile_start_trace, METH_NOARGS, NULL},
    {"_stop_trace", profile_stop_trace, METH_NOARGS, NULL},
    {"_enter", profile_enter, METH_NOARGS, "_enter($self, /)\n--\n\nStarts; returns itself."},
    {"_leave", profile_exit, METH_VARARGS,
     "_leave($self, exc_type, exc_value, traceback, /)\n--\n\nStops."},
    {"_toggle", profile_toggle, METH_VARARGS, "_toggle(enable, activity bits)"},
    {"_metadata", profile_metadata, METH_VARARGS,
     "_metadata(kind, key, value); kind 0: text, 1: JSON, 2: JSON for every window"},
    {"_use_custom_trace_id", profile_use_custom_trace_id, METH_O, NULL},
    {"_trace_id", profile_trace_id, METH_NOARGS, NULL},
    {"_explain", profile_explain, METH_NOARGS, "Why the results are empty, in one line."},
    {"_device_work", profile_device_work, METH_NOARGS, "Launches and device work recorded so far."},
    {"_window", profile_window, METH_NOARGS, "mtprof_window as a tuple, from `results` on."},
    {"_model", profile_model, METH_VARARGS,
     "The results of a session (from 1; 0: the latest), or of one window of it."},
    {"_save", profile_save, METH_O, "Writes the latest session's trace to a file."},
    {NULL, NULL, 0, NULL},
};

PyGetSetDef profile_getset[] = {
    {"_step_num", get_step_num, NULL, NULL, NULL},
    {"_action", get_action, NULL, NULL, NULL},
    {"_running", get_running, NULL, "From start to stop.", NULL},
    {"_activity_bits", get_activity_bits, NULL, "What is in fact looked at.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
