/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of pointwise kernels share: elements with many special numbers among them, the layouts
 * and shapes to try, and the error of a result.
 */
#ifndef TESTS_SUPPORT_POINTWISE_VALUES_H
#define TESTS_SUPPORT_POINTWISE_VALUES_H

#include "support/strided_array.h"

/* Shapes: 0-d, empty, single, rows shorter and longer than what kernels pack, sizes of 1 between.
 */
typedef struct pointwise_shape {
    int32_t n_dims;
    int64_t sizes[4];
} pointwise_shape;

extern const pointwise_shape pointwise_shapes[];
extern const int pointwise_shape_count;

/* Runs `check` at every level of instruction set that this machine has. */
void pointwise_each_isa(void (*check)(void));

/* Specials, small whole numbers and numbers of all magnitudes. */
void pointwise_fill(const mt_array *array, uint64_t *seed);
void pointwise_put(const mt_array *array, int64_t i, uint64_t *seed);

/* Whether elements are real numbers. */
bool pointwise_is_real(uint32_t dtype);

/* uint16, uint32, uint64, which few codes are for. */
bool pointwise_is_unsigned(uint32_t dtype);

int64_t pointwise_integer(const mt_array *array, int64_t i);
long double pointwise_real(const mt_array *array, int64_t i);

/* How many units in the last place of its type the element is off; two NaN are equal, zeros of
 * different sign are one apart. */
double pointwise_ulps(const mt_array *array, int64_t i, long double want);

/* An integer result cut to the type, as it wraps. */
int64_t pointwise_wrap(uint32_t dtype, int64_t value);

#endif /* TESTS_SUPPORT_POINTWISE_VALUES_H */
