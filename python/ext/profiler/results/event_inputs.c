/* SPDX-License-Identifier: Apache-2.0
 *
 * What an op was given, as Python values: input lists (docs/format.md section 5) in the faces that
 * torch's events have.
 *
 *   N1  Words are read within their count whatever they say; a scalar whose value is missing, and
 *       lists nested too deep, are None.
 */
#include "profiler/results/model_object.h"

#include <string.h>

enum {
    LIST_MOST = 30, /* items of a list that are still shown */
    DEPTH_MOST = 16
};

typedef struct inputs_reader {
    const mtprof_model *model;
    const uint64_t *words, *scalars;
    uint32_t n_words, n_scalars;
    uint32_t word, scalar; /* where one is */
} inputs_reader;

/* How many items of a list are what. */
typedef struct list_facts {
    uint32_t n, tensors, scalars;
} list_facts;

static unsigned kind_of(uint64_t word)
{
    return (unsigned)(word & 0xFF);
}

static bool is_scalar(unsigned kind)
{
    return kind >= MTPROF_INPUT_INT && kind <= MTPROF_INPUT_STRING;
}

static PyObject *sizes_list(const inputs_reader *in, uint32_t from, uint32_t n)
{
    uint32_t left = from < in->n_words ? in->n_words - from : 0;
    n = n < left ? n : left;
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (uint32_t i = 0; list != NULL && i < n; i++) {
        PyObject *size = PyLong_FromLongLong((int64_t)in->words[from + i]);
        if (size == NULL) {
            Py_CLEAR(list);
            break;
        }
        PyList_SET_ITEM(list, (Py_ssize_t)i, size);
    }
    return list;
}

