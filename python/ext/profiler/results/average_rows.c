/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of key_averages(): the number of a row of the library's averages, and what a user set.
 *
 *     row ──► row_source, shared by the rows of a call ──► mtprof_averages ──► model
 *
 * One table of fields says how an attribute (torch's names and units) is read from an mtprof_row,
 * and how the attribute of any item of a list (an event, a changed row, a row made by hand) becomes
 * part of one: that is how lists of Python's become averages of the library again (given_rows.c).
 *
 *   AR1  While a row has no dictionary, every attribute is computed when it is read. Setting an
 *        attribute, asking for the dictionary (vars, pickle, copy) or reading a list that can
 *        be changed gives the row a dictionary with all fields.
 *   AR2  Only the family of the first event is never put there: it may be large.
 *   AR3  A row made by hand has no source: its dictionary and its class say everything.
 */
#include "profiler/results/model_object.h"

#include <math.h>
#include <string.h>
#include <structmember.h>

typedef struct row_source {
    size_t rows; /* that refer to it */
    mtprof_averages *averages;
    model_object *model;
    bool shapes; /* rows are grouped by input shapes */
} row_source;

typedef struct row_object {
    PyObject_HEAD row_source *source; /* NULL: AR3 */
    PyObject *values;                 /* dict, or NULL: AR1 */
    uint32_t index;
} row_object;

/* What a member of mtprof_row is, and its attribute. */
enum row_form {
    FORM_TEXT,
    FORM_TIME,  /* int64_t nanoseconds; float microseconds */
    FORM_BYTES, /* int64_t */
    FORM_COUNT, /* uint64_t; None is 0 */
    FORM_INT,   /* int32_t */
    FORM_BYTE,  /* uint8_t */
    FORM_FLAG,  /* uint8_t; bool */
    FORM_SHAPES,
    FORM_STACK,
    FORM_DEVICE,
    FORM_PARENT, /* uint32_t: whether there is one; the event */
    FORM_READ,   /* this and what follows: only read */
    FORM_SCOPE = FORM_READ,
    FORM_CHILDREN,
    FORM_USE_DEVICE,
    FORM_FALSE
};

typedef struct row_field {
    const char *name; /* with a leading '_': others' items need not have it */
    enum row_form form;
    size_t offset;
    PyObject *key; /* interned */
} row_field;

#define FIELD(name, form, member)                      \
    {                                                  \
        name, form, offsetof(mtprof_row, member), NULL \
    }

/* The first is the one that torch asks for first: errors about items that are no rows name it. */
static row_field fields[] = {
    FIELD("self_device_time_total", FORM_TIME, self_device_ns),
    FIELD("device_time_total", FORM_TIME, device_ns),
    FIELD("cpu_time_total", FORM_TIME, cpu_ns),
    FIELD("self_cpu_time_total", FORM_TIME, self_cpu_ns),
    FIELD("_loose", FORM_TIME, loose_ns),
    FIELD("key", FORM_TEXT, key),
    FIELD("overload_name", FORM_TEXT, overload),
    FIELD("input_shapes", FORM_SHAPES, input_shapes),
    FIELD("stack", FORM_STACK, stack),
    FIELD("device_type", FORM_DEVICE, device_type),
    FIELD("_kind", FORM_BYTE, kind),
    FIELD("is_async", FORM_FLAG, is_async),
    FIELD("is_user_annotation", FORM_FLAG, is_user_annotation),
    FIELD("cpu_parent", FORM_PARENT, has_parent),
    FIELD("node_id", FORM_INT, node_id),
    FIELD("count", FORM_COUNT, count),
    FIELD("_unrecorded", FORM_COUNT, unrecorded),
    FIELD("cpu_memory_usage", FORM_BYTES, cpu_memory),
    FIELD("self_cpu_memory_usage", FORM_BYTES, self_cpu_memory),
    FIELD("device_memory_usage", FORM_BYTES, device_memory),
    FIELD("self_device_memory_usage", FORM_BYTES, self_device_memory),
    FIELD("flops", FORM_COUNT, flops),
    FIELD("scope", FORM_SCOPE, record_scope),
    FIELD("cpu_children", FORM_CHILDREN, first_event),
    FIELD("use_device", FORM_USE_DEVICE, first_event),
    FIELD("is_remote", FORM_FALSE, first_event),
    FIELD("is_legacy", FORM_FALSE, first_event),
};

enum {
    N_FIELDS = sizeof fields / sizeof fields[0]
};

/* ---- attributes ------------------------------------------------------------------------------ */

static const row_field *find_field(PyObject *name)
{
    Py_INCREF(name);
    PyUnicode_InternInPlace(&name); /* the usual name of an attribute is interned already */
    const row_field *found = NULL;
    for (size_t i = 0; i < N_FIELDS && found == NULL; i++) {
        found = fields[i].key == name ? &fields[i] : NULL;
    }
    Py_DECREF(name);
    return found;
}

/* As many frames as rows are grouped by. */
static PyObject *read_stack(model_object *model, const mtprof_row *row)
{
    PyObject *frames = event_stack_list(model, row->stack);
    if (frames != NULL &&
        PyList_SetSlice(frames, (Py_ssize_t)row->stack_n, PY_SSIZE_T_MAX, NULL) != 0) {
        Py_CLEAR(frames);
    }
    return frames;
}

/* What the row's first event says. */
static PyObject *read_event(model_object *model, uint32_t index,
                            PyObject *(*get)(event_object *event))
{
    PyObject *event = model_prepare(model) == 0 ? model_event(model, index) : NULL;
    PyObject *value = event != NULL ? get((event_object *)event) : NULL;
    Py_XDECREF(event);
    return value;
}

static PyObject *read_member(const row_source *source, const mtprof_row *row,
                             const row_field *field)
{
    const void *member = (const char *)row + field->offset;
    switch (field->form) {
    case FORM_TEXT: return model_text(*(const mtprof_text *)member);
    case FORM_TIME: return PyFloat_FromDouble((double)*(const int64_t *)member / 1e3);
    case FORM_BYTES: return PyLong_FromLongLong(*(const int64_t *)member);
    case FORM_COUNT: return PyLong_FromUnsignedLongLong(*(const uint64_t *)member);
    case FORM_INT: return PyLong_FromLong(*(const int32_t *)member);
    case FORM_BYTE: return PyLong_FromLong(*(const uint8_t *)member);
    case FORM_FLAG: return PyBool_FromLong(*(const uint8_t *)member);
    case FORM_SHAPES:
        return source->shapes ? read_event(source->model, row->first_event, event_input_shapes)
                              : PyUnicode_FromString("");
    case FORM_STACK: return read_stack(source->model, row);
    case FORM_DEVICE: return event_device_type_of(row->device_type);
    case FORM_PARENT: return read_event(source->model, row->first_event, event_cpu_parent);
    case FORM_CHILDREN: return read_event(source->model, row->first_event, event_cpu_children);
    case FORM_SCOPE: return PyLong_FromUnsignedLong(*(const uint32_t *)member);
    case FORM_USE_DEVICE: return Py_NewRef(source->model->use_device);
    case FORM_FALSE: break;
    }
    Py_RETURN_FALSE;
}

static int read_row(const row_object *self, mtprof_row *row)
{
    row->struct_size = sizeof *row;
    mtprof_status status = mtprof_averages_get_row(self->source->averages, self->index, row);
    if (status != MTPROF_OK) {
        model_raise(status, NULL);
    }
    return status == MTPROF_OK ? 0 : -1;
}

static bool is_family(const row_field *field)
{
    return field->form == FORM_PARENT || field->form == FORM_CHILDREN;
}

/* AR1. -1: an exception. */
static int fill_dict(row_object *self)
{
    mtprof_row row;
    if (self->source == NULL || self->values != NULL) {
        return 0;
    }
    PyObject *values = read_row(self, &row) == 0 ? PyDict_New() : NULL;
    for (size_t i = 0; values != NULL && i < N_FIELDS; i++) {
        PyObject *value =
            is_family(&fields[i]) ? NULL : read_member(self->source, &row, &fields[i]);
        if (value != NULL && PyDict_SetItem(values, fields[i].key, value) == 0) {
            Py_DECREF(value);
        } else if (PyErr_Occurred()) {
            Py_XDECREF(value);
            Py_CLEAR(values);
        }
    }
    if (values == NULL) {
        return -1;
    }
    if (self->values == NULL) { /* or another thread was faster */
        self->values = Py_NewRef(values);
    }
    Py_DECREF(values);
    return 0;
}

static PyObject *row_getattr(PyObject *object, PyObject *name)
{
    row_object *self = (row_object *)object;
    const row_field *field = self->source != NULL ? find_field(name) : NULL;
    bool is_list = field != NULL && (field->form == FORM_STACK || field->form == FORM_SHAPES);
    int is_set = field == NULL;
    mtprof_row row;
    if (is_list && fill_dict(self) != 0) {
        return NULL;
    }
    if (field != NULL && self->values != NULL) {
        /* Held: a key of the user's may compare by code that gives the row another dictionary. */
        PyObject *values = Py_NewRef(self->values);
        is_set = is_family(field) ? PyDict_Contains(values, field->key) : 1;
        Py_DECREF(values);
    }
    if (is_set != 0) {
        return is_set > 0 ? PyObject_GenericGetAttr(object, name) : NULL;
    }
    return read_row(self, &row) == 0 ? read_member(self->source, &row, field) : NULL;
}

static int row_setattr(PyObject *object, PyObject *name, PyObject *value)
{
    return fill_dict((row_object *)object) == 0 ? PyObject_GenericSetAttr(object, name, value) : -1;
}

static PyObject *row_get_dict(PyObject *object, void *closure)
{
    return fill_dict((row_object *)object) == 0 ? PyObject_GenericGetDict(object, closure) : NULL;
}

/* ---- the type -------------------------------------------------------------------------------- */

static void source_release(row_source *source)
{
    if (source != NULL && --source->rows == 0) {
        mtprof_averages_free(source->averages);
        Py_XDECREF(source->model);
        PyMem_Free(source);
    }
}

static int row_traverse(row_object *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->values);
    return 0;
}

