/* SPDX-License-Identifier: Apache-2.0
 *
 * The two records that make up nearly all of a trace, taken straight from the chunk: a BEGIN and an
 * END that need no second look. Whatever is unusual about one is left to mtprof__cursor_next().
 */
#ifndef MTPROF_READ_CURSOR_FAST_H
#define MTPROF_READ_CURSOR_FAST_H

#include "base/compiler.h"
#include "mtprof/read/cursor_impl.h"

enum {
    MTPROF__FAST_ORDINAL_BITS = MTPROF_ORDINAL_BITS - 1 /* explicit keys have the bit above */
};

MT_INLINE const uint64_t *mtprof__cursor_words(const mtprof_cursor *cursor)
{
    return cursor->buffer + MTPROF_CHUNK_HEADER / sizeof(uint64_t) + cursor->at;
}

/* Kind of the next record of the chunk; 0: the chunk is used up. */
MT_INLINE uint8_t mtprof__cursor_peek(const mtprof_cursor *cursor)
{
    return cursor->at < cursor->n_words ? (uint8_t)*mtprof__cursor_words(cursor) : 0;
}

/* Takes a BEGIN of two words with the flags of this version; false: it is something else. */
MT_INLINE bool mtprof__cursor_take_begin(mtprof_cursor *cursor, mtprof_record *record)
{
    if (cursor->n_words - cursor->at < 2) { /* at <= n_words */
        return false;
    }
    const uint64_t *words = mtprof__cursor_words(cursor);
    uint64_t word = words[0];
    uint16_t aux = (uint16_t)(word >> 16);
    if ((word & 0xFFFF) != (MTPROF_REC_BEGIN | 2 << 8) ||
        (aux & MTPROF_KIND_MASK) > MTPROF_KIND_STEP || aux >> 8 != 0 ||
        cursor->next_ordinal >> MTPROF__FAST_ORDINAL_BITS != 0) {
        return false;
    }
    record->kind = MTPROF_REC_BEGIN;
    record->aux = aux;
    record->arg = (uint32_t)(word >> 32);
    record->ticks = words[1];
    record->key = (uint64_t)cursor->stream->slot << MTPROF_ORDINAL_BITS | cursor->next_ordinal;
    record->epoch = cursor->epoch;
    record->thread = cursor->thread;
    cursor->next_ordinal++;
    cursor->reference = words[1];
    cursor->owner = MTPROF__OWNER_BEGIN;
    cursor->owner_arg = record->arg;
    cursor->at += 2;
    return true;
}

MT_INLINE bool mtprof__cursor_take_end(mtprof_cursor *cursor, mtprof_record *record)
{
    const uint64_t short_mask = ((uint64_t)1 << MTPROF_SHORT_TIME) - 1;
    if (cursor->at == cursor->n_words) {
        return false;
    }
    uint64_t word = *mtprof__cursor_words(cursor);
    uint64_t distance = word >> 8 & 0xFFFF;
    if ((word & 0xFF) != MTPROF_REC_END || distance == 0 || distance > cursor->next_ordinal) {
        return false;
    }
    record->kind = MTPROF_REC_END;
    record->aux = 0;
    record->arg = 0;
    record->ticks = cursor->reference + (((word >> 24) - cursor->reference) & short_mask);
    record->key =
        (uint64_t)cursor->stream->slot << MTPROF_ORDINAL_BITS | (cursor->next_ordinal - distance);
    record->epoch = cursor->epoch;
    record->thread = cursor->thread;
    cursor->owner = MTPROF__OWNER_END;
    cursor->owner_arg = 0;
    cursor->at += 1;
    return true;
}

#endif /* MTPROF_READ_CURSOR_FAST_H */
