/* SPDX-License-Identifier: Apache-2.0
 *
 * cross_entropy_loss: log_softmax, then nll_loss for class indices, or a weighted sum for class
 * probabilities (a target of the input's own sizes). Composite: every step is differentiated.
 */
#include "mindtorch/ops/nn/op_nn_support.h"
#include "mindtorch/ops/type_names.h"

enum {
    SELF,
    TARGET,
    WEIGHT,
    REDUCTION,
    IGNORE_INDEX,
    LABEL_SMOOTHING
};

/* Data that the three variants share. */
typedef struct entropy {
    mt_tensor *logs; /* log_softmax over the classes */
    mt_tensor *target;
    mt_tensor *weight; /* as [1, C, 1...], or NULL */
    int64_t class_dim;
    int64_t classes;
    int64_t reduction;
    double smoothing;
} entropy;

static int check_weight(const mt_tensor *weight, int64_t classes)
{
    if (weight == NULL || (weight->n_dims == 1 && weight->numel == classes)) {
        return MT_OK;
    }
    char text[MT_SHAPE_TEXT];
    return mtb_fail(MT_ERUNTIME,
                    "cross_entropy: weight tensor should be defined either for all %lld classes or "
                    "no classes but got weight tensor of shape: %s",
                    (long long)classes, mt__shape_text(weight->sizes, weight->n_dims, text));
}

/* log_softmax and the weight in the input's dimensions. */
static int begin(mt__call *call, entropy *e)
{
    mt_tensor *self = mt__arg_tensor(call, SELF);
    e->target = mt__arg_tensor(call, TARGET);
    e->weight = mt__arg_tensor(call, WEIGHT);
    e->reduction = mt__arg_int(call, REDUCTION);
    e->smoothing = mt__arg_real(call, LABEL_SMOOTHING);
    MT_TRY(mt__need_reduction(e->reduction));
    if (e->smoothing > 1.0) {
        return mtb_fail(MT_ERUNTIME, "label_smoothing must be between 0.0 and 1.0. Got: %g",
                        e->smoothing);
    }
    e->class_dim = self->n_dims <= 1 ? 0 : 1;
    e->classes = self->n_dims == 0 ? 1 : self->sizes[e->class_dim];
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_log_softmax(self, e->class_dim, MT_DTYPE_NONE, place));
    e->logs = *place;
    return MT_OK;
}

static int widen_weight(mt__call *call, entropy *e)
{
    MT_TRY(check_weight(e->weight, e->classes));
    if (e->weight == NULL || e->logs->n_dims < 2) {
        return MT_OK;
    }
    int64_t sizes[MT_MAX_DIMS];
    for (uint32_t i = 0; i < e->logs->n_dims; i++) {
        sizes[i] = i == 1 ? e->classes : 1;
    }
    mt_tensor **place = mt__temp(call);
    MT_TRY(mt_reshape(e->weight, sizes, e->logs->n_dims, place));
    e->weight = *place;
    return MT_OK;
}

/* Target with probabilities. */
static int run_probabilities(mt__call *call, entropy *e)
{
    if (mt__tensor_category(e->target) != MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME,
                        "Expected floating point type for target with class probabilities, got %s",
                        mt__type_title((mt_dtype)e->target->dtype));
    }
    if (mt__arg_int(call, IGNORE_INDEX) >= 0) {
        return mtb_fail(MT_ERUNTIME, "ignore_index is not supported for floating point target");
    }
    MT_TRY(begin(call, e));
    if (e->logs->n_dims == 0) {
        return mtb_fail(MT_EINDEX, "Dimension specified as 1 but tensor has no dimensions");
    }
    MT_TRY(widen_weight(call, e));
    mt_tensor *target = e->target;
    if (e->smoothing > 0.0) {
        mt_tensor **scaled = mt__temp(call);
        mt_tensor **smooth = mt__temp(call);
        MT_TRY(mt_mul_scalar(target, mt_real(1.0 - e->smoothing), scaled));
        MT_TRY(mt_add_scalar(*scaled, mt_real(e->smoothing / (double)e->classes), smooth));
        target = *smooth;
    }
    mt_tensor **product = mt__temp(call);
    mt_tensor *terms = NULL;
    MT_TRY(mt_mul(e->logs, target, product));
    terms = *product;
    if (e->weight != NULL) {
        mt_tensor **weighted = mt__temp(call);
        MT_TRY(mt_mul(terms, e->weight, weighted));
        terms = *weighted;
    }
    mt_tensor **sum = mt__temp(call);
    bool each = e->reduction == MT_REDUCTION_NONE;
    MT_TRY(mt_sum(terms, each ? &e->class_dim : NULL, each, false, sum));
    mt_tensor *out = NULL;
    if (e->reduction != MT_REDUCTION_MEAN) {
        MT_TRY(mt_neg(*sum, &out));
    } else {
        mt_tensor **negative = mt__temp(call);
        double rows = (double)e->logs->numel / (double)e->classes;
        MT_TRY(mt_neg(*sum, negative));
        MT_TRY(mt_div_scalar(*negative, mt_real(rows), &out));
    }
    mt__give(call, 0, out);
    return MT_OK;
}

