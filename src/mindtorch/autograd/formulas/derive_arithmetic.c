/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of ops with two and three operands. Formulas are made of differentiable ops, so that
 * their own derivatives are right as well.
 *
 * An operand may be a number: then mt__wants() is false, and the value is in the arguments.
 */
#include "mindtorch/autograd/formulas/formula.h"

#include <math.h>

int mt__add_backward(mt__backward *b)
{
    if (mt__wants(b, 0)) {
        mt__bw_give(b, 0, mt__bw_grad(b));
    }
    if (mt__wants(b, 1)) {
        MT_TRY(mt__bw_scaled(b, mt__bw_grad(b), &b->args[2]));
        MT_TRY(mt__bw_give_last(b, 1));
    }
    return MT_OK;
}

/* -alpha grad for one operand, grad for the other. */
static int difference_backward(mt__backward *b, uint32_t plus, uint32_t minus)
{
    if (mt__wants(b, plus)) {
        mt__bw_give(b, plus, mt__bw_grad(b));
    }
    if (mt__wants(b, minus)) {
        MT_TRY(mt_neg(mt__bw_grad(b), MT_STEP(b)));
        MT_TRY(mt__bw_scaled(b, mt__bw_last(b), &b->args[2]));
        MT_TRY(mt__bw_give_last(b, minus));
    }
    return MT_OK;
}

MT_FORMULA(sub_backward, difference_backward, 0, 1)
MT_FORMULA(rsub_backward, difference_backward, 1, 0)

int mt__mul_backward(mt__backward *b)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (mt__wants(b, i)) {
            MT_TRY(mt__bw_times(b, mt__bw_grad(b), &b->args[1 - i]));
            MT_TRY(mt__bw_give_last(b, i));
        }
    }
    return MT_OK;
}

