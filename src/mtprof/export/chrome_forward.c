/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrows from forward to backward ops (kineto's "fwdbwd").
 *
 * Ops with a sequence number come in order of their end. One without a forward thread is a forward
 * op: it is remembered under (thread, number), and of several the one that began last stays, which
 * is the innermost. One with a forward thread is backward: if its forward op is remembered, both
 * get the next arrow and the entry goes. So wrappers of the backward op, which end later, get none.
 *
 * A forward op has one place in the table, given by its number; neighbours in time are neighbours
 * in memory. Where two that are pending want one place the table grows, up to a limit; from there
 * on the later one has it, and the other loses its arrow.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "mtprof/export/export_chrome_impl.h"

enum {
    FIRST_CAPACITY = 1024,
    MOST_CAPACITY = 1 << 18 /* of pending forward ops; 8 MiB */
};

typedef struct forward {
    int64_t sequence; /* -1: free */
    int64_t start_ns;
    uint32_t thread, track;
} forward;

struct mtprof__forwards {
    forward *entries;
    size_t capacity; /* a power of two, or 0 */
    uint64_t flows;
};

int mtprof__chrome_forward_init(mtprof__chrome *chrome)
{
    chrome->forwards = mtb_calloc(1, sizeof *chrome->forwards);
    if (chrome->forwards == NULL) {
        return mtb_fail(MTPROF_ENOMEM, "export: no memory for pending flows");
    }
    return MTPROF_OK;
}

void mtprof__chrome_forward_fini(mtprof__chrome *chrome)
{
    if (chrome->forwards != NULL) {
        mtb_free(chrome->forwards->entries);
        mtb_free(chrome->forwards);
    }
}

static forward *place_of(const struct mtprof__forwards *table, uint32_t thread, int64_t sequence)
{
    uint64_t place = (uint64_t)sequence + (uint64_t)thread * 0x9E3779B97F4A7C15u;
    return &table->entries[place & (table->capacity - 1)];
}

static bool is_of(const forward *entry, uint32_t thread, int64_t sequence)
{
    return entry->sequence == sequence && entry->thread == thread;
}

/* Twice as large. False: it cannot be; the table is as it was. Two that had places of their own
 * have them still. */
static bool grow_table(struct mtprof__forwards *table)
{
    size_t capacity = table->capacity > 0 ? 2 * table->capacity : FIRST_CAPACITY;
    if (capacity > MOST_CAPACITY) {
        return false;
    }
    struct mtprof__forwards larger = {.capacity = capacity, .flows = table->flows};
    larger.entries = mtb_resize(NULL, capacity, sizeof *larger.entries);
    if (larger.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < capacity; i++) {
        larger.entries[i].sequence = -1;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        const forward *entry = &table->entries[i];
        if (entry->sequence >= 0) {
            *place_of(&larger, entry->thread, entry->sequence) = *entry;
        }
    }
    mtb_free(table->entries);
    *table = larger;
    return true;
}

static void remember(struct mtprof__forwards *table, uint32_t thread, const mtprof__event *event)
{
    int64_t sequence = event->payload->sequence;
    if (table->capacity == 0 && !grow_table(table)) {
        return; /* an arrow less */
    }
    forward *entry = place_of(table, thread, sequence);
    while (entry->sequence >= 0 && !is_of(entry, thread, sequence) && grow_table(table)) {
        entry = place_of(table, thread, sequence);
    }
    if (is_of(entry, thread, sequence) && entry->start_ns > event->shown_start_ns) {
        return;
    }
    *entry = (forward){.sequence = sequence,
                       .start_ns = event->shown_start_ns,
                       .thread = thread,
                       .track = event->track};
}

void mtprof__chrome_forward(mtprof__chrome *chrome, const mtprof__event *event)
{
    const mtprof__payload *payload = event->payload;
    struct mtprof__forwards *table = chrome->forwards;
    if (event->kind != MTPROF_EVENT_OP || payload->sequence < 0) {
        return;
    }
    bool backward =
        (payload->fields & MTPROF__HAS_FORWARD_THREAD) != 0 && payload->forward_thread != 0;
    if (!backward) {
        remember(table, mtprof__chrome_track_of(chrome, event->track)->number, event);
        return;
    }
    if (table->capacity == 0) {
        return;
    }
    forward *entry = place_of(table, payload->forward_thread, payload->sequence);
    if (is_of(entry, payload->forward_thread, payload->sequence)) {
        uint64_t id = ++table->flows;
        mtprof__chrome_flow(chrome, 's', "fwdbwd", id, entry->track, entry->start_ns);
        mtprof__chrome_flow(chrome, 'f', "fwdbwd", id, event->track, event->shown_start_ns);
        entry->sequence = -1;
    }
}
