/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of convolutions, pools and attention: each is one op, and those of convolutions and
 * pools can be differentiated again. They are linear in the gradient, so their derivatives are the
 * forward ops again.
 */
#include "mindtorch/autograd/formulas/formula.h"
#include "mindtorch/dispatch/call.h"

/* ---- convolution ----------------------------------------------------------------------------- */

/* convolution_backward with the lists and groups that begin at argument `at`, and what `how` says
 * (transposed, output_padding). Places may be NULL. */
static int conv_gradients(const mt_value *at, const mt_value *how,
                          mt_tensor *const grad_in_weight[3], mt_tensor **const places[3])
{
    mt_tensor *unused[3] = {NULL};
    mt_tensor **to[3];
    int64_t mask[3];
    for (int i = 0; i < 3; i++) {
        mask[i] = places[i] != NULL ? 1 : 0;
        to[i] = places[i] != NULL ? places[i] : &unused[i];
    }
    return mt_convolution_backward_with(
        grad_in_weight[0], grad_in_weight[1], grad_in_weight[2], at[0].of.ints, at[0].count,
        at[1].of.ints, at[1].count, at[2].of.ints, at[2].count, at[3].of.integer, mask, 3,
        how[0].of.integer != 0, how[1].of.ints, how[1].count, to[0], to[1], to[2]);
}

int mt__convolution_backward(mt__backward *b)
{
    mt_tensor *const tensors[3] = {b->grads[0], b->args[0].of.tensor, b->args[1].of.tensor};
    mt_tensor **places[3];
    for (uint32_t i = 0; i < 3; i++) {
        places[i] = mt__wants(b, i) ? mt__bw_temp(b) : NULL;
    }
    MT_TRY(conv_gradients(&b->args[3], &b->args[7], tensors, places));
    for (uint32_t i = 0; i < 3; i++) {
        if (places[i] != NULL) {
            mt__bw_give(b, i, *places[i]);
        }
    }
    return MT_OK;
}

static int convolve(mt__backward *b, mt_tensor *in, mt_tensor *weight, mt_tensor **out)
{
    const mt_value *at = &b->args[3];
    mt_tensor **place = mt__bw_temp(b);
    MT_TRY(mt_convolution_with(in, weight, NULL, at[0].of.ints, at[0].count, at[1].of.ints,
                               at[1].count, at[2].of.ints, at[2].count, at[3].of.integer,
                               b->args[8].of.integer != 0, b->args[9].of.ints, b->args[9].count,
                               place));
    *out = *place;
    return MT_OK;
}

static int add_to(mt__backward *b, mt_tensor **sum, mt_tensor *more)
{
    if (*sum == NULL) {
        *sum = more;
        return MT_OK;
    }
    mt_tensor **place = mt__bw_temp(b);
    MT_TRY(mt_add(*sum, more, place));
    *sum = *place;
    return MT_OK;
}

/* What reached result i of convolution_backward. Results that output_mask left out have no place
 * among the gradients. NULL: nothing. */
static mt_tensor *gradient_of(const mt__backward *b, uint32_t i)
{
    const int64_t *mask = b->args[7].of.ints;
    if (b->n_grads == 3) {
        return b->grads[i];
    }
    uint32_t place = 0;
    for (uint32_t k = 0; k < i; k++) {
        place += mask[k] != 0 ? 1 : 0;
    }
    return mask[i] != 0 && place < b->n_grads ? b->grads[place] : NULL;
}

/* The gradient of grad_output: the convolution of what reached input's and weight's gradients. */
static int grad_output_gradient(mt__backward *b)
{
    mt_tensor *const grads[3] = {gradient_of(b, 0), gradient_of(b, 1), gradient_of(b, 2)};
    mt_tensor *sum = NULL;
    mt_tensor *part;
    if (grads[0] != NULL) {
        MT_TRY(convolve(b, grads[0], b->args[2].of.tensor, &part));
        MT_TRY(add_to(b, &sum, part));
    }
    if (grads[1] != NULL) {
        MT_TRY(convolve(b, b->args[1].of.tensor, grads[1], &part));
        MT_TRY(add_to(b, &sum, part));
    }
    if (grads[2] != NULL) { /* the bias's, spread over the images */
        const mt__meta *meta = mt__input_meta(b, mt__input_of(b, 0));
        int64_t sizes[MT_MAX_DIMS] = {1, meta->shape.sizes[1], 1, 1, 1};
        mt_tensor **column = mt__bw_temp(b);
        mt_tensor **spread = mt__bw_temp(b);
        MT_TRY(mt_reshape(grads[2], sizes, meta->shape.n_dims, column));
        MT_TRY(mt_expand(*column, meta->shape.sizes, meta->shape.n_dims, spread));
        MT_TRY(add_to(b, &sum, *spread));
    }
    if (sum != NULL) {
        mt__bw_give(b, 0, sum);
    }
    return MT_OK;
}

