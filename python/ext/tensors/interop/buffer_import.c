/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors over the memory of others: from_numpy(), frombuffer(). NumPy's C API is not needed:
 * arrays are buffers.
 *
 *   BI1  A tensor over a buffer holds the Py_buffer until its storage is freed, on any
 *        thread (late_release.h). So the exporter cannot resize or free it meanwhile.
 */
#include "tensors/data/data_parts.h"
#include "tensors/interop/late_release.h"

#include <string.h>

/* ---- arrays ---------------------------------------------------------------------------------- */

typedef struct borrowed {
    late_item item;
    Py_buffer view;
} borrowed;

static void drop_borrowed(late_item *item)
{
    borrowed *held = (borrowed *)item;
    PyBuffer_Release(&held->view);
    PyMem_RawFree(held);
}

static void free_borrowed(void *context, void *Py_UNUSED(data))
{
    late_release(context); /* BI1 */
}

/* The buffer of an object, writable if possible. If it is not, that is told once in a process, as
 * torch does: *warned. NULL: exception; *refused: the object has no such buffer. */
static borrowed *borrow(PyObject *object, int flags, const char *warning, bool *warned,
                        bool *refused)
{
    late_release_pending();
    borrowed *held = PyMem_RawMalloc(sizeof(*held));
    if (held == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    *held = (borrowed){.item = {.drop = drop_borrowed}};
    int failed = PyObject_GetBuffer(object, &held->view, flags | PyBUF_WRITABLE);
    bool readonly = failed != 0;
    if (readonly) {
        PyErr_Clear();
        failed = PyObject_GetBuffer(object, &held->view, flags);
    }
    *refused = failed != 0;
    if (failed != 0) {
        PyMem_RawFree(held);
        return NULL;
    }
    bool warns = readonly && !*warned;
    *warned |= warns;
    if (warns && PyErr_WarnEx(PyExc_UserWarning, warning, 1) != 0) {
        late_release(&held->item);
        return NULL;
    }
    return held;
}

/* The type that a format of one item stands for; NONE: none of ours. *foreign: in another byte
 * order. */
static mt_dtype dtype_of_format(const char *format, Py_ssize_t item, bool *foreign)
{
    *foreign = false;
    if (format == NULL) {
        return MT_DTYPE_U8;
    }
    if (strchr("@=<>!|^", format[0]) != NULL && format[0] != '\0') {
        char other = PY_LITTLE_ENDIAN ? '>' : '<';
        *foreign = (format[0] == other || (format[0] == '!' && PY_LITTLE_ENDIAN)) && item > 1;
        format++;
    }
    if (format[0] == 'Z' && (format[1] == 'f' || format[1] == 'd') && format[2] == '\0') {
        return format[1] == 'f' ? MT_DTYPE_C64 : MT_DTYPE_C128;
    }
    if (format[0] == '\0' || format[1] != '\0') {
        return MT_DTYPE_NONE;
    }
    switch (format[0]) {
    case '?': return MT_DTYPE_BOOL;
    case 'B': return MT_DTYPE_U8;
    case 'b': return MT_DTYPE_I8;
    case 'h': return MT_DTYPE_I16;
    case 'H': return MT_DTYPE_U16;
    case 'i':
    case 'l':
    case 'q': return item == 4 ? MT_DTYPE_I32 : item == 8 ? MT_DTYPE_I64 : MT_DTYPE_NONE;
    case 'I':
    case 'L':
    case 'Q': return item == 4 ? MT_DTYPE_U32 : item == 8 ? MT_DTYPE_U64 : MT_DTYPE_NONE;
    case 'e': return MT_DTYPE_F16;
    case 'f': return MT_DTYPE_F32;
    case 'd': return MT_DTYPE_F64;
    default: return MT_DTYPE_NONE;
    }
}

/* "numpy.str_" of an array or scalar; the type's own name where it has no dtype. */
static PyObject *item_type_name(PyObject *array)
{
    PyObject *dtype = PyObject_GetAttrString(array, "dtype");
    PyObject *type = dtype == NULL ? NULL : PyObject_GetAttrString(dtype, "type");
    Py_XDECREF(dtype);
    PyObject *name = type == NULL ? NULL : PyObject_GetAttrString(type, "__name__");
    Py_XDECREF(type);
    if (name == NULL) {
        PyErr_Clear();
        name = PyUnicode_FromString("unknown");
    }
    return name;
}

static int refuse_array(PyObject *array)
{
    PyObject *name = item_type_name(array);
    if (name != NULL) {
        PyErr_Format(
            PyExc_TypeError,
            "can't convert np.ndarray of type numpy.%U. The only supported types are: "
            "float64, float32, float16, int64, int32, int16, int8, uint64, uint32, uint16, "
            "uint8, and bool.",
            name);
        Py_DECREF(name);
    }
    return -1;
}

static int array_dtype(PyObject *array, const Py_buffer *view, mt_dtype *dtype)
{
    bool foreign = false;
    *dtype = dtype_of_format(view->format, view->itemsize, &foreign);
    if (foreign && *dtype != MT_DTYPE_NONE) {
        PyErr_SetString(PyExc_ValueError,
                        "given numpy array has byte order different from the native byte order. "
                        "Conversion between byte orders is currently not supported.");
        return -1;
    }
    return *dtype == MT_DTYPE_NONE ? refuse_array(array) : 0;
}

int data_array_dtype(PyObject *array, mt_dtype *dtype)
{
    Py_buffer view;
    *dtype = MT_DTYPE_NONE;
    if (PyObject_GetBuffer(array, &view, PyBUF_RECORDS_RO) != 0) {
        PyErr_Clear(); /* types that have no format: datetime64 */
        return refuse_array(array);
    }
    int failed = array_dtype(array, &view, dtype);
    PyBuffer_Release(&view);
    return failed;
}

static int array_strides(const Py_buffer *view, int64_t *sizes, int64_t *strides)
{
    if (view->ndim > MT_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "too many dimensions: %d", view->ndim);
        return -1;
    }
    for (int d = 0; d < view->ndim; d++) {
        sizes[d] = view->shape[d];
        if (view->strides[d] < 0) {
            PyErr_SetString(
                PyExc_ValueError,
                "At least one stride in the given numpy array is negative, and tensors "
                "with negative strides are not currently supported. (You can probably "
                "work around this by making a copy of your array  with array.copy().) ");
            return -1;
        }
        if (view->strides[d] % view->itemsize != 0) {
            PyErr_SetString(PyExc_ValueError,
                            "given numpy array strides not a multiple of the element byte size. "
                            "Copy the numpy array to reallocate the memory.");
            return -1;
        }
        strides[d] = view->strides[d] / view->itemsize;
    }
    return 0;
}

