/* SPDX-License-Identifier: Apache-2.0
 *
 * Making a store and taking chunks from it. See store.h for the picture and the invariants.
 */
#include "mtprof/record/store/store.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/new_file.h"
#include "base/pages.h"
#include "mtprof/record/sys.h"

#include <mtprof/clock.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    TURNS_BESIDE = 8 /* the end of a segment may be too short for a chunk, and is left */
};

static uint64_t default_budget(const mtprof_config *config)
{
    if (config->policy == MTPROF_POLICY_RING) {
        return (uint64_t)64 << 20;
    }
    if (config->path != NULL) {
        return 0;
    }
    long pages = sysconf(_SC_AVPHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    uint64_t quarter = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 4 : 0;
    return quarter > ((uint64_t)16 << 20) ? quarter : (uint64_t)16 << 20;
}

/* Room for every chunk that could exist; only touched pages become real. */
static bool fifo_make(mtprof__fifo *fifo, uint64_t capacity)
{
    void *at = mtprof__system.map(capacity * sizeof *fifo->at, -1, 0);
    if (at == MAP_FAILED) {
        return false;
    }
    fifo->at = at;
    fifo->capacity = capacity;
    return true;
}

static void fifo_free(mtprof__fifo *fifo)
{
    if (fifo->at != NULL) {
        munmap(fifo->at, fifo->capacity * sizeof *fifo->at);
    }
}

static bool fifo_push(mtprof__fifo *fifo, mtprof__chunk_header *chunk, uint64_t last_ticks)
{
    if (fifo->count == fifo->capacity) {
        return false;
    }
    struct mtprof__sealed *at = &fifo->at[(fifo->head + fifo->count) % fifo->capacity];
    at->chunk = chunk;
    at->last_ticks = last_ticks;
    fifo->count++;
    return true;
}

mtprof__chunk_header *mtprof__fifo_pop(mtprof__fifo *fifo)
{
    if (fifo->count == 0) {
        return NULL;
    }
    mtprof__chunk_header *chunk = fifo->at[fifo->head].chunk;
    fifo->head = (fifo->head + 1) % fifo->capacity;
    fifo->count--;
    return chunk;
}

static mtprof_status make_fifos(mtprof__store *store)
{
    bool ring = store->policy == MTPROF_POLICY_RING;
    uint64_t most = store->budget / MTPROF_CHUNK_ALIGN;
    bool made = ring ? fifo_make(&store->fifos[0], most) && fifo_make(&store->fifos[1], most)
                     : fifo_make(&store->unchecked, MTPROF__SEAL_QUEUE);
    if (!made) {
        return mtb_fail(MTPROF_ENOMEM, "session_start: no memory for the list of chunks");
    }
    return MTPROF_OK;
}

/* Many chunks to a ring, so that letting one go is a small loss. */
static uint64_t ring_chunk_bytes(uint64_t budget)
{
    uint64_t bytes = MTPROF__CHUNK_FIRST_BYTES;
    while (bytes < MTPROF__CHUNK_MAX_BYTES && bytes * 64 < budget) {
        bytes *= 2;
    }
    return bytes;
}

static void write_header(mtprof__store *store)
{
    mtprof__file_header *h = store->header;
    mtprof__anchor now = mtprof__clock_anchor();
    h->magic = MTPROF_FILE_MAGIC;
    h->major = MTPROF_FORMAT_MAJOR;
    h->minor = MTPROF_FORMAT_MINOR;
    h->header_bytes = MTPROF_HEADER_BYTES;
    memcpy(h->uuid, store->uuid, sizeof h->uuid);
    h->pid = (uint64_t)getpid();
    h->tick_period = mtprof_tick_period();
    h->start_ticks = now.ticks;
    h->start_mono_ns = now.mono_ns;
    h->start_real_ns = now.real_ns;
    h->clock = mtprof_clock_kind();
    h->policy = store->policy;
    h->budget_bytes = store->budget;
    h->ring_ns = (uint64_t)(((unsigned __int128)store->ring_ticks * mtprof_tick_period()) >> 56);
    h->header_crc = mtb_crc32c(0, h, offsetof(mtprof__file_header, header_crc));
}

static mtprof_status copy_texts(mtprof__store *store, const mtprof_config *config)
{
    const char *directory = config->spill_directory != NULL ? config->spill_directory : "/tmp";
    store->spill_directory = mtb_copy_text(directory, strlen(directory));
    if (config->path != NULL) {
        store->path = mtb_copy_text(config->path, strlen(config->path));
    }
    if (store->spill_directory == NULL || (config->path != NULL && store->path == NULL)) {
        return mtb_fail(MTPROF_ENOMEM, "session_start: no memory for the path");
    }
    return MTPROF_OK;
}

/* Why not even the first segment was to be had. */
static mtprof_status refused_first(const mtprof__store *store, uint32_t cause)
{
    int error = store->refused_errno;
    if (cause == MTPROF_LOST_MEMORY || store->path == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "session_start: no memory for the first buffer");
    }
    return mtb_fail_errno(mtb_is_full(error) ? MTPROF_ENOSPC : MTPROF_EIO, error,
                          "session_start: no room for the first block of %s", store->path);
}

