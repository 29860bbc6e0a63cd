/* SPDX-License-Identifier: Apache-2.0
 *
 * The attributes of a FunctionEvent (torch's names and units), computed from columns.
 *
 *   VALUE    may be set; what was set is in the event's dictionary and goes first
 *   DERIVED  times and memory: from columns, or (made by hand, or what they are made from was set)
 *            by torch's rules from the other attributes, in Python
 */
#include "profiler/results/model_object.h"

#include <string.h>

typedef struct event_field {
    const char *name;
    PyObject *(*get)(event_object *event); /* or NULL, and `get_of` with its argument */
    PyObject *(*get_of)(event_object *event, int argument);
    int argument;
    PyObject *key; /* interned */
} event_field;

/* ---- numbers --------------------------------------------------------------------------------- */

static PyObject *microseconds(int64_t ns)
{
    return PyFloat_FromDouble((double)ns / 1e3);
}

static int64_t duration(const event_object *event)
{
    const model_object *m = event->model;
    return (int64_t)((uint64_t)m->end_ns[event->index] - (uint64_t)m->start_ns[event->index]);
}

static bool is_async(const event_object *event)
{
    return (event->model->flags[event->index] & MTPROF_EVENT_FLAG_ASYNC) != 0;
}

static bool is_device_work(const event_object *event)
{
    return model_is_device_work(event->model, event->index);
}

static bool is_memory(const event_object *event)
{
    return event->model->kind[event->index] == MTPROF_EVENT_KIND_MEMORY ||
           event->model->kind[event->index] == MTPROF_EVENT_KIND_OUT_OF_MEMORY;
}

/* A number from a column. */
static PyObject *column_number(event_object *event, int id, int64_t otherwise)
{
    int64_t number = 0;
    if (event_item(event, (enum mtprof_column_id)id, otherwise, &number) != 0) {
        return NULL;
    }
    return event->model->types[id] == MTPROF_TYPE_U64
               ? PyLong_FromUnsignedLongLong((uint64_t)number)
               : PyLong_FromLongLong(number);
}

static PyObject *number_or_zero(event_object *event, int id)
{
    return column_number(event, id, 0);
}

static PyObject *constant(event_object *Py_UNUSED(event), int number)
{
    return PyLong_FromLong(number);
}

/* From a column of names + 1, 0: none. */
static PyObject *column_name(event_object *event, int id)
{
    int64_t name = 0;
    if (event_item(event, (enum mtprof_column_id)id, 0, &name) != 0) {
        return NULL;
    }
    return name != 0 ? model_name(event->model, (uint32_t)(name - 1)) : PyUnicode_FromString("");
}

/* ---- who it is ------------------------------------------------------------------------------- */

static PyObject *id_of_link(event_object *event, PyObject *(*otherwise)(event_object *));

static PyObject *get_zero(event_object *Py_UNUSED(event))
{
    return PyLong_FromLong(0);
}

static uint64_t last_id(model_object *m, const uint64_t *ids)
{
    uint64_t last = m->last_id;
    for (uint32_t i = 0; m->last_id == 0 && i < m->n; i++) {
        last = ids[i] > last ? ids[i] : last;
    }
    m->last_id = last;
    return last;
}

static PyObject *get_id(event_object *event)
{
    const void *data = NULL;
    if (model_column(event->model, MTPROF_COLUMN_CORRELATION, &data) != 0) {
        return NULL;
    }
    const uint64_t *ids = data;
    uint64_t id = ids != NULL ? ids[event->index] : event->index;
    if (ids != NULL && is_memory(event)) { /* has none: after all others, as in torch */
        return PyLong_FromUnsignedLongLong(last_id(event->model, ids) + 1 + event->index);
    }
    /* An annotation on a device track has the id of the host's annotation. */
    return id != 0 ? PyLong_FromUnsignedLongLong(id) : id_of_link(event, get_zero);
}

