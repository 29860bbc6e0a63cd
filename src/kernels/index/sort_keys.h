/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements as unsigned keys whose order is the elements' order, and the sorting of keys.
 *
 *   SK1  NaN is larger than everything, all NaN are equal; -0 equals 0. Descending keys are the
 *        complements.
 *   SK2  A key is carried with the element's place, and places decide between equal keys: the order
 *        is that of a stable sort, ascending and descending.
 */
#ifndef KERNELS_INDEX_SORT_KEYS_H
#define KERNELS_INDEX_SORT_KEYS_H

#include "base/compiler.h"

#include <mindtorch/backend.h>

#include <stdbool.h>
#include <stdint.h>

/* Elements of up to 4 bytes: key << 32 | place. */
typedef uint64_t mt__sort_word;

/* Elements of 8 bytes, and rows of more than 2^32 elements. */
typedef struct mt__sort_pair {
    uint64_t key;
    uint64_t place;
} mt__sort_pair;

/* Whether a row is sorted as words. */
MT_INLINE bool mt__sort_fits_words(uint32_t dtype, int64_t n)
{
    return mt_dtype_size((mt_dtype)dtype) <= 4 && n <= (int64_t)UINT32_MAX;
}

/* A row of n elements, stride in bytes. */
void mt__sort_load_words(mt__sort_word *words, const char *row, int64_t stride, int64_t n,
                         uint32_t dtype, bool descending);
void mt__sort_load_pairs(mt__sort_pair *pairs, const char *row, int64_t stride, int64_t n,
                         uint32_t dtype, bool descending);

/* A row of int64 as words, if the differences of its numbers fit into 32 bits; else false. */
bool mt__sort_narrow_i64(mt__sort_word *words, const char *row, int64_t stride, int64_t n,
                         bool descending);

/* `spare` has room for n as well. Gives the one of the two that holds the result. The input is in
 * the order of places. */
mt__sort_word *mt__sort_words(mt__sort_word *items, mt__sort_word *spare, int64_t n);
mt__sort_pair *mt__sort_pairs(mt__sort_pair *items, mt__sort_pair *spare, int64_t n);

/* The first k of the sorted order, sorted, in items[0..k); 0 < k <= n. Needs no spare memory. */
void mt__sort_first_words(mt__sort_word *items, int64_t n, int64_t k);
void mt__sort_first_pairs(mt__sort_pair *items, int64_t n, int64_t k);

/* The item at place k of the sorted order, 0 <= k < n. Items are moved and lost. */
mt__sort_word mt__sort_at_words(mt__sort_word *items, int64_t n, int64_t k);
mt__sort_pair mt__sort_at_pairs(mt__sort_pair *items, int64_t n, int64_t k);

/* The key that mt__sort_load_*() gives to a NaN, ascending; false: the type has none. */
bool mt__sort_key_of_nan(uint32_t dtype, uint64_t *key);

#endif /* KERNELS_INDEX_SORT_KEYS_H */
