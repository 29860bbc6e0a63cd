/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes: their memory, their release, and their public accessors. See node.h.
 */
#include "mindtorch/autograd/graph/node.h"

#include "base/alloc.h"
#include "mindtorch/autograd/graph/function_call.h"
#include "mindtorch/autograd/graph/hooks.h"
#include "mindtorch/autograd/graph/node_names.h"
#include "mindtorch/autograd/graph/saved_tensors.h"
#include "mindtorch/core/device/streams.h"
#include "mindtorch/core/thread/thread_cache.h"
#include "mindtorch/trace/op_trace.h"

#include <sched.h>
#include <string.h>

enum {
    NODE_BYTES = 448 /* a pooled block: binary ops and matrix products of up to 4 dimensions fit */
};

/* Nodes whose last reference was dropped while another node was being freed on this thread
 * (ND3). */
static _Thread_local struct {
    mt_node *head;
    bool running;
} doomed __attribute__((tls_model("initial-exec")));

int mt__node_new(const mt__node_plan *plan, mt_node **out, char **extra)
{
    size_t edge_bytes = plan->n_inputs * sizeof(mt__edge);
    size_t bytes = sizeof(mt_node) + edge_bytes + plan->extra_bytes + plan->meta_bytes;
    bool pooled = bytes <= NODE_BYTES;
    mt_node *node = pooled ? mt__pool_take_fast(MT_POOL_NODE, NODE_BYTES) : mtb_calloc(1, bytes);
    *out = NULL;
    if (MT_UNLIKELY(node == NULL)) {
        return mtb_fail(MT_ENOMEM, "autograd: no memory for a node of %zu bytes", bytes);
    }
    memset(node, 0, sizeof(*node));
    atomic_store_explicit(&node->refs, 1, memory_order_relaxed);
    node->kind = plan->kind;
    node->pooled = pooled;
    node->n_inputs = plan->n_inputs;
    node->n_outputs = plan->n_outputs;
    node->sequence = mt__thread.sequence++;
    node->edges = (mt__edge *)(node + 1);
    for (uint32_t i = 0; i < plan->n_inputs; i++) {
        node->edges[i] = (mt__edge){NULL, 0};
    }
    *extra = (char *)node->edges + edge_bytes;
    node->metas = *extra + plan->extra_bytes;
    if (MT_UNLIKELY(mt__trace_on())) {
        node->forward_thread = mt__trace_thread();
    }
    *out = node;
    return MT_OK;
}

mt_device mt__node_device(const mt_node *node)
{
    const mt__packed_meta *meta = (const mt__packed_meta *)(const void *)node->metas;
    for (uint32_t i = 0; i < node->n_inputs + node->n_outputs; i++) {
        if (i >= node->n_inputs && mt__is_accelerator(meta->device)) {
            return meta->device;
        }
        meta = mt__packed_next(meta);
    }
    return MT_CPU;
}

void mt__node_note_stream(mt_node *node)
{
    mt_device device = mt__node_device(node);
    node->stream = device == MT_CPU ? 0 : (uint8_t)mt__stream_number(device);
}

/* The lock is held for a few loads and stores; if it is taken, its owner was preempted: yield. */
void mt__node_lock(mt_node *node)
{
    while (atomic_exchange_explicit(&node->lock, true, memory_order_acquire)) {
        sched_yield();
    }
}

void mt__node_unlock(mt_node *node)
{
    atomic_store_explicit(&node->lock, false, memory_order_release); /* partner: mt__node_lock */
}

/* ---- release --------------------------------------------------------------------------------- */

static void drop_value(mt_value *value)
{
    if (value->kind == MT_KIND_TENSOR) {
        mt_tensor_release(value->of.tensor);
        value->of.tensor = NULL;
    } else if (MT_UNLIKELY(value->kind == MT__KIND_PACKED)) {
        mt__packed_release(mt__packed_in(value));
        value->of.integer = 0;
    } else if (value->kind == MT_KIND_TENSORS) {
        mt_tensor **list = (mt_tensor **)(uintptr_t)value->of.tensors; /* in the node's own block */
        for (uint32_t i = 0; i < value->count; i++) {
            mt_tensor_release(list[i]);
            list[i] = NULL;
        }
    }
}

static void drop_values(mt_node *node)
{
    if (node->n_saved == 0) {
        return;
    }
    for (uint32_t i = 0; i < node->row->n_params; i++) {
        mt_value *arg = &node->of.op.args[i];
        if (arg->kind == MT_KIND_TENSOR &&
            mt__edge_holds(&node->edges[node->of.op.first[i]], arg->of.tensor)) {
            arg->of.tensor = NULL; /* ND2: the edge's reference is enough for both */
        }
        drop_value(arg);
    }
    for (uint32_t i = 0; i < node->row->n_results; i++) {
        drop_value(&node->of.op.results[i]);
    }
}

