/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of a reduction:
 *
 *     dims ─► a bit for each reduced one ─► result's shape ─► kernel, with the result seen in the
 *     input's dimensions (stride 0 where it is reduced)
 *
 *   RP1  Kernels get a 0-d tensor as one dimension of size 1.
 *   RP2  Kernels never get an empty input: the op itself handles the reduction of no elements.
 */
#ifndef MINDTORCH_OPS_REDUCE_REDUCTION_PLAN_H
#define MINDTORCH_OPS_REDUCE_REDUCTION_PLAN_H

#include "mindtorch/ops/op_support.h"

/* The reduced dimensions that argument `i` (int[]?, int[] or int?) names; none, or an empty list,
 * means all of them. */
int mt__reduced_dims(const mt__call *call, uint32_t i, const mt_tensor *self, uint32_t *mask);

/* The result's shape: reduced dimensions are gone, or 1 with keepdim. */
mt__shape mt__reduced_shape(const mt_tensor *self, uint32_t mask, bool keepdim);

/* How many elements are reduced to one. */
int64_t mt__reduced_count(const mt_tensor *self, uint32_t mask);

/* One call of a kernel: outputs are tensors of the reduced shape, with or without kept dimensions;
 * up to two of them. NULL: absent. */
typedef struct mt__reduction {
    mt_kernel kernel; /* REDUCE or VAR_MEAN */
    uint16_t code;
    uint32_t mask;
    uint32_t n_outputs;
    mt_tensor *outputs[2];
    mt_tensor *input;
    const mt_scalar *number; /* NULL: none */
} mt__reduction;

/* Launches it. Outputs of a reduction of nothing are filled with `of_nothing`. */
int mt__reduction_run(mt__call *call, const mt__reduction *what, mt_scalar of_nothing);

/* New result 0 of `dtype`, the REDUCE of `input` (already of the right type) over `mask`. */
int mt__reduction_result(mt__call *call, mt_reduce code, mt_tensor *input, mt_dtype dtype,
                         uint32_t mask, bool keepdim, mt_scalar of_nothing);

/* One element of each row along `dim`, with its place: REDUCE_INDEX or RANK. The outputs are of the
 * reduced shape, with or without the kept dimension; values may be NULL. The input has at least one
 * dimension and one element. */
typedef struct mt__row_reduction {
    mt_kernel kernel;
    uint16_t code;
    const mt_tensor *values;
    const mt_tensor *indices;
    const mt_tensor *input;
    uint32_t dim;
    int64_t k; /* RANK */
} mt__row_reduction;

int mt__row_reduction_run(mt__call *call, const mt__row_reduction *what);

#endif /* MINDTORCH_OPS_REDUCE_REDUCTION_PLAN_H */
