/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_TERNARY against plain references: every code and type, numbers in the place of any
 * operand, every layout, at every instruction set.
 */
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "support/pointwise_values.h"

#include <math.h>

static const double value_real = -0.5;
static const int64_t value_whole = -2;

static bool has_type(uint16_t code, mt_dtype dtype)
{
    bool is_real = dtype == MT_DTYPE_F32 || dtype == MT_DTYPE_F64;
    switch (code) {
    case MT_TERNARY_WHERE: return dtype != MT_DTYPE_F16 && dtype != MT_DTYPE_BF16;
    case MT_TERNARY_LERP:
    case MT_TERNARY_ADDCDIV:
    case MT_TERNARY_SOFTPLUS_BACKWARD:
    case MT_TERNARY_HARDTANH_BACKWARD:
    case MT_TERNARY_ELU_BACKWARD:
    case MT_TERNARY_SHRINK_BACKWARD:
    case MT_TERNARY_LOG_SIGMOID_BACKWARD: return is_real;
    default:
        return is_real || (dtype != MT_DTYPE_BOOL && !pointwise_is_real(dtype) &&
                           !pointwise_is_unsigned(dtype));
    }
}

static long double larger(long double a, long double b)
{
    return isnan(a) || isnan(b) ? (long double)NAN : a > b ? a : b;
}

static long double smaller(long double a, long double b)
{
    return isnan(a) || isnan(b) ? (long double)NAN : a < b ? a : b;
}

static bool is_close(uint16_t code, const mt_array *out, int64_t i, const long double in[3])
{
    long double x = in[0];
    long double y = in[1];
    long double z = in[2];
    long double v = (long double)value_real;
    long double epsilon = out->dtype == MT_DTYPE_F32 ? 0x1p-23L : 0x1p-52L;
    long double got = pointwise_real(out, i);
    long double want, size;
    switch (code) {
    case MT_TERNARY_WHERE:
        want = x != 0 ? y : z;
        size = 0;
        break;
    case MT_TERNARY_CLAMP:
        want = smaller(larger(x, y), z);
        size = 0;
        break;
    case MT_TERNARY_LERP:
        want = fabsl(z) < 0.5L ? x + z * (y - x) : y - (y - x) * (1 - z);
        size = fabsl(x) + fabsl(y) + fabsl(z * (y - x));
        break;
    case MT_TERNARY_ADDCMUL:
        want = x + v * y * z;
        size = fabsl(x) + fabsl(y * z);
        break;
    case MT_TERNARY_SOFTPLUS_BACKWARD: /* v y is rounded before the comparison */
        want = v * y > z ? x : x / (1 + expl(-v * y));
        size = fabsl(v * y - z) <= 2 * epsilon * fabsl(z) ? (long double)NAN
                                                          : fabsl(x) * (1 + fabsl(y));
        break;
    case MT_TERNARY_HARDTANH_BACKWARD:
        want = y <= v || y >= z ? 0 : x;
        size = 0;
        break;
    case MT_TERNARY_SHRINK_BACKWARD:
        want = y >= v && y <= z ? 0 : x;
        size = 0;
        break;
    case MT_TERNARY_LOG_SIGMOID_BACKWARD: /* any z: the kernel does not know what it is */
        want = x * ((y < 0 ? 1 : z) / (1 + z));
        size = fabsl(1 + z) < 0.1L ? (long double)NAN : fabsl(want);
        break;
    case MT_TERNARY_ELU_BACKWARD:
        want = y <= 0 ? x * v * z * expl(y * z) : x;
        size = fabsl(y * z) > 80 ? (long double)NAN : fabsl(want) * (4 + fabsl(y * z));
        break;
    default:
        want = x + v * y / z;
        size = fabsl(x) + fabsl(y / z);
        break;
    }
    if (code == MT_TERNARY_WHERE || code == MT_TERNARY_CLAMP ||
        code == MT_TERNARY_HARDTANH_BACKWARD || code == MT_TERNARY_SHRINK_BACKWARD) {
        return pointwise_ulps(out, i, want) == 0 || (got == 0 && want == 0);
    }
    /* Steps may overflow where the sum would not, so large ones are not compared. */
    return pointwise_ulps(out, i, want) <= 1 || fabsl(got - want) <= 3 * epsilon * size ||
           size > 1e37L || isnan(size) || fabsl(want - got) < 1e-44L;
}

static int64_t expected_integer(uint16_t code, int64_t x, int64_t y, int64_t z)
{
    switch (code) {
    case MT_TERNARY_WHERE: return x != 0 ? y : z;
    case MT_TERNARY_ADDCMUL:
        return (int64_t)((uint64_t)x + (uint64_t)value_whole * (uint64_t)y * (uint64_t)z);
    default: x = x < y ? y : x; return x > z ? z : x;
    }
}

