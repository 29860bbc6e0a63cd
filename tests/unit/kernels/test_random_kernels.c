/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers: the published answers of Philox, every kind against philox.h read literally, the
 * same numbers in any layout, at any offset, with any number of threads, and loose statistics.
 */
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/isa.h"
#include "kernels/number/philox.h"
#include "kernels/walk/parallel.h"
#include "support/pointwise_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t seed_bits = UINT64_C(0x123456789abcdef0);

TEST(philox_known_answers)
{
    static const struct {
        uint32_t counter[4];
        uint64_t seed;
        uint32_t words[4];
    } answers[] = {
        {{0, 0, 0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         UINT64_MAX,
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         UINT64_C(0x299f31d0a4093822),
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        uint32_t words[4];
        mt__philox(answers[i].seed, answers[i].counter, words);
        CHECK_EQ_MEM(words, answers[i].words, sizeof words);
    }
}

/* ---- the definition, read literally ---- */

static double unit_float(uint64_t draw, int drop, double half)
{
    uint32_t high = (uint32_t)(mt__draw_wide(seed_bits, draw) >> 32);
    /* each step in float, as the definition says */
    float whole = (float)(high >> drop);
    return (double)(whole + (float)half) * ldexp(1, drop - 32);
}

static double unit_double(uint64_t draw, int drop, double half)
{
    uint64_t wide = mt__draw_wide(seed_bits, draw);
    return (double)((long double)(wide >> drop) + (long double)half) * ldexp(1, drop - 64);
}

static double expected(uint16_t code, bool is_double, uint64_t draw, const double s[2])
{
    switch (code) {
    case MT_RANDOM_UNIFORM:
        return s[0] +
               (s[1] - s[0]) * (is_double ? unit_double(draw, 11, 0) : unit_float(draw, 8, 0));
    case MT_RANDOM_NORMAL: {
        uint64_t even = draw & ~UINT64_C(1);
        double u = is_double ? unit_double(even, 11, 0.5) : unit_float(even, 1, 0.5);
        double v = is_double ? unit_double(even + 1, 11, 0) : unit_float(even + 1, 8, 0);
        double r = sqrt(-2 * log(u));
        double a = 2 * M_PI * v;
        return s[0] + s[1] * (r * ((draw & 1) == 0 ? cos(a) : sin(a)));
    }
    case MT_RANDOM_EXPONENTIAL:
        return -log(is_double ? unit_double(draw, 12, 0.5) : unit_float(draw, 9, 0.5)) / s[0];
    case MT_RANDOM_BERNOULLI: return (double)(mt__draw_wide(seed_bits, draw) >> 32) < s[0] * 0x1p32;
    default: {
        uint64_t wide = mt__draw_wide(seed_bits, draw);
        uint64_t range = (uint64_t)(s[1] - s[0]);
        return s[0] + (double)(uint64_t)((unsigned __int128)wide * range >> 64);
    }
    }
}

static void run_random(uint16_t code, const mt_array *out, int64_t offset, const double s[2])
{
    const int64_t ints[2] = {(int64_t)seed_bits, offset};
    mt_scalar scalars[2];
    for (int i = 0; i < 2; i++) {
        scalars[i] = (mt_scalar){.kind = MT_KIND_REAL, .of.real = s[i]};
        if (code == MT_RANDOM_INTEGER) {
            scalars[i] = (mt_scalar){.kind = MT_KIND_INT, .of.integer = (int64_t)s[i]};
        }
    }
    mt_kernel_call call = {.struct_size = sizeof call,
                           .code = code,
                           .n_tensors = 1,
                           .n_ints = 2,
                           .n_scalars = 2,
                           .tensors = out,
                           .ints = ints,
                           .scalars = scalars};
    CHECK_OK(mt__host_RANDOM(NULL, NULL, &call));
}

static const double arguments[MT_RANDOM_COUNT][2] = {
    [MT_RANDOM_UNIFORM] = {-1.5, 2},    [MT_RANDOM_NORMAL] = {0.5, 2},
    [MT_RANDOM_INTEGER] = {-7, 20},     [MT_RANDOM_BERNOULLI] = {0.3, 0},
    [MT_RANDOM_EXPONENTIAL] = {1.5, 0},
};

static bool has_type(uint16_t code, int type)
{
    return type == MT_DTYPE_F32 || type == MT_DTYPE_F64 ||
           (code >= MT_RANDOM_INTEGER && code <= MT_RANDOM_BERNOULLI &&
            (type == MT_DTYPE_I32 || type == MT_DTYPE_I64));
}

static void check_kind(uint16_t code, mt_dtype dtype, uint64_t *seed)
{
    for (int shape = 0; shape < pointwise_shape_count; shape++) {
        strided_array out;
        strided_array_init(&out, dtype, pointwise_shapes[shape].sizes,
                           pointwise_shapes[shape].n_dims,
                           (strided_layout)(mt_test_random(seed) % LAYOUT_REPEATED));
        uint64_t offset = mt_test_random(seed) >> (mt_test_random(seed) % 2 == 0 ? 60 : 20);
        run_random(code, &out.array, (int64_t)offset, arguments[code]);
        for (int64_t i = 0, count = strided_numel(&out.array); i < count; i++) {
            double want =
                expected(code, dtype == MT_DTYPE_F64, offset + (uint64_t)i, arguments[code]);
            double got = strided_get(&out.array, i);
            double tolerance = dtype == MT_DTYPE_F64 ? 1e-14 : 2e-6;
            if (code == MT_RANDOM_INTEGER || code == MT_RANDOM_BERNOULLI) {
                tolerance = 0;
            }
            if (!(fabs(got - want) <= tolerance * (1 + fabs(want)))) {
                FAIL("kind %u dtype %d draw %llu: %.17g, not %.17g", code, dtype,
                     (unsigned long long)(offset + (uint64_t)i), got, want);
            }
        }
        strided_array_fini(&out);
    }
}

static void check_kinds(void)
{
    uint64_t seed = mt_test_seed();
    for (unsigned number = 0; number < MT_RANDOM_COUNT; number++) {
        uint16_t code = (uint16_t)number;
        for (int type = MT_DTYPE_I32; type < MT_DTYPE_C64; type++) {
            if (has_type(code, type)) {
                check_kind(code, (mt_dtype)type, &seed);
            }
        }
    }
}

TEST(kinds_as_defined)
{
    pointwise_each_isa(check_kinds);
}

/* ---- the same everywhere ---- */

enum {
    MANY = 100003
};

static float *take_floats(uint16_t code, int64_t offset, uint32_t threads)
{
    float *data = malloc(MANY * sizeof *data);
    REQUIRE(data != NULL);
    const int64_t size = MANY;
    const int64_t stride = 1;
    mt_array out = {data, &size, &stride, 1, MT_DTYPE_F32};
    mt__parallel_set_threads(threads);
    run_random(code, &out, offset, arguments[code]);
    mt__parallel_set_threads(0);
    return data;
}

TEST(threads_do_not_matter)
{
    for (unsigned number = 0; number < MT_RANDOM_COUNT; number++) {
        uint16_t code = (uint16_t)number;
        float *one = take_floats(code, 5, 1);
        float *four = take_floats(code, 5, 4);
        CHECK_EQ_MEM(one, four, MANY * sizeof *one);
        /* A range that begins later gives the same numbers. */
        float *later = take_floats(code, 8, 1);
        CHECK_EQ_MEM(one + 3, later, (MANY - 3) * sizeof *one);
        free(one);
        free(four);
        free(later);
    }
}

static float *at_level[3];

static void keep_uniform(void)
{
    at_level[mt__isa_level()] = take_floats(MT_RANDOM_UNIFORM, 1, 1);
}

TEST(uniform_floats_are_the_same_at_every_isa)
{
    pointwise_each_isa(keep_uniform);
    for (int i = 1; i < 3; i++) {
        if (at_level[i] != NULL) {
            CHECK_EQ_MEM(at_level[0], at_level[i], MANY * sizeof *at_level[0]);
        }
    }
    for (int i = 0; i < 3; i++) {
        free(at_level[i]);
    }
}

/* ---- statistics, loosely ---- */

TEST(moments)
{
    static const double mean[MT_RANDOM_COUNT] = {0.25, 0.5, 6, 0.3, 1 / 1.5};
    static const double deviation[MT_RANDOM_COUNT] = {3.5 / 3.4641016, 2, 7.7888, 0.4582576,
                                                      1 / 1.5};
    for (unsigned number = 0; number < MT_RANDOM_COUNT; number++) {
        uint16_t code = (uint16_t)number;
        float *data = take_floats(code, 77, 2);
        double sum = 0, squares = 0;
        for (int i = 0; i < MANY; i++) {
            sum += (double)data[i];
            squares += (double)data[i] * (double)data[i];
        }
        double average = sum / MANY;
        CHECK_NEAR_F64(average, mean[code], 5 * deviation[code] / sqrt(MANY));
        CHECK_NEAR_F64(sqrt(squares / MANY - average * average), deviation[code],
                       0.02 * deviation[code]);
        free(data);
    }
}

TEST(uniform_stays_below_its_end)
{
    static const double narrow[2] = {1, 1.0000002};
    float data[4096];
    const int64_t size = 4096;
    const int64_t stride = 1;
    mt_array out = {data, &size, &stride, 1, MT_DTYPE_F32};
    run_random(MT_RANDOM_UNIFORM, &out, 0, narrow);
    for (int i = 0; i < 4096; i++) {
        CHECK(data[i] >= 1.0F && data[i] < 1.0000002F);
    }
}

/* ---- dropout ---- */

TEST(dropout_keeps_and_scales)
{
    static const double probabilities[] = {0, 0.1, 0.5, 1};
    for (int k = 0; k < 8; k++) {
        double p = probabilities[k % 4];
        mt_dtype dtype = k < 4 ? MT_DTYPE_F32 : MT_DTYPE_F64;
        const int64_t sizes[2] = {60, 70};
        strided_array out, mask, in;
        strided_array_init(&out, dtype, sizes, 2, (strided_layout)(k % LAYOUT_REPEATED));
        strided_array_init(&mask, MT_DTYPE_BOOL, sizes, 2, LAYOUT_SLICED);
        strided_array_init(&in, dtype, sizes, 2, LAYOUT_TRANSPOSED);
        uint64_t seed = mt_test_seed();
        strided_fill(&in.array, &seed);
        mt_array arrays[3] = {out.array, mask.array, in.array};
        const int64_t ints[2] = {(int64_t)seed_bits, 11};
        mt_scalar scalar = {.kind = MT_KIND_REAL, .of.real = p};
        mt_kernel_call call = {.struct_size = sizeof call,
                               .n_tensors = 3,
                               .n_ints = 2,
                               .n_scalars = 1,
                               .tensors = arrays,
                               .ints = ints,
                               .scalars = &scalar};
        CHECK_OK(mt__host_DROPOUT(NULL, NULL, &call));
        for (int64_t i = 0; i < 4200; i++) {
            double high = (double)(mt__draw_wide(seed_bits, 11 + (uint64_t)i) >> 32);
            bool kept = high >= p * 0x1p32;
            CHECK_EQ_I64(strided_get_integer(&mask.array, i), kept);
            double x = strided_get(&in.array, i);
            CHECK_NEAR_F64(strided_get(&out.array, i), kept ? x / (1 - p) : 0, 4e-7 * fabs(x));
        }
        strided_array_fini(&out);
        strided_array_fini(&mask);
        strided_array_fini(&in);
    }
}

/* ---- permutations ---- */

static int run_randperm(int64_t *data, int64_t n, int64_t stride, int64_t offset)
{
    mt_array out = {data, &n, &stride, 1, MT_DTYPE_I64};
    const int64_t ints[2] = {(int64_t)seed_bits, offset};
    mt_kernel_call call = {
        .struct_size = sizeof call, .n_tensors = 1, .n_ints = 2, .tensors = &out, .ints = ints};
    return mt__host_RANDPERM(NULL, NULL, &call);
}

TEST(permutations)
{
    enum {
        N = 3000
    };
    static int64_t data[N], wide[2 * N], plain[N];
    for (int64_t i = 0; i < N; i++) {
        plain[i] = i;
    }
    for (int64_t i = 0; i < N - 1; i++) {
        uint64_t draw = mt__draw_wide(seed_bits, 3 + (uint64_t)i);
        int64_t j = i + (int64_t)mt__multiply_high(draw, (uint64_t)(N - i));
        int64_t kept = plain[i];
        plain[i] = plain[j];
        plain[j] = kept;
    }
    CHECK_OK(run_randperm(data, N, 1, 3));
    CHECK_OK(run_randperm(wide, N, 2, 3));
    CHECK_EQ_MEM(data, plain, sizeof data);
    for (int i = 0; i < N; i++) {
        CHECK_EQ_I64(wide[2 * i], plain[i]);
    }
    CHECK_OK(run_randperm(data, 0, 1, 3));
    CHECK_OK(run_randperm(data, 1, 1, 3));
    CHECK_EQ_I64(data[0], 0);
}

TEST(probability_bounds)
{
    CHECK_EQ_U64(mt__probability_bound(0), 0);
    CHECK_EQ_U64(mt__probability_bound(-1), 0);
    CHECK_EQ_U64(mt__probability_bound(NAN), 0);
    CHECK_EQ_U64(mt__probability_bound(1), UINT64_C(1) << 32);
    CHECK_EQ_U64(mt__probability_bound(2), UINT64_C(1) << 32);
    CHECK_EQ_U64(mt__probability_bound(0.5), UINT64_C(1) << 31);
    CHECK_EQ_U64(mt__probability_bound(1e-12), 1);
}
