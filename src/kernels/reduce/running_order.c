/* SPDX-License-Identifier: Apache-2.0
 *
 * RUNNING: the largest and smallest so far with their places, and the logarithm of the sum of
 * exponentials so far, along a lane (lanes.h).
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/reduce/lanes.h"

#include <math.h>

enum {
    RUNNING_GRAIN = 64 * 1024 /* elements that are worth waking a thread */
};

typedef struct running_loops {
    mt__lane_fn *row;
    mt__lane_fn *columns;
} running_loops;

/* The last of equals; NaN wins and stays. */
#define REPLACES(x, best, op) ((x)op(best) || (x) != (x))

#define EXTREME(name, T, op)                                          \
    static void name##_row(const mt__lane_block *b)                   \
    {                                                                 \
        T *values = b->data[0];                                       \
        int64_t *places = b->data[1];                                 \
        const T *in = b->data[2];                                     \
        T best = in[0];                                               \
        int64_t place = 0;                                            \
        for (int64_t i = 0; i < b->length; i++) {                     \
            bool taken = REPLACES(in[i], best, op);                   \
            best = taken ? in[i] : best;                              \
            place = taken ? i : place;                                \
            values[i] = best;                                         \
            places[i] = place;                                        \
        }                                                             \
    }                                                                 \
    static void name##_columns(const mt__lane_block *b)               \
    {                                                                 \
        T best[MT_LANES_WIDTH];                                       \
        int64_t place[MT_LANES_WIDTH];                                \
        for (int64_t j = 0; j < b->width; j++) {                      \
            best[j] = ((const T *)b->data[2])[j];                     \
            place[j] = 0;                                             \
        }                                                             \
        for (int64_t i = 0; i < b->length; i++) {                     \
            T *values = (T *)b->data[0] + i * b->step[0];             \
            int64_t *places = (int64_t *)b->data[1] + i * b->step[1]; \
            const T *in = (const T *)b->data[2] + i * b->step[2];     \
            for (int64_t j = 0; j < b->width; j++) {                  \
                bool taken = REPLACES(in[j], best[j], op);            \
                best[j] = taken ? in[j] : best[j];                    \
                place[j] = taken ? i : place[j];                      \
                values[j] = best[j];                                  \
                places[j] = place[j];                                 \
            }                                                         \
        }                                                             \
    }

EXTREME(largest_u8, uint8_t, >=)
EXTREME(largest_i32, int32_t, >=)
EXTREME(largest_i64, int64_t, >=)
EXTREME(largest_f32, float, >=)
EXTREME(largest_f64, double, >=)
EXTREME(smallest_u8, uint8_t, <=)
EXTREME(smallest_i32, int32_t, <=)
EXTREME(smallest_i64, int64_t, <=)
EXTREME(smallest_f32, float, <=)
EXTREME(smallest_f64, double, <=)

static double add_exponentials(double a, double b)
{
    double low = fmin(a, b);
    double high = fmax(a, b);
    if (a != a || b != b) {
        return a + b;
    }
    return low == high && isinf(low) ? low : high + log1p(exp(low - high));
}

#define LOG_SUM(name, T)                                            \
    static void name##_row(const mt__lane_block *b)                 \
    {                                                               \
        T *to = b->data[0];                                         \
        const T *in = b->data[1];                                   \
        double sum = -(double)INFINITY;                             \
        for (int64_t i = 0; i < b->length; i++) {                   \
            sum = add_exponentials(sum, (double)in[i]);             \
            to[i] = (T)sum;                                         \
        }                                                           \
    }                                                               \
    static void name##_columns(const mt__lane_block *b)             \
    {                                                               \
        double sums[MT_LANES_WIDTH];                                \
        for (int64_t j = 0; j < b->width; j++) {                    \
            sums[j] = -(double)INFINITY;                            \
        }                                                           \
        for (int64_t i = 0; i < b->length; i++) {                   \
            T *to = (T *)b->data[0] + i * b->step[0];               \
            const T *in = (const T *)b->data[1] + i * b->step[1];   \
            for (int64_t j = 0; j < b->width; j++) {                \
                sums[j] = add_exponentials(sums[j], (double)in[j]); \
                to[j] = (T)sums[j];                                 \
            }                                                       \
        }                                                           \
    }

LOG_SUM(log_sum_f32, float)
LOG_SUM(log_sum_f64, double)

#define LOOPS(name)                \
    {                              \
        name##_row, name##_columns \
    }

static const running_loops loops[3][MT_DTYPE_COUNT] = {
    {[MT_DTYPE_U8] = LOOPS(largest_u8),
     [MT_DTYPE_I32] = LOOPS(largest_i32),
     [MT_DTYPE_I64] = LOOPS(largest_i64),
     [MT_DTYPE_F32] = LOOPS(largest_f32),
     [MT_DTYPE_F64] = LOOPS(largest_f64)},
    {[MT_DTYPE_U8] = LOOPS(smallest_u8),
     [MT_DTYPE_I32] = LOOPS(smallest_i32),
     [MT_DTYPE_I64] = LOOPS(smallest_i64),
     [MT_DTYPE_F32] = LOOPS(smallest_f32),
     [MT_DTYPE_F64] = LOOPS(smallest_f64)},
    {[MT_DTYPE_F32] = LOOPS(log_sum_f32), [MT_DTYPE_F64] = LOOPS(log_sum_f64)},
};

static int run_lanes(const mt_kernel_call *call, uint32_t n_outs)
{
    uint32_t dtype = call->tensors[n_outs].dtype;
    const running_loops *found = &loops[call->code][dtype];
    if (found->row == NULL) {
        return mtb_fail(MT_ENOTSUP, "RUNNING %u: not implemented for %s", call->code,
                        mt_dtype_name((mt_dtype)dtype));
    }
    mt__lanes_job job = {.n_outs = n_outs,
                         .n_tensors = n_outs + 1,
                         .grain = RUNNING_GRAIN,
                         .row = found->row,
                         .columns = found->columns};
    return mt__lanes_run(&job, call->tensors, call->ints[0]);
}

static int run_extreme(const mt_kernel_call *call)
{
    return run_lanes(call, 2);
}

static int run_log_sum(const mt_kernel_call *call)
{
    return run_lanes(call, 1);
}

MT_HOST_KERNEL(RUNNING)
{
    mt__kernel_body *body = call->code == 2 ? run_log_sum : run_extreme;
    return mt__has_narrow(call) ? mt__run_widened(call, body, call->code == 2 ? 0x1 : 0x3, 0)
                                : body(call);
}