static PyObject *get_name(event_object *event)
{
    model_object *m = event->model;
    switch (m->kind[event->index]) {
    case MTPROF_EVENT_KIND_MEMORY: return PyUnicode_InternFromString("[memory]");
    case MTPROF_EVENT_KIND_OUT_OF_MEMORY: return PyUnicode_InternFromString("[OutOfMemory]");
    default: return model_name(m, mtprof_model_name_key(m->model, m->name[event->index]));
    }
}

static PyObject *get_trace_name(event_object *event)
{
    return is_memory(event) ? Py_NewRef(Py_None)
                            : model_name(event->model, event->model->name[event->index]);
}

static PyObject *get_false(event_object *Py_UNUSED(event))
{
    Py_RETURN_FALSE;
}

static PyObject *get_is_async(event_object *event)
{
    return PyBool_FromLong(is_async(event));
}

static PyObject *get_is_user_annotation(event_object *event)
{
    uint8_t kind = event->model->kind[event->index];
    return PyBool_FromLong(kind == MTPROF_EVENT_KIND_SCOPE || kind == MTPROF_EVENT_KIND_STEP ||
                           kind == MTPROF_EVENT_KIND_ANNOTATION);
}

static PyObject *get_is_python_function(event_object *event)
{
    return PyBool_FromLong(event->model->kind[event->index] == MTPROF_EVENT_KIND_FUNCTION);
}

static PyObject *get_scope(event_object *event)
{
    int64_t scope = 0;
    uint8_t kind = event->model->kind[event->index];
    if (event_item(event, MTPROF_COLUMN_RECORD_SCOPE, 0, &scope) != 0) {
        return NULL;
    }
    if (scope == 0 && (kind == MTPROF_EVENT_KIND_SCOPE || kind == MTPROF_EVENT_KIND_STEP)) {
        scope = MTPROF_RECORD_SCOPE_USER;
    }
    return PyLong_FromLongLong(scope);
}

static PyObject *get_sequence_nr(event_object *event)
{
    return column_number(event, MTPROF_COLUMN_SEQUENCE, -1);
}

static PyObject *get_step(event_object *event)
{
    return PyLong_FromLong(event->model->step[event->index]);
}

/* ---- where it ran ---------------------------------------------------------------------------- */

/* The thread of an event; of device work the thread that launched it. */
static int find_thread(const event_object *event, uint32_t *number)
{
    const model_object *m = event->model;
    mtprof_track track = {0};
    int64_t index = event->index;
    if (is_device_work(event) && event_item(event, MTPROF_COLUMN_LINK, event->index, &index) != 0) {
        return -1;
    }
    index = index < m->n ? index : event->index;
    *number = mtprof_model_track(m->model, m->track[index], &track) ? track.number : 0;
    return 0;
}

static PyObject *get_thread(event_object *event)
{
    uint32_t number = 0;
    return find_thread(event, &number) == 0 ? PyLong_FromUnsignedLong(number) : NULL;
}

static PyObject *get_fwd_thread(event_object *event)
{
    return is_memory(event) ? get_thread(event)
                            : column_number(event, MTPROF_COLUMN_FORWARD_THREAD, 0);
}

PyObject *event_device_type_of(mtprof_text name)
{
    PyObject *text = model_text(name);
    if (text == NULL || event_rules_set.device_types == NULL) {
        return text;
    }
    PyObject *type = PyDict_GetItemWithError(event_rules_set.device_types, text);
    if (type == NULL && !PyErr_Occurred()) { /* a device that torch has no name for */
        type = PyDict_GetItemString(event_rules_set.device_types, "PrivateUse1");
    }
    if (type == NULL && !PyErr_Occurred()) {
        return text;
    }
    Py_DECREF(text);
    return Py_XNewRef(type);
}

static PyObject *get_device_type(event_object *event)
{
    model_object *m = event->model;
    mtprof_device device = {{"CPU", 3}, -1};
    if (is_device_work(event)) {
        (void)mtprof_model_device(m->model, m->device[event->index], &device);
    }
    return event_device_type_of(device.type);
}

