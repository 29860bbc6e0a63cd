/* SPDX-License-Identifier: Apache-2.0
 *
 * The mapping face of an event: MindTorch's keys. A key is there when what it tells was recorded.
 */
#include "profiler/results/model_object.h"

typedef struct mapping_key {
    const char *name;
    bool (*is_here)(const event_object *event);
    PyObject *(*get)(event_object *event);
    PyObject *key; /* interned */
} mapping_key;

/* ---- which keys an event has ----------------------------------------------------------------- */

static bool always(const event_object *event)
{
    (void)event;
    return true;
}

static bool is_op(const event_object *event)
{
    return event->model->kind[event->index] == MTPROF_EVENT_KIND_OP;
}

static bool is_scope(const event_object *event)
{
    return event->model->kind[event->index] == MTPROF_EVENT_KIND_SCOPE ||
           event->model->kind[event->index] == MTPROF_EVENT_KIND_STEP;
}

static bool has_inputs(const event_object *event)
{
    return is_op(event) && (event->model->info.wants & MTPROF_WANT_INPUTS) != 0;
}

static bool has_stack(const event_object *event)
{
    return (is_op(event) || is_scope(event)) &&
           (event->model->info.wants & MTPROF_WANT_STACKS) != 0;
}

/* Memory of which device was told with an op: -1 none, 0 the host's, else a device's. */
static int memory_device(const event_object *event)
{
    model_object *m = event->model;
    const void *before = NULL;
    const void *device = NULL;
    if (!is_op(event) || (m->info.wants & MTPROF_WANT_MEMORY) == 0) {
        return -1;
    }
    if (model_column(m, MTPROF_COLUMN_MEMORY_BEFORE, &before) != 0 ||
        model_column(m, MTPROF_COLUMN_MEMORY_DEVICE, &device) != 0) {
        PyErr_Clear();
        return -1;
    }
    if (before == NULL || ((const int64_t *)before)[event->index] < 0) {
        return -1;
    }
    return device != NULL ? ((const uint8_t *)device)[event->index] : 0;
}

/* Which metadata was told with it; 0: none. */
static uint32_t metadata_of(const event_object *event)
{
    const void *data = NULL;
    if (model_column(event->model, MTPROF_COLUMN_METADATA, &data) != 0) {
        PyErr_Clear();
    }
    return data != NULL ? ((const uint32_t *)data)[event->index] : 0;
}

static bool has_metadata(const event_object *event)
{
    return metadata_of(event) != 0;
}

static bool has_cpu_memory(const event_object *event)
{
    return memory_device(event) == 0;
}

static bool has_device_memory(const event_object *event)
{
    return memory_device(event) > 0;
}

/* ---- what they say --------------------------------------------------------------------------- */

/* Attributes that keys are taken from, interned: a new text for each look-up would fill CPython's
 * cache of attributes with names that are never seen again. */
enum {
    NAME_NAME,
    NAME_TRACE_NAME,
    NAME_STEP,
    NAME_ID,
    NAME_INPUT_SHAPES,
    NAME_STACK,
    NAME_COUNT
};
static PyObject *names[NAME_COUNT];

static PyObject *attribute(event_object *event, int name)
{
    return PyObject_GetAttr((PyObject *)event, names[name]);
}

static PyObject *get_name(event_object *event)
{
    PyObject *name = attribute(event, NAME_TRACE_NAME);
    if (name == Py_None) {
        Py_DECREF(name);
        name = attribute(event, NAME_NAME);
    }
    return name;
}

PyObject *event_kind_word(uint32_t kind)
{
    return PyUnicode_InternFromString(
        mtprof_event_kind_name(kind == MTPROF_EVENT_KIND_STEP ? MTPROF_EVENT_KIND_SCOPE : kind));
}

static PyObject *get_kind(event_object *event)
{
    return event_kind_word(event->model->kind[event->index]);
}

/* The device it was dispatched to, or ran on. */
static PyObject *get_device_type(event_object *event)
{
    mtprof_device device = {{"CPU", 3}, -1};
    if ((event->model->flags[event->index] & MTPROF_EVENT_FLAG_DISPATCHED) != 0) {
        const char *type = event->model->info.device_type;
        return PyUnicode_InternFromString(type != NULL ? type : "NPU");
    }
    (void)mtprof_model_device(event->model->model, event->model->device[event->index], &device);
    return model_text(device.type);
}

static PyObject *get_start_ns(event_object *event)
{
    return PyLong_FromLongLong(event->model->start_ns[event->index]);
}

static PyObject *get_end_ns(event_object *event)
{
    return PyLong_FromLongLong(event->model->end_ns[event->index]);
}

static PyObject *get_duration_ns(event_object *event)
{
    const model_object *m = event->model;
    return PyLong_FromLongLong(
        (int64_t)((uint64_t)m->end_ns[event->index] - (uint64_t)m->start_ns[event->index]));
}

static PyObject *get_step(event_object *event)
{
    return attribute(event, NAME_STEP);
}

static PyObject *get_thread_id(event_object *event)
{
    mtprof_track track = {0};
    (void)mtprof_model_track(event->model->model, event->model->track[event->index], &track);
    return PyLong_FromUnsignedLongLong(track.pthread_id);
}

static PyObject *get_correlation_id(event_object *event)
{
    return attribute(event, NAME_ID);
}

static PyObject *get_runtime_name(event_object *event)
{
    (void)event;
    return PyUnicode_InternFromString("dispatch_kernel");
}

static PyObject *get_runtime_tid(event_object *event)
{
    mtprof_track track = {0};
    (void)mtprof_model_track(event->model->model, event->model->track[event->index], &track);
    return PyLong_FromLongLong(track.tid);
}

