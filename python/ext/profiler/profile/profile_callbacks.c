/* SPDX-License-Identifier: Apache-2.0
 *
 * What libmtprof calls back: methods of the profiler object, and the queue of its warnings. PO2 and
 * PO3 of profile_object.c.
 */
#include "profiler/profile/profile_object.h"
#include "profiler/stacks/tracers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct queued_warning {
    struct queued_warning *next;
    mtprof_status status;
    char message[];
} queued_warning;

/* The first exception is kept for the caller (PO2); a further one can only be reported. */
static int keep_error(profile_object *self)
{
    if (self->failed) {
        PyErr_WriteUnraisable((PyObject *)self);
        return 1;
    }
    self->failed = true;
    py_error_keep();
    return 1;
}

/* Around the Python half of a callback. */
typedef struct callback_frame {
    PyGILState_STATE gil;
    const void *before; /* callbacks nest: one may stop and start the profile */
} callback_frame;

static callback_frame callback_enter(profile_object *self)
{
    callback_frame frame = {.gil = PyGILState_Ensure()};
    frame.before = self->in_callback;
    self->in_callback = PyThreadState_Get();
    return frame;
}

static void callback_leave(profile_object *self, callback_frame frame)
{
    self->in_callback = frame.before;
    PyGILState_Release(frame.gil);
}

static int schedule_callback(void *user, int64_t step, enum mtprof_action *action)
{
    profile_object *self = user;
    callback_frame frame = callback_enter(self);
    int result = 0;
    PyObject *answer =
        PyObject_CallMethod((PyObject *)self, "_schedule_action", "L", (long long)step);
    long value = answer != NULL ? PyLong_AsLong(answer) : -1;
    if (PyErr_Occurred() != NULL) {
        result = keep_error(self);
    } else {
        *action = (enum mtprof_action)value;
    }
    Py_XDECREF(answer);
    callback_leave(self, frame);
    return result;
}

static int trace_ready_callback(void *user, mtprof_profile *Py_UNUSED(profile))
{
    profile_object *self = user;
    callback_frame frame = callback_enter(self);
    PyObject *answer = PyObject_CallMethod((PyObject *)self, "_trace_ready", NULL);
    int result = answer == NULL ? keep_error(self) : 0;
    Py_XDECREF(answer);
    callback_leave(self, frame);
    return result;
}

int profile_tracers_stop(profile_object *self)
{
    uint32_t on = self->tracing;
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    self->tracing = 0;
    int status = (on & TRACER_COLLECTIONS) != 0 ? gc_spans_stop() : 0;
    PyErr_Fetch(&type, &value, &trace);
    if ((on & TRACER_CALLS) != 0 && call_tracer_stop() != 0) {
        status = -1;
    }
    if (type != NULL) {
        PyErr_Restore(type, value, trace); /* the first */
    }
    return status;
}

int profile_tracers_start(profile_object *self)
{
    uint32_t off = self->tracers & ~self->tracing;
    self->tracing |= off; /* set before the start, so that a stop follows whatever happens */
    if (((off & TRACER_CALLS) != 0 && call_tracer_start() != 0) ||
        ((off & TRACER_COLLECTIONS) != 0 && gc_spans_start() != 0)) {
        PyObject *type = NULL, *value = NULL, *trace = NULL;
        PyErr_Fetch(&type, &value, &trace);
        (void)profile_tracers_stop(self);
        PyErr_Restore(type, value, trace);
        return -1;
    }
    return 0;
}

static int observer_callback(void *user, mtprof_profile *Py_UNUSED(profile),
                             enum mtprof_observe event)
{
    profile_object *self = user;
    callback_frame frame = callback_enter(self);
    bool starts = event == MTPROF_OBSERVE_START;
    int result = !starts && profile_tracers_stop(self) != 0 ? keep_error(self) : 0;
    PyObject *answer = PyObject_CallMethod((PyObject *)self, "_observe", "i", (int)event);
    /* Frames that are open begin before the step does. */
    if (answer == NULL || (starts && profile_tracers_start(self) != 0)) {
        result = keep_error(self);
    }
    Py_XDECREF(answer);
    callback_leave(self, frame);
    return result;
}

