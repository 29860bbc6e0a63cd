/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions, methods and properties that ask their arguments for __torch_function__ first.
 *
 *   OVO1 A function of Python that torch has is an overridable from the module's import on, since
 *        objects that are no tensors may be among its arguments (OV2).
 *   OVO2 Methods and properties of Tensor that are not rows take their wrapped form when somebody
 *        overrides for the first time (_overriding.py). The class still shows the original
 *        (Tensor.size): handlers compare with it.
 */
#include "tensors/ops/override.h"

#include <stddef.h>
#include <structmember.h>

typedef struct overridable {
    PyObject_HEAD vectorcallfunc call;
    PyObject *function;
    bool method; /* of Tensor: OVO2 */
} overridable;

static PyTypeObject *overridable_type;

/* Whether a first argument may be one that no row would find: itself, or the first of a list. */
static bool has_stranger(PyObject *const *args, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *object = args[i];
        if ((PyList_CheckExact(object) || PyTuple_CheckExact(object)) &&
            PySequence_Fast_GET_SIZE(object) > 0) {
            object = PySequence_Fast_GET_ITEM(object, 0);
        }
        if (override_is_stranger(object) && !tensor_check(object)) {
            return true;
        }
    }
    return false;
}

static PyObject *overridable_call(PyObject *object, PyObject *const *args, size_t nargsf,
                                  PyObject *kwnames)
{
    const overridable *self = (overridable *)object;
    Py_ssize_t n_args = PyVectorcall_NARGS(nargsf);
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    if (override_asked() || has_stranger(args, n_args + named)) {
        override_given given = {.function = self->method ? self->function : object,
                                .args = args,
                                .n_args = n_args,
                                .kwnames = kwnames,
                                .with_tensors = PyFunction_Check(self->function)};
        PyObject *result = NULL;
        if (override_call(&given, &result)) {
            return result;
        }
    }
    return PyObject_Vectorcall(self->function, args, nargsf, kwnames);
}

static PyObject *overridable_new(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *function = NULL;
    int method = 0;
    if (!PyArg_ParseTuple(args, "O|p:_overridable", &function, &method)) {
        return NULL;
    }
    if (Py_IS_TYPE(function, overridable_type)) {
        return Py_NewRef(function);
    }
    overridable *self = PyObject_GC_New(overridable, overridable_type);
    if (self != NULL) {
        self->call = overridable_call;
        self->function = Py_NewRef(function);
        self->method = method != 0;
        PyObject_GC_Track(self);
    }
    return (PyObject *)self;
}

static int overridable_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((overridable *)self)->function);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int overridable_clear(PyObject *self)
{
    Py_CLEAR(((overridable *)self)->function);
    return 0;
}

static void overridable_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    (void)overridable_clear(self);
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *overridable_get(PyObject *object, PyObject *instance, PyObject *Py_UNUSED(type))
{
    const overridable *self = (overridable *)object;
    if (instance == NULL) {
        return Py_NewRef(self->method ? self->function : object);
    }
    return PyMethod_New(object, instance);
}

static PyObject *overridable_repr(PyObject *self)
{
    return PyObject_Repr(((overridable *)self)->function);
}

/* Pickled by name, as functions are. */
static PyObject *overridable_reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyObject_GetAttrString(((overridable *)self)->function, "__qualname__");
}

/* Everything that is the function's: its name, text, module, defaults. */
static PyObject *overridable_attribute(PyObject *self, PyObject *name)
{
    static const char *const own[] = {"__class__", "__reduce__", "__reduce_ex__", "__call__",
                                      "__get__",   "__repr__",   "__hash__",      "__eq__"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (PyUnicode_CompareWithASCIIString(name, own[i]) == 0) {
            return PyObject_GenericGetAttr(self, name);
        }
    }
    PyObject *function = ((overridable *)self)->function;
    if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0) {
        return Py_NewRef(function);
    }
    return PyObject_GetAttr(function, name);
}

