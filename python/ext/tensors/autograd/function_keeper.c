/* SPDX-License-Identifier: Apache-2.0
 *
 * Cycles through nodes, see function_keeper.h.
 */
#include "tensors/autograd/function_keeper.h"

#include <stdatomic.h>

/* The attribute _backward_function of an output. */
struct function_keeper {
    PyObject_HEAD function_context *ctx;
    mt_tensor *tensor; /* one reference */
    uint32_t others;   /* keepers of the tensor of another sort (autograd_hooks.c) */
};

static PyTypeObject *keeper_type;

enum {
    SEARCH_DEPTH = 4, /* nodes; further ones are not looked at, and their cycles stay */
    SEARCH_WIDTH = 8
};

bool keepers_own(const mt_tensor *tensor, uint32_t others)
{
    enum {
        OURS = 2 /* the tensor object's and a keeper's */
    };
    return mt_tensor_host(tensor) != NULL && mt_tensor_use_count(tensor) == OURS + others;
}

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

/* FK1: whether the keeper is the one that visits ctx for the node. */
static bool speaks_for_node(const function_keeper *keeper)
{
    const function_context *ctx = keeper->ctx;
    const mt_node *node = atomic_load_explicit(&ctx->node, memory_order_acquire);
    const function_keeper *first = NULL;
    uint32_t holders = 0;
    for (Py_ssize_t i = 0; node != NULL && i < ctx->n_outputs; i++) {
        const function_keeper *other = ctx->keepers[i];
        if (other == NULL) {
            continue;
        }
        if (!keepers_own(other->tensor, other->others)) {
            return false;
        }
        first = first == NULL ? other : first;
        holders += held_through(mt_tensor_grad_fn(other->tensor), node, SEARCH_DEPTH);
    }
    return first == keeper && holders > 0 && mt_node_use_count(node) == holders;
}

static int keeper_traverse(PyObject *self, visitproc visit, void *arg)
{
    function_keeper *keeper = (function_keeper *)self;
    Py_VISIT(Py_TYPE(self));
    if (keeper->ctx != NULL) {
        if (speaks_for_node(keeper)) {
            Py_VISIT(keeper->ctx);
        }
        Py_VISIT(keeper->ctx);
    }
    return 0;
}

static void keeper_dealloc(PyObject *self)
{
    function_keeper *keeper = (function_keeper *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t i = 0; keeper->ctx != NULL && i < keeper->ctx->n_outputs; i++) {
        if (keeper->ctx->keepers[i] == keeper) {
            keeper->ctx->keepers[i] = NULL; /* FK2 */
        }
    }
    Py_CLEAR(keeper->ctx);
    mt_tensor_release(keeper->tensor);
    type->tp_free(self);
    Py_DECREF(type);
}

/* No tp_clear: ctx's own breaks the cycle. */
static PyType_Slot keeper_slots[] = {
    {Py_tp_dealloc, keeper_dealloc},
    {Py_tp_traverse, keeper_traverse},
    {0, NULL},
};

static PyType_Spec keeper_spec = {
    .name = "mindtorch_v2._C._FunctionKeeper",
    .basicsize = sizeof(function_keeper),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = keeper_slots,
};

static int keep_output(function_context *ctx, Py_ssize_t index, PyObject *output)
{
    mt_tensor *tensor = tensor_of(output);
    if (mt_tensor_is_view(tensor)) {
        return 0; /* its node may be another one each time */
    }
    function_keeper *keeper = (function_keeper *)keeper_type->tp_alloc(keeper_type, 0);
    if (keeper == NULL) {
        return -1;
    }
    keeper->ctx = (function_context *)Py_NewRef((PyObject *)ctx);
    keeper->tensor = mt_tensor_retain(tensor);
    ctx->keepers[index] = keeper;
    atomic_store_explicit(&ctx->node, mt_tensor_grad_fn(tensor), memory_order_release);
    int status = PyObject_SetAttrString(output, "_backward_function", (PyObject *)keeper);
    Py_DECREF(keeper);
    return status;
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
    PyObject *known = PyObject_GetAttrString(tensor, "_backward_function");
    uint32_t count = 0;
    if (known != NULL && Py_IS_TYPE(known, keeper_type) &&
        ((function_keeper *)known)->tensor == tensor_of(tensor)) {
        ((function_keeper *)known)->others = 1;
        count = 1;
    }
    Py_XDECREF(known);
    PyErr_Clear();
    return count;
}

py_part function_keeper_part;
int function_keeper_part(PyObject *module)
{
    return py_add_type(module, &keeper_spec, NULL, NULL, &keeper_type);
}
