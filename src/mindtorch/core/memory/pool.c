/* SPDX-License-Identifier: Apache-2.0
 *
 * Small objects, see pool.h.
 *
 *     thread: head (≤ a batch of objects), spare (a batch or nothing)  ◄──►  common: batches
 *
 * Objects move between threads in batches, so if one thread takes objects and another gives them
 * back, the cost is one lock per batch. Objects are cut from chunks that are never freed.
 *
 * Under AddressSanitizer each object is allocated from the heap, so that it can detect use after
 * free and leaks.
 */
#include "mindtorch/core/memory/pool.h"

#include "base/alloc.h"
#include "mindtorch/core/thread/thread_cache.h"

enum {
    CHUNK_OBJECTS = 32
};

/* The contents of a free object. The last two fields are used in the first object of a batch, in
 * the common list. */
typedef struct free_object {
    struct free_object *next;
    struct free_object *next_batch;
    uint32_t count;
} free_object;

mtb_lock mt__pool_lock = MTB_LOCK_INIT(MTB_RANK_POOL);
static free_object *batches[MT_POOL_COUNT]; /* under mt__pool_lock */

static void push_batch(mt__pool pool, void *head, uint32_t count)
{
    free_object *first = head;
    first->count = count;
    mtb_lock_acquire(&mt__pool_lock);
    first->next_batch = batches[pool];
    batches[pool] = first;
    mtb_lock_release(&mt__pool_lock);
}

static free_object *pop_batch(mt__pool pool)
{
    mtb_lock_acquire(&mt__pool_lock);
    free_object *first = batches[pool];
    if (first != NULL) {
        batches[pool] = first->next_batch;
    }
    mtb_lock_release(&mt__pool_lock);
    return first;
}

/* Objects of a new chunk, each at the beginning of a cache line. NULL: out of memory. */
static free_object *cut_chunk(size_t bytes)
{
    size_t stride =
        (size_t)mtb_round_up(bytes < sizeof(free_object) ? sizeof(free_object) : bytes, 64);
    char *chunk = mtb_aligned_take(stride * CHUNK_OBJECTS);
    if (chunk == NULL) {
        return NULL;
    }
    free_object *head = NULL;
    for (size_t i = CHUNK_OBJECTS; i-- > 0;) {
        free_object *made = (free_object *)(chunk + i * stride);
        made->next = head;
        head = made;
    }
    head->count = CHUNK_OBJECTS;
    return head;
}

/* A thread without a cache takes one object and puts the rest of the batch back. */
static void *take_common(mt__pool pool, size_t bytes)
{
    free_object *head = pop_batch(pool);
    head = head != NULL ? head : cut_chunk(bytes);
    if (head != NULL && head->next != NULL) {
        push_batch(pool, head->next, head->count - 1);
    }
    return head;
}

/* Refills the thread's list. False: out of memory. */
static bool refill(mt__object_list *list, mt__pool pool, size_t bytes)
{
    if (list->spare != NULL) {
        list->head = list->spare;
        MT_CACHE_SET(&list->count, MT_CACHE_READ(&list->spare_count));
        list->spare = NULL;
        MT_CACHE_SET(&list->spare_count, 0);
        return true;
    }
    free_object *head = pop_batch(pool);
    head = head != NULL ? head : cut_chunk(bytes);
    if (head == NULL) {
        return false;
    }
    list->head = head;
    MT_CACHE_SET(&list->count, head->count);
    MT_CACHE_COUNT(&list->owned, (int64_t)head->count);
    return true;
}

/* The list is full: it becomes the spare one, and the old spare one goes to the common list. */
static void make_room(mt__object_list *list, mt__pool pool)
{
    if (list->spare != NULL) {
        push_batch(pool, list->spare, MT_CACHE_READ(&list->spare_count));
        MT_CACHE_COUNT(&list->owned, -(int64_t)MT_CACHE_READ(&list->spare_count));
    }
    list->spare = list->head;
    MT_CACHE_SET(&list->spare_count, MT_POOL_BATCH);
    list->head = NULL;
    MT_CACHE_SET(&list->count, 0);
}

/* Counts an object that does not go through a list. */
static void count_other(mt__thread_cache *cache, mt__pool pool, int64_t by)
{
    if (cache != NULL) {
        MT_CACHE_COUNT(&cache->pools[pool].owned, by);
    } else {
        mt__cache_count_pool(pool, by);
    }
}

MT_NOINLINE void *mt__pool_take(mt__pool pool, size_t bytes)
{
#if defined(MT_DEBUG) && MT_DEBUG
    if (!MT_POOL_HEAP && mtb_fail_here()) { /* so that tests can refuse any free_object */
        return NULL;
    }
#endif
    mt__thread_cache *cache = mt__cache();
    if (MT_POOL_HEAP || MT_UNLIKELY(cache == NULL)) {
        void *taken = MT_POOL_HEAP ? mtb_calloc(1, bytes) : take_common(pool, bytes);
        if (taken != NULL) {
            count_other(cache, pool, 1);
        }
        return taken;
    }
    mt__object_list *list = &cache->pools[pool];
    if (list->head == NULL && !refill(list, pool, bytes)) {
        return NULL;
    }
    free_object *taken = list->head;
    list->head = taken->next;
    MT_CACHE_COUNT(&list->count, (uint32_t)-1);
    return taken;
}

MT_NOINLINE void mt__pool_give(mt__pool pool, void *object)
{
    mt__thread_cache *cache = mt__cache();
    if (MT_POOL_HEAP || MT_UNLIKELY(cache == NULL)) {
        count_other(cache, pool, -1);
        if (MT_POOL_HEAP) {
            mtb_free(object);
        } else {
            ((free_object *)object)->next = NULL;
            push_batch(pool, object, 1);
        }
        return;
    }
    mt__object_list *list = &cache->pools[pool];
    if (MT_CACHE_READ(&list->count) == MT_POOL_BATCH) {
        make_room(list, pool);
    }
    ((free_object *)object)->next = list->head;
    list->head = object;
    MT_CACHE_COUNT(&list->count, 1);
}

int64_t mt__pool_in_use(const mt__object_list *list)
{
    return MT_CACHE_READ(&list->owned) - MT_CACHE_READ(&list->count) -
           MT_CACHE_READ(&list->spare_count);
}

void mt__pool_cache_flush(mt__thread_cache *cache)
{
    for (int pool = 0; pool < MT_POOL_COUNT; pool++) {
        mt__object_list *list = &cache->pools[pool];
        int64_t in_use = mt__pool_in_use(list);
        if (list->head != NULL) {
            push_batch((mt__pool)pool, list->head, MT_CACHE_READ(&list->count));
        }
        if (list->spare != NULL) {
            push_batch((mt__pool)pool, list->spare, MT_CACHE_READ(&list->spare_count));
        }
        list->head = NULL;
        list->spare = NULL;
        MT_CACHE_SET(&list->count, 0);
        MT_CACHE_SET(&list->spare_count, 0);
        MT_CACHE_SET(&list->owned, in_use); /* what is left of it, for the sums */
    }
}
