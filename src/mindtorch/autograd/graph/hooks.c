/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks on gradients and on leaves. See hooks.h.
 */
#include "mindtorch/autograd/graph/hooks.h"

#include "base/alloc.h"
#include "mindtorch/core/thread/thread_state.h"
#include "mindtorch/ops/type_names.h"

#include <pthread.h>

struct mt__hook {
    _Atomic uint32_t refs;
    mt_hook_handle handle; /* ascending in a list: where to continue after a callback */
    mt_hook_fn *on_grad;   /* one of the four; none: a note */
    mt_leaf_hook_fn *on_leaf;
    mt_node_prehook_fn *before; /* of nodes */
    mt_node_hook_fn *after;
    void *context;
    void (*free_context)(void *);
    mt__hook *next;
};

/* Plain, not an mtb_lock: it is held for a few loads, never across a call, and has no rank among
 * the profiler's. Guards taps' lists of hooks, nodes' lists of taps, and keepers (GH2, GH4). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t last_handle;

static void hook_release(mt__hook *hook)
{
    if (hook != NULL && atomic_fetch_sub_explicit(&hook->refs, 1, memory_order_acq_rel) == 1) {
        if (hook->free_context != NULL) {
            hook->free_context(hook->context);
        }
        mtb_free(hook);
    }
}

void mt__hooks_free(mt__hook *list)
{
    while (list != NULL) {
        mt__hook *next = list->next;
        hook_release(list);
        list = next;
    }
}

int mt__tap_new(mt_node *node, uint32_t output, mt__tap **out)
{
    mt__tap *tap = mtb_calloc(1, sizeof(*tap));
    *out = tap;
    if (tap == NULL) {
        return mtb_fail(MT_ENOMEM, "autograd: no memory for a hook");
    }
    tap->output = output;
    atomic_store_explicit(&tap->refs, node == NULL ? 1 : 2, memory_order_relaxed);
    if (node != NULL) {
        pthread_mutex_lock(&lock);
        tap->next = node->taps;
        node->taps = tap;
        pthread_mutex_unlock(&lock);
    }
    return MT_OK;
}

void mt__tap_release(mt__tap *tap)
{
    if (tap != NULL && atomic_fetch_sub_explicit(&tap->refs, 1, memory_order_acq_rel) == 1) {
        mt__hooks_free(tap->hooks);
        mtb_free(tap);
    }
}

void mt__tap_set_keeper(mt__tap *tap, mt_tensor *keeper)
{
    pthread_mutex_lock(&lock);
    tap->keeper = keeper;
    pthread_mutex_unlock(&lock);
}

/* ---- running --------------------------------------------------------------------------------- */

