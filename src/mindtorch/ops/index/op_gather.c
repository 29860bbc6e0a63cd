/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and writing elements by index along one dimension, or by a mask: index_select, index_add,
 * gather, scatter, masked_select, masked_scatter, nonzero, one_hot.
 */
#include "mindtorch/ops/index/op_index_support.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <inttypes.h>

/* ---- an index for each row ------------------------------------------------------------------- */

int mt__run_index_select(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *index = mt__arg_tensor(call, 2);
    mt__shape shape = mt__tensor_shape(self);
    mt_tensor *out = NULL;
    uint32_t dim;
    if (index->n_dims > 1) {
        return mtb_fail(MT_EINDEX, "index_select(): Index is supposed to be a vector");
    }
    MT_TRY(mt__index_arg(call, index, &index));
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &dim));
    if (self->n_dims == 0 && index->numel != 1) {
        return mtb_fail(MT_ERUNTIME,
                        "index_select(): Index to scalar can have only 1 value, got %" PRId64
                        " value(s)",
                        index->numel);
    }
    if (self->n_dims > 0 && self->sizes[dim] == 0 && index->numel > 0) {
        return mtb_fail(MT_ERUNTIME, "index_select(): self indexing axis dim should be positive");
    }
    if (self->n_dims > 0) {
        shape.sizes[dim] = index->numel;
    }
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &out));
    MT_TRY(mt__at_least_1d(call, out, &out));
    MT_TRY(mt__at_least_1d(call, self, &self));
    MT_TRY(mt__at_least_1d(call, index, &index));
    const mt__kernel_args args = {
        .kernel = MT_KERNEL_INDEX_SELECT,
        MT_TENSORS(out, self, index),
        MT_INTS(dim),
    };
    return mt__kernel(call, &args);
}

static int check_index_add(const mt_tensor *self, uint32_t dim, const mt_tensor *index,
                           const mt_tensor *source)
{
    char text[MT_SHAPE_TEXT];
    char more[MT_SHAPE_TEXT];
    if (index->n_dims > 1) {
        return mtb_fail(MT_EINDEX,
                        "index_add_(): Index is supposed to be a vector, but got dim: %u with "
                        "type: %s and size: %s",
                        index->n_dims, mt__type_title((mt_dtype)index->dtype),
                        mt__shape_text(index->sizes, index->n_dims, text));
    }
    if (self->dtype != source->dtype) {
        return mtb_fail(
            MT_ERUNTIME, "index_add_(): self (%s) and source (%s) must have the same scalar type",
            mt__type_title((mt_dtype)self->dtype), mt__type_title((mt_dtype)source->dtype));
    }
    int64_t rows = source->n_dims == 0 ? 1 : dim < source->n_dims ? source->sizes[dim] : -1;
    if (rows >= 0 && index->numel != rows) {
        return mtb_fail(MT_ERUNTIME,
                        "index_add_(): Number of indices (%" PRId64
                        ") should be equal to source.size(dim): (%" PRId64 "), for dim: %u",
                        index->numel, rows, dim);
    }
    bool same = self->n_dims == source->n_dims;
    for (uint32_t d = 0; same && d < self->n_dims; d++) {
        same = d == dim || self->sizes[d] == source->sizes[d];
    }
    if (!same) {
        return mtb_fail(MT_ERUNTIME,
                        "source tensor shape must match self tensor shape, excluding the specified "
                        "dimension. Got self.shape = %s source.shape = %s",
                        mt__shape_text(self->sizes, self->n_dims, text),
                        mt__shape_text(source->sizes, source->n_dims, more));
    }
    return 0;
}

int mt__run_index_add(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *index = mt__arg_tensor(call, 2);
    mt_tensor *source = mt__arg_tensor(call, 3);
    mt_tensor *out = NULL;
    uint32_t dim;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &dim));
    MT_TRY(check_index_add(self, dim, index, source));
    MT_TRY(mt__index_arg(call, index, &index));
    MT_TRY(mt__written_result(call, &out));
    if (source->numel == 0) {
        return 0;
    }
    MT_TRY(mt__apart_from(call, out, source, &source));
    MT_TRY(mt__apart_from(call, out, index, &index));
    MT_TRY(mt__at_least_1d(call, out, &out));
    MT_TRY(mt__at_least_1d(call, source, &source));
    MT_TRY(mt__at_least_1d(call, index, &index));
    const mt__kernel_args args = {
        .kernel = MT_KERNEL_INDEX_ADD,
        MT_TENSORS(out, index, source),
        MT_INTS(dim),
        MT_SCALARS(mt__number_as(&call->args[4], (mt_dtype)self->dtype)),
    };
    return mt__kernel(call, &args);
}

