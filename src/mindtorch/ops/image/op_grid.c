/* SPDX-License-Identifier: Apache-2.0
 *
 * Images at places that a grid names: affine_grid_generator makes such a grid of matrices,
 * grid_sampler reads the image there. Both are made of simple ops, so that gradients reach the
 * image and the grid.
 *
 *     grid [N, H, W, 2]: x and y of each place, -1 and 1 are the image's ends
 */
#include "base/alloc.h"
#include "mindtorch/ops/image/op_image.h"

enum {
    MAX_MADE = 192
};

/* Modes, as torch numbers them. */
enum {
    BILINEAR,
    NEAREST
};

enum {
    ZEROS,
    BORDER,
    REFLECTION
};

/* What is made on the way. */
typedef struct work {
    mt_tensor *made[MAX_MADE];
    uint32_t n_made;
} work;

static mt_tensor **place(work *w)
{
    MT_ASSERT(w->n_made < MAX_MADE);
    w->made[w->n_made] = NULL;
    return &w->made[w->n_made++];
}

static int finish(work *w, int status)
{
    for (uint32_t i = 0; i < w->n_made; i++) {
        mt_tensor_release(w->made[i]);
    }
    return status;
}

/* x * factor + shift */
static int scaled(work *w, mt_tensor *x, double factor, double shift, mt_tensor **out)
{
    mt_tensor **product = place(w);
    mt_tensor **moved = place(w);
    MT_TRY(mt_mul_scalar(x, mt_real(factor), product));
    MT_TRY(mt_add_scalar(*product, mt_real(shift), moved));
    *out = *moved;
    return MT_OK;
}

static int clamped(work *w, mt_tensor *x, int64_t side, mt_tensor **out)
{
    mt_tensor **held = place(w);
    const mt_scalar low = mt_int(0);
    const mt_scalar high = mt_int(side - 1);
    MT_TRY(mt_clamp(x, &low, &high, held));
    *out = *held;
    return MT_OK;
}

/* Back and forth between the image's ends. */
static int reflected(work *w, mt_tensor *x, int64_t side, bool corners, mt_tensor **out)
{
    double low = corners ? 0.0 : -0.5;
    double span = corners ? (double)(side - 1) : (double)side;
    if (span <= 0.0) {
        return scaled(w, x, 0.0, 0.0, out);
    }
    mt_tensor *from_low = NULL;
    mt_tensor **size = place(w);
    mt_tensor **wave = place(w);
    mt_tensor **centred = place(w);
    mt_tensor **bent = place(w);
    MT_TRY(scaled(w, x, 1.0, -low, &from_low));
    MT_TRY(mt_abs(from_low, size));
    MT_TRY(mt_remainder_scalar(*size, mt_real(2.0 * span), wave));
    MT_TRY(mt_sub_scalar(*wave, mt_real(span), centred));
    MT_TRY(mt_abs(*centred, bent));
    return scaled(w, *bent, -1.0, span + low, out);
}

/* Places in pixels of one coordinate of the grid, [N, 1, P]. */
static int pixels(work *w, mt_tensor *grid, int64_t which, int64_t side, int64_t padding,
                  bool corners, mt_tensor **out)
{
    mt_tensor **part = place(w);
    mt_tensor **flat = place(w);
    mt_tensor *x = NULL;
    const int64_t sizes[3] = {grid->sizes[0], 1, grid->sizes[1] * grid->sizes[2]};
    MT_TRY(mt_select(grid, 3, which, part));
    MT_TRY(mt_reshape(*part, sizes, 3, flat));
    double half = corners ? (double)(side - 1) / 2.0 : (double)side / 2.0;
    MT_TRY(scaled(w, *flat, half, corners ? half : half - 0.5, &x));
    if (padding == REFLECTION) {
        MT_TRY(reflected(w, x, side, corners, &x));
    }
    if (padding != ZEROS) {
        MT_TRY(clamped(w, x, side, &x));
    }
    *out = x;
    return MT_OK;
}

/* 1 where a place lies inside, 0 elsewhere, in the place's type. */
static int inside(work *w, mt_tensor *x, int64_t side, mt_tensor **out)
{
    mt_tensor **above = place(w);
    mt_tensor **below = place(w);
    mt_tensor **both = place(w);
    mt_tensor **number = place(w);
    MT_TRY(mt_ge_scalar(x, mt_int(0), above));
    MT_TRY(mt_le_scalar(x, mt_int(side - 1), below));
    MT_TRY(mt_logical_and(*above, *below, both));
    MT_TRY(mt_to_with(*both, (mt_dtype)x->dtype, x->device, false, false, number));
    *out = *number;
    return MT_OK;
}

