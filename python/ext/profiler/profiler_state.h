/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of mtprof._mtprof share: their types, and how statuses become exceptions.
 */
#ifndef PYTHON_EXT_PROFILER_PROFILER_STATE_H
#define PYTHON_EXT_PROFILER_PROFILER_STATE_H

#include "common/py_common.h"

#include <mtprof/mtprof.h>

/* The module's state; there is one (see py_common.h). Parts add their types here. */
typedef struct profiler_state {
    PyTypeObject *profile_type;         /* _mtprof.Profile: profile_type.c */
    PyTypeObject *flight_type;          /* _mtprof.Flight: flight_object.c */
    PyTypeObject *record_function_type; /* record_function_type.c */
    PyTypeObject *model_type;           /* _mtprof.Model: model_type.c */
    PyTypeObject *event_type;           /* FunctionEvent: event_object.c */
    PyTypeObject *average_type;         /* Row: average_rows.c */
} profiler_state;

/* Valid from the module's start to the end of the process. */
extern profiler_state profiler;

/*
 * Raises what a failed call of libmtprof means, with its message, and returns NULL: EINVAL
 * ValueError, ESTATE and EBUSY RuntimeError, ENOMEM MemoryError, EIO and ENOSPC OSError (with errno
 * and the path where there is one), ENOTSUP NotImplementedError, EFORMAT and EVERSION ValueError,
 * ECALLBACK what the callback raised (py_error_keep).
 */
PyObject *profiler_raise(mtprof_status status, const char *path);

/* A Python object for a model, which it owns and frees with its last user; also on failure (NULL).
 * model_type.c. */
PyObject *model_object_new(mtprof_model *model);
/* A progress callback: looks for signals now and then, so that an interrupt ends long work, and
 * calls a Python callable. `user` is a place (PyObject **) with the callable, or with NULL once
 * progress is no longer wanted; NULL: there is no callable. */
int model_progress(void *user, const char *what, uint64_t done, uint64_t total);

#endif /* PYTHON_EXT_PROFILER_PROFILER_STATE_H */
