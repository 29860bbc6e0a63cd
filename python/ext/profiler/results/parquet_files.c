/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow streams as files of Parquet, and small tables of Python's values as Arrow streams.
 */
#include "profiler/results/model_object.h"

#include <mtprof/arrow.h>

#include <string.h>

/* write_parquet(capsule, path): takes the stream out of the capsule. */
static PyObject *write_parquet(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *capsule = NULL;
    PyObject *path = NULL;
    uint64_t rows = 0;
    if (!PyArg_ParseTuple(args, "OO&:write_parquet", &capsule, PyUnicode_FSConverter, &path)) {
        return NULL;
    }
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream != NULL && stream->release == NULL) {
        PyErr_SetString(PyExc_ValueError, "write_parquet: the stream has been read already");
        stream = NULL;
    }
    if (stream == NULL) {
        Py_DECREF(path);
        return NULL;
    }
    mtprof_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_arrow_write_parquet(stream, PyBytes_AS_STRING(path), &rows);
    stream->release(stream);
    Py_END_ALLOW_THREADS;
    PyObject *result = status == MTPROF_OK ? PyLong_FromUnsignedLongLong(rows)
                                           : model_raise(status, PyBytes_AS_STRING(path));
    Py_DECREF(path);
    return result;
}

/* A value of a row. -1: an exception. The text is borrowed. */
static int read_cell(mtprof_arrow_cell *cell, PyObject *value, char format)
{
    *cell = (mtprof_arrow_cell){.is_null = value == Py_None};
    if (value == Py_None) {
        return 0;
    }
    if (format == 'U') {
        Py_ssize_t length = 0;
        cell->text.bytes = PyUnicode_AsUTF8AndSize(value, &length);
        cell->text.length = (size_t)length;
    } else if (format == 'g') {
        cell->real = PyFloat_AsDouble(value);
    } else {
        cell->number = PyLong_AsLongLong(value);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int read_row(mtprof_arrow_cell *cells, PyObject *row, const char *formats, Py_ssize_t n)
{
    if (!PyList_Check(row) || PyList_GET_SIZE(row) != n) {
        PyErr_Format(PyExc_ValueError,
                     "cells_arrow_stream: a row must be a list of %zd values, "
                     "not %R",
                     n, row);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (read_cell(&cells[i], PyList_GET_ITEM(row, i), formats[i]) != 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *make_stream(PyObject *names, const char *formats, PyObject *rows,
                             const char **texts, mtprof_arrow_cell *cells)
{
    Py_ssize_t n = PyList_GET_SIZE(names);
    Py_ssize_t n_rows = PyList_GET_SIZE(rows);
    for (Py_ssize_t i = 0; i < n; i++) {
        texts[i] = PyUnicode_AsUTF8(PyList_GET_ITEM(names, i));
        if (texts[i] == NULL) {
            return NULL;
        }
    }
    for (Py_ssize_t i = 0; i < n_rows; i++) {
        if (read_row(cells + i * n, PyList_GET_ITEM(rows, i), formats, n) != 0) {
            return NULL;
        }
    }
    mtprof_arrow_cells table = {.struct_size = sizeof table,
                                .n_columns = (uint32_t)n,
                                .names = texts,
                                .formats = formats,
                                .cells = cells,
                                .n_rows = (uint64_t)n_rows};
    struct ArrowArrayStream *stream = NULL;
    PyObject *capsule = arrow_capsule_new(&stream);
    if (capsule != NULL) {
        mtprof_status status = mtprof_arrow_from_cells(&table, NULL, stream);
        if (status != MTPROF_OK) {
            Py_CLEAR(capsule);
            model_raise(status, NULL);
        }
    }
    return capsule;
}

/* cells_arrow_stream(names, formats, rows) */
static PyObject *cells_arrow_stream(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *names = NULL;
    PyObject *rows = NULL;
    const char *formats = NULL;
    if (!PyArg_ParseTuple(args, "O!sO!:cells_arrow_stream", &PyList_Type, &names, &formats,
                          &PyList_Type, &rows)) {
        return NULL;
    }
    size_t n = (size_t)PyList_GET_SIZE(names);
    if (strlen(formats) != n) {
        return PyErr_Format(PyExc_ValueError, "cells_arrow_stream: %zu names and %zu formats", n,
                            strlen(formats));
    }
    const char **texts = PyMem_Calloc(n + 1, sizeof texts[0]);
    mtprof_arrow_cell *cells = PyMem_Calloc(n * (size_t)PyList_GET_SIZE(rows) + 1, sizeof cells[0]);
    PyObject *capsule = NULL;
    if (texts == NULL || cells == NULL) {
        PyErr_NoMemory();
    } else {
        capsule = make_stream(names, formats, rows, texts, cells);
    }
    PyMem_Free((void *)texts);
    PyMem_Free(cells);
    return capsule;
}

static PyMethodDef functions[] = {
    {"write_parquet", write_parquet, METH_VARARGS,
     "write_parquet(capsule, path): writes an Arrow stream to a file of Parquet; how many rows."},
    {"cells_arrow_stream", cells_arrow_stream, METH_VARARGS,
     "cells_arrow_stream(names, formats, rows): lists of values as a capsule of an Arrow stream; "
     "formats: a letter a column, of b, i, l, g and U."},
    {NULL, NULL, 0, NULL},
};

py_part parquet_part;
int parquet_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
