/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks of nodes: node.register_hook(fn) and node.register_prehook(fn), which _tensor.py makes of
 * these:
 *
 *     _add_node_hook(node, fn, before) -> handle        _remove_node_hook(node, handle)
 */
#include "tensors/autograd/node_parts.h"
#include "tensors/interop/late_release.h"

/* ---- calls from the engine ------------------------------------------------------------------- */

static PyObject *grads_tuple(mt_tensor *const *grads, size_t count)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *item = grads[i] == NULL ? Py_NewRef(Py_None) : tensor_wrap_borrowed(grads[i]);
        if (item == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, item);
    }
    return tuple;
}

static int refuse_count(PyObject *hook, Py_ssize_t got, size_t expected)
{
    PyObject *name = PyObject_GetAttrString(hook, "__name__");
    if (name == NULL) {
        PyErr_Clear();
        name = PyObject_Repr(hook);
    }
    if (name != NULL) {
        PyErr_Format(PyExc_RuntimeError,
                     "hook '%S' has returned an incorrect number of values (got %zd, but expected "
                     "%zu)",
                     name, got, expected);
    }
    Py_XDECREF(name);
    return -1;
}

/* What the hook gave in place of the gradients. 0, or -1 with an exception. */
static int take_grads(PyObject *hook, PyObject *result, mt_tensor **grads, size_t count)
{
    if (result == Py_None) {
        return 0;
    }
    if (!PyTuple_Check(result)) {
        PyErr_Format(PyExc_TypeError, "expected tuple, but hook returned '%.100s'",
                     Py_TYPE(result)->tp_name);
        return -1;
    }
    if ((size_t)PyTuple_GET_SIZE(result) != count) {
        return refuse_count(hook, PyTuple_GET_SIZE(result), count);
    }
    for (size_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(result, (Py_ssize_t)i);
        if (item != Py_None && !tensor_check(item)) {
            PyErr_Format(PyExc_TypeError, "expected Tensor, but hook returned '%.100s'",
                         Py_TYPE(item)->tp_name);
            return -1;
        }
    }
    for (size_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(result, (Py_ssize_t)i);
        mt_tensor *old = grads[i];
        grads[i] = item == Py_None ? NULL : mt_tensor_retain(tensor_of(item));
        mt_tensor_release(old);
    }
    return 0;
}

/* hook(grads), or hook(grads_in, grads) where `used` is given; `changed` may be replaced. */
static int call_hook(PyObject *hook, mt_tensor **changed, size_t n, mt_tensor *const *used,
                     size_t n_used, bool two)
{
    if (!Py_IsInitialized()) { /* as in autograd_hooks.c */
        return mt_fail(MT_ECALLBACK, "backward(): the interpreter has ended");
    }
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *first = grads_tuple(changed, n);
    PyObject *second = first == NULL || !two ? NULL : grads_tuple(used, n_used);
    PyObject *result = NULL;
    if (first != NULL && (second != NULL || !two)) {
        result = PyObject_CallFunctionObjArgs(hook, first, second, NULL);
    }
    int status = MT_OK;
    if (result == NULL || take_grads(hook, result, changed, n) != 0) {
        py_error_keep();
        status = mt_fail(MT_ECALLBACK, "a Python callback raised");
    }
    Py_XDECREF(result);
    Py_XDECREF(second);
    Py_XDECREF(first);
    PyGILState_Release(state);
    return status;
}

static int on_before(void *context, mt_tensor **grads, size_t n)
{
    return call_hook(((late_object *)context)->object, grads, n, NULL, 0, false);
}

static int on_after(void *context, mt_tensor **grads_in, size_t n_in, mt_tensor *const *grads,
                    size_t n)
{
    return call_hook(((late_object *)context)->object, grads_in, n_in, grads, n, true);
}

/* ---- adding and removing --------------------------------------------------------------------- */

static PyObject *add_node_hook(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *object = NULL;
    PyObject *hook = NULL;
    int before = 0;
    if (!PyArg_ParseTuple(args, "O!Op:_add_node_hook", tensors.node_type, &object, &hook,
                          &before)) {
        return NULL;
    }
    late_object *context = late_object_new(hook);
    if (context == NULL) {
        return NULL;
    }
    mt_node *node = node_of(object);
    mt_hook_handle handle = 0;
    int status = before != 0
                     ? mt_node_add_prehook(node, on_before, context, late_object_free, &handle)
                     : mt_node_add_hook(node, on_after, context, late_object_free, &handle);
    if (status != MT_OK) {
        late_object_free(context);
        return tensors_raise(status);
    }
    return PyLong_FromUnsignedLongLong(handle);
}

static PyObject *remove_node_hook(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *object = NULL;
    unsigned long long handle = 0;
    if (!PyArg_ParseTuple(args, "O!K:_remove_node_hook", tensors.node_type, &object, &handle)) {
        return NULL;
    }
    mt_node_remove_hook(node_of(object), handle);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_add_node_hook", add_node_hook, METH_VARARGS, "_add_node_hook(node, hook, before) -> handle"},
    {"_remove_node_hook", remove_node_hook, METH_VARARGS, "_remove_node_hook(node, handle)"},
    {NULL, NULL, 0, NULL},
};

py_part node_hooks_part;
int node_hooks_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
