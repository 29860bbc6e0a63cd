/* SPDX-License-Identifier: Apache-2.0
 *
 * Images and volumes at places that a grid names (kernels.def, GRID_SAMPLE), and the derivatives by
 * the image and by the grid. A place of the grid is a weighted sum of up to 16 elements; those that
 * lie outside are left out. A coordinate that is NaN or infinite gives NaN, with nearest 0.
 */
#include "base/fail.h"
#include "kernels/entry/call_args.h"
#include "kernels/entry/host_kernels.h"
#include "kernels/isa/grid_loops.h"
#include "kernels/walk/parallel.h"

#include <math.h>
#include <string.h>

/* Modes, as torch numbers them. */
enum {
    BILINEAR,
    NEAREST,
    BICUBIC
};

enum {
    ZEROS,
    BORDER,
    REFLECTION
};

enum {
    GROUP = 32 /* places whose elements are looked up at a time: about 8 KiB */
};

typedef struct grid_job {
    int64_t sides[3]; /* D, H, W of the image */
    int64_t plane;    /* their product */
    int64_t channels;
    int64_t places; /* of the grid for an image */
    uint32_t dims;  /* 2 or 3 */
    int64_t mode, padding;
    bool corners;
    const void *in, *grid, *grad;
    void *out, *grad_grid;           /* out: grad_in in the derivative, or NULL */
    const void *from_in, *from_grid; /* of the second derivative: what comes in, or NULL */
    void *grad_grad;
} grid_job;

#define T          float
#define NAME(x)    x##_f32
#define FLOOR(x)   floorf(x)
#define NEARBY(x)  nearbyintf(x)
#define FMOD(x, y) fmodf(x, y)
#include "kernels/image/grid_sample_body.def"
#undef T
#undef NAME
#undef FLOOR
#undef NEARBY
#undef FMOD

#define T          double
#define NAME(x)    x##_f64
#define FLOOR(x)   floor(x)
#define NEARBY(x)  nearbyint(x)
#define FMOD(x, y) fmod(x, y)
#include "kernels/image/grid_sample_body.def"
#undef T
#undef NAME
#undef FLOOR
#undef NEARBY
#undef FMOD

/* `in` [N, C, D, H, W], `grid` [N, places, 2 or 3]. */
static int make_job(const mt_kernel_call *call, const mt_array *in, const mt_array *grid,
                    grid_job *j)
{
    *j = (grid_job){
        .sides = {in->sizes[2], in->sizes[3], in->sizes[4]},
        .plane = in->sizes[2] * in->sizes[3] * in->sizes[4],
        .channels = in->sizes[1],
        .places = grid->sizes[1],
        .dims = (uint32_t)grid->sizes[2],
        .mode = call->ints[0],
        .padding = call->ints[1],
        .corners = call->ints[2] != 0,
        .in = in->data,
        .grid = grid->data,
    };
    if (in->dtype != MT_DTYPE_F64 && in->dtype != MT_DTYPE_F32) {
        return mtb_fail(MT_ENOTSUP, "sampling at a grid: not implemented for %s",
                        mt_dtype_name((mt_dtype)in->dtype));
    }
    return MT_OK;
}

/* The nearest element or neighbours, by the loops of the instruction set. */
static bool has_loop(const grid_job *j)
{
    return j->mode != BICUBIC && j->padding != REFLECTION && j->plane > 0 && j->plane < INT32_MAX;
}

static void sample_groups(const grid_job *j, int64_t begin, int64_t end, bool is_double)
{
    mt__grid_fn *loop = MT_ISA_PICK(mt__grid_loops)[is_double];
    int64_t element = is_double ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    mt__grid_image image = {.sides = {j->sides[0], j->sides[1], j->sides[2]},
                            .channels = j->channels,
                            .out_step = j->places,
                            .dims = j->dims,
                            .nearest = j->mode == NEAREST,
                            .border = j->padding == BORDER,
                            .corners = j->corners};
    for (int64_t p = begin, n; p < end; p += n) {
        int64_t number = p / j->places;
        int64_t left = (number + 1) * j->places < end ? (number + 1) * j->places - p : end - p;
        n = left < MT_GRID_GROUP ? left : MT_GRID_GROUP;
        image.in = (const char *)j->in + number * j->channels * j->plane * element;
        image.grid = (const char *)j->grid + p * j->dims * element;
        image.out = (char *)j->out + (number * j->channels * j->places + p % j->places) * element;
        loop(&image, n);
    }
}

static void sample_f32(void *context, int64_t begin, int64_t end)
{
    sample_groups(context, begin, end, false);
}

static void sample_f64(void *context, int64_t begin, int64_t end)
{
    sample_groups(context, begin, end, true);
}

MT_HOST_KERNEL_WIDENED(GRID_SAMPLE, 0x1, 0)
{
    const mt_array *in = &call->tensors[1];
    grid_job j;
    MT_TRY(make_job(call, in, &call->tensors[2], &j));
    j.out = call->tensors[0].data;
    bool is_double = in->dtype == MT_DTYPE_F64;
    mt__parallel_for(in->sizes[0] * j.places, 1 + (1 << 12) / (j.channels + 1),
                     has_loop(&j) ? (is_double ? sample_f64 : sample_f32)
                                  : (is_double ? forward_f64 : forward_f32),
                     &j);
    return MT_OK;
}

MT_HOST_KERNEL_WIDENED(GRID_SAMPLE_BACKWARD, 0x3, 0)
{
    const mt_array *in = &call->tensors[3];
    grid_job j;
    MT_TRY(make_job(call, in, &call->tensors[4], &j));
    j.out = call->tensors[0].data;
    j.grad_grid = call->tensors[1].data;
    j.grad = call->tensors[2].data;
    if (j.out != NULL) {
        memset(j.out, 0, (size_t)mt__arg_numel(call, 0) * mt_dtype_size((mt_dtype)in->dtype));
    }
    mt__parallel_for(in->sizes[0], 1, in->dtype == MT_DTYPE_F64 ? backward_f64 : backward_f32, &j);
    return MT_OK;
}

MT_HOST_KERNEL_WIDENED(GRID_SAMPLE_TWICE, 0x7, 0)
{
    const mt_array *in = &call->tensors[6];
    grid_job j;
    MT_TRY(make_job(call, in, &call->tensors[7], &j));
    j.grad_grad = call->tensors[0].data;
    j.out = call->tensors[1].data;
    j.grad_grid = call->tensors[2].data;
    j.from_in = call->tensors[3].data;
    j.from_grid = call->tensors[4].data;
    j.grad = call->tensors[5].data;
    memset(j.out, 0, (size_t)mt__arg_numel(call, 1) * mt_dtype_size((mt_dtype)in->dtype));
    mt__parallel_for(in->sizes[0], 1, in->dtype == MT_DTYPE_F64 ? twice_f64 : twice_f32, &j);
    return MT_OK;
}
