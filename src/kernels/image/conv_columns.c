/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions as matrix products, for double precision, 1 x 1 kernels and machines without oneDNN.
 * With columns [c kh kw, oh ow], the elements of one image's group under each place of the kernel:
 *
 *     out = weight columns        d columns = weight^T d out        d weight += d out columns^T
 *
 * Images are taken one after the other, groups within them; a sum over images is made in that
 * order.
 */
#include "base/fail.h"
#include "kernels/image/conv.h"
#include "kernels/matrix/product.h"
#include "kernels/walk/scratch.h"

#include <mindtorch/status.h>

#include <string.h>

/* One image's group. */
typedef struct image {
    const mt__conv_shape *shape;
    int64_t channels; /* of the group */
    int64_t depth;    /* rows of columns */
    int64_t places;   /* columns of columns */
} image;

/* Places ow0 <= x < ow1 of a row whose element for kernel column kx lies inside the image. */
static void inside(const mt__conv_shape *s, int64_t kx, int64_t *from, int64_t *to)
{
    int64_t shift = kx * s->dil_w - s->pad_w; /* element = place stride + shift */
    *from = shift >= 0 ? 0 : (-shift + s->stride_w - 1) / s->stride_w;
    *to = s->w - 1 - shift < 0 ? 0 : (s->w - 1 - shift) / s->stride_w + 1;
    *to = *to < s->ow ? *to : s->ow;
    *from = *from < *to ? *from : *to;
}

