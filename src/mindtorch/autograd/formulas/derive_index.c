/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of concatenation, indexing and sorting: elements that were selected get their
 * gradient, elements that were overwritten get none.
 */
#include "mindtorch/autograd/formulas/formula.h"
#include "mindtorch/dispatch/boxing.h"

/* ---- joining --------------------------------------------------------------------------------- */

/* A part of the gradient becomes that of flat input i, in its type. The part's reference goes. */
static int give_part(mt__backward *b, uint32_t i, mt_tensor *part)
{
    mt_dtype dtype = (mt_dtype)mt__input_meta(b, i)->dtype;
    if ((mt_dtype)part->dtype == dtype) {
        b->grads_in[i] = part;
        return 0;
    }
    int status = mt_to_with(part, dtype, MT_DEVICE_NONE, false, false, &b->grads_in[i]);
    mt_tensor_release(part);
    return status;
}

/* A tensor of shape [0] among tensors of other dimensions does not contribute to the result. */
static bool is_skipped(const mt__shape *shape)
{
    return shape->n_dims == 1 && shape->sizes[0] == 0;
}

static int give_cat_part(mt__backward *b, uint32_t i, int64_t dim, int64_t start)
{
    const mt__shape *shape = &mt__input_meta(b, i)->shape;
    mt_tensor *grad = b->grads[0];
    mt_tensor *part = NULL;
    if (is_skipped(shape)) {
        MT_TRY(mt_zeros_with(shape->sizes, 1, (mt_dtype)grad->dtype, grad->device, &part));
    } else {
        MT_TRY(mt_narrow(grad, dim, start, shape->sizes[dim], &part));
    }
    return give_part(b, i, part);
}

int mt__cat_backward(mt__backward *b)
{
    int64_t given = mt__bw_int(b, 1);
    int64_t dim = given < 0 ? given + b->grads[0]->n_dims : given;
    int64_t start = 0;
    for (uint32_t i = 0; i < b->n_inputs; i++) {
        const mt__shape *shape = &mt__input_meta(b, i)->shape;
        if (b->wanted[i]) {
            MT_TRY(give_cat_part(b, i, dim, start));
        }
        start += is_skipped(shape) ? 0 : shape->sizes[dim];
    }
    return 0;
}

int mt__stack_backward(mt__backward *b)
{
    for (uint32_t i = 0; i < b->n_inputs; i++) {
        if (b->wanted[i]) {
            mt_tensor *part = NULL;
            MT_TRY(mt_select(b->grads[0], mt__bw_int(b, 1), i, &part));
            MT_TRY(give_part(b, i, part));
        }
    }
    return 0;
}

/* ---- rearranging ----------------------------------------------------------------------------- */

/* The gradient seen as [repeats, size] for each dimension is summed over the repeats. */
int mt__repeat_backward(mt__backward *b)
{
    const mt__shape *shape = mt__bw_shape(b, 0);
    const mt_value *repeats = &b->args[1];
    uint32_t fresh = repeats->count - shape->n_dims;
    int64_t sizes[2 * MT_MAX_DIMS];
    int64_t summed[MT_MAX_DIMS];
    uint32_t n = 0;
    uint32_t n_summed = 0;
    if (b->grads[0]->numel == 0) {
        mt_tensor *zeros = NULL;
        MT_TRY(mt__bw_zeros_of(b, (const mt_value[]){mt__bw_sizes(b, 0)}, &zeros));
        return mt__bw_give_last(b, 0);
    }
    for (uint32_t i = 0; i < repeats->count; i++) {
        int64_t size = i < fresh ? 1 : shape->sizes[i - fresh];
        if (repeats->of.ints[i] != 1) {
            summed[n_summed++] = n;
            sizes[n++] = repeats->of.ints[i];
        }
        if (size != 1) {
            sizes[n++] = size;
        }
    }
    mt_tensor *grad = b->grads[0];
    if (n_summed > 0) {
        MT_TRY(mt_reshape(grad, sizes, n, mt__bw_temp(b)));
        grad = mt__bw_last(b);
        MT_TRY(mt_sum(grad, summed, n_summed, false, mt__bw_temp(b)));
        grad = mt__bw_last(b);
    }
    MT_TRY(mt_reshape(grad, shape->sizes, shape->n_dims, mt__bw_temp(b)));
    return mt__bw_give_last(b, 0);
}