/* ---- an index for each element --------------------------------------------------------------- */

static uint32_t dims_of(const mt_tensor *tensor)
{
    return tensor->n_dims == 0 ? 1 : tensor->n_dims;
}

static int64_t size_of(const mt_tensor *tensor, uint32_t dim)
{
    return tensor->n_dims == 0 ? 1 : tensor->sizes[dim];
}

int mt__run_gather(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *index = mt__arg_tensor(call, 2);
    mt__shape shape = mt__tensor_shape(index);
    mt_tensor *out = NULL;
    char text[MT_SHAPE_TEXT];
    char more[MT_SHAPE_TEXT];
    uint32_t dim;
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, &dim));
    MT_TRY(mt__index_arg(call, index, &index));
    if (index->numel > 0 && dims_of(index) != dims_of(self)) {
        return mtb_fail(MT_ERUNTIME, "gather(): Index tensor must have the same number of "
                                     "dimensions as input tensor");
    }
    for (uint32_t d = 0; index->numel > 0 && d < dims_of(self); d++) {
        if (d != dim && size_of(index, d) > size_of(self, d)) {
            return mtb_fail(MT_ERUNTIME,
                            "Size does not match at dimension %u expected index %s to be no larger "
                            "than self %s apart from dimension %u",
                            d, mt__shape_text(index->sizes, index->n_dims, text),
                            mt__shape_text(self->sizes, self->n_dims, more), dim);
        }
    }
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, &shape, &out));
    if (out->numel == 0) {
        return 0;
    }
    const mt__kernel_args args = {
        .kernel = MT_KERNEL_GATHER,
        MT_TENSORS(out, self, index),
        MT_INTS(dim),
    };
    return mt__kernel(call, &args);
}

static int check_scatter(const mt_tensor *self, uint32_t dim, const mt_tensor *index,
                         const mt_tensor *source)
{
    char text[MT_SHAPE_TEXT];
    char more[MT_SHAPE_TEXT];
    char most[MT_SHAPE_TEXT];
    if (source != NULL && source->dtype != self->dtype) {
        return mtb_fail(MT_ERUNTIME, "scatter(): Expected self.dtype to be equal to src.dtype");
    }
    if (index->numel == 0) {
        return 0;
    }
    if (dims_of(index) != dims_of(self)) {
        return mtb_fail(MT_ERUNTIME, "scatter(): Index tensor must have the same number of "
                                     "dimensions as self tensor");
    }
    if (source != NULL && dims_of(index) != dims_of(source)) {
        return mtb_fail(MT_ERUNTIME, "scatter(): Index tensor must have the same number of "
                                     "dimensions as src tensor");
    }
    bool fits = true;
    for (uint32_t d = 0; d < dims_of(index); d++) {
        fits &= d == dim || size_of(index, d) <= size_of(self, d);
        fits &= source == NULL || size_of(index, d) <= size_of(source, d);
    }
    if (!fits) {
        return mtb_fail(
            MT_ERUNTIME,
            "Expected index %s to be no larger than self %s apart from dimension %u%s%s",
            mt__shape_text(index->sizes, index->n_dims, text),
            mt__shape_text(self->sizes, self->n_dims, more), dim,
            source == NULL ? "" : " and to be no larger size than src ",
            source == NULL ? "" : mt__shape_text(source->sizes, source->n_dims, most));
    }
    return 0;
}

int mt__scatter_into(mt__call *call, mt_tensor *out, uint32_t dim, mt_tensor *index,
                     mt_tensor *source, mt_scatter_mode code)
{
    if (index->numel == 0) {
        return 0;
    }
    MT_TRY(mt__apart_from(call, out, index, &index));
    MT_TRY(mt__apart_from(call, out, source, &source));
    const mt__kernel_args args = {
        .kernel = MT_KERNEL_SCATTER,
        .code = (uint16_t)code,
        MT_TENSORS(out, index, source),
        MT_INTS(dim),
    };
    return mt__kernel(call, &args);
}