static PyObject *read_tensor(inputs_reader *in, uint64_t word, enum event_inputs_face face)
{
    uint32_t dims = (uint32_t)(word >> 8 & 0xFF);
    bool strides = (word >> 16 & 1) != 0;
    uint32_t at = in->word;
    uint32_t length = dims * (strides ? 2u : 1u);
    uint32_t left = in->n_words - in->word;
    in->word += length < left ? length : left;
    switch (face) {
    case EVENT_INPUT_SHAPES:
    case EVENT_INPUT_DIMS: return sizes_list(in, at, dims);
    case EVENT_INPUT_STRIDES: return strides ? sizes_list(in, at + dims, dims) : PyList_New(0);
    case EVENT_INPUT_TYPES:
        return model_text(mtprof_model_string(in->model, (uint32_t)(word >> 32)));
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

static PyObject *read_scalar(inputs_reader *in, unsigned kind, enum event_inputs_face face)
{
    bool known = in->scalar < in->n_scalars;
    uint64_t value = known ? in->scalars[in->scalar] : 0;
    in->scalar++;
    if (face == EVENT_INPUT_VALUES && known) {
        return scalar_value(in, kind, value);
    }
    if (face == EVENT_INPUT_TYPES && kind != MTPROF_INPUT_STRING) {
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

static PyObject *read_list(inputs_reader *in, uint32_t count, enum event_inputs_face face,
                           unsigned depth)
{
    list_facts facts = {0};
    PyObject *items = PyList_New(0);
    for (uint32_t i = 0; items != NULL && i < count && in->word < in->n_words; i++) {
        unsigned kind = kind_of(in->words[in->word]);
        facts.n++;
        facts.tensors += kind == MTPROF_INPUT_TENSOR;
        facts.scalars += is_scalar(kind);
        PyObject *item = read_value(in, face, depth + 1);
        if (item == NULL || PyList_Append(items, item) != 0) {
            Py_CLEAR(items);
        }
        Py_XDECREF(item);
    }
    return items != NULL ? list_face(items, &facts, face) : NULL;
}

/* Steps over a list that is nested too deep. */
static void skip_list(inputs_reader *in, uint64_t pending)
{
    while (pending > 0 && in->word < in->n_words) {
        uint64_t word = in->words[in->word++];
        unsigned kind = kind_of(word);
        pending--;
        if (kind == MTPROF_INPUT_LIST) {
            pending += word >> 32;
        } else if (kind == MTPROF_INPUT_KEYWORD) {
            pending++;
        } else if (kind == MTPROF_INPUT_TENSOR) {
            uint64_t sizes = (word >> 8 & 0xFF) * ((word >> 16 & 1) != 0 ? 2 : 1);
            uint64_t left = in->n_words - in->word;
            in->word += (uint32_t)(sizes < left ? sizes : left);
        } else if (is_scalar(kind)) {
            in->scalar++;
        }
    }
}

static PyObject *read_value(inputs_reader *in, enum event_inputs_face face, unsigned depth)
{
    if (in->word >= in->n_words) {
        return nothing(face);
    }
    uint64_t word = in->words[in->word++];
    unsigned kind = kind_of(word);
    if (kind == MTPROF_INPUT_TENSOR) {
        return read_tensor(in, word, face);
    }
    if (is_scalar(kind)) {
        return read_scalar(in, kind, face);
    }
    if (kind == MTPROF_INPUT_LIST && depth >= DEPTH_MOST) {
        skip_list(in, word >> 32);
    } else if (kind == MTPROF_INPUT_LIST) {
        return read_list(in, (uint32_t)(word >> 32), face, depth);
    } else if (kind == MTPROF_INPUT_KEYWORD && depth < DEPTH_MOST) {
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
    *in = (inputs_reader){.model = m->model};
    if (model_column(m, MTPROF_COLUMN_INPUTS, &inputs) != 0 ||
        model_column(m, MTPROF_COLUMN_SCALARS, &scalars) != 0 || inputs == NULL) {
        return false;
    }
    uint32_t number = ((const uint32_t *)inputs)[event->index];
    uint32_t values = scalars != NULL ? ((const uint32_t *)scalars)[event->index] : 0;
    if (values != 0) {
        (void)mtprof_model_scalars(m->model, values, &in->scalars, &in->n_scalars);
    }
    return number != 0 && mtprof_model_inputs(m->model, number, &in->words, &in->n_words);
}

PyObject *event_inputs(const event_object *event, enum event_inputs_face face)
{
    inputs_reader in;
    bool given = open_inputs(event, &in);
    if (PyErr_Occurred()) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    while (given && list != NULL && in.word < in.n_words) {
        bool is_keyword = kind_of(in.words[in.word]) == MTPROF_INPUT_KEYWORD;
        PyObject *value = read_value(&in, face, 0);
        if (value == NULL || (!is_keyword && PyList_Append(list, value) != 0)) {
            Py_CLEAR(list);
        }
        Py_XDECREF(value);
    }
    return list;
}

/* A keyword's value: a tensor is its sizes, all others as they are. */
static int put_keyword(inputs_reader *in, PyObject *dict, uint32_t key)
{
    bool tensor = in->word < in->n_words && kind_of(in->words[in->word]) == MTPROF_INPUT_TENSOR;
    PyObject *name = model_text(mtprof_model_string(in->model, key));
    PyObject *value =
        name != NULL ? read_value(in, tensor ? EVENT_INPUT_SHAPES : EVENT_INPUT_VALUES, 0) : NULL;
    int failed = value == NULL || PyDict_SetItem(dict, name, value) != 0;
    Py_XDECREF(name);
    Py_XDECREF(value);
    return failed;
}

static int put_keywords(inputs_reader *in, PyObject *dict)
{
    while (in->word < in->n_words) {
        uint64_t word = in->words[in->word];
        if (kind_of(word) != MTPROF_INPUT_KEYWORD) {
            skip_list(in, 1);
            continue;
        }
        in->word++;
        if (put_keyword(in, dict, (uint32_t)(word >> 32)) != 0) {
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
