/* SPDX-License-Identifier: Apache-2.0
 *
 * Nested Python data into the memory of a new tensor. Long lists of plain floats and ints have
 * loops of their own.
 */
#include "tensors/data/element_codec.h"
#include "tensors/data/tensor_infer.h"

#include <string.h>

typedef struct filling {
    mt_dtype dtype;
    size_t item_bytes;
    uint32_t n_dims;
    int64_t sizes[MT_MAX_DIMS];
    bool warned; /* about arrays in a list */
    char *next;  /* where the next element goes: everything is stored in order */
} filling;

/* ---- numbers -------------------------------------------------------------------------------- */

static int number_of_tensor(PyObject *object, mt_category category, mt_scalar *number)
{
    mt_tensor *tensor = tensor_of(object);
    if (mt_tensor_numel(tensor) != 1) {
        if (category == MT_CATEGORY_INT) {
            PyErr_SetString(PyExc_TypeError, "only integer tensors of a single element can be "
                                             "converted to an index");
        } else {
            PyErr_SetString(PyExc_ValueError,
                            "only one element tensors can be converted to Python scalars");
        }
        return -1;
    }
    if (mt_tensor_requires_grad(tensor) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "Converting a tensor with requires_grad=True to a scalar may lead to "
                     "unexpected behavior.\nConsider using tensor.detach() first.",
                     2) != 0) {
        return -1;
    }
    return scalar_of_tensor(tensor, number);
}

static int integer_of(PyObject *object, mt_dtype dtype, mt_scalar *number)
{
    PyObject *index = PyNumber_Index(object);
    if (index == NULL) {
        return -1;
    }
    if (dtype == MT_DTYPE_U64) {
        uint64_t bits = PyLong_AsUnsignedLongLong(index);
        Py_DECREF(index);
        *number = mt_int((int64_t)bits);
        return PyErr_Occurred() ? -1 : 0;
    }
    int overflow = 0;
    int64_t value = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    if (overflow != 0) {
        PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
        return -1;
    }
    *number = mt_int(value);
    return value == -1 && PyErr_Occurred() ? -1 : 0;
}

/* An element as a number of what the type needs. */
static int number_of(PyObject *object, mt_dtype dtype, mt_scalar *number)
{
    mt_category category = mt_dtype_category(dtype);
    if (tensor_check(object)) {
        return number_of_tensor(object, category, number);
    }
    if (category == MT_CATEGORY_BOOL) {
        int truth = PyObject_IsTrue(object);
        *number = mt_bool(truth > 0);
        return truth < 0 ? -1 : 0;
    }
    if (category == MT_CATEGORY_INT && !PyFloat_Check(object) &&
        (PyIndex_Check(object) || !data_is_array_scalar(object))) {
        return integer_of(object, dtype, number);
    }
    double value = PyFloat_AsDouble(object);
    *number = mt_real(value);
    return value == -1.0 && PyErr_Occurred() ? -1 : 0;
}

/* ---- rows of elements ----------------------------------------------------------------------- */

/* Plain floats, or ints, from the front; how many there were. */
static Py_ssize_t store_floats(filling *fill, PyObject *const *items, Py_ssize_t count)
{
    Py_ssize_t i = 0;
    for (; i < count && PyFloat_CheckExact(items[i]); i++) {
        double value = PyFloat_AS_DOUBLE(items[i]);
        if (fill->dtype == MT_DTYPE_F32) {
            float single = (float)value;
            memcpy(fill->next, &single, sizeof(single));
        } else {
            memcpy(fill->next, &value, sizeof(value));
        }
        fill->next += fill->item_bytes;
    }
    return i;
}

static Py_ssize_t store_longs(filling *fill, PyObject *const *items, Py_ssize_t count)
{
    Py_ssize_t i = 0;
    for (; i < count && PyLong_CheckExact(items[i]); i++) {
        int overflow = 0;
        int64_t value = PyLong_AsLongLongAndOverflow(items[i], &overflow);
        if (overflow != 0) {
            break; /* the slow way says what is wrong */
        }
        memcpy(fill->next, &value, sizeof(value));
        fill->next += sizeof(value);
    }
    return i;
}

/* One element. */
static int store_item(filling *fill, PyObject *item)
{
    mt_scalar number = mt_int(0);
    if (mt_dtype_category(fill->dtype) == MT_CATEGORY_COMPLEX) {
        PyObject *value = item;
        Py_INCREF(value);
        if (tensor_check(item)) { /* 0-d, or the conversion to a complex number fails */
            Py_SETREF(value, PyObject_CallMethod(item, "item", NULL));
        }
        Py_complex parts = {0, 0};
        if (value != NULL) {
            parts = PyComplex_AsCComplex(value);
            Py_DECREF(value);
        }
        if (PyErr_Occurred()) {
            return -1;
        }
        return element_store_complex(fill->next, fill->dtype, parts.real, parts.imag);
    }
    if (number_of(item, fill->dtype, &number) != 0) {
        return -1;
    }
    return element_store(fill->next, fill->dtype, &number);
}

