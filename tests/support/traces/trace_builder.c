/* SPDX-License-Identifier: Apache-2.0
 *
 * The test writer, see trace_builder.h.
 */
#include "support/traces/trace_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 4096,
    CHUNK_HEAD = 64,
    FILLER = 200 /* begins and ends: more than a page of them */
};

static void fail(const char *what)
{
    fprintf(stderr, "trace_builder: %s\n", what);
    abort();
}

/* One table of 256 values: the library's own goes by the processor's instruction or by eight. */
uint32_t tb_crc32c(uint32_t crc, const void *bytes, size_t length)
{
    static uint32_t table[256];
    const unsigned char *at = bytes;
    for (uint32_t i = 0; table[255] == 0 && i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) {
            value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0);
        }
        table[i] = value;
    }
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc = (crc >> 8) ^ table[(crc ^ at[i]) & 255];
    }
    return ~crc;
}

/* ---- the image ------------------------------------------------------------------------------- */

static void grow(trace_builder *b, size_t bytes)
{
    unsigned char *larger = realloc(b->bytes, b->size + bytes);
    if (larger == NULL) {
        fail("no memory");
    }
    memset(larger + b->size, 0, bytes);
    b->bytes = larger;
    b->size += bytes;
}

static void put(trace_builder *b, uint64_t offset, const void *value, size_t size)
{
    if (offset > b->size || size > b->size - offset) {
        fail("outside the image");
    }
    memcpy(b->bytes + offset, value, size);
}

void tb_set16(trace_builder *b, uint64_t offset, uint16_t value)
{
    put(b, offset, &value, sizeof value);
}

void tb_set32(trace_builder *b, uint64_t offset, uint32_t value)
{
    put(b, offset, &value, sizeof value);
}

void tb_set64(trace_builder *b, uint64_t offset, uint64_t value)
{
    put(b, offset, &value, sizeof value);
}

static uint32_t load32(const unsigned char *bytes, uint64_t offset)
{
    uint32_t value;
    memcpy(&value, bytes + offset, sizeof value);
    return value;
}

static uint64_t load64(const unsigned char *bytes, uint64_t offset)
{
    uint64_t value;
    memcpy(&value, bytes + offset, sizeof value);
    return value;
}

uint32_t tb_get32(const trace_builder *b, uint64_t offset)
{
    return load32(b->bytes, offset);
}

uint64_t tb_get64(const trace_builder *b, uint64_t offset)
{
    return load64(b->bytes, offset);
}

