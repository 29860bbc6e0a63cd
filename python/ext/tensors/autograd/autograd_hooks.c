/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks of tensors: Python callables that the engine calls, with the GIL taken for the call.
 *
 *     tensor object ──dict──► keeper ──► hooks ──► callables ──(a closure)──► tensor object
 *          └──► mt_tensor ◄─────┘          ▲
 *                  └──► hook ──context─────┘
 *
 *     _add_hook(tensor, callable) / _add_accumulate_hook(tensor, callable) -> (hooks, handle)
 *     _remove_hook(hooks, handle, tensor or None)
 *
 *   HK1  Callables are owned by the hooks object alone. The library's contexts hold that object, so
 *        hooks outlive the tensor's Python object as long as a graph holds the mt_tensor.
 *   HK2  What the contexts hold is no outside reference if the mt_tensor belongs to the Python
 *        object and its keeper alone: then the cycle above is garbage when the tensor object has
 *        no other holder. The keeper, which lives as long as the tensor's attributes, shows this to
 *        the collector by visiting the hooks once for each context. Hooks of tensors that are no
 *        leaves belong to their node too, which graphs hold without the tensor: only while none
 *        does (mt_tensor_owns_hooks).
 *   HK3  A context is counted (`contexts`) until the library frees it, which is before its
 *        reference is dropped: HK2 never claims more than there is.
 */
#include "tensors/autograd/function_keeper.h"
#include "tensors/autograd/node_parts.h"
#include "tensors/data/data_parts.h"
#include "tensors/data/element_codec.h"
#include "tensors/interop/late_release.h"

#include <stdatomic.h>
#include <stddef.h>
#include <structmember.h>

typedef struct hooks_object {
    PyObject_HEAD PyObject *weak;
    PyObject *callables; /* a dict: handle -> callable; NULL once it was cleared */
    _Atomic uint32_t contexts;
} hooks_object;

typedef struct hook_context {
    late_item item;
    hooks_object *hooks;
    PyObject *handle; /* the key in `callables`; NULL until it is known */
} hook_context;

static PyTypeObject *hooks_type;

/* ---- hooks ----------------------------------------------------------------------------------- */

static int hooks_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((hooks_object *)self)->callables);
    return 0;
}

static int hooks_clear(PyObject *self)
{
    Py_CLEAR(((hooks_object *)self)->callables);
    return 0;
}

