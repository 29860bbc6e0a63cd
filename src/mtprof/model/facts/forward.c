/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/facts/forward.h"

#include "base/hash.h"
#include "base/large.h"

#include <string.h>

enum {
    FIRST_CAPACITY = 1024
};

MT_INLINE bool is_of(const mtprof__forward *entry, uint32_t thread, uint64_t number)
{
    return entry->number == number && entry->thread == thread;
}

MT_INLINE mtprof__forward *entry_at(const mtprof__forwards *table, uint64_t place)
{
    size_t at = place & (table->capacity - 1);
    return (mtprof__forward *)((char *)table->entries + at * table->entry_bytes);
}

/* FW4: at most half of the places are taken and a step is odd, so that it comes to a free one. */
static MT_NOINLINE mtprof__forward *step_on(const mtprof__forwards *table, uint32_t thread,
                                            uint64_t number, uint64_t place)
{
    uint64_t step = mtb_mix(number, thread) | 1;
    mtprof__forward *entry;
    do {
        place += step;
        entry = entry_at(table, place);
    } while (entry->number != 0 && !is_of(entry, thread, number));
    return entry;
}

/* The place of an op, which may be another one's with FW3. */
MT_INLINE mtprof__forward *find_place(const mtprof__forwards *table, uint32_t thread,
                                      uint64_t number)
{
    uint64_t place = number + (uint64_t)thread * 0x9E3779B97F4A7C15u;
    mtprof__forward *entry = entry_at(table, place);
    bool other = entry->number != 0 && !is_of(entry, thread, number);
    return MT_UNLIKELY(other && table->limit == 0) ? step_on(table, thread, number, place) : entry;
}

/* Twice as large. False: it cannot be; the table is as it was. Two that had places of their own
 * have them still. */
static bool grow_table(mtprof__forwards *table)
{
    mtprof__forwards larger = *table;
    larger.capacity = table->capacity > 0 ? 2 * table->capacity : FIRST_CAPACITY;
    if (larger.capacity > table->limit) {
        return false;
    }
    larger.entries = mtb_array_take(larger.capacity, table->entry_bytes);
    if (larger.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        const mtprof__forward *entry = entry_at(table, i);
        if (entry->number != 0) {
            memcpy(find_place(&larger, entry->thread, entry->number), entry, table->entry_bytes);
        }
    }
    mtb_array_give(table->entries, table->capacity, table->entry_bytes);
    *table = larger;
    return true;
}

bool mtprof__forwards_init(mtprof__forwards *table, size_t entry_bytes, size_t n)
{
    *table = (mtprof__forwards){.entry_bytes = entry_bytes, .capacity = 16};
    while (table->capacity < 2 * n) {
        table->capacity *= 2;
    }
    table->entries = mtb_array_take(table->capacity, entry_bytes);
    return table->entries != NULL;
}

void mtprof__forwards_fini(mtprof__forwards *table)
{
    mtb_array_give(table->entries, table->capacity, table->entry_bytes);
    *table = (mtprof__forwards){0};
}

/* Makes room for an op that is not there. NULL: memory is refused. */
static mtprof__forward *add_new(mtprof__forwards *table, uint32_t thread, uint64_t number)
{
    if (table->capacity == 0 && !grow_table(table)) {
        return NULL;
    }
    mtprof__forward *entry = find_place(table, thread, number);
    while (MT_UNLIKELY(entry->number != 0) && grow_table(table)) {
        entry = find_place(table, thread, number);
    }
    if (MT_UNLIKELY(entry->number != 0)) { /* a free place is all zeros */
        table->full = true;
        memset(entry, 0, table->entry_bytes);
    }
    entry->number = number;
    entry->thread = thread;
    return entry;
}

MT_INLINE void *add(mtprof__forwards *table, uint32_t thread, int64_t sequence, bool *added)
{
    uint64_t number = (uint64_t)sequence + 1;
    if (table->capacity > 0) {
        mtprof__forward *entry = find_place(table, thread, number);
        if (is_of(entry, thread, number)) {
            *added = false;
            return entry;
        }
    }
    mtprof__forward *entry = add_new(table, thread, number);
    *added = entry != NULL;
    return entry;
}

MT_INLINE void *find(mtprof__forwards *table, uint32_t thread, int64_t sequence)
{
    uint64_t number = (uint64_t)sequence + 1;
    if (table->capacity == 0) {
        return NULL;
    }
    mtprof__forward *entry = find_place(table, thread, number);
    if (is_of(entry, thread, number)) {
        return entry;
    }
    table->left_out += table->full && entry->number != 0; /* another has its place */
    return NULL;
}

void *mtprof__forward_add(mtprof__forwards *table, uint32_t thread, int64_t sequence, bool *added)
{
    return add(table, thread, sequence, added);
}

void *mtprof__forward_find(mtprof__forwards *table, uint32_t thread, int64_t sequence)
{
    return find(table, thread, sequence);
}

void mtprof__forward_wait(mtprof__forwards *table, uint32_t thread, int64_t sequence,
                          int64_t start_ns, uint32_t note)
{
    bool added;
    mtprof__waiting *entry = add(table, thread, sequence, &added);
    if (entry != NULL && (added || entry->start_ns <= start_ns)) {
        entry->start_ns = start_ns;
        entry->forward.note = note;
    }
}

bool mtprof__forward_take(mtprof__forwards *table, uint32_t thread, int64_t sequence,
                          mtprof__waiting *out)
{
    mtprof__waiting *entry = find(table, thread, sequence);
    if (entry == NULL || entry->start_ns == INT64_MIN) {
        return false;
    }
    *out = *entry;
    if (table->limit != 0) {
        *entry = (mtprof__waiting){.start_ns = 0};
    } else {
        entry->start_ns = INT64_MIN; /* it stays: others are found across it */
    }
    return true;
}
