/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory straight from the kernel. The recording side uses it instead of the heap: a signal handler
 * or an allocator hook that records may have interrupted malloc itself.
 */
#ifndef BASE_PAGES_H
#define BASE_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed memory of whole pages, or NULL. */
void *mtb_pages_take(size_t bytes);

/* Accepts NULL. bytes as in mtb_pages_take(). */
void mtb_pages_give(void *pages, size_t bytes);

/*
 * Makes `*array` hold at least `needed` elements. False when out of memory; then nothing has
 * changed.
 */
bool mtb_pages_grow(void **array, size_t *capacity, size_t needed, size_t element_size);

#endif /* BASE_PAGES_H */
