/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine: from the roots to the leaves, each node when all that depend on it have run.
 *
 *     roots ─► slots (one for each node that can be reached, with the number of edges that lead to
 *              it) ─► those with none are ready ─► the latest first ─► gradients into the slots of
 *              the next nodes
 *
 *   EN1  All state of a run is in its task: concurrent runs over one graph, and nested runs, share
 *        nothing but the locks of nodes and leaves.
 *   EN2  Nothing recurses over the graph. Small graphs need no heap.
 *   EN3  A run that fails has released all it held. What was accumulated until then stays; saved
 *        tensors of nodes that have run are released unless the graph is retained, all others are
 *        unchanged.
 *   EN4  Nodes run in the order of their numbers, latest first, and leaves before all others: so
 *        memory is freed early, and every run has the same order.
 */
#include "mindtorch/autograd/engine/engine.h"

#include "base/alloc.h"
#include "mindtorch/autograd/engine/engine_streams.h"
#include "mindtorch/autograd/engine/evaluate.h"
#include "mindtorch/autograd/graph/hooks.h"
#include "mindtorch/core/thread/thread_state.h"

#include <string.h>

enum {
    STACK_SLOTS = 48,
    STACK_INDEX = 128, /* a power of two, more than twice the slots */
    STACK_INPUTS = 8,
    NO_SLOT = UINT32_MAX
};

enum {
    SLOT_NEEDED = 1,  /* it leads to a wanted input; always set when leaves are wanted */
    SLOT_CAPTURED = 2 /* it is a wanted input itself */
};

typedef struct slot {
    mt_node *node; /* alive: its parents hold it, or the roots */
    union {
        mt_tensor *grad;   /* of a node with one output */
        mt_tensor **grads; /* else; NULL until one comes */
    } of;
    uint32_t waits; /* edges whose gradients have not arrived yet */
    uint32_t flags;
} slot;

typedef struct task {
    const mt__engine_job *job;
    slot *slots;
    uint32_t *ready; /* a heap of slots, as many places as slots */
    uint32_t *index; /* from node to slot + 1, open addressing */
    size_t n_slots;
    size_t capacity;
    size_t index_size;
    size_t n_ready;
    bool partial; /* mt_grad() */
    uint64_t number;
    mt__engine_streams streams;
    slot stack_slots[STACK_SLOTS];
    uint32_t stack_ready[STACK_SLOTS];
    uint32_t stack_index[STACK_INDEX];
} task;

/* ---- slots ----------------------------------------------------------------------------------- */

static size_t index_of(const task *t, const mt_node *node)
{
    uint64_t hash = ((uint64_t)(uintptr_t)node >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> 32) & (t->index_size - 1);
}

static uint32_t find_slot(const task *t, const mt_node *node)
{
    size_t i = index_of(t, node);
    while (t->index[i] != 0 && t->slots[t->index[i] - 1].node != node) {
        i = (i + 1) & (t->index_size - 1);
    }
    return t->index[i] - 1; /* NO_SLOT if there is none */
}

static void index_slot(task *t, uint32_t number)
{
    size_t i = index_of(t, t->slots[number].node);
    while (t->index[i] != 0) {
        i = (i + 1) & (t->index_size - 1);
    }
    t->index[i] = number + 1;
}

static int grow(task *t)
{
    size_t capacity = t->capacity * 4;
    bool heap = t->slots != t->stack_slots;
    slot *slots = mtb_resize(heap ? t->slots : NULL, capacity, sizeof(slot));
    if (slots != NULL) {
        if (!heap) {
            memcpy(slots, t->slots, t->n_slots * sizeof(slot));
        }
        t->slots = slots;
    }
    uint32_t *ready = mtb_calloc(capacity, sizeof(uint32_t));
    uint32_t *index = mtb_calloc(capacity * 2, sizeof(uint32_t));
    if (slots == NULL || ready == NULL || index == NULL || capacity >= UINT32_MAX / 2) {
        mtb_free(ready);
        mtb_free(index);
        return mtb_fail(MT_ENOMEM, "backward(): no memory for a graph of more than %zu nodes",
                        t->n_slots);
    }
    memcpy(ready, t->ready, t->n_ready * sizeof(uint32_t));
    if (heap) {
        mtb_free(t->ready);
        mtb_free(t->index);
    }
    t->ready = ready;
    t->index = index;
    t->capacity = capacity;
    t->index_size = capacity * 2;
    for (uint32_t i = 0; i < t->n_slots; i++) {
        index_slot(t, i);
    }
    return MT_OK;
}

