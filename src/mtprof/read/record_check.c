/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of single records: what record_kinds.def says of a kind, and what a table cannot say.
 */
#include "mtprof/read/record_check.h"

#include "base/compiler.h"
#include "base/fail.h"
#include "mtprof/format/begin_end.h"
#include "mtprof/format/layout.h"

enum {
    LENGTH_EXTENDED = 255
};

int mtprof__record_split(const uint64_t *words, size_t left, uint64_t offset, mtprof_record *record,
                         size_t *total)
{
    uint64_t word = words[0];
    uint64_t length = 1;
    uint64_t head = 1;
    record->kind = (uint8_t)word;
    record->aux = (uint16_t)(word >> 16);
    record->arg = (uint32_t)(word >> 32);
    record->word = word;
    record->offset = offset;
    if ((record->kind & 0x80) == 0) {
        length = word >> 8 & 0xFF;
        if (length == LENGTH_EXTENDED) {
            head = 2;
            length = left > 1 ? words[1] : 0;
        }
    }
    if (length < head || length > left) {
        return mtb_fail_at(MTPROF_EFORMAT, (int64_t)offset,
                           "record at %llu: kind %02x has a length of %llu words, expected %llu to "
                           "%zu",
                           (unsigned long long)offset, record->kind, (unsigned long long)length,
                           (unsigned long long)head, left);
    }
    record->words = words + head;
    record->n_words = (uint32_t)(length - head);
    *total = (size_t)length;
    return MTPROF_OK;
}

static int bad(const mtprof_record *record, const char *what, uint64_t value)
{
    return mtb_fail_at(MTPROF_EFORMAT, (int64_t)record->offset,
                       "record at %llu: kind %02x: %s (%llu)", (unsigned long long)record->offset,
                       record->kind, what, (unsigned long long)value);
}

/* A text of length bytes from words[at] on fits, and its last word is filled up with zeros. */
static bool text_fits(const mtprof_record *record, uint64_t at, uint64_t length)
{
    uint64_t n = mtprof__text_words(length);
    if (at > record->n_words || n > record->n_words - at) {
        return false;
    }
    unsigned used = (unsigned)(length % 8);
    return used == 0 || record->words[at + n - 1] >> (8 * used) == 0;
}

bool mtprof__input_list_check(const uint64_t *words, uint32_t n)
{
    uint64_t open[MTPROF__LIST_DEPTH]; /* values that each open list still lacks */
    size_t depth = 0;
    bool after_keyword = false;
    mtprof_input_walk walk = mtprof__input_walk(words, n);
    while (mtprof__input_next(&walk)) {
        if (walk.cut || walk.kind > MTPROF_INPUT_KEYWORD) {
            return false;
        }
        if (walk.kind == MTPROF_INPUT_KEYWORD) {
            if (after_keyword) {
                return false;
            }
            after_keyword = true;
            continue;
        }
        if (walk.kind == MTPROF_INPUT_LIST) {
            if (walk.count > n - walk.word || depth == MTPROF__LIST_DEPTH) {
                return false;
            }
            open[depth++] = (uint64_t)walk.count + 1; /* itself is closed below like a value */
        }
        after_keyword = false;
        while (depth > 0 && --open[depth - 1] == 0) {
            depth--;
        }
    }
    return depth == 0 && !after_keyword;
}

static int check_key(const mtprof_record *record, const char *what, uint64_t key)
{
    return (key & ~MTPROF__KEY_MASK) == 0 ? MTPROF_OK : bad(record, what, key);
}

static int check_begin_x(const mtprof_record *record)
{
    uint64_t own = record->words[1];
    uint64_t parent = record->words[2];
    MT_TRY(check_key(record, "own key is none", own));
    if (own != 0 && (own & MTPROF__EXPLICIT_BIT) == 0) {
        return bad(record, "own key lacks bit 39", own);
    }
    return parent == MTPROF_KEY_STRUCTURE ? MTPROF_OK
                                          : check_key(record, "parent's key is none", parent);
}

static int check_meta(const mtprof_record *record)
{
    uint64_t value = record->words[0];
    if (record->aux == MTPROF_META_TEXT && !text_fits(record, 1, value)) {
        return bad(record, "text does not fit", value);
    }
    if (record->aux == MTPROF_META_BOOL && value > 1) {
        return bad(record, "bool is not 0 or 1", value);
    }
    return MTPROF_OK;
}

static int check_trace_meta(const mtprof_record *record)
{
    uint64_t key = record->words[0] & UINT32_MAX;
    uint64_t value = record->words[0] >> 32;
    if (!text_fits(record, 1, key)) {
        return bad(record, "key does not fit", key);
    }
    if (!text_fits(record, 1 + mtprof__text_words(key), value)) {
        return bad(record, "value does not fit", value);
    }
    return MTPROF_OK;
}

