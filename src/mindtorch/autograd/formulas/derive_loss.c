/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of losses. `twice` formulas are derivatives of the fused *_backward ops: h is the
 * gradient that comes in, g the one that the op itself was given.
 */
#include "mindtorch/autograd/formulas/formula.h"
#include "mindtorch/dispatch/call.h"

/* What a mean over `numel` elements multiplies gradients with. */
static double mean_factor(const mt_value *reduction, int64_t numel)
{
    return reduction->of.integer == MT_REDUCTION_MEAN ? 1.0 / (double)numel : 1.0;
}

/* ---- nll_loss ---- */

int mt__nll_loss_backward(mt__backward *b)
{
    if (b->grads[0] == NULL) {
        return MT_OK; /* total_weight does not depend on the input */
    }
    MT_TRY(mt_nll_loss_backward(b->grads[0], mt__bw_optional_arg(b, 0), mt__bw_optional_arg(b, 1),
                                mt__bw_optional_arg(b, 2), b->args[3].of.integer,
                                b->args[4].of.integer, b->results[1].of.tensor, mt__bw_temp(b)));
    mt__bw_give(b, 0, mt__bw_last(b));
    return MT_OK;
}

/* The loss is linear in its input: d g is the loss of h, and nothing depends on self. */
int mt__nll_loss_twice(mt__backward *b)
{
    if (!mt__wants(b, 0)) {
        return MT_OK;
    }
    const mt__shape *shape = &mt__input_meta(b, mt__input_of(b, 0))->shape;
    mt_tensor **loss = mt__bw_temp(b);
    MT_TRY(mt_nll_loss_forward(b->grads[0], mt__bw_optional_arg(b, 2), mt__bw_optional_arg(b, 3),
                               b->args[4].of.integer, b->args[5].of.integer, loss, NULL));
    MT_TRY(mt_reshape(*loss, shape->sizes, shape->n_dims, mt__bw_temp(b)));
    mt__bw_give(b, 0, mt__bw_last(b));
    return MT_OK;
}

/* ---- losses of a difference ---- */

int mt__mse_loss_backward(mt__backward *b)
{
    for (uint32_t i = 0; i < 2; i++) { /* symmetric */
        if (mt__wants(b, i)) {
            MT_TRY(mt_mse_loss_backward(b->grads[0], mt__bw_optional_arg(b, i),
                                        mt__bw_optional_arg(b, 1 - i), b->args[2].of.integer,
                                        mt__bw_temp(b)));
            mt__bw_give(b, i, mt__bw_last(b));
        }
    }
    return MT_OK;
}

int mt__smooth_l1_loss_backward(mt__backward *b)
{
    for (uint32_t i = 0; i < 2; i++) { /* symmetric */
        if (mt__wants(b, i)) {
            MT_TRY(mt_smooth_l1_loss_backward(b->grads[0], mt__bw_optional_arg(b, i),
                                              mt__bw_optional_arg(b, 1 - i), b->args[2].of.integer,
                                              mt__scalar_real(&b->args[3]), mt__bw_temp(b)));
            mt__bw_give(b, i, mt__bw_last(b));
        }
    }
    return MT_OK;
}

/* Gives self (argument 1) h g times `curvature`, and target its negative. */
static int give_curvature(mt__backward *b, mt_tensor *product, double curvature)
{
    MT_TRY(mt_mul_scalar(product, mt_real(curvature), mt__bw_temp(b)));
    mt_tensor *grad = mt__bw_last(b);
    if (mt__wants(b, 1)) {
        mt__bw_give(b, 1, grad);
    }
    if (mt__wants(b, 2)) {
        MT_TRY(mt_neg(grad, mt__bw_temp(b)));
        mt__bw_give(b, 2, mt__bw_last(b));
    }
    return MT_OK;
}

int mt__mse_loss_twice(mt__backward *b)
{
    mt_tensor *h = b->grads[0];
    if (mt__wants(b, 0)) {
        MT_TRY(mt_mse_loss_backward(h, mt__bw_optional_arg(b, 1), mt__bw_optional_arg(b, 2),
                                    b->args[3].of.integer, mt__bw_temp(b)));
        mt__bw_give(b, 0, mt__bw_last(b));
    }
    if (!mt__wants(b, 1) && !mt__wants(b, 2)) {
        return MT_OK;
    }
    MT_TRY(mt_mul(h, mt__bw_optional_arg(b, 0), mt__bw_temp(b)));
    return give_curvature(b, mt__bw_last(b), 2.0 * mean_factor(&b->args[3], h->numel));
}

