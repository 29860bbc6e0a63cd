/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds .mtt images in memory, straight from docs/format.md and without the recorder, so that the
 * reader is tested against the document.
 *
 *      trace_builder b;
 *      tb_init(&b);
 *      tb_chunk(&b, MTPROF_STREAM_THREAD, 0);
 *      tb_record(&b, MTPROF_REC_BEGIN, 0, 7, 1, (uint64_t[]){1000});
 *      tb_finish(&b, true);
 *      ... b.bytes, b.size ...
 *      tb_fini(&b);
 *
 * Chunks lie in the file in the order in which they are made; each is full size from its start, so
 * that offsets are known at once. Everything can be bent before tb_finish() (fields of chunks) or
 * after it (bytes, then tb_repair()).
 *
 * Running out of memory ends the program: this is for tests.
 */
#ifndef TESTS_SUPPORT_TRACES_TRACE_BUILDER_H
#define TESTS_SUPPORT_TRACES_TRACE_BUILDER_H

#include <mtprof/format.h>
#include <mtprof/reader.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets of header fields that tests bend. */
enum {
    TB_AT_MAJOR = 8,
    TB_AT_MINOR = 10,
    TB_AT_HEADER_BYTES = 12,
    TB_AT_FEATURES = 16,
    TB_AT_UUID = 24,
    TB_AT_PERIOD = 48,
    TB_AT_START = 56,
    TB_AT_CLOCK = 80,
    TB_AT_POLICY = 84,
    TB_AT_HEADER_CRC = 108,
    TB_AT_HEALTH = 1024,
    TB_AT_CLOSED = 1280,
    TB_AT_CLOSED_CRC = 1284,
    TB_AT_END_TICKS = 1288,
    TB_AT_FILE_BYTES = 1296,
    TB_AT_FINAL_CRC = 1304
};

/* Offsets in a chunk. */
enum {
    TB_CHUNK_SIZE = 4,
    TB_CHUNK_STREAM = 8,
    TB_CHUNK_SLOT = 10,
    TB_CHUNK_HEADER_CRC = 12,
    TB_CHUNK_SEQUENCE = 16,
    TB_CHUNK_BASE_TICKS = 24,
    TB_CHUNK_FIRST_ORDINAL = 32,
    TB_CHUNK_EPOCH = 40,
    TB_CHUNK_THREAD = 44,
    TB_CHUNK_COMMITTED = 48,
    TB_CHUNK_DATA_CRC = 56,
    TB_CHUNK_STATE = 60
};

/* Values that the sample and most tests use. */
enum {
    TB_START_TICKS = 1000,
    TB_START_MONO = 5000,
    TB_START_REAL = 905000
};

typedef struct trace_builder {
    unsigned char *bytes;
    size_t size;
    uint32_t chunk_bytes;  /* size of the next chunk, 4096 unless set */
    uint32_t chunk_state;  /* of chunks made from here on; 2 unless set */
    uint64_t chunk;        /* offset of the chunk that records go into */
    uint64_t next_ordinal; /* becomes first_ordinal of the next thread chunk; kept by the test */
    uint64_t sequences[5][16];
} trace_builder;

/* A header for format 1.0: 1 tick = 1 ns, policy spill, uuid of 16 different bytes. */
void tb_init(trace_builder *b);
void tb_fini(trace_builder *b);

/* Starts a chunk with the stream's next sequence number; its offset. Slots up to 15. */
uint64_t tb_chunk(trace_builder *b, uint8_t stream, uint16_t slot);

/* Appends words to the chunk; the offset of the first. A chunk that is too small ends the test. */
uint64_t tb_words(trace_builder *b, size_t n, const uint64_t *words);

/* Appends a record of several words (n of them after the head); returns its offset. Uses the
 * extended length where needed. */
uint64_t tb_record(trace_builder *b, uint8_t kind, uint16_t aux, uint32_t arg, size_t n,
                   const uint64_t *body);
/* The same, always with the extended length. */
uint64_t tb_record_extended(trace_builder *b, uint8_t kind, uint16_t aux, uint32_t arg, size_t n,
                            const uint64_t *body);
/* A record of one word: kind, and bits 8 to 63 shifted into place. */
uint64_t tb_single(trace_builder *b, uint8_t kind, uint64_t bits);
uint64_t tb_end(trace_builder *b, uint16_t distance, uint64_t ticks);

/* Appends a record whose body is n words and then texts, each padded to words. */
uint64_t tb_record_texts(trace_builder *b, uint8_t kind, uint16_t aux, uint32_t arg, size_t n,
                         const uint64_t *body, size_t n_texts, const char *const *texts);
uint64_t tb_string(trace_builder *b, uint32_t id, const char *text);

/* Pokes into the image. */
void tb_set16(trace_builder *b, uint64_t offset, uint16_t value);
void tb_set32(trace_builder *b, uint64_t offset, uint32_t value);
void tb_set64(trace_builder *b, uint64_t offset, uint64_t value);
uint32_t tb_get32(const trace_builder *b, uint64_t offset);
uint64_t tb_get64(const trace_builder *b, uint64_t offset);

/* Sets all checksums, and if closed the fields of a closed file. */
void tb_finish(trace_builder *b, bool closed);

/* Computes the checksums of the header, of chunk headers and of chunks in state 2 again. */
void tb_repair(unsigned char *bytes, size_t size);

/* A trace with every kind of record in several streams and chunks, not finished. With a filler
 * each chunk of the streams 1 to 4 has more than a page of records. */
void tb_sample(trace_builder *b, bool filler);

/* CRC32C by bytes: a second implementation to check the first. For one thread. */
uint32_t tb_crc32c(uint32_t crc, const void *bytes, size_t length);

/* ---- bytes in memory ------------------------------------------------------------------------- */

typedef struct tb_memory {
    const unsigned char *bytes;
    size_t size;
    size_t longest_read; /* 0: no limit; otherwise reads are cut to this */
    uint64_t n_reads;    /* counted */
    uint64_t fail_at;    /* this read (from 1) fails with fail_errno; 0: none */
    int fail_errno;
    int n_closed; /* calls of close */
} tb_memory;

/* The memory as bytes for a reader; memory must outlive it. */
mtprof_bytes tb_bytes(tb_memory *memory);

#endif /* TESTS_SUPPORT_TRACES_TRACE_BUILDER_H */
