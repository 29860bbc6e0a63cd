/* SPDX-License-Identifier: Apache-2.0
 *
 * Derivatives of views: the gradient read the other way, or laid into zeros where the view was.
 */
#include "base/alloc.h"
#include "mindtorch/autograd/engine/evaluate.h"
#include "mindtorch/autograd/formulas/formula.h"

int mt__permute_backward(mt__backward *b)
{
    int64_t inverse[MT_MAX_DIMS];
    uint32_t n = b->args[1].count;
    for (uint32_t i = 0; i < n; i++) {
        int64_t dim = b->args[1].of.ints[i];
        inverse[dim < 0 ? dim + n : dim] = i;
    }
    MT_TRY(mt_permute(b->grads[0], inverse, n, mt__bw_temp(b)));
    return mt__bw_give_last(b, 0);
}

int mt__expand_backward(mt__backward *b)
{
    const mt__meta *meta = mt__input_meta(b, 0);
    MT_TRY(mt__reduce_to(b->grads[0], &meta->shape, (mt_dtype)meta->dtype, mt__bw_temp(b)));
    return mt__bw_give_last(b, 0);
}

int mt__slice_backward(mt__backward *b)
{
    const mt__shape *shape = mt__bw_shape(b, 0);
    int64_t start = b->args[2].kind == MT_KIND_NONE ? 0 : mt__bw_int(b, 2);
    int64_t end = b->args[3].kind == MT_KIND_NONE ? INT64_MAX : mt__bw_int(b, 3);
    MT_TRY(mt_slice_backward(b->grads[0], shape->sizes, shape->n_dims, mt__bw_int(b, 1), start, end,
                             mt__bw_int(b, 4), mt__bw_temp(b)));
    return mt__bw_give_last(b, 0);
}

int mt__as_strided_backward(mt__backward *b)
{
    const mt__shape *shape = mt__bw_shape(b, 0);
    const mt_value *size = &b->args[1];
    const mt_value *stride = &b->args[2];
    const mt__geometry *self = mt__self_geometry(b);
    int64_t offset = b->args[3].kind == MT_KIND_NONE ? self->offset : mt__bw_int(b, 3);
    MT_TRY(mt_as_strided_backward(b->grads[0], shape->sizes, shape->n_dims, self->strides,
                                  shape->n_dims, self->offset, size->of.ints, size->count,
                                  stride->of.ints, stride->count, offset, false, mt__bw_temp(b)));
    return mt__bw_give_last(b, 0);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* The gradients of the pieces; for those on which nothing depended, zeros of the piece's sizes.
 * The list is the caller's to free, the zeros are released by drop_pieces(). */
typedef struct grad_list {
    mt_tensor **grads;
    uint32_t count;
} grad_list;

static void drop_pieces(const mt__backward *b, grad_list *list)
{
    for (uint32_t i = 0; list->grads != NULL && i < list->count; i++) {
        if (b->grads[i] == NULL) {
            mt_tensor_release(list->grads[i]);
        }
    }
    mtb_free(list->grads);
}

static int collect_pieces(const mt__backward *b, grad_list *list)
{
    int status = 0;
    list->count = b->n_grads;
    list->grads = mtb_calloc(b->n_grads, sizeof(mt_tensor *));
    if (list->grads == NULL) {
        return mtb_fail(MT_ENOMEM, "%s: no memory for %u gradients", mt_node_name(b->node),
                        b->n_grads);
    }
    for (uint32_t i = 0; i < b->n_grads && status == 0; i++) {
        const mt__meta *meta = mt__result_meta(b, i);
        list->grads[i] = b->grads[i];
        if (b->grads[i] == NULL) {
            status = mt_zeros_with(meta->shape.sizes, meta->shape.n_dims, (mt_dtype)meta->dtype,
                                   meta->device, &list->grads[i]);
        }
    }
    if (status != 0) {
        drop_pieces(b, list);
    }
    return status;
}

/* `join` puts the pieces together along the dimension that argument `dim` names. */
static int join_pieces(mt__backward *b, uint32_t dim,
                       mt_status (*join)(mt_tensor *const *tensors, size_t n_tensors, int64_t dim,
                                         mt_tensor **out))
{
    grad_list list;
    MT_TRY(collect_pieces(b, &list));
    int status = join(list.grads, list.count, mt__bw_int(b, dim), mt__bw_temp(b));
    drop_pieces(b, &list);
    return status != 0 ? status : mt__bw_give_last(b, 0);
}

MT_FORMULA(unbind_backward, join_pieces, 1, mt_stack)
MT_FORMULA(split_backward, join_pieces, 2, mt_cat)

/* ---- derivatives of the derivatives: the view itself, of the gradient ------------------------ */

/* The two geometries are swapped; what was divided by counts is divided again. */
int mt__as_strided_twice(mt__backward *b)
{
    const mt_value *a = b->args;
    MT_TRY(mt_as_strided_backward(b->grads[0], a[4].of.ints, a[4].count, a[5].of.ints, a[5].count,
                                  mt__bw_int(b, 6), a[1].of.ints, a[1].count, a[2].of.ints,
                                  a[2].count, mt__bw_int(b, 3), a[7].of.integer == 0,
                                  mt__bw_temp(b)));
    return mt__bw_give_last(b, 0);
}

/* As often the other way round. */
int mt__rot90_backward(mt__backward *b)
{
    const mt_value *dims = &b->args[2];
    MT_TRY(
        mt_rot90(mt__bw_grad(b), -(mt__bw_int(b, 1) % 4), dims->of.ints, dims->count, MT_STEP(b)));
    return mt__bw_give_last(b, 0);
}
