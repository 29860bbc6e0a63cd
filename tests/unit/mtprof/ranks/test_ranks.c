/* SPDX-License-Identifier: Apache-2.0
 *
 * Clocks, waits and stragglers of synthetic jobs against what is true of them.
 */
#include "harness/mt_test.h"
#include "support/traces/synthetic_ranks.h"

#include <mtprof/jobs/ranks.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RANKS_MOST = 64
};
#define TEXT(t) (int)(t).length, (t).bytes

typedef struct files {
    sr_job job;
    const char *folder;
    char paths[RANKS_MOST][512];
    const char *list[RANKS_MOST];
    size_t n;
} files;

static void write_job(files *f, const sr_options *options)
{
    sr_init(&f->job, options);
    f->folder = mt_test_tmpdir();
    f->n = f->job.options.ranks;
    REQUIRE(f->n <= RANKS_MOST);
    for (uint32_t i = 0; i < f->n; i++) {
        trace_builder b;
        sr_write(&f->job, i, &b, NULL, NULL);
        (void)snprintf(f->paths[i], sizeof f->paths[i], "%s/s%llu_rank%u.mtt", f->folder,
                       (unsigned long long)options->seed, i);
        f->list[i] = f->paths[i];
        FILE *file = fopen(f->paths[i], "wb");
        REQUIRE(file != NULL && fwrite(b.bytes, 1, b.size, file) == b.size);
        REQUIRE(fclose(file) == 0);
        tb_fini(&b);
    }
}

static mtprof_ranks *open_job(files *f)
{
    mtprof_ranks *r = NULL;
    REQUIRE(mtprof_ranks_open(f->list, f->n, NULL, &r) == MTPROF_OK);
    return r;
}

static mtprof_ranks_facts facts_of(const mtprof_ranks *r)
{
    mtprof_ranks_facts facts = {.struct_size = sizeof facts};
    REQUIRE(mtprof_ranks_get_facts(r, &facts) == MTPROF_OK);
    return facts;
}

static mtprof_rank rank_of(const mtprof_ranks *r, uint32_t index)
{
    mtprof_rank rank = {.struct_size = sizeof rank};
    REQUIRE(mtprof_ranks_get_rank(r, index, &rank) == MTPROF_OK);
    return rank;
}

/* How far a rank's times are off at the worst, over its trace. */
static double error_of(const files *f, const mtprof_ranks *r, uint32_t index)
{
    mtprof_rank rank = rank_of(r, index);
    double worst = 0;
    for (int i = 0; i <= 10; i++) {
        int64_t at = rank.start_ns + (rank.end_ns - rank.start_ns) / 10 * i;
        double truth = sr_convert(&f->job, rank.rank, 0, (double)at);
        worst = fmax(worst, fabs((double)mtprof_ranks_convert(r, index, at) - truth));
    }
    return worst;
}

static void done(files *f, mtprof_ranks *r)
{
    mtprof_ranks_free(r);
    for (size_t i = 0; i < f->n; i++) {
        (void)unlink(f->paths[i]);
    }
    sr_fini(&f->job);
}

/* ---- clocks ---------------------------------------------------------------------------------- */

/* Jobs of all kinds: sizes, noise, delays of ranks, a straggler in every third. */
static sr_options any_job(uint64_t seed)
{
    return (sr_options){.seed = seed,
                        .ranks = 2 + (uint32_t)(seed * 7 % 15),
                        .steps = 10 + (uint32_t)(seed * 13 % 40),
                        .events = 1500,
                        .op_us = 20 + (uint32_t)(seed * 31 % 300),
                        .transfer_us = 50 + (uint32_t)(seed * 17 % 400),
                        .exit_us = 2 + (double)(seed % 9),
                        .exit_fixed_us = (double)(seed % 4) * 5,
                        .compute_noise = 0.01 + 0.01 * (double)(seed % 5),
                        .offset_s = 10,
                        .drift_ppm = 50,
                        .has_straggler = seed % 3 == 0,
                        .straggler = 1,
                        .straggler_percent = 20};
}

