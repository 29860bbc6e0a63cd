/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions between all types, from elements without gaps to elements without gaps.
 *
 * Integers wrap. Real numbers become integers as half.h says; uint8 is the low byte of the int64.
 * float16 and bfloat16 come from float, to which wider types are rounded first, as in torch. A bool
 * is whether the number is not 0: NaN is true.
 */
#include "kernels/isa/pointwise/loop_body.h"
#include "kernels/number/half.h"

/* X(name, type of the bytes, load to a number, family of that number) */
#define TYPES(X, ...)                                         \
    X(BOOL, uint8_t, (int32_t)(x != 0), int, __VA_ARGS__)     \
    X(U8, uint8_t, (int32_t)x, int, __VA_ARGS__)              \
    X(I32, int32_t, x, int, __VA_ARGS__)                      \
    X(I64, int64_t, x, int, __VA_ARGS__)                      \
    X(F16, uint16_t, mt__f16_to_f32(x), float, __VA_ARGS__)   \
    X(BF16, uint16_t, mt__bf16_to_f32(x), float, __VA_ARGS__) \
    X(F32, float, x, float, __VA_ARGS__)                      \
    X(F64, double, x, double, __VA_ARGS__)

/* store_TO_FAMILY(number) */
#define STORE_BOOL_int(v)    ((v) != 0)
#define STORE_BOOL_float(v)  ((v) != 0.0F)
#define STORE_BOOL_double(v) ((v) != 0.0)
#define STORE_U8_int(v)      (v)
#define STORE_U8_float(v)    mt__f32_to_i64(v)
#define STORE_U8_double(v)   mt__real_to_i64(v)
#define STORE_I32_int(v)     (v)
#define STORE_I32_float(v)   mt__f32_to_i32(v)
#define STORE_I32_double(v)  mt__real_to_i32(v)
#define STORE_I64_int(v)     (v)
#define STORE_I64_float(v)   mt__f32_to_i64(v)
#define STORE_I64_double(v)  mt__real_to_i64(v)
#define STORE_F16_int(v)     mt__f32_to_f16((float)(v))
#define STORE_F16_float(v)   mt__f32_to_f16(v)
#define STORE_F16_double(v)  mt__f32_to_f16((float)(v))
#define STORE_BF16_int(v)    mt__f32_to_bf16((float)(v))
#define STORE_BF16_float(v)  mt__f32_to_bf16(v)
#define STORE_BF16_double(v) mt__f32_to_bf16((float)(v))
#define STORE_F32_int(v)     (float)(v)
#define STORE_F32_float(v)   (v)
#define STORE_F32_double(v)  (float)(v)
#define STORE_F64_int(v)     (double)(v)
#define STORE_F64_float(v)   (double)(v)
#define STORE_F64_double(v)  (v)

/* One loop from a type to `to`. */
#define FROM(name, T, load, family, to, out_type) \
    MT_LOOP1(convert_##name##_##to, out_type, T, integer, STORE_##to##_##family(load))

TYPES(FROM, BOOL, uint8_t)
TYPES(FROM, U8, uint8_t)
TYPES(FROM, I32, int32_t)
TYPES(FROM, I64, int64_t)
TYPES(FROM, F16, uint16_t)
TYPES(FROM, BF16, uint16_t)
TYPES(FROM, F32, float)
TYPES(FROM, F64, double)

#define ENTRY(name, T, load, family, to) \
    [MT_DTYPE_##name * MT_DTYPE_COUNT + MT_DTYPE_##to] = convert_##name##_##to,

mt__loop_fn *const MT_ISA(mt__convert_loops)[MT_DTYPE_COUNT * MT_DTYPE_COUNT] = {
    TYPES(ENTRY, BOOL) TYPES(ENTRY, U8) TYPES(ENTRY, I32) TYPES(ENTRY, I64) TYPES(ENTRY, F16)
        TYPES(ENTRY, BF16) TYPES(ENTRY, F32) TYPES(ENTRY, F64)};
