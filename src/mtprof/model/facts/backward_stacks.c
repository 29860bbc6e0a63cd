/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks and modules of the backward pass (torch-contract 3.5.3). Ops that autograd runs have the
 * stack of the call of backward() and are in no module. Users look for those of the forward op, so
 * events get these.
 *
 *   forward   aten::mm                            stack S, module M, sequence 3, thread 1
 *   backward  evaluate_function: MmBackward0      its own; it counts as forward
 *               MmBackward0                       S, M: sequence 3, forward thread 1
 *                 aten::t, aten::mm …             S, M: they are inside it
 *
 *   BST1  forward.h (FW1) defines which forward op it is.
 *   BST2  Events inside a node are not forward ops. If their node finds no forward op they have no
 *         stack; a module they were recorded in stays, also where the forward op was in none.
 *   BST3  A node is an event of record scope 1 (BACKWARD_FUNCTION). Foreign traces do not say what
 *         scope events have: there names and forward threads decide.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/format/texts.h"
#include "mtprof/model/facts/forward.h"
#include "mtprof/model/model_impl.h"

#include <string.h>

typedef struct backward {
    mtprof_model *model;
    const mtprof__columns *columns;
    const int64_t *sequences; /* this and the next two: NULL where not recorded */
    const uint32_t *forward_threads, *scopes;
    uint32_t *nodes;           /* by event: the node it is, or is in; MTPROF_NO_EVENT: none */
    mtprof__forwards forwards; /* note: the event */
} backward;

/* BST3 */
static bool is_node(const backward *b, uint32_t event)
{
    if (b->columns->kind[event] != MTPROF_EVENT_KIND_OP) {
        return false;
    }
    if (b->scopes != NULL || b->model->reader != NULL) {
        return b->scopes != NULL && b->scopes[event] == MTPROF_RECORD_SCOPE_BACKWARD;
    }
    mtprof_text name = mtprof_model_name(b->model, b->columns->name[event]);
    if (b->forward_threads != NULL && b->forward_threads[event] != 0) {
        return !mtprof__text_starts(name, "autograd::engine::evaluate_function: ");
    }
    return mtprof__text_is(name, "torch::autograd::AccumulateGrad");
}

/* Walks up from each event to the first node or known answer, then writes the answer down on the
 * way. Parents need not come before their children. False: there is no node at all. */
static bool find_nodes(backward *b)
{
    const uint32_t unknown = MTPROF_NO_EVENT - 1;
    const uint32_t *parent = b->columns->parent;
    bool any = false;
    for (uint32_t i = 0; i < b->columns->n; i++) {
        b->nodes[i] = is_node(b, i) ? i : unknown;
        any = any || b->nodes[i] == i;
    }
    for (uint32_t i = 0; any && i < b->columns->n; i++) {
        uint32_t at = i;
        while (at != MTPROF_NO_EVENT && b->nodes[at] == unknown) {
            at = parent[at];
        }
        uint32_t answer = at != MTPROF_NO_EVENT ? b->nodes[at] : MTPROF_NO_EVENT;
        for (uint32_t k = i; k != at && b->nodes[k] == unknown; k = parent[k]) {
            b->nodes[k] = answer;
        }
    }
    return any;
}

static int collect_forwards(backward *b)
{
    size_t n = 0;
    for (uint32_t i = 0; b->sequences != NULL && i < b->columns->n; i++) {
        n += b->sequences[i] >= 0 && b->nodes[i] == MTPROF_NO_EVENT;
    }
    if (!mtprof__forwards_init(&b->forwards, sizeof(mtprof__forward), n)) {
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for %zu forward ops", n);
    }
    for (uint32_t i = 0; n > 0 && i < b->columns->n; i++) {
        if (b->sequences[i] >= 0 && b->nodes[i] == MTPROF_NO_EVENT) {
            bool added;
            uint32_t thread = mtprof__model_thread_number(b->model, b->columns->track[i]);
            mtprof__forward *op =
                mtprof__forward_add(&b->forwards, thread, b->sequences[i], &added);
            op->note = added ? i : op->note; /* FW1 */
        }
    }
    return MTPROF_OK;
}

/* MTPROF_NO_EVENT: none. */
static uint32_t find_forward(backward *b, uint32_t node)
{
    if (b->sequences == NULL || b->sequences[node] < 0 || b->forward_threads == NULL) {
        return MTPROF_NO_EVENT;
    }
    const mtprof__forward *op =
        mtprof__forward_find(&b->forwards, b->forward_threads[node], b->sequences[node]);
    return op != NULL ? op->note : MTPROF_NO_EVENT;
}

/* Forward events are not backward ones, so what is read here has not been replaced. Either column
 * may be NULL. */
static void replace(backward *b, uint32_t *stacks, uint32_t *modules)
{
    for (uint32_t i = 0; i < b->columns->n; i++) {
        if (b->nodes[i] == MTPROF_NO_EVENT || b->columns->kind[i] == MTPROF_EVENT_KIND_FUNCTION) {
            continue;
        }
        uint32_t forward = find_forward(b, b->nodes[i]);
        if (stacks != NULL) {
            stacks[i] = forward != MTPROF_NO_EVENT ? stacks[forward] : 0;
        }
        if (modules != NULL && b->columns->kind[i] == MTPROF_EVENT_KIND_OP &&
            forward != MTPROF_NO_EVENT && modules[forward] != 0) {
            modules[i] = modules[forward];
        }
    }
}

int mtprof__model_backward_stacks(mtprof_model *model)
{
    mtprof__columns *columns = &model->columns;
    uint32_t *stacks = columns->extra[MTPROF_COLUMN_STACK];
    uint32_t *modules = columns->extra[MTPROF_COLUMN_MODULE];
    backward b = {.model = model,
                  .columns = columns,
                  .sequences = columns->extra[MTPROF_COLUMN_SEQUENCE],
                  .forward_threads = columns->extra[MTPROF_COLUMN_FORWARD_THREAD],
                  .scopes = columns->extra[MTPROF_COLUMN_RECORD_SCOPE]};
    if ((stacks == NULL && modules == NULL) || columns->n == 0 ||
        (model->reader != NULL && b.scopes == NULL)) {
        return MTPROF_OK;
    }
    b.nodes = mtb_resize(NULL, columns->n, sizeof *b.nodes);
    if (b.nodes == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "make model: no memory for backward nodes of %zu events",
                        columns->n);
    }
    int status = MTPROF_OK;
    if (find_nodes(&b)) {
        status = collect_forwards(&b);
        if (status == MTPROF_OK) {
            replace(&b, stacks, modules);
        }
    }
    mtb_free(b.nodes);
    mtprof__forwards_fini(&b.forwards);
    return status;
}
