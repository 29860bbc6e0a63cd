/* SPDX-License-Identifier: Apache-2.0
 *
 * Python objects as arguments of ops, by torch's rules.
 */
#include "tensors/ops/op_binding.h"

#include <string.h>

void op_scratch_init(op_scratch *scratch)
{
    scratch->used = 0;
    scratch->heap = NULL;
    scratch->lists = NULL;
}

void op_scratch_clear(op_scratch *scratch)
{
    for (; scratch->lists != NULL; scratch->lists = scratch->lists->next) {
        for (size_t i = 0; i < scratch->lists->count; i++) {
            mt_tensor_release(scratch->lists->tensors[i]);
        }
    }
    while (scratch->heap != NULL) {
        void *next = *(void **)scratch->heap;
        PyMem_Free(scratch->heap);
        scratch->heap = next;
    }
}

void *op_scratch_take(op_scratch *scratch, size_t words)
{
    if (words <= sizeof scratch->words / sizeof scratch->words[0] - scratch->used) {
        void *place = &scratch->words[scratch->used];
        scratch->used += (uint32_t)words;
        return place;
    }
    void **block = PyMem_Malloc((words + 1) * sizeof(int64_t));
    if (block == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    block[0] = scratch->heap;
    scratch->heap = block;
    return block + 1;
}

const char *op_type_text(const op_param *param)
{
    static const char *const texts[OP_TYPE_COUNT] = {
        [OP_TENSOR] = "Tensor",
        [OP_TENSOR_OR_SCALAR] = "Tensor",
        [OP_TENSORS] = "tuple of Tensors",
        [OP_OPTIONAL_TENSORS] = "tuple of Tensors",
        [OP_SCALAR] = "Number",
        [OP_INT] = "int",
        [OP_INTS] = "tuple of ints",
        [OP_FLOAT] = "float",
        [OP_BOOL] = "bool",
        [OP_TEXT] = "str",
        [OP_DTYPE] = "torch.dtype",
        [OP_DEVICE] = "torch.device",
        [OP_GENERATOR] = "torch.Generator",
    };
    return param->format ? "torch.memory_format" : texts[param->type];
}

/* A number, also of a tensor with one element that needs no gradient. */
static int scalar_argument(PyObject *object, mt_value *value)
{
    if (!tensor_check(object)) {
        return scalar_try(object, value);
    }
    mt_tensor *tensor = tensor_of(object);
    if (mt_tensor_n_dims(tensor) != 0 || mt_tensor_requires_grad(tensor)) {
        return 0;
    }
    return scalar_of_tensor(tensor, value) != 0 ? -1 : 1;
}

/* A complex number is the tensor that stands for it; the scratch holds it. */
static int complex_argument(PyObject *object, mt_value *value, op_scratch *scratch)
{
    Py_complex parts = PyComplex_AsCComplex(object);
    op_held *list = op_scratch_take(scratch, sizeof(op_held) / sizeof(int64_t) + 1);
    if (list == NULL ||
        zero_or_raise(mt_tensor_from_complex(parts.real, parts.imag, &list->tensors[0])) != 0) {
        return -1;
    }
    list->count = 1;
    list->next = scratch->lists;
    scratch->lists = list;
    *value = value_tensor(list->tensors[0]);
    return 1;
}

static int int_argument(const op_param *param, PyObject *object, mt_value *value)
{
    if (param->format && Py_IS_TYPE(object, tensors.format_type)) {
        *value = mt_int(((named_object *)object)->value);
        return 1;
    }
    int64_t integer = 0;
    int is_int = int_try(object, &integer);
    if (is_int > 0) {
        *value = (mt_value){.kind = MT_KIND_INT, .of.integer = integer};
    }
    return is_int;
}

/* An item of a list; bools occur in masks. */
static int list_item(PyObject *object, int64_t *integer)
{
    if (PyBool_Check(object)) {
        *integer = object == Py_True;
        return 1;
    }
    return int_try(object, integer);
}

static int ints_argument(const op_param *param, PyObject *object, mt_value *value,
                         op_scratch *scratch)
{
    if (!PyTuple_Check(object) && !PyList_Check(object)) {
        int64_t integer = 0;
        int is_int = param->spread == 0 ? 0 : int_try(object, &integer);
        if (is_int <= 0) {
            return is_int;
        }
        int64_t *ints = op_scratch_take(scratch, param->spread);
        if (ints == NULL) {
            return -1;
        }
        for (int i = 0; i < param->spread; i++) {
            ints[i] = integer;
        }
        *value = (mt_value){.kind = MT_KIND_INTS, .count = param->spread, .of.ints = ints};
        return 1;
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
    int64_t *ints = op_scratch_take(scratch, (size_t)count);
    if (ints == NULL) {
        return -1;
    }
    /* __index__ may run code that changes a list: its length is read each time. */
    for (Py_ssize_t i = 0; i < count && i < PySequence_Fast_GET_SIZE(object); i++) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(object, i));
        int is_int = list_item(item, &ints[i]);
        Py_DECREF(item);
        if (is_int <= 0) {
            return is_int;
        }
    }
    if (PySequence_Fast_GET_SIZE(object) < count) {
        PyErr_SetString(PyExc_RuntimeError, "list changed size while it was read");
        return -1;
    }
    *value = (mt_value){.kind = MT_KIND_INTS, .count = (uint32_t)count, .of.ints = ints};
    return 1;
}

