/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing saved tensors, and reading what nodes have saved. See saved_tensors.h.
 */
#include "mindtorch/autograd/graph/saved_tensors.h"

#include "base/alloc.h"
#include "mindtorch/autograd/engine/evaluate.h"
#include "mindtorch/core/thread/thread_state.h"

#include <stdio.h>
#include <string.h>

/* ---- packing --------------------------------------------------------------------------------- */

void mt_set_pack(mt_pack_fn *pack, void *context)
{
    mt__thread.pack = pack;
    mt__thread.pack_context = context;
}

mt__packed *mt__packed_retain(mt__packed *packed)
{
    if (packed != NULL) {
        atomic_fetch_add_explicit(&packed->refs, 1, memory_order_relaxed);
    }
    return packed;
}

void mt__packed_release(mt__packed *packed)
{
    if (packed != NULL && atomic_fetch_sub_explicit(&packed->refs, 1, memory_order_acq_rel) == 1) {
        packed->made->free(packed->made);
        mtb_free(packed);
    }
}

static int check_made(const mt_tensor *tensor, uint32_t version, const mt_packed *made, int status)
{
    if (status > 0) {
        return mtb_fail(MT_ECALLBACK, "pack: the function returned %d", status);
    }
    MT_TRY(status);
    if (made == NULL || made->unpack == NULL || made->free == NULL) {
        return mtb_fail(MT_EVALUE, "pack: the function gave nothing to unpack");
    }
    if (mt__tensor_version(tensor) != version) {
        return mtb_fail(
            MT_ERUNTIME,
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to pack hook cannot be modified by in-place operations as this can lead to unexpected "
            "side-effects. Please open an issue if you need to perform in-place operations on the "
            "input to a pack hook.");
    }
    return MT_OK;
}

int mt__pack(mt_tensor *tensor, mt__packed **out)
{
    *out = NULL;
    if (mt__thread.pack == NULL) {
        return MT_OK;
    }
    mt_packed *made = NULL;
    uint32_t version = mt__tensor_version(tensor);
    bool disabled = mt__thread.grad_disabled;
    mt__thread.grad_disabled = true;
    int status = mt__thread.pack(mt__thread.pack_context, tensor, &made);
    mt__thread.grad_disabled = disabled;
    status = check_made(tensor, version, made, status);
    mt__packed *packed = status == MT_OK ? mtb_calloc(1, sizeof(*packed)) : NULL;
    if (packed == NULL) {
        if (made != NULL && made->free != NULL) {
            made->free(made);
        }
        return status != MT_OK ? status : mtb_fail(MT_ENOMEM, "pack: no memory");
    }
    atomic_store_explicit(&packed->refs, 1, memory_order_relaxed);
    packed->made = made;
    *out = packed;
    return MT_OK;
}

int mt__unpack(mt__packed *packed, mt_tensor **out)
{
    *out = NULL;
    bool disabled = mt__thread.grad_disabled;
    mt__thread.grad_disabled = true;
    int status = packed->made->unpack(packed->made, out);
    mt__thread.grad_disabled = disabled;
    if (status > 0) {
        status = mtb_fail(MT_ECALLBACK, "unpack: the function returned %d", status);
    }
    return status == MT_OK && *out == NULL ? mtb_fail(MT_EVALUE, "unpack: it gave no tensor")
                                           : status;
}

/* `given` is what the user sees of the saved tensor; `held`: an edge has the reference to it. */
static int pack_value(mt_value *value, mt_tensor *given, bool held)
{
    mt__packed *packed = NULL;
    MT_TRY(mt__pack(given, &packed));
    if (packed != NULL) {
        mt_tensor *old = value->of.tensor;
        *value = mt__packed_value(packed);
        mt_tensor_release(held ? NULL : old);
    }
    return MT_OK;
}

