/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw texts to what they became: a table of fixed size in front of decoding and interning. The same
 * few names, shapes and stacks come again and again; a text that was pushed out is just decoded
 * again.
 */
#ifndef MTPROF_IMPORT_IMPORT_CACHE_H
#define MTPROF_IMPORT_IMPORT_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MTPROF__CACHE_SLOTS = 4096,
    MTPROF__CACHE_KEY_MOST = 4096 /* longer texts are not kept */
};

typedef struct mtprof__cache_entry {
    uint64_t hash;
    char *key;
    uint32_t length, capacity; /* of key */
    uint32_t values[2];
} mtprof__cache_entry;

typedef struct mtprof__cache {
    mtprof__cache_entry *entries; /* NULL: nothing was kept yet */
} mtprof__cache;

/* What was kept for a text; NULL: nothing. */
const mtprof__cache_entry *mtprof__cache_find(const mtprof__cache *cache, const char *key,
                                              size_t length, uint64_t hash);
/* Keeps it, in place of another where need be. Without memory nothing is kept: it is a cache. */
void mtprof__cache_keep(mtprof__cache *cache, const char *key, size_t length, uint64_t hash,
                        const uint32_t values[2]);
void mtprof__cache_fini(mtprof__cache *cache);

#endif /* MTPROF_IMPORT_IMPORT_CACHE_H */
