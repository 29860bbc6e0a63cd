/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer steps (optimizer_loops.h), compiled once for each instruction set.
 */
#include "kernels/isa/optimizer_loops.h"

#include "base/compiler.h"

#include <math.h>

#define STEP_T          float
#define STEP_NAME(part) f32_##part
#define STEP_SQRT(x)    sqrtf(x)
#include "kernels/isa/optimizer_body.def"

#define STEP_T          double
#define STEP_NAME(part) f64_##part
#define STEP_SQRT(x)    sqrt(x)
#include "kernels/isa/optimizer_body.def"

const mt__step_loops MT_ISA(mt__steps)[MT_DTYPE_COUNT] = {
    [MT_DTYPE_F32] = {f32_sgd, f32_adam, f32_rmsprop, f32_adagrad},
    [MT_DTYPE_F64] = {f64_sgd, f64_adam, f64_rmsprop, f64_adagrad},
};
