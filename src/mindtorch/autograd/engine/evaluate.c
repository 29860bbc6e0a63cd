/* SPDX-License-Identifier: Apache-2.0
 *
 * Running one node: saved tensors are unpacked and checked, the formula is called, and its
 * gradients are checked against the inputs' shapes.
 *
 *   EV1  References to everything that a formula reads are held while it runs: another thread may
 *        release the node's saved tensors.
 *   EV2  While a graph is created, saved tensors have the same place in the graph as in forward.
 */
#include "mindtorch/autograd/engine/evaluate.h"

#include "base/alloc.h"
#include "mindtorch/autograd/graph/anomaly.h"
#include "mindtorch/autograd/graph/function_call.h"
#include "mindtorch/autograd/graph/meta.h"
#include "mindtorch/autograd/graph/node_names.h"
#include "mindtorch/autograd/graph/saved_tensors.h"
#include "mindtorch/core/thread/thread_state.h"
#include "mindtorch/dispatch/call_words.h"
#include "mindtorch/ops/op_support.h"
#include "mindtorch/ops/type_names.h"

#include <stdio.h>
#include <string.h>

typedef struct mt__frame frame;

int mt__refuse_twice(void)
{
    return mtb_fail(
        MT_ERUNTIME,
        "Trying to backward through the graph a second time (or directly access saved "
        "tensors after they have already been freed). Saved intermediate values of the "
        "graph are freed when you call .backward() or autograd.grad(). Specify "
        "retain_graph=True if you need to backward through the graph a second time or if "
        "you need to access saved tensors after calling backward.");
}

/* ---- saved tensors --------------------------------------------------------------------------- */

MT_COLD int mt__refuse_version(const mt_tensor *saved, uint32_t expected, const mt__edge *from)
{
    char shape[MT_SHAPE_TEXT];
    char name[MT_MAX_DERIVATIVE_NAME];
    char origin[MT_MAX_DERIVATIVE_NAME + 48] = "";
    if (from->node != NULL && from->node->kind != MT_NODE_LEAF) {
        snprintf(origin, sizeof(origin), ", which is output %u of %s,", from->output,
                 mt__node_short_name(from->node, name));
    }
    return mtb_fail(
        MT_ERUNTIME,
        "one of the variables needed for gradient computation has been modified by an "
        "inplace operation: [torch.%s%sTensor %s]%s is at version %u; expected version %u "
        "instead. Hint: %s",
        mt_tensor_device(saved) == MT_CPU ? "" : "npu.", mt__type_title((mt_dtype)saved->dtype),
        mt__shape_text(saved->sizes, saved->n_dims, shape), origin, mt_tensor_version(saved),
        expected,
        mt__anomaly_on() ? "the backtrace further above shows the operation that failed to compute "
                           "its gradient. The variable in question was changed in there or "
                           "anywhere later. Good luck!"
                         : "enable anomaly detection to find the operation that failed to compute "
                           "its gradient");
}

static void drop_held(mt_value *value)
{
    if (value->kind == MT_KIND_TENSOR) {
        mt_tensor_release(value->of.tensor);
    } else if (value->kind == MT_KIND_TENSORS) {
        for (uint32_t i = 0; value->of.tensors != NULL && i < value->count; i++) {
            mt_tensor_release(value->of.tensors[i]);
        }
        mtb_free((void *)(uintptr_t)value->of.tensors);
    } else if (MT_UNLIKELY(value->kind == MT__KIND_PACKED)) {
        mt__packed_release(mt__packed_in(value));
    }
    value->kind = MT_KIND_NONE;
}

static void drop_saved(frame *f)
{
    for (uint32_t i = 0; i < f->n_args; i++) {
        drop_held(&f->args[i]);
    }
    for (uint32_t i = 0; i < f->n_results; i++) {
        drop_held(&f->results[i]);
    }
}