int mt__roll_backward(mt__backward *b)
{
    const mt_value *shifts = &b->args[1];
    const mt_value *dims = &b->args[2];
    const mt__shape *shape = mt__bw_shape(b, 0);
    mt_tensor *grad = b->grads[0];
    if (dims->kind == MT_KIND_NONE || dims->count == 0) {
        int64_t numel = grad->numel == 0 ? 1 : grad->numel;
        int64_t back = -(shifts->of.ints[0] % numel);
        MT_TRY(mt_roll(grad, &back, 1, NULL, 0, mt__bw_temp(b)));
        return mt__bw_give_last(b, 0);
    }
    int64_t sum[MT_MAX_DIMS] = {0};
    int64_t all[MT_MAX_DIMS];
    for (uint32_t i = 0; i < shifts->count; i++) {
        int64_t dim = dims->of.ints[i] < 0 ? dims->of.ints[i] + shape->n_dims : dims->of.ints[i];
        int64_t size = shape->sizes[dim] == 0 ? 1 : shape->sizes[dim];
        sum[dim] = (sum[dim] - shifts->of.ints[i] % size) % size;
    }
    for (uint32_t d = 0; d < shape->n_dims; d++) {
        all[d] = d;
    }
    MT_TRY(mt_roll(grad, sum, shape->n_dims, all, shape->n_dims, mt__bw_temp(b)));
    return mt__bw_give_last(b, 0);
}

/* ---- along one dimension --------------------------------------------------------------------- */

/* The gradient of a source of which the index took the front part in each dimension. */
static int give_source(mt__backward *b)
{
    const mt__shape *shape = mt__bw_shape(b, 3);
    mt_tensor *index = b->args[2].of.tensor;
    if (index->numel == 0) {
        mt_tensor *zeros = NULL;
        MT_TRY(mt__bw_zeros_of(b, (const mt_value[]){mt__bw_sizes(b, 3)}, &zeros));
        return mt__bw_give_last(b, 3);
    }
    MT_TRY(mt_gather(b->grads[0], mt__bw_int(b, 1), index, mt__bw_temp(b)));
    mt_tensor *grad = mt__bw_last(b);
    if (grad->n_dims != shape->n_dims) { /* one has no dimensions, the other one of size 1 */
        MT_TRY(mt_reshape(grad, (const int64_t[]){1}, 1, mt__bw_temp(b)));
        grad = mt__bw_last(b);
    }
    mt__shape sizes = mt__tensor_shape(grad);
    for (uint32_t d = 0; d < shape->n_dims; d++) {
        if (grad->sizes[d] != shape->sizes[d]) {
            int64_t length = grad->sizes[d];
            sizes.sizes[d] = shape->sizes[d];
            MT_TRY(mt_slice_backward(grad, sizes.sizes, sizes.n_dims, d, 0, length, 1,
                                     mt__bw_temp(b)));
            grad = mt__bw_last(b);
        }
    }
    if (shape->n_dims == 0 && grad->n_dims > 0) {
        MT_TRY(mt_reshape(grad, NULL, 0, mt__bw_temp(b)));
        grad = mt__bw_last(b);
    }
    mt__bw_give(b, 3, grad);
    return 0;
}

