/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording the node of a call: which arguments are saved, where the edges lead, how results are
 * attached.
 *
 *   RN1  Saved versions are those at the time when the op read its arguments. For an in-place op
 *        everything is saved before it runs, so backward detects that an argument sharing the
 *        written storage has changed.
 *   RN2  For an in-place op, every step that can fail is done before it runs: once it has written,
 *        recording cannot fail.
 *   RN3  The values that an in-place op overwrites are copied only if the formula reads them
 *        (SAVED_IF).
 */
#include "base/alloc.h"
#include "mindtorch/autograd/graph/anomaly.h"
#include "mindtorch/autograd/graph/hooks.h"
#include "mindtorch/autograd/graph/meta.h"
#include "mindtorch/autograd/graph/saved_tensors.h"
#include "mindtorch/core/thread/thread_state.h"
#include "mindtorch/dispatch/autograd_hook.h"

#include <string.h>

/* ---- plan ------------------------------------------------------------------------------------ */

typedef struct survey {
    uint32_t n_inputs;
    uint32_t wants;    /* a bit for each argument that needs a gradient */
    uint32_t saves;    /* a bit for each argument that is saved, MT_SAVE_RESULT likewise */
    size_t meta_bytes; /* inputs and outputs */
    size_t data_bytes; /* lists and texts */
} survey;

static bool list_needs(const mt_value *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->of.tensors[i] != NULL && mt__tensor_needs(list->of.tensors[i])) {
            return true;
        }
    }
    return false;
}

static size_t text_bytes(const char *text)
{
    return (size_t)mtb_round_up(strlen(text) + 1, 8);
}

/* Pointers of a list, then their versions. */
static size_t list_bytes(uint32_t count)
{
    return count * sizeof(mt_tensor *) + (size_t)mtb_round_up(count * sizeof(uint32_t), 8);
}

static void survey_tensors(survey *s, const mt_value *list)
{
    s->n_inputs += list->count;
    s->data_bytes += list_bytes(list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        mt_tensor *tensor = list->of.tensors[i];
        s->meta_bytes += mt__packed_bytes(tensor == NULL ? 0 : tensor->n_dims);
    }
}

MT_INLINE void survey_arg(survey *s, const mt_value *arg, uint32_t i)
{
    switch ((mt_kind)arg->kind) {
    case MT_KIND_TENSOR:
        s->n_inputs++;
        s->meta_bytes += mt__packed_bytes(arg->of.tensor->n_dims);
        s->wants |= (uint32_t)mt__tensor_needs(arg->of.tensor) << i;
        break;
    case MT_KIND_TENSORS:
        survey_tensors(s, arg);
        s->wants |= (uint32_t)list_needs(arg) << i;
        break;
    case MT_KIND_INTS: s->data_bytes += arg->count * sizeof(int64_t); break;
    case MT_KIND_TEXT: s->data_bytes += text_bytes(arg->of.text); break;
    default: break;
    }
}

/* What the node saves: what the formula reads, except what it needs only for a gradient that is not
 * wanted. `wants` has a bit for each argument that needs one. */
static uint32_t saves_of(const mt__derivative *derivative, uint32_t wants)
{
    uint32_t saves = derivative->saves;
    for (uint32_t i = 0; i < MT_RULED_ARGS; i++) {
        if (derivative->saved_if[i] != 0 && (derivative->saved_if[i] & wants) == 0) {
            saves &= ~((uint32_t)MT_SAVE_ARG << i);
        }
    }
    return saves;
}

static survey survey_call(const mt__op_row *row, const mt_value *args, mt_tensor *const *outputs,
                          uint32_t n_outputs)
{
    survey s = {0};
    for (uint32_t i = 0; i < row->n_params; i++) {
        survey_arg(&s, &args[i], i);
    }
    for (uint32_t i = 0; i < n_outputs; i++) {
        s.meta_bytes += mt__packed_bytes(outputs[i] == NULL ? 0 : outputs[i]->n_dims);
    }
    s.saves = saves_of(row->derivative, s.wants);
    return s;
}

/* ---- filling in ------------------------------------------------------------------------------ */

/* ND2: a leaf is saved as itself: it cannot be written in grad mode, and the edge holds the
 * reference. */
MT_INLINE int save_tensor(mt_tensor *tensor, const mt__edge *edge, mt_tensor **out)
{
    if (MT_UNLIKELY(tensor->storage->inference)) {
        return mt__refuse_inference();
    }
    if (mt__edge_holds(edge, tensor)) {
        *out = tensor;
        return MT_OK;
    }
    return mt__alias(tensor, out);
}