/* The first segment, with the file under it where there is one, up to a valid header. */
static mtprof_status open_first(mtprof__store *store)
{
    if (store->path != NULL) {
        MT_TRY(mtprof__file_create(store, MTPROF_HEADER_BYTES));
    }
    uint32_t cause = MTPROF_LOST_MEMORY;
    if (!mtprof__store_grow(store, MTPROF_CHUNK_ALIGN, &cause)) {
        return refused_first(store, cause);
    }
    store->header = (mtprof__file_header *)(void *)store->segments[0]->base;
    store->segments[0]->used = MTPROF_HEADER_BYTES;
    store->frontier = MTPROF_HEADER_BYTES;
    write_header(store);
    store->header->health[MTPROF_HEALTH_WRITTEN_BEHIND] =
        (store->behind ? MTPROF_FILE_BEHIND : 0) | (store->unlocked ? MTPROF_FILE_UNLOCKED : 0);
    if (store->behind) {
        int error = mtprof__system.write(store->fd, store->header, MTPROF_HEADER_BYTES, 0);
        if (error != 0) {
            return mtb_fail_errno(MTPROF_EIO, error, "session_start: %s", store->path);
        }
    }
    return MTPROF_OK;
}

mtprof_status mtprof__store_place(mtprof__store *store)
{
    if (store->made == NULL) {
        return MTPROF_OK;
    }
    return mtprof__file_place(store);
}

mtprof_status mtprof__store_new(const mtprof_config *config, mtprof__store **out)
{
    *out = NULL;
    mtprof__store *store = mtb_calloc(1, sizeof *store);
    if (store == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "session_start: no memory");
    }
    store->references = 1;
    store->pid = getpid();
    store->fd = -1;
    store->spill_fd = -1;
    mtb_lock_init(&store->grow, MTB_RANK_GROW);
    mtb_lock_init(&store->lock, MTB_RANK_STORE);
    store->policy = config->policy;
    store->budget = config->buffer_bytes != 0 ? config->buffer_bytes : default_budget(config);
    store->budget &= ~(uint64_t)(MTPROF_CHUNK_ALIGN - 1);
    store->ring_ticks = config->ring_ns != 0 ? mtprof__ns_to_ticks(config->ring_ns) : 0;
    store->ring_by_steps = config->ring_steps != 0;
    store->steps_from = mtprof__ticks();
    store->chunk_max = config->policy == MTPROF_POLICY_RING ? ring_chunk_bytes(store->budget)
                                                            : MTPROF__CHUNK_MAX_BYTES;
    if (getrandom(store->uuid, sizeof store->uuid, 0) != (ssize_t)sizeof store->uuid) {
        mtprof__anchor now = mtprof__clock_anchor();
        memcpy(store->uuid, &now, sizeof store->uuid);
    }
    mtprof_status status = copy_texts(store, config);
    if (status == MTPROF_OK) {
        status = make_fifos(store);
    }
    if (status == MTPROF_OK) {
        status = open_first(store);
    }
    if (status != MTPROF_OK) {
        mtprof__store_release(store);
        return status;
    }
    *out = store;
    return MTPROF_OK;
}

