/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that users registered (op.h). Rows are made once and never freed.
 */
#ifndef MINDTORCH_DISPATCH_USER_OPS_H
#define MINDTORCH_DISPATCH_USER_OPS_H

#include "mindtorch/dispatch/call.h"

/* NULL: no op has this number (`index` counts users' ops from 0). */
const mt__op_row *mt__user_row(uint32_t index);
uint32_t mt__user_row_count(void);

/* MT_ETYPE if the results of a user's op do not match its schema. */
int mt__user_results_check(const mt__call *call);

#endif /* MINDTORCH_DISPATCH_USER_OPS_H */
