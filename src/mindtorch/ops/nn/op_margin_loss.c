/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses with margins and their like, and activations that are made of other rows.
 */
#include "mindtorch/ops/nn/op_nn_support.h"
#include "mindtorch/ops/nn/selu_constants.h"
#include "mindtorch/ops/pointwise/pointwise_plan.h"
#include "mindtorch/ops/type_names.h"

#include <float.h>
#include <math.h>

/* a - b as a temporary. */
static int difference(mt__call *call, mt_tensor *a, mt_tensor *b, mt_tensor **out)
{
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_sub(a, b, place));
    *out = *place;
    return MT_OK;
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* x where y is 1, max(0, margin - x) where it is -1 */
int mt__run_hinge_embedding_loss(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *target = call->args[1].of.tensor;
    mt_tensor **below = mt__temp(call);
    mt_tensor **kept = mt__temp(call);
    mt_tensor **mask = mt__temp(call);
    mt_tensor **other = mt__temp(call);
    mt_tensor **first = mt__temp(call);
    mt_tensor **second = mt__temp(call);
    mt_tensor **sum = mt__temp(call);
    MT_TRY(mt_rsub_scalar(self, mt_real(mt__arg_real(call, 2)), below));
    MT_TRY(mt_clamp_min(*below, mt_int(0), kept));
    if ((*kept)->dtype != self->dtype) { /* integers: the loss is of their type, as in torch */
        mt_tensor **typed = mt__temp(call);
        MT_TRY(mt_to_with(*kept, (mt_dtype)self->dtype, call->device, false, false, typed));
        kept = typed;
    }
    MT_TRY(mt_eq_scalar(target, mt_int(1), mask));
    MT_TRY(mt_eq_scalar(target, mt_int(-1), other));
    /* other targets have both parts, as in torch */
    MT_TRY(mt_masked_fill_scalar(*kept, *mask, mt_int(0), first));
    MT_TRY(mt_masked_fill_scalar(self, *other, mt_int(0), second));
    MT_TRY(mt_add(*first, *second, sum));
    return mt__loss_mean_or_sum(call, *sum, mt__arg_int(call, 3));
}

/* max(0, -y (a - b) + margin) */
int mt__run_margin_ranking_loss(mt__call *call)
{
    mt_tensor *change = NULL;
    mt_tensor **turned = mt__temp(call);
    mt_tensor **product = mt__temp(call);
    mt_tensor **moved = mt__temp(call);
    mt_tensor **loss = mt__temp(call);
    MT_TRY(difference(call, call->args[0].of.tensor, call->args[1].of.tensor, &change));
    MT_TRY(mt_neg(call->args[2].of.tensor, turned));
    MT_TRY(mt_mul(*turned, change, product));
    MT_TRY(mt_add_scalar(*product, mt_real(mt__arg_real(call, 3)), moved));
    MT_TRY(mt_clamp_min(*moved, mt_int(0), loss));
    return mt__loss_mean_or_sum(call, *loss, mt__arg_int(call, 4));
}

/* a . b / sqrt((|a|^2 + eps) (|b|^2 + eps)) along the last dimension */
static int cosine(mt__call *call, mt_tensor *a, mt_tensor *b, mt_tensor **out)
{
    static const int64_t last = -1;
    mt_tensor *const pairs[3][2] = {{a, b}, {a, a}, {b, b}};
    mt_tensor *sums[3];
    for (uint32_t i = 0; i < 3; i++) {
        mt_tensor **product = mt__temp(call);
        mt_tensor **sum = mt__temp(call);
        MT_TRY(mt_mul(pairs[i][0], pairs[i][1], product));
        MT_TRY(mt_sum(*product, &last, 1, false, sum));
        sums[i] = *sum;
        if (i > 0) {
            mt_tensor **held = mt__temp(call);
            MT_TRY(mt_add_scalar(*sum, mt_real(9.999999960041972e-13), held)); /* 1e-12 as float */
            sums[i] = *held;
        }
    }
    mt_tensor **area = mt__temp(call);
    mt_tensor **root = mt__temp(call);
    mt_tensor **ratio = mt__temp(call);
    MT_TRY(mt_mul(sums[1], sums[2], area));
    MT_TRY(mt_sqrt(*area, root));
    MT_TRY(mt_div(sums[0], *root, ratio));
    *out = *ratio;
    return MT_OK;
}

