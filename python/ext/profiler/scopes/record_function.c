/* SPDX-License-Identifier: Apache-2.0
 *
 * record_function: a scope of the user's, as context manager and decorator.
 *
 * The whole of `with record_function("x"):` is in C and cheap: the type is called without tuples
 * (vectorcall), objects come from a free list, `with` gets its methods from another one
 * (scope_method.c), and a name that was seen before is a site (scope_sites.h).
 *
 *   RF1  An object may be entered again while it is open, and on several threads at a time: what is
 *        open is a stack, and an exit ends the innermost scope its own thread has opened. A scope
 *        that no exit on its thread ends is ended by the last exit, elsewhere.
 *   RF2  Instances hold strings and numbers only, so they are not tracked by the garbage collector;
 *        subclasses made in Python are.
 */
#include "profiler/scopes/scope_method.h"
#include "profiler/scopes/scope_sites.h"
#include "profiler/stacks/task_name.h"

#include <stdlib.h>
#include <string.h>
#include <structmember.h>

typedef struct open_scope {
    mtprof_token token; /* 0: not recorded */
    const void *thread; /* who opened it: its PyThreadState, compared only */
} open_scope;

typedef struct record_object {
    PyObject ob_base;
    PyObject *name;
    PyObject *args;     /* NULL: None */
    PyObject *metadata; /* a dict of its own, or NULL */
    uint32_t depth;     /* open scopes: `first`, then `more` */
    uint32_t room;      /* of `more` */
    open_scope first;
    open_scope *more;
    char on_exit; /* 0: a future ends it */
} record_object;

enum {
    FREE_MAX = 64
};

static record_object *free_list[FREE_MAX];
static int n_free;

/* ---- making ---------------------------------------------------------------------------------- */

static record_object *record_alloc(PyTypeObject *type)
{
    record_object *self;
    if (type == profiler.record_function_type && n_free > 0) {
        self = free_list[--n_free];
        PyObject_Init((PyObject *)self, type);
    } else {
        self = (record_object *)type->tp_alloc(type, 0);
        if (self == NULL) {
            return NULL;
        }
        self->more = NULL;
        self->room = 0;
    }
    self->name = NULL;
    self->args = NULL;
    self->metadata = NULL;
    self->depth = 0;
    self->on_exit = 1;
    return self;
}

static void record_dealloc(PyObject *object)
{
    record_object *self = (record_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    /* A scope that was not left ends with the object, as torch's handles do. */
    while (self->depth > 0 && self->on_exit) {
        self->depth--;
        mtprof_end(self->depth == 0 ? self->first.token : self->more[self->depth - 1].token);
    }
    Py_XDECREF(self->name);
    Py_XDECREF(self->args);
    Py_XDECREF(self->metadata);
    if (type == profiler.record_function_type && n_free < FREE_MAX && self->more == NULL) {
        free_list[n_free++] = self;
    } else {
        free(self->more);
        type->tp_free(object);
    }
    Py_DECREF(type);
}

/* One keyword argument: name, args, or metadata. */
static int record_keyword(record_object *self, PyObject *key, PyObject *value)
{
    if (PyUnicode_CompareWithASCIIString(key, "name") == 0) {
        if (self->name != NULL) {
            PyErr_SetString(PyExc_TypeError,
                            "record_function() got multiple values for argument 'name'");
            return -1;
        }
        self->name = Py_NewRef(value);
        return 0;
    }
    if (PyUnicode_CompareWithASCIIString(key, "args") == 0) {
        if (self->args != NULL) {
            PyErr_SetString(PyExc_TypeError,
                            "record_function() got multiple values for argument 'args'");
            return -1;
        }
        self->args = value == Py_None ? NULL : Py_NewRef(value);
        return 0;
    }
    if (scope_metadata_check(key, value) != 0) {
        return -1;
    }
    if (self->metadata == NULL && (self->metadata = PyDict_New()) == NULL) {
        return -1;
    }
    return PyDict_SetItem(self->metadata, key, value);
}

static int record_fill(record_object *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    if (n > 2) {
        PyErr_Format(PyExc_TypeError,
                     "record_function() takes a name and args, but %zd arguments "
                     "were given",
                     n);
        return -1;
    }
    self->name = n > 0 ? Py_XNewRef(args[0]) : NULL; /* NULL: __init__ was given args= alone */
    self->args = n > 1 && args[1] != Py_None ? Py_NewRef(args[1]) : NULL;
    Py_ssize_t n_keywords = kwnames != NULL ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t i = 0; i < n_keywords; i++) {
        if (record_keyword(self, PyTuple_GET_ITEM(kwnames, i), args[n + i]) != 0) {
            return -1;
        }
    }
    if (self->name == NULL) {
        PyErr_SetString(PyExc_TypeError,
                        "record_function() missing 1 required positional argument: 'name'");
        return -1;
    }
    return 0;
}

