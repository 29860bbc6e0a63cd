/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries by a pointer: open addressing, at most half full. An entry begins with its key; NULL: it
 * is free. A table that is all zero is empty. Needs the GIL; finding needs it or, for tables whose
 * entries are changed under it, the lock of python_stacks.h.
 */
#ifndef PYTHON_EXT_PROFILER_STACKS_POINTER_TABLE_H
#define PYTHON_EXT_PROFILER_STACKS_POINTER_TABLE_H

#include "profiler/stacks/python_stacks.h"

#include <string.h>

typedef struct pointer_table {
    char *entries;
    size_t count, capacity; /* a power of two */
} pointer_table;

/* The key's entry, or the free one where it belongs. The table must have room. */
static inline void *pointer_table_find(const pointer_table *table, size_t entry_bytes,
                                       const void *key)
{
    uint64_t hash = (uint64_t)(uintptr_t)key * 0x9E3779B97F4A7C15u;
    for (size_t at = (size_t)(hash >> 32);; at++) {
        char *entry = table->entries + (at & (table->capacity - 1)) * entry_bytes;
        const void *found = NULL;
        memcpy(&found, entry, sizeof found);
        if (found == NULL || found == key) {
            return entry;
        }
    }
}

/* Makes room for one more; `first` entries to begin with. false: no memory, nothing changed. */
static inline bool pointer_table_reserve(pointer_table *table, size_t entry_bytes, size_t first)
{
    if (table->count * 2 < table->capacity) {
        return true;
    }
    pointer_table larger = {.count = table->count,
                            .capacity = table->capacity == 0 ? first : table->capacity * 2};
    larger.entries = PyMem_RawCalloc(larger.capacity, entry_bytes);
    if (larger.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        const char *entry = table->entries + i * entry_bytes;
        const void *key = NULL;
        memcpy(&key, entry, sizeof key);
        if (key != NULL) {
            memcpy(pointer_table_find(&larger, entry_bytes, key), entry, entry_bytes);
        }
    }
    char *smaller = table->entries;
    stacks_lock();
    *table = larger;
    stacks_unlock();
    PyMem_RawFree(smaller);
    return true;
}

/* Takes all entries out; the memory stays. The lock is the caller's. */
static inline void pointer_table_clear(pointer_table *table, size_t entry_bytes)
{
    if (table->entries != NULL) {
        memset(table->entries, 0, table->capacity * entry_bytes);
    }
    table->count = 0;
}

#endif /* PYTHON_EXT_PROFILER_STACKS_POINTER_TABLE_H */