/* 1 - cos where y is 1, max(0, cos - margin) where it is -1 */
int mt__run_cosine_embedding_loss(mt__call *call)
{
    mt_tensor *a = call->args[0].of.tensor;
    mt_tensor *target = call->args[2].of.tensor;
    mt_tensor *cos = NULL;
    char text[2][MT_SHAPE_TEXT];
    if (target->n_dims > 1 || a->n_dims != target->n_dims + 1U ||
        call->args[1].of.tensor->n_dims != a->n_dims) {
        return mtb_fail(MT_ERUNTIME,
                        "%uD target tensor expects %uD input tensors, but found inputs with sizes "
                        "%s and %s.",
                        (unsigned)target->n_dims, (unsigned)target->n_dims + 1U,
                        mt__shape_text(a->sizes, a->n_dims, text[0]),
                        mt__shape_text(call->args[1].of.tensor->sizes,
                                       call->args[1].of.tensor->n_dims, text[1]));
    }
    MT_TRY(cosine(call, a, call->args[1].of.tensor, &cos));
    mt_tensor **near = mt__temp(call);
    mt_tensor **far = mt__temp(call);
    mt_tensor **moved = mt__temp(call);
    mt_tensor **mask = mt__temp(call);
    mt_tensor **other = mt__temp(call);
    mt_tensor **zero = mt__temp(call);
    mt_tensor **first = mt__temp(call);
    mt_tensor **second = mt__temp(call);
    mt_tensor **sum = mt__temp(call);
    MT_TRY(mt_rsub_scalar(cos, mt_int(1), near));
    MT_TRY(mt_sub_scalar(cos, mt_real(mt__arg_real(call, 3)), moved));
    MT_TRY(mt_clamp_min(*moved, mt_int(0), far));
    MT_TRY(mt_zeros_like(cos, zero));
    MT_TRY(mt_eq_scalar(target, mt_int(1), mask));
    MT_TRY(mt_eq_scalar(target, mt_int(-1), other));
    MT_TRY(mt_where(*mask, *near, *zero, first));
    MT_TRY(mt_where(*other, *far, *zero, second));
    MT_TRY(mt_add(*first, *second, sum));
    return mt__loss_mean_or_sum(call, *sum, mt__arg_int(call, 4));
}

static int distance(mt__call *call, mt_tensor *a, mt_tensor *b, double p, double eps, bool keep,
                    mt_tensor **out)
{
    static const int64_t last = -1;
    mt_tensor *change = NULL;
    mt_tensor **moved = mt__temp(call);
    MT_TRY(difference(call, a, b, &change));
    MT_TRY(mt_add_scalar(change, mt_real(eps), moved));
    return mt_linalg_vector_norm(*moved, mt_real(p), &last, 1, keep, out);
}

int mt__run_pairwise_distance(mt__call *call)
{
    return distance(call, call->args[0].of.tensor, call->args[1].of.tensor, mt__arg_real(call, 2),
                    mt__arg_real(call, 3), mt__arg_bool(call, 4), mt__result_place(call, 0));
}

int mt__run_triplet_margin_loss(mt__call *call)
{
    mt_tensor *a = call->args[0].of.tensor;
    mt_tensor *near = call->args[1].of.tensor;
    mt_tensor *far = call->args[2].of.tensor;
    double p = mt__arg_real(call, 4);
    double eps = mt__arg_real(call, 5);
    mt_tensor **to_near = mt__temp(call);
    mt_tensor **to_far = mt__temp(call);
    if (a->n_dims != near->n_dims || a->n_dims != far->n_dims) {
        return mtb_fail(MT_ERUNTIME,
                        "The anchor, positive, and negative tensors are expected to have the same "
                        "number of dimensions, but got: anchor %uD, positive %uD, and negative %uD "
                        "inputs",
                        (unsigned)a->n_dims, (unsigned)near->n_dims, (unsigned)far->n_dims);
    }
    MT_TRY(distance(call, a, near, p, eps, false, to_near));
    MT_TRY(distance(call, a, far, p, eps, false, to_far));
    if (mt__arg_bool(call, 6)) {
        mt_tensor **between = mt__temp(call);
        mt_tensor **smaller = mt__temp(call);
        MT_TRY(distance(call, near, far, p, eps, false, between));
        MT_TRY(mt_minimum(*to_far, *between, smaller));
        to_far = smaller;
    }
    mt_tensor **moved = mt__temp(call);
    mt_tensor *change = NULL;
    mt_tensor **loss = mt__temp(call);
    MT_TRY(mt_add_scalar(*to_near, mt_real(mt__arg_real(call, 3)), moved));
    MT_TRY(difference(call, *moved, *to_far, &change));
    MT_TRY(mt_clamp_min(change, mt_int(0), loss));
    return mt__loss_mean_or_sum(call, *loss, mt__arg_int(call, 7));
}

