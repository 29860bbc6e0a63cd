/* SPDX-License-Identifier: Apache-2.0
 *
 * REDUCE and VAR_MEAN against plain loops: every code, type, layout and set of dimensions, at every
 * instruction set.
 */
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/isa.h"
#include "kernels/walk/parallel.h"
#include "support/strided_array.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const mt_dtype all_types[] = {MT_DTYPE_BOOL, MT_DTYPE_U8,  MT_DTYPE_I32,
                                     MT_DTYPE_I64,  MT_DTYPE_F32, MT_DTYPE_F64};

typedef struct shape {
    int32_t n_dims;
    int64_t sizes[4];
} shape;

static const shape shapes[] = {
    {0, {0}},        {1, {1}},          {1, {7}},       {1, {1000}},      {2, {3, 5}},
    {2, {32, 10}},   {2, {10, 200}},    {2, {130, 2}},  {3, {3, 4, 5}},   {3, {2, 70, 3}},
    {3, {4, 1, 90}}, {4, {2, 3, 2, 5}}, {1, {0}},       {2, {3, 0}},      {2, {0, 3}},
    {2, {140, 530}}, {1, {20000}},      {2, {2, 9000}}, {3, {5, 20, 80}},
};

static bool is_real(mt_dtype dtype)
{
    return mt_dtype_category(dtype) == MT_CATEGORY_REAL;
}

static bool is_defined(mt_reduce code, mt_dtype dtype)
{
    switch (code) {
    case MT_REDUCE_MEAN:
    case MT_REDUCE_SUM_ABS:
    case MT_REDUCE_SUM_SQUARES:
    case MT_REDUCE_NORM:
    case MT_REDUCE_LOGSUMEXP: return is_real(dtype);
    default: return true;
    }
}

static mt_dtype result_type(mt_reduce code, mt_dtype dtype)
{
    switch (code) {
    case MT_REDUCE_ALL:
    case MT_REDUCE_ANY: return MT_DTYPE_BOOL;
    case MT_REDUCE_COUNT_NONZERO: return MT_DTYPE_I64;
    case MT_REDUCE_SUM:
    case MT_REDUCE_PROD: return is_real(dtype) ? dtype : MT_DTYPE_I64;
    default: return dtype;
    }
}

/* ---- the reference ---- */

typedef struct expected {
    double value;
    double scale; /* of the terms: what rounding errors are relative to */
    uint64_t integer;
} expected;

static void add_element(mt_reduce code, double p, double x, expected *e)
{
    switch (code) {
    case MT_REDUCE_SUM:
    case MT_REDUCE_MEAN:
        e->value += x;
        e->scale += fabs(x);
        e->integer += (uint64_t)(int64_t)x;
        break;
    case MT_REDUCE_PROD:
        e->value *= x;
        e->scale = fabs(e->value);
        e->integer *= (uint64_t)(int64_t)x;
        break;
    case MT_REDUCE_MAX: e->value = x > e->value || isnan(x) ? x : e->value; break;
    case MT_REDUCE_MIN: e->value = x < e->value || isnan(x) ? x : e->value; break;
    case MT_REDUCE_ALL: e->value = e->value != 0 && x != 0; break;
    case MT_REDUCE_ANY: e->value = e->value != 0 || x != 0; break;
    case MT_REDUCE_COUNT_NONZERO: e->value += x != 0; break;
    case MT_REDUCE_SUM_ABS: e->value += fabs(x); break;
    case MT_REDUCE_SUM_SQUARES: e->value += x * x; break;
    case MT_REDUCE_LOGSUMEXP: e->value += exp(x); break;
    default: /* NORM */ e->value += pow(fabs(x), p); break;
    }
}

static double first_of(mt_reduce code)
{
    switch (code) {
    case MT_REDUCE_PROD:
    case MT_REDUCE_ALL: return 1;
    case MT_REDUCE_MAX: return -INFINITY;
    case MT_REDUCE_MIN: return INFINITY;
    default: return 0;
    }
}