static void check_clocks(uint64_t first, uint64_t count)
{
    double worst = 0, largest = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        files f;
        sr_options options = any_job(seed);
        write_job(&f, &options);
        mtprof_ranks *r = open_job(&f);
        mtprof_ranks_facts facts = facts_of(r);
        CHECK_EQ_U64(facts.method, MTPROF_CLOCK_COLLECTIVES);
        for (uint32_t i = 0; i < f.n; i++) {
            mtprof_rank rank = rank_of(r, i);
            double error = error_of(&f, r, i);
            worst = fmax(worst, error);
            largest = fmax(largest, rank.bound_ns);
            CHECK(error <= 50000);
            CHECK(error <= rank.bound_ns + 1);
            CHECK(rank.bound_ns <= facts.bound_ns);
            if (i > 0) { /* the wall clocks' errors were found, too */
                double wall = (double)(f.job.ranks[i].wall_error_ns - f.job.ranks[0].wall_error_ns);
                CHECK(fabs(rank.wall_error_ns - wall) < 200000);
            }
        }
        done(&f, r);
    }
    printf("%llu jobs: clocks at most %.1f us off, bounds up to %.1f us\n",
           (unsigned long long)count, worst / 1000, largest / 1000);
}

TEST(clocks_are_recovered_within_their_bounds)
{
    check_clocks(1, mt_test_long() ? 200 : 20);
}

TEST(without_anchors_and_collectives_clocks_are_refused)
{
    files f;
    write_job(&f, &(sr_options){.seed = 5, .steps = 1, .buckets = 1, .no_wall_clock = true});
    mtprof_ranks *r = open_job(&f);
    mtprof_ranks_facts facts = facts_of(r);
    CHECK_EQ_U64(facts.method, MTPROF_CLOCK_NONE);
    REQUIRE(facts.refusal != NULL);
    CHECK(strstr(facts.refusal, "cannot be put together") != NULL);
    CHECK(isnan(facts.bound_ns));
    CHECK(mtprof_ranks_find_stragglers(r) == MTPROF_ESTATE);
    char path[600];
    (void)snprintf(path, sizeof path, "%s/merged.json", f.folder);
    CHECK(mtprof_ranks_export(r, path, NULL) == MTPROF_ESTATE);
    CHECK(access(path, F_OK) != 0);
    done(&f, r);
}

TEST(wall_clocks_are_taken_where_collectives_are_too_few)
{
    files f;
    write_job(&f, &(sr_options){.seed = 5, .steps = 1, .buckets = 1, .offset_s = 1});
    mtprof_ranks *r = open_job(&f);
    mtprof_ranks_facts facts = facts_of(r);
    CHECK_EQ_U64(facts.method, MTPROF_CLOCK_WALL);
    CHECK(facts.refusal == NULL && isnan(facts.bound_ns));
    for (uint32_t i = 1; i < f.n; i++) {
        double wrong = (double)(f.job.ranks[i].wall_error_ns - f.job.ranks[0].wall_error_ns);
        CHECK(fabs(error_of(&f, r, i) - fabs(wrong)) < 1000);
    }
    CHECK(mtprof_ranks_find_stragglers(r) == MTPROF_ESTATE);
    done(&f, r);
}

TEST(collectives_without_anchors_suffice)
{
    files f;
    write_job(&f, &(sr_options){.seed = 6, .no_wall_clock = true, .drift_ppm = 50});
    mtprof_ranks *r = open_job(&f);
    CHECK_EQ_U64(facts_of(r).method, MTPROF_CLOCK_COLLECTIVES);
    CHECK(isnan(rank_of(r, 1).wall_error_ns));
    CHECK(error_of(&f, r, 3) < 50000);
    done(&f, r);
}

/* ---- collectives ----------------------------------------------------------------------------- */

