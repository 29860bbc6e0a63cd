/* SPDX-License-Identifier: Apache-2.0
 *
 * Products composed of other ops: matmul, linear, outer.
 *
 *     matmul   1-d 1-d  dot          n-d 1-d  rows folded, mv
 *              2-d 2-d  mm           n-d 2-d  rows folded, mm
 *              else     batch dimensions broadcast, folded into one, bmm
 *     linear   addmm of the folded rows and the turned weight; without a bias matmul
 */
#include "mindtorch/ops/op_support.h"

/* ---- shapes ---------------------------------------------------------------------------------- */

/* [a, b, ..., k] as [a b ..., k]; the tensor itself where it is 2-d. */
static int fold_rows(mt__call *call, mt_tensor *tensor, mt_tensor **out)
{
    *out = tensor;
    if (tensor->n_dims == 2) {
        return MT_OK;
    }
    int64_t rows = 1;
    for (uint32_t i = 0; i + 1 < tensor->n_dims; i++) {
        rows *= tensor->sizes[i];
    }
    int64_t sizes[2] = {rows, tensor->sizes[tensor->n_dims - 1]};
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_reshape(tensor, sizes, 2, place));
    *out = *place;
    return MT_OK;
}

/* Gives `flat` with other sizes as the result. */
static int give_viewed(mt__call *call, mt_tensor *flat, const mt__shape *shape)
{
    return mt__unsafe_view(flat, shape->sizes, shape->n_dims, mt__result_place(call, 0));
}

/* ---- matmul ---------------------------------------------------------------------------------- */

/* self has 3 dimensions or more, other 1 or 2. */
static int matmul_folded(mt__call *call, mt_tensor *self, mt_tensor *other)
{
    mt_tensor *rows;
    MT_TRY(fold_rows(call, self, &rows));
    mt_tensor **flat = mt__temp(call);
    mt__shape shape = mt__tensor_shape(self);
    if (other->n_dims == 1) {
        MT_TRY(mt_mv(rows, other, flat));
        shape.n_dims--;
    } else {
        MT_TRY(mt_mm(rows, other, flat));
        shape.sizes[shape.n_dims - 1] = other->sizes[1];
    }
    return give_viewed(call, *flat, &shape);
}

/* Batch dimensions as `batch`, folded into one: [B, rows, cols]. */
static int fold_batch(mt__call *call, mt_tensor *tensor, const mt__shape *batch, int64_t count,
                      mt_tensor **out)
{
    uint32_t own = tensor->n_dims - 2;
    int64_t rows = tensor->sizes[own];
    int64_t cols = tensor->sizes[own + 1];
    mt__shape shape = *batch;
    shape.sizes[shape.n_dims++] = rows;
    shape.sizes[shape.n_dims++] = cols;
    mt__shape have = mt__tensor_shape(tensor);
    if (!mt__shape_equal(&have, &shape)) {
        mt_tensor **place = mt__temp(call);
        MT_TRY(mt_expand(tensor, shape.sizes, shape.n_dims, place));
        tensor = *place;
    }
    if (shape.n_dims != 3) {
        mt_tensor **place = mt__temp(call);
        MT_TRY(mt_reshape(tensor, (int64_t[]){count, rows, cols}, 3, place));
        tensor = *place;
    }
    *out = tensor;
    return MT_OK;
}

/* A vector as a matrix: one row on the left side, one column on the right. */
static int as_matrix(mt__call *call, mt_tensor *tensor, int64_t new_dim, mt_tensor **out)
{
    *out = tensor;
    if (tensor->n_dims > 1) {
        return MT_OK;
    }
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_unsqueeze(tensor, new_dim, place));
    *out = *place;
    return MT_OK;
}

static int matmul_batched(mt__call *call, mt_tensor *self, mt_tensor *other)
{
    mt_tensor *a;
    mt_tensor *b;
    MT_TRY(as_matrix(call, self, 0, &a));
    MT_TRY(as_matrix(call, other, 1, &b));
    mt__shape batch;
    MT_TRY(mt__shape_make("matmul", a->sizes, a->n_dims - 2U, &batch));
    MT_TRY(mt__shape_broadcast(&batch, b->sizes, b->n_dims - 2U));
    int64_t count;
    MT_TRY(mt__shape_numel("matmul", &batch, 1, &count));
    if (batch.n_dims + 2 > MT_MAX_DIMS) {
        return mtb_fail(MT_ERUNTIME, "matmul(): more than %d dimensions", MT_MAX_DIMS);
    }
    mt__shape shape = batch;
    if (self->n_dims > 1) {
        shape.sizes[shape.n_dims++] = a->sizes[a->n_dims - 2];
    }
    if (other->n_dims > 1) {
        shape.sizes[shape.n_dims++] = b->sizes[b->n_dims - 1];
    }
    MT_TRY(fold_batch(call, a, &batch, count, &a));
    MT_TRY(fold_batch(call, b, &batch, count, &b));
    mt_tensor *flat = NULL;
    MT_TRY(mt_bmm(a, b, &flat));
    mt__shape flat_shape = mt__tensor_shape(flat);
    if (mt__shape_equal(&flat_shape, &shape)) {
        mt__give(call, 0, flat);
        return MT_OK;
    }
    *mt__temp(call) = flat;
    return give_viewed(call, flat, &shape);
}

