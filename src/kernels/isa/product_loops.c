/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products by plain loops, compiled for each instruction set: integers, and everything on
 * machines without a BLAS.
 *
 *     for each panel of b, [DEPTH, WIDTH], copied to the stack with unit stride
 *         for each ROWS rows of a
 *             a tile of sums, [ROWS, WIDTH], which the compiler keeps in registers
 *
 *   PL1  Every element of c is a sum over k in rising order within panels of DEPTH, or in WIDTH
 *        lanes where b is one contiguous column: its place in the matrix does not change its value.
 *   PL2  Integers wrap.
 */
#include "kernels/isa/product_loops.h"

#include "kernels/isa/isa.h"

#include <string.h>

enum {
    ROWS = 4,
    WIDTH = 32,
    DEPTH = 256
};

/* SUM is unsigned for integers, wide enough that T wraps as it should. */
#define MT_I_DEFINE_PRODUCT(name, T, SUM, ALPHA, BETA)                                           \
    static void name##_pack(const mt__product *p, int64_t k0, int64_t depth, int64_t j0,         \
                            SUM panel[DEPTH][WIDTH])                                             \
    {                                                                                            \
        int64_t width = p->n - j0 < WIDTH ? p->n - j0 : WIDTH;                                   \
        for (int64_t k = 0; k < depth; k++) {                                                    \
            const T *from = (const T *)p->b + (k0 + k) * p->b_row + j0 * p->b_col;               \
            for (int64_t j = 0; j < width; j++) {                                                \
                panel[k][j] = (SUM)from[j * p->b_col];                                           \
            }                                                                                    \
            for (int64_t j = width; j < WIDTH; j++) {                                            \
                panel[k][j] = 0;                                                                 \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    static void name##_tile(const mt__product *p, const T *const a[ROWS], int64_t depth,         \
                            SUM panel[DEPTH][WIDTH], SUM sums[ROWS][WIDTH])                      \
    {                                                                                            \
        SUM tile[ROWS][WIDTH];                                                                   \
        memset(tile, 0, sizeof tile);                                                            \
        for (int64_t k = 0; k < depth; k++) {                                                    \
            for (int r = 0; r < ROWS; r++) {                                                     \
                SUM x = (SUM)a[r][k * p->a_col];                                                 \
                for (int j = 0; j < WIDTH; j++) {                                                \
                    tile[r][j] += x * panel[k][j];                                               \
                }                                                                                \
            }                                                                                    \
        }                                                                                        \
        memcpy(sums, tile, sizeof tile);                                                         \
    }                                                                                            \
                                                                                                 \
    static void name##_store(const mt__product *p, int64_t i, int64_t j0, const SUM sums[WIDTH], \
                             SUM beta)                                                           \
    {                                                                                            \
        int64_t width = p->n - j0 < WIDTH ? p->n - j0 : WIDTH;                                   \
        T *to = (T *)p->c + i * p->c_row + j0 * p->c_col;                                        \
        SUM alpha = (SUM)(ALPHA);                                                                \
        for (int64_t j = 0; j < width; j++) {                                                    \
            T *place = &to[j * p->c_col];                                                        \
            SUM before = beta == 0 ? 0 : beta * (SUM)*place;                                     \
            *place = (T)(before + alpha * sums[j]);                                              \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    static void name##_panel(const mt__product *p, int64_t k0, int64_t j0)                       \
    {                                                                                            \
        SUM panel[DEPTH][WIDTH];                                                                 \
        int64_t depth = p->k - k0 < DEPTH ? p->k - k0 : DEPTH;                                   \
        name##_pack(p, k0, depth, j0, panel);                                                    \
        SUM beta = k0 == 0 ? (SUM)(BETA) : 1;                                                    \
        for (int64_t i = 0; i < p->m; i += ROWS) {                                               \
            const T *a[ROWS];                                                                    \
            for (int64_t r = 0; r < ROWS; r++) {                                                 \
                int64_t row = i + r < p->m ? i + r : i;                                          \
                a[r] = (const T *)p->a + row * p->a_row + k0 * p->a_col;                         \
            }                                                                                    \
            SUM sums[ROWS][WIDTH];                                                               \
            name##_tile(p, a, depth, panel, sums);                                               \
            for (int64_t r = 0; r < ROWS && i + r < p->m; r++) {                                 \
                name##_store(p, i + r, j0, sums[r], beta);                                       \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    /* Contiguous rows times one contiguous column. */                                           \
    static void name##_rows(const mt__product *p)                                                \
    {                                                                                            \
        const T *b = p->b;                                                                       \
        for (int64_t i = 0; i < p->m; i++) {                                                     \
            const T *a = (const T *)p->a + i * p->a_row;                                         \
            SUM lanes[WIDTH];                                                                    \
            memset(lanes, 0, sizeof lanes);                                                      \
            int64_t k = 0;                                                                       \
            for (; k + WIDTH <= p->k; k += WIDTH) {                                              \
                for (int j = 0; j < WIDTH; j++) {                                                \
                    lanes[j] += (SUM)a[k + j] * (SUM)b[k + j];                                   \
                }                                                                                \
            }                                                                                    \
            for (int j = 0; k < p->k; k++, j++) {                                                \
                lanes[j] += (SUM)a[k] * (SUM)b[k];                                               \
            }                                                                                    \
            SUM sum = 0;                                                                         \
            for (int j = 0; j < WIDTH; j++) {                                                    \
                sum += lanes[j];                                                                 \
            }                                                                                    \
            T *c = (T *)p->c + i * p->c_row;                                                     \
            SUM beta = (SUM)(BETA);                                                              \
            *c = (T)((beta == 0 ? 0 : beta * (SUM)*c) + (SUM)(ALPHA)*sum);                       \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    static void name(const mt__product *p)                                                       \
    {                                                                                            \
        if (p->n == 1 && p->a_col == 1 && p->b_row == 1) {                                       \
            name##_rows(p);                                                                      \
            return;                                                                              \
        }                                                                                        \
        for (int64_t j0 = 0; j0 < p->n; j0 += WIDTH) {                                           \
            int64_t k0 = 0;                                                                      \
            do {                                                                                 \
                name##_panel(p, k0, j0);                                                         \
                k0 += DEPTH;                                                                     \
            } while (k0 < p->k);                                                                 \
        }                                                                                        \
    }

MT_I_DEFINE_PRODUCT(product_u8, uint8_t, uint32_t, p->int_alpha, p->int_beta)
MT_I_DEFINE_PRODUCT(product_i32, int32_t, uint32_t, p->int_alpha, p->int_beta)
MT_I_DEFINE_PRODUCT(product_i64, int64_t, uint64_t, p->int_alpha, p->int_beta)
MT_I_DEFINE_PRODUCT(product_f32, float, float, p->alpha, p->beta)
MT_I_DEFINE_PRODUCT(product_f64, double, double, p->alpha, p->beta)

const mt__product_loops MT_ISA(mt__product_loops) = {
    .u8 = product_u8,
    .i32 = product_i32,
    .i64 = product_i64,
    .f32 = product_f32,
    .f64 = product_f64,
};
