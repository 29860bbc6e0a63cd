/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk over a trace's chunks.
 *
 *      page with the magic, header holds      next: after the chunk
 *      page with the magic, header damaged    reported; next: the page after
 *      page without                           unused; next: the page after, blocks at a time
 *
 * Invariants
 *   WALK1  Every step goes forward by at least a page, so that a walk ends. (One does not: when a
 *          live trace got a chunk between two reads of the same page. The next step takes it.)
 *   WALK2  In a closed trace a page that belongs to no chunk and is not zero is reported, once per
 *          run of such pages: it may be what is left of a chunk whose header is lost.
 */
#include "mtprof/read/chunk_walk.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"

#include <string.h>

enum {
#if defined(MT_FUZZ) && MT_FUZZ
    BLOCK_BYTES = 8 * 1024, /* a fuzzer walks a small trace for every input */
#else
    BLOCK_BYTES = 64 * 1024,
#endif
    TORN_READS = 4 /* how often a header that does not hold is read again in a live trace */
};

typedef struct chunk_walk {
    mtprof__chunk_index *index;
    const mtprof__index_source *source;
    enum mtprof__walk_wants wants;
    unsigned char *block;
    uint64_t at;
    bool in_damage; /* WALK2: this run was reported */
    bool cut;       /* that the trace ends too early was reported */
} chunk_walk;

/* Whether this walk reports what it finds wrong outside the chunks it wants. */
static bool reports(const chunk_walk *walk)
{
    return (walk->wants & MTPROF__WALK_EVENTS) != 0;
}

static bool page_is_zero(const unsigned char *page, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (page[i] != 0) {
            return false;
        }
    }
    return true;
}

/* WALK2 */
static int report_page(chunk_walk *walk, uint64_t offset, const unsigned char *page, size_t length)
{
    size_t i = 0;
    while (i < length && page[i] == 0) {
        i++;
    }
    walk->in_damage = true;
    walk->index->tails_unknown = true;
    return mtprof__problem_add(
        walk->source->problems, offset + i,
        "page at %llu: belongs to no chunk and byte %zu is %02x, expected zeros in a closed trace",
        (unsigned long long)offset, i, i < length ? page[i] : 0);
}

/* Looks for a page with the magic in a block that was read at walk->at: its offset in the block,
 * or got. *used: some page is not zero. */
static int scan_block(chunk_walk *walk, size_t got, size_t *found, bool *used)
{
    static const unsigned char magic[4] = {'M', 'T', 'C', 'K'};
    bool report = walk->source->info->closed && reports(walk);
    *used = false;
    for (*found = 0; *found < got; *found += MTPROF_CHUNK_ALIGN) {
        const unsigned char *page = walk->block + *found;
        size_t length = got - *found < MTPROF_CHUNK_ALIGN ? got - *found : MTPROF_CHUNK_ALIGN;
        if (length >= sizeof magic && memcmp(page, magic, sizeof magic) == 0) {
            return MTPROF_OK;
        }
        bool zero = page_is_zero(page, length);
        int status = MTPROF_OK;
        if (!zero && report && !walk->in_damage) {
            status = report_page(walk, walk->at + *found, page, length);
        }
        *used = *used || !zero;
        walk->source->problems->bytes += !zero && report ? length : 0;
        MT_TRY(status);
    }
    return MTPROF_OK;
}

/* Goes to the end of unused pages that the caller knows. */
static bool skip_known(chunk_walk *walk)
{
    for (size_t i = 0; i < walk->source->n_skip; i++) {
        if (walk->source->skip[i].from == walk->at) {
            walk->at = walk->source->skip[i].to;
            return true;
        }
    }
    return false;
}

static size_t first_page(size_t got)
{
    return got < MTPROF_CHUNK_ALIGN ? got : MTPROF_CHUNK_ALIGN;
}

/* Unused pages with a chunk after them. */
static void note_crossed(mtprof__chunk_index *index, uint64_t from, uint64_t to, bool first_zero)
{
    index->crossed = mtb_mix(index->crossed ^ from, to);
    if (first_zero && index->n_gaps < MTPROF__WALK_GAPS) {
        index->gaps[index->n_gaps++] = (struct mtprof__gap){from, to};
    }
}

/*
 * Goes on from a page without the magic to the next page with it. Reads blocks, and where a
 * whole block is zero asks the file for the end of the hole: a sparse file of terabytes is a
 * matter of a few calls.
 */
