/* SPDX-License-Identifier: Apache-2.0
 *
 * A set of 64-bit keys other than 0, with removal. Memory follows the largest number of keys that
 * were in it at a time: 16 bytes a key at most, in the mean.
 */
#ifndef BASE_KEYSET_H
#define BASE_KEYSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mtb_keyset {
    uint64_t *keys;  /* 0: free */
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} mtb_keyset;

/* Adds a key that may be there. False when memory is refused: nothing has changed. */
bool mtb_keyset_add(mtb_keyset *set, uint64_t key);
/* Whether it was there. */
bool mtb_keyset_remove(mtb_keyset *set, uint64_t key);
bool mtb_keyset_has(const mtb_keyset *set, uint64_t key);
/* Empties the set and keeps its memory. */
void mtb_keyset_clear(mtb_keyset *set);
/* Frees the memory; the set is empty and usable again. */
void mtb_keyset_fini(mtb_keyset *set);

#endif /* BASE_KEYSET_H */
