/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_COPY, FILL, ARANGE, EYE and TRIANGLE against plain references.
 */
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/number/half.h"
#include "support/pointwise_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- half precision by the book: the nearest of all numbers that there are ---- */

static double half_value(uint16_t bits, int exponent_bits)
{
    int fraction_bits = 15 - exponent_bits;
    int exponent = (bits & 0x7fff) >> fraction_bits;
    int fraction = bits & ((1 << fraction_bits) - 1);
    int bias = (1 << (exponent_bits - 1)) - 1;
    double value;
    if (exponent == (1 << exponent_bits) - 1) {
        value = fraction == 0 ? INFINITY : NAN;
    } else if (exponent == 0) {
        value = ldexp(fraction, 1 - bias - fraction_bits);
    } else {
        value = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
    }
    return (bits & 0x8000) != 0 ? -value : value;
}

TEST(every_half_to_float)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        double want = half_value((uint16_t)bits, 5);
        float got = mt__f16_to_f32((uint16_t)bits);
        if (!(isnan(want) ? isnan(got) : (double)got == want && !signbit(got) == !signbit(want))) {
            FAIL("float16 %04x is %g, not %g", bits, (double)got, want);
        }
        want = half_value((uint16_t)bits, 8);
        got = mt__bf16_to_f32((uint16_t)bits);
        if (!(isnan(want) ? isnan(got) : (double)got == want)) {
            FAIL("bfloat16 %04x is %g, not %g", bits, (double)got, want);
        }
    }
}

/* The numbers at, just below and just above the middle of every two neighbours. */
static void check_middles(int exponent_bits, uint16_t (*round)(float))
{
    uint32_t infinity = (uint32_t)((1 << exponent_bits) - 1) << (15 - exponent_bits);
    for (uint32_t bits = 0; bits < infinity; bits++) {
        double low = half_value((uint16_t)bits, exponent_bits);
        double high = half_value((uint16_t)(bits + 1), exponent_bits);
        if (bits + 1 == infinity) { /* as if there were one more number */
            high = low + (low - half_value((uint16_t)(bits - 1), exponent_bits));
        }
        float middle = (float)((low + high) / 2);
        uint32_t even = (bits & 1) == 0 ? bits : bits + 1;
        CHECK_EQ_U64(round((float)low), bits);
        CHECK_EQ_U64(round(middle), even);
        CHECK_EQ_U64(round(nextafterf(middle, 0.0F)), bits);
        CHECK_EQ_U64(round(nextafterf(middle, INFINITY)), bits + 1);
        CHECK_EQ_U64(round(-middle), even | 0x8000);
    }
    CHECK_EQ_U64(round(INFINITY), infinity);
    CHECK_EQ_U64(round(-INFINITY), infinity | 0x8000);
    CHECK_EQ_U64(round(3e38F), exponent_bits == 8 ? round(3e38F) : infinity);
    CHECK(isnan(half_value(round(NAN), exponent_bits)));
}

static uint16_t to_f16(float x)
{
    return mt__f32_to_f16(x);
}

static uint16_t to_bf16(float x)
{
    return mt__f32_to_bf16(x);
}

TEST(floats_round_to_nearest_even)
{
    check_middles(5, to_f16);
    check_middles(8, to_bf16);
}

/* ---- conversions ---- */

static double read_real(const mt_array *a, int64_t i)
{
    uint16_t bits;
    switch (a->dtype) {
    case MT_DTYPE_F16:
    case MT_DTYPE_BF16:
        bits = ((const uint16_t *)a->data)[strided_offset(a, i)];
        return half_value(bits, a->dtype == MT_DTYPE_F16 ? 5 : 8);
    default: return strided_get(a, i);
    }
}