int mt__div_backward(mt__backward *b)
{
    if (b->args[2].kind != MT_KIND_NONE) { /* rounded: steps */
        MT_TRY(mt__bw_give_zeros(b, 0));
        return mt__bw_give_zeros(b, 1);
    }
    if (mt__wants(b, 0)) {
        MT_TRY(mt__bw_over(b, mt__bw_grad(b), &b->args[1]));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    if (mt__wants(b, 1)) { /* - grad self / other^2 */
        mt_tensor *other = mt__bw_arg(b, 1);
        MT_TRY(mt_div(mt__bw_arg(b, 0), other, MT_STEP(b)));
        MT_TRY(mt_div(mt__bw_last(b), other, MT_STEP(b)));
        mt_tensor *slope = mt__bw_last(b);
        MT_TRY(mt_neg(mt__bw_grad(b), MT_STEP(b)));
        MT_TRY(mt_mul(mt__bw_last(b), slope, MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 1));
    }
    return MT_OK;
}

/* self - other * rounded(self / other) */
static int modulo_backward(mt__backward *b, const char *rounding)
{
    if (mt__wants(b, 0)) {
        mt__bw_give(b, 0, mt__bw_grad(b));
    }
    if (mt__wants(b, 1)) {
        MT_TRY(mt_div_with(mt__bw_arg(b, 0), mt__bw_arg(b, 1), rounding, MT_STEP(b)));
        mt_tensor *times = mt__bw_last(b);
        MT_TRY(mt_neg(mt__bw_grad(b), MT_STEP(b)));
        MT_TRY(mt_mul(mt__bw_last(b), times, MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 1));
    }
    return MT_OK;
}

MT_FORMULA(remainder_backward, modulo_backward, "floor")
MT_FORMULA(fmod_backward, modulo_backward, "trunc")

/* ---- pow ------------------------------------------------------------------------------------- */

/* grad exponent self^(exponent - 1); 0 where the exponent is 0, whatever self is. */
static int pow_base_backward(mt__backward *b)
{
    mt_tensor *self = mt__bw_arg(b, 0);
    const mt_value *exponent = &b->args[1];
    if (exponent->kind != MT_KIND_TENSOR) {
        bool real = exponent->kind == MT_KIND_REAL;
        double e = real ? exponent->of.real : (double)exponent->of.integer;
        if (e == 0) {
            return mt__bw_give_zeros(b, 0);
        }
        MT_TRY(mt_pow_tensor_scalar(self, real ? mt_real(e - 1) : mt_int(exponent->of.integer - 1),
                                    MT_STEP(b)));
        MT_TRY(mt_mul_scalar(mt__bw_last(b), *exponent, MT_STEP(b)));
        MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
        return mt__bw_give_last(b, 0);
    }
    mt_tensor *e = exponent->of.tensor;
    MT_TRY(mt_eq_scalar(e, mt_int(0), MT_STEP(b)));
    mt_tensor *flat = mt__bw_last(b);
    MT_TRY(mt_sub_scalar(e, mt_int(1), MT_STEP(b)));
    MT_TRY(mt_pow(self, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_last(b), e, MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_where_scalar_tensor(flat, mt_real(0), mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* grad self^exponent log(self); 0 where self is 0 and the exponent is not negative. */
static int pow_exponent_backward(mt__backward *b)
{
    const mt_value *self = &b->args[0];
    mt_tensor *e = mt__bw_arg(b, 1);
    mt_tensor *zero = NULL; /* where the derivative is 0 */
    if (self->kind == MT_KIND_TENSOR) {
        MT_TRY(mt_pow(self->of.tensor, e, MT_STEP(b)));
        mt_tensor *power = mt__bw_last(b);
        MT_TRY(mt_log(self->of.tensor, MT_STEP(b)));
        MT_TRY(mt_mul(power, mt__bw_last(b), MT_STEP(b)));
        MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
        mt_tensor *slope = mt__bw_last(b);
        MT_TRY(mt_eq_scalar(self->of.tensor, mt_int(0), MT_STEP(b)));
        mt_tensor *at_zero = mt__bw_last(b);
        MT_TRY(mt_ge_scalar(e, mt_int(0), MT_STEP(b)));
        MT_TRY(mt_logical_and(at_zero, mt__bw_last(b), MT_STEP(b)));
        zero = mt__bw_last(b);
        MT_TRY(mt_where_scalar_tensor(zero, mt_real(0), slope, MT_STEP(b)));
        return mt__bw_give_last(b, 1);
    }
    double base = self->kind == MT_KIND_REAL ? self->of.real : (double)self->of.integer;
    MT_TRY(mt_pow_scalar_tensor(*self, e, MT_STEP(b)));
    MT_TRY(mt_mul_scalar(mt__bw_last(b), mt_real(log(base)), MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    if (base == 0) {
        mt_tensor *slope = mt__bw_last(b);
        MT_TRY(mt_ge_scalar(e, mt_int(0), MT_STEP(b)));
        MT_TRY(mt_where_scalar_tensor(mt__bw_last(b), mt_real(0), slope, MT_STEP(b)));
    }
    return mt__bw_give_last(b, 1);
}

int mt__pow_backward(mt__backward *b)
{
    if (mt__wants(b, 0)) {
        MT_TRY(pow_base_backward(b));
    }
    return mt__wants(b, 1) ? pow_exponent_backward(b) : MT_OK;
}

/* ---- angles, extremes ------------------------------------------------------------------------ */

int mt__atan2_backward(mt__backward *b)
{
    mt_tensor *self = mt__bw_arg(b, 0);
    mt_tensor *other = mt__bw_arg(b, 1);
    MT_TRY(mt_mul(self, self, MT_STEP(b)));
    mt_tensor *square = mt__bw_last(b);
    MT_TRY(mt_addcmul(square, other, other, MT_STEP(b)));
    mt_tensor *sum = mt__bw_last(b);
    MT_TRY(mt_eq_scalar(sum, mt_int(0), MT_STEP(b)));
    mt_tensor *origin = mt__bw_last(b);
    MT_TRY(mt_div(mt__bw_grad(b), sum, MT_STEP(b)));
    MT_TRY(mt_masked_fill_scalar(mt__bw_last(b), origin, mt_int(0), MT_STEP(b)));
    mt_tensor *scale = mt__bw_last(b);
    if (mt__wants(b, 0)) {
        MT_TRY(mt_mul(scale, other, MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    if (mt__wants(b, 1)) {
        MT_TRY(mt_neg(self, MT_STEP(b)));
        MT_TRY(mt_mul(scale, mt__bw_last(b), MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 1));
    }
    return MT_OK;
}

/* grad operand / length, for both operands */
int mt__hypot_backward(mt__backward *b)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (mt__wants(b, i)) {
            MT_TRY(mt_div(mt__bw_arg(b, i), mt__bw_result(b, 0), MT_STEP(b)));
            MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
            MT_TRY(mt__bw_give_last(b, i));
        }
    }
    return MT_OK;
}

/* 1 or -1 times grad; 0 where self is 0, and for the sign. */
int mt__copysign_backward(mt__backward *b)
{
    if (mt__wants(b, 0)) {
        mt_tensor *self = mt__bw_arg(b, 0);
        MT_TRY(mt_eq_scalar(self, mt_int(0), MT_STEP(b)));
        mt_tensor *zero = mt__bw_last(b);
        MT_TRY(mt_div(mt__bw_result(b, 0), self, MT_STEP(b)));
        MT_TRY(mt_masked_fill_scalar(mt__bw_last(b), zero, mt_int(0), MT_STEP(b)));
        MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    return mt__bw_give_zeros(b, 1);
}

/* grad / (1 + e^(other - self)), and the other way round */
int mt__logaddexp_backward(mt__backward *b)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (mt__wants(b, i)) {
            MT_TRY(mt_sub(mt__bw_arg(b, 1 - i), mt__bw_arg(b, i), MT_STEP(b)));
            MT_TRY(mt_exp(mt__bw_last(b), MT_STEP(b)));
            MT_TRY(mt_add_scalar(mt__bw_last(b), mt_int(1), MT_STEP(b)));
            MT_TRY(mt_div(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
            MT_TRY(mt__bw_give_last(b, i));
        }
    }
    return MT_OK;
}

/* Equal operands share the gradient; with a NaN both have it. */
static int choice_backward(mt__backward *b, bool largest)
{
    mt_tensor *self = mt__bw_arg(b, 0);
    mt_tensor *other = mt__bw_arg(b, 1);
    MT_TRY(mt_eq(self, other, MT_STEP(b)));
    mt_tensor *tie = mt__bw_last(b);
    MT_TRY(mt_div_scalar(mt__bw_grad(b), mt_int(2), MT_STEP(b)));
    MT_TRY(mt_where(tie, mt__bw_last(b), mt__bw_grad(b), MT_STEP(b)));
    mt_tensor *share = mt__bw_last(b);
    for (uint32_t i = 0; i < 2; i++) {
        if (mt__wants(b, i)) {
            bool loses_below = largest == (i == 0);
            MT_TRY(loses_below ? mt_lt(self, other, MT_STEP(b)) : mt_gt(self, other, MT_STEP(b)));
            MT_TRY(mt_masked_fill_scalar(share, mt__bw_last(b), mt_int(0), MT_STEP(b)));
            MT_TRY(mt__bw_give_last(b, i));
        }
    }
    return MT_OK;
}

MT_FORMULA(maximum_backward, choice_backward, true)
MT_FORMULA(minimum_backward, choice_backward, false)

/* ---- three operands -------------------------------------------------------------------------- */

int mt__where_backward(mt__backward *b)
{
    mt_tensor *condition = mt__bw_arg(b, 0);
    if (mt__wants(b, 1)) {
        MT_TRY(mt_where_tensor_scalar(condition, mt__bw_grad(b), mt_real(0), MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 1));
    }
    if (mt__wants(b, 2)) {
        MT_TRY(mt_where_scalar_tensor(condition, mt_real(0), mt__bw_grad(b), MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 2));
    }
    return MT_OK;
}

int mt__masked_fill_backward(mt__backward *b)
{
    mt_tensor *mask = mt__bw_arg(b, 1);
    if (mt__wants(b, 0)) {
        MT_TRY(mt_masked_fill_scalar(mt__bw_grad(b), mask, mt_int(0), MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    if (mt__wants(b, 2)) {
        MT_TRY(mt_where_tensor_scalar(mask, mt__bw_grad(b), mt_real(0), MT_STEP(b)));
        MT_TRY(mt_sum(mt__bw_last(b), NULL, 0, false, MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 2));
    }
    return MT_OK;
}

/* self + weight (end - self) */
int mt__lerp_backward(mt__backward *b)
{
    const mt_value *weight = &b->args[2];
    if (mt__wants(b, 0)) {
        if (weight->kind == MT_KIND_TENSOR) {
            MT_TRY(mt_rsub_scalar(weight->of.tensor, mt_int(1), MT_STEP(b)));
            MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
        } else {
            double w = weight->kind == MT_KIND_REAL ? weight->of.real : (double)weight->of.integer;
            MT_TRY(mt_mul_scalar(mt__bw_grad(b), mt_real(1 - w), MT_STEP(b)));
        }
        MT_TRY(mt__bw_give_last(b, 0));
    }
    if (mt__wants(b, 1)) {
        MT_TRY(mt__bw_times(b, mt__bw_grad(b), weight));
        MT_TRY(mt__bw_give_last(b, 1));
    }
    if (mt__wants(b, 2)) {
        MT_TRY(mt_sub(mt__bw_arg(b, 1), mt__bw_arg(b, 0), MT_STEP(b)));
        MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 2));
    }
    return MT_OK;
}

int mt__addcmul_backward(mt__backward *b)
{
    if (mt__wants(b, 0)) {
        mt__bw_give(b, 0, mt__bw_grad(b));
    }
    for (uint32_t i = 1; i <= 2; i++) {
        if (mt__wants(b, i)) {
            MT_TRY(mt__bw_scaled(b, mt__bw_arg(b, 3 - i), &b->args[3]));
            MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
            MT_TRY(mt__bw_give_last(b, i));
        }
    }
    return MT_OK;
}

/* self + value a / c */
int mt__addcdiv_backward(mt__backward *b)
{
    if (mt__wants(b, 0)) {
        mt__bw_give(b, 0, mt__bw_grad(b));
    }
    if (!mt__wants(b, 1) && !mt__wants(b, 2)) {
        return MT_OK;
    }
    MT_TRY(mt__bw_scaled(b, mt__bw_grad(b), &b->args[3]));
    MT_TRY(mt_div(mt__bw_last(b), mt__bw_arg(b, 2), MT_STEP(b)));
    mt_tensor *slope = mt__bw_last(b);
    if (mt__wants(b, 1)) {
        mt__bw_give(b, 1, slope);
    }
    if (mt__wants(b, 2)) {
        MT_TRY(mt_div(mt__bw_arg(b, 1), mt__bw_arg(b, 2), MT_STEP(b)));
        MT_TRY(mt_mul(slope, mt__bw_last(b), MT_STEP(b)));
        MT_TRY(mt_neg(mt__bw_last(b), MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 2));
    }
    return MT_OK;
}