static int walk_unused(chunk_walk *walk)
{
    const mtprof__bytes *bytes = walk->source->bytes;
    uint64_t end = walk->index->end;
    uint64_t from = walk->at;
    uint64_t most = walk->source->unused_most;
    bool first_zero = false;
    if (skip_known(walk)) {
        return MTPROF_OK;
    }
    if (walk->block == NULL && (walk->block = mtb_calloc(1, BLOCK_BYTES)) == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for %d bytes", BLOCK_BYTES);
    }
    while (walk->at < end) {
        if (most != 0 && walk->at - from >= most) {
            walk->at = end;
            return MTPROF_OK;
        }
        size_t want = end - walk->at < BLOCK_BYTES ? (size_t)(end - walk->at) : BLOCK_BYTES;
        size_t got = 0;
        size_t found = 0;
        bool used = false;
        MT_TRY(mtprof__bytes_read(bytes, walk->at, walk->block, want, &got));
        MT_TRY(scan_block(walk, got, &found, &used));
        first_zero = walk->at != from ? first_zero : page_is_zero(walk->block, first_page(got));
        if (got == 0) {
            walk->at = end; /* the trace has shrunk */
        }
        walk->at += found;
        if (found < got) {
            if (walk->at > from) {
                note_crossed(walk->index, from, walk->at, first_zero);
            }
            return MTPROF_OK;
        }
        if (!used && bytes->next_data != NULL && walk->at < end) {
            uint64_t data = bytes->next_data(bytes->calls.context, walk->at);
            data &= ~(uint64_t)(MTPROF_CHUNK_ALIGN - 1);
            walk->at = data > walk->at ? data : walk->at;
        }
    }
    return MTPROF_OK;
}

/* Whether the header is one: its checksum holds and its size can be. */
static bool header_holds(const chunk_walk *walk, const mtprof__chunk_header *header)
{
    return header->header_crc == mtprof__chunk_header_crc(walk->source->info->uuid, header) &&
           header->size >= MTPROF_CHUNK_ALIGN && header->size <= MTPROF_CHUNK_MAX &&
           header->size % MTPROF_CHUNK_ALIGN == 0;
}

static int report_header(chunk_walk *walk, const mtprof__chunk_header *header)
{
    uint32_t crc = mtprof__chunk_header_crc(walk->source->info->uuid, header);
    unsigned long long at = walk->at;
    walk->in_damage = true;
    walk->index->damaged++;
    walk->index->tails_unknown = true;
    walk->source->problems->bytes += MTPROF_CHUNK_ALIGN;
    if (crc != header->header_crc) {
        return mtprof__problem_add(walk->source->problems, walk->at,
                                   "chunk at %llu: the header's checksum is %08x, expected %08x",
                                   at, header->header_crc, crc);
    }
    return mtprof__problem_add(walk->source->problems, walk->at,
                               "chunk at %llu: size is %u, expected a multiple of %u up to %u", at,
                               header->size, MTPROF_CHUNK_ALIGN, MTPROF_CHUNK_MAX);
}

static int append(chunk_walk *walk, const mtprof__chunk_header *header)
{
    mtprof__chunk_index *index = walk->index;
    bool sound = mtprof__chunk_check(header, walk->at, walk->source->info->closed) == MTPROF_OK;
    if (!sound) {
        index->damaged++;
        walk->source->problems->bytes += header->size;
        MT_TRY(mtprof__problem_add_failure(walk->source->problems));
    } else if (header->state != MTPROF_CHUNK_CHECKED) {
        index->unchecked++;
    }
    if (!mtb_grow((void **)&index->chunks, &index->capacity, index->n_chunks + 1,
                  sizeof *index->chunks)) {
        return mtb_fail(MTPROF_ENOMEM, "open trace: no memory for %zu chunks", index->n_chunks + 1);
    }
    /* A chunk that is not sound keeps its place in the stream: the cursor reports it again. */
    index->chunks[index->n_chunks++] = (mtprof__chunk){
        .offset = walk->at,
        .sequence = header->sequence,
        .base_ticks = header->base_ticks,
        .size = header->size,
        .committed = sound ? (uint32_t)header->committed : 0,
        .slot = header->slot,
        .stream = header->stream,
        .told = !sound,
    };
    bool timed = header->stream == MTPROF_STREAM_CONTROL || header->stream == MTPROF_STREAM_THREAD;
    if (sound && timed && header->base_ticks > index->last_ticks) {
        index->last_ticks = header->base_ticks;
    }
    return MTPROF_OK;
}