static int64_t to_integer(double x, uint32_t dtype)
{
    bool by_i32 = dtype == MT_DTYPE_I32 || dtype == MT_DTYPE_I8 || dtype == MT_DTYPE_I16 ||
                  dtype == MT_DTYPE_U16;
    if (by_i32) {
        int64_t word = x > -2147483649.0 && x < 2147483648.0 ? (int64_t)x : INT32_MIN;
        return pointwise_wrap(dtype, word);
    }
    if (dtype == MT_DTYPE_U64 && x >= 0x1p63) {
        return x < 0x1p64 ? (int64_t)(uint64_t)x : 0;
    }
    int64_t wide = x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
    return pointwise_wrap(dtype, wide);
}

static bool same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static bool is_converted(const mt_array *out, const mt_array *in, int64_t i)
{
    bool from_integer = !pointwise_is_real(in->dtype);
    bool large = in->dtype == MT_DTYPE_U64;
    int64_t whole = from_integer ? pointwise_integer(in, i) : 0;
    double x = !from_integer ? read_real(in, i) : large ? (double)(uint64_t)whole : (double)whole;
    float narrow = !from_integer ? (float)x : large ? (float)(uint64_t)whole : (float)whole;
    switch (out->dtype) {
    case MT_DTYPE_BOOL: return pointwise_integer(out, i) == (from_integer ? whole != 0 : x != 0);
    case MT_DTYPE_F32: return same((double)narrow, read_real(out, i));
    case MT_DTYPE_F64: return same(x, read_real(out, i));
    case MT_DTYPE_F16: return same(half_value(to_f16(narrow), 5), read_real(out, i));
    case MT_DTYPE_BF16: return same(half_value(to_bf16(narrow), 8), read_real(out, i));
    default:
        return pointwise_integer(out, i) ==
               (from_integer ? pointwise_wrap(out->dtype, whole) : to_integer(x, out->dtype));
    }
}

static int run_copy(const mt_array *out, const mt_array *in)
{
    mt_array arrays[2] = {*out, *in};
    mt_kernel_call call = {
        .struct_size = sizeof call, .kernel = MT_KERNEL_COPY, .n_tensors = 2, .tensors = arrays};
    return mt__host_COPY(NULL, NULL, &call);
}

static void check_copy(mt_dtype to, mt_dtype from, const pointwise_shape *shape,
                       strided_layout out_layout, strided_layout in_layout, uint64_t *seed)
{
    strided_array out, in;
    strided_array_init(&out, to, shape->sizes, shape->n_dims, out_layout);
    strided_array_init(&in, from, shape->sizes, shape->n_dims, in_layout);
    pointwise_fill(&in.array, seed);
    CHECK_OK(run_copy(&out.array, &in.array));
    for (int64_t i = 0, count = strided_numel(&out.array); i < count; i++) {
        if (!is_converted(&out.array, &in.array, i)) {
            FAIL("from dtype %d to %d, layouts %d %d, element %lld: %g becomes %g", from, to,
                 in_layout, out_layout, (long long)i, read_real(&in.array, i),
                 read_real(&out.array, i));
        }
    }
    strided_array_fini(&out);
    strided_array_fini(&in);
}

static void check_copies(void)
{
    uint64_t seed = mt_test_seed();
    for (int pair = 0; pair < MT_DTYPE_C64 * MT_DTYPE_C64; pair++) {
        mt_dtype to = (mt_dtype)(pair % MT_DTYPE_C64);
        mt_dtype from = (mt_dtype)(pair / MT_DTYPE_C64);
        for (int shape = 0; shape < pointwise_shape_count; shape++) {
            check_copy(to, from, &pointwise_shapes[shape], LAYOUT_CONTIGUOUS, LAYOUT_CONTIGUOUS,
                       &seed);
            check_copy(to, from, &pointwise_shapes[shape],
                       (strided_layout)(mt_test_random(&seed) % LAYOUT_REPEATED),
                       (strided_layout)(mt_test_random(&seed) % LAYOUT_COUNT), &seed);
        }
    }
}

