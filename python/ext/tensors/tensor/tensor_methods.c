/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of tensors that are not rows of the op table. What has no need of C is in
 * mindtorch_v2/_functions.py and _tensor.py.
 */
#include "tensors/device/device_parts.h"
#include "tensors/tensor/tensor_parts.h"

/* A dimension, counted from the end where negative. */
static int dim_of(PyObject *self, const char *who, PyObject *object, uint32_t *dim)
{
    int64_t count = mt_tensor_n_dims(tensor_of(self));
    int64_t given = 0;
    int is_int = int_try(object, &given);
    if (is_int == 0) {
        PyErr_Format(PyExc_TypeError, "%s(): argument 'dim' (position 1) must be int, not %s", who,
                     Py_TYPE(object)->tp_name);
    }
    if (is_int <= 0) {
        return -1;
    }
    if (count == 0) {
        PyErr_Format(PyExc_IndexError, "Dimension specified as %lld but tensor has no dimensions",
                     (long long)given);
        return -1;
    }
    if (given < -count || given >= count) {
        PyErr_Format(PyExc_IndexError,
                     "Dimension out of range (expected to be in range of [%lld, %lld], but got "
                     "%lld)",
                     (long long)-count, (long long)(count - 1), (long long)given);
        return -1;
    }
    *dim = (uint32_t)(given < 0 ? given + count : given);
    return 0;
}

static PyObject *get_size(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *which = py_one_argument(args, kwargs, "|O:size", "dim");
    if (which == NULL) {
        return NULL;
    }
    const mt_tensor *tensor = tensor_of(self);
    if (which == Py_None) {
        return size_from_ints(mt_tensor_sizes(tensor), mt_tensor_n_dims(tensor));
    }
    uint32_t dim = 0;
    return dim_of(self, "size", which, &dim) != 0
               ? NULL
               : PyLong_FromLongLong(mt_tensor_sizes(tensor)[dim]);
}

static PyObject *get_stride(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *which = py_one_argument(args, kwargs, "|O:stride", "dim");
    if (which == NULL) {
        return NULL;
    }
    const mt_tensor *tensor = tensor_of(self);
    uint32_t dim = 0;
    if (which != Py_None) {
        return dim_of(self, "stride", which, &dim) != 0
                   ? NULL
                   : PyLong_FromLongLong(mt_tensor_strides(tensor)[dim]);
    }
    uint32_t count = mt_tensor_n_dims(tensor);
    PyObject *strides = PyTuple_New(count);
    for (; strides != NULL && dim < count; dim++) {
        PyObject *stride = PyLong_FromLongLong(mt_tensor_strides(tensor)[dim]);
        if (stride == NULL) {
            Py_CLEAR(strides);
            break;
        }
        PyTuple_SET_ITEM(strides, dim, stride);
    }
    return strides;
}

static PyObject *get_dim(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLong(mt_tensor_n_dims(tensor_of(self)));
}

static PyObject *get_numel(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(mt_tensor_numel(tensor_of(self)));
}

static PyObject *get_offset(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLongLong(mt_tensor_offset(tensor_of(self)));
}

static PyObject *get_element_size(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromSize_t(mt_dtype_size(mt_tensor_dtype(tensor_of(self))));
}

/* Of the first element: a number to compare. 0 for tensors without elements. */
static PyObject *get_data_ptr(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    const mt_tensor *tensor = tensor_of(self);
    if (mt_tensor_numel(tensor) == 0) {
        return PyLong_FromLong(0);
    }
    uint64_t offset = (uint64_t)mt_tensor_offset(tensor) * mt_dtype_size(mt_tensor_dtype(tensor));
    return PyLong_FromUnsignedLongLong(mt_tensor_storage_address(tensor) + offset);
}

/* Where the storage is and how long: tensors with the same address share it. */
static PyObject *get_storage(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    const mt_tensor *tensor = tensor_of(self);
    return Py_BuildValue("KK", (unsigned long long)mt_tensor_storage_address(tensor),
                         (unsigned long long)mt_tensor_storage_bytes(tensor));
}

