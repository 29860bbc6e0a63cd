/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of tensors that are no ops: shape, type, place, and their part in a graph.
 */
#include "tensors/autograd/node_parts.h"
#include "tensors/data/data_parts.h"
#include "tensors/tensor/tensor_parts.h"

static PyObject *get_shape(PyObject *self, void *Py_UNUSED(context))
{
    const mt_tensor *tensor = tensor_of(self);
    return size_from_ints(mt_tensor_sizes(tensor), mt_tensor_n_dims(tensor));
}

static PyObject *get_dtype(PyObject *self, void *Py_UNUSED(context))
{
    return dtype_to_object(mt_tensor_dtype(tensor_of(self)));
}

static PyObject *get_device(PyObject *self, void *Py_UNUSED(context))
{
    return device_to_object(mt_tensor_device(tensor_of(self)));
}

static PyObject *get_ndim(PyObject *self, void *Py_UNUSED(context))
{
    return PyLong_FromUnsignedLong(mt_tensor_n_dims(tensor_of(self)));
}

static PyObject *get_itemsize(PyObject *self, void *Py_UNUSED(context))
{
    return PyLong_FromSize_t(mt_dtype_size(mt_tensor_dtype(tensor_of(self))));
}

static PyObject *get_nbytes(PyObject *self, void *Py_UNUSED(context))
{
    /* Expanded tensors may have more bytes than an int64_t counts. */
    const mt_tensor *tensor = tensor_of(self);
    PyObject *count = PyLong_FromLongLong(mt_tensor_numel(tensor));
    PyObject *item = PyLong_FromSize_t(mt_dtype_size(mt_tensor_dtype(tensor)));
    PyObject *bytes = count == NULL || item == NULL ? NULL : PyNumber_Multiply(count, item);
    Py_XDECREF(count);
    Py_XDECREF(item);
    return bytes;
}

static PyObject *get_version(PyObject *self, void *Py_UNUSED(context))
{
    if (mt_tensor_is_inference(tensor_of(self))) {
        PyErr_SetString(PyExc_RuntimeError, "Inference tensors do not track version counter.");
        return NULL;
    }
    return PyLong_FromUnsignedLong(mt_tensor_version(tensor_of(self)));
}

static PyObject *get_base(PyObject *self, void *Py_UNUSED(context))
{
    return tensor_wrap(mt_tensor_retain(mt_tensor_base(tensor_of(self))));
}

static PyObject *get_layout(PyObject *Py_UNUSED(self), void *Py_UNUSED(context))
{
    return Py_NewRef(tensors.strided);
}

static PyObject *get_is_npu(PyObject *self, void *Py_UNUSED(context))
{
    return PyBool_FromLong(mt_tensor_device(tensor_of(self)) >> 8 == MT_DEVICE_TYPE_NPU);
}

static PyObject *get_is_meta(PyObject *self, void *Py_UNUSED(context))
{
    return PyBool_FromLong(mt_tensor_device(tensor_of(self)) == MT_META);
}

static PyObject *get_is_cpu(PyObject *self, void *Py_UNUSED(context))
{
    return PyBool_FromLong(mt_tensor_device(tensor_of(self)) == MT_CPU);
}

static PyObject *get_false(PyObject *Py_UNUSED(self), void *Py_UNUSED(context))
{
    Py_RETURN_FALSE;
}

static PyObject *get_zero(PyObject *Py_UNUSED(self), void *Py_UNUSED(context))
{
    return PyLong_FromLong(0);
}

/* ---- other sides ---- */

/* All dimensions the other way round. */
/* Warns the first time in a process, as torch does. 0, or -1 with an exception. */
static int warn_once(bool *warned, const char *text)
{
    if (*warned) {
        return 0;
    }
    *warned = true;
    return PyErr_WarnEx(PyExc_UserWarning, text, 1);
}

static PyObject *get_T(PyObject *self, void *Py_UNUSED(context))
{
    static bool told_many, told_none; /* under the GIL */
    mt_value value = value_tensor(tensor_of(self));
    uint32_t n_dims = (uint32_t)mt_tensor_n_dims(value.of.tensor);
    if (n_dims != 2 && n_dims != 1) {
        int failed =
            n_dims == 0
                ? warn_once(&told_none, "Tensor.T is deprecated on 0-D tensors. This function is "
                                        "the identity in these cases.")
                : warn_once(&told_many,
                            "The use of `x.T` on tensors of dimension other than 2 to reverse "
                            "their shape is deprecated and it will throw an error in a future "
                            "release. Consider `x.mT` to transpose batches of matrices or "
                            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the "
                            "dimensions of a tensor.");
        if (failed != 0) {
            return NULL;
        }
    }
    return operator_call(OPERATOR_NUMPY_T, &value, 1);
}

