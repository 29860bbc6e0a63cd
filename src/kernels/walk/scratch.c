/* SPDX-License-Identifier: Apache-2.0
 *
 * See scratch.h. A block is
 *
 *     | ... padding to 64 ... | header (64 bytes) | the caller's bytes |
 *
 *   SCR1  Every request counts once for the allocator's test hook, served from the cache or not, so
 *         that a test can make the Nth request fail in either case.
 *   SCR2  A thread keeps at most KEPT_BLOCKS blocks and KEPT_BYTES bytes, and frees them when it
 *         ends.
 *   SCR3  Giving back never fails: a block that cannot be kept is freed.
 */
#include "kernels/walk/scratch.h"

#include "base/alloc.h"
#include "base/compiler.h"

#include <pthread.h>
#include <stdbool.h>

enum {
    ALIGNMENT = 64,
    KEPT_BLOCKS = 6
};

#define KEPT_BYTES ((size_t)256 << 20)

typedef struct header {
    void *start; /* what the allocator gave */
    size_t bytes;
} header;

static_assert(sizeof(header) <= ALIGNMENT, "a header fits in front of an aligned block");

typedef struct cache {
    header *blocks[KEPT_BLOCKS];
    size_t bytes;
} cache;

/* Only a pointer, because thread-local memory of a library is scarce. Freed by the key's
 * destructor. */
static _Thread_local cache *kept;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_made;

static header *header_of(void *block)
{
    return (header *)((char *)block - ALIGNMENT);
}

static void free_cache(void *argument)
{
    cache *of_thread = argument;
    for (unsigned i = 0; i < KEPT_BLOCKS; i++) {
        if (of_thread->blocks[i] != NULL) {
            mtb_free(of_thread->blocks[i]->start);
        }
    }
    mtb_free(of_thread);
    kept = NULL;
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, free_cache) == 0;
}

/* Without a key nothing is kept: blocks would leak when the thread ends. */
static cache *cache_of_thread(void)
{
    if (kept == NULL) {
        (void)pthread_once(&key_once, make_key);
        cache *made = key_made ? mtb_calloc(1, sizeof *made) : NULL;
        if (made != NULL && pthread_setspecific(key, made) != 0) {
            mtb_free(made);
            made = NULL;
        }
        kept = made;
    }
    return kept;
}

/* The smallest kept block that is large enough. */
static header *find_kept(size_t bytes)
{
    int best = -1;
    for (int i = 0; kept != NULL && i < KEPT_BLOCKS; i++) {
        header *block = kept->blocks[i];
        if (block != NULL && block->bytes >= bytes &&
            (best < 0 || block->bytes < kept->blocks[best]->bytes)) {
            best = i;
        }
    }
    if (best < 0) {
        return NULL;
    }
    header *found = kept->blocks[best];
    kept->blocks[best] = NULL;
    kept->bytes -= found->bytes;
    return found;
}

void *mt__scratch_take(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) {
        return NULL;
    }
    header *block = find_kept(bytes);
    if (block != NULL) {
        if (mtb_fail_here()) { /* SCR1 */
            mt__scratch_give((char *)block + ALIGNMENT);
            return NULL;
        }
        return (char *)block + ALIGNMENT;
    }
    bytes = (size_t)mtb_round_up(bytes + bytes / 8, 4096);
    char *start = mtb_resize(NULL, bytes + (size_t)2 * ALIGNMENT, 1);
    if (start == NULL) {
        return NULL;
    }
    char *place = (char *)(uintptr_t)mtb_round_up((uintptr_t)start + ALIGNMENT, ALIGNMENT);
    *header_of(place) = (header){.start = start, .bytes = bytes};
    return place;
}

/* A free place, or that of the smallest kept block if it is smaller than this one. NULL: do not
 * keep this one. */
static header **find_place(cache *of_thread, size_t bytes)
{
    header **smallest = &of_thread->blocks[0];
    for (int i = 0; i < KEPT_BLOCKS; i++) {
        header **block = &of_thread->blocks[i];
        if (*block == NULL) {
            smallest = block;
            break;
        }
        smallest = (*block)->bytes < (*smallest)->bytes ? block : smallest;
    }
    size_t before = *smallest == NULL ? 0 : (*smallest)->bytes;
    bool fits = before < bytes && bytes <= KEPT_BYTES - (of_thread->bytes - before);
    return fits ? smallest : NULL;
}

void mt__scratch_give(void *block)
{
    if (block == NULL) {
        return;
    }
    header *mine = header_of(block);
    cache *of_thread = cache_of_thread();
    header **place = of_thread == NULL ? NULL : find_place(of_thread, mine->bytes);
    if (place == NULL) {
        mtb_free(mine->start);
        return;
    }
    if (*place != NULL) {
        of_thread->bytes -= (*place)->bytes;
        mtb_free((*place)->start);
    }
    *place = mine;
    of_thread->bytes += mine->bytes;
}
