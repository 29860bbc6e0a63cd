/* SPDX-License-Identifier: Apache-2.0
 *
 * The lifecycle machine over a fake session: the transition table, steps, results, toggling,
 * metadata and trace ids, as sequences of calls.
 */
#include "harness/mt_test.h"
#include "support/fake_session.h"

#include <mtprof/profile.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The gate of CPU alone: OPS, SCOPES, MARKS. */
#define CPU "0x80b"

/* Ends a case: the profile goes, and nothing is left of it. */
static void finish(fake_profile *fake)
{
    CHECK_OK(mtprof_profile_free(fake->profile));
    CHECK_EQ_U64(fake_violations(), 0);
    CHECK_EQ_U64(fake_alive(), 0);
}

static void check_log(const char *expected)
{
    CHECK_EQ_STR(fake_log(), expected);
    fake_log_clear();
}

static mtprof_window window_of(fake_profile *fake)
{
    mtprof_window window = {.struct_size = sizeof window};
    CHECK_OK(mtprof_profile_get_window(fake->profile, &window));
    return window;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* One row a pair: the script's two letters ('-': stop), what start() does, what the change does. */
static const struct {
    const char *script, *start, *change, *warning;
} table[] = {
    {"nn", "start", "", NULL},
    {"nw", "start", "prep", NULL},
    {"nr", "start", "prep open:1:" CPU, NULL},
    {"nS", "start", "prep open:1:" CPU, NULL},
    {"n-", "start", "stop", NULL},
    {"wn", "start prep", "warn open:1:" CPU " drop", "Incorrect schedule: WARMUP followed by NONE"},
    {"ww", "start prep", "", NULL},
    {"wr", "start prep", "open:1:" CPU, NULL},
    {"wS", "start prep", "open:1:" CPU, NULL},
    {"w-", "start prep", "open:0:" CPU " drop stop", NULL},
    {"rn", "start prep open:0:" CPU, "warn close", "Incorrect schedule: RECORD followed by NONE"},
    {"rw", "start prep open:0:" CPU, "warn close", "Incorrect schedule: RECORD followed by WARMUP"},
    {"rr", "start prep open:0:" CPU, "", NULL},
    {"rS", "start prep open:0:" CPU, "", NULL},
    {"r-", "start prep open:0:" CPU, "close stop ready", NULL},
    {"Sn", "start prep open:0:" CPU, "close ready", NULL},
    {"Sw", "start prep open:0:" CPU, "close ready prep clear", NULL},
    {"Sr", "start prep open:0:" CPU, "close ready prep clear open:1:" CPU, NULL},
    {"SS", "start prep open:0:" CPU, "close ready prep clear open:1:" CPU, NULL},
    {"S-", "start prep open:0:" CPU, "close stop ready", NULL},
    /* Actions that do not exist change nothing, on either side. */
    {"n?", "start", "", NULL},
    {"r?", "start prep open:0:" CPU, "", NULL},
    {"?r", "start", "", NULL},
    {"?-", "start", "stop", NULL},
};

TEST(every_pair_of_actions_does_what_the_table_says)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        fake_profile fake;
        char script[2] = {table[i].script[0], table[i].script[1]};
        bool stop = script[1] == '-';
        char text[3] = {script[0], stop ? 'n' : script[1], '\0'};
        fake_reset();
        fake_log_windows_only(true);
        fake_profile_init(&fake, text);
        REQUIRE_OK(fake_profile_make(&fake));
        CHECK_OK(mtprof_profile_start(fake.profile));
        bool held = CHECK_EQ_STR(fake_log(), table[i].start);
        fake_log_clear();
        CHECK_OK(stop ? mtprof_profile_stop(fake.profile) : mtprof_profile_step(fake.profile));
        held = CHECK_EQ_STR(fake_log(), table[i].change) && held;
        held = CHECK_EQ_STR(fake.n_warnings != 0 ? fake.warning : NULL, table[i].warning) && held;
        finish(&fake);
        if (!held) {
            FAIL("pair %s", table[i].script);
        }
    }
}