static int save_list(mt_node *node, const mt_value *arg, const mt__edge *edges, mt_value *saved,
                     char **data)
{
    mt_tensor **list = (mt_tensor **)(void *)*data;
    uint32_t *versions = (uint32_t *)(void *)(list + arg->count);
    *data += list_bytes(arg->count);
    memset(list, 0, arg->count * sizeof(mt_tensor *));
    *saved = (mt_value){.kind = MT_KIND_TENSORS, .count = arg->count, .of.tensors = list};
    for (uint32_t i = 0; i < arg->count; i++) {
        if (arg->of.tensors[i] != NULL) {
            MT_TRY(save_tensor(arg->of.tensors[i], &edges[i], &list[i]));
            if (list[i] == arg->of.tensors[i]) {
                mt_tensor_retain(list[i]); /* releasing a list does not check the edges */
            }
            versions[i] = mt__tensor_version(list[i]);
            node->n_saved++;
        }
    }
    return MT_OK;
}

static void copy_data(const mt_value *arg, mt_value *saved, char **data)
{
    *saved = *arg;
    if (arg->kind == MT_KIND_INTS) {
        saved->of.ints = (const int64_t *)(void *)*data;
        if (arg->count > 0) {
            memcpy(*data, arg->of.ints, arg->count * sizeof(int64_t));
        }
        *data += arg->count * sizeof(int64_t);
    } else {
        saved->of.text = *data;
        memcpy(*data, arg->of.text, strlen(arg->of.text) + 1);
        *data += text_bytes(arg->of.text);
    }
}

typedef struct filling {
    char *data;  /* lists and texts */
    char *metas; /* packed */
    uint32_t input;
} filling;

static int fill_tensor(mt_node *node, mt_tensor *tensor, uint32_t i, bool save, filling *f)
{
    mt_value *saved = &node->of.op.args[i];
    mt__edge *edge = &node->edges[f->input++];
    mt__pack_meta(&f->metas, tensor);
    MT_TRY(mt__edge_of(tensor, edge));
    if (save && saved->kind == MT_KIND_NONE) { /* else it is kept_self */
        MT_TRY(save_tensor(tensor, edge, &saved->of.tensor));
        saved->kind = MT_KIND_TENSOR;
        node->n_saved++;
    }
    if (saved->kind == MT_KIND_TENSOR) {
        node->of.op.versions[i] = mt__tensor_version(saved->of.tensor);
    }
    return MT_OK;
}

static int fill_tensors(mt_node *node, const mt_value *list, uint32_t i, bool save, filling *f)
{
    mt__edge *edges = &node->edges[f->input];
    f->input += list->count;
    for (uint32_t k = 0; k < list->count; k++) {
        mt_tensor *tensor = list->of.tensors[k];
        mt__pack_meta(&f->metas, tensor);
        if (tensor != NULL) {
            MT_TRY(mt__edge_of(tensor, &edges[k]));
        }
    }
    return save ? save_list(node, list, edges, &node->of.op.args[i], &f->data) : MT_OK;
}

/* Argument i into the node: edge, meta, and the value if it is saved. */
MT_INLINE int fill_arg(mt_node *node, const mt_value *arg, uint32_t i, bool save, filling *f)
{
    mt_value *saved = &node->of.op.args[i];
    node->of.op.first[i] = f->input;
    switch ((mt_kind)arg->kind) {
    case MT_KIND_TENSOR: return fill_tensor(node, arg->of.tensor, i, save, f);
    case MT_KIND_TENSORS: return fill_tensors(node, arg, i, save, f);
    case MT_KIND_INTS:
    case MT_KIND_TEXT: copy_data(arg, saved, &f->data); return MT_OK;
    case MT_KIND_GENERATOR: return MT_OK; /* its state has changed, and it may be gone */
    default: *saved = *arg; return MT_OK;
    }
}

/* Lays out the part of the block after the edges. */
static void carve(mt_node *node, const mt__op_row *row, char *place, filling *f)
{
    node->row = row;
    node->of.op.args = (mt_value *)(void *)place;
    node->of.op.results = node->of.op.args + row->n_params;
    place = (char *)(node->of.op.results + row->n_results);
    for (uint32_t i = 0; i < (uint32_t)row->n_params + row->n_results; i++) {
        node->of.op.args[i].kind = MT_KIND_NONE;
    }
    if ((row->flags & MT_OP_VIEW) != 0) {
        node->of.op.geometry = (mt__geometry *)(void *)place;
        place += sizeof(mt__geometry);
    }
    node->of.op.versions = (uint32_t *)(void *)place;
    node->of.op.first = node->of.op.versions + row->n_params + row->n_results;
    place += mtb_round_up((2U * row->n_params + row->n_results + 1) * sizeof(uint32_t), 8);
    f->data = place;
    f->metas = (char *)(uintptr_t)node->metas;
    f->input = 0;
}

