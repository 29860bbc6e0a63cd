/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks of the backward pass (TC 3.5.3). What autograd runs has the stack of the call of
 * backward(); torch's events have that of the forward op instead, which is what one looks for.
 *
 *   forward   aten::mm                            stack S, sequence 3, thread 1
 *   backward  evaluate_function: MmBackward0      its own; it counts as forward
 *               MmBackward0                       S: sequence 3, forward thread 1
 *                 aten::t, aten::mm …             S: they are inside of it
 *
 *   W1  Of several events with one sequence number on one thread the first has the stack.
 *   W2  What is inside of a node gives no stack, and has none where its node finds none.
 *   W3  Traces of ours say what stack an event has.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/import/import_impl.h"

#include <string.h>

/* The stack of a forward op. */
typedef struct forward_stack {
    int64_t sequence;
    uint32_t thread; /* its number */
    uint32_t stack;
} forward_stack;

typedef struct backward {
    mtprof__import *import;
    uint32_t **nodes; /* by track and place: the node an event is, or is in; NULL: no such track */
    forward_stack *forwards;
    size_t n_forwards, capacity;
} backward;

static bool starts_with(mtprof_text text, const char *start, size_t length)
{
    return text.length >= length && memcmp(text.bytes, start, length) == 0;
}

/* Whether an event is a node of autograd: scope 1, which a JSON does not have. */
static bool is_node(const mtprof__import *import, const mtprof__columns *columns, uint32_t i)
{
    static const char wrapper[] = "autograd::engine::evaluate_function: ";
    static const char leaf[] = "torch::autograd::AccumulateGrad";
    const uint32_t *threads = columns->extra[MTPROF_COLUMN_FORWARD_THREAD];
    if (columns->kind[i] != MTPROF_EVENT_OP) {
        return false;
    }
    mtprof_text name = mtprof_model_name(import->model, columns->name[i]);
    if (threads != NULL && threads[i] != 0) {
        return !starts_with(name, wrapper, sizeof wrapper - 1);
    }
    return name.length == sizeof leaf - 1 && starts_with(name, leaf, sizeof leaf - 1);
}

/* Finds the nodes of a track. Parents stand before their children. */
static int find_nodes(backward *all, uint32_t t)
{
    const mtprof__columns *columns = &all->import->tracks[t].run.columns;
    uint32_t *nodes = mtb_resize(NULL, columns->n, sizeof *nodes);
    if (nodes == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: backward nodes of %zu events", columns->n);
    }
    all->nodes[t] = nodes;
    for (uint32_t i = 0; i < columns->n; i++) {
        uint32_t parent = columns->parent[i];
        nodes[i] = parent != MTPROF_NO_EVENT ? nodes[parent] : MTPROF_NO_EVENT;
        if (is_node(all->import, columns, i)) {
            nodes[i] = i;
        }
    }
    return MTPROF_OK;
}

/* The number of a thread, as the model has it. */
static uint32_t thread_number(const mtprof__import *import, uint32_t t)
{
    mtprof_track track;
    return mtprof_model_track(import->model, import->tracks[t].track, &track) ? track.number : 0;
}

static int collect_forwards(backward *all, uint32_t t)
{
    const mtprof__columns *columns = &all->import->tracks[t].run.columns;
    const int64_t *sequences = columns->extra[MTPROF_COLUMN_SEQUENCE];
    const uint32_t *stacks = columns->extra[MTPROF_COLUMN_STACK];
    uint32_t number = thread_number(all->import, t);
    for (uint32_t i = 0; sequences != NULL && stacks != NULL && i < columns->n; i++) {
        if (sequences[i] < 0 || all->nodes[t][i] != MTPROF_NO_EVENT) {
            continue;
        }
        if (!mtb_grow((void **)&all->forwards, &all->capacity, all->n_forwards + 1,
                      sizeof *all->forwards)) {
            return mtb_fail(MTPROF_ENOMEM, "open trace: %zu forward stacks", all->n_forwards + 1);
        }
        all->forwards[all->n_forwards++] = (forward_stack){sequences[i], number, stacks[i]};
    }
    return MTPROF_OK;
}

/* By sequence and thread; equal ones stay in order of time, so that the first is found (W1). */
static void forward_key(const void *item, mtprof__sort_key *key)
{
    const forward_stack *forward = item;
    key->start_ns = forward->sequence;
    key->end_ns = -(int64_t)forward->thread;
}

static uint32_t find_stack(const backward *all, int64_t sequence, uint32_t thread)
{
    size_t from = 0;
    size_t to = all->n_forwards;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const forward_stack *at = &all->forwards[middle];
        bool before = at->sequence != sequence ? at->sequence < sequence : at->thread < thread;
        if (before) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    const forward_stack *found = &all->forwards[from];
    return from < all->n_forwards && found->sequence == sequence && found->thread == thread
               ? found->stack
               : 0;
}

static int replace_stacks(const backward *all, uint32_t t)
{
    mtprof__columns *columns = &all->import->tracks[t].run.columns;
    const int64_t *sequences = columns->extra[MTPROF_COLUMN_SEQUENCE];
    const uint32_t *threads = columns->extra[MTPROF_COLUMN_FORWARD_THREAD];
    for (uint32_t i = 0; i < columns->n; i++) {
        uint32_t node = all->nodes[t][i];
        if (node == MTPROF_NO_EVENT || columns->kind[i] == MTPROF_EVENT_FUNCTION) {
            continue;
        }
        bool known = sequences != NULL && threads != NULL && sequences[node] >= 0;
        uint32_t stack = known ? find_stack(all, sequences[node], threads[node]) : 0;
        if (stack != 0 || columns->extra[MTPROF_COLUMN_STACK] != NULL) {
            MT_TRY(mtprof__import_set_u32(columns, MTPROF_COLUMN_STACK, i, stack));
        }
    }
    return MTPROF_OK;
}

static bool is_thread(const mtprof__import *import, uint32_t t)
{
    return import->tracks[t].space == MTPROF__TRACK_HOST && import->tracks[t].run.columns.n > 0;
}

static int move_stacks(backward *all)
{
    size_t n = all->import->n_tracks;
    for (uint32_t t = 0; t < n; t++) {
        if (is_thread(all->import, t)) {
            MT_TRY(find_nodes(all, t));
            MT_TRY(collect_forwards(all, t));
        }
    }
    MT_TRY(mtprof__import_sort_items((void **)&all->forwards, all->n_forwards,
                                     sizeof *all->forwards, forward_key));
    for (uint32_t t = 0; t < n; t++) {
        if (is_thread(all->import, t)) {
            MT_TRY(replace_stacks(all, t));
        }
    }
    return MTPROF_OK;
}

int mtprof__import_backward(mtprof__import *import)
{
    bool any = false;
    for (size_t t = 0; t < import->n_tracks; t++) {
        any |= import->tracks[t].run.columns.extra[MTPROF_COLUMN_STACK] != NULL;
    }
    if (!any || import->is_ours) {
        return MTPROF_OK; /* W3 */
    }
    backward all = {.import = import};
    all.nodes = mtb_calloc(import->n_tracks, sizeof *all.nodes);
    int status = all.nodes != NULL
                     ? move_stacks(&all)
                     : mtb_fail(MTPROF_ENOMEM, "open trace: %zu tracks", import->n_tracks);
    for (size_t t = 0; all.nodes != NULL && t < import->n_tracks; t++) {
        mtb_free(all.nodes[t]);
    }
    mtb_free((void *)all.nodes);
    mtb_free(all.forwards);
    return status;
}
