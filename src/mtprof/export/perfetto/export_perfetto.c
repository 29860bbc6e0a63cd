/* SPDX-License-Identifier: Apache-2.0
 *
 * Perfetto's own format: a stream of packets, about 32 bytes an event.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC; the first packet says what that is in real time.
 * Arrows: launch to device work, forward to backward op, and the program's own flows.
 */
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/export/perfetto/export_perfetto_impl.h"
#include "mtprof/model/model_impl.h"
#include "mtprof/model/text/stack_text.h"

#include <mtprof/health.h>

#include <errno.h>
#include <stdio.h>

enum {
    FAST_BYTES = 96, /* room for a begin or an end without annotations */
    FRONT_BYTES = 7,
    STEPS = 256, /* plain steps at a time */
    LABEL_BYTES = 96,
    MOST_DEPENDENTS = 8, /* arrows from the work of a graph's node; more are left out */
    SLOW_FLAGS =
        MTPROF_EVENT_FLAG_ASYNC | MTPROF_EVENT_FLAG_LAUNCHES | MTPROF_EVENT_FLAG_FOREIGN_PARENT
};

/* ---- slices, the fast way -------------------------------------------------------------------- */

/* Every piece has a known length and is prepared, so that a packet is four or five stores:
 *
 *     0A n 40 t t t t | lane's tail | 5A n | head: type, category, name, 22 07 08 01 18 | i i i i
 *
 * Times and correlation ids take 4 bytes however small they are: it costs 5 bytes an event, and
 * saves a quarter of the time. All loads come before the stores, which are of char and may
 * alias anything as far as the compiler knows.
 */

/* Packet's tag and length, tag of the time, and the time since the lane's last packet. */
MT_INLINE void put_front(char *at, uint32_t n_bytes, uint32_t delta)
{
    uint64_t front = MTPROF__PB_TAG(PF_TRACE_PACKET, MTPROF__PB_BYTES) | (n_bytes - 2) << 8 |
                     MTPROF__PB_TAG(PF_PACKET_TIMESTAMP, MTPROF__PB_VARINT) << 16;
    front |= (uint64_t)mtprof__pb_wide(delta) << 24;
    memcpy(at, &front, sizeof front);
}

/* Both return the end of what they stored; at has room for FAST_BYTES. */
MT_INLINE char *put_begin(char *at, const char *tail, uint32_t n_tail,
                          const mtprof__slice_head *head, uint32_t delta, uint32_t id)
{
    uint32_t n_head = head->n_bytes;
    uint32_t n_bytes = FRONT_BYTES + n_tail + 2 + n_head + MTPROF__PB_WIDE;
    char *end = at + n_bytes;
    put_front(at, n_bytes, delta);
    at += FRONT_BYTES;
    memcpy(at, tail, MTPROF__TAIL_BYTES);
    at += n_tail;
    at[0] = (char)MTPROF__PB_TAG(PF_PACKET_TRACK_EVENT, MTPROF__PB_BYTES);
    at[1] = (char)(n_head + MTPROF__PB_WIDE);
    memcpy(at + 2, head->bytes, sizeof head->bytes);
    uint32_t wide = mtprof__pb_wide(id);
    memcpy(at + 2 + n_head, &wide, sizeof wide);
    return end;
}

MT_INLINE char *put_end(char *at, const char *tail, uint32_t n_tail, uint32_t delta)
{
    uint32_t n_bytes = FRONT_BYTES + n_tail;
    put_front(at, n_bytes, delta);
    memcpy(at + FRONT_BYTES, tail, MTPROF__TAIL_BYTES);
    return at + n_bytes;
}

/* The head of a name that is among those seen, or NULL. */
MT_INLINE const mtprof__slice_head *find_head(const mtprof__slice_head *heads, mtprof__seen seen,
                                              uint32_t name, uint8_t kind)
{
    if (MT_UNLIKELY(!mtprof__seen_has(&seen, name))) {
        return NULL;
    }
    const mtprof__slice_head *head = &heads[name];
    return MT_LIKELY(head->kind_plus_1 == kind + 1) ? head : NULL;
}

/* A call of a foreign trace, where only the id says what it launches: an id that nothing else has
 * draws no arrow. */
static bool is_foreign_call(const mtprof__perfetto *x, const mtprof__event *event)
{
    return event->kind == MTPROF_EVENT_KIND_RUNTIME && x->job->info.foreign != 0;
}

