/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks of tensors: Python callables that the engine calls, with the GIL taken for the call.
 *
 *     _add_hook(tensor, callable) / _add_accumulate_hook(tensor, callable) -> handle
 *     _remove_hook(tensor, handle)
 */
#include "tensors/late_release.h"
#include "tensors/tensors_data.h"

static int failed_callback(void)
{
    py_error_keep();
    return mt_fail(MT_ECALLBACK, "a Python callback raised");
}

/* What a hook returned: None, or a gradient to go on with. */
static int take_replacement(PyObject *result, mt_tensor **replacement)
{
    if (result == Py_None) {
        return MT_OK;
    }
    if (!tensor_check(result)) {
        PyErr_Format(PyExc_TypeError, "expected Variable, but hook returned '%.100s'",
                     Py_TYPE(result)->tp_name);
        return failed_callback();
    }
    *replacement = mt_tensor_retain(tensor_of(result));
    return MT_OK;
}

static int on_grad(void *context, mt_tensor *grad, mt_tensor **replacement)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *hook = Py_NewRef(((late_object *)context)->object); /* it may remove itself */
    PyObject *tensor = tensor_wrap_borrowed(grad);
    PyObject *result = tensor == NULL ? NULL : PyObject_CallOneArg(hook, tensor);
    int status = result == NULL ? failed_callback() : take_replacement(result, replacement);
    Py_XDECREF(result);
    Py_XDECREF(tensor);
    Py_DECREF(hook);
    PyGILState_Release(state);
    return status;
}

static int on_leaf(void *context, mt_tensor *leaf)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *hook = Py_NewRef(((late_object *)context)->object);
    PyObject *tensor = tensor_wrap_borrowed(leaf);
    PyObject *result = tensor == NULL ? NULL : PyObject_CallOneArg(hook, tensor);
    int status = MT_OK;
    if (result == NULL) {
        status = failed_callback();
    } else if (result != Py_None) {
        PyErr_SetString(PyExc_RuntimeError,
                        "Tensor post accumulate grad hooks should return None.");
        status = failed_callback();
    }
    Py_XDECREF(result);
    Py_XDECREF(tensor);
    Py_DECREF(hook);
    PyGILState_Release(state);
    return status;
}

static int read_hook(PyObject *args, const char *format, mt_tensor **tensor, PyObject **hook)
{
    PyObject *object = NULL;
    if (!PyArg_ParseTuple(args, format, tensors.tensor_type, &object, hook)) {
        return -1;
    }
    *tensor = tensor_of(object);
    return 0;
}

static PyObject *handle_or_error(int status, mt_hook_handle handle, late_object *context)
{
    if (status != MT_OK) {
        late_release(&context->item);
        return tensors_raise(status);
    }
    return PyLong_FromUnsignedLongLong(handle);
}

static PyObject *add_hook(PyObject *module, PyObject *args)
{
    mt_tensor *tensor = NULL;
    PyObject *hook = NULL;
    mt_hook_handle handle = 0;
    (void)module;
    if (read_hook(args, "O!O:_add_hook", &tensor, &hook) != 0) {
        return NULL;
    }
    late_object *context = late_object_new(hook);
    if (context == NULL) {
        return NULL;
    }
    int status = mt_tensor_add_hook(tensor, on_grad, context, late_object_free, &handle);
    return handle_or_error(status, handle, context);
}

static PyObject *add_accumulate_hook(PyObject *module, PyObject *args)
{
    mt_tensor *tensor = NULL;
    PyObject *hook = NULL;
    mt_hook_handle handle = 0;
    (void)module;
    if (read_hook(args, "O!O:_add_accumulate_hook", &tensor, &hook) != 0) {
        return NULL;
    }
    late_object *context = late_object_new(hook);
    if (context == NULL) {
        return NULL;
    }
    int status = mt_tensor_add_accumulate_hook(tensor, on_leaf, context, late_object_free, &handle);
    return handle_or_error(status, handle, context);
}

static PyObject *remove_hook(PyObject *module, PyObject *args)
{
    PyObject *object = NULL;
    unsigned long long handle = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!K:_remove_hook", tensors.tensor_type, &object, &handle)) {
        return NULL;
    }
    mt_tensor_remove_hook(tensor_of(object), handle);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_add_hook", add_hook, METH_VARARGS, "_add_hook(tensor, hook) -> handle"},
    {"_add_accumulate_hook", add_accumulate_hook, METH_VARARGS,
     "_add_accumulate_hook(tensor, hook) -> handle"},
    {"_remove_hook", remove_hook, METH_VARARGS, "_remove_hook(tensor, handle)"},
    {NULL, NULL, 0, NULL},
};

py_part hooks_part;
int hooks_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
