/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions to an open reader: times, definitions, epochs, metadata, problems.
 */
#include "base/fail.h"
#include "mtprof/read/reader_impl.h"

/* The text of a string id; empty where it is none or not defined. */
static mtprof_text text_of(const mtprof_reader *reader, uint32_t id)
{
    mtprof_text text = {"", 0};
    (void)mtprof_reader_string(reader, id, &text);
    return text;
}

/* ---- time ------------------------------------------------------------------------------------ */

int64_t mtprof_reader_ns(const mtprof_reader *reader, uint64_t ticks)
{
    return mtprof__clock_map_ns(&reader->clock, ticks);
}

/* The latest time in the records of one chunk; *any: there is a record in it. */
static int last_of_chunk(const mtprof_reader *reader, const mtprof__read_stream *stream, size_t at,
                         uint64_t *ticks, bool *any)
{
    const mtprof__cursor_source source = {&reader->bytes, &reader->index, &reader->info};
    mtprof__read_stream own = *stream; /* the cursor counts chunks that are gone; not these */
    mtprof_cursor cursor;
    mtprof_record record;
    own.n_chunks = at + 1;
    mtprof__cursor_init(&cursor, &source, &own);
    cursor.next_chunk = at;
    int status = MTPROF_OK;
    while (status != MTPROF_EEND && status != MTPROF_ENOMEM) {
        status = mtprof__cursor_next(&cursor, &record);
        bool timed = status == MTPROF_OK && mtprof__kind_is_timed(record.kind);
        *any = *any || status == MTPROF_OK;
        *ticks = timed && record.ticks > *ticks ? record.ticks : *ticks;
    }
    mtprof__cursor_fini(&cursor);
    return status == MTPROF_EEND ? MTPROF_OK : status;
}

int mtprof__reader_last_ticks(const mtprof_reader *reader, uint64_t *ticks)
{
    const mtb_failure before = *mtb_last_failure();
    *ticks = reader->info.end_ticks;
    for (uint32_t i = 0; !reader->end_told && i < reader->index.n_streams; i++) {
        const mtprof__read_stream *stream = &reader->index.streams[i];
        bool any = stream->kind != MTPROF_STREAM_THREAD;
        for (size_t at = stream->n_chunks; !any && at-- > 0;) {
            MT_TRY(last_of_chunk(reader, stream, at, ticks, &any));
        }
    }
    *mtb_last_failure() = before; /* damage that was skipped is not a failure of this call */
    return MTPROF_OK;
}

int64_t mtprof_reader_real_offset(const mtprof_reader *reader)
{
    return mtprof__clock_map_real_offset(&reader->clock);
}

static bool is_of_lower_source(const void *clock, uint64_t source)
{
    return ((const mtprof__source_clock *)clock)->source < source;
}

