/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution traces (torch-contract 6.4.3): ops and annotations as nodes of a graph, in the schema
 * that Chakra's tools read.
 *
 *     1 process ─► thread ─► annotation ─► op ─► op        ctrl_deps points up
 *
 *   EX1  Nodes are numbered in the order of their beginning, from 1, and written when they end:
 *        thread nodes before what runs on the thread, the process last. Ids are unique.
 *   EX2  `rf_id` is the event's correlation id, "Record function id" in a Chrome trace.
 *   EX3  Calls into a device's runtime, functions of the host's language and device work are not
 *        nodes; what they enclose is a child of the node around them.
 *
 * What is not recorded stays empty: schemas (the name and its overload are written instead), shapes
 * and sizes of outputs, kernels.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/export/export_impl.h"
#include "mtprof/format/input_words.h"
#include "mtprof/model/facts/event_kinds.h"
#include "mtprof/model/text/tensor_words.h"

#include <mtprof/format.h>

#include <stdio.h>
#include <time.h>

enum {
    ROOT_ID = 1
};

#define NO_DEVICE UINT32_MAX

/* What is open on a track. */
typedef struct open_node {
    uint64_t correlation;
    uint64_t id; /* its own; if it is not a node, that of the node around it */
    uint64_t parent;
} open_node;

typedef struct node_track {
    open_node *nodes;
    size_t n, capacity;
    uint64_t id;     /* of the thread's node, 0: not written yet */
    uint32_t number; /* logical thread */
} node_track;

typedef struct execution {
    mtprof__export_job *job;
    mtb_writer *writer;
    node_track *tracks;
    size_t n_tracks, tracks_capacity;
    uint64_t next_id;
    uint32_t device;      /* whose name was written last, NO_DEVICE: none */
    char device_name[64]; /* printable, without quotes */
    bool any_node;
} execution;

/* ---- values ---------------------------------------------------------------------------------- */

enum aspect {
    ASPECT_VALUES,
    ASPECT_SHAPES,
    ASPECT_TYPES,
    ASPECT_STRIDES
};

/* Reads an input list with what belongs to it; each aspect is one walk over it. */
typedef struct value_walk {
    execution *e;
    const mtprof_model *model;
    mtb_writer *writer;
    const mtprof__payload *payload;
    enum aspect aspect;
    bool identified; /* tensors_in are the tensors of the list, in order */
    mtprof_input_walk list;
} value_walk;

static bool at_end(const value_walk *walk)
{
    return walk->list.word >= walk->list.n_words;
}

/* Traces name few devices, mostly the same one again. */
static void write_device(execution *e, uint32_t number)
{
    mtprof_device device;
    if (number != e->device) {
        e->device = number;
        e->device_name[0] = '\0';
        if (mtprof_model_device(e->job->model, number, &device)) {
            mtprof__device_text(&device, e->device_name, sizeof e->device_name);
        }
    }
    mtb_write_json(e->writer, e->device_name, strlen(e->device_name));
}

/* [tensor id, storage id, offset, elements, bytes of one, device] */
static void write_tensor(execution *e, const mtprof__tensor *tensor, int64_t elements,
                         uint32_t item_bytes)
{
    mtb_writer *writer = e->writer;
    const mtprof__tensor none = {0};
    const mtprof__tensor *t = tensor != NULL ? tensor : &none;
    char *at = mtb_writer_room(writer, 160);
    *at++ = '[';
    at = mtb_put_u64(at, t->tensor);
    *at++ = ',';
    at = mtb_put_u64(at, t->storage);
    *at++ = ',';
    at = mtb_put_i64(at, t->offset);
    *at++ = ',';
    at = mtb_put_i64(at, elements);
    *at++ = ',';
    at = mtb_put_u64(at, item_bytes);
    *at++ = ',';
    mtb_writer_took(writer, at);
    write_device(e, t->device);
    mtb_write_literal(writer, "]");
}

static void write_sizes(mtb_writer *writer, const uint64_t *sizes, uint32_t n)
{
    mtb_write_literal(writer, "[");
    for (uint32_t i = 0; i < n; i++) {
        mtb_write(writer, ",", i > 0);
        mtb_write_i64(writer, (int64_t)sizes[i]);
    }
    mtb_write_literal(writer, "]");
}

