/* SPDX-License-Identifier: Apache-2.0
 *
 * Scaled dot-product attention: softmax(scale q k^T + mask) v. The fused leaf takes [B, H, T, D] of
 * one batch and head count without dropout; everything else is made of matmul, softmax and dropout.
 *
 * A row whose keys are all masked is 0, as in torch.
 */
#include "mindtorch/ops/op_support.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <mindtorch/autograd.h>

#include <math.h>

/* ---- the fused leaf -------------------------------------------------------------------------- */

static bool is_computed(const mt_tensor *tensor)
{
    return mt__tensor_category(tensor) == MT_CATEGORY_REAL;
}

/* Whether `from` broadcasts to [B, H, Tq, Tk]. */
static bool spreads(const mt_tensor *from, const mt__shape *to)
{
    bool fits = from->n_dims <= to->n_dims;
    for (uint32_t i = 0; fits && i < from->n_dims; i++) {
        int64_t size = from->sizes[from->n_dims - 1 - i];
        fits = size == 1 || size == to->sizes[to->n_dims - 1 - i];
    }
    return fits;
}

static bool is_fusable(const mt_tensor *q, const mt_tensor *k, const mt_tensor *v)
{
    if (q->n_dims != 4 || k->n_dims != 4 || v->n_dims != 4 || !is_computed(q) ||
        q->dtype != k->dtype || q->dtype != v->dtype) {
        return false;
    }
    bool same = true;
    for (uint32_t i = 0; i < 2; i++) {
        same = same && q->sizes[i] == k->sizes[i] && q->sizes[i] == v->sizes[i];
    }
    return same && q->sizes[3] == k->sizes[3] && k->sizes[2] == v->sizes[2];
}

static mt__shape score_shape(const mt_tensor *q, const mt_tensor *k)
{
    return (mt__shape){.n_dims = 4, .sizes = {q->sizes[0], q->sizes[1], q->sizes[2], k->sizes[2]}};
}

static int check_fused(const mt__call *call, mt_tensor *const qkv[3], const mt_tensor *mask)
{
    char text[3][MT_SHAPE_TEXT];
    if (!is_fusable(qkv[0], qkv[1], qkv[2])) {
        return mtb_fail(MT_ERUNTIME,
                        "%s(): expected floating-point [B, H, T, D], got query %s, key %s and "
                        "value %s",
                        mt__op_name(call), mt__shape_text(qkv[0]->sizes, qkv[0]->n_dims, text[0]),
                        mt__shape_text(qkv[1]->sizes, qkv[1]->n_dims, text[1]),
                        mt__shape_text(qkv[2]->sizes, qkv[2]->n_dims, text[2]));
    }
    mt__shape scores = score_shape(qkv[0], qkv[1]);
    if (mask != NULL && (mask->dtype != qkv[0]->dtype || !spreads(mask, &scores))) {
        return mtb_fail(MT_ERUNTIME, "%s(): attn_mask of %s %s does not fit scores of %s %s",
                        mt__op_name(call), mt_dtype_name((mt_dtype)mask->dtype),
                        mt__shape_text(mask->sizes, mask->n_dims, text[0]),
                        mt_dtype_name((mt_dtype)qkv[0]->dtype),
                        mt__shape_text(scores.sizes, 4, text[1]));
    }
    return MT_OK;
}

/* Argument i, or 1 / sqrt(size of a head). */
static double scale_of(const mt__call *call, uint32_t i, const mt_tensor *query)
{
    double depth = (double)query->sizes[query->n_dims - 1];
    return mt__arg_given(call, i) ? mt__arg_real(call, i) : 1 / sqrt(depth);
}

