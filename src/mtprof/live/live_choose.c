/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the new chunks a poll reads.
 *
 * Where there is more than most_bytes, it is a sample: points at equal distances, each moved by a
 * random part of the distance, so that a program that repeats itself cannot keep in step with them.
 * A chunk with a point in it is read. What a stream has left is made up for by scaling what was
 * read of it; streams of which nothing was read, by scaling all others.
 *
 *   LCH1  A chunk that is not read is left out for good, or it is the last of its stream: then it
 *        waits, since it may be the one that the stream goes on in for hours.
 */
#include "mtprof/live/live_impl.h"

#include <string.h>

/* ---- the first poll -------------------------------------------------------------------------- */

/* A chunk is old if the next one began before the time. Of a source the first one is kept: it has
 * the clock. */
void mtprof__live_skip_old(mtprof_live *live, int64_t floor_ns)
{
    for (size_t i = 0; i < live->n_streams; i++) {
        mtprof__live_stream *s = live->streams[i];
        size_t first = s->kind == MTPROF_STREAM_SOURCE ? 1 : 0;
        if ((s->thread == NULL && s->source == NULL) || s->stream.n_chunks < first + 2) {
            continue;
        }
        mtprof__chunk *chunks = s->stream.chunks;
        size_t from = first;
        while (from + 1 < s->stream.n_chunks &&
               mtprof_reader_ns(&live->reader, chunks[from + 1].base_ticks) <= floor_ns) {
            from++;
        }
        size_t kept = s->stream.n_chunks - from;
        memmove(chunks + first, chunks + from, kept * sizeof *chunks);
        s->stream.n_chunks = first + kept;
    }
}

/* ---- the sample ------------------------------------------------------------------------------ */

/* Goes through all chunks that have something to read, as one line of bytes. */
typedef struct sampler {
    uint64_t *random;
    bool all;
    double distance, point, passed; /* bytes */
    double stratum;
} sampler;

/* 0 to 1; a linear congruential generator is enough to get out of step. */
static double draw(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (double)(*random >> 11) * 0x1p-53;
}

static bool is_chosen(sampler *sample, uint64_t bytes)
{
    if (sample->all || bytes == 0) {
        return true;
    }
    bool chosen = false;
    sample->passed += (double)bytes;
    while (sample->point < sample->passed) {
        chosen = true;
        sample->stratum += sample->distance;
        sample->point = sample->stratum + draw(sample->random) * sample->distance;
    }
    return chosen;
}

static bool has_events(const mtprof__live_stream *stream)
{
    return stream->thread != NULL || stream->source != NULL;
}

/* Place of the first chunk that may have something to read. */
static size_t first_unread(const mtprof__live_stream *stream)
{
    const mtprof_cursor *cursor = stream->cursor;
    return cursor->next_chunk > 0 ? cursor->next_chunk - 1 : 0;
}

static uint64_t unread_bytes(const mtprof__live_stream *stream, size_t at)
{
    const mtprof_cursor *cursor = stream->cursor;
    uint64_t committed = stream->stream.chunks[at].committed;
    if (at + 1 != cursor->next_chunk) {
        return committed;
    }
    uint64_t have = cursor->n_words * sizeof(uint64_t);
    return !cursor->fresh && committed > have ? committed - have : 0;
}

/* The chunk that the cursor is in is left, or waits. */
static void leave_current(mtprof__live_stream *stream, bool last)
{
    if (last) {
        stream->cursor->held = true;
    } else {
        stream->cursor->fresh = true; /* the next one does not continue it */
    }
}

/* How much a chunk that is gone may have held: as those that are there, but for the last. */
static uint64_t typical_bytes(const mtprof__live_stream *stream)
{
    const mtprof__read_stream *s = &stream->stream;
    uint64_t sum = 0;
    for (size_t i = 0; i + 1 < s->n_chunks; i++) {
        sum += s->chunks[i].committed;
    }
    return s->n_chunks > 1 ? sum / (s->n_chunks - 1) : s->n_chunks > 0 ? s->chunks[0].committed : 0;
}

