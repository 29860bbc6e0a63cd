/* SPDX-License-Identifier: Apache-2.0
 *
 * float16 and bfloat16 in kernels (narrow.h): computed in float32, rounded once, in every layout,
 * on pieces that are longer than a tile and at every instruction set.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/number/half.h"
#include "support/pointwise_values.h"

#include <math.h>
#include <string.h>

enum {
    ROWS = 37,
    COLUMNS = 131,
    COUNT = ROWS * COLUMNS
};

static float load(mt_dtype dtype, uint16_t bits)
{
    return dtype == MT_DTYPE_F16 ? mt__f16_to_f32(bits) : mt__bf16_to_f32(bits);
}

static uint16_t store(mt_dtype dtype, float value)
{
    return dtype == MT_DTYPE_F16 ? mt__f32_to_f16(value) : mt__f32_to_bf16(value);
}

static void fill(mt_dtype dtype, uint16_t *values, int64_t n, uint64_t *seed)
{
    for (int64_t i = 0; i < n; i++) {
        values[i] = store(dtype, (float)(mt_test_random(seed) % 4001) / 500.0F - 4.0F);
    }
}

static int launch(mt_kernel_fn *kernel, uint16_t code, const mt_array *tensors, uint32_t n,
                  int64_t form, const mt_scalar *scalars)
{
    mt_kernel_call call = {.struct_size = sizeof call,
                           .code = code,
                           .n_tensors = n,
                           .n_ints = 1,
                           .n_scalars = 2,
                           .tensors = tensors,
                           .ints = &form,
                           .scalars = scalars};
    return kernel(NULL, NULL, &call);
}

static const int64_t sizes[2] = {ROWS, COLUMNS};
static const int64_t flat[2] = {COLUMNS, 1};
static const int64_t turned[2] = {1, ROWS};
static const int64_t row_only[2] = {0, 1};
static const mt_scalar plain[2] = {{.kind = MT_KIND_REAL, .of.real = 0.1},
                                   {.kind = MT_KIND_REAL, .of.real = 1}};

static mt_array array_of(uint16_t *data, const int64_t *strides, mt_dtype dtype)
{
    return (mt_array){data, sizes, strides, 2, (uint32_t)dtype};
}

static void check_pointwise(mt_dtype dtype)
{
    static uint16_t out[COUNT], a[COUNT], b[COUNT];
    uint64_t seed = mt_test_seed();
    fill(dtype, a, COUNT, &seed);
    fill(dtype, b, COUNT, &seed);
    const int64_t *layouts[] = {flat, turned, row_only};
    for (int k = 0; k < 3; k++) {
        const mt_array arrays[3] = {array_of(out, flat, dtype), array_of(a, layouts[k], dtype),
                                    array_of(b, flat, dtype)};
        CHECK_OK(launch(mt__host_BINARY, MT_BINARY_MUL, arrays, 3, 0, plain));
        int64_t wrong = 0;
        for (int64_t i = 0; i < COUNT; i++) {
            int64_t at = i / COLUMNS * layouts[k][0] + i % COLUMNS * layouts[k][1];
            wrong += out[i] != store(dtype, load(dtype, a[at]) * load(dtype, b[i]));
        }
        CHECK_EQ_I64(wrong, 0);
    }
    /* A number is not rounded to the type. */
    const mt_array arrays[2] = {array_of(out, flat, dtype), array_of(a, flat, dtype)};
    CHECK_OK(launch(mt__host_BINARY, MT_BINARY_MUL, arrays, 2, 1, plain));
    for (int64_t i = 0; i < COUNT; i++) {
        if (out[i] != store(dtype, load(dtype, a[i]) * 0.1F)) {
            CHECK_EQ_U64(out[i], store(dtype, load(dtype, a[i]) * 0.1F));
            break;
        }
    }
    CHECK_OK(launch(mt__host_UNARY, MT_UNARY_NEG, arrays, 2, 0, plain));
    CHECK_EQ_U64(out[COUNT - 1], a[COUNT - 1] ^ 0x8000U);
}

static void check_sums(mt_dtype dtype)
{
    static uint16_t in[COUNT];
    uint64_t seed = mt_test_seed();
    fill(dtype, in, COUNT, &seed);
    static const int64_t by_row[2] = {1, 0};
    static const int64_t by_column[2] = {0, 1};
    static const int64_t of_all[2] = {0, 0};
    const int64_t *kept[] = {by_row, by_column, of_all};
    for (int k = 0; k < 3; k++) {
        uint16_t out[COLUMNS];
        const mt_array arrays[2] = {array_of(out, kept[k], dtype), array_of(in, flat, dtype)};
        CHECK_OK(launch(mt__host_REDUCE, MT_REDUCE_SUM, arrays, 2, 0, plain));
        double wanted[COLUMNS] = {0};
        for (int64_t i = 0; i < COUNT; i++) {
            wanted[i / COLUMNS * kept[k][0] + i % COLUMNS * kept[k][1]] +=
                (double)load(dtype, in[i]);
        }
        int64_t results = k == 0 ? ROWS : k == 1 ? COLUMNS : 1;
        for (int64_t i = 0; i < results; i++) {
            double error = fabs((double)load(dtype, out[i]) - wanted[i]);
            CHECK(error <= (dtype == MT_DTYPE_F16 ? 0x1p-11 : 0x1p-8) * fabs(wanted[i]) + 1e-4);
        }
    }
}

/* Whole tensors: rows of a turned input; the result is written in its own layout. */
static void check_widened(mt_dtype dtype)
{
    static uint16_t in[COUNT], out[COUNT];
    uint64_t seed = mt_test_seed();
    fill(dtype, in, COUNT, &seed);
    const mt_array arrays[2] = {array_of(out, turned, dtype), array_of(in, flat, dtype)};
    CHECK_OK(launch(mt__host_CUMSUM, 0, arrays, 2, 1, plain));
    for (int64_t row = 0; row < ROWS; row++) {
        float total = 0;
        for (int64_t i = 0; i < COLUMNS; i++) {
            total += load(dtype, in[row * COLUMNS + i]);
        }
        float got = load(dtype, out[row + (COLUMNS - 1) * ROWS]);
        CHECK(fabsf(got - total) <=
              (dtype == MT_DTYPE_F16 ? 0x1p-10F : 0x1p-7F) * fabsf(total) + 1e-3F);
    }
}

static void check_all(void)
{
    for (int type = MT_DTYPE_F16; type <= MT_DTYPE_BF16; type++) {
        check_pointwise((mt_dtype)type);
        check_sums((mt_dtype)type);
        check_widened((mt_dtype)type);
    }
}

TEST(computed_in_float)
{
    pointwise_each_isa(check_all);
}

/* Memory that is refused is an error, and nothing is written. */
TEST(no_memory_for_copies)
{
    static uint16_t in[COUNT], out[COUNT];
    const mt_array arrays[2] = {array_of(out, flat, MT_DTYPE_BF16),
                                array_of(in, flat, MT_DTYPE_BF16)};
    memset(in, 0x3f, sizeof(in));
    mtb_fail_nth(1, true);
    int status = launch(mt__host_CUMSUM, 0, arrays, 2, 1, plain);
    mtb_fail_nth(0, false);
    CHECK_EQ_I64(status, MT_ENOMEM);
    CHECK_EQ_U64(out[0], 0);
}
