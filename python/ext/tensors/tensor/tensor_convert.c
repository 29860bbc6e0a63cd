/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in other types and on other devices, and the numbers that are in them.
 */
#include "tensors/ops/override.h"
#include "tensors/tensor/tensor_parts.h"

#include <string.h>

/* What to() was asked for. */
typedef struct target {
    mt_dtype dtype;
    mt_device device;
    int non_blocking;
    int copy;
    int format;
} target;

static PyObject *convert(PyObject *self, const target *to)
{
    mt_value args[5] = {
        value_tensor(tensor_of(self)),
        value_dtype(to->dtype),
        value_device(to->device),
        {.kind = MT_KIND_BOOL, .of.integer = to->non_blocking},
        {.kind = MT_KIND_BOOL, .of.integer = to->copy},
    };
    return operator_call(OPERATOR_TO, args, 5);
}

PyObject *tensor_to_type(PyObject *self, mt_dtype dtype)
{
    return convert(self, &(target){.dtype = dtype, .device = MT_DEVICE_NONE});
}

PyObject *tensor_to_device(PyObject *self, mt_device device, bool non_blocking)
{
    return convert(
        self, &(target){.dtype = MT_DTYPE_NONE, .device = device, .non_blocking = non_blocking});
}

static bool is_dtype(PyObject *object)
{
    return Py_IS_TYPE(object, tensors.dtype_type) || object == (PyObject *)&PyFloat_Type ||
           object == (PyObject *)&PyLong_Type || object == (PyObject *)&PyBool_Type;
}

static int dtype_argument(PyObject *object, target *to)
{
    if (object != Py_None && !is_dtype(object)) {
        PyErr_Format(PyExc_TypeError, "to(): argument 'dtype' must be torch.dtype, not %s",
                     Py_TYPE(object)->tp_name);
        return -1;
    }
    return dtype_from_object(object, &to->dtype);
}

static int flag_from(PyObject *object, const char *name, int *flag)
{
    if (!PyBool_Check(object)) {
        PyErr_Format(PyExc_TypeError, "to(): argument '%s' must be bool, not %s", name,
                     Py_TYPE(object)->tp_name);
        return -1;
    }
    *flag = object == Py_True;
    return 0;
}

/* Positions after the first: [dtype after a device,] non_blocking, copy. */
static int take_rest(PyObject *args, Py_ssize_t at, target *to)
{
    int *const flags[] = {&to->non_blocking, &to->copy};
    static const char *const names[] = {"non_blocking", "copy"};
    for (int i = 0; i < 2 && at < PyTuple_GET_SIZE(args); i++, at++) {
        if (flag_from(PyTuple_GET_ITEM(args, at), names[i], flags[i]) != 0) {
            return -1;
        }
    }
    if (at < PyTuple_GET_SIZE(args)) {
        PyErr_Format(PyExc_TypeError,
                     "to() takes at most 4 positional arguments but %zd were given",
                     PyTuple_GET_SIZE(args));
        return -1;
    }
    return 0;
}

static int take_positions(PyObject *args, target *to)
{
    if (PyTuple_GET_SIZE(args) == 0) {
        return 0;
    }
    PyObject *first = PyTuple_GET_ITEM(args, 0);
    if (tensor_check(first)) {
        to->dtype = mt_tensor_dtype(tensor_of(first));
        to->device = mt_tensor_device(tensor_of(first));
        return take_rest(args, 1, to);
    }
    if (is_dtype(first)) {
        return dtype_from_object(first, &to->dtype) != 0 ? -1 : take_rest(args, 1, to);
    }
    if (first != Py_None && !Py_IS_TYPE(first, tensors.device_type) && !PyUnicode_Check(first) &&
        !PyLong_Check(first)) {
        PyErr_Format(
            PyExc_TypeError,
            "to() received an invalid combination of arguments - got (%s), but expected one "
            "of:\n * (torch.device device = None, torch.dtype dtype = None, bool "
            "non_blocking = False, bool copy = False)\n * (torch.dtype dtype, bool "
            "non_blocking = False, bool copy = False)\n * (Tensor tensor, bool "
            "non_blocking = False, bool copy = False)\n",
            Py_TYPE(first)->tp_name);
        return -1;
    }
    if (device_from_object(first, &to->device) != 0) {
        return -1;
    }
    Py_ssize_t at = 1;
    if (PyTuple_GET_SIZE(args) > 1 && !PyBool_Check(PyTuple_GET_ITEM(args, 1))) {
        if (dtype_argument(PyTuple_GET_ITEM(args, 1), to) != 0) {
            return -1;
        }
        at = 2;
    }
    return take_rest(args, at, to);
}

