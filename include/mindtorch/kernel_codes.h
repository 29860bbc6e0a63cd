/* SPDX-License-Identifier: Apache-2.0
 *
 * Members of kernel families: mt_kernel_call.code. kernel_codes.def lists them and says what each
 * does.
 */
#ifndef MINDTORCH_KERNEL_CODES_H
#define MINDTORCH_KERNEL_CODES_H

/** MT_KERNEL_UNARY */
typedef enum mt_unary {
#define MT_I_UNARY(name, cost) MT_UNARY_##name,
#include <mindtorch/kernel_codes.def>
    MT_UNARY_COUNT
} mt_unary;

/** MT_KERNEL_BINARY */
typedef enum mt_binary {
#define MT_I_BINARY(name, cost) MT_BINARY_##name,
#include <mindtorch/kernel_codes.def>
    MT_BINARY_COUNT
} mt_binary;

/** MT_KERNEL_TERNARY */
typedef enum mt_ternary {
#define MT_I_TERNARY(name) MT_TERNARY_##name,
#include <mindtorch/kernel_codes.def>
    MT_TERNARY_COUNT
} mt_ternary;

/** MT_KERNEL_SCATTER: what becomes of an element and the source's. */
typedef enum mt_scatter_mode {
    MT_SCATTER_SET,
    MT_SCATTER_ADD,
    MT_SCATTER_MULTIPLY, /* bool: and */
    MT_SCATTER_LARGER,   /* NaN wins */
    MT_SCATTER_SMALLER,  /* NaN wins */
    MT_SCATTER_COUNT
} mt_scatter_mode;

/** MT_KERNEL_COMPLEX */
typedef enum mt_complex_code {
#define MT_I_COMPLEX(name) MT_COMPLEX_##name,
#include <mindtorch/kernel_codes.def>
    MT_COMPLEX_COUNT
} mt_complex_code;

/** MT_KERNEL_REDUCE */
typedef enum mt_reduce {
#define MT_I_REDUCE(name) MT_REDUCE_##name,
#include <mindtorch/kernel_codes.def>
    MT_REDUCE_COUNT
} mt_reduce;

/** MT_KERNEL_RANDOM */
typedef enum mt_random {
#define MT_I_RANDOM(name) MT_RANDOM_##name,
#include <mindtorch/kernel_codes.def>
    MT_RANDOM_COUNT
} mt_random;

/** MT_KERNEL_LINALG: kernels.def lists the arguments of each. */
typedef enum mt_linalg {
    MT_LINALG_LU,
    MT_LINALG_LU_SOLVE,
    MT_LINALG_PERMUTATION,
    MT_LINALG_CHOLESKY,
    MT_LINALG_CHOLESKY_SOLVE,
    MT_LINALG_CHOLESKY_INVERSE,
    MT_LINALG_TRIANGULAR_SOLVE,
    MT_LINALG_REFLECTORS,
    MT_LINALG_REFLECTED,
    MT_LINALG_EIGEN,
    MT_LINALG_SINGULAR,
    MT_LINALG_LEAST_SQUARES,
    MT_LINALG_EXPONENTIAL,
    MT_LINALG_EIGEN_GENERAL,
    MT_LINALG_COUNT
} mt_linalg;

#endif /* MINDTORCH_KERNEL_CODES_H */