static PyObject *get_input_shapes(event_object *event)
{
    return attribute(event, NAME_INPUT_SHAPES);
}

static PyObject *get_stack(event_object *event)
{
    return attribute(event, NAME_STACK);
}

static PyObject *get_metadata(event_object *event)
{
    return model_metadata_dict(event->model, metadata_of(event));
}

static int64_t memory_at(const event_object *event, enum mtprof_column_id id)
{
    const void *data = NULL;
    (void)model_column(event->model, id, &data); /* has_*_memory() saw that it is there */
    return data != NULL ? ((const int64_t *)data)[event->index] : 0;
}

static PyObject *get_before(event_object *event)
{
    return PyLong_FromLongLong(memory_at(event, MTPROF_COLUMN_MEMORY_BEFORE));
}

static PyObject *get_after(event_object *event)
{
    return PyLong_FromLongLong(memory_at(event, MTPROF_COLUMN_MEMORY_AFTER));
}

static PyObject *get_delta(event_object *event)
{
    return PyLong_FromLongLong((int64_t)((uint64_t)memory_at(event, MTPROF_COLUMN_MEMORY_AFTER) -
                                         (uint64_t)memory_at(event, MTPROF_COLUMN_MEMORY_BEFORE)));
}

static mapping_key keys[] = {
    {"name", always, get_name, NULL},
    {"kind", always, get_kind, NULL},
    {"device_type", always, get_device_type, NULL},
    {"start_ns", always, get_start_ns, NULL},
    {"end_ns", always, get_end_ns, NULL},
    {"duration_ns", always, get_duration_ns, NULL},
    {"step", always, get_step, NULL},
    {"thread_id", always, get_thread_id, NULL},
    {"correlation_id", is_op, get_correlation_id, NULL},
    {"runtime_name", is_op, get_runtime_name, NULL},
    {"runtime_tid", is_op, get_runtime_tid, NULL},
    {"input_shapes", has_inputs, get_input_shapes, NULL},
    {"stack", has_stack, get_stack, NULL},
    {"metadata", has_metadata, get_metadata, NULL},
    {"cpu_memory_allocated_before", has_cpu_memory, get_before, NULL},
    {"cpu_memory_allocated_after", has_cpu_memory, get_after, NULL},
    {"cpu_memory_allocated_delta", has_cpu_memory, get_delta, NULL},
    {"npu_memory_allocated_before", has_device_memory, get_before, NULL},
    {"npu_memory_allocated_after", has_device_memory, get_after, NULL},
    {"npu_memory_allocated_delta", has_device_memory, get_delta, NULL},
};

enum {
    N_KEYS = sizeof keys / sizeof keys[0]
};

int event_mapping_start(void)
{
    static const char *const texts[NAME_COUNT] = {
        [NAME_NAME] = "name", [NAME_TRACE_NAME] = "trace_name",     [NAME_STEP] = "step",
        [NAME_ID] = "id",     [NAME_INPUT_SHAPES] = "input_shapes", [NAME_STACK] = "stack",
    };
    for (size_t i = 0; i < NAME_COUNT; i++) {
        names[i] = PyUnicode_InternFromString(texts[i]);
        if (names[i] == NULL) {
            return -1;
        }
    }
    for (size_t i = 0; i < N_KEYS; i++) {
        keys[i].key = PyUnicode_InternFromString(keys[i].name);
        if (keys[i].key == NULL) {
            return -1;
        }
    }
    return 0;
}

/* ---- the mapping ----------------------------------------------------------------------------- */

/* The entry of a key that this event has; NULL: it has not. */
static const mapping_key *find_key(const event_object *event, PyObject *key)
{
    if (!PyUnicode_Check(key)) {
        return NULL;
    }
    for (size_t i = 0; i < N_KEYS; i++) {
        if (keys[i].key == key || PyUnicode_Compare(keys[i].key, key) == 0) {
            return keys[i].is_here(event) ? &keys[i] : NULL;
        }
    }
    return NULL;
}

/* Events made by hand have no columns: Python makes a dict of their attributes. */
static PyObject *hand_made(PyObject *self)
{
    return PyObject_CallFunction(event_rules_set.derive, "Os", self, "mapping");
}

PyObject *event_subscript(PyObject *self, PyObject *key)
{
    event_object *event = (event_object *)self;
    if (event->model == NULL) {
        PyObject *dict = hand_made(self);
        PyObject *value = dict != NULL ? PyObject_GetItem(dict, key) : NULL;
        Py_XDECREF(dict);
        return value;
    }
    const mapping_key *found = find_key(event, key);
    if (found == NULL) {
        return model_key_error(key);
    }
    return found->get(event);
}

int event_contains(PyObject *self, PyObject *key)
{
    event_object *event = (event_object *)self;
    if (event->model == NULL) {
        PyObject *dict = hand_made(self);
        int found = dict != NULL ? PyDict_Contains(dict, key) : -1;
        Py_XDECREF(dict);
        return found;
    }
    return find_key(event, key) != NULL;
}

PyObject *event_to_dict(PyObject *self, PyObject *ignored)
{
    event_object *event = (event_object *)self;
    (void)ignored;
    if (event->model == NULL) {
        return hand_made(self);
    }
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < N_KEYS; i++) {
        if (!keys[i].is_here(event)) {
            continue;
        }
        PyObject *value = keys[i].get(event);
        if (value == NULL || PyDict_SetItem(dict, keys[i].key, value) != 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(value);
    }
    return dict;
}
