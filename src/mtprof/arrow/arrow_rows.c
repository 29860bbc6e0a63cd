/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables that are small beside the events: averages, steps, tracks, frames of stacks. Copies.
 */
#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/keyset.h"
#include "mtprof/arrow/arrow_table.h"

#include <string.h>

#define FIELD MTPROF__ARROW_FIELD

static mtprof_text text_of(const char *text)
{
    return (mtprof_text){text, strlen(text)};
}

/* ---- averages -------------------------------------------------------------------------------- */

typedef struct average_row {
    mtprof_row row;
    mtprof_text kind;
} average_row;

static const mtprof__arrow_field average_fields[] = {
    FIELD(average_row, row.key, "name", "U"),
    FIELD(average_row, row.overload, "overload", "U", .distinct = true, .nullable = true),
    FIELD(average_row, row.input_shapes, "input_shapes", "U", .nullable = true),
    FIELD(average_row, row.module, "module", "U", .distinct = true, .nullable = true),
    FIELD(average_row, row.step, "step", "i", .nullable = true, .none = INT32_MIN),
    FIELD(average_row, row.track, "track", "I", .nullable = true, .none = -1),
    FIELD(average_row, kind, "kind", "U", .distinct = true),
    FIELD(average_row, row.device, "device", "C"),
    FIELD(average_row, row.device_type, "device_type", "U", .distinct = true),
    FIELD(average_row, row.is_async, "is_async", "b"),
    FIELD(average_row, row.is_user_annotation, "is_user_annotation", "b"),
    FIELD(average_row, row.stack, "stack", "I", .nullable = true),
    FIELD(average_row, row.count, "count", "L"),
    FIELD(average_row, row.cpu_ns, "cpu_ns", "l"),
    FIELD(average_row, row.self_cpu_ns, "self_cpu_ns", "l"),
    FIELD(average_row, row.device_ns, "device_ns", "l"),
    FIELD(average_row, row.self_device_ns, "self_device_ns", "l"),
    FIELD(average_row, row.min_ns, "min_ns", "l"),
    FIELD(average_row, row.max_ns, "max_ns", "l"),
    FIELD(average_row, row.cpu_memory, "cpu_memory", "l"),
    FIELD(average_row, row.self_cpu_memory, "self_cpu_memory", "l"),
    FIELD(average_row, row.device_memory, "device_memory", "l"),
    FIELD(average_row, row.self_device_memory, "self_device_memory", "l"),
    FIELD(average_row, row.flops, "flops", "L"),
};

static void read_average(const void *context, uint64_t index, void *place)
{
    average_row *row = place;
    row->row.struct_size = sizeof row->row;
    (void)mtprof_averages_get_row(context, (uint32_t)index, &row->row);
    if (mtprof_averages_model(context) == NULL) {
        row->row.stack = 0; /* of rows that were given: no node of a model */
        row->row.track = UINT32_MAX;
    }
    row->kind = text_of(mtprof_event_kind_name(row->row.kind));
}

mtprof_status mtprof_arrow_averages(const mtprof_averages *averages,
                                    const mtprof_arrow_options *options,
                                    struct ArrowArrayStream *out)
{
    average_row row = {.kind = {"", 0}};
    mtprof__arrow_table *table = mtprof__arrow_table_new(mtprof_averages_count(averages));
    bool ok = table != NULL && mtprof__arrow_fill(table, average_fields, MT_COUNT(average_fields),
                                                  read_average, averages, &row);
    return mtprof__arrow_give(table, ok, "averages", options, out);
}

/* ---- steps ----------------------------------------------------------------------------------- */

typedef struct step_row {
    uint32_t event, track;
    int32_t step;
    mtprof_text name;
    int64_t start_ns, end_ns, self_ns;
} step_row;

typedef struct steps_reader {
    mtprof_model *model;
    const int64_t *start_ns, *end_ns, *self_ns;
    const uint32_t *name, *track;
    const int32_t *step;
    const uint32_t *events; /* that are steps */
} steps_reader;

