/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of traced calls.
 */
#ifndef PYTHON_EXT_PROFILER_STACKS_BUILTIN_NAMES_H
#define PYTHON_EXT_PROFILER_STACKS_BUILTIN_NAMES_H

#include "profiler/profiler_state.h"

/* The site of a built-in function; NULL: it is not shown (ours, or called by us: CTR4 of
 * call_tracer.c). It lives as long as the process. */
mtprof_site *builtin_site(PyObject *function, bool called_by_us);
/* Functions of this module are not shown. */
void builtin_names_hide(PyObject *module);

/* "package/file.py(12): function" into text, cut to size. Returns the length. */
size_t call_name(PyCodeObject *code, char *text, size_t size);
/* The first argument of a call that has begun: a method's self. A new reference or NULL. */
PyObject *call_first_argument(PyFrameObject *frame);

#endif /* PYTHON_EXT_PROFILER_STACKS_BUILTIN_NAMES_H */
