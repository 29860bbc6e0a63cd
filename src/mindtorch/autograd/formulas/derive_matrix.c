/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of matrix products. With c = a b:
 *
 *     d a = d c b^T        d b = a^T d c
 *
 * An operand that was column-major (a turned weight) gets its gradient in the same layout, as in
 * torch: (b d c^T)^T instead of d c b^T. What accumulates in the weight is then contiguous.
 */
#include "mindtorch/autograd/formulas/formula.h"
#include "mindtorch/dispatch/boxing.h"

/* Which product: whether operands have a batch dimension, which arguments they are, and the factor
 * alpha, or NULL. */
typedef struct product {
    bool batched;
    uint32_t a, b; /* argument numbers */
    const mt_scalar *alpha;
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

/* Gives argument `arg` factor * grad. */
static int give_scaled(mt__backward *b, uint32_t arg, mt_tensor *grad, const mt_scalar *factor)
{
    if (factor != NULL) {
        MT_TRY(mt__bw_scaled(b, (const mt_value[]){mt__box_tensor(grad), *factor}, &grad));
    }
    mt__bw_give(b, arg, grad);
    return MT_OK;
}

/* d a = d c b^T or (b d c^T)^T, d b = a^T d c or (d c^T a)^T: whether the operand was turned. */
static int give_operand(mt__backward *b, const product *p, bool left)
{
    uint32_t arg = left ? p->a : p->b;
    if (!mt__wants(b, arg)) {
        return MT_OK;
    }
    mt_tensor *other = mt__bw_arg(b, left ? p->b : p->a);
    mt_tensor *grad = mt__bw_grad(b);
    bool turned = mt__input_meta(b, mt__input_of(b, arg))->turned;
    MT_TRY(mt__bw_conjugate(b, other, &other));
    MT_TRY(turn(b, p->batched, turned ? grad : other, turned ? &grad : &other));
    bool grad_first = left != turned;
    MT_TRY(multiply(b, p->batched, grad_first ? grad : other, grad_first ? other : grad, &grad));
    if (turned) {
        MT_TRY(turn(b, p->batched, grad, &grad));
    }
    return give_scaled(b, arg, grad, p->alpha);
}

/* mm and bmm: the right operand first, as in torch's profiles. */
static int plain_backward(mt__backward *b, bool batched)
{
    const product p = {.batched = batched, .a = 0, .b = 1};
    MT_TRY(give_operand(b, &p, false));
    return give_operand(b, &p, true);
}

MT_FORMULA(mm_backward, plain_backward, false)
MT_FORMULA(bmm_backward, plain_backward, true)

/* addmm and baddbmm: beta times the gradient for the addend, which the engine sums to its shape. */
static int added_backward(mt__backward *b, bool batched)
{
    const product p = {.batched = batched, .a = 1, .b = 2, .alpha = &b->args[4]};
    if (mt__wants(b, 0)) {
        MT_TRY(give_scaled(b, 0, mt__bw_grad(b), &b->args[3]));
    }
    MT_TRY(give_operand(b, &p, true));
    return give_operand(b, &p, false);
}

MT_FORMULA(addmm_backward, added_backward, false)
MT_FORMULA(baddbmm_backward, added_backward, true)
