/* SPDX-License-Identifier: Apache-2.0
 *
 * What is in no column: marks and allocations. The event stream is read twice, to count rows and to
 * fill them, so that no more memory is needed than the table's own.
 */
#include "base/compiler.h"
#include "base/fail.h"
#include "mtprof/arrow/arrow_table.h"
#include "mtprof/model/events/event.h"
#include "mtprof/model/facts/event_kinds.h"
#include "mtprof/model/model_impl.h"

#include <string.h>

#define FIELD MTPROF__ARROW_FIELD

enum {
    ASK_EVERY = 1 << 16 /* edges between two calls of the progress function */
};

typedef struct points_table {
    mtprof_model *model;
    const char *what;
    uint32_t kinds; /* a mask */
    /* Adds an event's row. False: out of memory. */
    bool (*add)(mtprof__arrow_filler *filler, const mtprof__event *event);
} points_table;

/* Counts the events, and adds their rows where there is a filler. */
static int read_points(const points_table *p, uint64_t *n, mtprof__arrow_filler *filler)
{
    mtprof__events *events = NULL;
    const mtprof__event *event = NULL;
    uint64_t edges = 0;
    *n = 0;
    if (!mtprof__model_may_have(p->model, p->kinds)) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof__events_open(p->model, &events));
    mtprof__events_skip_begins(events);
    int status = mtprof__events_next(events, &event);
    while (status == MTPROF_OK) {
        if (event->edge == MTPROF__EDGE_POINT && mtprof__kind_in(event->kind, p->kinds)) {
            ++*n;
            if (filler != NULL && filler->row < filler->table->rows && !p->add(filler, event)) {
                status = mtb_fail(MTPROF_ENOMEM, "arrow: no memory for a table of %s", p->what);
                break;
            }
        }
        if (++edges % ASK_EVERY == 0) {
            status = mtprof__model_ask(p->model, p->what);
        }
        status = status == MTPROF_OK ? mtprof__events_next(events, &event) : status;
    }
    mtprof__events_close(events);
    return status == MTPROF_EEND ? MTPROF_OK : status;
}

static int make_points(const points_table *p, const mtprof__arrow_field *fields, size_t n_fields,
                       const mtprof_arrow_options *options, struct ArrowArrayStream *out)
{
    uint64_t n = 0;
    mtprof__arrow_filler filler;
    *out = (struct ArrowArrayStream){.release = NULL};
    MT_TRY(read_points(p, &n, NULL));
    mtprof__arrow_table *table = mtprof__arrow_table_new(n);
    bool ok = table != NULL && mtprof__arrow_fill_start(&filler, table, fields, n_fields);
    int status = ok ? read_points(p, &n, &filler) : MTPROF_OK;
    if (status != MTPROF_OK) {
        mtprof__arrow_table_release(table);
        return status;
    }
    return mtprof__arrow_give(table, ok, p->what, options, out);
}

/* ---- marks ----------------------------------------------------------------------------------- */

typedef struct mark_row {
    int64_t time_ns;
    mtprof_text kind, name, phase;
    uint32_t track;
    int32_t step;
    uint8_t is_counter, is_integer, is_flow;
    double value;
    int64_t integer;
    uint64_t flow, scope;
} mark_row;

static const mtprof__arrow_field mark_fields[] = {
    FIELD(mark_row, time_ns, "time_ns", "l"),
    FIELD(mark_row, kind, "kind", "U", .distinct = true),
    FIELD(mark_row, name, "name", "U", .distinct = true),
    FIELD(mark_row, track, "track", "I"),
    FIELD(mark_row, step, "step", "i"),
    FIELD(mark_row, value, "value", "g", .nullable = true, .flag = offsetof(mark_row, is_counter)),
    FIELD(mark_row, integer, "integer", "l", .nullable = true,
          .flag = offsetof(mark_row, is_integer)),
    FIELD(mark_row, flow, "flow", "L", .nullable = true, .flag = offsetof(mark_row, is_flow)),
    FIELD(mark_row, phase, "flow_phase", "U", .distinct = true, .nullable = true),
    FIELD(mark_row, scope, "scope", "L", .nullable = true),
};

static mtprof_text text_of(const char *text)
{
    return (mtprof_text){text, strlen(text)};
}

static bool add_mark(mtprof__arrow_filler *filler, const mtprof__event *event)
{
    static const char *const phases[] = {"start", "step", "end"};
    mark_row row = {
        .time_ns = event->start_ns,
        .kind = text_of(mtprof_event_kind_name(event->kind)),
        .name = event->name_text,
        .phase = {"", 0},
        .track = event->track,
        .step = event->step,
        .is_counter = event->kind == MTPROF_EVENT_KIND_COUNTER,
        .is_flow = event->kind == MTPROF_EVENT_KIND_FLOW,
        .scope = event->parent,
    };
    if (row.is_counter != 0) {
        row.is_integer = event->phase == 0;
        row.integer = row.is_integer != 0 ? (int64_t)event->value : 0;
        row.value = (double)row.integer;
        if (row.is_integer == 0) {
            memcpy(&row.value, &event->value, sizeof row.value);
        }
    } else if (row.is_flow != 0) {
        row.flow = event->value;
        row.phase = text_of(event->phase < MT_COUNT(phases) ? phases[event->phase] : "");
    }
    return mtprof__arrow_fill_row(filler, &row);
}

mtprof_status mtprof_arrow_marks(mtprof_model *model, const mtprof_arrow_options *options,
                                 struct ArrowArrayStream *out)
{
    points_table p = {
        .model = model, .what = "marks", .kinds = MTPROF__KINDS_MARK, .add = add_mark};
    return make_points(&p, mark_fields, MT_COUNT(mark_fields), options, out);
}

/* ---- allocations ----------------------------------------------------------------------------- */

typedef struct allocation_row {
    int64_t time_ns;
    uint32_t track;
    int32_t step;
    uint8_t device;
    uint64_t address, scope;
    int64_t bytes, allocated, reserved;
} allocation_row;

static const mtprof__arrow_field allocation_fields[] = {
    FIELD(allocation_row, time_ns, "time_ns", "l"),
    FIELD(allocation_row, device, "device", "C"),
    FIELD(allocation_row, track, "track", "I"),
    FIELD(allocation_row, step, "step", "i"),
    FIELD(allocation_row, address, "address", "L"),
    FIELD(allocation_row, bytes, "bytes", "l"),
    FIELD(allocation_row, allocated, "allocated_bytes", "l"),
    FIELD(allocation_row, reserved, "reserved_bytes", "l", .nullable = true, .none = -1),
    FIELD(allocation_row, scope, "scope", "L", .nullable = true),
};

static bool add_allocation(mtprof__arrow_filler *filler, const mtprof__event *event)
{
    allocation_row row = {
        .time_ns = event->start_ns,
        .track = event->track,
        .step = event->step,
        .device = event->device,
        .address = event->value,
        .scope = event->owner,
        .bytes = event->bytes,
        .allocated = event->allocated,
        .reserved = event->reserved_bytes,
    };
    return mtprof__arrow_fill_row(filler, &row);
}

mtprof_status mtprof_arrow_allocations(mtprof_model *model, const mtprof_arrow_options *options,
                                       struct ArrowArrayStream *out)
{
    points_table p = {.model = model,
                      .what = "allocations",
                      .kinds = MTPROF__KIND_BIT(MTPROF_EVENT_KIND_ALLOC),
                      .add = add_allocation};
    return make_points(&p, allocation_fields, MT_COUNT(allocation_fields), options, out);
}
