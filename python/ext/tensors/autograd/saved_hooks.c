/* SPDX-License-Identifier: Apache-2.0
 *
 * torch.autograd.graph.saved_tensors_hooks and anomaly detection: Python callables behind
 * mt_set_pack() and mt_set_anomaly().
 *
 *     _set_saved_hooks((pack, unpack) or None) -> what it was, on this thread
 *     _set_anomaly(on, check_nan, made, failed)
 */
#include "tensors/autograd/node_parts.h"
#include "tensors/interop/late_release.h"

/* ---- packing --------------------------------------------------------------------------------- */

static _Thread_local PyObject *pair_here; /* (pack, unpack) of this thread, held; NULL: none */

/* What pack() gave, in the library's hands. */
typedef struct py_packed {
    mt_packed base; /* first: the library hands it back to us */
    late_item item;
    PyObject *value;
    PyObject *unpack;
} py_packed;

static int callback_failed(void)
{
    py_error_keep();
    return mt_fail(MT_ECALLBACK, "a Python callback raised");
}

static void drop_packed(late_item *item)
{
    py_packed *packed = (py_packed *)((char *)item - offsetof(py_packed, item));
    Py_DECREF(packed->value);
    Py_DECREF(packed->unpack);
    PyMem_RawFree(packed);
}

static void free_packed(mt_packed *base)
{
    late_release(&((py_packed *)base)->item);
}

static int on_unpack(mt_packed *base, mt_tensor **out)
{
    if (!Py_IsInitialized()) { /* as in autograd_hooks.c */
        return mt_fail(MT_ECALLBACK, "backward(): the interpreter has ended");
    }
    py_packed *packed = (py_packed *)base;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *result = PyObject_CallOneArg(packed->unpack, packed->value);
    int status = MT_OK;
    if (result != NULL && !tensor_check(result)) {
        PyErr_Format(PyExc_TypeError,
                     "Output of saved tensor unpack_hook expected to be a Tensor but got result of "
                     "type %.100s",
                     Py_TYPE(result)->tp_name);
        Py_CLEAR(result);
    }
    if (result == NULL) {
        status = callback_failed();
    } else {
        *out = mt_tensor_retain(tensor_of(result));
    }
    Py_XDECREF(result);
    PyGILState_Release(state);
    return status;
}

static int pack_tensor(PyObject *pair, mt_tensor *tensor, mt_packed **out)
{
    PyObject *given = tensor_wrap_borrowed(tensor);
    PyObject *value = given == NULL ? NULL : PyObject_CallOneArg(PyTuple_GET_ITEM(pair, 0), given);
    Py_XDECREF(given);
    py_packed *packed = value == NULL ? NULL : PyMem_RawMalloc(sizeof(*packed));
    if (packed == NULL) {
        Py_XDECREF(value);
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        return callback_failed();
    }
    *packed = (py_packed){
        .base = {.unpack = on_unpack, .free = free_packed},
        .item = {.drop = drop_packed},
        .value = value,
        .unpack = Py_NewRef(PyTuple_GET_ITEM(pair, 1)),
    };
    *out = &packed->base;
    return MT_OK;
}

static int on_pack(void *context, mt_tensor *tensor, mt_packed **out)
{
    if (!Py_IsInitialized()) {
        return mt_fail(MT_ECALLBACK, "the interpreter has ended");
    }
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *pair = Py_NewRef((PyObject *)context);
    int status = pack_tensor(pair, tensor, out);
    Py_DECREF(pair);
    PyGILState_Release(state);
    return status;
}

static PyObject *set_saved_hooks(PyObject *Py_UNUSED(module), PyObject *pair)
{
    if (pair != Py_None && (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2)) {
        PyErr_SetString(PyExc_TypeError, "_set_saved_hooks() takes (pack, unpack) or None");
        return NULL;
    }
    PyObject *before = pair_here == NULL ? Py_NewRef(Py_None) : pair_here;
    pair_here = pair == Py_None ? NULL : Py_NewRef(pair);
    mt_set_pack(pair_here == NULL ? NULL : on_pack, pair_here);
    return before;
}

/* ---- anomaly detection ----------------------------------------------------------------------- */

static PyObject *made_hook; /* under the GIL; NULL: none */
static PyObject *failed_hook;

