/* SPDX-License-Identifier: Apache-2.0
 *
 * Events without a duration: instants, counters, flow points, allocations.
 */
#include "mtprof/export/chrome/export_chrome_impl.h"
#include "mtprof/format/texts.h"
#include "mtprof/model/model_impl.h"

enum {
    /* torch's numbers of device types */
    DEVICE_CPU = 0,
    DEVICE_CUDA = 1,
    DEVICE_XPU = 12,
    DEVICE_OTHER = 20
};

#define EXACT_LIMIT ((uint64_t)1 << 53) /* a double holds every integer below it */

static int device_number(const mtprof_device *device, uint32_t index)
{
    return index == 0                              ? DEVICE_CPU
           : mtprof__text_is(device->type, "CUDA") ? DEVICE_CUDA
           : mtprof__text_is(device->type, "XPU")  ? DEVICE_XPU
                                                   : DEVICE_OTHER;
}

/* ,"pid":1,"tid":2,"ts":3.000 */
static void write_place_at(mtprof__chrome *chrome, mtprof__chrome_track *track, int64_t since_base)
{
    track->seen = true;
    char *at = mtb_writer_room(chrome->writer, 256);
    at = MTPROF__PUT(at, ",");
    at = mtprof__put_piece(at, &track->place);
    mtb_writer_took(chrome->writer, mtprof__chrome_put_ns(chrome, at, since_base));
}

static void write_place(mtprof__chrome *chrome, const mtprof__event *event)
{
    write_place_at(chrome, mtprof__chrome_track_of(chrome, event->track),
                   mtprof__chrome_since_base(chrome, event->shown_start_ns));
}

static void write_name(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtb_write_json(chrome->writer, event->name_text.bytes, event->name_text.length);
}

/* Allocations are numbered after all begins, where the number of those is known. */
static uint64_t index_of_alloc(mtprof__chrome *chrome, const mtprof__event *event)
{
    if (event->index != UINT64_MAX) {
        return event->index;
    }
    if (chrome->next_point == 0) {
        mtprof_trace_info info = {.struct_size = sizeof info};
        const mtprof_reader *reader = chrome->model->reader;
        bool counted = reader != NULL && mtprof_reader_get_info(reader, &info) == MTPROF_OK;
        uint64_t begins = counted ? info.health[MTPROF_HEALTH_BEGINS] : 0;
        chrome->next_point = begins != 0 ? begins : UINT64_MAX;
    }
    return chrome->next_point != UINT64_MAX ? chrome->next_point++ : UINT64_MAX;
}

static void write_index_and_step(mtb_writer *writer, const mtprof__event *event, uint64_t index)
{
    if (index != UINT64_MAX) {
        mtb_write_member_u64(writer, "Ev Idx", index);
    }
    if (event->step >= 0) {
        mtb_write_member_i64(writer, "step", event->step);
    }
}

