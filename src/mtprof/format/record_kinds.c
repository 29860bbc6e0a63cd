/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/format/record_kinds.h"

#include <mtprof/schedule.h>

/* The words of the list. */
enum {
    IN_THREAD = 1 << MTPROF_STREAM_THREAD,
    IN_SOURCE = 1 << MTPROF_STREAM_SOURCE,
    IN_BOTH = IN_THREAD | IN_SOURCE,
    IN_CONTROL = 1 << MTPROF_STREAM_CONTROL,
    IN_DEFINITIONS = 1 << MTPROF_STREAM_DEFINITIONS,

    MARK_NONE = MTPROF__KNOWN,
    MARK_T = MTPROF__KNOWN | MTPROF__TICKS | MTPROF__TIMED,
    MARK_P = MTPROF__KNOWN | MTPROF__PAYLOAD,

    ANY = UINT16_MAX,

    ORDINAL = MTPROF__ORDINAL,
    BEGIN_OWNER = MTPROF__BEGIN_OWNER,
    END_OWNER = MTPROF__END_OWNER,
    OF_BEGIN = MTPROF__OF_BEGIN,
    OF_END = MTPROF__OF_END,
    TIMED = MTPROF__TIMED,
    OWN_CLOCK = MTPROF__OWN_CLOCK,
    NAMED = MTPROF__NAMED,
    NUMBERED = MTPROF__NUMBERED
};

const mtprof__kind_rule mtprof__kind_rules[256] = {
#define X(name, mark, in, words, aux, traits) \
    [MTPROF_REC_##name] = {MARK_##mark | (traits), aux, IN_##in, words},
#include "mtprof/format/record_kinds.def"
#undef X
};
