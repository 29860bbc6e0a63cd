/* SPDX-License-Identifier: Apache-2.0
 *
 * The exponential of a matrix.
 */
#ifndef KERNELS_MATRIX_MATRIX_EXP_H
#define KERNELS_MATRIX_MATRIX_EXP_H

/* out = exp(a), both n x n, column-major without gaps. NaN and infinities give NaN. MT_ENOMEM. */
int mt__matrix_exp(const double *a, int n, double *out);

#endif /* KERNELS_MATRIX_MATRIX_EXP_H */