static int store_row(filling *fill, PyObject *row)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(row);
    Py_ssize_t done = 0;
    if (fill->dtype == MT_DTYPE_F32 || fill->dtype == MT_DTYPE_F64) {
        done = store_floats(fill, PySequence_Fast_ITEMS(row), count);
    } else if (fill->dtype == MT_DTYPE_I64) {
        done = store_longs(fill, PySequence_Fast_ITEMS(row), count);
    }
    for (; done < count; done++) {
        if (PySequence_Fast_GET_SIZE(row) != count) { /* an element's __float__ did it */
            PyErr_SetString(PyExc_RuntimeError, "the list changed while it was read");
            return -1;
        }
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(row, done));
        int failed = store_item(fill, item);
        Py_DECREF(item);
        if (failed != 0) {
            return -1;
        }
        fill->next += fill->item_bytes;
    }
    return 0;
}

static int warn_arrays(filling *fill)
{
    if (fill->warned) {
        return 0;
    }
    fill->warned = true;
    return PyErr_WarnEx(PyExc_UserWarning,
                        "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please "
                        "consider converting the list to a single numpy.ndarray with numpy.array() "
                        "before converting to a tensor.",
                        2);
}

/* Recursion as deep as there are dimensions. */
static int store(filling *fill, uint32_t dim, PyObject *data)
{
    if (infer_is_text(data)) {
        PyErr_Format(PyExc_TypeError, "new(): invalid data type '%.100s'", Py_TYPE(data)->tp_name);
        return -1;
    }
    if (dim > 0 && data_is_array(data) && warn_arrays(fill) != 0) {
        return -1;
    }
    PyObject *fast = PySequence_Fast(data, "not a sequence");
    if (fast == NULL) {
        return -1;
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(fast);
    int failed = 0;
    if (count != fill->sizes[dim]) {
        PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %u (got %zd)",
                     (long long)fill->sizes[dim], dim, count);
        failed = -1;
    } else if (dim + 1 == fill->n_dims) {
        failed = store_row(fill, fast);
    } else {
        for (Py_ssize_t i = 0; i < count && failed == 0; i++) {
            if (PySequence_Fast_GET_SIZE(fast) != count) {
                PyErr_SetString(PyExc_RuntimeError, "the list changed while it was read");
                failed = -1;
                break;
            }
            PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(fast, i));
            failed = store(fill, dim + 1, item);
            Py_DECREF(item);
        }
    }
    Py_DECREF(fast);
    return failed;
}

/* ---- the tensor ------------------------------------------------------------------------------ */

static int fill_all(filling *fill, PyObject *data)
{
    if (fill->n_dims > 0) {
        return store(fill, 0, data);
    }
    return store_item(fill, data);
}

mt_tensor *data_from_sequence(PyObject *data, mt_dtype dtype, mt_device device, bool indexing)
{
    filling fill = {.dtype = dtype};
    if (infer_is_text(data)) {
        PyErr_Format(PyExc_TypeError, "new(): invalid data type '%.100s'", Py_TYPE(data)->tp_name);
        return NULL;
    }
    if (infer_sizes(data, fill.sizes, &fill.n_dims) != 0) {
        return NULL;
    }
    if (dtype == MT_DTYPE_NONE) {
        if (infer_dtype(data, &fill.dtype) != 0) {
            return NULL;
        }
        if (indexing && fill.dtype != MT_DTYPE_BOOL && fill.dtype != MT_DTYPE_U8) {
            fill.dtype = MT_DTYPE_I64;
        }
    }
    fill.item_bytes = mt_dtype_size(fill.dtype);
    mt_tensor *tensor = NULL;
    if (zero_or_raise(mt_empty_with(fill.sizes, fill.n_dims, fill.dtype, MT_CPU, &tensor)) != 0) {
        return NULL;
    }
    char none[16]; /* a tensor without elements may have no memory, and nothing is stored */
    fill.next = mt_tensor_numel(tensor) == 0 ? none : mt_tensor_data(tensor);
    if (fill_all(&fill, data) != 0) {
        mt_tensor_release(tensor);
        return NULL;
    }
    device = device == MT_DEVICE_NONE ? MT_CPU : device;
    /* Both, as torch passes them. */
    tensor = data_to(tensor, mt_tensor_dtype(tensor), device, false);
    return tensor == NULL ? NULL : data_pass(tensor, DATA_LIFT_FRESH);
}