/* Everything but tensors, which are taken under the lock; room for copies of lists before it. */
static int need_lists(frame *f, const mt_node *node)
{
    int status = MT_OK;
    for (uint32_t i = 0; i < f->n_args; i++) {
        const mt_value *saved = &node->of.op.args[i];
        mt_value *held = &f->args[i];
        if (saved->kind == MT_KIND_TENSOR) {
            *held = (mt_value){.kind = MT_KIND_TENSOR, .of.tensor = NULL};
            continue;
        }
        if (MT_UNLIKELY(saved->kind == MT__KIND_PACKED)) {
            *held = mt__packed_value(NULL);
            continue;
        }
        *held = *saved;
        if (saved->kind == MT_KIND_TENSORS) {
            held->of.tensors = mtb_calloc((size_t)saved->count + 1, sizeof(mt_tensor *));
            if (held->of.tensors == NULL) {
                status = mtb_fail(MT_ENOMEM, "backward(): no memory for a list of %u tensors",
                                  saved->count);
            }
        }
    }
    for (uint32_t i = 0; i < f->n_results; i++) {
        const mt_value *saved = &node->of.op.results[i];
        f->results[i] = saved->kind == MT_KIND_TENSOR
                            ? (mt_value){.kind = MT_KIND_TENSOR, .of.tensor = NULL}
                        : saved->kind == MT__KIND_PACKED ? mt__packed_value(NULL)
                                                         : *saved;
    }
    return status;
}

static void hold_value(mt_value *held, const mt_value *saved)
{
    if (saved->kind == MT_KIND_TENSOR) {
        held->of.tensor = saved->of.tensor;
        mt_tensor_retain(held->of.tensor);
    } else if (saved->kind == MT_KIND_TENSORS) {
        mt_tensor **list = (mt_tensor **)(uintptr_t)held->of.tensors; /* our own copy */
        for (uint32_t i = 0; i < saved->count; i++) {
            list[i] = mt_tensor_retain(saved->of.tensors[i]);
        }
    } else if (MT_UNLIKELY(saved->kind == MT__KIND_PACKED)) {
        *held = mt__packed_value(mt__packed_retain(mt__packed_in(saved)));
    }
}

/* PK1. */
static int unpack_value(mt_value *held)
{
    mt_tensor *tensor = NULL;
    if (MT_LIKELY(held->kind != MT__KIND_PACKED)) {
        return MT_OK;
    }
    MT_TRY(mt__unpack(mt__packed_in(held), &tensor));
    mt__packed_release(mt__packed_in(held));
    *held = (mt_value){.kind = MT_KIND_TENSOR, .of.tensor = tensor};
    return MT_OK;
}

static int unpack_saved(frame *f)
{
    for (uint32_t i = 0; i < f->n_args; i++) {
        MT_TRY(unpack_value(&f->args[i]));
    }
    for (uint32_t i = 0; i < f->n_results; i++) {
        MT_TRY(unpack_value(&f->results[i]));
    }
    return MT_OK;
}

/* EV1. */
static int hold_saved(frame *f, mt_node *node)
{
    MT_TRY(need_lists(f, node));
    if (node->n_saved == 0) {
        return MT_OK;
    }
    mt__node_lock(node);
    bool released = node->released;
    for (uint32_t i = 0; !released && i < f->n_args; i++) {
        hold_value(&f->args[i], &node->of.op.args[i]);
    }
    for (uint32_t i = 0; !released && i < f->n_results; i++) {
        hold_value(&f->results[i], &node->of.op.results[i]);
    }
    mt__node_unlock(node);
    return released ? mt__refuse_twice() : unpack_saved(f);
}

static int check_list(const mt_node *node, const mt_value *list, const mt_value *saved,
                      uint32_t input)
{
    const uint32_t *versions = (const uint32_t *)(const void *)(saved->of.tensors + saved->count);
    for (uint32_t i = 0; i < list->count; i++) {
        const mt_tensor *tensor = list->of.tensors[i];
        if (tensor != NULL && mt_tensor_version(tensor) != versions[i]) {
            return mt__refuse_version(tensor, versions[i], &node->edges[input + i]);
        }
    }
    return MT_OK;
}

