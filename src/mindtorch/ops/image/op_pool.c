/* SPDX-License-Identifier: Apache-2.0
 *
 * Max and average pools with windows of a given size. Pools of signals are pools of images of
 * height 1.
 */
#include "mindtorch/ops/image/op_image.h"
#include "mindtorch/ops/type_names.h"

/* Windows over planes, checked. */
typedef struct pool_plan {
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    int64_t out[2];
    bool ceil_mode;
} pool_plan;

/* ---- checks ---------------------------------------------------------------------------------- */

/* lists: kernel_size, stride, padding and, if `dilated`, dilation. */
static int read_lists(const mt__call *call, const char *name, const mt_value *lists, bool dilated,
                      pool_plan *plan)
{
    if (!mt__image_pair(&lists[0], 2, 0, plan->kernel)) {
        return mtb_fail(MT_ERUNTIME,
                        "%s: kernel_size must either be a single int, or a tuple of two ints",
                        name);
    }
    if (lists[1].count == 0) {
        plan->stride[0] = plan->kernel[0];
        plan->stride[1] = plan->kernel[1];
    } else if (!mt__image_pair(&lists[1], 2, 0, plan->stride)) {
        return mtb_fail(MT_ERUNTIME,
                        "%s: stride must either be omitted, a single int, or a tuple of two ints",
                        name);
    }
    if (!mt__image_pair(&lists[2], 2, 0, plan->padding)) {
        return mtb_fail(MT_ERUNTIME,
                        "%s: padding must either be a single int, or a tuple of two ints", name);
    }
    plan->dilation[0] = 1;
    plan->dilation[1] = 1;
    if (dilated && !mt__image_pair(&lists[3], 2, 0, plan->dilation)) {
        return mtb_fail(MT_ERUNTIME,
                        "%s: dilation must be either a single int, or a tuple of two ints", name);
    }
    MT_TRY(mt__image_limit(call, plan->kernel, 2));
    MT_TRY(mt__image_limit(call, plan->stride, 2));
    MT_TRY(mt__image_limit(call, plan->padding, 2));
    return mt__image_limit(call, plan->dilation, 2);
}

static int check_numbers(const pool_plan *p)
{
    if (p->stride[0] == 0 || p->stride[1] == 0) {
        return mtb_fail(MT_ERUNTIME, "stride should not be zero");
    }
    if (p->kernel[0] <= 0 || p->kernel[1] <= 0) {
        return mtb_fail(MT_ERUNTIME,
                        "kernel size should be greater than zero, but got kH: %lld kW: %lld",
                        (long long)p->kernel[0], (long long)p->kernel[1]);
    }
    if (p->stride[0] < 0 || p->stride[1] < 0) {
        return mtb_fail(MT_ERUNTIME,
                        "stride should be greater than zero, but got dH: %lld dW: %lld",
                        (long long)p->stride[0], (long long)p->stride[1]);
    }
    if (p->dilation[0] <= 0 || p->dilation[1] <= 0) {
        return mtb_fail(
            MT_ERUNTIME,
            "dilation should be greater than zero, but got dilationH: %lld dilationW: %lld",
            (long long)p->dilation[0], (long long)p->dilation[1]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (p->padding[i] < 0) {
            return mtb_fail(MT_ERUNTIME, "pad must be non-negative, but got pad: %lld",
                            (long long)p->padding[i]);
        }
        if (p->padding[i] > ((p->kernel[i] - 1) * p->dilation[i] + 1) / 2) {
            return mtb_fail(MT_ERUNTIME,
                            "pad should be at most half of effective kernel size, but got "
                            "pad=%lld, kernel_size=%lld and dilation=%lld",
                            (long long)p->padding[i], (long long)p->kernel[i],
                            (long long)p->dilation[i]);
        }
    }
    return MT_OK;
}

static int64_t out_size(const pool_plan *p, uint32_t i, int64_t size)
{
    int64_t room = size + 2 * p->padding[i] - p->dilation[i] * (p->kernel[i] - 1) - 1;
    int64_t more = p->ceil_mode ? p->stride[i] - 1 : 0;
    int64_t steps = room + more;
    int64_t out =
        steps < 0 ? -((-steps + p->stride[i] - 1) / p->stride[i]) + 1 : steps / p->stride[i] + 1;
    /* A window that would begin in the padding at the end is left out. */
    if (p->ceil_mode && (out - 1) * p->stride[i] >= size + p->padding[i]) {
        out--;
    }
    return out;
}

static int check_input(const mt_tensor *self)
{
    char text[MT_SHAPE_TEXT];
    uint32_t n = self->n_dims;
    if (n != 3 && n != 4) {
        return mtb_fail(MT_ERUNTIME, "non-empty 3D or 4D (batch mode) tensor expected for input");
    }
    if (self->sizes[n - 1] == 0 || self->sizes[n - 2] == 0 || self->sizes[n - 3] == 0) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for "
                        "input, but got:%s",
                        mt__shape_text(self->sizes, n, text));
    }
    return MT_OK;
}

