/* SPDX-License-Identifier: Apache-2.0
 *
 * python_function spans. Where every call was traced they are events of their own (FUNCTION). Where
 * only stacks were recorded they are rebuilt from the stacks of consecutive ops and scopes of a
 * thread, and say so ("sampled": 1):
 *
 *     op a, stack main>f      op b, stack main>f>g      op c, stack main>h
 *     main ───────────────────────────────────────────────────────────────┐
 *      f ──────────────────────────────────────────┐   h ──────────────────┤
 *       a ─────┐                g ────────────────┐│    c ────────────┐    │
 *                                b ───────────────┘┘
 *
 *   P1  A frame begins with the first event that has it and ends with the last one: what was not
 *       seen is not claimed. But where there is room it is a nanosecond wider on both sides than
 *       what is inside it, frame by frame: readers add up times as doubles, which round.
 *   P2  A frame that began inside an event ends inside it: spans of a track nest.
 *   P3  Two frames are the same call when function and file are: lines of a caller move on.
 *   P4  A collection ("Python GC") is a span among functions, but no call: it has no number, and
 *       does not mean that calls were traced.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/export/export_chrome_impl.h"
#include "mtprof/model/stack_text.h"

typedef struct open_event {
    int64_t start_ns;
    uint32_t floor;     /* frames that were there when it had begun: not its own to close (P2) */
    uint32_t stack;     /* its node, or that of the event around it */
    uint64_t python_id; /* FUNCTION: its number; 0: another kind */
} open_event;

typedef struct open_frame {
    mtprof_frame frame; /* its texts live as long as the model */
    int64_t start_ns;
    uint64_t id;
    uint64_t order; /* of beginning, among events (mtprof__chrome_order()) */
} open_frame;

struct mtprof__chrome_frames {
    open_event *events;
    open_frame *frames;
    size_t n_events, events_capacity;
    size_t n_frames, frames_capacity;
    int64_t last_ns; /* shown time of the latest edge */
    bool traced;     /* functions are events here: nothing is rebuilt */
};

struct mtprof__stack_pair {
    mtprof_frame around[MTPROF__STACK_FRAMES], inner[MTPROF__STACK_FRAMES];
};

static const char module_mark[] = "nn.Module: ";
static const char collection_name[] = "Python GC";

/* ---- writing ------------------------------------------------------------------------------------
 */

/* Behind the last '_' of "nn.Module: Linear_0"; -1: it is no module. */
static int64_t module_number(mtprof_text name)
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

static void write_ids(mtb_writer *writer, uint64_t id, uint64_t parent, int64_t module)
{
    mtb_write_literal(writer, "\"Python id\": ");
    mtb_write_u64(writer, id);
    mtb_write_literal(writer, ", \"Python parent id\": ");
    if (parent != 0) {
        mtb_write_u64(writer, parent);
    } else {
        mtb_write_literal(writer, "null");
    }
    if (module >= 0) {
        mtb_write_literal(writer, ", \"Python module id\": ");
        mtb_write_i64(writer, module);
    }
}