static PyObject *is_contiguous(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *format = py_one_argument(args, kwargs, "|$O:is_contiguous", "memory_format");
    if (format == NULL) {
        return NULL;
    }
    int wanted = tensor_format_from("is_contiguous", format);
    if (wanted < 0) {
        return NULL;
    }
    if (format != Py_None && wanted == FORMAT_PRESERVE) {
        PyErr_SetString(PyExc_RuntimeError,
                        "preserve memory format is unsupported by the contiguous operator");
        return NULL;
    }
    return PyBool_FromLong(mt_tensor_has_format(tensor_of(self), (mt_memory_format)wanted));
}

static PyObject *is_floating_point(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(mt_dtype_category(mt_tensor_dtype(tensor_of(self))) == MT_CATEGORY_REAL);
}

static PyObject *is_signed(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(dtype_is_signed(mt_tensor_dtype(tensor_of(self))));
}

static PyObject *is_complex(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(mt_dtype_category(mt_tensor_dtype(tensor_of(self))) ==
                           MT_CATEGORY_COMPLEX);
}

static PyObject *is_view(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(mt_tensor_is_view(tensor_of(self)));
}

bool tensor_same_sizes(const mt_tensor *a, const mt_tensor *b)
{
    bool same = mt_tensor_n_dims(a) == mt_tensor_n_dims(b);
    for (uint32_t i = 0; same && i < mt_tensor_n_dims(a); i++) {
        same = mt_tensor_sizes(a)[i] == mt_tensor_sizes(b)[i];
    }
    return same;
}

static PyObject *is_same_size(PyObject *self, PyObject *other)
{
    if (!tensor_check(other)) {
        PyErr_Format(PyExc_TypeError,
                     "is_same_size(): argument 'other' (position 1) must be Tensor, not %s",
                     Py_TYPE(other)->tp_name);
        return NULL;
    }
    return PyBool_FromLong(tensor_same_sizes(tensor_of(self), tensor_of(other)));
}

/* ---- the graph ---- */

static PyObject *requires_grad_(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"requires_grad", NULL};
    PyObject *flag = Py_True;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:requires_grad_", PY_NAMES(names), &flag)) {
        return NULL;
    }
    if (!PyBool_Check(flag)) {
        PyErr_Format(PyExc_TypeError,
                     "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not %s",
                     Py_TYPE(flag)->tp_name);
        return NULL;
    }
    return zero_or_raise(mt_tensor_set_requires_grad(tensor_of(self), flag == Py_True)) != 0
               ? NULL
               : Py_NewRef(self);
}

static PyObject *retain_grad(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return none_or_raise(mt_tensor_retain_grad(tensor_of(self)));
}

static PyObject *detach_(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return zero_or_raise(mt_tensor_detach_inplace(tensor_of(self))) != 0 ? NULL : Py_NewRef(self);
}

/* ---- types and devices ---- */

#define TO_TYPE(name, dtype)                                     \
    static PyObject *to_##name(PyObject *self, PyObject *unused) \
    {                                                            \
        (void)unused;                                            \
        return tensor_to_type(self, dtype);                      \
    }
TO_TYPE(float, MT_DTYPE_F32)
TO_TYPE(double, MT_DTYPE_F64)
TO_TYPE(half, MT_DTYPE_F16)
TO_TYPE(bfloat16, MT_DTYPE_BF16)
TO_TYPE(char, MT_DTYPE_I8)
TO_TYPE(short, MT_DTYPE_I16)
TO_TYPE(int, MT_DTYPE_I32)
TO_TYPE(long, MT_DTYPE_I64)
TO_TYPE(byte, MT_DTYPE_U8)
TO_TYPE(bool, MT_DTYPE_BOOL)

static PyObject *to_cpu(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *format = py_one_argument(args, kwargs, "|O:cpu", "memory_format");
    int wanted = format == NULL ? -1 : tensor_format_from("cpu", format);
    return wanted < 0 ? NULL : tensor_take_format(tensor_to_device(self, MT_CPU, false), wanted);
}

static PyObject *to_npu(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"device", "non_blocking", "memory_format", NULL};
    PyObject *which = Py_None, *format = Py_None;
    int non_blocking = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OpO:npu", PY_NAMES(names), &which,
                                     &non_blocking, &format)) {
        return NULL;
    }
    int wanted = tensor_format_from("npu", format);
    if (wanted < 0) {
        return NULL;
    }
    mt_device device = mt_current_device();
    if (which != Py_None && device_from_object(which, &device) != 0) {
        return NULL;
    }
    if (device < MT_NPU || device == MT_META) {
        PyErr_Format(PyExc_RuntimeError, "Invalid device, must be npu device, not %S", which);
        return NULL;
    }
    tensors.far = true;
    return tensor_take_format(tensor_to_device(self, device, non_blocking != 0), wanted);
}

