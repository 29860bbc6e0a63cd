/* SPDX-License-Identifier: Apache-2.0
 *
 * Open addressing with linear probing; entries are never removed, see memory_live.h.
 */
#include "mtprof/analyze/memory/memory_live.h"

#include "base/alloc.h"
#include "base/hash.h"

enum {
    FIRST_CAPACITY = 1024 /* a power of two */
};

static size_t find_place(const mtprof__addresses *live, uint8_t device, uint64_t address)
{
    size_t mask = live->capacity - 1;
    size_t at = (size_t)mtb_mix(address, device) & mask;
    while (live->entries[at].state != MTPROF__LIVE_FREE &&
           (live->entries[at].address != address || live->entries[at].device != device)) {
        at = (at + 1) & mask;
    }
    return at;
}

mtprof__live_block *mtprof__addresses_find(const mtprof__addresses *live, uint8_t device,
                                           uint64_t address)
{
    if (live->capacity == 0) {
        return NULL;
    }
    mtprof__live_block *entry = &live->entries[find_place(live, device, address)];
    return entry->state == MTPROF__LIVE_FREE ? NULL : entry;
}

/* At most two thirds full: probing stays short. */
static bool make_room(mtprof__addresses *live)
{
    if ((live->count + 1) * 3 <= live->capacity * 2) {
        return true;
    }
    mtprof__addresses larger = {.capacity =
                                    live->capacity == 0 ? FIRST_CAPACITY : live->capacity * 2,
                                .count = live->count};
    larger.entries = mtb_calloc(larger.capacity, sizeof *larger.entries);
    if (larger.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < live->capacity; i++) {
        const mtprof__live_block *entry = &live->entries[i];
        if (entry->state != MTPROF__LIVE_FREE) {
            larger.entries[find_place(&larger, entry->device, entry->address)] = *entry;
        }
    }
    mtb_free(live->entries);
    *live = larger;
    return true;
}

mtprof__live_block *mtprof__addresses_add(mtprof__addresses *live, uint8_t device, uint64_t address)
{
    if (!make_room(live)) {
        return NULL;
    }
    mtprof__live_block *entry = &live->entries[find_place(live, device, address)];
    if (entry->state != MTPROF__LIVE_FREE) {
        return entry;
    }
    *entry = (mtprof__live_block){.address = address, .device = device, .state = MTPROF__LIVE_NEW};
    live->count++;
    return entry;
}

void mtprof__addresses_fini(mtprof__addresses *live)
{
    mtb_free(live->entries);
    *live = (mtprof__addresses){0};
}
