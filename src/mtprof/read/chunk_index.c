/* SPDX-License-Identifier: Apache-2.0
 *
 * Building the directory: sorting what the walk (chunk_walk.c) found, and the checks that need all
 * chunks of a stream.
 *
 * A snapshot of a live trace
 *
 *      walk for streams 2, 3, 4  -->  gaps? walk again, at most MAX_WALKS times
 *      walk for stream 1
 *
 * A walk takes time, and chunks appear that it has already passed. If it misses a chunk that is
 * older than one that it saw, the stream seems to have a gap, so the walk is repeated. Definitions
 * are published before the records that need them: a walk for them that comes last finds them all.
 */
#include "mtprof/read/chunk_index.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/saturate.h"
#include "mtprof/format/keys.h"
#include "mtprof/read/chunk_walk.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_WALKS = 3
};

int mtprof__chunk_check(const mtprof__chunk_header *header, uint64_t offset, bool closed)
{
    int64_t at = (int64_t)offset;
    if (header->state > MTPROF_CHUNK_CHECKED) {
        return mtb_fail_at(MTPROF_EFORMAT, at, "chunk at %llu: state is %u, expected 0 to 2",
                           (unsigned long long)offset, header->state);
    }
    if (closed && header->state != MTPROF_CHUNK_CHECKED) {
        return mtb_fail_at(MTPROF_EFORMAT, at,
                           "chunk at %llu: state is %u, expected 2 in a closed trace",
                           (unsigned long long)offset, header->state);
    }
    if (header->committed > header->size - MTPROF_CHUNK_HEADER || header->committed % 8 != 0) {
        return mtb_fail_at(MTPROF_EFORMAT, at,
                           "chunk at %llu: committed is %llu, expected a multiple of 8 up to %u",
                           (unsigned long long)offset, (unsigned long long)header->committed,
                           (unsigned)(header->size - MTPROF_CHUNK_HEADER));
    }
    bool has_slot =
        header->stream == MTPROF_STREAM_THREAD || header->stream == MTPROF_STREAM_SOURCE;
    if (!has_slot && header->slot != 0) {
        return mtb_fail_at(MTPROF_EFORMAT, at, "chunk at %llu: slot is %u in stream %u, expected 0",
                           (unsigned long long)offset, header->slot, header->stream);
    }
    /* One more than the last ordinal: a slot that has used them all goes on without begins. */
    if (header->first_ordinal != 0 && !mtprof__is_counted(header->first_ordinal - 1)) {
        return mtb_fail_at(MTPROF_EFORMAT, at,
                           "chunk at %llu: first_ordinal is %llu, expected at most 2^%d",
                           (unsigned long long)offset, (unsigned long long)header->first_ordinal,
                           MTPROF__COUNTED_BITS);
    }
    return MTPROF_OK;
}

bool mtprof__chunk_is(const mtprof_trace_info *info, const mtprof__chunk *chunk,
                      const mtprof__chunk_header *header)
{
    return header->magic == MTPROF_CHUNK_MAGIC && header->size == chunk->size &&
           header->stream == chunk->stream && header->slot == chunk->slot &&
           header->sequence == chunk->sequence &&
           header->header_crc == mtprof__chunk_header_crc(info->uuid, header);
}

static int compare(const void *a, const void *b)
{
    const mtprof__chunk *left = a;
    const mtprof__chunk *right = b;
    int order = mtb_order(left->stream, right->stream);
    order = order != 0 ? order : mtb_order(left->slot, right->slot);
    order = order != 0 ? order : mtb_order(left->sequence, right->sequence);
    return order != 0 ? order : mtb_order(left->offset, right->offset);
}

static bool same_stream(const mtprof__chunk *a, const mtprof__chunk *b)
{
    return a->stream == b->stream && a->slot == b->slot;
}

void mtprof__chunk_index_sort(mtprof__chunk_index *index)
{
    if (index->n_chunks > 1) {
        qsort(index->chunks, index->n_chunks, sizeof *index->chunks, compare);
    }
}

/* Whether a walk has to be repeated: a hole inside a stream, or (not in ring mode) before it. */
static bool has_hole(const mtprof__chunk_index *index, bool ring)
{
    for (size_t i = 0; i < index->n_chunks; i++) {
        const mtprof__chunk *chunk = &index->chunks[i];
        bool first = i == 0 || !same_stream(chunk - 1, chunk);
        if (first ? !ring && chunk->sequence != 0 : chunk->sequence > chunk[-1].sequence + 1) {
            return true;
        }
    }
    return false;
}

static int report_repeated(const mtprof__chunk *first, const mtprof__chunk *second,
                           mtprof__problems *problems)
{
    return mtprof__problem_add(
        problems, second->offset,
        "chunk at %llu: sequence %llu of stream %u, slot %u, is already that of the chunk at %llu",
        (unsigned long long)second->offset, (unsigned long long)second->sequence, second->stream,
        second->slot, (unsigned long long)first->offset);
}