static double finish(mt_reduce code, double p, double value, int64_t count)
{
    switch (code) {
    case MT_REDUCE_MEAN: return value / (double)count;
    case MT_REDUCE_NORM: return pow(value, 1 / p);
    case MT_REDUCE_LOGSUMEXP: return log(value);
    default: return value;
    }
}

/* Checks every result; element i of the input belongs to the result that element i of `out` is. */
static bool check(mt_reduce code, double p, const mt_array *out, const mt_array *in,
                  int64_t results)
{
    int64_t numel = strided_numel(in);
    expected *e = calloc((size_t)results + 1, sizeof *e);
    REQUIRE(e != NULL);
    for (int64_t i = 0; i < results; i++) {
        e[i] = (expected){.value = first_of(code), .integer = code == MT_REDUCE_PROD};
    }
    for (int64_t i = 0; i < numel; i++) {
        add_element(code, p, strided_get(in, i), &e[strided_offset(out, i)]);
    }
    mt_array flat = *out;
    int64_t one = 1;
    flat.n_dims = 1;
    flat.sizes = &results;
    flat.strides = &one;
    bool good = true;
    double epsilon = in->dtype == MT_DTYPE_F32 ? 2e-6 : 3e-12; /* the reference adds in double */
    for (int64_t i = 0; i < results && good; i++) {
        double value = finish(code, p, e[i].value, results == 0 ? 0 : numel / results);
        double got = strided_get(&flat, i);
        if (mt_dtype_category((mt_dtype)out->dtype) == MT_CATEGORY_INT &&
            (code == MT_REDUCE_SUM || code == MT_REDUCE_PROD)) {
            good = CHECK_EQ_U64((uint64_t)strided_get_integer(&flat, i), e[i].integer);
        } else if (code == MT_REDUCE_PROD && fabs(log(fabs(value))) > 60) {
            continue; /* about what float holds */
        } else if (isinf(value) || isnan(value)) {
            bool skip = (code == MT_REDUCE_MAX || code == MT_REDUCE_MIN) && numel == 0;
            good = skip || CHECK_EQ_F64(got, value);
        } else {
            double scale = fabs(value) + e[i].scale / (code == MT_REDUCE_MEAN ? 10 : 1);
            scale *= code == MT_REDUCE_PROD ? 1 + (double)(numel / results) / 1000 : 1;
            scale += code == MT_REDUCE_LOGSUMEXP; /* the reference has e^x, then its logarithm */
            good = CHECK_NEAR_F64(got, value, epsilon * scale + (double)FLT_MIN);
        }
    }
    free(e);
    return good;
}

static void reduce_once(mt_reduce code, double p, mt_dtype dtype, const shape *of,
                        strided_layout layout, uint32_t mask, uint64_t *seed)
{
    strided_array in, out;
    strided_array_init(&in, dtype, of->sizes, of->n_dims, layout);
    strided_fill(&in.array, seed);
    if (code == MT_REDUCE_PROD && is_real(dtype)) { /* near 1, so that products stay in range */
        for (int64_t i = 0, count = strided_numel(&in.array); i < count; i++) {
            strided_set(&in.array, i, exp(strided_get(&in.array, i) / 20));
        }
    }
    strided_array_init_reduced(&out, result_type(code, dtype), of->sizes, of->n_dims, mask);
    int64_t results = 1;
    for (int32_t i = 0; i < of->n_dims; i++) {
        results *= (mask >> i & 1) != 0 ? 1 : of->sizes[i];
    }
    mt_array tensors[2] = {out.array, in.array};
    mt_scalar scalar = {.kind = MT_KIND_REAL, .of.real = p};
    mt_kernel_call call = {.struct_size = sizeof call,
                           .kernel = MT_KERNEL_REDUCE,
                           .code = (uint16_t)code,
                           .n_tensors = 2,
                           .n_scalars = 1,
                           .tensors = tensors,
                           .scalars = &scalar};
    CHECK_OK(mt__host_REDUCE(NULL, NULL, &call));
    if (!check(code, p, &out.array, &in.array, results)) {
        FAIL("code %d type %s dims %d [%lld %lld %lld] layout %d mask %u", (int)code,
             mt_dtype_name(dtype), of->n_dims, (long long)of->sizes[0], (long long)of->sizes[1],
             (long long)of->sizes[2], (int)layout, mask);
        mt_test_leave();
    }
    strided_array_fini(&in);
    strided_array_fini(&out);
}

