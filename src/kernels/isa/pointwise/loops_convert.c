/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions between all types, from elements without gaps to elements without gaps.
 *
 * Integers wrap. Real numbers become integers as half.h says; uint8 and uint32 are the low bytes of
 * the int64, int8, int16 and uint16 those of the int32. Integers of one width have the same bits,
 * whatever their sign, so a loop that does not widen them is there once for both types (SAME).
 * float16 and bfloat16 come from float, to which wider types are rounded first, as in torch. A bool
 * is whether the number is not 0: NaN is true.
 */
#include "kernels/isa/pointwise/half_vectors.h"
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

/* Those that widen elements of the types that are not among TYPES, or make them of wider ones. */
#define REALS(X, ...)                                         \
    X(F16, uint16_t, mt__f16_to_f32(x), float, __VA_ARGS__)   \
    X(BF16, uint16_t, mt__bf16_to_f32(x), float, __VA_ARGS__) \
    X(F32, float, x, float, __VA_ARGS__)                      \
    X(F64, double, x, double, __VA_ARGS__)
#define FROM_I8(X, ...)  X(I8, int8_t, (int32_t)x, int, __VA_ARGS__)
#define FROM_I16(X, ...) X(I16, int16_t, (int32_t)x, int, __VA_ARGS__)
#define FROM_U16(X, ...) X(U16, uint16_t, (int32_t)x, int, __VA_ARGS__)
#define FROM_U32(X, ...) X(U32, uint32_t, (int64_t)x, int, __VA_ARGS__)
#define FROM_U64(X, ...) X(U64, uint64_t, x, int, __VA_ARGS__)

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
#define STORE_I8_float(v)    mt__f32_to_i32(v)
#define STORE_I8_double(v)   mt__real_to_i32(v)
#define STORE_I16_int(v)     (v)
#define STORE_I16_float(v)   mt__f32_to_i32(v)
#define STORE_I16_double(v)  mt__real_to_i32(v)
#define STORE_U32_float(v)   mt__f32_to_i64(v)
#define STORE_U32_double(v)  mt__real_to_i64(v)
#define STORE_U64_float(v)   mt__real_to_u64((double)(v))
#define STORE_U64_double(v)  mt__real_to_u64(v)

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

REALS(FROM, I8, int8_t)
TYPES(FROM, I16, int16_t)
FROM_I8(FROM, I16, int16_t)
REALS(FROM, U32, uint32_t)
REALS(FROM, U64, uint64_t)

FROM_I16(FROM, BOOL, uint8_t)
FROM_I16(FROM, U8, uint8_t)
FROM_I16(FROM, I16, int16_t)

#define TO_WIDE(from) from(FROM, I64, int64_t) TO_REALS(from)
#define TO_REALS(from)                                                          \
    from(FROM, F16, uint16_t) from(FROM, BF16, uint16_t) from(FROM, F32, float) \
        from(FROM, F64, double)

FROM_I8(FROM, I32, int32_t)
FROM_I16(FROM, I32, int32_t)
FROM_U16(FROM, I32, int32_t)
TO_WIDE(FROM_I8)
TO_WIDE(FROM_I16)
TO_WIDE(FROM_U16)
TO_WIDE(FROM_U32)
TO_REALS(FROM_U64)

/* An imaginary part of 0 is the upper half of 8 bytes. */
MT_LOOP1(convert_F32_C64, uint64_t, float, integer, (uint64_t)mt__bits_f32(x))

/* ---- float16 where the processor converts it ---- */

#ifdef MT_HALF_WIDTH
/* A register at a time, the rest by half.h; `in` is only read. */
#    define FAST(from, to, in_type, out_type, load, store)                 \
        static uint32_t fast_##from##_##to(void *const *arrays, int64_t n, \
                                           const mt__loop_params *params)  \
        {                                                                  \
            out_type *out = arrays[0];                                     \
            const in_type *in = arrays[1];                                 \
            int64_t i = 0;                                                 \
            for (; i + MT_HALF_WIDTH <= n; i += MT_HALF_WIDTH) {           \
                store(out + i, load(in + i));                              \
            }                                                              \
            void *const rest[] = {out + i, (void *)(uintptr_t)(in + i)};   \
            return i < n ? convert_##from##_##to(rest, n - i, params) : 0; \
        }
