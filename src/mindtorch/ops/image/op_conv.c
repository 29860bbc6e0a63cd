/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions: conv1d to conv3d and their transposes add the batch dimension, convolution checks
 * and computes. Signals [N, C, L] are images of height 1. A transposed convolution is the
 * derivative of a convolution by its input: what is small there is the input here.
 */
#include "mindtorch/core/tensor/memory_format.h"
#include "mindtorch/ops/image/op_image.h"
#include "mindtorch/ops/type_names.h"

enum {
    STRIDE,
    PADDING,
    DILATION,
    N_LISTS
};

static const char *const list_names[N_LISTS] = {"stride", "padding", "dilation"};

/* A convolution with checked arguments. */
typedef struct conv_plan {
    uint32_t n_dims; /* 3 or 4 */
    int64_t pairs[N_LISTS][2];
    int64_t groups;
    int64_t out[4]; /* sizes with a height */
    bool transposed;
    int64_t made;    /* channels of the output */
    int64_t more[2]; /* output_padding */
} conv_plan;

/* Tensors with a height of 1 where they have none. */
typedef struct image_view {
    int64_t sizes[4];
    int64_t strides[4];
    mt_array array;
} image_view;

static void view_image(mt_tensor *tensor, image_view *view)
{
    if (tensor == NULL) {
        view->array = mt__no_array();
        return;
    }
    view->array = mt__array(tensor);
    if (tensor->n_dims != 3) {
        return;
    }
    view->sizes[0] = tensor->sizes[0];
    view->sizes[1] = tensor->sizes[1];
    view->sizes[2] = 1;
    view->sizes[3] = tensor->sizes[2];
    view->array.sizes = view->sizes;
    mt__shape_strides(view->sizes, 4, view->strides); /* it is contiguous */
    view->array.strides = view->strides;
    view->array.n_dims = 4;
}

