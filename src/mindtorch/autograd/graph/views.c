/* SPDX-License-Identifier: Apache-2.0
 *
 * Views and writing in place: what may be written, and how a view's grad_fn is updated after its
 * base was written.
 *
 *   VG1  A view's grad_fn belongs to the version view_version. At any other version it is rebuilt
 *        from the current base, with the geometry of the view.
 *   VG2  Some views cannot be rebuilt, and the error says so: views made in no_grad mode, by an op
 *        with several results, or in a custom function.
 */
#include "mindtorch/autograd/graph/hooks.h"
#include "mindtorch/autograd/graph/meta.h"
#include "mindtorch/ops/op_support.h"

#include <pthread.h>
#include <stdio.h>

/* Serialises threads that read one stale view; held while a node is made. A plain mutex: see
 * accumulate.c.
 */
static pthread_mutex_t refresh_lock = PTHREAD_MUTEX_INITIALIZER;

static MT_COLD int refuse_view(const mt_tensor *view, const char *what)
{
    char name[MT_MAX_DERIVATIVE_NAME];
    char who[MT_MAX_DERIVATIVE_NAME + 64] = "A view was created in no_grad mode";
    const char *mode = " with grad mode enabled";
    const mt__autograd *meta = view->autograd;
    if (meta != NULL && meta->grad_fn != NULL) {
        snprintf(who, sizeof(who), "Output %u of %s is a view", meta->output,
                 mt__node_short_name(meta->grad_fn, name));
        mode = "";
    }
    const char *why =
        " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify "
        "your code by moving both the view and the inplace either both inside the no_grad block (if "
        "you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
        "tracked).";
    if (meta == NULL && (view->view_flags & MT_VIEW_INFERENCE) != 0) {
        snprintf(who, sizeof(who), "A view was created in inference mode");
        mode = " in normal mode";
    }
    if ((view->view_flags & MT_VIEW_FUNCTION) != 0) {
        why = " This view was created inside a custom Function (or because an input was returned "
              "as-is) and the autograd logic to handle view+inplace would override the custom "
              "backward associated with the custom Function, leading to incorrect gradients. This "
              "behavior is forbidden. You can fix this by cloning the output of the custom "
              "Function.";
    } else if ((view->view_flags & MT_VIEW_INFERENCE) != 0) {
        why = " Given that this use case is ambiguous and error-prone, it is forbidden. You can "
              "clarify your code by moving both the view and the inplace either both inside the "
              "inference_mode block (if you don't want the inplace to be tracked) or both outside "
              "(if you want the inplace to be tracked).";
    } else if ((view->view_flags & MT_VIEW_TYPE) != 0) {
        why = " This view has another element type than its base (view_as_real, view_as_complex, "
              "real, imag); writing to such views, or to their bases, where gradients are recorded "
              "is not implemented. You should replace the inplace operation by an out-of-place "
              "one.";
    } else if ((view->view_flags & MT_VIEW_NO_GRAD) == 0) {
        why =
            " This view is the output of a function that returns multiple views. Such functions "
            "do not allow the output views to be modified inplace. You should replace the inplace "
            "operation by an out-of-place one.";
    }
    return mtb_fail(MT_ERUNTIME, "%s and %s%s.%s", who, what, mode, why);
}

int mt__inplace_check(const mt__op_row *row, mt_tensor *self)
{
    (void)row;
    if (self->base != NULL && self->view_flags != 0) {
        return refuse_view(self, "is being modified inplace");
    }
    if (self->requires_grad && self->autograd->grad_fn == NULL) {
        return mtb_fail(MT_ERUNTIME, "a leaf Variable that requires grad is being used in an "
                                     "in-place operation.");
    }
    const mt_tensor *base = self->base;
    if (base != NULL && base->requires_grad && base->autograd->grad_fn == NULL) {
        return mtb_fail(MT_ERUNTIME,
                        "a view of a leaf Variable that requires grad is being used in "
                        "an in-place operation.");
    }
    return MT_OK;
}

int mt__strided_node(mt_tensor *base, const mt_tensor *view, const mt__edge *edge, mt_node **out)
{
    mt_value args[] = {
        {.kind = MT_KIND_TENSOR, .of.tensor = base},
        {.kind = MT_KIND_INTS, .count = view->n_dims, .of.ints = view->sizes},
        {.kind = MT_KIND_INTS, .count = view->n_dims, .of.ints = view->strides},
        {.kind = MT_KIND_INT, .of.integer = view->offset},
    };
    mt_tensor *output = (mt_tensor *)(uintptr_t)view; /* only read */
    MT_TRY(mt__node_for_call(&mt__op_rows[MT__OP_AS_STRIDED], args, &output, 1, NULL, out));
    if (edge != NULL) {
        mt_node_release((*out)->edges[0].node);
        (*out)->edges[0] = (mt__edge){mt_node_retain(edge->node), edge->output};
    }
    return MT_OK;
}

/* Under refresh_lock. */
static int make_anew(mt_tensor *view, uint32_t version)
{
    if (view->view_flags != 0) {
        return refuse_view(view, "its base or another view of its base has been modified inplace");
    }
    mt__autograd *meta = mt__meta_need(view);
    if (meta == NULL) {
        return MT_ENOMEM;
    }
    mt_node *node = NULL;
    MT_TRY(mt__strided_node(view->base, view, NULL, &node));
    mt__tap *tap = NULL;
    if (meta->retains_grad) {
        int status = mt__tap_new(node, 0, &tap);
        if (status != MT_OK) {
            mt_node_release(node);
            return status;
        }
    }
    mt__meta_tie(view, node, 0, tap);
    /* Partner: view_is_current(). */
    __atomic_store_n(&view->view_version, version, __ATOMIC_RELEASE);
    return MT_OK;
}

static bool view_is_current(const mt_tensor *view, uint32_t *version)
{
    *version = atomic_load_explicit(&view->storage->version, memory_order_relaxed);
    return __atomic_load_n(&view->view_version, __ATOMIC_ACQUIRE) == *version;
}

int mt__view_refresh(mt_tensor *view)
{
    uint32_t version = 0;
    if (MT_LIKELY(view_is_current(view, &version)) || !view->base->requires_grad) {
        return MT_OK;
    }
    mt_node *old = NULL;
    int status = MT_OK;
    pthread_mutex_lock(&refresh_lock);
    if (!view_is_current(view, &version)) {
        /* Retained, so that it is not freed under the lock. */
        old = view->autograd == NULL ? NULL : mt_node_retain(view->autograd->grad_fn);
        status = make_anew(view, version);
    }
    pthread_mutex_unlock(&refresh_lock);
    mt_node_release(old);
    return status;
}
