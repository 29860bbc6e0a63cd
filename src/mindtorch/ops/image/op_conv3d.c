/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of volumes [N, C, D, H, W], made of those of images: for each depth k of the kernel
 * the slices of the volume that it meets are images of a batch.
 *
 *     out[:, :, z] = sum over k of conv2d(in[:, :, z stride + k dilation - padding], w[:, :, k])
 *
 * A transposed convolution sends slices the other way. Volumes are kept as [N, D, C, H, W] on the
 * way, so that slices of a batch are images.
 */
#include "mindtorch/ops/image/op_image.h"

enum {
    STRIDE,
    PADDING,
    DILATION,
    N_LISTS
};

typedef struct volume_plan {
    mt__call *call;
    int64_t lists[N_LISTS][3];
    int64_t more[3]; /* output_padding */
    int64_t groups;
    bool transposed;
    int64_t kernel; /* its depth */
    int64_t small;  /* depth of the side with fewer slices: a convolution's output */
    int64_t large;  /* of the other side */
} volume_plan;

/* ---- checks ---------------------------------------------------------------------------------- */

static int spread_list(const mt_value *list, const char *name, int64_t out[3])
{
    if (list->count != 1 && list->count != 3) {
        char text[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "expected %s to be a single integer value or a list of 3 values to match "
                        "the convolution dimensions, but got %s=%s",
                        name, name, mt__shape_text(list->of.ints, list->count, text));
    }
    for (uint32_t i = 0; i < 3; i++) {
        out[i] = list->of.ints[list->count == 1 ? 0 : i];
    }
    return MT_OK;
}

static int check_depth(const volume_plan *p)
{
    if (p->lists[STRIDE][0] <= 0 || p->lists[PADDING][0] < 0 || p->lists[DILATION][0] <= 0 ||
        p->more[0] < 0) {
        return mtb_fail(MT_ERUNTIME,
                        "%s(): a stride of %lld, a padding of %lld or a dilation of %lld is out of "
                        "range",
                        mt__op_name(p->call), (long long)p->lists[STRIDE][0],
                        (long long)p->lists[PADDING][0], (long long)p->lists[DILATION][0]);
    }
    for (uint32_t i = 0; i < N_LISTS; i++) {
        MT_TRY(mt__image_limit(p->call, p->lists[i], 3));
    }
    return MT_OK;
}

/* lists: stride, padding, dilation, groups; how: transposed, output_padding. */
static int make_plan(mt__call *call, mt_tensor *input, mt_tensor *weight, const mt_value *lists,
                     const mt_value *how, volume_plan *p)
{
    static const char *const names[] = {"stride", "padding", "dilation"};
    char text[2][MT_SHAPE_TEXT];
    *p = (volume_plan){.call = call, .transposed = how[0].of.integer != 0};
    if (input->n_dims != 5) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected 5-dimensional input for 5-dimensional weight %s, but got "
                        "%u-dimensional input of size %s instead",
                        mt__shape_text(weight->sizes, 5, text[0]), (unsigned)input->n_dims,
                        mt__shape_text(input->sizes, input->n_dims, text[1]));
    }
    for (uint32_t i = 0; i < N_LISTS; i++) {
        MT_TRY(spread_list(&lists[i], names[i], p->lists[i]));
    }
    if (how[1].count != 0) {
        MT_TRY(spread_list(&how[1], "output_padding", p->more));
    }
    MT_TRY(check_depth(p));
    p->groups = lists[N_LISTS].of.integer;
    p->kernel = weight->sizes[2];
    int64_t side = input->sizes[2];
    int64_t wide = p->lists[DILATION][0] * (p->kernel - 1) + 1;
    int64_t step = p->lists[STRIDE][0] > 0 ? p->lists[STRIDE][0] : 1;
    int64_t padded = side + 2 * p->lists[PADDING][0];
    if (p->transposed) {
        p->small = side;
        p->large = (side - 1) * step - 2 * p->lists[PADDING][0] + wide + p->more[0];
    } else {
        p->large = side;
        p->small = padded < wide ? 0 : (padded - wide) / step + 1;
    }
    if (p->kernel <= 0 || p->small <= 0 || p->large <= 0) {
        return mtb_fail(MT_ERUNTIME,
                        "Calculated padded input size per channel: (%lld in depth). Kernel size: "
                        "(%lld in depth). Kernel size can't be greater than actual input size",
                        (long long)padded, (long long)wide);
    }
    return MT_OK;
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* [N, C, D, H, W] as contiguous [N, D, C, H, W], which belongs to the call. */
static int by_depth(mt__call *call, mt_tensor *volume, mt_tensor **out)
{
    mt_tensor **turned = mt__temp(call);
    mt_tensor **dense = mt__temp(call);
    MT_TRY(mt_transpose(volume, 1, 2, turned));
    MT_TRY(mt_contiguous(*turned, dense));
    *out = *dense;
    return MT_OK;
}

