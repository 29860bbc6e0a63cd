/* SPDX-License-Identifier: Apache-2.0
 *
 * Floating-point operations of a call, by the formulas of torch.profiler (seven ops).
 */
#ifndef MINDTORCH_TRACE_FLOPS_H
#define MINDTORCH_TRACE_FLOPS_H

#include <mindtorch/value.h>

/* Which formula an op has; torch counts these ops and no others. */
typedef enum mt__flops {
    MT_FLOPS_NONE,
    MT_FLOPS_ADD,
    MT_FLOPS_MUL,
    MT_FLOPS_MM,
    MT_FLOPS_ADDMM,
    MT_FLOPS_BMM,
    MT_FLOPS_BADDBMM,
    MT_FLOPS_CONV2D
} mt__flops;

/* rule: mt__flops of the row (flags >> 24). 0 where the formula does not apply. */
uint64_t mt__flops_of(uint32_t rule, const mt_value *args, uint32_t n_args);

#endif /* MINDTORCH_TRACE_FLOPS_H */