/* @record_function without a name: the error is raised at the decorator, not at the first call. */
static int refuse_bare(PyObject *name)
{
    if (name == NULL || PyUnicode_Check(name) || PyBytes_Check(name) || !PyCallable_Check(name)) {
        return 0;
    }
    PyErr_Format(PyExc_TypeError,
                 "record_function: the name must be a str, not %R; as a decorator write "
                 "@record_function(\"name\") above the function",
                 name);
    return -1;
}

static PyObject *record_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf,
                                   PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    record_object *self = record_alloc((PyTypeObject *)type);
    if (self == NULL) {
        return NULL;
    }
    int filled = 0;
    if (n == 1 && kwnames == NULL) {
        self->name = Py_NewRef(args[0]);
    } else {
        filled = record_fill(self, args, n, kwnames);
    }
    if (filled != 0 || (!PyUnicode_CheckExact(self->name) && refuse_bare(self->name) != 0)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

/* Subclasses come this way: arguments are __init__'s. */
static PyObject *record_new(PyTypeObject *type, PyObject *Py_UNUSED(args),
                            PyObject *Py_UNUSED(kwargs))
{
    return (PyObject *)record_alloc(type);
}

static int record_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    record_object *self = (record_object *)object;
    if (kwargs != NULL && !PyArg_ValidateKeywordArguments(kwargs)) {
        return -1; /* record_init(**{1: 2}) comes here unchecked */
    }
    Py_CLEAR(self->name);
    Py_CLEAR(self->args);
    Py_CLEAR(self->metadata);
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t position = 0;
    while (kwargs != NULL && PyDict_Next(kwargs, &position, &key, &value)) {
        if (record_keyword(self, key, value) != 0) {
            return -1;
        }
    }
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    if ((n > 0 && self->name != NULL) || (n > 1 && self->args != NULL)) {
        PyErr_SetString(PyExc_TypeError, "record_function() got multiple values for an argument");
        return -1;
    }
    PyObject *given[2] = {self->name, self->args};
    self->name = self->args = NULL;
    for (Py_ssize_t i = 0; i < 2 && i < n; i++) {
        given[i] = Py_NewRef(PyTuple_GET_ITEM(args, i));
    }
    int result = record_fill(self, given,
                             n > 2              ? n
                             : given[1] != NULL ? 2
                                                : given[0] != NULL,
                             NULL);
    Py_XDECREF(given[0]);
    Py_XDECREF(given[1]);
    return result == 0 ? refuse_bare(self->name) : result;
}

/* ---- what is open ---------------------------------------------------------------------------- */

static const void *this_thread(void)
{
    return PyThreadState_Get();
}

/* false: MemoryError. Then nothing is open. */
static bool open_push(record_object *self, mtprof_token token)
{
    open_scope scope = {token, this_thread()};
    if (self->depth == 0) {
        self->first = scope;
    } else {
        if (self->depth - 1 == self->room) {
            uint32_t room = self->room != 0 ? self->room * 2 : 4;
            open_scope *more = realloc(self->more, room * sizeof *more);
            if (more == NULL) {
                mtprof_end(token);
                PyErr_NoMemory();
                return false;
            }
            self->more = more;
            self->room = room;
        }
        self->more[self->depth - 1] = scope;
    }
    self->depth++;
    return true;
}

static open_scope *open_at(record_object *self, uint32_t index)
{
    return index == 0 ? &self->first : &self->more[index - 1];
}

/* The innermost of this thread, or else the innermost of all (RF1). depth > 0. */
static uint32_t open_find(record_object *self)
{
    const void *thread = this_thread();
    for (uint32_t i = self->depth; i > 0; i--) {
        if (open_at(self, i - 1)->thread == thread) {
            return i - 1;
        }
    }
    return self->depth - 1;
}

static mtprof_token open_pop(record_object *self)
{
    if (self->depth == 1) {
        self->depth = 0;
        return self->first.token;
    }
    uint32_t index = open_find(self);
    mtprof_token token = open_at(self, index)->token;
    for (uint32_t i = index + 1; i < self->depth; i++) {
        *open_at(self, i - 1) = *open_at(self, i);
    }
    self->depth--;
    return token;
}

/* ---- enter and exit -------------------------------------------------------------------------- */

