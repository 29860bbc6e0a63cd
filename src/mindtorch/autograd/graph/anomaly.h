/* SPDX-License-Identifier: Apache-2.0
 *
 * Anomaly detection: which forward call a failing derivative belongs to (mt_set_anomaly).
 */
#ifndef MINDTORCH_AUTOGRAD_GRAPH_ANOMALY_H
#define MINDTORCH_AUTOGRAD_GRAPH_ANOMALY_H

#include "base/compiler.h"

#include <mindtorch/autograd.h>

#include <stdatomic.h>

extern _Atomic uint32_t mt__anomaly; /* 0: off */

MT_INLINE bool mt__anomaly_on(void)
{
    return atomic_load_explicit(&mt__anomaly, memory_order_relaxed) != 0;
}

/* A node was made. */
void mt__anomaly_made(mt_node *node);

/* A node has run with this status: returns it, or the failure that its gradients are. */
int mt__anomaly_check(mt_node *node, mt_tensor *const *grads_in, int status);

#endif /* MINDTORCH_AUTOGRAD_GRAPH_ANOMALY_H */
