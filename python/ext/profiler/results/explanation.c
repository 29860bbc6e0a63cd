/* SPDX-License-Identifier: Apache-2.0
 *
 * Explanations: what explain.h writes, as texts; mtprof/results.py makes an object of them.
 */
#include "profiler/results/model_object.h"

#include <mtprof/explain.h>

static mtprof_status write_explanation(const void *explain, const void *options,
                                       const mtprof_output *output)
{
    return mtprof_explain_write(explain, options, output);
}

static PyObject *all_texts(const mtprof_explain *explain)
{
    static const mtprof_explain_write_options forms[] = {
        {.struct_size = sizeof forms[0], .format = MTPROF_EXPLAIN_TEXT},
        {.struct_size = sizeof forms[0], .format = MTPROF_EXPLAIN_MARKDOWN},
        {.struct_size = sizeof forms[0], .format = MTPROF_EXPLAIN_JSON},
        {.struct_size = sizeof forms[0], .format = MTPROF_EXPLAIN_JSON, .max_bytes = UINT64_MAX},
        {.struct_size = sizeof forms[0], .format = MTPROF_EXPLAIN_HTML},
    };
    enum {
        FORMS = sizeof forms / sizeof forms[0]
    };
    PyObject *texts = PyTuple_New(FORMS);
    for (Py_ssize_t i = 0; texts != NULL && i < FORMS; i++) {
        PyObject *text = written_text(write_explanation, explain, &forms[i]);
        if (text == NULL) {
            Py_CLEAR(texts);
        } else {
            PyTuple_SET_ITEM(texts, i, text);
        }
    }
    return texts;
}

PyObject *model_explain(model_object *self, PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"step", NULL};
    PyObject *step = Py_None;
    mtprof_explain_options options = {.struct_size = sizeof options};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:explain", PY_NAMES(names), &step)) {
        return NULL;
    }
    if (step != Py_None) {
        int overflow = 0;
        long number = PyLong_AsLongAndOverflow(step, &overflow);
        if (number == -1 && PyErr_Occurred()) {
            return NULL;
        }
        if (overflow != 0 || number < 0 || number > INT32_MAX) {
            return PyErr_Format(PyExc_ValueError, "explain: step must be 0 to %d, not %R",
                                INT32_MAX, step);
        }
        options.step_given = 1;
        options.step = (int32_t)number;
    }
    mtprof_explain *explain = NULL;
    mtprof_status status = MTPROF_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_explain_new(self->model, &options, &explain);
    Py_END_ALLOW_THREADS;
    PyObject *texts = status == MTPROF_OK ? all_texts(explain) : model_raise(status, NULL);
    mtprof_explain_free(explain);
    return texts;
}