void mtprof__store_retain(mtprof__store *store)
{
    __atomic_add_fetch(&store->references, 1, __ATOMIC_RELAXED);
}

void mtprof__store_release(mtprof__store *store)
{
    if (store == NULL || __atomic_sub_fetch(&store->references, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    for (uint32_t i = 0; i < store->n_segments; i++) {
        mtprof__segment *segment = store->segments[i];
        /* In a forked child other mappings may be at that address by now. */
        if (store->pid == getpid()) {
            munmap(segment->base, segment->bytes);
        }
        mtb_pages_give(segment, sizeof *segment);
    }
    if (store->made != NULL && store->pid == getpid()) {
        mtprof__file_discard(store);
    } else {
        mtprof__file_close(store->fd, store->file);
    }
    mtprof__file_close(store->spill_fd, store->spill_file);
    fifo_free(&store->fifos[0]);
    fifo_free(&store->fifos[1]);
    fifo_free(&store->unchecked);
    mtb_lock_fini(&store->grow);
    mtb_lock_fini(&store->lock);
    mtb_free(store->path);
    mtb_free(store->target);
    mtb_free(store->made);
    mtb_free(store->spill_directory);
    mtb_free(store);
}

void mtprof__store_count(mtprof__store *store, uint32_t index, uint64_t amount)
{
    __atomic_fetch_add(&store->header->health[index], amount, __ATOMIC_RELAXED);
}

uint64_t mtprof__store_counted(const mtprof__store *store, uint32_t index)
{
    return __atomic_load_n(&store->header->health[index], __ATOMIC_RELAXED);
}

/* ST1: everything first, the magic last. Stores are atomic for the sake of live readers (ST3). */
static void start_chunk(mtprof__store *store, mtprof__chunk_header *chunk, uint32_t size,
                        const mtprof__chunk_start *start)
{
    mtprof__chunk_header h = {
        .magic = MTPROF_CHUNK_MAGIC,
        .size = size,
        .stream = start->stream,
        .slot = start->slot,
        .sequence = start->sequence,
        .base_ticks = start->base_ticks,
        .first_ordinal = start->first_ordinal,
        .epoch = start->epoch,
        .thread = start->thread,
    };
    h.header_crc = mtprof__chunk_header_crc(store->uuid, &h);
    uint64_t words[8];
    memcpy(words, &h, sizeof words);
    uint64_t *to = (uint64_t *)(void *)chunk;
    __atomic_store_n(&chunk->magic, 0, __ATOMIC_RELAXED);
#if !MT_TSAN
    __atomic_thread_fence(
        __ATOMIC_RELEASE); /* pairs with the acquire loads of mtprof__copy_words() */
#endif
    for (int i = 1; i < 8; i++) {
        __atomic_store_n(&to[i], words[i], __ATOMIC_RELAXED);
    }
    __atomic_store_n(&to[0], words[0], __ATOMIC_RELEASE);
}

/*
 * Ring mode: the list whose head is oldest, NULL when both are empty. An event record fits into the
 * smallest chunk; only definitions insist on their size, and theirs may be larger than any.
 */
static mtprof__fifo *oldest(mtprof__store *store, uint64_t bytes, bool exact)
{
    mtprof__fifo *small = &store->fifos[0];
    mtprof__fifo *large = &store->fifos[1];
    bool no_small = small->count == 0 || (exact && bytes > MTPROF__CHUNK_FIRST_BYTES);
    bool no_large = large->count == 0 || (exact && bytes > store->chunk_max);
    if (no_small || no_large) {
        return !no_small ? small : !no_large ? large : NULL;
    }
    return small->at[small->head].last_ticks < large->at[large->head].last_ticks ? small : large;
}

static mtprof__chunk_header *recycle(mtprof__store *store, mtprof__fifo *from)
{
    mtprof__chunk_header *chunk = from != NULL ? mtprof__fifo_pop(from) : NULL;
    if (chunk != NULL) {
        mtprof__store_count(store, MTPROF_HEALTH_RING_CHUNKS, 1);
        /* data_crc is not used in ring mode before the end: seal() keeps the begins there. */
        mtprof__store_count(store, MTPROF_HEALTH_RING_BEGINS, chunk->data_crc);
    }
    return chunk;
}

/* Whether the oldest chunk is older than what the ring is to keep. */
static bool is_stale(const mtprof__store *store, const mtprof__fifo *fifo, uint64_t now)
{
    if (fifo == NULL || (store->ring_ticks == 0 && !store->ring_by_steps)) {
        return false;
    }
    uint64_t last = fifo->at[fifo->head].last_ticks;
    bool by_time = store->ring_ticks == 0 || (int64_t)(now - last) > (int64_t)store->ring_ticks;
    bool by_steps = !store->ring_by_steps ||
                    (int64_t)(__atomic_load_n(&store->steps_from, __ATOMIC_RELAXED) - last) > 0;
    return by_time && by_steps;
}

static mtprof__chunk_header *cut(mtprof__store *store, uint64_t bytes)
{
    uint32_t n = __atomic_load_n(&store->n_segments, __ATOMIC_ACQUIRE);
    while (store->current < n) {
        mtprof__segment *segment = store->segments[store->current];
        if (segment->bytes - segment->used >= bytes) {
            mtprof__chunk_header *chunk =
                (mtprof__chunk_header *)(void *)(segment->base + segment->used);
            segment->used += bytes;
            if (segment->used > __atomic_load_n(&segment->populated, __ATOMIC_RELAXED)) {
                mtprof__store_count(store, MTPROF_HEALTH_STALLS, 1);
            }
            __atomic_store_n(&store->frontier, segment->offset + segment->used, __ATOMIC_RELEASE);
            return chunk;
        }
        if (store->current + 1 == n) {
            return NULL;
        }
        if (store->policy != MTPROF_POLICY_SPILL) {
            /* Its rest is not charged to events: a large definition must not cost their room. */
            __atomic_fetch_add(&store->beside, segment->bytes - segment->used, __ATOMIC_RELAXED);
        }
        store->current++;
    }
    return NULL;
}

/* Caller holds the lock. `begins` of the chunk are known to its owner only, see recycle(). */
static void seal(mtprof__store *store, mtprof__chunk_header *chunk, uint64_t begins,
                 uint64_t last_ticks)
{
    if (store->policy == MTPROF_POLICY_RING) {
        __atomic_store_n(&chunk->data_crc, (uint32_t)begins, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&chunk->state, MTPROF_CHUNK_SEALED, __ATOMIC_RELEASE);
    if (store->policy == MTPROF_POLICY_RING) {
        if (chunk->stream == MTPROF_STREAM_THREAD || chunk->stream == MTPROF_STREAM_SOURCE) {
            fifo_push(&store->fifos[chunk->size <= MTPROF__CHUNK_FIRST_BYTES ? 0 : 1], chunk,
                      last_ticks);
        }
    } else {
        fifo_push(&store->unchecked, chunk,
                  last_ticks); /* where it is full, close finds the chunk */
    }
}

static void kick_helper(mtprof__store *store)
{
    sem_t *helper = __atomic_load_n(&store->helper, __ATOMIC_ACQUIRE);
    if (helper != NULL && __atomic_exchange_n(&store->helper_kicked, 1, __ATOMIC_ACQ_REL) == 0) {
        sem_post(helper); /* safe in a signal handler */
    }
}

/* ST6 */
static void allow_beside(mtprof__store *store, uint64_t bytes)
{
    uint32_t refused = MTPROF_LOST_BUDGET + 1;
    __atomic_fetch_add(&store->beside, bytes, __ATOMIC_RELAXED);
    (void)__atomic_compare_exchange_n(&store->refused, &refused, 0, false, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED);
}

mtprof__chunk_header *mtprof__store_take(mtprof__store *store, mtprof__chunk_header *old,
                                         uint64_t bytes, const mtprof__chunk_start *start,
                                         uint32_t *cause)
{
    uint64_t size = mtb_round_up(bytes, MTPROF_CHUNK_ALIGN);
    bool ring = store->policy == MTPROF_POLICY_RING;
    bool exact = start->stream == MTPROF_STREAM_DEFINITIONS;
    mtprof__chunk_header *chunk = NULL;
    *cause = MTPROF_LOST_TOO_LARGE;
    /* A chunk lies in one segment; ring mode has no use for one that it could not cut again. */
    uint64_t most = ring && !exact ? store->chunk_max : MTPROF__SEGMENT_MAX - MTPROF_HEADER_BYTES;
    if (size > most) {
        return NULL;
    }
    bool bounded = store->policy != MTPROF_POLICY_SPILL && store->budget != 0;
    uint32_t turns = exact && bounded ? TURNS_BESIDE : 0;
    if (turns > 0) {
        allow_beside(store, size);
    }
    for (;;) {
        mtb_lock_acquire(&store->lock);
        uint32_t seen = __atomic_load_n(&store->n_segments, __ATOMIC_RELAXED);
        mtprof__fifo *old_ones = ring ? oldest(store, size, exact) : NULL;
        if (is_stale(store, old_ones, start->base_ticks)) {
            chunk = recycle(store, old_ones);
        }
        /* What was made for definitions is not for others (ST6). */
        bool over = bounded && !exact &&
                    (store->cut + size > store->budget - MTPROF_HEADER_BYTES ||
                     (store->too_large != 0 && size >= store->too_large));
        uint32_t refused =
            over ? MTPROF_LOST_BUDGET + 1 : __atomic_load_n(&store->refused, __ATOMIC_RELAXED);
        if (chunk == NULL && !over) {
            chunk = cut(store, size);
            store->cut += chunk != NULL && !exact ? size : 0;
        }
        if (chunk == NULL && ring && refused != 0) {
            chunk = recycle(store, old_ones);
        }
        if (chunk != NULL) {
            if (chunk->size != 0 && chunk->magic == MTPROF_CHUNK_MAGIC) {
                size = chunk->size; /* recycled: it keeps the size it was cut with */
            }
            if (old != NULL) {
                seal(store, old, start->first_ordinal - old->first_ordinal, start->base_ticks);
            }
            start_chunk(store, chunk, (uint32_t)size, start);
        }
        bool low = mtprof__store_is_low(store);
        bool refuses = chunk == NULL && refused == MTPROF_LOST_BUDGET + 1 && !exact &&
                       seen == __atomic_load_n(&store->n_segments, __ATOMIC_ACQUIRE);
        if (refuses && !ring && (store->too_large == 0 || size < store->too_large)) {
            store->too_large =
                size; /* once refused, that size is always refused: the oldest events stay */
        }
        mtb_lock_release(&store->lock);
        if (low) {
            kick_helper(store);
        }
        if (chunk != NULL) {
            return chunk;
        }
        if (refused != 0 && seen == __atomic_load_n(&store->n_segments, __ATOMIC_ACQUIRE)) {
            if (refused - 1 == MTPROF_LOST_BUDGET && turns > 0) {
                turns--;
                allow_beside(store, size);
                continue;
            }
            *cause = refused - 1;
            return NULL;
        }
        int before = errno;
        mtprof__store_grow(store, size, cause); /* or find, at the next turn, that it was refused */
        errno = before; /* a recording call may be waiting for this, and leaves it alone */
        if (__atomic_load_n(&store->refused, __ATOMIC_RELAXED) == 0) {
            mtprof__store_count(store, MTPROF_HEALTH_STALLS, 1);
        }
    }
}