/* What a mean of the smoothing term divides by: the rows that are not ignored, or their weights. */
static int smoothing_divisor(mt__call *call, const entropy *e, mt_tensor *ignored, mt_tensor **out)
{
    mt_tensor **kept = mt__temp(call);
    mt_tensor **sum = mt__temp(call);
    MT_TRY(mt_bitwise_not(ignored, kept));
    if (e->weight == NULL) {
        MT_TRY(mt_sum(*kept, NULL, 0, false, sum));
        *out = *sum;
        return MT_OK;
    }
    mt_tensor **valid = mt__temp(call);
    mt_tensor **flat = mt__temp(call);
    mt_tensor **weights = mt__temp(call);
    mt_tensor **wide = mt__temp(call);
    mt_tensor **kept_flat = mt__temp(call);
    mt_tensor **counted = mt__temp(call);
    MT_TRY(mt_masked_fill_scalar(e->target, ignored, mt_int(0), valid));
    MT_TRY(mt_reshape(*valid, &e->target->numel, 1, flat));
    MT_TRY(mt_reshape(mt__arg_tensor(call, WEIGHT), &e->classes, 1, wide));
    MT_TRY(mt_index_select(*wide, 0, *flat, weights));
    MT_TRY(mt_reshape(*kept, &e->target->numel, 1, kept_flat));
    MT_TRY(mt_mul(*weights, *kept_flat, counted));
    MT_TRY(mt_sum(*counted, NULL, 0, false, sum));
    *out = *sum;
    return MT_OK;
}

/* -sum over classes, ignored rows 0, reduced. */
static int smoothing_term(mt__call *call, const entropy *e, mt_tensor **out)
{
    mt_tensor *logs = e->logs;
    if (e->weight != NULL) {
        mt_tensor **weighted = mt__temp(call);
        MT_TRY(mt_mul(logs, e->weight, weighted));
        logs = *weighted;
    }
    mt_tensor **sum = mt__temp(call);
    mt_tensor **negative = mt__temp(call);
    mt_tensor **ignored = mt__temp(call);
    mt_tensor **losses = mt__temp(call);
    MT_TRY(mt_sum(logs, &e->class_dim, 1, false, sum));
    MT_TRY(mt_neg(*sum, negative));
    MT_TRY(mt_eq_scalar(e->target, mt_int(mt__arg_int(call, IGNORE_INDEX)), ignored));
    MT_TRY(mt_masked_fill_scalar(*negative, *ignored, mt_real(0.0), losses));
    *out = *losses;
    if (e->reduction == MT_REDUCTION_NONE) {
        return MT_OK;
    }
    mt_tensor **total = mt__temp(call);
    MT_TRY(mt_sum(*losses, NULL, 0, false, total));
    *out = *total;
    if (e->reduction == MT_REDUCTION_MEAN) {
        mt_tensor *divisor = NULL;
        mt_tensor **mean = mt__temp(call);
        MT_TRY(smoothing_divisor(call, e, *ignored, &divisor));
        MT_TRY(mt_div(*total, divisor, mean));
        *out = *mean;
    }
    return MT_OK;
}

/* (1 - smoothing) nll_loss + smoothing / C * the term above */
static int run_smoothed(mt__call *call, entropy *e)
{
    mt_tensor **plain = mt__temp(call);
    MT_TRY(mt_nll_loss_nd(e->logs, e->target, e->weight, e->reduction,
                          mt__arg_int(call, IGNORE_INDEX), plain));
    MT_TRY(widen_weight(call, e));
    if (e->logs->n_dims == 1 && e->target->n_dims == 1) { /* one row: the target counts as 0-d */
        mt_tensor **target = mt__temp(call);
        MT_TRY(mt_reshape(e->target, NULL, 0, target));
        e->target = *target;
    }
    mt_tensor *term = NULL;
    mt_tensor **a = mt__temp(call);
    mt_tensor **b = mt__temp(call);
    MT_TRY(smoothing_term(call, e, &term));
    MT_TRY(mt_mul_scalar(*plain, mt_real(1.0 - e->smoothing), a));
    MT_TRY(mt_mul_scalar(term, mt_real(e->smoothing / (double)e->classes), b));
    return mt_add(*a, *b, mt__result_place(call, 0));
}

int mt__run_cross_entropy_loss(mt__call *call)
{
    entropy e = {.logs = call->args[SELF].of.tensor};
    mt__shape shape = mt__tensor_shape(mt__arg_tensor(call, SELF));
    e.target = mt__arg_tensor(call, TARGET);
    mt__shape target_shape = mt__tensor_shape(e.target);
    if (mt__shape_equal(&shape, &target_shape)) {
        return run_probabilities(call, &e);
    }
    MT_TRY(begin(call, &e));
    if (e.smoothing > 0.0) {
        return run_smoothed(call, &e);
    }
    return mt_nll_loss_nd(e.logs, e.target, e.weight, e.reduction, mt__arg_int(call, IGNORE_INDEX),
                          mt__result_place(call, 0));
}
