/* SPDX-License-Identifier: Apache-2.0
 *
 * The limit of a recording's overhead at work: measures what recording costs, asks limit.h what to
 * leave out, and changes the state accordingly. The helper thread does this in turns; the session
 * opens and shuts the gate through it.
 *
 *      helper ──turn──► measure ─► mtprof__limit_turn() ─► mtprof__epoch_adjust(), LIMIT record
 *      session ──open, shut──┘
 *
 * Invariants
 *   LT1  The lock is held by whoever opens, shuts or adjusts the state: an adjustment never reaches
 *        a gate that has been shut meanwhile.
 *   LT2  At a shut every count is final (WR3), and what was left out is in the trace; in between it
 *        is brought up to date every TELL_NS, for a process that is killed.
 */
#ifndef MTPROF_RECORD_LIMIT_LIMITER_H
#define MTPROF_RECORD_LIMIT_LIMITER_H

#include "base/lock.h"
#include "mtprof/record/limit/limit.h"
#include "mtprof/record/recording.h"

/* Sums at one moment. */
typedef struct mtprof__meter {
    uint64_t wall_ns, cpu_ns, helper_ns;
    uint64_t begins, marks, stalls, bytes, asked_ticks;
    uint64_t calls[3], skipped; /* enum mtprof__sample_class */
} mtprof__meter;

typedef struct mtprof__limiter {
    mtb_lock lock; /* LT1: everything below */
    mtprof__limit limit;
    bool active;    /* a gate is open */
    uint32_t wants; /* the session's */
    bool functions; /* calls of functions have been met */
    bool helper_known;
    clockid_t helper_clock; /* processor time of the helper thread */
    mtprof__meter last;     /* at the turn before */
    uint64_t due_ns;        /* the next turn, CLOCK_MONOTONIC */
    uint64_t told_ns;       /* when what was left out was last put into the trace */
    uint64_t second_ns;     /* when the clock of sampling moves on */
    double estimate;        /* events left out that nobody counted, not told yet */
    uint64_t bare;          /* events without their payloads, likewise */
    /* Of the recording. */
    uint32_t changes, deepest;
    uint64_t unrecorded, estimated, bare_total;
} mtprof__limiter;

/* For a session that starts; ppm 0: there is no limit, and nothing below does anything. */
void mtprof__limiter_init(mtprof__limiter *l, uint32_t ppm, uint32_t pair_cost);
void mtprof__limiter_fini(mtprof__limiter *l);

/* A new recording of the session: sums start anew, the level stays and is noted in the trace. */
void mtprof__limiter_attach(mtprof__limiter *l, mtprof__recording *recording);
/* By the helper thread, about itself. */
void mtprof__limiter_helper(mtprof__limiter *l);

/* mtprof__epoch_open() and mtprof__epoch_close() of a recording that may have a limit. */
uint32_t mtprof__limiter_open(mtprof__limiter *l, mtprof__recording *recording, uint32_t wants);
uint64_t mtprof__limiter_shut(mtprof__limiter *l, mtprof__recording *recording);

/* One turn, if it is due; when the next one is (CLOCK_MONOTONIC), UINT64_MAX: never. */
uint64_t mtprof__limiter_turn(mtprof__limiter *l, mtprof__recording *recording);

/* Adds what is known of the limit. */
void mtprof__limiter_health(mtprof__limiter *l, mtprof_health *health);

/* What is measured, behind pointers, so that tests can say it. */
typedef struct mtprof__limit_clocks {
    uint64_t (*wall_ns)(void);
    uint64_t (*cpu_ns)(void);
    uint64_t (*helper_ns)(const mtprof__limiter *l);
} mtprof__limit_clocks;
extern mtprof__limit_clocks mtprof__limit_clock;
extern const mtprof__limit_clocks mtprof__limit_clock_default;

#endif /* MTPROF_RECORD_LIMIT_LIMITER_H */
