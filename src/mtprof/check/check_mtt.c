/* SPDX-License-Identifier: Apache-2.0
 *
 * A .mtt trace against docs/format.md: what opening it finds, then every record of every stream.
 *
 * A reader leaves out what fails a check and goes on, so most of what is wrong shows as a problem
 * of the reader. The rest is about records that belong together: ends and begins, launches and
 * device work, names and definitions, and the order of times.
 */
#include "base/fail.h"
#include "base/keyset.h"
#include "mtprof/check/check_impl.h"
#include "mtprof/format/keys.h"
#include "mtprof/format/record_kinds.h"

#include <mtprof/format.h>
#include <mtprof/reader.h>

#include <string.h>

enum {
    PROGRESS_RECORDS = 1 << 16
};

typedef struct mtt_check {
    mtprof__check *check;
    const mtprof_reader *reader;
    mtprof_trace_info info;
    mtprof_stream_info stream;
    bool gaps;       /* ring mode discarded chunks of some stream: what is missing is no error */
    mtb_keyset open; /* scopes of the current slot */
    mtb_keyset left_open;    /* scopes that nothing in their own slot has ended */
    mtb_keyset ended_abroad; /* keys that END_X names and that are not open in its own slot */
    mtb_keyset launches;     /* keys of which a device record is expected */
    mtb_keyset answers;      /* launch keys of kernels, copies and sets */
    uint64_t last_ticks;     /* of the slot's begins */
    uint32_t last_epoch;     /* that was looked up */
    uint64_t committed;      /* bytes of records gone through */
    uint64_t total;
} mtt_check;

#define FIND(mtt, rule, at, ...)                                                            \
    mtprof__check_find((mtt)->check, MTPROF__RULE_##rule, (mtb_json_place){.offset = (at)}, \
                       __VA_ARGS__)

/* ---- definitions ----------------------------------------------------------------------------- */

static int need_string(mtt_check *mtt, const mtprof_record *record, uint64_t id, const char *what)
{
    mtprof_text text;
    if (id == 0 || (id <= UINT32_MAX && mtprof_reader_string(mtt->reader, (uint32_t)id, &text))) {
        return MTPROF_OK;
    }
    return FIND(mtt, MTT_DEFINITION, record->offset, "%s %llu is not defined", what,
                (unsigned long long)id);
}

static int check_opinfo(mtt_check *mtt, const mtprof_record *record)
{
    uint32_t at = 0;
    for (uint32_t bit = 0; bit < 16; bit++) {
        if ((record->aux >> bit & 1) == 0) {
            continue;
        }
        uint64_t value = record->words[at++];
        if (bit == MTPROF_OPINFO_OVERLOAD || bit == MTPROF_OPINFO_MODULE) {
            MT_TRY(need_string(mtt, record, value,
                               bit == MTPROF_OPINFO_MODULE ? "module path" : "overload name"));
        }
    }
    return MTPROF_OK;
}

static int check_thread(mtt_check *mtt, const mtprof_record *record)
{
    mtprof_thread_info thread;
    return record->arg == 0 || mtprof_reader_thread(mtt->reader, record->arg, &thread)
               ? MTPROF_OK
               : FIND(mtt, MTT_DEFINITION, record->offset, "thread %u is not defined", record->arg);
}

