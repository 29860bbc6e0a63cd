/* SPDX-License-Identifier: Apache-2.0
 *
 * Images in other sizes (kernels.def, RESAMPLE): nearest, linear and cubic interpolation, with and
 * without antialiasing, and their derivatives.
 *
 * Every place of a dimension of the output is a weighted sum of neighbouring places of the input,
 * so that a dimension has a table: the first place and `taps` weights for each output. The
 * derivative has the transposed table, which is of the same kind, because ranges do not go back:
 *
 *     out[p, z, y, x] = sum over k l m of wz[z, k] wy[y, l] wx[x, m] in[p, z0 + k, y0 + l, x0 + m]
 *
 * A weight of 0 is not multiplied: what it belongs to may be infinite or NaN.
 *
 * Rows of the input are blended along z, resampled along x and kept in a ring, as many as an output
 * row needs; output rows blend them along y. So the costly part is done once for an input row.
 */
#include "base/fail.h"
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/scratch.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum {
    NEAREST,
    NEAREST_EXACT,
    LINEAR,
    CUBIC,
    LINEAR_SMOOTH,
    CUBIC_SMOOTH
};

enum {
    BLOCK_ROWS = 64, /* of the output: what a thread does at a time */
    MAX_TAPS = 1 << 20
};

/* A dimension: output o is the sum of weights[o * taps + k] * in[first[o] + k], k < taps. */
typedef struct axis {
    int64_t n_in, n_out, taps;
    int64_t *first;
    double *weights;
    bool copied;      /* output o is input first[o] */
    int64_t solid[2]; /* the longest run of outputs without weights of 0 */
} axis;

typedef struct job {
    axis axes[3];
    const void *in;
    void *out;
    int64_t n_blocks; /* of rows, in each plane of the output */
    _Atomic(int) status;
} job;

/* ---- tables ---------------------------------------------------------------------------------- */

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void free_axis(axis *a)
{
    mt__scratch_give(a->first);
    mt__scratch_give(a->weights);
    a->first = NULL;
    a->weights = NULL;
}

static bool make_axis(axis *a, int64_t n_in, int64_t n_out, int64_t taps)
{
    *a = (axis){.n_in = n_in, .n_out = n_out, .taps = taps};
    a->first = mt__scratch_take((size_t)n_out, sizeof(int64_t));
    a->weights = mt__scratch_take((size_t)(n_out * taps), sizeof(double));
    if (a->first == NULL || a->weights == NULL) {
        free_axis(a);
        return false;
    }
    memset(a->weights, 0, (size_t)(n_out * taps) * sizeof(double));
    return true;
}

/* Adds a weight at a place that may lie beyond the ends. */
static void add_weight(const axis *a, int64_t o, int64_t place, double weight)
{
    int64_t inside = smaller(larger(place, 0), a->n_in - 1);
    a->weights[o * a->taps + inside - a->first[o]] += weight;
}

/* Keys' cubic function. */
static double cubic(double x, double a)
{
    x = fabs(x);
    if (x <= 1.0) {
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    }
    return x < 2.0 ? ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a : 0.0;
}

/* In float, as torch finds places: a scale of 1 / 3 must not miss a whole number. */
static void fill_nearest(const axis *a, float ratio, float shift)
{
    for (int64_t o = 0; o < a->n_out; o++) {
        int64_t place = (int64_t)floorf(((float)o + shift) * ratio);
        a->first[o] = smaller(larger(place, 0), a->n_in - 1);
        a->weights[o] = 1.0;
    }
}

static void fill_linear(const axis *a, double ratio, bool corners)
{
    for (int64_t o = 0; o < a->n_out; o++) {
        double from = corners ? (double)o * ratio : ((double)o + 0.5) * ratio - 0.5;
        from = from < 0.0 ? 0.0 : from;
        int64_t place = smaller((int64_t)from, a->n_in - 1);
        double share = a->n_in > 1 ? from - (double)place : 0.0;
        share = share > 1.0 ? 1.0 : share;
        a->first[o] = smaller(place, larger(a->n_in - a->taps, 0));
        add_weight(a, o, place, 1.0 - share);
        add_weight(a, o, place + 1, share);
    }
}

