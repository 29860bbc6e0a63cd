/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of products, and of running sums and products.
 *
 * Zeros need no special case: the derivative by an element is the product of all the others,
 * computed without a division. Nothing here reads elements on the host, so nothing waits for the
 * device.
 */
#include "base/alloc.h"
#include "mindtorch/autograd/formulas/formula.h"

/* Argument 1, a dimension, from 0 on. */
static int64_t dimension(const mt__backward *b)
{
    int64_t dim = b->args[1].of.integer;
    return dim < 0 ? dim + mt__bw_shape(b, 0)->n_dims : dim;
}

/* ---- running sums ---------------------------------------------------------------------------- */

/* from the end: flip, sum up, flip */
static int sum_backwards(mt__backward *b, mt_tensor *x, int64_t dim, mt_tensor **out)
{
    MT_TRY(mt_flip(x, &dim, 1, MT_STEP(b)));
    MT_TRY(mt_cumsum(mt__bw_last(b), dim, MT_STEP(b)));
    MT_TRY(mt_flip(mt__bw_last(b), &dim, 1, MT_STEP(b)));
    *out = mt__bw_last(b);
    return MT_OK;
}

int mt__cumsum_backward(mt__backward *b)
{
    mt_tensor *grad = mt__bw_grad(b);
    if (mt__bw_shape(b, 0)->n_dims > 0) {
        MT_TRY(sum_backwards(b, grad, dimension(b), &grad));
    }
    mt__bw_give(b, 0, grad);
    return MT_OK;
}

/* ---- products -------------------------------------------------------------------------------- */

/* The product of all elements before each one along `dim`: no division, so zeros do no harm. */
static int products_before(mt__backward *b, mt_tensor *x, int64_t dim, mt_tensor **out)
{
    int64_t n = x->sizes[dim];
    MT_TRY(mt_narrow(x, dim, 0, 1, MT_STEP(b)));
    MT_TRY(mt_ones_like(mt__bw_last(b), MT_STEP(b)));
    mt_tensor *one = mt__bw_last(b);
    MT_TRY(mt_narrow(x, dim, 0, n - 1, MT_STEP(b)));
    mt_tensor *const parts[] = {one, mt__bw_last(b)};
    MT_TRY(mt_cat(parts, 2, dim, MT_STEP(b)));
    MT_TRY(mt_cumprod(mt__bw_last(b), dim, MT_STEP(b)));
    *out = mt__bw_last(b);
    return MT_OK;
}

