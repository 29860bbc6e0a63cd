/* SPDX-License-Identifier: Apache-2.0
 *
 * Bringing one chunk into memory, from a trace that may be written at the same time.
 *
 * Header and records are read in one piece, then the header once more:
 *
 *   CL1  If both headers are those of the chunk in the directory, what lies between is its data:
 *        a chunk that is used again gets another sequence number.
 *   CL2  If they are not, and the trace is not closed, ring mode has taken the chunk back. That is
 *        no damage: it counts as missing.
 *   CL3  Of the last chunk of a stream no more is believed than was published when the directory
 *        was made: the definitions of later records may not have been read. Earlier chunks had a
 *        successor then, so all they hold was published before.
 *   CL4  A checksum holds for all of a chunk, so in state 2 all of it is read, whatever CL3 allows.
 *   CL5  A cursor that follows reads what its chunk got since, and nothing twice; CL1 to CL4 hold
 *        for that part. Where the chunk is gone before, its rest is a hole.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/read/cursor_impl.h"

#include <string.h>

enum {
    READS_MAX = 3 /* a first guess of the length, the right one, and one for a chunk sealed since */
};

/* CL2 */
static int chunk_gone(const mtprof_cursor *cursor, mtprof__chunk *chunk)
{
    if (cursor->source.info->closed) {
        return mtb_fail_at(MTPROF_EFORMAT, (int64_t)chunk->offset,
                           "chunk at %llu: is no longer what it was when the trace was opened",
                           (unsigned long long)chunk->offset);
    }
    /* Relaxed: two counters for people; nothing is published by them. */
    if (__atomic_exchange_n(&chunk->gone, 1, __ATOMIC_RELAXED) == 0) {
        __atomic_add_fetch(&cursor->stream->gone, 1, __ATOMIC_RELAXED);
    }
    return MTPROF_EEND;
}

static int buffer_reserve(mtprof_cursor *cursor, size_t bytes)
{
    if (bytes <= cursor->capacity_bytes) {
        return MTPROF_OK;
    }
    bytes = (size_t)mtb_round_up(bytes, MTPROF_CHUNK_ALIGN);
    mtb_free(cursor->buffer);
    cursor->capacity_bytes = 0;
    cursor->buffer = mtb_resize(NULL, bytes, 1);
    if (cursor->buffer == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for a chunk of %zu bytes", bytes);
    }
    cursor->capacity_bytes = bytes;
    return MTPROF_OK;
}

/*
 * Reads header and data so that the buffer has all that the header in it says (as far as the
 * trace has it): *data_bytes of records. EEND: the chunk is gone.
 */
static int read_stable(mtprof_cursor *cursor, mtprof__chunk *chunk, bool last, size_t *data_bytes)
{
    uint64_t room = cursor->source.index->end - chunk->offset;
    uint64_t want = chunk->committed;
    for (int reads = 0; reads < READS_MAX; reads++) {
        if (want > room - MTPROF_CHUNK_HEADER) {
            want = room - MTPROF_CHUNK_HEADER;
        }
        size_t got = 0;
        MT_TRY(buffer_reserve(cursor, MTPROF_CHUNK_HEADER + (size_t)want));
        MT_TRY(mtprof__bytes_read(cursor->source.bytes, chunk->offset, cursor->buffer,
                                  MTPROF_CHUNK_HEADER + (size_t)want, &got));
        const mtprof__chunk_header *header = (const void *)cursor->buffer;
        if (got < MTPROF_CHUNK_HEADER || !mtprof__chunk_is(cursor->source.info, chunk, header)) {
            return chunk_gone(cursor, chunk);
        }
        *data_bytes = got - MTPROF_CHUNK_HEADER;
        MT_TRY(mtprof__chunk_check(header, chunk->offset, cursor->source.info->closed));
        bool all = header->state == MTPROF_CHUNK_CHECKED || !last; /* CL4, CL3 */
        if (!all || header->committed <= want || want == room - MTPROF_CHUNK_HEADER) {
            return MTPROF_OK;
        }
        want = header->committed;
    }
    return MTPROF_OK; /* still growing: what was read is a prefix of it */
}

