/* SPDX-License-Identifier: Apache-2.0
 *
 * Images and volumes at places that a grid names: affine_grid_generator makes such a grid of
 * matrices, grid_sampler reads the image there.
 *
 *     grid [N, H, W, 2]: x and y of each place, -1 and 1 are the image's ends
 *     grid [N, D, H, W, 3]: x, y and z
 */
#include "base/alloc.h"
#include "mindtorch/ops/image/op_image.h"
#include "mindtorch/ops/nn/op_nn_support.h"

#include <string.h>

enum {
    MODE_CUBIC = 2, /* as torch numbers them */
    LAST_MODE = 2,
    LAST_PADDING = 2
};

/* Tensors of a call as the kernel wants them. */
typedef struct sampling {
    mt__call *call;
    mt__shape image, grid, out;
    int64_t image_sizes[5]; /* [N, C, D, H, W] */
    int64_t grid_sizes[3];  /* [N, places, dims] */
    int64_t out_sizes[3];   /* [N, C, places] */
    int64_t ints[3];
} sampling;

static int check_images(const mt_tensor *input, const mt_tensor *grid)
{
    char text[2][MT_SHAPE_TEXT];
    mt__shape_text(input->sizes, input->n_dims, text[0]);
    mt__shape_text(grid->sizes, grid->n_dims, text[1]);
    if (grid->n_dims == 0 || input->n_dims == 0 || input->sizes[0] != grid->sizes[0]) {
        return mtb_fail(MT_ERUNTIME,
                        "grid_sampler(): expected grid and input to have same batch size, but got "
                        "input with sizes %s and grid with sizes %s",
                        text[0], text[1]);
    }
    if (grid->sizes[grid->n_dims - 1] != (int64_t)input->n_dims - 2) {
        return mtb_fail(MT_ERUNTIME,
                        "grid_sampler(): expected grid to have size %d in last dimension, but got "
                        "grid with sizes %s",
                        (int)input->n_dims - 2, text[1]);
    }
    for (uint32_t i = 2; i < input->n_dims; i++) {
        if (input->sizes[i] == 0) {
            return mtb_fail(MT_ERUNTIME,
                            "grid_sampler(): expected input to have non-empty spatial dimensions, "
                            "but input has sizes %s with dimension %u being empty",
                            text[0], i);
        }
    }
    return MT_OK;
}

static int check_dims(const mt_tensor *input, const mt_tensor *grid, uint32_t dims, int64_t mode)
{
    char text[2][MT_SHAPE_TEXT];
    if (input->n_dims != grid->n_dims || (dims != 0 && input->n_dims != dims + 2) ||
        (input->n_dims != 4 && input->n_dims != 5)) {
        return mtb_fail(MT_ERUNTIME,
                        "grid_sampler(): expected %uD input and grid with same number of "
                        "dimensions, but got input with sizes %s and grid with sizes %s",
                        dims == 0 ? 5U : dims + 2,
                        mt__shape_text(input->sizes, input->n_dims, text[0]),
                        mt__shape_text(grid->sizes, grid->n_dims, text[1]));
    }
    if (input->n_dims == 5 && mode == MODE_CUBIC) {
        return mtb_fail(MT_ERUNTIME,
                        "grid_sampler(): bicubic interpolation only supports 4D input");
    }
    return MT_OK;
}

/* `first`: the position of input; then come grid, mode, padding, align_corners. */
static int open_sampling(mt__call *call, uint32_t first, uint32_t dims, sampling *s)
{
    const mt_tensor *input = call->args[first].of.tensor;
    const mt_tensor *grid = call->args[first + 1].of.tensor;
    int64_t mode = mt__arg_int(call, first + 2);
    int64_t padding = mt__arg_int(call, first + 3);
    MT_TRY(check_images(input, grid));
    MT_TRY(check_dims(input, grid, dims, mode));
    if (mode < 0 || mode > LAST_MODE || padding < 0 || padding > LAST_PADDING) {
        return mtb_fail(MT_EVALUE, "%s(): interpolation mode %lld with padding %lld",
                        mt__op_name(call), (long long)mode, (long long)padding);
    }
    MT_TRY(mt__need_real(call, (mt_dtype)input->dtype));
    MT_TRY(mt__need_type(grid, (mt_dtype)input->dtype));
    bool deep = input->n_dims == 5;
    *s = (sampling){
        .call = call,
        .image = mt__tensor_shape(input),
        .grid = mt__tensor_shape(grid),
        .image_sizes = {input->sizes[0], input->sizes[1], deep ? input->sizes[2] : 1,
                        input->sizes[input->n_dims - 2], input->sizes[input->n_dims - 1]},
        .grid_sizes = {input->sizes[0], 1, (int64_t)input->n_dims - 2},
        .ints = {mode, padding, mt__arg_bool(call, first + 4)},
    };
    s->out = s->image;
    for (uint32_t i = 1; i + 1 < grid->n_dims; i++) {
        s->grid_sizes[1] *= grid->sizes[i];
        s->out.sizes[i + 1] = grid->sizes[i];
    }
    memcpy(s->out_sizes, (int64_t[]){s->image_sizes[0], s->image_sizes[1], s->grid_sizes[1]},
           sizeof s->out_sizes);
    return MT_OK;
}