static int overridable_set_attribute(PyObject *self, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(((overridable *)self)->function, name, value);
}

static PyMethodDef overridable_methods[] = {
    {"__reduce__", overridable_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef overridable_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(overridable, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot overridable_slots[] = {
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_repr, overridable_repr},
    {Py_tp_dealloc, overridable_dealloc},
    {Py_tp_traverse, overridable_traverse},
    {Py_tp_clear, overridable_clear},
    {Py_tp_getattro, overridable_attribute},
    {Py_tp_setattro, overridable_set_attribute},
    {Py_tp_descr_get, overridable_get},
    {Py_tp_methods, overridable_methods},
    {Py_tp_members, overridable_members},
    {0, NULL},
};

static PyType_Spec overridable_spec = {
    .name = "mindtorch_v2.function",
    .basicsize = sizeof(overridable),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .slots = overridable_slots,
};

/* ---- properties ---- */

typedef struct overriding_property {
    PyObject_HEAD PyObject *descriptor; /* the original */
} overriding_property;

static PyTypeObject *property_type;

static PyObject *property_new(PyObject *Py_UNUSED(module), PyObject *descriptor)
{
    overriding_property *self = PyObject_New(overriding_property, property_type);
    if (self != NULL) {
        self->descriptor = Py_NewRef(descriptor);
    }
    return (PyObject *)self;
}

static void property_dealloc(PyObject *self)
{
    Py_CLEAR(((overriding_property *)self)->descriptor);
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Asks the object (and the value): handlers are told descriptor.__get__ or __set__. */
static bool ask_owner(PyObject *descriptor, const char *how, PyObject *const *args,
                      Py_ssize_t count, PyObject **result)
{
    PyObject *function = PyObject_GetAttrString(descriptor, how);
    *result = NULL;
    if (function == NULL) {
        return true;
    }
    override_given given = {
        .function = function, .args = args, .n_args = count, .with_tensors = count == 1};
    bool answered = override_call(&given, result);
    Py_DECREF(function);
    return answered;
}

static PyObject *property_get(PyObject *object, PyObject *instance, PyObject *type)
{
    PyObject *descriptor = ((overriding_property *)object)->descriptor;
    if (instance == NULL) {
        return Py_NewRef(descriptor);
    }
    PyObject *result = NULL;
    if (ask_owner(descriptor, "__get__", &instance, 1, &result)) {
        return result;
    }
    return Py_TYPE(descriptor)->tp_descr_get(descriptor, instance, type);
}

static int property_set(PyObject *object, PyObject *instance, PyObject *value)
{
    PyObject *descriptor = ((overriding_property *)object)->descriptor;
    PyObject *args[] = {instance, value};
    PyObject *result = NULL;
    if (value != NULL && ask_owner(descriptor, "__set__", args, 2, &result)) {
        Py_XDECREF(result);
        return result == NULL ? -1 : 0;
    }
    return Py_TYPE(descriptor)->tp_descr_set(descriptor, instance, value);
}

static PyType_Slot property_slots[] = {
    {Py_tp_dealloc, property_dealloc},
    {Py_tp_descr_get, property_get},
    {Py_tp_descr_set, property_set},
    {0, NULL},
};

static PyType_Spec property_spec = {
    .name = "mindtorch_v2.property",
    .basicsize = sizeof(overriding_property),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = property_slots,
};

static PyMethodDef functions[] = {
    {"_overridable", overridable_new, METH_VARARGS,
     "A function that asks its arguments for __torch_function__ first; of Tensor's methods (True) "
     "the class shows the original."},
    {"_overriding_property", property_new, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

py_part override_objects_part;
int override_objects_part(PyObject *module)
{
    if (py_add_type(module, &overridable_spec, NULL, NULL, &overridable_type) != 0 ||
        py_add_type(module, &property_spec, NULL, NULL, &property_type) != 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, functions);
}
