/* SPDX-License-Identifier: Apache-2.0
 */
#include "trace_input.h"

#include "base/crc32c.h"
#include "fuzz_require.h"
#include "mtprof/format/layout.h"

#include <stdlib.h>
#include <string.h>

enum {
    MODES = 3, /* and the small form */
    PIECE_HEAD = 4,
    PIECES_MAX = 32 /* each is a page at least: more make slow inputs, not better ones */
};

/* ---- making a trace of the input ------------------------------------------------------------- */

static void repair_header(trace_input *trace)
{
    mtprof__file_header header;
    if (trace->size < sizeof header) {
        return;
    }
    memcpy(&header, trace->bytes, sizeof header);
    header.header_crc = mtb_crc32c(0, &header, offsetof(mtprof__file_header, header_crc));
    header.closed_crc = mtb_crc32c(0, header.health, 260);
    header.final_crc = mtb_crc32c(0, &header.end_ticks, 16);
    memcpy(trace->bytes, &header, sizeof header);
}

static void repair_chunk(trace_input *trace, size_t at)
{
    mtprof__chunk_header chunk;
    memcpy(&chunk, trace->bytes + at, sizeof chunk);
    if (chunk.magic != MTPROF_CHUNK_MAGIC) {
        return;
    }
    chunk.header_crc = mtprof__chunk_header_crc(trace->bytes + 24, &chunk);
    if (chunk.committed <= trace->size - at - sizeof chunk) {
        chunk.data_crc = mtprof__chunk_data_crc(chunk.committed, trace->bytes + at + sizeof chunk);
    }
    memcpy(trace->bytes + at, &chunk, sizeof chunk);
}

static void repair(trace_input *trace)
{
    repair_header(trace);
    for (size_t at = MTPROF_HEADER_BYTES; at + MTPROF_CHUNK_HEADER <= trace->size;
         at += MTPROF_CHUNK_ALIGN) {
        repair_chunk(trace, at);
    }
}

static void append(trace_input *trace, size_t size)
{
    trace->bytes = realloc(trace->bytes, trace->size + size);
    require(trace->bytes != NULL);
    memset(trace->bytes + trace->size, 0, size);
    trace->size += size;
}

static void wrap(trace_input *trace, const uint8_t *data, size_t size)
{
    mtprof__file_header header = {
        .magic = MTPROF_FILE_MAGIC,
        .major = MTPROF_FORMAT_MAJOR,
        .header_bytes = MTPROF_HEADER_BYTES,
        .tick_period = (uint64_t)1 << MTPROF_PERIOD_SHIFT,
        .policy = 1,
    };
    uint64_t sequences[256][4] = {{0}};
    append(trace, MTPROF_HEADER_BYTES);
    for (int pieces = 0; size >= PIECE_HEAD && pieces < PIECES_MAX; pieces++) {
        size_t length = (size_t)data[2] | (size_t)data[3] << 8;
        length = (length < size - PIECE_HEAD ? length : size - PIECE_HEAD) & ~(size_t)7;
        mtprof__chunk_header chunk = {
            .magic = MTPROF_CHUNK_MAGIC,
            .size = (uint32_t)mtb_round_up(MTPROF_CHUNK_HEADER + length, MTPROF_CHUNK_ALIGN),
            .stream = data[0],
            .slot = data[1] >> 1 & 3,
            .sequence = sequences[data[0]][data[1] >> 1 & 3]++,
            .committed = length,
            .state = (data[1] & 1) != 0 ? MTPROF_CHUNK_CHECKED : MTPROF_CHUNK_SEALED,
        };
        header.closed = (data[1] & 8) != 0 ? MTPROF_CLOSED_MARK : header.closed;
        size_t at = trace->size;
        append(trace, chunk.size);
        memcpy(trace->bytes + at, &chunk, sizeof chunk);
        memcpy(trace->bytes + at + sizeof chunk, data + PIECE_HEAD, length);
        data += PIECE_HEAD + length;
        size -= PIECE_HEAD + length;
    }
    header.file_bytes = trace->size;
    memcpy(trace->bytes, &header, sizeof header);
    repair(trace);
}

/* ---- the small form -------------------------------------------------------------------------- */

/* The pieces of a small form; how many. */
static size_t list_pieces(const uint8_t *data, size_t size, trace_form_piece *pieces,
                          const uint8_t **records)
{
    size_t n = 0;
    size_t at = sizeof(trace_form_head);
    for (; n < TRACE_FORM_PIECES && at < size && size - at >= sizeof *pieces; n++) {
        memcpy(&pieces[n], data + at, sizeof *pieces);
        at += sizeof *pieces;
        size_t words = (size - at) / 8;
        pieces[n].n_words = (uint16_t)(pieces[n].n_words < words ? pieces[n].n_words : words);
        records[n] = data + at;
        at += (size_t)pieces[n].n_words * 8;
    }
    return n;
}

