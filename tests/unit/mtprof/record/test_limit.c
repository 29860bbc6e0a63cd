/* SPDX-License-Identifier: Apache-2.0
 *
 * The limit of the overhead as a function: a series of loads, and the levels that follow. Programs
 * are simulated by their rates, so no clock and no thread takes part.
 *
 * Cites the invariants of src/mtprof/record/limit/limit.h.
 */
#include "harness/mt_test.h"
#include "mtprof/record/hot/writer.h"
#include "mtprof/record/limit/limit.h"

enum {
    PERCENT = 10000, /* ppm */
    SECOND = 1000000000
};

static const mtprof__limit_costs COSTS = {.pair = 20, .skip = 4};

/* Events a second of the program's time, and what payloads take of each op. */
typedef struct program {
    double ops, scopes, marks;
    double payload_ns;
    double width;     /* cores that it keeps busy */
    double helper_ns; /* of the recorder's thread a turn */
} program;

typedef struct run {
    mtprof__limit limit;
    uint64_t now_ns;
    uint32_t changes, ups;
    uint64_t last_change_ns, least_between_ups_ns, last_up_ns;
    uint64_t on_level_ns[MTPROF_LIMIT_LEVELS];
} run;

static run start(uint32_t ppm, mtprof__limit_costs costs)
{
    run r = {.least_between_ups_ns = UINT64_MAX};
    mtprof__limit_init(&r.limit, ppm, costs);
    return r;
}

static mtprof__load load_of(const program *p, const mtprof__limit *m, uint64_t wall_ns)
{
    double cpu = (double)wall_ns * p->width;
    double seconds = cpu / 1e9;
    mtprof__load load = {.wall_ns = wall_ns,
                         .cpu_ns = (uint64_t)cpu,
                         .helper_ns = (uint64_t)p->helper_ns,
                         .marks = (uint64_t)(p->marks * seconds)};
    uint64_t ops = (uint64_t)(p->ops * seconds), scopes = (uint64_t)(p->scopes * seconds);
    switch (m->level) {
    case MTPROF_LIMIT_NONE:
        load.payload_ns = (uint64_t)((double)ops * p->payload_ns);
        load.begins = ops + scopes;
        break;
    case MTPROF_LIMIT_PAYLOADS: load.begins = ops + scopes; break;
    case MTPROF_LIMIT_OPS_SAMPLED:
        load.ops = load.skipped = ops;
        load.scopes = load.begins = scopes;
        break;
    case MTPROF_LIMIT_OPS_OFF: load.begins = scopes; break;
    default:
        load.marks = 0;
        load.scopes = load.skipped =
            m->level == MTPROF_LIMIT_SCOPES_SAMPLED || m->open ? scopes : 0;
    }
    return load;
}

static void run_for(run *r, const program *p, double seconds)
{
    uint64_t until = r->now_ns + (uint64_t)(seconds * SECOND);
    uint64_t wait = MTPROF__LIMIT_SOON_NS;
    while (r->now_ns < until) {
        mtprof__load load = load_of(p, &r->limit, wait);
        uint32_t before = r->limit.level;
        r->now_ns += wait;
        r->on_level_ns[before] += wait;
        mtprof__limit_turn(&r->limit, &load);
        if (r->limit.level != before) {
            r->changes++;
            r->last_change_ns = r->now_ns;
        }
        if (r->limit.level < before) {
            CHECK_EQ_U64(before - r->limit.level, 1);
            uint64_t between = r->now_ns - r->last_up_ns;
            if (r->ups++ > 0 && between < r->least_between_ups_ns) {
                r->least_between_ups_ns = between;
            }
            r->last_up_ns = r->now_ns;
        }
        wait = mtprof__limit_wait_ns(&r->limit, &load);
        CHECK(wait >= MTPROF__LIMIT_SOON_NS && wait <= SECOND);
    }
}

static double share(const run *r)
{
    return r->limit.cost_ns / r->limit.base_ns;
}

TEST(a_light_load_is_never_touched)
{
    run r = start(PERCENT, COSTS);
    run_for(&r, &(program){.ops = 1e5, .scopes = 1e4, .marks = 1e4, .width = 1}, 120);
    CHECK_EQ_U64(r.changes, 0);
    CHECK_EQ_U64(r.limit.level, MTPROF_LIMIT_NONE);
    CHECK(share(&r) < 0.01);
}

