/* SPDX-License-Identifier: Apache-2.0
 *
 * Function.apply(): forward in Python, then one node for it (mt_function_apply), whose backward
 * calls Python again.
 *
 *     _function_apply(cls, args)
 *       ├─ cls.forward(ctx, *args), or cls.forward(*args) and cls.setup_context(ctx, args, outputs)
 *       └─ mt_function_apply ─► hand_over() gives what forward made, and what it saved
 *     engine ─► on_backward() ─► cls.backward(ctx, *grads)
 *
 *   AF1  forward runs before the library knows of the call, since only then the number of
 *        outputs is known; grad mode is off in it, as in mt_function_apply().
 *   AF2  Only outputs that can have a gradient are the library's outputs; the others are returned
 *        as they are.
 */
#include "tensors/autograd/function_keeper.h"
#include "tensors/autograd/function_trace.h"
#include "tensors/data/data_parts.h"
#include "tensors/interop/late_release.h"

#include <stdatomic.h>
#include <string.h>

/* ---- backward -------------------------------------------------------------------------------- */

static int callback_failed(void)
{
    py_error_keep();
    return mt_fail(MT_ECALLBACK, "a Python callback raised");
}

static PyObject *zeros_like_output(const function_output *output)
{
    mt_tensor *tensor = NULL;
    int status = mt_zeros_with(output->sizes, output->n_dims, (mt_dtype)output->dtype,
                               output->device, &tensor);
    return status == MT_OK ? tensor_wrap(tensor) : tensors_raise(status);
}

/* (ctx, grad of output 0, ...) */
static PyObject *backward_args(function_context *ctx, mt_tensor *const *grads, size_t n_grads)
{
    PyObject *args = PyTuple_New(ctx->n_outputs + 1);
    if (args == NULL) {
        return NULL;
    }
    PyTuple_SET_ITEM(args, 0, Py_NewRef((PyObject *)ctx));
    for (Py_ssize_t i = 0; i < ctx->n_outputs; i++) {
        const function_output *output = &ctx->outputs[i];
        bool has_slot = output->slot >= 0 && (size_t)output->slot < n_grads;
        mt_tensor *grad = has_slot ? grads[output->slot] : NULL;
        PyObject *item = NULL;
        if (grad != NULL) {
            item = tensor_wrap_borrowed(grad);
        } else if (output->is_tensor && ctx->materialize) {
            item = zeros_like_output(output);
        } else {
            item = Py_NewRef(Py_None);
        }
        if (item == NULL) {
            Py_DECREF(args);
            return NULL;
        }
        PyTuple_SET_ITEM(args, i + 1, item);
    }
    return args;
}

static PyObject *call_backward(function_context *ctx, PyObject *args)
{
    PyObject *cls = PyObject_GetAttrString((PyObject *)Py_TYPE(ctx), "_forward_cls");
    PyObject *backward = cls == NULL ? NULL : PyObject_GetAttrString(cls, "backward");
    Py_XDECREF(cls);
    PyObject *result = backward == NULL ? NULL : PyObject_Call(backward, args, NULL);
    Py_XDECREF(backward);
    if (result == NULL || PyTuple_Check(result)) {
        return result;
    }
    PyObject *tuple = PyTuple_Pack(1, result);
    Py_DECREF(result);
    return tuple;
}

/* More gradients than arguments are fine as long as they are None. */
static int check_count(function_context *ctx, PyObject *grads)
{
    Py_ssize_t count = PyTuple_GET_SIZE(grads);
    bool fits = count >= ctx->n_inputs;
    for (Py_ssize_t i = ctx->n_inputs; fits && i < count; i++) {
        fits = PyTuple_GET_ITEM(grads, i) == Py_None;
    }
    if (!fits) {
        PyErr_Format(PyExc_RuntimeError,
                     "function %.200s returned an incorrect number of gradients (expected %zd, got "
                     "%zd)",
                     Py_TYPE(ctx)->tp_name, ctx->n_inputs, count);
        return -1;
    }
    return 0;
}