static void fill_cubic(const axis *a, double ratio, bool corners)
{
    for (int64_t o = 0; o < a->n_out; o++) {
        double from = corners ? (double)o * ratio : ((double)o + 0.5) * ratio - 0.5;
        double place = floor(from);
        double share = from - place;
        int64_t start = (int64_t)place - 1;
        a->first[o] = smaller(larger(start, 0), larger(a->n_in - a->taps, 0));
        for (int64_t k = 0; k < 4; k++) {
            add_weight(a, o, start + k, cubic(share + 1.0 - (double)k, -0.75));
        }
    }
}

/* Half the width of the filter, in places of the input. */
static double support_of(uint16_t code, double ratio)
{
    double half = code == LINEAR_SMOOTH ? 1.0 : 2.0;
    return ratio >= 1.0 ? half * ratio : half;
}

static void fill_smooth(const axis *a, uint16_t code, double ratio)
{
    double support = support_of(code, ratio);
    double shrink = ratio >= 1.0 ? 1.0 / ratio : 1.0;
    for (int64_t o = 0; o < a->n_out; o++) {
        double centre = ratio * ((double)o + 0.5);
        int64_t start = larger((int64_t)(centre - support + 0.5), 0);
        int64_t end = smaller((int64_t)(centre + support + 0.5), a->n_in);
        double total = 0.0;
        double *weights = a->weights + o * a->taps;
        a->first[o] = smaller(start, larger(a->n_in - a->taps, 0));
        for (int64_t i = start; i < end; i++) {
            double x = ((double)i - centre + 0.5) * shrink;
            double w = code == CUBIC_SMOOTH ? cubic(x, -0.5) : fabs(x) < 1.0 ? 1.0 - fabs(x) : 0.0;
            weights[i - a->first[o]] = w;
            total += w;
        }
        for (int64_t i = start; i < end && total != 0.0; i++) {
            weights[i - a->first[o]] /= total;
        }
    }
}

/* The table of the forward direction. scale 0: it follows from the sizes. */
static bool forward_axis(axis *a, uint16_t code, int64_t n_in, int64_t n_out, bool corners,
                         double scale)
{
    double ratio = scale > 0.0 ? 1.0 / scale : (double)n_in / (double)n_out;
    if (corners && code >= LINEAR) {
        ratio = n_out > 1 ? (double)(n_in - 1) / (double)(n_out - 1) : 0.0;
    }
    int64_t taps = code <= NEAREST_EXACT ? 1
                   : code == LINEAR      ? 2
                   : code == CUBIC       ? 4
                                         : (int64_t)ceil(2.0 * support_of(code, ratio)) + 1;
    if (taps > MAX_TAPS || !make_axis(a, n_in, n_out, smaller(taps, n_in))) {
        return false;
    }
    if (code <= NEAREST_EXACT) {
        float single = scale > 0.0 ? (float)(1.0 / scale) : (float)n_in / (float)n_out;
        fill_nearest(a, single, code == NEAREST ? 0.0F : 0.5F);
    } else if (code == LINEAR) {
        fill_linear(a, ratio, corners);
    } else if (code == CUBIC) {
        fill_cubic(a, ratio, corners);
    } else {
        fill_smooth(a, code, ratio);
    }
    return true;
}

/* Whether output o has a part of input i. */
static bool has_part(const axis *a, int64_t o, int64_t i)
{
    int64_t k = i - a->first[o];
    return k >= 0 && k < a->taps && a->weights[o * a->taps + k] != 0.0;
}

