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
#define STEP_ABS(x)     fabsf(x)
#include "kernels/isa/optimizer_body.def"
#include "kernels/isa/optimizer_more.def"

#define STEP_T          double
#define STEP_NAME(part) f64_##part
#define STEP_SQRT(x)    sqrt(x)
#define STEP_ABS(x)     fabs(x)
#include "kernels/isa/optimizer_body.def"
#include "kernels/isa/optimizer_more.def"

const mt__step_loops MT_ISA(mt__steps)[MT_DTYPE_COUNT] = {
    [MT_DTYPE_F32] = {f32_sgd, f32_adam, f32_rmsprop, f32_adagrad, f32_adadelta, f32_adamax,
                      f32_nadam, f32_radam, f32_asgd, f32_rprop},
    [MT_DTYPE_F64] = {f64_sgd, f64_adam, f64_rmsprop, f64_adagrad, f64_adadelta, f64_adamax,
                      f64_nadam, f64_radam, f64_asgd, f64_rprop},
};
