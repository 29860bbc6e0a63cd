/* SPDX-License-Identifier: Apache-2.0
 *
 * _mtprof.Model: what a trace says (mtprof/model.h), opened from a file or taken from a profile.
 */
#include "profiler/results/model_object.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    LOOK_EVERY_MS = 20 /* for signals, while the library works */
};

/* ---- exceptions and texts -------------------------------------------------------------------- */

PyObject *model_raise(mtprof_status status, const char *path)
{
    int error = mtprof_last_error()->system_error;
    if ((status == MTPROF_EIO || status == MTPROF_ENOSPC) && error != 0) {
        errno = error;
        return path != NULL ? PyErr_SetFromErrnoWithFilename(PyExc_OSError, path)
                            : PyErr_SetFromErrno(PyExc_OSError);
    }
    return profiler_raise(status, path);
}

PyObject *model_key_error(PyObject *key)
{
    PyObject *error = PyObject_CallOneArg(PyExc_KeyError, key);
    if (error != NULL) {
        PyErr_SetObject(PyExc_KeyError, error);
        Py_DECREF(error);
    }
    return NULL;
}

PyObject *model_text(mtprof_text text)
{
    return PyUnicode_DecodeUTF8(text.bytes, (Py_ssize_t)text.length, "replace");
}

/* Whether enough time has passed to look for signals again: taking the GIL costs time. */
static bool time_to_look(void)
{
    static _Thread_local int64_t last_ms;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    if (ms - last_ms < LOOK_EVERY_MS) {
        return false;
    }
    last_ms = ms;
    return true;
}

int model_progress(void *user, const char *what, uint64_t done, uint64_t total)
{
    if (user == NULL && !time_to_look()) {
        return 0;
    }
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *callable = user != NULL ? Py_XNewRef(*(PyObject **)user) : NULL;
    int failed = PyErr_CheckSignals() != 0;
    if (failed) {
        py_error_keep();
    }
    if (callable != NULL && failed) {
        Py_DECREF(callable);
    } else if (callable != NULL) {
        PyObject *result = PyObject_CallFunction(callable, "sKK", what, (unsigned long long)done,
                                                 (unsigned long long)total);
        failed = result == NULL;
        if (failed) {
            py_error_keep();
        }
        Py_XDECREF(result);
        Py_DECREF(callable);
    }
    PyGILState_Release(state);
    return failed;
}

/* The columns are there: the callable, which may refer to the model, is let go. The place stays as
 * long as the library may look at it. */
static void forget_progress(model_object *self)
{
    if (self->progress != NULL) {
        Py_CLEAR(*self->progress);
    }
}

/* ---- columns --------------------------------------------------------------------------------- */

static mtprof_status get_column(model_object *self, enum mtprof_column_id id, mtprof_column *column)
{
    mtprof_status status = MTPROF_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_model_get_column(self->model, id, column);
    Py_END_ALLOW_THREADS;
    return status;
}

int model_column(model_object *self, enum mtprof_column_id id, const void **data)
{
    *data = NULL;
    if (self->states[id] == MODEL_COLUMN_UNKNOWN) {
        mtprof_column column = {0};
        mtprof_status status = get_column(self, id, &column);
        if (status != MTPROF_OK) {
            model_raise(status, NULL);
            return -1;
        }
        self->columns[id] = column.data;
        self->states[id] = column.data != NULL ? MODEL_COLUMN_HERE : MODEL_COLUMN_ABSENT;
        self->types[id] = (uint8_t)column.type;
    }
    *data = self->columns[id];
    return 0;
}

int event_item(const event_object *event, enum mtprof_column_id id, int64_t otherwise,
               int64_t *item)
{
    const void *data = NULL;
    int status = model_column(event->model, id, &data);
    *item = otherwise;
    if (data != NULL) {
        switch (event->model->types[id]) {
        case MTPROF_TYPE_U8: *item = ((const uint8_t *)data)[event->index]; break;
        case MTPROF_TYPE_U16: *item = ((const uint16_t *)data)[event->index]; break;
        case MTPROF_TYPE_I32: *item = ((const int32_t *)data)[event->index]; break;
        case MTPROF_TYPE_U32: *item = ((const uint32_t *)data)[event->index]; break;
        default: *item = ((const int64_t *)data)[event->index]; break;
        }
    }
    return status;
}

