/* SPDX-License-Identifier: Apache-2.0
 *
 * Host spans. The usual one is written in one go: room is taken once, then pieces and digits are
 * stored one after another; what is rare (chrome_args.c) follows through the writer.
 */
#include "mtprof/export/export_chrome_impl.h"

enum {
    SPAN_ROOM = 4 * 1024 /* head, place, numbers and fixed texts */
};
static_assert(SPAN_ROOM >= MTPROF__PIECE_MOST + 2 * MTPROF__PIECE_PAD + 1024, "one go");
static_assert((int)SPAN_ROOM <= (int)MTB_WRITER_ROOM, "the writer gives that much at once");

/* ..., "ts": 1.000, "dur": 2.000: what all spans begin with. */
static char *put_start(mtprof__chrome *chrome, const mtprof__event *event,
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
    at = MTPROF__PUT(at, ", \"dur\": ");
    return mtb_put_thousandths(at, end > start ? end - start : 0);
}

static char *put_tail(const mtprof__chrome *chrome, const mtprof__event *event, char *at)
{
    at = mtprof__put_piece(at, (event->flags & MTPROF_EVENT_DISPATCHED) != 0 ? &chrome->on_device
                                                                             : &chrome->on_host);
    if (event->step >= 0) {
        at = MTPROF__PUT(at, ", \"step\": ");
        at = mtb_put_u64(at, (uint64_t)event->step);
    }
    return at;
}

/* The numbers by which readers join: op, its launches, its place in the order of begins. */
static char *put_ids(const mtprof__event *event, char *at, const char **id, size_t *id_length)
{
    if (event->kind != MTPROF_EVENT_RUNTIME && event->kind != MTPROF_EVENT_FUNCTION) {
        at = MTPROF__PUT(at, ", \"args\": {\"External id\": ");
        char *digits = at;
        at = mtb_put_u64(at, event->owner);
        *id = digits;
        *id_length = (size_t)(at - digits);
        at = MTPROF__PUT(at, ", \"Record function id\": 0, \"Ev Idx\": ");
        return mtb_put_u64(at, event->index);
    }
    at = MTPROF__PUT(at, ", \"args\": {\"Ev Idx\": ");
    at = mtb_put_u64(at, event->index);
    if (event->kind == MTPROF_EVENT_RUNTIME && event->owner != 0) {
        at = MTPROF__PUT(at, ", \"External id\": ");
        at = mtb_put_u64(at, event->owner);
    }
    return at;
}

static bool needs_correlation(const mtprof__event *event)
{
    return event->kind == MTPROF_EVENT_RUNTIME || (event->flags & MTPROF_EVENT_LAUNCHES) != 0;
}

static char *put_sequence(const mtprof__payload *payload, char *at, uint64_t *keys)
{
    if ((payload->fields & MTPROF__HAS_SEQUENCE) == 0 || payload->sequence < 0) {
        return at;
    }
    bool forward = (payload->fields & MTPROF__HAS_FORWARD_THREAD) != 0;
    *keys |= MTPROF__KEY_BIT(SEQUENCE) | MTPROF__KEY_BIT(FORWARD_THREAD);
    at = MTPROF__PUT(at, ", \"Sequence number\": ");
    at = mtb_put_i64(at, payload->sequence);
    at = MTPROF__PUT(at, ", \"Fwd thread id\": ");
    return mtb_put_u64(at, forward ? payload->forward_thread : 0);
}

/* The args of a host event from their opening brace on, without the closing one. */
static void write_args(mtprof__chrome *chrome, const mtprof__event *event,
                       const mtprof__chrome_track *track, char *at)
{
    mtb_writer *writer = chrome->writer;
    const mtprof__payload *payload = event->payload;
    uint64_t keys = MTPROF__KEY_BIT(EXTERNAL_ID) | MTPROF__KEY_BIT(RECORD_FUNCTION) |
                    MTPROF__KEY_BIT(EV_IDX) | MTPROF__KEY_BIT(DEVICE_TYPE) | MTPROF__KEY_BIT(STEP);
    const char *id = NULL;
    size_t id_length = 0;
    uint32_t facts = 0;
    at = put_ids(event, at, &id, &id_length);
    if (needs_correlation(event)) {
        at = MTPROF__PUT(at, ", \"correlation\": ");
        at = mtb_put_u64(at, event->correlation);
        keys |= MTPROF__KEY_BIT(CORRELATION);
    }
    char digits[24];
    memcpy(digits, id != NULL ? id : chrome->nothing, sizeof digits); /* the writer may move on */
    if (payload != NULL) {
        at = put_sequence(payload, at, &keys);
        mtb_writer_took(writer, at);
        if ((payload->fields & MTPROF__HAS_INPUTS) != 0) {
            facts = mtprof__chrome_inputs(chrome, payload, &keys);
        }
        at = mtb_writer_room(writer, SPAN_ROOM);
    }
    if (event->kind == MTPROF_EVENT_OP) {
        at = mtprof__put_piece(at, &track->op_tail);
        memcpy(at, digits, sizeof digits);
        at += id_length;
        keys |= MTPROF__KEY_BIT(RUNTIME_NAME) | MTPROF__KEY_BIT(RUNTIME_TID) |
                MTPROF__KEY_BIT(CORRELATION_ID);
    }
    at = put_tail(chrome, event, at);
    mtb_writer_took(writer, at);
    if (MT_UNLIKELY(mtprof__chrome_has_extras(event, facts))) {
        mtprof__chrome_extras(chrome, event, facts, keys);
    }
}

