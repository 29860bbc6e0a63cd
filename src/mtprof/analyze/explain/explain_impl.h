/* SPDX-License-Identifier: Apache-2.0
 *
 * How a model becomes findings.
 *
 *   explain_load.c      columns, steps, the threads that drive the program; spans of what is done
 *   explain_time.c      wall time ─► parts: spans are taken out of it in a fixed order
 *   explain_steps.c     slow steps and the warm-up: what they take more than the median
 *   explain_short.c     kernels and ops that are too short
 *   explain_balance.c   threads and queues that run the same, one of them longer
 *   explain_memory.c    allocations over steps, and the peak
 *   explain_findings.c  parts and facts ─► findings, ranked
 *   explain_evidence.c  their evidence and texts
 *   explain_write.c     findings ─► text, JSON, Markdown
 *
 *   XPL1  A nanosecond of a step is in one part: each charge takes what it finds out of `rest`.
 *   XPL2  Spans of a list are sorted by start; they may overlap.
 *   XPL3  The gains of all findings together are at most the wall time: those that come from the
 *        same part share it (explain_findings.c).
 */
#ifndef MTPROF_ANALYZE_EXPLAIN_EXPLAIN_IMPL_H
#define MTPROF_ANALYZE_EXPLAIN_EXPLAIN_IMPL_H

#include "base/arena.h"
#include "base/compiler.h"

#include <mtprof/explain.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MTPROF__EXPLAIN_LEAST_NS = 1000 * 1000 /* a shorter trace explains nothing */
};

enum mtprof__name_class {
    MTPROF__NAME_NONE = 0,
    MTPROF__NAME_DATA,
    MTPROF__NAME_COMPILE,
    MTPROF__NAME_WAIT,
    MTPROF__NAME_LOCK,
    MTPROF__NAME_CONVERT
};

/* What the host or a device does for a time. */
typedef struct mtprof__span {
    int64_t start_ns, end_ns;
    uint32_t event;
} mtprof__span;

typedef struct mtprof__spans {
    mtprof__span *items;
    size_t n, capacity;
} mtprof__spans;

/* Lists of spans. */
enum mtprof__span_list {
    MTPROF__SPANS_KERNELS = 0, /* device: kernels, conversions left out; and sets */
    MTPROF__SPANS_COPIES,      /* device: copies, and kernels that convert */
    MTPROF__SPANS_DATA,        /* threads that drive the program, from here on */
    MTPROF__SPANS_COMPILE,
    MTPROF__SPANS_GAPS, /* between kernels of a queue, the second of which was launched before */
    MTPROF__SPANS_WAITS,
    MTPROF__SPANS_SYNC, /* WAITS, and the idle time after them */
    MTPROF__SPANS_LOCK,
    MTPROF__SPANS_OVERHEAD,
    MTPROF__SPANS_CONVERT, /* outermost ops that convert or copy */
    MTPROF__SPANS_LAUNCH,  /* other outermost ops that launch; without a device: none */
    MTPROF__SPANS_HOST,    /* the rest of the outermost ops */
    MTPROF__SPANS_OTHERS,  /* outermost ops and scopes of all other threads */
    MTPROF__SPANS_COUNT
};

/* What a part is charged with, by the name of the event. */
typedef struct mtprof__charge {
    int64_t ns, most_ns;
    uint64_t count;
    uint32_t event;      /* the one with most_ns */
    uint32_t last_event; /* charged last, + 1: pieces of it count as one */
} mtprof__charge;

typedef struct mtprof__step {
    int64_t start_ns, end_ns;
    int64_t parts[MTPROF_PART_COUNT];
    int32_t number;
    uint8_t state;     /* enum mtprof_step_state */
    uint8_t more_part; /* not normal: the part that is most above the usual, */
    int64_t more_ns;   /* by so much, */
    int64_t excess_ns; /* and the step by so much */
} mtprof__step;