/* torch checks the types when a scope is entered, even if nothing is recording. */
static int check_types(const record_object *self)
{
    if (self->name == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "record_function: the argument 'name' was never given");
        return -1;
    }
    if (!PyUnicode_Check(self->name) && !PyBytes_Check(self->name)) {
        PyErr_Format(PyExc_RuntimeError,
                     "record_function: expected a value of type 'str' for argument 'name' but "
                     "instead found type '%s': %R",
                     Py_TYPE(self->name)->tp_name, self->name);
        return -1;
    }
    if (self->args != NULL && !PyUnicode_Check(self->args)) {
        PyErr_Format(PyExc_RuntimeError,
                     "record_function: expected a value of type 'Optional[str]' for argument "
                     "'args' but instead found type '%s': %R",
                     Py_TYPE(self->args)->tp_name, self->args);
        return -1;
    }
    return 0;
}

/* {"task": its name} where a task runs and the program says nothing else of it; NULL: nothing.
 * Scopes of tasks that take turns do not nest on their thread: exports draw a track for each task.
 */
static PyObject *task_metadata(const record_object *self)
{
    PyObject *name = task_name();
    PyObject *metadata = NULL;
    if (name != NULL &&
        (self->metadata == NULL || PyDict_GetItemString(self->metadata, "task") == NULL)) {
        metadata = Py_BuildValue("{s:O}", "task", name);
    }
    Py_XDECREF(name);
    if (metadata == NULL && PyErr_Occurred()) {
        PyErr_Clear();
    }
    return metadata;
}

/* Values may run Python code (__str__), which may call __init__ again: what is used is held. */
static mtprof_token begin_with_more(const record_object *self, PyObject *task)
{
    PyObject *name = Py_NewRef(self->name);
    PyObject *args = Py_XNewRef(self->args);
    PyObject *metadata = Py_XNewRef(self->metadata);
    mtprof_token token = args != NULL ? scope_begin_inputs(name, &args, 1) : scope_begin(name);
    if (metadata != NULL) {
        scope_metadata(token, metadata);
    }
    if (task != NULL) {
        scope_metadata(token, task);
    }
    Py_XDECREF(metadata);
    Py_XDECREF(args);
    Py_DECREF(name);
    return token;
}

static PyObject *record_enter(PyObject *object, PyObject *const *args, Py_ssize_t n)
{
    (void)args;
    if (n != 0) {
        return PyErr_Format(PyExc_TypeError, "__enter__() takes no arguments (%zd given)", n);
    }
    record_object *self = (record_object *)object;
    bool plain = self->args == NULL && self->metadata == NULL;
    if ((self->name == NULL || !PyUnicode_CheckExact(self->name) || self->args != NULL) &&
        check_types(self) != 0) {
        return NULL;
    }
    mtprof_token token = 0;
    if (mtprof_wants(SCOPE_WANTS)) {
        PyObject *task = task_metadata(self);
        token = plain && task == NULL ? scope_begin(self->name) : begin_with_more(self, task);
        Py_XDECREF(task);
    }
    if (self->depth == 0) {
        self->first = (open_scope){token, this_thread()};
        self->depth = 1;
    } else if (!open_push(self, token)) {
        return NULL;
    }
    return Py_NewRef(object);
}

static PyObject *record_exit(PyObject *object, PyObject *const *Py_UNUSED(args),
                             Py_ssize_t Py_UNUSED(n))
{
    record_object *self = (record_object *)object;
    if (self->depth == 0) {
        PyErr_SetString(PyExc_AssertionError, "Expected record to be set");
        return NULL;
    }
    mtprof_token token = open_pop(self);
    if (self->on_exit) {
        mtprof_end(token);
    }
    Py_RETURN_NONE;
}

/* ---- futures --------------------------------------------------------------------------------- */

static PyObject *future_done(PyObject *token, PyObject *future)
{
    mtprof_end(PyLong_AsUnsignedLongLong(token));
    PyObject *value = PyObject_GetAttrString(future, "then");
    if (value == NULL) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    /* torch's kind: what the callback returns is the value of the next future. */
    Py_DECREF(value);
    return PyObject_CallMethod(future, "value", NULL);
}

static PyMethodDef future_done_def = {"end_scope", future_done, METH_O, NULL};

