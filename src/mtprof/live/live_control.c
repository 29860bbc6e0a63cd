/* SPDX-License-Identifier: Apache-2.0
 *
 * What is new in the control stream and in the definitions.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/live/live_impl.h"

#include <string.h>

enum {
    ANCHORS_MOST = 1024 /* of the clock: one a second; older ones are for times that were read */
};

/* The next record of a text stream; damage is counted. */
static int next_record(mtprof_live *live, mtprof__live_stream *stream, mtprof_record *record)
{
    for (;;) {
        int status = mtprof__cursor_next(stream->cursor, record);
        if (status != MTPROF_EFORMAT && status != MTPROF_EIO) {
            return status;
        }
        live->damaged++;
    }
}

/* ---- control --------------------------------------------------------------------------------- */

/* Old anchors go, so that days of recording cost no more than minutes. */
static void settle_clock(mtprof_live *live)
{
    mtprof__clock_map *clock = &live->reader.clock;
    mtprof__clock_map_finish(clock);
    if (clock->n > ANCHORS_MOST) {
        size_t kept = ANCHORS_MOST / 2;
        memmove(clock->anchors, clock->anchors + clock->n - kept, kept * sizeof *clock->anchors);
        clock->n = kept;
    }
    for (size_t i = 0; i < live->n_streams; i++) { /* stretches that they remember are not valid */
        mtprof__live_stream *s = live->streams[i];
        if (s->thread != NULL) {
            s->thread->slot.timebase.low = s->thread->slot.timebase.high = 0;
        } else if (s->source != NULL) {
            s->source->timebase.low = s->source->timebase.high = 0;
        }
    }
}

/* One block per epoch that is known, in order, and the one for others. */
static int settle_blocks(mtprof_live *live)
{
    const mtprof__control_read *control = &live->reader.control;
    size_t n = control->n_epochs + 1;
    if (!mtb_grow((void **)&live->blocks, &live->blocks_capacity, n, sizeof *live->blocks)) {
        return mtb_fail(MTPROF_ENOMEM, "follow trace: no memory for %zu epochs", n);
    }
    for (size_t i = 0; i < control->n_epochs; i++) {
        const mtprof_epoch_info *epoch = &control->epochs[i];
        bool closed = epoch->close_kind != MTPROF_CLOSE_NONE;
        live->blocks[i] = (mtprof__epoch_block){
            .epoch = epoch->epoch,
            .window = epoch->window,
            .closed = closed,
            .open_ns = mtprof_reader_ns(&live->reader, epoch->open_ticks),
            .close_ns = closed ? mtprof_reader_ns(&live->reader, epoch->close_ticks) : INT64_MIN,
        };
    }
    live->blocks[n - 1] =
        (mtprof__epoch_block){.epoch = UINT32_MAX, .open_ns = INT64_MAX, .close_ns = INT64_MIN};
    live->n_blocks = n;
    for (size_t i = 0; i < live->n_streams; i++) {
        if (live->streams[i]->thread != NULL) {
            live->streams[i]->thread->slot.coverage =
                (mtprof__coverage){live->blocks, (uint32_t)n, true};
        }
    }
    return MTPROF_OK;
}

/* A step that began before the window is none of it. */
static int add_step(mtprof_live *live, const mtprof_record *record)
{
    const mtprof__live_begin begin = {mtprof_reader_ns(&live->reader, record->ticks),
                                      record->words[1]};
    live->steps_told = true;
    live->step = record->words[1] > INT64_MAX ? INT64_MAX : (int64_t)record->words[1];
    live->now.steps += begin.ns >= live->floor_ns;
    if (live->by_step && begin.ns >= live->floor_ns &&
        !mtb_append(live->begins, live->n_begins, live->begins_capacity, &begin)) {
        return mtb_fail(MTPROF_ENOMEM, "follow trace: no memory for %zu steps", live->n_begins + 1);
    }
    return MTPROF_OK;
}

static int take_control(mtprof_live *live, const mtprof_record *record)
{
    if (record->kind == MTPROF_REC_STEP) {
        MT_TRY(add_step(live, record));
    } else if (record->kind != MTPROF_REC_TRACE_META) { /* those are not for tables */
        MT_TRY(mtprof__control_read_add(&live->reader.control, &live->reader.clock, record,
                                        &live->reader.problems));
    }
    return MTPROF_OK;
}

int mtprof__live_read_control(mtprof_live *live)
{
    mtprof__live_stream *stream = NULL;
    mtprof_record record;
    size_t n_anchors = live->reader.clock.n;
    bool any = live->n_blocks == 0;
    MT_TRY(mtprof__live_stream_get(live, MTPROF_STREAM_CONTROL, 0, &stream));
    int status;
    while ((status = next_record(live, stream, &record)) == MTPROF_OK) {
        MT_TRY(take_control(live, &record));
        any =
            any || record.kind == MTPROF_REC_WINDOW_OPEN || record.kind == MTPROF_REC_WINDOW_CLOSE;
    }
    mtprof__live_stream_trim(stream);
    live->damaged += live->reader.problems.n;
    mtprof__problems_cut(&live->reader.problems, 0);
    if (live->reader.clock.n != n_anchors) {
        settle_clock(live);
    }
    if (live->reader.control.last_ticks > 0) {
        int64_t ns = mtprof_reader_ns(&live->reader, live->reader.control.last_ticks);
        live->last_ns = ns > live->last_ns ? ns : live->last_ns;
    }
    MT_TRY(status == MTPROF_EEND ? MTPROF_OK : status);
    return any ? settle_blocks(live) : MTPROF_OK;
}

/* ---- definitions ----------------------------------------------------------------------------- */

/* Stacks and modules are in no row. */
static bool is_needed(uint8_t kind)
{
    return kind == MTPROF_REC_DEF_STRING || kind == MTPROF_REC_DEF_INPUTS ||
           kind == MTPROF_REC_DEF_THREAD || kind == MTPROF_REC_DEF_SOURCE;
}

int mtprof__live_read_definitions(mtprof_live *live)
{
    mtprof__live_stream *stream = NULL;
    mtprof_record record;
    mtprof__definitions *definitions = &live->reader.definitions;
    MT_TRY(mtprof__live_stream_get(live, MTPROF_STREAM_DEFINITIONS, 0, &stream));
    int status;
    while ((status = next_record(live, stream, &record)) == MTPROF_OK) {
        if (is_needed(record.kind)) {
            MT_TRY(mtprof__definitions_add(definitions, &record));
        }
    }
    mtprof__live_stream_trim(stream);
    MT_TRY(status == MTPROF_EEND ? MTPROF_OK : status);
    if (definitions->n_orders != live->n_definitions) {
        MT_TRY(mtprof__definitions_finish(definitions, &live->reader.problems));
        live->n_definitions = definitions->n_orders;
        mtprof__problems_cut(&live->reader.problems, 0);
    }
    return MTPROF_OK;
}
