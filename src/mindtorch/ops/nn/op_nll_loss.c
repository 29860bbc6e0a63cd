/* SPDX-License-Identifier: Apache-2.0
 *
 * Negative log likelihood of class indices. Kernels get log probabilities [N, C] and targets [N];
 * inputs with more dimensions ([N, C, d1...]) are permuted so that the classes come last.
 */
#include "mindtorch/ops/nn/op_nn_support.h"
#include "mindtorch/ops/type_names.h"

/* Positions in nll_loss_forward and one further in the derivative. */
enum {
    SELF,
    TARGET,
    WEIGHT,
    REDUCTION,
    IGNORE_INDEX
};

static int check_target(const mt_tensor *self, const mt_tensor *target)
{
    if (self->n_dims != 1 && self->n_dims != 2) {
        return mtb_fail(MT_ERUNTIME, "input tensor should be 1D or 2D");
    }
    if (target->n_dims > 1) {
        return mtb_fail(MT_ERUNTIME, "0D or 1D target tensor expected, multi-target not supported");
    }
    if (target->dtype != MT_DTYPE_I64 && target->dtype != MT_DTYPE_U8) {
        return mtb_fail(MT_ERUNTIME, "expected target dtype to be Long or Byte, but got %s",
                        mt__type_title((mt_dtype)target->dtype));
    }
    if (self->n_dims == 1 && target->numel != 1) {
        return mtb_fail(MT_EVALUE,
                        "For 1D input, 1D target must have size 1, but got target size: %lld",
                        (long long)target->numel);
    }
    if (self->n_dims == 2 && self->sizes[0] != target->numel) {
        char a[MT_SHAPE_TEXT];
        char b[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "size mismatch (got input: %s, target: %s)",
                        mt__shape_text(self->sizes, self->n_dims, a),
                        mt__shape_text(target->sizes, target->n_dims, b));
    }
    return MT_OK;
}

/* `first` is self's position. */
static int check_arguments(const mt__call *call, uint32_t first)
{
    const mt_tensor *self = mt__arg_tensor(call, first + SELF);
    const mt_tensor *weight = mt__arg_tensor(call, first + WEIGHT);
    MT_TRY(mt__need_reduction(mt__arg_int(call, first + REDUCTION)));
    MT_TRY(check_target(self, mt__arg_tensor(call, first + TARGET)));
    MT_TRY(mt__need_real(call, (mt_dtype)self->dtype));
    if (weight == NULL) {
        return MT_OK;
    }
    int64_t classes = self->sizes[self->n_dims - 1];
    if (weight->n_dims != 1 || weight->numel != classes) {
        char text[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "weight tensor should be defined either for all %lld classes or no classes "
                        "but got weight tensor of shape: %s",
                        (long long)classes, mt__shape_text(weight->sizes, weight->n_dims, text));
    }
    return mt__need_type(weight, (mt_dtype)self->dtype);
}

/* The same elements with a leading dimension of 1; 2-d tensors are returned unchanged. */
static int as_batch(mt__call *call, mt_tensor *tensor, mt_tensor **out)
{
    *out = tensor;
    if (tensor->n_dims != 1) {
        return MT_OK;
    }
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt__tensor_view(tensor, (const int64_t[]){1, tensor->sizes[0]},
                           (const int64_t[]){tensor->sizes[0], tensor->strides[0]}, 2,
                           tensor->offset, false, place));
    *out = *place;
    return MT_OK;
}

/* One int64 for each row. */
static int as_targets(mt__call *call, mt_tensor *target, mt_tensor **out)
{
    mt_tensor *wide = NULL;
    mt_tensor *dense = NULL;
    MT_TRY(mt__converted(call, target, MT_DTYPE_I64, &wide));
    MT_TRY(mt__contiguous(call, wide, &dense));
    *out = dense;
    return dense->n_dims == 1 ? MT_OK : mt__nn_view(call, dense, &dense->numel, 1, out);
}

