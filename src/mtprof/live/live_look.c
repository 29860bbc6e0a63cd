/* SPDX-License-Identifier: Apache-2.0
 *
 * What is new in the file: chunks that were added or taken back since the last look, and how much
 * of the open ones was published.
 *
 *   LLK1  A recorder cuts chunks one after the other, each under the lock that the next one needs.
 *        So once a chunk is seen, whatever unused pages are before it stay unused: the next look
 *        starts after it. A walk that crossed such pages is made again until two cross the same
 *        ones, since they may have been cut while it was on its way.
 *   LLK2  That does not hold in ring mode (chunks are used again), nor where chunks are written
 *        when they are full: there a look starts at the first chunk.
 *   LLK3  Behind the last chunk comes room that the recorder has allocated ahead, up to 128 MiB. A
 *        look goes NEAR_BYTES far into it, each FAR_EVERY-th all the way: only a definition that is
 *        larger than that can leave a longer gap.
 *   LLK4  By the same order pages that two walks crossed stay unused, if their first one is all
 *        zeros (else it may be a chunk that is about to be used again): later looks skip them. Not
 *        where chunks are written when they are full.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/live/live_impl.h"
#include "mtprof/read/chunk_walk.h"
#include "mtprof/read/header_read.h"

#include <string.h>

enum {
    NEAR_BYTES = 1 << 20,
    FAR_EVERY = 16,
    MOST_WALKS = 16 /* of one look: a recorder would have to cut two chunks during each */
};

/* ---- streams --------------------------------------------------------------------------------- */

static bool is_stream(const void *context, uint32_t id, const void *key)
{
    const mtprof_live *live = context;
    const mtprof__live_stream *stream = live->streams[id - 1];
    const mtprof__live_stream *wanted = key;
    return stream->kind == wanted->kind && stream->stream.slot == wanted->stream.slot;
}

/* The cursor, with what else the kind needs. False: no memory. */
static bool make_cursor(mtprof_live *live, mtprof__live_stream *s)
{
    const mtprof_reader *reader = &live->reader;
    const mtprof__cursor_source source = {&reader->bytes, &reader->index, &reader->info};
    const mtprof__coverage coverage = {live->blocks, (uint32_t)live->n_blocks, true};
    if (s->kind == MTPROF_STREAM_THREAD) {
        s->thread = mtb_calloc(1, sizeof *s->thread);
        if (s->thread == NULL) {
            return false;
        }
        mtprof__slot_init_on(&s->thread->slot, reader, &s->stream, &coverage);
        s->thread->thread = UINT64_MAX;
        s->cursor = &s->thread->slot.cursor;
    } else if (s->kind == MTPROF_STREAM_SOURCE) {
        s->source = mtb_calloc(1, sizeof *s->source);
        if (s->source == NULL) {
            return false;
        }
        s->source->timebase.map = &reader->clock;
        s->source->clock.source = s->stream.slot;
        s->cursor = &s->source->cursor;
        mtprof__cursor_init(s->cursor, &source, &s->stream);
    } else {
        s->cursor = &s->plain;
        mtprof__cursor_init(s->cursor, &source, &s->stream);
    }
    s->cursor->follow = true;
    return true;
}

void mtprof__live_stream_free(mtprof__live_stream *stream)
{
    if (stream->thread != NULL) {
        mtprof__slot_fini(&stream->thread->slot);
        mtb_free(stream->thread->credits);
    }
    if (stream->source != NULL) {
        mtprof__cursor_fini(&stream->source->cursor);
        mtprof__source_clock_fini(&stream->source->clock);
        mtprof__payload_fini(&stream->source->payload);
    }
    mtprof__cursor_fini(&stream->plain);
    mtb_free(stream->thread);
    mtb_free(stream->source);
    mtb_free(stream->stream.chunks);
    mtb_free(stream);
}

