/* SPDX-License-Identifier: Apache-2.0
 *
 * Autograd's part of a tensor, and the public functions that read and set it. See meta.h.
 */
#include "mindtorch/autograd/graph/meta.h"

#include "mindtorch/autograd/graph/hooks.h"
#include "mindtorch/core/thread/thread_cache.h"
#include "mindtorch/core/thread/thread_state.h"
#include "mindtorch/ops/type_names.h"

#include <string.h>

mt__autograd *mt__meta_need(mt_tensor *tensor)
{
    mt__autograd *meta = tensor->autograd;
    if (MT_LIKELY(meta == NULL)) {
        meta = mt__pool_take_fast(MT_POOL_AUTOGRAD, sizeof(*meta));
        if (MT_UNLIKELY(meta == NULL)) {
            mtb_fail(MT_ENOMEM, "autograd: no memory for the graph's part of a tensor");
            return NULL;
        }
        memset(meta, 0, offsetof(mt__autograd, leaf));
        tensor->autograd = meta;
    }
    return meta;
}

/* The tap is no longer the tensor's current one, but mt_tensor_remove_hook() still finds it. */
static void set_tap_aside(mt__autograd *meta)
{
    mt__tap *tap = meta->tap;
    if (tap != NULL) {
        mt__tap_set_keeper(tap, NULL);
        tap->older = meta->older_taps;
        meta->older_taps = tap;
        meta->tap = NULL;
    }
}

void mt__autograd_free(mt__autograd *autograd)
{
    mt__autograd *meta = autograd;
    set_tap_aside(meta);
    while (meta->older_taps != NULL) {
        mt__tap *tap = meta->older_taps;
        meta->older_taps = tap->older;
        mt__tap_release(tap);
    }
    while (meta->node_taps != NULL) {
        mt__tap *tap = meta->node_taps;
        meta->node_taps = tap->next;
        mt__tap_release(tap);
    }
    mt__hooks_free(meta->leaf_hooks);
    mt_node_release(meta->grad_fn);
    mt_tensor_release(meta->grad);
    mt__pool_give_fast(MT_POOL_AUTOGRAD, meta);
}

int mt__view_edge_of(mt_tensor *view, mt__edge *edge)
{
    *edge = (mt__edge){NULL, 0};
    if (!mt__tensor_needs(view)) {
        return MT_OK;
    }
    MT_TRY(mt__view_refresh(view));
    mt__autograd *meta = view->autograd;
    if (meta == NULL) {
        return MT_OK; /* made while nothing was recorded: no edge, as in torch */
    }
    if (meta->grad_fn != NULL) {
        *edge = (mt__edge){mt_node_retain(meta->grad_fn), meta->output};
    } else if (view->requires_grad) {
        *edge = (mt__edge){mt_node_retain(&meta->leaf), 0};
    }
    return MT_OK;
}

void mt__meta_tie(mt_tensor *tensor, mt_node *take, uint32_t output, mt__tap *tap)
{
    mt__autograd *meta = tensor->autograd;
    mt_node *old = meta->grad_fn;
    set_tap_aside(meta);
    meta->grad_fn = take;
    meta->output = output;
    meta->tap = tap;
    if (tensor->base == NULL) {
        tensor->requires_grad = true; /* views have their base's: other threads read this one */
    }
    if (tap != NULL) {
        mt__tap_set_keeper(tap, tensor);
    }
    mt_node_release(old);
}

int mt__alias(mt_tensor *tensor, mt_tensor **out)
{
    return mt__tensor_view(tensor, tensor->sizes, tensor->strides, tensor->n_dims, tensor->offset,
                           false, out);
}

int mt__alias_with(mt_tensor *tensor, const mt__edge *edge, mt_tensor **out)
{
    MT_TRY(mt__alias(tensor, out));
    mt__autograd *meta = mt__meta_need(*out);
    if (meta == NULL) {
        mt_tensor_release(*out);
        *out = NULL;
        return MT_ENOMEM;
    }
    meta->grad_fn = mt_node_retain(edge->node);
    meta->output = edge->output;
    (*out)->requires_grad = true;
    return MT_OK;
}

MT_COLD int mt__refuse_inference(void)
{
    return mtb_fail(MT_ERUNTIME,
                    "Inference tensors cannot be saved for backward. Please do not use Tensors "
                    "created in inference mode in computation tracked by autograd. To work around "
                    "this, you can make a clone to get a normal tensor and use it in autograd, or "
                    "use `torch.no_grad()` instead of `torch.inference_mode()`.");
}

