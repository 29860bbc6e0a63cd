/* SPDX-License-Identifier: Apache-2.0
 *
 * A cursor: one stream, one chunk of it in memory.
 *
 * A cursor that follows goes on where it was when its stream has grown: the owner of the stream
 * adds chunks and raises `committed` of the last one between two calls, and may take chunks away
 * that the cursor is done with (all before next_chunk - 1).
 *
 * Threads: a cursor belongs to one thread at a time; of the index it shares with others it changes
 * only the `gone` fields, atomically.
 */
#ifndef MTPROF_READ_CURSOR_IMPL_H
#define MTPROF_READ_CURSOR_IMPL_H

#include "mtprof/format/begin_end.h"
#include "mtprof/read/chunk_index.h"
#include "mtprof/read/record_check.h"

/* Whose payloads may come next. */
enum mtprof__owner {
    MTPROF__OWNER_NONE,    /* none: a payload here belongs to nothing */
    MTPROF__OWNER_UNKNOWN, /* the record before is gone or was refused: payloads go with it */
    MTPROF__OWNER_BEGIN,
    MTPROF__OWNER_END,
    MTPROF__OWNER_ANY /* ATTACH: whatever it names */
};

/* What cursors need of the trace; the reader's, and it outlives them. */
typedef struct mtprof__cursor_source {
    const mtprof__bytes *bytes;
    const mtprof__chunk_index *index;
    const mtprof_trace_info *info;
} mtprof__cursor_source;

struct mtprof_cursor {
    mtprof__cursor_source source;
    mtprof__read_stream *stream;
    size_t next_chunk; /* the one to be loaded when this one is used up */

    uint64_t *buffer; /* header and records of the chunk */
    size_t capacity_bytes;
    size_t at, n_words;  /* of the records */
    uint64_t offset;     /* of the chunk in the trace */
    bool checked;        /* its data checksum holds */
    uint64_t n_damaged;  /* chunks so far whose data checksum does not hold */
    uint64_t holes;      /* rises with every place where records of the stream are missing */
    uint64_t lost_bytes; /* of the latest failure: what was passed over */
    bool told;           /* of the latest failure: the reader's list of problems has it */

    bool follow;        /* the stream may grow: chunks in front of next_chunk too */
    bool held;          /* but its chunk is not to be read further for now */
    bool fresh;         /* no chunk has been used up without damage just before this one */
    uint64_t sequence;  /* of this chunk */
    uint64_t reference; /* sources: the last time on their own clock */
    uint64_t next_ordinal;
    uint32_t epoch, thread;
    enum mtprof__owner owner;
    uint32_t owner_arg;
};

/* What comes next in the chunk. */
MT_INLINE const uint64_t *mtprof__cursor_words(const mtprof_cursor *cursor)
{
    return cursor->buffer + MTPROF_CHUNK_HEADER / sizeof(uint64_t) + cursor->at;
}

/* Kind of the next record of the chunk; 0: the chunk is used up. */
MT_INLINE uint8_t mtprof__cursor_peek(const mtprof_cursor *cursor)
{
    return cursor->at < cursor->n_words ? (uint8_t)*mtprof__cursor_words(cursor) : 0;
}

void mtprof__cursor_init(mtprof_cursor *cursor, const mtprof__cursor_source *source,
                         mtprof__read_stream *stream);
void mtprof__cursor_fini(mtprof_cursor *cursor);

/* mtprof_cursor_next(). */
int mtprof__cursor_next(mtprof_cursor *cursor, mtprof_record *record);

/* Brings the stream's next chunk into the buffer. EEND, EFORMAT, EIO: it is passed over; ENOMEM:
 * the next call tries again. */
int mtprof__cursor_load(mtprof_cursor *cursor);

#endif /* MTPROF_READ_CURSOR_IMPL_H */
