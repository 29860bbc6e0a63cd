/* SPDX-License-Identifier: Apache-2.0
 *
 * torch.Tensor: the type, its objects' lives, and what belongs to every object.
 *
 *     tensor_wrap(t) ──► t's object ──── none yet, or dying ──► one from the free list, or new
 *
 *   TT1  An object of the exact type Tensor is tracked by the collector from its first attribute
 *        on: without a dict it cannot be part of a cycle. Objects of subclasses are always tracked.
 *   TT2  The link from tensor to object (mt_tensor_host) is cut before anything else of the object
 *        is freed. A weak reference's callback that runs while a subclass's object dies finds a
 *        count of 0 there and gets a new object.
 */
#include "tensors/interop/buffer_parts.h"
#include "tensors/ops/override.h"
#include "tensors/tensor/index_parts.h"
#include "tensors/tensor/tensor_parts.h"

#include <structmember.h>

enum {
    MAX_FREE = 64
};

/* Objects of the exact type to be used again, untracked; linked by their `dict`. With the GIL. */
static tensor_object *free_list;
static uint32_t n_free;

static tensor_object *object_new(void)
{
    tensor_object *self = free_list;
    if (self != NULL) {
        free_list = (tensor_object *)self->dict;
        n_free--;
        (void)PyObject_Init((PyObject *)self, tensors.tensor_type);
    } else {
        self = PyObject_GC_New(tensor_object, tensors.tensor_type);
        if (self == NULL) {
            return NULL;
        }
    }
    self->dict = NULL;
    self->weak = NULL;
    return self;
}

/* Makes a new object (NULL: an exception) the tensor's. Takes the tensor in any case. */
static PyObject *adopt(tensor_object *self, mt_tensor *tensor)
{
    if (self == NULL) {
        mt_tensor_release(tensor);
        return NULL;
    }
    self->tensor = tensor;
    mt_tensor_set_host(tensor, self);
    return (PyObject *)self;
}

PyObject *tensor_wrap(mt_tensor *tensor)
{
    if (tensor == NULL) {
        Py_RETURN_NONE;
    }
    PyObject *host = mt_tensor_host(tensor);
    if (host != NULL && Py_REFCNT(host) > 0) {
        Py_INCREF(host);
        mt_tensor_release(tensor); /* the object holds one */
        return host;
    }
    return adopt(object_new(), tensor);
}

PyObject *tensor_wrap_as(PyTypeObject *type, mt_tensor *tensor)
{
    if (type == tensors.tensor_type) {
        return tensor_wrap(tensor);
    }
    if (override_note_type(type) != 0) {
        mt_tensor_release(tensor);
        return NULL;
    }
    return adopt((tensor_object *)type->tp_alloc(type, 0), tensor);
}

/* The end of an object, after what is Python's has gone. */
static void object_free(tensor_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    mt_tensor *tensor = self->tensor;
    self->tensor = NULL;
    if (type == tensors.tensor_type && n_free < MAX_FREE) {
        self->dict = (PyObject *)free_list;
        free_list = self;
        n_free++;
    } else {
        type->tp_free(self);
    }
    Py_DECREF(type);
    mt_tensor_release(tensor);
}

static void tensor_dealloc(PyObject *object);

/* With attributes or weak references; deep chains of attributes go by the trashcan, which
 * subclasses bring themselves. */
static void object_free_attributes(PyObject *object)
{
    tensor_object *self = (tensor_object *)object;
    Py_TRASHCAN_BEGIN(object, tensor_dealloc) if (self->weak != NULL)
    {
        PyObject_ClearWeakRefs(object);
    }
    Py_CLEAR(self->dict);
    object_free(self);
    Py_TRASHCAN_END
}

static void tensor_dealloc(PyObject *object)
{
    tensor_object *self = (tensor_object *)object;
    if (self->tensor != NULL && mt_tensor_host(self->tensor) == self) {
        mt_tensor_set_host(self->tensor, NULL); /* TT2 */
    }
    PyObject_GC_UnTrack(object);
    if (self->dict == NULL && self->weak == NULL) {
        object_free(self);
    } else {
        object_free_attributes(object);
    }
}

static int tensor_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((tensor_object *)object)->dict);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static int tensor_clear(PyObject *object)
{
    Py_CLEAR(((tensor_object *)object)->dict);
    return 0;
}

/* TT1 */
static void track_with_dict(PyObject *object)
{
    if (((tensor_object *)object)->dict != NULL && !PyObject_GC_IsTracked(object)) {
        PyObject_GC_Track(object);
    }
}

static int tensor_setattro(PyObject *object, PyObject *name, PyObject *value)
{
    PyTypeObject *type = Py_TYPE(object);
    int status = PyObject_GenericSetAttr(object, name, value);
    track_with_dict(object);
    if (Py_TYPE(object) != type && status == 0) { /* x.__class__ = ... */
        status = override_note_type(Py_TYPE(object));
    }
    return status;
}

