/* SPDX-License-Identifier: Apache-2.0
 *
 * Which type and sizes nested Python data has, as torch.tensor() infers them.
 */
#include "tensors/data/tensor_infer.h"

/* numpy.ndarray and numpy.generic, once the program has imported numpy; NULL before. They live as
 * long as the process: numpy cannot be unloaded. */
static PyObject *array_type;
static PyObject *scalar_type;

static bool find_numpy(void)
{
    if (array_type != NULL) {
        return true;
    }
    PyObject *name = PyUnicode_FromString("numpy");
    PyObject *module = name == NULL ? NULL : PyImport_GetModule(name);
    Py_XDECREF(name);
    if (module == NULL) {
        PyErr_Clear();
        return false;
    }
    PyObject *array = PyObject_GetAttrString(module, "ndarray");
    PyObject *scalar = array == NULL ? NULL : PyObject_GetAttrString(module, "generic");
    Py_DECREF(module);
    if (scalar == NULL) { /* half imported, or no numpy at all */
        PyErr_Clear();
        Py_XDECREF(array);
        return false;
    }
    array_type = array;
    scalar_type = scalar;
    return true;
}

static bool is_plain(PyObject *object)
{
    return PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object) ||
           PyList_CheckExact(object) || PyTuple_CheckExact(object);
}

bool data_is_array(PyObject *object)
{
    return !is_plain(object) && find_numpy() &&
           PyObject_TypeCheck(object, (PyTypeObject *)array_type);
}

bool data_is_array_scalar(PyObject *object)
{
    return !is_plain(object) && find_numpy() &&
           PyObject_TypeCheck(object, (PyTypeObject *)scalar_type);
}

bool infer_is_text(PyObject *object)
{
    return PyUnicode_Check(object) || PyBytes_Check(object);
}

bool infer_is_sequence(PyObject *object)
{
    if (PyList_Check(object) || PyTuple_Check(object)) {
        return true;
    }
    if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) || tensor_check(object) ||
        !PySequence_Check(object)) {
        return false;
    }
    if (data_is_array(object)) { /* without dimensions it is a number */
        Py_ssize_t length = PyObject_Length(object);
        if (length < 0) {
            PyErr_Clear();
            return false;
        }
    }
    return !data_is_array_scalar(object);
}

int infer_sizes(PyObject *data, int64_t *sizes, uint32_t *n_dims)
{
    PyObject *item = Py_NewRef(data);
    *n_dims = 0;
    while (infer_is_sequence(item)) {
        Py_ssize_t length = PySequence_Length(item);
        if (length < 0) {
            Py_DECREF(item);
            return -1;
        }
        if (*n_dims == MT_MAX_DIMS) {
            PyErr_Format(PyExc_ValueError, "too many dimensions '%.100s'", Py_TYPE(item)->tp_name);
            Py_DECREF(item);
            return -1;
        }
        sizes[(*n_dims)++] = length;
        if (length == 0) {
            break;
        }
        PyObject *first = PySequence_GetItem(item, 0);
        Py_DECREF(item);
        if (first == NULL) {
            return -1;
        }
        item = first;
    }
    Py_DECREF(item);
    return 0;
}

/* ---- types ---------------------------------------------------------------------------------- */

/* A number's type; NONE: it is none, an exception is set. */
static mt_dtype infer_number(PyObject *object)
{
    mt_dtype dtype = MT_DTYPE_NONE;
    if (tensor_check(object)) {
        return mt_tensor_dtype(tensor_of(object));
    }
    if (data_is_array(object) || data_is_array_scalar(object)) {
        return data_array_dtype(object, &dtype) == 0 ? dtype : MT_DTYPE_NONE;
    }
    if (PyFloat_Check(object)) {
        return mt_default_dtype();
    }
    if (PyBool_Check(object)) {
        return MT_DTYPE_BOOL;
    }
    if (PyLong_Check(object)) {
        return MT_DTYPE_I64;
    }
    if (PyComplex_Check(object)) {
        return mt_default_dtype() == MT_DTYPE_F64 ? MT_DTYPE_C128 : MT_DTYPE_C64;
    }
    if (infer_is_text(object)) {
        PyErr_Format(PyExc_TypeError, "new(): invalid data type '%.100s'",
                     Py_TYPE(object)->tp_name);
    } else {
        PyErr_Format(PyExc_RuntimeError, "Could not infer dtype of %.100s",
                     Py_TYPE(object)->tp_name);
    }
    return MT_DTYPE_NONE;
}

static int promote(mt_dtype *dtype, mt_dtype other)
{
    if (other == MT_DTYPE_NONE) {
        return -1;
    }
    *dtype = *dtype == MT_DTYPE_NONE ? other : mt_promote_types(*dtype, other);
    return zero_or_raise(*dtype == MT_DTYPE_NONE ? MT_ERUNTIME : MT_OK);
}

/* The depth is bounded by MT_MAX_DIMS, which infer_sizes() has refused to pass for the first
 * elements; `depth` does so for the others. */
static int infer_items(PyObject *data, uint32_t depth, mt_dtype *dtype)
{
    if (!infer_is_sequence(data) || infer_is_text(data)) {
        return promote(dtype, infer_number(data));
    }
    if (depth == MT_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "too many dimensions '%.100s'", Py_TYPE(data)->tp_name);
        return -1;
    }
    if (data_is_array(data)) {
        return promote(dtype, infer_number(data));
    }
    PyObject *fast = PySequence_Fast(data, "not a sequence");
    if (fast == NULL) {
        return -1;
    }
    int failed = 0;
    mt_dtype real = mt_default_dtype();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast) && failed == 0; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(fast, i);
        if (PyFloat_CheckExact(item)) {
            failed = *dtype == real ? 0 : promote(dtype, real);
        } else if (PyLong_CheckExact(item)) {
            failed = *dtype == MT_DTYPE_I64 ? 0 : promote(dtype, MT_DTYPE_I64);
        } else {
            Py_INCREF(item); /* what it does to find out may change the list */
            failed = infer_items(item, depth + 1, dtype);
            Py_DECREF(item);
        }
    }
    Py_DECREF(fast);
    return failed;
}

int infer_dtype(PyObject *data, mt_dtype *dtype)
{
    *dtype = MT_DTYPE_NONE;
    if (infer_items(data, 0, dtype) != 0) {
        return -1;
    }
    if (*dtype == MT_DTYPE_NONE) {
        *dtype = mt_default_dtype();
    }
    return 0;
}
