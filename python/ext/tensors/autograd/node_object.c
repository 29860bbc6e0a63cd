/* SPDX-License-Identifier: Apache-2.0
 *
 * grad_fn: a node of the graph. One Python class a node's name ("MulBackward0"), as torch has them,
 * all of the same layout; made when a name is first seen.
 *
 *   NOB1  A node has at most one object at a time: `objects` maps its address to it, without a
 *         reference. The object holds the node, so the address is not reused meanwhile.
 */
#include "tensors/autograd/function_context.h"
#include "tensors/autograd/node_parts.h"
#include "tensors/interop/late_release.h"

#include <string.h>

enum {
    MAX_NAME = 256 /* of a class; longer ones are cut there, name() has all of it */
};

typedef struct node_object {
    PyObject_HEAD mt_node *node; /* one reference */
    PyObject *address;           /* of the node, its key in `objects`; NULL: it is not there */
} node_object;

static PyObject *objects; /* NOB1: address -> object as a number */
static PyObject *classes; /* name -> class */
static PyObject *module_of_types;

/* ---- identity -------------------------------------------------------------------------------- */

static node_object *find_object(PyObject *address)
{
    PyObject *number = PyDict_GetItemWithError(objects, address);
    return number == NULL ? NULL : PyLong_AsVoidPtr(number);
}

static int keep_object(PyObject *address, node_object *object)
{
    PyObject *number = PyLong_FromVoidPtr(object);
    if (number == NULL) {
        return -1;
    }
    int failed = PyDict_SetItem(objects, address, number);
    Py_DECREF(number);
    return failed;
}

/* Must not fail for lack of memory: an address left in the dict may later be another node's. */
static void forget_object(node_object *object)
{
    PyObject *type = NULL;
    PyObject *value = NULL;
    PyObject *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    if (find_object(object->address) == object && PyDict_DelItem(objects, object->address) != 0) {
        PyErr_Clear();
    }
    Py_CLEAR(object->address);
    PyErr_Restore(type, value, trace);
}

/* ---- the type -------------------------------------------------------------------------------- */

static void node_dealloc(PyObject *self)
{
    node_object *object = (node_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (object->address != NULL) {
        forget_object(object);
    }
    if (object->node != NULL) {
        mt_node_release(object->node); /* frees what it saved: a Function's ctx runs Python */
    }
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static int node_traverse(PyObject *self, visitproc visit, void *arg)
{
    node_object *object = (node_object *)self;
    Py_VISIT(Py_TYPE(self));
    if (object->node != NULL && mt_node_use_count(object->node) == 1) {
        return hooks_visit_node(object->node, visit, arg); /* nothing else holds them */
    }
    return 0;
}

mt_node *node_of(PyObject *object)
{
    return ((node_object *)object)->node;
}

/* "AccumulateGrad" of "torch::autograd::AccumulateGrad". */
static const char *class_name(const mt_node *node)
{
    const char *name = mt_node_name(node);
    const char *colons = strrchr(name, ':');
    return colons == NULL ? name : colons + 1;
}

static PyObject *node_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<%s object at %p>", class_name(((node_object *)self)->node),
                                (void *)self);
}

static PyObject *node_name(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyUnicode_FromString(mt_node_name(((node_object *)self)->node));
}

static PyObject *node_sequence(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLongLong(mt_node_sequence(((node_object *)self)->node));
}

static PyObject *node_next_functions(PyObject *self, void *Py_UNUSED(ignored))
{
    mt_node *node = ((node_object *)self)->node;
    uint32_t count = mt_node_n_next(node);
    PyObject *tuple = PyTuple_New(count);
    for (uint32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *next = node_wrap(mt_node_next(node, i));
        PyObject *pair =
            next == NULL ? NULL : Py_BuildValue("(NI)", next, mt_node_next_output(node, i));
        if (pair == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, pair);
    }
    return tuple;
}

/* The leaf of an AccumulateGrad. */
static PyObject *node_variable(PyObject *self, void *Py_UNUSED(ignored))
{
    mt_tensor *leaf = mt_node_variable(((node_object *)self)->node);
    if (leaf == NULL) {
        return PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'",
                            class_name(((node_object *)self)->node));
    }
    return tensor_wrap_borrowed(leaf);
}

static PyObject *node_metadata(PyObject *self, void *Py_UNUSED(ignored))
{
    mt_node *node = node_of(self);
    late_object *note = mt_node_note(node);
    if (note != NULL) {
        return Py_NewRef(note->object);
    }
    PyObject *dict = PyDict_New();
    note = dict == NULL ? NULL : late_object_new(dict);
    int status = note == NULL ? MT_OK : mt_node_set_note(node, note, late_object_free);
    if (status != MT_OK) {
        late_object_free(note);
        tensors_raise(status);
    }
    if (note == NULL || status != MT_OK) {
        Py_CLEAR(dict);
    }
    return dict;
}

/* ---- saved values ---------------------------------------------------------------------------- */

static const char saved_prefix[] = "_saved_";