static int launch_conv(mt__call *call, mt_kernel kernel, const conv_plan *plan,
                       mt_tensor *const *tensors, uint32_t n_tensors)
{
    image_view views[4];
    mt_array arrays[4];
    for (uint32_t i = 0; i < n_tensors; i++) {
        view_image(tensors[i], &views[i]);
        arrays[i] = views[i].array;
    }
    const int64_t ints[7] = {
        plan->pairs[STRIDE][0],
        plan->pairs[STRIDE][1],
        plan->pairs[PADDING][0],
        plan->pairs[PADDING][1],
        plan->pairs[DILATION][0],
        plan->pairs[DILATION][1],
        plan->groups,
    };
    mt_kernel_call launched = {
        .kernel = (uint16_t)kernel,
        .n_tensors = n_tensors,
        .n_ints = 7,
        .tensors = arrays,
        .ints = ints,
    };
    MT_TRY(mt__check_unsigned(call, kernel, 0, (mt_dtype)arrays[0].dtype));
    return mt__launch(call->device, &launched);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_lists(const mt__call *call, const mt_value *lists, conv_plan *plan)
{
    uint32_t wanted = plan->n_dims - 2;
    char text[MT_SHAPE_TEXT];
    static const int64_t heights[N_LISTS] = {1, 0, 1};
    for (uint32_t i = 0; i < N_LISTS; i++) {
        if (!mt__image_pair(&lists[i], wanted, heights[i], plan->pairs[i])) {
            return mtb_fail(MT_ERUNTIME,
                            "expected %s to be a single integer value or a list of %u values to "
                            "match the convolution dimensions, but got %s=%s",
                            list_names[i], wanted, list_names[i],
                            mt__shape_text(lists[i].of.ints, lists[i].count, text));
        }
        MT_TRY(mt__image_limit(call, plan->pairs[i], 2));
    }
    if (plan->pairs[PADDING][0] < 0 || plan->pairs[PADDING][1] < 0) {
        return mtb_fail(MT_ERUNTIME, "negative padding is not supported");
    }
    if (plan->pairs[STRIDE][0] <= 0 || plan->pairs[STRIDE][1] <= 0) {
        return mtb_fail(MT_ERUNTIME, "non-positive stride is not supported");
    }
    if (plan->pairs[DILATION][0] <= 0 || plan->pairs[DILATION][1] <= 0) {
        return mtb_fail(MT_ERUNTIME, "dilation should be greater than zero, but got %s",
                        mt__shape_text(lists[DILATION].of.ints, lists[DILATION].count, text));
    }
    if (plan->groups <= 0) {
        return mtb_fail(MT_ERUNTIME, "non-positive groups is not supported");
    }
    return MT_OK;
}

static int check_channels(const conv_plan *plan, mt_tensor *input, mt_tensor *weight,
                          mt_tensor *bias)
{
    char text[MT_SHAPE_TEXT];
    char other[MT_SHAPE_TEXT];
    const char *shape = mt__shape_text(weight->sizes, weight->n_dims, text);
    long long groups = (long long)plan->groups;
    int64_t made = plan->transposed ? weight->sizes[1] * plan->groups : weight->sizes[0];
    int64_t read = plan->transposed ? weight->sizes[0] : weight->sizes[1] * plan->groups;
    if (weight->sizes[0] < plan->groups) {
        return mtb_fail(MT_ERUNTIME,
                        "Given groups=%lld, expected weight to be at least %lld at dimension 0, "
                        "but got weight of size %s instead",
                        groups, groups, shape);
    }
    if (weight->sizes[0] % plan->groups != 0) {
        return mtb_fail(MT_ERUNTIME,
                        "Given groups=%lld, expected weight to be divisible by %lld at dimension "
                        "0, but got weight of size [%s] instead",
                        groups, groups, shape);
    }
    if (input->sizes[1] != read) {
        return mtb_fail(MT_ERUNTIME,
                        "Given %s=%lld, weight of size %s, expected input%s to have %lld "
                        "channels, but got %lld channels instead",
                        plan->transposed ? "transposed=1, groups" : "groups", groups, shape,
                        mt__shape_text(input->sizes, input->n_dims, other), (long long)read,
                        (long long)input->sizes[1]);
    }
    if (bias != NULL && (bias->n_dims != 1 || bias->sizes[0] != made)) {
        return mtb_fail(MT_ERUNTIME,
                        "Given %sweight of size %s, expected bias to be 1-dimensional with %lld "
                        "elements, but got bias of size %s instead",
                        plan->transposed ? "transposed=1, " : "", shape, (long long)made,
                        mt__shape_text(bias->sizes, bias->n_dims, other));
    }
    return MT_OK;
}

int mt__conv_types(const mt_tensor *input, const mt_tensor *weight, const mt_tensor *bias)
{
    mt_dtype dtype = (mt_dtype)input->dtype;
    if (weight->dtype != dtype) {
        return mtb_fail(MT_ERUNTIME, "expected scalar type %s but found %s", mt__type_title(dtype),
                        mt__type_title((mt_dtype)weight->dtype));
    }
    if (bias != NULL && bias->dtype != dtype) {
        return mtb_fail(MT_ERUNTIME, "Input type (%s) and bias type (%s) should be the same",
                        mt__type_in_c(dtype), mt__type_in_c((mt_dtype)bias->dtype));
    }
    return dtype == MT_DTYPE_BOOL ? mt__refuse_type("slow_conv2d_cpu", dtype) : MT_OK;
}

/* "(2 x 2)", or "(2)" for signals. */
static const char *sides_text(const conv_plan *plan, const int64_t sides[2], char text[48])
{
    text[0] = '\0';
    char numbers[MT_SHAPE_TEXT];
    const char *from = mt__shape_text(sides + (plan->n_dims == 3), plan->n_dims - 2U, numbers);
    size_t n = 0;
    for (; *from != '\0' && n + 4 < 48; from++) {
        if (*from == ',') {
            text[n++] = ' ';
            text[n++] = 'x';
        } else {
            text[n++] = (char)(*from == '[' ? '(' : *from == ']' ? ')' : *from);
        }
    }
    text[n] = '\0';
    return text;
}

/* The size whose convolution has the input's; output_padding chooses one of several. */
static int size_transposed(const mt_tensor *input, const int64_t kernel[2], conv_plan *plan)
{
    plan->out[1] = plan->made;
    for (uint32_t i = 0; i < 2; i++) {
        bool missing = plan->n_dims == 3 && i == 0;
        int64_t side = missing ? 1 : input->sizes[plan->n_dims - 2 + i];
        int64_t more = plan->more[i];
        if (more < 0 ||
            (more > 0 && more >= plan->pairs[STRIDE][i] && more >= plan->pairs[DILATION][i])) {
            return mtb_fail(MT_ERUNTIME,
                            "output padding must be smaller than either stride or dilation, but "
                            "got output_padding: %lld, stride: %lld, dilation: %lld",
                            (long long)more, (long long)plan->pairs[STRIDE][i],
                            (long long)plan->pairs[DILATION][i]);
        }
        plan->out[2 + i] =
            (side - 1) * plan->pairs[STRIDE][i] - 2 * plan->pairs[PADDING][i] + kernel[i] + more;
        if (plan->out[2 + i] <= 0 || side == 0) {
            return mtb_fail(MT_ERUNTIME,
                            "Given input size per channel: %lld. Calculated output size per "
                            "channel: %lld. Output size is too small",
                            (long long)side, (long long)plan->out[2 + i]);
        }
    }
    return MT_OK;
}

static int size_output(mt_tensor *input, mt_tensor *weight, conv_plan *plan)
{
    int64_t padded[2];
    int64_t kernel[2];
    char text[2][48];
    plan->out[0] = input->sizes[0];
    plan->out[1] = weight->sizes[0];
    for (uint32_t i = 0; i < 2; i++) {
        bool missing = plan->n_dims == 3 && i == 0;
        uint32_t dim = plan->n_dims - 2 + i;
        int64_t side = missing ? 1 : input->sizes[dim];
        int64_t k = missing ? 1 : weight->sizes[dim];
        padded[i] = side + 2 * plan->pairs[PADDING][i];
        if (k > INT32_MAX) {
            return mtb_fail(MT_ERUNTIME, "convolution(): a kernel of %lld is out of range",
                            (long long)k);
        }
        kernel[i] = plan->pairs[DILATION][i] * (k - 1) + 1;
        if (k <= 0) {
            return mtb_fail(MT_ERUNTIME,
                            "kernel size should be greater than zero, but got kernel_height: %lld "
                            "kernel_width: %lld",
                            (long long)(plan->n_dims == 3 ? 1 : weight->sizes[2]),
                            (long long)weight->sizes[plan->n_dims - 1]);
        }
    }
    if (plan->transposed) {
        return size_transposed(input, kernel, plan);
    }
    if (padded[0] < kernel[0] || padded[1] < kernel[1]) {
        return mtb_fail(MT_ERUNTIME,
                        "Calculated padded input size per channel: %s. Kernel size: %s. Kernel "
                        "size can't be greater than actual input size",
                        sides_text(plan, padded, text[0]), sides_text(plan, kernel, text[1]));
    }
    for (uint32_t i = 0; i < 2; i++) {
        plan->out[2 + i] = (padded[i] - kernel[i]) / plan->pairs[STRIDE][i] + 1;
    }
    return MT_OK;
}

/* lists: stride, padding, dilation, and then groups; how: transposed, output_padding. */
static int make_plan(const mt__call *call, mt_tensor *const tensors[3], const mt_value *lists,
                     const mt_value *how, conv_plan *plan)
{
    mt_tensor *input = tensors[0];
    mt_tensor *weight = tensors[1];
    char text[2][MT_SHAPE_TEXT];
    plan->n_dims = weight->n_dims;
    plan->groups = lists[N_LISTS].of.integer;
    if (weight->n_dims != 3 && weight->n_dims != 4) {
        return mtb_fail(MT_ERUNTIME, "convolution(): expected a 3D or 4D weight, but got %s",
                        mt__shape_text(weight->sizes, weight->n_dims, text[0]));
    }
    MT_TRY(check_lists(call, lists, plan));
    plan->transposed = how[0].of.integer != 0;
    if (how[1].count != 0 && !mt__image_pair(&how[1], plan->n_dims - 2, 0, plan->more)) {
        return mtb_fail(MT_ERUNTIME, "convolution(): output_padding has %u values, not %u",
                        how[1].count, plan->n_dims - 2U);
    }
    if (input->n_dims != weight->n_dims) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected %u-dimensional input for %u-dimensional weight %s, but got "
                        "%u-dimensional input of size %s instead",
                        (unsigned)weight->n_dims, (unsigned)weight->n_dims,
                        mt__shape_text(weight->sizes, weight->n_dims, text[0]),
                        (unsigned)input->n_dims,
                        mt__shape_text(input->sizes, input->n_dims, text[1]));
    }
    MT_TRY(check_channels(plan, input, weight, tensors[2]));
    plan->made = plan->transposed ? weight->sizes[1] * plan->groups : weight->sizes[0];
    MT_TRY(size_output(input, weight, plan));
    return mt__conv_types(input, weight, tensors[2]);
}

