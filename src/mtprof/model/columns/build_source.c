/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/columns/build_source.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/model/columns/build_slot.h"
#include "mtprof/model/prepare.h"
#include "mtprof/read/reader_impl.h"

#include <string.h>

int mtprof__source_stream_init(mtprof__source_stream *stream, mtprof_model *model, uint32_t index)
{
    const mtprof_reader *reader = model->reader;
    mtprof_text name;
    memset(stream, 0, sizeof *stream);
    stream->model = model;
    stream->covered_from = 1; /* no stretch is known */
    stream->timebase.map = &reader->clock;
    stream->source = reader->index.streams[index].slot;
    if (!mtprof_reader_source(reader, stream->source, &name, &stream->device_type)) {
        stream->device_type = (mtprof_text){"", 0};
    }
    mtprof__cursor_source source = {&reader->bytes, &reader->index, &reader->info};
    mtprof__cursor_init(&stream->cursor, &source, &reader->index.streams[index]);
    return MTPROF_OK;
}

void mtprof__source_stream_fini(mtprof__source_stream *stream)
{
    mtprof__cursor_fini(&stream->cursor);
    mtprof__payload_fini(&stream->payload);
}

/* ---- records --------------------------------------------------------------------------------- */

static int take_record(mtprof__source_stream *stream, mtprof_record *record)
{
    for (;;) {
        int status = mtprof__cursor_next(&stream->cursor, record);
        if (status == MTPROF_OK || status == MTPROF_EEND || status == MTPROF_ENOMEM) {
            return status;
        } /* damage: the reader found it for the clock pairs, and has it in its list */
    }
}

/* Payloads that follow; the record after them waits. */
static int gather(mtprof__source_stream *stream)
{
    mtprof_record record;
    for (;;) {
        int status = take_record(stream, &record);
        if (status == MTPROF_EEND) {
            return MTPROF_OK;
        }
        MT_TRY(status);
        if (record.kind != MTPROF_REC_META && record.kind != MTPROF_REC_NAME) {
            stream->waiting = record;
            stream->has_waiting = true;
            return MTPROF_OK;
        }
        MT_TRY(mtprof__payload_add(&stream->payload, stream->model->reader, &record));
    }
}

/* Nanoseconds of a time on the source's clock; a source without clock pairs counts nanoseconds. */
static int64_t source_ns(mtprof__source_stream *stream, uint64_t time)
{
    uint64_t ticks = 0;
    if (mtprof_reader_source_ticks(stream->model->reader, stream->source, time, &ticks)) {
        return mtprof__timebase_ns(&stream->timebase, ticks);
    }
    return time > INT64_MAX ? INT64_MAX : (int64_t)time;
}

/* Device work belongs to the window that was open, or the last that had been, when it started. The
 * stretch of the last answer is kept: a source's work comes nearly in order of time. */
static void find_coverage(mtprof__source_stream *stream, int64_t ns)
{
    const mtprof_model *model = stream->model;
    const mtprof__control_read *control = &model->reader->control;
    size_t low = 0;
    size_t high = control->n_epochs;
    stream->covered_from = INT64_MIN;
    stream->covered_to = INT64_MAX;
    stream->covered = model->strays && control->n_epochs == 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int64_t open_ns = mtprof_reader_ns(model->reader, control->epochs[middle].open_ticks);
        if (open_ns <= ns) {
            low = middle + 1;
            stream->covered_from = open_ns;
        } else {
            high = middle;
            stream->covered_to = open_ns;
        }
    }
    for (uint32_t i = 0; control->n_epochs > 0 && i < model->n_epochs; i++) {
        stream->covered |= model->epochs[i].epoch == control->epochs[low > 0 ? low - 1 : 0].epoch;
    }
}

static bool is_covered(mtprof__source_stream *stream, int64_t ns)
{
    if (ns < stream->covered_from || ns >= stream->covered_to) {
        find_coverage(stream, ns);
    }
    return stream->covered;
}

/* Sets `work`; false: nothing to show. */
static bool take_work(mtprof__source_stream *stream, const mtprof_record *record)
{
    mtprof__work *work = &stream->work;
    *work = (mtprof__work){.record = record->kind, .aux = record->aux, .string = record->arg};
    work->start_ns = work->end_ns = source_ns(stream, record->words[0]);
    if (record->kind == MTPROF_REC_ACTIVITY) {
        const uint64_t *w = record->words;
        work->kind = (uint8_t)(MTPROF_EVENT_KIND_KERNEL + record->aux);
        work->end_ns = source_ns(stream, w[1]);
        work->key = w[2];
        work->device = (uint32_t)w[3];
        work->queue = (uint32_t)(w[3] >> 32);
        work->source_id = w[4];
        work->bytes = w[5];
        if (record->aux > MTPROF_ACTIVITY_OVERHEAD) {
            work->kind = MTPROF_EVENT_KIND_OTHER; /* of a later version */
        }
    } else if (record->kind == MTPROF_REC_COUNTER) {
        work->value = record->words[1];
    } else if (record->kind != MTPROF_REC_INSTANT) {
        return false;
    }
    if (work->end_ns < work->start_ns) {
        work->end_ns = work->start_ns;
    }
    return is_covered(stream, work->start_ns);
}

