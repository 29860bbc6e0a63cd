/* SPDX-License-Identifier: Apache-2.0
 *
 * The two records that make up nearly all of a trace, from their words (docs/format.md 3.1 to 3.3).
 * What is unusual about one is left to the cursor, which decodes every kind.
 */
#ifndef MTPROF_FORMAT_BEGIN_END_H
#define MTPROF_FORMAT_BEGIN_END_H

#include "base/compiler.h"
#include "mtprof/format/keys.h"

/* Of a BEGIN: MTPROF_KIND_SCOPE to MTPROF_KIND_STEP, where it is of this minor. */
MT_INLINE uint8_t mtprof__begin_kind(uint64_t word)
{
    return (uint8_t)(word >> 16) & MTPROF_KIND_MASK;
}

/* Whether it is a BEGIN of two words, of a kind of this minor, with no flags but these. */
MT_INLINE bool mtprof__is_begin(uint64_t word, uint32_t flags)
{
    const uint64_t known = (uint64_t)(MTPROF_KIND_MASK | flags) << 16;
    return (word & UINT32_MAX & ~known) == (MTPROF_REC_BEGIN | 2 << 8) &&
           mtprof__begin_kind(word) <= MTPROF_KIND_STEP;
}

MT_INLINE bool mtprof__is_end(uint64_t word)
{
    return (uint8_t)word == MTPROF_REC_END;
}

/* Whether a record of this first word cannot belong to the one before. */
MT_INLINE bool mtprof__is_edge(uint64_t word)
{
    return (uint8_t)word == MTPROF_REC_BEGIN || mtprof__is_end(word);
}

/* An END's distance: it ends the begin with ordinal (next ordinal - distance). */
MT_INLINE uint64_t mtprof__end_distance(uint64_t word)
{
    return word >> 8 & 0xFFFF;
}

/* Whether an END ends the begin of this key. A distance of 0, or past the first begin, is damage:
 * it could name the key of another slot, which a BEGIN_X may have put on the stack. */
MT_INLINE bool mtprof__ends_key(uint64_t word, uint64_t next_ordinal, uint64_t slot_bits,
                                uint64_t key)
{
    uint64_t distance = mtprof__end_distance(word);
    return key == slot_bits + next_ordinal - distance && distance - 1 < next_ordinal;
}

/* An END's short time as ticks. */
MT_INLINE uint64_t mtprof__end_ticks(uint64_t word, uint64_t reference)
{
    const uint64_t mask = ((uint64_t)1 << MTPROF_SHORT_TIME) - 1;
    return reference + (((word >> 24) - reference) & mask);
}

#endif /* MTPROF_FORMAT_BEGIN_END_H */
