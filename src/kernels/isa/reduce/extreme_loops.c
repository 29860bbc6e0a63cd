/* SPDX-License-Identifier: Apache-2.0
 *
 * The place of the largest and the smallest element of a lane (lane_loops.h), compiled once for
 * each instruction set. The first of equal ones; a NaN is better than everything. A long row is
 * read once for the value and, in the block that has it, a second time for its place.
 */
#include "base/compiler.h"
#include "kernels/isa/reduce/lane_loops.h"

#include <stdbool.h>

enum {
    LANES = 64,
    SHORT = 64,
    BLOCK = 4096,
    MOST_ROWS = 1 << 20
};

#define EXTREME_I_NAME(kind, type, part)  EXTREME_I_NAME2(kind, type, part)
#define EXTREME_I_NAME2(kind, type, part) kind##_##type##_##part

#define EXTREME_KIND         largest
#define EXTREME_BETTER(a, b) ((a) > (b))
#include "kernels/isa/reduce/extreme_types.def"

#define EXTREME_KIND         smallest
#define EXTREME_BETTER(a, b) ((a) < (b))
#include "kernels/isa/reduce/extreme_types.def"

#define EXTREME_I_TYPES(kind)                                  \
    {                                                          \
        [MT_DTYPE_BOOL] = {kind##_u8_row, kind##_u8_columns},  \
        [MT_DTYPE_U8] = {kind##_u8_row, kind##_u8_columns},    \
        [MT_DTYPE_I32] = {kind##_i32_row, kind##_i32_columns}, \
        [MT_DTYPE_I64] = {kind##_i64_row, kind##_i64_columns}, \
        [MT_DTYPE_F32] = {kind##_f32_row, kind##_f32_columns}, \
        [MT_DTYPE_F64] = {kind##_f64_row, kind##_f64_columns}, \
    }

const mt__lane_table MT_ISA(mt__extreme_loops)[1] = {
    {.of = {EXTREME_I_TYPES(largest), EXTREME_I_TYPES(smallest)}},
};