static size_t fixed_bytes(const mt__op_row *row)
{
    size_t bytes = ((size_t)row->n_params + row->n_results) * sizeof(mt_value) +
                   mtb_round_up((2U * row->n_params + row->n_results + 1) * sizeof(uint32_t), 8);
    return bytes + ((row->flags & MT_OP_VIEW) != 0 ? sizeof(mt__geometry) : 0);
}

static void keep_geometry(mt_node *node, const mt_tensor *self)
{
    node->of.op.geometry->offset = self->offset;
    memcpy(node->of.op.geometry->strides, self->strides, self->n_dims * sizeof(int64_t));
}

static int fill_args(mt_node *node, const mt_value *args, uint32_t saves, filling *f)
{
    const mt__op_row *row = node->row;
    for (uint32_t i = 0; i < row->n_params; i++) {
        MT_TRY(fill_arg(node, &args[i], i, (saves >> i & 1) != 0, f));
    }
    node->of.op.first[row->n_params] = f->input;
    return MT_OK;
}

int mt__node_for_call(const mt__op_row *row, const mt_value *args, mt_tensor *const *outputs,
                      uint32_t n_outputs, mt_tensor *kept_self, mt_node **out)
{
    survey s = survey_call(row, args, outputs, n_outputs);
    mt__node_plan plan = {
        .kind = MT_NODE_OP,
        .n_inputs = s.n_inputs,
        .n_outputs = n_outputs,
        .meta_bytes = s.meta_bytes,
        .extra_bytes = fixed_bytes(row) + s.data_bytes,
    };
    mt_node *node = NULL;
    char *extra = NULL;
    MT_TRY(mt__node_new(&plan, &node, &extra));
    filling f;
    carve(node, row, extra, &f);
    if (kept_self != NULL) {
        node->of.op.args[0] =
            (mt_value){.kind = MT_KIND_TENSOR, .of.tensor = mt_tensor_retain(kept_self)};
        node->n_saved++;
    }
    int status = fill_args(node, args, s.saves, &f);
    if (MT_UNLIKELY(status != MT_OK)) {
        mt_node_release(node);
        return status;
    }
    if ((row->flags & MT_OP_VIEW) != 0) {
        keep_geometry(node, args[0].of.tensor);
    }
    for (uint32_t i = 0; i < n_outputs; i++) {
        mt__pack_meta(&f.metas, outputs[i]);
    }
    mt__node_set_stream(node);
    *out = node;
    if (MT_UNLIKELY(mt__anomaly_on())) {
        mt__anomaly_made(node);
    }
    return MT_OK;
}

/* Saves result i; `tensor` is the tensor to save. The version is the current one. */
static int save_result(mt_node *node, uint32_t i, mt_tensor *tensor)
{
    mt_value *saved = &node->of.op.results[i];
    MT_TRY(mt__alias(tensor, &saved->of.tensor));
    saved->kind = MT_KIND_TENSOR;
    node->of.op.versions[node->row->n_params + i] = mt__tensor_version(tensor);
    node->n_saved++;
    return MT_OK;
}

/* ---- ops that make new results --------------------------------------------------------------- */

enum {
    STACK_OUTPUTS = 8
};

static uint32_t count_outputs(const mt__call *call)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < call->row->n_results; i++) {
        const mt_value *result = &call->results[i];
        count += result->kind == MT_KIND_TENSORS ? result->count : 1;
    }
    return count;
}

/* Flat outputs: one place for each result, also where nothing or a number was given, so that the
 * formula's numbers are the schema's. Whether one of them can have a gradient. */
static bool list_outputs(const mt__call *call, mt_tensor **outputs)
{
    bool any = false;
    uint32_t n = 0;
    for (uint32_t i = 0; i < call->row->n_results; i++) {
        const mt_value *result = &call->results[i];
        bool list = result->kind == MT_KIND_TENSORS;
        mt_tensor *single = result->kind == MT_KIND_TENSOR ? result->of.tensor : NULL;
        uint32_t count = list ? result->count : 1;
        for (uint32_t k = 0; k < count; k++) {
            mt_tensor *output = list ? result->of.tensors[k] : single;
            any = any || (output != NULL && mt__tensor_category(output) >= MT_CATEGORY_REAL);
            outputs[n++] = output;
        }
    }
    return any;
}

