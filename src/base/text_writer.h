/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffered writing of text: numbers, JSON strings and bytes, to a sink function that takes blocks.
 * Built for speed: one check for room, then plain stores.
 *
 * A failure is kept: after it everything is dropped, and mtb_writer_finish() returns it. So code
 * that writes need not check each call.
 */
#ifndef BASE_TEXT_WRITER_H
#define BASE_TEXT_WRITER_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
#if defined(MT_FUZZ) && MT_FUZZ
    MTB_WRITER_BYTES = 32 * 1024, /* a fuzzer makes one for every input */
#else
    MTB_WRITER_BYTES = 1024 * 1024,
#endif
    MTB_WRITER_ROOM = 8 * 1024 /* most that one mtb_writer_room() may ask for */
};

typedef struct mtb_writer {
    char *buffer;
    size_t used;
    uint64_t flushed;  /* bytes passed to the sink so far */
    uint64_t replaced; /* bytes that were not UTF-8 and became U+FFFD */
    int error;         /* the first result of the sink that was not 0 */
    /* Takes a block; 0, or an error that mtb_writer_finish() returns. */
    int (*sink)(void *context, const void *bytes, size_t length);
    void *context;
} mtb_writer;

/* False when out of memory. The writer must be finished in that case too. */
bool mtb_writer_init(mtb_writer *writer, int (*sink)(void *context, const void *bytes, size_t n),
                     void *context);
/* Passes the rest to the sink, frees the buffer, and returns the first error. */
int mtb_writer_finish(mtb_writer *writer);
/* Passes the buffered bytes to the sink. */
void mtb_writer_flush(mtb_writer *writer);

/* Bytes written so far. */
MT_INLINE uint64_t mtb_writer_total(const mtb_writer *writer)
{
    return writer->flushed + writer->used;
}

/* Room for n bytes (at most MTB_WRITER_ROOM); fill it and pass the end to mtb_writer_took(). */
MT_INLINE char *mtb_writer_room(mtb_writer *writer, size_t n)
{
    MT_ASSERT(n <= MTB_WRITER_ROOM);
    if (MT_UNLIKELY(writer->used + n > MTB_WRITER_BYTES)) {
        mtb_writer_flush(writer);
    }
    return writer->buffer + writer->used;
}

MT_INLINE void mtb_writer_took(mtb_writer *writer, const char *end)
{
    writer->used = (size_t)(end - writer->buffer);
}

/* Any number of bytes. */
void mtb_write_long(mtb_writer *writer, const void *bytes, size_t length);

MT_INLINE void mtb_write(mtb_writer *writer, const void *bytes, size_t length)
{
    if (MT_LIKELY(length <= MTB_WRITER_ROOM)) {
        char *at = mtb_writer_room(writer, length);
        memcpy(at, bytes, length);
        writer->used += length;
    } else {
        mtb_write_long(writer, bytes, length);
    }
}

/* A string literal. */
#define mtb_write_literal(writer, literal) mtb_write((writer), (literal), sizeof(literal) - 1)

/* A zero-terminated text. */
void mtb_write_text(mtb_writer *writer, const char *text);

/* ---- numbers: each stores at `at` and returns the end; at most 24 bytes are touched ---------- */
extern const char mtb_digit_pairs[201]; /* "00" to "99" */

MT_INLINE unsigned mtb_count_digits(uint64_t value)
{
    static const uint64_t powers[20] = {0,
                                        10u,
                                        100u,
                                        1000u,
                                        10000u,
                                        100000u,
                                        1000000u,
                                        10000000u,
                                        100000000u,
                                        1000000000u,
                                        10000000000u,
                                        100000000000u,
                                        1000000000000u,
                                        10000000000000u,
                                        100000000000000u,
                                        1000000000000000u,
                                        10000000000000000u,
                                        100000000000000000u,
                                        1000000000000000000u,
                                        10000000000000000000u};
    unsigned guess = (unsigned)((64 - (unsigned)__builtin_clzll(value | 1)) * 1233) >> 12;
    return guess + (value >= powers[guess] && (guess != 0 || value != 0)) + (value == 0);
}

enum {
    MTB_EIGHT_DIGITS = 100 * 1000 * 1000
};

/* The digits of a value below 100,000,000 as eight characters, leading zeros included: the first
 * one in the lowest byte. Four, then eight of them are divided at once. */
MT_INLINE uint64_t mtb_eight_digits(uint32_t value)
{
    uint64_t four = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = (four * 10486 >> 20) & 0x0000007F0000007Fu;
    uint64_t two = hundreds | (four - 100 * hundreds) << 16;
    uint64_t tens = (two * 103 >> 10) & 0x000F000F000F000Fu;
    return (tens | (two - 10 * tens) << 8) | 0x3030303030303030u;
}

