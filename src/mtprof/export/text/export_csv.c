/* SPDX-License-Identifier: Apache-2.0
 *
 * Events as CSV (RFC 4180): a header, then a line for each span, launch and mark when it has ended.
 * Columns for what was not recorded are not there; fields that an event does not have are empty.
 * Marks are instants, counters (value) and points of flows (value is the flow's id).
 *
 * index counts beginnings, so sorting by start_ns and index gives the order of the model. parent_id
 * is the correlation_id of the event around. Self times come with the events.
 */
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/export/json_text.h"
#include "mtprof/export/protobuf.h"
#include "mtprof/export/text/export_text.h"
#include "mtprof/model/facts/event_kinds.h"
#include "mtprof/model/text/inputs_text.h"
#include "mtprof/model/text/stack_text.h"

#include <errno.h>
#include <string.h>

typedef struct csv_export {
    mtprof__export_job *job;
    mtb_writer *writer;
    mtb_writer text_writer; /* into text: what must be seen whole before it is quoted */
    mtprof__pb text;
} csv_export;

typedef void csv_field(csv_export *x, const mtprof__event *event, uint32_t field);

static int append_text(void *context, const void *bytes, size_t length)
{
    mtprof__pb *text = context;
    mtprof__pb_raw(text, bytes, length);
    return text->failed ? ENOMEM : 0;
}

/* ---- fields that depend on what was recorded: the payload has it ----------------------------- */

static void finish_text(csv_export *x)
{
    mtb_writer_flush(&x->text_writer);
    if (!x->text.failed && x->text.used > 0) {
        mtprof__write_csv(x->writer, x->text.bytes, x->text.used);
    }
    mtprof__pb_clear(&x->text);
}

static void put_shapes(csv_export *x, const mtprof__event *event, uint32_t field)
{
    mtprof__inputs_view view = mtprof__inputs_of(x->job->model, event->payload);
    (void)field;
    mtprof__write_input_dims(&x->text_writer, &view);
    finish_text(x);
}

static void put_types(csv_export *x, const mtprof__event *event, uint32_t field)
{
    mtprof__inputs_view view = mtprof__inputs_of(x->job->model, event->payload);
    (void)field;
    mtprof__write_input_types(&x->text_writer, &view);
    finish_text(x);
}

static void put_stack(csv_export *x, const mtprof__event *event, uint32_t field)
{
    (void)field;
    x->job->report.left_out +=
        !mtprof__stack_write(&x->text_writer, x->job->model, event->payload->stack);
    finish_text(x);
}

/* A number or a text of the payload. */
static void put_field(csv_export *x, const mtprof__event *event, uint32_t field)
{
    mtprof_metadatum item = mtprof__payload_value(event->payload, field);
    if (item.type == MTPROF_META_TEXT) {
        mtprof__write_csv(x->writer, item.text.bytes, item.text.length);
    } else {
        mtprof__json_write_metadatum(x->writer, &item);
    }
}

static void put_device_name(csv_export *x, uint32_t number)
{
    mtprof_device device;
    if (mtprof_model_device(x->job->model, number, &device)) {
        mtprof__write_csv(x->writer, device.type.bytes, device.type.length);
        if (device.index >= 0) {
            mtb_write_literal(x->writer, ":");
            mtb_write_i64(x->writer, device.index);
        }
    }
}

static void put_memory_device(csv_export *x, const mtprof__event *event, uint32_t field)
{
    (void)field;
    put_device_name(x, event->payload->memory_device);
}

static void put_value(csv_export *x, const mtprof__event *event, uint32_t field)
{
    (void)field;
    if (event->kind == MTPROF_EVENT_KIND_COUNTER && event->phase == 1) {
        double value;
        memcpy(&value, &event->value, sizeof value);
        mtb_write_double(x->writer, value);
    } else if (event->kind == MTPROF_EVENT_KIND_COUNTER) {
        mtb_write_i64(x->writer, (int64_t)event->value);
    } else if (event->kind == MTPROF_EVENT_KIND_FLOW) {
        mtb_write_u64(x->writer, event->value);
    }
}