TEST(copy_of_every_pair_of_types)
{
    pointwise_each_isa(check_copies);
}

/* Sizes around the blocks of transposes, every width of element, every pair of layouts. */
static void check_transposes(void)
{
    static const mt_dtype types[] = {MT_DTYPE_U8, MT_DTYPE_F16, MT_DTYPE_I32, MT_DTYPE_I64};
    uint64_t seed = mt_test_seed();
    for (int i = 0; i < 160; i++) {
        pointwise_shape shape = {2 + i % 2,
                                 {1 + (int64_t)(mt_test_random(&seed) % 70),
                                  1 + (int64_t)(mt_test_random(&seed) % 90), 7}};
        check_copy(types[i / 2 % 4], types[i / 2 % 4], &shape,
                   (strided_layout)(mt_test_random(&seed) % LAYOUT_REPEATED),
                   (strided_layout)(mt_test_random(&seed) % LAYOUT_COUNT), &seed);
    }
}

TEST(transposed_copies)
{
    pointwise_each_isa(check_transposes);
}

/* Large enough for several threads, both ways: transposed, converted, filled. */
TEST(large_copies)
{
    uint64_t seed = mt_test_seed();
    pointwise_shape shape = {2, {700, 900}};
    check_copy(MT_DTYPE_F32, MT_DTYPE_F32, &shape, LAYOUT_CONTIGUOUS, LAYOUT_CONTIGUOUS, &seed);
    check_copy(MT_DTYPE_F32, MT_DTYPE_F32, &shape, LAYOUT_CONTIGUOUS, LAYOUT_TRANSPOSED, &seed);
    check_copy(MT_DTYPE_I64, MT_DTYPE_I64, &shape, LAYOUT_SLICED, LAYOUT_TRANSPOSED, &seed);
    check_copy(MT_DTYPE_F64, MT_DTYPE_F32, &shape, LAYOUT_TRANSPOSED, LAYOUT_CONTIGUOUS, &seed);
}

TEST(numbers_that_integers_cannot_hold)
{
    const float in[8] = {300.7F, -1.5F, 1e20F, NAN, INFINITY, -INFINITY, 3e9F, -2147483648.0F};
    const int32_t narrow[8] = {300,       -1,        INT32_MIN, INT32_MIN,
                               INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN};
    const uint8_t bytes[8] = {44, 255, 0, 0, 0, 0, 0, 0};
    const int16_t words[8] = {300, -1, 0, 0, 0, 0, 0, 0};
    const uint32_t longs[8] = {300, UINT32_MAX, 0, 0, 0, 0, 3000000000U, 2147483648U};
    const uint64_t wide[8] = {300, UINT64_MAX,           0,           9223372036854775808U,
                              0,   9223372036854775808U, 3000000000U, 18446744071562067968U};
    int32_t out[8];
    uint8_t small[8];
    int16_t middle[8];
    uint64_t large[8];
    const int64_t size = 8;
    const int64_t stride = 1;
    mt_array from = {(void *)(uintptr_t)in, &size, &stride, 1, MT_DTYPE_F32};
    mt_array to = {out, &size, &stride, 1, MT_DTYPE_I32};
    CHECK_OK(run_copy(&to, &from));
    CHECK_EQ_MEM(out, narrow, sizeof out);
    to = (mt_array){small, &size, &stride, 1, MT_DTYPE_U8};
    CHECK_OK(run_copy(&to, &from));
    CHECK_EQ_MEM(small, bytes, sizeof small);
    to = (mt_array){small, &size, &stride, 1, MT_DTYPE_I8};
    CHECK_OK(run_copy(&to, &from));
    CHECK_EQ_MEM(small, bytes, sizeof small);
    to = (mt_array){middle, &size, &stride, 1, MT_DTYPE_I16};
    CHECK_OK(run_copy(&to, &from));
    CHECK_EQ_MEM(middle, words, sizeof middle);
    to = (mt_array){out, &size, &stride, 1, MT_DTYPE_U32};
    CHECK_OK(run_copy(&to, &from));
    CHECK_EQ_MEM(out, longs, sizeof out);
    to = (mt_array){large, &size, &stride, 1, MT_DTYPE_U64};
    CHECK_OK(run_copy(&to, &from));
    CHECK_EQ_MEM(large, wide, sizeof large);
}