TEST(waits_and_transfers_are_those_of_the_job)
{
    files f;
    write_job(&f, &(sr_options){.seed = 3, .ranks = 5, .drift_ppm = 50, .offset_s = 10});
    mtprof_ranks *r = open_job(&f);
    mtprof_ranks_facts facts = facts_of(r);
    CHECK_EQ_U64(facts.collectives, 40);
    CHECK_EQ_U64(facts.shared, 40);
    CHECK_EQ_U64(facts.layer, MTPROF_LAYER_LIBRARY);
    CHECK_EQ_U64(facts.unmatched, 0);
    for (uint32_t i = 0; i < facts.collectives; i++) {
        mtprof_collective c = {.struct_size = sizeof c};
        REQUIRE(mtprof_ranks_get_collective(r, i, &c) == MTPROF_OK);
        CHECK_EQ_U64(c.step, i / 2);
        CHECK_EQ_U64(c.ordinal, i % 2);
        double transfer = f.job.done[i] - f.job.last_arrival[i] - 6000; /* as the library sees it */
        CHECK(fabs(c.transfer_ns - transfer) < 40000);
        for (uint32_t k = 0; k < f.n; k++) {
            mtprof_collective_part part;
            REQUIRE(mtprof_ranks_part(r, i, k, &part));
            CHECK(part.wait_ns >= 0 && part.wait_ns <= c.skew_ns + 1);
            CHECK(part.end_ns > part.start_ns);
        }
    }
    mtprof_collective_part part;
    CHECK(!mtprof_ranks_part(r, 40, 0, &part) && !mtprof_ranks_part(r, 0, 5, &part));
    done(&f, r);
}

TEST(classes_follow_what_takes_the_time)
{
    static const struct {
        uint32_t transfer_us;
        bool straggler;
        uint32_t wait_class;
    } cases[] = {{20000, false, MTPROF_WAIT_TRANSFER}, {50, true, MTPROF_WAIT_SKEW}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        files f;
        write_job(&f, &(sr_options){.seed = 8,
                                    .ranks = 6,
                                    .buckets = 1,
                                    .transfer_us = cases[i].transfer_us,
                                    .has_straggler = cases[i].straggler,
                                    .straggler = 2,
                                    .straggler_percent = 100});
        mtprof_ranks *r = open_job(&f);
        mtprof_ranks_facts facts = facts_of(r);
        CHECK_EQ_U64(facts.classes[cases[i].wait_class], facts.collectives);
        done(&f, r);
    }
}

TEST(lost_collectives_are_counted_and_the_rest_is_matched)
{
    files f;
    write_job(&f, &(sr_options){.seed = 9, .steps = 40, .lost_share = 0.05, .drift_ppm = 50});
    mtprof_ranks *r = open_job(&f);
    mtprof_ranks_facts facts = facts_of(r);
    uint64_t missing = 0;
    for (uint32_t i = 0; i < f.n; i++) {
        mtprof_rank rank = rank_of(r, i);
        CHECK((rank.lost > 0) == (rank.missing > 0));
        missing += rank.missing;
        CHECK(error_of(&f, r, i) <= 50000);
    }
    CHECK(missing > 0 && facts.shared < facts.collectives);
    done(&f, r);
}

