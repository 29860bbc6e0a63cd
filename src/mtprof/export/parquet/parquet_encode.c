/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/export/parquet/parquet_encode.h"

#include <string.h>

enum {
    BLOCK = 128,  /* differences of a block */
    GROUPS = 4,   /* of a block, each with a width of its own */
    GROUP = 32,   /* differences */
    SHORT_RUN = 8 /* equal numbers that are worth a run of their own */
};

static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

/* ---- Thrift's compact protocol --------------------------------------------------------------- */

static void put_byte(mtprof__pb *pb, unsigned byte)
{
    uint8_t one = (uint8_t)byte;
    mtprof__pb_raw(pb, &one, 1);
}

static void put_field(mtprof__thrift *thrift, uint32_t field, uint32_t type)
{
    uint32_t *last = &thrift->last[thrift->depth];
    uint32_t step = field - *last;
    MT_ASSERT(step >= 1 && step <= 15);
    put_byte(thrift->to, step << 4 | type);
    *last = field;
}

void mtprof__thrift_number(mtprof__thrift *thrift, uint32_t field, uint32_t type, int64_t value)
{
    put_field(thrift, field, type);
    if (type == MTPROF__THRIFT_I8) {
        put_byte(thrift->to, (uint8_t)value);
    } else if (type > MTPROF__THRIFT_FALSE) { /* of which the type is the value */
        mtprof__pb_varint(thrift->to, zigzag(value));
    }
}

void mtprof__thrift_text(mtprof__thrift *thrift, uint32_t field, const void *bytes, size_t n)
{
    if (field != 0) {
        put_field(thrift, field, MTPROF__THRIFT_TEXT);
    }
    mtprof__pb_varint(thrift->to, n);
    mtprof__pb_raw(thrift->to, bytes, n);
}

void mtprof__thrift_list(mtprof__thrift *thrift, uint32_t field, uint32_t type, size_t n)
{
    put_field(thrift, field, MTPROF__THRIFT_LIST);
    if (n < 15) {
        put_byte(thrift->to, (unsigned)n << 4 | type);
    } else {
        put_byte(thrift->to, 0xF0 | type);
        mtprof__pb_varint(thrift->to, n);
    }
}

void mtprof__thrift_item(mtprof__thrift *thrift, int64_t value)
{
    mtprof__pb_varint(thrift->to, zigzag(value));
}

void mtprof__thrift_begin(mtprof__thrift *thrift, uint32_t field)
{
    if (field != 0) {
        put_field(thrift, field, MTPROF__THRIFT_STRUCT);
    }
    MT_ASSERT(thrift->depth + 1 < MTPROF__THRIFT_DEPTH);
    thrift->last[++thrift->depth] = 0;
}

void mtprof__thrift_end(mtprof__thrift *thrift)
{
    put_byte(thrift->to, 0);
    thrift->depth--;
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* n numbers of `width` bits, the first in the lowest bits; n * width is a multiple of 8. Stores up
 * to 7 bytes behind the end. */
static uint8_t *pack_wide(uint8_t *to, const uint64_t *values, size_t n, unsigned width)
{
    uint64_t bits = 0;
    unsigned filled = 0;
    for (size_t i = 0; i < n; i++) {
        bits |= values[i] << filled;
        filled += width;
        if (filled >= 64) {
            memcpy(to, &bits, sizeof bits);
            to += sizeof bits;
            filled -= 64;
            bits = filled == 0 ? 0 : values[i] >> (width - filled);
        }
    }
    memcpy(to, &bits, sizeof bits);
    return to + filled / 8;
}

static uint8_t *pack(uint8_t *to, const uint32_t *values, size_t n, unsigned width)
{
    uint64_t bits = 0;
    unsigned filled = 0;
    for (size_t i = 0; i < n; i++) {
        bits |= (uint64_t)values[i] << filled;
        filled += width;
        if (filled >= 32) {
            memcpy(to, &bits, sizeof(uint32_t));
            to += sizeof(uint32_t);
            filled -= 32;
            bits >>= 32;
        }
    }
    memcpy(to, &bits, sizeof bits);
    return to + filled / 8;
}

/* ---- differences ----------------------------------------------------------------------------- */

/* The differences of a block less the smallest; returns that. Loops of known length for full
 * blocks, so that compilers use vectors. */
MT_INLINE int64_t make_block(uint64_t *more, const int64_t *values, size_t n, unsigned bits)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        int64_t difference = (int64_t)((uint64_t)values[i] - (uint64_t)values[(ptrdiff_t)i - 1]);
        difference = bits == 32 ? (int64_t)(int32_t)difference : difference;
        more[i] = (uint64_t)difference;
        least = difference < least ? difference : least;
    }
    for (size_t i = 0; i < n; i++) {
        more[i] -= (uint64_t)least;
    }
    for (size_t i = n; i < BLOCK; i++) {
        more[i] = 0;
    }
    return least;
}