static void walk_tensor(value_walk *walk)
{
    const mtprof__payload *p = walk->payload;
    const mtprof_input_walk *tensor = &walk->list;
    mtprof_text type = mtprof_model_string(walk->model, tensor->string);
    uint32_t index = tensor->n_tensors - 1;
    switch (walk->aspect) {
    case ASPECT_VALUES:
        write_tensor(walk->e,
                     walk->identified && index < p->n_tensors_in ? &p->tensors_in[index] : NULL,
                     mtprof__tensor_elements(tensor), mtprof__type_bytes(type));
        break;
    case ASPECT_SHAPES: write_sizes(walk->writer, tensor->sizes, tensor->n_sizes); break;
    case ASPECT_STRIDES: write_sizes(walk->writer, tensor->strides, tensor->n_strides); break;
    case ASPECT_TYPES:
        mtb_write_literal(walk->writer, "Tensor(");
        mtb_write_json_inner(walk->writer, type.bytes, type.length);
        mtb_write_literal(walk->writer, ")");
        break;
    }
}

/* A double as JSON; infinities and NaN, which JSON lacks, by name. */
static void write_real(mtb_writer *writer, uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    if (value != value) {
        mtb_write_literal(writer, "\"nan\"");
    } else if (value - value != 0) {
        mtb_write_text(writer, value > 0 ? "\"inf\"" : "\"-inf\"");
    } else {
        mtb_write_double(writer, value);
    }
}

static void write_scalar(value_walk *walk)
{
    uint64_t value = walk->payload->scalars[walk->list.n_scalars - 1];
    switch (walk->list.kind) {
    case MTPROF_INPUT_INT: mtb_write_i64(walk->writer, (int64_t)value); break;
    case MTPROF_INPUT_REAL: write_real(walk->writer, value); break;
    case MTPROF_INPUT_BOOL: mtb_write_text(walk->writer, value != 0 ? "true" : "false"); break;
    default: {
        mtprof_text text = mtprof_model_string(walk->model, (uint32_t)value);
        mtb_write_json(walk->writer, text.bytes, text.length);
        break;
    }
    }
}

static void walk_scalar(value_walk *walk)
{
    static const char *const types[] = {"Int", "Double", "Bool", "String"};
    uint32_t kind = walk->list.kind;
    bool told = mtprof__input_is_scalar(kind) && walk->list.n_scalars <= walk->payload->n_scalars;
    if (walk->aspect == ASPECT_TYPES) {
        mtb_write_text(walk->writer, told ? types[kind - MTPROF_INPUT_INT] : "None");
    } else if (walk->aspect != ASPECT_VALUES) {
        mtb_write_literal(walk->writer, "[]");
    } else if (told) {
        write_scalar(walk);
    } else {
        mtb_write_literal(walk->writer, "\"<None>\"");
    }
}

static void walk_value(value_walk *walk, int depth);

static void walk_list(value_walk *walk, int depth)
{
    uint32_t count = walk->list.count;
    bool types = walk->aspect == ASPECT_TYPES;
    mtb_write_text(walk->writer, types ? "GenericList[" : "[");
    for (uint32_t i = 0; i < count && !at_end(walk); i++) {
        mtb_write(walk->writer, ",", i > 0);
        walk_value(walk, depth + 1);
    }
    mtb_write_literal(walk->writer, "]");
}

static void walk_value(value_walk *walk, int depth)
{
    bool more = mtprof__input_next(&walk->list);
    while (more && walk->list.kind == MTPROF_INPUT_KEYWORD) {
        more = mtprof__input_next(&walk->list); /* schemas of this format have no place for names */
    }
    if (!more) {
        mtb_write_text(walk->writer, walk->aspect == ASPECT_VALUES  ? "\"<None>\""
                                     : walk->aspect == ASPECT_TYPES ? "None"
                                                                    : "[]");
    } else if (walk->list.kind == MTPROF_INPUT_TENSOR) {
        walk_tensor(walk);
    } else if (walk->list.kind != MTPROF_INPUT_LIST) {
        walk_scalar(walk);
    } else if (depth < MTPROF__LIST_DEPTH) {
        walk_list(walk, depth);
    } else {
        mtprof__input_skip(&walk->list);
        walk->e->job->report.left_out += walk->aspect == ASPECT_VALUES;
        mtb_write_text(walk->writer, walk->aspect == ASPECT_TYPES ? "None" : "[]");
    }
}

