/* SPDX-License-Identifier: Apache-2.0
 *
 * python_function spans: traced calls, and frames that were rebuilt from stacks (frame_stack.h),
 * which say so ("sampled": 1).
 */
#include "base/fail.h"
#include "mtprof/export/chrome/export_chrome_impl.h"
#include "mtprof/model/text/stack_text.h"

static void write_ids(mtb_writer *writer, uint64_t id, uint64_t parent, int64_t module)
{
    mtb_write_literal(writer, "\"Python id\":");
    mtb_write_u64(writer, id);
    mtb_write_literal(writer, ",\"Python parent id\":");
    if (parent != 0) {
        mtb_write_u64(writer, parent);
    } else {
        mtb_write_literal(writer, "null");
    }
    if (module >= 0) {
        mtb_write_member_i64(writer, "Python module id", module);
    }
}

static void write_frame(mtprof__chrome *chrome, const mtprof__chrome_track *track,
                        const mtprof__open_frame *frame, int64_t end_ns)
{
    mtb_writer *writer = chrome->writer;
    int64_t module = mtprof__frame_module(frame->frame.function);
    mtb_write_literal(writer, "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"");
    if (module >= 0) {
        mtb_write_json_inner(writer, frame->frame.function.bytes, frame->frame.function.length);
    } else {
        mtprof__frame_write_json(writer, &frame->frame);
    }
    mtb_write_literal(writer, "\",");
    mtprof__chrome_write_times(chrome, track, frame->start_ns, end_ns);
    mtb_write_literal(writer, ",\"args\":{");
    write_ids(writer, frame->id, frame->parent, module);
    mtb_write_literal(writer, ",\"sampled\":1}},\n");
}

static int close_frame(void *user, uint32_t number, const mtprof__open_frame *frame, int64_t end_ns,
                       bool tied)
{
    mtprof__chrome *chrome = user;
    mtprof__chrome_track *track = mtprof__chrome_track_of(chrome, number);
    track->seen = true;
    bool held = mtprof__chrome_may_hold(track, tied) &&
                mtprof__chrome_hold(chrome, track, frame->start_ns, end_ns, tied);
    write_frame(chrome, track, frame, end_ns);
    if (held) {
        mtprof__chrome_held(chrome, track, frame->order, tied);
    }
    return MTPROF_OK;
}

/* The logical number of a track's thread, from 1 on. */
static uint32_t thread_of(const mtprof__chrome *chrome, uint32_t number)
{
    mtprof_track info;
    return mtprof_model_track(chrome->model, number, &info) && info.number > 0 ? info.number : 1;
}

static void write_function(mtprof__chrome *chrome, const mtprof__event *event,
                           const mtprof__frame_end *known)
{
    mtprof__chrome_track *track = mtprof__chrome_track_of(chrome, event->track);
    uint64_t keys = MTPROF__KEY_BIT(PYTHON_ID) | MTPROF__KEY_BIT(PYTHON_PARENT) |
                    MTPROF__KEY_BIT(PYTHON_MODULE) | MTPROF__KEY_BIT(PYTHON_THREAD) |
                    MTPROF__KEY_BIT(EV_IDX) | MTPROF__KEY_BIT(STEP);
    track->seen = true;
    bool held =
        mtprof__chrome_may_hold(track, known->tied) &&
        mtprof__chrome_hold(chrome, track, event->shown_start_ns, event->shown_end_ns, known->tied);
    mtb_writer *writer = chrome->writer;
    mtprof__chrome_write_kept_head(chrome, event);
    mtprof__chrome_write_times(chrome, track, event->shown_start_ns, event->shown_end_ns);
    mtb_write_literal(writer, ",\"args\":{");
    if (known->id != 0) {
        write_ids(writer, known->id, known->parent, mtprof__frame_module(event->name_text));
        mtb_write_literal(writer, ",\"Python thread\":"); /* threads count from 0 there */
        mtb_write_u64(writer, thread_of(chrome, event->track) - 1);
        mtb_write_literal(writer, ",");
    }
    mtb_write_literal(writer, "\"Ev Idx\":");
    mtb_write_u64(writer, event->index);
    if (event->step >= 0) {
        mtb_write_member_i64(writer, "step", event->step);
    }
    if (mtprof__chrome_has_extras(event, 0)) {
        mtprof__chrome_extras(chrome, event, 0, keys);
    }
    mtb_write_literal(writer, "}},\n");
    if (held) {
        mtprof__chrome_held(chrome, track, mtprof__frame_order(event), known->tied);
    }
}

int mtprof__chrome_frames_init(mtprof__chrome *chrome)
{
    const mtprof__frame_sink sink = {.user = chrome, .close = close_frame};
    chrome->frames = mtprof__frame_stack_new(chrome->model, &sink);
    return chrome->frames != NULL ? MTPROF_OK
                                  : mtb_fail(MTPROF_ENOMEM, "export: no memory for functions");
}

bool mtprof__chrome_frames_end(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtprof__frame_end known;
    if (mtprof__frame_stack_end(chrome->frames, event, &known) != MTPROF_OK) {
        chrome->error = MTPROF_ENOMEM;
    }
    if (event->kind == MTPROF_EVENT_KIND_FUNCTION) {
        write_function(chrome, event, &known);
    }
    return known.tied;
}
