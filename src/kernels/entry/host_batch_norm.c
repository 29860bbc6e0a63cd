/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels BATCH_NORM and BATCH_NORM_BACKWARD over [N, C, L]. A channel's elements are N runs of
 * L; where L is 1 whole rows of C are worked on instead. What belongs to a channel is computed in
 * double and kept in working memory:
 *
 *      double   mean, variance (or sums of the derivative)
 *      element  mean, scale, shift, slope: y = (x - mean) scale + shift,
 *                                          grad_in = (g + (x - mean) slope + shift) scale
 */
#include "base/fail.h"
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/rows/norm_loops.h"
#include "kernels/reduce/fold_plan.h"
#include "kernels/walk/parallel.h"
#include "kernels/walk/scratch.h"

#include <math.h>
#include <string.h>

enum {
    GRAIN = 64 * 1024 /* elements */
};

/* Numbers by channel. */
enum {
    MEAN,
    SCALE,
    SHIFT,
    SLOPE,
    NUMBERS
};

typedef struct channels {
    const mt__norm_loops *loops;
    int64_t n, c, l;
    mt_dtype dtype;
    size_t bytes;
    double *first, *second; /* mean and variance; sum of g and of g (x - mean) */
    char *numbers;          /* NUMBERS arrays of c elements */
    void *to;
    const void *g; /* NULL: forward */
    const void *x;
} channels;

/* ---- numbers of a channel ---- */

