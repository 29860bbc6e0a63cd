/* SPDX-License-Identifier: Apache-2.0
 *
 * The caching allocator, see memory.h.
 *
 *     take: thread's list ──(empty)──► common list of the class ──(empty)──► backend, a segment
 *     give: thread's list ──(full)───► common list of the class
 *
 * Classes are multiples of 64 bytes up to 512, then eight steps to each power of two. Only host
 * blocks pass through thread's lists. A block of an accelerator belongs to the stream that was
 * current when it was taken, and is kept in a list of that stream when it is free (memory_lists.c).
 *
 * What is exact (MEM1): `allocated` counts the bytes that were asked for, in one atomic sum, so the
 * largest value that any thread saw it take is the exact peak. `reserved` counts segments.
 * `allocations` and `releases` are counted per thread and summed when they are read.
 */
#include "mindtorch/core/memory/memory.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "mindtorch/core/device/device_failure.h"
#include "mindtorch/core/memory/memory_lists.h"
#include "mindtorch/core/thread/thread_cache.h"
#include "mindtorch/trace/op_trace.h"

#include <mindtorch/status.h>

#include <stdio.h>
#include <string.h>

mtb_lock mt__memory_lock = MTB_LOCK_INIT(MTB_RANK_MEMORY);
mtb_lock mt__device_memory_lock = MTB_LOCK_INIT(MTB_RANK_DEVICE_MEMORY);
static mt__common_list host_lists[MT_SIZE_CLASSES];
static mt__device_memory host = {.lock = &mt__memory_lock, .streams = {host_lists}};
static _Atomic(mt__device_memory *) accelerators[256]; /* made when first used, stay */

/* ---- devices ---- */

static MT_NOINLINE mt__device_memory *accelerator_memory(mt_device device)
{
    _Atomic(mt__device_memory *) *place = &accelerators[mt__device_index(device)];
    mt__device_memory *memory = atomic_load_explicit(place, memory_order_acquire);
    if (memory != NULL) {
        return memory;
    }
    mt__device_memory *made = mtb_calloc(1, sizeof *made);
    if (made == NULL) {
        return NULL;
    }
    made->lock = &mt__device_memory_lock;
    /* Pairs with the load above; the second thread uses what the first one made. */
    if (atomic_compare_exchange_strong_explicit(place, &memory, made, memory_order_acq_rel,
                                                memory_order_acquire)) {
        return made;
    }
    mtb_free(made);
    return memory;
}

void mt__memory_after_fork(void)
{
    for (size_t i = 0; i < MT_COUNT(accelerators); i++) {
        mt__device_memory *memory = atomic_load_explicit(&accelerators[i], memory_order_relaxed);
        for (uint32_t stream = 0; memory != NULL && stream < MT_STREAMS; stream++) {
            atomic_store_explicit(&memory->streams[stream], NULL, memory_order_relaxed);
        }
    }
}

/* NULL: no memory for our own tables. */
MT_INLINE mt__device_memory *memory_of(mt_device device)
{
    return MT_LIKELY(device == MT_CPU) ? &host : accelerator_memory(device);
}

/* ---- out of memory ---- */

enum {
    SIZE_TEXT = 32
};

/* Sizes in torch's format: the next unit is used from 1024 on. */
static const char *size_text(uint64_t bytes, char text[SIZE_TEXT])
{
    static const char *const units[] = {"KiB", "MiB", "GiB"};
    if (bytes <= 1024) {
        (void)snprintf(text, SIZE_TEXT, "%u bytes", (unsigned)bytes);
        return text;
    }
    uint32_t unit = 0;
    double shown = (double)bytes / 1024.0;
    while (shown > 1024.0 && unit + 1 < MT_COUNT(units)) {
        shown /= 1024.0;
        unit++;
    }
    (void)snprintf(text, SIZE_TEXT, "%.2f %s", shown, units[unit]);
    return text;
}

static int refuse_far(mt_device device, uint64_t bytes, uint64_t allocated, uint64_t reserved_bytes)
{
    char sizes[5][SIZE_TEXT];
    char capacity[4 * SIZE_TEXT] = "";
    const mt_backend *backend = mt__backend_of(device);
    uint32_t index = mt__device_index(device);
    mt_device_info info = {.struct_size = sizeof info};
    if (backend != NULL && backend->device_info(backend->context, index, &info) == MT_OK &&
        info.total_bytes != 0) {
        (void)snprintf(capacity, sizeof capacity,
                       " NPU %u has a total capacity of %s of which %s is free.", index,
                       size_text(info.total_bytes, sizes[0]), size_text(info.free_bytes, sizes[1]));
    }
    uint64_t unused = reserved_bytes > allocated ? reserved_bytes - allocated : 0;
    (void)mtb_fail(MT_EOOM,
                   "NPU out of memory. Tried to allocate %s.%s Of the allocated memory %s is "
                   "allocated by MindTorch, and %s is reserved by MindTorch but unallocated.",
                   size_text(bytes, sizes[2]), capacity, size_text(allocated, sizes[3]),
                   size_text(unused, sizes[4]));
    return MT_EOOM;
}

