/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash table from keys to 32-bit ids. The caller keeps the keys and compares them: the table
 * holds only hash and id, 16 bytes per entry. Single entries are never removed.
 */
#ifndef BASE_IDMAP_H
#define BASE_IDMAP_H

#include "base/alloc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mtb_idmap_entry {
    uint64_t hash;
    uint32_t id; /* 0: free */
} mtb_idmap_entry;

typedef struct mtb_idmap {
    mtb_idmap_entry *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} mtb_idmap;

/* Whether the key is that of the entry with this id. */
typedef bool mtb_idmap_same(const void *context, uint32_t id, const void *key);

/* The id of a key, 0 when it is not there. */
uint32_t mtb_idmap_find(const mtb_idmap *map, uint64_t hash, mtb_idmap_same *same,
                        const void *context, const void *key);

/* Makes room for one more key, so that the next add cannot fail. False when memory is refused. */
bool mtb_idmap_reserve(mtb_idmap *map);

/* Adds a key that is not there yet. False when memory is refused: nothing has changed. */
bool mtb_idmap_add(mtb_idmap *map, uint64_t hash, uint32_t id);

/* Appends *item, given last, to an array of distinct items, of which the map has place + 1. False
 * when memory is refused, or ids have run out: nothing has changed. */
#define mtb_idmap_append(map, hash, array, n, capacity, ...) \
    ((n) < UINT32_MAX - 1 && mtb_idmap_reserve(map) &&       \
     mtb_append(array, n, capacity, __VA_ARGS__) && mtb_idmap_add((map), (hash), (uint32_t)(n)))

/* Forgets all keys and keeps the memory. */
void mtb_idmap_clear(mtb_idmap *map);

/* Frees the table; it is empty and usable again. */
void mtb_idmap_reset(mtb_idmap *map);

#endif /* BASE_IDMAP_H */