static const char readonly_array[] =
    "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This "
    "means writing to this tensor will result in undefined behavior. You may want to copy the array "
    "to protect its data or make it writable before converting it to a tensor. This type of warning "
    "will be suppressed for the rest of this program.";

static mt_tensor *over_array(PyObject *array, borrowed *held)
{
    int64_t sizes[MT_MAX_DIMS];
    int64_t strides[MT_MAX_DIMS];
    mt_dtype dtype = MT_DTYPE_NONE;
    mt_tensor *tensor = NULL;
    if (array_dtype(array, &held->view, &dtype) == 0 &&
        array_strides(&held->view, sizes, strides) == 0 &&
        data_refuse_misaligned(held->view.buf, dtype, "the given NumPy array") == 0 &&
        zero_or_raise(mt_tensor_borrow(held->view.buf, dtype, sizes, strides,
                                       (size_t)held->view.ndim, free_borrowed, held, &tensor)) ==
            0) {
        return data_pass(tensor, DATA_LIFT_FRESH);
    }
    late_release(&held->item);
    return NULL;
}

mt_tensor *data_from_array(PyObject *array)
{
    static bool warned;
    bool refused = false;
    borrowed *held = borrow(array, PyBUF_RECORDS_RO, readonly_array, &warned, &refused);
    if (refused) {
        PyErr_Clear(); /* types that have no format: datetime64 */
        refuse_array(array);
    }
    return held == NULL ? NULL : over_array(array, held);
}

PyObject *data_aligned_array(PyObject *array)
{
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_RECORDS_RO) != 0) {
        PyErr_Clear(); /* data_from_array() says what is wrong with it */
        return Py_NewRef(array);
    }
    bool aligned = view.itemsize == 0 || (uintptr_t)view.buf % (size_t)view.itemsize == 0;
    PyBuffer_Release(&view);
    return aligned ? Py_NewRef(array) : PyObject_CallMethod(array, "copy", NULL);
}

static PyObject *from_numpy(PyObject *Py_UNUSED(module), PyObject *array)
{
    if (!data_is_array(array)) {
        return PyErr_Format(PyExc_TypeError, "expected np.ndarray (got %.100s)",
                            Py_TYPE(array)->tp_name);
    }
    mt_tensor *tensor = data_from_array(array);
    return tensor == NULL ? NULL : tensor_wrap(tensor);
}

