/* SPDX-License-Identifier: Apache-2.0
 *
 * What each kind of record is: record_kinds.def as a table by number.
 */
#ifndef MTPROF_FORMAT_RECORD_KINDS_H
#define MTPROF_FORMAT_RECORD_KINDS_H

#include "base/compiler.h"

#include <mtprof/format.h>

#include <stdbool.h>
#include <stdint.h>

enum mtprof__kind_trait {
    MTPROF__KNOWN = 1 << 0,       /* this version knows it */
    MTPROF__TICKS = 1 << 1,       /* T: w1 is the new time reference */
    MTPROF__ORDINAL = 1 << 2,     /* takes an ordinal (BEGIN_X: if it has no key of its own) */
    MTPROF__PAYLOAD = 1 << 3,     /* P */
    MTPROF__BEGIN_OWNER = 1 << 4, /* payloads of a begin may follow */
    MTPROF__END_OWNER = 1 << 5,   /* payloads of an end may follow */
    MTPROF__OF_BEGIN = 1 << 6,    /* payload of a begin */
    MTPROF__OF_END = 1 << 7,      /* payload of an end */
    MTPROF__TIMED = 1 << 8,       /* has a time of its own; others show the reference, which may
                                     come from a record that was left out */
    MTPROF__OWN_CLOCK = 1 << 9,   /* w1 is a time on the source's clock */
    MTPROF__NAMED = 1 << 10,      /* arg is the string id of its name, or 0 */
    MTPROF__NUMBERED = 1 << 11    /* arg is its own id, which starts at 1 */
};

typedef struct mtprof__kind_rule {
    uint16_t traits;   /* 0: the kind is not known */
    uint16_t aux_last; /* for files of this minor */
    uint8_t streams;   /* a bit for each enum mtprof_stream_kind */
    uint8_t min_words; /* of the body */
} mtprof__kind_rule;

extern const mtprof__kind_rule mtprof__kind_rules[256];

MT_INLINE uint32_t mtprof__kind_traits(uint8_t kind)
{
    return mtprof__kind_rules[kind].traits;
}

/* Whether a record of a thread's or the control stream has a time of its own. */
MT_INLINE bool mtprof__kind_is_timed(uint8_t kind)
{
    return (mtprof__kind_traits(kind) & MTPROF__TIMED) != 0;
}

#endif /* MTPROF_FORMAT_RECORD_KINDS_H */