/* Which names are not listed, and with them how many events are. */
static int find_hidden(model_object *self)
{
    uint8_t *hidden = PyMem_Calloc((size_t)self->n_names + 1, 1);
    bool any = false;
    if (hidden == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t i = 0; i < self->n_names; i++) {
        hidden[i] = !mtprof_averages_lists(mtprof_model_name(self->model, i));
        any |= hidden[i] != 0;
    }
    PyMem_Free(self->hidden);
    self->hidden = any ? hidden : NULL;
    if (!any) {
        PyMem_Free(hidden);
    }
    self->n_listed = 0;
    for (uint32_t i = 0; i < self->n; i++) {
        self->n_listed += model_lists(self, i);
    }
    return 0;
}

static int take_columns(model_object *self)
{
    static const enum mtprof_column_id ids[] = {
        MTPROF_COLUMN_START_NS, MTPROF_COLUMN_END_NS, MTPROF_COLUMN_SELF_NS, MTPROF_COLUMN_PARENT,
        MTPROF_COLUMN_NAME,     MTPROF_COLUMN_TRACK,  MTPROF_COLUMN_STEP,    MTPROF_COLUMN_KIND,
        MTPROF_COLUMN_DEVICE,   MTPROF_COLUMN_FLAGS,
    };
    const void *data[sizeof ids / sizeof ids[0]] = {NULL};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        mtprof_column column = {0};
        mtprof_status status = get_column(self, ids[i], &column);
        if (status != MTPROF_OK) {
            model_raise(status, NULL);
            return -1;
        }
        data[i] = column.data;
        self->n = (uint32_t)column.count;
    }
    self->start_ns = data[0];
    self->end_ns = data[1];
    self->self_ns = data[2];
    self->parent = data[3];
    self->name = data[4];
    self->track = data[5];
    self->step = data[6];
    self->kind = data[7];
    self->device = data[8];
    self->flags = data[9];
    return 0;
}

