/* SPDX-License-Identifier: Apache-2.0
 *
 * MT_KERNEL_RANDOM, MT_KERNEL_RANDPERM and MT_KERNEL_DROPOUT. Element n in row-major order takes
 * draw offset + n, regardless of its place in memory and of the thread that writes it; philox.h
 * defines the number that a draw gives.
 */
#include "base/fail.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/pointwise/random_loops.h"
#include "kernels/number/philox.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/strided.h"

#include <string.h>

enum {
    GRAIN = 16384, /* elements a thread is woken for; a multiple of TILE */
    TILE = MT_STRIDED_TILE,
    WORDS = TILE + 8 /* whole blocks around a tile */
};

static const mt__random_loops *random_loops(void)
{
    return MT_ISA_PICK(&mt__random_loops);
}

/* Words of draws `first` .. `first + n - 1`, with those before it that belong to its block. */
typedef struct draws {
    _Alignas(64) uint32_t high[WORDS];
    _Alignas(64) uint32_t low[WORDS];
    int64_t skip; /* place of the first draw */
} draws;

static void take_draws(draws *d, uint64_t seed, uint64_t first, int64_t n, bool wide)
{
    uint64_t block = first >> 2;
    d->skip = (int64_t)(first & 3U);
    int64_t blocks = (d->skip + n + 3) / 4;
    random_loops()->words(seed, block, 0, blocks, d->high);
    if (wide) {
        random_loops()->words(seed, block, 1, blocks, d->low);
    }
}

/* ---- random ---- */

typedef struct random_job {
    mt__strided it;
    uint16_t code;
    mt_dtype made;        /* the type in which numbers are computed */
    mt__loop_fn *convert; /* to the output's type; NULL where it is `made` */
    uint64_t seed, offset;
    double a, b;
    int64_t from;
    uint64_t range;
    uint64_t bound;
} random_job;

/* The numbers of one tile; `tile` has room for a few more. Returns where the first one lies. */
static char *make_numbers(const random_job *work, const draws *d, int64_t n, char *tile)
{
    const mt__random_loops *loops = random_loops();
    const uint32_t *high = d->high + d->skip;
    const uint32_t *low = d->low + d->skip;
    bool is_double = work->made == MT_DTYPE_F64;
    switch (work->code) {
    case MT_RANDOM_UNIFORM:
        if (is_double) {
            loops->uniform_f64(high, low, n, work->a, work->b, (double *)(void *)tile);
        } else {
            loops->uniform_f32(high, n, work->a, work->b, (float *)(void *)tile);
        }
        return tile;
    case MT_RANDOM_NORMAL: {
        /* Whole pairs: from the even draw before the first to the odd one after the last. */
        int64_t before = d->skip & 1;
        int64_t all = (before + n + 1) & ~INT64_C(1);
        if (is_double) {
            loops->normal_f64(high - before, low - before, all, work->a, work->b,
                              (double *)(void *)tile);
            return tile + before * 8;
        }
        loops->normal_f32(high - before, all, work->a, work->b, (float *)(void *)tile);
        return tile + before * 4;
    }
    case MT_RANDOM_EXPONENTIAL:
        if (is_double) {
            loops->exponential_f64(high, low, n, work->a, (double *)(void *)tile);
        } else {
            loops->exponential_f32(high, n, work->a, (float *)(void *)tile);
        }
        return tile;
    case MT_RANDOM_INTEGER: {
        int64_t *out = (int64_t *)(void *)tile;
        for (int64_t i = 0; i < n; i++) {
            uint64_t wide = (uint64_t)high[i] << 32 | low[i];
            out[i] = (int64_t)((uint64_t)work->from + mt__multiply_high(wide, work->range));
        }
        return tile;
    }
    default: loops->below(high, n, work->bound, (uint8_t *)tile); return tile;
    }
}

static void fill_random(void *context, int64_t begin, int64_t end)
{
    const random_job *work = context;
    _Alignas(64) char numbers[WORDS * 8];
    _Alignas(64) char converted[TILE * 8];
    draws d;
    bool wide = work->made == MT_DTYPE_F64 || work->made == MT_DTYPE_I64;
    for (int64_t at = begin; at < end; at += TILE) {
        int64_t n = end - at < TILE ? end - at : TILE;
        take_draws(&d, work->seed, work->offset + (uint64_t)at, n, wide);
        char *tile = make_numbers(work, &d, n, numbers);
        if (work->convert != NULL) {
            mt__loop_params params = {.repeats = 0};
            work->convert((void *[]){converted, tile}, n, &params);
            tile = converted;
        }
        mt__strided_store(&work->it, 0, at, n, tile);
    }
}

static mt_dtype made_in(uint16_t code, uint32_t dtype)
{
    if (code == MT_RANDOM_INTEGER) {
        return MT_DTYPE_I64;
    }
    if (code == MT_RANDOM_BERNOULLI) {
        return MT_DTYPE_BOOL;
    }
    return dtype == MT_DTYPE_F64 ? MT_DTYPE_F64 : MT_DTYPE_F32;
}

