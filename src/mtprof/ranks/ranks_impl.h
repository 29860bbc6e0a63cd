/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks of a job inside.
 *
 *     ranks_take.c      a trace ─► rank number, its calls of collectives
 *     ranks_match.c     calls of all ranks ─► collectives, a part a rank
 *     ranks_clock.c     ends of shared collectives ─► offset and drift of each clock, bounds
 *     ranks_wait.c      parts on one clock ─► waits, transfers, classes
 *     stragglers.c      arrivals by step ─► late ranks; two traces ─► causes
 *     ranks_export.c    traces again, on one clock ─► one file
 *
 *   RK1  A rank's times are kept relative to its origin_ns, so that doubles hold them exactly.
 *   RK2  One trace is open at a time, two while a straggler is compared.
 */
#ifndef MTPROF_RANKS_RANKS_IMPL_H
#define MTPROF_RANKS_RANKS_IMPL_H

#include "base/arena.h"
#include "base/idmap.h"

#include <mtprof/jobs/ranks.h>

enum {
    MTPROF__RANK_UNKNOWN = UINT32_MAX,
    MTPROF__PARTS_MOST = 64 << 20, /* 1 GiB of parts */
    MTPROF__ABSENT = 0             /* of a part: its end is not after its start */
};

/* What is the same on all ranks: name and size of a collective. */
typedef struct mtprof__call_kind {
    mtprof_text name;
    uint64_t elements;
    uint32_t layer;
    bool synchronises;
} mtprof__call_kind;

typedef struct mtprof__call {
    double start_ns, end_ns; /* since the rank's origin */
    uint32_t kind;           /* of ranks->kinds */
    int32_t step;
} mtprof__call;

typedef struct mtprof__rank {
    char *path;
    uint32_t number; /* MTPROF__RANK_UNKNOWN */
    uint32_t world_size;
    mtprof_text job; /* "" where the trace has none */
    int64_t origin_ns, end_ns, real_offset_ns;
    bool has_steps, has_wall_clock;
    uint64_t pid, lost, n_calls_seen, missing;
    mtprof__call *calls;
    size_t n_calls, calls_capacity;
    /* time on the reference's clock, since the reference's origin = offset + (1 + drift) * time */
    double offset, drift;
    double residual_ns, bound_ns, wait_ns, transfer_ns, last;
} mtprof__rank;

typedef struct mtprof__part {
    double start_ns, end_ns; /* since the rank's origin; end <= start: absent */
} mtprof__part;

typedef struct mtprof__matched {
    uint32_t kind, ordinal;
    int32_t step;
    uint32_t n_ranks, last, wait_class;
    double arrival, wait, transfer, skew; /* arrival: since the reference's origin */
    size_t parts;                         /* index of the first of n ranks' */
} mtprof__matched;

typedef struct mtprof__left_out {
    char *path, *why;
} mtprof__left_out;

typedef struct mtprof__late {
    mtprof_straggler facts;
    mtprof_straggler_cause *causes;
    size_t n_causes, causes_capacity;
} mtprof__late;

struct mtprof_ranks {
    mtprof_ranks_options options;
    mtprof_ranks_facts facts;
    mtb_arena texts;
    mtprof__rank *ranks;
    size_t n, capacity;
    mtprof__left_out *left_out;
    size_t n_left_out, left_out_capacity;
    uint32_t *missing;
    size_t n_missing, missing_capacity;
    mtprof__call_kind *kinds;
    size_t n_kinds, kinds_capacity;
    mtb_idmap kind_map;
    mtprof__matched *matched;
    size_t n_matched, matched_capacity;
    mtprof__part *parts;
    mtprof__late *late;
    size_t n_late, late_capacity;
    char refusal[320];
};

int mtprof__ranks_no_memory(void);
/* Takes a trace, or adds it to those left out. Fails with ENOMEM, ECALLBACK. */
int mtprof__ranks_take(mtprof_ranks *r, const char *path);
int mtprof__ranks_leave_out(mtprof_ranks *r, const char *path, const char *format, ...)
    MT_PRINTF(3, 4);
/* Leaves out what is of another job or a second time there; puts ranks in order. */
int mtprof__ranks_choose(mtprof_ranks *r);
int mtprof__ranks_match(mtprof_ranks *r);
int mtprof__ranks_align(mtprof_ranks *r);
int mtprof__ranks_waits(mtprof_ranks *r);

MT_INLINE const mtprof__part *mtprof__ranks_parts(const mtprof_ranks *r, const mtprof__matched *m)
{
    return r->parts + m->parts;
}
MT_INLINE bool mtprof__part_is_there(const mtprof__part *part)
{
    return part->end_ns > part->start_ns;
}
/* A rank's time on the reference's clock, since its origin. */
MT_INLINE double mtprof__rank_time(const mtprof__rank *rank, double ns)
{
    return rank->offset + ns + rank->drift * ns;
}
/* Sorts, and returns the middle; 0 of none. */
double mtprof__median(double *values, size_t n);

#endif /* MTPROF_RANKS_RANKS_IMPL_H */
