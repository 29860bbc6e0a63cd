/* SPDX-License-Identifier: Apache-2.0
 *
 * Host spans. The usual one is written in one go: room is taken once, then pieces and digits are
 * stored one after another; what is rare (chrome_args.c) follows through the writer.
 */
#include "base/hash.h"
#include "mtprof/export/chrome/export_chrome_impl.h"

enum {
    SPAN_ROOM = 6 * 1024 /* head, place, inputs, numbers and fixed texts */
};
static_assert(SPAN_ROOM >= 2 * (MTPROF__PIECE_MOST + MTPROF__PIECE_PAD) + 2048, "one go");
static_assert((int)SPAN_ROOM <= (int)MTB_WRITER_ROOM, "the writer gives that much at once");

/* …,"ts":1.000,"dur":2.000: what all spans begin with. */
MT_INLINE char *put_start(mtprof__chrome *chrome, const mtprof__event *event,
                          mtprof__chrome_track *track)
{
    mtb_writer *writer = chrome->writer;
    const mtprof__piece *head = mtprof__chrome_head(chrome, event);
    if (MT_UNLIKELY(head == NULL)) {
        mtprof__chrome_write_head(writer, chrome, "X", event);
    }
    char *at = mtb_writer_room(writer, SPAN_ROOM);
    if (MT_LIKELY(head != NULL)) {
        at = mtprof__put_piece(at, head);
        writer->replaced += head->replaced;
    }
    track->seen = true;
    at = mtprof__put_piece(at, &track->place);
    int64_t start = mtprof__chrome_since_base(chrome, event->shown_start_ns);
    int64_t end = mtprof__chrome_since_base(chrome, event->shown_end_ns);
    at = mtprof__chrome_put_ns(chrome, at, start);
    at = MTPROF__PUT(at, ",\"dur\":");
    return mtb_put_thousandths(at, end > start ? end - start : 0);
}

/* Keeps the tail of a step for the events that follow. */
static MT_NOINLINE bool keep_tail(mtprof__chrome *chrome, int32_t step, bool dispatched)
{
    const mtprof__piece *type = dispatched ? &chrome->on_device : &chrome->on_host;
    mtb_writer *scratch = mtprof__chrome_scratch(chrome);
    mtb_write(scratch, type->text, type->length);
    mtb_write_member_i64(scratch, "step", step);
    chrome->tail_steps[dispatched] = -1;
    if (!mtprof__chrome_keep(chrome, &chrome->tails[dispatched], MTPROF__PIECE_MOST)) {
        chrome->error = MTPROF_ENOMEM;
        return false;
    }
    chrome->tail_steps[dispatched] = step;
    return true;
}

MT_INLINE char *put_tail(mtprof__chrome *chrome, const mtprof__event *event, char *at)
{
    bool dispatched = (event->flags & MTPROF_EVENT_FLAG_DISPATCHED) != 0;
    if (MT_LIKELY(event->step >= 0) && (MT_LIKELY(event->step == chrome->tail_steps[dispatched]) ||
                                        keep_tail(chrome, event->step, dispatched))) {
        return mtprof__put_piece(at, &chrome->tails[dispatched]);
    }
    return mtprof__put_piece(at, dispatched ? &chrome->on_device : &chrome->on_host);
}

/* The numbers by which readers join: op, its launches, its place in the order of begins. */
MT_INLINE char *put_ids(mtprof__chrome *chrome, const mtprof__event *event, char *at)
{
    if (MT_LIKELY(event->kind != MTPROF_EVENT_KIND_RUNTIME &&
                  event->kind != MTPROF_EVENT_KIND_FUNCTION)) {
        at = MTPROF__PUT(at, ",\"args\":{\"External id\":");
        at = mtprof__put_slow(&chrome->last_id, at, event->owner);
        if (MT_UNLIKELY((chrome->job->info.wants & MTPROF_WANT_TENSORS) != 0)) {
            at = MTPROF__PUT(at, ",\"Record function id\":"); /* execution traces' rf_id */
            at = mtb_put_u64(at, event->correlation);
            at = MTPROF__PUT(at, ",\"Ev Idx\":");
        } else {
            at = MTPROF__PUT(at, ",\"Record function id\":0,\"Ev Idx\":");
        }
        return mtprof__put_slow(&chrome->last_index, at, event->index);
    }
    at = MTPROF__PUT(at, ",\"args\":{\"Ev Idx\":");
    at = mtb_put_u64(at, event->index);
    if (event->kind == MTPROF_EVENT_KIND_RUNTIME && event->owner != 0) {
        at = MTPROF__PUT(at, ",\"External id\":");
        at = mtb_put_u64(at, event->owner);
    }
    return at;
}

static bool needs_correlation(const mtprof__event *event)
{
    return event->kind == MTPROF_EVENT_KIND_RUNTIME ||
           (event->flags & MTPROF_EVENT_FLAG_LAUNCHES) != 0;
}