/* The same with the padding of both ends: `size` slices in all. */
static int with_ends(const volume_plan *p, mt_tensor *volume, int64_t size, mt_tensor **out)
{
    int64_t before = p->lists[PADDING][0];
    int64_t after = size - volume->sizes[1] - before;
    if (before == 0 && after == 0) {
        *out = volume;
        return MT_OK;
    }
    mt_tensor **padded = mt__temp(p->call);
    const int64_t pad[8] = {0, 0, 0, 0, 0, 0, before, after};
    MT_TRY(mt_constant_pad_nd(volume, pad, 8, mt_int(0), padded));
    *out = *padded;
    return MT_OK;
}

/* Slices of the large side with both ends that the kernel's depths meet. */
static int64_t reach(const volume_plan *p)
{
    int64_t met =
        (p->small - 1) * p->lists[STRIDE][0] + p->lists[DILATION][0] * (p->kernel - 1) + 1;
    int64_t all = p->large + 2 * p->lists[PADDING][0];
    return met > all ? met : all;
}

/* The slices that depth k meets: a view [N, small, ...] of a large side with its ends. */
static int slices_of(const volume_plan *p, mt_tensor *large, int64_t k, mt_tensor **out)
{
    int64_t start = k * p->lists[DILATION][0];
    int64_t step = p->lists[STRIDE][0];
    return mt_slice(large, 1, &start, &(int64_t){start + (p->small - 1) * step + 1}, step, out);
}

/* [N, D, C, H, W] as [N D, C, H, W]. */
static int as_images(mt_tensor *slices, mt_tensor **out)
{
    const int64_t sizes[4] = {slices->sizes[0] * slices->sizes[1], slices->sizes[2],
                              slices->sizes[3], slices->sizes[4]};
    return mt_reshape(slices, sizes, 4, out);
}

/* Images of the small side as slices again. */
static int as_slices(const volume_plan *p, mt_tensor *images, int64_t n, mt_tensor **out)
{
    const int64_t sizes[5] = {n, p->small, images->sizes[1], images->sizes[2], images->sizes[3]};
    return mt_view(images, sizes, 5, out);
}

static int convolve(const volume_plan *p, mt_tensor *images, mt_tensor *weight, bool transposed,
                    const int64_t more[2], mt_tensor **out)
{
    return mt_convolution_with(images, weight, NULL, &p->lists[STRIDE][1], 2, &p->lists[PADDING][1],
                               2, &p->lists[DILATION][1], 2, p->groups, transposed, more,
                               transposed ? 2 : 0, out);
}

/* Two tensors, the first released. */
static int add_into(mt_tensor **sum, mt_tensor *more)
{
    if (*sum == NULL) {
        *sum = more;
        return MT_OK;
    }
    int status = mt_add_(*sum, more);
    mt_tensor_release(more);
    return status;
}

/* ---- directions ------------------------------------------------------------------------------ */