static int size_planes(const mt_tensor *self, pool_plan *p)
{
    MT_TRY(check_numbers(p));
    MT_TRY(check_input(self));
    uint32_t n = self->n_dims;
    p->out[0] = out_size(p, 0, self->sizes[n - 2]);
    p->out[1] = out_size(p, 1, self->sizes[n - 1]);
    if (p->out[0] < 1 || p->out[1] < 1) {
        long long planes = (long long)self->sizes[n - 3];
        return mtb_fail(MT_ERUNTIME,
                        "Given input size: (%lldx%lldx%lld). Calculated output size: "
                        "(%lldx%lldx%lld). Output size is too small",
                        planes, (long long)self->sizes[n - 2], (long long)self->sizes[n - 1],
                        planes, (long long)(p->out[0] < 0 ? 0 : p->out[0]),
                        (long long)(p->out[1] < 0 ? 0 : p->out[1]));
    }
    return MT_OK;
}

/* ---- max ------------------------------------------------------------------------------------- */

int mt__run_max_pool2d_with_indices(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    pool_plan plan = {.ceil_mode = mt__arg_bool(call, 5)};
    MT_TRY(read_lists(call, "max_pool2d", &call->args[1], true, &plan));
    MT_TRY(size_planes(self, &plan));
    mt_dtype dtype = (mt_dtype)self->dtype;
    if (dtype == MT_DTYPE_BOOL) {
        return mt__refuse_type("max_pool2d", dtype);
    }
    mt__shape shape = mt__pooled_shape(self, plan.out);
    mt__kernel_args args = {
        .kernel = MT_KERNEL_MAX_POOL,
        .n_tensors = 3,
        MT_INTS(plan.kernel[0], plan.kernel[1], plan.stride[0], plan.stride[1], plan.padding[0],
                plan.padding[1], plan.dilation[0], plan.dilation[1]),
    };
    MT_TRY(mt__result_new(call, 0, dtype, &shape, &args.tensors[0]));
    MT_TRY(mt__result_new(call, 1, MT_DTYPE_I64, &shape, &args.tensors[1]));
    MT_TRY(mt__contiguous(call, self, &args.tensors[2]));
    MT_TRY(args.tensors[0]->numel == 0 ? MT_OK : mt__kernel(call, &args));
    MT_TRY(mt__keep_channels_last(call, 1, self));
    return mt__keep_channels_last(call, 0, self);
}

/* Whether grad has self's sizes but for the planes. */
static int check_planes(const mt__call *call, const mt_tensor *grad, const mt_tensor *self)
{
    uint32_t n = self->n_dims;
    bool fits = (n == 3 || n == 4) && grad->n_dims == n && grad->dtype == self->dtype;
    for (uint32_t i = 0; fits && i + 2 < n; i++) {
        fits = grad->sizes[i] == self->sizes[i];
    }
    if (fits) {
        return MT_OK;
    }
    char text[2][MT_SHAPE_TEXT];
    return mtb_fail(MT_ERUNTIME, "%s(): grad_output %s does not belong to an input of size %s",
                    mt__op_name(call), mt__shape_text(grad->sizes, grad->n_dims, text[0]),
                    mt__shape_text(self->sizes, n, text[1]));
}

int mt__run_max_pool2d_with_indices_backward(mt__call *call)
{
    mt_tensor *grad = call->args[0].of.tensor;
    mt_tensor *self = call->args[1].of.tensor;
    mt_tensor *indices = call->args[7].of.tensor; /* they already imply the window */
    MT_TRY(check_planes(call, grad, self));
    MT_TRY(mt__need_pooled_type(self, "max_pool2d_backward"));
    mt__shape of_grad = mt__tensor_shape(grad);
    mt__shape of_indices = mt__tensor_shape(indices);
    if (indices->dtype != MT_DTYPE_I64 || !mt__shape_equal(&of_grad, &of_indices)) {
        return mtb_fail(MT_ERUNTIME, "%s(): indices must be int64 and of grad_output's size",
                        mt__op_name(call));
    }
    mt__shape shape = mt__tensor_shape(self);
    mt__kernel_args args = {.kernel = MT_KERNEL_MAX_POOL_BACKWARD, .n_tensors = 3};
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &args.tensors[0]));
    MT_TRY(mt__contiguous(call, grad, &args.tensors[1]));
    MT_TRY(mt__contiguous(call, indices, &args.tensors[2]));
    MT_TRY(args.tensors[0]->numel == 0 ? MT_OK : mt__kernel(call, &args));
    return mt__keep_channels_last(call, 0, self);
}

