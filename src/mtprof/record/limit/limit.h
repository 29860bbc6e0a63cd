/* SPDX-License-Identifier: Apache-2.0
 *
 * The limit of a recording's overhead: from what was measured to what is recorded. Pure: no clock,
 * no thread, no recorder; limiter.c measures and applies.
 *
 *      level 0  everything that the session wants
 *            1  no payloads (inputs, stacks, memory …)
 *            2  ops and functions sampled by site (sample.h)
 *            3  no ops, no runtime calls
 *            4  scopes sampled by site, no marks
 *            5  the gate is shut, and open as level 4 for stretches; steps are recorded
 *
 * The recorder has an account: of every second that the program computes, `limit` of it is paid in,
 * and what recording cost is taken out. Only an account in the red makes it step down, and
 * predictions by level say how far: to the first level that costs less than the limit. It steps up,
 * one level at a time, when the account is well filled, and when the level above is predicted to
 * cost at most UP_PART of the limit. What a level does not see (payloads, ops) is assumed to be as
 * it was when it was last seen, less by half after a while, so that it is tried again; each failed
 * try doubles that time.
 *
 * Invariants
 *   LM1  What recording cost is at most limit × the program's time, up to what one turn of
 *        measuring overdraws: an overdrawn account is balanced again before anything is stepped up.
 *   LM2  A level changes at most once a turn, and up at most once in HOLD_NS.
 */
#ifndef MTPROF_RECORD_LIMIT_LIMIT_H
#define MTPROF_RECORD_LIMIT_LIMIT_H

#include <mtprof/format.h>

#include <stdbool.h>
#include <stdint.h>

enum {
    /* The first turn, the one after a change, and the length of a stretch. */
    MTPROF__LIMIT_SOON_NS = 10 * 1000 * 1000,
    /* What level 1 does without. */
    MTPROF__LIMIT_PAYLOADS = MTPROF_WANT_INPUTS | MTPROF_WANT_TENSORS | MTPROF_WANT_STACKS |
                             MTPROF_WANT_MEMORY | MTPROF_WANT_ALLOCS | MTPROF_WANT_FLOPS |
                             MTPROF_WANT_MODULES | MTPROF_WANT_DETAILS | MTPROF_WANT_STRIDES |
                             MTPROF_WANT_NATIVE_STACKS | MTPROF_WANT_OVERLOADS
};

/* What one event costs here, in nanoseconds; measured when the session starts. */
typedef struct mtprof__limit_costs {
    double pair; /* begin and end */
    double skip; /* a begin that sampling leaves out */
} mtprof__limit_costs;

/* What happened since the turn before. */
typedef struct mtprof__load {
    uint64_t wall_ns;
    uint64_t cpu_ns;        /* processor time of the process */
    uint64_t helper_ns;     /* of it, of the recorder's own thread and of stalls */
    uint64_t payload_ns;    /* of it, spent on payloads */
    uint64_t begins, marks; /* recorded */
    uint64_t ops, scopes;   /* begins that were met while sampling, recorded or not */
    uint64_t skipped;       /* of them, not recorded */
} mtprof__load;

typedef struct mtprof__limit {
    double limit; /* part of the program's time; 0: none */
    mtprof__limit_costs cost;
    uint32_t level;
    bool open;               /* level 5: within a stretch */
    double credit_ns;        /* of the account (LM1) */
    double width;            /* seconds of the program a second */
    double ops, scopes;      /* rates, per nanosecond of the program, when they were last seen */
    double marks;            /* likewise */
    double payload;          /* parts of the program's time */
    double fixed;            /* likewise: what no level changes */
    double helper;           /* nanoseconds of the recorder's thread an event */
    bool split;              /* ops and scopes are known apart; else all are `ops` */
    double fade;             /* how far what is not seen still counts in predictions */
    double half_life_ns;     /* of `fade` */
    uint64_t since_ns;       /* of wall time since the level changed */
    bool trying;             /* the last change was up, not long ago */
    double share;            /* of the last turn */
    double cost_ns, base_ns; /* sums: what recording took, and the program's time */
} mtprof__limit;

void mtprof__limit_init(mtprof__limit *limit, uint32_t ppm, mtprof__limit_costs cost);

/* One turn: takes the load into account, and changes level and `open` where needed. */
void mtprof__limit_turn(mtprof__limit *m, const mtprof__load *load);

/* When the next turn is due. */
uint64_t mtprof__limit_wait_ns(const mtprof__limit *m, const mtprof__load *load);

/* What is recorded of a session's wants on this level: wants and bits of the state (writer.h). */
uint32_t mtprof__limit_wants(const mtprof__limit *m, uint32_t wants, bool functions);

#endif /* MTPROF_RECORD_LIMIT_LIMIT_H */