static void write_inputs(execution *e, const mtprof__payload *p)
{
    static const char *const keys[] = {"\"values\":[", "],\"shapes\":[", "],\"types\":[",
                                       "],\"strides\":["};
    mtb_write_literal(e->writer, "        \"inputs\":{");
    bool has_list = p != NULL && (p->fields & MTPROF__HAS_INPUTS);
    const mtprof_input_walk list =
        mtprof__input_walk(has_list ? p->input_words : NULL, has_list ? p->n_input_words : 0);
    uint32_t tensors = mtprof__count_tensors(list);
    for (unsigned aspect = 0; aspect < 4; aspect++) {
        value_walk walk = {
            .e = e,
            .model = e->job->model,
            .writer = e->writer,
            .payload = p,
            .aspect = (enum aspect)aspect,
            .list = list,
            .identified =
                has_list && (p->fields & MTPROF__HAS_TENSORS_IN) && tensors <= p->n_tensors_in,
        };
        mtb_write_text(e->writer, keys[aspect]);
        for (bool first = true; has_list && !at_end(&walk); first = false) {
            if (!first) {
                mtb_write_literal(e->writer, ",");
            }
            if (aspect == ASPECT_TYPES) {
                mtb_write_literal(e->writer, "\"");
            }
            walk_value(&walk, 0);
            if (aspect == ASPECT_TYPES) {
                mtb_write_literal(e->writer, "\"");
            }
        }
    }
    mtb_write_literal(e->writer, "]},\n");
}

static void write_outputs(execution *e, const mtprof__payload *p)
{
    uint32_t n = p != NULL && (p->fields & MTPROF__HAS_TENSORS_OUT) ? p->n_tensors_out : 0;
    mtb_write_literal(e->writer, "        \"outputs\":{\"values\":[");
    for (uint32_t i = 0; i < n; i++) {
        mtb_write(e->writer, ",", i > 0);
        write_tensor(e, &p->tensors_out[i], 0, 0);
    }
    static const char *const rest[] = {"],\"shapes\":[", "],\"types\":[", "],\"strides\":["};
    static const char *const items[] = {"[]", "\"Tensor\"", "[]"};
    for (int k = 0; k < 3; k++) {
        mtb_write_text(e->writer, rest[k]);
        for (uint32_t i = 0; i < n; i++) {
            mtb_write(e->writer, ",", i > 0);
            mtb_write_text(e->writer, items[k]);
        }
    }
    mtb_write_literal(e->writer, "]},\n");
}

/* ---- nodes ----------------------------------------------------------------------------------- */

typedef struct node {
    uint64_t id, parent;
    mtprof_text name;
    const mtprof__payload *payload;
    uint64_t rf_id, fw_parent, scope, tid, fw_tid;
    int64_t sequence;
} node;

/* A number attribute; name and type are literals. */
#define write_number_attr(writer, name, type, number)                                         \
    do {                                                                                      \
        mtb_write_literal(writer, "{\"name\":\"" name "\",\"type\":\"" type "\",\"value\":"); \
        mtb_write_i64(writer, (int64_t)(number));                                             \
        mtb_write_literal(writer, "},");                                                      \
    } while (0)

/* The name of the op and of its overload: as much of a schema as a trace has. */
static void write_schema(mtb_writer *writer, const node *n)
{
    const mtprof__payload *p = n->payload;
    mtb_write_literal(writer, "{\"name\":\"op_schema\",\"type\":\"string\",\"value\":\"");
    if (p != NULL && (p->fields & MTPROF__HAS_OVERLOAD)) {
        mtb_write_json_inner(writer, n->name.bytes, n->name.length);
        if (p->overload.length > 0) {
            mtb_write_literal(writer, ".");
            mtb_write_json_inner(writer, p->overload.bytes, p->overload.length);
        }
    }
    mtb_write_literal(writer, "\"},");
}

