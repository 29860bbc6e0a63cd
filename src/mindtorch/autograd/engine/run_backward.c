/* SPDX-License-Identifier: Apache-2.0
 *
 * mt_backward() and mt_grad(): arguments are checked, roots and captures are made, the engine runs.
 */
#include "base/alloc.h"
#include "mindtorch/autograd/engine/engine.h"
#include "mindtorch/core/thread/thread_state.h"

enum {
    STACK_ROOTS = 8
};

/* The gradient of a root: what was given, or 1. One reference in root->grad. */
static int make_grad(mt_tensor *tensor, mt_tensor *gradient, size_t i, mt__root *root)
{
    if (gradient == NULL) {
        if (tensor->numel != 1) {
            return mtb_fail(MT_ERUNTIME, "grad can be implicitly created only for scalar outputs");
        }
        if (mt__tensor_category(tensor) == MT_CATEGORY_COMPLEX) {
            return mtb_fail(MT_ERUNTIME,
                            "grad can be implicitly created only for real scalar outputs but got "
                            "torch.%s",
                            mt_dtype_name((mt_dtype)tensor->dtype));
        }
        bool disabled = mt__thread.grad_disabled;
        mt__thread.grad_disabled = true;
        const int64_t preserve = 1; /* as torch asks for it */
        int status =
            mt_ones_like_with(tensor, &preserve, MT_DTYPE_NONE, MT_DEVICE_NONE, &root->grad);
        mt__thread.grad_disabled = disabled;
        return status;
    }
    mt__shape want = mt__tensor_shape(tensor);
    mt__shape got = mt__tensor_shape(gradient);
    if (!mt__shape_equal(&want, &got)) {
        char a[MT_SHAPE_TEXT];
        char b[MT_SHAPE_TEXT];
        return mtb_fail(MT_ERUNTIME,
                        "Mismatch in shape: grad_output[%zu] has a shape of torch.Size(%s) and "
                        "output[%zu] has a shape of torch.Size(%s).",
                        i, mt__shape_text(gradient->sizes, gradient->n_dims, a), i,
                        mt__shape_text(tensor->sizes, tensor->n_dims, b));
    }
    if (gradient->device != tensor->device) {
        return mtb_fail(MT_ERUNTIME,
                        "backward(): gradient %zu is on another device than its tensor", i);
    }
    if (gradient->dtype == tensor->dtype) {
        root->grad = mt_tensor_retain(gradient);
        return MT_OK;
    }
    return mt_to_with(gradient, (mt_dtype)tensor->dtype, MT_DEVICE_NONE, false, false, &root->grad);
}

static int make_root(mt_tensor *tensor, mt_tensor *gradient, size_t i, mt__root *root)
{
    if (tensor == NULL) {
        return mtb_fail(MT_ETYPE, "backward(): tensor %zu is missing", i);
    }
    if (!mt__tensor_needs(tensor)) {
        return mtb_fail(MT_ERUNTIME,
                        "element %zu of tensors does not require grad and does not have a grad_fn",
                        i);
    }
    MT_TRY(make_grad(tensor, gradient, i, root));
    return mt__edge_of(tensor, &root->edge);
}

/* Roots that lead nowhere (views made outside of graphs) are left out. */
static int make_roots(mt_tensor *const *tensors, mt_tensor *const *gradients, size_t count,
                      mt__root *roots, size_t *n_roots)
{
    *n_roots = 0;
    for (size_t i = 0; i < count; i++) {
        mt__root root = {.edge = {NULL, 0}, .grad = NULL};
        int status = make_root(tensors[i], gradients == NULL ? NULL : gradients[i], i, &root);
        if (status == MT_OK && root.edge.node != NULL) {
            roots[(*n_roots)++] = root;
            continue;
        }
        mt_tensor_release(root.grad);
        mt_node_release(root.edge.node);
        MT_TRY(status);
    }
    return MT_OK;
}

static void drop_roots(mt__root *roots, size_t n_roots)
{
    for (size_t i = 0; i < n_roots; i++) {
        mt_tensor_release(roots[i].grad);
        mt_node_release(roots[i].edge.node);
    }
}

