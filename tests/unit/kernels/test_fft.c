/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_FFT against sums in long double: lengths of all kinds, layouts, instruction sets.
 */
#include "base/compiler.h"
#include "harness/mt_test.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/isa.h"

#include <math.h>
#include <stdlib.h>

enum {
    C2C,
    R2C,
    C2R
};

typedef struct transform {
    int kind;
    bool is_double;
    bool inverse;
    bool strided; /* lines are columns */
    int64_t n, lines;
} transform;

static int run(const transform *t, void *out, void *in)
{
    int64_t in_sizes[2] = {t->lines, t->kind == C2R ? t->n / 2 + 1 : t->n};
    int64_t out_sizes[2] = {t->lines, t->kind == R2C ? t->n / 2 + 1 : t->n};
    int64_t in_strides[2] = {in_sizes[1], 1};
    int64_t out_strides[2] = {out_sizes[1], 1};
    if (t->strided) {
        in_strides[0] = 1;
        in_strides[1] = t->lines;
        out_strides[0] = 1;
        out_strides[1] = t->lines;
    }
    mt_dtype complex = t->is_double ? MT_DTYPE_C128 : MT_DTYPE_C64;
    mt_dtype real = t->is_double ? MT_DTYPE_F64 : MT_DTYPE_F32;
    const mt_array arrays[2] = {
        {.data = out,
         .dtype = t->kind == C2R ? real : complex,
         .sizes = out_sizes,
         .strides = out_strides,
         .n_dims = 2},
        {.data = in,
         .dtype = t->kind == R2C ? real : complex,
         .sizes = in_sizes,
         .strides = in_strides,
         .n_dims = 2},
    };
    const int64_t ints[2] = {1, t->inverse};
    const mt_scalar scale = {.kind = MT_KIND_REAL, .of.real = 0.5};
    const mt_kernel_call call = {.kernel = MT_KERNEL_FFT,
                                 .code = (uint16_t)t->kind,
                                 .tensors = arrays,
                                 .n_tensors = 2,
                                 .ints = ints,
                                 .n_ints = 2,
                                 .scalars = &scale,
                                 .n_scalars = 1};
    return mt__host_FFT(NULL, NULL, &call);
}

static double number(const transform *t, const void *array, int64_t i)
{
    return t->is_double ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

enum {
    LONGEST = 1024
};

/* cos and sin of 2 pi j / n */
static long double roots[LONGEST][2];

static void make_roots(int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        long double angle = 6.283185307179586476925L * (long double)j / (long double)n;
        roots[j][0] = cosl(angle);
        roots[j][1] = sinl(angle);
    }
}

/* Element k of a line of length n, as the sum that defines it. */
static void expect(const transform *t, const void *in, int64_t line, int64_t k, double want[2])
{
    long double sum[2] = {0, 0};
    int64_t length = t->kind == C2R ? t->n / 2 + 1 : t->n;
    int64_t parts = t->kind == R2C ? 1 : 2;
    for (int64_t j = 0; j < t->n; j++) {
        bool mirrored = t->kind == C2R && j > t->n / 2;
        int64_t from = mirrored ? t->n - j : j;
        int64_t at = t->strided ? from * t->lines + line : line * length + from;
        long double re = number(t, in, parts * at);
        long double im = parts == 2 ? number(t, in, parts * at + 1) : 0.0;
        im = t->kind == C2R && (j == 0 || 2 * j == t->n) ? 0 : mirrored ? -im : im;
        long double c = roots[j * k % t->n][0];
        long double s = t->inverse ? roots[j * k % t->n][1] : -roots[j * k % t->n][1];
        sum[0] += re * c - im * s;
        sum[1] += re * s + im * c;
    }
    want[0] = (double)(sum[0] / 2);
    want[1] = (double)(sum[1] / 2);
}

/* The error's size in units of the last place of the result's. */
static double error_of(const transform *t)
{
    int64_t in_count = 2 * t->lines * (t->n + 2);
    void *in = calloc((size_t)in_count, sizeof(double));
    void *out = calloc((size_t)in_count, sizeof(double));
    CHECK(in != NULL && out != NULL);
    uint64_t seed = (uint64_t)t->n * 31 + (uint64_t)t->kind;
    for (int64_t i = 0; i < in_count; i++) {
        double value = (double)(mt_test_random(&seed) % 2000001) / 1e6 - 1;
        if (t->is_double) {
            ((double *)in)[i] = value;
        } else {
            ((float *)in)[i] = (float)value;
        }
    }
    CHECK_OK(run(t, out, in));
    make_roots(t->n);
    double wrong = 0;
    double size = 0;
    int64_t length = t->kind == R2C ? t->n / 2 + 1 : t->n;
    int64_t parts = t->kind == C2R ? 1 : 2;
    for (int64_t line = 0; line < t->lines; line++) {
        for (int64_t k = 0; k < length; k++) {
            double want[2];
            expect(t, in, line, k, want);
            int64_t at = t->strided ? k * t->lines + line : line * length + k;
            for (int64_t p = 0; p < parts; p++) {
                double less = number(t, out, parts * at + p) - want[p];
                wrong += less * less;
                size += want[p] * want[p];
            }
        }
    }
    free(in);
    free(out);
    return size == 0 ? wrong : sqrt(wrong / size) / (t->is_double ? 0x1p-53 : 0x1p-24);
}

static void check_lengths(const int64_t *lengths, size_t count, int64_t most_lines)
{
    for (size_t i = 0; i < count; i++) {
        for (int bits = 0; bits < 8; bits++) {
            for (int kind = C2C; kind <= C2R; kind++) {
                for (int64_t lines = 1; lines <= most_lines; lines += most_lines - 1) {
                    const transform t = {.kind = kind,
                                         .is_double = (bits & 1) != 0,
                                         .strided = (bits & 2) != 0,
                                         .inverse = kind == C2R || (kind == C2C && (bits & 4) != 0),
                                         .n = lengths[i],
                                         .lines = lines};
                    double error = error_of(&t);
                    CHECK_NEAR_F64(error, 0.0, 8.0);
                }
            }
        }
    }
}

/* Products of the radices, primes (a convolution above 13), lines that are divided and not. */
static const int64_t short_lengths[] = {1,  2,  3,  4,  5,  6,  7,  8,   9,   11, 13,
                                        15, 16, 17, 30, 49, 64, 97, 100, 121, 128};
static const int64_t long_lengths[] = {169, 255, 256, 257, 300, 343, 512, 1009};

TEST(short_lines)
{
    check_lengths(short_lengths, MT_COUNT(short_lengths), 19);
}

TEST(long_lines)
{
    check_lengths(long_lengths, MT_COUNT(long_lengths), 3);
}

TEST(every_instruction_set)
{
    mt__isa best = mt__isa_level();
    for (int level = MT_ISA_BASE; level < (int)best; level++) {
        mt__isa_limit((mt__isa)level);
        check_lengths(short_lengths, MT_COUNT(short_lengths), 3);
    }
    mt__isa_limit(best);
}

/* More lengths than plans are kept for, so that plans give way and are made again. */
TEST(many_lengths)
{
    for (int round = 0; round < 2; round++) {
        for (int64_t n = 1; n < 200; n++) {
            const transform t = {.kind = C2C, .is_double = true, .n = n, .lines = 1};
            CHECK(error_of(&t) < 8);
        }
    }
}