static int take_grads(function_context *ctx, PyObject *grads, mt_tensor **grads_in, size_t n_in)
{
    size_t at = 0;
    if (check_count(ctx, grads) != 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < ctx->n_inputs; i++) {
        PyObject *grad = PyTuple_GET_ITEM(grads, i);
        if (!ctx->input_is_tensor[i]) {
            if (grad != Py_None) {
                PyErr_Format(PyExc_RuntimeError,
                             "function %.200s returned a gradient different than None at position "
                             "%zd, but the corresponding forward input was not a Variable",
                             Py_TYPE(ctx)->tp_name, i + 1);
                return -1;
            }
            continue;
        }
        if (grad != Py_None && !tensor_check(grad)) {
            PyErr_Format(PyExc_RuntimeError, "expected Variable or None (got %.100s)",
                         Py_TYPE(grad)->tp_name);
            return -1;
        }
        if (grad != Py_None && at < n_in) {
            grads_in[at] = mt_tensor_retain(tensor_of(grad));
        }
        at++;
    }
    return 0;
}

static int on_backward(void *context, mt_function_call *call, mt_tensor *const *grads_out,
                       size_t n_outputs, mt_tensor **grads_in, size_t n_inputs)
{
    if (!Py_IsInitialized()) { /* as in autograd_hooks.c */
        return mt_fail(MT_ECALLBACK, "backward(): the interpreter has ended");
    }
    PyGILState_STATE state = PyGILState_Ensure();
    function_context *ctx = (function_context *)Py_NewRef(((late_object *)context)->object);
    ctx->call = call;
    ctx->running++;
    PyObject *args = backward_args(ctx, grads_out, n_outputs);
    PyObject *grads = args == NULL ? NULL : call_backward(ctx, args);
    ctx->running--;
    int status = MT_OK;
    if (grads == NULL || take_grads(ctx, grads, grads_in, n_inputs) != 0) {
        for (size_t i = 0; i < n_inputs; i++) {
            mt_tensor_release(grads_in[i]);
            grads_in[i] = NULL;
        }
        status = callback_failed();
    }
    Py_XDECREF(grads);
    Py_XDECREF(args);
    Py_DECREF(ctx);
    PyGILState_Release(state);
    return status;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* The library's forward (AF1); apply_node() has the GIL. */
static int hand_over(void *context, mt_function_call *call, mt_tensor *const *Py_UNUSED(inputs),
                     size_t Py_UNUSED(n_inputs), mt_tensor **outputs, size_t n_outputs)
{
    function_context *ctx = (function_context *)((late_object *)context)->object;
    ctx->call = call;
    for (Py_ssize_t i = 0; ctx->to_save != NULL && i < ctx->n_saved; i++) {
        if (!ctx->saved_is_none[i]) {
            int status = mt_function_save(call, tensor_of(PyTuple_GET_ITEM(ctx->to_save, i)));
            if (status != MT_OK) {
                return status;
            }
        }
    }
    for (size_t i = 0; i < n_outputs; i++) {
        outputs[i] = mt_tensor_retain(ctx->made[i]);
    }
    for (Py_ssize_t i = 0; ctx->dirty != NULL && i < PyTuple_GET_SIZE(ctx->dirty); i++) {
        int status = mt_function_mark_dirty(call, tensor_of(PyTuple_GET_ITEM(ctx->dirty, i)));
        if (status != MT_OK) {
            return status;
        }
    }
    return MT_OK;
}

/* What is saved, by place. */
static int count_saves(function_context *ctx)
{
    ctx->n_saved = ctx->to_save == NULL ? 0 : PyTuple_GET_SIZE(ctx->to_save);
    ctx->saved_is_none = PyMem_Calloc((size_t)ctx->n_saved + 1, sizeof(bool));
    if (ctx->saved_is_none == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < ctx->n_saved; i++) {
        ctx->saved_is_none[i] = PyTuple_GET_ITEM(ctx->to_save, i) == Py_None;
    }
    return 0;
}

static bool is_marked(const function_context *ctx, PyObject *output)
{
    PyObject *marked = ctx->non_differentiable;
    for (Py_ssize_t i = 0; marked != NULL && i < PyTuple_GET_SIZE(marked); i++) {
        if (PyTuple_GET_ITEM(marked, i) == output) {
            return true;
        }
    }
    return false;
}

/* Notes what forward gave; the differentiable ones go into `made`. */
static int note_outputs(function_context *ctx, PyObject *outputs)
{
    ctx->n_outputs = PyTuple_GET_SIZE(outputs);
    ctx->outputs = PyMem_Calloc((size_t)ctx->n_outputs + 1, sizeof(*ctx->outputs));
    if (ctx->outputs == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < ctx->n_outputs; i++) {
        PyObject *object = PyTuple_GET_ITEM(outputs, i);
        function_output *output = &ctx->outputs[i];
        output->slot = -1;
        output->is_tensor = tensor_check(object);
        if (!output->is_tensor) {
            continue;
        }
        mt_tensor *tensor = tensor_of(object);
        mt_dtype dtype = mt_tensor_dtype(tensor);
        output->dtype = (uint8_t)dtype;
        output->device = mt_tensor_device(tensor);
        output->n_dims = mt_tensor_n_dims(tensor);
        memcpy(output->sizes, mt_tensor_sizes(tensor), output->n_dims * sizeof(int64_t));
        if (mt_dtype_category(dtype) >= MT_CATEGORY_REAL && !is_marked(ctx, object)) {
            output->slot = (int32_t)ctx->n_made;
            ctx->made[ctx->n_made++] = tensor;
        }
    }
    return 0;
}

/* One application, so that its parts need few parameters. */
typedef struct applying {
    PyObject *cls;
    PyObject *args;
    function_context *ctx;
    mt_tensor **inputs; /* the tensors among the arguments, borrowed */
    size_t n_inputs;
    bool any_needs; /* a gradient, and grad mode is on */
} applying;

static int note_inputs(applying *a)
{
    Py_ssize_t count = PyTuple_GET_SIZE(a->args);
    function_context *ctx = a->ctx;
    ctx->n_inputs = count;
    ctx->input_is_tensor = PyMem_Calloc((size_t)count + 1, sizeof(bool));
    a->inputs = PyMem_Calloc((size_t)count + 1, sizeof(*a->inputs));
    ctx->needs_input_grad = PyTuple_New(count);
    if (ctx->input_is_tensor == NULL || a->inputs == NULL || ctx->needs_input_grad == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *arg = PyTuple_GET_ITEM(a->args, i);
        bool needs = false;
        if (tensor_check(arg)) {
            ctx->input_is_tensor[i] = true;
            a->inputs[a->n_inputs++] = tensor_of(arg);
            needs = mt_tensor_requires_grad(tensor_of(arg));
        }
        a->any_needs = a->any_needs || needs;
        PyTuple_SET_ITEM(ctx->needs_input_grad, i, PyBool_FromLong(needs));
    }
    return 0;
}

static PyObject *run_forward(const applying *a)
{
    PyObject *setup = PyObject_GetAttrString(a->cls, "_has_setup_context");
    PyObject *forward = setup == NULL ? NULL : PyObject_GetAttrString(a->cls, "forward");
    PyObject *outputs = NULL;
    if (forward != NULL && setup == Py_True) {
        outputs = PyObject_Call(forward, a->args, NULL);
        PyObject *done = outputs == NULL
                             ? NULL
                             : PyObject_CallMethod(a->cls, "setup_context", "OOO",
                                                   (PyObject *)a->ctx, a->args, outputs);
        if (done == NULL) {
            Py_CLEAR(outputs);
        }
        Py_XDECREF(done);
    } else if (forward != NULL) {
        PyObject *front = PyTuple_Pack(1, (PyObject *)a->ctx);
        PyObject *all = front == NULL ? NULL : PySequence_Concat(front, a->args);
        Py_XDECREF(front);
        outputs = all == NULL ? NULL : PyObject_Call(forward, all, NULL);
        Py_XDECREF(all);
    }
    Py_XDECREF(forward);
    Py_XDECREF(setup);
    return outputs;
}

/* The node is freed, perhaps without the GIL. */
static void forget_node(void *context)
{
    function_context *ctx = (function_context *)((late_object *)context)->object;
    atomic_store_explicit(&ctx->node, NULL, memory_order_release); /* FK2 of function_keeper.h */
    late_object_free(context);
}

/* The node; its outputs replace those of forward. Steals `outputs`. */
static PyObject *apply_node(const applying *a, PyObject *outputs)
{
    function_context *ctx = a->ctx;
    size_t count = ctx->n_made;
    mt_tensor **tied = PyMem_Calloc(count + 1, sizeof(*tied));
    late_object *context = tied == NULL ? NULL : late_object_new((PyObject *)ctx);
    if (context == NULL) {
        PyMem_Free(tied);
        Py_DECREF(outputs);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    mt_function function = {
        .struct_size = sizeof(function),
        .name = Py_TYPE(ctx)->tp_name,
        .forward = hand_over,
        .backward = on_backward,
        .free_context = forget_node,
    };
    int status = mt_function_apply(&function, context, a->inputs, a->n_inputs, tied, count);
    PyObject *result = NULL;
    if (status == MT_OK) {
        result = PyTuple_New(ctx->n_outputs);
    } else {
        tensors_raise(status);
    }
    for (Py_ssize_t i = 0; i < ctx->n_outputs; i++) {
        int32_t slot = ctx->outputs[i].slot;
        PyObject *item = slot < 0 ? Py_NewRef(PyTuple_GET_ITEM(outputs, i)) : NULL;
        if (slot >= 0 && tied[slot] != NULL) {
            item = tensor_wrap(tied[slot]);
        }
        if (result != NULL && item != NULL) {
            PyTuple_SET_ITEM(result, i, item);
        } else {
            Py_XDECREF(item);
            Py_CLEAR(result);
        }
    }
    PyMem_Free(tied);
    Py_DECREF(outputs);
    if (result != NULL && function_keep(ctx, result) != 0) {
        Py_CLEAR(result);
    }
    return result;
}

static PyObject *apply_graph(const applying *a, PyObject *outputs)
{
    function_context *ctx = a->ctx;
    size_t room = (size_t)PyTuple_GET_SIZE(outputs) + 1;
    ctx->made = PyMem_Calloc(room, sizeof(*ctx->made));
    if (ctx->made == NULL) {
        Py_DECREF(outputs);
        return PyErr_NoMemory();
    }
    ctx->n_made = 0;
    PyObject *result = outputs;
    if (note_outputs(ctx, outputs) != 0 || count_saves(ctx) != 0) {
        Py_DECREF(outputs);
        result = NULL;
    } else if (ctx->n_made > 0) {
        result = apply_node(a, outputs);
    }
    PyMem_Free(ctx->made);
    ctx->made = NULL;
    return result;
}

/* Without a graph the versions alone tell that inputs were changed. */
static void raise_versions(const function_context *ctx)
{
    for (Py_ssize_t i = 0; ctx->dirty != NULL && i < PyTuple_GET_SIZE(ctx->dirty); i++) {
        mt_tensor_raise_version(tensor_of(PyTuple_GET_ITEM(ctx->dirty, i)));
    }
}

/* What apply() gives: the outputs as forward gave them, tied to a node where one is needed. */
static PyObject *finish(const applying *a, PyObject *outputs)
{
    bool single = tensor_check(outputs);
    if (!a->any_needs || (!single && !PyTuple_Check(outputs))) {
        raise_versions(a->ctx);
        return outputs;
    }
    PyObject *all = single ? PyTuple_Pack(1, outputs) : Py_NewRef(outputs);
    Py_DECREF(outputs);
    PyObject *tied = all == NULL ? NULL : apply_graph(a, all);
    if (tied == NULL || !single) {
        return tied;
    }
    PyObject *one = Py_NewRef(PyTuple_GET_ITEM(tied, 0));
    Py_DECREF(tied);
    return one;
}

/* ---- apply ----------------------------------------------------------------------------------- */

static PyObject *apply_all(applying *a)
{
    if (note_inputs(a) != 0) {
        return NULL;
    }
    a->any_needs = a->any_needs && mt_grad_enabled();
    mtprof_token token = 0;
    if (mtprof_wants(MTPROF_WANT_OPS)) {
        token = function_trace_begin(((PyTypeObject *)a->cls)->tp_name, a->args, mt_grad_enabled());
    }
    bool enabled = mt_set_grad_enabled(false);
    PyObject *outputs = run_forward(a);
    (void)mt_set_grad_enabled(enabled);
    PyObject *result = outputs == NULL ? NULL : finish(a, outputs);
    mtprof_end(token);
    return result;
}

/* _function_apply(cls, args) */
static PyObject *function_apply(PyObject *Py_UNUSED(module), PyObject *given)
{
    applying a = {.cls = NULL};
    if (!PyArg_ParseTuple(given, "O!O!:_function_apply", &PyType_Type, &a.cls, &PyTuple_Type,
                          &a.args)) {
        return NULL;
    }
    PyObject *object = PyObject_CallMethod(a.cls, "_backward_cls", NULL);
    if (object == NULL) {
        return NULL;
    }
    if (!PyObject_TypeCheck(object, function_context_type)) {
        Py_DECREF(object);
        PyErr_SetString(PyExc_TypeError, "_backward_cls must derive from _FunctionBase");
        return NULL;
    }
    a.ctx = (function_context *)object;
    PyObject *result = apply_all(&a);
    Py_CLEAR(a.ctx->to_save); /* FC1 */
    Py_CLEAR(a.ctx->non_differentiable);
    Py_CLEAR(a.ctx->dirty);
    PyMem_Free(a.inputs);
    Py_DECREF(object);
    return result;
}

/* A function of Python's as one op that calls others, which has no node of its own. */
static PyObject *call_as_op(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t n_args)
{
    if (n_args < 3 || !PyUnicode_Check(args[0]) || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "_call_as_op(name, inputs, function, *args)");
        return NULL;
    }
    mtprof_token token = 0;
    if (mtprof_wants(MTPROF_WANT_OPS)) {
        const char *name = PyUnicode_AsUTF8(args[0]);
        if (name == NULL) {
            return NULL;
        }
        token = function_trace_begin(name, args[1], false);
    }
    PyObject *result = PyObject_Vectorcall(args[2], args + 3, (size_t)(n_args - 3), NULL);
    mtprof_end(token);
    return result;
}

/* Whether a profile records ops now. */
static PyObject *profiler_enabled(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(mtprof_wants(MTPROF_WANT_OPS));
}

static PyMethodDef functions[] = {
    {"_profiler_enabled", profiler_enabled, METH_NOARGS, "_profiler_enabled() -> bool"},
    {"_function_apply", function_apply, METH_VARARGS, "_function_apply(cls, args)"},
    {"_call_as_op", PY_CALL(call_as_op), METH_FASTCALL,
     "_call_as_op(name, inputs, function, *args): what it returns; a profile shows it as an op."},
    {NULL, NULL, 0, NULL},
};

py_part function_part;
int function_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
