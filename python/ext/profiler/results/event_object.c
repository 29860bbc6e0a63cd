/* SPDX-License-Identifier: Apache-2.0
 *
 * FunctionEvent: a model and an index (model_object.h, MO1 to MO3). Its methods that need no speed
 * are Python's (mtprof/events.py puts them onto the type).
 */
#include "profiler/results/model_object.h"

#include <structmember.h>

event_rules event_rules_set;

/* ---- making ---------------------------------------------------------------------------------- */

PyObject *model_event(model_object *model, uint32_t index)
{
    event_object *event = model->events[index];
    if (event != NULL) {
        return Py_NewRef((PyObject *)event);
    }
    event = event_slot_new(model, index); /* not tracked: MO2 */
    if (event == NULL) {
        return NULL;
    }
    event->model = model;
    Py_INCREF(model);
    event->values = NULL;
    event->weakrefs = NULL;
    event->index = index;
    event->reserved = 0;
    model->events[index] = event;
    return (PyObject *)event;
}

static int fill(model_object *model, PyObject *list, Py_ssize_t at)
{
    for (uint32_t i = 0; i < model->n && at < PyList_GET_SIZE(list); i++) {
        if (model_lists(model, i)) {
            PyObject *event = model_event(model, i);
            if (event == NULL || PyList_SetItem(list, at++, event) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* The list gets places first, then events are put there: appending a list of them would touch all
 * of their memory twice more, for the references. */
PyObject *model_fill(model_object *self, PyObject *list)
{
    if (!PyList_Check(list)) {
        return PyErr_Format(PyExc_TypeError, "fill: a list is needed, not %R", Py_TYPE(list));
    }
    PyObject *none = model_prepare(self) == 0 ? Py_BuildValue("[O]", Py_None) : NULL;
    PyObject *places = none != NULL ? PySequence_Repeat(none, (Py_ssize_t)self->n_listed) : NULL;
    Py_XDECREF(none);
    if (places == NULL) {
        return NULL;
    }
    Py_ssize_t end = PyList_GET_SIZE(list);
    int failed = PyList_SetSlice(list, end, end, places);
    Py_DECREF(places);
    if (failed != 0) {
        return NULL;
    }
    model_slots_take(self);
    /* Each new object counts towards the next collection, which would find nothing new. */
    int enabled = PyGC_Disable();
    failed = fill(self, list, end);
    if (enabled) {
        PyGC_Enable();
    }
    if (failed != 0) {
        (void)PyList_SetSlice(list, end, PY_SSIZE_T_MAX, NULL); /* as it was; shrinks */
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *model_covers(model_object *self, PyObject *list)
{
    if (!PyList_Check(list) || !self->prepared || self->changed != 0 ||
        PyList_GET_SIZE(list) != (Py_ssize_t)self->n_listed) {
        Py_RETURN_FALSE;
    }
    Py_ssize_t at = 0;
    for (uint32_t i = 0; i < self->n; i++) {
        if (model_lists(self, i)) {
            if (PyList_GET_ITEM(list, at) != (PyObject *)self->events[i]) {
                Py_RETURN_FALSE;
            }
            at++;
        }
    }
    Py_RETURN_TRUE;
}

/* Made by hand: everything it says is in its dictionary, which __init__ (Python's) fills. */
static PyObject *event_new(PyTypeObject *type, PyObject *Py_UNUSED(args),
                           PyObject *Py_UNUSED(keywords))
{
    event_object *self = (event_object *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->values = PyDict_New();
        if (self->values == NULL) {
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static int event_traverse(event_object *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->values);
    return 0;
}

static int event_clear(event_object *self)
{
    Py_CLEAR(self->values);
    return 0;
}

static void event_dealloc(event_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->model != NULL) {
        self->model->events[self->index] = NULL; /* before anything that runs Python code */
    }
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    Py_CLEAR(self->values);
    bool own_memory = !event_in_slot(self);
    model_object *model = self->model;
    if (own_memory) {
        type->tp_free((PyObject *)self);
    }
    Py_XDECREF(model); /* last: the slot is its memory */
    Py_DECREF(type);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* From now on it may be part of a cycle. */
static void mark_written(event_object *self)
{
    if (!PyObject_GC_IsTracked((PyObject *)self)) {
        PyObject_GC_Track(self);
    }
}

static int event_setattr(PyObject *self, PyObject *name, PyObject *value)
{
    mark_written((event_object *)self);
    return PyObject_GenericSetAttr(self, name, value);
}

/* The caller can write to the dictionary: the event may differ from its columns. */
static void mark_changed(event_object *self)
{
    mark_written(self);
    if (self->model != NULL) {
        self->model->changed++;
    }
}

static PyObject *event_get_dict(PyObject *self, void *closure)
{
    mark_changed((event_object *)self);
    return PyObject_GenericGetDict(self, closure);
}

static int event_set_dict(PyObject *self, PyObject *value, void *closure)
{
    mark_changed((event_object *)self);
    return PyObject_GenericSetDict(self, value, closure);
}

static PyObject *event_get_model(event_object *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self->model != NULL ? (PyObject *)self->model : Py_None);
}

static PyObject *event_get_index(event_object *self, void *Py_UNUSED(closure))
{
    return self->model != NULL ? PyLong_FromUnsignedLong(self->index) : Py_NewRef(Py_None);
}

static PyObject *event_get_written(event_object *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(self->values != NULL);
}

static int event_true(PyObject *Py_UNUSED(self))
{
    return 1; /* a mapping without length: always true, whatever its keys */
}

static PyMemberDef event_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(event_object, values), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(event_object, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef event_methods[] = {
    {"to_dict", event_to_dict, METH_NOARGS,
     "to_dict($self, /)\n--\n\nThe mapping's keys and values as a dict."},
    {NULL, NULL, 0, NULL},
};

/* What is no field. Fields (event_fields.c) follow at the start of the module. */
static PyGetSetDef own_getset[] = {
    {"__dict__", event_get_dict, event_set_dict, "Attributes that were set.", NULL},
    {"_model", (getter)event_get_model, NULL, "The model it is from; None: made by hand.", NULL},
    {"_index", (getter)event_get_index, NULL, "Its number in the model.", NULL},
    {"_written", (getter)event_get_written, NULL, "Whether it has values of its own.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static char event_doc[] =
    "FunctionEvent(id, name, thread, start_us, end_us, *args, **kwargs)\n--\n\n"
    "One op, annotation, call or piece of device work that was recorded.\n\n"
    "Made by hand, it takes torch's further arguments; __init__ lists them. It has torch's attributes, and is a read-only mapping with MindTorch's keys.";

static PyType_Slot event_slots[] = {
    {Py_tp_new, event_new},
    {Py_tp_dealloc, event_dealloc},
    {Py_tp_traverse, event_traverse},
    {Py_tp_clear, event_clear},
    {Py_tp_setattro, event_setattr},
    {Py_tp_members, event_members},
    {Py_tp_methods, event_methods},
    {Py_tp_getset, own_getset},
    {Py_mp_subscript, event_subscript},
    {Py_sq_contains, event_contains},
    {Py_nb_bool, event_true},
    {Py_tp_doc, event_doc},
    {0, NULL},
};

static PyType_Spec event_spec = {
    .name = "mtprof.events.FunctionEvent",
    .basicsize = sizeof(event_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = event_slots,
};

static char mixin_doc[] = "Times as texts: for what has *_time_total and count.";

static PyType_Slot mixin_slots[] = {
    {Py_tp_doc, mixin_doc},
    {0, NULL},
};

static PyType_Spec mixin_spec = {
    .name = "mtprof.events.FormattedTimesMixin",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = mixin_slots,
};

static int add_fields(PyTypeObject *type)
{
    for (PyGetSetDef *field = event_getset; field->name != NULL; field++) {
        PyObject *descriptor = PyDescr_NewGetSet(type, field);
        if (descriptor == NULL ||
            PyObject_SetAttrString((PyObject *)type, field->name, descriptor) != 0) {
            Py_XDECREF(descriptor);
            return -1;
        }
        Py_DECREF(descriptor);
    }
    return 0;
}

static PyObject *set_rules(PyObject *Py_UNUSED(module), PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"device_types", "interval", "kernel", "derive", NULL};
    event_rules rules = {NULL, NULL, NULL, NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!OOO:set_event_rules", PY_NAMES(names),
                                     &PyDict_Type, &rules.device_types, &rules.interval,
                                     &rules.kernel, &rules.derive)) {
        return NULL;
    }
    Py_XSETREF(event_rules_set.device_types, Py_NewRef(rules.device_types));
    Py_XSETREF(event_rules_set.interval, Py_NewRef(rules.interval));
    Py_XSETREF(event_rules_set.kernel, Py_NewRef(rules.kernel));
    Py_XSETREF(event_rules_set.derive, Py_NewRef(rules.derive));
    Py_RETURN_NONE;
}

static PyObject *kind_name(PyObject *Py_UNUSED(module), PyObject *number)
{
    unsigned long kind = PyLong_AsUnsignedLong(number);
    if (kind == (unsigned long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    return event_kind_word(kind < UINT32_MAX ? (uint32_t)kind : UINT32_MAX);
}

static PyMethodDef event_functions[] = {
    {"kind_name", kind_name, METH_O,
     "kind_name($module, number, /)\n--\n\nThe word for a kind of event: 'op', 'scope' …"},
    {"set_event_rules", PY_CALL(set_rules), METH_VARARGS | METH_KEYWORDS,
     "What events are made of in Python; events.py calls it."},
    {NULL, NULL, 0, NULL},
};

py_part event_part;
int event_part(PyObject *module)
{
    PyTypeObject *mixin = NULL;
    if (event_fields_start() != 0 || event_mapping_start() != 0 ||
        PyModule_AddFunctions(module, event_functions) != 0 ||
        py_add_type(module, &mixin_spec, NULL, "FormattedTimesMixin", &mixin) != 0) {
        return -1;
    }
    int failed =
        py_add_type(module, &event_spec, (PyObject *)mixin, "FunctionEvent", &profiler.event_type);
    failed = failed != 0 || rows_start(module, (PyObject *)mixin) != 0;
    Py_DECREF(mixin);
    return failed != 0 || event_slots_start() != 0 ? -1 : add_fields(profiler.event_type);
}
