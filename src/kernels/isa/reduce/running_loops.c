/* SPDX-License-Identifier: Apache-2.0
 *
 * Running sums and products along a lane (lane_loops.h), compiled once for each instruction set.
 * float adds in double; integers wrap. The output may be the input.
 */
#include "kernels/isa/reduce/lane_loops.h"

#include <string.h>

/* T elements, W what is added. */
#define RUNNING_I(name, T, W, first, op)                          \
    static void name##_row(const mt__lane_block *b)               \
    {                                                             \
        T *to = b->data[0];                                       \
        const T *in = b->data[1];                                 \
        W total = first;                                          \
        for (int64_t i = 0; i < b->length; i++) {                 \
            total = (W)(total op(W) in[i]);                       \
            to[i] = (T)total;                                     \
        }                                                         \
    }                                                             \
    static void name##_columns(const mt__lane_block *b)           \
    {                                                             \
        W totals[MT_LANES_WIDTH];                                 \
        for (int64_t j = 0; j < b->width; j++) {                  \
            totals[j] = first;                                    \
        }                                                         \
        for (int64_t i = 0; i < b->length; i++) {                 \
            T *to = (T *)b->data[0] + i * b->step[0];             \
            const T *in = (const T *)b->data[1] + i * b->step[1]; \
            for (int64_t j = 0; j < b->width; j++) {              \
                totals[j] = (W)(totals[j] op(W) in[j]);           \
                to[j] = (T)totals[j];                             \
            }                                                     \
        }                                                         \
    }

RUNNING_I(sums_u8, uint8_t, uint32_t, 0, +)
RUNNING_I(sums_i32, int32_t, uint32_t, 0, +)
RUNNING_I(sums_i64, int64_t, uint64_t, 0, +)
RUNNING_I(sums_f32, float, double, 0, +)
RUNNING_I(sums_f64, double, double, 0, +)
RUNNING_I(products_u8, uint8_t, uint32_t, 1, *)
RUNNING_I(products_i32, int32_t, uint32_t, 1, *)
RUNNING_I(products_i64, int64_t, uint64_t, 1, *)
RUNNING_I(products_f32, float, double, 1, *)
RUNNING_I(products_f64, double, double, 1, *)

#define RUNNING_I_TYPES(kind)                                  \
    {                                                          \
        [MT_DTYPE_U8] = {kind##_u8_row, kind##_u8_columns},    \
        [MT_DTYPE_I32] = {kind##_i32_row, kind##_i32_columns}, \
        [MT_DTYPE_I64] = {kind##_i64_row, kind##_i64_columns}, \
        [MT_DTYPE_F32] = {kind##_f32_row, kind##_f32_columns}, \
        [MT_DTYPE_F64] = {kind##_f64_row, kind##_f64_columns}, \
    }

const mt__lane_table MT_ISA(mt__running_loops)[1] = {
    {.of = {RUNNING_I_TYPES(sums), RUNNING_I_TYPES(products)}},
};