/* The first hook after `handle`, retained. */
static mt__hook *hook_after(mt__hook *const *list, mt_hook_handle handle)
{
    pthread_mutex_lock(&lock);
    mt__hook *hook = *list;
    while (hook != NULL && hook->handle <= handle) {
        hook = hook->next;
    }
    if (hook != NULL) {
        atomic_fetch_add_explicit(&hook->refs, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
    return hook;
}

/* A hook that returns an unknown status ends the backward too. */
static int hook_status(int status)
{
    return status <= 0 ? status : mtb_fail(MT_ECALLBACK, "backward(): a hook returned %d", status);
}

static int check_replacement(const mt_tensor *was, const mt_tensor *is)
{
    mt__shape a = mt__tensor_shape(was);
    mt__shape b = mt__tensor_shape(is);
    if (!mt__shape_equal(&a, &b)) {
        return mtb_fail(MT_ERUNTIME, "a hook has changed the size of value");
    }
    if (was->dtype != is->dtype) {
        return mtb_fail(MT_ERUNTIME,
                        "a hook has changed the type of value (was torch.%sTensor got "
                        "torch.%sTensor)",
                        mt__type_title((mt_dtype)was->dtype), mt__type_title((mt_dtype)is->dtype));
    }
    if (was->device != is->device) {
        return mtb_fail(MT_ERUNTIME, "a hook has changed the device of value");
    }
    return MT_OK;
}

static int run_hook(mt__hook *hook, mt_tensor **grad)
{
    mt_tensor *replacement = NULL;
    int status = hook_status(hook->on_grad(hook->context, *grad, &replacement));
    if (status == MT_OK && replacement != NULL) {
        status = check_replacement(*grad, replacement);
    }
    if (status == MT_OK && replacement != NULL) {
        mt_tensor *old = *grad;
        *grad = replacement;
        replacement = old;
    }
    mt_tensor_release(replacement);
    return status;
}

/* The tensor whose gradient is retained, retained itself; NULL if it is gone or going. */
static mt_tensor *keeper_of(mt__tap *tap)
{
    pthread_mutex_lock(&lock);
    mt_tensor *keeper = tap->keeper;
    if (keeper != NULL) {
        /* If its reference count is 0, the thread that frees it is waiting for our lock in
         * mt__autograd_free(). */
        uint32_t refs = atomic_load_explicit(&keeper->refs, memory_order_relaxed);
        while (refs != 0 &&
               !atomic_compare_exchange_weak_explicit(&keeper->refs, &refs, refs + 1,
                                                      memory_order_relaxed, memory_order_relaxed)) {
        }
        keeper = refs == 0 ? NULL : keeper;
    }
    pthread_mutex_unlock(&lock);
    return keeper;
}

static int keep_grad(mt__tap *tap, mt_tensor *grad)
{
    mt_tensor *keeper = keeper_of(tap);
    if (keeper == NULL) {
        return MT_OK;
    }
    mt_tensor *kept = NULL;
    mt__grad_lock(keeper);
    mt_tensor *old = keeper->autograd->grad;
    int status = old == NULL ? mt_clone(grad, &kept) : mt_add(old, grad, &kept);
    if (status == MT_OK) {
        keeper->autograd->grad = kept;
    }
    mt__grad_unlock(keeper);
    mt_tensor_release(status == MT_OK ? old : NULL);
    mt_tensor_release(keeper);
    return status;
}

int mt__hooks_run(mt__tap *taps, uint32_t output, mt_tensor **grad)
{
    for (mt__tap *tap = taps; tap != NULL; tap = tap->next) {
        mt_hook_handle handle = 0;
        mt__hook *hook = NULL;
        while (tap->output == output && (hook = hook_after(&tap->hooks, handle)) != NULL) {
            handle = hook->handle;
            int status = run_hook(hook, grad);
            hook_release(hook);
            MT_TRY(status);
        }
        if (tap->output == output) {
            MT_TRY(keep_grad(tap, *grad));
        }
    }
    return MT_OK;
}

int mt__leaf_hooks_run(mt_tensor *leaf)
{
    mt_hook_handle handle = 0;
    mt__hook *hook = NULL;
    while ((hook = hook_after(&leaf->autograd->leaf_hooks, handle)) != NULL) {
        handle = hook->handle;
        int status = hook_status(hook->on_leaf(hook->context, leaf));
        hook_release(hook);
        MT_TRY(status);
    }
    return MT_OK;
}

/* ---- adding and removing --------------------------------------------------------------------- */

static mt__hook *hook_new(void *context, void (*free_context)(void *))
{
    mt__hook *hook = mtb_calloc(1, sizeof(*hook));
    if (hook == NULL) {
        mtb_fail(MT_ENOMEM, "autograd: no memory for a hook");
        return NULL;
    }
    atomic_store_explicit(&hook->refs, 1, memory_order_relaxed);
    hook->handle = atomic_fetch_add_explicit(&last_handle, 1, memory_order_relaxed) + 1;
    hook->context = context;
    hook->free_context = free_context;
    return hook;
}

static void append(mt__hook **list, mt__hook *hook)
{
    pthread_mutex_lock(&lock);
    while (*list != NULL) {
        list = &(*list)->next;
    }
    *list = hook;
    pthread_mutex_unlock(&lock);
}

/* The tensor's tap on its current node, created if necessary. */
static int need_tap(mt_tensor *tensor, mt__tap **out)
{
    *out = NULL;
    if (!mt__tensor_needs(tensor)) {
        return mtb_fail(MT_ERUNTIME,
                        "cannot register a hook on a tensor that doesn't require gradient");
    }
    mt__edge edge;
    MT_TRY(mt__edge_of(tensor, &edge)); /* a stale view gets its node first */
    mt_node_release(edge.node);
    mt__autograd *meta = mt__meta_need(tensor);
    if (meta == NULL) {
        return MT_ENOMEM;
    }
    if (meta->tap == NULL) {
        MT_TRY(mt__tap_new(meta->grad_fn, meta->output, &meta->tap));
    }
    *out = meta->tap;
    return MT_OK;
}

mt_status mt_tensor_add_hook(mt_tensor *tensor, mt_hook_fn *hook, void *context,
                             void (*free_context)(void *), mt_hook_handle *handle)
{
    *handle = 0;
    mt__tap *tap = NULL;
    MT_TRY(need_tap(tensor, &tap));
    mt__hook *made = hook_new(context, free_context);
    if (made == NULL) {
        return MT_ENOMEM;
    }
    made->on_grad = hook;
    *handle = made->handle;
    append(&tap->hooks, made);
    return MT_OK;
}

mt_status mt_tensor_add_accumulate_hook(mt_tensor *tensor, mt_leaf_hook_fn *hook, void *context,
                                        void (*free_context)(void *), mt_hook_handle *handle)
{
    *handle = 0;
    if (!mt__tensor_needs(tensor)) {
        return mtb_fail(MT_ERUNTIME,
                        "cannot register a hook on a tensor that doesn't require gradient");
    }
    if (!tensor->requires_grad || tensor->autograd->grad_fn != NULL) {
        return mtb_fail(MT_ERUNTIME,
                        "post accumulate grad hooks cannot be registered on non-leaf tensors");
    }
    mt__hook *made = hook_new(context, free_context);
    if (made == NULL) {
        return MT_ENOMEM;
    }
    made->on_leaf = hook;
    *handle = made->handle;
    append(&tensor->autograd->leaf_hooks, made);
    return MT_OK;
}

static mt__hook *unlink_hook(mt__hook **list, mt_hook_handle handle)
{
    while (*list != NULL && (*list)->handle != handle) {
        list = &(*list)->next;
    }
    mt__hook *hook = *list;
    if (hook != NULL) {
        *list = hook->next;
    }
    return hook;
}

void mt_tensor_remove_hook(mt_tensor *tensor, mt_hook_handle handle)
{
    mt__autograd *meta = tensor->autograd;
    if (meta == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    mt__hook *hook = unlink_hook(&meta->leaf_hooks, handle);
    if (hook == NULL && meta->tap != NULL) {
        hook = unlink_hook(&meta->tap->hooks, handle);
    }
    for (mt__tap *tap = meta->older_taps; hook == NULL && tap != NULL; tap = tap->older) {
        hook = unlink_hook(&tap->hooks, handle);
    }
    pthread_mutex_unlock(&lock);
    hook_release(hook);
}

mt_status mt_tensor_retain_grad(mt_tensor *tensor)
{
    if (!mt__tensor_needs(tensor)) {
        return mtb_fail(MT_ERUNTIME, "can't retain_grad on Tensor that has requires_grad=False");
    }
    if (mt_tensor_is_leaf(tensor)) {
        return MT_OK; /* leaves always keep theirs */
    }
    mt__tap *tap = NULL;
    MT_TRY(need_tap(tensor, &tap));
    tensor->autograd->retains_grad = true;
    mt__tap_set_keeper(tap, tensor);
    return MT_OK;
}

/* ---- hooks of nodes -------------------------------------------------------------------------- */

static mt__tap *find_tap(mt__tap *list, uint32_t output)
{
    while (list != NULL && list->output != output) {
        list = list->next;
    }
    return list;
}

/* The tap of a number, created if necessary. */
static int need_node_tap(mt_node *node, uint32_t output, mt__tap **out)
{
    mt__tap **list = mt__taps_of(node);
    pthread_mutex_lock(&lock);
    *out = find_tap(*list, output);
    pthread_mutex_unlock(&lock);
    if (*out != NULL) {
        return MT_OK;
    }
    mt__tap *fresh = NULL;
    int status = mt__tap_new(NULL, output, &fresh);
    if (fresh == NULL) {
        return status;
    }
    pthread_mutex_lock(&lock);
    *out = find_tap(*list, output); /* of another thread, meanwhile */
    if (*out == NULL) {
        fresh->next = *list;
        *list = fresh;
        *out = fresh;
    }
    pthread_mutex_unlock(&lock);
    if (*out != fresh) {
        mt__tap_release(fresh);
    }
    return MT_OK;
}

static int add_to_node(mt_node *node, uint32_t output, mt__hook *take_hook, mt_hook_handle *handle)
{
    mt__tap *tap = NULL;
    *handle = 0;
    if (take_hook == NULL) {
        return MT_ENOMEM;
    }
    int status = need_node_tap(node, output, &tap);
    if (status != MT_OK) {
        mtb_free(take_hook); /* the context stays the caller's */
        return status;
    }
    *handle = take_hook->handle;
    append(&tap->hooks, take_hook);
    return MT_OK;
}

mt_status mt_node_add_prehook(mt_node *node, mt_node_prehook_fn *hook, void *context,
                              void (*free_context)(void *), mt_hook_handle *handle)
{
    mt__hook *made = hook_new(context, free_context);
    if (made != NULL) {
        made->before = hook;
    }
    return add_to_node(node, MT_TAP_BEFORE, made, handle);
}

mt_status mt_node_add_hook(mt_node *node, mt_node_hook_fn *hook, void *context,
                           void (*free_context)(void *), mt_hook_handle *handle)
{
    mt__hook *made = hook_new(context, free_context);
    if (made != NULL) {
        made->after = hook;
    }
    return add_to_node(node, MT_TAP_AFTER, made, handle);
}

void mt_node_remove_hook(mt_node *node, mt_hook_handle handle)
{
    mt__hook *hook = NULL;
    pthread_mutex_lock(&lock);
    for (mt__tap *tap = *mt__taps_of(node); hook == NULL && tap != NULL; tap = tap->next) {
        hook = unlink_hook(&tap->hooks, handle);
    }
    pthread_mutex_unlock(&lock);
    hook_release(hook);
}

mt_status mt_node_set_note(mt_node *node, void *note, void (*free_note)(void *))
{
    mt_hook_handle handle = 0;
    return add_to_node(node, MT_TAP_NOTE, hook_new(note, free_note), &handle);
}

void *mt_node_note(const mt_node *node)
{
    mt_node *self = (mt_node *)(uintptr_t)node; /* only read */
    pthread_mutex_lock(&lock);
    const mt__tap *tap = find_tap(*mt__taps_of(self), MT_TAP_NOTE);
    void *note = tap == NULL || tap->hooks == NULL ? NULL : tap->hooks->context;
    pthread_mutex_unlock(&lock);
    return note;
}

int mt__node_hooks_before(mt_node *node, mt_tensor **grads)
{
    mt__tap *tap = find_tap(*mt__taps_of(node), MT_TAP_BEFORE);
    mt_hook_handle handle = 0;
    mt__hook *hook = NULL;
    while (tap != NULL && (hook = hook_after(&tap->hooks, handle)) != NULL) {
        handle = hook->handle;
        int status = hook_status(hook->before(hook->context, grads, node->n_outputs));
        hook_release(hook);
        MT_TRY(status);
    }
    return MT_OK;
}

int mt__node_hooks_after(mt_node *node, mt_tensor **grads_in, mt_tensor *const *grads)
{
    mt__tap *tap = find_tap(*mt__taps_of(node), MT_TAP_AFTER);
    mt_hook_handle handle = 0;
    mt__hook *hook = NULL;
    while (tap != NULL && (hook = hook_after(&tap->hooks, handle)) != NULL) {
        handle = hook->handle;
        int status = hook_status(
            hook->after(hook->context, grads_in, node->n_inputs, grads, node->n_outputs));
        hook_release(hook);
        MT_TRY(status);
    }
    return MT_OK;
}

void mt_node_visit_hooks(const mt_node *node, mt_hook_visit_fn *visit, void *argument)
{
    pthread_mutex_lock(&lock);
    for (const mt__tap *tap = node->kind == MT_NODE_LEAF ? NULL : node->taps; tap != NULL;
         tap = tap->next) {
        bool held = atomic_load_explicit(&tap->refs, memory_order_acquire) > 1;
        for (const mt__hook *hook = held ? NULL : tap->hooks; hook != NULL; hook = hook->next) {
            visit(argument, hook->context, hook->free_context);
        }
    }
    pthread_mutex_unlock(&lock);
}

bool mt_tensor_owns_hooks(const mt_tensor *tensor)
{
    const mt__autograd *meta = tensor->autograd;
    if (meta == NULL || (meta->grad_fn == NULL && tensor->base == NULL)) {
        return true; /* holding a leaf's node holds the leaf */
    }
    return tensor->base == NULL && meta->older_taps == NULL &&
           mt_node_use_count(meta->grad_fn) == 1;
}
