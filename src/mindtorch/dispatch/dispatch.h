/* SPDX-License-Identifier: Apache-2.0
 *
 * The function through which every op is called.
 *
 *     args ─► kinds checked, device found ─► profiler hook begins ─► autograd: before
 *          ─► run (leaf: kernels; composite: other ops) ─► version bump ─► autograd: after
 *          ─► profiler hook ends
 *
 * These are for the typed functions, whose arguments are complete (a value for each parameter).
 */
#ifndef MINDTORCH_DISPATCH_DISPATCH_H
#define MINDTORCH_DISPATCH_DISPATCH_H

#include "mindtorch/dispatch/op_row.h"

/* results: row->n_results values; all NONE on failure. */
int mt__dispatch(const mt__op_row *row, const mt_value *args, mt_value *results);

/* The same, with the results as C types. Outputs are NULL or zero on failure. */
int mt__dispatch_nothing(const mt__op_row *row, const mt_value *args);
int mt__dispatch_tensor(const mt__op_row *row, const mt_value *args, mt_tensor **out);
int mt__dispatch_tensors(const mt__op_row *row, const mt_value *args, mt_tensor **const *outs);
int mt__dispatch_value(const mt__op_row *row, const mt_value *args, mt_value *out);
int mt__dispatch_bool(const mt__op_row *row, const mt_value *args, bool *out);

/* Row of an op number, ours or a user's; NULL for numbers that are neither. */
const mt__op_row *mt__op_row_of(mt_op op);

#endif /* MINDTORCH_DISPATCH_DISPATCH_H */
