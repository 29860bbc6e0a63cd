/* SPDX-License-Identifier: Apache-2.0
 *
 * Marks of a model for Python: a tuple each, in order of time.
 */
#include "profiler/results/model_object.h"

#include <string.h>

typedef struct mark_reader {
    PyObject *list;
    PyThreadState *thread; /* the GIL is given up between two marks */
} mark_reader;

static PyObject *value_of(const mtprof_mark *mark)
{
    double real = 0;
    switch (mark->kind) {
    case MTPROF_EVENT_KIND_COUNTER:
        if (mark->phase == 0) {
            return PyLong_FromLongLong((int64_t)mark->value);
        }
        memcpy(&real, &mark->value, sizeof real);
        return PyFloat_FromDouble(real);
    case MTPROF_EVENT_KIND_FLOW: return PyLong_FromUnsignedLongLong(mark->value);
    default: return Py_NewRef(Py_None);
    }
}

static PyObject *phase_of(const mtprof_mark *mark)
{
    static const char *const phases[] = {"start", "step", "end"};
    if (mark->kind != MTPROF_EVENT_KIND_FLOW || mark->phase >= sizeof phases / sizeof *phases) {
        return Py_NewRef(Py_None);
    }
    return PyUnicode_InternFromString(phases[mark->phase]);
}

/* (kind, name, time_ns, track, step, value, phase, parent, metadata) */
static int take_mark(void *user, const mtprof_mark *mark)
{
    mark_reader *reader = user;
    PyEval_RestoreThread(reader->thread);
    PyObject *metadata = mark->n_metadata > 0
                             ? model_metadata_items(mark->metadata, mark->n_metadata)
                             : Py_NewRef(Py_None);
    PyObject *tuple =
        metadata == NULL
            ? NULL
            : Py_BuildValue("(NNLIiNNKN)", event_kind_word(mark->kind), model_text(mark->name),
                            (long long)mark->time_ns, mark->track, (int)mark->step, value_of(mark),
                            phase_of(mark), (unsigned long long)mark->parent, metadata);
    bool failed = tuple == NULL || PyList_Append(reader->list, tuple) != 0;
    Py_XDECREF(tuple);
    reader->thread = PyEval_SaveThread();
    return failed ? 1 : 0;
}

PyObject *model_marks(model_object *self, PyObject *Py_UNUSED(ignored))
{
    mark_reader reader = {.list = PyList_New(0)};
    if (reader.list == NULL) {
        return NULL;
    }
    reader.thread = PyEval_SaveThread();
    mtprof_status status = mtprof_model_visit_marks(self->model, take_mark, &reader);
    PyEval_RestoreThread(reader.thread);
    if (status != MTPROF_OK) {
        Py_DECREF(reader.list);
        return PyErr_Occurred() ? NULL : model_raise(status, NULL);
    }
    return reader.list;
}