/* `refs` counts the outputs attached so far: the first one gets the creator's own reference. */
static int tie_output(mt_node *node, uint32_t i, mt_tensor *output, uint32_t *refs)
{
    if (mt__tensor_category(output) < MT_CATEGORY_REAL || output->requires_grad) {
        return MT_OK; /* no gradient, or the op returned its input */
    }
    if (mt__meta_need(output) == NULL) {
        return MT_ENOMEM;
    }
    output->autograd->grad_fn = (*refs)++ == 0 ? node : mt_node_retain(node);
    output->autograd->output = i;
    output->requires_grad = true;
    if (MT_UNLIKELY((node->row->flags & MT_OP_VIEW) != 0)) {
        output->view_version = mt__tensor_version(output);
    }
    return MT_OK;
}

/* The node is taken in any case. */
static int record_outputs(mt__call *call, mt_node *take_node, mt_tensor *const *outputs,
                          uint32_t n_outputs)
{
    const mt__op_row *row = call->row;
    uint32_t saves = row->derivative->saves;
    uint32_t refs = 0;
    int status = MT_OK;
    for (uint32_t i = 0; i < row->n_results && status == MT_OK; i++) {
        const mt_value *result = &call->results[i];
        if ((saves >> 16 >> i & 1) != 0 && result->kind == MT_KIND_TENSOR) {
            status = save_result(take_node, i, result->of.tensor);
        } else if (result->kind >= MT_KIND_BOOL && result->kind <= MT_KIND_REAL) {
            take_node->of.op.results[i] = *result;
        }
    }
    for (uint32_t i = 0; i < n_outputs && status == MT_OK; i++) {
        status = outputs[i] == NULL ? MT_OK : tie_output(take_node, i, outputs[i], &refs);
        if (MT_UNLIKELY((row->flags & MT_OP_VIEW) != 0) &&
            call->results[0].kind == MT_KIND_TENSORS) {
            outputs[i]->view_flags |= MT_VIEW_MULTI;
        }
    }
    if (refs == 0) {
        mt_node_release(take_node);
        return status;
    }
    if (MT_UNLIKELY(mt__thread.pack != NULL) && status == MT_OK) {
        status = mt__node_pack(take_node, call->args);
    }
    return status;
}

static int record_new(mt__call *call)
{
    mt_tensor *stack_outputs[STACK_OUTPUTS];
    mt_tensor **outputs = stack_outputs;
    uint32_t n_outputs = count_outputs(call);
    if (n_outputs > STACK_OUTPUTS) {
        outputs = mtb_calloc(n_outputs, sizeof(mt_tensor *));
        if (outputs == NULL) {
            return mtb_fail(MT_ENOMEM, "%s(): no memory for a node of %u outputs", call->row->name,
                            n_outputs);
        }
    }
    mt_node *node = NULL;
    int status = MT_OK;
    if (list_outputs(call, outputs)) {
        status = mt__node_for_call(call->row, call->args, outputs, n_outputs, NULL, &node);
        if (status == MT_OK) {
            status = record_outputs(call, node, outputs, n_outputs);
        }
    }
    if (outputs != stack_outputs) {
        mtb_free(outputs);
    }
    return status;
}

/* ---- ops in place ---------------------------------------------------------------------------- */

static uint32_t wants_of(const mt__call *call)
{
    uint32_t wants = 0;
    for (uint32_t i = 0; i < call->row->n_params; i++) {
        const mt_value *arg = &call->args[i];
        bool needs = arg->kind == MT_KIND_TENSOR    ? mt__tensor_needs(arg->of.tensor)
                     : arg->kind == MT_KIND_TENSORS ? list_needs(arg)
                                                    : false;
        wants |= (uint32_t)needs << i;
    }
    return wants;
}

static int keep_self(const mt__call *call, mt__recording *recording)
{
    if ((saves_of(call->row->derivative, wants_of(call)) & MT_SAVE_ARG) == 0) {
        return MT_OK; /* RN3 */
    }
    mt__thread.below_autograd++;
    int status = mt_clone(call->args[0].of.tensor, &recording->kept_self);
    mt__thread.below_autograd--;
    return status;
}