int mt__run_max_pool2d(mt__call *call)
{
    const mt_value *a = call->args;
    return mt_max_pool2d_with_indices(a[0].of.tensor, a[1].of.ints, a[1].count, a[2].of.ints,
                                      a[2].count, a[3].of.ints, a[3].count, a[4].of.ints,
                                      a[4].count, mt__arg_bool(call, 5), mt__result_place(call, 0),
                                      mt__temp(call));
}

/* ---- averages -------------------------------------------------------------------------------- */

/* lists: kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override */
static int average_plan(const mt__call *call, const mt_tensor *self, const mt_value *lists,
                        pool_plan *plan, int64_t ints[8])
{
    plan->ceil_mode = lists[3].of.integer != 0;
    MT_TRY(read_lists(call, "avg_pool2d", lists, false, plan));
    bool overridden = lists[5].kind == MT_KIND_INT;
    if (overridden && lists[5].of.integer == 0) {
        return mtb_fail(MT_ERUNTIME, "divisor must be not zero");
    }
    MT_TRY(size_planes(self, plan));
    for (uint32_t i = 0; i < 2; i++) {
        ints[i] = plan->kernel[i];
        ints[2 + i] = plan->stride[i];
        ints[4 + i] = plan->padding[i];
    }
    ints[6] = lists[4].of.integer;
    ints[7] = overridden ? lists[5].of.integer : 0;
    return MT_OK;
}

int mt__run_avg_pool2d(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    pool_plan plan = {.stride = {1, 1}};
    mt__kernel_args args = {.kernel = MT_KERNEL_AVG_POOL, .n_tensors = 2, .n_ints = 8};
    MT_TRY(average_plan(call, self, &call->args[1], &plan, args.ints));
    mt_dtype dtype = (mt_dtype)self->dtype;
    if (dtype != MT_DTYPE_I64) {
        MT_TRY(mt__need_pooled_type(self, "avg_pool2d"));
    }
    mt__shape shape = mt__pooled_shape(self, plan.out);
    MT_TRY(mt__result_new(call, 0, dtype, &shape, &args.tensors[0]));
    MT_TRY(mt__contiguous(call, self, &args.tensors[1]));
    MT_TRY(args.tensors[0]->numel == 0 ? MT_OK : mt__kernel(call, &args));
    return mt__keep_channels_last(call, 0, self);
}

int mt__run_avg_pool2d_backward(mt__call *call)
{
    mt_tensor *grad = call->args[0].of.tensor;
    mt_tensor *self = call->args[1].of.tensor;
    pool_plan plan = {.stride = {1, 1}};
    mt__kernel_args args = {.kernel = MT_KERNEL_AVG_POOL_BACKWARD, .n_tensors = 2, .n_ints = 8};
    MT_TRY(average_plan(call, self, &call->args[2], &plan, args.ints));
    MT_TRY(check_planes(call, grad, self));
    MT_TRY(mt__need_pooled_type(self, "avg_pool2d_backward_cpu"));
    uint32_t n = grad->n_dims;
    if (grad->sizes[n - 2] != plan.out[0] || grad->sizes[n - 1] != plan.out[1]) {
        return mtb_fail(MT_ERUNTIME,
                        "avg_pool2d_backward(): expected planes of %lld x %lld in grad_output, "
                        "but got %lld x %lld",
                        (long long)plan.out[0], (long long)plan.out[1],
                        (long long)grad->sizes[n - 2], (long long)grad->sizes[n - 1]);
    }
    mt__shape shape = mt__tensor_shape(self);
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &args.tensors[0]));
    MT_TRY(mt__contiguous(call, grad, &args.tensors[1]));
    MT_TRY(args.tensors[0]->numel == 0 ? MT_OK : mt__kernel(call, &args));
    return mt__keep_channels_last(call, 0, self);
}

/* ---- signals --------------------------------------------------------------------------------- */

/* The first number of a list, or `otherwise` where it is empty. */
static int64_t one_of(const mt_value *list, int64_t otherwise)
{
    return list->count == 0 ? otherwise : list->of.ints[0];
}

