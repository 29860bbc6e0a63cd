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
    [MT_DTYPE_I8] = {"Char", "signed char", "int8_t", 127},
    [MT_DTYPE_I16] = {"Short", "short int", "int16_t", 32767},
    [MT_DTYPE_U16] = {"UInt16", "short unsigned int", "uint16_t", 65535},
    [MT_DTYPE_U32] = {"UInt32", "unsigned int", "uint32_t", 4294967295.0},
    [MT_DTYPE_U64] = {"UInt64", "long unsigned int", "uint64_t", 18446744073709551615.0},
    [MT_DTYPE_C64] = {"ComplexFloat", "c10::complex<float>", "c10::complex<float>", 0x1.FFFFFEp127},
    [MT_DTYPE_C128] = {"ComplexDouble", "c10::complex<double>", "c10::complex<double>",
                       0x1.FFFFFFFFFFFFFp1023},
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

static bool takes_unsigned(mt_kernel kernel, uint32_t code)
{
    switch (kernel) {
    case MT_KERNEL_BINARY:
        return code == MT_BINARY_MUL || code == MT_BINARY_EQ || code == MT_BINARY_NE ||
               code == MT_BINARY_BITWISE_AND || code == MT_BINARY_BITWISE_OR ||
               code == MT_BINARY_BITWISE_XOR;
    case MT_KERNEL_TERNARY: return code == MT_TERNARY_WHERE;
    case MT_KERNEL_REDUCE:
        return code == MT_REDUCE_ALL || code == MT_REDUCE_ANY || code == MT_REDUCE_COUNT_NONZERO;
    case MT_KERNEL_SCATTER: return code == MT_SCATTER_SET;
    case MT_KERNEL_INDEX_PUT: return code == 0;
    case MT_KERNEL_FILL:
    case MT_KERNEL_COPY:
    case MT_KERNEL_ARANGE:
    case MT_KERNEL_EYE:
    case MT_KERNEL_TRIANGLE:
    case MT_KERNEL_INDEX_SELECT:
    case MT_KERNEL_GATHER:
    case MT_KERNEL_INDEX:
    case MT_KERNEL_NONZERO:
    case MT_KERNEL_MASKED_SELECT:
    case MT_KERNEL_MASKED_SCATTER:
    case MT_KERNEL_SORT:
    case MT_KERNEL_TOPK:
    case MT_KERNEL_CAT:
    case MT_KERNEL_RANDOM: return true;
    default: return false;
    }
}

int mt__check_unsigned(const mt__call *call, mt_kernel kernel, uint32_t code, mt_dtype dtype)
{
    bool is_unsigned = dtype == MT_DTYPE_U16 || dtype == MT_DTYPE_U32 || dtype == MT_DTYPE_U64;
    return MT_LIKELY(!is_unsigned) || takes_unsigned(kernel, code)
               ? MT_OK
               : mt__refuse_type(mt__op_name(call), dtype);
}

/* Integers are compared as integers: the largest int64 is not a double. */
static bool integer_fits(int64_t value, mt_dtype dtype)
{
    switch (dtype) {
    case MT_DTYPE_U8: return value >= -255 && value <= 255;
    case MT_DTYPE_I8: return value >= INT8_MIN && value <= INT8_MAX;
    case MT_DTYPE_I16: return value >= INT16_MIN && value <= INT16_MAX;
    case MT_DTYPE_I32: return value >= INT32_MIN && value <= INT32_MAX;
    case MT_DTYPE_U16: return value >= -UINT16_MAX && value <= UINT16_MAX;
    case MT_DTYPE_U32: return value >= -(int64_t)UINT32_MAX && value <= UINT32_MAX;
    case MT_DTYPE_F16: return value >= -65504 && value <= 65504;
    default: return true;
    }
}

/* Of 2^63 or more. */
static bool large_fits(mt_dtype dtype)
{
    return dtype == MT_DTYPE_U64 || dtype == MT_DTYPE_BOOL ||
           (mt_dtype_category(dtype) >= MT_CATEGORY_REAL && dtype != MT_DTYPE_F16);
}

static bool real_fits(double value, mt_dtype dtype)
{
    if (dtype == MT_DTYPE_BOOL) {
        return true;
    }
    if (mt_dtype_category(dtype) >= MT_CATEGORY_REAL) {
        return !isfinite(value) || fabs(value) <= types[dtype].largest;
    }
    if (dtype == MT_DTYPE_I64) {
        return value >= -0x1p63 && value < 0x1p63;
    }
    if (dtype == MT_DTYPE_U64) { /* its largest number is rounded up */
        return value >= 0 && value < 0x1p64;
    }
    bool has_sign = dtype == MT_DTYPE_I8 || dtype == MT_DTYPE_I16 || dtype == MT_DTYPE_I32;
    double smallest = has_sign ? -types[dtype].largest - 1.0 : 0.0;
    return value >= smallest && value <= types[dtype].largest; /* NaN is neither */
}

int mt__number_fits(const mt_scalar *number, mt_dtype dtype)
{
    bool fits = number->kind == MT_KIND_REAL ? real_fits(number->of.real, dtype)
                : number->count != 0         ? large_fits(dtype)
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
    case MT_CATEGORY_REAL:
    case MT_CATEGORY_COMPLEX: return mt_real(mt__scalar_real(number));
    case MT_CATEGORY_BOOL: return mt_bool(real ? number->of.real != 0 : number->of.integer != 0);
    default: break;
    }
    bool inside = real && number->of.real >= -0x1p63 && number->of.real < 0x1p63;
    int64_t integer = !real ? number->of.integer : inside ? (int64_t)number->of.real : INT64_MIN;
    switch (dtype) { /* kernels compute in a wider type */
    case MT_DTYPE_I8: return mt_int((int8_t)integer);
    case MT_DTYPE_I16: return mt_int((int16_t)integer);
    case MT_DTYPE_U16: return mt_int((uint16_t)integer);
    case MT_DTYPE_U32: return mt_int((uint32_t)integer);
    case MT_DTYPE_U64:
        return mt_int(real && number->of.real >= 0x1p63 && number->of.real < 0x1p64
                          ? (int64_t)(uint64_t)number->of.real
                          : integer);
    default: return mt_int(integer);
    }
}
