/* SPDX-License-Identifier: Apache-2.0
 *
 * User-defined functions: forward runs outside of the graph and is represented by one node.
 *
 *   FN1  A call lives from forward until its node is freed, or until forward is over if nothing was
 *        recorded. Then the context is freed, exactly once, also after a failure.
 *   FN2  Saved inputs and outputs become aliases, so that the call is not part of a reference
 *        cycle; backward gets them with their place in it.
 *   FN3  An output that is an input, or a view, may not be written later: the write would bypass
 *        the node.
 */
#include "base/alloc.h"
#include "base/struct_size.h"
#include "mindtorch/autograd/engine/evaluate.h"
#include "mindtorch/autograd/graph/anomaly.h"
#include "mindtorch/autograd/graph/function_call.h"
#include "mindtorch/autograd/graph/saved_tensors.h"
#include "mindtorch/core/thread/thread_state.h"

#include <string.h>

/* Where a saved tensor comes from. */
typedef enum origin {
    FROM_ELSEWHERE,
    FROM_INPUT,
    FROM_OUTPUT
} origin;

typedef struct saved {
    mt_tensor *tensor;
    mt__packed *packed; /* instead of the tensor, if somebody packs them */
    uint32_t version;
    uint32_t index; /* of the input or output */
    origin from;
} saved;

struct mt_function_call {
    mt_function function;
    void *context;
    char *name;
    mt_node *node; /* not retained: it holds us */
    saved *saves;
    size_t n_saves;
    size_t capacity;
    mt_tensor **dirty; /* inputs that forward has changed, retained until apply ends */
    size_t n_dirty, dirty_capacity;
};

const char *mt__function_call_name(const mt_function_call *call)
{
    return call->name;
}

static void drop_saves(mt_function_call *call)
{
    for (size_t i = 0; i < call->n_saves; i++) {
        mt_tensor_release(call->saves[i].tensor);
        call->saves[i].tensor = NULL;
        mt__packed_release(call->saves[i].packed);
        call->saves[i].packed = NULL;
    }
}

static void drop_dirty(mt_function_call *call)
{
    for (size_t i = 0; i < call->n_dirty; i++) {
        mt_tensor_release(call->dirty[i]);
    }
    mtb_free(call->dirty);
    call->dirty = NULL;
    call->n_dirty = 0;
}

void mt__function_release_saved(mt_function_call *call)
{
    mt__node_lock(call->node);
    bool first = !call->node->released;
    call->node->released = true; /* from here on they are not read any more */
    mt__node_unlock(call->node);
    if (first) {
        drop_saves(call);
    }
}

void mt__function_call_free(mt_function_call *call)
{
    if (call == NULL) {
        return;
    }
    drop_saves(call);
    drop_dirty(call);
    if (call->function.free_context != NULL) {
        call->function.free_context(call->context);
    }
    mtb_free(call->saves);
    mtb_free(call->name);
    mtb_free(call);
}

static int call_status(const mt_function_call *call, const char *part, int status)
{
    return status <= 0 ? status
                       : mtb_fail(MT_ECALLBACK, "%s: %s returned %d", call->name, part, status);
}

int mt__function_backward(mt_function_call *call, mt_tensor *const *grads, uint32_t n_grads,
                          mt_tensor **grads_in, uint32_t n_inputs)
{
    int status = call->function.backward(call->context, call, grads, n_grads, grads_in, n_inputs);
    return call_status(call, "backward", status);
}

/* ---- saved tensors --------------------------------------------------------------------------- */

mt_status mt_function_save(mt_function_call *call, mt_tensor *tensor)
{
    if (tensor == NULL) {
        return mtb_fail(MT_EVALUE, "%s: save: the tensor must be given", call->name);
    }
    if (tensor->storage->inference && mt__thread.inference == 0) {
        return mt__refuse_inference();
    }
    if (!mtb_grow((void **)&call->saves, &call->capacity, call->n_saves + 1, sizeof(saved))) {
        return mtb_fail(MT_ENOMEM, "%s: no memory to save a tensor", call->name);
    }
    call->saves[call->n_saves++] =
        (saved){.tensor = mt_tensor_retain(tensor), .version = mt_tensor_version(tensor)};
    return MT_OK;
}