PyObject *tensor_get_dict(PyObject *object, void *context)
{
    PyObject *dict = PyObject_GenericGetDict(object, context);
    track_with_dict(object);
    return dict;
}

int tensor_set_dict(PyObject *object, PyObject *value, void *context)
{
    int status = PyObject_GenericSetDict(object, value, context);
    track_with_dict(object);
    return status;
}

/* By identity: == compares elements. */
static Py_hash_t tensor_hash(PyObject *object)
{
    size_t bits = (size_t)object;
    Py_hash_t hash = (Py_hash_t)(bits >> 4 | bits << (8 * sizeof bits - 4));
    return hash == -1 ? -2 : hash;
}

/* ---- Tensor(...), the old constructor ---- */

/* Tensor(2, 3), Tensor(torch.Size([2, 3])): not initialised, of the default type. */
static mt_tensor *new_of_sizes(PyObject *sizes)
{
    int64_t ints[MT_MAX_DIMS];
    Py_ssize_t count = PyTuple_GET_SIZE(sizes);
    if (count > MT_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "Tensor(): at most %d dimensions, %zd are given",
                     MT_MAX_DIMS, count);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        int is_int = int_try(PyTuple_GET_ITEM(sizes, i), &ints[i]);
        if (is_int == 0) {
            PyErr_Format(PyExc_TypeError, "new(): argument 'size' must be tuple of ints, not %s",
                         Py_TYPE(PyTuple_GET_ITEM(sizes, i))->tp_name);
        }
        if (is_int <= 0) {
            return NULL;
        }
    }
    mt_tensor *tensor = NULL;
    (void)zero_or_raise(mt_empty(ints, (size_t)count, &tensor));
    return tensor;
}

/* Tensor([1, 2]): torch.tensor() in the default type. */
static mt_tensor *new_of_data(PyObject *data)
{
    PyObject *package = PyImport_ImportModule("mindtorch_v2");
    PyObject *make = package == NULL ? NULL : PyObject_GetAttrString(package, "tensor");
    Py_XDECREF(package);
    if (make == NULL) {
        return NULL;
    }
    PyObject *args = PyTuple_Pack(1, data);
    PyObject *named = Py_BuildValue("{s:O,s:s}", "dtype", tensors.dtypes[mt_default_dtype()],
                                    "device", "cpu"); /* whatever the default device is */
    PyObject *made = args == NULL || named == NULL ? NULL : PyObject_Call(make, args, named);
    Py_XDECREF(args);
    Py_XDECREF(named);
    Py_DECREF(make);
    if (made == NULL) {
        return NULL;
    }
    if (!tensor_check(made)) { /* the function was replaced */
        PyErr_Format(PyExc_TypeError, "Tensor(): torch.tensor() gave %R", made);
        Py_DECREF(made);
        return NULL;
    }
    mt_tensor *tensor = mt_tensor_retain(tensor_of(made));
    Py_DECREF(made);
    return tensor;
}

static mt_tensor *new_alias(mt_tensor *tensor)
{
    mt_tensor *alias = NULL;
    (void)zero_or_raise(mt_detach(tensor, &alias));
    return alias;
}

static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (type == tensors.tensor_type && kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "Tensor() takes no keyword arguments; use torch.tensor()");
        return NULL;
    }
    mt_tensor *tensor = NULL;
    PyObject *first = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (first == NULL) {
        int64_t none = 0;
        if (zero_or_raise(mt_empty(&none, 1, &tensor)) != 0) {
            return NULL;
        }
    } else if (tensor_check(first)) {
        tensor = new_alias(tensor_of(first));
    } else if (Py_IS_TYPE(first, tensors.size_type)) {
        tensor = new_of_sizes(first);
    } else if (PySequence_Check(first) && !PyUnicode_Check(first)) {
        tensor = new_of_data(first);
    } else {
        tensor = new_of_sizes(args);
    }
    if (tensor == NULL) {
        return NULL;
    }
    if (mt_tensor_host(tensor) != NULL) { /* of new_of_data(), for a subclass */
        mt_tensor *own = type == tensors.tensor_type ? mt_tensor_retain(tensor) : new_alias(tensor);
        mt_tensor_release(tensor);
        tensor = own;
    }
    return tensor == NULL ? NULL : tensor_wrap_as(type, tensor);
}

int tensor_require_grad(mt_tensor *tensor)
{
    if (mt_dtype_category(mt_tensor_dtype(tensor)) < MT_CATEGORY_REAL) {
        PyErr_SetString(PyExc_RuntimeError,
                        "Only Tensors of floating point and complex dtype can require gradients");
        return -1;
    }
    return zero_or_raise(mt_tensor_set_requires_grad(tensor, true));
}

