/* SPDX-License-Identifier: Apache-2.0
 *
 * Recovering: what a cursor gives of a trace, written as a clean and closed one.
 *
 *      header page ── health, closed mark ──┐
 *      cursor of each stream                ├─► new file ─► renamed
 *        record, record … │ chunk ends ─► chunk, sealed with its checksum
 *
 *   RE1  A record is copied unchanged, or not at all, and payloads go with the record they belong
 *        to. Where the cursor continues after a record that it left out, another chunk begins: its
 *        header has the ordinal and the time to continue from.
 *   RE2  Chunks keep their first ordinal, time, epoch and thread. They are renumbered without
 *        gaps, except in ring mode, where a gap shows what was discarded: there is one in the new
 *        file where there was one in the old, and none where an empty chunk was left out.
 *   RE3  Where records of a slot are missing there is a LOST record, so that what was open there is
 *        cut off in the new file as in the old one. It has the number of begins that are missing
 *        between two chunks, which the health counters count as well. A begin that was left out
 *        alone makes no hole: its record has the cause DISK, that of a hole DAMAGE. Without a hole
 *        it follows the payloads at the start of the chunk, which belong to an event before.
 *   RE4  Memory: one chunk, and the keys of open scopes.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/keyset.h"
#include "base/new_file.h"
#include "base/struct_size.h"
#include "mtprof/format/layout.h"
#include "mtprof/read/reader_impl.h"

#include <mtprof/check.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOST_WORDS = 2
};

typedef struct recover_job {
    const char *in, *out;
    mtprof_reader *reader;
    mtprof_recover_summary summary;
    mtb_new_file file;
    uint64_t size; /* written so far */
    uint64_t n_chunks;
    uint64_t others, launches, activities; /* as the health counters have them */

    /* The current stream. */
    const mtprof__read_stream *stream;
    uint64_t n_stream_chunks;
    uint64_t n_splits; /* chunks more than it had (RE1) */
    mtb_keyset open;   /* keys of its scopes */
    /* The current chunk. */
    bool in_chunk, chunk_cut;
    bool chunk_rest;   /* it goes on with what another one began */
    uint64_t lost_due; /* begins missing before it, to be reported after payloads at its start */
    uint64_t chunk_offset; /* where it was read */
    mtprof__chunk_header header;
    unsigned char *buffer; /* header and records */
    size_t used, capacity;
    /* The chunk before it. */
    bool has_before;
    uint64_t before_sequence, before_ordinal; /* its number; its next ordinal */
    uint64_t written_sequence;                /* its number in the new file */
    bool follows;   /* no records are missing between it and the current one */
    uint64_t holes; /* of the cursor's: those that RE3 was done for */

    uint64_t lost_by[2]; /* begins: left out alone; in holes */

    mtb_keyset left_open;    /* scopes that nothing in their own slot has ended */
    mtb_keyset ended_abroad; /* keys that an END_X in another slot has ended */
} recover_job;

/* ---- the new file ---------------------------------------------------------------------------- */

static int fail_write(const recover_job *job, int cause)
{
    int status = mtb_is_full(cause) ? MTPROF_ENOSPC : cause == ENOMEM ? MTPROF_ENOMEM : MTPROF_EIO;
    return mtb_fail_errno(status, cause, "recover: cannot write %s", job->out);
}

static int write_at(const recover_job *job, uint64_t offset, const void *bytes, size_t length)
{
    int error = mtb_write_at(job->file.fd, bytes, length, offset);
    return error == 0 ? MTPROF_OK : fail_write(job, error);
}

