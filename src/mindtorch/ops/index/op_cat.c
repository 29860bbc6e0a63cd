/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining: cat, stack. Rearranging with a copy: repeat, roll, flip, tril, triu.
 */
#include "base/alloc.h"
#include "mindtorch/core/tensor/memory_format.h"
#include "mindtorch/ops/index/op_index_support.h"
#include "mindtorch/ops/view/view_geometry.h"

#include <inttypes.h>

/* ---- cat ------------------------------------------------------------------------------------- */

/* Tensors of size [0] go with tensors of any number of dimensions, as in torch. */
static bool is_skipped(const mt_tensor *tensor)
{
    return tensor->n_dims == 1 && tensor->sizes[0] == 0;
}

/* Properties of the joined tensor. */
typedef struct joint {
    mt_tensor *const *tensors;
    uint32_t count;
    uint32_t dim;
    mt_dtype dtype;
    bool one_type;
    mt__shape shape;
} joint;

static int add_sizes(joint *j, const mt_tensor *first, const mt_tensor *tensor, uint32_t number)
{
    if (tensor->n_dims != first->n_dims) {
        return mtb_fail(MT_ERUNTIME, "Tensors must have same number of dimensions: got %u and %u",
                        first->n_dims, tensor->n_dims);
    }
    for (uint32_t d = 0; d < first->n_dims; d++) {
        if (d != j->dim && tensor->sizes[d] != first->sizes[d]) {
            return mtb_fail(MT_ERUNTIME,
                            "Sizes of tensors must match except in dimension %u. Expected size "
                            "%" PRId64 " but got size %" PRId64
                            " for tensor number %u in the list.",
                            j->dim, first->sizes[d], tensor->sizes[d], number);
        }
    }
    if (__builtin_add_overflow(j->shape.sizes[j->dim], tensor->sizes[j->dim],
                               &j->shape.sizes[j->dim])) {
        return mtb_fail(MT_ERUNTIME, "cat: the sizes in dimension %u are too large", j->dim);
    }
    return 0;
}

static int joint_init(joint *j, const mt__call *call)
{
    const mt_tensor *first = NULL;
    j->tensors = call->args[0].of.tensors;
    j->count = call->args[0].count;
    j->one_type = true;
    if (j->count == 0) {
        return mtb_fail(MT_EVALUE, "torch.cat(): expected a non-empty list of Tensors");
    }
    j->dtype = (mt_dtype)j->tensors[0]->dtype;
    for (uint32_t i = 0; i < j->count; i++) {
        const mt_tensor *tensor = j->tensors[i];
        if (tensor->n_dims == 0) {
            return mtb_fail(MT_ERUNTIME,
                            "zero-dimensional tensor (at position %u) cannot be concatenated", i);
        }
        j->one_type &= tensor->dtype == j->tensors[0]->dtype;
        j->dtype = mt_promote_types(j->dtype, (mt_dtype)tensor->dtype);
        if (j->dtype == MT_DTYPE_NONE) {
            return MT_ERUNTIME; /* it said why */
        }
        first = first == NULL && !is_skipped(tensor) ? tensor : first;
    }
    if (first == NULL) { /* only tensors of size [0]: so is the result, for any dimension */
        j->dim = 0;
        j->shape = (mt__shape){.n_dims = 1};
        return 0;
    }
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), first->n_dims, &j->dim));
    j->shape = mt__tensor_shape(first);
    j->shape.sizes[j->dim] = 0;
    for (uint32_t i = 0; i < j->count; i++) {
        if (!is_skipped(j->tensors[i])) {
            MT_TRY(add_sizes(j, first, j->tensors[i], i));
        }
    }
    return 0;
}

enum {
    FEW_TENSORS = 16
};

static int launch_cat(mt__call *call, const joint *j, mt_tensor *out)
{
    mt_array few[FEW_TENSORS];
    mt_array *arrays = few;
    uint32_t n = 0;
    if (j->count >= FEW_TENSORS) {
        arrays = mtb_calloc(j->count + 1U, sizeof(mt_array));
        if (arrays == NULL) {
            return mtb_fail(MT_ENOMEM, "cat: no memory for %u tensors", j->count);
        }
    }
    arrays[n++] = mt__array(out);
    for (uint32_t i = 0; i < j->count; i++) {
        if (!is_skipped(j->tensors[i])) {
            arrays[n++] = mt__array(j->tensors[i]);
        }
    }
    const int64_t dim = j->dim;
    mt_kernel_call kernel = {
        .kernel = MT_KERNEL_CAT,
        .n_tensors = n,
        .tensors = arrays,
        .n_ints = 1,
        .ints = &dim,
    };
    int status = mt__launch(call->device, &kernel);
    if (arrays != few) {
        mtb_free(arrays);
    }
    return status;
}