/* The loss of a single row is a number: its own sum. */
static int64_t kernel_reduction(const mt_tensor *self, int64_t reduction)
{
    return reduction == MT_REDUCTION_NONE && self->n_dims == 1 ? MT_REDUCTION_SUM : reduction;
}

int mt__run_nll_loss_forward(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, SELF);
    MT_TRY(check_arguments(call, SELF));
    MT_TRY(mt__need_constant(call, WEIGHT));
    int64_t reduction = kernel_reduction(self, mt__arg_int(call, REDUCTION));
    mt__shape shape = {.n_dims = 0};
    mt__shape single = {.n_dims = 0};
    if (reduction == MT_REDUCTION_NONE) {
        shape = (mt__shape){.n_dims = 1, .sizes = {self->sizes[0]}};
    }
    mt__kernel_args args = {
        .kernel = MT_KERNEL_NLL_LOSS,
        .n_tensors = 5,
        MT_INTS(reduction, mt__arg_int(call, IGNORE_INDEX)),
    };
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &args.tensors[0]));
    MT_TRY(mt__result_new(call, 1, (mt_dtype)self->dtype, &single, &args.tensors[1]));
    MT_TRY(as_batch(call, self, &args.tensors[2]));
    MT_TRY(as_targets(call, mt__arg_tensor(call, TARGET), &args.tensors[3]));
    args.tensors[4] = mt__arg_tensor(call, WEIGHT);
    return mt__kernel(call, &args);
}

/* One gradient for each row without reduction, else a single one. */
static int check_gradient(const mt_tensor *grad, const mt_tensor *self, int64_t reduction)
{
    MT_TRY(mt__need_type(grad, (mt_dtype)self->dtype));
    if (reduction == MT_REDUCTION_NONE) {
        if (grad->n_dims == 1 && grad->sizes[0] == self->sizes[0]) {
            return MT_OK;
        }
        return mtb_fail(MT_ERUNTIME,
                        "Expected a tensor of dimension 1 and tensor.size[0] == %lld but got: "
                        "dimension %u and tensor.size[0] = %lld",
                        (long long)self->sizes[0], (unsigned)grad->n_dims,
                        grad->n_dims == 0 ? 1LL : (long long)grad->sizes[0]);
    }
    if (grad->n_dims > 1 || grad->numel != 1) {
        char text[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "Expected a single element grad_output tensor, but got: %s",
                        mt__shape_text(grad->sizes, grad->n_dims, text));
    }
    return MT_OK;
}

/* A tensor of one element as a 0-d one. */
static int as_number(mt__call *call, mt_tensor *tensor, mt_tensor **out)
{
    *out = tensor;
    if (tensor->n_dims == 0) {
        return MT_OK;
    }
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt__tensor_view(tensor, NULL, NULL, 0, tensor->offset, false, place));
    *out = *place;
    return MT_OK;
}

int mt__run_nll_loss_backward(mt__call *call)
{
    enum {
        FIRST = 1,
        TOTAL_WEIGHT = 6
    };
    mt_tensor *self = mt__arg_tensor(call, FIRST + SELF);
    mt_tensor *total = mt__arg_tensor(call, TOTAL_WEIGHT);
    MT_TRY(check_arguments(call, FIRST));
    int64_t reduction = kernel_reduction(self, mt__arg_int(call, FIRST + REDUCTION));
    MT_TRY(check_gradient(mt__arg_tensor(call, 0), self, reduction));
    MT_TRY(mt__need_type(total, (mt_dtype)self->dtype));
    if (total->numel != 1) {
        return mtb_fail(MT_ERUNTIME,
                        "expected total_weight to be a single element tensor, got: %lld elements",
                        (long long)total->numel);
    }
    mt__shape shape = mt__tensor_shape(self);
    mt_tensor *out = NULL;
    mt__kernel_args args = {
        .kernel = MT_KERNEL_NLL_LOSS_BACKWARD,
        .n_tensors = 6,
        MT_INTS(reduction, mt__arg_int(call, FIRST + IGNORE_INDEX)),
    };
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &out));
    MT_TRY(as_batch(call, out, &args.tensors[0]));
    args.tensors[1] = mt__arg_tensor(call, 0);
    if (reduction != MT_REDUCTION_NONE) {
        MT_TRY(as_number(call, args.tensors[1], &args.tensors[1]));
    }
    MT_TRY(as_batch(call, self, &args.tensors[2]));
    MT_TRY(as_targets(call, mt__arg_tensor(call, FIRST + TARGET), &args.tensors[3]));
    args.tensors[4] = mt__arg_tensor(call, FIRST + WEIGHT);
    MT_TRY(as_number(call, total, &args.tensors[5]));
    return mt__kernel(call, &args);
}