/* One depth of the kernel, from the large side. */
static int gather_depth(const volume_plan *p, mt_tensor *large, mt_tensor *weight, int64_t k,
                        mt_tensor **sum)
{
    mt_tensor *slices = NULL;
    mt_tensor *images = NULL;
    mt_tensor *kernel = NULL;
    mt_tensor *made = NULL;
    int status = slices_of(p, large, k, &slices);
    if (status == MT_OK) {
        status = as_images(slices, &images);
    }
    if (status == MT_OK) {
        status = mt_select(weight, 2, k, &kernel);
    }
    if (status == MT_OK) {
        status = convolve(p, images, kernel, false, NULL, &made);
    }
    if (status == MT_OK) {
        status = add_into(sum, made);
    }
    mt_tensor_release(slices);
    mt_tensor_release(images);
    mt_tensor_release(kernel);
    return status;
}

/* A convolution: [N, small, O, h, w] from [N, large, C, H, W], as images. */
static int gather(const volume_plan *p, mt_tensor *large, mt_tensor *weight, mt_tensor **out)
{
    mt_tensor *whole = NULL;
    mt_tensor **place = mt__temp(p->call);
    MT_TRY(with_ends(p, large, reach(p), &whole));
    for (int64_t k = 0; k < p->kernel; k++) {
        MT_TRY(gather_depth(p, whole, weight, k, place));
    }
    if (*place == NULL) {
        return mtb_fail(MT_ERUNTIME, "convolution(): a kernel of depth 0");
    }
    *out = *place;
    return MT_OK;
}

/* One depth of the kernel, to the large side. */
static int send_depth(const volume_plan *p, mt_tensor *images, mt_tensor *weight, int64_t k,
                      const int64_t more[2], int64_t n, mt_tensor **whole)
{
    mt_tensor *kernel = NULL;
    mt_tensor *made = NULL;
    mt_tensor *slices = NULL;
    mt_tensor *to = NULL;
    int status = mt_select(weight, 2, k, &kernel);
    if (status == MT_OK) {
        status = convolve(p, images, kernel, true, more, &made);
    }
    if (status == MT_OK) {
        status = as_slices(p, made, n, &slices);
    }
    if (status == MT_OK && *whole == NULL) {
        const int64_t sizes[5] = {n, reach(p), made->sizes[1], made->sizes[2], made->sizes[3]};
        status = mt_zeros_with(sizes, 5, (mt_dtype)made->dtype, p->call->device, whole);
    }
    if (status == MT_OK) {
        status = slices_of(p, *whole, k, &to);
    }
    if (status == MT_OK) {
        status = mt_add_(to, slices);
    }
    mt_tensor_release(kernel);
    mt_tensor_release(made);
    mt_tensor_release(slices);
    mt_tensor_release(to);
    return status;
}

/* A transposed convolution: [N, large, C, H, W] from [N, small, O, h, w]. */
static int send(const volume_plan *p, mt_tensor *small, mt_tensor *weight, const int64_t more[2],
                mt_tensor **out)
{
    mt_tensor **images = mt__temp(p->call);
    mt_tensor **whole = mt__temp(p->call);
    mt_tensor **inside = mt__temp(p->call);
    MT_TRY(as_images(small, images));
    for (int64_t k = 0; k < p->kernel; k++) {
        MT_TRY(send_depth(p, *images, weight, k, more, small->sizes[0], whole));
    }
    MT_TRY(mt_narrow(*whole, 1, p->lists[PADDING][0], p->large, inside));
    *out = *inside;
    return MT_OK;
}

/* Result i of the call: [N, D, C, H, W] (or images of it) as [N, C, D, H, W]. */
static int give_volume(mt__call *call, uint32_t i, mt_tensor *slices)
{
    mt_tensor **turned = mt__temp(call);
    MT_TRY(mt_transpose(slices, 1, 2, turned));
    return mt_contiguous(*turned, mt__result_place(call, i));
}

/* ---- half types: sums over depths in float32 ------------------------------------------------- */

static bool is_half(const mt_tensor *tensor)
{
    return tensor->dtype == MT_DTYPE_F16 || tensor->dtype == MT_DTYPE_BF16;
}

/* The first three arguments in float32, absent ones NULL. */
static int widen(mt__call *call, mt_tensor *out[3])
{
    for (uint32_t i = 0; i < 3; i++) {
        out[i] = mt__arg_tensor(call, i);
        if (out[i] != NULL) {
            MT_TRY(mt__converted(call, out[i], MT_DTYPE_F32, &out[i]));
        }
    }
    return MT_OK;
}

