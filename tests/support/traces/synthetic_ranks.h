/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks of a training job that never ran, with known truth: every rank's clock (offset, drift, an
 * error of its wall clock), who is slow at what and since when, which events are lost.
 *
 *     rank's clock = its clock at the job's start + (1 + drift) * (true time - the job's start)
 *
 * A step of a rank is: load_batch, then for each bucket some ops and an all-reduce, then the
 * optimizer. The ops of a bucket fill a time that is drawn for (seed, rank, step, bucket), so that
 * any rank can be made without the others; an all-reduce ends on each rank when the last one has
 * come, the transfer is done, and a delay of the rank's own has passed.
 *
 *      sr_job job;
 *      sr_init(&job, &(sr_options){.seed = 1, .ranks = 8, .steps = 20, .events = 2000});
 *      trace_builder b;
 *      sr_write(&job, 3, &b);          // rank 3, finished; tb_fini() frees it
 *      sr_fini(&job);
 *
 * Running out of memory ends the program: this is for tests.
 */
#ifndef TESTS_SUPPORT_TRACES_SYNTHETIC_RANKS_H
#define TESTS_SUPPORT_TRACES_SYNTHETIC_RANKS_H

#include "support/traces/trace_builder.h"

#include <stdbool.h>
#include <stdint.h>

/* What a straggler is slow at. */
enum sr_slow {
    SR_SLOW_OP,      /* aten::mm */
    SR_SLOW_LOAD,    /* load_batch */
    SR_SLOW_OUTSIDE, /* nothing that is recorded: between ops */
    SR_SLOW_COUNT
};

/* 0 is the default everywhere. */
typedef struct sr_options {
    uint64_t seed;
    uint32_t ranks;       /* 4 */
    uint32_t steps;       /* 20 */
    uint32_t buckets;     /* all-reduces a step, 2 */
    uint32_t events;      /* of a rank, about; 2000 */
    uint32_t op_us;       /* how long an op takes, about; 50 */
    uint32_t transfer_us; /* of an all-reduce, 150 */
    double compute_noise; /* relative deviation of a bucket's time, 0.02 */
    double exit_us;       /* mean delay of a rank's leaving, 5 */
    double exit_fixed_us; /* each rank's constant part of it is up to this, 0 */
    double offset_s;      /* wall clocks are wrong by up to this, either way; 0 */
    double drift_ppm;     /* drifts up to this, either way; 0 */
    bool has_straggler;
    uint32_t straggler;       /* its rank */
    uint32_t straggler_step;  /* the first slow step */
    double straggler_percent; /* of a step's time, 10 */
    enum sr_slow straggler_slow;
    double lost_share;  /* of the all-reduces of each rank, 0 */
    bool no_wall_clock; /* the anchors say that it is 1970 */
    bool no_steps;      /* no step marks and no step events */
    const char *job_id; /* "synthetic" */
} sr_options;

typedef struct sr_rank {
    double drift;          /* 50e-6: the clock gains 50 us a second */
    int64_t mono_ns;       /* its clock at the job's start */
    int64_t wall_error_ns; /* its wall clock minus the true one, at the job's start */
    double exit_fixed_ns;
} sr_rank;

typedef struct sr_job {
    sr_options options;
    uint32_t ops; /* of a bucket */
    sr_rank *ranks;
    /* Of step s and bucket b at [s * buckets + b], in true nanoseconds since the job's start: when
     * the last rank had come, and when the transfer was done. */
    double *last_arrival, *done;
    double *step_start; /* of each rank at [s * ranks + r]; one more step than there are */
} sr_job;

void sr_init(sr_job *job, const sr_options *options);
void sr_fini(sr_job *job);

/* The trace of a rank, finished. *events and *lost (may be NULL): begins written, all-reduces that
 * were left out. */
void sr_write(const sr_job *job, uint32_t rank, trace_builder *b, uint64_t *events, uint64_t *lost);

/* Truth: the time on the clock of rank `to` (model times) for one on the clock of rank `from`. */
double sr_convert(const sr_job *job, uint32_t from, uint32_t to, double ns);

/* "op", "load", "outside"; and what a report is to name: "aten::mm", "load_batch", "". */
const char *sr_slow_name(enum sr_slow slow);
const char *sr_slow_event(enum sr_slow slow);

#endif /* TESTS_SUPPORT_TRACES_SYNTHETIC_RANKS_H */
