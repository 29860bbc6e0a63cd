/* SPDX-License-Identifier: Apache-2.0
 *
 * Mappings that begin at a multiple of the huge page's size, see large.h. The first cache line of a
 * mapping holds its length; the block begins after it.
 */
#include "base/large.h"

#include "base/alloc.h"
#include "base/compiler.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

enum {
    PAGE = 4096,
    HUGE_PAGE = 2 << 20,
    HEAD_BYTES = 64
};

typedef struct large_head {
    size_t length; /* of the mapping */
} large_head;
_Static_assert(sizeof(large_head) <= HEAD_BYTES, "the head fits into its line");

static large_head *head_of(void *block)
{
    return (large_head *)((char *)block - HEAD_BYTES);
}

/* Length of a mapping for a block, 0: too large. If the last huge page would be less than half
 * used, small pages are used there instead. */
static size_t length_for(size_t bytes)
{
    if (bytes > SIZE_MAX / 4) {
        return 0;
    }
    size_t length = mtb_round_up(bytes + HEAD_BYTES, PAGE);
    return length % HUGE_PAGE < HUGE_PAGE / 2 ? length : mtb_round_up(length, HUGE_PAGE);
}

/* Reserves addresses only, aligned to the huge page's size; NULL: there are none. */
static char *map_aligned(size_t length)
{
    size_t all = length + HUGE_PAGE;
    char *from = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (from == MAP_FAILED) {
        return NULL;
    }
    size_t before = mtb_round_up((uintptr_t)from, HUGE_PAGE) - (uintptr_t)from;
    if (before != 0) {
        (void)munmap(from, before);
    }
    (void)munmap(from + before + length, all - before - length);
    return from + before;
}

static void *map_block(size_t length)
{
    char *mapping = map_aligned(length);
    if (mapping == NULL) {
        return NULL;
    }
    (void)madvise(mapping, length, MADV_HUGEPAGE); /* may fail: then pages are small */
    ((large_head *)mapping)->length = length;
    return mapping + HEAD_BYTES;
}

void *mtb_large_take(size_t bytes)
{
    size_t length = length_for(bytes);
    if (mtb_fail_here() || length == 0) {
        return NULL;
    }
    int before = errno;
    void *block = map_block(length);
    errno = before;
    return block;
}

static void *move_block(large_head *head, size_t length)
{
    /* If the addresses after it are free, nothing moves. */
    void *mapping = mremap(head, head->length, length, 0);
    if (mapping == MAP_FAILED) {
        char *to = map_aligned(length);
        if (to == NULL) {
            return NULL;
        }
        mapping = mremap(head, head->length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        if (mapping == MAP_FAILED) {
            (void)munmap(to, length);
            return NULL;
        }
    }
    ((large_head *)mapping)->length = length;
    return (char *)mapping + HEAD_BYTES;
}

void *mtb_large_resize(void *block, size_t bytes)
{
    large_head *head = head_of(block);
    size_t length = length_for(bytes);
    if (length == 0) {
        return NULL;
    }
    if (length <= head->length) {
        if (length < head->length) {
            (void)munmap((char *)head + length, head->length - length);
            head->length = length;
        }
        return block;
    }
    if (mtb_fail_here()) {
        return NULL;
    }
    int before = errno;
    void *moved = move_block(head, length);
    errno = before;
    return moved;
}

void mtb_large_give(void *block)
{
    if (block != NULL) {
        large_head *head = head_of(block);
        (void)munmap(head, head->length);
    }
}

static int is_large(size_t count, size_t size)
{
    size_t bytes;
    return !__builtin_mul_overflow(count, size, &bytes) && bytes >= MTB_LARGE_BYTES;
}

void *mtb_array_take(size_t count, size_t size)
{
    return is_large(count, size) ? mtb_large_take(count * size) : mtb_calloc(count, size);
}

void mtb_array_give(void *array, size_t count, size_t size)
{
    if (is_large(count, size)) {
        mtb_large_give(array);
    } else {
        mtb_free(array);
    }
}