static void put_block(mtprof__pb *pb, const uint64_t *more, int64_t least, size_t n)
{
    uint8_t *at = (uint8_t *)mtprof__pb_room(pb, MTPROF__PB_VARINT_MAX + GROUPS + 8 * BLOCK + 8);
    if (at == NULL) {
        return;
    }
    at = (uint8_t *)mtprof__pb_put_varint((char *)at, zigzag(least));
    uint8_t *widths = at;
    at += GROUPS;
    for (size_t group = 0; group < GROUPS; group++) {
        uint64_t all = 0;
        for (size_t i = 0; i < GROUP; i++) {
            all |= more[group * GROUP + i];
        }
        widths[group] = (uint8_t)mtprof__parquet_width(all);
        if (group * GROUP < n && all != 0) {
            at = pack_wide(at, more + group * GROUP, GROUP, widths[group]);
        }
    }
    pb->used = (size_t)((char *)at - pb->bytes);
}

void mtprof__parquet_delta(mtprof__pb *pb, const int64_t *values, size_t n, unsigned bits)
{
    uint64_t more[BLOCK];
    mtprof__pb_varint(pb, BLOCK);
    mtprof__pb_varint(pb, GROUPS);
    mtprof__pb_varint(pb, n);
    mtprof__pb_varint(pb, zigzag(n > 0 ? values[0] : 0));
    for (size_t i = 1; i < n; i += BLOCK) {
        size_t some = n - i < BLOCK ? n - i : BLOCK;
        int64_t least;
        if (some == BLOCK) {
            least = bits == 32 ? make_block(more, values + i, BLOCK, 32)
                               : make_block(more, values + i, BLOCK, 64);
        } else {
            least = make_block(more, values + i, some, bits);
        }
        put_block(pb, more, least, some);
    }
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Groups of 8, the last one filled up with zeros. */
static void put_packed(mtprof__pb *pb, const uint32_t *indices, size_t n, unsigned width)
{
    size_t groups = (n + 7) / 8;
    size_t whole = n / 8 * 8;
    if (n == 0) {
        return;
    }
    uint8_t *at = (uint8_t *)mtprof__pb_room(pb, MTPROF__PB_VARINT_MAX + groups * width + 16);
    if (at == NULL) {
        return;
    }
    at = (uint8_t *)mtprof__pb_put_varint((char *)at, groups << 1 | 1);
    at = pack(at, indices, whole, width);
    if (whole < n) {
        uint32_t last[8] = {0};
        memcpy(last, indices + whole, (n - whole) * sizeof last[0]);
        at = pack(at, last, 8, width);
    }
    pb->used = (size_t)((char *)at - pb->bytes);
}

static void put_run(mtprof__pb *pb, uint32_t value, size_t n, unsigned width)
{
    mtprof__pb_varint(pb, n << 1);
    mtprof__pb_raw(pb, &value, (width + 7) / 8); /* little-endian, as every machine that we know */
}

void mtprof__parquet_indices(mtprof__pb *pb, const uint32_t *indices, size_t n, unsigned width)
{
    size_t packed = 0; /* from here on they are not written */
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && indices[end] == indices[i]) {
            end++;
        }
        /* What is packed in front ends with a whole group. */
        size_t first = packed + (i - packed + 7) / 8 * 8;
        if (end >= first + SHORT_RUN) {
            put_packed(pb, indices + packed, first - packed, width);
            put_run(pb, indices[i], end - first, width);
            packed = end;
        }
        i = end;
    }
    put_packed(pb, indices + packed, n - packed, width);
}

void mtprof__parquet_levels(mtprof__pb *pb, const uint8_t *valid, uint64_t first, size_t n,
                            bool has_values)
{
    uint8_t *at =
        (uint8_t *)mtprof__pb_room(pb, sizeof(uint32_t) + MTPROF__PB_VARINT_MAX + n / 8 + 8);
    if (at == NULL) {
        return;
    }
    uint8_t *start = at + sizeof(uint32_t);
    uint8_t *end = start;
    if (valid == NULL) {
        end = (uint8_t *)mtprof__pb_put_varint((char *)end, (uint64_t)n << 1);
        *end++ = has_values;
    } else {
        size_t bytes = (n + 7) / 8;
        end = (uint8_t *)mtprof__pb_put_varint((char *)end, (uint64_t)bytes << 1 | 1);
        for (size_t i = 0; i < bytes; i++) {
            end[i] = 0;
        }
        for (size_t i = 0; first % 8 != 0 && i < n; i++) {
            end[i / 8] |= (uint8_t)((valid[(first + i) / 8] >> ((first + i) % 8) & 1) << (i % 8));
        }
        if (first % 8 == 0) {
            memcpy(end, valid + first / 8, bytes);
        }
        end += bytes;
    }
    uint32_t length = (uint32_t)(end - start);
    memcpy(at, &length, sizeof length);
    pb->used = (size_t)((char *)end - pb->bytes);
}