/* The sizes of the output as a tensor's. */
static mt__shape out_shape(const conv_plan *plan)
{
    mt__shape shape = {.n_dims = plan->n_dims, .sizes = {plan->out[0], plan->out[1]}};
    shape.sizes[2] = plan->n_dims == 3 ? plan->out[3] : plan->out[2];
    shape.sizes[3] = plan->out[3];
    return shape;
}

/* ---- ops ------------------------------------------------------------------------------------- */

static int convolve(mt__call *call)
{
    mt_tensor *tensors[3] = {call->args[0].of.tensor, call->args[1].of.tensor,
                             mt__arg_tensor(call, 2)};
    conv_plan plan = {.pairs[STRIDE] = {1, 1}};
    if (tensors[1]->n_dims == 5) {
        return mt__run_convolution3d(call);
    }
    MT_TRY(make_plan(call, tensors, &call->args[3], &call->args[7], &plan));
    if (plan.transposed && mt__tensor_category(tensors[0]) != MT_CATEGORY_REAL) {
        return mt__refuse_type("slow_conv_transpose2d_out_cpu", (mt_dtype)tensors[0]->dtype);
    }
    mt_tensor *launched[4] = {NULL};
    mt__shape shape = out_shape(&plan);
    MT_TRY(mt__result_new(call, 0, (mt_dtype)tensors[0]->dtype, &shape, &launched[0]));
    for (uint32_t i = 0; i < 3; i++) {
        if (tensors[i] != NULL) {
            MT_TRY(mt__contiguous(call, tensors[i], &launched[i + 1]));
        }
    }
    if (!plan.transposed) {
        return launch_conv(call, MT_KERNEL_CONV, &plan, launched, 4);
    }
    MT_TRY(launch_conv(call, MT_KERNEL_CONV_BACKWARD_INPUT, &plan, launched, 3));
    if (tensors[2] != NULL) {
        mt_tensor **spread = mt__temp(call);
        const int64_t by_channel[4] = {1, plan.made, 1, 1};
        MT_TRY(mt_view(launched[3], by_channel, plan.n_dims, spread));
        MT_TRY(mt_add_(launched[0], *spread));
    }
    return MT_OK;
}