/* Launches with the mask, the last tensor, spread over the scores. */
static int launch_attention(mt__call *call, mt_kernel kernel, mt_tensor *const *tensors,
                            uint32_t n_tensors, const mt__shape *scores)
{
    mt_array arrays[10];
    int64_t mask_strides[MT_MAX_DIMS];
    for (uint32_t i = 0; i < n_tensors; i++) {
        arrays[i] = tensors[i] == NULL ? mt__no_array() : mt__array(tensors[i]);
    }
    const mt_tensor *mask = tensors[n_tensors - 1];
    if (mask != NULL) {
        mt__shape_expand_strides(mask->sizes, mask->strides, mask->n_dims, scores, mask_strides);
        arrays[n_tensors - 1].sizes = scores->sizes;
        arrays[n_tensors - 1].strides = mask_strides;
        arrays[n_tensors - 1].n_dims = 4;
    }
    bool backward = kernel == MT_KERNEL_ATTENTION_BACKWARD;
    int64_t causal = mt__arg_bool(call, backward ? 6 : 4) ? 1 : 0;
    const mt_tensor *query = call->args[backward ? 1 : 0].of.tensor;
    mt_scalar scale = mt_real(scale_of(call, backward ? 8 : 6, query));
    mt_kernel_call launched = {
        .kernel = (uint16_t)kernel,
        .n_tensors = n_tensors,
        .n_ints = 1,
        .n_scalars = 1,
        .tensors = arrays,
        .ints = &causal,
        .scalars = &scale,
    };
    return mt__launch(call->device, &launched);
}

int mt__run_flash_attention(mt__call *call)
{
    mt_tensor *qkv[3] = {call->args[0].of.tensor, call->args[1].of.tensor, call->args[2].of.tensor};
    mt_tensor *mask = mt__arg_tensor(call, 5);
    if (mt__arg_real(call, 3) != 0) {
        return mtb_fail(MT_ERUNTIME, "scaled_dot_product_attention_flash_attention: Currently do "
                                     "not support dropout > 0");
    }
    MT_TRY(check_fused(call, qkv, mask));
    mt_dtype dtype = (mt_dtype)qkv[0]->dtype;
    mt__shape scores = score_shape(qkv[0], qkv[1]);
    mt__shape shape = mt__tensor_shape(qkv[0]);
    mt__shape rows = shape;
    rows.n_dims = 3;
    shape.sizes[3] = qkv[2]->sizes[3];
    mt_tensor *launched[6] = {NULL, NULL, qkv[0], qkv[1], qkv[2], mask};
    MT_TRY(mt__result_laid_out(call, 0, dtype, &shape, qkv[0]));
    launched[0] = call->results[0].of.tensor;
    MT_TRY(mt__result_new(call, 1, mt__sums_type(dtype), &rows, &launched[1]));
    if (launched[1]->numel == 0) {
        return MT_OK;
    }
    return launch_attention(call, MT_KERNEL_ATTENTION, launched, 6, &scores);
}

int mt__run_flash_attention_backward(mt__call *call)
{
    const mt_value *a = call->args;
    mt_tensor *grad = a[0].of.tensor;
    mt_tensor *qkv[3] = {a[1].of.tensor, a[2].of.tensor, a[3].of.tensor};
    mt_tensor *out = a[4].of.tensor;
    mt_tensor *lse = a[5].of.tensor;
    mt_tensor *mask = mt__arg_tensor(call, 7);
    MT_TRY(check_fused(call, qkv, mask));
    mt__shape shape = mt__tensor_shape(qkv[0]);
    mt__shape rows = shape;
    rows.n_dims = 3;
    shape.sizes[3] = qkv[2]->sizes[3];
    mt__shape have[3] = {mt__tensor_shape(grad), mt__tensor_shape(out), mt__tensor_shape(lse)};
    if (!mt__shape_equal(&have[0], &shape) || !mt__shape_equal(&have[1], &shape) ||
        !mt__shape_equal(&have[2], &rows) || grad->dtype != qkv[0]->dtype ||
        out->dtype != grad->dtype ||
        (lse->dtype != grad->dtype && lse->dtype != mt__sums_type((mt_dtype)grad->dtype))) {
        return mtb_fail(MT_ERUNTIME,
                        "%s(): grad_out, out and logsumexp do not belong to query and value",
                        mt__op_name(call));
    }
    mt_tensor *launched[10] = {NULL, NULL, NULL, grad, qkv[0], qkv[1], qkv[2], out, lse, mask};
    for (uint32_t i = 0; i < 3; i++) {
        mt__shape like = mt__tensor_shape(qkv[i]);
        MT_TRY(mt__result_laid_out(call, i, (mt_dtype)qkv[i]->dtype, &like, qkv[i]));
        launched[i] = call->results[i].of.tensor;
    }
    mt__shape scores = score_shape(qkv[0], qkv[1]);
    return launch_attention(call, MT_KERNEL_ATTENTION_BACKWARD, launched, 10, &scores);
}

