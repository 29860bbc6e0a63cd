/* SPDX-License-Identifier: Apache-2.0
 *
 * backward(), grad() and grad mode. The engine runs without the GIL; what hooks and functions raise
 * inside comes out here (tensors_raise).
 *
 *     _run_backward(tensors, grad_tensors, flags)                    -> None
 *     _run_grad(outputs, grad_outputs, inputs, flags)                -> tuple
 *
 * Tensors arrive as tuples that mindtorch_v2/autograd/__init__.py has made and counted.
 */
#include "tensors/data/data_parts.h"
#include "tensors/interop/late_release.h"

#include <stdlib.h>

/* ---- lists of tensors ------------------------------------------------------------------------ */

/* The tensors of a tuple, NULL for None; borrowed as long as the tuple is. */
typedef struct tensor_list {
    mt_tensor **items;
    size_t count;
} tensor_list;

static void list_clear(tensor_list *list)
{
    PyMem_Free(list->items);
    list->items = NULL;
}

static int list_init(tensor_list *list, PyObject *tuple, const char *what)
{
    *list = (tensor_list){.items = NULL};
    if (!PyTuple_Check(tuple)) {
        PyErr_Format(PyExc_TypeError, "%s must be a tuple, not %.100s", what,
                     Py_TYPE(tuple)->tp_name);
        return -1;
    }
    list->count = (size_t)PyTuple_GET_SIZE(tuple);
    list->items = PyMem_Calloc(list->count + 1, sizeof(*list->items));
    if (list->items == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < list->count; i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, (Py_ssize_t)i);
        if (item != Py_None && !tensor_check(item)) {
            PyErr_Format(PyExc_TypeError, "element %zu of %s must be Tensor or None, not %.100s", i,
                         what, Py_TYPE(item)->tp_name);
            list_clear(list);
            return -1;
        }
        list->items[i] = item == Py_None ? NULL : tensor_of(item);
    }
    return 0;
}

static int same_length(const tensor_list *tensors_given, const tensor_list *grads)
{
    if (grads->count != tensors_given->count) {
        PyErr_Format(PyExc_RuntimeError, "got %zu tensors and %zu gradients", tensors_given->count,
                     grads->count);
        return -1;
    }
    return 0;
}

/* ---- deep nesting ---------------------------------------------------------------------------- */

/* A hook calls backward, whose hooks do so too, and so on: the interpreter limits the frames of a
 * thread, so every NESTED levels go on in a new one, as in torch. */
enum {
    NESTED = 60
};

static _Thread_local uint32_t nested; /* engine runs of this thread */

/* A run of the engine: backward where `found` is NULL. */
typedef struct engine_call {
    const tensor_list *roots;
    const tensor_list *grads;
    const tensor_list *inputs;
    mt_tensor **found;
    uint32_t flags;
    PyObject *error; /* what a callback raised on another thread */
} engine_call;

static int run_engine(const engine_call *call)
{
    nested++;
    int status = call->found == NULL
                     ? mt_backward_many(call->roots->items, call->grads->items, call->roots->count,
                                        call->flags)
                     : mt_grad(call->roots->items, call->grads->items, call->roots->count,
                               call->inputs->items, call->inputs->count, call->flags, call->found);
    nested--;
    return status;
}

/* On the new thread. It has one thread state of Python for all callbacks. */
static int run_elsewhere(void *argument)
{
    engine_call *call = argument;
    PyGILState_STATE state = PyGILState_Ensure();
    int status = MT_OK;
    WITHOUT_GIL(status, run_engine(call));
    call->error = py_error_take();
    PyGILState_Release(state);
    return status;
}

/* With the GIL. */
static int run_call(engine_call *call)
{
    int status = MT_OK;
    if (nested < NESTED) {
        WITHOUT_GIL(status, run_engine(call));
        return status;
    }
    WITHOUT_GIL(status, mt_call_on_thread(run_elsewhere, call));
    py_error_give(call->error);
    return status;
}

/* ---- backward -------------------------------------------------------------------------------- */

static PyObject *run_backward(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *outputs = NULL;
    PyObject *gradients = NULL;
    unsigned int flags = 0;
    tensor_list roots = {.items = NULL};
    tensor_list grads = {.items = NULL};
    if (!PyArg_ParseTuple(args, "OOI:_run_backward", &outputs, &gradients, &flags)) {
        return NULL;
    }
    if (list_init(&roots, outputs, "tensors") != 0) {
        return NULL;
    }
    if (list_init(&grads, gradients, "gradients") != 0 || same_length(&roots, &grads) != 0) {
        list_clear(&roots);
        list_clear(&grads);
        return NULL;
    }
    engine_call call = {.roots = &roots, .grads = &grads, .flags = flags};
    int status = run_call(&call);
    list_clear(&roots);
    list_clear(&grads);
    if (status != MT_OK) {
        return tensors_raise(status);
    }
    late_release_pending();
    Py_RETURN_NONE;
}

