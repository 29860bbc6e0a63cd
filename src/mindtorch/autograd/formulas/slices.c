/* SPDX-License-Identifier: Apache-2.0
 *
 * An op that wrote a view, as the view's base sees it: outside of the view the gradient goes
 * through, inside it goes through the op.
 *
 *     base gradient  ─ copied ─► result ──────────────► gradient of the base before the write
 *                                  │ slice         ▲
 *                                  └─► op's formula ┘ (and the gradients of its other arguments)
 */
#include "mindtorch/autograd/engine/evaluate.h"
#include "mindtorch/autograd/graph/meta.h"

#include <mindtorch/ops.h>

#include <string.h>

static int64_t *copy_ints(char **place, const int64_t *from, uint32_t count)
{
    int64_t *to = (int64_t *)(void *)*place;
    for (uint32_t i = 0; i < count; i++) {
        to[i] = from[i];
    }
    *place += count * sizeof(int64_t);
    return to;
}

static void fill_slices(mt__slices *slices, char *place, const mt_tensor *base,
                        const mt_tensor *view)
{
    slices->base_dims = base->n_dims;
    slices->view_dims = view->n_dims;
    slices->base_offset = base->offset;
    slices->view_offset = view->offset;
    slices->base_sizes = copy_ints(&place, base->sizes, base->n_dims);
    slices->base_strides = copy_ints(&place, base->strides, base->n_dims);
    slices->view_sizes = copy_ints(&place, view->sizes, view->n_dims);
    slices->view_strides = copy_ints(&place, view->strides, view->n_dims);
}

int mt__slices_new(mt_tensor *view, mt_node *take_inner, mt_node **out)
{
    mt_node *inner = take_inner;
    mt_tensor *base = view->base;
    const mt__packed_meta *self_meta = (const mt__packed_meta *)(const void *)inner->metas;
    const mt__packed_meta *end = self_meta;
    for (uint32_t i = 0; i < inner->n_inputs; i++) {
        end = mt__packed_next(end);
    }
    const char *others = (const char *)mt__packed_next(self_meta);
    size_t other_bytes = (size_t)((const char *)end - others);
    mt__node_plan plan = {
        .kind = MT_NODE_SLICES,
        .n_inputs = inner->n_inputs,
        .n_outputs = 1,
        .meta_bytes = 2 * mt__packed_bytes(base->n_dims) + other_bytes,
        .extra_bytes =
            sizeof(mt__slices) + 2 * ((size_t)base->n_dims + view->n_dims) * sizeof(int64_t),
    };
    char *extra = NULL;
    mt__edge edge = {NULL, 0};
    int status = mt__edge_of(base, &edge);
    if (status == MT_OK) {
        status = mt__node_new(&plan, out, &extra);
    }
    if (status != MT_OK) {
        mt_node_release(edge.node);
        mt_node_release(inner);
        return status;
    }
    mt_node *node = *out;
    node->row = inner->row;
    node->of.slices = (mt__slices *)(void *)extra;
    node->of.slices->inner = inner;
    inner->of.op.outer = node;
    fill_slices(node->of.slices, extra + sizeof(mt__slices), base, view);
    char *metas = (char *)(uintptr_t)node->metas;
    mt__pack_meta(&metas, base);
    memcpy(metas, others, other_bytes);
    metas += other_bytes;
    mt__pack_meta(&metas, base);
    mt__node_set_stream(node);
    node->edges[0] = edge;
    for (uint32_t i = 1; i < inner->n_inputs; i++) {
        node->edges[i] = (mt__edge){mt_node_retain(inner->edges[i].node), inner->edges[i].output};
    }
    return MT_OK;
}

/* ---- backward -------------------------------------------------------------------------------- */

/* One past the last element, in elements from the storage's begin. */
static int64_t end_of(int64_t offset, const int64_t *sizes, const int64_t *strides, uint32_t n)
{
    int64_t end = offset + 1;
    for (uint32_t i = 0; i < n; i++) {
        if (sizes[i] == 0) {
            return offset;
        }
        end += (sizes[i] - 1) * strides[i];
    }
    return end;
}

/* A copy of the gradient with the base's geometry, and the view in it. */
static int lay_out(const mt__slices *s, mt_tensor *grad, mt_tensor **result, mt_tensor **slice)
{
    int64_t base_end = end_of(s->base_offset, s->base_sizes, s->base_strides, s->base_dims);
    int64_t view_end = end_of(s->view_offset, s->view_sizes, s->view_strides, s->view_dims);
    bool inside = s->view_offset >= s->base_offset && view_end <= base_end;
    int64_t shift = s->view_offset - s->base_offset;
    if (inside && mt__shape_is_contiguous(s->base_sizes, s->base_strides, s->base_dims)) {
        int64_t contiguous = 0;
        MT_TRY(mt_clone_with(grad, &contiguous, result));
        return mt_as_strided(*result, s->view_sizes, s->view_dims, s->view_strides, s->view_dims,
                             &shift, slice);
    }
    /* Bases with gaps or turned strides, views that reach beyond: through one flat piece of both.
     */
    int64_t begin = s->base_offset < s->view_offset ? s->base_offset : s->view_offset;
    int64_t count = (base_end > view_end ? base_end : view_end) - begin;
    int64_t base_at = s->base_offset - begin;
    int64_t view_at = s->view_offset - begin;
    mt_tensor *flat = NULL;
    MT_TRY(mt_zeros_with(&count, 1, (mt_dtype)grad->dtype, grad->device, &flat));
    int status = mt_as_strided(flat, s->base_sizes, s->base_dims, s->base_strides, s->base_dims,
                               &base_at, result);
    if (status == MT_OK) {
        status = mt_copy_(*result, grad, false);
    }
    if (status == MT_OK) {
        status = mt_as_strided(flat, s->view_sizes, s->view_dims, s->view_strides, s->view_dims,
                               &view_at, slice);
    }
    mt_tensor_release(flat);
    return status;
}

static int run_inner(const mt__slices *s, mt_tensor *slice, const bool *wanted,
                     mt_tensor **grads_in)
{
    mt_tensor *grad = NULL;
    MT_TRY(mt_clone(slice, &grad)); /* the formula may keep it, and the slice is written below */
    int status = mt__node_run(s->inner, &grad, wanted, grads_in);
    mt_tensor_release(grad);
    return status;
}

int mt__slices_run(mt_node *node, mt_tensor *const *grads, const bool *wanted, mt_tensor **grads_in)
{
    const mt__slices *s = node->of.slices;
    mt__node_lock(node);
    bool released = node->released;
    mt__node_unlock(node);
    if (released) {
        return mt__refuse_twice();
    }
    mt_tensor *result = NULL;
    mt_tensor *slice = NULL;
    int status = lay_out(s, grads[0], &result, &slice);
    if (status == MT_OK) {
        status = run_inner(s, slice, wanted, grads_in);
    }
    if (status == MT_OK && wanted[0]) {
        status = grads_in[0] == NULL ? mt_zero_(slice) : mt_copy_(slice, grads_in[0], false);
        mt_tensor_release(grads_in[0]);
        grads_in[0] = result;
        result = NULL;
    }
    mt_tensor_release(slice);
    mt_tensor_release(result);
    return status;
}