static int pack_result(mt_node *node, uint32_t i)
{
    mt_value *value = &node->of.op.results[i];
    mt_tensor *given = mt_tensor_retain(value->of.tensor);
    int status = MT_OK;
    if (mt__tensor_category(given) == MT_CATEGORY_REAL && node->of.op.outer == NULL) {
        mt__edge self = {node, i};
        status = mt__place_at(&given, &self);
    }
    if (status == MT_OK) {
        status = pack_value(value, given, false);
    }
    mt_tensor_release(given);
    return status;
}

int mt__node_pack(mt_node *node, const mt_value *args)
{
    for (uint32_t i = 0; i < node->row->n_params; i++) {
        mt_value *value = &node->of.op.args[i];
        if (value->kind == MT_KIND_TENSOR) {
            bool same = value->of.tensor->storage == args[i].of.tensor->storage;
            bool held = mt__edge_holds(&node->edges[node->of.op.first[i]], value->of.tensor);
            MT_TRY(pack_value(value, same ? args[i].of.tensor : value->of.tensor, held));
        }
    }
    for (uint32_t i = 0; i < node->row->n_results; i++) {
        if (node->of.op.results[i].kind == MT_KIND_TENSOR) {
            MT_TRY(pack_result(node, i));
        }
    }
    return MT_OK;
}

/* Other elements in a leaf's place: an alias, whose gradient goes to the leaf. A tensor's own node
 * cannot be a leaf's (ND5). */
static int place_at_leaf(mt_tensor *held, const mt__edge *edge, mt_tensor **out)
{
    const mt_value arg = {.kind = MT_KIND_TENSOR, .of.tensor = held};
    mt_node *node = NULL;
    MT_TRY(mt__node_for_call(&mt__op_rows[MT__OP_ALIAS], &arg, &held, 1, NULL, &node));
    mt_node_release(node->edges[0].node);
    node->edges[0] = (mt__edge){mt_node_retain(edge->node), edge->output};
    mt__edge place = {node, 0};
    int status = mt__alias_with(held, &place, out);
    mt_node_release(node);
    return status;
}

int mt__place_at(mt_tensor **held, const mt__edge *edge)
{
    mt_tensor *placed = NULL;
    if (edge->node == NULL) {
        return MT_OK; /* a constant */
    }
    if (edge->node->kind != MT_NODE_LEAF) {
        MT_TRY(mt__alias_with(*held, edge, &placed));
    } else if (edge->node->of.leaf == *held) {
        return MT_OK; /* the leaf itself was saved */
    } else if (edge->node->of.leaf->storage == (*held)->storage) {
        placed = mt_tensor_retain(edge->node->of.leaf);
    } else {
        MT_TRY(place_at_leaf(*held, edge, &placed));
    }
    mt_tensor_release(*held);
    *held = placed;
    return MT_OK;
}

/* ---- what a node has saved ------------------------------------------------------------------- */

/* Whether an argument is shown: numbers, and tensors that the formula reads. */
static bool is_shown(const mt_node *node, uint32_t i)
{
    const mt__op_row *row = node->row;
    const uint32_t tensors = 1U << MT_KIND_TENSOR | 1U << MT_KIND_TENSORS;
    if (row->derivative == NULL || (row->params[i].accepts & 1U << MT_KIND_GENERATOR) != 0) {
        return false;
    }
    return (row->params[i].accepts & tensors) == 0 || (row->derivative->saves >> i & 1) != 0;
}

static bool is_shown_result(const mt_node *node, uint32_t i)
{
    return node->row->derivative != NULL && (node->row->derivative->saves >> 16 >> i & 1) != 0;
}

static void result_name(const mt_node *node, uint32_t i, char name[MT_SAVED_NAME])
{
    if (node->row->n_results == 1) {
        (void)snprintf(name, MT_SAVED_NAME, "result");
    } else {
        (void)snprintf(name, MT_SAVED_NAME, "result%u", i);
    }
}