/* Stirling's approximation of log(t!), 0 for targets up to 1. */
static int stirling(mt__call *call, mt_tensor *target, mt_tensor **out)
{
    mt_tensor **log = mt__temp(call);
    mt_tensor **product = mt__temp(call);
    mt_tensor **less = mt__temp(call);
    mt_tensor **circle = mt__temp(call);
    mt_tensor **half = mt__temp(call);
    mt_tensor **sum = mt__temp(call);
    mt_tensor **small = mt__temp(call);
    mt_tensor **rest = mt__temp(call);
    MT_TRY(mt_log(target, log));
    MT_TRY(mt_mul(target, *log, product));
    MT_TRY(mt_sub(*product, target, less));
    MT_TRY(mt_mul_scalar(target, mt_real(2.0 * 3.14159265358979323846), circle));
    mt_tensor **bent = mt__temp(call);
    MT_TRY(mt_log(*circle, bent));
    MT_TRY(mt_mul_scalar(*bent, mt_real(0.5), half));
    MT_TRY(mt_add(*less, *half, sum));
    MT_TRY(mt_le_scalar(target, mt_int(1), small));
    MT_TRY(mt_masked_fill_scalar(*sum, *small, mt_int(0), rest));
    *out = *rest;
    return MT_OK;
}

int mt__run_poisson_nll_loss(mt__call *call)
{
    mt_tensor *input = call->args[0].of.tensor;
    mt_tensor *target = call->args[1].of.tensor;
    mt_tensor **product = mt__temp(call);
    mt_tensor **loss = mt__temp(call);
    if (mt__arg_bool(call, 2)) { /* exp(x) - t x */
        mt_tensor **grown = mt__temp(call);
        MT_TRY(mt_exp(input, grown));
        MT_TRY(mt_mul(target, input, product));
        MT_TRY(mt_sub(*grown, *product, loss));
    } else { /* x - t log(x + eps) */
        mt_tensor **moved = mt__temp(call);
        mt_tensor **log = mt__temp(call);
        MT_TRY(mt_add_scalar(input, mt_real(mt__arg_real(call, 4)), moved));
        MT_TRY(mt_log(*moved, log));
        MT_TRY(mt_mul(target, *log, product));
        MT_TRY(mt_sub(input, *product, loss));
    }
    if (mt__arg_bool(call, 3)) {
        mt_tensor *more = NULL;
        mt_tensor **whole = mt__temp(call);
        MT_TRY(stirling(call, target, &more));
        MT_TRY(mt_add(*loss, more, whole));
        loss = whole;
    }
    return mt__loss_mean_or_sum(call, *loss, mt__arg_int(call, 5));
}

/* log(1 + exp(-y x)) */
int mt__run_soft_margin_loss(mt__call *call)
{
    mt_tensor **turned = mt__temp(call);
    mt_tensor **product = mt__temp(call);
    mt_tensor **grown = mt__temp(call);
    mt_tensor **loss = mt__temp(call);
    MT_TRY(mt__need_real(call, (mt_dtype)call->args[0].of.tensor->dtype));
    MT_TRY(mt_neg(call->args[1].of.tensor, turned));
    MT_TRY(mt_mul(*turned, call->args[0].of.tensor, product));
    mt__shape have = mt__tensor_shape(call->args[0].of.tensor);
    mt__shape both = mt__tensor_shape(*product);
    if (!mt__shape_equal(&have, &both)) {
        char text[2][MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME, "output with shape %s doesn't match the broadcast shape %s",
                        mt__shape_text(have.sizes, have.n_dims, text[0]),
                        mt__shape_text(both.sizes, both.n_dims, text[1]));
    }
    MT_TRY(mt_exp(*product, grown));
    MT_TRY(mt_log1p(*grown, loss));
    if ((*loss)->dtype != call->args[0].of.tensor->dtype) {
        mt_tensor **typed = mt__temp(call);
        MT_TRY(mt_to_with(*loss, (mt_dtype)call->args[0].of.tensor->dtype, call->device, false,
                          false, typed));
        loss = typed;
    }
    return mt__loss_mean_or_sum(call, *loss, mt__arg_int(call, 2));
}