/* ---- streams and pinned memory ---- */

/* torch's argument that says for which accelerator: there is one kind. */
static int take_pin_device(PyObject *args, PyObject *kwargs, const char *format)
{
    PyObject *which = py_one_argument(args, kwargs, format, "device");
    mt_device device = MT_NPU;
    return which == NULL ? -1 : accelerator_from_object(which, &device);
}

static PyObject *pin_memory(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (take_pin_device(args, kwargs, "|O:pin_memory") != 0) {
        return NULL;
    }
    if (mt_tensor_device(tensor_of(self)) != MT_CPU) {
        PyObject *type = PyObject_CallMethod(self, "type", NULL);
        if (type != NULL) {
            PyErr_Format(PyExc_RuntimeError, "cannot pin '%U' only dense CPU tensors can be pinned",
                         type);
        }
        Py_XDECREF(type);
        return NULL;
    }
    mt_tensor *pinned = tensor_pinned(tensor_of(self));
    return pinned == NULL ? NULL : tensor_wrap(pinned);
}

static PyObject *is_pinned(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return take_pin_device(args, kwargs, "|O:is_pinned") != 0
               ? NULL
               : PyBool_FromLong(mt_tensor_is_pinned(tensor_of(self)));
}

static PyObject *record_stream(PyObject *self, PyObject *object)
{
    mt_stream *stream = NULL;
    if (stream_given(object, "record_stream", &stream) != 0) {
        return NULL;
    }
    if (mt_tensor_device(tensor_of(self)) >> 8 != MT_DEVICE_TYPE_NPU) {
        PyErr_SetString(PyExc_NotImplementedError,
                        "Could not run 'aten::record_stream' with arguments from the 'CPU' "
                        "backend: memory of the host has no streams");
        return NULL;
    }
    return none_or_raise(mt_tensor_record_stream(tensor_of(self), stream));
}

/* For the profiler: its memory is a parameter's. */
static PyObject *mark_parameter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    mt_tensor_set_parameter(tensor_of(self), true);
    Py_RETURN_NONE;
}

static PyObject *is_inference(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(mt_tensor_is_inference(tensor_of(self)));
}

static PyObject *raise_version(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    mt_tensor_raise_version(tensor_of(self));
    Py_RETURN_NONE;
}

