/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow streams as capsules, for __arrow_c_stream__(). Whoever consumes the capsule takes the
 * stream out of it; one that nobody consumed releases it when it dies.
 */
#include "profiler/results/model_object.h"

#include <mtprof/arrow.h>

#include <string.h>

static const char capsule_name[] = "arrow_array_stream";

static void capsule_dealloc(PyObject *capsule)
{
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, capsule_name);
    if (stream != NULL && stream->release != NULL) {
        stream->release(stream);
    }
    PyMem_Free(stream);
}

PyObject *arrow_capsule_new(struct ArrowArrayStream **stream)
{
    *stream = PyMem_Calloc(1, sizeof **stream);
    if (*stream == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(*stream, capsule_name, capsule_dealloc);
    if (capsule == NULL) {
        PyMem_Free(*stream);
    }
    return capsule;
}

/* The last array is released, on any thread of an engine. */
static void release_model(void *model)
{
    if (!Py_IsInitialized()) {
        return; /* the interpreter is gone, and with it all objects */
    }
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)model);
    PyGILState_Release(state);
}

typedef mtprof_status arrow_maker(mtprof_model *model, const mtprof_arrow_options *options,
                                  struct ArrowArrayStream *out);

/* The rows that key_averages() has without arguments. */
static mtprof_status make_averages(mtprof_model *model, const mtprof_arrow_options *options,
                                   struct ArrowArrayStream *out)
{
    mtprof_averages_options how = {.struct_size = sizeof how,
                                   .functions = MTPROF_FUNCTIONS_WITHOUT_OPS};
    mtprof_averages *averages = NULL;
    mtprof_status status = mtprof_averages_new(model, &how, &averages);
    if (status == MTPROF_OK) {
        status = mtprof_arrow_averages(averages, options, out);
    }
    mtprof_averages_free(averages);
    return status;
}

static const struct {
    const char *name;
    arrow_maker *make;
} tables[] = {
    {"events", mtprof_arrow_events},
    {"averages", make_averages},
    {"steps", mtprof_arrow_steps},
    {"tracks", mtprof_arrow_tracks},
    {"frames", mtprof_arrow_frames},
    {"marks", mtprof_arrow_marks},
    {"allocations", mtprof_arrow_allocations},
    {"dataset", mtprof_arrow_dataset},
    {"parts", mtprof_arrow_parts},
};

enum {
    N_TABLES = sizeof tables / sizeof tables[0]
};

PyObject *model_arrow_tables(model_object *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    PyObject *list = PyList_New(N_TABLES);
    for (Py_ssize_t i = 0; list != NULL && i < N_TABLES; i++) {
        PyObject *name = PyUnicode_FromString(tables[i].name);
        if (name == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, i, name);
    }
    return list;
}

static arrow_maker *maker_of(const char *what)
{
    for (size_t i = 0; i < N_TABLES; i++) {
        if (strcmp(tables[i].name, what) == 0) {
            return tables[i].make;
        }
    }
    PyErr_Format(PyExc_ValueError, "arrow_stream: there is no table '%s'", what);
    return NULL;
}

/* A list of events' numbers; NULL and an exception: it is none. */
static uint32_t *numbers_from(PyObject *list, uint32_t *n)
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    if ((uint64_t)count > UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "an Arrow stream of %zd picked events", count);
        return NULL;
    }
    uint32_t *numbers = PyMem_Calloc((size_t)count + 1, sizeof numbers[0]);
    if (numbers == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        unsigned long number = PyLong_AsUnsignedLong(PyList_GET_ITEM(list, i));
        if (number == (unsigned long)-1 && PyErr_Occurred()) {
            PyMem_Free(numbers);
            return NULL;
        }
        numbers[i] = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
    }
    *n = (uint32_t)count;
    return numbers;
}

PyObject *model_arrow_stream(model_object *self, PyObject *args)
{
    const char *what = NULL;
    PyObject *list = Py_None;
    mtprof_arrow_options options = {
        .struct_size = sizeof options, .release = release_model, .user = self};
    if (!PyArg_ParseTuple(args, "s|O:arrow_stream", &what, &list)) {
        return NULL;
    }
    if (list != Py_None && !PyList_Check(list)) {
        return PyErr_Format(PyExc_TypeError, "arrow_stream: rows must be a list or None, not %R",
                            list);
    }
    arrow_maker *make = maker_of(what);
    uint32_t *rows = NULL;
    if (make == NULL || (list != Py_None && (rows = numbers_from(list, &options.n_rows)) == NULL)) {
        return NULL;
    }
    options.rows = rows;
    struct ArrowArrayStream *stream = NULL;
    PyObject *capsule = arrow_capsule_new(&stream);
    mtprof_status status = MTPROF_OK;
    if (capsule != NULL) {
        Py_INCREF(self);
        Py_BEGIN_ALLOW_THREADS;
        status = make(self->model, &options, stream);
        Py_END_ALLOW_THREADS;
        if (status != MTPROF_OK) {
            Py_DECREF(self);
            Py_CLEAR(capsule);
            model_raise(status, NULL);
        }
    }
    PyMem_Free(rows);
    return capsule;
}

PyObject *averages_arrow_stream(const mtprof_averages *averages)
{
    struct ArrowArrayStream *stream = NULL;
    PyObject *capsule = arrow_capsule_new(&stream);
    mtprof_status status = MTPROF_OK;
    if (capsule != NULL) {
        status = mtprof_arrow_averages(averages, NULL, stream);
        if (status != MTPROF_OK) {
            Py_CLEAR(capsule);
            model_raise(status, NULL);
        }
    }
    return capsule;
}