static bool begin_fast(mtprof__perfetto *x, mtprof__lane *lane, const mtprof__event *event)
{
    uint64_t now = mtprof__perfetto_time(x->shift_ns, event->shown_start_ns);
    uint64_t delta = now - lane->last_ns;
    uint64_t id = event->correlation;
    const mtprof__slice_head *head = find_head(x->heads, lane->names, event->name, event->kind);
    if (head == NULL || event->payload != NULL || (event->flags & SLOW_FLAGS) != 0 ||
        event->owner != id || (delta | id) >= MTPROF__PB_WIDE_END || id == 0 ||
        is_foreign_call(x, event)) {
        return false;
    }
    lane->last_ns = now;
    char *at = mtb_writer_room(x->writer, FAST_BYTES);
    at = put_begin(at, lane->tail, lane->tail_bytes, head, (uint32_t)delta, (uint32_t)id);
    mtb_writer_took(x->writer, at);
    return true;
}

static bool end_fast(mtprof__perfetto *x, mtprof__lane *lane, const mtprof__event *event)
{
    uint64_t now = mtprof__perfetto_time(x->shift_ns, event->shown_end_ns);
    uint64_t delta = now - lane->last_ns;
    if (event->payload != NULL || (event->flags & MTPROF_EVENT_FLAG_TRUNCATED) != 0 ||
        delta >= MTPROF__PB_WIDE_END) {
        return false;
    }
    lane->last_ns = now;
    char *at = mtb_writer_room(x->writer, FAST_BYTES);
    mtb_writer_took(x->writer, put_end(at, lane->end, lane->end_bytes, (uint32_t)delta));
    return true;
}

/* ---- slices and points, with everything ------------------------------------------------------ */

static void add_name(mtprof__perfetto *x, const mtprof__event *event, bool ready)
{
    mtprof__pb_u64(&x->pb, PF_EVENT_CATEGORY_IID, (uint64_t)event->kind + 1);
    if (ready) {
        mtprof__pb_u64(&x->pb, PF_EVENT_NAME_IID, (uint64_t)event->name + 1);
    } else {
        mtprof__pb_text(&x->pb, PF_EVENT_NAME, event->name_text.bytes, event->name_text.length,
                        &x->job->writer->replaced);
    }
}

/* The arrow from a launch to its work. */
static void add_launch(mtprof__perfetto *x, const mtprof__event *event)
{
    bool device = event->edge == MTPROF__EDGE_SPAN && event->device != 0;
    bool launches = (event->flags & MTPROF_EVENT_FLAG_LAUNCHES) != 0 ||
                    event->kind == MTPROF_EVENT_KIND_LAUNCH || is_foreign_call(x, event);
    if (event->correlation != 0 && event->kind != MTPROF_EVENT_KIND_ANNOTATION &&
        (device || launches)) {
        mtprof__pb_fixed64(&x->pb, PF_EVENT_FLOW,
                           mtprof__perfetto_uuid(x, MTPROF__UUID_LAUNCH, event->correlation));
    }
}

/* Arrows to and from the work of a graph's node. A flow goes from one slice to one other, and how
 * many depend on this one is not known yet: it begins several, of which each takes one. */
static void add_dependencies(mtprof__perfetto *x, const mtprof__event *event)
{
    mtprof__replay_walk walk;
    mtprof__replayed *from = NULL;
    uint64_t node = 0;
    if (!mtprof__replay_begin(&x->replays, event, &walk)) {
        return;
    }
    while ((from = mtprof__replay_next(&x->replays, &walk, &node)) != NULL) {
        if (from->used < MOST_DEPENDENTS) {
            uint64_t flow = mtb_mix(mtb_mix(event->correlation, node), from->used++);
            mtprof__pb_fixed64(&x->pb, PF_EVENT_FLOW_END,
                               mtprof__perfetto_uuid(x, MTPROF__UUID_REPLAY, flow));
        } else {
            x->job->report.left_out++;
        }
    }
    for (uint32_t i = 0; i < MOST_DEPENDENTS; i++) {
        uint64_t flow = mtb_mix(mtb_mix(event->correlation, walk.node), i);
        mtprof__pb_fixed64(&x->pb, PF_EVENT_FLOW,
                           mtprof__perfetto_uuid(x, MTPROF__UUID_REPLAY, flow));
    }
}

