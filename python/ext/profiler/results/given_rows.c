/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of events or rows that Python code may have made or changed, as tables and files:
 * the library lays them out (mtprof_averages_from_rows), so there is one formatter.
 */
#include "profiler/results/model_object.h"

#include <errno.h>
#include <string.h>

typedef struct given_list {
    rows_buffer buffer;
    mtprof_given_rows rows;
    mtprof_averages *averages;
} given_list;

/* Averages of a list's items. -1: an exception. Must be finished also where it fails. */
static int given_init(given_list *given, PyObject *list)
{
    if (rows_read(&given->buffer, list) != 0) {
        return -1;
    }
    given->rows.struct_size = sizeof given->rows;
    given->rows.rows = given->buffer.rows;
    given->rows.count = given->buffer.n_rows;
    given->rows.frames = given->buffer.frames;
    given->rows.n_frames = given->buffer.n_frames;
    mtprof_status status = mtprof_averages_from_rows(&given->rows, &given->averages);
    return status == MTPROF_OK || model_raise(status, NULL) != NULL ? 0 : -1;
}

static void given_fini(given_list *given)
{
    mtprof_averages_free(given->averages);
    rows_release(&given->buffer);
}

/* ---- tables ---------------------------------------------------------------------------------- */

int table_options_from(PyObject *options, mtprof_table_options *out)
{
    const struct {
        const char *name;
        void *place;
    } numbers[] = {
        {"max_src_column_width", &out->max_src_column_width},
        {"max_name_column_width", &out->max_name_column_width},
        {"max_shapes_column_width", &out->max_shapes_column_width},
        {"top_level_only", &out->top_level_only},
        {"mindtorch", &out->mindtorch},
        {"format", &out->format},
        {"width", &out->width},
    };
    PyObject *value = PyDict_GetItemString(options, "row_limit");
    out->row_limit = value != NULL ? PyLong_AsLongLong(value) : 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        value = PyDict_GetItemString(options, numbers[i].name);
        long long number = value != NULL ? PyLong_AsLongLong(value) : 0;
        number = number < INT32_MIN ? INT32_MIN : number > INT32_MAX ? INT32_MAX : number;
        memcpy(numbers[i].place, &(int32_t){(int32_t)number}, sizeof(int32_t));
    }
    value = PyDict_GetItemString(options, "header");
    out->header = value != NULL && value != Py_None ? PyUnicode_AsUTF8(value) : NULL;
    value = PyDict_GetItemString(options, "time_unit");
    out->time_unit = value != NULL && value != Py_None ? PyUnicode_AsUTF8(value) : NULL;
    return PyErr_Occurred() ? -1 : 0;
}

typedef struct text_buffer {
    char *bytes;
    size_t length, capacity;
} text_buffer;

static int buffer_write(void *context, const void *bytes, size_t length)
{
    text_buffer *buffer = context;
    if (buffer->length + length > buffer->capacity) {
        size_t capacity = (buffer->length + length) * 2;
        char *grown = PyMem_RawRealloc(buffer->bytes, capacity);
        if (grown == NULL) {
            return ENOMEM;
        }
        buffer->bytes = grown;
        buffer->capacity = capacity;
    }
    memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    return 0;
}

PyObject *written_text(text_writer *write, const void *what, const void *options)
{
    text_buffer buffer = {NULL, 0, 0};
    mtprof_output output = {
        .struct_size = sizeof output, .context = &buffer, .write = buffer_write};
    mtprof_status status = MTPROF_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = write(what, options, &output);
    Py_END_ALLOW_THREADS;
    PyObject *text = NULL;
    if (status == MTPROF_OK) {
        text = PyUnicode_DecodeUTF8(buffer.bytes != NULL ? buffer.bytes : "",
                                    (Py_ssize_t)buffer.length, "replace");
    } else {
        model_raise(status, NULL);
    }
    PyMem_RawFree(buffer.bytes);
    return text;
}

static mtprof_status write_table(const void *averages, const void *options,
                                 const mtprof_output *output)
{
    return mtprof_averages_table((mtprof_averages *)(uintptr_t)averages, options, output);
}

PyObject *table_text(mtprof_averages *averages, const mtprof_table_options *options)
{
    return written_text(write_table, averages, options);
}