static int check_versions(const frame *f, mt_node *node)
{
    const uint32_t *versions = node->of.op.versions;
    for (uint32_t i = 0; i < f->n_args; i++) {
        const mt_value *arg = &f->args[i];
        uint32_t input = node->of.op.first[i];
        const mt_tensor *tensor = arg->kind == MT_KIND_TENSOR ? arg->of.tensor : NULL;
        if (tensor != NULL && mt_tensor_version(tensor) != versions[i] &&
            node->of.op.args[i].kind != MT__KIND_PACKED) {
            return mt__refuse_version(tensor, versions[i], &node->edges[input]);
        }
        if (arg->kind == MT_KIND_TENSORS) {
            MT_TRY(check_list(node, arg, &node->of.op.args[i], input));
        }
    }
    versions += f->n_args;
    for (uint32_t i = 0; i < f->n_results; i++) {
        const mt_value *result = &f->results[i];
        const mt_tensor *tensor = result->kind == MT_KIND_TENSOR ? result->of.tensor : NULL;
        if (tensor != NULL && mt_tensor_version(tensor) != versions[i] &&
            node->of.op.results[i].kind != MT__KIND_PACKED) {
            mt__edge self = {node, i};
            return mt__refuse_version(tensor, versions[i], &self);
        }
    }
    return MT_OK;
}

/* A result that was written into a view belongs to the base's graph now. */
static int replace_sliced(mt_tensor **held, mt_node *outer)
{
    const mt__slices *s = outer->of.slices;
    mt_tensor *base = NULL;
    MT_TRY(mt__tensor_view(*held, s->base_sizes, s->base_strides, s->base_dims, s->base_offset,
                           false, &base));
    mt__edge edge = {outer, 0};
    mt_node *strided = NULL;
    int status = mt__strided_node(base, *held, &edge, &strided);
    if (status == MT_OK) {
        mt__edge place = {strided, 0};
        status = mt__place_at(held, &place);
    }
    mt_node_release(strided);
    mt_tensor_release(base);
    return status;
}

static int place_arg(mt_value *arg, const mt__edge *edges)
{
    if (arg->kind == MT_KIND_TENSOR) {
        return mt__place_at(&arg->of.tensor, edges);
    }
    for (uint32_t k = 0; arg->kind == MT_KIND_TENSORS && k < arg->count; k++) {
        mt_tensor **held = (mt_tensor **)(uintptr_t)&arg->of.tensors[k]; /* our own copy */
        if (*held != NULL) {
            MT_TRY(mt__place_at(held, &edges[k]));
        }
    }
    return MT_OK;
}

static int place_result(mt_value *result, mt_node *node, uint32_t i)
{
    if (result->kind != MT_KIND_TENSOR || result->of.tensor == NULL ||
        mt__tensor_category(result->of.tensor) < MT_CATEGORY_REAL) {
        return MT_OK;
    }
    mt__edge self = {node, i};
    return node->of.op.outer != NULL ? replace_sliced(&result->of.tensor, node->of.op.outer)
                                     : mt__place_at(&result->of.tensor, &self);
}

/* EV2. */
static int place_saved(frame *f, mt_node *node)
{
    for (uint32_t i = 0; i < f->n_args; i++) {
        MT_TRY(place_arg(&f->args[i], &node->edges[node->of.op.first[i]]));
    }
    for (uint32_t i = 0; i < f->n_results; i++) {
        MT_TRY(place_result(&f->results[i], node, i));
    }
    return MT_OK;
}

/* ---- formulas -------------------------------------------------------------------------------- */

static int unpack_metas(frame *f, const mt_node *node)
{
    uint32_t count = node->n_inputs + node->n_outputs;
    f->metas = f->stack_metas;
    if (count > MT_STACK_METAS) {
        f->metas = mtb_calloc(count, sizeof(mt__meta));
        if (f->metas == NULL) {
            return mtb_fail(MT_ENOMEM, "backward(): no memory for %u shapes", count);
        }
    }
    const mt__packed_meta *packed = (const mt__packed_meta *)(const void *)node->metas;
    for (uint32_t i = 0; i < count; i++) {
        mt__meta *meta = &f->metas[i];
        meta->dtype = packed->dtype;
        meta->device = packed->device;
        meta->turned = packed->turned;
        meta->shape.n_dims = packed->n_dims;
        for (uint32_t k = 0; k < packed->n_dims; k++) {
            meta->shape.sizes[k] = packed->sizes[k];
        }
        packed = mt__packed_next(packed);
    }
    return MT_OK;
}

