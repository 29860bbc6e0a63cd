/* SPDX-License-Identifier: Apache-2.0
 *
 * Floating-point operations of a call from the sizes of its inputs, by the formulas of
 * torch.profiler: integer arithmetic, without broadcasting and without the addition of a bias.
 */
#ifndef HOSTS_FLOPS_H
#define HOSTS_FLOPS_H

#include <stdbool.h>
#include <stdint.h>

/* Which formula an op has; torch counts these ops and no others. */
typedef enum host_flops {
    HOST_FLOPS_NONE,
    HOST_FLOPS_ADD,
    HOST_FLOPS_MUL,
    HOST_FLOPS_MM,
    HOST_FLOPS_ADDMM,
    HOST_FLOPS_BMM,
    HOST_FLOPS_BADDBMM,
    HOST_FLOPS_CONV2D
} host_flops;

enum {
    HOST_FLOPS_INPUTS = 7 /* that formulas look at */
};

/* An input: the sizes of a tensor, or a list of integers. Neither: n_sizes and n_integers are 0. */
typedef struct host_flops_input {
    const int64_t *sizes, *integers;
    uint32_t n_sizes, n_integers;
} host_flops_input;

/* How many inputs the formula looks at. */
static inline uint32_t host_flops_inputs(host_flops rule)
{
    static const uint8_t counts[] = {
        [HOST_FLOPS_NONE] = 0,    [HOST_FLOPS_ADD] = 1,
        [HOST_FLOPS_MUL] = 1,     [HOST_FLOPS_MM] = 2,
        [HOST_FLOPS_ADDMM] = 3,   [HOST_FLOPS_BMM] = 2,
        [HOST_FLOPS_BADDBMM] = 3, [HOST_FLOPS_CONV2D] = HOST_FLOPS_INPUTS};
    return counts[rule];
}

/* Whether the formula is the number of elements of the first input, which a host may know without
 * multiplying its sizes. */
static inline bool host_flops_are_elements(host_flops rule)
{
    return rule == HOST_FLOPS_ADD || rule == HOST_FLOPS_MUL;
}

/* 0 where the formula does not apply. */
uint64_t host_count_flops(host_flops rule, const host_flops_input *inputs, uint32_t n_inputs);

#endif /* HOSTS_FLOPS_H */
