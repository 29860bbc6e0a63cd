/* SPDX-License-Identifier: Apache-2.0
 *
 * torch.tensor(), torch.as_tensor(), tolist(), and tensors as plain bytes (for pickling and
 * saving).
 */
#include "tensors/data/data_parts.h"
#include "tensors/data/element_codec.h"
#include "tensors/device/device_parts.h"
#include "tensors/interop/late_release.h"

#include <string.h>

/* ---- torch.tensor and as_tensor -------------------------------------------------------------- */

typedef struct wanted {
    PyObject *data;
    mt_dtype dtype;
    mt_device device;
    bool requires_grad;
} wanted;

static int read_options(PyObject *dtype, PyObject *device, const char *function, wanted *want)
{
    if (dtype != NULL && dtype != Py_None && !Py_IS_TYPE(dtype, tensors.dtype_type) &&
        !PyType_Check(dtype)) {
        PyErr_Format(PyExc_TypeError, "%s(): argument 'dtype' must be torch.dtype, not %.100s",
                     function, Py_TYPE(dtype)->tp_name);
        return -1;
    }
    if (dtype_from_object(dtype == NULL ? Py_None : dtype, &want->dtype) != 0) {
        return -1;
    }
    if (device != NULL && device != Py_None) {
        return device_from_object(device, &want->device);
    }
    want->device = device_default();
    return 0;
}

/* What was given, as a tensor with the wanted type and device. `copy`: never the same memory. */
static mt_tensor *convert(const wanted *want, bool copy)
{
    if (tensor_check(want->data)) {
        mt_tensor *tensor = tensor_of(want->data);
        mt_tensor *source = NULL;
        if (!copy) {
            return data_to(mt_tensor_retain(tensor), want->dtype, want->device, false);
        }
        if (zero_or_raise(mt_detach(tensor, &source)) != 0) {
            return NULL;
        }
        return data_to(source, want->dtype, want->device, true);
    }
    if (data_is_array(want->data)) {
        PyObject *array = copy ? data_aligned_array(want->data) : Py_NewRef(want->data);
        mt_tensor *tensor = array == NULL ? NULL : data_from_array(array);
        Py_XDECREF(array);
        return tensor == NULL ? NULL : data_to(tensor, want->dtype, want->device, copy);
    }
    return data_from_sequence(want->data, want->dtype, want->device, false);
}

static PyObject *tensor_function(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static const char *const keywords[] = {"data",       "dtype", "device", "requires_grad",
                                           "pin_memory", "names", NULL};
    PyObject *dtype = NULL;
    PyObject *device = NULL;
    PyObject *names = NULL;
    int requires_grad = 0;
    int pin = 0;
    wanted want = {.data = NULL};
    if (PyTuple_GET_SIZE(args) > 1) {
        return PyErr_Format(PyExc_TypeError,
                            "tensor() takes 1 positional argument but %zd were given",
                            PyTuple_GET_SIZE(args));
    }
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$OOppO:tensor", PY_NAMES(keywords),
                                     &want.data, &dtype, &device, &requires_grad, &pin, &names)) {
        return NULL;
    }
    if (want.data == NULL) {
        PyErr_SetString(PyExc_TypeError,
                        "tensor() missing 1 required positional arguments: \"data\"");
        return NULL;
    }
    if (read_options(dtype, device, "tensor", &want) != 0) {
        return NULL;
    }
    late_release_pending();
    if (tensor_check(want.data) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "To copy construct from a tensor, it is recommended to use "
                     "sourceTensor.detach().clone() or "
                     "sourceTensor.detach().clone().requires_grad_(True), rather than "
                     "torch.tensor(sourceTensor).",
                     1) != 0) {
        return NULL;
    }
    mt_tensor *tensor = convert(&want, true);
    tensor = tensor == NULL ? NULL : data_pass(tensor, DATA_DETACH_);
    tensor = tensor == NULL || !pin ? tensor : tensor_pin_made(tensor);
    if (tensor == NULL) {
        return NULL;
    }
    if (requires_grad && tensor_require_grad(tensor) != 0) {
        mt_tensor_release(tensor);
        return NULL;
    }
    return tensor_wrap(tensor);
}

static PyObject *as_tensor_function(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static const char *const keywords[] = {"data", "dtype", "device", NULL};
    PyObject *dtype = NULL;
    PyObject *device = NULL;
    wanted want = {.data = NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:as_tensor", PY_NAMES(keywords), &want.data,
                                     &dtype, &device) ||
        read_options(dtype, device, "as_tensor", &want) != 0) {
        return NULL;
    }
    late_release_pending();
    mt_tensor *tensor = convert(&want, false);
    return tensor == NULL ? NULL : tensor_wrap(tensor);
}

/* ---- tolist ---------------------------------------------------------------------------------- */

typedef struct listing {
    const int64_t *sizes;
    uint32_t n_dims;
    mt_dtype dtype;
    size_t item_bytes;
    const char *next; /* the elements lie one after the other */
} listing;