static void put_phase(csv_export *x, const mtprof__event *event, uint32_t field)
{
    static const char *const phases[] = {"start", "step", "end"};
    (void)field;
    if (event->kind == MTPROF_EVENT_KIND_FLOW && event->phase < MT_COUNT(phases)) {
        mtb_write_text(x->writer, phases[event->phase]);
    }
}

/* A JSON object. */
static void put_metadata(csv_export *x, const mtprof__event *event, uint32_t field)
{
    const mtprof__payload *payload = event->payload;
    (void)field;
    for (uint32_t i = 0; i < payload->n_metadata; i++) {
        const mtprof_metadatum *item = &payload->metadata[i];
        mtb_write_text(&x->text_writer, i == 0 ? "{" : ", ");
        mtb_write_json(&x->text_writer, item->key.bytes, item->key.length);
        mtb_write_literal(&x->text_writer, ": ");
        mtprof__json_write_metadatum(&x->text_writer, item);
    }
    mtb_write_text(&x->text_writer, payload->n_metadata > 0 ? "}" : "");
    finish_text(x);
}

static const struct {
    const char *name;
    uint64_t wants;  /* of which one was recorded */
    uint32_t fields; /* of which the event has one; 0: no payload is needed */
    csv_field *put;
} recorded[] = {
    {"input_shapes", MTPROF_WANT_INPUTS, MTPROF__HAS_INPUTS, put_shapes},
    {"input_types", MTPROF_WANT_INPUTS, MTPROF__HAS_INPUTS, put_types},
    {"stack", MTPROF_WANT_STACKS, MTPROF__HAS_STACK, put_stack},
    {"module", MTPROF_WANT_MODULES, MTPROF__HAS_MODULE, put_field},
    {"flops", MTPROF_WANT_FLOPS, MTPROF__HAS_FLOPS, put_field},
    {"sequence_number", MTPROF_WANT_DETAILS, MTPROF__HAS_SEQUENCE, put_field},
    {"overload_name", MTPROF_WANT_DETAILS, MTPROF__HAS_OVERLOAD, put_field},
    {"memory_device", MTPROF_WANT_MEMORY, MTPROF__HAS_MEMORY_BEFORE | MTPROF__HAS_MEMORY_AFTER,
     put_memory_device},
    {"memory_allocated_before", MTPROF_WANT_MEMORY, MTPROF__HAS_MEMORY_BEFORE, put_field},
    {"memory_allocated_after", MTPROF_WANT_MEMORY, MTPROF__HAS_MEMORY_AFTER, put_field},
    {"value", MTPROF_WANT_MARKS, 0, put_value},
    {"phase", MTPROF_WANT_MARKS, 0, put_phase},
    {"metadata", MTPROF_WANT_OPS | MTPROF_WANT_SCOPES | MTPROF_WANT_MARKS, MTPROF__HAS_METADATA,
     put_metadata},
};

/* ---- lines ----------------------------------------------------------------------------------- */

static void write_header(csv_export *x)
{
    mtb_write_literal(x->writer,
                      "index,name,kind,device,thread,step,start_ns,end_ns,duration_ns,self_ns,"
                      "correlation_id,parent_id,owner_id,bytes");
    for (size_t i = 0; i < MT_COUNT(recorded); i++) {
        if ((x->job->info.wants & recorded[i].wants) != 0) {
            mtb_write_literal(x->writer, ",");
            mtb_write_text(x->writer, recorded[i].name);
        }
    }
    mtb_write_literal(x->writer, "\r\n");
}

static void put_number(mtb_writer *writer, bool there, int64_t value)
{
    mtb_write_literal(writer, ",");
    if (there) {
        mtb_write_i64(writer, value);
    }
}

static bool is_device_work(const mtprof__event *event)
{
    return event->edge == MTPROF__EDGE_SPAN && event->device != 0;
}

