/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling, forward and backward (kernels.def). Tensors are contiguous planes [..., H, W]; a plane
 * is done by one thread, so the additions into a gradient's element always come in the same order.
 *
 * A window is the part of the kernel that lies inside the plane:
 *
 *     y = y0, y0 + step_y, ... < y1        x = x0, x0 + step_x, ... < x1
 *
 *   POOL1  Of equal maxima the first one is taken; NaN is larger than everything, and of several
 *          NaN the last one is taken.
 *   POOL2  The average of a window that lies entirely in the padding is 0.
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum {
    PIECE_ELEMENTS = 1 << 15 /* elements of planes that are worth another thread */
};

typedef struct window {
    int64_t y0, y1, step_y;
    int64_t x0, x1, step_x;
    int64_t divisor; /* averages: number of elements, with padding if requested */
} window;

typedef struct job job;
typedef window window_fn(const job *j, int64_t y, int64_t x);
typedef void plane_fn(job *j, int64_t plane);

struct job {
    int64_t h, w;   /* planes of the larger side (in, grad_in) */
    int64_t oh, ow; /* of the smaller side (out, grad) */
    const int64_t *ints;
    window_fn *window;
    plane_fn *run;
    const char *from;
    char *to;
    int64_t *indices;
    _Atomic(int64_t) bad_index; /* -1: none */
};

/* ---- windows --------------------------------------------------------------------------------- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The first place of a line that is not in the padding. */
static int64_t first_inside(int64_t start, int64_t step)
{
    return start >= 0 ? start : start + (-start + step - 1) / step * step;
}

/* ints: kh, kw, sh, sw, ph, pw, dh, dw */
static window max_window(const job *j, int64_t y, int64_t x)
{
    const int64_t *k = j->ints;
    int64_t y0 = y * k[2] - k[4];
    int64_t x0 = x * k[3] - k[5];
    return (window){
        .y0 = first_inside(y0, k[6]),
        .y1 = smaller(y0 + (k[0] - 1) * k[6] + 1, j->h),
        .step_y = k[6],
        .x0 = first_inside(x0, k[7]),
        .x1 = smaller(x0 + (k[1] - 1) * k[7] + 1, j->w),
        .step_x = k[7],
    };
}

/* ints: kh, kw, sh, sw, ph, pw, count_include_pad, divisor (0 = none) */
static window average_window(const job *j, int64_t y, int64_t x)
{
    const int64_t *k = j->ints;
    int64_t y0 = y * k[2] - k[4];
    int64_t x0 = x * k[3] - k[5];
    int64_t y1 = smaller(y0 + k[0], j->h + k[4]);
    int64_t x1 = smaller(x0 + k[1], j->w + k[5]);
    int64_t with_padding = (y1 - y0) * (x1 - x0);
    window win = {
        .y0 = y0 > 0 ? y0 : 0,
        .y1 = smaller(y1, j->h),
        .step_y = 1,
        .x0 = x0 > 0 ? x0 : 0,
        .x1 = smaller(x1, j->w),
        .step_x = 1,
    };
    int64_t inside = (win.y1 - win.y0) * (win.x1 - win.x0);
    win.divisor = k[7] != 0 ? k[7] : k[6] != 0 ? with_padding : inside;
    return win;
}

static window adaptive_window(const job *j, int64_t y, int64_t x)
{
    window win = {
        .y0 = y * j->h / j->oh,
        .y1 = ((y + 1) * j->h + j->oh - 1) / j->oh,
        .step_y = 1,
        .x0 = x * j->w / j->ow,
        .x1 = ((x + 1) * j->w + j->ow - 1) / j->ow,
        .step_x = 1,
    };
    win.divisor = (win.y1 - win.y0) * (win.x1 - win.x0);
    return win;
}

/* ---- planes ---------------------------------------------------------------------------------- */

#define MT_I_IS_NAN(x) ((x) != (x))
#define MT_I_NEVER(x)  false

#define MT_I_DEFINE_MAX(T, suffix, LOWEST, IS_NAN)                                           \
    static int64_t max_of_##suffix(const job *j, const T *plane, const window *win, T *most) \
    {                                                                                        \
        int64_t where = win->y0 * j->w + win->x0;                                            \
        T best = LOWEST;                                                                     \
        for (int64_t y = win->y0; y < win->y1; y += win->step_y) {                           \
            for (int64_t x = win->x0; x < win->x1; x += win->step_x) {                       \
                T value = plane[y * j->w + x];                                               \
                if (value > best || IS_NAN(value)) { /* POOL1 */                             \
                    best = value;                                                            \
                    where = y * j->w + x;                                                    \
                }                                                                            \
            }                                                                                \
        }                                                                                    \
        *most = best;                                                                        \
        return where;                                                                        \
    }                                                                                        \
                                                                                             \
    static void max_plane_##suffix(job *j, int64_t plane)                                    \
    {                                                                                        \
        const T *from = (const T *)j->from + plane * j->h * j->w;                            \
        T *to = (T *)j->to + plane * j->oh * j->ow;                                          \
        int64_t *indices = j->indices + plane * j->oh * j->ow;                               \
        for (int64_t y = 0; y < j->oh; y++) {                                                \
            for (int64_t x = 0; x < j->ow; x++, to++, indices++) {                           \
                window win = j->window(j, y, x);                                             \
                *indices = max_of_##suffix(j, from, &win, to);                               \
            }                                                                                \
        }                                                                                    \
    }

