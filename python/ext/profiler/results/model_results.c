/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model gives as a whole: averages as tuples, the table of all events, files.
 */
#include "profiler/results/model_object.h"

/* ---- averages -------------------------------------------------------------------------------- */

/* The order of items in a tuple; _mtprof.averages_fields has the names. */
static const char *const row_names[] = {
    "key",
    "overload_name",
    "input_shapes",
    "module",
    "device_type",
    "kind",
    "is_async",
    "is_user_annotation",
    "scope",
    "first_event",
    "has_parent",
    "step",
    "track",
    "count",
    "cpu_ns",
    "self_cpu_ns",
    "device_ns",
    "self_device_ns",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
    "min_ns",
    "max_ns",
    "loose_ns",
};

static PyObject *row_tuple(const mtprof_row *row)
{
    PyObject *texts[5] = {model_text(row->key), model_text(row->overload),
                          model_text(row->input_shapes), model_text(row->module),
                          model_text(row->device_type)};
    for (size_t i = 0; i < 5; i++) {
        if (texts[i] == NULL) {
            for (size_t k = 0; k < 5; k++) {
                Py_XDECREF(texts[k]);
            }
            return NULL;
        }
    }
    return Py_BuildValue(
        "(NNNNNiNNIIiiIKLLLLLLLLKLLL)", texts[0], texts[1], texts[2], texts[3], texts[4],
        (int)row->kind, PyBool_FromLong(row->is_async), PyBool_FromLong(row->is_user_annotation),
        row->record_scope, row->first_event, (int)row->has_parent, (int)row->step, row->track,
        (unsigned long long)row->count, (long long)row->cpu_ns, (long long)row->self_cpu_ns,
        (long long)row->device_ns, (long long)row->self_device_ns, (long long)row->cpu_memory,
        (long long)row->self_cpu_memory, (long long)row->device_memory,
        (long long)row->self_device_memory, (unsigned long long)row->flops, (long long)row->min_ns,
        (long long)row->max_ns, (long long)row->loose_ns);
}

static PyObject *row_tuples(const mtprof_averages *averages)
{
    uint32_t n = mtprof_averages_count(averages);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (uint32_t i = 0; list != NULL && i < n; i++) {
        mtprof_row row = {.struct_size = sizeof row};
        mtprof_status status = mtprof_averages_get_row(averages, i, &row);
        PyObject *tuple = status == MTPROF_OK ? row_tuple(&row) : model_raise(status, NULL);
        if (tuple == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, tuple);
    }
    return list;
}

PyObject *model_averages(model_object *self, PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"shapes", "overload", "stack_n",   "module",
                                        "step",   "thread",   "functions", NULL};
    int shapes = 0;
    int overload = 0;
    int module = 0;
    int step = 0;
    int thread = 0;
    int functions = 1;
    mtprof_averages_options options = {.struct_size = sizeof options};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|ppIpppp:averages", MODEL_KEYWORDS(names),
                                     &shapes, &overload, &options.stack_n, &module, &step, &thread,
                                     &functions)) {
        return NULL;
    }
    options.group = (shapes ? (unsigned)MTPROF_GROUP_SHAPES : 0u) |
                    (overload ? (unsigned)MTPROF_GROUP_OVERLOAD : 0u) |
                    (module ? (unsigned)MTPROF_GROUP_MODULE : 0u) |
                    (step ? (unsigned)MTPROF_GROUP_STEP : 0u) |
                    (thread ? (unsigned)MTPROF_GROUP_THREAD : 0u);
    options.functions = functions != 0;
    mtprof_averages *averages = NULL;
    mtprof_status status = MTPROF_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_averages_new(self->model, &options, &averages);
    Py_END_ALLOW_THREADS;
    if (status != MTPROF_OK) {
        return model_raise(status, NULL);
    }
    PyObject *rows = row_tuples(averages);
    mtprof_averages_free(averages);
    return rows;
}

/* ---- the table of all events ----------------------------------------------------------------- */

static mtprof_status sorted_events(mtprof_model *model, const char *sort_by, mtprof_averages **out)
{
    mtprof_averages_options options = {.struct_size = sizeof options, .functions = 1};
    mtprof_status status = mtprof_averages_from_events(model, &options, out);
    return status == MTPROF_OK && sort_by != NULL ? mtprof_averages_sort(*out, sort_by) : status;
}

