/* SPDX-License-Identifier: Apache-2.0
 *
 * Synthetic ranks, see synthetic_ranks.h.
 */
#include "support/traces/synthetic_ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define W(...)                                                         \
    sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]) \
    {                                                                  \
        __VA_ARGS__                                                    \
    }

enum {
    MAIN_SLOT = 1,
    WORKER_SLOT = 2,
    MAIN_THREAD = 1,
    WORKER_THREAD = 2,
    LARGE_CHUNK = 1 << 20,
    SMALL_CHUNK = 1 << 14,
    LONGEST_RECORD = 64, /* bytes; a chunk with less room is full */
    MOST_OPS = 60000,    /* in a step: an END names its begin by a distance of 16 bits */
    OPTIMIZER_NS = 200000,
    CALL_NS = 3000, /* from c10d's op to the library, and back */
    OP_NAMES = 5,
    UNIX_START = 1767323045 /* 2026-01-02 03:04:05 UTC */
};

enum string {
    S_NONE,
    S_OPS, /* and OP_NAMES - 1 after it */
    S_LOAD = S_OPS + OP_NAMES,
    S_CALL,
    S_LIBRARY,
    S_OPTIMIZER,
    S_MAIN,
    S_WORKER,
    S_STEP /* and steps - 1 after it */
};
static const char *const texts[S_STEP] = {
    "",
    "aten::mm",
    "aten::add_",
    "aten::relu",
    "aten::sum",
    "aten::copy_",
    "load_batch",
    "c10d::allreduce_",
    "gloo:all_reduce",
    "Optimizer.step#SGD.step",
    "main",
    "pt_gloo_runloop",
};

/* ---- numbers --------------------------------------------------------------------------------- */

static void fail(const char *what)
{
    fprintf(stderr, "synthetic_ranks: %s\n", what);
    abort();
}

static void *must(void *memory)
{
    if (memory == NULL) {
        fail("no memory");
    }
    return memory;
}

