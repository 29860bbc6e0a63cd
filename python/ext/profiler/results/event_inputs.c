/* SPDX-License-Identifier: Apache-2.0
 *
 * What an op was given, as Python values: input lists (docs/format.md section 5) in the forms that
 * torch's events have.
 *
 *   EI1  No word is read beyond the count, whatever the words say; a scalar whose value is missing,
 *        and lists nested too deep, are None.
 */
#include "profiler/results/model_object.h"

#include <mtprof/input_list.h>

#include <string.h>

enum {
    LIST_MOST = 30, /* items of a list that are still shown */
    DEPTH_MOST = 16
};

typedef struct inputs_reader {
    const mtprof_model *model;
    const uint64_t *scalars;
    uint32_t n_scalars;
    mtprof_input_walk walk;
} inputs_reader;

/* How many items of a list are tensors and scalars. */
typedef struct list_facts {
    uint32_t n, tensors, scalars;
} list_facts;

static bool is_scalar(unsigned kind)
{
    return kind >= MTPROF_INPUT_INT && kind <= MTPROF_INPUT_STRING;
}

static PyObject *sizes_list(const uint64_t *sizes, uint32_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (uint32_t i = 0; list != NULL && i < n; i++) {
        PyObject *size = PyLong_FromLongLong((int64_t)sizes[i]);
        if (size == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, size);
    }
    return list;
}

static PyObject *read_tensor(const inputs_reader *in, enum event_inputs_face face)
{
    const mtprof_input_walk *tensor = &in->walk;
    switch (face) {
    case EVENT_INPUT_SHAPES:
    case EVENT_INPUT_DIMS: return sizes_list(tensor->sizes, tensor->n_sizes);
    case EVENT_INPUT_STRIDES: return sizes_list(tensor->strides, tensor->n_strides);
    case EVENT_INPUT_TYPES: return model_text(mtprof_model_string(in->model, tensor->string));
    default: return Py_NewRef(Py_None);
    }
}

static PyObject *scalar_value(const inputs_reader *in, unsigned kind, uint64_t value)
{
    double real = 0;
    switch (kind) {
    case MTPROF_INPUT_INT: return PyLong_FromLongLong((int64_t)value);
    case MTPROF_INPUT_BOOL: return PyBool_FromLong(value != 0);
    case MTPROF_INPUT_STRING: return model_text(mtprof_model_string(in->model, (uint32_t)value));
    default: memcpy(&real, &value, sizeof real); return PyFloat_FromDouble(real);
    }
}

static PyObject *nothing(enum event_inputs_face face)
{
    switch (face) {
    case EVENT_INPUT_TYPES: return PyUnicode_FromString("");
    case EVENT_INPUT_VALUES: return Py_NewRef(Py_None);
    default: return PyList_New(0);
    }
}

static PyObject *read_scalar(const inputs_reader *in, enum event_inputs_face face)
{
    uint32_t n = in->walk.n_scalars;
    if (face == EVENT_INPUT_VALUES && n <= in->n_scalars) {
        return scalar_value(in, in->walk.kind, in->scalars[n - 1]);
    }
    if (face == EVENT_INPUT_TYPES && in->walk.kind != MTPROF_INPUT_STRING) {
        return PyUnicode_FromString("Scalar");
    }
    return nothing(face);
}

static PyObject *read_value(inputs_reader *in, enum event_inputs_face face, unsigned depth);

/* What a list is, in a face; takes `items`. */
static PyObject *list_face(PyObject *items, const list_facts *facts, enum event_inputs_face face)
{
    bool tensors = facts->n != 0 && facts->tensors == facts->n;
    bool scalars = facts->scalars == facts->n;
    bool keep = facts->n <= LIST_MOST &&
                ((face == EVENT_INPUT_VALUES && scalars) ||
                 ((face == EVENT_INPUT_DIMS || face == EVENT_INPUT_STRIDES) && tensors));
    if (keep) {
        return items;
    }
    Py_DECREF(items);
    if (face == EVENT_INPUT_TYPES && (tensors || scalars)) {
        return PyUnicode_FromString(tensors ? "TensorList" : "ScalarList");
    }
    return nothing(face);
}

