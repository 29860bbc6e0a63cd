/* SPDX-License-Identifier: Apache-2.0
 *
 * What a key means: the views it takes and the tensors that pick. See index_parts.h.
 *
 *   TI1  `walk->tensor` is always one reference, to what is left after the entries so far; `dim` is
 *        the dimension of it that the next entry is about.
 *   TI2  A key of several entries leaves out slices over everything; so does an assignment.
 */
#include "tensors/data/data_parts.h"
#include "tensors/ops/override.h"
#include "tensors/tensor/index_parts.h"

/* The state while entries of a key are read one after the other. */
typedef struct entries {
    index_walk *walk;
    uint32_t specified; /* dimensions that all entries together are about */
    uint32_t n_dims;    /* of the tensor as it was given */
    uint32_t dim;       /* TI1 */
    uint32_t place;     /* of the entry in the key */
    bool single;        /* x[slice]: torch takes the view even if it is everything */
} entries;

void index_walk_clear(index_walk *walk)
{
    mt_tensor_release(walk->tensor);
    walk->tensor = NULL;
    for (uint32_t i = 0; i < walk->n_picks; i++) {
        mt_tensor_release(walk->picks[i]);
    }
    walk->n_picks = 0;
}

/* Whether a tensor of this type picks what is true of it, not by numbers. */
static bool is_mask(mt_dtype dtype)
{
    return dtype == MT_DTYPE_BOOL || dtype == MT_DTYPE_U8;
}

/* ---- views ----------------------------------------------------------------------------------- */

/* Takes the place of walk->tensor. */
static int went(index_walk *walk, int status, mt_tensor *view)
{
    if (zero_or_raise(status) != 0) {
        return -1;
    }
    mt_tensor_release(walk->tensor);
    walk->tensor = view;
    walk->viewed = true;
    return 0;
}

static int take_select(entries *e, int64_t index)
{
    mt_tensor *tensor = e->walk->tensor;
    if (e->dim >= mt_tensor_n_dims(tensor)) {
        PyErr_SetString(PyExc_IndexError,
                        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                        "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
        return -1;
    }
    int64_t size = mt_tensor_sizes(tensor)[e->dim];
    if (index < -size || index >= size) {
        /* torch names the place of the entry in the key. */
        PyErr_Format(PyExc_IndexError,
                     "index %lld is out of bounds for dimension %u with size %lld",
                     (long long)index, e->place, (long long)size);
        return -1;
    }
    mt_tensor *view = NULL;
    int status = mt_select(tensor, e->dim, index, &view);
    return went(e->walk, status, view);
}

static int take_slice(entries *e, PyObject *key)
{
    mt_tensor *tensor = e->walk->tensor;
    Py_ssize_t start = 0;
    Py_ssize_t stop = 0;
    Py_ssize_t step = 0;
    if (PySlice_Unpack(key, &start, &stop, &step) != 0) {
        return -1;
    }
    if (step <= 0) {
        PyErr_SetString(PyExc_ValueError, "step must be greater than zero");
        return -1;
    }
    if (e->dim >= mt_tensor_n_dims(tensor)) {
        if (!e->single && mt_tensor_n_dims(tensor) > 0 && start == 0 && step == 1) {
            return 0; /* after a second ellipsis, which torch accepts */
        }
        PyErr_SetString(PyExc_IndexError, "slice() cannot be applied to a 0-dim tensor.");
        return -1;
    }
    int64_t size = mt_tensor_sizes(tensor)[e->dim];
    bool all = step == 1 && (start == 0 || start <= -size) && stop >= size;
    if (all && !e->single) { /* TI2 */
        e->dim++;
        return 0;
    }
    int64_t from = start;
    int64_t to = stop;
    mt_tensor *view = NULL;
    int status = mt_slice(tensor, e->dim, &from, &to, step, &view);
    e->dim++;
    return went(e->walk, status, view);
}

static int take_unsqueeze(entries *e)
{
    mt_tensor *view = NULL;
    int status = mt_unsqueeze(e->walk->tensor, e->dim, &view);
    return went(e->walk, status, view);
}

/* ---- tensors that pick ----------------------------------------------------------------------- */

/* Keeps the reference it is given. */
static int add_pick(entries *e, mt_tensor *pick)
{
    index_walk *walk = e->walk;
    if (e->dim >= MT_MAX_DIMS) {
        mt_tensor_release(pick);
        PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %u", e->n_dims);
        return -1;
    }
    while (walk->n_picks < e->dim) {
        walk->picks[walk->n_picks++] = NULL;
    }
    walk->picks[walk->n_picks++] = pick;
    return 0;
}

/* The new dimension of one element, which is picked or not. */
static int pick_truth(entries *e, bool truth)
{
    int64_t count = truth ? 1 : 0;
    mt_tensor *pick = NULL;
    int status = mt_empty_with(&count, 1, MT_DTYPE_I64, MT_CPU, &pick); /* goes where it is used */
    if (status == MT_OK && truth) {
        status = mt_fill_scalar_(pick, mt_int(0));
    }
    if (status != MT_OK) {
        mt_tensor_release(pick);
        tensors_raise(status);
        return -1;
    }
    int failed = add_pick(e, pick);
    e->dim++;
    return failed;
}

/* True and False. */
static int take_truth(entries *e, bool truth)
{
    return take_unsqueeze(e) != 0 ? -1 : pick_truth(e, truth);
}

static int take_number_tensor(entries *e, mt_tensor *tensor)
{
    mt_scalar number = mt_int(0);
    bool mask = is_mask(mt_tensor_dtype(tensor));
    if (mask && take_unsqueeze(e) != 0) { /* in front of item, as torch does */
        return -1;
    }
    if (scalar_of_tensor(tensor, &number) != 0) {
        return -1;
    }
    return mask ? pick_truth(e, number.of.integer != 0) : take_select(e, number.of.integer);
}

static int take_tensor(entries *e, mt_tensor *tensor)
{
    mt_dtype dtype = mt_tensor_dtype(tensor);
    if (mt_tensor_n_dims(tensor) == 0 && mt_dtype_category(dtype) < MT_CATEGORY_REAL) {
        return take_number_tensor(e, tensor);
    }
    if (dtype == MT_DTYPE_U8 &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "indexing with dtype torch.uint8 is now deprecated, please use a dtype "
                     "torch.bool instead.",
                     1) != 0) {
        return -1;
    }
    int failed = add_pick(e, mt_tensor_retain(tensor));
    e->dim += is_mask(dtype) ? mt_tensor_n_dims(tensor) : 1;
    return failed;
}

