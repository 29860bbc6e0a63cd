/* SPDX-License-Identifier: Apache-2.0
 *
 * Anomaly detection, see anomaly.h. It is one switch of the process, as torch's.
 */
#include "mindtorch/autograd/graph/anomaly.h"

#include "mindtorch/autograd/graph/node.h"
#include "mindtorch/core/thread/thread_state.h"

enum {
    ON = 1,
    CHECKS_NAN = 2
};

_Atomic uint32_t mt__anomaly;
static _Atomic bool checks_nan = true; /* what the next one asks, and what was asked last */
static _Atomic(mt_anomaly_fn *) on_made;
static _Atomic(mt_anomaly_fn *) on_failed;

void mt_set_anomaly(bool on, bool check_nan, mt_anomaly_fn *made, mt_anomaly_fn *failed)
{
    atomic_store_explicit(&on_made, made, memory_order_release);
    atomic_store_explicit(&on_failed, failed, memory_order_release);
    atomic_store_explicit(&checks_nan, check_nan, memory_order_relaxed);
    /* Partner: mt__anomaly_on(); a thread that sees it a moment later misses a node. */
    atomic_store_explicit(&mt__anomaly, on ? ON | (check_nan ? CHECKS_NAN : 0) : 0,
                          memory_order_release);
}

bool mt_anomaly_enabled(void)
{
    return mt__anomaly_on();
}

bool mt_anomaly_checks_nan(void)
{
    return atomic_load_explicit(&checks_nan, memory_order_relaxed);
}

void mt__anomaly_made(mt_node *node)
{
    mt_anomaly_fn *made = atomic_load_explicit(&on_made, memory_order_acquire);
    if (made != NULL) {
        made(node);
    }
}

/* Waits for the device. */
static int has_nan(mt_tensor *tensor, bool *answer)
{
    mt_tensor *nan = NULL;
    mt_tensor *any = NULL;
    mt_scalar value = {.kind = MT_KIND_NONE};
    *answer = false;
    if (tensor->numel == 0 || tensor->device == MT_META) {
        return MT_OK;
    }
    mt__thread.below_autograd++;
    int status = mt_isnan(tensor, &nan);
    if (status == MT_OK) {
        status = mt_any(nan, NULL, 0, false, &any);
    }
    if (status == MT_OK) {
        status = mt_item(any, &value);
    }
    mt__thread.below_autograd--;
    mt_tensor_release(nan);
    mt_tensor_release(any);
    *answer = status == MT_OK && value.of.integer != 0;
    return status;
}

static int find_nan(const mt_node *node, mt_tensor *const *grads_in)
{
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        bool found = false;
        if (grads_in[i] != NULL && mt__tensor_category(grads_in[i]) == MT_CATEGORY_REAL) {
            MT_TRY(has_nan(grads_in[i], &found));
        }
        if (found) {
            return mtb_fail(MT_ERUNTIME, "Function '%s' returned nan values in its %uth output.",
                            mt_node_name(node), i);
        }
    }
    return MT_OK;
}

int mt__anomaly_check(mt_node *node, mt_tensor *const *grads_in, int status)
{
    uint32_t flags = atomic_load_explicit(&mt__anomaly, memory_order_acquire);
    if (status == MT_OK && (flags & CHECKS_NAN) != 0) {
        status = find_nan(node, grads_in);
    }
    mt_anomaly_fn *failed = atomic_load_explicit(&on_failed, memory_order_acquire);
    if (status != MT_OK && failed != NULL) {
        mtb_failure failure = *mtb_last_failure(); /* the function may fail at something else */
        failed(node);
        *mtb_last_failure() = failure;
    }
    return status;
}