/* x.real and x.imag: the ops of these names. */
static PyObject *get_part(PyObject *self, void *context)
{
    mt_op op = UINT32_MAX;
    mt_value value = value_tensor(tensor_of(self));
    mt_value part = value_none();
    const char *name = strcmp(context, "real") == 0 ? "real.part" : context;
    if (tensors_find_op(name, &op) != 0 || tensors_call(op, &value, 1, &part, 1) != 0) {
        return NULL;
    }
    return tensors_result(&part);
}

static int set_part(PyObject *self, PyObject *value, void *context)
{
    if (value == NULL) {
        PyErr_Format(PyExc_AttributeError, "cannot delete %s", (const char *)context);
        return -1;
    }
    PyObject *part = get_part(self, context);
    PyObject *done = NULL;
    if (part != NULL) {
        done = PyObject_CallMethod(part, tensor_check(value) ? "copy_" : "fill_", "O", value);
        Py_DECREF(part);
    }
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static PyObject *get_mT(PyObject *self, void *context)
{
    mt_value value = value_tensor(tensor_of(self));
    uint32_t n_dims = mt_tensor_n_dims(value.of.tensor);
    if (strcmp(context, "H") == 0 && n_dims != 0 && n_dims != 2) {
        PyErr_Format(PyExc_RuntimeError,
                     "tensor.H is only supported on matrices (2-D tensors). Got %u-D tensor.%s",
                     n_dims,
                     n_dims == 1 ? "" : " For batches of matrices, consider using tensor.mH");
        return NULL;
    }
    if (n_dims == 1) {
        PyErr_Format(PyExc_RuntimeError,
                     "tensor.%s is only supported on matrices or batches of matrices. Got 1-D "
                     "tensor.",
                     (const char *)context);
        return NULL;
    }
    return operator_call(OPERATOR_MT, &value, 1);
}

/* ---- the graph ---- */

static PyObject *get_requires_grad(PyObject *self, void *Py_UNUSED(context))
{
    return PyBool_FromLong(mt_tensor_requires_grad(tensor_of(self)));
}

static int set_requires_grad(PyObject *self, PyObject *value, void *Py_UNUSED(context))
{
    if (value == NULL || !PyBool_Check(value)) {
        PyErr_SetString(PyExc_RuntimeError, "requires_grad must be a bool");
        return -1;
    }
    return zero_or_raise(mt_tensor_set_requires_grad(tensor_of(self), value == Py_True));
}

/* A result of an op, which gets no gradient unless it retains it. 0, or -1 with an exception. */
static int warn_no_gradient(void)
{
    return PyErr_WarnEx(
        PyExc_UserWarning,
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
        "attribute won't be populated during autograd.backward(). If you indeed want the .grad "
        "field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. "
        "If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor "
        "instead. See github.com/pytorch/pytorch/pull/30531 for more information.",
        1);
}

static PyObject *get_grad(PyObject *self, void *Py_UNUSED(context))
{
    mt_tensor *tensor = tensor_of(self);
    mt_tensor *grad = mt_tensor_grad(tensor);
    if (grad == NULL && !mt_tensor_is_leaf(tensor) && !mt_tensor_retains_grad(tensor) &&
        warn_no_gradient() != 0) {
        return NULL;
    }
    return tensor_wrap_borrowed(grad);
}

static int set_grad(PyObject *self, PyObject *value, void *Py_UNUSED(context))
{
    mt_tensor *grad = NULL;
    if (value != NULL && value != Py_None) {
        if (!tensor_check(value)) {
            PyErr_Format(PyExc_TypeError,
                         "assigned grad expected to be a Tensor or None but got grad of type %s",
                         Py_TYPE(value)->tp_name);
            return -1;
        }
        if (value == self) {
            PyErr_SetString(PyExc_RuntimeError, "can't assign Variable as its own grad");
            return -1;
        }
        grad = tensor_of(value);
    }
    return zero_or_raise(mt_tensor_set_grad(tensor_of(self), grad));
}

static PyObject *get_grad_fn(PyObject *self, void *Py_UNUSED(context))
{
    return node_wrap(mt_tensor_grad_fn(tensor_of(self)));
}

static PyObject *get_retains_grad(PyObject *self, void *Py_UNUSED(context))
{
    return PyBool_FromLong(mt_tensor_retains_grad(tensor_of(self)));
}

static PyObject *get_is_leaf(PyObject *self, void *Py_UNUSED(context))
{
    return PyBool_FromLong(mt_tensor_is_leaf(tensor_of(self)));
}

/* The elements without the graph. No op is seen, as in torch: an empty tensor takes them over. */
static PyObject *get_data(PyObject *self, void *Py_UNUSED(context))
{
    mt_tensor *alias = data_hold(tensor_of(self));
    return alias == NULL ? NULL : tensor_wrap(alias);
}

static int set_data(PyObject *self, PyObject *value, void *Py_UNUSED(context))
{
    if (value == NULL || !tensor_check(value)) {
        PyErr_Format(PyExc_TypeError, "Variable data has to be a tensor, but got %s",
                     value == NULL ? "nothing" : Py_TYPE(value)->tp_name);
        return -1;
    }
    return zero_or_raise(mt_tensor_set_data(tensor_of(self), tensor_of(value)));
}

PyGetSetDef tensor_properties[] = {
    {"__dict__", tensor_get_dict, tensor_set_dict, NULL, NULL},
    {"shape", get_shape, NULL, "torch.Size of the tensor", NULL},
    {"dtype", get_dtype, NULL, "The type of its elements.", NULL},
    {"device", get_device, NULL, "Where it is.", NULL},
    {"ndim", get_ndim, NULL, "How many dimensions it has.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of an element.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"_version", get_version, NULL, "how often the storage was written in place", NULL},
    {"_base", get_base, NULL, "the tensor that it is a view of, or None", NULL},
    {"layout", get_layout, NULL, "How it is stored: torch.strided.", NULL},
    {"is_npu", get_is_npu, NULL, "Whether it is on the accelerator.", NULL},
    {"is_cuda", get_is_npu, NULL, "the same as is_npu", NULL},
    {"is_cpu", get_is_cpu, NULL, "Whether it is on the host.", NULL},
    {"is_sparse", get_false, NULL, "False: there are none.", NULL},
    {"is_quantized", get_false, NULL, "False: there are none.", NULL},
    {"is_meta", get_is_meta, NULL, "Whether it has a shape and a type, and no elements.", NULL},
    {"is_mps", get_false, NULL, "False: there are none.", NULL},
    {"is_xpu", get_false, NULL, "False: there are none.", NULL},
    {"is_xla", get_false, NULL, "False: there are none.", NULL},
    {"is_nested", get_false, NULL, "False: there are none.", NULL},
    {"real", get_part, set_part, "A view of the real parts; a real tensor itself.",
     (char[]){"real"}},
    {"imag", get_part, set_part, "A view of the imaginary parts.", (char[]){"imag"}},
    {"output_nr", get_zero, NULL, "Which result of its node it is.", NULL},
    {"T", get_T, NULL, "A view with the order of the dimensions reversed.", NULL},
    {"mT", get_mT, NULL, "A view with the last two dimensions exchanged.", (char[]){"mT"}},
    {"H", get_mT, NULL, "A view of a matrix with rows and columns exchanged.", (char[]){"H"}},
    {"mH", get_mT, NULL, "A view with the last two dimensions exchanged.", (char[]){"mH"}},
    {"requires_grad", get_requires_grad, set_requires_grad,
     "Whether operations on it are recorded for gradients.", NULL},
    {"grad", get_grad, set_grad, "Its gradient; None before backward().", NULL},
    {"grad_fn", get_grad_fn, NULL, "The node that made it; None for leaves.", NULL},
    {"retains_grad", get_retains_grad, NULL,
     "Whether it is no leaf and keeps its gradient: retain_grad().", NULL},
    {"is_leaf", get_is_leaf, NULL, "Whether no recorded operation made it.", NULL},
    {"data", get_data, set_data, "A view without its history; assigning replaces its contents.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