MT_I_DEFINE_MAX(uint8_t, u8, 0, MT_I_NEVER)
MT_I_DEFINE_MAX(int32_t, i32, INT32_MIN, MT_I_NEVER)
MT_I_DEFINE_MAX(int64_t, i64, INT64_MIN, MT_I_NEVER)
MT_I_DEFINE_MAX(float, f32, -INFINITY, MT_I_IS_NAN)
MT_I_DEFINE_MAX(double, f64, (double)-INFINITY, MT_I_IS_NAN)

#define MT_I_DEFINE_MAX_BACKWARD(T, suffix)                                             \
    static void max_back_##suffix(job *j, int64_t plane)                                \
    {                                                                                   \
        const T *from = (const T *)j->from + plane * j->oh * j->ow;                     \
        const int64_t *indices = j->indices + plane * j->oh * j->ow;                    \
        T *to = (T *)j->to + plane * j->h * j->w;                                       \
        memset(to, 0, (size_t)(j->h * j->w) * sizeof *to);                              \
        for (int64_t i = 0; i < j->oh * j->ow; i++) {                                   \
            if (indices[i] < 0 || indices[i] >= j->h * j->w) {                          \
                atomic_store_explicit(&j->bad_index, indices[i], memory_order_relaxed); \
                return;                                                                 \
            }                                                                           \
            to[indices[i]] += from[i];                                                  \
        }                                                                               \
    }

MT_I_DEFINE_MAX_BACKWARD(float, f32)
MT_I_DEFINE_MAX_BACKWARD(double, f64)

#define MT_I_DEFINE_AVERAGE(T, SUM, suffix, DIVIDE)                            \
    static void average_plane_##suffix(job *j, int64_t plane)                  \
    {                                                                          \
        const T *from = (const T *)j->from + plane * j->h * j->w;              \
        T *to = (T *)j->to + plane * j->oh * j->ow;                            \
        for (int64_t y = 0; y < j->oh; y++) {                                  \
            for (int64_t x = 0; x < j->ow; x++) {                              \
                window win = j->window(j, y, x);                               \
                SUM sum = 0;                                                   \
                for (int64_t line = win.y0; line < win.y1; line++) {           \
                    for (int64_t i = win.x0; i < win.x1; i++) {                \
                        sum += (SUM)from[line * j->w + i];                     \
                    }                                                          \
                }                                                              \
                bool empty = win.y0 >= win.y1 || win.x0 >= win.x1; /* POOL2 */ \
                *to++ = empty ? 0 : (T)DIVIDE(sum, win.divisor);               \
            }                                                                  \
        }                                                                      \
    }

/* Integers are added as unsigned ones: they wrap. The smallest divided by -1 wraps, too. */
static int64_t divide_wrapping(uint64_t sum, int64_t divisor)
{
    return divisor == -1 ? (int64_t)(0 - sum) : (int64_t)sum / divisor;
}

static float divide_f32(float sum, int64_t divisor)
{
    return sum / (float)divisor;
}

static double divide_f64(double sum, int64_t divisor)
{
    return sum / (double)divisor;
}

MT_I_DEFINE_AVERAGE(int64_t, uint64_t, i64, divide_wrapping)
MT_I_DEFINE_AVERAGE(float, float, f32, divide_f32)
MT_I_DEFINE_AVERAGE(double, double, f64, divide_f64)

#define MT_I_DEFINE_AVERAGE_BACKWARD(T, suffix)                      \
    static void average_back_##suffix(job *j, int64_t plane)         \
    {                                                                \
        const T *from = (const T *)j->from + plane * j->oh * j->ow;  \
        T *to = (T *)j->to + plane * j->h * j->w;                    \
        memset(to, 0, (size_t)(j->h * j->w) * sizeof *to);           \
        for (int64_t y = 0; y < j->oh; y++) {                        \
            for (int64_t x = 0; x < j->ow; x++) {                    \
                window win = j->window(j, y, x);                     \
                T share = *from++ / (T)win.divisor;                  \
                for (int64_t line = win.y0; line < win.y1; line++) { \
                    for (int64_t i = win.x0; i < win.x1; i++) {      \
                        to[line * j->w + i] += share;                \
                    }                                                \
                }                                                    \
            }                                                        \
        }                                                            \
    }

