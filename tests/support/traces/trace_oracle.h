/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model must say of a random trace, worked out a second time and as simply as possible: from
 * the list of what the program did, event by event, by looking at all the others. It knows nothing
 * of records, chunks or stacks.
 *
 * For well-formed traces only.
 */
#ifndef TESTS_SUPPORT_TRACES_TRACE_ORACLE_H
#define TESTS_SUPPORT_TRACES_TRACE_ORACLE_H

#include "support/traces/random_trace.h"

#include <mtprof/model.h>

typedef struct oracle_event {
    uint32_t kind; /* enum mtprof_event_kind */
    char name[64];
    size_t name_length;
    int64_t start_ns, end_ns, self_ns;
    int32_t parent; /* in `events`, -1: none */
    int32_t link;
    uint32_t thread;        /* logical; 0: a queue */
    uint32_t device, queue; /* of device work: numbers of the source */
    int32_t step;
    uint32_t index; /* MTPROF_NO_EVENT: none */
    uint16_t flags;
    uint64_t correlation; /* 0: none */
    int64_t device_ns, self_device_ns;
    int64_t memory_self[2], memory[2]; /* host, device */
    uint64_t bytes;
    const rt_payload *payload; /* NULL: none */
    uint32_t stack;            /* node, 0: none; of backward events that of their forward op */
    uint32_t module;           /* a name, 0: none; the same */
    bool gone;                 /* folded into its parent */

    /* for working it out */
    uint64_t key;
    uint32_t epoch;
    uint16_t slot;
    size_t begin_at, end_at; /* actions; end_at SIZE_MAX: by another slot, or never */
    uint32_t end_slot;       /* that other slot */
    bool nests;
    size_t overlap_at;   /* action at which it stopped to; 0: none */
    int32_t full_parent; /* functions included */
    int32_t nest_parent; /* among those that nest */
} oracle_event;

typedef struct oracle {
    const rt_trace *trace;
    int64_t end_ns; /* of a trace that was not closed, as a reader has it */
    oracle_event *events;
    size_t n, capacity;
    uint64_t unmatched, orphans, truncated, overlaps, collapsed;
} oracle;

/* fold: only children of their parent's name are folded away. */
void oracle_make(oracle *o, const rt_trace *trace, int64_t end_ns, bool fold);
void oracle_free(oracle *o);

/* Nanoseconds at a tick, docs/format.md 3.1. */
int64_t oracle_ns(const rt_trace *trace, uint64_t ticks);

#endif /* TESTS_SUPPORT_TRACES_TRACE_ORACLE_H */
