/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods for __enter__ and __exit__. A `with` statement asks for both as bound methods, and
 * CPython makes an object that its garbage collector tracks for each: half of what an empty scope
 * costs. These are bound by objects from a free list, which the collector does not track.
 *
 *   SM1  An untracked object must not be part of a cycle. So only instances of the exact type
 *        are bound this way: they have no attribute that could hold a reference. Instances of
 *        subclasses get CPython's bound methods.
 */
#include "profiler/scopes/scope_method.h"

#include <structmember.h>

typedef struct scope_method {
    PyObject ob_base;
    vectorcallfunc vectorcall;
    scope_function *function;
    PyTypeObject *owner; /* borrowed: the type that has the method lives as long as the process */
    const char *name, *doc;
} scope_method;

typedef struct bound_method {
    PyObject ob_base;
    vectorcallfunc vectorcall;
    scope_function *function;
    PyObject *self;
    const scope_method *method; /* borrowed, as above */
} bound_method;

enum {
    FREE_MAX = 32
};

static PyTypeObject *method_type, *bound_type;
static bound_method *free_list[FREE_MAX];
static int n_free;

static int no_keywords(const char *name, PyObject *kwnames)
{
    if (kwnames == NULL || PyTuple_GET_SIZE(kwnames) == 0) {
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "%s() takes no keyword arguments", name);
    return -1;
}

/* ---- bound ---- */

static PyObject *bound_vectorcall(PyObject *object, PyObject *const *args, size_t nargsf,
                                  PyObject *kwnames)
{
    bound_method *bound = (bound_method *)object;
    if (kwnames != NULL && no_keywords(bound->method->name, kwnames) != 0) {
        return NULL;
    }
    return bound->function(bound->self, args, PyVectorcall_NARGS(nargsf));
}

static PyObject *bound_new(const scope_method *method, PyObject *self)
{
    bound_method *bound;
    if (n_free > 0) {
        bound = free_list[--n_free];
        PyObject_Init((PyObject *)bound, bound_type);
    } else {
        bound = PyObject_New(bound_method, bound_type);
        if (bound == NULL) {
            return NULL;
        }
        bound->vectorcall = bound_vectorcall;
    }
    bound->function = method->function;
    bound->method = method;
    bound->self = Py_NewRef(self);
    return (PyObject *)bound;
}

static void bound_dealloc(PyObject *object)
{
    bound_method *bound = (bound_method *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_DECREF(bound->self);
    if (n_free < FREE_MAX) {
        free_list[n_free++] = bound;
    } else {
        PyObject_Free(bound);
    }
    Py_DECREF(type);
}

static PyObject *bound_repr(PyObject *object)
{
    bound_method *bound = (bound_method *)object;
    return PyUnicode_FromFormat("<bound method %s of %R>", bound->method->name, bound->self);
}

static PyObject *bound_compare(PyObject *a, PyObject *b, int op)
{
    if ((op != Py_EQ && op != Py_NE) || !Py_IS_TYPE(b, bound_type)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    bool same = ((bound_method *)a)->self == ((bound_method *)b)->self &&
                ((bound_method *)a)->method == ((bound_method *)b)->method;
    return PyBool_FromLong(same == (op == Py_EQ));
}

static Py_hash_t bound_hash(PyObject *object)
{
    bound_method *bound = (bound_method *)object;
    Py_hash_t hash = (Py_hash_t)((uintptr_t)bound->self >> 4 ^ (uintptr_t)bound->method);
    return hash == -1 ? -2 : hash;
}

static PyObject *bound_name(PyObject *object, void *doc)
{
    const scope_method *method = ((bound_method *)object)->method;
    return PyUnicode_FromString(doc != NULL ? method->doc : method->name);
}

static PyMemberDef bound_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(bound_method, vectorcall), READONLY, NULL},
    {"__self__", T_OBJECT, offsetof(bound_method, self), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static char is_doc[] = "doc"; /* any address: which of the two texts is asked for */

static PyGetSetDef bound_getset[] = {
    {"__name__", bound_name, NULL, NULL, NULL},
    {"__doc__", bound_name, NULL, NULL, is_doc},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot bound_slots[] = {
    {Py_tp_dealloc, bound_dealloc},     {Py_tp_call, PyVectorcall_Call},
    {Py_tp_repr, bound_repr},           {Py_tp_hash, bound_hash},
    {Py_tp_richcompare, bound_compare}, {Py_tp_members, bound_members},
    {Py_tp_getset, bound_getset},       {0, NULL},
};

static PyType_Spec bound_spec = {
    .name = "mtprof._mtprof.bound_scope_method",
    .basicsize = sizeof(bound_method),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = bound_slots,
};

/* ---- unbound ---- */

/* record_function.__enter__(scope): the first argument is the object. */
static PyObject *method_vectorcall(PyObject *object, PyObject *const *args, size_t nargsf,
                                   PyObject *kwnames)
{
    const scope_method *method = (scope_method *)object;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (no_keywords(method->name, kwnames) != 0) {
        return NULL;
    }
    if (n < 1 || !PyObject_TypeCheck(args[0], method->owner)) {
        PyErr_Format(PyExc_TypeError, "%s() needs a %s as its first argument", method->name,
                     method->owner->tp_name);
        return NULL;
    }
    return method->function(args[0], args + 1, n - 1);
}

static PyObject *method_get(PyObject *object, PyObject *instance, PyObject *Py_UNUSED(type))
{
    const scope_method *method = (scope_method *)object;
    if (instance == NULL) {
        return Py_NewRef(object);
    }
    if (Py_IS_TYPE(instance, method->owner)) {
        return bound_new(method, instance);
    }
    return PyMethod_New(object, instance); /* SM1 */
}

static void method_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *method_name(PyObject *object, void *doc)
{
    const scope_method *method = (scope_method *)object;
    return PyUnicode_FromString(doc != NULL ? method->doc : method->name);
}

static PyMemberDef method_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(scope_method, vectorcall), READONLY, NULL},
    {"__objclass__", T_OBJECT, offsetof(scope_method, owner), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef method_getset[] = {
    {"__name__", method_name, NULL, NULL, NULL},
    {"__doc__", method_name, NULL, NULL, is_doc},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot method_slots[] = {
    {Py_tp_dealloc, method_dealloc}, {Py_tp_call, PyVectorcall_Call}, {Py_tp_descr_get, method_get},
    {Py_tp_members, method_members}, {Py_tp_getset, method_getset},   {0, NULL},
};

static PyType_Spec method_spec = {
    .name = "mtprof._mtprof.scope_method",
    .basicsize = sizeof(scope_method),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = method_slots,
};

int scope_method_add(PyObject *module, PyTypeObject *type, const char *name, const char *doc,
                     scope_function *function)
{
    if (method_type == NULL && (py_add_type(module, &bound_spec, NULL, NULL, &bound_type) != 0 ||
                                py_add_type(module, &method_spec, NULL, NULL, &method_type) != 0)) {
        return -1;
    }
    scope_method *method = PyObject_New(scope_method, method_type);
    if (method == NULL) {
        return -1;
    }
    method->vectorcall = method_vectorcall;
    method->function = function;
    method->owner = type;
    method->name = name;
    method->doc = doc;
    int result = PyObject_SetAttrString((PyObject *)type, name, (PyObject *)method);
    Py_DECREF(method);
    return result;
}