int mt__scatter_backward(mt__backward *b)
{
    if (mt__wants(b, 0)) {
        MT_TRY(mt_scatter_scalar(b->grads[0], mt__bw_int(b, 1), b->args[2].of.tensor, mt_int(0),
                                 mt__bw_temp(b)));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    return mt__wants(b, 3) ? give_source(b) : 0;
}

int mt__scatter_add_backward(mt__backward *b)
{
    if (mt__wants(b, 0)) {
        mt__bw_give(b, 0, b->grads[0]);
    }
    return mt__wants(b, 3) ? give_source(b) : 0;
}

/* The index of scatter_reduce, or that of index_reduce repeated for each element of the source. */
static int scattered_index(mt__backward *b, mt_tensor **index)
{
    const mt__shape *shape = mt__bw_shape(b, 3);
    mt_tensor *given = mt__bw_arg(b, 2);
    *index = given;
    if (given->n_dims == shape->n_dims || shape->n_dims == 0) {
        return 0;
    }
    int64_t sizes[MT_MAX_DIMS];
    int64_t dim = mt__bw_int(b, 1);
    for (uint32_t d = 0; d < shape->n_dims; d++) {
        sizes[d] = 1;
    }
    sizes[dim < 0 ? dim + shape->n_dims : dim] = given->numel;
    MT_TRY(mt_reshape(given, sizes, shape->n_dims, MT_STEP(b)));
    MT_TRY(mt_expand(mt__bw_last(b), shape->sizes, shape->n_dims, MT_STEP(b)));
    *index = mt__bw_last(b);
    return 0;
}

typedef struct met {
    mt_tensor *self;
    mt_tensor *index;
    mt_tensor *source;
    mt_tensor *grad;
    mt_tensor *result;
    int64_t dim;
    bool with_self;
} met;

/* How many of the places of `of_self` and `of_source` that are true meet; at least 1. */
static int count_met(mt__backward *b, const met *m, mt_tensor *of_self, mt_tensor *of_source,
                     mt_tensor **counts)
{
    MT_TRY(mt_to_with(of_self, (mt_dtype)m->grad->dtype, MT_DEVICE_NONE, false, true, MT_STEP(b)));
    *counts = mt__bw_last(b);
    if (!m->with_self) {
        MT_TRY(mt_zero_(*counts));
    }
    MT_TRY(
        mt_to_with(of_source, (mt_dtype)m->grad->dtype, MT_DEVICE_NONE, false, false, MT_STEP(b)));
    return mt_scatter_add_(*counts, m->dim, m->index, mt__bw_last(b));
}

/* Gives self's gradient, and zero where the source replaced it. */
static int give_self(mt__backward *b, const met *m, mt_tensor *grad)
{
    if (!m->with_self) {
        MT_TRY(mt_scatter_scalar(grad, m->dim, m->index, mt_int(0), MT_STEP(b)));
        grad = mt__bw_last(b);
    }
    mt__bw_give(b, 0, grad);
    return 0;
}

/* Elements that equal the result share its gradient. */
static int extreme_backward(mt__backward *b, const met *m)
{
    mt_tensor *counts = NULL;
    MT_TRY(mt_eq(m->self, m->result, MT_STEP(b)));
    mt_tensor *self_is = mt__bw_last(b);
    MT_TRY(mt_gather(m->result, m->dim, m->index, MT_STEP(b)));
    MT_TRY(mt_eq(m->source, mt__bw_last(b), MT_STEP(b)));
    mt_tensor *source_is = mt__bw_last(b);
    MT_TRY(count_met(b, m, self_is, source_is, &counts));
    MT_TRY(mt_clamp_min(counts, mt_int(1), MT_STEP(b)));
    MT_TRY(mt_div(m->grad, mt__bw_last(b), MT_STEP(b)));
    mt_tensor *share = mt__bw_last(b);
    if (mt__wants(b, 0)) {
        /* where nothing met, self is the result */
        MT_TRY(mt_mul(share, self_is, MT_STEP(b)));
        MT_TRY(give_self(b, m, mt__bw_last(b)));
    }
    if (!mt__wants(b, 3)) {
        return 0;
    }
    MT_TRY(mt_gather(share, m->dim, m->index, MT_STEP(b)));
    MT_TRY(mt_mul(mt__bw_last(b), source_is, MT_STEP(b)));
    return mt__bw_give_last(b, 3);
}

/* The product of the others: the result divided by the factor. Where exactly one factor is zero,
 * its gradient is the product of those that are not. */
static int product_backward(mt__backward *b, const met *m)
{
    mt_tensor *zeros = NULL;
    MT_TRY(mt_eq_scalar(m->self, mt_int(0), MT_STEP(b)));
    mt_tensor *self_zero = mt__bw_last(b);
    MT_TRY(mt_eq_scalar(m->source, mt_int(0), MT_STEP(b)));
    mt_tensor *source_zero = mt__bw_last(b);
    MT_TRY(count_met(b, m, self_zero, source_zero, &zeros));
    MT_TRY(mt_masked_fill_scalar(m->self, self_zero, mt_int(1), MT_STEP(b)));
    mt_tensor *self_factor = mt__bw_last(b);
    MT_TRY(mt_masked_fill_scalar(m->source, source_zero, mt_int(1), MT_STEP(b)));
    mt_tensor *source_factor = mt__bw_last(b);
    MT_TRY(mt_scatter_reduce_with(self_factor, m->dim, m->index, source_factor, "prod",
                                  m->with_self, MT_STEP(b)));
    mt_tensor *product = mt__bw_last(b); /* of all that are not zero */
    MT_TRY(mt_mul(m->grad, product, MT_STEP(b)));
    mt_tensor *scaled = mt__bw_last(b);
    /* The others' product is `product` without the factor, unless another one is zero. */
    for (uint32_t arg = 0; arg < 4; arg += 3) {
        if (!mt__wants(b, arg)) {
            continue;
        }
        mt_tensor *from = scaled;
        mt_tensor *others = zeros;
        if (arg == 3) {
            MT_TRY(mt_gather(scaled, m->dim, m->index, MT_STEP(b)));
            from = mt__bw_last(b);
            MT_TRY(mt_gather(zeros, m->dim, m->index, MT_STEP(b)));
            others = mt__bw_last(b);
        }
        MT_TRY(mt_div(from, arg == 0 ? self_factor : source_factor, MT_STEP(b)));
        mt_tensor *grad = mt__bw_last(b);
        MT_TRY(mt_gt(others, arg == 0 ? self_zero : source_zero, MT_STEP(b)));
        MT_TRY(mt_masked_fill_scalar(grad, mt__bw_last(b), mt_int(0), MT_STEP(b)));
        if (arg == 0) {
            MT_TRY(give_self(b, m, mt__bw_last(b)));
        } else {
            MT_TRY(mt__bw_give_last(b, 3));
        }
    }
    return 0;
}

int mt__scatter_reduce_backward(mt__backward *b)
{
    const char *kind = b->args[4].of.text;
    met m = {
        .self = mt__bw_arg(b, 0),
        .source = mt__bw_arg(b, 3),
        .grad = mt__bw_grad(b),
        .result = mt__bw_result(b, 0),
        .dim = mt__bw_int(b, 1),
        .with_self = b->args[5].of.integer != 0,
    };
    MT_TRY(scattered_index(b, &m.index));
    if (kind[0] == 'a') {
        return extreme_backward(b, &m);
    }
    if (kind[0] == 'p') {
        return product_backward(b, &m);
    }
    if (kind[0] == 'm') {
        mt_tensor *counts = NULL;
        MT_TRY(mt_ones_like(m.grad, MT_STEP(b)));
        mt_tensor *of_self = mt__bw_last(b);
        MT_TRY(mt_ones_like(m.source, MT_STEP(b)));
        MT_TRY(count_met(b, &m, of_self, mt__bw_last(b), &counts));
        MT_TRY(mt_clamp_min(counts, mt_int(1), MT_STEP(b)));
        MT_TRY(mt_div(m.grad, mt__bw_last(b), MT_STEP(b)));
        m.grad = mt__bw_last(b);
    }
    if (mt__wants(b, 0)) {
        MT_TRY(give_self(b, &m, m.grad));
    }
    if (!mt__wants(b, 3)) {
        return 0;
    }
    MT_TRY(mt_gather(m.grad, m.dim, m.index, MT_STEP(b)));
    return mt__bw_give_last(b, 3);
}

/* ---- advanced indexing ----------------------------------------------------------------------- */

int mt__index_put_backward(mt__backward *b)
{
    const mt_value *indices = &b->args[1];
    mt_tensor *grad = b->grads[0];
    if (mt__wants(b, 0) && b->args[3].of.integer != 0) {
        mt__bw_give(b, 0, grad);
    } else if (mt__wants(b, 0)) {
        mt_tensor *zero = NULL;
        MT_TRY(mt__bw_zeros_of(b, (const mt_value[]){mt__box_ints(NULL, 0)}, &zero));
        MT_TRY(
            mt_index_put(grad, indices->of.tensors, indices->count, zero, false, mt__bw_temp(b)));
        MT_TRY(mt__bw_give_last(b, 0));
    }
    if (mt__wants(b, 2)) {
        MT_TRY(mt_index(grad, indices->of.tensors, indices->count, mt__bw_temp(b)));
        mt__bw_give(b, 2, mt__bw_last(b));
        return MT_OK;
    }
    return 0;
}

/* ---- masks ----------------------------------------------------------------------------------- */

int mt__masked_select_backward(mt__backward *b)
{
    mt_tensor *mask = b->args[1].of.tensor;
    mt__shape shape = *mt__bw_shape(b, 0);
    mt_tensor *zeros = NULL;
    MT_TRY(mt__shape_broadcast(&shape, mask->sizes, mask->n_dims));
    MT_TRY(mt__bw_zeros_of(b, (const mt_value[]){mt__box_ints(shape.sizes, shape.n_dims)}, &zeros));
    MT_TRY(mt_masked_scatter_(zeros, mask, b->grads[0]));
    mt__bw_give(b, 0, zeros);
    return MT_OK;
}

int mt__masked_scatter_backward(mt__backward *b)
{
    mt_tensor *mask = b->args[1].of.tensor;
    if (mt__wants(b, 0)) {
        MT_TRY(mt_masked_fill_scalar(b->grads[0], mask, mt_int(0), mt__bw_temp(b)));
        mt__bw_give(b, 0, mt__bw_last(b));
    }
    if (!mt__wants(b, 2)) {
        return 0;
    }
    /* The first elements of the source were used, the rest was not. */
    const mt__shape *shape = mt__bw_shape(b, 2);
    int64_t numel = 1;
    for (uint32_t d = 0; d < shape->n_dims; d++) {
        numel *= shape->sizes[d];
    }
    MT_TRY(mt_masked_select(b->grads[0], mask, mt__bw_temp(b)));
    mt_tensor *grad = mt__bw_last(b);
    if (grad->numel < numel) {
        MT_TRY(mt_slice_backward(grad, &numel, 1, 0, 0, grad->numel, 1, mt__bw_temp(b)));
        grad = mt__bw_last(b);
    }
    MT_TRY(mt_reshape(grad, shape->sizes, shape->n_dims, mt__bw_temp(b)));
    return mt__bw_give_last(b, 2);
}
