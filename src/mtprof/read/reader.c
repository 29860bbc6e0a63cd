/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and closing a trace, its streams and cursors.
 *
 * Opening
 *
 *      header -> directory -> control stream -> clock pairs of sources -> definitions
 *
 * Definitions come last, for the reason that chunk_index.h gives under CI3. Source streams are read
 * through once for their clock pairs, since later pairs say what earlier times mean; threads, the
 * bulk of a trace, are not touched. Damage in what is read becomes a problem; a cursor that comes
 * by later reports it again.
 *
 * The end of a trace that is not closed is the largest of: the start, the times in the control
 * stream, and the time at which each chunk of a thread was begun. That is cheap and early by up to
 * a chunk of events; a caller that needs the time of the last event has to read the events.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mtprof/format/layout.h"
#include "mtprof/read/header_read.h"
#include "mtprof/read/reader_impl.h"

#include <string.h>

/* ---- opening --------------------------------------------------------------------------------- */

/* Calls take() for every record of a stream; what cannot be read becomes a problem. */
static int read_stream(mtprof_reader *reader, mtprof__read_stream *stream,
                       int (*take)(mtprof_reader *, void *, const mtprof_record *), void *context)
{
    const mtprof__cursor_source source = {&reader->bytes, &reader->index, &reader->info};
    mtprof_cursor cursor;
    mtprof_record record;
    int status = MTPROF_OK;
    mtprof__cursor_init(&cursor, &source, stream);
    while (status == MTPROF_OK) {
        status = mtprof__cursor_next(&cursor, &record);
        if (status == MTPROF_OK) {
            status = take(reader, context, &record);
        } else if ((status == MTPROF_EFORMAT || status == MTPROF_EIO) && cursor.told) {
            status = MTPROF_OK;
        } else if (status == MTPROF_EFORMAT || status == MTPROF_EIO) {
            reader->problems.bytes += cursor.lost_bytes;
            status = mtprof__problem_add_failure(&reader->problems);
        }
    }
    reader->info.chunks_damaged += cursor.n_damaged;
    mtprof__cursor_fini(&cursor);
    return status == MTPROF_EEND ? MTPROF_OK : status;
}

static int take_control(mtprof_reader *reader, void *context, const mtprof_record *record)
{
    (void)context;
    return mtprof__control_read_add(&reader->control, &reader->clock, record, &reader->problems);
}

static int take_definition(mtprof_reader *reader, void *context, const mtprof_record *record)
{
    (void)context;
    (void)reader;
    return mtprof__definitions_add(&reader->definitions, record);
}

static int take_clock_pair(mtprof_reader *reader, void *context, const mtprof_record *record)
{
    mtprof__source_clock *clock = context;
    (void)reader;
    if (record->kind != MTPROF_REC_CLOCK_PAIR) {
        return MTPROF_OK;
    }
    mtprof__clock_pair pair = {.time = record->words[0], .ticks = record->words[1]};
    return mtprof__source_clock_add(clock, pair)
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "open trace: no memory for %zu clock pairs", clock->n + 1);
}

static int read_source_clocks(mtprof_reader *reader)
{
    const mtprof__chunk_index *index = &reader->index;
    size_t n = 0;
    for (uint32_t i = 0; i < index->n_streams; i++) {
        n += index->streams[i].kind == MTPROF_STREAM_SOURCE;
    }
    reader->source_clocks = mtb_calloc(n, sizeof *reader->source_clocks);
    if (reader->source_clocks == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for %zu source clocks", n);
    }
    for (uint32_t i = 0; i < index->n_streams; i++) {
        mtprof__read_stream *stream = &index->streams[i];
        if (stream->kind != MTPROF_STREAM_SOURCE) {
            continue;
        }
        mtprof__source_clock *clock = &reader->source_clocks[reader->n_source_clocks++];
        clock->source = stream->slot;
        MT_TRY(read_stream(reader, stream, take_clock_pair, clock));
    }
    return MTPROF_OK;
}