static void reduce_all(mt__isa level)
{
    uint64_t seed = mt_test_seed();
    mt__isa_limit(level);
    if (mt__isa_level() != level) {
        MT_SKIP("this processor has not got these instructions");
    }
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int code = 0; code < MT_REDUCE_COUNT; code++) {
            for (size_t t = 0; t < sizeof all_types / sizeof all_types[0]; t++) {
                if (!is_defined((mt_reduce)code, all_types[t])) {
                    continue;
                }
                for (uint32_t mask = 0; mask < 1U << shapes[s].n_dims; mask++) {
                    if (shapes[s].sizes[0] * shapes[s].sizes[1] > 50000 &&
                        mt_test_random(&seed) % 4 != 0) {
                        continue; /* a sample of the large ones */
                    }
                    strided_layout layout = (strided_layout)(mt_test_random(&seed) % LAYOUT_COUNT);
                    reduce_once((mt_reduce)code, 3, all_types[t], &shapes[s], layout, mask, &seed);
                    reduce_once((mt_reduce)code, 3, all_types[t], &shapes[s], LAYOUT_CONTIGUOUS,
                                mask, &seed);
                }
            }
        }
    }
}

TEST(reduce_base)
{
    reduce_all(MT_ISA_BASE);
}

TEST(reduce_v3)
{
    reduce_all(MT_ISA_V3);
}

TEST(reduce_v4)
{
    reduce_all(MT_ISA_V4);
}

/* ---- one vector ---- */

static double reduce_vector(mt_reduce code, double p, mt_dtype dtype, const double *x, int64_t n,
                            mt_dtype out_dtype)
{
    strided_array in, out;
    strided_array_init(&in, dtype, &n, 1, LAYOUT_CONTIGUOUS);
    strided_array_init_reduced(&out, out_dtype, &n, 1, 1);
    for (int64_t i = 0; i < n; i++) {
        strided_set(&in.array, i, x[i]);
    }
    mt_array tensors[2] = {out.array, in.array};
    mt_scalar scalar = {.kind = MT_KIND_REAL, .of.real = p};
    mt_kernel_call call = {.struct_size = sizeof call,
                           .code = (uint16_t)code,
                           .n_tensors = 2,
                           .n_scalars = 1,
                           .tensors = tensors,
                           .scalars = &scalar};
    CHECK_OK(mt__host_REDUCE(NULL, NULL, &call));
    int64_t one = 1;
    mt_array flat = {.data = out.array.data,
                     .sizes = &one,
                     .strides = &one,
                     .n_dims = 1,
                     .dtype = (uint32_t)out_dtype};
    double value = strided_get(&flat, 0);
    strided_array_fini(&in);
    strided_array_fini(&out);
    return value;
}

#define F32(code, p, ...)                                             \
    reduce_vector((code), (p), MT_DTYPE_F32, (double[]){__VA_ARGS__}, \
                  (int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), MT_DTYPE_F32)

TEST(norms_of_every_order)
{
    CHECK_NEAR_F64(F32(MT_REDUCE_NORM, 2, 3, -4), 5, 1e-6);
    CHECK_NEAR_F64(F32(MT_REDUCE_NORM, 1, 3, -4), 7, 1e-6);
    CHECK_EQ_F64(F32(MT_REDUCE_NORM, 0, 3, 0, -4), 2);
    CHECK_EQ_F64(F32(MT_REDUCE_NORM, (double)INFINITY, 3, 0, -4), 4);
    CHECK_EQ_F64(F32(MT_REDUCE_NORM, -(double)INFINITY, 3, 1, -4), 1);
    CHECK_NEAR_F64(F32(MT_REDUCE_NORM, 0.5, 1, -2), 5.828427, 1e-5);
    CHECK_EQ_F64(F32(MT_REDUCE_NORM, -1, 1, -2, 0), 0);
}