/* Channels last where the input or the weight is. */
int mt__run_convolution(mt__call *call)
{
    const mt_tensor *weight = call->args[1].of.tensor;
    MT_TRY(convolve(call));
    return mt__keep_channels_last(call, 0,
                                  mt__is_channels_last(weight) ? weight : call->args[0].of.tensor);
}

static int check_gradient(const conv_plan *plan, mt_tensor *grad, mt_tensor *input)
{
    char text[2][MT_SHAPE_TEXT];
    mt__shape wanted = out_shape(plan);
    mt__shape have = mt__tensor_shape(grad);
    if (!mt__shape_equal(&wanted, &have)) {
        return mtb_fail(MT_ERUNTIME,
                        "convolution_backward(): expected grad_output of size %s, but got %s",
                        mt__shape_text(wanted.sizes, wanted.n_dims, text[0]),
                        mt__shape_text(have.sizes, have.n_dims, text[1]));
    }
    if (grad->dtype != input->dtype) {
        return mtb_fail(MT_ERUNTIME, "expected scalar type %s but found %s",
                        mt__type_title((mt_dtype)input->dtype),
                        mt__type_title((mt_dtype)grad->dtype));
    }
    if (mt__tensor_category(input) != MT_CATEGORY_REAL) {
        return mt__refuse_type("slow_conv2d_cpu_grad_input", (mt_dtype)input->dtype);
    }
    return MT_OK;
}

/* The same two products with other roles: the input is the small side. tensors: gradient, input,
 * weight, contiguous. */
static int transposed_gradients(mt__call *call, const conv_plan *plan, mt_tensor *const *tensors)
{
    const int64_t *mask = call->args[7].of.ints;
    mt_dtype dtype = (mt_dtype)tensors[0]->dtype;
    if (mask[0] != 0) {
        mt__shape shape = mt__tensor_shape(tensors[1]);
        mt_tensor *launched[4] = {NULL, tensors[0], tensors[2], NULL};
        MT_TRY(mt__result_new(call, 0, dtype, &shape, &launched[0]));
        MT_TRY(launch_conv(call, MT_KERNEL_CONV, plan, launched, 4));
    }
    if (mask[1] != 0) {
        mt__shape shape = mt__tensor_shape(tensors[2]);
        mt_tensor *launched[4] = {NULL, NULL, tensors[1], tensors[0]};
        MT_TRY(mt__result_new(call, 1, dtype, &shape, &launched[0]));
        MT_TRY(launch_conv(call, MT_KERNEL_CONV_BACKWARD_WEIGHT, plan, launched, 4));
    }
    if (mask[2] != 0) {
        static const int64_t others[] = {0, 2, 3};
        return mt_sum(tensors[0], others, tensors[0]->n_dims - 1U, false,
                      mt__result_place(call, 2));
    }
    return MT_OK;
}