static void add_annotations(mtprof__perfetto *x, const mtprof__lane *lane,
                            const mtprof__event *event)
{
    mtprof__pb *pb = &x->pb;
    if (event->correlation != 0) {
        mtprof__annotate_u64(pb, MTPROF__ANNOTATION_CORRELATION, event->correlation);
    }
    if (event->owner != 0 && event->owner != event->correlation) {
        mtprof__annotate_u64(pb, MTPROF__ANNOTATION_OWNER, event->owner);
    }
    if ((event->flags & MTPROF_EVENT_FLAG_FOREIGN_PARENT) != 0) {
        mtprof__annotate_u64(pb, MTPROF__ANNOTATION_PARENT, event->parent);
    }
    if ((event->flags & MTPROF_EVENT_FLAG_ASYNC) != 0) {
        mtprof__annotate_u64(pb, MTPROF__ANNOTATION_ASYNC, 1);
    }
    if (event->edge == MTPROF__EDGE_SPAN && event->device != 0) {
        if (event->source_id != 0) {
            mtprof__annotate_u64(pb, MTPROF__ANNOTATION_SOURCE_ID, event->source_id);
        }
        if (event->kind == MTPROF_EVENT_KIND_COPY || event->kind == MTPROF_EVENT_KIND_SET) {
            mtprof__annotate_i64(pb, MTPROF__ANNOTATION_BYTES, event->bytes);
        }
    }
    if (event->kind == MTPROF_EVENT_KIND_LAUNCH) {
        mtprof__annotate_u64(pb, MTPROF__ANNOTATION_DEVICE, event->device);
        mtprof__annotate_u64(pb, MTPROF__ANNOTATION_QUEUE, event->queue);
    }
    if (event->payload != NULL) {
        mtprof__annotate_payload(x, lane, event->payload);
    }
    if (event->payload != NULL && event->edge == MTPROF__EDGE_POINT) {
        mtprof__annotate_end(x, event->payload);
    }
}

static int write_slow(mtprof__perfetto *x, mtprof__lane *lane, const mtprof__event *event,
                      uint64_t type)
{
    bool ready = false;
    MT_TRY(mtprof__lane_name(x, lane, event, &ready));
    if (event->payload != NULL) {
        MT_TRY(mtprof__payload_intern(x, lane, event->payload));
    }
    mtprof__packet_event open = mtprof__event_begin(x, lane, event->shown_start_ns, type);
    add_name(x, event, ready);
    add_annotations(x, lane, event);
    add_launch(x, event);
    if (event->edge == MTPROF__EDGE_SPAN && event->device != 0 && event->payload != NULL) {
        add_dependencies(x, event);
    }
    return mtprof__event_end(x, open);
}

static int end_slow(mtprof__perfetto *x, mtprof__lane *lane, const mtprof__event *event)
{
    mtprof__packet_event open = mtprof__event_begin(x, lane, event->shown_end_ns, PF_SLICE_END);
    if ((event->flags & MTPROF_EVENT_FLAG_TRUNCATED) != 0) {
        mtprof__annotate_u64(&x->pb, MTPROF__ANNOTATION_TRUNCATED, 1);
    }
    if (event->payload != NULL) {
        mtprof__annotate_end(x, event->payload);
    }
    return mtprof__event_end(x, open);
}

/* One end of an arrow, phase s, t or f. It binds to the slice that is open on its track at that
 * time: it is not a slice of its own. Flows have one id where category, name and id are equal. */
static int write_arrow(mtprof__perfetto *x, mtprof__lane *lane, char phase, mtprof_text name,
                       uint64_t id, int64_t at_ns)
{
    mtprof__packet_event open = mtprof__event_begin(x, lane, at_ns, 0);
    mtprof__pb_u64(&x->pb, PF_EVENT_CATEGORY_IID, MTPROF_EVENT_KIND_FLOW + 1);
    mtprof__pb_text(&x->pb, PF_EVENT_NAME, name.bytes, name.length, &x->job->writer->replaced);
    size_t legacy = mtprof__pb_begin(&x->pb, PF_EVENT_LEGACY);
    mtprof__pb_u64(&x->pb, PF_LEGACY_PHASE, (uint64_t)phase);
    mtprof__pb_u64(&x->pb, PF_LEGACY_ID, id);
    mtprof__pb_u64(&x->pb, PF_LEGACY_ENCLOSING, 1);
    mtprof__pb_end(&x->pb, legacy);
    return mtprof__event_end(x, open);
}

