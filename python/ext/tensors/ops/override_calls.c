/* SPDX-License-Identifier: Apache-2.0
 *
 * Who overrides a call, in which order they are asked, and what switches that off (override.h).
 */
#include "tensors/device/device_parts.h"
#include "tensors/ops/override.h"

enum {
    MAX_ASKED = 32 /* types; further ones are an error */
};

static PyObject *word_handler; /* "__torch_function__" */
static PyObject *no_handler;   /* the function that stands for "this class does not override" */

/* Of this thread. */
static _Thread_local unsigned without_subclasses; /* DisableTorchFunctionSubclass, nested */
static _Thread_local unsigned without_all;        /* DisableTorchFunction, nested */
static _Thread_local PyObject *modes;             /* a list, the innermost last; NULL: none */

typedef struct asked_list {
    PyObject *objects[MAX_ASKED]; /* one a type, borrowed from the call; subclasses first */
    Py_ssize_t count;
    bool overridden; /* one of them is no plain tensor */
    bool failed;
} asked_list;

bool override_is_stranger(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (type == tensors.tensor_type || object == Py_None || type == &PyBool_Type ||
        type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type ||
        type == tensors.size_type || type == tensors.dtype_type || type == tensors.device_type) {
        return false;
    }
    return !PyList_CheckExact(object) && !PyTuple_CheckExact(object) && !PyFunction_Check(object) &&
           !PyDict_CheckExact(object);
}

/* 1: objects of the type override; 0: they do not; -1: an exception. */
static int type_overrides(PyTypeObject *type)
{
    PyObject *handler = PyObject_GetAttr((PyObject *)type, word_handler);
    if (handler == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
            return -1;
        }
        PyErr_Clear();
        return 0;
    }
    bool is_none = handler == no_handler || handler == Py_None;
    Py_DECREF(handler);
    return !is_none;
}

static void ask(asked_list *list, PyObject *object, bool with_tensors)
{
    bool plain = Py_IS_TYPE(object, tensors.tensor_type);
    if (plain ? !with_tensors : !override_is_stranger(object)) {
        return;
    }
    for (Py_ssize_t i = 0; i < list->count; i++) {
        if (Py_TYPE(list->objects[i]) == Py_TYPE(object)) {
            return;
        }
    }
    int overrides = plain ? 1 : type_overrides(Py_TYPE(object));
    if (overrides <= 0 || list->count == MAX_ASKED) {
        if (overrides > 0) {
            PyErr_Format(PyExc_RuntimeError,
                         "more than %d classes with __torch_function__ in one call", MAX_ASKED);
        }
        list->failed = list->failed || overrides != 0;
        return;
    }
    Py_ssize_t place = 0;
    while (place < list->count &&
           !PyType_IsSubtype(Py_TYPE(object), Py_TYPE(list->objects[place]))) {
        place++;
    }
    for (Py_ssize_t i = list->count; i > place; i--) {
        list->objects[i] = list->objects[i - 1];
    }
    list->objects[place] = object;
    list->count++;
    list->overridden = list->overridden || !plain;
}

/* An argument, and what is in a list or tuple of them. */
static void ask_all(asked_list *list, PyObject *object, bool with_tensors)
{
    if (!PyList_Check(object) && !PyTuple_Check(object)) {
        ask(list, object, with_tensors);
        return;
    }
    ask(list, object, with_tensors); /* a class that is a tuple may override, too */
    Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
    for (Py_ssize_t i = 0; i < count && !list->failed; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(object, i);
        if (!PyList_Check(item) && !PyTuple_Check(item)) {
            ask(list, item, with_tensors);
        }
    }
}

/* ---- calling handlers ---- */

typedef struct override_pass {
    PyObject *function;
    PyObject *types;
    PyObject *args;
    PyObject *kwargs;
} override_pass;

static PyObject *call_handler(PyObject *object, const override_pass *pass)
{
    PyObject *handler = PyObject_GetAttr(object, word_handler);
    if (handler == NULL) {
        return NULL;
    }
    PyObject *args[] = {pass->function, pass->types, pass->args, pass->kwargs};
    PyObject *result = PyObject_Vectorcall(handler, args, 4, NULL);
    Py_DECREF(handler);
    return result;
}