static void write_line(csv_export *x, const mtprof__event *event, int64_t end_ns)
{
    mtb_writer *w = x->writer;
    mtprof_track track;
    if (event->index != UINT64_MAX) {
        mtb_write_u64(w, event->index);
    }
    mtb_write_literal(w, ",");
    mtprof__write_csv(w, event->name_text.bytes, event->name_text.length);
    mtb_write_literal(w, ",");
    mtb_write_text(w, mtprof_event_kind_name(event->kind));
    mtb_write_literal(w, ",");
    put_device_name(x, event->edge == MTPROF__EDGE_POINT ? 0 : event->device);
    bool known = mtprof_model_track(x->job->model, event->track, &track);
    put_number(w, known, known ? track.tid : 0);
    put_number(w, event->step >= 0, event->step);
    put_number(w, true, event->start_ns);
    put_number(w, true, end_ns);
    put_number(w, true, mtb_sub_sat(end_ns, event->start_ns));
    put_number(w, true, event->self_ns);
    put_number(w, event->correlation != 0, (int64_t)event->correlation);
    put_number(w, event->parent != 0, (int64_t)event->parent);
    put_number(w, event->owner != 0, (int64_t)event->owner);
    bool moves = is_device_work(event) &&
                 (event->kind == MTPROF_EVENT_KIND_COPY || event->kind == MTPROF_EVENT_KIND_SET);
    put_number(w, moves, event->bytes);
    for (size_t i = 0; i < MT_COUNT(recorded); i++) {
        if ((x->job->info.wants & recorded[i].wants) != 0) {
            mtb_write_literal(w, ",");
            if (recorded[i].fields == 0 ||
                (event->payload != NULL && (event->payload->fields & recorded[i].fields) != 0)) {
                recorded[i].put(x, event, recorded[i].fields);
            }
        }
    }
    mtb_write_literal(w, "\r\n");
    x->job->report.events += mtprof__kind_in(event->kind, MTPROF__KINDS_MARK) ? 0 : 1;
}

static void write_event(csv_export *x, const mtprof__event *event)
{
    switch (event->edge) {
    case MTPROF__EDGE_BEGIN: break;
    case MTPROF__EDGE_END:
    case MTPROF__EDGE_SPAN: write_line(x, event, event->end_ns); break;
    default:
        if (event->kind == MTPROF_EVENT_KIND_LAUNCH ||
            event->kind == MTPROF_EVENT_KIND_OUT_OF_MEMORY ||
            mtprof__kind_in(event->kind, MTPROF__KINDS_MARK)) {
            write_line(x, event, event->start_ns);
        }
        break;
    }
}

static int write_events(csv_export *x, mtprof__events *events)
{
    const mtprof__event *event = NULL;
    int status = 0;
    mtprof__events_skip_begins(events);
    while ((status = mtprof__events_next(events, &event)) == 0) {
        write_event(x, event);
        MT_TRY(mtprof__export_tick(x->job, events));
    }
    if (x->text_writer.error != 0) {
        return mtb_fail(MTPROF_ENOMEM, "export csv: no memory for a field");
    }
    x->job->report.clamped = mtprof__events_totals_get(events)->clamped;
    x->job->report.left_out += mtprof__events_totals_get(events)->left_out;
    return status == MTPROF_EEND ? 0 : status;
}

static int write_file(csv_export *x, mtprof__events **events)
{
    if (!mtb_writer_init(&x->text_writer, append_text, &x->text)) {
        return mtb_fail(MTPROF_ENOMEM, "export csv: no memory");
    }
    MT_TRY(mtprof__events_open(x->job->model, events));
    write_header(x);
    return write_events(x, *events);
}

int mtprof__export_csv(mtprof__export_job *job)
{
    csv_export x = {.job = job, .writer = job->writer};
    mtprof__events *events = NULL;
    int status = write_file(&x, &events);
    mtprof__events_close(events);
    (void)mtb_writer_finish(&x.text_writer);
    mtprof__pb_fini(&x.text);
    return status;
}
