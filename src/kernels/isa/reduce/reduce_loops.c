/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of reductions (reduce_loops.h), compiled once for each instruction set: fold_body.def
 * for each kind and type, and the two kinds that go over a block twice.
 */
#include "kernels/isa/reduce/reduce_loops.h"

#include "base/compiler.h"
#include "kernels/isa/pointwise/half_vectors.h"
#include "kernels/number/half.h"
#include "kernels/number/vector_math.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Four of the widest vectors; fewer where a lane is wider than the element. */
#define FOLD_LANES ((int64_t)((sizeof(FOLD_IN) == sizeof(FOLD_LANE) ? 256 : 128) / sizeof(FOLD_IN)))
enum {
    FEW_LANES = 16 /* of floating-point extremes */
};

#define FOLD_I_NAME(op, type, part)  FOLD_I_NAME2(op, type, part)
#define FOLD_I_NAME2(op, type, part) op##_##type##_##part

/* ---- names for all types ---- */

#define FOLD_I_PICK(T, type)             \
    MT_INLINE T larger_##type(T a, T b)  \
    {                                    \
        return b > a ? b : a;            \
    }                                    \
    MT_INLINE T smaller_##type(T a, T b) \
    {                                    \
        return b < a ? b : a;            \
    }
FOLD_I_PICK(uint8_t, u8)
FOLD_I_PICK(int32_t, i32)
FOLD_I_PICK(int64_t, i64)

