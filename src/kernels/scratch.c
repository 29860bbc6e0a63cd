/* SPDX-License-Identifier: Apache-2.0
 *
 * See scratch.h. A block is
 *
 *     | ... padding to 64 ... | header (64 bytes) | the caller's bytes |
 *
 * S1 Every request passes the allocator seam once, served from the cache or not: a test that makes
 *    the Nth request fail reaches it in either case.
 * S2 A thread keeps at most KEPT_BLOCKS blocks and KEPT_BYTES bytes, and frees them when it ends.
 */
#include "kernels/scratch.h"

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
    bool registered; /* with the key whose destructor empties it */
} cache;

static _Thread_local cache kept;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_made;

static header *header_of(void *block)
{
    return (header *)((char *)block - ALIGNMENT);
}

static void empty_cache(void *argument)
{
    cache *of_thread = argument;
    for (unsigned i = 0; i < KEPT_BLOCKS; i++) {
        if (of_thread->blocks[i] != NULL) {
            mtb_free(of_thread->blocks[i]->start);
            of_thread->blocks[i] = NULL;
        }
    }
    of_thread->bytes = 0;
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, empty_cache) == 0;
}

/* Without a key nothing is kept: what a thread kept would be lost with it. */
static bool register_cache(void)
{
    (void)pthread_once(&key_once, make_key);
    kept.registered = key_made && pthread_setspecific(key, &kept) == 0;
    return kept.registered;
}

/* The smallest kept block that is large enough. */
static header *find_kept(size_t bytes)
{
    int best = -1;
    for (int i = 0; i < KEPT_BLOCKS; i++) {
        header *block = kept.blocks[i];
        if (block != NULL && block->bytes >= bytes &&
            (best < 0 || block->bytes < kept.blocks[best]->bytes)) {
            best = i;
        }
    }
    if (best < 0) {
        return NULL;
    }
    header *found = kept.blocks[best];
    kept.blocks[best] = NULL;
    kept.bytes -= found->bytes;
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
        if (mtb_fail_here()) { /* S1 */
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

void mt__scratch_give(void *block)
{
    if (block == NULL) {
        return;
    }
    header *mine = header_of(block);
    int place = -1;
    if ((kept.registered || register_cache()) && mine->bytes <= KEPT_BYTES - kept.bytes) {
        for (int i = 0; i < KEPT_BLOCKS && place < 0; i++) {
            place = kept.blocks[i] == NULL ? i : -1;
        }
    }
    if (place < 0) {
        mtb_free(mine->start);
        return;
    }
    kept.blocks[place] = mine;
    kept.bytes += mine->bytes;
}