/* Tensors of different types are converted while they are copied, one by one. */
static int copy_parts(const joint *j, mt_tensor *out)
{
    mt__view_geometry g;
    mt__geometry_of(out, &g);
    for (uint32_t i = 0; i < j->count; i++) {
        mt_tensor *part = NULL;
        if (is_skipped(j->tensors[i])) {
            continue;
        }
        g.sizes[j->dim] = j->tensors[i]->sizes[j->dim];
        MT_TRY(mt__geometry_view(out, &g, false, &part));
        int status = mt__copy_elements(part, j->tensors[i]);
        mt_tensor_release(part);
        MT_TRY(status);
        g.offset += g.sizes[j->dim] * g.strides[j->dim];
    }
    return 0;
}

int mt__run_cat(mt__call *call)
{
    joint j = {.dim = 0};
    mt_tensor *out = NULL;
    MT_TRY(joint_init(&j, call));
    MT_TRY(mt__result_new(call, 0, j.dtype, &j.shape, &out));
    if (out->numel == 0) {
        return 0;
    }
    MT_TRY(j.one_type ? launch_cat(call, &j, out) : copy_parts(&j, out));
    const mt_value *list = &call->args[0];
    for (uint32_t i = 0; i < list->count; i++) { /* where all of them are */
        if (!mt__is_channels_last(list->of.tensors[i])) {
            return MT_OK;
        }
    }
    return mt__keep_channels_last(call, 0, list->of.tensors[0]);
}

static int check_equal_sizes(mt_tensor *const *tensors, uint32_t count)
{
    char first[MT_SHAPE_TEXT];
    char other[MT_SHAPE_TEXT];
    for (uint32_t i = 1; i < count; i++) {
        mt__shape a = mt__tensor_shape(tensors[0]);
        mt__shape b = mt__tensor_shape(tensors[i]);
        if (!mt__shape_equal(&a, &b)) {
            return mtb_fail(MT_ERUNTIME,
                            "stack expects each tensor to be equal size, but got %s at entry 0 and "
                            "%s at entry %u",
                            mt__shape_text(a.sizes, a.n_dims, first),
                            mt__shape_text(b.sizes, b.n_dims, other), i);
        }
    }
    return 0;
}

/* Views with one more dimension, joined by cat. */
int mt__run_stack(mt__call *call)
{
    mt_tensor *const *tensors = call->args[0].of.tensors;
    uint32_t count = call->args[0].count;
    uint32_t dim;
    if (count == 0) {
        return mtb_fail(MT_ERUNTIME, "stack expects a non-empty TensorList");
    }
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), tensors[0]->n_dims + 1U, &dim));
    MT_TRY(check_equal_sizes(tensors, count));
    if (tensors[0]->n_dims == MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "stack: the result would have %d dimensions, at most %d",
                        MT_MAX_DIMS + 1, MT_MAX_DIMS);
    }
    mt_tensor **views = mtb_calloc(count, sizeof(mt_tensor *));
    if (views == NULL) {
        return mtb_fail(MT_ENOMEM, "stack: no memory for %u tensors", count);
    }
    int status = 0;
    for (uint32_t i = 0; i < count && status == 0; i++) {
        mt__view_geometry g;
        mt__geometry_of(tensors[i], &g);
        /* The stride that makes a dense tensor a dense view. */
        int64_t stride = dim < g.n_dims ? g.sizes[dim] * g.strides[dim] : 1;
        mt__geometry_insert(&g, dim, 1, stride);
        status = mt__geometry_view(tensors[i], &g, false, &views[i]);
    }
    mt_tensor *out = NULL;
    if (status == 0) {
        status = mt_cat(views, count, dim, &out);
    }
    for (uint32_t i = 0; i < count; i++) {
        mt_tensor_release(views[i]);
    }
    mtb_free(views);
    if (status == 0) {
        mt__give(call, 0, out);
    }
    return status;
}

/* ---- repeat ---------------------------------------------------------------------------------- */

