/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces that the benchmarks of the analysing half read: ops with two levels of nesting, recorded
 * live into a file. And the process's anonymous memory, which no file backs.
 */
#ifndef BENCH_BENCH_TRACES_H
#define BENCH_BENCH_TRACES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bench_trace {
    uint64_t events;  /* of all threads; half of them are inside the other half */
    uint32_t threads; /* 0: one, this thread */
    bool shapes;      /* two inputs each, 40 different lists */
} bench_trace;

/* Records the trace into a file. Ends the program where an event was lost, or the disk is full. */
void bench_trace_make(const bench_trace *trace, const char *path);

/* Anonymous memory of this process in bytes, from /proc/self/status; 0: not known. */
uint64_t bench_anonymous_bytes(void);
/* The most there was while a piece of work ran: sampled every millisecond by a thread of its own,
 * started and stopped around it. */
void bench_anonymous_watch(void);
uint64_t bench_anonymous_peak(void);

#endif /* BENCH_BENCH_TRACES_H */
