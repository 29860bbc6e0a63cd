/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers from Python to the library and back, and results of ops as objects.
 */
#include "tensors/module/tensors_state.h"

#include <string.h>

/* NumPy's bool has no __index__ and should not become a float. */
static bool is_numpy_bool(PyObject *object)
{
    const char *name = Py_TYPE(object)->tp_name;
    return strncmp(name, "numpy.bool", 10) == 0;
}

int int_try(PyObject *object, int64_t *integer)
{
    PyObject *number = NULL;
    if (PyLong_CheckExact(object)) {
        number = Py_NewRef(object);
    } else if (PyBool_Check(object) || !PyIndex_Check(object)) {
        return 0;
    } else {
        number = PyNumber_Index(object);
        if (number == NULL) {
            if (PyErr_ExceptionMatches(PyExc_TypeError)) {
                PyErr_Clear(); /* arrays and tensors of more than one element */
                return 0;
            }
            return -1;
        }
    }
    int overflow = 0;
    *integer = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow != 0) {
        PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
        return -1;
    }
    return 1;
}

static int scalar_from_long(PyObject *object, mt_scalar *scalar)
{
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow > 0) { /* what uint64 can hold */
        value = (long long)PyLong_AsUnsignedLongLong(object);
        overflow = PyErr_Occurred() ? 1 : 0;
        *scalar = (mt_scalar){.kind = MT_KIND_INT, .count = 1, .of.integer = value};
    } else {
        *scalar = (mt_scalar){.kind = MT_KIND_INT, .of.integer = value};
    }
    if (overflow != 0) {
        PyErr_SetString(PyExc_OverflowError, "int too big to convert");
        return -1;
    }
    return 1;
}

/* What is neither Python's int, float nor bool: NumPy's scalars, Fraction, Decimal. */
static int scalar_from_other(PyObject *object, mt_scalar *scalar)
{
    PyTypeObject *type = Py_TYPE(object);
    if (type->tp_as_number == NULL || PyComplex_Check(object) ||
        (type->tp_as_sequence != NULL && type->tp_as_sequence->sq_length != NULL)) {
        return 0; /* arrays have __float__ too */
    }
    if (is_numpy_bool(object)) {
        int truth = PyObject_IsTrue(object);
        *scalar = (mt_scalar){.kind = MT_KIND_BOOL, .of.integer = truth};
        return truth < 0 ? -1 : 1;
    }
    if (type->tp_as_number->nb_index != NULL) {
        PyObject *number = PyNumber_Index(object);
        int status = number == NULL ? -1 : scalar_from_long(number, scalar);
        Py_XDECREF(number);
        return status;
    }
    if (type->tp_as_number->nb_float == NULL) {
        return 0;
    }
    double real = PyFloat_AsDouble(object);
    *scalar = (mt_scalar){.kind = MT_KIND_REAL, .of.real = real};
    return real == -1.0 && PyErr_Occurred() ? -1 : 1;
}

int scalar_try(PyObject *object, mt_scalar *scalar)
{
    if (PyFloat_Check(object)) {
        *scalar = (mt_scalar){.kind = MT_KIND_REAL, .of.real = PyFloat_AS_DOUBLE(object)};
        return 1;
    }
    if (PyBool_Check(object)) {
        *scalar = (mt_scalar){.kind = MT_KIND_BOOL, .of.integer = object == Py_True};
        return 1;
    }
    if (PyLong_Check(object)) {
        return scalar_from_long(object, scalar);
    }
    return tensor_check(object) ? 0 : scalar_from_other(object, scalar);
}

int scalar_of_tensor(mt_tensor *tensor, mt_scalar *scalar)
{
    static mt_op item = UINT32_MAX;
    if (item == UINT32_MAX && tensors_find_op("item", &item) != 0) {
        return -1;
    }
    mt_value arg = value_tensor(tensor);
    if (tensors_call(item, &arg, 1, scalar, 1) != 0) {
        return -1;
    }
    if (scalar->kind == MT_KIND_TENSOR) {
        mt_value_clear(scalar);
        PyErr_SetString(PyExc_RuntimeError, "a complex number cannot be converted to a real one");
        return -1;
    }
    return 0;
}

int scalar_from_object(PyObject *object, mt_scalar *scalar)
{
    if (tensor_check(object)) {
        mt_tensor *tensor = tensor_of(object);
        if (mt_tensor_numel(tensor) == 1 && !mt_tensor_requires_grad(tensor)) {
            return scalar_of_tensor(tensor, scalar);
        }
    }
    int is_scalar = scalar_try(object, scalar);
    if (is_scalar == 0) {
        PyErr_Format(PyExc_TypeError, "must be Number, not %s", Py_TYPE(object)->tp_name);
    }
    return is_scalar > 0 ? 0 : -1;
}

PyObject *scalar_to_object(const mt_scalar *scalar)
{
    switch (scalar->kind) {
    case MT_KIND_BOOL: return PyBool_FromLong(scalar->of.integer != 0);
    case MT_KIND_INT:
        return scalar->count != 0 ? PyLong_FromUnsignedLongLong((uint64_t)scalar->of.integer)
                                  : PyLong_FromLongLong(scalar->of.integer);
    case MT_KIND_REAL: return PyFloat_FromDouble(scalar->of.real);
    default: Py_RETURN_NONE;
    }
}

static PyObject *tuple_of_tensors(const mt_value *list)
{
    PyObject *tuple = PyTuple_New(list->count);
    for (uint32_t i = 0; tuple != NULL && i < list->count; i++) {
        PyObject *object = tensor_wrap_borrowed(list->of.tensors[i]);
        if (object == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, object);
    }
    return tuple;
}

PyObject *tensors_result(mt_value *result)
{
    if (result->kind == MT_KIND_TENSOR) {
        mt_tensor *tensor = result->of.tensor;
        double parts[2];
        result->kind = MT_KIND_NONE;
        if (mt_tensor_number(tensor, parts)) { /* of item() */
            mt_tensor_release(tensor);
            return PyComplex_FromDoubles(parts[0], parts[1]);
        }
        return tensor_wrap(tensor);
    }
    if (result->kind == MT_KIND_TENSORS) {
        PyObject *tuple = tuple_of_tensors(result);
        mt_value_clear(result);
        return tuple;
    }
    return scalar_to_object(result);
}