/* The saved tensor, held, or what it was packed to; both NULL: released. */
static mt_tensor *hold(mt_function_call *call, size_t index, mt__packed **packed)
{
    if (call->node == NULL) {
        return mt_tensor_retain(call->saves[index].tensor); /* still in forward */
    }
    mt_tensor *tensor = NULL;
    mt__node_lock(call->node);
    if (!call->node->released) {
        tensor = mt_tensor_retain(call->saves[index].tensor);
        *packed = mt__packed_retain(call->saves[index].packed);
    }
    mt__node_unlock(call->node);
    return tensor;
}

mt_status mt_function_get_saved(mt_function_call *call, size_t index, mt_tensor **out)
{
    *out = NULL;
    if (index >= call->n_saves) {
        return mtb_fail(MT_EINDEX, "%s: saved tensor %zu of %zu", call->name, index, call->n_saves);
    }
    mt__packed *packed = NULL;
    mt_tensor *tensor = hold(call, index, &packed);
    if (packed != NULL) {
        int unpacked = mt__unpack(packed, &tensor);
        mt__packed_release(packed);
        MT_TRY(unpacked);
    }
    if (tensor == NULL) {
        return mt__refuse_twice();
    }
    const saved *save = &call->saves[index];
    mt__edge edge = {NULL, 0};
    if (save->from == FROM_INPUT) {
        edge = call->node->edges[save->index];
    } else if (save->from == FROM_OUTPUT) {
        edge = (mt__edge){call->node, save->index};
    }
    int status = packed == NULL && mt_tensor_version(tensor) != save->version
                     ? mt__refuse_version(tensor, save->version, &edge)
                     : mt__place_at(&tensor, &edge); /* FN2 */
    if (status == MT_OK) {
        *out = tensor;
        return MT_OK;
    }
    mt_tensor_release(tensor);
    return status;
}

static bool is_dirty(const mt_function_call *call, const mt_tensor *tensor)
{
    for (size_t i = 0; i < call->n_dirty; i++) {
        if (call->dirty[i] == tensor) {
            return true;
        }
    }
    return false;
}

static int settle_save(saved *save, uint32_t index, origin from)
{
    save->index = index;
    save->from = from;
    mt_tensor *tensor = save->tensor;
    if (tensor->requires_grad && tensor->autograd->grad_fn == NULL && tensor->base == NULL) {
        return MT_OK; /* a leaf, which cannot be written in grad mode */
    }
    mt_tensor *alias = NULL;
    MT_TRY(mt__alias(tensor, &alias));
    mt_tensor_release(tensor);
    save->tensor = alias;
    return MT_OK;
}

/* FN2, after forward, when the outputs are known. */
static int settle_saves(mt_function_call *call, mt_tensor *const *inputs, size_t n_inputs,
                        mt_tensor *const *outputs, size_t n_outputs)
{
    for (size_t i = 0; i < call->n_saves; i++) {
        saved *save = &call->saves[i];
        origin from = FROM_ELSEWHERE;
        bool dirty = is_dirty(call, save->tensor); /* an output, and changed since */
        save->version = dirty ? mt_tensor_version(save->tensor) : save->version;
        size_t k = 0;
        while (k < n_inputs && (dirty || inputs[k] != save->tensor)) {
            k++;
        }
        from = k < n_inputs ? FROM_INPUT : FROM_ELSEWHERE;
        if (from == FROM_ELSEWHERE) {
            for (k = 0; k < n_outputs && outputs[k] != save->tensor;) {
                k++;
            }
            from = k < n_outputs ? FROM_OUTPUT : FROM_ELSEWHERE;
        }
        if (from != FROM_ELSEWHERE) {
            MT_TRY(settle_save(save, (uint32_t)k, from));
        }
    }
    return MT_OK;
}

/* PK1, when the outputs are tied: pack functions see them with their node. */
static int pack_saves(mt_function_call *call, mt_tensor *const *inputs)
{
    for (size_t i = 0; i < call->n_saves; i++) {
        saved *save = &call->saves[i];
        mt_tensor *given =
            mt_tensor_retain(save->from == FROM_INPUT ? inputs[save->index] : save->tensor);
        mt__edge self = {call->node, save->index};
        int status = save->from == FROM_OUTPUT ? mt__place_at(&given, &self) : MT_OK;
        if (status == MT_OK) {
            status = mt__pack(given, &save->packed);
        }
        mt_tensor_release(given);
        MT_TRY(status);
        mt_tensor_release(save->tensor);
        save->tensor = NULL;
    }
    return MT_OK;
}

/* ---- apply ----------------------------------------------------------------------------------- */

/* One application, so that its parts need few parameters. */
typedef struct applying {
    mt_function_call *call;
    mt_tensor *const *inputs;
    size_t n_inputs;
    mt_tensor **outputs;
    size_t n_outputs;
} applying;

