/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that Python code has, whoever made or changed them, as tables and files: the library lays
 * them out (mtprof_averages_from_rows), so there is one formatter.
 *
 * A row is a tuple (key, overload_name, input_shapes, device_type, is_device, kind, is_async,
 * is_user_annotation, has_parent, node_id, count, cpu_us, self_cpu_us, device_us, self_device_us,
 * cpu_memory, self_cpu_memory, device_memory, self_device_memory, flops, stack). Times are in
 * microseconds, as Python has them; the library counts nanoseconds.
 */
#include "profiler/results/model_object.h"

#include <errno.h>
#include <math.h>
#include <string.h>

typedef struct rows_builder {
    mtprof_row *rows;
    mtprof_text *frames;
    uint32_t n_rows, n_frames, frames_capacity;
    PyObject *kept; /* a list of what texts are borrowed from */
} rows_builder;

static int text_of(PyObject *object, mtprof_text *text)
{
    Py_ssize_t length = 0;
    const char *bytes = "";
    if (object != Py_None) {
        bytes = PyUnicode_AsUTF8AndSize(object, &length);
        if (bytes == NULL) {
            return -1;
        }
    }
    *text = (mtprof_text){bytes, (size_t)length};
    return 0;
}

static int64_t nanoseconds(double us)
{
    double ns = us * 1e3;
    if (!(ns > -9.2e18)) {
        return isnan(ns) ? 0 : INT64_MIN;
    }
    return ns < 9.2e18 ? (int64_t)llround(ns) : INT64_MAX;
}

/* A list as a tuple that lives as long as the builder; borrowed. Numbers of later rows may run code
 * (__float__) which changes the list. NULL: an exception. */
static PyObject *keep_items(rows_builder *builder, PyObject *list)
{
    PyObject *items = PyList_AsTuple(list);
    int failed = items == NULL || PyList_Append(builder->kept, items) != 0;
    Py_XDECREF(items);
    return failed ? NULL : items;
}

static int add_stack(rows_builder *builder, PyObject *stack, mtprof_row *row)
{
    bool given = PyList_Check(stack) && PyList_GET_SIZE(stack) > 0;
    PyObject *items = given ? keep_items(builder, stack) : NULL;
    if (given && items == NULL) {
        return -1;
    }
    Py_ssize_t n = given ? PyTuple_GET_SIZE(items) : 0;
    if (n > 1 << 20) {
        n = 1 << 20;
    }
    if (builder->n_frames + (uint32_t)n > builder->frames_capacity) {
        uint32_t capacity = (builder->n_frames + (uint32_t)n) * 2;
        mtprof_text *frames = PyMem_Resize(builder->frames, mtprof_text, capacity);
        if (frames == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        builder->frames = frames;
        builder->frames_capacity = capacity;
    }
    row->stack = n > 0 ? builder->n_frames + 1 : 0;
    row->stack_n = (uint32_t)n;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *frame = PyTuple_GET_ITEM(items, i);
        if (!PyUnicode_Check(frame)) {
            PyErr_Format(PyExc_TypeError, "stack: a str is needed, not %R", frame);
            return -1;
        }
        if (text_of(frame, &builder->frames[builder->n_frames++]) != 0) {
            return -1;
        }
    }
    return 0;
}