/* Reads the one stream of a kind that has no slots, if it is there. */
static int read_single(mtprof_reader *reader, uint8_t kind,
                       int (*take)(mtprof_reader *, void *, const mtprof_record *))
{
    for (uint32_t i = 0; i < reader->index.n_streams; i++) {
        if (reader->index.streams[i].kind != kind) {
            continue;
        }
        MT_TRY(read_stream(reader, &reader->index.streams[i], take, NULL));
    }
    return MTPROF_OK;
}

static void settle_end(mtprof_reader *reader)
{
    if (!reader->end_told) {
        uint64_t end = reader->info.start_ticks;
        end = reader->index.last_ticks > end ? reader->index.last_ticks : end;
        end = reader->control.last_ticks > end ? reader->control.last_ticks : end;
        reader->info.end_ticks = end;
    }
    mtprof__control_read_finish(&reader->control, reader->info.end_ticks);
}

/* A whole chunk that is gone leaves no other trace where it was the last of its stream. */
static int check_chunk_count(mtprof_reader *reader)
{
    const mtprof_trace_info *info = &reader->info;
    uint64_t told = info->closed ? info->health[MTPROF_HEALTH_CHUNKS] : 0;
    if (told == 0 || told == info->chunks) {
        return MTPROF_OK;
    }
    reader->index.tails_unknown = true;
    uint64_t offset = offsetof(mtprof__file_header, health) + MTPROF_HEALTH_CHUNKS * 8;
    return mtprof__problem_add(&reader->problems, offset,
                               "the header tells of %llu chunks, %llu are there",
                               (unsigned long long)told, (unsigned long long)info->chunks);
}

static int open_all(mtprof_reader *reader)
{
    mtprof_trace_info *info = &reader->info;
    mtprof__index_source source = {
        .bytes = &reader->bytes, .info = info, .problems = &reader->problems};
    MT_TRY(mtprof__header_read(&reader->bytes, info, &source.first_chunk, &reader->end_told,
                               &reader->problems));
    reader->clock.tick_period = info->tick_period;
    mtprof__clock_point start = {info->start_ticks, info->start_mono_ns, info->start_real_ns};
    if (!mtprof__clock_map_add(&reader->clock, start)) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for the first anchor");
    }
    MT_TRY(mtprof__chunk_index_build(&reader->index, &source));
    info->file_bytes = reader->index.end;
    info->chunks = reader->index.n_chunks;
    info->chunks_damaged = reader->index.damaged;
    info->chunks_unchecked = reader->index.unchecked;
    MT_TRY(check_chunk_count(reader));

    MT_TRY(read_single(reader, MTPROF_STREAM_CONTROL, take_control));
    mtprof__clock_map_finish(&reader->clock);
    MT_TRY(read_source_clocks(reader));
    MT_TRY(read_single(reader, MTPROF_STREAM_DEFINITIONS, take_definition));
    MT_TRY(mtprof__definitions_finish(&reader->definitions, &reader->problems));
    settle_end(reader);
    return mtprof__problems_finish(&reader->problems);
}

/* Takes the bytes: they are closed also on failure. */
static mtprof_status open_taken(mtprof__bytes *bytes, mtprof_reader **out)
{
    /* Problems are reported through the failure's detail, which a successful call leaves alone. */
    const mtb_failure before = *mtb_last_failure();
    mtprof_reader *reader = mtb_calloc(1, sizeof *reader);
    if (reader == NULL) {
        mtprof__bytes_close(bytes);
        return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for the reader");
    }
    reader->bytes = *bytes;
    int status = open_all(reader);
    if (status != MTPROF_OK) {
        mtprof_reader_close(reader);
        return status;
    }
    *mtb_last_failure() = before;
    *out = reader;
    return MTPROF_OK;
}

mtprof_status mtprof_reader_open(const char *path, mtprof_reader **out)
{
    mtprof__bytes bytes;
    *out = NULL;
    if (path == NULL) {
        return mtb_fail(MTPROF_EINVAL, "open trace: the path is NULL");
    }
    MT_TRY(mtprof__bytes_open_file(&bytes, path));
    return open_taken(&bytes, out);
}