static PyObject *read_list(inputs_reader *in, enum event_inputs_face face, unsigned depth)
{
    list_facts facts = {0};
    uint32_t count = in->walk.count;
    PyObject *items = PyList_New(0);
    while (items != NULL && facts.n < count && mtprof_input_next(&in->walk)) {
        facts.n++;
        facts.tensors += in->walk.kind == MTPROF_INPUT_TENSOR;
        facts.scalars += is_scalar(in->walk.kind);
        PyObject *item = read_value(in, face, depth + 1);
        if (item == NULL || PyList_Append(items, item) != 0) {
            Py_CLEAR(items);
        }
        Py_XDECREF(item);
    }
    return items != NULL ? list_face(items, &facts, face) : NULL;
}

/* The value that the walk has come to. */
static PyObject *read_value(inputs_reader *in, enum event_inputs_face face, unsigned depth)
{
    unsigned kind = in->walk.kind;
    if (kind == MTPROF_INPUT_TENSOR) {
        return read_tensor(in, face);
    }
    if (is_scalar(kind)) {
        return read_scalar(in, face);
    }
    if (depth >= DEPTH_MOST) {
        mtprof_input_skip(&in->walk);
    } else if (kind == MTPROF_INPUT_LIST) {
        return read_list(in, face, depth);
    } else if (kind == MTPROF_INPUT_KEYWORD && mtprof_input_next(&in->walk)) {
        return read_value(in, face, depth + 1); /* in a list: only its value counts */
    }
    return nothing(face);
}

/* false: it was given nothing, or an exception is set. */
static bool open_inputs(const event_object *event, inputs_reader *in)
{
    model_object *m = event->model;
    const void *inputs = NULL;
    const void *scalars = NULL;
    *in = (inputs_reader){.model = m->model, .walk.struct_size = sizeof in->walk};
    if (model_column(m, MTPROF_COLUMN_INPUTS, &inputs) != 0 ||
        model_column(m, MTPROF_COLUMN_SCALARS, &scalars) != 0 || inputs == NULL) {
        return false;
    }
    uint32_t number = ((const uint32_t *)inputs)[event->index];
    uint32_t values = scalars != NULL ? ((const uint32_t *)scalars)[event->index] : 0;
    if (values != 0) {
        (void)mtprof_model_scalars(m->model, values, &in->scalars, &in->n_scalars);
    }
    return number != 0 && mtprof_model_inputs(m->model, number, &in->walk.words, &in->walk.n_words);
}

PyObject *event_inputs(const event_object *event, enum event_inputs_face face)
{
    inputs_reader in;
    bool given = open_inputs(event, &in);
    if (PyErr_Occurred()) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    while (given && list != NULL && mtprof_input_next(&in.walk)) {
        bool is_keyword = in.walk.kind == MTPROF_INPUT_KEYWORD;
        PyObject *value = read_value(&in, face, 0);
        if (value == NULL || (!is_keyword && PyList_Append(list, value) != 0)) {
            Py_CLEAR(list);
        }
        Py_XDECREF(value);
    }
    return list;
}

/* The keyword that the walk has come to. A tensor is its sizes, all other values as they are. */
static int put_keyword(inputs_reader *in, PyObject *dict)
{
    PyObject *name = model_text(mtprof_model_string(in->model, in->walk.string));
    PyObject *value = NULL;
    if (name != NULL && !mtprof_input_next(&in->walk)) {
        value = nothing(EVENT_INPUT_VALUES);
    } else if (name != NULL) {
        bool tensor = in->walk.kind == MTPROF_INPUT_TENSOR;
        value = read_value(in, tensor ? EVENT_INPUT_SHAPES : EVENT_INPUT_VALUES, 0);
    }
    int failed = value == NULL || PyDict_SetItem(dict, name, value) != 0;
    Py_XDECREF(name);
    Py_XDECREF(value);
    return failed;
}

static int put_keywords(inputs_reader *in, PyObject *dict)
{
    while (mtprof_input_next(&in->walk)) {
        if (in->walk.kind != MTPROF_INPUT_KEYWORD) {
            mtprof_input_skip(&in->walk);
        } else if (put_keyword(in, dict) != 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *event_keyword_inputs(const event_object *event)
{
    inputs_reader in;
    bool given = open_inputs(event, &in);
    if (PyErr_Occurred()) {
        return NULL;
    }
    PyObject *dict = PyDict_New();
    if (dict != NULL && given && put_keywords(&in, dict) != 0) {
        Py_CLEAR(dict);
    }
    return dict;
}
