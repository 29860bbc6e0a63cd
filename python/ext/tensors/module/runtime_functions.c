/* SPDX-License-Identifier: Apache-2.0
 *
 * What the library keeps for the whole process: threads and the default type.
 */
#include "tensors/module/tensors_state.h"

static PyObject *set_num_threads(PyObject *Py_UNUSED(module), PyObject *object)
{
    int64_t count = 0;
    int is_int = int_try(object, &count);
    if (is_int == 0) {
        return PyErr_Format(PyExc_TypeError, "set_num_threads expects an int, but got %s",
                            Py_TYPE(object)->tp_name);
    }
    if (is_int < 0) {
        return NULL;
    }
    if (count < 1 || count > UINT32_MAX) {
        PyErr_SetString(PyExc_RuntimeError, "set_num_threads expects a positive integer");
        return NULL;
    }
    return none_or_raise(mt_set_num_threads((uint32_t)count));
}

static PyObject *get_num_threads(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(mt_num_threads());
}

static PyObject *set_default_dtype(PyObject *Py_UNUSED(module), PyObject *object)
{
    mt_dtype dtype = MT_DTYPE_NONE;
    if (!Py_IS_TYPE(object, tensors.dtype_type)) {
        return PyErr_Format(PyExc_TypeError, "invalid dtype object: %R", object);
    }
    if (dtype_from_object(object, &dtype) != 0) {
        return NULL;
    }
    if (mt_dtype_category(dtype) != MT_CATEGORY_REAL) {
        PyErr_SetString(PyExc_TypeError,
                        "only floating-point types are supported as the default type");
        return NULL;
    }
    return none_or_raise(mt_set_default_dtype(dtype));
}

static PyObject *get_default_dtype(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return dtype_to_object(mt_default_dtype());
}

static PyObject *promote_types(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *first = NULL, *second = NULL;
    if (!PyArg_ParseTuple(args, "O!O!:promote_types", tensors.dtype_type, &first,
                          tensors.dtype_type, &second)) {
        return NULL;
    }
    mt_dtype both =
        mt_promote_types(((dtype_object *)first)->dtype, ((dtype_object *)second)->dtype);
    return both == MT_DTYPE_NONE ? tensors_raise(MT_ERUNTIME) : dtype_to_object(both);
}

static PyMethodDef functions[] = {
    {"set_num_threads", set_num_threads, METH_O,
     "set_num_threads($module, n, /)\n--\n\nHow many threads large ops use."},
    {"get_num_threads", get_num_threads, METH_NOARGS,
     "get_num_threads($module, /)\n--\n\nHow many threads large ops use."},
    {"set_default_dtype", set_default_dtype, METH_O,
     "set_default_dtype($module, d, /)\n--\n\nThe type of new tensors of floating-point numbers."},
    {"get_default_dtype", get_default_dtype, METH_NOARGS,
     "get_default_dtype($module, /)\n--\n\nThe type of new tensors of floating-point numbers."},
    {"promote_types", promote_types, METH_VARARGS,
     "promote_types($module, type1, type2, /)\n--\n\nThe type that holds the values of both types."},
    {NULL, NULL, 0, NULL},
};

py_part runtime_functions_start;
int runtime_functions_start(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