TEST(what_does_not_fit_goes_in_order)
{
    static const struct {
        program p;
        uint32_t level;
    } cases[] = {
        {{.ops = 2e5, .payload_ns = 300, .width = 1}, MTPROF_LIMIT_PAYLOADS},
        {{.ops = 1e6, .scopes = 1e4, .width = 1}, MTPROF_LIMIT_OPS_SAMPLED},
        {{.ops = 3e6, .scopes = 1e4, .width = 1}, MTPROF_LIMIT_OPS_OFF},
        {{.scopes = 1e6, .width = 1}, MTPROF_LIMIT_SCOPES_SAMPLED},
        {{.scopes = 1e4, .marks = 2e6, .width = 1}, MTPROF_LIMIT_SCOPES_SAMPLED},
        {{.scopes = 1e7, .width = 1}, MTPROF_LIMIT_STRETCHES},
        {{.scopes = 1e6, .width = 4}, MTPROF_LIMIT_SCOPES_SAMPLED},
        {{.scopes = 1e6, .width = 1, .helper_ns = 20000}, MTPROF_LIMIT_SCOPES_SAMPLED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run r = start(PERCENT, COSTS);
        run_for(&r, &cases[i].p, 0.5);
        CHECK_EQ_U64(r.limit.level, cases[i].level);
        run_for(&r, &cases[i].p, 4.5);
        CHECK(share(&r) <= 0.0101);
        run_for(&r, &cases[i].p, 595);
        CHECK(share(&r) <= 0.0101);                             /* LM1 */
        CHECK(r.on_level_ns[cases[i].level] > 500ull * SECOND); /* tries above it are short */
        CHECK(r.changes <= 30);                                 /* in ten minutes */
        CHECK(r.least_between_ups_ns >= SECOND);                /* LM2 */
    }
}

TEST(two_million_scopes_that_would_take_a_fifth)
{
    run r = start(PERCENT, (mtprof__limit_costs){.pair = 100, .skip = 8});
    const program p = {.scopes = 2e6, .width = 1};
    run_for(&r, &p, 2);
    CHECK_EQ_U64(r.limit.level, MTPROF_LIMIT_STRETCHES);
    CHECK(share(&r) <= 0.0101);
    run_for(&r, &p, 58);
    CHECK(share(&r) <= 0.0101);
    CHECK(share(&r) >= 0.008); /* what is allowed is used */
    CHECK_EQ_U64(r.limit.level, MTPROF_LIMIT_STRETCHES);
    CHECK(r.changes <= 3);
}

TEST(it_comes_back_when_there_is_room)
{
    run r = start(PERCENT, COSTS);
    run_for(&r, &(program){.ops = 2e6, .scopes = 2e6, .payload_ns = 100, .width = 1}, 30);
    CHECK(r.limit.level >= MTPROF_LIMIT_SCOPES_SAMPLED);
    run_for(&r, &(program){.ops = 1e4, .scopes = 1e4, .payload_ns = 100, .width = 1}, 600);
    CHECK_EQ_U64(r.limit.level, MTPROF_LIMIT_NONE);
    CHECK(share(&r) <= 0.0101);
    uint32_t changes = r.changes;
    run_for(&r, &(program){.ops = 1e4, .scopes = 1e4, .payload_ns = 100, .width = 1}, 600);
    CHECK_EQ_U64(r.changes, changes);
}

TEST(a_short_burst_is_paid_from_the_account)
{
    run r = start(PERCENT, COSTS);
    const program quiet = {.ops = 1e4, .width = 1};
    run_for(&r, &quiet, 5);
    run_for(&r, &(program){.scopes = 5e6, .width = 1}, 0.05); /* 10 % for 50 ms */
    run_for(&r, &quiet, 5);
    CHECK_EQ_U64(r.changes, 0);
    run_for(&r, &(program){.scopes = 5e6, .width = 1}, 1);
    CHECK(r.changes > 0);
}

TEST(a_load_at_the_limit_does_not_swing)
{
    run r = start(PERCENT, COSTS);
    for (int i = 0; i < 600; i++) { /* 0.9 % and 1.1 % in turn, a second each */
        double rate = i % 2 == 0 ? 4.5e5 : 5.5e5;
        run_for(&r, &(program){.ops = rate, .width = 1}, 1);
    }
    CHECK(share(&r) <= 0.0101);
    CHECK(r.changes <= 60);
}

TEST(an_idle_program_is_left_alone)
{
    run r = start(PERCENT, COSTS);
    run_for(&r, &(program){.scopes = 1e5, .width = 0.001, .helper_ns = 15000}, 60);
    CHECK_EQ_U64(r.changes, 0);
    CHECK(mtprof__limit_wait_ns(&r.limit, &(mtprof__load){.wall_ns = SECOND}) >= SECOND / 10);
}

TEST(nothing_happens_without_a_turn_of_time)
{
    run r = start(PERCENT, COSTS);
    mtprof__limit_turn(&r.limit, &(mtprof__load){.begins = 1000000});
    CHECK_EQ_U64(r.limit.level, MTPROF_LIMIT_NONE);
}

TEST(each_level_wants_less)
{
    const uint32_t all = MTPROF__WANTS;
    mtprof__limit m;
    mtprof__limit_init(&m, 0, COSTS);
    CHECK_EQ_U64(mtprof__limit_wants(&m, all, false), all);
    mtprof__limit_init(&m, PERCENT, COSTS);
    uint32_t before = all;
    for (m.level = 0; m.level < MTPROF_LIMIT_LEVELS; m.level++) {
        uint32_t wants = mtprof__limit_wants(&m, all, false);
        CHECK((wants & MTPROF__LIMITED) != 0);
        CHECK_EQ_U64(wants & MTPROF__WANTS & ~before, 0);
        before = wants & MTPROF__WANTS;
        bool ops = m.level == MTPROF_LIMIT_OPS_SAMPLED || m.level == MTPROF_LIMIT_SCOPES_SAMPLED;
        CHECK_EQ_U64((wants & MTPROF__SAMPLE_OPS) != 0, ops);
        CHECK_EQ_U64((wants & MTPROF__SAMPLE_SCOPES) != 0, m.level == MTPROF_LIMIT_SCOPES_SAMPLED);
    }
    m.level = MTPROF_LIMIT_STRETCHES;
    CHECK_EQ_U64(before, 0);
    m.open = true;
    CHECK_EQ_U64(mtprof__limit_wants(&m, all, false) & MTPROF__WANTS, MTPROF_WANT_SCOPES);
    m.level = MTPROF_LIMIT_OPS_OFF;
    CHECK((mtprof__limit_wants(&m, all, true) & MTPROF__SAMPLE_OPS) != 0);
}
