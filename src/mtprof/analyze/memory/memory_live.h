/* SPDX-License-Identifier: Apache-2.0
 *
 * Which allocation lies at an address right now. Both passes of the memory exports keep this table:
 * the first to find out what each allocation is, the second to write the timeline.
 *
 *   LV1  An address has one entry for good: when its memory is freed the entry stays, dead, so
 *        that a tensor seen there later is known not to be older than the recording.
 *   LV2  Pointers to entries are valid until the next add.
 */
#ifndef MTPROF_ANALYZE_MEMORY_MEMORY_LIVE_H
#define MTPROF_ANALYZE_MEMORY_MEMORY_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mtprof__live_state {
    MTPROF__LIVE_FREE = 0, /* an empty place of the table */
    MTPROF__LIVE_YES = 1,
    MTPROF__LIVE_DEAD = 2,
    MTPROF__LIVE_NEW = 3 /* just added */
};

/* Blocks that were not seen being allocated have numbers of their own, with this bit. */
#define MTPROF__BLOCK_FOUND 0x80000000u

typedef struct mtprof__live_block {
    uint64_t address;
    int64_t bytes;
    uint64_t ordinal; /* first pass: edge at which it came up */
    uint64_t unit;    /* first pass: op in which it was allocated, 0: none */
    uint64_t forward; /* first pass: forward op of the backward op in which it was allocated */
    uint32_t block;
    uint32_t storage;   /* first pass: index + 1 of what the flow knows about it, 0: no tensor */
    uint32_t optimizer; /* first pass: step of an optimizer in which it was allocated, 0: none */
    uint8_t device;
    uint8_t state;    /* enum mtprof__live_state */
    uint8_t category; /* second pass: at this moment */
    uint8_t backward; /* first pass: allocated in the backward pass */
} mtprof__live_block;

typedef struct mtprof__addresses {
    mtprof__live_block *entries;
    size_t capacity, count;
} mtprof__addresses;

/* The entry of an address, live or dead, or NULL. */
mtprof__live_block *mtprof__addresses_find(const mtprof__addresses *live, uint8_t device,
                                           uint64_t address);

/* The same; a missing one is made: NEW, and zero but for address and device. NULL when memory is
 * refused. */
mtprof__live_block *mtprof__addresses_add(mtprof__addresses *live, uint8_t device,
                                          uint64_t address);

void mtprof__addresses_fini(mtprof__addresses *live);

#endif /* MTPROF_ANALYZE_MEMORY_MEMORY_LIVE_H */
