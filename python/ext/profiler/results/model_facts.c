/* SPDX-License-Identifier: Apache-2.0
 *
 * The structs of counters that a model has, as dictionaries.
 */
#include "profiler/results/model_object.h"

#include <stdio.h>
#include <string.h>

/* Puts a value under a key and releases it. false: an exception. */
static bool put(PyObject *dict, const char *key, PyObject *value)
{
    bool done = value != NULL && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return done;
}

static bool put_u64(PyObject *dict, const char *key, uint64_t value)
{
    return put(dict, key, PyLong_FromUnsignedLongLong(value));
}

static bool put_i64(PyObject *dict, const char *key, int64_t value)
{
    return put(dict, key, PyLong_FromLongLong(value));
}

/* The dictionary, or NULL where something did not fit in. */
static PyObject *finish(PyObject *dict, bool done)
{
    if (!done) {
        Py_CLEAR(dict);
    }
    return dict;
}

PyObject *model_info(model_object *self, void *Py_UNUSED(closure))
{
    mtprof_model_info info = {.struct_size = sizeof info};
    mtprof_status status = mtprof_model_get_info(self->model, &info);
    if (status != MTPROF_OK) {
        return model_raise(status, NULL);
    }
    PyObject *dict = PyDict_New();
    if (dict == NULL) {
        return NULL;
    }
    char uuid[40];
    (void)snprintf(uuid, sizeof uuid, "%016llx%016llx", (unsigned long long)info.uuid[0],
                   (unsigned long long)info.uuid[1]);
    PyObject *type =
        info.device_type != NULL ? PyUnicode_FromString(info.device_type) : Py_NewRef(Py_None);
    bool done = put(dict, "device_type", type) &&
                put(dict, "foreign", PyBool_FromLong(info.foreign != 0)) &&
                put_u64(dict, "pid", info.pid) && put_i64(dict, "start_ns", info.start_ns) &&
                put_i64(dict, "end_ns", info.end_ns) &&
                put_i64(dict, "real_offset_ns", info.real_offset_ns) &&
                put_u64(dict, "wants", info.wants) && put_u64(dict, "names", info.names) &&
                put_u64(dict, "tracks", info.tracks) && put_u64(dict, "devices", info.devices) &&
                put_u64(dict, "windows", info.windows) &&
                put(dict, "closed", PyBool_FromLong(info.closed != 0)) &&
                put(dict, "uuid", PyUnicode_FromString(uuid));
    return finish(dict, done);
}

PyObject *model_findings(model_object *self, PyObject *Py_UNUSED(ignored))
{
    mtprof_model_findings found = {.struct_size = sizeof found};
    mtprof_status status = MTPROF_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_model_get_findings(self->model, &found);
    Py_END_ALLOW_THREADS;
    PyObject *dict = status == MTPROF_OK ? PyDict_New() : model_raise(status, NULL);
    if (dict == NULL) {
        return NULL;
    }
    return finish(dict, put_u64(dict, "events", found.events) &&
                            put_u64(dict, "unmatched", found.unmatched) &&
                            put_u64(dict, "orphans", found.orphans) &&
                            put_u64(dict, "ends_without_begin", found.ends_without_begin) &&
                            put_u64(dict, "truncated", found.truncated) &&
                            put_u64(dict, "overlaps", found.overlaps) &&
                            put_u64(dict, "clock_back", found.clock_back) &&
                            put_u64(dict, "collapsed", found.collapsed) &&
                            put_u64(dict, "problems", found.problems) &&
                            put_u64(dict, "skipped", found.skipped) &&
                            put_u64(dict, "problem_bytes", found.problem_bytes) &&
                            put_u64(dict, "truncated_in_gaps", found.truncated_in_gaps) &&
                            put_u64(dict, "left_out", found.left_out));
}

static PyObject *lost_dict(const mtprof_health *health)
{
    PyObject *dict = PyDict_New();
    bool done = dict != NULL;
    for (uint32_t i = 0; done && i < MTPROF_HEALTH_LOST_END; i++) {
        if (health->lost_by[i] != 0) {
            done = put_u64(dict, mtprof_lost_cause(i), health->lost_by[i]);
        }
    }
    return finish(dict, done);
}