static PyObject *get_device_index(event_object *event)
{
    model_object *m = event->model;
    mtprof_device device = {0};
    mtprof_track track = {0};
    if (is_device_work(event) && mtprof_model_device(m->model, m->device[event->index], &device)) {
        return PyLong_FromLong(device.index);
    }
    if (m->kind[event->index] == MTPROF_EVENT_KIND_OVERHEAD) {
        return PyLong_FromLong(-1);
    }
    if (is_memory(event)) {
        return PyLong_FromLong(0);
    }
    (void)mtprof_model_track(m->model, m->track[event->index], &track);
    return PyLong_FromLongLong(track.pid);
}

static PyObject *get_device_resource_id(event_object *event)
{
    model_object *m = event->model;
    mtprof_track track = {0};
    if (is_memory(event)) {
        return get_thread(event);
    }
    (void)mtprof_model_track(m->model, m->track[event->index], &track);
    return PyLong_FromLongLong(track.tid);
}

static PyObject *get_use_device(event_object *event)
{
    return Py_NewRef(event->model->use_device);
}

static PyObject *get_activity_type(event_object *event)
{
    static const char *const names[] = {
        [MTPROF_EVENT_KIND_SCOPE] = "user_annotation",
        [MTPROF_EVENT_KIND_OP] = "cpu_op",
        [MTPROF_EVENT_KIND_RUNTIME] = "privateuse1_runtime",
        [MTPROF_EVENT_KIND_FUNCTION] = "python_function",
        [MTPROF_EVENT_KIND_STEP] = "user_annotation",
        [MTPROF_EVENT_KIND_LAUNCH] = "privateuse1_runtime",
        [MTPROF_EVENT_KIND_KERNEL] = "kernel",
        [MTPROF_EVENT_KIND_COPY] = "gpu_memcpy",
        [MTPROF_EVENT_KIND_SET] = "gpu_memset",
        [MTPROF_EVENT_KIND_CALL] = "privateuse1_runtime",
        [MTPROF_EVENT_KIND_SYNC] = "cuda_sync",
        [MTPROF_EVENT_KIND_ANNOTATION] = "gpu_user_annotation",
        [MTPROF_EVENT_KIND_OTHER] = "other",
        [MTPROF_EVENT_KIND_OVERHEAD] = "overhead",
    };
    uint8_t kind = event->model->kind[event->index];
    const char *type = event->model->info.device_type;
    const char *name = kind < sizeof names / sizeof names[0] ? names[kind] : NULL;
    if (name == NULL) {
        Py_RETURN_NONE;
    }
    if (strcmp(name, "privateuse1_runtime") == 0 && type != NULL && strcmp(type, "CUDA") == 0) {
        name = "cuda_runtime";
    }
    return PyUnicode_InternFromString(name);
}

/* ---- what it was given, and its stack -------------------------------------------------------- */

/* torch says None of these for memory events. */
static PyObject *inputs_or_none(event_object *event, int face)
{
    return is_memory(event) ? Py_NewRef(Py_None)
                            : event_inputs(event, (enum event_inputs_face)face);
}

PyObject *event_input_shapes(event_object *event)
{
    return event_inputs(event, EVENT_INPUT_SHAPES);
}

static PyObject *get_kwinputs(event_object *event)
{
    return is_memory(event) ? Py_NewRef(Py_None) : event_keyword_inputs(event);
}

static PyObject *get_stack(event_object *event)
{
    int64_t node = 0;
    return event_item(event, MTPROF_COLUMN_STACK, 0, &node) == 0
               ? event_stack_list(event->model, (uint32_t)node)
               : NULL;
}

static PyObject *get_extra_meta(event_object *event)
{
    int64_t metadata = 0;
    if (event_item(event, MTPROF_COLUMN_METADATA, 0, &metadata) != 0) {
        return NULL;
    }
    return metadata != 0 ? model_metadata_dict(event->model, (uint32_t)metadata)
                         : Py_NewRef(Py_None);
}