TEST(not_a_number_wins)
{
    double nan = (double)NAN;
    CHECK(isnan(F32(MT_REDUCE_MAX, 0, 1, nan, 3)));
    CHECK(isnan(F32(MT_REDUCE_MIN, 0, nan, 1, 3)));
    CHECK(isnan(F32(MT_REDUCE_NORM, (double)INFINITY, 1, nan, 3)));
    CHECK_EQ_F64(F32(MT_REDUCE_COUNT_NONZERO, 0, 0, nan, 3), 2);
    for (int64_t n = 1; n < 400; n += 13) { /* at any place, of any lane */
        double x[400] = {0};
        for (int64_t at = 0; at < n; at++) {
            x[at] = nan;
            CHECK(isnan(reduce_vector(MT_REDUCE_MAX, 0, MT_DTYPE_F32, x, n, MT_DTYPE_F32)));
            CHECK(isnan(reduce_vector(MT_REDUCE_MIN, 0, MT_DTYPE_F64, x, n, MT_DTYPE_F64)));
            x[at] = 0;
        }
    }
}

TEST(logsumexp_of_infinities)
{
    double inf = (double)INFINITY;
    CHECK_EQ_F64(F32(MT_REDUCE_LOGSUMEXP, 0, inf, 1), inf);
    CHECK_EQ_F64(F32(MT_REDUCE_LOGSUMEXP, 0, inf, -inf), inf);
    CHECK_EQ_F64(F32(MT_REDUCE_LOGSUMEXP, 0, -inf, -inf), -inf);
    CHECK_NEAR_F64(F32(MT_REDUCE_LOGSUMEXP, 0, -inf, 1), 1, 1e-6);
    CHECK_NEAR_F64(F32(MT_REDUCE_LOGSUMEXP, 0, 1000, 1000), 1000 + log(2), 1e-4);
    CHECK_NEAR_F64(F32(MT_REDUCE_LOGSUMEXP, 0, -1000, -1000), -1000 + log(2), 1e-4);
    CHECK(isnan(F32(MT_REDUCE_LOGSUMEXP, 0, 1, (double)NAN)));
}

TEST(integers_wrap_and_widen)
{
    const double bytes[] = {200, 100, 56};
    CHECK_EQ_F64(reduce_vector(MT_REDUCE_SUM, 0, MT_DTYPE_U8, bytes, 3, MT_DTYPE_I64), 356);
    CHECK_EQ_F64(reduce_vector(MT_REDUCE_SUM, 0, MT_DTYPE_U8, bytes, 3, MT_DTYPE_U8), 100);
    const double large[] = {2147483647, 2147483647, 2};
    CHECK_EQ_F64(reduce_vector(MT_REDUCE_SUM, 0, MT_DTYPE_I32, large, 3, MT_DTYPE_I64), 4294967296);
    CHECK_EQ_F64(reduce_vector(MT_REDUCE_SUM, 0, MT_DTYPE_I32, large, 3, MT_DTYPE_I32), 0);
    const double many[] = {0x1p62, 0x1p62, 0x1p62, 0x1p62};
    CHECK_EQ_F64(reduce_vector(MT_REDUCE_SUM, 0, MT_DTYPE_I64, many, 4, MT_DTYPE_I64), 0);
    CHECK_EQ_F64(reduce_vector(MT_REDUCE_PROD, 0, MT_DTYPE_I64, many, 4, MT_DTYPE_I64), 0);
}