/* Cut so that it stays UTF-8. */
static void copy_cut(char *to, size_t size, const char *from, size_t length)
{
    if (length >= size) {
        length = size - 1;
        while (length > 0 && ((unsigned char)from[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    memcpy(to, from, length);
    to[length] = '\0';
}

int profile_trace_id_callback(void *user, char *text, size_t size)
{
    profile_object *self = user;
    callback_frame frame = callback_enter(self);
    int result = 0;
    Py_ssize_t length = 0;
    const char *utf8 = NULL;
    PyObject *answer = PyObject_CallMethod((PyObject *)self, "_custom_trace_id", NULL);
    if (answer != NULL && !PyUnicode_Check(answer)) {
        PyErr_Format(PyExc_TypeError, "custom_trace_id_callback must return a str, not %R", answer);
    } else if (answer != NULL) {
        utf8 = PyUnicode_AsUTF8AndSize(answer, &length);
    }
    if (utf8 != NULL) {
        copy_cut(text, size, utf8, (size_t)length);
    } else {
        result = keep_error(self);
    }
    Py_XDECREF(answer);
    callback_leave(self, frame);
    return result;
}

/* With or without the GIL, on any thread (PO3). Without memory the warning is lost. */
static void warning_callback(void *user, mtprof_status status, const char *message)
{
    profile_object *self = user;
    size_t length = strlen(message);
    queued_warning *entry = malloc(sizeof *entry + length + 1);
    if (entry == NULL) {
        return;
    }
    entry->next = NULL;
    entry->status = status;
    memcpy(entry->message, message, length + 1);
    pthread_mutex_lock(&self->lock);
    if (self->last != NULL) {
        self->last->next = entry;
    } else {
        self->first = entry;
    }
    self->last = entry;
    pthread_mutex_unlock(&self->lock);
}

static queued_warning *warnings_take(profile_object *self)
{
    if (self->pid != getpid()) {
        /* A child of fork(): the helper thread may have held the lock, and is not here. What it
         * queued is the parent's. */
        self->pid = getpid();
        self->first = self->last = NULL;
        pthread_mutex_init(&self->lock, NULL);
        return NULL;
    }
    pthread_mutex_lock(&self->lock);
    queued_warning *first = self->first;
    self->first = self->last = NULL;
    pthread_mutex_unlock(&self->lock);
    return first;
}

int profile_warnings_emit(profile_object *self)
{
    int result = 0;
    queued_warning *entry = warnings_take(self);
    while (entry != NULL) {
        queued_warning *next = entry->next;
        PyObject *type = NULL, *value = NULL, *trace = NULL;
        PyErr_Fetch(&type, &value, &trace);
        PyObject *answer = PyObject_CallMethod((PyObject *)self, "_warn", "is", (int)entry->status,
                                               entry->message);
        Py_XDECREF(answer);
        result = answer == NULL ? -1 : result;
        if (type != NULL) {
            if (answer == NULL) {
                PyErr_WriteUnraisable((PyObject *)self);
            }
            PyErr_Restore(type, value, trace);
        }
        free(entry);
        entry = next;
    }
    return result;
}

void profile_warnings_drop(profile_object *self)
{
    queued_warning *entry = warnings_take(self);
    while (entry != NULL) {
        queued_warning *next = entry->next;
        free(entry);
        entry = next;
    }
}

void profile_callbacks_set(mtprof_profile_config *config, bool schedule, bool trace_id)
{
    config->schedule_callback = schedule ? schedule_callback : NULL;
    config->trace_id = trace_id ? profile_trace_id_callback : NULL;
    config->on_trace_ready = trace_ready_callback;
    config->observer = observer_callback;
    config->on_warning = warning_callback;
}