/* Lists, ranges, arrays. */
static mt_tensor *sequence_tensor(PyObject *key)
{
    if (!data_is_array(key)) {
        return data_from_sequence(key, MT_DTYPE_NONE, MT_DEVICE_NONE, true);
    }
    mt_tensor *tensor = data_from_array(key);
    if (tensor == NULL) {
        return NULL;
    }
    bool mask = is_mask(mt_tensor_dtype(tensor));
    return data_to(tensor, mask ? MT_DTYPE_NONE : MT_DTYPE_I64, MT_DEVICE_NONE, false);
}

/* ---- entries --------------------------------------------------------------------------------- */

static bool is_integer(PyObject *key)
{
    return PyLong_Check(key) || (data_is_array_scalar(key) && PyIndex_Check(key));
}

static int take_integer(entries *e, PyObject *key)
{
    Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
    return index == -1 && PyErr_Occurred() ? -1 : take_select(e, index);
}

static int take_sequence(entries *e, PyObject *key)
{
    mt_tensor *tensor = sequence_tensor(key);
    if (tensor == NULL) {
        return -1;
    }
    int failed = take_tensor(e, tensor);
    mt_tensor_release(tensor);
    return failed;
}

static int take_entry(entries *e, PyObject *key)
{
    if (PyBool_Check(key)) {
        return take_truth(e, key == Py_True);
    }
    if (is_integer(key)) {
        return take_integer(e, key);
    }
    if (PySlice_Check(key)) {
        return take_slice(e, key);
    }
    if (key == Py_Ellipsis) {
        e->dim += e->n_dims - e->specified;
        return 0;
    }
    if (key == Py_None) {
        int failed = take_unsqueeze(e);
        e->dim++;
        return failed;
    }
    if (tensor_check(key)) {
        return take_tensor(e, tensor_of(key));
    }
    if (PySequence_Check(key)) {
        return take_sequence(e, key);
    }
    PyErr_Format(PyExc_IndexError,
                 "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables "
                 "are valid indices (got %.100s)",
                 Py_TYPE(key)->tp_name);
    return -1;
}

/* How many dimensions an entry is about. */
static uint32_t dims_of(PyObject *key)
{
    if (key == Py_None || key == Py_Ellipsis || PyBool_Check(key)) {
        return 0;
    }
    if (tensor_check(key)) {
        return is_mask(mt_tensor_dtype(tensor_of(key))) ? mt_tensor_n_dims(tensor_of(key)) : 1;
    }
    return 1;
}