static int make_node(const applying *a, mt_node **out)
{
    mt__node_plan plan = {.kind = MT_NODE_FUNCTION,
                          .n_inputs = (uint32_t)a->n_inputs,
                          .n_outputs = (uint32_t)a->n_outputs};
    for (size_t i = 0; i < a->n_inputs; i++) {
        plan.meta_bytes += mt__packed_bytes(a->inputs[i] == NULL ? 0 : a->inputs[i]->n_dims);
    }
    for (size_t i = 0; i < a->n_outputs; i++) {
        plan.meta_bytes += mt__packed_bytes(a->outputs[i]->n_dims);
    }
    char *extra = NULL;
    MT_TRY(mt__node_new(&plan, out, &extra));
    mt_node *node = *out;
    char *metas = (char *)(uintptr_t)node->metas;
    for (size_t i = 0; i < a->n_inputs; i++) {
        mt__pack_meta(&metas, a->inputs[i]);
    }
    for (size_t i = 0; i < a->n_outputs; i++) {
        mt__pack_meta(&metas, a->outputs[i]);
    }
    mt__node_set_stream(node);
    for (size_t i = 0; i < a->n_inputs; i++) {
        if (a->inputs[i] != NULL) {
            MT_TRY(mt__edge_of(a->inputs[i], &node->edges[i]));
        }
    }
    return MT_OK;
}

/* FN3: an output that is not a new tensor is replaced by a new one. */
static int own_output(const applying *a, size_t i)
{
    mt_tensor *output = a->outputs[i];
    bool shared = mt__tensor_needs(output) && output->base == NULL;
    for (size_t k = 0; k < a->n_inputs && !shared; k++) {
        shared = a->inputs[k] == output;
    }
    for (size_t k = 0; k < i && !shared; k++) {
        shared = a->outputs[k] == output;
    }
    if (shared) {
        mt_tensor *view = NULL;
        MT_TRY(mt__tensor_view(output, output->sizes, output->strides, output->n_dims,
                               output->offset, true, &view));
        mt_tensor_release(output);
        a->outputs[i] = view;
        output = view;
    }
    if (output->base != NULL) {
        output->view_flags = MT_VIEW_FUNCTION;
        output->view_version = mt_tensor_version(output);
    }
    return MT_OK;
}

mt_status mt_function_mark_dirty(mt_function_call *call, mt_tensor *tensor)
{
    if (tensor == NULL) {
        return mtb_fail(MT_EVALUE, "%s: mark_dirty: the tensor must be given", call->name);
    }
    if (!mtb_grow((void **)&call->dirty, &call->dirty_capacity, call->n_dirty + 1,
                  sizeof(mt_tensor *))) {
        return mtb_fail(MT_ENOMEM, "%s: no memory to mark a tensor", call->name);
    }
    call->dirty[call->n_dirty++] = mt_tensor_retain(tensor);
    return MT_OK;
}

/* What forward has changed must be an output, and may not be a leaf that needs a gradient. */
static int check_dirty(const applying *a, bool graph)
{
    const mt_function_call *call = a->call;
    for (size_t i = 0; i < call->n_dirty; i++) {
        mt_tensor *dirty = call->dirty[i];
        size_t k = 0;
        while (k < a->n_outputs && a->outputs[k] != dirty) {
            k++;
        }
        if (k == a->n_outputs) {
            return mtb_fail(MT_ERUNTIME,
                            "Some elements marked as dirty during the forward method were not "
                            "returned as output. The inputs that are modified inplace must all be "
                            "outputs of the Function.");
        }
        if (graph && dirty->base != NULL && mt__tensor_needs(dirty)) {
            return mtb_fail(MT_ENOTSUP, "%s: mark_dirty: an input that is a view cannot be changed",
                            call->name);
        }
        if (graph && dirty->requires_grad && dirty->autograd->grad_fn == NULL) {
            return mtb_fail(MT_ERUNTIME, "a leaf Variable that requires grad has been used in an "
                                         "in-place operation.");
        }
        mt__tensor_bump(dirty);
    }
    return MT_OK;
}

void *mt_node_function_context(const mt_node *node, mt_function_call **call)
{
    *call = node->kind == MT_NODE_FUNCTION ? node->of.call : NULL;
    return *call == NULL ? NULL : (*call)->context;
}