int mt__smooth_l1_loss_twice(mt__backward *b)
{
    mt_tensor *h = b->grads[0];
    double beta = mt__scalar_real(&b->args[4]);
    if (mt__wants(b, 0)) {
        MT_TRY(mt_smooth_l1_loss_backward(h, mt__bw_optional_arg(b, 1), mt__bw_optional_arg(b, 2),
                                          b->args[3].of.integer, beta, mt__bw_temp(b)));
        mt__bw_give(b, 0, mt__bw_last(b));
    }
    if ((!mt__wants(b, 1) && !mt__wants(b, 2)) || beta == 0.0) {
        return MT_OK;
    }
    mt_tensor **difference = mt__bw_temp(b);
    mt_tensor **distance = mt__bw_temp(b);
    mt_tensor **inside = mt__bw_temp(b);
    mt_tensor **product = mt__bw_temp(b);
    mt_tensor **masked = mt__bw_temp(b);
    MT_TRY(mt_sub(mt__bw_optional_arg(b, 1), mt__bw_optional_arg(b, 2), difference));
    MT_TRY(mt_abs(*difference, distance));
    MT_TRY(mt_lt_scalar(*distance, mt_real(beta), inside));
    MT_TRY(mt_mul(h, mt__bw_optional_arg(b, 0), product));
    MT_TRY(mt_mul(*product, *inside, masked));
    return give_curvature(b, *masked, mean_factor(&b->args[3], h->numel) / beta);
}

/* ---- binary cross entropy ---- */

/* Multiplies with weight (where there is one) and the mean's factor, and gives it. */
static int give_weighted(mt__backward *b, uint32_t arg, mt_tensor *grad, mt_tensor *weight,
                         double factor)
{
    if (weight != NULL) {
        MT_TRY(mt_mul(grad, weight, mt__bw_temp(b)));
        grad = mt__bw_last(b);
    }
    if (factor != 1.0) {
        MT_TRY(mt_mul_scalar(grad, mt_real(factor), mt__bw_temp(b)));
        grad = mt__bw_last(b);
    }
    mt__bw_give(b, arg, grad);
    return MT_OK;
}

/* g (self - target) / max(self - self self, 1e-12), of simple ops */
static int bce_slope(mt__backward *b, mt_tensor **out)
{
    mt_tensor *self = mt__bw_optional_arg(b, 0);
    mt_tensor **square = mt__bw_temp(b);
    mt_tensor **below = mt__bw_temp(b);
    mt_tensor **held = mt__bw_temp(b);
    mt_tensor **above = mt__bw_temp(b);
    mt_tensor **slope = mt__bw_temp(b);
    mt_tensor **grad = mt__bw_temp(b);
    MT_TRY(mt_mul(self, self, square));
    MT_TRY(mt_sub(self, *square, below));
    MT_TRY(mt_clamp_min(*below, mt_real(1e-12), held));
    MT_TRY(mt_sub(self, mt__bw_optional_arg(b, 1), above));
    MT_TRY(mt_div(*above, *held, slope));
    MT_TRY(mt_mul(*slope, b->grads[0], grad));
    *out = *grad;
    return MT_OK;
}

/* max(log(1 - self), -100) - max(log(self), -100) */
static int bce_target_slope(mt__backward *b, mt_tensor **out)
{
    mt_tensor *self = mt__bw_optional_arg(b, 0);
    mt_tensor **negative = mt__bw_temp(b);
    mt_tensor **log_other = mt__bw_temp(b);
    mt_tensor **held_other = mt__bw_temp(b);
    mt_tensor **log_self = mt__bw_temp(b);
    mt_tensor **held_self = mt__bw_temp(b);
    mt_tensor **slope = mt__bw_temp(b);
    MT_TRY(mt_neg(self, negative));
    MT_TRY(mt_log1p(*negative, log_other));
    MT_TRY(mt_clamp_min(*log_other, mt_real(-100.0), held_other));
    MT_TRY(mt_log(self, log_self));
    MT_TRY(mt_clamp_min(*log_self, mt_real(-100.0), held_self));
    MT_TRY(mt_sub(*held_other, *held_self, slope));
    *out = *slope;
    return MT_OK;
}

/* Elements of the loss before it was reduced. */
static int bce_numel(const mt_tensor *self, const mt_tensor *target, int64_t *numel)
{
    mt__shape shape = mt__tensor_shape(self);
    MT_TRY(mt__shape_broadcast(&shape, target->sizes, target->n_dims));
    return mt__shape_numel("binary_cross_entropy", &shape, 1, numel);
}