/* RN2: creates the node, the wrapper and their links: all that `after` will need. */
static int prepare(const mt__call *call, mt__recording *recording)
{
    const mt__op_row *row = call->row;
    mt_tensor *self = call->args[0].of.tensor;
    mt_tensor *written = self->base != NULL ? self->base : self;
    MT_TRY(keep_self(call, recording));
    MT_TRY(mt__node_for_call(row, call->args, &self, 1, recording->kept_self, &recording->node));
    mt_node *node = recording->node;
    if ((row->derivative->saves & MT_SAVE_RESULT) != 0) {
        MT_TRY(save_result(node, 0, self));
    }
    if (self->base != NULL) {
        recording->node = NULL;
        MT_TRY(mt__slices_new(self, node, &recording->node));
    }
    mt__autograd *meta = mt__meta_need(written);
    if (meta == NULL) {
        return MT_ENOMEM;
    }
    if (meta->retains_grad) {
        mt__tap *tap = NULL;
        MT_TRY(mt__tap_new(recording->node, 0, &tap));
        mt__tap_release(tap); /* the node has it; `after` finds it there */
    }
    return MT_OK;
}

static int refuse_optimizer(const mt__call *call)
{
    for (uint32_t i = 0; i < call->row->n_params; i++) {
        const mt_value *arg = &call->args[i];
        if (mt__is_written_list(call, i) && list_needs(arg)) {
            return mtb_fail(MT_ERUNTIME, "a leaf Variable that requires grad is being used in an "
                                         "in-place operation.");
        }
    }
    return MT_OK;
}

/* Whether the op writes a tensor of inference mode outside of that mode. */
static bool writes_inference(const mt__call *call)
{
    if (mt__thread.inference != 0) {
        return false;
    }
    if ((call->row->flags & MT_OP_INPLACE) != 0) {
        return call->args[0].of.tensor->storage->inference;
    }
    for (uint32_t i = 0; i < call->row->n_params; i++) {
        const mt_value *arg = &call->args[i];
        for (uint32_t k = 0; mt__is_written_list(call, i) && k < arg->count; k++) {
            if (arg->of.tensors[k] != NULL && arg->of.tensors[k]->storage->inference) {
                return true;
            }
        }
    }
    return false;
}

int mt__autograd_before(mt__call *call, bool record, mt__recording *recording)
{
    recording->kept_self = NULL;
    recording->node = NULL;
    const mt__op_row *row = call->row;
    if ((row->flags & (MT_OP_INPLACE | MT_OP_OPTIMIZER)) == 0) {
        return MT_OK;
    }
    if (MT_UNLIKELY(writes_inference(call))) {
        return mtb_fail(MT_ERUNTIME,
                        "Inplace update to inference tensor outside InferenceMode is not allowed."
                        "You can make a clone to get a normal tensor before doing inplace update."
                        "See https://github.com/pytorch/rfcs/pull/17 for more details.");
    }
    if (mt__thread.grad_disabled) {
        return MT_OK;
    }
    if ((row->flags & MT_OP_OPTIMIZER) != 0) {
        return refuse_optimizer(call);
    }
    mt_tensor *self = call->args[0].of.tensor;
    if (!record && !mt__tensor_needs(self)) {
        return MT_OK;
    }
    MT_TRY(mt__inplace_check(row, self));
    if (!record) {
        return mtb_fail(MT_ENOTSUP, "the derivative for '%s' is not implemented", row->name);
    }
    if (mt__tensor_category(self) < MT_CATEGORY_REAL) {
        return MT_OK;
    }
    int status = prepare(call, recording);
    if (MT_UNLIKELY(status != MT_OK)) {
        mt__autograd_drop(recording);
    }
    return status;
}

/* Fails only if a pack function does (RN2). */
static int record_inplace(const mt__call *call, mt__recording *recording)
{
    mt_tensor *self = call->args[0].of.tensor;
    mt_node *node = recording->node;
    mt_node *inner = node->kind == MT_NODE_SLICES ? node->of.slices->inner : node;
    inner->of.op.versions[inner->row->n_params] = mt__tensor_version(self);
    /* A view's own node is stale now; it is rebuilt from the base when it is needed. */
    mt_tensor *written = self->base != NULL ? self->base : self;
    mt__tap *tap = node->taps;
    if (tap != NULL) {
        atomic_fetch_add_explicit(&tap->refs, 1, memory_order_relaxed);
    }
    mt__meta_tie(written, node, 0, tap);
    recording->node = NULL;
    mt__autograd_drop(recording);
    return MT_UNLIKELY(mt__thread.pack != NULL) ? mt__node_pack(inner, call->args) : MT_OK;
}

int mt__autograd_after(mt__call *call, mt__recording *recording)
{
    if ((call->row->flags & MT_OP_INPLACE) == 0) {
        return record_new(call);
    }
    return recording->node != NULL ? record_inplace(call, recording) : MT_OK;
}

void mt__autograd_drop(mt__recording *recording)
{
    mt_tensor_release(recording->kept_self);
    mt_node_release(recording->node);
    recording->kept_self = NULL;
    recording->node = NULL;
}