static MT_COLD int refuse_tables(mt_device device)
{
    return mtb_fail(MT_ENOMEM, "%s: no memory for the tables of its allocator",
                    mt_device_name(device));
}

static MT_COLD int refuse(mt_device device, const mt__device_memory *memory, uint64_t bytes)
{
    uint64_t allocated = atomic_load_explicit(&memory->allocated, memory_order_relaxed);
    uint64_t reserved_bytes = atomic_load_explicit(&memory->reserved_bytes, memory_order_relaxed);
    mt__trace_out_of_memory(device, bytes, allocated, reserved_bytes);
    if (device != MT_CPU) {
        return refuse_far(device, bytes, allocated, reserved_bytes);
    }
    (void)mtb_fail(MT_ENOMEM, "%s: can't allocate memory: you tried to allocate %llu bytes",
                   mt_device_name(device), (unsigned long long)bytes);
    return MT_ENOMEM;
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
            mt__lists_give(&host, i, list->blocks, list->count);
            list->count = 0;
        }
    }
}

static MT_NOINLINE int refill(mt__block_list *list, uint32_t block_class, uint64_t bytes)
{
    int status =
        mt__lists_take(MT_CPU, &host, block_class, list->limit / 2, list->blocks, &list->count);
    return status != MT_OK ? refuse(MT_CPU, &host, bytes) : MT_OK;
}

/* Moves the older half out; the recently used half, which is warm in the cache, stays. */
static MT_NOINLINE void spill(mt__block_list *list, uint32_t block_class)
{
    uint32_t half = list->count / 2;
    mt__lists_give(&host, block_class, list->blocks, half);
    list->count -= half;
    memmove(list->blocks, list->blocks + half, list->count * sizeof *list->blocks);
}

/* ---- take and give ---- */

MT_INLINE void note_taken(mt_device device, mt__device_memory *memory, const void *block,
                          uint64_t bytes)
{
    uint64_t allocated =
        atomic_fetch_add_explicit(&memory->allocated, bytes, memory_order_relaxed) + bytes;
    mt__raise_peak(&memory->peak_allocated, allocated);
    mt__trace_memory(device, block, (int64_t)bytes, allocated,
                     atomic_load_explicit(&memory->reserved_bytes, memory_order_relaxed));
}