static int matmul(mt__call *call, mt_tensor *self, mt_tensor *other)
{
    uint32_t n_self = self->n_dims;
    uint32_t n_other = other->n_dims;
    mt_tensor *out = NULL;
    if (n_self >= 3 && n_other <= 2) {
        return matmul_folded(call, self, other);
    }
    if (n_other >= 3) {
        return matmul_batched(call, self, other);
    }
    if (n_self == 1 && n_other == 1) {
        MT_TRY(mt_dot(self, other, &out));
    } else if (n_other == 1) {
        MT_TRY(mt_mv(self, other, &out));
    } else if (n_self == 2) {
        MT_TRY(mt_mm(self, other, &out));
    } else {
        mt_tensor *row;
        MT_TRY(as_matrix(call, self, 0, &row));
        mt_tensor **product = mt__temp(call);
        MT_TRY(mt_mm(row, other, product));
        MT_TRY(mt_squeeze_dim(*product, 0, &out));
    }
    mt__give(call, 0, out);
    return MT_OK;
}

/* The checks that both composites make of their first two arguments. */
static int check_dims(const mt__call *call, mt_tensor *self, mt_tensor *other)
{
    if (self->n_dims > 0 && other->n_dims > 0) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME,
                    "both arguments to %s need to be at least 1D, but they are %uD and %uD",
                    mt__op_name(call), (unsigned)self->n_dims, (unsigned)other->n_dims);
}

int mt__run_matmul(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *other = call->args[1].of.tensor;
    MT_TRY(check_dims(call, self, other));
    return matmul(call, self, other);
}

/* ---- linear, outer --------------------------------------------------------------------------- */

/* Contiguous rows of any number of dimensions with a bias: views around addmm, as torch has them.
 */
static int linear_folded(mt__call *call, mt_tensor *input, mt_tensor *weight, mt_tensor *bias)
{
    mt__shape shape = mt__tensor_shape(input);
    int64_t columns = shape.sizes[shape.n_dims - 1];
    int64_t rows = 1;
    for (uint32_t i = 0; i + 1 < shape.n_dims; i++) {
        rows *= shape.sizes[i];
    }
    mt_tensor **folded = mt__temp(call);
    mt_tensor **turned = mt__temp(call);
    mt_tensor **flat = mt__temp(call);
    MT_TRY(mt_view(input, (const int64_t[]){rows, columns}, 2, folded));
    MT_TRY(mt_t(weight, turned));
    MT_TRY(mt_addmm(bias, *folded, *turned, flat));
    shape.sizes[shape.n_dims - 1] = (*flat)->sizes[1];
    return mt_view(*flat, shape.sizes, shape.n_dims, mt__result_place(call, 0));
}

int mt__run_linear(mt__call *call)
{
    mt_tensor *input = call->args[0].of.tensor;
    mt_tensor *weight = call->args[1].of.tensor;
    mt_tensor *bias = mt__arg_tensor(call, 2);
    MT_TRY(check_dims(call, input, weight));
    if (bias != NULL && input->n_dims != 2 && bias->n_dims <= 1 && input->contiguous) {
        return linear_folded(call, input, weight, bias);
    }
    mt_tensor **turned = mt__temp(call);
    MT_TRY(mt_t(weight, turned));
    mt_tensor *out = NULL;
    if (bias != NULL && input->n_dims == 2) {
        MT_TRY(mt_addmm(bias, input, *turned, &out));
    } else if (bias == NULL) { /* a separate scope in traces, as in torch's */
        MT_TRY(mt_matmul(input, *turned, &out));
    } else if (bias->n_dims > 1) { /* it may widen the result */
        mt_tensor **product = mt__temp(call);
        MT_TRY(mt_matmul(input, *turned, product));
        MT_TRY(mt_add(*product, bias, &out));
    } else {
        MT_TRY(mt_matmul(input, *turned, &out));
        mt__give(call, 0, out);
        return mt_add_(out, bias);
    }
    mt__give(call, 0, out);
    return MT_OK;
}

int mt__run_outer(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *vec2 = call->args[1].of.tensor;
    if (self->n_dims != 1 || vec2->n_dims != 1) {
        bool first = self->n_dims != 1;
        return mtb_fail(MT_ERUNTIME, "outer: Expected 1-D argument %s, but got %u-D",
                        first ? "self" : "vec2", (unsigned)(first ? self->n_dims : vec2->n_dims));
    }
    mt_tensor **column = mt__temp(call);
    MT_TRY(mt_unsqueeze(self, 1, column));
    return mt_mul(*column, vec2, mt__result_place(call, 0));
}