static void write_node(execution *e, const node *n)
{
    mtb_writer *w = e->writer;
    mtb_write_text(w, e->any_node ? ",\n      {\n        \"id\":" : "\n      {\n        \"id\":");
    e->any_node = true;
    mtb_write_u64(w, n->id);
    mtb_write_member_json(w, "name", n->name.bytes, n->name.length);
    mtb_write_member_u64(w, "ctrl_deps", n->parent);
    mtb_write_literal(w, ",\n");
    write_inputs(e, n->payload);
    write_outputs(e, n->payload);
    mtb_write_literal(w, "        \"attrs\":[");
    write_number_attr(w, "rf_id", "uint64", n->rf_id);
    write_number_attr(w, "fw_parent", "uint64", n->fw_parent);
    write_number_attr(w, "seq_id", "int64", n->sequence);
    write_number_attr(w, "scope", "uint64", n->scope);
    write_number_attr(w, "tid", "uint64", n->tid);
    write_number_attr(w, "fw_tid", "uint64", n->fw_tid);
    write_schema(w, n);
    mtb_write_literal(w,
                      "{\"name\":\"kernel_backend\",\"type\":\"string\",\"value\":\"\"},"
                      "{\"name\":\"kernel_file\",\"type\":\"string\",\"value\":\"\"},"
                      "{\"name\":\"tensor_range\",\"type\":\"string\",\"value\":\"\"}]\n      }");
}

static void write_frame_node(execution *e, uint64_t id, const char *name, uint64_t tid)
{
    write_node(e, &(node){.id = id,
                          .parent = ROOT_ID,
                          .name = {name, strlen(name)},
                          .scope = MTPROF_RECORD_SCOPE_USER,
                          .tid = tid,
                          .sequence = -1});
}

/* ---- tracks ---------------------------------------------------------------------------------- */

/* The track of a number, with its node written; NULL when memory is refused. */
static node_track *track_get(execution *e, uint32_t number)
{
    if (number >= e->n_tracks) {
        if (!mtb_grow((void **)&e->tracks, &e->tracks_capacity, (size_t)number + 1,
                      sizeof *e->tracks)) {
            return NULL;
        }
        for (size_t i = e->n_tracks; i <= number; i++) {
            mtprof_track info;
            bool known = mtprof_model_track(e->job->model, (uint32_t)i, &info);
            e->tracks[i] = (node_track){.number = known ? info.number : (uint32_t)i + 1};
        }
        e->n_tracks = (size_t)number + 1;
    }
    node_track *track = &e->tracks[number];
    if (track->id == 0) {
        track->id = e->next_id++;
        write_frame_node(e, track->id, "[pytorch|profiler|execution_trace|thread]", track->number);
    }
    return track;
}

static const open_node *find_open(const node_track *track, uint64_t correlation)
{
    for (size_t i = track->n; i > 0; i--) {
        if (track->nodes[i - 1].correlation == correlation) {
            return &track->nodes[i - 1];
        }
    }
    return NULL;
}

/* The node that an event hangs under: its parent where that is open, else the thread. */
static uint64_t parent_id(const execution *e, const node_track *track, const mtprof__event *event)
{
    if (event->parent == 0) {
        return track->id;
    }
    const open_node *found = find_open(track, event->parent);
    if (found == NULL && (event->flags & MTPROF_EVENT_FLAG_FOREIGN_PARENT)) {
        for (size_t i = 0; i < e->n_tracks && found == NULL; i++) {
            found = find_open(&e->tracks[i], event->parent);
        }
    }
    return found != NULL ? found->id : track->id;
}

/* What is open on the thread of the forward op. */
static uint64_t forward_parent(const execution *e, uint64_t self, uint32_t thread)
{
    for (size_t i = 0; i < e->n_tracks; i++) {
        const node_track *track = &e->tracks[i];
        for (size_t k = track->number == thread ? track->n : 0; k > 0; k--) {
            if (track->nodes[k - 1].id != self) {
                return track->nodes[k - 1].id;
            }
        }
    }
    return 0;
}

