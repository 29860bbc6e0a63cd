/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of reductions. The gradient of a result that lost dimensions gets them back, of size
 * 1, and then broadcasts against the input.
 */
#include "mindtorch/autograd/formulas/formula.h"

#include <math.h>

/* ---- dimensions ------------------------------------------------------------------------------ */

/* The reduced dimensions that argument `i` names: none, or an empty list, means all. The forward
 * call has checked them. */
static uint32_t reduced_dims(const mt__backward *b, uint32_t i)
{
    const mt_value *dims = &b->args[i];
    uint32_t n = mt__bw_shape(b, 0)->n_dims;
    uint32_t mask = 0;
    if (dims->kind == MT_KIND_INT) {
        return n == 0 ? 1 : 1U << (dims->of.integer + (dims->of.integer < 0 ? n : 0));
    }
    if (dims->kind != MT_KIND_INTS || dims->count == 0) {
        return UINT32_MAX;
    }
    for (uint32_t k = 0; k < dims->count; k++) {
        mask |= n == 0 ? 1 : 1U << (dims->of.ints[k] + (dims->of.ints[k] < 0 ? n : 0));
    }
    return mask;
}

static mt__shape kept_shape(const mt__backward *b, uint32_t mask)
{
    mt__shape shape = *mt__bw_shape(b, 0);
    for (uint32_t d = 0; d < shape.n_dims; d++) {
        shape.sizes[d] = (mask >> d & 1) != 0 ? 1 : shape.sizes[d];
    }
    return shape;
}

static int64_t reduced_count(const mt__backward *b, uint32_t mask)
{
    const mt__shape *shape = mt__bw_shape(b, 0);
    int64_t count = 1;
    for (uint32_t d = 0; d < shape->n_dims; d++) {
        count *= (mask >> d & 1) != 0 ? shape->sizes[d] : 1;
    }
    return count;
}

/* A tensor of the result's shape with the reduced dimensions back. */
static int keep(mt__backward *b, mt_tensor *reduced, uint32_t mask, mt_tensor **out)
{
    mt__shape shape = kept_shape(b, mask);
    *out = reduced;
    if (reduced->n_dims == shape.n_dims || reduced->n_dims == 0) {
        return MT_OK; /* kept, or broadcasts anyway */
    }
    MT_TRY(mt_view(reduced, shape.sizes, shape.n_dims, MT_STEP(b)));
    *out = mt__bw_last(b);
    return MT_OK;
}

/* The same, expanded to the input's shape. */
static int spread(mt__backward *b, mt_tensor *reduced, uint32_t mask, mt_tensor **out)
{
    const mt__shape *shape = mt__bw_shape(b, 0);
    mt_tensor *kept = NULL;
    MT_TRY(keep(b, reduced, mask, &kept));
    MT_TRY(mt_expand(kept, shape->sizes, shape->n_dims, MT_STEP(b)));
    *out = mt__bw_last(b);
    return MT_OK;
}

/* Dimensions of a mask as a list. */
static size_t list_dims(const mt__backward *b, uint32_t mask, int64_t dims[MT_MAX_DIMS])
{
    size_t n = 0;
    for (uint32_t d = 0; d < mt__bw_shape(b, 0)->n_dims; d++) {
        if ((mask >> d & 1) != 0) {
            dims[n++] = d;
        }
    }
    return n;
}

/* ---- sums ------------------------------------------------------------------------------------ */

int mt__sum_backward(mt__backward *b)
{
    mt_tensor *grad = NULL;
    MT_TRY(spread(b, mt__bw_grad(b), reduced_dims(b, 1), &grad));
    mt__bw_give(b, 0, grad);
    return MT_OK;
}

