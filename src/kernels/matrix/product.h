/* SPDX-License-Identifier: Apache-2.0
 *
 * One matrix product on the calling thread: c = alpha a b + beta c. Other kernels (convolutions,
 * attention) build on it.
 *
 * The choice of library, single precision, measured on a Zen 4 core (GFLOP/s, a peak of about 118):
 *
 *     size                 16   32   64  128  256  512  1024     32x784x256
 *     OpenBLAS 0.3.21      87  105  114  100  104  104   104             90
 *     oneDNN 2.6           24   77   98  113  112  114   111            112
 *
 * so oneDNN computes products that are large in every dimension, OpenBLAS the others and double
 * precision, and our own loop (product_loops.c) integers, and everything if neither library is
 * found.
 */
#ifndef KERNELS_MATRIX_PRODUCT_H
#define KERNELS_MATRIX_PRODUCT_H

#include <mindtorch/dtype.h>

#include <stdbool.h>
#include <stdint.h>

/* Strides in elements, of any value; c must not overlap a or b. */
typedef struct mt__product {
    int64_t m, n, k;
    const void *a; /* [m, k] */
    int64_t a_row, a_col;
    const void *b; /* [k, n] */
    int64_t b_row, b_col;
    void *c; /* [m, n] */
    int64_t c_row, c_col;
    double alpha, beta;          /* beta 0: what is in c does not matter, NaN included */
    int64_t int_alpha, int_beta; /* integers use these */
} mt__product;

/* float32, float64, int32, int64, uint8; bfloat16 where mt__bf16_suits(), MT_ENOTSUP where oneDNN
 * refuses. MT_ENOMEM: a copy with unit strides could not be made. */
int mt__multiply(mt_dtype dtype, const mt__product *product);

/* Whether products of bfloat16 as large as this one run as such. mt__bf16_multiply() false: this
 * one does not; c may have been written. */
bool mt__bf16_suits(const mt__product *product);
bool mt__bf16_multiply(const mt__product *product);

/* Whether OpenBLAS is installed. `allowed` false acts as if it were not, for tests. */
bool mt__openblas_here(void);
void mt__openblas_allow(bool allowed);

/* Stores the address of one of its functions; false: it has none of this name. */
bool mt__openblas_find(const char *name, void *slot);

/* OpenBLAS, which is here, starts no threads from now on. */
void mt__openblas_one_thread(void);

#endif /* KERNELS_MATRIX_PRODUCT_H */