MT_I_DEFINE_AVERAGE_BACKWARD(float, f32)
MT_I_DEFINE_AVERAGE_BACKWARD(double, f64)

/* ---- calls ----------------------------------------------------------------------------------- */

/* By type; NULL: not for it. */
typedef struct planes {
    plane_fn *by_type[MT_DTYPE_COUNT];
} planes;

static const planes max_planes = {{[MT_DTYPE_U8] = max_plane_u8,
                                   [MT_DTYPE_I32] = max_plane_i32,
                                   [MT_DTYPE_I64] = max_plane_i64,
                                   [MT_DTYPE_F32] = max_plane_f32,
                                   [MT_DTYPE_F64] = max_plane_f64}};
static const planes max_backs = {{[MT_DTYPE_F32] = max_back_f32, [MT_DTYPE_F64] = max_back_f64}};
static const planes average_planes = {{[MT_DTYPE_I64] = average_plane_i64,
                                       [MT_DTYPE_F32] = average_plane_f32,
                                       [MT_DTYPE_F64] = average_plane_f64}};
static const planes average_backs = {
    {[MT_DTYPE_F32] = average_back_f32, [MT_DTYPE_F64] = average_back_f64}};

static void run_planes(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    for (int64_t plane = begin; plane < end; plane++) {
        j->run(j, plane);
    }
}

/* Which tensor of a call has planes of h x w, which of oh x ow, which the indices (-1: none). The
 * first one is written. */
typedef struct roles {
    int large, small, indices;
} roles;

static int run_pool(const mt_kernel_call *call, const planes *functions, window_fn *win, roles who)
{
    const mt_array *to = &call->tensors[0];
    const mt_array *large = &call->tensors[who.large];
    const mt_array *small = &call->tensors[who.small];
    int32_t n = large->n_dims;
    job j = {
        .h = large->sizes[n - 2],
        .w = large->sizes[n - 1],
        .oh = small->sizes[n - 2],
        .ow = small->sizes[n - 1],
        .ints = call->ints,
        .window = win,
        .run = functions->by_type[to->dtype],
        .from = to == large ? small->data : large->data,
        .to = to->data,
        .indices = who.indices < 0 ? NULL : call->tensors[who.indices].data,
        .bad_index = -1,
    };
    if (j.run == NULL) {
        return mtb_fail(MT_ENOTSUP, "pooling: not for %s", mt_dtype_name((mt_dtype)to->dtype));
    }
    int64_t count = 1;
    for (int32_t i = 0; i < n - 2; i++) {
        count *= large->sizes[i];
    }
    int64_t elements = j.h * j.w + j.oh * j.ow;
    if (count > 0 && elements > 0) {
        mt__parallel_for(count, PIECE_ELEMENTS / elements + 1, run_planes, &j);
    }
    int64_t bad = atomic_load_explicit(&j.bad_index, memory_order_relaxed);
    if (bad != -1) {
        return mtb_fail(MT_EINDEX,
                        "max_pool2d_with_indices_backward(): index %lld is out of range for a "
                        "plane of %lld x %lld",
                        (long long)bad, (long long)j.h, (long long)j.w);
    }
    return 0;
}

MT_HOST_KERNEL_WIDENED(MAX_POOL, 0x3, 0)
{
    return run_pool(call, &max_planes, max_window, (roles){2, 0, 1});
}

MT_HOST_KERNEL_WIDENED(ADAPTIVE_MAX_POOL, 0x3, 0)
{
    return run_pool(call, &max_planes, adaptive_window, (roles){2, 0, 1});
}

MT_HOST_KERNEL_WIDENED(MAX_POOL_BACKWARD, 0x1, 0)
{
    return run_pool(call, &max_backs, NULL, (roles){0, 1, 2});
}

MT_HOST_KERNEL_WIDENED(AVG_POOL, 0x1, 0)
{
    return run_pool(call, &average_planes, average_window, (roles){1, 0, -1});
}

MT_HOST_KERNEL_WIDENED(AVG_POOL_BACKWARD, 0x1, 0)
{
    return run_pool(call, &average_backs, average_window, (roles){0, 1, -1});
}

MT_HOST_KERNEL_WIDENED(ADAPTIVE_AVG_POOL, 0x1, 0)
{
    return run_pool(call, &average_planes, adaptive_window, (roles){1, 0, -1});
}

MT_HOST_KERNEL_WIDENED(ADAPTIVE_AVG_POOL_BACKWARD, 0x1, 0)
{
    return run_pool(call, &average_backs, adaptive_window, (roles){0, 1, -1});
}