static bool wanted(const chunk_walk *walk, uint8_t stream)
{
    switch (stream) {
    case MTPROF_STREAM_DEFINITIONS: return (walk->wants & MTPROF__WALK_DEFINITIONS) != 0;
    case MTPROF_STREAM_CONTROL:
    case MTPROF_STREAM_THREAD:
    case MTPROF_STREAM_SOURCE: return (walk->wants & MTPROF__WALK_EVENTS) != 0;
    default: return false; /* of a later minor: skipped */
    }
}

static int report_cut(chunk_walk *walk, uint64_t chunk_end)
{
    unsigned long long end = walk->index->end;
    walk->cut = true;
    walk->index->tails_unknown = true;
    walk->source->problems->bytes += chunk_end - walk->index->end;
    return mtprof__problem_add(walk->source->problems, end,
                               "truncated: the chunk at %llu ends at %llu, the trace at %llu",
                               (unsigned long long)walk->at, (unsigned long long)chunk_end, end);
}

/* A chunk whose header holds: takes it if it is wanted, and continues after it. */
static int walk_chunk(chunk_walk *walk, const mtprof__chunk_header *header)
{
    mtprof__chunk_index *index = walk->index;
    uint64_t chunk_end = walk->at + header->size;
    bool take = wanted(walk, header->stream);
    walk->in_damage = false;
    if (chunk_end > index->end && !walk->source->info->closed) {
        /* A live trace may have grown since its size was read. */
        uint64_t now = mtprof__bytes_size(walk->source->bytes);
        index->end = now > index->end ? now : index->end;
    }
    if (take && chunk_end > index->end) {
        MT_TRY(report_cut(walk, chunk_end));
    }
    if (take) {
        MT_TRY(append(walk, header));
    }
    walk->at = chunk_end;
    index->frontier = chunk_end;
    return MTPROF_OK;
}

/* A page without a whole header on it; got bytes of one are there. */
static int walk_no_chunk(chunk_walk *walk, size_t got)
{
    uint64_t from = walk->at;
    MT_TRY(walk_unused(walk));
    if (walk->at != from || got == MTPROF_CHUNK_HEADER) {
        return MTPROF_OK;
    }
    /* The magic in the last bytes of a trace, with no room for a header. */
    walk->at += MTPROF_CHUNK_ALIGN;
    walk->cut = true;
    walk->index->tails_unknown = true;
    return reports(walk)
               ? mtprof__problem_add(walk->source->problems, from,
                                     "truncated: %zu bytes of the header of the chunk at %llu", got,
                                     (unsigned long long)from)
               : MTPROF_OK;
}

/* One step from a page boundary (WALK1). */
static int walk_step(chunk_walk *walk)
{
    mtprof__chunk_header header;
    uint64_t left = walk->index->end - walk->at;
    size_t length = left < sizeof header ? (size_t)left : sizeof header;
    /* In a live trace a header may be written while it is read: then it is read again. */
    int tries = walk->source->info->closed ? 1 : TORN_READS;
    do {
        size_t got = 0;
        MT_TRY(mtprof__bytes_read(walk->source->bytes, walk->at, &header, length, &got));
        if (got < sizeof header || header.magic != MTPROF_CHUNK_MAGIC) {
            return walk_no_chunk(walk, got);
        }
        if (header_holds(walk, &header)) {
            return walk_chunk(walk, &header);
        }
    } while (--tries > 0);
    if (reports(walk)) {
        MT_TRY(report_header(walk, &header));
    }
    walk->at += MTPROF_CHUNK_ALIGN;
    return MTPROF_OK;
}

int mtprof__chunk_walk(mtprof__chunk_index *index, const mtprof__index_source *source,
                       enum mtprof__walk_wants wants)
{
    chunk_walk walk = {.index = index, .source = source, .wants = wants, .at = source->first_chunk};
    uint64_t end =
        source->info->closed ? source->info->file_bytes : mtprof__bytes_size(source->bytes);
    index->end = end > index->end ? end : index->end; /* chunks of an earlier walk stay inside */
    int status = MTPROF_OK;
    while (status == MTPROF_OK && walk.at < index->end) {
        status = walk_step(&walk);
    }
    /* Writers make whole pages; of a closed trace the header knows the size. */
    if (status == MTPROF_OK && !source->info->closed && index->end % MTPROF_CHUNK_ALIGN != 0 &&
        !walk.cut && reports(&walk)) {
        index->tails_unknown = true;
        status =
            mtprof__problem_add(source->problems, index->end,
                                "truncated: the trace has %llu bytes, expected a multiple of %u",
                                (unsigned long long)index->end, MTPROF_CHUNK_ALIGN);
    }
    mtb_free(walk.block);
    return status;
}
