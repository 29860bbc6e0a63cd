/* SPDX-License-Identifier: Apache-2.0
 *
 * Schedules: recorded sequences, a plain model over random values, and the edges.
 */
#include "harness/mt_test.h"
#include "mtprof/control/profile_impl.h"

#include <mtprof/schedule.h>

#include <stdio.h>
#include <string.h>

static mtprof_schedule make(int64_t wait, int64_t warmup, int64_t active, int64_t repeat,
                            int64_t skip_first, int64_t skip_first_wait)
{
    return (mtprof_schedule){sizeof(mtprof_schedule), 0, wait, warmup, active, repeat, skip_first,
                             skip_first_wait};
}

static char letter(const mtprof_schedule *schedule, int64_t step)
{
    enum mtprof_action action;
    REQUIRE_OK(mtprof_schedule_get_action(schedule, step, &action));
    return "nwrS"[action];
}

static void check_sequence(mtprof_schedule schedule, const char *expected)
{
    char got[64];
    size_t length = strlen(expected);
    for (size_t i = 0; i < length; i++) {
        got[i] = letter(&schedule, (int64_t)i);
    }
    got[length] = '\0';
    CHECK_EQ_STR(got, expected);
}

TEST(sequences_are_those_that_were_recorded)
{
    check_sequence(make(1, 1, 2, 2, 0, 0), "nwrSnwrSnnnnnn");
    check_sequence(make(2, 1, 1, 0, 3, 0), "nnnnnwSnnwSnnw");
    check_sequence(make(3, 1, 1, 2, 2, 1), "nnwSnnnwSnnnnn");
    check_sequence(make(0, 0, 2, 0, 0, 0), "rSrSrS");
    check_sequence(make(0, 0, 1, 0, 0, 0), "SSSS");
    check_sequence(make(1, 1, 1, 1, 0, -5), "wSnnnn");
    check_sequence(make(0, 3, 1, 1, 2, 0), "nnwwwSnn");
}

/* The rules, one step after the other, without arithmetic. */
static char model(const mtprof_schedule *s, int64_t step)
{
    int64_t at = -s->skip_first, cycle = 0, position = s->skip_first_wait != 0 ? s->wait : 0;
    for (int64_t i = 0; i < step; i++) {
        at++;
        if (at > 0 && ++position == s->wait + s->warmup + s->active) {
            position = 0;
            cycle++;
        }
    }
    if (at < 0 || (s->repeat > 0 && cycle >= s->repeat) || position < s->wait) {
        return 'n';
    }
    if (position < s->wait + s->warmup) {
        return 'w';
    }
    return position == s->wait + s->warmup + s->active - 1 ? 'S' : 'r';
}

static mtprof_schedule random_schedule(uint64_t *seed)
{
    return make((int64_t)(mt_test_random(seed) % 5), (int64_t)(mt_test_random(seed) % 4),
                (int64_t)(mt_test_random(seed) % 4) + 1, (int64_t)(mt_test_random(seed) % 4),
                (int64_t)(mt_test_random(seed) % 5), (int64_t)(mt_test_random(seed) % 3) - 1);
}

TEST(random_schedules_follow_the_model)
{
    uint64_t seed = mt_test_seed();
    for (int round = 0; round < 500; round++) {
        mtprof_schedule s = random_schedule(&seed);
        for (int64_t step = 0; step < 50; step++) {
            if (letter(&s, step) != model(&s, step)) {
                FAIL("wait %d warmup %d active %d repeat %d skip %d/%d step %d: %c, model %c",
                     (int)s.wait, (int)s.warmup, (int)s.active, (int)s.repeat, (int)s.skip_first,
                     (int)s.skip_first_wait, (int)step, letter(&s, step), model(&s, step));
                return;
            }
        }
    }
}

TEST(needs_is_the_distance_to_the_next_recorded_step)
{
    uint64_t seed = mt_test_seed();
    for (int round = 0; round < 300; round++) {
        mtprof_schedule s = random_schedule(&seed);
        int64_t from = (int64_t)(mt_test_random(&seed) % 20);
        uint64_t needs = 0, counted = 0;
        while (counted < 60 && letter(&s, from + (int64_t)counted) != 'r' &&
               letter(&s, from + (int64_t)counted) != 'S') {
            counted++;
        }
        bool ever = mtprof__schedule_needs(&s, from, &needs);
        CHECK_EQ_I64(ever, counted < 60);
        if (ever) {
            CHECK_EQ_U64(needs, counted);
        }
    }
}

