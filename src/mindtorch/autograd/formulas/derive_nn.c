/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of layers. Where a graph of the gradient is wanted (grad mode is on: create_graph)
 * and the fused *_backward op has no derivative, the gradient is made of simple ops.
 */
#include "mindtorch/autograd/formulas/formula.h"
#include "mindtorch/dispatch/call.h"

/* ---- norms ---- */

/* What the gradients of both norms are made of, with create_graph. */
typedef struct norm {
    mt_tensor *input;
    mt_tensor *weight;         /* broadcasts against the input, or NULL */
    int64_t dims[MT_MAX_DIMS]; /* over which mean and variance were taken */
    uint32_t n_dims;
    int64_t outer[MT_MAX_DIMS]; /* over which the parameters' gradients are summed */
    uint32_t n_outer;
    double eps;
    mt_tensor *normalised;
    mt_tensor *rstd;
    mt_tensor *mean_grad; /* of the results mean and rstd, broadcast as weight is; or NULL */
    mt_tensor *rstd_grad;
} norm;

/* Mean and variance as functions of the input, so that they are differentiated too. */
static int normalise(mt__backward *b, norm *n)
{
    mt_tensor **mean = mt__bw_temp(b);
    mt_tensor **centred = mt__bw_temp(b);
    mt_tensor **squares = mt__bw_temp(b);
    mt_tensor **variance = mt__bw_temp(b);
    mt_tensor **raised = mt__bw_temp(b);
    mt_tensor **rstd = mt__bw_temp(b);
    mt_tensor **normalised = mt__bw_temp(b);
    MT_TRY(mt_mean(n->input, n->dims, n->n_dims, true, mean));
    MT_TRY(mt_sub(n->input, *mean, centred));
    MT_TRY(mt_mul(*centred, *centred, squares));
    MT_TRY(mt_mean(*squares, n->dims, n->n_dims, true, variance));
    MT_TRY(mt_add_scalar(*variance, mt_real(n->eps), raised));
    MT_TRY(mt_rsqrt(*raised, rstd));
    MT_TRY(mt_mul(*centred, *rstd, normalised));
    n->normalised = *normalised;
    n->rstd = *rstd;
    return MT_OK;
}

/* rstd (g w - mean(g w) - x mean(g w x)), x normalised; `fixed` statistics leave the means away */
static int grad_of_output(mt__backward *b, const norm *n, bool fixed, mt_tensor **out)
{
    mt_tensor *g = b->grads[0];
    if (n->weight != NULL) {
        MT_TRY(mt_mul(g, n->weight, mt__bw_temp(b)));
        g = mt__bw_last(b);
    }
    if (!fixed) {
        mt_tensor **mean = mt__bw_temp(b);
        mt_tensor **product = mt__bw_temp(b);
        mt_tensor **slope = mt__bw_temp(b);
        mt_tensor **part = mt__bw_temp(b);
        mt_tensor **shifted = mt__bw_temp(b);
        mt_tensor **rest = mt__bw_temp(b);
        MT_TRY(mt_mean(g, n->dims, n->n_dims, true, mean));
        MT_TRY(mt_mul(g, n->normalised, product));
        MT_TRY(mt_mean(*product, n->dims, n->n_dims, true, slope));
        MT_TRY(mt_mul(n->normalised, *slope, part));
        MT_TRY(mt_sub(g, *mean, shifted));
        MT_TRY(mt_sub(*shifted, *part, rest));
        g = *rest;
    }
    MT_TRY(mt_mul(g, n->rstd, mt__bw_temp(b)));
    *out = mt__bw_last(b);
    return MT_OK;
}

/* Through the statistics themselves, over W elements each: d mean / W - d rstd rstd^2 x / W. */
static int add_grad_of_statistics(mt__backward *b, const norm *n, mt_tensor **sum)
{
    double width = 1.0;
    for (uint32_t i = 0; i < n->n_dims; i++) {
        width *= (double)n->input->sizes[n->dims[i]];
    }
    if (n->mean_grad != NULL) {
        MT_TRY(mt_add_with(*sum, n->mean_grad, mt_real(1.0 / width), mt__bw_temp(b)));
        *sum = mt__bw_last(b);
    }
    if (n->rstd_grad != NULL) {
        mt_tensor **square = mt__bw_temp(b);
        mt_tensor **scaled = mt__bw_temp(b);
        mt_tensor **product = mt__bw_temp(b);
        MT_TRY(mt_mul(n->rstd, n->rstd, square));
        MT_TRY(mt_mul(*square, n->rstd_grad, scaled));
        MT_TRY(mt_mul(*scaled, n->normalised, product));
        MT_TRY(mt_add_with(*sum, *product, mt_real(-1.0 / width), mt__bw_temp(b)));
        *sum = mt__bw_last(b);
    }
    return MT_OK;
}

