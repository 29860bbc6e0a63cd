/* SPDX-License-Identifier: Apache-2.0
 *
 * The caching allocator, see memory.h.
 *
 *     take: thread's list ──(empty)──► common list of the class ──(empty)──► backend, a segment
 *     give: thread's list ──(full)───► common list of the class
 *
 * Classes are multiples of 64 bytes up to 512, then eight steps to each power of two. Small classes
 * share segments of many blocks; a large block is a segment of its own. Only host blocks pass
 * through thread's lists, and no list keeps its links inside the blocks: free memory is not read.
 *
 * What is exact (M1): `allocated` counts the bytes that were asked for, in one atomic sum, so the
 * largest value that any thread saw it take is the exact peak. `reserved` counts segments.
 * `allocations` and `releases` are counted per thread and summed by whoever asks.
 *
 * L1 A common list has room for every block of its class that exists: giving back cannot fail.
 * L2 The backend is called without the lock, but for the release of segments.
 */
#include "mindtorch/core/memory.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "mindtorch/core/backends.h"
#include "mindtorch/core/memory_classes.h"
#include "mindtorch/core/thread_cache.h"
#include "mindtorch/trace/op_trace.h"

#include <mindtorch/status.h>

#include <stdlib.h>
#include <string.h>

typedef struct segment {
    char *memory;
} segment;

/* Blocks of one class on one device that no thread's list holds, and where they came from. */
typedef struct common_list {
    void **blocks;
    size_t count, capacity;
    size_t n_blocks;   /* that exist */
    segment *segments; /* of classes that share them; else NULL */
    size_t n_segments, segment_capacity;
} common_list;

typedef struct device_memory {
    _Atomic uint64_t allocated, peak_allocated;
    _Atomic uint64_t reserved_bytes, peak_reserved; /* changed under the lock */
    _Atomic uint64_t allocations, releases;         /* other devices than the host */
    common_list classes[MT_SIZE_CLASSES];           /* under the lock */
} device_memory;

mtb_lock mt__memory_lock = MTB_LOCK_INIT(MTB_RANK_MEMORY);
static device_memory host;
static _Atomic(device_memory *) accelerators[256]; /* made when first used, stay */

/* ---- AddressSanitizer: memory in lists must not be touched, nor what lies behind a tensor ---- */

#if defined(__SANITIZE_ADDRESS__)
#    define MEMORY_ASAN 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define MEMORY_ASAN 1
#    endif
#endif
#ifdef MEMORY_ASAN
#    include <sanitizer/asan_interface.h>
enum {
    RED_ZONE = 64
};
#    define POISON(memory, bytes)   ASAN_POISON_MEMORY_REGION((memory), (bytes))
#    define UNPOISON(memory, bytes) ASAN_UNPOISON_MEMORY_REGION((memory), (bytes))
#else
enum {
    RED_ZONE = 0
};
#    define POISON(memory, bytes)   ((void)(memory))
#    define UNPOISON(memory, bytes) ((void)(memory))
#endif

/* ---- devices ---- */

static MT_NOINLINE device_memory *accelerator_memory(mt_device device)
{
    _Atomic(device_memory *) *place = &accelerators[mt__device_index(device)];
    device_memory *memory = atomic_load_explicit(place, memory_order_acquire);
    if (memory != NULL) {
        return memory;
    }
    device_memory *made = mtb_calloc(1, sizeof *made);
    if (made == NULL) {
        return NULL;
    }
    /* Pairs with the load above; who comes second uses the first one's. */
    if (atomic_compare_exchange_strong_explicit(place, &memory, made, memory_order_acq_rel,
                                                memory_order_acquire)) {
        return made;
    }
    mtb_free(made);
    return memory;
}

/* NULL: memory for our own tables was refused. */
MT_INLINE device_memory *memory_of(mt_device device)
{
    return MT_LIKELY(device == MT_CPU) ? &host : accelerator_memory(device);
}

