/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers and losses made of other rows: dropout of channels, norms, two losses, a pooling.
 */
#include "mindtorch/ops/nn/op_nn_support.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <float.h>
#include <inttypes.h>

/* ---- dropout --------------------------------------------------------------------------------- */

/* 0 or 1 / (1 - p) each, in `shape` and of the input's type. */
static int drop_mask(mt__call *call, const mt_tensor *input, const mt__shape *shape, double p,
                     mt_tensor **out)
{
    mt_tensor **mask = mt__temp(call);
    MT_TRY(mt_empty_with(shape->sizes, shape->n_dims, (mt_dtype)input->dtype, call->device, mask));
    *out = *mask;
    if (p == 1.0) {
        return mt_fill_scalar_(*mask, mt_int(0));
    }
    MT_TRY(mt_bernoulli_(*mask, 1.0 - p));
    return mt_div_scalar_(*mask, mt_real(1.0 - p));
}

int mt__run_dropout_(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    double p = mt__arg_real(call, 1);
    MT_TRY(mt__need_probability(p));
    if (p != 0.0 && mt__arg_bool(call, 2) && self->numel != 0) {
        mt_tensor *mask = NULL;
        mt__shape shape = mt__tensor_shape(self);
        MT_TRY(drop_mask(call, self, &shape, p, &mask));
        MT_TRY(mt_mul_(self, mask));
    }
    mt__result_same(call, 0, self);
    return MT_OK;
}

/* The mask of whole channels (dimension 1 of each sample); *mask NULL: nothing is dropped. */
static int channel_mask(mt__call *call, mt_tensor **mask)
{
    mt_tensor *input = mt__arg_tensor(call, 0);
    double p = mt__arg_real(call, 1);
    *mask = NULL;
    MT_TRY(mt__need_probability(p));
    if (p == 0.0 || !mt__arg_bool(call, 2) || input->numel == 0) {
        return MT_OK;
    }
    if (input->n_dims < 2) {
        return mtb_fail(MT_ERUNTIME, "Feature dropout requires at least 2 dimensions in the input");
    }
    mt__shape shape = mt__tensor_shape(input);
    for (uint32_t i = 2; i < shape.n_dims; i++) {
        shape.sizes[i] = 1;
    }
    return drop_mask(call, input, &shape, p, mask);
}

int mt__run_feature_dropout(mt__call *call)
{
    mt_tensor *input = mt__arg_tensor(call, 0);
    mt_tensor *mask = NULL;
    MT_TRY(channel_mask(call, &mask));
    if (mask == NULL) {
        mt__result_same(call, 0, input);
        return MT_OK;
    }
    return mt_mul(input, mask, mt__result_place(call, 0));
}

int mt__run_feature_dropout_(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *mask = NULL;
    MT_TRY(channel_mask(call, &mask));
    if (mask != NULL) {
        MT_TRY(mt_mul_(self, mask));
    }
    mt__result_same(call, 0, self);
    return MT_OK;
}

/* ---- norms ----------------------------------------------------------------------------------- */

static int check_channels(const mt_tensor *input, const mt_tensor *vector, const char *name)
{
    char have[MT_SHAPE_TEXT];
    char want[MT_SHAPE_TEXT];
    if (vector == NULL || (vector->n_dims == 1 && vector->sizes[0] == input->sizes[1])) {
        return MT_OK;
    }
    return mtb_fail(MT_ERUNTIME,
                    "Expected %s to be a vector of size equal to the number of channels in input, "
                    "but got %s of shape %s and input of shape %s",
                    name, name, mt__shape_text(vector->sizes, vector->n_dims, have),
                    mt__shape_text(input->sizes, input->n_dims, want));
}

static int check_groups(const mt_tensor *input, int64_t groups)
{
    char text[MT_SHAPE_TEXT];
    uint32_t channels = 0;
    if (input->n_dims == 0) {
        return mtb_fail(MT_EINDEX, "Dimension specified as 0 but tensor has no dimensions");
    }
    MT_TRY(mt__wrap_dim(1, input->n_dims, &channels));
    if (groups <= 0) {
        return mtb_fail(MT_ERUNTIME, "Expected num groups to be greater than 0, got %" PRId64,
                        groups);
    }
    if (input->sizes[1] % groups != 0) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected number of channels in input to be divisible by num_groups, but "
                        "got input of shape %s and num_groups=%" PRId64,
                        mt__shape_text(input->sizes, input->n_dims, text), groups);
    }
    return MT_OK;
}