/* The gradients as a tuple; takes all of them over. */
static PyObject *grads_tuple(mt_tensor **grads, size_t count)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; i < count; i++) {
        PyObject *item = tuple == NULL ? NULL : tensor_wrap(grads[i]);
        if (tuple == NULL) {
            mt_tensor_release(grads[i]);
        } else if (item == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, item);
        }
    }
    return tuple;
}

static PyObject *grad_of(const tensor_list *roots, const tensor_list *grads,
                         const tensor_list *inputs, uint32_t flags)
{
    mt_tensor **found = PyMem_Calloc(inputs->count + 1, sizeof(*found));
    if (found == NULL) {
        return PyErr_NoMemory();
    }
    engine_call call = {
        .roots = roots, .grads = grads, .inputs = inputs, .found = found, .flags = flags};
    int status = run_call(&call);
    PyObject *tuple = status == MT_OK ? grads_tuple(found, inputs->count) : tensors_raise(status);
    PyMem_Free(found);
    late_release_pending();
    return tuple;
}

static PyObject *run_grad(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *outputs = NULL;
    PyObject *gradients = NULL;
    PyObject *wanted = NULL;
    unsigned int flags = 0;
    tensor_list roots = {.items = NULL};
    tensor_list grads = {.items = NULL};
    tensor_list inputs = {.items = NULL};
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOI:_run_grad", &outputs, &gradients, &wanted, &flags)) {
        return NULL;
    }
    if (list_init(&roots, outputs, "outputs") == 0 &&
        list_init(&grads, gradients, "grad_outputs") == 0 &&
        list_init(&inputs, wanted, "inputs") == 0 && same_length(&roots, &grads) == 0) {
        result = grad_of(&roots, &grads, &inputs, flags);
    }
    list_clear(&roots);
    list_clear(&grads);
    list_clear(&inputs);
    return result;
}

/* ---- grad mode ------------------------------------------------------------------------------- */

static PyObject *is_grad_enabled(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(mt_grad_enabled());
}

/* Gives what it was. */
static PyObject *set_grad_enabled(PyObject *Py_UNUSED(module), PyObject *mode)
{
    if (!PyBool_Check(mode)) {
        return PyErr_Format(PyExc_TypeError,
                            "set_grad_enabled(): argument 'mode' must be bool, not %.100s",
                            Py_TYPE(mode)->tp_name);
    }
    return PyBool_FromLong(mt_set_grad_enabled(mode == Py_True));
}

static PyObject *is_inference_mode_enabled(PyObject *Py_UNUSED(module),
                                           PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(mt_inference_mode());
}

/* Gives what it was; grad mode becomes the opposite. */
static PyObject *set_inference_mode(PyObject *Py_UNUSED(module), PyObject *mode)
{
    int truth = PyObject_IsTrue(mode);
    return truth < 0 ? NULL : PyBool_FromLong(mt_set_inference_mode(truth != 0));
}

static PyMethodDef functions[] = {
    {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS,
     "is_inference_mode_enabled($module, /)\n--\n\nWhether this thread is in inference mode."},
    {"_set_inference_mode", set_inference_mode, METH_O, "_set_inference_mode(mode) -> what it was"},
    {"_run_backward", run_backward, METH_VARARGS, "_run_backward(tensors, gradients, flags)"},
    {"_run_grad", run_grad, METH_VARARGS, "_run_grad(outputs, gradients, inputs, flags) -> tuple"},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
     "is_grad_enabled($module, /)\n--\n\nWhether operations are recorded for gradients on this thread."},
    {"_set_grad_enabled", set_grad_enabled, METH_O, "_set_grad_enabled(mode) -> what it was"},
    {NULL, NULL, 0, NULL},
};

py_part autograd_part;
int autograd_part(PyObject *module)
{
    if (PyModule_AddIntConstant(module, "_RETAIN_GRAPH", MT_RETAIN_GRAPH) != 0 ||
        PyModule_AddIntConstant(module, "_CREATE_GRAPH", MT_CREATE_GRAPH) != 0 ||
        PyModule_AddIntConstant(module, "_ALLOW_UNUSED", MT_ALLOW_UNUSED) != 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
