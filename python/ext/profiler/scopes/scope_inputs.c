/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs of scopes: Python values as the profiler keeps them. What has a shape counts as a tensor,
 * whatever library it comes from; no reference is kept.
 */
#include "profiler/scopes/scope_sites.h"

#include <stdlib.h>
#include <string.h>

enum {
    VALUES_MAX = 256, /* in all, lists included; what is beyond is left out */
    SIZES_MAX = 1024,
    DIMS_MAX = 64,
    DEPTH_MAX = 8,
    TEXT_MAX = 1024 /* longer texts are not shown */
};

typedef struct input_builder {
    uint32_t n_values, n_sizes;
    uint32_t n_cut; /* values that did not fit, or not whole */
    mtprof_value values[VALUES_MAX];
    int64_t sizes[SIZES_MAX];
} input_builder;

/* torch's name of an element type, from the last part of str(dtype). */
static const char *type_name(const char *dtype)
{
    static const char *const names[][2] = {
        {"float32", "float"},       {"float64", "double"},
        {"int64", "long int"},      {"int32", "int"},
        {"int16", "short int"},     {"int8", "signed char"},
        {"uint8", "unsigned char"}, {"bool", "bool"},
        {"float16", "c10::Half"},   {"bfloat16", "c10::BFloat16"},
    };
    const char *dot = strrchr(dtype, '.');
    const char *last = dot != NULL ? dot + 1 : dtype;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i][0], last) == 0) {
            return names[i][1];
        }
    }
    return last;
}

/* A sequence of integers at the builder's end; the number of them, or -1. */
static int put_sizes(input_builder *b, PyObject *sequence)
{
    PyObject *fast = PySequence_Fast(sequence, "not a sequence");
    Py_ssize_t n = fast != NULL ? PySequence_Fast_GET_SIZE(fast) : -1;
    if (n > DIMS_MAX || n > (Py_ssize_t)(SIZES_MAX - b->n_sizes)) {
        b->n_cut++;
        n = -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        /* __index__ may run code that changes a list: its length is read each time. */
        PyObject *item = i < PySequence_Fast_GET_SIZE(fast)
                             ? Py_NewRef(PySequence_Fast_GET_ITEM(fast, i))
                             : NULL;
        long long size = item != NULL ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (item == NULL || (size == -1 && PyErr_Occurred() != NULL)) {
            n = -1;
            break;
        }
        b->sizes[b->n_sizes + (uint32_t)i] = size;
    }
    PyErr_Clear();
    Py_XDECREF(fast);
    if (n > 0) {
        b->n_sizes += (uint32_t)n;
    }
    return (int)n;
}

static uint32_t dtype_id(PyObject *object)
{
    uint32_t id = 0;
    PyObject *dtype = PyObject_GetAttrString(object, "dtype");
    PyObject *text = dtype != NULL ? PyObject_Str(dtype) : NULL;
    const char *utf8 = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
    if (utf8 != NULL) {
        const char *name = type_name(utf8);
        id = mtprof_intern_here(name, strlen(name));
    }
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(dtype);
    return id;
}

/* false: it is no tensor, and nothing is pending. */
static bool put_tensor(input_builder *b, mtprof_value *value, PyObject *object)
{
    PyObject *shape = PyObject_GetAttrString(object, "shape");
    if (shape == NULL) {
        PyErr_Clear();
        return false;
    }
    uint32_t at = b->n_sizes;
    int n = put_sizes(b, shape);
    Py_DECREF(shape);
    if (n < 0) {
        return false;
    }
    value->kind = MTPROF_INPUT_TENSOR;
    value->n_dims = (uint8_t)n;
    value->of.sizes = b->sizes + at;
    value->type = dtype_id(object);
    if (mtprof_wants(MTPROF_WANT_STRIDES)) {
        at = b->n_sizes;
        PyObject *strides = PyObject_CallMethod(object, "stride", NULL);
        if (strides != NULL && put_sizes(b, strides) == n) {
            value->strides = b->sizes + at;
        }
        PyErr_Clear();
        Py_XDECREF(strides);
    }
    return true;
}

