/* SPDX-License-Identifier: Apache-2.0
 *
 * The common lists of the caching allocator, see memory_lists.h.
 *
 * Small classes share segments of many blocks; a large block is a segment of its own. No list keeps
 * its links inside the blocks: free memory is not read.
 *
 *   ML1  A common list has room for every block of its key that exists: giving back cannot fail.
 *   ML2  The backend is called without the lock, except to query events and to release segments.
 *        For the latter the lock is held while the device is waited for, so that no block enters a
 *        list whose work has not been waited for. A backend's own threads never take our locks.
 *   ML3  A block in a list was last used on the stream of its list, or that use is over: taking it
 *        there needs no waiting. Blocks that other streams use stay in `waiting` until those uses
 *        are over.
 *   ML4  The child of a fork() has none of its parent's blocks of accelerators (thread_cache.h,
 *        TH4): its lists are empty at first, and blocks of the parent that are given back are
 *        dropped. If a backend does work in a child, it allocates new segments.
 */
#include "mindtorch/core/memory/memory_lists.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "mindtorch/core/device/device_failure.h"
#include "mindtorch/core/thread/thread_cache.h"

#include <mindtorch/status.h>

#include <stdlib.h>
#include <string.h>

/* ---- lists ---- */

/* NULL: no memory for our own tables. */
static mt__common_list *list_of(mt__device_memory *memory, uint32_t key)
{
    _Atomic(mt__common_list *) *place = &memory->streams[mt__key_stream(key)];
    mt__common_list *lists = atomic_load_explicit(place, memory_order_acquire);
    if (MT_UNLIKELY(lists == NULL)) {
        mt__common_list *made = mtb_calloc(MT_SIZE_CLASSES, sizeof *made);
        if (made == NULL) {
            return NULL;
        }
        /* Pairs with the load above; the second thread uses what the first one made. */
        if (atomic_compare_exchange_strong_explicit(place, &lists, made, memory_order_acq_rel,
                                                    memory_order_acquire)) {
            lists = made;
        } else {
            mtb_free(made);
        }
    }
    return lists + mt__key_class(key);
}

static void push(mt__common_list *list, void *block)
{
    MT_ASSERT(list->count < list->capacity); /* ML1 */
    list->blocks[list->count++] = block;
}

/* Moves blocks that no stream uses any more to the list; with `wait` it waits for all of them.
 * Under the lock. */
static void collect(mt__common_list *list, bool wait)
{
    mt__uses **link = &list->waiting;
    while (*link != NULL) {
        mt__uses *uses = *link;
        if (wait) {
            mt__uses_wait(uses);
        } else if (!mt__uses_done(uses)) {
            link = &uses->next;
            continue;
        }
        *link = uses->next;
        push(list, uses->block);
        mt__uses_free(uses);
    }
}

/* ---- segments ---- */

enum {
    TRIES = 8 /* to get memory that was freed */
};

/* Blocks that are cut from one segment of a class. */
static size_t blocks_per_segment(mt_device device, uint32_t block_class)
{
    /* The host's backend is a heap and serves small pieces well; others' are slow. */
    uint64_t segment_bytes = device == MT_CPU ? UINT64_C(64) << 10 : UINT64_C(2) << 20;
    uint64_t size = mt__class_bytes(block_class);
    return size * 2 <= segment_bytes ? (size_t)(segment_bytes / size) : 1;
}

/* Grows the list's arrays for one more segment (ML1). */
static bool grow_list(mt__common_list *list, size_t n_blocks)
{
    void **blocks = list->blocks;
    bool fits =
        mtb_grow((void **)&blocks, &list->capacity, list->n_blocks + n_blocks, sizeof *blocks);
    list->blocks = blocks;
    if (fits && n_blocks > 1) {
        void *segments = list->segments;
        fits =
            mtb_grow(&segments, &list->segment_capacity, list->n_segments + 1, sizeof(mt__segment));
        list->segments = segments;
    }
    return fits;
}

