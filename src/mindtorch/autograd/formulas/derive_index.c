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