/* A user's formula has a place for each argument, not for each input. */
static int run_user(frame *f, const mt_node *node)
{
    const mt__op_row *row = node->row;
    mt_tensor *grads_in[MT_MAX_PARAMS] = {NULL};
    const uint32_t *first = node->of.op.first;
    for (uint32_t i = 0; i < f->n_args; i++) {
        bool list = f->args[i].kind == MT_KIND_TENSORS;
        for (uint32_t k = first[i]; list && k < first[i + 1]; k++) {
            if (f->b.wanted[k]) {
                return mtb_fail(MT_ENOTSUP,
                                "%s: a derivative cannot give gradients of a list of tensors",
                                row->trace_name);
            }
        }
    }
    int status =
        row->user_backward(row->user_context, f->b.args, f->b.results, f->b.grads, grads_in);
    for (uint32_t i = 0; i < f->n_args; i++) {
        if (grads_in[i] != NULL && status == MT_OK && f->args[i].kind == MT_KIND_TENSOR) {
            f->b.grads_in[first[i]] = grads_in[i];
        } else {
            mt_tensor_release(grads_in[i]);
        }
    }
    return status > 0
               ? mtb_fail(MT_ECALLBACK, "%s: its derivative returned %d", row->trace_name, status)
               : status;
}

static int call_formula(frame *f, mt_node *node)
{
    MT_TRY(hold_saved(f, node));
    MT_TRY(check_versions(f, node));
    if (!mt__thread.grad_disabled) {
        MT_TRY(place_saved(f, node));
    }
    if (node->row->user_backward != NULL) {
        return run_user(f, node);
    }
    return node->row->derivative->run(&f->b);
}

static int run_op(mt_node *node, mt_tensor *const *grads, const bool *wanted, mt_tensor **grads_in)
{
    frame f;
    f.b.node = node;
    f.b.args = f.args;
    f.b.results = f.results;
    f.b.grads = grads;
    f.b.n_grads = node->n_outputs;
    f.b.n_inputs = node->n_inputs;
    f.b.grads_in = grads_in;
    f.b.wanted = wanted;
    f.b.n_temps = 0;
    f.geometry = node->of.op.geometry;
    f.n_args = node->row->n_params;
    f.n_results = node->row->n_results;
    int status = unpack_metas(&f, node);
    if (status != MT_OK) {
        return status;
    }
    status = call_formula(&f, node);
    for (uint32_t i = 0; i < f.b.n_temps; i++) {
        mt_tensor_release(f.b.temps[i]);
    }
    drop_saved(&f);
    if (f.metas != f.stack_metas) {
        mtb_free(f.metas);
    }
    return status;
}

/* ---- what came out --------------------------------------------------------------------------- */

static bool fits(const mt_tensor *grad, const mt__packed_meta *meta)
{
    if (grad->n_dims != meta->n_dims || grad->dtype != meta->dtype ||
        grad->device != meta->device) {
        return false;
    }
    for (uint32_t i = 0; i < meta->n_dims; i++) {
        if (grad->sizes[i] != meta->sizes[i]) {
            return false;
        }
    }
    return true;
}

static bool expands_to(const mt__packed_meta *meta, const mt_tensor *grad)
{
    if (meta->n_dims > grad->n_dims) {
        return false;
    }
    uint32_t lead = grad->n_dims - meta->n_dims;
    for (uint32_t i = 0; i < meta->n_dims; i++) {
        if (meta->sizes[i] != 1 && meta->sizes[i] != grad->sizes[lead + i]) {
            return false;
        }
    }
    return true;
}

