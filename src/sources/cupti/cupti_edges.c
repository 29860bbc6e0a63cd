/* SPDX-License-Identifier: Apache-2.0
 *
 * Dependencies between the nodes of CUDA graphs, on request (MTPROF_CUPTI_DEPENDENCIES).
 *
 *     cudaGraphInstantiate begins ─► nodes that are cloned on this thread are remembered
 *                          ends   ─► the driver tells the edges of the graph: pairs of originals
 *                                     └► each clone's list of clones, "[4, 7]" (cupti_graphs.c)
 *
 *   CE1  The edges of a graph that can be launched never change, so they are read once, where it
 *        is made: on the thread that makes it, before the call returns. What was removed from
 *        the graph before is not there.
 *   CE2  What does no work that CUPTI reports (empty nodes, host functions, events, graphs inside
 *        of the graph) is passed through: what depends on it depends on what it depends on.
 *   CE3  A node whose dependencies are not known, or not all of them, counts once
 *        (dependencies_lost), and so does an edge to a node that is not known.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "sources/cupti/cupti_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_CLONES = 1 << 20,
    MOST_TEXTS = 1 << 18, /* lists, which stay until the process ends */
    MOST_LISTED = 32,     /* dependencies of a node */
    MOST_LOOKED = 512,    /* nodes that are looked at for one (CE2) */
    LIST_BYTES = MOST_LISTED * 22 + 3,
    NO_CLONE = UINT32_MAX
};

typedef struct clone {
    uint64_t original, number;
    uint32_t type;
    uint32_t first, n; /* of the edges that end here */
} clone;

/* A graph that is being instantiated on this thread. */
typedef struct making {
    clone *clones;
    size_t n, capacity;
    uint64_t lost;
    bool open;
} making;

static __thread making mine __attribute__((tls_model("initial-exec")));

static bool wanted;         /* atomic */
static uint32_t texts_made; /* atomic */

void cp__edges_want(bool want)
{
    __atomic_store_n(&wanted, want, __ATOMIC_RELAXED);
}

/* ---- while it is made ---- */

void cp__edges_begin(void)
{
    mine.open = __atomic_load_n(&wanted, __ATOMIC_RELAXED);
    mine.n = 0; /* of one that did not end within its recording */
    mine.lost = 0;
}

void cp__edges_clone(uint64_t number, uint64_t original, uint32_t type)
{
    if (!mine.open) {
        return;
    }
    clone made = {.original = original, .number = number, .type = type};
    if (mine.n >= MOST_CLONES || !mtb_append(mine.clones, mine.n, mine.capacity, &made)) {
        mine.lost++;
    }
}

/* ---- when it is made ---- */

static int by_original(const void *a, const void *b)
{
    uint64_t left = ((const clone *)a)->original;
    uint64_t right = ((const clone *)b)->original;
    return (left > right) - (left < right);
}

/* The place of the clone of a node of the graph; NO_CLONE: there is none. */
static uint32_t clone_of(void *node)
{
    clone wanted_one = {.original = 0};
    if (mine.n == 0 || node == NULL || cp__cuda.node_number(node, &wanted_one.original) != CP_OK) {
        return NO_CLONE;
    }
    const clone *found = bsearch(&wanted_one, mine.clones, mine.n, sizeof wanted_one, by_original);
    return found != NULL ? (uint32_t)(found - mine.clones) : NO_CLONE;
}

/* Edges, and those of them that end at a node. */
typedef struct edges {
    void **ends;       /* 2 n: where they begin, then where they end */
    void *data;        /* of the driver's own, for edges that have some */
    uint32_t *from_to; /* 2 n places of clones; then, by the node they end at, where they begin */
    size_t n;
} edges;

static void free_edges(edges *e)
{
    mtb_free(e->ends);
    mtb_free(e->data);
    mtb_free(e->from_to);
}

static int ask(void *graph, void **from, void **to, void *data, size_t *n)
{
    return cp__cuda.graph_edges_2 != NULL ? cp__cuda.graph_edges_2(graph, from, to, data, n)
                                          : cp__cuda.graph_edges(graph, from, to, n);
}

/* The driver's answer. False: it has none, or there is no memory for it. */
static bool read_edges(void *graph, edges *e)
{
    if ((cp__cuda.graph_edges_2 == NULL && cp__cuda.graph_edges == NULL) ||
        ask(graph, NULL, NULL, NULL, &e->n) != 0 || e->n > (size_t)MOST_CLONES * MOST_LISTED) {
        return false;
    }
    e->ends = mtb_calloc(2 * e->n + 1, sizeof e->ends[0]);
    e->data = mtb_calloc(e->n + 1, CP_EDGE_DATA_BYTES);
    e->from_to = mtb_calloc(2 * e->n + 1, sizeof e->from_to[0]);
    size_t n = e->n;
    return e->ends != NULL && e->data != NULL && e->from_to != NULL &&
           (n == 0 || (ask(graph, e->ends, e->ends + n, e->data, &n) == 0 && n == e->n));
}

