/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers in bulk: philox.h has the definition of every bit.
 */
#include "kernels/isa/pointwise/loop_body.h"
#include "kernels/isa/pointwise/random_loops.h"
#include "kernels/number/philox.h"
#include "kernels/number/vector_math.h"

static void words(uint64_t seed, uint64_t first_block, uint32_t stream, int64_t blocks,
                  uint32_t *out)
{
    for (int64_t i = 0; i < blocks; i++) {
        uint64_t block = first_block + (uint64_t)i;
        uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), stream, 0};
        uint32_t result[4];
        mt__philox(seed, counter, result);
        out[4 * i] = result[0];
        out[4 * i + 1] = result[1];
        out[4 * i + 2] = result[2];
        out[4 * i + 3] = result[3];
    }
}

MT_INLINE double wide_unit(uint32_t high, uint32_t low)
{
    /* (wide >> 11) * 2^-53 without a conversion of 64 bits: both parts are exact. */
    return (double)(int32_t)(high >> 5) * 0x1p-27 +
           (double)(int32_t)((high & 31U) << 21 | low >> 11) * 0x1p-53;
}

/* In double: the product of 24 and 24 bits is exact, so that fused or not the result is one. */
static void uniform_f32(const uint32_t *high, int64_t n, double a, double b, float *out)
{
    const double from = (double)(float)a;
    const double width = (double)((float)b - (float)a);
    const float end = (float)b;
    const float below_end = nextafterf((float)b, (float)a);
    for (int64_t i = 0; i < n; i++) {
        double unit = (double)(int32_t)(high[i] >> 8) * 0x1p-24;
        float x = (float)(from + unit * width);
        out[i] = x >= end ? below_end : x;
    }
}

static void uniform_f64(const uint32_t *high, const uint32_t *low, int64_t n, double a, double b,
                        double *out)
{
    const double below_end = nextafter(b, a);
    for (int64_t i = 0; i < n; i++) {
        double x = a + wide_unit(high[i], low[i]) * (b - a);
        out[i] = x >= b ? below_end : x;
    }
}

static void normal_f32(const uint32_t *high, int64_t n, double a, double b, float *out)
{
    const float mean = (float)a;
    const float deviation = (float)b;
    for (int64_t i = 0; i < n / 2; i++) {
        float u = ((float)(int32_t)(high[2 * i] >> 1) + 0.5F) * 0x1p-31F;
        float v = (float)(int32_t)(high[2 * i + 1] >> 8) * 0x1p-24F;
        float r = sqrtf(-2.0F * mt__log_f32(u));
        float angle = 6.28318531F * v;
        out[2 * i] = mean + deviation * (r * mt__cos_f32(angle));
        out[2 * i + 1] = mean + deviation * (r * mt__sin_f32(angle));
    }
}

static void normal_f64(const uint32_t *high, const uint32_t *low, int64_t n, double a, double b,
                       double *out)
{
    for (int64_t i = 0; i < n; i += 2) {
        double u = wide_unit(high[i], low[i]) + 0x1p-54;
        double v = wide_unit(high[i + 1], low[i + 1]);
        double r = sqrt(-2.0 * mt__log_f64(u));
        double angle = 6.2831853071795865 * v;
        out[i] = a + b * (r * cos(angle));
        out[i + 1] = a + b * (r * sin(angle));
    }
}

static void exponential_f32(const uint32_t *high, int64_t n, double rate, float *out)
{
    const float divisor = (float)rate;
    for (int64_t i = 0; i < n; i++) {
        float u = ((float)(int32_t)(high[i] >> 9) + 0.5F) * 0x1p-23F;
        out[i] = -mt__log_f32(u) / divisor;
    }
}

static void exponential_f64(const uint32_t *high, const uint32_t *low, int64_t n, double rate,
                            double *out)
{
    for (int64_t i = 0; i < n; i++) {
        /* The lowest bit of the 53 makes room for the half. */
        double u = wide_unit(high[i], low[i] & 0xfffff000U) + 0x1p-53;
        out[i] = -mt__log_f64(u) / rate;
    }
}

static void below(const uint32_t *high, int64_t n, uint64_t bound, uint8_t *out)
{
    if (bound > UINT32_MAX) {
        memset(out, 1, (size_t)n);
        return;
    }
    const uint32_t limit = (uint32_t)bound;
    for (int64_t i = 0; i < n; i++) {
        out[i] = high[i] < limit;
    }
}

const mt__random_loops MT_ISA(mt__random_loops) = {
    .words = words,
    .uniform_f32 = uniform_f32,
    .uniform_f64 = uniform_f64,
    .normal_f32 = normal_f32,
    .normal_f64 = normal_f64,
    .exponential_f32 = exponential_f32,
    .exponential_f64 = exponential_f64,
    .below = below,
};