/* hook(node); what it raises is told as what nobody can catch, since its caller fails already. */
static void call_with_node(PyObject *const *place, mt_node *node)
{
    if (!Py_IsInitialized()) {
        return;
    }
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type = NULL;
    PyObject *value = NULL;
    PyObject *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *hook = Py_XNewRef(*place);
    PyObject *object = hook == NULL ? NULL : node_wrap(node);
    PyObject *result = object == NULL ? NULL : PyObject_CallOneArg(hook, object);
    if (hook != NULL && result == NULL) {
        PyErr_WriteUnraisable(hook);
    }
    Py_XDECREF(result);
    Py_XDECREF(object);
    Py_XDECREF(hook);
    PyErr_Restore(type, value, trace);
    PyGILState_Release(state);
}

static void on_made(mt_node *node)
{
    call_with_node(&made_hook, node);
}

static void on_failed(mt_node *node)
{
    call_with_node(&failed_hook, node);
}

static PyObject *set_anomaly(PyObject *Py_UNUSED(module), PyObject *args)
{
    int on = 0;
    int check_nan = 0;
    PyObject *made = NULL;
    PyObject *failed = NULL;
    if (!PyArg_ParseTuple(args, "ppOO:_set_anomaly", &on, &check_nan, &made, &failed)) {
        return NULL;
    }
    Py_XSETREF(made_hook, Py_NewRef(made));
    Py_XSETREF(failed_hook, Py_NewRef(failed));
    mt_set_anomaly(on != 0, check_nan != 0, on_made, on_failed);
    Py_RETURN_NONE;
}

static PyObject *is_anomaly_enabled(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(mt_anomaly_enabled());
}

static PyObject *is_nan_checked(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(mt_anomaly_checks_nan());
}

static PyObject *current_node(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return node_wrap(mt_current_node());
}

static PyObject *current_run(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLongLong(mt_current_run());
}

static PyObject *run_reaches(PyObject *Py_UNUSED(module), PyObject *object)
{
    if (!PyObject_TypeCheck(object, tensors.node_type)) {
        return PyErr_Format(PyExc_TypeError, "expected a Node, not %.100s",
                            Py_TYPE(object)->tp_name);
    }
    return PyBool_FromLong(mt_current_run_reaches(node_of(object)));
}

/* (node, which of its results) */
static PyObject *gradient_edge(PyObject *Py_UNUSED(module), PyObject *object)
{
    mt_node *node = NULL;
    uint32_t output = 0;
    if (!tensor_check(object)) {
        return PyErr_Format(PyExc_TypeError, "expected a Tensor, not %.100s",
                            Py_TYPE(object)->tp_name);
    }
    int status = mt_tensor_get_gradient_edge(tensor_of(object), &node, &output);
    if (status != MT_OK) {
        return tensors_raise(status);
    }
    PyObject *wrapped = node_wrap(node);
    mt_node_release(node);
    return wrapped == NULL ? NULL : Py_BuildValue("(NI)", wrapped, output);
}

static PyMethodDef functions[] = {
    {"_gradient_edge", gradient_edge, METH_O, "_gradient_edge(tensor) -> (node, output)"},
    {"_current_run", current_run, METH_NOARGS, "the number of the backward that runs, or 0"},
    {"_will_engine_execute_node", run_reaches, METH_O, "whether the backward that runs reaches it"},
    {"_set_saved_hooks", set_saved_hooks, METH_O, "_set_saved_hooks(pair or None) -> the old one"},
    {"_set_anomaly", set_anomaly, METH_VARARGS, "_set_anomaly(on, check_nan, made, failed)"},
    {"is_anomaly_enabled", is_anomaly_enabled, METH_NOARGS,
     "is_anomaly_enabled($module, /)\n--\n\nWhether failing derivatives are traced to their forward calls."},
    {"is_anomaly_check_nan_enabled", is_nan_checked, METH_NOARGS,
     "is_anomaly_check_nan_enabled($module, /)\n--\n\nWhether anomaly detection looks for NaN."},
    {"_current_autograd_node", current_node, METH_NOARGS, "the node that runs on this thread"},
    {NULL, NULL, 0, NULL},
};

py_part saved_hooks_part;
int saved_hooks_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