/* With captures or, where there are none, into the leaves. */
static int run_from(mt_tensor *const *tensors, mt_tensor *const *gradients, size_t count,
                    mt__engine_job *job, uint32_t flags)
{
    mt__root stack_roots[STACK_ROOTS];
    mt__root *roots = stack_roots;
    if (count > STACK_ROOTS) {
        roots = mtb_calloc(count, sizeof(mt__root));
        if (roots == NULL) {
            return mtb_fail(MT_ENOMEM, "backward(): no memory for %zu tensors", count);
        }
    }
    int status = make_roots(tensors, gradients, count, roots, &job->n_roots);
    if (status == MT_OK) {
        job->roots = roots;
        job->create_graph = (flags & MT_CREATE_GRAPH) != 0;
        job->retain = (flags & (MT_CREATE_GRAPH | MT_RETAIN_GRAPH)) != 0;
        status = mt__engine_run(job);
    }
    job->roots = NULL;
    drop_roots(roots, job->n_roots);
    if (roots != stack_roots) {
        mtb_free(roots);
    }
    return status;
}

mt_status mt_backward_many(mt_tensor *const *tensors, mt_tensor *const *gradients, size_t count,
                           uint32_t flags)
{
    mt__engine_job job = {.captures = NULL};
    return run_from(tensors, gradients, count, &job, flags);
}

mt_status mt_backward(mt_tensor *tensor, mt_tensor *gradient, uint32_t flags)
{
    return mt_backward_many(&tensor, &gradient, 1, flags);
}

/* ---- grad ------------------------------------------------------------------------------------ */

static int make_captures(mt_tensor *const *inputs, size_t n_inputs, mt__capture *captures)
{
    for (size_t i = 0; i < n_inputs; i++) {
        if (inputs[i] == NULL) {
            return mtb_fail(MT_ETYPE, "grad(): input %zu is missing", i);
        }
        if (!mt__tensor_needs(inputs[i])) {
            return mtb_fail(MT_ERUNTIME, "One of the differentiated Tensors does not require grad");
        }
        MT_TRY(mt__edge_of(inputs[i], &captures[i].edge));
    }
    return MT_OK;
}

static int give_captures(mt__capture *captures, size_t n_inputs, uint32_t flags, mt_tensor **grads)
{
    for (size_t i = 0; i < n_inputs; i++) {
        if (captures[i].grad == NULL && (flags & MT_ALLOW_UNUSED) == 0) {
            return mtb_fail(
                MT_ERUNTIME,
                "The differentiated Tensor at index %zu appears to not have been used in "
                "the graph. Set allow_unused=True if this is the desired behavior.",
                i);
        }
    }
    for (size_t i = 0; i < n_inputs; i++) {
        grads[i] = captures[i].grad;
        captures[i].grad = NULL;
    }
    return MT_OK;
}

mt_status mt_grad(mt_tensor *const *outputs, mt_tensor *const *gradients, size_t n_outputs,
                  mt_tensor *const *inputs, size_t n_inputs, uint32_t flags, mt_tensor **grads)
{
    for (size_t i = 0; i < n_inputs; i++) {
        grads[i] = NULL;
    }
    if (n_inputs == 0) {
        return mtb_fail(MT_EVALUE, "grad requires non-empty inputs.");
    }
    mt__capture *captures = mtb_calloc(n_inputs, sizeof(mt__capture));
    if (captures == NULL) {
        return mtb_fail(MT_ENOMEM, "grad(): no memory for %zu inputs", n_inputs);
    }
    mt__engine_job job = {.captures = captures, .n_captures = n_inputs};
    int status = make_captures(inputs, n_inputs, captures);
    if (status == MT_OK) {
        status = run_from(outputs, gradients, n_outputs, &job, flags);
    }
    if (status == MT_OK) {
        status = give_captures(captures, n_inputs, flags, grads);
    }
    for (size_t i = 0; i < n_inputs; i++) {
        mt_tensor_release(captures[i].grad);
        mt_node_release(captures[i].edge.node);
    }
    mtb_free(captures);
    return status;
}