static PyObject *record_call_end_on_future(PyObject *object, PyObject *future)
{
    record_object *self = (record_object *)object;
    if (!self->on_exit) {
        PyErr_SetString(PyExc_RuntimeError,
                        "_call_end_callbacks_on_future can only be called once.");
        return NULL;
    }
    if (self->depth == 0) {
        PyErr_SetString(PyExc_AssertionError, "Expected record to be set");
        return NULL;
    }
    PyObject *token = PyLong_FromUnsignedLongLong(open_at(self, open_find(self))->token);
    PyObject *done = token != NULL ? PyCFunction_New(&future_done_def, token) : NULL;
    PyObject *result = NULL;
    if (done != NULL) {
        PyObject *add = PyObject_GetAttrString(future, "add_done_callback");
        if (add == NULL) {
            PyErr_Clear();
            result = PyObject_CallMethod(future, "then", "O", done);
        } else {
            PyObject *added = PyObject_CallOneArg(add, done);
            result = added != NULL ? Py_NewRef(future) : NULL;
            Py_XDECREF(added);
            Py_DECREF(add);
        }
    }
    if (result != NULL) {
        self->on_exit = 0;
    }
    Py_XDECREF(done);
    Py_XDECREF(token);
    return result;
}

/* ---- the decorator, attributes --------------------------------------------------------------- */

/* decorators.py distinguishes functions, generators and coroutines. */
static PyObject *record_call(PyObject *object, PyObject *args, PyObject *kwargs)
{
    PyObject *function = NULL;
    if ((kwargs != NULL && PyDict_GET_SIZE(kwargs) != 0) || PyTuple_GET_SIZE(args) != 1) {
        PyErr_SetString(PyExc_TypeError, "record_function: the decorator takes one function");
        return NULL;
    }
    function = PyTuple_GET_ITEM(args, 0);
    PyObject *module = PyImport_ImportModule("mtprof.decorators");
    if (module == NULL) {
        return NULL;
    }
    PyObject *result = PyObject_CallMethod(module, "decorate", "OO", object, function);
    Py_DECREF(module);
    return result;
}

static PyObject *record_get_record(PyObject *object, void *Py_UNUSED(closure))
{
    record_object *self = (record_object *)object;
    if (self->depth == 0) {
        Py_RETURN_NONE;
    }
    return PyLong_FromUnsignedLongLong(open_at(self, open_find(self))->token);
}

/* record_function('load', rows=1000) */
static PyObject *record_repr(PyObject *object)
{
    record_object *self = (record_object *)object;
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t at = 0;
    PyObject *text = PyUnicode_FromFormat("record_function(%R", self->name);
    if (text != NULL && self->args != NULL && self->args != Py_None) {
        Py_SETREF(text, PyUnicode_FromFormat("%U, %R", text, self->args));
    }
    while (text != NULL && self->metadata != NULL &&
           PyDict_Next(self->metadata, &at, &key, &value)) {
        Py_SETREF(text, PyUnicode_FromFormat("%U, %S=%R", text, key, value));
    }
    if (text != NULL) {
        Py_SETREF(text, PyUnicode_FromFormat("%U)", text));
    }
    return text;
}

static PyObject *record_get_metadata(PyObject *object, void *Py_UNUSED(closure))
{
    record_object *self = (record_object *)object;
    return self->metadata != NULL ? PyDict_Copy(self->metadata) : PyDict_New();
}

static PyMemberDef members[] = {
    {"name", T_OBJECT, offsetof(record_object, name), 0, "The scope's name."},
    {"args", T_OBJECT, offsetof(record_object, args), READONLY, "A text that counts as an input."},
    {"run_callbacks_on_exit", T_BOOL, offsetof(record_object, on_exit), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"record", record_get_record, NULL, "What is open, as a token; None: nothing.", NULL},
    {"metadata", record_get_metadata, NULL, "A copy of the keywords it was made with.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"_call_end_callbacks_on_future", record_call_end_on_future, METH_O,
     "Lets the future's completion end the scope, in place of __exit__."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)(uintptr_t) "record_function(name, args=None, **metadata)\n--\n\n"
                                    "A named scope in the profile: a context manager and a "
                                    "decorator. Without a profiler it does nothing.\n\n"
                                    "args: a text that counts as an input. metadata: numbers, "
                                    "bools and texts that are kept with the scope."},
    {Py_tp_new, record_new},
    {Py_tp_init, record_init},
    {Py_tp_dealloc, record_dealloc},
    {Py_tp_call, record_call},
    {Py_tp_repr, record_repr},
    {Py_tp_members, members},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "mtprof.record_function",
    .basicsize = sizeof(record_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int record_function_part(PyObject *module);

int record_function_part(PyObject *module)
{
    if (py_add_type(module, &spec, NULL, "record_function", &profiler.record_function_type) != 0) {
        return -1;
    }
    PyTypeObject *type = profiler.record_function_type;
    type->tp_vectorcall = record_vectorcall;
    if (scope_method_add(module, type, "__enter__", "Begins the scope.", record_enter) != 0) {
        return -1;
    }
    return scope_method_add(module, type, "__exit__", "Ends the scope.", record_exit);
}