/* ---- fill ---- */

static void check_fills(void)
{
    uint64_t seed = mt_test_seed();
    static const mt_scalar values[] = {{.kind = MT_KIND_INT, .of.integer = 0},
                                       {.kind = MT_KIND_INT, .of.integer = 3},
                                       {.kind = MT_KIND_REAL, .of.real = -1.75},
                                       {.kind = MT_KIND_BOOL, .of.integer = 1}};
    for (int type = 0; type < MT_DTYPE_C64 * 4; type++) {
        mt_scalar value = values[type / MT_DTYPE_C64];
        double number = value.kind == MT_KIND_REAL ? value.of.real : (double)value.of.integer;
        mt_dtype dtype = (mt_dtype)(type % MT_DTYPE_C64);
        for (int shape = 0; shape < pointwise_shape_count; shape++) {
            strided_array out, like;
            strided_array_init(&out, dtype, pointwise_shapes[shape].sizes,
                               pointwise_shapes[shape].n_dims,
                               (strided_layout)(mt_test_random(&seed) % LAYOUT_REPEATED));
            strided_array_init(&like, MT_DTYPE_F64, pointwise_shapes[shape].sizes,
                               pointwise_shapes[shape].n_dims, LAYOUT_CONTIGUOUS);
            mt_kernel_call call = {.struct_size = sizeof call,
                                   .n_tensors = 1,
                                   .n_scalars = 1,
                                   .tensors = &out.array,
                                   .scalars = &value};
            CHECK_OK(mt__host_FILL(NULL, NULL, &call));
            for (int64_t i = 0, count = strided_numel(&out.array); i < count; i++) {
                strided_set(&like.array, i, number);
                CHECK(is_converted(&out.array, &like.array, i));
            }
            strided_array_fini(&out);
            strided_array_fini(&like);
        }
    }
}

TEST(fill_of_every_type)
{
    pointwise_each_isa(check_fills);
}

TEST(fill_of_a_repeated_view)
{
    float memory[2] = {1, 2};
    const int64_t sizes[2] = {2, 300};
    const int64_t strides[2] = {1, 0};
    mt_array out = {memory, sizes, strides, 2, MT_DTYPE_F32};
    mt_scalar value = {.kind = MT_KIND_REAL, .of.real = 7};
    mt_kernel_call call = {.struct_size = sizeof call,
                           .n_tensors = 1,
                           .n_scalars = 1,
                           .tensors = &out,
                           .scalars = &value};
    CHECK_OK(mt__host_FILL(NULL, NULL, &call));
    CHECK_EQ_F64(memory[0], 7);
    CHECK_EQ_F64(memory[1], 7);
    memory[0] = 0;
    out.sizes = &sizes[1];
    out.strides = &strides[1];
    out.n_dims = 1;
    CHECK_OK(mt__host_FILL(NULL, NULL, &call));
    CHECK_EQ_F64(memory[0], 7);
}

/* ---- arange, eye, triangles ---- */