int mtprof__source_stream_next(mtprof__source_stream *stream)
{
    for (;;) {
        mtprof_record record;
        if (stream->has_waiting) {
            record = stream->waiting;
            stream->has_waiting = false;
        } else {
            MT_TRY(take_record(stream, &record));
        }
        if (record.kind != MTPROF_REC_ACTIVITY && record.kind != MTPROF_REC_COUNTER &&
            record.kind != MTPROF_REC_INSTANT) {
            continue;
        }
        bool shown = take_work(stream, &record);
        mtprof__payload_reset(&stream->payload);
        MT_TRY(gather(stream));
        if (shown) {
            return MTPROF_OK;
        }
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

int mtprof__source_stream_place(mtprof__source_stream *stream, uint32_t *device, uint32_t *track)
{
    mtprof_model *model = stream->model;
    const mtprof__work *work = &stream->work;
    static const mtprof_text unnamed = {"NPU", 3};
    *device = 0;
    if (work->record != MTPROF_REC_ACTIVITY || work->kind == MTPROF_EVENT_KIND_CALL ||
        work->kind == MTPROF_EVENT_KIND_OVERHEAD) {
        mtprof_track entry = {.pid = (int64_t)model->info.pid,
                              .tid = (int64_t)work->queue,
                              .name = {"", 0},
                              .process_name = model->process_name};
        mtprof_text type;
        (void)mtprof_reader_source(model->reader, stream->source, &entry.name, &type);
        return mtprof__dictionary_thread_track(&model->dictionary, &entry, track);
    }
    int32_t index = work->device > INT32_MAX ? INT32_MAX : (int32_t)work->device;
    MT_TRY(mtprof__dictionary_device(&model->dictionary,
                                     stream->device_type.length > 0 ? stream->device_type : unnamed,
                                     index, device));
    return mtprof__dictionary_queue_track(&model->dictionary, *device, work->queue, track);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static int add_work(mtprof__source_stream *stream, mtprof__run *run, mtprof__step_clock *steps)
{
    mtprof__columns *c = &run->columns;
    const mtprof__work *work = &stream->work;
    mtprof_model *model = stream->model;
    uint32_t device = 0;
    mtprof_text text;
    if (c->n == c->capacity) {
        MT_TRY(mtprof__columns_reserve(c, c->n + c->n / 2 + 64));
    }
    uint32_t row = (uint32_t)c->n;
    MT_TRY(mtprof__source_stream_place(stream, &device, &c->track[row]));
    if (work->string == 0 && mtprof__payload_name(&stream->payload, &text)) {
        MT_TRY(mtprof__dictionary_name(&model->dictionary, text, &c->name[row]));
    } else {
        c->name[row] = mtprof__dictionary_string_name(&model->dictionary, work->string);
    }
    c->n++;
    c->start_ns[row] = work->start_ns;
    c->end_ns[row] = work->end_ns;
    c->self_ns[row] = 0;
    c->parent[row] = MTPROF_NO_EVENT;
    c->step[row] = mtprof__step_at(steps, work->start_ns);
    c->index[row] = MTPROF_NO_EVENT;
    c->kind[row] = work->kind;
    c->device[row] = (uint8_t)device;
    c->flags[row] = 0;
    if (work->kind == MTPROF_EVENT_KIND_CALL || work->kind == MTPROF_EVENT_KIND_OVERHEAD) {
        c->flags[row] = MTPROF_EVENT_FLAG_ASYNC; /* host time that no thread's stream knows of */
    }
    if (work->bytes != 0) {
        MT_TRY(mtprof__columns_set(c, MTPROF_COLUMN_BYTES, row, work->bytes));
    }
    if (work->key != 0) {
        MT_TRY(mtprof__links_add(&run->works, work->key, row));
    }
    return mtprof__payload_to_columns(model, &stream->payload, &stream->inputs, c, row);
}

int mtprof__source_to_run(mtprof_model *model, uint32_t index, mtprof__run *run)
{
    mtprof__source_stream stream;
    mtprof__step_clock steps;
    mtprof__step_clock_init(&steps, model);
    int status = mtprof__source_stream_init(&stream, model, index);
    run->order = UINT32_MAX;
    while (status == MTPROF_OK) {
        status = mtprof__source_stream_next(&stream);
        if (status == MTPROF_OK && stream.work.record == MTPROF_REC_ACTIVITY) {
            status = add_work(&stream, run, &steps);
        }
    }
    mtprof__source_stream_fini(&stream);
    return status == MTPROF_EEND ? MTPROF_OK : status;
}