/* CL1, second half. */
static int confirm(const mtprof_cursor *cursor, mtprof__chunk *chunk)
{
    mtprof__chunk_header again;
    size_t got = 0;
    if (cursor->source.info->closed) {
        return MTPROF_OK;
    }
    MT_TRY(mtprof__bytes_read(cursor->source.bytes, chunk->offset, &again, sizeof again, &got));
    return got == sizeof again && mtprof__chunk_is(cursor->source.info, chunk, &again)
               ? MTPROF_OK
               : chunk_gone(cursor, chunk);
}

/* The checksum of a chunk in state 2, or the bound of one that is not. */
static int settle(mtprof_cursor *cursor, const mtprof__chunk *chunk, bool last, size_t data_bytes)
{
    const mtprof__chunk_header *header = (const void *)cursor->buffer;
    const unsigned char *data = (const unsigned char *)cursor->buffer + MTPROF_CHUNK_HEADER;
    unsigned long long at = chunk->offset;
    uint64_t believed = header->committed;
    cursor->checked = header->state == MTPROF_CHUNK_CHECKED;
    if (cursor->checked) {
        if (believed > data_bytes) {
            return mtb_fail_at(MTPROF_EFORMAT,
                               (int64_t)(chunk->offset + MTPROF_CHUNK_HEADER + data_bytes),
                               "chunk at %llu: truncated: %zu bytes of records, expected %llu", at,
                               data_bytes, (unsigned long long)believed);
        }
        uint32_t crc = mtprof__chunk_data_crc(believed, data);
        if (crc != header->data_crc) {
            return mtb_fail_at(MTPROF_EFORMAT, (int64_t)chunk->offset,
                               "chunk at %llu: the checksum of %llu bytes of records is %08x, "
                               "expected %08x",
                               at, (unsigned long long)believed, header->data_crc, crc);
        }
    }
    if (last && believed > chunk->committed) {
        believed = chunk->committed; /* CL3 */
    }
    if (believed > data_bytes) {
        believed = data_bytes; /* truncated: opening has reported it */
    }
    cursor->n_words = (size_t)(believed / sizeof(uint64_t));
    return MTPROF_OK;
}

static void enter(mtprof_cursor *cursor, const mtprof__chunk *chunk)
{
    const mtprof__chunk_header *header = (const void *)cursor->buffer;
    bool follows = !cursor->fresh && header->sequence == cursor->sequence + 1;
    bool starts = header->sequence == 0;
    if (!follows) {
        cursor->holes++;
        cursor->owner = starts ? MTPROF__OWNER_NONE : MTPROF__OWNER_UNKNOWN;
    }
    /* base_ticks are ticks also in a source's chunk, where times are on the source's clock. */
    cursor->reference = chunk->stream != MTPROF_STREAM_SOURCE ? header->base_ticks : 0;
    cursor->fresh = false;
    cursor->at = 0;
    cursor->offset = chunk->offset;
    cursor->sequence = header->sequence;
    cursor->next_ordinal = header->first_ordinal;
    bool threads = chunk->stream == MTPROF_STREAM_THREAD;
    cursor->epoch = threads ? header->epoch : 0;
    cursor->thread = threads ? header->thread : 0;
}

/* ---- following ------------------------------------------------------------------------------- */

/* The buffer with what is in it, and room for `bytes`. */
static int buffer_extend(mtprof_cursor *cursor, size_t bytes)
{
    if (bytes <= cursor->capacity_bytes) {
        return MTPROF_OK;
    }
    bytes = (size_t)mtb_round_up(bytes, MTPROF_CHUNK_ALIGN);
    uint64_t *larger = mtb_resize(cursor->buffer, bytes, 1);
    if (larger == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "read trace: no memory for a chunk of %zu bytes", bytes);
    }
    cursor->buffer = larger;
    cursor->capacity_bytes = bytes;
    return MTPROF_OK;
}