static MT_NOINLINE int take_slow(mt_device device, uint64_t bytes, uint32_t block_class, void **out,
                                 uint32_t *key)
{
    uint32_t taken;
    if (device == MT_META) {
        return MT_OK; /* NULL, which is never given back */
    }
    if (mt__device_index(device) >= MT_DEVICES) {
        return mt__device_check("allocate", device);
    }
    mt__device_memory *memory = memory_of(device);
    if (memory == NULL) {
        return refuse_tables(device);
    }
    *key = mt__key_of(block_class, device == MT_CPU ? 0 : mt__stream_number(device));
    int status = mt__lists_take(device, memory, *key, 1, out, &taken);
    if (status != MT_OK) {
        bool refused = status == MT_EOOM || (status == MT_ENOMEM && device == MT_CPU);
        return refused               ? refuse(device, memory, bytes)
               : status == MT_ENOMEM ? refuse_tables(device)
                                     : status;
    }
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

/* Refused without calling a backend; the device may be invalid. */
static MT_COLD int refuse_early(mt_device device, uint64_t bytes)
{
    if (device == MT_META) {
        return MT_OK;
    }
    MT_TRY(mt__device_check("allocate", device));
    mt__device_memory *memory = memory_of(device);
    return memory != NULL ? refuse(device, memory, bytes) : refuse_tables(device);
}

int mt__memory_take(mt_device device, uint64_t bytes, void **out, uint32_t *key)
{
    *out = NULL;
    *key = 0;
    if (MT_UNLIKELY(bytes > MT_LARGEST_BLOCK)) {
        return refuse_early(device, bytes);
    }
#if defined(MT_DEBUG) && MT_DEBUG
    if (mtb_fail_here()) { /* so that tests can refuse any block, not only new segments */
        return refuse_early(device, bytes);
    }
#endif
    uint32_t found = mt__class_of(bytes + RED_ZONE * (device == MT_CPU));
    mt__thread_cache *cache;
    if (MT_LIKELY(device == MT_CPU && found < MT_CACHE_CLASSES && (cache = mt__cache()) != NULL)) {
        mt__block_list *list = &cache->blocks[found];
        if (MT_UNLIKELY(list->count == 0)) {
            MT_TRY(refill(list, found, bytes));
        }
        *out = list->blocks[--list->count];
        MT_CACHE_COUNT(&cache->allocations, 1);
        note_taken(MT_CPU, &host, *out, bytes);
        *key = found;
    } else {
        MT_TRY(take_slow(device, bytes, found, out, key));
    }
    if (device == MT_CPU) {
        UNPOISON(*out, bytes);
    }
    return MT_OK;
}

/* Counts a block that is given back, and reports it before another thread can take it and report
 * that. */
MT_INLINE void note_given(mt_device device, mt__device_memory *owner, const void *block,
                          uint64_t bytes)
{
    uint64_t allocated =
        atomic_fetch_sub_explicit(&owner->allocated, bytes, memory_order_relaxed) - bytes;
    mt__trace_memory(device, block, -(int64_t)bytes, allocated,
                     atomic_load_explicit(&owner->reserved_bytes, memory_order_relaxed));
}

void mt__memory_give(mt_device device, void *memory, uint64_t bytes, uint32_t key)
{
    mt__device_memory *owner = memory_of(device); /* exists: the memory came from it */
    note_given(device, owner, memory, bytes);
    if (device != MT_CPU) {
        atomic_fetch_add_explicit(&owner->releases, 1, memory_order_relaxed);
        mt__lists_give(owner, key, &memory, 1);
        return;
    }
    POISON(memory, (size_t)mt__class_bytes(key));
    mt__thread_cache *cache = mt__cache();
    if (MT_UNLIKELY(cache == NULL)) {
        mt__cache_count_blocks(0, 1);
        mt__lists_give(owner, key, &memory, 1);
        return;
    }
    MT_CACHE_COUNT(&cache->releases, 1);
    if (MT_UNLIKELY(key >= MT_CACHE_CLASSES)) {
        mt__lists_give(owner, key, &memory, 1);
        return;
    }
    mt__block_list *list = &cache->blocks[key];
    if (MT_UNLIKELY(list->count == list->limit)) {
        spill(list, key);
    }
    list->blocks[list->count++] = memory;
}

void mt__memory_give_used(mt_device device, void *memory, uint64_t bytes, uint32_t key,
                          mt__uses *uses)
{
    mt__device_memory *owner = memory_of(device);
    bool dropped = mt__forked; /* TH4: `uses` may be inconsistent then */
    if (!dropped) {
        mt__uses_mark_all(uses, device, mt__key_stream(key));
    }
    note_given(device, owner, memory, bytes);
    atomic_fetch_add_explicit(&owner->releases, 1, memory_order_relaxed);
    if (!dropped) {
        mt__lists_give_used(owner, key, memory, uses);
    }
}

bool mt__memory_is_of(mt_device device, uint32_t key, const mt_stream *stream)
{
    return stream->device == device && stream->number == mt__key_stream(key);
}

uint64_t mt__memory_allocated(mt_device device)
{
    mt__device_memory *memory = memory_of(device);
    return memory != NULL ? atomic_load_explicit(&memory->allocated, memory_order_relaxed) : 0;
}

mt_status mt_device_empty_cache(mt_device device)
{
    MT_TRY(mt__device_check("empty_cache", device));
    mt__device_memory *memory = memory_of(device);
    if (memory == NULL) {
        return MT_OK; /* nothing was ever taken */
    }
    uint64_t given_back;
    MT_TRY(mt__lists_empty(device, memory, &given_back));
    return mt__failure_take(device, MT_OK);
}

/* ---- counters ---- */

mt_status mt_device_get_memory_stats(mt_device device, mt_memory_stats *stats)
{
    if (stats == NULL || stats->struct_size < sizeof(uint32_t)) {
        return mtb_fail(MT_EVALUE, "memory_stats: struct_size is not set");
    }
    MT_TRY(mt__device_check("memory_stats", device));
    mt__device_memory *memory = memory_of(device);
    if (memory == NULL) {
        return mtb_fail(MT_ENOMEM, "memory_stats: no memory for the tables of %s",
                        mt_device_name(device));
    }
    mt_memory_stats all = {
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
    mtb_write_struct(stats, &all);
    return MT_OK;
}

mt_status mt_device_reset_peaks(mt_device device)
{
    MT_TRY(mt__device_check("reset_peaks", device));
    mt__device_memory *memory = memory_of(device);
    if (memory == NULL) {
        return MT_OK; /* nothing was ever taken */
    }
    mtb_lock_acquire(memory->lock);
    atomic_store_explicit(&memory->peak_allocated,
                          atomic_load_explicit(&memory->allocated, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&memory->peak_reserved,
                          atomic_load_explicit(&memory->reserved_bytes, memory_order_relaxed),
                          memory_order_relaxed);
    mtb_lock_release(memory->lock);
    return MT_OK;
}
