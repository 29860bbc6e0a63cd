/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements as Python's numbers. See element_codec.h.
 */
#include "tensors/data/element_codec.h"

#include <math.h>
#include <string.h>

static const char *const titles[MT_DTYPE_COUNT] = {
    [MT_DTYPE_BOOL] = "torch.BoolTensor",
    [MT_DTYPE_U8] = "torch.ByteTensor",
    [MT_DTYPE_I32] = "torch.IntTensor",
    [MT_DTYPE_I64] = "torch.LongTensor",
    [MT_DTYPE_F16] = "torch.HalfTensor",
    [MT_DTYPE_BF16] = "torch.BFloat16Tensor",
    [MT_DTYPE_F32] = "torch.FloatTensor",
    [MT_DTYPE_F64] = "torch.DoubleTensor",
    [MT_DTYPE_I8] = "torch.CharTensor",
    [MT_DTYPE_I16] = "torch.ShortTensor",
    [MT_DTYPE_U16] = "torch.UInt16Tensor",
    [MT_DTYPE_U32] = "torch.UInt32Tensor",
    [MT_DTYPE_U64] = "torch.UInt64Tensor",
    [MT_DTYPE_C64] = "torch.ComplexFloatTensor",
    [MT_DTYPE_C128] = "torch.ComplexDoubleTensor",
};

const char *element_type_title(mt_dtype dtype)
{
    return dtype < MT_DTYPE_COUNT ? titles[dtype] : "torch.Tensor";
}

/* ---- 16-bit floats -------------------------------------------------------------------------- */