static int write_on_lane(mtprof__perfetto *x, const mtprof__event *event)
{
    mtprof__lane *lane = NULL;
    MT_TRY(mtprof__lane_of_span(x, event, &lane));
    mtprof__event shown = *event;
    uint64_t start = mtprof__perfetto_time(x->shift_ns, event->shown_start_ns);
    if (start < lane->last_ns) { /* every lane is taken at that time (PF1) */
        shown.shown_start_ns = (int64_t)(lane->last_ns - x->shift_ns);
        x->clamped++;
    }
    if (shown.shown_end_ns < shown.shown_start_ns) {
        shown.shown_end_ns = shown.shown_start_ns;
    }
    MT_TRY(write_slow(x, lane, &shown, PF_SLICE_BEGIN));
    return end_slow(x, lane, &shown);
}

/* A scope of a task is on the task's track: inner ones come first, but times put them in order.
 * Where tasks are too many it is among the asynchronous ones of its thread. */
static int write_span(mtprof__perfetto *x, const mtprof__event *event)
{
    mtprof__lane *lane = NULL;
    const mtprof_text *task = mtprof__event_task(event);
    if (task != NULL) {
        MT_TRY(mtprof__lane_of_task(x, event->track, *task, &lane));
    }
    if (lane != NULL) {
        MT_TRY(write_slow(x, lane, event, PF_SLICE_BEGIN));
        return end_slow(x, lane, event);
    }
    mtprof__event other = *event;
    other.flags |= task != NULL ? MTPROF_EVENT_FLAG_ASYNC : 0;
    return write_on_lane(x, &other);
}

/* ---- counters -------------------------------------------------------------------------------- */

static int write_counter(mtprof__perfetto *x, mtprof__lane *lane, const mtprof__event *event,
                         uint64_t uuid, uint64_t value)
{
    mtprof__packet_event open = mtprof__event_begin(x, lane, event->shown_start_ns, PF_COUNTER);
    mtprof__pb_u64(&x->pb, PF_EVENT_TRACK, uuid);
    if (event->kind == MTPROF_EVENT_KIND_COUNTER && event->phase == 1) {
        mtprof__pb_fixed64(&x->pb, PF_EVENT_COUNTER_DOUBLE, value);
    } else {
        mtprof__pb_u64(&x->pb, PF_EVENT_COUNTER, value);
    }
    return mtprof__event_end(x, open);
}

/* Memory of a device: `which` 0 allocated, 1 reserved. */
static int write_memory(mtprof__perfetto *x, mtprof__lane *lane, const mtprof__event *event,
                        uint32_t which, int64_t bytes)
{
    char label[LABEL_BYTES];
    uint64_t uuid = 0;
    int n = mtprof__device_label(
        x, event->device, which == 0 ? "memory allocated" : "memory reserved", label, sizeof label);
    mtprof_text name = {label, (size_t)n};
    MT_TRY(mtprof__counter_track(x, lane, &x->memories, 2 * (uint64_t)event->device + which, name,
                                 &uuid));
    return write_counter(x, lane, event, uuid, (uint64_t)bytes);
}

/* An allocation on the track of its device. Several have the time of one edge where no clock was
 * read for them: viewers stack events of equal time on each other, so each is a nanosecond after
 * the last. */
