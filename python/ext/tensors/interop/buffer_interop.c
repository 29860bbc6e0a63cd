/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors as buffers: the buffer protocol, and numpy() by it. NumPy's C API is not needed.
 *
 *   BUF1  A Py_buffer of ours holds the tensor's Python object, and the storage by a second tensor
 *         (data_hold), since the object may be given other data meanwhile.
 */
#include "tensors/data/data_parts.h"
#include "tensors/interop/buffer_parts.h"

/* ---- buffers --------------------------------------------------------------------------------- */

/* Formats of struct, all in native order; NULL: none. */
static const char *const formats[MT_DTYPE_COUNT] = {
    [MT_DTYPE_BOOL] = "?", [MT_DTYPE_U8] = "B",    [MT_DTYPE_I32] = "i", [MT_DTYPE_I64] = "l",
    [MT_DTYPE_F16] = "e",  [MT_DTYPE_F32] = "f",   [MT_DTYPE_F64] = "d", [MT_DTYPE_I8] = "b",
    [MT_DTYPE_I16] = "h",  [MT_DTYPE_U16] = "H",   [MT_DTYPE_U32] = "I", [MT_DTYPE_U64] = "L",
    [MT_DTYPE_C64] = "Zf", [MT_DTYPE_C128] = "Zd",
};
_Static_assert(sizeof(long) == 8, "\"l\" stands for int64");

typedef struct shown {
    mt_tensor *held; /* BUF1 */
    Py_ssize_t sizes[MT_MAX_DIMS];
    Py_ssize_t strides[MT_MAX_DIMS];
} shown;

static int refuse_buffer(PyObject *self, Py_buffer *view)
{
    mt_tensor *tensor = tensor_of(self);
    const char *why = NULL;
    view->obj = NULL;
    if (mt_tensor_requires_grad(tensor)) {
        why = "a Tensor that requires grad has no buffer; use tensor.detach()";
    } else if (mt_tensor_device(tensor) != MT_CPU) {
        why = "a Tensor on a device has no buffer; use tensor.cpu()";
    } else if (formats[mt_tensor_dtype(tensor)] == NULL) {
        why = "a bfloat16 Tensor has no buffer; use tensor.float()";
    }
    if (why != NULL) {
        PyErr_SetString(PyExc_BufferError, why);
        return -1;
    }
    return 0;
}

static bool is_fortran(const mt_tensor *tensor)
{
    int64_t want = 1;
    for (uint32_t d = 0; d < mt_tensor_n_dims(tensor); d++) {
        int64_t size = mt_tensor_sizes(tensor)[d];
        if (size == 0) {
            return true;
        }
        if (size != 1 && mt_tensor_strides(tensor)[d] != want) {
            return false;
        }
        want *= size;
    }
    return true;
}

/* Whether the tensor lies as the consumer wants it. */
static bool layout_fits(const mt_tensor *tensor, int flags)
{
    bool rows = mt_tensor_is_contiguous(tensor);
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES ||
        (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS) {
        return rows;
    }
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS) {
        return is_fortran(tensor);
    }
    return (flags & PyBUF_ANY_CONTIGUOUS) != PyBUF_ANY_CONTIGUOUS || rows || is_fortran(tensor);
}

