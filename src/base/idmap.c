/* SPDX-License-Identifier: Apache-2.0
 *
 * Open addressing with linear probing, at most three quarters full. See idmap.h.
 */
#include "base/idmap.h"

#include "base/pages.h"

#include <string.h>

enum {
    FIRST_CAPACITY = 256 /* a page */
};

static void place(mtb_idmap *map, uint64_t hash, uint32_t id)
{
    size_t at = hash & (map->capacity - 1);
    while (map->entries[at].id != 0) {
        at = (at + 1) & (map->capacity - 1);
    }
    map->entries[at].hash = hash;
    map->entries[at].id = id;
}

uint32_t mtb_idmap_find(const mtb_idmap *map, uint64_t hash, mtb_idmap_same *same,
                        const void *context, const void *key)
{
    if (map->capacity == 0) {
        return 0;
    }
    for (size_t at = hash & (map->capacity - 1); map->entries[at].id != 0;
         at = (at + 1) & (map->capacity - 1)) {
        if (map->entries[at].hash == hash && same(context, map->entries[at].id, key)) {
            return map->entries[at].id;
        }
    }
    return 0;
}

bool mtb_idmap_reserve(mtb_idmap *map)
{
    if ((map->count + 1) * 4 <= map->capacity * 3) {
        return true;
    }
    mtb_idmap larger = {NULL, map->capacity == 0 ? FIRST_CAPACITY : map->capacity * 2, 0};
    larger.entries = mtb_pages_take(larger.capacity * sizeof *larger.entries);
    if (larger.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].id != 0) {
            place(&larger, map->entries[i].hash, map->entries[i].id);
        }
    }
    mtb_pages_give(map->entries, map->capacity * sizeof *map->entries);
    map->entries = larger.entries;
    map->capacity = larger.capacity;
    return true;
}

bool mtb_idmap_add(mtb_idmap *map, uint64_t hash, uint32_t id)
{
    if (!mtb_idmap_reserve(map)) {
        return false;
    }
    place(map, hash, id);
    map->count++;
    return true;
}

void mtb_idmap_clear(mtb_idmap *map)
{
    if (map->count > 0) {
        memset(map->entries, 0, map->capacity * sizeof *map->entries);
    }
    map->count = 0;
}

void mtb_idmap_reset(mtb_idmap *map)
{
    mtb_pages_give(map->entries, map->capacity * sizeof *map->entries);
    map->entries = NULL;
    map->capacity = 0;
    map->count = 0;
}
