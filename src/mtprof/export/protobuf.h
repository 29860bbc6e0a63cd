/* SPDX-License-Identifier: Apache-2.0
 *
 * Protobuf's wire format, as far as an encoder needs it: varints, fixed words, bytes, and messages
 * whose length is filled in when they end.
 *
 * Two ways to write: mtprof__pb_put_* store at a pointer that has room (the fast path), and
 * mtprof__pb_* append to a message that grows. A failed allocation is kept in the message; what is
 * appended afterwards is dropped.
 */
#ifndef MTPROF_EXPORT_PROTOBUF_H
#define MTPROF_EXPORT_PROTOBUF_H

#include "base/alloc.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    MTPROF__PB_VARINT = 0,
    MTPROF__PB_FIXED64 = 1,
    MTPROF__PB_BYTES = 2,
    MTPROF__PB_VARINT_MAX = 10, /* bytes of the longest varint */
    MTPROF__PB_LENGTH = 4,      /* bytes kept for the length of a message */
    MTPROF__PB_WIDE = 4,        /* bytes of mtprof__pb_wide() */
    MTPROF__PB_WIDE_END = 1 << 28
};

#define MTPROF__PB_TAG(field, type) ((uint32_t)(field) << 3 | (uint32_t)(type))

/* ---- at a pointer: each returns the end ------------------------------------------------------ */

MT_INLINE char *mtprof__pb_put_varint(char *at, uint64_t value)
{
    if (MT_LIKELY(value < 1u << 28)) {
        /* Without branches on the length, which no predictor could guess. Stores 4 bytes. */
        uint32_t v = (uint32_t)value;
        uint32_t spread =
            (v & 0x7F) | (v & 0x3F80) << 1 | (v & 0x1FC000) << 2 | (v & 0xFE00000) << 3;
        uint32_t more = (uint32_t)(v > 0x7F) + (v > 0x3FFF) + (v > 0x1FFFFF);
        spread |= 0x00808080u & ((1u << (8 * more)) - 1);
        memcpy(at, &spread, 4);
        return at + 1 + more;
    }
    for (; value >= 0x80; value >>= 7) {
        *at++ = (char)(value | 0x80);
    }
    *at++ = (char)value;
    return at;
}

/* A value below MTPROF__PB_WIDE_END in exactly 4 bytes: longer than it need be, which every decoder
 * accepts, and cheaper, since what follows has a fixed place. */
MT_INLINE uint32_t mtprof__pb_wide(uint32_t value)
{
    return (value & 0x7F) | (value & 0x3F80) << 1 | (value & 0x1FC000) << 2 |
           (value & 0xFE00000) << 3 | 0x00808080u;
}

/* ---- messages that grow ---------------------------------------------------------------------- */

typedef struct mtprof__pb {
    char *bytes;
    size_t used, capacity;
    bool failed;
} mtprof__pb;

/* Room for n more bytes, or NULL. */
MT_INLINE char *mtprof__pb_room(mtprof__pb *pb, size_t n)
{
    if (MT_UNLIKELY(pb->used + n > pb->capacity) &&
        !mtb_grow((void **)&pb->bytes, &pb->capacity, pb->used + n, 1)) {
        pb->failed = true;
        return NULL;
    }
    return pb->bytes + pb->used;
}

static inline void mtprof__pb_varint(mtprof__pb *pb, uint64_t value)
{
    char *at = mtprof__pb_room(pb, MTPROF__PB_VARINT_MAX);
    if (at != NULL) {
        pb->used = (size_t)(mtprof__pb_put_varint(at, value) - pb->bytes);
    }
}

static inline void mtprof__pb_raw(mtprof__pb *pb, const void *bytes, size_t n)
{
    char *at = mtprof__pb_room(pb, n);
    if (at != NULL && n > 0) {
        memcpy(at, bytes, n);
        pb->used += n;
    }
}

static inline void mtprof__pb_u64(mtprof__pb *pb, uint32_t field, uint64_t value)
{
    mtprof__pb_varint(pb, MTPROF__PB_TAG(field, MTPROF__PB_VARINT));
    mtprof__pb_varint(pb, value);
}

static inline void mtprof__pb_fixed64(mtprof__pb *pb, uint32_t field, uint64_t value)
{
    mtprof__pb_varint(pb, MTPROF__PB_TAG(field, MTPROF__PB_FIXED64));
    mtprof__pb_raw(pb, &value, sizeof value);
}

static inline void mtprof__pb_bytes(mtprof__pb *pb, uint32_t field, const void *bytes, size_t n)
{
    mtprof__pb_varint(pb, MTPROF__PB_TAG(field, MTPROF__PB_BYTES));
    mtprof__pb_varint(pb, n);
    mtprof__pb_raw(pb, bytes, n);
}

/* Begins a message inside; give what it returns to mtprof__pb_end(). */
static inline size_t mtprof__pb_begin(mtprof__pb *pb, uint32_t field)
{
    static const char room[MTPROF__PB_LENGTH] = {0};
    mtprof__pb_varint(pb, MTPROF__PB_TAG(field, MTPROF__PB_BYTES));
    mtprof__pb_raw(pb, room, sizeof room);
    return pb->used;
}

/* Fills the length in, in the fewest bytes: what is inside moves down by at most 3. A message of
 * 256 MiB or more counts as a failure. */
static inline void mtprof__pb_end(mtprof__pb *pb, size_t start)
{
    if (pb->failed) {
        return;
    }
    size_t n = pb->used - start;
    if (n >> (7 * MTPROF__PB_LENGTH) != 0) {
        pb->failed = true;
        return;
    }
    char *at = pb->bytes + start - MTPROF__PB_LENGTH;
    char length[MTPROF__PB_LENGTH];
    size_t n_length = (size_t)(mtprof__pb_put_varint(length, n) - length);
    memmove(at + n_length, pb->bytes + start, n);
    memcpy(at, length, n_length);
    pb->used -= MTPROF__PB_LENGTH - n_length;
}

/* A text as a field of UTF-8: bytes that are not become U+FFFD and are counted. */
void mtprof__pb_text(mtprof__pb *pb, uint32_t field, const char *text, size_t length,
                     uint64_t *replaced);

static inline void mtprof__pb_clear(mtprof__pb *pb)
{
    pb->used = 0;
    pb->failed = false;
}

static inline void mtprof__pb_fini(mtprof__pb *pb)
{
    mtb_free(pb->bytes);
    *pb = (mtprof__pb){0};
}

#endif /* MTPROF_EXPORT_PROTOBUF_H */