static int narrow_result(mt__call *call, uint32_t i, mt_tensor *wide, mt_dtype dtype)
{
    return mt_to_with(wide, dtype, call->device, false, false, mt__result_place(call, i));
}

static int run_half(mt__call *call)
{
    const mt_value *a = call->args;
    mt_tensor *wide[3];
    mt_tensor **made = mt__temp(call);
    MT_TRY(widen(call, wide));
    MT_TRY(mt_convolution_with(wide[0], wide[1], wide[2], a[3].of.ints, a[3].count, a[4].of.ints,
                               a[4].count, a[5].of.ints, a[5].count, a[6].of.integer,
                               a[7].of.integer != 0, a[8].of.ints, a[8].count, made));
    return narrow_result(call, 0, *made, (mt_dtype)a[0].of.tensor->dtype);
}

static int run_half_backward(mt__call *call)
{
    const mt_value *a = call->args;
    mt_tensor *wide[3];
    mt_tensor **made[3] = {mt__temp(call), mt__temp(call), mt__temp(call)};
    MT_TRY(widen(call, wide));
    MT_TRY(mt_convolution_backward_with(
        wide[0], wide[1], wide[2], a[3].of.ints, a[3].count, a[4].of.ints, a[4].count, a[5].of.ints,
        a[5].count, a[6].of.integer, a[7].of.ints, a[7].count, a[8].of.integer != 0, a[9].of.ints,
        a[9].count, made[0], made[1], made[2]));
    for (uint32_t i = 0; i < 3; i++) {
        if (*made[i] != NULL) {
            MT_TRY(narrow_result(call, i, *made[i], (mt_dtype)a[0].of.tensor->dtype));
        }
    }
    return MT_OK;
}

/* ---- the op ---------------------------------------------------------------------------------- */

int mt__run_convolution3d(mt__call *call)
{
    mt_tensor *input = call->args[0].of.tensor;
    mt_tensor *weight = call->args[1].of.tensor;
    mt_tensor *bias = mt__arg_tensor(call, 2);
    volume_plan p;
    mt_tensor *slices = NULL;
    mt_tensor *made = input;
    MT_TRY(mt__conv_types(input, weight, bias));
    if (is_half(input)) {
        return run_half(call);
    }
    MT_TRY(make_plan(call, input, weight, &call->args[3], &call->args[7], &p));
    MT_TRY(by_depth(call, input, &slices));
    if (p.transposed) {
        MT_TRY(send(&p, slices, weight, &p.more[1], &made));
    } else {
        mt_tensor **whole = mt__temp(call);
        MT_TRY(gather(&p, slices, weight, &made));
        MT_TRY(as_slices(&p, made, input->sizes[0], whole));
        made = *whole;
    }
    if (bias != NULL) {
        mt_tensor **spread = mt__temp(call);
        const int64_t sizes[3] = {bias->numel, 1, 1};
        if (bias->n_dims != 1 || bias->numel != made->sizes[2]) {
            return mtb_fail(MT_ERUNTIME,
                            "convolution(): expected a bias with %lld elements, but got %lld",
                            (long long)made->sizes[2], (long long)bias->numel);
        }
        MT_TRY(mt_reshape(bias, sizes, 3, spread));
        MT_TRY(mt_add_(made, *spread));
    }
    return give_volume(call, 0, made);
}

/* One depth of the weight's gradient. sides: what is small and what is large, as images. */
static int weight_depth(const volume_plan *p, mt_tensor *small, mt_tensor *large, mt_tensor *weight,
                        int64_t k, mt_tensor **out)
{
    mt_tensor *kernel = NULL;
    mt_tensor *slices = NULL;
    mt_tensor *images = NULL;
    mt_tensor *unused[2] = {NULL};
    static const int64_t mask[3] = {0, 1, 0};
    int status = mt_select(weight, 2, k, &kernel);
    if (status == MT_OK) {
        status = slices_of(p, large, k, &slices);
    }
    if (status == MT_OK) {
        status = as_images(slices, &images);
    }
    if (status == MT_OK) {
        status = mt_convolution_backward(small, images, kernel, &p->lists[STRIDE][1], 2,
                                         &p->lists[PADDING][1], 2, &p->lists[DILATION][1], 2,
                                         p->groups, mask, 3, &unused[0], out, &unused[1]);
    }
    mt_tensor_release(kernel);
    mt_tensor_release(slices);
    mt_tensor_release(images);
    return status;
}

