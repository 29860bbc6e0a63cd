/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays for tests of kernels, in several layouts, read and written element by element by their
 * row-major number. Every element of the memory around them is filled with a pattern, which
 * strided_array_fini() checks: a kernel that writes past its view is found.
 */
#ifndef TESTS_SUPPORT_STRIDED_ARRAY_H
#define TESTS_SUPPORT_STRIDED_ARRAY_H

#include <mindtorch/backend.h>
#include <mindtorch/tensor.h>

#include <stdbool.h>

typedef enum strided_layout {
    LAYOUT_CONTIGUOUS,
    LAYOUT_TRANSPOSED, /* the first dimension is innermost in memory */
    LAYOUT_SLICED,     /* every third element of the last dimension, every second of the first */
    LAYOUT_ROTATED,    /* the last dimension is outermost */
    LAYOUT_REPEATED,   /* stride 0 in the first dimension: for inputs */
    LAYOUT_COUNT
} strided_layout;

typedef struct strided_array {
    mt_array array; /* what kernels get; sizes and strides point into this struct */
    int64_t sizes[MT_MAX_DIMS], strides[MT_MAX_DIMS];
    unsigned char *memory, *used; /* used: a mark for each byte that belongs to an element */
    size_t bytes;
} strided_array;

/* The struct must stay where it is. */
void strided_array_init(strided_array *a, mt_dtype dtype, const int64_t *sizes, int32_t n_dims,
                        strided_layout layout);
void strided_array_fini(strided_array *a);

/* Makes the array one for results of a reduction: stride 0 where the mask has a bit, and the
 * memory that of the kept dimensions. */
void strided_array_init_reduced(strided_array *a, mt_dtype dtype, const int64_t *sizes,
                                int32_t n_dims, uint32_t reduced);

int64_t strided_numel(const mt_array *array);
/* Offset in elements of element number i. */
int64_t strided_offset(const mt_array *array, int64_t i);
double strided_get(const mt_array *array, int64_t i);
int64_t strided_get_integer(const mt_array *array, int64_t i); /* uint64: its bits */
void strided_set_integer(const mt_array *array, int64_t i, int64_t value);
void strided_set(const mt_array *array, int64_t i, double value);

/* Random elements: reals of about [-2, 2], small integers. */
void strided_fill(const mt_array *array, uint64_t *seed);

#endif /* TESTS_SUPPORT_STRIDED_ARRAY_H */