int mtprof__live_stream_get(mtprof_live *live, uint8_t kind, uint16_t slot,
                            mtprof__live_stream **out)
{
    const mtprof__live_stream wanted = {.kind = kind, .stream = {.kind = kind, .slot = slot}};
    uint64_t hash = mtb_mix(kind, slot);
    uint32_t id = mtb_idmap_find(&live->stream_map, hash, is_stream, live, &wanted);
    if (id != 0) {
        *out = live->streams[id - 1];
        return MTPROF_OK;
    }
    mtprof__live_stream *stream = mtb_calloc(1, sizeof *stream);
    if (stream != NULL) {
        *stream = wanted;
        stream->scale = 1;
        stream->at_start = true;
    }
    if (stream == NULL || !make_cursor(live, stream) ||
        !mtb_idmap_append(&live->stream_map, hash, live->streams, live->n_streams,
                          live->streams_capacity, &stream)) {
        if (stream != NULL) {
            mtprof__live_stream_free(stream);
        }
        return mtb_fail(MTPROF_ENOMEM, "follow trace: no memory for stream %u, slot %u", kind,
                        slot);
    }
    *out = stream;
    return MTPROF_OK;
}

void mtprof__live_stream_trim(mtprof__live_stream *stream)
{
    size_t done = stream->cursor->next_chunk;
    if (done < 2) {
        return;
    }
    mtprof__read_stream *s = &stream->stream;
    memmove(s->chunks, s->chunks + done - 1, (s->n_chunks - (done - 1)) * sizeof *s->chunks);
    s->n_chunks -= done - 1;
    stream->cursor->next_chunk = 1;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static int add_chunk(mtprof_live *live, const mtprof__chunk *chunk)
{
    mtprof__live_stream *s = NULL;
    MT_TRY(mtprof__live_stream_get(live, chunk->stream, chunk->slot, &s));
    if (chunk->sequence < s->next_sequence) {
        return MTPROF_OK; /* it is known */
    }
    if (!mtb_append(s->stream.chunks, s->stream.n_chunks, s->capacity, chunk)) {
        return mtb_fail(MTPROF_ENOMEM, "follow trace: no memory for %zu chunks",
                        s->stream.n_chunks + 1);
    }
    if (live->opened) {
        s->missing += chunk->sequence - s->next_sequence;
    }
    s->next_sequence = chunk->sequence + 1;
    return MTPROF_OK;
}

/* How much of the stream's last chunk was published by now. */
static int refresh(mtprof_live *live, mtprof__live_stream *s)
{
    mtprof__chunk_header header;
    size_t got = 0;
    if (s->stream.n_chunks == 0) {
        return MTPROF_OK;
    }
    mtprof__chunk *chunk = &s->stream.chunks[s->stream.n_chunks - 1];
    MT_TRY(mtprof__bytes_read(&live->reader.bytes, chunk->offset, &header, sizeof header, &got));
    /* One that is not what it was, or not sound, is the cursor's to report. */
    if (got == sizeof header && mtprof__chunk_is(&live->reader.info, chunk, &header) &&
        mtprof__chunk_check(&header, chunk->offset, live->reader.info.closed) == MTPROF_OK &&
        header.committed > chunk->committed) {
        chunk->committed = (uint32_t)header.committed;
    }
    return MTPROF_OK;
}

static bool is_text(uint8_t kind)
{
    return kind == MTPROF_STREAM_CONTROL || kind == MTPROF_STREAM_DEFINITIONS;
}

static int refresh_all(mtprof_live *live, bool texts)
{
    for (size_t i = 0; i < live->n_streams; i++) {
        if (is_text(live->streams[i]->kind) == texts) {
            MT_TRY(refresh(live, live->streams[i]));
        }
    }
    return MTPROF_OK;
}

/* Chunks come into the file when they are full. */
static bool written_behind(const mtprof_live *live)
{
    return (live->reader.info.health[MTPROF_HEALTH_WRITTEN_BEHIND] & MTPROF_FILE_BEHIND) != 0;
}

/* LLK2 */
static bool walks_all(const mtprof_live *live)
{
    return live->reader.info.policy == MTPROF_POLICY_RING || written_behind(live);
}

static int walk_once(mtprof_live *live, uint64_t from, enum mtprof__walk_wants wants)
{
    mtprof__chunk_index *index = &live->reader.index;
    const mtprof_trace_info *info = &live->reader.info;
    bool far = live->n_looks % FAR_EVERY == 0 || info->closed || live->ended;
    const mtprof__index_source source = {.bytes = &live->reader.bytes,
                                         .info = info,
                                         .first_chunk = from,
                                         .problems = &live->reader.problems,
                                         .unused_most = far ? 0 : NEAR_BYTES,
                                         .skip = live->gaps,
                                         .n_skip = live->n_gaps};
    index->n_chunks = 0;
    index->damaged = index->unchecked = index->frontier = 0;
    index->crossed = 0;
    index->n_gaps = 0;
    index->tails_unknown = false;
    int status = mtprof__chunk_walk(index, &source, wants);
    mtprof__problems_cut(&live->reader.problems, 0);
    return status;
}

/* LLK4: what the last two walks crossed. */
static void keep_gaps(mtprof_live *live)
{
    const mtprof__chunk_index *index = &live->reader.index;
    for (size_t i = 0; i < index->n_gaps && live->n_gaps < MTPROF__WALK_GAPS; i++) {
        live->gaps[live->n_gaps++] = index->gaps[i];
    }
}

/* Leaves those of the texts, or of the others, that are not known: most of a ring's are. */
static int keep_new(mtprof_live *live, bool texts)
{
    mtprof__chunk_index *index = &live->reader.index;
    size_t kept = 0;
    for (size_t i = 0; i < index->n_chunks; i++) {
        const mtprof__chunk *chunk = &index->chunks[i];
        mtprof__live_stream *s = NULL;
        if (is_text(chunk->stream) != texts) {
            continue;
        }
        MT_TRY(mtprof__live_stream_get(live, chunk->stream, chunk->slot, &s));
        if (chunk->sequence >= s->next_sequence) {
            index->chunks[kept++] = *chunk;
        }
    }
    index->n_chunks = kept;
    return MTPROF_OK;
}

/* Walks from a place and takes the chunks that are texts, or those that are not. */
static int walk(mtprof_live *live, uint64_t *resume, bool texts)
{
    mtprof__chunk_index *index = &live->reader.index;
    enum mtprof__walk_wants wants = texts ? MTPROF__WALK_ALL : MTPROF__WALK_EVENTS;
    bool all = walks_all(live);
    uint64_t from = all || *resume == 0 ? live->first_chunk : *resume;
    MT_TRY(walk_once(live, from, wants));
    uint64_t crossed = 0;
    for (int i = 0; i < MOST_WALKS && index->crossed != crossed && !live->reader.info.closed; i++) {
        crossed = index->crossed;
        MT_TRY(walk_once(live, from, wants)); /* LLK1 */
    }
    if (index->crossed == crossed && !written_behind(live) && !live->reader.info.closed) {
        keep_gaps(live);
    }
    if (!texts) {
        live->walk_damaged = all ? index->damaged : live->walk_damaged + index->damaged;
    }
    MT_TRY(keep_new(live, texts));
    mtprof__chunk_index_sort(index);
    for (size_t i = 0; i < index->n_chunks; i++) {
        MT_TRY(add_chunk(live, &index->chunks[i]));
    }
    *resume = index->frontier != 0 ? index->frontier : *resume;
    return MTPROF_OK;
}

int mtprof__live_read_header(mtprof_live *live)
{
    mtprof_reader *reader = &live->reader;
    mtprof_trace_info info = {0};
    MT_TRY(mtprof__header_read(&reader->bytes, &info, &live->first_chunk, &reader->end_told,
                               &reader->problems));
    mtprof__problems_cut(&reader->problems, 0);
    if (reader->clock.n > 0 && memcmp(info.uuid, reader->info.uuid, sizeof info.uuid) != 0) {
        return mtb_fail(MTPROF_EFORMAT, "follow trace: the file has become another recording");
    }
    reader->info = info;
    return MTPROF_OK;
}

int mtprof__live_look(mtprof_live *live)
{
    MT_TRY(mtprof__live_read_header(live));
    MT_TRY(refresh_all(live, false));
    MT_TRY(walk(live, &live->resume_events, false));
    MT_TRY(refresh_all(live, true)); /* LVI2 */
    MT_TRY(walk(live, &live->resume_texts, true));
    live->n_looks++;
    return MTPROF_OK;
}