/* Runs a script to its end and stops; the log of the windows. */
static void run_script(fake_profile *fake, const char *script, const char *expected)
{
    fake_reset();
    fake_log_windows_only(true);
    fake_profile_init(fake, script);
    REQUIRE_OK(fake_profile_make(fake));
    CHECK_OK(mtprof_profile_start(fake->profile));
    for (size_t i = 1; i < strlen(script); i++) {
        CHECK_OK(mtprof_profile_step(fake->profile));
    }
    CHECK_OK(mtprof_profile_stop(fake->profile));
    check_log(expected);
}

TEST(record_after_an_unprepared_warmup_prepares_late)
{
    fake_profile fake;
    run_script(&fake, "wrwrS",
               "start prep open:1:" CPU " warn close prep clear open:3:" CPU " close stop ready");
    CHECK_EQ_I64(fake.n_ready, 1);
    finish(&fake);
    /* A warm-up that was not prepared and leads to nothing leaves what was recorded readable. */
    run_script(&fake, "rwn", "start prep open:0:" CPU " warn close warn stop");
    CHECK_EQ_U64(window_of(&fake).results, MTPROF_RESULTS_READY);
    CHECK_EQ_I64(window_of(&fake).steps, 1);
    finish(&fake);
}

TEST(leaving_early_gives_no_or_empty_results)
{
    fake_profile fake;
    run_script(&fake, "nnnn", "start stop");
    CHECK_EQ_U64(window_of(&fake).results, MTPROF_RESULTS_NONE);
    CHECK_EQ_I64(fake.n_ready, 0);
    finish(&fake);
    run_script(&fake, "nwww", "start prep open:3:" CPU " drop stop");
    CHECK_EQ_U64(window_of(&fake).results, MTPROF_RESULTS_READY);
    CHECK_EQ_U64(window_of(&fake).saved, 0);
    CHECK_EQ_I64(fake.n_ready, 0);
    finish(&fake);
}

TEST(a_made_up_action_is_stepped_over)
{
    fake_profile fake;
    run_script(&fake, "r?rS", "start prep open:0:" CPU " close stop ready");
    finish(&fake);
    /* Recording continues past it; the next preparation closes what was left open. */
    run_script(&fake, "r?nrr",
               "start prep open:0:" CPU " close prep clear open:3:" CPU " close stop ready");
    CHECK_EQ_I64(fake.n_ready, 1);
    finish(&fake);
    run_script(&fake, "r?", "start prep open:0:" CPU " close stop");
    CHECK_EQ_I64(fake.n_ready, 0);
    finish(&fake);
}

/* ---- steps ----------------------------------------------------------------------------------- */

TEST(steps_are_annotated_and_callbacks_stand_between)
{
    fake_profile fake;
    fake_reset();
    fake_profile_init(&fake, "wSn");
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_EQ_I64(mtprof_profile_step_num(fake.profile), 0);
    CHECK_EQ_I64(mtprof_profile_current_action(fake.profile), MTPROF_ACTION_WARMUP);
    CHECK_OK(mtprof_profile_start(fake.profile));
    check_log("start prep meta:trace_id=id step:0:1 begin:ProfilerStep#0");
    CHECK_OK(mtprof_profile_step(fake.profile));
    check_log("end open:1:" CPU " step:1:3 begin:ProfilerStep#1");
    CHECK_OK(mtprof_profile_step(fake.profile));
    check_log("end close ready step:2:0 begin:ProfilerStep#2");
    CHECK_EQ_I64(fake.ready_step, 2);
    CHECK_EQ_I64(fake.ready_action, MTPROF_ACTION_NONE);
    /* Long waits leave nothing in the trace: their annotations are not recorded. */
    CHECK_OK(mtprof_profile_step(fake.profile));
    check_log("end begin:ProfilerStep#3");
    CHECK_OK(mtprof_profile_stop(fake.profile));
    check_log("end stop");
    CHECK_EQ_I64(mtprof_profile_current_action(fake.profile), MTPROF_ACTION_NONE);
    CHECK_EQ_I64(fake.n_ready, 1);
    finish(&fake);
}

