/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/import/import_cache.h"

#include "base/alloc.h"
#include "base/compiler.h"

#include <string.h>

const mtprof__cache_entry *mtprof__cache_find(const mtprof__cache *cache, const char *key,
                                              size_t length, uint64_t hash)
{
    if (MT_UNLIKELY(cache->entries == NULL)) {
        return NULL;
    }
    const mtprof__cache_entry *entry = &cache->entries[hash % MTPROF__CACHE_SLOTS];
    if (entry->hash == hash && entry->length == length && entry->key != NULL &&
        memcmp(entry->key, key, length) == 0) {
        return entry;
    }
    return NULL;
}

void mtprof__cache_keep(mtprof__cache *cache, const char *key, size_t length, uint64_t hash,
                        const uint32_t values[2])
{
    if (length > MTPROF__CACHE_KEY_MOST) {
        return;
    }
    if (cache->entries == NULL) {
        cache->entries = mtb_calloc(MTPROF__CACHE_SLOTS, sizeof *cache->entries);
        if (cache->entries == NULL) {
            return;
        }
    }
    mtprof__cache_entry *entry = &cache->entries[hash % MTPROF__CACHE_SLOTS];
    if (entry->capacity < length + 1) {
        uint32_t capacity = (uint32_t)mtb_round_up(length + 1, 64);
        char *room = mtb_resize(entry->key, capacity, 1);
        if (room == NULL) {
            return;
        }
        entry->key = room;
        entry->capacity = capacity;
    }
    memcpy(entry->key, key, length);
    entry->hash = hash;
    entry->length = (uint32_t)length;
    entry->values[0] = values[0];
    entry->values[1] = values[1];
}

void mtprof__cache_fini(mtprof__cache *cache)
{
    if (cache->entries != NULL) {
        for (size_t i = 0; i < MTPROF__CACHE_SLOTS; i++) {
            mtb_free(cache->entries[i].key);
        }
        mtb_free(cache->entries);
        cache->entries = NULL;
    }
}