int mt__bce_backward(mt__backward *b)
{
    mt_tensor *self = mt__bw_optional_arg(b, 0);
    mt_tensor *target = mt__bw_optional_arg(b, 1);
    mt_tensor *weight = mt__bw_optional_arg(b, 2);
    int64_t numel = 0;
    MT_TRY(bce_numel(self, target, &numel));
    double factor = mean_factor(&b->args[3], numel);
    if (mt__wants(b, 0) && mt_grad_enabled()) {
        mt_tensor *grad = NULL;
        MT_TRY(bce_slope(b, &grad));
        MT_TRY(give_weighted(b, 0, grad, weight, factor));
    } else if (mt__wants(b, 0)) {
        MT_TRY(mt_binary_cross_entropy_backward(b->grads[0], self, target, weight,
                                                b->args[3].of.integer, mt__bw_temp(b)));
        mt__bw_give(b, 0, mt__bw_last(b));
    }
    if (mt__wants(b, 1)) {
        mt_tensor *slope = NULL;
        MT_TRY(bce_target_slope(b, &slope));
        MT_TRY(mt_mul(slope, b->grads[0], mt__bw_temp(b)));
        MT_TRY(give_weighted(b, 1, mt__bw_last(b), weight, factor));
    }
    return MT_OK;
}

/* With t = pos_weight target: (t + 1 - target) sigmoid(x) - t; without: sigmoid(x) - target. */
static int logits_slope(mt__backward *b, mt_tensor **out)
{
    mt_tensor *target = mt__bw_optional_arg(b, 1);
    mt_tensor *positive = mt__bw_optional_arg(b, 3);
    mt_tensor **sigmoid = mt__bw_temp(b);
    mt_tensor **slope = mt__bw_temp(b);
    MT_TRY(mt_sigmoid(mt__bw_optional_arg(b, 0), sigmoid));
    if (positive == NULL) {
        MT_TRY(mt_sub(*sigmoid, target, slope));
    } else {
        mt_tensor **weighted = mt__bw_temp(b);
        mt_tensor **raised = mt__bw_temp(b);
        mt_tensor **factor = mt__bw_temp(b);
        mt_tensor **product = mt__bw_temp(b);
        MT_TRY(mt_mul(positive, target, weighted));
        MT_TRY(mt_add_scalar(*weighted, mt_real(1.0), raised));
        MT_TRY(mt_sub(*raised, target, factor));
        MT_TRY(mt_mul(*factor, *sigmoid, product));
        MT_TRY(mt_sub(*product, *weighted, slope));
    }
    *out = *slope;
    return MT_OK;
}

/* log_sigmoid(-x) - pos_weight log_sigmoid(x), which is -x without pos_weight. */
static int logits_target_slope(mt__backward *b, mt_tensor **out)
{
    mt_tensor *self = mt__bw_optional_arg(b, 0);
    mt_tensor *positive = mt__bw_optional_arg(b, 3);
    mt_tensor **negative = mt__bw_temp(b);
    MT_TRY(mt_neg(self, negative));
    *out = *negative;
    if (positive != NULL) {
        mt_tensor **log_other = mt__bw_temp(b);
        mt_tensor **log_self = mt__bw_temp(b);
        mt_tensor **weighted = mt__bw_temp(b);
        mt_tensor **slope = mt__bw_temp(b);
        MT_TRY(mt_log_sigmoid(*negative, log_other));
        MT_TRY(mt_log_sigmoid(self, log_self));
        MT_TRY(mt_mul(*log_self, positive, weighted));
        MT_TRY(mt_sub(*log_other, *weighted, slope));
        *out = *slope;
    }
    return MT_OK;
}

int mt__bce_logits_backward(mt__backward *b)
{
    mt_tensor *weight = mt__bw_optional_arg(b, 2);
    double factor = mean_factor(&b->args[4], mt__bw_optional_arg(b, 1)->numel);
    for (uint32_t i = 0; i < 2; i++) {
        if (mt__wants(b, i)) {
            mt_tensor *slope = NULL;
            MT_TRY(i == 0 ? logits_slope(b, &slope) : logits_target_slope(b, &slope));
            MT_TRY(mt_mul(slope, b->grads[0], mt__bw_temp(b)));
            MT_TRY(give_weighted(b, i, mt__bw_last(b), weight, factor));
        }
    }
    return MT_OK;
}