/* Reads the chunk's records from `have` to `want` bytes after those in the buffer. */
static int read_rest(mtprof_cursor *cursor, mtprof__chunk *chunk,
                     const mtprof__chunk_header *header, bool last, size_t have)
{
    uint64_t room = cursor->source.index->end - chunk->offset - MTPROF_CHUNK_HEADER;
    uint64_t want = header->committed; /* CL4, CL3 */
    if (last && header->state != MTPROF_CHUNK_CHECKED && want > chunk->committed) {
        want = chunk->committed;
    }
    want = want < room ? want : room;
    if (want <= have) {
        return MTPROF_EEND;
    }
    size_t got = 0;
    MT_TRY(buffer_extend(cursor, MTPROF_CHUNK_HEADER + (size_t)want));
    MT_TRY(mtprof__bytes_read(cursor->source.bytes, chunk->offset + MTPROF_CHUNK_HEADER + have,
                              (char *)cursor->buffer + MTPROF_CHUNK_HEADER + have,
                              (size_t)want - have, &got));
    MT_TRY(confirm(cursor, chunk));
    memcpy(cursor->buffer, header, sizeof *header);
    MT_TRY(settle(cursor, chunk, last, have + got));
    return cursor->n_words * sizeof(uint64_t) > have ? MTPROF_OK : MTPROF_EEND;
}

/* CL5. EEND: there is no more of the chunk, or it is gone. */
static int load_more(mtprof_cursor *cursor)
{
    if (!cursor->follow || cursor->held || cursor->fresh || cursor->next_chunk == 0) {
        return MTPROF_EEND;
    }
    mtprof__chunk *chunk = &cursor->stream->chunks[cursor->next_chunk - 1];
    bool last = cursor->next_chunk == cursor->stream->n_chunks;
    size_t have = cursor->n_words * sizeof(uint64_t);
    if (last && chunk->committed <= have) {
        return MTPROF_EEND;
    }
    mtprof__chunk_header header;
    size_t got = 0;
    int status =
        mtprof__bytes_read(cursor->source.bytes, chunk->offset, &header, sizeof header, &got);
    if (status == MTPROF_OK &&
        (got < sizeof header || !mtprof__chunk_is(cursor->source.info, chunk, &header))) {
        status = chunk_gone(cursor, chunk);
    } else if (status == MTPROF_OK) {
        status = mtprof__chunk_check(&header, chunk->offset, cursor->source.info->closed);
        status = status == MTPROF_OK ? read_rest(cursor, chunk, &header, last, have) : status;
    }
    if (status == MTPROF_OK || status == MTPROF_ENOMEM || (status == MTPROF_EEND && !chunk->gone)) {
        return status;
    }
    cursor->n_words = cursor->at; /* what was read of it has been used up */
    cursor->fresh = true;
    cursor->holes++;
    cursor->n_damaged += status != MTPROF_EEND;
    cursor->lost_bytes = chunk->committed > have ? chunk->committed - have : 0;
    cursor->told = false;
    return status;
}

int mtprof__cursor_load(mtprof_cursor *cursor)
{
    int more = load_more(cursor);
    if (more != MTPROF_EEND) {
        return more;
    }
    while (cursor->next_chunk < cursor->stream->n_chunks) {
        cursor->n_words = cursor->at = 0;
        mtprof__chunk *chunk = &cursor->stream->chunks[cursor->next_chunk];
        bool last = cursor->next_chunk + 1 == cursor->stream->n_chunks;
        size_t data_bytes = 0;
        int status = read_stable(cursor, chunk, last, &data_bytes);
        if (status == MTPROF_OK) {
            status = confirm(cursor, chunk);
        }
        if (status == MTPROF_OK) {
            status = settle(cursor, chunk, last, data_bytes);
            cursor->n_damaged += status != MTPROF_OK;
        }
        if (status == MTPROF_OK) {
            enter(cursor, chunk);
            cursor->next_chunk++;
            return MTPROF_OK;
        }
        if (status == MTPROF_ENOMEM) {
            return status;
        }
        cursor->fresh = true;
        cursor->holes++;
        cursor->lost_bytes = chunk->committed;
        cursor->told = chunk->told != 0;
        cursor->next_chunk++;
        if (status != MTPROF_EEND) {
            return status;
        }
    }
    return MTPROF_EEND;
}