#    ifdef __AVX512F__
#        define LOAD_F32  _mm512_loadu_ps
#        define STORE_F32 _mm512_storeu_ps
#    else
#        define LOAD_F32  _mm256_loadu_ps
#        define STORE_F32 _mm256_storeu_ps
#    endif

FAST(F16, F32, uint16_t, float, mt__load_f16, STORE_F32)
FAST(F32, F16, float, uint16_t, LOAD_F32, mt__store_f16)
FAST(F32, BF16, float, uint16_t, LOAD_F32, mt__store_bf16)
#    define convert_F16_F32  fast_F16_F32
#    define convert_F32_F16  fast_F32_F16
#    define convert_F32_BF16 fast_F32_BF16
#endif

#define SAME(from, to, loop_from, loop_to) \
    [MT_DTYPE_##from * MT_DTYPE_COUNT + MT_DTYPE_##to] = convert_##loop_from##_##loop_to,

/* To all integers: loops whose result has 1, 2, 4 and 8 bytes, and bool; signed and unsigned. */
#define INTEGERS(from, as_bool, as_1, as_2, as_4, as_8) \
    SAME(from, BOOL, as_bool, BOOL)                     \
    SAME(from, U8, as_1, U8)                            \
    SAME(from, I8, as_1, U8)                            \
    SAME(from, I16, as_2, I16)                          \
    SAME(from, U16, as_2, I16)                          \
    SAME(from, I32, as_4, I32)                          \
    SAME(from, U32, as_4, I32) SAME(from, I64, as_8, I64) SAME(from, U64, as_8, I64)
#define TO_FLOATING(from)      \
    SAME(from, F16, from, F16) \
    SAME(from, BF16, from, BF16) SAME(from, F32, from, F32) SAME(from, F64, from, F64)
#define TO_ALL(from, as_bool, as_1, as_2, as_4, as_8) \
    INTEGERS(from, as_bool, as_1, as_2, as_4, as_8) TO_FLOATING(from)
#define FROM_REAL(from)          \
    SAME(from, BOOL, from, BOOL) \
    SAME(from, U8, from, U8)     \
    SAME(from, I8, from, I8)     \
    SAME(from, I16, from, I16)   \
    SAME(from, U16, from, I16)   \
    SAME(from, I32, from, I32)   \
    SAME(from, U32, from, U32)   \
    SAME(from, I64, from, I64) SAME(from, U64, from, U64) TO_FLOATING(from)

/* clang-format off */
mt__loop_fn *const MT_ISA(mt__convert_loops)[MT_DTYPE_COUNT * MT_DTYPE_COUNT] = {
    /* from      bool  1    2    4    8 bytes */
    TO_ALL(BOOL, BOOL, BOOL, BOOL, BOOL, BOOL)
    TO_ALL(U8,   U8,   U8,  U8,  U8,  U8)
    TO_ALL(I8,   U8,   U8,  I8,  I8,  I8)
    TO_ALL(I16,  I16,  I16, I16, I16, I16)
    TO_ALL(U16,  I16,  I16, I16, U16, U16)
    TO_ALL(I32,  I32,  I32, I32, I32, I32)
    TO_ALL(U32,  I32,  I32, I32, I32, U32)
    TO_ALL(I64,  I64,  I64, I64, I64, I64)
    TO_ALL(U64,  I64,  I64, I64, I64, I64)
    FROM_REAL(F16) FROM_REAL(BF16) FROM_REAL(F32) FROM_REAL(F64)
    SAME(F32, C64, F32, C64)
};
/* clang-format on */
