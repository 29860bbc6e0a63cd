/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of _mtprof.Profile share; profile_object.c says what it is, and PO1 to PO3.
 */
#ifndef PYTHON_EXT_PROFILER_PROFILE_PROFILE_OBJECT_H
#define PYTHON_EXT_PROFILER_PROFILE_PROFILE_OBJECT_H

#include "profiler/profiler_state.h"

#include <pthread.h>
#include <sys/types.h>

struct queued_warning;

typedef struct profile_object {
    PyObject ob_base;
    mtprof_profile *profile; /* NULL before _open(), and after close() */
    pid_t pid;               /* the process that made it */
    pthread_mutex_t lock;    /* of what follows up to `last` */
    struct queued_warning *first, *last;
    int calls;               /* of the library, under way (PO1) */
    int savers;              /* of them, those that read a session which must not go meanwhile */
    int changes;             /* of them, those that may end a session */
    const void *in_callback; /* the thread (PyThreadState) that runs a callback, or NULL */
    bool failed;             /* a callback's exception is kept (PO2) */
    bool with_stack;
    uint32_t tracers; /* enum tracer: wanted while a window is open */
    uint32_t muted;   /* activities that are switched off in every window */
    uint32_t tracing; /* of the tracers, those that this profile has switched on */
    struct profile_object *next_open, *before_open; /* all with a profile, see close_all() */
} profile_object;

static inline profile_object *profile_of(PyObject *object)
{
    return (profile_object *)object;
}

/* Fills in the callbacks of a configuration whose user is the object. */
void profile_callbacks_set(mtprof_profile_config *config, bool schedule, bool trace_id);
int profile_trace_id_callback(void *user, char *text, size_t size);

/* Switches the wanted tracers; what is on is known to them. -1: an exception, all of them are off.
 */
int profile_tracers_start(profile_object *self);
int profile_tracers_stop(profile_object *self);

/* Hands queued warnings to self._warn(status, message). -1: one of them became an exception; the
 * others are handed over all the same. */
int profile_warnings_emit(profile_object *self);
void profile_warnings_drop(profile_object *self);

/* Around each call of the library. begin: NULL with an exception where there is no profile. end:
 * None, or NULL with what the call or a callback raised, or what a warning became. */
mtprof_profile *profile_call_begin(profile_object *self);
PyObject *profile_call_end(profile_object *self, mtprof_status status);

/* Stops without a callback and frees, unless a call is under way. */
void profile_close(profile_object *self);

/* The methods of the type: start, step, stop and others (profile_calls.c). */
extern PyMethodDef profile_methods[];
extern PyGetSetDef profile_getset[];
PyObject *profile_open(PyObject *object, PyObject *args, PyObject *kwargs);

/* The six numbers of a schedule. -1: an exception. */
int profile_schedule_from(PyObject *tuple, mtprof_schedule *schedule);

#endif /* PYTHON_EXT_PROFILER_PROFILE_PROFILE_OBJECT_H */