/* One sample becomes a batch of one: input [N, C], target [N] or [N, C]. */
static int with_batch(mt__call *call, bool many, mt_tensor **input, mt_tensor **target)
{
    *input = call->args[0].of.tensor;
    *target = call->args[1].of.tensor;
    uint32_t n = (*input)->n_dims;
    char text[2][MT_SHAPE_TEXT];
    if (n == 1 && (*target)->n_dims <= 1) {
        mt_tensor **row = mt__temp(call);
        mt_tensor **label = mt__temp(call);
        const int64_t sizes[2] = {1, (*target)->numel};
        MT_TRY(mt_unsqueeze(*input, 0, row));
        MT_TRY(mt_reshape(*target, many ? sizes : &sizes[1], many ? 2 : 1, label));
        *input = *row;
        *target = *label;
    }
    bool fits = (*input)->n_dims == 2 && (*input)->sizes[1] > 0 &&
                (*target)->n_dims == (many ? 2U : 1U) &&
                (*target)->sizes[0] == (*input)->sizes[0] &&
                (!many || (*target)->sizes[1] == (*input)->sizes[1]);
    if (!fits) {
        return mtb_fail(MT_ERUNTIME, "inconsistent target size: %s for input of size: %s",
                        mt__shape_text((*target)->sizes, (*target)->n_dims, text[0]),
                        mt__shape_text((*input)->sizes, (*input)->n_dims, text[1]));
    }
    return mt__need_type(*target, MT_DTYPE_I64);
}

/* [N] to the result; of a single sample 0-d. */
static int give_rows(mt__call *call, mt_tensor *rows, int64_t reduction)
{
    if (reduction != MT_REDUCTION_NONE || call->args[0].of.tensor->n_dims == 2) {
        return mt__loss_mean_or_sum(call, rows, reduction);
    }
    return mt_squeeze_dim(rows, 0, mt__result_place(call, 0));
}

/* x where it is above 0, else 0, also for NaN. */
static int above_zero(mt__call *call, mt_tensor *x, mt_tensor **out)
{
    mt_tensor **mask = mt__temp(call);
    MT_TRY(mt_gt_scalar(x, mt_int(0), mask));
    return mt_where_tensor_scalar(*mask, x, mt_int(0), out);
}

/* sum over j other than y of weight[y] max(0, margin - x[y] + x[j])^p / C */
int mt__run_multi_margin_loss(mt__call *call)
{
    mt_tensor *input = NULL;
    mt_tensor *target = NULL;
    mt_tensor *weight = mt__arg_tensor(call, 4);
    static const int64_t last = -1;
    int64_t reduction = mt__arg_int(call, 5);
    double p = mt__arg_real(call, 2);
    if (p != 1.0 && p != 2.0) {
        return mtb_fail(MT_ERUNTIME, "only p == 1 and p == 2 supported");
    }
    MT_TRY(with_batch(call, false, &input, &target));
    MT_TRY(mt__need_real(call, (mt_dtype)input->dtype));
    mt_tensor **label = mt__temp(call);
    mt_tensor **right = mt__temp(call);
    mt_tensor **above = mt__temp(call);
    mt_tensor **moved = mt__temp(call);
    mt_tensor **hinge = mt__temp(call);
    mt_tensor **others = mt__temp(call);
    mt_tensor **sum = mt__temp(call);
    mt_tensor **rows = mt__temp(call);
    MT_TRY(mt_unsqueeze(target, 1, label));
    MT_TRY(mt_gather(input, 1, *label, right));
    MT_TRY(mt_rsub_scalar(*right, mt_real(mt__arg_real(call, 3)), above));
    MT_TRY(mt_add(*above, input, moved));
    MT_TRY(above_zero(call, *moved, hinge));
    if (p == 2.0) {
        mt_tensor **square = mt__temp(call);
        MT_TRY(mt_mul(*hinge, *hinge, square));
        hinge = square;
    }
    MT_TRY(mt_scatter_scalar(*hinge, 1, *label, mt_int(0), others));
    MT_TRY(mt_sum(*others, &last, 1, false, sum));
    if (weight != NULL) {
        mt_tensor **each = mt__temp(call);
        mt_tensor **weighted = mt__temp(call);
        MT_TRY(mt_index_select(weight, 0, target, each));
        MT_TRY(mt_mul(*sum, *each, weighted));
        sum = weighted;
    }
    MT_TRY(mt_div_scalar(*sum, mt_int(input->sizes[1]), rows));
    return give_rows(call, *rows, reduction);
}