TEST(names_of_collectives)
{
    static const struct {
        const char *name;
        uint32_t kind, layer;
        bool synchronises;
    } cases[] = {
        {"gloo:all_reduce", MTPROF_EVENT_KIND_SCOPE, MTPROF_LAYER_LIBRARY, true},
        {"gloo:recv", MTPROF_EVENT_KIND_SCOPE, MTPROF_LAYER_LIBRARY, false},
        {"gloo:broadcast", MTPROF_EVENT_KIND_SCOPE, MTPROF_LAYER_LIBRARY, false},
        {"c10d::allreduce_", MTPROF_EVENT_KIND_OP, MTPROF_LAYER_CALL, true},
        {"c10d::barrier", MTPROF_EVENT_KIND_OP, MTPROF_LAYER_CALL, true},
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL", MTPROF_EVENT_KIND_KERNEL, MTPROF_LAYER_DEVICE,
         true},
        {"ncclDevKernel_SendRecv", MTPROF_EVENT_KIND_KERNEL, MTPROF_LAYER_DEVICE, false},
        {"ncclDevKernel_AllReduce", MTPROF_EVENT_KIND_OP, MTPROF_LAYER_NONE, false},
        {"nccl:reduce_scatter", MTPROF_EVENT_KIND_SCOPE, MTPROF_LAYER_LIBRARY, true},
        {"aten::all_reduce", MTPROF_EVENT_KIND_OP, MTPROF_LAYER_NONE, false},
        {"", MTPROF_EVENT_KIND_OP, MTPROF_LAYER_NONE, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool synchronises = true;
        mtprof_text name = {cases[i].name, strlen(cases[i].name)};
        CHECK_EQ_U64(mtprof_collective_layer_of(name, cases[i].kind, &synchronises),
                     cases[i].layer);
        CHECK(synchronises == cases[i].synchronises);
    }
}

/* ---- which traces ---------------------------------------------------------------------------- */

TEST(other_jobs_damage_and_missing_ranks_are_named)
{
    files f, other;
    write_job(&f, &(sr_options){.seed = 4, .ranks = 6});
    write_job(&other, &(sr_options){.seed = 5, .ranks = 6, .job_id = "another"});
    FILE *file = fopen(f.paths[2], "r+b"); /* damage in a chunk of ops */
    REQUIRE(file != NULL && fseek(file, 70000, SEEK_SET) == 0 && fputs("broken", file) >= 0);
    REQUIRE(fclose(file) == 0);
    const char *list[] = {f.paths[0], f.paths[2], f.paths[3],     "/no/such/file.mtt",
                          f.paths[4], f.paths[5], other.paths[1], f.paths[5]};
    mtprof_ranks *r = NULL;
    REQUIRE(mtprof_ranks_open(list, 8, NULL, &r) == MTPROF_OK);
    mtprof_ranks_facts facts = facts_of(r);
    CHECK_EQ_U64(facts.ranks, 4);
    CHECK_EQ_U64(facts.left_out, 4);
    CHECK_EQ_U64(facts.world_size, 6);
    CHECK_EQ_U64(facts.missing, 2);
    static const char *const reasons[] = {"damaged in", "no such file", "of another job",
                                          "rank 5 is there already"};
    for (uint32_t i = 0; i < 4; i++) {
        const char *path = NULL, *why = NULL;
        REQUIRE(mtprof_ranks_left_out(r, i, &path, &why));
        CHECK(strstr(why, reasons[i]) != NULL);
    }
    uint32_t rank = 0;
    CHECK(mtprof_ranks_missing(r, 0, &rank) && rank == 1);
    CHECK(mtprof_ranks_missing(r, 1, &rank) && rank == 2);
    CHECK(!mtprof_ranks_missing(r, 2, &rank));
    CHECK_EQ_U64(facts.classes[MTPROF_WAIT_INCONCLUSIVE], facts.collectives);
    mtprof_ranks_free(r);
    REQUIRE(mtprof_ranks_open(list + 3, 1, NULL, &r) == MTPROF_EINVAL);
    CHECK(r == NULL);
    done(&other, NULL);
    done(&f, NULL);
}

/* ---- one file -------------------------------------------------------------------------------- */