/* The kernel's views of tensors that are like the image, and like the result or the grid. */
static int as_image(const sampling *s, mt_tensor *tensor, mt_tensor **out)
{
    mt_tensor *dense = NULL;
    *out = NULL;
    if (tensor == NULL) {
        return MT_OK;
    }
    MT_TRY(mt__contiguous(s->call, tensor, &dense));
    return mt__nn_view(s->call, dense, s->image_sizes, 5, out);
}

static int as_points(const sampling *s, mt_tensor *tensor, const int64_t sizes[3], mt_tensor **out)
{
    mt_tensor *dense = NULL;
    *out = NULL;
    if (tensor == NULL) {
        return MT_OK;
    }
    MT_TRY(mt__contiguous(s->call, tensor, &dense));
    return mt__nn_view(s->call, dense, sizes, 3, out);
}

int mt__run_grid_sampler(mt__call *call)
{
    mt_tensor *input = call->args[0].of.tensor;
    mt_tensor *grid = call->args[1].of.tensor;
    MT_TRY(check_images(input, grid));
    MT_TRY(check_dims(input, grid, 0, mt__arg_int(call, 2)));
    return (input->n_dims == 4 ? mt_grid_sampler_2d : mt_grid_sampler_3d)(
        input, grid, mt__arg_int(call, 2), mt__arg_int(call, 3), mt__arg_bool(call, 4),
        mt__result_place(call, 0));
}

static int run_sampler(mt__call *call, uint32_t dims)
{
    sampling s = {.call = call};
    mt_tensor *out = NULL;
    MT_TRY(open_sampling(call, 0, dims, &s));
    MT_TRY(mt__result_new(call, 0, (mt_dtype)call->args[0].of.tensor->dtype, &s.out, &out));
    mt__kernel_args args = {
        .kernel = MT_KERNEL_GRID_SAMPLE,
        .n_tensors = 3,
        MT_INTS(s.ints[0], s.ints[1], s.ints[2]),
    };
    MT_TRY(as_points(&s, out, s.out_sizes, &args.tensors[0]));
    MT_TRY(as_image(&s, call->args[0].of.tensor, &args.tensors[1]));
    MT_TRY(as_points(&s, call->args[1].of.tensor, s.grid_sizes, &args.tensors[2]));
    return mt__kernel(call, &args);
}

MT_RUN(grid_sampler_2d, run_sampler, 2)
MT_RUN(grid_sampler_3d, run_sampler, 3)

static int check_gradient(const mt_tensor *grad, const mt__shape *want, mt_dtype dtype)
{
    mt__shape have = mt__tensor_shape(grad);
    if (!mt__shape_equal(&have, want)) {
        char text[2][MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "grid_sampler: expected a gradient of sizes %s, but got %s",
                        mt__shape_text(want->sizes, want->n_dims, text[0]),
                        mt__shape_text(have.sizes, have.n_dims, text[1]));
    }
    return mt__need_type(grad, dtype);
}

static int run_sampler_backward(mt__call *call, uint32_t dims)
{
    sampling s = {.call = call};
    mt_tensor *grads[2] = {NULL, NULL};
    mt_dtype dtype = (mt_dtype)call->args[1].of.tensor->dtype;
    const mt_value *mask = &call->args[6];
    MT_TRY(open_sampling(call, 1, dims, &s));
    MT_TRY(check_gradient(call->args[0].of.tensor, &s.out, dtype));
    if (mask->count != 2) {
        return mtb_fail(MT_ERUNTIME, "%s(): expected two entries of output_mask, got %u",
                        mt__op_name(call), mask->count);
    }
    if (mask->of.ints[0] != 0) {
        MT_TRY(mt__result_new(call, 0, dtype, &s.image, &grads[0]));
    }
    MT_TRY(mt__result_new(call, 1, dtype, &s.grid, &grads[1]));
    mt__kernel_args args = {
        .kernel = MT_KERNEL_GRID_SAMPLE_BACKWARD,
        .n_tensors = 5,
        MT_INTS(s.ints[0], s.ints[1], s.ints[2]),
    };
    MT_TRY(as_image(&s, grads[0], &args.tensors[0]));
    MT_TRY(as_points(&s, grads[1], s.grid_sizes, &args.tensors[1]));
    MT_TRY(as_points(&s, call->args[0].of.tensor, s.out_sizes, &args.tensors[2]));
    MT_TRY(as_image(&s, call->args[1].of.tensor, &args.tensors[3]));
    MT_TRY(as_points(&s, call->args[2].of.tensor, s.grid_sizes, &args.tensors[4]));
    return mt__kernel(call, &args);
}