int tensor_format_from(const char *function, PyObject *object)
{
    if (object == Py_None) {
        return FORMAT_PRESERVE;
    }
    if (Py_IS_TYPE(object, tensors.format_type)) {
        return ((named_object *)object)->value;
    }
    PyErr_Format(PyExc_TypeError,
                 "%s(): argument 'memory_format' must be torch.memory_format, not %s", function,
                 Py_TYPE(object)->tp_name);
    return -1;
}

PyObject *tensor_take_format(PyObject *tensor, int format)
{
    if (tensor == NULL || format == FORMAT_PRESERVE ||
        mt_tensor_has_strides(tensor_of(tensor), (mt_memory_format)format)) {
        return tensor;
    }
    mt_value args[2] = {value_tensor(tensor_of(tensor)), mt_int(format)};
    PyObject *other = tensors_call_named("clone", args, 2);
    Py_DECREF(tensor);
    return other;
}

static int take_keyword(const char *name, PyObject *value, target *to)
{
    if (strcmp(name, "dtype") == 0) {
        return dtype_argument(value, to);
    }
    if (strcmp(name, "device") == 0) {
        return device_from_object(value, &to->device);
    }
    if (strcmp(name, "non_blocking") == 0) {
        return flag_from(value, name, &to->non_blocking);
    }
    if (strcmp(name, "copy") == 0) {
        return flag_from(value, name, &to->copy);
    }
    if (strcmp(name, "memory_format") == 0) {
        to->format = tensor_format_from("to", value);
        return to->format < 0 ? -1 : 0;
    }
    if ((strcmp(name, "other") == 0 || strcmp(name, "tensor") == 0) && tensor_check(value)) {
        to->dtype = mt_tensor_dtype(tensor_of(value));
        to->device = mt_tensor_device(tensor_of(value));
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "to() got an unexpected keyword argument '%s'", name);
    return -1;
}