MT_HOST_KERNEL(RANDOM)
{
    static mt__loop_fn *const *const loops[MT_ISA_I_LEVELS] = MT_LOOP_LEVELS(mt__convert_loops);
    random_job work = {.code = call->code,
                       .made = made_in(call->code, call->tensors[0].dtype),
                       .seed = (uint64_t)call->ints[0],
                       .offset = (uint64_t)call->ints[1],
                       .a = mt__scalar_real(&call->scalars[0])};
    uint32_t dtype = call->tensors[0].dtype;
    if (dtype != (uint32_t)work.made) {
        work.convert = loops[mt__isa_level()][(uint32_t)work.made * MT_DTYPE_COUNT + dtype];
    }
    if (call->n_scalars > 1) {
        work.b = mt__scalar_real(&call->scalars[1]);
        work.from = mt__scalar_integer(&call->scalars[0]);
        work.range = (uint64_t)mt__scalar_integer(&call->scalars[1]) - (uint64_t)work.from;
    }
    work.bound = mt__probability_bound(work.a);
    mt__strided_init(&work.it, call->tensors, 1, true);
    mt__parallel_for(work.it.numel, GRAIN, fill_random, &work);
    return MT_OK;
}

/* ---- dropout ---- */

typedef struct dropout_job {
    mt__strided it; /* out, mask, in */
    uint64_t seed, offset, bound;
    double scale;
    bool is_double;
} dropout_job;

#define DROP(type)                                        \
    do {                                                  \
        const type *x = (const type *)(const void *)in;   \
        __typeof__(type) *y = (void *)out;                \
        const type scale = (type)work->scale;             \
        for (int64_t i = 0; i < n; i++) {                 \
            y[i] = mask[i] != 0 ? x[i] * scale : (type)0; \
        }                                                 \
    } while (0)

static void drop_tile(const dropout_job *work, int64_t at, int64_t n, draws *d)
{
    _Alignas(64) char in[TILE * 8];
    _Alignas(64) char out[TILE * 8];
    _Alignas(64) uint8_t mask[TILE];
    take_draws(d, work->seed, work->offset + (uint64_t)at, n, false);
    random_loops()->below(d->high + d->skip, n, work->bound, mask); /* 1: dropped */
    for (int64_t i = 0; i < n; i++) {
        mask[i] ^= 1;
    }
    mt__strided_load(&work->it, 2, at, n, in);
    if (work->is_double) {
        DROP(double);
    } else {
        DROP(float);
    }
    mt__strided_store(&work->it, 0, at, n, out);
    mt__strided_store(&work->it, 1, at, n, mask);
}

static void drop(void *context, int64_t begin, int64_t end)
{
    draws d;
    for (int64_t at = begin; at < end; at += TILE) {
        drop_tile(context, at, end - at < TILE ? end - at : TILE, &d);
    }
}

MT_HOST_KERNEL_WIDENED(DROPOUT, 0x3, 0)
{
    uint32_t dtype = call->tensors[0].dtype;
    if (dtype != MT_DTYPE_F32 && dtype != MT_DTYPE_F64) {
        return mtb_fail(MT_ENOTSUP, "DROPOUT: not implemented for dtype %u", dtype);
    }
    double p = mt__scalar_real(&call->scalars[0]);
    dropout_job work = {.seed = (uint64_t)call->ints[0],
                        .offset = (uint64_t)call->ints[1],
                        .bound = mt__probability_bound(p),
                        .scale = p < 1.0 ? 1.0 / (1.0 - p) : 0.0,
                        .is_double = dtype == MT_DTYPE_F64};
    mt__strided_init(&work.it, call->tensors, 3, true);
    mt__parallel_for(work.it.numel, GRAIN, drop, &work);
    return MT_OK;
}

/* ---- randperm ---- */

MT_HOST_KERNEL(RANDPERM)
{
    const mt_array *out = &call->tensors[0];
    int64_t n = out->sizes[0];
    int64_t stride = out->strides[0];
    int64_t *data = out->data;
    for (int64_t i = 0; i < n; i++) {
        data[i * stride] = i;
    }
    draws d;
    for (int64_t begin = 0; begin < n - 1; begin += TILE) {
        int64_t count = n - 1 - begin < TILE ? n - 1 - begin : TILE;
        take_draws(&d, (uint64_t)call->ints[0], (uint64_t)call->ints[1] + (uint64_t)begin, count,
                   true);
        for (int64_t k = 0; k < count; k++) {
            int64_t i = begin + k;
            uint64_t wide = (uint64_t)d.high[d.skip + k] << 32 | d.low[d.skip + k];
            int64_t j = i + (int64_t)mt__multiply_high(wide, (uint64_t)(n - i));
            int64_t kept = data[i * stride];
            data[i * stride] = data[j * stride];
            data[j * stride] = kept;
        }
    }
    return MT_OK;
}