TEST(without_a_schedule_everything_is_one_window)
{
    fake_profile fake;
    fake_reset();
    fake_profile_init(&fake, NULL);
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_EQ_I64(mtprof_profile_current_action(fake.profile), MTPROF_ACTION_RECORD);
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_EQ_I64(window_of(&fake).steps, 2);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    check_log("start prep meta:trace_id=id open:0:" CPU " step:0:2 step:1:2 close stop ready");
    CHECK_EQ_I64(fake.n_ready, 1);
    CHECK_EQ_I64(fake.ready_step, 1);
    finish(&fake);
}

TEST(saving_every_step_calls_back_once_more_at_stop)
{
    fake_profile fake;
    run_script(&fake, "SSSS",
               "start prep open:0:" CPU " close ready prep clear open:1:" CPU
               " close ready prep clear open:2:" CPU " close ready prep clear open:3:" CPU
               " close stop ready");
    CHECK_EQ_I64(fake.n_ready, 4);
    CHECK_EQ_U64(window_of(&fake).saved, 4);
    CHECK_EQ_U64(window_of(&fake).delivered, 4);
    finish(&fake);
}

TEST(a_schedule_struct_drives_the_same_machine)
{
    mtprof_schedule schedule = {sizeof schedule, 0, 1, 1, 2, 3, 0, 0};
    fake_profile fake;
    fake_reset();
    fake_profile_init(&fake, NULL);
    fake.config.schedule = &schedule;
    REQUIRE_OK(fake_profile_make(&fake));
    memset(&schedule, 0xff, sizeof schedule); /* it was copied */
    CHECK_OK(mtprof_profile_start(fake.profile));
    for (int i = 0; i < 18; i++) {
        CHECK_OK(mtprof_profile_step(fake.profile));
    }
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_ready, 3);
    CHECK_EQ_I64(fake.n_warnings, 0);
    finish(&fake);
}

/* ---- results --------------------------------------------------------------------------------- */

TEST(acc_events_clears_nothing)
{
    fake_profile fake;
    fake_reset();
    fake_log_windows_only(true);
    fake_profile_init(&fake, "SSn");
    fake.config.flags = MTPROF_PROFILE_ACC_EVENTS;
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    check_log("start prep open:0:" CPU " close ready prep open:1:" CPU " close ready");
    CHECK_EQ_U64(window_of(&fake).first_window, 1);
    CHECK_EQ_U64(window_of(&fake).window, 2);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    /* Started again, the earlier session is kept in addition to the new one. */
    fake.script = "r";
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_U64(fake_alive(), 2);
    CHECK_EQ_U64(window_of(&fake).sessions, 2);
    CHECK(mtprof_profile_session(fake.profile, 0) != NULL);
    CHECK(mtprof_profile_session(fake.profile, 1) != NULL);
    CHECK(mtprof_profile_session(fake.profile, 1) != mtprof_profile_session(fake.profile, 0));
    CHECK(mtprof_profile_session(fake.profile, 2) == NULL);
    finish(&fake);
}

TEST(window_numbers_tell_the_results_apart)
{
    fake_profile fake;
    fake_reset();
    fake_profile_init(&fake, "nrSrSwrr");
    fake.config.path = "x.mtt";
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_EQ_U64(window_of(&fake).results, MTPROF_RESULTS_NONE);
    CHECK_EQ_U64(window_of(&fake).window, 0);
    CHECK_EQ_I64(window_of(&fake).first_step, -1);
    CHECK(mtprof_profile_session(fake.profile, 0) == NULL);
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_EQ_U64(window_of(&fake).results, MTPROF_RESULTS_RECORDING);
    CHECK_EQ_U64(window_of(&fake).collecting, MTPROF_WATCH_CPU);
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_EQ_U64(window_of(&fake).window, 2);
    CHECK_EQ_U64(window_of(&fake).first_window, 2);
    CHECK_EQ_I64(window_of(&fake).first_step, 3);
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_EQ_I64(window_of(&fake).steps, 2);
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_EQ_U64(window_of(&fake).results, MTPROF_RESULTS_PREPARED);
    CHECK_EQ_U64(window_of(&fake).first_window, 3);
    CHECK_EQ_U64(window_of(&fake).window, 2);
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_U64(window_of(&fake).window, 3);
    CHECK_EQ_U64(window_of(&fake).first_window, 3);
    CHECK_EQ_U64(window_of(&fake).results, MTPROF_RESULTS_READY);
    CHECK_EQ_U64(window_of(&fake).collecting, 0);
    finish(&fake);
    mtprof_window small = {.struct_size = offsetof(mtprof_window, window), .window = 42};
    fake_profile_init(&fake, NULL);
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_OK(mtprof_profile_get_window(fake.profile, &small));
    CHECK_EQ_U64(small.window, 42);
    small.struct_size = 0;
    CHECK_EQ_I64(mtprof_profile_get_window(fake.profile, &small), MTPROF_EINVAL);
    finish(&fake);
}

