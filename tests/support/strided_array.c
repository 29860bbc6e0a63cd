/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays for tests of kernels, see strided_array.h.
 */
#include "support/strided_array.h"

#include "harness/mt_test.h"

#include <stdlib.h>
#include <string.h>

enum {
    MARGIN = 64,
    PATTERN = 0xA5
};

static void set_strides(strided_array *a, strided_layout layout)
{
    int32_t n = a->array.n_dims;
    int64_t next = 1;
    for (int32_t k = 0; k < n; k++) {
        int32_t dim = n - 1 - k;
        if (layout == LAYOUT_TRANSPOSED) {
            dim = k;
        } else if (layout == LAYOUT_ROTATED) {
            dim = k == n - 1 ? n - 1 : n - 2 - k;
        }
        int64_t step = 1;
        if (layout == LAYOUT_SLICED) {
            step = dim == n - 1 ? 3 : dim == 0 ? 2 : 1;
        }
        a->strides[dim] = next * step;
        next *= (a->sizes[dim] == 0 ? 1 : a->sizes[dim]) * step;
    }
    if (layout == LAYOUT_REPEATED && n > 0) {
        a->strides[0] = 0;
    }
}

static void take_memory(strided_array *a)
{
    size_t size = mt_dtype_size((mt_dtype)a->array.dtype);
    int64_t last = 0;
    for (int32_t i = 0; i < a->array.n_dims; i++) {
        last += a->sizes[i] == 0 ? 0 : (a->sizes[i] - 1) * a->strides[i];
    }
    a->bytes = (size_t)(last + 1) * size + 2 * MARGIN;
    a->memory = malloc(a->bytes);
    a->used = calloc(a->bytes, 1);
    REQUIRE(a->memory != NULL && a->used != NULL);
    memset(a->memory, PATTERN, a->bytes);
    a->array.data = a->memory + MARGIN;
    for (int64_t i = 0, count = strided_numel(&a->array); i < count; i++) {
        memset(a->used + MARGIN + (size_t)strided_offset(&a->array, i) * size, 1, size);
    }
}

static void init(strided_array *a, mt_dtype dtype, const int64_t *sizes, int32_t n_dims)
{
    memset(a, 0, sizeof *a);
    for (int32_t i = 0; i < n_dims; i++) {
        a->sizes[i] = sizes[i];
    }
    a->array = (mt_array){
        .sizes = a->sizes, .strides = a->strides, .n_dims = n_dims, .dtype = (uint32_t)dtype};
}

void strided_array_init(strided_array *a, mt_dtype dtype, const int64_t *sizes, int32_t n_dims,
                        strided_layout layout)
{
    init(a, dtype, sizes, n_dims);
    set_strides(a, layout);
    take_memory(a);
}

void strided_array_init_reduced(strided_array *a, mt_dtype dtype, const int64_t *sizes,
                                int32_t n_dims, uint32_t reduced)
{
    init(a, dtype, sizes, n_dims);
    int64_t next = 1;
    for (int32_t i = n_dims; i-- > 0;) {
        bool kept = (reduced >> i & 1) == 0;
        a->strides[i] = kept ? next : 0;
        next *= kept && sizes[i] != 0 ? sizes[i] : 1;
    }
    take_memory(a);
    /* A reduction of nothing has a result all the same. */
    memset(a->used + MARGIN, 1, a->bytes - 2 * MARGIN);
}

void strided_array_fini(strided_array *a)
{
    size_t touched = 0;
    for (size_t i = 0; i < a->bytes; i++) {
        touched += a->used[i] == 0 && a->memory[i] != PATTERN;
    }
    CHECK_EQ_U64(touched, 0);
    free(a->memory);
    free(a->used);
}

int64_t strided_numel(const mt_array *array)
{
    int64_t numel = 1;
    for (int32_t i = 0; i < array->n_dims; i++) {
        numel *= array->sizes[i];
    }
    return numel;
}

int64_t strided_offset(const mt_array *array, int64_t i)
{
    int64_t offset = 0;
    for (int32_t dim = array->n_dims; dim-- > 0;) {
        offset += i % array->sizes[dim] * array->strides[dim];
        i /= array->sizes[dim];
    }
    return offset;
}

double strided_get(const mt_array *array, int64_t i)
{
    int64_t at = strided_offset(array, i);
    switch (array->dtype) {
    case MT_DTYPE_F32: return (double)((const float *)array->data)[at];
    case MT_DTYPE_F64: return ((const double *)array->data)[at];
    case MT_DTYPE_U64: return (double)((const uint64_t *)array->data)[at];
    default: return (double)strided_get_integer(array, i);
    }
}

int64_t strided_get_integer(const mt_array *array, int64_t i)
{
    int64_t at = strided_offset(array, i);
    switch (array->dtype) {
    case MT_DTYPE_BOOL:
    case MT_DTYPE_U8: return ((const uint8_t *)array->data)[at];
    case MT_DTYPE_I8: return ((const int8_t *)array->data)[at];
    case MT_DTYPE_I16: return ((const int16_t *)array->data)[at];
    case MT_DTYPE_U16: return ((const uint16_t *)array->data)[at];
    case MT_DTYPE_I32: return ((const int32_t *)array->data)[at];
    case MT_DTYPE_U32: return ((const uint32_t *)array->data)[at];
    default: return ((const int64_t *)array->data)[at];
    }
}

void strided_set_integer(const mt_array *array, int64_t i, int64_t value)
{
    size_t bytes = mt_dtype_size((mt_dtype)array->dtype);
    memcpy((char *)array->data + (size_t)strided_offset(array, i) * bytes, &value, bytes);
}

void strided_set(const mt_array *array, int64_t i, double value)
{
    int64_t at = strided_offset(array, i);
    switch (array->dtype) {
    case MT_DTYPE_BOOL: ((uint8_t *)array->data)[at] = value != 0; break;
    case MT_DTYPE_U8: ((uint8_t *)array->data)[at] = (uint8_t)(int64_t)value; break;
    case MT_DTYPE_I32: ((int32_t *)array->data)[at] = (int32_t)value; break;
    case MT_DTYPE_I64: ((int64_t *)array->data)[at] = (int64_t)value; break;
    case MT_DTYPE_F32: ((float *)array->data)[at] = (float)value; break;
    case MT_DTYPE_I8:
    case MT_DTYPE_I16:
    case MT_DTYPE_U16:
    case MT_DTYPE_U32:
    case MT_DTYPE_U64: strided_set_integer(array, i, (int64_t)value); break;
    default: ((double *)array->data)[at] = value; break;
    }
}

void strided_fill(const mt_array *array, uint64_t *seed)
{
    bool real = mt_dtype_category((mt_dtype)array->dtype) == MT_CATEGORY_REAL;
    for (int64_t i = 0, count = strided_numel(array); i < count; i++) {
        uint64_t bits = mt_test_random(seed);
        double value = (double)(bits >> 11) * 0x1p-53 * 4 - 2;
        if (!real) {
            value = (double)(bits % 23) - (array->dtype == MT_DTYPE_U8 ? 0 : 11);
            value = array->dtype == MT_DTYPE_BOOL ? (double)(bits % 3 != 0) : value;
        }
        strided_set(array, i, value);
    }
}