static int take_tuple(entries *e, PyObject *keys)
{
    Py_ssize_t count = PyTuple_GET_SIZE(keys);
    uint64_t specified = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        specified += dims_of(PyTuple_GET_ITEM(keys, i));
    }
    if (specified > e->n_dims) {
        PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %u", e->n_dims);
        return -1;
    }
    e->specified = (uint32_t)specified;
    for (Py_ssize_t i = 0; i < count; i++) {
        e->place = (uint32_t)i;
        if (take_entry(e, PyTuple_GET_ITEM(keys, i)) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* torch still takes a list with sequences, slices or tensors in it for a tuple. */
static int stands_for_tuple(PyObject *key)
{
    enum {
        LONG_LIST = 32
    };
    Py_ssize_t count = PySequence_Length(key);
    if (count < 0) {
        PyErr_Clear(); /* an array without dimensions */
        return 0;
    }
    if (data_is_array(key) || count >= LONG_LIST) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(key, i);
        if (item == NULL) {
            return -1;
        }
        bool yes = tensor_check(item) || PySlice_Check(item) || item == Py_Ellipsis ||
                   item == Py_None || (PySequence_Check(item) && !data_is_array_scalar(item));
        Py_DECREF(item);
        if (yes) {
            return 1;
        }
    }
    return 0;
}

static int take_as_tuple(entries *e, PyObject *key)
{
    if (PyUnicode_Check(key) || PyBytes_Check(key)) {
        PyErr_Format(PyExc_TypeError, "new(): invalid data type '%.100s'", Py_TYPE(key)->tp_name);
        return -1;
    }
    if (PyErr_WarnEx(PyExc_UserWarning,
                     "Using a non-tuple sequence for multidimensional indexing is deprecated and "
                     "will be changed in pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In "
                     "pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], "
                     "which will result either in an error or a different result",
                     1) != 0) {
        return -1;
    }
    PyObject *keys = PySequence_Tuple(key);
    if (keys == NULL) {
        return -1;
    }
    int failed = take_tuple(e, keys);
    Py_DECREF(keys);
    return failed;
}

static int take_key(entries *e, PyObject *key)
{
    if (PyTuple_Check(key)) {
        e->single = false;
        return take_tuple(e, key);
    }
    if (!tensor_check(key) && !is_integer(key) && PySequence_Check(key)) {
        int tuple = stands_for_tuple(key);
        if (tuple != 0) {
            e->single = false;
            return tuple < 0 ? -1 : take_as_tuple(e, key);
        }
    }
    e->specified = dims_of(key);
    if (e->specified > e->n_dims && !is_integer(key) && !PySlice_Check(key)) {
        PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %u", e->n_dims);
        return -1;
    }
    return take_entry(e, key);
}

int index_walk_init(index_walk *walk, mt_tensor *tensor, PyObject *key, bool assigning)
{
    *walk = (index_walk){.tensor = mt_tensor_retain(tensor)};
    entries e = {.walk = walk, .n_dims = mt_tensor_n_dims(tensor), .single = !assigning};
    if (take_key(&e, key) != 0) {
        index_walk_clear(walk);
        return -1;
    }
    return 0;
}

/* ---- x[key] ---------------------------------------------------------------------------------- */

static PyObject *pick(index_walk *walk)
{
    static mt_op op = UINT32_MAX;
    if (op == UINT32_MAX && tensors_find_op("index", &op) != 0) {
        index_walk_clear(walk);
        return NULL;
    }
    mt_value args[2] = {
        {.kind = MT_KIND_TENSOR, .of.tensor = walk->tensor},
        {.kind = MT_KIND_TENSORS, .count = walk->n_picks, .of.tensors = walk->picks},
    };
    mt_value result = {.kind = MT_KIND_NONE};
    int failed = tensors_call(op, args, 2, &result, 1);
    index_walk_clear(walk);
    return failed != 0 ? NULL : tensor_wrap(result.of.tensor);
}

PyObject *tensor_getitem(PyObject *self, PyObject *key)
{
    PyObject *args[] = {self, key}, *answer = NULL;
    if (override_asked() && override_method("__getitem__", args, 2, &answer)) {
        return answer;
    }
    mt_tensor *tensor = tensor_of(self);
    if (PyLong_CheckExact(key) && mt_tensor_n_dims(tensor) > 0) {
        /* The common case: a row. */
        Py_ssize_t index = PyLong_AsSsize_t(key);
        int64_t size = mt_tensor_sizes(tensor)[0];
        if (index >= -size && index < size && !(index == -1 && PyErr_Occurred())) {
            mt_tensor *view = NULL;
            return zero_or_raise(mt_select(tensor, 0, index, &view)) != 0 ? NULL
                                                                          : tensor_wrap(view);
        }
        PyErr_Clear(); /* an int beyond Py_ssize_t: the long way says so */
    }
    index_walk walk;
    if (index_walk_init(&walk, tensor, key, false) != 0) {
        return NULL;
    }
    if (walk.n_picks > 0) {
        return pick(&walk);
    }
    if (!walk.viewed) { /* x[...], x[:, :]: another tensor of the same elements */
        walk.tensor = data_pass(walk.tensor, DATA_ALIAS);
    }
    return walk.tensor == NULL ? NULL : tensor_wrap(walk.tensor);
}

/* ---- for row in x ---------------------------------------------------------------------------- */

PyObject *tensor_iter(PyObject *self)
{
    mt_tensor *tensor = tensor_of(self);
    if (mt_tensor_n_dims(tensor) == 0) {
        PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
        return NULL;
    }
    mt_value rows = {.kind = MT_KIND_NONE};
    PyObject *tuple = NULL;
    if (!override_asked() || !override_method("unbind", &self, 1, &tuple)) {
        tuple = zero_or_raise(mt_unbind(tensor, 0, &rows)) != 0 ? NULL : tensors_result(&rows);
    }
    if (tuple == NULL) {
        return NULL;
    }
    PyObject *iterator = PyObject_GetIter(tuple);
    Py_DECREF(tuple);
    return iterator;
}
