/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of kernels along a dimension (lanes.h), made for each instruction set by
 * softmax_loops.c, running_loops.c and extreme_loops.c.
 */
#ifndef KERNELS_ISA_REDUCE_LANE_LOOPS_H
#define KERNELS_ISA_REDUCE_LANE_LOOPS_H

#include "kernels/isa/isa.h"
#include "kernels/reduce/lanes.h"

#include <mindtorch/dtype.h>

/* Both NULL where there is nothing for a type. */
typedef struct mt__lane_loops {
    mt__lane_fn *row;
    mt__lane_fn *columns;
} mt__lane_loops;

typedef struct mt__lane_table {
    mt__lane_loops of[2][MT_DTYPE_COUNT]; /* by code and type */
} mt__lane_table;

/* Arrays of one, so that MT_ISA_PICK() gives a pointer. */
#define MT_LANE_TABLE(name)                     \
    extern const mt__lane_table name##_base[1]; \
    extern const mt__lane_table name##_v3[1];   \
    extern const mt__lane_table name##_v4[1]

/* out, in. Code 0 softmax, 1 log_softmax. */
MT_LANE_TABLE(mt__softmax_loops);
/* grad_in, grad, out of forward. */
MT_LANE_TABLE(mt__softmax_backward_loops);
/* out, in. Code 0 sums, 1 products; out may be in. */
MT_LANE_TABLE(mt__running_loops);
/* values?, indices, in. Code 0 largest, 1 smallest. */
MT_LANE_TABLE(mt__extreme_loops);

#endif /* KERNELS_ISA_REDUCE_LANE_LOOPS_H */
