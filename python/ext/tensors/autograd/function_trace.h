/* SPDX-License-Identifier: Apache-2.0
 *
 * What a profile shows of Function.apply(): an op with the class's name around what forward calls;
 * and of functions that Python makes of ops: one with their name around those.
 */
#ifndef PYTHON_EXT_TENSORS_AUTOGRAD_FUNCTION_TRACE_H
#define PYTHON_EXT_TENSORS_AUTOGRAD_FUNCTION_TRACE_H

#include "tensors/module/tensors_state.h"

#include <mtprof/op.h>

/* 0 while nothing records. `args` are those of apply(), a tuple; `graph`: it gets a sequence
 * number. Never fails: what cannot be shown is left out. Ended with mtprof_end(). */
mtprof_token function_trace_begin(const char *name, PyObject *args, bool graph);

#endif /* PYTHON_EXT_TENSORS_AUTOGRAD_FUNCTION_TRACE_H */
