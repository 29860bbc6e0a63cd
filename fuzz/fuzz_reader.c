/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace: the reader answers every question about them without fault.
 *
 * Checksums stop a fuzzer at the door, so the first byte of an input chooses how the rest of it
 * becomes a trace:
 *   0  as it is
 *   1  with the checksums of the header, of chunk headers and of chunk data set right
 *   2  as the records of chunks made for them: pieces of {stream, flags, length (2 bytes), bytes};
 *      flags: bit 0 with checksum, bits 1-2 slot, bit 3 the trace is closed
 */
#include "base/crc32c.h"
#include "mtprof/format/layout.h"

#include <mtprof/reader.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    MODES = 3,
    PIECE_HEAD = 4,
    PIECES_MAX = 32, /* each is a page at least: more make slow inputs, not better ones */
    STACK_MAX = 1 << 20
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

typedef struct image {
    unsigned char *bytes;
    size_t size;
} image;

/* What must hold whatever the input is. */
static void require(bool condition)
{
    if (!condition) {
        __builtin_trap();
    }
}

/* ---- making a trace of the input ----------------------------------------------------------------
 */

static void repair_header(image *trace)
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

static void repair_chunk(image *trace, size_t at)
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

static void repair(image *trace)
{
    repair_header(trace);
    for (size_t at = MTPROF_HEADER_BYTES; at + MTPROF_CHUNK_HEADER <= trace->size;
         at += MTPROF_CHUNK_ALIGN) {
        repair_chunk(trace, at);
    }
}

static void append(image *trace, size_t size)
{
    trace->bytes = realloc(trace->bytes, trace->size + size);
    require(trace->bytes != NULL);
    memset(trace->bytes + trace->size, 0, size);
    trace->size += size;
}

static void wrap(image *trace, const uint8_t *data, size_t size)
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

/* ---- asking everything --------------------------------------------------------------------------
 */

static uint64_t sink; /* so that nothing read is optimised away */

static void use_text(mtprof_text text)
{
    if (text.bytes == NULL || text.bytes[text.length] != '\0') {
        __builtin_trap();
    }
    for (size_t i = 0; i < text.length; i++) {
        sink += (unsigned char)text.bytes[i];
    }
}

static void use_words(const uint64_t *words, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        sink += words[i];
    }
}

static void use_id(const mtprof_reader *reader, uint32_t id)
{
    mtprof_text text;
    mtprof_text other;
    mtprof_frame frame;
    mtprof_thread_info thread;
    const uint64_t *words;
    uint32_t n;
    uint32_t parent = 0;
    if (mtprof_reader_string(reader, id, &text)) {
        use_text(text);
    }
    if (mtprof_reader_location(reader, id, &text, &n)) {
        use_text(text);
    }
    if (mtprof_reader_inputs(reader, id, &words, &n)) {
        use_words(words, n);
    }
    if (mtprof_reader_frame(reader, id, &frame)) {
        use_text(frame.function);
        use_text(frame.file);
    }
    if (mtprof_reader_thread(reader, id, &thread)) {
        use_text(thread.name);
    }
    if (mtprof_reader_source(reader, (uint16_t)id, &text, &other)) {
        use_text(text);
        use_text(other);
    }
    uint32_t steps = 0;
    for (uint32_t node = id; mtprof_reader_stack(reader, node, &parent, &n); node = parent) {
        require(++steps < STACK_MAX);
        if (parent == 0) {
            break;
        }
        uint32_t above;
        require(mtprof_reader_stack(reader, parent, &above, &n)); /* found means: to the top */
        if (steps > 64) {
            break; /* that it ends is shown from nearer the top; here it would take squares */
        }
    }
}

static void use_stream(const mtprof_reader *reader, uint32_t index, uint64_t size)
{
    mtprof_cursor *cursor = NULL;
    mtprof_record record;
    mtprof_status status;
    uint64_t ticks = 0;
    if (mtprof_cursor_open(reader, index, &cursor) != MTPROF_OK) {
        return;
    }
    while ((status = mtprof_cursor_next(cursor, &record)) != MTPROF_EEND) {
        if (status != MTPROF_OK) {
            require(status == MTPROF_EFORMAT);
            require(mtprof_last_error()->offset >= 0);
            continue;
        }
        require(record.offset >= MTPROF_HEADER_BYTES && record.offset < size);
        require(record.offset + 8 + 8 * (uint64_t)record.n_words <= size);
        use_words(record.words, record.n_words);
        use_id(reader, record.arg);
        sink += (uint64_t)mtprof_reader_ns(reader, record.ticks);
        if (mtprof_reader_source_ticks(reader, (uint16_t)record.arg, record.ticks, &ticks)) {
            sink += ticks;
        }
    }
    mtprof_cursor_close(cursor);
}

static void use_reader(const mtprof_reader *reader, uint64_t size)
{
    mtprof_trace_info info = {.struct_size = sizeof info};
    mtprof_problem problem;
    mtprof_text key;
    mtprof_text value;
    mtprof_epoch_info epoch;
    mtprof_module_info module;
    bool json;
    uint64_t before = 0;
    require(mtprof_reader_info(reader, &info) == MTPROF_OK);
    for (uint32_t i = 0; mtprof_reader_problem(reader, i, &problem); i++) {
        require(problem.offset >= before && problem.message[0] != '\0');
        before = problem.offset;
    }
    for (uint32_t i = 0; mtprof_reader_metadata(reader, i, &key, &value, &json); i++) {
        use_text(key);
        use_text(value);
    }
    for (uint32_t i = 0; mtprof_reader_epoch(reader, i, &epoch); i++) {
        sink += epoch.close_ticks;
    }
    for (uint32_t i = 0; mtprof_reader_module(reader, i, &module); i++) {
        use_text(module.path);
    }
    sink += (uint64_t)mtprof_reader_real_offset(reader) + mtprof_reader_thread_count(reader);
    for (uint32_t i = 0; i < mtprof_reader_stream_count(reader); i++) {
        mtprof_stream_info stream = {.struct_size = sizeof stream};
        require(mtprof_reader_stream(reader, i, &stream) == MTPROF_OK);
        require(stream.chunks > 0 && stream.bytes <= size);
        use_stream(reader, i, size);
    }
}

static int64_t image_read(void *context, uint64_t offset, void *buffer, size_t length)
{
    const image *trace = context;
    if (offset >= trace->size) {
        return 0;
    }
    length = trace->size - offset < length ? (size_t)(trace->size - offset) : length;
    memcpy(buffer, trace->bytes + offset, length);
    return (int64_t)length;
}

static uint64_t image_size(void *context)
{
    const image *trace = context;
    return trace->size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    image trace = {NULL, 0};
    if (size_bytes == 0) {
        return 0;
    }
    uint8_t mode = data[0] % MODES;
    if (mode == 2) {
        wrap(&trace, data + 1, size_bytes - 1);
    } else {
        append(&trace, size_bytes); /* one more than needed: never empty */
        trace.size = size_bytes - 1;
        memcpy(trace.bytes, data + 1, trace.size);
        if (mode == 1) {
            repair(&trace);
        }
    }
    mtprof_bytes bytes = {
        .struct_size = sizeof bytes, .context = &trace, .read = image_read, .size = image_size};
    mtprof_reader *reader = NULL;
    if (mtprof_reader_open_bytes(&bytes, &reader) == MTPROF_OK) {
        use_reader(reader, trace.size);
    }
    mtprof_reader_close(reader);
    free(trace.bytes);
    return 0;
}