static void hooks_dealloc(PyObject *self)
{
    hooks_object *hooks = (hooks_object *)self;
    PyObject_GC_UnTrack(self);
    if (hooks->weak != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    Py_CLEAR(hooks->callables);
    py_free(self);
}

static PyMemberDef hooks_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(hooks_object, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot hooks_slots[] = {
    {Py_tp_dealloc, hooks_dealloc},
    {Py_tp_traverse, hooks_traverse},
    {Py_tp_clear, hooks_clear},
    {Py_tp_members, hooks_members},
    {0, NULL},
};

static PyType_Spec hooks_spec = {
    .name = "mindtorch_v2._C._TensorHooks",
    .basicsize = sizeof(hooks_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = hooks_slots,
};

/* ---- keepers --------------------------------------------------------------------------------- */

/* HK2: how many references of contexts belong to the tensor object alone. */
static uint32_t own_references(const tensor_keeper *keeper)
{
    if (!keeper_owns(keeper) || !mt_tensor_owns_hooks(keeper->tensor)) {
        return 0;
    }
    return atomic_load_explicit(&((hooks_object *)keeper->held)->contexts, memory_order_acquire);
}

static const keeper_sort of_hooks = {"_backward_hooks", own_references, NULL};

/* New hooks, and their keeper: a new reference. NULL: exception. */
static tensor_keeper *hooks_new(PyObject *tensor)
{
    hooks_object *hooks = (hooks_object *)hooks_type->tp_alloc(hooks_type, 0);
    if (hooks == NULL) {
        return NULL;
    }
    tensor_keeper *keeper = NULL;
    hooks->callables = PyDict_New();
    if (hooks->callables != NULL) {
        keeper = keeper_new(tensor, &of_hooks, (PyObject *)hooks);
    }
    if (keeper != NULL) {
        keeper->others = function_keeper_joins(tensor);
    }
    Py_DECREF(hooks);
    return keeper;
}

/* The tensor's hooks, made if need be; a new reference. NULL: exception. */
static hooks_object *hooks_of(PyObject *tensor)
{
    tensor_keeper *known = keeper_find(tensor, &of_hooks);
    if (known == NULL) {
        known = hooks_new(tensor);
    }
    if (known == NULL) {
        return NULL;
    }
    hooks_object *hooks = (hooks_object *)Py_NewRef(known->held);
    Py_DECREF(known);
    return hooks;
}

/* ---- calls from the engine ------------------------------------------------------------------- */

static int failed_callback(void)
{
    py_error_keep();
    return mt_fail(MT_ECALLBACK, "a Python callback raised");
}

/* The callable, a new reference; NULL: it was removed, or an exception is set. */
static PyObject *callable_of(const hook_context *context)
{
    PyObject *callables = context->hooks->callables;
    if (callables == NULL || context->handle == NULL) {
        return NULL;
    }
    return Py_XNewRef(PyDict_GetItemWithError(callables, context->handle));
}

/* The name a message gives a hook: a new reference, never NULL. */
static PyObject *name_of(PyObject *hook)
{
    PyObject *name = PyObject_GetAttrString(hook, "__name__");
    if (name == NULL) {
        PyErr_Clear();
        name = PyObject_Repr(hook);
    }
    if (name == NULL) {
        PyErr_Clear();
        name = Py_NewRef(Py_None);
    }
    return name;
}

/* A hook's gradient must match the one it replaces. -1: exception. */
static int check_replacement(PyObject *hook, const mt_tensor *was, const mt_tensor *got)
{
    bool type = mt_tensor_dtype(was) != mt_tensor_dtype(got);
    if (!type && tensor_same_sizes(was, got)) {
        return 0;
    }
    PyObject *name = name_of(hook);
    if (type) {
        PyErr_Format(PyExc_RuntimeError, "hook '%S' has changed the type of value (was %s got %s)",
                     name, element_type_title(mt_tensor_dtype(was)),
                     element_type_title(mt_tensor_dtype(got)));
    } else {
        PyErr_Format(PyExc_RuntimeError, "hook '%S' has changed the size of value", name);
    }
    Py_DECREF(name);
    return -1;
}

/* What a hook returned: None, or a gradient to replace the old one; only None from hooks of leaves.
 * */
static int take_result(PyObject *hook, PyObject *result, const mt_tensor *given,
                       mt_tensor **replacement)
{
    if (result == Py_None) {
        return MT_OK;
    }
    if (!tensor_check(result)) {
        PyErr_Format(PyExc_TypeError, "expected Variable, but hook returned '%.100s'",
                     Py_TYPE(result)->tp_name);
        return failed_callback();
    }
    if (replacement == NULL) {
        PyErr_SetString(PyExc_RuntimeError,
                        "Tensor post accumulate grad hooks should return None.");
        return failed_callback();
    }
    if (check_replacement(hook, given, tensor_of(result)) != 0) {
        return failed_callback();
    }
    *replacement = mt_tensor_retain(tensor_of(result));
    return MT_OK;
}

/* With a gradient, or with the leaf (`replacement` NULL). */
static int call_hook(const hook_context *context, mt_tensor *given, mt_tensor **replacement)
{
    if (!Py_IsInitialized()) { /* a daemon's backward that outlives the interpreter */
        return mt_fail(MT_ECALLBACK, "backward(): the interpreter has ended");
    }
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *hook = callable_of(context);
    int status = MT_OK;
    if (hook != NULL) {
        PyObject *tensor = tensor_wrap_borrowed(given);
        PyObject *result = tensor == NULL ? NULL : PyObject_CallOneArg(hook, tensor);
        status = result == NULL ? failed_callback() : take_result(hook, result, given, replacement);
        Py_XDECREF(result);
        Py_XDECREF(tensor);
        Py_DECREF(hook);
    } else if (PyErr_Occurred()) {
        status = failed_callback();
    }
    PyGILState_Release(state);
    return status;
}

static int on_grad(void *context, mt_tensor *grad, mt_tensor **replacement)
{
    return call_hook(context, grad, replacement);
}

static int on_leaf(void *context, mt_tensor *leaf)
{
    return call_hook(context, leaf, NULL);
}

/* ---- adding and removing --------------------------------------------------------------------- */

static void drop_context(late_item *item)
{
    hook_context *context = (hook_context *)item;
    if (context->handle != NULL && context->hooks->callables != NULL &&
        PyDict_DelItem(context->hooks->callables, context->handle) != 0) {
        PyErr_Clear(); /* removed before */
    }
    Py_XDECREF(context->handle);
    Py_DECREF(context->hooks);
    PyMem_RawFree(context);
}

static void free_context(void *given)
{
    hook_context *context = given;
    atomic_fetch_sub_explicit(&context->hooks->contexts, 1, memory_order_release); /* HK3 */
    late_release(&context->item);
}

static hook_context *context_new(PyObject *tensor)
{
    hook_context *context = PyMem_RawMalloc(sizeof(*context));
    if (context == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    *context = (hook_context){.item = {.drop = drop_context}, .hooks = hooks_of(tensor)};
    if (context->hooks == NULL) {
        PyMem_RawFree(context);
        return NULL;
    }
    atomic_fetch_add_explicit(&context->hooks->contexts, 1, memory_order_relaxed);
    return context;
}

/* The library has the hook: notes what it is to call. The GIL is held since before it was added, so
 * no backward has asked yet. */
static PyObject *note_hook(hook_context *context, mt_tensor *tensor, PyObject *hook,
                           mt_hook_handle number)
{
    hooks_object *hooks = context->hooks;
    PyObject *handle = PyLong_FromUnsignedLongLong(number);
    if (handle == NULL || hooks->callables == NULL ||
        PyDict_SetItem(hooks->callables, handle, hook) != 0) {
        Py_XDECREF(handle);
        mt_tensor_remove_hook(tensor, number); /* frees the context */
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    context->handle = handle;
    return Py_BuildValue("(OO)", (PyObject *)hooks, handle);
}

static PyObject *add(PyObject *args, const char *format, bool accumulate)
{
    PyObject *object = NULL;
    PyObject *hook = NULL;
    mt_hook_handle handle = 0;
    if (!PyArg_ParseTuple(args, format, tensors.tensor_type, &object, &hook)) {
        return NULL;
    }
    hook_context *context = context_new(object);
    if (context == NULL) {
        return NULL;
    }
    mt_tensor *tensor = tensor_of(object);
    int status =
        accumulate ? mt_tensor_add_accumulate_hook(tensor, on_leaf, context, free_context, &handle)
                   : mt_tensor_add_hook(tensor, on_grad, context, free_context, &handle);
    if (status != MT_OK) {
        tensors_raise(status);
        free_context(context);
        return NULL;
    }
    return note_hook(context, tensor, hook, handle);
}

static PyObject *add_hook(PyObject *Py_UNUSED(module), PyObject *args)
{
    return add(args, "O!O:_add_hook", false);
}

static PyObject *add_accumulate_hook(PyObject *Py_UNUSED(module), PyObject *args)
{
    return add(args, "O!O:_add_accumulate_hook", true);
}

/* Without the tensor object the library keeps the hook, but it has nothing to call any more. */
static PyObject *remove_hook(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *object = NULL;
    PyObject *handle = NULL;
    PyObject *owner = NULL;
    if (!PyArg_ParseTuple(args, "O!O!O:_remove_hook", hooks_type, &object, &PyLong_Type, &handle,
                          &owner)) {
        return NULL;
    }
    hooks_object *hooks = (hooks_object *)object;
    if (hooks->callables != NULL && PyDict_DelItem(hooks->callables, handle) != 0) {
        PyErr_Clear(); /* removed before */
    }
    if (tensor_check(owner)) {
        mt_tensor_remove_hook(tensor_of(owner), PyLong_AsUnsignedLongLong(handle));
    }
    Py_RETURN_NONE;
}

/* ---- hooks that a node alone holds ----------------------------------------------------------- */

typedef struct hook_visit {
    visitproc visit;
    void *arg;
    int failed;
} hook_visit;

static void visit_context(void *argument, void *context, void (*free_it)(void *))
{
    hook_visit *v = argument;
    if (free_it == free_context && v->failed == 0) {
        v->failed = v->visit((PyObject *)((hook_context *)context)->hooks, v->arg);
    } else if (free_it == late_object_free && v->failed == 0) { /* hooks of the node, its note */
        v->failed = v->visit(((late_object *)context)->object, v->arg);
    }
}

int hooks_visit_node(const mt_node *node, visitproc visit, void *arg)
{
    hook_visit v = {.visit = visit, .arg = arg};
    mt_node_visit_hooks(node, visit_context, &v);
    return v.failed;
}

static PyMethodDef functions[] = {
    {"_add_hook", add_hook, METH_VARARGS, "_add_hook(tensor, hook) -> (hooks, handle)"},
    {"_add_accumulate_hook", add_accumulate_hook, METH_VARARGS,
     "_add_accumulate_hook(tensor, hook) -> (hooks, handle)"},
    {"_remove_hook", remove_hook, METH_VARARGS, "_remove_hook(hooks, handle, tensor or None)"},
    {NULL, NULL, 0, NULL},
};

py_part hooks_part;
int hooks_part(PyObject *module)
{
    return py_add_type(module, &hooks_spec, NULL, NULL, &hooks_type) != 0
               ? -1
               : PyModule_AddFunctions(module, functions);
}
