/* SPDX-License-Identifier: Apache-2.0
 *
 * Autocast in the dispatcher (autocast.h of the public headers).
 *
 *   AC1  Inside an op that has a rule, autocast is off: what the op calls takes its arguments as
 *        they are. Casts are ops, so they are profiled and have gradients.
 *   AC2  mt__thread.autocast has a bit for each type of device; 0 costs a call one test.
 */
#ifndef MINDTORCH_DISPATCH_AUTOCAST_IMPL_H
#define MINDTORCH_DISPATCH_AUTOCAST_IMPL_H

#include "mindtorch/dispatch/call.h"

/* With autocast on for some device: the type to which the call's arguments are cast; MT_DTYPE_NONE
 * where the row has no rule for their device. */
mt_dtype mt__autocast_type(const mt__op_row *row, const mt_value *args);

/* Casts and dispatches the same row again, as torch does: a profile shows both. */
int mt__autocast_run(mt__call *call);

#endif /* MINDTORCH_DISPATCH_AUTOCAST_IMPL_H */