TEST(a_second_run_replaces_results_when_it_prepares)
{
    fake_profile fake;
    run_script(&fake, "r", "start prep open:0:" CPU " close stop ready");
    mtprof_session *first = mtprof_profile_session(fake.profile, 0);
    CHECK(first != NULL);
    fake.script = "rnr";
    fake.config.path = NULL;
    CHECK_OK(mtprof_profile_start(fake.profile)); /* the action is still RECORD */
    check_log("start prep shut open:0:" CPU);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    finish(&fake);

    run_script(&fake, "rn", "start prep open:0:" CPU " warn close stop");
    first = mtprof_profile_session(fake.profile, 0);
    CHECK_OK(mtprof_profile_start(fake.profile));
    check_log("start");
    CHECK_EQ_PTR(mtprof_profile_session(fake.profile, 0), first);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    check_log("stop shut"); /* the run without a window goes, the older results stay */
    CHECK_EQ_PTR(mtprof_profile_session(fake.profile, 0), first);
    finish(&fake);
}

TEST(health_is_that_of_the_latest_session)
{
    fake_profile fake;
    mtprof_health health = {.struct_size = sizeof health};
    fake_reset();
    fake_profile_init(&fake, "nrn");
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_EQ_I64(mtprof_profile_get_health(fake.profile, &health), MTPROF_ESTATE);
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_get_health(fake.profile, &health));
    CHECK_EQ_U64(health.begins, 0);
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_get_health(fake.profile, &health));
    CHECK_EQ_U64(health.begins, 1);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_OK(mtprof_profile_get_health(fake.profile, &health));
    finish(&fake);
}

/* ---- empty results explain themselves -------------------------------------------------------- */

static void check_explained(fake_profile *fake, const char *expected)
{
    char text[256];
    CHECK_OK(mtprof_profile_explain_empty(fake->profile, text, sizeof text));
    CHECK_EQ_STR(text, expected);
}

TEST(empty_results_say_why)
{
    mtprof_schedule schedule = {sizeof schedule, 0, 1, 2, 1, 1, 0, 0};
    fake_profile fake;
    fake_reset();
    fake_profile_init(&fake, NULL);
    fake.config.schedule = &schedule;
    REQUIRE_OK(fake_profile_make(&fake));
    check_explained(&fake, "0 steps recorded: start() was not called");
    CHECK_OK(mtprof_profile_start(fake.profile));
    check_explained(&fake, "0 steps recorded: step() was called 0 times, the schedule needs 3");
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_stop(fake.profile));
    check_explained(&fake, "0 steps recorded: step() was called 1 time, the schedule needs 3");
    CHECK_OK(mtprof_profile_start(fake.profile)); /* at step 1, in the warm-up */
    check_explained(&fake, "0 steps recorded: step() was called 0 times, the schedule needs 2");
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    check_explained(&fake, "1 step recorded, with events in it");
    CHECK_OK(mtprof_profile_toggle(fake.profile, false, MTPROF_WATCH_ALL));
    check_explained(&fake, "1 step recorded, with events in it; collection is switched off");
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_prepare_trace(fake.profile));
    check_explained(&fake, "0 steps recorded: step() was called 0 times, the schedule is over");
    finish(&fake);

    fake_profile_init(&fake, "nSw");
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_OK(mtprof_profile_start(fake.profile));
    check_explained(&fake, "0 steps recorded: step() was called 0 times, "
                           "the schedule asked for no recording");
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    check_explained(&fake, "0 steps recorded since the last window was saved: earlier windows are "
                           "cleared when the next is prepared, acc_events keeps them");
    char tiny[4];
    CHECK_OK(mtprof_profile_explain_empty(fake.profile, tiny, sizeof tiny));
    CHECK_EQ_STR(tiny, "0 s");
    CHECK_EQ_I64(mtprof_profile_explain_empty(fake.profile, NULL, 9), MTPROF_EINVAL);
    finish(&fake);
}

