/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of the leaves of ops_compose.def but activations (derive_activation.c).
 */
#include "mindtorch/autograd/formulas/formula.h"
#include "mindtorch/dispatch/call.h"

/* What was added is cut off again, and what was cut off gets zeros. */
int mt__constant_pad_nd_backward(mt__backward *b)
{
    const mt_value *pad = &b->args[1];
    int64_t undone[2 * MT_MAX_DIMS];
    for (uint32_t i = 0; i < pad->count; i++) {
        undone[i] = -pad->of.ints[i];
    }
    MT_TRY(mt_constant_pad_nd(mt__bw_grad(b), undone, pad->count, mt_int(0), MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* The difference, held between -delta and delta. */
int mt__huber_loss_backward(mt__backward *b)
{
    mt_scalar delta = mt_real(mt__scalar_real(&b->args[3]));
    mt_scalar lower = mt_real(-delta.of.real);
    MT_TRY(mt_sub(mt__bw_arg(b, 0), mt__bw_arg(b, 1), MT_STEP(b)));
    int64_t numel = mt__bw_last(b)->numel;
    MT_TRY(mt_clamp(mt__bw_last(b), &lower, &delta, MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
    if (b->args[2].of.integer == MT_REDUCTION_MEAN) {
        MT_TRY(mt_div_scalar(mt__bw_last(b), mt_int(numel), MT_STEP(b)));
    }
    mt_tensor *slope = mt__bw_last(b);
    if (mt__wants(b, 0)) {
        mt__bw_give(b, 0, slope);
    }
    if (mt__wants(b, 1)) {
        MT_TRY(mt_neg(slope, MT_STEP(b)));
        MT_TRY(mt__bw_give_last(b, 1));
    }
    return MT_OK;
}

/* ---- group_norm ------------------------------------------------------------------------------ */

/* Groups as rows: (N, groups, elements). */
typedef struct grouping {
    int64_t sizes[3];
    mt_tensor *normalised;
    mt_tensor *rstd;
} grouping;

static const int64_t last_dim = 2;

static int normalise_groups(mt__backward *b, grouping *g)
{
    MT_TRY(mt_reshape(mt__bw_arg(b, 0), g->sizes, 3, MT_STEP(b)));
    mt_tensor *input = mt__bw_last(b);
    mt_tensor **normalised = MT_STEP(b);
    mt_tensor **rstd = MT_STEP(b);
    const mt_value *eps = &b->args[4];
    MT_TRY(mt_native_layer_norm(input, &g->sizes[last_dim], 1, NULL, NULL,
                                eps->kind == MT_KIND_REAL ? eps->of.real : (double)eps->of.integer,
                                normalised, NULL, rstd));
    g->normalised = *normalised;
    g->rstd = *rstd;
    return MT_OK;
}

/* rstd (g - mean(g) - x mean(g x)), x normalised and g times the weight, in groups */
static int group_norm_input(mt__backward *b, const grouping *groups)
{
    mt_tensor *input = mt__bw_arg(b, 0);
    mt_tensor *weight = mt__bw_optional_arg(b, 2);
    mt_tensor *g = mt__bw_grad(b);
    if (weight != NULL) {
        int64_t sizes[MT_MAX_DIMS];
        for (uint32_t i = 0; i < input->n_dims; i++) {
            sizes[i] = i == 1 ? input->sizes[1] : 1;
        }
        MT_TRY(mt_reshape(weight, sizes, input->n_dims, MT_STEP(b)));
        MT_TRY(mt_mul(g, mt__bw_last(b), MT_STEP(b)));
        g = mt__bw_last(b);
    }
    MT_TRY(mt_reshape(g, groups->sizes, 3, MT_STEP(b)));
    g = mt__bw_last(b);
    MT_TRY(mt_mul(g, groups->normalised, MT_STEP(b)));
    MT_TRY(mt_mean(mt__bw_last(b), &last_dim, 1, true, MT_STEP(b)));
    MT_TRY(mt_mul(groups->normalised, mt__bw_last(b), MT_STEP(b)));
    mt_tensor *along = mt__bw_last(b);
    MT_TRY(mt_mean(g, &last_dim, 1, true, MT_STEP(b)));
    MT_TRY(mt_sub(g, mt__bw_last(b), MT_STEP(b)));
    MT_TRY(mt_sub(mt__bw_last(b), along, MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_last(b), groups->rstd, MT_STEP(b)));
    MT_TRY(mt_reshape(mt__bw_last(b), input->sizes, input->n_dims, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}

/* Sums over everything but the channels. */
static int give_by_channel(mt__backward *b, uint32_t arg, mt_tensor *grad)
{
    int64_t dims[MT_MAX_DIMS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < grad->n_dims; i++) {
        if (i != 1) {
            dims[n++] = i;
        }
    }
    MT_TRY(mt_sum(grad, dims, n, false, MT_STEP(b)));
    return mt__bw_give_last(b, arg);
}

int mt__group_norm_backward(mt__backward *b)
{
    mt_tensor *input = mt__bw_arg(b, 0);
    int64_t count = input->sizes[0] * b->args[1].of.integer;
    grouping g = {
        .sizes = {input->sizes[0], b->args[1].of.integer, count == 0 ? 0 : input->numel / count}};
    if (mt__wants(b, 0) || mt__wants(b, 2)) {
        MT_TRY(normalise_groups(b, &g));
    }
    if (mt__wants(b, 0)) {
        MT_TRY(group_norm_input(b, &g));
    }
    if (mt__wants(b, 2)) {
        MT_TRY(mt_reshape(g.normalised, input->sizes, input->n_dims, MT_STEP(b)));
        MT_TRY(mt_mul(mt__bw_grad(b), mt__bw_last(b), MT_STEP(b)));
        MT_TRY(give_by_channel(b, 2, mt__bw_last(b)));
    }
    return mt__wants(b, 3) ? give_by_channel(b, 3, mt__bw_grad(b)) : MT_OK;
}