static int row_clear(row_object *self)
{
    Py_CLEAR(self->values);
    return 0;
}

static void row_dealloc(row_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->values);
    row_source *source = self->source;
    self->source = NULL;
    type->tp_free((PyObject *)self);
    source_release(source);
    Py_DECREF(type);
}

static PyMemberDef row_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(row_object, values), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef row_getset[] = {
    {"__dict__", row_get_dict, PyObject_GenericSetDict, "All attributes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static char row_doc[] = "A row of averages; FunctionEventAvg is made of it.";

static PyType_Slot row_slots[] = {
    {Py_tp_dealloc, row_dealloc},  {Py_tp_traverse, row_traverse}, {Py_tp_clear, row_clear},
    {Py_tp_getattro, row_getattr}, {Py_tp_setattro, row_setattr},  {Py_tp_members, row_members},
    {Py_tp_getset, row_getset},    {Py_tp_doc, row_doc},           {0, NULL},
};

static PyType_Spec row_spec = {
    .name = "mtprof.events.Row",
    .basicsize = sizeof(row_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = row_slots,
};

static int fill_list(row_source *source, PyTypeObject *type, PyObject *list)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        row_object *row = (row_object *)type->tp_alloc(type, 0);
        if (row == NULL) {
            return -1;
        }
        row->source = source;
        row->index = (uint32_t)i;
        source->rows++;
        PyList_SET_ITEM(list, i, (PyObject *)row);
    }
    return 0;
}

PyObject *row_list(model_object *model, mtprof_averages *averages, PyTypeObject *type, bool shapes)
{
    PyObject *list = PyList_New((Py_ssize_t)mtprof_averages_count(averages));
    row_source *source = PyMem_Calloc(1, sizeof *source);
    if (source == NULL) {
        mtprof_averages_free(averages);
        Py_XDECREF(list);
        return PyErr_NoMemory();
    }
    *source = (row_source){1, averages, (model_object *)Py_NewRef((PyObject *)model), shapes};
    if (list != NULL && fill_list(source, type, list) != 0) {
        Py_CLEAR(list);
    }
    source_release(source);
    return list;
}

/* ---- items of lists as rows ------------------------------------------------------------------ */

/* The text of any object; its bytes live as long as the buffer. */
static int write_text(const rows_buffer *buffer, PyObject *object, mtprof_text *text)
{
    PyObject *string = object == Py_None ? PyUnicode_New(0, 0) : PyObject_Str(object);
    PyObject *bytes = string != NULL ? PyUnicode_AsEncodedString(string, "utf-8", "replace") : NULL;
    int failed = bytes == NULL || PyList_Append(buffer->kept, bytes) != 0;
    if (!failed) {
        *text = (mtprof_text){PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)};
    }
    Py_XDECREF(string);
    Py_XDECREF(bytes);
    return failed ? -1 : 0;
}