/* ---- the composite --------------------------------------------------------------------------- */

static int check_arguments(mt_tensor *const qkv[3], const mt_tensor *mask)
{
    mt_dtype type = (mt_dtype)qkv[0]->dtype;
    if (qkv[1]->dtype != type || qkv[2]->dtype != type) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected query, key, and value to have the same dtype, but got "
                        "query.dtype: %s key.dtype: %s and value.dtype: %s instead.",
                        mt__type_in_c(type), mt__type_in_c((mt_dtype)qkv[1]->dtype),
                        mt__type_in_c((mt_dtype)qkv[2]->dtype));
    }
    if (qkv[0]->n_dims < 2 || qkv[1]->n_dims < 2 || qkv[2]->n_dims < 2) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected query, key, and value to all be  at least 2 dimensional, but "
                        "got query.dim: %u key.dim: %u and value.dim: %u instead.",
                        (unsigned)qkv[0]->n_dims, (unsigned)qkv[1]->n_dims,
                        (unsigned)qkv[2]->n_dims);
    }
    if (mask != NULL && mask->dtype != MT_DTYPE_BOOL && mask->dtype != MT_DTYPE_F32 &&
        mask->dtype != type) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected attn_mask dtype to be bool or float or to match query dtype, but "
                        "got attn_mask.dtype: %s and  query.dtype: %s instead.",
                        mt__type_in_c((mt_dtype)mask->dtype), mt__type_in_c(type));
    }
    if (mt__tensor_category(qkv[0]) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME, "expected scalar type Float but found %s",
                        mt__type_title(type));
    }
    int64_t keys = qkv[1]->sizes[qkv[1]->n_dims - 2];
    int64_t values = qkv[2]->sizes[qkv[2]->n_dims - 2];
    if (keys != values) {
        return mtb_fail(MT_ERUNTIME, "scaled_dot_product_attention(): %lld keys, but %lld values",
                        (long long)keys, (long long)values);
    }
    return MT_OK;
}

/* A mask of truth values as one to add; others in the query's type. */
static int additive_mask(mt__call *call, mt_tensor *mask, mt_dtype dtype, mt_tensor **out)
{
    *out = mask;
    if (mask == NULL) {
        return MT_OK;
    }
    if (mask->dtype == MT_DTYPE_BOOL) {
        mt_tensor **place = mt__temp(call);
        MT_TRY(mt_where_scalar_scalar(mask, mt_real(0), mt_real(-(double)INFINITY), place));
        *out = *place;
    }
    if ((*out)->dtype != dtype) {
        mt_tensor **place = mt__temp(call);
        MT_TRY(mt_to_with(*out, dtype, MT_DEVICE_NONE, false, false, place));
        *out = *place;
    }
    return MT_OK;
}

/* Scores of keys after the query become -inf. */
static int hide_later(mt__call *call, mt_tensor **scores)
{
    const int64_t *sizes = &(*scores)->sizes[(*scores)->n_dims - 2];
    mt_tensor **ones = mt__temp(call);
    mt_tensor **later = mt__temp(call);
    mt_tensor **hidden = mt__temp(call);
    MT_TRY(mt_ones_with(sizes, 2, MT_DTYPE_BOOL, (*scores)->device, ones));
    MT_TRY(mt_triu(*ones, 1, later));
    MT_TRY(mt_masked_fill_scalar(*scores, *later, mt_real(-(double)INFINITY), hidden));
    *scores = *hidden;
    return MT_OK;
}