/* RL1, RL2: a long sum is right, and the same with any number of threads. */
TEST(long_sums)
{
    enum {
        COUNT = 10 * 1000 * 1000
    };
    float *x = malloc(COUNT * sizeof *x);
    REQUIRE(x != NULL);
    int64_t size = COUNT;
    int64_t one = 1;
    int64_t zero = 0;
    float sum;
    mt_array tensors[2] = {
        {.data = &sum, .sizes = &size, .strides = &zero, .n_dims = 1, .dtype = MT_DTYPE_F32},
        {.data = x, .sizes = &size, .strides = &one, .n_dims = 1, .dtype = MT_DTYPE_F32}};
    mt_kernel_call call = {.struct_size = sizeof call, .n_tensors = 2, .tensors = tensors};
    for (int64_t i = 0; i < COUNT; i++) {
        x[i] = 1;
    }
    CHECK_OK(mt__host_REDUCE(NULL, NULL, &call));
    CHECK_EQ_F64((double)sum, COUNT);
    double exact = 0;
    uint64_t seed = mt_test_seed();
    for (int64_t i = 0; i < COUNT; i++) {
        x[i] = (float)(mt_test_random(&seed) >> 40) * 0x1p-24F + 0.1F;
        exact += (double)x[i];
    }
    float sums[4];
    for (uint32_t threads = 1; threads <= 4; threads++) {
        mt__parallel_set_threads(threads);
        CHECK_OK(mt__host_REDUCE(NULL, NULL, &call));
        sums[threads - 1] = sum;
    }
    CHECK_NEAR_F64((double)sums[0], exact, exact * 1.2e-7);
    CHECK_EQ_MEM(&sums[0], &sums[1], sizeof sum);
    CHECK_EQ_MEM(&sums[0], &sums[3], sizeof sum);
    free(x);
}

/* ---- variance ---- */

static void check_variance(const strided_array *var, const strided_array *mean, const mt_array *in,
                           int64_t results, uint16_t code, double correction)
{
    double *m = calloc((size_t)results + 1, sizeof *m);
    double *q = calloc((size_t)results + 1, sizeof *q);
    REQUIRE(m != NULL && q != NULL);
    int64_t numel = strided_numel(in);
    double count = (double)(numel / (results == 0 ? 1 : results));
    for (int64_t i = 0; i < numel; i++) {
        m[strided_offset(&var->array, i)] += strided_get(in, i);
    }
    for (int64_t i = 0; i < results; i++) {
        m[i] /= count;
    }
    for (int64_t i = 0; i < numel; i++) {
        int64_t at = strided_offset(&var->array, i);
        q[at] += (strided_get(in, i) - m[at]) * (strided_get(in, i) - m[at]);
    }
    double epsilon = in->dtype == MT_DTYPE_F32 ? 3e-6 : 2e-12;
    int64_t one = 1;
    for (int64_t i = 0; i < results; i++) {
        mt_array flat = {.data = var->array.data,
                         .sizes = &results,
                         .strides = &one,
                         .n_dims = 1,
                         .dtype = in->dtype};
        double value = q[i] / (count > correction ? count - correction : 0);
        double got = strided_get(&flat, i);
        got = code == 1 ? got * got : got;
        CHECK_NEAR_F64(got, value, isfinite(value) ? epsilon * (fabs(value) + 1e-2) : 0);
        if (mean != NULL) {
            flat.data = mean->array.data;
            CHECK_NEAR_F64(strided_get(&flat, i), count == 0 ? (double)NAN : m[i],
                           10 * epsilon * (fabs(m[i]) + 1));
        }
    }
    free(m);
    free(q);
}

static void variance_once(mt_dtype dtype, const shape *of, strided_layout layout, uint32_t mask,
                          uint16_t code, uint64_t *seed)
{
    strided_array in, var, mean;
    double correction = (double)(mt_test_random(seed) % 3);
    bool with_mean = mt_test_random(seed) % 2 == 0;
    strided_array_init(&in, dtype, of->sizes, of->n_dims, layout);
    strided_fill(&in.array, seed);
    strided_array_init_reduced(&var, dtype, of->sizes, of->n_dims, mask);
    strided_array_init_reduced(&mean, dtype, of->sizes, of->n_dims, mask);
    int64_t results = 1;
    for (int32_t i = 0; i < of->n_dims; i++) {
        results *= (mask >> i & 1) != 0 ? 1 : of->sizes[i];
    }
    mt_array tensors[3] = {var.array, mean.array, in.array};
    if (!with_mean) {
        tensors[1] = (mt_array){.n_dims = -1};
    }
    mt_scalar scalar = {.kind = MT_KIND_REAL, .of.real = correction};
    mt_kernel_call call = {.struct_size = sizeof call,
                           .kernel = MT_KERNEL_VAR_MEAN,
                           .code = code,
                           .n_tensors = 3,
                           .n_scalars = 1,
                           .tensors = tensors,
                           .scalars = &scalar};
    CHECK_OK(mt__host_VAR_MEAN(NULL, NULL, &call));
    check_variance(&var, with_mean ? &mean : NULL, &in.array, results, code, correction);
    strided_array_fini(&in);
    strided_array_fini(&var);
    strided_array_fini(&mean);
}

