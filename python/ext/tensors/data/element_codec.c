/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements as Python's numbers. See element_codec.h.
 */
#include "tensors/data/element_codec.h"

#include <math.h>
#include <string.h>

static const char *const titles[MT_DTYPE_COUNT] = {
    [MT_DTYPE_BOOL] = "torch.BoolTensor", [MT_DTYPE_U8] = "torch.ByteTensor",
    [MT_DTYPE_I32] = "torch.IntTensor",   [MT_DTYPE_I64] = "torch.LongTensor",
    [MT_DTYPE_F16] = "torch.HalfTensor",  [MT_DTYPE_BF16] = "torch.BFloat16Tensor",
    [MT_DTYPE_F32] = "torch.FloatTensor", [MT_DTYPE_F64] = "torch.DoubleTensor",
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

/* torch lets negative numbers wrap into uint8 if their size fits. */
static int store_integer(void *place, mt_dtype dtype, int64_t number)
{
    if (dtype == MT_DTYPE_U8) {
        if (number > UINT8_MAX || number < -(int64_t)UINT8_MAX) {
            return refuse(dtype);
        }
        uint8_t byte = (uint8_t)(uint64_t)number;
        memcpy(place, &byte, sizeof(byte));
        return 0;
    }
    if (dtype == MT_DTYPE_I32) {
        if (number > INT32_MAX || number < INT32_MIN) {
            return refuse(dtype);
        }
        int32_t word = (int32_t)number;
        memcpy(place, &word, sizeof(word));
        return 0;
    }
    memcpy(place, &number, sizeof(number));
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

int element_store(void *place, mt_dtype dtype, const mt_scalar *number)
{
    bool real = number->kind == MT_KIND_REAL;
    if (dtype == MT_DTYPE_BOOL) {
        uint8_t byte = real ? number->of.real != 0.0 : number->of.integer != 0;
        memcpy(place, &byte, sizeof(byte));
        return 0;
    }
    if (mt_dtype_category(dtype) == MT_CATEGORY_REAL) {
        return store_real(place, dtype, real ? number->of.real : (double)number->of.integer);
    }
    if (!real) {
        return store_integer(place, dtype, number->of.integer);
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
    if (mt_dtype_category(dtype) == MT_CATEGORY_REAL) {
        return load_real(place, dtype);
    }
    uint8_t byte = 0;
    if (dtype == MT_DTYPE_BOOL) {
        memcpy(&byte, place, sizeof(byte));
        return PyBool_FromLong(byte != 0);
    }
    if (dtype == MT_DTYPE_U8) {
        memcpy(&byte, place, sizeof(byte));
        return PyLong_FromLong(byte);
    }
    if (dtype == MT_DTYPE_I32) {
        int32_t word = 0;
        memcpy(&word, place, sizeof(word));
        return PyLong_FromLong(word);
    }
    int64_t number = 0;
    memcpy(&number, place, sizeof(number));
    return PyLong_FromLongLong(number);
}