/* Flavor mindtorch: the call behind an op, as an event of its own. */
static void write_dispatch(mtprof__chrome *chrome, const mtprof__event *event,
                           const mtprof__chrome_track *track)
{
    mtb_writer *writer = chrome->writer;
    int64_t start = mtprof__chrome_since_base(chrome, event->shown_start_ns);
    int64_t end = mtprof__chrome_since_base(chrome, event->shown_end_ns);
    mtb_write_literal(writer,
                      "{\"ph\": \"X\", \"cat\": \"runtime\", \"name\": \"dispatch_kernel\", ");
    mtb_write(writer, track->place.text, track->place.length);
    mtprof__chrome_write_ns(chrome, start);
    mtb_write_literal(writer, ", \"dur\": ");
    mtb_write_thousandths(writer, end > start ? end - start : 0);
    mtb_write_literal(writer, ", \"args\": {\"correlation_id\": ");
    mtb_write_u64(writer, event->correlation);
    mtb_write_literal(writer, ", \"op_name\": ");
    mtb_write_json(writer, event->name_text.bytes, event->name_text.length);
    mtb_write_literal(writer, "}},\n");
}

void mtprof__chrome_host_span(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtprof__chrome_track *track = mtprof__chrome_track_of(chrome, event->track);
    char *at = put_start(chrome, event, track);
    write_args(chrome, event, track, at);
    mtb_write_literal(chrome->writer, "}},\n");
    if (MT_UNLIKELY(chrome->mindtorch) && event->kind == MTPROF_EVENT_OP) {
        write_dispatch(chrome, event, track);
    }
}

/* A pair of asynchronous events: spans of one track would have to nest. */
void mtprof__chrome_async_span(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtb_writer *writer = chrome->writer;
    mtprof__chrome_track *track = mtprof__chrome_track_of(chrome, event->track);
    int64_t start = mtprof__chrome_since_base(chrome, event->shown_start_ns);
    int64_t end = mtprof__chrome_since_base(chrome, event->shown_end_ns);
    track->seen = true;
    for (int i = 0; i < 2; i++) {
        mtprof__chrome_write_head(writer, chrome, i == 0 ? "b" : "e", event);
        mtb_write_literal(writer, "\"id\": ");
        mtb_write_u64(writer, event->correlation);
        mtb_write_literal(writer, ", ");
        mtb_write(writer, track->place.text, track->place.length);
        mtprof__chrome_write_ns(chrome, i == 0 || end < start ? start : end);
        if (i == 0) {
            write_args(chrome, event, track, mtb_writer_room(writer, SPAN_ROOM));
            mtb_write_literal(writer, "}");
        }
        mtb_write_literal(writer, "},\n");
    }
}

void mtprof__chrome_launch(mtprof__chrome *chrome, const mtprof__event *event)
{
    mtprof__chrome_track *track = mtprof__chrome_track_of(chrome, event->track);
    mtb_writer *writer = chrome->writer;
    uint64_t keys = MTPROF__KEY_BIT(CORRELATION) | MTPROF__KEY_BIT(EXTERNAL_ID) |
                    MTPROF__KEY_BIT(EV_IDX) | MTPROF__KEY_BIT(DEVICE_TYPE) | MTPROF__KEY_BIT(STEP);
    char *at = put_start(chrome, event, track);
    at = MTPROF__PUT(at, ", \"args\": {\"correlation\": ");
    at = mtb_put_u64(at, event->correlation);
    if (event->owner != 0) {
        at = MTPROF__PUT(at, ", \"External id\": ");
        at = mtb_put_u64(at, event->owner);
    }
    if (event->index != UINT64_MAX) {
        at = MTPROF__PUT(at, ", \"Ev Idx\": ");
        at = mtb_put_u64(at, event->index);
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
    mtb_write_literal(writer, "\"pid\": -1, \"tid\": 0, \"ts\": ");
    mtprof__chrome_write_ns(chrome, start);
    mtb_write_literal(writer, ", \"dur\": ");
    mtb_write_thousandths(writer, end - start);
    mtb_write_literal(writer, "},\n");
}