static void put_piece(trace_input *trace, size_t at, const trace_form_piece *piece,
                      const uint8_t *records, uint64_t sequence)
{
    size_t length = (size_t)piece->n_words * 8;
    mtprof__chunk_header chunk = {
        .magic = MTPROF_CHUNK_MAGIC,
        .size = (uint32_t)mtb_round_up(MTPROF_CHUNK_HEADER + length, MTPROF_CHUNK_ALIGN),
        .stream = piece->stream,
        .slot = piece->flags >> 1 & 3,
        .sequence = sequence,
        .base_ticks = piece->base_ticks,
        .first_ordinal = piece->first_ordinal,
        .epoch = piece->epoch,
        .thread = piece->thread,
        .committed = length,
        .state = (piece->flags & 1) != 0 ? MTPROF_CHUNK_CHECKED : MTPROF_CHUNK_SEALED,
    };
    memcpy(trace->bytes + at + sizeof chunk, records, length);
    memcpy(trace->bytes + at, &chunk, sizeof chunk);
    repair_chunk(trace, at);
}

static void unfold(trace_input *trace, const uint8_t *data, size_t size)
{
    trace_form_head head = {0};
    trace_form_piece pieces[TRACE_FORM_PIECES];
    const uint8_t *records[TRACE_FORM_PIECES];
    memcpy(&head, data, size < sizeof head ? size : sizeof head);
    size_t n = list_pieces(data, size, pieces, records);
    size_t total = MTPROF_HEADER_BYTES;
    for (size_t i = 0; i < n; i++) {
        total += (size_t)mtb_round_up(MTPROF_CHUNK_HEADER + (uint64_t)pieces[i].n_words * 8,
                                      MTPROF_CHUNK_ALIGN);
    }
    append(trace, total);
    trace->which = head.which;
    mtprof__file_header header = {
        .magic = MTPROF_FILE_MAGIC,
        .major = MTPROF_FORMAT_MAJOR,
        .minor = head.flags >> 3 & 1,
        .header_bytes = MTPROF_HEADER_BYTES,
        .tick_period = head.tick_period,
        .start_ticks = head.start_ticks,
        .start_mono_ns = head.start_mono_ns,
        .start_real_ns = head.start_real_ns,
        .policy = head.flags >> 1 & 3,
        .closed = (head.flags & 1) != 0 ? MTPROF_CLOSED_MARK : 0,
        .end_ticks = head.end_ticks,
        .file_bytes = total,
    };
    memcpy(trace->bytes, &header, sizeof header);
    repair_header(trace);
    uint64_t sequences[256][4] = {{0}};
    size_t at = MTPROF_HEADER_BYTES;
    for (size_t i = 0; i < n; i++) {
        uint64_t *sequence = &sequences[pieces[i].stream][pieces[i].flags >> 1 & 3];
        *sequence += pieces[i].flags >> 3 & 1;
        put_piece(trace, at, &pieces[i], records[i], (*sequence)++);
        at += (size_t)mtb_round_up(MTPROF_CHUNK_HEADER + (uint64_t)pieces[i].n_words * 8,
                                   MTPROF_CHUNK_ALIGN);
    }
}

/* ---- bytes for a reader ---------------------------------------------------------------------- */

static int64_t image_read(void *context, uint64_t offset, void *buffer, size_t length)
{
    const trace_input *trace = context;
    if (offset >= trace->size) {
        return 0;
    }
    length = trace->size - offset < length ? (size_t)(trace->size - offset) : length;
    memcpy(buffer, trace->bytes + offset, length);
    return (int64_t)length;
}

static uint64_t image_size(void *context)
{
    const trace_input *trace = context;
    return trace->size;
}

bool trace_input_make(trace_input *trace, const uint8_t *data, size_t size_bytes)
{
    *trace = (trace_input){NULL, 0, 0};
    if (size_bytes == 0) {
        return false;
    }
    uint8_t mode = data[0] % MODES;
    if (data[0] == TRACE_FORM) {
        unfold(trace, data, size_bytes);
    } else if (mode == 2) {
        wrap(trace, data + 1, size_bytes - 1);
    } else {
        append(trace, size_bytes); /* one more than needed: never empty */
        trace->size = size_bytes - 1;
        memcpy(trace->bytes, data + 1, trace->size);
        if (mode == 1) {
            repair(trace);
        }
    }
    return true;
}

void trace_input_free(trace_input *trace)
{
    free(trace->bytes);
}

mtprof_bytes trace_input_bytes(trace_input *trace)
{
    return (mtprof_bytes){.struct_size = sizeof(mtprof_bytes),
                          .context = trace,
                          .read = image_read,
                          .size = image_size};
}