/* The innermost mode, which is not there while its handler runs (OV3). */
static PyObject *call_mode(const override_pass *pass)
{
    Py_ssize_t last = PyList_GET_SIZE(modes) - 1;
    PyObject *mode = Py_NewRef(PyList_GET_ITEM(modes, last));
    PyObject *result = NULL;
    if (PyList_SetSlice(modes, last, last + 1, NULL) == 0) {
        result = call_handler(mode, pass);
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        if (PyList_Append(modes, mode) != 0) {
            Py_CLEAR(result);
        }
        if (type != NULL) {
            PyErr_Restore(type, value, trace);
        }
    }
    Py_DECREF(mode);
    return result;
}

static PyObject *types_of(const asked_list *list)
{
    PyObject *types = PyTuple_New(list->count);
    for (Py_ssize_t i = 0; types != NULL && i < list->count; i++) {
        PyTuple_SET_ITEM(types, i, Py_NewRef(Py_TYPE(list->objects[i])));
    }
    return types;
}

static int pass_init(override_pass *pass, const override_given *given, const asked_list *list)
{
    *pass = (override_pass){.function = given->function, .types = types_of(list)};
    pass->args = PyTuple_New(given->n_args);
    pass->kwargs = PyDict_New();
    if (pass->types == NULL || pass->args == NULL || pass->kwargs == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < given->n_args; i++) {
        PyTuple_SET_ITEM(pass->args, i, Py_NewRef(given->args[i]));
    }
    Py_ssize_t named = given->kwnames == NULL ? 0 : PyTuple_GET_SIZE(given->kwnames);
    for (Py_ssize_t i = 0; i < named; i++) {
        if (PyDict_SetItem(pass->kwargs, PyTuple_GET_ITEM(given->kwnames, i),
                           given->args[given->n_args + i]) != 0) {
            return -1;
        }
    }
    return 0;
}

static void pass_fini(override_pass *pass)
{
    Py_CLEAR(pass->types);
    Py_CLEAR(pass->args);
    Py_CLEAR(pass->kwargs);
}

/* Nobody has answered: torch's two messages. NULL. */
static PyObject *refuse(const override_given *given, const asked_list *list, PyObject *types)
{
    PyObject *module = PyImport_ImportModule("mindtorch_v2.overrides");
    PyObject *name =
        module == NULL ? NULL : PyObject_CallMethod(module, "_name_of", "O", given->function);
    Py_XDECREF(module);
    if (name == NULL) {
        return NULL;
    }
    if (given->with_tensors) {
        PyObject *classes = PySequence_List(types);
        if (classes != NULL) {
            PyErr_Format(PyExc_TypeError,
                         "no implementation found for '%U' on types that implement "
                         "__torch_function__: %R",
                         name, classes);
        }
        Py_XDECREF(classes);
    } else {
        PyObject *lines = PyUnicode_FromString("");
        for (Py_ssize_t i = 0; lines != NULL && i < list->count; i++) {
            Py_SETREF(lines, PyUnicode_FromFormat("%U\n  - tensor subclass %R", lines,
                                                  (PyObject *)Py_TYPE(list->objects[i])));
        }
        if (lines != NULL) {
            PyErr_Format(PyExc_TypeError,
                         "Multiple dispatch failed for '%U'; all __torch_function__ handlers "
                         "returned NotImplemented:\n%U",
                         name, lines);
        }
        Py_XDECREF(lines);
    }
    Py_DECREF(name);
    return NULL;
}

/* What the modes and then the classes say; Py_NotImplemented where all of them refuse. */
static PyObject *ask_in_order(const asked_list *list, const override_pass *pass)
{
    PyObject *result = NULL;
    if (modes != NULL && without_all == 0 && PyList_GET_SIZE(modes) > 0) {
        result = call_mode(pass);
        if (result != Py_NotImplemented) {
            return result;
        }
        Py_CLEAR(result);
    }
    for (Py_ssize_t i = 0; i < list->count; i++) {
        result = call_handler(list->objects[i], pass);
        if (result != Py_NotImplemented) {
            return result;
        }
        Py_CLEAR(result);
    }
    return Py_NewRef(Py_NotImplemented);
}

