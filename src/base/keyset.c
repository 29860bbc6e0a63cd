/* SPDX-License-Identifier: Apache-2.0
 *
 * The set of keys, see keyset.h: linear probing, at most three quarters full. Removal moves later
 * keys of the same run forward, so that no tombstones are needed and a search ends at a free place.
 */
#include "base/keyset.h"

#include "base/alloc.h"
#include "base/hash.h"

#include <string.h>

enum {
    FIRST_CAPACITY = 64
};

static size_t home_of(const mtb_keyset *set, uint64_t key)
{
    return (size_t)mtb_mix(key, 0) & (set->capacity - 1);
}

/* Where the key is, or the free place where it would be. */
static size_t find_place(const mtb_keyset *set, uint64_t key)
{
    size_t at = home_of(set, key);
    while (set->keys[at] != 0 && set->keys[at] != key) {
        at = (at + 1) & (set->capacity - 1);
    }
    return at;
}

static bool grow(mtb_keyset *set)
{
    mtb_keyset larger = {.capacity = set->capacity == 0 ? FIRST_CAPACITY : set->capacity * 2};
    larger.keys = mtb_calloc(larger.capacity, sizeof *larger.keys);
    if (larger.keys == NULL) {
        return false;
    }
    for (size_t i = 0; i < set->capacity; i++) {
        if (set->keys[i] != 0) {
            larger.keys[find_place(&larger, set->keys[i])] = set->keys[i];
        }
    }
    larger.count = set->count;
    mtb_free(set->keys);
    *set = larger;
    return true;
}

bool mtb_keyset_add(mtb_keyset *set, uint64_t key)
{
    if (set->count + 1 > set->capacity / 4 * 3 && !grow(set)) {
        return false;
    }
    size_t at = find_place(set, key);
    set->count += set->keys[at] == 0;
    set->keys[at] = key;
    return true;
}

bool mtb_keyset_has(const mtb_keyset *set, uint64_t key)
{
    return set->capacity != 0 && set->keys[find_place(set, key)] != 0;
}

bool mtb_keyset_remove(mtb_keyset *set, uint64_t key)
{
    if (!mtb_keyset_has(set, key)) {
        return false;
    }
    size_t mask = set->capacity - 1;
    size_t hole = find_place(set, key);
    for (size_t at = (hole + 1) & mask; set->keys[at] != 0; at = (at + 1) & mask) {
        /* A key may fill the hole unless its home lies after the hole, on the way to where it
         * is. */
        size_t from_home = (at - home_of(set, set->keys[at])) & mask;
        size_t from_hole = (at - hole) & mask;
        if (from_home >= from_hole) {
            set->keys[hole] = set->keys[at];
            hole = at;
        }
    }
    set->keys[hole] = 0;
    set->count--;
    return true;
}

void mtb_keyset_clear(mtb_keyset *set)
{
    if (set->count != 0) {
        memset(set->keys, 0, set->capacity * sizeof *set->keys);
        set->count = 0;
    }
}

void mtb_keyset_fini(mtb_keyset *set)
{
    mtb_free(set->keys);
    memset(set, 0, sizeof *set);
}
