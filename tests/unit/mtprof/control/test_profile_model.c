/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties: random scripts against a plain model of the transition table, random calls against
 * what must always hold, and every allocation failing once.
 */
#include "base/alloc.h"
#include "harness/mt_test.h"
#include "support/fake_session.h"

#include <mtprof/profile.h>

#include <stdio.h>
#include <string.h>

/* ---- the model ------------------------------------------------------------------------------- */

/* The table once more, as text: P A Z C W, E for an empty trace. Columns n w r S stop. */
static const char *const rules[4][5] = {
    {"", "P", "PA", "PA", "X"},
    {"WE", "", "A", "A", "EX"},
    {"WZ", "WZ", "", "", "ZXC"},
    {"ZC", "ZCP", "ZCPA", "ZCPA", "ZXC"},
};

typedef struct model {
    char log[8192];
    bool prepared, open, cleared_needed, accumulate;
    int step;
} model;

static void say(model *m, const char *word)
{
    size_t used = strlen(m->log);
    snprintf(m->log + used, sizeof m->log - used, "%s%s", used != 0 ? " " : "", word);
}

static void apply(model *m, const char *ops)
{
    char word[32];
    snprintf(word, sizeof word, "open:%d:0x80b", m->step);
    for (; *ops != '\0'; ops++) {
        switch (*ops) {
        case 'W': say(m, "warn"); break;
        case 'E':
            if (m->prepared) {
                say(m, word);
                say(m, "drop");
                m->prepared = false;
                m->cleared_needed = true;
            }
            break;
        case 'A':
            if (!m->prepared) {
                apply(m, "P");
            }
            say(m, word);
            m->open = m->cleared_needed = true;
            break;
        case 'P':
            say(m, "prep");
            if (m->cleared_needed && !m->accumulate) {
                say(m, "clear");
            }
            m->prepared = true;
            break;
        case 'Z':
            say(m, "close");
            m->open = m->prepared = false;
            break;
        case 'X': say(m, "stop"); break;
        default: say(m, "ready"); break;
        }
    }
}

static int index_of(char letter)
{
    return (int)(strchr("nwrS", letter) - "nwrS");
}

/* Runs a script both ways; false: they differ. */
static bool follow(const char *script, bool accumulate)
{
    size_t length = strlen(script);
    model m = {.accumulate = accumulate};
    fake_profile fake;
    fake_reset();
    fake_log_windows_only(true);
    fake_profile_init(&fake, script);
    fake.config.flags = accumulate ? MTPROF_PROFILE_ACC_EVENTS : 0;
    bool held = CHECK_OK(fake_profile_make(&fake)) && CHECK_OK(mtprof_profile_start(fake.profile));
    say(&m, "start");
    apply(&m, rules[0][index_of(script[0])]);
    for (size_t i = 1; i < length; i++) {
        m.step = (int)i;
        apply(&m, rules[index_of(script[i - 1])][index_of(script[i])]);
        held = CHECK_OK(mtprof_profile_step(fake.profile)) && held;
    }
    apply(&m, rules[index_of(script[length - 1])][4]);
    held = CHECK_OK(mtprof_profile_stop(fake.profile)) && held;
    held = CHECK_EQ_STR(fake_log(), m.log) && held;
    held = CHECK_OK(mtprof_profile_free(fake.profile)) && held;
    return CHECK_EQ_U64(fake_violations(), 0) && CHECK_EQ_U64(fake_alive(), 0) && held;
}

TEST(random_scripts_follow_the_model)
{
    uint64_t seed = mt_test_seed();
    int rounds = mt_test_long() ? 20000 : 1000;
    bool held = true;
    for (int round = 0; round < rounds && held; round++) {
        char script[40];
        size_t length = 1 + mt_test_random(&seed) % 38;
        for (size_t i = 0; i < length; i++) {
            script[i] = "nwrS"[mt_test_random(&seed) % 4];
        }
        script[length] = '\0';
        held = follow(script, mt_test_random(&seed) % 2 == 0);
        if (!held) {
            FAIL("script %s", script);
        }
    }
}

/* ---- random calls ---------------------------------------------------------------------------- */

static uint64_t wild_seed;

/* A callback that does something, now and then, and may fail. */
static void wild(fake_profile *fake)
{
    mtprof_health health = {.struct_size = sizeof health};
    fake->ready_result = mt_test_random(&wild_seed) % 8 == 0;
    fake->trace_id_result = mt_test_random(&wild_seed) % 16 == 0;
    switch (mt_test_random(&wild_seed) % 10) {
    case 0: (void)mtprof_profile_stop(fake->profile); break;
    case 1: (void)mtprof_profile_start(fake->profile); break;
    case 2: (void)mtprof_profile_toggle(fake->profile, false, MTPROF_WATCH_ALL); break;
    case 3: CHECK(mtprof_profile_step(fake->profile) == MTPROF_ESTATE); break;
    case 4: CHECK(mtprof_profile_free(fake->profile) == MTPROF_EBUSY); break;
    case 5: (void)mtprof_profile_get_health(fake->profile, &health); break;
    case 6: (void)mtprof_profile_add_metadata(fake->profile, "k", 1, "v", 1, false); break;
    default: break;
    }
}

static mtprof_status random_call(mtprof_profile *profile, uint64_t *seed)
{
    switch (mt_test_random(seed) % 12) {
    case 0: return mtprof_profile_start(profile);
    case 1: return mtprof_profile_stop(profile);
    case 2: return mtprof_profile_prepare_trace(profile);
    case 3: return mtprof_profile_start_trace(profile);
    case 4: return mtprof_profile_stop_trace(profile);
    case 5: return mtprof_profile_toggle(profile, mt_test_random(seed) % 2, MTPROF_WATCH_ALL);
    case 6: return mtprof_profile_add_metadata(profile, "key", 3, "value", 5, false);
    default: return mtprof_profile_step(profile);
    }
}

