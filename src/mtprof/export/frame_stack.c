/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/export/frame_stack.h"

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "mtprof/format/texts.h"
#include "mtprof/model/text/stack_text.h"

#include <string.h>

typedef struct open_event {
    int64_t start_ns;
    uint32_t floor;     /* frames that were there when it had begun: not its own to close (FR2) */
    uint32_t stack;     /* its node, or that of the event around it */
    uint64_t python_id; /* FUNCTION: its number; 0: another kind */
    uint64_t function;  /* number of the innermost function, itself included; 0: none */
} open_event;

typedef struct track_frames {
    open_event *events;
    mtprof__open_frame *frames;
    size_t n_events, events_capacity;
    size_t n_frames, frames_capacity;
    int64_t last_ns; /* shown time of the latest edge */
    bool traced;     /* functions are events here: nothing is rebuilt */
} track_frames;

struct mtprof__frame_stack {
    mtprof_model *model;
    mtprof__frame_sink sink;
    uint64_t python_ids; /* handed out so far */
    track_frames *tracks;
    size_t n_tracks;
    uint64_t left_out; /* stacks with more frames than that */
    mtprof_frame around[MTPROF__STACK_FRAMES], inner[MTPROF__STACK_FRAMES];
};
static_assert((int)MTPROF__STACK_FRAMES < (int)MTPROF__ORDER_FRAMES,
              "frames of one event are in order");

static const char module_mark[] = "nn.Module: ";
static const char collection_name[] = "Python GC"; /* FR4 */

int64_t mtprof__frame_module(mtprof_text name)
{
    size_t mark = sizeof module_mark - 1;
    if (name.length <= mark || memcmp(name.bytes, module_mark, mark) != 0) {
        return -1;
    }
    size_t at = name.length;
    while (at > mark && name.bytes[at - 1] >= '0' && name.bytes[at - 1] <= '9') {
        at--;
    }
    if (at == name.length || name.bytes[at - 1] != '_' || name.length - at > 9) {
        return -1;
    }
    int64_t number = 0;
    for (; at < name.length; at++) {
        number = number * 10 + (name.bytes[at] - '0');
    }
    return number;
}

/* How much later `later` is, where it is. */
static uint64_t room_between(int64_t earlier, int64_t later)
{
    return later > earlier ? (uint64_t)later - (uint64_t)earlier : 0;
}

/* Closes all frames but the first `keep`, innermost first: each ends a nanosecond after the one
 * inside it, as long as `room` lasts. around_ns: when the event around them began. */
static int close_frames(mtprof__frame_stack *stack, uint32_t number, size_t keep, uint64_t room,
                        int64_t around_ns)
{
    track_frames *track = &stack->tracks[number];
    while (track->n_frames > keep) {
        const mtprof__open_frame *frame = &track->frames[--track->n_frames];
        bool tied = frame->start_ns == around_ns ||
                    (track->n_frames > 0 && frame[-1].start_ns == frame->start_ns);
        if (room > 0 && track->last_ns < INT64_MAX) {
            room--;
            track->last_ns++;
        }
        MT_TRY(stack->sink.close(stack->sink.user, number, frame, track->last_ns, tied));
    }
    return MTPROF_OK;
}

/* ---- following the stacks -------------------------------------------------------------------- */

static bool same_call(const mtprof_frame *a, const mtprof_frame *b) /* FR3 */
{
    return mtprof__text_same(a->function, b->function) && mtprof__text_same(a->file, b->file) &&
           a->address == b->address;
}

/* Frames come innermost first; this counts how many of the outermost ones are shared. */
static uint32_t count_shared(const mtprof_frame *a, uint32_t n_a, const mtprof_frame *b,
                             uint32_t n_b)
{
    uint32_t n = 0;
    while (n < n_a && n < n_b && same_call(&a[n_a - 1 - n], &b[n_b - 1 - n])) {
        n++;
    }
    return n;
}

/* Makes the frames above those of the event around those that the stack of an event, which begins,
 * has beyond. */
static int follow_stack(mtprof__frame_stack *stack, const open_event *around,
                        const mtprof__event *event)
{
    track_frames *track = &stack->tracks[event->track];
    int64_t now_ns = event->shown_start_ns;
    uint32_t n_around =
        mtprof__stack_frames(stack->model, around->stack, stack->around, MTPROF__STACK_FRAMES);
    uint32_t n = mtprof__stack_frames_counted(stack->model, event->payload->stack, stack->inner,
                                              MTPROF__STACK_FRAMES, &stack->left_out);
    uint32_t next = count_shared(stack->around, n_around, stack->inner, n);
    size_t keep = around->floor;
    while (keep < track->n_frames && next < n &&
           same_call(&track->frames[keep].frame, &stack->inner[n - 1 - next])) {
        keep++;
        next++;
    }
    if (!mtb_grow((void **)&track->frames, &track->frames_capacity, track->n_frames + (n - next),
                  sizeof *track->frames)) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for what is open on a track");
    }
    /* The gap since the last edge is for frames that end and for frames that begin. */
    uint64_t gap = room_between(track->last_ns, now_ns);
    uint64_t opens = n - next;
    uint64_t closes = track->n_frames - keep;
    MT_TRY(close_frames(stack, event->track, keep, gap >= opens + closes ? closes : gap / 2,
                        around->start_ns));
    gap = room_between(track->last_ns, now_ns);
    for (uint64_t left = opens; left > 0; left--, next++) {
        mtprof__open_frame *frame = &track->frames[track->n_frames];
        *frame =
            (mtprof__open_frame){.frame = stack->inner[n - 1 - next],
                                 .start_ns = now_ns - (int64_t)(left < gap ? left : gap),
                                 .id = ++stack->python_ids,
                                 .parent = track->n_frames > 0 ? frame[-1].id : 0,
                                 .order = event->order * MTPROF__ORDER_FRAMES + (opens - left)};
        track->n_frames++;
        if (stack->sink.open != NULL) {
            MT_TRY(stack->sink.open(stack->sink.user, event->track, frame));
        }
    }
    return MTPROF_OK;
}