static int add_row(rows_builder *builder, PyObject *tuple)
{
    mtprof_row *row = &builder->rows[builder->n_rows];
    PyObject *texts[4] = {NULL};
    PyObject *stack = NULL;
    int device = 0;
    int async = 0;
    int annotation = 0;
    int parent = 0;
    double us[4] = {0};
    double loose = 0;
    long long memory[4] = {0};
    unsigned long long count = 0;
    unsigned long long flops = 0;
    *row = (mtprof_row){.struct_size = sizeof *row, .step = INT32_MIN, .track = UINT32_MAX};
    if (!PyTuple_Check(tuple)) {
        PyErr_Format(PyExc_TypeError, "a row is a tuple, not %R", tuple);
        return -1;
    }
    if (!PyArg_ParseTuple(tuple, "OOOOpbpppiKddddLLLLKO|d", &texts[0], &texts[1], &texts[2],
                          &texts[3], &device, &row->kind, &async, &annotation, &parent,
                          &row->node_id, &count, &us[0], &us[1], &us[2], &us[3], &memory[0],
                          &memory[1], &memory[2], &memory[3], &flops, &stack, &loose) ||
        text_of(texts[0], &row->key) != 0 || text_of(texts[1], &row->overload) != 0 ||
        text_of(texts[2], &row->input_shapes) != 0 || text_of(texts[3], &row->device_type) != 0 ||
        add_stack(builder, stack, row) != 0) {
        return -1;
    }
    row->device = device != 0;
    row->is_async = async != 0;
    row->is_user_annotation = annotation != 0;
    row->has_parent = parent != 0;
    row->count = count;
    row->flops = flops;
    row->cpu_ns = row->min_ns = row->max_ns = nanoseconds(us[0]);
    row->self_cpu_ns = nanoseconds(us[1]);
    row->loose_ns = nanoseconds(loose);
    row->device_ns = nanoseconds(us[2]);
    row->self_device_ns = nanoseconds(us[3]);
    row->cpu_memory = memory[0];
    row->self_cpu_memory = memory[1];
    row->device_memory = memory[2];
    row->self_device_memory = memory[3];
    builder->n_rows++;
    return 0;
}

/* Texts are borrowed from the tuples, which the builder keeps. */
static int add_rows(rows_builder *builder, PyObject *list)
{
    builder->kept = PyList_New(0);
    PyObject *rows = builder->kept != NULL ? keep_items(builder, list) : NULL;
    if (rows == NULL) {
        return -1;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(rows);
    if (n >= UINT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "too many rows: %zd", n);
        return -1;
    }
    builder->rows = PyMem_Calloc((size_t)n + 1, sizeof builder->rows[0]);
    if (builder->rows == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (add_row(builder, PyTuple_GET_ITEM(rows, i)) != 0) {
            return -1;
        }
    }
    return 0;
}

static void builder_fini(rows_builder *builder)
{
    PyMem_Free(builder->rows);
    PyMem_Free(builder->frames);
    Py_XDECREF(builder->kept);
}