static void write_alloc(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtb_writer *writer = chrome->writer;
    mtprof_device device = {{"CPU", 3}, -1};
    (void)mtprof_model_device(chrome->model, event->device, &device);
    bool failed = event->kind == MTPROF_EVENT_KIND_OUT_OF_MEMORY;
    mtb_write_literal(writer, "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":");
    mtb_write_text(writer, failed ? "\"[OutOfMemory]\"" : "\"[memory]\"");
    /* Where no clock was read, it is shown a nanosecond after the edge whose time it has: arrows
     * bind to what is innermost at their time. Viewers stack events of equal time on each other, so
     * each allocation is a nanosecond after the one before. */
    mtprof__chrome_track *track = mtprof__chrome_track_of(chrome, event->track);
    int64_t recorded = mtprof__chrome_since_base(chrome, event->shown_start_ns);
    int64_t shown = recorded > track->alloc_ns ? recorded : track->alloc_ns;
    shown += (shown == track->alloc_ns || event->phase == 1) && shown < INT64_MAX;
    track->alloc_ns = shown;
    write_place_at(chrome, track, shown);
    mtb_write_literal(writer, ",\"args\":{\"Device Type\":");
    mtb_write_i64(writer, device_number(&device, event->device));
    mtb_write_member_i64(writer, "Device Id", event->device == 0 ? -1 : device.index);
    if (!failed) {
        mtb_write_member_u64(writer, "Addr", event->value);
    }
    mtb_write_member_i64(writer, "Bytes", event->bytes);
    mtb_write_member_i64(writer, "Total Allocated", event->allocated);
    mtb_write_member_i64(writer, "Total Reserved",
                         event->reserved_bytes < 0 ? 0 : event->reserved_bytes);
    write_index_and_step(writer, event, index_of_alloc(chrome, event));
    /* 0: of no scope, whatever the time says. Where an id may be two events', time must do. */
    if (!chrome->model->two_id_families || event->owner == 0) {
        mtb_write_member_u64(writer, "correlation_id", event->owner);
    }
    if (shown != recorded) {
        mtb_write_literal(writer, ",\"recorded_ts\":");
        mtprof__chrome_write_ns(chrome, recorded);
    }
    mtb_write_literal(writer, "}},\n");
}

static void write_instant(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtb_writer *writer = chrome->writer;
    mtb_write_literal(writer, "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":");
    write_name(chrome, event);
    write_place(chrome, event);
    mtb_write_literal(writer, ",\"args\":{\"parent_id\":");
    mtb_write_u64(writer, event->parent);
    write_index_and_step(writer, event, event->index);
    if (event->payload != NULL && (event->payload->fields & MTPROF__HAS_METADATA) != 0) {
        mtprof__chrome_metadata(chrome, event->payload,
                                MTPROF__KEY_BIT(PARENT_ID) | MTPROF__KEY_BIT(EV_IDX) |
                                    MTPROF__KEY_BIT(STEP));
    }
    mtb_write_literal(writer, "}},\n");
}

static void write_counter(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtb_writer *writer = chrome->writer;
    mtb_write_literal(writer, "{\"ph\":\"C\",\"name\":");
    write_name(chrome, event);
    write_place(chrome, event);
    mtb_write_literal(writer, ",\"args\":{\"value\":");
    if (event->phase == 1) {
        double value;
        memcpy(&value, &event->value, sizeof value);
        mtb_write_double(writer, value);
    } else {
        mtb_write_i64(writer, (int64_t)event->value);
    }
    mtb_write_literal(writer, "}},\n");
}

/* A user's flow point binds to the span that is open at its time. Where none is, viewers could not
 * draw it and some complain: it is left out. */
static void write_flow(mtprof__chrome *chrome, const mtprof__event *event)
{
    static const char *const phases[] = {"s", "t", "f"};
    mtb_writer *writer = chrome->writer;
    if (event->parent == 0) {
        return;
    }
    mtb_write_literal(writer, "{\"ph\":\"");
    mtb_write_text(writer, event->phase < MT_COUNT(phases) ? phases[event->phase] : "t");
    mtb_write_text(writer, event->value < EXACT_LIMIT ? "\",\"id\":" : "\",\"id\":\"");
    mtb_write_u64(writer, event->value);
    mtb_write_text(writer, event->value < EXACT_LIMIT ? "" : "\"");
    write_place(chrome, event);
    mtb_write_literal(writer, ",\"cat\":\"flow\",\"name\":");
    write_name(chrome, event);
    mtb_write_text(writer, event->phase == 2 ? ",\"bp\":\"e\"},\n" : "},\n");
}

void mtprof__chrome_point(mtprof__chrome *chrome, const mtprof__event *event)
{
    switch (event->kind) {
    case MTPROF_EVENT_KIND_LAUNCH: mtprof__chrome_launch(chrome, event); break;
    case MTPROF_EVENT_KIND_ALLOC:
    case MTPROF_EVENT_KIND_OUT_OF_MEMORY: write_alloc(chrome, event); break;
    case MTPROF_EVENT_KIND_COUNTER: write_counter(chrome, event); break;
    case MTPROF_EVENT_KIND_FLOW: write_flow(chrome, event); break;
    case MTPROF_EVENT_KIND_INSTANT: write_instant(chrome, event); break;
    default: break;
    }
}