/* The image's elements at whole places y and x, 0 outside, times a weight (NULL: 1). */
static int corner(work *w, mt_tensor *image, mt_tensor *const yx[2], mt_tensor *weight,
                  const int64_t sides[2], mt_tensor **out)
{
    mt_tensor *held[2];
    mt_tensor *within[2];
    for (uint32_t i = 0; i < 2; i++) {
        MT_TRY(clamped(w, yx[i], sides[i], &held[i]));
        MT_TRY(inside(w, yx[i], sides[i], &within[i]));
    }
    mt_tensor *row = NULL;
    mt_tensor **number = place(w);
    mt_tensor **index = place(w);
    mt_tensor **wide = place(w);
    mt_tensor **picked = place(w);
    mt_tensor **share = place(w);
    mt_tensor **made = place(w);
    MT_TRY(scaled(w, held[0], (double)sides[1], 0.0, &row));
    MT_TRY(mt_add(row, held[1], number));
    MT_TRY(mt_to_with(*number, MT_DTYPE_I64, row->device, false, false, index));
    const int64_t sizes[3] = {image->sizes[0], image->sizes[1], row->sizes[2]};
    MT_TRY(mt_expand(*index, sizes, 3, wide));
    MT_TRY(mt_gather(image, 2, *wide, picked));
    MT_TRY(mt_mul(within[0], within[1], share));
    if (weight != NULL) {
        mt_tensor **weighted = place(w);
        MT_TRY(mt_mul(*share, weight, weighted));
        share = weighted;
    }
    MT_TRY(mt_mul(*picked, *share, made));
    *out = *made;
    return MT_OK;
}

static int sample_nearest(work *w, mt_tensor *image, mt_tensor *const yx[2], const int64_t sides[2],
                          mt_tensor **out)
{
    mt_tensor **near[2] = {place(w), place(w)};
    MT_TRY(mt_round(yx[0], near[0]));
    MT_TRY(mt_round(yx[1], near[1]));
    mt_tensor *const whole[2] = {*near[0], *near[1]};
    return corner(w, image, whole, NULL, sides, out);
}

/* Of one coordinate: the whole places before and after, and their shares. */
static int neighbours(work *w, mt_tensor *x, mt_tensor *places[2], mt_tensor *shares[2])
{
    mt_tensor **before = place(w);
    mt_tensor **share = place(w);
    MT_TRY(mt_floor(x, before));
    MT_TRY(mt_sub(x, *before, share));
    places[0] = *before;
    shares[1] = *share;
    MT_TRY(scaled(w, *before, 1.0, 1.0, &places[1]));
    return scaled(w, *share, -1.0, 1.0, &shares[0]);
}

static int sample_bilinear(work *w, mt_tensor *image, mt_tensor *const yx[2],
                           const int64_t sides[2], mt_tensor **out)
{
    mt_tensor *places[2][2];
    mt_tensor *shares[2][2];
    mt_tensor *sum = NULL;
    MT_TRY(neighbours(w, yx[0], places[0], shares[0]));
    MT_TRY(neighbours(w, yx[1], places[1], shares[1]));
    for (uint32_t i = 0; i < 4; i++) {
        mt_tensor *const at[2] = {places[0][i / 2], places[1][i % 2]};
        mt_tensor **weight = place(w);
        mt_tensor *part = NULL;
        MT_TRY(mt_mul(shares[0][i / 2], shares[1][i % 2], weight));
        MT_TRY(corner(w, image, at, *weight, sides, &part));
        if (sum != NULL) {
            mt_tensor **both = place(w);
            MT_TRY(mt_add(sum, part, both));
            part = *both;
        }
        sum = part;
    }
    *out = sum;
    return MT_OK;
}

static int sample(work *w, mt__call *call)
{
    mt_tensor *input = call->args[0].of.tensor;
    mt_tensor *grid = call->args[1].of.tensor;
    bool corners = mt__arg_bool(call, 4);
    int64_t padding = mt__arg_int(call, 3);
    const int64_t *sides = &input->sizes[2];
    mt_tensor *yx[2];
    mt_tensor *made = input;
    mt_tensor **flat = place(w);
    MT_TRY(mt_flatten(input, 2, 3, flat));
    MT_TRY(pixels(w, grid, 1, sides[0], padding, corners, &yx[0]));
    MT_TRY(pixels(w, grid, 0, sides[1], padding, corners, &yx[1]));
    MT_TRY(mt__arg_int(call, 2) == NEAREST ? sample_nearest(w, *flat, yx, sides, &made)
                                           : sample_bilinear(w, *flat, yx, sides, &made));
    const int64_t sizes[4] = {input->sizes[0], input->sizes[1], grid->sizes[1], grid->sizes[2]};
    return mt_reshape(made, sizes, 4, mt__result_place(call, 0));
}

