/* SPDX-License-Identifier: Apache-2.0
 *
 * Accumulating gradients in leaves. The first one becomes the leaf's gradient if nothing else
 * refers to it, else it is copied; later ones are added to it in place, so that every holder of
 * `.grad` sees the sum. While a graph is created nothing is written: the sum is a new tensor.
 */
#include "mindtorch/autograd/graph/meta.h"
#include "mindtorch/core/tensor/memory_format.h"
#include "mindtorch/core/thread/thread_state.h"
#include "mindtorch/dispatch/autograd_hook.h"
#include "mindtorch/dispatch/call_words.h"

#include <pthread.h>

enum {
    LOCKS = 64 /* shared by all leaves: threads rarely compete for one leaf or one lock */
};

/* Plain mutexes, because ops run under them: ops take the allocator's ranked locks, and the
 * profiler drops events of threads that hold a ranked lock. */
static pthread_mutex_t locks[LOCKS] = {[0 ... LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER};

static pthread_mutex_t *lock_of(const mt_tensor *tensor)
{
    return &locks[tensor->id % LOCKS];
}

void mt__grad_lock(const mt_tensor *tensor)
{
    pthread_mutex_lock(lock_of(tensor));
}

void mt__grad_unlock(const mt_tensor *tensor)
{
    pthread_mutex_unlock(lock_of(tensor));
}

/* Only tries the lock, because ops run under these locks. */
bool mt__autograd_gradient(const mt_tensor *tensor, mt__trace_ref *ref)
{
    bool there = false;
    if (tensor->autograd != NULL && pthread_mutex_trylock(lock_of(tensor)) == 0) {
        const mt_tensor *grad = tensor->autograd->grad;
        there = grad != NULL;
        if (there) {
            *ref = mt__tensor_ref(grad, MT_TRACE_ROLE_GRADIENT | MT_TRACE_NOT_READ);
            ref->offset = (int64_t)grad->storage->bytes;
        }
        mt__grad_unlock(tensor);
    }
    return there;
}

void mt__tell_gradient(mt__trace_token token, const mt_tensor *leaf)
{
    mt__trace_ref ref;
    bool there = false;
    mt__grad_lock(leaf);
    if (leaf->autograd->grad != NULL) {
        ref = mt__tensor_ref(leaf->autograd->grad, MT_TRACE_ROLE_GRADIENT);
        there = true;
    }
    mt__grad_unlock(leaf);
    if (there) {
        mt__trace_op_outputs(token, &ref, 1);
    }
}

mt_tensor *mt__grad_swap(mt_tensor *tensor, mt_tensor *take_grad)
{
    mt__grad_lock(tensor);
    mt_tensor *old = tensor->autograd->grad;
    tensor->autograd->grad = take_grad;
    mt__grad_unlock(tensor);
    return old;
}

bool mt__is_exclusive(const mt_tensor *tensor)
{
    if (atomic_load_explicit(&tensor->refs, memory_order_acquire) != 1 ||
        tensor->autograd != NULL || mt__storage_is_borrowed(tensor->storage)) {
        return false;
    }
    /* A view holds its base: if only this view does, the storage has exactly those two
     * references. */
    uint32_t own = 1;
    if (tensor->base != NULL) {
        if (atomic_load_explicit(&tensor->base->refs, memory_order_acquire) != 1 ||
            tensor->base->autograd != NULL) {
            return false;
        }
        own = 2;
    }
    return atomic_load_explicit(&tensor->storage->refs, memory_order_acquire) == own;
}

/* The tensor that becomes `.grad` of `leaf` if there was none: laid out as the leaf is where that
 * is contiguous or channels last. */
static int first_grad(const mt_tensor *leaf, mt_tensor *grad, mt_tensor **out)
{
    int64_t format = MT_FORMAT_CONTIGUOUS;
    if (MT_UNLIKELY(!leaf->contiguous) && mt__is_channels_last(leaf)) {
        format = leaf->n_dims == 4 ? MT_FORMAT_CHANNELS_LAST : MT_FORMAT_CHANNELS_LAST_3D;
    }
    if (mt__thread.grad_disabled && mt_tensor_has_format(grad, (mt_memory_format)format) &&
        mt__is_exclusive(grad)) {
        return mt_detach(grad, out); /* an op, because torch's profiles show one */
    }
    return mt_clone_with(grad, &format, out);
}

int mt__accumulate(mt_tensor *leaf, mt_tensor *take_grad)
{
    mt_tensor *replaced = NULL;
    mt__grad_lock(leaf);
    mt__autograd *meta = leaf->autograd;
    mt_tensor *sum = NULL;
    int status = MT_OK;
    if (meta->grad == NULL) {
        status = first_grad(leaf, take_grad, &sum);
    } else if (mt__thread.grad_disabled) {
        status = mt_add_(meta->grad, take_grad);
    } else {
        status = mt_add(meta->grad, take_grad, &sum);
    }
    if (sum != NULL) {
        replaced = meta->grad;
        meta->grad = sum;
    }
    mt__grad_unlock(leaf);
    mt_tensor_release(replaced); /* outside of the lock: it may free a whole graph */
    mt_tensor_release(take_grad);
    return status;
}