PyObject *model_health(model_object *self, PyObject *Py_UNUSED(ignored))
{
    mtprof_health health = {.struct_size = sizeof health};
    mtprof_status status = MTPROF_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_model_get_health(self->model, &health);
    Py_END_ALLOW_THREADS;
    PyObject *dict = status == MTPROF_OK ? PyDict_New() : model_raise(status, NULL);
    if (dict == NULL) {
        return NULL;
    }
    bool done =
        put_u64(dict, "threads", health.threads) && put_u64(dict, "begins", health.begins) &&
        put_u64(dict, "others", health.others) && put_u64(dict, "truncated", health.truncated) &&
        put_u64(dict, "launches", health.launches) &&
        put_u64(dict, "activities", health.activities) &&
        put_u64(dict, "unmatched", health.unmatched) && put_u64(dict, "lost", health.lost) &&
        put(dict, "lost_by", lost_dict(&health)) && put_u64(dict, "evicted", health.evicted) &&
        put_u64(dict, "stalls", health.stalls) &&
        put_u64(dict, "busy_at_stop", health.busy_at_stop) &&
        put_u64(dict, "texts_cut", health.texts_cut) &&
        put_u64(dict, "clock_back", health.clock_back) && put_u64(dict, "bytes", health.bytes) &&
        put_u64(dict, "stacks_missed", health.stacks_missed) &&
        put_u64(dict, "limit_ppm", health.limit_ppm) &&
        put_u64(dict, "limit_level", health.limit_level) &&
        put_u64(dict, "limit_changes", health.limit_changes) &&
        put_u64(dict, "unrecorded", health.unrecorded) &&
        put_u64(dict, "unrecorded_estimated", health.unrecorded_estimated) &&
        put_u64(dict, "without_payload", health.without_payload) &&
        put_u64(dict, "own_cost_ns", health.own_cost_ns) &&
        put_u64(dict, "own_cost_of_ns", health.own_cost_of_ns) &&
        put_u64(dict, "problems", health.problems) &&
        put_u64(dict, "problem_bytes", health.problem_bytes) &&
        put_u64(dict, "problem_offset", health.problem_offset) &&
        put(dict, "pair_cost_ns", PyFloat_FromDouble((double)health.pair_cost_ps / 1e3)) &&
        put(dict, "written_behind", PyBool_FromLong(health.written_behind != 0)) &&
        put(dict, "unlocked", PyBool_FromLong(health.unlocked != 0));
    return finish(dict, done);
}

PyObject *model_damage(model_object *self, PyObject *Py_UNUSED(ignored))
{
    mtprof_damage damage = {.struct_size = sizeof damage};
    mtprof_status status = MTPROF_OK;
    Py_BEGIN_ALLOW_THREADS;
    status = mtprof_model_get_damage(self->model, &damage);
    Py_END_ALLOW_THREADS;
    PyObject *dict = status == MTPROF_OK ? PyDict_New() : model_raise(status, NULL);
    if (dict == NULL) {
        return NULL;
    }
    return finish(dict, put_u64(dict, "problems", damage.problems) &&
                            put_u64(dict, "bytes", damage.bytes) &&
                            put_u64(dict, "offset", damage.offset));
}

/* ---- metadata -------------------------------------------------------------------------------- */

static PyObject *metadatum_value(const mtprof_metadatum *item)
{
    double real = 0;
    switch (item->type) {
    case MTPROF_META_INT: return PyLong_FromLongLong((int64_t)item->value);
    case MTPROF_META_UINT: return PyLong_FromUnsignedLongLong(item->value);
    case MTPROF_META_BOOL: return PyBool_FromLong(item->value != 0);
    case MTPROF_META_REAL:
        memcpy(&real, &item->value, sizeof real);
        return PyFloat_FromDouble(real);
    default: return model_text(item->text);
    }
}

static bool put_metadatum(PyObject *dict, const mtprof_metadatum *item)
{
    PyObject *key = model_text(item->key);
    PyObject *value = key != NULL ? metadatum_value(item) : NULL;
    bool done = value != NULL && PyDict_SetItem(dict, key, value) == 0;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return done;
}

PyObject *model_metadata_dict(const model_object *self, uint32_t metadata)
{
    mtprof_metadatum item;
    PyObject *dict = PyDict_New();
    bool done = dict != NULL;
    for (uint32_t i = 0; done && mtprof_model_event_metadata(self->model, metadata, i, &item);
         i++) {
        done = put_metadatum(dict, &item);
    }
    return finish(dict, done);
}

PyObject *model_metadata_items(const mtprof_metadatum *items, uint32_t n)
{
    PyObject *dict = PyDict_New();
    bool done = dict != NULL;
    for (uint32_t i = 0; done && i < n; i++) {
        done = put_metadatum(dict, &items[i]);
    }
    return finish(dict, done);
}

PyObject *model_trace_metadata(model_object *self, PyObject *Py_UNUSED(ignored))
{
    mtprof_metadatum item;
    PyObject *dict = PyDict_New();
    bool done = dict != NULL;
    for (uint32_t i = 0; done && mtprof_model_metadata(self->model, i, &item); i++) {
        done = put_metadatum(dict, &item);
    }
    return finish(dict, done);
}