int model_prepare(model_object *self)
{
    if (self->prepared) {
        return 0;
    }
    if (take_columns(self) != 0) {
        return -1;
    }
    if (self->prepared) { /* another thread was here while this one had no GIL */
        return 0;
    }
    self->info.struct_size = sizeof self->info;
    mtprof_status status = mtprof_model_get_info(self->model, &self->info);
    if (status != MTPROF_OK) {
        model_raise(status, NULL);
        return -1;
    }
    PyMem_Free(self->names);
    PyMem_Free(self->events);
    self->n_names = self->info.names;
    self->names = PyMem_Calloc((size_t)self->n_names + 1, sizeof self->names[0]);
    self->events = PyMem_Calloc((size_t)self->n + 1, sizeof(event_object *));
    if (self->names == NULL || self->events == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (find_hidden(self) != 0) {
        return -1;
    }
    self->prepared = true;
    forget_progress(self);
    return 0;
}

bool model_lists(const model_object *self, uint32_t index)
{
    return self->kind[index] < MTPROF_EVENT_KIND_INSTANT &&
           (self->hidden == NULL || self->name[index] >= self->n_names ||
            self->hidden[self->name[index]] == 0);
}

bool model_is_device_work(const model_object *self, uint32_t index)
{
    uint8_t kind = self->kind[index];
    return kind >= MTPROF_EVENT_KIND_KERNEL && kind < MTPROF_EVENT_KIND_OVERHEAD &&
           kind != MTPROF_EVENT_KIND_CALL && self->device[index] != 0;
}

PyObject *model_name(model_object *self, uint32_t name)
{
    if (name >= self->n_names) {
        return model_text(mtprof_model_name(self->model, name));
    }
    if (self->names[name] == NULL) {
        self->names[name] = model_text(mtprof_model_name(self->model, name));
    }
    return Py_XNewRef(self->names[name]);
}

/* ---- device work by what launched it --------------------------------------------------------- */

static bool is_launched(const model_object *self, const uint32_t *link, uint32_t index)
{
    return self->kind[index] >= MTPROF_EVENT_KIND_KERNEL &&
           self->kind[index] <= MTPROF_EVENT_KIND_SET && link[index] < self->n;
}

static int make_kernels(model_object *self, const uint32_t *link)
{
    if (self->kernel_starts != NULL) { /* another thread was here while this one had no GIL */
        return 0;
    }
    uint32_t *starts = PyMem_Calloc((size_t)self->n + 2, sizeof starts[0]);
    uint32_t *kernels = PyMem_Calloc((size_t)self->n + 1, sizeof kernels[0]);
    if (starts == NULL || kernels == NULL) {
        PyMem_Free(starts);
        PyMem_Free(kernels);
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t i = 0; i < self->n; i++) {
        if (is_launched(self, link, i)) {
            starts[link[i] + 2]++;
        }
    }
    for (uint32_t i = 1; i <= self->n; i++) {
        starts[i + 1] += starts[i];
    }
    for (uint32_t i = 0; i < self->n; i++) { /* afterwards starts[i + 1] is where i's end */
        if (is_launched(self, link, i)) {
            kernels[starts[link[i] + 1]++] = i;
        }
    }
    self->kernel_starts = starts;
    self->kernels = kernels;
    return 0;
}

int model_kernels(model_object *self, uint32_t index, const uint32_t **kernels, uint32_t *n)
{
    const void *link = NULL;
    *kernels = NULL;
    *n = 0;
    if (self->info.device_type == NULL) {
        return 0;
    }
    if (self->kernel_starts == NULL && (model_column(self, MTPROF_COLUMN_LINK, &link) != 0 ||
                                        (link != NULL && make_kernels(self, link) != 0))) {
        return -1;
    }
    if (self->kernel_starts != NULL) {
        *kernels = self->kernels + self->kernel_starts[index];
        *n = self->kernel_starts[index + 1] - self->kernel_starts[index];
    }
    return 0;
}

/* ---- the object ------------------------------------------------------------------------------ */

static PyObject *default_device(const mtprof_model_info *info)
{
    if (info->device_type == NULL) {
        return Py_NewRef(Py_None);
    }
    PyObject *text = PyUnicode_FromString(info->device_type);
    PyObject *lower = text != NULL ? PyObject_CallMethod(text, "lower", NULL) : NULL;
    Py_XDECREF(text);
    return lower;
}

PyObject *model_object_new(mtprof_model *model)
{
    model_object *self = PyObject_New(model_object, profiler.model_type);
    if (self == NULL) {
        mtprof_model_free(model);
        return NULL;
    }
    memset((char *)self + offsetof(model_object, model), 0,
           sizeof *self - offsetof(model_object, model));
    self->model = model;
    self->info.struct_size = sizeof self->info;
    mtprof_status status = mtprof_model_get_info(model, &self->info);
    if (status != MTPROF_OK) {
        model_raise(status, NULL);
        Py_DECREF(self);
        return NULL;
    }
    self->use_device = default_device(&self->info);
    self->cache = PyDict_New();
    if (self->use_device == NULL || self->cache == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void model_dealloc(model_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    for (uint32_t i = 0; self->names != NULL && i < self->n_names; i++) {
        Py_XDECREF(self->names[i]);
    }
    PyMem_Free(self->names);
    PyMem_Free(self->events);
    model_slots_give(self);
    PyMem_Free(self->hidden);
    PyMem_Free(self->kernel_starts);
    PyMem_Free(self->kernels);
    Py_XDECREF(self->use_device);
    Py_XDECREF(self->cache);
    forget_progress(self);
    mtprof_model *model = self->model;
    PyObject **progress = self->progress;
    PyObject_Free(self);
    Py_DECREF(type);
    Py_BEGIN_ALLOW_THREADS;
    mtprof_model_free(model);
    Py_END_ALLOW_THREADS;
    PyMem_Free(progress);
}

/* A place for a callable that the library may call; NULL and no exception: None was given. */
static PyObject **progress_place(PyObject *callable)
{
    if (callable == Py_None) {
        return NULL;
    }
    PyObject **place = PyMem_Calloc(1, sizeof(PyObject *));
    if (place == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    *place = Py_NewRef(callable);
    return place;
}

static PyObject *open_file(const char *path, PyObject *progress, mtprof_model_options *options)
{
    mtprof_model *model = NULL;
    mtprof_status status = MTPROF_OK;
    PyObject **place = progress_place(progress);
    if (PyErr_Occurred()) {
        return NULL;
    }
    options->progress = model_progress;
    options->user = place;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_model_open(path, options, &model);
    Py_END_ALLOW_THREADS;
    PyObject *object = status == MTPROF_OK ? model_object_new(model) : model_raise(status, path);
    if (object != NULL) {
        ((model_object *)object)->progress = place;
    } else if (place != NULL) {
        Py_DECREF(*place);
        PyMem_Free(place);
    }
    return object;
}

static PyObject *model_open(PyObject *Py_UNUSED(type), PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {
        "path", "first_window", "last_window", "discarded", "keep_duplicates", "progress", NULL};
    PyObject *path = NULL;
    PyObject *progress = Py_None;
    mtprof_model_options options = {.struct_size = sizeof options};
    int discarded = 0;
    int keep = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&|IIppO:open", PY_NAMES(names),
                                     PyUnicode_FSConverter, &path, &options.first_window,
                                     &options.last_window, &discarded, &keep, &progress)) {
        return NULL;
    }
    options.discarded = discarded != 0;
    options.keep_duplicates = keep != 0;
    PyObject *object = open_file(PyBytes_AS_STRING(path), progress, &options);
    Py_DECREF(path);
    return object;
}

static int number_from(PyObject *object, uint32_t limit, const char *what, uint32_t *number)
{
    Py_ssize_t value = PyNumber_AsSsize_t(object, PyExc_IndexError);
    if (value == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (value < 0 || value >= (Py_ssize_t)limit) {
        PyErr_Format(PyExc_IndexError, "%s %zd of %u", what, value, limit);
        return -1;
    }
    *number = (uint32_t)value;
    return 0;
}

static PyObject *model_event_method(model_object *self, PyObject *index)
{
    uint32_t number = 0;
    if (model_prepare(self) != 0 || number_from(index, self->n, "no event", &number) != 0) {
        return NULL;
    }
    return model_event(self, number);
}

static PyObject *model_name_method(model_object *self, PyObject *index)
{
    uint32_t number = 0;
    if (model_prepare(self) != 0 || number_from(index, self->n_names, "no name", &number) != 0) {
        return NULL;
    }
    return model_name(self, number);
}

static PyObject *model_track_method(model_object *self, PyObject *index)
{
    uint32_t number = 0;
    mtprof_track track = {0};
    if (number_from(index, UINT32_MAX, "no track", &number) != 0) {
        return NULL;
    }
    if (!mtprof_model_track(self->model, number, &track)) {
        PyErr_Format(PyExc_IndexError, "no track %u", number);
        return NULL;
    }
    PyObject *name = model_text(track.name);
    if (name == NULL) {
        return NULL;
    }
    return Py_BuildValue("{s:I,s:I,s:L,s:L,s:K,s:N}", "device", track.device, "number",
                         track.number, "pid", (long long)track.pid, "tid", (long long)track.tid,
                         "thread_id", (unsigned long long)track.pthread_id, "name", name);
}

static PyObject *model_device_method(model_object *self, PyObject *index)
{
    uint32_t number = 0;
    mtprof_device device = {0};
    if (number_from(index, UINT32_MAX, "no device", &number) != 0) {
        return NULL;
    }
    if (!mtprof_model_device(self->model, number, &device)) {
        PyErr_Format(PyExc_IndexError, "no device %u", number);
        return NULL;
    }
    return Py_BuildValue("(Ni)", model_text(device.type), (int)device.index);
}

static Py_ssize_t model_length(model_object *self)
{
    return model_prepare(self) == 0 ? (Py_ssize_t)self->n_listed : -1;
}

/* Only what needs no columns: printing a model must not read a large trace. */
static PyObject *model_repr(model_object *self)
{
    mtprof_model_info info = {.struct_size = sizeof info};
    char text[160];
    mtprof_status status = mtprof_model_get_info(self->model, &info);
    if (status != MTPROF_OK) {
        return model_raise(status, NULL);
    }
    (void)snprintf(text, sizeof text, "<Model of process %llu: %.3f ms, %u track%s%s>",
                   (unsigned long long)info.pid, (double)(info.end_ns - info.start_ns) / 1e6,
                   info.tracks, info.tracks == 1 ? "" : "s",
                   info.closed != 0 ? "" : ", not closed");
    return PyUnicode_FromString(text);
}

static PyObject *model_get_device(model_object *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self->use_device);
}

static int model_set_device(model_object *self, PyObject *value, void *Py_UNUSED(closure))
{
    if (value == NULL || (value != Py_None && !PyUnicode_Check(value))) {
        PyErr_Format(PyExc_TypeError, "use_device must be a str or None, not %R",
                     value != NULL ? value : Py_None);
        return -1;
    }
    Py_XSETREF(self->use_device, Py_NewRef(value));
    return 0;
}

static PyObject *model_get_cache(model_object *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self->cache);
}

static PyMethodDef model_methods[] = {
    {"open", PY_CALL(model_open), METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "open(path, first_window=0, last_window=0, discarded=False, keep_duplicates=False, "
     "progress=None): a .mtt trace, or a Chrome JSON trace of any tool."},
    {"findings", PY_CALL(model_findings), METH_NOARGS, "What analysing found, as a dict."},
    {"health", PY_CALL(model_health), METH_NOARGS, "The recorder's counters, as a dict."},
    {"damage", PY_CALL(model_damage), METH_NOARGS,
     "What is damaged in the trace, as a dict; the events need not have been read."},
    {"metadata", PY_CALL(model_trace_metadata), METH_NOARGS, "Metadata of the trace, a dict."},
    {"marks", PY_CALL(model_marks), METH_NOARGS,
     "Instants, counters and flows: a list of (kind, name, time_ns, track, step, value, phase, "
     "parent, metadata)."},
    {"column", PY_CALL(model_column_object), METH_O,
     "column(name): a read-only buffer over a column; NotImplementedError: not recorded."},
    {"column_names", PY_CALL(model_column_names), METH_NOARGS, "All columns there can be."},
    {"arrow_tables", PY_CALL(model_arrow_tables), METH_NOARGS, "What arrow_stream() knows."},
    {"arrow_stream", PY_CALL(model_arrow_stream), METH_VARARGS,
     "arrow_stream(table, rows=None): a capsule of an Arrow stream; rows: numbers of events, which "
     "are copied."},
    {"event", PY_CALL(model_event_method), METH_O, "event(index): the FunctionEvent."},
    {"name", PY_CALL(model_name_method), METH_O, "name(number): a name as a str."},
    {"track", PY_CALL(model_track_method), METH_O, "track(number): a thread or queue."},
    {"device", PY_CALL(model_device_method), METH_O, "device(number): (type, index)."},
    {"fill", PY_CALL(model_fill), METH_O, "fill(list): appends all events."},
    {"covers", PY_CALL(model_covers), METH_O,
     "covers(list): whether it is all events in order, none of them changed."},
    {"averages", PY_CALL(model_averages), METH_VARARGS | METH_KEYWORDS,
     "averages(type=Row, shapes=False, overload=False, stack_n=0, functions=True): a list of rows."},
    {"table", PY_CALL(model_table), METH_VARARGS | METH_KEYWORDS,
     "table(sort_by=None, options=None): every event a row."},
    {"export", PY_CALL(model_export), METH_VARARGS | METH_KEYWORDS,
     "export(format, path, …): writes a file and returns a report."},
    {"report_text", PY_CALL(model_report_text), METH_VARARGS | METH_KEYWORDS,
     "report_text(baseline=None, baseline_name=None): the page of `mtprof report --html`, a str"},
    {"explain", PY_CALL(model_explain), METH_VARARGS | METH_KEYWORDS,
     "explain(step=None): why it is slow, as (text, Markdown, JSON, JSON without a limit)."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef model_getset[] = {
    {"info", (getter)model_info, NULL, "Who recorded it, when and what, as a dict.", NULL},
    {"use_device", (getter)model_get_device, (setter)model_set_device, "use_device of events.",
     NULL},
    {"cache", (getter)model_get_cache, NULL, "A dict for what is kept with the model.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static char model_doc[] = "A trace as columns of events.";

static PyType_Slot model_slots[] = {
    {Py_tp_dealloc, model_dealloc},
    {Py_tp_methods, model_methods},
    {Py_tp_getset, model_getset},
    {Py_tp_repr, model_repr},
    {Py_sq_length, model_length},
    {Py_tp_doc, model_doc},
    {0, NULL},
};

static PyType_Spec model_spec = {
    .name = "mtprof._mtprof.Model",
    .basicsize = sizeof(model_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = model_slots,
};

py_part model_part;
int model_part(PyObject *module)
{
    return py_add_type(module, &model_spec, NULL, "Model", &profiler.model_type);
}
