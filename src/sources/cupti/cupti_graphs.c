/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of CUDA graphs: who captured them. CUPTI calls back on the capturing thread, inside the
 * call that becomes a node, when the node is created, and again when it is cloned: a graph is
 * instantiated, or part of another one. Work of a replay has the number of its clone.
 *
 *   CG1  What is kept of a node are strings of the process (mtprof_open_op), so a graph that was
 *        captured in one recording is known in the next.
 *   CG2  A node that is destroyed stays until the next recording begins: records of its last replay
 *        may be read later. Only where there is no more room are the destroyed ones given up.
 *   CG3  A node that was captured while nothing recorded is not known. Its work has its replay.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/hash.h"
#include "base/lock.h"
#include "sources/cupti/cupti_impl.h"

enum {
    FIRST_NODES = 1024, /* powers of two */
    MOST_NODES = 1 << 20
};

typedef struct node {
    uint64_t number;       /* 0: a free place */
    uint32_t op;           /* string ids; 0: not known, */
    uint32_t module;       /* none, */
    uint32_t dependencies; /* not known (cupti_edges.c) */
    uint32_t is_gone;      /* destroyed */
} node;

static struct {
    mtb_lock lock;
    node *items;              /* open addressing; at most half of it is in use */
    size_t capacity, n, gone; /* gone: of the n */
} nodes = {.lock = MTB_LOCK_INIT(MTB_RANK_CUPTI_GRAPHS)};

/* ---- the table; the lock is held ---- */

/* Where a number is, or would be. */
static node *place_of(node *items, size_t capacity, uint64_t number)
{
    size_t at = (size_t)mtb_mix(number, 0) & (capacity - 1);
    while (items[at].number != 0 && items[at].number != number) {
        at = (at + 1) & (capacity - 1);
    }
    return &items[at];
}

/* Another table of this size. False: no memory. */
static bool move_to(size_t capacity, bool without_gone)
{
    node *items = mtb_calloc(capacity, sizeof *items);
    if (items == NULL) {
        return false;
    }
    size_t n = 0;
    for (size_t i = 0; i < nodes.capacity; i++) {
        if (nodes.items[i].number != 0 && (!without_gone || nodes.items[i].is_gone == 0)) {
            *place_of(items, capacity, nodes.items[i].number) = nodes.items[i];
            n++;
        }
    }
    mtb_free(nodes.items);
    nodes.items = items;
    nodes.capacity = capacity;
    nodes.n = n;
    nodes.gone = without_gone ? 0 : nodes.gone;
    return true;
}

static void set(node *at, node to)
{
    nodes.n += at->number == 0;
    nodes.gone += to.is_gone;
    nodes.gone -= at->is_gone;
    *at = to;
}

static bool has_room(void)
{
    return 2 * (nodes.n + 1) <= nodes.capacity;
}

/* CG2. A table that is full of nodes that live is not searched for destroyed ones at each new one:
 * `gone` counts them. */
static bool make_room(void)
{
    size_t larger = nodes.capacity == 0 ? FIRST_NODES : 2 * nodes.capacity;
    if (larger <= (size_t)MOST_NODES * 2 && move_to(larger, false)) {
        return true;
    }
    return nodes.gone > 0 && move_to(nodes.capacity, true) && has_room();
}

static bool put(node to)
{
    bool known = nodes.n > 0 && place_of(nodes.items, nodes.capacity, to.number)->number != 0;
    if (!known && !has_room() && !make_room()) {
        return false;
    }
    set(place_of(nodes.items, nodes.capacity, to.number), to);
    return true;
}

static const node *find(uint64_t number)
{
    const node *at = nodes.n > 0 ? place_of(nodes.items, nodes.capacity, number) : NULL;
    return at != NULL && at->number != 0 ? at : NULL;
}

/* ---- CUPTI's callbacks ---- */

static uint64_t number_of(void *handle)
{
    uint64_t number = 0;
    return handle != NULL && cp__cuda.node_number(handle, &number) == CP_OK ? number : 0;
}