/* grad * (product of all others) along `dim`; grad has size 1 there. */
static int product_backward(mt__backward *b, mt_tensor *x, mt_tensor *grad, int64_t dim,
                            mt_tensor **out)
{
    mt_tensor *before = NULL;
    mt_tensor *after = NULL;
    MT_TRY(products_before(b, x, dim, &before));
    MT_TRY(mt_flip(x, &dim, 1, MT_STEP(b)));
    MT_TRY(products_before(b, mt__bw_last(b), dim, &after));
    MT_TRY(mt_flip(after, &dim, 1, MT_STEP(b)));
    MT_TRY(mt_mul(before, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_mul(grad, mt__bw_last(b), MT_STEP(b)));
    *out = mt__bw_last(b);
    return MT_OK;
}

/* The input as the forward computed with it: prod(dtype=...) converts first. */
static int converted_input(mt__backward *b, mt_tensor **out)
{
    mt_dtype dtype = (mt_dtype)mt__result_meta(b, 0)->dtype;
    *out = mt__bw_arg(b, 0);
    if ((*out)->dtype != dtype) {
        MT_TRY(mt__to_copy_with(*out, dtype, MT_DEVICE_NONE, false, MT_STEP(b)));
        *out = mt__bw_last(b);
    }
    return MT_OK;
}

int mt__prod_backward(mt__backward *b)
{
    static const int64_t flat = -1;
    mt_tensor *x = NULL;
    mt_tensor *grad = NULL;
    const mt__shape *shape = mt__bw_shape(b, 0);
    if (shape->n_dims == 0) {
        mt__bw_give(b, 0, mt__bw_grad(b));
        return MT_OK;
    }
    if (mt__bw_arg(b, 0)->numel == 0) {
        return mt__bw_give_zeros(b, 0);
    }
    MT_TRY(converted_input(b, &x));
    MT_TRY(mt_reshape(x, &flat, 1, MT_STEP(b)));
    MT_TRY(product_backward(b, mt__bw_last(b), mt__bw_grad(b), 0, &grad));
    MT_TRY(mt_reshape(grad, shape->sizes, shape->n_dims, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

int mt__prod_dim_backward(mt__backward *b)
{
    mt_tensor *x = NULL;
    mt_tensor *grad = mt__bw_grad(b);
    if (mt__bw_shape(b, 0)->n_dims == 0) {
        mt__bw_give(b, 0, grad);
        return MT_OK;
    }
    if (mt__bw_arg(b, 0)->numel == 0) {
        return mt__bw_give_zeros(b, 0);
    }
    MT_TRY(converted_input(b, &x));
    if (b->args[2].of.integer == 0) { /* not kept */
        MT_TRY(mt_unsqueeze(grad, dimension(b), MT_STEP(b)));
        grad = mt__bw_last(b);
    }
    MT_TRY(product_backward(b, x, grad, dimension(b), &grad));
    mt__bw_give(b, 0, grad);
    return MT_OK;
}

/* ---- running products ------------------------------------------------------------------------ */

/* One element of the derivative: before[k] * sum over i >= k of grad[i] x[k + 1] ... x[i]. */
static int running_product_part(mt_tensor *x, mt_tensor *grad, mt_tensor *before, int64_t dim,
                                int64_t k, mt_tensor **out)
{
    enum {
        ONE,
        REST,
        FACTORS,
        PRODUCTS,
        GRADS,
        TERMS,
        SUM,
        HERE,
        N_STEPS
    };
    mt_tensor *step[N_STEPS] = {NULL};
    int64_t after = x->sizes[dim] - k - 1;
    int status = mt_narrow(before, dim, 0, 1, &step[HERE]);
    status = status == MT_OK ? mt_ones_like(step[HERE], &step[ONE]) : status;
    mt_tensor_release(step[HERE]);
    step[HERE] = NULL;
    status = status == MT_OK ? mt_narrow(x, dim, k + 1, after, &step[REST]) : status;
    mt_tensor *const parts[] = {step[ONE], step[REST]};
    status = status == MT_OK ? mt_cat(parts, 2, dim, &step[FACTORS]) : status;
    status = status == MT_OK ? mt_cumprod(step[FACTORS], dim, &step[PRODUCTS]) : status;
    status = status == MT_OK ? mt_narrow(grad, dim, k, after + 1, &step[GRADS]) : status;
    status = status == MT_OK ? mt_mul(step[GRADS], step[PRODUCTS], &step[TERMS]) : status;
    status = status == MT_OK ? mt_sum(step[TERMS], &dim, 1, true, &step[SUM]) : status;
    status = status == MT_OK ? mt_narrow(before, dim, k, 1, &step[HERE]) : status;
    status = status == MT_OK ? mt_mul(step[HERE], step[SUM], out) : status;
    for (size_t i = 0; i < N_STEPS; i++) {
        mt_tensor_release(step[i]);
    }
    return status;
}

/* Element by element, each of products alone: slower, but what it gives can be differentiated again
 * where there are zeros, too. */
static int differentiable_cumprod_backward(mt__backward *b, mt_tensor *x, int64_t dim)
{
    mt_tensor *before = NULL;
    int64_t n = x->sizes[dim];
    MT_TRY(products_before(b, x, dim, &before));
    mt_tensor **parts = mtb_calloc((size_t)n, sizeof(mt_tensor *));
    if (parts == NULL) {
        return mtb_fail(MT_ENOMEM, "cumprod: no memory for %lld gradients", (long long)n);
    }
    int status = MT_OK;
    for (int64_t k = 0; k < n && status == MT_OK; k++) {
        status = running_product_part(x, mt__bw_grad(b), before, dim, k, &parts[k]);
    }
    status = status == MT_OK ? mt_cat(parts, (size_t)n, dim, MT_STEP(b)) : status;
    for (int64_t k = 0; k < n; k++) {
        mt_tensor_release(parts[k]);
    }
    mtb_free(parts);
    return status == MT_OK ? mt__bw_give_last(b, 0) : status;
}

/* With z the first zero along dim, out[i] = 0 from there on, and
 *     k < z   sum over i >= k of grad[i] out[i], divided by x[k]
 *     k = z   the same sum with x[z] = 1
 *     k > z   0 */
int mt__cumprod_backward(mt__backward *b)
{
    mt_tensor *x = NULL;
    mt_tensor *grad = mt__bw_grad(b);
    int64_t dim = dimension(b);
    if (mt__bw_shape(b, 0)->n_dims == 0) {
        mt__bw_give(b, 0, grad);
        return MT_OK;
    }
    MT_TRY(converted_input(b, &x));
    if (mt_grad_enabled() && x->numel > 0) {
        return differentiable_cumprod_backward(b, x, dim);
    }
    MT_TRY(mt_eq_scalar(x, mt_int(0), MT_STEP(b)));
    mt_tensor *zero = mt__bw_last(b);
    MT_TRY(mt_cumsum(zero, dim, MT_STEP(b)));
    mt_tensor *zeros_so_far = mt__bw_last(b);
    MT_TRY(mt_eq_scalar(zeros_so_far, mt_int(1), MT_STEP(b)));
    MT_TRY(mt_logical_and(zero, mt__bw_last(b), MT_STEP(b)));
    mt_tensor *first = mt__bw_last(b);
    MT_TRY(mt_eq_scalar(zeros_so_far, mt_int(0), MT_STEP(b)));
    mt_tensor *before = mt__bw_last(b);

    mt_tensor *sums = NULL;
    MT_TRY(mt_mul(grad, mt__bw_result(b, 0), MT_STEP(b)));
    MT_TRY(sum_backwards(b, mt__bw_last(b), dim, &sums));
    MT_TRY(mt_masked_fill_scalar(x, zero, mt_int(1), MT_STEP(b)));
    MT_TRY(mt_div(sums, mt__bw_last(b), MT_STEP(b)));
    mt_tensor *usual = mt__bw_last(b);

    MT_TRY(mt_masked_fill_scalar(x, first, mt_int(1), MT_STEP(b)));
    MT_TRY(mt_cumprod(mt__bw_last(b), dim, MT_STEP(b)));
    MT_TRY(mt_mul(grad, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(sum_backwards(b, mt__bw_last(b), dim, &sums));
    MT_TRY(mt_where_tensor_scalar(first, sums, mt_real(0), MT_STEP(b)));
    MT_TRY(mt_where(before, usual, mt__bw_last(b), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}