MT_INLINE char *put_sequence(mtprof__chrome *chrome, const mtprof__payload *payload, char *at,
                             uint64_t *keys)
{
    if ((payload->fields & MTPROF__HAS_SEQUENCE) == 0 || payload->sequence < 0) {
        return at;
    }
    *keys |= MTPROF__KEY_BIT(SEQUENCE) | MTPROF__KEY_BIT(FORWARD_THREAD);
    at = MTPROF__PUT(at, ",\"Sequence number\":");
    at = mtprof__put_slow(&chrome->last_sequence, at, (uint64_t)payload->sequence);
    if ((payload->fields & MTPROF__HAS_FORWARD_THREAD) == 0 || payload->forward_thread == 0) {
        return MTPROF__PUT(at, ",\"Fwd thread id\":0");
    }
    at = MTPROF__PUT(at, ",\"Fwd thread id\":");
    return mtb_put_u64(at, payload->forward_thread);
}

/* Inputs that are not kept go through the writer, after which there is room again. */
static MT_NOINLINE char *write_inputs(mtprof__chrome *chrome, const mtprof__payload *payload,
                                      char *at, uint32_t *facts)
{
    mtb_writer_took(chrome->writer, at);
    *facts = mtprof__chrome_inputs_write(chrome, payload);
    return mtb_writer_room(chrome->writer, SPAN_ROOM);
}

MT_INLINE char *put_inputs(mtprof__chrome *chrome, const mtprof__payload *payload, char *at,
                           uint32_t *facts)
{
    const mtprof__inputs_slot *slot = mtprof__chrome_inputs(chrome, payload);
    if (MT_UNLIKELY(slot == NULL)) {
        return write_inputs(chrome, payload, at, facts);
    }
    *facts = slot->facts;
    chrome->writer->replaced += slot->text.replaced;
    return mtprof__put_piece(at, &slot->text);
}

/* Flavor mindtorch: every event of the category "runtime" has one. */
static char *put_correlation_id(const mtprof__event *event, char *at, uint64_t *keys)
{
    *keys |= MTPROF__KEY_BIT(CORRELATION_ID);
    at = MTPROF__PUT(at, ",\"correlation_id\":");
    return mtb_put_u64(at, event->correlation);
}

/* The args of a host event from their opening brace on, and what closes it. */
MT_INLINE void put_args(mtprof__chrome *chrome, const mtprof__event *event,
                        const mtprof__chrome_track *track, char *at)
{
    const mtprof__payload *payload = event->payload;
    uint64_t keys = MTPROF__KEY_BIT(EXTERNAL_ID) | MTPROF__KEY_BIT(RECORD_FUNCTION) |
                    MTPROF__KEY_BIT(EV_IDX) | MTPROF__KEY_BIT(DEVICE_TYPE) | MTPROF__KEY_BIT(STEP);
    uint32_t facts = 0;
    at = put_ids(chrome, event, at);
    if (MT_UNLIKELY(needs_correlation(event))) {
        at = MTPROF__PUT(at, ",\"correlation\":");
        at = mtb_put_u64(at, event->correlation);
        keys |= MTPROF__KEY_BIT(CORRELATION);
    }
    if (payload != NULL) {
        at = put_sequence(chrome, payload, at, &keys);
        if ((payload->fields & MTPROF__HAS_INPUTS) != 0) {
            at = put_inputs(chrome, payload, at, &facts);
            keys |= MTPROF__KEY_BIT(CONCRETE) | MTPROF__KEY_BIT(TYPES) | MTPROF__KEY_BIT(STRIDES) |
                    MTPROF__KEY_BIT(DIMS) | MTPROF__KEY_BIT(SHAPES);
        }
    }
    if (MT_LIKELY(event->kind == MTPROF_EVENT_KIND_OP && !chrome->lean)) {
        at = mtprof__put_piece(at, &track->op_tail);
        at = mtprof__put_slow(&chrome->last_id, at, event->correlation);
        keys |= MTPROF__KEY_BIT(RUNTIME_NAME) | MTPROF__KEY_BIT(RUNTIME_TID) |
                MTPROF__KEY_BIT(CORRELATION_ID);
    }
    if (MT_UNLIKELY(chrome->mindtorch) && event->kind == MTPROF_EVENT_KIND_RUNTIME) {
        at = put_correlation_id(event, at, &keys);
    }
    at = put_tail(chrome, event, at);
    if (MT_UNLIKELY(mtprof__chrome_has_extras(event, facts))) {
        mtb_writer_took(chrome->writer, at);
        mtprof__chrome_extras(chrome, event, facts, keys);
        mtb_write_literal(chrome->writer, "}},\n");
        return;
    }
    mtb_writer_took(chrome->writer, MTPROF__PUT(at, "}},\n"));
}

/* Flavor mindtorch: the runtime call of an op, as an event of its own. */
static void write_dispatch(mtprof__chrome *chrome, const mtprof__event *event,
                           const mtprof__chrome_track *track)
{
    mtb_writer *writer = chrome->writer;
    mtb_write_literal(writer, "{\"ph\":\"X\",\"cat\":\"runtime\",\"name\":\"dispatch_kernel\",");
    mtprof__chrome_write_times(chrome, track, event->shown_start_ns, event->shown_end_ns);
    mtb_write_literal(writer, ",\"args\":{\"correlation_id\":");
    mtb_write_u64(writer, event->correlation);
    mtb_write_member_json(writer, "op_name", event->name_text.bytes, event->name_text.length);
    mtb_write_literal(writer, "}},\n");
}