/* The next element, without a call where it is of one of the common types. */
static inline PyObject *next_number(listing *l)
{
    PyObject *number = NULL;
    if (l->dtype == MT_DTYPE_F32) {
        float single = 0;
        memcpy(&single, l->next, sizeof(single));
        number = PyFloat_FromDouble((double)single);
    } else if (l->dtype == MT_DTYPE_I64) {
        int64_t word = 0;
        memcpy(&word, l->next, sizeof(word));
        number = PyLong_FromLongLong(word);
    } else {
        number = element_load(l->next, l->dtype);
    }
    l->next += l->item_bytes;
    return number;
}

/* Recursion as deep as there are dimensions (MT_MAX_DIMS). */
static PyObject *list_of(listing *l, uint32_t dim)
{
    if (dim == l->n_dims) {
        return next_number(l);
    }
    int64_t size = l->sizes[dim];
    bool last = dim + 1 == l->n_dims;
    PyObject *list = PyList_New((Py_ssize_t)size);
    for (int64_t i = 0; list != NULL && i < size; i++) {
        PyObject *item = last ? next_number(l) : list_of(l, dim + 1);
        if (item == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, item);
    }
    return list;
}

/* All elements in order, in memory of PyMem_RawFree(). NULL: exception. `bytes` is at least 1. */
static char *read_elements(mt_tensor *tensor, size_t *bytes)
{
    size_t size = 0;
    if (mt_tensor_device(tensor) == MT_META) {
        PyErr_SetString(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
        return NULL;
    }
    if (data_bytes(tensor, &size) != 0) {
        return NULL;
    }
    char *memory = PyMem_RawMalloc(size == 0 ? 1 : size);
    if (memory == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    int status = MT_OK;
    WITHOUT_GIL(status, mt_tensor_read(tensor, memory, size));
    if (status != MT_OK) {
        PyMem_RawFree(memory);
        tensors_raise(status);
        return NULL;
    }
    *bytes = size;
    return memory;
}

static PyObject *tolist_method(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    mt_tensor *tensor = data_pass(mt_tensor_retain(tensor_of(self)), DATA_RESOLVE_CONJ);
    tensor = tensor == NULL ? NULL : data_pass(tensor, DATA_RESOLVE_NEG);
    if (tensor == NULL) {
        return NULL;
    }
    /* Making lists may set off a collection, and what that runs may give the tensor other data. */
    mt_tensor *held = data_hold(tensor);
    mt_tensor_release(tensor);
    if (held == NULL) {
        return NULL;
    }
    tensor = data_near(held);
    if (tensor == NULL) {
        return NULL;
    }
    listing l = {
        .sizes = mt_tensor_sizes(tensor),
        .n_dims = mt_tensor_n_dims(tensor),
        .dtype = mt_tensor_dtype(tensor),
        .item_bytes = mt_dtype_size(mt_tensor_dtype(tensor)),
    };
    PyObject *list = NULL;
    if (mt_tensor_is_contiguous(tensor) && mt_tensor_data(tensor) != NULL) {
        l.next = mt_tensor_data(tensor);
        list = list_of(&l, 0);
    } else {
        size_t bytes = 0;
        char *memory = read_elements(tensor, &bytes);
        l.next = memory;
        list = memory == NULL ? NULL : list_of(&l, 0);
        PyMem_RawFree(memory);
    }
    mt_tensor_release(tensor);
    return list;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* _tensor_bytes(tensor) -> bytes: its elements in order. */
static PyObject *tensor_bytes(PyObject *Py_UNUSED(module), PyObject *object)
{
    if (!tensor_check(object)) {
        return PyErr_Format(PyExc_TypeError, "_tensor_bytes(): expected Tensor, not %.100s",
                            Py_TYPE(object)->tp_name);
    }
    mt_tensor *tensor = data_near(mt_tensor_retain(tensor_of(object)));
    size_t size = 0;
    if (tensor == NULL || data_bytes(tensor, &size) != 0) {
        mt_tensor_release(tensor);
        return NULL;
    }
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (bytes == NULL) {
        mt_tensor_release(tensor);
        return NULL;
    }
    char *place = PyBytes_AS_STRING(bytes);
    int status = MT_OK;
    WITHOUT_GIL(status, mt_tensor_read(tensor, place, size));
    mt_tensor_release(tensor);
    if (status != MT_OK) {
        Py_DECREF(bytes);
        return tensors_raise(status);
    }
    return bytes;
}

static int read_sizes(PyObject *sequence, int64_t *sizes, uint32_t *n_dims, uint64_t *numel)
{
    PyObject *fast = PySequence_Fast(sequence, "_tensor_from_bytes(): sizes must be a sequence");
    if (fast == NULL) {
        return -1;
    }
    Py_ssize_t count = PySequence_Fast_GET_SIZE(fast);
    int failed = 0;
    *numel = 1;
    if (count > MT_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "too many dimensions: %zd", count);
        failed = -1;
    }
    for (Py_ssize_t i = 0; i < count && failed == 0; i++) {
        /* __index__ may run code that changes a list: its length is read each time. */
        PyObject *item = i < PySequence_Fast_GET_SIZE(fast)
                             ? Py_NewRef(PySequence_Fast_GET_ITEM(fast, i))
                             : NULL;
        sizes[i] = item == NULL ? -1 : PyLong_AsLongLong(item);
        Py_XDECREF(item);
        if (sizes[i] < 0 || __builtin_mul_overflow(*numel, (uint64_t)sizes[i], numel)) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_ValueError, "_tensor_from_bytes(): bad sizes");
            }
            failed = -1;
        }
    }
    Py_DECREF(fast);
    *n_dims = (uint32_t)count;
    return failed;
}

