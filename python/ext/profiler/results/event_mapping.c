/* SPDX-License-Identifier: Apache-2.0
 *
 * The mapping face of an event: MindTorch's keys. A key exists if its value was recorded.
 */
#include "profiler/results/model_object.h"

typedef struct mapping_key {
    const char *name;
    bool (*is_here)(const event_object *event);
    PyObject *(*get)(event_object *event); /* NULL: it is the value of an attribute */
    const char *from;                      /* that attribute's name */
    PyObject *key, *attribute; /* both names interned: a new text for each look-up would fill
                                  CPython's cache of attributes with names never seen again */
} mapping_key;

/* ---- which keys an event has ----------------------------------------------------------------- */

static bool always(const event_object *Py_UNUSED(event))
{
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

/* The device whose memory an op reported: -1 none, 0 the host, else an accelerator. */
static int memory_device(const event_object *event)
{
    int64_t before = -1;
    int64_t device = 0;
    if (!is_op(event) || (event->model->info.wants & MTPROF_WANT_MEMORY) == 0) {
        return -1;
    }
    if (event_item(event, MTPROF_COLUMN_MEMORY_BEFORE, -1, &before) != 0 ||
        event_item(event, MTPROF_COLUMN_MEMORY_DEVICE, 0, &device) != 0) {
        PyErr_Clear();
        return -1;
    }
    return before < 0 ? -1 : (int)device;
}

/* The metadata that was recorded with the event; 0: none. */
static uint32_t metadata_of(const event_object *event)
{
    int64_t metadata = 0;
    if (event_item(event, MTPROF_COLUMN_METADATA, 0, &metadata) != 0) {
        PyErr_Clear();
    }
    return (uint32_t)metadata;
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

static PyObject *get_thread_id(event_object *event)
{
    mtprof_track track = {0};
    (void)mtprof_model_track(event->model->model, event->model->track[event->index], &track);
    return PyLong_FromUnsignedLongLong(track.pthread_id);
}

static PyObject *get_runtime_name(event_object *Py_UNUSED(event))
{
    return PyUnicode_InternFromString("dispatch_kernel");
}

static PyObject *get_runtime_tid(event_object *event)
{
    mtprof_track track = {0};
    (void)mtprof_model_track(event->model->model, event->model->track[event->index], &track);
    return PyLong_FromLongLong(track.tid);
}

static PyObject *get_metadata(event_object *event)
{
    return model_metadata_dict(event->model, metadata_of(event));
}

static int64_t memory_at(const event_object *event, enum mtprof_column_id id)
{
    int64_t bytes = 0;
    (void)event_item(event, id, 0, &bytes); /* has_*_memory() saw that it is there */
    return bytes;
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
    {"name", always, NULL, "trace_name", NULL, NULL},
    {"kind", always, get_kind, NULL, NULL, NULL},
    {"device_type", always, get_device_type, NULL, NULL, NULL},
    {"start_ns", always, get_start_ns, NULL, NULL, NULL},
    {"end_ns", always, get_end_ns, NULL, NULL, NULL},
    {"duration_ns", always, get_duration_ns, NULL, NULL, NULL},
    {"step", always, NULL, "step", NULL, NULL},
    {"thread_id", always, get_thread_id, NULL, NULL, NULL},
    {"correlation_id", is_op, NULL, "id", NULL, NULL},
    {"runtime_name", is_op, get_runtime_name, NULL, NULL, NULL},
    {"runtime_tid", is_op, get_runtime_tid, NULL, NULL, NULL},
    {"input_shapes", has_inputs, NULL, "input_shapes", NULL, NULL},
    {"stack", has_stack, NULL, "stack", NULL, NULL},
    {"metadata", has_metadata, get_metadata, NULL, NULL, NULL},
    {"cpu_memory_allocated_before", has_cpu_memory, get_before, NULL, NULL, NULL},
    {"cpu_memory_allocated_after", has_cpu_memory, get_after, NULL, NULL, NULL},
    {"cpu_memory_allocated_delta", has_cpu_memory, get_delta, NULL, NULL, NULL},
    {"npu_memory_allocated_before", has_device_memory, get_before, NULL, NULL, NULL},
    {"npu_memory_allocated_after", has_device_memory, get_after, NULL, NULL, NULL},
    {"npu_memory_allocated_delta", has_device_memory, get_delta, NULL, NULL, NULL},
};

enum {
    N_KEYS = sizeof keys / sizeof keys[0]
};

int event_mapping_start(void)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        const char *from = keys[i].from != NULL ? keys[i].from : keys[i].name;
        keys[i].key = PyUnicode_InternFromString(keys[i].name);
        keys[i].attribute = PyUnicode_InternFromString(from);
        if (keys[i].key == NULL || keys[i].attribute == NULL) {
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

static PyObject *key_value(const mapping_key *key, PyObject *event)
{
    if (key->get != NULL) {
        return key->get((event_object *)event);
    }
    PyObject *value = PyObject_GetAttr(event, key->attribute);
    if (value == Py_None && key == &keys[0]) { /* allocations have no trace_name */
        Py_DECREF(value);
        value = PyObject_GetAttr(event, key->key);
    }
    return value;
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
    return key_value(found, self);
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

PyObject *event_to_dict(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    event_object *event = (event_object *)self;
    if (event->model == NULL) {
        return hand_made(self);
    }
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < N_KEYS; i++) {
        if (!keys[i].is_here(event)) {
            continue;
        }
        PyObject *value = key_value(&keys[i], self);
        if (value == NULL || PyDict_SetItem(dict, keys[i].key, value) != 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(value);
    }
    return dict;
}