typedef struct mtprof__explain_columns {
    size_t n;
    const int64_t *start_ns, *end_ns, *self_ns;
    const uint32_t *parent, *name, *track;
    const int32_t *step;
    const uint8_t *kind, *device;
    const uint16_t *flags;
    const uint32_t *link;
    const uint32_t *stack, *module; /* may be NULL, as bytes */
    const uint64_t *bytes;
} mtprof__explain_columns;

/* Kernels, or without a device ops, that are too short. */
typedef struct mtprof__short_work {
    uint64_t n, n_short;
    int64_t short_ns; /* their time */
    int64_t fixed_ns; /* what one of them takes at least */
    uint32_t example; /* one of them */
} mtprof__short_work;

enum {
    MTPROF__BALANCE_TRACKS = 64 /* of a group that are compared; the busiest */
};

/* The group of tracks that wait longest for one of them. */
typedef struct mtprof__balance {
    uint32_t tracks[MTPROF__BALANCE_TRACKS];
    int64_t busy_ns[MTPROF__BALANCE_TRACKS];
    uint32_t n;
    uint32_t name; /* that they run most of the time */
    int64_t lost_ns;
} mtprof__balance;

/* Who allocated: blocks of one op, in one module, at one line. */
typedef struct mtprof__site {
    uint64_t owner; /* correlation id of one of the events */
    uint32_t event; /* or MTPROF_NO_EVENT */
    uint64_t count;
    int64_t bytes;
} mtprof__site;

enum {
    MTPROF__SITES = 4 /* that are kept, the largest */
};

typedef struct mtprof__memory_facts {
    bool grows, has_peak;
    uint8_t grow_device, peak_device;
    int64_t first_bytes, last_bytes; /* grows: after the second and the last step */
    mtprof__site grown[MTPROF__SITES];
    uint32_t n_grown;
    int64_t peak_bytes, peak_ns;
    mtprof__site held[MTPROF__SITES]; /* has_peak: at the peak */
    uint32_t n_held;
    uint64_t refused; /* allocations */
    uint32_t refused_event;
} mtprof__memory_facts;

typedef struct mtprof__finding {
    mtprof_explain_finding of;
    mtprof_explain_evidence *evidence;
    size_t n_evidence, evidence_capacity;
    double rank;
} mtprof__finding;

struct mtprof_explain {
    mtprof_model *model;
    mtprof_explain_options options;
    mtprof__explain_columns columns;
    uint32_t n_names, n_tracks;
    uint32_t main_track;
    uint8_t *tracks;       /* enum mtprof__track_role by track */
    uint8_t *traits;       /* enum mtprof__trait by event */
    uint8_t *name_row;     /* by name: row of name_classes.def + 1, 0: none matches */
    uint32_t *launched_by; /* by event: host event that launched it; only with a device */
    bool has_ops, has_device, has_steps;
    uint64_t n_ops, n_functions, n_kernels;
    uint64_t n_ops_seen; /* in the steps that are looked at */
    int64_t busy_ns;

    mtprof__step *steps;
    size_t n_steps, steps_capacity;
    int64_t wall_ns, median_ns;
    int64_t parts[MTPROF_PART_COUNT];        /* of all steps */
    int64_t excess_ns[MTPROF_STEP_SLOW + 1]; /* of steps by their state */
    int64_t recompiled_ns;                   /* of the part COMPILE: after the first step */

    mtprof__spans spans[MTPROF__SPANS_COUNT];
    mtprof__spans rest; /* of the wall time: in no part yet; sorted, disjoint */
    mtprof__charge *charges[MTPROF_PART_COUNT]; /* by name; NULL: nothing was charged */

    mtprof__short_work short_work;
    mtprof__balance balance;
    mtprof__memory_facts memory;
    mtprof_health health;

    mtprof__finding *findings;
    size_t n_findings, findings_capacity;
    mtb_arena texts;
};