static int write_alloc(mtprof__perfetto *x, const mtprof__event *event)
{
    mtprof__lane *lane = NULL;
    MT_TRY(mtprof__lane_of_allocs(x, event->device, &lane));
    const char *name = event->bytes < 0 ? "free" : "allocate";
    uint64_t at = mtprof__perfetto_time(x->shift_ns, event->shown_start_ns);
    size_t packet = mtprof__packet_begin(x, lane);
    mtprof__pb_u64(&x->pb, PF_PACKET_TIMESTAMP, at > lane->last_ns ? at - lane->last_ns : 1);
    lane->last_ns = at > lane->last_ns ? at : lane->last_ns + 1;
    size_t slice = mtprof__pb_begin(&x->pb, PF_PACKET_TRACK_EVENT);
    mtprof__pb_u64(&x->pb, PF_EVENT_TYPE, PF_INSTANT);
    mtprof__pb_u64(&x->pb, PF_EVENT_CATEGORY_IID, MTPROF_EVENT_KIND_MEMORY + 1);
    mtprof__pb_bytes(&x->pb, PF_EVENT_NAME, name, strlen(name));
    mtprof__annotate_i64(&x->pb, MTPROF__ANNOTATION_BYTES, event->bytes);
    mtprof__annotate_u64(&x->pb, MTPROF__ANNOTATION_ADDRESS, event->value);
    if (event->owner != 0) {
        mtprof__annotate_u64(&x->pb, MTPROF__ANNOTATION_OWNER, event->owner);
    }
    mtprof__pb_end(&x->pb, slice);
    return mtprof__packet_end(x, packet);
}

/* A program's flow. Where nothing is open viewers could not draw it: it is left out. */
static int write_flow(mtprof__perfetto *x, mtprof__lane *lane, const mtprof__event *event)
{
    static const char phases[] = {'s', 't', 'f'};
    if (lane->open == 0) {
        return 0;
    }
    return write_arrow(x, lane, phases[event->phase < sizeof phases ? event->phase : 1],
                       event->name_text, mtprof__perfetto_uuid(x, MTPROF__UUID_FLOW, event->value),
                       event->shown_start_ns);
}

/* The arrow from a forward op to its backward op, which has ended: at the start of both. */
static int write_forward(mtprof__perfetto *x, mtprof__lane *lane, const mtprof__event *event)
{
    static const char name[] = "fwdbwd";
    const mtprof_text text = {name, sizeof name - 1};
    mtprof__lane *from = NULL;
    mtprof__waiting origin;
    int64_t sequence = event->payload->sequence;
    uint32_t thread = mtprof__forward_thread(event->payload);
    if (thread == 0) {
        mtprof__forward_wait(&x->forwards, mtprof__model_thread_number(x->job->model, event->track),
                             sequence, event->shown_start_ns, event->track);
        return 0;
    }
    if (!mtprof__forward_take(&x->forwards, thread, sequence, &origin)) {
        return 0;
    }
    uint64_t id =
        mtprof__perfetto_uuid(x, MTPROF__UUID_BACKWARD, mtb_mix(thread, (uint64_t)sequence));
    MT_TRY(mtprof__lane_of_edges(x, origin.forward.note, &from));
    MT_TRY(write_arrow(x, from, 's', text, id, origin.start_ns));
    return write_arrow(x, lane, 'f', text, id, event->shown_start_ns);
}

static int write_point(mtprof__perfetto *x, const mtprof__event *event)
{
    mtprof__lane *lane = NULL;
    MT_TRY(mtprof__lane_of_edges(x, event->track, &lane));
    if (event->kind == MTPROF_EVENT_KIND_ALLOC) {
        MT_TRY(write_alloc(x, event));
        MT_TRY(write_memory(x, lane, event, 0, event->allocated));
        return event->reserved_bytes < 0 ? 0
                                         : write_memory(x, lane, event, 1, event->reserved_bytes);
    }
    if (event->kind == MTPROF_EVENT_KIND_COUNTER) {
        uint64_t uuid = 0;
        MT_TRY(mtprof__counter_track(x, lane, &x->counters, event->name, event->name_text, &uuid));
        return write_counter(x, lane, event, uuid, event->value);
    }
    if (event->kind == MTPROF_EVENT_KIND_FLOW) {
        return write_flow(x, lane, event);
    }
    return write_slow(x, lane, event, PF_INSTANT);
}

/* ---- functions ------------------------------------------------------------------------------- */