int mt__scatter_operands(mt__call *call, uint32_t *dim, mt_tensor **index)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    MT_TRY(mt__wrap_dim(mt__arg_int(call, 1), self->n_dims, dim));
    MT_TRY(mt__index_arg(call, mt__arg_tensor(call, 2), index));
    return check_scatter(self, *dim, *index, mt__arg_tensor(call, 3));
}

static int scatter(mt__call *call, mt_scatter_mode code)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *source = mt__arg_tensor(call, 3);
    mt_tensor *index = NULL;
    mt_tensor *out = NULL;
    uint32_t dim;
    MT_TRY(mt__scatter_operands(call, &dim, &index));
    MT_TRY(mt__written_result(call, &out));
    if (source == NULL) {
        mt__shape shape = mt__tensor_shape(index);
        MT_TRY(mt__filled(call, (mt_dtype)self->dtype, &call->args[3], &shape, &source));
    }
    return mt__scatter_into(call, out, dim, index, source, code);
}

MT_RUN(scatter, scatter, MT_SCATTER_SET)
MT_RUN(scatter_add, scatter, MT_SCATTER_ADD)

/* Composite: zeros, with the gradient where the forward found its values. */
int mt__run_value_selecting_reduction_backward(mt__call *call)
{
    mt_tensor *grad = mt__arg_tensor(call, 0);
    int64_t dim = mt__arg_int(call, 1);
    mt_tensor *indices = mt__arg_tensor(call, 2);
    const mt_value *sizes = &call->args[3];
    mt_tensor *out = NULL;
    if (!mt__arg_bool(call, 4) && sizes->count > 0) {
        mt_tensor **wide_grad = mt__temp(call);
        mt_tensor **wide_indices = mt__temp(call);
        MT_TRY(mt_unsqueeze(grad, dim, wide_grad));
        MT_TRY(mt_unsqueeze(indices, dim, wide_indices));
        grad = *wide_grad;
        indices = *wide_indices;
    }
    MT_TRY(mt_zeros_with(sizes->of.ints, sizes->count, (mt_dtype)grad->dtype, grad->device, &out));
    mt__give(call, 0, out);
    return mt_scatter_(out, dim, indices, grad);
}

/* ---- masks ----------------------------------------------------------------------------------- */

static int expanded(mt__call *call, mt_tensor *tensor, const mt__shape *shape, mt_tensor **out)
{
    int64_t strides[MT_MAX_DIMS];
    mt_tensor **place = mt__temp(call);
    mt__shape_expand_strides(tensor->sizes, tensor->strides, tensor->n_dims, shape, strides);
    MT_TRY(mt__tensor_view(tensor, shape->sizes, strides, shape->n_dims, tensor->offset, false,
                           place));
    *out = *place;
    return 0;
}

int mt__run_masked_select(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *mask = mt__arg_tensor(call, 1);
    mt__shape shape = mt__tensor_shape(self);
    mt_tensor *out = NULL;
    int64_t count;
    if (mask->dtype != MT_DTYPE_BOOL) {
        return mtb_fail(MT_ERUNTIME, "masked_select: expected BoolTensor for mask");
    }
    MT_TRY(mt__shape_broadcast(&shape, mask->sizes, mask->n_dims));
    MT_TRY(expanded(call, self, &shape, &self));
    MT_TRY(expanded(call, mask, &shape, &mask));
    MT_TRY(mt__count_nonzero(call, mask, &count));
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype,
                          &(mt__shape){.n_dims = 1, .sizes = {count}}, &out));
    if (count == 0) {
        return 0;
    }
    const mt__kernel_args args = {
        .kernel = MT_KERNEL_MASKED_SELECT,
        MT_TENSORS(out, self, mask),
    };
    return mt__kernel(call, &args);
}

/* In place self keeps its sizes; otherwise self and mask broadcast. */
static int masked_shape(mt__call *call, const mt_tensor *mask, mt__shape *shape)
{
    const mt_tensor *self = mt__arg_tensor(call, 0);
    mt__shape own = mt__tensor_shape(self);
    *shape = own;
    MT_TRY(mt__shape_broadcast(shape, mask->sizes, mask->n_dims));
    if (mt__is_in_place(call) && !mt__shape_equal(&own, shape)) {
        char text[MT_SHAPE_TEXT];
        char more[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "masked_scatter_: the mask of sizes %s cannot be expanded to self's %s",
                        mt__shape_text(mask->sizes, mask->n_dims, text),
                        mt__shape_text(self->sizes, self->n_dims, more));
    }
    return 0;
}