/* ---- public ---------------------------------------------------------------------------------- */

bool mt_tensor_requires_grad(const mt_tensor *tensor)
{
    return mt__tensor_needs(tensor);
}

bool mt_tensor_is_view(const mt_tensor *tensor)
{
    return tensor->base != NULL;
}

mt_tensor *mt_tensor_base(const mt_tensor *tensor)
{
    return tensor->base;
}

/* The current node; the stale one of a view is rebuilt. NULL also if that fails. */
mt_node *mt_tensor_grad_fn(const mt_tensor *tensor)
{
    mt_tensor *self = (mt_tensor *)(uintptr_t)tensor; /* grad_fn of a view is a cache */
    if (self->base != NULL && mt__tensor_needs(self) && mt__view_refresh(self) != MT_OK) {
        return NULL;
    }
    return self->autograd == NULL ? NULL : self->autograd->grad_fn;
}

mt_status mt_tensor_get_gradient_edge(mt_tensor *tensor, mt_node **node, uint32_t *output)
{
    mt__edge edge = {NULL, 0};
    *node = NULL;
    *output = 0;
    MT_TRY(mt__edge_of(tensor, &edge));
    if (edge.node == NULL) {
        return mtb_fail(MT_ERUNTIME,
                        "It is not possible to get the gradient edge for a Tensor that "
                        "does not require gradients");
    }
    *node = edge.node;
    *output = edge.output;
    return MT_OK;
}

bool mt_tensor_is_leaf(const mt_tensor *tensor)
{
    if (tensor->base != NULL && tensor->base->requires_grad) {
        return mt_tensor_grad_fn(tensor) == NULL;
    }
    return tensor->autograd == NULL || tensor->autograd->grad_fn == NULL;
}

static void set_up_leaf(mt_tensor *tensor)
{
    mt_node *leaf = &tensor->autograd->leaf;
    memset(leaf, 0, sizeof(*leaf));
    leaf->kind = MT_NODE_LEAF;
    leaf->n_outputs = 1;
    leaf->sequence = UINT64_MAX;
    leaf->of.leaf = tensor;
}

mt_status mt_tensor_set_requires_grad(mt_tensor *tensor, bool requires_grad)
{
    bool leaf = tensor->autograd == NULL || tensor->autograd->grad_fn == NULL;
    if (!leaf) {
        return requires_grad
                   ? MT_OK
                   : mtb_fail(MT_ERUNTIME,
                              "you can only change requires_grad flags of leaf variables. If you "
                              "want to use a computed variable in a subgraph that doesn't require "
                              "differentiation use var_no_grad = var.detach().");
    }
    if (!requires_grad) {
        tensor->requires_grad = false;
        return MT_OK;
    }
    if (mt__tensor_category(tensor) < MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME, "only Tensors of floating point dtype can require gradients");
    }
    if (tensor->storage->inference && mt__thread.inference == 0) {
        return mtb_fail(MT_ERUNTIME, "Setting requires_grad=True on inference tensor outside "
                                     "InferenceMode is not allowed.");
    }
    if (!mt__tensor_needs(tensor)) {
        if (mt__meta_need(tensor) == NULL) {
            return MT_ENOMEM;
        }
        set_up_leaf(tensor);
        tensor->requires_grad = true;
    }
    return MT_OK;
}

mt_tensor *mt_tensor_grad(const mt_tensor *tensor)
{
    return tensor->autograd == NULL ? NULL : tensor->autograd->grad;
}

static int check_grad(const mt_tensor *tensor, const mt_tensor *grad)
{
    if (tensor == grad) {
        return mtb_fail(MT_ERUNTIME, "can't assign Variable as its own grad");
    }
    if (tensor->dtype != grad->dtype) {
        return mtb_fail(MT_ERUNTIME,
                        "attempting to assign a gradient with dtype '%s' to a tensor with "
                        "grad_dtype '%s'. The gradient must match the tensor's grad_dtype "
                        "(defaults to the tensor's dtype)",
                        mt__type_title((mt_dtype)grad->dtype),
                        mt__type_title((mt_dtype)tensor->dtype));
    }
    if (tensor->device != grad->device) {
        char from[32];
        strncpy(from, mt_device_name(grad->device), sizeof(from) - 1);
        from[sizeof(from) - 1] = '\0';
        return mtb_fail(MT_ERUNTIME,
                        "attempting to assign a gradient with device type '%s' to a tensor with "
                        "device type '%s'. Please ensure that the gradient and the tensor are on "
                        "the same device",
                        from, mt_device_name(tensor->device));
    }
    mt__shape a = mt__tensor_shape(tensor);
    mt__shape b = mt__tensor_shape(grad);
    if (!mt__shape_equal(&a, &b)) {
        char want[MT_SHAPE_TEXT];
        char got[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "attempting to assign a gradient of size '%s' to a tensor of size '%s'. "
                        "Please ensure that the gradient and the tensor are the same size",
                        mt__shape_text(grad->sizes, grad->n_dims, got),
                        mt__shape_text(tensor->sizes, tensor->n_dims, want));
    }
    return MT_OK;
}