static int write_time(PyObject *value, int64_t *ns)
{
    double rounded = PyFloat_AsDouble(value) * 1e3;
    if (PyErr_Occurred()) {
        return -1;
    }
    if (!(rounded > -9.2e18)) {
        *ns = isnan(rounded) ? 0 : INT64_MIN;
    } else {
        *ns = rounded < 9.2e18 ? (int64_t)llround(rounded) : INT64_MAX;
    }
    return 0;
}

static int write_number(PyObject *value, enum row_form form, void *member)
{
    PyObject *number = value == Py_None ? PyLong_FromLong(0) : PyNumber_Long(value);
    if (number == NULL) {
        return -1;
    }
    switch (form) {
    case FORM_COUNT: *(uint64_t *)member = PyLong_AsUnsignedLongLongMask(number); break;
    case FORM_BYTES: *(int64_t *)member = PyLong_AsLongLong(number); break;
    case FORM_INT: *(int32_t *)member = (int32_t)PyLong_AsLong(number); break;
    default: *(uint8_t *)member = (uint8_t)PyLong_AsUnsignedLongMask(number); break;
    }
    Py_DECREF(number);
    return PyErr_Occurred() ? -1 : 0;
}

static int write_device(rows_buffer *buffer, PyObject *value, mtprof_row *row)
{
    PyObject *name = PyUnicode_Check(value) ? NULL : PyObject_GetAttrString(value, "name");
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return -1;
    }
    PyErr_Clear();
    int status = write_text(buffer, name != NULL ? name : value, &row->device_type);
    Py_XDECREF(name);
    if (status == 0) {
        row->device = row->device_type.length != 3 || memcmp(row->device_type.bytes, "CPU", 3) != 0;
    }
    return status;
}