TEST(ranges)
{
    static const mt_scalar reals[2] = {{.kind = MT_KIND_REAL, .of.real = 1.5},
                                       {.kind = MT_KIND_REAL, .of.real = -0.25}};
    static const mt_scalar wholes[2] = {{.kind = MT_KIND_INT, .of.integer = INT64_MAX - 1},
                                        {.kind = MT_KIND_INT, .of.integer = 3}};
    const int64_t size = 300;
    for (int type = MT_DTYPE_U8; type < MT_DTYPE_C64; type++) {
        bool is_real = pointwise_is_real((uint32_t)type);
        strided_array out, like;
        strided_array_init(&out, (mt_dtype)type, &size, 1,
                           type % 2 == 0 ? LAYOUT_CONTIGUOUS : LAYOUT_SLICED);
        strided_array_init(&like, is_real ? MT_DTYPE_F64 : MT_DTYPE_I64, &size, 1,
                           LAYOUT_CONTIGUOUS);
        mt_kernel_call call = {.struct_size = sizeof call,
                               .n_tensors = 1,
                               .n_scalars = 2,
                               .tensors = &out.array,
                               .scalars = is_real ? reals : wholes};
        CHECK_OK(mt__host_ARANGE(NULL, NULL, &call));
        for (int64_t i = 0; i < size; i++) {
            if (is_real) {
                ((double *)like.array.data)[i] = 1.5 - 0.25 * (double)i;
            } else {
                ((int64_t *)like.array.data)[i] =
                    (int64_t)((uint64_t)(INT64_MAX - 1) + 3 * (uint64_t)i);
            }
            CHECK(is_converted(&out.array, &like.array, i));
        }
        strided_array_fini(&out);
        strided_array_fini(&like);
    }
}

TEST(eyes)
{
    static const int64_t sizes[][2] = {{3, 3}, {2, 5}, {7, 4}, {0, 3}, {1, 1}};
    for (int type = 0; type < MT_DTYPE_C64 * 5; type++) {
        strided_array out;
        strided_array_init(&out, (mt_dtype)(type % MT_DTYPE_C64), sizes[type / MT_DTYPE_C64], 2,
                           (strided_layout)(type % LAYOUT_REPEATED));
        mt_kernel_call call = {.struct_size = sizeof call, .n_tensors = 1, .tensors = &out.array};
        CHECK_OK(mt__host_EYE(NULL, NULL, &call));
        for (int64_t i = 0, count = strided_numel(&out.array); i < count; i++) {
            CHECK_EQ_F64(read_real(&out.array, i), i / out.sizes[1] == i % out.sizes[1]);
        }
        strided_array_fini(&out);
    }
}

TEST(triangles)
{
    uint64_t seed = mt_test_seed();
    static const int64_t diagonals[] = {0, 1, -1, 3, -4, 100, -100, INT64_MAX, INT64_MIN};
    static const int64_t sizes[][3] = {{2, 4, 6}, {3, 7, 5}, {1, 1, 1}, {2, 0, 3}, {2, 3, 0}};
    for (int i = 0; i < 2 * 9 * 5; i++) {
        int64_t diagonal = diagonals[i / 2 % 9];
        const int64_t *size = sizes[i / 18];
        bool upper = i % 2 != 0;
        strided_array out, in;
        mt_dtype dtype = (mt_dtype)(mt_test_random(&seed) % MT_DTYPE_C64);
        strided_array_init(&out, dtype, size, 3, (strided_layout)(i % LAYOUT_REPEATED));
        strided_array_init(&in, dtype, size, 3, (strided_layout)(i % LAYOUT_COUNT));
        pointwise_fill(&in.array, &seed);
        mt_array arrays[2] = {out.array, in.array};
        mt_kernel_call call = {.struct_size = sizeof call,
                               .code = upper,
                               .n_tensors = 2,
                               .n_ints = 1,
                               .tensors = arrays,
                               .ints = &diagonal};
        CHECK_OK(mt__host_TRIANGLE(NULL, NULL, &call));
        for (int64_t k = 0, count = strided_numel(&out.array); k < count; k++) {
            __int128 off = (__int128)(k % size[2]) - k / size[2] % size[1];
            bool kept = upper ? off >= diagonal : off <= diagonal;
            double want = kept ? read_real(&in.array, k) : 0;
            CHECK(same(want, read_real(&out.array, k)));
        }
        strided_array_fini(&out);
        strided_array_fini(&in);
    }
}
