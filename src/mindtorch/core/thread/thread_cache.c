/* SPDX-License-Identifier: Apache-2.0
 *
 * Per-thread caches: creating, listing, summing and freeing them, see thread_cache.h.
 */
#include "mindtorch/core/thread/thread_cache.h"

#include "base/alloc.h"

#include <pthread.h>

_Thread_local mt__thread_cache *mt__cache_here __attribute__((tls_model("initial-exec")));

/* The thread is ending and has given its cache back: it must not create another one. */
static _Thread_local bool ended __attribute__((tls_model("initial-exec")));

static mtb_lock caches_lock = MTB_LOCK_INIT(MTB_RANK_CACHES);
static mt__thread_cache *caches; /* all of them, under caches_lock */

/* Counters of threads that have no cache; read by mt__cache_sum(). */
static struct {
    _Atomic int64_t in_use[MT_POOL_COUNT];
    _Atomic uint64_t allocations;
    _Atomic uint64_t releases;
} common;

static _Atomic uint64_t next_ids = 1;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

/* ---- fork: TH3, TH4 ---- */

bool mt__forked;

/* In the order of their ranks. */
static mtb_lock *const locks[] = {
    &mt__streams_lock,  &caches_lock,   &mt__memory_lock,
    &mt__failures_lock, &mt__pool_lock, &mt__generator_lock,
};

static void before_fork(void)
{
    for (size_t i = 0; i < MT_COUNT(locks); i++) {
        mtb_lock_acquire(locks[i]);
    }
}

static void after_fork_parent(void)
{
    for (size_t i = MT_COUNT(locks); i-- > 0;) {
        mtb_lock_release(locks[i]);
    }
}

static void after_fork_child(void)
{
    for (size_t i = MT_COUNT(locks); i-- > 0;) {
        mtb_lock_reset(locks[i]);
    }
    mtb_lock_reset(&mt__device_memory_lock);
    mtb_lock_reset(&mt__pinned_lock);
    mtb_locks_forget();
    mt__forked = true;
    mt__memory_after_fork();
    mt__pinned_after_fork();
    mt__backend_load_after_fork();
}

/* ---- life ---- */

void mt__cache_count_pool(mt__pool pool, int64_t by)
{
    atomic_fetch_add_explicit(&common.in_use[pool], by, memory_order_relaxed);
}

void mt__cache_count_blocks(uint64_t allocations, uint64_t releases)
{
    atomic_fetch_add_explicit(&common.allocations, allocations, memory_order_relaxed);
    atomic_fetch_add_explicit(&common.releases, releases, memory_order_relaxed);
}

/* Unlinks a cache and keeps its counters; both under the lock, so that a sum never misses them. */
static void unlist(mt__thread_cache *cache)
{
    mtb_lock_acquire(&caches_lock);
    if (cache->previous != NULL) {
        cache->previous->next = cache->next;
    } else {
        caches = cache->next;
    }
    if (cache->next != NULL) {
        cache->next->previous = cache->previous;
    }
    for (int pool = 0; pool < MT_POOL_COUNT; pool++) {
        mt__cache_count_pool((mt__pool)pool, mt__pool_in_use(&cache->pools[pool]));
    }
    mt__cache_count_blocks(atomic_load_explicit(&cache->allocations, memory_order_relaxed),
                           atomic_load_explicit(&cache->releases, memory_order_relaxed));
    mtb_lock_release(&caches_lock);
}

static void end_thread(void *value)
{
    mt__thread_cache *cache = value;
    ended = true;
    mt__cache_here = NULL;
    mt__memory_cache_flush(cache);
    mt__pool_cache_flush(cache);
    unlist(cache);
    mtb_free(cache);
}

static void prepare_process(void)
{
    has_key = pthread_key_create(&key, end_thread) == 0;
    (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void mt__watch_forks(void)
{
    (void)pthread_once(&once, prepare_process);
}

MT_COLD mt__thread_cache *mt__cache_make(void)
{
    mt__watch_forks();
    if (ended || !has_key) {
        return NULL;
    }
    mt__thread_cache *cache = mtb_calloc(1, sizeof *cache);
    if (cache == NULL || pthread_setspecific(key, cache) != 0) {
        mtb_free(cache);
        return NULL;
    }
    mt__memory_cache_init(cache);
    mtb_lock_acquire(&caches_lock);
    cache->next = caches;
    if (caches != NULL) {
        caches->previous = cache;
    }
    caches = cache;
    mtb_lock_release(&caches_lock);
    mt__cache_here = cache;
    return cache;
}

void mt__cache_sum(mt__cache_sums *sums)
{
    *sums = (mt__cache_sums){0};
    mtb_lock_acquire(&caches_lock);
    sums->allocations = atomic_load_explicit(&common.allocations, memory_order_relaxed);
    sums->releases = atomic_load_explicit(&common.releases, memory_order_relaxed);
    for (int pool = 0; pool < MT_POOL_COUNT; pool++) {
        sums->in_use[pool] = atomic_load_explicit(&common.in_use[pool], memory_order_relaxed);
    }
    for (mt__thread_cache *cache = caches; cache != NULL; cache = cache->next) {
        sums->allocations += atomic_load_explicit(&cache->allocations, memory_order_relaxed);
        sums->releases += atomic_load_explicit(&cache->releases, memory_order_relaxed);
        for (int pool = 0; pool < MT_POOL_COUNT; pool++) {
            sums->in_use[pool] += mt__pool_in_use(&cache->pools[pool]);
        }
    }
    mtb_lock_release(&caches_lock);
}

MT_COLD uint64_t mt__next_id_slow(void)
{
    mt__thread_cache *cache = mt__cache();
    if (MT_UNLIKELY(cache == NULL)) {
        return atomic_fetch_add_explicit(&next_ids, 1, memory_order_relaxed);
    }
    if (MT_UNLIKELY(cache->next_id == cache->end_id)) {
        cache->next_id = atomic_fetch_add_explicit(&next_ids, MT_CACHE_IDS, memory_order_relaxed);
        cache->end_id = cache->next_id + MT_CACHE_IDS;
    }
    return cache->next_id++;
}