static int need_slot(task *t, mt_node *node, uint32_t *number)
{
    *number = find_slot(t, node);
    if (*number != NO_SLOT) {
        return MT_OK;
    }
    if (MT_UNLIKELY(t->n_slots == t->capacity)) {
        MT_TRY(grow(t));
    }
    *number = (uint32_t)t->n_slots++;
    t->slots[*number] = (slot){.node = node, .flags = t->partial ? 0 : SLOT_NEEDED};
    index_slot(t, *number);
    return MT_OK;
}

static void task_init(task *t, const mt__engine_job *job)
{
    t->job = job;
    t->slots = t->stack_slots;
    t->ready = t->stack_ready;
    t->index = t->stack_index;
    t->n_slots = 0;
    t->capacity = STACK_SLOTS;
    t->index_size = STACK_INDEX;
    t->n_ready = 0;
    t->partial = job->captures != NULL;
    mt__engine_streams_begin(&t->streams);
    memset(t->stack_index, 0, sizeof(t->stack_index));
}

static void drop_grads(slot *s)
{
    if (s->node->n_outputs == 1) {
        mt_tensor_release(s->of.grad);
        s->of.grad = NULL;
        return;
    }
    for (uint32_t i = 0; s->of.grads != NULL && i < s->node->n_outputs; i++) {
        mt_tensor_release(s->of.grads[i]);
    }
    mtb_free(s->of.grads);
    s->of.grads = NULL;
}

static void task_fini(task *t)
{
    for (size_t i = 0; i < t->n_slots; i++) {
        drop_grads(&t->slots[i]);
    }
    if (t->slots != t->stack_slots) {
        mtb_free(t->slots);
    }
    if (t->ready != t->stack_ready) {
        mtb_free(t->ready);
        mtb_free(t->index);
    }
}

/* ---- the heap of those that are ready -------------------------------------------------------- */

static bool goes_first(const task *t, uint32_t a, uint32_t b)
{
    return t->slots[a].node->sequence > t->slots[b].node->sequence;
}

static void push_ready(task *t, uint32_t number)
{
    size_t i = t->n_ready++;
    while (i > 0 && goes_first(t, number, t->ready[(i - 1) / 2])) {
        t->ready[i] = t->ready[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    t->ready[i] = number;
}

static uint32_t pop_ready(task *t)
{
    uint32_t top = t->ready[0];
    uint32_t last = t->ready[--t->n_ready];
    size_t i = 0;
    for (size_t child = 1; child < t->n_ready; child = 2 * i + 1) {
        if (child + 1 < t->n_ready && goes_first(t, t->ready[child + 1], t->ready[child])) {
            child++;
        }
        if (!goes_first(t, t->ready[child], last)) {
            break;
        }
        t->ready[i] = t->ready[child];
        i = child;
    }
    t->ready[i] = last;
    return top;
}

/* ---- before the run: edges that lead to each node, and which nodes are needed ---------------- */

static int count_edge(task *t, const mt__edge *edge)
{
    uint32_t number = NO_SLOT;
    if (edge->node != NULL) {
        MT_TRY(need_slot(t, edge->node, &number));
        t->slots[number].waits++;
    }
    return MT_OK;
}

/* The slots also serve as the queue of the walk. */
static int count_edges(task *t)
{
    for (size_t i = 0; i < t->n_slots; i++) {
        mt_node *node = t->slots[i].node;
        mt__engine_streams_see(&t->streams, node);
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            MT_TRY(count_edge(t, &node->edges[k]));
        }
    }
    return MT_OK;
}

/* Slots in topological order: each after all that lead to it. */
static void sort_slots(const task *t, uint32_t *waits, uint32_t *order)
{
    size_t count = 0;
    for (uint32_t i = 0; i < t->n_slots; i++) {
        waits[i] = t->slots[i].waits;
        if (waits[i] == 0) {
            order[count++] = i;
        }
    }
    for (size_t i = 0; i < count; i++) {
        const mt_node *node = t->slots[order[i]].node;
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            if (node->edges[k].node != NULL) {
                uint32_t next = find_slot(t, node->edges[k].node);
                if (--waits[next] == 0) {
                    order[count++] = next;
                }
            }
        }
    }
    MT_ASSERT(count == t->n_slots);
}

static bool leads_to_wanted(const task *t, const mt_node *node)
{
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (node->edges[k].node != NULL && t->slots[find_slot(t, node->edges[k].node)].flags != 0) {
            return true;
        }
    }
    return false;
}