static const mtprof__arrow_field step_fields[] = {
    FIELD(step_row, step, "step", "i"),         FIELD(step_row, event, "event", "I"),
    FIELD(step_row, name, "name", "U"),         FIELD(step_row, track, "track", "I"),
    FIELD(step_row, start_ns, "start_ns", "l"), FIELD(step_row, end_ns, "end_ns", "l"),
    FIELD(step_row, self_ns, "self_ns", "l"),
};

static void read_step(const void *context, uint64_t index, void *place)
{
    const steps_reader *steps = context;
    uint32_t event = steps->events[index];
    *(step_row *)place = (step_row){
        .event = event,
        .track = steps->track[event],
        .step = steps->step[event],
        .name = mtprof_model_name(steps->model, steps->name[event]),
        .start_ns = steps->start_ns[event],
        .end_ns = steps->end_ns[event],
        .self_ns = steps->self_ns[event],
    };
}

static int get_data(mtprof_model *model, enum mtprof_column_id id, const void *place, uint64_t *n)
{
    mtprof_column column;
    MT_TRY(mtprof_model_get_column(model, id, &column));
    memcpy((void *)(uintptr_t)place, &column.data, sizeof column.data);
    *n = column.count;
    return MTPROF_OK;
}

mtprof_status mtprof_arrow_steps(mtprof_model *model, const mtprof_arrow_options *options,
                                 struct ArrowArrayStream *out)
{
    steps_reader steps = {.model = model};
    const uint8_t *kinds = NULL;
    uint32_t *events = NULL;
    size_t n_steps = 0;
    size_t capacity = 0;
    uint64_t n = 0;
    step_row row;
    *out = (struct ArrowArrayStream){.release = NULL};
    MT_TRY(get_data(model, MTPROF_COLUMN_START_NS, &steps.start_ns, &n));
    MT_TRY(get_data(model, MTPROF_COLUMN_END_NS, &steps.end_ns, &n));
    MT_TRY(get_data(model, MTPROF_COLUMN_SELF_NS, &steps.self_ns, &n));
    MT_TRY(get_data(model, MTPROF_COLUMN_NAME, &steps.name, &n));
    MT_TRY(get_data(model, MTPROF_COLUMN_TRACK, &steps.track, &n));
    MT_TRY(get_data(model, MTPROF_COLUMN_STEP, &steps.step, &n));
    MT_TRY(get_data(model, MTPROF_COLUMN_KIND, &kinds, &n));
    bool ok = true;
    for (uint32_t i = 0; ok && i < n; i++) {
        ok = kinds[i] != MTPROF_EVENT_KIND_STEP || mtb_append(events, n_steps, capacity, &i);
    }
    steps.events = events;
    mtprof__arrow_table *table = ok ? mtprof__arrow_table_new(n_steps) : NULL;
    ok = table != NULL &&
         mtprof__arrow_fill(table, step_fields, MT_COUNT(step_fields), read_step, &steps, &row);
    mtb_free(events);
    return mtprof__arrow_give(table, ok, "steps", options, out);
}

/* ---- tracks ---------------------------------------------------------------------------------- */

typedef struct track_row {
    uint32_t number;
    mtprof_track track;
    mtprof_device device;
} track_row;

static const mtprof__arrow_field track_fields[] = {
    FIELD(track_row, number, "track", "I"),
    FIELD(track_row, track.name, "name", "U", .nullable = true),
    FIELD(track_row, track.process_name, "process_name", "U", .distinct = true, .nullable = true),
    FIELD(track_row, track.device, "device", "I"),
    FIELD(track_row, device.type, "device_type", "U", .distinct = true),
    FIELD(track_row, device.index, "device_index", "i", .nullable = true, .none = -1),
    FIELD(track_row, track.number, "number", "I"),
    FIELD(track_row, track.pid, "pid", "l"),
    FIELD(track_row, track.tid, "tid", "l"),
    FIELD(track_row, track.pthread_id, "thread_id", "L"),
};