static bool call_all(const override_given *given, bool is_operator, PyObject **result)
{
    bool has_mode = modes != NULL && without_all == 0 && PyList_GET_SIZE(modes) > 0;
    asked_list list = {.count = 0};
    if (without_subclasses == 0 && without_all == 0) {
        Py_ssize_t named = given->kwnames == NULL ? 0 : PyTuple_GET_SIZE(given->kwnames);
        for (Py_ssize_t i = 0; i < given->n_args + named && !list.failed; i++) {
            ask_all(&list, given->args[i], given->with_tensors);
        }
    }
    *result = NULL;
    if (list.failed) {
        return true;
    }
    if (!list.overridden && !has_mode) {
        return false;
    }
    override_pass pass;
    PyObject *answer = NULL;
    if (Py_EnterRecursiveCall(" in __torch_function__") == 0) {
        answer = pass_init(&pass, given, &list) != 0 ? NULL : ask_in_order(&list, &pass);
        if (answer == Py_NotImplemented && !is_operator) {
            Py_DECREF(answer);
            answer = refuse(given, &list, pass.types);
        }
        pass_fini(&pass);
        Py_LeaveRecursiveCall();
    }
    *result = answer;
    return true;
}

bool override_call(const override_given *given, PyObject **result)
{
    return call_all(given, false, result);
}

static bool call_attribute(const char *name, PyObject *const *args, Py_ssize_t n_args,
                           bool is_operator, PyObject **result)
{
    PyObject *function = PyObject_GetAttrString((PyObject *)tensors.tensor_type, name);
    if (function == NULL) {
        *result = NULL;
        return true;
    }
    override_given given = {.function = function, .args = args, .n_args = n_args};
    bool answered = call_all(&given, is_operator, result);
    Py_DECREF(function);
    return answered;
}

bool override_method(const char *name, PyObject *const *args, Py_ssize_t n_args, PyObject **result)
{
    return call_attribute(name, args, n_args, false, result);
}

bool override_operator(const char *name, PyObject *a, PyObject *b, PyObject **result)
{
    PyObject *args[] = {a, b};
    return call_attribute(name, args, 2, true, result);
}

/* ---- when calls are looked at ---- */

int override_begin(void)
{
    if (tensors.overriding) {
        return 0;
    }
    PyObject *module = PyImport_ImportModule("mindtorch_v2._overriding");
    PyObject *done = module == NULL ? NULL : PyObject_CallMethod(module, "begin", NULL);
    Py_XDECREF(module);
    if (done == NULL) {
        return -1;
    }
    Py_DECREF(done);
    tensors.overriding = true;
    return 0;
}

int override_note_type(PyTypeObject *type)
{
    if (tensors.overriding || type == tensors.tensor_type) {
        return 0;
    }
    int overrides = type_overrides(type);
    return overrides <= 0 ? overrides : override_begin();
}

/* ---- what Python sees ---- */

static PyObject *has_override(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (modes != NULL && without_all == 0 && PyList_GET_SIZE(modes) > 0) {
        Py_RETURN_TRUE;
    }
    asked_list list = {.count = 0};
    for (Py_ssize_t i = 0; i < count && without_subclasses == 0 && without_all == 0; i++) {
        ask(&list, args[i], false);
    }
    return list.failed ? NULL : PyBool_FromLong(list.overridden);
}

/* Calls the handlers for a function of Python: handle(function, relevant, args, kwargs). */
static PyObject *handle_override(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *function = NULL, *relevant = NULL;
    override_pass pass = {.function = NULL};
    if (!PyArg_ParseTuple(args, "OOO!O!:_handle_torch_function", &function, &relevant,
                          &PyTuple_Type, &pass.args, &PyDict_Type, &pass.kwargs)) {
        return NULL;
    }
    PyObject *objects = PySequence_Fast(relevant, "relevant_args must be a sequence");
    if (objects == NULL) {
        return NULL;
    }
    asked_list list = {.count = 0};
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(objects) && !list.failed; i++) {
        if (without_subclasses == 0 && without_all == 0) {
            ask(&list, PySequence_Fast_GET_ITEM(objects, i), true);
        }
    }
    PyObject *answer = NULL;
    pass.function = function;
    pass.types = list.failed ? NULL : types_of(&list);
    if (pass.types != NULL) {
        answer = ask_in_order(&list, &pass);
        if (answer == Py_NotImplemented) {
            Py_DECREF(answer);
            const override_given given = {.function = function, .with_tensors = true};
            answer = refuse(&given, &list, pass.types);
        }
        Py_DECREF(pass.types);
    }
    Py_DECREF(objects);
    return answer;
}

