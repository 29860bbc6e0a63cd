/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a trace: the reader answers every question about them without fault, and so does a
 * live view that sees them appear.
 */
#include "fuzz_require.h"
#include "trace_input.h"

#include <mtprof/live.h>
#include <mtprof/reader.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    STACK_MAX = 1 << 20
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

/* ---- asking everything ----------------------------------------------------------------------- */

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
    require(mtprof_reader_get_info(reader, &info) == MTPROF_OK);
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
        require(mtprof_reader_get_stream(reader, i, &stream) == MTPROF_OK);
        require(stream.chunks > 0 && stream.bytes <= size);
        use_stream(reader, i, size);
    }
}

/* ---- following ------------------------------------------------------------------------------- */

/* The trace while it seems to be written: each look shows more of it, and more of its chunks. */
typedef struct growing {
    const trace_input *trace;
    uint64_t looks, of;
} growing;

static uint64_t growing_size(void *context)
{
    const growing *g = context;
    return g->looks >= g->of ? g->trace->size : g->trace->size * g->looks / g->of & ~(uint64_t)4095;
}

static int64_t growing_read(void *context, uint64_t offset, void *buffer, size_t length)
{
    const growing *g = context;
    uint64_t size = growing_size(context);
    if (offset >= size) {
        return 0;
    }
    size_t n = size - offset < length ? (size_t)(size - offset) : length;
    memcpy(buffer, g->trace->bytes + offset, n);
    unsigned char *bytes = buffer;
    bool chunk = offset % 4096 == 0 && n >= 64 && memcmp(bytes, "MTCK", 4) == 0;
    if (chunk && g->looks < g->of) { /* published in part, and open */
        uint64_t committed;
        memcpy(&committed, bytes + 48, sizeof committed);
        committed = committed / g->of * g->looks & ~(uint64_t)7;
        memcpy(bytes + 48, &committed, sizeof committed);
        memset(bytes + 60, 0, 4);
    }
    return (int64_t)n;
}

static void use_rows(mtprof_live *live)
{
    const mtprof_live_row *rows = NULL;
    mtprof_live_info info = {.struct_size = sizeof info};
    uint32_t n = 0;
    for (uint32_t group = 0; group < 8; group += 7) {
        const mtprof_live_query query = {.struct_size = sizeof query, .group = group, .idle = 1};
        require(mtprof_live_get_rows(live, &query, &rows, &n) == MTPROF_OK);
        for (uint32_t i = 0; i < n; i++) {
            use_text(rows[i].name);
            use_text(rows[i].module);
            use_text(rows[i].shapes);
        }
    }
    require(mtprof_live_get_info(live, &info) == MTPROF_OK);
    require(info.bytes_read <= info.bytes_new && info.window_ns >= 0);
    for (uint32_t i = 0; i < info.devices; i++) {
        mtprof_live_device device = {.struct_size = sizeof device};
        require(mtprof_live_get_device(live, i, &device) == MTPROF_OK);
        use_text(device.type);
    }
}

static void follow(const trace_input *trace)
{
    growing g = {.trace = trace, .looks = 1, .of = 3};
    const mtprof_bytes bytes = {
        .struct_size = sizeof bytes, .context = &g, .read = growing_read, .size = growing_size};
    const mtprof_live_options options = {.struct_size = sizeof options,
                                         .from_start = trace->which % 2 == 0,
                                         .most_bytes = trace->which % 3 == 0 ? 0 : 256};
    mtprof_live *live = NULL;
    if (mtprof_live_open_bytes(&bytes, &options, &live) != MTPROF_OK) {
        return;
    }
    for (; g.looks <= g.of + 1; g.looks++) {
        if (mtprof_live_poll(live, 1) == MTPROF_OK) {
            use_rows(live);
        }
    }
    mtprof_live_close(live);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    trace_input trace;
    mtprof_reader *reader = NULL;
    if (!trace_input_make(&trace, data, size_bytes)) {
        return 0;
    }
    mtprof_bytes bytes = trace_input_bytes(&trace);
    if (mtprof_reader_open_bytes(&bytes, &reader) == MTPROF_OK) {
        use_reader(reader, trace.size);
    }
    mtprof_reader_close(reader);
    follow(&trace);
    trace_input_free(&trace);
    return 0;
}
