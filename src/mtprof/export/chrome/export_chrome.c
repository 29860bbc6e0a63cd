/* SPDX-License-Identifier: Apache-2.0
 *
 * kineto's JSON (export_chrome_impl.h has the drawing). A span is written when it ends, so that
 * only open ones are in memory; the order is that of the ends, but for spans of equal times
 * (chrome_ties.c).
 *
 * traceEvents[0] is an op or a scope wherever the trace has one: scripts look there. Mostly that is
 * so by itself. Where something else would come first (an allocation inside the first op), the
 * stream is read ahead to the first op or scope that ends, and that one is written first.
 */
#include "base/fail.h"
#include "mtprof/export/chrome/export_chrome_impl.h"

#define QUARTER_S       ((int64_t)7889238) /* kineto's base: the start of such a slot */
#define NS_PER_S        ((int64_t)1000 * 1000 * 1000)
#define EXPORT_NO_INDEX UINT64_MAX

/* ---- setting up ------------------------------------------------------------------------------ */

static void set_base(mtprof__chrome *chrome)
{
    const mtprof_model_info *info = &chrome->job->info;
    const mtprof__export_merge *merge = chrome->job->merge;
    int64_t start = 0;
    int64_t first = merge != NULL ? merge->first_ns : info->start_ns;
    if (__builtin_add_overflow(first, info->real_offset_ns, &start) || start < 0) {
        start = 0;
    }
    chrome->base_ns = start / NS_PER_S / QUARTER_S * QUARTER_S * NS_PER_S;
    if (__builtin_sub_overflow(info->real_offset_ns, chrome->base_ns, &chrome->shift_ns)) {
        chrome->shift_ns = 0;
    }
}

static int set_device_types(mtprof__chrome *chrome)
{
    const char *type = chrome->job->info.device_type;
    mtb_writer *scratch = mtprof__chrome_scratch(chrome);
    if (!chrome->lean) {
        mtb_write_literal(scratch, ",\"device_type\":\"CPU\"");
    }
    bool host = mtprof__chrome_keep(chrome, &chrome->on_host, MTPROF__PIECE_MOST);
    scratch = mtprof__chrome_scratch(chrome);
    type = type != NULL && strlen(type) < 64 ? type : "NPU";
    if (!chrome->lean) {
        mtb_write_member_json(scratch, "device_type", type, strlen(type));
    }
    bool device = mtprof__chrome_keep(chrome, &chrome->on_device, MTPROF__PIECE_MOST);
    return host && device ? MTPROF_OK : mtb_fail(MTPROF_ENOMEM, "export: no memory for texts");
}

static int chrome_init(mtprof__chrome *chrome, mtprof__export_job *job)
{
    *chrome = (mtprof__chrome){
        .job = job,
        .writer = job->writer,
        .model = job->model,
        .mindtorch = job->options.flavor == MTPROF_FLAVOR_MINDTORCH,
        .lean = job->options.flavor == MTPROF_FLAVOR_LEAN,
        .rebuild_frames = (job->info.wants & MTPROF_WANT_STACKS) != 0,
        .forwards = {.entry_bytes = sizeof(mtprof__waiting), .limit = MTPROF__FORWARDS_MOST},
        .replays = {.entry_bytes = sizeof(mtprof__replayed), .limit = MTPROF__FORWARDS_MOST},
        .first_index = EXPORT_NO_INDEX};
    set_base(chrome);
    MT_TRY(mtprof__chrome_text_init(chrome));
    MT_TRY(mtprof__chrome_modules_init(chrome));
    MT_TRY(mtprof__chrome_frames_init(chrome));
    MT_TRY(mtprof__export_has_tasks(job, &chrome->several_tasks));
    return set_device_types(chrome);
}

static void chrome_fini(mtprof__chrome *chrome)
{
    chrome->job->report.left_out += mtprof__frame_stack_left_out(chrome->frames) +
                                    chrome->forwards.left_out + chrome->replays.left_out;
    mtprof__chrome_ties_fini(chrome);
    mtprof__frame_stack_free(chrome->frames);
    mtprof__chrome_modules_fini(chrome);
    mtprof__forwards_fini(&chrome->forwards);
    mtprof__forwards_fini(&chrome->replays);
    mtprof__chrome_text_fini(chrome);
}

/* ---- the first event ------------------------------------------------------------------------- */

static bool may_be_first(const mtprof__event *event)
{
    return event->edge == MTPROF__EDGE_END && event->tied == 0 &&
           (event->kind == MTPROF_EVENT_KIND_OP || event->kind == MTPROF_EVENT_KIND_SCOPE ||
            event->kind == MTPROF_EVENT_KIND_STEP);
}

static int write_first(mtprof__chrome *chrome)
{
    mtprof__events *ahead = NULL;
    const mtprof__event *event = NULL;
    MT_TRY(mtprof__events_open(chrome->model, &ahead));
    mtprof__events_part_ends(ahead);
    if (chrome->several_tasks) {
        mtprof__events_split_tasks(ahead);
    }
    int status;
    while ((status = mtprof__events_next(ahead, &event)) == MTPROF_OK) {
        if (may_be_first(event)) {
            mtprof__chrome_host_span(chrome, event, mtprof__chrome_track_of(chrome, event->track),
                                     false);
            chrome->first_index = event->index;
            break;
        }
    }
    mtprof__events_close(ahead);
    return status == MTPROF_EEND ? MTPROF_OK : status;
}