mt_status mt_tensor_set_grad(mt_tensor *tensor, mt_tensor *grad)
{
    if (grad != NULL) {
        MT_TRY(check_grad(tensor, grad));
        if (mt__meta_need(tensor) == NULL) {
            return MT_ENOMEM;
        }
    }
    if (tensor->autograd != NULL) {
        mt_tensor_release(mt__grad_swap(tensor, mt_tensor_retain(grad)));
    }
    return MT_OK;
}

mt_status mt_tensor_detach_inplace(mt_tensor *tensor)
{
    if (tensor->base != NULL) {
        return mtb_fail(MT_ERUNTIME, "Can't detach views in-place. Use detach() instead");
    }
    tensor->requires_grad = false;
    mt__autograd *meta = tensor->autograd;
    if (meta != NULL) {
        mt_node *node = meta->grad_fn;
        meta->grad_fn = NULL;
        meta->output = 0;
        meta->retains_grad = false;
        set_tap_aside(meta);
        mt_node_release(node);
    }
    return MT_OK;
}

bool mt_tensor_retains_grad(const mt_tensor *tensor)
{
    return tensor->autograd != NULL && tensor->autograd->retains_grad && !mt_tensor_is_leaf(tensor);
}

mt_status mt_tensor_set_data(mt_tensor *tensor, const mt_tensor *source)
{
    bool needs = mt__tensor_needs(tensor);
    if (needs && mt__tensor_category(source) < MT_CATEGORY_REAL) {
        return mtb_fail(MT_ERUNTIME,
                        "data set to a tensor that requires gradients must be floating "
                        "point or complex dtype");
    }
    if (tensor == source) {
        return MT_OK;
    }
    /* The elements are shared, but the tensor has its own version: as in torch, autograd does not
     * notice writes through x.data. */
    mt__storage *alias = NULL;
    MT_TRY(mt__storage_alias(source->storage, mt_tensor_version(tensor), &alias));
    mt_tensor *base = tensor->base;
    mt__storage *storage = tensor->storage;
    tensor->base = NULL;
    tensor->view_flags = 0;
    tensor->requires_grad = needs;
    tensor->storage = alias;
    tensor->dtype = source->dtype;
    tensor->device = source->device;
    tensor->n_dims = source->n_dims;
    tensor->contiguous = source->contiguous;
    tensor->numel = source->numel;
    tensor->offset = source->offset;
    memcpy(tensor->sizes, source->sizes, source->n_dims * sizeof tensor->sizes[0]);
    memcpy(tensor->strides, source->strides, source->n_dims * sizeof tensor->strides[0]);
    mt__storage_release(storage);
    mt_tensor_release(base);
    return MT_OK;
}

bool mt_grad_enabled(void)
{
    return !mt__thread.grad_disabled || (mt__thread.inference & MT_INFERENCE_GRAD) != 0;
}

bool mt_set_grad_enabled(bool enabled)
{
    bool was = mt_grad_enabled();
    if (MT_UNLIKELY(mt__thread.inference != 0)) {
        mt__thread.inference = (uint8_t)(MT_INFERENCE_ON | (enabled ? MT_INFERENCE_GRAD : 0));
    } else {
        mt__thread.grad_disabled = !enabled;
    }
    return was;
}

bool mt_inference_mode(void)
{
    return mt__thread.inference != 0;
}

bool mt_set_inference_mode(bool on)
{
    bool was = mt__thread.inference != 0;
    mt__thread.inference = on ? MT_INFERENCE_ON : 0;
    mt__thread.grad_disabled = on;
    return was;
}

uint64_t mt_next_sequence(void)
{
    return mt__thread.sequence;
}