TEST(bad_values_are_named_with_their_bounds)
{
    static const int64_t bad[][5] = {
        {-1, 0, 1, 0, 0}, {0, -1, 1, 0, 0}, {0, 0, 0, 0, 0},
        {0, 0, -3, 0, 0}, {0, 0, 1, -1, 0}, {0, 0, 1, 0, -1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        mtprof_schedule s = make(bad[i][0], bad[i][1], bad[i][2], bad[i][3], bad[i][4], 0);
        const char *warning = "";
        enum mtprof_action action;
        CHECK_EQ_I64(mtprof_schedule_check(&s, &warning), MTPROF_EINVAL);
        CHECK(warning == NULL);
        const char *message = mtprof_last_error()->message;
        CHECK(strncmp(message, "Invalid profiler schedule arguments.", 36) == 0);
        static const char *const names[] = {
            "wait = ", "warmup = ", "active = ", "repeat = ", "skip_first = "};
        for (size_t k = 0; k < 5; k++) {
            CHECK(strstr(message, names[k]) != NULL);
        }
        CHECK_EQ_I64(mtprof_schedule_get_action(&s, 0, &action), MTPROF_EINVAL);
    }
    CHECK_EQ_I64(mtprof_schedule_check(NULL, NULL), MTPROF_EINVAL);
}

TEST(a_negative_step_is_refused)
{
    mtprof_schedule s = make(1, 1, 1, 0, 0, 0);
    enum mtprof_action action = MTPROF_ACTION_RECORD;
    CHECK_EQ_I64(mtprof_schedule_get_action(&s, -4, &action), MTPROF_EINVAL);
    CHECK_EQ_STR(mtprof_last_error()->message, "Step must be non-negative. Got -4.");
    CHECK_EQ_I64(action, MTPROF_ACTION_NONE);
}

TEST(no_warmup_is_a_warning)
{
    mtprof_schedule s = make(1, 0, 1, 0, 0, 0);
    const char *warning = NULL;
    CHECK_OK(mtprof_schedule_check(&s, &warning));
    CHECK_EQ_STR(warning, "Profiler won't be using warmup, this can skew profiler results");
    s.warmup = 1;
    CHECK_OK(mtprof_schedule_check(&s, &warning));
    CHECK(warning == NULL);
    CHECK_OK(mtprof_schedule_check(&s, NULL));
}

TEST(huge_values_do_not_overflow)
{
    mtprof_schedule s = make(INT64_MAX, INT64_MAX, INT64_MAX, 0, 0, 0);
    CHECK_EQ_I64(letter(&s, INT64_MAX - 1), 'n');
    CHECK_EQ_I64(letter(&s, INT64_MAX), 'w');
    s.skip_first_wait = 1;
    CHECK_EQ_I64(letter(&s, 0), 'w');
    CHECK_EQ_I64(letter(&s, INT64_MAX), 'r');
    s = make(0, 0, INT64_MAX, INT64_MAX, 0, 0);
    CHECK_EQ_I64(letter(&s, INT64_MAX - 1), 'S');
    CHECK_EQ_I64(letter(&s, INT64_MAX), 'r');
    s.skip_first = INT64_MAX;
    CHECK_EQ_I64(letter(&s, INT64_MAX), 'r');
    uint64_t needs;
    s = make(INT64_MAX, INT64_MAX, INT64_MAX, 0, INT64_MAX, 0);
    CHECK(mtprof__schedule_needs(&s, 0, &needs));
    CHECK_EQ_U64(needs, UINT64_MAX);
}

TEST(no_byte_past_struct_size_is_read)
{
    mtprof_schedule s = make(0, 1, 1, 9, 9, 9);
    s.struct_size = offsetof(mtprof_schedule, repeat);
    CHECK_EQ_I64(letter(&s, 0), 'w');
    CHECK_EQ_I64(letter(&s, 99), 'S');
    s.struct_size = 4;
    CHECK_EQ_I64(mtprof_schedule_check(&s, NULL), MTPROF_EINVAL);
}
