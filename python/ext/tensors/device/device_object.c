/* SPDX-License-Identifier: Apache-2.0
 *
 * torch.device. "cuda" is another name of the accelerator, which answers as "npu".
 */
#include "tensors/device/device_parts.h"

#include <string.h>

static const char *const type_names[MT_DEVICE_TYPE_COUNT] = {
    [MT_DEVICE_TYPE_CPU] = "cpu",
    [MT_DEVICE_TYPE_NPU] = "npu",
    [MT_DEVICE_TYPE_META] = "meta",
};

PyObject *device_object_new(mt_device_type type, int index)
{
    device_object *self = PyObject_New(device_object, tensors.device_type);
    if (self != NULL) {
        self->type = type;
        self->index = index;
    }
    return (PyObject *)self;
}

PyObject *device_to_object(mt_device device)
{
    if (device == MT_META) {
        return device_object_new(MT_DEVICE_TYPE_META, -1);
    }
    return device < MT_NPU ? device_object_new(MT_DEVICE_TYPE_CPU, -1)
                           : device_object_new(MT_DEVICE_TYPE_NPU, device & 0xFF);
}

/* "npu:1" in type and index. mt_device_parse() says what is wrong with others. */
static int parse_text(PyObject *text, mt_device_type *type, int *index)
{
    const char *bytes = PyUnicode_AsUTF8(text);
    if (bytes == NULL) {
        return -1;
    }
    mt_device device = MT_DEVICE_NONE;
    if (zero_or_raise(mt_device_parse(bytes, &device)) != 0) {
        return -1;
    }
    *type = (mt_device_type)(device >> 8);
    *index = strchr(bytes, ':') == NULL ? -1 : (int)(device & 0xFF);
    return 0;
}

/* An accelerator by its number. */
static int check_index(PyObject *object, int *index)
{
    int64_t number = 0;
    int is_int = int_try(object, &number);
    if (is_int == 0) {
        PyErr_Format(PyExc_TypeError, "device(): argument 'index' must be int, not %s",
                     Py_TYPE(object)->tp_name);
    }
    if (is_int <= 0) {
        return -1;
    }
    if (number < 0 || number > 127) {
        PyErr_Format(PyExc_RuntimeError, "Device index must be between 0 and 127, but got %lld",
                     (long long)number);
        return -1;
    }
    *index = (int)number;
    return 0;
}

int device_from_object(PyObject *object, mt_device *device)
{
    mt_device_type type = MT_DEVICE_TYPE_NPU;
    int index = -1;
    if (object == Py_None) {
        *device = MT_DEVICE_NONE;
        return 0;
    }
    if (Py_IS_TYPE(object, tensors.device_type)) {
        type = ((device_object *)object)->type;
        index = ((device_object *)object)->index;
    } else if (PyUnicode_Check(object)) {
        if (parse_text(object, &type, &index) != 0) {
            return -1;
        }
    } else if (PyLong_Check(object) && !PyBool_Check(object)) {
        if (check_index(object, &index) != 0) {
            return -1;
        }
    } else {
        PyErr_Format(PyExc_TypeError, "device must be torch.device, str or int, not %s",
                     Py_TYPE(object)->tp_name);
        return -1;
    }
    if (type != MT_DEVICE_TYPE_NPU) {
        *device = type == MT_DEVICE_TYPE_CPU ? MT_CPU : MT_META;
        return 0;
    }
    tensors.far = true;
    *device = index < 0 ? mt_current_device() : MT_NPU + index;
    return 0;
}

int accelerator_from_object(PyObject *object, mt_device *device)
{
    if (object == Py_None) {
        tensors.far = true;
        *device = mt_current_device();
        return 0;
    }
    if (device_from_object(object, device) != 0) {
        return -1;
    }
    if (*device < MT_NPU || *device == MT_META) {
        PyErr_Format(PyExc_ValueError, "Expected an npu device, but got: %S", object);
        return -1;
    }
    return 0;
}