/* The table that sends outputs back to inputs. */
static bool turn_axis(const axis *a, axis *out)
{
    int64_t taps = 1;
    for (int64_t i = 0, from = 0; i < a->n_in; i++) {
        while (from < a->n_out && a->first[from] + a->taps <= i) {
            from++;
        }
        int64_t last = from;
        while (last < a->n_out && a->first[last] <= i) {
            last++;
        }
        taps = larger(taps, last - from);
    }
    if (!make_axis(out, a->n_out, a->n_in, smaller(taps, a->n_out))) {
        return false;
    }
    for (int64_t i = 0, from = 0; i < a->n_in; i++) {
        while (from < a->n_out && a->first[from] + a->taps <= i) {
            from++;
        }
        out->first[i] = smaller(from, larger(a->n_out - out->taps, 0));
        for (int64_t o = from; o < a->n_out && a->first[o] <= i; o++) {
            if (has_part(a, o, i)) {
                out->weights[i * out->taps + o - out->first[i]] =
                    a->weights[o * a->taps + i - a->first[o]];
            }
        }
    }
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

#define MT_I_DEFINE_RESAMPLE(T, suffix)                                                           \
    /* Row `y` of plane `z` of the output's z: inputs blended along z; may be the input's own. */ \
    static const T *blend_##suffix(const job *j, const T *volume, int64_t z, int64_t y, T *place) \
    {                                                                                             \
        const axis *az = &j->axes[0];                                                             \
        int64_t width = j->axes[2].n_in;                                                          \
        int64_t step = j->axes[1].n_in * width;                                                   \
        const T *row = volume + az->first[z] * step + y * width;                                  \
        if (az->copied) {                                                                         \
            return row;                                                                           \
        }                                                                                         \
        memset(place, 0, (size_t)width * sizeof(T));                                              \
        for (int64_t k = 0; k < az->taps; k++) {                                                  \
            T w = (T)az->weights[z * az->taps + k];                                               \
            for (int64_t x = 0; w != 0 && x < width; x++) {                                       \
                place[x] += w * row[k * step + x];                                                \
            }                                                                                     \
        }                                                                                         \
        return place;                                                                             \
    }                                                                                             \
                                                                                                  \
    /* Outputs begin...end, some of whose weights are 0. */                                       \
    static void along_holes_##suffix(const axis *a, const T *weights, const T *row, T *to,        \
                                     int64_t begin, int64_t end)                                  \
    {                                                                                             \
        for (int64_t x = begin; x < end; x++) {                                                   \
            const T *at = row + a->first[x];                                                      \
            T sum = 0;                                                                            \
            for (int64_t k = 0; k < a->taps; k++) {                                               \
                T w = weights[x * a->taps + k];                                                   \
                sum += w != 0 ? w * at[k] : 0;                                                    \
            }                                                                                     \
            to[x] = sum;                                                                          \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static void along_##suffix(const axis *a, const T *weights, const T *row, T *to)              \
    {                                                                                             \
        int64_t n = a->n_out;                                                                     \
        const int64_t *first = a->first;                                                          \
        if (a->copied) {                                                                          \
            for (int64_t x = 0; x < n; x++) {                                                     \
                to[x] = row[first[x]];                                                            \
            }                                                                                     \
            return;                                                                               \
        }                                                                                         \
        int64_t end = a->solid[1];                                                                \
        along_holes_##suffix(a, weights, row, to, 0, a->solid[0]);                                \
        along_holes_##suffix(a, weights, row, to, end, n);                                        \
        if (a->taps == 2) {                                                                       \
            for (int64_t x = a->solid[0]; x < end; x++) {                                         \
                const T *at = row + first[x];                                                     \
                to[x] = weights[2 * x] * at[0] + weights[2 * x + 1] * at[1];                      \
            }                                                                                     \
        } else {                                                                                  \
            for (int64_t x = a->solid[0]; x < end; x++) {                                         \
                const T *at = row + first[x];                                                     \
                T sum = 0;                                                                        \
                for (int64_t k = 0; k < a->taps; k++) {                                           \
                    sum += weights[x * a->taps + k] * at[k];                                      \
                }                                                                                 \
                to[x] = sum;                                                                      \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    /* One output row from the ring's. */                                                         \
    static void down_##suffix(const axis *a, int64_t y, int64_t width, const T *ring, T *to)      \
    {                                                                                             \
        const double *weights = a->weights + y * a->taps;                                         \
        const T *held = NULL; /* two at once: the usual case */                                   \
        T held_weight = 0;                                                                        \
        bool begun = false;                                                                       \
        for (int64_t k = 0; k < a->taps; k++) {                                                   \
            const T *row = ring + (a->first[y] + k) % a->taps * width;                            \
            T w = (T)weights[k];                                                                  \
            if (w == 0) {                                                                         \
                continue;                                                                         \
            }                                                                                     \
            if (begun) {                                                                          \
                for (int64_t x = 0; x < width; x++) {                                             \
                    to[x] += w * row[x];                                                          \
                }                                                                                 \
            } else if (held == NULL) {                                                            \
                held = row;                                                                       \
                held_weight = w;                                                                  \
            } else {                                                                              \
                for (int64_t x = 0; x < width; x++) {                                             \
                    to[x] = held_weight * held[x] + w * row[x];                                   \
                }                                                                                 \
                begun = true;                                                                     \
            }                                                                                     \
        }                                                                                         \
        for (int64_t x = 0; !begun && x < width; x++) {                                           \
            to[x] = held != NULL ? held_weight * held[x] : 0;                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static void rows_##suffix(const job *j, int64_t block, T *ring, T *blended, const T *wx)      \
    {                                                                                             \
        const axis *ay = &j->axes[1];                                                             \
        const axis *ax = &j->axes[2];                                                             \
        int64_t plane = block / j->n_blocks;                                                      \
        int64_t z = plane % j->axes[0].n_out;                                                     \
        int64_t size = j->axes[0].n_in * ay->n_in * ax->n_in;                                     \
        const T *volume = (const T *)j->in + plane / j->axes[0].n_out * size;                     \
        int64_t y = block % j->n_blocks * BLOCK_ROWS;                                             \
        int64_t end = smaller(y + BLOCK_ROWS, ay->n_out);                                         \
        int64_t done = -1; /* the last input row that is in the ring */                           \
        for (; y < end; y++) {                                                                    \
            T *to = (T *)j->out + (plane * ay->n_out + y) * ax->n_out;                            \
            int64_t from = ay->first[y];                                                          \
            if (ay->copied && done == from) { /* the same row once more */                        \
                memcpy(to, to - ax->n_out, (size_t)ax->n_out * sizeof(T));                        \
                continue;                                                                         \
            }                                                                                     \
            for (int64_t i = larger(from, done + 1); i < from + ay->taps; i++) {                  \
                const T *row = blend_##suffix(j, volume, z, i, blended);                          \
                along_##suffix(ax, wx, row, ay->copied ? to : ring + i % ay->taps * ax->n_out);   \
                done = i;                                                                         \
            }                                                                                     \
            if (!ay->copied) {                                                                    \
                down_##suffix(ay, y, ax->n_out, ring, to);                                        \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static void run_##suffix(void *context, int64_t begin, int64_t end)                           \
    {                                                                                             \
        job *j = context;                                                                         \
        const axis *ax = &j->axes[2];                                                             \
        size_t ring_size = (size_t)(j->axes[1].taps * ax->n_out);                                 \
        size_t table = (size_t)(ax->n_out * ax->taps);                                            \
        T *memory = mt__scratch_take(ring_size + (size_t)ax->n_in + table, sizeof(T));            \
        if (memory == NULL) {                                                                     \
            atomic_store_explicit(&j->status, MT_ENOMEM, memory_order_relaxed);                   \
            return;                                                                               \
        }                                                                                         \
        T *blended = memory + ring_size;                                                          \
        T *wx = blended + ax->n_in;                                                               \
        for (size_t i = 0; i < table; i++) {                                                      \
            wx[i] = (T)ax->weights[i];                                                            \
        }                                                                                         \
        for (int64_t block = begin; block < end; block++) {                                       \
            rows_##suffix(j, block, memory, blended, wx);                                         \
        }                                                                                         \
        mt__scratch_give(memory);                                                                 \
    }

MT_I_DEFINE_RESAMPLE(float, f32)
MT_I_DEFINE_RESAMPLE(double, f64)

/* ---- kernel ---------------------------------------------------------------------------------- */

static bool is_copied(const axis *a)
{
    for (int64_t i = 0; i < a->n_out && a->taps == 1; i++) {
        if (a->weights[i] != 1.0) {
            return false;
        }
    }
    return a->taps == 1;
}

static bool has_hole(const axis *a, int64_t o)
{
    for (int64_t k = 0; k < a->taps; k++) {
        if ((float)a->weights[o * a->taps + k] == 0.0F) {
            return true;
        }
    }
    return false;
}

static void find_solid(axis *a)
{
    a->solid[0] = a->solid[1] = 0;
    for (int64_t o = 0, begin = 0; o <= a->n_out; o++) {
        if (o < a->n_out && !has_hole(a, o)) {
            continue;
        }
        if (o - begin > a->solid[1] - a->solid[0]) {
            a->solid[0] = begin;
            a->solid[1] = o;
        }
        begin = o + 1;
    }
}

/* Weights as integers of up to 15 bits over a power of two, the same for all outputs. */
static void round_weights(const axis *a)
{
    double largest = 0.0;
    int64_t count = a->n_out * a->taps;
    for (int64_t i = 0; i < count; i++) {
        largest = a->weights[i] > largest ? a->weights[i] : largest;
    }
    int bits = 0;
    while (bits < 22 && floor(0.5 + ldexp(largest, bits + 1)) < 32768.0) {
        bits++;
    }
    for (int64_t i = 0; i < count; i++) {
        a->weights[i] = ldexp(round(ldexp(a->weights[i], bits)), -bits);
    }
}

/* The table of dimension d + 1 of the tensors; the derivative's: turned. */
static bool make_table(const mt_kernel_call *call, uint32_t d, axis *out)
{
    bool turned = call->ints[1] != 0;
    int64_t n_out = call->tensors[turned ? 1 : 0].sizes[d + 1];
    int64_t n_in = call->tensors[turned ? 0 : 1].sizes[d + 1];
    double scale = mt__arg_real(call, d);
    axis forward;
    if (n_in == n_out && n_in == 1) { /* dimensions that are not there */
        scale = 0.0;
    }
    if (!forward_axis(&forward, call->code, n_in, n_out, call->ints[0] != 0, scale)) {
        return false;
    }
    if (call->ints[2] != 0) {
        round_weights(&forward);
    }
    bool made = true;
    if (turned) {
        made = turn_axis(&forward, out);
        free_axis(&forward);
    } else {
        *out = forward;
    }
    if (made) {
        out->copied = is_copied(out);
        find_solid(out);
    }
    return made;
}

MT_HOST_KERNEL_WIDENED(RESAMPLE, 0x1, 0)
{
    const mt_array *out = &call->tensors[0];
    job j = {.in = call->tensors[1].data, .out = out->data};
    bool wide = out->dtype == MT_DTYPE_F64;
    if (!wide && out->dtype != MT_DTYPE_F32) {
        return mtb_fail(MT_ENOTSUP, "resampling: not implemented for %s",
                        mt_dtype_name((mt_dtype)out->dtype));
    }
    if (mt__arg_numel(call, 0) == 0 || mt__arg_numel(call, 1) == 0) {
        return MT_OK;
    }
    bool made = true;
    for (uint32_t d = 0; d < 3 && made; d++) {
        made = make_table(call, d, &j.axes[d]);
    }
    if (made) {
        j.n_blocks = (out->sizes[2] + BLOCK_ROWS - 1) / BLOCK_ROWS;
        int64_t rows = smaller(out->sizes[2], BLOCK_ROWS) * out->sizes[3];
        mt__parallel_for(out->sizes[0] * out->sizes[1] * j.n_blocks, 1 + (1 << 15) / (rows + 1),
                         wide ? run_f64 : run_f32, &j);
    }
    for (uint32_t d = 3; d-- > 0;) {
        free_axis(&j.axes[d]);
    }
    if (!made || atomic_load_explicit(&j.status, memory_order_relaxed) != MT_OK) {
        return mtb_fail(MT_ENOMEM, "resampling: no memory for tables of %lld x %lld places",
                        (long long)out->sizes[2], (long long)out->sizes[3]);
    }
    return MT_OK;
}
