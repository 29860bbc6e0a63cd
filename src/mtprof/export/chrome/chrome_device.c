/* SPDX-License-Identifier: Apache-2.0
 *
 * Device work: spans on the tracks of queues, and the arrows from what launched them.
 */
#include "mtprof/export/chrome/export_chrome_impl.h"
#include "mtprof/format/texts.h"

enum {
    OTHER_TYPES_FROM = 1000,
    OTHER_TYPES_MERGED = 256, /* so that a rank has room for both */
    MERGED_FLOWS = 40         /* bits of a flow id; above them the place of its rank */
};

/* A device's process number is its index; devices of another type than the first have numbers of
 * their own, since their indices are the same. */
int64_t mtprof__chrome_device_pid(mtprof__chrome *chrome, uint32_t number)
{
    uint32_t place = number < MT_COUNT(chrome->device_pids) ? number : 0;
    if (!chrome->device_known[place]) {
        int64_t others = chrome->job->merge != NULL ? OTHER_TYPES_MERGED : OTHER_TYPES_FROM;
        mtprof_device first = {0};
        mtprof_device device = {0};
        (void)mtprof_model_device(chrome->model, 1, &first);
        (void)mtprof_model_device(chrome->model, number, &device);
        bool plain = device.index >= 0 && mtprof__text_same(first.type, device.type);
        chrome->device_pids[place] =
            plain ? device.index : others + (int64_t)chrome->n_other_devices++;
        if (chrome->job->merge != NULL) {
            chrome->device_pids[place] +=
                ((int64_t)chrome->job->merge->number + 1) * MTPROF__MERGE_PIDS +
                MTPROF__MERGE_PROCESSES;
        }
        chrome->device_known[place] = true;
    }
    return chrome->device_pids[place];
}

void mtprof__chrome_flow(mtprof__chrome *chrome, char phase, const char *name, uint64_t id,
                         uint32_t track_number, int64_t trace_ns)
{
    mtb_writer *writer = chrome->writer;
    const mtprof__chrome_track *track = mtprof__chrome_track_of(chrome, track_number);
    char *at = mtb_writer_room(writer, 512);
    at = MTPROF__PUT(at, "{\"ph\":\"");
    *at++ = phase;
    at = MTPROF__PUT(at, "\",\"id\":");
    const mtprof__export_merge *merge = chrome->job->merge;
    at = mtb_put_u64(at, merge != NULL ? id + ((uint64_t)merge->index << MERGED_FLOWS) : id);
    at = MTPROF__PUT(at, ",");
    at = mtprof__put_piece(at, &track->place);
    at = mtprof__chrome_put_ns(chrome, at, mtprof__chrome_since_base(chrome, trace_ns));
    mtb_writer_took(writer, at);
    mtb_write_literal(writer, ",\"cat\":\"");
    mtb_write_text(writer, name);
    mtb_write_literal(writer, "\",\"name\":\"");
    mtb_write_text(writer, name);
    mtb_write_text(writer, phase == 'f' ? "\",\"bp\":\"e\"},\n" : "\"},\n");
}

static bool moves_bytes(const mtprof__event *event)
{
    return event->kind == MTPROF_EVENT_KIND_COPY || event->kind == MTPROF_EVENT_KIND_SET;
}

