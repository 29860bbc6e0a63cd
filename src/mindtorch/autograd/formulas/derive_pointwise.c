/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of functions of one operand, and of their derivatives.
 */
#include "mindtorch/autograd/formulas/formula.h"

#include <math.h>
#include <string.h>

#define LN2            0.693147180559945309417
#define LN10           2.302585092994045684018
#define TWO_BY_ROOT_PI 1.128379167095512573896 /* 2 / sqrt(pi) */
#define ROOT_2_BY_PI   0.797884560802865355880 /* sqrt(2 / pi) */

/* grad * the latest step, to argument 0. */
static int give_times_grad(mt__backward *b)
{
    MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__abs_backward(mt__backward *b)
{
    MT_TRY(mt_sign(mt__bw_arg(b, 0), MT_STEP(b)));
    return give_times_grad(b);
}

int mt__neg_backward(mt__backward *b)
{
    MT_TRY(mt_neg(mt__bw_grad(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* - grad result^2 */
int mt__reciprocal_backward(mt__backward *b)
{
    mt_tensor *result = mt__bw_result(b, 0);
    MT_TRY(mt_mul(result, result, MT_STEP(b)));
    MT_TRY(mt_neg(mt__bw_last(b), MT_STEP(b)));
    return give_times_grad(b);
}

int mt__sqrt_backward(mt__backward *b)
{
    MT_TRY(mt_mul_scalar(mt__bw_result(b, 0), mt_int(2), MT_STEP(b)));
    MT_TRY(mt_div(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* - grad result^3 / 2 */
int mt__rsqrt_backward(mt__backward *b)
{
    MT_TRY(mt_pow_tensor_scalar(mt__bw_result(b, 0), mt_int(3), MT_STEP(b)));
    MT_TRY(mt_mul_scalar(mt__bw_last(b), mt_real(-0.5), MT_STEP(b)));
    return give_times_grad(b);
}

int mt__exp_backward(mt__backward *b)
{
    MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_result(b, 0), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__expm1_backward(mt__backward *b)
{
    MT_TRY(mt_add_scalar(mt__bw_result(b, 0), mt_int(1), MT_STEP(b)));
    return give_times_grad(b);
}

/* grad / (self * factor) */
static int log_of_base_backward(mt__backward *b, double factor)
{
    mt_tensor *self = mt__bw_arg(b, 0);
    if (factor != 1) {
        MT_TRY(mt_mul_scalar(self, mt_real(factor), MT_STEP(b)));
        self = mt__bw_last(b);
    }
    MT_TRY(mt_div(mt__bw_grad(b), self, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

MT_FORMULA(log_backward, log_of_base_backward, 1)
MT_FORMULA(log2_backward, log_of_base_backward, LN2)
MT_FORMULA(log10_backward, log_of_base_backward, LN10)

int mt__log1p_backward(mt__backward *b)
{
    MT_TRY(mt_add_scalar(mt__bw_arg(b, 0), mt_int(1), MT_STEP(b)));
    MT_TRY(mt_div(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__sin_backward(mt__backward *b)
{
    MT_TRY(mt_cos(mt__bw_arg(b, 0), MT_STEP(b)));
    return give_times_grad(b);
}

int mt__cos_backward(mt__backward *b)
{
    MT_TRY(mt_sin(mt__bw_arg(b, 0), MT_STEP(b)));
    MT_TRY(mt_neg(mt__bw_last(b), MT_STEP(b)));
    return give_times_grad(b);
}

int mt__tan_backward(mt__backward *b)
{
    mt_tensor *result = mt__bw_result(b, 0);
    MT_TRY(mt_mul(result, result, MT_STEP(b)));
    MT_TRY(mt_add_scalar(mt__bw_last(b), mt_int(1), MT_STEP(b)));
    return give_times_grad(b);
}

/* factor e^(-self^2) grad */
static int bell_backward(mt__backward *b, double factor)
{
    mt_tensor *self = mt__bw_arg(b, 0);
    MT_TRY(mt_mul(self, self, MT_STEP(b)));
    MT_TRY(mt_neg(mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_exp(mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_mul_scalar(mt__bw_last(b), mt_real(factor), MT_STEP(b)));
    return give_times_grad(b);
}

MT_FORMULA(erf_backward, bell_backward, TWO_BY_ROOT_PI)
MT_FORMULA(erfc_backward, bell_backward, -TWO_BY_ROOT_PI)

int mt__sinh_backward(mt__backward *b)
{
    MT_TRY(mt_cosh(mt__bw_arg(b, 0), MT_STEP(b)));
    return give_times_grad(b);
}

int mt__cosh_backward(mt__backward *b)
{
    MT_TRY(mt_sinh(mt__bw_arg(b, 0), MT_STEP(b)));
    return give_times_grad(b);
}

/* ---- activations ----------------------------------------------------------------------------- */

int mt__tanh_backward(mt__backward *b)
{
    MT_TRY(mt_tanh_backward(mt__bw_grad(b), mt__bw_result(b, 0), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__sigmoid_backward(mt__backward *b)
{
    MT_TRY(mt_sigmoid_backward(mt__bw_grad(b), mt__bw_result(b, 0), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__gelu_backward(mt__backward *b)
{
    MT_TRY(mt_gelu_backward_with(mt__bw_grad(b), mt__bw_arg(b, 0), b->args[1].of.text, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__silu_backward(mt__backward *b)
{
    MT_TRY(mt_silu_backward(mt__bw_grad(b), mt__bw_arg(b, 0), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__relu_backward(mt__backward *b)
{
    MT_TRY(mt_threshold_backward(mt__bw_grad(b), mt__bw_result(b, 0), mt_int(0), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__log_sigmoid_backward(mt__backward *b)
{
    MT_TRY(mt_neg(mt__bw_arg(b, 0), MT_STEP(b)));
    MT_TRY(mt_sigmoid(mt__bw_last(b), MT_STEP(b)));
    return give_times_grad(b);
}

int mt__leaky_relu_backward(mt__backward *b)
{
    MT_TRY(mt_gt_scalar(mt__bw_arg(b, 0), mt_int(0), MT_STEP(b)));
    mt_tensor *positive = mt__bw_last(b);
    MT_TRY(mt_mul_scalar(mt__bw_grad(b), b->args[1], MT_STEP(b)));
    MT_TRY(mt_where(positive, mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* alpha exp(self) on the negative side. exp() of large numbers is never chosen, but its gradient
 * would be inf * 0: it is taken of the negative part alone. */
int mt__elu_backward(mt__backward *b)
{
    mt_tensor *self = mt__bw_arg(b, 0);
    MT_TRY(mt_le_scalar(self, mt_int(0), MT_STEP(b)));
    mt_tensor *negative = mt__bw_last(b);
    MT_TRY(mt_clamp_max(self, mt_int(0), MT_STEP(b)));
    MT_TRY(mt_exp(mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_mul_scalar(mt__bw_last(b), b->args[1], MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_where(negative, mt__bw_last(b), mt__bw_grad(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* sigmoid(beta self); 1 above the threshold. */
int mt__softplus_backward(mt__backward *b)
{
    MT_TRY(mt_mul_scalar(mt__bw_arg(b, 0), b->args[1], MT_STEP(b)));
    mt_tensor *scaled = mt__bw_last(b);
    MT_TRY(mt_gt_scalar(scaled, b->args[2], MT_STEP(b)));
    mt_tensor *linear = mt__bw_last(b);
    MT_TRY(mt_sigmoid(scaled, MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_where(linear, mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__hardtanh_backward(mt__backward *b)
{
    mt_tensor *self = mt__bw_arg(b, 0);
    MT_TRY(mt_le_scalar(self, b->args[1], MT_STEP(b)));
    mt_tensor *below = mt__bw_last(b);
    MT_TRY(mt_ge_scalar(self, b->args[2], MT_STEP(b)));
    MT_TRY(mt_logical_or(below, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_masked_fill_scalar(mt__bw_grad(b), mt__bw_last(b), mt_int(0), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* ---- bounds: inside, and on them, the gradient passes ---------------------------------------- */

/* Bounds are numbers or NONE. */
static int bounded_backward(mt__backward *b, const mt_scalar *lower, const mt_scalar *upper)
{
    mt_tensor *self = mt__bw_arg(b, 0);
    mt_tensor *inside = NULL;
    if (lower->kind != MT_KIND_NONE) {
        MT_TRY(mt_ge_scalar(self, *lower, MT_STEP(b)));
        inside = mt__bw_last(b);
    }
    if (upper->kind != MT_KIND_NONE) {
        MT_TRY(mt_le_scalar(self, *upper, MT_STEP(b)));
        if (inside != NULL) {
            MT_TRY(mt_logical_and(inside, mt__bw_last(b), MT_STEP(b)));
        }
        inside = mt__bw_last(b);
    }
    MT_TRY(mt_where_tensor_scalar(inside, mt__bw_grad(b), mt_real(0), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__clamp_backward(mt__backward *b)
{
    return bounded_backward(b, &b->args[1], &b->args[2]);
}

int mt__clamp_min_backward(mt__backward *b)
{
    static const mt_scalar none = {.kind = MT_KIND_NONE};
    return bounded_backward(b, &b->args[1], &none);
}

int mt__clamp_max_backward(mt__backward *b)
{
    static const mt_scalar none = {.kind = MT_KIND_NONE};
    return bounded_backward(b, &none, &b->args[1]);
}

/* Gives grad where `chosen`, else 0, to argument `arg`. */
static int give_where(mt__backward *b, uint32_t arg, mt_tensor *chosen)
{
    MT_TRY(mt_where_tensor_scalar(chosen, mt__bw_grad(b), mt_real(0), MT_STEP(b)));
    return mt__bw_give_last(b, arg);
}

/* With both bounds the upper one wins where they cross. */
static int both_bounds_backward(mt__backward *b, mt_tensor *self, mt_tensor *lower,
                                mt_tensor *upper)
{
    if (mt__wants(b, 0)) {
        MT_TRY(mt_ge(self, lower, MT_STEP(b)));
        mt_tensor *above = mt__bw_last(b);
        MT_TRY(mt_le(self, upper, MT_STEP(b)));
        MT_TRY(mt_logical_and(above, mt__bw_last(b), MT_STEP(b)));
        MT_TRY(give_where(b, 0, mt__bw_last(b)));
    }
    if (mt__wants(b, 1)) {
        MT_TRY(mt_lt(self, lower, MT_STEP(b)));
        mt_tensor *below = mt__bw_last(b);
        MT_TRY(mt_lt(lower, upper, MT_STEP(b)));
        MT_TRY(mt_logical_and(below, mt__bw_last(b), MT_STEP(b)));
        MT_TRY(give_where(b, 1, mt__bw_last(b)));
    }
    if (mt__wants(b, 2)) {
        MT_TRY(mt_gt(self, upper, MT_STEP(b)));
        mt_tensor *above = mt__bw_last(b);
        MT_TRY(mt_lt(upper, lower, MT_STEP(b)));
        MT_TRY(mt_logical_or(above, mt__bw_last(b), MT_STEP(b)));
        MT_TRY(give_where(b, 2, mt__bw_last(b)));
    }
    return MT_OK;
}

/* One bound, argument `arg`. */
static int bound_backward(mt__backward *b, bool lower, uint32_t arg)
{
    mt_tensor *self = mt__bw_arg(b, 0);
    mt_tensor *bound = mt__bw_arg(b, arg);
    if (mt__wants(b, 0)) {
        MT_TRY(lower ? mt_ge(self, bound, MT_STEP(b)) : mt_le(self, bound, MT_STEP(b)));
        MT_TRY(give_where(b, 0, mt__bw_last(b)));
    }
    if (mt__wants(b, arg)) {
        MT_TRY(lower ? mt_lt(self, bound, MT_STEP(b)) : mt_gt(self, bound, MT_STEP(b)));
        MT_TRY(give_where(b, arg, mt__bw_last(b)));
    }
    return MT_OK;
}

int mt__clamp_tensor_backward(mt__backward *b)
{
    bool lower = b->args[1].kind == MT_KIND_TENSOR;
    if (lower && b->args[2].kind == MT_KIND_TENSOR) {
        return both_bounds_backward(b, mt__bw_arg(b, 0), mt__bw_arg(b, 1), mt__bw_arg(b, 2));
    }
    return bound_backward(b, lower, lower ? 1 : 2);
}

MT_FORMULA(clamp_min_tensor_backward, bound_backward, true, 1)
MT_FORMULA(clamp_max_tensor_backward, bound_backward, false, 1)

/* ---- derivatives of derivatives -------------------------------------------------------------- */

/* Each is f(grad_output, x) = grad_output * slope(x); the incoming gradient is that of f.
 */

/* incoming * grad_output * the latest step, to argument 1. */
static int give_curved(mt__backward *b)
{
    MT_TRY(mt_mul(mt__bw_arg(b, 0), mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 1);
}

int mt__sigmoid_double_backward(mt__backward *b)
{
    mt_tensor *output = mt__bw_arg(b, 1);
    if (mt__wants(b, 0)) {
        MT_TRY(mt_sigmoid_backward(mt__bw_grad(b), output, MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    if (mt__wants(b, 1)) { /* (y (1 - y))' = 1 - 2 y */
        MT_TRY(mt_mul_scalar(output, mt_int(-2), MT_STEP(b)));
        MT_TRY(mt_add_scalar(mt__bw_last(b), mt_int(1), MT_STEP(b)));
        MT_TRY(give_curved(b));
    }
    return MT_OK;
}

int mt__tanh_double_backward(mt__backward *b)
{
    mt_tensor *output = mt__bw_arg(b, 1);
    if (mt__wants(b, 0)) {
        MT_TRY(mt_tanh_backward(mt__bw_grad(b), output, MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    if (mt__wants(b, 1)) { /* (1 - y^2)' = -2 y */
        MT_TRY(mt_mul_scalar(output, mt_int(-2), MT_STEP(b)));
        MT_TRY(give_curved(b));
    }
    return MT_OK;
}

int mt__threshold_double_backward(mt__backward *b)
{
    if (mt__wants(b, 0)) {
        MT_TRY(mt_threshold_backward(mt__bw_grad(b), mt__bw_arg(b, 1), b->args[2], MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    return mt__bw_give_zeros(b, 1);
}

/* (x s(x))'' = s (1 - s) (2 + x (1 - 2 s)) */
int mt__silu_double_backward(mt__backward *b)
{
    mt_tensor *x = mt__bw_arg(b, 1);
    if (mt__wants(b, 0)) {
        MT_TRY(mt_silu_backward(mt__bw_grad(b), x, MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    if (!mt__wants(b, 1)) {
        return MT_OK;
    }
    MT_TRY(mt_sigmoid(x, MT_STEP(b)));
    mt_tensor *s = mt__bw_last(b);
    MT_TRY(mt_mul_scalar(s, mt_int(-2), MT_STEP(b)));
    MT_TRY(mt_add_scalar(mt__bw_last(b), mt_int(1), MT_STEP(b)));
    MT_TRY(mt_mul(x, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_add_scalar(mt__bw_last(b), mt_int(2), MT_STEP(b)));
    MT_TRY(mt_sigmoid_backward(mt__bw_last(b), s, MT_STEP(b)));
    return give_curved(b);
}

/* (x P(x))'' = p(x) (2 - x^2), p the normal density */
static int gelu_curve(mt__backward *b, mt_tensor *x)
{
    MT_TRY(mt_mul(x, x, MT_STEP(b)));
    mt_tensor *square = mt__bw_last(b);
    MT_TRY(mt_mul_scalar(square, mt_real(-0.5), MT_STEP(b)));
    MT_TRY(mt_exp(mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_mul_scalar(mt__bw_last(b), mt_real(ROOT_2_BY_PI / 2), MT_STEP(b)));
    mt_tensor *density = mt__bw_last(b);
    MT_TRY(mt_rsub_scalar(square, mt_int(2), MT_STEP(b)));
    return mt_mul(density, mt__bw_last(b), MT_STEP(b));
}

/* x (1 + tanh u) / 2 with u = k (x + c x^3): (1 - t^2) (u' + x u'' / 2 - x t u'^2) */
static int gelu_tanh_curve(mt__backward *b, mt_tensor *x)
{
    const double k = ROOT_2_BY_PI;
    const double c = 0.044715;
    MT_TRY(mt_mul(x, x, MT_STEP(b)));
    mt_tensor *square = mt__bw_last(b);
    MT_TRY(mt_mul_scalar(square, mt_real(k * c), MT_STEP(b)));
    MT_TRY(mt_add_scalar(mt__bw_last(b), mt_real(k), MT_STEP(b)));
    MT_TRY(mt_mul(x, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_tanh(mt__bw_last(b), MT_STEP(b)));
    mt_tensor *t = mt__bw_last(b);
    MT_TRY(mt_mul_scalar(square, mt_real(3 * k * c), MT_STEP(b)));
    mt_tensor *half_bend = mt__bw_last(b); /* x u'' / 2 */
    MT_TRY(mt_add_scalar(half_bend, mt_real(k), MT_STEP(b)));
    mt_tensor *slope = mt__bw_last(b); /* u' */
    MT_TRY(mt_mul(slope, slope, MT_STEP(b)));
    MT_TRY(mt_mul(x, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_mul(t, mt__bw_last(b), MT_STEP(b)));
    mt_tensor *third = mt__bw_last(b);
    MT_TRY(mt_add(slope, half_bend, MT_STEP(b)));
    MT_TRY(mt_sub(mt__bw_last(b), third, MT_STEP(b)));
    return mt_tanh_backward(mt__bw_last(b), t, MT_STEP(b));
}

int mt__gelu_double_backward(mt__backward *b)
{
    mt_tensor *x = mt__bw_arg(b, 1);
    const char *way = b->args[2].of.text;
    if (mt__wants(b, 0)) {
        MT_TRY(mt_gelu_backward_with(mt__bw_grad(b), x, way, MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    if (mt__wants(b, 1)) {
        MT_TRY(strcmp(way, "tanh") == 0 ? gelu_tanh_curve(b, x) : gelu_curve(b, x));
        MT_TRY(give_curved(b));
    }
    return MT_OK;
}
