/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of autograd that the dispatcher calls. Declared here, defined in
 * src/mindtorch/autograd.
 *
 * A leaf op whose tensors need gradients goes:
 *     mt__autograd_before   refuses forbidden writes, keeps what the op is about to overwrite
 *     the op itself
 *     mt__autograd_after    makes the node and ties the results to it
 */
#ifndef MINDTORCH_DISPATCH_AUTOGRAD_HOOK_H
#define MINDTORCH_DISPATCH_AUTOGRAD_HOOK_H

#include "mindtorch/dispatch/call.h"
#include "mindtorch/trace/op_trace.h"

/* What is carried from before to after. */
typedef struct mt__recording {
    mt_tensor *kept_self; /* a copy of what an in-place op overwrites, if the formula needs it */
    mt_node *node;        /* the autograd part's */
} mt__recording;

/* Before an op that writes its first argument, whenever grad mode is on: a leaf that requires a
 * gradient, or a view of one, must not be written. Also before every op that will be recorded: then
 * `record` is true. An in-place op with record false still may write into a view whose base needs a
 * gradient: see what has to be done for the base. */
int mt__autograd_before(mt__call *call, bool record, mt__recording *recording);

/* After success of an op that is recorded: makes the node, ties results. On failure the results
 * are released by the dispatcher. */
int mt__autograd_after(mt__call *call, mt__recording *recording);

/* A tensor's gradient, as it is reported to the profiler; false: there is none, or another thread
 * is changing it. */
bool mt__autograd_gradient(const mt_tensor *tensor, mt__trace_ref *ref);

/* After failure of the op: drops what `recording` holds. */
void mt__autograd_drop(mt__recording *recording);

#endif /* MINDTORCH_DISPATCH_AUTOGRAD_HOOK_H */