/* device, context, stream, correlation: by which readers know device work. */
static void write_device_args(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtb_writer *writer = chrome->writer;
    int64_t ns = mtprof__chrome_since_base(chrome, event->end_ns) -
                 mtprof__chrome_since_base(chrome, event->start_ns);
    mtprof_device device = {0};
    (void)mtprof_model_device(chrome->model, event->device, &device);
    if (event->owner != 0) {
        mtb_write_literal(writer, "\"External id\":");
        mtb_write_u64(writer, event->owner);
        mtb_write_literal(writer, ",");
    }
    if (event->kind == MTPROF_EVENT_KIND_KERNEL && mtprof__event_find(event, "queued") == NULL) {
        mtb_write_literal(writer, "\"queued\":0,");
    }
    mtb_write_literal(writer, "\"device\":");
    mtb_write_i64(writer, device.index);
    if (mtprof__event_find(event, "context") == NULL) {
        mtb_write_literal(writer, ",\"context\":0");
    }
    mtb_write_member_u64(writer, "stream", event->queue);
    uint64_t keys = MTPROF__KEY_BIT(EXTERNAL_ID) | MTPROF__KEY_BIT(DEVICE) |
                    MTPROF__KEY_BIT(STREAM) | MTPROF__KEY_BIT(STEP) | MTPROF__KEY_BIT(DEVICE_TYPE);
    if (event->correlation != 0) {
        keys |= MTPROF__KEY_BIT(CORRELATION);
        mtb_write_member_u64(writer, "correlation", event->correlation);
    }
    if (moves_bytes(event)) {
        keys |= MTPROF__KEY_BIT(BYTES) | MTPROF__KEY_BIT(BANDWIDTH);
        mtb_write_member_i64(writer, "bytes", event->bytes);
        mtb_write_member_double(writer, "memory bandwidth (GB/s)",
                                ns > 0 ? (double)event->bytes / (double)ns : 0.0);
    }
    if (!chrome->lean) {
        mtb_write_member_json(writer, "device_type",
                              device.type.bytes != NULL ? device.type.bytes : "",
                              device.type.length);
    }
    if (event->step >= 0) {
        mtb_write_member_i64(writer, "step", event->step);
    }
    if (mtprof__chrome_is_moved(event)) {
        keys |= MTPROF__KEY_BIT(RECORDED_TS) | MTPROF__KEY_BIT(RECORDED_DUR);
        mtprof__chrome_recorded(chrome, event);
    }
    if (event->payload != NULL && (event->payload->fields & MTPROF__HAS_METADATA) != 0) {
        mtprof__chrome_metadata(chrome, event->payload, keys);
    }
}

/* Arrows from the work of the nodes of a graph that this one depends on. */
static void write_dependencies(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtprof__replay_walk walk;
    const mtprof__replayed *from = NULL;
    uint64_t node = 0;
    if (!mtprof__replay_begin(&chrome->replays, event, &walk)) {
        return;
    }
    while ((from = mtprof__replay_next(&chrome->replays, &walk, &node)) != NULL) {
        uint64_t id = ++chrome->n_replay_flows;
        mtprof__chrome_flow(chrome, 's', MTPROF__REPLAY_ARROW, id, from->forward.note,
                            from->start_ns);
        mtprof__chrome_flow(chrome, 'f', MTPROF__REPLAY_ARROW, id, event->track,
                            event->shown_start_ns);
    }
}

void mtprof__chrome_device_span(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtb_writer *writer = chrome->writer;
    mtprof__chrome_track *track = mtprof__chrome_track_of(chrome, event->track);
    int64_t start = mtprof__chrome_since_base(chrome, event->shown_start_ns);
    int64_t end = mtprof__chrome_since_base(chrome, event->shown_end_ns);
    bool annotation = event->kind == MTPROF_EVENT_KIND_ANNOTATION;
    if (annotation) { /* so that it encloses the work it begins and ends with */
        start -= start > 0;
        end += end < INT64_MAX;
    }
    track->seen = true;
    mtprof__chrome_write_kept_head(chrome, event);
    char *at = mtb_writer_room(writer, 256);
    at = mtprof__put_piece(at, &track->place);
    at = mtprof__chrome_put_ns(chrome, at, start);
    at = MTPROF__PUT(at, ",\"dur\":");
    at = mtb_put_thousandths(at, end > start ? end - start : 0);
    mtb_writer_took(writer, MTPROF__PUT(at, ",\"args\":{"));
    if (annotation) {
        mtb_write_literal(writer, "\"External id\":");
        mtb_write_u64(writer, event->owner);
        if (event->step >= 0) {
            mtb_write_member_i64(writer, "step", event->step);
        }
        if (mtprof__chrome_is_moved(event)) {
            mtprof__chrome_recorded(chrome, event);
        }
    } else {
        write_device_args(chrome, event);
    }
    mtb_write_literal(writer, "}},\n");
    if (event->launch_track != 0 && event->correlation != 0) {
        mtprof__chrome_flow(chrome, 's', "ac2g", event->correlation, event->launch_track - 1,
                            event->launch_ns);
        mtprof__chrome_flow(chrome, 'f', "ac2g", event->correlation, event->track,
                            event->shown_start_ns);
    }
    if (event->payload != NULL && !annotation) {
        write_dependencies(chrome, event);
    }
}