int mtprof__frame_stack_begin(mtprof__frame_stack *stack, const mtprof__event *event)
{
    const mtprof__payload *payload = event->payload;
    if (!mtb_reach((void **)&stack->tracks, &stack->n_tracks, event->track,
                   sizeof *stack->tracks)) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for what is open on a track");
    }
    track_frames *track = &stack->tracks[event->track];
    open_event around = {.start_ns = INT64_MIN};
    if (track->n_events > 0) {
        around = track->events[track->n_events - 1];
    }
    open_event mine = {
        .start_ns = event->shown_start_ns, .stack = around.stack, .function = around.function};
    bool function = event->kind == MTPROF_EVENT_KIND_FUNCTION;
    bool call = function && !mtprof__text_is(event->name_text, collection_name);
    if (call || (track->traced && track->n_events == 0)) { /* what was rebuilt ends here */
        track->traced = true;
        MT_TRY(close_frames(stack, event->track, around.floor,
                            room_between(track->last_ns, event->shown_start_ns), around.start_ns));
    }
    if (call) {
        mine.python_id = mine.function = ++stack->python_ids;
    } else if (!function && !track->traced && payload != NULL &&
               (payload->fields & MTPROF__HAS_STACK) != 0 && payload->stack != 0) {
        MT_TRY(follow_stack(stack, &around, event));
        mine.stack = payload->stack;
    }
    mine.floor = (uint32_t)track->n_frames;
    track->last_ns = event->shown_start_ns;
    return mtb_append(track->events, track->n_events, track->events_capacity, &mine)
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "export: no memory for what is open on a track");
}

int mtprof__frame_stack_end(mtprof__frame_stack *stack, const mtprof__event *event,
                            mtprof__frame_end *out)
{
    *out = (mtprof__frame_end){.tied = event->tied != 0};
    if (event->track >= stack->n_tracks || stack->tracks[event->track].n_events == 0) {
        return MTPROF_OK;
    }
    track_frames *track = &stack->tracks[event->track];
    open_event mine = track->events[--track->n_events];
    uint64_t gap = room_between(track->last_ns, event->shown_end_ns);
    MT_TRY(close_frames(stack, event->track, mine.floor, gap > 0 ? gap - 1 : 0, mine.start_ns));
    track->last_ns = event->shown_end_ns;
    out->tied = out->tied ||
                (mine.floor > 0 && track->frames[mine.floor - 1].start_ns == event->shown_start_ns);
    out->id = mine.python_id;
    out->parent = mine.python_id != 0 && track->n_events > 0
                      ? track->events[track->n_events - 1].function
                      : 0;
    return MTPROF_OK;
}

void mtprof__frame_stack_pass(mtprof__frame_stack *stack, const mtprof__event *event)
{
    if (event->track < stack->n_tracks &&
        event->shown_end_ns > stack->tracks[event->track].last_ns) {
        stack->tracks[event->track].last_ns = event->shown_end_ns;
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

mtprof__frame_stack *mtprof__frame_stack_new(mtprof_model *model, const mtprof__frame_sink *sink)
{
    mtprof__frame_stack *stack = mtb_calloc(1, sizeof *stack);
    if (stack != NULL) {
        stack->model = model;
        stack->sink = *sink;
    }
    return stack;
}

int mtprof__frame_stack_finish(mtprof__frame_stack *stack)
{
    for (size_t i = 0; i < stack->n_tracks; i++) {
        MT_TRY(close_frames(stack, (uint32_t)i, 0, UINT32_MAX, INT64_MIN));
    }
    return MTPROF_OK;
}

uint64_t mtprof__frame_stack_left_out(const mtprof__frame_stack *stack)
{
    return stack != NULL ? stack->left_out : 0;
}

void mtprof__frame_stack_free(mtprof__frame_stack *stack)
{
    for (size_t i = 0; stack != NULL && i < stack->n_tracks; i++) {
        mtb_free(stack->tracks[i].events);
        mtb_free(stack->tracks[i].frames);
    }
    if (stack != NULL) {
        mtb_free(stack->tracks);
        mtb_free(stack);
    }
}