/* CI1: of chunks with the same number, the first in the file is kept. */
static int drop_repeated(mtprof__chunk_index *index, mtprof__problems *problems)
{
    size_t kept = 0;
    for (size_t i = 0; i < index->n_chunks; i++) {
        const mtprof__chunk *chunk = &index->chunks[i];
        const mtprof__chunk *before = kept > 0 ? &index->chunks[kept - 1] : NULL;
        if (before == NULL || !same_stream(before, chunk) || before->sequence != chunk->sequence) {
            index->chunks[kept++] = *chunk;
            continue;
        }
        index->damaged++;
        MT_TRY(report_repeated(before, chunk, problems));
    }
    index->n_chunks = kept;
    return MTPROF_OK;
}

static int report_gap(const mtprof__chunk *chunk, uint64_t expected, mtprof__problems *problems)
{
    return mtprof__problem_add(
        problems, chunk->offset,
        "chunk at %llu: sequence is %llu, expected %llu: %llu chunks of stream %u, slot %u, are "
        "missing before it",
        (unsigned long long)chunk->offset, (unsigned long long)chunk->sequence,
        (unsigned long long)expected, (unsigned long long)(chunk->sequence - expected),
        chunk->stream, chunk->slot);
}

/* F5: gaps occur only in ring mode, and only in the streams of threads and sources. */
static int check_gaps(const mtprof__read_stream *stream, bool ring, mtprof__problems *problems)
{
    bool events = stream->kind == MTPROF_STREAM_THREAD || stream->kind == MTPROF_STREAM_SOURCE;
    uint64_t expected = 0;
    int status = MTPROF_OK;
    for (size_t i = 0; status == MTPROF_OK && i < stream->n_chunks; i++) {
        const mtprof__chunk *chunk = &stream->chunks[i];
        if (chunk->sequence != expected && !(ring && events)) {
            status = report_gap(chunk, expected, problems);
        }
        expected = chunk->sequence + 1;
    }
    return status;
}

static int make_streams(mtprof__chunk_index *index, bool ring, mtprof__problems *problems)
{
    size_t n = 0;
    for (size_t i = 0; i < index->n_chunks; i++) {
        n += i == 0 || !same_stream(&index->chunks[i - 1], &index->chunks[i]);
    }
    index->streams = mtb_calloc(n, sizeof *index->streams);
    if (index->streams == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for %zu streams", n);
    }
    mtprof__read_stream *stream = NULL;
    for (size_t i = 0; i < index->n_chunks; i++) {
        mtprof__chunk *chunk = &index->chunks[i];
        if (i == 0 || !same_stream(chunk - 1, chunk)) {
            stream = &index->streams[index->n_streams++];
            *stream =
                (mtprof__read_stream){.chunks = chunk, .slot = chunk->slot, .kind = chunk->stream};
        }
        stream->n_chunks++;
        stream->bytes += chunk->committed;
    }
    for (size_t i = 0; i < index->n_streams; i++) {
        MT_TRY(check_gaps(&index->streams[i], ring, problems));
    }
    return MTPROF_OK;
}

static void forget_chunks(mtprof__chunk_index *index)
{
    index->n_chunks = 0;
    index->damaged = 0;
    index->unchecked = 0;
    index->last_ticks = 0;
    index->tails_unknown = false;
}

/* CI3 */
static int build_live(mtprof__chunk_index *index, const mtprof__index_source *source, bool ring)
{
    size_t n_problems = source->problems->n;
    for (int walks = 0; walks < MAX_WALKS; walks++) {
        forget_chunks(index);
        mtprof__problems_cut(source->problems, n_problems);
        MT_TRY(mtprof__chunk_walk(index, source, MTPROF__WALK_EVENTS));
        mtprof__chunk_index_sort(index);
        if (!has_hole(index, ring)) {
            break;
        }
    }
    return mtprof__chunk_walk(index, source, MTPROF__WALK_DEFINITIONS);
}

int mtprof__chunk_index_build(mtprof__chunk_index *index, const mtprof__index_source *source)
{
    bool ring = source->info->policy == MTPROF_POLICY_RING;
    memset(index, 0, sizeof *index);
    if (source->info->closed) {
        MT_TRY(mtprof__chunk_walk(index, source, MTPROF__WALK_ALL));
    } else {
        MT_TRY(build_live(index, source, ring));
    }
    mtprof__chunk_index_sort(index);
    MT_TRY(drop_repeated(index, source->problems));
    return make_streams(index, ring, source->problems);
}

void mtprof__chunk_index_fini(mtprof__chunk_index *index)
{
    mtb_free(index->streams);
    mtb_free(index->chunks);
    memset(index, 0, sizeof *index);
}