static int check_max1d(mt__call *call, const int64_t n[4])
{
    mt_tensor *self = call->args[0].of.tensor;
    char text[MT_SHAPE_TEXT];
    static const char *const names[4] = {"kernel_size", "stride", "padding", "dilation"};
    if (self->n_dims != 2 && self->n_dims != 3) {
        return mtb_fail(MT_ERUNTIME,
                        "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim "
                        "batch size for input, but got:%s",
                        mt__shape_text(self->sizes, self->n_dims, text));
    }
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t count = call->args[1 + i].count;
        if (count != 1 && !(i == 1 && count == 0)) {
            return mtb_fail(MT_ERUNTIME,
                            "max_pool1d() %s must be an int, list of ints or tuple of ints of "
                            "size 1 but got size %u",
                            names[i], count);
        }
        if (n[i] <= 0 && i != 2) {
            return mtb_fail(MT_ERUNTIME, "max_pool1d() %s must be greater than zero, but got %lld",
                            names[i], (long long)n[i]);
        }
    }
    if (n[2] < 0) {
        return mtb_fail(MT_ERUNTIME, "max_pool1d() padding must be non-negative, but got %lld",
                        (long long)n[2]);
    }
    if (n[2] > n[0] / 2) {
        return mtb_fail(MT_ERUNTIME,
                        "max_pool1d() padding should be at most half of kernel size, but got "
                        "padding=%lld and kernel_size=%lld",
                        (long long)n[2], (long long)n[0]);
    }
    MT_TRY(mt__image_limit(call, n, 4));
    pool_plan plan = {.ceil_mode = mt__arg_bool(call, 5)};
    plan.kernel[1] = n[0];
    plan.stride[1] = n[1];
    plan.padding[1] = n[2];
    plan.dilation[1] = n[3];
    int64_t out = out_size(&plan, 1, self->sizes[self->n_dims - 1]);
    if (out <= 0) {
        return mtb_fail(MT_ERUNTIME, "max_pool1d() Invalid computed output size: %lld",
                        (long long)out);
    }
    return mt__tensor_category(self) == MT_CATEGORY_REAL
               ? MT_OK
               : mt__refuse_type("max_pool1d_impl", (mt_dtype)self->dtype);
}

/* Gives `image` without its height of 1. */
static int give_signal(mt__call *call, mt_tensor *image)
{
    return mt_squeeze_dim(image, -2, mt__result_place(call, 0));
}

int mt__run_max_pool1d(mt__call *call)
{
    const mt_value *a = call->args;
    int64_t kernel = one_of(&a[1], 0);
    const int64_t n[4] = {kernel, one_of(&a[2], kernel), one_of(&a[3], 0), one_of(&a[4], 1)};
    MT_TRY(check_max1d(call, n));
    mt_tensor **image = mt__temp(call);
    mt_tensor **pooled = mt__temp(call);
    MT_TRY(mt_unsqueeze(a[0].of.tensor, -2, image));
    MT_TRY(mt_max_pool2d_with_indices(*image, (int64_t[]){1, n[0]}, 2, (int64_t[]){1, n[1]}, 2,
                                      (int64_t[]){0, n[2]}, 2, (int64_t[]){1, n[3]}, 2,
                                      mt__arg_bool(call, 5), pooled, mt__temp(call)));
    return give_signal(call, *pooled);
}

static int check_signal(const mt__call *call)
{
    const mt_tensor *self = call->args[0].of.tensor;
    if (self->n_dims == 2 || self->n_dims == 3) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME,
                    "Expected 2 to 3 dimensions, but got %u-dimensional tensor for argument #1 "
                    "'self' (while checking arguments for %s)",
                    (unsigned)self->n_dims, mt__op_name(call));
}

int mt__run_avg_pool1d(mt__call *call)
{
    const mt_value *a = call->args;
    static const char *const names[3] = {"kernel_size", "stride", "padding"};
    MT_TRY(check_signal(call));
    for (uint32_t i = 0; i < 3; i++) {
        if (a[1 + i].count != 1 && !(i == 1 && a[2].count == 0)) {
            return mtb_fail(MT_ERUNTIME,
                            "avg_pool1d() argument '%s' should contain one int (got %u)", names[i],
                            a[1 + i].count);
        }
    }
    int64_t kernel = one_of(&a[1], 0);
    mt_tensor **image = mt__temp(call);
    mt_tensor **pooled = mt__temp(call);
    MT_TRY(mt_unsqueeze(a[0].of.tensor, -2, image));
    MT_TRY(mt_avg_pool2d(*image, (int64_t[]){1, kernel}, 2, (int64_t[]){1, one_of(&a[2], kernel)},
                         2, (int64_t[]){0, one_of(&a[3], 0)}, 2, mt__arg_bool(call, 4),
                         mt__arg_bool(call, 5), NULL, pooled));
    return give_signal(call, *pooled);
}

int mt__run_adaptive_avg_pool1d(mt__call *call)
{
    const mt_value *a = call->args;
    MT_TRY(check_signal(call));
    if (a[1].count != 1) {
        return mtb_fail(
            MT_ERUNTIME,
            "adaptive_avg_pool1d() argument 'output_size' should contain one int (got %u)",
            a[1].count);
    }
    mt_tensor **image = mt__temp(call);
    mt_tensor **pooled = mt__temp(call);
    MT_TRY(mt_unsqueeze(a[0].of.tensor, -2, image));
    MT_TRY(mt_adaptive_avg_pool2d(*image, (int64_t[]){1, a[1].of.ints[0]}, 2, pooled));
    return give_signal(call, *pooled);
}
