/* SPDX-License-Identifier: Apache-2.0
 *
 * A program with exact times: threads, each with a clock of its own, and queues of a device, as the
 * .mtt image that a recorder would have written. Nothing runs and nothing sleeps.
 *
 *      timed_trace t;
 *      tt_init(&t);
 *      for (int i = 0; i < 10; i++) {
 *          tt_step(&t);
 *          uint64_t launch = tt_launch(&t, 0, "aten::mm", 5000);
 *          tt_kernel(&t, launch, 0, "gemm", 900000);
 *          tt_pass(&t, 0, 1000);                      // host code outside everything
 *      }
 *      mtprof_model *model = tt_model(&t);            // ends the last step
 *      ... mtprof_model_free(model); tt_fini(&t);
 *
 * One tick is one nanosecond. Running out of memory or room ends the program.
 */
#ifndef TESTS_SUPPORT_TRACES_TIMED_TRACE_H
#define TESTS_SUPPORT_TRACES_TIMED_TRACE_H

#include "support/traces/trace_builder.h"

#include <mtprof/model.h>

enum {
    TT_THREADS = 6,
    TT_QUEUES = 4,
    TT_NAMES = 64,
    TT_DEEP = 16
};

typedef struct tt_record {
    uint64_t ticks;
    uint64_t words[3];
    uint32_t name;
    uint16_t flags;
    uint8_t kind; /* enum mtprof_record_kind */
    uint8_t thread;
} tt_record;

typedef struct timed_trace {
    trace_builder b;
    tb_memory memory;
    tt_record *records; /* of threads, in the order of their making */
    size_t n_records, capacity;
    tt_record *works;
    size_t n_works, works_capacity;
    tt_record *steps;
    size_t n_steps, steps_capacity;
    uint64_t now[TT_THREADS];           /* clocks of the threads */
    uint64_t begins[TT_THREADS];        /* so far */
    uint64_t open[TT_THREADS][TT_DEEP]; /* ordinals of open scopes */
    uint32_t depth[TT_THREADS];
    uint64_t free_at[TT_QUEUES];
    uint64_t latency; /* from a launch to its kernel at the least */
    uint64_t pause;   /* of a queue between two pieces of work */
    uint64_t launches;
    const char *names[TT_NAMES];
    uint32_t n_names;
    int64_t allocated;
    uint64_t lost; /* events, for the health counters */
    uint32_t pair_cost_ns;
    bool no_steps; /* tt_step() does nothing */
} timed_trace;

void tt_init(timed_trace *t);
void tt_fini(timed_trace *t);

/* Time passes on a thread. */
void tt_pass(timed_trace *t, int thread, uint64_t ns);
/* A thread, 0 is the main one, begins and ends what is innermost. kind: MTPROF_KIND_OP and so on.
 * Returns the launch key. */
uint64_t tt_begin(timed_trace *t, int thread, uint16_t kind, const char *name);
void tt_end(timed_trace *t, int thread);
/* Begin, pass, end. */
void tt_span(timed_trace *t, int thread, uint16_t kind, const char *name, uint64_t ns);
/* An op with a runtime call inside that launches; both end after ns. The key of the launch. */
uint64_t tt_launch(timed_trace *t, int thread, const char *name, uint64_t ns);
/* Device work: it begins when its queue is free, and after the launch with the key. Returns when it
 * ends. kind: enum mtprof_activity_kind. */
uint64_t tt_work(timed_trace *t, uint32_t kind, uint64_t key, int queue, const char *name,
                 uint64_t ns, uint64_t bytes);
uint64_t tt_kernel(timed_trace *t, uint64_t key, int queue, const char *name, uint64_t ns);
/* An op that reads a result: a runtime call that lasts until the queue is done and `more`. */
void tt_read(timed_trace *t, int queue, const char *op, uint64_t more);
/* The main thread's memory; less than 0: freed. */
void tt_alloc(timed_trace *t, uint64_t address, int64_t bytes);
void tt_refuse(timed_trace *t, uint64_t bytes);
/* The next step begins on the main thread, and the one before ends. */
void tt_step(timed_trace *t);

/* A model of all of it. */
mtprof_model *tt_model(timed_trace *t);

#endif /* TESTS_SUPPORT_TRACES_TIMED_TRACE_H */