/* to(dtype), to(device, dtype), to(other), each with non_blocking and copy. */
PyObject *tensor_to(PyObject *self, PyObject *args, PyObject *kwargs)
{
    target to = {.dtype = MT_DTYPE_NONE, .device = MT_DEVICE_NONE, .format = FORMAT_PRESERVE};
    if (take_positions(args, &to) != 0) {
        return NULL;
    }
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t at = 0;
    while (kwargs != NULL && PyDict_Next(kwargs, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8(key);
        if (name == NULL || take_keyword(name, value, &to) != 0) {
            return NULL;
        }
    }
    return tensor_take_format(convert(self, &to), to.format);
}

PyObject *tensor_from_array(PyObject *object)
{
    if (strcmp(Py_TYPE(object)->tp_name, "numpy.ndarray") != 0) {
        return NULL;
    }
    PyObject *package = PyImport_ImportModule("mindtorch_v2._C");
    PyObject *tensor =
        package == NULL ? NULL : PyObject_CallMethod(package, "from_numpy", "O", object);
    Py_XDECREF(package);
    return tensor;
}

/* ---- numbers ---- */

/* Whether a subclass answers a number for the tensor itself. */
static bool is_overridden(const char *name, PyObject *self, PyObject **answer)
{
    return override_asked() && override_method(name, &self, 1, answer);
}

int tensor_truth(PyObject *self)
{
    PyObject *answer = NULL;
    if (is_overridden("__bool__", self, &answer)) {
        int truth = answer == NULL ? -1 : PyObject_IsTrue(answer);
        Py_XDECREF(answer);
        return truth;
    }
    int64_t count = mt_tensor_numel(tensor_of(self));
    if (count != 1) {
        PyErr_SetString(PyExc_RuntimeError,
                        count == 0
                            ? "Boolean value of Tensor with no values is ambiguous"
                            : "Boolean value of Tensor with more than one value is ambiguous");
        return -1;
    }
    mt_value args = value_tensor(tensor_of(self));
    mt_value truth;
    if (tensors_call(operator_ops[OPERATOR_IS_NONZERO], &args, 1, &truth, 1) != 0) {
        return -1;
    }
    return truth.of.integer != 0;
}

/* The only element, as Python's number. */
static PyObject *only_number(PyObject *self)
{
    if (mt_tensor_numel(tensor_of(self)) != 1) {
        PyErr_SetString(PyExc_ValueError,
                        "only one element tensors can be converted to Python scalars");
        return NULL;
    }
    mt_scalar scalar;
    return scalar_of_tensor(tensor_of(self), &scalar) != 0 ? NULL : scalar_to_object(&scalar);
}

PyObject *tensor_int(PyObject *self)
{
    PyObject *answer = NULL;
    if (is_overridden("__int__", self, &answer)) {
        return answer;
    }
    PyObject *number = only_number(self);
    PyObject *integer = number == NULL ? NULL : PyNumber_Long(number);
    Py_XDECREF(number);
    if (integer != NULL && PyBool_Check(integer)) {
        Py_SETREF(integer, PyLong_FromLong(integer == Py_True));
    }
    return integer;
}

PyObject *tensor_float(PyObject *self)
{
    PyObject *answer = NULL;
    if (is_overridden("__float__", self, &answer)) {
        return answer;
    }
    PyObject *number = only_number(self);
    PyObject *real = number == NULL ? NULL : PyNumber_Float(number);
    Py_XDECREF(number);
    return real;
}

PyObject *tensor_index_number(PyObject *self)
{
    PyObject *answer = NULL;
    if (is_overridden("__index__", self, &answer)) {
        return answer;
    }
    mt_tensor *tensor = tensor_of(self);
    if (mt_tensor_numel(tensor) != 1 ||
        mt_dtype_category(mt_tensor_dtype(tensor)) >= MT_CATEGORY_REAL) {
        PyErr_SetString(PyExc_TypeError,
                        "only integer tensors of a single element can be converted to an index");
        return NULL;
    }
    return tensor_int(self);
}

Py_ssize_t tensor_length(PyObject *self)
{
    PyObject *answer = NULL;
    if (is_overridden("__len__", self, &answer)) {
        Py_ssize_t length = answer == NULL ? -1 : PyNumber_AsSsize_t(answer, PyExc_OverflowError);
        Py_XDECREF(answer);
        return length;
    }
    mt_tensor *tensor = tensor_of(self);
    if (mt_tensor_n_dims(tensor) == 0) {
        PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
        return -1;
    }
    return (Py_ssize_t)mt_tensor_sizes(tensor)[0];
}

/* (self == value).any() */
int tensor_contains(PyObject *self, PyObject *value)
{
    PyObject *args[] = {self, value}, *answer = NULL;
    if (override_asked() && override_method("__contains__", args, 2, &answer)) {
        int truth = answer == NULL ? -1 : PyObject_IsTrue(answer);
        Py_XDECREF(answer);
        return truth;
    }
    mt_value values[2] = {value_tensor(tensor_of(self))};
    int is_operand = operand_of(value, &values[1]);
    if (is_operand == 0) {
        PyErr_Format(PyExc_RuntimeError,
                     "Tensor.__contains__ only supports Tensor or scalar, but you passed in a %R.",
                     (PyObject *)Py_TYPE(value));
    }
    if (is_operand <= 0) {
        return -1;
    }
    mt_value same, found;
    if (tensors_call(operator_ops[OPERATOR_EQ], values, 2, &same, 1) != 0) {
        return -1;
    }
    int status = tensors_call(operator_ops[OPERATOR_ANY], &same, 1, &found, 1);
    mt_value_clear(&same);
    if (status != 0) {
        return -1;
    }
    mt_scalar truth;
    status = scalar_of_tensor(found.of.tensor, &truth);
    mt_value_clear(&found);
    return status != 0 ? -1 : truth.of.integer != 0;
}