/* sum over targets t and j that are none of max(0, 1 - x[t] + x[j]) / C. Targets end at -1. */
int mt__run_multilabel_margin_loss(mt__call *call)
{
    mt_tensor *input = NULL;
    mt_tensor *target = NULL;
    static const int64_t both[] = {1, 2};
    MT_TRY(with_batch(call, true, &input, &target));
    MT_TRY(mt__need_real(call, (mt_dtype)input->dtype));
    mt_tensor **given = mt__temp(call);
    mt_tensor **counted = mt__temp(call);
    mt_tensor **valid = mt__temp(call);
    mt_tensor **place = mt__temp(call);
    mt_tensor **zeros = mt__temp(call);
    mt_tensor **hits = mt__temp(call);
    mt_tensor **free_class = mt__temp(call);
    mt_tensor **right = mt__temp(call);
    mt_tensor **tall = mt__temp(call);
    mt_tensor **wide = mt__temp(call);
    mt_tensor **above = mt__temp(call);
    mt_tensor **moved = mt__temp(call);
    mt_tensor **hinge = mt__temp(call);
    mt_tensor **rows = mt__temp(call);
    mt_tensor **columns = mt__temp(call);
    mt_tensor **mask = mt__temp(call);
    mt_tensor **kept = mt__temp(call);
    mt_tensor **sum = mt__temp(call);
    mt_tensor **mean = mt__temp(call);
    MT_TRY(mt_ge_scalar(target, mt_int(0), given));
    MT_TRY(mt_cumprod(*given, 1, counted)); /* int64: 1 up to the first -1 */
    MT_TRY(mt_ne_scalar(*counted, mt_int(0), valid));
    MT_TRY(mt_clamp_min(target, mt_int(0), place));
    MT_TRY(mt_zeros_like(*counted, zeros));
    MT_TRY(mt_scatter_add(*zeros, 1, *place, *counted, hits));
    MT_TRY(mt_eq_scalar(*hits, mt_int(0), free_class));
    MT_TRY(mt_gather(input, 1, *place, right));
    MT_TRY(mt_unsqueeze(*right, 2, tall));
    MT_TRY(mt_unsqueeze(input, 1, wide));
    MT_TRY(mt_rsub_scalar(*tall, mt_int(1), above));
    MT_TRY(mt_add(*above, *wide, moved));
    MT_TRY(above_zero(call, *moved, hinge));
    MT_TRY(mt_unsqueeze(*valid, 2, rows));
    MT_TRY(mt_unsqueeze(*free_class, 1, columns));
    MT_TRY(mt_logical_and(*rows, *columns, mask));
    MT_TRY(mt_where_tensor_scalar(*mask, *hinge, mt_int(0), kept));
    MT_TRY(mt_sum(*kept, both, 2, false, sum));
    MT_TRY(mt_div_scalar(*sum, mt_int(input->sizes[1]), mean));
    return give_rows(call, *mean, mt__arg_int(call, 2));
}

/* ---- activations ----------------------------------------------------------------------------- */

