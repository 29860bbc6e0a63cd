/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators in place, and those of one operand.
 */
#include "tensors/tensor/tensor_parts.h"

/* 1: both are ready, 0: NotImplemented, -1: an exception. */
static int operands_of(PyObject *self, PyObject *other, mt_value *values)
{
    values[0] = value_tensor(tensor_of(self));
    return operand_of(other, &values[1]);
}

/* An op that writes its first argument: the answer is `self` itself (PYT1). */
static PyObject *write_self(operator_op which, PyObject *self, PyObject *other)
{
    mt_value values[2];
    int ready = operands_of(self, other, values);
    if (ready == 0) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return ready < 0 ? NULL : operator_call(which, values, 2);
}

PyObject *tensor_inplace_add(PyObject *a, PyObject *b)
{
    return write_self(OPERATOR_ADD_, a, b);
}

PyObject *tensor_inplace_subtract(PyObject *a, PyObject *b)
{
    return write_self(OPERATOR_SUB_, a, b);
}

PyObject *tensor_inplace_multiply(PyObject *a, PyObject *b)
{
    return write_self(OPERATOR_MUL_, a, b);
}

PyObject *tensor_inplace_true_divide(PyObject *a, PyObject *b)
{
    return write_self(OPERATOR_DIV_, a, b);
}

PyObject *tensor_inplace_floor_divide(PyObject *a, PyObject *b)
{
    return write_self(OPERATOR_FLOOR_DIVIDE_, a, b);
}

PyObject *tensor_inplace_remainder(PyObject *a, PyObject *b)
{
    return write_self(OPERATOR_REMAINDER_, a, b);
}

PyObject *tensor_inplace_and(PyObject *a, PyObject *b)
{
    return write_self(OPERATOR_IAND, a, b);
}

PyObject *tensor_inplace_or(PyObject *a, PyObject *b)
{
    return write_self(OPERATOR_IOR, a, b);
}

PyObject *tensor_inplace_xor(PyObject *a, PyObject *b)
{
    return write_self(OPERATOR_IXOR, a, b);
}

PyObject *tensor_inplace_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus != Py_None) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return write_self(OPERATOR_POW_, a, b);
}

static PyObject *one_operand(operator_op which, PyObject *self)
{
    mt_value value = value_tensor(tensor_of(self));
    return operator_call(which, &value, 1);
}

PyObject *tensor_negative(PyObject *self)
{
    return one_operand(OPERATOR_NEG, self);
}

PyObject *tensor_positive(PyObject *self)
{
    return Py_NewRef(self);
}

PyObject *tensor_absolute(PyObject *self)
{
    return one_operand(OPERATOR_ABS, self);
}

PyObject *tensor_invert(PyObject *self)
{
    if (mt_dtype_category(mt_tensor_dtype(tensor_of(self))) == MT_CATEGORY_REAL) {
        PyErr_SetString(PyExc_TypeError, "~ (operator.invert) is only implemented on integer and "
                                         "Boolean-type tensors");
        return NULL;
    }
    return one_operand(OPERATOR_BITWISE_NOT, self);
}
