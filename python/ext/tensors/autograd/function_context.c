/* SPDX-License-Identifier: Apache-2.0
 *
 * The object that forward and backward get as ctx. See function_context.h.
 */
#include "tensors/autograd/function_context.h"

#include <structmember.h>

PyTypeObject *function_context_type;

/* ---- life ------------------------------------------------------------------------------------ */

static PyObject *context_new(PyTypeObject *type, PyObject *Py_UNUSED(args),
                             PyObject *Py_UNUSED(kwargs))
{
    function_context *ctx = (function_context *)type->tp_alloc(type, 0);
    if (ctx != NULL) {
        ctx->materialize = true;
    }
    return (PyObject *)ctx;
}

static int context_traverse(PyObject *self, visitproc visit, void *arg)
{
    function_context *ctx = (function_context *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(ctx->dict);
    Py_VISIT(ctx->to_save);
    Py_VISIT(ctx->non_differentiable);
    Py_VISIT(ctx->dirty);
    Py_VISIT(ctx->needs_input_grad);
    return 0;
}

static int context_clear(PyObject *self)
{
    function_context *ctx = (function_context *)self;
    Py_CLEAR(ctx->dict);
    Py_CLEAR(ctx->to_save);
    Py_CLEAR(ctx->non_differentiable);
    Py_CLEAR(ctx->dirty);
    Py_CLEAR(ctx->needs_input_grad);
    return 0;
}

static void context_dealloc(PyObject *self)
{
    function_context *ctx = (function_context *)self;
    PyObject_GC_UnTrack(self);
    if (ctx->weak != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    (void)context_clear(self);
    PyMem_Free(ctx->input_is_tensor);
    PyMem_Free(ctx->outputs);
    PyMem_Free(ctx->saved_is_none);
    PyMem_Free(ctx->keepers);
    py_free(self);
}

/* ---- saved tensors --------------------------------------------------------------------------- */

static PyObject *save_for_backward(PyObject *self, PyObject *args)
{
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(args, i);
        if (item != Py_None && !tensor_check(item)) {
            return PyErr_Format(PyExc_TypeError,
                                "save_for_backward can only save variables, but argument %zd is of "
                                "type %.100s",
                                i, Py_TYPE(item)->tp_name);
        }
    }
    Py_XSETREF(((function_context *)self)->to_save, Py_NewRef(args));
    Py_RETURN_NONE;
}

static PyObject *saved_from_call(function_context *ctx)
{
    PyObject *tuple = PyTuple_New(ctx->n_saved);
    size_t index = 0;
    for (Py_ssize_t i = 0; tuple != NULL && i < ctx->n_saved; i++) {
        PyObject *item = NULL;
        if (ctx->saved_is_none[i]) {
            item = Py_NewRef(Py_None);
        } else {
            mt_tensor *tensor = NULL;
            int status = mt_function_get_saved(ctx->call, index++, &tensor);
            item = status == MT_OK ? tensor_wrap(tensor) : tensors_raise(status);
        }
        if (item == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

static PyObject *get_saved_tensors(PyObject *self, void *Py_UNUSED(ignored))
{
    function_context *ctx = (function_context *)self;
    if (ctx->running > 0) {
        return saved_from_call(ctx);
    }
    if (ctx->to_save != NULL) {
        return Py_NewRef(ctx->to_save);
    }
    if (ctx->n_saved == 0) {
        return PyTuple_New(0);
    }
    PyErr_SetString(PyExc_RuntimeError,
                    "saved tensors can be read in forward and in backward only: the graph that "
                    "holds them may be gone");
    return NULL;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static PyObject *mark_non_differentiable(PyObject *self, PyObject *args)
{
    Py_XSETREF(((function_context *)self)->non_differentiable, Py_NewRef(args));
    Py_RETURN_NONE;
}

static PyObject *mark_dirty(PyObject *self, PyObject *args)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        PyObject *item = PyTuple_GET_ITEM(args, i);
        if (!tensor_check(item)) {
            return PyErr_Format(PyExc_TypeError,
                                "mark_dirty can only mark variables, but argument %zd is of type "
                                "%.100s",
                                i, Py_TYPE(item)->tp_name);
        }
    }
    Py_XSETREF(((function_context *)self)->dirty, Py_NewRef(args));
    Py_RETURN_NONE;
}

static PyObject *set_materialize_grads(PyObject *self, PyObject *value)
{
    int truth = PyObject_IsTrue(value);
    if (truth < 0) {
        return NULL;
    }
    ((function_context *)self)->materialize = truth != 0;
    Py_RETURN_NONE;
}

static PyObject *get_name(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyType_GetName(Py_TYPE(self));
}

static PyObject *get_needs(PyObject *self, void *Py_UNUSED(ignored))
{
    function_context *ctx = (function_context *)self;
    return ctx->needs_input_grad == NULL ? PyTuple_New(0) : Py_NewRef(ctx->needs_input_grad);
}

/* torch lets it be set (functions that wrap others do). */
static int set_needs(PyObject *self, PyObject *value, void *Py_UNUSED(ignored))
{
    if (value == NULL || !PyTuple_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "needs_input_grad must be a tuple of bools");
        return -1;
    }
    Py_XSETREF(((function_context *)self)->needs_input_grad, Py_NewRef(value));
    return 0;
}

static PyMethodDef context_methods[] = {
    {"save_for_backward", save_for_backward, METH_VARARGS,
     "save_for_backward($self, /, *tensors)\n--\n\nKeeps tensors for backward."},
    {"save_for_forward", save_for_backward, METH_VARARGS,
     "save_for_forward($self, /, *tensors)\n--\n\nThe same as save_for_backward()."},
    {"mark_non_differentiable", mark_non_differentiable, METH_VARARGS,
     "mark_non_differentiable($self, /, *outputs)\n--\n\nNames outputs that have no gradient."},
    {"mark_dirty", mark_dirty, METH_VARARGS,
     "mark_dirty($self, /, *tensors)\n--\n\nNames inputs that forward has changed, and returns."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "set_materialize_grads($self, value, /)\n--\n\nFalse: gradients that nobody computed arrive as None."},
    {"name", get_name, METH_NOARGS, "name($self, /)\n--\n\nThe name of the node."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef context_properties[] = {
    {"saved_tensors", get_saved_tensors, NULL, "what save_for_backward() was given", NULL},
    {"needs_input_grad", get_needs, set_needs, "which arguments need a gradient", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef context_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(function_context, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(function_context, weak), READONLY, NULL},
    {"materialize_grads", T_BOOL, offsetof(function_context, materialize), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot context_slots[] = {
    {Py_tp_new, context_new},
    {Py_tp_dealloc, context_dealloc},
    {Py_tp_traverse, context_traverse},
    {Py_tp_clear, context_clear},
    {Py_tp_methods, context_methods},
    {Py_tp_getset, context_properties},
    {Py_tp_members, context_members},
    {Py_tp_doc,
     (char[]){"_FunctionBase()\n--\n\nWhat forward and backward of a custom Function share: ctx."}},
    {0, NULL},
};

static PyType_Spec context_spec = {
    .name = "mindtorch_v2._C._FunctionBase",
    .basicsize = sizeof(function_context),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = context_slots,
};

py_part function_context_part;
int function_context_part(PyObject *module)
{
    return py_add_type(module, &context_spec, NULL, "_FunctionBase", &function_context_type);
}
