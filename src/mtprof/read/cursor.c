/* SPDX-License-Identifier: Apache-2.0
 *
 * From words to records: what a stream's earlier records mean for the next one.
 *
 * State that a record may change: the time reference, the next ordinal, the epoch, the thread,
 * and whose payloads may follow.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/read/cursor_impl.h"

#include <string.h>

void mtprof__cursor_init(mtprof_cursor *cursor, const mtprof__cursor_source *source,
                         mtprof__read_stream *stream)
{
    memset(cursor, 0, sizeof *cursor);
    cursor->source = *source;
    cursor->stream = stream;
    cursor->fresh = true;
}

void mtprof__cursor_fini(mtprof_cursor *cursor)
{
    mtb_free(cursor->buffer);
    cursor->buffer = NULL;
    cursor->capacity_bytes = 0;
}

/* ---- payloads -------------------------------------------------------------------------------- */

/* Whether a payload, if it is one, is allowed here. EEND: it is to be skipped, because its event is
 * missing. */
static int check_owner(const mtprof_cursor *cursor, const mtprof_record *record, uint32_t traits)
{
    enum mtprof__owner owner = cursor->owner;
    if ((traits & MTPROF__PAYLOAD) == 0) {
        return MTPROF_OK;
    }
    bool belongs = owner == MTPROF__OWNER_ANY ||
                   (owner == MTPROF__OWNER_BEGIN && (traits & MTPROF__OF_BEGIN) != 0) ||
                   (owner == MTPROF__OWNER_END && (traits & MTPROF__OF_END) != 0);
    if (record->kind == MTPROF_REC_TENSORS && owner == MTPROF__OWNER_END) {
        belongs = record->aux == 1; /* only outputs may follow the end */
    }
    if (!belongs) {
        return MTPROF_EEND;
    }
    if (record->kind == MTPROF_REC_NAME && cursor->owner_arg != 0) {
        return mtb_fail_at(MTPROF_EFORMAT, (int64_t)record->offset,
                           "record at %llu: a name in full follows an event whose name is %u",
                           (unsigned long long)record->offset, cursor->owner_arg);
    }
    return MTPROF_OK;
}