/* The ends of the all-reduces of each rank in a merged file, in order of time. */
static void check_merged(const char *path, const files *f, double most_apart)
{
    mtprof_model *model = NULL;
    mtprof_column start, end, name, track;
    REQUIRE(mtprof_model_open(path, NULL, &model) == MTPROF_OK);
    REQUIRE(mtprof_model_get_column(model, MTPROF_COLUMN_START_NS, &start) == MTPROF_OK);
    REQUIRE(mtprof_model_get_column(model, MTPROF_COLUMN_END_NS, &end) == MTPROF_OK);
    REQUIRE(mtprof_model_get_column(model, MTPROF_COLUMN_NAME, &name) == MTPROF_OK);
    REQUIRE(mtprof_model_get_column(model, MTPROF_COLUMN_TRACK, &track) == MTPROF_OK);
    size_t calls = (size_t)f->job.options.steps * f->job.options.buckets;
    int64_t *ends = calloc(calls * f->n, sizeof *ends);
    size_t seen[RANKS_MOST] = {0};
    REQUIRE(ends != NULL);
    for (uint64_t i = 0; i < start.count; i++) {
        mtprof_text text = mtprof_model_name(model, ((const uint32_t *)name.data)[i]);
        mtprof_track on;
        if (text.length != 15 || memcmp(text.bytes, "gloo:all_reduce", 15) != 0) {
            continue;
        }
        REQUIRE(mtprof_model_track(model, ((const uint32_t *)track.data)[i], &on));
        char wanted[64];
        int64_t rank = on.pid / 1024 - 1;
        REQUIRE(rank >= 0 && rank < (int64_t)f->n && seen[rank] < calls);
        (void)snprintf(wanted, sizeof wanted, "rank %d (process %d)", (int)rank,
                       1000 + 10 * (int)rank);
        CHECK(on.process_name.length == strlen(wanted) &&
              memcmp(on.process_name.bytes, wanted, strlen(wanted)) == 0);
        ends[(size_t)rank * calls + seen[rank]++] = ((const int64_t *)end.data)[i];
    }
    for (size_t k = 0; k < calls; k++) {
        for (size_t i = 1; i < f->n; i++) {
            CHECK(fabs((double)(ends[i * calls + k] - ends[k])) < most_apart);
        }
    }
    for (size_t i = 0; i < f->n; i++) {
        CHECK_EQ_U64(seen[i], calls);
    }
    free(ends);
    mtprof_model_free(model);
}

TEST(merged_ranks_are_on_one_clock)
{
    static const char *const endings[] = {"json", "json.gz"};
    files f;
    char path[600], again[2][640];
    const char *list[2] = {again[0], again[1]};
    write_job(&f, &(sr_options){.seed = 11, .ranks = 5, .drift_ppm = 50, .offset_s = 10});
    mtprof_ranks *r = open_job(&f);
    for (size_t i = 0; i < 2; i++) {
        mtprof_merge_report report = {.struct_size = sizeof report};
        (void)snprintf(path, sizeof path, "%s/merged.%s", f.folder, endings[i]);
        REQUIRE(mtprof_ranks_export(r, path, &report) == MTPROF_OK);
        CHECK_EQ_U64(report.ranks, 5);
        CHECK_EQ_U64(report.events, 5 * 1980);
        check_merged(path, &f, 80000); /* the delays of leaving, a nanosecond of rounding */
    }
    (void)snprintf(path, sizeof path, "%s/merged.pftrace", f.folder);
    CHECK(mtprof_ranks_export(r, path, NULL) == MTPROF_OK);
    CHECK(mtprof_ranks_export(r, "merged.folded", NULL) == MTPROF_EINVAL);
    CHECK(mtprof_ranks_export(r, "/no/such/folder/merged.json", NULL) == MTPROF_EIO);
    /* Chrome traces of the ranks are ranks as well. */
    for (uint32_t i = 0; i < 2; i++) {
        mtprof_model *model = NULL;
        (void)snprintf(again[i], sizeof again[i], "%s/rank%u.json", f.folder, i);
        REQUIRE(mtprof_model_open(f.paths[i], NULL, &model) == MTPROF_OK);
        REQUIRE(mtprof_export(model, MTPROF_EXPORT_CHROME, again[i], NULL) == MTPROF_OK);
        mtprof_model_free(model);
    }
    mtprof_ranks *foreign = NULL;
    REQUIRE(mtprof_ranks_open(list, 2, NULL, &foreign) == MTPROF_OK);
    CHECK_EQ_U64(facts_of(foreign).shared, 40);
    CHECK_EQ_U64(facts_of(foreign).method, MTPROF_CLOCK_COLLECTIVES);
    /* 20 us over a trace of 100 ms: the middle of two ranks is not that of five */
    CHECK(fabs(rank_of(foreign, 1).drift - rank_of(r, 1).drift) < 2e-4);
    (void)snprintf(path, sizeof path, "%s/foreign.json", f.folder);
    REQUIRE(mtprof_ranks_export(foreign, path, NULL) == MTPROF_OK);
    f.n = 2;
    check_merged(path, &f, 80000);
    mtprof_ranks_free(foreign);
    f.n = 5;
    done(&f, r);
}

