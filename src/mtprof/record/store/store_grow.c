/* SPDX-License-Identifier: Apache-2.0
 *
 * How a store becomes larger: segments of growing size, allocated on disk before they are mapped
 * (so that a full disk is an error here and never a SIGBUS in a writer), and prefaulted by the
 * helper (so that the first touch of a page does not land on a writer).
 */
#include "base/new_file.h"
#include "base/pages.h"
#include "mtprof/record/store/store.h"
#include "mtprof/record/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#    define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum {
    POPULATE_STEP = 1 << 20
};

/* What may be added under the budget; less than at_least: nothing. *spill: it goes to the spill
 * file. */
static uint64_t next_size(const mtprof__store *store, uint64_t at_least, bool *spill)
{
    uint32_t n = store->n_segments;
    uint64_t size = n == 0 ? MTPROF__SEGMENT_FIRST : store->segments[n - 1]->bytes * 2;
    size = size < at_least ? at_least : size;
    size = size > MTPROF__SEGMENT_MAX ? MTPROF__SEGMENT_MAX : size;
    *spill = false;
    if (store->budget == 0 || (store->policy == MTPROF_POLICY_SPILL && store->path != NULL)) {
        return size;
    }
    uint64_t budget = store->budget + __atomic_load_n(&store->beside, __ATOMIC_RELAXED);
    uint64_t left = budget > store->total ? budget - store->total : 0;
    if (store->policy == MTPROF_POLICY_SPILL) {
        *spill = left < at_least;
        return *spill || size < left ? size : left;
    }
    return size < left ? size : left;
}

/* An unnamed file that disappears with the process. */
static int open_spill(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        char name[512];
        int n =
            snprintf(name, sizeof name, "%s/mtprof-spill-%ld-XXXXXX", directory, (long)getpid());
        if (n > 0 && (size_t)n < sizeof name) {
            fd = mkostemp(name, O_CLOEXEC);
            if (fd >= 0) {
                unlink(name);
            }
        }
    }
    return fd;
}

static bool refuse(mtprof__store *store, uint32_t *cause, uint32_t why, int error)
{
    *cause = why;
    __atomic_store_n(&store->refused_errno, error, __ATOMIC_RELAXED);
    __atomic_store_n(&store->refused, why + 1, __ATOMIC_RELEASE);
    return false;
}

/* Maps the segment; chunks of a file that cannot be mapped are written when full. */
static int map_segment(mtprof__store *store, mtprof__segment *segment)
{
    void *base = MAP_FAILED;
    if (segment->fd >= 0 && !store->behind) {
        base = mtprof__system.map(segment->bytes, segment->fd, (off_t)segment->fd_offset);
        bool mappable = base != MAP_FAILED ||
                        (errno != ENODEV && errno != EACCES && errno != EPERM && errno != EINVAL);
        if (!mappable && store->n_segments == 0 && segment->fd == store->fd) {
            store->behind = true;
        } else if (base == MAP_FAILED) {
            return errno;
        }
    }
    if (base == MAP_FAILED) {
        if (store->behind) {
            segment->fd = -1;
        }
        base = mtprof__system.map(segment->bytes, -1, 0);
    }
    if (base == MAP_FAILED) {
        return ENOMEM;
    }
    /* The child of a fork must neither write into our file nor pay for our memory. */
    madvise(base, segment->bytes, MADV_DONTFORK);
    segment->base = base;
    return 0;
}

/* Where the segment's bytes come from: allocated on disk before anything else. */
static int back_segment(mtprof__store *store, mtprof__segment *segment, bool spill)
{
    segment->fd = -1;
    if (spill) {
        if (store->spill_fd < 0 || !mtprof__file_is(store->spill_fd, store->spill_file)) {
            store->spill_fd = open_spill(store->spill_directory);
            if (store->spill_fd < 0) {
                return errno;
            }
            store->spill_file = mtprof__file_identify(store->spill_fd);
            store->spill_bytes = 0;
        }
        segment->fd = store->spill_fd;
        segment->file = store->spill_file;
        segment->fd_offset = store->spill_bytes;
    } else if (store->path != NULL) {
        segment->fd = mtprof__store_fd(store);
        segment->file = store->file;
        segment->fd_offset = segment->offset;
        if (segment->fd < 0) {
            return EBADF;
        }
    } else {
        return 0;
    }
    int error =
        mtprof__system.allocate(segment->fd, (off_t)segment->fd_offset, (off_t)segment->bytes);
    if (error == EOPNOTSUPP || error == EINVAL || error == ENOSYS) {
        /* No way to allocate ahead: a hole could raise SIGBUS, so chunks are written when full. */
        if (!spill && (store->behind || store->n_segments == 0)) {
            store->behind = true;
            error = 0;
        }
    }
    if (error == 0 && spill) {
        store->spill_bytes += segment->bytes;
    }
    return error;
}