/* ---- events ---------------------------------------------------------------------------------- */

MT_INLINE void write_end(mtprof__chrome *chrome, const mtprof__event *event)
{
    bool function = event->kind == MTPROF_EVENT_KIND_FUNCTION;
    bool tied = event->tied != 0;
    if (chrome->rebuild_frames || function) {
        tied = mtprof__chrome_frames_end(chrome, event);
    }
    mtprof__chrome_track *track = mtprof__chrome_track_of(chrome, event->track);
    if (!function && MT_LIKELY(event->index != chrome->first_index)) {
        mtprof__chrome_host_span(chrome, event, track, tied);
    }
    if (mtprof__is_numbered(event)) {
        mtprof__chrome_forward(chrome, event, track->number);
    }
    chrome->job->report.events++;
}

/* Where modules were recorded: the event as it is to be shown. */
static MT_NOINLINE void write_end_in_module(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtprof__event shown;
    mtprof__payload payload;
    write_end(chrome, mtprof__chrome_modules_end(chrome, event, &shown, &payload));
}

static void write_span(mtprof__chrome *chrome, const mtprof__event *event)
{
    switch (event->kind) {
    case MTPROF_EVENT_KIND_OVERHEAD: mtprof__chrome_overhead(chrome, event); break;
    case MTPROF_EVENT_KIND_CALL: mtprof__chrome_launch(chrome, event); break;
    case MTPROF_EVENT_KIND_SCOPE:
    case MTPROF_EVENT_KIND_OP:
    case MTPROF_EVENT_KIND_RUNTIME:
    case MTPROF_EVENT_KIND_FUNCTION:
    case MTPROF_EVENT_KIND_STEP: mtprof__chrome_async_span(chrome, event); break;
    default: mtprof__chrome_device_span(chrome, event); break;
    }
    chrome->job->report.events++;
}

static int write_event(mtprof__chrome *chrome, const mtprof__event *event)
{
    if (event->edge == MTPROF__EDGE_BEGIN) {
        if (chrome->rebuild_frames || event->kind == MTPROF_EVENT_KIND_FUNCTION) {
            MT_TRY(mtprof__frame_stack_begin(chrome->frames, event));
        }
        if (chrome->modules != NULL) {
            mtprof__chrome_modules_begin(chrome, event);
        }
        return MTPROF_OK;
    }
    if (MT_UNLIKELY(!chrome->first_written)) {
        chrome->first_written = true;
        if (!may_be_first(event)) {
            MT_TRY(write_first(chrome));
        }
    }
    if (MT_LIKELY(event->edge == MTPROF__EDGE_END && chrome->modules == NULL)) {
        write_end(chrome, event);
    } else if (event->edge == MTPROF__EDGE_END) {
        write_end_in_module(chrome, event);
    } else if (event->edge == MTPROF__EDGE_SPAN) {
        write_span(chrome, event);
    } else {
        mtprof__chrome_point(chrome, event);
        chrome->job->report.events += event->kind == MTPROF_EVENT_KIND_LAUNCH;
    }
    return MTPROF_OK;
}

static int next_part(mtprof__chrome *chrome)
{
    mtprof__chrome_ties_finish(chrome);
    mtprof__chrome_trailer(chrome);
    MT_TRY(mtprof__export_next_part(chrome->job));
    mtprof__chrome_header(chrome);
    return MTPROF_OK;
}

static int write_events(mtprof__chrome *chrome, mtprof__events *events)
{
    mtprof__export_job *job = chrome->job;
    const mtprof__event *event = NULL;
    int status;
    bool split = job->options.split_bytes > 0;
    mtprof__events_part_ends(events);
    if (chrome->several_tasks) {
        mtprof__events_split_tasks(events);
    }
    if (!chrome->rebuild_frames && chrome->modules == NULL) {
        mtprof__events_skip_begins(events);
    }
    while ((status = mtprof__events_next(events, &event)) == MTPROF_OK) {
        MT_TRY(write_event(chrome, event));
        if (MT_UNLIKELY(chrome->error != 0)) {
            return mtb_fail(chrome->error, "export: no memory for what is open on a track");
        }
        if (split && mtprof__export_part_full(job)) {
            MT_TRY(next_part(chrome));
        }
        MT_TRY(mtprof__export_tick(job, events));
    }
    return status == MTPROF_EEND ? MTPROF_OK : status;
}

static int write_file(mtprof__chrome *chrome, mtprof__events **events)
{
    mtprof__export_job *job = chrome->job;
    MT_TRY(mtprof__events_open(job->model, events));
    mtprof__chrome_header(chrome);
    MT_TRY(write_events(chrome, *events));
    MT_TRY(mtprof__export_damage(job));
    int status = mtprof__frame_stack_finish(chrome->frames);
    mtprof__chrome_ties_finish(chrome);
    mtprof__chrome_trailer(chrome);
    job->report.clamped += mtprof__events_totals_get(*events)->clamped;
    job->report.left_out += mtprof__events_totals_get(*events)->left_out;
    return status;
}

int mtprof__export_chrome(mtprof__export_job *job)
{
    mtprof__chrome chrome;
    mtprof__events *events = NULL;
    int status = chrome_init(&chrome, job);
    if (status == MTPROF_OK) {
        status = write_file(&chrome, &events);
    }
    mtprof__events_close(events);
    chrome_fini(&chrome);
    return status;
}
