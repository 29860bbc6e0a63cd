/* SPDX-License-Identifier: Apache-2.0
 *
 * The directory of a trace: its chunks, grouped into streams.
 *
 * Invariants
 *   CI1  Chunks are sorted by stream kind, slot and sequence; no two have the same of all three.
 *   CI2  A stream is a run of that array; streams cover it without gaps.
 *   CI3  Of definitions, what a chunk holds was looked up after all other chunks (see
 *        mtprof__chunk_index_build), so that no record of the snapshot lacks its definitions.
 *   CI4  After building, only the `gone` fields change, and those atomically.
 */
#ifndef MTPROF_READ_CHUNK_INDEX_H
#define MTPROF_READ_CHUNK_INDEX_H

#include "mtprof/format/layout.h"
#include "mtprof/read/problems.h"
#include "mtprof/read/trace_bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One entry of the directory. */
typedef struct mtprof__chunk {
    uint64_t offset;
    uint64_t sequence;
    uint64_t base_ticks;
    uint32_t size;
    uint32_t committed; /* when the directory was made */
    uint16_t slot;
    uint8_t stream;
    uint8_t gone; /* ring mode took it back since then */
    uint8_t told; /* that it is not sound is in the list of problems */
} mtprof__chunk;
_Static_assert(sizeof(mtprof__chunk) <= 48, "the promised bound per chunk");

typedef struct mtprof__read_stream {
    mtprof__chunk *chunks;
    size_t n_chunks;
    uint64_t gone; /* atomic: chunks found to be gone */
    uint64_t bytes;
    uint16_t slot;
    uint8_t kind;
} mtprof__read_stream;

enum {
    MTPROF__WALK_GAPS = 64
};

typedef struct mtprof__chunk_index {
    mtprof__chunk *chunks;
    size_t n_chunks, capacity;
    mtprof__read_stream *streams;
    uint32_t n_streams;
    uint64_t end;        /* size of the trace, as far as it was read */
    uint64_t last_ticks; /* largest time reference in the headers of control and thread chunks */
    uint64_t damaged, unchecked;
    bool tails_unknown; /* chunks of unknown streams are missing: any stream may have gone on */
    uint64_t frontier;  /* end of the last chunk that a walk passed, wanted or not; 0: none */
    uint64_t crossed;   /* of the walk: 0, or a number that says which unused pages had chunks after
                           them */
    struct mtprof__gap { /* such pages, the last ones of the walk, whose first is zero */
        uint64_t from, to;
    } gaps[MTPROF__WALK_GAPS];
    size_t n_gaps;
} mtprof__chunk_index;

/* What building needs to know of the trace. */
typedef struct mtprof__index_source {
    const mtprof__bytes *bytes;
    const mtprof_trace_info *info;
    uint64_t first_chunk;
    mtprof__problems *problems;
    uint64_t unused_most; /* a walk ends after so many bytes without a chunk; 0: at the end */
    const struct mtprof__gap *skip; /* pages that the caller knows to stay unused; not `crossed` */
    size_t n_skip;
} mtprof__index_source;

/*
 * Makes the directory. Fails with EIO, ENOMEM; damage becomes a problem.
 *
 * In a trace that is not closed, and so may be alive, control, thread and source chunks are
 * looked up first and definitions afterwards (CI3).
 */
int mtprof__chunk_index_build(mtprof__chunk_index *index, const mtprof__index_source *source);

/* By stream kind, slot and sequence. */
void mtprof__chunk_index_sort(mtprof__chunk_index *index);

/* Whether the header is that of the chunk in the directory. */
bool mtprof__chunk_is(const mtprof_trace_info *info, const mtprof__chunk *chunk,
                      const mtprof__chunk_header *header);

void mtprof__chunk_index_fini(mtprof__chunk_index *index);

/*
 * Checks what the header's own checksum does not cover, and what no writer writes: state,
 * committed, first_ordinal, slot. Fails with EFORMAT.
 */
int mtprof__chunk_check(const mtprof__chunk_header *header, uint64_t offset, bool closed);

#endif /* MTPROF_READ_CHUNK_INDEX_H */