static PyObject *device_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"type", "index", NULL};
    PyObject *what = NULL, *number = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", PY_NAMES(names), &what, &number)) {
        return NULL;
    }
    mt_device_type kind = MT_DEVICE_TYPE_NPU;
    int index = -1;
    if (Py_IS_TYPE(what, tensors.device_type) && number == Py_None) {
        return Py_NewRef(what);
    }
    if (PyUnicode_Check(what)) {
        if (parse_text(what, &kind, &index) != 0) {
            return NULL;
        }
    } else if (PyLong_Check(what) && !PyBool_Check(what) && number == Py_None) {
        number = what;
    } else {
        PyErr_Format(PyExc_TypeError,
                     "device() received an invalid combination of arguments - got (%s), but "
                     "expected one of:\n * (torch.device device)\n * (str type, int index = -1)\n",
                     Py_TYPE(what)->tp_name);
        return NULL;
    }
    if (number != Py_None) {
        if (index >= 0) {
            PyErr_Format(PyExc_RuntimeError,
                         "type (string) must not include an index because index was passed "
                         "explicitly: %U",
                         what);
            return NULL;
        }
        if (check_index(number, &index) != 0) {
            return NULL;
        }
    }
    return device_object_new(kind, index);
}

static PyObject *device_repr(PyObject *object)
{
    const device_object *self = (device_object *)object;
    return self->index < 0 ? PyUnicode_FromFormat("device(type='%s')", type_names[self->type])
                           : PyUnicode_FromFormat("device(type='%s', index=%d)",
                                                  type_names[self->type], self->index);
}

static PyObject *device_str(PyObject *object)
{
    const device_object *self = (device_object *)object;
    return self->index < 0 ? PyUnicode_FromString(type_names[self->type])
                           : PyUnicode_FromFormat("%s:%d", type_names[self->type], self->index);
}

static Py_hash_t device_hash(PyObject *object)
{
    const device_object *self = (device_object *)object;
    return (Py_hash_t)self->type * 1024 + self->index + 2;
}

static PyObject *device_compare(PyObject *a, PyObject *b, int operation)
{
    if (!Py_IS_TYPE(b, tensors.device_type) || (operation != Py_EQ && operation != Py_NE)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    bool same = ((device_object *)a)->type == ((device_object *)b)->type &&
                ((device_object *)a)->index == ((device_object *)b)->index;
    return PyBool_FromLong(same == (operation == Py_EQ));
}

static PyObject *get_type(PyObject *self, void *Py_UNUSED(context))
{
    return PyUnicode_FromString(type_names[((device_object *)self)->type]);
}

static PyObject *get_index(PyObject *self, void *Py_UNUSED(context))
{
    int index = ((device_object *)self)->index;
    if (index < 0) {
        Py_RETURN_NONE;
    }
    return PyLong_FromLong(index);
}

static PyObject *device_reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return Py_BuildValue("O(N)", (PyObject *)tensors.device_type, device_str(self));
}

static PyGetSetDef properties[] = {
    {"type", get_type, NULL, "'cpu', 'npu' or 'meta'.", NULL},
    {"index", get_index, NULL, "The number among its kind; None: the current one.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, NULL},
    {"__enter__", device_enter, METH_NOARGS,
     "tensors are made there inside, unless told otherwise"},
    {"__exit__", PY_CALL(device_exit), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, device_new},
    {Py_tp_doc,
     (char[]){
         "device(type, index=None)\n--\n\nWhere a tensor is: 'cpu', 'npu', 'npu:1', 'meta'. In a with statement: where new ones are."}},
    {Py_tp_repr, device_repr},
    {Py_tp_str, device_str},
    {Py_tp_hash, device_hash},
    {Py_tp_richcompare, device_compare},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "mindtorch_v2.device",
    .basicsize = sizeof(device_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

py_part device_object_start;
int device_object_start(PyObject *module)
{
    return py_add_type(module, &spec, NULL, "device", &tensors.device_type);
}