int mt__run_grid_sampler(mt__call *call)
{
    const mt_tensor *input = call->args[0].of.tensor;
    const mt_tensor *grid = call->args[1].of.tensor;
    char text[2][MT_SHAPE_TEXT];
    int64_t mode = mt__arg_int(call, 2);
    int64_t padding = mt__arg_int(call, 3);
    if (input->n_dims != 4 || grid->n_dims != 4 || grid->sizes[3] != 2 ||
        grid->sizes[0] != input->sizes[0]) {
        return mtb_fail(MT_ERUNTIME,
                        "grid_sampler(): expected grid and input to have same batch size, a 4-D "
                        "input and a grid with 2 in its last dimension, but got input with sizes "
                        "%s and grid with sizes %s",
                        mt__shape_text(input->sizes, input->n_dims, text[0]),
                        mt__shape_text(grid->sizes, grid->n_dims, text[1]));
    }
    if (input->sizes[2] == 0 || input->sizes[3] == 0) {
        return mtb_fail(MT_ERUNTIME,
                        "grid_sampler(): expected input to have non-empty spatial dimensions, but "
                        "input has sizes %s",
                        mt__shape_text(input->sizes, input->n_dims, text[0]));
    }
    if ((mode != BILINEAR && mode != NEAREST) || padding < ZEROS || padding > REFLECTION) {
        return mtb_fail(MT_ENOTSUP, "grid_sampler(): interpolation mode %lld with padding %lld",
                        (long long)mode, (long long)padding);
    }
    work w = {.n_made = 0};
    return finish(&w, sample(&w, call));
}

/* ---- grids ----------------------------------------------------------------------------------- */

/* Place i of n between -1 and 1. */
static double place_of(int64_t i, int64_t n, bool corners)
{
    if (corners) {
        return n > 1 ? -1.0 + 2.0 * (double)i / (double)(n - 1) : 0.0;
    }
    return (2.0 * (double)i + 1.0) / (double)n - 1.0;
}

/* [H W, 3]: x, y and 1 of every place, in double. */
static int base_grid(mt__call *call, int64_t height, int64_t width, bool corners, mt_tensor **out)
{
    int64_t count = height * width;
    double *numbers = mtb_calloc((size_t)count * 3 + 1, sizeof(double));
    if (numbers == NULL) {
        return mtb_fail(MT_ENOMEM, "affine_grid_generator(): no memory for %lld places",
                        (long long)count);
    }
    for (int64_t i = 0; i < count; i++) {
        numbers[3 * i] = place_of(i % width, width, corners);
        numbers[3 * i + 1] = place_of(i / width, height, corners);
        numbers[3 * i + 2] = 1.0;
    }
    const int64_t sizes[2] = {count, 3};
    mt_tensor **made = mt__temp(call);
    int status = mt_tensor_from_data(numbers, MT_DTYPE_F64, sizes, 2, call->device, made);
    mtb_free(numbers);
    *out = *made;
    return status;
}

int mt__run_affine_grid_generator(mt__call *call)
{
    mt_tensor *theta = call->args[0].of.tensor;
    const mt_value *size = &call->args[1];
    char text[MT_SHAPE_TEXT];
    if (size->count != 4 || theta->n_dims != 3 || theta->sizes[0] != size->of.ints[0] ||
        theta->sizes[1] != 2 || theta->sizes[2] != 3) {
        return mtb_fail(MT_ERUNTIME,
                        "affine_grid_generator(): expected a batch of 2D affine matrices of shape "
                        "Nx2x3 for 4 sizes, got %s for %u",
                        mt__shape_text(theta->sizes, theta->n_dims, text), size->count);
    }
    const int64_t *s = size->of.ints;
    if (s[2] <= 0 || s[3] <= 0 || s[2] > INT32_MAX || s[3] > INT32_MAX) {
        return mtb_fail(MT_ERUNTIME, "Expected non-zero, positive output size. Got %s",
                        mt__shape_text(s, size->count, text));
    }
    mt_tensor *base = theta;
    mt_tensor **typed = mt__temp(call);
    mt_tensor **turned = mt__temp(call);
    mt_tensor **made = mt__temp(call);
    MT_TRY(base_grid(call, s[2], s[3], mt__arg_bool(call, 2), &base));
    MT_TRY(mt_to_with(base, (mt_dtype)theta->dtype, theta->device, false, false, typed));
    MT_TRY(mt_transpose(theta, 1, 2, turned));
    MT_TRY(mt_matmul(*typed, *turned, made));
    const int64_t sizes[4] = {s[0], s[2], s[3], 2};
    return mt_view(*made, sizes, 4, mt__result_place(call, 0));
}