PyObject *model_table(model_object *self, PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"sort_by", "options", NULL};
    const char *sort_by = NULL;
    PyObject *given = NULL;
    mtprof_table_options options = {.struct_size = sizeof options};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|zO!:table", MODEL_KEYWORDS(names), &sort_by,
                                     &PyDict_Type, &given) ||
        (given != NULL && table_options_from(given, &options) != 0)) {
        return NULL;
    }
    mtprof_averages *averages = NULL;
    mtprof_status status = MTPROF_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = sorted_events(self->model, sort_by, &averages);
    Py_END_ALLOW_THREADS;
    PyObject *text = NULL;
    if (status == MTPROF_EINVAL && averages != NULL) {
        PyErr_Format(PyExc_AttributeError, "'FunctionEvent' object has no attribute '%s'", sort_by);
    } else {
        text = status == MTPROF_OK ? table_text(averages, &options) : model_raise(status, NULL);
    }
    mtprof_averages_free(averages);
    return text;
}

/* ---- files ----------------------------------------------------------------------------------- */

static PyObject *report_dict(const mtprof_export_report *report)
{
    return Py_BuildValue(
        "{s:I,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "files", report->files, "events",
        (unsigned long long)report->events, "clamped", (unsigned long long)report->clamped,
        "replaced", (unsigned long long)report->replaced, "bytes",
        (unsigned long long)report->bytes, "bytes_written",
        (unsigned long long)report->bytes_written, "unordered",
        (unsigned long long)report->unordered, "problems", (unsigned long long)report->problems,
        "left_out", (unsigned long long)report->left_out, "folded",
        (unsigned long long)report->folded);
}

static PyObject *export_file(mtprof_model *model, const char *format, const char *path,
                             mtprof_export_options *options)
{
    enum mtprof_export_format number = MTPROF_EXPORT_CHROME;
    mtprof_export_report report = {.struct_size = sizeof report};
    mtprof_status status = mtprof_export_parse(format, &number);
    if (status == MTPROF_OK) {
        options->report = &report;
        Py_BEGIN_ALLOW_THREADS;
        status = mtprof_export(model, number, path, options);
        Py_END_ALLOW_THREADS;
    }
    return status == MTPROF_OK ? report_dict(&report) : model_raise(status, path);
}

PyObject *model_export(model_object *self, PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"format",      "path",   "flavor", "gzip_level",
                                        "split_bytes", "metric", "device", "trace_name",
                                        "progress",    NULL};
    const char *format = NULL;
    const char *flavor = NULL;
    PyObject *path = NULL;
    PyObject *progress = Py_None;
    unsigned long long split = 0;
    mtprof_export_options options = {.struct_size = sizeof options};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "sO&|zIKzzzO:export", MODEL_KEYWORDS(names),
                                     &format, PyUnicode_FSConverter, &path, &flavor,
                                     &options.gzip_level, &split, &options.metric, &options.device,
                                     &options.trace_name, &progress)) {
        return NULL;
    }
    options.split_bytes = split;
    options.progress = model_progress;
    options.user = progress != Py_None ? &progress : NULL;
    PyObject *result = NULL;
    if (flavor != NULL && PyOS_stricmp(flavor, "mindtorch") == 0) {
        options.flavor = MTPROF_FLAVOR_MINDTORCH;
    }
    if (flavor != NULL && options.flavor == 0 && *flavor != '\0' &&
        PyOS_stricmp(flavor, "torch") != 0) {
        PyErr_Format(PyExc_ValueError, "flavor must be 'torch' or 'mindtorch', not '%s'", flavor);
    } else {
        result = export_file(self->model, format, PyBytes_AS_STRING(path), &options);
    }
    Py_DECREF(path);
    return result;
}

/* ---- the part -------------------------------------------------------------------------------- */

py_part results_part;
int results_part(PyObject *module)
{
    Py_ssize_t n = (Py_ssize_t)(sizeof row_names / sizeof row_names[0]);
    PyObject *fields = PyTuple_New(n);
    for (Py_ssize_t i = 0; fields != NULL && i < n; i++) {
        PyObject *name = PyUnicode_InternFromString(row_names[i]);
        if (name == NULL) {
            Py_CLEAR(fields);
            break;
        }
        PyTuple_SET_ITEM(fields, i, name);
    }
    int failed = fields == NULL || PyModule_AddObjectRef(module, "averages_fields", fields) != 0;
    Py_XDECREF(fields);
    return failed ? -1 : 0;
}