void tb_init(trace_builder *b)
{
    memset(b, 0, sizeof *b);
    b->chunk_bytes = PAGE;
    b->chunk_state = MTPROF_CHUNK_CHECKED;
    grow(b, PAGE);
    put(b, 0, "MTTRACE\n", 8);
    tb_set16(b, TB_AT_MAJOR, 1);
    tb_set32(b, TB_AT_HEADER_BYTES, PAGE);
    put(b, TB_AT_UUID, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10", 16);
    tb_set64(b, 40, 4242);
    tb_set64(b, TB_AT_PERIOD, (uint64_t)1 << 56);
    tb_set64(b, TB_AT_START, TB_START_TICKS);
    tb_set64(b, TB_AT_START + 8, TB_START_MONO);
    tb_set64(b, TB_AT_START + 16, TB_START_REAL);
    tb_set64(b, 88, (uint64_t)1 << 20);
    tb_set32(b, 104, 2560);
}

void tb_fini(trace_builder *b)
{
    free(b->bytes);
    memset(b, 0, sizeof *b);
}

uint64_t tb_chunk(trace_builder *b, uint8_t stream, uint16_t slot)
{
    uint64_t at = b->size;
    if (slot > 15) {
        fail("slots go up to 15");
    }
    grow(b, b->chunk_bytes);
    b->chunk = at;
    put(b, at, "MTCK", 4);
    tb_set32(b, at + TB_CHUNK_SIZE, b->chunk_bytes);
    b->bytes[at + TB_CHUNK_STREAM] = stream;
    tb_set16(b, at + TB_CHUNK_SLOT, slot);
    tb_set64(b, at + TB_CHUNK_SEQUENCE, b->sequences[stream < 5 ? stream : 0][slot]++);
    tb_set64(b, at + TB_CHUNK_BASE_TICKS, TB_START_TICKS);
    if (stream == MTPROF_STREAM_THREAD) {
        tb_set64(b, at + TB_CHUNK_FIRST_ORDINAL, b->next_ordinal);
        tb_set32(b, at + TB_CHUNK_EPOCH, 1);
        tb_set32(b, at + TB_CHUNK_THREAD, slot + 1u);
    }
    tb_set32(b, at + TB_CHUNK_STATE, b->chunk_state);
    return at;
}

/* ---- records --------------------------------------------------------------------------------- */

uint64_t tb_words(trace_builder *b, size_t n, const uint64_t *words)
{
    uint64_t committed = tb_get64(b, b->chunk + TB_CHUNK_COMMITTED);
    uint64_t at = b->chunk + CHUNK_HEAD + committed;
    if (CHUNK_HEAD + committed + n * 8 > tb_get32(b, b->chunk + TB_CHUNK_SIZE)) {
        fail("the chunk is full");
    }
    if (n > 0) {
        put(b, at, words, n * 8);
    }
    tb_set64(b, b->chunk + TB_CHUNK_COMMITTED, committed + n * 8);
    return at;
}

static uint64_t head_word(uint8_t kind, uint64_t length, uint16_t aux, uint32_t arg)
{
    return kind | length << 8 | (uint64_t)aux << 16 | (uint64_t)arg << 32;
}

uint64_t tb_record(trace_builder *b, uint8_t kind, uint16_t aux, uint32_t arg, size_t n,
                   const uint64_t *body)
{
    if (n + 1 > 254) {
        return tb_record_extended(b, kind, aux, arg, n, body);
    }
    uint64_t head = head_word(kind, n + 1, aux, arg);
    uint64_t at = tb_words(b, 1, &head);
    tb_words(b, n, body);
    return at;
}

uint64_t tb_record_extended(trace_builder *b, uint8_t kind, uint16_t aux, uint32_t arg, size_t n,
                            const uint64_t *body)
{
    uint64_t head[2] = {head_word(kind, 255, aux, arg), n + 2};
    uint64_t at = tb_words(b, 2, head);
    tb_words(b, n, body);
    return at;
}

uint64_t tb_single(trace_builder *b, uint8_t kind, uint64_t bits)
{
    uint64_t word = kind | bits << 8;
    return tb_words(b, 1, &word);
}

uint64_t tb_end(trace_builder *b, uint16_t distance, uint64_t ticks)
{
    return tb_single(b, MTPROF_REC_END, distance | ticks << 16);
}

uint64_t tb_record_texts(trace_builder *b, uint8_t kind, uint16_t aux, uint32_t arg, size_t n,
                         const uint64_t *body, size_t n_texts, const char *const *texts)
{
    size_t total = n;
    for (size_t i = 0; i < n_texts; i++) {
        total += (strlen(texts[i]) + 7) / 8;
    }
    uint64_t *words = calloc(total + 1, sizeof *words);
    if (words == NULL) {
        fail("no memory");
    }
    if (n > 0) {
        memcpy(words, body, n * sizeof *words);
    }
    size_t at = n;
    for (size_t i = 0; i < n_texts; i++) {
        size_t length = strlen(texts[i]);
        memcpy(words + at, texts[i], length);
        at += (length + 7) / 8;
    }
    uint64_t offset = tb_record(b, kind, aux, arg, total, words);
    free(words);
    return offset;
}

uint64_t tb_string(trace_builder *b, uint32_t id, const char *text)
{
    uint64_t length = strlen(text);
    return tb_record_texts(b, MTPROF_REC_DEF_STRING, 0, id, 1, &length, 1, &text);
}

/* ---- checksums ------------------------------------------------------------------------------- */

static void store32(unsigned char *bytes, uint64_t offset, uint32_t value)
{
    memcpy(bytes + offset, &value, sizeof value);
}

/* Goes by pages, as a reader does that has lost its way: sizes may be bent. */
void tb_repair(unsigned char *bytes, size_t size)
{
    if (size < PAGE) {
        return;
    }
    store32(bytes, TB_AT_HEADER_CRC, tb_crc32c(0, bytes, TB_AT_HEADER_CRC));
    if (load32(bytes, TB_AT_CLOSED) == MTPROF_CLOSED_MARK) {
        store32(bytes, TB_AT_CLOSED_CRC,
                tb_crc32c(0, bytes + TB_AT_HEALTH, TB_AT_CLOSED_CRC - TB_AT_HEALTH));
        store32(bytes, TB_AT_FINAL_CRC, tb_crc32c(0, bytes + TB_AT_END_TICKS, 16));
    }
    for (uint64_t at = PAGE; at + CHUNK_HEAD <= size; at += PAGE) {
        unsigned char *chunk = bytes + at;
        if (memcmp(chunk, "MTCK", 4) != 0) {
            continue;
        }
        uint32_t crc = tb_crc32c(0, bytes + TB_AT_UUID, 16);
        crc = tb_crc32c(crc, chunk, 12);
        store32(chunk, TB_CHUNK_HEADER_CRC, tb_crc32c(crc, chunk + 16, 32));
        uint64_t committed = load64(chunk, TB_CHUNK_COMMITTED);
        if (load32(chunk, TB_CHUNK_STATE) == MTPROF_CHUNK_CHECKED &&
            committed <= size - at - CHUNK_HEAD) {
            crc = tb_crc32c(0, chunk + TB_CHUNK_COMMITTED, 8);
            store32(chunk, TB_CHUNK_DATA_CRC, tb_crc32c(crc, chunk + CHUNK_HEAD, committed));
        }
    }
}

void tb_finish(trace_builder *b, bool closed)
{
    if (closed) {
        tb_set32(b, TB_AT_CLOSED, MTPROF_CLOSED_MARK);
        if (tb_get64(b, TB_AT_END_TICKS) == 0) {
            tb_set64(b, TB_AT_END_TICKS, 2000000);
        }
        tb_set64(b, TB_AT_FILE_BYTES, b->size);
    }
    tb_repair(b->bytes, b->size);
}

/* ---- bytes in memory ------------------------------------------------------------------------- */

static int64_t memory_read(void *context, uint64_t offset, void *buffer, size_t length)
{
    tb_memory *memory = context;
    memory->n_reads++;
    if (memory->fail_at != 0 && memory->n_reads == memory->fail_at) {
        return -memory->fail_errno;
    }
    if (offset >= memory->size) {
        return 0;
    }
    size_t n = memory->size - offset < length ? (size_t)(memory->size - offset) : length;
    if (memory->longest_read != 0 && n > memory->longest_read) {
        n = memory->longest_read;
    }
    memcpy(buffer, memory->bytes + offset, n);
    return (int64_t)n;
}

static uint64_t memory_size(void *context)
{
    const tb_memory *memory = context;
    return memory->size;
}

static void memory_close(void *context)
{
    tb_memory *memory = context;
    memory->n_closed++;
}

mtprof_bytes tb_bytes(tb_memory *memory)
{
    return (mtprof_bytes){
        .struct_size = sizeof(mtprof_bytes),
        .context = memory,
        .read = memory_read,
        .size = memory_size,
        .close = memory_close,
    };
}

/* ---- the sample ------------------------------------------------------------------------------ */

#define W(...)                                                  \
    (sizeof((uint64_t[]){__VA_ARGS__}) / 8), (const uint64_t[]) \
    {                                                           \
        __VA_ARGS__                                             \
    }

static uint64_t pair(uint64_t low, uint64_t high)
{
    return low | high << 32;
}

/* Definitions that take more than a page. */
static void filler_strings(trace_builder *b, uint32_t id)
{
    for (uint32_t i = 0; i < 160; i++) {
        tb_string(b, id + i, "a name to fill up with");
    }
}

static void sample_definitions(trace_builder *b, bool filler)
{
    tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
    tb_string(b, 1, "aten::add");
    tb_string(b, 2, "model.py");
    const char *forward = "forward!"; /* eight bytes: no padding after it */
    tb_record_texts(b, MTPROF_REC_DEF_STRING, 1, 3, 2, (uint64_t[]){8, pair(2, 77)}, 1, &forward);
    tb_string(b, 4, "float");
    tb_string(b, 5, "main thread");
    tb_string(b, 6, "");
    tb_record(b, MTPROF_REC_DEF_INPUTS, 0, 1,
              W(pair(1 | 2 << 8 | 1 << 16, 4), 32, 64, 64, 1,   /* tensor with strides */
                pair(2, 2), pair(1 | 1 << 8, 4), 8, pair(3, 0), /* a list of a tensor and an int */
                pair(7, 5), pair(4, 0), pair(5, 0), pair(6, 0), 0));
    tb_record(b, MTPROF_REC_DEF_FRAME, 0, 1, W(pair(3, 2), 77, 0));
    tb_record(b, MTPROF_REC_DEF_FRAME, 0, 2, W(pair(1, 0), 0, 0xFFFF0010));
    tb_record(b, MTPROF_REC_DEF_STACK, 0, 1, W(pair(0, 1)));
    tb_record(b, MTPROF_REC_DEF_STACK, 0, 2, W(pair(1, 2)));
    tb_record(b, MTPROF_REC_DEF_THREAD, 0, 1, W(4242, 0x7F00, 5));
    tb_record(b, 0x2F, 9, 9, W(1, 2, 3)); /* of a later minor */
    if (filler) {
        filler_strings(b, 100);
    }
    tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
    tb_record(b, MTPROF_REC_DEF_THREAD, 0, 2, W(4243, 0x7F01, 0));
    tb_record(b, MTPROF_REC_DEF_SOURCE, 0, 0, W(pair(1, 4)));
    tb_record(b, MTPROF_REC_DEF_MODULE, 0, 0, W(0x1000, 0x2000, 64, 2));
    if (filler) {
        filler_strings(b, 300);
    }
}

static void sample_control(trace_builder *b, bool filler)
{
    const char *meta[] = {"host", "node-1"};
    const char *json[] = {"args", "{\"lr\": 0.1}"};
    const char *again[] = {"host", "node-2!!"};
    const char *warning = "slow disk";
    tb_chunk(b, MTPROF_STREAM_CONTROL, 0);
    tb_record(b, MTPROF_REC_WINDOW_OPEN, 0, 1, W(1100, 0x7FFF, pair(0, 3)));
    tb_record_texts(b, MTPROF_REC_TRACE_META, 0, 0, 1, (uint64_t[]){pair(4, 6)}, 2, meta);
    tb_record_texts(b, MTPROF_REC_TRACE_META, 1, 0, 1, (uint64_t[]){pair(4, 11)}, 2, json);
    for (uint64_t i = 0; i < (filler ? 200 : 1); i++) {
        tb_record(b, MTPROF_REC_STEP, 2, 0, W(1200 + i, 3 + i));
    }
    tb_record(b, MTPROF_REC_ANCHOR, 0, 0, W(200001000, 200006000, 200906000));
    tb_record_texts(b, MTPROF_REC_TRACE_META, 0, 0, 1, (uint64_t[]){pair(4, 8)}, 2, again);
    tb_record_texts(b, MTPROF_REC_WARNING, 0, 0, 2, (uint64_t[]){200001100, 9}, 1, &warning);
    tb_record(b, MTPROF_REC_WINDOW_CLOSE, 0, 1, W(200002000));
}

static void sample_payloads(trace_builder *b)
{
    const char *text = "a longer text";
    const char *name = "dynamic name";
    tb_record(b, MTPROF_REC_META, MTPROF_META_INT, 1, W((uint64_t)-5));
    tb_record_texts(b, MTPROF_REC_META, MTPROF_META_TEXT, 1, 1, (uint64_t[]){13}, 1, &text);
    tb_single(b, MTPROF_REC_INPUTS, (uint64_t)1 << 24);
    tb_record(b, MTPROF_REC_SCALARS, 4, 0, W(1, 2, 3, 4));
    tb_record(b, MTPROF_REC_TENSORS, 0, 0, W(11, 12, 0, pair(1, 0), 13, 14, 0, pair(2, 0)));
    tb_record(b, MTPROF_REC_OPINFO, 0x7F, 0, W(1, 2, 3, 0, 1000, 2, 99));
    tb_single(b, MTPROF_REC_STACK, (uint64_t)2 << 24);
    tb_single(b, MTPROF_REC_MEM_BEFORE, 1 | 4096 << 8);
    tb_end(b, 1, 1340);
    tb_single(b, MTPROF_REC_MEM_AFTER, 1 | 8192 << 8);
    tb_record(b, MTPROF_REC_TENSORS, 1, 0, W(15, 16, 0, pair(1, 0)));
    tb_record(b, MTPROF_REC_INSTANT, MTPROF_FLAG_PAYLOAD, 0, W(1400));
    tb_record_texts(b, MTPROF_REC_NAME, 0, 0, 1, (uint64_t[]){12}, 1, &name);
    tb_record(b, MTPROF_REC_INPUTS_INLINE, 0, 0, W(pair(3, 0)));
}

static void sample_filler(trace_builder *b, uint64_t ticks)
{
    for (uint64_t i = 0; i < FILLER; i++) {
        tb_record(b, MTPROF_REC_BEGIN, MTPROF_KIND_OP, 1, W(ticks + 10 * i));
        tb_end(b, 1, ticks + 10 * i + 5);
        b->next_ordinal++;
    }
}

static void sample_threads(trace_builder *b, bool filler)
{
    b->next_ordinal = 0;
    tb_chunk(b, MTPROF_STREAM_THREAD, 0);
    tb_record(b, MTPROF_REC_BEGIN, MTPROF_KIND_SCOPE, 3, W(1300));
    tb_record(b, MTPROF_REC_BEGIN, MTPROF_KIND_OP | MTPROF_FLAG_PAYLOAD, 1, W(1320));
    b->next_ordinal += 2;
    sample_payloads(b);
    tb_record(b, MTPROF_REC_COUNTER, 0, 1, W(1410, (uint64_t)-7));
    tb_record(b, MTPROF_REC_FLOW, 0, 1, W(1420, 55));
    tb_record(b, MTPROF_REC_LAUNCH, MTPROF_FLAG_LAUNCH, 1, W(1430, pair(0, 7)));
    b->next_ordinal++;
    tb_record(b, MTPROF_REC_ALLOC, 2, 5, W(0xABCD00, 4096, 8192));
    tb_record(b, MTPROF_REC_RESERVED, 2, 0, W(1 << 20));
    tb_record(b, MTPROF_REC_OUT_OF_MEMORY, 2, 0, W(1440, 1 << 30, 8192));
    tb_single(b, 0xF0, 1); /* of a later minor */
    if (filler) {
        sample_filler(b, 1500);
    }
    tb_chunk(b, MTPROF_STREAM_THREAD, 1);
    tb_set64(b, b->chunk + TB_CHUNK_FIRST_ORDINAL, 100);
    tb_record(b, MTPROF_REC_BEGIN_X, 0, 1,
              W(1500, (uint64_t)1 << 40 | (uint64_t)1 << 39 | 9, (uint64_t)1));
    tb_record(b, MTPROF_REC_BEGIN_X, MTPROF_FLAG_ASYNC, 1, W(1510, 0, UINT64_MAX));
    tb_record(b, MTPROF_REC_END_X, 1, 0, W(1520, (uint64_t)1 << 40 | (uint64_t)1 << 39 | 9));
    tb_record(b, MTPROF_REC_THREAD, 0, 2, W(1530));
    tb_record(b, MTPROF_REC_EPOCH, 0, 2, W(1540));
    tb_record(b, MTPROF_REC_TIME, 0, 0, W(1550));
    tb_record(b, MTPROF_REC_LOST, MTPROF_LOST_NESTED, 0, W(3));
    if (filler) {
        sample_filler(b, 1600);
    }
    b->next_ordinal -= filler ? FILLER : 0; /* those were slot 1's */
    tb_chunk(b, MTPROF_STREAM_THREAD, 0);
    tb_set64(b, b->chunk + TB_CHUNK_BASE_TICKS, 1900);
    if (filler) {
        sample_filler(b, 1900);
    }
    tb_end(b, (uint16_t)b->next_ordinal, 1950); /* the first of all begins, in the chunk before */
}

static void sample_source(trace_builder *b, bool filler)
{
    tb_chunk(b, MTPROF_STREAM_SOURCE, 0);
    tb_record(b, MTPROF_REC_CLOCK_PAIR, 0, 0, W(50000, 1000));
    tb_record(b, MTPROF_REC_ACTIVITY, MTPROF_ACTIVITY_KERNEL, 1,
              W(50100, 50200, 2, pair(0, 7), 77, 0));
    tb_record(b, MTPROF_REC_META, MTPROF_META_UINT, 4, W(128));
    tb_record(b, MTPROF_REC_INSTANT, 0, 1, W(50150));
    tb_record(b, MTPROF_REC_COUNTER, 1, 1, W(50160, 0x3FF8000000000000));
    tb_record(b, MTPROF_REC_LOST, MTPROF_LOST_SOURCE, 0, W(2));
    for (uint64_t i = 0; filler && i < 80; i++) {
        tb_record(b, MTPROF_REC_ACTIVITY, MTPROF_ACTIVITY_COPY, 1,
                  W(51000 + i, 51001 + i, 0, 0, i, 64));
    }
    tb_record(b, MTPROF_REC_CLOCK_PAIR, 0, 0, W(52000, 5000));
}

void tb_sample(trace_builder *b, bool filler)
{
    tb_init(b);
    tb_set64(b, TB_AT_HEALTH + 8 * MTPROF_HEALTH_BEGINS, 7);
    b->chunk_bytes = filler ? 2 * PAGE : PAGE;
    sample_definitions(b, filler);
    sample_control(b, filler);
    sample_threads(b, filler);
    sample_source(b, filler);
    b->chunk_bytes = PAGE;
    tb_chunk(b, 9, 0); /* a stream of a later minor */
    tb_record(b, 1, 0, 0, W(1));
}