static void choose_of(mtprof__live_stream *stream, sampler *sample)
{
    uint64_t typical = stream->missing > 0 ? typical_bytes(stream) : 0;
    mtprof__read_stream *s = &stream->stream;
    mtprof_cursor *cursor = stream->cursor;
    size_t kept = 0;
    size_t n = s->n_chunks;
    stream->read = stream->left = 0;
    stream->held = false;
    for (size_t i = first_unread(stream); i < n; i++) {
        bool last = i + 1 == n;
        bool current = i + 1 == cursor->next_chunk;
        uint64_t bytes = unread_bytes(stream, i);
        bool chosen = is_chosen(sample, bytes);
        stream->read += chosen ? bytes : 0;
        stream->left += chosen || last ? 0 : bytes;
        stream->held = stream->held || (last && !chosen);
        if (current && !chosen) {
            leave_current(stream, last);
        }
        if (current || chosen || last) {
            s->chunks[kept++] = s->chunks[i];
        }
        if (current) {
            cursor->next_chunk = kept;
        }
    }
    s->n_chunks = kept;
    if (stream->held && kept > cursor->next_chunk) {
        s->n_chunks--; /* it comes back: LCH1 */
    }
    stream->left += stream->missing * typical;
}

/* Streams of which nothing was read count through the others. */
static void set_scales(mtprof_live *live)
{
    double covered = 0;
    double uncovered = 0;
    for (size_t i = 0; i < live->n_streams; i++) {
        const mtprof__live_stream *s = live->streams[i];
        if (has_events(s)) {
            *(s->read > 0 ? &covered : &uncovered) += (double)(s->read + s->left);
        }
    }
    double others = covered > 0 ? (covered + uncovered) / covered : 1;
    for (size_t i = 0; i < live->n_streams; i++) {
        mtprof__live_stream *s = live->streams[i];
        s->scale = 1;
        if (has_events(s) && s->read > 0) {
            s->scale = others * (double)(s->read + s->left) / (double)s->read;
        }
    }
}

int mtprof__live_choose(mtprof_live *live)
{
    uint64_t total = 0;
    uint64_t chunks = 0;
    for (size_t i = 0; i < live->n_streams; i++) {
        const mtprof__live_stream *s = live->streams[i];
        for (size_t k = has_events(s) ? first_unread(s) : SIZE_MAX; k < s->stream.n_chunks; k++) {
            uint64_t bytes = unread_bytes(s, k);
            total += bytes;
            chunks += bytes > 0;
        }
    }
    uint64_t most = live->options.most_bytes;
    sampler sample = {.random = &live->random, .all = most == 0 || total <= most};
    if (!sample.all) {
        double points = (double)most / (double)total * (double)chunks;
        sample.distance = (double)total / (points > 1 ? points : 1);
        sample.point = draw(sample.random) * sample.distance;
    }
    for (size_t i = 0; i < live->n_streams; i++) {
        mtprof__live_stream *s = live->streams[i];
        if (has_events(s)) {
            choose_of(s, &sample);
            live->now.bytes_read += s->read;
            live->now.bytes_new += s->read + s->left;
        }
    }
    set_scales(live);
    return MTPROF_OK;
}

void mtprof__live_chosen_end(mtprof_live *live)
{
    for (size_t i = 0; i < live->n_streams; i++) {
        mtprof__live_stream *s = live->streams[i];
        if (!has_events(s)) {
            continue;
        }
        if (s->held && !s->cursor->held) {
            s->stream.n_chunks++;
        }
        s->held = false;
        s->cursor->held = false;
        live->missed += s->missing + (s->stream.gone - s->told_gone);
        s->told_gone = s->stream.gone;
        s->missing = 0;
        mtprof__live_stream_trim(s);
    }
}
