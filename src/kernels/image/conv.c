/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions, forward and backward (kernels.def, CONV...): chooses the algorithm and divides the
 * work.
 *
 *     1 x 1 without stride and padding    products on the images as they are
 *     other float32                       oneDNN if it is installed
 *     bfloat16, forward                   oneDNN, where the processor multiplies bfloat16
 *     the rest                            columns and products
 *
 * Forward and BACKWARD_INPUT are cut by images; BACKWARD_WEIGHT, which sums over images, by output
 * channels. No sum is divided. oneDNN rounds a channel alike in any piece of whole blocks; products
 * may not (OpenBLAS's Haswell kernels take 12 columns at a time, then 4, and add up in another
 * order), so their pieces are the same for any number of threads. Then results are, too.
 */
#include "kernels/image/conv.h"

#include "base/fail.h"
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/matrix/onednn.h"
#include "kernels/walk/parallel.h"

#include <stdatomic.h>
#include <string.h>

enum {
    PIECE_WORK = 1 << 22, /* multiplications worth another thread */
    CHANNEL_CUT = 32,     /* output channels of a piece: whole blocks of oneDNN's layouts */
    FEW_CHANNELS = 4,
    PRODUCT_PIECES = 4 /* by channels at most: each gathers the columns anew */
};

typedef struct job {
    mt__conv conv;
    int64_t channels; /* of a piece */
    _Atomic(int) status;
} job;

/* oneDNN's gradient of an input with few channels (an image's colours) leaves its vectors nearly
 * empty: 7 x 7 with 3 channels takes it five times as long as products. */
static bool suits_onednn(const mt__conv *conv)
{
    const mt__conv_shape *s = &conv->shape;
    bool few = conv->kind == MT_CONV_BACKWARD_INPUT && s->c / s->groups <= FEW_CHANNELS &&
               s->o / s->groups > FEW_CHANNELS;
    return !few && (!mt__conv_is_product(s) || conv->dtype == MT_DTYPE_BF16);
}

static bool uses_onednn(const mt__conv *conv)
{
    bool here = conv->dtype == MT_DTYPE_BF16 ? mt__onednn_bf16()
                                             : conv->dtype == MT_DTYPE_F32 && mt__onednn_here();
    return here && suits_onednn(conv);
}

static int run_piece(const mt__conv *conv)
{
    if (uses_onednn(conv) && mt__conv_onednn(conv)) {
        return 0;
    }
    return conv->dtype == MT_DTYPE_BF16 ? MT_ENOTSUP : mt__conv_columns(conv);
}

static void note(job *j, int status)
{
    if (status != 0) {
        atomic_store_explicit(&j->status, status, memory_order_relaxed);
    }
}

static void run_images(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    mt__conv conv = j->conv;
    int64_t element = (int64_t)mt_dtype_size(conv.dtype);
    conv.shape.n = end - begin;
    conv.in = (char *)conv.in + begin * conv.shape.c * conv.shape.h * conv.shape.w * element;
    conv.out = (char *)conv.out + begin * conv.shape.out_step * element;
    note(j, run_piece(&conv));
}

/* Only with one group: channels of a group belong together. */
static void run_channels(job *j, int64_t begin, int64_t end)
{
    mt__conv conv = j->conv;
    const mt__conv_shape *s = &j->conv.shape;
    int64_t element = (int64_t)mt_dtype_size(conv.dtype);
    conv.shape.o = end - begin;
    conv.out = (char *)conv.out + begin * s->oh * s->ow * element;
    if (conv.weight != NULL) {
        conv.weight = (char *)conv.weight + begin * s->c * s->kh * s->kw * element;
    }
    if (conv.bias != NULL) {
        conv.bias = (char *)conv.bias + begin * element;
    }
    note(j, run_piece(&conv));
}

static void run_channel_pieces(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    int64_t channels = j->conv.shape.o;
    for (int64_t i = begin; i < end; i++) {
        int64_t from = i * j->channels;
        run_channels(j, from, from + j->channels < channels ? from + j->channels : channels);
    }
}