/* _tensor_from_bytes(buffer, dtype, sizes) -> Tensor: the way back, a copy. */
static PyObject *tensor_from_bytes(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *type = NULL;
    PyObject *shape = NULL;
    Py_buffer buffer = {.buf = NULL};
    mt_dtype dtype = MT_DTYPE_NONE;
    int64_t sizes[MT_MAX_DIMS];
    uint32_t n_dims = 0;
    uint64_t numel = 0;
    mt_tensor *tensor = NULL;
    if (!PyArg_ParseTuple(args, "y*OO:_tensor_from_bytes", &buffer, &type, &shape)) {
        return NULL;
    }
    if (dtype_from_object(type, &dtype) == 0 && read_sizes(shape, sizes, &n_dims, &numel) == 0) {
        uint64_t need = 0;
        if (__builtin_mul_overflow(numel, (uint64_t)mt_dtype_size(dtype), &need) ||
            need != (uint64_t)buffer.len) {
            PyErr_Format(PyExc_ValueError, "a tensor of these sizes does not have %zd bytes",
                         buffer.len);
        } else {
            (void)zero_or_raise(
                mt_tensor_from_data(buffer.buf, dtype, sizes, n_dims, MT_CPU, &tensor));
        }
    }
    PyBuffer_Release(&buffer);
    return tensor == NULL ? NULL : tensor_wrap(tensor);
}

/* ---- storages -------------------------------------------------------------------------------- */

/* _storage_key(tensor) -> int: the same for tensors that share memory. */
static PyObject *storage_key(PyObject *Py_UNUSED(module), PyObject *object)
{
    if (!tensor_check(object)) {
        return PyErr_Format(PyExc_TypeError, "_storage_key(): expected Tensor, not %.100s",
                            Py_TYPE(object)->tp_name);
    }
    return PyLong_FromUnsignedLongLong(mt_tensor_storage_address(tensor_of(object)));
}

/* _storage_tensor(tensor, dtype=None) -> its whole storage, as a row of the tensor's type or of
 * another. */
static PyObject *storage_tensor(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *object = NULL, *type = NULL;
    if (!PyArg_ParseTuple(args, "O!|O!:_storage_tensor", tensors.tensor_type, &object,
                          tensors.dtype_type, &type)) {
        return NULL;
    }
    mt_tensor *tensor = tensor_of(object);
    mt_dtype dtype = type == NULL ? mt_tensor_dtype(tensor) : ((dtype_object *)type)->dtype;
    mt_tensor *row = NULL;
    int status = mt_tensor_storage_row(tensor, dtype, &row);
    return status != MT_OK ? tensors_raise(status) : tensor_wrap(row);
}

static PyObject *tensors_alive(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    late_release_pending();
    return PyLong_FromUnsignedLongLong(mt_tensors_alive());
}

/* ---- start ----------------------------------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"tensor", PY_CALL(tensor_function), METH_VARARGS | METH_KEYWORDS,
     "tensor($module, data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\nA tensor with a copy of the data: numbers, nested lists, arrays."},
    {"as_tensor", PY_CALL(as_tensor_function), METH_VARARGS | METH_KEYWORDS,
     "as_tensor($module, data, dtype=None, device=None)\n--\n\nA tensor of the data, over the same memory where that is possible."},
    {"_tensor_bytes", tensor_bytes, METH_O, "_tensor_bytes(tensor) -> its elements in order"},
    {"_tensor_from_bytes", tensor_from_bytes, METH_VARARGS,
     "_tensor_from_bytes(buffer, dtype, sizes) -> Tensor"},
    {"_storage_key", storage_key, METH_O, "_storage_key(tensor) -> int"},
    {"_storage_tensor", storage_tensor, METH_VARARGS,
     "_storage_tensor(tensor, dtype=None) -> Tensor of one dimension"},
    {"_tensors_alive", tensors_alive, METH_NOARGS,
     "_tensors_alive() -> how many tensors the library holds"},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef methods[] = {
    {"tolist", tolist_method, METH_NOARGS,
     "tolist($self, /)\n--\n\nIts elements as nested lists, or as a number."},
    {NULL, NULL, 0, NULL},
};

py_part data_part;
int data_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions) != 0 ? -1 : data_add_methods(methods);
}