static double load(const void *data, mt_dtype dtype, int64_t i)
{
    return dtype == MT_DTYPE_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static void store(void *data, mt_dtype dtype, int64_t i, double value)
{
    if (dtype == MT_DTYPE_F32) {
        ((float *)data)[i] = (float)value;
    } else {
        ((double *)data)[i] = value;
    }
}

static void set_number(const channels *ch, int64_t i, uint32_t which, double value)
{
    store(ch->numbers, ch->dtype, (int64_t)which * ch->c + i, value);
}

static void *number_at(const channels *ch, int64_t i, uint32_t which)
{
    return ch->numbers + (size_t)((int64_t)which * ch->c + i) * ch->bytes;
}

static mt__channel channel_at(const channels *ch, int64_t i)
{
    return (mt__channel){.mean = number_at(ch, i, MEAN),
                         .scale = number_at(ch, i, SCALE),
                         .shift = number_at(ch, i, SHIFT)};
}

typedef int channels_fn(channels *ch, const mt_kernel_call *call);

/* Does the work on the channels of `in`, with working memory for it. */
static int with_channels(const char *name, const mt_array *in, channels_fn *work,
                         const mt_kernel_call *call)
{
    channels ch = {.loops = &MT_ISA_PICK(mt__norms)[in->dtype],
                   .n = in->sizes[0],
                   .c = in->sizes[1],
                   .l = in->sizes[2],
                   .dtype = (mt_dtype)in->dtype,
                   .bytes = (size_t)mt__element_bytes(in->dtype),
                   .x = in->data};
    if (ch.loops->affine == NULL) {
        return mtb_fail(MT_ENOTSUP, "%s: not implemented for %s", name, mt_dtype_name(ch.dtype));
    }
    int status;
    ch.first = mt__scratch_take((size_t)ch.c + 1, 2 * sizeof(double));
    ch.numbers = mt__scratch_take((size_t)ch.c + 1, NUMBERS * ch.bytes);
    if (ch.first == NULL || ch.numbers == NULL) {
        status = mtb_fail(MT_ENOMEM, "%s: numbers of %lld channels", name, (long long)ch.c);
    } else {
        ch.second = ch.first + ch.c;
        status = work(&ch, call);
    }
    mt__scratch_give(ch.numbers);
    mt__scratch_give(ch.first);
    return status;
}

/* ---- over all elements ---- */

/* Runs, or rows where l is 1. */
static void run_elements(void *context, int64_t first, int64_t stop)
{
    const channels *ch = context;
    bool rows = ch->l == 1;
    size_t bytes = (size_t)(rows ? ch->c : ch->l) * ch->bytes;
    for (int64_t i = first; i < stop; i++) {
        int64_t c = rows ? 0 : i % ch->c;
        mt__channel channel = channel_at(ch, c);
        char *to = (char *)ch->to + (size_t)i * bytes;
        const char *x = (const char *)ch->x + (size_t)i * bytes;
        const char *g = ch->g == NULL ? NULL : (const char *)ch->g + (size_t)i * bytes;
        const void *slope = number_at(ch, c, SLOPE);
        if (rows && g == NULL) {
            ch->loops->affine_columns(to, x, ch->c, &channel);
        } else if (rows) {
            ch->loops->grads_columns(to, g, x, ch->c, &channel, slope);
        } else if (g == NULL) {
            ch->loops->affine(to, x, ch->l, &channel);
        } else {
            ch->loops->grads(to, g, x, ch->l, &channel, slope);
        }
    }
}

static void for_elements(channels *ch)
{
    int64_t count = ch->l == 1 ? ch->n : ch->n * ch->c;
    int64_t size = ch->l == 1 ? ch->c : ch->l;
    mt__parallel_for(count, 1 + GRAIN / (size + 1), run_elements, ch);
}

/* ---- forward ---- */

/* Mean and variance of each channel, into first and second. */
static int find_moments(const channels *ch, const mt_array *in)
{
    const int64_t strides[3] = {0, 1, 0};
    mt_array outs[MT_REDUCE_OUTS];
    for (uint32_t i = 0; i < MT_REDUCE_OUTS; i++) {
        outs[i] = (mt_array){.data = i == 0 ? ch->second : ch->first,
                             .sizes = in->sizes,
                             .strides = strides,
                             .n_dims = 3,
                             .dtype = MT_DTYPE_F64};
    }
    mt__reduce_job job = {MT_FOLD_MOMENTS, MT_FINISH_VARIANCE, 0};
    return mt__reduce_run(&job, outs, in);
}

static void update_running(const channels *ch, const mt_kernel_call *call)
{
    void *mean = mt__arg_data(call, 6);
    void *var = mt__arg_data(call, 7);
    double momentum = mt__arg_real(call, 0);
    double count = (double)(ch->n * ch->l);
    for (int64_t i = 0; i < ch->c; i++) {
        if (mean != NULL) {
            double old = load(mean, ch->dtype, i);
            store(mean, ch->dtype, i, (1 - momentum) * old + momentum * ch->first[i]);
        }
        if (var != NULL) {
            double old = load(var, ch->dtype, i);
            double unbiased = ch->second[i] * count / (count - 1);
            store(var, ch->dtype, i, (1 - momentum) * old + momentum * unbiased);
        }
    }
}

static int batch_norm(channels *ch, const mt_kernel_call *call)
{
    if (call->ints[0] != 0) {
        MT_TRY(find_moments(ch, &call->tensors[3]));
        update_running(ch, call);
    } else {
        for (int64_t i = 0; i < ch->c; i++) {
            ch->first[i] = load(call->tensors[6].data, ch->dtype, i);
            ch->second[i] = load(call->tensors[7].data, ch->dtype, i);
        }
    }
    const void *weight = mt__arg_data(call, 4);
    const void *bias = mt__arg_data(call, 5);
    double eps = mt__arg_real(call, 1);
    for (int64_t i = 0; i < ch->c; i++) {
        double rstd = 1 / sqrt(ch->second[i] + eps);
        set_number(ch, i, MEAN, ch->first[i]);
        set_number(ch, i, SCALE, weight == NULL ? rstd : rstd * load(weight, ch->dtype, i));
        set_number(ch, i, SHIFT, bias == NULL ? 0 : load(bias, ch->dtype, i));
        for (uint32_t t = 1; t <= 2; t++) {
            if (mt__arg_data(call, t) != NULL && mt__arg_numel(call, t) > 0) {
                store(call->tensors[t].data, ch->dtype, i, t == 1 ? ch->first[i] : rstd);
            }
        }
    }
    ch->to = call->tensors[0].data;
    for_elements(ch);
    return MT_OK;
}

MT_HOST_KERNEL_WIDENED(BATCH_NORM, 0xC7, 0xC0)
{
    return with_channels("batch_norm", &call->tensors[3], batch_norm, call);
}

/* ---- backward ---- */

/* Sums of g and of g (x - mean), a range of channels. */
static void run_dots(void *context, int64_t first, int64_t stop)
{
    const channels *ch = context;
    const char *g = ch->g;
    const char *x = ch->x;
    memset(ch->first + first, 0, (size_t)(stop - first) * sizeof(double));
    memset(ch->second + first, 0, (size_t)(stop - first) * sizeof(double));
    if (ch->l == 1) {
        for (int64_t c = first; c < stop; c += MT_NORM_WIDTH) {
            int64_t width = stop - c < MT_NORM_WIDTH ? stop - c : MT_NORM_WIDTH;
            size_t at = (size_t)c * ch->bytes;
            ch->loops->dots_columns(g + at, x + at, ch->n, ch->c, width, number_at(ch, c, MEAN),
                                    ch->first + c, ch->second + c);
        }
        return;
    }
    for (int64_t c = first; c < stop; c++) {
        double sums[2] = {0, 0};
        for (int64_t n = 0; n < ch->n; n++) {
            size_t at = (size_t)((n * ch->c + c) * ch->l) * ch->bytes;
            ch->loops->dots(g + at, x + at, ch->l, number_at(ch, c, MEAN), sums);
        }
        ch->first[c] = sums[0];
        ch->second[c] = sums[1];
    }
}

/* The channel's mean and 1 / deviation: kept from forward, else those in use. */
static void find_statistics(const mt_kernel_call *call, mt_dtype dtype, int64_t i, double *mean,
                            double *rstd)
{
    bool kept = mt__arg_data(call, 8) != NULL && mt__arg_numel(call, 8) > 0 &&
                mt__arg_data(call, 9) != NULL;
    if (kept) {
        *mean = load(call->tensors[8].data, dtype, i);
        *rstd = load(call->tensors[9].data, dtype, i);
    } else {
        *mean = load(call->tensors[6].data, dtype, i);
        *rstd = 1 / sqrt(load(call->tensors[7].data, dtype, i) + mt__arg_real(call, 0));
    }
}

static int batch_norm_backward(channels *ch, const mt_kernel_call *call)
{
    const void *weight = mt__arg_data(call, 5);
    bool training = call->ints[0] != 0;
    double count = (double)(ch->n * ch->l);
    double mean, rstd;
    ch->g = call->tensors[3].data;
    for (int64_t i = 0; i < ch->c; i++) {
        find_statistics(call, ch->dtype, i, &mean, &rstd);
        set_number(ch, i, MEAN, mean);
    }
    mt__parallel_for(ch->c, 1 + GRAIN / (ch->n * ch->l + 1), run_dots, ch);
    for (int64_t i = 0; i < ch->c; i++) {
        find_statistics(call, ch->dtype, i, &mean, &rstd);
        double scale = weight == NULL ? rstd : rstd * load(weight, ch->dtype, i);
        if (mt__arg_data(call, 1) != NULL) {
            store(call->tensors[1].data, ch->dtype, i, ch->second[i] * rstd);
        }
        if (mt__arg_data(call, 2) != NULL) {
            store(call->tensors[2].data, ch->dtype, i, ch->first[i]);
        }
        set_number(ch, i, SCALE, scale);
        set_number(ch, i, SLOPE, -rstd * rstd * ch->second[i] / count);
        set_number(ch, i, SHIFT, training ? -ch->first[i] / count : 0);
        if (!training) { /* g takes x's place: (g - 0) scale + 0 */
            set_number(ch, i, MEAN, 0);
        }
    }
    if (mt__arg_data(call, 0) == NULL) {
        return MT_OK;
    }
    ch->to = call->tensors[0].data;
    if (!training) {
        ch->x = ch->g;
        ch->g = NULL;
    }
    for_elements(ch);
    return MT_OK;
}

MT_HOST_KERNEL_WIDENED(BATCH_NORM_BACKWARD, 0x7, 0)
{
    return with_channels("batch_norm_backward", &call->tensors[4], batch_norm_backward, call);
}