static void put_text(input_builder *b, mtprof_value *value, PyObject *text)
{
    bool fits = PyUnicode_GET_LENGTH(text) <= TEXT_MAX;
    uint32_t id = fits ? scope_intern_here(text) : 0; /* counts by itself what it has no room for */
    b->n_cut += !fits;
    if (id != 0) {
        value->kind = MTPROF_INPUT_STRING;
        value->of.text = id;
    }
}

static void put_value(input_builder *b, uint32_t at, PyObject *object, int depth);

/* Items of a list are stored together, after the values that are there already. */
static void put_list(input_builder *b, mtprof_value *value, PyObject *list, int depth)
{
    PyObject *fast = PySequence_Fast(list, "not a sequence");
    Py_ssize_t n = fast != NULL ? PySequence_Fast_GET_SIZE(fast) : 0;
    PyErr_Clear();
    if (n > (Py_ssize_t)(VALUES_MAX - b->n_values)) {
        n = (Py_ssize_t)(VALUES_MAX - b->n_values);
        b->n_cut++;
    }
    uint32_t first = b->n_values;
    b->n_values += (uint32_t)n;
    value->kind = MTPROF_INPUT_LIST;
    value->type = (uint32_t)n;
    value->of.items = b->values + first;
    for (Py_ssize_t i = 0; i < n && i < PySequence_Fast_GET_SIZE(fast); i++) {
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(fast, i));
        put_value(b, first + (uint32_t)i, item, depth + 1);
        Py_DECREF(item);
    }
    Py_XDECREF(fast);
}

static void put_value(input_builder *b, uint32_t at, PyObject *object, int depth)
{
    mtprof_value *value = &b->values[at];
    if (PyBool_Check(object)) {
        value->kind = MTPROF_INPUT_BOOL;
        value->of.integer = object == Py_True;
    } else if (PyLong_Check(object)) {
        int overflow = 0;
        long long integer = PyLong_AsLongLongAndOverflow(object, &overflow);
        value->kind = overflow == 0 ? MTPROF_INPUT_INT : MTPROF_INPUT_NONE;
        b->n_cut += overflow != 0;
        value->of.integer = integer;
    } else if (PyFloat_Check(object)) {
        value->kind = MTPROF_INPUT_REAL;
        value->of.real = PyFloat_AS_DOUBLE(object);
    } else if (PyUnicode_Check(object)) {
        put_text(b, value, object);
    } else if (PyList_Check(object) || PyTuple_Check(object)) {
        if (depth < DEPTH_MAX) {
            put_list(b, value, object, depth);
        } else {
            b->n_cut++;
        }
    } else if (object != Py_None) {
        (void)put_tensor(b, value, object);
    }
}

mtprof_token scope_begin_inputs(PyObject *name, PyObject *const *inputs, Py_ssize_t n_inputs)
{
    input_builder *b = mtprof_wants(MTPROF_WANT_INPUTS) ? calloc(1, sizeof *b) : NULL;
    if (b == NULL) {
        return scope_begin(name);
    }
    uint32_t n = n_inputs > VALUES_MAX ? VALUES_MAX : (uint32_t)n_inputs;
    b->n_values = n;
    b->n_cut = n_inputs > VALUES_MAX;
    for (uint32_t i = 0; i < n; i++) {
        put_value(b, i, inputs[i], 0);
    }
    PyErr_Clear();
    mtprof_op op = {.struct_size = sizeof op, .inputs = b->values, .n_inputs = n};
    mtprof_site *site = scope_site_again(name);
    mtprof_token token = 0;
    const char *text = NULL;
    size_t length = 0;
    PyObject *owner = NULL;
    if (site != NULL) {
        token = mtprof_op_begin(site, &op);
    } else if (scope_text(name, &text, &length, &owner)) {
        token = mtprof_op_begin_named(text, length, MTPROF_KIND_SCOPE, &op);
    }
    Py_XDECREF(owner);
    mtprof_count_cut(b->n_cut);
    free(b);
    return token;
}