static int write_stack(rows_buffer *buffer, PyObject *value, mtprof_row *row)
{
    PyObject *frames = value != Py_None ? PySequence_Tuple(value) : PyTuple_New(0);
    Py_ssize_t n = frames != NULL ? PyTuple_GET_SIZE(frames) : 0;
    size_t most = (size_t)buffer->n_frames + (size_t)n;
    mtprof_text *grown =
        most < UINT32_MAX ? PyMem_Realloc(buffer->frames, most * sizeof *grown) : NULL;
    if (grown == NULL) {
        Py_XDECREF(frames);
        PyErr_NoMemory();
        return -1;
    }
    buffer->frames = grown;
    row->stack = n > 0 ? buffer->n_frames + 1 : 0;
    row->stack_n = (uint32_t)n;
    int status = frames != NULL ? 0 : -1;
    for (Py_ssize_t i = 0; i < n && status == 0; i++) {
        status = write_text(buffer, PyTuple_GET_ITEM(frames, i), &grown[buffer->n_frames++]);
    }
    Py_XDECREF(frames);
    return status;
}

static int write_member(rows_buffer *buffer, const row_field *field, PyObject *value,
                        mtprof_row *row)
{
    void *member = (char *)row + field->offset;
    int truth = 0;
    switch (field->form) {
    case FORM_TIME: return write_time(value, member);
    case FORM_TEXT: return write_text(buffer, value, member);
    case FORM_SHAPES:
        truth = PyObject_IsTrue(value);
        buffer->has_shapes |= truth > 0;
        return truth < 0 ? -1 : write_text(buffer, value, member);
    case FORM_STACK: return write_stack(buffer, value, row);
    case FORM_DEVICE: return write_device(buffer, value, row);
    case FORM_PARENT: row->has_parent = value != Py_None; return 0;
    case FORM_FLAG:
        truth = PyObject_IsTrue(value);
        *(uint8_t *)member = truth > 0;
        return truth < 0 ? -1 : 0;
    default: return write_number(value, field->form, member);
    }
}

