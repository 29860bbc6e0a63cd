/* SPDX-License-Identifier: Apache-2.0
 *
 * torch.dtype: one object for each element type, compared by identity.
 */
#include "tensors/module/tensors_state.h"

static PyObject *dtype_repr(PyObject *self)
{
    return PyUnicode_FromFormat("torch.%s", mt_dtype_name(((dtype_object *)self)->dtype));
}

/* By name, so that a pickled dtype is the same object again. */
static PyObject *dtype_reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyUnicode_FromString(mt_dtype_name(((dtype_object *)self)->dtype));
}

static PyObject *is_floating_point(PyObject *self, void *Py_UNUSED(context))
{
    return PyBool_FromLong(mt_dtype_category(((dtype_object *)self)->dtype) == MT_CATEGORY_REAL);
}

static PyObject *is_complex(PyObject *self, void *Py_UNUSED(context))
{
    return PyBool_FromLong(mt_dtype_category(((dtype_object *)self)->dtype) == MT_CATEGORY_COMPLEX);
}

bool dtype_is_signed(mt_dtype dtype)
{
    return dtype != MT_DTYPE_BOOL && dtype != MT_DTYPE_U8 && dtype != MT_DTYPE_U16 &&
           dtype != MT_DTYPE_U32 && dtype != MT_DTYPE_U64;
}

static PyObject *is_signed(PyObject *self, void *Py_UNUSED(context))
{
    return PyBool_FromLong(dtype_is_signed(((dtype_object *)self)->dtype));
}

static PyObject *get_itemsize(PyObject *self, void *Py_UNUSED(context))
{
    return PyLong_FromSize_t(mt_dtype_size(((dtype_object *)self)->dtype));
}

static PyGetSetDef properties[] = {
    {"is_floating_point", is_floating_point, NULL,
     "Whether it is a type of floating-point numbers.", NULL},
    {"is_complex", is_complex, NULL, "Whether it is a type of complex numbers.", NULL},
    {"is_signed", is_signed, NULL, "Whether it has negative numbers.", NULL},
    {"itemsize", get_itemsize, NULL, "bytes of an element", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_repr, dtype_repr},
    {Py_tp_doc, (char[]){"The type of a tensor's elements: torch.float32 and others."}},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "mindtorch_v2.dtype",
    .basicsize = sizeof(dtype_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

int dtype_from_object(PyObject *object, mt_dtype *dtype)
{
    if (Py_IS_TYPE(object, tensors.dtype_type)) {
        *dtype = ((dtype_object *)object)->dtype;
    } else if (object == Py_None) {
        *dtype = MT_DTYPE_NONE;
    } else if (object == (PyObject *)&PyFloat_Type) {
        *dtype = MT_DTYPE_F64;
    } else if (object == (PyObject *)&PyComplex_Type) {
        *dtype = MT_DTYPE_C128;
    } else if (object == (PyObject *)&PyLong_Type) {
        *dtype = MT_DTYPE_I64;
    } else if (object == (PyObject *)&PyBool_Type) {
        *dtype = MT_DTYPE_BOOL;
    } else {
        PyErr_Format(PyExc_TypeError, "dtype must be torch.dtype, not %s",
                     Py_TYPE(object)->tp_name);
        return -1;
    }
    return 0;
}

py_part dtype_object_start;
int dtype_object_start(PyObject *module)
{
    if (py_add_type(module, &spec, NULL, "dtype", &tensors.dtype_type) != 0) {
        return -1;
    }
    for (int i = 0; i < MT_DTYPE_COUNT; i++) {
        dtype_object *self = PyObject_New(dtype_object, tensors.dtype_type);
        if (self == NULL) {
            return -1;
        }
        self->dtype = (mt_dtype)i;
        tensors.dtypes[i] = (PyObject *)self; /* kept: tensors refer to it at all times */
        if (PyModule_AddObjectRef(module, mt_dtype_name(self->dtype), (PyObject *)self) != 0) {
            return -1;
        }
    }
    return 0;
}