static int tie_outputs(const applying *a, mt_node *node)
{
    for (size_t i = 0; i < a->n_outputs; i++) {
        mt_tensor *output = a->outputs[i];
        if (mt__tensor_category(output) < MT_CATEGORY_REAL) {
            continue;
        }
        if (!is_dirty(a->call, output)) {
            MT_TRY(own_output(a, i));
        }
        output = a->outputs[i];
        if (mt__meta_need(output) == NULL) {
            return MT_ENOMEM;
        }
        mt__meta_tie(output, mt_node_retain(node), (uint32_t)i, NULL);
        output->requires_grad = true;
    }
    return MT_OK;
}

/* The call belongs to the node from here on, or is freed by it. */
static int record(const applying *a)
{
    mt_node *node = NULL;
    int status = make_node(a, &node);
    if (node == NULL) {
        mt__function_call_free(a->call);
        return status;
    }
    node->of.call = a->call;
    node->n_saved = (uint32_t)a->call->n_saves;
    a->call->node = node;
    if (status == MT_OK) {
        status = settle_saves(a->call, a->inputs, a->n_inputs, a->outputs, a->n_outputs);
    }
    if (status == MT_OK) {
        status = tie_outputs(a, node);
    }
    if (status == MT_OK && mt__thread.pack != NULL) {
        status = pack_saves(a->call, a->inputs);
    }
    drop_dirty(a->call);
    if (MT_UNLIKELY(mt__anomaly_on())) {
        mt__anomaly_made(node);
    }
    mt_node_release(node);
    return status;
}

static int run_forward(const applying *a)
{
    mt_function_call *call = a->call;
    bool disabled = mt__thread.grad_disabled;
    mt__thread.grad_disabled = true;
    int status = call->function.forward(call->context, call, a->inputs, a->n_inputs, a->outputs,
                                        a->n_outputs);
    mt__thread.grad_disabled = disabled;
    MT_TRY(call_status(call, "forward", status));
    for (size_t i = 0; i < a->n_outputs; i++) {
        if (a->outputs[i] == NULL) {
            return mtb_fail(MT_EVALUE, "%s: forward gave no output %zu", call->name, i);
        }
    }
    return MT_OK;
}

static bool any_needs(const applying *a)
{
    for (size_t i = 0; i < a->n_inputs; i++) {
        if (a->inputs[i] != NULL && mt__tensor_needs(a->inputs[i])) {
            return true;
        }
    }
    return false;
}

static int new_call(const mt_function *function, void *context, mt_function_call **out)
{
    size_t least = offsetof(mt_function, free_context);
    *out = NULL;
    if (function == NULL || function->struct_size < least || function->name == NULL ||
        function->forward == NULL || function->backward == NULL) {
        return mtb_fail(MT_EVALUE, "function_apply(): struct_size, name, forward and backward must "
                                   "be set");
    }
    mt_function_call *call = mtb_calloc(1, sizeof(*call));
    char *name = call == NULL ? NULL : mtb_copy_text(function->name, strlen(function->name));
    if (name == NULL) {
        mtb_free(call);
        return mtb_fail(MT_ENOMEM, "function_apply(): no memory for a call of %s", function->name);
    }
    mtb_read_struct(&call->function, function);
    call->name = name;
    call->context = context;
    *out = call;
    return MT_OK;
}

static void release_outputs(const applying *a)
{
    for (size_t i = 0; i < a->n_outputs; i++) {
        mt_tensor_release(a->outputs[i]);
        a->outputs[i] = NULL;
    }
}

mt_status mt_function_apply(const mt_function *function, void *context, mt_tensor *const *inputs,
                            size_t n_inputs, mt_tensor **outputs, size_t n_outputs)
{
    applying a = {
        .inputs = inputs, .n_inputs = n_inputs, .outputs = outputs, .n_outputs = n_outputs};
    for (size_t i = 0; i < n_outputs; i++) {
        outputs[i] = NULL;
    }
    int status = new_call(function, context, &a.call);
    if (a.call == NULL) {
        if (function != NULL && function->struct_size >= sizeof(mt_function) &&
            function->free_context != NULL) {
            function->free_context(context); /* FN1 */
        }
        return status;
    }
    bool graph = !mt__thread.grad_disabled && mt__thread.below_autograd == 0 && any_needs(&a);
    status = run_forward(&a);
    if (status == MT_OK && a.call->n_dirty != 0) {
        status = check_dirty(&a, graph);
    }
    if (status == MT_OK && graph) {
        status = record(&a);
    } else {
        mt__function_call_free(a.call);
    }
    if (status != MT_OK) {
        release_outputs(&a);
    }
    return status;
}