/* mt_grad(): only nodes between outputs and inputs are run. */
static int mark_needed(task *t)
{
    for (size_t i = 0; i < t->job->n_captures; i++) {
        uint32_t number = find_slot(t, t->job->captures[i].edge.node);
        if (number != NO_SLOT) {
            t->slots[number].flags |= SLOT_CAPTURED;
        }
    }
    uint32_t *order = mtb_calloc(t->n_slots * 2, sizeof(uint32_t));
    if (order == NULL) {
        return mtb_fail(MT_ENOMEM, "grad(): no memory for a graph of %zu nodes", t->n_slots);
    }
    sort_slots(t, order + t->n_slots, order);
    for (size_t i = t->n_slots; i-- > 0;) {
        slot *s = &t->slots[order[i]];
        if (leads_to_wanted(t, s->node)) {
            s->flags |= SLOT_NEEDED;
        }
    }
    mtb_free(order);
    return MT_OK;
}

/* ---- gradients on their way ------------------------------------------------------------------ */

/* Adds to a gradient; in place if nothing else refers to it. */
static int add_to(mt_tensor **place, mt_tensor *grad)
{
    mt_tensor *old = *place;
    if (mt__thread.grad_disabled && old->contiguous && mt__is_exclusive(old)) {
        return mt_add_(old, grad);
    }
    mt_tensor *sum = NULL;
    MT_TRY(mt_add(old, grad, &sum));
    mt_tensor_release(old);
    *place = sum;
    return MT_OK;
}

/* `take_grad` is taken in any case. */
static int put_grad(slot *s, uint32_t output, mt_tensor *take_grad)
{
    mt_tensor **place = &s->of.grad;
    if (s->node->n_outputs != 1) {
        if (s->of.grads == NULL) {
            s->of.grads = mtb_calloc(s->node->n_outputs, sizeof(mt_tensor *));
        }
        if (s->of.grads == NULL) {
            mt_tensor_release(take_grad);
            return mtb_fail(MT_ENOMEM, "backward(): no memory for the gradients of %s",
                            mt_node_name(s->node));
        }
        place = &s->of.grads[output];
    }
    if (*place == NULL) {
        *place = take_grad;
        return MT_OK;
    }
    int status = add_to(place, take_grad);
    mt_tensor_release(take_grad);
    return status;
}

/* The same if a stream that is not a default stream is involved. */
static MT_NOINLINE int put_grad_across(task *t, slot *s, uint32_t output, mt_tensor *take_grad)
{
    uint8_t current[MT_DEVICES];
    memcpy(current, mt__thread.streams, sizeof(current));
    int status = mt__engine_streams_hand(&t->streams, take_grad, s->node);
    if (status == MT_OK) {
        status = put_grad(s, output, take_grad);
    } else {
        mt_tensor_release(take_grad);
    }
    memcpy(mt__thread.streams, current, sizeof(current));
    return status;
}

MT_INLINE int hand_grad(task *t, slot *s, uint32_t output, mt_tensor *take_grad)
{
    return mt__engine_streams_on(&t->streams) ? put_grad_across(t, s, output, take_grad)
                                              : put_grad(s, output, take_grad);
}

/* Hooks get the complete gradients, captures the results of the hooks. */
static int run_hooks(mt_node *node, mt_tensor **grads)
{
    mt__tap *taps = node->kind == MT_NODE_LEAF ? node->of.leaf->autograd->tap : node->taps;
    if (MT_LIKELY(taps == NULL)) {
        return MT_OK;
    }
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        if (grads[i] != NULL) {
            MT_TRY(mt__hooks_run(taps, i, &grads[i]));
        }
    }
    return MT_OK;
}

static int capture(task *t, const mt_node *node, mt_tensor *const *grads)
{
    for (size_t i = 0; i < t->job->n_captures; i++) {
        mt__capture *c = &t->job->captures[i];
        if (c->edge.node != node) {
            continue;
        }
        c->grad = mt_tensor_retain(grads[c->edge.output]);
        int status = mt__engine_streams_on(&t->streams)
                         ? mt__engine_streams_give(&t->streams, c->grad)
                         : MT_OK;
        MT_TRY(status);
    }
    return MT_OK;
}

/* Called after hooks and formulas: they may have left other streams current. */
MT_INLINE int settle(task *t, const mt_node *node, int status)
{
    if (mt__engine_streams_on(&t->streams)) {
        int settled = mt__engine_streams_settle(&t->streams, node);
        return status == MT_OK ? settled : status;
    }
    return status;
}