int mt__run_nll_loss(mt__call *call)
{
    return mt_nll_loss_forward(mt__arg_tensor(call, SELF), mt__arg_tensor(call, TARGET),
                               mt__arg_tensor(call, WEIGHT), mt__arg_int(call, REDUCTION),
                               mt__arg_int(call, IGNORE_INDEX), mt__result_place(call, 0), NULL);
}

static int check_nd(const mt_tensor *self, const mt_tensor *target)
{
    if (self->n_dims == 0) {
        return mtb_fail(MT_EVALUE, "Expected 1 or more dimensions (got 0)");
    }
    if (self->n_dims == 1) {
        return MT_OK;
    }
    int64_t targets = target->n_dims == 0 ? 0 : target->sizes[0];
    if (self->sizes[0] != targets) {
        return mtb_fail(MT_EVALUE,
                        "Expected input batch_size (%lld) to match target batch_size (%lld).",
                        (long long)self->sizes[0], (long long)targets);
    }
    if (self->n_dims == 2) {
        return MT_OK;
    }
    mt__shape expected = {.n_dims = self->n_dims - 1U};
    expected.sizes[0] = self->sizes[0];
    for (uint32_t i = 2; i < self->n_dims; i++) {
        expected.sizes[i - 1] = self->sizes[i];
    }
    mt__shape shape = mt__tensor_shape(target);
    if (!mt__shape_equal(&expected, &shape)) {
        char a[MT_SHAPE_TEXT];
        char b[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "Expected target size %s, got %s",
                        mt__shape_text(expected.sizes, expected.n_dims, a),
                        mt__shape_text(target->sizes, target->n_dims, b));
    }
    return MT_OK;
}

int mt__run_nll_loss_nd(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, SELF);
    mt_tensor *target = mt__arg_tensor(call, TARGET);
    mt_tensor *weight = mt__arg_tensor(call, WEIGHT);
    int64_t reduction = mt__arg_int(call, REDUCTION);
    int64_t ignore = mt__arg_int(call, IGNORE_INDEX);
    mt_tensor *out = NULL;
    MT_TRY(check_nd(self, target));
    if (self->n_dims <= 2) {
        return mt_nll_loss(self, target, weight, reduction, ignore, mt__result_place(call, 0));
    }
    int64_t dims[MT_MAX_DIMS] = {0};
    for (uint32_t i = 2; i < self->n_dims; i++) {
        dims[i - 1] = i;
    }
    dims[self->n_dims - 1] = 1;
    mt_tensor **turned = mt__temp(call);
    mt_tensor **rows = mt__temp(call);
    mt_tensor **flat = mt__temp(call);
    MT_TRY(mt_permute(self, dims, self->n_dims, turned));
    MT_TRY(mt_reshape(*turned, (const int64_t[]){target->numel, self->sizes[1]}, 2, rows));
    MT_TRY(mt_reshape(target, &target->numel, 1, flat));
    if (reduction != MT_REDUCTION_NONE) {
        MT_TRY(mt_nll_loss(*rows, *flat, weight, reduction, ignore, &out));
    } else {
        mt_tensor **losses = mt__temp(call);
        MT_TRY(mt_nll_loss(*rows, *flat, weight, reduction, ignore, losses));
        MT_TRY(mt_reshape(*losses, target->sizes, target->n_dims, &out));
    }
    mt__give(call, 0, out);
    return MT_OK;
}
