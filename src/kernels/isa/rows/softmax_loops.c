/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax along a lane (lane_loops.h), compiled once for each instruction set. The largest element
 * is taken off first, so that no exponential overflows; sums are added in blocks (reduce_loops.h,
 * RL1).
 */
#include "base/compiler.h"
#include "kernels/isa/reduce/lane_loops.h"
#include "kernels/number/vector_math.h"

#include <math.h>

enum {
    LANES = 64,
    BLOCK = 4096,
    SHORT = 64 /* a multiple of 16 */
};

/* e^x for x <= 0, where what is below the normal numbers may be 0. */
MT_INLINE float exp_down_f32(float x)
{
    float y = -87.0F > x ? -87.0F : x; /* NaN stays */
    float e = mt__exp_near_f32(y);
    return x < -87.0F ? 0 : e;
}

#define SOFT_T           float
#define SOFT_NAME(part)  f32_##part
#define SOFT_EXP(x)      mt__exp_f32(x)
#define SOFT_EXP_DOWN(x) exp_down_f32(x)
#include "kernels/isa/rows/softmax_body.def"

#define SOFT_T           double
#define SOFT_NAME(part)  f64_##part
#define SOFT_EXP(x)      mt__exp_f64(x)
#define SOFT_EXP_DOWN(x) mt__exp_f64(x)
#include "kernels/isa/rows/softmax_body.def"

#define SOFT_I_TYPES(kind)                                         \
    {                                                              \
        [MT_DTYPE_F32] = {f32_##kind##_row, f32_##kind##_columns}, \
        [MT_DTYPE_F64] = {f64_##kind##_row, f64_##kind##_columns}, \
    }

const mt__lane_table MT_ISA(mt__softmax_loops)[1] = {
    {.of = {SOFT_I_TYPES(softmax), SOFT_I_TYPES(log_softmax)}},
};

const mt__lane_table MT_ISA(mt__softmax_backward_loops)[1] = {
    {.of = {SOFT_I_TYPES(softmax_backward), SOFT_I_TYPES(log_softmax_backward)}},
};
