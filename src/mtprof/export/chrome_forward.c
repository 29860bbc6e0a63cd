/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrows from forward to backward ops (kineto's "fwdbwd").
 *
 * Ops with a sequence number come in order of their end. One without a forward thread is a forward
 * op: it is remembered under (thread, number), and of several the one that began last stays, which
 * is the innermost. One with a forward thread is backward: if its forward op is remembered, both
 * get the next arrow and the entry goes. So wrappers of the backward op, which end later, get none.
 *
 * What never meets its backward op stays. The table is bounded: when it is full, the older half of
 * it goes.
 */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "mtprof/export/export_chrome_impl.h"

enum {
    FIRST_CAPACITY = 1024,
    MOST_CAPACITY = 1 << 20
};

typedef struct forward {
    int64_t sequence;
    int64_t start_ns;
    uint64_t stamp; /* order of arrival; 0: free */
    uint32_t thread, track;
} forward;

struct mtprof__forwards {
    forward *entries;
    size_t capacity, count; /* a power of two; open addressing, at most half full */
    uint64_t stamps, flows;
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

static size_t home_of(const struct mtprof__forwards *table, uint32_t thread, int64_t sequence)
{
    return (size_t)mtb_mix((uint64_t)sequence, thread) & (table->capacity - 1);
}

/* The entry of a key, or the free one where it would stand. */
static forward *find_entry(struct mtprof__forwards *table, uint32_t thread, int64_t sequence)
{
    for (size_t i = home_of(table, thread, sequence);; i = (i + 1) & (table->capacity - 1)) {
        forward *entry = &table->entries[i];
        if (entry->stamp == 0 || (entry->thread == thread && entry->sequence == sequence)) {
            return entry;
        }
    }
}

/* Takes an entry out and closes the gap, so that searches need no marks of what was deleted. */
static void remove_entry(struct mtprof__forwards *table, forward *entry)
{
    size_t mask = table->capacity - 1;
    size_t gap = (size_t)(entry - table->entries);
    for (size_t i = (gap + 1) & mask; table->entries[i].stamp != 0; i = (i + 1) & mask) {
        size_t home = home_of(table, table->entries[i].thread, table->entries[i].sequence);
        if (((i - home) & mask) >= ((i - gap) & mask)) {
            table->entries[gap] = table->entries[i];
            gap = i;
        }
    }
    table->entries[gap] = (forward){0};
    table->count--;
}

/* Makes room for one more: twice as large, or without its older half. False: no memory. */
static bool make_room(struct mtprof__forwards *table)
{
    if (table->count + 1 <= table->capacity / 2) {
        return true;
    }
    bool full = table->capacity >= MOST_CAPACITY;
    struct mtprof__forwards larger = *table;
    larger.capacity = full                  ? table->capacity
                      : table->capacity > 0 ? 2 * table->capacity
                                            : FIRST_CAPACITY;
    larger.count = 0;
    larger.entries = mtb_calloc(larger.capacity, sizeof *larger.entries);
    if (larger.entries == NULL) {
        return false;
    }
    uint64_t oldest = full ? table->stamps - table->count / 2 : 0;
    for (size_t i = 0; i < table->capacity; i++) {
        const forward *entry = &table->entries[i];
        if (entry->stamp > oldest) {
            *find_entry(&larger, entry->thread, entry->sequence) = *entry;
            larger.count++;
        }
    }
    mtb_free(table->entries);
    *table = larger;
    return true;
}

static void remember(struct mtprof__forwards *table, uint32_t thread, const mtprof__event *event)
{
    int64_t sequence = event->payload->sequence;
    if (!make_room(table)) {
        return; /* an arrow less */
    }
    forward *entry = find_entry(table, thread, sequence);
    if (entry->stamp != 0 && entry->start_ns > event->shown_start_ns) {
        return;
    }
    table->count += entry->stamp == 0;
    *entry = (forward){.sequence = sequence,
                       .start_ns = event->shown_start_ns,
                       .stamp = ++table->stamps,
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
    if (table->count == 0) {
        return;
    }
    forward *entry = find_entry(table, payload->forward_thread, payload->sequence);
    if (entry->stamp != 0) {
        uint64_t id = ++table->flows;
        mtprof__chrome_flow(chrome, 's', "fwdbwd", id, entry->track, entry->start_ns);
        mtprof__chrome_flow(chrome, 'f', "fwdbwd", id, event->track, event->shown_start_ns);
        remove_entry(table, entry);
    }
}