/* PR4, from outside: a window is open exactly where results say that they are being recorded. */
static bool check_state(fake_profile *fake)
{
    mtprof_window window = {.struct_size = sizeof window};
    mtprof_health health = {.struct_size = sizeof health};
    bool held = CHECK_OK(mtprof_profile_get_window(fake->profile, &window));
    bool recording = window.results == MTPROF_RESULTS_RECORDING && window.collecting != 0;
    held = CHECK_EQ_I64(recording, fake_is_recording()) && held;
    held = CHECK(window.delivered <= window.saved) && held;
    held = CHECK_EQ_U64(fake_violations(), 0) && held;
    if (window.results != MTPROF_RESULTS_NONE) {
        held = CHECK_OK(mtprof_profile_get_health(fake->profile, &health)) && held;
    }
    return held;
}

TEST(random_calls_break_no_rule)
{
    static const enum fake_call may_fail[8] = {FAKE_START,  FAKE_OPEN, FAKE_CLOSE, FAKE_PAUSE,
                                               FAKE_RESUME, FAKE_STEP, FAKE_CLEAR, FAKE_METADATA};
    uint64_t seed = mt_test_seed();
    int rounds = mt_test_long() ? 5000 : 300;
    for (int round = 0; round < rounds; round++) {
        fake_profile fake;
        char script[24];
        for (size_t i = 0; i < sizeof script - 1; i++) {
            script[i] = "nwrSrS?!"[mt_test_random(&seed) % (i == 0 ? 6 : 8)];
        }
        script[sizeof script - 1] = '\0';
        fake_reset();
        fake_profile_init(&fake, script);
        fake.config.flags = mt_test_random(&seed) % 2 == 0 ? MTPROF_PROFILE_ACC_EVENTS : 0;
        wild_seed = mt_test_random(&seed);
        REQUIRE_OK(fake_profile_make(&fake));
        if (round % 2 == 0) {
            fake.in_ready = fake.in_schedule = fake.in_trace_id = fake.in_warning = wild;
        }
        for (int i = 0; i < 60; i++) {
            if (mt_test_random(&seed) % 20 == 0) {
                fake_fail(may_fail[mt_test_random(&seed) % 8], MTPROF_ENOSPC);
            }
            mtprof_status status = random_call(fake.profile, &seed);
            bool known = status == MTPROF_OK || status == MTPROF_ESTATE ||
                         status == MTPROF_ECALLBACK || status == MTPROF_ENOSPC;
            if (!CHECK(known) || !check_state(&fake)) {
                FAIL("round %d, call %d, script %s, log %s", round, i, script, fake_log());
                return;
            }
        }
        (void)mtprof_profile_free(fake.profile);
        REQUIRE_EQ_U64(fake_alive(), 0);
    }
}

/* ---- no memory ------------------------------------------------------------------------------- */

/* Everything that allocates. False: something was refused. */
static bool whole_life(fake_profile *fake)
{
    bool all = true;
    mtprof_schedule schedule = {.struct_size = sizeof schedule, .warmup = 1, .active = 1};
    fake_profile_init(fake, NULL);
    fake->config.schedule = &schedule;
    fake->config.path = "x.mtt";
    fake->config.spill_directory = "/var/tmp";
    fake->config.flags = MTPROF_PROFILE_ACC_EVENTS | MTPROF_PROFILE_WITH_STACK;
    mtprof_status status = fake_profile_make(fake);
    if (status != MTPROF_OK) {
        CHECK_EQ_I64(status, MTPROF_ENOMEM);
        CHECK(fake->profile == NULL);
        return false;
    }
    for (int i = 0; i < 3; i++) {
        char key = (char)('a' + i);
        status = mtprof_profile_add_metadata(fake->profile, &key, 1, "text", 4, false);
        CHECK(status == MTPROF_OK || status == MTPROF_ENOMEM);
        all = all && status == MTPROF_OK;
    }
    for (int run = 0; run < 3; run++) {
        status = mtprof_profile_start(fake->profile);
        CHECK(status == MTPROF_OK || status == MTPROF_ENOMEM);
        all = all && status == MTPROF_OK;
        for (int i = 0; i < 4; i++) {
            mtprof_status step = mtprof_profile_step(fake->profile);
            CHECK(step == MTPROF_OK || step == MTPROF_ENOMEM || (!all && step == MTPROF_ESTATE));
            all = all && step == MTPROF_OK;
        }
        status = mtprof_profile_stop(fake->profile);
        CHECK(status == MTPROF_OK || (!all && status == MTPROF_ESTATE));
    }
    CHECK_OK(mtprof_profile_free(fake->profile));
    return all;
}

/* With request n refused, and with forever all later ones; true: n was never reached. */
static bool survive(uint64_t n, bool forever)
{
    fake_profile fake;
    fake_reset();
    mtb_fail_nth(n, forever);
    bool all = whole_life(&fake);
    uint64_t requests = mtb_fail_nth(0, false);
    CHECK_EQ_U64(fake_violations(), 0);
    CHECK_EQ_U64(fake_alive(), 0);
    CHECK_EQ_I64(all, requests < n);
    return all;
}

TEST(every_allocation_may_fail)
{
    uint64_t n = 1;
    while (!survive(n, false)) {
        survive(n, true);
        n++;
    }
    CHECK(n > 12);
}
