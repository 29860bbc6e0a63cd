/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of the activations of op_activation.c. Made of simple ops, so that they have
 * derivatives themselves. On the borders, and for NaN, they are torch's.
 */
#include "mindtorch/autograd/formulas/formula.h"
#include "mindtorch/dispatch/call.h"
#include "mindtorch/ops/nn/selu_constants.h"

/* `right` above 0; left exp(x inner) elsewhere, of the negative part alone (see elu_backward). */
static int give_bent(mt__backward *b, double right, double left, double inner)
{
    mt_tensor *x = mt__bw_arg(b, 0);
    mt_tensor *grad = mt__bw_grad(b);
    MT_TRY(mt_le_scalar(x, mt_int(0), MT_STEP(b)));
    mt_tensor *negative = mt__bw_last(b);
    MT_TRY(mt_clamp_max(x, mt_int(0), MT_STEP(b)));
    MT_TRY(mt_mul_scalar(mt__bw_last(b), mt_real(inner), MT_STEP(b)));
    MT_TRY(mt_exp(mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_mul_scalar(mt__bw_last(b), mt_real(left), MT_STEP(b)));
    MT_TRY(mt_mul(grad, mt__bw_last(b), MT_STEP(b)));
    mt_tensor *below = mt__bw_last(b);
    MT_TRY(mt_mul_scalar(grad, mt_real(right), MT_STEP(b)));
    MT_TRY(mt_where(negative, below, mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__selu_backward(mt__backward *b)
{
    return give_bent(b, MT_SELU_SCALE, MT_SELU_SCALE * MT_SELU_ALPHA, 1.0);
}

int mt__celu_backward(mt__backward *b)
{
    return give_bent(b, 1.0, 1.0, 1.0 / mt__scalar_real(&b->args[1]));
}

/* first sigmoid(second), the halves of one tensor */
int mt__glu_backward(mt__backward *b)
{
    mt_tensor *x = mt__bw_arg(b, 0);
    int64_t dim = b->args[1].of.integer;
    int64_t half = x->sizes[dim < 0 ? dim + x->n_dims : dim] / 2;
    MT_TRY(mt_narrow(x, dim, 0, half, MT_STEP(b)));
    mt_tensor *first = mt__bw_last(b);
    MT_TRY(mt_narrow(x, dim, half, half, MT_STEP(b)));
    MT_TRY(mt_sigmoid(mt__bw_last(b), MT_STEP(b)));
    mt_tensor *gate = mt__bw_last(b);
    mt_tensor *parts[2] = {NULL, NULL};
    MT_TRY(mt_mul(mt__bw_grad(b), gate, MT_STEP(b)));
    parts[0] = mt__bw_last(b);
    MT_TRY(mt_mul(mt__bw_grad(b), first, MT_STEP(b)));
    MT_TRY(mt_sigmoid_backward(mt__bw_last(b), gate, MT_STEP(b)));
    parts[1] = mt__bw_last(b);
    MT_TRY(mt_cat(parts, 2, dim, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* The latest step, summed to the slope's sizes: one number, or one a channel (dimension 1). */
static int give_slope(mt__backward *b, const mt_tensor *weight)
{
    int64_t dims[MT_MAX_DIMS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < mt__bw_last(b)->n_dims; i++) {
        if (i != 1 || weight->numel == 1) {
            dims[n++] = i;
        }
    }
    if (n > 0) {
        MT_TRY(mt_sum(mt__bw_last(b), dims, n, false, MT_STEP(b)));
    }
    MT_TRY(mt_reshape(mt__bw_last(b), weight->sizes, weight->n_dims, MT_STEP(b)));
    return mt__bw_give_last(b, 1);
}

int mt__prelu_backward(mt__backward *b)
{
    mt_tensor *x = mt__bw_arg(b, 0);
    mt_tensor *weight = mt__bw_arg(b, 1);
    MT_TRY(mt_gt_scalar(x, mt_int(0), MT_STEP(b)));
    mt_tensor *positive = mt__bw_last(b);
    if (mt__wants(b, 0)) {
        int64_t sizes[MT_MAX_DIMS];
        for (uint32_t i = 0; i < x->n_dims; i++) {
            sizes[i] = i == 1 ? weight->numel : 1;
        }
        MT_TRY(mt_reshape(weight, sizes, x->n_dims, MT_STEP(b)));
        MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
        MT_TRY(mt_where(positive, mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    if (mt__wants(b, 1)) {
        MT_TRY(mt_mul(mt__bw_grad(b), x, MT_STEP(b)));
        MT_TRY(mt_masked_fill_scalar(mt__bw_last(b), positive, mt_int(0), MT_STEP(b)));
        MT_TRY(give_slope(b, weight));
    }
    return MT_OK;
}
