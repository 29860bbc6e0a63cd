/* SPDX-License-Identifier: Apache-2.0
 *
 * Random traces: a seeded program of a few threads and a device, as a list of what it did, and as
 * the bytes of the .mtt trace that a recorder would have written.
 *
 * Time is global: each step moves it by a little, often by nothing, and one slot does something. So
 * what crosses slots (ends, parents, launches) is consistent, and ties are common.
 *
 * A well-formed trace keeps docs/format.md; a hostile one also has what a reader must survive: ends
 * without begins and repeated ones, times that go back, threads that change while scopes are open,
 * nested records, scopes that outlive the ones around them in any order, keys of anything.
 */
#ifndef TESTS_SUPPORT_TRACES_RANDOM_TRACE_H
#define TESTS_SUPPORT_TRACES_RANDOM_TRACE_H

#include "support/traces/trace_builder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RT_SLOTS = 5,  /* at most */
    RT_QUEUES = 3, /* of each device */
    RT_DEVICES = 2,
    RT_NAMES = 24,
    RT_INPUTS = 6,
    RT_STACKS = 12,
    RT_MODULES = 3
};

typedef struct rt_options {
    uint64_t seed;
    size_t steps; /* things done; a bit more than half of them become events */
    bool hostile;
    bool any_bytes; /* names that are no UTF-8 */
    bool evil;      /* names that pages and scripts could take for their own */
    bool plain; /* nothing that a Chrome trace cannot say: no scopes that do not nest, no names in
                   full that are long, no parents by name */
} rt_options;

/* What a begin or launch came with. Absent is absent. */
enum rt_field {
    RT_HAS_INPUTS = 1 << 0,
    RT_HAS_STACK = 1 << 1,
    RT_HAS_SEQUENCE = 1 << 2,
    RT_HAS_FORWARD = 1 << 3,
    RT_HAS_OVERLOAD = 1 << 4,
    RT_HAS_RECORD_SCOPE = 1 << 5,
    RT_HAS_FLOPS = 1 << 6,
    RT_HAS_MODULE = 1 << 7,
    RT_HAS_FOREIGN_ID = 1 << 8,
    RT_HAS_MEMORY = 1 << 9,
    RT_HAS_METADATA = 1 << 10,
    RT_HAS_FULL_NAME = 1 << 11
};

typedef struct rt_payload {
    uint32_t fields;
    uint32_t inputs; /* list, from 1 */
    bool inputs_inline;
    uint32_t stack; /* node, from 1 */
    int64_t sequence;
    uint32_t forward_thread;
    uint32_t overload, module; /* names, from 1 */
    uint32_t record_scope;
    uint64_t flops, foreign_id;
    uint32_t memory_device;
    uint64_t memory_before, memory_after;
    int64_t metadata; /* an integer under one key */
} rt_payload;

enum rt_act {
    RT_BEGIN,
    RT_END,
    RT_LAUNCH,
    RT_ALLOC,
    RT_POINT, /* instant, counter or flow: no event of the columns */
    RT_TIME   /* EPOCH or THREAD alone */
};

typedef struct rt_action {
    enum rt_act act;
    uint16_t slot;
    uint32_t epoch, thread; /* in force */
    uint64_t ticks;
    uint64_t key;    /* BEGIN, LAUNCH: own; END: of what ends */
    uint32_t name;   /* from 1 */
    uint16_t flags;  /* begin flags */
    uint64_t parent; /* named parent; MTPROF_KEY_STRUCTURE: none is named */
    bool explicit_key;
    uint32_t device, queue; /* ALLOC, LAUNCH */
    int64_t bytes;          /* ALLOC */
    uint32_t point;         /* POINT: kind of record */
    rt_payload payload;
} rt_action;

/* A piece of device work; times on the source's clock. */
typedef struct rt_work {
    uint32_t kind; /* enum mtprof_activity_kind */
    uint32_t name;
    uint64_t start, end;
    uint64_t key; /* launch, 0: none */
    uint32_t device, queue;
    uint64_t bytes, source_id;
} rt_work;

typedef struct rt_epoch {
    uint32_t epoch, window, step;
    uint32_t close_kind; /* 0 saved, 1 discarded, 2 paused, 3 none */
    uint64_t open_ticks, close_ticks;
    uint64_t first_id, n_ids;
} rt_epoch;

typedef struct rt_step {
    uint64_t ticks;
    uint32_t step;
} rt_step;

typedef struct rt_trace {
    rt_options options;
    uint32_t n_slots;
    uint64_t period; /* nanoseconds per tick, 56 fraction bits */
    bool closed;
    rt_action *actions; /* in order of time; of a slot: in the order of its stream */
    size_t n_actions, action_capacity;
    rt_work *works;
    size_t n_works, work_capacity;
    rt_epoch epochs[16];
    size_t n_epochs;
    rt_step step_marks[64];
    size_t n_steps;
    uint64_t pairs[2][2]; /* clock pairs of the source: time, ticks */
    uint64_t end_ticks;
    char names[RT_NAMES + 1][48]; /* from 1 */
    size_t name_lengths[RT_NAMES + 1];

    unsigned char *bytes; /* the trace */
    size_t size;
} rt_trace;

void rt_make(rt_trace *trace, const rt_options *options);
void rt_free(rt_trace *trace);

/* The text of a name that is given in full: its own, with a mark. */
size_t rt_full_name(const rt_trace *trace, uint32_t name, char out[64]);

/* Writes it to a file. */
bool rt_save(const rt_trace *trace, const char *path);

/* rt_make() calls this: actions to bytes (random_trace_write.c). */
void rt_write(rt_trace *trace, uint64_t *seed);

/* Input list i (from 1): its words; how many of its values are scalars. */
size_t rt_input_words(uint32_t i, uint64_t words[16], uint32_t *n_scalars);

#endif /* TESTS_SUPPORT_TRACES_RANDOM_TRACE_H */
