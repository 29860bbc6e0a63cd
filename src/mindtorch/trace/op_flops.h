/* SPDX-License-Identifier: Apache-2.0
 *
 * Floating-point operations of a call.
 */
#ifndef MINDTORCH_TRACE_OP_FLOPS_H
#define MINDTORCH_TRACE_OP_FLOPS_H

#include <mindtorch/value.h>

/* rule: host_flops of the row (flags >> 24). 0 where the formula does not apply. */
uint64_t mt__flops_of(uint32_t rule, const mt_value *args, uint32_t n_args);

#endif /* MINDTORCH_TRACE_OP_FLOPS_H */