MT_INLINE char *mtb_put_u64(char *at, uint64_t value)
{
    if (MT_LIKELY(value < MTB_EIGHT_DIGITS)) {
        uint64_t digits = mtb_eight_digits((uint32_t)value);
        uint64_t marks = (digits & 0x0F0F0F0F0F0F0F0Fu) | (uint64_t)1
                                                              << 56; /* one digit at least */
        unsigned zeros = (unsigned)__builtin_ctzll(marks) & 0x38;
        digits >>= zeros;
        memcpy(at, &digits, 8);
        return at + 8 - zeros / 8;
    }
    unsigned digits = mtb_count_digits(value);
    char *end = at + digits;
    char *p = end;
    while (value >= 100) {
        p -= 2;
        memcpy(p, mtb_digit_pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10) {
        memcpy(at, mtb_digit_pairs + 2 * value, 2);
    } else {
        *at = (char)('0' + value);
    }
    return end;
}

MT_INLINE char *mtb_put_i64(char *at, int64_t value)
{
    if (value < 0) {
        *at++ = '-';
    }
    return mtb_put_u64(at, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

/* Thousandths with exactly three digits after the point: nanoseconds as microseconds. */
MT_INLINE char *mtb_put_thousandths(char *at, int64_t value)
{
    if (MT_LIKELY((uint64_t)value < MTB_EIGHT_DIGITS)) {
        uint64_t digits = mtb_eight_digits((uint32_t)value);
        uint64_t marks = (digits & 0x0F0F0F0F0F0F0F0Fu) | (uint64_t)1 << 32; /* four at least */
        unsigned zeros = (unsigned)__builtin_ctzll(marks) & 0x38;
        uint32_t rest = (uint32_t)(digits >> 40);
        digits >>= zeros;
        memcpy(at, &digits, 8);
        at += 5 - zeros / 8;
        *at = '.';
        memcpy(at + 1, &rest, 4);
        return at + 4;
    }
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (value < 0) {
        *at++ = '-';
    }
    at = mtb_put_u64(at, magnitude / 1000);
    unsigned rest = (unsigned)(magnitude % 1000);
    *at++ = '.';
    *at++ = (char)('0' + rest / 100);
    memcpy(at, mtb_digit_pairs + 2 * (rest % 100), 2);
    return at + 2;
}

void mtb_write_u64(mtb_writer *writer, uint64_t value);
void mtb_write_i64(mtb_writer *writer, int64_t value);
void mtb_write_thousandths(mtb_writer *writer, int64_t value);
/* The shortest text that reads back as the same double, always with a point or an exponent. NaN and
 * infinities, which JSON does not have, become null. */
void mtb_write_double(mtb_writer *writer, double value);

/* Bytes as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, one for each
 * maximal part of a sequence, and are counted. */
void mtb_write_json(mtb_writer *writer, const char *bytes, size_t length);
/* The same without the quotes. */
void mtb_write_json_inner(mtb_writer *writer, const char *bytes, size_t length);

/* Bytes as text between tags or in an attribute of HTML: nothing in them is taken for markup. Bytes
 * that are not UTF-8, and zeros, become U+FFFD and are counted. */
void mtb_write_html(mtb_writer *writer, const char *bytes, size_t length);

/* Another member of a JSON object, `,"key":value`. The key is a literal that needs no escapes. */
#define mtb_write_member(writer, key) mtb_write_literal((writer), ",\"" key "\":")
#define mtb_write_member_u64(writer, key, value) \
    (mtb_write_member(writer, key), mtb_write_u64((writer), (value)))
#define mtb_write_member_i64(writer, key, value) \
    (mtb_write_member(writer, key), mtb_write_i64((writer), (value)))
#define mtb_write_member_thousandths(writer, key, value) \
    (mtb_write_member(writer, key), mtb_write_thousandths((writer), (value)))
#define mtb_write_member_double(writer, key, value) \
    (mtb_write_member(writer, key), mtb_write_double((writer), (value)))
#define mtb_write_member_json(writer, key, bytes, length) \
    (mtb_write_member(writer, key), mtb_write_json((writer), (bytes), (length)))

/* printf, for what is not written often; fewer than MTB_WRITER_ROOM bytes. */
void mtb_write_format(mtb_writer *writer, const char *format, ...) MT_PRINTF(2, 3);

/* Length of the UTF-8 character at bytes (1 to 4), or 0 if it is invalid; *bad is then the length
 * of the invalid part. length > 0. */
unsigned mtb_utf8_length(const char *bytes, size_t length, unsigned *bad);

#endif /* BASE_TEXT_WRITER_H */