mtprof_status mtprof_reader_open_bytes(const mtprof_bytes *calls, mtprof_reader **out)
{
    mtprof__bytes bytes;
    *out = NULL;
    if (calls == NULL) {
        return mtb_fail(MTPROF_EINVAL, "open trace: bytes is NULL");
    }
    int status = mtprof__bytes_init(&bytes, calls);
    if (status != MTPROF_OK) {
        mtprof__bytes_close(&bytes);
        return status;
    }
    return open_taken(&bytes, out);
}

void mtprof_reader_close(mtprof_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    for (size_t i = 0; i < reader->n_source_clocks; i++) {
        mtprof__source_clock_fini(&reader->source_clocks[i]);
    }
    mtb_free(reader->source_clocks);
    mtprof__clock_map_fini(&reader->clock);
    mtprof__control_read_fini(&reader->control);
    mtprof__definitions_fini(&reader->definitions);
    mtprof__chunk_index_fini(&reader->index);
    mtprof__problems_fini(&reader->problems);
    mtprof__bytes_close(&reader->bytes);
    mtb_free(reader);
}

/* ---- what was found -------------------------------------------------------------------------- */

mtprof_status mtprof_reader_get_info(const mtprof_reader *reader, mtprof_trace_info *info)
{
    if (info->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "trace info: struct_size is 0");
    }
    mtb_write_struct(info, &reader->info);
    return MTPROF_OK;
}

uint32_t mtprof_reader_stream_count(const mtprof_reader *reader)
{
    return reader->index.n_streams;
}

mtprof_status mtprof_reader_get_stream(const mtprof_reader *reader, uint32_t index,
                                       mtprof_stream_info *info)
{
    if (info->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "stream info: struct_size is 0");
    }
    if (index >= reader->index.n_streams) {
        return mtb_fail(MTPROF_EINVAL, "stream info: no stream %u, the trace has %u", index,
                        reader->index.n_streams);
    }
    const mtprof__read_stream *stream = &reader->index.streams[index];
    uint64_t last = stream->chunks[stream->n_chunks - 1].sequence;
    mtprof_stream_info full = {
        .kind = stream->kind,
        .slot = stream->slot,
        .chunks = stream->n_chunks,
        /* Numbers 0 to last are n_chunks and the ones that are missing. */
        .chunks_missing =
            last - (stream->n_chunks - 1) + __atomic_load_n(&stream->gone, __ATOMIC_RELAXED),
        .bytes = stream->bytes,
    };
    mtb_write_struct(info, &full);
    return MTPROF_OK;
}

/* ---- cursors --------------------------------------------------------------------------------- */

mtprof_status mtprof_cursor_open(const mtprof_reader *reader, uint32_t stream, mtprof_cursor **out)
{
    *out = NULL;
    if (stream >= reader->index.n_streams) {
        return mtb_fail(MTPROF_EINVAL, "open cursor: no stream %u, the trace has %u", stream,
                        reader->index.n_streams);
    }
    mtprof_cursor *cursor = mtb_calloc(1, sizeof *cursor);
    if (cursor == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open cursor: no memory for the cursor of stream %u",
                        stream);
    }
    const mtprof__cursor_source source = {&reader->bytes, &reader->index, &reader->info};
    mtprof__cursor_init(cursor, &source, &reader->index.streams[stream]);
    *out = cursor;
    return MTPROF_OK;
}

mtprof_status mtprof_cursor_next(mtprof_cursor *cursor, mtprof_record *record)
{
    int status = mtprof__cursor_next(cursor, record);
    if (status == MTPROF_EEND) {
        return mtb_fail(MTPROF_EEND, "read trace: no more records in stream %u, slot %u",
                        cursor->stream->kind, cursor->stream->slot);
    }
    return status;
}

void mtprof_cursor_close(mtprof_cursor *cursor)
{
    if (cursor != NULL) {
        mtprof__cursor_fini(cursor);
        mtb_free(cursor);
    }
}