/* (text, the self CPU time and the self device time that shares are of, None: no device). */
static PyObject *table_and_sums(const given_list *given, const mtprof_table_options *options)
{
    mtprof_row total = {.struct_size = sizeof total};
    double device_us = 0;
    bool has_device = false;
    for (uint32_t i = 0; i < given->buffer.n_rows; i++) {
        const mtprof_row *row = &given->buffer.rows[i];
        bool counts = row->device != 0 && row->is_user_annotation == 0;
        has_device |= row->self_device_ns > 0;
        device_us += counts ? (double)row->self_device_ns / 1e3 : 0;
    }
    if (has_device && given->rows.device_type == NULL) {
        PyErr_SetString(PyExc_RuntimeError,
                        "use_device is None, but there is device performance data.");
        return NULL;
    }
    PyObject *text = table_text(given->averages, options);
    (void)mtprof_averages_get_total(given->averages, &total);
    return text != NULL
               ? Py_BuildValue("NdN", text, (double)total.self_cpu_ns / 1e3,
                               has_device ? PyFloat_FromDouble(device_us) : Py_NewRef(Py_None))
               : NULL;
}

static PyObject *rows_table(PyObject *Py_UNUSED(module), PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"rows",  "options", "device_type", "memory",
                                        "flops", "events",  "model",       NULL};
    PyObject *rows = NULL;
    PyObject *given_options = NULL;
    PyObject *model = Py_None;
    mtprof_table_options options = {.struct_size = sizeof options};
    given_list given = {0};
    mtprof_health health = {.struct_size = sizeof health};
    int memory = 0;
    int flops = 0;
    int events = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!|zpppO:rows_table", PY_NAMES(names),
                                     &PyList_Type, &rows, &PyDict_Type, &given_options,
                                     &given.rows.device_type, &memory, &flops, &events, &model) ||
        table_options_from(given_options, &options) != 0) {
        return NULL;
    }
    given.rows.memory = memory != 0;
    given.rows.flops = flops != 0;
    given.rows.events = events != 0;
    if (Py_IS_TYPE(model, profiler.model_type) &&
        mtprof_model_get_health(((model_object *)model)->model, &health) == MTPROF_OK) {
        given.rows.health = &health;
    }
    PyObject *table = given_init(&given, rows) == 0 ? table_and_sums(&given, &options) : NULL;
    given_fini(&given);
    return table;
}

static PyObject *rows_export(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *rows = NULL;
    PyObject *path = NULL;
    int mindtorch = 0;
    given_list given = {0};
    mtprof_export_options options = {.struct_size = sizeof options, .progress = model_progress};
    if (!PyArg_ParseTuple(args, "O!O&zp:rows_export", &PyList_Type, &rows, PyUnicode_FSConverter,
                          &path, &given.rows.device_type, &mindtorch)) {
        return NULL;
    }
    options.flavor = mindtorch ? MTPROF_FLAVOR_MINDTORCH : MTPROF_FLAVOR_TORCH;
    PyObject *result = NULL;
    if (given_init(&given, rows) == 0) {
        const char *text = PyBytes_AS_STRING(path);
        mtprof_status status = MTPROF_OK;
        Py_BEGIN_ALLOW_THREADS;
        status = mtprof_averages_export_chrome(given.averages, text, &options);
        Py_END_ALLOW_THREADS;
        result = status == MTPROF_OK ? Py_NewRef(Py_None) : model_raise(status, text);
    }
    given_fini(&given);
    Py_DECREF(path);
    return result;
}

static PyObject *rows_arrow_stream(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *rows = NULL;
    given_list given = {0};
    if (!PyArg_ParseTuple(args, "O!z:rows_arrow_stream", &PyList_Type, &rows,
                          &given.rows.device_type)) {
        return NULL;
    }
    PyObject *capsule =
        given_init(&given, rows) == 0 ? averages_arrow_stream(given.averages) : NULL;
    given_fini(&given);
    return capsule;
}

static PyMethodDef functions[] = {
    {"rows_table", PY_CALL(rows_table), METH_VARARGS | METH_KEYWORDS,
     "rows_table(list, options, …): a table of any rows or events, and the sums it has shares of."},
    {"rows_export", rows_export, METH_VARARGS,
     "rows_export(list, path, device_type, mindtorch): rows as a Chrome trace."},
    {"rows_arrow_stream", rows_arrow_stream, METH_VARARGS,
     "rows_arrow_stream(list, device_type): rows as a capsule of an Arrow stream."},
    {NULL, NULL, 0, NULL},
};

py_part given_rows_part;
int given_rows_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
