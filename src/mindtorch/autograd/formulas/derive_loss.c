/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of losses. `twice` formulas are derivatives of the fused *_backward ops: h is the
 * gradient that comes in, g the one that the op itself was given.
 */
#include "mindtorch/autograd/formulas/formula.h"
#include "mindtorch/dispatch/boxing.h"
#include "mindtorch/dispatch/call.h"

/* What a mean over `numel` elements multiplies gradients with. */
static double mean_factor(const mt_value *reduction, int64_t numel)
{
    return reduction->of.integer == MT_REDUCTION_MEAN ? 1.0 / (double)numel : 1.0;
}

/* ---- nll_loss ---- */

/* The loss is linear in its input: d g is the loss of h, and nothing depends on self. */
int mt__nll_loss_twice(mt__backward *b)
{
    if (!mt__wants(b, 0)) {
        return MT_OK;
    }
    const mt__shape *shape = mt__bw_shape(b, 0);
    mt_tensor **loss = mt__bw_temp(b);
    MT_TRY(mt_nll_loss_forward(b->grads[0], mt__bw_optional_arg(b, 2), mt__bw_optional_arg(b, 3),
                               b->args[4].of.integer, b->args[5].of.integer, loss, NULL));
    MT_TRY(mt_reshape(*loss, shape->sizes, shape->n_dims, mt__bw_temp(b)));
    mt__bw_give(b, 0, mt__bw_last(b));
    return MT_OK;
}

/* ---- losses of a difference ---- */

/* curved(product, reduction, beta): product / beta, times the mean's factor. */
int mt__bw_curved(mt__backward *b, const mt_value *args, mt_tensor **out)
{
    double factor = mean_factor(&args[1], b->grads[0]->numel) / mt__scalar_real(&args[2]);
    MT_TRY(mt_mul_scalar(args[0].of.tensor, mt_real(factor), mt__bw_temp(b)));
    *out = mt__bw_last(b);
    return MT_OK;
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
    mt_tensor *slope = NULL;
    MT_TRY(mt__bw_curved(b, (const mt_value[]){mt__box_tensor(*masked), b->args[3], b->args[4]},
                         &slope));
    if (mt__wants(b, 1)) {
        mt__bw_give(b, 1, slope);
    }
    if (mt__wants(b, 2)) {
        MT_TRY(mt_neg(slope, mt__bw_temp(b)));
        return mt__bw_give_last(b, 2);
    }
    return MT_OK;
}

/* ---- binary cross entropy ---- */

/* weighted(grad, weight, reduction, self, target): times the weight, where there is one, and the
 * factor of the mean over the elements that the loss had before it was reduced. */
int mt__bw_weighted(mt__backward *b, const mt_value *args, mt_tensor **out)
{
    const mt_tensor *target = args[4].of.tensor;
    mt__shape shape = mt__tensor_shape(args[3].of.tensor);
    int64_t numel = 0;
    MT_TRY(mt__shape_broadcast(&shape, target->sizes, target->n_dims));
    MT_TRY(mt__shape_numel("binary_cross_entropy", &shape, 1, &numel));
    double factor = mean_factor(&args[2], numel);
    *out = args[0].of.tensor;
    if (args[1].kind == MT_KIND_TENSOR) {
        MT_TRY(mt_mul(*out, args[1].of.tensor, mt__bw_temp(b)));
        *out = mt__bw_last(b);
    }
    if (factor != 1.0) {
        MT_TRY(mt_mul_scalar(*out, mt_real(factor), mt__bw_temp(b)));
        *out = mt__bw_last(b);
    }
    return MT_OK;
}