/* Softmax in which rows of nothing but -inf become 0, and have gradients 0. */
static int safe_softmax(mt__call *call, mt_tensor *scores, mt_tensor **out)
{
    mt_tensor **masked = mt__temp(call);
    mt_tensor **rows = mt__temp(call);
    mt_tensor **safe = mt__temp(call);
    mt_tensor **weights = mt__temp(call);
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_eq_scalar(scores, mt_real(-(double)INFINITY), masked));
    MT_TRY(mt_all(*masked, (int64_t[]){-1}, 1, true, rows));
    MT_TRY(mt_masked_fill_scalar(scores, *rows, mt_real(0), safe));
    MT_TRY(mt_softmax(*safe, -1, MT_DTYPE_NONE, weights));
    MT_TRY(mt_masked_fill_scalar(*weights, *rows, mt_real(0), place));
    *out = *place;
    return MT_OK;
}

static int attention_by_parts(mt__call *call, mt_tensor *const qkv[3], mt_tensor *mask,
                              double scale)
{
    double dropout = mt__arg_real(call, 4);
    mt_tensor **scaled = mt__temp(call);
    mt_tensor **turned = mt__temp(call);
    mt_tensor **product = mt__temp(call);
    MT_TRY(mt_mul_scalar(qkv[0], mt_real(scale), scaled));
    MT_TRY(mt_transpose(qkv[1], -2, -1, turned));
    MT_TRY(mt_matmul(*scaled, *turned, product));
    mt_tensor *scores = *product;
    if (mask != NULL) {
        mt_tensor **place = mt__temp(call);
        MT_TRY(mt_add(scores, mask, place));
        scores = *place;
    }
    if (mt__arg_bool(call, 5)) {
        MT_TRY(hide_later(call, &scores));
    }
    mt_tensor *weights;
    if (mask != NULL) {
        MT_TRY(safe_softmax(call, scores, &weights));
    } else {
        mt_tensor **place = mt__temp(call);
        MT_TRY(mt_softmax(scores, -1, MT_DTYPE_NONE, place));
        weights = *place;
    }
    if (dropout != 0) {
        mt_tensor **place = mt__temp(call);
        MT_TRY(mt_dropout(weights, dropout, true, place));
        weights = *place;
    }
    return mt_matmul(weights, qkv[2], mt__result_place(call, 0));
}

int mt__run_scaled_dot_product_attention(mt__call *call)
{
    mt_tensor *qkv[3] = {call->args[0].of.tensor, call->args[1].of.tensor, call->args[2].of.tensor};
    mt_tensor *given = mt__arg_tensor(call, 3);
    MT_TRY(check_arguments(qkv, given));
    mt_dtype dtype = (mt_dtype)qkv[0]->dtype;
    mt_tensor *mask;
    MT_TRY(additive_mask(call, given, dtype, &mask));
    int64_t depth = qkv[0]->sizes[qkv[0]->n_dims - 1];
    double scale = scale_of(call, 6, qkv[0]);
    bool fused = mt__arg_real(call, 4) == 0 && depth > 0 && is_fusable(qkv[0], qkv[1], qkv[2]);
    if (fused && mask != NULL) {
        mt__shape scores = score_shape(qkv[0], qkv[1]);
        bool wanted = given->requires_grad && mt_grad_enabled(); /* the leaf has none for masks */
        fused = !wanted && mask->n_dims >= 2 && spreads(mask, &scores);
    }
    if (!fused) {
        return attention_by_parts(call, qkv, mask, scale);
    }
    return mt__scaled_dot_product_flash_attention_for_cpu(
        qkv[0], qkv[1], qkv[2], 0, mt__arg_bool(call, 5), mask,
        mt__arg_given(call, 6) ? &scale : NULL, mt__result_place(call, 0), mt__temp(call));
}