static int convolve_back(mt__call *call)
{
    mt_tensor *grad = call->args[0].of.tensor;
    mt_tensor *tensors[3] = {call->args[1].of.tensor, call->args[2].of.tensor, NULL};
    const mt_value *mask = &call->args[7];
    conv_plan plan = {.pairs[STRIDE] = {1, 1}};
    if (mask->count != 3) {
        return mtb_fail(MT_ERUNTIME, "convolution_backward(): output_mask has %u entries, not 3",
                        mask->count);
    }
    if (tensors[1]->n_dims == 5) {
        return mt__run_convolution3d_backward(call);
    }
    MT_TRY(make_plan(call, tensors, &call->args[3], &call->args[8], &plan));
    MT_TRY(check_gradient(&plan, grad, tensors[0]));
    mt_dtype dtype = (mt_dtype)grad->dtype;
    mt_tensor *in;
    mt_tensor *weight;
    MT_TRY(mt__contiguous(call, grad, &grad));
    MT_TRY(mt__contiguous(call, tensors[0], &in));
    MT_TRY(mt__contiguous(call, tensors[1], &weight));
    if (plan.transposed) {
        return transposed_gradients(call, &plan, (mt_tensor *const[]){grad, in, weight});
    }
    if (mask->of.ints[0] != 0) {
        mt__shape shape = mt__tensor_shape(in);
        mt_tensor *launched[3] = {NULL, grad, weight};
        MT_TRY(mt__result_new(call, 0, dtype, &shape, &launched[0]));
        MT_TRY(launch_conv(call, MT_KERNEL_CONV_BACKWARD_INPUT, &plan, launched, 3));
    }
    if (mask->of.ints[1] == 0 && mask->of.ints[2] == 0) {
        return MT_OK;
    }
    mt_tensor *launched[4] = {NULL, NULL, grad, in};
    if (mask->of.ints[1] != 0) {
        mt__shape shape = mt__tensor_shape(weight);
        MT_TRY(mt__result_new(call, 1, dtype, &shape, &launched[0]));
    }
    if (mask->of.ints[2] != 0) {
        mt__shape shape = {.n_dims = 1, .sizes = {plan.out[1]}};
        MT_TRY(mt__result_new(call, 2, dtype, &shape, &launched[1]));
    }
    return launch_conv(call, MT_KERNEL_CONV_BACKWARD_WEIGHT, &plan, launched, 4);
}

int mt__run_convolution_backward(mt__call *call)
{
    const mt_tensor *input = call->args[1].of.tensor;
    const mt_tensor *weight = call->args[2].of.tensor;
    MT_TRY(convolve_back(call));
    const mt_tensor *like = mt__is_channels_last(weight) ? weight : input;
    MT_TRY(mt__keep_channels_last(call, 0, like));
    return mt__keep_channels_last(call, 1, like);
}

/* `dims` of the image. */
static int run_any(mt__call *call, uint32_t dims, bool transposed)
{
    mt_tensor *input = call->args[0].of.tensor;
    const mt_value *a = call->args;
    const mt_value *groups = &a[6];
    const mt_value *dilation = transposed ? &a[7] : &a[5];
    static const int64_t none[3] = {0};
    char text[MT_SHAPE_TEXT];
    if (input->n_dims != dims + 1 && input->n_dims != dims + 2) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected %uD (unbatched) or %uD (batched) input to %s, but got input of "
                        "size: %s",
                        dims + 1, dims + 2, mt__op_name(call),
                        mt__shape_text(input->sizes, input->n_dims, text));
    }
    bool batched = input->n_dims == dims + 2;
    if (!batched) {
        mt_tensor **place = mt__temp(call);
        MT_TRY(mt_unsqueeze(input, 0, place));
        input = *place;
    }
    mt_tensor *out = NULL;
    MT_TRY(mt_convolution_with(
        input, mt__arg_tensor(call, 1), mt__arg_tensor(call, 2), a[3].of.ints, a[3].count,
        a[4].of.ints, a[4].count, dilation->of.ints, dilation->count, groups->of.integer,
        transposed, transposed ? a[5].of.ints : none, transposed ? a[5].count : dims, &out));
    if (!batched) {
        *mt__temp(call) = out;
        mt_tensor *image = NULL;
        MT_TRY(mt_squeeze_dim(out, 0, &image));
        out = image;
    }
    mt__give(call, 0, out);
    return MT_OK;
}

MT_RUN(conv1d, run_any, 1, false)
MT_RUN(conv2d, run_any, 2, false)
MT_RUN(conv3d, run_any, 3, false)
MT_RUN(conv_transpose1d, run_any, 1, true)
MT_RUN(conv_transpose2d, run_any, 2, true)
MT_RUN(conv_transpose3d, run_any, 3, true)