static bool add_segment(mt__device_memory *memory, mt__common_list *list, size_t size, char *from,
                        size_t n_blocks)
{
    mtb_lock_acquire(memory->lock);
    if (!grow_list(list, n_blocks)) {
        mtb_lock_release(memory->lock);
        return false;
    }
    if (n_blocks > 1) {
        list->segments[list->n_segments++] = (mt__segment){.memory = from};
    }
    list->n_blocks += n_blocks;
    for (size_t i = n_blocks; i-- > 0;) {
        push(list, from + i * size);
    }
    uint64_t reserved_bytes =
        atomic_fetch_add_explicit(&memory->reserved_bytes, n_blocks * size, memory_order_relaxed) +
        n_blocks * size;
    mt__raise_peak(&memory->peak_reserved, reserved_bytes);
    mtb_lock_release(memory->lock);
    return true;
}

/* MEM3: asks the backend, empties the caches if it refuses, and asks again. Another thread may take
 * the freed memory first, so this repeats as long as there is something to release.
 */
static int ask_backend(mt_device device, mt__device_memory *memory, const mt_backend *backend,
                       size_t bytes, void **from)
{
    uint32_t index = mt__device_index(device);
    int status = backend->allocate(backend->context, index, bytes, from);
    for (int i = 0; status == MT_ENOMEM && i < TRIES; i++) {
        uint64_t given_back;
        MT_TRY(mt__lists_empty(device, memory, &given_back));
        if (i != 0 && given_back == 0) {
            break;
        }
        *from = NULL;
        status = backend->allocate(backend->context, index, bytes, from);
    }
    return status == MT_ENOMEM ? MT_EOOM : status;
}

/* Allocates a segment and puts its blocks into the common list. */
static int new_segment(mt_device device, mt__device_memory *memory, mt__common_list *list,
                       uint32_t block_class)
{
    const mt_backend *backend = mt__backend_of(device);
    size_t n_blocks = blocks_per_segment(device, block_class);
    size_t size = (size_t)mt__class_bytes(block_class);
    size_t bytes = n_blocks * size;
    void *from = NULL;
    if (backend == NULL) {
        return mt__device_check("allocate", device);
    }
    MT_TRY(ask_backend(device, memory, backend, bytes, &from));
    if (device == MT_CPU) {
        POISON(from, bytes); /* before other threads can take blocks of it */
    }
    if (!add_segment(memory, list, size, from, n_blocks)) {
        if (device == MT_CPU) {
            UNPOISON(from, bytes);
        }
        backend->release(backend->context, mt__device_index(device), from, bytes);
        return MT_ENOMEM;
    }
    return MT_OK;
}

int mt__lists_take(mt_device device, mt__device_memory *memory, uint32_t key, uint32_t wanted,
                   void **blocks, uint32_t *taken)
{
    mt__common_list *list = list_of(memory, key);
    if (MT_UNLIKELY(list == NULL)) {
        return MT_ENOMEM;
    }
    for (;;) {
        mtb_lock_acquire(memory->lock);
        if (list->count == 0 && list->waiting != NULL) {
            collect(list, false);
        }
        uint32_t n = list->count < wanted ? (uint32_t)list->count : wanted;
        for (uint32_t i = n; i-- > 0;) {
            blocks[i] = list->blocks[--list->count];
        }
        mtb_lock_release(memory->lock);
        if (n != 0) {
            *taken = n;
            return MT_OK;
        }
        /* Another thread may take the new blocks first: then try again. */
        MT_TRY(new_segment(device, memory, list, mt__key_class(key)));
    }
}

/* ML4 */
static bool is_dropped(const mt__device_memory *memory)
{
    return mt__forked && memory->lock == &mt__device_memory_lock;
}

void mt__lists_give(mt__device_memory *memory, uint32_t key, void *const *blocks, uint32_t count)
{
    if (MT_UNLIKELY(is_dropped(memory))) {
        return;
    }
    mt__common_list *list = list_of(memory, key); /* exists: the blocks came from it */
    mtb_lock_acquire(memory->lock);
    MT_ASSERT(list->count + count <= list->capacity); /* ML1 */
    memcpy(list->blocks + list->count, blocks, count * sizeof *blocks);
    list->count += count;
    mtb_lock_release(memory->lock);
}