static int tensors_argument(const op_param *param, PyObject *object, mt_value *value,
                            op_scratch *scratch)
{
    if (!PyTuple_Check(object) && !PyList_Check(object)) {
        return 0;
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
    op_held *list = op_scratch_take(scratch, sizeof(op_held) / sizeof(int64_t) + (size_t)count);
    if (list == NULL) {
        return -1;
    }
    list->count = 0;
    list->next = scratch->lists;
    scratch->lists = list;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(object, i);
        if (tensor_check(item)) {
            list->tensors[list->count++] = mt_tensor_retain(tensor_of(item)); /* OB3 */
        } else if (item == Py_None && param->type == OP_OPTIONAL_TENSORS) {
            list->tensors[list->count++] = NULL;
        } else {
            PyErr_Format(PyExc_TypeError,
                         "expected Tensor as element %zd in argument %d, but got %s", i, 0,
                         Py_TYPE(item)->tp_name);
            return -1;
        }
    }
    *value =
        (mt_value){.kind = MT_KIND_TENSORS, .count = (uint32_t)count, .of.tensors = list->tensors};
    return 1;
}

static int text_argument(PyObject *object, mt_value *value)
{
    if (!PyUnicode_Check(object)) {
        return 0;
    }
    const char *text = PyUnicode_AsUTF8(object);
    *value = (mt_value){.kind = MT_KIND_TEXT, .of.text = text};
    return text == NULL ? -1 : 1;
}

static int dtype_argument(PyObject *object, mt_value *value)
{
    if (!Py_IS_TYPE(object, tensors.dtype_type) && object != (PyObject *)&PyFloat_Type &&
        object != (PyObject *)&PyLong_Type && object != (PyObject *)&PyBool_Type &&
        object != (PyObject *)&PyComplex_Type) {
        return 0;
    }
    mt_dtype dtype = MT_DTYPE_NONE;
    int status = dtype_from_object(object, &dtype);
    *value = value_dtype(dtype);
    return status != 0 ? -1 : 1;
}

static int device_argument(PyObject *object, mt_value *value)
{
    if (!Py_IS_TYPE(object, tensors.device_type) && !PyUnicode_Check(object) &&
        (!PyLong_Check(object) || PyBool_Check(object))) {
        return 0;
    }
    mt_device device = MT_DEVICE_NONE;
    int status = device_from_object(object, &device);
    *value = value_device(device);
    return status != 0 ? -1 : 1;
}

static int generator_argument(PyObject *object, mt_value *value)
{
    if (!PyObject_TypeCheck(object, tensors.generator_type)) {
        return 0;
    }
    mt_generator *generator = ((generator_object *)object)->generator;
    *value = (mt_value){.kind = generator == NULL ? MT_KIND_NONE : MT_KIND_GENERATOR,
                        .of.generator = generator};
    return 1;
}

int op_argument(const op_param *param, PyObject *object, mt_value *value, op_scratch *scratch)
{
    if (param->type <= OP_TENSOR_OR_SCALAR && tensor_check(object)) {
        *value = value_tensor(tensor_of(object));
        return 1;
    }
    if (object == Py_None) {
        *value = value_none();
        return param->optional;
    }
    switch ((op_type)param->type) {
    case OP_TENSOR_OR_SCALAR:
        return PyComplex_Check(object) ? complex_argument(object, value, scratch)
                                       : scalar_try(object, value);
    case OP_TENSORS:
    case OP_OPTIONAL_TENSORS: return tensors_argument(param, object, value, scratch);
    case OP_SCALAR:
    case OP_FLOAT: return scalar_argument(object, value);
    case OP_INT: return int_argument(param, object, value);
    case OP_INTS: return ints_argument(param, object, value, scratch);
    case OP_BOOL:
        *value = (mt_value){.kind = MT_KIND_BOOL, .of.integer = object == Py_True};
        return PyBool_Check(object);
    case OP_TEXT: return text_argument(object, value);
    case OP_DTYPE: return dtype_argument(object, value);
    case OP_DEVICE: return device_argument(object, value);
    case OP_GENERATOR: return generator_argument(object, value);
    case OP_TENSOR:
    case OP_TYPE_COUNT: break;
    }
    return 0;
}