/* A vector with one element a channel, to be broadcast against (N, C, *). */
static int by_channel(mt__call *call, mt_tensor *vector, uint32_t n_dims, mt_tensor **out)
{
    mt_tensor **turned = mt__temp(call);
    mt__shape shape = {.n_dims = n_dims - 1, .sizes = {vector->sizes[0]}};
    for (uint32_t i = 1; i < shape.n_dims; i++) {
        shape.sizes[i] = 1;
    }
    MT_TRY(mt_reshape(vector, shape.sizes, shape.n_dims, turned));
    *out = *turned;
    return MT_OK;
}

int mt__run_group_norm(mt__call *call)
{
    mt_tensor *input = mt__arg_tensor(call, 0);
    int64_t groups = mt__arg_int(call, 1);
    mt_tensor *weight = mt__arg_tensor(call, 2);
    mt_tensor *bias = mt__arg_tensor(call, 3);
    MT_TRY(check_groups(input, groups));
    MT_TRY(check_channels(input, weight, "weight"));
    MT_TRY(check_channels(input, bias, "bias"));
    mt_dtype given = (mt_dtype)input->dtype;
    mt_dtype compute = given;
    MT_TRY(mt__norm_type(input, (mt_tensor *const[]){weight, bias}, 2, &compute));
    MT_TRY(mt__converted(call, input, compute, &input));
    int64_t count = input->sizes[0] * groups;
    const int64_t parts[] = {input->sizes[0], groups, count == 0 ? 0 : input->numel / count};
    mt__shape shape = mt__tensor_shape(input);
    mt_tensor **grouped = mt__temp(call);
    mt_tensor **normal = mt__temp(call);
    mt_tensor **result = mt__temp(call);
    mt_tensor *vector = NULL;
    MT_TRY(mt_reshape(input, parts, 3, grouped));
    MT_TRY(mt_layer_norm(*grouped, &parts[2], 1, NULL, NULL, mt__arg_real(call, 4), normal));
    MT_TRY(mt_reshape(*normal, shape.sizes, shape.n_dims, result));
    if (weight != NULL) {
        mt_tensor **scaled = mt__temp(call);
        MT_TRY(by_channel(call, weight, shape.n_dims, &vector));
        MT_TRY(mt_mul(*result, vector, scaled));
        result = scaled;
    }
    if (bias != NULL) {
        mt_tensor **moved = mt__temp(call);
        MT_TRY(by_channel(call, bias, shape.n_dims, &vector));
        MT_TRY(mt_add(*result, vector, moved));
        result = moved;
    }
    if (weight == NULL && bias == NULL) { /* a view of what layer_norm made: not for a leaf */
        mt_tensor **own = mt__temp(call);
        MT_TRY(mt_clone(*result, own));
        result = own;
    }
    mt_tensor *typed = NULL;
    MT_TRY(mt__converted(call, *result, given, &typed));
    mt__result_same(call, 0, typed);
    return MT_OK;
}

static int check_normalized(const mt_tensor *input, const mt_value *normalized,
                            const mt_tensor *weight)
{
    char have[MT_SHAPE_TEXT];
    char want[MT_SHAPE_TEXT];
    const int64_t *sizes = normalized->of.ints;
    uint32_t n = normalized->count;
    mt__shape_text(sizes, n, want);
    if (n == 0) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected normalized_shape to be at least 1-dimensional, i.e., "
                        "containing at least one element, but got normalized_shape = []");
    }
    if (n > input->n_dims) {
        return mtb_fail(MT_EVALUE, "Input tensor must have at least %u dimensions, but got %u", n,
                        (unsigned)input->n_dims);
    }
    bool fits = true;
    for (uint32_t i = 0; fits && i < n; i++) {
        fits = input->sizes[input->n_dims - n + i] == sizes[i];
    }
    if (!fits) {
        return mtb_fail(MT_ERUNTIME,
                        "Given normalized_shape=%s, expected input with shape [*%s, but got input "
                        "of size%s",
                        want, want + 1, mt__shape_text(input->sizes, input->n_dims, have));
    }
    fits = weight == NULL || weight->n_dims == n;
    for (uint32_t i = 0; weight != NULL && fits && i < n; i++) {
        fits = weight->sizes[i] == sizes[i];
    }
    if (!fits) {
        return mtb_fail(
            MT_ERUNTIME,
            "Expected weight to be of same shape as normalized_shape, but got weight of "
            "shape %s and normalized_shape = %s",
            mt__shape_text(weight->sizes, weight->n_dims, have), want);
    }
    return MT_OK;
}