/* Puts edges in the order of the nodes they end at; those that end at none that was cloned on this
 * thread are lost. */
static void sort_edges(edges *e)
{
    uint32_t *from = e->from_to;
    uint32_t *to = e->from_to + e->n;
    for (size_t i = 0; i < e->n; i++) {
        from[i] = clone_of(e->ends[i]);
        to[i] = clone_of(e->ends[e->n + i]);
        if (to[i] != NO_CLONE) {
            mine.clones[to[i]].n++;
        } else {
            mine.lost++;
        }
    }
    uint32_t first = 0;
    for (size_t i = 0; i < mine.n; i++) {
        mine.clones[i].first = first;
        first += mine.clones[i].n;
        mine.clones[i].n = 0;
    }
    uint32_t *ordered = (uint32_t *)(void *)e->ends; /* not needed any more, and larger */
    for (size_t i = 0; i < e->n; i++) {
        if (to[i] != NO_CLONE) {
            clone *at = &mine.clones[to[i]];
            ordered[at->first + at->n++] = from[i];
        }
    }
    memcpy(from, ordered, first * sizeof from[0]);
}

static bool does_work(const clone *c)
{
    return c->type == CP_NODE_KERNEL || c->type == CP_NODE_COPY || c->type == CP_NODE_SET;
}

typedef struct depends {
    uint64_t on[MOST_LISTED];
    uint32_t n;
    bool is_all;
} depends;

static void add(depends *list, uint64_t number)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->on[i] == number) {
            return;
        }
    }
    if (list->n < MOST_LISTED) {
        list->on[list->n++] = number;
    } else {
        list->is_all = false;
    }
}

/* CE2 */
static void look_behind(const edges *e, const clone *of, depends *list)
{
    const clone *waiting[MOST_LOOKED];
    uint32_t n = 1, looked = 0;
    waiting[0] = of;
    *list = (depends){.is_all = true};
    while (n > 0) {
        const clone *at = waiting[--n];
        for (uint32_t i = 0; i < at->n; i++) {
            uint32_t place = e->from_to[at->first + i];
            const clone *from = place != NO_CLONE ? &mine.clones[place] : NULL;
            if (from != NULL && does_work(from)) {
                add(list, from->number);
            } else if (from != NULL && n < MOST_LOOKED && looked++ < MOST_LOOKED) {
                waiting[n++] = from;
            } else {
                list->is_all = false;
            }
        }
    }
}

/* "[4, 7]": its string id. 0: there are too many. */
static uint32_t text_of(const depends *list)
{
    char text[LIST_BYTES] = "[";
    int used = 1;
    for (uint32_t i = 0; i < list->n; i++) {
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%llu", i > 0 ? ", " : "",
                         (unsigned long long)list->on[i]);
    }
    text[used++] = ']';
    if (list->n > 0 && __atomic_fetch_add(&texts_made, 1, __ATOMIC_RELAXED) >= MOST_TEXTS) {
        __atomic_store_n(&texts_made, MOST_TEXTS, __ATOMIC_RELAXED);
        return 0;
    }
    return mtprof_intern(text, (size_t)used);
}

static void tell_all(const edges *e)
{
    for (size_t i = 0; i < mine.n; i++) {
        depends list;
        if (does_work(&mine.clones[i])) {
            look_behind(e, &mine.clones[i], &list);
            uint32_t text = text_of(&list);
            bool kept = text != 0 && cp__node_depends(mine.clones[i].number, text);
            mine.lost += !kept || !list.is_all;
        }
    }
}

void cp__edges_end(void *graph)
{
    edges e = {.n = 0};
    if (!mine.open) {
        return;
    }
    if (graph != NULL) {
        if (mine.n > 0) {
            qsort(mine.clones, mine.n, sizeof mine.clones[0], by_original);
        }
        if (read_edges(graph, &e)) {
            sort_edges(&e);
            tell_all(&e);
        } else {
            mine.lost += mine.n;
        }
    }
    if (mine.lost > 0) {
        cp__add(&cp__count.dependencies_lost, mine.lost);
        mtprof_count_cut((uint32_t)mine.lost);
    }
    free_edges(&e);
    mtb_free(mine.clones);
    mine = (making){.open = false};
}