static void read_track(const void *context, uint64_t index, void *place)
{
    track_row *row = place;
    *row = (track_row){.number = (uint32_t)index,
                       .track = {.name = {"", 0}, .process_name = {"", 0}},
                       .device = {.type = {"", 0}, .index = -1}};
    (void)mtprof_model_track(context, (uint32_t)index, &row->track);
    (void)mtprof_model_device(context, row->track.device, &row->device);
}

mtprof_status mtprof_arrow_tracks(mtprof_model *model, const mtprof_arrow_options *options,
                                  struct ArrowArrayStream *out)
{
    mtprof_column column;
    mtprof_model_info info = {.struct_size = sizeof info};
    track_row row;
    *out = (struct ArrowArrayStream){.release = NULL};
    /* Making the columns finds queues. */
    MT_TRY(mtprof_model_get_column(model, MTPROF_COLUMN_TRACK, &column));
    MT_TRY(mtprof_model_get_info(model, &info));
    mtprof__arrow_table *table = mtprof__arrow_table_new(info.tracks);
    bool ok = table != NULL && mtprof__arrow_fill(table, track_fields, MT_COUNT(track_fields),
                                                  read_track, model, &row);
    return mtprof__arrow_give(table, ok, "tracks", options, out);
}

/* ---- frames ---------------------------------------------------------------------------------- */

typedef struct frame_row {
    uint32_t node, parent;
    mtprof_frame frame;
} frame_row;

typedef struct frames_reader {
    mtprof_model *model;
    uint32_t *nodes;
    size_t n, capacity;
    mtb_keyset seen;
} frames_reader;

static const mtprof__arrow_field frame_fields[] = {
    FIELD(frame_row, node, "stack", "I"),
    FIELD(frame_row, parent, "parent", "I", .nullable = true),
    FIELD(frame_row, frame.function, "function", "U", .distinct = true),
    FIELD(frame_row, frame.file, "file", "U", .distinct = true, .nullable = true),
    FIELD(frame_row, frame.line, "line", "L", .nullable = true),
    FIELD(frame_row, frame.address, "address", "L", .nullable = true),
};

static void read_frame(const void *context, uint64_t index, void *place)
{
    const frames_reader *frames = context;
    frame_row *row = place;
    *row =
        (frame_row){.node = frames->nodes[index], .frame = {.function = {"", 0}, .file = {"", 0}}};
    (void)mtprof_model_stack(frames->model, row->node, &row->parent, &row->frame);
}

/* A node and those around it, each once: a trace may have any number for a parent, also its own. */
static bool add_nodes(frames_reader *frames, uint32_t node)
{
    mtprof_frame frame;
    uint32_t parent = 0;
    for (; !mtb_keyset_has(&frames->seen, node) &&
           mtprof_model_stack(frames->model, node, &parent, &frame);
         node = parent) {
        if (!mtb_keyset_add(&frames->seen, node) ||
            !mtb_append(frames->nodes, frames->n, frames->capacity, &node)) {
            return false;
        }
        if (parent == 0) {
            break;
        }
    }
    return true;
}

mtprof_status mtprof_arrow_frames(mtprof_model *model, const mtprof_arrow_options *options,
                                  struct ArrowArrayStream *out)
{
    frames_reader frames = {.model = model};
    const uint32_t *stacks = NULL;
    uint64_t n = 0;
    frame_row row;
    *out = (struct ArrowArrayStream){.release = NULL};
    MT_TRY(get_data(model, MTPROF_COLUMN_STACK, &stacks, &n));
    bool ok = true;
    uint32_t last = 0;
    for (uint64_t i = 0; ok && stacks != NULL && i < n; i++) {
        ok = stacks[i] == 0 || stacks[i] == last || add_nodes(&frames, stacks[i]);
        last = stacks[i];
    }
    mtprof__arrow_table *table = ok ? mtprof__arrow_table_new(frames.n) : NULL;
    ok = table != NULL &&
         mtprof__arrow_fill(table, frame_fields, MT_COUNT(frame_fields), read_frame, &frames, &row);
    mtb_free(frames.nodes);
    mtb_keyset_fini(&frames.seen);
    return mtprof__arrow_give(table, ok, "frames", options, out);
}