static PyObject *get_flops(event_object *event)
{
    return is_memory(event) ? Py_NewRef(Py_None) : column_number(event, MTPROF_COLUMN_FLOPS, 0);
}

/* ---- ids of other events --------------------------------------------------------------------- */

static PyObject *id_of_link(event_object *event, PyObject *(*otherwise)(event_object *))
{
    model_object *m = event->model;
    const void *ids = NULL;
    int64_t index = 0;
    if (event_item(event, MTPROF_COLUMN_LINK, UINT32_MAX, &index) != 0) {
        return NULL;
    }
    if (index >= m->n) {
        return otherwise(event);
    }
    if (model_column(m, MTPROF_COLUMN_CORRELATION, &ids) != 0) {
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(ids != NULL ? ((const uint64_t *)ids)[index]
                                                   : (uint64_t)index);
}

static PyObject *get_own_external_id(event_object *event)
{
    return is_memory(event) || event->model->kind[event->index] == MTPROF_EVENT_KIND_FUNCTION
               ? get_zero(event)
               : get_id(event);
}

static PyObject *get_external_id(event_object *event)
{
    return id_of_link(event, get_own_external_id);
}

static PyObject *get_linked_correlation_id(event_object *event)
{
    return id_of_link(event, get_zero);
}

/* ---- times and memory ------------------------------------------------------------------------ */

static PyObject *get_time_range(event_object *event)
{
    const model_object *m = event->model;
    uint64_t origin = (uint64_t)m->info.start_ns; /* a file may say anything: no overflow */
    double start = (double)(int64_t)((uint64_t)m->start_ns[event->index] - origin) / 1e3;
    double end = (double)(int64_t)((uint64_t)m->end_ns[event->index] - origin) / 1e3;
    return PyObject_CallFunction(event_rules_set.interval, "dd", start, end);
}

static PyObject *get_cpu_time_total(event_object *event)
{
    return microseconds(is_device_work(event) ? 0 : duration(event));
}

static PyObject *get_self_cpu_time_total(event_object *event)
{
    return microseconds(is_device_work(event) ? 0 : event->model->self_ns[event->index]);
}

/* Device time, of the event itself or with its children. */
static PyObject *device_time(event_object *event, int id)
{
    const model_object *m = event->model;
    int64_t ns = 0;
    if (is_device_work(event)) {
        return microseconds(duration(event));
    }
    if (m->info.device_type == NULL || m->use_device == Py_None || is_async(event)) {
        return microseconds(0);
    }
    return event_item(event, (enum mtprof_column_id)id, 0, &ns) == 0 ? microseconds(ns) : NULL;
}

/* ---- the list of them ------------------------------------------------------------------------ */

/* X(name, GET(getter) or OF(getter, argument), doc) */
#define GET(getter)         .get = (getter)
#define OF(getter, of_what) .get_of = (getter), .argument = (of_what)
#define VALUES(X)                                                                                 \
    X(id, GET(get_id), "Correlation id.")                                                         \
    X(name, GET(get_name), "Name; ProfilerStep* for every step.")                                 \
    X(trace_name, GET(get_trace_name), "Name as it was recorded; None for allocations.")          \
    X(overload_name, OF(column_name, MTPROF_COLUMN_OVERLOAD), "Overload, where it was captured.") \
    X(node_id, OF(constant, -1), "-1.")                                                           \
    X(is_remote, GET(get_false), "False.")                                                        \
    X(is_legacy, GET(get_false), "False.")                                                        \
    X(count, OF(constant, 1), "1.")                                                               \
    X(time_range, GET(get_time_range), "Interval, microseconds from the start of the trace.")     \
    X(thread, GET(get_thread), "Logical number of its thread.")                                   \
    X(fwd_thread, GET(get_fwd_thread), "Thread of the forward op.")                               \
    X(sequence_nr, GET(get_sequence_nr), "Autograd's number, or -1.")                             \
    X(kernels, GET(event_kernels), "Device work it launched itself.")                             \
    X(cpu_children, GET(event_cpu_children), "Host events directly inside it.")                   \
    X(cpu_parent, GET(event_cpu_parent), "The host event around it, or None.")                    \
    X(input_shapes, GET(event_input_shapes), "A list per input.")                                 \
    X(concrete_inputs, OF(inputs_or_none, EVENT_INPUT_VALUES), "Values of scalars.")              \
    X(kwinputs, GET(get_kwinputs), "Keyword inputs.")                                             \
    X(structured_input_shapes, OF(inputs_or_none, EVENT_INPUT_DIMS),                              \
      "Shapes, also of lists of tensors.")                                                        \
    X(structured_input_strides, OF(inputs_or_none, EVENT_INPUT_STRIDES),                          \
      "Strides in the same form.")                                                                \
    X(input_dtypes, OF(inputs_or_none, EVENT_INPUT_TYPES), "Types of the inputs.")                \
    X(stack, GET(get_stack), "file(line): function, innermost first.")                            \
    X(scope, GET(get_scope), "RecordScope as a number.")                                          \
    X(use_device, GET(get_use_device), "The device that was profiled, or None.")                  \
    X(cpu_memory_usage, OF(number_or_zero, MTPROF_COLUMN_ALLOCATED_CPU),                          \
      "Bytes allocated less freed, children included.")                                           \
    X(device_memory_usage, OF(number_or_zero, MTPROF_COLUMN_ALLOCATED_DEVICE),                    \
      "The same on devices.")                                                                     \
    X(is_async, GET(get_is_async), "Whether it does not nest by intent.")                         \
    X(device_type, GET(get_device_type), "DeviceType.")                                           \
    X(device_index, GET(get_device_index), "Device number; host events: process id.")             \
    X(device_resource_id, GET(get_device_resource_id), "Queue; host events: OS thread id.")       \
    X(flops, GET(get_flops), "Floating point operations.")                                        \
    X(is_user_annotation, GET(get_is_user_annotation), "Whether it is an annotation.")            \
    X(is_python_function, GET(get_is_python_function),                                            \
      "Whether it is a call of a Python function.")                                               \
    X(activity_type, GET(get_activity_type), "Category as exports have it.")                      \
    X(external_id, GET(get_external_id), "Id of the op it belongs to, or its own.")               \
    X(linked_correlation_id, GET(get_linked_correlation_id), "Id of the op it belongs to, or 0.") \
    X(extra_meta, GET(get_extra_meta), "Metadata given with it, a dict or None.")                 \
    X(module, OF(column_name, MTPROF_COLUMN_MODULE), "Path of nn.Modules around it.")             \
    X(step, GET(get_step), "Step in which it began; -1: none.")

#define DERIVED(X)                                                                            \
    X(cpu_time_total, GET(get_cpu_time_total), "Microseconds; 0 for device work.")            \
    X(self_cpu_time_total, GET(get_self_cpu_time_total), "The same without what ran inside.") \
    X(device_time_total, OF(device_time, MTPROF_COLUMN_DEVICE_NS),                            \
      "Microseconds of device work, with children.")                                          \
    X(self_device_time_total, OF(device_time, MTPROF_COLUMN_SELF_DEVICE_NS),                  \
      "The same of its own.")                                                                 \
    X(self_cpu_memory_usage, OF(number_or_zero, MTPROF_COLUMN_ALLOCATED_SELF_CPU),            \
      "Bytes, without children.")                                                             \
    X(self_device_memory_usage, OF(number_or_zero, MTPROF_COLUMN_ALLOCATED_SELF_DEVICE),      \
      "The same on devices.")

enum field_number {
#define X(name, get, doc) FIELD_##name,
    VALUES(X)
    DERIVED(X)
#undef X
        FIELD_COUNT
};

static event_field fields[FIELD_COUNT] = {
#define X(field, how, doc) {.name = #field, how},
    VALUES(X) DERIVED(X)
#undef X
};

/* Fields that others are computed from: once one of them is set, columns are not used. */
static const enum field_number sources[] = {
    FIELD_time_range,       FIELD_cpu_children,        FIELD_kernels,
    FIELD_is_async,         FIELD_device_type,         FIELD_use_device,
    FIELD_cpu_memory_usage, FIELD_device_memory_usage, FIELD_is_legacy,
};

/* What was set; a new reference. NULL: nothing, or an exception. The dictionary is held: a key of
 * the user's may compare by code that gives the event another one. */
static PyObject *own_value(const event_object *event, PyObject *key)
{
    PyObject *values = Py_XNewRef(event->values);
    PyObject *value = values != NULL ? Py_XNewRef(PyDict_GetItemWithError(values, key)) : NULL;
    Py_XDECREF(values);
    return value;
}

static PyObject *recorded_value(event_object *event, const event_field *field)
{
    return field->get != NULL ? field->get(event) : field->get_of(event, field->argument);
}

static PyObject *get_value(PyObject *self, void *closure)
{
    event_object *event = (event_object *)self;
    const event_field *field = closure;
    if (event->values != NULL) {
        PyObject *value = own_value(event, field->key);
        if (value != NULL || PyErr_Occurred()) {
            return value;
        }
    }
    if (event->model == NULL) {
        return PyErr_Format(PyExc_AttributeError, "'FunctionEvent' object has no attribute '%s'",
                            field->name);
    }
    return recorded_value(event, field);
}

static int set_value(PyObject *self, PyObject *value, void *closure)
{
    event_object *event = (event_object *)self;
    const event_field *field = closure;
    if (event->model != NULL) {
        event->model->changed++;
    }
    if (event->values == NULL) {
        event->values = PyDict_New();
        if (event->values == NULL) {
            return -1;
        }
    }
    PyObject *values = Py_NewRef(event->values); /* see own_value() */
    int status = value != NULL ? PyDict_SetItem(values, field->key, value)
                               : PyDict_DelItem(values, field->key); /* back to what was recorded */
    Py_DECREF(values);
    if (status != 0 && value == NULL && PyErr_ExceptionMatches(PyExc_KeyError)) {
        PyErr_SetObject(PyExc_AttributeError, field->key);
    }
    return status;
}

/* 1: fields are computed from columns, 0: they are not, -1: an exception. */
static int columns_tell(const event_object *event)
{
    if (event->model == NULL) {
        return 0;
    }
    for (size_t i = 0; event->values != NULL && i < sizeof sources / sizeof sources[0]; i++) {
        PyObject *found = own_value(event, fields[sources[i]].key);
        Py_XDECREF(found);
        if (found != NULL || PyErr_Occurred()) {
            return found == NULL ? -1 : 0;
        }
    }
    return 1;
}

static PyObject *get_derived(PyObject *self, void *closure)
{
    event_object *event = (event_object *)self;
    const event_field *field = closure;
    int tell = columns_tell(event);
    if (tell < 0) {
        return NULL;
    }
    if (tell > 0) {
        return recorded_value(event, field);
    }
    return PyObject_CallFunctionObjArgs(event_rules_set.derive, self, field->key, NULL);
}

static int set_derived(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(value), void *closure)
{
    const event_field *field = closure;
    PyErr_Format(PyExc_AttributeError, "property '%s' of 'FunctionEvent' object has no setter",
                 field->name);
    return -1;
}

PyGetSetDef event_getset[FIELD_COUNT + 1] = {
#define X(name, get, doc) {#name, get_value, set_value, doc, &fields[FIELD_##name]},
    VALUES(X)
#undef X
#define X(name, get, doc) {#name, get_derived, set_derived, doc, &fields[FIELD_##name]},
        DERIVED(X)
#undef X
            {NULL, NULL, NULL, NULL, NULL},
};

int event_fields_start(void)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        fields[i].key = PyUnicode_InternFromString(fields[i].name);
        if (fields[i].key == NULL) {
            return -1;
        }
    }
    return 0;
}
