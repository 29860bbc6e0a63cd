/* SPDX-License-Identifier: Apache-2.0
 *
 * float16 and bfloat16 to and from float, by their bits and without branches. Rounding is to the
 * nearest, halves to even; subnormals are exact; what is too large becomes infinite; a NaN becomes
 * the quiet one of the type, its sign kept.
 */
#ifndef KERNELS_NUMBER_HALF_H
#define KERNELS_NUMBER_HALF_H

#include "kernels/number/vector_math.h"

MT_INLINE float mt__f16_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000U) << 16;
    uint32_t rest = half & 0x7fffU;
    /* The exponents' biases differ by 112; all ones stay all ones. */
    uint32_t normal = (rest << 13) + (112U << 23);
    normal += rest >= 0x7c00U ? 112U << 23 : 0U;
    /* Below 2^-14 the number is rest * 2^-24. */
    uint32_t small = mt__bits_f32((float)(int32_t)rest * 0x1p-24F);
    return mt__float_of(sign | (rest < 0x400U ? small : normal));
}

MT_INLINE uint16_t mt__f32_to_f16(float x)
{
    uint32_t bits = mt__bits_f32(x);
    uint32_t sign = (bits >> 16) & 0x8000U;
    uint32_t rest = bits & 0x7fffffffU;
    /* Round to nearest even: add half a unit less one, and one more if the number is odd. */
    uint32_t normal = (rest - (112U << 23) + 0xfffU + ((rest >> 13) & 1U)) >> 13;
    /* Below 2^-14: adding 1/2 leaves multiples of 2^-24 in the low bits, rounded by the addition.
     */
    uint32_t small = mt__bits_f32(mt__float_of(rest) + 0.5F) - 0x3f000000U;
    uint32_t result = rest < 0x38800000U ? small : normal;
    result = rest >= 0x47800000U ? 0x7c00U : result;
    result = rest > 0x7f800000U ? 0x7e00U : result;
    return (uint16_t)(sign | result);
}

MT_INLINE float mt__bf16_to_f32(uint16_t half)
{
    return mt__float_of((uint32_t)half << 16);
}

MT_INLINE uint16_t mt__f32_to_bf16(float x)
{
    uint32_t bits = mt__bits_f32(x);
    uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    uint32_t nan = ((bits >> 16) & 0x8000U) | 0x7fc0U;
    return (uint16_t)((bits & 0x7fffffffU) > 0x7f800000U ? nan : rounded);
}

/* ---- to integers: towards zero; what the type cannot hold, NaN too, is its smallest number --- */

MT_INLINE int32_t mt__real_to_i32(double x)
{
    return (int32_t)(x > -2147483649.0 && x < 2147483648.0 ? x : -2147483648.0);
}

MT_INLINE int64_t mt__real_to_i64(double x)
{
    return (int64_t)(x >= -0x1p63 && x < 0x1p63 ? x : -0x1p63);
}

MT_INLINE int32_t mt__f32_to_i32(float x)
{
    return (int32_t)(x >= -0x1p31F && x < 0x1p31F ? x : -0x1p31F);
}

MT_INLINE int64_t mt__f32_to_i64(float x)
{
    return (int64_t)(x >= -0x1p63F && x < 0x1p63F ? x : -0x1p63F);
}

/* What is negative wraps, NaN is 2^63, what is too large 0: what the processor's instructions make
 * of the bits, as in torch. */
MT_INLINE uint64_t mt__real_to_u64(double x)
{
    if (x >= 0x1p63) {
        return x < 0x1p64 ? (uint64_t)x : 0;
    }
    return (uint64_t)mt__real_to_i64(x);
}

#endif /* KERNELS_NUMBER_HALF_H */