static int open_frame(void *user, uint32_t track, const mtprof__open_frame *frame)
{
    mtprof__perfetto *x = user;
    mtprof__lane *lane = NULL;
    MT_TRY(mtprof__lane_of_edges(x, track, &lane));
    mtprof__pb_clear(&x->text);
    if (mtprof__frame_module(frame->frame.function) >= 0) {
        mtb_write(&x->text_writer, frame->frame.function.bytes, frame->frame.function.length);
    } else {
        mtprof__frame_write(&x->text_writer, &frame->frame);
    }
    mtb_writer_flush(&x->text_writer);
    if (x->text_writer.error != 0 || x->text.failed) {
        return mtb_fail(MTPROF_ENOMEM, "export perfetto: no memory for a text");
    }
    mtprof__packet_event open = mtprof__event_begin(x, lane, frame->start_ns, PF_SLICE_BEGIN);
    mtprof__pb_u64(&x->pb, PF_EVENT_CATEGORY_IID, MTPROF_EVENT_KIND_FUNCTION + 1);
    mtprof__pb_text(&x->pb, PF_EVENT_NAME, x->text.bytes, x->text.used, &x->job->writer->replaced);
    mtprof__annotate_u64(&x->pb, MTPROF__ANNOTATION_SAMPLED, 1);
    return mtprof__event_end(x, open);
}

static int close_frame(void *user, uint32_t track, const mtprof__open_frame *frame, int64_t end_ns,
                       bool tied)
{
    mtprof__perfetto *x = user;
    mtprof__lane *lane = NULL;
    (void)frame, (void)tied;
    MT_TRY(mtprof__lane_of_edges(x, track, &lane));
    return mtprof__event_end(x, mtprof__event_begin(x, lane, end_ns, PF_SLICE_END));
}

static int frames_init(mtprof__perfetto *x)
{
    const mtprof__frame_sink sink = {.user = x, .open = open_frame, .close = close_frame};
    if ((x->job->info.wants & MTPROF_WANT_STACKS) == 0) {
        return 0;
    }
    x->frames = mtprof__frame_stack_new(x->job->model, &sink);
    return x->frames != NULL ? 0 : mtb_fail(MTPROF_ENOMEM, "export perfetto: no memory");
}

static int follow_frames(mtprof__perfetto *x, const mtprof__event *event)
{
    mtprof__frame_end known;
    return event->edge == MTPROF__EDGE_BEGIN ? mtprof__frame_stack_begin(x->frames, event)
                                             : mtprof__frame_stack_end(x->frames, event, &known);
}

/* ---- the stream ------------------------------------------------------------------------------ */

static int write_edge(mtprof__perfetto *x, const mtprof__event *event)
{
    mtprof__lane *lane = event->track < x->n_tracks ? x->tracks[event->track].edges : NULL;
    if (MT_UNLIKELY(lane == NULL)) {
        MT_TRY(mtprof__lane_of_edges(x, event->track, &lane));
    }
    lane->open += event->edge == MTPROF__EDGE_BEGIN ? 1 : UINT64_MAX; /* or one less */
    if (event->edge == MTPROF__EDGE_BEGIN) {
        return MT_LIKELY(begin_fast(x, lane, event)) ? 0
                                                     : write_slow(x, lane, event, PF_SLICE_BEGIN);
    }
    x->job->report.events++;
    if (MT_LIKELY(end_fast(x, lane, event))) {
        return 0;
    }
    MT_TRY(end_slow(x, lane, event));
    return mtprof__is_numbered(event) ? write_forward(x, lane, event) : 0;
}

static int write_event(mtprof__perfetto *x, const mtprof__event *event)
{
    if (event->edge <= MTPROF__EDGE_END) {
        MT_TRY(x->frames != NULL ? follow_frames(x, event) : 0);
        return write_edge(x, event);
    }
    if (event->edge == MTPROF__EDGE_SPAN) {
        x->job->report.events++;
        return write_span(x, event);
    }
    return write_point(x, event);
}

/* A step that the fast loop cannot write. */
static MT_COLD int write_step(mtprof__perfetto *x, const mtprof__plain_step *step, uint32_t track,
                              uint64_t id)
{
    mtprof__event event = mtprof__event_at(step->edge, step->kind, step->ns, step->ns);
    event.flags = step->flags;
    event.track = track;
    event.name = step->name;
    if (step->edge == MTPROF__EDGE_BEGIN) {
        event.name_text = mtprof_model_name(x->job->model, step->name);
        event.correlation = event.owner = id;
    }
    return write_edge(x, &event);
}

/* Steps as far as they are in order, near each other and of known names; how many. The lane's state
 * is in registers here: the stores into the buffer might change everything else. */