/* ---- frombuffer ------------------------------------------------------------------------------ */

static const char readonly_buffer[] =
    "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means "
    "you can write to the underlying (supposedly non-writable) buffer using the tensor. You may want "
    "to copy the buffer to protect its data or make it writable before converting it to a tensor. "
    "This type of warning will be suppressed for the rest of this program.";

/* How many elements follow the offset; -1: exception. */
static int64_t count_elements(Py_ssize_t length, Py_ssize_t item, Py_ssize_t count,
                              Py_ssize_t offset)
{
    if (length == 0 || count == 0) {
        PyErr_Format(PyExc_ValueError, "both buffer length (%zd) and count (%zd) must not be 0",
                     length, count);
        return -1;
    }
    if (offset < 0 || offset >= length) {
        PyErr_Format(PyExc_ValueError,
                     "offset (%zd bytes) must be non-negative and no greater than buffer length "
                     "(%zd bytes) minus 1",
                     offset, length);
        return -1;
    }
    if (count < 0) {
        if ((length - offset) % item != 0) {
            PyErr_Format(PyExc_ValueError,
                         "buffer length (%zd bytes) after offset (%zd bytes) must be a multiple of "
                         "element size (%zd)",
                         length - offset, offset, item);
            return -1;
        }
        return (length - offset) / item;
    }
    if (count > (length - offset) / item) {
        PyErr_Format(PyExc_ValueError,
                     "requested buffer length (%zd * %zd bytes) after offset (%zd bytes) must not "
                     "be greater than actual buffer length (%zd bytes)",
                     count, item, offset, length);
        return -1;
    }
    return count;
}

static mt_tensor *over_buffer(borrowed *held, mt_dtype dtype, Py_ssize_t count, Py_ssize_t offset)
{
    mt_tensor *tensor = NULL;
    int64_t elements =
        count_elements(held->view.len, (Py_ssize_t)mt_dtype_size(dtype), count, offset);
    char *data = (char *)held->view.buf + offset;
    if (elements >= 0 && data_refuse_misaligned(data, dtype, "the buffer behind the offset") == 0 &&
        zero_or_raise(
            mt_tensor_borrow(data, dtype, &elements, NULL, 1, free_borrowed, held, &tensor)) == 0) {
        return tensor;
    }
    late_release(&held->item);
    return NULL;
}

static PyObject *frombuffer(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static const char *const keywords[] = {"buffer", "dtype",         "count",
                                           "offset", "requires_grad", NULL};
    static bool warned;
    PyObject *buffer = NULL;
    PyObject *type = NULL;
    Py_ssize_t count = -1;
    Py_ssize_t offset = 0;
    int requires_grad = 0;
    mt_dtype dtype = MT_DTYPE_NONE;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$Onnp:frombuffer", PY_NAMES(keywords),
                                     &buffer, &type, &count, &offset, &requires_grad)) {
        return NULL;
    }
    if (type == NULL || type == Py_None) {
        PyErr_SetString(PyExc_TypeError,
                        "frombuffer() missing 1 required positional arguments: \"dtype\"");
        return NULL;
    }
    if (dtype_from_object(type, &dtype) != 0) {
        return NULL;
    }
    if (!PyObject_CheckBuffer(buffer)) {
        PyErr_SetString(PyExc_ValueError, "object does not implement Python buffer protocol.");
        return NULL;
    }
    bool refused = false;
    borrowed *held = borrow(buffer, PyBUF_SIMPLE, readonly_buffer, &warned, &refused);
    mt_tensor *tensor = held == NULL ? NULL : over_buffer(held, dtype, count, offset);
    if (tensor == NULL) {
        return NULL;
    }
    int status = requires_grad ? mt_tensor_set_requires_grad(tensor, true) : MT_OK;
    if (status != MT_OK) {
        mt_tensor_release(tensor);
        return tensors_raise(status);
    }
    return tensor_wrap(tensor);
}

/* ---- start ----------------------------------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"from_numpy", from_numpy, METH_O,
     "from_numpy($module, ndarray, /)\n--\n\nA tensor over the array's memory."},
    {"frombuffer", PY_CALL(frombuffer), METH_VARARGS | METH_KEYWORDS,
     "frombuffer($module, buffer, /, *, dtype, count=-1, offset=0, requires_grad=False)\n--\n\nA tensor over the memory of a buffer."},
    {NULL, NULL, 0, NULL},
};

py_part buffer_import_part;
int buffer_import_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