/* ---- one node -------------------------------------------------------------------------------- */

/* A leaf whose node has hooks of its own. */
static MT_NOINLINE int run_hooked_leaf(mt_node *node, mt_tensor *take_grad)
{
    mt_tensor *leaf = node->of.leaf;
    mt_tensor *grad = take_grad;
    int status = mt__node_hooks_before(node, &grad);
    if (status == MT_OK) {
        mt__trace_token token = mt__node_scope_inner(node, &grad);
        status = mt__accumulate(leaf, mt_tensor_retain(grad));
        mt__trace_end(token);
    }
    if (status == MT_OK) {
        status = mt__node_hooks_after(node, NULL, &grad);
    }
    mt_tensor_release(grad);
    MT_TRY(status);
    return leaf->autograd->leaf_hooks != NULL ? mt__leaf_hooks_run(leaf) : MT_OK;
}

static int run_leaf(mt_node *node, mt_tensor *take_grad)
{
    mt_tensor *leaf = node->of.leaf;
    if (MT_UNLIKELY(leaf->autograd->node_taps != NULL)) {
        return run_hooked_leaf(node, take_grad);
    }
    mt__trace_token token = mt__node_scope_inner(node, &take_grad);
    int status = mt__accumulate(leaf, take_grad);
    if (MT_UNLIKELY(token != 0 && (mt__trace_wants() & MT_TRACE_TENSORS) != 0)) {
        mt__tell_gradient(token, leaf);
    }
    mt__trace_end(token);
    MT_TRY(status);
    return MT_UNLIKELY(leaf->autograd->leaf_hooks != NULL) ? mt__leaf_hooks_run(leaf) : MT_OK;
}

/* What running a node needs besides the node. */
typedef struct inputs {
    uint32_t count;
    mt_tensor **grads;
    uint32_t *slots; /* of the next nodes */
    bool *wanted;
} inputs;

/* Passes the gradients on. All of them are taken, also on failure. */
static int hand_on(task *t, mt_node *node, const inputs *in, int status)
{
    for (uint32_t i = 0; i < in->count; i++) {
        mt_tensor *grad = in->grads[i];
        in->grads[i] = NULL;
        if (status != MT_OK || in->slots[i] == NO_SLOT) {
            mt_tensor_release(grad);
            continue;
        }
        slot *next = &t->slots[in->slots[i]];
        if (grad != NULL) {
            status = hand_grad(t, next, node->edges[i].output, grad);
        }
        if (--next->waits == 0 && next->flags != 0) {
            push_ready(t, in->slots[i]);
        }
    }
    return status;
}

static bool has_any(mt_tensor *const *grads, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (grads[i] != NULL) {
            return true;
        }
    }
    return false;
}

/* Runs the formula: determines which inputs are wanted, then passes the gradients on. */
static int run_inputs(task *t, slot *s, mt_tensor **grads, const inputs *in)
{
    mt_node *node = s->node;
    bool any_wanted = false;
    for (uint32_t i = 0; i < in->count; i++) {
        mt_node *next = node->edges[i].node;
        in->grads[i] = NULL;
        in->slots[i] = next == NULL ? NO_SLOT : find_slot(t, next);
        in->wanted[i] = next != NULL && t->slots[in->slots[i]].flags != 0;
        any_wanted = any_wanted || in->wanted[i];
    }
    int status = MT_OK;
    bool run = any_wanted && (node->kind == MT_NODE_FUNCTION || has_any(grads, node->n_outputs));
    if (run && MT_UNLIKELY(node->taps != NULL)) {
        status = settle(t, node, mt__node_hooks_before(node, grads));
    }
    if (run && status == MT_OK) {
        status = settle(t, node, mt__node_run(node, grads, in->wanted, in->grads));
    }
    if (run && status == MT_OK && MT_UNLIKELY(node->taps != NULL)) {
        status = settle(t, node, mt__node_hooks_after(node, in->grads, grads));
    }
    if (status == MT_OK && !t->job->retain) {
        mt__node_release_saved(node);
    }
    drop_grads(s); /* before the next nodes check whether a gradient is exclusive */
    return hand_on(t, node, in, status);
}