/* Averages of Python's rows. NULL: an exception. */
static mtprof_averages *given_averages(PyObject *rows, mtprof_given_rows *given)
{
    rows_builder builder = {0};
    mtprof_averages *averages = NULL;
    if (add_rows(&builder, rows) == 0) {
        given->struct_size = sizeof *given;
        given->rows = builder.rows;
        given->count = builder.n_rows;
        given->frames = builder.frames;
        given->n_frames = builder.n_frames;
        mtprof_status status = mtprof_averages_from_rows(given, &averages);
        if (status != MTPROF_OK) {
            model_raise(status, NULL);
        }
    }
    builder_fini(&builder);
    return averages;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int number_option(PyObject *options, const char *name, int64_t *number)
{
    PyObject *value = PyDict_GetItemString(options, name);
    if (value == NULL) {
        return 0;
    }
    *number = PyLong_AsLongLong(value);
    return *number == -1 && PyErr_Occurred() ? -1 : 0;
}

static int text_option(PyObject *options, const char *name, const char **text)
{
    PyObject *value = PyDict_GetItemString(options, name);
    if (value == NULL || value == Py_None) {
        return 0;
    }
    *text = PyUnicode_AsUTF8(value);
    return *text == NULL ? -1 : 0;
}

static int32_t width_of(int64_t width)
{
    return width < INT32_MIN ? INT32_MIN : width > INT32_MAX ? INT32_MAX : (int32_t)width;
}

int table_options_from(PyObject *options, mtprof_table_options *out)
{
    int64_t source = 0;
    int64_t name = 0;
    int64_t shapes = 0;
    int64_t top = 0;
    int64_t mindtorch = 0;
    int64_t format = 0;
    int64_t quantiles = 0;
    int64_t width = 0;
    if (number_option(options, "row_limit", &out->row_limit) != 0 ||
        number_option(options, "max_src_column_width", &source) != 0 ||
        number_option(options, "max_name_column_width", &name) != 0 ||
        number_option(options, "max_shapes_column_width", &shapes) != 0 ||
        number_option(options, "top_level_only", &top) != 0 ||
        number_option(options, "mindtorch", &mindtorch) != 0 ||
        number_option(options, "format", &format) != 0 ||
        number_option(options, "quantiles", &quantiles) != 0 ||
        number_option(options, "width", &width) != 0 ||
        text_option(options, "header", &out->header) != 0 ||
        text_option(options, "time_unit", &out->time_unit) != 0) {
        return -1;
    }
    out->max_src_column_width = width_of(source);
    out->max_name_column_width = width_of(name);
    out->max_shapes_column_width = width_of(shapes);
    out->top_level_only = top != 0;
    out->mindtorch = mindtorch != 0;
    out->format = (uint32_t)format;
    out->quantiles = quantiles != 0;
    out->width = (uint32_t)width_of(width);
    return 0;
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

PyObject *table_text(mtprof_averages *averages, const mtprof_table_options *options)
{
    text_buffer buffer = {NULL, 0, 0};
    mtprof_output output = {
        .struct_size = sizeof output, .context = &buffer, .write = buffer_write};
    mtprof_status status = MTPROF_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_averages_table(averages, options, &output);
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

static PyObject *rows_table(PyObject *module, PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"rows",  "options", "device_type", "memory",
                                        "flops", "events",  "model",       NULL};
    PyObject *rows = NULL;
    PyObject *given_options = NULL;
    PyObject *model = Py_None;
    mtprof_table_options options = {.struct_size = sizeof options};
    mtprof_given_rows given = {.struct_size = sizeof given};
    mtprof_health health = {.struct_size = sizeof health};
    int memory = 0;
    int flops = 0;
    int events = 0;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!|zpppO:rows_table", MODEL_KEYWORDS(names),
                                     &PyList_Type, &rows, &PyDict_Type, &given_options,
                                     &given.device_type, &memory, &flops, &events, &model) ||
        table_options_from(given_options, &options) != 0) {
        return NULL;
    }
    given.memory = memory != 0;
    given.flops = flops != 0;
    given.events = events != 0;
    if (Py_IS_TYPE(model, profiler.model_type) &&
        mtprof_model_get_health(((model_object *)model)->model, &health) == MTPROF_OK) {
        given.health = &health;
    }
    mtprof_averages *averages = given_averages(rows, &given);
    PyObject *text = averages != NULL ? table_text(averages, &options) : NULL;
    mtprof_averages_free(averages);
    return text;
}

static PyObject *rows_export(PyObject *module, PyObject *args)
{
    PyObject *rows = NULL;
    PyObject *path = NULL;
    int mindtorch = 0;
    mtprof_given_rows given = {.struct_size = sizeof given};
    mtprof_export_options options = {.struct_size = sizeof options, .progress = model_progress};
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O&zp:rows_export", &PyList_Type, &rows, PyUnicode_FSConverter,
                          &path, &given.device_type, &mindtorch)) {
        return NULL;
    }
    options.flavor = mindtorch ? MTPROF_FLAVOR_MINDTORCH : MTPROF_FLAVOR_TORCH;
    mtprof_averages *averages = given_averages(rows, &given);
    PyObject *result = NULL;
    if (averages != NULL) {
        const char *text = PyBytes_AS_STRING(path);
        mtprof_status status = MTPROF_OK;
        Py_BEGIN_ALLOW_THREADS;
        status = mtprof_averages_export_chrome(averages, text, &options);
        Py_END_ALLOW_THREADS;
        result = status == MTPROF_OK ? Py_NewRef(Py_None) : model_raise(status, text);
    }
    mtprof_averages_free(averages);
    Py_DECREF(path);
    return result;
}

static PyMethodDef functions[] = {
    {"rows_table", (PyCFunction)(void (*)(void))rows_table, METH_VARARGS | METH_KEYWORDS,
     "rows_table(rows, options, …): given rows as a table."},
    {"rows_export", rows_export, METH_VARARGS,
     "rows_export(rows, path, device_type, mindtorch): given rows as a Chrome trace."},
    {NULL, NULL, 0, NULL},
};

py_part given_rows_part;
int given_rows_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