/* The result seen as [repeats, size] for each dimension, and self with the same sizes. */
static int repeat_views(const mt_tensor *self, const mt_tensor *out, const int64_t *repeats,
                        mt__view_geometry *to, mt__view_geometry *from)
{
    uint32_t fresh = out->n_dims - self->n_dims;
    *to = (mt__view_geometry){.offset = out->offset};
    *from = (mt__view_geometry){.offset = self->offset};
    for (uint32_t i = 0; i < out->n_dims; i++) {
        int64_t size = i < fresh ? 1 : self->sizes[i - fresh];
        const int64_t sizes[] = {repeats[i], size};
        const int64_t out_strides[] = {size * out->strides[i], out->strides[i]};
        const int64_t self_strides[] = {0, i < fresh ? 0 : self->strides[i - fresh]};
        for (int k = 0; k < 2; k++) {
            if (sizes[k] == 1) {
                continue;
            }
            if (to->n_dims == MT_MAX_DIMS) {
                return mtb_fail(MT_ERUNTIME, "repeat: too many dimensions are repeated");
            }
            mt__geometry_insert(to, to->n_dims, sizes[k], out_strides[k]);
            mt__geometry_insert(from, from->n_dims, sizes[k], self_strides[k]);
        }
    }
    return 0;
}

int mt__run_repeat(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    const int64_t *repeats = call->args[1].of.ints;
    uint32_t n = call->args[1].count;
    mt__shape shape = {.n_dims = n};
    mt_tensor *out = NULL;
    if (n < self->n_dims) {
        return mtb_fail(MT_ERUNTIME, "Number of dimensions of repeat dims can not be smaller than "
                                     "number of dimensions of tensor");
    }
    if (n > MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "repeat: %u dimensions, at most %d", n, MT_MAX_DIMS);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t fresh = n - self->n_dims;
        int64_t size = i < fresh ? 1 : self->sizes[i - fresh];
        if (repeats[i] < 0) {
            char text[MT_SHAPE_TEXT];
            return mtb_fail(MT_ERUNTIME,
                            "repeat: Trying to create tensor with negative dimension, repeats %s",
                            mt__shape_text(repeats, n, text));
        }
        if (__builtin_mul_overflow(size, repeats[i], &shape.sizes[i])) {
            return mtb_fail(MT_ERUNTIME, "repeat: the size of dimension %u is too large", i);
        }
    }
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &out));
    if (out->numel == 0) {
        return 0;
    }
    mt__view_geometry to;
    mt__view_geometry from;
    MT_TRY(repeat_views(self, out, repeats, &to, &from));
    mt_tensor **target = mt__temp(call);
    mt_tensor **source = mt__temp(call);
    MT_TRY(mt__geometry_view(out, &to, false, target));
    MT_TRY(mt__geometry_view(self, &from, false, source));
    return mt__copy_elements(*target, *source);
}

/* ---- roll, flip ------------------------------------------------------------------------------ */

/* One block of a roll: for each rolled dimension the mask says whether it is the part that goes
 * round the end. */
static int roll_block(mt_tensor *out, mt_tensor *self, const int64_t *shifts, uint32_t mask)
{
    mt__view_geometry to;
    mt__view_geometry from;
    mt_tensor *target = NULL;
    mt_tensor *source = NULL;
    mt__geometry_of(out, &to);
    mt__geometry_of(self, &from);
    for (uint32_t d = 0; d < self->n_dims; d++) {
        int64_t shift = shifts[d];
        if (shift == 0) {
            continue;
        }
        if ((mask >> d & 1U) != 0) {
            from.offset += (self->sizes[d] - shift) * self->strides[d];
            to.sizes[d] = from.sizes[d] = shift;
        } else {
            to.offset += shift * out->strides[d];
            to.sizes[d] = from.sizes[d] = self->sizes[d] - shift;
        }
    }
    MT_TRY(mt__geometry_view(out, &to, false, &target));
    int status = mt__geometry_view(self, &from, false, &source);
    if (status == 0) {
        status = mt__copy_elements(target, source);
    }
    mt_tensor_release(target);
    mt_tensor_release(source);
    return status;
}

static int roll_all(mt_tensor *out, mt_tensor *self, const int64_t *shifts)
{
    uint32_t rolled = 0;
    for (uint32_t d = 0; d < self->n_dims; d++) {
        rolled |= (uint32_t)(shifts[d] != 0) << d;
    }
    /* All subsets of the rolled dimensions, the empty one first. */
    uint32_t mask = 0;
    do {
        MT_TRY(roll_block(out, self, shifts, mask));
        mask = (mask - rolled) & rolled;
    } while (mask != 0);
    return 0;
}

/* 0 <= shift < size. */
static int64_t wrap_shift(int64_t shift, int64_t size)
{
    shift %= size;
    return shift < 0 ? shift + size : shift;
}