/* clang-format off */
#define FOLD_I_CHOOSE(a, name) \
    _Generic((a), uint8_t: name##_u8, int32_t: name##_i32, int64_t: name##_i64)
#define LARGER(a, b)  FOLD_I_CHOOSE(a, larger)((a), (b))
#define SMALLER(a, b) FOLD_I_CHOOSE(a, smaller)((a), (b))
#define ABSOLUTE(x)   _Generic((x), float: fabsf, double: fabs)(x)
#define POWER(x)      _Generic((x), float: power_f32, double: pow)(ABSOLUTE(x), p)
#define EXP(x)        _Generic((x), float: mt__exp_f32, double: mt__exp_f64)(x)
#define LIKE(x, y)    _Generic((x), float: (float)(y), double: (double)(y))
/* clang-format on */

MT_INLINE float power_f32(float x, double p)
{
    return powf(x, (float)p);
}

/* A float total that is infinite or NaN may be finite in double. Below the second number squares
 * and powers may have been subnormal: a block of them makes less than 1e-7 of it. */
#define BEYOND(total)         ((uint32_t) !(fabsf(total) <= FLT_MAX))
#define BEYOND_OR_TINY(total) ((uint32_t) !((total) >= 1e-27F && (total) <= FLT_MAX))

#define PLUS(a, b)  ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define ITSELF(x)   (x)

/* ---- floating point ---- */

#define FOLD_KEEP(cell, lane) ((cell).real += (double)(lane))
#define FOLD_TWO              PLUS
#define FOLD_FIRST            0
#define FOLD_CHECK            BEYOND

#define FOLD_OP     sum
#define FOLD_ONE(x) ITSELF(x)
#include "kernels/isa/reduce/fold_real.def"

#ifdef MT_HALF_WIDTH
#    define HALF_LANES ((int64_t)64) /* those of float */
#    define HALF       f16
#    include "kernels/isa/reduce/fold_half.def"
#    define HALF bf16
#    include "kernels/isa/reduce/fold_half.def"
#    define FOLD_I_HALVES(op) \
        [MT_DTYPE_F16] = FOLD_I_ROW(op, f16), [MT_DTYPE_BF16] = FOLD_I_ROW(op, bf16),
#else
#    define FOLD_I_HALVES(op)
#endif

#define FOLD_OP     sum_abs
#define FOLD_ONE(x) ABSOLUTE(x)
#include "kernels/isa/reduce/fold_real.def"

#undef FOLD_CHECK
#define FOLD_CHECK BEYOND_OR_TINY

#define FOLD_OP     sum_squares
#define FOLD_ONE(x) ((x) * (x))
#include "kernels/isa/reduce/fold_real.def"

#define FOLD_OP     sum_powers
#define FOLD_ONE(x) POWER(x)
#include "kernels/isa/reduce/fold_real.def"

/* Distances from p, their squares and exponentials. */
#define FOLD_ROW_ONLY
#undef FOLD_CHECK
#define FOLD_CHECK  BEYOND
#define FOLD_OP     offsets
#define FOLD_ONE(x) ((x)-LIKE(x, p))
#include "kernels/isa/reduce/fold_real.def"

#undef FOLD_CHECK
#define FOLD_CHECK BEYOND_OR_TINY

#define FOLD_OP     distances
#define FOLD_ONE(x) (((x)-LIKE(x, p)) * ((x)-LIKE(x, p)))
#include "kernels/isa/reduce/fold_real.def"

#undef FOLD_CHECK
#define FOLD_OP     exps
#define FOLD_ONE(x) EXP((x)-LIKE(x, p))
#include "kernels/isa/reduce/fold_real.def"
#undef FOLD_ROW_ONLY

#undef FOLD_KEEP
#undef FOLD_TWO
#undef FOLD_FIRST

#define FOLD_OP               prod
#define FOLD_ONE(x)           ITSELF(x)
#define FOLD_TWO              TIMES
#define FOLD_FIRST            1
#define FOLD_KEEP(cell, lane) ((cell).real *= (double)(lane))
#include "kernels/isa/reduce/fold_real.def"
#undef FOLD_TWO
#undef FOLD_FIRST
#undef FOLD_KEEP

#define FOLD_BETTER >

#define FOLD_OP     max
#define FOLD_FIRST  (-INFINITY)
#define FOLD_MAP(x) ITSELF(x)
#include "kernels/isa/reduce/fold_min_max.def"
#undef FOLD_FIRST

#define FOLD_OP     max_abs
#define FOLD_FIRST  0
#define FOLD_MAP(x) ABSOLUTE(x)
#include "kernels/isa/reduce/fold_min_max.def"
#undef FOLD_FIRST
#undef FOLD_BETTER

#define FOLD_BETTER <
#define FOLD_FIRST  INFINITY

#define FOLD_OP     min
#define FOLD_MAP(x) ITSELF(x)
#include "kernels/isa/reduce/fold_min_max.def"

#define FOLD_OP     min_abs
#define FOLD_MAP(x) ABSOLUTE(x)
#include "kernels/isa/reduce/fold_min_max.def"
#undef FOLD_FIRST
#undef FOLD_BETTER

/* ---- integers: sums and products in 64 bits, wrapping ---- */

#define FOLD_WIDE      uint32_t /* eight bytes fit */
#define FOLD_LANE_BYTE uint64_t
#define FOLD_LANE_I32  uint64_t
#define FOLD_LANE_I64  uint64_t

#define FOLD_OP               sum
#define FOLD_TWO              PLUS
#define FOLD_FIRST_BOOL       0
#define FOLD_FIRST_U8         0
#define FOLD_FIRST_I32        0
#define FOLD_FIRST_I64        0
#define FOLD_KEEP(cell, lane) ((cell).integer = (int64_t)((uint64_t)(cell).integer + (lane)))
#include "kernels/isa/reduce/fold_integer.def"
#undef FOLD_WIDE

#define FOLD_WIDE             uint64_t
#define FOLD_OP               prod
#define FOLD_TWO              TIMES
#define FOLD_FIRST_BOOL       1
#define FOLD_FIRST_U8         1
#define FOLD_FIRST_I32        1
#define FOLD_FIRST_I64        1
#define FOLD_KEEP(cell, lane) ((cell).integer = (int64_t)((uint64_t)(cell).integer * (lane)))
#include "kernels/isa/reduce/fold_integer.def"
#undef FOLD_WIDE
#undef FOLD_LANE_BYTE
#undef FOLD_LANE_I32
#undef FOLD_LANE_I64

#define FOLD_WIDE      uint8_t
#define FOLD_LANE_BYTE uint8_t
#define FOLD_LANE_I32  int32_t
#define FOLD_LANE_I64  int64_t

#define FOLD_OP               max
#define FOLD_TWO              LARGER
#define FOLD_FIRST_BOOL       0
#define FOLD_FIRST_U8         0
#define FOLD_FIRST_I32        INT32_MIN
#define FOLD_FIRST_I64        INT64_MIN
#define FOLD_KEEP(cell, lane) ((cell).integer = larger_i64((cell).integer, (int64_t)(lane)))
#include "kernels/isa/reduce/fold_integer.def"

#define FOLD_OP               min
#define FOLD_TWO              SMALLER
#define FOLD_FIRST_BOOL       1
#define FOLD_FIRST_U8         UINT8_MAX
#define FOLD_FIRST_I32        INT32_MAX
#define FOLD_FIRST_I64        INT64_MAX
#define FOLD_KEEP(cell, lane) ((cell).integer = smaller_i64((cell).integer, (int64_t)(lane)))
#include "kernels/isa/reduce/fold_integer.def"

/* ---- truth: any type ---- */

#define FOLD_LANE   uint8_t
#define FOLD_PART   uint8_t
#define FOLD_MAP(x) ((uint8_t)((x) != 0))

#define FOLD_OP               all
#define FOLD_FIRST            1
#define FOLD_JOIN(a, b)       ((uint8_t)((a) & (b)))
#define FOLD_KEEP(cell, lane) ((cell).integer &= (lane))
#include "kernels/isa/reduce/fold_any.def"

#define FOLD_OP               any
#define FOLD_FIRST            0
#define FOLD_JOIN(a, b)       ((uint8_t)((a) | (b)))
#define FOLD_KEEP(cell, lane) ((cell).integer |= (lane))
#include "kernels/isa/reduce/fold_any.def"
#undef FOLD_LANE
#undef FOLD_PART
#undef FOLD_MAP

#define FOLD_LANE             uint32_t /* a block has fewer elements */
#define FOLD_PART             uint32_t
#define FOLD_MAP(x)           ((uint32_t)((x) != 0))
#define FOLD_OP               count
#define FOLD_FIRST            0
#define FOLD_JOIN(a, b)       ((a) + (b))
#define FOLD_KEEP(cell, lane) ((cell).integer += (lane))
#include "kernels/isa/reduce/fold_any.def"
#undef FOLD_LANE
#undef FOLD_PART
#undef FOLD_MAP

/* ---- twice over a block ---- */

#define TWICE_DOUBTS           BEYOND_OR_TINY
#define TWICE_IN               float
#define TWICE_NAME(kind, part) kind##_f32_##part
#include "kernels/isa/reduce/twice_body.def"
#undef TWICE_DOUBTS

#define TWICE_IN               double
#define TWICE_NAME(kind, part) kind##_f64_##part
#include "kernels/isa/reduce/twice_body.def"

/* ---- the table ---- */

#define FOLD_I_ROW(op, type)                     \
    {                                            \
        op##_##type##_row, op##_##type##_columns \
    }
#define FOLD_I_REAL(op) [MT_DTYPE_F32] = FOLD_I_ROW(op, f32), [MT_DTYPE_F64] = FOLD_I_ROW(op, f64)
#define FOLD_I_WHOLE(op) \
    [MT_DTYPE_I32] = FOLD_I_ROW(op, i32), [MT_DTYPE_I64] = FOLD_I_ROW(op, i64), FOLD_I_REAL(op)
#define FOLD_I_EACH(op) \
    [MT_DTYPE_BOOL] = FOLD_I_ROW(op, b8), [MT_DTYPE_U8] = FOLD_I_ROW(op, u8), FOLD_I_WHOLE(op)
#define FOLD_I_BYTES(op) \
    [MT_DTYPE_BOOL] = FOLD_I_ROW(op, b8), [MT_DTYPE_U8] = FOLD_I_ROW(op, b8), FOLD_I_WHOLE(op)

const mt__fold_table MT_ISA(mt__folds)[1] = {{
    .of =
        {
            [MT_FOLD_SUM] = {FOLD_I_HALVES(sum) FOLD_I_EACH(sum)},
            [MT_FOLD_PROD] = {FOLD_I_EACH(prod)},
            [MT_FOLD_MAX] = {FOLD_I_EACH(max)},
            [MT_FOLD_MIN] = {FOLD_I_EACH(min)},
            [MT_FOLD_MAX_ABS] = {FOLD_I_REAL(max_abs)},
            [MT_FOLD_MIN_ABS] = {FOLD_I_REAL(min_abs)},
            [MT_FOLD_ALL] = {FOLD_I_BYTES(all)},
            [MT_FOLD_ANY] = {FOLD_I_BYTES(any)},
            [MT_FOLD_COUNT] = {FOLD_I_BYTES(count)},
            [MT_FOLD_SUM_ABS] = {FOLD_I_REAL(sum_abs)},
            [MT_FOLD_SUM_SQUARES] = {FOLD_I_REAL(sum_squares)},
            [MT_FOLD_SUM_POWERS] = {FOLD_I_REAL(sum_powers)},
            [MT_FOLD_LOGSUMEXP] = {FOLD_I_REAL(logsumexp)},
            [MT_FOLD_MOMENTS] = {FOLD_I_REAL(moments)},
        },
}};