/* The number of a name among arguments, then results; false: there is none. */
static bool find_saved(const mt_node *node, const char *name, uint32_t *index)
{
    char own[MT_SAVED_NAME];
    for (uint32_t i = 0; i < node->row->n_params; i++) {
        if (is_shown(node, i) && strcmp(node->row->params[i].name, name) == 0) {
            *index = i;
            return true;
        }
    }
    for (uint32_t i = 0; i < node->row->n_results; i++) {
        result_name(node, i, own);
        if (is_shown_result(node, i) && strcmp(own, name) == 0) {
            *index = node->row->n_params + i;
            return true;
        }
    }
    return false;
}

bool mt_node_saved_name(const mt_node *node, uint32_t index, char name[MT_SAVED_NAME])
{
    uint32_t n_params = node->kind == MT_NODE_OP ? node->row->n_params : 0;
    uint32_t n_results = node->kind == MT_NODE_OP ? node->row->n_results : 0;
    for (uint32_t i = 0; i < n_params + n_results; i++) {
        bool shown = i < n_params ? is_shown(node, i) : is_shown_result(node, i - n_params);
        if (shown && index-- == 0) {
            if (i < n_params) {
                (void)snprintf(name, MT_SAVED_NAME, "%s", node->row->params[i].name);
            } else {
                result_name(node, i - n_params, name);
            }
            return true;
        }
    }
    return false;
}

/* A tensor, held, and its packed form instead if it was packed; both NULL: it was not saved. */
static int hold(mt_node *node, const mt_value *value, mt_tensor **tensor, mt__packed **packed)
{
    mt__node_lock(node);
    bool released = node->released;
    if (!released && value->kind == MT_KIND_TENSOR) {
        *tensor = mt_tensor_retain(value->of.tensor);
    } else if (!released && value->kind == MT__KIND_PACKED) {
        *packed = mt__packed_retain(mt__packed_in(value));
    }
    mt__node_unlock(node);
    return released ? mt__refuse_twice() : MT_OK;
}

static int read_tensor(mt_node *node, uint32_t index, mt_value *out)
{
    mt_value *value = &node->of.op.args[index]; /* results come after the arguments */
    bool is_arg = index < node->row->n_params;
    mt__edge edge = is_arg ? node->edges[node->of.op.first[index]]
                           : (mt__edge){node, index - node->row->n_params};
    mt_tensor *tensor = NULL;
    mt__packed *packed = NULL;
    MT_TRY(hold(node, value, &tensor, &packed));
    int status = packed == NULL ? MT_OK : mt__unpack(packed, &tensor);
    bool unpacked = packed != NULL; /* PK3 */
    mt__packed_release(packed);
    if (status == MT_OK && tensor != NULL && !unpacked &&
        mt__tensor_version(tensor) != node->of.op.versions[index]) {
        status = mt__refuse_version(tensor, node->of.op.versions[index], &edge);
    }
    bool placed = tensor != NULL && mt__tensor_category(tensor) == MT_CATEGORY_REAL &&
                  (is_arg || node->of.op.outer == NULL);
    if (status == MT_OK && placed) {
        status = mt__place_at(&tensor, &edge);
    }
    if (status == MT_OK && tensor != NULL) {
        *out = (mt_value){.kind = MT_KIND_TENSOR, .of.tensor = tensor};
        return MT_OK;
    }
    mt_tensor_release(tensor);
    return status;
}

mt_status mt_node_get_saved(mt_node *node, const char *name, mt_value *out)
{
    uint32_t index = 0;
    *out = (mt_value){.kind = MT_KIND_NONE};
    if (node->kind != MT_NODE_OP || !find_saved(node, name, &index)) {
        return mtb_fail(MT_EINDEX, "%s has saved nothing named %.60s", mt_node_name(node), name);
    }
    const mt_value *value = &node->of.op.args[index];
    if (value->kind == MT_KIND_TENSOR || value->kind == MT__KIND_PACKED) {
        return read_tensor(node, index, out);
    }
    if (value->kind == MT_KIND_TENSORS) {
        return mtb_fail(MT_ENOTSUP, "%s: lists of saved tensors cannot be read",
                        mt_node_name(node));
    }
    *out = *value;
    return MT_OK;
}