static int check_def_string(const mtprof_record *record)
{
    uint64_t length = record->words[0] & UINT32_MAX;
    uint64_t at = (record->aux & 1) != 0 ? 2 : 1;
    return text_fits(record, at, length) ? MTPROF_OK : bad(record, "text does not fit", length);
}

static int check_inputs(const mtprof_record *record)
{
    return mtprof__input_list_check(record->words, record->n_words)
               ? MTPROF_OK
               : bad(record, "no well-formed input list in so many words", record->n_words);
}

/* What depends on the kind alone; the length is at least the table's. */
static int check_body(const mtprof_record *record)
{
    const uint64_t *w = record->words;
    uint32_t n = record->n_words;
    switch (record->kind) {
    case MTPROF_REC_BEGIN_X: return check_begin_x(record);
    case MTPROF_REC_END_X: return check_key(record, "key is none", w[1]);
    case MTPROF_REC_END:
        return mtprof__end_distance(record->word) != 0 ? MTPROF_OK
                                                       : bad(record, "distance is none", 0);
    case MTPROF_REC_ACTIVITY: return check_key(record, "launch key is none", w[2]);
    case MTPROF_REC_META: return check_meta(record);
    case MTPROF_REC_TRACE_META: return check_trace_meta(record);
    case MTPROF_REC_NAME:
        return text_fits(record, 1, w[0]) ? MTPROF_OK : bad(record, "text does not fit", w[0]);
    case MTPROF_REC_WARNING:
        return text_fits(record, 2, w[1]) ? MTPROF_OK : bad(record, "text does not fit", w[1]);
    case MTPROF_REC_SCALARS:
        return record->aux <= n ? MTPROF_OK : bad(record, "fewer words than scalars", n);
    case MTPROF_REC_TENSORS:
        return n % 4 == 0 ? MTPROF_OK : bad(record, "words are no multiple of 4", n);
    case MTPROF_REC_OPINFO:
        return __builtin_popcount(record->aux) <= (int)n ? MTPROF_OK
                                                         : bad(record, "fewer words than bits", n);
    case MTPROF_REC_INPUTS_INLINE:
    case MTPROF_REC_DEF_INPUTS: return check_inputs(record);
    case MTPROF_REC_DEF_STRING: return check_def_string(record);
    default: return MTPROF_OK;
    }
}

/* Ranges that a later minor may widen. */
static int check_ranges(const mtprof_record *record, const mtprof__kind_rule *rule)
{
    if (record->aux > rule->aux_last) {
        return bad(record, "aux is out of range", record->aux);
    }
    switch (record->kind) {
    case MTPROF_REC_BEGIN:
    case MTPROF_REC_BEGIN_X:
    case MTPROF_REC_INSTANT:
    case MTPROF_REC_LAUNCH:
        return (record->aux & MTPROF_KIND_MASK) <= MTPROF_KIND_STEP && record->aux >> 8 == 0
                   ? MTPROF_OK
                   : bad(record, "begin flags are out of range", record->aux);
    case MTPROF_REC_LIMIT:
        return (record->aux & 0xFF) < MTPROF_LIMIT_LEVELS && record->aux >> 8 < MTPROF_LIMIT_LEVELS
                   ? MTPROF_OK
                   : bad(record, "level is out of range", record->aux);
    case MTPROF_REC_ALLOC:
        return record->aux >> 8 <= 1 ? MTPROF_OK
                                     : bad(record, "flags are out of range", record->aux >> 8);
    case MTPROF_REC_DEF_STRING:
        return record->aux <= 1 ? MTPROF_OK : bad(record, "flags are out of range", record->aux);
    default: return MTPROF_OK;
    }
}

/* Sources are numbered from 0. */
static int check_id(const mtprof_record *record)
{
    if (record->arg == 0 && (mtprof__kind_traits(record->kind) & MTPROF__NUMBERED) != 0) {
        return bad(record, "id is none", 0);
    }
    if (record->arg > UINT16_MAX && record->kind == MTPROF_REC_DEF_SOURCE) {
        return bad(record, "no source index", record->arg);
    }
    return MTPROF_OK;
}

bool mtprof__record_is_whole(const mtprof_record *record, uint8_t stream)
{
    const mtprof__kind_rule *rule = &mtprof__kind_rules[record->kind];
    return (rule->streams >> stream & 1) != 0 && record->n_words >= rule->min_words;
}

int mtprof__record_check(const mtprof_record *record, uint8_t stream, bool exact)
{
    const mtprof__kind_rule *rule = &mtprof__kind_rules[record->kind];
    if ((rule->streams >> stream & 1) == 0) {
        return bad(record, "does not belong into a stream of this kind", stream);
    }
    if (record->n_words < rule->min_words) {
        return bad(record, "body has too few words", record->n_words);
    }
    if (exact) {
        MT_TRY(check_ranges(record, rule));
    }
    MT_TRY(check_id(record));
    return check_body(record);
}