/* What __torch_function__ is of classes that want none: the function itself. */
static PyObject *call_plainly(PyObject *Py_UNUSED(module), PyObject *given, PyObject *named)
{
    static const char *const names[] = {"func", "types", "args", "kwargs", NULL};
    PyObject *function = NULL, *types = NULL, *args = NULL, *kwargs = NULL;
    if (!PyArg_ParseTupleAndKeywords(given, named, "OO|O!O:_disabled_torch_function_impl",
                                     PY_NAMES(names), &function, &types, &PyTuple_Type, &args,
                                     &kwargs)) {
        return NULL;
    }
    if (kwargs != NULL && kwargs != Py_None && !PyDict_Check(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "_disabled_torch_function_impl(): kwargs must be a dict");
        return NULL;
    }
    PyObject *all = args == NULL ? PyTuple_New(0) : Py_NewRef(args);
    without_subclasses++;
    PyObject *result =
        all == NULL ? NULL : PyObject_Call(function, all, kwargs == Py_None ? NULL : kwargs);
    without_subclasses--;
    Py_XDECREF(all);
    return result;
}

static PyObject *push_mode(PyObject *Py_UNUSED(module), PyObject *mode)
{
    if (override_begin() != 0) {
        return NULL;
    }
    if (modes == NULL && (modes = PyList_New(0)) == NULL) {
        return NULL;
    }
    return PyList_Append(modes, mode) != 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *pop_mode(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    Py_ssize_t count = modes == NULL ? 0 : PyList_GET_SIZE(modes);
    if (count == 0) {
        PyErr_SetString(PyExc_RuntimeError, "there is no TorchFunctionMode to leave");
        return NULL;
    }
    PyObject *mode = Py_NewRef(PyList_GET_ITEM(modes, count - 1));
    if (PyList_SetSlice(modes, count - 1, count, NULL) != 0) {
        Py_CLEAR(mode);
    } else if (count == 1) {
        Py_CLEAR(modes);
    }
    return mode;
}

static PyObject *count_modes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromSsize_t(modes == NULL ? 0 : PyList_GET_SIZE(modes));
}

/* disable(all, by): by +1 or -1. */
static PyObject *disable(PyObject *Py_UNUSED(module), PyObject *args)
{
    int all = 0, by = 0;
    if (!PyArg_ParseTuple(args, "pi:_disable_torch_function", &all, &by)) {
        return NULL;
    }
    unsigned *depth = all ? &without_all : &without_subclasses;
    if (by > 0) {
        ++*depth;
    } else if (*depth > 0) {
        --*depth;
    }
    Py_RETURN_NONE;
}

static PyObject *is_enabled(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(without_subclasses == 0 && without_all == 0);
}

static PyMethodDef functions[] = {
    {"_has_torch_function", PY_CALL(has_override), METH_FASTCALL, NULL},
    {"_handle_torch_function", handle_override, METH_VARARGS, NULL},
    {"_disabled_torch_function_impl", PY_CALL(call_plainly), METH_VARARGS | METH_KEYWORDS,
     "What __torch_function__ is of classes that do not override."},
    {"_push_torch_function_mode", push_mode, METH_O, NULL},
    {"_pop_torch_function_mode", pop_mode, METH_NOARGS, NULL},
    {"_count_torch_function_modes", count_modes, METH_NOARGS, NULL},
    {"_disable_torch_function", disable, METH_VARARGS, NULL},
    {"_is_torch_function_enabled", is_enabled, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

py_part override_calls_part;
int override_calls_part(PyObject *module)
{
    word_handler = PyUnicode_InternFromString("__torch_function__");
    if (word_handler == NULL || PyModule_AddFunctions(module, functions) != 0) {
        return -1;
    }
    no_handler = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
    return no_handler == NULL ? -1 : 0;
}
