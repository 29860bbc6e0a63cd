/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator seam: all code under src/ gets its heap memory here, so that a test can make the
 * Nth request fail, for every N.
 *
 * Threads: all functions may be called from any thread.
 */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Zeroed memory for count objects of size bytes, or NULL (also on overflow of the product). */
void *mtb_calloc(size_t count, size_t size);

/* As realloc, for count objects of size bytes. On failure NULL, and the old block is unchanged. */
void *mtb_resize(void *block, size_t count, size_t size);

/* A copy of the first length bytes of text, followed by a zero byte, or NULL. */
char *mtb_copy_text(const char *text, size_t length);

/* Memory aligned to 64 bytes, not zeroed, or NULL. Free it with mtb_free(). */
void *mtb_aligned_take(size_t bytes);

/* Accepts NULL. */
void mtb_free(void *block);

/*
 * Makes `*array` hold at least `needed` elements, doubling `*capacity`. False when out of memory;
 * then nothing has changed.
 */
bool mtb_grow(void **array, size_t *capacity, size_t needed, size_t element_size);

/* The same, with zeroes in what is new. */
bool mtb_extend(void **array, size_t *capacity, size_t needed, size_t element_size);

/* For an array indexed by ids: it gets an element `index`, and `*n` is how many there are. */
MT_INLINE bool mtb_reach(void **array, size_t *n, size_t index, size_t element_size)
{
    return MT_LIKELY(index < *n) || mtb_extend(array, n, index + 1, element_size);
}

/* Appends *item, given last, to an array of `n` elements. False when out of memory; then nothing
 * has changed. */
#define mtb_append(array, n, capacity, ...)                                            \
    mtb_append_item((void **)&(array), &(n), &(capacity), 1 ? (__VA_ARGS__) : (array), \
                    sizeof *(array))
MT_INLINE bool mtb_append_item(void **array, size_t *n, size_t *capacity, const void *item,
                               size_t element_size)
{
    if (!mtb_grow(array, capacity, *n + 1, element_size)) {
        return false;
    }
    memcpy((char *)*array + (*n)++ * element_size, item, element_size);
    return true;
}

/*
 * Test hook: request number `n` (1 = the next one) fails, and with `forever` all later ones too.
 * 0 switches it off. Returns how many requests have been made since the last call. Memory that is
 * mapped rather than allocated (mtb_fail_here) counts as well.
 */
uint64_t mtb_fail_nth(uint64_t n, bool forever);

/* True if the test hook makes this request fail; for requests that do not use the heap. */
bool mtb_fail_here(void);

#endif /* BASE_ALLOC_H */