static int run_job(job *j)
{
    const mt__conv_shape *s = &j->conv.shape;
    int64_t depth = s->c / s->groups * s->kh * s->kw;
    double work = (double)s->n * (double)(s->o * s->oh * s->ow) * (double)depth;
    double threads = (double)mt__parallel_threads();
    double most = work / PIECE_WORK;
    int64_t pieces = (int64_t)(most < threads ? most : threads);
    bool by_images = j->conv.kind != MT_CONV_BACKWARD_WEIGHT && s->n > 1;
    bool by_channels = j->conv.kind != MT_CONV_BACKWARD_INPUT && s->groups == 1 && !by_images;
    if (pieces >= 2 && by_images) {
        mt__parallel_for(s->n, (s->n + pieces - 1) / pieces, run_images, j);
        return atomic_load_explicit(&j->status, memory_order_relaxed);
    }
    if (!uses_onednn(&j->conv)) {
        pieces = most < PRODUCT_PIECES ? (int64_t)most : PRODUCT_PIECES;
    }
    if (!by_channels || pieces < 2 || s->o < 2 * CHANNEL_CUT) {
        return run_piece(&j->conv);
    }
    j->channels = (s->o + pieces - 1) / pieces;
    j->channels = (j->channels + CHANNEL_CUT - 1) / CHANNEL_CUT * CHANNEL_CUT;
    mt__parallel_for((s->o + j->channels - 1) / j->channels, 1, run_channel_pieces, j);
    return atomic_load_explicit(&j->status, memory_order_relaxed);
}

static mt__conv_shape shape_of(const int64_t *out, const int64_t *in, const int64_t *weight,
                               const int64_t *ints)
{
    return (mt__conv_shape){
        .n = in[0],
        .c = in[1],
        .h = in[2],
        .w = in[3],
        .o = out[1],
        .oh = out[2],
        .ow = out[3],
        .kh = weight[2],
        .kw = weight[3],
        .stride_h = ints[0],
        .stride_w = ints[1],
        .pad_h = ints[2],
        .pad_w = ints[3],
        .dil_h = ints[4],
        .dil_w = ints[5],
        .groups = ints[6],
        .out_step = out[1] * out[2] * out[3],
    };
}

static void clear(const mt_array *array)
{
    if (array->data != NULL) {
        memset(array->data, 0,
               (size_t)mt__array_numel(array) * mt_dtype_size((mt_dtype)array->dtype));
    }
}

static int run_forward(const mt_kernel_call *call)
{
    const mt_array *t = call->tensors;
    if (mt__array_numel(&t[0]) == 0) {
        return 0;
    }
    job j = {.conv = {.kind = MT_CONV_FORWARD,
                      .dtype = (mt_dtype)t[0].dtype,
                      .shape = shape_of(t[0].sizes, t[1].sizes, t[2].sizes, call->ints),
                      .out = t[0].data,
                      .in = t[1].data,
                      .weight = t[2].data,
                      .bias = t[3].data}};
    return run_job(&j);
}

/* bfloat16 as it is where oneDNN and the processor can, else like all narrow types. */
MT_HOST_KERNEL(CONV)
{
    if (MT_LIKELY(!mt__has_narrow(call))) {
        return run_forward(call);
    }
    bool same = mt__onednn_bf16();
    for (uint32_t i = 0; i < 4; i++) {
        same = same && (call->tensors[i].data == NULL || call->tensors[i].dtype == MT_DTYPE_BF16);
    }
    int status = same ? run_forward(call) : MT_ENOTSUP;
    return status == MT_ENOTSUP ? mt__run_widened(call, run_forward, 0x1, 0) : status;
}

MT_HOST_KERNEL_WIDENED(CONV_BACKWARD_INPUT, 0x1, 0)
{
    const mt_array *t = call->tensors;
    if (mt__array_numel(&t[0]) == 0 || mt__array_numel(&t[1]) == 0) {
        clear(&t[0]);
        return 0;
    }
    job j = {.conv = {.kind = MT_CONV_BACKWARD_INPUT,
                      .dtype = (mt_dtype)t[0].dtype,
                      .shape = shape_of(t[1].sizes, t[0].sizes, t[2].sizes, call->ints),
                      .in = t[0].data,
                      .out = t[1].data,
                      .weight = t[2].data}};
    return run_job(&j);
}

MT_HOST_KERNEL_WIDENED(CONV_BACKWARD_WEIGHT, 0x3, 0)
{
    const mt_array *t = call->tensors;
    if (mt__array_numel(&t[2]) == 0 || mt__array_numel(&t[3]) == 0) {
        clear(&t[0]);
        clear(&t[1]);
        return 0;
    }
    static const int64_t no_weight[4] = {0, 0, 1, 1}; /* the bias's gradient alone */
    const int64_t *weight = t[0].data == NULL ? no_weight : t[0].sizes;
    job j = {.conv = {.kind = MT_CONV_BACKWARD_WEIGHT,
                      .dtype = (mt_dtype)t[2].dtype,
                      .shape = shape_of(t[2].sizes, t[3].sizes, weight, call->ints),
                      .weight = t[0].data,
                      .bias = t[1].data,
                      .out = t[2].data,
                      .in = t[3].data}};
    return run_job(&j);
}
