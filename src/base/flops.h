/* SPDX-License-Identifier: Apache-2.0
 *
 * Floating-point operations of a call from the sizes of its inputs, by the formulas of
 * torch.profiler: integer arithmetic, without broadcasting and without the addition of a bias.
 */
#ifndef BASE_FLOPS_H
#define BASE_FLOPS_H

#include <stdint.h>

/* Which formula an op has; torch counts these ops and no others. */
typedef enum mtb_flops {
    MTB_FLOPS_NONE,
    MTB_FLOPS_ADD,
    MTB_FLOPS_MUL,
    MTB_FLOPS_MM,
    MTB_FLOPS_ADDMM,
    MTB_FLOPS_BMM,
    MTB_FLOPS_BADDBMM,
    MTB_FLOPS_CONV2D
} mtb_flops;

enum {
    MTB_FLOPS_INPUTS = 7 /* that formulas look at */
};

/* An input: the sizes of a tensor, or a list of integers. Neither: n_sizes and n_integers are 0. */
typedef struct mtb_flops_input {
    const int64_t *sizes, *integers;
    uint32_t n_sizes, n_integers;
} mtb_flops_input;

/* 0 where the formula does not apply. */
uint64_t mtb_count_flops(mtb_flops rule, const mtb_flops_input *inputs, uint32_t n_inputs);

#endif /* BASE_FLOPS_H */
