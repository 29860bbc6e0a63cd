/* SPDX-License-Identifier: Apache-2.0
 *
 * torch.layout and torch.memory_format: names that functions take and compare.
 */
#include "tensors/module/tensors_state.h"

static PyObject *named_repr(PyObject *self)
{
    return PyUnicode_FromFormat("torch.%s", ((named_object *)self)->name);
}

static PyObject *named_reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyUnicode_FromString(((named_object *)self)->name);
}

static PyMethodDef methods[] = {
    {"__reduce__", named_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_repr, named_repr},
    {Py_tp_doc, (char[]){"A named constant, as torch.strided and torch.preserve_format are."}},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec layout_spec = {
    .name = "mindtorch_v2.layout",
    .basicsize = sizeof(named_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static PyType_Spec format_spec = {
    .name = "mindtorch_v2.memory_format",
    .basicsize = sizeof(named_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static PyObject *add_name(PyObject *module, PyTypeObject *type, const char *name, int value)
{
    named_object *self = PyObject_New(named_object, type);
    if (self == NULL) {
        return NULL;
    }
    self->name = name;
    self->value = value;
    if (PyModule_AddObjectRef(module, name, (PyObject *)self) != 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

py_part named_object_start;
int named_object_start(PyObject *module)
{
    static const char *const formats[] = {
        [FORMAT_CONTIGUOUS] = "contiguous_format",
        [FORMAT_PRESERVE] = "preserve_format",
        [FORMAT_CHANNELS_LAST] = "channels_last",
        [FORMAT_CHANNELS_LAST_3D] = "channels_last_3d",
    };
    if (py_add_type(module, &layout_spec, NULL, "layout", &tensors.layout_type) != 0 ||
        py_add_type(module, &format_spec, NULL, "memory_format", &tensors.format_type) != 0) {
        return -1;
    }
    tensors.strided = add_name(module, tensors.layout_type, "strided", 0);
    if (tensors.strided == NULL) {
        return -1;
    }
    for (int i = 0; i <= FORMAT_CHANNELS_LAST_3D; i++) {
        PyObject *format = add_name(module, tensors.format_type, formats[i], i);
        if (format == NULL) {
            return -1;
        }
        Py_DECREF(format); /* the module has it */
    }
    return 0;
}