/* ---- stragglers ------------------------------------------------------------------------------ */

static uint32_t straggler_count(const mtprof_ranks *r)
{
    uint32_t n = 0;
    mtprof_straggler s = {.struct_size = sizeof s};
    while (mtprof_ranks_get_straggler(r, n, &s) == MTPROF_OK) {
        n++;
    }
    return n;
}

static bool finds(uint64_t seed)
{
    files f;
    sr_options options = {.seed = seed,
                          .ranks = 4 + (uint32_t)(seed % 9),
                          .steps = 24,
                          .events = 2000,
                          .offset_s = 10,
                          .drift_ppm = 50,
                          .has_straggler = true,
                          .straggler_percent = 8 + (double)(seed % 20),
                          .straggler_slow = (enum sr_slow)(seed % SR_SLOW_COUNT)};
    options.straggler = (uint32_t)(seed * 5) % options.ranks;
    options.straggler_step = (uint32_t)(seed * 3) % 16;
    write_job(&f, &options);
    mtprof_ranks *r = open_job(&f);
    REQUIRE(mtprof_ranks_find_stragglers(r) == MTPROF_OK);
    mtprof_straggler s = {.struct_size = sizeof s};
    mtprof_straggler_cause cause = {.struct_size = sizeof cause};
    bool found = straggler_count(r) == 1 && mtprof_ranks_get_straggler(r, 0, &s) == MTPROF_OK &&
                 rank_of(r, s.index).rank == options.straggler &&
                 s.since_step == (int32_t)options.straggler_step &&
                 mtprof_ranks_get_cause(r, 0, 0, &cause) == MTPROF_OK;
    const char *event = sr_slow_event(options.straggler_slow);
    found = found && (*event == '\0' ? cause.outside == 1
                                     : cause.name.length == strlen(event) &&
                                           memcmp(cause.name.bytes, event, strlen(event)) == 0);
    if (!found) {
        printf("seed %llu: %u stragglers, rank %u since %d (%.0f us +- %.0f), cause %.*s; planted "
               "rank %u since %u, %s\n",
               (unsigned long long)seed, straggler_count(r), s.index, s.since_step,
               s.late_ns / 1000, s.noise_ns / 1000, TEXT(cause.name), options.straggler,
               options.straggler_step, sr_slow_name(options.straggler_slow));
    }
    done(&f, r);
    return found;
}

TEST(planted_stragglers_are_named)
{
    uint64_t count = mt_test_long() ? 50 : 9, found = 0;
    for (uint64_t seed = 100; seed < 100 + count; seed++) {
        found += finds(seed);
    }
    CHECK_EQ_U64(found, count);
}

TEST(balanced_jobs_have_no_straggler)
{
    uint64_t count = mt_test_long() ? 200 : 20;
    for (uint64_t seed = 500; seed < 500 + count; seed++) {
        files f;
        write_job(&f, &(sr_options){.seed = seed,
                                    .ranks = 2 + (uint32_t)(seed % 31),
                                    .steps = 20,
                                    .events = 400,
                                    .compute_noise = 0.01 * (double)(1 + seed % 8),
                                    .drift_ppm = 50});
        mtprof_ranks *r = open_job(&f);
        REQUIRE(mtprof_ranks_find_stragglers(r) == MTPROF_OK);
        CHECK_EQ_U64(straggler_count(r), 0);
        done(&f, r);
    }
}