int mt__run_roll(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    const mt_value *shifts = &call->args[1];
    uint32_t n_dims = mt__arg_given(call, 2) ? call->args[2].count : 0;
    int64_t by[MT_MAX_DIMS] = {0};
    mt__shape shape = mt__tensor_shape(self);
    mt_tensor *out = NULL;
    if (shifts->count == 0) {
        return mtb_fail(MT_ERUNTIME, "roll: `shifts` required");
    }
    if (n_dims != shifts->count && (n_dims != 0 || shifts->count != 1)) {
        return mtb_fail(MT_ERUNTIME, "shifts and dimensions must align. shifts: %u, dims:%u",
                        shifts->count, n_dims);
    }
    for (uint32_t i = 0; i < n_dims; i++) {
        uint32_t d;
        if (self->n_dims == 0) {
            return mtb_fail(MT_EINDEX,
                            "Dimension specified as %" PRId64 " but tensor has no dimensions",
                            call->args[2].of.ints[i]);
        }
        MT_TRY(mt__wrap_dim(call->args[2].of.ints[i], self->n_dims, &d));
        if (self->sizes[d] > 0) {
            by[d] =
                wrap_shift(by[d] + wrap_shift(shifts->of.ints[i], self->sizes[d]), self->sizes[d]);
        }
    }
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &out));
    if (out->numel == 0) {
        return 0;
    }
    if (n_dims > 0) {
        return roll_all(out, self, by);
    }
    mt_tensor *from = NULL;
    mt_tensor *to = NULL;
    MT_TRY(mt__flat(call, self, &from));
    MT_TRY(mt__flat(call, out, &to));
    by[0] = wrap_shift(shifts->of.ints[0], self->numel);
    return roll_all(to, from, by);
}

/* Dimension after dimension, each with an index that counts down. */
int mt__run_flip(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    uint32_t mask = 0;
    mt__shape shape = mt__tensor_shape(self);
    if (call->args[1].count > 0) {
        MT_TRY(mt__dim_mask(call->args[1].of.ints, call->args[1].count, self->n_dims, &mask));
    }
    uint32_t left = 0;
    for (uint32_t d = 0; d < self->n_dims; d++) {
        bool flips = (mask >> d & 1U) != 0 && self->sizes[d] > 1;
        mask = flips ? mask : mask & ~(1U << d);
        left += flips;
    }
    mt_tensor *out = NULL;
    if (left == 0 || self->n_dims == 0 || self->numel == 0) {
        MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &out));
        return out->numel == 0 ? 0 : mt__copy_elements(out, self);
    }
    mt_tensor *from = self;
    for (uint32_t d = 0; d < self->n_dims; d++) {
        if ((mask >> d & 1U) == 0) {
            continue;
        }
        mt_tensor *index = NULL;
        mt__shape length = {.n_dims = 1, .sizes = {self->sizes[d]}};
        MT_TRY(mt__temp_new(call, MT_DTYPE_I64, &length, &index));
        const mt__kernel_args count = {
            .kernel = MT_KERNEL_ARANGE,
            MT_TENSORS(index),
            MT_SCALARS(mt_int(self->sizes[d] - 1), mt_int(-1)),
        };
        MT_TRY(mt__kernel(call, &count));
        if (--left == 0) {
            MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &out));
        } else {
            MT_TRY(mt__temp_new(call, (mt_dtype)self->dtype, &shape, &out));
        }
        const mt__kernel_args pick = {
            .kernel = MT_KERNEL_INDEX_SELECT,
            MT_TENSORS(out, from, index),
            MT_INTS(d),
        };
        MT_TRY(mt__kernel(call, &pick));
        from = out;
    }
    return 0;
}

/* ---- triangles ------------------------------------------------------------------------------- */

static int triangle(mt__call *call, uint16_t code)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt__shape shape = mt__tensor_shape(self);
    mt_tensor *out = NULL;
    if (self->n_dims < 2) {
        return mtb_fail(MT_ERUNTIME, "%s: input tensor must have at least 2 dimensions",
                        mt__op_name(call));
    }
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &out));
    if (out->numel == 0) {
        return 0;
    }
    const mt__kernel_args args = {
        .kernel = MT_KERNEL_TRIANGLE,
        .code = code,
        MT_TENSORS(out, self),
        MT_INTS(mt__arg_int(call, 1)),
    };
    return mt__kernel(call, &args);
}

MT_RUN(tril, triangle, 0)
MT_RUN(triu, triangle, 1)