int mt__convolution_twice(mt__backward *b)
{
    mt_tensor *const grads[2] = {gradient_of(b, 0), gradient_of(b, 1)};
    mt_tensor *grad = b->args[0].of.tensor;
    if (mt__wants(b, 0)) {
        MT_TRY(grad_output_gradient(b));
    }
    if (mt__wants(b, 1) && grads[1] != NULL) {
        mt_tensor *const tensors[3] = {grad, b->args[1].of.tensor, grads[1]};
        mt_tensor **const places[3] = {mt__bw_temp(b), NULL, NULL};
        MT_TRY(conv_gradients(&b->args[3], &b->args[8], tensors, places));
        mt__bw_give(b, 1, *places[0]);
    }
    if (mt__wants(b, 2) && grads[0] != NULL) {
        mt_tensor *const tensors[3] = {grad, grads[0], b->args[2].of.tensor};
        mt_tensor **const places[3] = {NULL, mt__bw_temp(b), NULL};
        MT_TRY(conv_gradients(&b->args[3], &b->args[8], tensors, places));
        mt__bw_give(b, 2, *places[1]);
    }
    return MT_OK;
}

/* ---- windows as columns ---------------------------------------------------------------------- */

int mt__im2col_backward(mt__backward *b)
{
    const mt__shape *shape = mt__bw_shape(b, 0);
    const mt_value *a = &b->args[1];
    if (!mt__wants(b, 0)) {
        return MT_OK;
    }
    MT_TRY(mt_col2im(b->grads[0], &shape->sizes[shape->n_dims - 2], 2, a[0].of.ints, a[0].count,
                     a[1].of.ints, a[1].count, a[2].of.ints, a[2].count, a[3].of.ints, a[3].count,
                     mt__bw_temp(b)));
    mt__bw_give(b, 0, mt__bw_last(b));
    return MT_OK;
}

/* ---- pools ----------------------------------------------------------------------------------- */

int mt__adaptive_avg_pool_twice(mt__backward *b)
{
    if (!mt__wants(b, 0)) {
        return MT_OK;
    }
    const mt__shape *shape = mt__bw_shape(b, 0);
    MT_TRY(
        mt__adaptive_avg_pool2d(b->grads[0], &shape->sizes[shape->n_dims - 2], 2, mt__bw_temp(b)));
    mt__bw_give(b, 0, mt__bw_last(b));
    return MT_OK;
}

/* ---- attention ------------------------------------------------------------------------------- */

int mt__flash_attention_backward(mt__backward *b)
{
    const mt_value *a = b->args;
    mt_tensor *mask = a[5].kind == MT_KIND_TENSOR ? a[5].of.tensor : NULL;
    mt_tensor **places[3] = {mt__bw_temp(b), mt__bw_temp(b), mt__bw_temp(b)};
    bool scaled = a[6].kind != MT_KIND_NONE;
    double scale = scaled ? mt__scalar_real(&a[6]) : 0.0;
    if (b->grads[0] == NULL) { /* only the logsumexp was used, which has no derivative */
        return mtb_fail(MT_ERUNTIME, "ScaledDotProductFlashAttentionForCpuBackward0: logsumexp is "
                                     "not differentiable");
    }
    MT_TRY(mt__scaled_dot_product_flash_attention_for_cpu_backward(
        b->grads[0], a[0].of.tensor, a[1].of.tensor, a[2].of.tensor, b->results[0].of.tensor,
        b->results[1].of.tensor, a[4].of.integer != 0, mask, scaled ? &scale : NULL, places[0],
        places[1], places[2]));
    for (uint32_t i = 0; i < 3; i++) {
        if (mt__wants(b, i)) {
            mt__bw_give(b, i, *places[i]);
        }
    }
    return MT_OK;
}

/* ---- grids ----------------------------------------------------------------------------------- */

int mt__grid_sampler_backward(mt__backward *b)
{
    mt_tensor *input = mt__bw_arg(b, 0);
    mt_tensor *grid = mt__bw_arg(b, 1);
    const int64_t mask[2] = {mt__wants(b, 0), mt__wants(b, 1)};
    mt_tensor **const made[2] = {mt__bw_temp(b), mt__bw_temp(b)};
    MT_TRY((input->n_dims == 5 ? mt_grid_sampler_3d_backward : mt_grid_sampler_2d_backward)(
        mt__bw_grad(b), input, grid, b->args[2].of.integer, b->args[3].of.integer,
        b->args[4].of.integer != 0, mask, 2, made[0], made[1]));
    for (uint32_t i = 0; i < 2; i++) {
        if (mask[i] != 0) {
            mt__bw_give(b, i, *made[i]);
        }
    }
    return MT_OK;
}

int mt__grid_sampler_twice(mt__backward *b)
{
    mt_tensor **const made[3] = {mt__bw_temp(b), mt__bw_temp(b), mt__bw_temp(b)};
    if (b->grads[0] == NULL && b->grads[1] == NULL) {
        return MT_OK;
    }
    MT_TRY(mt__grid_sampler_backward_backward(
        b->grads[0], b->grads[1], mt__bw_arg(b, 0), mt__bw_arg(b, 1), mt__bw_arg(b, 2),
        b->args[3].of.integer, b->args[4].of.integer, b->args[5].of.integer != 0, made[0], made[1],
        made[2]));
    for (uint32_t i = 0; i < 3; i++) {
        if (mt__wants(b, i)) {
            mt__bw_give(b, i, *made[i]);
        }
    }
    return MT_OK;
}