int mt__run_rms_norm(mt__call *call)
{
    mt_tensor *input = mt__arg_tensor(call, 0);
    mt_tensor *weight = mt__arg_tensor(call, 2);
    MT_TRY(check_normalized(input, &call->args[1], weight));
    MT_TRY(mt__need_real(call, (mt_dtype)input->dtype));
    double eps = input->dtype == MT_DTYPE_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    if (mt__arg_given(call, 3)) {
        eps = mt__arg_real(call, 3);
    }
    int64_t dims[MT_MAX_DIMS];
    uint32_t n = call->args[1].count;
    for (uint32_t i = 0; i < n; i++) {
        dims[i] = (int64_t)i - (int64_t)n;
    }
    mt_tensor **square = mt__temp(call);
    mt_tensor **mean = mt__temp(call);
    mt_tensor **moved = mt__temp(call);
    mt_tensor **factor = mt__temp(call);
    mt_tensor **result = mt__temp(call);
    MT_TRY(mt_pow_tensor_scalar(input, mt_int(2), square));
    MT_TRY(mt_mean(*square, dims, n, true, mean));
    MT_TRY(mt_add_scalar(*mean, mt_real(eps), moved));
    MT_TRY(mt_rsqrt(*moved, factor));
    MT_TRY(mt_mul(input, *factor, result));
    if (weight != NULL) {
        mt_tensor **scaled = mt__temp(call);
        MT_TRY(mt_mul(*result, weight, scaled));
        result = scaled;
    }
    if ((*result)->dtype != input->dtype) { /* of a wider weight */
        mt_tensor **narrow = mt__temp(call);
        MT_TRY(mt_type_as(*result, input, narrow));
        result = narrow;
    }
    mt__result_same(call, 0, *result);
    return MT_OK;
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* delta times smooth_l1_loss with that beta. Without a reduction it has self's type. */
int mt__run_huber_loss(mt__call *call)
{
    double delta = mt__arg_real(call, 3);
    if (!(delta > 0.0)) {
        return mtb_fail(MT_ERUNTIME, "huber_loss does not support non-positive values for delta.");
    }
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mt__refuse_type("huber_cpu", dtype);
    }
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor **smooth = mt__temp(call);
    mt_tensor **loss = mt__temp(call);
    MT_TRY(mt__check_castable(dtype, (mt_dtype)self->dtype));
    MT_TRY(mt_smooth_l1_loss(self, mt__arg_tensor(call, 1), mt__arg_int(call, 2), delta, smooth));
    MT_TRY(mt_mul_scalar(*smooth, mt_real(delta), loss));
    if ((*loss)->dtype != self->dtype) {
        mt_tensor **own = mt__temp(call);
        MT_TRY(mt_type_as(*loss, self, own));
        loss = own;
    }
    mt__result_same(call, 0, *loss);
    return MT_OK;
}

/* target log(target), 0 where target is 0, and there without a gradient. */
static int entropy(mt__call *call, mt_tensor *target, mt_tensor **out)
{
    mt_tensor **zero = mt__temp(call);
    mt_tensor **known = mt__temp(call);
    mt_tensor **log = mt__temp(call);
    mt_tensor **product = mt__temp(call);
    mt_tensor **result = mt__temp(call);
    MT_TRY(mt_eq_scalar(target, mt_int(0), zero));
    MT_TRY(mt_masked_fill_scalar(target, *zero, mt_int(1), known));
    MT_TRY(mt_log(*known, log));
    MT_TRY(mt_mul(target, *log, product));
    MT_TRY(mt_masked_fill_scalar(*product, *zero, mt_int(0), result));
    *out = *result;
    return MT_OK;
}

