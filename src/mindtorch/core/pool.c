/* SPDX-License-Identifier: Apache-2.0
 *
 * Small objects, see pool.h.
 *
 *     thread: head (≤ BATCH objects), spare (a batch or nothing)  ◄──►  common: a list of batches
 *
 * Lists move as whole batches, so giving back on another thread than the one that takes costs one
 * lock for BATCH objects. Objects are cut from chunks that stay with the process.
 *
 * Under AddressSanitizer objects come from the heap one by one, so that it sees who uses one too
 * long and who forgets one.
 */
#include "mindtorch/core/pool.h"

#include "base/alloc.h"
#include "mindtorch/core/thread_cache.h"

#if defined(__SANITIZE_ADDRESS__)
#    define POOL_HEAP 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define POOL_HEAP 1
#    endif
#endif
#ifndef POOL_HEAP
#    define POOL_HEAP 0
#endif

enum {
    BATCH = 64,
    CHUNK_OBJECTS = 32
};

/* What stands in a free object. The last two are of a batch's first object, in the common list. */
typedef struct object {
    struct object *next;
    struct object *next_batch;
    uint32_t count;
} object;

mtb_lock mt__pool_lock = MTB_LOCK_INIT(MTB_RANK_POOL);
static object *batches[MT_POOL_COUNT]; /* under mt__pool_lock */

static void push_batch(mt__pool pool, void *head, uint32_t count)
{
    object *first = head;
    first->count = count;
    mtb_lock_acquire(&mt__pool_lock);
    first->next_batch = batches[pool];
    batches[pool] = first;
    mtb_lock_release(&mt__pool_lock);
}

static object *pop_batch(mt__pool pool)
{
    mtb_lock_acquire(&mt__pool_lock);
    object *first = batches[pool];
    if (first != NULL) {
        batches[pool] = first->next_batch;
    }
    mtb_lock_release(&mt__pool_lock);
    return first;
}

/* Objects of a new chunk, each at the beginning of a cache line. NULL: refused. */
static object *cut_chunk(size_t bytes)
{
    size_t stride = (size_t)mtb_round_up(bytes < sizeof(object) ? sizeof(object) : bytes, 64);
    char *chunk = mtb_aligned_take(stride * CHUNK_OBJECTS);
    if (chunk == NULL) {
        return NULL;
    }
    object *head = NULL;
    for (size_t i = CHUNK_OBJECTS; i-- > 0;) {
        object *made = (object *)(chunk + i * stride);
        made->next = head;
        head = made;
    }
    head->count = CHUNK_OBJECTS;
    return head;
}

/* A thread without a cache takes one object and leaves the rest to the others. */
static void *take_common(mt__pool pool, size_t bytes)
{
    object *head = pop_batch(pool);
    head = head != NULL ? head : cut_chunk(bytes);
    if (head != NULL && head->next != NULL) {
        push_batch(pool, head->next, head->count - 1);
    }
    return head;
}

static MT_NOINLINE bool refill(mt__object_list *list, mt__pool pool, size_t bytes)
{
    if (list->spare != NULL) {
        list->head = list->spare;
        list->count = list->spare_count;
        list->spare = NULL;
        list->spare_count = 0;
        return true;
    }
    object *head = pop_batch(pool);
    head = head != NULL ? head : cut_chunk(bytes);
    if (head == NULL) {
        return false;
    }
    list->head = head;
    list->count = head->count;
    return true;
}

void *mt__pool_take(mt__pool pool, size_t bytes)
{
#if defined(MT_DEBUG) && MT_DEBUG
    if (!POOL_HEAP && mtb_fail_here()) { /* so that tests can refuse any object */
        return NULL;
    }
#endif
    mt__thread_cache *cache = mt__cache();
    void *taken;
    if (POOL_HEAP) {
        taken = mtb_calloc(1, bytes);
    } else if (MT_LIKELY(cache != NULL)) {
        mt__object_list *list = &cache->pools[pool];
        if (MT_UNLIKELY(list->head == NULL) && !refill(list, pool, bytes)) {
            return NULL;
        }
        taken = list->head;
        list->head = ((object *)taken)->next;
        list->count--;
    } else {
        taken = take_common(pool, bytes);
    }
    if (MT_UNLIKELY(taken == NULL)) {
        return NULL;
    }
    if (MT_LIKELY(cache != NULL)) {
        MT_CACHE_COUNT(&cache->in_use[pool], 1);
    } else {
        mt__cache_count_pool(pool, 1);
    }
    return taken;
}

void mt__pool_give(mt__pool pool, void *given)
{
    mt__thread_cache *cache = mt__cache();
    if (MT_LIKELY(cache != NULL)) {
        MT_CACHE_COUNT(&cache->in_use[pool], -1);
    } else {
        mt__cache_count_pool(pool, -1);
    }
    if (POOL_HEAP) {
        mtb_free(given);
        return;
    }
    object *freed = given;
    if (MT_UNLIKELY(cache == NULL)) {
        freed->next = NULL;
        push_batch(pool, freed, 1);
        return;
    }
    mt__object_list *list = &cache->pools[pool];
    if (MT_UNLIKELY(list->count == BATCH)) {
        if (list->spare != NULL) {
            push_batch(pool, list->spare, list->spare_count);
        }
        list->spare = list->head;
        list->spare_count = BATCH;
        list->head = NULL;
        list->count = 0;
    }
    freed->next = list->head;
    list->head = freed;
    list->count++;
}

void mt__pool_cache_flush(mt__thread_cache *cache)
{
    for (int pool = 0; pool < MT_POOL_COUNT; pool++) {
        mt__object_list *list = &cache->pools[pool];
        if (list->head != NULL) {
            push_batch((mt__pool)pool, list->head, list->count);
        }
        if (list->spare != NULL) {
            push_batch((mt__pool)pool, list->spare, list->spare_count);
        }
        *list = (mt__object_list){0};
    }
}