static int check_references(mtt_check *mtt, const mtprof_record *record)
{
    const uint64_t *words = NULL;
    uint32_t a = 0;
    uint32_t b = 0;
    if ((mtprof__kind_traits(record->kind) & MTPROF__NAMED) != 0) {
        return need_string(mtt, record, record->arg, "name");
    }
    switch (record->kind) {
    case MTPROF_REC_META:
        MT_TRY(need_string(mtt, record, record->arg, "key"));
        return record->aux == MTPROF_META_STRING
                   ? need_string(mtt, record, record->words[0], "string")
                   : MTPROF_OK;
    case MTPROF_REC_INPUTS:
        return mtprof_reader_inputs(mtt->reader, record->arg, &words, &a)
                   ? MTPROF_OK
                   : FIND(mtt, MTT_DEFINITION, record->offset, "input list %u is not defined",
                          record->arg);
    case MTPROF_REC_STACK:
        return mtprof_reader_stack(mtt->reader, record->arg, &a, &b)
                   ? MTPROF_OK
                   : FIND(mtt, MTT_DEFINITION, record->offset, "stack %u is not defined",
                          record->arg);
    case MTPROF_REC_OPINFO: return check_opinfo(mtt, record);
    case MTPROF_REC_THREAD: return check_thread(mtt, record);
    default: return MTPROF_OK;
    }
}

/* ---- scopes ---------------------------------------------------------------------------------- */

/* Scopes still open in the slot may be ended by another one, or were cut off. */
static int leave_open(mtt_check *mtt)
{
    for (size_t i = 0; mtt->open.count > 0 && i < mtt->open.capacity; i++) {
        if (mtt->open.keys[i] != 0 && !mtb_keyset_add(&mtt->left_open, mtt->open.keys[i])) {
            return mtb_fail(MTPROF_ENOMEM, "check: no memory for the keys of a trace");
        }
    }
    mtb_keyset_clear(&mtt->open);
    return MTPROF_OK;
}

static int check_epoch(mtt_check *mtt, const mtprof_record *record)
{
    mtprof_epoch_info epoch;
    if (record->epoch == mtt->last_epoch) {
        return MTPROF_OK;
    }
    mtt->last_epoch = record->epoch;
    for (uint32_t i = 0; mtprof_reader_epoch(mtt->reader, i, &epoch); i++) {
        if (epoch.epoch == record->epoch) {
            return MTPROF_OK;
        }
    }
    return FIND(mtt, MTT_EPOCH, record->offset, "events of epoch %u, which no window has opened",
                record->epoch);
}

static int check_begin(mtt_check *mtt, const mtprof_record *record)
{
    bool nested = (record->key & MTPROF__EXPLICIT_BIT) != 0; /* a handler's may be earlier (F1) */
    MT_TRY(check_epoch(mtt, record));
    mtt->check->summary.spans++;
    if (!nested && record->ticks < mtt->last_ticks) {
        MT_TRY(FIND(mtt, MTT_TIME, record->offset,
                    "the clock went back by %llu ticks before this begin",
                    (unsigned long long)(mtt->last_ticks - record->ticks)));
    }
    if (!nested) {
        mtt->last_ticks = record->ticks;
    }
    if ((record->aux & MTPROF_FLAG_LAUNCH) != 0 || record->kind == MTPROF_REC_LAUNCH) {
        if (!mtb_keyset_add(&mtt->launches, record->key)) {
            return mtb_fail(MTPROF_ENOMEM, "check: no memory for the keys of a trace");
        }
    }
    if (record->kind == MTPROF_REC_LAUNCH) {
        return MTPROF_OK;
    }
    if (mtb_keyset_has(&mtt->open, record->key)) {
        return FIND(mtt, MTT_KEY, record->offset, "key %llx is that of a scope which is open",
                    (unsigned long long)record->key);
    }
    return mtb_keyset_add(&mtt->open, record->key)
               ? MTPROF_OK
               : mtb_fail(MTPROF_ENOMEM, "check: no memory for the keys of a trace");
}

static int check_end(mtt_check *mtt, const mtprof_record *record)
{
    if (mtb_keyset_remove(&mtt->open, record->key)) {
        return MTPROF_OK;
    }
    if (record->kind == MTPROF_REC_END_X) {
        return mtb_keyset_add(&mtt->ended_abroad, record->key)
                   ? MTPROF_OK
                   : mtb_fail(MTPROF_ENOMEM, "check: no memory for the keys of a trace");
    }
    return mtt->gaps ? MTPROF_OK
                     : FIND(mtt, MTT_END, record->offset,
                            "an end of %llx, which is not open: the end is ignored",
                            (unsigned long long)record->key);
}

