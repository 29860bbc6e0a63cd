/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers for tests of pointwise kernels, see pointwise_values.h.
 */
#include "support/pointwise_values.h"

#include "harness/mt_test.h"
#include "kernels/isa/isa.h"

#include <float.h>
#include <math.h>
#include <string.h>

const pointwise_shape pointwise_shapes[] = {
    {0, {0}},    {2, {0, 3}},    {1, {1}},         {1, {7}},      {1, {2100}},
    {2, {5, 3}}, {3, {3, 1, 4}}, {3, {2, 3, 130}}, {2, {40, 60}}, {4, {3, 2, 5, 9}},
};
const int pointwise_shape_count = sizeof pointwise_shapes / sizeof pointwise_shapes[0];

void pointwise_each_isa(void (*check)(void))
{
    mt__isa best = mt__isa_level();
    for (int level = MT_ISA_BASE; level <= (int)best; level++) {
        mt__isa_limit((mt__isa)level);
        check();
    }
    mt__isa_limit(best);
}

static double special_real(uint64_t bits)
{
    static const double specials[] = {
        0.0,   -0.0,   1.0,   -1.0, 0.5,     -0.5,      2.0,      1.5,       2.5,    -2.5,     3.0,
        -3.0,  10.0,   -20.0, 88.0, -88.0,   89.5,      -100.0,   1e-40,     -3e-39, 1e-30,    1e10,
        -1e10, 3.4e38, -3e38, 0.25, 8388609, 1.0000001, INFINITY, -INFINITY, NAN,    0.9999999};
    return specials[bits % (sizeof specials / sizeof specials[0])];
}

static double any_real(uint64_t bits)
{
    double unit = (double)(bits >> 12) * 0x1p-52;
    switch (bits & 3U) {
    case 0: return special_real(bits >> 2);
    case 1: return unit * 8 - 4;
    case 2: return floor(unit * 20 - 10);
    default: return ldexp((bits & 4U) != 0 ? unit : -unit, (int)(bits >> 3 & 31U) - 16);
    }
}

static int64_t any_integer(uint64_t bits)
{
    static const int64_t specials[] = {0,         1,         -1,        2,         -2,  7,  -7,
                                       INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX, 255, 128};
    switch (bits & 3U) {
    case 0: return specials[(bits >> 2) % (sizeof specials / sizeof specials[0])];
    case 1: return (int64_t)(bits >> 2);
    default: return (int64_t)((bits >> 2) % 25) - 12;
    }
}

void pointwise_put(const mt_array *array, int64_t i, uint64_t *seed)
{
    uint64_t bits = mt_test_random(seed);
    int64_t at = strided_offset(array, i);
    switch (array->dtype) {
    case MT_DTYPE_BOOL: ((uint8_t *)array->data)[at] = bits & 1U; return;
    case MT_DTYPE_U8: ((uint8_t *)array->data)[at] = (uint8_t)any_integer(bits); return;
    case MT_DTYPE_I32: ((int32_t *)array->data)[at] = (int32_t)any_integer(bits); return;
    case MT_DTYPE_I64: ((int64_t *)array->data)[at] = any_integer(bits); return;
    case MT_DTYPE_F32: ((float *)array->data)[at] = (float)any_real(bits); return;
    case MT_DTYPE_F64: ((double *)array->data)[at] = any_real(bits); return;
    case MT_DTYPE_I8:
    case MT_DTYPE_I16:
    case MT_DTYPE_U16:
    case MT_DTYPE_U32:
    case MT_DTYPE_U64: strided_set_integer(array, i, any_integer(bits)); return;
    default: ((uint16_t *)array->data)[at] = (uint16_t)bits; return;
    }
}

void pointwise_fill(const mt_array *array, uint64_t *seed)
{
    for (int64_t i = 0, count = strided_numel(array); i < count; i++) {
        pointwise_put(array, i, seed);
    }
}

bool pointwise_is_real(uint32_t dtype)
{
    return mt_dtype_category((mt_dtype)dtype) == MT_CATEGORY_REAL;
}

bool pointwise_is_unsigned(uint32_t dtype)
{
    return dtype == MT_DTYPE_U16 || dtype == MT_DTYPE_U32 || dtype == MT_DTYPE_U64;
}

int64_t pointwise_integer(const mt_array *array, int64_t i)
{
    return strided_get_integer(array, i);
}

long double pointwise_real(const mt_array *array, int64_t i)
{
    return (long double)strided_get(array, i);
}

/* Distance in units of a type with that many fraction bits and that smallest exponent. */
static double units_off(long double got, long double want, int bits, int smallest)
{
    if (isnan(want) || isnan(got)) {
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    }
    if (isinf(got) || isinf(want)) {
        return got == want ? 0 : INFINITY;
    }
    if (got == want) {
        return got == 0 && signbit(got) != signbit(want) ? 1 : 0;
    }
    int exponent = want == 0 ? smallest : ilogbl(want) - bits;
    return (double)(fabsl(got - want) / ldexpl(1, exponent < smallest ? smallest : exponent));
}

double pointwise_ulps(const mt_array *array, int64_t i, long double want)
{
    long double got = pointwise_real(array, i);
    if (array->dtype == MT_DTYPE_F32) {
        /* What rounds to infinity is infinite; the largest finite number is one off. */
        if (isinf((float)want) && !isinf(want) && !isinf(got)) {
            return (double)((fabsl(want) - fabsl(got)) / 0x1p104L);
        }
        return units_off(got, isinf((float)want) ? (long double)(float)want : want, 23, -149);
    }
    return units_off(got, isinf((double)want) ? (long double)(double)want : want, 52, -1074);
}

int64_t pointwise_wrap(uint32_t dtype, int64_t value)
{
    switch (dtype) {
    case MT_DTYPE_BOOL: return value != 0;
    case MT_DTYPE_U8: return (uint8_t)value;
    case MT_DTYPE_I8: return (int8_t)value;
    case MT_DTYPE_I16: return (int16_t)value;
    case MT_DTYPE_U16: return (uint16_t)value;
    case MT_DTYPE_I32: return (int32_t)value;
    case MT_DTYPE_U32: return (uint32_t)value;
    default: return value;
    }
}
