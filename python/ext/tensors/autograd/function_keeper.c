/* SPDX-License-Identifier: Apache-2.0
 *
 * Cycles through nodes, see function_keeper.h.
 */
#include "tensors/autograd/function_keeper.h"

#include <stdatomic.h>

static PyTypeObject *keeper_type;

enum {
    SEARCH_DEPTH = 4, /* nodes; further ones are not looked at, and their cycles stay */
    SEARCH_WIDTH = 8
};

/* ---- keepers of any sort --------------------------------------------------------------------- */

bool keeper_owns(const tensor_keeper *keeper)
{
    enum {
        OURS = 2 /* the tensor object's and the keeper's */
    };
    return mt_tensor_host(keeper->tensor) != NULL &&
           mt_tensor_use_count(keeper->tensor) == OURS + keeper->others;
}

static int keeper_traverse(PyObject *self, visitproc visit, void *arg)
{
    tensor_keeper *keeper = (tensor_keeper *)self;
    Py_VISIT(Py_TYPE(self));
    if (keeper->held != NULL) {
        for (uint32_t i = keeper->sort->hidden(keeper); i > 0; i--) {
            Py_VISIT(keeper->held);
        }
        Py_VISIT(keeper->held);
    }
    return 0;
}

static void keeper_dealloc(PyObject *self)
{
    tensor_keeper *keeper = (tensor_keeper *)self;
    PyObject_GC_UnTrack(self);
    if (keeper->sort->end != NULL) {
        keeper->sort->end(keeper);
    }
    Py_CLEAR(keeper->held);
    mt_tensor_release(keeper->tensor);
    py_free(self);
}

/* No tp_clear: that of what is held breaks the cycle. */
static PyType_Slot keeper_slots[] = {
    {Py_tp_dealloc, keeper_dealloc},
    {Py_tp_traverse, keeper_traverse},
    {0, NULL},
};

static PyType_Spec keeper_spec = {
    .name = "mindtorch_v2._C._TensorKeeper",
    .basicsize = sizeof(tensor_keeper),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = keeper_slots,
};

tensor_keeper *keeper_find(PyObject *tensor, const keeper_sort *sort)
{
    tensor_keeper *known = (tensor_keeper *)PyObject_GetAttrString(tensor, sort->attribute);
    if (known == NULL || !Py_IS_TYPE(known, keeper_type) || known->sort != sort ||
        known->tensor != tensor_of(tensor)) {
        Py_CLEAR(known);
        PyErr_Clear();
    }
    return known;
}

tensor_keeper *keeper_new(PyObject *tensor, const keeper_sort *sort, PyObject *held)
{
    tensor_keeper *keeper = (tensor_keeper *)keeper_type->tp_alloc(keeper_type, 0);
    if (keeper == NULL) {
        return NULL;
    }
    keeper->sort = sort;
    keeper->held = Py_NewRef(held);
    keeper->tensor = mt_tensor_retain(tensor_of(tensor));
    if (PyObject_SetAttrString(tensor, sort->attribute, (PyObject *)keeper) != 0) {
        Py_CLEAR(keeper);
    }
    return keeper;
}

/* ---- keepers of functions -------------------------------------------------------------------- */

/* References to `node` that are held through `from` alone: itself, or nodes that have no other
 * holder, such as the node of an output that was written in place. */
static uint32_t held_through(mt_node *from, const mt_node *node, int depth)
{
    if (from == node) {
        return 1;
    }
    uint32_t count = 0;
    if (from != NULL && depth > 0 && mt_node_use_count(from) == 1) {
        uint32_t n = mt_node_n_next(from);
        for (uint32_t i = 0; i < n && i < SEARCH_WIDTH; i++) {
            count += held_through(mt_node_next(from, i), node, depth - 1);
        }
    }
    return count;
}

/* FK1: 1 if the keeper is the one that visits ctx for the node. */
static uint32_t speaks_for_node(const tensor_keeper *keeper)
{
    const function_context *ctx = (function_context *)keeper->held;
    const mt_node *node = atomic_load_explicit(&ctx->node, memory_order_acquire);
    const tensor_keeper *first = NULL;
    uint32_t holders = 0;
    for (Py_ssize_t i = 0; node != NULL && i < ctx->n_outputs; i++) {
        const tensor_keeper *other = ctx->keepers[i];
        if (other == NULL) {
            continue;
        }
        if (!keeper_owns(other)) {
            return 0;
        }
        first = first == NULL ? other : first;
        holders += held_through(mt_tensor_grad_fn(other->tensor), node, SEARCH_DEPTH);
    }
    return first == keeper && holders > 0 && mt_node_use_count(node) == holders ? 1 : 0;
}

static void leave_context(tensor_keeper *keeper)
{
    const function_context *ctx = (function_context *)keeper->held;
    for (Py_ssize_t i = 0; i < ctx->n_outputs; i++) {
        if (ctx->keepers[i] == keeper) {
            ctx->keepers[i] = NULL; /* FK2 */
        }
    }
}

static const keeper_sort of_functions = {"_backward_function", speaks_for_node, leave_context};

static int keep_output(function_context *ctx, Py_ssize_t index, PyObject *output)
{
    mt_tensor *tensor = tensor_of(output);
    if (mt_tensor_is_view(tensor)) {
        return 0; /* its node may be another one each time */
    }
    tensor_keeper *keeper = keeper_new(output, &of_functions, (PyObject *)ctx);
    if (keeper == NULL) {
        return -1;
    }
    ctx->keepers[index] = keeper;
    atomic_store_explicit(&ctx->node, mt_tensor_grad_fn(tensor), memory_order_release);
    Py_DECREF(keeper); /* the output has it */
    return 0;
}

int function_keep(function_context *ctx, PyObject *outputs)
{
    if (ctx->dict == NULL || PyDict_GET_SIZE(ctx->dict) == 0) {
        return 0; /* FK3 */
    }
    ctx->keepers = PyMem_Calloc((size_t)ctx->n_outputs + 1, sizeof(*ctx->keepers));
    if (ctx->keepers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < ctx->n_outputs; i++) {
        if (ctx->outputs[i].slot >= 0 && keep_output(ctx, i, PyTuple_GET_ITEM(outputs, i)) != 0) {
            return -1;
        }
    }
    return 0;
}

uint32_t function_keeper_joins(PyObject *tensor)
{
    tensor_keeper *known = keeper_find(tensor, &of_functions);
    if (known == NULL) {
        return 0;
    }
    known->others = 1;
    Py_DECREF(known);
    return 1;
}

py_part function_keeper_part;
int function_keeper_part(PyObject *module)
{
    return py_add_type(module, &keeper_spec, NULL, NULL, &keeper_type);
}