static size_t write_run(mtprof__perfetto *x, mtprof__lane *lane, const mtprof__plain_step *steps,
                        size_t n, uint64_t *next_id)
{
    mtb_writer *writer = x->writer;
    char tail[MTPROF__TAIL_BYTES];
    char end[MTPROF__TAIL_BYTES];
    memcpy(tail, lane->tail, sizeof tail);
    memcpy(end, lane->end, sizeof end);
    uint32_t n_tail = lane->tail_bytes;
    uint32_t n_end = lane->end_bytes;
    const mtprof__slice_head *heads = x->heads;
    mtprof__seen seen = lane->names;
    uint64_t shift_ns = x->shift_ns;
    uint64_t last_ns = lane->last_ns;
    uint64_t id = *next_id;
    uint64_t ends = 0;
    char *at = writer->buffer + writer->used;
    size_t i = 0;
    for (; i < n; i++) {
        uint64_t now = mtprof__perfetto_time(shift_ns, steps[i].ns);
        uint64_t delta = now - last_ns;
        if (MT_UNLIKELY((delta | id) >= MTPROF__PB_WIDE_END)) {
            break;
        }
        if (steps[i].edge == MTPROF__EDGE_BEGIN) {
            const mtprof__slice_head *head = find_head(heads, seen, steps[i].name, steps[i].kind);
            if (MT_UNLIKELY(head == NULL)) {
                break;
            }
            at = put_begin(at, tail, n_tail, head, (uint32_t)delta, (uint32_t)id);
            id++;
        } else {
            at = put_end(at, end, n_end, (uint32_t)delta);
            ends++;
        }
        last_ns = now;
    }
    lane->last_ns = last_ns;
    lane->open += (id - *next_id) - ends;
    mtb_writer_took(writer, at);
    x->job->report.events += ends;
    *next_id = id;
    return i;
}

static int write_steps(mtprof__perfetto *x, const mtprof__plain_step *steps, size_t n,
                       uint32_t track, uint64_t id)
{
    mtprof__lane *lane = NULL;
    MT_TRY(mtprof__lane_of_edges(x, track, &lane));
    for (size_t i = 0; i < n; i++) {
        if (x->writer->used + STEPS * FAST_BYTES > MTB_WRITER_BYTES) {
            mtb_writer_flush(x->writer);
        }
        i += write_run(x, lane, steps + i, n - i, &id);
        if (i < n) {
            MT_TRY(write_step(x, &steps[i], track, id));
            id += steps[i].edge == MTPROF__EDGE_BEGIN;
        }
    }
    return 0;
}

static int write_events(mtprof__perfetto *x, mtprof__events *events)
{
    mtprof__plain_step steps[STEPS];
    const mtprof__event *event = NULL;
    uint32_t track = 0;
    for (;;) {
        size_t n = x->frames == NULL ? mtprof__events_plain(events, steps, STEPS, &track) : 0;
        if (n > 0) {
            MT_TRY(write_steps(x, steps, n, track, mtprof__events_plain_id(events)));
        } else {
            int status = mtprof__events_next(events, &event);
            if (status == MTPROF_EEND) {
                return x->frames != NULL ? mtprof__frame_stack_finish(x->frames) : 0;
            }
            MT_TRY(status);
            MT_TRY(write_event(x, event));
        }
        MT_TRY(mtprof__export_tick(x->job, events));
    }
}

static int append_text(void *context, const void *bytes, size_t length)
{
    mtprof__pb *text = context;
    mtprof__pb_raw(text, bytes, length);
    return text->failed ? ENOMEM : 0;
}

static void annotate_count(mtprof__perfetto *x, const char *key, uint64_t value)
{
    mtprof_metadatum item = {
        .key = {key, strlen(key)}, .type = MTPROF_META_UINT, .value = value, .text = {"", 0}};
    mtprof__annotate_metadata(x, &item);
}

/* What the recorder lost or cut, where it is not zero, and the totals to compare with. */
static void annotate_health(mtprof__perfetto *x)
{
    mtprof_trace_info info = {.struct_size = sizeof info};
    char key[LABEL_BYTES];
    if (x->job->model->reader == NULL ||
        mtprof_reader_get_info(x->job->model->reader, &info) != MTPROF_OK) {
        return;
    }
    annotate_count(x, "mtprof_begins", info.health[MTPROF_HEALTH_BEGINS]);
    for (uint32_t i = 0; i < MTPROF_HEALTH_LOST_END; i++) {
        if (info.health[i] != 0) {
            (void)snprintf(key, sizeof key, "mtprof_lost_%s", mtprof_lost_cause(i));
            annotate_count(x, key, info.health[i]);
        }
    }
    if (info.health[MTPROF_HEALTH_RING_BEGINS] != 0) {
        annotate_count(x, "mtprof_evicted", info.health[MTPROF_HEALTH_RING_BEGINS]);
    }
    if (info.health[MTPROF_HEALTH_TRUNCATED] != 0) {
        annotate_count(x, "mtprof_truncated", info.health[MTPROF_HEALTH_TRUNCATED]);
    }
}

