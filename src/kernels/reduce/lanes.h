/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that work along one dimension (softmax, running sums, the place of the largest): a lane
 * is all elements along it, the other dimensions give the beginnings of lanes. There are two forms:
 *
 *      rows       the elements of a lane lie side by side in all tensors: one lane a call
 *      columns    lanes lie side by side in all tensors: up to MT_LANES_WIDTH of them a call
 *
 * Many short rows are transposed into columns in a small buffer, so that vectors hold several lanes
 * instead of one call handling a few elements.
 *
 * Tensors of any other layout are copied to contiguous memory first, and results are copied back.
 */
#ifndef KERNELS_REDUCE_LANES_H
#define KERNELS_REDUCE_LANES_H

#include <mindtorch/backend.h>
#include <mindtorch/tensor.h>

#include <stdbool.h>

enum {
    MT_LANES_TENSORS = 3,
    MT_LANES_WIDTH = 256,
    MT_LANES_SHORT = 32 /* longer rows are not turned */
};

/* One call: `width` lanes of `length` elements; data[i] is the first element of tensor i, whose
 * elements along a lane are step[i] apart. In the form of rows width is 1. */
typedef struct mt__lane_block {
    void *data[MT_LANES_TENSORS];
    int64_t step[MT_LANES_TENSORS];
    int64_t length;
    int64_t width;
} mt__lane_block;

typedef void mt__lane_fn(const mt__lane_block *block);

typedef struct mt__lanes_job {
    uint32_t n_outs;    /* the first tensors are written */
    uint32_t n_tensors; /* the last one has the full size along the dimension */
    int64_t grain;      /* elements that are worth another thread */
    bool turns_short;   /* short rows may become columns */
    mt__lane_fn *row;
    mt__lane_fn *columns;
} mt__lanes_job;

/* Absent tensors have n_dims -1; they get data NULL. Outputs may have size 1 along `dim`. */
int mt__lanes_run(const mt__lanes_job *job, const mt_array *tensors, int64_t dim);

#endif /* KERNELS_REDUCE_LANES_H */