static MT_NOINLINE int make_fit(const mt_node *node, uint32_t i, const mt__packed_meta *meta,
                                mt_tensor **grad)
{
    char got[MT_SHAPE_TEXT];
    char want[MT_SHAPE_TEXT];
    if (!expands_to(meta, *grad)) {
        return mtb_fail(
            MT_ERUNTIME,
            "Function %s returned an invalid gradient at index %u - got %s but expected "
            "shape compatible with %s",
            mt_node_name(node), i, mt__shape_text((*grad)->sizes, (*grad)->n_dims, got),
            mt__shape_text(meta->sizes, meta->n_dims, want));
    }
    if (meta->device != (*grad)->device && meta->n_dims > 0) {
        strncpy(want, mt_device_name(meta->device), sizeof(want) - 1);
        want[sizeof(want) - 1] = '\0';
        return mtb_fail(MT_ERUNTIME,
                        "Function %s returned an invalid gradient at index %u - expected device %s "
                        "but got %s",
                        mt_node_name(node), i, want, mt_device_name((*grad)->device));
    }
    if (mt__tensor_category(*grad) == MT_CATEGORY_COMPLEX &&
        mt_dtype_category((mt_dtype)meta->dtype) != MT_CATEGORY_COMPLEX) {
        mt_tensor *real = NULL; /* of a real input only the real part counts */
        MT_TRY(mt_real_part(*grad, &real));
        mt_tensor_release(*grad);
        *grad = real;
    }
    mt__shape shape = {.n_dims = meta->n_dims};
    memcpy(shape.sizes, meta->sizes, meta->n_dims * sizeof(int64_t));
    mt_tensor *fitting = NULL;
    MT_TRY(mt__reduce_to(*grad, &shape, (mt_dtype)meta->dtype, &fitting));
    mt_tensor_release(*grad);
    *grad = fitting;
    if (meta->device == fitting->device) {
        return MT_OK;
    }
    /* A 0-d host tensor was used as a number in an op of a device: its gradient goes back to the
     * host. */
    mt_tensor *home = NULL;
    MT_TRY(mt_to_with(fitting, MT_DTYPE_NONE, meta->device, false, false, &home));
    mt_tensor_release(fitting);
    *grad = home;
    return MT_OK;
}

static int check_grads(const mt_node *node, const bool *wanted, mt_tensor **grads_in)
{
    const mt__packed_meta *meta = (const mt__packed_meta *)(const void *)node->metas;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (grads_in[i] != NULL && !wanted[i]) {
            mt_tensor_release(grads_in[i]);
            grads_in[i] = NULL;
        } else if (grads_in[i] != NULL && MT_UNLIKELY(!fits(grads_in[i], meta))) {
            MT_TRY(make_fit(node, i, meta, &grads_in[i]));
        }
        meta = mt__packed_next(meta);
    }
    return MT_OK;
}

static int run_node(mt_node *node, mt_tensor *const *grads, const bool *wanted,
                    mt_tensor **grads_in)
{
    switch ((mt__node_kind)node->kind) {
    case MT_NODE_OP: MT_TRY(run_op(node, grads, wanted, grads_in)); break;
    case MT_NODE_SLICES: MT_TRY(mt__slices_run(node, grads, wanted, grads_in)); break;
    case MT_NODE_FUNCTION:
        MT_TRY(
            mt__function_backward(node->of.call, grads, node->n_outputs, grads_in, node->n_inputs));
        break;
    case MT_NODE_LEAF: break;
    }
    return MT_OK;
}

/* ---- the profiler's scopes ------------------------------------------------------------------- */

enum {
    SCOPE_OUTER,
    SCOPE_INNER,
    SCOPE_COUNT
};

/* Found by name once, then kept for each of our ops and of its other names, and for leaves. */
static mt__trace_site *_Atomic op_sites[MT__OP_COUNT][SCOPE_COUNT];
static mt__trace_site *_Atomic variant_sites[MT_NAME_VARIANTS][SCOPE_COUNT];
static mt__trace_site *_Atomic leaf_sites[SCOPE_COUNT];