static uint32_t float_bits(float value)
{
    uint32_t bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float bits_float(uint32_t bits)
{
    float value = 0;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* To the nearest, ties to even. */
static uint16_t to_bfloat16(double number)
{
    float value = (float)number;
    uint32_t bits = float_bits(value);
    if (isnan(value)) {
        return 0x7FC0;
    }
    return (uint16_t)((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

/* CPython's own packing is to the nearest too, but refuses what is too large. */
static int to_float16(double number, uint16_t *half)
{
    float value = (float)number;
    if (isnan(value)) {
        *half = 0x7E00;
        return 0;
    }
    if (fabsf(value) >= 65520.0F) {
        *half = (uint16_t)(signbit(value) ? 0xFC00 : 0x7C00);
        return 0;
    }
    return PyFloat_Pack2((double)value, (char *)half, PY_LITTLE_ENDIAN);
}

/* ---- storing -------------------------------------------------------------------------------- */

static int refuse(mt_dtype dtype)
{
    PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type %s without overflow",
                 mt_dtype_name(dtype));
    return -1;
}

/* Integer types of less than 8 bytes. torch lets negative numbers wrap into unsigned ones if their
 * size fits. */
static const struct {
    int64_t least;
    int64_t most;
} integer_ranges[MT_DTYPE_COUNT] = {
    [MT_DTYPE_U8] = {-UINT8_MAX, UINT8_MAX}, [MT_DTYPE_I8] = {INT8_MIN, INT8_MAX},
    [MT_DTYPE_I16] = {INT16_MIN, INT16_MAX}, [MT_DTYPE_U16] = {-UINT16_MAX, UINT16_MAX},
    [MT_DTYPE_I32] = {INT32_MIN, INT32_MAX}, [MT_DTYPE_U32] = {-(int64_t)UINT32_MAX, UINT32_MAX},
};

static int store_integer(void *place, mt_dtype dtype, int64_t number)
{
    size_t bytes = mt_dtype_size(dtype);
    if (bytes < sizeof(number) &&
        (number < integer_ranges[dtype].least || number > integer_ranges[dtype].most)) {
        return refuse(dtype);
    }
    memcpy(place, &number, bytes); /* its low bytes */
    return 0;
}

static int store_real(void *place, mt_dtype dtype, double number)
{
    uint16_t half = 0;
    if (dtype == MT_DTYPE_F64) {
        memcpy(place, &number, sizeof(number));
        return 0;
    }
    if (dtype == MT_DTYPE_F32) {
        float value = (float)number;
        memcpy(place, &value, sizeof(value));
        return 0;
    }
    if (dtype == MT_DTYPE_BF16) {
        half = to_bfloat16(number);
    } else if (to_float16(number, &half) != 0) {
        return -1;
    }
    memcpy(place, &half, sizeof(half));
    return 0;
}

int element_store_complex(void *place, mt_dtype dtype, double real, double imag)
{
    mt_dtype part = dtype == MT_DTYPE_C64 ? MT_DTYPE_F32 : MT_DTYPE_F64;
    return store_real(place, part, real) != 0 ||
                   store_real((char *)place + mt_dtype_size(part), part, imag) != 0
               ? -1
               : 0;
}

int element_store(void *place, mt_dtype dtype, const mt_scalar *number)
{
    bool real = number->kind == MT_KIND_REAL;
    if (dtype == MT_DTYPE_BOOL) {
        uint8_t byte = real ? number->of.real != 0.0 : number->of.integer != 0;
        memcpy(place, &byte, sizeof(byte));
        return 0;
    }
    if (mt_dtype_category(dtype) == MT_CATEGORY_COMPLEX) {
        return element_store_complex(place, dtype,
                                     real ? number->of.real : (double)number->of.integer, 0);
    }
    if (mt_dtype_category(dtype) == MT_CATEGORY_REAL) {
        return store_real(place, dtype, real ? number->of.real : (double)number->of.integer);
    }
    if (!real) {
        return store_integer(place, dtype, number->of.integer);
    }
    if (dtype == MT_DTYPE_U64 && number->of.real >= 0x1p63 && number->of.real < 0x1p64) {
        return store_integer(place, dtype, (int64_t)(uint64_t)number->of.real);
    }
    /* The bounds are exact as doubles; NaN fails both. */
    if (!(number->of.real >= -0x1p63 && number->of.real < 0x1p63)) {
        return refuse(dtype);
    }
    return store_integer(place, dtype, (int64_t)number->of.real);
}

/* ---- loading -------------------------------------------------------------------------------- */

static PyObject *load_real(const void *place, mt_dtype dtype)
{
    double number = 0;
    if (dtype == MT_DTYPE_F64) {
        memcpy(&number, place, sizeof(number));
    } else if (dtype == MT_DTYPE_F32) {
        float value = 0;
        memcpy(&value, place, sizeof(value));
        number = (double)value;
    } else {
        uint16_t half = 0;
        memcpy(&half, place, sizeof(half));
        if (dtype == MT_DTYPE_BF16) {
            number = (double)bits_float((uint32_t)half << 16);
        } else {
            number = PyFloat_Unpack2((const char *)place, PY_LITTLE_ENDIAN);
        }
    }
    return PyFloat_FromDouble(number);
}

PyObject *element_load(const void *place, mt_dtype dtype)
{
    if (dtype == MT_DTYPE_C64) {
        float parts[2];
        memcpy(parts, place, sizeof(parts));
        return PyComplex_FromDoubles((double)parts[0], (double)parts[1]);
    }
    if (dtype == MT_DTYPE_C128) {
        double parts[2];
        memcpy(parts, place, sizeof(parts));
        return PyComplex_FromDoubles(parts[0], parts[1]);
    }
    if (mt_dtype_category(dtype) == MT_CATEGORY_REAL) {
        return load_real(place, dtype);
    }
    uint8_t byte = 0;
    if (dtype == MT_DTYPE_BOOL) {
        memcpy(&byte, place, sizeof(byte));
        return PyBool_FromLong(byte != 0);
    }
    int64_t number = 0;
    memcpy(&number, place, mt_dtype_size(dtype)); /* its low bytes */
    switch (dtype) {
    case MT_DTYPE_I8: return PyLong_FromLong((int8_t)number);
    case MT_DTYPE_I16: return PyLong_FromLong((int16_t)number);
    case MT_DTYPE_I32: return PyLong_FromLong((int32_t)number);
    case MT_DTYPE_U64: return PyLong_FromUnsignedLongLong((uint64_t)number);
    default: return PyLong_FromLongLong(number);
    }
}