static int run_node(task *t, slot *s, mt_tensor **grads)
{
    uint32_t n = s->node->n_inputs;
    if (MT_LIKELY(n <= STACK_INPUTS)) {
        mt_tensor *stack_grads[STACK_INPUTS];
        uint32_t stack_slots[STACK_INPUTS];
        bool stack_wanted[STACK_INPUTS];
        inputs in = {n, stack_grads, stack_slots, stack_wanted};
        return run_inputs(t, s, grads, &in);
    }
    size_t bytes = n * (sizeof(mt_tensor *) + sizeof(uint32_t) + sizeof(bool));
    char *block = mtb_calloc(1, bytes);
    if (block == NULL) {
        return mtb_fail(MT_ENOMEM, "backward(): no memory for the %u inputs of %s", n,
                        mt_node_name(s->node));
    }
    inputs in = {.count = n, .grads = (mt_tensor **)(void *)block};
    in.slots = (uint32_t *)(void *)(in.grads + n);
    in.wanted = (bool *)(in.slots + n);
    int status = run_inputs(t, s, grads, &in);
    mtb_free(block);
    return status;
}

static int run_slot(task *t, uint32_t number)
{
    slot *s = &t->slots[number];
    mt_node *node = s->node;
    mt_tensor **grads = node->n_outputs == 1 ? &s->of.grad : s->of.grads;
    if (grads == NULL) { /* several outputs, and no gradient for any of them */
        s->of.grads = mtb_calloc(node->n_outputs, sizeof(mt_tensor *));
        if (s->of.grads == NULL) {
            return mtb_fail(MT_ENOMEM, "backward(): no memory for the gradients of %s",
                            mt_node_name(node));
        }
        grads = s->of.grads;
    }
    mt__trace_token token = mt__node_scope_outer(node);
    if (mt__engine_streams_on(&t->streams)) {
        mt__engine_streams_enter(&t->streams, node);
    }
    int status = settle(t, node, run_hooks(node, grads));
    if (status == MT_OK && (s->flags & SLOT_CAPTURED) != 0) {
        status = capture(t, node, grads);
    }
    if (status == MT_OK && node->kind == MT_NODE_LEAF) {
        mt_tensor *grad = s->of.grad;
        s->of.grad = NULL;
        if (t->partial || grad == NULL) {
            mt_tensor_release(grad);
        } else {
            status = settle(t, node, run_leaf(node, grad));
        }
    } else if (status == MT_OK && (s->flags & SLOT_NEEDED) != 0) {
        status = run_node(t, s, grads);
    }
    mt__trace_end(token);
    return status;
}

/* ---- the run --------------------------------------------------------------------------------- */

static int start(task *t)
{
    const mt__engine_job *job = t->job;
    for (size_t i = 0; i < job->n_roots; i++) {
        uint32_t number = 0;
        MT_TRY(need_slot(t, job->roots[i].edge.node, &number));
        mt__engine_streams_see(&t->streams, job->roots[i].edge.node);
        MT_TRY(hand_grad(t, &t->slots[number], job->roots[i].edge.output,
                         mt_tensor_retain(job->roots[i].grad)));
    }
    size_t n_roots = t->n_slots;
    MT_TRY(count_edges(t));
    if (t->partial) {
        MT_TRY(mark_needed(t));
    }
    for (uint32_t i = 0; i < n_roots; i++) {
        if (t->slots[i].waits == 0 && t->slots[i].flags != 0) {
            push_ready(t, i);
        }
    }
    return MT_OK;
}

static int run_task(task *t)
{
    MT_TRY(start(t));
    while (t->n_ready > 0) {
        MT_TRY(run_slot(t, pop_ready(t)));
    }
    return MT_OK;
}

static _Thread_local const task *current; /* the innermost run of this thread */
static _Atomic uint64_t last_run;

uint64_t mt_current_run(void)
{
    return current == NULL ? 0 : current->number;
}

bool mt_current_run_reaches(const mt_node *node)
{
    uint32_t number = current == NULL ? NO_SLOT : find_slot(current, node);
    return number != NO_SLOT && current->slots[number].flags != 0;
}

int mt__engine_run(const mt__engine_job *job)
{
    task t;
    task_init(&t, job);
    t.number = atomic_fetch_add_explicit(&last_run, 1, memory_order_relaxed) + 1;
    const task *outer = current;
    current = &t;
    mt__thread_state outside = mt__thread;
    mt__thread.grad_disabled = !job->create_graph || mt__thread.inference != 0;
    mt__thread.below_autograd = 0;
    int status = run_task(&t);
    if (mt__engine_streams_on(&t.streams)) {
        status = mt__engine_streams_end(&t.streams, status);
    }
    task_fini(&t);
    current = outer;
    mt__thread.grad_disabled = outside.grad_disabled;
    mt__thread.below_autograd = outside.below_autograd;
    return status;
}