/* Adds a segment. Caller holds `grow`. */
static bool add_segment(mtprof__store *store, uint64_t at_least, uint32_t *cause)
{
    bool spill = false;
    uint64_t size = next_size(store, at_least, &spill);
    if (size < at_least || store->n_segments == MTPROF__SEGMENTS) {
        return refuse(store, cause, MTPROF_LOST_BUDGET, 0);
    }
    mtprof__segment *segment = mtb_pages_take(sizeof *segment); /* perhaps in a signal handler */
    if (segment == NULL) {
        return refuse(store, cause, MTPROF_LOST_MEMORY, ENOMEM);
    }
    segment->offset = store->total;
    segment->bytes = size;
    int error = back_segment(store, segment, spill);
    /* A disk that is nearly full may still have room for less. */
    while (mtb_is_full(error) && segment->bytes > MTPROF__CHUNK_MAX_BYTES) {
        segment->bytes /= 2;
        error = back_segment(store, segment, spill);
    }
    bool disk = store->path != NULL || spill;
    if (error == 0) {
        error = map_segment(store, segment);
        disk = disk && error != ENOMEM;
    }
    if (error != 0) {
        mtb_pages_give(segment, sizeof *segment);
        return refuse(store, cause, disk ? MTPROF_LOST_DISK : MTPROF_LOST_MEMORY, error);
    }
    mtb_lock_acquire(&store->lock);
    store->segments[store->n_segments] = segment;
    store->total += segment->bytes;
    __atomic_store_n(&store->n_segments, store->n_segments + 1, __ATOMIC_RELEASE);
    mtb_lock_release(&store->lock);
    __atomic_store_n(&store->refused, 0, __ATOMIC_RELEASE);
    return true;
}

bool mtprof__store_grow(mtprof__store *store, uint64_t at_least, uint32_t *cause)
{
    uint32_t seen = __atomic_load_n(&store->n_segments, __ATOMIC_ACQUIRE);
    mtb_lock_acquire(&store->grow);
    /* Another thread may have been faster while we waited. */
    bool grown = __atomic_load_n(&store->n_segments, __ATOMIC_ACQUIRE) > seen ||
                 add_segment(store, at_least, cause);
    mtb_lock_release(&store->grow);
    return grown;
}

/* Bytes that can be cut without a new segment. Caller holds the lock. */
static uint64_t room(const mtprof__store *store)
{
    uint64_t bytes = 0;
    for (uint32_t i = store->current; i < store->n_segments; i++) {
        bytes += store->segments[i]->bytes - store->segments[i]->used;
    }
    return bytes;
}

static uint64_t populated_room(const mtprof__store *store)
{
    uint64_t bytes = 0;
    for (uint32_t i = store->current; i < store->n_segments; i++) {
        const mtprof__segment *s = store->segments[i];
        uint64_t populated = __atomic_load_n(&s->populated, __ATOMIC_RELAXED);
        bytes += populated > s->used ? populated - s->used : 0;
        if (populated < s->bytes) {
            break;
        }
    }
    return bytes;
}

/* How much to prepare ahead: at most what is in use already, so that small traces stay small. */
static uint64_t ahead_of(const mtprof__store *store)
{
    uint64_t used = __atomic_load_n(&store->frontier, __ATOMIC_RELAXED);
    uint64_t ahead = used * 2 > (512 << 10) ? used * 2 : 512 << 10;
    return ahead < MTPROF__AHEAD_BYTES ? ahead : MTPROF__AHEAD_BYTES;
}

bool mtprof__store_is_low(const mtprof__store *store)
{
    if (populated_room(store) < ahead_of(store) / 2) {
        bool bounded = __atomic_load_n(&store->refused, __ATOMIC_RELAXED) != 0;
        return !bounded || populated_room(store) < room(store);
    }
    return store->unchecked.count >= 8;
}

/* Touches pages without changing them, where the kernel cannot do it for us. */
static void touch(char *from, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i += 4096) {
        __atomic_fetch_or((uint64_t *)(void *)(from + i), 0, __ATOMIC_RELAXED);
    }
}

/* The next piece to prefault, or false. */
static bool next_piece(mtprof__store *store, mtprof__segment **segment, uint64_t *bytes)
{
    bool found = false;
    mtb_lock_acquire(&store->lock);
    uint64_t ready = populated_room(store);
    uint64_t ahead = ahead_of(store);
    for (uint32_t i = store->current; i < store->n_segments && !found && ready < ahead; i++) {
        mtprof__segment *s = store->segments[i];
        if (s->populated < s->used) {
            __atomic_store_n(&s->populated, s->used, __ATOMIC_RELAXED);
        }
        if (s->populated < s->bytes) {
            uint64_t left = s->bytes - s->populated;
            uint64_t step = left < POPULATE_STEP ? left : POPULATE_STEP;
            *segment = s;
            *bytes = step < ahead - ready ? step : mtb_round_up(ahead - ready, 4096);
            *bytes = *bytes > left ? left : *bytes;
            found = true;
        }
    }
    mtb_lock_release(&store->lock);
    return found;
}

bool mtprof__store_populate(mtprof__store *store)
{
    bool worked = false;
    mtb_lock_acquire(&store->lock);
    bool small = room(store) < ahead_of(store);
    mtb_lock_release(&store->lock);
    uint32_t cause;
    if (small && __atomic_load_n(&store->refused, __ATOMIC_RELAXED) == 0) {
        worked = mtprof__store_grow(store, store->chunk_max, &cause);
    }
    mtprof__segment *segment;
    uint64_t bytes;
    while (next_piece(store, &segment, &bytes)) {
        char *from = segment->base + segment->populated;
        if (madvise(from, bytes, MADV_POPULATE_WRITE) != 0) {
            touch(from, bytes);
        }
        __atomic_store_n(&segment->populated, segment->populated + bytes, __ATOMIC_RELAXED);
        worked = true;
    }
    return worked;
}