/* A value of the node's. Clears a tensor. */
static PyObject *saved_to_object(mt_value *value)
{
    switch ((mt_kind)value->kind) {
    case MT_KIND_TENSOR: return tensor_wrap(value->of.tensor);
    case MT_KIND_BOOL: return PyBool_FromLong(value->of.integer != 0);
    case MT_KIND_INT: return PyLong_FromLongLong(value->of.integer);
    case MT_KIND_REAL: return PyFloat_FromDouble(value->of.real);
    case MT_KIND_TEXT: return PyUnicode_FromString(value->of.text);
    case MT_KIND_INTS: break;
    default: Py_RETURN_NONE;
    }
    PyObject *tuple = PyTuple_New(value->count);
    for (uint32_t i = 0; tuple != NULL && i < value->count; i++) {
        PyObject *item = PyLong_FromLongLong(value->of.ints[i]);
        if (item == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

static PyObject *get_saved(mt_node *node, const char *name)
{
    mt_value value = {.kind = MT_KIND_NONE};
    int status = MT_OK;
    WITHOUT_GIL(status, mt_node_get_saved(node, name, &value));
    if (status == MT_EINDEX) {
        return NULL;
    }
    return status != MT_OK ? tensors_raise(status) : saved_to_object(&value);
}

/* An attribute of the ctx of a Function's node, with its saved tensors in reach. */
static PyObject *get_from_function(mt_node *node, PyObject *name)
{
    mt_function_call *call = NULL;
    late_object *late = mt_node_function_context(node, &call);
    if (late == NULL) {
        return NULL;
    }
    function_context *ctx = (function_context *)Py_NewRef(late->object);
    ctx->call = call;
    ctx->running++;
    PyObject *value = PyObject_GetAttr((PyObject *)ctx, name);
    ctx->running--;
    Py_DECREF(ctx);
    return value;
}

/* Values that the node has saved come after its own attributes. */
static PyObject *node_getattro(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return found;
    }
    PyObject *type = NULL;
    PyObject *value = NULL;
    PyObject *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    const char *text = PyUnicode_AsUTF8(name);
    size_t length = sizeof(saved_prefix) - 1;
    if (text != NULL && strncmp(text, saved_prefix, length) == 0) {
        found = get_saved(node_of(self), text + length);
    } else if (text != NULL && strncmp(text, "__", 2) != 0) {
        found = get_from_function(node_of(self), name);
        if (found == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
            PyErr_Clear();
        }
    }
    if (found == NULL && !PyErr_Occurred()) {
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return found;
}

/* Names of the class, and of saved values. */
static PyObject *node_dir(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *names = PyObject_CallMethod((PyObject *)&PyBaseObject_Type, "__dir__", "O", self);
    PyObject *list = names == NULL ? NULL : PySequence_List(names);
    Py_XDECREF(names);
    char name[MT_SAVED_NAME];
    for (uint32_t i = 0; list != NULL && mt_node_saved_name(node_of(self), i, name); i++) {
        PyObject *text = PyUnicode_FromFormat("%s%s", saved_prefix, name);
        if (text == NULL || PyList_Append(list, text) != 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(text);
    }
    return list;
}

static PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "name($self, /)\n--\n\nThe name of the op's derivative."},
    {"__dir__", node_dir, METH_NOARGS, NULL},
    {"_sequence_nr", node_sequence, METH_NOARGS, "_sequence_nr() -> int"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef node_properties[] = {
    {"next_functions", node_next_functions, NULL, "where gradients go: (node, output) pairs", NULL},
    {"variable", node_variable, NULL, "the leaf whose gradient it accumulates", NULL},
    {"metadata", node_metadata, NULL, "a dict for the user's notes", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot node_slots[] = {
    {Py_tp_dealloc, node_dealloc},
    {Py_tp_traverse, node_traverse},
    {Py_tp_repr, node_repr},
    {Py_tp_getattro, node_getattro},
    {Py_tp_doc, (char[]){"A step of backward: what computes the gradients of an op."}},
    {Py_tp_methods, node_methods},
    {Py_tp_getset, node_properties},
    {0, NULL},
};

static PyType_Spec node_spec = {
    .name = "mindtorch_v2.autograd.graph.Node",
    .basicsize = sizeof(node_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = node_slots,
};

/* ---- classes --------------------------------------------------------------------------------- */

/* The class of a name; borrowed. */
static PyTypeObject *class_of(const char *name)
{
    PyObject *key = PyUnicode_FromString(name);
    if (key == NULL) {
        return NULL;
    }
    PyObject *known = PyDict_GetItemWithError(classes, key);
    if (known == NULL && !PyErr_Occurred()) {
        /* Not inherited by classes from specs. */
        PyType_Slot slots[] = {
            {Py_tp_dealloc, node_dealloc},
            {Py_tp_traverse, node_traverse},
            {0, NULL},
        };
        char full[MAX_NAME]; /* CPython copies it */
        (void)PyOS_snprintf(full, sizeof(full), "mindtorch_v2.autograd.graph.%s", name);
        PyType_Spec spec = {
            .name = full,
            .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
            .slots = slots,
        };
        PyObject *made =
            PyType_FromModuleAndSpec(module_of_types, &spec, (PyObject *)tensors.node_type);
        if (made != NULL && PyDict_SetItem(classes, key, made) == 0) {
            known = made; /* the dict holds it */
        }
        Py_XDECREF(made);
    }
    Py_DECREF(key);
    return (PyTypeObject *)known;
}

PyObject *node_wrap(mt_node *node)
{
    if (node == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *address = PyLong_FromVoidPtr(node);
    if (address == NULL) {
        return NULL;
    }
    node_object *object = find_object(address);
    if (object != NULL || PyErr_Occurred()) {
        Py_DECREF(address);
        return Py_XNewRef((PyObject *)object);
    }
    PyTypeObject *type = class_of(class_name(node));
    object = type == NULL ? NULL : (node_object *)type->tp_alloc(type, 0);
    if (object != NULL && keep_object(address, object) == 0) {
        object->address = Py_NewRef(address);
        object->node = mt_node_retain(node);
    } else {
        Py_CLEAR(object);
    }
    Py_DECREF(address);
    return (PyObject *)object;
}

py_part node_part;
int node_part(PyObject *module)
{
    objects = PyDict_New();
    classes = PyDict_New();
    if (objects == NULL || classes == NULL) {
        return -1;
    }
    module_of_types = module;
    return py_add_type(module, &node_spec, NULL, "_Node", &tensors.node_type);
}
