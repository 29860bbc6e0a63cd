/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model gives as a whole: averages, the table of all events, files.
 */
#include "profiler/results/model_object.h"

/* ---- averages -------------------------------------------------------------------------------- */

/* None: where the trace has no ops. */
static int functions_from(PyObject *given, uint32_t *out)
{
    int truth = given == Py_None ? 0 : PyObject_IsTrue(given);
    if (truth < 0) {
        return -1;
    }
    *out = given == Py_None ? MTPROF_FUNCTIONS_WITHOUT_OPS
           : truth          ? MTPROF_FUNCTIONS_ALL
                            : MTPROF_FUNCTIONS_NONE;
    return 0;
}

PyObject *model_averages(model_object *self, PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"type", "shapes", "overload", "stack_n", "functions", NULL};
    PyTypeObject *type = profiler.average_type;
    int shapes = 0;
    int overload = 0;
    PyObject *functions = Py_True;
    mtprof_averages_options options = {.struct_size = sizeof options};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O!ppIO:averages", PY_NAMES(names),
                                     &PyType_Type, &type, &shapes, &overload, &options.stack_n,
                                     &functions) ||
        functions_from(functions, &options.functions) != 0) {
        return NULL;
    }
    if (!PyType_IsSubtype(type, profiler.average_type)) {
        return PyErr_Format(PyExc_TypeError, "averages: type must be made of Row, not %R", type);
    }
    options.group = (shapes ? (unsigned)MTPROF_GROUP_SHAPES : 0u) |
                    (overload ? (unsigned)MTPROF_GROUP_OVERLOAD : 0u);
    mtprof_averages *averages = NULL;
    mtprof_status status = MTPROF_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_averages_new(self->model, &options, &averages);
    Py_END_ALLOW_THREADS;
    return status == MTPROF_OK ? row_list(self, averages, type, shapes != 0)
                               : model_raise(status, NULL);
}

/* ---- the table of all events ----------------------------------------------------------------- */

static mtprof_status sorted_events(mtprof_model *model, const char *sort_by, mtprof_averages **out)
{
    mtprof_averages_options options = {.struct_size = sizeof options,
                                       .functions = MTPROF_FUNCTIONS_ALL};
    mtprof_status status = mtprof_averages_from_events(model, &options, out);
    return status == MTPROF_OK && sort_by != NULL ? mtprof_averages_sort(*out, sort_by) : status;
}

PyObject *model_table(model_object *self, PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"sort_by", "options", NULL};
    const char *sort_by = NULL;
    PyObject *given = NULL;
    mtprof_table_options options = {.struct_size = sizeof options};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|zO!:table", PY_NAMES(names), &sort_by,
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
    static const char *const names[] = {"format",      "path",     "flavor",        "gzip_level",
                                        "split_bytes", "metric",   "device",        "trace_name",
                                        "progress",    "baseline", "baseline_name", NULL};
    const char *format = NULL;
    const char *flavor = NULL;
    PyObject *path = NULL;
    PyObject *progress = Py_None;
    PyObject *baseline = NULL;
    unsigned long long split = 0;
    mtprof_export_options options = {.struct_size = sizeof options};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "sO&|zIKzzzOO!z:export", PY_NAMES(names),
                                     &format, PyUnicode_FSConverter, &path, &flavor,
                                     &options.gzip_level, &split, &options.metric, &options.device,
                                     &options.trace_name, &progress, Py_TYPE(self), &baseline,
                                     &options.baseline_name)) {
        return NULL;
    }
    options.split_bytes = split;
    options.baseline = baseline != NULL ? ((model_object *)baseline)->model : NULL;
    options.progress = model_progress;
    options.user = progress != Py_None ? &progress : NULL;
    PyObject *result = NULL;
    if (flavor != NULL && PyOS_stricmp(flavor, "mindtorch") == 0) {
        options.flavor = MTPROF_FLAVOR_MINDTORCH;
    } else if (flavor != NULL && PyOS_stricmp(flavor, "lean") == 0) {
        options.flavor = MTPROF_FLAVOR_LEAN;
    }
    if (flavor != NULL && options.flavor == 0 && *flavor != '\0' &&
        PyOS_stricmp(flavor, "torch") != 0) {
        PyErr_Format(PyExc_ValueError, "flavor must be 'torch', 'mindtorch' or 'lean', not '%s'",
                     flavor);
    } else {
        result = export_file(self->model, format, PyBytes_AS_STRING(path), &options);
    }
    Py_DECREF(path);
    return result;
}

/* ---- the report as a text -------------------------------------------------------------------- */

static mtprof_status write_report(const void *model, const void *options,
                                  const mtprof_output *output)
{
    return mtprof_export_to((mtprof_model *)(uintptr_t)model, MTPROF_EXPORT_REPORT, output,
                            options);
}

PyObject *model_report_text(model_object *self, PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"baseline", "baseline_name", NULL};
    PyObject *baseline = NULL;
    mtprof_export_options options = {.struct_size = sizeof options};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O!z:report_text", PY_NAMES(names),
                                     Py_TYPE(self), &baseline, &options.baseline_name)) {
        return NULL;
    }
    options.baseline = baseline != NULL ? ((model_object *)baseline)->model : NULL;
    return written_text(write_report, self->model, &options);
}