/* Whether Python's value of a recorded field differs from the library's. */
static bool differs(const row_field *field, const mtprof_row *row)
{
    return (field->form == FORM_STACK && row->stack != 0) ||
           (field->form == FORM_DEVICE && row->device != 0) ||
           (field->form == FORM_PARENT && row->has_parent != 0);
}

static int write_item(rows_buffer *buffer, PyObject *item, mtprof_row *row)
{
    const row_object *recorded = (row_object *)item;
    *row = (mtprof_row){.struct_size = sizeof *row, .step = INT32_MIN, .track = UINT32_MAX};
    if (!PyObject_TypeCheck(item, profiler.average_type) || recorded->source == NULL) {
        recorded = NULL;
    } else if (read_row(recorded, row) != 0) {
        return -1;
    }
    bool is_unchanged = recorded != NULL && recorded->values == NULL;
    buffer->has_shapes |= is_unchanged && row->input_shapes.length > strlen("[]");
    int status = 0;
    for (size_t i = 0; status == 0 && fields[i].form < FORM_READ; i++) {
        if (is_unchanged && !differs(&fields[i], row)) {
            continue;
        }
        PyObject *value = is_unchanged ? read_member(recorded->source, row, &fields[i])
                                       : PyObject_GetAttr(item, fields[i].key);
        if (value != NULL) {
            status = write_member(buffer, &fields[i], value, row);
            Py_DECREF(value);
        } else if (fields[i].name[0] == '_' && PyErr_ExceptionMatches(PyExc_AttributeError)) {
            PyErr_Clear();
        } else {
            status = -1;
        }
    }
    if (recorded == NULL) {
        row->min_ns = row->max_ns = row->cpu_ns;
    }
    return status;
}

int rows_read(rows_buffer *buffer, PyObject *list)
{
    /* Attributes of later items may run code that changes the list. */
    PyObject *items = PyList_AsTuple(list);
    buffer->kept = PyList_New(0);
    int failed = items == NULL || buffer->kept == NULL || PyList_Append(buffer->kept, items) != 0;
    Py_XDECREF(items);
    if (failed) {
        return -1;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(items);
    if (n >= UINT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "too many rows: %zd", n);
        return -1;
    }
    buffer->rows = PyMem_Calloc((size_t)n + 1, sizeof buffer->rows[0]);
    if (buffer->rows == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (; buffer->n_rows < (uint32_t)n; buffer->n_rows++) {
        PyObject *item = PyTuple_GET_ITEM(items, (Py_ssize_t)buffer->n_rows);
        if (write_item(buffer, item, &buffer->rows[buffer->n_rows]) != 0) {
            return -1;
        }
    }
    for (uint32_t i = 0; i < buffer->n_rows && !buffer->has_shapes; i++) {
        buffer->rows[i].input_shapes.length = 0; /* then an empty list is not shown either */
    }
    return 0;
}

void rows_release(rows_buffer *buffer)
{
    PyMem_Free(buffer->rows);
    PyMem_Free(buffer->frames);
    Py_CLEAR(buffer->kept);
}

int rows_start(PyObject *module, PyObject *mixin)
{
    for (size_t i = 0; i < N_FIELDS; i++) {
        fields[i].key = PyUnicode_InternFromString(fields[i].name);
        if (fields[i].key == NULL) {
            return -1;
        }
    }
    return py_add_type(module, &row_spec, mixin, "Row", &profiler.average_type);
}