static int check_record(mtt_check *mtt, const mtprof_record *record)
{
    MT_TRY(check_references(mtt, record));
    if ((mtprof__kind_traits(record->kind) & MTPROF__ORDINAL) != 0) {
        return check_begin(mtt, record);
    }
    switch (record->kind) {
    case MTPROF_REC_END:
    case MTPROF_REC_END_X: return check_end(mtt, record);
    case MTPROF_REC_EPOCH: return leave_open(mtt);
    case MTPROF_REC_ACTIVITY:
        if (record->aux <= MTPROF_ACTIVITY_SET && record->words[2] != 0 &&
            !mtb_keyset_add(&mtt->answers, record->words[2])) {
            return mtb_fail(MTPROF_ENOMEM, "check: no memory for the keys of a trace");
        }
        return MTPROF_OK;
    default: return MTPROF_OK;
    }
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Cursors find damage again that opening has already reported. */
static bool is_known(const mtt_check *mtt, const mtprof_error *error)
{
    mtprof_problem problem;
    for (uint32_t i = 0; mtprof_reader_problem(mtt->reader, i, &problem); i++) {
        if (problem.offset == (uint64_t)error->offset &&
            strcmp(problem.message, error->message) == 0) {
            return true;
        }
    }
    return false;
}

static int check_failure(mtt_check *mtt)
{
    const mtprof_error *error = mtprof_last_error();
    uint64_t offset = error->offset < 0 ? 0 : (uint64_t)error->offset;
    return is_known(mtt, error) ? MTPROF_OK : FIND(mtt, MTT_RECORD, offset, "%s", error->message);
}

static int read_stream(mtt_check *mtt, mtprof_cursor *cursor)
{
    mtprof_record record;
    for (uint64_t n = 0;; n++) {
        int status = mtprof_cursor_next(cursor, &record);
        if (status == MTPROF_EEND) {
            return leave_open(mtt);
        }
        if (status == MTPROF_EFORMAT || status == MTPROF_EIO) {
            MT_TRY(check_failure(mtt));
            continue;
        }
        MT_TRY(status);
        mtt->check->summary.events++;
        MT_TRY(check_record(mtt, &record));
        if (n % PROGRESS_RECORDS == 0) {
            MT_TRY(mtprof__check_progress(mtt->check, mtt->committed, mtt->total));
        }
    }
}

static int check_streams(mtt_check *mtt)
{
    uint32_t n = mtprof_reader_stream_count(mtt->reader);
    mtprof_stream_info stream = {.struct_size = sizeof stream};
    for (uint32_t i = 0; i < n; i++) {
        MT_TRY(mtprof_reader_get_stream(mtt->reader, i, &stream));
        mtt->gaps =
            mtt->gaps || (stream.chunks_missing > 0 && mtt->info.policy == MTPROF_POLICY_RING);
        mtt->total += stream.bytes;
    }
    for (uint32_t i = 0; i < n; i++) {
        mtprof_cursor *cursor = NULL;
        mtt->stream.struct_size = sizeof mtt->stream;
        MT_TRY(mtprof_reader_get_stream(mtt->reader, i, &mtt->stream));
        mtt->check->summary.tracks +=
            mtt->stream.kind == MTPROF_STREAM_THREAD || mtt->stream.kind == MTPROF_STREAM_SOURCE;
        mtt->last_ticks = 0;
        mtt->last_epoch = 0;
        MT_TRY(mtprof_cursor_open(mtt->reader, i, &cursor));
        int status = read_stream(mtt, cursor);
        mtprof_cursor_close(cursor);
        MT_TRY(status);
        mtt->committed += mtt->stream.bytes;
    }
    return MTPROF_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static uint64_t count_missing(const mtb_keyset *of, const mtb_keyset *in)
{
    uint64_t n = 0;
    for (size_t i = 0; i < of->capacity; i++) {
        n += of->keys[i] != 0 && !mtb_keyset_has(in, of->keys[i]);
    }
    return n;
}

static int check_pairs(mtt_check *mtt)
{
    uint64_t unmatched = count_missing(&mtt->launches, &mtt->answers);
    uint64_t orphans = count_missing(&mtt->answers, &mtt->launches);
    uint64_t ends = count_missing(&mtt->ended_abroad, &mtt->left_open);
    uint64_t cut = count_missing(&mtt->left_open, &mtt->ended_abroad);
    if (unmatched > 0) {
        MT_TRY(FIND(mtt, MTT_UNMATCHED, 0, "%llu launches have no device record",
                    (unsigned long long)unmatched));
    }
    if (orphans > 0 && !mtt->gaps) {
        MT_TRY(FIND(mtt, MTT_UNMATCHED, 0, "%llu device records name a launch that is not there",
                    (unsigned long long)orphans));
    }
    if (ends > 0 && !mtt->gaps) {
        MT_TRY(FIND(mtt, MTT_END, 0, "%llu ends from another thread name no open scope",
                    (unsigned long long)ends));
    }
    if (cut > 0) {
        MT_TRY(FIND(mtt, MTT_TRUNCATED, 0, "%llu scopes have no end: they end with their window",
                    (unsigned long long)cut));
    }
    return MTPROF_OK;
}

static int check_health(mtt_check *mtt)
{
    const uint64_t *health = mtt->info.health;
    for (uint32_t i = 0; i < MTPROF_HEALTH_LOST_END; i++) {
        if (health[i] > 0) {
            MT_TRY(FIND(mtt, MTT_LOST, 0, "%llu events were lost while recording: %s",
                        (unsigned long long)health[i], mtprof_lost_cause(i)));
        }
    }
    if (health[MTPROF_HEALTH_RING_CHUNKS] > 0) {
        MT_TRY(FIND(mtt, MTT_EVICTED, 0, "ring mode let %llu begins go",
                    (unsigned long long)health[MTPROF_HEALTH_RING_BEGINS]));
    }
    return MTPROF_OK;
}

static int check_reader(mtt_check *mtt)
{
    mtprof_problem problem;
    mtt->info.struct_size = sizeof mtt->info;
    MT_TRY(mtprof_reader_get_info(mtt->reader, &mtt->info));
    mtt->check->summary.closed = mtt->info.closed;
    if (!mtt->info.closed) {
        MT_TRY(FIND(mtt, MTT_NOT_CLOSED, 0, "the trace was not closed"));
    }
    for (uint32_t i = 0; mtprof_reader_problem(mtt->reader, i, &problem); i++) {
        MT_TRY(FIND(mtt, MTT_PROBLEM, problem.offset, "%s", problem.message));
    }
    MT_TRY(check_streams(mtt));
    MT_TRY(check_pairs(mtt));
    return check_health(mtt);
}

int mtprof__check_mtt(mtprof__check *check)
{
    mtt_check mtt = {.check = check};
    mtprof_reader *reader = NULL;
    int status = mtprof_reader_open(check->path, &reader);
    if (status == MTPROF_EFORMAT || status == MTPROF_EVERSION) {
        const mtprof_error *error = mtprof_last_error();
        uint64_t offset = error->offset < 0 ? 0 : (uint64_t)error->offset;
        return FIND(&mtt, MTT_HEADER, offset, "%s", error->message);
    }
    MT_TRY(status);
    mtt.reader = reader;
    status = check_reader(&mtt);
    mtb_keyset_fini(&mtt.open);
    mtb_keyset_fini(&mtt.left_open);
    mtb_keyset_fini(&mtt.ended_abroad);
    mtb_keyset_fini(&mtt.launches);
    mtb_keyset_fini(&mtt.answers);
    mtprof_reader_close(reader);
    return status;
}
