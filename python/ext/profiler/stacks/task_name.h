/* SPDX-License-Identifier: Apache-2.0
 */
#ifndef PYTHON_EXT_PROFILER_STACKS_TASK_NAME_H
#define PYTHON_EXT_PROFILER_STACKS_TASK_NAME_H

#include <Python.h>

/* The name of the running asyncio task, unique for each; NULL without an exception: none runs.
 */
PyObject *task_name(void);

#endif /* PYTHON_EXT_PROFILER_STACKS_TASK_NAME_H */