/* ---- by hand --------------------------------------------------------------------------------- */

TEST(windows_can_be_controlled_by_hand)
{
    fake_profile fake;
    fake_reset();
    fake_log_windows_only(true);
    fake_profile_init(&fake, NULL);
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_EQ_I64(mtprof_profile_start_trace(fake.profile), MTPROF_ESTATE);
    CHECK_EQ_STR(mtprof_last_error()->message,
                 "Profiler must be initialized before starting trace");
    CHECK_EQ_I64(mtprof_profile_stop_trace(fake.profile), MTPROF_ESTATE);
    CHECK_EQ_STR(mtprof_last_error()->message,
                 "Profiler must be initialized before stopping trace");
    CHECK_OK(mtprof_profile_prepare_trace(fake.profile));
    CHECK_EQ_I64(mtprof_profile_step(fake.profile), MTPROF_ESTATE);
    CHECK(!mtprof_profile_is_running(fake.profile));
    CHECK_OK(mtprof_profile_start_trace(fake.profile));
    CHECK_OK(mtprof_profile_start_trace(fake.profile));
    CHECK_EQ_I64(mtprof_profile_prepare_trace(fake.profile), MTPROF_ESTATE);
    CHECK_EQ_I64(mtprof_profile_start(fake.profile), MTPROF_ESTATE);
    CHECK_OK(mtprof_profile_stop_trace(fake.profile));
    check_log("start prep open:0:" CPU " close stop");
    CHECK_EQ_I64(fake.n_ready, 0);
    CHECK_OK(mtprof_profile_stop_trace(fake.profile));
    check_log("warn");
    /* Unprepared: it is made up for. */
    CHECK_OK(mtprof_profile_start_trace(fake.profile));
    check_log("start prep shut open:0:" CPU);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    check_log("close stop ready");
    finish(&fake);
}

TEST(by_hand_and_by_schedule_mix)
{
    fake_profile fake;
    fake_reset();
    fake_log_windows_only(true);
    fake_profile_init(&fake, "rrS");
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_OK(mtprof_profile_prepare_trace(fake.profile));
    CHECK_OK(mtprof_profile_start(fake.profile));
    check_log("start prep prep open:0:" CPU);
    CHECK_OK(mtprof_profile_stop_trace(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_stop(fake.profile));
    check_log("close stop ready"); /* the window was saved and not delivered: it is now */
    CHECK_EQ_I64(fake.n_ready, 1);
    CHECK_OK(mtprof_profile_prepare_trace(fake.profile));
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_ready, 1); /* no window, no call */
    finish(&fake);
}

/* ---- activities and flags -------------------------------------------------------------------- */

