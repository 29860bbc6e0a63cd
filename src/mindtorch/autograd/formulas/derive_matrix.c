/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of matrix products. With c = a b:
 *
 *     d a = d c b^T        d b = a^T d c
 *
 * An operand that was column-major (a turned weight) gets its gradient in the same layout, as in
 * torch: (b d c^T)^T instead of d c b^T. What accumulates in the weight is then contiguous.
 */
#include "mindtorch/autograd/formulas/backward.h"

/* Which product: whether operands have a batch dimension, and which arguments they are. */
typedef struct product {
    bool batched;
    uint32_t a, b; /* argument numbers */
} product;

static int turn(mt__backward *b, bool batched, mt_tensor *tensor, mt_tensor **out)
{
    mt_tensor **place = mt__bw_temp(b);
    MT_TRY(batched ? mt_transpose(tensor, 1, 2, place) : mt_t(tensor, place));
    *out = *place;
    return MT_OK;
}

static int multiply(mt__backward *b, bool batched, mt_tensor *left, mt_tensor *right,
                    mt_tensor **out)
{
    mt_tensor **place = mt__bw_temp(b);
    MT_TRY(batched ? mt_bmm(left, right, place) : mt_mm(left, right, place));
    *out = *place;
    return MT_OK;
}

static bool is_turned(const mt__backward *b, uint32_t arg)
{
    return mt__input_meta(b, mt__input_of(b, arg))->turned;
}

/* Scales by alpha and gives. */
static int give_scaled(mt__backward *b, uint32_t arg, mt_tensor *grad, const mt_scalar *alpha)
{
    bool is_one = alpha == NULL ||
                  (alpha->kind == MT_KIND_REAL ? alpha->of.real == 1 : alpha->of.integer == 1);
    if (!is_one) {
        mt_tensor **place = mt__bw_temp(b);
        MT_TRY(mt_mul_scalar(grad, *alpha, place));
        grad = *place;
    }
    mt__bw_give(b, arg, grad);
    return MT_OK;
}

/* d a = d c b^T, or (b d c^T)^T. */
static int left_gradient(mt__backward *b, product p, mt_tensor *grad, mt_tensor **out)
{
    mt_tensor *right = b->args[p.b].of.tensor;
    mt_tensor *turned;
    if (!is_turned(b, p.a)) {
        MT_TRY(turn(b, p.batched, right, &turned));
        return multiply(b, p.batched, grad, turned, out);
    }
    MT_TRY(turn(b, p.batched, grad, &turned));
    MT_TRY(multiply(b, p.batched, right, turned, out));
    return turn(b, p.batched, *out, out);
}

/* d b = a^T d c, or (d c^T a)^T. */
static int right_gradient(mt__backward *b, product p, mt_tensor *grad, mt_tensor **out)
{
    mt_tensor *left = b->args[p.a].of.tensor;
    mt_tensor *turned;
    if (!is_turned(b, p.b)) {
        MT_TRY(turn(b, p.batched, left, &turned));
        return multiply(b, p.batched, turned, grad, out);
    }
    MT_TRY(turn(b, p.batched, grad, &turned));
    MT_TRY(multiply(b, p.batched, turned, left, out));
    return turn(b, p.batched, *out, out);
}

static int give_left(mt__backward *b, product p, const mt_scalar *alpha)
{
    mt_tensor *grad;
    if (!mt__wants(b, p.a)) {
        return MT_OK;
    }
    MT_TRY(left_gradient(b, p, b->grads[0], &grad));
    return give_scaled(b, p.a, grad, alpha);
}

static int give_right(mt__backward *b, product p, const mt_scalar *alpha)
{
    mt_tensor *grad;
    if (!mt__wants(b, p.b)) {
        return MT_OK;
    }
    MT_TRY(right_gradient(b, p, b->grads[0], &grad));
    return give_scaled(b, p.b, grad, alpha);
}

static int product_backward(mt__backward *b, product p, const mt_scalar *alpha)
{
    MT_TRY(give_left(b, p, alpha));
    return give_right(b, p, alpha);
}

/* beta times the gradient, summed to the addend's shape. */
static int addend_backward(mt__backward *b, const mt_scalar *beta)
{
    if (!mt__wants(b, 0)) {
        return MT_OK;
    }
    mt_tensor *grad = b->grads[0];
    double factor = beta->kind == MT_KIND_REAL ? beta->of.real : (double)beta->of.integer;
    if (factor != 1) {
        MT_TRY(mt_mul_scalar(grad, *beta, mt__bw_temp(b)));
        grad = mt__bw_last(b);
    }
    mt__bw_give(b, 0, grad);
    return MT_OK;
}

int mt__mm_backward(mt__backward *b)
{
    const product p = {.a = 0, .b = 1};
    MT_TRY(give_right(b, p, NULL)); /* in this order in torch's profiles */
    return give_left(b, p, NULL);
}

int mt__bmm_backward(mt__backward *b)
{
    const product p = {.batched = true, .a = 0, .b = 1};
    MT_TRY(give_right(b, p, NULL));
    return give_left(b, p, NULL);
}

int mt__addmm_backward(mt__backward *b)
{
    MT_TRY(addend_backward(b, &b->args[3]));
    return product_backward(b, (product){.a = 1, .b = 2}, &b->args[4]);
}

int mt__baddbmm_backward(mt__backward *b)
{
    MT_TRY(addend_backward(b, &b->args[3]));
    return product_backward(b, (product){.batched = true, .a = 1, .b = 2}, &b->args[4]);
}