static int weight_gradient(const volume_plan *p, mt_tensor *small, mt_tensor *large,
                           mt_tensor *weight)
{
    mt_tensor *whole = NULL;
    mt_tensor **images = mt__temp(p->call);
    mt_tensor **all = mt__temp(p->call);
    mt__shape shape = mt__tensor_shape(weight);
    MT_TRY(with_ends(p, large, reach(p), &whole));
    MT_TRY(as_images(small, images));
    MT_TRY(mt_empty_with(shape.sizes, 5, (mt_dtype)weight->dtype, p->call->device, all));
    for (int64_t k = 0; k < p->kernel; k++) {
        mt_tensor *part = NULL;
        mt_tensor *to = NULL;
        int status = weight_depth(p, *images, whole, weight, k, &part);
        if (status == MT_OK) {
            status = mt_select(*all, 2, k, &to);
        }
        if (status == MT_OK) {
            status = mt__copy_elements(to, part);
        }
        mt_tensor_release(part);
        mt_tensor_release(to);
        MT_TRY(status);
    }
    mt__result_same(p->call, 1, *all);
    return MT_OK;
}

/* What output_padding must be so that sides of `from` become `to`. */
static void missing_sides(const volume_plan *p, const mt_tensor *from, const mt_tensor *to,
                          const mt_tensor *weight, int64_t more[2])
{
    for (uint32_t i = 0; i < 2; i++) {
        int64_t kernel = p->lists[DILATION][i + 1] * (weight->sizes[3 + i] - 1) + 1;
        int64_t least = (from->sizes[3 + i] - 1) * p->lists[STRIDE][i + 1] -
                        2 * p->lists[PADDING][i + 1] + kernel;
        more[i] = to->sizes[3 + i] - least;
    }
}

static int input_gradient(const volume_plan *p, mt_tensor *grad, mt_tensor *input,
                          mt_tensor *weight)
{
    mt_tensor *made = grad;
    if (p->transposed) {
        mt_tensor **whole = mt__temp(p->call);
        MT_TRY(gather(p, grad, weight, &made));
        MT_TRY(as_slices(p, made, grad->sizes[0], whole));
        return give_volume(p->call, 0, *whole);
    }
    int64_t more[2];
    missing_sides(p, grad, input, weight, more);
    MT_TRY(send(p, grad, weight, more, &made));
    return give_volume(p->call, 0, made);
}

int mt__run_convolution3d_backward(mt__call *call)
{
    mt_tensor *weight = call->args[2].of.tensor;
    const int64_t *mask = call->args[7].of.ints;
    mt_tensor *grad = NULL;
    mt_tensor *input = NULL;
    volume_plan p;
    if (is_half(call->args[0].of.tensor)) {
        return run_half_backward(call);
    }
    MT_TRY(make_plan(call, call->args[1].of.tensor, weight, &call->args[3], &call->args[8], &p));
    if (call->args[0].of.tensor->n_dims != 5) {
        return mtb_fail(MT_ERUNTIME, "convolution_backward(): expected a 5-D grad_output, got %u-D",
                        (unsigned)call->args[0].of.tensor->n_dims);
    }
    MT_TRY(by_depth(call, call->args[0].of.tensor, &grad));
    MT_TRY(by_depth(call, call->args[1].of.tensor, &input));
    if (mask[0] != 0) {
        MT_TRY(input_gradient(&p, grad, input, weight));
    }
    if (mask[1] != 0) {
        MT_TRY(
            weight_gradient(&p, p.transposed ? input : grad, p.transposed ? grad : input, weight));
    }
    if (mask[2] != 0) {
        static const int64_t others[] = {0, 1, 3, 4};
        return mt_sum(grad, others, 4, false, mt__result_place(call, 2));
    }
    return MT_OK;
}