static void lose_node(void)
{
    cp__add(&cp__count.nodes_lost, 1);
    mtprof_count_cut(1);
}

static void node_created(uint64_t number)
{
    uint32_t op, module;
    bool known = mtprof_open_op(&op, &module);
    bool kept = true;
    mtb_lock_acquire(&nodes.lock);
    if (known) {
        kept = put((node){.number = number, .op = op, .module = module});
    } else if (find(number) != NULL) { /* CUDA may use numbers again: it is another node now */
        set(place_of(nodes.items, nodes.capacity, number), (node){.number = number, .is_gone = 1});
    }
    mtb_lock_release(&nodes.lock);
    if (!kept) {
        lose_node();
    }
}

static void node_cloned(uint64_t number, uint64_t original)
{
    bool kept = true;
    mtb_lock_acquire(&nodes.lock);
    const node *from = find(original);
    if (from != NULL && from->op != 0) {
        kept = put((node){.number = number, .op = from->op, .module = from->module});
    } else if (find(number) != NULL) { /* the number again, as above */
        set(place_of(nodes.items, nodes.capacity, number), (node){.number = number, .is_gone = 1});
    }
    mtb_lock_release(&nodes.lock);
    if (!kept) {
        lose_node();
    }
}

/* CG2 */
static void node_destroyed(uint64_t number)
{
    mtb_lock_acquire(&nodes.lock);
    const node *at = find(number);
    if (at != NULL) {
        node gone = *at;
        gone.is_gone = 1;
        set(place_of(nodes.items, nodes.capacity, number), gone);
    }
    mtb_lock_release(&nodes.lock);
}

void cp__on_graph(uint32_t id, const cp__graph_data *data)
{
    uint64_t number = data != NULL ? number_of(data->node) : 0;
    if (number == 0) {
        return;
    }
    if (id == CP_RESOURCE_NODE_CREATED) {
        node_created(number);
    } else if (id == CP_RESOURCE_NODE_CLONED) {
        uint64_t original = number_of(data->original_node);
        node_cloned(number, original);
        cp__edges_clone(number, original, data->node_type);
    } else {
        node_destroyed(number);
    }
}

int cp__graphs_enable(void *subscriber)
{
    static const uint32_t ids[] = {CP_RESOURCE_NODE_CREATED, CP_RESOURCE_NODE_DESTROY_STARTING,
                                   CP_RESOURCE_NODE_CLONED};
    int result = CP_OK;
    for (size_t i = 0; i < MT_COUNT(ids) && result == CP_OK; i++) {
        result = cp__cuda.enable_callback(1, subscriber, CP_DOMAIN_RESOURCE, ids[i]);
    }
    return result;
}

/* ---- recordings ---- */

cp__node_facts cp__node_known(uint64_t number)
{
    mtb_lock_acquire(&nodes.lock);
    const node *at = find(number);
    cp__node_facts known = {0};
    if (at != NULL) {
        known = (cp__node_facts){at->op, at->module, at->dependencies};
    }
    mtb_lock_release(&nodes.lock);
    return known;
}

bool cp__node_depends(uint64_t number, uint32_t dependencies)
{
    mtb_lock_acquire(&nodes.lock);
    const node *at = find(number);
    node told = {.number = number};
    if (at != NULL) {
        told = *at;
    }
    told.dependencies = dependencies;
    bool kept = put(told);
    mtb_lock_release(&nodes.lock);
    return kept;
}

void cp__graphs_begin(void)
{
    mtb_lock_acquire(&nodes.lock);
    if (nodes.capacity != 0) {
        (void)move_to(nodes.capacity, true); /* without memory they stay a while longer */
    }
    mtb_lock_release(&nodes.lock);
}

void cp__graphs_after_fork(void)
{
    mtb_lock_reset(&nodes.lock);
    nodes.items = NULL; /* it may have been about to change; the child cannot use the GPU anyway */
    nodes.capacity = nodes.n = nodes.gone = 0;
}
