/* SPDX-License-Identifier: Apache-2.0
 *
 * Per-thread caches, so that small ops take no lock: free objects (pool.h), free host blocks
 * (memory.h), a range of tensor ids, and counters. Made when the thread first needs it; when the
 * thread ends, lists go to the common ones and counters to the common sums.
 *
 *   TH1  Lists and ids belong to the thread alone. Counters are written by the thread alone and may
 *        be read by any: relaxed loads and stores, no read-modify-write.
 *   TH2  A thread without a cache (it is ending, or there was no memory) uses the common lists.
 *   TH3  fork(): the locks named here are held across it, so the child finds the common lists
 *        whole. What other threads' lists held stays reserved in the child and is not used again.
 *   TH4  The two locks under which a device is waited for (device memory, pinned memory) are not
 *        held across fork(): fork() would wait too, while it holds locks of the profiler that the
 *        device's workers may need. The child does not need what they guard: it discards those
 *        lists, and memory that it frees is dropped.
 */
#ifndef MINDTORCH_CORE_THREAD_THREAD_CACHE_H
#define MINDTORCH_CORE_THREAD_THREAD_CACHE_H

#include "base/compiler.h"
#include "base/lock.h"
#include "mindtorch/core/memory/pool.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    MT_CACHE_CLASSES = 56, /* host blocks up to 32 KiB (size classes of memory.c) */
    MT_CACHE_BLOCKS = 64,  /* of a class, at most */
    MT_CACHE_IDS = 4096    /* taken at a time */
};

typedef struct mt__block_list {
    uint32_t count;
    uint32_t limit;
    void *blocks[MT_CACHE_BLOCKS];
} mt__block_list;

/* Objects linked by their first word. `spare` is empty or holds a full batch. The number of objects
 * in use is `owned` less the counts, so that the fast path updates only one counter. It may be
 * negative, because objects move between threads. */
typedef struct mt__object_list {
    void *head;
    void *spare;
    _Atomic uint32_t count;       /* objects in the list `head`; TH1 */
    _Atomic uint32_t spare_count; /* objects in `spare`; TH1 */
    _Atomic int64_t owned;        /* TH1 */
} mt__object_list;

typedef struct mt__thread_cache {
    uint64_t next_id, end_id;
    mt__object_list pools[MT_POOL_COUNT];
    _Atomic uint64_t allocations; /* host blocks */
    _Atomic uint64_t releases;
    struct mt__thread_cache *next, *previous; /* under mt__caches_lock */
    mt__block_list blocks[MT_CACHE_CLASSES];
} mt__thread_cache;

/* Sums over all threads, those that ended included. */
typedef struct mt__cache_sums {
    int64_t in_use[MT_POOL_COUNT];
    uint64_t allocations;
    uint64_t releases;
} mt__cache_sums;

extern _Thread_local mt__thread_cache *mt__cache_here __attribute__((tls_model("initial-exec")));

/* NULL: TH2. */
mt__thread_cache *mt__cache_make(void);

MT_INLINE mt__thread_cache *mt__cache(void)
{
    mt__thread_cache *cache = mt__cache_here;
    return MT_LIKELY(cache != NULL) ? cache : mt__cache_make();
}

/* TH1: adds to a counter of this thread's own. */
#define MT_CACHE_COUNT(counter, by)                                                                \
    atomic_store_explicit((counter), atomic_load_explicit((counter), memory_order_relaxed) + (by), \
                          memory_order_relaxed)

#define MT_CACHE_READ(counter)       atomic_load_explicit((counter), memory_order_relaxed)
#define MT_CACHE_SET(counter, value) atomic_store_explicit((counter), (value), memory_order_relaxed)

/* For threads without a cache. */
void mt__cache_count_pool(mt__pool pool, int64_t by);
void mt__cache_count_blocks(uint64_t allocations, uint64_t releases);

void mt__cache_sum(mt__cache_sums *sums);

/* The next tensor id; never 0. */
uint64_t mt__next_id_slow(void);

MT_INLINE uint64_t mt__next_id(void)
{
    mt__thread_cache *cache = mt__cache_here;
    return MT_LIKELY(cache != NULL && cache->next_id != cache->end_id) ? cache->next_id++
                                                                       : mt__next_id_slow();
}

/* Installs the fork handlers; must be called before the locks of TH3 and TH4 are used. */
void mt__watch_forks(void);

/* This process was forked from one that had used the library. Written before it has threads. */
extern bool mt__forked;

/* ---- what the owners of the lists offer, TH3 and TH4 ---- */
extern mtb_lock mt__streams_lock;
extern mtb_lock mt__device_memory_lock;
extern mtb_lock mt__pinned_lock;
extern mtb_lock mt__failures_lock;
extern mtb_lock mt__memory_lock;
extern mtb_lock mt__pool_lock;
extern mtb_lock mt__generator_lock;

void mt__memory_cache_init(mt__thread_cache *cache);
void mt__memory_cache_flush(mt__thread_cache *cache);
void mt__pool_cache_flush(mt__thread_cache *cache);

/* In the child: blocks of devices in lists are the parent's (TH4). */
void mt__memory_after_fork(void);
void mt__pinned_after_fork(void);
void mt__backend_load_after_fork(void);

/* Objects taken through a list less those given back through it. */
int64_t mt__pool_in_use(const mt__object_list *list);

/* ---- the fast path of pool.h, where pool and bytes are constants ---- */

#if defined(__SANITIZE_ADDRESS__)
#    define MT_POOL_HEAP 1 /* each object from the heap, for AddressSanitizer */
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define MT_POOL_HEAP 1
#    endif
#endif
#ifndef MT_POOL_HEAP
#    define MT_POOL_HEAP 0
#endif
#if MT_POOL_HEAP || (defined(MT_DEBUG) && MT_DEBUG) /* every request can be refused by a test */
#    define MT_POOL_FAST 0
#else
#    define MT_POOL_FAST 1
#endif

enum {
    MT_POOL_BATCH = 64 /* objects that move between lists at once */
};

MT_INLINE void *mt__pool_take_fast(mt__pool pool, size_t bytes)
{
#if MT_POOL_FAST
    mt__thread_cache *cache = mt__cache_here;
    if (MT_LIKELY(cache != NULL && cache->pools[pool].head != NULL)) {
        mt__object_list *list = &cache->pools[pool];
        void *taken = list->head;
        list->head = *(void **)taken;
        MT_CACHE_COUNT(&list->count, (uint32_t)-1);
        return taken;
    }
#endif
    return mt__pool_take(pool, bytes);
}

MT_INLINE void mt__pool_give_fast(mt__pool pool, void *object)
{
#if MT_POOL_FAST
    mt__thread_cache *cache = mt__cache_here;
    if (MT_LIKELY(cache != NULL && MT_CACHE_READ(&cache->pools[pool].count) != MT_POOL_BATCH)) {
        mt__object_list *list = &cache->pools[pool];
        *(void **)object = list->head;
        list->head = object;
        MT_CACHE_COUNT(&list->count, 1);
        return;
    }
#endif
    mt__pool_give(pool, object);
}

#endif /* MINDTORCH_CORE_THREAD_THREAD_CACHE_H */
