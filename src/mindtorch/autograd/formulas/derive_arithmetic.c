/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of ops of which an operand may be a number: then mt__wants() is false, and the value
 * is in the arguments.
 */
#include "mindtorch/autograd/formulas/formula.h"
#include "mindtorch/dispatch/call.h"

#include <math.h>

/* lerp_self(grad, weight): grad (1 - weight), of self + weight (end - self). */
int mt__bw_lerp_self(mt__backward *b, const mt_value *args, mt_tensor **out)
{
    mt_tensor *grad = args[0].of.tensor;
    if (args[1].kind == MT_KIND_TENSOR) {
        MT_TRY(mt_rsub_scalar(args[1].of.tensor, mt_int(1), MT_STEP(b)));
        MT_TRY(mt_mul(grad, mt__bw_last(b), MT_STEP(b)));
    } else {
        MT_TRY(mt_mul_scalar(grad, mt_real(1 - mt__scalar_real(&args[1])), MT_STEP(b)));
    }
    *out = mt__bw_last(b);
    return MT_OK;
}

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
        mt_tensor *slope = NULL;
        MT_TRY(mt__bw_conjugate(b, mt__bw_last(b), &slope));
        MT_TRY(mt_mul(mt__bw_grad(b), slope, MT_STEP(b)));
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

int mt__polygamma_backward(mt__backward *b)
{
    MT_TRY(mt_polygamma(b->args[0].of.integer + 1, mt__bw_arg(b, 1), MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 1);
}

int mt__pow_backward(mt__backward *b)
{
    bool number = b->args[1].kind != MT_KIND_TENSOR;
    if (!number && mt__tensor_category(mt__bw_grad(b)) == MT_CATEGORY_COMPLEX) {
        return mtb_fail(MT_ENOTSUP,
                        "the derivative for 'pow' of complex tensors is implemented for "
                        "exponents that are numbers");
    }
    if (mt__wants(b, 0)) {
        MT_TRY(pow_base_backward(b));
    }
    return mt__wants(b, 1) ? pow_exponent_backward(b) : MT_OK;
}

/* ---- special functions ----------------------------------------------------------------------- */

/* grad / (x (1 - x)); 0 outside [eps, 1 - eps], NaN outside [0, 1] without an eps. */
int mt__logit_backward(mt__backward *b)
{
    mt_tensor *x = mt__bw_arg(b, 0);
    bool bounded = b->args[1].kind != MT_KIND_NONE;
    double low = bounded ? mt__scalar_real(&b->args[1]) : 0.0;
    MT_TRY(mt_rsub_scalar(x, mt_int(1), MT_STEP(b)));
    MT_TRY(mt_mul(x, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_div(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    mt_tensor *slope = mt__bw_last(b);
    MT_TRY(mt_lt_scalar(x, mt_real(low), MT_STEP(b)));
    mt_tensor *below = mt__bw_last(b);
    MT_TRY(mt_gt_scalar(x, mt_real(1.0 - low), MT_STEP(b)));
    MT_TRY(mt_logical_or(below, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_masked_fill_scalar(slope, mt__bw_last(b), mt_real(bounded ? 0.0 : (double)NAN),
                                 MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

static MT_COLD int refuse_derivative(const char *of)
{
    return mtb_fail(MT_ENOTSUP, "the derivative for '%s' is not implemented.", of);
}

/* The density of the gamma distribution at other: x^(a - 1) e^-x / gamma(a). */
static int gamma_share_backward(mt__backward *b, const char *of, double sign)
{
    mt_tensor *a = mt__bw_arg(b, 0);
    mt_tensor *x = mt__bw_arg(b, 1);
    if (mt__wants(b, 0)) {
        return refuse_derivative(of);
    }
    MT_TRY(mt_sub_scalar(a, mt_int(1), MT_STEP(b)));
    mt_tensor *power = mt__bw_last(b);
    MT_TRY(mt_log(x, MT_STEP(b)));
    MT_TRY(mt_mul(power, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_sub(mt__bw_last(b), x, MT_STEP(b)));
    mt_tensor *top = mt__bw_last(b);
    MT_TRY(mt_lgamma(a, MT_STEP(b)));
    MT_TRY(mt_sub(top, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_exp(mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    if (sign < 0) {
        MT_TRY(mt_neg(mt__bw_last(b), MT_STEP(b)));
    }
    return mt__bw_give_last(b, 1);
}

MT_FORMULA(igamma_backward, gamma_share_backward, "igamma: input", 1)
MT_FORMULA(igammac_backward, gamma_share_backward, "igammac: input", -1)

/* By the second argument: -s zeta(s + 1, q). */
int mt__zeta_backward(mt__backward *b)
{
    if (mt__wants(b, 0)) {
        return refuse_derivative("zeta: self");
    }
    mt_tensor *s = mt__bw_arg(b, 0);
    MT_TRY(mt_add_scalar(s, mt_int(1), MT_STEP(b)));
    MT_TRY(mt_special_zeta(mt__bw_last(b), mt__bw_arg(b, 1), MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_last(b), s, MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_neg(mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 1);
}