static int norm_grad_input(mt__backward *b, const norm *n, bool fixed)
{
    mt_tensor *sum = NULL;
    if (b->grads[0] != NULL) {
        MT_TRY(grad_of_output(b, n, fixed, &sum));
    } else {
        MT_TRY(mt_zeros_like(n->input, mt__bw_temp(b)));
        sum = mt__bw_last(b);
    }
    if (!fixed) {
        MT_TRY(add_grad_of_statistics(b, n, &sum));
    }
    mt__bw_give(b, 0, sum);
    return MT_OK;
}

/* Sums a gradient over the dimensions that the parameters do not have. */
static int give_summed(mt__backward *b, const norm *n, uint32_t arg, mt_tensor *grad)
{
    if (n->n_outer > 0) {
        MT_TRY(mt_sum(grad, n->outer, n->n_outer, false, mt__bw_temp(b)));
        grad = mt__bw_last(b);
    }
    mt__bw_give(b, arg, grad);
    return MT_OK;
}

static int norm_from_ops(mt__backward *b, const norm *n, uint32_t weight, bool fixed)
{
    if (mt__wants(b, 0)) {
        MT_TRY(norm_grad_input(b, n, fixed));
    }
    if (b->grads[0] == NULL) {
        return MT_OK; /* statistics do not depend on weight and bias */
    }
    if (mt__wants(b, weight)) {
        MT_TRY(mt_mul(b->grads[0], n->normalised, mt__bw_temp(b)));
        MT_TRY(give_summed(b, n, weight, mt__bw_last(b)));
    }
    if (mt__wants(b, weight + 1)) {
        MT_TRY(give_summed(b, n, weight + 1, b->grads[0]));
    }
    return MT_OK;
}

/* The fused op has no derivative itself, and handles only the gradient of the output. */
static bool needs_ops(const mt__backward *b)
{
    return mt_grad_enabled() || b->grads[0] == NULL || b->grads[1] != NULL || b->grads[2] != NULL;
}

/* Sets the gradients that a fused backward op has written, in its order. */
static void give_three(mt__backward *b, mt_tensor **const grads[3], const uint32_t args[3])
{
    for (uint32_t i = 0; i < 3; i++) {
        if (*grads[i] != NULL) {
            mt__bw_give(b, args[i], *grads[i]);
        }
    }
}

int mt__layer_norm_backward(mt__backward *b)
{
    enum {
        INPUT,
        SHAPE,
        WEIGHT,
        BIAS,
        EPS
    };
    mt_tensor *input = b->args[INPUT].of.tensor;
    const mt_value *shape = &b->args[SHAPE];
    if (needs_ops(b)) {
        norm n = {.input = input,
                  .weight = mt__bw_optional_arg(b, WEIGHT),
                  .eps = mt__scalar_real(&b->args[EPS]),
                  .mean_grad = b->grads[1],
                  .rstd_grad = b->grads[2]};
        uint32_t before = input->n_dims - shape->count;
        for (uint32_t i = 0; i < input->n_dims; i++) {
            if (i < before) {
                n.outer[n.n_outer++] = i;
            } else {
                n.dims[n.n_dims++] = i;
            }
        }
        MT_TRY(normalise(b, &n));
        return norm_from_ops(b, &n, WEIGHT, false);
    }
    const uint32_t args[3] = {INPUT, WEIGHT, BIAS};
    const int64_t mask[3] = {mt__wants(b, INPUT), mt__wants(b, WEIGHT), mt__wants(b, BIAS)};
    mt_tensor **const grads[3] = {mt__bw_temp(b), mt__bw_temp(b), mt__bw_temp(b)};
    MT_TRY(mt_native_layer_norm_backward(b->grads[0], input, shape->of.ints, shape->count,
                                         b->results[1].of.tensor, b->results[2].of.tensor,
                                         mt__bw_optional_arg(b, WEIGHT), NULL, mask, 3, grads[0],
                                         grads[1], grads[2]));
    give_three(b, grads, args);
    return MT_OK;
}

/* A number for each channel as [1, C, 1...]. */
static int as_channels(mt__backward *b, mt_tensor *tensor, const mt_tensor *input, mt_tensor **out)
{
    int64_t sizes[MT_MAX_DIMS];
    *out = NULL;
    if (tensor == NULL) {
        return MT_OK;
    }
    for (uint32_t i = 0; i < input->n_dims; i++) {
        sizes[i] = i == 1 ? input->sizes[1] : 1;
    }
    MT_TRY(mt_reshape(tensor, sizes, input->n_dims, mt__bw_temp(b)));
    *out = mt__bw_last(b);
    return MT_OK;
}

