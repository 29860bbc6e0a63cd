/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_SAMPLE: samples whose distribution differs from element to element. Element n takes
 * the numbers of draw offset + n: philox.h's words with stream 2 and the block's number as the last
 * word of the counter, as many as its rejections need. So a sample depends on nothing else.
 *
 *     GAMMA     Marsaglia and Tsang (2000); shapes below 1 by one above and a power
 *     POISSON   counting exponential times below 10, Hoermann's PTRS (1993) above
 *     BINOMIAL  halving by medians of beta samples (Relles 1972), the rest one by one
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/number/gamma.h"
#include "kernels/number/philox.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/strided.h"

enum {
    GRAIN = 1024,
    TILE = MT_STRIDED_TILE
};

/* The numbers of one element. */
typedef struct numbers {
    uint64_t seed, draw;
    uint32_t block, used;
    uint32_t words[4];
} numbers;

/* In (0, 1). */
static double unit(numbers *from)
{
    if (from->used > 2) {
        uint32_t counter[4] = {(uint32_t)from->draw, (uint32_t)(from->draw >> 32), 2,
                               from->block++};
        mt__philox(from->seed, counter, from->words);
        from->used = 0;
    }
    uint64_t wide = (uint64_t)from->words[from->used] << 32 | from->words[from->used + 1];
    from->used += 2;
    return ((double)(wide >> 12) + 0.5) * 0x1p-52;
}

static double normal(numbers *from)
{
    double radius = sqrt(-2.0 * log(unit(from)));
    return radius * cos(2.0 * M_PI * unit(from));
}

static double gamma_sample(numbers *from, double shape)
{
    if (!(shape > 0.0)) {
        return shape == 0.0 ? 0.0 : (double)NAN;
    }
    if (isinf(shape)) {
        return shape; /* below nothing would be accepted */
    }
    double power = shape < 1.0 ? log(unit(from)) / shape : 0.0;
    double d = (shape < 1.0 ? shape + 1.0 : shape) - 1.0 / 3.0;
    double c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x = normal(from);
        double v = 1.0 + c * x;
        if (v <= 0.0) {
            continue;
        }
        v = v * v * v;
        if (log(unit(from)) < 0.5 * x * x + d - d * v + d * log(v)) {
            return d * v * exp(power);
        }
    }
}

static double poisson_sample(numbers *from, double rate)
{
    if (!(rate >= 0.0) || isinf(rate)) {
        return rate >= 0.0 ? rate : (double)NAN;
    }
    if (rate < 10.0) {
        double end = exp(-rate);
        double product = unit(from);
        int64_t count = 0;
        for (; product > end; count++) {
            product *= unit(from);
        }
        return (double)count;
    }
    double b = 0.931 + 2.53 * sqrt(rate);
    double a = -0.059 + 0.02483 * b;
    double inverse = 1.1239 + 1.1328 / (b - 3.4);
    double near = 0.9277 - 3.6224 / (b - 2.0);
    for (;;) {
        double u = unit(from) - 0.5;
        double v = unit(from);
        double us = 0.5 - fabs(u);
        double k = floor((2.0 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= near) {
            return k;
        }
        if (k < 0.0 || (us < 0.013 && v > us)) {
            continue;
        }
        double level = log(v) + log(inverse) - log(a / (us * us) + b);
        if (level <= k * log(rate) - rate - mt__lgamma(k + 1.0)) {
            return k;
        }
    }
}

static double binomial_sample(numbers *from, double count, double p)
{
    if (!(count >= 0.0) || !(p >= 0.0 && p <= 1.0)) {
        return (double)NAN;
    }
    if (isinf(count)) {
        return p > 0.0 ? count : 0.0;
    }
    double sum = 0.0;
    double n = floor(count);
    while (n > 16.0) {
        double a = 1.0 + floor(n / 2.0);
        double b = n + 1.0 - a;
        double first = gamma_sample(from, a);
        double x = first / (first + gamma_sample(from, b)); /* the a-th smallest of n numbers */
        if (x >= p) {
            n = a - 1.0;
            p /= x;
        } else {
            sum += a;
            n = b - 1.0;
            p = (p - x) / (1.0 - x);
        }
    }
    for (int64_t left = (int64_t)n; left > 0; left--) {
        sum += unit(from) < p ? 1.0 : 0.0;
    }
    return sum;
}

typedef struct sample_job {
    mt__strided it; /* out, first parameter, second */
    uint64_t seed, offset;
    uint16_t code;
    bool is_double;
} sample_job;

static double value_at(const sample_job *job, const char *tile, int64_t i)
{
    return job->is_double ? ((const double *)(const void *)tile)[i]
                          : (double)((const float *)(const void *)tile)[i];
}

static double sample(const sample_job *job, numbers *from, double first, double second)
{
    switch (job->code) {
    case 0: {
        double tiny = job->is_double ? 0x1p-1022 : 0x1p-126; /* no sample is 0 */
        double x = gamma_sample(from, first);
        return x < tiny ? tiny : x;
    }
    case 1: return poisson_sample(from, first);
    default: return binomial_sample(from, first, second);
    }
}

static void sample_tiles(void *context, int64_t begin, int64_t end)
{
    const sample_job *job = context;
    _Alignas(64) char first[TILE * 8];
    _Alignas(64) char second[TILE * 8];
    _Alignas(64) char out[TILE * 8];
    bool two = job->code == 2;
    for (int64_t at = begin; at < end; at += TILE) {
        int64_t n = end - at < TILE ? end - at : TILE;
        mt__strided_load(&job->it, 1, at, n, first);
        if (two) {
            mt__strided_load(&job->it, 2, at, n, second);
        }
        for (int64_t i = 0; i < n; i++) {
            numbers from = {.seed = job->seed, .draw = job->offset + (uint64_t)(at + i), .used = 4};
            double made =
                sample(job, &from, value_at(job, first, i), two ? value_at(job, second, i) : 0.0);
            if (job->is_double) {
                ((double *)(void *)out)[i] = made;
            } else {
                ((float *)(void *)out)[i] = (float)made;
            }
        }
        mt__strided_store(&job->it, 0, at, n, out);
    }
}

MT_HOST_KERNEL_WIDENED(SAMPLE, 0x1, 0)
{
    uint32_t dtype = call->tensors[0].dtype;
    if (dtype != MT_DTYPE_F32 && dtype != MT_DTYPE_F64) {
        return mtb_fail(MT_ENOTSUP, "SAMPLE: not implemented for %s",
                        mt_dtype_name((mt_dtype)dtype));
    }
    sample_job job = {.seed = (uint64_t)call->ints[0],
                      .offset = (uint64_t)call->ints[1],
                      .code = call->code,
                      .is_double = dtype == MT_DTYPE_F64};
    mt__strided_init(&job.it, call->tensors, call->code == 2 ? 3 : 2, true);
    mt__parallel_for(job.it.numel, GRAIN, sample_tiles, &job);
    return MT_OK;
}
