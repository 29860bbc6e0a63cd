/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of element types, and numbers as values of them.
 */
#include "mindtorch/ops/type_names.h"

#include "base/fail.h"

#include <math.h>

static const struct {
    const char *title;
    const char *c_name;
    const char *fixed_name; /* of messages about numbers that do not fit */
    double largest;         /* finite */
} types[] = {
    [MT_DTYPE_BOOL] = {"Bool", "bool", "bool", 1},
    [MT_DTYPE_U8] = {"Byte", "unsigned char", "uint8_t", 255},
    [MT_DTYPE_I32] = {"Int", "int", "int", 2147483647.0},
    [MT_DTYPE_I64] = {"Long", "long int", "int64_t", 9223372036854775807.0},
    [MT_DTYPE_F16] = {"Half", "c10::Half", "c10::Half", 65504},
    [MT_DTYPE_BF16] = {"BFloat16", "c10::BFloat16", "c10::BFloat16", 0x1.FEp127},
    [MT_DTYPE_F32] = {"Float", "float", "float", 0x1.FFFFFEp127},
    [MT_DTYPE_F64] = {"Double", "double", "double", 0x1.FFFFFFFFFFFFFp1023},
};
static_assert(MT_COUNT(types) == MT_DTYPE_COUNT, "a name for each type");

const char *mt__type_title(mt_dtype dtype)
{
    return (unsigned)dtype < MT_COUNT(types) ? types[dtype].title : "None";
}

const char *mt__type_in_c(mt_dtype dtype)
{
    return (unsigned)dtype < MT_COUNT(types) ? types[dtype].c_name : "undefined";
}

double mt__type_largest(mt_dtype dtype)
{
    return types[dtype].largest;
}

int mt__refuse_type(const char *kernel, mt_dtype dtype)
{
    return mtb_fail(MT_ENOTSUP, "\"%s\" not implemented for '%s'", kernel, mt__type_title(dtype));
}

/* Integers are compared as integers: the largest int64 is not a double. */
static bool integer_fits(int64_t value, mt_dtype dtype)
{
    switch (dtype) {
    case MT_DTYPE_U8: return value >= -255 && value <= 255;
    case MT_DTYPE_I32: return value >= INT32_MIN && value <= INT32_MAX;
    case MT_DTYPE_F16: return value >= -65504 && value <= 65504;
    default: return true;
    }
}

static bool real_fits(double value, mt_dtype dtype)
{
    if (dtype == MT_DTYPE_BOOL) {
        return true;
    }
    if (mt_dtype_category(dtype) == MT_CATEGORY_REAL) {
        return !isfinite(value) || fabs(value) <= types[dtype].largest;
    }
    if (dtype == MT_DTYPE_I64) {
        return value >= -0x1p63 && value < 0x1p63;
    }
    double smallest = dtype == MT_DTYPE_I32 ? -2147483648.0 : 0.0;
    return value >= smallest && value <= types[dtype].largest; /* NaN is neither */
}

int mt__number_fits(const mt_scalar *number, mt_dtype dtype)
{
    bool fits = number->kind == MT_KIND_REAL ? real_fits(number->of.real, dtype)
                                             : integer_fits(number->of.integer, dtype);
    if (MT_LIKELY(fits)) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME, "value cannot be converted to type %s without overflow",
                    types[dtype].fixed_name);
}

mt_scalar mt__number_as(const mt_scalar *number, mt_dtype dtype)
{
    bool real = number->kind == MT_KIND_REAL;
    switch (mt_dtype_category(dtype)) {
    case MT_CATEGORY_REAL: return mt_real(mt__scalar_real(number));
    case MT_CATEGORY_BOOL: return mt_bool(real ? number->of.real != 0 : number->of.integer != 0);
    default: break;
    }
    if (!real) {
        return mt_int(number->of.integer);
    }
    bool inside = number->of.real >= -0x1p63 && number->of.real < 0x1p63;
    return mt_int(inside ? (int64_t)number->of.real : INT64_MIN);
}