static mt__trace_site *find_site(const mt_node *node, int which)
{
    if (which == SCOPE_INNER) {
        return mt__trace_op_site(mt_node_name(node), false);
    }
    char name[160];
    snprintf(name, sizeof(name), "autograd::engine::evaluate_function: %s", mt_node_name(node));
    return mt__trace_op_site(name, false);
}

/* Where the site of such nodes is kept; NULL: nowhere. */
static mt__trace_site *_Atomic *kept_site(const mt_node *node, int which)
{
    if (node->kind == MT_NODE_LEAF) {
        return &leaf_sites[which];
    }
    if (node->kind != MT_NODE_OP || node->row->op >= MT__OP_COUNT) {
        return NULL;
    }
    int variant = mt__node_variant(node);
    return variant == MT_NO_VARIANT ? &op_sites[node->row->op][which]
                                    : &variant_sites[variant][which];
}

static mt__trace_site *site_of(const mt_node *node, int which)
{
    mt__trace_site *_Atomic *kept = kept_site(node, which);
    if (kept == NULL) {
        return find_site(node, which);
    }
    mt__trace_site *site = atomic_load_explicit(kept, memory_order_relaxed);
    if (site == NULL) {
        site = find_site(node, which); /* never freed, so all threads store the same value */
        atomic_store_explicit(kept, site, memory_order_relaxed);
    }
    return site;
}

/* grads: reported as the inner scope's inputs if inputs are recorded. */
static MT_NOINLINE mt__trace_token scope(const mt_node *node, int which, mt_tensor *const *grads)
{
    mt__trace_site *site = site_of(node, which);
    uint32_t wants = mt__trace_wants();
    mt__trace_words words;
    mt__trace_node shown = {
        .record_scope = which == SCOPE_INNER ? MT_TRACE_SCOPE_BACKWARD : 0,
        .forward_thread = node->forward_thread,
        .sequence = node->sequence, /* a leaf's is UINT64_MAX, which is none */
    };
    if (which == SCOPE_INNER && (wants & MT_TRACE_INPUTS) != 0) {
        bool strides = (wants & MT_TRACE_STRIDES) != 0;
        mt__tensor_words(grads, node->n_outputs, strides, &words);
        shown.is_long = words.cut;
        if (MT_UNLIKELY(shown.is_long) && mt__trace_words_init_large(&words)) {
            mt__tensor_words_large(grads, node->n_outputs, strides, &words);
        }
        shown.words = &words;
    }
    mt__trace_token token = site == NULL ? 0 : mt__trace_node_begin(site, &shown);
    if (MT_UNLIKELY(shown.is_long)) {
        mt__trace_words_fini_large(&words);
    }
    return token;
}

mt__trace_token mt__node_scope_outer(const mt_node *node)
{
    return mt__trace_on() ? scope(node, SCOPE_OUTER, NULL) : 0;
}

mt__trace_token mt__node_scope_inner(const mt_node *node, mt_tensor *const *grads)
{
    return mt__trace_on() ? scope(node, SCOPE_INNER, grads) : 0;
}

static _Thread_local mt_node *running; /* of this thread, borrowed */

mt_node *mt_current_node(void)
{
    return running;
}

int mt__node_run(mt_node *node, mt_tensor *const *grads, const bool *wanted, mt_tensor **grads_in)
{
    mt__trace_token token = mt__node_scope_inner(node, grads);
    bool before = mt__thread.in_formula;
    mt_node *outer = running;
    running = node;
    mt__thread.in_formula = node->kind == MT_NODE_OP; /* not in a user's function */
    int status = run_node(node, grads, wanted, grads_in);
    mt__thread.in_formula = before;
    mt__trace_end(token);
    if (status == MT_OK) {
        status = check_grads(node, wanted, grads_in);
    }
    if (MT_UNLIKELY(mt__anomaly_on())) {
        status = mt__anomaly_check(node, grads_in, status);
    }
    running = outer;
    return status;
}