MT_RUN(grid_sampler_2d_backward, run_sampler_backward, 2)
MT_RUN(grid_sampler_3d_backward, run_sampler_backward, 3)

/* The derivative of the two before: (grad_input?, grad_grid?, grad_output, input, grid, ...) */
int mt__run__grid_sampler_backward_backward(mt__call *call)
{
    sampling s = {.call = call};
    mt_dtype dtype = (mt_dtype)call->args[3].of.tensor->dtype;
    MT_TRY(open_sampling(call, 3, 0, &s));
    const mt__shape *const shapes[3] = {&s.image, &s.grid, &s.out};
    for (uint32_t i = 0; i < 3; i++) {
        if (mt__arg_given(call, i)) {
            MT_TRY(check_gradient(call->args[i].of.tensor, shapes[i], dtype));
        }
    }
    mt_tensor *made[3];
    MT_TRY(mt__result_new(call, 0, dtype, &s.out, &made[0]));
    MT_TRY(mt__result_new(call, 1, dtype, &s.image, &made[1]));
    MT_TRY(mt__result_new(call, 2, dtype, &s.grid, &made[2]));
    mt__kernel_args args = {
        .kernel = MT_KERNEL_GRID_SAMPLE_TWICE,
        .n_tensors = 8,
        MT_INTS(s.ints[0], s.ints[1], s.ints[2]),
    };
    MT_TRY(as_points(&s, made[0], s.out_sizes, &args.tensors[0]));
    MT_TRY(as_image(&s, made[1], &args.tensors[1]));
    MT_TRY(as_points(&s, made[2], s.grid_sizes, &args.tensors[2]));
    MT_TRY(as_image(&s, mt__arg_tensor(call, 0), &args.tensors[3]));
    MT_TRY(as_points(&s, mt__arg_tensor(call, 1), s.grid_sizes, &args.tensors[4]));
    MT_TRY(as_points(&s, call->args[2].of.tensor, s.out_sizes, &args.tensors[5]));
    MT_TRY(as_image(&s, call->args[3].of.tensor, &args.tensors[6]));
    MT_TRY(as_points(&s, call->args[4].of.tensor, s.grid_sizes, &args.tensors[7]));
    return mt__kernel(call, &args);
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

/* [places, dims + 1]: x, y, z and 1 of every place, in double. `sides` are D, H, W or H, W. */
static int base_grid(mt__call *call, const int64_t *sides, uint32_t dims, bool corners,
                     mt_tensor **out)
{
    int64_t count = 1;
    int64_t wide = (int64_t)dims + 1;
    for (uint32_t i = 0; i < dims; i++) {
        count *= sides[i];
    }
    double *numbers = mtb_calloc((size_t)(count * wide), sizeof(double));
    if (numbers == NULL) {
        return mtb_fail(MT_ENOMEM, "affine_grid_generator(): no memory for %lld places",
                        (long long)count);
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i;
        for (uint32_t d = 0; d < dims; d++) {
            int64_t side = sides[dims - 1 - d];
            numbers[wide * i + d] = place_of(rest % side, side, corners);
            rest /= side;
        }
        numbers[wide * i + dims] = 1.0;
    }
    const int64_t sizes[2] = {count, wide};
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
    uint32_t dims = size->count == 5 ? 3 : 2;
    if ((size->count != 4 && size->count != 5) || theta->n_dims != 3 ||
        theta->sizes[0] != size->of.ints[0] || theta->sizes[1] != dims ||
        theta->sizes[2] != dims + 1) {
        return mtb_fail(MT_ERUNTIME,
                        "affine_grid_generator(): expected a batch of %uD affine matrices of shape "
                        "Nx%ux%u for %u sizes, got %s",
                        dims, dims, dims + 1, size->count,
                        mt__shape_text(theta->sizes, theta->n_dims, text));
    }
    const int64_t *sides = &size->of.ints[2];
    double places = 1.0;
    for (uint32_t i = 0; i < dims; i++) {
        places *= (double)sides[i];
        if (sides[i] <= 0 || places > 1e15) {
            return mtb_fail(MT_ERUNTIME, "Expected non-zero, positive output size. Got %s",
                            mt__shape_text(size->of.ints, size->count, text));
        }
    }
    mt_tensor *base = theta;
    mt_tensor **typed = mt__temp(call);
    mt_tensor **turned = mt__temp(call);
    mt_tensor **made = mt__temp(call);
    MT_TRY(base_grid(call, sides, dims, mt__arg_bool(call, 2), &base));
    MT_TRY(mt_to_with(base, (mt_dtype)theta->dtype, theta->device, false, false, typed));
    MT_TRY(mt_transpose(theta, 1, 2, turned));
    MT_TRY(mt_matmul(*typed, *turned, made));
    int64_t sizes[5] = {theta->sizes[0]};
    memcpy(&sizes[1], sides, dims * sizeof(int64_t));
    sizes[dims + 1] = dims;
    return mt_view(*made, sizes, dims + 2, mt__result_place(call, 0));
}
