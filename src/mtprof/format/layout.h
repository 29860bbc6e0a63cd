/* SPDX-License-Identifier: Apache-2.0
 *
 * The file header, the chunk header and the first words of records as C sees them. The law is
 * docs/format.md; the static assertions keep the structs to it. Little-endian hosts only.
 */
#ifndef MTPROF_FORMAT_LAYOUT_H
#define MTPROF_FORMAT_LAYOUT_H

#include "base/compiler.h"
#include "base/crc32c.h"

#include <mtprof/format.h>

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the recorder writes its own byte order");

typedef struct mtprof__file_header {
    uint64_t magic;
    uint16_t major, minor;
    uint32_t header_bytes;
    uint64_t features;
    uint8_t uuid[16];
    uint64_t pid;
    uint64_t tick_period;
    uint64_t start_ticks, start_mono_ns, start_real_ns;
    uint32_t clock, policy;
    uint64_t budget_bytes, ring_ns;
    uint32_t begin_cost_ticks, header_crc;
    uint8_t unused[912];
    uint64_t health[MTPROF_HEALTH_COUNT];
    uint32_t closed, closed_crc;
    uint64_t end_ticks, file_bytes;
    uint32_t final_crc, unused2;
} mtprof__file_header;

static_assert(offsetof(mtprof__file_header, header_crc) == 108, "format.md 1");
static_assert(offsetof(mtprof__file_header, health) == 1024, "format.md 1");
static_assert(offsetof(mtprof__file_header, closed) == 1280, "format.md 1");
static_assert(offsetof(mtprof__file_header, end_ticks) == 1288, "format.md 1");
static_assert(offsetof(mtprof__file_header, final_crc) == 1304, "format.md 1");

typedef struct mtprof__chunk_header {
    uint32_t magic, size;
    uint8_t stream, reserved;
    uint16_t slot;
    uint32_t header_crc;
    uint64_t sequence, base_ticks, first_ordinal;
    uint32_t epoch, thread;
    uint64_t committed;
    uint32_t data_crc, state;
} mtprof__chunk_header;

static_assert(sizeof(mtprof__chunk_header) == MTPROF_CHUNK_HEADER, "format.md 2");
static_assert(offsetof(mtprof__chunk_header, committed) == 48, "format.md 2");

/* header_crc of a chunk, salted with the file's uuid. */
MT_INLINE uint32_t mtprof__chunk_header_crc(const uint8_t uuid[16], const mtprof__chunk_header *h)
{
    uint32_t crc = mtb_crc32c(0, uuid, 16);
    crc = mtb_crc32c(crc, h, 12);
    return mtb_crc32c(crc, (const char *)h + 16, 32);
}

/* data_crc of a chunk whose records are at `records`. */
MT_INLINE uint32_t mtprof__chunk_data_crc(uint64_t committed, const void *records)
{
    uint32_t crc = mtb_crc32c(0, &committed, 8);
    return mtb_crc32c(crc, records, committed);
}

/* First word of a record of several words. */
MT_INLINE uint64_t mtprof__word0(uint32_t kind, uint32_t n_words, uint32_t aux, uint32_t arg)
{
    return kind | (uint64_t)n_words << 8 | (uint64_t)(aux & 0xFFFF) << 16 | (uint64_t)arg << 32;
}

/* END: one word. */
MT_INLINE uint64_t mtprof__end_word(uint64_t distance, uint64_t ticks)
{
    return MTPROF_REC_END | distance << 8 | ticks << 24;
}

/* The other one-word records: an id in the upper half. */
MT_INLINE uint64_t mtprof__id_word(uint32_t kind, uint32_t id)
{
    return kind | (uint64_t)id << 32;
}

/* MEM_BEFORE and MEM_AFTER. */
MT_INLINE uint64_t mtprof__memory_word(uint32_t kind, uint32_t device, uint64_t bytes)
{
    return kind | (uint64_t)(device & 0xFF) << 8 | bytes << 16;
}

/* Words that a text of `length` bytes takes. */
MT_INLINE uint64_t mtprof__text_words(uint64_t length)
{
    return (length + 7) / 8;
}

/* A text as words, its last one filled with zero bytes. */
MT_INLINE void mtprof__put_text(uint64_t *at, const char *text, size_t length)
{
    if (length != 0) {
        at[mtprof__text_words(length) - 1] = 0;
        memcpy(at, text, length);
    }
}

/* A record that is a length and a text (NAME, META of type text). Returns its words. */
MT_INLINE uint32_t mtprof__put_text_record(uint64_t *at, uint32_t kind, uint32_t aux, uint32_t arg,
                                           const char *text, size_t length)
{
    uint32_t words = 2 + (uint32_t)mtprof__text_words(length);
    at[0] = mtprof__word0(kind, words, aux, arg);
    at[1] = length;
    mtprof__put_text(at + 2, text, length);
    return words;
}

#endif /* MTPROF_FORMAT_LAYOUT_H */
