/* SPDX-License-Identifier: Apache-2.0
 *
 * torch.Size: a tuple of ints that stays one when it is cut, joined or repeated.
 */
#include "tensors/module/tensors_state.h"

PyObject *size_from_ints(const int64_t *sizes, uint32_t count)
{
    PyObject *self = tensors.size_type->tp_alloc(tensors.size_type, count);
    for (uint32_t i = 0; self != NULL && i < count; i++) {
        PyObject *size = PyLong_FromLongLong(sizes[i]);
        if (size == NULL) {
            Py_CLEAR(self);
            break;
        }
        PyTuple_SET_ITEM(self, i, size);
    }
    return self;
}

/* A tuple as a Size; takes over the reference. Other objects pass through. */
static PyObject *size_from_tuple(PyObject *tuple)
{
    if (tuple == NULL || !PyTuple_CheckExact(tuple)) {
        return tuple;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    PyObject *self = tensors.size_type->tp_alloc(tensors.size_type, count);
    for (Py_ssize_t i = 0; self != NULL && i < count; i++) {
        PyTuple_SET_ITEM(self, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
    }
    Py_DECREF(tuple);
    return self;
}

/* Every item as an int; ints stay, __index__ is asked of others. */
static PyObject *checked(PyObject *items)
{
    Py_ssize_t count = PyTuple_GET_SIZE(items);
    PyObject *self = tensors.size_type->tp_alloc(tensors.size_type, count);
    for (Py_ssize_t i = 0; self != NULL && i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        PyObject *number = PyIndex_Check(item) ? PyNumber_Index(item) : NULL;
        if (number == NULL) {
            if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError)) {
                PyErr_Format(PyExc_TypeError,
                             "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                             Py_TYPE(item)->tp_name);
            }
            Py_CLEAR(self);
            break;
        }
        PyTuple_SET_ITEM(self, i, number);
    }
    return self;
}

static PyObject *size_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *kwargs)
{
    PyObject *given = NULL;
    static const char *const names[] = {"", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Size", PY_NAMES(names), &given)) {
        return NULL;
    }
    PyObject *items = given == NULL ? PyTuple_New(0) : PySequence_Tuple(given);
    PyObject *self = items == NULL ? NULL : checked(items);
    Py_XDECREF(items);
    return self;
}

static PyObject *size_repr(PyObject *self)
{
    PyObject *list = PySequence_List(self);
    PyObject *text = list == NULL ? NULL : PyUnicode_FromFormat("torch.Size(%R)", list);
    Py_XDECREF(list);
    return text;
}

static PyObject *size_concat(PyObject *self, PyObject *other)
{
    return size_from_tuple(PyTuple_Type.tp_as_sequence->sq_concat(self, other));
}

/* (1,) + Size: as a number's operator, which is asked before the tuple's. */
static PyObject *size_add(PyObject *a, PyObject *b)
{
    if (!PyTuple_Check(a) || !PyTuple_Check(b)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    PyObject *joined = PyTuple_Type.tp_as_sequence->sq_concat(a, b);
    if (joined != NULL && !PyTuple_CheckExact(joined)) {
        return joined; /* tuple + () is the first one itself */
    }
    return size_from_tuple(joined);
}

static PyObject *size_repeat(PyObject *self, Py_ssize_t count)
{
    return size_from_tuple(PyTuple_Type.tp_as_sequence->sq_repeat(self, count));
}

static PyObject *size_subscript(PyObject *self, PyObject *key)
{
    return size_from_tuple(PyTuple_Type.tp_as_mapping->mp_subscript(self, key));
}

static PyObject *size_numel(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *product = PyLong_FromLong(1);
    for (Py_ssize_t i = 0; product != NULL && i < PyTuple_GET_SIZE(self); i++) {
        Py_SETREF(product, PyNumber_Multiply(product, PyTuple_GET_ITEM(self, i)));
    }
    return product;
}

static PyObject *size_reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *items = PyTuple_GetSlice(self, 0, PyTuple_GET_SIZE(self));
    PyObject *list = items == NULL ? NULL : PySequence_List(items);
    Py_XDECREF(items);
    return list == NULL ? NULL : Py_BuildValue("O(N)", (PyObject *)tensors.size_type, list);
}

static PyMethodDef methods[] = {
    {"numel", size_numel, METH_NOARGS, "numel($self, /)\n--\n\nThe product of the sizes."},
    {"__reduce__", size_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, size_new},
    {Py_tp_doc,
     (char[]){"Size(iterable=(), /)\n--\n\nThe sizes of a tensor's dimensions: a tuple of ints."}},
    {Py_tp_repr, size_repr},
    {Py_tp_methods, methods},
    {Py_sq_concat, size_concat},
    {Py_sq_repeat, size_repeat},
    {Py_nb_add, size_add},
    {Py_mp_subscript, size_subscript},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "mindtorch_v2.Size",
    .basicsize = 0,
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

py_part size_object_start;
int size_object_start(PyObject *module)
{
    return py_add_type(module, &spec, (PyObject *)&PyTuple_Type, "Size", &tensors.size_type);
}