/* An instant on the process's own track: what is known of the trace as a whole. */
static mtprof__packet_event begin_note(mtprof__perfetto *x, int64_t at_ns, const char *name)
{
    mtprof__packet_event open = mtprof__event_begin(x, x->process, at_ns, PF_INSTANT);
    mtprof__pb_bytes(&x->pb, PF_EVENT_NAME, name, strlen(name));
    return open;
}

static int write_metadata(mtprof__perfetto *x)
{
    mtprof_metadatum item;
    mtprof__packet_event open = begin_note(x, x->job->info.start_ns, "trace metadata");
    annotate_health(x);
    for (uint32_t i = 0; mtprof_model_metadata(x->job->model, i, &item); i++) {
        mtprof__annotate_metadata(x, &item);
    }
    return mtprof__event_end(x, open);
}

/* Damage, of which all is known at the end: an instant there. */
static int write_damage(mtprof__perfetto *x)
{
    const mtprof_export_report *report = &x->job->report;
    MT_TRY(mtprof__export_damage(x->job));
    if (report->problems == 0) {
        return MTPROF_OK;
    }
    mtprof__packet_event open = begin_note(x, x->job->info.end_ns, "trace damage");
    annotate_count(x, "mtprof_problems", report->problems);
    annotate_count(x, "mtprof_problem_bytes", report->problem_bytes);
    annotate_count(x, "mtprof_problem_offset", report->problem_offset);
    return mtprof__event_end(x, open);
}

static int write_file(mtprof__perfetto *x, mtprof__events **events)
{
    mtprof__export_job *job = x->job;
    bool several = false;
    if (!mtb_writer_init(&x->text_writer, append_text, &x->text)) {
        return mtb_fail(MTPROF_ENOMEM, "export perfetto: no memory");
    }
    MT_TRY(mtprof__events_open(job->model, events));
    MT_TRY(mtprof__export_has_tasks(job, &several));
    if (several) {
        mtprof__events_split_tasks(*events);
    }
    MT_TRY(frames_init(x));
    MT_TRY(mtprof__perfetto_preface(x));
    MT_TRY(write_metadata(x));
    MT_TRY(write_events(x, *events));
    MT_TRY(write_damage(x));
    job->report.clamped = mtprof__events_totals_get(*events)->clamped + x->clamped;
    job->report.left_out += mtprof__events_totals_get(*events)->left_out;
    return 0;
}

int mtprof__export_perfetto(mtprof__export_job *job)
{
    int64_t first_ns = job->merge != NULL ? job->merge->first_ns : job->info.start_ns;
    mtprof__perfetto x = {
        .job = job,
        .forwards = {.entry_bytes = sizeof(mtprof__waiting), .limit = MTPROF__FORWARDS_MOST},
        .replays = {.entry_bytes = sizeof(mtprof__replayed), .limit = MTPROF__FORWARDS_MOST},
        .writer = job->writer,
        .shift_ns = first_ns < 0 ? 0 - (uint64_t)first_ns : 0,
        .uuid_seed = mtb_mix(job->info.uuid[0] ^ job->info.pid, job->info.uuid[1])};
    mtprof__events *events = NULL;
    int status = write_file(&x, &events);
    if (job->merge != NULL) {
        job->merge->n_sequences = x.n_sequences;
    }
    mtprof__events_close(events);
    (void)mtb_writer_finish(&x.text_writer);
    job->report.left_out += x.forwards.left_out + x.replays.left_out;
    mtprof__forwards_fini(&x.forwards);
    mtprof__forwards_fini(&x.replays);
    mtprof__frame_stack_free(x.frames);
    mtprof__lanes_fini(&x);
    mtprof__pb_fini(&x.pb);
    mtprof__pb_fini(&x.text);
    return status;
}
