/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparisons: verdicts over programs with exact times, what bad input gets, memory that is
 * refused; and the bounds of noise.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "mtprof/analyze/compare/student.h"
#include "support/traces/timed_trace.h"

#include <mtprof/compare.h>

#include <math.h>
#include <string.h>

enum {
    US = 1000,
    STEPS_OF_A = 8,
    STEPS_OF_B = 6
};

/* ---- verdicts -------------------------------------------------------------------------------- */

/* Steps of some ops, with a variation of a few microseconds that repeats; `extra` op or none. */
static mtprof_model *make_trace(timed_trace *t, int steps, int mm_us, int add_us, const char *extra)
{
    tt_init(t);
    for (int step = 0; step < steps; step++) {
        tt_step(t);
        tt_span(t, 0, MTPROF_KIND_OP, "aten::mm", (mm_us + step % 3) * US);
        tt_span(t, 0, MTPROF_KIND_OP, "aten::add", (add_us + step % 2) * US);
        tt_span(t, 0, MTPROF_KIND_OP, "aten::relu", (step % 2 == 0 ? 50 : 500) * US);
        tt_span(t, 0, MTPROF_KIND_OP, extra, 70 * US);
        tt_pass(t, 0, 5 * US);
    }
    return tt_model(t);
}

static mtprof_compare_row find_row(const mtprof_compare *c, const char *name)
{
    mtprof_compare_row row = {.struct_size = sizeof row};
    for (uint32_t i = 0; mtprof_compare_get_row(c, i, &row) == MTPROF_OK; i++) {
        if (row.name.length == strlen(name) && memcmp(row.name.bytes, name, strlen(name)) == 0) {
            return row;
        }
    }
    REQUIRE(false);
    return row;
}

static uint32_t verdict_of(const mtprof_compare *c, const char *name)
{
    return find_row(c, name).verdict;
}

typedef struct two_traces {
    timed_trace ta, tb;
    mtprof_model *a, *b;
} two_traces;

static void make_two(two_traces *two)
{
    two->a = make_trace(&two->ta, STEPS_OF_A, 100, 60, "aten::old");
    two->b = make_trace(&two->tb, STEPS_OF_B, 140, 40, "aten::new");
}

static void free_two(two_traces *two)
{
    mtprof_model_free(two->a);
    mtprof_model_free(two->b);
    tt_fini(&two->ta);
    tt_fini(&two->tb);
}

TEST(what_changed_and_what_chance_explains)
{
    two_traces two;
    mtprof_compare *c = NULL;
    mtprof_compare_facts facts = {.struct_size = sizeof facts};
    mtprof_compare_row total = {.struct_size = sizeof total};
    make_two(&two);
    REQUIRE_OK(mtprof_compare_new(two.a, two.b, NULL, &c));
    REQUIRE_OK(mtprof_compare_get_facts(c, &facts));
    CHECK_EQ_U64(facts.per_step, 1);
    CHECK_EQ_U64(facts.steps_a, STEPS_OF_A);
    CHECK_EQ_U64(facts.steps_b, STEPS_OF_B);
    CHECK_EQ_U64(facts.slower, 1);
    CHECK_EQ_U64(facts.has_total, 1);
    CHECK_EQ_U64(facts.counts[MTPROF_VERDICT_NEW], 1);
    CHECK_EQ_U64(facts.counts[MTPROF_VERDICT_GONE], 1);
    CHECK_EQ_U64(verdict_of(c, "aten::mm"), MTPROF_VERDICT_SLOWER);
    CHECK_EQ_U64(verdict_of(c, "aten::add"), MTPROF_VERDICT_FASTER);
    CHECK_EQ_U64(verdict_of(c, "aten::relu"), MTPROF_VERDICT_SAME); /* it varies that much */
    CHECK_EQ_U64(verdict_of(c, "aten::new"), MTPROF_VERDICT_NEW);
    CHECK_EQ_U64(verdict_of(c, "aten::old"), MTPROF_VERDICT_GONE);
    mtprof_compare_row mm = find_row(c, "aten::mm");
    CHECK_NEAR_F64(mm.a.ns, (100 + 7.0 / 8) * US, 1e-6); /* 0 1 2 0 1 2 0 1 */
    CHECK_NEAR_F64(mm.b.ns, 141 * US, 1e-6);
    CHECK(mm.noise_ns > 0 && mm.noise_ns < 10 * US);
    CHECK(isnan(find_row(c, "aten::new").noise_ns));
    REQUIRE_OK(mtprof_compare_get_total(c, &total));
    CHECK_EQ_STR(total.name.bytes, "all events");
    CHECK_EQ_U64(total.a.steps, STEPS_OF_A);
    mtprof_compare_free(c);
    free_two(&two);
}

