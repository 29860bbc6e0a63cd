/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of layer_norm and batch_norm (norm_loops.h), compiled once for each instruction set.
 * Sums are added in blocks (reduce_loops.h, RL1).
 */
#include "kernels/isa/rows/norm_loops.h"

#include "base/compiler.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    LANES = 64,
    BLOCK = 4096
};

#define NORM_T          float
#define NORM_NAME(part) f32_##part
#include "kernels/isa/rows/norm_body.def"

#define NORM_T          double
#define NORM_NAME(part) f64_##part
#include "kernels/isa/rows/norm_body.def"

#define NORM_I_LOOPS(type)                                              \
    {                                                                   \
        .layer = type##_layer, .layer_backward = type##_layer_backward, \
        .layer_params = type##_layer_params, .affine = type##_affine,   \
        .affine_columns = type##_affine_columns, .dots = type##_dots,   \
        .dots_columns = type##_dots_columns, .grads = type##_grads,     \
        .grads_columns = type##_grads_columns,                          \
    }

const mt__norm_loops MT_ISA(mt__norms)[MT_DTYPE_COUNT] = {
    [MT_DTYPE_F32] = NORM_I_LOOPS(f32),
    [MT_DTYPE_F64] = NORM_I_LOOPS(f64),
};