void mt__lists_give_used(mt__device_memory *memory, uint32_t key, void *block, mt__uses *uses)
{
    mt__common_list *list = list_of(memory, key);
    uses->block = block;
    mtb_lock_acquire(memory->lock);
    uses->next = list->waiting;
    list->waiting = uses;
    mtb_lock_release(memory->lock);
}

/* ---- emptying ---- */

static int compare_blocks(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (void *const *)a;
    uintptr_t y = (uintptr_t) * (void *const *)b;
    return (x > y) - (x < y);
}

static int compare_segments(const void *a, const void *b)
{
    const mt__segment *x = a;
    const mt__segment *y = b;
    return ((uintptr_t)x->memory > (uintptr_t)y->memory) -
           ((uintptr_t)x->memory < (uintptr_t)y->memory);
}

/* State of emptying the caches of a device. */
typedef struct emptying {
    mt_device device;
    const mt_backend *backend;
    mt__device_memory *memory;
    uint64_t given_back; /* bytes */
} emptying;

static void release_segment(emptying *job, void *from, size_t bytes)
{
    if (job->device == MT_CPU) {
        UNPOISON(from, bytes);
    }
    job->backend->release(job->backend->context, mt__device_index(job->device), from, bytes);
    atomic_fetch_sub_explicit(&job->memory->reserved_bytes, bytes, memory_order_relaxed);
    job->given_back += bytes;
}

/* Releases the segments of a class of which every block is in the list. Both are sorted first, so
 * that one pass finds the blocks of each segment. */
static void empty_shared(emptying *job, mt__common_list *list, size_t size, size_t per_segment)
{
    qsort(list->blocks, list->count, sizeof *list->blocks, compare_blocks);
    qsort(list->segments, list->n_segments, sizeof *list->segments, compare_segments);
    size_t kept_segments = 0;
    size_t kept_blocks = 0;
    size_t block = 0;
    for (size_t i = 0; i < list->n_segments; i++) {
        mt__segment here = list->segments[i];
        uintptr_t end = (uintptr_t)here.memory + per_segment * size;
        size_t first = block;
        while (block < list->count && (uintptr_t)list->blocks[block] < end) {
            block++;
        }
        if (block - first == per_segment) {
            release_segment(job, here.memory, per_segment * size);
            list->n_blocks -= per_segment;
            continue;
        }
        list->segments[kept_segments++] = here;
        memmove(list->blocks + kept_blocks, list->blocks + first,
                (block - first) * sizeof *list->blocks);
        kept_blocks += block - first;
    }
    list->n_segments = kept_segments;
    list->count = kept_blocks;
}

static void empty_list(emptying *job, mt__common_list *list, uint32_t block_class)
{
    size_t size = (size_t)mt__class_bytes(block_class);
    size_t per_segment = blocks_per_segment(job->device, block_class);
    if (list->waiting != NULL) {
        collect(list, true);
    }
    if (list->count == 0) {
        return;
    }
    if (per_segment > 1) {
        empty_shared(job, list, size, per_segment);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        release_segment(job, list->blocks[i], size);
    }
    list->n_blocks -= list->count;
    list->count = 0;
}

/* Under the lock. */
static int empty_all(emptying *job)
{
    if (job->device != MT_CPU) {
        int status =
            job->backend->synchronize(job->backend->context, mt__device_index(job->device));
        if (status == MT_EDEVICE) {
            return status;
        }
        mt__failure_keep(job->device, status);
    }
    for (uint32_t stream = 0; stream < MT_STREAMS; stream++) {
        mt__common_list *lists =
            atomic_load_explicit(&job->memory->streams[stream], memory_order_acquire);
        for (uint32_t i = 0; lists != NULL && i < MT_SIZE_CLASSES; i++) {
            empty_list(job, &lists[i], i);
        }
    }
    return MT_OK;
}

int mt__lists_empty(mt_device device, mt__device_memory *memory, uint64_t *given_back)
{
    emptying job = {device, mt__backend_of(device), memory, 0};
    if (device == MT_CPU && mt__cache_here != NULL) {
        mt__memory_cache_flush(mt__cache_here);
    }
    mtb_lock_acquire(memory->lock);
    int status = empty_all(&job);
    mtb_lock_release(memory->lock);
    *given_back = job.given_back;
    return status;
}