int mt__run_kl_div(mt__call *call)
{
    mt_tensor *self = mt__arg_tensor(call, 0);
    mt_tensor *target = mt__arg_tensor(call, 1);
    int64_t reduction = mt__arg_int(call, 2);
    MT_TRY(mt__need_reduction(reduction));
    if (mt__tensor_category(self) != MT_CATEGORY_REAL ||
        mt__tensor_category(target) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME, "kl_div: Integral inputs not supported.");
    }
    mt_tensor **first = mt__temp(call);
    mt_tensor **result = mt__temp(call);
    if (mt__arg_bool(call, 3)) { /* exp(target) (target - self) */
        mt_tensor **weight = mt__temp(call);
        MT_TRY(mt_sub(target, self, first));
        MT_TRY(mt_exp(target, weight));
        MT_TRY(mt_mul(*weight, *first, result));
    } else {
        mt_tensor *own = NULL;
        MT_TRY(mt_mul(target, self, first));
        MT_TRY(entropy(call, target, &own));
        MT_TRY(mt_sub(own, *first, result));
    }
    return mt__loss_mean_or_sum(call, *result, reduction);
}

/* x / max(|x|, eps) along dim. */
static int unit_along(mt__call *call, mt_tensor *x, int64_t dim, double eps, mt_tensor **out)
{
    mt_tensor **norm = mt__temp(call);
    mt_tensor **size = mt__temp(call);
    mt_tensor **unit = mt__temp(call);
    MT_TRY(mt_linalg_vector_norm(x, mt_int(2), &dim, 1, true, norm));
    MT_TRY(mt_clamp_min(*norm, mt_real(eps), size));
    MT_TRY(mt_div(x, *size, unit));
    *out = *unit;
    return MT_OK;
}

int mt__run_cosine_similarity(mt__call *call)
{
    int64_t dim = mt__arg_int(call, 2);
    double eps = mt__arg_real(call, 3);
    mt_tensor *first = NULL;
    mt_tensor *second = NULL;
    mt_dtype dtype = MT_DTYPE_NONE;
    MT_TRY(mt__promote_values(call->args, 2, &dtype));
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME,
                        "expected common dtype to be floating point, yet common dtype is %s",
                        mt__type_title(dtype));
    }
    mt_tensor *pair[] = {call->args[0].of.tensor, call->args[1].of.tensor}; /* given (CA1) */
    mt__shape shape = mt__tensor_shape(pair[0]);
    MT_TRY(mt__shape_broadcast(&shape, pair[1]->sizes, pair[1]->n_dims));
    for (uint32_t i = 0; i < 2; i++) { /* dim is one of the common sizes */
        mt_tensor **spread = mt__temp(call);
        if (pair[i]->dtype != (uint32_t)dtype) {
            mt_tensor **turned = mt__temp(call);
            MT_TRY(mt_to_with(pair[i], dtype, pair[i]->device, false, false, turned));
            pair[i] = *turned;
        }
        MT_TRY(mt_expand(pair[i], shape.sizes, shape.n_dims, spread));
        pair[i] = *spread;
    }
    MT_TRY(unit_along(call, pair[0], dim, eps, &first));
    MT_TRY(unit_along(call, pair[1], dim, eps, &second));
    mt_tensor **product = mt__temp(call);
    MT_TRY(mt_mul(first, second, product));
    return mt_sum(*product, &dim, 1, false, mt__result_place(call, 0));
}

/* ---- pooling --------------------------------------------------------------------------------- */

static int64_t only(const mt_value *list, int64_t otherwise)
{
    return list->count == 0 ? otherwise : list->of.ints[0];
}

int mt__run_max_pool1d_with_indices(mt__call *call)
{
    const mt_value *a = call->args;
    for (uint32_t i = 1; i < 5; i++) {
        if (a[i].count > 1 || (i == 1 && a[i].count == 0)) {
            return mtb_fail(MT_ERUNTIME,
                            "max_pool1d() argument '%s' should contain one int (got %u)",
                            call->row->params[i].name, a[i].count);
        }
    }
    int64_t kernel = only(&a[1], 1);
    mt_tensor **image = mt__temp(call);
    mt_tensor **pooled = mt__temp(call);
    mt_tensor **indices = mt__temp(call);
    mt_tensor *out = NULL;
    MT_TRY(mt_unsqueeze(mt__arg_tensor(call, 0), -2, image));
    MT_TRY(mt_max_pool2d_with_indices(
        *image, (int64_t[]){1, kernel}, 2, (int64_t[]){1, only(&a[2], kernel)}, 2,
        (int64_t[]){0, only(&a[3], 0)}, 2, (int64_t[]){1, only(&a[4], 1)}, 2, mt__arg_bool(call, 5),
        pooled, indices));
    MT_TRY(mt_squeeze_dim(*pooled, -2, &out));
    mt__give(call, 0, out);
    return mt_squeeze_dim(*indices, -2, mt__result_place(call, 1));
}