void mt__node_release_saved(mt_node *node)
{
    if (node->kind == MT_NODE_FUNCTION) {
        mt__function_release_saved(node->of.call);
        return;
    }
    if (node->kind == MT_NODE_SLICES) {
        mt__node_lock(node);
        node->released = true;
        mt__node_unlock(node);
        mt__node_release_saved(node->of.slices->inner);
        return;
    }
    if (node->kind != MT_NODE_OP || node->n_saved == 0) {
        return;
    }
    mt__node_lock(node);
    bool first = !node->released;
    node->released = true; /* from here on they are not read any more */
    mt__node_unlock(node);
    if (first) {
        drop_values(node); /* outside of the lock: the last reference may run a callback */
    }
}

static void free_node(mt_node *node)
{
    if (node->kind == MT_NODE_OP) {
        drop_values(node);
    } else if (node->kind == MT_NODE_SLICES) {
        mt_node_release(node->of.slices->inner);
    } else if (node->kind == MT_NODE_FUNCTION) {
        mt__function_call_free(node->of.call);
    }
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        mt_node_release(node->edges[i].node);
    }
    while (node->taps != NULL) {
        mt__tap *tap = node->taps;
        node->taps = tap->next;
        mt__tap_release(tap);
    }
    if (node->pooled) {
        mt__pool_give_fast(MT_POOL_NODE, node);
    } else {
        mtb_free(node);
    }
}

uint32_t mt_node_use_count(const mt_node *node)
{
    const _Atomic uint32_t *refs =
        node->kind == MT_NODE_LEAF ? &node->of.leaf->refs : &node->refs; /* ND5 */
    return atomic_load_explicit(refs, memory_order_acquire);
}

mt_node *mt_node_retain(mt_node *node)
{
    if (node == NULL) {
        return NULL;
    }
    if (node->kind == MT_NODE_LEAF) {
        mt_tensor_retain(node->of.leaf);
    } else {
        atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    }
    return node;
}

void mt_node_release(mt_node *node)
{
    if (node == NULL) {
        return;
    }
    if (node->kind == MT_NODE_LEAF) {
        mt_tensor_release(node->of.leaf);
        return;
    }
    /* The holder of the only reference needs no atomic decrement. */
    if (atomic_load_explicit(&node->refs, memory_order_acquire) != 1 &&
        atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    node->next = doomed.head;
    doomed.head = node;
    if (doomed.running) {
        return; /* the caller up the stack that is freeing nodes continues with it */
    }
    doomed.running = true;
    while (doomed.head != NULL) {
        mt_node *last = doomed.head;
        doomed.head = last->next;
        free_node(last);
    }
    doomed.running = false;
}

/* ---- what people may ask --------------------------------------------------------------------- */

const char *mt_node_name(const mt_node *node)
{
    switch ((mt__node_kind)node->kind) {
    case MT_NODE_OP: return mt__variant_name(mt__node_variant(node), node->row);
    case MT_NODE_FUNCTION: return mt__function_call_name(node->of.call);
    case MT_NODE_SLICES: return "torch::autograd::CopySlices";
    case MT_NODE_LEAF: return "torch::autograd::AccumulateGrad";
    }
    return "";
}

const char *mt__node_short_name(const mt_node *node, char text[MT_MAX_DERIVATIVE_NAME])
{
    const char *name = mt_node_name(node);
    const char *colon = strrchr(name, ':');
    name = colon == NULL ? name : colon + 1;
    const char *end = strstr(name, "Backward");
    size_t length = end == NULL || end == name ? strlen(name) : (size_t)(end - name);
    length = length < MT_MAX_DERIVATIVE_NAME ? length : MT_MAX_DERIVATIVE_NAME - 1;
    memcpy(text, name, length);
    text[length] = '\0';
    return text;
}

uint64_t mt_node_sequence(const mt_node *node)
{
    return node->sequence;
}

uint32_t mt_node_n_next(const mt_node *node)
{
    return node->n_inputs;
}

mt_node *mt_node_next(const mt_node *node, uint32_t index)
{
    return index < node->n_inputs ? node->edges[index].node : NULL;
}

uint32_t mt_node_next_output(const mt_node *node, uint32_t index)
{
    return index < node->n_inputs ? node->edges[index].output : 0;
}

mt_tensor *mt_node_variable(const mt_node *node)
{
    return node->kind == MT_NODE_LEAF ? node->of.leaf : NULL;
}