enum draw { /* what a number is for */
    DRAW_DRIFT,
    DRAW_MONO,
    DRAW_WALL,
    DRAW_EXIT_FIXED,
    DRAW_COMPUTE,
    DRAW_COMPUTE_2,
    DRAW_LOAD,
    DRAW_TRANSFER,
    DRAW_EXIT,
    DRAW_LOST,
    DRAW_OP
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* From 0 to 1, both left out; the same for the same arguments. */
static double draw(const sr_job *job, enum draw what, uint32_t rank, uint64_t place)
{
    uint64_t x = mix(job->options.seed * 0x9E3779B97F4A7C15u + what);
    x = mix(x + rank);
    x = mix(x + place);
    return ((double)(x >> 11) + 0.5) / 9007199254740992.0;
}

static double draw_normal(const sr_job *job, uint32_t rank, uint64_t place)
{
    return sqrt(-2 * log(draw(job, DRAW_COMPUTE, rank, place))) *
           cos(6.283185307179586 * draw(job, DRAW_COMPUTE_2, rank, place));
}

/* ---- the job --------------------------------------------------------------------------------- */

static double bucket_ns(const sr_job *job)
{
    return (double)job->ops * job->options.op_us * 1000;
}

static double load_ns(const sr_job *job, uint32_t rank, uint32_t step)
{
    double ns = bucket_ns(job) * 0.1 * (0.98 + 0.04 * draw(job, DRAW_LOAD, rank, step));
    return ns > 1000 ? ns : 1000;
}

/* What the straggler loses in a step. */
static double slow_ns(const sr_job *job, uint32_t rank, uint32_t step, enum sr_slow slow)
{
    const sr_options *o = &job->options;
    if (!o->has_straggler || rank != o->straggler || step < o->straggler_step ||
        slow != o->straggler_slow) {
        return 0;
    }
    double usual = bucket_ns(job) * (o->buckets + 0.1) + (double)OPTIMIZER_NS +
                   o->buckets * o->transfer_us * 1e3;
    return usual * o->straggler_percent / 100;
}

/* How long the ops of a bucket take, without what the straggler loses. */
static double compute_ns(const sr_job *job, uint32_t rank, uint32_t step, uint32_t bucket)
{
    uint64_t place = (uint64_t)step * job->options.buckets + bucket;
    double factor = 1 + job->options.compute_noise * draw_normal(job, rank, place);
    return bucket_ns(job) * (factor > 0.2 ? factor : 0.2);
}

static double exit_ns(const sr_job *job, uint32_t rank, uint64_t place)
{
    return job->ranks[rank].exit_fixed_ns -
           job->options.exit_us * 1000 * log(draw(job, DRAW_EXIT, rank, place));
}

/* When a rank comes to an all-reduce, given when it went on. The straggler's ops are slower in the
 * first bucket. */
static double arrival(const sr_job *job, uint32_t rank, uint32_t step, uint32_t bucket, double from)
{
    double ns = compute_ns(job, rank, step, bucket);
    if (bucket == 0) {
        ns += load_ns(job, rank, step) + slow_ns(job, rank, step, SR_SLOW_LOAD) +
              slow_ns(job, rank, step, SR_SLOW_OP) + slow_ns(job, rank, step, SR_SLOW_OUTSIDE);
    }
    return from + ns;
}

static void run_job(sr_job *job)
{
    const sr_options *o = &job->options;
    double *now = must(calloc(o->ranks, sizeof *now));
    for (uint32_t r = 0; r < o->ranks; r++) {
        now[r] = 1e6 + 1e6 * draw(job, DRAW_LOAD, r, UINT32_MAX);
    }
    for (uint32_t s = 0; s < o->steps; s++) {
        for (uint32_t r = 0; r < o->ranks; r++) {
            job->step_start[(size_t)s * o->ranks + r] = now[r];
        }
        for (uint32_t b = 0; b < o->buckets; b++) {
            size_t at = (size_t)s * o->buckets + b;
            double last = 0;
            for (uint32_t r = 0; r < o->ranks; r++) {
                double came = arrival(job, r, s, b, now[r]);
                last = came > last ? came : last;
            }
            job->last_arrival[at] = last;
            double transfer = o->transfer_us * 1e3 * (0.9 + 0.4 * draw(job, DRAW_TRANSFER, 0, at));
            job->done[at] = last + 2 * CALL_NS + transfer;
            for (uint32_t r = 0; r < o->ranks; r++) {
                now[r] = job->done[at] + exit_ns(job, r, at);
            }
        }
        for (uint32_t r = 0; r < o->ranks; r++) {
            now[r] += OPTIMIZER_NS;
        }
    }
    for (uint32_t r = 0; r < o->ranks; r++) {
        job->step_start[(size_t)o->steps * o->ranks + r] = now[r];
    }
    free(now);
}

static void set_defaults(sr_options *o)
{
    o->ranks = o->ranks > 0 ? o->ranks : 4;
    o->steps = o->steps > 0 ? o->steps : 20;
    o->buckets = o->buckets > 0 ? o->buckets : 2;
    o->events = o->events > 0 ? o->events : 2000;
    o->op_us = o->op_us > 0 ? o->op_us : 50;
    o->transfer_us = o->transfer_us > 0 ? o->transfer_us : 150;
    o->compute_noise = o->compute_noise > 0 ? o->compute_noise : 0.02;
    o->exit_us = o->exit_us > 0 ? o->exit_us : 5;
    o->straggler_percent = o->straggler_percent > 0 ? o->straggler_percent : 10;
    o->job_id = o->job_id != NULL ? o->job_id : "synthetic";
}

void sr_init(sr_job *job, const sr_options *options)
{
    *job = (sr_job){.options = *options};
    sr_options *o = &job->options;
    set_defaults(o);
    uint32_t fixed = 3 + 2 * o->buckets; /* events of a step other than ops */
    uint32_t step = o->events / o->steps;
    job->ops = step > fixed + o->buckets ? (step - fixed) / o->buckets : 1;
    if ((uint64_t)job->ops * o->buckets > MOST_OPS) {
        fail("too many events in a step: more steps are needed");
    }
    job->ranks = must(calloc(o->ranks, sizeof *job->ranks));
    for (uint32_t r = 0; r < o->ranks; r++) {
        job->ranks[r] = (sr_rank){
            .drift = o->drift_ppm * 1e-6 * (2 * draw(job, DRAW_DRIFT, r, 0) - 1),
            .mono_ns = (int64_t)(1e15 * draw(job, DRAW_MONO, r, 0)),
            .wall_error_ns = (int64_t)(o->offset_s * 1e9 * (2 * draw(job, DRAW_WALL, r, 0) - 1)),
            .exit_fixed_ns = o->exit_fixed_us * 1000 * draw(job, DRAW_EXIT_FIXED, r, 0),
        };
    }
    size_t n = (size_t)o->steps * o->buckets;
    job->last_arrival = must(calloc(n, sizeof *job->last_arrival));
    job->done = must(calloc(n, sizeof *job->done));
    job->step_start = must(calloc(((size_t)o->steps + 1) * o->ranks, sizeof *job->step_start));
    run_job(job);
}

void sr_fini(sr_job *job)
{
    free(job->ranks);
    free(job->last_arrival);
    free(job->done);
    free(job->step_start);
    *job = (sr_job){.ranks = NULL};
}

double sr_convert(const sr_job *job, uint32_t from, uint32_t to, double ns)
{
    const sr_rank *a = &job->ranks[from], *b = &job->ranks[to];
    double true_ns = (ns - (double)a->mono_ns) / (1 + a->drift);
    return (double)b->mono_ns + (1 + b->drift) * true_ns;
}

const char *sr_slow_name(enum sr_slow slow)
{
    static const char *const names[SR_SLOW_COUNT] = {"op", "load", "outside"};
    return names[slow];
}

const char *sr_slow_event(enum sr_slow slow)
{
    static const char *const events[SR_SLOW_COUNT] = {"aten::mm", "load_batch", ""};
    return events[slow];
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct writing {
    const sr_job *job;
    trace_builder *b;
    uint32_t rank;
    uint16_t slot;
    uint32_t thread;
    uint64_t events, lost;
} writing;

/* On the rank's clock; ticks are nanoseconds since the job's start. */
static uint64_t ticks_of(const writing *w, double true_ns)
{
    return TB_START_TICKS + (uint64_t)((1 + w->job->ranks[w->rank].drift) * true_ns);
}

static void new_chunk(const writing *w, uint64_t ticks)
{
    tb_chunk(w->b, MTPROF_STREAM_THREAD, w->slot);
    tb_set32(w->b, w->b->chunk + TB_CHUNK_THREAD, w->thread);
    tb_set64(w->b, w->b->chunk + TB_CHUNK_BASE_TICKS, ticks);
}

static void need_room(const writing *w, uint64_t ticks)
{
    uint64_t used = tb_get64(w->b, w->b->chunk + TB_CHUNK_COMMITTED);
    if (used + TB_CHUNK_STATE + LONGEST_RECORD > tb_get32(w->b, w->b->chunk + TB_CHUNK_SIZE)) {
        new_chunk(w, ticks);
    }
}

static void begin(writing *w, uint16_t flags, uint32_t name, double true_ns)
{
    uint64_t ticks = ticks_of(w, true_ns);
    need_room(w, ticks);
    tb_record(w->b, MTPROF_REC_BEGIN, flags, name, 1, &ticks);
    w->b->next_ordinal++;
    w->events++;
}

static void end(writing *w, uint64_t distance, double true_ns)
{
    uint64_t ticks = ticks_of(w, true_ns);
    need_room(w, ticks);
    tb_end(w->b, (uint16_t)distance, ticks);
}

static void span(writing *w, uint16_t flags, uint32_t name, double from, double to)
{
    begin(w, flags, name, from);
    end(w, 1, to);
}

static void write_definitions(writing *w)
{
    char step[32];
    trace_builder *b = w->b;
    tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
    for (uint32_t i = 1; i < S_STEP; i++) {
        tb_string(b, i, texts[i]);
    }
    for (uint32_t s = 0; s < w->job->options.steps; s++) {
        uint64_t used = tb_get64(b, b->chunk + TB_CHUNK_COMMITTED);
        if (used + TB_CHUNK_STATE + LONGEST_RECORD > tb_get32(b, b->chunk + TB_CHUNK_SIZE)) {
            tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
        }
        (void)snprintf(step, sizeof step, "ProfilerStep#%u", s);
        tb_string(b, S_STEP + s, step);
    }
    tb_chunk(b, MTPROF_STREAM_DEFINITIONS, 0);
    tb_record(b, MTPROF_REC_DEF_THREAD, 0, MAIN_THREAD, W(1000 + 10 * w->rank, 1, S_MAIN));
    tb_record(b, MTPROF_REC_DEF_THREAD, 0, WORKER_THREAD, W(1001 + 10 * w->rank, 2, S_WORKER));
}

static void write_metadata(trace_builder *b, const char *key, const char *value, bool json)
{
    const char *both[] = {key, value};
    tb_record_texts(b, MTPROF_REC_TRACE_META, json ? 1 : 0, 0, 1,
                    (uint64_t[]){strlen(key) | (uint64_t)strlen(value) << 32}, 2, both);
}

static void write_control(writing *w)
{
    char place[128];
    trace_builder *b = w->b;
    const sr_options *o = &w->job->options;
    const double *starts = w->job->step_start + w->rank;
    (void)snprintf(place, sizeof place, "{\"backend\": \"gloo\", \"rank\": %u, \"world_size\": %u}",
                   w->rank, o->ranks);
    tb_chunk(b, MTPROF_STREAM_CONTROL, 0);
    tb_record(b, MTPROF_REC_WINDOW_OPEN, 0, 1,
              W(TB_START_TICKS, MTPROF_WANT_OPS | MTPROF_WANT_SCOPES, 1));
    write_metadata(b, "distributedInfo", place, true);
    write_metadata(b, "job_id", o->job_id, false);
    for (uint32_t s = 0; s < o->steps && !o->no_steps; s++) {
        uint64_t ticks = ticks_of(w, starts[(size_t)s * o->ranks]);
        if (tb_get64(b, b->chunk + TB_CHUNK_COMMITTED) + TB_CHUNK_STATE + LONGEST_RECORD >
            tb_get32(b, b->chunk + TB_CHUNK_SIZE)) {
            tb_chunk(b, MTPROF_STREAM_CONTROL, 0);
            tb_set64(b, b->chunk + TB_CHUNK_BASE_TICKS, ticks);
        }
        tb_record(b, MTPROF_REC_STEP, 2, 0, W(ticks, s));
    }
    tb_chunk(b, MTPROF_STREAM_CONTROL, 0);
    tb_record(b, MTPROF_REC_WINDOW_CLOSE, 0, 1,
              W(ticks_of(w, starts[(size_t)o->steps * o->ranks] + 1000), 1, UINT32_MAX));
}

/* The ops of a bucket between two times. Each has a weight that varies; aten::mm takes what is
 * slower, and the pause before the first op what nobody recorded. */
static void write_ops(writing *w, uint32_t step, uint32_t bucket, double from, double to)
{
    const sr_job *job = w->job;
    double more = bucket == 0 ? slow_ns(job, w->rank, step, SR_SLOW_OP) : 0;
    double pause = bucket == 0 ? slow_ns(job, w->rank, step, SR_SLOW_OUTSIDE) : 0;
    uint32_t slower = (job->ops + OP_NAMES - 1) / OP_NAMES; /* calls of aten::mm */
    double each = (to - from - more - pause) / job->ops;
    double at = from + pause;
    uint64_t bits = mix(job->options.seed + mix(((uint64_t)w->rank << 40) + ((uint64_t)step << 8) +
                                                bucket + (uint64_t)DRAW_OP * 977));
    for (uint32_t i = 0; i < job->ops; i++) {
        double last = at + each + (i % OP_NAMES == 0 ? more / slower : 0);
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        double busy = 0.80 + 0.15 * (double)(bits >> 40) / 16777216.0;
        span(w, MTPROF_KIND_OP, S_OPS + i % OP_NAMES, at, last - each * (1 - busy));
        at = last;
    }
}

/* Whether the events of an all-reduce are missing in the trace. */
static bool is_lost(const writing *w, uint64_t place)
{
    return draw(w->job, DRAW_LOST, w->rank, place) < w->job->options.lost_share;
}

static void write_main(writing *w)
{
    const sr_job *job = w->job;
    const sr_options *o = &job->options;
    w->slot = MAIN_SLOT;
    w->thread = MAIN_THREAD;
    w->b->next_ordinal = 0;
    new_chunk(w, TB_START_TICKS);
    for (uint32_t s = 0; s < o->steps; s++) {
        double now = job->step_start[(size_t)s * o->ranks + w->rank];
        uint64_t first = w->b->next_ordinal;
        if (!o->no_steps) {
            begin(w, MTPROF_KIND_STEP, S_STEP + s, now);
        }
        double loaded = now + load_ns(job, w->rank, s) + slow_ns(job, w->rank, s, SR_SLOW_LOAD);
        span(w, MTPROF_KIND_SCOPE, S_LOAD, now, loaded);
        for (uint32_t k = 0; k < o->buckets; k++) {
            size_t place = (size_t)s * o->buckets + k;
            double came = arrival(job, w->rank, s, k, now);
            write_ops(w, s, k, k == 0 ? loaded : now, came);
            now = job->done[place] + exit_ns(job, w->rank, place);
            if (!is_lost(w, place)) {
                span(w, MTPROF_KIND_OP, S_CALL, came, now);
            } else {
                w->lost += 2;
            }
        }
        span(w, MTPROF_KIND_SCOPE, S_OPTIMIZER, now, now + OPTIMIZER_NS);
        if (!o->no_steps) {
            end(w, w->b->next_ordinal - first, now + OPTIMIZER_NS);
        }
    }
}

static void write_worker(writing *w)
{
    const sr_job *job = w->job;
    const sr_options *o = &job->options;
    w->slot = WORKER_SLOT;
    w->thread = WORKER_THREAD;
    w->b->next_ordinal = 0;
    new_chunk(w, TB_START_TICKS);
    for (uint32_t s = 0; s < o->steps; s++) {
        double now = job->step_start[(size_t)s * o->ranks + w->rank];
        for (uint32_t k = 0; k < o->buckets; k++) {
            size_t place = (size_t)s * o->buckets + k;
            double came = arrival(job, w->rank, s, k, now);
            now = job->done[place] + exit_ns(job, w->rank, place);
            if (!is_lost(w, place)) {
                span(w, MTPROF_KIND_SCOPE, S_LIBRARY, came + CALL_NS, now - CALL_NS);
            }
        }
    }
}

static void write_header(const writing *w)
{
    trace_builder *b = w->b;
    const sr_job *job = w->job;
    const sr_rank *rank = &job->ranks[w->rank];
    uint64_t uuid[2] = {mix(job->options.seed + 99),
                        mix(job->options.seed * 1000003 + 1 + w->rank)};
    int64_t wall = UNIX_START * INT64_C(1000000000) + rank->wall_error_ns;
    tb_set64(b, TB_AT_UUID, uuid[0]);
    tb_set64(b, TB_AT_UUID + 8, uuid[1]);
    tb_set64(b, 40, 1000 + 10 * (uint64_t)w->rank);
    tb_set64(b, TB_AT_START + 8, (uint64_t)rank->mono_ns);
    tb_set64(b, TB_AT_START + 16, (uint64_t)(job->options.no_wall_clock ? rank->mono_ns : wall));
}

void sr_write(const sr_job *job, uint32_t rank, trace_builder *b, uint64_t *events, uint64_t *lost)
{
    writing w = {.job = job, .b = b, .rank = rank};
    tb_init(b);
    write_header(&w);
    b->chunk_bytes = SMALL_CHUNK;
    write_definitions(&w);
    write_control(&w);
    b->chunk_bytes = job->options.events > 20000 ? LARGE_CHUNK : SMALL_CHUNK;
    write_main(&w);
    b->chunk_bytes = SMALL_CHUNK;
    write_worker(&w);
    double last = job->step_start[(size_t)job->options.steps * job->options.ranks + rank];
    tb_set64(b, TB_AT_END_TICKS, ticks_of(&w, last + 2000));
    tb_set64(b, TB_AT_HEALTH + 8 * (uint64_t)MTPROF_HEALTH_BEGINS, w.events);
    tb_set64(b, TB_AT_HEALTH + 8 * (uint64_t)MTPROF_LOST_MEMORY, w.lost);
    tb_finish(b, true);
    if (events != NULL) {
        *events = w.events;
    }
    if (lost != NULL) {
        *lost = w.lost;
    }
}
