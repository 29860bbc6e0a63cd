/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of attention over a tile of scores, compiled for each instruction set.
 *
 *   ATR1  A row in which nothing is seen, or everything is masked with -inf, has probabilities 0.
 *   ATR2  A NaN among the scores that a row sees makes the whole row NaN.
 *   ATR3  Sums of a row are made in LANES parts, joined in order: a row's result does not depend on
 *         where it lies.
 */
#include "kernels/isa/rows/attention_loops.h"

#include "kernels/isa/isa.h"
#include "kernels/number/vector_math.h"

#include <math.h>
#include <stdbool.h>

enum {
    LANES = 16
};

static int64_t seen_by(const mt__attention_tile *t, int64_t row)
{
    int64_t seen = t->seen + row;
    return seen < 0 ? 0 : seen > t->columns ? t->columns : seen;
}

#define MT_I_DEFINE_ATTENTION(T, suffix, EXP)                                                      \
    static void add_mask_##suffix(const mt__attention_tile *t, int64_t row, T *line, int64_t seen) \
    {                                                                                              \
        const T *mask = (const T *)t->mask + row * t->mask_row;                                    \
        if (t->mask_col == 1) {                                                                    \
            for (int64_t i = 0; i < seen; i++) {                                                   \
                line[i] += mask[i];                                                                \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < seen; i++) {                                                       \
            line[i] += mask[i * t->mask_col];                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* NaN are passed over. */                                                                     \
    static T largest_##suffix(const T *line, int64_t n)                                            \
    {                                                                                              \
        T most[LANES];                                                                             \
        for (int k = 0; k < LANES; k++) {                                                          \
            most[k] = -(T)INFINITY;                                                                \
        }                                                                                          \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES) {                                                       \
            for (int k = 0; k < LANES; k++) {                                                      \
                most[k] = line[i + k] > most[k] ? line[i + k] : most[k];                           \
            }                                                                                      \
        }                                                                                          \
        for (int k = 0; i < n; i++, k++) {                                                         \
            most[k] = line[i] > most[k] ? line[i] : most[k];                                       \
        }                                                                                          \
        T best = most[0];                                                                          \
        for (int k = 1; k < LANES; k++) {                                                          \
            best = most[k] > best ? most[k] : best;                                                \
        }                                                                                          \
        return best;                                                                               \
    }                                                                                              \
                                                                                                   \
    static bool has_nan_##suffix(const T *line, int64_t n)                                         \
    {                                                                                              \
        bool found = false;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            found |= line[i] != line[i];                                                           \
        }                                                                                          \
        return found;                                                                              \
    }                                                                                              \
                                                                                                   \
    static T sum_##suffix(const T *line, int64_t n)                                                \
    {                                                                                              \
        T sums[LANES] = {0};                                                                       \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES) {                                                       \
            for (int k = 0; k < LANES; k++) {                                                      \
                sums[k] += line[i + k];                                                            \
            }                                                                                      \
        }                                                                                          \
        for (int k = 0; i < n; i++, k++) {                                                         \
            sums[k] += line[i];                                                                    \
        }                                                                                          \
        T total = 0;                                                                               \
        for (int k = 0; k < LANES; k++) {                                                          \
            total += sums[k];                                                                      \
        }                                                                                          \
        return total;                                                                              \
    }                                                                                              \
                                                                                                   \
    /* In a loop of its own, which the compiler turns into vectors. */                             \
    static void exponentials_##suffix(T *line, int64_t n, T most)                                  \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            line[i] = EXP(line[i] - most);                                                         \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void clear_##suffix(T *line, int64_t from, int64_t to)                                  \
    {                                                                                              \
        for (int64_t i = from; i < to; i++) {                                                      \
            line[i] = 0;                                                                           \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void softmax_##suffix(const mt__attention_tile *t)                                      \
    {                                                                                              \
        T *most = t->most;                                                                         \
        T *total = t->total;                                                                       \
        T *factor = t->factor;                                                                     \
        for (int64_t r = 0; r < t->rows; r++) {                                                    \
            T *line = (T *)t->scores + r * t->line;                                                \
            int64_t seen = seen_by(t, r);                                                          \
            if (t->mask != NULL) {                                                                 \
                add_mask_##suffix(t, r, line, seen);                                               \
            }                                                                                      \
            T here = largest_##suffix(line, seen);                                                 \
            T now = here > most[r] ? here : most[r];                                               \
            factor[r] = 1;                                                                         \
            if (now == -(T)INFINITY && !has_nan_##suffix(line, seen)) { /* ATR1 */                 \
                clear_##suffix(line, 0, t->columns);                                               \
                continue;                                                                          \
            }                                                                                      \
            factor[r] = EXP(most[r] - now);                                                        \
            exponentials_##suffix(line, seen, now);                                                \
            total[r] = total[r] * factor[r] + sum_##suffix(line, seen);                            \
            most[r] = now;                                                                         \
            clear_##suffix(line, seen, t->columns);                                                \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void repeat_##suffix(const mt__attention_tile *t)                                       \
    {                                                                                              \
        for (int64_t r = 0; r < t->rows; r++) {                                                    \
            T *line = (T *)t->scores + r * t->line;                                                \
            int64_t seen = seen_by(t, r);                                                          \
            T lse = ((const T *)t->lse)[r];                                                        \
            if (t->mask != NULL) {                                                                 \
                add_mask_##suffix(t, r, line, seen);                                               \
            }                                                                                      \
            exponentials_##suffix(line, seen, lse);                                                \
            clear_##suffix(line, seen, t->columns);                                                \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void grade_##suffix(const mt__attention_tile *t)                                        \
    {                                                                                              \
        T scale = (T)t->scale;                                                                     \
        for (int64_t r = 0; r < t->rows; r++) {                                                    \
            T *restrict line = (T *)t->scores + r * t->line;                                       \
            const T *restrict grad = (const T *)t->grad + r * t->line;                             \
            T delta = ((const T *)t->delta)[r];                                                    \
            int64_t seen = seen_by(t, r);                                                          \
            for (int64_t i = 0; i < seen; i++) {                                                   \
                line[i] = line[i] * (grad[i] - delta) * scale;                                     \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    const mt__attention_loops MT_ISA(mt__attention_##suffix) = {                                   \
        .softmax = softmax_##suffix, .repeat = repeat_##suffix, .grade = grade_##suffix}

MT_I_DEFINE_ATTENTION(float, f32, mt__exp_f32);
MT_I_DEFINE_ATTENTION(double, f64, mt__exp_f64);
