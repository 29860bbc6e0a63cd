/* SPDX-License-Identifier: Apache-2.0
 */
#include "mtprof/model/facts/forward_table.h"

#include "base/alloc.h"

enum {
    FIRST_CAPACITY = 1024,
    MOST_CAPACITY = 1 << 18 /* of pending forward ops; 8 MiB */
};

static mtprof__forward *place_of(const mtprof__forwards *table, uint32_t thread, int64_t sequence)
{
    uint64_t place = (uint64_t)sequence + (uint64_t)thread * 0x9E3779B97F4A7C15u;
    return &table->entries[place & (table->capacity - 1)];
}

static bool is_of(const mtprof__forward *entry, uint32_t thread, int64_t sequence)
{
    return entry->sequence == sequence && entry->thread == thread;
}

/* Twice as large. False: it cannot be; the table is as it was. Two that had places of their own
 * have them still. */
static bool grow_table(mtprof__forwards *table)
{
    size_t capacity = table->capacity > 0 ? 2 * table->capacity : FIRST_CAPACITY;
    if (capacity > MOST_CAPACITY) {
        return false;
    }
    mtprof__forwards larger = *table;
    larger.capacity = capacity;
    larger.entries = mtb_resize(NULL, capacity, sizeof *larger.entries);
    if (larger.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < capacity; i++) {
        larger.entries[i].sequence = -1;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        const mtprof__forward *entry = &table->entries[i];
        if (entry->sequence >= 0) {
            *place_of(&larger, entry->thread, entry->sequence) = *entry;
        }
    }
    mtb_free(table->entries);
    *table = larger;
    return true;
}

bool mtprof__forward_has(const mtprof__event *event)
{
    return event->kind == MTPROF_EVENT_KIND_OP && event->payload != NULL &&
           (event->payload->fields & MTPROF__HAS_SEQUENCE) != 0 && event->payload->sequence >= 0;
}

bool mtprof__forward_is_backward(const mtprof__event *event)
{
    return (event->payload->fields & MTPROF__HAS_FORWARD_THREAD) != 0 &&
           event->payload->forward_thread != 0;
}

void mtprof__forward_remember(mtprof__forwards *table, uint32_t thread, const mtprof__event *event)
{
    int64_t sequence = event->payload->sequence;
    if (table->capacity == 0 && !grow_table(table)) {
        return;
    }
    mtprof__forward *entry = place_of(table, thread, sequence);
    while (entry->sequence >= 0 && !is_of(entry, thread, sequence) && grow_table(table)) {
        entry = place_of(table, thread, sequence);
    }
    if (is_of(entry, thread, sequence) && entry->start_ns > event->shown_start_ns) {
        return;
    }
    table->full = table->full || (entry->sequence >= 0 && !is_of(entry, thread, sequence));
    *entry = (mtprof__forward){.sequence = sequence,
                               .start_ns = event->shown_start_ns,
                               .thread = thread,
                               .track = event->track};
}

bool mtprof__forward_take(mtprof__forwards *table, const mtprof__event *event, mtprof__forward *out)
{
    const mtprof__payload *payload = event->payload;
    if (table->capacity == 0) {
        return false;
    }
    mtprof__forward *entry = place_of(table, payload->forward_thread, payload->sequence);
    if (!is_of(entry, payload->forward_thread, payload->sequence)) {
        table->left_out += table->full && entry->sequence >= 0; /* another has its place */
        return false;
    }
    *out = *entry;
    entry->sequence = -1;
    return true;
}

void mtprof__forwards_fini(mtprof__forwards *table)
{
    mtb_free(table->entries);
    *table = (mtprof__forwards){0};
}