TEST(rows_come_in_the_order_that_was_asked_for)
{
    static const char *const keys[] = {"change", "ratio", "time", "calls", "memory", "name"};
    two_traces two;
    mtprof_compare *c = NULL;
    mtprof_compare_row row = {.struct_size = sizeof row};
    make_two(&two);
    REQUIRE_OK(mtprof_compare_new(two.a, two.b, NULL, &c));
    REQUIRE_OK(mtprof_compare_get_row(c, 0, &row));
    CHECK_EQ_STR(row.name.bytes, "aten::new"); /* 70 us, as much as the one that is gone */
    for (size_t i = 0; i < MT_COUNT(keys); i++) {
        REQUIRE_OK(mtprof_compare_sort(c, keys[i]));
    }
    REQUIRE_OK(mtprof_compare_get_row(c, 0, &row));
    CHECK_EQ_STR(row.name.bytes, "ProfilerStep*");
    REQUIRE_OK(mtprof_compare_get_row(c, 1, &row));
    CHECK_EQ_STR(row.name.bytes, "aten::add");
    CHECK_EQ_I64(mtprof_compare_sort(c, "size"), MTPROF_EINVAL);
    CHECK(strstr(mtprof_last_error()->message, "'size'") != NULL);
    CHECK_EQ_I64(mtprof_compare_sort(c, NULL), MTPROF_EINVAL);
    mtprof_compare_free(c);
    free_two(&two);
}

TEST(without_steps_the_threshold_decides)
{
    two_traces two;
    mtprof_compare *c = NULL;
    mtprof_compare_facts facts = {.struct_size = sizeof facts};
    const mtprof_averages_options first = {
        .struct_size = sizeof first, .steps_given = 1, .first_step = 0, .last_step = 0};
    const mtprof_compare_options strict = {
        .struct_size = sizeof strict, .rows = &first, .threshold_given = 1};
    const mtprof_compare_options loose = {
        .struct_size = sizeof loose, .rows = &first, .threshold = 0.5};
    make_two(&two);
    REQUIRE_OK(mtprof_compare_new(two.a, two.b, &strict, &c));
    REQUIRE_OK(mtprof_compare_get_facts(c, &facts));
    CHECK_EQ_U64(facts.per_step, 0);
    CHECK_EQ_U64(verdict_of(c, "aten::mm"), MTPROF_VERDICT_SLOWER);
    mtprof_compare_free(c);
    REQUIRE_OK(mtprof_compare_new(two.a, two.b, &loose, &c));
    CHECK_EQ_U64(verdict_of(c, "aten::mm"), MTPROF_VERDICT_SAME);
    mtprof_compare_free(c);
    free_two(&two);
}

TEST(bad_input_is_refused)
{
    two_traces two;
    mtprof_compare *c = NULL;
    mtprof_compare_row row = {.struct_size = sizeof row};
    const mtprof_compare_options sizeless = {.struct_size = 0};
    const mtprof_compare_options chance = {.struct_size = sizeof chance, .alpha = 0.7};
    const mtprof_compare_options below = {.struct_size = sizeof below, .threshold = -1};
    const mtprof_compare_options nan = {.struct_size = sizeof nan, .min_ns = NAN};
    const mtprof_averages_options bad_rows = {.struct_size = 0};
    const mtprof_compare_options rows = {.struct_size = sizeof rows, .rows = &bad_rows};
    const mtprof_averages_options chosen_rows = {.struct_size = sizeof chosen_rows,
                                                 .name = "aten::*"};
    const mtprof_compare_options chosen = {.struct_size = sizeof chosen, .rows = &chosen_rows};
    make_two(&two);
    CHECK_EQ_I64(mtprof_compare_new(two.a, two.b, NULL, NULL), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_compare_new(NULL, two.b, NULL, &c), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_compare_new(two.a, NULL, NULL, &c), MTPROF_EINVAL);
    const mtprof_compare_options *const bad[] = {&sizeless, &chance, &below, &nan, &rows};
    for (size_t i = 0; i < MT_COUNT(bad); i++) {
        CHECK_EQ_I64(mtprof_compare_new(two.a, two.b, bad[i], &c), MTPROF_EINVAL);
        CHECK(c == NULL);
    }
    REQUIRE_OK(mtprof_compare_new(two.a, two.b, &chosen, &c));
    CHECK_EQ_I64(mtprof_compare_get_total(c, &row), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_compare_get_row(c, 1000, &row), MTPROF_EINVAL);
    row.struct_size = 0;
    CHECK_EQ_I64(mtprof_compare_get_row(c, 0, &row), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_model_visit_steps(two.a, NULL, NULL), MTPROF_EINVAL);
    CHECK_EQ_STR(mtprof_verdict_name(MTPROF_VERDICT_GONE), "gone");
    CHECK_EQ_STR(mtprof_verdict_name(77), "unknown");
    mtprof_compare_free(c);
    mtprof_compare_free(NULL);
    free_two(&two);
}