TEST(variance_everywhere)
{
    uint64_t seed = mt_test_seed();
    for (int level = MT_ISA_BASE; level <= MT_ISA_V4; level++) {
        mt__isa_limit((mt__isa)level);
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            for (uint32_t mask = 0; mask < 1U << shapes[s].n_dims; mask++) {
                for (int layout = 0; layout < LAYOUT_COUNT; layout++) {
                    variance_once(MT_DTYPE_F32, &shapes[s], (strided_layout)layout, mask, 0, &seed);
                    variance_once(MT_DTYPE_F64, &shapes[s], (strided_layout)layout, mask, 1, &seed);
                }
            }
        }
    }
}

/* The deviation of numbers far from 0 is not lost. */
TEST(variance_is_stable)
{
    enum {
        COUNT = 100000
    };
    static double x[COUNT];
    double var, mean;
    int64_t size = COUNT;
    int64_t one = 1;
    int64_t zero = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        x[i] = 1e9 + (double)(i % 2);
    }
    mt_array tensors[3] = {
        {.data = &var, .sizes = &size, .strides = &zero, .n_dims = 1, .dtype = MT_DTYPE_F64},
        {.data = &mean, .sizes = &size, .strides = &zero, .n_dims = 1, .dtype = MT_DTYPE_F64},
        {.data = x, .sizes = &size, .strides = &one, .n_dims = 1, .dtype = MT_DTYPE_F64}};
    mt_scalar correction = {.kind = MT_KIND_INT, .of.integer = 0};
    mt_kernel_call call = {.struct_size = sizeof call,
                           .n_tensors = 3,
                           .n_scalars = 1,
                           .tensors = tensors,
                           .scalars = &correction};
    CHECK_OK(mt__host_VAR_MEAN(NULL, NULL, &call));
    CHECK_NEAR_F64(var, 0.25, 1e-9);
    CHECK_NEAR_F64(mean, 1e9 + 0.5, 1e-6);
}

/* Equal elements have a variance of 0, exactly, in every form. */
TEST(variance_of_equal_elements)
{
    static const float values[] = {0.74092966F, 1000000.3F, 1e-30F, -3.3F};
    static float x[40 * 600];
    for (size_t v = 0; v < 4; v++) {
        for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) {
            x[i] = values[v];
        }
        for (uint32_t mask = 1; mask < 4; mask++) {
            for (int64_t n = 3; n <= 600; n *= 5) {
                int64_t sizes[2] = {40, n};
                int64_t in_strides[2] = {n, 1};
                int64_t out_strides[2] = {(mask & 1) != 0   ? 0
                                          : (mask & 2) != 0 ? 1
                                                            : n,
                                          (mask & 2) != 0 ? 0 : 1};
                float var[600];
                memset(var, 1, sizeof var);
                mt_array tensors[3] = {{.data = var,
                                        .sizes = sizes,
                                        .strides = out_strides,
                                        .n_dims = 2,
                                        .dtype = MT_DTYPE_F32},
                                       {.n_dims = -1},
                                       {.data = x,
                                        .sizes = sizes,
                                        .strides = in_strides,
                                        .n_dims = 2,
                                        .dtype = MT_DTYPE_F32}};
                mt_scalar one = {.kind = MT_KIND_INT, .of.integer = 1};
                mt_kernel_call call = {.struct_size = sizeof call,
                                       .code = 1,
                                       .n_tensors = 3,
                                       .n_scalars = 1,
                                       .tensors = tensors,
                                       .scalars = &one};
                CHECK_OK(mt__host_VAR_MEAN(NULL, NULL, &call));
                CHECK_EQ_F64((double)var[0], 0);
                CHECK_EQ_F64((double)var[mask == 1 ? n - 1 : mask == 2 ? 39 : 0], 0);
            }
        }
    }
}