static int masked_target(mt__call *call, const mt__shape *shape, mt_tensor **out)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    if (mt__is_in_place(call)) {
        return mt__written_result(call, out);
    }
    MT_TRY(mt__result_new(call, 0, (mt_dtype)self->dtype, shape, out));
    return mt__copy_elements(*out, self);
}

int mt__run_masked_scatter(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *mask = mt__arg_tensor(call, 1);
    mt_tensor *source = mt__arg_tensor(call, 2);
    mt_tensor *out = NULL;
    if (self->dtype != source->dtype) {
        return mtb_fail(MT_ERUNTIME,
                        "masked_scatter: expected self and source to have same dtypes but got %s "
                        "and %s",
                        mt__type_title((mt_dtype)self->dtype),
                        mt__type_title((mt_dtype)source->dtype));
    }
    if (mask->dtype != MT_DTYPE_BOOL) {
        return mtb_fail(MT_ERUNTIME,
                        "masked_scatter_ only supports boolean masks, but got mask with dtype %s",
                        mt__type_title((mt_dtype)mask->dtype));
    }
    mt__shape shape;
    MT_TRY(masked_shape(call, mask, &shape));
    MT_TRY(masked_target(call, &shape, &out));
    MT_TRY(mt__apart_from(call, out, source, &source));
    MT_TRY(mt__apart_from(call, out, mask, &mask));
    MT_TRY(mt__flat(call, source, &source));
    MT_TRY(expanded(call, mask, &shape, &mask));
    if (out->numel == 0) {
        return 0;
    }
    const mt__kernel_args args = {
        .kernel = MT_KERNEL_MASKED_SCATTER,
        MT_TENSORS(out, mask, source),
    };
    return mt__kernel(call, &args);
}

int mt__run_nonzero(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *out = NULL;
    int64_t count;
    MT_TRY(mt__count_nonzero(call, self, &count));
    mt__shape shape = {.n_dims = 2, .sizes = {count, self->n_dims}};
    MT_TRY(mt__result_new(call, 0, MT_DTYPE_I64, &shape, &out));
    if (out->numel == 0) {
        return 0;
    }
    const mt__kernel_args args = {
        .kernel = MT_KERNEL_NONZERO,
        MT_TENSORS(out, self),
    };
    return mt__kernel(call, &args);
}

/* ---- one_hot --------------------------------------------------------------------------------- */

static int bound_of(mt__call *call, mt_tensor *self, int (*reduce)(mt_tensor *, mt_tensor **),
                    int64_t *bound)
{
    mt_tensor **place = mt__temp(call);
    mt_scalar value;
    MT_TRY(reduce(self, place));
    MT_TRY(mt_item(*place, &value));
    *bound = value.of.integer;
    return 0;
}

int mt__run_one_hot(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    int64_t classes = mt__arg_int(call, 1);
    mt__shape shape = mt__tensor_shape(self);
    int64_t lowest = 0;
    int64_t highest = -1;
    if (self->dtype != MT_DTYPE_I64) {
        return mtb_fail(MT_ERUNTIME,
                        "one_hot is only applicable to index tensor of type LongTensor.");
    }
    if (self->n_dims == MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "one_hot: the result would have %d dimensions, at most %d",
                        MT_MAX_DIMS + 1, MT_MAX_DIMS);
    }
    if (self->numel == 0 && classes <= 0) {
        return mtb_fail(MT_ERUNTIME, "Can not infer total number of classes from empty tensor.");
    }
    if (self->numel > 0 && (self->device != MT_META || classes < 0)) {
        MT_TRY(bound_of(call, self, mt_min, &lowest));
        MT_TRY(bound_of(call, self, mt_max, &highest));
    }
    if (lowest < 0) {
        return mtb_fail(MT_ERUNTIME, "Class values must be non-negative.");
    }
    if (classes == -1 && highest < INT64_MAX) {
        classes = highest + 1;
    }
    if (highest >= classes) {
        return mtb_fail(MT_ERUNTIME, "Class values must be smaller than num_classes.");
    }
    shape.sizes[shape.n_dims++] = classes;
    mt_tensor *out = NULL;
    MT_TRY(mt_zeros_with(shape.sizes, shape.n_dims, MT_DTYPE_I64, self->device, &out));
    mt__give(call, 0, out);
    mt_tensor **index = mt__temp(call);
    MT_TRY(mt_unsqueeze(self, -1, index));
    return mt_scatter_scalar_(out, -1, *index, mt_int(1));
}