static void write_frame(mtprof__chrome *chrome, const mtprof__chrome_track *track,
                        const open_frame *frame, uint64_t parent, int64_t end_ns)
{
    mtb_writer *writer = chrome->writer;
    int64_t start = mtprof__chrome_since_base(chrome, frame->start_ns);
    int64_t end = mtprof__chrome_since_base(chrome, end_ns);
    int64_t module = module_number(frame->frame.function);
    mtb_write_literal(writer, "{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"");
    if (module >= 0) {
        mtb_write_json_inner(writer, frame->frame.function.bytes, frame->frame.function.length);
    } else {
        mtprof__frame_write_json(writer, &frame->frame);
    }
    mtb_write_literal(writer, "\", ");
    mtb_write(writer, track->place.text, track->place.length);
    mtprof__chrome_write_ns(chrome, start);
    mtb_write_literal(writer, ", \"dur\": ");
    mtb_write_thousandths(writer, end > start ? end - start : 0);
    mtb_write_literal(writer, ", \"args\": {");
    write_ids(writer, frame->id, parent, module);
    mtb_write_literal(writer, ", \"sampled\": 1}},\n");
}

/* How much later `later` is, where it is. */
static uint64_t room_between(int64_t earlier, int64_t later)
{
    return later > earlier ? (uint64_t)later - (uint64_t)earlier : 0;
}

/* Closes all frames but the first `keep`, innermost first: each ends a nanosecond behind the one
 * inside it, as long as `room` lasts. around_ns: when the event around them began. */
static void close_frames(mtprof__chrome *chrome, mtprof__chrome_track *track, size_t keep,
                         uint64_t room, int64_t around_ns)
{
    struct mtprof__chrome_frames *state = track->frames;
    while (state->n_frames > keep) {
        const open_frame *frame = &state->frames[--state->n_frames];
        bool below = state->n_frames > 0;
        bool tied =
            frame->start_ns == around_ns || (below && frame[-1].start_ns == frame->start_ns);
        if (room > 0 && state->last_ns < INT64_MAX) {
            room--;
            state->last_ns++;
        }
        track->seen = true;
        bool held = mtprof__chrome_may_hold(track, tied) &&
                    mtprof__chrome_hold(chrome, track, frame->start_ns, state->last_ns, tied);
        write_frame(chrome, track, frame, below ? frame[-1].id : 0, state->last_ns);
        if (held) {
            mtprof__chrome_held(chrome, track, frame->order, tied);
        }
    }
}

/* ---- following the stacks -----------------------------------------------------------------------
 */

static bool same_text(mtprof_text a, mtprof_text b)
{
    return a.length == b.length && (a.bytes == b.bytes || memcmp(a.bytes, b.bytes, a.length) == 0);
}

static bool is_collection(mtprof_text name) /* P4 */
{
    return name.length == sizeof collection_name - 1 &&
           memcmp(name.bytes, collection_name, name.length) == 0;
}

static bool same_call(const mtprof_frame *a, const mtprof_frame *b) /* P3 */
{
    return same_text(a->function, b->function) && same_text(a->file, b->file) &&
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
static void follow_stack(mtprof__chrome *chrome, mtprof__chrome_track *track,
                         const open_event *around, const mtprof__event *event)
{
    struct mtprof__chrome_frames *state = track->frames;
    struct mtprof__stack_pair *room = chrome->frame_room;
    int64_t now_ns = event->shown_start_ns;
    uint32_t n_around =
        mtprof__stack_frames(chrome->model, around->stack, room->around, MTPROF__STACK_FRAMES);
    uint32_t n = mtprof__stack_frames(chrome->model, event->payload->stack, room->inner,
                                      MTPROF__STACK_FRAMES);
    uint32_t next = count_shared(room->around, n_around, room->inner, n);
    size_t keep = around->floor;
    while (keep < state->n_frames && next < n &&
           same_call(&state->frames[keep].frame, &room->inner[n - 1 - next])) {
        keep++;
        next++;
    }
    if (!mtb_grow((void **)&state->frames, &state->frames_capacity,
                  (keep > state->n_frames ? keep : state->n_frames) + (n - next),
                  sizeof *state->frames)) {
        chrome->error = MTPROF_ENOMEM;
        return;
    }
    /* The gap since the last edge is for frames that end and for frames that begin. */
    uint64_t gap = room_between(state->last_ns, now_ns);
    uint64_t opens = n - next;
    uint64_t closes = state->n_frames - keep;
    close_frames(chrome, track, keep, gap >= opens + closes ? closes : gap / 2, around->start_ns);
    gap = room_between(state->last_ns, now_ns);
    for (uint64_t left = opens; left > 0; left--, next++) {
        state->frames[state->n_frames++] =
            (open_frame){.frame = room->inner[n - 1 - next],
                         .start_ns = now_ns - (int64_t)(left < gap ? left : gap),
                         .id = ++chrome->python_ids,
                         .order = event->order * MTPROF__ORDER_FRAMES + (opens - left)};
    }
}

static struct mtprof__chrome_frames *state_of(mtprof__chrome *chrome, mtprof__chrome_track *track)
{
    if (track->frames == NULL && track != &chrome->nowhere) {
        track->frames = mtb_calloc(1, sizeof *track->frames);
    }
    if (chrome->frame_room == NULL) {
        chrome->frame_room = mtb_calloc(1, sizeof *chrome->frame_room);
    }
    if (track->frames == NULL || chrome->frame_room == NULL) {
        chrome->error = MTPROF_ENOMEM;
        return NULL;
    }
    return track->frames;
}

void mtprof__chrome_frames_begin(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtprof__chrome_track *track = mtprof__chrome_track_of(chrome, event->track);
    struct mtprof__chrome_frames *state = state_of(chrome, track);
    const mtprof__payload *payload = event->payload;
    if (state == NULL || !mtb_grow((void **)&state->events, &state->events_capacity,
                                   state->n_events + 1, sizeof *state->events)) {
        chrome->error = MTPROF_ENOMEM;
        return;
    }
    open_event around = {.start_ns = INT64_MIN};
    if (state->n_events > 0) {
        around = state->events[state->n_events - 1];
    }
    open_event mine = {.start_ns = event->shown_start_ns, .stack = around.stack};
    bool function = event->kind == MTPROF_EVENT_FUNCTION;
    bool call = function && !is_collection(event->name_text);
    if (call || (state->traced && state->n_events == 0)) { /* what was rebuilt ends here */
        close_frames(chrome, track, around.floor,
                     room_between(state->last_ns, event->shown_start_ns), around.start_ns);
        state->traced = true;
    }
    if (call) {
        mine.python_id = ++chrome->python_ids;
    } else if (!function && !state->traced && payload != NULL &&
               (payload->fields & MTPROF__HAS_STACK) != 0 && payload->stack != 0) {
        follow_stack(chrome, track, &around, event);
        mine.stack = payload->stack;
    }
    mine.floor = (uint32_t)state->n_frames;
    state->events[state->n_events++] = mine;
    state->last_ns = event->shown_start_ns;
}

/* The number of the function around the event that ended last. */
static uint64_t function_around(const struct mtprof__chrome_frames *state)
{
    for (size_t i = state->n_events; i > 0; i--) {
        if (state->events[i - 1].python_id != 0) {
            return state->events[i - 1].python_id;
        }
    }
    return 0;
}

/* The logical number of a track's thread, from 1 on. */
static uint32_t thread_of(const mtprof__chrome *chrome, uint32_t number)
{
    mtprof_track info;
    return mtprof_model_track(chrome->model, number, &info) && info.number > 0 ? info.number : 1;
}

static void write_function(mtprof__chrome *chrome, const mtprof__event *event,
                           mtprof__chrome_track *track, uint64_t id, bool tied)
{
    int64_t start = mtprof__chrome_since_base(chrome, event->shown_start_ns);
    int64_t end = mtprof__chrome_since_base(chrome, event->shown_end_ns);
    uint64_t keys = MTPROF__KEY_BIT(PYTHON_ID) | MTPROF__KEY_BIT(PYTHON_PARENT) |
                    MTPROF__KEY_BIT(PYTHON_MODULE) | MTPROF__KEY_BIT(PYTHON_THREAD) |
                    MTPROF__KEY_BIT(EV_IDX) | MTPROF__KEY_BIT(STEP);
    track->seen = true;
    bool held =
        mtprof__chrome_may_hold(track, tied) &&
        mtprof__chrome_hold(chrome, track, event->shown_start_ns, event->shown_end_ns, tied);
    mtb_writer *writer = chrome->writer;
    const mtprof__piece *head = mtprof__chrome_head(chrome, event);
    if (head != NULL) {
        mtb_write(writer, head->text, head->length);
        writer->replaced += head->replaced;
    } else {
        mtprof__chrome_write_head(writer, chrome, "X", event);
    }
    mtb_write(writer, track->place.text, track->place.length);
    mtprof__chrome_write_ns(chrome, start);
    mtb_write_literal(writer, ", \"dur\": ");
    mtb_write_thousandths(writer, end > start ? end - start : 0);
    mtb_write_literal(writer, ", \"args\": {");
    if (id != 0) {
        write_ids(writer, id, function_around(track->frames), module_number(event->name_text));
        mtb_write_literal(writer, ", \"Python thread\": "); /* threads count from 0 there */
        mtb_write_u64(writer, thread_of(chrome, event->track) - 1);
        mtb_write_literal(writer, ", ");
    }
    mtb_write_literal(writer, "\"Ev Idx\": ");
    mtb_write_u64(writer, event->index);
    if (event->step >= 0) {
        mtb_write_literal(writer, ", \"step\": ");
        mtb_write_i64(writer, event->step);
    }
    if (mtprof__chrome_has_extras(event, 0)) {
        mtprof__chrome_extras(chrome, event, 0, keys);
    }
    mtb_write_literal(writer, "}},\n");
    if (held) {
        mtprof__chrome_held(chrome, track, mtprof__chrome_order(event), tied);
    }
}

bool mtprof__chrome_frames_end(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtprof__chrome_track *track = mtprof__chrome_track_of(chrome, event->track);
    struct mtprof__chrome_frames *state = track->frames;
    bool tied = event->tied != 0;
    if (state == NULL || state->n_events == 0) {
        return tied;
    }
    open_event mine = state->events[--state->n_events];
    uint64_t gap = room_between(state->last_ns, event->shown_end_ns);
    close_frames(chrome, track, mine.floor, gap > 0 ? gap - 1 : 0, mine.start_ns);
    state->last_ns = event->shown_end_ns;
    tied =
        tied || (mine.floor > 0 && state->frames[mine.floor - 1].start_ns == event->shown_start_ns);
    if (event->kind == MTPROF_EVENT_FUNCTION) {
        write_function(chrome, event, track, mine.python_id, tied);
    }
    return tied;
}

void mtprof__chrome_frames_pass(mtprof__chrome *chrome, const mtprof__event *event)
{
    struct mtprof__chrome_frames *state = mtprof__chrome_track_of(chrome, event->track)->frames;
    if (state != NULL && event->shown_end_ns > state->last_ns) {
        state->last_ns = event->shown_end_ns;
    }
}

void mtprof__chrome_frames_finish(mtprof__chrome *chrome)
{
    for (size_t i = 0; i < chrome->n_tracks; i++) {
        if (chrome->tracks[i].frames != NULL) {
            close_frames(chrome, &chrome->tracks[i], 0, UINT32_MAX, INT64_MIN);
        }
    }
}

void mtprof__chrome_frames_fini(mtprof__chrome *chrome)
{
    for (size_t i = 0; i < chrome->n_tracks; i++) {
        struct mtprof__chrome_frames *state = chrome->tracks[i].frames;
        if (state != NULL) {
            mtb_free(state->events);
            mtb_free(state->frames);
            mtb_free(state);
            chrome->tracks[i].frames = NULL;
        }
    }
    mtb_free(chrome->frame_room);
}
