/* SPDX-License-Identifier: Apache-2.0
 *
 * exp(a) by scaling and squaring: a / 2^s is made small enough for Taylor's series of degree 18,
 * which is exact to double precision for norms up to 1, and the result is squared s times. The
 * series is evaluated in powers of a^3, a matrix product for every three terms.
 */
#include "kernels/matrix/matrix_exp.h"

#include "base/fail.h"
#include "kernels/matrix/product.h"
#include "kernels/walk/scratch.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    TERMS = 18,       /* 1 / 19! is below half a unit in the last place of 1 */
    MOST_SQUARES = 64 /* a norm of 2^64: the result does not fit in any case */
};

static int multiply(const double *a, const double *b, int n, double *c)
{
    const mt__product product = {.m = n,
                                 .n = n,
                                 .k = n,
                                 .a = a,
                                 .a_row = 1,
                                 .a_col = n,
                                 .b = b,
                                 .b_row = 1,
                                 .b_col = n,
                                 .c = c,
                                 .c_row = 1,
                                 .c_col = n,
                                 .alpha = 1};
    return mt__multiply(MT_DTYPE_F64, &product);
}

/* The largest sum of a column; NaN where there is one. */
static double norm_of(const double *a, int n)
{
    double largest = 0;
    for (int64_t c = 0; c < n; c++) {
        double sum = 0;
        for (int64_t r = 0; r < n; r++) {
            sum += fabs(a[c * n + r]);
        }
        largest = sum > largest || isnan(sum) ? sum : largest;
    }
    return largest;
}

/* out = out + (identity f[0] + a f[1] + square f[2]), f: 1 / k! from k on. */
static void add_terms(double *out, const double *a, const double *square, int n, int k)
{
    double f[3];
    for (int i = 0; i < 3; i++) {
        f[i] = 1 / tgamma(k + i + 1.0);
    }
    for (int64_t i = 0; i < (int64_t)n * n; i++) {
        out[i] += a[i] * f[1] + square[i] * f[2];
    }
    for (int64_t i = 0; i < n; i++) {
        out[i * n + i] += f[0];
    }
}

int mt__matrix_exp(const double *a, int n, double *out)
{
    size_t count = (size_t)n * (size_t)n;
    double norm = norm_of(a, n);
    if (n == 0) {
        return 0;
    }
    if (!isfinite(norm)) {
        for (size_t i = 0; i < count; i++) {
            out[i] = NAN;
        }
        return 0;
    }
    double *memory = mt__scratch_take(4 * count, sizeof(double));
    if (memory == NULL) {
        return mtb_fail(MT_ENOMEM, "matrix_exp: no memory for matrices of %d rows", n);
    }
    double *scaled = memory;
    double *square = memory + count;
    double *cube = memory + 2 * count;
    double *other = memory + 3 * count;
    int squares = norm > 1 ? (int)ceil(log2(norm)) : 0;
    squares = squares < MOST_SQUARES ? squares : MOST_SQUARES;
    for (size_t i = 0; i < count; i++) {
        scaled[i] = ldexp(a[i], -squares);
    }
    int status = multiply(scaled, scaled, n, square);
    status = status == 0 ? multiply(square, scaled, n, cube) : status;
    memset(out, 0, count * sizeof(double));
    for (int k = TERMS; k >= 0 && status == 0; k -= 3) { /* Horner's rule in the cube */
        if (k < TERMS) {
            status = multiply(out, cube, n, other);
            memcpy(out, other, count * sizeof(double));
        }
        add_terms(out, scaled, square, n, k);
    }
    for (int i = 0; i < squares && status == 0; i++) {
        status = multiply(out, out, n, other);
        memcpy(out, other, count * sizeof(double));
    }
    mt__scratch_give(memory);
    return status;
}