/* NULL: exception. */
static shown *shown_new(const mt_tensor *tensor)
{
    shown *dims = PyMem_Malloc(sizeof(*dims));
    if (dims == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    dims->held = data_hold(tensor);
    if (dims->held == NULL) {
        PyMem_Free(dims);
        return NULL;
    }
    return dims;
}

int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    static char nothing[8]; /* where tensors without elements are */
    if (refuse_buffer(self, view) != 0) {
        return -1;
    }
    mt_tensor *tensor = tensor_of(self);
    if (!layout_fits(tensor, flags)) {
        PyErr_SetString(PyExc_BufferError, "the Tensor is not contiguous; use tensor.contiguous()");
        return -1;
    }
    size_t bytes = 0;
    shown *dims = data_bytes(tensor, &bytes) != 0 ? NULL : shown_new(tensor);
    if (dims == NULL) {
        return -1;
    }
    mt_dtype dtype = mt_tensor_dtype(tensor);
    uint32_t n_dims = mt_tensor_n_dims(tensor);
    Py_ssize_t item = (Py_ssize_t)mt_dtype_size(dtype);
    for (uint32_t d = 0; d < n_dims; d++) {
        dims->sizes[d] = mt_tensor_sizes(tensor)[d];
        dims->strides[d] = mt_tensor_strides(tensor)[d] * item;
    }
    void *data = mt_tensor_data(tensor);
    *view = (Py_buffer){
        .buf = data == NULL ? nothing : data,
        .obj = Py_NewRef(self),
        .len = (Py_ssize_t)bytes,
        .itemsize = item,
        .readonly = 0,
        .ndim = (flags & PyBUF_ND) == PyBUF_ND ? (int)n_dims : 1, /* as plain bytes: one row */
        .format = NULL,
        .shape = n_dims > 0 && (flags & PyBUF_ND) == PyBUF_ND ? dims->sizes : NULL,
        .strides = n_dims > 0 && (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? dims->strides : NULL,
        .internal = dims,
    };
    if ((flags & PyBUF_FORMAT) == PyBUF_FORMAT) {
        view->format = (char *)(uintptr_t)formats[dtype];
    }
    return 0;
}

void tensor_releasebuffer(PyObject *Py_UNUSED(self), Py_buffer *view)
{
    shown *dims = view->internal;
    view->internal = NULL;
    if (dims != NULL) {
        mt_tensor_release(dims->held);
        PyMem_Free(dims);
    }
}

/* ---- numpy() --------------------------------------------------------------------------------- */

static int refuse_numpy(const mt_tensor *tensor)
{
    if (mt_tensor_device(tensor) != MT_CPU) {
        PyErr_Format(PyExc_TypeError,
                     "can't convert %s device type tensor to numpy. Use Tensor.cpu() to copy the "
                     "tensor to host memory first.",
                     mt_device_name(mt_tensor_device(tensor)));
        return -1;
    }
    if (mt_tensor_requires_grad(tensor)) {
        PyErr_SetString(PyExc_RuntimeError, "Can't call numpy() on Tensor that requires grad. Use "
                                            "tensor.detach().numpy() instead.");
        return -1;
    }
    return 0;
}

/* What torch shows: detach, to, resolve_conj, resolve_neg. */
static mt_tensor *plain_tensor(mt_tensor *tensor)
{
    mt_tensor *plain = NULL;
    if (zero_or_raise(mt_detach(tensor, &plain)) != 0) {
        return NULL;
    }
    plain = data_to(plain, MT_DTYPE_NONE, MT_CPU, false);
    plain = plain == NULL ? NULL : data_pass(plain, DATA_RESOLVE_CONJ);
    return plain == NULL ? NULL : data_pass(plain, DATA_RESOLVE_NEG);
}

/* numpy.asarray, held from the first use on; borrowed. NULL: exception. */
static PyObject *find_asarray(void)
{
    static PyObject *asarray;
    if (asarray == NULL) {
        PyObject *numpy = PyImport_ImportModule("numpy");
        if (numpy == NULL) {
            if (PyErr_ExceptionMatches(PyExc_ImportError)) {
                PyErr_SetString(PyExc_RuntimeError, "Numpy is not available");
            }
            return NULL;
        }
        asarray = PyObject_GetAttrString(numpy, "asarray");
        Py_DECREF(numpy);
    }
    return asarray;
}

static PyObject *array_over(PyObject *tensor)
{
    PyObject *asarray = find_asarray();
    PyObject *view = asarray == NULL ? NULL : PyMemoryView_FromObject(tensor);
    PyObject *array = view == NULL ? NULL : PyObject_CallOneArg(asarray, view);
    Py_XDECREF(view);
    return array;
}

static PyObject *numpy_method(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const keywords[] = {"force", NULL};
    int force = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$p:numpy", PY_NAMES(keywords), &force)) {
        return NULL;
    }
    mt_tensor *tensor = tensor_of(self);
    if (!force && refuse_numpy(tensor) != 0) {
        return NULL;
    }
    if (formats[mt_tensor_dtype(tensor)] == NULL) {
        PyErr_SetString(PyExc_TypeError, "Got unsupported ScalarType BFloat16");
        return NULL;
    }
    mt_tensor *plain = plain_tensor(tensor);
    PyObject *object = plain == NULL ? NULL : tensor_wrap(plain);
    PyObject *array = object == NULL ? NULL : array_over(object);
    Py_XDECREF(object);
    return array;
}

/* __array__(dtype=None, copy=None), as NumPy 1 and 2 call it. */
static PyObject *array_method(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const keywords[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None;
    PyObject *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", PY_NAMES(keywords), &dtype,
                                     &copy)) {
        return NULL;
    }
    PyObject *array = PyObject_CallMethod(self, "numpy", NULL);
    if (array == NULL) {
        return NULL;
    }
    int copied = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (copied < 0) {
        Py_DECREF(array);
        return NULL;
    }
    PyObject *other = NULL;
    if (dtype != Py_None) {
        other = PyObject_CallMethod(array, "astype", "O", dtype);
    } else if (copied) {
        other = PyObject_CallMethod(array, "copy", NULL);
    } else {
        return array;
    }
    Py_DECREF(array);
    return other;
}

/* ---- start ----------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"numpy", PY_CALL(numpy_method), METH_VARARGS | METH_KEYWORDS,
     "numpy($self, /, *, force=False)\n--\n\nA numpy.ndarray over the tensor's memory; force: a copy where that is not possible."},
    {"__array__", PY_CALL(array_method), METH_VARARGS | METH_KEYWORDS,
     "__array__(dtype=None, copy=None) -> numpy.ndarray"},
    {NULL, NULL, 0, NULL},
};

py_part buffer_part;
int buffer_part(PyObject *Py_UNUSED(module))
{
    return data_add_methods(methods);
}
