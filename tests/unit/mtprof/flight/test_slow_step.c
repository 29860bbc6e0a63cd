/* SPDX-License-Identifier: Apache-2.0
 *
 * Slow steps among simulated durations: nothing here measures time.
 */
#include "harness/mt_test.h"
#include "mtprof/flight/slow_step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS ((uint64_t)1000 * 1000)

static double uniform(uint64_t *state)
{
    return ((double)(mt_test_random(state) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

/* A training loop: a long first step, a warm-up that decays, drift, noise, and regular work. */
typedef struct loop {
    double sigma;        /* of the noise's logarithm */
    double drift;        /* the last step's usual duration over the first's */
    uint64_t steps;      /* of the whole loop */
    uint64_t eval_every; /* 0: never */
    double eval_factor;
} loop;

static uint64_t duration(const loop *l, uint64_t step, uint64_t *state)
{
    double ns = 100e6 * exp(l->sigma * normal(state));
    ns *= 1 + (l->drift - 1) * (double)step / (double)l->steps;
    ns *= step == 0 ? 80 : 1 + 4 * exp(-(double)step / 5);
    if (l->eval_every != 0 && step % l->eval_every == l->eval_every - 1) {
        ns *= l->eval_factor;
    }
    return (uint64_t)ns;
}

TEST(ten_times_slower_is_caught_each_time)
{
    uint64_t state = mt_test_seed();
    unsigned caught = 0, false_ones = 0;
    for (unsigned run = 0; run < 100; run++) {
        loop l = {.sigma = 0.15, .drift = 1.5, .steps = 2000};
        uint64_t slow_step = 50 + mt_test_random(&state) % 1900;
        mtprof__slow_step d;
        mtprof__slow_step_init(&d, 3);
        for (uint64_t step = 0; step < l.steps; step++) {
            uint64_t ns = duration(&l, step, &state) * (step == slow_step ? 10 : 1);
            bool slow = mtprof__slow_step_feed(&d, ns) == MTPROF__STEP_SLOW;
            caught += slow && step == slow_step;
            false_ones += slow && step != slow_step;
        }
    }
    CHECK_EQ_U64(caught, 100);
    CHECK_EQ_U64(false_ones, 0);
}

TEST(a_hundred_slow_steps_of_one_loop_are_caught)
{
    uint64_t state = mt_test_seed();
    loop l = {.sigma = 0.15, .drift = 0.7, .steps = 100000};
    mtprof__slow_step d;
    mtprof__slow_step_init(&d, 3);
    uint64_t next = 500;
    unsigned slow = 0, caught = 0;
    for (uint64_t step = 0; step < l.steps && slow < 100; step++) {
        uint64_t ns = duration(&l, step, &state);
        if (step == next) {
            ns *= 10;
            slow++;
            next += 50 + mt_test_random(&state) % 1000;
        }
        caught += mtprof__slow_step_feed(&d, ns) == MTPROF__STEP_SLOW;
    }
    CHECK_EQ_U64(slow, 100);
    CHECK_EQ_U64(caught, 100);
}

/* How many steps of a loop in which nothing is wrong are called slow. */
static uint64_t false_ones(loop l, uint64_t *state)
{
    mtprof__slow_step d;
    mtprof__slow_step_init(&d, 3);
    for (uint64_t step = 0; step < l.steps; step++) {
        mtprof__slow_step_feed(&d, duration(&l, step, state));
    }
    CHECK_EQ_U64(d.steps, l.steps);
    return d.counts[MTPROF__STEP_SLOW];
}

TEST(noise_drift_and_warm_up_are_not_slow_steps)
{
    uint64_t state = mt_test_seed();
    const double sigmas[] = {0, 0.02, 0.1, 0.2};
    const double drifts[] = {0.3, 1, 4};
    for (size_t i = 0; i < sizeof sigmas / sizeof *sigmas; i++) {
        for (size_t k = 0; k < sizeof drifts / sizeof *drifts; k++) {
            loop l = {.sigma = sigmas[i], .drift = drifts[k], .steps = 100000};
            if (!CHECK_EQ_U64(false_ones(l, &state), 0)) {
                FAIL("sigma %g, drift %g", sigmas[i], drifts[k]);
            }
        }
    }
}

TEST(regular_work_under_the_factor_is_no_slow_step)
{
    uint64_t state = mt_test_seed();
    loop l = {.sigma = 0.05, .drift = 1.2, .steps = 100000, .eval_every = 500, .eval_factor = 2.2};
    CHECK_EQ_U64(false_ones(l, &state), 0);
}

TEST(regular_work_is_learned)
{
    uint64_t state = mt_test_seed();
    loop l = {.sigma = 0.1, .drift = 1.2, .steps = 100000, .eval_every = 500, .eval_factor = 30};
    CHECK_EQ_U64(false_ones(l, &state), SLOW_STEP_LEARN);
    l.eval_every = 7;
    CHECK(false_ones(l, &state) <= SLOW_STEP_LEARN + 1); /* one of them during the warm-up */
}

TEST(two_kinds_of_regular_work_and_a_slow_step_among_them)
{
    uint64_t state = mt_test_seed();
    loop l = {.sigma = 0.1, .drift = 1, .steps = 60000, .eval_every = 250, .eval_factor = 8};
    mtprof__slow_step d;
    mtprof__slow_step_init(&d, 3);
    unsigned surprises = 0, caught = 0;
    for (uint64_t step = 0; step < l.steps; step++) {
        uint64_t ns = duration(&l, step, &state);
        if (step % 1000 == 999) {
            ns *= 4; /* the checkpoint on top of the evaluation */
        }
        bool made_slow = step == 31017 || step == 45678;
        ns *= made_slow ? 10 : 1;
        bool slow = mtprof__slow_step_feed(&d, ns) == MTPROF__STEP_SLOW;
        caught += slow && made_slow;
        surprises += slow && !made_slow;
    }
    CHECK_EQ_U64(caught, 2);
    CHECK(surprises <= 2 * SLOW_STEP_LEARN);
    /* A regular step that takes far longer than it used to is reported. */
    while (d.steps % 250 != 249) {
        mtprof__slow_step_feed(&d, 100 * MS);
    }
    CHECK_EQ_U64(mtprof__slow_step_feed(&d, 100000 * MS), MTPROF__STEP_SLOW);
}

TEST(a_new_level_is_one_event)
{
    mtprof__slow_step d;
    mtprof__slow_step_init(&d, 3);
    for (unsigned i = 0; i < 1000; i++) {
        CHECK_EQ_U64(mtprof__slow_step_feed(&d, 100 * MS + i % 7), MTPROF__STEP_USUAL);
    }
    CHECK_EQ_U64(mtprof__slow_step_feed(&d, 500 * MS), MTPROF__STEP_SLOW);
    for (unsigned i = 0; i < 1000; i++) {
        enum mtprof__step_verdict verdict = mtprof__slow_step_feed(&d, 500 * MS + i % 7);
        CHECK_EQ_U64(verdict, i < SLOW_STEP_WINDOW / 2 - 1 ? verdict : MTPROF__STEP_USUAL);
        CHECK(verdict != MTPROF__STEP_SLOW);
    }
    CHECK_EQ_U64(mtprof__slow_step_median(&d) / MS, 500);
    CHECK_EQ_U64(mtprof__slow_step_feed(&d, 5000 * MS), MTPROF__STEP_SLOW);
}

TEST(the_first_steps_say_nothing)
{
    mtprof__slow_step d;
    mtprof__slow_step_init(&d, 3);
    CHECK_EQ_U64(mtprof__slow_step_median(&d), 0);
    for (unsigned i = 0; i < SLOW_STEP_WARM; i++) {
        CHECK_EQ_U64(mtprof__slow_step_feed(&d, i % 5 == 4 ? 9000 * MS : MS), MTPROF__STEP_USUAL);
    }
}

TEST(any_numbers_are_taken)
{
    mtprof__slow_step d;
    mtprof__slow_step_init(&d, 1);
    for (unsigned i = 0; i < 300; i++) {
        mtprof__slow_step_feed(&d, 0);
    }
    CHECK_EQ_U64(mtprof__slow_step_feed(&d, UINT64_MAX), MTPROF__STEP_SLOW);
    for (unsigned i = 0; i < 300; i++) {
        mtprof__slow_step_feed(&d, UINT64_MAX - i % 2);
    }
    CHECK_EQ_U64(mtprof__slow_step_feed(&d, 0), MTPROF__STEP_USUAL);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The window kept step by step, against one that is sorted anew. */
TEST(the_median_is_that_of_the_window)
{
    uint64_t state = mt_test_seed();
    static uint64_t all[1000];
    mtprof__slow_step d;
    mtprof__slow_step_init(&d, 3);
    for (size_t i = 0; i < 1000; i++) {
        all[i] = mt_test_random(&state) % 50; /* many are equal */
        mtprof__slow_step_feed(&d, all[i]);
        uint64_t window[SLOW_STEP_WINDOW];
        size_t n = i + 1 < SLOW_STEP_WINDOW ? i + 1 : SLOW_STEP_WINDOW;
        memcpy(window, all + i + 1 - n, n * sizeof *window);
        qsort(window, n, sizeof *window, compare);
        if (!CHECK_EQ_U64(mtprof__slow_step_median(&d), window[n / 2])) {
            break;
        }
        CHECK_EQ_MEM(d.sorted, window, n * sizeof *window);
    }
}