PyMethodDef tensor_methods[] = {
    {"_mark_parameter", mark_parameter, METH_NOARGS, NULL},
    {"_make_subclass", PY_CALL(tensor_make_subclass), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     NULL},
    {"as_subclass", tensor_as_subclass, METH_O,
     "as_subclass($self, cls, /)\n--\n\nThe same elements as an object of a subclass of Tensor."},
    {"size", PY_CALL(get_size), METH_VARARGS | METH_KEYWORDS,
     "size($self, /, dim=None)\n--\n\nIts sizes, a Size; with dim that dimension's."},
    {"stride", PY_CALL(get_stride), METH_VARARGS | METH_KEYWORDS,
     "stride($self, /, dim=None)\n--\n\nHow many elements lie between neighbours of each dimension; with dim of that one."},
    {"dim", get_dim, METH_NOARGS, "dim($self, /)\n--\n\nHow many dimensions it has."},
    {"ndimension", get_dim, METH_NOARGS, "ndimension($self, /)\n--\n\nThe same as dim()."},
    {"numel", get_numel, METH_NOARGS, "numel($self, /)\n--\n\nHow many elements it has."},
    {"nelement", get_numel, METH_NOARGS, "nelement($self, /)\n--\n\nThe same as numel()."},
    {"storage_offset", get_offset, METH_NOARGS,
     "storage_offset($self, /)\n--\n\nWhere in its storage it begins, in elements."},
    {"element_size", get_element_size, METH_NOARGS,
     "element_size($self, /)\n--\n\nBytes of an element."},
    {"data_ptr", get_data_ptr, METH_NOARGS,
     "data_ptr($self, /)\n--\n\nThe address of its first element."},
    {"_storage", get_storage, METH_NOARGS, "address and bytes of the storage"},
    {"is_contiguous", PY_CALL(is_contiguous), METH_VARARGS | METH_KEYWORDS,
     "is_contiguous($self, /, memory_format=None)\n--\n\nWhether its elements lie in order without gaps."},
    {"is_floating_point", is_floating_point, METH_NOARGS,
     "is_floating_point($self, /)\n--\n\nWhether its type is one of floating-point numbers."},
    {"is_signed", is_signed, METH_NOARGS,
     "is_signed($self, /)\n--\n\nWhether its type has negative numbers."},
    {"is_complex", is_complex, METH_NOARGS,
     "is_complex($self, /)\n--\n\nWhether its type is one of complex numbers."},
    {"is_inference", is_inference, METH_NOARGS,
     "is_inference($self, /)\n--\n\nWhether it was made in inference mode: no graph can keep it."},
    {"_raise_version", raise_version, METH_NOARGS, NULL},
    {"_is_view", is_view, METH_NOARGS, NULL},
    {"is_same_size", is_same_size, METH_O,
     "is_same_size($self, other, /)\n--\n\nWhether another tensor has the same shape."},
    {"requires_grad_", PY_CALL(requires_grad_), METH_VARARGS | METH_KEYWORDS,
     "requires_grad_($self, /, requires_grad=True)\n--\n\nSets whether operations on it are recorded for gradients; returns itself."},
    {"retain_grad", retain_grad, METH_NOARGS,
     "retain_grad($self, /)\n--\n\nKeeps the gradient of a tensor that is no leaf."},
    {"detach_", detach_, METH_NOARGS,
     "detach_($self, /)\n--\n\nCuts it off from the graph that made it; returns itself."},
    {"to", PY_CALL(tensor_to), METH_VARARGS | METH_KEYWORDS,
     "to($self, /, *args, **kwargs)\n--\n\nIn another type or on another device: to(dtype), to(device, dtype), to(other); non_blocking, copy. Itself where nothing changes."},
    {"float", to_float, METH_NOARGS, "float($self, /)\n--\n\nThe same as to(float32)."},
    {"double", to_double, METH_NOARGS, "double($self, /)\n--\n\nThe same as to(float64)."},
    {"half", to_half, METH_NOARGS, "half($self, /)\n--\n\nThe same as to(float16)."},
    {"bfloat16", to_bfloat16, METH_NOARGS, "bfloat16($self, /)\n--\n\nThe same as to(bfloat16)."},
    {"int", to_int, METH_NOARGS, "int($self, /)\n--\n\nThe same as to(int32)."},
    {"char", to_char, METH_NOARGS, "char($self, /)\n--\n\nThe same as to(int8)."},
    {"short", to_short, METH_NOARGS, "short($self, /)\n--\n\nThe same as to(int16)."},
    {"long", to_long, METH_NOARGS, "long($self, /)\n--\n\nThe same as to(int64)."},
    {"byte", to_byte, METH_NOARGS, "byte($self, /)\n--\n\nThe same as to(uint8)."},
    {"bool", to_bool, METH_NOARGS, "bool($self, /)\n--\n\nThe same as to(bool)."},
    {"cpu", PY_CALL(to_cpu), METH_VARARGS | METH_KEYWORDS,
     "cpu($self, /, memory_format=None)\n--\n\nIn the memory of the host."},
    {"npu", PY_CALL(to_npu), METH_VARARGS | METH_KEYWORDS,
     "npu($self, /, device=None, non_blocking=False, memory_format=None)\n--\n\nIn the memory of the accelerator."},
    {"cuda", PY_CALL(to_npu), METH_VARARGS | METH_KEYWORDS,
     "cuda($self, /, device=None, non_blocking=False, memory_format=None)\n--\n\nIn the memory of the accelerator, the same as npu()."},
    {"pin_memory", PY_CALL(pin_memory), METH_VARARGS | METH_KEYWORDS,
     "pin_memory($self, /, device=None)\n--\n\nA copy in host memory that accelerators read and write by themselves."},
    {"is_pinned", PY_CALL(is_pinned), METH_VARARGS | METH_KEYWORDS,
     "is_pinned($self, /, device=None)\n--\n\nWhether accelerators read and write its memory by themselves."},
    {"record_stream", record_stream, METH_O,
     "record_stream($self, s, /)\n--\n\nIts memory is not used again before the stream has passed."},
    {NULL, NULL, 0, NULL},
};
