/* SPDX-License-Identifier: Apache-2.0
 *
 * See grid_loops.h.
 */
#include "kernels/isa/grid_loops.h"

#include "base/compiler.h"
#include "kernels/isa/pointwise/loop_body.h"
#include "kernels/number/vector_math.h"

#include <math.h>

enum {
    MOST_TAPS = 8
};

/* A choice would become a branch, and a loop with it no vectors. */
MT_INLINE float kept_f32(float x, uint32_t keep)
{
    return mt__float_of(mt__bits_f32(x) & keep);
}

MT_INLINE double kept_f64(double x, uint64_t keep)
{
    return mt__double_of(mt__bits_f64(x) & keep);
}

/* Neighbours of places in one dimension: their index, or -1 outside, and the second one's share. */
#define GRID(T, suffix, BITS, FLOOR, ROUND)                                                      \
    typedef struct axis_##suffix {                                                               \
        int32_t at[2][MT_GRID_GROUP];                                                            \
        T share[MT_GRID_GROUP];                                                                  \
    } axis_##suffix;                                                                             \
                                                                                                 \
    static void make_axis_##suffix(const mt__grid_image *image, int64_t n, int64_t dim,          \
                                   axis_##suffix *axis)                                          \
    {                                                                                            \
        const T *grid = (const T *)image->grid + (2 - dim);                                      \
        const int64_t step = image->dims;                                                        \
        const T side = (T)image->sides[dim], last = side - 1;                                    \
        const bool nearest = image->nearest, border = image->border, corners = image->corners;   \
        MT_I_VECTOR_LOOP                                                                         \
        for (int64_t k = 0; k < n; k++) {                                                        \
            T x = grid[k * step] + 1;                                                            \
            T at = corners ? x / 2 * last : (x * side - 1) / 2;                                  \
            T inside = at < last ? at : last;                                                    \
            inside = at > 0 ? inside : 0; /* NaN: 0 */                                           \
            at = border ? inside : at;                                                           \
            T first = nearest ? ROUND(at) : FLOOR(at);                                           \
            T second = first + 1;                                                                \
            axis->share[k] = nearest ? 0 : at - first;                                           \
            axis->at[0][k] = (int32_t)(first >= 0 && first <= last ? first : -1);                \
            axis->at[1][k] = (int32_t)(second >= 0 && second <= last ? second : -1);             \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    /* The elements that places are made of, and their weights. */                               \
    typedef struct taps_##suffix {                                                               \
        int32_t at[MOST_TAPS][MT_GRID_GROUP];                                                    \
        BITS keep[MOST_TAPS][MT_GRID_GROUP]; /* all bits, or 0: the element is outside */        \
        T weights[MOST_TAPS][MT_GRID_GROUP];                                                     \
        T start[MT_GRID_GROUP]; /* NaN where a coordinate is lost, else 0 */                     \
    } taps_##suffix;                                                                             \
                                                                                                 \
    static void make_taps_##suffix(const mt__grid_image *image, int64_t n, int64_t count,        \
                                   taps_##suffix *taps)                                          \
    {                                                                                            \
        axis_##suffix axes[3];                                                                   \
        for (int64_t dim = 3 - image->dims; dim < 3; dim++) {                                    \
            make_axis_##suffix(image, n, dim, &axes[dim]);                                       \
        }                                                                                        \
        for (int64_t k = 0; k < n && image->dims == 2; k++) {                                    \
            axes[0].share[k] = 0;                                                                \
            axes[0].at[0][k] = 0;                                                                \
        }                                                                                        \
        const int32_t height = (int32_t)image->sides[1], width = (int32_t)image->sides[2];       \
        for (int64_t i = 0; i < count; i++) {                                                    \
            const bool far[3] = {(i & 4) != 0, (i & 2) != 0, (i & 1) != 0};                      \
            MT_I_VECTOR_LOOP                                                                     \
            for (int64_t k = 0; k < n; k++) {                                                    \
                int32_t z = axes[0].at[far[0]][k], y = axes[1].at[far[1]][k];                    \
                int32_t x = axes[2].at[far[2]][k];                                               \
                int32_t place =                                                                  \
                    (int32_t)(((uint32_t)z * (uint32_t)height + (uint32_t)y) * (uint32_t)width + \
                              (uint32_t)x);                                                      \
                bool outside = (z | y | x) < 0;                                                  \
                taps->at[i][k] = outside ? 0 : place;                                            \
                taps->keep[i][k] = outside ? 0 : (BITS)-1;                                       \
                T a = axes[0].share[k], b = axes[1].share[k], c = axes[2].share[k];              \
                taps->weights[i][k] =                                                            \
                    (far[0] ? a : 1 - a) * (far[1] ? b : 1 - b) * (far[2] ? c : 1 - c);          \
                taps->start[k] = (a - a) + (b - b) + (c - c);                                    \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    MT_INLINE void add_taps_##suffix(const mt__grid_image *image, int64_t n,                     \
                                     const taps_##suffix *taps, const int64_t count)             \
    {                                                                                            \
        const int64_t plane = image->sides[0] * image->sides[1] * image->sides[2];               \
        for (int64_t c = 0; c < image->channels; c++) {                                          \
            const T *in = (const T *)image->in + c * plane;                                      \
            T *out = (T *)image->out + c * image->out_step;                                      \
            MT_I_VECTOR_LOOP                                                                     \
            for (int64_t k = 0; k < n; k++) {                                                    \
                T sum = taps->start[k];                                                          \
                _Pragma("GCC unroll 8") for (int64_t i = 0; i < count; i++)                      \
                {                                                                                \
                    T value = in[taps->at[i][k]];                                                \
                    sum += taps->weights[i][k] * kept_##suffix(value, taps->keep[i][k]);         \
                }                                                                                \
                out[k] = sum;                                                                    \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    static void grid_##suffix(const mt__grid_image *image, int64_t places)                       \
    {                                                                                            \
        taps_##suffix taps;                                                                      \
        make_taps_##suffix(image, places, image->nearest ? 1 : image->dims == 2 ? 4 : 8, &taps); \
        if (image->nearest) {                                                                    \
            add_taps_##suffix(image, places, &taps, 1);                                          \
        } else if (image->dims == 2) {                                                           \
            add_taps_##suffix(image, places, &taps, 4);                                          \
        } else {                                                                                 \
            add_taps_##suffix(image, places, &taps, 8);                                          \
        }                                                                                        \
    }

GRID(float, f32, uint32_t, floorf, rintf)
GRID(double, f64, uint64_t, floor, rint)

mt__grid_fn *const MT_ISA(mt__grid_loops)[2] = {grid_f32, grid_f64};