static int put_in_place(recover_job *job)
{
    int error = mtb_new_file_close(&job->file);
    if (error != 0) {
        return fail_write(job, error);
    }
    error = mtb_new_file_commit(&job->file);
    return error == 0 ? MTPROF_OK
                      : mtb_fail_errno(MTPROF_EIO, error, "recover: cannot replace %s", job->out);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static int chunk_reserve(recover_job *job, size_t bytes)
{
    if (!mtb_grow((void **)&job->buffer, &job->capacity, job->used + bytes, 1)) {
        return mtb_fail(MTPROF_ENOMEM, "recover: no memory for a chunk of %zu bytes",
                        job->used + bytes);
    }
    return MTPROF_OK;
}

/* RE3 */
static int note_lost(recover_job *job, bool hole, uint64_t n)
{
    uint32_t cause = hole ? MTPROF_LOST_DAMAGE : MTPROF_LOST_DISK;
    const uint64_t words[LOST_WORDS] = {mtprof__word0(MTPROF_REC_LOST, LOST_WORDS, cause, 0), n};
    MT_TRY(chunk_reserve(job, sizeof words));
    memcpy(job->buffer + job->used, words, sizeof words);
    job->used += sizeof words;
    job->summary.begins_lost += n;
    job->lost_by[hole] += n;
    return MTPROF_OK;
}

static int leave_open(recover_job *job);

/* RE3: whether records are missing before what the cursor gives next; asked once for each hole. */
static int pass_hole(recover_job *job, const mtprof_cursor *cursor, bool *hole)
{
    bool thread = job->stream->kind == MTPROF_STREAM_THREAD;
    *hole = thread && job->has_before && cursor->holes != job->holes;
    job->holes = cursor->holes;
    return *hole ? leave_open(job) : MTPROF_OK;
}

/* A chunk that the cursor has just loaded, or (rest) what is left of it. */
static int chunk_begin(recover_job *job, const mtprof_cursor *cursor, bool rest)
{
    job->header = *(const mtprof__chunk_header *)(const void *)cursor->buffer;
    if (rest) {
        job->header.base_ticks = cursor->reference;
        job->header.first_ordinal = cursor->next_ordinal;
        job->header.epoch = cursor->epoch;
        job->header.thread = cursor->thread;
    }
    job->in_chunk = true;
    job->chunk_cut = false;
    job->chunk_rest = rest;
    job->used = 0;
    MT_TRY(chunk_reserve(job, MTPROF_CHUNK_HEADER));
    job->used = MTPROF_CHUNK_HEADER;
    job->follows = rest || (job->has_before && cursor->holes == job->holes);
    bool ring = job->reader->info.policy == MTPROF_POLICY_RING;
    bool adjacent = job->follows || job->header.sequence == job->before_sequence + 1;
    bool counted = job->stream->kind == MTPROF_STREAM_THREAD && (adjacent || !ring);
    bool room = job->header.committed < MTPROF_CHUNK_MAX / 2;
    bool hole = false;
    uint64_t lost = 0;
    MT_TRY(pass_hole(job, cursor, &hole));
    if (counted && job->has_before && job->header.first_ordinal > job->before_ordinal) {
        lost = job->header.first_ordinal - job->before_ordinal;
    }
    job->lost_due = room && !hole ? lost : 0;
    if (room && hole) {
        MT_TRY(note_lost(job, true, lost));
    }
    job->before_ordinal = job->header.first_ordinal;
    return MTPROF_OK;
}

/* RE3: reports begins that are missing without a hole. */
static int settle_lost(recover_job *job)
{
    uint64_t due = job->lost_due;
    job->lost_due = 0;
    return due > 0 ? note_lost(job, false, due) : MTPROF_OK;
}

/* Writes the current chunk, sealed. */
static int chunk_end(recover_job *job)
{
    if (!job->in_chunk) {
        return MTPROF_OK;
    }
    mtprof__chunk_header *header = &job->header;
    MT_TRY(settle_lost(job));
    job->in_chunk = false;
    job->has_before = true;
    job->before_sequence = header->sequence;
    job->summary.chunks_cut += job->chunk_cut && !job->chunk_rest;
    job->summary.chunks_kept += !job->chunk_cut && !job->chunk_rest;

    size_t size = (size_t)mtb_round_up(job->used, MTPROF_CHUNK_ALIGN);
    size_t committed = job->used - MTPROF_CHUNK_HEADER;
    MT_TRY(chunk_reserve(job, size - job->used));
    memset(job->buffer + job->used, 0, size - job->used);
    header->size = (uint32_t)size;
    bool ring = job->reader->info.policy == MTPROF_POLICY_RING;
    if (!ring) { /* RE2 */
        header->sequence = job->n_stream_chunks;
    } else if (job->follows) {
        header->sequence = job->written_sequence + 1;
    } else {
        header->sequence += job->n_splits;
    }
    job->written_sequence = header->sequence;
    header->committed = committed;
    header->state = MTPROF_CHUNK_CHECKED;
    header->data_crc = mtprof__chunk_data_crc(committed, job->buffer + MTPROF_CHUNK_HEADER);
    header->header_crc = mtprof__chunk_header_crc(job->reader->info.uuid, header);
    memcpy(job->buffer, header, sizeof *header);
    MT_TRY(write_at(job, job->size, job->buffer, size));
    job->size += size;
    job->n_chunks++;
    job->n_stream_chunks++;
    return MTPROF_OK;
}

/* ---- records --------------------------------------------------------------------------------- */

/* What is open in the slot stays so, unless another slot ends it. */
static int leave_open(recover_job *job)
{
    for (size_t i = 0; job->open.count != 0 && i < job->open.capacity; i++) {
        if (job->open.keys[i] != 0 && !mtb_keyset_add(&job->left_open, job->open.keys[i])) {
            return mtb_fail(MTPROF_ENOMEM, "recover: no memory for the keys of open scopes");
        }
    }
    mtb_keyset_clear(&job->open);
    return MTPROF_OK;
}

static int note_scope(recover_job *job, const mtprof_record *record)
{
    bool kept = true;
    switch (record->kind) {
    case MTPROF_REC_BEGIN:
    case MTPROF_REC_BEGIN_X:
        job->summary.begins++;
        kept = mtb_keyset_add(&job->open, record->key);
        break;
    case MTPROF_REC_LAUNCH:
        job->summary.begins++;
        job->launches++;
        break;
    case MTPROF_REC_END: mtb_keyset_remove(&job->open, record->key); break;
    case MTPROF_REC_END_X:
        kept = mtb_keyset_remove(&job->open, record->key) ||
               mtb_keyset_add(&job->ended_abroad, record->key);
        break;
    case MTPROF_REC_EPOCH: return leave_open(job);
    default: break;
    }
    return kept ? MTPROF_OK
                : mtb_fail(MTPROF_ENOMEM, "recover: no memory for the keys of open scopes");
}

static int note_record(recover_job *job, const mtprof_record *record)
{
    job->summary.records++;
    switch (record->kind) {
    case MTPROF_REC_INSTANT:
    case MTPROF_REC_COUNTER:
    case MTPROF_REC_FLOW:
    case MTPROF_REC_ALLOC:
    case MTPROF_REC_OUT_OF_MEMORY: job->others++; return MTPROF_OK;
    case MTPROF_REC_ACTIVITY:
        job->activities += record->aux <= MTPROF_ACTIVITY_SET && record->words[2] != 0;
        return MTPROF_OK;
    default:
        job->launches += (record->kind == MTPROF_REC_BEGIN || record->kind == MTPROF_REC_BEGIN_X) &&
                         (record->aux & MTPROF_FLAG_LAUNCH) != 0;
        return note_scope(job, record);
    }
}

/* The words of the record unchanged, head included: they end where the cursor is. */
static int copy_record(recover_job *job, const mtprof_cursor *cursor, const mtprof_record *record)
{
    const unsigned char *data = (const unsigned char *)cursor->buffer + MTPROF_CHUNK_HEADER;
    size_t from = (size_t)(record->offset - cursor->offset - MTPROF_CHUNK_HEADER);
    size_t bytes = cursor->at * sizeof(uint64_t) - from;
    uint32_t traits = mtprof__kind_traits(record->kind);
    if ((traits & MTPROF__KNOWN) != 0 && (traits & MTPROF__PAYLOAD) == 0) {
        MT_TRY(settle_lost(job)); /* what comes before may belong to an event of the chunk before */
    }
    MT_TRY(chunk_reserve(job, bytes));
    memcpy(job->buffer + job->used, data + from, bytes);
    job->used += bytes;
    if (record->kind == MTPROF_REC_LOST && record->aux == MTPROF_LOST_DAMAGE) {
        job->holes = cursor->holes; /* it reports its hole itself */
        MT_TRY(leave_open(job));
    }
    return note_record(job, record);
}

/* Whether the cursor's chunk is in memory: a chunk that could not be loaded was passed over. */
static bool is_loaded(const mtprof_cursor *cursor)
{
    return cursor->next_chunk > 0 &&
           cursor->offset == cursor->stream->chunks[cursor->next_chunk - 1].offset;
}

/* Follows the cursor into another chunk. Chunks without records are left out. */
static int follow_chunk(recover_job *job, const mtprof_cursor *cursor)
{
    if (!is_loaded(cursor) || (job->in_chunk && job->chunk_offset == cursor->offset)) {
        return MTPROF_OK;
    }
    MT_TRY(chunk_end(job));
    job->chunk_offset = cursor->offset;
    return chunk_begin(job, cursor, false);
}

/* RE1: the cursor continues after a record that it left out, where others depend on its time or
 * ordinal. */
static int split_chunk(recover_job *job, const mtprof_cursor *cursor, uint8_t left_out)
{
    bool timed = cursor->stream->kind == MTPROF_STREAM_THREAD ||
                 cursor->stream->kind == MTPROF_STREAM_CONTROL;
    bool rests = (mtprof__kind_traits(left_out) & (MTPROF__TICKS | MTPROF__ORDINAL)) != 0;
    bool hole = cursor->holes != job->holes; /* reported where the chunk begins */
    job->chunk_cut = true;
    if (!timed || !(rests || hole) || cursor->at == cursor->n_words) {
        return MTPROF_OK;
    }
    MT_TRY(chunk_end(job));
    job->n_splits++;
    return chunk_begin(job, cursor, true);
}

/* One step: a record, or damage. EEND at the end of the stream. */
static int copy_step(recover_job *job, mtprof_cursor *cursor)
{
    mtprof_record record;
    int status = mtprof__cursor_next(cursor, &record);
    if (status != MTPROF_OK && status != MTPROF_EFORMAT && status != MTPROF_EIO) {
        return status;
    }
    MT_TRY(follow_chunk(job, cursor));
    if (status == MTPROF_OK) {
        MT_TRY(copy_record(job, cursor, &record));
        job->before_ordinal = cursor->next_ordinal;
        return MTPROF_OK;
    }
    job->summary.problems++;
    if (is_loaded(cursor)) {
        return split_chunk(job, cursor, record.kind);
    }
    job->summary.chunks_lost++;
    return MTPROF_OK;
}

/* RE3 after the last chunk. */
static int tail_hole(recover_job *job, const mtprof_cursor *cursor)
{
    bool missing = cursor->holes != job->holes || job->reader->index.tails_unknown;
    bool thread = job->stream->kind == MTPROF_STREAM_THREAD;
    bool any = job->in_chunk && (job->has_before || job->used > MTPROF_CHUNK_HEADER);
    return missing && thread && any ? note_lost(job, true, 0) : MTPROF_OK;
}

static int copy_stream(recover_job *job, mtprof__read_stream *stream)
{
    const mtprof_reader *reader = job->reader;
    const mtprof__cursor_source source = {&reader->bytes, &reader->index, &reader->info};
    mtprof_cursor cursor;
    mtprof__cursor_init(&cursor, &source, stream);
    job->stream = stream;
    job->n_stream_chunks = job->n_splits = 0;
    job->has_before = false;
    job->holes = 0;
    int status = MTPROF_OK;
    while (status == MTPROF_OK) {
        status = copy_step(job, &cursor);
    }
    if (status == MTPROF_EEND) {
        status = tail_hole(job, &cursor);
    }
    if (status == MTPROF_OK) {
        status = chunk_end(job);
    }
    if (status == MTPROF_OK) {
        status = leave_open(job);
    }
    mtprof__cursor_fini(&cursor);
    return status;
}

/* ---- the header ------------------------------------------------------------------------------ */

static void raise_to(uint64_t *counter, uint64_t value)
{
    *counter = value > *counter ? value : *counter;
}

static void add_to(uint64_t *counter, uint64_t value)
{
    uint64_t room = UINT64_MAX - *counter;
    *counter += value < room ? value : room;
}

static int close_header(const recover_job *job, mtprof__file_header *header)
{
    uint64_t *health = header->health;
    add_to(&health[MTPROF_LOST_DISK], job->lost_by[false]);
    add_to(&health[MTPROF_LOST_DAMAGE], job->lost_by[true]);
    /* Counters that the recorder writes when a window closes are too small if none was closed. */
    raise_to(&health[MTPROF_HEALTH_BEGINS], job->summary.begins);
    raise_to(&health[MTPROF_HEALTH_OTHERS], job->others);
    raise_to(&health[MTPROF_HEALTH_LAUNCHES], job->launches);
    raise_to(&health[MTPROF_HEALTH_ACTIVITIES], job->activities);
    health[MTPROF_HEALTH_CHUNKS] = job->n_chunks;
    header->closed = MTPROF_CLOSED_MARK;
    MT_TRY(mtprof__reader_last_ticks(job->reader, &header->end_ticks));
    header->file_bytes = job->size;
    header->closed_crc = mtb_crc32c(0, header->health,
                                    offsetof(mtprof__file_header, closed_crc) -
                                        offsetof(mtprof__file_header, health));
    header->final_crc = mtb_crc32c(0, &header->end_ticks,
                                   offsetof(mtprof__file_header, final_crc) -
                                       offsetof(mtprof__file_header, end_ticks));
    return MTPROF_OK;
}

/* Last, so that a file which is not complete is not closed either. */
static int write_header(recover_job *job)
{
    union {
        mtprof__file_header fields;
        unsigned char bytes[MTPROF_HEADER_BYTES];
    } page;
    size_t got = 0;
    MT_TRY(mtprof__bytes_read(&job->reader->bytes, 0, &page, sizeof page, &got));
    if (got < sizeof page) {
        return mtb_fail_at(MTPROF_EIO, (int64_t)got, "recover: %s: the header is cut at %zu bytes",
                           job->in, got);
    }
    if (!job->reader->info.closed) {
        page.fields.closed = 0; /* also a mark that is none */
    }
    if (page.fields.minor == MTPROF_FORMAT_MINOR) { /* bytes that no field claims are zero */
        size_t last = offsetof(mtprof__file_header, unused2);
        memset(page.fields.unused, 0, sizeof page.fields.unused);
        memset(page.bytes + last, 0, sizeof page.bytes - last);
    }
    /* Later minors may have a larger header: what follows the first page is not copied. */
    page.fields.header_bytes = MTPROF_HEADER_BYTES;
    page.fields.header_crc = mtb_crc32c(0, &page, offsetof(mtprof__file_header, header_crc));
    MT_TRY(close_header(job, &page.fields));
    job->summary.start_ns = mtprof_reader_ns(job->reader, page.fields.start_ticks);
    job->summary.end_ns = mtprof_reader_ns(job->reader, page.fields.end_ticks);
    return write_at(job, 0, &page, sizeof page);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int recover_all(recover_job *job)
{
    mtprof_reader *reader = job->reader;
    job->summary.was_closed = reader->info.closed;
    job->summary.bytes_read = mtprof__bytes_size(&reader->bytes);
    int error = mtb_new_file_open(&job->file, job->out);
    if (error != 0) {
        return fail_write(job, error);
    }
    job->size = MTPROF_HEADER_BYTES;
    for (uint32_t i = 0; i < reader->index.n_streams; i++) {
        MT_TRY(copy_stream(job, &reader->index.streams[i]));
    }
    MT_TRY(write_header(job));
    for (size_t i = 0; i < job->left_open.capacity; i++) {
        uint64_t key = job->left_open.keys[i];
        job->summary.open_scopes += key != 0 && !mtb_keyset_has(&job->ended_abroad, key);
    }
    job->summary.bytes_written = job->size;
    job->summary.problems += reader->problems.n;
    return put_in_place(job);
}

/* A recorder holds a lock on its file; of one that was killed the kernel gives it back soon. */
static int check_idle(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return mtb_fail_errno(MTPROF_EIO, errno, "recover: open %s", path);
    }
    bool busy = mtb_lock_file_soon(fd, LOCK_SH, flock) == EWOULDBLOCK;
    flock(fd, LOCK_UN);
    close(fd);
    return busy ? mtb_fail(MTPROF_EBUSY, "recover: %s: a process is recording into it", path)
                : MTPROF_OK;
}

mtprof_status mtprof_recover(const char *in, const char *out, mtprof_recover_summary *summary)
{
    if (in == NULL) {
        return mtb_fail(MTPROF_EINVAL, "recover: the path is NULL");
    }
    if (summary != NULL && summary->struct_size == 0) {
        return mtb_fail(MTPROF_EINVAL, "recover: struct_size of the summary is 0");
    }
    MT_TRY(check_idle(in));
    recover_job job = {.in = in, .out = out != NULL ? out : in, .file.fd = -1};
    MT_TRY(mtprof_reader_open(in, &job.reader));
    const mtb_failure before = *mtb_last_failure();
    int status = recover_all(&job);
    mtb_new_file_abandon(&job.file);
    mtprof_reader_close(job.reader);
    mtb_keyset_fini(&job.open);
    mtb_keyset_fini(&job.left_open);
    mtb_keyset_fini(&job.ended_abroad);
    mtb_free(job.buffer);
    if (status == MTPROF_OK) {
        *mtb_last_failure() = before; /* damage that was skipped is not a failure of this call */
        if (summary != NULL) {
            mtb_write_struct(summary, &job.summary);
        }
    }
    return status;
}