/* Tensor._make_subclass(cls, data, requires_grad=False): data's elements as an object of cls. */
PyObject *tensor_make_subclass(PyObject *Py_UNUSED(ignored), PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"cls", "data", "requires_grad", NULL};
    PyObject *type = NULL, *data = NULL;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|p:_make_subclass", PY_NAMES(names),
                                     &PyType_Type, &type, tensors.tensor_type, &data,
                                     &requires_grad)) {
        return NULL;
    }
    if (!PyType_IsSubtype((PyTypeObject *)type, tensors.tensor_type)) {
        PyErr_Format(PyExc_TypeError, "_make_subclass(): %s is not a subclass of Tensor",
                     ((PyTypeObject *)type)->tp_name);
        return NULL;
    }
    mt_tensor *tensor = new_alias(tensor_of(data));
    if (tensor == NULL) {
        return NULL;
    }
    if (requires_grad && tensor_require_grad(tensor) != 0) {
        mt_tensor_release(tensor);
        return NULL;
    }
    return tensor_wrap_as((PyTypeObject *)type, tensor);
}

/* x.as_subclass(cls): the same elements as an object of cls, with their history. */
PyObject *tensor_as_subclass(PyObject *self, PyObject *type)
{
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, tensors.tensor_type)) {
        return PyErr_Format(PyExc_TypeError, "as_subclass(): %R is not a subclass of Tensor", type);
    }
    mt_op alias = 0;
    mt_value value = value_tensor(tensor_of(self)), made;
    if (tensors_find_op("alias", &alias) != 0 || tensors_call(alias, &value, 1, &made, 1) != 0) {
        return NULL;
    }
    return tensor_wrap_as((PyTypeObject *)type, made.of.tensor);
}

static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(tensor_object, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(tensor_object, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

#define SLOT(name, function)     \
    {                            \
        name, (void *)(function) \
    }

static PyType_Slot slots[] = {
    SLOT(Py_tp_dealloc, tensor_dealloc),
    SLOT(Py_tp_traverse, tensor_traverse),
    SLOT(Py_tp_clear, tensor_clear),
    SLOT(Py_tp_setattro, tensor_setattro),
    SLOT(Py_tp_getattro, PyObject_GenericGetAttr),
    SLOT(Py_tp_hash, tensor_hash),
    SLOT(Py_tp_new, tensor_new),
    {Py_tp_doc,
     (char[]){
         "Tensor(*args)\n--\n\nNumbers of one type in any number of dimensions. tensor() makes one of "
         "data; Tensor(2, 3) one whose elements are not set."}},
    SLOT(Py_tp_free, PyObject_GC_Del),
    SLOT(Py_tp_members, members),
    SLOT(Py_tp_getset, tensor_properties),
    SLOT(Py_tp_methods, tensor_methods),
    SLOT(Py_tp_richcompare, tensor_compare),
    SLOT(Py_tp_iter, tensor_iter),
    SLOT(Py_mp_length, tensor_length),
    SLOT(Py_mp_subscript, tensor_getitem),
    SLOT(Py_mp_ass_subscript, tensor_setitem),
    SLOT(Py_sq_contains, tensor_contains),
    SLOT(Py_bf_getbuffer, tensor_getbuffer),
    SLOT(Py_bf_releasebuffer, tensor_releasebuffer),
#define X(slot, call) SLOT(Py_nb_##slot, tensor_##slot),
#include "tensors/tensor/operator_slots.def"
#undef X
    SLOT(Py_nb_add, tensor_add),
    SLOT(Py_nb_subtract, tensor_subtract),
    SLOT(Py_nb_multiply, tensor_multiply),
    SLOT(Py_nb_true_divide, tensor_true_divide),
    SLOT(Py_nb_power, tensor_power),
    SLOT(Py_nb_matrix_multiply, tensor_matmul),
    SLOT(Py_nb_inplace_power, tensor_inplace_power),
    SLOT(Py_nb_negative, tensor_negative),
    SLOT(Py_nb_positive, tensor_positive),
    SLOT(Py_nb_absolute, tensor_absolute),
    SLOT(Py_nb_invert, tensor_invert),
    SLOT(Py_nb_bool, tensor_truth),
    SLOT(Py_nb_int, tensor_int),
    SLOT(Py_nb_float, tensor_float),
    SLOT(Py_nb_index, tensor_index_number),
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "mindtorch_v2.Tensor",
    .basicsize = sizeof(tensor_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

py_part tensor_type_start;
int tensor_type_start(PyObject *module)
{
    if (py_add_type(module, &spec, NULL, "Tensor", &tensors.tensor_type) != 0) {
        return -1;
    }
    tensors.tensor_type->tp_name = "Tensor";    /* what messages show; __module__ stays */
    PyObject *priority = PyLong_FromLong(1000); /* NumPy leaves operators to us */
    if (priority == NULL) {
        return -1;
    }
    int status =
        PyObject_SetAttrString((PyObject *)tensors.tensor_type, "__array_priority__", priority);
    Py_DECREF(priority);
    return status;
}