static bool is_node(const mtprof__event *event)
{
    return mtprof__kind_in(event->kind, MTPROF__KINDS_OWNER);
}

static int node_begin(execution *e, const mtprof__event *event)
{
    node_track *track = track_get(e, event->track);
    if (track == NULL ||
        !mtb_grow((void **)&track->nodes, &track->capacity, track->n + 1, sizeof *track->nodes)) {
        return mtb_fail(MTPROF_ENOMEM, "execution trace: no memory for open nodes of track %u",
                        event->track);
    }
    uint64_t parent = parent_id(e, track, event);
    track->nodes[track->n++] = (open_node){.correlation = event->correlation,
                                           .id = is_node(event) ? e->next_id++ : parent,
                                           .parent = parent};
    return 0;
}

static void node_end(execution *e, const mtprof__event *event)
{
    node_track *track = event->track < e->n_tracks ? &e->tracks[event->track] : NULL;
    const open_node *open = track == NULL ? NULL : find_open(track, event->correlation);
    if (open == NULL) {
        return; /* its begin was not there */
    }
    size_t depth = (size_t)(open - track->nodes);
    uint64_t id = open->id;
    if (is_node(event)) {
        const mtprof__payload *p = event->payload;
        uint32_t fields = p != NULL ? p->fields : 0;
        bool forward = (fields & MTPROF__HAS_FORWARD_THREAD) && p->forward_thread != 0;
        uint64_t usual = event->kind == MTPROF_EVENT_KIND_OP ? 0 : MTPROF_RECORD_SCOPE_USER;
        write_node(e, &(node){
                          .id = id,
                          .parent = open->parent,
                          .name = event->name_text,
                          .payload = p,
                          .rf_id = event->correlation,
                          .fw_parent = forward ? forward_parent(e, id, p->forward_thread) : 0,
                          .scope = fields & MTPROF__HAS_RECORD_SCOPE ? p->record_scope : usual,
                          .tid = track->number,
                          .fw_tid = forward ? p->forward_thread : 0,
                          .sequence = fields & MTPROF__HAS_SEQUENCE ? p->sequence : -1,
                      });
        e->job->report.events++;
    }
    track->n = depth;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void write_head(execution *e)
{
    const mtprof_model_info *info = &e->job->info;
    time_t seconds = (time_t)(mtb_add_sat(info->start_ns, info->real_offset_ns) / 1000000000);
    struct tm parts = {0};
    char text[64] = "";
    if (gmtime_r(&seconds, &parts) != NULL) {
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
    }
    mtb_write_format(e->writer,
                     "{\n  \"schema\":\"1.1.1-chakra.0.0.4\",\"pid\":%llu,\"time\":\"%s\","
                     "\"start_ts\":%lld,\n  \"nodes\":[",
                     (unsigned long long)info->pid, text, (long long)(info->start_ns / 1000000));
}

static int take_event(void *context, const mtprof__event *event)
{
    execution *e = context;
    if (event->edge == MTPROF__EDGE_BEGIN) {
        return node_begin(e, event);
    }
    if (event->edge == MTPROF__EDGE_END) {
        node_end(e, event);
    }
    return 0;
}

int mtprof__export_execution(mtprof__export_job *job)
{
    execution e = {.job = job, .writer = job->writer, .next_id = ROOT_ID + 1, .device = NO_DEVICE};
    write_head(&e);
    int status = mtprof__export_events(job, take_event, &e, NULL);
    write_frame_node(&e, ROOT_ID, "[pytorch|profiler|execution_trace|process]", 0);
    mtb_write_literal(job->writer, "\n  ],\n  \"finish_ts\":");
    mtb_write_i64(job->writer, job->info.end_ns / 1000000);
    if (status == 0) {
        status = mtprof__export_damage(job);
    }
    mtprof__export_write_damage(job);
    mtb_write_literal(job->writer, "\n}");
    for (size_t i = 0; i < e.n_tracks; i++) {
        mtb_free(e.tracks[i].nodes);
    }
    mtb_free(e.tracks);
    return status;
}