/* Nothing goes to what was left out. */
int mt__nansum_backward(mt__backward *b)
{
    mt_tensor *grad = NULL;
    MT_TRY(spread(b, mt__bw_grad(b), reduced_dims(b, 1), &grad));
    MT_TRY(mt_isnan(mt__bw_arg(b, 0), MT_STEP(b)));
    MT_TRY(mt_logical_not(mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_mul(grad, mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__mean_backward(mt__backward *b)
{
    uint32_t mask = reduced_dims(b, 1);
    mt_tensor *grad = NULL;
    MT_TRY(spread(b, mt__bw_grad(b), mask, &grad));
    MT_TRY(mt_div_scalar(grad, mt_int(reduced_count(b, mask)), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* ---- variance -------------------------------------------------------------------------------- */

/* grad * 2 / (n - correction) * (self - mean), of a gradient of the variance. `infinite`: a
 * variance without degrees of freedom is infinite, and so is its derivative. */
static int variance_backward(mt__backward *b, mt_tensor *grad, bool infinite, mt_tensor **out)
{
    mt_tensor *self = mt__bw_arg(b, 0);
    uint32_t mask = reduced_dims(b, 1);
    int64_t dims[MT_MAX_DIMS];
    size_t n_dims = list_dims(b, mask, dims);
    const mt_value *correction = &b->args[3];
    double freedom =
        (double)reduced_count(b, mask) -
        (correction->kind == MT_KIND_REAL ? correction->of.real : (double)correction->of.integer);
    MT_TRY(keep(b, grad, mask, &grad));
    MT_TRY(mt_mean(self, n_dims == 0 ? NULL : dims, n_dims, true, MT_STEP(b)));
    mt_tensor *mean = mt__bw_last(b);
    if (infinite && freedom <= 0) { /* not a number where nothing deviates */
        MT_TRY(mt_eq(self, mean, MT_STEP(b)));
        mt_tensor *same = mt__bw_last(b);
        MT_TRY(mt_full_like(self, mt_real(INFINITY), MT_STEP(b)));
        MT_TRY(mt_masked_fill_scalar(mt__bw_last(b), same, mt_real(NAN), MT_STEP(b)));
        MT_TRY(mt_mul(grad, mt__bw_last(b), MT_STEP(b)));
    } else {
        MT_TRY(mt_sub(self, mean, MT_STEP(b)));
        mt_tensor *apart = mt__bw_last(b);
        MT_TRY(mt_mul_scalar(grad, mt_real(2 / freedom), MT_STEP(b)));
        MT_TRY(mt_mul(mt__bw_last(b), apart, MT_STEP(b)));
    }
    *out = mt__bw_last(b);
    return MT_OK;
}

int mt__var_backward(mt__backward *b)
{
    mt_tensor *grad = NULL;
    MT_TRY(variance_backward(b, mt__bw_grad(b), true, &grad));
    mt__bw_give(b, 0, grad);
    return MT_OK;
}

/* d sqrt(v) = dv / (2 sqrt(v)); 0 where nothing deviates. */
int mt__std_backward(mt__backward *b)
{
    mt_tensor *result = mt__bw_result(b, 0);
    mt_tensor *grad = NULL;
    MT_TRY(mt_eq_scalar(result, mt_int(0), MT_STEP(b)));
    mt_tensor *still = mt__bw_last(b);
    MT_TRY(mt_mul_scalar(result, mt_int(2), MT_STEP(b)));
    MT_TRY(mt_div(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_masked_fill_scalar(mt__bw_last(b), still, mt_int(0), MT_STEP(b)));
    MT_TRY(variance_backward(b, mt__bw_last(b), true, &grad));
    mt__bw_give(b, 0, grad);
    return MT_OK;
}

int mt__var_mean_backward(mt__backward *b)
{
    mt_tensor *of_var = NULL;
    mt_tensor *of_mean = NULL;
    if (b->grads[0] != NULL) {
        MT_TRY(variance_backward(b, b->grads[0], false, &of_var));
    }
    if (b->grads[1] != NULL) {
        uint32_t mask = reduced_dims(b, 1);
        MT_TRY(spread(b, b->grads[1], mask, &of_mean));
        MT_TRY(mt_div_scalar(of_mean, mt_int(reduced_count(b, mask)), MT_STEP(b)));
        of_mean = mt__bw_last(b);
    }
    if (of_var != NULL && of_mean != NULL) {
        MT_TRY(mt_add(of_var, of_mean, MT_STEP(b)));
        of_var = mt__bw_last(b);
    }
    mt__bw_give(b, 0, of_var != NULL ? of_var : of_mean);
    return MT_OK;
}

/* ---- extremes -------------------------------------------------------------------------------- */

/* Evenly over all elements that `chosen` marks. */
static int shared(mt__backward *b, mt_tensor *grad, mt_tensor *chosen, const int64_t *dims,
                  size_t n_dims, mt_tensor **out)
{
    MT_TRY(mt_sum(chosen, dims, n_dims, true, MT_STEP(b)));
    mt_tensor *count = mt__bw_last(b);
    MT_TRY(mt_mul(grad, chosen, MT_STEP(b)));
    MT_TRY(mt_div(mt__bw_last(b), count, MT_STEP(b)));
    *out = mt__bw_last(b);
    return MT_OK;
}

static int share(mt__backward *b, mt_tensor *grad, mt_tensor *chosen, uint32_t mask)
{
    int64_t dims[MT_MAX_DIMS];
    size_t n_dims = list_dims(b, mask, dims);
    mt_tensor *part = NULL;
    MT_TRY(shared(b, grad, chosen, n_dims == 0 ? NULL : dims, n_dims, &part));
    mt__bw_give(b, 0, part);
    return MT_OK;
}

/* Equal to the result, or both NaN. */
static int mark_equal(mt__backward *b, mt_tensor *x, mt_tensor *result, mt_tensor **out)
{
    MT_TRY(mt_eq(x, result, MT_STEP(b)));
    mt_tensor *equal = mt__bw_last(b);
    MT_TRY(mt_isnan(x, MT_STEP(b)));
    mt_tensor *nan = mt__bw_last(b);
    MT_TRY(mt_isnan(result, MT_STEP(b)));
    MT_TRY(mt_logical_and(nan, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_logical_or(equal, mt__bw_last(b), MT_STEP(b)));
    *out = mt__bw_last(b);
    return MT_OK;
}

int mt__extreme_backward(mt__backward *b)
{
    mt_tensor *chosen = NULL;
    MT_TRY(mark_equal(b, mt__bw_arg(b, 0), mt__bw_result(b, 0), &chosen));
    return share(b, mt__bw_grad(b), chosen, UINT32_MAX);
}

int mt__amax_backward(mt__backward *b)
{
    uint32_t mask = reduced_dims(b, 1);
    mt_tensor *grad = NULL;
    mt_tensor *result = NULL;
    MT_TRY(keep(b, mt__bw_grad(b), mask, &grad));
    MT_TRY(keep(b, mt__bw_result(b, 0), mask, &result));
    MT_TRY(mt_eq(mt__bw_arg(b, 0), result, MT_STEP(b)));
    return share(b, grad, mt__bw_last(b), mask);
}

/* Of the smallest, then of the largest. */
int mt__aminmax_backward(mt__backward *b)
{
    uint32_t mask = reduced_dims(b, 1);
    int64_t dims[MT_MAX_DIMS];
    size_t n_dims = list_dims(b, mask, dims);
    mt_tensor *sum = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        mt_tensor *grad = NULL;
        mt_tensor *result = NULL;
        if (b->grads[i] == NULL) {
            continue;
        }
        MT_TRY(keep(b, b->grads[i], mask, &grad));
        MT_TRY(keep(b, mt__bw_result(b, i), mask, &result));
        MT_TRY(mt_eq(mt__bw_arg(b, 0), result, MT_STEP(b)));
        mt_tensor *part = NULL;
        MT_TRY(shared(b, grad, mt__bw_last(b), n_dims == 0 ? NULL : dims, n_dims, &part));
        if (sum != NULL) {
            MT_TRY(mt_add(sum, part, MT_STEP(b)));
            part = mt__bw_last(b);
        }
        sum = part;
    }
    mt__bw_give(b, 0, sum);
    return MT_OK;
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* sign(x) |x|^(p - 1) norm^(1 - p); 0 where x or the norm is 0. Both are divided by the norm as a
 * number before they are raised: their powers alone overflow and underflow. */
static int power_norm_backward(mt__backward *b, mt_tensor *grad, mt_tensor *norm, double p)
{
    mt_tensor *x = mt__bw_arg(b, 0);
    MT_TRY(mt_eq_scalar(norm, mt_int(0), MT_STEP(b)));
    mt_tensor *none = mt__bw_last(b);
    MT_TRY(mt_detach(norm, MT_STEP(b)));
    MT_TRY(mt_masked_fill_scalar(mt__bw_last(b), none, mt_int(1), MT_STEP(b)));
    mt_tensor *size = mt__bw_last(b);
    MT_TRY(mt_eq_scalar(x, mt_int(0), MT_STEP(b)));
    mt_tensor *zero = mt__bw_last(b);
    MT_TRY(mt_div(x, size, MT_STEP(b)));
    MT_TRY(mt_abs(mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_pow_tensor_scalar(mt__bw_last(b), mt_real(p - 1), MT_STEP(b)));
    mt_tensor *power = mt__bw_last(b);
    MT_TRY(mt_sgn(x, MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_last(b), power, MT_STEP(b)));
    MT_TRY(mt_masked_fill_scalar(mt__bw_last(b), zero, mt_int(0), MT_STEP(b)));
    mt_tensor *direction = mt__bw_last(b);
    MT_TRY(mt_div(norm, size, MT_STEP(b)));
    MT_TRY(mt_pow_tensor_scalar(mt__bw_last(b), mt_real(1 - p), MT_STEP(b)));
    MT_TRY(mt_mul(grad, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_masked_fill_scalar(mt__bw_last(b), none, mt_int(0), MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_last(b), direction, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* x / norm; 0 where the norm is 0. */
static int square_norm_backward(mt__backward *b, mt_tensor *grad, mt_tensor *norm)
{
    MT_TRY(mt_eq_scalar(norm, mt_int(0), MT_STEP(b)));
    mt_tensor *none = mt__bw_last(b);
    MT_TRY(mt_div(mt__bw_arg(b, 0), norm, MT_STEP(b)));
    MT_TRY(mt_masked_fill_scalar(mt__bw_last(b), none, mt_int(0), MT_STEP(b)));
    MT_TRY(mt_mul(grad, mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__vector_norm_backward(mt__backward *b)
{
    const mt_value *ord = &b->args[1];
    double p = ord->kind == MT_KIND_REAL ? ord->of.real : (double)ord->of.integer;
    uint32_t mask = reduced_dims(b, 2);
    mt_tensor *x = mt__bw_arg(b, 0);
    mt_tensor *grad = NULL;
    mt_tensor *norm = NULL;
    if (p == 0) {
        return mt__bw_give_zeros(b, 0);
    }
    MT_TRY(keep(b, mt__bw_grad(b), mask, &grad));
    MT_TRY(keep(b, mt__bw_result(b, 0), mask, &norm));
    if (p == 2) {
        return square_norm_backward(b, grad, norm);
    }
    if (p != 1 && !isinf(p)) {
        return power_norm_backward(b, grad, norm, p);
    }
    MT_TRY(mt_sgn(x, MT_STEP(b)));
    MT_TRY(mt_mul(grad, mt__bw_last(b), MT_STEP(b)));
    if (p == 1) {
        return mt__bw_give_last(b, 0);
    }
    grad = mt__bw_last(b);
    mt_tensor *chosen = NULL;
    MT_TRY(mt_abs(x, MT_STEP(b)));
    MT_TRY(mark_equal(b, mt__bw_last(b), norm, &chosen));
    return share(b, grad, chosen, mask);
}

int mt__logsumexp_backward(mt__backward *b)
{
    uint32_t mask = reduced_dims(b, 1);
    mt_tensor *grad = NULL;
    mt_tensor *result = NULL;
    MT_TRY(keep(b, mt__bw_grad(b), mask, &grad));
    MT_TRY(keep(b, mt__bw_result(b, 0), mask, &result));
    MT_TRY(mt_sub(mt__bw_arg(b, 0), result, MT_STEP(b)));
    MT_TRY(mt_exp(mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_mul(grad, mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* ---- the logarithm of running sums ----------------------------------------------------------- */

/* The sum over all later places of exp(log|grad| - result), times exp(self), of gradients of one
 * sign; `below`: those below 0. */
static int later_exponentials(mt__backward *b, bool below, mt_tensor **out)
{
    mt_tensor *grad = mt__bw_grad(b);
    int64_t dim = mt__bw_int(b, 1);
    MT_TRY(below ? mt_lt_scalar(grad, mt_int(0), MT_STEP(b))
                 : mt_gt_scalar(grad, mt_int(0), MT_STEP(b)));
    mt_tensor *counts = mt__bw_last(b);
    MT_TRY(mt_abs(grad, MT_STEP(b)));
    MT_TRY(mt_where_tensor_scalar(counts, mt__bw_last(b), mt_int(1), MT_STEP(b)));
    MT_TRY(mt_log(mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_sub(mt__bw_last(b), mt__bw_result(b, 0), MT_STEP(b)));
    MT_TRY(mt_where_tensor_scalar(counts, mt__bw_last(b), mt_real(-INFINITY), MT_STEP(b)));
    MT_TRY(mt_flip(mt__bw_last(b), &dim, 1, MT_STEP(b)));
    MT_TRY(mt_logcumsumexp(mt__bw_last(b), dim, MT_STEP(b)));
    MT_TRY(mt_flip(mt__bw_last(b), &dim, 1, MT_STEP(b)));
    MT_TRY(mt_add(mt__bw_last(b), mt__bw_arg(b, 0), MT_STEP(b)));
    MT_TRY(mt_exp(mt__bw_last(b), MT_STEP(b)));
    *out = mt__bw_last(b);
    return MT_OK;
}

int mt__logcumsumexp_backward(mt__backward *b)
{
    mt_tensor *up = NULL;
    mt_tensor *down = NULL;
    if (mt__bw_shape(b, 0)->n_dims == 0) {
        mt__bw_give(b, 0, mt__bw_grad(b));
        return MT_OK;
    }
    MT_TRY(later_exponentials(b, false, &up));
    MT_TRY(later_exponentials(b, true, &down));
    MT_TRY(mt_sub(up, down, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}