static int batch_norm_from_ops(mt__backward *b, bool training, double eps)
{
    norm n = {.input = b->args[0].of.tensor, .eps = eps};
    for (uint32_t i = 0; i < n.input->n_dims; i++) {
        if (i != 1) {
            n.dims[n.n_dims++] = i;
            n.outer[n.n_outer++] = i;
        }
    }
    MT_TRY(as_channels(b, mt__bw_optional_arg(b, 1), n.input, &n.weight));
    if (training) {
        MT_TRY(as_channels(b, b->grads[1], n.input, &n.mean_grad));
        MT_TRY(as_channels(b, b->grads[2], n.input, &n.rstd_grad));
        MT_TRY(normalise(b, &n));
        return norm_from_ops(b, &n, 1, false);
    }
    mt_tensor *mean = NULL;
    mt_tensor **centred = mt__bw_temp(b);
    MT_TRY(as_channels(b, b->results[1].of.tensor, n.input, &mean));
    MT_TRY(as_channels(b, b->results[2].of.tensor, n.input, &n.rstd));
    MT_TRY(mt_sub(n.input, mean, centred));
    MT_TRY(mt_mul(*centred, n.rstd, mt__bw_temp(b)));
    n.normalised = mt__bw_last(b);
    return norm_from_ops(b, &n, 1, true);
}

int mt__batch_norm_backward(mt__backward *b)
{
    enum {
        INPUT,
        WEIGHT,
        BIAS,
        TRAINING = 5,
        EPS = 7
    };
    bool training = b->args[TRAINING].of.integer != 0;
    double eps = mt__scalar_real(&b->args[EPS]);
    if (needs_ops(b)) {
        return batch_norm_from_ops(b, training, eps);
    }
    const uint32_t args[3] = {INPUT, WEIGHT, BIAS};
    const int64_t mask[3] = {mt__wants(b, INPUT), mt__wants(b, WEIGHT), mt__wants(b, BIAS)};
    mt_tensor **const grads[3] = {mt__bw_temp(b), mt__bw_temp(b), mt__bw_temp(b)};
    MT_TRY(mt_native_batch_norm_backward(b->grads[0], mt__bw_optional_arg(b, INPUT),
                                         mt__bw_optional_arg(b, WEIGHT), NULL, NULL,
                                         b->results[1].of.tensor, b->results[2].of.tensor, training,
                                         eps, mask, 3, grads[0], grads[1], grads[2]));
    give_three(b, grads, args);
    return MT_OK;
}

/* ---- embedding, dropout: linear, so their second derivatives are the forwards ---- */

int mt__embedding_backward(mt__backward *b)
{
    int64_t rows = mt__bw_shape(b, 0)->sizes[0];
    MT_TRY(mt_embedding_backward(b->grads[0], mt__bw_optional_arg(b, 1), rows,
                                 b->args[2].of.integer, false, false, mt__bw_temp(b)));
    mt__bw_give(b, 0, mt__bw_last(b));
    return MT_OK;
}

int mt__embedding_twice(mt__backward *b)
{
    mt_tensor *indices = mt__bw_optional_arg(b, 1);
    int64_t padding = b->args[3].of.integer;
    MT_TRY(mt_embedding(b->grads[0], indices, -1, mt__bw_temp(b)));
    mt_tensor *grad = mt__bw_last(b);
    if (padding >= 0) { /* rows that the op left out */
        mt_tensor **is_padding = mt__bw_temp(b);
        mt_tensor **column = mt__bw_temp(b);
        MT_TRY(mt_eq_scalar(indices, mt_int(padding), is_padding));
        MT_TRY(mt_unsqueeze(*is_padding, -1, column));
        MT_TRY(mt_masked_fill_scalar(grad, *column, mt_real(0.0), mt__bw_temp(b)));
        grad = mt__bw_last(b);
    }
    mt__bw_give(b, 0, grad);
    return MT_OK;
}

int mt__dropout_backward(mt__backward *b)
{
    double p = mt__scalar_real(&b->args[1]);
    MT_TRY(mt_native_dropout_backward(b->grads[0], b->results[1].of.tensor,
                                      p == 1.0 ? 0.0 : 1.0 / (1.0 - p), mt__bw_temp(b)));
    mt__bw_give(b, 0, mt__bw_last(b));
    return MT_OK;
}