static int stop_at_three(void *user, const mtprof_step_sum *sum)
{
    *(int *)user += sum->events > 0;
    return sum->step == 3;
}

TEST(a_visitor_of_steps_may_stop)
{
    timed_trace t;
    int seen = 0;
    mtprof_model *model = make_trace(&t, STEPS_OF_A, 10, 10, "x");
    CHECK_EQ_I64(mtprof_model_visit_steps(model, stop_at_three, &seen), MTPROF_ECALLBACK);
    CHECK_EQ_I64(seen, 4);
    mtprof_model_free(model);
    tt_fini(&t);
}

TEST(memory_may_be_refused_at_any_point)
{
    two_traces two;
    make_two(&two);
    for (uint64_t n = 1; n < 500; n++) {
        mtprof_compare *c = NULL;
        (void)mtb_fail_nth(n, false);
        mtprof_status status = mtprof_compare_new(two.a, two.b, NULL, &c);
        bool reached = mtb_fail_nth(0, false) >= n;
        if (status == MTPROF_OK) {
            CHECK_EQ_U64(verdict_of(c, "aten::mm"), MTPROF_VERDICT_SLOWER);
            mtprof_compare_free(c);
        } else {
            CHECK_EQ_I64(status, MTPROF_ENOMEM);
            CHECK(c == NULL);
        }
        if (!reached) {
            free_two(&two);
            return;
        }
    }
    CHECK(!"it ends");
}

/* ---- noise: tables of Student's distribution ------------------------------------------------- */

TEST(student_is_as_in_the_tables)
{
    CHECK_NEAR_F64(mtprof__student_t(0.05, 1), 12.7062, 1e-4);
    CHECK_NEAR_F64(mtprof__student_t(0.05, 10), 2.2281, 1e-4);
    CHECK_NEAR_F64(mtprof__student_t(0.01, 1), 63.6567, 1e-4);
    CHECK_NEAR_F64(mtprof__student_t(0.01, 30), 2.7500, 1e-4);
    CHECK_NEAR_F64(mtprof__student_t(0.001, 120), 3.3735, 1e-4);
    CHECK_NEAR_F64(mtprof__student_t(0.05, 1e6), 1.95997, 1e-4); /* nearly the normal one */
}

TEST(noise_is_welch)
{
    /* Equal sizes and deviations: df = 2 (n - 1), standard error = s sqrt(2 / n). */
    mtprof__sample a = {10, 100, 5}, b = {10, 120, 5};
    CHECK_NEAR_F64(mtprof__noise_bound(a, b, 0.05), 2.1009 * 5 * sqrt(0.2), 1e-3);
    mtprof__sample exact = {10, 100, 0};
    CHECK_EQ_F64(mtprof__noise_bound(exact, exact, 0.05), 0);
    mtprof__sample one = {1, 100, 0};
    CHECK(isnan(mtprof__noise_bound(one, b, 0.05)));
    CHECK(isnan(mtprof__noise_bound(a, one, 0.05)));
}

/* Chance alone must cross the bound about as often as alpha says. */
TEST(noise_is_crossed_as_often_as_alpha_says)
{
    enum {
        TRIALS = 4000,
        STEPS = 8
    };
    uint64_t seed = mt_test_seed();
    int crossed = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        mtprof__sample samples[2];
        for (int side = 0; side < 2; side++) {
            double sum = 0, squares = 0;
            for (int i = 0; i < STEPS; i++) {
                double value = 0; /* the sum of twelve uniform ones is nearly normal */
                for (int k = 0; k < 12; k++) {
                    value += (double)(mt_test_random(&seed) >> 11) / 9007199254740992.0;
                }
                sum += value;
                squares += value * value;
            }
            double mean = sum / STEPS;
            double variance = (squares - STEPS * mean * mean) / (STEPS - 1);
            samples[side] = (mtprof__sample){STEPS, mean, sqrt(variance)};
        }
        double bound = mtprof__noise_bound(samples[0], samples[1], 0.05);
        crossed += fabs(samples[0].mean - samples[1].mean) > bound;
    }
    CHECK(crossed > TRIALS * 3 / 100);
    CHECK(crossed < TRIALS * 7 / 100);
}