MT_INLINE void raise_peak(_Atomic uint64_t *peak, uint64_t value)
{
    uint64_t old = atomic_load_explicit(peak, memory_order_relaxed);
    while (MT_UNLIKELY(value > old) &&
           !atomic_compare_exchange_weak_explicit(peak, &old, value, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

static MT_COLD int refuse(mt_device device, uint64_t bytes)
{
    (void)mtb_fail(MT_ENOMEM, "%s: can't allocate memory: you tried to allocate %llu bytes",
                   mt_device_name(device), (unsigned long long)bytes);
    return MT_ENOMEM;
}

/* ---- segments ---- */

/* Blocks that are cut from one segment of a class. */
static size_t blocks_per_segment(mt_device device, uint32_t block_class)
{
    /* The host's backend is a heap and serves small pieces well; others' are slow. */
    uint64_t segment_bytes = device == MT_CPU ? UINT64_C(64) << 10 : UINT64_C(2) << 20;
    uint64_t size = mt__class_bytes(block_class);
    return size * 2 <= segment_bytes ? (size_t)(segment_bytes / size) : 1;
}

/* Makes the list's arrays fit for one more segment (L1). */
static bool grow_list(common_list *list, size_t n_blocks)
{
    void **blocks = list->blocks;
    bool fits =
        mtb_grow((void **)&blocks, &list->capacity, list->n_blocks + n_blocks, sizeof *blocks);
    list->blocks = blocks;
    if (fits && n_blocks > 1) {
        void *segments = list->segments;
        fits = mtb_grow(&segments, &list->segment_capacity, list->n_segments + 1, sizeof(segment));
        list->segments = segments;
    }
    return fits;
}

static bool add_segment(device_memory *memory, uint32_t block_class, char *from, size_t n_blocks)
{
    size_t size = (size_t)mt__class_bytes(block_class);
    common_list *list = &memory->classes[block_class];
    mtb_lock_acquire(&mt__memory_lock);
    if (!grow_list(list, n_blocks)) {
        mtb_lock_release(&mt__memory_lock);
        return false;
    }
    if (n_blocks > 1) {
        list->segments[list->n_segments++] = (segment){.memory = from};
    }
    for (size_t i = n_blocks; i-- > 0;) {
        list->blocks[list->count++] = from + i * size;
    }
    list->n_blocks += n_blocks;
    uint64_t reserved_bytes =
        atomic_fetch_add_explicit(&memory->reserved_bytes, n_blocks * size, memory_order_relaxed) +
        n_blocks * size;
    raise_peak(&memory->peak_reserved, reserved_bytes);
    mtb_lock_release(&mt__memory_lock);
    return true;
}

/* A segment's blocks wait in the common list after it. */
static int new_segment(mt_device device, device_memory *memory, uint32_t block_class)
{
    const mt_backend *backend = mt__backend_of(device);
    size_t n_blocks = blocks_per_segment(device, block_class);
    size_t bytes = n_blocks * (size_t)mt__class_bytes(block_class);
    uint32_t index = mt__device_index(device);
    void *from = NULL;
    if (backend == NULL) {
        return mt__device_check("allocate", device);
    }
    if (backend->allocate(backend->context, index, bytes, &from) != MT_OK) {
        (void)mt_device_empty_cache(device); /* M3 */
        from = NULL;
        if (backend->allocate(backend->context, index, bytes, &from) != MT_OK) {
            return refuse(device, bytes);
        }
    }
    if (device == MT_CPU) {
        POISON(from, bytes); /* before other threads can take blocks of it */
    }
    if (!add_segment(memory, block_class, from, n_blocks)) {
        if (device == MT_CPU) {
            UNPOISON(from, bytes);
        }
        backend->release(backend->context, index, from, bytes);
        return refuse(device, bytes);
    }
    return MT_OK;
}

/* Moves up to `wanted` blocks out of the common list; makes a segment if there is none. *taken is
 * at least 1 on success. */
static int take_common(mt_device device, device_memory *memory, uint32_t block_class,
                       uint32_t wanted, void **blocks, uint32_t *taken)
{
    common_list *list = &memory->classes[block_class];
    for (;;) {
        mtb_lock_acquire(&mt__memory_lock);
        uint32_t n = list->count < wanted ? (uint32_t)list->count : wanted;
        for (uint32_t i = n; i-- > 0;) {
            blocks[i] = list->blocks[--list->count];
        }
        mtb_lock_release(&mt__memory_lock);
        if (n != 0) {
            *taken = n;
            return MT_OK;
        }
        /* Another thread may be faster in taking what this makes: then again. */
        MT_TRY(new_segment(device, memory, block_class));
    }
}

static void give_common(device_memory *memory, uint32_t block_class, void *const *blocks,
                        uint32_t count)
{
    common_list *list = &memory->classes[block_class];
    mtb_lock_acquire(&mt__memory_lock);
    MT_ASSERT(list->count + count <= list->capacity); /* L1 */
    memcpy(list->blocks + list->count, blocks, count * sizeof *blocks);
    list->count += count;
    mtb_lock_release(&mt__memory_lock);
}

/* ---- threads' lists ---- */

void mt__memory_cache_init(mt__thread_cache *cache)
{
    for (uint32_t i = 0; i < MT_CACHE_CLASSES; i++) {
        uint64_t limit = (UINT64_C(64) << 10) / mt__class_bytes(i);
        cache->blocks[i].limit = limit > MT_CACHE_BLOCKS ? MT_CACHE_BLOCKS
                                 : limit < 4             ? 4
                                                         : (uint32_t)limit;
    }
}

void mt__memory_cache_flush(mt__thread_cache *cache)
{
    for (uint32_t i = 0; i < MT_CACHE_CLASSES; i++) {
        mt__block_list *list = &cache->blocks[i];
        if (list->count != 0) {
            give_common(&host, i, list->blocks, list->count);
            list->count = 0;
        }
    }
}

static MT_NOINLINE int refill(mt__block_list *list, uint32_t block_class)
{
    return take_common(MT_CPU, &host, block_class, list->limit / 2, list->blocks, &list->count);
}

/* The older half goes, the warmer one stays. */
static MT_NOINLINE void spill(mt__block_list *list, uint32_t block_class)
{
    uint32_t half = list->count / 2;
    give_common(&host, block_class, list->blocks, half);
    list->count -= half;
    memmove(list->blocks, list->blocks + half, list->count * sizeof *list->blocks);
}

/* ---- take and give ---- */

MT_INLINE void note_taken(mt_device device, device_memory *memory, const void *block,
                          uint64_t bytes)
{
    uint64_t allocated =
        atomic_fetch_add_explicit(&memory->allocated, bytes, memory_order_relaxed) + bytes;
    raise_peak(&memory->peak_allocated, allocated);
    mt__trace_memory(device, block, (int64_t)bytes, allocated,
                     atomic_load_explicit(&memory->reserved_bytes, memory_order_relaxed));
}

static MT_NOINLINE int take_slow(mt_device device, uint64_t bytes, uint32_t block_class, void **out)
{
    device_memory *memory = memory_of(device);
    uint32_t taken;
    if (memory == NULL) {
        return refuse(device, bytes);
    }
    MT_TRY(take_common(device, memory, block_class, 1, out, &taken));
    if (device != MT_CPU) {
        atomic_fetch_add_explicit(&memory->allocations, 1, memory_order_relaxed);
    } else if (mt__cache() != NULL) {
        MT_CACHE_COUNT(&mt__cache()->allocations, 1);
    } else {
        mt__cache_count_blocks(1, 0);
    }
    note_taken(device, memory, *out, bytes);
    return MT_OK;
}

int mt__memory_take(mt_device device, uint64_t bytes, void **out, uint32_t *block_class)
{
    *out = NULL;
    *block_class = 0;
    if (bytes > MT_LARGEST_BLOCK) {
        return refuse(device, bytes);
    }
#if defined(MT_DEBUG) && MT_DEBUG
    if (mtb_fail_here()) { /* so that tests can refuse any block, not only new segments */
        return refuse(device, bytes);
    }
#endif
    uint32_t found = mt__class_of(bytes + RED_ZONE);
    mt__thread_cache *cache;
    if (MT_LIKELY(device == MT_CPU && found < MT_CACHE_CLASSES && (cache = mt__cache()) != NULL)) {
        mt__block_list *list = &cache->blocks[found];
        if (MT_UNLIKELY(list->count == 0)) {
            MT_TRY(refill(list, found));
        }
        *out = list->blocks[--list->count];
        MT_CACHE_COUNT(&cache->allocations, 1);
        note_taken(MT_CPU, &host, *out, bytes);
    } else {
        MT_TRY(take_slow(device, bytes, found, out));
    }
    *block_class = found;
    if (device == MT_CPU) {
        UNPOISON(*out, bytes);
    }
    return MT_OK;
}

void mt__memory_give(mt_device device, void *memory, uint64_t bytes, uint32_t block_class)
{
    device_memory *owner = memory_of(device); /* it is there: the memory came from it */
    uint64_t allocated =
        atomic_fetch_sub_explicit(&owner->allocated, bytes, memory_order_relaxed) - bytes;
    /* Told before another thread can take the memory and tell that. */
    mt__trace_memory(device, memory, -(int64_t)bytes, allocated,
                     atomic_load_explicit(&owner->reserved_bytes, memory_order_relaxed));
    if (device != MT_CPU) {
        atomic_fetch_add_explicit(&owner->releases, 1, memory_order_relaxed);
        give_common(owner, block_class, &memory, 1);
        return;
    }
    POISON(memory, (size_t)mt__class_bytes(block_class));
    mt__thread_cache *cache = mt__cache();
    if (MT_UNLIKELY(cache == NULL)) {
        mt__cache_count_blocks(0, 1);
        give_common(owner, block_class, &memory, 1);
        return;
    }
    MT_CACHE_COUNT(&cache->releases, 1);
    if (MT_UNLIKELY(block_class >= MT_CACHE_CLASSES)) {
        give_common(owner, block_class, &memory, 1);
        return;
    }
    mt__block_list *list = &cache->blocks[block_class];
    if (MT_UNLIKELY(list->count == list->limit)) {
        spill(list, block_class);
    }
    list->blocks[list->count++] = memory;
}

uint64_t mt__memory_allocated(mt_device device)
{
    device_memory *memory = memory_of(device);
    return memory != NULL ? atomic_load_explicit(&memory->allocated, memory_order_relaxed) : 0;
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
    const segment *x = a;
    const segment *y = b;
    return ((uintptr_t)x->memory > (uintptr_t)y->memory) -
           ((uintptr_t)x->memory < (uintptr_t)y->memory);
}

/* Who is being emptied. */
typedef struct emptying {
    mt_device device;
    const mt_backend *backend;
    device_memory *memory;
} emptying;

static void release_segment(const emptying *job, void *from, size_t bytes)
{
    if (job->device == MT_CPU) {
        UNPOISON(from, bytes);
    }
    job->backend->release(job->backend->context, mt__device_index(job->device), from, bytes);
    atomic_fetch_sub_explicit(&job->memory->reserved_bytes, bytes, memory_order_relaxed);
}

/* Releases the segments of a class of which every block is in the list. Both are put in order
 * first, so that one walk finds the blocks of each. */
static void empty_shared(const emptying *job, common_list *list, size_t size, size_t per_segment)
{
    qsort(list->blocks, list->count, sizeof *list->blocks, compare_blocks);
    qsort(list->segments, list->n_segments, sizeof *list->segments, compare_segments);
    size_t kept_segments = 0;
    size_t kept_blocks = 0;
    size_t block = 0;
    for (size_t i = 0; i < list->n_segments; i++) {
        segment here = list->segments[i];
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

static void empty_class(const emptying *job, uint32_t block_class)
{
    common_list *list = &job->memory->classes[block_class];
    size_t size = (size_t)mt__class_bytes(block_class);
    size_t per_segment = blocks_per_segment(job->device, block_class);
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

int mt_device_empty_cache(mt_device device)
{
    MT_TRY(mt__device_check("empty_cache", device));
    emptying job = {device, mt__backend_of(device), memory_of(device)};
    if (job.memory == NULL) {
        return MT_OK; /* nothing was ever taken */
    }
    if (device == MT_CPU && mt__cache_here != NULL) {
        mt__memory_cache_flush(mt__cache_here);
    }
    mtb_lock_acquire(&mt__memory_lock);
    for (uint32_t i = 0; i < MT_SIZE_CLASSES; i++) {
        empty_class(&job, i);
    }
    mtb_lock_release(&mt__memory_lock);
    return MT_OK;
}

/* ---- counters ---- */

int mt_device_memory_stats(mt_device device, mt_memory_stats *stats)
{
    if (stats == NULL || stats->struct_size < sizeof(uint32_t)) {
        return mtb_fail(MT_EVALUE, "memory_stats: struct_size is not set");
    }
    MT_TRY(mt__device_check("memory_stats", device));
    device_memory *memory = memory_of(device);
    if (memory == NULL) {
        return mtb_fail(MT_ENOMEM, "memory_stats: no memory for the tables of %s",
                        mt_device_name(device));
    }
    uint32_t struct_size = stats->struct_size;
    mt_memory_stats all = {
        .struct_size = struct_size,
        .allocated_bytes = atomic_load_explicit(&memory->allocated, memory_order_relaxed),
        .peak_allocated_bytes = atomic_load_explicit(&memory->peak_allocated, memory_order_relaxed),
        .reserved_bytes = atomic_load_explicit(&memory->reserved_bytes, memory_order_relaxed),
        .peak_reserved_bytes = atomic_load_explicit(&memory->peak_reserved, memory_order_relaxed),
        .allocations = atomic_load_explicit(&memory->allocations, memory_order_relaxed),
        .releases = atomic_load_explicit(&memory->releases, memory_order_relaxed),
    };
    if (device == MT_CPU) {
        mt__cache_sums sums;
        mt__cache_sum(&sums);
        all.allocations = sums.allocations;
        all.releases = sums.releases;
    }
    memcpy(stats, &all, struct_size < sizeof all ? struct_size : sizeof all);
    return MT_OK;
}

int mt_device_reset_peaks(mt_device device)
{
    MT_TRY(mt__device_check("reset_peaks", device));
    device_memory *memory = memory_of(device);
    if (memory == NULL) {
        return MT_OK; /* nothing was ever taken */
    }
    mtb_lock_acquire(&mt__memory_lock);
    atomic_store_explicit(&memory->peak_allocated,
                          atomic_load_explicit(&memory->allocated, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&memory->peak_reserved,
                          atomic_load_explicit(&memory->reserved_bytes, memory_order_relaxed),
                          memory_order_relaxed);
    mtb_lock_release(&mt__memory_lock);
    return MT_OK;
}