static int need_shrunk_type(const mt__call *call)
{
    const mt_tensor *self = call->args[0].of.tensor;
    return mt__tensor_category(self) == MT_CATEGORY_REAL
               ? MT_OK
               : mtb_fail(MT_ENOTSUP, "\"%s_cpu\" not implemented for '%s'", mt__op_name(call),
                          mt__type_title((mt_dtype)self->dtype));
}

/* 0 where |x| is at most lambd */
int mt__run_hardshrink(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor **size = mt__temp(call);
    mt_tensor **mask = mt__temp(call);
    MT_TRY(need_shrunk_type(call));
    MT_TRY(mt_abs(self, size));
    MT_TRY(mt_le_scalar(*size, mt_real(mt__arg_real(call, 1)), mask));
    return mt_masked_fill_scalar(self, *mask, mt_int(0), mt__result_place(call, 0));
}

/* x - lambd above lambd, x + lambd below -lambd, 0 between */
int mt__run_softshrink(mt__call *call)
{
    mt_tensor *self = call->args[0].of.tensor;
    double lambd = mt__arg_real(call, 1);
    mt_tensor **inside = mt__temp(call);
    MT_TRY(need_shrunk_type(call));
    bool single = self->dtype == MT_DTYPE_F32;
    double most = single ? (double)FLT_MAX : DBL_MAX;
    if (!(lambd >= 0.0 && lambd <= most)) {
        return mtb_fail(MT_ERUNTIME,
                        "lambda must be in range [0, %g] for input dtype %s, but found %g", most,
                        mt__type_title((mt_dtype)self->dtype), lambd);
    }
    MT_TRY(mt_clamp(self, &(mt_scalar){.kind = MT_KIND_REAL, .of.real = -lambd},
                    &(mt_scalar){.kind = MT_KIND_REAL, .of.real = lambd}, inside));
    return mt_sub(self, *inside, mt__result_place(call, 0));
}

/* ---- dropout that keeps mean and variance of SELU's outputs ---------------------------------- */

/* b x + a, where b is 0 with probability p; what is dropped becomes -alpha scale before. */
static int run_alpha(mt__call *call, bool channels)
{
    mt_tensor *input = call->args[0].of.tensor;
    double p = mt__arg_real(call, 1);
    MT_TRY(mt__need_probability(p));
    if (p == 0.0 || !mt__arg_bool(call, 2) || input->numel == 0) {
        mt__result_same(call, 0, input);
        return MT_OK;
    }
    mt__shape shape = mt__tensor_shape(input);
    if (channels && shape.n_dims < 2) {
        return mtb_fail(MT_ERUNTIME, "Feature dropout requires at least 2 dimensions in the input");
    }
    for (uint32_t i = 2; channels && i < shape.n_dims; i++) {
        shape.sizes[i] = 1;
    }
    mt_tensor **kept = mt__temp(call);
    mt_tensor **added = mt__temp(call);
    mt_tensor **scaled = mt__temp(call);
    double alpha = MT_SELU_ALPHA * MT_SELU_SCALE;
    double factor = p == 1.0 ? 0.0 : 1.0 / sqrt((alpha * alpha * p + 1.0) * (1.0 - p));
    MT_TRY(mt_empty_with(shape.sizes, shape.n_dims, (mt_dtype)input->dtype, call->device, kept));
    MT_TRY(p == 1.0 ? mt_fill_scalar_(*kept, mt_int(0)) : mt_bernoulli_(*kept, 1.0 - p));
    MT_TRY(mt_sub_scalar(*kept, mt_int(1), added)); /* -1 where it is dropped */
    MT_TRY(mt_mul_scalar_(*added, mt_real(alpha * factor)));
    MT_TRY(mt_add_scalar_(*added, mt_real(alpha * factor * p)));
    MT_TRY(mt_mul_scalar_(*kept, mt_real(factor)));
    if (mt__is_in_place(call)) {
        MT_TRY(mt_mul_(input, *kept));
        MT_TRY(mt_add_(input, *added));
        mt__result_same(call, 0, input);
        return MT_OK;
    }
    MT_TRY(mt_mul(input, *kept, scaled));
    return mt_add(*scaled, *added, mt__result_place(call, 0));
}

MT_RUN(alpha_dropout, run_alpha, false)
MT_RUN(feature_alpha_dropout, run_alpha, true)