/* Kinds of later minors may be payloads, so they leave the owner as it is. */
static void note_owner(mtprof_cursor *cursor, const mtprof_record *record, uint32_t traits)
{
    if ((traits & MTPROF__KNOWN) == 0 || (traits & MTPROF__PAYLOAD) != 0) {
        return;
    }
    cursor->owner = MTPROF__OWNER_NONE;
    cursor->owner_arg = record->arg;
    if (record->kind == MTPROF_REC_ATTACH) {
        cursor->owner = MTPROF__OWNER_ANY;
    } else if ((traits & MTPROF__BEGIN_OWNER) != 0) {
        cursor->owner = MTPROF__OWNER_BEGIN;
    } else if ((traits & MTPROF__END_OWNER) != 0) {
        cursor->owner = MTPROF__OWNER_END;
    }
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Whether the record takes the next ordinal of its slot. */
static bool takes_ordinal(const mtprof_record *record, uint32_t traits)
{
    return (traits & MTPROF__ORDINAL) != 0 &&
           (record->kind != MTPROF_REC_BEGIN_X || record->words[1] == 0);
}

static int apply_key(mtprof_cursor *cursor, mtprof_record *record, uint32_t traits)
{
    uint64_t slot = mtprof__slot_bits(cursor->stream->slot);
    if (takes_ordinal(record, traits)) {
        if (!mtprof__is_counted(cursor->next_ordinal)) {
            return mtb_fail_at(MTPROF_EFORMAT, (int64_t)record->offset,
                               "record at %llu: no ordinals are left in slot %u",
                               (unsigned long long)record->offset, cursor->stream->slot);
        }
        record->key = slot | cursor->next_ordinal;
    } else if (record->kind == MTPROF_REC_BEGIN_X || record->kind == MTPROF_REC_END_X) {
        record->key = record->words[1];
    } else if (record->kind == MTPROF_REC_END) {
        uint64_t distance = mtprof__end_distance(record->word);
        if (distance > cursor->next_ordinal) {
            return mtb_fail_at(MTPROF_EFORMAT, (int64_t)record->offset,
                               "record at %llu: ends the begin %llu before ordinal %llu",
                               (unsigned long long)record->offset, (unsigned long long)distance,
                               (unsigned long long)cursor->next_ordinal);
        }
        record->key = slot | (cursor->next_ordinal - distance);
        record->aux = 0;
        record->arg = 0;
    }
    return MTPROF_OK;
}

/* ---- time and state -------------------------------------------------------------------------- */

static void apply_time(mtprof_cursor *cursor, mtprof_record *record, uint32_t traits)
{
    if ((traits & (MTPROF__TICKS | MTPROF__OWN_CLOCK)) != 0) {
        cursor->reference = record->words[0];
    }
    record->ticks = cursor->reference;
    if (record->kind == MTPROF_REC_END) {
        record->ticks = mtprof__end_ticks(record->word, cursor->reference);
    } else if (record->kind == MTPROF_REC_ALLOC) {
        record->ticks += record->arg;
    }
}

/* An EPOCH or THREAD record belongs already to what it begins. */
static void apply_state(mtprof_cursor *cursor, mtprof_record *record)
{
    if (record->kind == MTPROF_REC_EPOCH) {
        cursor->epoch = record->arg;
    } else if (record->kind == MTPROF_REC_THREAD) {
        cursor->thread = record->arg;
    }
    record->epoch = cursor->epoch;
    record->thread = cursor->thread;
}

/* Decodes a record that has been split off. EEND: it is to be passed over. */
static int decode(mtprof_cursor *cursor, mtprof_record *record)
{
    uint32_t traits = mtprof__kind_traits(record->kind);
    record->key = 0;
    if ((traits & MTPROF__KNOWN) != 0) {
        bool exact = cursor->source.info->minor == MTPROF_FORMAT_MINOR;
        MT_TRY(mtprof__record_check(record, cursor->stream->kind, exact));
        MT_TRY(check_owner(cursor, record, traits));
        MT_TRY(apply_key(cursor, record, traits));
    }
    apply_time(cursor, record, traits);
    apply_state(cursor, record);
    note_owner(cursor, record, traits);
    cursor->holes += record->kind == MTPROF_REC_LOST && record->aux == MTPROF_LOST_DAMAGE;
    cursor->next_ordinal += takes_ordinal(record, traits);
    return MTPROF_OK;
}

/*
 * After a record that failed. In a chunk whose checksum holds it was written like this, so only
 * it and its payloads are left out, unless later records depend on what it does not say: its
 * length, its time or its ordinal. Otherwise the chunk ends here.
 */
static void pass_over(mtprof_cursor *cursor, mtprof_record *record, bool known_end)
{
    uint8_t stream = cursor->stream->kind;
    uint32_t traits = mtprof__kind_traits(record->kind);
    bool rests =
        stream != MTPROF_STREAM_SOURCE && (traits & (MTPROF__TICKS | MTPROF__ORDINAL)) != 0;
    bool told = known_end && mtprof__record_is_whole(record, stream) &&
                mtprof__is_counted(cursor->next_ordinal);
    if (!cursor->checked || !known_end || (rests && !told)) {
        cursor->at = cursor->n_words;
        cursor->fresh = true;
        return;
    }
    if (rests) {
        apply_time(cursor, record, traits);
        cursor->next_ordinal += takes_ordinal(record, traits);
    }
    if ((traits & MTPROF__PAYLOAD) == 0) {
        cursor->owner = MTPROF__OWNER_UNKNOWN;
    }
}

/* Takes one record off the chunk. EEND: it was passed over. */
static int take_record(mtprof_cursor *cursor, mtprof_record *record)
{
    const uint64_t *words = cursor->buffer + MTPROF_CHUNK_HEADER / sizeof(uint64_t);
    uint64_t offset = cursor->offset + MTPROF_CHUNK_HEADER + cursor->at * sizeof(uint64_t);
    size_t at = cursor->at;
    size_t total = 0;
    int status = mtprof__record_split(words + cursor->at, cursor->n_words - cursor->at, offset,
                                      record, &total);
    bool known_end = status == MTPROF_OK;
    if (known_end) {
        cursor->at += total;
        status = decode(cursor, record);
    }
    if (status != MTPROF_OK && status != MTPROF_EEND) {
        pass_over(cursor, record, known_end);
        /* An end that is missing leaves its scope open, like a chunk that is. */
        bool end = record->kind == MTPROF_REC_END || record->kind == MTPROF_REC_END_X;
        cursor->holes += cursor->fresh || end;
        cursor->lost_bytes = (cursor->at - at) * sizeof(uint64_t);
        cursor->told = false;
    }
    return status;
}

int mtprof__cursor_next(mtprof_cursor *cursor, mtprof_record *record)
{
    memset(record, 0, sizeof *record);
    for (;;) {
        if (cursor->at < cursor->n_words) {
            int status = take_record(cursor, record);
            if (status != MTPROF_EEND) {
                return status;
            }
            continue;
        }
        int status = mtprof__cursor_load(cursor); /* of a chunk that may be empty */
        if (status != MTPROF_OK) {
            return status;
        }
    }
}
