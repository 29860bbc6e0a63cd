/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of the activations of op_activation.c. Made of simple ops, so that they have
 * derivatives themselves. On the borders, and for NaN, they are torch's.
 */
#include "mindtorch/autograd/formulas/formula.h"
#include "mindtorch/dispatch/call.h"
#include "mindtorch/ops/nn/selu_constants.h"

int mt__selu_backward(mt__backward *b)
{
    MT_TRY(mt_elu_backward(mt__bw_grad(b), mt_real(MT_SELU_ALPHA), mt_real(MT_SELU_SCALE),
                           mt_int(1), false, mt__bw_arg(b, 0), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__celu_backward(mt__backward *b)
{
    MT_TRY(mt_elu_backward(mt__bw_grad(b), b->args[1], mt_int(1),
                           mt_real(1.0 / mt__scalar_real(&b->args[1])), false, mt__bw_arg(b, 0),
                           MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* Below 0 the slope is scale alpha k exp(k x), k = input_scale, or (y + alpha scale) k of the
 * result y: its own slope is k times itself, or k. */
int mt__elu_twice(mt__backward *b)
{
    mt_tensor *x = mt__bw_arg(b, 5);
    bool is_result = b->args[4].of.integer != 0;
    if (mt__wants(b, 0)) {
        MT_TRY(mt_elu_backward(mt__bw_grad(b), b->args[1], b->args[2], b->args[3], is_result, x,
                               MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    if (mt__wants(b, 5)) {
        MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_arg(b, 0), MT_STEP(b)));
        MT_TRY(mt_mul_scalar(mt__bw_last(b), b->args[3], MT_STEP(b)));
        if (!is_result) {
            MT_TRY(mt_elu_backward(mt__bw_last(b), b->args[1], b->args[2], b->args[3], false, x,
                                   MT_STEP(b)));
        }
        mt_tensor *slope = mt__bw_last(b);
        MT_TRY(mt_ge_scalar(x, mt_int(0), MT_STEP(b)));
        MT_TRY(mt_masked_fill_scalar(slope, mt__bw_last(b), mt_int(0), MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 5));
    }
    return MT_OK;
}

/* The derivative is g s and g a s (1 - s), a and b the halves of x, s = sigmoid(b). With h and k
 * coming in for them: by g, h s + k a s (1 - s); by a, k g s (1 - s); by b,
 * h g s (1 - s) + k g a s (1 - s) (1 - 2 s). */
int mt__glu_twice(mt__backward *b)
{
    mt_tensor *g = mt__bw_arg(b, 0);
    mt_tensor *x = mt__bw_arg(b, 1);
    int64_t dim = b->args[2].of.integer;
    int64_t half = x->sizes[dim < 0 ? dim + x->n_dims : dim] / 2;
    mt_tensor *halves[4];
    for (uint32_t i = 0; i < 4; i++) {
        MT_TRY(mt_narrow(i < 2 ? mt__bw_grad(b) : x, dim, i % 2 == 0 ? 0 : half, half, MT_STEP(b)));
        halves[i] = mt__bw_last(b);
    }
    MT_TRY(mt_sigmoid(halves[3], MT_STEP(b)));
    mt_tensor *s = mt__bw_last(b);
    MT_TRY(mt_mul(halves[1], halves[2], MT_STEP(b)));
    mt_tensor *both = mt__bw_last(b); /* k a */
    if (mt__wants(b, 0)) {
        MT_TRY(mt_mul(halves[0], s, MT_STEP(b)));
        mt_tensor *first = mt__bw_last(b);
        MT_TRY(mt_sigmoid_backward(both, s, MT_STEP(b)));
        MT_TRY(mt_add(first, mt__bw_last(b), MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    if (mt__wants(b, 1)) {
        mt_tensor *parts[2] = {NULL, NULL};
        MT_TRY(mt_sigmoid_backward(g, s, MT_STEP(b)));
        mt_tensor *slope = mt__bw_last(b); /* g s (1 - s) */
        MT_TRY(mt_mul(halves[1], slope, MT_STEP(b)));
        parts[0] = mt__bw_last(b);
        MT_TRY(mt_mul_scalar(s, mt_int(-2), MT_STEP(b)));
        MT_TRY(mt_add_scalar(mt__bw_last(b), mt_int(1), MT_STEP(b)));
        MT_TRY(mt_mul(both, mt__bw_last(b), MT_STEP(b)));
        MT_TRY(mt_add(halves[0], mt__bw_last(b), MT_STEP(b)));
        MT_TRY(mt_mul(slope, mt__bw_last(b), MT_STEP(b)));
        parts[1] = mt__bw_last(b);
        MT_TRY(mt_cat(parts, 2, dim, MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 1));
    }
    return MT_OK;
}

int mt__prelu_backward(mt__backward *b)
{
    mt_tensor **by_self = MT_STEP(b);
    mt_tensor **by_weight = MT_STEP(b);
    MT_TRY(mt__prelu_kernel_backward(mt__bw_grad(b), mt__bw_arg(b, 0), mt__bw_arg(b, 1), by_self,
                                     by_weight));
    mt__bw_give(b, 0, *by_self);
    mt__bw_give(b, 1, *by_weight); /* the engine sums it to the slope's sizes */
    return MT_OK;
}

/* The latest step where x is not positive, and 0 elsewhere. */
static int keep_below(mt__backward *b, mt_tensor *positive)
{
    return mt_masked_fill_scalar(mt__bw_last(b), positive, mt_int(0), MT_STEP(b));
}

/* Of mt__prelu_twice: by g, h where x is positive and w h elsewhere, plus k x there. */
static int prelu_by_grad(mt__backward *b, mt_tensor *positive)
{
    mt_tensor *first = b->grads[0];
    mt_tensor *second = b->grads[1];
    mt_tensor *sum = NULL;
    if (first != NULL) {
        MT_TRY(mt_mul(first, mt__bw_arg(b, 2), MT_STEP(b)));
        MT_TRY(mt_where(positive, first, mt__bw_last(b), MT_STEP(b)));
        sum = mt__bw_last(b);
    }
    if (second != NULL) {
        MT_TRY(mt_mul(second, mt__bw_arg(b, 1), MT_STEP(b)));
        MT_TRY(keep_below(b, positive));
        mt_tensor *share = mt__bw_last(b);
        if (sum != NULL) {
            MT_TRY(mt_add(sum, share, MT_STEP(b)));
        }
        sum = mt__bw_last(b);
    }
    mt__bw_give(b, 0, sum);
    return MT_OK;
}

/* With h and k coming in for x > 0 ? g : w g and for x > 0 ? 0 : x g: by g the same slopes, by x
 * k g and by w h g where x is not positive. */
int mt__prelu_twice(mt__backward *b)
{
    mt_tensor *grad = mt__bw_arg(b, 0);
    mt_tensor *x = mt__bw_arg(b, 1);
    mt_tensor *first = b->grads[0];
    mt_tensor *second = b->grads[1];
    MT_TRY(mt_gt_scalar(x, mt_int(0), MT_STEP(b)));
    mt_tensor *positive = mt__bw_last(b);
    if (mt__wants(b, 0)) {
        MT_TRY(prelu_by_grad(b, positive));
    }
    if (mt__wants(b, 1) && second != NULL) {
        MT_TRY(mt_mul(second, grad, MT_STEP(b)));
        MT_TRY(keep_below(b, positive));
        MT_TRY(mt__bw_give_last(b, 1));
    }
    if (mt__wants(b, 2) && first != NULL) {
        MT_TRY(mt_mul(first, grad, MT_STEP(b)));
        MT_TRY(keep_below(b, positive));
        MT_TRY(mt__bw_give_last(b, 2));
    }
    return MT_OK;
}