bool mtprof_reader_source_ticks(const mtprof_reader *reader, uint16_t source, uint64_t time,
                                uint64_t *ticks)
{
    /* Clocks are in the order of streams, and those in the order of sources. */
    size_t from = mtb_search(reader->source_clocks, reader->n_source_clocks,
                             sizeof *reader->source_clocks, is_of_lower_source, source);
    if (from == reader->n_source_clocks || reader->source_clocks[from].source != source) {
        return false;
    }
    return mtprof__source_clock_ticks(&reader->source_clocks[from], reader->info.tick_period, time,
                                      ticks);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static const mtprof__definition *find(const mtprof_reader *reader,
                                      enum mtprof__definition_kind kind, uint32_t id)
{
    return mtprof__definition_find(&reader->definitions, kind, id);
}

bool mtprof_reader_string(const mtprof_reader *reader, uint32_t id, mtprof_text *out)
{
    const mtprof__definition *string = find(reader, MTPROF__DEF_STRING, id);
    if (string == NULL) {
        return false;
    }
    *out = (mtprof_text){string->data, string->length};
    return true;
}

bool mtprof_reader_location(const mtprof_reader *reader, uint32_t id, mtprof_text *file,
                            uint32_t *line)
{
    const mtprof__definition *string = find(reader, MTPROF__DEF_STRING, id);
    if (string == NULL || !string->placed) {
        return false;
    }
    *file = text_of(reader, string->a);
    *line = string->b;
    return true;
}

bool mtprof_reader_inputs(const mtprof_reader *reader, uint32_t id, const uint64_t **words,
                          uint32_t *n_words)
{
    const mtprof__definition *inputs = find(reader, MTPROF__DEF_INPUTS, id);
    if (inputs == NULL) {
        return false;
    }
    *words = inputs->data;
    *n_words = inputs->length;
    return true;
}

bool mtprof_reader_frame(const mtprof_reader *reader, uint32_t id, mtprof_frame *out)
{
    const mtprof__definition *frame = find(reader, MTPROF__DEF_FRAME, id);
    if (frame == NULL) {
        return false;
    }
    const uint64_t *words = frame->data;
    *out = (mtprof_frame){
        .function = text_of(reader, frame->a),
        .file = text_of(reader, frame->b),
        .line = words[0],
        .address = words[1],
    };
    return true;
}

bool mtprof_reader_stack(const mtprof_reader *reader, uint32_t id, uint32_t *parent,
                         uint32_t *frame)
{
    const mtprof__definition *node = find(reader, MTPROF__DEF_STACK, id);
    if (node == NULL) {
        return false;
    }
    *parent = node->a;
    *frame = node->b;
    return true;
}

bool mtprof_reader_thread(const mtprof_reader *reader, uint32_t number, mtprof_thread_info *out)
{
    const mtprof__definition *thread = find(reader, MTPROF__DEF_THREAD, number);
    if (thread == NULL) {
        return false;
    }
    const uint64_t *words = thread->data;
    *out = (mtprof_thread_info){
        .number = number,
        .os_id = words[0],
        .pthread_id = words[1],
        .name = text_of(reader, thread->a),
    };
    return true;
}

uint32_t mtprof_reader_thread_count(const mtprof_reader *reader)
{
    return (uint32_t)reader->definitions.tables[MTPROF__DEF_THREAD].n;
}

bool mtprof_reader_source(const mtprof_reader *reader, uint16_t index, mtprof_text *name,
                          mtprof_text *device_type)
{
    const mtprof__definition *source = find(reader, MTPROF__DEF_SOURCE, index);
    if (source == NULL) {
        return false;
    }
    *name = text_of(reader, source->a);
    *device_type = text_of(reader, source->b);
    return true;
}

bool mtprof_reader_module(const mtprof_reader *reader, uint32_t index, mtprof_module_info *out)
{
    const mtprof__definition_table *table = &reader->definitions.tables[MTPROF__DEF_MODULE];
    if (index >= table->n) {
        return false;
    }
    const uint64_t *words = table->items[index].data;
    *out = (mtprof_module_info){
        .start = words[0],
        .end = words[1],
        .file_offset = words[2],
        .path = text_of(reader, table->items[index].a),
    };
    return true;
}

/* ---- the trace as a whole -------------------------------------------------------------------- */

bool mtprof_reader_epoch(const mtprof_reader *reader, uint32_t index, mtprof_epoch_info *out)
{
    if (index >= reader->control.n_epochs) {
        return false;
    }
    *out = reader->control.epochs[index];
    return true;
}

bool mtprof_reader_metadata(const mtprof_reader *reader, uint32_t index, mtprof_text *key,
                            mtprof_text *value, bool *is_json)
{
    if (index >= reader->control.n_metadata) {
        return false;
    }
    const mtprof__meta_item *metadata = &reader->control.metadata[index];
    *key = metadata->key;
    *value = metadata->value;
    *is_json = metadata->is_json;
    return true;
}

bool mtprof_reader_limit(const mtprof_reader *reader, uint32_t index, mtprof_limit_info *out)
{
    if (index >= reader->control.n_limits) {
        return false;
    }
    *out = reader->control.limits[index];
    return true;
}

bool mtprof_reader_unrecorded(const mtprof_reader *reader, uint32_t index,
                              mtprof_unrecorded_info *out)
{
    if (index >= reader->control.n_unrecorded) {
        return false;
    }
    *out = reader->control.unrecorded[index];
    return true;
}

bool mtprof_reader_problem(const mtprof_reader *reader, uint32_t index, mtprof_problem *out)
{
    if (index >= reader->problems.n) {
        return false;
    }
    *out = (mtprof_problem){reader->problems.items[index].offset,
                            reader->problems.items[index].message};
    return true;
}