#define MT_I_DEFINE_COLUMNS(T, suffix)                                                            \
    static void gather_row_##suffix(const mt__conv_shape *s, const T *line, int64_t kx, T *to)    \
    {                                                                                             \
        int64_t begin;                                                                            \
        int64_t end;                                                                              \
        inside(s, kx, &begin, &end);                                                              \
        int64_t shift = kx * s->dil_w - s->pad_w;                                                 \
        memset(to, 0, (size_t)begin * sizeof *to);                                                \
        if (s->stride_w == 1) {                                                                   \
            memcpy(to + begin, line + begin + shift, (size_t)(end - begin) * sizeof *to);         \
        } else {                                                                                  \
            for (int64_t x = begin; x < end; x++) {                                               \
                to[x] = line[x * s->stride_w + shift];                                            \
            }                                                                                     \
        }                                                                                         \
        memset(to + end, 0, (size_t)(s->ow - end) * sizeof *to);                                  \
    }                                                                                             \
                                                                                                  \
    static void scatter_row_##suffix(const mt__conv_shape *s, T *line, int64_t kx, const T *from) \
    {                                                                                             \
        int64_t begin;                                                                            \
        int64_t end;                                                                              \
        inside(s, kx, &begin, &end);                                                              \
        int64_t shift = kx * s->dil_w - s->pad_w;                                                 \
        for (int64_t x = begin; x < end; x++) {                                                   \
            line[x * s->stride_w + shift] = (T)(line[x * s->stride_w + shift] + from[x]);         \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    /* One row of columns: channel and place in the kernel given. */                              \
    static void column_##suffix(const mt__conv_shape *s, T *plane, const int64_t k[2], T *column, \
                                bool gather)                                                      \
    {                                                                                             \
        for (int64_t y = 0; y < s->oh; y++) {                                                     \
            int64_t line = y * s->stride_h - s->pad_h + k[0] * s->dil_h;                          \
            T *places = column + y * s->ow;                                                       \
            if (line < 0 || line >= s->h) {                                                       \
                if (gather) {                                                                     \
                    memset(places, 0, (size_t)s->ow * sizeof *places);                            \
                }                                                                                 \
            } else if (gather) {                                                                  \
                gather_row_##suffix(s, plane + line * s->w, k[1], places);                        \
            } else {                                                                              \
                scatter_row_##suffix(s, plane + line * s->w, k[1], places);                       \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static void columns_##suffix(const image *i, T *in, T *columns, bool gather)                  \
    {                                                                                             \
        const mt__conv_shape *s = i->shape;                                                       \
        for (int64_t row = 0; row < i->depth; row++) {                                            \
            int64_t k[2] = {row / s->kw % s->kh, row % s->kw};                                    \
            T *plane = in + row / (s->kh * s->kw) * s->h * s->w;                                  \
            column_##suffix(s, plane, k, columns + row * i->places, gather);                      \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static void spread_bias_##suffix(const mt__conv *conv, const T *bias)                         \
    {                                                                                             \
        const mt__conv_shape *s = &conv->shape;                                                   \
        int64_t places = s->oh * s->ow;                                                           \
        for (int64_t n = 0; n < s->n; n++) {                                                      \
            for (int64_t o = 0; o < s->o; o++) {                                                  \
                T *plane = (T *)conv->out + n * s->out_step + o * places;                         \
                for (int64_t p = 0; p < places; p++) {                                            \
                    plane[p] = bias[o];                                                           \
                }                                                                                 \
            }                                                                                     \
        }                                                                                         \
    }

MT_I_DEFINE_COLUMNS(uint8_t, u8)
MT_I_DEFINE_COLUMNS(int32_t, i32)
MT_I_DEFINE_COLUMNS(int64_t, i64)
MT_I_DEFINE_COLUMNS(float, f32)
MT_I_DEFINE_COLUMNS(double, f64)

#define MT_I_DEFINE_BIAS_GRADIENT(T, suffix)                                          \
    static void bias_gradient_##suffix(const mt__conv *conv)                          \
    {                                                                                 \
        const mt__conv_shape *s = &conv->shape;                                       \
        int64_t places = s->oh * s->ow;                                               \
        for (int64_t o = 0; o < s->o; o++) {                                          \
            double total = 0;                                                         \
            for (int64_t n = 0; n < s->n; n++) {                                      \
                const T *plane = (const T *)conv->out + n * s->out_step + o * places; \
                double sums[8] = {0};                                                 \
                int64_t p = 0;                                                        \
                for (; p + 8 <= places; p += 8) {                                     \
                    for (int lane = 0; lane < 8; lane++) {                            \
                        sums[lane] += (double)plane[p + lane];                        \
                    }                                                                 \
                }                                                                     \
                for (; p < places; p++) {                                             \
                    sums[p % 8] += (double)plane[p];                                  \
                }                                                                     \
                for (int lane = 0; lane < 8; lane++) {                                \
                    total += sums[lane];                                              \
                }                                                                     \
            }                                                                         \
            ((T *)conv->bias)[o] = (T)total;                                          \
        }                                                                             \
    }

MT_I_DEFINE_BIAS_GRADIENT(float, f32)
MT_I_DEFINE_BIAS_GRADIENT(double, f64)

static void columns(const mt__conv *conv, const image *i, void *in, void *block, bool gather)
{
    switch (conv->dtype) {
    case MT_DTYPE_U8: columns_u8(i, in, block, gather); break;
    case MT_DTYPE_I32: columns_i32(i, in, block, gather); break;
    case MT_DTYPE_I64: columns_i64(i, in, block, gather); break;
    case MT_DTYPE_F32: columns_f32(i, in, block, gather); break;
    default: columns_f64(i, in, block, gather); break;
    }
}

static void spread_bias(const mt__conv *conv)
{
    switch (conv->dtype) {
    case MT_DTYPE_U8: spread_bias_u8(conv, conv->bias); break;
    case MT_DTYPE_I32: spread_bias_i32(conv, conv->bias); break;
    case MT_DTYPE_I64: spread_bias_i64(conv, conv->bias); break;
    case MT_DTYPE_F32: spread_bias_f32(conv, conv->bias); break;
    default: spread_bias_f64(conv, conv->bias); break;
    }
}

void mt__conv_bias_gradient(const mt__conv *conv)
{
    if (conv->dtype == MT_DTYPE_F32) {
        bias_gradient_f32(conv);
    } else {
        bias_gradient_f64(conv);
    }
}

/* ---- the three products ---------------------------------------------------------------------- */

/* Pointers of one image's group. */
typedef struct group {
    image image;
    char *in, *weight, *out;
    char *columns; /* scratch, or `in` itself where no copy is needed */
    int64_t outputs;
    bool copied;
    bool first; /* of the images: d weight is written, not added to */
} group;

static int group_forward(const mt__conv *conv, const group *g)
{
    if (g->copied) {
        columns(conv, &g->image, g->in, g->columns, true);
    }
    mt__product p = {.m = g->outputs,
                     .n = g->image.places,
                     .k = g->image.depth,
                     .a = g->weight,
                     .a_row = g->image.depth,
                     .a_col = 1,
                     .b = g->columns,
                     .b_row = g->image.places,
                     .b_col = 1,
                     .c = g->out,
                     .c_row = g->image.places,
                     .c_col = 1,
                     .alpha = 1,
                     .beta = conv->bias != NULL ? 1 : 0,
                     .int_alpha = 1,
                     .int_beta = conv->bias != NULL ? 1 : 0};
    return mt__multiply(conv->dtype, &p);
}

static int group_backward_input(const mt__conv *conv, const group *g)
{
    mt__product p = {.m = g->image.depth,
                     .n = g->image.places,
                     .k = g->outputs,
                     .a = g->weight,
                     .a_row = 1,
                     .a_col = g->image.depth,
                     .b = g->out,
                     .b_row = g->image.places,
                     .b_col = 1,
                     .c = g->columns,
                     .c_row = g->image.places,
                     .c_col = 1,
                     .alpha = 1};
    MT_TRY(mt__multiply(conv->dtype, &p));
    if (g->copied) {
        const mt__conv_shape *s = &conv->shape;
        memset(g->in, 0, (size_t)(g->image.channels * s->h * s->w) * mt_dtype_size(conv->dtype));
        columns(conv, &g->image, g->in, g->columns, false);
    }
    return 0;
}

static int group_backward_weight(const mt__conv *conv, const group *g)
{
    if (g->copied) {
        columns(conv, &g->image, g->in, g->columns, true);
    }
    mt__product p = {.m = g->outputs,
                     .n = g->image.depth,
                     .k = g->image.places,
                     .a = g->out,
                     .a_row = g->image.places,
                     .a_col = 1,
                     .b = g->columns,
                     .b_row = 1,
                     .b_col = g->image.places,
                     .c = g->weight,
                     .c_row = g->image.depth,
                     .c_col = 1,
                     .alpha = 1,
                     .beta = g->first ? 0 : 1};
    return mt__multiply(conv->dtype, &p);
}

static int run_group(const mt__conv *conv, const group *g)
{
    switch (conv->kind) {
    case MT_CONV_FORWARD: return group_forward(conv, g);
    case MT_CONV_BACKWARD_INPUT: return group_backward_input(conv, g);
    default: return group_backward_weight(conv, g);
    }
}

static int run_images(const mt__conv *conv, char *block)
{
    const mt__conv_shape *s = &conv->shape;
    int64_t element = (int64_t)mt_dtype_size(conv->dtype);
    int64_t channels = s->c / s->groups;
    int64_t outputs = s->o / s->groups;
    image shape = {.shape = s,
                   .channels = channels,
                   .depth = channels * s->kh * s->kw,
                   .places = s->oh * s->ow};
    for (int64_t n = 0; n < s->n; n++) {
        for (int64_t i = 0; i < s->groups; i++) {
            group g = {
                .image = shape,
                .in = (char *)conv->in + (n * s->c + i * channels) * s->h * s->w * element,
                .weight = (char *)conv->weight + i * outputs * shape.depth * element,
                .out = (char *)conv->out + (n * s->out_step + i * outputs * shape.places) * element,
                .columns = block,
                .outputs = outputs,
                .copied = block != NULL,
                .first = n == 0,
            };
            g.columns = g.copied ? block : g.in;
            MT_TRY(run_group(conv, &g));
        }
    }
    return 0;
}

int mt__conv_columns(const mt__conv *conv)
{
    const mt__conv_shape *s = &conv->shape;
    if (conv->kind == MT_CONV_FORWARD && conv->bias != NULL) {
        spread_bias(conv);
    }
    if (conv->kind == MT_CONV_BACKWARD_WEIGHT && conv->bias != NULL) {
        mt__conv_bias_gradient(conv);
    }
    if (conv->weight == NULL) {
        return 0;
    }
    if (mt__conv_is_product(s)) {
        return run_images(conv, NULL);
    }
    int64_t places = s->oh * s->ow;
    int64_t elements = s->c / s->groups * s->kh * s->kw * places;
    char *block = mt__scratch_take((size_t)elements, mt_dtype_size(conv->dtype));
    if (block == NULL) {
        return mtb_fail(MT_ENOMEM, "convolution: no memory for %lld columns", (long long)places);
    }
    int status = run_images(conv, block);
    mt__scratch_give(block);
    return status;
}