void mtprof__chrome_host_span(mtprof__chrome *chrome, const mtprof__event *event,
                              mtprof__chrome_track *track, bool tied)
{
    bool held =
        mtprof__chrome_may_hold(track, tied) &&
        mtprof__chrome_hold(chrome, track, event->shown_start_ns, event->shown_end_ns, tied);
    char *at = put_start(chrome, event, track);
    put_args(chrome, event, track, at);
    if (MT_UNLIKELY(chrome->mindtorch) && event->kind == MTPROF_EVENT_KIND_OP) {
        write_dispatch(chrome, event, track);
    }
    if (MT_UNLIKELY(held)) {
        mtprof__chrome_held(chrome, track, mtprof__frame_order(event), tied);
    }
}

/* A pair of asynchronous events: spans of one track would have to nest. Those of a task have one
 * id, so that each task has a track; its scopes nest there. */
void mtprof__chrome_async_span(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtb_writer *writer = chrome->writer;
    const mtprof_text *task = mtprof__event_task(event);
    mtprof__event told = *event;
    uint64_t id = event->correlation;
    if (task != NULL) {
        id = mtb_mix(mtb_hash_bytes(task->bytes, task->length), event->track) >> 12;
        told.tied = 1; /* its parent may be another task's: written explicitly */
    }
    if (chrome->job->merge != NULL) { /* ids are those of the file */
        id = mtb_mix(id, chrome->job->merge->index + 1u) >> 12;
    }
    mtprof__chrome_track *track = mtprof__chrome_track_of(chrome, event->track);
    int64_t start = mtprof__chrome_since_base(chrome, event->shown_start_ns);
    int64_t end = mtprof__chrome_since_base(chrome, event->shown_end_ns);
    track->seen = true;
    for (int i = 0; i < 2; i++) {
        mtprof__chrome_write_head(writer, chrome, i == 0 ? "b" : "e", event);
        mtb_write_literal(writer, "\"id\":");
        mtb_write_u64(writer, id);
        mtb_write_literal(writer, ",");
        mtb_write(writer, track->place.text, track->place.length);
        mtprof__chrome_write_ns(chrome, i == 0 || end < start ? start : end);
        if (i == 0) {
            put_args(chrome, &told, track, mtb_writer_room(writer, SPAN_ROOM));
        } else {
            mtb_write_literal(writer, "},\n");
        }
    }
}

void mtprof__chrome_launch(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtprof__chrome_track *track = mtprof__chrome_track_of(chrome, event->track);
    mtb_writer *writer = chrome->writer;
    uint64_t keys = MTPROF__KEY_BIT(CORRELATION) | MTPROF__KEY_BIT(EXTERNAL_ID) |
                    MTPROF__KEY_BIT(EV_IDX) | MTPROF__KEY_BIT(DEVICE_TYPE) | MTPROF__KEY_BIT(STEP);
    mtprof__frame_stack_pass(chrome->frames, event);
    char *at = put_start(chrome, event, track);
    at = MTPROF__PUT(at, ",\"args\":{\"correlation\":");
    at = mtb_put_u64(at, event->correlation);
    if (event->owner != 0) {
        at = MTPROF__PUT(at, ",\"External id\":");
        at = mtb_put_u64(at, event->owner);
    }
    if (event->index != UINT64_MAX) {
        at = MTPROF__PUT(at, ",\"Ev Idx\":");
        at = mtb_put_u64(at, event->index);
    }
    if (chrome->mindtorch) {
        at = put_correlation_id(event, at, &keys);
    }
    mtb_writer_took(writer, put_tail(chrome, event, at));
    if (mtprof__chrome_has_extras(event, 0)) {
        mtprof__chrome_extras(chrome, event, 0, keys);
    }
    mtb_write_literal(writer, "}},\n");
}

/* All overheads share one track, so theirs are cut where they would overlap. */
void mtprof__chrome_overhead(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtb_writer *writer = chrome->writer;
    int64_t start = mtprof__chrome_since_base(chrome, event->shown_start_ns);
    int64_t end = mtprof__chrome_since_base(chrome, event->shown_end_ns);
    if (start < chrome->overhead_end_ns) {
        start = chrome->overhead_end_ns;
        chrome->job->report.clamped++;
    }
    end = end < start ? start : end;
    chrome->overhead_end_ns = end;
    mtprof__chrome_write_head(writer, chrome, "X", event);
    const mtprof__export_merge *merge = chrome->job->merge;
    mtb_write_format(writer, "\"pid\":%lld,\"tid\":0,\"ts\":",
                     merge != NULL ? ((long long)merge->number + 2) * MTPROF__MERGE_PIDS - 1 : -1);
    mtprof__chrome_write_ns(chrome, start);
    mtb_write_member_thousandths(writer, "dur", end - start);
    mtb_write_literal(writer, "},\n");
}