enum mtprof__track_role {
    MTPROF__TRACK_OTHER = 0,
    MTPROF__TRACK_MAIN = 1,  /* of the steps */
    MTPROF__TRACK_DRIVES = 2 /* works for it: the backward pass, or launches */
};

enum mtprof__trait {
    MTPROF__IN_OP = 1 << 0,    /* it is an op, or inside one */
    MTPROF__IN_CLASS = 1 << 1, /* DATA, COMPILE, WAIT or LOCK */
    MTPROF__IN_CONVERT = 1 << 2,
    MTPROF__LAUNCHES = 1 << 3, /* it, or what is inside it */
    MTPROF__HAS_OP = 1 << 4    /* an op is inside it */
};

/* All fail with ENOMEM, and those that read the model as mtprof_model_get_column() does. */
int mtprof__explain_load(mtprof_explain *e);
int mtprof__explain_time(mtprof_explain *e);
/* Which steps are slow, before parts are known; and their excess, after. */
int mtprof__explain_choose_steps(mtprof_explain *e);
int mtprof__explain_move_steps(mtprof_explain *e);
void mtprof__explain_short(mtprof_explain *e);
int mtprof__explain_balance(mtprof_explain *e);
int mtprof__explain_memory(mtprof_explain *e);
int mtprof__explain_findings(mtprof_explain *e);

int mtprof__explain_no_memory(const char *what);
int mtprof__spans_add(mtprof__spans *spans, int64_t start_ns, int64_t end_ns, uint32_t event);
/* enum mtprof__name_class of an event. */
uint8_t mtprof__explain_class(const mtprof_explain *e, size_t event);
/* The outermost op around an event, or around what launched it; without one the event itself. */
uint32_t mtprof__explain_top(const mtprof_explain *e, uint32_t event);
/* The step at a time: its place, or n_steps. */
size_t mtprof__explain_step_at(const mtprof_explain *e, int64_t ns);

/* ---- evidence -------------------------------------------------------------------------------- */

/* Another finding, empty but for what its row of causes.def says. ENOMEM. */
int mtprof__finding_add(mtprof_explain *e, enum mtprof_cause cause, int64_t gain_ns,
                        enum mtprof_confidence confidence);
/* Another piece of evidence of the newest finding; the text is written by printf's rules. `item`
 * has all else, and gets name, step, line and module of its event where it has one. ENOMEM. */
int mtprof__evidence_add(mtprof_explain *e, mtprof_explain_evidence item, const char *format, ...)
    MT_PRINTF(3, 4);
/* The finding's title in place of its row's. ENOMEM. */
int mtprof__finding_title(mtprof_explain *e, const char *format, ...) MT_PRINTF(2, 3);
/* The names with the largest charges of a part, at most `most`. ENOMEM. */
int mtprof__evidence_charges(mtprof_explain *e, enum mtprof_part part, uint32_t most);

enum {
    MTPROF__SHOWN_BYTES = 72 /* of a name in a text, with its zero */
};
typedef struct mtprof__shown {
    char text[MTPROF__SHOWN_BYTES];
} mtprof__shown;
/* A name as a text shows it: valid UTF-8, no control characters, "…" where it was cut. */
mtprof__shown mtprof__shown_text(mtprof_text text);
mtprof__shown mtprof__shown_name(const mtprof_explain *e, uint32_t event);

typedef struct mtprof__amount {
    char text[40];
} mtprof__amount;
mtprof__amount mtprof__duration(double ns);
mtprof__amount mtprof__size(double bytes);
/* "12 %", "0.4 %" of the wall time. */
mtprof__amount mtprof__percent(const mtprof_explain *e, double ns);

extern const char *const mtprof__cause_titles[MTPROF_CAUSE_COUNT];
extern const char *const mtprof__cause_advice[MTPROF_CAUSE_COUNT];
extern const double mtprof__cause_shares[MTPROF_CAUSE_COUNT];

#endif /* MTPROF_ANALYZE_EXPLAIN_EXPLAIN_IMPL_H */