static void check_element(uint16_t code, const mt_array *out, const mt_array *in, int64_t i)
{
    bool good;
    if (!pointwise_is_real(out->dtype)) {
        int64_t want = expected_integer(code, pointwise_integer(&in[0], i),
                                        pointwise_integer(&in[1], i), pointwise_integer(&in[2], i));
        good = pointwise_integer(out, i) == pointwise_wrap(out->dtype, want);
    } else {
        long double x = in[0].dtype == MT_DTYPE_BOOL ? (long double)pointwise_integer(&in[0], i)
                                                     : pointwise_real(&in[0], i);
        good = is_close(code, out, i,
                        (long double[3]){x, pointwise_real(&in[1], i), pointwise_real(&in[2], i)});
    }
    if (!good) {
        FAIL("code %u dtype %u element %lld of %.9g %.9g %.9g: %.17g", code, out->dtype,
             (long long)i, strided_get(&in[0], i), strided_get(&in[1], i), strided_get(&in[2], i),
             strided_get(out, i));
    }
}

static mt_scalar scalar_of(const mt_array *array)
{
    if (pointwise_is_real(array->dtype)) {
        return (mt_scalar){.kind = MT_KIND_REAL, .of.real = strided_get(array, 0)};
    }
    return (mt_scalar){.kind = MT_KIND_INT, .of.integer = pointwise_integer(array, 0)};
}

static void check_call(uint16_t code, mt_dtype dtype, const pointwise_shape *shape, int64_t mask,
                       uint64_t *seed)
{
    static const int64_t no_strides[4] = {0};
    strided_array out, memory[3];
    mt_array arrays[4], in[3];
    bool is_real = pointwise_is_real(dtype);
    mt_scalar s[4] = {{.kind = MT_KIND_INT, .of.integer = value_whole}};
    if (is_real) {
        s[0] = (mt_scalar){.kind = MT_KIND_REAL, .of.real = value_real};
    }
    strided_array_init(&out, dtype, shape->sizes, shape->n_dims,
                       (strided_layout)(mt_test_random(seed) % LAYOUT_REPEATED));
    arrays[0] = out.array;
    if (strided_numel(&out.array) == 0) {
        mask = 0;
    }
    for (int k = 0; k < 3; k++) {
        bool is_condition = code == MT_TERNARY_WHERE && k == 0;
        strided_array_init(&memory[k], is_condition ? MT_DTYPE_BOOL : dtype, shape->sizes,
                           shape->n_dims, (strided_layout)(mt_test_random(seed) % LAYOUT_COUNT));
        pointwise_fill(&memory[k].array, seed);
        in[k] = arrays[k + 1] = memory[k].array;
        if ((mask >> k & 1) != 0) {
            in[k].strides = no_strides;
            s[k + 1] = scalar_of(&in[k]);
            arrays[k + 1] = (mt_array){.n_dims = -1};
        }
    }
    mt_kernel_call call = {.struct_size = sizeof call,
                           .code = code,
                           .n_tensors = 4,
                           .n_ints = 1,
                           .n_scalars = 4,
                           .tensors = arrays,
                           .ints = &mask,
                           .scalars = s};
    CHECK_OK(mt__host_TERNARY(NULL, NULL, &call));
    for (int64_t i = 0, count = strided_numel(&out.array); i < count; i++) {
        check_element(code, &out.array, in, i);
    }
    strided_array_fini(&out);
    for (int k = 0; k < 3; k++) {
        strided_array_fini(&memory[k]);
    }
}

static void check_all(void)
{
    uint64_t seed = mt_test_seed();
    for (unsigned number = 0; number < MT_TERNARY_COUNT; number++) {
        uint16_t code = (uint16_t)number;
        for (int type = 0; type < MT_DTYPE_C64; type++) {
            for (int shape = 0; shape < pointwise_shape_count && has_type(code, (mt_dtype)type);
                 shape++) {
                for (int64_t mask = 0; mask < 8; mask++) {
                    check_call(code, (mt_dtype)type, &pointwise_shapes[shape], mask, &seed);
                }
            }
        }
    }
}

TEST(ternary_as_reference)
{
    pointwise_each_isa(check_all);
}

TEST(ternary_of_large_layouts)
{
    static const pointwise_shape large = {3, {3, 90, 131}};
    uint64_t seed = mt_test_seed();
    for (int i = 0; i < 40; i++) {
        check_call(MT_TERNARY_WHERE, MT_DTYPE_F32, &large, i % 8, &seed);
        check_call(MT_TERNARY_LERP, MT_DTYPE_F64, &large, i % 8, &seed);
    }
}

/* Elements of two bytes are chosen by their bits. */
TEST(where_of_half)
{
    uint16_t out[3], a[3] = {0x3c00, 0x7e01, 1}, b[3] = {9, 8, 7};
    uint8_t choose[3] = {1, 1, 0};
    const int64_t size = 3;
    const int64_t stride = 1;
    mt_array arrays[4] = {{out, &size, &stride, 1, MT_DTYPE_F16},
                          {choose, &size, &stride, 1, MT_DTYPE_BOOL},
                          {a, &size, &stride, 1, MT_DTYPE_F16},
                          {b, &size, &stride, 1, MT_DTYPE_F16}};
    mt_kernel_call call = {
        .struct_size = sizeof call, .code = MT_TERNARY_WHERE, .n_tensors = 4, .tensors = arrays};
    CHECK_OK(mt__host_TERNARY(NULL, NULL, &call));
    CHECK_EQ_U64(out[0], 0x3c00);
    CHECK_EQ_U64(out[1], 0x7e01);
    CHECK_EQ_U64(out[2], 7);
}
