/* SPDX-License-Identifier: Apache-2.0
 */
#include "trace_input.h"

#include "base/crc32c.h"
#include "mtprof/format/layout.h"

#include <stdlib.h>
#include <string.h>

enum {
    MODES = 3,
    PIECE_HEAD = 4,
    PIECES_MAX = 32 /* each is a page at least: more make slow inputs, not better ones */
};

static void require(bool condition)
{
    if (!condition) {
        __builtin_trap();
    }
}

/* ---- making a trace of the input ----------------------------------------------------------------
 */

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

/* ---- bytes for a reader -------------------------------------------------------------------------
 */

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
    *trace = (trace_input){NULL, 0};
    if (size_bytes == 0) {
        return false;
    }
    uint8_t mode = data[0] % MODES;
    if (mode == 2) {
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