TEST(activity_names_are_parsed)
{
    static const struct {
        const char *text;
        uint32_t bit;
        mtprof_status status;
    } cases[] = {
        {"CPU", MTPROF_WATCH_CPU, MTPROF_OK},
        {"cpu", MTPROF_WATCH_CPU, MTPROF_OK},
        {"ProfilerActivity.CPU", MTPROF_WATCH_CPU, MTPROF_OK},
        {"a.b.npu", MTPROF_WATCH_DEVICE, MTPROF_OK},
        {"Cuda", MTPROF_WATCH_DEVICE, MTPROF_OK},
        {"gpu", MTPROF_WATCH_DEVICE, MTPROF_OK},
        {"privateuse1", MTPROF_WATCH_DEVICE, MTPROF_OK},
        {"XPU", 0, MTPROF_ENOTSUP},
        {"x.mtia", 0, MTPROF_ENOTSUP},
        {"HPU", 0, MTPROF_ENOTSUP},
        {"TPU", 0, MTPROF_EINVAL},
        {"CPU.", 0, MTPROF_EINVAL},
        {" CPU", 0, MTPROF_EINVAL},
        {"", 0, MTPROF_EINVAL},
        {NULL, 0, MTPROF_EINVAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t bit = 99;
        CHECK_EQ_I64(mtprof_watch_parse(cases[i].text, &bit), cases[i].status);
        CHECK_EQ_U64(bit, cases[i].bit);
    }
    uint32_t bit;
    CHECK_EQ_I64(mtprof_watch_parse("abacus", &bit), MTPROF_EINVAL);
    CHECK(strstr(mtprof_last_error()->message, "'abacus'") != NULL);
    CHECK(strstr(mtprof_last_error()->message, "CPU, NPU, CUDA, GPU") != NULL);
}

TEST(a_device_that_is_not_there_is_a_warning)
{
    fake_profile fake;
    fake_reset();
    fake_profile_init(&fake, NULL);
    fake.config.activities = MTPROF_WATCH_DEVICE;
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_EQ_I64(fake.n_warnings, 1);
    CHECK_EQ_I64(fake.warning_status, MTPROF_ENOTSUP);
    CHECK_EQ_STR(fake.warning, "NPU is not available, disabling NPU profiling");
    CHECK_EQ_U64(mtprof_profile_activities(fake.profile), MTPROF_WATCH_CPU);
    finish(&fake);

    fake_profile_init(&fake, NULL);
    fake.config.activities = MTPROF_WATCH_ALL;
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_EQ_I64(fake.n_warnings, 0);
    fake_set_device(true); /* it appears between new and start */
    fake_log_clear();
    fake_log_windows_only(true);
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_EQ_U64(mtprof_profile_activities(fake.profile), MTPROF_WATCH_CPU | MTPROF_WATCH_DEVICE);
    check_log("start prep open:0:0x180f");
    finish(&fake);
}

TEST(flags_become_gate_bits_and_metadata)
{
    static const struct {
        uint32_t flags;
        const char *log;
    } cases[] = {
        {MTPROF_PROFILE_RECORD_SHAPES, "open:0:0x81b json:record_shapes=1"},
        {MTPROF_PROFILE_MEMORY, "open:0:0x98b json:profile_memory=1"},
        {MTPROF_PROFILE_WITH_STACK, "open:0:0x84b json:with_stack=1"},
        {MTPROF_PROFILE_WITH_FLOPS, "open:0:0xa1b json:with_flops=1"},
        {MTPROF_PROFILE_WITH_MODULES, "open:0:0xc0b json:with_modules=1"},
        {MTPROF_PROFILE_TENSOR_IDS, "open:0:0x82b"},
        {MTPROF_PROFILE_DETAILS, "open:0:0x80b"},
        {MTPROF_PROFILE_STRIDES, "open:0:0x281b"},
        {MTPROF_PROFILE_NATIVE_STACKS, "open:0:0x480b"},
        {MTPROF_PROFILE_OVERLOADS, "open:0:0x880b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_profile fake;
        fake_reset();
        fake_profile_init(&fake, NULL);
        fake.config.flags = cases[i].flags;
        REQUIRE_OK(fake_profile_make(&fake));
        CHECK_OK(mtprof_profile_prepare_trace(fake.profile));
        CHECK_OK(mtprof_profile_add_metadata(fake.profile, "k", 1, "v", 1, false));
        fake_log_clear();
        CHECK_OK(mtprof_profile_start_trace(fake.profile));
        char expected[128];
        snprintf(expected, sizeof expected, "%s step:0:2", cases[i].log);
        check_log(expected);
        finish(&fake);
    }
}

TEST(device_alone_wants_no_scopes)
{
    fake_profile fake;
    fake_reset();
    fake_set_device(true);
    fake_log_windows_only(true);
    fake_profile_init(&fake, NULL);
    fake.config.activities = MTPROF_WATCH_DEVICE;
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_OK(mtprof_profile_start(fake.profile));
    check_log("start prep open:0:0x1004");
    finish(&fake);
}

/* ---- toggle ---------------------------------------------------------------------------------- */

TEST(toggling_pauses_and_resumes_the_window)
{
    fake_profile fake;
    fake_reset();
    fake_profile_init(&fake, "rrSr");
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_OK(mtprof_profile_toggle(fake.profile, false, MTPROF_WATCH_CPU));
    check_log("");
    CHECK_OK(mtprof_profile_start(fake.profile));
    fake_log_clear();
    CHECK_OK(mtprof_profile_toggle(fake.profile, true, MTPROF_WATCH_CPU));
    check_log("");
    CHECK_OK(mtprof_profile_toggle(fake.profile, false, MTPROF_WATCH_DEVICE));
    check_log("");
    CHECK_OK(mtprof_profile_toggle(fake.profile, false, MTPROF_WATCH_CPU));
    CHECK_OK(mtprof_profile_toggle(fake.profile, false, MTPROF_WATCH_CPU));
    check_log("end pause");
    CHECK_EQ_U64(window_of(&fake).collecting, 0);
    CHECK_OK(mtprof_profile_toggle(fake.profile, true, MTPROF_WATCH_ALL));
    check_log("pause resume:" CPU " begin:ProfilerStep#0");
    CHECK_OK(mtprof_profile_toggle(fake.profile, false, MTPROF_WATCH_CPU));
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_step(fake.profile));
    fake_log_clear();
    CHECK_OK(mtprof_profile_step(fake.profile)); /* the next window collects everything */
    CHECK_EQ_U64(window_of(&fake).collecting, MTPROF_WATCH_CPU);
    CHECK_EQ_I64(mtprof_profile_toggle(fake.profile, false, 1u << 9), MTPROF_EINVAL);
    CHECK_OK(mtprof_profile_toggle(fake.profile, false, 0));
    CHECK_EQ_I64(fake.n_warnings, 0);
    finish(&fake);
}

TEST(toggling_one_of_two_warns)
{
    fake_profile fake;
    fake_reset();
    fake_set_device(true);
    fake_log_windows_only(true);
    fake_profile_init(&fake, NULL);
    fake.config.activities = MTPROF_WATCH_CPU | MTPROF_WATCH_DEVICE;
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_OK(mtprof_profile_start(fake.profile));
    fake_log_clear();
    CHECK_OK(mtprof_profile_toggle(fake.profile, false, MTPROF_WATCH_CPU));
    check_log("warn pause resume:0x1004");
    CHECK_OK(mtprof_profile_toggle(fake.profile, false, MTPROF_WATCH_DEVICE));
    check_log("pause");
    CHECK_OK(mtprof_profile_toggle(fake.profile, true, MTPROF_WATCH_DEVICE | MTPROF_WATCH_CPU));
    check_log("pause resume:0x180f");
    fake_fail(FAKE_RESUME, MTPROF_ENOMEM);
    CHECK_EQ_I64(mtprof_profile_toggle(fake.profile, false, MTPROF_WATCH_CPU), MTPROF_ENOMEM);
    CHECK_EQ_U64(window_of(&fake).collecting, 0);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_EQ_I64(fake.n_ready, 1);
    finish(&fake);
}

/* ---- metadata and trace ids ------------------------------------------------------------------ */

TEST(early_metadata_is_in_every_window)
{
    fake_profile fake;
    fake_reset();
    fake_profile_init(&fake, "nSSn");
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_OK(mtprof_profile_add_metadata(fake.profile, "a", 1, "1", 1, false));
    CHECK_OK(mtprof_profile_add_metadata(fake.profile, "b", 1, "[2]", 3, true));
    CHECK_OK(mtprof_profile_preset_metadata(fake.profile, "c", 1, "3", 1, true));
    CHECK_OK(mtprof_profile_add_metadata(fake.profile, "a", 1, "one", 3, false));
    CHECK_OK(mtprof_profile_start(fake.profile));
    check_log("start step:0:0 begin:ProfilerStep#0");
    CHECK_OK(mtprof_profile_add_metadata(fake.profile, "d", 1, "", 0, false));
    CHECK_OK(mtprof_profile_step(fake.profile));
    check_log("end prep meta:trace_id=id open:1:" CPU
              " meta:a=one json:b=[2] json:c=3 meta:d= step:1:3 begin:ProfilerStep#1");
    /* From here on it goes straight to the trace; presets wait for the next window. */
    CHECK_OK(mtprof_profile_add_metadata(fake.profile, "e", 1, "5", 1, false));
    CHECK_OK(mtprof_profile_preset_metadata(fake.profile, "c", 1, "4", 1, true));
    check_log("meta:e=5");
    CHECK_OK(mtprof_profile_step(fake.profile));
    check_log("end close ready prep clear meta:trace_id=id open:2:" CPU
              " meta:a=one json:b=[2] json:c=4 meta:d= step:2:3 begin:ProfilerStep#2");
    CHECK_OK(mtprof_profile_stop(fake.profile));
    fake_log_clear();
    CHECK_OK(mtprof_profile_add_metadata(fake.profile, "late", 4, "6", 1, true));
    check_log("json:late=6");
    finish(&fake);
}

TEST(bad_metadata_is_refused)
{
    fake_profile fake;
    fake_reset();
    fake_profile_init(&fake, NULL);
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_EQ_I64(mtprof_profile_add_metadata(fake.profile, NULL, 1, "v", 1, false), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_add_metadata(fake.profile, "k", 0, "v", 1, false), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_add_metadata(fake.profile, "k", 1, NULL, 1, false), MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_add_metadata(fake.profile, "k", 1, "v", (16 << 20) + 1, false),
                 MTPROF_EINVAL);
    CHECK_EQ_I64(mtprof_profile_add_metadata(NULL, "k", 1, "v", 1, false), MTPROF_EINVAL);
    /* What the trace refuses is a warning, and recording continues. */
    CHECK_OK(mtprof_profile_add_metadata(fake.profile, "k", 1, "v", 1, false));
    fake_fail(FAKE_METADATA, MTPROF_ENOSPC);
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_EQ_I64(fake.n_warnings, 1);
    CHECK_EQ_I64(fake.warning_status, MTPROF_ENOSPC);
    fake_fail(FAKE_METADATA, MTPROF_ENOSPC);
    CHECK_EQ_I64(mtprof_profile_add_metadata(fake.profile, "k", 1, "v", 1, false), MTPROF_ENOSPC);
    fake_fail(FAKE_STEP, MTPROF_ENOSPC);
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_EQ_I64(fake.n_warnings, 2);
    finish(&fake);
}

static int other_trace_id(void *user, char *text, size_t size)
{
    memset(text, *(const char *)user, size); /* not even terminated */
    return 0;
}

TEST(trace_ids_are_made_per_trace)
{
    fake_profile fake;
    char text[MTPROF_TRACE_ID_BYTES];
    char first[64];
    fake_reset();
    fake_profile_init(&fake, "SSn");
    fake.config.trace_id = NULL;
    REQUIRE_OK(fake_profile_make(&fake));
    CHECK_OK(mtprof_profile_get_trace_id(fake.profile, text, sizeof text));
    CHECK_EQ_STR(text, "");
    CHECK_OK(mtprof_profile_start(fake.profile));
    CHECK_OK(mtprof_profile_get_trace_id(fake.profile, first, sizeof first));
    CHECK_EQ_U64(strlen(first), 32);
    CHECK_EQ_U64(strspn(first, "0123456789ABCDEF"), 32);
    CHECK_EQ_I64(first[12], '4');
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_get_trace_id(fake.profile, text, sizeof text));
    CHECK(strcmp(text, first) != 0);
    /* Another maker counts from the next trace on. */
    char letter = 'Q';
    CHECK_OK(mtprof_profile_set_trace_id_callback(fake.profile, other_trace_id, &letter));
    CHECK_OK(mtprof_profile_get_trace_id(fake.profile, first, sizeof first));
    CHECK_EQ_STR(first, text);
    CHECK_OK(mtprof_profile_step(fake.profile));
    CHECK_OK(mtprof_profile_get_trace_id(fake.profile, text, sizeof text));
    CHECK_EQ_STR(text, first);
    CHECK_OK(mtprof_profile_stop(fake.profile));
    CHECK_OK(mtprof_profile_prepare_trace(fake.profile));
    CHECK_OK(mtprof_profile_get_trace_id(fake.profile, text, sizeof text));
    CHECK_EQ_U64(strlen(text), MTPROF_TRACE_ID_BYTES - 1);
    CHECK_EQ_I64(text[0], 'Q');
    CHECK_OK(mtprof_profile_get_trace_id(fake.profile, text, 3));
    CHECK_EQ_STR(text, "QQ");
    CHECK_EQ_I64(mtprof_profile_get_trace_id(fake.profile, text, 0), MTPROF_EINVAL);
    finish(&fake);
}
