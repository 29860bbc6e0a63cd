/* SPDX-License-Identifier: Apache-2.0
 *
 * A column as a read-only buffer: numpy.asarray() and memoryview() see the library's own memory,
 * without a copy. The buffer keeps the model, and so the memory, alive.
 */
#include "profiler/results/model_object.h"

#include <string.h>

typedef struct column_object {
    PyObject_HEAD PyObject *model;
    mtprof_column column;
    Py_ssize_t shape, stride;
} column_object;

static PyTypeObject *column_type;

static int column_get_buffer(column_object *self, Py_buffer *view, int flags)
{
    static const char *const formats[] = {
        [MTPROF_TYPE_U8] = "B",  [MTPROF_TYPE_U16] = "H", [MTPROF_TYPE_U32] = "I",
        [MTPROF_TYPE_I32] = "i", [MTPROF_TYPE_U64] = "Q", [MTPROF_TYPE_I64] = "q"};
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "a column is read-only");
        view->obj = NULL;
        return -1;
    }
    *view = (Py_buffer){
        .buf = (void *)(uintptr_t)self->column.data,
        .obj = Py_NewRef((PyObject *)self),
        .len = self->shape * self->stride,
        .itemsize = self->stride,
        .readonly = 1,
        .ndim = 1,
        .format =
            (flags & PyBUF_FORMAT) != 0 ? (char *)(uintptr_t)formats[self->column.type] : NULL,
        .shape = (flags & PyBUF_ND) != 0 ? &self->shape : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? &self->stride : NULL,
    };
    return 0;
}

static Py_ssize_t column_length(column_object *self)
{
    return self->shape;
}

static PyObject *column_item(column_object *self, Py_ssize_t index)
{
    if (index < 0 || index >= self->shape) {
        return PyErr_Format(PyExc_IndexError, "column index %zd of %zd", index, self->shape);
    }
    const char *at = (const char *)self->column.data + index * self->stride;
    uint64_t bits = 0;
    memcpy(&bits, at, (size_t)self->stride); /* little-endian, as the library's files are */
    switch (self->column.type) {
    case MTPROF_TYPE_I32: return PyLong_FromLong((int32_t)(uint32_t)bits);
    case MTPROF_TYPE_I64: return PyLong_FromLongLong((int64_t)bits);
    default: return PyLong_FromUnsignedLongLong(bits);
    }
}

static void column_dealloc(column_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(self->model);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *model_column_object(model_object *self, PyObject *name)
{
    uint32_t id = 0;
    while (id < MTPROF_COLUMN_COUNT &&
           !(PyUnicode_Check(name) &&
             PyUnicode_CompareWithASCIIString(name, mtprof_column_name(id)) == 0)) {
        id++;
    }
    if (id == MTPROF_COLUMN_COUNT) {
        return model_key_error(name);
    }
    mtprof_column column = {0};
    mtprof_status status = MTPROF_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_model_get_column(self->model, (enum mtprof_column_id)id, &column);
    Py_END_ALLOW_THREADS;
    if (status != MTPROF_OK) {
        return model_raise(status, NULL);
    }
    if (column.data == NULL) {
        return PyErr_Format(PyExc_NotImplementedError, "column '%s' was not recorded",
                            mtprof_column_name(id));
    }
    column_object *object = PyObject_New(column_object, column_type);
    if (object != NULL) {
        object->model = Py_NewRef((PyObject *)self);
        object->column = column;
        object->shape = (Py_ssize_t)column.count;
        object->stride = (Py_ssize_t)column.item_bytes;
    }
    return (PyObject *)object;
}

PyObject *model_column_names(model_object *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    PyObject *list = PyList_New(MTPROF_COLUMN_COUNT);
    for (Py_ssize_t i = 0; list != NULL && i < MTPROF_COLUMN_COUNT; i++) {
        PyObject *name = PyUnicode_InternFromString(mtprof_column_name((uint32_t)i));
        if (name == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, name);
    }
    return list;
}

static PyObject *column_repr(column_object *self)
{
    return PyUnicode_FromFormat("<Column of %zd items of %zd bytes>", self->shape, self->stride);
}

static char column_doc[] = "A column of a model; a read-only buffer.";

static PyType_Slot slots[] = {
    {Py_tp_dealloc, column_dealloc},
    {Py_bf_getbuffer, column_get_buffer},
    {Py_sq_length, column_length},
    {Py_sq_item, column_item},
    {Py_tp_doc, column_doc},
    {Py_tp_repr, column_repr},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "mtprof._mtprof.Column",
    .basicsize = sizeof(column_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

py_part column_part;
int column_part(PyObject *module)
{
    return py_add_type(module, &spec, NULL, "Column", &column_type);
}
